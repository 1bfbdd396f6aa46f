"""How a run ends on this machine: its status, what is derived from it, and its place in the list of all runs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from mountlab.core.cell_stop import CellStop
from mountlab.core.errors import KeepError, MountlabError, MountlabWarning, in_one_line
from mountlab.core.model import Sweep
from mountlab.report import execute
from mountlab.results import journal, tables
from mountlab.results.writer import RunWriter


@dataclass
class FinalStatus:
    """The status that a run ends with; the caller sets it."""

    status: str = "interrupted"


@contextmanager
def finishing(writer: RunWriter, sweep: Sweep) -> Iterator[FinalStatus]:
    """End a run, after success, an error or an interruption. Each part is tried, even after another has failed: a full
    disk may still take a smaller file.

    A failure here is raised, unless an error stopped the run: then it is a warning beside that error.
    """
    final = FinalStatus()
    try:
        yield final
    except BaseException as stopped:
        problems = _finish(writer, sweep, final.status)
        for problem in problems if not isinstance(stopped, KeepError) else ():
            warnings.warn(in_one_line(str(problem)), MountlabWarning, stacklevel=2)
        raise
    for problem in _finish(writer, sweep, final.status)[:1]:
        raise problem


def _finish(writer: RunWriter, sweep: Sweep, status: str) -> list[Exception]:
    problems: list[Exception] = []
    stops: list[CellStop] = []

    def attempt(part: Callable[[], object]) -> None:
        try:
            part()
        except (MountlabError, OSError) as error:
            problems.append(error)

    attempt(lambda: stops.extend(writer.stops(sweep)))
    attempt(lambda: writer.finish(status, stops))
    attempt(lambda: tables.derive(writer.path, writer.records) if journal.read_journal(writer.path) else None)
    attempt(lambda: _update_index(writer, status))
    return problems


def _update_index(writer: RunWriter, status: str) -> None:
    """Put the run into the index. An existing index gets a complete run with its report, which follows at once.

    Without the run's directory nothing is written: another disk lies under its name now.
    """
    results = writer.path.parent
    if not writer.path.is_dir():
        return
    if status != "complete" or not (results / execute.INDEX).exists():
        execute.refresh_index(results, make=True)
