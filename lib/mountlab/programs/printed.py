"""Figures in what a program printed: where each stands, by a pattern or a path into JSON, and what it is counted in."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mountlab.core.errors import ParameterError, ParseError
from mountlab.core.metrics import METRICS, Metric
from mountlab.core.model import Measurement, Scalar
from mountlab.core.options import unknown_key
from mountlab.core.resolution import last_digit
from mountlab.core.units import base_unit
from mountlab.tools import wall_clock
from mountlab.tools.base import ToolOutput
from mountlab.tools.own_metrics import read_metric

TIMED_OUT = 124
_NUMBER = re.compile(r"[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3})?\Z")
"""12, 12.5, .5, 5., 1e-3: what C, awk, bc and Python print."""
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:(,[0-9]{3})+\.[0-9]{1,30}|(,[0-9]{3}){2,10})\Z")
"""1,234.5 and 1,234,567: the commas cannot be decimal ones. 1,234 is 1234 to some programs and 1.234 to others."""
CLOCK = "clock"
"""In the place of a file: the box's own clock, before and after the command."""
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}\Z")
_CUT_BEFORE = re.compile(r"(?:\d|\d[.,]|(?<![^\s=:(])\.|\d[eE][+-]?|(?<!\w)[-\u2212])\Z")
_CUT_AFTER = re.compile(r"\d|[.,]\d|[eE][+-]?\d")
"""What stands beside a group that takes only a part of a number. The hyphen of a word (run-12) is no sign."""
_STEP = re.compile(r"\.([A-Za-z_][A-Za-z0-9_-]*)|\[(\d{1,9})\]|\[\"([^\"\]]+)\"\]")
"""One step of a path: .name, [3], ["any name"]."""
METRIC_KEYS = {"pattern", "json", "unit", "from", "all", "better"}
_ALL: dict[str, Callable[[Sequence[float]], float]] = {
    "sum": math.fsum,
    "mean": lambda values: math.fsum(values) / len(values),
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
}


@dataclass(frozen=True)
class Figure:
    """How one metric is found in what the command printed."""

    metric: str
    label: str
    pattern: re.Pattern[str]
    unit: str
    """'' where the group `unit` of the pattern finds it."""
    what: Metric
    source: str
    """stdout, stderr, the name of a file in the output directory, or CLOCK."""
    of_all: str = ""
    """What is made of several matches; '' where only one is right."""
    path: tuple[str | int, ...] = ()
    """Where it stands in a text in JSON, in the place of a pattern."""


def read_ok_status(options: Mapping[str, Scalar], where: str) -> list[int]:
    """Return the exit statuses that are no failure. Raises ParameterError."""
    words = str(options["ok_status"]).replace(",", " ").split()
    if not words or not all(re.fullmatch(r"\d{1,3}", word) and int(word) < TIMED_OUT for word in words):
        raise ParameterError(
            "not exit statuses",
            where=f"{where}.ok_status",
            got=repr(options["ok_status"]),
            allowed=f"0, or several as text: '0 3'; each below {TIMED_OUT}, where those of timeout and signals begin",
        )
    return [int(word) for word in words]


def read_figures(options: Mapping[str, Scalar], where: str) -> list[Figure]:
    """Return how each metric of a workload is found. Raises ParameterError, also for one that is given twice."""
    raw = json.loads(str(options["metrics"]))
    figures = [_read_figure(key, entry, f"{where}.metrics.{key}") for key, entry in raw.items()]
    seen = set[tuple[str, str]]()
    for figure in figures:
        name = (figure.metric, figure.label.strip())
        if name in seen:  # they would be counted as one, twice measured
            raise ParameterError(
                "a metric with one label is given twice",
                where=f"{where}.metrics",
                got=f"{figure.metric}/{figure.label}",
                allowed="each metric once, or with another label each time",
            )
        seen.add(name)
    return figures


