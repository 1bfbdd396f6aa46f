"""From measurements to estimates and comparisons: which values form a sample, and which pairs a comparison."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mountlab.analysis import capacity
from mountlab.analysis.compare.comparisons import Sides, comparisons_of
from mountlab.core.findings import Comparison, NoiseSource
from mountlab.core.frames import pd
from mountlab.core.metrics import COMPARED_PERCENTILES, PERCENT_OF, Metric, known_metric
from mountlab.core.model import Cell, Filesystem, Measurement, Sweep, Trial, Workload
from mountlab.core.names import cell_id
from mountlab.core.units import NS_PER_S
from mountlab.filesystems import FAMILIES
from mountlab.stats import adjust_comparisons, compare_rows, estimate_samples
from mountlab.stats.capacity_ratios import searched_ratios
from mountlab.stats.censored import CensoredEstimate, estimate_censored, ranked_ratios
from mountlab.stats.comparisons import Flags, Ratios, Steps
from mountlab.stats.histograms import Histogram, enough, percentile, step_ns
from mountlab.stats.noise import noise_sources
from mountlab.stats.sequential import level_after
from mountlab.tools import TOOLS

MEASUREMENT_COLUMNS = (
    "trial_id", "block", "warmup", "cell", "filesystem", "workload", "tool", "factors", "metric", "label", "unit",
    "value", "step",
)  # fmt: skip
_DTYPES = {"block": "int64", "warmup": "bool", "factors": "object", "value": "float64", "step": "float64"}
"""Of these columns; the others are text. A frame without rows tells no types by itself."""
FIGURE = ("cell", "metric", "label")
"""What tells the figures of a run apart."""
_ESTIMATE_TAIL = (
    "metric", "label", "unit", "n", "censored", "mean", "low", "high", "sd", "cv", "level", "method", "cell",
)  # fmt: skip
OF_A_MOUNT = ("mkfs_time", "mount_time")
"""Metrics that no trial bounds: they belong to a mount."""
Censored = Mapping[str, frozenset[int]]
"""Cell to the counted blocks in which its trial ran into the time limit: trials that are known to be slow, by how much
is not known."""
NONE_CENSORED: Censored = {}
Metrics = Mapping[str, tuple[str, ...]]
"""Workload label to metrics."""


def measurement_frame(rows: Iterable[tuple[Trial, Measurement]]) -> pd.DataFrame:
    """Return one row a measurement, columns as MEASUREMENT_COLUMNS; factors is a mapping of option to value."""
    pairs = list(rows)  # column by column: a mapping for each of a hundred thousand rows would take seconds
    trials, measurements = [trial for trial, _ in pairs], [measurement for _, measurement in pairs]
    columns: dict[str, list[Any]] = {
        name: [getattr(trial, name) for trial in trials] for name in MEASUREMENT_COLUMNS[:8]
    }
    columns["factors"] = [dict(trial.factors) for trial in trials]
    columns |= {name: [getattr(each, name) for each in measurements] for name in MEASUREMENT_COLUMNS[8:]}
    frame = pd.DataFrame(columns, columns=list(MEASUREMENT_COLUMNS))
    return frame if pairs else frame.astype({name: _DTYPES.get(name, "str") for name in MEASUREMENT_COLUMNS})


def without_partial(measurements: pd.DataFrame) -> pd.DataFrame:
    """Leave out each percentile that a counted trial of its cell lacks: the others would be a choice among trials.

    A trial lacks a percentile that too few of its I/Os lie above (stats.histograms.enough). Columns as
    MEASUREMENT_COLUMNS.
    """
    rows = measurements[measurements["metric"].isin(PERCENT_OF)]
    if rows.empty:
        return measurements
    trials = counted(measurements)[["cell", "trial_id"]].drop_duplicates().groupby("cell").size()
    counts = (~rows["warmup"].astype(bool)).astype(int)
    have = counts.groupby([rows[key] for key in ("cell", "metric", "label")]).transform("sum")
    return measurements.drop(index=rows.index[have < rows["cell"].map(trials).fillna(0)])


def factor_names(sweep: Sweep) -> list[str]:
    """Return every swept option, in the order of the sweep file."""
    return list(dict.fromkeys(name for workload in sweep.workloads for name in workload.factors))


def answer_metrics(sweep: Sweep, measurements: pd.DataFrame) -> dict[str, tuple[str, ...]]:
    """Return workload label to the metrics that the answer is about: those of the sweep that it has, or its tool's
    own."""
    if sweep.searches:
        return dict.fromkeys((workload.label for workload in sweep.workloads), (capacity.METRIC,))
    present = _metrics_of(sweep, measurements)
    wanted = {w.label: tuple(metric for metric in sweep.metrics if metric in present[w.label]) for w in sweep.workloads}
    # Of a workload that others ran the options may not be known, by which a tool chooses.
    own = {w.label: () if sweep.imported else TOOLS[w.tool].main_metrics(w) for w in sweep.workloads}
    return {w.label: wanted[w.label] or own[w.label] for w in sweep.workloads}


def _metrics_of(sweep: Sweep, measurements: pd.DataFrame) -> dict[str, set[str]]:
    """Return workload label to the metrics that any of its cells has."""
    by_cell: dict[str, set[str]] = {}
    for name, metric in _rows_of(measurements[["cell", "metric"]].drop_duplicates()):
        by_cell.setdefault(name, set()).add(metric)
    present: dict[str, set[str]] = {workload.label: set() for workload in sweep.workloads}
    for cell in sweep.cells:
        present[cell.workload.label] |= by_cell.get(cell.id, set())
    return present


def _rows_of(frame: pd.DataFrame) -> Iterable[tuple[Any, ...]]:
    """Return the rows; by lists, since pandas takes several times as long to go through columns of text one by one."""
    return zip(*(frame[name].tolist() for name in frame), strict=True)


def counted(measurements: pd.DataFrame) -> pd.DataFrame:
    """Without the warm-up trials."""
    return measurements[~measurements["warmup"].astype(bool)]


def by_block(measurements: pd.DataFrame) -> dict[tuple[str, str, str], dict[int, float]]:
    """(cell, metric, label) to block to value, blocks in the order of the rows."""
    found: dict[tuple[str, str, str], dict[int, float]] = {}
    for cell, metric, label, block, value in _rows_of(measurements[["cell", "metric", "label", "block", "value"]]):
        found.setdefault((cell, metric, label), {})[int(block)] = float(value)
    return found


def log_ratios(ours: Mapping[int, float], theirs: Mapping[int, float]) -> dict[int, float]:
    """Block to the logarithm of ours / theirs, in each block that holds both, in the order of blocks; what is not
    positive has no ratio."""
    pairs = [(block, ours[block], theirs[block]) for block in sorted(ours.keys() & theirs.keys())]
    return {block: math.log(a) - math.log(b) for block, a, b in pairs if min(a, b) > 0}


def censored_blocks(trials: Iterable[Trial]) -> dict[str, frozenset[int]]:
    """Return the counted blocks of each cell in which its trial ran into the time limit; without the cells that have
    none."""
    found: dict[str, set[int]] = {}
    for trial in trials:
        if trial.status == "timeout" and not trial.warmup:
            found.setdefault(trial.cell, set()).add(int(trial.block))
    return {cell: frozenset(blocks) for cell, blocks in found.items()}


def late_trials(censored: Censored, cell: str, metric: str) -> int:
    """Return how many counted trials of a cell ran into the time limit and so have no figure of this metric."""
    return 0 if metric in OF_A_MOUNT else len(censored.get(cell, ()))


def censored_estimate(metric: Metric, values: NDArray[np.float64], late: int, level: float) -> CensoredEstimate:
    """Return the median of a metric over values and so many trials that ran into the time limit."""
    return estimate_censored(values, late, level=level, worst=metric.worst)


def worse_side(metrics: Sequence[Metric]) -> NDArray[np.float64]:
    """Of each metric 1 where more is worse, -1 where less is, NaN where a time limit says nothing of it."""
    worst = np.array([metric.worst for metric in metrics])
    return np.where(np.isnan(worst), math.nan, np.where(worst > 0, 1.0, -1.0))


def estimate_frame(
    sweep: Sweep, measurements: pd.DataFrame, *, run_id: str, box: str, censored: Censored = NONE_CENSORED
) -> pd.DataFrame:
    """Return one row a cell, metric and label, with the columns of estimates.csv; cells in the order of the sweep. A
    cell with trials that ran into the time limit has a median over all of them in the place of its figure
    (stats.censored); one without any other trial has rows without a figure.

    Of a search there is the capacity: its trials differ in their rate, and have no other figure together.

    The statistic is that of `design.estimate`. After a stopping rule the intervals are computed at the level that then
    covers what the design's level says. All samples are computed at once.
    """
    factors, design = factor_names(sweep), sweep.design
    alike = measurements[measurements["metric"].isin(OF_A_MOUNT)] if sweep.searches else measurements
    samples = _samples(alike, (*FIGURE, "unit"), [cell.id for cell in sweep.cells])
    within, steps = level_after(sweep.correction, design.level), _steps(samples)
    labels = (sweep.cells[place].workload.label for place in samples.places)
    pools = _pools(sweep, zip(labels, *(samples.keys[name] for name in FIGURE[1:]), strict=True))
    known = partial(estimate_samples, level=within, statistic=design.estimate, pools=pools)
    found = known(samples.values, samples.sizes, steps=steps, signed=samples.signed)
    start = ["run_id", "box", "filesystem", "tool", "workload", *factors]
    about = [_about_cell(cell, factors, run_id=run_id, box=box) for cell in sweep.cells]
    cells = pd.DataFrame(about, columns=start).iloc[samples.places]
    columns: dict[str, Any] = {name: samples.keys[name] for name in ("metric", "label", "unit", "cell")}
    columns |= {name: getattr(found, name) for name in ("n", "low", "high", "sd", "cv", "method")}
    columns |= {"censored": np.zeros(len(found.n), dtype=np.int64), "mean": found.figure, "level": design.level}
    columns |= _with_censored(sweep, samples, columns, censored, within)
    rows = pd.concat([cells.reset_index(drop=True), pd.DataFrame(columns)], axis=1)
    rows = rows[[*start, *_ESTIMATE_TAIL]]
    if sweep.searches:
        return _in_order(sweep, rows, _capacities(sweep, measurements, about)[list(rows.columns)])
    return _with_unended(sweep, measurements, rows, censored, run_id=run_id, box=box) if censored else rows


def _with_censored(
    sweep: Sweep, samples: _Samples, columns: Mapping[str, Any], censored: Censored, level: float
) -> dict[str, list[Any]]:
    """Return the columns of the estimates that are others where a cell has censored trials."""
    if not censored:
        return {}
    names = ("n", "censored", "mean", "low", "high", "sd", "cv", "method")
    table = {name: list(columns[name]) for name in names}
    ends = np.cumsum(samples.sizes)
    for row, (cell, metric) in enumerate(_rows_of(samples.keys[["cell", "metric"]])):
        if late := late_trials(censored, cell, metric):
            values = samples.values[ends[row] - samples.sizes[row] : ends[row]]
            own = censored_estimate(sweep.metric(metric), values, late, level)
            new = (len(values) + late, late, own.figure, own.low, own.high, math.nan, math.nan, own.method)
            for name, value in zip(names, new, strict=True):
                table[name][row] = value
    return table


def _with_unended(
    sweep: Sweep, measurements: pd.DataFrame, estimates: pd.DataFrame, censored: Censored, *, run_id: str, box: str
) -> pd.DataFrame:
    """With a row for each figure of the answer of the cells whose counted trials all ran into the time limit."""
    metrics, labels = answer_metrics(sweep, measurements), answer_labels(sweep, counted(measurements))
    ended, factors = set(estimates["cell"].tolist()), factor_names(sweep)
    rows = [
        {
            **_about_cell(cell, factors, run_id=run_id, box=box),
            "metric": metric,
            "label": label,
            "unit": sweep.metric(metric).unit,
            "n": late,
            "censored": late,
            **dict.fromkeys(("mean", "low", "high", "sd", "cv"), math.nan),
            "level": sweep.design.level,
            "method": censored_estimate(sweep.metric(metric), np.empty(0), late, sweep.design.level).method,
            "cell": cell.id,
        }
        for cell in sweep.cells
        if cell.id not in ended
        for metric in metrics[cell.workload.label]
        for label in labels.get((cell.workload.label, metric), ("",))
        if (late := late_trials(censored, cell.id, metric))
    ]
    if not rows:
        return estimates
    return _in_order(sweep, estimates, pd.DataFrame(rows)[list(estimates.columns)])


def _capacities(sweep: Sweep, measurements: pd.DataFrame, about: Sequence[Mapping[str, str]]) -> pd.DataFrame:
    """Return a row for the capacity of each cell that has one. `about`: what a row of each cell begins with."""
    start = {cell.id: own for cell, own in zip(sweep.cells, about, strict=True)}
    rows = [{**start[str(row["cell"])], **row} for row in capacity.estimate_rows(sweep, measurements)]
    return pd.DataFrame(rows, columns=[*(about[0] if about else ()), *_ESTIMATE_TAIL])


def _in_order(sweep: Sweep, estimates: pd.DataFrame, more: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of both, cells in the order of the sweep."""
    places = {cell.id: place for place, cell in enumerate(sweep.cells)}
    known = [each for each in (estimates, more) if len(each)]
    whole = pd.concat(known, ignore_index=True) if known else estimates
    return whole.sort_values("cell", key=lambda cells: cells.map(places), kind="stable", ignore_index=True)


