"""What can be typed after `python -m mountlab`: one command a file, named as the command. Only these speak to the
terminal."""

from __future__ import annotations

import argparse

from mountlab.cli import (
    batch,
    box,
    catalog,
    compare,
    demo,
    export,
    fstab,
    gate,
    history,
    import_,
    index,
    lab,
    parse,
    plan,
    publish,
    query,
    reparse,
    report,
    reproduce,
    resume,
    run,
)

COMMANDS = (
    plan, run, resume, batch, demo, report, reparse, compare, index, fstab, catalog, history, query, gate, parse,
    import_, export, publish, reproduce, box, lab,
)  # fmt: skip
"""In the order of the help."""


def parser() -> argparse.ArgumentParser:
    """All verbs and their arguments; the function of the chosen one is `verb` of what it parses."""
    made = argparse.ArgumentParser(prog="mountlab", description="A research workbench for file systems.")
    verbs = made.add_subparsers(required=True, metavar="VERB")
    for command in COMMANDS:
        command.add(verbs)
    return made
