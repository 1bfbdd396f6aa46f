"""Directories of a box, for real: a user's files, mount points, links, and boxes that share one."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import ownbox
import pytest
import yaml
from faults import counting
from faults.scenes import control, linked
from mountlab import __main__
from mountlab.box import leftovers
from mountlab.box.embedded import open_box
from mountlab.core.errors import BoxInUse, UnsafeError
from mountlab.results import info, paths, store
from mountlab.results.writer import RunWriter
from mountlab.runner import workflow
from ownbox import own_box
from sweeps import EXT4, TMPFS, as_is
from waiting import LIMIT_S, wait_until

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("sshd")]

PRECIOUS = b"the only copy"
DESIGN = {"repeats": 2, "warmup": 0, "drop_caches": False}
WRITE = {"tool": "dd", "direction": "write", "bs": "64KiB", "count": 2}


def given(**filesystems: Any) -> Any:
    return as_is(filesystems=filesystems or {"tmpfs": TMPFS}, workloads={"w": WRITE}, design=DESIGN)


def cleaned() -> list[leftovers.Leftover]:
    with open_box(paths.load_box("local")) as connection:
        return leftovers.remove_leftovers(connection)


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The mount root of a box of the test's own."""
    made = own_box(tmp_path, monkeypatch)
    yield made
    shutil.rmtree(output_root(made), ignore_errors=True)


def output_root(root: Path) -> Path:
    return Path(ownbox.output_root(root.parent))


