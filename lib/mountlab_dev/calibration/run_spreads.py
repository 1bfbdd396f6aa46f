"""The simulations behind runs that differ by themselves: false failures, power, and intervals of two runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from mountlab.stats.looks import SIDE
from mountlab.stats.margin import AgainstMargin, against_margin
from mountlab.stats.run_spread import ASSUMED, RunSpread, compare_rows_of_runs
from mountlab.stats.simulated import LEVEL, Floats, Generator, generator

from mountlab_dev.calibration.document import Share, Table
from mountlab_dev.calibration.gates import FIGURES, GATE_MARGIN, TWICE
from mountlab_dev.calibration.tables import Effort

QUIET, BLOCKS = 0.01, 10
"""The cv of trials, which is small beside what runs differ by; and the trials of a run."""
THIRD = GATE_MARGIN / 3
SPREADS = (0.0, 0.01, THIRD, 0.03, 0.05)
HISTORIES = (5, 10, 20)
"""Earlier runs that tell by how much runs differ."""
Case = Callable[[Generator, float], bool]
"""Whether something happens in one case, where runs differ by so much."""


def gates_where_runs_differ(effort: Effort) -> Table:
    """Simulate gates and intervals of runs that differ by themselves, with nothing, or all, changed."""
    says = (
        "**Runs that differ by themselves**, by the standard deviation at the head of a column, at a margin of 5 %. "
        f"Runs have {BLOCKS} blocks where nothing else is said, and trials vary by 1 %. *Assumed* is 5 %. *All at the "
        "margin* is the worst case for an error. Bold: what should be large where the margin is three times what runs "
        "differ by."
    )
    rows = [(name, tuple(_share(name, sd, case, effort, meant) for sd in SPREADS)) for name, case, meant in _ROWS]
    return Table("gate-runs", says, effort.gates, ("truth", *(f"{100 * sd:.2g} %" for sd in SPREADS)), tuple(rows))


def _share(name: str, sd: float, case: Case, effort: Effort, meant: bool) -> Share:
    rng = generator("gate where runs differ", name, sd)
    return Share(sum(case(rng, sd) for _ in range(effort.gates)), effort.gates, meant=meant and sd <= THIRD)


def _run(rng: Generator, figures: int, sd: float, n: int = BLOCKS) -> Floats:
    return np.asarray(rng.lognormal(0, sd, (figures, 1)) * rng.lognormal(0, QUIET, (figures, n)))


def _means(rng: Generator, figures: int, sd: float, runs: int) -> Floats:
    """Return the geometric means of runs, (figures, runs)."""
    return np.stack([np.exp(np.log(_run(rng, figures, sd)).mean(axis=1)) for _ in range(runs)], axis=1)


def _side(rng: Generator, figures: int, sd: float, earlier: int) -> RunSpread:
    """Return what so many earlier runs tell, of 0 of them what is assumed."""
    if not earlier:
        return RunSpread.assumed(ASSUMED, figures)
    column = np.ones(figures)
    variance = np.log(_means(rng, figures, sd, earlier)).var(axis=1, ddof=1)
    return RunSpread(variance, (earlier - 1) * column, column / BLOCKS)


def _judged(change: Floats, baseline: Floats, side: RunSpread | None) -> AgainstMargin:
    return against_margin(
        change,
        baseline,
        more_is_better=np.zeros(len(change), dtype=bool),
        margin=GATE_MARGIN,
        level=LEVEL,
        unit="run" if side is None else "block",
        spreads=None if side is None else (side, side),
    )


def _one_each(truth: float, earlier: int, n: int = BLOCKS, *, alike: bool = False) -> Case:
    """Return whether any of FIGURES fails of one run beside one. `alike`: blocks as the unit, as if runs were alike."""

    def case(rng: Generator, sd: float) -> bool:
        change, baseline = (_run(rng, FIGURES, sd, n) for _ in range(2))
        side = RunSpread.assumed(0.0, FIGURES) if alike else _side(rng, FIGURES, sd, earlier)
        return bool(_judged(truth * change, baseline, side).fails.any())

    return case


def _several(truth: float, figures: int, *, passes: bool = False) -> Case:
    """Return whether any figure fails, or the first one passes, of three runs beside three."""

    def case(rng: Generator, sd: float) -> bool:
        change, baseline = (_means(rng, figures, sd, SIDE) for _ in range(2))
        found = _judged(truth * change, baseline, None)
        return bool(found.passes[0]) if passes else bool(found.fails.any())

    return case


def _covered(earlier: int) -> Case:
    """Return whether the interval of the ratio of two runs that are alike holds 1."""

    def case(rng: Generator, sd: float) -> bool:
        change, baseline = (_run(rng, 1, sd) for _ in range(2))
        side = _side(rng, 1, sd, earlier)
        low, high = compare_rows_of_runs(change, baseline, (side, side), steps=(0.0, 0.0)).bounds(LEVEL)
        return bool(low[0] <= 1 <= high[0])

    return case


_MARGIN = 1 + GATE_MARGIN
_ROWS: tuple[tuple[str, Case, bool], ...] = (
    (
        "nothing changed, 10 figures, 10 blocks, as if runs were alike: any fails",
        _one_each(1, 0, 10, alike=True),
        False,
    ),
    ("the same, 40 blocks, as if alike: any fails", _one_each(1, 0, 40, alike=True), False),
    ("nothing changed, 10 figures, 10 blocks, assumed: any fails", _one_each(1, 0, 10), False),
    ("the same, 40 blocks, assumed: any fails", _one_each(1, 0, 40), False),
    ("all at the margin, 10 figures, assumed: any fails", _one_each(_MARGIN, 0), False),
    *((f"the same, {runs} earlier runs: any fails", _one_each(_MARGIN, runs), False) for runs in HISTORIES),
    ("all at the margin, 10 figures, three runs a side: any fails", _several(_MARGIN, FIGURES), False),
    ("three runs a side, one figure, twice the margin worse: it fails", _several(TWICE, 1), True),
    ("three runs a side, one figure, nothing changed: it passes", _several(1, 1, passes=True), True),
    ("three runs a side, 10 figures, all twice the margin worse: any fails", _several(TWICE, FIGURES), True),
    ("two runs alike, assumed: the 95 % interval holds 1", _covered(0), False),
    *((f"two runs alike, {runs} earlier runs: the 95 % interval holds 1", _covered(runs), False) for runs in HISTORIES),
)
