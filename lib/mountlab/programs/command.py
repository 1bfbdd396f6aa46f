"""Any other program: the sweep gives its command line, and regular expressions that find the figures in its output, or
has the command timed."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any

from mountlab.core.errors import ParameterError, ToolError, did_you_mean
from mountlab.core.metrics import METRICS, Metric
from mountlab.core.model import FILES, Measurement, Program, Scalar, Target, Workload
from mountlab.core.options import Option, unknown_key
from mountlab.programs.printed import CLOCK, measure, read_figures, read_ok_status
from mountlab.tools import wall_clock
from mountlab.tools.base import CACHE, Command, Commits, Tool, ToolOutput, Written, checksum

DIRECTORY, OUTPUT = "directory", "output"
COMMITS = "commits"
"""A metric that a sweep may define, a number: commits that the command acknowledges as durable. (A rate would be of a
part of its time, which is not known.)"""
_PLACE = re.compile(r"\{\{(\w+)\}\}|\{([a-z][a-z0-9_]*)\}")
"""'{name}' stands for a value, '{{name}}' for '{name}' itself. Any other brace stays as it is."""
_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
_ACCOUNT = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}\Z")
_READ_ALL = ("-type", "f", "-exec", "cat", "{}", "+")


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
            help="metric, or metric/label, to pattern (or json, a path: $.jobs[0].read.iops), unit, from and all; "
            "`from: clock` times the command; a metric of your own has `better` too: higher, lower or neither",
        ),
        "space": Option(kind="size", help="the most that it holds in its directory at any time"),
        "time": Option(kind="duration", default=10.0, help="about how long it takes, for the plan"),
        "prepare": Option(kind="text", help="a command line that is run before, and not measured"),
        "owner": Option(
            kind="text", help="the account that {directory} belongs to: of a program that refuses root, or gives it up"
        ),
        "version": Option(kind="text", help="a command line that prints its version; none: a checksum of the program"),
        "ok_status": Option(kind="any", default=0, help="exit statuses that are no failure: 0, or '0 3'"),
        "commit_clients": Option(
            kind="int",
            default=1,
            help="how many clients can wait for a commit at the same time, where `metrics` has commits: those "
            "that the program calls durable (caveat not-durable)",
        ),
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
        read_figures(options, where)
        read_ok_status(options, where)
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
        return command_program(first, str(options.get("version", ""))), *(command_program(name, "") for name in others)

    def command(self, workload: Workload, directory: str, output: str, target: Target = FILES) -> Command:
        options = workload.options
        cache = self.cache_of(workload)
        prepare = (_split_line(str(options["prepare"]), options, directory, output),) if "prepare" in options else ()
        fill = (("find", directory, *_READ_ALL),) if prepare else ()
        argv = _split_line(str(options["argv"]), options, directory, output)
        if any(figure.source == CLOCK for figure in read_figures(options, "workload")):
            argv = wall_clock.timed(argv, output)
        return Command(argv=argv, prepare=prepare, fill=fill, cache=cache, owner=str(options.get("owner", "")))

    def own_metrics(self, options: Mapping[str, Scalar]) -> dict[str, Metric]:
        """Return the metrics that the sweep defines."""
        figures = read_figures(options, "workload")
        return {figure.metric: figure.what for figure in figures if figure.metric not in METRICS}

    def parse(self, workload: Workload, output: ToolOutput) -> list[Measurement]:
        """Return one measurement for each metric of the sweep; all of them must be found."""
        if output.exit_status not in read_ok_status(workload.options, "ok_status"):
            printed = output.stderr.strip() or output.stdout.strip()
            raise ToolError(f"the command failed with exit status {output.exit_status}", evidence=printed)
        return [measure(figure, output) for figure in read_figures(workload.options, "workload")]

    def commits(self, workload: Workload, figures: Mapping[tuple[str, str], float]) -> Commits | None:
        """The metric COMMITS of the sweep."""
        if (COMMITS, "") not in figures:
            return None
        return Commits(figures[COMMITS, ""], int(workload.options["commit_clients"]), seconds=1.0)

    def space_bytes(self, workload: Workload, target: Target = FILES) -> int:
        return int(workload.options["space"])

    def expected_s(self, workload: Workload) -> float:
        return 0.1 + float(workload.options["time"])

    def written(self, workload: Workload) -> Written:
        return Written("not known: the command's own", None)

    def main_metrics(self, workload: Workload) -> tuple[str, ...]:
        """Return all that the sweep names, but for what was asked for (bytes) and how long it took, if there is more
        that can be better or worse."""
        names = tuple(dict.fromkeys(figure.metric for figure in read_figures(workload.options, "workload")))
        more = tuple(name for name in names if name not in ("bytes", "elapsed"))
        return more if any(workload.metric(name).better != "neither" for name in more) else names


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


def command_program(name: str, version: str) -> Program:
    """Return a program of the user's, with the command line that prints its version, or ''."""
    # Its version option is not known, and the program itself might begin to measure when it is asked.
    version_argv = tuple(shlex.split(version)) or checksum(name)
    return Program(
        name=name,
        packages={},
        version=version_argv,
        hint=f"install {name} on the box: the sweep's command runs it, and no package of it is known here",
    )
