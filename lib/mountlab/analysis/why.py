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
from itertools import product
from typing import NamedTuple

import numpy as np

from mountlab.analysis.why_frames import Why, moving
from mountlab.core.findings import Comparison, Estimate
from mountlab.core.frames import pd, rows_of
from mountlab.core.groups import by_key
from mountlab.core.layers import FEW, LAYERS, OF_THE_DEVICE, QUANTITIES, RAN_INSTEAD, SHARES, THROUGH, WAITS
from mountlab.core.model import Filesystem, Sweep, Workload
from mountlab.core.names import cell_id, workload_label
from mountlab.stats import DifferenceShare, Ratio, compare, estimate, not_smaller, shares_of_parts
from mountlab.stats.estimates import Floats
from mountlab.stats.histograms import enough
from mountlab.sweep.beside import neighbours_of, place_of

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
        rivals = (part for part in self.parts if part.part in largest.not_smaller)
        return tuple(part for part in rivals if with_waits or not part.is_wait_for_processor)

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
        return next((part for part in self.by_layer if part.is_wait_for_processor), None)

    def _largest(self, *, waits: bool) -> PartOfDifference | None:
        """Return the largest part that is shown, or sum of parts, or part that may be the largest: with waits for a
        processor, or without."""
        parts = [part for part in self.parts if waits or not part.is_wait_for_processor]
        if not parts:
            return None
        first = parts[0]
        sums = _by_share(part for part in (*self.by_layer, *self.by_through) if part.part.through != "own")
        larger = (part for part in sums if part.share.share >= first.share.share)
        larger = (part for part in larger if waits or not part.is_wait_for_processor)
        as_large = (part for part in parts if part.part in first.not_smaller)
        return next((part for part in (first, *larger, *as_large) if part.share.shown), None)


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
    labels = [workload.label for workload in sweep.workloads]
    names = [filesystem.name for filesystem in sweep.filesystems]
    order = operations(why)

    def places(split: Split) -> tuple[int, ...]:
        of_operation = order.index(split.operation), STATISTICS.index(split.statistic)
        return labels.index(split.workload_label), *of_operation, names.index(split.filesystem)

    latencies = _by_block(why).items()
    splits = [_split(where, blocks, sweep) for where, blocks in latencies if sweep.has_cell(where.cell)]
    return sorted(splits, key=places)


def _split(where: Where, blocks: Blocks, sweep: Sweep) -> Split:
    cell, mean = sweep.combinations[where.cell], partial(estimate, level=sweep.design.level, unit="s")
    columns = {part: [parts.get(part, 0.0) for parts in blocks.values()] for part in _parts(blocks.values())}
    return Split(
        filesystem=cell.filesystem.name,
        workload_label=cell.workload.label,
        operation=where.operation,
        statistic=where.statistic,
        whole=mean([sum(parts.values()) for parts in blocks.values()]),
        parts={part: mean(values) for part, values in columns.items() if any(values)},
    )


def _by_block(why: Why) -> dict[Where, dict[int, dict[LayerPart, float]]]:
    """Return the parts of each latency in each block, without what is withheld, and without a percentile that one of
    the trials has too few operations for: the others would be a choice among trials."""
    latencies: dict[Where, dict[int, dict[LayerPart, float]]] = {}
    few = {Where(row.cell, row.operation, "p99") for row in few_operations(why)}
    rows = shown(why, why.layers)
    columns = ("cell", "operation", "statistic", "block", "layer", "through", "seconds")
    for cell, operation, statistic, block, layer, through, seconds in rows_of(rows, *columns):
        where = Where(cell, operation, statistic)
        if where in few:
            continue
        parts = latencies.setdefault(where, {}).setdefault(int(block), {})
        parts[LayerPart(layer, through)] = parts.get(LayerPart(layer, through), 0.0) + float(seconds)
    return {where: dict(sorted(blocks.items())) for where, blocks in latencies.items()}


def _parts(blocks: Iterable[Mapping[LayerPart, float]]) -> list[LayerPart]:
    """Return the parts that occur, in the order of LAYERS and of THROUGH."""
    layers, behalf = list(LAYERS), list(THROUGH)
    parts = set[LayerPart]().union(*blocks)
    return sorted(parts, key=lambda part: (layers.index(part.layer), behalf.index(part.through)))


