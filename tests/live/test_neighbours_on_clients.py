"""A neighbour on a client: two private sshd's of this machine see one directory."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from mountlab.box.containment import CGROUPS
from mountlab.box.ssh import SshBox
from mountlab.core.errors import ClientLost
from mountlab.filesystems.neighbours import Beside, read_beside
from mountlab.publish import reproduce
from mountlab.publish.publish import Wishes, publish
from mountlab.results import paths, store
from mountlab.runner import workflow
from sshds import kill_sshd_of, opened_boxes
from sweeps import as_is
from waiting import wait_until

pytestmark = [pytest.mark.box, pytest.mark.requires_program("sshd"), pytest.mark.requires_program("fio")]

MEASURED = {
    "tool": "fio",
    "rw": "randwrite",
    "bs": "4KiB",
    "size": "2MiB",
    "rate_iops": 100,
    "runtime": "3s",
    "time_based": 1,
}
STREAM = {"tool": "fio", "rw": "write", "bs": "64KiB", "size": "4MiB", "rate": "4m", "where": {"client": "b"}}


@pytest.fixture(autouse=True)
def boxes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Two boxes; afterwards nothing of ours is left on any of them."""
    (tmp_path / "params" / "boxes").mkdir(parents=True)
    (tmp_path / "shared").mkdir()
    for name in ("a", "b"):
        roots = {"mount_root": f"{tmp_path}/{name}", "output_root": f"/dev/shm/ml-{os.getpid()}-{name}"}
        text = yaml.safe_dump({"embedded": "loopback", "grace": "5s", **roots})
        (tmp_path / "params" / "boxes" / f"{name}.yml").write_text(text)
    monkeypatch.setattr(paths, "PARAMS", tmp_path / "params")
    yield
    assert left(tmp_path) == []


def left(tmp_path: Path) -> list[str]:
    """What is left on the two boxes, and in what both see."""
    roots = [path for name in ("a", "b") for path in (tmp_path / name, Path(f"/dev/shm/ml-{os.getpid()}-{name}"))]
    runs = [path.name for path in (tmp_path / "results").glob("2*")]
    groups = [path for run in runs for path in Path(CGROUPS).glob(f"**/mountlab-{run}*")]
    files = [path for path in (*roots, *groups) if path.exists()]
    return [*map(str, (*files, *(tmp_path / "shared").iterdir(), *processes(tmp_path)))]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> dict[str, SshBox]:
    return opened_boxes(monkeypatch)


