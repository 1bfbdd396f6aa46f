"""How much of the error one look at a question may spend, where the question may be asked again with more data.

A gate that could not decide is asked again, with more blocks or with more runs. With each look at the full level the
error would grow with every look. So each look has a share of it, which depends on nothing but how much data there is:
alpha spending (Lan & DeMets 1983) with the shares of Bonferroni. The shares of all looks add up to 1 or less, so the
error over all of them is at most what a single look at the full level would have, however the looks depend on one
another: the same runs with more blocks, or new and longer runs. No record of earlier looks is needed.

Of one run beside one, a look is at one of BLOCKS, each twice the one before. The same number of blocks counts of both
runs: the last of these that both have. Were the longer run to count in full, each of its lengths beside the same
shorter run would be a look. With several runs on a side, a look is at 3, 6, 12 ... runs of each, or at one beside 5,
10, 20 ...: the first so many of each side. So each look is at data that are fixed beforehand, whichever side grows, in
whatever order and for whatever reason.
"""

from __future__ import annotations

import math
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
SIDE, BESIDE_ONE = 3, 5
"""Runs of each side at the first look that can show much; and those beside a single one."""
_EARLY, _NEXT = 0.02, 0.7
"""Of blocks: the share of each look that can show little; and of each look after FIRST, in shares of the one before."""
_FEW_RUNS, _FEW_PAIRS = 0.001, 11
"""The share of a look at fewer runs, which can show little, and how many such pairs of numbers there are."""
_SINGLE, _NEXT_RUNS = 0.1, 0.15
"""Of runs: the share of all looks at one beside several, three quarters of it for one of the change; and of each later
look at as many on each side, in shares of the one before. Three a side have 75 % of the error, so that a look at no
more can decide (docs/calibration.md#the-gate). More runs of one side only would not make up for a look of their own."""


def counted(change: int, baseline: int, unit: Unit, looks: Looks = "any") -> tuple[int, int]:
    """Return how many blocks or runs of the change and of the baseline count: those up to the last look; too few for a
    look all."""
    fewer, more = sorted((change, baseline))
    if looks == "once":
        return change, baseline
    if unit == "block":
        place = bisect_right(BLOCKS, fewer)
        last = BLOCKS[place - 1] if place else math.inf
        return int(min(change, last)), int(min(baseline, last))
    if fewer >= SIDE:
        size = _doubled(SIDE, fewer)
        return size, size
    if more < BESIDE_ONE:
        return change, baseline
    size = _doubled(BESIDE_ONE, more)
    return (1, size) if change < baseline else (size, 1)


def share(change: int, baseline: int, unit: Unit, looks: Looks = "any") -> float:
    """Return the share of the error for the look at so many blocks, or runs, of each side. Over all looks they sum to
    at most 1. Too few for a look have the share of the first."""
    if looks == "once":
        return 1.0
    fewer, more = sorted(counted(change, baseline, unit))
    if unit == "block":
        early = BLOCKS.index(FIRST)
        step = BLOCKS.index(max(fewer, BLOCKS[0])) - early
        return _EARLY if step < 0 else (1 - _EARLY * early) * (1 - _NEXT) * _NEXT**step
    if fewer >= SIDE:
        step = round(math.log2(fewer / SIDE))
        return (1 - _FEW_RUNS * _FEW_PAIRS - _SINGLE) * (1 - _NEXT_RUNS) * _NEXT_RUNS**step
    if more < BESIDE_ONE:
        return _FEW_RUNS
    step = round(math.log2(more / BESIDE_ONE))
    return _SINGLE * (0.75 if change < baseline else 0.25) * 0.5 ** (step + 1)


def later(n: int, unit: Unit, looks: Looks = "any") -> Sequence[int]:
    """Return how many values of each side the next looks have: more than n, at least 2, and at most MOST."""
    least = max(n + 1, 2)
    if looks == "once":
        return range(least, MOST + 1)
    return [size for size in (BLOCKS if unit == "block" else [SIDE * 2**step for step in range(9)]) if size >= least]


def _doubled(first: int, n: int) -> int:
    """Return the largest of first, 2 first, 4 first ... up to n."""
    return first << (n // first).bit_length() - 1