A_TIME = known_metric("elapsed")
PERCENTS = (1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99, 99.995, 99.999, 99.9999)
"""The percentiles of a latency curve."""
PERCENTILE_COLUMNS = (
    "cell", "filesystem", "workload", "place", "percent", "n", "censored", "mean", "low", "high", "level", "method",
)  # fmt: skip


def percentile_frame(
    sweep: Sweep, histograms: Mapping[str, Mapping[str, Sequence[Histogram]]], censored: Censored = NONE_CENSORED
) -> pd.DataFrame:
    """Return the latency percentiles of each cell, in seconds: estimated from those of its trials, as every figure is.
    Where trials ran into the time limit they are medians, as the figures of `estimate_frame`.

    `histograms`: cell to place in fio's report ('read.clat_ns') to the histogram of each counted trial. Columns as
    PERCENTILE_COLUMNS, cells in the order of the sweep; `workload` is its label. A percentile that one of the trials
    has too few I/Os for (stats.histograms.enough) is left out: the others would be a choice among trials.
    """
    keys, samples, steps = [], [], []
    for cell in sweep.cells:
        for place, trials in histograms.get(cell.id, {}).items():
            fewest = min(each.total for each in trials)
            for percent in (each for each in PERCENTS if enough(fewest, each)):
                keys.append((cell.id, cell.filesystem.name, cell.workload.label, place, percent))
                samples.append([percentile(each, percent) for each in trials])
                steps.append(fmean(step_ns(each, percent) for each in trials) / NS_PER_S)
    design = sweep.design
    within = level_after(sweep.correction, design.level)
    sizes = np.array([len(each) for each in samples], dtype=np.int64)
    values = np.array([value for each in samples for value in each], dtype=float)
    pools = _pools(sweep, (key[2:] for key in keys))
    known = partial(estimate_samples, level=within, statistic=design.estimate, pools=pools)
    found = known(values, sizes, steps=np.array(steps, dtype=float))
    frame = pd.DataFrame(keys, columns=list(PERCENTILE_COLUMNS[:5]))
    late = [late_trials(censored, key[0], "elapsed") for key in keys]
    figures = {name: getattr(found, name) for name in ("n", "low", "high", "method")}
    frame = frame.assign(**figures, censored=late, mean=found.figure, level=design.level)[list(PERCENTILE_COLUMNS)]
    for row in np.flatnonzero(late):
        own = censored_estimate(A_TIME, np.array(samples[row]), late[row], within)
        new = (len(samples[row]) + late[row], own.figure, own.low, own.high, own.method)
        frame.loc[row, ["n", "mean", "low", "high", "method"]] = new
    return frame[frame["mean"].notna()].reset_index(drop=True)


