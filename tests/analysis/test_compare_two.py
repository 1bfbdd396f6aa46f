"""Two runs beside each other: what differs, the ratios, and what may not be compared."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from compared_runs import run
from mountlab.analysis.compare.differences import Difference
from mountlab.analysis.compare.run_spread import FigureSpread, RunsDiffer, side_of
from mountlab.analysis.compare.runs import RunComparison, compare_runs
from mountlab.analysis.same_cells import same_cell
from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import PlanError
from mountlab.core.findings import Caveat, OptionEvidence
from mountlab.core.model import Filesystem, Until, Workload
from mountlab.report import sections
from mountlab.sentences import comparison as words
from mountlab.stats import compare_unpaired, sequential
from mountlab.stats.run_spread import ASSUMED, compare_rows_of_runs
from rows import every_row
from scipy import stats
from synthetic_run import SyntheticRun


def compared(**changes: Any) -> RunComparison:
    return compare_runs((run("a"), run("b", **changes)))


def areas(found: RunComparison) -> dict[str, list[str]]:
    named: dict[str, dict[str, None]] = {}
    for each in found.differences:
        named.setdefault(each.area, {})[each.what] = None
    return {area: [*own] for area, own in named.items()}


def values(made: SyntheticRun, cell: str, metric: str) -> list[float]:
    frame = made.measurements
    own = frame[(frame["cell"] == cell) & (frame["metric"] == metric) & ~frame["warmup"]]
    return list(own["value"])


def refusal(a: SyntheticRun, b: SyntheticRun) -> PlanError:
    with pytest.raises(PlanError) as caught:
        compare_runs((a, b))
    return caught.value


# ── ratios ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_each_ratio_is_b_over_a_by_welch_on_logs() -> None:
    a, b = run("a"), run("b", factor=1.3)
    """Where runs are stated to be alike; else what they differ by is in the interval, too."""
    found = compare_runs((a, b), RunsDiffer(0.0))
    assert [each.cell.id for each in found.ratios] == [cell.id for cell in a.sweep.cells]
    for each in found.ratios:
        metric = each.comparison.metric
        ours, theirs = values(b, each.cell.id, metric), values(a, each.cell.id, metric)
        logs = np.log(ours), np.log(theirs)
        reference = stats.ttest_ind(*logs, equal_var=False)
        assert each.comparison.ratio == pytest.approx(math.exp(logs[0].mean() - logs[1].mean()))
        most = 2 * stats.t.sf(abs(reference.statistic), min(map(len, logs)) - 1)
        assert reference.pvalue * (1 - 1e-9) <= each.comparison.p <= most * (1 + 1e-9)
        alone = compare_unpaired(ours, theirs)
        assert (each.comparison.own.low, each.comparison.own.high) == pytest.approx((alone.low, alone.high))
        assert (each.n_a, each.n_b) == (len(theirs), len(ours))
        assert (each.mean_a, each.mean_b) == pytest.approx((np.mean(theirs), np.mean(ours)))
        assert compare_unpaired(ours, theirs).p == pytest.approx(each.comparison.p)


@pytest.mark.slow
def test_by_how_much_runs_differ_is_in_every_interval_and_in_every_form() -> None:
    """5 % where nothing is known: its normal bound and Welch's are combined by squares. Trap: intervals that know only
    the spread inside each run."""
    a, b = run("a"), run("b", factor=1.1)
    found, alike = compare_runs((a, b)), compare_runs((a, b), RunsDiffer(0.0))
    for ours, trials in zip(found.ratios, alike.ratios, strict=True):
        inside = math.log(trials.comparison.own.high / trials.comparison.ratio)
        between = stats.norm.isf(0.025) * 0.05 * math.sqrt(2)
        assert math.log(ours.comparison.own.high / ours.comparison.ratio) == pytest.approx(math.hypot(inside, between))
        assert ours.comparison.verdict == "undecided"
        assert (ours.unless > 0) == (trials.comparison.verdict == "faster")
    assert any(each.unless > 0 for each in found.ratios)
    text, page = words.comparison_text(found), sections.cell_by_cell(found) + sections.answer(found)
    for form in (text, page, words.comparison_json(found)["runs_differ"]):
        assert "Runs are assumed to differ by 5 % or less" in form.replace("\u00a0", " ").replace("&nbsp;", " ")
    assert re.search(r"undecided; up to \d+ runs of each side needed", text.replace("\u00a0", " "))


def test_what_is_known_of_one_run_is_part_of_its_own_side() -> None:
    a, b = run("a", blocks=3), run("b", blocks=8, factor=1.2)
    known, assumed = FigureSpread(0.02, 5, 0.3, 6), FigureSpread(ASSUMED)
    of_b = {(same_cell(one.cell), one.metric, one.label, one.unit): known for one in compare_runs((a, b)).shared}
    found = compare_runs((a, b), RunsDiffer(measured={b.info.run_id: of_b}))
    assert {one.spread for one in found.ratios} == {(assumed, known)}
    for one, (_, ratio) in zip(found.shared, found.to_first, strict=True):
        sides, steps = ([np.array([one.values[place]]) for place in (1, 0)], (one.steps[1], one.steps[0]))
        (low,), (high,) = compare_rows_of_runs(*sides, (side_of([known]), side_of([assumed])), steps=steps).bounds(0.95)
        assert ratio is not None
        assert (ratio.comparison.own.low, ratio.comparison.own.high) == pytest.approx((low, high))


@pytest.mark.slow
def test_runs_of_different_length_are_compared() -> None:
    found = compare_runs((run("a", blocks=3), run("b", blocks=8, factor=2.0)))
    whole = next(each for each in found.ratios if each.cell.id == "tmpfs/dd-write")
    assert (whole.n_a, whole.n_b, whole.comparison.n) == (3, 8, 3)
    assert whole.comparison.verdict == "faster"


def test_swapping_the_runs_inverts_every_ratio() -> None:
    a, b = run("a"), run("b", factor=1.3)
    for there, back in zip(compare_runs((a, b)).ratios, compare_runs((b, a)).ratios, strict=True):
        assert there.comparison.ratio == pytest.approx(1 / back.comparison.ratio)
        assert there.comparison.joint.low == pytest.approx(1 / back.comparison.joint.high)
        opposite = {"faster": "slower", "slower": "faster"}
        assert there.comparison.verdict == opposite.get(back.comparison.verdict, back.comparison.verdict)


@pytest.mark.slow
def test_the_interval_for_all_together_agrees_with_the_verdict() -> None:
    for factor in (1.0, 1.05, 1.3):
        for each in compared(factor=factor).ratios:
            leaves_out_1 = each.comparison.joint.low > 1 or each.comparison.joint.high < 1
            assert leaves_out_1 == (each.comparison.verdict in ("faster", "slower"))


@pytest.mark.long
def test_two_runs_of_the_same_seldom_differ() -> None:
    """25 pairs of runs that are alike: a false verdict in at most 5 % of them, but for chance."""
    false = 0
    for seed in range(25):
        found = compare_runs((run("a", seed=seed), _redrawn(run("b", seed=seed), seed)))
        false += any(each.comparison.verdict in ("faster", "slower") for each in found.ratios)
    assert stats.binomtest(false, 25, 0.05, alternative="greater").pvalue > 0.01


def _redrawn(made: SyntheticRun, seed: int) -> SyntheticRun:
    """The trials of each cell drawn anew, around the means of the other run."""
    rng = np.random.default_rng(1000 + seed)
    frame = made.measurements
    other = run("a", seed=seed).measurements
    logs = np.log(other["value"]).groupby([other["cell"], other["metric"], other["warmup"]])
    mean, spread = logs.transform("mean"), logs.transform("std").fillna(0)
    made.measurements = frame.assign(value=np.exp(rng.normal(mean, spread)))
    return made


def test_a_time_that_grew_is_slower() -> None:
    a, b = run("a"), run("b", factor=2.0)
    for made in (a, b):
        made.answer_metrics = {w.label: ("read_latency_p99",) for w in made.sweep.workloads if w.tool == "fio"}
    found = compare_runs((a, b))
    assert found.ratios
    assert all(each.comparison.ratio > 1 and each.comparison.verdict == "slower" for each in found.ratios)
    assert {each.unit for each in found.ratios} == {"s"}


def test_one_block_gives_ratios_without_intervals() -> None:
    found = compare_runs((run("a", blocks=1), run("b", blocks=1)))
    assert all(math.isnan(each.comparison.own.low) and each.comparison.verdict == "undecided" for each in found.ratios)
    assert "none: n is below 2" in words.comparison_text(found)
    total = len(found.ratios)
    assert words.sentences(found)[0].startswith(f"Not known: without an interval in {total} of {total} ratios. ")


@pytest.mark.slow
def test_after_a_stopping_rule_intervals_are_wider() -> None:
    rule = Until(half_width=0.05, min=3, max=20)
    stopped = run("b")
    stopped.sweep = replace(stopped.sweep, design=replace(stopped.sweep.design, until=rule))
    plain, corrected = compare_runs((run("a"), run("b"))), compare_runs((run("a"), stopped))
    level = sequential.nominal_level(rule, 0.95)
    assert level > 0.95
    for before, after in zip(plain.ratios, corrected.ratios, strict=True):
        assert after.comparison.own.high > before.comparison.own.high
        assert after.comparison.own.level == 0.95


@pytest.mark.slow
def test_a_stopping_rule_is_told_in_words_beside_a_fixed_number() -> None:
    rule = Until(half_width=0.05, min=3, max=20)
    stopped = run("b")
    stopped.sweep = replace(stopped.sweep, design=replace(stopped.sweep.design, until=rule, repeats=20))
    text = words.comparison_text(compare_runs((run("a"), stopped))).replace("\u00a0", " ")
    assert "repeats: 5 in A, by the rule in B" in text
    assert "until: no rule in A, until every mean is within ± 5 % at 95 %, 3 to 20 blocks in B" in text


# ── what differs ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_nothing_differs_but_seed_run_time_and_diagnostic_trials() -> None:
    b = run("b", memory_available_bytes=1, boot_id="other", mount_root_free_bytes=5)
    b.sweep = replace(b.sweep, design=replace(b.sweep.design, seed=99, trial_timeout_s=5.0, explain=5, profile=True))
    b.info = replace(b.info, created_at="2027-01-01T00:00:00+00:00")
    found = compare_runs((run("a"), b))
    assert found.differences == ()
    assert [each.code for each in found.caveats] == ["sides-alike", "runs-not-paired"]
    assert "in nothing that was kept" in words.comparison_text(found)


@every_row(
    ("facts", "area", "what"),
    [
        ({"kernel": "6.19.1"}, "system", "kernel"),
        ({"cpu_model": "Xeon"}, "machine", "cpu_model"),
        ({"memory_bytes": 1}, "machine", "memory_bytes"),
        ({"virtualization": "none"}, "virtualisation", "virtualization"),
        ({"mount_root_fstype": "xfs"}, "device", "mount_root_fstype"),
        (
            {"block_devices": [{"name": "vda", "type": "disk", "size_bytes": 2**39, "model": "fast"}]},
            "device",
            "disk vda",
        ),
        ({"programs": {"fio": {"version": "fio-3.40"}, "dd": {}}}, "tools", "fio"),
    ],
)
@pytest.mark.slow
def test_a_fact_that_differs_is_listed_in_its_area(facts: dict[str, Any], area: str, what: str) -> None:
    a = run("a", block_devices=[{"name": "vda", "type": "disk", "size_bytes": 2**38, "model": "slow"}])
    b = run("b", **{"block_devices": a.info.facts.as_record()["block_devices"], **facts})
    found = compare_runs((a, b))
    assert areas(found) == {area: [what]}
    assert found.differences[0].known
    assert "sides-differ" not in {each.code for each in found.caveats}, "one respect is what was to be compared"


WEAK = {"spectre_v2": "Mitigation: Retpolines", "mds": "Not affected"}


def test_a_fact_with_several_values_is_compared_value_by_value() -> None:
    a = run("a", cpu_mitigations=WEAK, vm_settings={"swappiness": 60, "dirty_ratio": 20})
    off = {**WEAK, "spectre_v2": "Vulnerable"}
    b = run("b", cpu_mitigations=off, vm_settings={"swappiness": 60, "dirty_ratio": 40})
    found = compare_runs((a, b))
    assert [(each.what, each.part) for each in found.differences] == [
        ("cpu_mitigations", "spectre_v2"),
        ("vm_settings", "dirty_ratio"),
    ]
    text = words.comparison_text(found)
    assert "system: mitigations: spectre_v2: on (Retpolines) in A, off in B" in text
    assert "system: memory settings (vm): dirty_ratio: 20 in A, 40 in B" in text


def test_a_weakness_that_one_kernel_does_not_know_is_no_difference_and_a_parameter_that_is_not_set_is() -> None:
    a = run("a", cpu_mitigations=WEAK, kernel_command_line={"quiet": "set"})
    more = {**WEAK, "tsa": "Vulnerable"}
    b = run("b", cpu_mitigations=more, kernel_command_line={"quiet": "set", "mitigations": "off"})
    found = compare_runs((a, b))
    assert [(each.what, each.part, each.known) for each in found.differences] == [
        ("cpu_mitigations", "tsa", False),
        ("kernel_command_line", "mitigations", True),
    ]
    text = words.comparison_text(found)
    assert "system: kernel command line: mitigations: not set in A, off in B" in text
    assert "not known of both: mitigations: tsa" in text


def test_facts_that_a_run_of_an_earlier_version_did_not_record_are_no_difference() -> None:
    b = run("b", cpu_mitigations=WEAK, session_limits={"memory_bytes": 2**30}, kernel_build="#1 SMP")
    found = compare_runs((run("a"), b))
    assert [each for each in found.differences if each.known] == []
    assert {each.what for each in found.differences} == {"cpu_mitigations", "session_limits", "kernel_build"}


def test_the_likeliest_causes_come_first_and_hashes_last() -> None:
    def facts(number: int) -> dict[str, Any]:
        config = {"HZ": f"{number}", "sha256": f"{number}" * 16}
        return {
            "kernel_config": config, "kernel_build": f"#{number}", "cpu_microcode": f"0x{number}",
            "kernel": f"6.{number}", "cpu_governor": f"governor {number}", "cpu_mitigations": {"mds": f"{number}"},
            "huge_pages": {"enabled": f"{number}"}, "session_limits": {"tasks": number},
            "machine_model": {"product": f"R65{number}"},
        }  # fmt: skip

    found = compare_runs((run("a", **facts(1)), run("b", **facts(2))))
    order = [f"{each.what} {each.part}".strip() for each in found.differences]
    assert order == [
        "kernel", "cpu_mitigations mds", "huge_pages enabled", "kernel_config HZ", "cpu_governor",
        "machine_model product", "cpu_microcode", "session_limits tasks", "kernel_config sha256", "kernel_build",
    ]  # fmt: skip
    answer = repr(sections.answer(found))
    own = "system (kernel 6.1 → 6.2, mitigations, transparent huge pages, kernel configuration, kernel build #1 → #2)"
    assert own in answer


def test_what_is_asked_of_file_systems_and_tools_is_compared() -> None:
    b = run("b")
    filesystems = [replace(fs, options=("relatime",)) if fs.name == "ext4" else fs for fs in b.sweep.filesystems]
    first, *others = b.sweep.workloads
    workloads = [replace(first, options={**first.options, "count": 8}, precondition=1), *others]
    design = replace(b.sweep.design, drop_caches=False)
    b.sweep = replace(b.sweep, filesystems=tuple(filesystems), workloads=tuple(workloads), design=design)
    b.options = [OptionEvidence(filesystem="tmpfs", option="noswap", kind="mount", state="ignored", kernel_says="rw")]
    a = run("a")
    a.options = []
    found = compare_runs((a, b))
    assert areas(found) == {
        "options of tmpfs in effect": ["noswap"],
        "file system ext4": ["options"],
        "workload dd-write": ["count", "precondition"],
        "design": ["drop_caches"],
    }


def test_measured_runs_that_were_asked_for_other_work_have_a_caveat_that_names_it() -> None:
    b = run("b")
    first, *others = b.sweep.workloads
    other = replace(first, options={**first.options, "count": 8, "flags": "sync"})
    b.sweep = replace(b.sweep, workloads=(other, *others))
    found = compare_runs((run("a"), b))
    unequal = [each for each in found.caveats if each.code == "unequal-work"]
    assert {each.subject for each in unequal} == {f"{name}/{first.label}" for name in ("ext4", "tmpfs", "ramfs")}
    assert unequal[0].message.startswith(f"the runs differ in count ({first.options['count']} in A, 8 in B). ")
    assert f"workload {first.label}: flags: not given in A, sync in B" in words.comparison_text(found)
    assert "unequal work" in sections.cell_by_cell(found)


@pytest.mark.slow
def test_more_than_one_respect_is_a_caveat() -> None:
    found = compared(kernel="6.19.1", cpu_model="Xeon")
    caveat = next(each for each in found.caveats if each.code == "sides-differ")
    assert caveat.severity == "warning"
    assert "A and B differ in 2 respects: system; machine." in caveat.message
    assert "Change one at a time" in caveat.message


def test_what_one_run_does_not_know_is_no_difference() -> None:
    found = compared(power="mains", cpu_model=None)
    assert [each for each in found.differences if each.known] == []
    assert {each.what for each in found.differences} == {"cpu_model", "power"}
    assert "not known of both: processor, power" in words.comparison_text(found)
    assert "sides-alike" in {each.code for each in found.caveats}


# ── caveats ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_that_the_runs_share_no_blocks_is_always_said() -> None:
    caveat = next(each for each in compared().caveats if each.code == "runs-not-paired")
    assert caveat.severity == "warning"
    assert "Run A and B again, in turns" in caveat.message


def test_warnings_of_a_run_about_what_is_compared_are_carried_over() -> None:
    b = run("b")
    noisy = {"code": "noisy", "severity": "warning", "scope": "cell", "message": "varies"}
    b.caveats = [
        Caveat(**noisy, subject="tmpfs/dd-write", metrics="write_bandwidth"),
        Caveat(**noisy, subject="xfs/dd-write"),
        Caveat(**{**noisy, "severity": "note"}, subject="ext4/dd-write"),
        Caveat(**{**noisy, "code": "emulated", "scope": "run"}),
        Caveat(**{**noisy, "code": "options-ignored", "scope": "filesystem"}, subject="ext4"),
        Caveat(**{**noisy, "code": "options-ignored", "scope": "filesystem"}, subject="xfs"),
    ]  # type: ignore[arg-type]
    found = compare_runs((run("a"), b))
    carried = [each for each in found.caveats if each.message.startswith("in B: ")]
    assert [(each.code, each.subject) for each in carried] == [
        ("noisy", "tmpfs/dd-write"), ("emulated", ""), ("options-ignored", "ext4"),
    ]  # fmt: skip
    page = sections.cell_by_cell(found)
    assert page.count(">noisy<") == 1


@pytest.mark.slow
@pytest.mark.parametrize("status", ["interrupted", "running"])
def test_a_run_that_is_not_complete_is_told(status: str) -> None:
    b = run("b")
    b.info = replace(b.info, status=status)
    caveat = next(each for each in compare_runs((run("a"), b)).caveats if each.code == "unfinished")
    assert caveat.message.startswith(f"B is {status}: ")


@pytest.mark.slow
def test_an_imported_run_is_told() -> None:
    a = run("a")
    a.sweep = replace(a.sweep, imported=True)
    a.info = replace(a.info, facts=BoxFacts())
    found = compare_runs((a, run("b")))
    caveat = next(each for each in found.caveats if each.code == "imported")
    assert caveat.message.startswith("A was imported: ")
    assert {each.what for each in found.differences if each.known} == set()


# ── what cannot be compared ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_is_not_compared_with_itself() -> None:
    error = refusal(run("a"), run("a"))
    assert (error.what, error.got) == ("a run is not compared with itself", "a")


def test_runs_without_a_common_cell_are_refused() -> None:
    b = run("b")
    b.sweep = replace(b.sweep, filesystems=(Filesystem(name="xfs", type="xfs", image_bytes=2**30),), baseline=None)
    error = refusal(run("a"), b)
    assert error.what == "the two runs have no cell in common"
    assert error.got.startswith("B has xfs/dd-read cache=cold, ")
    assert error.allowed.startswith("cells of A: tmpfs/dd-write, ")
    assert "same sweep twice" in error.next_step


def test_runs_whose_answers_are_about_other_metrics_are_refused() -> None:
    b = run("b")
    b.answer_metrics = {w.label: ("elapsed",) for w in b.sweep.workloads}
    error = refusal(run("a"), b)
    assert (error.what, error.got) == (
        "the two runs have no figure in common",
        "their answers are about different metrics",
    )


def test_runs_with_other_units_are_refused() -> None:
    b = run("b")
    b.measurements = b.measurements.assign(unit="MB/s")
    assert refusal(run("a"), b).got == "write_bandwidth of tmpfs/dd-write in B/s and in MB/s"


def test_runs_in_which_nothing_succeeded_are_refused() -> None:
    b = run("b")
    b.measurements = b.measurements[b.measurements["warmup"]]
    assert refusal(run("a"), b).got == "the cells that both have gave no figure in one of them"


@pytest.mark.slow
def test_cells_of_one_run_only_are_listed_and_not_compared() -> None:
    b = run("b")
    more = Workload(name="new", tool="dd", options={})
    b.sweep = replace(b.sweep, workloads=(*b.sweep.workloads[1:], more))
    found = compare_runs((run("a"), b))
    assert found.only_in == {
        "A": ("tmpfs/dd-write", "ramfs/dd-write", "ext4/dd-write"),
        "B": ("tmpfs/new", "ramfs/new", "ext4/new"),
    }
    assert "dd-write" not in {each.cell.workload.name for each in found.ratios}
    text = words.comparison_text(found)
    assert "only in A    tmpfs/dd-write" in text
    assert "only in B    tmpfs/new" in text


@pytest.mark.slow
def test_excluded_cells_are_not_compared() -> None:
    b = run("b")
    b.sweep = replace(b.sweep, excluded=("tmpfs/dd-write",))
    found = compare_runs((run("a"), b))
    assert "tmpfs/dd-write" not in {each.cell.id for each in found.ratios}
    assert found.only_in == {"A": ("tmpfs/dd-write",)}


# ── as text, data and a page ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_the_text_lists_differences_first_then_ratios_then_caveats() -> None:
    found = compared(factor=1.5, kernel="6.19.1")
    lines = words.comparison_text(found).splitlines()
    assert re.fullmatch(r"A +\S+ · .* · box local · Linux 6\.18\.5 · a", lines[0])
    assert re.fullmatch(r"B +\S+ · .* · box local · Linux 6\.19\.1 · b", lines[1])
    differs = next(i for i, line in enumerate(lines) if line.startswith("differs"))
    assert lines[differs] == "differs      system: kernel: 6.18.5 in A, 6.19.1 in B"
    head = next(i for i, line in enumerate(lines) if line.startswith("cell "))
    caveat = next(i for i, line in enumerate(lines) if line.startswith("warning: "))
    assert differs < head < caveat
    row = next(line for line in lines if line.startswith("tmpfs/dd-write "))
    assert "5, 5" in row
    assert row.endswith("faster")


def test_the_answer_of_two_runs_says_whether_they_differ_whether_a_cause_shows_and_what_to_do_next() -> None:
    total = len(compared().ratios)
    faster = f"Yes: B is faster in {total} of {total} ratios"
    alike, one, several = (
        compared(factor=1.5, **facts) for facts in ({}, {"kernel": "6.19.1"}, {"kernel": "6.19.1", "hostname": "other"})
    )
    assert words.sentences(alike) == [f"{faster}, and no recorded setting differs."]
    assert words.next_step(alike) == "Run each twice more, in turns, and judge all six with mountlab gate."
    assert words.sentences(one) == [f"{faster}, and one setting differs: kernel."]
    count = len([row for row in several.differences if row.known])
    assert words.sentences(several) == [f"{faster}, and {count} settings differ, so no cause could be named."]
    assert words.next_step(several) == "Repeat A unchanged, then change one setting at a time."
    unfinished = run("b")
    unfinished.info = replace(unfinished.info, status="interrupted")
    assert words.next_step(compare_runs((run("a"), unfinished))) == "Finish B (mountlab resume)."


def with_intervals(found: RunComparison, *ends: tuple[float, float]) -> RunComparison:
    """The first ratios, undecided with these intervals."""
    ratios = []
    for (low, high), ratio in zip(ends, found.ratios, strict=False):
        joint = replace(ratio.comparison.joint, low=low, high=high)
        ratios.append(replace(ratio, comparison=replace(ratio.comparison, verdict="undecided", joint=joint)))
    return replace(found, to_first=tuple((None, ratio) for ratio in ratios))


@every_row(
    ("ends", "says"),
    [
        ([(0.05, 1.87), (0.5, 3.0)], "up to a factor of 20 is not excluded"),
        ([(0.5, 3.0), (0.8, 25.0)], "up to a factor of 25 is not excluded"),
        ([(0.8, 1.1), (0.9, 1.2)], "up to 25 % is not excluded"),
        ([(0.5, 3.0), (0.0, 2.0)], "no factor is excluded"),
        ([(0.5, 3.0), (0.5, math.inf)], "no factor is excluded"),
    ],
)
def test_where_no_difference_is_shown_the_answer_says_how_large_a_one_is_not_excluded(
    ends: list[tuple[float, float]], says: str
) -> None:
    none, several = compared(), compared(kernel="6.19.1", hostname="other")
    count = len([row for row in several.differences if row.known])
    for found, causes in (
        (none, "No recorded setting differs."),
        (several, f"{count} settings differ, so no cause could be named if there were one."),
    ):
        (answer,) = words.sentences(with_intervals(found, *ends))
        assert answer.replace("\xa0", " ") == f"No difference is shown in any of 2 ratios; {says}. {causes}"


def test_what_differs_has_its_values_where_they_are_short() -> None:
    rows = (
        Difference("machine", "memory_bytes", (2**30, 2**31)),
        Difference("system", "kernel", ("6.18.5-a-very-long-name", "6.19")),
        Difference("system", "scheduler", ("x", None), known=False),
    )
    shown = words.what_differs(replace(compared(), differences=rows))
    assert shown == "machine (memory 1.00 GiB → 2.00 GiB); system (kernel)"


def test_a_doubt_that_all_ratios_share_stands_once_above_them() -> None:
    first = words.strongest(compared())[0].cell
    busy = [
        Caveat(scope="cell", subject=cell.id, code=code, severity="warning", message="it was")
        for cell in run("b").sweep.cells
        for code in ("box-busy", *(["noisy"] if cell.id == first.id else []))
    ]
    found = compare_runs((run("a"), replace(run("b"), caveats=busy)))
    page = sections.answer(found)
    assert page.count("box busy") == 1
    assert f"All {len(found.ratios)} ratios are doubtful: box busy." in page
    assert "<small>also doubtful: noisy</small>" in page
    assert "ratios, n = 4 to 5; 95" in page


def test_a_figure_that_is_not_to_be_used_has_no_verdict_and_takes_the_trust() -> None:
    """That runs share no blocks, and differ in several settings, takes none."""
    plain = compared(factor=1.5, kernel="6.19.1", hostname="other")
    assert {"runs-not-paired", "sides-differ"} <= {caveat.code for caveat in plain.caveats}
    assert plain.trust.grade == "high"
    cell = plain.ratios[0].cell.id
    bad = run("b", factor=1.5)
    bad.caveats = [Caveat(scope="cell", subject=cell, code="not-flushed", severity="error", message="it was not")]
    found = compare_runs((run("a"), bad))
    assert {ratio.cell.id for ratio in found.ratios if ratio.comparison.verdict == "not usable"} == {cell}
    assert found.trust.grade == "low"
    assert " and not usable in " in words.sentences(found)[0]
    (label, reasons), *_ = words.trust_lines(found)
    assert label == "Trust: low"
    assert "Not flushed (do not use)" in reasons
    page = sections.answer(found)
    assert all(text in page for text in (label, "<b>Next</b>"))
    assert page.count('<td class="number">') == 3 * len(words.strongest(found)), "both means and the ratio of each"


@every_row(
    ("names", "moments", "titles"),
    [
        ("xy", ("2026-11-23T10:05:21", "2026-11-26T09:00:00"), ["x (23 Nov)", "y (26 Nov)"]),
        ("xx", ("2026-01-02T10:05:21", "2025-11-26T09:00:00"), ["x (2 Jan 2026)", "x (26 Nov 2025)"]),
        ("xx", ("2026-11-23T10:05:21", "2026-11-23T09:00:00"), ["x (23 Nov, 10:05)", "x (23 Nov, 09:00)"]),
        ("xx", ("2026-11-23T10:05:21", "2026-11-23T10:05:22"), ["x (23 Nov, 10:05:21)", "x (23 Nov, 10:05:22)"]),
        ("xy", ("", ""), ["x", "y"]),
        ("xx", ("2026-11-23T10:05:21", "2026-11-23T10:05:21"), ["a", "b"]),
    ],
)
def test_a_run_is_called_by_its_sweep_and_when_it_was(names: str, moments: tuple[str, str], titles: list[str]) -> None:
    runs = []
    for run_id, name, moment in zip("ab", names, moments, strict=True):
        one = run(run_id)
        info = replace(one.info, created_at=moment and f"{moment}+00:00")
        runs.append(replace(one, info=info, sweep=replace(one.sweep, name=name)))
    assert words.run_titles(runs) == titles
    assert words.title(compare_runs(runs)) == f"Do {titles[0]} and {titles[1]} differ?"


def test_as_data_a_difference_has_a_value_for_each_run() -> None:
    assert words.comparison_json(compared(kernel="6.19.1"))["differences"] == [
        {"area": "system", "what": "kernel", "part": "", "a": "6.18.5", "b": "6.19.1", "known": True}
    ]


def test_a_difference_is_shown_with_its_unit() -> None:
    found = replace(compared(), differences=(Difference("machine", "memory_bytes", (2**30, 2**31)),))
    assert "machine: memory: 1.00 GiB in A, 2.00 GiB in B" in words.comparison_text(found)
