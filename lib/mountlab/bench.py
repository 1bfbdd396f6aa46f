"""`make bench`: what Mountlab itself costs, in medians and spreads over repeats within one session."""

from __future__ import annotations

import json
import os
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy import stats

from mountlab import analysis, store, workflow
from mountlab.boxes import open_box
from mountlab.errors import CommandError
from mountlab.logs.frame import tidy
from mountlab.model import METRICS, Design, Filesystem, Stop, Sweep, Trial, Workload
from mountlab.params import Resolved, resolve
from mountlab.plan import PlannedTrial
from mountlab.report import write_report
from mountlab.runner import as_trial, run_sweep
from mountlab.store import RunWriter
from mountlab.tools.base import decode_json
from mountlab.tools.fio_report import FILE as FIO_REPORT
from mountlab.units import GIB, KIB, NS_PER_S, format_bytes, format_seconds


@dataclass(frozen=True)
class Row:
    """One measured quantity, by repeat."""

    name: str
    goal: float | None
    values: list[float]
    unit: Literal["s", "times", "B"] = "s"

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name, "unit": self.unit, "goal": self.goal, "n": len(self.values), "min": min(self.values),
            "median": statistics.median(self.values), "max": max(self.values),
        }  # fmt: skip

    def show(self, value: float) -> str:
        return {"s": format_seconds(value), "times": f"{value:.1f} times", "B": format_bytes(value)}[self.unit]


def bench(*, repeats: int, demo: bool, tests: bool) -> str:
    """Measure, keep results/bench.json, and give the table as text.

    `demo` adds `make demo` from a fresh clone (some minutes), `tests` adds `make test` in it (some more).
    """
    with tempfile.TemporaryDirectory() as scratch:
        rows = [
            *_round_trips(repeats),
            *_trials(repeats, Path(scratch), caches=False),
            *_trials(repeats, Path(scratch), caches=True),
            *_logs(min(repeats, 3), Path(scratch) / "logs"),
            *_statistics(min(repeats, 3)),
        ]
        rows += _report(min(repeats, 3), Path(scratch))
        rows += _large_report(min(repeats, 3), Path(scratch) / "large")
        rows += _fresh_clone(Path(scratch) / "clone", tests=tests) if demo or tests else []
    kept = store.RESULTS / "bench.json"
    store.replace_file(kept, json.dumps([row.as_json() for row in rows], indent=1).encode())
    return "\n".join([*_table(rows), f"kept in {store.shown(kept)}"])


def _table(rows: list[Row]) -> Iterator[str]:
    yield f"{'what':68} {'median':>10} {'smallest':>10} {'largest':>10} {'n':>4}  goal"
    for row in rows:
        figures = (statistics.median(row.values), min(row.values), max(row.values))
        shown = " ".join(f"{row.show(each):>10}" for each in figures)
        goal = f"under {row.show(row.goal)}" if row.goal else ""
        yield f"{row.name:68} {shown} {len(row.values):4}  {goal}".rstrip()


def _timed(action: Any, repeats: int) -> list[float]:
    took = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        took.append(time.perf_counter() - start)
    return took


def _round_trips(repeats: int) -> Iterator[Row]:
    with open_box(store.load_box("local")) as connection:
        yield Row("one command on the local box (true)", None, _timed(lambda: connection.run(("true",)), repeats))


def _fresh_clone(clone: Path, *, tests: bool) -> Iterator[Row]:
    """`make demo` as a newcomer sees it, warm package caches aside, and the part of it that is not measuring."""
    subprocess.run(["git", "clone", "--quiet", str(store.ROOT), str(clone)], check=True)
    took_s = _make("demo", clone)
    (run,) = (file.parent for file in (clone / "results").glob("2*/run.json"))
    measuring_s = sum(trial.elapsed_s for trial in store.read_journal(run))
    yield Row("make demo from a fresh clone, warm package caches", 300.0, [took_s])
    yield Row("of which not measuring (environment, mounts, report)", 60.0, [took_s - measuring_s])
    if tests:
        yield Row("make test in the same clone", 300.0, [_make("test", clone)])


