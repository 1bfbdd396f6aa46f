"""Diagnostic trials for real, undisturbed and disturbed: perf, its tracefs and its files are gone afterwards."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest
from faults.scenes import EXT4, TMPFS, Scene, control, linked, scene
from mountlab.results.symbols import symbols_of
from processes import is_alive, processes_with, program_of
from waiting import wait_until

pytestmark = [
    pytest.mark.box,
    pytest.mark.requires_root,
    pytest.mark.requires_program("sshd", "perf", "fio", "mkfs.ext4"),
]
PERF_DATA = b"PERFILE2"
FIO = {
    "tool": "fio",
    "rw": "randwrite",
    "bs": "4KiB",
    "size": "4MiB",
    "fdatasync": 1,
    "time_based": True,
    "rate_iops": 500,
}


def put(place: Scene, runtime: str = "2s", **filesystems: Any) -> Path:
    design = {"repeats": 1, "warmup": 0, "seed": 7, "explain": 2, "shortest_trial": "0s", "trial_timeout": "30s"}
    return place.put_sweep(
        filesystems=filesystems or {"tmpfs": TMPFS},
        workloads={"w": {**FIO, "runtime": runtime}},
        design=design,
    )


def trials(run: Path) -> dict[str, dict[str, Any]]:
    rows = (json.loads(line) for line in (run / "trials.jsonl").read_text().splitlines())
    return {row["trial_id"]: row for row in rows}


def traced(place: Scene) -> int:
    """The number of the perf that records now, once it does."""
    wait_until("a perf that records", lambda: any(place.output_root.glob("*/x*.trace/looking")))
    return next(pid for pid in processes_with(place.output_root.name) if program_of(pid) == "perf")


def assert_whole(run: Path, *names: str) -> None:
    """Every diagnostic trial of the run has its record."""
    found = {name: row for name, row in trials(run).items() if row["diagnostic"]}
    assert set(found) == set(names)
    assert {row["status"] for row in found.values()} == {"ok"}
    for name, row in found.items():
        for record in ("trace.data.gz", "trace_calls.data.gz"):
            assert gzip.decompress((run / "raw" / name / record).read_bytes()).startswith(PERF_DATA)
        assert b" t " in gzip.decompress(symbols_of(run / "raw", row["mount"])).lower()


def programs_in(record: Path, tmp_path: Path) -> set[str]:
    """The programs that began meanwhile, as perf itself reads it. (The bytes of a name may be a number, too.)"""
    (tmp_path / "record").write_bytes(gzip.decompress(record.read_bytes()))
    script = ["perf", "script", "--show-task-events", "-i", tmp_path / "record"]
    said = subprocess.run(script, capture_output=True, check=True, text=True).stdout
    return set(re.findall(r"PERF_RECORD_COMM exec: (.+):\d+/\d+", said))


def tracefs() -> list[str]:
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if " - tracefs " in line]


@pytest.mark.parametrize(
    ("runtime", "filesystems"),
    [("500ms", {"ext4": EXT4}), pytest.param("2s", {"tmpfs": TMPFS, "ext4": EXT4}, marks=pytest.mark.long)],
)
def test_each_cell_is_traced_and_nothing_is_left(runtime: str, filesystems: dict[str, Any], tmp_path: Path) -> None:
    before, cached = tracefs(), set((Path.home() / ".debug").rglob("*"))
    with scene() as place, control(place) as machine:
        machine.start("run", put(place, runtime, **filesystems))
        assert machine.wait() == 0, machine.said()
        (run,) = place.runs
        names = [f"x{number:04d}" for number in range(1, 2 * len(filesystems) + 1)]
        assert_whole(run, *names)
        for name in names:
            raw = run / "raw" / name
            programs = programs_in(raw / "trace_calls.data.gz", tmp_path)
            assert "fio" in programs
            assert "ls" not in programs, "by which Mountlab looks at the tool"
            assert f"/{name}/" in (raw / "trace_fds").read_text(), "the file that fio writes"
            assert "fio" in {line.split(" ", 1)[1] for line in (raw / "trace_tasks").read_text().splitlines()}
        assert [row["status"] for row in trials(run).values()] == ["ok"] * 3 * len(filesystems)
        assert not place.left().left
    assert tracefs() == before
    assert set((Path.home() / ".debug").rglob("*")) == cached, "perf's own cache"


@pytest.mark.long
@pytest.mark.faults
def test_a_killed_control_machine_and_a_killed_perf_leave_nothing_and_cost_no_trial() -> None:
    before = tracefs()
    with scene(grace="5s") as place, control(place) as machine:
        pid = machine.start("run", put(place))
        perf = traced(place)
        os.kill(pid, signal.SIGKILL)
        machine.wait()
        wait_until("the box gives everything back by itself", lambda: not is_alive(perf))
        (run,) = place.runs
        machine.start("resume", run)
        os.kill(traced(place), signal.SIGKILL)
        assert machine.wait() == 0, machine.said()
        assert_whole(run, "x0001", "x0002")
        assert [trials(run)[name]["attempts"] for name in ("x0001", "x0002")] == [2, 1]
        assert "perf was ended before" in (run / "raw" / "x0001" / "attempt-1" / "reason").read_text()
        assert not place.left().left
    assert tracefs() == before


@pytest.mark.long
@pytest.mark.faults
def test_a_link_that_is_lost_meanwhile_costs_no_diagnostic_trial() -> None:
    with linked("60s") as (place, broken), control(place) as machine:
        machine.start("run", put(place))
        traced(place)
        broken.cut()
        time.sleep(2)
        broken.mend()
        assert machine.wait() == 0, machine.said()
        (run,) = place.runs
        assert_whole(run, "x0001", "x0002")
        assert [row["attempts"] for row in trials(run).values()] == [1, 1, 1]
        assert not place.left().left
