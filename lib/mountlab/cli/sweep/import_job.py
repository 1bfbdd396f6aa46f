"""sweep import-job: write a sweep from a job file of fio."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mountlab.cli.arguments import FILE, argument
from mountlab.cli.shared import Arguments, verb
from mountlab.core import disk
from mountlab.core.errors import ParameterError, StoreError, raise_all
from mountlab.core.text import visible
from mountlab.core.units import format_bytes, parse_bytes


def add(verbs: Any) -> None:
    text = "write a sweep, params/sweeps/NAME.yml, from a job file of fio, with a comment on each line that it changes"
    parser = verb(verbs, "import-job", _import, text)
    argument(parser, FILE, "file", help="the job file; files that it includes are read from beside it")
    parser.add_argument("--name", help="of the new sweep; without it that of the file")
    parser.add_argument(
        "--var", action="append", default=[], metavar="NAME=VALUE", dest="variables",
        help="the value of a variable, as ${NAME} in the file",
    )  # fmt: skip
    parser.add_argument(
        "--size", help="what the largest size in the file becomes, such as 256MiB, and all others in proportion"
    )
    parser.add_argument(
        "--engine",
        choices=("psync", "libaio", "io_uring"),
        help="what takes the place of engines that use no file system, such as spdk and rbd: the I/Os are others then",
    )


def _import(arguments: Arguments) -> int:
    from mountlab.fio.grammar import safe_name
    from mountlab.fio.jobs import change_words
    from mountlab.results import paths
    from mountlab.sweep.job_import import import_text
    from mountlab.sweep.job_sweep import job_sweep
    from mountlab.sweep.validated import check_names

    source: Path = arguments.file
    name = arguments.name or safe_name(source.stem, usual="job")
    check_names([name], "--name")
    path = paths.PARAMS / paths.SWEEPS / f"{name}.yml"
    if path.exists():
        raise StoreError("the sweep is there already", where=disk.path_text(path), next_step="choose another --name")
    size = parse_bytes(arguments.size, where="--size") if arguments.size else None
    imported = import_text(
        _text_of(source),
        variables=dict(map(_variable, arguments.variables)),
        size=size,
        where=disk.path_text(source),
        include=lambda name: _included(source, name),
        engine=arguments.engine,
    )
    if imported.problems:
        print(visible(imported.text))
        raise_all(imported.problems)
    disk.make_directory(path.parent)
    text = job_sweep(name, visible(source.name), imported.text, imported.space_bytes)
    disk.replace_file(path, text.encode())
    print(f"written: {disk.path_text(path)}")
    for words in change_words(imported.changes, most=None):
        print(visible(f"changed: {words}"))
    print(f"needs:   {format_bytes(imported.space_bytes)} on each file system; --size makes it smaller")
    print(f"next:    change its file systems, then: mountlab sweep check {name}")
    return 0


def _text_of(source: Path) -> str:
    """Return the text of a job file; comments in other encodings than UTF-8 do no harm."""
    from mountlab.results.plain_files import LARGEST_NAMED

    try:
        return disk.read_plain(source, LARGEST_NAMED).decode("utf-8", errors="replace")
    except OSError as error:
        raise StoreError("no such job file", where=disk.path_text(source), got=error.strerror or str(error)) from error


def _included(source: Path, name: str) -> str | None:
    """Return the text of a file beside a job file; None where there is none."""
    from mountlab.results.plain_files import read_below

    try:
        return read_below(source.parent, name, disk.path_text(source))
    except StoreError:
        return None


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise ParameterError("not a value of a variable", where="--var", got=text, allowed="NAME=VALUE")
    return name, value