_OF_OUR_MAKE = ("MAKEFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "MFLAGS", "ARGS")
"""What `make bench ARGS=...` would hand down to the makes that it starts."""


def _make(target: str, clone: Path) -> float:
    """Seconds that a make target takes. Raises CommandError with the end of its output where it fails."""
    environment = {name: value for name, value in os.environ.items() if name not in _OF_OUR_MAKE}
    start = time.perf_counter()
    done = subprocess.run(
        ["make", "-C", str(clone), target], env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    if done.returncode != 0:
        raise CommandError(f"make {target} failed in a fresh clone", evidence=done.stdout + done.stderr)
    return time.perf_counter() - start


class _Timed:
    """A journal that also notes how long each trial took on the box, and how long it took to keep."""

    def __init__(self, writer: RunWriter) -> None:
        self._writer = writer
        self.overhead_s: list[float] = []

    def has(self, trial_id: str) -> bool:
        return self._writer.has(trial_id)

    def ended(self) -> list[Trial]:
        return self._writer.ended()

    def keep_mount(self, mount_id: str, files: Mapping[str, bytes]) -> None:
        self._writer.keep_mount(mount_id, files)

    def measured(self, sweep: Sweep) -> tuple[list[Trial], pd.DataFrame]:
        return self._writer.measured(sweep)

    def record(self, trial: Trial, files: Mapping[str, bytes]) -> None:
        start = time.perf_counter()
        self._writer.record(trial, files)
        kept_s = time.perf_counter() - start
        tool_s = (int(files["ended_ns"]) - int(files["started_ns"])) / NS_PER_S
        self.overhead_s.append(trial.elapsed_s - tool_s + kept_s)


class _Silent:
    def begin(self, trial: PlannedTrial) -> None: ...
    def end(self, planned: PlannedTrial, trial: Trial) -> None: ...
    def leave(self, stops: Sequence[Stop], trials: Sequence[PlannedTrial]) -> None: ...
    def notice(self, text: str) -> None: ...


def _sweep(repeats: int, *, caches: bool) -> Resolved:
    filesystem = {"type": "tmpfs", "size": "64MiB"}
    workload = {"tool": "dd", "direction": "write", "bs": "64KiB", "count": 16}
    design = {"repeats": repeats, "warmup": 1, "drop_caches": caches, "seed": 1}
    raw = {"name": "bench", "question": "What does a trial cost beyond its tool?", "filesystems": {"tmpfs": filesystem},
           "workloads": {"dd": workload}, "design": {**design, "fresh_filesystem": "never"}}  # fmt: skip
    return resolve(raw, where="bench")


def _trials(repeats: int, scratch: Path, *, caches: bool) -> Iterator[Row]:
    resolved = _sweep(repeats, caches=caches)
    with workflow.planned(resolved, results=scratch) as session:
        journal = _Timed(RunWriter.create(session.plan, resolved, session.facts, results=scratch))
        run_sweep(session.plan, session.connection, journal, _Silent())
    what = "with sync and drop_caches" if caches else "caches left alone"
    yield Row(f"overhead of one trial on a mounted tmpfs, {what}", 0.15, journal.overhead_s[1:])


LOGS = 10_000
RECORDED = "tests/data/fio/psync-randread-direct.jsonplus"
_DECIMAL = re.compile(r'(?<!"iops" : )(?<=: )\d+\.\d+')
"""Not the rate, which has to agree with the amounts beside it."""
_MEMORY = """
import re, sys
from pathlib import Path
from mountlab.logs.frame import tidy
tidy("fio", ((path.name, path.read_bytes()) for path in Path(sys.argv[1]).iterdir()))
print(re.search(r"VmHWM:\\s*(\\d+) kB", Path("/proc/self/status").read_text())[1])
"""
"""How much memory a process takes that does nothing else, in KiB. (getrusage counts what was before it began.)"""


def _logs(repeats: int, directory: Path) -> Iterator[Row]:
    """10,000 reports of fio as one tidy frame; only decoding them; and what pandas makes of them by itself."""
    recorded, rng = (store.ROOT / RECORDED).read_text(), random.Random(1)  # noqa: S311  # no secret
    varied = (
        _DECIMAL.sub(lambda found: f"{float(found[0]) * rng.uniform(0.9, 1.1):.6f}", recorded) for _ in range(LOGS)
    )
    files = store.write_files(directory, {f"{number}.json": text.encode() for number, text in enumerate(varied)})

    def ours() -> None:
        read = tidy("fio", ((path.name, path.read_bytes()) for path in files))
        assert not read.problems, read.problems[0]
        assert len(read.frame) >= LOGS

    def decoding() -> None:
        for path in files:
            decode_json(path.read_bytes())

    def pandas_alone() -> None:
        pd.json_normalize([json.loads(path.read_bytes()) for path in files], record_path="jobs")

    times: dict[str, list[float]] = {"ours": [], "decoding": [], "pandas": []}
    for _ in range(repeats):  # in turns, so that a busy machine slows all of them
        for name, action in (("ours", ours), ("decoding", decoding), ("pandas", pandas_alone)):
            times[name] += _timed(action, 1)
    ratios = [mine / least for mine, least in zip(times["ours"], times["decoding"], strict=True)]
    yield Row(f"{LOGS} fio json+ logs of {len(recorded) // 1000} kB to one tidy frame", 5.0, times["ours"])
    yield Row("only decoding their JSON (orjson)", None, times["decoding"])
    yield Row("to a frame, in times of only decoding", 5.0, ratios, "times")
    yield Row("the same logs by pandas.json_normalize and the standard decoder", None, times["pandas"])
    said = subprocess.run([sys.executable, "-c", _MEMORY, str(directory)], capture_output=True, text=True, check=True)
    yield Row("memory of a process that makes the frame", float(GIB), [float(said.stdout) * KIB], "B")


CELLS, BLOCKS = 10_000, 10
_METRICS = (
    "read_bandwidth", "write_bandwidth", "read_iops", "write_iops", "read_latency_mean", "read_latency_p99",
    "write_latency_mean", "write_latency_p99",
)  # fmt: skip
_LOOP_SHARE = 20


def many_cells(count: int) -> tuple[Sweep, pd.DataFrame]:
    """A sweep of so many cells (a multiple of 8), and made-up figures of 10 trials and 8 metrics of each."""
    filesystems = tuple(Filesystem(name=f"fs{number}", type="tmpfs") for number in range(8))
    workloads = tuple(
        Workload(name="fio", tool="fio", options={"rw": "read"}, factors={"bs": f"{number}KiB"})
        for number in range(count // len(filesystems))
    )
    sweep = Sweep(
        name="many", question="How long does it take?", box="local", filesystems=filesystems, workloads=workloads,
        design=Design(repeats=BLOCKS), metrics=_METRICS, baseline="fs0",
    )  # fmt: skip
    cells, shape = sweep.cells, (len(sweep.cells), BLOCKS, len(_METRICS))
    cell, block, metric = (place.ravel() for place in np.indices(shape))
    columns = {
        "cell": np.array([each.id for each in cells], dtype=object)[cell], "block": block + 1, "warmup": False,
        "filesystem": np.array([each.filesystem.name for each in cells], dtype=object)[cell],
        "metric": np.array(_METRICS, dtype=object)[metric], "label": "",
        "unit": np.array([METRICS[name] for name in _METRICS], dtype=object)[metric],
        "value": np.random.default_rng(1).lognormal(10, 0.05, len(cell)),
    }  # fmt: skip
    return sweep, pd.DataFrame(columns)


def _statistics(repeats: int) -> Iterator[Row]:
    """Estimates and comparisons of 10,000 cells at once; and cell by cell with scipy, as one would in a notebook."""
    sweep, frame = many_cells(CELLS)

    def ours() -> None:
        analysis.estimate_frame(sweep, frame, run_id="", box="")
        analysis.comparisons(sweep, frame)

    few = frame[: len(frame) // _LOOP_SHARE]
    alone = [share * _LOOP_SHARE for share in _timed(lambda: _cell_by_cell(few), 1)]
    name = f"estimates and comparisons of {CELLS} cells x {BLOCKS} trials x {len(_METRICS)} metrics"
    yield Row(name, 3.0, _timed(ours, repeats))
    yield Row(f"the same cell by cell with scipy (from a {_LOOP_SHARE}th of them)", None, alone)


def _cell_by_cell(frame: pd.DataFrame) -> None:
    baseline: dict[Hashable, Any] = {}
    for (_, metric), own in frame.groupby(["cell", "metric"], sort=False):
        values = own["value"].to_numpy()
        stats.t.interval(0.95, len(values) - 1, loc=values.mean(), scale=stats.sem(values))
        logs = np.log(values)
        stats.ttest_rel(logs, baseline.setdefault(metric, logs[::-1])).confidence_interval(0.95)


def _report(repeats: int, scratch: Path) -> Iterator[Row]:
    run = max(scratch.glob("*/run.json")).parent
    yield Row("reading and deriving a run of this size", None, _timed(lambda: store.load_run(run), repeats))
    yield Row("its report", None, _timed(lambda: write_report(run), repeats))


_REPORTED_CELLS, _REPORTED_BLOCKS = 64, 5
_LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
_PATTERNS = ("read", "write", "randread", "randwrite")
_FIRST = """
import sys, time
start = time.perf_counter()
from pathlib import Path
from mountlab.report import write_report
for _ in range(2):
    write_report(Path(sys.argv[1]))
    print(time.perf_counter() - start)
    start = time.perf_counter()
"""
"""Times the first report of a process, its imports included, and the second."""


def _large_report(repeats: int, results: Path) -> Iterator[Row]:
    """From the directory of a run of 64 cells x 5 blocks to its report.html: the first thing that a process does, and
    the next."""
    run = recorded_run(results)
    found: list[list[float]] = []
    for _ in range(repeats):
        done = subprocess.run([sys.executable, "-c", _FIRST, str(run)], capture_output=True, text=True, check=True)
        found.append([float(line) for line in done.stdout.split()])
    what = f"report of a run of {_REPORTED_CELLS} cells x {_REPORTED_BLOCKS} blocks"
    yield Row(f"{what}, imports included", 12.0, [first for first, _ in found])
    yield Row("the second report in a process, as in a batch", 8.0, [second for _, second in found])


def recorded_run(results: Path) -> Path:
    """A run directory of 64 cells x 5 blocks that nobody measured: a report of fio that was recorded once, varied, and
    the counters of the recorded tour, planned for the local box."""
    sizes = ["4KiB", "16KiB", "64KiB", "256KiB"]
    workload = {"tool": "fio", "rw": list(_PATTERNS), "bs": sizes, "size": "64MiB", "runtime": "2s", "time_based": True}
    raw = {
        "name": "large", "question": "How long does a report take?", "baseline": "fs0", "workloads": {"fio": workload},
        "filesystems": {f"fs{number}": {"type": "tmpfs", "size": "128MiB"} for number in range(4)},
        "design": {"repeats": _REPORTED_BLOCKS, "warmup": 0, "seed": 1},
    }  # fmt: skip
    resolved = resolve(raw, where="bench")
    with workflow.planned(resolved, results=results) as session:
        writer = RunWriter.create(session.plan, resolved, session.facts, results=results)
    rng, tour = random.Random(1), store.ROOT / "results" / "tour" / "raw" / "t0001"  # noqa: S311  # no secret
    counters = {name: (tour / name).read_bytes() for name in ("before.txt", "after.txt")}
    recorded = (store.ROOT / RECORDED).read_text()
    for planned in session.plan.trials:
        report = json.dumps(_varied(json.loads(recorded), planned, rng.uniform(0.9, 1.1))).encode()
        files = {FIO_REPORT: report, "stdout": b"", "stderr": b"", "exit_status": b"0\n", **counters}
        writer.record(as_trial(planned, "ok", "", _LONG_AGO, 2.5), files)
    writer.finish("complete")
    return writer.path


def _varied(report: dict[str, Any], planned: PlannedTrial, factor: float) -> dict[str, Any]:
    """fio's report as it would be of another pattern, block size and rate."""
    (job,) = report["jobs"]
    pattern = str(planned.cell.workload.options["rw"])
    job["job options"] = {"rw": pattern, "bs": str(planned.cell.workload.options["bs"])}
    if "write" in pattern:
        job["read"], job["write"] = job["write"], job["read"]
    side = job["write" if "write" in pattern else "read"]
    for name in ("io_bytes", "bw_bytes", "iops"):
        side[name] = type(side[name])(side[name] * factor)
    return report
