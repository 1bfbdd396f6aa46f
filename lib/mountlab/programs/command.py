"""Any other program: the sweep gives its command line, and regular expressions that find the figures in its output, or
has the command timed."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mountlab.core.errors import ParameterError, ParseError, ToolError, did_you_mean
from mountlab.core.metrics import METRICS, Metric
from mountlab.core.model import FILES, Measurement, Program, Scalar, Target, Workload
from mountlab.core.options import Option, unknown_key
from mountlab.core.resolution import last_digit
from mountlab.core.units import base_unit
from mountlab.tools import wall_clock
from mountlab.tools.base import CACHE, Command, Tool, ToolOutput, Written, checksum
from mountlab.tools.own_metrics import read_metric

DIRECTORY, OUTPUT = "directory", "output"
TIMED_OUT = 124
_PLACE = re.compile(r"\{\{(\w+)\}\}|\{([a-z][a-z0-9_]*)\}")
"""'{name}' stands for a value, '{{name}}' for '{name}' itself. Any other brace stays as it is."""
_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
_NUMBER = re.compile(r"[+-]?([0-9]{1,30}(\.[0-9]{0,30})?|\.[0-9]{1,30})([eE][+-]?[0-9]{1,3})?\Z")
"""12, 12.5, .5, 5., 1e-3: what C, awk, bc and Python print."""
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:(,[0-9]{3})+\.[0-9]{1,30}|(,[0-9]{3}){2,10})\Z")
"""1,234.5 and 1,234,567: the commas cannot be decimal ones. 1,234 is 1234 to some programs and 1.234 to others."""
CLOCK = "clock"
"""In the place of a file: the box's own clock, before and after the command."""
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}\Z")
_ACCOUNT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}\Z")
_CUT_BEFORE = re.compile(r"(?:\d|\d[.,]|(?<![^\s=:(])\.|\d[eE][+-]?|(?<!\w)[-\u2212])\Z")
_CUT_AFTER = re.compile(r"\d|[.,]\d|[eE][+-]?\d")
"""What stands beside a group that takes only a part of a number. The hyphen of a word (run-12) is no sign."""
METRIC_KEYS = {"pattern", "unit", "from", "all", "better"}
_ALL: dict[str, Callable[[Sequence[float]], float]] = {
    "sum": math.fsum,
    "mean": lambda values: math.fsum(values) / len(values),
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
}
_READ_ALL = ("-type", "f", "-exec", "cat", "{}", "+")


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
    of_all: str
    """What is made of several matches; '' where only one is right."""


