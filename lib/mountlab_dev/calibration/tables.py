"""The simulations behind docs/calibration.md. One function a table, by the same code that makes the reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from mountlab.core.findings import Verdict
from mountlab.core.model import Until
from mountlab.stats import sequential, shape, simulated
from mountlab.stats.adjusted import adjust_comparisons, look_level, verdict
from mountlab.stats.comparisons import compare_rows
from mountlab.stats.estimates import estimate_samples
from mountlab.stats.simulated import LEVEL, MARGIN, Floats, Process, generator, normal
from numpy.typing import NDArray

from mountlab_dev.calibration import processes
from mountlab_dev.calibration.document import Share, Table
from mountlab_dev.calibration.processes import LISTED, SKEWED

SIZES = (3, 5, 10, 30)
FEW = (2, 3, 4, 5, 6, 7, 8, 9)


@dataclass(frozen=True)
class Effort:
    """How many cases are simulated for each figure."""

    samples: int
    """Of a share of intervals."""
    sweeps: int
    """Of a share of sweeps."""
    looks: int
    """Of a share of intervals after a stopping rule, for each of `_WIDTHS`."""
    checks: int
    """Of a share of samples that raise a caveat."""
    series: int
    """Of a share of series of runs."""
    gates: int
    """Of a share of gates."""


FULL = Effort(samples=40_000, sweeps=1_000, looks=20_000, checks=10_000, series=160, gates=500)
SHORT = Effort(samples=2_000, sweeps=60, looks=500, checks=250, series=16, gates=30)
Maker = Callable[[Effort], Table]


# ── coverage with a fixed number of trials ───────────────────────────────────────────────────────────────────────────


def coverage_of_means(effort: Effort) -> Table:
    """Return how often the interval of the mean holds the truth."""
    says = "Intervals of a **mean** at 95 %: how often they contain the truth."
    return _by_size("means", says, LISTED, SIZES, lambda p, n: mean_covered(p, n, effort.samples))


def coverage_of_few(effort: Effort) -> Table:
    """Return the same for fewer than ten trials, and for what they cannot show: the assumptions that `few.rests_on`
    names."""
    says = "Intervals of a **mean** at 95 % for **few trials**, and for trials whose shape so few cannot show."
    unseen = (normal(), simulated.lognormal(1.0), simulated.two_modes(), simulated.drifting())
    return _by_size("few", says, unseen, FEW, lambda p, n: mean_covered(p, n, effort.samples))


def coverage_of_ratios(effort: Effort) -> Table:
    """Return how often the interval of a ratio, paired by block, holds the truth, where both sides have the trouble."""
    says = (
        "Intervals of a **ratio** at 95 %, paired by block, where **both sides** are like the row. Drift and serial "
        "correlation come from the box, and act on both."
    )
    return _by_size("ratios", says, LISTED, SIZES, lambda p, n: ratio_covered(p, p, n, effort.samples))


def coverage_of_uneven_ratios(effort: Effort) -> Table:
    """Return the same where only the candidate has the trouble, and the baseline is normal."""
    says = "Intervals of a **ratio** at 95 % where only **one side** is like the row. The other is normal, cv 5 %."
    base = normal()
    return _by_size("uneven-ratios", says, LISTED[1:], SIZES, lambda p, n: ratio_covered(p, base, n, effort.samples))


def mean_covered(process: Process, n: int, samples: int) -> Share:
    """Return the share of samples of n trials whose interval holds the mean."""
    values = process.draw(generator("mean", process.name, n), (samples, n))
    found = estimate_samples(values.ravel(), np.full(samples, n), level=LEVEL)
    return held(found.low, found.high, process.mean)


def ratio_covered(candidate: Process, baseline: Process, n: int, samples: int) -> Share:
    """Return the share of samples of n pairs whose interval holds the ratio of the geometric means. Where both sides
    are the same process, what the box does acts on both."""
    rng = generator("ratio", candidate.name, baseline.name, n)
    if candidate.name == baseline.name:
        ours, theirs = candidate.sides(rng, 2, (samples, n))
    else:
        ours, theirs = (side.draw(rng, (samples, n)) for side in (candidate, baseline))
    low, high = compare_rows(ours, theirs).bounds(LEVEL)
    return held(low, high, float(np.exp(candidate.log_mean - baseline.log_mean)))


def held(low: Floats, high: Floats, truth: Floats | float) -> Share:
    """Return the share of intervals that hold the truth."""
    return Share(int(np.count_nonzero((low <= truth) & (truth <= high))), len(low))


# ── coverage under a stopping rule ───────────────────────────────────────────────────────────────────────────────────

RULES = (
    Until(half_width=0.03, min=3, max=40),
    Until(half_width=0.03, min=5, max=40),
    Until(half_width=0.03, min=10, max=100),
)
_WIDTHS = (0.3, 0.45, 0.6, 0.75, 0.9, 1.1, 1.4)
"""Half widths that are asked for, in standard deviations of a trial: the rule stops early, late, or at its end."""


def coverage_when_stopping(effort: Effort) -> Table:
    """Return how often intervals hold the truth after `until`, at the half width that is worst; and without the
    correction."""
    says = (
        "Intervals of a **mean** at 95 % after a **stopping rule** (`until`): how often they contain the truth, at "
        f"the worst of {len(_WIDTHS)} half widths between {_WIDTHS[0]} and {_WIDTHS[-1]} standard deviations of a "
        "trial. First column: the usual interval, and stopping as soon as it is narrow enough."
    )
    naive = ("not corrected: 5 to 40 blocks", RULES[1], False)
    columns = [naive, *((f"{rule.min} to {rule.max} blocks", rule, True) for rule in RULES)]
    rows = tuple(
        (process.name, tuple(stopped_covered(process, rule, effort.looks, corrected=yes) for _, rule, yes in columns))
        for process in (*LISTED, *SKEWED)
    )
    return Table("stopping", says, effort.looks, ("trials", *(name for name, _, _ in columns)), rows)


def stopped_covered(process: Process, until: Until, samples: int, *, corrected: bool) -> Share:
    """Return the share of intervals that hold the mean after the rule, for the worst of `_WIDTHS`."""
    values = process.draw(generator("stopping", process.name, until.min, until.max), (samples, until.max))
    sd = float(values.std() / values.mean())
    shares = (
        _stopped_covered(values, replace(until, half_width=width * sd), process.mean, corrected) for width in _WIDTHS
    )
    return min(shares, key=lambda share: share.hits)


def _stopped_covered(values: Floats, until: Until, truth: float, corrected: bool) -> Share:
    level = sequential.nominal_level(until, LEVEL) if corrected else LEVEL
    blocks = sequential.blocks_taken(values[:, None, :], until) if corrected else naive_blocks(values, until)
    kept = np.arange(values.shape[1]) < blocks[:, None]
    pools = np.arange(len(values)) if corrected else None
    found = estimate_samples(values[kept], blocks.astype(np.int64), level=level, pools=pools)
    return held(found.low, found.high, truth)


def naive_blocks(values: Floats, until: Until) -> NDArray[np.intp]:
    """Return what everybody does: stop once the usual 95 % interval is narrow enough."""
    counts = np.arange(1, values.shape[1] + 1)
    narrow = sequential.half_widths(values, LEVEL) <= np.log1p(until.half_width) * np.cumsum(values, axis=1) / counts
    return sequential.first_block(narrow & (counts >= until.min), until.max)


# ── verdicts ─────────────────────────────────────────────────────────────────────────────────────────────────────────

CELLS = 40
EFFECT = 1.05
VERDICT_SIZES = (3, 5, 10, 20, 30)


def false_verdicts(effort: Effort) -> Table:
    """Return a/A: how many sweeps of identical cells have at least one verdict 'faster' or 'slower'."""
    says = (
        f"**A/A**: sweeps of {CELLS} identical cells, one being the baseline of the others. How many have at least "
        "one verdict *faster* or *slower*, which is false. Last column: as many pairs of identical cells, each "
        "stopping by itself after 5 to 40 blocks (`until`, `of: comparisons`)."
    )
    rows: list[tuple[str, tuple[Share | None, ...]]] = []
    for process in LISTED:
        shares = [any_false(process, n, effort.sweeps) for n in VERDICT_SIZES]
        rows.append((process.name, (*shares, any_false_when_stopping(process, effort.sweeps))))
    careless = [any_false(normal(), n, effort.sweeps, corrected=False) for n in VERDICT_SIZES]
    rows.append((f"{normal().name}, without any correction", (*careless, None)))
    header = ("trials", *(f"n = {n}" for n in VERDICT_SIZES), "`until`")
    return Table("false-verdicts", says, effort.sweeps, header, tuple(rows))


def any_false(process: Process, n: int, sweeps: int, *, corrected: bool = True) -> Share:
    """Return the share of sweeps of identical cells, n blocks each, with a verdict that one is faster or slower; or,
    without correction, with a p value below 5 %."""
    rng, false = generator("A/A", process.name, n), 0
    for _ in range(sweeps):
        candidates, baselines = _against_first(process.sides(rng, CELLS, (1, n))[:, 0])
        if corrected:
            false += bool({"faster", "slower"} & set(verdicts(candidates, baselines)))
        else:
            false += bool(np.any(compare_rows(candidates, baselines).p() < 1 - LEVEL))
    return Share(false, sweeps)


def any_false_when_stopping(process: Process, sweeps: int) -> Share:
    """Return the same for as many comparisons that each stop once their own ratio is precise."""
    rng, until = generator("A/A stopping", process.name), replace(RULES[1], of="comparisons", half_width=0.08)
    level = look_level(until, CELLS - 1)
    false = 0
    for _ in range(sweeps):
        ours, theirs = process.sides(rng, 2, (CELLS - 1, until.max))
        narrow = sequential.precise_ratio(np.log(ours / theirs)[:, None], until, level)[:, 0]
        blocks = sequential.first_block(narrow, until.max)
        missing = np.where(np.arange(until.max) < blocks[:, None], 1.0, np.nan)
        false += bool({"faster", "slower"} & set(verdicts(ours * missing, theirs * missing, until)))
    return Share(false, sweeps)


def power(effort: Effort) -> Table:
    """Simulate how often a true effect of 5 % is found where the cv is 5 %, and which verdict a true 2 % gets."""
    says = (
        "**Power**: how often a true effect of 5 % is called *faster*, where the coefficient of variation is 5 %. Last "
        "row: how often a true effect of 2 %, the smallest that matters, is called *the same*, which is false."
    )
    alone = tuple(_found(1, EFFECT, "faster", n, effort.sweeps) for n in VERDICT_SIZES)
    among = tuple(_found(CELLS - 1, EFFECT, "faster", n, effort.sweeps) for n in VERDICT_SIZES)
    same = tuple(_found(1, 1 + MARGIN, "same", n, effort.sweeps) for n in VERDICT_SIZES)
    rows = (
        ("5 % found, the only comparison of the sweep", alone),
        (f"5 % found, one of {CELLS - 1} comparisons, the others of identical cells", among),
        ("2 % called the same, the only comparison", same),
    )
    return Table("power", says, effort.sweeps, ("truth", *(f"n = {n}" for n in VERDICT_SIZES)), rows)


def _found(comparisons: int, effect: float, word: Verdict, n: int, sweeps: int) -> Share:
    """Return the share of sweeps in which the first candidate, truly `effect` times as fast, gets this verdict."""
    rng, hits = generator("power", comparisons, effect, n), 0
    for _ in range(sweeps):
        cells = normal().sides(rng, comparisons + 1, (1, n))[:, 0]
        cells[1] *= effect
        hits += verdicts(*_against_first(cells))[0] == word
    return Share(hits, sweeps)


def _against_first(cells: Floats) -> tuple[Floats, Floats]:
    """Candidates and, as often, their baseline: (cells, n) to two of (cells - 1, n)."""
    return cells[1:], np.broadcast_to(cells[:1], cells[1:].shape)


def verdicts(candidates: Floats, baselines: Floats, until: Until | None = None) -> list[Verdict]:
    """Return the verdicts that the report of one sweep gives its comparisons, of shape (comparisons, blocks) each, NaN
    where there is no value."""
    ratios = compare_rows(candidates, baselines, pools=None if until is None else np.arange(len(candidates)))
    adjusted = adjust_comparisons(ratios, level=LEVEL, smallest_effect=MARGIN, repeated_looks=until)
    return [
        verdict(ratio, p_adjusted=p, p_equivalent_adjusted=same, level=LEVEL, more_is_better=True)
        for ratio, p, same in zip(ratios.ratio, adjusted.p_adjusted, adjusted.p_equivalent_adjusted, strict=True)
    ]


# ── caveats of shape and order ───────────────────────────────────────────────────────────────────────────────────────

P_VALUES = {key.replace("_", " "): (key, p) for key, p in shape.P_VALUES.items()}
"""Caveat to the key of its limit and its test."""
SHOULD: tuple[tuple[Process, tuple[str, ...]], ...] = (
    (normal(), ()),
    (simulated.lognormal(0.05), ()),
    (simulated.lognormal(0.3), ()),
    (simulated.gamma(), ()),
    (simulated.lognormal(1.0), ("outliers",)),
    (processes.with_outlier(), ("outliers",)),
    (simulated.two_modes(), ("two modes", "outliers")),
    (simulated.two_modes(0.5), ("two modes",)),
    (simulated.autocorrelated(), ("autocorrelated",)),
    (simulated.autocorrelated(0.8), ("autocorrelated",)),
    (simulated.drifting(2.0), ("drift",)),
    (simulated.drifting(), ("drift",)),
    (processes.stepping(2.0), ("step",)),
    (processes.stepping(), ("step",)),
)
"""Processes, and the caveats that should be raised for each."""
CAVEAT_SIZES = (10, 30)


def raised(effort: Effort) -> Table:
    """Return how often each caveat is raised, when it should be and when it should not."""
    says = "How often each **caveat** of shape and order is raised in a cell; in bold where it should be."
    header = ("trials", *(f"{name}, n = {n}" for name in ("outliers", *P_VALUES) for n in CAVEAT_SIZES))
    rows = tuple((process.name, _raised(process, should, effort.checks)) for process, should in SHOULD)
    return Table("caveats", says, effort.checks, header, rows)


def warned(effort: Effort) -> Table:
    """Return how often it is a warning, in one cell of many: the p value is below the limit after adjustment over
    all."""
    says = (
        f"How often it is a **warning** and not only a note, where that cell is one of {CELLS} and the others are "
        "quiet; in bold where it should be."
    )
    header = ("trials", *(f"{name}, n = {n}" for name in P_VALUES for n in CAVEAT_SIZES))
    rows = tuple((process.name, _warned(process, should, effort.checks, CELLS)) for process, should in SHOULD)
    return Table("warnings", says, effort.checks, header, rows)


def _raised(process: Process, should: tuple[str, ...], samples: int) -> tuple[Share, ...]:
    masks = (shape.outlier_mask(_suspected(process, n, samples)) for n in CAVEAT_SIZES)
    outliers = (Share(int(mask.any(axis=1).sum()), samples, meant="outliers" in should) for mask in masks)
    return (*outliers, *_warned(process, should, samples, 1))


def _warned(process: Process, should: tuple[str, ...], samples: int, cells: int) -> tuple[Share, ...]:
    """By Holm the smallest p value of `cells` is multiplied by their number."""
    rows = {n: _suspected(process, n, samples) for n in CAVEAT_SIZES}
    return tuple(
        Share(int(np.sum(cells * p(rows[n]) < shape.SUSPICIOUS_P[key])), samples, meant=name in should)
        for name, (key, p) in P_VALUES.items()
        for n in CAVEAT_SIZES
    )


def _suspected(process: Process, n: int, samples: int) -> Floats:
    return process.draw(generator("caveats", process.name, n), (samples, n))


# ── all of them ──────────────────────────────────────────────────────────────────────────────────────────────────────

TABLES: tuple[Maker, ...] = (
    coverage_of_means, coverage_of_few, coverage_of_ratios, coverage_of_uneven_ratios, coverage_when_stopping,
    false_verdicts, power, raised, warned,
)  # fmt: skip


def _by_size(
    name: str, says: str, processes: tuple[Process, ...], sizes: tuple[int, ...], share: Callable[[Process, int], Share]
) -> Table:
    """Return a row for each process and a column for each n."""
    rows = tuple((process.name, tuple(share(process, n) for n in sizes)) for process in processes)
    return Table(name, says, rows[0][1][0].of, ("trials", *(f"n = {n}" for n in sizes)), rows)