def _read_figure(key: str, entry: Any, where: str) -> Figure:
    metric, slash, label = key.partition("/")
    if slash and not label.strip():
        raise ParameterError(
            "a label that is empty",
            where=where,
            got=repr(key),
            allowed="METRIC alone, or METRIC/LABEL",
            next_step=f"write {metric}",
        )
    _check_entry(entry, where)
    unit, source = entry.get("unit", ""), entry.get("from", "stdout")
    what = read_metric(metric, entry, unit=unit or ("s" if source == CLOCK else ""), where=where)
    if source == CLOCK:
        return _clock_figure(metric, label, entry, what, where)
    path = _read_path(entry["json"], where) if "json" in entry else ()
    pattern = re.compile("") if path else _read_pattern(entry, where)
    for key in ("pattern", "all") if path else ():
        if key in entry:
            raise ParameterError(
                f"a path into JSON finds one figure, without {key}",
                where=f"{where}.{key}",
                got=entry[key],
                allowed="json, unit, and if wanted from and better",
            )
    _check_unit(metric, what, unit, pattern, where)
    if not _FILE.match(source):
        raise ParameterError(
            "not a place where a figure can stand",
            where=f"{where}.from",
            got=repr(source),
            allowed=f"stdout, stderr, {CLOCK}, or the name of a file that the command writes into {{output}}",
        )
    if entry.get("all", "last") not in _ALL:
        raise unknown_key(entry["all"], list(_ALL), where=f"{where}.all", what="way to make one figure of several")
    return Figure(metric, label, pattern, unit, what, source, entry.get("all", ""), path)


def _clock_figure(metric: str, label: str, entry: Mapping[str, str], what: Metric, where: str) -> Figure:
    """Return how long the command takes."""
    for key in ("pattern", "all"):
        if key in entry:
            raise ParameterError(
                f"the clock has no {key}",
                where=f"{where}.{key}",
                got=entry[key],
                allowed=f"from: {CLOCK} alone",
                next_step="for a time that the program prints, leave `from` out",
            )
    if what.unit != "s":
        raise ParameterError(
            f"{metric} is no time",
            where=f"{where}.from",
            got=f"{CLOCK}, and unit {what.unit}",
            allowed="a metric in seconds, such as elapsed, or one of your own with better: lower",
        )
    return Figure(metric, label, re.compile(""), "s", what, CLOCK, "")


def _check_entry(entry: Any, where: str) -> None:
    """Raise ParameterError unless it is a mapping of known keys to texts."""
    if not isinstance(entry, dict) or not all(isinstance(value, str) for value in entry.values()):
        values = entry.items() if isinstance(entry, dict) else ()
        bare = [name for name, value in values if not isinstance(value, str)]
        raise ParameterError(
            "a metric is a mapping of texts",
            where=where,
            got=repr(entry),
            allowed=_KEYS,
            next_step=f"put the value of {bare[0]} in quotes: {bare[0]}: '{entry[bare[0]]}'" if bare else "",
        )
    for name in entry:
        if name not in METRIC_KEYS:
            raise unknown_key(name, sorted(METRIC_KEYS), where=where, what="key of a metric")


_KEYS = "pattern (a regular expression) or json (a path), unit, and if wanted from, all and better; or from: clock"


def _read_path(text: str, where: str) -> tuple[str | int, ...]:
    steps = list(_STEP.finditer(text, 1))
    if text[:1] != "$" or not steps or "".join(step[0] for step in steps) != text[1:]:
        raise ParameterError(
            "not a path into JSON",
            where=f"{where}.json",
            got=repr(text),
            allowed='such as $.jobs[0].write.iops, or $["a name"].mean',
        )
    return tuple(int(step[2]) if step[2] else step[1] or step[3] for step in steps)


def _read_pattern(entry: Mapping[str, str], where: str) -> re.Pattern[str]:
    try:
        pattern = re.compile(entry.get("pattern", ""), re.MULTILINE)
    except (re.error, OverflowError, RecursionError) as error:
        raise ParameterError(
            "not a regular expression",
            where=f"{where}.pattern",
            got=entry["pattern"],
            allowed=f"Python's kind ({error})",
        ) from error
    named = set(pattern.groupindex)
    if named not in ({"value"}, {"value", "unit"}) and (named or pattern.groups != 1):
        raise ParameterError(
            "a pattern needs one group around the number",
            where=f"{where}.pattern",
            got=repr(entry.get("pattern")),
            allowed="one group, or the named groups (?P<value>...) and, if it prints one, (?P<unit>...)",
        )
    return pattern