def _pools(sweep: Sweep, keys: Iterable[tuple[Any, ...]]) -> NDArray[np.int64] | None:
    """Return which samples share their blocks, by what is the same of their cells: of a run that a stopping rule ended,
    whose intervals allow for trials that are like their neighbours; None of others."""
    if sweep.design.until is None:
        return None
    numbers: dict[tuple[Any, ...], int] = {}
    return np.array([numbers.setdefault(key, len(numbers)) for key in keys], dtype=np.int64)


def _about_cell(cell: Cell, factors: Sequence[str], *, run_id: str, box: str) -> dict[str, str]:
    """Return what a row of the estimates begins with."""
    workload = cell.workload
    start = {"run_id": run_id, "box": box, "filesystem": cell.filesystem.name, "tool": workload.tool}
    return {**start, "workload": workload.name, **{name: workload.factors.get(name, "") for name in factors}}


@dataclass(frozen=True)
class _Samples:
    """The values of some measurements, sample after sample: those of one cell together, cells in a given order."""

    keys: pd.DataFrame
    """One row a sample: what tells them apart."""
    places: NDArray[np.int64]
    """The place of each sample's cell in the given order."""
    values: NDArray[np.float64]
    steps: NDArray[np.float64]
    """Of each value by itself (model.Measurement)."""
    blocks: NDArray[np.int64]
    sizes: NDArray[np.int64]

    @property
    def ids(self) -> NDArray[np.int64]:
        """The sample of each value."""
        return np.repeat(np.arange(len(self.sizes)), self.sizes)

    @property
    def signed(self) -> Flags:
        """Of each sample whether its metric may be negative, as one of a sweep's own may: in any cell, a value is."""
        metrics = self.keys["metric"]
        below = metrics.iloc[self.ids[self.values < 0]].unique()
        return np.asarray(metrics.isin(below), dtype=np.bool_)


