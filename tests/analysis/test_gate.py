"""The gate for CI systems: what fails, passes or cannot be told, what it would take, and what the verb ends with."""

from __future__ import annotations

import json
import math
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest
from facts import known
from junitparser import Error, Failure, JUnitXml, Skipped
from mountlab import __main__
from mountlab.analysis.compare.run_spread import FigureSpread, RunsDiffer, below
from mountlab.analysis.gate import EXIT_CODES, Gate, Judged, judge
from mountlab.analysis.same_cells import same_cell
from mountlab.cli.gate_text import (
    advice,
    gate_json,
    gate_junit,
    gate_markdown,
    gate_text,
    headline,
    promises,
    tally,
    why,
)
from mountlab.core import errors
from mountlab.core.errors import ParameterError, PlanError
from mountlab.core.findings import Caveat
from mountlab.core.model import Cell, Filesystem, Workload
from mountlab.core.places import SHIPPED
from mountlab.stats.looks import Looks
from rows import every_row
from synthetic_run import SyntheticRun, synthetic_run

TOUR = SHIPPED / "tests" / "data" / "earlier_run"
LOOKS: tuple[Looks, ...] = ("any", "once")
ALIKE = RunsDiffer(0.0)
"""For what is not about how much runs differ by themselves."""


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> Callable[[float], Path]:
    """Makes the recorded run with every dd that many times as slow."""

    def make(times: float) -> Path:
        path = tmp_path_factory.mktemp("runs") / "slower"
        shutil.copytree(TOUR, path)
        info = json.loads((path / "run.json").read_text())
        (path / "run.json").write_text(json.dumps({**info, "run_id": f"slower-{times:g}"}))
        for file in path.glob("raw/t*/stderr"):
            taken = re.sub(r"copied, ([0-9.]+) s", lambda m: f"copied, {float(m[1]) * times:.6f} s", file.read_text())
            file.write_text(taken)
        return path

    return make


@pytest.fixture(scope="module")
def much_slower(slower: Callable[[float], Path]) -> Path:
    return slower(20.0)


def run(name: str, *, factor: float = 1.0, noise: float = 0.01, blocks: int = 6, hostile: str = "") -> SyntheticRun:
    """A synthetic run with a noise of its own, `factor` times as fast."""
    made = synthetic_run(blocks=blocks, caveats=False, hostile=hostile)
    rng = np.random.default_rng(sum(name.encode()))
    means = made.measurements.groupby(["cell", "metric"])["value"].transform("mean")
    made.measurements = made.measurements.assign(value=means * factor * np.exp(rng.normal(0, noise, len(means))))
    made.info = replace(made.info, run_id=name)
    return made


def without(made: SyntheticRun, cell: str) -> SyntheticRun:
    made.measurements = made.measurements[made.measurements["cell"] != cell]
    return made


# ── outcomes ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@every_row(
    ("factor", "noise", "outcome"),
    [(1.0, 0.005, "passes"), (0.8, 0.005, "fails"), (1.0, 0.2, "cannot tell"), (0.95, 0.02, "cannot tell")],
)
@pytest.mark.slow
def test_there_are_three_outcomes(factor: float, noise: float, outcome: str) -> None:
    gate = judge(
        [run("after", factor=factor, noise=noise)], [run("before", noise=noise)], margin=0.05, runs_differ=ALIKE
    )
    assert gate.outcome == outcome
    assert headline(gate).lower().startswith(f"{outcome}: ")
    assert gate.unit == "block"


@pytest.mark.slow
def test_the_whole_is_as_good_as_its_worst_figure() -> None:
    after = run("after", noise=0.005)
    slow = after.measurements["cell"].eq("ext4/dd-write")
    after.measurements = after.measurements.assign(value=after.measurements["value"].where(~slow, 1e6))
    gate = judge([after], [run("before", noise=0.005)], margin=0.05, runs_differ=ALIKE)
    assert gate.outcome == "fails"
    assert [each.cell.id for each in gate.judged if each.outcome == "fails"] == ["ext4/dd-write"]
    assert gate.judged[0].outcome == "fails", "the worst first"
    assert {each.outcome for each in gate.judged} == {"fails", "passes"}


