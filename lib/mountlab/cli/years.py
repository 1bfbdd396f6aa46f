"""Verbs for years of results: catalog, history, query."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Timer
from typing import TYPE_CHECKING, Any

from mountlab.cli.shared import Arguments, json_text, say, show_csv, verb
from mountlab.core import disk
from mountlab.core.text import lines_of, one_line

if TYPE_CHECKING:
    from mountlab.results.catalog import Answer, Built
    from mountlab.results.histories import Wanted

_MOST_ROWS = 1_000
"""Rows of an answer in the terminal."""
_MOST_NAMED = 5
_LONGEST_S = 24 * 3600.0
"""Of a query."""
_LATE_S = 5.0
"""How long one that was cancelled may take to end."""


def add(verbs: Any) -> None:
    """Declare them."""
    catalog = verb(
        verbs,
        "catalog",
        _catalog,
        "one fast table of all runs, brought up to date, and a page for each change",
    )
    catalog.add_argument("results", type=Path, nargs="?", help="the directory of the runs (default: results/)")
    catalog.add_argument("--anew", action="store_true", help="read every run again, changed or not")
    catalog.add_argument(
        "--check",
        type=int,
        default=None,
        metavar="N",
        help="parse the raw output of N runs again, drawn at random; exit code 1 where a figure is another",
    )
    catalog.add_argument("--json", action="store_true", help="as data")
    _add_history(verbs)
    query = verb(verbs, "query", _query, "an SQL query over all runs; reads only, and nothing but the catalog")
    query.add_argument("sql", help='such as "SELECT box, kernel, count(*) FROM runs GROUP BY ALL"; DESCRIBE runs')
    query.add_argument("--time-limit", default="60s", metavar="TIME", help="cancel it after so long (default: 60s)")
    _results(query)
    how = query.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="as data, all rows")
    how.add_argument("--csv", action="store_true", help="as CSV, all rows")


def _add_history(verbs: Any) -> None:
    history = verb(verbs, "history", _history, "how figures went over dates and kernels, and where a level changed")
    for name, text in (
        ("sweep", "the name of one sweep"),
        ("box", "the name of one box"),
        ("cell", "one cell, such as 'ext4/fio bs=4KiB'"),
        ("metric", "one metric (default: those of the answers)"),
        ("kernel", "runs on kernels whose release begins so"),
        ("since", "runs from this date on, such as 2026-01-31"),
        ("until", "runs before this date"),
    ):
        history.add_argument(f"--{name}", help=text)
    history.add_argument("--by", choices=("kernel", "os", "year", "month"), help="runs taken together")
    _results(history)
    how = history.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="as data")
    how.add_argument("--csv", action="store_true", help="one row a run and figure, as CSV")
    how.add_argument("--page", action="store_true", help="also as a page below results/, by the notebook of histories")


def _results(parser: Any) -> None:
    parser.add_argument("--results", type=Path, help="the directory of the runs (default: results/)")


# ── catalog ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _catalog(arguments: Arguments) -> int:
    from mountlab.results import catalog, paths

    results = (arguments.results or paths.RESULTS).resolve()
    built = catalog.build(results, anew=arguments.anew, say=say)
    checked = catalog.check_runs(results, arguments.check, say=say) if arguments.check else None
    pages = _change_pages(results) if built.dated else []
    if arguments.json:
        print(
            json_text(
                {
                    "file": str(built.file),
                    "runs": built.runs,
                    "read": built.read,
                    "gone": built.gone,
                    "from_raw": built.from_raw,
                    "altered": built.altered,
                    "problems": built.problems,
                    "copies": built.copies,
                    "changes": list(map(str, pages)),
                    "checked": checked and {"runs": checked.runs, "wrong": checked.wrong},
                }
            )
        )
    else:
        print(lines_of(_said(built, pages)))
        if checked:
            wrong = [f"WRONG: {run}: {why}" for run, why in checked.wrong.items()]
            wrong.append(f"{checked.runs - len(wrong)} of {checked.runs} checked runs are as their raw output says")
            print(lines_of(wrong))
    return 1 if checked and checked.wrong else 0


def _change_pages(results: Path) -> list[Path]:
    from mountlab.report.chronicle import write_changes
    from mountlab.report.execute import refresh_index
    from mountlab.results.histories import read_years

    pages = write_changes(read_years(results))
    refresh_index(results)
    return pages


def _said(built: Built, pages: Sequence[Path]) -> Iterator[str]:

    yield f"catalog: {disk.shown(built.file)}: {built.runs} runs; {built.read} read now, {built.gone} gone"
    if built.from_raw:
        count, names = len(built.from_raw), _some(built.from_raw)
        yield f"{count} read from raw output, which takes longer; `mountlab reparse RUN` stamps its figures ({names})"
    for run, files in list(built.altered.items())[:_MOST_NAMED]:
        yield (
            f"altered after it was written: {run}: {files}; its figures are derived again from the raw output, and "
            f"`mountlab reparse RUN` writes the file again"
        )
    if len(built.altered) > _MOST_NAMED:
        yield f"and {len(built.altered) - _MOST_NAMED} more; mountlab catalog --json has all of them"
    for run, original in list(built.copies.items())[:_MOST_NAMED]:
        yield f"counted once: {run} is a copy of {original}"
    if len(built.copies) > _MOST_NAMED:
        yield f"and {len(built.copies) - _MOST_NAMED} more copies"
    for run, why in list(built.problems.items())[:_MOST_NAMED]:
        yield f"cannot be read: {run}: {why}"
    if len(built.problems) > _MOST_NAMED:
        yield f"and {len(built.problems) - _MOST_NAMED} more; mountlab catalog --json has all of them"
    yield f"changes: {len(pages)}"
    yield from (f"report: {disk.shown(page)}" for page in pages[:_MOST_NAMED])


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


# ── history ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _history(arguments: Arguments) -> int:
    from mountlab.report.history_text import history_json, history_rows, history_text
    from mountlab.results.histories import load_years

    wanted = _wanted(arguments)
    years = load_years(arguments.results, wanted, say=say)
    if arguments.json:
        print(json_text(history_json(years.histories)))
        return 0
    if arguments.csv:
        show_csv(history_rows(years.histories))
        return 0
    for line in years.notes():
        say(f"note: {line}")
    print(history_text(years.histories, by=arguments.by), flush=True)
    if arguments.page:
        from mountlab.report.chronicle import write_history

        print(f"\nreport: {disk.shown(write_history(wanted, results=years.results))}")
    return 0


def _wanted(arguments: Arguments) -> Wanted:
    from mountlab.results.histories import Wanted, moment

    dates: dict[str, Any] = {name: moment(text) for name in ("since", "until") if (text := getattr(arguments, name))}
    names: dict[str, Any] = {name: getattr(arguments, name) for name in ("sweep", "box", "cell", "metric", "kernel")}
    return Wanted(**names, **dates)


# ── query ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _query(arguments: Arguments) -> int:
    from mountlab.results import catalog, paths
    from mountlab.results.histories import doubts

    limit_s = _time_limit(arguments.time_limit)
    built = catalog.build((arguments.results or paths.RESULTS).resolve(), say=say)
    for line in doubts(built):
        say(f"note: {line}")
    with catalog.opened(built.file) as connection, _ended_after(limit_s):
        answer = catalog.ask(connection, arguments.sql, limit_s=limit_s)
    if arguments.json:
        rows = [_with_text_keys(dict(zip(answer.columns, row, strict=True))) for row in answer.rows]
        print(json_text(rows, default=str))
    elif arguments.csv:
        show_csv([answer.columns, *answer.rows])
    else:
        print("\n".join(_table(answer)))
    return 0


def _time_limit(text: str) -> float:
    from mountlab.core.errors import InputError
    from mountlab.core.units import parse_seconds

    limit_s = parse_seconds(text, where="--time-limit")
    if not 0 < limit_s <= _LONGEST_S:
        raise InputError(
            "a query needs some time, and an end", where="--time-limit", got=text, allowed="more than 0s, at most 24h"
        )
    return limit_s


@contextmanager
def _ended_after(limit_s: float) -> Iterator[None]:
    """End this process where a query that was cancelled does not end: DuckDB looks for that between two pieces of its
    work, and a piece may be long. It only reads, so nothing is lost."""
    timer = Timer(limit_s + _LATE_S, _end, (limit_s,))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _end(limit_s: float) -> None:
    from mountlab.results import catalog

    error = catalog.late_error(limit_s)
    say(f"error: {error}")
    os._exit(error.exit_code)


def _with_text_keys(value: Any) -> Any:
    """A value whose maps have keys that JSON knows."""
    if isinstance(value, dict):
        return {str(key): _with_text_keys(each) for key, each in value.items()}
    return list(map(_with_text_keys, value)) if isinstance(value, list | tuple) else value


def _table(answer: Answer) -> Iterator[str]:
    """The first rows in columns; what would move a terminal's cursor is spelt out."""
    shown = [[_cell(value) for value in row] for row in answer.rows[:_MOST_ROWS]]
    rows = [list(map(_cell, answer.columns)), *shown]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip()
    if len(answer.rows) > _MOST_ROWS:
        yield f"... {len(answer.rows) - _MOST_ROWS} more rows: --csv or --json give all of them"


def _cell(value: object) -> str:
    text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    return one_line(" ".join(text.split()))
