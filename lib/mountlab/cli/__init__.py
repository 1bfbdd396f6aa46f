"""What can be typed after `python -m mountlab`: one command a file, named as the command. Only these speak to the
terminal."""

from __future__ import annotations

import argparse
from importlib import import_module

_FILES = (
    "plan", "run", "resume", "batch", "demo", "report", "reparse", "compare", "index", "fstab", "catalog", "history",
    "query", "gate", "parse", "import_", "export", "publish", "reproduce", "box", "lab",
)  # fmt: skip
COMMANDS = tuple(import_module(f"{__name__}.{name}") for name in _FILES)
"""In the order of the help."""


def parser() -> argparse.ArgumentParser:
    """All verbs and their arguments; the function of the chosen one is `verb` of what it parses."""
    made = argparse.ArgumentParser(prog="mountlab", description="A research workbench for file systems.")
    verbs = made.add_subparsers(required=True, metavar="VERB")
    for command in COMMANDS:
        command.add(verbs)
    return made
