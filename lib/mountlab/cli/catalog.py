"""catalog: bring the table of all runs up to date, and write a page for each change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mountlab.cli.arguments import DIRECTORY, argument
from mountlab.cli.shared import Arguments, json_text, say, verb
from mountlab.core import disk
from mountlab.core.text import lines_of

if TYPE_CHECKING:
    from mountlab.results.catalog import Built

_MOST_NAMED = 5
_KEYS = ("runs", "read", "gone", "from_raw", "altered", "problems", "copies")
_ALL = "; mountlab catalog --json has all of them"


def add(verbs: Any) -> None:
    text = "one fast table of all runs, brought up to date, and a page for each change"
    catalog = verb(verbs, "catalog", _catalog, text)
    argument(catalog, DIRECTORY, "results", nargs="?", help="the directory of the runs (default: results/)")
    catalog.add_argument("--rebuild", action="store_true", help="read every run again, changed or not")
    catalog.add_argument(
        "--check",
        type=int,
        default=None,
        metavar="N",
        help="parse the raw output of N runs again, drawn at random; exit code 1 where a figure is another",
    )
    catalog.add_argument("--json", action="store_true", help="as data")


def _catalog(arguments: Arguments) -> int:
    from mountlab.results import catalog, paths

    results = (arguments.results or paths.RESULTS).resolve()
    built = catalog.build(results, rebuild=arguments.rebuild, say=say)
    checked = catalog.check_runs(results, arguments.check, say=say) if arguments.check else None
    pages = _change_pages(built) if built.dated else []
    if arguments.json:
        facts = {key: getattr(built, key) for key in _KEYS}
        parsed = checked and {"runs": checked.runs, "wrong": checked.wrong}
        print(json_text({"file": str(built.file), **facts, "changes": list(map(str, pages)), "checked": parsed}))
    else:
        print(lines_of(_summary(built, pages)))
        if checked:
            wrong = [f"WRONG: {run}: {why}" for run, why in checked.wrong.items()]
            wrong.append(f"{checked.runs - len(wrong)} of {checked.runs} checked runs are as their raw output says")
            print(lines_of(wrong))
    return 1 if checked and checked.wrong else 0


def _change_pages(built: Built) -> list[Path]:
    from mountlab.report.chronicle import write_changes
    from mountlab.report.execute import refresh_index
    from mountlab.results.histories import read_years

    pages = write_changes(read_years(built))
    refresh_index(built.file.parent)
    return pages


def _summary(built: Built, pages: Sequence[Path]) -> Iterator[str]:
    from mountlab.core import numbers

    yield f"catalog: {disk.path_text(built.file)}: {built.runs} runs; {built.read} read now, {built.gone} gone"
    if built.from_raw:
        count, names = len(built.from_raw), numbers.first_few(built.from_raw, _MOST_NAMED)
        yield f"{count} read from raw output, which takes longer; `mountlab reparse RUN` stamps its figures ({names})"
    mended = "its figures are derived again from the raw output, and `mountlab reparse RUN` writes the file again"
    altered = [f"altered after it was written: {run}: {files}; {mended}" for run, files in built.altered.items()]
    yield from _first(altered, _ALL)
    yield from _first([f"counted once: {run} is a copy of {of}" for run, of in built.copies.items()], " copies")
    yield from _first([f"cannot be read: {run}: {why}" for run, why in built.problems.items()], _ALL)
    yield f"changes: {len(pages)}"
    yield from (f"report: {disk.path_text(page)}" for page in pages[:_MOST_NAMED])


def _first(lines: Sequence[str], more: str) -> Iterator[str]:
    yield from lines[:_MOST_NAMED]
    if len(lines) > _MOST_NAMED:
        yield f"and {len(lines) - _MOST_NAMED} more{more}"