@pytest.mark.slow
def test_a_cell_that_gave_no_figure_after_the_change_fails() -> None:
    """Trap: a gate that passes because what broke is no longer compared."""
    gate = judge([without(run("after", noise=0.005), "ext4/dd-write")], [run("before", noise=0.005)], margin=0.05)
    assert gate.outcome == "fails"
    assert why(gate.judged[0]) == "fails: the change has no figure of it"
    assert math.isnan(gate.judged[0].worse)
    assert gate_json(gate)["figures"][0]["ratio"] is None


def percentiles(name: str, ios: int | None) -> SyntheticRun:
    """A run with p99.9, of which a trial needs 10,000 I/Os; with `ios` a trial did only so many, and there is none."""
    made = run(name, noise=0.005)
    own = made.measurements[made.measurements["metric"] == "read_bandwidth"]
    percentile = own.assign(metric="read_latency_p99_9", unit="ns")
    made.measurements = percentile if ios is None else own.assign(metric="read_ios", unit="", value=float(ios))
    return made


@pytest.mark.slow
@pytest.mark.parametrize(("ios", "outcome"), [(812, "cannot tell"), (20_000, "fails")])
def test_a_percentile_that_too_few_ios_left_out_is_no_failure(ios: int, outcome: str) -> None:
    """It is missing in the change by a rule, not by a fault; with enough I/Os its absence has no known reason."""
    after, before = percentiles("after", ios), percentiles("before", None)
    gate = judge([after], [before], margin=0.05, metrics=["read_latency_p99_9"])
    assert {each.outcome for each in gate.judged} == {outcome}
    reasons = {each.reason.replace("\xa0", " ") for each in gate.judged}
    assert all("the change has no figure of it" in each for each in reasons)
    assert all(("few-operations" in each and "812" in each and "10,000" in each) == (ios == 812) for each in reasons)


@pytest.mark.parametrize("ended", [0, 3])
def test_trials_that_ran_into_their_limit_leave_nothing_to_judge(ended: int) -> None:
    """Neither the absence of a figure nor the ratio of the trials that ended shows that the change is worse."""
    after = run("after", factor=0.5, noise=0.005)
    own = after.measurements["cell"] == "ext4/dd-write"
    after.measurements = after.measurements[~own | (own.cumsum() <= ended)]
    late = Caveat(code="timed-out", severity="warning", scope="cell", subject="ext4/dd-write", message="3 of 6")
    after.caveats = [late]
    gate = judge([after], [run("before", noise=0.005)], margin=0.05, runs_differ=ALIKE)
    (each,) = (each for each in gate.judged if each.cell.id == "ext4/dd-write")
    assert each.outcome == "cannot tell"
    assert "timed-out" in why(each)
    assert all(math.isnan(value) for value in each.ratio)
    assert {other.outcome for other in gate.judged if other is not each} == {"fails"}


@pytest.mark.slow
def test_what_the_baseline_has_not_is_not_asked() -> None:
    gate = judge(
        [run("after", noise=0.005)],
        [without(run("before", noise=0.005), "ext4/dd-write")],
        margin=0.05,
        runs_differ=ALIKE,
    )
    assert gate.outcome == "passes"
    assert "ext4/dd-write" not in {each.cell.id for each in gate.judged}


