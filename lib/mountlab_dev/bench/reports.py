"""From a run to its report, and to its next trial."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mountlab.box.embedded import open_box
from mountlab.core.model import Box
from mountlab.core.places import SHIPPED
from mountlab.fio.report import FILE as FIO_REPORT
from mountlab.report.execute import write_report
from mountlab.results import store
from mountlab.results.info import read_info, read_sweep
from mountlab.results.writer import RunWriter
from mountlab.runner import workflow
from mountlab.runner.trial_executor import as_trial
from mountlab.sweep.plan import PlannedTrial
from mountlab.sweep.sweep_file import resolve

from mountlab_dev.bench.cheap import RECORDED
from mountlab_dev.bench.table import Row, timed, worked
from mountlab_dev.bench.trials import DD, a_sweep, measured


def rows(box: Box, repeats: int, results: Path) -> Iterator[Row]:
    """Of a run of one cell, of one of 64, and what it takes to go on with that."""
    with open_box(box) as connection:
        measured(connection, a_sweep(DD, repeats), results / "small")
    run = next((results / "small").glob("*/run.json")).parent
    yield Row("reading and deriving a run of one cell", timed(lambda: store.load_run(run), repeats))
    yield Row("its report", timed(lambda: write_report(run), repeats))
    yield from _ending(repeats, results)
    yield from large(box, repeats, results / "large")


_REPORTED_CELLS, _REPORTED_BLOCKS = 64, 5
_LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
_PATTERNS = ("read", "write", "randread", "randwrite")
_FIRST = """
import sys, time
start = time.perf_counter()
from pathlib import Path
from mountlab.report.execute import write_report
for _ in range(2):
    write_report(Path(sys.argv[1]))
    print(time.perf_counter() - start)
    start = time.perf_counter()
"""
"""Times the first report of a process, its imports included, and the second."""


_ENDED = """
import sys, time
from pathlib import Path
from mountlab.cli.shared import finish
from mountlab.report.kernels import prepare
from mountlab.results.info import read_sweep
from mountlab.results.writer import RunWriter
from mountlab.runner import workflow
from mountlab.runner.finish import finishing
writer = RunWriter(Path(sys.argv[1]))
start = time.perf_counter()
with finishing(writer, read_sweep(writer.path).sweep) as final:
    final.status = "complete"
    prepare()
finish(writer.path)
print(time.perf_counter() - start)
"""
"""Times what follows the last trial of a run, in a process that has imported what measuring needs."""


def _ending(repeats: int, results: Path) -> Iterator[Row]:
    """Yield the end of a run as large as that of the demo, and its way into a bundle."""
    run = Path(shutil.copytree(SHIPPED / "results" / "tour", results / "tour"))
    words = [sys.executable, "-c", _ENDED, str(run)]
    said = [subprocess.run(words, capture_output=True, text=True, check=True).stdout for _ in range(repeats)]
    took = [float(each.split()[-1]) for each in said]
    yield Row("from the last trial of the recorded tour to the printed path of its report", took, under=5.0)
    bundles = [
        worked(["publish", str(run), "--to", str(results / f"bundle-{number}")], 1)[0] for number in range(repeats)
    ]
    yield Row("publish of that run, processor time", bundles, under=8.0)


def large(box: Box, repeats: int, results: Path) -> Iterator[Row]:
    """From the directory of a run of 64 cells x 5 blocks to its report.html: the first thing that a process does, and
    the next."""
    run = recorded_run(results, box.name)
    found: list[list[float]] = []
    for _ in range(repeats):
        done = subprocess.run([sys.executable, "-c", _FIRST, str(run)], capture_output=True, text=True, check=True)
        found.append([float(line) for line in done.stdout.split()])
    what = f"report of a run of {_REPORTED_CELLS} cells x {_REPORTED_BLOCKS} blocks"
    yield Row(f"{what}, imports included", [first for first, _ in found], under=7.0)
    yield Row("the second report in a process, as in a batch", [second for _, second in found], under=4.0)
    yield from _going_on(repeats, run)


def _going_on(repeats: int, run: Path) -> Iterator[Row]:
    """Yield what `resume` does before the first trial: read what was asked and what has run, look at the box, plan."""

    def resumed() -> None:
        info, resolved = read_info(run), read_sweep(run)
        with workflow.planned(
            resolved, box=info.box_name, run_id=info.run_id, seed=info.seed, results=run.parent
        ) as session:
            writer = RunWriter(run)
            assert all(writer.has(trial.trial_id) for trial in session.plan.trials)

    yield Row("resume of that run, until the first trial would begin", timed(resumed, repeats))


def recorded_run(results: Path, box: str = "local") -> Path:
    """Return a run directory of 64 cells x 5 blocks that was not measured: a report of fio that was recorded once,
    varied, and the counters of the recorded tour, planned for the local box."""
    sizes = ["4KiB", "16KiB", "64KiB", "256KiB"]
    workload = {"tool": "fio", "rw": list(_PATTERNS), "bs": sizes, "size": "64MiB", "runtime": "2s", "time_based": True}
    raw = {
        "name": "large",
        "question": "How long does a report take?",
        "baseline": "fs0",
        "workloads": {"fio": workload},
        "filesystems": {f"fs{number}": {"type": "tmpfs", "size": "128MiB"} for number in range(4)},
        "design": {"repeats": _REPORTED_BLOCKS, "warmup": 0, "seed": 1},
    }
    resolved = resolve(raw, where="bench")
    with workflow.planned(resolved, box=box, results=results) as session:
        writer = RunWriter.create(session.plan, resolved, session.facts, results=results)
    rng, tour = random.Random(1), SHIPPED / "results" / "tour" / "raw" / "t0001"  # noqa: S311  # no secret
    counters = {name: (tour / name).read_bytes() for name in ("before.txt", "after.txt")}
    recorded = RECORDED.read_text()
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
