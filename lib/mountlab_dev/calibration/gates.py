"""The simulations behind the gate: how often it cries wolf, how often it lets a regression pass, and what it sees."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from mountlab.stats.looks import Looks, Unit, counted
from mountlab.stats.margin import AgainstMargin, against_margin
from mountlab.stats.simulated import LEVEL, NOISE, Floats, Generator, generator
from numpy.typing import NDArray

from mountlab_dev.calibration.document import Share, Table
from mountlab_dev.calibration.tables import Effort

FIGURES, GATE_MARGIN = 10, 0.05
TWICE = (1 + GATE_MARGIN) ** 2
"""A regression whose logarithm is twice that of the margin: 10.25 %."""
RUN_TO_RUN = 0.03
DAILY, RUNS = 100, 16
"""Blocks of each run, or runs of both sides together, up to which a question is asked again, after each."""
BEFORE = 5
"""Runs of the baseline, where there are several."""
BLOCKS = (5, 10, 20, 40)
PILOTS = (5, 10)
"""With more blocks than these the gate decides nearly every case."""
_MOST = 500
"""No run has more blocks: a pilot that asks for more is not counted."""
Case = Callable[[Generator, int], Sequence[bool]]
"""One case with n blocks: whether each of some things happens in it."""
Group = tuple[Case, tuple[tuple[str, bool], ...]]
"""Rows that share their cases: what each is called, and whether it is meant to be large."""


def gate_outcomes(effort: Effort) -> Table:
    """Simulate the answers of the gate to figures whose truth is known, and to runs of the size that it asked for."""
    says = (
        f"**The gate** at a margin of {_percent(GATE_MARGIN)}, {FIGURES} figures, two runs of n blocks, cv "
        f"{_percent(NOISE)}, that are alike: how often any figure, or the one that changed, fails or passes. Twice "
        f"the margin is {_percent(TWICE - 1)}. Bold: what should be large. From *one figure* on there is one figure. "
        "The rows without correction have a tenth of the cases. Last rows: runs with as many blocks as a pilot of n "
        "blocks said were needed, where it could not tell."
    )
    rows: list[tuple[str, tuple[Share | None, ...]]] = []
    for group, sizes in (*((each, BLOCKS) for each in _ROWS), *((each, BLOCKS[:1]) for each in _AGAIN)):
        rows += _rows(group, sizes, effort.gates)
    rows += _rows(_NOT_CORRECTED, BLOCKS[:1], max(1, effort.gates // 10))
    rows += _rows(_NEEDED, PILOTS, effort.gates)
    return Table("gate", says, effort.gates, ("truth", *(f"n = {n}" for n in BLOCKS)), tuple(rows))


def _percent(share: float) -> str:
    return f"{100 * share:g} %"


def _rows(group: Group, sizes: Sequence[int], cases: int) -> list[tuple[str, tuple[Share | None, ...]]]:
    """Return a row for each thing that may happen, with a share for each of `sizes`."""
    case, names = group
    hits = {n: _hits(case, names[0][0], n, cases) for n in sizes}
    return [
        (name, tuple(Share(int(hits[n][place]), cases, meant=meant) if n in hits else None for n in BLOCKS))
        for place, (name, meant) in enumerate(names)
    ]


def _hits(case: Case, name: str, n: int, cases: int) -> NDArray[np.int64]:
    rng = generator("gate", name, n)
    return np.asarray(np.sum([case(rng, n) for _ in range(cases)], axis=0), dtype=np.int64)


def judged(rng: Generator, truth: Floats, n: int) -> AgainstMargin:
    """Return figures that are truly `truth` times as bad, in a run of n blocks beside one of as many, which are
    alike."""
    sides = [_run(rng, len(truth), n, 0.0) for _ in range(2)]
    return _against(truth[:, None] * sides[0], sides[1])


def _run(rng: Generator, figures: int, n: int, run_to_run: float) -> Floats:
    return np.asarray(rng.lognormal(0, run_to_run, (figures, 1)) * rng.lognormal(0, NOISE, (figures, n)))


def _against(change: Floats, baseline: Floats, *, unit: Unit = "block", looks: Looks = "any") -> AgainstMargin:
    less_is_better: NDArray[np.bool_] = np.zeros(len(change), dtype=bool)
    return against_margin(
        change, baseline, more_is_better=less_is_better, margin=GATE_MARGIN, level=LEVEL, unit=unit, looks=looks
    )


def _any(truth: float) -> Case:
    """Return whether any of figures that are all truly the same fails, and whether any passes."""
    truths = np.full(FIGURES, truth)

    def case(rng: Generator, n: int) -> Sequence[bool]:
        found = judged(rng, truths, n)
        return bool(found.fails.any()), bool(found.passes.any())

    return case


def _one(truth: float, figures: int = FIGURES) -> Case:
    """Return whether the one figure that is truly so bad, among others that have not changed, passes, and whether it
    fails."""
    truths = np.array([truth, *[1.0] * (figures - 1)])
    return lambda rng, n: _first(judged(rng, truths, n))


def _first(found: AgainstMargin) -> tuple[bool, bool]:
    return bool(found.passes[0]), bool(found.fails[0])


def _one_look(rng: Generator, n: int) -> Sequence[bool]:
    """Return whether one figure that has not changed passes at this look of many, and where this look is the only
    one."""
    sides = [_run(rng, 1, n, 0.0) for _ in range(2)]
    return [bool(_against(sides[0], sides[1], looks=looks).passes[0]) for looks in ("any", "once")]


def _daily(looks: Looks) -> Case:
    """Return whether a figure at the margin passes, and whether it fails, at any look: after n blocks, and after each
    more."""

    def case(rng: Generator, n: int) -> Sequence[bool]:
        change, baseline = (_run(rng, 1, DAILY, 0.0) for _ in range(2))
        at = (
            range(n, DAILY + 1) if looks == "once" else sorted({counted(k, k, "block")[0] for k in range(n, DAILY + 1)})
        )
        found = [_first(_against((1 + GATE_MARGIN) * change[:, :k], baseline[:, :k], looks=looks)) for k in at]
        return [any(each) for each in zip(*found, strict=True)]

    return case


def _runs_one_by_one(rng: Generator, n: int) -> Sequence[bool]:
    """Return the same after each further run of n blocks, of the change or of the baseline by lot, from two runs on."""
    sides = (1 + GATE_MARGIN) * _means(rng, 1, n, RUNS), _means(rng, 1, n, RUNS)
    change = np.cumsum(np.append(1, rng.integers(0, 2, RUNS - 2)))
    counts = zip(change, np.arange(2, RUNS + 1) - change, strict=True)
    found = [_first(_against(sides[0][:, :m], sides[1][:, :k], unit="run")) for m, k in counts]
    return [any(each) for each in zip(*found, strict=True)]


def _means(rng: Generator, figures: int, n: int, runs: int) -> Floats:
    """Return the geometric means of runs that differ by themselves, (figures, runs)."""
    return np.stack([np.exp(np.log(_run(rng, figures, n, RUN_TO_RUN)).mean(axis=1)) for _ in range(runs)], axis=1)


def _beside_several(rng: Generator, n: int) -> Sequence[bool]:
    """Return whether any figure at the margin fails in one run of the change beside several of the baseline."""
    runs = _means(rng, FIGURES, n, BEFORE + 1)
    return [bool(_against((1 + GATE_MARGIN) * runs[:, :1], runs[:, 1:], unit="run").fails.any())]


def _promised(rng: Generator, n: int) -> Sequence[bool]:
    """Return what runs of as many blocks find as a pilot of n without a change says it needs, the first that cannot
    tell: whether a figure that has not changed passes; and whether one of twice the margin fails, or passes."""
    needed = math.nan
    while math.isnan(needed) or needed > _MOST:
        needed = float(judged(rng, np.ones(1), n).needed[0])
    same, (passes, fails) = (_first(judged(rng, np.array([truth]), int(needed))) for truth in (1.0, TWICE))
    return same[0], fails, passes


_ROWS: tuple[Group, ...] = (
    (_any(1.0), (("nothing changed: any fails", False),)),
    (_any(1 + GATE_MARGIN), (("all are at the margin: any fails", False),
                             ("all are at the margin: any passes", False))),
    (_one(TWICE), (("one is twice the margin worse: it passes", False),
                   ("one is twice the margin worse: it fails", True))),
    (_beside_several, ((f"runs differ by {_percent(RUN_TO_RUN)}, all are at the margin, one run beside {BEFORE}: any "
                        "fails", False),)),
    (_one_look, (("one figure, one look, nothing changed: it passes", True),
                 ("the same, the only look: it passes", True))),
)  # fmt: skip
_AGAIN: tuple[Group, ...] = (
    (_daily("any"), ((f"at the margin, asked after every block up to {DAILY}: it passes", False),
                     (f"at the margin, asked after every block up to {DAILY}: it fails", False))),
    (_runs_one_by_one, ((f"at the margin, asked after every run up to {RUNS}: it passes", False),
                        (f"at the margin, asked after every run up to {RUNS}: it fails", False))),
)  # fmt: skip
_NOT_CORRECTED: Group = (
    _daily("once"), ((f"every block up to {DAILY} without correction: it passes", False),
                     (f"every block up to {DAILY} without correction: it fails", False)),
)  # fmt: skip
"""All looks from n blocks on. The last one takes long: fewer cases."""
_NEEDED: Group = (
    _promised, (("as many as needed, nothing changed: it passes", True),
                ("as many as needed, twice the margin worse: it fails", True),
                ("as many as needed, twice the margin worse: it passes", False)),
)  # fmt: skip
