"""Batch files: YAML text to the items of a batch, strictly. Notebooks x sweeps x boxes x overrides: a list is a factor,
and each combination is one item."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, Field, StringConstraints

from mountlab.core.errors import ParameterError
from mountlab.core.groups import by_key
from mountlab.core.options import unknown_key
from mountlab.sweep.box_file import LABEL
from mountlab.sweep.untrusted import check_plain
from mountlab.sweep.validated import File, validated

SWEEP_NOTEBOOK = "10_run_sweep"
"""The notebook of an item that names none."""
_GROUP_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}\Z")
_OURS = ("sweep_file", "box", "overrides")
"""Parameters of notebooks that have keys of their own in a batch file."""
POOL = "label:"
"""Before the name of a label, in the place of a box: any of the boxes with that label."""

ItemState = Literal["done", "failed", "left out", "stopped"]
Text = Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
_one_is_a_list = BeforeValidator(lambda value: [value] if isinstance(value, str | dict) else value)


class GroupFile(File):
    """One entry of `groups`: each combination of its lists is an item."""

    notebook: Annotated[list[Text], _one_is_a_list] = Field([SWEEP_NOTEBOOK])
    """Which notebooks are executed: names of `notebooks/`, or paths."""
    sweep: Annotated[list[Text], _one_is_a_list] | None = None
    """For the notebook that runs one: names of `params/sweeps`, or paths."""
    box: Annotated[list[Text], _one_is_a_list] | None = None
    """Names of `params/boxes`, or `label:NAME` for whichever box with that label is free. Without it the sweep's own
    box."""
    overrides: Annotated[list[dict[str, Any]], _one_is_a_list] | None = None
    """Changes of the sweep, a mapping for each variant: `[{preset: small}, {preset: small, repeats: 10}]`."""
    parameters: dict[str, Any] | None = None
    """Parameters of the notebook itself."""
    optional: bool = False
    """Whether what a box cannot do is left out with the reason; otherwise it has failed."""


class BatchFile(File):
    """A file of params/batches/."""

    sections: ClassVar[dict[str, type[BaseModel]]] = {"groups": GroupFile}
    title: Text
    """Of the page on all of it."""
    groups: Annotated[dict[str, GroupFile], Field(min_length=1)]
    """A name of yours for each group. Each combination of the lists in it is one item."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """One notebook, executed once: with a sweep on a box, or with whatever parameters it has."""

    id: str
    """Names it in its batch: '03-ramdisk-local'."""
    group: str
    notebook: str
    sweep: str | None = None
    box: str | None = None
    """None: the sweep's own. 'label:NAME': any box with that label."""
    overrides: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    optional: bool = False
    """Whether it is left out, with the reason, where its box cannot do it; otherwise that is a failure."""

    @property
    def pool(self) -> str:
        """The label of the boxes to choose from; '' where it has a box of its own, or none."""
        return (self.box or "").removeprefix(POOL) if (self.box or "").startswith(POOL) else ""

    @property
    def label(self) -> str:
        """'ramdisk on local, preset=small' for people."""
        where = f" on {self.box}" if self.box else ""
        changes = [f"{key}={_shown(value)}" for key, value in {**self.overrides, **self.parameters}.items()]
        return ", ".join([f"{_stem(self.sweep or self.notebook)}{where}", *changes])


@dataclass(frozen=True, kw_only=True)
class Batch:
    """A title and what is to be done for it, in this order."""

    name: str
    title: str
    items: tuple[Item, ...]


@dataclass(frozen=True)
class ItemOutcome:
    """How the last attempt at an item ended, as the journal of a batch keeps it."""

    item: str
    state: ItemState
    ended_at: str
    elapsed_s: float
    run: str = ""
    """The id of its run, where it made one; finished or not."""
    reason: str = ""
    error: str = ""
    """The name of the error's class."""
    notebook: str = ""
    """The executed notebook, below the directory of the batch; of a failure the one with the failed cell."""
    page: str = ""
    """Its page, from the directory of the batch."""
    box: str = ""
    """Where it was done, of an item that any box with a label may do."""


def parse_batch(raw: Mapping[str, Any], *, name: str, where: str) -> Batch:
    """Return the batch of a file's mapping. Raises ParameterError for the first thing that is wrong."""
    check_plain([name], where)  # results/batch-NAME-... gets it
    file = validated(BatchFile, raw, where)
    for group in file.groups:
        if not _GROUP_NAME.match(group):
            raise ParameterError(
                "a name may hold letters, digits, '_', '.' and '-'", where=f"{where}: groups", got=repr(group)
            )
    items = [item for key, group in file.groups.items() for item in _items_of(key, group, f"{where}: groups.{key}")]
    seen: dict[str, str] = {}
    for item in items:
        text = _shown({key: getattr(item, key) for key in ("notebook", "sweep", "box", "overrides", "parameters")})
        if text in seen:
            raise ParameterError(
                "the same item is there twice",
                where=f"{where}: groups.{item.group}",
                got=text,
                allowed=f"once: groups.{seen[text]} has it",
                next_step="more repeats are a key of the sweep",
            )
        seen[text] = item.group
    return Batch(name=name, title=file.title, items=_numbered(items))


