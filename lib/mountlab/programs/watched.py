"""Any program as it is: in a directory that exists, with nothing prepared, and no figure but what it prints."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mountlab.core.errors import ParameterError
from mountlab.core.metrics import METRICS
from mountlab.core.model import FILES, Program, Scalar, Target, Workload
from mountlab.core.options import Option
from mountlab.programs.command import CommandTool, command_program
from mountlab.programs.printed import CLOCK, read_figures, read_ok_status
from mountlab.tools import wall_clock
from mountlab.tools.base import CACHE, Command, Written

_ENTER = 'unset LC_ALL; cd -- "$1" && shift && exec "$@"'
_COMMAND = CommandTool.options


class Watched(CommandTool):
    """Runs a program in the directory of a file system of type `in_place`, as it is.

    Nothing is changed for it: no directory is made, nothing is laid out, and no cache is dropped unless `cache: cold`
    asks for it. What the program did is seen from outside: by the kernel's counters before and after it, and by the
    files that it has open.
    `mountlab watch` writes such a workload.
    """

    name = "watched"
    in_place = True
    options: Mapping[str, Option] = {
        "argv": Option(kind="text", help="the command line, as a shell would split it"),
        "environment": Option(kind="mapping", default="{}", help="variable to its value, beside those of a login"),
        "metrics": replace(
            _COMMAND["metrics"], default=json.dumps({"elapsed": {"from": CLOCK}}), help=_COMMAND["metrics"].help
        ),
        "time": _COMMAND["time"],
        "version": _COMMAND["version"],
        "ok_status": _COMMAND["ok_status"],
        "commit_clients": _COMMAND["commit_clients"],
        "cache": replace(CACHE, default="as_is", help="as_is: caches are left alone; cold: they are dropped, as root"),
    }
    any_option = False
    reserved: Mapping[str, str] = {
        "directory": "the file system has it: `path` of type in_place",
        "prepare": "a watched program runs as it is; prepare it yourself, or use the tool command",
    }
    neighbour_defaults: Mapping[str, Any] = {}
    gives: tuple[str, ...] = tuple(METRICS)

    def check(self, options: Mapping[str, Scalar], *, where: str) -> None:
        self.check_given(options, {"argv": "a command line, such as 'make -j4'"}, where=where)
        try:
            words = shlex.split(str(options["argv"]))
        except ValueError as error:
            raise ParameterError(
                "not a command line",
                where=f"{where}.argv",
                got=str(options["argv"]),
                allowed=f"quotes in pairs ({error})",
            ) from error
        if not words or not words[0] or "\0" in str(options["argv"]):
            raise ParameterError(
                "a command line begins with a program",
                where=f"{where}.argv",
                got=repr(options["argv"]),
                allowed="a program",
            )
        read_figures(options, where)
        read_ok_status(options, where)
        if options["cache"] == "warm":
            raise ParameterError(
                "it is not known which files the program reads, so nothing can fill the page cache with them",
                where=f"{where}.cache",
                got="'warm'",
                allowed="as_is, or cold; with --repeats the second run finds what the first one left in the cache",
            )
        for name, value in json.loads(str(options["environment"])).items():
            if not name.replace("_", "a").isalnum() or name[:1].isdigit() or not isinstance(value, str):
                raise ParameterError(
                    "not a variable of the environment",
                    where=f"{where}.environment.{name}",
                    got=repr(value),
                    allowed="a name of letters, digits and '_', and a text",
                )

    def programs_for(self, workload: Workload) -> tuple[Program, ...]:
        first = shlex.split(str(workload.options["argv"]))[0]
        return (command_program(first, str(workload.options.get("version", ""))),)

    def command(self, workload: Workload, directory: str, output: str, target: Target = FILES) -> Command:
        variables = json.loads(str(workload.options["environment"]))
        words = shlex.split(str(workload.options["argv"]))
        argv = ("env", *(f"{name}={value}" for name, value in variables.items()), *words) if variables else (*words,)
        if any(figure.source == CLOCK for figure in read_figures(workload.options, "workload")):
            argv = wall_clock.timed(argv, output)
        return Command(argv=("sh", "-c", _ENTER, "watched", directory, *argv), cache=self.cache_of(workload))

    def space_bytes(self, workload: Workload, target: Target = FILES) -> int:
        """Return 0: only the program knows."""
        return 0

    def written(self, workload: Workload) -> Written:
        return Written("not known: the program's own", None)