_UNITS = {
    "B/s": "B/s, kB/s, KiB/s, MB/s, MiB/s", "1/s": "1/s, 1/min", "s": "s, ms, us, ns", "B": "B, kB, KiB, MiB",
    "1": "1, %",
}  # fmt: skip


def _check_unit(metric: str, what: Metric, unit: str, pattern: re.Pattern[str], where: str) -> None:
    """Raise ParameterError for a unit of something else, and for one that is not needed. (Of a metric that the sweep
    defines the unit says what the metric is counted in, also where the pattern finds it.)"""
    finds_it = "unit" in pattern.groupindex
    if finds_it and (not unit or metric not in METRICS):
        return
    if finds_it or _find_factor(unit, what) is None:
        raise ParameterError(
            f"not a unit of {metric}",
            where=f"{where}.unit",
            got=repr(unit) if unit else "nothing",
            allowed=f"such as {_UNITS[what.unit]}; none where the group `unit` finds it",
            next_step="KB is 1000 B to some programs and 1024 B to others: write kB or KiB" if "K" in unit else "",
        )


def _find_factor(unit: str, what: Metric) -> float | None:
    """Return what one of a unit is in the metric's own; None where it is a unit of something else."""
    base, factor = base_unit(unit) or (unit, 1.0)
    return factor if base == what.unit else None


def measure(figure: Figure, output: ToolOutput) -> Measurement:
    """Return what the clock says, or the figure that stands in the output. Raises ParseError."""
    if figure.source == CLOCK:
        took, step = wall_clock.elapsed(output.files.get(wall_clock.FILE))
        return Measurement(metric=figure.metric, label=figure.label, value=took, unit="s", step=step)
    where = f"{figure.source}, {_place(figure)}"
    texts = {**output.files, "stdout": output.stdout, "stderr": output.stderr}
    text = texts.get(figure.source)
    if text is None:
        raise ParseError(f"{figure.metric} was not found", where=where, got="no such file", allowed="a match")
    found = [_in_json(figure, text, where)] if figure.path else _matches(figure, text, where)
    values, steps = zip(*found, strict=True)
    value = _ALL[figure.of_all or "first"](values)
    may_be_0 = figure.what.unit not in ("B/s", "1/s", "s", "B")
    if not math.isfinite(value) or value < 0 or (value == 0 and not may_be_0):
        raise ParseError(f"{figure.metric} cannot be this", where=where, got=f"{value:g}", allowed="a number above 0")
    # As if all were rounded the same way: those that are equal are.
    step = _ALL[figure.of_all or "first"](steps)
    return Measurement(metric=figure.metric, label=figure.label, value=value, unit=figure.what.unit, step=step)


def _place(figure: Figure) -> str:
    return f"path {_path_words(figure.path)}" if figure.path else f"pattern {figure.pattern.pattern!r}"


def _path_words(path: Sequence[str | int]) -> str:
    """Return '$["jobs"][0]'."""
    return "$" + "".join(f"[{json.dumps(step)}]" for step in path)


def _matches(figure: Figure, text: str, where: str) -> list[tuple[float, float]]:
    """Return the value and the step of each match. Raises ParseError for none, and for several that nothing sums up."""
    matches = list(figure.pattern.finditer(text))
    if not matches:
        got = text.strip()[-200:] or "nothing"
        raise ParseError(f"{figure.metric} was not found", where=where, got=got, allowed="a match")
    if len(matches) > 1 and not figure.of_all:
        raise ParseError(
            f"{figure.metric} was found more than once",
            where=where,
            got=f"{len(matches)} matches",
            allowed="one match",
            next_step=f"say what to make of them: all: {', '.join(_ALL)}",
        )
    return [_read_value(figure, match, where) for match in matches]


