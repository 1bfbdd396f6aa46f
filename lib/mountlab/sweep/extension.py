"""What may be added to a finished run: blocks, file systems and workloads. What was measured stays as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any

from mountlab.core.errors import ParameterError
from mountlab.core.model import Extension, Sweep
from mountlab.core.numbers import counted
from mountlab.core.safe_yaml import Raw
from mountlab.sweep.sweep_file import Resolved, resolve

_MAY_GROW = ("filesystems", "workloads", "excluded")
_OF_THE_RUN = ("name", "box", "boxes", "design", "left_out", "extended", "imported")
"""Parts of a sweep that are compared by themselves, or that the run keeps."""
_MAY_DIFFER = ("repeats", "seed", "explain")
"""Of the design: blocks are added, and the run keeps its seed and its diagnostic blocks."""
_NOTHING = "nothing"


def extended(before: Resolved, asked: Resolved, *, at: str, only_new: bool, where: str) -> Resolved:
    """Return the sweep of a run with the blocks and the cells that `asked` has beyond it.

    Without more `repeats`, new cells get as many blocks as the run was begun with. Raises ParameterError for anything
    else that differs, with the key and both values, and where nothing is added.
    """
    _check_rule(before.sweep, where)
    changed = list(_changed(before.sweep, asked.sweep))
    if changed:
        raise _refusal(before.parameters, asked.parameters, changed, where)
    new = [cell.id for cell in asked.sweep.cells if cell.id not in {each.id for each in before.sweep.cells}]
    blocks = _blocks(before.sweep, asked.sweep, new, only_new=only_new, where=where)
    design = {**(asked.parameters.get("design") or {}), "repeats": blocks}
    design = {**design, "explain": before.sweep.design.explain} if before.sweep.design.explain else design
    kept: Raw = {key: before.parameters[key] for key in ("name", "box") if key in before.parameters}
    made = resolve({**asked.parameters, **kept, "design": design}, where=where, kept=True)
    return Resolved(continued(before.sweep, made.sweep, at=at, only_new=only_new), made.parameters)


def continued(before: Sweep, after: Sweep, *, at: str, only_new: bool) -> Sweep:
    """Return a sweep that goes on where another one ended."""
    return replace(after, left_out=before.left_out, extended=Extension(before=before, at=at, only_new=only_new))


def _check_rule(before: Sweep, where: str) -> None:
    if before.searches:
        raise ParameterError(
            "a search for a capacity is not extended: it says itself when it ends",
            where=f"{where}: workloads",
            got="capacity",
            allowed="a run with design.repeats",
            next_step="begin a new run with a smaller capacity.half_width, or with a larger capacity.max_trials",
        )
    if before.design.until is not None:
        raise ParameterError(
            "a run with a stopping rule is not extended: its rule says when it ends",
            where=f"{where}: design.until",
            got="design.until",
            allowed="a run with design.repeats",
            next_step="begin a new run with a smaller half_width, or with a larger max",
        )


def _blocks(before: Sweep, asked: Sweep, new: list[str], *, only_new: bool, where: str) -> int:
    """Return how many counted blocks the run is to have in all."""
    has, wanted = before.design.repeats, asked.design.repeats
    if only_new and not new:
        raise ParameterError("only new cells are asked for, and there are none", where=where, got="no new cell")
    if wanted > has:
        return wanted
    if new:
        return has + before.stages[0].counted.stop - 1
    raise ParameterError(
        "nothing is added to the run",
        where=where,
        got=f"repeats: {wanted}, and the same cells",
        allowed=f"repeats above {has}, or new file systems or workloads",
        next_step=f"-p repeats={has + before.stages[0].counted.stop - 1}: the run has {counted(has, 'block')}",
    )


def _changed(before: Sweep, asked: Sweep) -> Iterator[str]:
    """Yield the places of the parameters where the sweep asked for is another one, apart from what it adds."""
    for field in fields(Sweep):
        same = getattr(before, field.name) == getattr(asked, field.name)
        if field.name not in (*_MAY_GROW, *_OF_THE_RUN) and not same:
            yield "expectation" if field.name == "expected" else field.name
    for field in fields(before.design):
        same = getattr(before.design, field.name) == getattr(asked.design, field.name)
        if field.name not in _MAY_DIFFER and not same:
            yield f"design.{field.name.removesuffix('_s')}"
    filesystems = {fs.name: fs for fs in asked.filesystems}
    yield from (f"filesystems.{fs.name}" for fs in before.filesystems if filesystems.get(fs.name) != fs)
    workloads = {each.label: each for each in asked.workloads}
    yield from (f"workloads.{each.name}" for each in before.workloads if workloads.get(each.label) != each)
    known = [cell.id for cell in before.cells]
    if known != [cell.id for cell in asked.cells if cell.id in set(known)]:
        yield "exclude"


def _refusal(before: Raw, asked: Raw, changed: list[str], where: str) -> ParameterError:
    places = tuple(dict.fromkeys(changed))
    old, new = _flat(before), _flat(asked)
    differing = [key for key in {**old, **new} if old.get(key, _NOTHING) != new.get(key, _NOTHING)]
    keys = [key for key in differing if key.startswith(places)] or list(places)
    return ParameterError(
        "an extension only adds: what was measured cannot be changed",
        where=f"{where}: {', '.join(keys)}",
        got="; ".join(f"{key}: {new.get(key, _NOTHING)}" for key in keys),
        allowed="; ".join(f"{key}: {old.get(key, _NOTHING)}" for key in keys),
        next_step="add a file system or a workload under a new name, or begin a new run: mountlab run",
    )


def _flat(parameters: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """'workloads.r.bs' to its value."""
    found: dict[str, Any] = {}
    for key, value in parameters.items():
        place = f"{above}{key}"
        found |= _flat(value, f"{place}.") if isinstance(value, Mapping) else {place: value}
    return found
