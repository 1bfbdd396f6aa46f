"""Kinds of arguments: what each takes, its words in the help, and what Tab offers for it in a shell."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mountlab.core.metrics import METRICS

LOG_TOOLS = ("dd", "fio", "filebench", "fs_mark", "pg_test_fsync")
"""Tools whose logs are read: to import the readers takes longer than a Tab may."""
_ANY_FILE = ("",)


@dataclass(frozen=True)
class ArgumentKind:
    """What an argument takes. argcomplete calls it for what Tab offers."""

    text: str
    """Its words in the help, where the verb has no others."""
    offers: Callable[[str], Iterable[str]]
    """From what is typed of the word to the names that fit."""
    type: Callable[[str], Any] = str

    def __call__(self, *, prefix: str, **_: object) -> Iterable[str]:
        """Return what may stand for a word that begins so."""
        return self.offers(prefix)


def argument(parser: Any, kind: ArgumentKind, *names: str, **more: Any) -> None:
    """Declare an argument of a kind. `parser`: or a group of one; `more`: as for add_argument."""
    parser.add_argument(*names, **{"type": kind.type, "help": kind.text, **more}).completer = kind


def _paths(prefix: str, endings: tuple[str, ...] = _ANY_FILE) -> Iterator[str]:
    """Yield the directories that a path may go on with, and the files with such an ending; hidden ones if asked for."""
    start = prefix.rpartition("/")[2]
    typed = prefix.removesuffix(start)
    with suppress(OSError):
        for path in sorted(Path(os.path.expanduser(typed) or ".").iterdir()):
            if path.name.startswith(start) and (start or not path.name.startswith(".")):
                if path.is_dir():
                    yield f"{typed}{path.name}/"
                elif path.name.endswith(endings):
                    yield f"{typed}{path.name}"


def _names_or_paths(prefix: str, names: Iterable[str], *endings: str) -> list[str]:
    """Return the names that fit; paths where none does, and where a path is typed already."""
    fitting = [name for name in names if name.startswith(prefix)]
    return fitting if fitting and "/" not in prefix else [*fitting, *_paths(prefix, endings)]


def _sweeps(prefix: str) -> Iterable[str]:
    from mountlab.results import paths

    return _names_or_paths(prefix, paths.sweep_names(), ".yml", ".yaml")


def _batches(prefix: str) -> Iterable[str]:
    from mountlab.results import paths

    return _names_or_paths(prefix, paths.batch_names(), ".yml", ".yaml")


def _runs(prefix: str) -> Iterable[str]:
    from mountlab.results.run_names import INTERRUPTED, LATEST, run_names

    return _names_or_paths(prefix, [LATEST, INTERRUPTED, *run_names()])


def _boxes(_: str) -> Iterable[str]:
    from mountlab.results import paths

    return paths.box_names()


def _plugins(_: str) -> Iterable[str]:
    from mountlab.core import plugins

    return plugins.distributions()


SWEEP = ArgumentKind("a name of params/sweeps, such as ramdisk, or a file", _sweeps, Path)
RUN = ArgumentKind(
    "a run: its directory, its id, the name of its sweep (the newest run of it), latest or interrupted", _runs, Path
)
BATCH = ArgumentKind("a name of params/batches, such as studies, or a file", _batches, Path)
BOX = ArgumentKind("a name from params/boxes", _boxes)
TOOL = ArgumentKind(", ".join(LOG_TOOLS), lambda _: LOG_TOOLS)
METRIC = ArgumentKind("the name of a metric", lambda _: METRICS)
PLUGIN = ArgumentKind("an installed distribution, such as mountlab-untar", _plugins)
BUNDLE = ArgumentKind("a folder or a zip made by publish", lambda prefix: _paths(prefix, (".zip",)), Path)
FILE = ArgumentKind("a file", _paths, Path)
DIRECTORY = ArgumentKind("a directory", lambda prefix: _paths(prefix, ()), Path)
