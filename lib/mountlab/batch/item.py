"""One item of a batch: its notebook in a kernel of its own, on this machine. Resumes an interrupted item."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path

from mountlab.batch.batch_file import Item, ItemOutcome
from mountlab.batch.plan import parameters_for
from mountlab.batch.store import BatchDirectory, notebook_path, now
from mountlab.core.errors import MountlabError
from mountlab.report import execute
from mountlab.report.kernels import Kernels
from mountlab.results import info, paths, writer

RESUME = paths.NOTEBOOKS / "10_run_sweep.ipynb"
LIMIT_S = 30 * 24 * 3600
"""A cell of a batch's notebook may measure for weeks; each of its trials has a limit of its own."""
TICK_S = 1.0


@dataclass(frozen=True)
class ItemAttempt:
    """One item on its way to an outcome."""

    item: Item
    directory: BatchDirectory
    results: Path
    tick: Callable[[], None] = lambda: None
    """Called each second while it runs."""
    asked: Callable[[], bool] = lambda: False
    """Whether it was asked to stop, from wherever."""


Execute = Callable[[ItemAttempt], ItemOutcome]
"""Does one item. Raises KeyboardInterrupt when stopped; whatever else goes wrong is in the outcome."""


def in_a_kernel(job: ItemAttempt) -> ItemOutcome:
    """Do an item here and now, and record it where Ctrl-C was pressed meanwhile: then it raises KeyboardInterrupt."""
    outcome, stopped = attempt(job)
    if stopped:
        job.directory.record(outcome)
        raise KeyboardInterrupt
    return outcome


def attempt(job: ItemAttempt) -> tuple[ItemOutcome, bool]:
    """Return the outcome of an item, and whether it was stopped; writes no journal, so that any process may do it."""
    start = time.monotonic()
    before = job.directory.run_of(job.item, job.results)
    pressed, problem = _attempt(job, before)
    run = job.directory.run_of(job.item, job.results)
    kept = job.directory.executed(job.item)
    failed = kept.with_name(f"{kept.stem}.failed.ipynb")
    notebook = failed if problem else kept
    outcome = ItemOutcome(
        item=job.item.id,
        state="failed" if problem else "done",
        ended_at=now(),
        elapsed_s=round(time.monotonic() - start, 1),
        run=run.name if run else "",
        notebook=f"notebooks/{notebook.name}" if notebook.exists() else "",
        page=_page(job, run, problem),
        **(_reason(problem) if problem else {}),
    )
    stopped = pressed or outcome.error == "KeyboardInterrupt"
    ended = replace(outcome, state="stopped", reason="stopped by Ctrl-C") if stopped and problem else outcome
    return ended, stopped


def _attempt(job: ItemAttempt, before: Path | None) -> tuple[bool, MountlabError | None]:
    """Return whether it was to stop meanwhile, and what went wrong."""
    try:
        if before and info.read_info(before).status == "complete":
            execute.write_report(before)
            return False, None
        with ThreadPoolExecutor(1) as pool:
            # The kernel knows which item it is, and has the directories of this process.
            directories = {"MOUNTLAB_RESULTS": str(job.results), "MOUNTLAB_PARAMS": str(paths.PARAMS)}
            kernels = Kernels({writer.BATCH: job.directory.mark(job.item), **directories})
            future = pool.submit(_execute, job, before, kernels)
            stopped = _wait(future, kernels, job)
        problem = future.exception()
        if problem is None or isinstance(problem, MountlabError):
            return stopped, problem
        raise problem
    except MountlabError as error:
        return False, error


def _execute(job: ItemAttempt, before: Path | None, kernels: Kernels) -> None:
    """The notebook that does what is left: all of it, or the rest of a run. Raises MountlabError."""
    if before:
        notebook, parameters = RESUME, {"run": str(before)}
    else:
        notebook, parameters = notebook_path(job.item), parameters_for(job.item)
    execute.execute(notebook, job.directory.executed(job.item), parameters, kernels=kernels, limit_s=LIMIT_S)


def _wait(future: Future[None], kernels: Kernels, job: ItemAttempt) -> bool:
    """Until the notebook is done; gives whether it was to stop meanwhile.

    A stop interrupts the running cell once, as the button in JupyterLab does, and a kernel that is not yet up as soon
    as it is: the cell undoes what is on the box, and that is waited for.
    """
    pressed = stopping = False
    while True:
        try:
            pressed = pressed or job.asked()
            if pressed and not stopping:
                stopping = kernels.interrupt()
            if wait([future], timeout=TICK_S).done:
                return pressed
            job.tick()
        except KeyboardInterrupt:
            pressed = True


def _reason(problem: MountlabError) -> dict[str, str]:
    """Return what was raised in the notebook, where a cell of it failed: its class, and its text without a
    traceback."""
    cause = problem.__cause__
    name, text = getattr(cause, "ename", ""), getattr(cause, "evalue", "")
    return {"error": name or type(problem).__name__, "reason": f"{text}" if name and text else str(problem)}


def _page(job: ItemAttempt, run: Path | None, problem: MountlabError | None) -> str:
    """Return the page of an item, from the directory of the batch: the report of its run, or its notebook as a page."""
    if run:
        return f"../{run.name}/report.html" if (run / "report.html").exists() else ""
    if problem:
        return ""
    page = execute.export(job.directory.executed(job.item), title=job.item.label)
    return job.directory.write_item_page(job.item, page)
