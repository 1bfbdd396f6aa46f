"""Diagnostic trials that were never run: gamma-distributed parts of each latency, with a known truth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from mountlab.analysis.why_frames import Why, frame_of
from mountlab.core.layers import WAITS
from mountlab.core.model import Design, Filesystem, Sweep, Workload

Parts = Mapping[tuple[str, str], float]
"""(layer, through) to its mean in seconds."""
Truth = Mapping[str, Mapping[str, Parts]]
"""File system to operation to the parts of its mean latency."""

FSYNC: Truth = {
    "ext4": {
        "write": {("processor", "own"): 6e-6, ("lock", "own"): 0.5e-6},
        "sync": {
            ("processor", "own"): 40e-6, ("run_queue", "own"): 15e-6, ("journal", "journal"): 60e-6,
            ("queue", "journal"): 20e-6, ("device", "own"): 180e-6, ("device", "journal"): 260e-6,
            ("flush", "journal"): 900e-6, ("unattributed", "own"): 12e-6,
        },
    },
    "xfs": {
        "write": {("processor", "own"): 7e-6, ("lock", "own"): 0.6e-6},
        "sync": {
            ("processor", "own"): 55e-6, ("run_queue", "own"): 22e-6, ("journal", "journal"): 25e-6,
            ("queue", "journal"): 12e-6, ("device", "own"): 175e-6, ("device", "journal"): 150e-6,
            ("flush", "journal"): 420e-6, ("unattributed", "own"): 9e-6,
        },
    },
    "btrfs": {
        "write": {("processor", "own"): 16e-6, ("lock", "own"): 1.5e-6},
        "sync": {
            ("processor", "own"): 210e-6, ("run_queue", "own"): 60e-6, ("journal", "journal"): 240e-6,
            ("lock", "own"): 35e-6, ("writeback", "writeback"): 120e-6, ("queue", "own"): 25e-6,
            ("device", "own"): 340e-6, ("device", "journal"): 420e-6, ("flush", "journal"): 950e-6,
            ("unattributed", "own"): 40e-6,
        },
    },
    "tmpfs": {
        "write": {("processor", "own"): 2e-6},
        "sync": {("processor", "own"): 0.4e-6, ("unattributed", "own"): 0.02e-6},
    },
}  # fmt: skip
"""Syncs of four file systems on one device: flushes for the journal are most of what lies between ext4 and xfs."""
WORK: Mapping[str, Mapping[str, float]] = {
    "ext4": {"device_ios_per_op": 3.1, "flushes_per_sync": 2.1, "commits_per_sync": 1.0, "write_amplification": 3.9},
    "xfs": {"device_ios_per_op": 2.0, "flushes_per_sync": 1.0, "commits_per_sync": 1.0, "write_amplification": 2.2},
    "btrfs": {"device_ios_per_op": 6.2, "flushes_per_sync": 2.0, "commits_per_sync": 1.0, "write_amplification": 9.7},
    "tmpfs": {},
}
SHARES: Mapping[str, Mapping[str, float]] = {
    "ext4": {"tool": 0.35, "journal": 0.62, "writeback": 0.03},
    "xfs": {"tool": 0.5, "journal": 0.46, "writeback": 0.04},
    "btrfs": {"tool": 0.4, "journal": 0.3, "writeback": 0.2, "other": 0.1},
    "tmpfs": {},
}
UNITS = {
    "write_amplification": "1",
    "device_ios_per_op": "1",
    "context_switches_per_op": "1",
    "processor_s_per_op": "s",
}


def sweep_of(*filesystems: str, workloads: tuple[Workload, ...] = (), blocks: int = 5) -> Sweep:
    """Return a sweep with the first file system as its baseline."""
    return Sweep(
        name="why",
        question="Why does a sync take so long?",
        box="local",
        filesystems=tuple(Filesystem(name=name, type=name, size_bytes=2**28) for name in filesystems),
        workloads=workloads or (Workload(name="fsync", tool="fio", options={}),),
        design=Design(repeats=blocks),
        baseline=filesystems[0],
    )


def simulated_why(
    sweep: Sweep,
    truth: Truth = FSYNC,
    *,
    blocks: int = 5,
    seed: int = 1,
    spread: float = 0.06,
    tail: float = 3.5,
    often: Mapping[str, float] | None = None,
    changes: Mapping[tuple[str, int], Mapping[str, Any]] | None = None,
) -> Why:
    """Return the frames of so many diagnostic blocks of each cell whose file system `truth` knows.

    Each part of a trial is gamma-distributed about its mean with this relative spread; that of a slow operation (p99)
    about `tail` times as much. `often`: file system to how often a sync waits for a processor. `changes`: (file system,
    block) to columns of why_traces that are others.
    """
    rng = np.random.default_rng(seed)
    layers, work, traces = [], [], []
    number = 0
    for block in range(1, blocks + 1):
        for cell in sweep.cells:
            name = cell.filesystem.name
            if name not in truth:
                continue
            number += 1
            trial = (f"x{number:04d}", block, cell.id, name, cell.workload.name)
            for operation, parts in truth[name].items():
                whole = 0.0
                for (layer, through), mean in parts.items():
                    seconds = float(rng.gamma(spread**-2, mean * spread**2))
                    whole += seconds
                    slow = float(rng.gamma(spread**-2, tail * mean * spread**2))
                    layers.append((*trial, operation, "mean", layer, through, seconds))
                    layers.append((*trial, operation, "p99", layer, through, slow))
                row = {
                    "operations": 2000, "events": 40_000, "lost_events": 0, "window_s": 10.0, "traced_mean": whole,
                    "tool_mean": whole * float(rng.normal(1.01, 0.003)), "withheld": "",
                    "seen": 1.0, "cut": "", "traced_in_flight": np.nan, "tool_in_flight": np.nan,
                } | dict((changes or {}).get((name, block), {}))  # fmt: skip
                traces.append((*trial, operation, *row.values()))
            figures = {("", quantity, ""): mean for quantity, mean in WORK.get(name, {}).items()}
            figures |= {("", "share_of_ios", label): share for label, share in SHARES.get(name, {}).items()}
            figures |= {("sync", "context_switches_per_op", ""): 2.0, ("sync", "processor_s_per_op", ""): 5e-5}
            if name in (often or {}):
                figures["sync", WAITS, ""] = often[name]
            for (operation, quantity, label), mean in figures.items():
                value = float(rng.normal(mean, 0.01 * mean))
                work.append((*trial, operation, quantity, label, value, UNITS.get(quantity, "1")))
    frames = (frame_of("why_layers", layers), frame_of("why_work", work), frame_of("why_traces", traces))
    stacks, sleeps = frame_of("why_stacks", stack_rows(traces)), frame_of("why_sleeps", sleep_rows(traces))
    return Why(*frames, frame_of("why_slowest", slow_rows(layers)), stacks, sleeps)


def slow_rows(layers: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Of each trial and operation one slow operation: the parts of its 99th percentile, one after the other."""
    rows: list[tuple[Any, ...]] = []
    began: dict[tuple[Any, ...], float] = {}
    for *trial, operation, statistic, layer, through, seconds in layers:
        if statistic == "p99":
            key = (*trial, operation)
            rows.append((*trial, operation, 1, 0.25, began.get(key, 0.0), seconds, layer, through))
            began[key] = began.get(key, 0.0) + seconds
    return rows


