"""Simulated runs with a known truth, evaluated by the statistics of the reports: what n trials show."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from mountlab.stats.simulated import KINDS, VERDICTS, SimulatedRuns
from mountlab.stats.simulated import simulate_runs as runs

__all__ = ["frame", "kinds", "runs", "sentence"]


def kinds() -> list[str]:
    """Return the names of the ways in which simulated trials vary."""
    return list(KINDS)


def frame(simulated: Sequence[SimulatedRuns]) -> pd.DataFrame:
    """Return one row for each n, shares in percent."""
    rows = [
        {
            "n": runs_of_n.n,
            "intervals that hold the truth": runs_of_n.covered,
            "half an interval": runs_of_n.half_width,
            **{f"called {word}": runs_of_n.verdicts[word] for word in VERDICTS},
            "some caveat of shape": runs_of_n.caveats,
        }
        for runs_of_n in simulated
    ]
    return (pd.DataFrame(rows).set_index("n") * 100).round(1)


def sentence(simulated: SimulatedRuns) -> str:
    """Return what the reader would have learned, in two sentences."""
    shares = ", ".join(f"{word} {100 * simulated.verdicts[word]:.0f} %" for word in VERDICTS)
    return (
        f"{simulated.finding} (cv {100 * simulated.cv:g} %); half an interval is {100 * simulated.half_width:.1f} % of "
        f"it. Of a true ratio of {simulated.effect:g} the report would have said: {shares}. Some caveat of shape or "
        f"order would have been raised in {100 * simulated.caveats:.0f} % of runs."
    )
