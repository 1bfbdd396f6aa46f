"""What is kept survives: an error of the disk, and a power cut, at each call that changes something."""

from __future__ import annotations

import errno
import itertools
import os
import resource
import shutil
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest
from mountlab.core import disk
from mountlab.core.disk import append_line, keep_directory, make_directory, read_plain, replace_file
from mountlab.core.errors import KeepError, MountlabWarning, StoreError
from mountlab.results import writer
from mountlab.results.info import read_info
from mountlab.results.journal import read_journal
from mountlab.results.raw_sums import with_sums
from mountlab.results.writer import RunWriter, as_yaml, held_run
from mountlab.results.writer import versions as versions_
from powercut import Disk, PowerCut
from repetition import few_then_many
from results.test_store import RESOLVED, ok, the_plan
from sweep.test_plan import FACTS

PLAN = the_plan()
TRIALS = PLAN.trials[:2]
IDS = [trial.trial_id for trial in TRIALS]
MOUNT = "m001-x"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What these tests do a thousand times, and do not look at."""
    monkeypatch.setattr(writer, "git_commit", lambda: None)
    versions = versions_()
    monkeypatch.setattr(writer, "versions", lambda: versions)
    monkeypatch.setattr(writer, "load_published", lambda _: [])
    text = as_yaml(RESOLVED.parameters)
    monkeypatch.setattr(writer, "as_yaml", lambda _: text)
    monkeypatch.setattr(os, "fsync", lambda _: None)


def files(trial: str, attempt: int) -> dict[str, bytes]:
    """Each attempt leaves other files: none may be found beside those of another one."""
    name = f"{trial} {attempt}".encode()
    return {"stdout": name * 20, f"only-{attempt}": name, "attempt-1/stdout": name}


def measure(results: Path, attempt: int, recorded: list[str] | None = None, *, only: int = len(TRIALS)) -> None:
    """A run of two trials on one mount, begun or gone on with. Notes each trial that counts as recorded."""
    run = results / "r1"
    writer = RunWriter(run) if run.exists() else RunWriter.create(PLAN, RESOLVED, FACTS, results=results)
    if recorded is not None:
        recorded.append("begun")
    with held_run(run):
        writer.keep_mount(MOUNT, files(MOUNT, attempt))
        for trial in TRIALS[:only]:
            if not writer.has(trial.trial_id):
                writer.record(ok(trial), files(trial.trial_id, attempt))
                if recorded is not None:
                    recorded.append(trial.trial_id)
        writer.finish("complete" if only == len(TRIALS) else "interrupted")


@contextmanager
def on(faulty: Disk, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as patch:
        patch.setattr(disk, "os", faulty)
        patch.setattr(disk, "shutil", faulty)
        yield


@contextmanager
def ignored_warnings() -> Iterator[None]:
    """A torn line is said, and here there are hundreds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MountlabWarning)
        yield


