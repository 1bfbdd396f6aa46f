"""`vdevs` of a file system in a sweep file: what a pool of ZFS makes of its devices, strictly."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mountlab.core.errors import ParameterError
from mountlab.core.options import unknown_key
from mountlab.core.vdev import Vdev
from mountlab.filesystems.vdevs import KINDS, USES

_EXAMPLE = "such as vdevs: [{mirror: [a, b]}, {mirror: [c, d]}, {log: [e]}]"


def read_vdevs(entries: Sequence[Any], where: str) -> tuple[Vdev, ...]:
    """Return the parts of a pool in the order of the sweep. Raises ParameterError for the first thing that is wrong."""
    return tuple(_read(entry, f"{where}[{at}]") for at, entry in enumerate(entries))


def _read(entry: Any, where: str) -> Vdev:
    if not isinstance(entry, Mapping):
        return Vdev("stripe", _members(entry, where))
    if len(entry) != 1:
        got = ", ".join(map(str, entry)) or "nothing"
        raise _wrong("each entry of vdevs is one part of the pool", where, got, "one key an entry")
    ((name, below),) = entry.items()
    if name in KINDS:
        return Vdev(str(name), _members(below, f"{where}.{name}"))
    if name not in USES:
        raise unknown_key(name, [*KINDS, *USES], where=where, what="part of a pool")
    if not isinstance(below, Mapping):
        return Vdev("stripe", _members(below, f"{where}.{name}"), str(name))
    if len(below) != 1 or (kind := next(iter(below))) not in USES[name]:
        got, allowed = ", ".join(map(str, below)) or "nothing", ", ".join(USES[name]) or "a list of devices"
        raise _wrong(f"not what {name} can lie on", f"{where}.{name}", got, allowed)
    return Vdev(str(kind), _members(below[kind], f"{where}.{name}.{kind}"), str(name))


def _members(raw: Any, where: str) -> tuple[str, ...]:
    fits = isinstance(raw, list) and raw and all(isinstance(each, (str, int)) for each in raw)
    if not fits or any(isinstance(each, bool) for each in raw):
        raise _wrong("a part of a pool lists its devices", where, repr(raw), "a list of names or numbers: [a, b]")
    return tuple(map(str, raw))


def _wrong(what: str, where: str, got: str, allowed: str) -> ParameterError:
    return ParameterError(what, where=where, got=got, allowed=allowed, next_step=_EXAMPLE)
