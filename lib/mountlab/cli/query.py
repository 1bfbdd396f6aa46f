"""query: run an SQL query over all runs."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Timer
from typing import TYPE_CHECKING, Any

from mountlab.cli.shared import Arguments, json_text, results_option, say, show_csv, verb
from mountlab.core.text import aligned, one_line

if TYPE_CHECKING:
    from mountlab.results.catalog import QueryResult

_MOST_ROWS = 1_000
"""Rows of an answer in the terminal."""
_LONGEST_S = 24 * 3600.0
"""Of a query."""
_LATE_S = 5.0
"""How long one that was cancelled may take to end."""


def add(verbs: Any) -> None:
    query = verb(verbs, "query", _query, "an SQL query over all runs; reads only, and nothing but the catalog")
    query.add_argument("sql", help='such as "SELECT box, kernel, count(*) FROM runs GROUP BY ALL"; DESCRIBE runs')
    query.add_argument("--time-limit", default="60s", metavar="TIME", help="cancel it after so long (default: 60s)")
    results_option(query)
    how = query.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="as data, all rows")
    how.add_argument("--csv", action="store_true", help="as CSV, all rows")


def _query(arguments: Arguments) -> int:
    from mountlab.results import catalog, paths
    from mountlab.results.histories import doubts

    limit_s = _time_limit(arguments.time_limit)
    built = catalog.build((arguments.results or paths.RESULTS).resolve(), say=say)
    for line in doubts(built):
        say(f"note: {line}")
    with catalog.opened(built.file) as connection, _end_after(limit_s):
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
def _end_after(limit_s: float) -> Iterator[None]:
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
    """Return a value whose maps have keys that JSON knows."""
    if isinstance(value, dict):
        return {str(key): _with_text_keys(inner) for key, inner in value.items()}
    return list(map(_with_text_keys, value)) if isinstance(value, list | tuple) else value


def _table(answer: QueryResult) -> Iterator[str]:
    """Yield the first rows in columns; what would move a terminal's cursor is spelt out."""
    shown = [[_cell(value) for value in row] for row in answer.rows[:_MOST_ROWS]]
    yield from aligned([list(map(_cell, answer.columns)), *shown])
    if len(answer.rows) > _MOST_ROWS:
        yield f"... {len(answer.rows) - _MOST_ROWS} more rows: --csv or --json give all of them"


def _cell(value: object) -> str:
    text = "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
    return one_line(" ".join(text.split()))
