"""box: look after a box. One command a file, named as the command."""

from __future__ import annotations

from typing import Any

from mountlab.cli.box import check, claim, clean, helper, prepare
from mountlab.cli.shared import verb

COMMANDS = (check, prepare, claim, clean, helper)
"""In the order of the help."""


def add(verbs: Any) -> None:
    """Declare the command and those below it."""
    below = verb(verbs, "box", None, "look after a box").add_subparsers(required=True, metavar="VERB")
    for command in COMMANDS:
        command.add(below)