def _in_json(figure: Figure, text: str, where: str) -> tuple[float, float]:
    """Return the value at the path of a figure, and its step. Some programs print a note before their JSON."""
    begins = [at for sign in "{[" if (at := text.find(sign)) >= 0]
    try:
        place, _ = json.JSONDecoder(parse_float=str, parse_int=str).raw_decode(text[min(begins) :] if begins else text)
    except (ValueError, RecursionError) as error:
        raise ParseError(
            f"{figure.metric} was not found", where=where, got=text.strip()[-200:] or "nothing", allowed="JSON"
        ) from error
    for at, step in enumerate(figure.path):
        fits = isinstance(place, list) and step < len(place) if isinstance(step, int) else isinstance(place, dict)
        if not fits or (isinstance(place, dict) and step not in place):
            names = ", ".join(map(str, place)) if isinstance(place, dict) else f"{type(place).__name__}"
            raise ParseError(
                f"{figure.metric} was not found",
                where=where,
                got=f"no {step!r} below {_path_words(figure.path[:at])}",
                allowed=names[:200] or "nothing is there",
            )
        place = place[step]
    if not isinstance(place, str) or not _NUMBER.match(place):
        raise ParseError(f"{figure.metric} is not a number", where=where, got=repr(place)[:120], allowed="a number")
    factor = _find_factor(figure.unit, figure.what) or 1.0
    return float(place) * factor, last_digit(place) * factor


def _read_value(figure: Figure, match: re.Match[str], where: str) -> tuple[float, float]:
    """Return one match in base units, and what one in its last digit is worth."""
    group: str | int = "value" if "value" in figure.pattern.groupindex else 1
    text = match[group] or ""
    if not _NUMBER.match(text) and not _GROUPED.match(text):
        comma = re.fullmatch(r"[+-]?[0-9]+,[0-9]+", text)
        raise ParseError(
            f"{figure.metric} is not a number",
            where=where,
            got=repr(text),
            allowed="such as 12, 12.5, .5, 1e-3, 1,234.5 or 1,234,567",
            next_step=f"{text} may be a decimal or a thousands comma: have the program print without it (LC_ALL=C)"
            if comma
            else "",
        )
    _check_whole(figure, match, match.span(group), where)
    unit = (match["unit"] if "unit" in figure.pattern.groupindex else figure.unit) or ""
    factor = _find_factor(unit, figure.what)
    if factor is None:
        raise ParseError(f"not a unit of {figure.metric}", where=where, got=repr(unit), allowed=figure.what.unit)
    value = float(text.replace(",", "")) * factor
    if value < 0:
        raise ParseError(f"{figure.metric} cannot be negative", where=where, got=match[0][:120], allowed="0 or more")
    return value, last_digit(text.replace(",", "")) * factor


def _check_whole(figure: Figure, match: re.Match[str], span: tuple[int, int], where: str) -> None:
    """Raise ParseError where the number goes on beside the group: 234 of 1,234, or 12.5 of -12.5."""
    start, end = span
    before, after = match.string[max(0, start - 4) : start], match.string[end : end + 3]
    pattern = figure.pattern.pattern
    # A comma that the pattern itself writes beside a group separates the columns of a table.
    column_before = before.endswith(",") and ",(" in pattern
    column_after = after.startswith(",") and ")," in pattern
    if (_CUT_BEFORE.search(before) and not column_before) or (_CUT_AFTER.match(after) and not column_after):
        text, number = match.string, match.string.count("\n", 0, start) + 1
        line = text[max(0, start - 60) : start].rpartition("\n")[2] + text[start : end + 60].partition("\n")[0]
        raise ParseError(
            f"the pattern takes only a part of the number of {figure.metric}",
            where=f"{where}, line {number}",
            got=f"{text[start:end]!r} of {line!r}",
            allowed="the whole number",
            next_step="widen the group of the pattern; between columns with commas write ',' beside the group",
        )