def test_figures_with_an_error_are_not_told_whatever_they_show() -> None:
    after = run("after", factor=0.5, noise=0.005)
    after.caveats = [
        Caveat(code="failed-trials", severity="error", scope="cell", subject="ext4/dd-write", message="3 failed"),
        Caveat(code="noisy", severity="warning", scope="cell", subject="tmpfs/dd-write", message="noisy"),
        Caveat(code="reads", severity="error", scope="cell", subject="ramfs/dd-write", message="x", metrics="read_"),
    ]
    gate = judge([after], [run("before", noise=0.005)], margin=0.05, runs_differ=ALIKE)
    told = {each.cell.id: why(each) for each in gate.judged}
    assert told["ext4/dd-write"] == "cannot tell: its figures cannot be trusted (failed-trials in the change)"
    assert [each.cell.id for each in gate.judged if math.isnan(each.ratio[0])] == ["ext4/dd-write"], (
        "no ratio of those left"
    )
    assert told["tmpfs/dd-write"].startswith("fails: at least ")
    assert told["ramfs/dd-write"].startswith("fails: at least "), "the error is about reads"


def test_one_trial_needs_a_second() -> None:
    gate = judge([run("after", blocks=1)], [run("before", blocks=1)], margin=0.05)
    assert {why(each) for each in gate.judged} == {"cannot tell: needs 1 more block in each run (2 in all)"}


@pytest.mark.slow
def test_how_many_more_blocks_are_needed_is_said_and_is_more_than_there_are() -> None:
    gate = judge([run("after", noise=0.06)], [run("before", noise=0.06)], margin=0.05, runs_differ=ALIKE)
    open_ = [each for each in gate.judged if each.outcome == "cannot tell"]
    assert open_
    for each in open_:
        assert each.more >= 1
        assert each.needed == each.more + each.n
        assert why(each).startswith(f"cannot tell: needs {each.more:.0f} more block")


@pytest.mark.slow
def test_where_no_number_of_blocks_would_tell_that_is_said() -> None:
    gate = judge([run("after", noise=2.0)], [run("before", noise=2.0)], margin=0.01, runs_differ=ALIKE)
    assert {each.outcome for each in gate.judged} == {"cannot tell"}
    told = [why(each) for each in gate.judged]
    noisy = "cannot tell: needs more than 200 blocks in each run"
    assert all(each.startswith(noisy) for each in told)
    assert any(re.search(r"; or \d+ more, if the change is as large as it seems$", each) for each in told)
    assert gate_json(gate)["figures"][0]["needed"] is None


def test_a_metric_that_the_answer_is_not_about_can_be_asked_for() -> None:
    before, after = run("before"), run("after")
    for each in (before, after):
        own = each.measurements[each.measurements["metric"] == "write_bandwidth"]
        each.measurements = own.assign(metric="elapsed", unit="s", value=1e9 / own["value"])
    with pytest.raises(PlanError, match="the baseline has no figure") as error:
        judge([after], [before], margin=0.05)
    assert error.value.allowed == "elapsed"
    gate = judge([after], [before], margin=0.05, metrics=["elapsed"])
    assert {each.metric for each in gate.judged} == {"elapsed"}
    assert gate.judged[0].ratio[0] == gate.judged[0].worse, "less is better: the ratio is how bad it is"


@pytest.mark.slow
@pytest.mark.parametrize(("side", "wrong"), [("change", "b"), ("baseline", "a")])
def test_a_run_is_not_held_against_itself(side: str, wrong: str) -> None:
    runs = {"change": [run("a")], "baseline": [run("b")]}
    runs[side] = [run(wrong)]
    with pytest.raises(PlanError, match="not held against itself"):
        judge(runs["change"], runs["baseline"], margin=0.05)


@pytest.mark.slow
def test_every_form_states_the_same_error() -> None:
    sides = {name: run(name, noise=0.005) for name in ("after", "before", "earlier")}
    for baseline, looks, said in (
        (["before"], "any", "over all looks at this change with more blocks in both runs"),
        (["before", "earlier"], "any", "over all looks at this change with more runs on either side"),
        (["before"], "once", "in this one look"),
    ):
        gate = judge([sides["after"]], [sides[each] for each in baseline], margin=0.05, looks=cast(Looks, looks))
        forms = gate_text(gate), gate_markdown(gate), gate_junit(gate).decode(), gate_json(gate)["error"]
        assert [said in form for form in forms] == [True] * 4


