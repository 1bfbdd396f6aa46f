"""The answer of a run names the cause that was planted on one of its two file systems, and its parts add up to what the
tool measured."""

from __future__ import annotations

import math
import os
import re
import subprocess
import time
from contextlib import ExitStack, nullcontext
from pathlib import Path

import pytest
from cause_records import LOADED, QUIET, RECORDS, Record, judged, keep, kept, shown, write_tables
from causes import CAUSES, Cause, busy_at_idle_priority, busy_machine, compared
from mountlab.results import store
from mountlab.runner import workflow
from sweeps import CLOCK, EXT4, sweep

pytestmark = [
    pytest.mark.box,
    pytest.mark.requires_root,
    pytest.mark.requires_program("fio"),
    pytest.mark.requires_program("perf"),
    pytest.mark.requires_program("losetup"),
]
ENGINES = ("psync", "libaio", "io_uring")
CLOSE = 0.05
OF_THE_MACHINE = re.compile("the kernel had no room|this kernel hides idle processors")
"""Why a split is withheld that nothing but the machine is to blame for."""
QUICK = {"throttled reads", "delayed writes", "lock contention"}
"""Causes that the long test plants, too."""
BLOCKS, TIMES = {QUIET: 5, LOADED: 8}, {QUIET: 1, LOADED: 2}
"""Diagnostic blocks, and how many times as long a trial is: beside a load figures spread more."""
RUNS = int(os.environ.get("MOUNTLAB_CAUSE_RUNS", "5"))
"""Of each cause, quiet and beside a load. Records of earlier runs count."""
ALONE = ("unshare", "-m", "--propagation", "slave")
"""perf mounts tracefs where it is not mounted, and leaves it."""
NO_CACHE = ("--no-buildid", "--no-buildid-cache")
"""Otherwise perf copies programs into ~/.debug."""


def by_name(cause: Cause) -> str:
    return re.sub(r"\W+", "-", cause.name)


def explained(cause: Cause, results: Path, *, beside: str = QUIET) -> Record:
    began, load = time.monotonic(), math.nan

    def measured() -> None:
        nonlocal load
        load = os.getloadavg()[0]
        others.close()

    with ExitStack() as others:
        if cause.interrupts and not idle_is_traced(results):
            others.enter_context(busy_at_idle_priority())
        if beside == LOADED:
            others.enter_context(busy_machine())
        place = compared(cause, results, measured, times=TIMES[beside], explain=BLOCKS[beside])
    return judged(cause, store.load_run(place), beside=beside, load=load, took_s=time.monotonic() - began)


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.parametrize("cause", [each for each in CAUSES if each.name in QUICK], ids=by_name)
def test_the_answer_names_the_cause_that_was_planted(cause: Cause, results_dir: Path) -> None:
    """On a busy machine events are lost: then nothing is shown, and why is said."""
    record = explained(cause, results_dir)
    if record.verdict == "not shown" and record.withheld and all(map(OF_THE_MACHINE.search, record.withheld)):
        pytest.skip(f"too few trials have a split: {min(record.withheld)}")
    assert record.verdict == "right", shown([record])


def idle_is_traced(place: Path) -> bool:
    """Whether perf sees what happens on each processor while it is idle. Where it does not, the ends of requests that
    meet an idle processor are in no trace, and are not counted as lost."""
    data = place / "idle.data"
    subprocess.run(
        [*ALONE, "perf", "record", "-q", "-a", *NO_CACHE, "-e", "cpu-clock", "-o", data, "--", "sleep", "1"], check=True
    )
    script = [*ALONE, "perf", "script", "-i", data, "-F", "comm,cpu"]
    said = subprocess.run(script, capture_output=True, text=True, check=True).stdout
    return len({line.split()[1] for line in said.splitlines() if line.startswith("swapper")}) == os.cpu_count()


@pytest.mark.alone
@pytest.mark.parametrize(
    ("depths", "jobs"),
    [pytest.param([1], [1], marks=pytest.mark.long), pytest.param([1, 16, 64], [1, 4], marks=pytest.mark.soak)],
    ids=["one", "many"],
)
def test_the_parts_add_up_to_what_the_tool_measured(
    depths: list[int], jobs: list[int], results_dir: Path, tmp_path: Path
) -> None:
    """By the mean where all was seen; by the operations under way at a time where a part was: they are slower while
    they are traced."""
    job = {"tool": "fio", "rw": "randread", "bs": "4KiB", "size": "32MiB", "direct": True, "runtime": "1s", **CLOCK}
    many = {"iodepth": depths, "numjobs": jobs, "time_based": True}
    resolved = sweep(
        filesystems={"ext4": {**EXT4, "image": "256MiB"}},
        workloads={engine: {**job, **many, "ioengine": engine} for engine in ENGINES},
        design={"repeats": 1, "explain": 3},
    )
    with nullcontext() if idle_is_traced(tmp_path) else busy_at_idle_priority():
        place = workflow.run(resolved, results=results_dir)
    run = store.load_run(place)
    traced = run.why.traces[run.why.traces["operation"] == "read"].set_index("trial_id")
    shown = run.why.layers[(run.why.layers["operation"] == "read") & (run.why.layers["statistic"] == "mean")]
    for trial, sum_of_parts in shown.groupby("trial_id")["seconds"].sum().items():
        assert sum_of_parts == pytest.approx(traced.loc[trial, "traced_mean"])
    by_mean, in_flight = (traced[f"traced_{what}"] / traced[f"tool_{what}"] for what in ("mean", "in_flight"))
    whole = (traced["seen"] == 1) & (traced["cut"] == "")
    ratios = by_mean.where(whole, in_flight).groupby(traced["cell"])
    assert list(ratios.count()) == [3] * len(ENGINES) * len(depths) * len(jobs), list(run.why.traces["withheld"])
    assert ((ratios.median() - 1).abs() <= CLOSE).all(), ratios.median()


@pytest.mark.soak
@pytest.mark.parametrize("beside", [QUIET, LOADED])
@pytest.mark.parametrize("cause", CAUSES, ids=by_name)
def test_a_planted_cause_is_named_and_no_other(cause: Cause, beside: str, results_dir: Path) -> None:
    """Goes on where it was interrupted."""

    def records() -> list[Record]:
        return [each for each in kept(RECORDS) if (each.cause, each.beside) == (cause.name, beside)]

    for turn in range(RUNS - len(records())):
        (results_dir / str(turn)).mkdir()
        keep(RECORDS, explained(cause, results_dir / str(turn), beside=beside))
        write_tables(kept(RECORDS))
    verdicts = [each.verdict for each in records()]
    assert "wrong" not in verdicts, shown(records())
    assert verdicts.count("not shown" if cause.is_mapped else "right") >= 0.8 * RUNS, shown(records())
