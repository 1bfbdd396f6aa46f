"""Why one file system is slower than another: what the diagnostic trials say about where the time of an operation goes.

A difference is taken apart in the blocks that hold a diagnostic trial of both sides: as a ratio, as all comparisons,
with the share of each part in its logarithm (stats.shares). The intervals of the shares of one difference hold all
together, so that whichever part is the largest, its interval holds at the level of the design. Those of other figures
are each one by itself.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from mountlab.analysis.why_frames import Why, moving, rows_of
from mountlab.core.findings import Comparison, Estimate
from mountlab.core.frames import pd
from mountlab.core.groups import by_key
from mountlab.core.layers import FEW, LAYERS, QUANTITIES, RAN_INSTEAD, THROUGH, WAITS
from mountlab.core.model import Sweep
from mountlab.core.names import cell_id, workload_label
from mountlab.stats import DifferenceShare, Ratio, compare, estimate, not_smaller, shares_of_parts
from mountlab.stats.estimates import Floats
from mountlab.stats.histograms import enough

STATISTICS = ("mean", "p99")
_LEAST_TIME = 0.05
"""Of the time of all operations: one that takes less is not spoken of."""
_MOST_OF_IT, _MORE_WAITING = 0.5, 2.0
"""Waits for a processor are the largest part of a difference, whatever else is shown, from this share on, if the slower
side also waits so many times as long each time, and for each second that it runs: else it waits longer since it waits
more often, as who sleeps and wakes up more often does, or since it runs longer."""
_RUNNING = ("processor", "reclaim")
"""Layers of an operation that runs on a processor."""
FEWEST = 2
"""Diagnostic trials without which nothing is said about a cell."""


class LayerPart(NamedTuple):
    """A part of a latency: a layer, and on whose behalf the operation waited there. '' stands for all of them."""

    layer: str
    through: str

    def holds(self, other: LayerPart) -> bool:
        """Whether another part is this one, or one of all that share its layer, or its through."""
        return self.layer in ("", other.layer) and self.through in ("", other.through)


class Where(NamedTuple):
    """Which latency it is."""

    cell: str
    operation: str
    statistic: str


Blocks = Mapping[int, Mapping[LayerPart, float]]
"""Block to the parts of a latency in it, in seconds."""


@dataclass(frozen=True, kw_only=True)
class Split:
    """The latency of one operation of a cell, and its parts."""

    filesystem: str
    workload_label: str
    """The name, with the levels of the factors."""
    operation: str
    statistic: str
    whole: Estimate
    """The latency itself."""
    parts: Mapping[LayerPart, Estimate]
    """In the order of LAYERS; without those that are 0 in every trial."""


@dataclass(frozen=True)
class PartOfDifference:
    """How one part of a latency differs, and its share of the whole difference."""

    part: LayerPart
    seconds: float
    """The mean of candidate less baseline."""
    share: DifferenceShare
    not_smaller: tuple[LayerPart, ...]
    """Other parts that are not shown to have a smaller share."""

    @property
    def is_wait_for_processor(self) -> bool:
        return self.part.layer == "run_queue"


@dataclass(frozen=True, kw_only=True)
class Cause:
    """The difference of a latency between a candidate and its baseline, and its parts, the largest share first."""

    baseline: str
    candidate: str
    workload_label: str
    """The name, with the levels of the factors."""
    operation: str
    statistic: str
    ours: Estimate
    """The latency of the candidate, in the blocks that hold both."""
    theirs: Estimate
    """That of the baseline."""
    ratio: Ratio
    """Candidate / baseline, paired by block."""
    parts: tuple[PartOfDifference, ...]
    by_layer: tuple[PartOfDifference, ...]
    """Layers, for all that they served."""
    by_through: tuple[PartOfDifference, ...]
    """On whose behalf the operation waited, in all layers."""
    waits_more: bool
    """Whether the slower side waits much longer for a processor each time, and for each second that it runs."""

    @property
    def differs(self) -> bool:
        """Whether the interval of the ratio leaves out 1."""
        return self.ratio.low > 1 or self.ratio.high < 1

    @cached_property
    def largest(self) -> PartOfDifference | None:
        """The largest part; where that may be 0, what several are together, a layer for all that it served, or all that
        was done on behalf of something else; or another that may be the largest. None where nothing is shown: the
        latencies may be the same, or all of that may be none of their difference. A wait for a processor mostly follows
        from something else: then the largest part beside it is meant, where one is shown."""
        if not self.differs:
            return None
        largest, beside_waits = self._largest(waits=True), self._largest(waits=False)
        is_cause = self.waits is not None and self.waits.share.share >= _MOST_OF_IT and self.waits_more
        return largest if is_cause or not beside_waits else beside_waits

    @property
    def as_large(self) -> tuple[PartOfDifference, ...]:
        """Other parts that may be larger than `largest`, without waits for a processor beside which it is named."""
        largest = self.largest
        if not largest:
            return ()
        with_waits = largest.is_wait_for_processor
        rivals = (each for each in self.parts if each.part in largest.not_smaller)
        return tuple(each for each in rivals if with_waits or not each.is_wait_for_processor)

    @property
    def wait_before(self) -> PartOfDifference | None:
        """All waits for a processor, shown or not, where `largest` is another part and smaller; else None."""
        largest = self.largest
        if not largest or largest.is_wait_for_processor or not self.waits:
            return None
        return self.waits if self.waits.share.share > largest.share.share else None

    @property
    def waits(self) -> PartOfDifference | None:
        """All waits for a processor; None where neither side has any."""
        return next((each for each in self.by_layer if each.is_wait_for_processor), None)

    def _largest(self, *, waits: bool) -> PartOfDifference | None:
        """Return the largest part that is shown, or sum of parts, or part that may be the largest: with waits for a
        processor, or without."""
        parts = [each for each in self.parts if waits or not each.is_wait_for_processor]
        if not parts:
            return None
        first = parts[0]
        sums = _by_share(each for each in (*self.by_layer, *self.by_through) if each.part.through != "own")
        larger = (each for each in sums if each.share.share >= first.share.share)
        larger = (each for each in larger if waits or not each.is_wait_for_processor)
        as_large = (each for each in parts if each.part in first.not_smaller)
        return next((each for each in (first, *larger, *as_large) if each.share.shown), None)


@dataclass(frozen=True, kw_only=True)
class WorkFigure:
    """One ratio of work of a cell."""

    filesystem: str
    workload_label: str
    """The name, with the levels of the factors."""
    operation: str
    """'' for the whole trial."""
    per: str
    """What it is a ratio to, in words: of the whole trial what that does, 'read', 'write', 'read or write'."""
    quantity: str
    label: str
    unit: str
    figure: Estimate
    ratio: Ratio | None
    """To the baseline, paired by block; None for the baseline itself, and where one side is 0."""


@dataclass(frozen=True)
class FewOperations:
    """An operation of a cell without a 99th percentile: a diagnostic trial holds too few."""

    cell: str
    operation: str
    fewest: int


# ── parts of a latency ───────────────────────────────────────────────────────────────────────────────────────────────


def splits(why: Why, sweep: Sweep) -> list[Split]:
    """Return the latency of each operation of each cell with its parts and their intervals over diagnostic trials, in
    the order of the sweep: workloads, operations, statistics, file systems."""
    found = [_split(where, blocks, sweep) for where, blocks in _by_block(why).items()]
    return sorted(found, key=partial(_order, sweep, operations(why)))


def _split(where: Where, blocks: Blocks, sweep: Sweep) -> Split:
    cell, mean = sweep.combinations[where.cell], partial(estimate, level=sweep.design.level, unit="s")
    columns = {part: [own.get(part, 0.0) for own in blocks.values()] for part in _parts(blocks.values())}
    return Split(
        filesystem=cell.filesystem.name,
        workload_label=cell.workload.label,
        operation=where.operation,
        statistic=where.statistic,
        whole=mean([sum(own.values()) for own in blocks.values()]),
        parts={part: mean(values) for part, values in columns.items() if any(values)},
    )


def _order(sweep: Sweep, known: Sequence[str], split: Split) -> tuple[int, int, int, int]:
    labels = [workload.label for workload in sweep.workloads]
    names = [filesystem.name for filesystem in sweep.filesystems]
    places = (known.index(split.operation), STATISTICS.index(split.statistic), names.index(split.filesystem))
    return (labels.index(split.workload_label), *places)


def _by_block(why: Why) -> dict[Where, dict[int, dict[LayerPart, float]]]:
    """Return the parts of each latency in each block, without what is withheld, and without a percentile that one of
    the trials has too few operations for: the others would be a choice among trials."""
    found: dict[Where, dict[int, dict[LayerPart, float]]] = {}
    few = {Where(each.cell, each.operation, "p99") for each in few_operations(why)}
    rows = shown(why, why.layers)
    columns = ("cell", "operation", "statistic", "block", "layer", "through", "seconds")
    for cell, operation, statistic, block, layer, through, seconds in rows_of(rows, *columns):
        where = Where(cell, operation, statistic)
        if where in few:
            continue
        own = found.setdefault(where, {}).setdefault(int(block), {})
        own[LayerPart(layer, through)] = own.get(LayerPart(layer, through), 0.0) + float(seconds)
    return {where: dict(sorted(blocks.items())) for where, blocks in found.items()}


def _parts(blocks: Iterable[Mapping[LayerPart, float]]) -> list[LayerPart]:
    """Return the parts that occur, in the order of LAYERS and of THROUGH."""
    known = {part for own in blocks for part in own}
    layers, behalf = list(LAYERS), list(THROUGH)
    return sorted(known, key=lambda part: (layers.index(part.layer), behalf.index(part.through)))


def operations(why: Why) -> list[str]:
    """Return the operations that a trace was made for, by the time that they take in all trials, the longest first."""
    taken: dict[str, float] = dict.fromkeys(why.layers["operation"], 0.0)
    for operation, count, mean in rows_of(why.traces, "operation", "operations", "traced_mean"):
        taken[operation] = taken.get(operation, 0.0) + (float(count) * mean if math.isfinite(mean) else 0.0)
    return sorted((each for each in taken if each), key=lambda each: -taken[each])


def main_operations(why: Why, cells: Collection[str]) -> set[str]:
    """Return the operations that take a good part of the time of all operations of some cells together."""
    taken = time_taken(why, cells)
    return {operation for operation, time in taken.items() if operation and time >= _LEAST_TIME * sum(taken.values())}


def time_taken(why: Why, cells: Collection[str]) -> dict[str, float]:
    """Return the seconds that each operation takes in all diagnostic trials of some cells together."""
    taken: dict[str, float] = {}
    for cell, operation, count, mean in rows_of(why.traces, "cell", "operation", "operations", "traced_mean"):
        if cell in cells and math.isfinite(mean):
            taken[operation] = taken.get(operation, 0.0) + float(count) * mean
    return taken


# ── shares of a difference ───────────────────────────────────────────────────────────────────────────────────────────


def causes(why: Why, sweep: Sweep, comparisons: Iterable[Comparison]) -> list[Cause]:
    """Return what lies between each candidate and its baseline, of the main operations, for each pair that the run
    compares: the largest relative difference first, and what is not shown to differ last."""
    known, ordered, waits = _by_block(why), operations(why), _waits(why)
    found = [
        cause
        for pair in dict.fromkeys(map(_pair, comparisons))
        for main in [main_operations(why, pair.cells)]
        for operation in (each for each in ordered if each in main)
        for statistic in STATISTICS
        if (cause := _cause(known, waits, pair, operation, statistic, sweep.design.level))
    ]
    return sorted(found, key=lambda each: (each.largest is None, not each.differs, -_relative(each)))


class _ComparedCells(NamedTuple):
    """What is compared."""

    baseline: str
    candidate: str
    workload_label: str

    @property
    def cells(self) -> tuple[str, str]:
        """Candidate and baseline."""
        return cell_id(self.candidate, self.workload_label), cell_id(self.baseline, self.workload_label)


def _pair(comparison: Comparison) -> _ComparedCells:
    label = workload_label(comparison.workload, comparison.factors)
    return _ComparedCells(comparison.baseline, comparison.candidate, label)


def _relative(cause: Cause) -> float:
    ours, theirs = cause.ours.mean, cause.theirs.mean
    return abs(math.log(ours / theirs)) if min(ours, theirs) > 0 else 0.0


def _cause(
    known: Mapping[Where, Blocks],
    waits: Mapping[tuple[str, str], float],
    pair: _ComparedCells,
    operation: str,
    statistic: str,
    level: float,
) -> Cause | None:
    """Return one difference taken apart; None where no two blocks hold both sides. `waits`: cell and operation to how
    often that waits for a processor."""
    sides = [known.get(Where(cell, operation, statistic), {}) for cell in pair.cells]
    blocks = sorted(
        block for block in sides[0].keys() & sides[1].keys() if all(any(own[block].values()) for own in sides)
    )
    if len(blocks) < FEWEST:
        return None
    parts = _parts(own[block] for own in sides for block in blocks)
    ours, theirs = (np.array([[own[block].get(part, 0.0) for block in blocks] for part in parts]) for own in sides)
    layers = [LayerPart(layer, "") for layer in dict.fromkeys(part.layer for part in parts)]
    behalf = [LayerPart("", through) for through in THROUGH if through in {part.through for part in parts}]
    taken = _taken_apart(parts, (*parts, *layers, *behalf), ours, theirs, level)
    often = [waits.get((cell, operation), math.nan) for cell in pair.cells]
    slower_last = sorted(zip((ours, theirs), often, strict=True), key=lambda side: float(side[0].sum()))
    wholes = [side.sum(axis=0).tolist() for side in (ours, theirs)]
    return Cause(
        **pair._asdict(),
        operation=operation,
        statistic=statistic,
        ours=estimate(wholes[0], level=level, unit="s"),
        theirs=estimate(wholes[1], level=level, unit="s"),
        ratio=compare(list(zip(*wholes, strict=True)), level=level),
        parts=_by_share(taken[part] for part in parts),
        by_layer=_by_share(taken[layer] for layer in layers),
        by_through=_by_share(taken[through] for through in behalf),
        waits_more=_waits_more(parts, *slower_last),
    )


def _taken_apart(
    parts: Sequence[LayerPart], names: Sequence[LayerPart], ours: Floats, theirs: Floats, level: float
) -> dict[LayerPart, PartOfDifference]:
    """Return how each of `names`, a part or a sum of parts, differs. `ours`, `theirs`: seconds, (parts, blocks)."""
    groups = [[row for row, part in enumerate(parts) if name.holds(part)] for name in names]
    means = (ours - theirs).mean(axis=1)
    shares = shares_of_parts(ours, theirs, groups, level=level)
    rivals = not_smaller(ours, theirs, groups, level=level)
    return {
        name: PartOfDifference(name, float(means[group].sum()), share, tuple(parts[row] for row in rows))
        for name, group, share, rows in zip(names, groups, shares, rivals, strict=True)
    }


def _waits(why: Why) -> dict[tuple[str, str], float]:
    """Return cell and operation to how often that waits for a processor, the mean over diagnostic trials."""
    found = by_key(
        ((cell, operation), float(value))
        for cell, operation, quantity, value in rows_of(shown(why, why.work), "cell", "operation", "quantity", "value")
        if quantity == WAITS
    )
    return {key: sum(values) / len(values) for key, values in found.items()}


def _waits_more(parts: Sequence[LayerPart], faster: tuple[Floats, float], slower: tuple[Floats, float]) -> bool:
    """Return whether the slower side waits for a processor much longer than it would as one that waits more often, or
    runs longer. `faster`, `slower`: the seconds of each part in each block, and how often an operation waits, NaN where
    that is not known: then by how long it runs alone."""
    waits, runs = (np.array([part.layer in layers for part in parts]) for layers in (("run_queue",), _RUNNING))
    (before, often_before), (after, often) = faster, slower
    waited, expected = float(after[waits].sum()), _MORE_WAITING * float(before[waits].sum())
    by_running = waited * float(before[runs].sum()) >= expected * float(after[runs].sum())
    by_times = math.isnan(often + often_before) or waited * often_before >= expected * often
    return by_running and by_times


def _by_share(parts: Iterable[PartOfDifference]) -> tuple[PartOfDifference, ...]:
    return tuple(sorted(parts, key=lambda each: -each.share.share if math.isfinite(each.share.share) else math.inf))


# ── ratios of work ───────────────────────────────────────────────────────────────────────────────────────────────────


class _WorkKey(NamedTuple):
    operation: str
    quantity: str
    label: str
    unit: str


def work(why: Why, sweep: Sweep) -> list[WorkFigure]:
    """Return each ratio of work of each cell, with its interval over diagnostic trials, and its ratio to that of the
    baseline: workloads in the order of the sweep, quantities in that of QUANTITIES, file systems in theirs."""
    values, per = _work_by_block(why), {each.label: _moving(why, sweep, each.label) for each in sweep.workloads}
    figures = sorted({figure for figure, _ in values}, key=_work_order)
    return [
        found
        for workload in sweep.workloads
        for figure in figures
        for filesystem in sweep.filesystems
        if (found := _work_figure(values, sweep, figure, workload.label, filesystem.name, per[workload.label]))
    ]


def _moving(why: Why, sweep: Sweep, workload: str) -> str:
    """Return 'read' or 'write' of a workload that does hardly anything else of the two, else 'read or write';
    'operation' of one that does hardly any of both."""
    cells = [cell.id for cell in sweep.cells if cell.workload.label == workload]
    counts = moving(why.traces[why.traces["cell"].isin(cells)]).groupby("operation")["operations"].sum()
    if not set(counts.index) <= {"read", "write"}:
        return "operation"
    reads, writes = (int(counts.get(name, 0)) for name in ("read", "write"))
    alone = min(reads, writes) < FEW * max(reads, writes)
    return ("read" if reads > writes else "write") if alone else "read or write"


def _work_by_block(why: Why) -> dict[tuple[_WorkKey, str], dict[int, float]]:
    found: dict[tuple[_WorkKey, str], dict[int, float]] = {}
    columns = ("operation", "quantity", "label", "unit", "cell", "block", "value")
    for operation, quantity, label, unit, cell, block, value in rows_of(shown(why, why.work), *columns):
        if math.isfinite(value) and quantity != RAN_INSTEAD:
            found.setdefault((_WorkKey(operation, quantity, label, unit), cell), {})[int(block)] = float(value)
    return found


def _work_order(figure: _WorkKey) -> tuple[str, int, str, str]:
    known = list(QUANTITIES)
    place = known.index(figure.quantity) if figure.quantity in QUANTITIES else len(known)
    return figure.operation, place, figure.quantity, figure.label


def _work_figure(
    values: Mapping[tuple[_WorkKey, str], Mapping[int, float]],
    sweep: Sweep,
    figure: _WorkKey,
    workload: str,
    filesystem: str,
    per: str,
) -> WorkFigure | None:
    own = values.get((figure, cell_id(filesystem, workload)))
    if not own:
        return None
    theirs = (
        values.get((figure, cell_id(sweep.baseline, workload)), {}) if sweep.baseline not in (None, filesystem) else {}
    )
    pairs = [(own[block], theirs[block]) for block in sorted(own.keys() & theirs.keys())]
    known = pairs and all(min(pair) > 0 for pair in pairs)
    mean = estimate(list(own.values()), level=sweep.design.level, unit=figure.unit)
    if figure.quantity == "share_of_ios":
        mean = replace(mean, high=min(mean.high, 1.0))
    return WorkFigure(
        filesystem=filesystem,
        workload_label=workload,
        **figure._asdict(),
        per=figure.operation or per,
        figure=mean,
        ratio=compare(pairs, level=sweep.design.level) if known else None,
    )


def behind(cause: Cause, figures: Iterable[WorkFigure], quantity: str) -> tuple[WorkFigure, WorkFigure] | None:
    """Return a ratio of work of the baseline and of the candidate of a difference: that of its operation, else that of
    the whole trial. None where one is not known."""
    own = {
        (each.operation, each.filesystem): each
        for each in figures
        if (each.workload_label, each.quantity, each.label) == (cause.workload_label, quantity, "")
    }
    for operation in (cause.operation, ""):
        sides = own.get((operation, cause.baseline)), own.get((operation, cause.candidate))
        if sides[0] and sides[1]:
            return sides[0], sides[1]
    return None


# ── what is not shown ────────────────────────────────────────────────────────────────────────────────────────────────


def shown(why: Why, frame: pd.DataFrame) -> pd.DataFrame:
    """Leave out the rows of what is withheld. A row for the whole trial is, where all of the trial's operations are."""
    hidden, kept = set[tuple[str, str]](), set[str]()
    for trial, operation, reason in rows_of(why.traces, "trial_id", "operation", "withheld"):
        if reason:
            hidden.add((trial, operation))
        else:
            kept.add(trial)
    whole = {trial for trial, _ in hidden} - kept
    own = [
        (trial in whole) or (trial, operation) in hidden or (trial, "") in hidden
        for trial, operation in rows_of(frame, "trial_id", "operation")
    ]
    return frame[~np.array(own, dtype=bool)]


