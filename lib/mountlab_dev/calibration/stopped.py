"""Simulate ratios, and several runs, that a stopping rule ended: the basis of what reports state about them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from mountlab.core.model import Until
from mountlab.core.numbers import counted
from mountlab.stats import sequential, shape, simulated
from mountlab.stats.adjusted import ComparisonSet, adjust_comparisons, look_level
from mountlab.stats.between import Spread, alike_p, spread
from mountlab.stats.comparisons import Ratios, compare_rows
from mountlab.stats.over_boxes import further_box, over_boxes
from mountlab.stats.simulated import LEVEL, MARGIN, NOISE, Floats, Generator, Process, generator, normal
from numpy.typing import NDArray

from mountlab_dev.calibration.document import Share, Table, Trials
from mountlab_dev.calibration.processes import shifted_gamma
from mountlab_dev.calibration.tables import Effort, held

# ── ratios that decide ───────────────────────────────────────────────────────────────────────────────────────────────

Truths = NDArray[np.bool_]
WORKLOADS, CANDIDATES = 5, 4
COMPARISONS = WORKLOADS * CANDIDATES
RATIOS = Until(half_width=0.03, min=5, max=40, of="comparisons")
WIDTH, FASTER = 1.1, 3.0
"""In standard deviations of a log ratio: the half width that is asked for, and by how much one candidate is faster."""


@dataclass(frozen=True)
class Stopped:
    """One sweep whose workloads each ended by the rule."""

    blocks: NDArray[np.intp]
    """Of each comparison."""
    ratios: Ratios
    adjusted: ComparisonSet
    until: Until

    def false_verdict(self, truth: Floats) -> bool:
        """Return whether any comparison is said to differ the way in which it does not."""
        decided = self.adjusted.p_adjusted < 1 - LEVEL
        return bool(np.any(decided & (np.sign(self.ratios.log_mean) != np.sign(truth))))

    def holds(self, truth: Floats) -> bool:
        """Return whether the intervals for all together hold the truth, all of them."""
        return bool(np.all((np.log(self.adjusted.joint.low) <= truth) & (truth <= np.log(self.adjusted.joint.high))))

    def wide(self) -> NDArray[np.bool_]:
        """Of the comparisons that ended before the last block: whether the interval for all together is wider than was
        asked."""
        ratio, most = self.ratios.ratio, 1 + self.until.half_width
        off = np.maximum(self.adjusted.joint.high / ratio, ratio / self.adjusted.joint.low)
        return np.asarray(off[self.blocks < self.until.max] > most * (1 + 1e-12))


def ratios_when_stopping(effort: Effort) -> Table:
    """Return what intervals for all together hold, and how wide they are, where ratios decide how many blocks there
    are."""
    says = (
        f"**Ratios after a stopping rule** (`until`, `of: comparisons`, 5 to 40 blocks): sweeps of {COMPARISONS} "
        f"comparisons in {WORKLOADS} workloads, each stopping by itself. One candidate of {CANDIDATES} is truly "
        f"faster, by {FASTER:g} standard deviations of a log ratio. The half width is {WIDTH:g} of these, where the "
        "rule ends early and late. *False*: sweeps with a false verdict. *Hold*: sweeps in which all joint intervals "
        "contain the truth. *Wider*: of comparisons that stopped before the last block, those with an interval wider "
        "than required."
    )
    skewed = (simulated.lognormal(0.3), simulated.gamma(), shifted_gamma(2.0))
    listed = (normal(), *skewed, simulated.two_modes(), simulated.autocorrelated())
    rows = tuple((process.name, _of_sweeps(process, effort.sweeps)) for process in listed)
    return Table("stopping-ratios", says, effort.sweeps, ("trials", "false", "hold", "wider", "blocks"), rows)


def _of_sweeps(process: Process, sweeps: int) -> tuple[Share | Trials, ...]:
    rng = generator("stopping ratios", process.name)
    sd = float(np.diff(np.log(process.sides(rng, 2, (1000, RATIOS.max))), axis=0).std())
    truth = np.repeat([0.0] * (CANDIDATES - 1) + [FASTER * sd], WORKLOADS)
    until = replace(RATIOS, half_width=math.expm1(WIDTH * sd))
    found = [stopped_sweep(rng, process, until, truth) for _ in range(sweeps)]
    wide = np.concatenate([each.wide() for each in found])
    return (
        Share(sum(each.false_verdict(truth) for each in found), sweeps),
        Share(sum(each.holds(truth) for each in found), sweeps),
        Share(int(wide.sum()), max(len(wide), 1)),
        Trials(float(np.median(np.concatenate([each.blocks for each in found])))),
    )


def stopped_sweep(rng: Generator, process: Process, until: Until, truth: Floats) -> Stopped:
    """Return a sweep of comparisons with these true log ratios, candidate by candidate, (candidates x workloads,)."""
    sides = process.sides(rng, 1 + CANDIDATES, (WORKLOADS, until.max))
    logs = (np.log(sides[1:]) - np.log(sides[0])).reshape(COMPARISONS, until.max) + truth[:, None]
    by_workload = logs.reshape(CANDIDATES, WORKLOADS, until.max).swapaxes(0, 1)
    done = np.asarray(sequential.precise_ratio(by_workload, until, look_level(until, COMPARISONS)).all(axis=1))
    blocks = np.tile(sequential.first_block(done, until.max), CANDIDATES)
    kept = np.where(np.arange(until.max) < blocks[:, None], np.exp(logs), math.nan)
    pools = np.tile(np.arange(WORKLOADS), CANDIDATES)
    ratios = compare_rows(kept, np.where(np.isnan(kept), math.nan, 1.0), pools=pools)
    return Stopped(
        blocks, ratios, adjust_comparisons(ratios, level=LEVEL, smallest_effect=MARGIN, repeated_looks=until), until
    )


# ── trials that are like their neighbours ────────────────────────────────────────────────────────────────────────────

CELLS = Until(half_width=0.03, min=5, max=40)
CORRELATIONS = (0.0, 0.3, 0.6)
WORKLOAD_CELLS = (1, 2, 4)
ORDER_TESTS = {"drift": shape.drift_p, "step": shape.step_p, "autocorrelated": shape.autocorrelated_p}


@dataclass(frozen=True)
class OrderedRuns:
    """Runs of a workload that each ended by the rule."""

    missed: Truths
    """(runs, cells) whether the interval of the mean misses the truth, 1."""
    doubted: Truths
    """(runs, cells) whether a caveat of the order of its trials is raised, a note at least."""
    blocks: NDArray[np.intp]
    """(runs,)"""

    @classmethod
    def of(cls, values: Floats, until: Until, *, allowed: bool) -> OrderedRuns:
        """Return those of (runs, cells, blocks) trials. `allowed`: by the code of the reports; else without regard to
        trials that are like their neighbours, as if they were independent."""
        level, counts = sequential.nominal_level(until, LEVEL), np.arange(1, until.max + 1)
        half = (sequential.allowed_half_widths if allowed else sequential.half_widths)(values, level)
        means = np.cumsum(values, axis=-1) / counts
        narrow = ((half <= np.log1p(until.half_width) * means) & (counts >= until.min)).all(axis=1)
        blocks = sequential.first_block(narrow, until.max)
        last = blocks[:, None, None] - 1
        mean, reach = (np.take_along_axis(each, last, axis=-1)[..., 0] for each in (means, half))
        doubted = np.zeros(mean.shape, dtype=bool)
        for count in np.unique(blocks):
            rows = values[blocks == count][..., :count]
            flat = rows.reshape(-1, count)
            raised = [test(flat) < shape.SUSPICIOUS_P[name] for name, test in ORDER_TESTS.items()]
            doubted[blocks == count] = np.any(raised, axis=0).reshape(rows.shape[:2])
        return cls(np.abs(np.log(mean)) > reach / mean, doubted, blocks)

    def figures(self) -> tuple[Share, Share, Trials]:
        missed, silent = (
            Share(int(np.count_nonzero(each)), each.size) for each in (self.missed, self.missed & ~self.doubted)
        )
        return missed, silent, Trials(round(float(self.blocks.mean())))


def means_of_like_neighbours(effort: Effort) -> Table:
    """Return what intervals miss after a stopping rule where the trials of a cell are like their neighbours."""
    says = (
        f"**Trials like their neighbours, after a stopping rule** (`until`, {CELLS.min} to {CELLS.max} blocks, "
        f"± {100 * CELLS.half_width:g} %, cv 5 %), by the correlation of successive blocks and the cells of the "
        "workload. *Missed*: 95 % intervals without the true mean. *Without caveat*: those of them that no caveat of "
        "drift, step or serial correlation points at. Blocks are means. First without an allowance for neighbours, "
        "then as reports are made."
    )
    part = ("missed", "without caveat", "blocks")
    header = ("correlation and cells", *(f"{how}: {each}" for how in ("independent", "allowed for") for each in part))
    rows = tuple(
        (f"{correlation:g}, {counted(cells, 'cell')}", _like_neighbours(correlation, cells, effort.checks))
        for cells in WORKLOAD_CELLS
        for correlation in CORRELATIONS
    )
    return Table("stopping-neighbours", says, effort.checks, header, rows)


def _like_neighbours(correlation: float, cells: int, intervals: int) -> tuple[Share | Trials, ...]:
    process = simulated.autocorrelated(correlation) if correlation else normal()
    runs = max(1, intervals // cells)
    drawn = process.draw(generator("stopping neighbours", correlation, cells), (runs * cells, CELLS.max))
    values = drawn.reshape(runs, cells, CELLS.max)
    return tuple(each for allowed in (False, True) for each in OrderedRuns.of(values, CELLS, allowed=allowed).figures())


# ── several runs ─────────────────────────────────────────────────────────────────────────────────────────────────────

RUNS = (2, 3, 5, 10)
BETWEEN = 0.03


def means_of_stopped_runs(effort: Effort) -> Table:
    """Return what intervals of a ratio over boxes hold where the run of each box ended by itself."""
    says = (
        "**Over boxes after a stopping rule** (`until`, 5 to 40 blocks, half width 0.6 standard deviations), boxes "
        "alike. How often 95 % intervals contain the mean ratio over boxes, and what a run on a further box shows."
    )
    skewed, calm = shifted_gamma(2.0), normal(NOISE / 10)
    sides = (
        ("over boxes: normal", normal(), normal()),
        ("over boxes: both sides skewed (gamma, shape 2)", skewed, skewed),
        ("over boxes: one side skewed, the other normal", skewed, normal()),
        ("over boxes: one side skewed, the other calm (cv 0.5 %)", skewed, calm),
    )
    rows = [(name, tuple(_over(a, b, k, effort.checks) for k in RUNS)) for name, a, b in sides]
    rows.append(("a further box: normal", tuple(_further(k, effort.checks) for k in RUNS)))
    return Table("stopped-boxes", says, effort.checks, ("interval", *(f"{k} boxes" for k in RUNS)), tuple(rows))


def spread_of_stopped_runs(effort: Effort) -> Table:
    """Simulate the spread between runs that each ended by themselves."""
    says = (
        "**Between runs after a stopping rule** (the same rule). How often the 95 % interval contains the standard "
        f"deviation between runs, where runs differ by {100 * BETWEEN:g} % and trials by 5 %. *Like runs differ*: how "
        "often p < 5 % where they do not differ."
    )
    differ = [_like_runs(k, effort.sweeps) for k in RUNS]
    rows = (
        ("interval of the standard deviation between runs", tuple(_between(k, effort.sweeps) for k in RUNS)),
        ("like runs differ", tuple(own for own, _ in differ)),
        ("like runs differ, p not corrected", tuple(careless for _, careless in differ)),
    )
    return Table("stopped-runs", says, effort.sweeps, ("figure", *(f"{k} runs" for k in RUNS)), rows)


def _stopped_logs(rng: Generator, sides: tuple[Process, Process], size: tuple[int, int]) -> Floats:
    """Return the mean log ratio of each of (cases, runs) runs that go on until both cells are precise, beside the
    truth."""
    values = np.stack([each.draw(rng, (size[0] * size[1], CELLS.max)) for each in sides], axis=1)
    sd = max(float(each.std()) for each in values.swapaxes(0, 1))
    taken = sequential.blocks_taken(values, replace(CELLS, half_width=0.6 * sd))
    logs = np.log(values[:, 0]) - np.log(values[:, 1])
    means = np.cumsum(logs, axis=1)[np.arange(len(logs)), taken - 1] / taken
    return (means - (sides[0].log_mean - sides[1].log_mean)).reshape(size)


def _over(ours: Process, theirs: Process, runs: int, cases: int) -> Share:
    means = _stopped_logs(generator("stopped boxes", ours.name, theirs.name, runs), (ours, theirs), (cases, runs))
    return held(*over_boxes(means).bounds(LEVEL), 1.0)


def _further(runs: int, cases: int) -> Share:
    means = _stopped_logs(generator("stopped further", runs), (normal(), normal()), (cases, runs + 1))
    found = further_box(over_boxes(means[:, :-1]), LEVEL)
    return held(found.low, found.high, np.exp(means[:, -1]))


def _between(runs: int, cases: int) -> Share:
    found = _spreads(generator("stopped between", runs), runs, cases, BETWEEN)
    return Share(sum(each.low <= BETWEEN <= each.high for each in found), cases)


def _like_runs(runs: int, cases: int) -> tuple[Share, Share]:
    """With the correction, and without."""
    found = _spreads(generator("stopped like runs", runs), runs, cases, 0.0)
    p = [(alike_p([each], CELLS)[0], each.p) for each in found]
    own, careless = (Share(sum(each < 1 - LEVEL for each in column), cases) for column in zip(*p, strict=True))
    return own, careless


def _spreads(rng: Generator, runs: int, cases: int, between: float) -> list[Spread]:
    """Of runs of one cell that each go on until its mean is precise."""
    levels = np.exp(between * rng.normal(size=(cases * runs, 1)))
    values = normal().draw(rng, (cases * runs, CELLS.max)) * levels
    taken = sequential.blocks_taken(values[:, None, :], CELLS)
    samples = [own[:n].tolist() for own, n in zip(values, taken, strict=True)]
    return [spread(samples[start : start + runs], level=LEVEL) for start in range(0, cases * runs, runs)]
