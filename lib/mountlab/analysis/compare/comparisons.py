"""Ratios that were computed together, as comparisons with their verdicts: of a sweep, of runs, over boxes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from mountlab.core.findings import Comparison, NoiseSource, Verdict
from mountlab.core.groups import by_key
from mountlab.core.metrics import Better, higher_is_better
from mountlab.core.model import Workload
from mountlab.core.names import workload_label
from mountlab.stats import OVER_BOXES_METHOD, RATIO_METHOD, WELCH_METHOD, power, verdict
from mountlab.stats.adjusted import ComparisonSet
from mountlab.stats.censored import SIGN_METHOD
from mountlab.stats.comparisons import Ratios
from mountlab.stats.run_spread import RUNS_METHOD


class Sides(NamedTuple):
    """What is compared with what, before any figure of it is known."""

    baseline: str
    candidate: str
    workload: str
    tool: str
    factors: Mapping[str, str]
    metric: str
    label: str = ""
    better: Better | Literal[""] = ""
    """Of a metric that the sweep defines."""

    @classmethod
    def of(cls, workload: Workload, metric: str, label: str, *, baseline: str, candidate: str) -> Sides:
        definition = workload.own_metrics.get(metric)
        better = definition.better if definition else ""
        return cls(baseline, candidate, workload.name, workload.tool, workload.factors, metric, label, better)

    @classmethod
    def like(cls, comparison: Comparison) -> Sides:
        return cls(**{name: getattr(comparison, name) for name in cls._fields})


def comparisons_of(
    sides: Iterable[Sides],
    ratios: Ratios,
    adjusted: ComparisonSet,
    *,
    level: float,
    late: Sequence[int] | None = None,
    method: str = "",
    noise: Callable[[Sequence[int]], Sequence[NoiseSource]] | None = None,
) -> Iterator[Comparison]:
    """Yield one comparison for each of `sides`, in the order of the ratios.

    `late`: in how many blocks a side ran into the time limit. `method`: that of all ratios without such blocks, where
    it does not depend on whether they are paired. `noise`: places of ratios that no sensible number of blocks decides
    to what their noise comes from.
    """
    censored = [0] * len(ratios.n) if late is None else late
    methods = []
    for blocks, paired in zip(censored, ratios.paired.tolist(), strict=True):
        by_means = method or (RATIO_METHOD if paired else WELCH_METHOD)
        methods.append(SIGN_METHOD if blocks else by_means)
    of_runs = np.array([name in (OVER_BOXES_METHOD, RUNS_METHOD) for name in methods], dtype=bool)
    too_many = np.where(of_runs, adjusted.needed > MOST_BOXES, power.too_many(adjusted.needed, ratios.n))
    reduce = np.where(too_many, adjusted.reduce, math.nan)
    noisy = np.flatnonzero(~np.isnan(reduce)).tolist()
    sources = dict(zip(noisy, noise(noisy), strict=True)) if noise and noisy else {}
    needed, factor = np.where(too_many, math.nan, adjusted.needed).tolist(), reduce.tolist()
    ratio, n, p = ratios.ratio.tolist(), ratios.n.tolist(), adjusted.p.tolist()
    p_adjusted, p_same = adjusted.p_adjusted.tolist(), adjusted.p_equivalent_adjusted.tolist()
    intervals = zip(sides, adjusted.own, adjusted.joint, adjusted.equivalence, strict=True)
    for place, (about, alone, joint, equivalence) in enumerate(intervals):
        yield Comparison(
            baseline=about.baseline,
            candidate=about.candidate,
            workload=about.workload,
            tool=about.tool,
            factors=about.factors,
            metric=about.metric,
            label=about.label,
            better=about.better,
            ratio=math.nan if ratio[place] in (0.0, math.inf) else ratio[place],
            own=alone,
            joint=joint,
            equivalence=equivalence,
            n=n[place],
            p=p[place],
            p_adjusted=p_adjusted[place],
            verdict=verdict(
                ratio[place],
                p_adjusted=p_adjusted[place],
                p_equivalent_adjusted=p_same[place],
                level=level,
                more_is_better=higher_is_better(about.metric, about.better),
            ),
            method=methods[place],
            needed=None if math.isnan(needed[place]) else int(needed[place]),
            reduce=factor[place],
            noise=sources.get(place, ""),
            censored=censored[place],
        )


MOST_BOXES = 20
"""The most boxes, or runs of each side, that are named as what would decide: few sweeps have as many."""


def key_of(comparison: Comparison) -> tuple[str, ...]:
    """Return what makes a comparison of one run that of another."""
    workload = workload_label(comparison.workload, comparison.factors)
    return comparison.candidate, comparison.baseline, workload, comparison.metric, comparison.label


@dataclass(frozen=True)
class AnswerOverRuns:
    """One comparison of the sweep in every run, with the verdict and the joint interval of that run."""

    on_each: tuple[Comparison | None, ...]
    """None where a run does not have it."""

    @property
    def present(self) -> list[Comparison]:
        """Those that a run has."""
        return [one for one in self.on_each if one is not None]

    @property
    def verdicts(self) -> dict[Verdict, list[int]]:
        """Verdict to the places of the runs in which it fell."""
        return by_key((one.verdict, place) for place, one in enumerate(self.on_each) if one is not None)

    @property
    def agrees(self) -> bool:
        """Whether every run that has it gives the same verdict."""
        return len(self.verdicts) == 1
