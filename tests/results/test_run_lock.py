"""One process at a time writes to a directory; what a crash, a reboot or another machine left is told apart."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from mountlab.core.errors import KeepError, RunInUse
from mountlab.results import lock, writer
from mountlab.results.info import read_info
from mountlab.results.lock import FILE, alone, held, holder, sweep, this_process

OTHER = """
import sys, time
from pathlib import Path
from mountlab.results.lock import held
with held(Path(sys.argv[1]), what="run"):
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def other(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the directory."""
    process = subprocess.Popen([sys.executable, "-c", OTHER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_it_is_given_back_and_leaves_nothing(tmp_path: Path) -> None:
    with held(tmp_path, what="run"):
        assert holder(tmp_path) == replace(this_process(), since=holder(tmp_path).since)  # type: ignore[union-attr]
    assert holder(tmp_path) is None
    assert list(tmp_path.iterdir()) == []
    with held(tmp_path, what="run"):
        pass


@pytest.mark.slow
def test_the_second_is_refused_with_the_name_of_the_first_until_that_is_killed(
    other: subprocess.Popen[str], tmp_path: Path
) -> None:
    since = json.loads((tmp_path / FILE).read_text())["since"]
    with pytest.raises(RunInUse) as caught, held(tmp_path, what="run"):
        pass
    assert caught.value.exit_code == 3
    assert caught.value.what == "another process is writing to this run"
    assert caught.value.got == f"process {other.pid} on {os.uname().nodename}, since {since}"
    assert caught.value.where == str(tmp_path)
    os.kill(other.pid, 9)
    other.wait()
    assert (tmp_path / FILE).exists(), "left by the crash"
    assert holder(tmp_path) is None, "and nobody's"
    with held(tmp_path, what="run"):
        assert holder(tmp_path).pid == os.getpid()  # type: ignore[union-attr]


@pytest.mark.slow
def test_one_that_waits_gets_it_when_the_first_is_gone(other: subprocess.Popen[str], tmp_path: Path) -> None:
    threading.Timer(0.3, other.kill).start()
    with held(tmp_path, what="index", wait_s=300):
        assert other.wait(60) == -9, "not before"
    with held(tmp_path, what="index", name=".other"), held(tmp_path, what="run"):
        assert {path.name for path in tmp_path.iterdir()} == {FILE, ".other"}, "they are for different things"


def test_an_owner_that_lost_its_directory_does_not_seem_to_run_when_it_comes_back(tmp_path: Path) -> None:
    place, away = tmp_path / "run", tmp_path / "away"
    place.mkdir()
    with held(place, what="run"):
        place.rename(away)
    assert (away / FILE).exists(), "it could not be removed"
    assert holder(away) is None, "though its process lives"


@pytest.mark.slow
def test_those_who_look_do_not_keep_anybody_out(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(json.dumps(asdict(this_process())))
    over = threading.Event()

    def look() -> None:
        while not over.is_set():
            holder(tmp_path)

    lookers = [threading.Thread(target=look) for _ in range(3)]
    for each in lookers:
        each.start()
    try:
        for _ in range(100):
            with held(tmp_path, what="run"):
                pass
    finally:
        over.set()
        for each in lookers:
            each.join()


# --- files that a killed process leaves -----------------------------------------------------------------------------


def write_run(path: Path, **said: object) -> None:
    """A run.json with no more than what every one has."""
    info: dict[str, object] = {"run_id": "r", "box": {"name": "b"}, "seed": 1, "parameters": {}, "facts": {}}
    (path / "run.json").write_text(json.dumps({**info, "order": [], "left_out": {}, "published": [], **said}))


def test_a_finished_run_loses_the_file_of_its_killed_owner_with_the_next_command(
    other: subprocess.Popen[str], tmp_path: Path
) -> None:
    write_run(tmp_path, schema=5, status="complete")
    read_info(tmp_path)
    assert (tmp_path / FILE).exists(), "its owner lives"
    os.kill(other.pid, 9)
    other.wait()
    for name in (".reporting", ".deriving"):
        shutil.copy(tmp_path / FILE, tmp_path / name)
    read_info(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


@pytest.mark.parametrize(
    ("change", "stays"),
    [({}, True), ({"host": "elsewhere"}, True), ({"started": "17"}, False), ({"namespace": "1"}, False)],
)
def test_only_the_file_of_a_process_that_is_gone_is_removed(
    change: dict[str, object], stays: bool, tmp_path: Path
) -> None:
    (tmp_path / FILE).write_text(json.dumps({**asdict(this_process()), **change}))
    sweep(tmp_path, FILE)
    assert (tmp_path / FILE).exists() == stays


def test_a_torn_name_is_removed_and_where_nothing_can_be_locked_it_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / FILE).touch()
    with monkeypatch.context() as patch:
        without_locks(patch)
        sweep(tmp_path, FILE)
        assert (tmp_path / FILE).exists()
    sweep(tmp_path, FILE)
    assert not (tmp_path / FILE).exists()


@pytest.mark.slow
def test_removing_what_was_left_keeps_nobody_out(tmp_path: Path) -> None:
    over = threading.Event()

    def clean() -> None:
        while not over.is_set():
            sweep(tmp_path, FILE)

    cleaner = threading.Thread(target=clean)
    cleaner.start()
    try:
        for _ in range(200):
            with held(tmp_path, what="run"):
                assert holder(tmp_path) is not None
    finally:
        over.set()
        cleaner.join()


ALONE = """
import sys, time
from pathlib import Path
from mountlab.results.lock import alone
with alone(Path(sys.argv[1]), what="report", fallback=Path(sys.argv[1]) / ".reporting", wait_s=0):
    print("held", flush=True)
    time.sleep(60)
"""


def test_a_lock_on_a_directory_leaves_nothing_when_its_process_is_killed(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", ALONE, str(tmp_path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    assert list(tmp_path.iterdir()) == []
    fallback = tmp_path / ".reporting"
    with pytest.raises(RunInUse), alone(tmp_path, what="report", fallback=fallback, wait_s=0.1):
        pass
    process.kill()
    process.wait()
    process.stdout.close()
    with alone(tmp_path, what="report", fallback=fallback, wait_s=5):
        assert list(tmp_path.iterdir()) == []


def test_where_directories_cannot_be_locked_a_file_is_taken_and_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_locks(monkeypatch)
    with alone(tmp_path, what="report", fallback=tmp_path / ".reporting", wait_s=1):
        assert [path.name for path in tmp_path.iterdir()] == [".reporting"]
    assert list(tmp_path.iterdir()) == []


def without_locks(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a network file system that is mounted without them."""

    def flock(_handle: int, _how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", flock)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({}, "another process is writing"),
        ({"host": "elsewhere"}, "another process may be writing"),
        ({"namespace": "1"}, "another process may be writing"),
        ({"boot": "an earlier one"}, ""),
        ({"boot": "an earlier one", "namespace": "1"}, ""),
        ({"started": "17"}, ""),
        ({"pid": 4_194_304, "started": ""}, ""),
    ],
    ids=[
        "it runs",
        "of another machine",
        "of a container",
        "before a reboot",
        "of a container before",
        "its number was given to another",
        "gone",
    ],
)
def test_without_locks_the_name_decides(
    change: dict[str, object], what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_locks(monkeypatch)
    (tmp_path / FILE).write_text(json.dumps({**asdict(this_process()), **change}))
    if not what:
        assert holder(tmp_path) is None
        with held(tmp_path, what="run"):
            assert holder(tmp_path) is not None
        return
    with pytest.raises(RunInUse, match=what) as caught, held(tmp_path, what="run"):
        pass
    assert (f"If that process is gone: rm {tmp_path / FILE}" in caught.value.next_step) == bool(change)
    assert (tmp_path / FILE).exists()


def test_an_owner_of_another_machine_is_believed_though_the_lock_is_free(tmp_path: Path) -> None:
    """A network file system that is mounted with local locks would let both in."""
    (tmp_path / FILE).write_text(json.dumps({**asdict(this_process()), "host": "elsewhere"}))
    with pytest.raises(RunInUse, match="may be writing") as caught, held(tmp_path, what="run"):
        pass
    assert caught.value.got.startswith(f"process {os.getpid()} on elsewhere, since ")
    with held(tmp_path, what="index", wait_s=5):
        pass


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": 1}', "\0\0"])
def test_a_torn_name_is_nobodys(text: str, tmp_path: Path) -> None:
    (tmp_path / FILE).write_text(text)
    assert holder(tmp_path) is None
    with held(tmp_path, what="run"):
        assert holder(tmp_path) is not None


def test_a_clock_that_was_set_changes_nothing(other: subprocess.Popen[str], tmp_path: Path) -> None:
    """`since` is for people: whether the process runs is told by its start in ticks since boot."""
    kept = json.loads((tmp_path / FILE).read_text())
    for since in ("1970-01-01T00:00:00+00:00", "2100-01-01T00:00:00+00:00"):
        (tmp_path / FILE).write_text(json.dumps({**kept, "since": since}))
        found = holder(tmp_path)
        assert found is not None
        assert (found.pid, found.state) == (other.pid, "running")


def test_where_nothing_can_be_written_it_is_said(tmp_path: Path) -> None:
    with pytest.raises(KeepError) as caught, held(tmp_path / "gone", what="run"):
        pass
    assert caught.value.got == "No such file or directory"
    assert "it is not there any more" in caught.value.next_step


def test_a_run_whose_process_is_gone_was_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_run(tmp_path, schema=2, status="running")
    assert read_info(tmp_path).status == "interrupted"
    with held(tmp_path, what="run"):
        assert read_info(tmp_path).status == "running"
        assert writer.going_on(tmp_path).startswith(f"the run goes on (process {os.getpid()} on ")
    assert writer.going_on(tmp_path) == ""
    monkeypatch.setattr(lock.socket, "gethostname", lambda: "this")
    (tmp_path / FILE).write_text(json.dumps({**asdict(this_process()), "host": "elsewhere"}))
    assert read_info(tmp_path).status == "running", "another machine is believed"
