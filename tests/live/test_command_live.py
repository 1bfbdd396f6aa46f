"""The command tool, for real: a benchmark that nobody knows, from nothing but an entry in a sweep."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from mountlab.box import leftovers
from mountlab.box.embedded import open_box
from mountlab.results import paths, store
from mountlab.runner import workflow
from ownbox import own_box
from project.test_how_to import code
from sweeps import EXT4, TMPFS, as_is
from waiting import wait_until

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("sshd")]

BENCHMARK = """#!/bin/sh
# Writes $2 KiB into the directory $1, and makes a rate of it.
[ "$1" = "" ] && exit 7
echo "$@" > "$3/said"
head -c "$2" /dev/zero > "$1/file" || exit 3
cat "$1/seed" || exit 4
printf 'wrote %s KiB\\nrate: 2.5 MiB/s\\nrate: 3.5 MiB/s\\n' "$2" >&2
"""
METRICS = {
    "write_bandwidth": {"pattern": r"rate: (?P<value>[\d.]+) (?P<unit>\S+)", "from": "stderr", "all": "mean"},
    "file_rate/of the seed": {"pattern": r"^seed (\d+)$", "unit": "1/min"},
    "bytes/write": {"pattern": r"^wrote (\d+)", "unit": "KiB", "from": "stderr"},
}


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    own_box(tmp_path, monkeypatch)
    program = tmp_path / "my bench"
    program.write_text(BENCHMARK)
    program.chmod(0o755)
    return {
        "tool": "command",
        "argv": f"'{program}' {{directory}} {{size}} {{output}}",
        "size": [100, 200],
        "space": "1MiB",
        "metrics": METRICS,
        "prepare": "sh -c 'echo seed 120 > \"$1/seed\"' prepare {directory}",
    }


BOTH = {"tmpfs": TMPFS, "ext4": EXT4}


def measure(tmp_path: Path, entry: dict[str, Any], filesystems: dict[str, Any]) -> store.Run:
    resolved = as_is(filesystems=filesystems, workloads={"mine": entry}, design={"repeats": 1})
    path = workflow.run(resolved, results=tmp_path / "results")
    with open_box(paths.load_box("local")) as connection:
        assert leftovers.remove_leftovers(connection, dry_run=True) == []
    return store.load_run(path)


@pytest.mark.requires_program("losetup")
def test_a_new_benchmark_needs_an_entry_and_no_code(tmp_path: Path, entry: dict[str, Any]) -> None:
    run = measure(tmp_path, entry, BOTH)
    assert [*run.trials["reason"]] == [""] * 4
    found = run.measurements.set_index(["cell", "metric", "label"])["value"]
    assert found["ext4/mine size=200", "write_bandwidth", ""] == 3 * 1024**2
    assert found["tmpfs/mine size=100", "file_rate", "of the seed"] == 2.0
    assert found["tmpfs/mine size=100", "bytes", "write"] == 100 * 1024
    program = tmp_path / "my bench"
    version = run.info.facts.programs.version(str(program)) or ""
    assert version.startswith(hashlib.sha256(program.read_bytes()).hexdigest())
    raw = run.path / "raw" / run.trials["trial_id"].iloc[0]
    assert (raw / "said").read_text().split()[1] in ("100", "200")


@pytest.fixture
def enterable(tmp_path: Path) -> None:
    """The directories of pytest, below which the mount root of the box lies."""
    for above in (tmp_path, *tmp_path.parents[:3]):
        above.chmod(above.stat().st_mode | 0o011)


AS_NOBODY = """
[ "$(pwd)" = "$1" ] || echo "in $(pwd)"
echo data > "$1/file" || exit 3
{ mkdir "$1/../t9999" || touch "$1/../../x"; } 2>/dev/null && exit 4
echo "wrote 1 by $(id -un)"
"""


@pytest.mark.usefixtures("enterable")
@pytest.mark.requires_program("losetup", "runuser")
def test_a_program_that_is_not_root_enters_its_own_directory_only(tmp_path: Path, entry: dict[str, Any]) -> None:
    """Defect: initdb and mysqld could not enter their directory, since only root passes through those above it."""
    spied = 'runuser -u daemon -- ls "$1" && exit 5; runuser -u daemon -- ls "${1%/*}" && exit 6; true'
    nobody = {"tool": "command", "owner": "nobody", "space": "1MiB",
              "prepare": f"sh -c '{spied}' spied {{directory}}",
              "argv": f"runuser -u nobody -- sh -c '{AS_NOBODY}' nobody {{directory}}",
              "metrics": {"bytes/write": {"pattern": r"^wrote (\d) by nobody$", "unit": "B"}}}  # fmt: skip
    layers = {"type": "overlay", "over": {"type": "ext4", "image": "64MiB"}}
    run = measure(tmp_path, nobody, {**BOTH, "mntx": {"type": "dir"}, "overlay": layers})
    assert [*run.trials["reason"]] == [""] * 4


@pytest.mark.usefixtures("enterable")
@pytest.mark.requires_program("runuser")
def test_the_recipe_for_a_program_that_refuses_root_runs(tmp_path: Path, entry: dict[str, Any]) -> None:
    (recipe,) = (text for text in code("extend.md", "yaml") if "owner:" in text)
    workload = yaml.safe_load(recipe)["workloads"]["initdb"]
    named = next(word for word in workload["argv"].split() if word.startswith("/"))
    here = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not here:
        pytest.skip("no PostgreSQL server is installed")
    workload["argv"] = workload["argv"].replace(named, str(here[-1]))
    run = measure(tmp_path, workload, {"tmpfs": {"type": "tmpfs", "size": "256MiB"}})
    assert [*run.trials["reason"]] == [""]
    assert "Success." in (run.path / "raw" / "t0001" / "stdout").read_text()


@pytest.mark.long
def test_what_the_patterns_do_not_find_fails_the_trial(tmp_path: Path, entry: dict[str, Any]) -> None:
    metrics = {"elapsed": {"pattern": "took (.*) s", "unit": "s"}}
    run = measure(tmp_path, {**entry, "size": 1, "metrics": metrics}, {"tmpfs": TMPFS})
    assert set(run.trials["status"]) == {"failed"}
    assert "elapsed was not found" in run.trials["reason"].iloc[0]


def test_every_run_cleans_up_after_a_failed_preparation(tmp_path: Path, entry: dict[str, Any]) -> None:
    run = measure(tmp_path, {**entry, "size": 1, "prepare": "false"}, {"tmpfs": TMPFS})
    assert all("the preparation failed" in reason for reason in run.trials["reason"])
    shutil.rmtree(tmp_path / "results")


@pytest.mark.long
def test_a_program_that_prints_nothing_is_timed_and_one_has_a_metric_of_its_own(
    tmp_path: Path, entry: dict[str, Any]
) -> None:
    """Sleeping longer takes longer by the clock: the figure is the time of the program, and less is better."""
    silent = {"tool": "command", "argv": "sh -c 'sleep \"$1\"' w {seconds} {directory}", "seconds": [0.1, 0.4],
              "space": "1MiB", "metrics": {"elapsed": {"from": "clock"}}}  # fmt: skip
    own = {"tool": "command", "argv": "sh -c 'echo score .4188 of 1,234.5' w {directory}", "space": "1MiB", "metrics": {
        "score": {"pattern": r"score (\S+)", "unit": "points", "better": "higher"},
        "goal": {"pattern": r"of (\S+)", "unit": "points", "better": "neither"}}}  # fmt: skip
    resolved = as_is(
        filesystems=BOTH,
        workloads={"silent": silent, "own": own},
        design={"repeats": 2, "warmup": 0},
        baseline="ext4",
    )
    run = store.load_run(workflow.run(resolved, results=tmp_path / "results"))
    assert set(run.trials["status"]) == {"ok"}
    rows = run.measurements.set_index(["cell", "metric"])
    for seconds in (0.1, 0.4):
        took = rows.loc[(f"tmpfs/silent seconds={seconds}", "elapsed")]
        assert (took["value"] > seconds).all()
        assert (took["step"] > 0).all()
    assert set(rows.loc[("ext4/own", "score"), "value"]) == {0.4188}
    assert set(rows.loc[("ext4/own", "goal"), "value"]) == {1234.5}
    assert {(each.metric, each.more_is_better) for each in run.comparisons} == {("elapsed", False), ("score", True)}
    assert "better" in (run.path / "comparisons.csv").read_text().splitlines()[0]
    with open_box(paths.load_box("local")) as connection:
        assert leftovers.remove_leftovers(connection, dry_run=True) == []


def script_tool(place: Path, script: str, words: str) -> dict[str, Any]:
    """An entry for a script of its own, with these words, that prints a number of bytes."""
    program = place / "program"
    program.write_text(script)
    program.chmod(0o755)
    return {"tool": "command", "argv": f"{program} {words}", "space": "1MiB", "version": "true",
            "metrics": {"bytes": {"pattern": r"^(\d+)$", "unit": "B"}}}  # fmt: skip


ATTACHES = """#!/bin/sh
# Attaches a loop device to $2, which lies in another directory of the same file system, and one to a file in $1.
head -c 65536 /dev/zero > "$1/file"
losetup --find "$2"
[ "$3" = keeps ] || losetup --find "$1/file"
echo 1
"""


@pytest.mark.parametrize(("own", "status"), [("keeps", "ok"), ("leaves", "failed")])
def test_of_a_bind_mount_only_loop_devices_on_files_below_it_are_detached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: str, status: str
) -> None:
    """The rest of its file system is somebody else's, who may attach a loop device there at any time."""
    own_box(tmp_path, monkeypatch)
    foreign = tmp_path / "foreign.img"
    foreign.write_bytes(bytes(65536))
    tool = script_tool(tmp_path, ATTACHES, f"{{directory}} {foreign} {own}")
    resolved = as_is(
        filesystems={"bind": {"type": "bind"}}, workloads={"mine": tool}, design={"repeats": 1, "warmup": 0}
    )
    attached = ["losetup", "--noheadings", "--output", "NAME", "--associated", str(foreign)]
    try:
        run = store.load_run(workflow.run(resolved, results=tmp_path / "results"))
        still = subprocess.run(attached, capture_output=True, text=True, check=True).stdout.split()
        assert len(still) == 1
    finally:
        for device in subprocess.run(attached, capture_output=True, text=True, check=True).stdout.split():
            subprocess.run(["losetup", "--detach", device], check=True)
    (reason,) = run.trials["reason"]
    assert [*run.trials["status"]] == [status], reason
    assert still[0] not in reason
    assert ("left loop devices on its files" in reason) is (own == "leaves")


