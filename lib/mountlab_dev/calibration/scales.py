"""The simulation behind the scale of the interval of a mean: plain, on the log scale, that of the geometric mean."""

from __future__ import annotations

import numpy as np
from mountlab.stats.estimates import Estimates, estimate_samples
from mountlab.stats.simulated import LEVEL, Process, gamma, generator, lognormal, normal

from mountlab_dev.calibration.document import Share, Table
from mountlab_dev.calibration.processes import mirrored
from mountlab_dev.calibration.tables import Effort, held

SIZES = (3, 5, 10, 20)
PROCESSES = (
    normal(), normal(0.2), normal(0.4), lognormal(0.3), lognormal(1.0), gamma(), gamma(1.0), mirrored(),
)  # fmt: skip


def scales_of_means(effort: Effort) -> Table:
    """Return how often each kind of interval holds the mean, and how often the plain one goes below zero."""
    says = (
        "Intervals of a **mean** of positive trials at 95 %, **by their scale**. How often the t interval, the one on "
        "the log scale and that of the geometric mean contain the mean. *Below 0*: how often the t interval goes below "
        "zero."
    )
    names = ("t", "log scale", "geometric", "below 0")
    header = ("trials", *(f"{name}, n = {n}" for name in names[:2] for n in SIZES))
    header += tuple(f"{name}, n = {n}" for name in names[2:] for n in (SIZES[0], SIZES[-1]))
    rows = tuple((process.name, _of(process, effort.samples)) for process in PROCESSES)
    return Table("scales", says, effort.samples, header, rows)


def _of(process: Process, samples: int) -> tuple[Share, ...]:
    plain, logs, geometric = {}, {}, {}
    for n in SIZES:
        values = process.draw(generator("scales", process.name, n), (samples, n)).ravel()
        sizes = np.full(samples, n)
        plain[n] = estimate_samples(values, sizes, level=LEVEL, signed=np.ones(samples, dtype=bool))
        logs[n] = estimate_samples(values, sizes, level=LEVEL)
        geometric[n] = estimate_samples(values, sizes, level=LEVEL, statistic="geometric")
    held_by = [_held(each[n], process) for each in (plain, logs) for n in SIZES]
    ends = (SIZES[0], SIZES[-1])
    held_by += [_held(geometric[n], process) for n in ends]
    return (*held_by, *(Share(int(np.count_nonzero(plain[n].low < 0)), samples) for n in ends))


def _held(found: Estimates, process: Process) -> Share:
    return held(found.low, found.high, process.mean)
