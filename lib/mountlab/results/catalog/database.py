"""The catalog as DuckDB keeps it: one file, written beside the old one and then put in its place, and read only.

What a person or a page asks is answered by a connection that can neither write nor reach any other file: the database
is opened read-only, DuckDB's access to files, to the network and to extensions is off, and its settings are locked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa

from mountlab.core.disk import path_text
from mountlab.core.errors import InputError, StoreError, did_you_mean
from mountlab.core.text import one_line
from mountlab.results.catalog.reading import RUN_TYPES, RunRows
from mountlab.results.stamp import FIGURES

if TYPE_CHECKING:  # at run time only in the functions: it is an extra
    from duckdb import DuckDBPyConnection

    Connection = DuckDBPyConnection

VERSION = 8
"""Of the tables below: a catalog of another one is rebuilt."""
MEMORY = "1GB"
THREADS = 2
_AGAIN_S = 0.05
"""Between two cancels of one query."""
MOST_ROWS = 1_000_000
"""Of an answer. A row takes about a kilobyte of memory."""
_AT_ONCE = 10_000
TABLES = {
    "runs": """run VARCHAR, run_id VARCHAR, sweep VARCHAR, question VARCHAR, box VARCHAR, status VARCHAR,
        created_at TIMESTAMP, finished_at TIMESTAMP, trials INTEGER, ok INTEGER, failed INTEGER, hostname VARCHAR,
        kernel VARCHAR, os VARCHAR, machine VARCHAR, cpu_model VARCHAR, cpus BIGINT, memory_bytes BIGINT,
        mountlab_version VARCHAR, git_commit VARCHAR, seed BIGINT, batch VARCHAR, figures_from VARCHAR, facts JSON,
        parameters JSON, copy_of VARCHAR""",
    "trials": """run VARCHAR, trial_id VARCHAR, block INTEGER, warmup BOOLEAN, cell VARCHAR, filesystem VARCHAR,
        workload VARCHAR, tool VARCHAR, factors JSON, mount VARCHAR, status VARCHAR, reason VARCHAR,
        started_at TIMESTAMP, elapsed_s DOUBLE, attempts INTEGER, set_aside BOOLEAN, seed BIGINT,
        diagnostic BOOLEAN, exhausted BOOLEAN""",
    "measurements": """run VARCHAR, trial_id VARCHAR, block INTEGER, warmup BOOLEAN, cell VARCHAR, filesystem VARCHAR,
        workload VARCHAR, tool VARCHAR, factors JSON, metric VARCHAR, label VARCHAR, unit VARCHAR, value DOUBLE,
        step DOUBLE""",
    "why_layers": """run VARCHAR, trial_id VARCHAR, block BIGINT, cell VARCHAR, filesystem VARCHAR, workload VARCHAR,
        operation VARCHAR, statistic VARCHAR, layer VARCHAR, through VARCHAR, seconds DOUBLE""",
    "why_work": """run VARCHAR, trial_id VARCHAR, block BIGINT, cell VARCHAR, filesystem VARCHAR, workload VARCHAR,
        operation VARCHAR, quantity VARCHAR, label VARCHAR, value DOUBLE, unit VARCHAR""",
    "why_traces": """run VARCHAR, trial_id VARCHAR, block BIGINT, cell VARCHAR, filesystem VARCHAR, workload VARCHAR,
        operation VARCHAR, operations BIGINT, events BIGINT, lost_events BIGINT, window_s DOUBLE, traced_mean DOUBLE,
        tool_mean DOUBLE, withheld VARCHAR, seen DOUBLE, cut VARCHAR,
        traced_in_flight DOUBLE, tool_in_flight DOUBLE""",
    "cells": """run VARCHAR, cell VARCHAR, filesystem VARCHAR, workload VARCHAR, tool VARCHAR, factors JSON,
        metric VARCHAR, label VARCHAR, unit VARCHAR, n INTEGER, censored INTEGER, mean DOUBLE,
        sd DOUBLE, log_mean DOUBLE, log_sd DOUBLE, asked VARCHAR, answer BOOLEAN,
        state VARCHAR, beside VARCHAR""",
    "definitions": "asked VARCHAR PRIMARY KEY, definition JSON",
    "sources": "run VARCHAR, signature VARCHAR, problem VARCHAR",
    "about": "version INTEGER, figures INTEGER, made_at TIMESTAMP",
}
_WHY = ("why_layers", "why_work", "why_traces")
_OF_A_RUN = ("runs", "trials", "measurements", "cells", "sources", *_WHY)
_CELLS = """
    INSERT INTO cells
    SELECT m.run, m.cell, any_value(m.filesystem), any_value(m.workload), any_value(m.tool), any_value(m.factors),
        m.metric, m.label, m.unit, coalesce(any_value(d.n), count(*)), coalesce(any_value(d.censored), 0),
        CASE WHEN any_value(d.n) IS NULL THEN avg(m.value) ELSE any_value(d.figure) END,
        CASE WHEN any_value(d.n) IS NULL THEN stddev_samp(m.value) END,
        CASE WHEN any_value(d.n) IS NULL AND min(m.value) > 0 THEN avg(ln(m.value)) END,
        CASE WHEN any_value(d.n) IS NULL AND min(m.value) > 0 THEN stddev_samp(ln(m.value)) END, any_value(c.asked),
        any_value(list_contains(c.answers, m.metric)), json_extract_string(any_value(m.factors), '$.state'),
        json_extract_string(any_value(m.factors), '$.beside')
    FROM (SELECT * FROM new_measurements WHERE NOT warmup AND isfinite(value)) AS m
    JOIN new_cells AS c ON c.run = m.run AND c.cell = m.cell
    LEFT JOIN new_medians AS d ON d.run = m.run AND d.cell = m.cell AND d.metric = m.metric AND d.label = m.label
        AND d.unit = m.unit
    GROUP BY m.run, m.cell, m.metric, m.label, m.unit