class CommandTool(Tool):
    """Runs a command line that the sweep gives. Nothing about the program is known: what the sweep says is believed,
    and what the patterns do not find fails the trial.

    Each pattern must match once, or `all` says what to make of several matches. `from: clock` is the wall time
    between two calls of date(1) around the command. A call takes some milliseconds, and the figure may be too long by
    as much; a third call before the command measures that. Twice that is the step to which the figure is rounded. If
    the wall clock was set meanwhile, /proc/uptime counts, in steps of 10 ms. A metric with `better: neither` is in no
    comparison.
    """

    name = "command"
    programs: tuple[Program, ...] = ()
    options: Mapping[str, Option] = {
        "argv": Option(kind="text", help="the command line; {directory}, {output} and {name} of any further option"),
        "metrics": Option(
            kind="mapping",
            help="metric, or metric/label, to pattern, unit, from and all; `from: clock` times the command; a metric "
            "of your own has `better` too: higher, lower or neither",
        ),
        "space": Option(kind="size", help="the most that it holds in its directory at any time"),
        "time": Option(kind="duration", default=10.0, help="about how long it takes, for the plan"),
        "prepare": Option(kind="text", help="a command line that is run before, and not measured"),
        "owner": Option(
            kind="text", help="the account that {directory} belongs to: of a program that refuses root, or gives it up"
        ),
        "version": Option(kind="text", help="a command line that prints its version; none: a checksum of the program"),
        "ok_status": Option(kind="any", default=0, help="exit statuses that are no failure: 0, or '0 3'"),
        "cache": CACHE,
    }
    any_option = True
    reserved: Mapping[str, str] = {
        DIRECTORY: "{directory} is the trial's own directory on the file system under test",
        OUTPUT: "{output} is the trial's own directory for results, in memory",
    }
    clock_s = 1e-9
    """Not known: of another program's clock nothing can be said. Of a command that Mountlab times, each trial says what
    a reading of the clock took (`Measurement.step`)."""
    times_itself = True
    neighbour_defaults: Mapping[str, Any] = {"metrics": {"elapsed": {"from": "clock"}}}
    longer = "more to do, by its own options"
    gives: tuple[str, ...] = tuple(METRICS)
    """Whatever the sweep has a pattern for."""

    def check(self, options: Mapping[str, Scalar], *, where: str) -> None:
        needed = {
            "argv": "text such as 'mybench --dir {directory}'",
            "space": "text with a unit, such as 64MiB",
            "metrics": "a mapping such as {write_bandwidth: {pattern: '([0-9.]+) MB/s', unit: MB/s}}; for a program "
            "that prints no figure {elapsed: {from: clock}}",
        }
        self.check_given(options, needed, where=where)
        if not options["space"]:
            raise ParameterError(
                "a command that writes takes room", where=f"{where}.space", got="0", allowed="1B or more"
            )
        for name in options:
            if not _NAME.match(name):
                raise ParameterError(
                    "not a name that can stand in braces",
                    where=f"{where}.{name}",
                    got=repr(name),
                    allowed="small letters, digits and '_'",
                )
        _check_templates(options, where)
        _read_figures(options, where)
        _read_ok_status(options, where)
        if "owner" in options and not _ACCOUNT.match(str(options["owner"])):
            raise ParameterError(
                "not an account",
                where=f"{where}.owner",
                got=repr(options["owner"]),
                allowed="the name of a user of the box, such as postgres",
            )
        if options.get("cache") == "warm" and "prepare" not in options:
            raise ParameterError(
                "there is no file to fill the page cache with",
                where=f"{where}.cache",
                got="'warm'",
                allowed="warm with `prepare`, which lays out what is read; else cold or as_is",
            )

    def programs_for(self, workload: Workload) -> tuple[Program, ...]:
        """Return the first word of each command line, but for `prepare` where that is the same."""
        options = workload.options
        lines = [_split_line(str(options[key]), options, "", "") for key in ("argv", "prepare") if key in options]
        first, *others = dict.fromkeys(words[0] for words in lines)
        return _program(first, str(options.get("version", ""))), *(_program(name, "") for name in others)

    def command(self, workload: Workload, directory: str, output: str, target: Target = FILES) -> Command:
        options = workload.options
        cache = self.cache_of(workload)
        prepare = (_split_line(str(options["prepare"]), options, directory, output),) if "prepare" in options else ()
        fill = (("find", directory, *_READ_ALL),) if prepare else ()
        argv = _split_line(str(options["argv"]), options, directory, output)
        if any(figure.source == CLOCK for figure in _read_figures(options, "workload")):
            argv = wall_clock.timed(argv, output)
        return Command(argv=argv, prepare=prepare, fill=fill, cache=cache, owner=str(options.get("owner", "")))

    def own_metrics(self, options: Mapping[str, Scalar]) -> dict[str, Metric]:
        """Return the metrics that the sweep defines."""
        figures = _read_figures(options, "workload")
        return {figure.metric: figure.what for figure in figures if figure.metric not in METRICS}

    def parse(self, workload: Workload, output: ToolOutput) -> list[Measurement]:
        """Return one measurement for each metric of the sweep; all of them must be found."""
        if output.exit_status not in _read_ok_status(workload.options, "ok_status"):
            printed = output.stderr.strip() or output.stdout.strip()
            raise ToolError(f"the command failed with exit status {output.exit_status}", evidence=printed)
        return [_measure(figure, output) for figure in _read_figures(workload.options, "workload")]

    def space_bytes(self, workload: Workload, target: Target = FILES) -> int:
        return int(workload.options["space"])

    def expected_s(self, workload: Workload) -> float:
        return 0.1 + float(workload.options["time"])

    def written(self, workload: Workload) -> Written:
        return Written("not known: the command's own", None)

    def main_metrics(self, workload: Workload) -> tuple[str, ...]:
        """Return all that the sweep names, but for what was asked for (bytes) and how long it took, if there is
        more."""
        names = tuple(dict.fromkeys(figure.metric for figure in _read_figures(workload.options, "workload")))
        return tuple(name for name in names if name not in ("bytes", "elapsed")) or names


# --- the command lines ------------------------------------------------------------------------------------------------


def _split_line(template: str, options: Mapping[str, Scalar], directory: str, output: str) -> tuple[str, ...]:
    """Split first, filled in then: a value stays one word, whatever is in it."""
    values = {**options, DIRECTORY: directory, OUTPUT: output}
    return tuple(_fill(word, values) for word in shlex.split(template))


def _fill(word: str, values: Mapping[str, Scalar]) -> str:
    def value(match: re.Match[str]) -> str:
        given = values.get(match[2], "") if match[2] else f"{{{match[1]}}}"
        return f"{given:.15g}" if isinstance(given, float) else str(given)

    return _PLACE.sub(value, word)


