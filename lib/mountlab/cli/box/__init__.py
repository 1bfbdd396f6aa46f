"""box: look after a box. One command a file, named as the command."""

from __future__ import annotations

from typing import Any

from mountlab.cli.box import check, claim, clean, helper, list_, prepare
from mountlab.cli.shared import verbs_below

COMMANDS = (list_, check, prepare, claim, clean, helper)
"""In the order of the help."""


def add(verbs: Any) -> None:
    """Declare the command and those below it."""
    verbs_below(verbs, "box", "list, check, prepare and clean boxes; claim their scratch devices", COMMANDS)
