"""Small sweeps that several tests run, and the silent bystanders of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mountlab.core.cell_stop import CellStop
from mountlab.core.model import Sweep, Trial
from mountlab.sweep.clients import refusal
from mountlab.sweep.plan import PlannedTrial
from mountlab.sweep.sweep_file import Resolved, resolve

TMPFS = {"type": "tmpfs", "size": "64MiB"}
RAMFS = {"type": "ramfs", "size": "64MiB"}
EXT4 = {"type": "ext4", "image": "128MiB", "options": ["noatime"]}
DIR = {"type": "dir"}
DD_WRITE = {"tool": "dd", "direction": "write", "bs": "1MiB", "count": 8}
DD_READ = {"tool": "dd", "direction": "read", "bs": "1MiB", "count": 8, "cache": ["cold", "warm"]}
CLOCK = {"clocksource": "clock_gettime"}
"""fio is told its clock: else each of its processes tries for half of its time whether the processors' clocks agree."""
FIO = {
    "tool": "fio",
    "rw": ["read", "write", "randread", "randwrite"],
    "bs": "64KiB",
    "size": "8MiB",
    "end_fsync": True,
    **CLOCK,
}


def sweep(
    *,
    filesystems: dict[str, Any] | None = None,
    workloads: dict[str, Any] | None = None,
    design: dict[str, Any] | None = None,
    **more: Any,
) -> Resolved:
    """A sweep of two blocks on tmpfs with one dd, or whatever is given in its place."""
    raw = {
        "name": "tiny",
        "question": "Does it work?",
        "filesystems": filesystems or {"tmpfs": TMPFS},
        "workloads": workloads or {"dd-write": DD_WRITE},
        "design": {
            "repeats": 2,
            "warmup": 0,
            "seed": 7,
            "trial_timeout": "60s",
            "shortest_trial": "0s",
            **(design or {}),
        },
        **more,
    }
    return resolve(raw, where="tests")


def as_is(*, design: dict[str, Any] | None = None, **more: Any) -> Resolved:
    """The same without dropping caches: for a real box, where it would make all programs that other tests start be
    read from the disk again."""
    return sweep(design={"drop_caches": False, **(design or {})}, **more)


def assert_refused(cell: Sweep, words: str) -> None:
    """The one cell of a sweep cannot run, for a reason with these words; where there are none it can."""
    found = refusal(cell.filesystems[0], cell.workloads[0])
    assert (words in found) if found and words else (found or "") == words, found


class Silent:
    """A progress that tells nobody."""

    def begin(self, trial: PlannedTrial) -> None: ...
    def end(self, planned: PlannedTrial, trial: Trial) -> None: ...
    def end_cells(self, stops: Sequence[CellStop], trials: Sequence[PlannedTrial]) -> None: ...
    def notice(self, text: str) -> None: ...
