"""How much of the error one look at a question may spend, where the question may be asked again with more data.

A gate that could not decide is asked again, with more blocks or with more runs. With each look at the full level the
error would grow with every look. So each look has a share of it, which depends on nothing but how much data there is:
alpha spending (Lan & DeMets 1983) with the shares of Bonferroni. The shares of all looks add up to 1 or less, so the
error over all of them is at most what a single look at the full level would have, however the looks depend on one
another: the same runs with more blocks, or new and longer runs. No record of earlier looks is needed.

Of one run beside one, a look is at one of BLOCKS, each twice the one before. The same number of blocks counts of both
runs: the last of these that both have. Were the longer run to count in full, each of its lengths beside the same
shorter run would be a look. With several runs on a side each further run is a look, and all count. Its share depends on
the runs of both sides together: whichever side grows, in whatever order, each total comes once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Literal

Unit = Literal["block", "run"]
Looks = Literal["any", "once"]
"""How often a question is asked: as often as one likes; or once, which was decided before there were data."""
MOST = 2000
"""More values than that are never asked for."""
FIRST = 5
"""Blocks at the first look that can show much, which has the largest share."""
BLOCKS = (2, 3, 4, *(FIRST * 2**step for step in range(9)))
"""2, 3, 4, 5, 10, 20, 40, 80 ... 1280: the looks at one run beside one. Fewer looks have larger shares: of schedules
with steps of 1.4 and 2 this one takes the fewest blocks until a question is decided."""
_EARLY, _NEXT = 0.02, 0.7
"""The share of each look that can show little; and of each look at blocks after FIRST, in shares of the one before."""
_FREEDOM = 4
"""Degrees of freedom of the first look at runs that can show much: one run beside five."""


def counted(n: int, unit: Unit, looks: Looks = "any") -> int:
    """Return how many of n values of a side count: those up to the last look; of fewer than two all."""
    if looks == "once" or unit == "run":
        return n
    place = bisect_right(BLOCKS, n)
    return BLOCKS[place - 1] if place else n


def share(n: int, unit: Unit, looks: Looks = "any") -> float:
    """Return the share of the error for the look at n blocks of each run; or at n runs, those of both sides together.
    Over all looks they sum to at most 1. Too few for a look have the share of the first."""
    if looks == "once":
        return 1.0
    return _share_of_runs(n) if unit == "run" else _share_of_blocks(n)


def _share_of_blocks(n: int) -> float:
    early = BLOCKS.index(FIRST)
    step = BLOCKS.index(counted(max(n, BLOCKS[0]), "block")) - early
    return _EARLY if step < 0 else (1 - _EARLY * early) * (1 - _NEXT) * _NEXT**step


def _share_of_runs(n: int) -> float:
    """_EARLY each for 1, 2 and 3 degrees of freedom; the rest falls with 1 / ((d + 4) (d + 5)) for d of them, which
    sums to 1 / 8 from 4 on. With 1 / (d (d + 1)) one run would pass less often beside 20 runs than beside five."""
    d, slow = max(n - 2, 1), _FREEDOM
    left = 1 - _EARLY * (_FREEDOM - 1)
    return _EARLY if d < _FREEDOM else left * (_FREEDOM + slow) / ((d + slow) * (d + slow + 1))


def later(n: int, unit: Unit, looks: Looks = "any") -> Sequence[int]:
    """Return how many values of each side the next looks have: more than n, at least 2, and at most MOST."""
    least = max(n + 1, 2)
    return [each for each in BLOCKS if each >= least] if (unit, looks) == ("block", "any") else range(least, MOST + 1)