@pytest.mark.slow
def test_with_several_runs_on_a_side_what_differs_from_run_to_run_counts() -> None:
    """Runs that differ by 10 % by themselves: one beside one is called worse where they are stated to be alike, one
    beside five is not."""
    baseline = [run(f"before{i}", factor=factor, noise=0.003) for i, factor in enumerate((1, 1.1, 0.9, 1.05, 0.95))]
    after = run("after", factor=0.92, noise=0.003)
    assert judge([after], baseline[:1], margin=0.02, runs_differ=ALIKE).outcome == "fails"
    gate = judge([after], baseline, margin=0.02)
    assert gate.unit == "run"
    assert gate.outcome == "cannot tell"
    assert why(gate.judged[0]).startswith("cannot tell: needs more than 200 runs of each side")
    assert promises(gate)[1].endswith(" With half of the noise, a quarter of them is enough.")
    assert judge([run("far", factor=0.1, noise=0.003)], baseline, margin=0.02).outcome == "fails"


def of_two(factor: float, differ: RunsDiffer | None = None) -> Gate:
    return judge(
        [run("after", factor=factor, noise=0.002)], [run("before", noise=0.002)], margin=0.05, runs_differ=differ
    )


@pytest.mark.slow
@pytest.mark.parametrize(("factor", "outcome"), [(0.85, "fails"), (1.1, "passes")])
def test_one_run_beside_one_decides_up_to_the_break_even_that_it_prints(factor: float, outcome: str) -> None:
    alike = of_two(factor, ALIKE)
    for each in (alike.judged[0], alike.judged[-1]):
        assert (each.outcome, each.would) == (outcome, outcome)
        told = why(each)
        assert re.search(rf", unless runs differ by more than {below(each.unless)}$", told)
        for times, expected in ((0.999, outcome), (1.001, "cannot tell")):
            gate = of_two(factor, RunsDiffer(each.unless * times))
            (same,) = (one for one in gate.judged if (one.cell, one.metric) == (each.cell, each.metric))
            assert same.outcome == expected
            assert (same.would, same.unless) == (outcome, pytest.approx(each.unless)), "whatever is stated"
    assert f"; {outcome} unless runs differ by more than " in why(same)


@pytest.mark.slow
def test_where_one_run_beside_one_cannot_tell_it_needs_runs_in_turns() -> None:
    """Where runs differ by more than blocks make up for; in every form."""
    gate = of_two(1.0)
    assert {(each.outcome, each.unit) for each in gate.judged} == {("cannot tell", "run")}
    told = why(gate.judged[0])
    assert re.match(r"cannot tell: needs \d+ runs of each side(;|$)", told)
    assert "block" not in told
    assert promises(gate)[1].endswith(" Runs are made in turns, and differ from run to run as the next line says.")
    quiet = of_two(0.955, RunsDiffer(0.004))
    assert {why(each).partition(";")[0] for each in quiet.judged} == {"cannot tell: needs 3 runs of each side"}
    following = "They show by how much runs differ; from that follows how many are needed."
    source = "Runs are assumed to differ by 5 % or less"
    for form in (gate_text(gate), gate_markdown(gate), json.dumps(gate_json(gate), ensure_ascii=False)):
        assert following in form
        assert source in form.replace("\xa0", " ")
    assert gate_json(gate)["figures"][0]["needed_unit"] == "run"


@pytest.mark.slow
def test_a_spread_that_earlier_runs_measured_takes_the_place_of_the_assumption() -> None:
    figures = {
        (same_cell(each.cell), each.metric, each.label, "B/s"): FigureSpread(0.002, 9, 0.2, 10)
        for each in of_two(1.0).judged
    }
    gate = of_two(1.0, RunsDiffer(measured={"after": figures, "before": figures}))
    assert gate.outcome == "passes"
    source = "Runs differ by 0.2 % (standard deviation from run to run), measured from 10 earlier runs"
    assert source in gate.runs_differ.replace("\xa0", " ")


