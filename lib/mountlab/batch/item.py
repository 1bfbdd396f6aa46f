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

RESUME = paths.notebook_path("10_run_sweep")
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
    is_stop_requested: Callable[[], bool] = lambda: False


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
    pressed, problem = _run_notebook(job)
    run = job.directory.run_of(job.item, job.results)
    executed = job.directory.executed(job.item)
    notebook = executed.with_name(f"{executed.stem}.failed.ipynb") if problem else executed
    outcome = ItemOutcome(
        item=job.item.id,
        state="failed" if problem else "done",
        ended_at=now(),
        elapsed_s=round(time.monotonic() - start, 1),
        run=run.name if run else "",
        notebook=f"notebooks/{notebook.name}" if notebook.exists() else "",
    )
    if problem:  # of a cell that failed the class and the text of what it raised, without its traceback
        name, text = getattr(problem.__cause__, "ename", ""), getattr(problem.__cause__, "evalue", "")
        reason = text if name and text else str(problem)
        outcome = replace(outcome, error=name or type(problem).__name__, reason=reason)
    if run:
        page = f"../{run.name}/report.html" if (run / "report.html").exists() else ""
        outcome = replace(outcome, page=page)
    elif not problem:
        exported = execute.export(executed, title=job.item.label)
        outcome = replace(outcome, page=job.directory.write_item_page(job.item, exported))
    stopped = pressed or outcome.error == "KeyboardInterrupt"
    if stopped and problem:
        outcome = replace(outcome, state="stopped", reason="stopped by Ctrl-C")
    return outcome, stopped


def _run_notebook(job: ItemAttempt) -> tuple[bool, MountlabError | None]:
    """Do what is left of an item: all of it, the rest of its run, or only the report. Return whether it was to stop
    meanwhile, and what went wrong."""
    run = job.directory.run_of(job.item, job.results)
    executed = job.directory.executed(job.item)
    try:
        if run and info.read_info(run).status == "complete":
            execute.write_report(run)
            return False, None
        # The kernel knows which item it is, and has the directories of this process.
        directories = {"MOUNTLAB_RESULTS": str(job.results), "MOUNTLAB_PARAMS": str(paths.PARAMS)}
        kernels = Kernels({writer.BATCH: job.directory.mark(job.item), **directories})

        def run_to_the_end() -> None:
            if run:
                notebook, parameters = RESUME, {"run": str(run)}
            else:
                notebook, parameters = notebook_path(job.item), parameters_for(job.item)
            execute.execute(notebook, executed, parameters, kernels=kernels, limit_s=LIMIT_S)

        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(run_to_the_end)
            stopped = _wait(future, kernels, job)
        problem = future.exception()
        if problem is None or isinstance(problem, MountlabError):
            return stopped, problem
        raise problem
    except MountlabError as error:
        return False, error


def _wait(future: Future[None], kernels: Kernels, job: ItemAttempt) -> bool:
    """Wait until the notebook is done, and return whether it was to stop meanwhile.

    A stop interrupts the running cell once, as the button in JupyterLab does, and a kernel that is not yet up as soon
    as it is: the cell undoes what is on the box, and that is waited for.
    """
    pressed = stopping = False
    while True:
        try:
            pressed = pressed or job.is_stop_requested()
            if pressed and not stopping:
                stopping = kernels.interrupt()
            if wait([future], timeout=TICK_S).done:
                return pressed
            job.tick()
        except KeyboardInterrupt:
            pressed = True
