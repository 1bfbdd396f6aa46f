"""What intervals of few trials rest on."""

from __future__ import annotations

from mountlab.core.numbers import listed

_HEAVY = "a heavy tail (lognormal, σ 1)"
_MODES = "two modes (30\u00a0% of the trials twice as fast)"
_DRIFT = "a drift (4 standard deviations over the run)"
COVERED_BY_FEW: dict[int, dict[str, int]] = {
    2: {_MODES: 73},
    3: {_MODES: 64},
    4: {_HEAVY: 90, _MODES: 75, _DRIFT: 88},
    5: {_HEAVY: 89, _MODES: 81, _DRIFT: 67},
    6: {_HEAVY: 88, _MODES: 87, _DRIFT: 43},
    7: {_HEAVY: 88, _MODES: 90, _DRIFT: 23},
    8: {_HEAVY: 88, _DRIFT: 10},
    9: {_HEAVY: 88, _DRIFT: 4},
}
"""n to how many in a hundred 95 % intervals hold the truth, where that is 90 or fewer, for what n trials cannot show:
from the table of few trials in docs/calibration.md (test_calibration.py compares the two)."""


def rests_on(n: int) -> str:
    """Return what the interval of n trials rests on, where these are too few to show it; '' for n < 2 and n >= 10.

    'n = 3 cannot show the shape of the spread: ... with two modes 64 % would.'
    """
    if n not in COVERED_BY_FEW:
        return ""
    others = [f"with {what} {covered}\u00a0%" for what, covered in COVERED_BY_FEW[n].items()]
    return (
        f"n = {n} cannot show the shape of the spread, so the interval rests on trials that are independent and "
        f"roughly normal: then 95\u00a0% of such intervals hold the truth; {listed(others)} would."
    )