STACKS: Mapping[str, Mapping[str, int]] = {
    "ext4": {
        "fio;do_syscall_64;ksys_pwrite64;ext4_file_write_iter;ext4_da_write_begin": 60,
        "fio;do_syscall_64;ksys_pwrite64;ext4_file_write_iter;copy_folio_from_iter_atomic": 20,
        "jbd2;ret_from_fork;kthread;kjournald2;jbd2_journal_commit_transaction;submit_bio": 40,
    },
    "xfs": {
        "fio;do_syscall_64;ksys_pwrite64;xfs_file_buffered_write;iomap_file_buffered_write": 50,
        "kworker;ret_from_fork;xlog_cil_push_work;xlog_write": 30,
    },
}
"""File system to the samples of each stack in one trial."""


def stack_rows(traces: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    trials = {trial[0]: trial[:5] for trial in traces}
    return [(*trial, stack, n) for trial in trials.values() for stack, n in STACKS.get(trial[3], {}).items()]


SLEEPS: Mapping[str, Mapping[str, tuple[int, float]]] = {
    "ext4": {
        "fio;do_syscall_64;ksys_fsync;ext4_sync_file;jbd2_log_wait_commit": (2000, 2.4),
        "fio;do_syscall_64;ksys_fsync;ext4_sync_file;folio_wait_writeback": (2000, 0.4),
        "jbd2;ret_from_fork;kthread;kjournald2;jbd2_journal_commit_transaction;bit_wait_io": (4000, 1.8),
    },
    "xfs": {"fio;do_syscall_64;ksys_fsync;xfs_file_fsync;xlog_wait_on_iclog": (2000, 1.2)},
}
"""File system to how often threads slept in each stack in one trial, and for how many seconds together."""


def sleep_rows(traces: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    trials = {trial[0]: trial[:5] for trial in traces}
    return [(*trial, stack, *own) for trial in trials.values() for stack, own in SLEEPS.get(trial[3], {}).items()]
