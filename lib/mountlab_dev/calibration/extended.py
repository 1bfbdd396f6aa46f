"""The simulation behind what is promised for runs that are extended after a look at their results."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy
from mountlab.stats.extended import level_after
from mountlab.stats.simulated import LEVEL, Floats, Process, drifting, generator
from numpy.typing import NDArray

from mountlab_dev.calibration.document import Share, Table
from mountlab_dev.calibration.processes import LISTED
from mountlab_dev.calibration.tables import Effort

FIRST, EXTENSIONS, MOST_BLOCKS = 5, 5, 320
"""Blocks before the first look, extensions at most, and blocks at most."""
Added = Callable[[Floats, NDArray[np.int64]], NDArray[np.int64]]
"""From t at a look, and the blocks so far, to how many blocks are added; 0 ends the run."""


def missed_after_extensions(effort: Effort) -> Table:
    """Return how many runs are extended and then print an interval without the truth."""
    says = (
        f"**Extended runs** (`mountlab extend`): {FIRST} blocks, then up to {EXTENSIONS} extensions. How many of all "
        "runs are extended and then print a 95 % interval that misses the true mean. *While undecided*: five more "
        "blocks as long as the usual interval contains the true mean. *As many as seem missing*: the blocks that would "
        "make it leave that out, if the mean were what was seen."
    )
    columns: tuple[tuple[str, Added, bool], ...] = (
        ("while undecided, not corrected", while_undecided, False),
        ("while undecided", while_undecided, True),
        ("as many again", as_many_again, True),
        ("as many as seem missing", as_seem_missing, True),
    )
    # What drifts does so over MOST_BLOCKS: a run that ends earlier has another mean.
    processes = [each for each in LISTED if each.name != drifting().name]
    rows = tuple(
        (each.name, tuple(missed(each, added, effort.checks, corrected=yes) for _, added, yes in columns))
        for each in processes
    )
    return Table("extended", says, effort.checks, ("trials", *(name for name, _, _ in columns)), rows)


def missed(process: Process, added: Added, runs: int, *, corrected: bool, first: int = FIRST) -> Share:
    """Return the share of runs that are extended, and then miss at one of the looks that they are extended to."""
    values = process.draw(generator("extended", process.name, added.__name__), (runs, MOST_BLOCKS)) - process.mean
    t, rows = t_after_each_block(values), np.arange(runs)
    n, out = np.full(runs, first), np.zeros(runs, dtype=bool)
    for count in range(1, EXTENSIONS + 1):
        more = added(t[rows, n - 1], n)
        going = ~out & (more > 0)
        n = np.minimum(np.where(going, n + more, n), MOST_BLOCKS)
        level = level_after(count, LEVEL) if corrected else LEVEL
        out |= going & (np.abs(t[rows, n - 1]) > scipy.special.stdtrit(n - 1, (1 + level) / 2))
    return Share(int(out.sum()), runs)


def t_after_each_block(values: Floats) -> Floats:
    """Student's t of values of shape (runs, blocks) after each block; 0 after the first."""
    counts = np.arange(1, values.shape[1] + 1)
    means = np.cumsum(values, axis=1) / counts
    squares = np.maximum(np.cumsum(values**2, axis=1) - counts * means**2, 0)
    error = np.sqrt(squares / np.maximum(counts - 1, 1) / counts)
    return np.asarray(np.divide(means, error, out=np.zeros_like(means), where=error > 0))


def while_undecided(t: Floats, n: NDArray[np.int64]) -> NDArray[np.int64]:
    """Five more blocks, while the usual interval contains the truth."""
    return np.where(np.abs(t) < scipy.special.stdtrit(n - 1, (1 + LEVEL) / 2), 5, 0)


def as_many_again(t: Floats, n: NDArray[np.int64]) -> NDArray[np.int64]:
    """Twice the blocks, whatever was seen."""
    return n


def as_seem_missing(t: Floats, n: NDArray[np.int64]) -> NDArray[np.int64]:
    """As many as would carry the mean beyond the bound of the next look, were it what it seems."""
    z = np.abs(scipy.special.ndtri(scipy.special.stdtr(n - 1, t)))
    wanted = n * ((scipy.special.ndtri((1 + level_after(1, LEVEL)) / 2) / np.maximum(z, 0.3)) ** 2 - 1)
    return np.asarray(np.clip(np.ceil(wanted), 1, 8 * n), dtype=np.int64)
