"""Latencies whose parts are known, sent through the shares of a difference: how often the interval of the part that is
named holds its share, and how often a part that does not differ is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from mountlab.stats.estimates import Floats
from mountlab.stats.shares import (
    DifferenceShare,
    not_smaller,
    parts_of_log_ratio,
    share_of_difference,
    shares_of_parts,
)
from mountlab.stats.simulated import LEVEL, Process, gamma, generator, lognormal, normal

from mountlab_dev.calibration.document import Share, Table
from mountlab_dev.calibration.tables import Effort

BLOCKS = (3, 5, 10)
PARTS = 10
_TRIALS = (normal(), gamma(), lognormal(1.0))
_ALONE = [[part] for part in range(PARTS)]
_EQUAL, _ONE = (2.0,) * PARTS, (1.0 + 2 * PARTS, *(1.0,) * (PARTS - 1))
_TWICE = (3.0, *(2.0,) * (PARTS - 1))
"""Means of the candidate's parts, where those of the baseline are 1 each."""


def shares_of_differences(effort: Effort) -> Table:
    """Return how right the shares of a difference are, where the largest of many parts is named."""
    says = (
        f"**Shares of a difference** between two latencies of {PARTS} parts, each part of a diagnostic trial like the "
        f"row. *Named*: all parts have a {PARTS}th of it, and the interval of the largest holds that. *Any shown*: one "
        f"part makes all of it, and any of the {PARTS - 1} others is shown. *By itself*: intervals that are not "
        "corrected for the other parts. *Among*: all parts are the same; the one that is looked for is named, or not "
        "shown to be smaller than the one that is. *Apart*: one part makes twice as much of it as any other, and no "
        "other may be the largest."
    )
    columns: dict[str, Callable[[Process, int], Share]] = {
        "named": lambda process, n: _named(process, n, effort.sweeps, together=True),
        "named, by itself": lambda process, n: _named(process, n, effort.sweeps, together=False),
        "any shown": lambda process, n: _any_shown(process, n, effort.sweeps, together=True),
        "any shown, by itself": lambda process, n: _any_shown(process, n, effort.sweeps, together=False),
        "among": lambda process, n: _largest(process, _EQUAL, n, effort.sweeps, _is_among),
        "apart": lambda process, n: _largest(process, _TWICE, n, effort.sweeps, _is_alone),
    }
    rows = tuple(
        (f"{process.name}: n = {n}", tuple(count(process, n) for count in columns.values()))
        for process in _TRIALS
        for n in BLOCKS
    )
    return Table("difference-shares", says, effort.sweeps, ("trials", *columns), rows)


def _named(process: Process, n: int, cases: int, *, together: bool) -> Share:
    families = _families(process, _EQUAL, n, cases, together=together)
    named = [max(shares, key=lambda share: share.share) for shares in families]
    return Share(sum(share.low <= 1 / PARTS <= share.high for share in named), cases)


def _any_shown(process: Process, n: int, cases: int, *, together: bool) -> Share:
    families = _families(process, _ONE, n, cases, together=together)
    return Share(sum(any(share.shown for share in shares[1:]) for shares in families), cases)


def _largest(
    process: Process, means: tuple[float, ...], n: int, cases: int, is_right: Callable[[int, Sequence[int]], bool]
) -> Share:
    """Count the differences in which what is named as the largest is right; `is_right`: of the part that is named, and
    of those that are not shown to be smaller."""
    named = 0
    for ours, theirs in _sides(process, means, n, cases):
        first = int(np.argmax(parts_of_log_ratio(ours, theirs).mean(axis=1)))
        (rivals,) = not_smaller(ours, theirs, [[first]], level=LEVEL)
        named += is_right(first, rivals)
    return Share(named, cases)


def _is_among(named: int, rivals: Sequence[int]) -> bool:
    return named == 0 or 0 in rivals


def _is_alone(named: int, rivals: Sequence[int]) -> bool:
    return named == 0 and not rivals


def _sides(process: Process, means: tuple[float, ...], n: int, cases: int) -> Iterator[tuple[Floats, Floats]]:
    """Yield the parts of the candidate and of the baseline in so many differences, each of shape (parts, blocks)."""
    rng = generator("shares", process.name, n, *means)
    drawn = process.draw(rng, (2 * PARTS * cases, n)).reshape(cases, 2, PARTS, n)
    yield from zip(drawn[:, 0] * np.array(means)[:, None], drawn[:, 1], strict=True)


def _families(
    process: Process, means: tuple[float, ...], n: int, cases: int, *, together: bool
) -> list[list[DifferenceShare]]:
    """Return the shares of each part of so many differences; the same differences whether they hold together or not."""
    drawn = _sides(process, means, n, cases)
    if together:
        return [shares_of_parts(*sides, _ALONE, level=LEVEL) for sides in drawn]
    rows = (parts_of_log_ratio(*sides) for sides in drawn)
    return [[share_of_difference(part, parts.sum(axis=0), level=LEVEL) for part in parts] for parts in rows]
