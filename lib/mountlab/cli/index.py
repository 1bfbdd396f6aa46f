"""index: write the list of all runs and reports."""

from __future__ import annotations

from typing import Any

from mountlab.cli.arguments import DIRECTORY, argument
from mountlab.cli.shared import Arguments, verb
from mountlab.core import disk
from mountlab.core.errors import StoreError


def add(verbs: Any) -> None:
    index = verb(verbs, "index", _index, "write the list of all runs and reports again: results/index.html")
    argument(index, DIRECTORY, "results", nargs="?", help="the directory of the runs (default: results/)")


def _index(arguments: Arguments) -> int:
    from mountlab.report.execute import write_index
    from mountlab.results import paths

    if arguments.results and not arguments.results.is_dir():
        raise StoreError(
            "no such directory", where=disk.path_text(arguments.results), next_step="name that of the runs"
        )
    print(f"index: {disk.path_text(write_index((arguments.results or paths.RESULTS).resolve()))}")
    return 0