def operations(why: Why) -> list[str]:
    """Return the operations that a trace was made for, by the time that they take in all trials, the longest first."""
    times = dict.fromkeys((*why.layers["operation"], *why.traces["operation"]), 0.0)
    times |= time_by_operation(why, set(why.traces["cell"]))
    return sorted(filter(None, times), key=lambda operation: -times[operation])


def main_operations(why: Why, cells: Collection[str]) -> set[str]:
    """Return the operations that take a good part of the time of all operations of some cells together."""
    times = time_by_operation(why, cells)
    return {operation for operation, time in times.items() if operation and time >= _LEAST_TIME * sum(times.values())}


def time_by_operation(why: Why, cells: Collection[str]) -> dict[str, float]:
    """Return the seconds that each operation takes in all diagnostic trials of some cells together."""
    times: dict[str, float] = {}
    for cell, operation, count, mean in rows_of(why.traces, "cell", "operation", "operations", "traced_mean"):
        if cell in cells and math.isfinite(mean):
            times[operation] = times.get(operation, 0.0) + float(count) * mean
    return times


# ── shares of a difference ───────────────────────────────────────────────────────────────────────────────────────────


def causes(why: Why, sweep: Sweep, comparisons: Iterable[Comparison]) -> list[Cause]:
    """Return what lies between each candidate and its baseline, of the main operations, for each pair that the run
    compares: the largest relative difference first, and what is not shown to differ last."""
    latencies, ordered, waits = _by_block(why), operations(why), _waits(why)
    causes = []
    pairs = (_ComparedCells(c.baseline, c.candidate, workload_label(c.workload, c.factors)) for c in comparisons)
    for pair in dict.fromkeys(pairs):
        main = main_operations(why, pair.cells)
        for operation, statistic in product((name for name in ordered if name in main), STATISTICS):
            if cause := _cause(latencies, waits, pair, operation, statistic, sweep.design.level):
                causes.append(cause)

    def order(cause: Cause) -> tuple[bool, bool, float]:
        ours, theirs = cause.ours.mean, cause.theirs.mean
        size = abs(math.log(ours / theirs)) if min(ours, theirs) > 0 else 0.0
        return cause.largest is None, not cause.differs, -size

    return sorted(causes, key=order)


class _ComparedCells(NamedTuple):
    """What is compared."""

    baseline: str
    candidate: str
    workload_label: str

    @property
    def cells(self) -> tuple[str, str]:
        """Candidate and baseline."""
        return cell_id(self.candidate, self.workload_label), cell_id(self.baseline, self.workload_label)


def _cause(
    latencies: Mapping[Where, Blocks],
    waits: Mapping[tuple[str, str], float],
    pair: _ComparedCells,
    operation: str,
    statistic: str,
    level: float,
) -> Cause | None:
    """Return one difference taken apart; None where no two blocks hold both sides. `waits`: cell and operation to how
    often that waits for a processor."""
    sides = [latencies.get(Where(cell, operation, statistic), {}) for cell in pair.cells]
    blocks = sorted(
        block for block in sides[0].keys() & sides[1].keys() if all(any(side[block].values()) for side in sides)
    )
    if len(blocks) < FEWEST:
        return None
    parts = _parts(side[block] for side in sides for block in blocks)
    ours, theirs = (np.array([[side[block].get(part, 0.0) for block in blocks] for part in parts]) for side in sides)
    layers = [LayerPart(layer, "") for layer in dict.fromkeys(part.layer for part in parts)]
    behalf = [LayerPart("", through) for through in THROUGH if through in {part.through for part in parts}]
    shares = _taken_apart(parts, (*parts, *layers, *behalf), ours, theirs, level)
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
        parts=_by_share(shares[part] for part in parts),
        by_layer=_by_share(shares[layer] for layer in layers),
        by_through=_by_share(shares[through] for through in behalf),
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
    counts = by_key(
        ((cell, operation), float(value))
        for cell, operation, quantity, value in rows_of(shown(why, why.work), "cell", "operation", "quantity", "value")
        if quantity == WAITS
    )
    return {key: sum(values) / len(values) for key, values in counts.items()}


