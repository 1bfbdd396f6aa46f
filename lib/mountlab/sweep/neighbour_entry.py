"""`neighbours` of a sweep file: what may run while a workload is measured, strictly."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from mountlab.core.conditions import ALONE, BESIDE, SAME_PLACE, TOGETHER, NeighbourPlace
from mountlab.core.errors import ParameterError
from mountlab.core.model import Neighbour, Scalar, Workload
from mountlab.core.options import unknown_key
from mountlab.core.units import GIB, MIB, parse_bytes, parse_percent
from mountlab.programs import TOOLS
from mountlab.sweep.workload_entry import BOX_NAME, DESIGN_KEYS, read_workloads

WHERE, LIMITS = "where", "limits"
_SAME, _PLACES = "same", ("filesystem", "client")


class KnownLimit(NamedTuple):
    """A limit of a neighbour's cgroup (kernel: admin-guide/cgroup-v2.rst)."""

    kind: Literal["number", "size", "percent"]
    modest: int
    """A value, as the kernel takes it, that every kernel takes which has the limit."""
    range: tuple[int, int] = (1, 10**9)
    """Of a number."""


_WEIGHT = (1, 10_000)
LIMITS_KNOWN: dict[str, KnownLimit] = {
    "io_weight": KnownLimit("number", 100, _WEIGHT),
    "io_max_read": KnownLimit("size", MIB),
    "io_max_write": KnownLimit("size", MIB),
    "io_max_read_iops": KnownLimit("number", 100),
    "io_max_write_iops": KnownLimit("number", 100),
    "cpu_weight": KnownLimit("number", 100, _WEIGHT),
    "cpu_max": KnownLimit("percent", 100_000),
    "memory_high": KnownLimit("size", GIB),
    "memory_max": KnownLimit("size", GIB),
}
CPU_PERIOD_US = 100_000
"""The period over which `cpu_max` is kept, in microseconds: the kernel's own."""

NEIGHBOUR_KEYS: dict[str, str] = {
    WHERE: f"Where it runs: `{_SAME}`, the file system under test, which holds where nothing is said; "
    "`{filesystem: NAME}`, another one of the sweep, which is mounted meanwhile; `{client: BOX}`, another box that "
    "sees the file system under test (nfs, or dir with `path`).",
    LIMITS: "Limits of its cgroup (v2, or v1 where it has the like): `io_weight`, `cpu_weight` (1 to 10000; 100 is the "
    "usual), `io_max_read`, `io_max_write` (bytes per second: 50MiB), `io_max_read_iops`, `io_max_write_iops`, "
    "`cpu_max` (of one processor: 50%), `memory_high`, `memory_max`. One that the box cannot set is an error of "
    "the plan.",
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
    if place.client and (of_device := [limit for limit in limits if limit.startswith("io_")]):
        raise ParameterError(
            "a client has no block device below the file system, which limits of io need",
            where=f"{where}.{LIMITS}.{of_device[0]}",
            got=f"{WHERE}: {{client: {place.client}}}",
            allowed="limits of cpu and memory; or a rate, where the tool has one",
        )
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
        return SAME_PLACE
    if isinstance(raw, dict) and len(raw) == 1 and {*raw} <= {*_PLACES}:
        ((kind, name),) = raw.items()
        if kind == "filesystem" and name not in filesystems:
            raise unknown_key(name, [*filesystems], where=f"{where}.{kind}", what="file system")
        if kind == "client":
            if not (isinstance(name, str) and BOX_NAME.fullmatch(name)):
                raise ParameterError(
                    "a client is a box", where=f"{where}.{kind}", got=repr(name), allowed="a name of params/boxes/*.yml"
                )
            return NeighbourPlace("client", name)
        return NeighbourPlace("filesystem", name)
    raise ParameterError(
        "not a place for a neighbour",
        where=where,
        got=repr(raw),
        allowed=f"{_SAME}, {{filesystem: NAME}} or {{client: BOX}}",
    )


def _limits(raw: object, where: str) -> dict[str, Scalar]:
    if not isinstance(raw, dict):
        raise ParameterError("limits have names", where=where, got=repr(raw), allowed="{io_weight: 50}")
    for key in raw:
        if key not in LIMITS_KNOWN:
            raise unknown_key(key, [*LIMITS_KNOWN], where=f"{where}.{key}", what="limit")
    return {key: _limit(key, value, f"{where}.{key}") for key, value in raw.items()}


def _limit(key: str, value: object, where: str) -> Scalar:
    """Return a limit as the kernel takes it; of `cpu_max` the microseconds of each period."""
    kind, _, (low, high) = LIMITS_KNOWN[key]
    if kind == "size":
        return parse_bytes(value, where=where)
    if kind == "percent":
        return max(1000, round(parse_percent(value, where=where) * CPU_PERIOD_US))
    if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
        return value
    raise ParameterError("not a limit", where=where, got=repr(value), allowed=f"a whole number, {low} to {high}")


def check_beside(workloads: Iterable[Workload], neighbours: Mapping[str, Neighbour], where: str) -> None:
    """Raise ParameterError for a workload beside a neighbour that there is none of. `where` names the section of the
    workloads."""
    for workload in workloads:
        for name in workload.beside:
            if name not in neighbours:
                place = f"{where}.{workload.name}.{BESIDE}"
                raise unknown_key(name, [ALONE, *neighbours], where=place, what="neighbour")
