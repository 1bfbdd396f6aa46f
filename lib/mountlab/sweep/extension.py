"""What may be added to a finished run: blocks, file systems and workloads. What was measured stays as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace

from mountlab.core.errors import ParameterError
from mountlab.core.model import Extension, Sweep
from mountlab.core.numbers import counted
from mountlab.core.safe_yaml import Raw
from mountlab.sweep.sweep_file import Resolved, resolve

_MAY_GROW = ("filesystems", "workloads", "excluded", "promised")
_OF_THE_RUN = ("name", "box", "boxes", "design", "left_out", "extended", "imported")
"""Parts of a sweep that are compared by themselves, or that the run keeps."""
_MAY_DIFFER = ("repeats", "seed", "explain", "profile")
"""Keys of the design that may differ: blocks are added, and the run keeps its seed and its diagnostic blocks."""
_NOTHING = "nothing"


def extended(before: Resolved, requested: Resolved, *, at: str, only_new: bool, where: str) -> Resolved:
    """Return the sweep of a run with the blocks and the cells that `requested` has beyond it.

    Without more `repeats`, new cells get as many blocks as the run was begun with. Raises ParameterError for anything
    else that differs, with the key and both values, and where nothing is added.
    """
    _check_rule(before.sweep, where)
    changes = list(_changes(before.sweep, requested.sweep))
    if changes:
        raise _refusal(before.parameters, requested.parameters, changes, where)
    measured = {cell.id for cell in before.sweep.cells}
    new = [cell.id for cell in requested.sweep.cells if cell.id not in measured]
    blocks = _blocks(before.sweep, requested.sweep, new, only_new=only_new, where=where)
    design = {**(requested.parameters.get("design") or {}), "repeats": blocks}
    if before.sweep.design.explain:
        design["explain"] = before.sweep.design.explain
    if before.sweep.design.profile:
        design["profile"] = True
    names: Raw = {key: before.parameters[key] for key in ("name", "box") if key in before.parameters}
    resolved = resolve({**requested.parameters, **names, "design": design}, where=where, kept=True)
    return Resolved(continued(before.sweep, resolved.sweep, at=at, only_new=only_new), resolved.parameters)


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


def _blocks(before: Sweep, after: Sweep, new: list[str], *, only_new: bool, where: str) -> int:
    """Return the number of counted blocks that the extended run has in all."""
    present, requested = before.design.repeats, after.design.repeats
    if only_new and not new:
        raise ParameterError("only new cells are asked for, and there are none", where=where, got="no new cell")
    if requested > present:
        return requested
    if new:
        return present + before.stages[0].counted.stop - 1
    raise ParameterError(
        "nothing is added to the run",
        where=where,
        got=f"repeats: {requested}, and the same cells",
        allowed=f"repeats above {present}, or new file systems or workloads",
        next_step=f"-p repeats={present + before.stages[0].counted.stop - 1}: the run has {counted(present, 'block')}",
    )


def _changes(before: Sweep, after: Sweep) -> Iterator[str]:
    """Yield the keys of the parameters in which the requested sweep differs, apart from what it adds."""
    for name in (field.name for field in fields(Sweep) if field.name not in (*_MAY_GROW, *_OF_THE_RUN)):
        if getattr(before, name) != getattr(after, name):
            yield "expectation" if name == "expected" else name
    for name in (field.name for field in fields(before.design) if field.name not in _MAY_DIFFER):
        if getattr(before.design, name) != getattr(after.design, name):
            yield f"design.{name.removesuffix('_s')}"
    filesystems = {fs.name: fs for fs in after.filesystems}
    for fs in before.filesystems:
        if filesystems.get(fs.name) != fs or before.promised.get(fs.name) != after.promised.get(fs.name):
            yield f"filesystems.{fs.name}"
    workloads = {workload.label: workload for workload in after.workloads}
    for workload in before.workloads:
        if workloads.get(workload.label) != workload:
            yield f"workloads.{workload.name}"
    measured = [cell.id for cell in before.cells]
    if measured != [cell.id for cell in after.cells if cell.id in set(measured)]:
        yield "exclude"


def _refusal(before: Raw, after: Raw, changes: list[str], where: str) -> ParameterError:
    places = tuple(dict.fromkeys(changes))
    old, new = _flatten(before), _flatten(after)
    differing = [key for key in {**old, **new} if old.get(key, _NOTHING) != new.get(key, _NOTHING)]
    keys = [key for key in differing if key.startswith(places)] or list(places)
    return ParameterError(
        "an extension only adds: what was measured cannot be changed",
        where=f"{where}: {', '.join(keys)}",
        got="; ".join(f"{key}: {new.get(key, _NOTHING)}" for key in keys),
        allowed="; ".join(f"{key}: {old.get(key, _NOTHING)}" for key in keys),
        next_step="add a file system or a workload under a new name, or begin a new run: mountlab run",
    )


def _flatten(parameters: Mapping[str, object], above: str = "") -> dict[str, object]:
    """Flatten nested parameters: 'workloads.r.bs' to its value."""
    places: dict[str, object] = {}
    for key, value in parameters.items():
        place = f"{above}{key}"
        places |= _flatten(value, f"{place}.") if isinstance(value, Mapping) else {place: value}
    return places