def _waits_more(parts: Sequence[LayerPart], faster: tuple[Floats, float], slower: tuple[Floats, float]) -> bool:
    """Return whether the slower side waits for a processor much longer than it would as one that waits more often, or
    runs longer. `faster`, `slower`: the seconds of each part in each block, and how often an operation waits, NaN where
    that is not known: then by how long it runs alone."""
    waits, runs = (np.array([part.layer in layers for part in parts]) for layers in (("run_queue",), _RUNNING))
    (before, often_before), (after, often) = faster, slower
    waited, needed_wait = float(after[waits].sum()), _MORE_WAITING * float(before[waits].sum())
    by_running = waited * float(before[runs].sum()) >= needed_wait * float(after[runs].sum())
    by_times = math.isnan(often + often_before) or waited * often_before >= needed_wait * often
    return by_running and by_times


def _by_share(parts: Iterable[PartOfDifference]) -> tuple[PartOfDifference, ...]:
    return tuple(sorted(parts, key=lambda part: -part.share.share if math.isfinite(part.share.share) else math.inf))


# ── ratios of work ───────────────────────────────────────────────────────────────────────────────────────────────────


class _WorkKey(NamedTuple):
    operation: str
    quantity: str
    label: str
    unit: str


def work(why: Why, sweep: Sweep) -> list[WorkFigure]:
    """Return each ratio of work of each cell, with its interval over diagnostic trials, and its ratio to that of the
    baseline; without what a device did for a neighbour as well. Workloads come in the order of the sweep, quantities in
    that of QUANTITIES, file systems in theirs."""
    values = _work_by_block(why)
    keys = sorted({key for key, _ in values}, key=_work_order)
    figures = []
    for workload in sweep.workloads:
        per = _moving(why, sweep, workload.label)
        for key, filesystem in product(keys, sweep.filesystems):
            if key.quantity in OF_THE_DEVICE and has_neighbour(sweep, workload, filesystem):
                continue
            if figure := _work_figure(values, sweep, key, workload.label, filesystem.name, per):
                figures.append(figure)
    return figures


def has_neighbour(sweep: Sweep, workload: Workload, filesystem: Filesystem) -> bool:
    """Return whether a neighbour of a workload is at work on the file system under test itself."""
    places = (place_of(sweep, neighbour, filesystem) for neighbour in neighbours_of(sweep, workload))
    return any(place.name == filesystem.name for place in places)


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
    values: dict[tuple[_WorkKey, str], dict[int, float]] = {}
    columns = ("operation", "quantity", "label", "unit", "cell", "block", "value")
    for operation, quantity, label, unit, cell, block, value in rows_of(shown(why, why.work), *columns):
        if math.isfinite(value) and quantity != RAN_INSTEAD:
            values.setdefault((_WorkKey(operation, quantity, label, unit), cell), {})[int(block)] = float(value)
    return values


def _work_order(key: _WorkKey) -> tuple[str, int, str, str]:
    order = list(QUANTITIES)
    place = order.index(key.quantity) if key.quantity in QUANTITIES else len(order)
    return key.operation, place, key.quantity, key.label


def _work_figure(
    values: Mapping[tuple[_WorkKey, str], Mapping[int, float]],
    sweep: Sweep,
    key: _WorkKey,
    workload: str,
    filesystem: str,
    per: str,
) -> WorkFigure | None:
    ours = values.get((key, cell_id(filesystem, workload)))
    if not ours:
        return None
    theirs: Mapping[int, float] = {}
    if sweep.baseline is not None and sweep.baseline != filesystem:
        theirs = values.get((key, cell_id(sweep.baseline, workload)), {})
    pairs = [(ours[block], theirs[block]) for block in sorted(ours.keys() & theirs.keys())]
    has_ratio = pairs and all(min(pair) > 0 for pair in pairs)
    mean = estimate(list(ours.values()), level=sweep.design.level, unit=key.unit)
    if key.quantity in SHARES:
        mean = replace(mean, high=min(mean.high, 1.0))
    return WorkFigure(
        filesystem=filesystem,
        workload_label=workload,
        **key._asdict(),
        per=key.operation or per,
        figure=mean,
        ratio=compare(pairs, level=sweep.design.level) if has_ratio else None,
    )


