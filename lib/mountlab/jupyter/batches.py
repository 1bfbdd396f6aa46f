"""A batch in a notebook: checked and run, or read again; and the parts of its page."""

from __future__ import annotations

from pathlib import Path

from mountlab.batch import commands, plan, store
from mountlab.batch.batch_file import Batch
from mountlab.batch.plan import places_table as places
from mountlab.batch.view import BatchView, again, answer, failures, items, left_out, over_boxes, published, title
from mountlab.jupyter.api import PageLink
from mountlab.results import paths

__all__ = [
    "again", "answer", "failures", "items", "left_out", "load", "over_boxes", "places", "published", "read", "run",
    "title",
]  # fmt: skip


def load(path: Path | str) -> Batch:
    """Return the batch of a YAML file, all of it checked. Raises ParameterError or StoreError."""
    batch = store.load_batch(path)
    plan.check(batch)
    return batch


def run(
    batch: Batch, *, new: bool = False, scheduler: str | None = None, at_once: int | None = None
) -> tuple[PageLink, BatchView]:
    """Run what is left of a batch, and return its page and what became of its items. `new` starts another one where an
    unfinished one of the same file could resume. Raises as `commands.run_batch` does."""
    page, view = commands.run_batch(batch, new=new, scheduler=scheduler, at_once=at_once)
    return PageLink(page), view


def read(path: Path | str | None = None) -> tuple[PageLink, BatchView]:
    """Return the page of a batch and what became of its items; None is the newest below results/. Raises StoreError."""
    directory = paths.locate(path or store.newest_batch()).resolve()
    return PageLink(directory / "report.html"), store.read_view(directory)
