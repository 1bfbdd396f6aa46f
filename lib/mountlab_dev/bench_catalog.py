"""Years of simulated results, and how long the catalog takes over them: for the table of `make bench`.

Real run directories (run.json, sweep.yml, the journal, derived files with their stamp), without raw output, which the
catalog does not read where the stamp holds. Everything is seeded; one cell of the first sweep and box becomes slower.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from mountlab.analysis.answer_metrics import answer_metrics
from mountlab.analysis.example import good_trial
from mountlab.analysis.measurements import measurement_frame
from mountlab.analysis.run_view import TrialRecord
from mountlab.analysis.sweep_comparisons import comparisons
from mountlab.core import chain, run_ids
from mountlab.core.metrics import METRICS
from mountlab.core.model import Cell, Measurement, Trial
from mountlab.core.places import SHIPPED
from mountlab.core.safe_yaml import as_yaml
from mountlab.core.units import GIB, KIB
from mountlab.results import derived, records, stamp, store, tables
from mountlab.results.histories import Wanted, load_years
from mountlab.results.journal import read_as_it_is
from mountlab.results.run_file import SCHEMA
from mountlab.sweep.sweep_file import Resolved, resolve

_FIRST = datetime(2021, 1, 4, 2, 0, tzinfo=UTC)
_OF_FIO = ("bandwidth", "iops", "latency_mean", "latency_p50", "latency_p99")
RUN_SD, TRIAL_SD = 0.01, 0.03
"""Of the logarithm: from run to run, and from trial to trial."""
KERNEL_EVERY = 10
"""Runs after which a box has another kernel."""


@dataclass(frozen=True)
class Years:
    """How much there is of it. A sweep has ten cells, so that 20 blocks are 200 trials."""

    sweeps: int = 20
    boxes: int = 5
    runs: int = 50
    """Of each sweep on each box."""
    blocks: int = 20
    changed_at: int = 30
    """The run from which the first cell of the first sweep on the first box is slower."""
    change: float = 0.9

    @property
    def count(self) -> int:
        """Of run directories."""
        return self.sweeps * self.boxes * self.runs

    @property
    def trials(self) -> int:
        """Of all of them."""
        return self.count * 10 * self.blocks


MILLION = Years()


def write_years(results: Path, years: Years) -> None:
    """Make the run directories."""
    facts = json.loads((SHIPPED / "results" / "tour" / "run.json").read_text())["facts"]
    for number in range(years.sweeps):
        one = _Sweep(number, years)
        for box in range(years.boxes):
            for run in range(years.runs):
                one.write(results, box, run, facts)


@dataclass(frozen=True)
class _Sweep:
    number: int
    years: Years

    @cached_property
    def resolved(self) -> Resolved:
        sizes = ["4KiB", "16KiB", "64KiB", "256KiB", "1MiB"]
        workload = {"tool": "fio", "rw": "randread", "bs": sizes, "size": "64MiB", "runtime": "2s", "time_based": True}
        raw = {
            "name": f"nightly-{self.number:02d}", "question": "Did it become slower over night?", "baseline": "ext4",
            "filesystems": {"ext4": {"type": "ext4", "image": "256MiB"}, "tmpfs": {"type": "tmpfs", "size": "128MiB"}},
            "workloads": {"fio": workload}, "design": {"repeats": self.years.blocks, "warmup": 0, "seed": 1},
        }  # fmt: skip
        return resolve(raw, where="bench")

    @cached_property
    def trials(self) -> list[Trial]:
        """Of every run: what differs is when, and what was measured."""
        cells = self.resolved.sweep.cells
        return [
            _trial(place * len(cells) + number + 1, place + 1, cell)
            for place in range(self.years.blocks)
            for number, cell in enumerate(cells)
        ]

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The figures of a run, all of them 1."""
        names = [*(f"read_{name}" for name in _OF_FIO), "elapsed"]
        rows = (
            (trial, Measurement(metric=name, value=1.0, unit=METRICS[name])) for trial in self.trials for name in names
        )
        return measurement_frame(rows)

    def write(self, results: Path, box: int, run: int, facts: Mapping[str, Any]) -> None:
        at = _FIRST + timedelta(days=run, minutes=30 * self.number)
        name = run_ids.new_id(at, self.resolved.sweep.name, f"box{box}", "")
        path = results / name
        (path / "raw").mkdir(parents=True)
        own = {**facts, "hostname": f"box{box}", "kernel": f"6.{1 + run // KERNEL_EVERY}.0-{run // KERNEL_EVERY}-amd64"}
        info = chain.bound(self._info(name, at, f"box{box}", own))
        files = {
            "run.json": json.dumps(info, indent=1).encode(),
            "sweep.yml": as_yaml(self.resolved.parameters).encode(),
            "trials.jsonl": b"".join(self._journal(at, info[chain.KEY])),
        }
        for file, data in files.items():
            (path / file).write_bytes(data)
        for file, data in self._derived(path, np.random.default_rng([self.number, box, run]), box, run).items():
            (path / file).write_bytes(data)

    def _info(self, name: str, at: datetime, box: str, facts: Mapping[str, Any]) -> dict[str, Any]:
        return {
            "schema": SCHEMA,
            "mountlab_version": "0.1.0",
            "run_id": name,
            "status": "complete",
            "created_at": at.isoformat(),
            "finished_at": (at + timedelta(minutes=20)).isoformat(),
            "box": {"name": box, "host": box, "scratch": []},
            "facts": facts,
            "versions": {},
            "git_commit": None,
            "seed": 1,
            "order": [trial.trial_id for trial in self.trials],
            "parameters": self.resolved.parameters,
            "left_out": {},
            "published": [],
        }

    def _journal(self, at: datetime, head: str) -> Iterator[bytes]:
        for place, trial in enumerate(self.trials):
            started = (at + timedelta(seconds=3 * place)).isoformat(timespec="milliseconds")
            line, head = chain.chained(asdict(replace(trial, started_at=started)), head)
            yield line + b"\n"

    def _derived(self, path: Path, rng: np.random.Generator, box: int, run: int) -> dict[str, bytes]:
        sweep, frame = self.resolved.sweep, self.frame
        slower = self.number == box == 0 and run >= self.years.changed_at
        factor = np.where(
            slower & (frame["cell"] == sweep.cells[0].id) & (frame["metric"] != "elapsed"), self.years.change, 1
        )
        levels = rng.normal(0, RUN_SD, len(sweep.cells))[frame["cell"].map(_places(sweep.cells)).to_numpy()]
        own = frame.assign(value=1e8 * factor * np.exp(levels + rng.normal(0, TRIAL_SD, len(frame))))
        answers = answer_metrics(sweep, own)
        compared = pd.DataFrame([each.columns for each in comparisons(sweep, own)]).drop(columns="factors")
        truth = stamp.truth_of(path)
        whole = stamp.stamped(tables.with_factors_as_text(own), stamp.Stamp(truth, answers))
        files = {
            records.FILE: records.as_parquet(self._records(own), records.made_from(read_as_it_is(path))),
            store.MEASUREMENTS: whole,
            "comparisons.csv": compared.to_csv(index=False).encode(),
            "caveats.csv": b"scope,subject,code,severity,message\nrun,,simulated,note,This was not measured.\n",
        }
        page = {"report.html": b"<!doctype html><title>This was not measured</title>\n"}
        return {**files, **page, derived.FILE: derived.sealed(truth, files)}

    @staticmethod
    def _records(frame: pd.DataFrame) -> dict[str, TrialRecord]:
        rows: dict[str, list[Measurement]] = {}
        columns = (frame[name].tolist() for name in ("trial_id", "metric", "value", "unit"))
        for trial_id, metric, value, unit in zip(*columns, strict=True):
            rows.setdefault(trial_id, []).append(Measurement(metric=metric, value=value, unit=unit))
        return {trial_id: TrialRecord(measurements=tuple(own)) for trial_id, own in rows.items()}