def _check_templates(options: Mapping[str, Scalar], where: str) -> None:
    further = [name for name in options if name not in CommandTool.options]
    values = [*further, DIRECTORY, OUTPUT]
    used: set[str] = set()
    for key in ("argv", "prepare", "version"):
        names = _read_names(str(options[key]), f"{where}.{key}") if key in options else []
        for name in names:
            if key == "version":
                allowed = "no name in braces: a version is asked before anything is measured"
            elif name not in values:
                allowed = ", ".join(f"{{{value}}}" for value in values)
            else:
                continue
            next_step = did_you_mean(name, values) or f"write {{{{{name}}}}} for braces"
            got, what = f"{{{name}}}", "nothing is known by this name"
            raise ParameterError(what, where=f"{where}.{key}", got=got, allowed=allowed, next_step=next_step)
        used |= set(names)
    unused = [name for name in further if name not in used]
    if unused:
        what = "option for command that no command line uses"
        raise unknown_key(unused[0], list(CommandTool.options), where=f"{where}.{unused[0]}", what=what)
    if DIRECTORY not in _read_names(str(options["argv"]), f"{where}.argv"):
        raise ParameterError(
            "the command would not measure the file system",
            where=f"{where}.argv",
            got=str(options["argv"]),
            allowed="a command line with {directory} in it",
            next_step=_ONE_TEXT,
        )


_ONE_TEXT = "write the whole command line as one text; a list is a factor, and each of its entries a command line"


def _read_names(template: str, where: str) -> list[str]:
    """Return the names in braces. Raises ParameterError for a line that a shell could not split either."""
    try:
        words = shlex.split(template)
    except ValueError as error:
        raise ParameterError(
            "not a command line", where=where, got=template, allowed=f"quotes in pairs ({error})"
        ) from error
    if not words or _PLACE.search(words[0]) or "\0" in template:
        raise ParameterError(
            "a command line begins with a program",
            where=where,
            got=repr(template),
            allowed="the name or the path of a program, without braces",
            next_step=_ONE_TEXT,
        )
    return [match[2] for word in words for match in _PLACE.finditer(word) if match[2]]


def _program(name: str, version: str) -> Program:
    # Its version option is not known, and the program itself might begin to measure when it is asked.
    version_argv = tuple(shlex.split(version)) or checksum(name)
    return Program(
        name=name,
        packages={},
        version=version_argv,
        hint=f"install {name} on the box: the sweep's command runs it, and no package of it is known here",
    )


# --- the figures ------------------------------------------------------------------------------------------------------


def _read_ok_status(options: Mapping[str, Scalar], where: str) -> list[int]:
    words = str(options["ok_status"]).replace(",", " ").split()
    if not words or not all(re.fullmatch(r"\d{1,3}", word) and int(word) < TIMED_OUT for word in words):
        raise ParameterError(
            "not exit statuses",
            where=f"{where}.ok_status",
            got=repr(options["ok_status"]),
            allowed=f"0, or several as text: '0 3'; each below {TIMED_OUT}, where those of timeout and signals begin",
        )
    return [int(word) for word in words]


def _read_figures(options: Mapping[str, Scalar], where: str) -> list[Figure]:
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
    pattern = _read_pattern(entry, where)
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
    return Figure(metric, label, pattern, unit, what, source, entry.get("all", ""))


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


_KEYS = "pattern (a regular expression), unit, and if wanted from, all and better; or from: clock"


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


def _measure(figure: Figure, output: ToolOutput) -> Measurement:
    """Return what the clock says, or what the pattern of a figure finds."""
    if figure.source == CLOCK:
        took, step = wall_clock.elapsed(output.files.get(wall_clock.FILE))
        return Measurement(metric=figure.metric, label=figure.label, value=took, unit="s", step=step)
    where = f"{figure.source}, pattern {figure.pattern.pattern!r}"
    texts = {**output.files, "stdout": output.stdout, "stderr": output.stderr}
    matches = list(figure.pattern.finditer(texts.get(figure.source, "")))
    if not matches:
        seen = texts.get(figure.source)
        got = "no such file" if seen is None else seen.strip()[-200:] or "nothing"
        raise ParseError(f"{figure.metric} was not found", where=where, got=got, allowed="a match")
    if len(matches) > 1 and not figure.of_all:
        raise ParseError(
            f"{figure.metric} was found more than once",
            where=where,
            got=f"{len(matches)} matches",
            allowed="one match",
            next_step=f"say what to make of them: all: {', '.join(_ALL)}",
        )
    values, steps = zip(*(_read_value(figure, match, where) for match in matches), strict=True)
    value = _ALL[figure.of_all or "first"](values)
    may_be_0 = figure.what.unit not in ("B/s", "1/s", "s", "B")
    if not math.isfinite(value) or value < 0 or (value == 0 and not may_be_0):
        raise ParseError(f"{figure.metric} cannot be this", where=where, got=f"{value:g}", allowed="a number above 0")
    # As if all were rounded the same way: those that are equal are.
    step = _ALL[figure.of_all or "first"](steps)
    return Measurement(metric=figure.metric, label=figure.label, value=value, unit=figure.what.unit, step=step)


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
