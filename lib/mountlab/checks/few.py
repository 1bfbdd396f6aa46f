"""Cells with too few trials, and what intervals of few trials rest on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from mountlab.checks.base import Check, Doubt, Evidence
from mountlab.core.box_facts import BoxFacts
from mountlab.core.model import Cell, Sweep
from mountlab.core.numbers import listed
from mountlab.filesystems import is_in_place

FEW = 5
_WATCH_MORE = f"Watch it with --repeats {FEW} or more."
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


def too_few(evidence: Evidence) -> Iterator[Doubt]:
    """Cells with too few trials for an interval that means much.

    n < 5. An error for n = 1, but for a program that is watched: there it is a note.
    """
    fewest: dict[str, tuple[Cell, int]] = {}
    for sample in evidence.samples:
        n = len(sample.values)
        if n < fewest.get(sample.cell.id, (sample.cell, n + 1))[1]:
            fewest[sample.cell.id] = (sample.cell, n)
    for cell, n in fewest.values():
        yield from _few(cell, n, evidence.sweep.design.estimate)


def will_be_too_few(sweep: Sweep, _: BoxFacts) -> Iterator[Doubt]:
    """A design with too few repeats for an interval that means much."""
    until = sweep.design.until
    for cell in sweep.cells[:1]:
        for doubt in _few(cell, until.min if until else sweep.design.repeats, sweep.design.estimate):
            yield replace(doubt, scope="run", subject="")


_RESTS = {
    "median": "The interval of a median holds for any shape, and at 95 % has no end below 6 trials.",
    "geometric": "The interval rests on roughly normal logarithms, which so few trials cannot show.",
    "harmonic": "The interval rests on roughly normal times, which so few trials cannot show.",
}
"""What the interval of another figure than the mean rests on."""


def _few(cell: Cell, n: int, statistic: str) -> Iterator[Doubt]:
    if n < 2 and is_in_place(cell.filesystem):
        message = f"watched once: what it did was counted, and how that varies is not known. {_WATCH_MORE}"
        yield Doubt.of_cell(cell, message, severity="note")
    elif n < 2:
        message = f"n = {n}: one trial has no spread and so no interval. Set repeats (or until.min) to {FEW} or more."
        yield Doubt.of_cell(cell, message)
    elif n < FEW:
        why = _RESTS.get(statistic) or rests_on(n)
        more = _WATCH_MORE if is_in_place(cell.filesystem) else f"Set repeats (or until.min) to {FEW} or more."
        yield Doubt.of_cell(cell, f"n = {n}: too few. {why} {more}", severity="warning")


CHECKS = (
    Check(
        "too-few",
        too_few,
        "Set `repeats` (or `until.min`) to 5 or more.",
        watched=_WATCH_MORE,
        severities=("error", "warning", "note"),
        foresee=will_be_too_few,
    ),
)
