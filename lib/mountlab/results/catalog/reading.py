"""One run directory as rows of the catalog, from what is true of it.

Figures are taken from measurements.parquet where its stamp says that they were made from what lies there now, and read
out of the raw output where it does not: then they are right all the same, and it takes longer.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from mountlab.analysis.time_limits import OF_A_MOUNT, censored_blocks, censored_estimate
from mountlab.analysis.why_frames import Why
from mountlab.core.conditions import BESIDE, STATE, TOGETHER
from mountlab.core.metrics import Metric, known_metric
from mountlab.core.model import Trial
from mountlab.core.names import workload_label
from mountlab.core.run_info import RunInfo
from mountlab.results import derived as derived_files
from mountlab.results import store, tables
from mountlab.results import why as why_files
from mountlab.results.info import read_info, read_trials
from mountlab.results.journal import FILE as JOURNAL
from mountlab.results.stamp import Stamp, digest, read_stamped, stamped, truth_bytes
from mountlab.sweep import promise_entry
from mountlab.tools.own_metrics import defined

FILES = ("run.json", JOURNAL, "exclude.yml", store.MEASUREMENTS)
"""What a run's rows are read from, raw output aside."""
_WATCHED = (*FILES, derived_files.FILE, "estimates.csv", "comparisons.csv", "caveats.csv", "raw", *why_files.FILES)
"""What is looked at to tell whether a run must be read again."""
RAW = "raw output"
WITH_TIMEOUTS = 4
"""The schema from which on the journal alone tells which trials ran into their time limit."""
SETTLED_S = 2.0
"""A file that changed so short a time ago may change again without its times telling."""
_UNLIKE = frozenset({"repeats", "seed", "level", "until", "smallest_effect", "estimate", "blocks", "strict", "metrics"})
"""Of a design: what does not change what a trial is."""
_TRIAL_COLUMNS = tuple(field.name for field in fields(Trial))
_TRIAL_DEFAULTS = {field.name: field.default for field in fields(Trial) if field.default is not MISSING}
"""Values of the columns that rows of an earlier schema lack."""
_FACTS = ("hostname", "kernel", "os", "machine", "cpu_model")
_COUNTS = ("cpus", "memory_bytes")
_ROOM = 1 << 63
_TIMES, _NUMBERS = ("created_at", "finished_at"), ("trials", "ok", "failed", *_COUNTS, "seed")
_RUN_COLUMNS = (
    "run", "run_id", "sweep", "question", "box", "status", *_TIMES, "trials", "ok", "failed", *_FACTS, *_COUNTS,
    "mountlab_version", "git_commit", "seed", "batch", "figures_from", "facts", "parameters",
)  # fmt: skip
RUN_TYPES = pa.schema(
    (name, pa.timestamp("us") if name in _TIMES else pa.int64() if name in _NUMBERS else pa.string())
    for name in _RUN_COLUMNS
)
"""Columns of a run's row."""


TrialRow = Mapping[str, Any]
"""A line of the journal: a dataclass for each of a million would take longer than all else that is done with it."""


@dataclass(frozen=True)
class RunRows:
    """One run: a row of `runs`, and tables of its trials and its figures."""

    run: Mapping[str, object]
    """By RUN_TYPES."""
    status: str
    source: str
    """What its figures were read from: RAW, or the name of a file."""
    trials: pa.Table
    measurements: pa.Table
    cells: pa.Table
    """cell, asked, answers: what was asked of each cell, and the metrics that the answer is about."""
    medians: pa.Table
    """The figures of cells with trials that ran into their time limit."""
    definitions: dict[str, str]
    """What was asked, by its hash, as JSON."""
    why: dict[str, pa.Table]
    """The frames of its diagnostic trials; empty where there are none."""
    altered: tuple[str, ...]
    """Derived files that are not as they were written: nothing was taken from them."""


def signature(run: Path) -> str:
    """Return a text that changes when a run must be read again; '' where that is unknown, since it is being written."""
    states, newest = [], 0
    for name in _WATCHED:
        try:
            stat = (run / name).lstat()
        except FileNotFoundError:
            states.append(f"{name} -")
            continue
        newest = max(newest, stat.st_ctime_ns, stat.st_mtime_ns)
        states.append(f"{name} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns} {stat.st_ino}")
    return "" if newest > time.time_ns() - SETTLED_S * 1e9 else "\n".join(states)


