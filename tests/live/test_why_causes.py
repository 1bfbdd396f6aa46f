"""The answer of a run names the cause that was planted on one of its two file systems, and its parts add up to what the
tool measured."""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

import pytest
from cause_records import LOADED, PAGE, QUIET, ROOT, Record, judged, keep, kept, put, shown
from causes import CAUSES, Cause, busy_machine, compared_run, keep_busy
from mountlab.results import store
from mountlab.runner import workflow
from sweeps import EXT4, sweep

pytestmark = [
    pytest.mark.box,
    pytest.mark.requires_root,
    pytest.mark.requires_program("fio"),
    pytest.mark.requires_program("perf"),
    pytest.mark.requires_program("losetup"),
    pytest.mark.requires_program("chrt"),
]
ENGINES = ("psync", "libaio", "io_uring")
CLOSE = 0.05
OF_THE_MACHINE = re.compile("the kernel had no room|this kernel hides idle processors")
"""Why a split is withheld that nothing but the machine is to blame for."""
QUICK = {"throttled reads", "delayed writes", "lock contention"}
"""Causes that the long test plants, too."""
BLOCKS = 5
RUNS = int(os.environ.get("MOUNTLAB_CAUSE_RUNS", "5"))
"""Of each cause, quiet and beside a load. Records of earlier runs count."""
RECORDS = ROOT / "results" / "why-causes.jsonl"
ALONE = ("unshare", "-m", "--propagation", "slave")
"""perf mounts tracefs where it is not mounted, and leaves it."""
NO_CACHE = ("--no-buildid", "--no-buildid-cache")
"""Otherwise perf copies programs into ~/.debug."""


def by_name(cause: Cause) -> str:
    return re.sub(r"\W+", "-", cause.name)


def explained(cause: Cause, results: Path, *, beside: str = QUIET) -> Record:
    began = time.monotonic()
    with ExitStack() as undo:
        if beside == LOADED:
            undo.enter_context(busy_machine())
        elif cause.interrupts and not idle_is_traced(results):
            undo.enter_context(busy_at_idle_priority())
        run = compared_run(cause, results, explain=BLOCKS)
    return judged(cause, run, beside=beside, took_s=time.monotonic() - began)


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


@contextmanager
def busy_at_idle_priority() -> Iterator[None]:
    """No processor is idle, and whatever wants one gets it at once."""
    with ExitStack() as undo:
        keep_busy(undo, 1, "chrt", "--idle", "0")
        yield


@pytest.mark.long
@pytest.mark.alone
def test_the_parts_add_up_to_the_mean_that_the_tool_measured(results_dir: Path, tmp_path: Path) -> None:
    job = {"tool": "fio", "rw": "randread", "bs": "4KiB", "size": "32MiB", "direct": True, "runtime": "500ms"}
    resolved = sweep(
        filesystems={"ext4": EXT4},
        workloads={engine: {**job, "time_based": True, "ioengine": engine, "iodepth": 1} for engine in ENGINES},
        design={"repeats": 1, "explain": 5},
    )
    with nullcontext() if idle_is_traced(tmp_path) else busy_at_idle_priority():
        run = store.load_run(workflow.run(resolved, results=results_dir))
    traced = run.why.traces[run.why.traces["operation"] == "read"].set_index("trial_id")
    shown = run.why.layers[(run.why.layers["operation"] == "read") & (run.why.layers["statistic"] == "mean")]
    for trial, sum_of_parts in shown.groupby("trial_id")["seconds"].sum().items():
        assert sum_of_parts == pytest.approx(traced.loc[trial, "traced_mean"])
    ratios = (traced["traced_mean"] / traced["tool_mean"]).groupby(traced["cell"])
    cells = [f"ext4/{engine}" for engine in ENGINES]
    assert ratios.count().reindex(cells, fill_value=0).min() >= 3, list(run.why.traces["withheld"])
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
        PAGE.write_text(put(PAGE.read_text(), kept(RECORDS)))
    verdicts = [each.verdict for each in records()]
    assert "wrong" not in verdicts, shown(records())
    assert verdicts.count("right") >= 0.8 * RUNS, shown(records())
