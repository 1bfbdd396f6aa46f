"""How many trials it takes: a precision that is asked for, fixed repeats, and the run-count rules of other suites."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from mountlab.core.model import Until
from mountlab.stats import sequential
from mountlab.stats.estimates import Estimates, estimate_samples
from mountlab.stats.simulated import LEVEL, Floats, generator, normal
from numpy.typing import NDArray

from mountlab_dev.calibration.document import Share, Table, Trials
from mountlab_dev.calibration.tables import Effort, naive_blocks

CV, HALF_WIDTH = 0.05, 0.03
"""Of the trials; and what is asked of the interval of their mean, as a share of it."""
UNTIL = Until(half_width=HALF_WIDTH, min=5, max=40)
FIXED = (3, 5, 10, 20, 30)
SCHEDULED = 3
"""Runs that the Phoronix Test Suite makes of most tests at first; at most twice as many."""


@dataclass(frozen=True)
class Taken:
    """What a rule came to, in each of many simulated samples."""

    values: Floats
    """(samples, most) trials."""
    counts: NDArray[np.int64]
    """(samples,) how many of them were made."""
    level: float = LEVEL
    """At which an interval is computed, so that it covers 95 %; or that of the usual interval."""
    pools: NDArray[np.int64] | None = None
    """What samples ran in the same blocks, where intervals allow for trials that are like their neighbours."""

    def estimates(self) -> Estimates:
        """Return the mean and interval of each sample."""
        kept = np.arange(self.values.shape[1]) < self.counts[:, None]
        return estimate_samples(self.values[kept], self.counts, level=self.level, pools=self.pools)

    def shares(self, truth: float) -> tuple[Share, Share, Share]:
        """Whose mean is as near to the truth as was asked, whose interval says so, and whose interval holds the
        truth."""
        found = self.estimates()
        near = np.abs(found.figure - truth) <= HALF_WIDTH * truth
        narrow = found.high - found.figure <= HALF_WIDTH * found.figure * (1 + 1e-9)
        holds = (found.low <= truth) & (truth <= found.high)
        near_, narrow_, holds_ = (Share(int(np.count_nonzero(each)), len(each)) for each in (near, narrow, holds))
        return near_, narrow_, holds_


def fixed(samples: int, count: int) -> Taken:
    """So many trials, whatever they say."""
    return Taken(_drawn(samples, count, "fixed", count), np.full(samples, count, dtype=np.int64))


def while_spread(samples: int, limit: float, most: int) -> Taken:
    """Return trials until their standard deviation is below a share of their mean; at least SCHEDULED, at most `most`.

    With `most` twice SCHEDULED and a limit of 3.5 % it is DynamicRunCount as the Phoronix Test Suite documents it; its
    code has had 3 % as well.
    """
    values = _drawn(samples, most, "spread", limit, most)
    counts = np.arange(1, most + 1)
    means = np.cumsum(values, axis=1) / counts
    squares = np.cumsum((values - values[:, :1]) ** 2, axis=1) - counts * (means - values[:, :1]) ** 2
    sd = np.sqrt(np.maximum(squares, 0) / np.maximum(counts - 1, 1))
    blocks = sequential.first_block((sd < limit * means) & (counts >= SCHEDULED), most)
    return Taken(values, blocks.astype(np.int64))


def naive(samples: int) -> Taken:
    """Return trials until the usual interval is as narrow as was asked."""
    values = _drawn(samples, UNTIL.max, "naive")
    return Taken(values, naive_blocks(values, UNTIL).astype(np.int64))


def until(samples: int) -> Taken:
    """Return trials until the interval, computed so that it covers what it says after all these looks, is narrow
    enough."""
    values = _drawn(samples, UNTIL.max, "until")
    blocks = sequential.blocks_taken(values[:, None, :], UNTIL).astype(np.int64)
    return Taken(values, blocks, sequential.nominal_level(UNTIL, LEVEL), np.arange(samples))


def _drawn(samples: int, most: int, *names: object) -> Floats:
    return normal(CV).draw(generator("needed", *names), (samples, most))


def trials_needed(effort: Effort) -> Table:
    """Return trials that each rule takes, and what the result is worth, for the same normal trials."""
    near = f"±{100 * HALF_WIDTH:g} %"
    says = (
        f"**Trials needed** where {near} is required of a mean at 95 %, and trials are normal with a coefficient of "
        f"variation of {100 * CV:g} %. How many trials a rule takes; how often the mean is then truly within {near}; "
        "how often its interval is within that; how often that interval contains the truth."
    )
    rows = tuple((name, _row(taken)) for name, taken in _rules(effort.looks))
    header = ("rule", "trials, half of the time", "trials, 9 of 10 times", "mean within", "interval within", "covered")
    return Table("trials-needed", says, effort.looks, header, rows)


def _rules(samples: int) -> list[tuple[str, Taken]]:
    most = 2 * SCHEDULED
    return [
        *((f"{count} repeats", fixed(samples, count)) for count in FIXED),
        *(
            (f"standard deviation under {100 * limit:g} %, {SCHEDULED} to {most}", while_spread(samples, limit, most))
            for limit in (0.03, 0.035, 0.05)
        ),
        (f"standard deviation under 5 %, {SCHEDULED} to {UNTIL.max}", while_spread(samples, 0.05, UNTIL.max)),
        (f"usual interval within 3 %, {UNTIL.min} to {UNTIL.max}", naive(samples)),
        (f"`until: half_width: 3 %`, {UNTIL.min} to {UNTIL.max}", until(samples)),
    ]


def _row(taken: Taken) -> tuple[Share | Trials, ...]:
    median, many = (Trials(float(each)) for each in np.quantile(taken.counts, (0.5, 0.9), method="higher"))
    return (median, many, *taken.shares(normal(CV).mean))
