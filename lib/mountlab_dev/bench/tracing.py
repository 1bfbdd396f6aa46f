"""What tracing costs: the figure of diagnostic trials over that of counted ones, in one run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mountlab.box.embedded import open_box
from mountlab.core.errors import PlanError
from mountlab.core.model import Box
from mountlab.results.writer import RunWriter
from mountlab.runner import workflow
from mountlab.runner.sweep_runner import run_sweep
from mountlab.stats import compare_unpaired
from mountlab.sweep.sweep_file import resolve

from mountlab_dev.bench.perturbation import Figures, parsed_figure
from mountlab_dev.bench.table import Row
from mountlab_dev.bench.trials import Silent

TRIALS = 10
"""Of each kind."""
_JOB = {"tool": "fio", "bs": "4KiB", "size": "32MiB", "runtime": "1s", "time_based": True}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "4 KiB random reads on tmpfs": ({"type": "tmpfs", "size": "64MiB"}, {**_JOB, "rw": "randread"}, "read_iops"),
    "fsync after each 4 KiB on ext4": (
        {"type": "ext4", "image": "256MiB"},
        {**_JOB, "rw": "randwrite", "fsync": 1},
        "write_iops",
    ),
}
"""What is traced: file system, workload and figure. Reads from memory are the worst case: each system call is two
events, and takes a microsecond."""


def rows(box: Box, trials: int, scratch: Path) -> Iterator[Row]:
    """Yield the ratio of each figure traced to untraced, with its interval."""
    for what, (filesystem, job, metric) in CASES.items():
        yield _row(box, trials, scratch / metric, what, filesystem, job, metric)


def _row(
    box: Box, trials: int, scratch: Path, what: str, filesystem: dict[str, Any], job: dict[str, Any], metric: str
) -> Row:
    name = f"{what} traced / untraced, {metric} of {trials} trials each"
    raw = {
        "name": "bench",
        "question": "What does tracing cost?",
        "workloads": {"w": job},
        "filesystems": {"fs": filesystem},
        "design": {"repeats": trials, "explain": trials, "warmup": 1, "seed": 1},
    }
    resolved = resolve(raw, where="bench")
    with open_box(box) as connection:
        try:
            session = workflow.planned_on({box.name: connection}, resolved, box, results=scratch)
        except PlanError as error:
            return Row(name, [], unit="ratio", why_not=f"{error.got}")
        journal = Figures(RunWriter.create(session.plan, resolved, session.facts, results=scratch))
        run_sweep(session.plan, session.connection, journal, Silent())
    by_kind: dict[bool, list[float]] = {True: [], False: []}
    for trial, files in zip(session.plan.trials, journal.found, strict=True):
        if trial.diagnostic or not trial.warmup:
            by_kind[trial.diagnostic].append(parsed_figure(trial, files, metric))
    found = compare_unpaired(by_kind[True], by_kind[False])
    pairs = zip(by_kind[True], by_kind[False], strict=True)
    return Row(name, [a / b for a, b in pairs], unit="ratio", interval=(found.low, found.high))
