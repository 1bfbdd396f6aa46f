"""`mountlab batch`: notebooks x sweeps x boxes x overrides, one after another, and one page on all of them.

It goes on after a failure; begun again, it goes on where it stopped: what is done stays, a run that was interrupted is
resumed, and of one that was measured only the report is made.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from mountlab import batch_view, errors, everywhere, report, store, workflow
from mountlab.batch_params import Batch, Item, Outcome, notebook_parameters, unfinished
from mountlab.batch_store import (
    BatchDirectory,
    held_again,
    held_batch,
    load_batch,
    notebook_path,
    now,
    parameters_of,
    read_view,
    sweep_path,
)
from mountlab.batch_view import NOTEBOOK_S, Ahead, BatchView, Planned
from mountlab.errors import KeepError, MountlabError
from mountlab.kernels import Kernels, own_loop

PAGE = store.NOTEBOOKS / "80_batch.ipynb"
RESUME = store.NOTEBOOKS / "15_resume_run.ipynb"
LIMIT_S = 30 * 24 * 3600
"""A cell of a batch's notebook may measure for weeks; each of its trials has a limit of its own."""
TICK_S = 1.0


@dataclass(frozen=True)
class Job:
    """One item on its way to an outcome."""

    item: Item
    directory: BatchDirectory
    results: Path
    tick: Callable[[], None]
    """Called each second while it runs."""


Execute = Callable[[Job], Outcome]
"""Does one item. Raises KeyboardInterrupt when stopped; whatever else goes wrong is in the outcome."""


def run_batch(
    batch: Batch, *, results: Path = store.RESULTS, anew: bool = False, execute: Execute | None = None
) -> tuple[Path, BatchView]:
    """Do what is not yet done of a batch, and write its page; gives the page and what became of the items.

    Raises ParameterError or StoreError for what is wrong with the batch itself, before anything is run, StoreError
    where another process runs it, and KeyboardInterrupt when stopped.
    """
    check(batch)
    return _work(held_batch(batch, results=results, anew=anew), results, execute or in_a_kernel)


def resume_batch(path: Path, *, execute: Execute | None = None) -> tuple[Path, BatchView]:
    """The same for a batch that was begun, by its directory."""
    path = path.resolve()
    check(BatchDirectory(path).batch)
    return _work(held_again(path), path.parent, execute or in_a_kernel)


def _work(
    holding: AbstractContextManager[BatchDirectory], results: Path, execute: Execute
) -> tuple[Path, BatchView]:  # fmt: skip
    with holding as directory:
        directory.finish("running")
        planned = plan_batch(directory.batch, directory=directory, results=results)
        try:
            _do(planned, directory, results, execute)
        except KeyboardInterrupt:
            command = f"python -m mountlab batch --resume {store.shown(directory.path)}"
            raise KeyboardInterrupt(f"go on with: {command}", *_page_so_far(directory)) from None
        finally:
            left = unfinished(directory.batch, directory.outcomes)
            directory.finish("unfinished" if left else "complete")
        return write_page(directory)


def _page_so_far(directory: BatchDirectory) -> list[str]:
    """A line with the page of a batch that was stopped; none where it cannot be made, or Ctrl-C is pressed again."""
    try:
        directory.finish("unfinished")
        page, _ = write_page(directory)
    except (KeyboardInterrupt, MountlabError):
        return []
    return [f"report so far: {store.shown(page)}"]


def check(batch: Batch) -> None:
    """Raise ParameterError or StoreError for an item that names what is not there, or what its notebook cannot take."""
    for item in batch.items:
        path = sweep_path(item)
        notebook_parameters(item, takes=parameters_of(notebook_path(item)), sweep_file=str(path) if path else None)
        if path:
            store.load_sweep(path, item.overrides)
        if item.box:
            store.load_box(item.box)


# ── the plan ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def plan(file: Path | None, begun: Path | None) -> tuple[Batch, list[Planned]]:
    """The batch of a file, or of a directory, and what is to be done for it."""
    directory = BatchDirectory(begun.resolve()) if begun else None
    batch = directory.batch if directory else load_batch(file or Path())
    check(batch)
    results = directory.path.parent if directory else store.RESULTS
    return batch, plan_batch(batch, directory=directory, results=results)


def plan_batch(
    batch: Batch, *, directory: BatchDirectory | None = None, results: Path = store.RESULTS
) -> list[Planned]:
    """What is still to be done, and how long it takes. Connects to the boxes and changes nothing."""
    todo = unfinished(batch, directory.outcomes) if directory else batch.items
    items = tqdm(todo, desc="planning", bar_format=_PLANNING, file=sys.stderr, leave=False, delay=1.0)
    return [_planned(item, directory, results) for item in items]


