"""Rates that fio is asked for, and devices whose limit falls, on the local box."""

from __future__ import annotations

import os
import re
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from causes import READS_PER_S, THROTTLE, directory, mounted, throttled
from mountlab.results import store
from mountlab.results.store import Run
from mountlab.runner import workflow
from sweeps import TMPFS, as_is

pytestmark = [pytest.mark.long, pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("fio")]

READ = {"tool": "fio", "rw": "randread", "bs": "4KiB", "size": "32MiB", "time_based": True, "runtime": "2s"}


def run_of(
    filesystem: dict[str, Any], workloads: dict[str, dict[str, Any]], results: Path, *, repeats: int = 1, **more: Any
) -> Run:
    resolved = as_is(filesystems={"fs": filesystem}, workloads=workloads, design={"repeats": repeats}, **more)
    return store.load_run(workflow.run(resolved, results=results))


def messages(run: Run, code: str) -> dict[str, str]:
    """Subject to what is said of it."""
    return {each.subject: each.message for each in run.caveats if each.code == code}


def test_a_device_that_is_asked_for_more_than_it_can_do_makes_a_closed_loop(results_dir: Path) -> None:
    """With one request at a time the median does not say how long requests on time would wait."""
    workloads = {
        name: {**READ, "direct": True, "rate_iops": READS_PER_S * share // 4}
        for name, share in (("half", 2), ("twice", 8))
    }
    with ExitStack() as undo:
        place = results_dir / "place"
        place.mkdir()
        shown = ["read_iops", "read_latency_p50"]
        run = run_of(throttled(undo, place, True), workloads, results_dir, metrics=shown)
    made = run.estimates[run.estimates["metric"] == "read_iops"].set_index("workload")["mean"]
    missing = [name for name, job in workloads.items() if made[name] < 0.98 * job["rate_iops"]]
    assert "twice" in missing, "a busy machine may hold back the other one, too"
    missed = messages(run, "rate-not-reached")
    assert missed.keys() == {f"fs/{name}" for name in missing}
    assert "overloaded box" in missed["fs/twice"]
    assert f"({', '.join(missing)})" in messages(run, "closed-loop-latency")[""]


@pytest.mark.soak
def test_the_gaps_of_poisson_arrivals_are_whole_microseconds(results_dir: Path) -> None:
    """fio 3.33 makes 5 % more than 33,400 a second; 9,000 in each of two processes are kept. Where others hold it back
    it makes less than its arithmetic; checks/test_checks_load.py judges what was measured."""
    poisson = {**READ, "rate_process": "poisson"}
    workloads = {
        "one": {**poisson, "rate_iops": 33_400, "runtime": "4s"},
        "two": {**poisson, "rate_iops": 9_000, "numjobs": 2},
    }
    missed = messages(run_of(TMPFS, workloads, results_dir), "rate-not-reached")
    assert "fs/two" not in missed
    assert "a whole number of microseconds" in missed["fs/one"]


# --- burst credits, for `make soak`: checks/test_checks_credits.py has a recorded log of such a device ---------------

FAST, SLOW = 800, 300
"""Reads a second while there are credits, and without."""


def with_credits(undo: ExitStack, reads: int) -> dict[str, Any]:
    """A directory on a device of our own that grants so many reads at the faster rate, and then is slow."""
    if not THROTTLE.exists():
        pytest.skip(f"needs {THROTTLE}: the blkio controller of cgroup v1, mounted there")
    place = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="mountlab-credits-", dir="/dev/shm")))
    device, mount = mounted(undo, place)
    status, ended = os.stat(device), threading.Event()
    number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
    counters = Path("/sys/block", Path(device).name, "stat")
    most = int(counters.read_text().split()[0]) + reads

    def watch() -> None:
        while not ended.wait(0.005):
            if int(counters.read_text().split()[0]) >= most:
                THROTTLE.write_text(f"{number} {SLOW}")
                return

    watcher = threading.Thread(target=watch)
    undo.callback(THROTTLE.write_text, f"{number} 0")
    THROTTLE.write_text(f"{number} {FAST}")
    undo.callback(watcher.join)
    undo.callback(ended.set)
    watcher.start()
    return directory(mount)


@pytest.mark.soak
def test_credits_that_end_inside_of_a_trial_are_seen(results_dir: Path) -> None:
    """12.5 MiB are granted, and the log has windows of half a second."""
    workload = {**READ, "direct": True, "runtime": "8s", "log_avg_msec": 500}
    with ExitStack() as undo:
        run = run_of(with_credits(undo, 4 * FAST), {"read": workload}, results_dir, repeats=2)
    said = messages(run, "burst-credits").get("fs/read", "")
    after = re.search(r"into t0001, and stayed there: after (\d+\.\d+) MiB", said.replace("\u00a0", " "))
    assert after, said
    assert 8 < float(after[1]) < 16, said
    assert "Later trials, from t0002 on, were at the lower level." in said
    assert messages(run, "not-steady") == {}


@pytest.mark.soak
def test_credits_that_end_between_two_trials_are_seen(results_dir: Path) -> None:
    """Of two cells, each with two trials before and three after."""
    workloads = {name: {**READ, "direct": True, "size": "2MiB", "time_based": False} for name in ("one", "two")}
    for each in workloads.values():
        del each["runtime"]
    with ExitStack() as undo:
        filesystem = with_credits(undo, 4 * 512 - 10)
        run = run_of(filesystem, workloads, results_dir, repeats=5)
    found = messages(run, "burst-credits")
    assert found.keys() == {"fs/one", "fs/two"}
    assert all("2 of 2 cells on this device" in each for each in found.values())


@pytest.mark.soak
def test_a_device_with_one_limit_has_no_burst_credits(results_dir: Path) -> None:
    """Direct reads at one limit, and buffered writes, whose log has the cliff of the page cache."""
    write = {"tool": "fio", "rw": "write", "bs": "1MiB", "size": "64MiB", "end_fsync": True, "log_avg_msec": 20}
    with ExitStack() as undo:
        filesystem = with_credits(undo, 10**9)
        workloads = {"read": {**READ, "direct": True}, "write": write}
        run = run_of(filesystem, workloads, results_dir, repeats=3)
    assert messages(run, "burst-credits") == {}
    assert "burst-credits" in run.checks_passed
