"""filebench for real: every workload of the table on tmpfs and ext4, what it leaves behind, and what ends it."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mountlab.core.units import MIB
from mountlab.programs import wml
from mountlab.results import store
from mountlab.results.store import Run
from mountlab.runner import workflow
from ownbox import own_box
from processes import mapped
from sweeps import as_is
from waiting import wait_until

pytestmark = [
    pytest.mark.box,
    pytest.mark.requires_root,
    pytest.mark.requires_program("filebench"),
    pytest.mark.requires_program("sshd"),
]

SMALL: dict[str, Any] = {
    "nfiles": 2000, "filesize": "8KiB", "threads": 4, "appendsize": "4KiB", "iosize": "8KiB", "writers": 2, "burst": 64,
    "rate": 50, "runtime": "1s",
}  # fmt: skip
_FILE = {"filesize": "16MiB"}
_APPEND = {"filesize": "400MiB", "iosize": "4KiB"}
_MANY = {"nfiles": 60_000, "filesize": "1KiB"}
CHANGES: dict[str, dict[str, Any]] = {
    "oltp": {"nfiles": 4, "filesize": "1MiB"}, "videoserver": {"nfiles": 4},
    "seqread": _FILE, "rread": _FILE, "rwrite": _FILE, "rwritedsync": _FILE, "rwritefsync": _FILE,
    "seqwrite": _APPEND, "writefsync": _APPEND, "createfiles": _MANY, "delete": _MANY, "copyfiles": _MANY,
    "makedirs": {"nfiles": 100_000}, "removedirs": {"nfiles": 100_000},
}  # fmt: skip
"""Work of a fixed amount must last for longer than filebench takes to start its clock."""


def workload(name: str, **more: Any) -> dict[str, Any]:
    takes = wml.takes(name)
    options = {**SMALL, **CHANGES.get(name, {}), **more}
    known = {key: value for key, value in options.items() if key in takes | {"cache", "direct"}}
    defaults = wml.RECIPES[name].defaults
    return {"tool": "filebench", "workload": name, **{k: v for k, v in known.items() if defaults.get(k, 1)}}


def shared_files() -> set[str]:
    """Those that nobody uses: one that is mapped is of a filebench at work."""
    return {path.name for path in Path("/tmp").glob("filebench-shm-*") if not mapped(path)}


def semaphores() -> set[str]:
    return {line.split()[1] for line in Path("/proc/sysvipc/sem").read_text().splitlines()[1:]}


@pytest.fixture(autouse=True)
def _nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    own_box(tmp_path, monkeypatch)
    files, sets = shared_files(), semaphores()
    yield
    assert shared_files() <= files
    assert semaphores() <= sets or strangers(tmp_path)


def ran(tmp_path: Path, workloads: dict[str, Any], **more: Any) -> Run:
    design = {"repeats": 1, "fresh_filesystem": "cell", **more.pop("design", {})}
    more = {"filesystems": {"tmpfs": {"type": "tmpfs", "size": "2GiB"}}, **more}
    return store.load_run(workflow.run(as_is(workloads=workloads, design=design, **more), results=tmp_path / "results"))


def only_reason(run: Run) -> str:
    assert list(run.trials["status"]) == ["failed"]
    return str(run.trials["reason"].iloc[0])


def of_a_run(process: Path, place: Path) -> bool:
    """Whether it belongs to a trial of a run of this test."""
    try:
        environment = (process / "environ").read_bytes()
    except OSError:
        return False
    return any(f"MOUNTLAB_RUN={path.name}\0".encode() in environment for path in (place / "results").glob("2*"))


def filebenches(place: Path) -> list[int]:
    """Processes of filebench that measure in a run of this test: masters first."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words, ours = (process / "cmdline").read_bytes().split(b"\0"), of_a_run(process, place)
        except OSError:
            continue
        if ours and words[0] == b"filebench" and b"-f" in words:
            found.append(int(process.name))
    return found


def at_work() -> Iterator[Path]:
    """Processes that have a shared file of filebench mapped."""
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            text = maps.read_text()
        except OSError:
            continue
        if "/tmp/filebench-shm-" in text:
            yield maps.parent


def workers(place: Path) -> list[str]:
    """Those of them that belong to this test."""
    return [process.name for process in at_work() if of_a_run(process, place)]


def strangers(place: Path) -> list[str]:
    """Those of them that do not."""
    return [process.name for process in at_work() if not of_a_run(process, place)]


# --- every workload ---------------------------------------------------------------------------------------------------