TAKES = """#!/bin/sh
# Somebody detaches loop device $2, and the tool attaches one of that number to a file of its own.
head -c 65536 /dev/zero > "$1/file"
losetup --detach "$2" && losetup "$2" "$1/file" && echo 1
"""


@pytest.mark.long
def test_a_loop_device_whose_number_was_in_use_before_is_detached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_box(tmp_path, monkeypatch)
    foreign = tmp_path / "foreign.img"
    foreign.write_bytes(bytes(65536))
    # The last one: other tests take the first that is free.
    loops = [path for path in Path("/dev").glob("loop[0-9]*") if path.name[4:].isdigit()]  # not their partitions
    last = max(loops, key=lambda path: int(path.name[4:]))
    tool = script_tool(tmp_path, TAKES, f"{{directory}} {last}")
    resolved = as_is(filesystems={"ext4": EXT4}, workloads={"mine": tool}, design={"repeats": 1, "warmup": 0})
    subprocess.run(["losetup", str(last), str(foreign)], check=True)
    run = store.load_run(workflow.run(resolved, results=tmp_path / "results"))
    (reason,) = run.trials["reason"]
    assert "left loop devices on its files" in reason
    assert not Path(f"/sys/block/{last.name}/loop").exists()


LEAVES = """#!/bin/sh
# Leaves a loop device on a file of its own, once somebody else has opened it.
head -c 65536 /dev/zero >"$1/file"
losetup --find --show "$1/file" >"$2.new" && mv "$2.new" "$2"
until [ -e "$2.held" ]; do sleep 0.05; done
echo 1
"""
REMOUNTS = """#!/bin/sh
# What no file system allows while a file of it is open for writing.
mount -o remount,ro "${1%/*}" && mount -o remount,rw "${1%/*}" && echo 1
"""