"""
"""Mean and spread of the trials; the median, and no spread, where trials ran into their time limit."""
_UNMEASURED = """
    INSERT INTO cells
    SELECT d.run, d.cell, any_value(t.filesystem), any_value(t.workload), any_value(t.tool), any_value(t.factors),
        d.metric, d.label, d.unit, any_value(d.n), any_value(d.censored), NULL, NULL, NULL, NULL, any_value(c.asked),
        true, json_extract_string(any_value(t.factors), '$.state'),
        json_extract_string(any_value(t.factors), '$.beside')
    FROM new_medians AS d
    JOIN new_trials AS t ON t.run = d.run AND t.cell = d.cell
    JOIN new_cells AS c ON c.run = d.run AND c.cell = d.cell
    WHERE d.n = d.censored
    GROUP BY d.run, d.cell, d.metric, d.label, d.unit
"""
"""The answer of cells whose trials all ran into the time limit."""
_COPIES = """
    UPDATE runs SET copy_of = firsts.first
    FROM (SELECT run_id, min_by(run, (len(string_split(run, '/')), run)) AS first FROM runs GROUP BY run_id) AS firsts
    WHERE firsts.run_id = runs.run_id AND runs.run <> firsts.first
"""
"""Of two directories with one run the one that lies higher counts, then the first by name."""
_LOCKED: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "allow_unsigned_extensions": "false",
    "temp_directory": "",
    "memory_limit": MEMORY,
    "threads": str(THREADS),
}
_SOURCE = pa.schema([(name, pa.string()) for name in ("run", "signature", "problem")])
_DEFINITION = pa.schema([("asked", pa.string()), ("definition", pa.string())])


class Source(NamedTuple):
    """What was known of a run directory when it was read."""

    signature: str
    """As reading.signature; '' where it is to be read again each time."""
    problem: str = ""
    """Why it cannot be read."""


@dataclass(frozen=True)
class QueryResult:
    """What a query gave: names of columns, and rows of plain values."""

    columns: tuple[str, ...]
    rows: list[tuple[Any, ...]]


# ── writing ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def writing(file: Path) -> Iterator[Connection]:
    """A database to be written: one that is there, or a new one with all tables, all of it one transaction."""
    import duckdb

    is_new = not file.exists()
    connection = duckdb.connect(str(file), config={"memory_limit": MEMORY, "threads": "1"})
    try:
        connection.execute("SET enable_progress_bar = false")
        connection.execute("SET python_enable_replacements = false")
        connection.execute("BEGIN")
        if is_new:
            for name, columns in TABLES.items():
                connection.execute(f"CREATE TABLE {name} ({columns})")
        yield connection
        connection.execute("COMMIT")
        connection.execute("CHECKPOINT")
    finally:
        connection.close()


def forget(connection: Connection, runs: Sequence[str]) -> None:
    """Take all rows of some runs away."""
    connection.register("gone", pa.table({"run": pa.array(runs, pa.string())}))
    for name in _OF_A_RUN:
        connection.execute(f"DELETE FROM {name} WHERE run IN (SELECT run FROM gone)")  # noqa: S608  # names of ours
    connection.unregister("gone")


def add(connection: Connection, rows: Sequence[RunRows]) -> None:
    """Put the rows of some runs in."""
    definitions = {key: text for run in rows for key, text in run.definitions.items()}
    new = {
        "new_runs": pa.Table.from_pylist([run.run for run in rows], RUN_TYPES),
        "new_definitions": pa.table(
            {"asked": list(definitions), "definition": list(definitions.values())}, _DEFINITION
        ),
        "new_trials": pa.concat_tables([run.trials for run in rows]),
        "new_measurements": pa.concat_tables([run.measurements for run in rows], promote_options="permissive"),
        "new_cells": pa.concat_tables([run.cells for run in rows]),
        "new_medians": pa.concat_tables([run.medians for run in rows]),
        **{
            f"new_{name}": pa.concat_tables(tables) for name in _WHY if (tables := [r.why[name] for r in rows if r.why])
        },
    }
    for name, table in new.items():
        connection.register(name, table)
    connection.execute("INSERT INTO runs BY NAME SELECT * FROM new_runs")
    connection.execute("INSERT OR IGNORE INTO definitions SELECT * FROM new_definitions")
    connection.execute("INSERT INTO trials BY NAME SELECT * FROM new_trials")
    connection.execute("INSERT INTO measurements BY NAME SELECT * FROM new_measurements")
    connection.execute(_CELLS)
    connection.execute(_UNMEASURED)
    for name in (name for name in _WHY if f"new_{name}" in new):
        connection.execute(f"INSERT INTO {name} BY NAME SELECT * FROM new_{name}")  # noqa: S608  # names of ours
    for name in new:
        connection.unregister(name)


def note_sources(connection: Connection, sources: Mapping[str, Source]) -> None:
    """Put in what was known of some runs."""
    rows = [{"run": run, **source._asdict()} for run, source in sources.items()]
    connection.register("new_sources", pa.Table.from_pylist(rows, _SOURCE))
    connection.execute("INSERT INTO sources SELECT * FROM new_sources")
    connection.unregister("new_sources")


def settle(connection: Connection) -> None:
    """What depends on all runs: which is a copy of another; what was asked of no cell any more; when this was made."""
    connection.execute("UPDATE runs SET copy_of = NULL WHERE copy_of IS NOT NULL")
    connection.execute(_COPIES)
    connection.execute("DELETE FROM definitions WHERE asked NOT IN (SELECT asked FROM cells)")
    connection.execute("DELETE FROM about")
    connection.execute("INSERT INTO about VALUES (?, ?, now()::TIMESTAMP)", [VERSION, FIGURES])


# ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextmanager
def opened(file: Path) -> Iterator[Connection]:
    """A connection that only reads this one database. Raises StoreError where there is none, or a damaged one."""
    import duckdb

    try:
        connection = duckdb.connect(str(file), read_only=True, config=_LOCKED)
    except duckdb.Error as error:
        got, command = _first_line(error), "mountlab catalog --rebuild"
        raise StoreError("the catalog cannot be read", where=path_text(file), got=got, next_step=command) from error
    try:
        connection.execute("SET enable_progress_bar = false")
        connection.execute("SET python_enable_replacements = false")
        connection.execute("SET lock_configuration = true")
        yield connection
    finally:
        connection.close()


@dataclass(frozen=True)
class Contents:
    """What a catalog holds."""

    sources: dict[str, Source]
    runs: int
    dated: int
    """Of them, those that say when they began."""
    copies: dict[str, str]
    """Run to the one that it is a copy of."""


def contents(connection: Connection) -> Contents:
    """Return what a catalog holds."""
    ((runs, dated),) = connection.execute("SELECT count(*), count(created_at) FROM runs").fetchall()
    copies = connection.execute("SELECT run, copy_of FROM runs WHERE copy_of IS NOT NULL ORDER BY run").fetchall()
    rows = connection.execute("SELECT run, signature, problem FROM sources ORDER BY run").fetchall()
    return Contents({run: Source(*source) for run, *source in rows}, runs, dated, dict(copies))


def known_contents(file: Path) -> Contents | None:
    """Return the same of a catalog that can be added to; None where there is no such."""
    import duckdb

    if not file.exists():
        return None
    try:
        with opened(file) as connection:
            about = connection.execute("SELECT version, figures FROM about").fetchall()
            return contents(connection) if about == [(VERSION, FIGURES)] else None
    except (StoreError, duckdb.Error):
        return None


def ask(
    connection: Connection, sql: str, values: Sequence[object] = (), *, limit_s: float | None = None
) -> QueryResult:
    """Return the answer to one query. `limit_s`: after so many seconds it is cancelled. Raises InputError for one that
    cannot be answered, with DuckDB's own words, for none or several, and for one that takes too long or gives too
    much."""
    # Aside, since DuckDB does not always look for Ctrl-C while others of its threads work.
    with ThreadPoolExecutor(1, "query") as aside:
        answer = aside.submit(_answer, connection, sql, values)
        try:
            return answer.result(limit_s)
        except TimeoutError as error:
            raise late_error(limit_s or 0.0) from error
        finally:
            while not answer.done():  # a cancel that comes before its query is forgotten
                connection.interrupt()
                wait([answer], _AGAIN_S)


def _answer(connection: Connection, sql: str, values: Sequence[object]) -> QueryResult:
    import duckdb

    try:
        _check_one(connection, sql)
        result = connection.execute(sql, list(values))
        columns = tuple(str(column[0]) for column in result.description or ())
        return QueryResult(columns, _rows(result))
    except duckdb.Error as error:
        named = re.findall(r"\b(?:from|join|describe)\s+(\w+)", sql, re.IGNORECASE)
        near = [did_you_mean(name, TABLES) for name in named if name.lower() not in TABLES]
        raise InputError(
            "the query cannot be answered",
            where="query",
            got=_first_line(error),
            allowed=f"SQL that reads, over {', '.join(sorted(TABLES))}; {MEMORY} of memory",
            next_step=next((hint for hint in near if hint), 'mountlab query "DESCRIBE runs" tells the columns'),
        ) from error


def late_error(limit_s: float) -> InputError:
    """Return the error for a query that was cancelled."""
    return InputError(
        "the query takes too long and was cancelled",
        where="query",
        got=f"more than {limit_s:g} s",
        allowed="--time-limit, such as 10min",
        next_step="ask for less: a join ON what two tables share (run, cell), or WHERE one sweep; or give it more time",
    )


def _check_one(connection: Connection, sql: str) -> None:
    """Raise InputError unless a text is one statement."""
    try:
        sql.encode()
    except UnicodeEncodeError as error:
        raise InputError("a query is text in UTF-8", where="query", got=str(error)) from error
    count = len(connection.extract_statements(sql))
    if count != 1:
        raise InputError(
            "there is no query" if not count else "only one query at a time",
            where="query",
            got=repr(sql) if not count else f"{count} statements",
            allowed="one statement of SQL that reads",
            next_step='mountlab query "DESCRIBE runs" tells the columns',
        )


def _rows(result: Connection) -> list[tuple[Any, ...]]:
    """Return all rows of an answer. Raises InputError for more of them than memory is meant for."""
    rows: list[tuple[Any, ...]] = []
    while some := result.fetchmany(_AT_ONCE):
        rows += some
        if len(rows) > MOST_ROWS:
            raise InputError(
                "the query gives too many rows",
                where="query",
                got=f"more than {MOST_ROWS:,}",
                allowed=f"{MOST_ROWS:,}",
                next_step="sum them up (GROUP BY), choose some (WHERE), or take them in parts (LIMIT, OFFSET)",
            )
    return rows


def _first_line(error: Exception) -> str:
    return one_line(str(error).strip().splitlines()[0]) if str(error).strip() else type(error).__name__
