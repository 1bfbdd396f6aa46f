"""What a worker does for a batch, and how it knows that it is the right one: it must see the very same files.

A worker needs Mountlab in the version that begins the batch, the results directory of the batch at the same path (a
disk that both share), and the same box files, sweeps and notebooks. Nothing is sent back but how it ended: what is
measured lies in that directory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from importlib import metadata
from pathlib import Path

from mountlab.batch.batch_file import Item, ItemOutcome, on_box
from mountlab.batch.item import ItemAttempt, attempt
from mountlab.batch.plan import planned
from mountlab.batch.queue import Task
from mountlab.batch.store import BatchDirectory, notebook_path, now, sweep_path
from mountlab.batch.view import Planned
from mountlab.core.errors import MountlabError
from mountlab.core.places import WORKSPACE
from mountlab.results import paths

StopRequested = Callable[[], bool]


@dataclass(frozen=True)
class Session:
    """What has to be the same wherever the items of a batch are done."""

    batch: Path
    token: str
    """Of this session, in batch.json: a copy of the directory has an old one."""
    version: str
    items: tuple[Item, ...]
    boxes: tuple[str, ...]
    digests: Mapping[str, str]
    """What a file is to the digest of its content."""


def session_of(directory: BatchDirectory, items: Iterable[Item], boxes: Iterable[str]) -> Session:
    """Return the session as this process sees it."""
    names, batch_items = tuple(sorted(set(boxes))), tuple(items)
    token, version = str(directory.document.get("session", "")), metadata.version("mountlab")
    return Session(directory.path, token, version, batch_items, names, digests(batch_items, names))


def located(item: Item) -> Item:
    """Return the item with paths that do not depend on the current directory: below the workspace, or absolute."""

    def anywhere(path: Path) -> str:
        return str(path.relative_to(WORKSPACE) if path.is_relative_to(WORKSPACE) else path.absolute())

    sweep, notebook = sweep_path(item), notebook_path(item)
    if sweep and sweep != paths.params_file(paths.SWEEPS, sweep.stem):
        item = replace(item, sweep=anywhere(sweep))
    if notebook != paths.notebook_path(notebook.stem):
        item = replace(item, notebook=anywhere(notebook).removesuffix(".ipynb"))
    return item


def digests(items: Iterable[Item], boxes: Iterable[str]) -> dict[str, str]:
    """Return digests of the boxes, sweeps and notebooks of a batch, as this machine has them; '' for one that it has
    not."""
    files = {f"params/boxes/{box}.yml": paths.params_file(paths.BOXES, box) for box in boxes}
    for item in items:
        if sweep := sweep_path(item):
            files[str(item.sweep)] = sweep
        name = f"{item.notebook}.ipynb"
        try:
            files[name] = notebook_path(item)
        except MountlabError:
            files[name] = Path(name)
    sums = dict.fromkeys(files, "")
    for name, path in files.items():
        with suppress(OSError):
            sums[name] = sha256(path.read_bytes()).hexdigest()
    return sums


def unfit(session: Session) -> str:
    """Return why this process cannot work for a session; '' where it can."""
    version = metadata.version("mountlab")
    if version != session.version:
        return f"it has Mountlab {version}, and the batch was begun with {session.version}"
    try:
        directory = BatchDirectory(session.batch)
    except MountlabError:
        return f"it does not see {session.batch}: the workers of a batch share its results directory, at the same path"
    if directory.document.get("session") != session.token:
        return f"{session.batch} is not the same directory there: another session wrote to it"
    if not os.access(session.batch.parent, os.W_OK):
        return f"it may not write to {session.batch.parent}"
    here = digests(session.items, session.boxes)
    other = next((name for name, digest in session.digests.items() if here.get(name) != digest), None)
    return f"its {other} is absent or not the same" if other else ""


# ── the work ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def work_of(task: Task, session: Session, results: Path) -> Callable[[StopRequested], list[Planned] | ItemOutcome]:
    """Return what a worker is to do for a task; it can be sent."""
    if task.planning:
        return partial(plan_for, task, session.batch, results)
    return partial(do, task, session.batch, results)


def plan_for(task: Task, batch: Path, results: Path, is_stop_requested: StopRequested) -> list[Planned]:
    """Return each item of a task, planned for its box."""
    directory = BatchDirectory(batch)
    return [planned(item, directory, results) for item in task.items if not is_stop_requested()]


def do(task: Task, batch: Path, results: Path, is_stop_requested: StopRequested) -> ItemOutcome:
    """Return one item, done on its box. One that had no box before is planned first: not each of several can do it."""
    directory, item = BatchDirectory(batch), on_box(task.item, task.box)
    if is_stop_requested():
        return ItemOutcome(item.id, "stopped", now(), 0.0, reason="stopped by Ctrl-C")
    if task.item.pool and (plan := planned(item, directory, results)).problem:
        return ItemOutcome(item.id, "failed", now(), 0.0, reason=plan.problem, error=plan.error, box=task.box)
    outcome, _ = attempt(ItemAttempt(item, directory, results, is_stop_requested=is_stop_requested))
    return replace(outcome, box=task.box) if task.item.pool else outcome
