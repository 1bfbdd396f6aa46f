"""The negative control: where no device is involved, cold and warm reads are the same, or something else moved them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from mountlab.checks.asked import cache_state
from mountlab.checks.base import Check, Doubt, Evidence, Sample, stays_in_memory
from mountlab.core.model import Cell
from mountlab.core.numbers import counted, level_text, quantity, ratio_figures
from mountlab.stats import Ratio, compare


@dataclass(frozen=True)
class _Pair:
    """One metric of a workload on a file system in memory, measured cold and warm."""

    cold: Sample
    warm: Sample
    steps: tuple[float, float]
    """To what the tool rounds each side."""

    @property
    def values(self) -> list[tuple[float, float]]:
        """Both sides of each block that has them."""
        warm = dict(zip(self.warm.blocks, self.warm.values, strict=True))
        cold = zip(self.cold.blocks, self.cold.values, strict=True)
        both = [(value, warm[block]) for block, value in cold if block in warm]
        return [pair for pair in both if min(pair) > 0]

    def ratio(self, level: float) -> Ratio:
        """Cold to warm, paired by block."""
        return compare(self.values, level=level, steps=self.steps)

    def differs(self, level: float, margin: float) -> bool:
        """Return whether the whole interval lies outside of the zone that does not matter; `margin` in logarithms."""
        ratio = self.ratio(level)
        return math.log(ratio.low) > margin or math.log(ratio.high) < -margin

    def seen(self, level: float) -> str:
        """'read_bandwidth of tmpfs is 12 GB/s under dd cache=cold and 7 GB/s under dd cache=warm, 1.7 times ...'."""
        unit, ratio = self.cold.cell.workload.metric(self.cold.metric).unit, self.ratio(level)
        cold, warm = (
            f"{quantity(sum(side.values) / len(side.values), unit)} under {side.cell.workload.label}"
            for side in (self.cold, self.warm)
        )
        figures = ratio_figures(ratio.ratio, ratio.low, ratio.high)
        return (
            f"{self.cold.name} of {self.cold.cell.filesystem.name} is {cold} and {warm}, {figures.value} times "
            f"{figures.interval} ({level_text(level)}, {counted(ratio.n, 'block')})"
        )


def cold_differs_from_warm(evidence: Evidence) -> Iterator[Doubt]:
    """File systems in memory whose cold and warm reads differ, although no device can make a difference.

    A workload was measured cold and warm on a file system in memory. The interval of the ratio (paired by block; at the
    design's level for all such pairs together, Bonferroni) lies outside of 1 ± the smallest effect.
    """
    pairs = _pairs(evidence)
    level = 1 - (1 - evidence.sweep.design.level) / max(1, len(pairs))  # Bonferroni
    margin = math.log1p(evidence.sweep.design.smallest_effect)
    failed = [pair for pair in pairs if pair.differs(level, margin)]
    for name in dict.fromkeys(pair.cold.cell.filesystem.name for pair in failed):
        pairs_here = [pair for pair in failed if pair.cold.cell.filesystem.name == name]
        worst = max(pairs_here, key=lambda pair: abs(pair.ratio(level).log_mean))
        more = f", and {len(pairs_here) - 1} more differ too" if len(pairs_here) > 1 else ""
        yield Doubt.of_filesystem(
            name,
            f"nothing there can be cold, so cold and warm must be the same, but {worst.seen(level)}{more}. Whatever "
            "moved it moves the other figures too: believe no difference of this size. Measure longer, on a quieter "
            "box, and compare what the two sides did before (plan, raw output).",
        )


def _pairs(evidence: Evidence) -> list[_Pair]:
    """Return samples of cells that are equal but for the state of the page cache, which a file in memory does not have,
    with two blocks or more in common."""
    by_state: dict[tuple[object, ...], dict[str, Sample]] = {}
    for sample in evidence.samples:
        if stays_in_memory(sample.cell.filesystem, evidence.facts):
            state = cache_state(sample.cell.workload, evidence.sweep.design)
            by_state.setdefault((*_alike(sample.cell), sample.metric, sample.label), {}).setdefault(state, sample)
    sides = [(states["cold"], states["warm"]) for states in by_state.values() if {"cold", "warm"} <= states.keys()]
    pairs = [_Pair(cold, warm, (_step(evidence, cold), _step(evidence, warm))) for cold, warm in sides]
    return [pair for pair in pairs if len(pair.values) > 1]


def _step(evidence: Evidence, side: Sample) -> float:
    return evidence.steps.get((side.cell.id, side.metric, side.label), 0.0)


def _alike(cell: Cell) -> tuple[object, ...]:
    """Return what is the same on both sides of a pair."""
    workload = cell.workload
    options = frozenset((name, value) for name, value in workload.options.items() if name != "cache")
    return cell.filesystem.name, workload.tool, options, workload.clients, workload.precondition


def _no_control(evidence: Evidence) -> str | None:
    """Blind where there is no such pair."""
    if _pairs(evidence):
        return None
    return "no workload was measured both cold and warm on a file system in memory, in two blocks or more"


CHECKS = (
    Check(
        "control-failed",
        cold_differs_from_warm,
        "Believe no difference of this size; measure longer, on a quieter box; see what the two sides did before.",
        blind=_no_control,
    ),
)
