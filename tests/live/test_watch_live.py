"""`mountlab watch` for real: programs that look like benchmarks of storage and are none, and one that is."""

from __future__ import annotations

import shlex
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from mountlab import __main__
from mountlab.analysis.compare.runs import compare_runs
from mountlab.core import disk
from mountlab.publish import reproduce
from mountlab.publish.publish import Wishes, publish
from mountlab.report import execute
from mountlab.results import paths, store
from mountlab.runner import workflow
from mountlab.sentences import comparison as comparison_sentences
from mountlab.sentences.watched import watched_lines
from mountlab.sweep.sweep_file import resolve
from mountlab.sweep.watch_sweep import WatchRequest
from ordinary import ordinary_user
from ownbox import own_box

pytestmark = [pytest.mark.box, pytest.mark.slow, pytest.mark.requires_program("sshd", "filefrag")]

FORGET = "os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)"
WRITE = "fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC); os.write(fd, os.urandom(16 << 20)); os.fsync(fd)"
READ = "os.lseek(fd, 0, 0); len([1 for _ in iter(lambda: os.read(fd, 1 << 20), b'')])"
PROGRAMS = {
    "epochs": f"{WRITE}; {FORGET}; [({READ.replace(';', ',')}) for _ in range(8)]",
    "holes": f"fd = os.open(name, os.O_RDWR | os.O_CREAT); os.ftruncate(fd, 64 << 20); {FORGET}; {READ}",
    "honest": f"{WRITE}; {FORGET}; {READ}",
    "kernel": "open(name, 'w').close(); fd = os.open('/proc/self/maps', os.O_RDONLY); "
    "len([os.lseek(fd, 0, 0) or os.read(fd, 4096) for _ in range(8000)])",
}
RAISED: dict[str, set[str]] = {
    "epochs": {"cache-served"},
    "holes": {"device-read-less"},
    "honest": set(),
    "kernel": set(),
}
REFEREE = {"cache-served", "device-read-less", "files-elsewhere", "server-answered", "not-durable"}
SAID = {
    "epochs": "memory answered the rest",
    "holes": "100% of the bytes in its files has no data there",
    "honest": "",
    "kernel": "",
}


def command(name: str) -> str:
    """A program that keeps its file open for a while, so that it can be looked at."""
    source = f"import os, sys, time; name = sys.argv[1]; {PROGRAMS[name]}; time.sleep(0.7)"
    return shlex.join([sys.executable, "-c", source, f"{name}.bin"])


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the programs run."""
    directory = tmp_path_factory.mktemp("watched")
    kind = subprocess.run(["stat", "-f", "-c", "%T", directory], capture_output=True, text=True, check=True).stdout
    if kind.strip() in ("tmpfs", "ramfs", "overlayfs"):
        pytest.skip(f"needs a directory for temporary files on a disk, and has {kind.strip()}")
    return directory


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory, place: Path) -> list[store.Run]:
    """One run of all programs, twice."""
    raw = WatchRequest((sys.executable,), str(place), "local").parameters()
    (entry,) = raw["workloads"].values()
    raw["workloads"] = {name: {**entry, "argv": command(name)} for name in PROGRAMS}
    root = tmp_path_factory.mktemp("box")
    with pytest.MonkeyPatch.context() as patch:
        own_box(root, patch)
        results = [workflow.run(resolve(raw, where="watch"), results=root / name) for name in ("first", "second")]
    return [store.load_run(path) for path in results]


@pytest.mark.parametrize("name", PROGRAMS)
def test_each_program_is_called_what_it_is(runs: list[store.Run], name: str) -> None:
    for run in runs:
        codes = {caveat.code for caveat in run.caveats if caveat.subject == f"here/{name}"}
        assert codes & REFEREE == RAISED[name]
        (first,) = (first for first, _ in watched_lines(run) if first.startswith(f"{name} took"))
        assert SAID[name] in first
        assert ("memory answered the rest" in first) == (name == "epochs")


def test_two_runs_of_one_program_did_the_same_work(runs: list[store.Run]) -> None:
    lines = comparison_sentences.sentences(compare_runs(runs))
    assert lines[0].startswith("Both did the same work, ")


def test_a_run_is_published_without_the_directories_of_the_programs_and_verified(
    runs: list[store.Run], place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Defect: its box was not one of Mountlab's."""
    monkeypatch.setattr(execute, "write_report", lambda run: disk.replace_file(run / "report.html", b"<p>report"))
    folder, _ = publish([runs[0].path], Wishes(title="Watched", to=tmp_path / "b"))
    assert [file for file in folder.rglob("*") if file.is_file() and str(place).encode() in file.read_bytes()] == []
    found = reproduce.check(folder)
    assert (found.damage, found.differences) == ((), ())


def test_nothing_but_what_the_programs_wrote_is_in_their_directory(runs: list[store.Run], place: Path) -> None:
    files = {path.name: path for path in place.rglob("*")}
    assert files.keys() == {f"{name}.bin" for name in PROGRAMS}
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o444 for path in files.values())
    run = runs[0]
    (epochs,) = (trial for trial in run.trials["trial_id"] if "epochs" in run.records[trial].argv[-1])
    seen = run.records[epochs].open_files
    assert seen is not None
    # A look may meet the interpreter while it reads itself: another directory then, in which nothing is written.
    looks = {one.path: (one.read, one.written) for one in seen.directories}
    assert looks[str(place)] == (1, 1)
    assert [path for path, (_, written) in looks.items() if written] == [str(place)]


def test_the_verb_reports_figures_that_a_program_prints_and_what_it_lacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    own_box(tmp_path, monkeypatch)
    monkeypatch.setattr(paths, "RESULTS", tmp_path / "results")
    monkeypatch.setenv("COLOUR", "blue")
    script = tmp_path / "bench"
    script.write_text('#!/bin/sh\npwd >&2\necho "{\\"jobs\\": [{\\"rate\\": 12.5}]}"\n[ "$COLOUR" = blue ]\n')
    script.chmod(0o755)
    place = tmp_path / "here"
    place.mkdir()
    metric = "rate=$.jobs[0].rate:1/s:higher"
    (tmp_path / "link").symlink_to(place)
    argv = ["watch", "--in", str(tmp_path / "link"), "--env", "COLOUR", "--metric", metric, "--", str(script)]
    assert __main__.main(argv) == 0
    out = capsys.readouterr()
    assert "bench took" in out.out
    (path,) = (tmp_path / "results").glob("*-watch-bench-*")
    run = store.load_run(path)
    assert dict(zip(run.measurements["metric"], run.measurements["value"], strict=True))["rate"] == 12.5
    assert (path / "raw" / "t0001" / "stderr").read_text() == f"{tmp_path}/link\n"
    files = run.records["t0001"].open_files
    assert files is not None
    assert files.place == str(place)
    assert list(place.iterdir()) == []


@pytest.mark.requires_root  # to make the user
def test_an_ordinary_user_watches_without_root() -> None:
    with ordinary_user() as user:
        become, python = user.python[:-1], user.python[-1]
        done = subprocess.run(
            [*become, f"MOUNTLAB_RESULTS={user.home}/results", python, "-m", "mountlab", "watch", "--in",
             str(user.home), "--", "sh", "-c", "id -u > x; cat x"],
            cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=300, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        assert (user.home / "x").read_text().strip() not in ("", "0")
        (page,) = (user.home / "results").glob("*/report.html")
        assert "what the kernel logged meanwhile: that takes root" in page.read_text()
