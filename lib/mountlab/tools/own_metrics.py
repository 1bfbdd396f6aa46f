"""Metrics that a sweep defines: a name, what it is counted in, and which way of it is better."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import get_args

from mountlab.core.errors import ParameterError
from mountlab.core.metrics import METRICS, Better, Metric, known_metric
from mountlab.core.model import COLUMNS
from mountlab.core.options import unknown_key
from mountlab.core.units import SIZE_UNITS, TIME_UNITS, base_unit

BETTER: tuple[Better, ...] = get_args(Better)
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}\Z")
_UNIT = re.compile(r"[A-Za-z°µ%][A-Za-z0-9°µ%/*^._-]{0,19}\Z")
_KNOWN_UNITS = {unit.lower(): unit for unit in (*SIZE_UNITS, *TIME_UNITS)}
_WRITTEN = {
    "s": ("sec", "secs", "second", "seconds"), "ms": ("msec", "msecs", "millis"),
    "us": ("usec", "usecs", "µs", "micros"), "ns": ("nsec", "nsecs"), "B": ("byte", "bytes"), "kB or KiB": ("k", "kb"),
    "MB or MiB": ("m", "mb"), "GB or GiB": ("g", "gb"), "%": ("percent",), "B/s": ("bps",), "kB/s": ("kbps",),
    "MB/s": ("mbps",), "GB/s": ("gbps",),
}  # fmt: skip
_SPELLINGS = {word: unit for unit, words in _WRITTEN.items() for word in words}
"""What people write for units that Mountlab knows by another name, in small letters."""
_EXAMPLE = "such as ms, MB/s, 1/s, MiB, 1 or %; or one of your own, such as W, tpmC or requests"


def read_metric(name: str, entry: Mapping[str, str], *, unit: str, where: str) -> Metric:
    """Return the metric of an entry: one of METRICS, or what the entry defines. `unit`: in which it is printed.

    Raises ParameterError for a name, a direction or a unit that cannot be.
    """
    better = entry.get("better")
    if name in METRICS:
        if better is not None and better != known_metric(name).better:
            raise ParameterError(
                f"{name} is a metric of Mountlab, whose direction is known",
                where=f"{where}.better",
                got=repr(better),
                allowed=f"{known_metric(name).better}, or nothing",
                next_step="give a metric of your own another name",
            )
        return known_metric(name)
    if better is None:
        error = unknown_key(name, METRICS, where=where, what="metric")
        error.next_step += f". To define a metric of your own, add unit, and better: {', '.join(BETTER)}"
        raise error
    if not is_metric_name(name):
        what = "not a name for a metric" if name not in COLUMNS else "a table has a column of this name"
        raise ParameterError(what, where=where, got=repr(name), allowed=METRIC_NAME)
    if better not in BETTER:
        raise unknown_key(better, list(BETTER), where=f"{where}.better", what="direction")
    return Metric(_find_base(unit, f"{where}.unit"), better)


def defined(workload: object) -> dict[str, Metric]:
    """Return the metrics that a workload defines, as a run keeps it; none where that is something else."""
    metrics = workload.get("metrics") if isinstance(workload, Mapping) else None
    entries = metrics.items() if isinstance(metrics, Mapping) else ()
    metrics_defined: dict[str, Metric] = {}
    for key, entry in entries:
        name = str(key).partition("/")[0]
        better = entry.get("better") if isinstance(entry, Mapping) else None
        if name not in METRICS and better in BETTER:
            unit = str(entry.get("unit", "s"))
            metrics_defined[name] = Metric((base_unit(unit) or (unit,))[0], better)
    return metrics_defined


METRIC_NAME = "small letters, digits and '_', a letter first, 40 characters at most"


def is_metric_name(name: str) -> bool:
    """Return whether a metric may have this name: no column of a table has it."""
    return bool(_NAME.match(name)) and name not in COLUMNS


def _find_base(unit: str, where: str) -> str:
    """Return the base unit of a unit; one that Mountlab does not know is its own."""
    known_base = base_unit(unit)
    if known_base:
        return known_base[0]
    if not unit or not _UNIT.match(unit):
        raise ParameterError(
            "a metric of your own needs a unit", where=where, got=repr(unit) if unit else "nothing", allowed=_EXAMPLE
        )
    meant = "/".join(_find_meant(part) for part in unit.split("/"))
    if any(_is_spelling(part) for part in unit.split("/")):
        raise ParameterError(
            "a unit that Mountlab knows by another name",
            where=where,
            got=repr(unit),
            allowed=_EXAMPLE,
            next_step=f"write {meant}: other spellings are read differently by different people",
        )
    return unit


def _is_spelling(part: str) -> bool:
    low = part.lower()
    return part not in (*SIZE_UNITS, *TIME_UNITS) and (low in _SPELLINGS or low in _KNOWN_UNITS)


def _find_meant(part: str) -> str:
    return (_SPELLINGS.get(part.lower()) or _KNOWN_UNITS.get(part.lower(), part)) if _is_spelling(part) else part
