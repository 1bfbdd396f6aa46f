"""What gives reason to doubt a comparison of runs: of two, of many, of boxes, and of a gate."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mountlab.analysis.compare.differences import WORKLOAD, Difference, known_areas, values_by_run
from mountlab.analysis.compare.figures import SharedFigure
from mountlab.analysis.run_view import AnsweredRun, ComparedRun
from mountlab.checks import work
from mountlab.checks.base import of_run
from mountlab.core import numbers
from mountlab.core.errors import in_one_line
from mountlab.core.findings import Caveat
from mountlab.core.groups import by_key
from mountlab.core.model import Cell

FEW = 5
"""With fewer runs, the interval of the spread between them spans more than a factor of 3. With fewer boxes, an interval
over boxes is 1.4 times as wide as the same spread would give with many, or worse."""
_PAIR = 2


def caveats_of_runs(
    runs: Sequence[ComparedRun],
    names: Sequence[str],
    common: Sequence[Sequence[Cell]],
    differences: Sequence[Difference],
) -> Iterator[Caveat]:
    """Yield the doubts about runs that are held against the first. `common`: the cells that each other one shares with
    it."""
    areas, pair = known_areas(differences), len(runs) == _PAIR
    if len(areas) > 1:
        whose, so = ("A and B", "A ratio is about all of them together.") if pair else ("the runs", _FROM_ANY)
        advice = "Change one at a time to learn which of them it is."
        what = f"{whose} differ in {len(areas)} respects: {'; '.join(areas)}. {so} {advice}"
        yield of_run("sides-differ", "warning", what)
    yield from unequal_work(runs, names, differences, common)
    if pair and not areas and not any(run.sweep.imported for run in runs):
        yield of_run(
            "sides-alike",
            "note",
            "nothing that was kept differs between A and B. What the ratios show is how much a run differs from its "
            "own repetition on this box.",
        )
    yield of_run("runs-not-paired", "warning", _PAIR_NOT_PAIRED if pair else _RUNS_NOT_PAIRED)
    if not pair and len(runs) < FEW:
        what = f"{len(runs)} runs say little about the spread between runs: its interval is wide. Five or more tell."
        yield of_run("few-runs", "note", what)
    for place, (name, run) in enumerate(zip(names, runs, strict=True)):
        shared = common if place == 0 else common[place - 1 : place]
        yield from caveats_of(name, run, list({cell.id: cell for cells in shared for cell in cells}.values()))


_FROM_ANY = "What differs from run to run may come of any of them."
_PAIR_NOT_PAIRED = (
    "the two runs share no blocks. Whatever else changed between them (time of day, neighbours, temperature, a reboot) "
    "is in every ratio, and by how much runs differ by themselves in every interval. Run A and B again, in turns, "
    "before a small ratio is believed: with three runs of each, mountlab gate measures by how much they differ."
)
_RUNS_NOT_PAIRED = (
    "the runs share no blocks. Ratios of one run to another hold whatever else changed between them. Their intervals "
    "contain by how much runs differ by themselves; where these differ by more, believe that."
)


def caveats_of_boxes(
    runs: Sequence[AnsweredRun],
    boxes: Sequence[str],
    common: Sequence[Sequence[Cell]],
    differences: Sequence[Difference],
    figures: Sequence[SharedFigure],
    missing: Mapping[str, str],
) -> Iterator[Caveat]:
    """Yield the doubts about one sweep on several boxes. `missing`: boxes without any figure, and why."""
    for name, why in missing.items():
        what = f"{name} has no figures, and nothing here is about it: {in_one_line(why)}"
        yield of_run("box-missing", "warning", what)
    yield from _not_everywhere(boxes, figures)
    yield from _at_the_limit(boxes, runs)
    yield from _one_machine(boxes, runs)
    if len(boxes) < FEW:
        yield of_run(
            "few-boxes",
            "note",
            f"{numbers.counted(len(boxes), 'box')} say little about other boxes: intervals over boxes and the "
            "spread between them are wide. Five or more tell.",
        )
    yield of_run(
        "one-run-a-box",
        "note",
        "each box was measured in one run, so that what differs from run to run on one box is part of what "
        "differs between boxes.",
    )
    for name, run in zip(boxes, runs, strict=True):
        yield from caveats_of(name, run, run.sweep.cells)
    yield from unequal_work(runs, boxes, differences, common)


def _not_everywhere(boxes: Sequence[str], figures: Sequence[SharedFigure]) -> Iterator[Caveat]:
    without: dict[str, dict[str, None]] = {}
    for figure in figures:
        for name, values in zip(boxes, figure.values, strict=True):
            if not values:
                without.setdefault(name, {})[figure.cell.id] = None
    for name, cells in without.items():
        more = f" and {numbers.counted(len(cells) - 1, 'more cell')}" if len(cells) > 1 else ""
        what = f"{name} has no figure of {next(iter(cells))}{more}: the results over boxes leave it out there."
        yield of_run("not-on-all-boxes", "warning", what)


def _at_the_limit(boxes: Sequence[str], runs: Sequence[AnsweredRun]) -> Iterator[Caveat]:
    """Yield boxes on which ratios are medians, since trials ran into the time limit."""
    for name, run in zip(boxes, runs, strict=True):
        late = [comparison for comparison in run.comparisons if comparison.censored]
        without = sum(not math.isfinite(comparison.ratio) for comparison in late)
        if late:
            gone = f" {without} of them have no value, and these have no ratio over boxes." if without else ""
            yield of_run(
                "timed-out-ratios",
                "warning",
                f"on {name} trials ran into their time limit: {numbers.counted(len(late), 'ratio')} of that "
                f"box are medians over blocks and count so over boxes; their blocks are left out of the spread.{gone}",
            )


def _one_machine(boxes: Sequence[str], runs: Sequence[ComparedRun]) -> Iterator[Caveat]:
    """Yield boxes that are one machine: its second box is no repetition of anything but the run."""
    facts = [run.info.facts for run in runs]
    machines = [(one.machine.hostname, one.processors.model) for one in facts]
    for (hostname, _), names in by_key(zip(machines, boxes, strict=True)).items():
        if hostname and len(names) > 1:
            yield of_run(
                "one-machine",
                "warning",
                f"{numbers.listed(names)} have the same host name ({hostname}) and processor. If they are one "
                "machine, they are one box: intervals over boxes are then too narrow, and about runs.",
            )


# ── of any runs that are compared ────────────────────────────────────────────────────────────────────────────────────


def unequal_work(
    runs: Sequence[ComparedRun],
    names: Sequence[str],
    differences: Sequence[Difference],
    common: Sequence[Sequence[Cell]],
) -> Iterator[Caveat]:
    """Yield each cell in which the runs did not do the same work: the options in which they differ, and whether the
    trials of the first and of another run measured neither as long nor as much."""
    by_area: dict[str, dict[str, Difference]] = {}
    for row in differences:
        by_area.setdefault(row.area, {})[row.what] = row
    by_cell: dict[str, list[str]] = {}
    for cell in (cell for cells in common for cell in cells):
        options = by_area.get(f"{WORKLOAD}{cell.workload.label}", {})
        unequal = work.unequal({name: row.values for name, row in options.items()})
        by_cell[cell.id] = [f"{name} ({values_by_run(options[name], names)})" for name in unequal]
    for other, name, cells in zip(runs[1:], names[1:], common, strict=True):
        imported = runs[0].sweep.imported or other.sweep.imported
        limits = {cell.id: None if imported else work.limit_s(cell.workload) for cell in cells}
        if doubtful := [cell_id for cell_id, limit in limits.items() if imported or limit]:
            ours, theirs = (work.extents(run.measurements) for run in (other, runs[0]))
            for cell_id in doubtful:
                apart = work.apart(ours, theirs, cell_id, cell_id, limit=limits[cell_id])
                by_cell[cell_id] += [f"{text} in {name} against {names[0]}" for text in apart]
    for cell_id, texts in by_cell.items():
        if texts:
            message = f"the runs differ in {', '.join(texts)}. {work.ADVICE}"
            yield replace(of_run("unequal-work", "warning", message), scope="cell", subject=cell_id)


def caveats_of(name: str, run: ComparedRun, cells: Sequence[Cell]) -> Iterator[Caveat]:
    """Yield what weakens a run that is compared in these cells: that it is imported or unfinished, its own warnings and
    errors about them."""
    if run.sweep.imported:
        yield of_run(
            "imported",
            "warning",
            f"{name} was imported: of its box nothing is known, nor what of it differs. Of its options only that is "
            "known which its logs state.",
        )
    if run.info.status != "complete":
        yield of_run(
            "unfinished",
            "warning",
            f"{name} is {run.info.status}: its figures are of the trials so far. Go on with `mountlab resume`.",
        )
    subjects = {"cell": {cell.id for cell in cells}, "filesystem": {cell.filesystem.name for cell in cells}}
    for caveat in run.caveats:
        about = caveat.scope == "run" or caveat.subject in subjects.get(caveat.scope, ())
        if about and caveat.severity != "note" and caveat.code != "imported":
            yield replace(caveat, message=f"in {name}: {caveat.message}")
