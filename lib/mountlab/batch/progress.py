"""Telling how far a batch is: one bar where its items run one after another, one line a box where boxes work at the
same time; in a notebook with a person before it a table that is redrawn."""

from __future__ import annotations

import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tqdm import tqdm

from mountlab.batch import board
from mountlab.batch.batch_file import Item, ItemOutcome, on_box
from mountlab.batch.board import BoardRow, words_left
from mountlab.batch.queue import Queue, Task
from mountlab.batch.store import BatchDirectory
from mountlab.batch.view import Ahead, Planned
from mountlab.core import errors
from mountlab.core.text import drawn_on, one_line, visible
from mountlab.results import journal
from mountlab.runner import live

_FORMAT = "{desc} |{bar}| {n_fmt}/{total_fmt} items, {elapsed} elapsed{postfix}"
_MOST_NEWS = 8


class Progress:
    """A bar on standard error over all items, with the trials of the running one and the time that is left."""

    def __init__(self, planned: Sequence[Planned], directory: BatchDirectory, results: Path) -> None:
        self._ahead, self._directory, self._results = Ahead(planned), directory, results
        self._running: Item | None = None
        self._run: Path | None = None
        self._began = time.monotonic()
        self._trials = {plan.item.id: plan.trials for plan in planned}
        self._failed = 0
        # In a log each refresh would be a line of its own: there a line for each item is enough.
        self._live = sys.stderr.isatty()
        pause_s = 0.2 if self._live else 3600.0
        self._stream = drawn_on(sys.stderr)
        self._bar: Any = tqdm(
            total=len(planned), bar_format=_FORMAT, file=self._stream, mininterval=pause_s, leave=True
        )

    def begin(self, item: Item) -> None:
        self._running, self._run, self._began = item, None, time.monotonic()
        if not self._live:
            left = words_left(self._ahead.seconds())
            self._bar.write(one_line(f"{item.id}: {item.label}; {left}"), file=self._stream)
        self.tick()

    def tick(self) -> None:
        if not self._live or self._running is None:
            return
        running_s = time.monotonic() - self._began
        left = words_left(self._ahead.seconds(running_s=running_s, running=self._running.id))
        failed = f", {self._failed} failed" if self._failed else ""
        self._bar.set_description_str(one_line(f"{self._running.id}{self._done()}"), refresh=False)
        self._bar.set_postfix_str(f"{left}{failed}", refresh=True)

    def _done(self) -> str:
        """Return how many trials of the running item are done; its run is looked for until it is there."""
        total = self._trials.get(self._running.id, 0) if self._running else 0
        if not total or not self._running:
            return ""
        self._run = self._run or self._directory.run_of(self._running, self._results)
        return f", {len(journal.read_journal(self._run))}/{total} trials" if self._run else ""

    def end(self, item: Item, outcome: ItemOutcome) -> None:
        self._ahead.end(item.id, outcome.elapsed_s)
        if outcome.state != "done":
            self._failed += outcome.state == "failed"
            self._bar.write(visible(how_it_ended(item, outcome)), file=self._stream)
        self._bar.update(1)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()


def how_it_ended(item: Item, outcome: ItemOutcome) -> str:
    """Return a line about an item that is done with."""
    reason = f": {errors.in_one_line(outcome.reason)}" if outcome.reason else ""
    return f"{outcome.state}: {item.id} {item.label}{reason}"


# ── many boxes ───────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class _BoxState:
    """What a box does, and what it will do."""

    ahead: Ahead = field(default_factory=lambda: Ahead(()))
    trials: dict[str, int] = field(default_factory=dict)
    """Item to how many trials are planned."""
    states: Counter[str] = field(default_factory=Counter)
    task: Task | None = None
    began: float = 0.0
    run: Path | None = None
    note: str = ""
    """Why it does nothing."""
    last_wait: str = ""
    """The last reason for which it waited."""


