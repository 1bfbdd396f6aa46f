"""`mountlab batch`: notebooks x sweeps x boxes x overrides, and one page on all of them.

Items on one machine are done one after another, in the order of the file; several machines work at the same time. It
goes on after a failure; begun again, it goes on where it stopped: what is done stays, a run that was interrupted is
resumed, and of one that was measured only the report is made.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path

from mountlab.batch import boxes
from mountlab.batch.batch_file import Batch, unfinished
from mountlab.batch.item import Execute, ItemAttempt, in_a_kernel
from mountlab.batch.plan import check, places, plan_batch
from mountlab.batch.progress import Progress
from mountlab.batch.queue import makespan
from mountlab.batch.store import BatchDirectory, cannot, full_disk, held_again, held_batch, load_batch, read_view
from mountlab.batch.view import BatchView, Planned, entry
from mountlab.core import disk
from mountlab.core.errors import InputError, KeepError, MountlabError
from mountlab.core.extras import need
from mountlab.report import execute as report
from mountlab.results import paths

PAGE = paths.notebook_path("80_batch")


@dataclass(frozen=True)
class Ways:
    """How the items of a batch are done."""

    scheduler: str | None = None
    """The address of a dask.distributed scheduler; None: this process does all."""
    at_once: int | None = None
    """At most so many boxes at the same time; None: all."""
    execute: Execute | None = None
    """What does one item, one after another; None: a kernel for each."""

    def __post_init__(self) -> None:
        if self.at_once is not None and self.at_once < 1:
            what = "at least one box works at a time"
            raise InputError(what, where="--at-once", got=str(self.at_once), allowed="1 or more")


def run_batch(
    batch: Batch,
    *,
    results: Path = paths.RESULTS,
    new: bool = False,
    scheduler: str | None = None,
    at_once: int | None = None,
    execute: Execute | None = None,
) -> tuple[Path, BatchView]:
    """Do what is not yet done of a batch, and write its page; gives the page and what became of the items.

    Raises ParameterError or StoreError for what is wrong with the batch itself, before anything is run, StoreError
    where another process runs it, MissingExtra where several machines or a scheduler need dask, SchedulerError where
    the scheduler cannot be reached or none of its workers sees `results`, and KeyboardInterrupt when stopped.
    """
    check(batch)
    return _work(held_batch(batch, results=results, new=new), results, Ways(scheduler, at_once, execute))


def resume_batch(
    path: Path, *, scheduler: str | None = None, at_once: int | None = None, execute: Execute | None = None
) -> tuple[Path, BatchView]:
    """Go on with a batch that was begun, by its directory. Returns and raises as `run_batch` does."""
    path = path.resolve()
    check(BatchDirectory(path).batch)
    return _work(held_again(path), path.parent, Ways(scheduler, at_once, execute))


def _work(holding: AbstractContextManager[BatchDirectory], results: Path, ways: Ways) -> tuple[Path, BatchView]:
    with holding as directory:
        directory.begin()
        try:
            _do_items(directory, results, ways)
        except KeyboardInterrupt:
            pages = []
            with suppress(KeyboardInterrupt, MountlabError):  # it cannot be made, or Ctrl-C is pressed again
                directory.finish("unfinished")
                pages = [f"report so far: {disk.path_text(write_page(directory)[0])}"]
            raise KeyboardInterrupt(f"go on with: {directory.command}", *pages) from None
        finally:
            left = unfinished(directory.batch, directory.outcomes)
            directory.finish("unfinished" if left else "complete")
        return write_page(directory)


def _do_items(directory: BatchDirectory, results: Path, ways: Ways) -> None:
    """Do what is left. Only what can be done at the same time needs somebody who gives it out."""
    todo = unfinished(directory.batch, directory.outcomes)
    if ways.execute is None:
        spots = places(todo, directory=directory, results=results)
        if ways.scheduler or not spots.one_by_one or any(item.pool for item in todo):
            need("fleet", "work on several boxes at the same time")
            from mountlab.batch.many import do_many  # the scheduler's library takes a second to load

            do_many(todo, spots, directory, results, scheduler=ways.scheduler, at_once=ways.at_once)
            return
    execute = ways.execute or in_a_kernel
    planned_items = plan_batch(directory.batch, directory=directory, results=results)
    with Progress(planned_items, directory, results) as progress:
        for planned in planned_items:
            progress.begin(planned.item)
            attempt = ItemAttempt(planned.item, directory, results, progress.tick)
            outcome = cannot(planned) if planned.problem else execute(attempt)
            directory.record(outcome)
            progress.end(planned.item, outcome)
            if outcome.error == KeepError.__name__:
                raise full_disk(planned.item, outcome, directory)


def plan(file: Path | None, begun: Path | None) -> tuple[Batch, list[Planned], float]:
    """Return the batch of a file, or of a directory, what is to be done for it, and how many seconds that takes."""
    directory = BatchDirectory(begun.resolve()) if begun else None
    batch = directory.batch if directory else load_batch(file or Path())
    check(batch)
    results = directory.path.parent if directory else paths.RESULTS
    planned = plan_batch(batch, directory=directory, results=results)
    runnable = [row for row in planned if not row.problem]
    items, expected_s = [row.item for row in runnable], {row.item.id: row.expected_s for row in runnable}
    return batch, planned, makespan(places(items, directory=directory, results=results).queue(items), expected_s)


def write_page(directory: BatchDirectory) -> tuple[Path, BatchView]:
    """Write report.html of a batch, by a notebook like every report, and its entry for the index of results."""
    directory.keep(across=boxes.write_pages(directory))
    view = read_view(directory.path)
    executed = directory.path / "notebooks" / PAGE.name
    report.execute(PAGE, executed, {"batch": str(directory.path)})
    page = report.export(executed, title=view.batch.title, kind="batch")
    written = directory.write_page(page, entry(view))
    report.refresh_index(directory.path.parent, make=True)
    return written, view
