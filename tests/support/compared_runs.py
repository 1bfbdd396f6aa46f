"""Synthetic runs to be compared: each with a name, a speed and a noise of its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from facts import known
from synthetic_run import SyntheticRun, synthetic_run

HOSTILE = "<script>alert(1)</script>"


def run(
    name: str, *, factor: float = 1.0, blocks: int = 5, seed: int | None = None, hostile: str = "", **facts: Any
) -> SyntheticRun:
    """A run that is `factor` times as fast, with a noise of 1 %; and other facts."""
    made = synthetic_run(blocks=blocks, caveats=False, hostile=hostile)
    rng = np.random.default_rng(sum(name.encode()) if seed is None else seed)
    values = made.measurements["value"] * factor * np.exp(rng.normal(0, 0.01, len(made.measurements)))
    made.measurements = made.measurements.assign(value=values)
    made.info = replace(made.info, run_id=name, facts=known(made.info.facts, **facts))
    return made
