"""init: make a workspace, for a repository of one's own."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from mountlab.cli.arguments import DIRECTORY, argument
from mountlab.cli.shared import Arguments, verb
from mountlab.core import disk


def add(verbs: Any) -> None:
    text = (
        "make a workspace for a repository of your own: sweeps, boxes, notebooks, results, and a lock of this version"
    )
    words = "of the workspace, such as study; may be there: no file is replaced"
    argument(verb(verbs, "init", _init, text), DIRECTORY, "directory", metavar="DIR", help=words)


def _init(arguments: Arguments) -> int:
    from mountlab.results.workspace import SWEEP, make_workspace

    made = make_workspace(arguments.directory)
    for path in made.kept:
        print(f"kept:    {disk.path_text(path)}, which was there")
    print(f"written: {len(made.written)} files of the workspace {arguments.directory}")
    print(f"version: {made.pin.line}")
    for remark in made.pin.remarks:
        print(f"note:    {remark}")
    enter = "" if arguments.directory.resolve() == Path.cwd() else f"cd {shlex.quote(str(arguments.directory))} && "
    print(f"next:    {enter}make demo, or change params/sweeps/{SWEEP}.yml; `git init` is yours to run")
    return 0