class Watch:
    """Shows all boxes of a batch at once. Only the thread that gives out the work reports to it and draws it."""

    def __init__(self, queue: Queue, names: Sequence[str], directory: BatchDirectory, results: Path) -> None:
        self._queue, self._directory, self._results = queue, directory, results
        self._boxes = {name: _BoxState() for name in names}
        self._screen: Screen | Page | Log = _screen()

    # ── reports ──────────────────────────────────────────────────────────────────────────────────────────────────────

    def say(self, text: str) -> None:
        self._screen.say(text)

    def planned(self, box: str, plans: Sequence[Planned]) -> None:
        """Take in what a box would do for its items."""
        state = self._state(box)
        state.ahead = Ahead([plan for plan in plans if not plan.problem])
        state.trials = {plan.item.id: plan.trials for plan in plans}

    def begin(self, task: Task) -> None:
        state = self._state(task.box)
        state.task, state.began, state.run, state.note = task, time.monotonic(), None, ""
        if not task.planning:
            self._screen.log(f"{task.box + ': ' if task.box else ''}{task.item.id}: {task.item.label}")

    def end(self, task: Task, outcome: ItemOutcome | None, note: str = "") -> None:
        """Report how a task ended. `note`: why its box does nothing now."""
        state = self._state(task.box)
        state.task, state.note = None, note
        if outcome is not None:
            state.states[outcome.state] += 1
            state.ahead.end(outcome.item, outcome.elapsed_s)
            say = self._screen.log if outcome.state == "done" else self._screen.say
            say(how_it_ended(task.item, outcome))

    def waits(self, task: Task, why: str) -> None:
        """Report a task that is to be done once more, later."""
        state = self._state(task.box)
        state.task, state.note = None, f"waits: {why}"
        if why != state.last_wait:
            state.last_wait = why
            self._screen.log(f"{task.box + ': ' if task.box else ''}{task.item.id} waits: {why}")

    def cannot(self, box: str, item: Item, outcome: ItemOutcome) -> None:
        """Report an item that its box cannot do, by the plan."""
        self._state(box).states[outcome.state] += 1
        self._screen.say(how_it_ended(item, outcome))

    def tick(self) -> None:
        """Draw it, where it is drawn: not in a log."""
        if not isinstance(self._screen, Log):
            pools = Counter(item.pool for item in self._queue.waiting if item.pool)
            self._screen.draw([self._row(name) for name in self._boxes], pools)

    def _state(self, box: str) -> _BoxState:
        return self._boxes.setdefault(box, _BoxState())

    # ── what it shows ────────────────────────────────────────────────────────────────────────────────────────────────

    def _row(self, name: str) -> BoardRow:
        state, task = self._boxes[name], self._boxes[name].task
        done = sum(state.states.values())
        running = task is not None and not task.planning
        left_s = trials = None
        if state.trials and not (running and task and task.item.pool):  # else the time left is unknown
            running_s = time.monotonic() - state.began if running else 0.0
            left_s = state.ahead.seconds(running_s=running_s, running=task.item.id if task else "")
        if running and task and state.trials.get(task.item.id):
            state.run = state.run or self._directory.run_of(on_box(task.item, task.box), self._results)
            trials = (len(journal.read_journal(state.run)) if state.run else 0, state.trials[task.item.id])
        return BoardRow(
            box=name or "(no box)",
            done=done,
            total=done + running + self._queue.of_box(name),
            doing=("planning" if task.planning else task.item.id) if task else state.note,
            trials=trials,
            left_s=left_s,
            failed=state.states["failed"],
        )

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        self.tick()


def _screen() -> Screen | Page | Log:
    if live.person_is_there():
        return Page(live.show)
    return Screen() if sys.stderr.isatty() else Log()


class Log:
    """Lines, where standard error is no terminal."""

    def say(self, text: str) -> None:
        sys.stderr.write(f"{visible(text)}\n")
        sys.stderr.flush()

    log = say
    """What only a log has: elsewhere the lines of the boxes say it."""


class Screen:
    """A line a box at the foot of a terminal, drawn over again; what is said goes above it."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def log(self, text: str) -> None:
        """The line of the box says it."""

    def say(self, text: str) -> None:
        self._write([visible(text), *self._lines], keep=1)

    def draw(self, rows: Sequence[BoardRow], pools: Mapping[str, int]) -> None:
        lines = board.lines(rows, pools, width=shutil.get_terminal_size().columns)
        if lines != self._lines:
            self._write(lines)

    def _write(self, lines: Sequence[str], keep: int = 0) -> None:
        """Write in the place of the lines that are there; the first `keep` of them are never drawn over."""
        up = f"\x1b[{len(self._lines)}F" if self._lines else ""
        stream = drawn_on(sys.stderr)
        stream.write(f"{up}\x1b[J" + "".join(f"{line}\n" for line in lines))
        stream.flush()
        self._lines = list(lines[keep:])


class Page:
    """A table below the running cell of a notebook; when it is over it stays there as it is."""

    def __init__(self, show: Callable[..., Any]) -> None:
        self._show = show
        self._shown: Any = None
        self._news: list[str] = []
        self._text = ""

    def log(self, text: str) -> None:
        """The row of the box says it."""

    def say(self, text: str) -> None:
        self._news = [*self._news, text][-_MOST_NEWS:]

    def draw(self, rows: Sequence[BoardRow], pools: Mapping[str, int]) -> None:
        picture = board.table(rows, pools, self._news)
        if self._shown is None:
            self._shown = self._show(picture, display_id=True)
        elif picture != self._text:
            self._shown.update(picture)
        self._text = picture
