"""The `exclude` of a sweep file: cells taken out, by file system, workload and options; and what must be left."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from mountlab.core.conditions import BESIDE, STATE
from mountlab.core.errors import ParameterError
from mountlab.core.model import Cell, Filesystem, Sweep, Workload
from mountlab.core.names import cell_id
from mountlab.core.options import Option, OptionValue, unknown_key
from mountlab.core.units import format_bytes
from mountlab.programs import TOOLS
from mountlab.sweep.workload_entry import (
    Level,
    Raw,
    beside_levels,
    check_level,
    check_looks,
    matches_nothing,
    option_of,
    read_combinations,
    read_levels,
)


def read_exclusions(
    entries: list[Raw] | None,
    filesystems: Sequence[Filesystem],
    workloads: Sequence[Workload],
    where: str,
    *,
    absent: Collection[str] = (),
) -> tuple[str, ...]:
    """Return ids of the cells that the sweep's `exclude` takes out, and those that are `absent` without it, in the
    order of the sweep. Raises ParameterError for an entry that matches nothing, and where nothing is left of a file
    system or of a workload."""
    combinations = [Cell(filesystem=fs, workload=workload) for fs in filesystems for workload in workloads]
    cells = [cell for cell in combinations if cell.id not in absent]
    excluded: set[str] = set()
    check_looks(len(read_combinations(entries, where)) * len(cells), where)
    for number, entry in enumerate(read_combinations(entries, where)):
        excluded |= _excluded(entry, cells, f"{where}[{number}]")
    rest = [cell for cell in cells if cell.id not in excluded]
    names = {"file system": [fs.name for fs in filesystems], "workload": [w.label for w in workloads]}
    used = {"file system": {cell.filesystem.name for cell in rest}, "workload": {cell.workload.label for cell in rest}}
    for what, names_of in names.items():
        empty = [name for name in names_of if name not in used[what]]
        if empty:
            raise ParameterError(
                f"no cell of a {what} is left",
                where=where,
                got=", ".join(empty),
                allowed="at least one cell of each",
                next_step=f"remove the {what}, or an exclusion",
            )
    return tuple(cell.id for cell in combinations if cell.id in excluded or cell.id in absent)


def check_compared(sweep: Sweep, where: str) -> None:
    """Raise ParameterError where exclusions leave nothing to compare with the baseline."""
    others = [fs.name for fs in sweep.filesystems if fs.name != sweep.baseline]
    shared = [
        workload.label
        for workload in sweep.workloads
        if sweep.has_cell(cell_id(sweep.baseline or "", workload.label))
        and any(sweep.has_cell(cell_id(name, workload.label)) for name in others)
    ]
    if sweep.baseline is not None and others and not shared:
        raise ParameterError(
            "the baseline shares no workload with another file system",
            where=where,
            got=f"baseline {sweep.baseline}",
            allowed="a workload that the baseline and another file system both have",
            next_step="remove an exclusion, or the baseline",
        )


def _excluded(entry: Raw, cells: Sequence[Cell], where: str) -> set[str]:
    """Return ids of the cells that an entry matches. A workload may be given by its name, or as in the id of a cell."""
    filesystems = dict.fromkeys(cell.filesystem.name for cell in cells)
    workloads = dict.fromkeys(name for cell in cells for name in (cell.workload.name, cell.workload.label))
    wanted = _names(entry.get("filesystem"), filesystems, "file system", f"{where}.filesystem")
    named = _names(entry.get("workload"), workloads, "workload", f"{where}.workload")
    matched = [
        cell for cell in cells if cell.filesystem.name in wanted and {cell.workload.name, cell.workload.label} & named
    ]
    having = {cell.workload.label: cell.workload for cell in matched}
    for key, raw in entry.items():
        if key not in ("filesystem", "workload"):
            holding = _option_matches(key, raw, having, where)
            matched = [cell for cell in matched if cell.workload.label in holding]
    if not matched:
        raise matches_nothing(entry, where, "each of these values occurs, but never together")
    return {cell.id for cell in matched}


def _names(raw: object, known: Mapping[str, None], what: str, where: str) -> set[str]:
    """Return the names that an entry gives; all of them where it gives none."""
    if raw is None:
        return set(known)
    names: list[Any] = raw if isinstance(raw, list) else [raw]
    for name in names:
        if name not in known:
            raise unknown_key(name, dict(known), where=where, what=what)
    return set(names)


def _option_matches(key: str, raw: Any, workloads: Mapping[str, Workload], where: str) -> Collection[str]:
    """Return labels of the workloads in which an option, swept or not, has this value, or one of these."""
    if key in (STATE, BESIDE) and any(key in workload.factors for workload in workloads.values()):
        return _condition_matches(key, raw, workloads, where)
    having = {label: workload for label, workload in workloads.items() if key in workload.options}
    if not having:
        given = dict.fromkeys(option for workload in workloads.values() for option in workload.factors)
        raise unknown_key(key, ["filesystem", "workload", *given], where=f"{where}.{key}", what="factor of these cells")
    labels: set[str] = set()
    present: dict[str, Level] = {}
    for label, workload in having.items():
        option = option_of(TOOLS[workload.tool], key, where)
        named = read_levels(raw if isinstance(raw, list) else [raw], option, f"{where}.{key}")
        level_here = _level_of(workload, key, option)
        present[level_here.read.label] = level_here
        labels |= {label} if any(level_here.same(level) for level in named) else set()
    for level in named:
        check_level(level, present.values(), f"{where}.{key}")
    return labels


def _condition_matches(key: str, raw: Any, workloads: Mapping[str, Workload], where: str) -> Collection[str]:
    """Return labels of the workloads that run in one of these states, or beside one of these neighbours."""
    values = raw if isinstance(raw, list) else [raw]
    wanted = (
        [str(value) for value in values] if key == STATE else [level.read.label for level in beside_levels(raw, where)]
    )
    present = {workload.factors[key] for workload in workloads.values() if key in workload.factors}
    for value in wanted:
        if value not in present:
            raise unknown_key(value, sorted(present), where=f"{where}.{key}", what=f"level of {key} here")
    return {label for label, workload in workloads.items() if workload.factors.get(key) in wanted}


def _level_of(workload: Workload, key: str, option: Option) -> Level:
    """Return the value that a workload has for an option, as a level."""
    value = workload.options[key]
    shown = format_bytes(value) if option.kind == "size" and isinstance(value, int) else str(value)
    return Level(value, OptionValue(value, workload.factors.get(key, shown)))
