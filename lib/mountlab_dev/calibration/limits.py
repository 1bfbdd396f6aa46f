"""The simulations behind trials that ran into their time limit, and behind file systems that are made once."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from mountlab.stats.adjusted import adjust_comparisons
from mountlab.stats.censored import estimate_censored, ranked_ratios
from mountlab.stats.comparisons import Flags, Ratios, compare_rows
from mountlab.stats.estimates import estimate_samples
from mountlab.stats.simulated import LEVEL, MARGIN, NOISE, Floats, Generator, generator

from mountlab_dev.calibration.document import Share, Table
from mountlab_dev.calibration.tables import Effort, held

STALLS, STALLED_TIMES = 0.2, 50.0
"""How many trials stall, and how many times as long such a trial would have taken."""
EFFECT, CELLS = 1.2, 20
MAKING_SD, TRIAL_SD = 0.02, 0.01
SIZES = (5, 10, 20, 30)


def times_with_stalls(rng: Generator, size: tuple[int, ...]) -> tuple[Floats, Flags]:
    """Return times of trials, NaN where a trial runs into the time limit, and which trials did."""
    late = np.asarray(rng.random(size) < STALLS)
    return np.where(late, math.nan, rng.lognormal(0, NOISE, size)), late


def figures_with_limits(effort: Effort) -> Table:
    """Return how often the interval of a cell with trials at the limit holds the truth; and what leaving them out
    holds."""
    says = (
        f"Trials that **run into their time limit**: {100 * STALLS:g} % of all, the others lognormal, σ {NOISE:g}. How "
        "often the interval of a cell with such trials contains the median of all trials. Second row: a method that "
        "Mountlab does not use. It repeats such trials, and its interval should contain the mean of all trials, if "
        f"those at the limit took {STALLED_TIMES:g} times as long."
    )
    rows = (
        ("median, trials at the limit are the worst", tuple(_median_covered(n, effort.checks) for n in SIZES)),
        ("mean, drawn again", tuple(_mean_covered(n, effort.checks) for n in SIZES)),
    )
    return Table("limits", says, effort.checks, ("interval", *(f"n = {n}" for n in SIZES)), rows)


def _median_covered(n: int, samples: int) -> Share:
    values, late = times_with_stalls(generator("limits", n), (samples, n))
    truth = math.exp(NOISE * NormalDist().inv_cdf(0.5 / (1 - STALLS)))
    hits = cases = 0
    for row, own in zip(values, late, strict=True):
        if own.any():
            found = estimate_censored(row[~own], int(own.sum()), level=LEVEL, worst=math.inf)
            hits, cases = hits + (found.low <= truth <= found.high), cases + 1
    return Share(hits, max(cases, 1))


def _mean_covered(n: int, samples: int) -> Share:
    values = generator("drawn again", n).lognormal(0, NOISE, (samples, n))
    found = estimate_samples(values.ravel(), np.full(samples, n), level=LEVEL)
    truth = (1 + STALLS * (STALLED_TIMES - 1)) * math.exp(NOISE**2 / 2)
    return held(found.low, found.high, truth)


def verdicts_with_limits(effort: Effort) -> Table:
    """False verdicts among identical cells that all have trials at the limit; and how often a difference is seen."""
    says = (
        f"**Verdicts with trials at the limit**, {100 * STALLS:g} % of all on each side. First row: how many sweeps "
        f"of {CELLS} identical cells have a verdict *faster* or *slower*, which is false. Second row, in bold: how "
        f"often one candidate that takes {EFFECT:g} times as long is called *slower*."
    )
    rows = (
        (f"A/A, {CELLS} cells", tuple(_any_false(n, effort.sweeps) for n in SIZES)),
        ("the only comparison", tuple(_found(n, effort.sweeps) for n in SIZES)),
    )
    return Table("limit-verdicts", says, effort.sweeps, ("sweep", *(f"n = {n}" for n in SIZES)), rows)


def ratios_with_stalls(candidates: tuple[Floats, Flags], baselines: tuple[Floats, Flags]) -> Ratios:
    """Return ratios of times, (comparisons, blocks) each, where some trials are at the limit."""
    sides, late = (candidates[0], baselines[0]), (candidates[1], baselines[1])
    return ranked_ratios(compare_rows(*sides), sides, late, np.ones(len(sides[0])))


def _decided(ratios: Ratios) -> Flags:
    return adjust_comparisons(ratios, level=LEVEL, smallest_effect=MARGIN).p_adjusted < 1 - LEVEL


def _any_false(n: int, sweeps: int) -> Share:
    rng, false = generator("limits A/A", n), 0
    for _ in range(sweeps):
        values, late = times_with_stalls(rng, (CELLS, n))
        first = np.broadcast_to(values[:1], (CELLS - 1, n)), np.broadcast_to(late[:1], (CELLS - 1, n))
        false += bool(np.any(_decided(ratios_with_stalls((values[1:], late[1:]), first))))
    return Share(false, sweeps)


def _found(n: int, sweeps: int) -> Share:
    rng, hits = generator("limits power", n), 0
    for _ in range(sweeps):
        (ours, late), theirs = (times_with_stalls(rng, (1, n)) for _ in range(2))
        hits += bool(_decided(ratios_with_stalls((EFFECT * ours, late), theirs))[0])
    return Share(hits, sweeps, meant=True)


def made_once_or_in_each_block(effort: Effort) -> Table:
    """Return how often two equal file systems are shown to differ, where makings of a file system differ."""
    says = (
        f"**Makings**: two equal file systems. Makings of a file system differ by {100 * MAKING_SD:g} %, trials of one "
        f"making by {100 * TRIAL_SD:g} %. How often the only comparison shows a difference, which is false."
    )
    rows = (
        ("`fresh_filesystem: never`", tuple(_differs(n, effort.samples, makings=1) for n in SIZES)),
        ("`fresh_filesystem: block`", tuple(_differs(n, effort.samples, makings=n) for n in SIZES)),
    )
    return Table("makings", says, effort.samples, ("file systems", *(f"n = {n}" for n in SIZES)), rows)


def _differs(n: int, samples: int, *, makings: int) -> Share:
    rng = generator("makings", n, makings)
    ours, theirs = (
        rng.lognormal(0, MAKING_SD, (samples, makings)) * rng.lognormal(0, TRIAL_SD, (samples, n)) for _ in range(2)
    )
    return Share(int(np.count_nonzero(compare_rows(ours, theirs).p() < 1 - LEVEL)), samples)