def _samples(measurements: pd.DataFrame, keys: tuple[str, ...], cells: Sequence[str]) -> _Samples:
    """Return one sample for the counted values with the same keys; within a cell, samples come in the order in which
    they first stood."""
    columns = {key: pd.factorize(measurements[key]) for key in keys}
    rows = np.flatnonzero(~measurements["warmup"].to_numpy(dtype=bool))
    codes = np.zeros(len(rows), dtype=np.int64)
    for of_rows, unique in columns.values():
        codes = codes * max(len(unique), 1) + of_rows[rows]
    ids, _ = pd.factorize(codes)
    firsts = rows[np.diff(np.maximum.accumulate(ids), prepend=-1) > 0]
    known = {cell: place for place, cell in enumerate(cells)}
    of_rows, unique = columns["cell"]
    place = np.array([*(known.get(cell, math.nan) for cell in unique), math.nan])[of_rows[firsts]]
    order = np.argsort(place, kind="stable")
    order = order[~np.isnan(place[order])]  # what is no cell of the sweep has no row
    rank = np.full(len(firsts), len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    sizes = np.bincount(rank[ids], minlength=len(order) + 1)[: len(order)].astype(np.int64)
    rows = rows[np.argsort(rank[ids], kind="stable")[: sizes.sum()]]
    values, blocks = (measurements[name].to_numpy()[rows] for name in ("value", "block"))
    steps = measurements["step"].to_numpy()[rows] if "step" in measurements else np.zeros(len(rows))
    # Column by column: of a small frame, pandas takes longer to choose rows and columns than all the rest does.
    names = pd.DataFrame({key: measurements[key].array.take(firsts[order]) for key in keys})
    places = place[order].astype(np.int64)
    return _Samples(names, places, values.astype(float), steps.astype(float), blocks.astype(np.int64), sizes)


def figure_steps(sweep: Sweep, measurements: pd.DataFrame) -> dict[tuple[str, str, str], float]:
    """(cell, metric, label) to the step to which its counted figures are rounded, in base units; 0 where it is not
    known."""
    samples = _samples(measurements, FIGURE, [cell.id for cell in sweep.cells])
    names = _rows_of(samples.keys[list(FIGURE)])
    return dict(zip(names, _steps(samples).tolist(), strict=True))


def _steps(samples: _Samples) -> NDArray[np.float64]:
    """Return the step of each sample: the root mean square of those of its values, which differ where a program prints
    so many digits. Rounding adds step^2 / 12 to the variance of a value, so that of the mean has the mean square;
    where all are rounded alike, the mean is off by at most half the mean step, which is no larger."""
    return np.sqrt(np.bincount(samples.ids, samples.steps**2, len(samples.sizes)) / samples.sizes)


def comparisons(sweep: Sweep, measurements: pd.DataFrame, censored: Censored = NONE_CENSORED) -> list[Comparison]:
    """Return every file system against the baseline, for every workload and every metric that the answer is about.

    p values are adjusted over all comparisons of the sweep, and so are the intervals for all together
    (stats.adjusted says how); those of equivalence by Holm over the same family. Where a side has trials that ran
    into the time limit the ratio is a median over blocks (stats.censored).
    """
    return _corrected_together(sweep, measurements, censored, answer_metrics(sweep, measurements))


def latency_comparisons(
    sweep: Sweep, measurements: pd.DataFrame, censored: Censored = NONE_CENSORED, *, answered: Metrics
) -> list[Comparison]:
    """Return the median and the tail of latencies (COMPARED_PERCENTILES) of every file system against the baseline, as
    `comparisons`, where every trial of both sides has enough I/Os for them; without those that are `answered`.

    They are a family of their own: however many there are, they make nothing of the answer less certain.
    """
    if sweep.searches:
        return []
    metrics = {
        label: tuple(each for each in COMPARED_PERCENTILES if each in own and each not in answered.get(label, ()))
        for label, own in _metrics_of(sweep, measurements).items()
    }
    found = _corrected_together(sweep, measurements, censored, metrics) if any(metrics.values()) else []
    return [each for each in found if each.n or each.censored]


def _corrected_together(
    sweep: Sweep, measurements: pd.DataFrame, censored: Censored, metrics: Metrics
) -> list[Comparison]:
    """Return the comparisons of these metrics as one family."""
    asked, ratios, late = uncorrected_ratios(sweep, measurements, censored, metrics)
    design = sweep.design
    adjusted = adjust_comparisons(
        ratios, level=design.level, smallest_effect=design.smallest_effect, correction=sweep.correction
    )
    sides = (each.sides for each in asked)

    def noise(places: Sequence[int]) -> list[NoiseSource]:
        noisy = [asked[place] for place in places]
        _, (ours, theirs), steps = _by_block(measurements, sweep, noisy)
        return noise_sources(ours, theirs, steps=steps)

    how: dict[str, Any] = {"method": capacity.RATIO_METHOD} if sweep.searches else {"noise": noise}
    return list(comparisons_of(sides, ratios, adjusted, level=design.level, late=late.tolist(), **how))


def uncorrected_ratios(
    sweep: Sweep, measurements: pd.DataFrame, censored: Censored = NONE_CENSORED, metrics: Metrics | None = None
) -> tuple[list[Question], Ratios, NDArray[np.int64]]:
    """Return what a sweep compares, the ratios, not yet corrected for one another, and of each the number of blocks in
    which a side ran into the time limit; nothing without a baseline. `metrics`: of each workload, those of the answer
    where none are given."""
    wanted = answer_metrics(sweep, measurements) if metrics is None else metrics
    asked = _asked(sweep, measurements, sweep.baseline, wanted) if sweep.baseline is not None else []
    if sweep.searches:
        trials = {cell: own.trials for cell, own in capacity.searches(sweep, measurements).items()}
        pairs = [(trials[each.key(each.candidate)[0]], trials[each.key(each.baseline)[0]]) for each in asked]
        return asked, searched_ratios(pairs, sweep.design.level), np.zeros(len(asked), dtype=np.int64)
    blocks, sides, steps = _by_block(measurements, sweep, asked)
    late = _censored_sides(asked, blocks, censored)
    if sweep.extended:
        apart = _apart(sweep, asked, blocks)
        sides = (np.where(apart, math.nan, sides[0]), np.where(apart, math.nan, sides[1]))
        late = (late[0] & ~apart, late[1] & ~apart)
    pools = _pools(sweep, [(each.workload.label, each.metric, each.label) for each in asked])
    ratios = compare_rows(*sides, steps=steps, pools=pools)
    if censored:
        worse = worse_side([each.workload.metric(each.metric) for each in asked])
        ratios = ranked_ratios(ratios, sides, late, worse)
    return asked, ratios, (late[0] | late[1]).sum(axis=1)


def _apart(sweep: Sweep, asked: Sequence[Question], blocks: NDArray[np.int64]) -> Flags:
    """Return the blocks that were not planned to hold both sides, (comparisons, blocks): a cell that was added later is
    compared in the others alone."""
    held = {cell.id: np.isin(blocks, list(sweep.blocks_of(cell.id))) for cell in sweep.cells}
    none = np.zeros(len(blocks), dtype=bool)
    both = [held[each.key(each.candidate)[0]] & held[each.key(each.baseline)[0]] for each in asked]
    return ~np.array(both or [none]).reshape(-1, len(blocks))[: len(asked)]


def _censored_sides(asked: Sequence[Question], blocks: NDArray[np.int64], censored: Censored) -> tuple[Flags, Flags]:
    """Return the blocks in which the candidates, and the baselines, ran into the time limit: (comparisons, blocks)
    each."""
    candidates, baselines = (np.zeros((len(asked), len(blocks)), dtype=bool) for _ in range(2))
    masks = {cell: np.isin(blocks, list(own)) for cell, own in censored.items()}
    for row, each in enumerate(asked if masks else ()):
        if each.metric not in OF_A_MOUNT:
            candidates[row] = masks.get(each.key(each.candidate)[0], False)
            baselines[row] = masks.get(each.key(each.baseline)[0], False)
    return candidates, baselines


class Question(NamedTuple):
    """One question of a sweep."""

    workload: Workload
    metric: str
    label: str
    candidate: str
    baseline: str

    @property
    def sides(self) -> Sides:
        """What is compared with what."""
        return Sides.of(self.workload, self.metric, self.label, baseline=self.baseline, candidate=self.candidate)

    def key(self, filesystem: str) -> tuple[str, str, str]:
        """Return cell, metric and label of one side."""
        return cell_id(filesystem, self.workload.label), self.metric, self.label


def _asked(sweep: Sweep, measurements: pd.DataFrame, baseline: str, metrics: Metrics) -> list[Question]:
    labels = answer_labels(sweep, counted(measurements[[*FIGURE, "warmup"]]))
    return [
        Question(workload, metric, label, fs.name, baseline)
        for workload in sweep.workloads
        if sweep.has_cell(cell_id(baseline, workload.label))
        for metric in metrics[workload.label]
        if workload.metric(metric).better != "neither"
        for label in labels.get((workload.label, metric), ("",))
        for fs in sweep.filesystems
        if fs.name != baseline
        and sweep.has_cell(cell_id(fs.name, workload.label))
        and sweep.have_blocks(cell_id(fs.name, workload.label), cell_id(baseline, workload.label))
        and not _refused(sweep, fs, workload)
    ]


def _refused(sweep: Sweep, fs: Filesystem, workload: Workload) -> bool:
    """Return whether the file system cannot take the workload at all (hugetlbfs has no write()): it is then not
    compared."""
    return not sweep.imported and FAMILIES[fs.type].refuses(fs, workload) is not None


def _by_block(
    measurements: pd.DataFrame, sweep: Sweep, asked: Sequence[Question]
) -> tuple[NDArray[np.int64], tuple[NDArray[np.float64], NDArray[np.float64]], Steps]:
    """Return the blocks; the values of the candidates and of the baselines, each of shape (comparisons, blocks), NaN
    where there is none; and the steps of both sides, each of shape (comparisons,). Of two values of a block the last
    counts.
    """
    samples = _samples(measurements, FIGURE, [cell.id for cell in sweep.cells])
    steps = np.append(_steps(samples), 0.0)
    blocks, columns = np.unique(samples.blocks, return_inverse=True)
    table = np.full((len(samples.sizes) + 1, len(blocks)), math.nan)  # the last row is that of a cell without figures
    table[samples.ids, columns] = samples.values
    names = _rows_of(samples.keys[list(FIGURE)])
    rows = {key: row for row, key in enumerate(names)}
    candidates = [rows.get(each.key(each.candidate), -1) for each in asked]
    baselines = [rows.get(each.key(each.baseline), -1) for each in asked]
    return blocks, (table[candidates], table[baselines]), (steps[candidates], steps[baselines])


def answer_labels(sweep: Sweep, measurements: pd.DataFrame) -> dict[tuple[str, str], tuple[str, ...]]:
    """(workload label, metric) to the rows of the metric that an answer is about: the whole where there is one, else
    every part (the methods of pg_test_fsync), in the order in which they came."""
    found: dict[tuple[str, str], dict[str, None]] = {}
    for cell, metric, label in _rows_of(measurements[list(FIGURE)].drop_duplicates()):
        if own := sweep.combinations.get(cell):
            found.setdefault((own.workload.label, metric), {})[label] = None
    return {key: ("",) if "" in labels else tuple(labels) for key, labels in found.items()}
