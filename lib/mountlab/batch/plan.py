"""What is still to be done of a batch: on which boxes, and how long it takes. Connects to boxes, changes nothing."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tqdm import tqdm

from mountlab.batch.batch_file import Batch, Item, notebook_parameters, on_box, unfinished
from mountlab.batch.queue import Queue, machine_of
from mountlab.batch.store import BatchDirectory, notebook_path, parameters_of, sweep_path, takes_box
from mountlab.batch.view import NOTEBOOK_S, Planned
from mountlab.core.errors import MountlabError, StoreError
from mountlab.core.text import drawn_on
from mountlab.report import html
from mountlab.results import info, journal, paths
from mountlab.runner import workflow

DEFAULT_BOX = "local"
"""The box of a notebook that takes one, where neither the batch nor a sweep names it."""
UNREACHABLE = ("BoxError", "BoxLost", "HostKeyError")
"""The names of the errors that say that a box is not there, and may be so of another."""
_PLANNING = "{desc} |{bar}| {n_fmt}/{total_fmt} items"


def check(batch: Batch) -> None:
    """Raise ParameterError or StoreError for an item that names what is not there, or what its notebook cannot take."""
    for item in batch.items:
        parameters_for(item)
        if path := sweep_path(item):
            paths.load_sweep(path, item.overrides)
        for box in boxes_of(item) if item.box else ():
            paths.load_box(box)


def parameters_for(item: Item) -> dict[str, Any]:
    """Return what the notebook of an item is executed with. Raises ParameterError for a parameter that it does not
    have."""
    path = sweep_path(item)
    takes = parameters_of(notebook_path(item))
    return notebook_parameters(item, takes=takes, sweep_file=str(path) if path else None)


# ── where ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def boxes_of(item: Item) -> list[str]:
    """Return the boxes that may do an item; none where its notebook takes none."""
    if item.pool:
        return labelled(item)
    if not takes_box(item):
        return []
    path = sweep_path(item)
    return [item.box or (paths.load_sweep(path, item.overrides).sweep.box if path else DEFAULT_BOX)]


def labelled(item: Item) -> list[str]:
    """Return the boxes with the label that an item asks for. Raises StoreError where there are none."""
    boxes = [paths.load_box(name) for name in paths.box_names()]
    names = [box.name for box in boxes if box.label == item.pool]
    if not names:
        raise StoreError(
            "no box has this label",
            where=f"groups.{item.group}.box",
            got=item.pool,
            allowed=", ".join(sorted({box.label for box in boxes if box.label})) or "none has one",
            next_step=f"write `label: {item.pool}` into the files of the boxes, below params/boxes",
        )
    return names


@dataclass(frozen=True)
class Places:
    """Where the items of a batch may be done."""

    boxes: Mapping[str, Sequence[str]]
    """Item to boxes."""
    pinned: Mapping[str, str]
    """Item to the box that has its run."""
    machines: Mapping[str, str]
    """Box to its machine."""
    clients: Mapping[str, Sequence[str]]
    """Item to the boxes that drive the same file system, besides its own."""

    @property
    def names(self) -> list[str]:
        """The boxes on which items are done."""
        return list(dict.fromkeys(name for names in self.boxes.values() for name in names))

    @property
    def one_by_one(self) -> bool:
        """Whether no two items could be done at the same time: one machine has a part in all."""
        if any(len(boxes) > 1 for boxes in self.boxes.values()):
            return False
        needed = [
            {self.machines[box] for box in (*boxes, *self.clients.get(item, ()))}
            for item, boxes in self.boxes.items()
            if boxes
        ]
        return not needed or bool(set.intersection(*needed))

    def queue(self, items: Sequence[Item], *, at_once: int | None = None) -> Queue:
        """Return a queue in which these of the items wait."""
        return Queue(items, self.boxes, self.machines, pinned=self.pinned, clients=self.clients, at_once=at_once)


def places(items: Sequence[Item], *, directory: BatchDirectory | None, results: Path) -> Places:
    """Return where each item may be done; what has a run goes on where that is."""
    boxes = {item.id: boxes_of(item) for item in items}
    pinned = {item.id: box for item in items if directory and (box := directory.box_of(item, results))}
    for item in items:
        if item.id in pinned and item.pool and pinned[item.id] not in boxes[item.id]:
            boxes[item.id].append(pinned[item.id])
    clients = {item.id: item_clients for item in items if boxes[item.id] and (item_clients := _clients(item))}
    names = dict.fromkeys(name for several in (*boxes.values(), *clients.values()) for name in several)
    return Places(boxes, pinned, {name: machine_of(paths.load_box(name)) for name in names}, clients)


def _clients(item: Item) -> list[str]:
    path = sweep_path(item)
    return list(paths.load_sweep(path, item.overrides).sweep.clients) if path else []


# ── how long ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def plan_batch(
    batch: Batch, *, directory: BatchDirectory | None = None, results: Path = paths.RESULTS
) -> list[Planned]:
    """Return what is still to be done, and how long each item takes."""
    todo = unfinished(batch, directory.outcomes) if directory else batch.items
    items = tqdm(todo, desc="planning", bar_format=_PLANNING, file=drawn_on(sys.stderr), leave=False, delay=1.0)
    return [planned_anywhere(item, directory, results) for item in items]


def planned_anywhere(item: Item, directory: BatchDirectory | None, results: Path) -> Planned:
    """Return an item, planned for its box, or for the first of its boxes that can be reached."""
    if not item.pool:
        return planned(item, directory, results)
    last = Planned(item)
    for box in labelled(item):
        last = planned(on_box(item, box), directory, results)
        if last.error not in UNREACHABLE:
            break
    return replace(last, item=item)


def planned(item: Item, directory: BatchDirectory | None, results: Path) -> Planned:
    """Return an item, planned for its box; why that cannot do it is in the plan."""
    path = sweep_path(item)
    if path is None or not takes_box(item):
        return Planned(item)
    before = directory.run_of(item, results) if directory else None
    if before and info.read_info(before).status == "complete":
        return Planned(item, note=f"measured: {before.name}; only its report")
    resolved = paths.load_sweep(path, item.overrides)
    try:
        with workflow.planned(resolved, box=item.box, results=results) as session:
            trials = [trial for trial in session.plan.trials if not trial.skip_reason]
            expected_s = session.plan.expected_s
    except MountlabError as error:
        return Planned(item, problem=str(error), error=type(error).__name__)
    done = len(journal.read_journal(before)) if before else 0
    share = 1 - done / max(len(trials), done, 1)
    note = f"goes on with {before.name}: {done} of {len(trials)} trials are done" if before else ""
    return Planned(item, expected_s * share + NOTEBOOK_S, len(trials), note)


def places_table(batch: Batch) -> html.Html:
    """Return where each item of a batch may be done, for a notebook."""
    spots = places(batch.items, directory=None, results=paths.RESULTS)
    rows: list[list[html.Text]] = []
    for item in batch.items:
        boxes = spots.boxes[item.id]
        machines = ", ".join(dict.fromkeys(spots.machines[box] for box in boxes))
        rows.append([item.id, item.label, ", ".join(boxes) or "no box needed", machines])
    head = [html.Column(name) for name in ("Item", "What", "Boxes", "Machine")]
    return html.table(head, [html.Rows(rows)], caption="Where each item may be done")