def read_run(path: Path, name: str, *, derived: bool = True) -> RunRows:
    """Return the rows of a run. `name`: its directory, below that of all runs. `derived`: whether figures may be those
    of measurements.parquet. Raises StoreError, or what damaged files raise (listing.DAMAGE)."""
    info = read_info(path)
    truth = {file: truth_bytes(path / file) for file in FILES[:3]}
    digests = {file: digest(data) for file, data in truth.items()}
    altered = tuple(derived_files.altered(path))
    # Derived files of a run of an earlier version have no checksums, and need none.
    is_vouched = not info.has_checksums or (path / derived_files.FILE).exists()
    trusted = derived and is_vouched and not {store.MEASUREMENTS, derived_files.FILE} & set(altered)
    current = _current_figures(path, digests) if trusted else None
    trials: Sequence[TrialRow]
    if current is None:
        source, run = RAW, store.load_figures(path)
        why = why_files.read_why(path, run.trials, run.measurements)
        trials, answers = [vars(trial) for trial in run.trials], dict[str, Sequence[str]](run.answers)
        table, _ = read_stamped(stamped(tables.with_factors_as_text(run.measurements), Stamp(run.truth, run.answers)))
        measurements = table.replace_schema_metadata(None)  # of the same types as those that are derived
    else:
        source, (measurements, stamp) = store.MEASUREMENTS, current
        trials, answers = _trials(path, truth, info.schema), dict[str, Sequence[str]](stamp.answers)
        frames = why_files.read_kept(path, digests)
        if frames is None:
            frames = store.load_run(path).why if why_files.has_traces(path) else Why()
        why = frames
    cells, definitions = _cells(info.parameters, trials, answers)
    row = _run_row(info, name, [trial["status"] for trial in trials], source)
    medians = _medians(trials, measurements, answers, info.parameters)
    return RunRows(
        run=row,
        status=str(row["status"]),
        source=source,
        trials=_with_run(name, _trial_table(trials)),
        measurements=_with_run(name, measurements),
        cells=_with_run(name, cells),
        medians=_with_run(name, medians),
        definitions=definitions,
        why={key: _with_run(name, pa.Table.from_pandas(frame)) for key, frame in why.frames.items()} if why else {},
        altered=altered,
    )


def _current_figures(path: Path, truth: Mapping[str, str]) -> tuple[pa.Table, Stamp] | None:
    """Return the derived figures of a run, where they are those of this truth."""
    data = truth_bytes(path / store.MEASUREMENTS)
    if data is None:
        return None
    try:
        table, stamp = read_stamped(data)
    except (ValueError, OSError):
        return None  # damaged: the raw output tells
    return (table.replace_schema_metadata(None), stamp) if stamp is not None and stamp.holds(truth) else None


def _trials(path: Path, truth: Mapping[str, bytes | None], schema: int) -> list[TrialRow]:
    """Return the journal of a run whose figures have a stamp: what made them has read this very journal, and found it
    to be whole but for its last line. Before schema 4 raw files are needed to tell which trials ran into their time
    limit."""
    if truth["exclude.yml"] is not None or schema < WITH_TIMEOUTS:
        return [vars(trial) for trial in read_trials(path)]
    rows = [orjson.loads(line) for line in (truth[JOURNAL] or b"").split(b"\n")[:-1] if b"\0" not in line]
    return [{**_TRIAL_DEFAULTS, **row} for row in rows]


def _trial_table(trials: Sequence[TrialRow]) -> pa.Table:
    columns: dict[str, list[Any]] = {key: [row[key] for row in trials] for key in _TRIAL_COLUMNS}
    factors = dict(zip(columns["cell"], columns["factors"], strict=True))
    as_text = {cell: json.dumps(dict(levels)) for cell, levels in factors.items()}
    columns["factors"] = [as_text[cell] for cell in columns["cell"]]
    columns["elapsed_s"] = [math.nan if value is None else float(value) for value in columns["elapsed_s"]]
    columns["started_at"] = [moment(value) for value in columns["started_at"]]
    types = {
        "block": pa.int32(), "attempts": pa.int32(), "warmup": pa.bool_(), "set_aside": pa.bool_(),
        "diagnostic": pa.bool_(), "exhausted": pa.bool_(),
        "seed": pa.int64(), "elapsed_s": pa.float64(), "started_at": pa.timestamp("us"),
    }  # fmt: skip
    arrays = {key: pa.array(values, types.get(key, pa.string())) for key, values in columns.items()}
    return pa.table(arrays)


