"""`neighbours` of a sweep file: what may run while a workload is measured, strictly."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from mountlab.core.conditions import ALONE, BESIDE, TOGETHER
from mountlab.core.errors import ParameterError
from mountlab.core.model import Neighbour, NeighbourPlace, Scalar, Workload
from mountlab.core.options import unknown_key
from mountlab.sweep.workload_entry import DESIGN_KEYS, read_workloads
from mountlab.tools import TOOLS

WHERE, LIMITS = "where", "limits"
_SAME, _PLACES = "same", ("filesystem", "client")
LIMIT_RANGES: dict[str, tuple[int, int]] = {"io_weight": (1, 10_000), "cpu_weight": (1, 10_000)}
"""Limit of a neighbour's cgroup that is a whole number, to its range (kernel: admin-guide/cgroup-v2.rst)."""

NEIGHBOUR_KEYS: dict[str, str] = {
    WHERE: f"Where it runs: `{_SAME}`, the file system under test, which holds where nothing is said; "
    "`{filesystem: NAME}`, another one of the sweep; `{client: NAME}`, another box that sees the file system.",
    LIMITS: f"Limits of its cgroup: {', '.join(f'`{name}`' for name in LIMIT_RANGES)}.",
}
"""Keys of a neighbour beside those of its tool, and what they are for."""


def read_neighbours(
    entries: Mapping[str, Mapping[str, Any]], *, filesystems: Collection[str], where: str
) -> dict[str, Neighbour]:
    """Return the neighbours that a sweep file defines. `filesystems`: names of its file systems. Raises
    ParameterError."""
    return {name: _neighbour(name, dict(entry), filesystems, f"{where}.{name}") for name, entry in entries.items()}


def _neighbour(name: str, entry: dict[str, Any], filesystems: Collection[str], where: str) -> Neighbour:
    if name == ALONE or TOGETHER in name:
        raise ParameterError(
            "not a name for a neighbour",
            where=where,
            got=name,
            allowed=f"any but {ALONE}, which stands for none, and without {TOGETHER}",
        )
    place = _place(entry.pop(WHERE, _SAME), filesystems, f"{where}.{WHERE}")
    limits = _limits(entry.pop(LIMITS, {}), f"{where}.{LIMITS}")
    for key in entry:
        if key in DESIGN_KEYS:
            raise ParameterError(
                "a neighbour is not measured", where=f"{where}.{key}", got=key, allowed="its tool and options of that"
            )
        if isinstance(entry[key], list):
            raise ParameterError(
                "a neighbour has one value for each option",
                where=f"{where}.{key}",
                got=repr(entry[key]),
                allowed="one value",
                next_step=f"write a neighbour for each, and name both in `{BESIDE}`",
            )
    tool = TOOLS.get(str(entry.get("tool", "")))
    defaults = tool.neighbour_defaults if tool and "jobs" not in entry and "job_file" not in entry else {}
    (workload,) = read_workloads(name, {**defaults, **entry}, where)
    return Neighbour(name=name, workload=workload, place=place, limits=limits)


def _place(raw: object, filesystems: Collection[str], where: str) -> NeighbourPlace:
    if raw == _SAME:
        return NeighbourPlace()
    if isinstance(raw, dict) and len(raw) == 1 and {*raw} <= {*_PLACES}:
        ((kind, name),) = raw.items()
        if kind == "filesystem" and name not in filesystems:
            raise unknown_key(name, [*filesystems], where=f"{where}.{kind}", what="file system")
        if isinstance(name, str):
            return NeighbourPlace(kind, name)
    raise ParameterError(
        "not a place for a neighbour",
        where=where,
        got=repr(raw),
        allowed=f"{_SAME}, {{filesystem: NAME}} or {{client: NAME}}",
    )


def _limits(raw: object, where: str) -> dict[str, Scalar]:
    if not isinstance(raw, dict):
        raise ParameterError("limits have names", where=where, got=repr(raw), allowed="{io_weight: 50}")
    for key, value in raw.items():
        if key not in LIMIT_RANGES:
            raise unknown_key(key, [*LIMIT_RANGES], where=f"{where}.{key}", what="limit")
        low, high = LIMIT_RANGES[key]
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise ParameterError(
                "not a limit", where=f"{where}.{key}", got=repr(value), allowed=f"a whole number, {low} to {high}"
            )
    return dict(raw)


def check_beside(workloads: Iterable[Workload], neighbours: Mapping[str, Neighbour], where: str) -> None:
    """Raise ParameterError for a workload beside a neighbour that there is none of. `where` names the section of the
    workloads."""
    for workload in workloads:
        for name in workload.beside:
            if name not in neighbours:
                place = f"{where}.{workload.name}.{BESIDE}"
                raise unknown_key(name, [ALONE, *neighbours], where=place, what="neighbour")
