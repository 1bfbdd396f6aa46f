"""The parts of a report, from a run that is made up."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import cache
from html import unescape
from typing import Any

import pandas as pd
import pytest
import yaml
from facts import known
from mountlab.analysis.estimates import estimate_frame
from mountlab.analysis.inside import Inside
from mountlab.analysis.published import beside
from mountlab.analysis.sweep_comparisons import comparisons
from mountlab.checks.layers import CellWrites, LayerWrites
from mountlab.core import names, numbers
from mountlab.core.fact_words import fact_text
from mountlab.core.findings import Interval, OptionEvidence
from mountlab.core.model import Filesystem
from mountlab.core.run_info import RunInfo
from mountlab.core.units import scale_for
from mountlab.filesystems.counters_over_time import OverTime
from mountlab.report import html, sections
from mountlab.report.html import Html
from mountlab.report.sections.figures import bar_plots
from mountlab.stats import explained
from mountlab.wording import phrases, verdicts
from pages import Page
from rows import every_row
from synthetic_run import SWEPT, WORKLOADS, SyntheticRun, synthetic_run

PARTS = (
    sections.question, sections.answer, sections.overview, sections.caveats, sections.tables, sections.every_trial,
    sections.run_order, sections.published, sections.options, sections.left_out, sections.trials, sections.box,
    sections.versions, sections.parameters, sections.reproduce, sections.stopping,
    sections.not_checked, sections.explained, sections.responses, sections.distributions, sections.latencies,
    sections.inside_trials, sections.device_bytes, sections.memory, sections.bar_charts, sections.commands,
    sections.downloads, sections.conditions, sections.states, sections.program, sections.watched,
)  # fmt: skip
each_part = pytest.mark.parametrize("part", PARTS, ids=lambda part: part.__name__)
RUN = synthetic_run()
PAGE_IN = 12.5
"""A sheet of paper shows a plot of this height at three quarters of its size."""
FEW = tuple(
    each for each in WORKLOADS if each.label in ("dd-write", "dd-read cache=warm", "fio rw=write", "fio rw=randread")
)
"""A workload of each kind, for parts that draw each of them."""


@cache
def hostile_run() -> SyntheticRun:
    return synthetic_run(hostile="<script>alert(1)</script><img src=x onerror=alert(1)>", workloads=FEW)


@cache
def single_block() -> SyntheticRun:
    return synthetic_run(blocks=1, workloads=FEW)


@cache
def logged() -> SyntheticRun:
    """Reads and writes of fio, which logs what happens inside of a trial."""
    return synthetic_run(workloads=FEW[2:])


def changed(run: SyntheticRun = RUN, **changes: Any) -> SyntheticRun:
    return replace(run, **changes)


def without_results() -> SyntheticRun:
    """Every trial failed."""
    trials = RUN.trials.assign(status="failed", reason="dd: exit status 1")
    return changed(
        trials=trials,
        measurements=RUN.measurements[:0],
        estimates=RUN.estimates[:0],
        comparisons=[],
        published=[],
        options=[],
    )


# --- every part -------------------------------------------------------------------------------------------------------


@each_part
@pytest.mark.slow
def test_shows_something_and_keeps_hostile_text_as_text(part: Any) -> None:
    shown = part(hostile_run())
    assert Page(shown._repr_html_()).active() == set()
    assert len(repr(shown)) > 20


@pytest.mark.slow
@each_part
def test_survives_a_run_in_which_everything_failed(part: Any) -> None:
    assert part(without_results())._repr_html_()


@each_part
@pytest.mark.slow
def test_survives_a_single_block(part: Any) -> None:
    text = repr(part(single_block()))
    assert "nan" not in re.split(r"\W+", text.lower())


OF_TRIALS = (sections.every_trial, sections.distributions, sections.latencies, sections.inside_trials,
             sections.device_bytes, sections.bar_charts)  # fmt: skip
"""Parts that show the same whatever a run says about itself."""


@pytest.mark.parametrize(
    "part",
    [pytest.param(part, id=part.__name__, marks=pytest.mark.long if part in OF_TRIALS else ()) for part in PARTS],
)
@pytest.mark.slow
def test_survives_a_run_that_says_little_about_itself(part: Any) -> None:
    bare = changed(
        info=RunInfo(run_id="r", box={"name": "local"}),
        sweep=replace(RUN.sweep, baseline=None, expectation=""),
        comparisons=[],
        caveats=[],
        checks_passed=[],
        options=[],
        published=[],
    )
    assert isinstance(part(bare), Html)


# --- the first screen -------------------------------------------------------------------------------------------------


def test_the_question_with_where_when_and_how_often() -> None:
    assert repr(sections.question(RUN)) == (
        "How much faster than the disk is a RAM disk, and does it matter which? box local · kernel 6.18.5 · image "
        "files on /dev/vda (ext4) · 2026-11-20 09:30 UTC · n = 5 blocks · took 2 min 10 s"
    )


def stopped_after(trials: int, status: str = "interrupted") -> SyntheticRun:
    """The run with its first trials only."""
    design = replace(RUN.sweep.design, repeats=8)
    info, rows = replace(RUN.info, status=status), RUN.trials.sort_values("seq").head(trials)
    values = RUN.measurements[RUN.measurements["trial_id"].isin(rows["trial_id"])]
    sweep = replace(RUN.sweep, design=design)
    frame = estimate_frame(sweep, values, run_id="r", box="b")
    ratios = comparisons(sweep, values)
    return changed(info=info, sweep=sweep, trials=rows, measurements=values, estimates=frame, comparisons=ratios)


WARM, BLOCK = int(RUN.trials["warmup"].sum()), int((RUN.trials["block"] == 1).sum())


@pytest.mark.parametrize(
    ("trials", "status", "shown"),
    [
        (0, "interrupted", "Stopped before the first counted block; no trial was ok. Resume it: mountlab resume 2026"),
        (1, "interrupted", "Stopped before the first counted block; 1 warm-up trial was ok."),
        (3, "interrupted", "Stopped before the first counted block; 3 warm-up trials were ok."),
        (WARM + 1, "interrupted", "Stopped in the first counted block; 1 trial of it was run."),
        (WARM + 2 * BLOCK, "interrupted", "Stopped after 2 of 8 blocks."),
        (WARM + 2 * BLOCK + 1, "interrupted", "Stopped after 2 of 8 blocks."),
        (WARM + 2 * BLOCK, "running", "This run is not finished: 2 of 8 blocks so far."),
    ],
)
def test_a_run_that_was_stopped_says_how_far_it_came(trials: int, status: str, shown: str) -> None:
    assert shown in repr(sections.question(stopped_after(trials, status)))


def test_a_run_that_was_stopped_before_the_first_counted_block_has_no_ratio_and_no_table_of_such() -> None:
    run = stopped_after(3)
    text = " ".join(repr(part(run)) for part in (sections.question, sections.headline, sections.means, sections.tables))
    assert "No answer yet: no counted trial has a figure." in text
    assert "n/a" not in text


def test_the_answer_is_about_the_metrics_of_the_answer() -> None:
    text = repr(sections.answer(RUN))
    assert "tmpfs and ramfs look faster than ext4 for flushed writes and cold reads" in text
    assert "latency" not in text
    assert "Expected beforehand: tmpfs and ramfs write several times as fast as ext4." in text


def test_the_first_screen_says_how_far_to_trust_it_and_what_to_do_next() -> None:
    text = repr(sections.answer(RUN))
    assert "Trust: low : Cache served read (do not use) in 1 of 21 cells" in text
    assert "Do not cite its figures. Next : " in text
    assert "Next : Remove the option, or correct it" in text
    assert "Trust: high : No caveat weakens the answer, and 2 checks passed." in repr(
        sections.answer(synthetic_run(caveats=False))
    )


def test_the_overview_has_the_mean_and_the_ratio_of_every_file_system() -> None:
    text = sections.overview(RUN)._repr_html_()
    own = RUN.estimates[(RUN.estimates.cell == "ext4/dd-write") & (RUN.estimates.metric == "write_bandwidth")].iloc[0]
    assert numbers.mean_figures(own["mean"], own.low, own.high, factor=1e9).value in text
    (ratio,) = [
        c for c in RUN.comparisons if (c.candidate, c.workload, c.metric) == ("tmpfs", "dd-write", "write_bandwidth")
    ]
    assert f"<small>↑ {verdicts.compared_figures(ratio)}" in text
    assert text.count("<svg") == 1
    assert "↑ faster" in text, "the caption explains the signs"


def test_caveats_or_the_checks_that_passed() -> None:
    assert "No caveats: 2 checks passed The directory of every trial was on its file system" in repr(
        sections.caveats(synthetic_run(caveats=False))
    )
    told = repr(sections.caveats(RUN))
    assert told.index("Do not use") < told.index("Doubt") < told.index("Few trials")


# --- tables -----------------------------------------------------------------------------------------------------------


def test_one_table_for_each_metric() -> None:
    text = sections.tables(RUN)._repr_html_()
    assert text.count("<table>") == RUN.estimates.metric.nunique()
    assert "<summary>4 more metrics</summary>" in text
    assert "Write bandwidth, GB/s" in text


def test_a_row_has_mean_interval_ratio_verdict_and_caveats() -> None:
    text = sections.tables(RUN)._repr_html_()
    warm = text[text.index("dd-read cache=warm") :]
    row = warm[warm.index("ext4</span>") : warm.index("</tr>", warm.index("ext4</span>"))]
    assert "baseline" in row
    assert "cache served read" in row
    write = text[text.index("dd-write") :]
    row = write[write.index("tmpfs</span>") : write.index("</tr>", write.index("tmpfs</span>"))]
    ours = next(
        c for c in RUN.comparisons if (c.candidate, c.workload, c.metric) == ("tmpfs", "dd-write", "write_bandwidth")
    )
    assert numbers.ratio_figures(ours.ratio, ours.joint.low, ours.joint.high).interval in row
    assert "<td>faster</td>" in row


def test_trials_that_failed_are_shown_with_the_reason() -> None:
    text = repr(sections.trials(RUN))
    assert "126 trials: 125 ok, 1 failed." in text
    bad = text[text.index("Trials that gave no measurement") : text.index("All 126 trials")]
    assert "fio: exit status 1: No space left on device" in bad
    assert "ok, warm-up" in text


def test_options_with_the_words_of_the_kernel_and_those_that_it_added() -> None:
    text = sections.options(RUN)._repr_html_()
    row = "<td>mount</td><td><code>data=writeback</code></td><td>✗ ignored</td>"
    assert row in re.sub(r"\s*\n\s*", "", text)
    assert "rw,relatime" in text
    added = OptionEvidence(filesystem="ext4", option="", kind="mount", state="added", kernel_says="nodelalloc")
    assert "ext4 mount added by the kernel + added nodelalloc" in repr(sections.options(changed(options=[added])))


def test_what_was_left_out_and_why() -> None:
    assert html.words_of(sections.left_out(RUN)) == "scratch the box file names no scratch device"
    nothing = changed(sweep=replace(RUN.sweep, left_out={}))
    assert repr(sections.left_out(nothing)).startswith("Nothing was left out")


def test_published_figures_with_their_source_and_a_warning() -> None:
    text = Page(sections.published(RUN)._repr_html_()).words
    assert "Absolute figures are of other machines" in text
    assert "A: an article of 2013/2015, ext4-era hard disk" in text
    assert "tmpfs 598\u00a0MB/s" in text
    assert "not measured" in text


def test_of_many_published_figures_those_that_were_not_measured_are_folded() -> None:
    (theirs,) = [each.theirs for each in beside(RUN) if each.ours and not each.theirs.claim][:1]
    others = [replace(theirs, candidate=f"layout-{number}", says="quartiles 10 and 12") for number in range(13)]
    page = repr(sections.published(changed(published=[theirs, *others]))._repr_html_())
    shown, _, folded = page.partition("<details")
    assert "13 that this run did not measure" in folded
    assert "11 times, quartiles 10 and 12" in folded
    assert theirs.candidate in shown
    assert "layout-0" not in shown.partition("<table")[2]
    few = repr(sections.published(changed(published=[theirs, *others[:3]]))._repr_html_())
    assert "<details" not in few


# --- facts and parameters ---------------------------------------------------------------------------------------------


@every_row(
    ("key", "value", "text"),
    [
        ("memory_bytes", 2**34, "16.0 GiB"),
        ("cpu_governor", None, "not known"),
        ("rotational", False, "no"),
        ("uid", 0, "0"),
        ("kernel_filesystems", ["ext4", "xfs"], "ext4, xfs"),
        ("kernel_filesystems", [], "none"),
        ("limits", {"memory_bytes": 1024, "swap": True}, "memory_bytes: 1.00 KiB, swap: yes"),
        ("uptime_s", 12.5, "12.5 s"),
    ],
)
def test_facts_as_people_read_them(key: str, value: object, text: str) -> None:
    assert fact_text(key, value) == text


def test_the_box_is_described() -> None:
    text = repr(sections.box(RUN))
    assert "Processor AMD EPYC 9R14" in text
    assert "Memory 23.3 GiB" in text
    assert "fio fio-3.33 /usr/bin/fio" in text


def boxed(**facts: Any) -> str:
    return repr(sections.box(replace(RUN, info=replace(RUN.info, facts=known(**facts)))))


def test_facts_stand_in_groups_and_what_says_nothing_is_left_out() -> None:
    text = boxed(
        kernel="6.1", cpu_model="EPYC", room={}, device_ids={}, swap_bytes=0, memory_bytes=2**30, user="",
        huge_pages={"enabled": "madvise"}, from_another_version="x",
    )  # fmt: skip
    assert text == (
        "Processor Processor EPYC Memory Memory 1.00 GiB Transparent huge pages enabled: madvise Kernel Kernel 6.1 "
        "Mountlab's own From another version x"
    )


def test_what_the_box_does_not_tell_is_one_sentence() -> None:
    text = boxed(kernel="6.1", cpu_governor=None, disk_links=None)
    assert text == "Kernel Kernel 6.1 The box does not tell: frequency governor, links to the disks."


def test_mitigations_are_summed_up_and_limits_are_said_in_a_line() -> None:
    weak = {"mds": "Not affected", "retbleed": "Vulnerable", "spectre_v2": "Mitigation: IBRS"}
    weak |= {f"w{number}": "Not affected" for number in range(4)}
    assert "Mitigations 1 on (spectre_v2), 1 off (retbleed), 5 not affected mds: not affected" in boxed(
        cpu_mitigations=weak
    )
    free = {"memory_bytes": "no limit", "processors": 1.5, "processors_allowed": "all", "tasks": "no limit"}
    said = "processor time: 1.5; no limit of memory, processors it may run on and tasks"
    assert boxed(session_limits=free) == f"Limits of the session Control group {said}"


def test_a_disk_stands_in_the_table_with_its_firmware_and_settings() -> None:
    disk = {"name": "vda", "model": "fast", "size_bytes": 2**30}
    text = boxed(block_devices=[disk], disk_settings={"vda": {"firmware": "2.0.1", "write_cache": "write back"}})
    assert "Name Size Model Firmware Write cache vda 1.00 GiB fast 2.0.1 write back" in text


def test_what_nobody_knows_of_a_device_takes_no_room() -> None:
    assert "Size" in repr(sections.box(RUN))
    assert "Model" not in repr(sections.box(RUN))


def test_parameters_are_the_yaml_that_was_resolved_beside_the_command_that_runs_it_again() -> None:
    text = repr(sections.parameters(RUN)).removeprefix("The whole sweep, resolved ")
    assert "question: How much faster?" in text
    run = synthetic_run(hostile="<b>: [x")
    shown = sections.parameters(run)._repr_html_()
    inner = unescape(shown[shown.index("<code>") + 6 : shown.index("</code>")])
    assert yaml.safe_load(inner) == run.info.parameters
    assert repr(sections.reproduce(RUN)) == "mountlab run params/sweeps/ramdisk.yml --box local"


# --- what could not be checked ----------------------------------------------------------------------------------------


def test_checks_that_could_not_look_are_named_with_the_reason() -> None:
    told = repr(sections.not_checked(changed(not_checked={"box-busy": "no such counters were kept"})))
    assert "1 check could not be made" in told
    assert "Box busy : no such counters were kept" in told
    assert "Every check could be made." in repr(sections.not_checked(changed(not_checked={})))


def test_excluded_trials_are_counted_and_listed_with_their_reasons() -> None:
    trials = RUN.trials.copy()
    trials.loc[trials.index[3], ["status", "reason"]] = ["excluded", "the backup ran"]
    told = repr(sections.trials(changed(trials=trials)))
    assert "1 excluded" in told
    assert "the backup ran" in told


# --- cells that do not exist ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_cell_that_the_sweep_excludes_is_not_shown_as_missing() -> None:
    """'n/a' is for what was planned and gave no figure."""
    gone = "ramfs/fio rw=write"
    estimates = RUN.estimates[RUN.estimates["cell"] != gone]
    assert phrases.NOT_IN_SWEEP not in repr(sections.overview(changed(estimates=estimates)))
    run = changed(estimates=estimates, sweep=replace(RUN.sweep, excluded=(gone,)))
    assert repr(sections.overview(run)).count(phrases.NOT_IN_SWEEP) == 1
    assert repr(sections.overview(changed(estimates=estimates))).count(numbers.MISSING) == (
        repr(sections.overview(run)).count(numbers.MISSING) + 1
    )


def skipped(run: SyntheticRun, cell: str, reason: str) -> SyntheticRun:
    """A run whose file system cannot take a workload: its trials are skipped, and there is no figure."""
    trials = run.trials.copy()
    trials.loc[trials["cell"] == cell, ["status", "reason"]] = ["skipped", reason]
    return changed(run, trials=trials, estimates=run.estimates[run.estimates["cell"] != cell])


@pytest.mark.slow
@pytest.mark.parametrize("filesystems", [3, 6], ids=["columns", "rows"])
def test_what_a_file_system_cannot_do_is_said_in_words_and_is_no_missing_figure(filesystems: int) -> None:
    run = synthetic_run(filesystems=filesystems)
    shown = skipped(run, "ramfs/fio rw=write", "ramfs has no write()")
    told = repr(sections.overview(shown))
    assert numbers.MISSING not in told
    assert "Not measured: ramfs under fio rw=write. ramfs has no write()." in told
    assert "Not measured" not in repr(sections.overview(run))


@pytest.mark.slow
def test_a_workload_that_was_set_aside_stays_a_missing_figure() -> None:
    """It can be measured, and failed: that is no property of the file system."""
    told = repr(sections.overview(skipped(RUN, "ramfs/fio rw=write", "set aside: t0003 failed: no space")))
    assert numbers.MISSING in told
    assert "Not measured" not in told


@pytest.mark.slow
def test_parts_of_a_metric_that_a_tool_did_not_give_are_no_rows() -> None:
    """pg_test_fsync says n/a of a method for which a file system takes no direct I/O."""
    run = synthetic_run(filesystems=6)
    first = run.estimates[run.estimates["metric"] == run.answer_metrics["dd-write"][0]]
    parts = [first[first["cell"].str.endswith("/dd-write")].assign(label=label) for label in ("fsync", "open_sync")]
    without = parts[1][parts[1]["filesystem"] != "ramfs"]
    told = repr(sections.overview(changed(run, estimates=pd.concat([parts[0], without]))))
    assert numbers.MISSING not in told.partition("dd-read")[0]
    assert "of ramfs under dd-write: the tool gave none for open_sync." in told


@pytest.mark.long
@pytest.mark.slow
def test_a_long_table_of_means_leaves_the_first_screen_its_room() -> None:
    page = Page(sections.overview(synthetic_run(filesystems=12))._repr_html_())
    assert "The other 5 of 7 groups" in page.words


# --- memory -----------------------------------------------------------------------------------------------------------


def memory_of(**values: Any) -> str:
    (use, *_) = RUN.memory
    return repr(sections.memory(changed(memory=[replace(use, **values)])))


def test_the_memory_that_files_took_is_said_before_full_and_after() -> None:
    told = repr(sections.memory(RUN))
    assert "tmpfs: 512 MiB of files took 512 MiB of memory, and gave it back when they were removed." in told
    assert "256.0 768.0 256.0 512.0" in told


def test_memory_that_is_kept_is_said() -> None:
    kept = 2.0**28
    assert "took 512 MiB of memory; 256 MiB were still in use after they were removed." in memory_of(kept=kept)
    (use, *_) = RUN.memory
    zram = replace(use.cell, filesystem=Filesystem(name="zram", type="ext4", zram_bytes=2**30))
    told = memory_of(kept=kept, cell=zram)
    assert "zram: 512 MiB of files and what earlier trials left took 512 MiB of memory; 256 MiB were still" in told
    assert "A zram device keeps a block until it is written again or discarded." in told


def test_huge_pages_are_not_called_memory_of_the_box() -> None:
    assert "took 512 MiB of the huge pages that were reserved at the mount, and gave" in memory_of(huge_pages=True)


def test_a_run_without_files_in_memory_has_no_such_part() -> None:
    assert html.NOTHING in sections.memory(changed(memory=[]))._repr_html_()


# --- what explains how much, and all together -------------------------------------------------------------------------


def test_the_shares_of_the_variance_are_those_of_the_statistics() -> None:
    metric = next(m for m in RUN.answer_metrics["dd-write"])
    shown = repr(sections.explained(RUN))
    found = explained(RUN.measurements, workload="dd-write", metric=metric, level=RUN.sweep.design.level)
    largest = max(found.to_dict("records"), key=lambda row: row["share"])
    assert (
        f"Of the differences in {names.metric_noun(metric)} under dd-write: {phrases.effect_name(largest['effect'])} "
        in shown
    )
    assert "Analysis of variance" in shown


def test_without_repeats_there_is_no_variance_to_share_out() -> None:
    assert "no variance to share out" in repr(sections.explained(without_results()))


@pytest.mark.slow
def test_intervals_beside_verdicts_are_those_that_hold_for_all_together() -> None:
    wide = [replace(each, joint=Interval(4.1, 12.6, 0.95)) for each in RUN.comparisons]
    for part in (sections.overview, sections.tables, sections.published):
        assert "[4.1, 12.6]" in part(changed(comparisons=wide))._repr_html_().replace("\u2007", ""), part


def test_the_table_says_how_many_blocks_would_decide() -> None:
    waiting = [replace(each, verdict="undecided", needed=23) for each in RUN.comparisons]
    assert "undecided; up to 23 blocks needed" in repr(sections.tables(changed(comparisons=waiting)))


# --- plots by the shape of the sweep ----------------------------------------------------------------------------------


def figures(part: Html) -> list[str]:
    """The titles of the plots of a part."""
    return re.findall(r"<figcaption>(.*?)</figcaption>", part)


def test_a_sweep_without_numbers_has_no_responses_and_says_so() -> None:
    assert sections.responses(RUN).startswith(html.NOTHING)


@pytest.mark.slow
def test_two_numbers_have_a_response_a_map_and_clusters() -> None:
    run = synthetic_run(workloads=SWEPT)
    columns = {
        name: [row.split(f"{name}=")[1].split()[0] for row in run.estimates["cell"]] for name in ("bs", "numjobs")
    }
    estimates = run.estimates.assign(**columns)
    told = figures(sections.responses(replace(run, estimates=estimates)))
    assert [title.split(" under")[0] for title in told] == [
        "Read bandwidth over bs",
        "Read bandwidth",
        "Read bandwidth over bs and numjobs",
    ]
    assert "ratio to ext4" in told[1]


@pytest.mark.long
@pytest.mark.slow
def test_what_was_kept_is_shown_and_what_was_not_is_said() -> None:
    assert len(figures(sections.latencies(RUN))) == 4, "percentiles and distribution, of reads and of writes"
    assert len(figures(sections.inside_trials(RUN))) == 4 + 2, "each workload of fio; every trial's bandwidth"
    (told,) = figures(sections.device_bytes(RUN))
    assert told.startswith("In 1 of ")
    assert "Without a device that is counted: tmpfs and ramfs." in repr(sections.device_bytes(RUN))
    bare = replace(RUN, series={}, moved=[], histograms={})
    for part in (sections.inside_trials, sections.device_bytes):
        assert part(bare).startswith(html.NOTHING)
    without = bare.measurements[~bare.measurements["metric"].str.contains("latency")]
    assert sections.latencies(replace(bare, measurements=without)).startswith(html.NOTHING)


def test_what_each_layer_wrote_stands_below_the_bytes_of_the_device() -> None:
    assert "What each layer wrote" not in str(sections.device_bytes(RUN))
    layers = (LayerWrites("md127", 1.01), LayerWrites("4 loop devices", 2.125))
    writes = CellWrites(RUN.sweep.cells[0], 3, layers)
    told = str(sections.device_bytes(changed(layer_writes=[writes])))
    assert "What each layer wrote" in told
    rows = re.findall(r"<tr.*?</tr>", told.partition("What each layer wrote")[2], re.DOTALL)
    cells = [[re.sub("<[^>]*>", "", cell).strip() for cell in re.findall(r"<td.*?</td>", row)] for row in rows]
    assert [row[-2:] for row in cells if row] == [
        ["application", "1.00"],
        ["md127", "1.01"],
        ["4 loop devices", "2.12"],
    ]


@pytest.mark.slow
def test_latency_percentiles_stand_as_ratios_beside_their_plots() -> None:
    told = RUN.latency_comparisons
    assert {each.metric for each in told} == {"read_latency_p99", "write_latency_p99"}
    part = repr(sections.latencies(RUN))
    for each in told:
        assert f"{verdicts.compared_figures(each)} {verdicts.SIGNS[each.verdict]}" in part
    assert "fio rw=randread: read completion latency" in part
    assert f"hold for these {len(told)} ratios together, apart from those of the answer" in part
    assert "p99.9" not in part.split("Below 1 is faster")[0].split("multiples of those")[1]


def test_a_percentile_that_the_answer_is_about_stands_in_the_same_table() -> None:
    own = [replace(each, metric="read_latency_p50") for each in RUN.latency_comparisons[:1]]
    answered = {**RUN.answer_metrics, verdicts.workload_of(own[0]): ("read_latency_p50",)}
    part = repr(sections.latencies(changed(comparisons=own, answer_metrics=answered, histograms={})))
    few = len(RUN.latency_comparisons)
    assert f"hold for {few} of these ratios together; the others are of the answer" in part
    assert "n/a" in part, "the other rows have no p50"


@pytest.mark.slow
def test_a_course_is_steady_where_the_checks_say_so() -> None:
    run = logged()
    told = figures(sections.inside_trials(run))[2]
    fio = run.trials[(run.trials.status == "ok") & ~run.trials.warmup]
    reads = fio[~fio.cell.str.contains("write")]
    steady = (reads.filesystem != "ext4").sum()
    assert f": {steady} of {len(reads)} were steady" in told


@pytest.mark.slow
def test_inside_of_trials_it_says_whose_and_what_is_not_drawn() -> None:
    text = repr(sections.inside_trials(with_counters(logged())))
    assert "The median trial of each cell, by the metric of the answer." in text
    assert "Left out, as zero in all of them: Processors: steal." in text
    assert "Not recorded for any of them: Write bandwidth, Write IOPS" in text
    assert "log_avg_msec" in text, "how to have the latency"
    assert "Memory pressure" in text


@pytest.mark.long
@pytest.mark.slow
def test_of_many_workloads_the_first_are_drawn_and_the_page_stays_small() -> None:
    many = [replace(SWEPT[0], factors={"bs": f"{size}KiB"}) for size in range(1, 13)]
    shown = sections.inside_trials(with_counters(synthetic_run(workloads=many, blocks=2)))
    titles = [title for title in figures(shown) if title.startswith("Busiest")]
    assert len(titles) == 8
    assert "Drawn are the first 8 of 12 workloads." in repr(shown)
    assert len(shown) < 1_500_000


@pytest.mark.slow
@pytest.mark.parametrize(
    ("facts", "says"),
    [({}, "earlier version of Mountlab"), ({"sampling_shell": None}, "no shell that can wait for a part of a second")],
)
def test_a_run_without_counters_over_time_says_why(facts: dict[str, Any], says: str) -> None:
    bare = changed(logged(), info=replace(RUN.info, facts=known(**facts)))
    assert says in repr(sections.inside_trials(bare)), "beside what fio logged"
    assert says in repr(sections.inside_trials(replace(bare, series={}))), "in its place"


@pytest.mark.slow
def test_one_trial_is_drawn_or_it_is_said_why_not() -> None:
    run = with_counters(logged())
    (title,) = figures(sections.inside_one(run, next(iter(run.insides))))
    assert title.startswith("Busiest inside")
    assert "no trial t9999" in repr(sections.inside_one(run, "t9999"))
    assert sections.inside_one(replace(run, insides={}, series={}), next(iter(run.insides))).startswith(html.NOTHING)


def with_counters(run: SyntheticRun) -> SyntheticRun:
    """Ten seconds of every counted trial, as a box that can sample brings them back."""
    steps = [0.1 * i for i in range(1, 101)]
    shares = {"user": 0.5, "system": 0.25, "iowait": 0.1, "steal": 0.0}
    box = OverTime(
        processors={name: [(at, share) for at in steps] for name, share in shares.items()},
        pressure=[(at, 0.02) for at in steps],
        dirty=[(at, 1e6 * at) for at in steps],
    )
    good = run.trials[(run.trials.status == "ok") & ~run.trials.warmup]
    logs = {trial: run.series.get(trial, []) for trial in good.trial_id}
    logs = {trial: [each for each in own if each.metric.startswith("read")] for trial, own in logs.items()}
    info = replace(run.info, facts=known(run.info.facts, sampling_shell="bash"))
    return replace(run, info=info, insides={trial: Inside(own, box) for trial, own in logs.items()})


@pytest.mark.slow
def test_bars_wait_behind_a_summary() -> None:
    assert sections.bar_charts(RUN).startswith("<details><summary>2 bar charts</summary>")


@pytest.mark.long
@pytest.mark.slow
def test_many_rows_become_several_plots_of_a_page_each() -> None:
    many = [replace(SWEPT[0], factors={"bs": f"{size}KiB"}) for size in range(1, 15)]
    titles = figures(sections.every_trial(synthetic_run(workloads=many, blocks=2)))
    assert [title[-13:] for title in titles] == ["(part 1 of 2)", "(part 2 of 2)"]


@pytest.mark.slow
def test_parts_of_bars_follow_the_order_of_the_sweep() -> None:
    many = [replace(SWEPT[0], factors={"bs": f"{size}KiB"}) for size in range(1, 15)]
    parts = list(bar_plots(synthetic_run(workloads=many, blocks=2)))
    drawn = [text.get_text() for part in parts for text in part.figure.axes[0].texts if text.get_weight() == "bold"]
    assert drawn == [workload.label for workload in many]
    assert all(part.figure.get_figheight() < PAGE_IN for part in parts)


@pytest.mark.slow
def test_bars_of_one_file_system_leave_room_for_their_headings() -> None:
    grid = [replace(SWEPT[0], factors={"bs": f"{bs}KiB", "numjobs": jobs}) for bs in range(1, 9) for jobs in "1248"]
    run = synthetic_run(workloads=grid, blocks=2)
    alone = replace(run, measurements=run.measurements[run.measurements["filesystem"] == "ext4"])
    assert [part.figure.get_figheight() < PAGE_IN for part in bar_plots(alone)] == [True, True]


@pytest.mark.slow
def test_many_ratios_begin_with_the_strongest_and_hide_none() -> None:
    many = [replace(SWEPT[0], factors={"bs": f"{size}KiB"}) for size in range(1, 15)]
    run = synthetic_run(workloads=many, blocks=2)
    text = sections.overview(run)
    assert "The 12 workloads with the strongest effects, of 14." in text
    assert "<summary>The other 2 workloads</summary>" in text
    assert text.count("<figure") == 2


@pytest.mark.long
@pytest.mark.slow
def test_five_file_systems_stand_below_each_other_in_the_table_of_means() -> None:
    """Side by side they would make the table wider than a page."""
    run = synthetic_run(filesystems=6, blocks=2)
    table = Page(sections.overview(run))
    head = [text for _, name, text in table.attributes if name == "scope" and text == "col"]
    assert len(head) == 3 * table.tags["table"]
    own = run.estimates[(run.estimates.cell == "fs4/dd-write") & (run.estimates.metric == "write_bandwidth")].iloc[0]
    assert f"{scale_for('B/s', own['mean']).show(own['mean'])} " in table.words
    ratios = {(c.candidate, c.workload, c.metric): c for c in run.comparisons}
    assert str(verdicts.compared_figures(ratios["fs4", "dd-write", "write_bandwidth"])) in table.words
    assert "dd-write: write bandwidth" in table.words
