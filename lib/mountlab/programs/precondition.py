"""Rounds before the first trial of a workload on a mount, until they are steady: kept, and not counted.

A device that is fresh from the factory, or trimmed, is faster than it will be in a day of work. `precondition: 25` of a
workload runs it up to 25 times first, until the last five rounds keep the storage industry's rule (stats/shape.steady).
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mountlab.core.model import Measurement, Workload
from mountlab.programs import TOOLS
from mountlab.stats import shape

WINDOW = 5
"""Rounds that the rule looks at: fewer cannot be steady."""


@dataclass(frozen=True)
class Rounds:
    """What the rounds before a trial gave."""

    most: int
    """How many there may be."""
    levels: tuple[float, ...] = ()
    """The figures of each round that an answer is about, as one: their geometric mean."""
    failed: str = ""
    """Why a round gave none, after which there was no other."""

    @property
    def steady(self) -> shape.Steady:
        return shape.steady(self.levels, window=WINDOW)

    @property
    def done(self) -> bool:
        """Whether no further round is needed, or allowed."""
        return bool(self.failed) or len(self.levels) >= self.most or self.steady.ok

    def text(self) -> str:
        """As it is kept."""
        return json.dumps({"most": self.most, "levels": self.levels, "failed": self.failed, "steady": self.steady.ok})


def read_rounds(text: str) -> Rounds:
    """Return what `Rounds.text` wrote. Raises ValueError for anything else."""
    raw: Mapping[str, Any] = json.loads(text)
    return Rounds(int(raw["most"]), tuple(float(level) for level in raw["levels"]), str(raw["failed"]))


def level(workload: Workload, measurements: Sequence[Measurement]) -> float:
    """Return the figures that an answer is about as one: the geometric mean of the main metrics; 0 without any."""
    names = TOOLS[workload.tool].main_metrics(workload)
    values = [row.value for row in measurements if row.metric in names and row.value > 0]
    return math.exp(math.fsum(map(math.log, values)) / len(values)) if values else 0.0