def _places(cells: tuple[Cell, ...]) -> dict[str, int]:
    return {cell.id: place for place, cell in enumerate(cells)}


def _trial(number: int, block: int, cell: Cell) -> Trial:
    mount = f"m{block:03d}-{cell.filesystem.name}"
    return replace(good_trial(number, block, cell), mount=mount, started_at="", elapsed_s=2.5)


# ── what is measured ─────────────────────────────────────────────────────────────────────────────────────────────────

_MADE = """
import re, sys, time
from pathlib import Path
from mountlab.results.catalog import build
start = time.perf_counter()
build(Path(sys.argv[1]), rebuild=sys.argv[2] == "rebuild")
print(time.perf_counter() - start)
print(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""
Measured = tuple[str, float | None, list[float], Literal["s", "B"]]
"""A row of the table: what, goal, values, unit."""


def rows(repeats: int, scratch: Path, years: Years = MILLION) -> Iterator[Measured]:
    """Yield the rows of `make bench` on the catalog and the index, from run directories that are made below `scratch`.
    Making the million takes minutes, and 800 MB."""
    results = scratch / "years"
    write_years(results, years)
    what = f"{years.trials:,} trials in {years.count:,} runs"
    made = [_made(results, "rebuild") for _ in range(repeats)]
    yield f"catalog of {what}, rebuilt", 60.0, [took for took, _ in made], "s"
    yield "memory of the process that makes it", 2.0 * GIB, [memory for _, memory in made], "B"
    yield "the same when nothing has changed", None, [_made(results, "again")[0] for _ in range(repeats)], "s"
    yield (
        "history of one cell, its changes looked for, whether all is up to date included",
        1.0,
        [_asked(results) for _ in range(repeats)],
        "s",
    )
    for name, verb in _ASKED.items():
        yield (
            f"{name}, as typed: start and imports included",
            None,
            [_typed(results, *verb) for _ in range(repeats)],
            "s",
        )
    yield f"index of {years.count:,} runs", None, [_typed(results, "index", str(results)) for _ in range(repeats)], "s"
    yield "size of its page", None, [float((results / "index.html").stat().st_size)], "B"


_CELL: dict[str, Any] = {"sweep": "nightly-00", "box": "box0", "cell": "ext4/fio bs=4KiB"}
_ASKED = {
    "history of one cell": ("history", *(word for name, value in _CELL.items() for word in (f"--{name}", value))),
    "an SQL query over all trials": ("query", "SELECT metric, avg(value) FROM measurements GROUP BY metric"),
}


def _asked(results: Path) -> float:
    start = time.perf_counter()
    load_years(results, Wanted(**_CELL))
    return time.perf_counter() - start


def _made(results: Path, how: str) -> tuple[float, float]:
    """Return seconds that it took, and bytes of memory that the process had at most."""
    done = subprocess.run([sys.executable, "-c", _MADE, str(results), how], capture_output=True, text=True, check=True)
    took, memory = done.stdout.split()
    return float(took), float(memory) * KIB


def _typed(results: Path, *verb: str) -> float:
    """Return seconds of the whole command."""
    argv = [sys.executable, "-m", "mountlab", *verb]
    where = ["--results", str(results)] if verb[0] in ("history", "query") else []
    start = time.perf_counter()
    subprocess.run([*argv, *where], capture_output=True, check=True)
    return time.perf_counter() - start