def _planned(item: Item, directory: BatchDirectory | None, results: Path) -> Planned:
    path = sweep_path(item)
    if path is None or "box" not in parameters_of(notebook_path(item)):
        return Planned(item)
    before = directory.run_of(item, results) if directory else None
    if before and store.read_info(before)["status"] == "complete":
        return Planned(item, note=f"measured: {before.name}; only its report")
    resolved = store.load_sweep(path, item.overrides)
    try:
        with workflow.planned(resolved, box=item.box, results=results) as session:
            trials = [trial for trial in session.plan.trials if not trial.skip]
            expected_s = session.plan.expected_s
    except MountlabError as error:
        return Planned(item, problem=str(error), error=type(error).__name__)
    done = len(store.read_journal(before)) if before else 0
    share = 1 - done / max(len(trials), done, 1)
    note = f"goes on with {before.name}: {done} of {len(trials)} trials are done" if before else ""
    return Planned(item, expected_s * share + NOTEBOOK_S, len(trials), note)


# ── the work ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def _do(planned: Sequence[Planned], directory: BatchDirectory, results: Path, execute: Execute) -> None:
    with Progress(planned, directory, results) as progress:
        for each in planned:
            progress.begin(each.item)
            if each.problem:
                outcome = _cannot(each)
            else:
                outcome = execute(Job(each.item, directory, results, progress.tick))
            directory.record(outcome)
            progress.end(each.item, outcome)
            if outcome.error == KeepError.__name__:  # nor would the disk take what the next ones measure
                raise KeepError(
                    "the batch stops: what it measures cannot be written any more",
                    where=f"{each.item.id} {each.item.label}", got=errors.in_one_line(outcome.reason),
                    next_step=f"make room; then: python -m mountlab batch --resume {store.shown(directory.path)}",
                )  # fmt: skip


def _cannot(planned: Planned) -> Outcome:
    """The outcome of an item that its box cannot do: left out where the batch file says so."""
    return Outcome(
        item=planned.item.id, state="left out" if planned.item.optional else "failed", ended_at=now(), elapsed_s=0.0,
        reason=planned.problem, error=planned.error,
    )  # fmt: skip


def in_a_kernel(job: Job) -> Outcome:
    """An item's notebook in a kernel of its own, on this machine, one at a time.

    To work on several boxes at once is to give `run_batch` another function like this one.
    """
    start = time.monotonic()
    before = job.directory.run_of(job.item, job.results)
    stopped, problem = _attempt(job, before)
    run = job.directory.run_of(job.item, job.results)
    kept = job.directory.executed(job.item)
    failed = kept.with_name(f"{kept.stem}.failed.ipynb")
    notebook = failed if problem else kept
    outcome = Outcome(
        item=job.item.id, state="failed" if problem else "done", ended_at=now(),
        elapsed_s=round(time.monotonic() - start, 1), run=run.name if run else "",
        notebook=f"notebooks/{notebook.name}" if notebook.exists() else "", page=_page(job, run, problem),
        **(_reason(problem) if problem else {}),
    )  # fmt: skip
    if stopped or outcome.error == "KeyboardInterrupt":
        ended = replace(outcome, state="stopped", reason="stopped by Ctrl-C") if problem else outcome
        job.directory.record(ended)
        raise KeyboardInterrupt
    return outcome


def _attempt(job: Job, before: Path | None) -> tuple[bool, MountlabError | None]:
    """Whether Ctrl-C was pressed meanwhile, and what went wrong."""
    try:
        if before and store.read_info(before)["status"] == "complete":
            report.write_report(before)
            return False, None
        with ThreadPoolExecutor(1) as pool:
            kernels = Kernels({store.BATCH: job.directory.mark(job.item), "MOUNTLAB_RESULTS": str(job.results)})
            future = pool.submit(_execute, job, before, kernels)
            stopped = _wait(future, kernels, job.tick)
        problem = future.exception()
        if problem is None or isinstance(problem, MountlabError):
            return stopped, problem
        raise problem
    except MountlabError as error:
        return False, error


def _execute(job: Job, before: Path | None, kernels: Kernels) -> None:
    """The notebook that does what is left: all of it, or the rest of a run. Raises MountlabError."""
    path = sweep_path(job.item)
    notebook = RESUME if before else notebook_path(job.item)
    parameters = (
        {"run": str(before)}
        if before
        else notebook_parameters(job.item, takes=parameters_of(notebook), sweep_file=str(path) if path else None)
    )
    with own_loop():
        report.execute(notebook, job.directory.executed(job.item), parameters, kernels=kernels, limit_s=LIMIT_S)


