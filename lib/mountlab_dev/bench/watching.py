"""What `mountlab watch` costs the program that it watches: one job of fio, watched and alone by turns in one run."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

from mountlab.box.embedded import open_box
from mountlab.core.model import Box, Trial
from mountlab.results.writer import RunWriter
from mountlab.runner import workflow
from mountlab.runner.sweep_runner import run_sweep
from mountlab.sweep.plan import PlannedTrial
from mountlab.sweep.sweep_file import resolve
from mountlab.sweep.watch_sweep import WatchRequest

from mountlab_dev.bench.perturbation import INSIDE, Figures, ratio
from mountlab_dev.bench.table import Row
from mountlab_dev.bench.trials import NO_LINK, Silent

PAIRS = 100
_JOB = (
    "fio", "--name=job", "--rw=randrw", "--bs=4k", "--size=32m", "--runtime=2", "--time_based", "--ioengine=psync",
    "--clocksource=clock_gettime", "--randseed=7", "--output-format=json",
)  # fmt: skip


class _Alone(Silent):
    """Runs the job alone before it is watched, and the next time after that."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.figures: list[float] = []

    def begin(self, trial: PlannedTrial) -> None:
        if trial.block % 2:
            self._run()

    def end(self, planned: PlannedTrial, trial: Trial) -> None:
        if not trial.block % 2:
            self._run()

    def _run(self) -> None:
        done = subprocess.run(_JOB, cwd=self._directory, capture_output=True, check=True)
        self.figures.append(_operations(done.stdout))


def rows(box: Box, pairs: int, scratch: Path) -> Iterator[Row]:
    """Yield the ratio of operations a second watched to those alone."""
    name = f"fio watched / alone, operations a second of {pairs} pairs in one run"
    if box.embedded != "loopback":
        yield Row(name, [], unit="ratio", inside=INSIDE, why_not=NO_LINK)
        return
    directory = scratch / "place"
    directory.mkdir(parents=True)
    resolved = resolve(WatchRequest(_JOB, str(directory), box.name, repeats=pairs).parameters(), where="bench")
    alone = _Alone(directory)
    with open_box(box) as connection:
        session = workflow.planned_on({box.name: connection}, resolved, box, results=scratch)
        journal = Figures(RunWriter.create(session.plan, resolved, session.facts, results=scratch))
        run_sweep(session.plan, session.connection, journal, alone)
    watched = [_operations(files["stdout"]) for files in journal.found]
    yield ratio(name, list(zip(watched, alone.figures, strict=True)), INSIDE)


def _operations(text: bytes) -> float:
    (job,) = json.loads(text)["jobs"]
    return float(job["read"]["iops"] + job["write"]["iops"])