def test_each_outcome_has_an_exit_code_that_no_error_has() -> None:
    of_errors = {
        each.exit_code for each in vars(errors).values() if isinstance(each, type) and hasattr(each, "exit_code")
    }
    assert len(set(EXIT_CODES.values())) == 3
    assert EXIT_CODES["passes"] == 0
    assert EXIT_CODES["cannot tell"] not in of_errors | {0, 1, __main__.INTERRUPTED, __main__.PIPE_CLOSED}
    assert set(EXIT_CODES.values()) <= set(errors.EXIT_CODES)


# ── as text, Markdown, JUnit XML ─────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(scope="module")
def mixed() -> Gate:
    """One that fails, one without a figure, one that cannot be told, the others pass."""
    after, before = without(run("after", noise=0.004), "tmpfs/dd-write"), run("before", noise=0.004)
    factors = {"ext4/dd-write": 0.5, "ramfs/dd-write": 0.952}
    times = after.measurements["cell"].map(factors).fillna(1.0)
    after.measurements = after.measurements.assign(value=after.measurements["value"] * times)
    return judge([after], [before], margin=0.05, runs_differ=ALIKE)


def test_junit_tells_the_three_outcomes_apart(mixed: Gate) -> None:
    read = JUnitXml.fromstring(gate_junit(mixed))
    (suite,) = list(read)
    kinds = {case.classname: [type(each) for each in case.result] for case in suite}
    assert kinds["ext4/dd-write"] == [Failure]
    assert kinds["tmpfs/dd-write"] == [Error]
    assert kinds["ramfs/dd-write"] == [Skipped]
    assert kinds["tmpfs/dd-read cache=cold"] == []
    assert (read.tests, read.failures, read.errors, read.skipped) == (len(mixed.judged), 1, 1, 1)
    (skipped,) = (case for case in suite if case.classname == "ramfs/dd-write")
    assert re.match(r"cannot tell: needs \d+ more block", skipped.result[0].message)
    assert {each.name: each.value for each in suite.properties()}["outcome"] == "fails"


def test_markdown_has_a_row_for_each_figure_and_says_what_may_go_wrong(mixed: Gate) -> None:
    text = gate_markdown(mixed)
    rows = [line for line in text.splitlines() if line.startswith("| ") and "Outcome" not in line]
    assert len(rows) == len(mixed.judged)
    assert rows[0].startswith("| ✗ fails | ")
    assert {row.count(" | ") for row in rows} == {7}
    assert text.splitlines()[0].startswith("## ✗ Fails: the write bandwidth of ")
    assert "by mistake is at most 5" in text
    assert "| Interval, each end 95" in text


@every_row(
    ("factor", "noise", "says", "following"),
    [
        (1.0, 0.005, r"Passes: no figure is more than [1-5](\.\d)? % worse", None),
        (0.8, 0.005, r"Fails: the .* of .* under .* is at least 2\d % worse", r"mountlab compare before after shows"),
        (
            0.1,
            0.005,
            r"Fails: the .* of .* under .* is at most 0\.1\d? of the baseline",
            r"mountlab compare before after ",
        ),
        (
            0.95,
            0.02,
            r"Cannot tell: the .* of .* under .* may be up to \d+ % worse",
            r"measure \d+ more blocks of each run",
        ),
    ],
)
@pytest.mark.slow
def test_the_headline_says_by_how_much_and_the_advice_what_to_do_next(
    factor: float, noise: float, says: str, following: str | None
) -> None:
    gate = judge(
        [run("after", factor=factor, noise=noise)], [run("before", noise=noise)], margin=0.05, runs_differ=ALIKE
    )
    assert re.fullmatch(f"{says}, where 5 % worse is allowed\\.", headline(gate).replace("\xa0", " "))
    assert bool(advice(gate)) == bool(following)
    assert all(re.match(f"Next: {following}", line) for line in advice(gate))
    assert gate_text(gate).rstrip().endswith("\n".join([headline(gate), tally(gate), *advice(gate)]))


