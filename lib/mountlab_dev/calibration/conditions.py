"""States and neighbours: how often a ranking that flips is found, and what intervals of a ratio of ratios cover."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from mountlab.core.findings import Verdict, flips
from mountlab.stats import adjust_comparisons, compare_row_ratios, verdict
from mountlab.stats.simulated import LEVEL, MARGIN, Floats, Process, generator, normal

from mountlab_dev.calibration.document import Share, Table
from mountlab_dev.calibration.processes import LISTED
from mountlab_dev.calibration.tables import SIZES, Effort, held, verdicts

SPREAD = 0.03
"""The coefficient of variation of a trial."""
BLOCKS = (5, 10, 20)
OTHERS = 9
"""Workloads beside the one in question, where there are others."""


@dataclass(frozen=True)
class Truth:
    """The true ratios of a candidate to the baseline in two states."""

    fresh: float
    aged: float
    others: tuple[float, float] | None = None
    """Those under each of the OTHERS; None: there is one workload."""

    @property
    def flips(self) -> bool:
        """Whether the ranking truly flips."""
        return self.aged < 1 < self.fresh

    @property
    def name(self) -> str:
        alone = f"{self.fresh:.2f} fresh, {self.aged:.2f} aged"
        if self.others is None:
            return alone
        others = "like it" if self.others == (self.fresh, self.aged) else "1.00 in both states"
        return f"{alone}; {OTHERS} more workloads {others}"


TRUTHS = (
    Truth(1.10, 0.91), Truth(1.10, 0.91, (1.0, 1.0)), Truth(1.0, 1.0), Truth(1.0, 1.0, (1.0, 1.0)), Truth(1.10, 1.10),
    Truth(1.0, 0.91), Truth(1.10, 1.0, (1.10, 1.0)),
)  # fmt: skip


def flips_found(effort: Effort) -> Table:
    """Return how often a report says that a ranking flips, and that a ratio changes."""
    says = (
        f"**Rankings in two states**: sweeps of two file systems whose ratio is that of the row, with a cv of "
        f"{100 * SPREAD:g} %. *Flips*: how often a report says so of any workload. *Changes*: how often it says that "
        "a ratio changes. In bold where it is true: then of the first workload."
    )
    words = ("flips", "changes")
    header = ("ratios", *(f"{word}, n = {n}" for word in words for n in BLOCKS))
    rows = tuple((truth.name, _shares(truth, words, effort.sweeps)) for truth in TRUTHS)
    return Table("flips", says, effort.sweeps, header, rows)


def _shares(truth: Truth, words: tuple[str, ...], sweeps: int) -> tuple[Share, ...]:
    counts = {n: found(truth, n, sweeps) for n in BLOCKS}
    meant = {"flips": truth.flips, "changes": truth.fresh != truth.aged}
    return tuple(Share(counts[n][word], sweeps, meant[word]) for word in words for n in BLOCKS)


def found(truth: Truth, n: int, sweeps: int) -> dict[str, int]:
    """Return in how many sweeps of n blocks a flip and a change are claimed: of the first workload where it is true of
    that, else of any."""
    rng, counts = generator("flips", truth.name, n), {"flips": 0, "changes": 0}
    for _ in range(sweeps):
        before, after, changes = claims(*_cells(rng, truth, n))
        flip = [flips(*pair) for pair in zip(before, after, strict=True)]
        differ = [word in ("faster", "slower") for word in changes]
        counts["flips"] += flip[0] if truth.flips else any(flip)
        counts["changes"] += differ[0] if truth.fresh != truth.aged else any(differ)
    return counts


def _cells(rng: np.random.Generator, truth: Truth, n: int) -> tuple[Floats, Floats]:
    """Return the values of candidates and of baselines, fresh and then aged: (2 x workloads, n) each."""
    pairs = [(truth.fresh, truth.aged), *([truth.others] * OTHERS if truth.others else [])]
    ratios = np.array(pairs).T.ravel()
    baselines, candidates = normal(SPREAD).sides(rng, 2, (len(ratios), n))
    return candidates * ratios[:, None], baselines


def claims(candidates: Floats, baselines: Floats) -> tuple[list[Verdict], list[Verdict], list[Verdict]]:
    """Return the verdicts on the fresh ratios, on the aged ones, and on how these differ."""
    answer, half = verdicts(candidates, baselines), len(candidates) // 2
    ratios = compare_row_ratios((candidates[half:], baselines[half:]), (candidates[:half], baselines[:half]))
    adjusted = adjust_comparisons(ratios, level=LEVEL, smallest_effect=MARGIN)
    tests = zip(ratios.ratio, adjusted.p_adjusted, adjusted.p_equivalent_adjusted, strict=True)
    changes = [
        verdict(ratio, p_adjusted=p, p_equivalent_adjusted=same, level=LEVEL, more_is_better=True)
        for ratio, p, same in tests
    ]
    return answer[:half], answer[half:], changes


def coverage_of_row_ratios(effort: Effort) -> Table:
    """Return how often the interval of a ratio of ratios holds the truth."""
    says = (
        "Intervals of a **ratio of ratios** at 95 %, paired by block, where **all four cells** are like the row. Drift "
        "and serial correlation come from the box, and act on all."
    )
    rows = tuple((each.name, tuple(covered(each, n, effort.samples) for n in SIZES)) for each in LISTED)
    return Table("row-ratios", says, effort.samples, ("trials", *(f"n = {n}" for n in SIZES)), rows)


def covered(process: Process, n: int, samples: int) -> Share:
    """Return the share of intervals from n blocks that hold 1, the ratio of two equal ratios."""
    cells = process.sides(generator("ratio of ratios", process.name, n), 4, (samples, n))
    return held(*compare_row_ratios((cells[0], cells[1]), (cells[2], cells[3])).bounds(LEVEL), 1.0)
