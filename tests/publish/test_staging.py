"""A bundle that is stopped or killed: what is left of it goes with the next one, and nothing else does."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from mountlab.__main__ import main
from mountlab.publish import publish as publishing
from mountlab.publish.staging import staging
from results.test_store import written
from waiting import wait_until

PUBLISHING = """
import sys, time
from pathlib import Path
from mountlab.publish.staging import staging
with staging(Path(sys.argv[1])) as place:
    (place / "bundle").mkdir()
    (place / "bundle" / "run.json").write_text("half")
    time.sleep(600)
"""


def publishing_process(parent: Path) -> subprocess.Popen[bytes]:
    """Another process in the middle of a bundle."""
    process = subprocess.Popen([sys.executable, "-c", PUBLISHING, str(parent)])
    wait_until("the other bundle", lambda: bool(list(parent.glob(".bundle-*/bundle/run.json"))))
    return process


def left(parent: Path) -> list[str]:
    return sorted(path.name for path in parent.iterdir())


@pytest.mark.slow
def test_a_killed_bundle_is_removed_by_the_next_one_and_a_running_one_is_not(tmp_path: Path) -> None:
    killed = publishing_process(tmp_path)
    killed.kill()
    killed.wait()
    assert len(left(tmp_path)) == 1, "a kill leaves something"
    with staging(tmp_path) as place:
        assert left(tmp_path) == [place.name]
    running = publishing_process(tmp_path)
    theirs = left(tmp_path)
    with staging(tmp_path):
        pass
    assert left(tmp_path) == theirs
    running.kill()
    running.wait()


def test_what_an_earlier_version_left_is_removed_and_what_only_looks_so_is_not(tmp_path: Path) -> None:
    old, young, theirs, link = (
        tmp_path / f".bundle-{name}" for name in ("abcd0001", "abcd0002", "abcd0003", "abcd0004")
    )
    for place in (old, young, theirs):
        (place / "bundle").mkdir(parents=True)
    (theirs / "Gemfile").write_text("")
    link.symlink_to(old)
    (tmp_path / ".bundle-of-mine").mkdir()
    for place in (old, theirs, tmp_path / ".bundle-of-mine"):
        os.utime(place, (0, 0))
    with staging(tmp_path):
        assert not old.exists()
    assert left(tmp_path) == [".bundle-abcd0002", ".bundle-abcd0003", ".bundle-abcd0004", ".bundle-of-mine"]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_bundle_says_so_speaks_of_no_box_and_leaves_nothing(
    number: signal.Signals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = written(tmp_path / "r")
    monkeypatch.setattr(publishing, "_fill", lambda *_: os.kill(os.getpid(), number))
    assert main(["publish", str(run), "--to", str(tmp_path / "b")]) == 130
    assert capsys.readouterr().err.splitlines() == ["stopped; no bundle is made", "run it again"]
    assert left(tmp_path) == ["r"]


def test_a_command_that_uses_no_box_speaks_of_none_when_it_is_stopped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("mountlab.report.execute.write_index", lambda *_: os.kill(os.getpid(), signal.SIGTERM))
    assert main(["index"]) == 130
    assert capsys.readouterr().err.splitlines() == ["stopped"]