def _with_run(name: str, table: pa.Table) -> pa.Table:
    """With the run before all other columns."""
    return table.add_column(0, "run", pa.repeat(pa.scalar(name), table.num_rows))


def moment(text: object) -> datetime | None:
    """Return a time in UTC, without its zone; None where none is said."""
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return (at if at.tzinfo in (UTC, None) else at.astimezone(UTC)).replace(tzinfo=None)


def _run_row(info: RunInfo, name: str, states: Sequence[str], source: str) -> dict[str, object]:
    parameters, facts = info.parameters, info.facts
    return {
        "run": name,
        "run_id": info.run_id,
        "sweep": str(parameters.get("name") or ""),
        "question": " ".join(str(parameters.get("question") or "").split()),
        "box": info.box_name,
        "status": info.status if info.imported is None else "imported",
        "created_at": moment(info.created_at),
        "finished_at": moment(info.finished_at),
        "trials": len(states),
        "ok": states.count("ok"),
        "failed": sum(map(states.count, ("failed", "invalid", "timeout"))),
        **{key: facts.value(key) for key in _FACTS},
        **{key: _whole(facts.value(key)) for key in _COUNTS},
        "mountlab_version": info.mountlab_version,
        "git_commit": info.git_commit,
        "seed": _whole(info.seed),
        "batch": info.batch,
        "figures_from": source,
        "facts": orjson.dumps(facts.as_record()).decode(),
        "parameters": orjson.dumps(parameters).decode(),
    }


def _whole(value: object) -> int | None:
    """Return a number that the database has room for."""
    return value if isinstance(value, int) and abs(value) < _ROOM else None


# ── trials that ran into their time limit ────────────────────────────────────────────────────────────────────────────

_MEDIAN_TYPES = pa.schema(
    [(name, pa.string()) for name in ("cell", "metric", "label", "unit")]
    + [("n", pa.int32()), ("censored", pa.int32()), ("figure", pa.float64())]
)


def _medians(
    trials: Iterable[TrialRow],
    measurements: pa.Table,
    answers: Mapping[str, Sequence[str]],
    parameters: Mapping[str, object],
) -> pa.Table:
    """Return one row for each figure of a cell with trials at their limit, as in estimates.csv: the median of all
    trials with these as the worst, null where there is none. A cell without any other trial has a row for each metric
    of its answer."""
    late_rows = [row for row in trials if row["status"] == "timeout"]
    late = censored_blocks(Trial(**{name: row[name] for name in _TRIAL_COLUMNS}) for row in late_rows)
    figures = _values_of(measurements, late)
    measured = {cell for cell, *_ in figures}
    defined_by = {row["cell"]: defined(_part(parameters.get("workloads"), row["workload"])) for row in late_rows}
    for row in late_rows:
        if (cell := str(row["cell"])) in late.keys() - measured:
            names = answers.get(_workload_label(row), ())
            figures |= {(cell, metric, "", _metric(defined_by[cell], metric).unit): [] for metric in names}
    rows = [
        (*key, *_median(_metric(defined_by[key[0]], key[1]), values, len(late[key[0]])))
        for key, values in figures.items()
    ]
    return pa.Table.from_pylist([dict(zip(_MEDIAN_TYPES.names, row, strict=True)) for row in rows], _MEDIAN_TYPES)


def _values_of(measurements: pa.Table, cells: Iterable[str]) -> dict[tuple[str, ...], list[float]]:
    """Return cell, metric, label and unit to the finite values of each figure but those of a mount."""
    chosen = pc.and_(
        pc.is_in(measurements["cell"], pa.array(list(cells), pa.string())), pc.invert(measurements["warmup"])
    )
    values: dict[tuple[str, ...], list[float]] = {}
    names = ("cell", "metric", "label", "unit", "value")
    for *key, value in measurements.filter(chosen).select(names).to_pandas().itertuples(index=False, name=None):
        if key[1] not in OF_A_MOUNT and math.isfinite(value):
            values.setdefault(tuple(key), []).append(float(value))
    return values


