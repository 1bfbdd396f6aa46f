"""Histories read out of the catalog, which is brought up to date before."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mountlab.analysis.box_facts import DISKS, texts
from mountlab.analysis.history import History, HistoryPoint, Key, histories
from mountlab.analysis.same_cells import same_workload
from mountlab.core import numbers
from mountlab.core.box_facts import COMPARED, BoxFacts
from mountlab.core.errors import InputError, did_you_mean
from mountlab.core.metrics import METRICS, Better
from mountlab.results import catalog, paths
from mountlab.results.catalog import Built, QueryResult
from mountlab.tools.own_metrics import defined

_POINTS = """
    SELECT r.sweep, r.box, c.cell, c.metric, c.label, c.unit, c.asked, c.answer, c.run, r.created_at, c.n, c.censored,
        c.mean, c.sd, c.log_mean, c.log_sd, c.filesystem, c.workload,
        c.factors::VARCHAR AS factors, json_keys(r.parameters, '$.filesystems') AS filesystems
    FROM cells AS c JOIN runs AS r ON r.run = c.run
    WHERE r.copy_of IS NULL AND r.created_at IS NOT NULL
"""
_KEPT = (*(key for keys in COMPARED.values() for key in keys), *DISKS)
"""The facts that may explain a change."""
_RUNS = f"""
    SELECT run, mountlab_version, git_commit, (facts->'programs')::VARCHAR, facts->{[f"/{key}" for key in _KEPT]}
    FROM runs WHERE copy_of IS NULL