def few_operations(why: Why) -> list[FewOperations]:
    """Return the operations of cells that have no 99th percentile, by the rule of all percentiles (`enough`)."""
    fewest: dict[tuple[str, str], int] = {}
    for cell, operation, count, reason in rows_of(why.traces, "cell", "operation", "operations", "withheld"):
        if not reason:
            fewest[cell, operation] = min(fewest.get((cell, operation), count), count)
    return [FewOperations(*key, count) for key, count in fewest.items() if not enough(count, 99)]


# ── as frames ────────────────────────────────────────────────────────────────────────────────────────────────────────


def split_frame(found: Iterable[Split]) -> pd.DataFrame:
    """Return a row for each part of each latency: mean and interval in seconds. `workload` holds the label."""
    columns = ["filesystem", "workload", "operation", "statistic", "layer", "through", "mean", "low", "high", "n"]
    rows = [
        (s.filesystem, s.workload_label, s.operation, s.statistic, *part, own.mean, own.low, own.high, own.n)
        for s in found
        for part, own in s.parts.items()
    ]
    return pd.DataFrame(rows, columns=columns)


def cause_frame(found: Iterable[Cause]) -> pd.DataFrame:
    """Return a row for each part of each difference, with its share and the interval of that; `layer` or `through` is
    '' where it stands for all. `workload` holds the label."""
    columns = ["baseline", "candidate", "workload", "operation", "statistic", "layer", "through", "difference", "share",
               "low", "high", "n", "shown"]  # fmt: skip
    rows = [
        (c.baseline, c.candidate, c.workload_label, c.operation, c.statistic, *own.part, own.seconds, own.share.share,
         own.share.low, own.share.high, own.share.n, c.differs and own.share.shown)
        for c in found
        for own in (*c.parts, *c.by_layer, *c.by_through)
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def work_frame(found: Iterable[WorkFigure]) -> pd.DataFrame:
    """Return a row for each ratio of work of each cell: mean and interval, and the ratio to the baseline. `workload`
    holds the label."""
    columns = ["filesystem", "workload", "operation", "quantity", "label", "unit", "mean", "low", "high", "n", "ratio",
               "ratio_low", "ratio_high"]  # fmt: skip
    none = (math.nan,) * 3
    rows = [
        (w.filesystem, w.workload_label, w.operation, w.quantity, w.label, w.unit, w.figure.mean, w.figure.low,
         w.figure.high, w.figure.n, *((w.ratio.ratio, w.ratio.low, w.ratio.high) if w.ratio else none))
        for w in found
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)
