"""The figures of an extended run: which blocks a comparison takes, and for how many looks it is corrected."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from mountlab.analysis import gate
from mountlab.analysis.compare.figures import repeated_looks_of
from mountlab.analysis.estimates import estimate_frame
from mountlab.analysis.measurements import measurement_frame
from mountlab.analysis.same_cells import aligned_to
from mountlab.analysis.sweep_comparisons import comparisons
from mountlab.checks.ran import extended_run
from mountlab.core.model import Extensions, Measurement, Sweep, Trial
from mountlab.core.run_info import Extension
from mountlab.report import sections
from mountlab.report.terminal import answer_text
from mountlab.stats import compare, estimate
from mountlab.sweep.extension import continued, extended
from mountlab.sweep.sweep_file import Resolved
from mountlab.wording import extension_words
from sweeps import DD_WRITE, TMPFS, sweep
from synthetic_run import synthetic_run

OLD: dict[str, Any] = {"tmpfs": TMPFS, "ramfs": {"type": "ramfs", "size": "64MiB"}}
BEGUN = sweep(filesystems=OLD, workloads={"w": DD_WRITE}, baseline="tmpfs", design={"repeats": 4})
Values = Mapping[str, Mapping[int, float]]


def more(resolved: Resolved = BEGUN, *, only_new: bool = False, repeats: int = 4, **added: Any) -> Resolved:
    whole = {**resolved.parameters["filesystems"], **added}
    asked = sweep(filesystems=whole, workloads={"w": DD_WRITE}, baseline="tmpfs", design={"repeats": repeats})
    return extended(resolved, asked, at="2026-11-23T10:00:00+00:00", only_new=only_new, where="r")


ADDED = more(plain={"type": "dir"}).sweep


def measured(sweep_: Sweep, values: Values) -> Any:
    """Elapsed seconds of each cell in each block."""
    rows = []
    for cell in sweep_.cells:
        for block, value in values.get(cell.filesystem.name, {}).items():
            rows.append(
                (
                    trial(cell.id, cell.filesystem.name, block),
                    Measurement(metric="write_bandwidth", value=value, unit="B/s"),
                )
            )
    return measurement_frame(rows)


def trial(cell: str, filesystem: str, block: int) -> Trial:
    return Trial(
        trial_id=f"{filesystem}{block}", block=block, warmup=False, cell=cell, filesystem=filesystem, workload="w",
        tool="dd", factors={}, mount="m", status="ok", reason="", started_at="", elapsed_s=1.0,
    )  # fmt: skip


VALUES: Values = {
    "tmpfs": {1: 900, 2: 910, 3: 905, 4: 915, 5: 100, 6: 104, 7: 99, 8: 102},
    "ramfs": {1: 950, 2: 955, 3: 957, 4: 960, 5: 105, 6: 108, 7: 104, 8: 109},
    "plain": {5: 50, 6: 53, 7: 49, 8: 52},
}


def test_old_cells_are_compared_in_all_blocks_and_new_ones_where_both_are() -> None:
    found = {each.candidate: each for each in comparisons(ADDED, measured(ADDED, VALUES))}
    for name in ("ramfs", "plain"):
        pairs = [(value, VALUES["tmpfs"][block]) for block, value in VALUES[name].items()]
        own = compare(pairs)
        assert (found[name].n, found[name].ratio) == (len(pairs), pytest.approx(own.ratio)), name
    late = {**VALUES, "tmpfs": {block: value for block, value in VALUES["tmpfs"].items() if block != 2}}
    limited = comparisons(ADDED, measured(ADDED, late), {"tmpfs/w": frozenset({2})})
    assert {each.candidate: each.censored for each in limited} == {"ramfs": 1, "plain": 0}


def test_what_a_new_cell_lacks_is_not_taken_from_older_blocks() -> None:
    """With fewer than four pairs all values of both sides would count: those of the first blocks would not."""
    few = {**VALUES, "tmpfs": {**VALUES["tmpfs"]}, "plain": {5: 50.0, 6: 53.0, 7: 49.0, 8: 52.0}}
    del few["tmpfs"][8], few["plain"][5]  # type: ignore[attr-defined]
    (own,) = [each for each in comparisons(ADDED, measured(ADDED, few)) if each.candidate == "plain"]
    theirs = [few["tmpfs"][block] for block in (5, 6, 7)]
    ours = [few["plain"][block] for block in (6, 7, 8)]
    assert "Welch" in own.method
    mean = [math.fsum(map(math.log, side)) / 3 for side in (ours, theirs)]
    assert own.ratio == pytest.approx(math.exp(mean[0] - mean[1]))


def test_new_cells_in_blocks_of_their_own_are_not_compared_with_old_ones() -> None:
    alone = more(plain={"type": "dir"}, only_new=True).sweep
    values = {**VALUES, "tmpfs": {b: VALUES["tmpfs"][b] for b in (1, 2, 3, 4)},
              "ramfs": {b: VALUES["ramfs"][b] for b in (1, 2, 3, 4)}}  # fmt: skip
    assert [each.candidate for each in comparisons(alone, measured(alone, values))] == ["ramfs"]
    assert alone.repeated_looks is None, "nothing was looked at again"
    (_, cell) = extended_run(alone, {})
    assert cell.message.endswith("It has no block together with the baseline, and is not compared with it.")


def test_intervals_are_computed_for_the_looks_that_there_were() -> None:
    sweep_ = more(repeats=8).sweep
    frame = estimate_frame(sweep_, measured(sweep_, VALUES), run_id="r", box="b")
    row = frame[frame["cell"] == "tmpfs/w"].iloc[0]
    values = list(VALUES["tmpfs"].values())
    assert (row["n"], row["level"]) == (8, 0.95)
    assert row["low"] == pytest.approx(estimate(values, level=1 - 0.05 / 4, step=1.0).low, rel=0.01)
    assert row["low"] < estimate(values, level=0.95).low
    again = more(more(repeats=8), repeats=9).sweep
    assert (sweep_.repeated_looks, again.repeated_looks) == (Extensions(1), Extensions(2))


def test_names_of_cells_in_another_order_keep_the_correction() -> None:
    """Runs are compared under the names of the first: rw, bs and bs, rw make the same cells."""

    def swept(*keys: str) -> Resolved:
        levels = {"bs": ["4KiB", "1MiB"], "rw": ["read", "write"]}
        workload = {"tool": "fio", "size": "8MiB", **{key: levels[key] for key in keys}}
        return sweep(workloads={"w": workload}, design={"repeats": 3})

    first, other = swept("bs", "rw"), swept("rw", "bs")
    longer = replace(other, parameters={**other.parameters, "design": {**other.parameters["design"], "repeats": 4}})
    asked = replace(longer, sweep=replace(other.sweep, design=replace(other.sweep.design, repeats=4)))
    run = synthetic_run()
    run.sweep = extended(other, asked, at="2026-11-23", only_new=False, where="r").sweep
    run.measurements, run.estimates = run.measurements.head(0), run.estimates.head(0)
    run.comparisons, run.answer_metrics = [], {}
    run.trials = run.trials.head(0)
    assert repeated_looks_of([aligned_to(first.sweep, run)], 0.95) == Extensions(1)


def test_a_gate_that_allows_any_number_of_looks_has_corrected_for_them_already() -> None:
    run = synthetic_run()
    run.sweep = ADDED
    assert gate._repeated_looks([run], 0.95, "any") is None
    assert gate._repeated_looks([run], 0.95, "once") == Extensions(1)


# --- what is said -----------------------------------------------------------------------------------------------------


def test_the_report_says_when_with_which_blocks_and_for_how_many_looks() -> None:
    run = synthetic_run(blocks=8)
    before = replace(run.sweep, design=replace(run.sweep.design, repeats=5))
    after = replace(run.sweep, design=replace(run.sweep.design, repeats=8))
    run.sweep = continued(before, after, at="2026-11-23T10:00:00+00:00", only_new=False)
    told = repr(sections.stopping(run))
    assert "The number of blocks was fixed beforehand: 5." in told
    assert "Extended on 2026-11-23 with 3 blocks (6 to 8; looks: 2)." in told
    corrected = "Intervals and verdicts are corrected for 2 looks: an interval that is to hold at 95"
    assert corrected in told
    assert repr(sections.answer(run)).count("Corrected for 2 looks.") == 1
    run.sweep = replace(run.sweep, expectation="as ever", expected={"dd-write": {"": "faster"}})
    said = repr(sections.answer(run))
    assert "Expected beforehand: as ever (Corrected for 2 looks.)" in said
    assert said.count("Corrected for 2 looks.") == 1
    assert "(Corrected for 2 looks.)" in answer_text(run.sweep, run.comparisons, ())
    assert "Corrected for" not in repr(sections.answer(synthetic_run()))
    begun, ended = ("2026-11-20T10:00:00+00:00", "2026-11-20T10:01:00+00:00")
    later, end = ("2026-11-23T10:00:00+00:00", "2026-11-23T10:01:00+00:00")
    extension = Extension(at=later, finished_at=ended, programs={}, parameters={}, only_new=False)
    run.info = replace(run.info, created_at=begun, finished_at=end, extensions=[extension])
    assert "took 2 min" in repr(sections.question(run)), "not three days"


def test_cells_that_were_added_say_that_they_were_measured_later() -> None:
    whole, cell = extended_run(ADDED, {})
    assert "Extended on 2026-11-23 with 4 blocks (5 to 8; looks: 2), which hold the new cells plain/w." in whole.message
    assert (cell.scope, cell.subject) == ("cell", "plain/w")
    assert cell.message.startswith("It was measured later than the others, first in blocks 5 to 8 of 2026-11-23.")
    assert list(extended_run(BEGUN.sweep, {})) == []
    assert extension_words.looks(ADDED) == 2
