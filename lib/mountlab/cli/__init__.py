"""What can be typed after `mountlab`: one command a file, named as the command. Only these speak to the terminal."""

from __future__ import annotations

import argparse
import shutil
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from mountlab.cli.shared import Parser, show_help

GROUPS: dict[str, tuple[str, ...]] = {
    "measure": ("init", "demo", "sweep", "plan", "run", "watch", "resume", "extend", "explain", "exclude", "batch"),
    "look": ("report", "compare", "gate", "index", "history", "catalog", "query", "lab"),
    "share": ("export", "publish", "reproduce", "import_", "fstab"),
    "boxes": ("box",),
    "develop": ("parse", "reparse", "conform", "completion"),
}
"""The files of the commands by what they are for, in the order of the help and of the reference."""
COMMANDS = tuple(import_module(f"{__name__}.{name}") for names in GROUPS.values() for name in names)
_BY_VERB = {command.__name__.rpartition(".")[2].removesuffix("_"): command for command in COMMANDS}
_MORE = "`mountlab VERB --help` shows the arguments of a verb. `mountlab --help` and `mountlab` alone show this list."
_INDENT, _NARROWEST = 14, 60


class _Version(argparse.Action):
    """Print the version, and the commit of a development install. To find them takes longer than all else here."""

    def __init__(self, option_strings: list[str], dest: str, **more: Any) -> None:
        super().__init__(option_strings, dest, nargs=0, default=argparse.SUPPRESS, **more)

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        from importlib.metadata import version

        from mountlab.results.writer import git_commit

        commit = git_commit()
        print(f"mountlab {version('mountlab')}" + (f" (commit {commit})" if commit else ""))
        parser.exit()


def parser(arguments: Sequence[str] = ()) -> argparse.ArgumentParser:
    """Return all verbs and their arguments; the function of the chosen one is `verb` of what it parses. Where
    `arguments` begin with a verb, it alone is declared: all of them take a while."""
    made = Parser(
        prog="mountlab",
        usage="mountlab VERB ...",
        epilog=_MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.set_defaults(verb=show_help(made))
    made.add_argument("--version", action=_Version, help="show the version, and the commit of a development install")
    verbs = made.add_subparsers(prog="mountlab", metavar="VERB", help=argparse.SUPPRESS)
    if arguments and arguments[0] in _BY_VERB:
        _BY_VERB[arguments[0]].add(verbs)
        return made
    for command in COMMANDS:
        command.add(verbs)
    made.description = "\n".join(["A research workbench for file systems.", *_grouped(verbs.choices)])
    return made


def _grouped(verbs: Mapping[str, argparse.ArgumentParser]) -> Iterator[str]:
    """Yield the verbs with their texts, below the names of their groups."""
    width = max(_NARROWEST, shutil.get_terminal_size().columns - 2)
    for group, files in GROUPS.items():
        yield f"\n{group}:"
        for name in (file.removesuffix("_") for file in files):
            text, indent = verbs[name].description or "", " " * _INDENT
            yield textwrap.fill(text, width, initial_indent=f"  {name:{_INDENT - 2}}", subsequent_indent=indent)
