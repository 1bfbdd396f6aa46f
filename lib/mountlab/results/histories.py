"""Histories read out of the catalog, which is brought up to date before."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from mountlab.analysis.box_facts import DISKS, texts
from mountlab.analysis.history import History, HistoryPoint, Key, histories
from mountlab.analysis.same_cells import same_workload
from mountlab.core import numbers
from mountlab.core.box_facts import COMPARED, BoxFacts
from mountlab.core.errors import InputError, did_you_mean
from mountlab.core.metrics import METRICS, Better
from mountlab.results import catalog, paths
from mountlab.results.catalog import Built
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
CellName = tuple[str, str, str]
"""Sweep, box and cell."""


class Row(NamedTuple):
    """A row of _POINTS."""

    sweep: str
    box: str
    cell: str
    metric: str
    label: str
    unit: str
    asked: str
    """A hash of what was asked of the cell."""
    answer: bool
    run: str
    created_at: datetime
    n: int
    censored: int
    mean: float | None
    sd: float | None
    log_mean: float | None
    log_sd: float | None
    filesystem: str
    workload: str
    factors: str
    """As JSON."""
    filesystems: list[str] | None

    @property
    def cell_name(self) -> CellName:
        return self.sweep, self.box, self.cell


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

    @classmethod
    def of(cls, texts: Mapping[str, str | None]) -> Wanted:
        """Return filters by their names, dates as a person types them. Raises InputError."""
        names = {name: text for name, text in texts.items() if name not in ("since", "until")}
        since, until = (parse_date(text) if (text := texts.get(name)) else None for name in ("since", "until"))
        return cls(since=since, until=until, **names)


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
    return [text for text, affected in doubtful.items() if affected]


def load_years(results: Path | None = None, wanted: Wanted | None = None, *, say: Say = lambda _: None) -> Years:
    """Return the histories below a directory of results, as `read_years` does. Raises InputError where there is none,
    and as `catalog.build` does."""
    years, points = _read(catalog.build((results or paths.RESULTS).resolve(), say=say), wanted or Wanted())
    if not years.histories:
        got = ", ".join(f"{name} {value}" for name, value in vars(years.wanted).items() if value is not None)
        allowed = _some(sorted({f"{key.cell}: {key.metric}" for key, _ in points}))
        raise InputError("nothing was measured that fits", where="history", got=got or "everything", allowed=allowed)
    return years


def read_years(built: Built, wanted: Wanted | None = None) -> Years:
    """Return the histories of a catalog; none where nothing was measured. Wanted of sweep, box, kernel and dates
    choose runs; those of cell and metric choose what is shown, after changes were looked for: they are the same
    whatever is shown.

    Raises InputError for a filter that no run fits.
    """
    return _read(built, wanted or Wanted())[0]


def _read(built: Built, wanted: Wanted) -> tuple[Years, list[tuple[Key, HistoryPoint]]]:
    with catalog.opened(built.file) as connection:
        _check_names(connection, wanted)
        clause, values = _where(wanted)
        rows = [Row(*row) for row in catalog.ask(connection, _POINTS + clause, values).rows]
        facts = _facts(catalog.ask(connection, _RUNS + clause.replace("r.", ""), values).rows if rows else ())
        directions = _directions(connection, rows)
    names = _names(rows)
    points = [
        (key, _point(row, facts.get(row.run, {})))
        for row in rows
        for key in [_key(row, names[row.cell_name], directions)]
        if (key.metric in METRICS or key.better in ("higher", "lower"))
        and (key.answer or key.metric == wanted.metric)  # others than those of the answer, where they are asked for
    ]
    cells = {name for (*_, cell), name in names.items() if cell == wanted.cell}
    chosen = []
    for history in histories(points):
        key = history.key
        is_metric = key.answer if wanted.metric is None else key.metric == wanted.metric
        if is_metric and (wanted.cell is None or key.cell in cells):
            chosen.append(history)
    return Years(built.file.parent, wanted, tuple(chosen), built), points


def histories_of(results: str | Path | None = None, **wanted: str | None) -> tuple[History, ...]:
    """Return the histories below a directory of results, oldest run first: what a notebook asks for. `wanted` are names
    as in `Wanted`; dates as a person types them. Raises as `load_years` does."""
    return load_years(Path(results) if results else None, Wanted.of(wanted)).histories


def parse_date(text: str) -> datetime:
    """Return a date, or a date and a time, as a person types it; UTC where no zone is said. Raises InputError."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        allowed = "such as 2026-01-31, or 2026-01-31T12:00"
        raise InputError("not a date", where="since or until", got=repr(text), allowed=allowed) from error
    return at if at.tzinfo else at.replace(tzinfo=UTC)


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