def _metric(definitions: Mapping[str, Metric], name: str) -> Metric:
    return definitions.get(name) or known_metric(name)


def _median(metric: Metric, values: Sequence[float], late: int) -> tuple[int, int, float | None]:
    """Return n, how many of them ran into the limit, and the figure."""
    figure = censored_estimate(metric, np.array(values), late, level=0.95).figure  # no interval is kept
    return len(values) + late, late, None if math.isnan(figure) else figure


# ── what was asked of a cell ─────────────────────────────────────────────────────────────────────────────────────────


_CELL_TYPES = pa.schema([("cell", pa.string()), ("asked", pa.string()), ("answers", pa.list_(pa.string()))])


def _cells(
    parameters: Mapping[str, object], trials: Iterable[TrialRow], answers: Mapping[str, Sequence[str]]
) -> tuple[pa.Table, dict[str, str]]:
    by_cell = {row["cell"]: row for row in trials}
    definitions = {cell: definition_of(parameters, row) for cell, row in by_cell.items()}
    hashes = {cell: sha256(text.encode()).hexdigest()[:12] for cell, text in definitions.items()}
    rows = [
        {"cell": cell, "asked": hashes[cell], "answers": list(answers.get(_workload_label(row), ()))}
        for cell, row in by_cell.items()
    ]
    return pa.Table.from_pylist(rows, _CELL_TYPES), {hashes[cell]: text for cell, text in definitions.items()}


def _workload_label(trial: TrialRow) -> str:
    return workload_label(trial["workload"], trial["factors"])


def definition_of(parameters: Mapping[str, object], trial: TrialRow) -> str:
    """Return all that a sweep asks of one cell, as JSON that is the same for the same: two runs of a sweep that was
    changed in between measure different things under one name. Lists of a workload are its factors: only the cell's
    level counts. So does only its state, of those that the file system is measured in, with what makes that state; and
    only what runs beside it. What a device is promised changes no trial.
    """
    filesystem = _part(parameters.get("filesystems"), trial["filesystem"])
    if isinstance(filesystem, Mapping):
        filesystem = {key: value for key, value in filesystem.items() if key not in (promise_entry.KEY, STATE)}
    workload = _part(parameters.get("workloads"), trial["workload"])
    if isinstance(workload, Mapping):
        workload = {key: value for key, value in workload.items() if key not in trial["factors"]}
    design = parameters.get("design")
    plain = {key: value for key, value in design.items() if key not in _UNLIKE} if isinstance(design, Mapping) else {}
    definition = {"filesystem": filesystem, "workload": workload, "factors": dict(trial["factors"]), "design": plain}
    for section, names in _conditions_of(trial["factors"], workload).items():
        entries = parameters.get(section)
        if isinstance(entries, Mapping) and (present := {name: entries[name] for name in names if name in entries}):
            definition[section] = present
    return json.dumps(definition, sort_keys=True, default=str)


def _conditions_of(factors: Mapping[str, str], workload: object) -> dict[str, Sequence[str]]:
    """Return section of a sweep to the names of its entries that say what the state and the neighbours of a cell
    are."""
    fixed = workload.get(BESIDE, "") if isinstance(workload, Mapping) else ""
    return {"states": [factors.get(STATE, "")], "neighbours": factors.get(BESIDE, str(fixed)).split(TOGETHER)}


def _part(entry: object, name: str) -> object:
    """Return what is said under a name; everything where there is no such name, as of imported logs."""
    return entry.get(name, entry) if isinstance(entry, Mapping) else entry


def check(path: Path, name: str) -> str:
    """Return why the rows of a run are not what its raw output says; '' where they are."""
    ours, true = read_run(path, name), read_run(path, name, derived=False)
    if ours.source == true.source:
        return ""
    if ours.trials.equals(true.trials) and _same(ours.measurements, true.measurements):
        return ""
    return "measurements.parquet is not what the raw output says; mountlab reparse mends it"


def _same(ours: pa.Table, theirs: pa.Table) -> bool:
    return ours.num_rows == theirs.num_rows and all(
        ours[name].to_pylist() == theirs[name].to_pylist() for name in theirs.column_names
    )