def _wait(future: Future[None], kernels: Kernels, tick: Callable[[], None]) -> bool:
    """Until the notebook is done; gives whether Ctrl-C was pressed meanwhile.

    It interrupts the running cell once, as the button in JupyterLab does, and a kernel that is not yet up as soon as it
    is: the cell undoes what is on the box, and that is waited for.
    """
    pressed = told = False
    while True:
        try:
            if pressed and not told:
                told = kernels.interrupt()
            if wait([future], timeout=TICK_S).done:
                return pressed
            tick()
        except KeyboardInterrupt:
            pressed = True


def _reason(problem: MountlabError) -> dict[str, str]:
    """What was raised in the notebook, where a cell of it failed: its class, and its text without a traceback."""
    cause = problem.__cause__
    name, text = getattr(cause, "ename", ""), getattr(cause, "evalue", "")
    return {"error": name or type(problem).__name__, "reason": f"{text}" if name and text else str(problem)}


def _page(job: Job, run: Path | None, problem: MountlabError | None) -> str:
    """The page of an item, from the directory of the batch: the report of its run, or its notebook as a page."""
    if run:
        return f"../{run.name}/report.html" if (run / "report.html").exists() else ""
    if problem:
        return ""
    page = report.export(job.directory.executed(job.item), title=job.item.label)
    return job.directory.write_item_page(job.item, page)


def write_page(directory: BatchDirectory) -> tuple[Path, BatchView]:
    """report.html of a batch, by a notebook like every report, and its entry for the index of results."""
    directory.keep(across=everywhere.write_pages(directory))
    view = read_view(directory.path)
    executed = directory.path / "notebooks" / PAGE.name
    report.execute(PAGE, executed, {"batch": str(directory.path)})
    page = report.export(executed, title=view.batch.title, kind="batch")
    written = directory.write_page(page, batch_view.entry(view))
    report.refresh_index(directory.path.parent, make=True)
    return written, view


def exit_code(view: BatchView) -> int:
    """What the shell is told of a batch."""
    classes = [each for each in vars(errors).values() if isinstance(each, type) and issubclass(each, MountlabError)]
    return batch_view.exit_code(view, {each.__name__: each.exit_code for each in classes})


# ── progress ─────────────────────────────────────────────────────────────────────────────────────────────────────────

_PLANNING = "{desc} |{bar}| {n_fmt}/{total_fmt} items"
_FORMAT = "{desc} |{bar}| {n_fmt}/{total_fmt} items, {elapsed} elapsed{postfix}"


class Progress:
    """A bar on standard error over all items, with the trials of the running one and the time that is left."""

    def __init__(self, planned: Sequence[Planned], directory: BatchDirectory, results: Path) -> None:
        self._ahead, self._directory, self._results = Ahead(planned), directory, results
        self._running: Item | None = None
        self._run: Path | None = None
        self._began = time.monotonic()
        self._trials = {each.item.id: each.trials for each in planned}
        self._failed = 0
        # In a log each refresh would be a line of its own: there a line for each item is enough.
        self._live = sys.stderr.isatty()
        pause_s = 0.2 if self._live else 3600.0
        self._bar: Any = tqdm(total=len(planned), bar_format=_FORMAT, file=sys.stderr, mininterval=pause_s, leave=True)

    def begin(self, item: Item) -> None:
        self._running, self._run, self._began = item, None, time.monotonic()
        if not self._live:
            left = words_left(self._ahead.seconds())
            self._bar.write(f"{item.id}: {item.label}; {left}", file=sys.stderr)
        self.tick()

    def tick(self) -> None:
        if not self._live or self._running is None:
            return
        running_s = time.monotonic() - self._began
        left = words_left(self._ahead.seconds(running_s=running_s, running=self._running.id))
        failed = f", {self._failed} failed" if self._failed else ""
        self._bar.set_description_str(f"{self._running.id}{self._done()}", refresh=False)
        self._bar.set_postfix_str(f"{left}{failed}", refresh=True)

    def _done(self) -> str:
        """How many trials of the running item are done; its run is looked for until it is there."""
        total = self._trials.get(self._running.id, 0) if self._running else 0
        if total and self._running:
            self._run = self._run or self._directory.run_of(self._running, self._results)
        return f", {len(store.read_journal(self._run))}/{total} trials" if total and self._run else ""

    def end(self, item: Item, outcome: Outcome) -> None:
        self._ahead.end(item.id, outcome.elapsed_s)
        if outcome.state != "done":
            self._failed += outcome.state == "failed"
            line = errors.in_one_line(outcome.reason)
            self._bar.write(f"{outcome.state}: {item.id} {item.label}: {line}", file=sys.stderr)
        self._bar.update(1)

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()


def words_left(seconds: float) -> str:
    """'about 02:10 left'."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    return f"about {minutes:02d}:{rest:02d} left"
