"""What `mountlab conform` tries the parts with: real output, and runs on which the check is raised and is not."""

from __future__ import annotations

from typing import Any

from mountlab.runner.conformance import CheckExample, FilesystemExample, PlotExample, ToolExample

FILES = {
    "stderr": "Total bytes read: 471040 (460KiB, 25MiB/s)\n",
    ".wall_clock": "1795446965036373030 1795446965040410400 1795446965250855820 38427.88 38427.88 38428.09 38428.09\n",
}
"""Of a real trial with 100 files of 4 KiB."""


def sweep(files: int) -> dict[str, Any]:
    return {
        "filesystems": {"tmpfs": {"type": "tmpfs", "size": "256MiB"}},
        "workloads": {"unpack": {"tool": "untar", "files": files}},
    }


RATES = {"file_rate": [9000.0, 9100.0, 9050.0, 8990.0, 9010.0]}
EXAMPLES = [
    ToolExample("untar", options={"files": 100}, files=FILES, other_work={"files": 200}),
    FilesystemExample("huge_tmpfs", {"size": "256MiB"}),
    CheckExample("few-files", raised=True, sweep=sweep(100), figures=RATES),
    CheckExample("few-files", raised=False, sweep=sweep(1000), figures=RATES),
    PlotExample("time-per-file", sweep=sweep(1000), figures=RATES),
]
