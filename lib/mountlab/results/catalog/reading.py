"""One run directory as rows of the catalog, from what is true of it.

Figures are taken from measurements.parquet where its stamp says that they were made from what lies there now, and read
out of the raw output where it does not: then they are right all the same, and it takes longer.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
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


@dataclass(frozen=True)
class RunRows:
    """One run: a row of `runs`, and tables of its trials and its figures."""

    run: dict[str, Any]
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
    found, newest = [], 0
    for name in _WATCHED:
        try:
            stat = (run / name).lstat()
        except FileNotFoundError:
            found.append(f"{name} -")
            continue
        newest = max(newest, stat.st_ctime_ns, stat.st_mtime_ns)
        found.append(f"{name} {stat.st_size} {stat.st_mtime_ns} {stat.st_ctime_ns} {stat.st_ino}")
    return "" if newest > time.time_ns() - SETTLED_S * 1e9 else "\n".join(found)


def read_run(path: Path, name: str, *, derived: bool = True) -> RunRows:
    """Return the rows of a run. `name`: its directory, below that of all runs. `derived`: whether figures may be those
    of measurements.parquet. Raises StoreError, or what damaged files raise (listing.DAMAGE)."""
    info = read_info(path)
    truth = {file: truth_bytes(path / file) for file in FILES[:3]}
    altered = tuple(derived_files.altered(path))
    trusted = derived and not {store.MEASUREMENTS, derived_files.FILE} & set(altered) and _is_vouched(path, info)
    kept = _kept(path, {file: digest(data) for file, data in truth.items()}) if trusted else None
    if kept is None:
        own = store.load_figures(path)
        explained = why_files.read_why(path, own.trials, own.measurements)
        trials, answers = [asdict(trial) for trial in own.trials], dict[str, Sequence[str]](own.answers)
        read, _ = read_stamped(stamped(tables.with_factors_as_text(own.measurements), Stamp(own.truth, own.answers)))
        measurements = read.replace_schema_metadata(None)  # of the same types as those that are kept
    else:
        trials, answers = _trials(path, truth, info.schema), dict[str, Sequence[str]](kept[1].answers)
        measurements, explained = kept[0], _explained(path, truth)
    cells, definitions = _cells(info.parameters, trials, answers)
    row = _run_row(info, name, trials, RAW if kept is None else store.MEASUREMENTS)
    medians = _named(name, _medians(trials, measurements, answers, info.parameters))
    why = {key: _named(name, pa.Table.from_pandas(each)) for key, each in explained.frames.items()} if explained else {}
    figures, own_cells = _named(name, measurements), _named(name, cells)
    return RunRows(row, _trial_table(name, trials), figures, own_cells, medians, definitions, why, altered)


def _explained(path: Path, truth: Mapping[str, bytes | None]) -> Why:
    """Return the frames of the diagnostic trials of a run whose derived figures are current."""
    found = why_files.kept(path, {file: digest(data) for file, data in truth.items()})
    if found is None:
        return store.load_run(path).why if why_files.has_traces(path) else Why()
    return found


def _is_vouched(path: Path, info: RunInfo) -> bool:
    """Return whether derived files have checksums; those of a run of an earlier version need none."""
    return not info.has_checksums or (path / derived_files.FILE).exists()


def _kept(path: Path, truth: Mapping[str, str]) -> tuple[pa.Table, Stamp] | None:
    """Return the derived figures of a run, where they are those of this truth."""
    data = truth_bytes(path / store.MEASUREMENTS)
    if data is None:
        return None
    try:
        table, stamp = read_stamped(data)
    except (ValueError, OSError):
        return None  # damaged: the raw output tells
    return (table.replace_schema_metadata(None), stamp) if stamp is not None and stamp.holds(truth) else None


def _trials(path: Path, truth: Mapping[str, bytes | None], schema: int) -> list[dict[str, Any]]:
    """Return the journal of a run whose figures have a stamp: what made them has read this very journal, and found it
    to be whole but for its last line. Before schema 4 raw files are needed to tell which trials ran into their time
    limit."""
    if truth["exclude.yml"] is not None or schema < WITH_TIMEOUTS:
        return [asdict(trial) for trial in read_trials(path)]
    rows = [orjson.loads(line) for line in (truth[JOURNAL] or b"").split(b"\n")[:-1] if b"\0" not in line]
    return [{**_TRIAL_DEFAULTS, **row} for row in rows]


def _trial_table(name: str, trials: Sequence[Mapping[str, Any]]) -> pa.Table:
    columns: dict[str, Any] = {key: [row[key] for row in trials] for key in _TRIAL_COLUMNS}
    factors = dict(zip(columns["cell"], columns["factors"], strict=True))
    as_text = {cell: json.dumps(dict(each)) for cell, each in factors.items()}
    columns["factors"] = [as_text[cell] for cell in columns["cell"]]
    columns["elapsed_s"] = [math.nan if each is None else float(each) for each in columns["elapsed_s"]]
    columns["started_at"] = [moment(each) for each in columns["started_at"]]
    types = {
        "block": pa.int32(), "attempts": pa.int32(), "warmup": pa.bool_(), "set_aside": pa.bool_(),
        "diagnostic": pa.bool_(), "exhausted": pa.bool_(),
        "seed": pa.int64(), "elapsed_s": pa.float64(), "started_at": pa.timestamp("us"),
    }  # fmt: skip
    arrays = {key: pa.array(values, types.get(key, pa.string())) for key, values in columns.items()}
    return _named(name, pa.table(arrays))


def _named(name: str, table: pa.Table) -> pa.Table:
    """With the run before all other columns."""
    return table.add_column(0, "run", pa.repeat(pa.scalar(name), table.num_rows))


def moment(said: object) -> datetime | None:
    """Return a time in UTC, without its zone; None where none is said."""
    try:
        read = datetime.fromisoformat(str(said))
    except ValueError:
        return None
    return (read if read.tzinfo in (UTC, None) else read.astimezone(UTC)).replace(tzinfo=None)


def _run_row(info: RunInfo, name: str, trials: Sequence[Mapping[str, Any]], source: str) -> dict[str, Any]:
    asked, facts = info.parameters, info.facts
    states = [row["status"] for row in trials]
    return {
        "run": name,
        "run_id": info.run_id,
        "sweep": str(asked.get("name") or ""),
        "question": " ".join(str(asked.get("question") or "").split()),
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
        "parameters": orjson.dumps(asked).decode(),
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
    trials: Iterable[Mapping[str, Any]],
    measurements: pa.Table,
    answers: Mapping[str, Sequence[str]],
    asked: Mapping[str, Any],
) -> pa.Table:
    """Return one row for each figure of a cell with trials at their limit, as in estimates.csv: the median of all
    trials with these as the worst, null where there is none. A cell without any other trial has a row for each metric
    of its answer."""
    own = [row for row in trials if row["status"] == "timeout"]
    late = censored_blocks(Trial(**{name: row[name] for name in _TRIAL_COLUMNS}) for row in own)
    figures = _values_of(measurements, late)
    measured = {cell for cell, *_ in figures}
    defined_by = {row["cell"]: defined(_part(asked.get("workloads"), row["workload"])) for row in own}
    for row in own:
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
    found: dict[tuple[str, ...], list[float]] = {}
    names = ("cell", "metric", "label", "unit", "value")
    for *key, value in measurements.filter(chosen).select(names).to_pandas().itertuples(index=False, name=None):
        if key[1] not in OF_A_MOUNT and math.isfinite(value):
            found.setdefault(tuple(key), []).append(float(value))
    return found


def _metric(own: Mapping[str, Metric], name: str) -> Metric:
    return own.get(name) or known_metric(name)


def _median(metric: Metric, values: Sequence[float], late: int) -> tuple[int, int, float | None]:
    """Return n, how many of them ran into the limit, and the figure."""
    figure = censored_estimate(metric, np.array(values), late, level=0.95).figure  # no interval is kept
    return len(values) + late, late, None if math.isnan(figure) else figure


# ── what was asked of a cell ─────────────────────────────────────────────────────────────────────────────────────────


_CELL_TYPES = pa.schema([("cell", pa.string()), ("asked", pa.string()), ("answers", pa.list_(pa.string()))])


def _cells(
    asked: Mapping[str, Any], trials: Iterable[Mapping[str, Any]], answers: Mapping[str, Sequence[str]]
) -> tuple[pa.Table, dict[str, str]]:
    by_cell = {row["cell"]: row for row in trials}
    definitions = {cell: _definition(asked, row) for cell, row in by_cell.items()}
    hashes = {cell: sha256(text.encode()).hexdigest()[:12] for cell, text in definitions.items()}
    rows = [
        {"cell": cell, "asked": hashes[cell], "answers": list(answers.get(_workload_label(row), ()))}
        for cell, row in by_cell.items()
    ]
    return pa.Table.from_pylist(rows, _CELL_TYPES), {hashes[cell]: text for cell, text in definitions.items()}


def _workload_label(trial: Mapping[str, Any]) -> str:
    return workload_label(trial["workload"], trial["factors"])


def _definition(asked: Mapping[str, Any], trial: Mapping[str, Any]) -> str:
    """Return all that a sweep asks of one cell, as JSON that is the same for the same: two runs of a sweep that was
    changed in between measure different things under one name. Lists of a workload are its factors: only the cell's
    level counts.
    """
    filesystem = _part(asked.get("filesystems"), trial["filesystem"])
    workload = _part(asked.get("workloads"), trial["workload"])
    if isinstance(workload, Mapping):
        workload = {key: value for key, value in workload.items() if key not in trial["factors"]}
    design = asked.get("design")
    plain = {key: value for key, value in design.items() if key not in _UNLIKE} if isinstance(design, Mapping) else {}
    said = {"filesystem": filesystem, "workload": workload, "factors": dict(trial["factors"]), "design": plain}
    return json.dumps(said, sort_keys=True, default=str)


def _part(asked: object, name: str) -> object:
    """Return what is said under a name; everything where there is no such name, as of imported logs."""
    return asked.get(name, asked) if isinstance(asked, Mapping) else asked


def check(path: Path, name: str) -> str:
    """Return why the rows of a run are not what its raw output says; '' where they are."""
    ours, true = read_run(path, name), read_run(path, name, derived=False)
    if ours.run["figures_from"] == true.run["figures_from"]:
        return ""
    if ours.trials.equals(true.trials) and _same(ours.measurements, true.measurements):
        return ""
    return "measurements.parquet is not what the raw output says; mountlab reparse mends it"


def _same(ours: pa.Table, theirs: pa.Table) -> bool:
    return ours.num_rows == theirs.num_rows and all(
        ours[name].to_pylist() == theirs[name].to_pylist() for name in theirs.column_names
    )
