"""Simulate runs of n trials: for a reader who wants to try distribution, spread and n."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from mountlab.core.errors import ParameterError, did_you_mean
from mountlab.core.findings import Verdict
from mountlab.stats.adjusted import verdict
from mountlab.stats.calibration.processes import KINDS, Floats, Process
from mountlab.stats.calibration.tables import LEVEL, MARGIN, any_caveat, generator
from mountlab.stats.comparisons import compare_rows
from mountlab.stats.estimates import estimate_samples

VERDICTS: tuple[Verdict, ...] = ("faster", "slower", "same", "undecided")


@dataclass(frozen=True)
class SimulatedRuns:
    """Many simulated runs of one cell with n trials each, and of a second one that is truly `effect` times as fast."""

    kind: str
    cv: float
    effect: float
    truth: float
    """The mean that the intervals should hold."""
    values: Floats
    """(runs, n) trials of the cell."""
    low: Floats
    high: Floats
    """(runs,) ends of the 95 % intervals of its mean."""
    verdicts: dict[Verdict, float]
    """Share of runs whose comparison of the two cells says so, were it the only one of its sweep."""
    caveats: float
    """Share of runs in which the trials of the cell raise a caveat of shape or order."""

    @property
    def n(self) -> int:
        return int(self.values.shape[1])

    @property
    def covered(self) -> float:
        """Share of runs whose interval holds the truth."""
        return float(np.mean((self.low <= self.truth) & (self.truth <= self.high)))

    def first(self, runs: int) -> list[tuple[list[float], float, float]]:
        """Return trials, low and high of the first runs, as `plots.plot_simulated` takes them."""
        values, low, high = (each[:runs].tolist() for each in (self.values, self.low, self.high))
        return list(zip(values, low, high, strict=True))

    @property
    def finding(self) -> str:
        """A title: how many intervals hold the truth."""
        return f"n = {self.n}, {self.kind}: {100 * self.covered:.0f} % of the 95 % intervals hold the truth"

    @property
    def half_width(self) -> float:
        """Half of the median interval, as a share of the truth."""
        return float(np.median(self.high - self.low) / 2 / self.truth)


def what_would(
    n: int, *, kind: str = "normal", cv: float = 0.05, effect: float = 1.05, runs: int = 2_000
) -> SimulatedRuns:
    """Simulates `runs` runs of n trials. `kind` is one of `processes.KINDS`; `effect` is the true ratio of two cells.

    The same arguments give the same runs. Raises ParameterError for what cannot be simulated.
    """
    process = _process(n, kind, cv, effect)
    rng = generator("what would", kind, cv, n)
    values = process.draw(rng, (runs, n))
    found = estimate_samples(values.ravel(), np.full(runs, n), level=LEVEL)
    baseline, candidate = process.sides(rng, 2, (runs, n))
    return SimulatedRuns(
        kind=kind,
        cv=cv,
        effect=effect,
        truth=process.mean,
        values=values,
        low=found.low,
        high=found.high,
        verdicts=_verdicts(effect * candidate, baseline),
        caveats=float(np.mean(any_caveat(values))),
    )


def _process(n: int, kind: str, cv: float, effect: float) -> Process:
    if kind not in KINDS:
        allowed, near = ", ".join(KINDS), did_you_mean(kind, KINDS)
        raise ParameterError("no such kind of trials", where="kind", got=repr(kind), allowed=allowed, next_step=near)
    if not 2 <= n <= 200:
        raise ParameterError("not so many trials", where="n", got=str(n), allowed="2 to 200")
    if not 0.001 <= cv <= 1:
        raise ParameterError("no such spread", where="cv", got=str(cv), allowed="0.001 to 1 (0.05 is 5 %)")
    if not 0.1 <= effect <= 10:
        raise ParameterError(
            "no such effect", where="effect", got=str(effect), allowed="0.1 to 10 (1.05 is 5 % faster)"
        )
    return KINDS[kind](cv)


def _verdicts(candidates: Floats, baselines: Floats) -> dict[Verdict, float]:
    ratios = compare_rows(candidates, baselines)
    found = [
        verdict(ratio, p_adjusted=p, p_equivalent_adjusted=same, level=LEVEL, more_is_better=True)
        for ratio, p, same in zip(ratios.ratio, ratios.p(), ratios.p_equivalent(MARGIN), strict=True)
    ]
    return {word: found.count(word) / len(found) for word in VERDICTS}


def what_if_frame(simulated: Sequence[SimulatedRuns]) -> pd.DataFrame:
    """Return one row for each n, shares in percent."""
    rows = [
        {
            "n": each.n,
            "intervals that hold the truth": each.covered,
            "half an interval": each.half_width,
            **{f"called {word}": each.verdicts[word] for word in VERDICTS},
            "some caveat of shape": each.caveats,
        }
        for each in simulated
    ]
    return (pd.DataFrame(rows).set_index("n") * 100).round(1)


def what_if_sentence(simulated: SimulatedRuns) -> str:
    """Return what the reader would have learned, in two sentences."""
    shares = ", ".join(f"{word} {100 * simulated.verdicts[word]:.0f} %" for word in VERDICTS)
    return (
        f"{simulated.finding} (cv {100 * simulated.cv:g} %); half an interval is {100 * simulated.half_width:.1f} % of "
        f"it. Of a true ratio of {simulated.effect:g} the report would have said: {shares}. Some caveat of shape or "
        f"order would have been raised in {100 * simulated.caveats:.0f} % of runs."
    )