def _directions(connection: Any, rows: Sequence[Row]) -> dict[tuple[str, str], Better]:
    """Return what was asked of a cell, and a metric that its sweep defines, to the direction of that metric."""
    missing = {(row.asked, row.metric) for row in rows if row.metric not in METRICS}
    if not missing:
        return {}
    definitions = dict(catalog.ask(connection, "SELECT asked, definition::VARCHAR FROM definitions", []).rows)
    directions = {}
    for asked, name in missing:
        metrics = defined(json.loads(definitions[asked])["workload"]) if asked in definitions else {}
        if name in metrics:
            directions[asked, name] = metrics[name].better
    return directions


def _names(rows: Sequence[Row]) -> dict[CellName, str]:
    """Return each cell to its name in its first run: later ones may have another order of factors."""
    first: dict[tuple[object, ...], str] = {}
    names: dict[CellName, str] = {}
    for row in sorted(rows, key=lambda row: (row.created_at, row.run)):
        if row.cell_name not in names:
            same = (row.sweep, row.box, row.filesystem, same_workload(row.workload, json.loads(row.factors)))
            names[row.cell_name] = first.setdefault(same, row.cell)
    return names


def _key(row: Row, cell: str, directions: Mapping[tuple[str, str], Better]) -> Key:
    return Key(
        sweep=row.sweep,
        box=row.box,
        cell=cell,
        metric=row.metric,
        label=row.label,
        unit=row.unit,
        asked=row.asked,
        answer=bool(row.answer),
        better=directions.get((row.asked, row.metric), ""),
    )


def _point(row: Row, facts: Mapping[str, str]) -> HistoryPoint:
    return HistoryPoint(
        run=row.run,
        at=row.created_at.replace(tzinfo=UTC),
        n=row.n,
        censored=row.censored,
        mean=_number(row.mean),
        sd=_number(row.sd),
        log_mean=_number(row.log_mean),
        log_sd=_number(row.log_sd),
        filesystem=row.filesystem,
        filesystems=tuple(dict.fromkeys((*(row.filesystems or ()), row.filesystem))),
        facts=facts,
    )


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def _facts(rows: Iterable[tuple[Any, ...]]) -> dict[str, dict[str, str]]:
    """Return run to what may have changed between it and another."""
    by_run: dict[str, dict[str, str]] = {}
    by_facts: dict[tuple[str | None, ...], dict[str, str]] = {}
    for run, mountlab, commit, programs, facts in rows:
        same = (mountlab, commit, programs, *(facts or ()))
        if same not in by_facts:
            own = {"Mountlab": mountlab, "Mountlab's commit": commit}
            versions = {name: version for name, version in own.items() if version}
            record = {key: json.loads(text) for key, text in zip(_KEPT, facts or (), strict=False) if text}
            by_facts[same] = {**texts(BoxFacts.from_record(record)), **versions, **_versions(programs)}
        by_run[run] = by_facts[same]
    return by_run


def _versions(programs_text: str | None) -> dict[str, str]:
    """Return the version of each program of the box that says one."""
    record = json.loads(programs_text) if programs_text else None
    programs = record.items() if isinstance(record, dict) else ()
    versions = {name: program.get("version") for name, program in programs if isinstance(program, dict)}
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
        names = [str(row[0]) for row in rows]
        if got not in names:
            raise InputError(
                f"no run has this {what}",
                where=f"--{what}",
                got=repr(got),
                allowed=_some(names),
                next_step=did_you_mean(got, names),
            )


def _some(names: Sequence[str]) -> str:
    return numbers.first_few(names, 12) or "none yet: no trial of any run gave a figure"