@every_row(
    ("metric", "at_most", "says"),
    [
        ("write_bandwidth", 1.12, "the write bandwidth of d under w may be up to 12 % worse"),
        ("write_bandwidth", 2.5, "the write bandwidth of d under w may be as low as 0.40 of the baseline"),
        ("elapsed", 2.5, "the elapsed time of d under w may be up to 2.5 times the baseline"),
        ("elapsed", math.inf, "the elapsed time of d under w may be up to infinitely worse"),
    ],
)
@pytest.mark.slow
def test_what_cannot_be_told_names_the_figure_that_may_be_worst_in_the_terms_of_its_metric(
    metric: str, at_most: float, says: str
) -> None:
    cell = Cell(filesystem=Filesystem(name="d", type="dir"), workload=Workload(name="w", tool="dd", options={}))
    other, worst = (Judged(cell, metric, "", "cannot tell", 1.0, 0.9, end, 5, 12.0) for end in (1.1, at_most))
    gate = replace(judge([run("after")], [run("before")], margin=0.05), judged=(other, worst))
    assert headline(gate).replace("\xa0", " ") == f"Cannot tell: {says}, where 5 % worse is allowed."


@pytest.mark.slow
def test_hostile_names_make_no_table_tag_or_link() -> None:
    hostile = "<b>|[x](http://a)`\x1b[31m\u202e"
    after, before = (run(name + hostile, hostile=hostile) for name in ("after", "before"))
    gate = judge([after], [before], margin=0.05)
    for shown in (gate_markdown(gate), gate_text(gate), gate_junit(gate).decode()):
        assert "\x1b" not in shown
        assert "\u202e" not in shown
    assert "<b>" not in re.sub(r"\\<", "", gate_markdown(gate))
    assert not re.search(r"(?<!\\)\]\(", gate_markdown(gate))
    assert len(JUnitXml.fromstring(gate_junit(gate))) == 1


def test_the_text_says_in_what_the_two_sides_differ() -> None:
    after = run("after")
    after.info = replace(after.info, facts=known(after.info.facts, kernel="6.19", cpus=64))
    gate = judge([after], [run("before")], margin=0.05)
    assert "The two sides differ in system and machine." in gate_text(gate)
    assert gate_json(gate)["differs"] == ["system", "machine"]


def test_options_that_differ_between_the_sides_are_said_with_their_values_in_every_form() -> None:
    after = run("after")
    first, *others = after.sweep.workloads
    other = replace(first, options={**first.options, "count": 8})
    after.sweep = replace(after.sweep, workloads=(other, *others))
    gate = judge([after], [run("before")], margin=0.05)
    line = f"workload {first.label}: count: {first.options['count']} in the baseline, 8 in the change"
    for form in (gate_text(gate), gate_markdown(gate).replace("\\", ""), gate_junit(gate).decode()):
        assert line[1:] in form
    assert gate_json(gate)["options"] == [line]
    unequal = f"the runs differ in count ({first.options['count']} in the baseline, 8 in the change)"
    assert f"warning: Unequal work (3 cells): {unequal}" in gate_text(gate)
    assert advice(gate) == ["Next: measure both sides with the same work; the warning says in what it differs."]
    assert {each["code"] for each in gate_json(gate)["caveats"]} == {"unequal-work"}


# ── the verb ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def gate(*arguments: object) -> int:
    return __main__.main(["gate", *map(str, arguments)])


