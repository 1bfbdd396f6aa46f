"""watch: run any program as it is, and report what it does to the file systems that it uses."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import stat
from typing import Any

from mountlab.cli.arguments import BOX, DIRECTORY, argument
from mountlab.cli.shared import Arguments, finish, say, verb
from mountlab.core.errors import InputError

_COMMAND = "COMMAND"


def add(verbs: Any) -> None:
    made = verb(
        verbs, "watch", _watch, "run any program as it is, and report what answers it: caches, devices, flushes"
    )
    made.usage = (
        "mountlab watch [--box BOX] [--repeats N] [--in DIR] [--metric NAME=PATTERN:UNIT:BETTER] -- COMMAND ..."
    )
    argument(made, BOX, "--box", default="local", help="where it runs (default: local)")
    made.add_argument("--name", default="", help="what tables call it (default: of its words)")
    made.add_argument("--repeats", type=int, default=1, metavar="N", help="how often it runs (default: once)")
    place = "where it runs (default: here); on another box a path there"
    argument(made, DIRECTORY, "--in", dest="directory", type=str, metavar="DIR", help=place)
    made.add_argument(
        "--metric", action="append", default=[], metavar="NAME=PATTERN:UNIT:BETTER",
        help="a figure that it prints: a regular expression with one group, or a path into JSON ($.jobs[0].read.iops); "
        "its unit; which way is better (higher, lower, neither)",
    )  # fmt: skip
    made.add_argument(
        "--env", action="append", default=[], metavar="NAME",
        help="a variable of this shell that it gets, and that the run keeps. Here it always gets PATH and LANG",
    )  # fmt: skip
    made.add_argument(
        "--drop-caches", action="store_true", help="empty the page cache of the box before it; takes root"
    )
    made.add_argument(
        "--trace", action="store_true", help="run it once more, and record its system calls: operations, sizes, syncs"
    )
    made.add_argument(
        "--commit-clients", type=int, default=1, metavar="N",
        help="with a metric commits: how many clients can wait for a commit at the same time (default: 1)",
    )  # fmt: skip
    made.add_argument("--timeout", default="24h", metavar="TIME", help="end it then (default: 24h)")
    made.add_argument(
        "command", nargs=argparse.REMAINDER, metavar=_COMMAND, help="after `--`: the program and its arguments"
    )


def _has_input() -> bool:
    """Return whether something is piped or redirected to us, which the program would not get."""
    try:
        kind = os.fstat(0).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(kind) or stat.S_ISREG(kind)


def _watch(arguments: Arguments) -> int:
    from mountlab.report.kernels import prepare
    from mountlab.runner.watch import watch

    argv = arguments.command[1:] if arguments.command[:1] == ["--"] else arguments.command
    if not argv:
        raise InputError(
            "there is no program to watch",
            where="mountlab watch",
            got="no COMMAND",
            allowed="a program and its arguments after `--`",
            next_step="such as: mountlab watch -- make -j4",
        )
    if len(argv) == 1 and re.search(r"[\s|<>&;]", argv[0]) and not os.path.exists(argv[0]):
        raise InputError(
            "a line of a shell is no program",
            where="mountlab watch",
            got=argv[0],
            allowed="a program and its arguments, each a word",
            next_step=f"for a pipeline: mountlab watch -- sh -c {shlex.quote(argv[0])}",
        )
    if _has_input():
        say("the program gets no standard input: let it read a file, as in: sh -c 'PROGRAM < FILE'")
    path = watch(
        argv,
        directory=arguments.directory,
        box=arguments.box,
        repeats=arguments.repeats,
        name=arguments.name,
        metrics=arguments.metric,
        environment=arguments.env,
        drop_caches=arguments.drop_caches,
        trace=arguments.trace,
        commit_clients=arguments.commit_clients,
        timeout=arguments.timeout,
        measured=prepare,
    )
    return finish(path)
