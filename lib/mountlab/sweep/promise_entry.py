"""What a sweep file says that the device of a file system is promised to do."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mountlab.core.errors import ParameterError
from mountlab.core.metrics import METRICS
from mountlab.core.model import Filesystem, Workload
from mountlab.core.options import unknown_key
from mountlab.core.promises import PROMISABLE, Promise
from mountlab.core.units import parse_bytes, parse_seconds
from mountlab.filesystems import FAMILIES
from mountlab.sweep.validated import check_choices

KEY = "promised"
_BY, _BURST = "by", "burst"
_EXAMPLE = "such as {read_iops: 3000, write_bandwidth: 125MiB, by: [random-read], burst: {read_iops: 16000}}"


def read_promises(
    entries: Mapping[str, Mapping[str, Any] | None],
    *,
    filesystems: Iterable[Filesystem],
    workloads: Sequence[Workload],
    where: str,
) -> dict[str, tuple[Promise, ...]]:
    """Return file system to the promises of its device, in the order of the entry; without those that have none. Raises
    ParameterError."""
    return {
        fs.name: _promises(entry, fs, workloads, f"{where}.{fs.name}.{KEY}")
        for fs in filesystems
        if (entry := entries[fs.name]) is not None
    }


def _promises(
    entry: Mapping[str, Any], fs: Filesystem, workloads: Sequence[Workload], where: str
) -> tuple[Promise, ...]:
    if FAMILIES[(fs.over or fs).type].in_memory:
        raise ParameterError(
            "a file system in memory has no device that could be promised anything",
            where=where,
            got=f"type: {(fs.over or fs).type}",
            allowed="a file system on a device",
            next_step=f"take `{KEY}` out",
        )
    for key in entry:
        if key not in (*PROMISABLE, _BY, _BURST):
            raise unknown_key(key, [*PROMISABLE, _BY, _BURST], where=f"{where}.{key}", what="promise")
    values = {metric: _value(metric, entry[metric], f"{where}.{metric}") for metric in entry if metric in METRICS}
    if not values:
        raise ParameterError("nothing is promised", where=where, got=repr(dict(entry)), allowed=_EXAMPLE)
    by = _by(entry.get(_BY), workloads, f"{where}.{_BY}")
    bursts = _bursts(entry.get(_BURST), values, f"{where}.{_BURST}")
    return tuple(Promise(metric=metric, value=values[metric], by=by, burst=bursts.get(metric)) for metric in values)


def _value(metric: str, raw: object, where: str) -> float:
    """Return a promised figure in base units: a bandwidth is a size, per second."""
    unit = METRICS[metric]
    if unit == "B/s":
        value = float(parse_bytes(raw.removesuffix("/s") if isinstance(raw, str) else raw, where=where))
    elif unit == "s":
        value = parse_seconds(raw, where=where)
    else:
        value = float(raw) if isinstance(raw, (int, float)) and not isinstance(raw, bool) else math.nan
    if not 0 < value < math.inf:
        allowed = {"B/s": "a size above zero, such as 125MiB", "s": "a time above zero, such as 2ms"}
        raise ParameterError(
            "wrong value for a promise",
            where=where,
            got=f"{raw!r} ({type(raw).__name__})",
            allowed=allowed.get(unit, "a number of I/Os per second above zero, such as 3000"),
        )
    return value


def _by(raw: object, workloads: Sequence[Workload], where: str) -> tuple[str, ...]:
    if raw is None:
        return ()
    names = {workload.name: workload for workload in workloads}
    if not isinstance(raw, list) or not raw:
        raise ParameterError(
            "wrong value for a list of workloads", where=where, got=repr(raw), allowed=f"[{', '.join(names)}]"
        )
    check_choices([str(name) for name in raw], names, where, "workload")
    return tuple(map(str, raw))


def _bursts(raw: object, values: Mapping[str, float], where: str) -> dict[str, float]:
    """Return the promised rates that have a burst figure, with it."""
    rates = [metric for metric in values if METRICS[metric] != "s"]
    if raw is None:
        return {}
    if not isinstance(raw, Mapping) or not raw:
        raise ParameterError("wrong value for a burst", where=where, got=repr(raw), allowed=_EXAMPLE)
    check_choices([str(metric) for metric in raw], dict.fromkeys(rates), where, "promised rate")
    bursts = {str(metric): _value(str(metric), value, f"{where}.{metric}") for metric, value in raw.items()}
    for metric, burst in bursts.items():
        if burst <= values[metric]:
            raise ParameterError(
                "wrong value for a burst: it is no more than what is promised",
                where=f"{where}.{metric}",
                got=repr(raw[metric]),
                allowed=f"more than {metric} itself",
                next_step="leave it out where the device has no burst",
            )
    return bursts
