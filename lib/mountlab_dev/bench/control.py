"""What the control machine itself gives: the start of a process, and memory that many trials take."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from mountlab.core.model import Box
from mountlab.core.units import KIB, MIB
from mountlab.results.paths import PARAMS

from mountlab_dev.bench.table import Row, timed, worked

HELP_GOAL_S, PLAN_GOAL_S = 0.1, 1.5
FEW, MANY = 100, 1_000
GROWTH_GOAL = 20.0 * MIB
_RUN = """
import re, sys
from pathlib import Path
from mountlab_dev.bench.trials import DD, a_sweep, measured
from mountlab.box.embedded import open_box
from mountlab.results.paths import load_box
with open_box(load_box(sys.argv[1])) as connection:
    measured(connection, a_sweep(DD, int(sys.argv[2])), Path(sys.argv[3]))
print(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""
"""So much memory takes a process that measures so many trials, in KiB."""


def startup(repeats: int) -> Iterator[Row]:
    """`mountlab --help` and a plan, from nothing to their ends."""
    words = [sys.executable, "-m", "mountlab", "--help"]
    took = timed(lambda: subprocess.run(words, capture_output=True, check=True), repeats)
    yield Row("mountlab --help, the whole process", took, under=HELP_GOAL_S)
    sweep = str(PARAMS / "sweeps" / "ramdisk.yml")
    yield Row("mountlab plan of a shipped sweep, processor time", worked(["plan", sweep], repeats), under=PLAN_GOAL_S)


def memory(box: Box, scratch: Path) -> Iterator[Row]:
    """Yield the most that a process takes that runs a sweep, of few trials and of many."""
    few, many = (_peak(box, trials, scratch) for trials in (FEW, MANY))
    yield Row(f"memory of a process that runs {FEW} trials", [few], "B")
    yield Row(f"memory of a process that runs {MANY} trials", [many], "B")
    yield Row(f"the difference, of {MANY - FEW} trials", [max(0.0, many - few)], "B", under=GROWTH_GOAL)


def _peak(box: Box, trials: int, scratch: Path) -> float:
    words = [sys.executable, "-c", _RUN, box.name, str(trials), str(scratch / f"memory-{trials}")]
    said = subprocess.run(words, capture_output=True, text=True, check=True)
    return float(said.stdout) * KIB