def hold(named: Path, let_go: list[str]) -> None:
    """Open the loop device that `named` names, as udev does, and close it 2 s after somebody has asked to detach it."""
    wait_until("a loop device", named.exists)
    device = Path(named.read_text().strip())
    with device.open("rb"):
        Path(f"{named}.held").touch()
        wait_until("a detach", lambda: Path(f"/sys/block/{device.name}/loop/autoclear").read_text() == "1\n")
        time.sleep(2)
        let_go.append(device.name)


@pytest.mark.long
def test_a_loop_device_that_somebody_else_has_open_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own_box(tmp_path, monkeypatch)
    for name in ("leaves", "remounts"):
        (tmp_path / name).mkdir()
    leaves = script_tool(tmp_path / "leaves", LEAVES, f"{{directory}} {tmp_path / 'device'}")
    remounts = script_tool(tmp_path / "remounts", REMOUNTS, "{directory}")
    resolved = as_is(
        filesystems={"ext4": EXT4}, workloads={"leaves": leaves, "remounts": remounts},
        design={"repeats": 2, "warmup": 0},
    )  # fmt: skip
    let_go: list[str] = []
    holder = threading.Thread(target=hold, args=(tmp_path / "device", let_go))
    holder.start()
    run = store.load_run(workflow.run(resolved, results=tmp_path / "results"))
    holder.join()
    assert len(let_go) == 1
    trials = run.trials[run.trials["workload"] == "remounts"]
    assert [*trials["status"]] == ["ok", "ok"], [*trials["reason"]]
