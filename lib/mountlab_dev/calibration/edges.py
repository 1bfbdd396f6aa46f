"""The simulations behind rounded figures and missing blocks: what intervals and verdicts hold there."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mountlab.stats.adjusted import adjust_comparisons
from mountlab.stats.comparisons import Ratios, compare_rows
from mountlab.stats.estimates import estimate_samples
from mountlab.stats.simulated import LEVEL, MARGIN, Floats, Generator, generator

from mountlab_dev.calibration.document import Share, Table
from mountlab_dev.calibration.tables import CELLS, SIZES, Effort, held

SPREADS = (0.0, 0.3, 0.5, 1.0, 2.0)
"""Standard deviations of a trial, in steps."""
TRUE = 20.0
"""The figure, in steps: 20 us where whole microseconds are printed."""
BLOCKS, DRIFT, NOISE = 20, 0.10, 0.02
KEPT = (20, 11, 10, 5, 4, 3)
"""Blocks after which one side ends."""
LACKING = 9
"""Blocks that each side lacks, at its other end: too few hold both."""


def rounded_verdicts(effort: Effort) -> Table:
    """Return how often sweeps of identical cells with rounded figures hold a false verdict."""
    says = (
        f"**A/A with rounded figures**: sweeps of {CELLS} identical cells whose figures are near {TRUE:g} steps, as "
        f"with whole µs at {TRUE:g} µs. How many have a false *faster* or *slower*."
    )
    return _by_spread("rounded-verdicts", says, effort.sweeps, any_false)


def rounded_means(effort: Effort) -> Table:
    """Return how often the interval of the mean of rounded figures holds the truth."""
    says = "Intervals of a **mean** at 95 % of **rounded figures**: how often they contain the truth."
    return _by_spread("rounded-means", says, effort.samples, mean_covered)


def _by_spread(name: str, says: str, cases: int, share: Callable[[float, int, int], Share]) -> Table:
    rows = tuple((f"{sd:g} steps", tuple(share(sd, n, cases) for n in SIZES)) for sd in SPREADS)
    return Table(name, says, cases, ("standard deviation of a trial", *(f"n = {n}" for n in SIZES)), rows)


def _true(rng: Generator, size: tuple[int, ...]) -> Floats:
    """True figures at any place between two points of the grid."""
    return TRUE + rng.uniform(-0.5, 0.5, size)


def any_false(sd: float, n: int, sweeps: int) -> Share:
    """Return the share of sweeps of identical cells, rounded to whole steps, with any verdict that one is different."""
    rng, false = generator("rounded A/A", sd, n), 0
    for _ in range(sweeps):
        values = np.rint(_true(rng, (1, 1)) + sd * rng.standard_normal((CELLS, n)))
        ratios = compare_rows(values[1:], np.broadcast_to(values[0], values[1:].shape), steps=(1.0, 1.0))
        false += bool(np.any(adjust_comparisons(ratios, level=LEVEL, smallest_effect=MARGIN).p_adjusted < 1 - LEVEL))
    return Share(false, sweeps)


def mean_covered(sd: float, n: int, samples: int) -> Share:
    """Return the share of samples, rounded to whole steps, whose interval holds the mean."""
    rng = generator("rounded mean", sd, n)
    true = _true(rng, (samples,))
    values = np.rint(true[:, None] + sd * rng.standard_normal((samples, n)))
    found = estimate_samples(values.ravel(), np.full(samples, n), level=LEVEL, steps=np.ones(samples))
    return held(found.low, found.high, true)


def missing_blocks(effort: Effort) -> Table:
    """Return how often two identical cells are called different where a box drifts and one side ends early."""
    says = (
        f"**Missing blocks**: two identical cells, cv {100 * NOISE:g} %, on a box that slows down by {100 * DRIFT:g} % "
        f"over {BLOCKS} blocks. How often their ratio is shown to differ from 1, and how often it is 2 % off."
    )
    rows = [(f"one side ends after {kept} of {BLOCKS}", _missing(_ends(kept), effort.samples)) for kept in KEPT]
    rows.append((f"each side lacks another {LACKING}: not paired", _missing(_apart(LACKING), effort.samples)))
    return Table("missing", says, effort.samples, ("blocks", "false", "off by 2 %"), tuple(rows))


def _ends(kept: int) -> tuple[Floats, Floats]:
    """Return which blocks each side has: 1, else NaN."""
    return np.where(np.arange(BLOCKS) < kept, 1.0, np.nan), np.ones(BLOCKS)


def _apart(lacking: int) -> tuple[Floats, Floats]:
    places = np.arange(BLOCKS)
    return np.where(places < BLOCKS - lacking, 1.0, np.nan), np.where(places >= lacking, 1.0, np.nan)


def _missing(present: tuple[Floats, Floats], samples: int) -> tuple[Share, Share]:
    rng = generator("missing", *present[0], *present[1])
    found = drifted(rng, present, samples)
    false, off = found.p() < 1 - LEVEL, np.abs(found.log_mean) > np.log1p(0.02)
    return Share(int(false.sum()), samples), Share(int(off.sum()), samples)


def drifted(rng: Generator, present: tuple[Floats, Floats], samples: int) -> Ratios:
    """Return ratios of identical cells on a box that becomes slower from block to block."""
    drift = -DRIFT * np.linspace(0, 1, BLOCKS)
    ours, theirs = (np.exp(drift + NOISE * rng.standard_normal((samples, BLOCKS))) * each for each in present)
    return compare_rows(ours, theirs)
