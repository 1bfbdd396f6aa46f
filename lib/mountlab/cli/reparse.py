"""reparse: derive the files of a run again from its raw output."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mountlab.cli.shared import RUN, Arguments, verb
from mountlab.core import disk
from mountlab.core.text import lines_of


def add(verbs: Any) -> None:
    reparse = verb(verbs, "reparse", _reparse, "make the derived files of a run again from its raw output")
    reparse.add_argument("run", type=Path, help=RUN)
    reparse.add_argument(
        "--accept-altered",
        action="store_true",
        help="go on with a run whose journal or raw output was altered, as it is now; every report says so",
    )


def _reparse(arguments: Arguments) -> int:
    from mountlab.results import paths, tables
    from mountlab.results.accept import accept

    if arguments.accept_altered:
        found = accept(paths.found(arguments.run).resolve())
        print(lines_of(f"accepted: {each}" for each in found) or "nothing was altered")
    tables.derive(arguments.run)
    print(f"derived again: {disk.shown(arguments.run.resolve())}")
    return 0
