"""What a trace names largest is the cause that was planted, and its parts add up to what the tool measured."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path

import pytest
from causes import CAUSES, MOST_AT_ONCE, Cause, explained_run, keep_busy, largest, parts_of
from causes_table import PAGE, Found, put
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
ONLY_BY_HUNDREDS = {"processor hog", "frequent commits"}
"""Causes that the soak plants and the shorter test does not."""
WITHOUT = 20
"""Trials without the cause: where they name the same part, the cause is not what is found."""
ALONE = ("unshare", "-m", "--propagation", "slave")
"""perf mounts tracefs where it is not mounted, and leaves it."""
NO_CACHE = ("--no-buildid", "--no-buildid-cache")
"""Otherwise perf copies programs into ~/.debug."""


def by_name(cause: Cause) -> str:
    return cause.name.replace(" ", "-")


@pytest.mark.long
@pytest.mark.alone
@pytest.mark.parametrize("cause", [each for each in CAUSES if each.name not in ONLY_BY_HUNDREDS], ids=by_name)
def test_of_five_trials_no_more_than_one_names_another_cause_than_the_planted(cause: Cause, results_dir: Path) -> None:
    """A trial whose split is withheld names none: on a busy machine events are lost."""
    run = explained_run(cause, 5, results_dir)
    found = [largest(parts) for parts in parts_of(run, cause)]
    named = [each for each in found if each]
    assert len(found) == 5
    assert named.count(cause.largest) >= len(named) - 1, found
    reasons = {each for each in run.why.traces["withheld"] if each}
    if len(named) < 3 and reasons and all(OF_THE_MACHINE.search(each) for each in reasons):
        pytest.skip(f"{len(named)} of 5 trials have a split: {min(reasons)}")
    assert len(named) >= 3, reasons


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
@pytest.mark.parametrize("cause", CAUSES, ids=by_name)
def test_a_planted_cause_is_named_largest_in_95_of_100_trials(cause: Cause, results_dir: Path) -> None:
    found = Found(cause, [], parts_of(explained_run(cause, WITHOUT, results_dir, there=False), cause))
    while len(found.planted) < 100:
        trials = min(MOST_AT_ONCE, 100 - len(found.planted))
        found.planted.extend(parts_of(explained_run(cause, trials, results_dir), cause))
    PAGE.write_text(put(PAGE.read_text(), found))
    named = [largest(parts) for parts in found.planted]
    assert named.count(cause.largest) >= 95, {each: named.count(each) for each in set(named)}
