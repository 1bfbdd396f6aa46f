"""Does Mountlab change what it measures: the same fio job bare and through Mountlab, in turns, on the same mount."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

from mountlab.box.embedded import open_box
from mountlab.core.model import Box, Trial
from mountlab.fio.report import FILE as REPORT
from mountlab.outcome.judging import Outcome
from mountlab.programs.parsing import parsed
from mountlab.results.writer import RunWriter
from mountlab.runner import workflow
from mountlab.runner.sweep_runner import run_sweep
from mountlab.stats import compare
from mountlab.sweep.plan import PlannedTrial
from mountlab.tools.base import ToolOutput

from mountlab_dev.bench.table import Row
from mountlab_dev.bench.trials import FIO, Silent, Timed, a_sweep

PAIRS, RUNTIME = 30, "4s"
"""Jobs of a second vary by 7 % and more where others use the machine: their 30 pairs could not tell 2 %."""
INSIDE = (0.98, 1.02)
METRIC = "write_iops"


class InTurns(Silent):
    """Runs the job of each trial once more by itself: before it, and after the next, and so on."""

    def __init__(self) -> None:
        self.bare: list[float] = []

    def begin(self, trial: PlannedTrial) -> None:
        if trial.block % 2:
            self.bare.append(by_itself(trial))

    def end(self, planned: PlannedTrial, trial: Trial) -> None:
        if not planned.block % 2:
            self.bare.append(by_itself(planned))


class Figures(Timed):
    """Notes the figure of each trial."""

    def __init__(self, writer: RunWriter) -> None:
        super().__init__(writer)
        self.found: list[Mapping[str, bytes]] = []

    def record(self, trial: Trial, files: Mapping[str, bytes], outcome: Outcome) -> None:
        super().record(trial, files, outcome)
        self.found.append(files)


def by_itself(trial: PlannedTrial) -> float:
    """Return the figure of a trial's command, started as anybody would, in a directory of its own on the same mount."""
    directory = next(word for word in trial.command.argv if word.startswith("--directory=")).partition("=")[2]
    output = next(word for word in trial.command.argv if word.startswith("--output=")).partition("=")[2]
    bare, report = f"{directory}-bare", f"{os.path.dirname(output)}-{REPORT}"
    argv = [word.replace(directory, bare).replace(output, report) for word in trial.command.argv if not _logs(word)]
    subprocess.run(["mkdir", bare], check=True)
    try:
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, check=True)
        files = {"exit_status": b"0", "stdout": done.stdout, "stderr": done.stderr, REPORT: Path(report).read_bytes()}
    finally:
        subprocess.run(["rm", "-rf", bare, report], check=True)
    return figure(trial, files)


def _logs(word: str) -> bool:
    """Return whether an option of fio's is of the logs over time, which users do not ask for by hand."""
    return word.startswith(("--log_avg_msec=", "--write_"))


def figure(trial: PlannedTrial, files: Mapping[str, bytes]) -> float:
    """IOPS of what fio reported."""
    return parsed_figure(trial, files, METRIC)


def parsed_figure(trial: PlannedTrial, files: Mapping[str, bytes], metric: str) -> float:
    """Return a figure of what fio reported."""
    found = parsed(trial.cell.workload, ToolOutput.from_files(files))
    return next(each.value for each in found if each.metric == metric)


def rows(box: Box, pairs: int, scratch: Path) -> Iterator[Row]:
    """Yield the ratio of IOPS through Mountlab to IOPS bare, with its interval, of pairs in turns."""
    what = f"fio through Mountlab / the same bare, {METRIC} of {pairs} pairs in turns"
    if box.embedded != "loopback":
        yield Row(what, [], unit="ratio", inside=INSIDE, why_not="needs a box that is this machine")
        return
    resolved, turns = a_sweep({**FIO, "runtime": RUNTIME}, pairs, warmup=0), InTurns()
    with open_box(box) as connection:
        session = workflow.planned_on({box.name: connection}, resolved, box, results=scratch)
        journal = Figures(RunWriter.create(session.plan, resolved, session.facts, results=scratch))
        run_sweep(session.plan, session.connection, journal, turns)
    through = [figure(trial, files) for trial, files in zip(session.plan.trials, journal.found, strict=True)]
    yield ratio(what, list(zip(through, turns.bare, strict=True)), INSIDE)
    # In turns, so that bare jobs stand beside each other too: what they differ by is noise.
    neighbours = list(zip(turns.bare[2::2], turns.bare[1::2], strict=False))
    if len(neighbours) > 1:
        yield ratio(f"the same job bare / bare again, {len(neighbours)} pairs of those", neighbours)


def ratio(what: str, pairs: list[tuple[float, float]], inside: tuple[float, float] | None = None) -> Row:
    """Return a row of the ratios of pairs, with the interval of their mean."""
    found = compare(pairs)
    return Row(what, [a / b for a, b in pairs], unit="ratio", interval=(found.low, found.high), inside=inside)
