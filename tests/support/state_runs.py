"""Runs of two file systems in several states, or beside neighbours, with true means that are given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from mountlab.analysis.example import ExampleRun
from mountlab.core.model import Design, Filesystem, Scalar, Sweep, Workload

APP: Mapping[str, Scalar] = {"rw": "randwrite", "bs": 4096, "size": 2**20}
Level = Mapping[str, str]


def state_sweep(levels: Sequence[Level], *, names: Sequence[str] = ("ext4", "btrfs"), **more: Any) -> Sweep:
    design = more.pop("design", {})
    return Sweep(
        name="states",
        question="In the state that I live in?",
        box="local",
        filesystems=tuple(Filesystem(name=name, type="ext4") for name in names),
        workloads=tuple(Workload(name="app", tool="fio", options=APP, factors=dict(level)) for level in levels),
        design=Design(**{"repeats": 10, "seed": 1, **design}),
        metrics=("write_iops",),
        baseline="ext4",
        **more,
    )


STATES = [{"state": "fresh"}, {"state": "aged"}]
TRUE = {"ext4 fresh": 1000.0, "btrfs fresh": 1100.0, "ext4 aged": 610.0, "btrfs aged": 555.1}
"""Ratios of 1.10 and 0.91."""


def state_run(
    asked: Sweep, means: Mapping[str, float], *, blocks: int = 10, cv: float = 0.03, seed: int = 3, **more: Any
) -> ExampleRun:
    """A run of so many blocks; `means`: 'btrfs aged', of the file system and all levels, to its mean."""
    rng = np.random.default_rng(seed)
    figures = {
        cell.id: {"write_iops": (means[_name(cell.filesystem.name, cell.workload)] * _noise(rng, cv, blocks)).tolist()}
        for cell in asked.cells
    }
    return ExampleRun(asked, {}, figures, **more)


def _name(filesystem: str, workload: Workload) -> str:
    return " ".join([filesystem, *workload.factors.values()])


def _noise(rng: np.random.Generator, cv: float, blocks: int) -> Any:
    return np.exp(rng.normal(0, cv, blocks))