def test_every_workload_of_the_table_runs_and_is_read(tmp_path: Path) -> None:
    run = ran(tmp_path, {name: workload(name) for name in wml.RECIPES})
    failed = run.trials[run.trials["status"] != "ok"]
    assert failed.empty, failed[["cell", "reason"]].to_string()
    whole = run.measurements[run.measurements["label"] == ""].set_index(["workload", "metric"])["value"]
    for name, recipe in wml.RECIPES.items():
        assert whole[name, "operations"] > 0
        assert ((name, "operation_rate") in whole.index) == (not recipe.ends)
        assert whole[name, "operation_latency"] > 0
    labels = run.measurements[run.measurements["workload"] == "fileserver"]["label"]
    assert {"create-file", "append", "stat-file"} <= set(labels)
    assert "1.5" in run.info.facts.programs.version("filebench")
    assert workers(tmp_path) == []


@pytest.mark.machine
def test_files_are_flushed_and_put_out_of_the_cache_before_a_cold_read_is_measured(tmp_path: Path) -> None:
    """filebench makes its files itself: without that, every read would come from memory."""
    read = {"tool": "filebench", "workload": "seqread", "filesize": "64MiB", "runtime": "1s"}
    run = ran(
        tmp_path,
        {"cold": {**read, "cache": "cold"}, "warm": {**read, "cache": "warm"}},
        filesystems={"ext4": {"type": "ext4", "image": "192MiB"}},
    )
    assert list(run.trials["status"]) == ["ok", "ok"], list(run.trials["reason"])
    delivered = {}
    for trial in run.trials.itertuples():
        before, after = (
            sum(int(line.split()[5]) * 512 for line in text.splitlines() if re.match(r" +7 +\d+ loop", line))
            for text in (
                (run.path / "raw" / str(trial.trial_id) / f"{when}.txt").read_text() for when in ("before", "after")
            )
        )
        delivered[str(trial.workload)] = after - before
    assert delivered["cold"] >= 64 * MIB
    assert delivered["warm"] < 8 * MIB


# --- texts of others --------------------------------------------------------------------------------------------------

OWN = """
# Two threads, one file.
set $dir=/somewhere/else
set $nthreads=2
define fileset name=tree,path=$dir,size=16k,entries=100,prealloc=100
define process name=reader,instances=1 {
  thread name=worker,memsize=2m,instances=$nthreads {
    flowop openfile name=open-it,filesetname=tree,fd=1
    flowop readwholefile name=read-it,fd=1,iosize=1m
    flowop closefile name=close-it,fd=1
  }
}
run 1
"""


def test_a_text_of_the_user_s_own_runs_in_our_directory(tmp_path: Path) -> None:
    run = ran(tmp_path, {"own": {"tool": "filebench", "wml": OWN, "space": "16MiB"}})
    assert list(run.trials["status"]) == ["ok"], list(run.trials["reason"])
    rows = run.measurements.set_index(["metric", "label"])["value"]
    assert rows["operation_rate", "read-it"] > 0
    assert rows["bytes", "read"] > 0
    assert rows["elapsed", ""] > 0


def test_an_installed_workload_is_run_by_its_name(tmp_path: Path) -> None:
    installed = {"tool": "filebench", "installed": "listdirs", "runtime": "1s", "space": "300MiB"}
    run = ran(tmp_path, {"theirs": installed})
    assert list(run.trials["status"]) == ["ok"], list(run.trials["reason"])
    assert run.measurements.set_index(["metric", "label"])["value"]["operation_rate", ""] > 0


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("nonesuch", "filebench has no workload nonesuch on this box; those that it has are in /"),
        ("filemicro_seqread", "filebench could not read the workload"),
    ],
)
def test_what_is_wrong_with_an_installed_workload_is_told(tmp_path: Path, name: str, reason: str) -> None:
    run = ran(tmp_path, {"theirs": {"tool": "filebench", "installed": name, "runtime": "1s", "space": "1GiB"}})
    assert reason in only_reason(run)


# --- ends -------------------------------------------------------------------------------------------------------------


def test_one_that_takes_too_long_is_ended_with_all_its_workers(tmp_path: Path) -> None:
    run = ran(tmp_path, {"oltp": workload("oltp", runtime="50s")}, design={"trial_timeout": "4s"})
    assert "ran longer than 4 s and was ended" in only_reason(run)
    assert (filebenches(tmp_path), workers(tmp_path)) == ([], [])


@pytest.mark.parametrize("phase", [0.3, 2.0])
def test_one_that_is_killed_gives_no_figures_and_leaves_nothing(tmp_path: Path, phase: float) -> None:
    killed: list[int] = []

    def kill() -> None:
        wait_until("filebench", lambda: filebenches(tmp_path))
        time.sleep(phase)
        for pid in filebenches(tmp_path):
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)

    thread = threading.Thread(target=kill)
    thread.start()
    run = ran(tmp_path, {"oltp": workload("oltp", runtime="20s")})
    thread.join()
    assert killed
    assert "filebench failed with exit status 137" in only_reason(run)
    assert (filebenches(tmp_path), workers(tmp_path)) == ([], [])
