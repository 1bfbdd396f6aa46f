"""The simulations behind the gate: how often it cries wolf, how often it lets a regression pass, and what it sees."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from mountlab.calibrate.document import Share, Table
from mountlab.calibrate.processes import NOISE, Floats, Generator
from mountlab.calibrate.tables import LEVEL, Effort, generator
from mountlab.stats.looks import Looks, Unit, counted
from mountlab.stats.margin import AgainstMargin, against_margin

FIGURES, GATE_MARGIN = 10, 0.05
TWICE = (1 + GATE_MARGIN) ** 2
"""A regression whose logarithm is twice that of the margin: 10.25 %."""
RUN_TO_RUN = 0.03
DAILY = 100
"""Blocks up to which a question is asked again, after each block."""
BEFORE = 5
"""Runs of the baseline, where there are several."""
BLOCKS = (5, 10, 20, 40)
PILOTS = (5, 10)
"""With more blocks than these nearly all is told at once."""
_MOST = 500
"""More blocks than that nobody runs: such a pilot is not counted."""
Case = Callable[[Generator, int], bool]


def gate_outcomes(effort: Effort) -> Table:
    """What the gate says of figures whose truth is known; and of runs with as many blocks as it asked for."""
    says = (
        f"**The gate** at a margin of {_percent(GATE_MARGIN)}, {FIGURES} figures, two runs of n blocks, cv "
        f"{_percent(NOISE)}: how often any, or the one that is meant, fails or passes. Twice the margin is "
        f"{_percent(TWICE - 1)}; in bold what is meant to be large. Last rows: one figure, and runs with as many "
        "blocks as a pilot of n blocks that could not tell said it needs."
    )
    rows: list[tuple[str, tuple[Share | None, ...]]] = [
        (name, tuple(_share(name, case, n, effort.sweeps, meant=meant) for n in BLOCKS)) for name, meant, case in _ROWS
    ]
    for name, case, sweeps in (*((*each, effort.sweeps) for each in _AGAIN), (*_NOT_CORRECTED, effort.sweeps // 20)):
        rows.append((name, (_share(name, case, BLOCKS[0], max(1, sweeps), meant=False), None, None, None)))
    for name, truth, outcome, meant in _NEEDED:
        case = _promised(truth, outcome)
        row = (_share(name, case, n, effort.sweeps, meant=meant) if n in PILOTS else None for n in BLOCKS)
        rows.append((name, tuple(row)))
    return Table("gate", says, effort.sweeps, ("truth", *(f"n = {n}" for n in BLOCKS)), tuple(rows))


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def _share(name: str, case: Case, n: int, sweeps: int, *, meant: bool) -> Share:
    rng = generator("gate", name, n)
    return Share(sum(case(rng, n) for _ in range(sweeps)), sweeps, meant=meant)


def judged(rng: Generator, truth: Floats, n: int, *, run_to_run: float = 0.0, looks: Looks = "any") -> AgainstMargin:
    """Figures that are truly `truth` times as bad, in a run of n blocks beside one of as many."""
    sides = [_run(rng, len(truth), n, run_to_run) for _ in range(2)]
    return _against(truth[:, None] * sides[0], sides[1], looks=looks)


def _run(rng: Generator, figures: int, n: int, run_to_run: float) -> Floats:
    return np.asarray(rng.lognormal(0, run_to_run, (figures, 1)) * rng.lognormal(0, NOISE, (figures, n)))


def _against(change: Floats, baseline: Floats, *, unit: Unit = "block", looks: Looks = "any") -> AgainstMargin:
    less_is_better: NDArray[np.bool_] = np.zeros(len(change), dtype=bool)
    return against_margin(
        change, baseline, more_is_better=less_is_better, margin=GATE_MARGIN, level=LEVEL, unit=unit, looks=looks
    )


def _all(truth: float, outcome: str, run_to_run: float = 0.0) -> Case:
    """Whether any of figures that are all truly the same gets this outcome."""
    truths = np.full(FIGURES, truth)
    return lambda rng, n: bool(getattr(judged(rng, truths, n, run_to_run=run_to_run), outcome).any())


def _one(truth: float, outcome: str, looks: Looks = "any", figures: int = FIGURES) -> Case:
    """Whether the one figure that is truly so bad, among others that have not changed, gets this outcome."""
    truths = np.array([truth, *[1.0] * (figures - 1)])
    return lambda rng, n: bool(getattr(judged(rng, truths, n, looks=looks), outcome)[0])


def _daily(outcome: str, looks: Looks) -> Case:
    """Whether a figure at the margin gets this outcome at any look: after n blocks, and after each one more."""

    def case(rng: Generator, n: int) -> bool:
        change, baseline = (_run(rng, 1, DAILY, 0.0) for _ in range(2))
        at = range(n, DAILY + 1) if looks == "once" else sorted({counted(k, "block") for k in range(n, DAILY + 1)})
        found = (_against((1 + GATE_MARGIN) * change[:, :k], baseline[:, :k], looks=looks) for k in at)
        return any(bool(getattr(each, outcome)[0]) for each in found)

    return case


def _with_runs(truth: float, outcome: str) -> Case:
    """The same as `_all` for one run of the change beside several of the baseline, which differ by themselves."""

    def case(rng: Generator, n: int) -> bool:
        runs = [np.exp(np.log(_run(rng, FIGURES, n, RUN_TO_RUN)).mean(axis=1)) for _ in range(BEFORE + 1)]
        found = _against(truth * runs[0][:, None], np.stack(runs[1:], axis=1), unit="run")
        return bool(getattr(found, outcome).any())

    return case


def _promised(truth: float, outcome: str) -> Case:
    """Whether a figure gets this outcome in runs of as many blocks as a pilot of n without a change says it needs, the
    first pilot that cannot tell."""

    def case(rng: Generator, n: int) -> bool:
        needed = math.nan
        while math.isnan(needed) or needed > _MOST:
            needed = float(judged(rng, np.ones(1), n).needed[0])
        return bool(getattr(judged(rng, np.array([truth]), int(needed)), outcome)[0])

    return case


_ROWS: tuple[tuple[str, bool, Case], ...] = (
    ("nothing changed: any fails", False, _all(1.0, "fails")),
    ("all are at the margin: any fails", False, _all(1 + GATE_MARGIN, "fails")),
    ("all are at the margin: any passes", False, _all(1 + GATE_MARGIN, "passes")),
    ("one is twice the margin worse: it passes", False, _one(TWICE, "passes")),
    ("one is twice the margin worse: it fails", True, _one(TWICE, "fails")),
    (f"nothing changed, runs differ by {_percent(RUN_TO_RUN)}: any fails", False, _all(1.0, "fails", RUN_TO_RUN)),
    ("the same at the margin: any fails", False, _all(1 + GATE_MARGIN, "fails", RUN_TO_RUN)),
    (f"the same at the margin, beside {BEFORE} runs: any fails", False, _with_runs(1 + GATE_MARGIN, "fails")),
    ("one figure, one look, nothing changed: it passes", True, _one(1.0, "passes", figures=1)),
    ("the same, the only look: it passes", True, _one(1.0, "passes", "once", figures=1)),
)
"""What is true, and which outcome is counted; whether that is meant to be large; and one case of it."""
_AGAIN: tuple[tuple[str, Case], ...] = (
    (f"at the margin, asked after every block up to {DAILY}: it fails", _daily("fails", "any")),
    (f"at the margin, asked after every block up to {DAILY}: it passes", _daily("passes", "any")),
)
_NOT_CORRECTED = (f"the same without correction, up to {DAILY}: it fails", _daily("fails", "once"))
"""The same for one figure at all looks from n blocks on. The last one takes long: only the first n, in fewer cases."""
_NEEDED: tuple[tuple[str, float, str, bool], ...] = (
    ("as many as needed, nothing changed: it passes", 1.0, "passes", True),
    ("as many as needed, twice the margin worse: it fails", TWICE, "fails", True),
    ("as many as needed, twice the margin worse: it passes", TWICE, "passes", False),
)
"""The same of runs of as many blocks as a pilot asked for."""