@pytest.mark.slow
def test_a_run_that_is_twenty_times_as_slow_fails(
    much_slower: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = {"--junit": tmp_path / "gate.xml", "--markdown": tmp_path / "gate.md"}
    arguments = [part for pair in files.items() for part in pair]
    code = gate(much_slower, "--against", TOUR, "--metric", "write_bandwidth", "--worse-than", "5%", *arguments)
    assert code == 1
    out = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in out[:3]] == ["fails"] * 3
    assert out[-2] == "All 3 figures fail."
    assert JUnitXml.fromfile(str(files["--junit"])).failures == 3
    assert files["--markdown"].read_text().startswith("## ✗ Fails")


@pytest.mark.slow
def test_the_other_way_round_it_passes(much_slower: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gate(TOUR, "--against", much_slower, "--json") == 0
    read = json.loads(capsys.readouterr().out)
    assert (read["outcome"], read["exit_code"]) == ("passes", 0)
    assert {each["outcome"] for each in read["figures"]} == {"passes"}
    assert all(each["at_most"] < 1 for each in read["figures"])


@pytest.mark.slow
def test_what_cannot_be_told_has_an_exit_code_of_its_own(
    slower: Callable[[float], Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert gate(slower(1.04), "--against", TOUR, "--worse-than", "5") == 5
    assert "needs" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--worse-than", "five"], "--worse-than"),
        (["--metric", "write_bandwith"], "write_bandwidth"),
        (["--metric", "sync_rate"], "no figure to hold the change against"),
    ],
)
def test_what_is_asked_wrongly_is_refused(
    capsys: pytest.CaptureFixture[str], much_slower: Path, arguments: list[str], said: str
) -> None:
    assert gate(much_slower, "--against", TOUR, *arguments) == 2
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_the_error_is_over_all_looks_unless_one_is_all_there_is(
    much_slower: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = {}
    for looks in ("any", "once"):
        assert gate(TOUR, "--against", much_slower, "--looks", looks) == 0
        told[looks] = capsys.readouterr().out
    assert "over all looks at this change with more blocks in both runs" in told["any"]
    assert "in this one look" in told["once"]
    assert gate(TOUR, "--against", much_slower, "--json") == 0
    assert json.loads(capsys.readouterr().out)["looks"] == "any"


@pytest.mark.slow
def test_blocks_after_the_last_look_are_said_not_to_count() -> None:
    any_, once = (
        judge([run("after", blocks=7)], [run("before", blocks=7)], margin=0.05, looks=looks, runs_differ=ALIKE)
        for looks in LOOKS
    )
    assert "Only the first 5 blocks of each run are used: " in gate_text(any_)
    assert (any_.counted, once.counted) == ((5, 5), (7, 7))
    assert "are used" not in gate_text(once)
    for each in (*any_.judged, *once.judged):
        change, baseline = each.means
        assert change / baseline == pytest.approx(each.ratio[0]), "of the blocks that are used"


@pytest.mark.slow
def test_a_file_that_cannot_be_written_is_an_error(
    much_slower: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gate(much_slower, "--against", TOUR, "--junit", tmp_path / "absent" / "gate.xml") == 2
    assert "gate.xml" in capsys.readouterr().err


def test_a_figure_turned_round_keeps_its_bounds() -> None:
    workload = Workload(name="w", tool="fio", options={})
    any_cell = Cell(filesystem=Filesystem(name="d", type="dir"), workload=workload)
    each = Judged(any_cell, "write_bandwidth", "", "fails", 2.0, 1.6, 2.5, 5)
    assert each.ratio == (0.5, 0.4, 0.625)
    assert replace(each, metric="elapsed").ratio == (2.0, 1.6, 2.5)
    assert replace(each, at_least=0.0, at_most=math.inf).ratio == (0.5, 0.0, math.inf)


@every_row("margin", [-0.01, 10.01, math.inf, math.nan])
def test_a_margin_out_of_range_is_refused(margin: float) -> None:
    with pytest.raises(ParameterError, match="not a margin") as caught:
        judge([], [], margin=margin)
    assert caught.value.allowed == "0% to 1000%"