def behind(cause: Cause, figures: Iterable[WorkFigure], quantity: str) -> tuple[WorkFigure, WorkFigure] | None:
    """Return a ratio of work of the baseline and of the candidate of a difference: that of its operation, else that of
    the whole trial. None where one is not known."""
    by_operation = {
        (figure.operation, figure.filesystem): figure
        for figure in figures
        if (figure.workload_label, figure.quantity, figure.label) == (cause.workload_label, quantity, "")
    }
    for operation in (cause.operation, ""):
        sides = by_operation.get((operation, cause.baseline)), by_operation.get((operation, cause.candidate))
        if sides[0] and sides[1]:
            return sides[0], sides[1]
    return None


# ── what is not shown ────────────────────────────────────────────────────────────────────────────────────────────────


def shown(why: Why, frame: pd.DataFrame) -> pd.DataFrame:
    """Leave out the rows of what is withheld. A row for the whole trial is, where all of the trial's operations are."""
    hidden, visible = set[tuple[str, str]](), set[str]()
    for trial, operation, reason in rows_of(why.traces, "trial_id", "operation", "withheld"):
        if reason:
            hidden.add((trial, operation))
        else:
            visible.add(trial)
    whole = {trial for trial, _ in hidden} - visible
    is_hidden = [
        (trial in whole) or (trial, operation) in hidden or (trial, "") in hidden
        for trial, operation in rows_of(frame, "trial_id", "operation")
    ]
    return frame[~np.array(is_hidden, dtype=bool)]


def few_operations(why: Why) -> list[FewOperations]:
    """Return the operations of cells that have no 99th percentile, by the rule of all percentiles (`enough`)."""
    fewest: dict[tuple[str, str], int] = {}
    for cell, operation, count, reason in rows_of(why.traces, "cell", "operation", "operations", "withheld"):
        if not reason:
            fewest[cell, operation] = min(fewest.get((cell, operation), count), count)
    return [FewOperations(*key, count) for key, count in fewest.items() if not enough(count, 99)]


# ── as frames ────────────────────────────────────────────────────────────────────────────────────────────────────────


def split_frame(splits: Iterable[Split]) -> pd.DataFrame:
    """Return a row for each part of each latency: mean and interval in seconds. `workload` holds the label."""
    columns = ["filesystem", "workload", "operation", "statistic", "layer", "through", "mean", "low", "high", "n"]
    rows = [
        (s.filesystem, s.workload_label, s.operation, s.statistic, *part, mean.mean, mean.low, mean.high, mean.n)
        for s in splits
        for part, mean in s.parts.items()
    ]
    return pd.DataFrame(rows, columns=columns)


def cause_frame(causes: Iterable[Cause]) -> pd.DataFrame:
    """Return a row for each part of each difference, with its share and the interval of that; `layer` or `through` is
    '' where it stands for all. `workload` holds the label."""
    columns = ["baseline", "candidate", "workload", "operation", "statistic", "layer", "through", "difference", "share",
               "low", "high", "n", "shown"]  # fmt: skip
    rows = [
        (c.baseline, c.candidate, c.workload_label, c.operation, c.statistic, *row.part, row.seconds, row.share.share,
         row.share.low, row.share.high, row.share.n, c.differs and row.share.shown)
        for c in causes
        for row in (*c.parts, *c.by_layer, *c.by_through)
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)


def work_frame(figures: Iterable[WorkFigure]) -> pd.DataFrame:
    """Return a row for each ratio of work of each cell: mean and interval, and the ratio to the baseline. `workload`
    holds the label."""
    columns = ["filesystem", "workload", "operation", "quantity", "label", "unit", "mean", "low", "high", "n", "ratio",
               "ratio_low", "ratio_high"]  # fmt: skip
    none = (math.nan,) * 3
    rows = [
        (w.filesystem, w.workload_label, w.operation, w.quantity, w.label, w.unit, w.figure.mean, w.figure.low,
         w.figure.high, w.figure.n, *((w.ratio.ratio, w.ratio.low, w.ratio.high) if w.ratio else none))
        for w in figures
    ]  # fmt: skip
    return pd.DataFrame(rows, columns=columns)