def after(number: int, monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Do something while a run goes on, once so many of its trials are kept."""
    record, kept = RunWriter.record, iter(range(1, 10_000))

    def recorded(writer: RunWriter, *arguments: Any) -> None:
        record(writer, *arguments)
        if next(kept) == number:
            act()

    monkeypatch.setattr(RunWriter, "record", recorded)


# --- a user's file ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["mount", pytest.param("output", marks=pytest.mark.long)])
def test_a_users_file_below_a_root_refuses_plan_run_and_resume_and_stays(
    which: str,
    root: Path,
    results_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A root with our marker, as a crash leaves it, is not emptied any more."""
    with monkeypatch.context() as patch:
        after(1, patch, lambda: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            workflow.run(given(), box="local", results=results_dir)
    (path,) = results_dir.glob("2*")
    file = (root if which == "mount" else output_root(root)) / "results of a year" / "thesis.tex"
    file.parent.mkdir(parents=True)
    file.write_bytes(PRECIOUS)
    (file.parent.parent / ".mountlab").touch()
    named = f"{file.parent.parent} holds what Mountlab did not make: {file.parent.name}"
    sweep_file = tmp_path / "x.yml"
    sweep_file.write_text(yaml.safe_dump({**given().parameters, "name": "x"}))
    monkeypatch.setitem(workflow.run.__kwdefaults__, "results", results_dir)
    for words in (["plan", str(sweep_file)], ["run", str(sweep_file)], ["resume", str(path)]):
        assert __main__.main([*words, *([] if words[0] == "resume" else ["--box", "local"])]) == 4
        said = capsys.readouterr().err
        assert f"got:     {named}" in said
        assert f"params/boxes/local.yml: {which}_root" in said
        assert "next:    move that elsewhere, or write a directory for Mountlab alone" in said
        assert file.read_bytes() == PRECIOUS
    assert __main__.main(["box", "clean", "local"]) == 1
    assert f"not ours     foreign  {file.parent} not made by Mountlab: not touched" in capsys.readouterr().out
    assert __main__.main(["box", "clean", "local", "--force"]) == 1
    assert file.read_bytes() == PRECIOUS
    assert list(results_dir.glob("2*")) == [path], "a refused run leaves no directory"
    shutil.rmtree(file.parent)
    capsys.readouterr()
    workflow.resume(path)
    assert info.read_info(path).status == "complete"
    assert not root.exists()


def test_what_a_user_puts_there_while_a_run_goes_on_stays_and_the_run_is_complete(
    root: Path, results_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the run's own directories, beside an image, and in a directory of the user's that is measured."""
    data = tmp_path / "data"
    data.mkdir()
    put: list[Path] = []

    def drop() -> None:
        (run,) = (each for each in root.iterdir() if each.is_dir())
        (own,) = data.glob("mountlab-*")
        out = output_root(root) / run.name
        put.extend(each / "thesis.img" for each in (root, run, run / "img", own, out, output_root(root)))
        for each in put:
            each.write_bytes(PRECIOUS)

    filesystems = {"ext4": EXT4, "dir": {"type": "dir", "path": str(data)}}
    lasting = as_is(filesystems=filesystems, workloads={"w": WRITE}, design={**DESIGN, "fresh_filesystem": "never"})
    with monkeypatch.context() as patch:
        after(2, patch, drop)
        path = workflow.run(lasting, box="local", results=results_dir)
    assert info.read_info(path).status == "complete"
    assert set(store.load_run(path).trials["status"]) == {"ok"}
    assert {each.read_bytes() for each in put} == {PRECIOUS}
    printed = capsys.readouterr()
    inside = put[1:5]
    assert all(f"{each} on box local is not Mountlab's: it stays" in printed.out + printed.err for each in inside)
    with pytest.raises(UnsafeError, match="refused to use a directory of the box"):
        workflow.run(lasting, box="local", results=results_dir)
    names = {left.name for left in cleaned() if left.kind == "foreign"}
    assert names == {str(each) for each in put}
    assert {each.read_bytes() for each in put} == {PRECIOUS}
    for each in put:
        each.unlink()
    assert all(left.removed for left in cleaned())
    assert not root.exists()
    assert not list(data.iterdir())


def test_a_users_file_survives_a_kill_of_mountlab_and_the_box_that_cleans_itself(tmp_path: Path) -> None:
    with linked("5s") as (place, wire), control(place) as host:
        keys = place.keys(repeats=1)
        keys["workloads"] = {"long": place.seen(2 * LIMIT_S)}
        pid = host.start("run", place.put_sweep(**keys))
        wait_until("a trial", place.witness.exists, ended=lambda: host.ended(0) and host.said())
        (run,) = (each for each in place.mount_root.iterdir() if each.is_dir())
        put = [place.mount_root / "mine", run / "mine", run / "img" / "mine.img", place.output_root / run.name / "mine"]
        for each in put:
            each.write_bytes(PRECIOUS)
        wire.stall()
        os.kill(pid, signal.SIGKILL)
        host.wait()
        gone = lambda: not (run / "img" / "ext4.img").exists() and not (run / "mnt").exists()  # noqa: E731
        wait_until("a box that cleans itself", gone)
        wire.flow()
        wire.reset()
        assert {each.read_bytes() for each in put} == {PRECIOUS}

        def held() -> set[str]:
            left = counting.left_behind((place.mount_root,), patience_s=0)
            return {each for each in left if not each.startswith("file ")}

        wait_until("a box that holds nothing", lambda: held() == set())


# --- roots that are mount points, or lie below a link -----------------------------------------------------------------


@pytest.mark.long
def test_a_mount_point_is_a_root_for_one_run_after_another(root: Path, results_dir: Path) -> None:
    root.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=300m", "mountlab-test", root], check=True)
    try:
        (root / "lost+found").mkdir()  # as mkfs leaves it
        for _ in range(2):
            path = workflow.run(given(tmpfs=TMPFS, ext4=EXT4), box="local", results=results_dir)
            assert set(store.load_run(path).trials["status"]) == {"ok"}
            assert [each.name for each in root.iterdir()] == ["lost+found"]
        assert cleaned() == []
    finally:
        subprocess.run(["umount", root], check=True)


@pytest.mark.long
def test_below_a_link_every_trial_is_good(tmp_path: Path, results_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_box(tmp_path, monkeypatch)
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    keys = {"embedded": "loopback", "mount_root": f"{tmp_path}/link/m", "output_root": f"{tmp_path}/link/new/o"}
    (tmp_path / "params" / "boxes" / "local.yml").write_text(yaml.safe_dump(keys))
    path = workflow.run(given(tmpfs=TMPFS, d={"type": "dir"}), box="local", results=results_dir)
    assert set(store.load_run(path).trials["status"]) == {"ok"}
    assert info.read_info(path).facts.storage.mount_root == f"{tmp_path}/real/m"
    assert cleaned() == []


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda root: root.symlink_to(root.parent), ("is a symbolic link to", "itself, or another directory")),
        pytest.param(
            lambda root: root.touch(), ("is not a directory", "write another directory"), marks=pytest.mark.long
        ),
        pytest.param(
            lambda root: (root.mkdir(), (root / "thesis.tex").touch()),
            ("holds what Mountlab did not make: thesis.tex", "move that elsewhere"),
            marks=pytest.mark.long,
        ),
    ],
    ids=["link", "file", "data"],
)
def test_plan_and_run_say_the_same_of_a_root_that_is_none(
    make: Callable[[Path], object], words: tuple[str, ...], root: Path, results_dir: Path
) -> None:
    make(root)
    before = sorted(root.parent.rglob("*"))
    said = []
    for take in (False, True):
        with pytest.raises(UnsafeError) as caught, workflow.planned(given(), box="local", take=take):
            raise AssertionError
        said.append(str(caught.value))
    with pytest.raises(UnsafeError) as run:
        workflow.run(given(), box="local", results=results_dir)
    assert said == [str(run.value)] * 2
    assert all(word in said[0] for word in words)
    assert sorted(root.parent.rglob("*")) == before


# --- two boxes that share a root --------------------------------------------------------------------------------------


@contextmanager
def meanwhile(resolved: Any, results: Path) -> Iterator[Path]:
    """A run on `local` that goes on while the test does something else; it must come to a good end."""
    ended: list[Path] = []
    thread = threading.Thread(target=lambda: ended.append(workflow.run(resolved, box="local", results=results)))
    thread.start()
    wait_until("a trial", lambda: any(results.glob("2*/trials.jsonl")), ended=lambda: not thread.is_alive())
    yield next(results.glob("2*"))
    thread.join(LIMIT_S)
    (path,) = ended
    assert set(store.load_run(path).trials["status"]) == {"ok"}


@pytest.mark.long
@pytest.mark.parametrize("shared", [pytest.param("mount_root", marks=pytest.mark.long), "output_root"])
def test_a_second_box_with_the_same_root_is_refused_meanwhile(
    shared: str, root: Path, tmp_path: Path, results_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine = {"mount_root": str(root), "output_root": str(output_root(root))}
    keys = {"embedded": "loopback", **{key: f"{tmp_path}/other-{key}" for key in mine}, shared: mine[shared]}
    (tmp_path / "params" / "boxes" / "second.yml").write_text(yaml.safe_dump(keys))
    told = tmp_path / "told"
    wait = f"mkdir {told}.first 2>/dev/null || until [ -e {told} ]; do sleep 0.1; done"  # from the second trial on
    command = {
        "tool": "command", "argv": f"sh -c '{wait}; echo 5 >$1/x; cat $1/x' seen {{directory}}", "space": "1MiB",
        "metrics": {"bytes": {"pattern": r"^(\d+)$", "unit": "B"}},
    }  # fmt: skip
    long = as_is(filesystems={"tmpfs": TMPFS}, workloads={"w": command}, design={**DESIGN, "repeats": 2})
    with meanwhile(long, results_dir) as path, ExitStack() as undo:
        undo.callback(told.touch)
        with pytest.raises(BoxInUse, match=f"run {path.name} is running on this box") as caught:
            workflow.run(given(), box="second", results=results_dir)
        assert caught.value.where == f"box second: {mine[shared]}/lock"
        assert caught.value.got == f"process {os.getpid()} on {os.uname().nodename} uses {mine[shared]}"
        assert __main__.main(["box", "clean", "second"]) == 3
        assert f"uses {mine[shared]}" in capsys.readouterr().err
    assert not root.exists()
    assert not output_root(root).exists()
    workflow.run(given(), box="second", results=results_dir)


# --- the lease --------------------------------------------------------------------------------------------------------


def leases(results: Path) -> list[str]:
    """Processes of the lease of a run in here, by the end of their command lines."""
    runs = [f"MOUNTLAB_LEASE={path.name}".encode() for path in results.glob("2*")]
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            environment = (process / "environ").read_bytes()
            if any(run in environment for run in runs):
                found.append((process / "cmdline").read_text()[-100:])
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    "fault", [*(pytest.param(name, marks=pytest.mark.long) for name in ("reset", "drop")), "stall"]
)
def test_no_lease_outlives_its_run_whatever_became_of_the_connection(fault: str) -> None:
    with linked("60s") as (place, wire), control(place) as host:
        keys = place.keys(repeats=2)
        keys["workloads"] = {"seen": place.seen(1.0)}
        host.start("run", place.put_sweep(**keys))
        wait_until("a trial", place.witness.exists, ended=lambda: host.ended(0) and host.said())
        assert leases(place.results) != [], "it is there while the run goes on"
        getattr(wire, fault)()
        if fault == "stall":
            threading.Event().wait(3)
            wire.flow()
        assert host.wait() == 0, host.said()
        wait_until("no lease", lambda: leases(place.results) == [])
        assert place.left().left == ()
