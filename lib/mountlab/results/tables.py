"""The tables of a run as files: estimates, comparisons, caveats; made from the raw output whenever that is newer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path

from mountlab.analysis.conditions import effects_of, shifts_of
from mountlab.analysis.frames import comparison_frame, condition_frame
from mountlab.analysis.run_view import RunView, TrialRecord
from mountlab.analysis.why_frames import COLUMNS
from mountlab.core import chain
from mountlab.core.disk import clear
from mountlab.core.findings import Caveat
from mountlab.core.frames import pd
from mountlab.core.model import Trial
from mountlab.core.places import SHIPPED
from mountlab.core.text import plain_cell, visible
from mountlab.results import derived, programs, records
from mountlab.results.info import say_plugins
from mountlab.results.journal import FILE as JOURNAL
from mountlab.results.lock import alone
from mountlab.results.paths import locate
from mountlab.results.run_file import check_is_run
from mountlab.results.stamp import Stamp, stamped, truth_of
from mountlab.results.store import MEASUREMENTS, Run, load_run, read_run, say_altered
from mountlab.results.why import derived_files, file_of

DERIVE_S = 600.0
"""How long another process that derives the files of a run, or makes its report, is waited for."""
CHANGES = "condition_changes"
"""Table of what states and neighbours change."""
_CAVEAT_COLUMNS = ("scope", "subject", "code", "severity", "message")


def tables(run: RunView) -> dict[str, pd.DataFrame]:
    """Return everything that a run says, as tables of numbers and text; the factors of trials and measurements as
    JSON."""
    effects = effects_of(run)
    return {
        "estimates": run.estimates.drop(columns="cell"),
        "comparisons": comparison_frame(run),
        "latency_comparisons": comparison_frame(run, run.latency_comparisons),
        CHANGES: condition_frame(run, [*effects.kept, *effects.changes]),
        "caveats": pd.DataFrame(map(asdict, run.caveats), columns=[field.name for field in fields(Caveat)]),
        "trials": with_factors_as_text(run.trials),
        "measurements": with_factors_as_text(run.measurements),
    }


def texts(run: RunView, *names: str) -> dict[str, str]:
    """Return tables of a run as CSV, every figure with all of its digits; of caveats the columns of caveats.csv."""
    frames = tables(run)
    frames["caveats"] = frames["caveats"][list(_CAVEAT_COLUMNS)]
    return {name: csv_text(frames[name]) for name in names}


def columns() -> dict[str, list[str]]:
    """File of a run to its columns, as the recorded run in results/tour has them."""
    frames = tables(load_run(SHIPPED / "results" / "tour"))
    return {
        "trials.jsonl": [*(field.name for field in fields(Trial)), chain.RAW, chain.KEY],
        "measurements.parquet": list(frames["measurements"].columns),
        "estimates.csv": [*frames["estimates"].columns, "stopped"],
        "comparisons.csv": list(frames["comparisons"].columns),
        "latency_comparisons.csv": list(frames["latency_comparisons"].columns),
        f"{CHANGES}.csv": list(frames[CHANGES].columns),
        "caveats.csv": list(_CAVEAT_COLUMNS),
        **{file_of(name): list(names) for name, names in COLUMNS.items()},
    }


def with_factors_as_text(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame of trials or measurements for a file: the factors of each row as JSON."""
    return frame.assign(factors=frame["factors"].map(json.dumps))


def write_derived(run: Run) -> None:
    """Write records.parquet, measurements.parquet, estimates.csv, comparisons.csv, latency_comparisons.csv and
    caveats.csv of a run; of one with states or neighbours condition_changes.csv; of one with diagnostic trials their
    frames, of one with recorded system calls the files of their profiles; and last the checksums of all of these."""
    truth = run.truth if truth_of(run.path) == run.truth else {}  # else a trial has ended meanwhile, or the run
    figures = stamped(with_factors_as_text(run.measurements), Stamp(truth, run.answer_metrics))
    changes = [CHANGES] if shifts_of(run.sweep) else []
    text = texts(run, "estimates", "comparisons", "latency_comparisons", *changes, "caveats")
    csv_files = {f"{name}.csv": table.encode() for name, table in text.items()}
    files = {
        records.FILE: records.as_parquet(run.all_records, run.made_from),
        MEASUREMENTS: figures,
        **csv_files,
        **derived_files(run.why),
        **programs.derived_files(run),
    }
    derived.write(run.path, truth, files)


def derive(path: Path | str, trial_records: Mapping[str, TrialRecord] | None = records.NONE) -> None:
    """Make the derived files of a run again: of two processes that do so, one after the other. `trial_records`: as for
    `read_run`."""
    path = locate(path).resolve()
    check_is_run(path)
    with alone(path / "raw", what="run's figures", fallback=path / ".deriving", wait_s=DERIVE_S):
        clear(path, ".*.csv.*.tmp", ".*.parquet.*.tmp", ".*.json.*.tmp")
        run = read_run(path, trial_records)
        say_altered(path, "the file is written again")
        say_plugins(path)
        write_derived(run)


def derive_outdated(path: Path) -> None:
    """Make the derived files of a run with trials where they are missing, or were made from other files than it has
    now."""
    if (path / JOURNAL).exists() and not derived.is_made_from(path, truth_of(path), today=True):
        derive(path, None)


def csv_text(frame: pd.DataFrame) -> str:
    """Return a table of a run as CSV with every digit of its figures, in which no text steers a terminal."""
    return visible(str(frame.to_csv(index=False)))


def plain_csv(frame: pd.DataFrame) -> bytes:
    """CSV in which no text is a formula to a spreadsheet or steers a terminal (`text.plain_cell`)."""
    columns = {
        name: column if pd.api.types.is_numeric_dtype(column) else column.map(plain_cell)
        for name, column in frame.items()
    }
    return str(pd.DataFrame(columns).rename(columns=plain_cell).to_csv(index=False)).encode()
