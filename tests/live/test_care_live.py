"""Cleaning, for real: processes, mounts, loop devices and files that a run might leave, in roots of the test's own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from disks import command
from mountlab.box.connection import BoxConnection
from mountlab.box.embedded import open_box
from mountlab.box.facts import gather
from mountlab.box.leftovers import Leftover, kill_run, parse_leftovers, remove_leftovers, remove_leftovers_argv
from mountlab.box.readiness import check, prepare
from mountlab.box.testing import RecordingBox
from mountlab.core.model import Box, Program
from waiting import LIMIT_S, wait_until

pytestmark = [pytest.mark.box, pytest.mark.requires_program("sshd")]

RUN = f"20200101T000000-test{os.getpid()}"
ONE, TWO, GONE, OTHER = (f"{RUN}-{name}" for name in ("1", "12", "gone", "other"))
"""Runs that nobody else on this machine has: they are looked for by their names."""


@pytest.fixture
def roots(tmp_path: Path) -> tuple[Path, Path]:
    """A mount root with a blank in its name and an output root, both ours."""
    made = (tmp_path / "mount root", tmp_path / "out")
    for root in made:
        root.mkdir()
        (root / ".mountlab").touch()
    return made


@pytest.fixture
def local(roots: tuple[Path, Path]) -> Iterator[BoxConnection]:
    box = Box(name="local", host="", embedded="loopback", mount_root=str(roots[0]), output_root=str(roots[1]))
    with open_box(box) as connection:
        yield connection


def shown(leftovers: list[Leftover]) -> list[tuple[str, str, bool]]:
    return [(left.kind, left.name, left.removed) for left in leftovers]


def sleeper(
    run_id: str, script: str = "exec sleep 60", cwd: Path | None = None, first: str = ""
) -> subprocess.Popen[bytes]:
    """A process of a run. Reaped by us, so a dead one is a zombie until then: no longer a process of the run."""
    process = subprocess.Popen(
        ["sh", "-c", f"{first} echo; {script}"],
        env={**os.environ, "MOUNTLAB_RUN": run_id},
        cwd=cwd,
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"\n"  # the shell runs by now
    return process


def end(*processes: subprocess.Popen[bytes]) -> None:
    for process in processes:
        process.kill()
        process.communicate()


# --- nothing ----------------------------------------------------------------------------------------------------------


def test_empty_roots_are_removed_and_then_there_is_nothing(local: BoxConnection, roots: tuple[Path, Path]) -> None:
    mount_root, output_root = roots
    assert shown(remove_leftovers(local, dry_run=True)) == [
        ("root", str(output_root), False),
        ("root", str(mount_root), False),
    ]
    assert mount_root.exists()
    assert shown(remove_leftovers(local)) == [("root", str(output_root), True), ("root", str(mount_root), True)]
    assert not mount_root.exists()
    assert remove_leftovers(local) == []


def test_directories_without_our_marker_are_not_ours(local: BoxConnection, roots: tuple[Path, Path]) -> None:
    for root in roots:
        (root / ".mountlab").unlink()
        (root / "thesis.tex").write_text("precious")
    assert remove_leftovers(local) == []
    assert all((root / "thesis.tex").exists() for root in roots)


def test_a_marker_that_is_a_link_is_no_marker(local: BoxConnection, roots: tuple[Path, Path]) -> None:
    for root in roots:
        (root / ".mountlab").unlink()
        (root / ".mountlab").symlink_to("/etc/passwd")
    assert remove_leftovers(local) == []


def test_a_root_that_is_a_symbolic_link_is_refused(
    local: BoxConnection, roots: tuple[Path, Path], tmp_path: Path
) -> None:
    real = tmp_path / "elsewhere"
    roots[0].rename(real)
    roots[0].symlink_to(real)
    (real / "run").mkdir()
    found = remove_leftovers(local)
    assert Leftover("root", str(roots[0]), False, "a symbolic link: not touched") in found
    assert (real / "run").exists()


@pytest.mark.requires_root
def test_a_root_of_somebody_else_is_refused(local: BoxConnection, roots: tuple[Path, Path]) -> None:
    os.chown(roots[0], 12345, 12345)
    found = remove_leftovers(local)
    assert Leftover("root", str(roots[0]), False, "it belongs to user 12345: not touched") in found
    assert roots[0].exists()


# --- files ------------------------------------------------------------------------------------------------------------


def test_run_directories_go_and_links_are_neither_followed_nor_removed(
    local: BoxConnection, roots: tuple[Path, Path], tmp_path: Path
) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").touch()
    run = roots[0] / RUN
    (run / "img").mkdir(parents=True)
    (run / "img" / "a b.img").write_bytes(b"x" * 100)
    others = {run / "link", roots[0] / ".hidden link", roots[1] / "tab\tand \\ backslash"}
    for each in others:
        each.symlink_to(precious)
    listed = remove_leftovers(local, dry_run=True)
    assert {(left.kind, left.name) for left in listed} == {
        ("files", str(run)),
        ("root", str(roots[0])),
        ("root", str(roots[1])),
        *(("foreign", str(each)) for each in others),
    }
    assert {left.removed for left in listed} == {False}
    assert run.exists()
    found = remove_leftovers(local)
    assert {left.name for left in found if left.kind == "foreign" and not left.removed} == {*map(str, others)}
    assert {left.note for left in found} == {"not made by Mountlab: not touched"}
    assert not (run / "img").exists()
    assert (precious / "file").exists()
    for each in others:
        each.unlink()
    assert all(left.removed for left in remove_leftovers(local))
    assert not roots[0].exists()
    assert not roots[1].exists()
    assert (precious / "file").exists()


@pytest.mark.requires_program("losetup")
@pytest.mark.requires_root
def test_mounts_and_loop_devices_of_others_stay(local: BoxConnection, roots: tuple[Path, Path], tmp_path: Path) -> None:
    """A disk that somebody has mounted below a root, and an image of his own there and beside ours."""
    disk, image, beside = roots[0] / "disk", roots[0] / "mine.img", roots[0] / RUN / "img" / "mine.img"
    beside.parent.mkdir(parents=True)
    (beside.parent.parent / ".mountlab").write_text(f"run {RUN}\n")
    (beside.parent / ".mountlab").write_text("images\n")
    disk.mkdir()
    command("mount", "-t", "tmpfs", "mountlab-test", disk)
    loops = []
    try:
        (disk / "thesis.tex").write_text("precious")
        for file in (image, beside):
            with file.open("wb") as opened:
                opened.truncate(1 << 20)
            loops.append(command("losetup", "-f", "--show", file))
        found = remove_leftovers(local)
        assert {left.name for left in found if left.kind == "foreign"} == {str(disk), str(image), str(beside)}
        assert {left.kind for left in found} == {"foreign", "root"}, "the other root is empty, and goes"
        assert (disk / "thesis.tex").read_text() == "precious"
        assert mounted(disk)
        assert all(Path(f"/sys/block/{Path(loop).name}/loop/backing_file").exists() for loop in loops)
    finally:
        for loop in loops:
            command("losetup", "-d", loop)
        command("umount", disk)


@pytest.mark.requires_root
def test_a_root_that_is_a_mount_point_stays_and_serves_again(local: BoxConnection, roots: tuple[Path, Path]) -> None:
    command("mount", "-t", "tmpfs", "mountlab-test", roots[0])
    try:
        (roots[0] / "lost+found").mkdir()  # as mkfs leaves it
        for _ in range(2):
            (roots[0] / ".mountlab").write_text("found\n")
            (roots[0] / RUN / "img").mkdir(parents=True)
            assert all(left.removed for left in remove_leftovers(local))
            assert [path.name for path in roots[0].iterdir()] == ["lost+found"]
            assert remove_leftovers(local) == []
    finally:
        command("umount", roots[0])


def test_an_output_root_inside_the_mount_root(roots: tuple[Path, Path]) -> None:
    mount_root = roots[0]
    inner = mount_root / "out"
    (inner / RUN).mkdir(parents=True)
    (inner / ".mountlab").touch()
    box = Box(name="local", host="", embedded="loopback", mount_root=str(mount_root), output_root=str(inner))
    with open_box(box) as connection:
        names = [left.name for left in remove_leftovers(connection)]
        assert names == [str(inner / RUN), str(inner), str(mount_root)]
        assert remove_leftovers(connection) == []


# --- processes --------------------------------------------------------------------------------------------------------


def test_kill_run_ends_the_processes_of_that_run_only(local: BoxConnection) -> None:
    one, two = sleeper(ONE), sleeper(TWO)
    try:
        kill_run(local, ONE)
        assert one.wait(LIMIT_S) == -signal.SIGTERM
        assert two.poll() is None
        kill_run(local, ONE)
    finally:
        end(one, two)


def test_kill_run_ends_children_and_those_that_ignore_sigterm(local: BoxConnection) -> None:
    stubborn = sleeper(ONE, "(sleep 61) & while :; do sleep 0.1; done", first="trap '' TERM;")
    try:
        kill_run(local, ONE)
        assert stubborn.wait(LIMIT_S) == -signal.SIGKILL
        assert not any(f"MOUNTLAB_RUN={ONE}\0".encode() in environment for environment in environments())
    finally:
        end(stubborn)


def environments() -> Iterator[bytes]:
    for process in Path("/proc").glob("[0-9]*"):
        try:
            yield (process / "environ").read_bytes() + b"\0"
        except OSError:
            continue


def test_clean_ends_processes_of_runs_in_our_roots_and_of_no_others(
    local: BoxConnection, roots: tuple[Path, Path]
) -> None:
    (roots[0] / RUN / "mnt").mkdir(parents=True)
    ours, inside, others = (
        sleeper(RUN, "sleep 60; :"),
        sleeper(GONE, cwd=roots[0] / RUN / "mnt"),
        sleeper(OTHER),
    )
    try:
        listed = remove_leftovers(local, dry_run=True)
        assert {left.name.split()[0] for left in listed if left.kind == "process"} == {
            str(ours.pid),
            str(inside.pid),
        } | {str(child) for parent in (ours, inside) for child in children(parent.pid)}
        assert ours.poll() is None
        assert all(left.removed for left in remove_leftovers(local))
        assert (ours.wait(LIMIT_S), inside.wait(LIMIT_S), others.poll()) == (-signal.SIGTERM, -signal.SIGTERM, None)
    finally:
        end(ours, inside, others)
        kill_run(local, OTHER)


def children(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


# --- mounts and loop devices ------------------------------------------------------------------------------------------


def mounted(path: Path) -> bool:
    return f" {str(path).replace(' ', chr(92) + '040')} " in Path("/proc/self/mountinfo").read_text()


@pytest.mark.requires_root
def test_what_the_box_itself_unmounts_meanwhile_is_gone(tmp_path: Path, roots: tuple[Path, Path]) -> None:
    """Its lease ends as `box clean` begins: of two that clean, one comes second."""
    place = roots[0] / RUN / "mnt" / "a"
    place.mkdir(parents=True)
    command("mount", "-t", "tmpfs", "mountlab", place)
    second = tmp_path / "bin" / "umount"
    second.parent.mkdir()
    second.write_text(f'#!/bin/sh\n{shutil.which("umount")} "$@"\necho "$2: not mounted." >&2\nexit 32\n')
    second.chmod(0o755)
    argv = remove_leftovers_argv("clean", str(os.getuid()), *map(str, roots), "")
    path = f"{second.parent}:{os.environ['PATH']}"
    printed = subprocess.run(argv, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=True).stdout
    found = parse_leftovers(printed)
    assert ("mount", str(place), True) in shown(found)
    assert [left for left in found if not left.removed or left.note] == []


@pytest.mark.requires_program("losetup", "mke2fs")
@pytest.mark.requires_root
def test_mounts_go_deepest_first_then_loop_devices_then_files(local: BoxConnection, roots: tuple[Path, Path]) -> None:
    mnt, image = roots[0] / RUN / "mnt" / "a b", roots[0] / RUN / "img" / "a b.img"
    mnt.mkdir(parents=True)
    image.parent.mkdir()
    with image.open("wb") as file:
        file.truncate(32 << 20)
    command("mke2fs", "-q", "-F", image)
    loop = command("losetup", "-f", "--show", image)
    command("mount", loop, mnt)
    inner = mnt / "inner"
    inner.mkdir()
    command("mount", "-t", "tmpfs", "mountlab", inner)
    command("mount", "-t", "tmpfs", "mountlab", inner)  # stacked
    image.unlink()  # the kernel now says '(deleted)'
    worker = sleeper(RUN, "cd '" + str(inner) + "'; echo; sleep 60", cwd=inner)

    listed = remove_leftovers(local, dry_run=True)
    assert [left.name for left in listed if left.kind == "mount"] == [str(inner), str(inner), str(mnt)]
    assert [left.name for left in listed if left.kind == "loop"] == [f"{loop} ({image})"]
    assert mounted(inner)

    found = remove_leftovers(local)
    worker.communicate()
    assert [left for left in found if not left.removed] == []
    kinds = [left.kind for left in found if left.kind != "process"]
    assert kinds == ["mount", "mount", "mount", "loop", "root", "files", "root"]
    assert found[0].kind == "process"
    assert not mounted(mnt)
    assert not roots[0].exists()
    assert remove_leftovers(local) == []


@pytest.mark.requires_program("losetup")
@pytest.mark.requires_root
def test_a_loop_device_that_somebody_has_open_for_a_moment_is_waited_for(
    local: BoxConnection, roots: tuple[Path, Path]
) -> None:
    """As udev and blkid have: the kernel detaches it when they close it."""
    (roots[0] / RUN / "mnt").mkdir(parents=True)
    image = roots[0] / RUN / "img" / "a.img"
    image.parent.mkdir()
    image.write_bytes(bytes(1 << 20))
    loop = command("losetup", "-f", "--show", image)
    asked = Path("/sys/block", Path(loop).name, "loop", "autoclear")

    def hold_for_a_moment() -> None:
        with open(loop, "rb"):
            opened.set()
            wait_until("a detach", lambda: asked.read_text() == "1\n")
            time.sleep(0.5)

    opened, holder = threading.Event(), threading.Thread(target=hold_for_a_moment)
    holder.start()
    assert opened.wait(LIMIT_S)
    found = remove_leftovers(local)
    holder.join()
    assert {left.name for left in found if left.kind == "loop"} == {f"{loop} ({image})"}
    assert [left for left in found if not left.removed] == []


@pytest.mark.requires_root
def test_what_is_busy_stays_is_said_and_goes_the_next_time(local: BoxConnection, roots: tuple[Path, Path]) -> None:
    mnt = roots[0] / RUN / "mnt" / "t"
    mnt.mkdir(parents=True)
    command("mount", "-t", "tmpfs", "mountlab", mnt)
    (mnt / "file").touch()
    with (mnt / "file").open() as held:
        found = {left.kind: left for left in remove_leftovers(local) if left.name != str(roots[1])}
        assert not found["mount"].removed
        assert "busy" in found["mount"].note
        assert (found["files"].removed, found["files"].note) == (False, f"something is still mounted below {mnt}")
        assert (found["root"].removed, found["root"].note) == (False, "not empty")
        assert held.readable()
        assert (mnt / "file").exists()
    assert all(left.removed for left in remove_leftovers(local))
    assert not roots[0].exists()


# --- check and prepare on this machine --------------------------------------------------------------------------------


def test_check_of_this_machine_changes_nothing(local: BoxConnection, roots: tuple[Path, Path]) -> None:
    programs = [
        Program(name="sh", packages={}, version=("true",)),
        Program(name="no-such-program", packages={"apt": "no-such-package"}, version=("no-such-program",)),
    ]
    facts = gather(local, programs)
    rows = {row.name: row for row in check(local, facts, programs, {"tmpfs": True, "no-such-type": True})}
    assert rows["sh"].state == "ok"
    assert rows["no-such-program"].state == "missing"
    assert rows["file systems"].seen == "has: tmpfs; has not: no-such-type"
    assert str(roots[0]) in rows["mount root"].seen
    assert prepare(local, facts, programs[:1], yes=False, ask=lambda _: False) == ()


def test_cleaning_asks_little_of_a_box_where_there_is_nothing(local: BoxConnection) -> None:
    remove_leftovers(local)
    box = RecordingBox(local)
    assert remove_leftovers(box) == []
    assert len(box.calls) <= 3
