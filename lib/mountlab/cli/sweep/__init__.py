"""sweep: the files that say what is measured. One command a file, named as the command."""

from __future__ import annotations

from typing import Any

from mountlab.cli.shared import verbs_below
from mountlab.cli.sweep import check, import_job, list_, new

COMMANDS = (list_, new, import_job, check)
"""In the order of the help."""


def add(verbs: Any) -> None:
    """Declare the command and those below it."""
    verbs_below(verbs, "sweep", "list, write and check sweeps: the files that say what is measured", COMMANDS)