def kept(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def check(results: Path, recorded: list[str]) -> None:
    """Nothing that was recorded is lost, what is in the journal is whole, and the run can be gone on with."""
    run = results / "r1"
    if "begun" in recorded:
        assert read_info(run).status in ("interrupted", "complete")
    if run.exists():
        known = [trial.trial_id for trial in read_journal(run)]
        done = [name for name in recorded if name != "begun"]
        assert known in (done, IDS[: len(done) + 1]), "at most the one that was being written is there as well"
        for name in known:
            assert kept(run / "raw" / name) == files(name, 1), "whole"
    else:
        assert "begun" not in recorded
    with ignored_warnings():
        measure(results, 2)
    assert [trial.trial_id for trial in read_journal(run)] == IDS, "each once, in order"
    assert read_info(run).status == "complete"
    for name in IDS:
        assert kept(run / "raw" / name) in (files(name, 1), files(name, 2)), "of one attempt"
    assert kept(run / "raw" / MOUNT) == with_sums(files(MOUNT, 2))
    assert {path.name for path in run.iterdir()} == {"raw", "run.json", "sweep.yml", "trials.jsonl"}
    assert {path.name for path in (run / "raw").iterdir()} == {*IDS, MOUNT}, "nothing half-written is left"


def calls(results: Path, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many calls a run that nothing disturbs makes."""
    results.mkdir()
    whole = Disk(results)
    with on(whole, monkeypatch):
        measure(results, 1)
    assert {"open", "write", "fsync", "close", "mkdir", "rename", "replace"} <= set(whole.calls)
    return len(whole.calls)


@pytest.mark.slow
def test_a_power_cut_while_an_interrupted_run_is_gone_on_with_takes_nothing_of_what_it_had(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The evidence of its mount, which is made anew, is that of the old one or of the new one, and never neither."""
    before = tmp_path / "before"
    before.mkdir()
    measure(before, 1, only=1)
    for number in itertools.count(1):
        results = tmp_path / f"{number}"
        shutil.copytree(before, results)
        faulty = Disk(results, fail_at=number)
        with on(faulty, monkeypatch):
            try:
                measure(results, 2)
            except PowerCut:
                pass
            else:
                break
        for how in ("least", "any"):
            found = tmp_path / f"{number}-{how}"
            faulty.after_cut(found, how, Random(number))
            with ignored_warnings():
                RunWriter(found / "r1")
            assert kept(found / "r1" / "raw" / MOUNT) in (with_sums(files(MOUNT, 1)), with_sums(files(MOUNT, 2)))
            assert kept(found / "r1" / "raw" / IDS[0]) == files(IDS[0], 1)
            assert [trial.trial_id for trial in read_journal(found / "r1")] in (IDS[:1], IDS)
    assert number > 50


@pytest.mark.slow
@pytest.mark.parametrize("step", few_then_many(4, 1))
def test_after_a_power_cut_at_any_call_nothing_recorded_is_lost_and_the_rest_is_measured_once(
    step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At each call of `make test-all`, at each fourth of `make test`."""
    count = calls(tmp_path / "whole", monkeypatch)
    assert count > 60
    for number in range(1, count + 1, step):
        results = tmp_path / f"{number}"
        results.mkdir()
        faulty, recorded = Disk(results, fail_at=number), list[str]()
        with on(faulty, monkeypatch), pytest.raises(PowerCut):
            measure(results, 1, recorded)
        for seed, how in enumerate(("least", "most", "any")):
            found = tmp_path / f"{number}-{seed}"
            faulty.after_cut(found, how, Random(number * 10 + seed))
            check(found, recorded)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("error", "lasting", "step"),
    [
        pytest.param(errno.ENOSPC, True, 3, id="full, at some calls"),
        pytest.param(errno.ENOSPC, True, 1, id="full", marks=pytest.mark.long),
        pytest.param(errno.EIO, False, 1, id="error", marks=pytest.mark.long),
    ],
)
def test_an_error_of_the_disk_at_any_call_ends_the_run_with_what_to_do_and_loses_nothing(
    error: int, lasting: bool, step: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = calls(tmp_path / "whole", monkeypatch)
    for number in range(1, count + 1, step):
        results, recorded = tmp_path / f"{number}", list[str]()
        results.mkdir()
        faulty = Disk(results, fail_at=number, error=error, lasting=lasting)
        with on(faulty, monkeypatch):
            said = problem(results, recorded)
        if said is None:
            assert faulty.calls[number - 1] in ("close", "unlink", "rmtree"), "nothing that would be lost"
        else:
            assert said.got == os.strerror(error)
            in_the_middle = "begun" in recorded and IDS[-1] not in recorded
            assert ("mountlab resume " in said.next_step) == in_the_middle
        check(results, recorded)


def problem(results: Path, recorded: list[str]) -> KeepError | None:
    try:
        measure(results, 1, recorded)
    except KeepError as error:
        return error
    return None


# --- each function ----------------------------------------------------------------------------------------------------


def test_a_disk_that_takes_a_few_bytes_at_a_time_gets_all_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda handle, data: real(handle, data[:3]))
    replace_file(tmp_path / "x", b"0123456789")
    append_line(tmp_path / "x", b"abcdefgh\n")
    assert (tmp_path / "x").read_bytes() == b"0123456789abcdefgh\n"


def test_a_line_that_does_not_fit_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """With a real limit of the kernel, in a process of its own: what fits of the line is taken away again."""
    code = f"""
import resource, sys
from pathlib import Path
from mountlab.core.disk import append_line
from mountlab.core.errors import KeepError
file = Path({str(tmp_path / "x")!r})
append_line(file, b"a" * 60 + b"\\n")
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    append_line(file, b"b" * 60 + b"\\n")
except KeepError as error:
    print(error.got, "|", error.next_step)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "File too large | no file may grow that large here: see `ulimit -f`\n"
    assert (tmp_path / "x").read_bytes() == b"a" * 60 + b"\n"


@pytest.mark.parametrize(
    ("error", "next_step"),
    [
        (errno.ENOSPC, "make room on the disk"),
        (errno.EDQUOT, "your quota of the disk is used up"),
        (errno.EROFS, "mounted read-only"),
        (errno.EACCES, "see who may write there"),
        (errno.ESTALE, "not there any more"),
        (errno.ENOENT, "not there any more"),
        (errno.EIO, "the disk reports errors"),
        (errno.ELOOP, "see whether the disk is well"),
    ],
)
def test_each_error_of_a_disk_says_what_to_do(error: int, next_step: str, tmp_path: Path) -> None:
    with pytest.raises(KeepError) as caught, disk.disk_errors(tmp_path):
        raise OSError(error, os.strerror(error))
    assert (caught.value.where, caught.value.got) == (str(tmp_path), os.strerror(error))
    assert next_step in caught.value.next_step


def test_files_of_an_earlier_attempt_make_place(tmp_path: Path) -> None:
    keep_directory(tmp_path / "t", {"a": b"1", "attempt-1/a": b"0"})
    keep_directory(tmp_path / "t", {"b": b"2"})
    assert kept(tmp_path) == {"t/b": b"2"}


def test_a_file_system_that_cannot_sync_a_directory_is_taken_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fsync(handle: int) -> None:
        if Path(f"/proc/self/fd/{handle}").is_dir():
            raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "fsync", fsync)
    make_directory(tmp_path / "a" / "b")
    replace_file(tmp_path / "a" / "b" / "x", b"1")
    assert kept(tmp_path) == {"a/b/x": b"1"}


@pytest.mark.parametrize("kind", ["link", "pipe", "device", "directory"])
def test_only_plain_files_are_read(kind: str, tmp_path: Path) -> None:
    """A pipe would hang, /dev/zero never end, and a link show what lies elsewhere."""
    path = tmp_path / "x"
    made = {
        "link": lambda: path.symlink_to("/etc/hostname"),
        "pipe": lambda: os.mkfifo(path),
        "directory": path.mkdir,
        "device": lambda: None,
    }
    made[kind]()
    with pytest.raises(StoreError, match="not a plain file"):
        read_plain(path if kind != "device" else Path("/dev/zero"))


def test_a_gigantic_file_is_refused_without_being_read(tmp_path: Path) -> None:
    with (tmp_path / "x").open("wb") as file:
        file.truncate(1 << 40)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(StoreError) as caught:
        read_plain(tmp_path / "x")
    assert (caught.value.got, caught.value.allowed) == (f"{1 << 40} B", f"{1 << 28} B")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 10_000, "kB"