def processes(tmp_path: Path, *words: str) -> list[int]:
    """Processes with the directory of the test, and these words, in their command."""
    found = []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            command = (directory / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        if command.startswith("fio ") and all(word in command for word in (f"{tmp_path}/shared", *words)):
            found.append(int(directory.name))
    return found


def described(tmp_path: Path, neighbour: Mapping[str, object], **more: object) -> dict[str, Any]:
    return {
        "filesystems": {"shared": {"type": "dir", "path": f"{tmp_path}/shared"}},
        "workloads": {"w": {**MEASURED, "beside": "n", **more}},
        "neighbours": {"n": neighbour},
        "design": {"repeats": 1, "warmup": 0, "retries": 0},
    }


def measure(
    tmp_path: Path, neighbour: Mapping[str, object], **more: object
) -> tuple[dict[Hashable, Any], Beside | None]:
    """The trial, and what its neighbour did. `more`: keys of the workload."""
    path = workflow.run(as_is(**described(tmp_path, neighbour, **more)), box="a", results=tmp_path / "results")
    return result_of(path)


def result_of(path: Path) -> tuple[dict[Hashable, Any], Beside | None]:
    (trial,) = store.load_run(path).trials.to_dict("records")
    kept = [path / "raw" / "t0001" / name for name in ("neighbours", "uptime")]
    return trial, read_beside({file.name: file.read_text() for file in kept if file.exists()}).get("n")


@pytest.mark.long
def test_it_runs_on_the_client_through_all_of_the_trial_and_its_load_is_kept(tmp_path: Path) -> None:
    trial, beside = measure(tmp_path, STREAM)
    assert (trial["status"], trial["reason"]) == ("ok", "")
    assert beside is not None
    assert beside.seconds >= 3
    assert beside.bytes_per_s == pytest.approx(4 * 2**20, rel=0.5), "the rate that it was given"
    assert beside.gaps == ()


def is_measured(tmp_path: Path) -> bool:
    return bool(processes(tmp_path, "/t0001/"))


@pytest.mark.long
@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_one_that_does_not_run_all_the_time_makes_the_trial_invalid(tmp_path: Path, how: str) -> None:
    def hit() -> None:
        wait_until("the trial is measured", lambda: is_measured(tmp_path))
        for pid in processes(tmp_path, ".beside-b/n"):
            os.kill(pid, signal.SIGKILL if how == "killed" else signal.SIGSTOP)

    once = f"test -e {tmp_path}/once && exit 3; touch {tmp_path}/once"
    fio = "fio --name=n --directory={directory} --rw=write --size=1m --rate=1m --time_based --runtime=60"
    argv = f"sh -c '{once}; exec {fio}'"
    command = {"tool": "command", "argv": argv, "space": "8MiB", "where": {"client": "b"}}
    hitter = threading.Thread(target=hit)
    hitter.start()
    trial, beside = measure(tmp_path, command if how == "killed" else STREAM)
    hitter.join()
    assert trial["status"] == "invalid"
    assert str(trial["reason"]).startswith("neighbour n did not run all the time")
    assert beside is not None
    assert beside.gap_share > 0.05


@pytest.mark.long
def test_one_that_cannot_be_started_there_makes_the_trial_invalid_before_it_is_measured(tmp_path: Path) -> None:
    argv = "sh -c 'echo no such disk >&2; exit 3' {directory}"
    trial, _ = measure(tmp_path, {"tool": "command", "argv": argv, "space": "1MiB", "where": {"client": "b"}})
    assert trial["status"] == "invalid"
    assert str(trial["reason"]).startswith("neighbour n on client b did not run: it moved no bytes")
    assert "no such disk" in str(trial["reason"])


def while_measured(tmp_path: Path, act: Callable[[], object]) -> threading.Thread:
    """A thread that acts half a second after the measured command has begun."""

    def wait_and_act() -> None:
        wait_until("the trial is measured", lambda: is_measured(tmp_path))
        time.sleep(0.5)
        act()

    thread = threading.Thread(target=wait_and_act)
    thread.start()
    return thread


def kill_runner() -> None:
    """End the shell on the client that has started the neighbours, so that it can end none."""
    (file,) = Path(f"/dev/shm/ml-{os.getpid()}-b").glob("*/t0001/runner")
    os.kill(int(file.read_text()), signal.SIGKILL)


@pytest.mark.long
@pytest.mark.parametrize("how", ["connection", "shell"])
def test_a_connection_that_is_cut_and_a_shell_that_is_killed_make_the_trial_invalid(
    tmp_path: Path, opened: dict[str, SshBox], how: str
) -> None:
    """The client can be reached again: its sshd takes new connections."""
    hitter = while_measured(
        tmp_path, kill_runner if how == "shell" else lambda: kill_sshd_of(opened["b"], listener=False)
    )
    trial, _ = measure(tmp_path, STREAM)
    hitter.join()
    assert trial["status"] == "invalid"
    assert trial["reason"] == (
        "neighbour n did not run: the connection to client b was cut, or what ran it there was killed"
    )
    assert left(tmp_path) == []


@pytest.mark.long
def test_a_client_that_does_not_come_back_ends_the_run_and_cleans_itself(
    tmp_path: Path, opened: dict[str, SshBox]
) -> None:
    hitter = while_measured(tmp_path, lambda: kill_sshd_of(opened["b"]))
    with pytest.raises(ClientLost, match="client b was lost"):
        measure(tmp_path, STREAM)
    hitter.join()
    trial, _ = result_of(*(tmp_path / "results").glob("2*"))
    assert trial["status"] == "failed"
    assert str(trial["reason"]).startswith("client b was lost")
    wait_until("nothing is left", lambda: left(tmp_path) == [])


@pytest.mark.long
def test_where_mountlab_itself_is_killed_both_boxes_clean_themselves(tmp_path: Path) -> None:
    (tmp_path / "sweep.yml").write_text(yaml.safe_dump({"question": "Is it gone?", **described(tmp_path, STREAM)}))
    script = """
import sys
from pathlib import Path
from mountlab.results import paths
from mountlab.runner import workflow
place = Path(sys.argv[1])
paths.PARAMS = place / "params"
workflow.run(paths.load_sweep(str(place / "sweep.yml")), box="a", results=place / "results")
"""
    argv = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as mountlab:
        while_measured(tmp_path, mountlab.kill).join()
    wait_until("nothing is left", lambda: left(tmp_path) == [])


@pytest.mark.long
def test_its_limits_are_set_on_the_client_or_the_trial_says_why_not(tmp_path: Path) -> None:
    trial, beside = measure(tmp_path, {**STREAM, "limits": {"cpu_max": "50%"}})
    if trial["status"] == "invalid":
        assert str(trial["reason"]).startswith("neighbour n on client b did not run: cpu_max cannot be limited: ")
        pytest.skip(str(trial["reason"]))
    assert beside is not None
    assert beside.limits["cpu_max"].split(": ")[1].split()[0] == "50000"


@pytest.mark.long
def test_a_client_may_drive_the_workload_and_run_a_neighbour(tmp_path: Path) -> None:
    trial, beside = measure(tmp_path, STREAM, clients=["b"])
    assert (trial["status"], trial["reason"]) == ("ok", "")
    assert beside is not None
    assert beside.gaps == ()


@pytest.mark.long
def test_the_name_of_its_client_is_not_in_a_bundle(tmp_path: Path) -> None:
    for before, name in (("a", "asking-box"), ("b", "worker")):
        (tmp_path / "params" / "boxes" / f"{before}.yml").rename(tmp_path / "params" / "boxes" / f"{name}.yml")
    given = as_is(**described(tmp_path, {**STREAM, "where": {"client": "worker"}}))
    path = workflow.run(given, box="asking-box", results=tmp_path / "results")
    folder, _ = publish([path], Wishes(to=tmp_path / "bundle"))
    assert reproduce.check(folder).same
    files, named = [path for path in (folder / "runs").rglob("*") if path.is_file()], re.compile(rb"\bworker\b")
    assert [path for path in files if named.search(path.name.encode()) or named.search(path.read_bytes())] == []
