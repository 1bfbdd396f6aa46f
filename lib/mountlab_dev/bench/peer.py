"""fio-plot's bench-fio on the same cells in the same session, from an environment of its own that is thrown away."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise, product
from pathlib import Path
from shutil import which

from mountlab.box.embedded import open_box
from mountlab.core import disk
from mountlab.core.model import Box
from mountlab.core.units import NS_PER_S
from mountlab.results import store

from mountlab_dev.bench.table import Row
from mountlab_dev.bench.trials import FIO, a_sweep, measured

PACKAGE = "fio-plot"
DEPTHS, JOBS = (1, 2), (1, 2)
CELLS = len(DEPTHS) * len(JOBS)
GOAL_S = 0.024
"""A fifth of the 120 ms that were measured of bench-fio before (of few cells, its start included)."""
LONGEST_S = 600
_SHIM = """#!/bin/sh
case " $* " in *" --version "*) exec {fio} "$@" ;; esac
began=$(date +%s%N)
{fio} "$@"
status=$?
echo "$began $(date +%s%N)" >> {log}
exit $status
"""
"""Stands before fio on PATH, and notes when it begins and ends, as trial.sh does."""


Spans = list[tuple[float, float]]
"""When each fio began and ended, in seconds."""


def rows(box: Box, repeats: int, scratch: Path) -> Iterator[Row]:
    """Yield what a cell of 1 s takes beyond the same job started by hand; and what lies between two runs of fio."""
    loops = max(2, repeats // CELLS)
    workload = {**FIO, "iodepth": list(DEPTHS), "numjobs": list(JOBS)}
    with open_box(box) as connection:
        ours = measured(connection, a_sweep(workload, loops, warmup=0), scratch).stamps
    alone = [end - start for start, end in by_hand(loops, scratch)]
    least = statistics.median(alone)
    yield Row(f"fio by hand, {CELLS} cells of 1 s, the whole process", alone)
    yield Row("a cell beyond fio by hand: Mountlab", beyond(ours, least), under=GOAL_S)
    theirs, took_s, why_not = bench_fio(loops, scratch)
    yield Row("the same: bench-fio, once it has started", beyond(theirs, least), why_not=why_not)
    whole = [took_s / len(theirs) - least] if theirs else []
    yield Row(f"the same: bench-fio, its start included, {loops * CELLS} cells", whole, why_not=why_not)
    yield Row("from the end of a fio to the start of the next: Mountlab", gaps(ours))
    yield Row("from the end of a fio to the start of the next: bench-fio", gaps(theirs), why_not=why_not)


def beyond(spans: Spans, least_s: float) -> list[float]:
    """Return seconds from the start of each fio to the start of the next, beyond what fio itself takes."""
    return [later[0] - earlier[0] - least_s for earlier, later in pairwise(spans)]


def gaps(spans: Spans) -> list[float]:
    """Return seconds in which no fio ran."""
    return [later[0] - earlier[1] for earlier, later in pairwise(spans)]


def by_hand(loops: int, scratch: Path) -> Iterator[tuple[float, float]]:
    """Yield the same cells, each started as a process in a new directory, with its report as JSON."""
    for number, depth, jobs in product(range(loops), DEPTHS, JOBS):
        target = scratch / f"hand-{number}-{depth}-{jobs}"
        disk.make_directory(target)
        words = [
            "fio", "--name=hand", f"--directory={target}", "--rw=randwrite", "--bs=4k", "--size=1m", "--runtime=1",
            "--time_based=1", "--ioengine=psync", f"--iodepth={depth}", f"--numjobs={jobs}", "--group_reporting=1",
            "--output-format=json", f"--output={target}/fio.json",
        ]  # fmt: skip
        start = time.perf_counter()
        subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, check=True)
        yield start, time.perf_counter()


def bench_fio(loops: int, scratch: Path) -> tuple[Spans, float, str]:
    """When bench-fio's fio ran, and how long all of it took; or why it did not."""
    program, why_not = installed(scratch / "peer")
    fio = which("fio")
    if not program or not fio:
        return [], 0.0, why_not or "no fio on this machine"
    log, shims = scratch / "fio.log", scratch / "shims"
    (shim,) = store.write_files(shims, {"fio": _SHIM.format(fio=fio, log=log).encode()})
    os.chmod(shim, 0o700)
    start = time.perf_counter()
    done = _quietly(argv(program, loops, scratch), f"{shims}:{os.environ['PATH']}")
    took_s = time.perf_counter() - start
    if done.returncode or not log.exists():
        return [], 0.0, f"bench-fio failed: {_last_line(done)}"
    return [_span(line) for line in log.read_text().splitlines()], took_s, ""


def _span(line: str) -> tuple[float, float]:
    began, ended = (int(word) / NS_PER_S for word in line.split())
    return began, ended


def argv(program: Path, loops: int, scratch: Path) -> list[str]:
    """bench-fio for the cells of `rows`."""
    disk.make_directory(scratch / "target")
    lists = [*("--iodepth", *map(str, DEPTHS)), *("--numjobs", *map(str, JOBS))]
    return [
        str(program),
        "--target",
        str(scratch / "target"),
        "--type",
        "directory",
        "--size",
        "1M",
        "--mode",
        "randwrite",
        "--block-size",
        "4k",
        *lists,
        "--runtime",
        "1",
        "--time-based",
        "--engine",
        "psync",
        "--direct",
        "0",
        "--loops",
        str(loops),
        "--destructive",
        "--create",
        "--quiet",
        "--output",
        str(scratch / "bench-fio"),
    ]


def installed(directory: Path) -> tuple[Path | None, str]:
    """Return the program bench-fio, newly installed by uv, or why there is none."""
    uv = Path(sys.executable).with_name("uv")
    python = directory / "bin" / "python"
    for words in (("venv", "--quiet", str(directory)), ("pip", "install", "--quiet", "--python", str(python), PACKAGE)):
        try:
            done = _quietly([str(uv), *words], os.environ["PATH"])
        except (OSError, subprocess.TimeoutExpired) as error:
            return None, f"uv cannot install {PACKAGE}: {error}"
        if done.returncode:
            return None, f"uv cannot install {PACKAGE}: {_last_line(done)}"
    return directory / "bin" / "bench-fio", ""


def _quietly(words: list[str], path: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        words,
        env={**os.environ, "PATH": path},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LONGEST_S,
        check=False,
    )


def _last_line(done: subprocess.CompletedProcess[str]) -> str:
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return said[-1] if said else f"exit status {done.returncode}"