def _items_of(key: str, group: GroupFile, where: str) -> Iterator[Item]:
    """Yield the items of a group, which have no ids yet. Raises ParameterError."""
    parameters = group.parameters or {}
    for name in _OURS:
        if name in parameters:
            raise ParameterError(
                "this parameter has a key of its own",
                where=f"{where}.parameters.{name}",
                got=repr(parameters[name]),
                allowed=f"{name.removesuffix('_file')}: ..., beside `parameters`",
            )
    if group.sweep is None and group.overrides is not None:
        raise ParameterError(
            "overrides change a sweep, and none is named",
            where=f"{where}.overrides",
            got=_shown(group.overrides),
            allowed="sweep: NAME, or parameters for a notebook without a sweep",
        )
    if group.sweep is None and SWEEP_NOTEBOOK in group.notebook:
        raise ParameterError("a key is missing", where=f"{where}.sweep", got="nothing", allowed="sweep: NAME or a list")
    for name in ("notebook", "sweep", "box", "overrides"):
        if getattr(group, name) == []:
            what = "an empty list makes no item"
            raise ParameterError(what, where=f"{where}.{name}", got="[]", allowed="one or more")
    for box in group.box or []:
        if box.startswith(POOL) and not LABEL.fullmatch(box.removeprefix(POOL)):
            raise ParameterError(
                "not a label of boxes", where=f"{where}.box", got=repr(box), allowed=f"{POOL}NAME, as box files have it"
            )
    nothing = [None]
    levels = (group.notebook, group.sweep or nothing, group.box or nothing, group.overrides or nothing)
    for notebook, sweep, box, overrides in product(*levels):
        yield Item(
            id="",
            group=key,
            notebook=notebook.removesuffix(".ipynb"),
            sweep=sweep,
            box=box,
            overrides=overrides or {},
            parameters=parameters,
            optional=group.optional,
        )


def _numbered(items: Iterable[Item]) -> tuple[Item, ...]:
    """Return items with ids, by their places in the batch: '03-ramdisk-local'."""
    numbered = []
    for number, item in enumerate(items, start=1):
        name = "-".join(_stem(word) for word in (item.sweep or item.notebook, item.box) if word)
        numbered.append(replace(item, id=f"{number:02d}-{re.sub(r'[^A-Za-z0-9_.-]+', '_', name)[:60]}"))
    return tuple(numbered)


def _stem(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".yml").removesuffix(".ipynb")


def _shown(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, default=str)


def on_each_box(batch: Batch, boxes_of: Callable[[Item], Sequence[str]]) -> Batch:
    """Return the batch with an item for each box of a sweep that names several, which `boxes_of` tells."""
    items = []
    for item in batch.items:
        boxes = boxes_of(item) if item.sweep and not item.box else ()
        items += [replace(item, box=box) for box in boxes] or [item]
    return batch if len(items) == len(batch.items) else replace(batch, items=_numbered(items))


def over_boxes(items: Sequence[Item]) -> list[tuple[Item, ...]]:
    """Return items that are one and the same but for their box: of two or more each, in the order of the batch."""

    groups = by_key(
        (_shown((item.notebook, item.sweep, item.overrides, item.parameters)), item)
        for item in items
        if item.box and item.sweep and not item.pool
    )
    return [tuple(group) for group in groups.values() if len(group) > 1]


def notebook_parameters(item: Item, *, takes: Sequence[str], sweep_file: str | None) -> dict[str, Any]:
    """Return what the item's notebook is executed with. `takes`: the names of its parameters.

    Raises ParameterError for one that it does not have, where papermill would only warn.
    """
    given = {"sweep_file": sweep_file, "box": item.box, "overrides": dict(item.overrides) or None, **item.parameters}
    parameters = {name: value for name, value in given.items() if value is not None}
    for name in parameters:
        if name not in takes:
            where = f"groups.{item.group}, notebook {item.notebook}"
            raise unknown_key(name, list(takes), where=where, what="parameter of this notebook")
    return parameters


def on_box(item: Item, box: str) -> Item:
    """Return the item as it is done on a box: of those that any box with a label may do, on this one."""
    return replace(item, box=box) if item.pool else item


def unfinished(batch: Batch, outcomes: Mapping[str, ItemOutcome]) -> tuple[Item, ...]:
    """Return the items that are still to be done: not begun, stopped, or failed. One that was left out is done with."""
    finished = {name for name, outcome in outcomes.items() if outcome.state in ("done", "left out")}
    return tuple(item for item in batch.items if item.id not in finished)
