"""What people type and find: the verbs of the command line, the files of a run."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mountlab.cli import GROUPS
from mountlab.core.errors import EXIT_CODES

from mountlab_dev.glossary import COLUMN_MEANINGS, RUN_FILES
from mountlab_dev.reference.markdown import code, codes, one_line, page, table

Columns = Mapping[str, Sequence[str]]
"""File of a run to the columns that it has."""


_NAMES = """\
- A sweep is named by a file of `params/sweeps`, without `.yml` (`tour`), or by its path. Batches are named likewise.
- A run is named by its directory, by its id, by the name of its sweep (then the newest run of it), or as `latest`. The
  verb says which run that is. A path and the name of a directory below `results/` come first.
- A box is named by its file of `params/boxes`, without `.yml`.

An unknown name is an error, which suggests the nearest. `make` takes the same names: `make run SWEEP=tour`,
`make report RUN=latest`.

In a shell Tab completes verbs, options and these names once the shell has evaluated what `mountlab completion bash`
prints, or `zsh`, or `fish`. The last line of that says how to install it."""


def verbs_page(parser: argparse.ArgumentParser) -> str:
    """Return every verb of the command line, and what it ends with."""
    return page(
        "Command line",
        "`.venv/bin/mountlab VERB`; most verbs are targets of `make` as well (`make help`). `mountlab` alone shows "
        "this list:",
        table(("For", "Verbs"), _by_use(parser)),
        "## Names",
        _NAMES,
        "## Exit codes",
        table(("Code", "Meaning"), [(str(number), text) for number, text in EXIT_CODES.items()]),
        "`make` reports every failure as its own exit code 2.",
        *(_verb(name, verb, text) for name, verb, text in _verbs(parser, "")),
    )


def _verbs(parser: argparse.ArgumentParser, before: str) -> Iterator[tuple[str, argparse.ArgumentParser, str]]:
    """Yield every verb with its parser and its text, those below another verb in its place."""
    for action in _subparsers(parser):
        helps = {each.dest: each.help or "" for each in action._choices_actions}
        for name, verb in action.choices.items():
            below = list(_verbs(verb, f"{before}{name} "))
            yield from below or [(f"{before}{name}", verb, helps.get(name, ""))]


def _by_use(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """Yield each group of verbs, with links to them."""
    names = [name for name, _, _ in _verbs(parser, "")]
    for group, files in GROUPS.items():
        own = [file.removesuffix("_") for file in files]
        verbs = [name for name in names if name.split()[0] in own]
        yield group, ", ".join(f"[{name}](#{name.replace(' ', '-')})" for name in verbs)


def _subparsers(parser: argparse.ArgumentParser) -> list[Any]:
    return [each for each in parser._actions if isinstance(each, argparse._SubParsersAction)]


def _verb(name: str, parser: argparse.ArgumentParser, text: str) -> str:
    actions = [each for each in parser._actions if not isinstance(each, argparse._HelpAction)]
    rows = [(_words(each), _allowed(each)) for each in actions]
    sentence = f"{text[:1].upper()}{text[1:]}."
    return f"## {name}\n\n{sentence}" + (f"\n\n{table(('Argument', 'Meaning'), rows)}" if rows else "")


def _words(action: argparse.Action) -> str:
    name = str(action.metavar or action.dest)
    if not action.option_strings:
        return code(name.upper() + ("..." if action.nargs == "+" else ""))
    value = f" {name.upper() if not action.metavar else name}" if action.nargs != 0 else ""
    return ", ".join(code(word + value) for word in action.option_strings)


def _allowed(action: argparse.Action) -> str:
    choices = f"one of {codes(action.choices)}" if action.choices else ""
    default = "" if action.default in (None, False, [], argparse.SUPPRESS) else f"default {code(action.default)}"
    return "; ".join(part for part in (one_line((action.help or "").replace("%%", "%")), choices, default) if part)


def runs_page(columns: Columns) -> str:
    """Return every file of a run, and the columns of its tables."""
    files = [(code(name), text) for name, text in RUN_FILES.items()]
    return page(
        "The directory of a run",
        "`results/<run_id>/`, or below `MOUNTLAB_RESULTS`. Measurements are never changed; derived files can be "
        "made again by `mountlab reparse RUN`. The columns of files are names of one vocabulary.",
        table(("File", "What it holds"), files),
        *(_columns(file, names) for file, names in columns.items()),
    )


def _columns(file: str, names: Sequence[str]) -> str:
    rows = [(code(name), COLUMN_MEANINGS[name]) for name in names if name in COLUMN_MEANINGS]
    factors = [("one for each factor", "The level of that swept option.")] if set(names) - {*COLUMN_MEANINGS} else []
    return f"## {file}\n\n" + table(("Column", "Meaning"), [*rows, *factors])
