"""How many trials a precision takes, and what other rules give for theirs: simulated (calibrate/rules.py)."""

from __future__ import annotations

from collections.abc import Iterator

from mountlab_dev.bench.table import Row
from mountlab_dev.calibration.rules import CV, HALF_WIDTH, SCHEDULED, Taken, fixed, until, while_spread

SAMPLES = 5_000
REPEATS = 3
"""What many articles have."""
SPREAD = 0.035


def rows() -> Iterator[Row]:
    """Yield trials of each rule, and how often its 95 % interval is both as narrow as was asked and right."""
    asked = f"±{100 * HALF_WIDTH:g} % at cv {100 * CV:g} %"
    most = 2 * SCHEDULED
    rules = {
        "`until`": until(SAMPLES),
        f"standard deviation under {100 * SPREAD:g} %, {SCHEDULED} to {most}": while_spread(SAMPLES, SPREAD, most),
        f"{REPEATS} repeats": fixed(SAMPLES, REPEATS),
    }
    for name, taken in rules.items():
        yield Row(f"trials for {asked}, {name}", taken.counts.astype(float).tolist(), "count")
        yield from _worth(taken)


def _worth(taken: Taken) -> Iterator[Row]:
    near, narrow, holds = taken.shares(1.0)
    yield Row("  share of means that are as near as that", [near.rate], "ratio")
    yield Row("  share of intervals that are as narrow as that", [narrow.rate], "ratio")
    yield Row("  share of intervals that hold the truth", [holds.rate], "ratio")
