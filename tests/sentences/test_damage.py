"""What became of damaged blocks is stated over the counted trials, as a range where they differ."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd
from mountlab.core.model import Cell, Filesystem, Workload
from mountlab.sentences.damage import damage_lines

SCRUB = Workload(name="bad", tool="scrub", options={"size": 2**24, "errors": 10})
DD = Workload(name="dd", tool="dd", options={})
EXT4, MIRROR = (Filesystem(name=name, type="ext4", image_bytes=2**28) for name in ("ext4", "mirror"))
BLOCKS = ("planted", "wrong before", "refused before", "wrong after", "refused after")


def cell(filesystem: Filesystem, workload: Workload) -> Cell:
    return Cell(filesystem=filesystem, workload=workload)


def run_of(*trials: tuple[Cell, list[tuple[int, ...]]], warmup: bool = False) -> Any:
    """Of each cell its trials: the counts of BLOCKS, and then how many were repaired."""
    rows = [
        (cell.id, metric, label, float(value))
        for cell, counts in trials
        for trial in counts
        for metric, label, value in zip([*["blocks"] * 5, "operations"], [*BLOCKS, "repaired"], trial, strict=True)
    ]
    measurements = pd.DataFrame(rows, columns=["cell", "metric", "label", "value"]).assign(warmup=warmup)
    cells = [cell for cell, _ in trials]
    workloads = list({cell.workload.name: cell.workload for cell in cells}.values())
    return SimpleNamespace(sweep=SimpleNamespace(workloads=workloads, cells=cells), measurements=measurements)


def test_each_file_system_has_its_sentence_and_other_workloads_have_none() -> None:
    ext4, mirror, dd = cell(EXT4, SCRUB), cell(MIRROR, SCRUB), cell(EXT4, DD)
    run = run_of((ext4, [(10, 10, 0, 10, 0, 0)] * 2), (mirror, [(10, 0, 0, 0, 0, 10), (10, 4, 1, 0, 0, 10)]), (dd, []))
    assert damage_lines(run) == [
        "ext4: of 10 damaged blocks reads served 10 without an error and refused 0; 0 were repaired. After the scrub "
        "reads serve 10 without an error and refuse 0 (2 trials).",
        "mirror: of 10 damaged blocks reads served 0 to 4 without an error and refused 0 to 1; 10 were repaired. After "
        "the scrub reads serve 0 without an error and refuse 0 (2 trials).",
    ]


def test_warm_up_trials_do_not_count() -> None:
    assert damage_lines(run_of((cell(EXT4, SCRUB), [(10, 10, 0, 10, 0, 0)]), warmup=True)) == []