"""  # noqa: S608  # names of ours
Say = Callable[[str], None]
Row = Mapping[str, Any]
"""A row of _POINTS, by the names of its columns."""


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """Which histories; None: all."""

    sweep: str | None = None
    box: str | None = None
    cell: str | None = None
    metric: str | None = None
    """None: those that the answers are about."""
    kernel: str | None = None
    """Runs on kernels whose release begins so."""
    since: datetime | None = None
    until: datetime | None = None


@dataclass(frozen=True)
class Years:
    """What was asked of the catalog, and the histories that it gave."""

    results: Path
    wanted: Wanted
    histories: tuple[History, ...]
    built: Built

    def notes(self) -> list[str]:
        """Return what a reader should know of what is not there, or is there more than once."""
        built = self.built
        undated, copies = built.runs - built.dated, len(built.copies)
        names = {(h.key.sweep, h.key.box, h.key.cell, h.key.metric, h.key.label) for h in self.histories}
        twice = len(self.histories) - len(names)
        doubtful = {
            f"{numbers.counted(undated, 'run')} do not say when they began, and are in no history": undated,
            f"{numbers.counted(copies, 'directory')} hold a run that is there already: it counts once": copies,
            "a sweep asked something else of a cell under the same name: each has a history of its own": twice,
        }
        return [*doubts(built), *(text for text, count in doubtful.items() if count)]


def doubts(built: Built) -> list[str]:
    """Return what a reader should know about runs that cannot be read and about altered derived files."""
    doubtful = {
        f"{numbers.counted(len(built.problems), 'run')} cannot be read; `mountlab catalog` says why": built.problems,
        f"{numbers.counted(len(built.altered), 'run')} hold derived files that were altered after they were written: "
        "figures are derived again from the raw output; `mountlab catalog` names them": built.altered,
    }
    return [text for text, found in doubtful.items() if found]


def load_years(results: Path | None = None, wanted: Wanted | None = None, *, say: Say = lambda _: None) -> Years:
    """Return the histories below a directory of results, as `read_years` does. Raises InputError where there is none,
    and as `catalog.build` does."""
    years, own = _read(catalog.build((results or paths.RESULTS).resolve(), say=say), wanted or Wanted())
    if not years.histories:
        got = _said(years.wanted)
        raise InputError("nothing was measured that fits", where="history", got=got, allowed=_allowed(own))
    return years


def read_years(built: Built, wanted: Wanted | None = None) -> Years:
    """Return the histories of a catalog; none where nothing was measured. Filters of sweep, box, kernel and dates
    choose runs; those of cell and metric choose what is shown, after changes were looked for: they are the same
    whatever is shown.

    Raises InputError for a filter that no run fits.
    """
    return _read(built, wanted or Wanted())[0]


def _read(built: Built, wanted: Wanted) -> tuple[Years, list[tuple[Key, HistoryPoint]]]:
    with catalog.opened(built.file) as connection:
        _check_names(connection, wanted)
        clause, values = _where(wanted)
        found = catalog.ask(connection, _POINTS + clause, values)
        rows = [dict(zip(found.columns, row, strict=True)) for row in found.rows]
        facts = _facts(
            catalog.ask(connection, _RUNS + clause.replace("r.", ""), values) if rows else QueryResult((), [])
        )
        directions = _directions(connection, rows)
    names = _names(rows)
    own = [each for each in _points(rows, facts, directions, names) if _in_family(each[0], wanted)]
    cells = {name for (*_, cell), name in names.items() if cell == wanted.cell}
    shown = tuple(each for each in histories(own) if _is_shown(each.key, wanted, cells))
    return Years(built.file.parent, wanted, shown, built), own


def histories_of(results: str | Path | None = None, **wanted: str | None) -> tuple[History, ...]:
    """Return the histories below a directory of results, oldest run first: what a notebook asks for. `wanted` are names
    as in `Wanted`; dates as a person types them. Raises as `load_years` does."""
    dates: dict[str, Any] = {name: moment(text) for name in ("since", "until") if (text := wanted.get(name))}
    names: dict[str, Any] = {name: value for name, value in wanted.items() if name not in ("since", "until")}
    return load_years(Path(results) if results else None, Wanted(**names, **dates)).histories


def moment(text: str) -> datetime:
    """Return a date, or a date and a time, as a person types it; UTC where no zone is said. Raises InputError."""
    try:
        read = datetime.fromisoformat(text)
    except ValueError as error:
        allowed = "such as 2026-01-31, or 2026-01-31T12:00"
        raise InputError("not a date", where="since or until", got=repr(text), allowed=allowed) from error
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def _where(wanted: Wanted) -> tuple[str, list[object]]:
    """Return which runs, as SQL over `runs AS r`."""
    parts: list[tuple[str, object | None]] = [
        ("r.sweep = ?", wanted.sweep),
        ("r.box = ?", wanted.box),
        ("starts_with(r.kernel, ?)", wanted.kernel),
        ("r.created_at >= ?", _plain(wanted.since)),
        ("r.created_at < ?", _plain(wanted.until)),
    ]
    used = [(clause, value) for clause, value in parts if value is not None]
    return "".join(f" AND {clause}" for clause, _ in used), [value for _, value in used]


def _plain(at: datetime | None) -> datetime | None:
    """In UTC, without its zone."""
    return at and (at.astimezone(UTC).replace(tzinfo=None) if at.tzinfo else at)


def _in_family(key: Key, wanted: Wanted) -> bool:
    """Return whether a figure is looked at: those of the answer always, others where their metric is asked for."""
    compared = key.metric in METRICS or key.better in ("higher", "lower")
    return compared and (key.answer or key.metric == wanted.metric)


def _is_shown(key: Key, wanted: Wanted, cells: Collection[str]) -> bool:
    """`cells`: the names under which the cell that is asked for is known."""
    metric = wanted.metric
    return (wanted.cell is None or key.cell in cells) and (key.metric == metric if metric is not None else key.answer)


def _directions(connection: Any, rows: Sequence[Row]) -> dict[tuple[str, str], Better]:
    """Return what was asked of a cell, and a metric that its sweep defines, to the direction of that metric."""
    wanted = {(row["asked"], row["metric"]) for row in rows if row["metric"] not in METRICS}
    if not wanted:
        return {}
    definitions = dict(catalog.ask(connection, "SELECT asked, definition::VARCHAR FROM definitions", []).rows)
    own = {asked: defined(json.loads(definitions[asked])["workload"]) for asked, _ in wanted if asked in definitions}
    return {(asked, name): own[asked][name].better for asked, name in wanted if name in own.get(asked, {})}


def _names(rows: Sequence[Row]) -> dict[tuple[str, str, str], str]:
    """Return sweep, box and cell to the name of the cell in its first run: later ones may have another order of
    factors."""
    first: dict[tuple[Any, ...], str] = {}
    found: dict[tuple[str, str, str], str] = {}
    for row in sorted(rows, key=lambda row: (row["created_at"], row["run"])):
        if (name := _cell_of(row)) not in found:
            same = (*name[:2], row["filesystem"], same_workload(row["workload"], json.loads(row["factors"])))
            found[name] = first.setdefault(same, row["cell"])
    return found


def _cell_of(row: Row) -> tuple[str, str, str]:
    return row["sweep"], row["box"], row["cell"]


def _points(
    rows: Sequence[Row],
    facts: Mapping[str, Mapping[str, str]],
    directions: Mapping[tuple[str, str], Better],
    names: Mapping[tuple[str, str, str], str],
) -> Iterator[tuple[Key, HistoryPoint]]:
    for row in rows:
        said = {name: row[name] for name in ("sweep", "box", "metric", "label", "unit", "asked")}
        asked = row["asked"], row["metric"]
        key = Key(**said, cell=names[_cell_of(row)], answer=bool(row["answer"]), better=directions.get(asked, ""))
        moments = ("mean", "sd", "log_mean", "log_sd")
        figures = {name: math.nan if row[name] is None else float(row[name]) for name in moments}
        run, at, n, late = row["run"], row["created_at"].replace(tzinfo=UTC), row["n"], row["censored"]
        name, order = row["filesystem"], row["filesystems"] or ()
        yield (
            key,
            HistoryPoint(
                run=run,
                at=at,
                n=n,
                censored=late,
                filesystem=name,
                filesystems=tuple(dict.fromkeys((*order, name))),
                facts=facts.get(run, {}),
                **figures,
            ),
        )


def _facts(rows: QueryResult) -> dict[str, dict[str, str]]:
    """Run to what may have changed between it and another."""
    found: dict[str, dict[str, str]] = {}
    known: dict[tuple[str | None, ...], dict[str, str]] = {}
    for run, mountlab, commit, programs, kept in rows.rows:
        same = (mountlab, commit, programs, *(kept or ()))
        if same not in known:
            own = {"Mountlab": mountlab, "Mountlab's commit": commit}
            versions = {name: version for name, version in own.items() if version}
            known[same] = {**_texts(kept or ()), **versions, **_versions(programs)}
        found[run] = known[same]
    return found


def _texts(kept: Sequence[str | None]) -> dict[str, str]:
    """Return the facts of _KEPT by the names that people read."""
    return texts(BoxFacts.from_record({key: json.loads(text) for key, text in zip(_KEPT, kept, strict=False) if text}))


def _versions(kept: str | None) -> dict[str, str]:
    """Return the version of each program of the box that says one."""
    read = json.loads(kept) if kept else None
    programs = read.items() if isinstance(read, dict) else ()
    versions = {name: each.get("version") for name, each in programs if isinstance(each, dict)}
    return {name: str(version) for name, version in versions.items() if version}


# ── what is wrong with a filter ──────────────────────────────────────────────────────────────────────────────────────


def _check_names(connection: Any, wanted: Wanted) -> None:
    """Raise InputError for a name that no run has."""
    for what, table, got in (
        ("sweep", "runs", wanted.sweep),
        ("box", "runs", wanted.box),
        ("cell", "cells", wanted.cell),
        ("metric", "cells", wanted.metric),
    ):
        if got is None:
            continue
        sql = f"SELECT DISTINCT {what} FROM {table} ORDER BY {what}"  # noqa: S608  # names of ours
        rows = catalog.ask(connection, sql).rows
        known = [str(row[0]) for row in rows]
        if got not in known:
            raise InputError(
                f"no run has this {what}",
                where=f"--{what}",
                got=repr(got),
                allowed=_some(known),
                next_step=did_you_mean(got, known),
            )


def _some(names: Sequence[str]) -> str:
    return numbers.first_few(names, 12) or "none yet: no trial of any run gave a figure"


def _said(wanted: Wanted) -> str:
    given = {name: value for name, value in vars(wanted).items() if value is not None}
    return ", ".join(f"{name} {value}" for name, value in given.items()) or "everything"


def _allowed(own: Sequence[tuple[Key, HistoryPoint]]) -> str:
    return _some(sorted({f"{key.cell}: {key.metric}" for key, _ in own}))
