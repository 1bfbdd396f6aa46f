"""What can be typed after `python -m mountlab`: one file for each kind of verb. Only these speak to the terminal."""

from __future__ import annotations

import argparse

from mountlab.cli import boxes, files, gates, lab, readings, runs, years


def parser() -> argparse.ArgumentParser:
    """All verbs and their arguments; the function of the chosen one is `verb` of what it parses."""
    made = argparse.ArgumentParser(prog="mountlab", description="A research workbench for file systems.")
    verbs = made.add_subparsers(required=True, metavar="VERB")
    for each in (runs, readings, years, gates, files, boxes, lab):
        each.add(verbs)
    return made
