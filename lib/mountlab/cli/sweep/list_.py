"""sweep list: show the sweeps below params/sweeps with their questions."""

from __future__ import annotations

from typing import Any

from mountlab.cli.shared import Arguments, verb, wrong_file
from mountlab.core.errors import MountlabError
from mountlab.core.text import aligned, lines_of


def add(verbs: Any) -> None:
    verb(verbs, "list", _list, "the sweeps below params/sweeps, each with its question")


def _list(_: Arguments) -> int:
    from mountlab.results import paths

    print(lines_of(aligned([("SWEEP", "QUESTION"), *((name, _question(name)) for name in paths.sweep_names())])))
    return 0


def _question(name: str) -> str:
    """Return the question of a sweep; of a file that is wrong its error."""
    from mountlab.results import paths

    try:
        return paths.load_sweep(name).sweep.question
    except MountlabError as error:
        return wrong_file(error)
