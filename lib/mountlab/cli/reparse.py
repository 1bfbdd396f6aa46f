"""reparse: derive the files of a run again from its raw output."""

from __future__ import annotations

from typing import Any

from mountlab.cli.arguments import RUN, argument
from mountlab.cli.shared import Arguments, run_of, verb
from mountlab.core import disk
from mountlab.core.text import lines_of


def add(verbs: Any) -> None:
    reparse = verb(verbs, "reparse", _reparse, "make the derived files of a run again from its raw output")
    argument(reparse, RUN, "run")
    reparse.add_argument(
        "--accept-altered",
        action="store_true",
        help="go on with a run whose journal or raw output was altered, as it is now; every report says so",
    )


def _reparse(arguments: Arguments) -> int:
    from mountlab.results import tables
    from mountlab.results.accept import accept

    run = run_of(arguments.run).resolve()
    if arguments.accept_altered:
        print(lines_of(f"accepted: {change}" for change in accept(run)) or "nothing was altered")
    tables.derive(run)
    print(f"derived again: {disk.path_text(run)}")
    return 0
