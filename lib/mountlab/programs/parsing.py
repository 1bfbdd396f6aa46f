"""The figures in what a tool said, found in bounded time: a regular expression of a sweep (`tool: command`) may try
more ways to match a line than there are seconds."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from mountlab.core import plugins
from mountlab.core.errors import ParseError
from mountlab.core.figures import checked
from mountlab.core.model import Measurement, Workload
from mountlab.programs import TOOLS
from mountlab.tools.base import ToolOutput

LONGEST_S = 60.0
"""Of a processor, for one trial: a hundred times what the longest report takes."""


def parsed(workload: Workload, output: ToolOutput) -> list[Measurement]:
    """Return what the tool of the workload finds, checked, with the step of each figure.

    Raises ToolError and ParseError as the tool does, FigureError as `checked` does, and ParseError where it takes too
    long (in the main thread: no other can be interrupted).
    """
    entry, tool = TOOLS.entry(workload.tool), TOOLS[workload.tool]
    with _limited(), plugins.calling(entry, error=ParseError, doing="to read the output"):
        rows = tool.parse(workload, output)
    giver = f"the plug-in {entry.owner}" if entry else workload.tool
    authors = f"the authors of {entry.distribution if entry else 'Mountlab'}"
    return checked(rows, workload.own_metrics, tool.steps, giver=giver, authors=authors)


@contextmanager
def _limited() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, LONGEST_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def _too_long(*_: object) -> None:
    raise ParseError(
        "looking for figures takes too long",
        where="the output of the tool",
        got=f"nothing after {LONGEST_S:g} s",
        next_step="a pattern that repeats what repeats already, such as (a+)+, tries every way: write it without",
    )
