"""States on real file systems: each mount begins from the same bytes, on images and on devices."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from device_states import claim
from disks import BTRFS_SIZE, MIB, SIZE, XFS_SIZE, Disks, command
from mountlab.box import facts, leftovers
from mountlab.box.embedded import open_box
from mountlab.core.box_facts import BoxFacts
from mountlab.core.shell import script_argv
from mountlab.filesystems.kept import StateOfMount
from mountlab.results import paths, store
from mountlab.runner import workflow
from ownbox import own_box
from repetition import others_long
from rows import every_row
from sweeps import as_is

pytestmark = [pytest.mark.box, pytest.mark.slow, pytest.mark.requires_root, pytest.mark.requires_program("mkfs.ext4")]

WRITE = {"tool": "dd", "direction": "write", "bs": "1MiB", "count": 2}
FILLED = {"fill": "20%", "profile": "mail"}
"""More would be read and written with each mount, and show the same."""
MKFS = {
    "ext4": ("mke2fs", "-q", "-F", "-t", "ext4"),
    "xfs": ("mkfs.xfs", "-q", "-f", "-K"),
    "btrfs": ("mkfs.btrfs", "-q", "-f", "-K"),
}
SIZES = {"ext4": SIZE, "xfs": XFS_SIZE, "btrfs": 2 * BTRFS_SIZE}
CHECKED = {
    "ext4": ("e2fsck", "-fn"),
    "xfs": ("xfs_repair", "-n"),
    "btrfs": ("btrfs", "check"),
}


def measure(results: Path, filesystems: Mapping[str, Any], states: Mapping[str, Any], **design: Any) -> store.Run:
    resolved = as_is(
        filesystems=dict(filesystems),
        states=dict(states),
        workloads={"w": WRITE},
        design={"repeats": 1, **design},
    )
    return store.load_run(workflow.run(resolved, results=results))


def states_of(run: store.Run) -> dict[str, StateOfMount]:
    """Mount to the state that it began from."""
    return {path.parent.name: StateOfMount.read(path.read_text()) for path in sorted(run.path.glob("raw/*/state.json"))}


def commands_of(run: store.Run, mount: str) -> list[str]:
    return [" ".join(row["argv"][:3]) for row in json.loads((run.path / "raw" / mount / "commands.json").read_text())]


def nothing_is_left() -> bool:
    with open_box(paths.load_box("local")) as connection:
        return leftovers.remove_leftovers(connection, dry_run=True) == []


# --- the blocks in use ------------------------------------------------------------------------------------------------


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Disks]:
    with ExitStack() as undo:
        yield Disks(tmp_path, undo)


def keep(*words: str | Path, path: str = os.environ["PATH"]) -> subprocess.CompletedProcess[str]:
    argv = script_argv("keep_state.sh", *map(str, words))
    environment = {**os.environ, "PATH": path}
    return subprocess.run(argv, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, env=environment)


def contents(place: Path) -> dict[str, bytes]:
    return {str(path.relative_to(place)): path.read_bytes() for path in place.rglob("*") if path.is_file()}


@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_the_blocks_in_use_hold_the_whole_file_system(kind: str, made: Disks, tmp_path: Path) -> None:
    """All others may hold anything afterwards: the file system's own check finds nothing, and every file is there."""
    device = made.loop(size=SIZES[kind])
    command(*MKFS[kind], device)
    place = made.mount(device)
    for number in range(40):
        (place / f"f{number}").write_bytes(bytes([number]) * (number * 20_000 + 1))
    for number in range(0, 40, 2):
        (place / f"f{number}").unlink()
    before = contents(place)
    command("umount", str(place))
    used, kept = tmp_path / "x.used", tmp_path / "x.img"
    done = keep("keep", device, used, kind, kept)
    assert (done.returncode, done.stderr) == (0, "")
    assert kept.stat().st_blocks * 512 < 0.9 * SIZES[kind], "free blocks are not kept"
    with open(device, "r+b", buffering=0) as file:
        for _ in range(SIZES[kind] // MIB):
            file.write(b"\xa5" * MIB)
    assert keep("check", device, used, done.stdout.strip()).returncode == 1
    assert keep("restore", device, used, kept, "uuid").returncode == 0
    again = keep("check", device, used, done.stdout.strip())
    assert (again.returncode, again.stdout) == (0, done.stdout)
    command(*CHECKED[kind], device)
    command("mount", "-o", "ro", device, str(place))  # `made` undoes it
    assert contents(place) == before


@every_row("openssl", ["", "exit 1", f"echo {'5a' * 32}"], ids=["as it is here", "broken", "another sum"])
def test_the_checksum_does_not_depend_on_openssl(openssl: str, tmp_path: Path) -> None:
    device, used, shim = tmp_path / "device", tmp_path / "used", tmp_path / "openssl"
    data = os.urandom(3 * MIB)
    device.write_bytes(data)
    used.write_text("0 1\n2 1\n")
    shim.write_text(f"#!/bin/sh\n{openssl}\n")
    shim.chmod(0o755 if openssl else 0o644)
    expected = hashlib.sha256(data[:MIB] + data[2 * MIB :]).hexdigest()
    done = keep("check", device, used, expected, path=f"{tmp_path}:{os.environ['PATH']}")
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{expected}\n", "")


@pytest.mark.long
@pytest.mark.parametrize("blocks", ["written", "sparse"])
def test_a_hundred_restores_have_the_same_checksum(blocks: str, made: Disks, tmp_path: Path) -> None:
    """Each is used in between: what a trial writes is gone with the next one."""
    kept, copy, used = tmp_path / "kept.img", tmp_path / "copy.img", tmp_path / "kept.used"
    device = made.loop(size=SIZE)
    command(*MKFS["ext4"], device)
    place = made.mount(device)
    for number in range(30):
        (place / f"f{number}").write_bytes(os.urandom(number * 20_000 + 1))
    command("umount", str(place))
    expected = keep("keep", device, used, "ext4", kept).stdout.strip()
    seen = set()
    for _ in range(100):
        command(*script_argv("image.sh", str(copy), str(SIZE), blocks, str(kept)))
        loop = command("losetup", "--find", "--show", "--direct-io=on", str(copy)).strip()
        try:
            done = keep("check", loop, used, expected)
            seen.add((done.returncode, done.stdout.strip()))
            command("mount", loop, str(place))
            (place / "trial").write_bytes(os.urandom(MIB))
            command("umount", str(place))
        finally:
            command("losetup", "--detach", loop)
        copy.unlink()
    command("mount", device, str(place))  # `made` undoes it
    assert seen == {(0, expected)}


# --- images -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_box(tmp_path, monkeypatch)


@pytest.mark.parametrize("written", others_long(["ext4 xfs", "btrfs"], ["ext4 xfs"]))
def test_each_trial_begins_from_the_bytes_that_were_kept(box: None, written: str, results_dir: Path) -> None:
    """Images of which every block is written before, and sparse ones."""
    filesystems = {
        kind: {"type": kind, "image": size, "preallocate": kind in written.split(), "state": ["fresh", "filled"]}
        for kind, size in {"ext4": "64MiB", "xfs": "300MiB", "btrfs": "256MiB"}.items()
    }
    run = measure(results_dir, filesystems, {"filled": FILLED}, repeats=2, fresh_filesystem="cell")
    assert list(run.trials["status"].unique()) == ["ok"], list(run.trials["reason"])
    of_kind = {(state.making, state.identity) for state in states_of(run).values()}
    assert sorted(making for making, _ in of_kind) == ["s-btrfs-filled", "s-ext4-filled", "s-xfs-filled"]
    assert len(states_of(run)) == 6, "two blocks of each, and none of a fresh one"
    assert nothing_is_left()


def test_snapshots_are_kept_in_a_state(box: None, results_dir: Path) -> None:
    states = {"many": {"snapshots": 3, "change": "5%", "profile": "mail"}}
    run = measure(results_dir, {"btrfs": {"type": "btrfs", "image": "256MiB", "state": "many"}}, states)
    assert list(run.trials["status"]) == ["ok"], list(run.trials["reason"])
    (state,) = states_of(run).values()
    assert "snapshots 3" in (run.path / "raw" / state.making / "snapshots.txt").read_text()
    assert "+" in state.digest, "of the files, and of what is snapshotted"


def test_a_state_that_is_not_reached_fails_its_trials_and_no_others(box: None, results_dir: Path) -> None:
    """media needs larger files than there is room for."""
    states = {"filled": FILLED, "videos": {"fill": "50%", "profile": "media"}}
    filesystems = {"ext4": {"type": "ext4", "image": "64MiB", "state": ["fresh", "filled", "videos"]}}
    trials = measure(results_dir, filesystems, states).trials
    by_state = {row["state"]: (row["status"], row["reason"]) for _, row in trials.join(_factors(trials)).iterrows()}
    assert {name: status for name, (status, _) in by_state.items()} == {
        "fresh": "ok", "filled": "ok", "videos": "failed",
    }  # fmt: skip
    assert "make the state videos" in by_state["videos"][1]
    assert nothing_is_left()


def _factors(trials: Any) -> Any:
    return trials["factors"].apply(lambda factors: factors["state"]).rename("state")


# --- devices ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def device(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A claimed loop device, as `data` of the local box: as large as the `kind` of a test needs."""
    callspec = getattr(request.node, "callspec", None)
    with ExitStack() as undo:
        disks = Disks(tmp_path, undo)
        path = disks.loop(size=SIZES.get(callspec.params["kind"], SIZE) if callspec else SIZE)
        stable = disks.by_id(path)
        assert claim(stable).returncode == 0
        own_box(tmp_path, monkeypatch, scratch={"data": str(stable)})
        yield path


@pytest.mark.parametrize("kind", others_long(["ext4", "xfs", "btrfs"], ["ext4"]))
def test_the_blocks_in_use_of_a_device_are_copied_back(device: str, kind: str, results_dir: Path) -> None:
    filesystems = {kind: {"type": kind, "device": "data", "state": ["fresh", "filled"]}}
    run = measure(results_dir, filesystems, {"filled": FILLED}, repeats=2)
    assert list(run.trials["status"].unique()) == ["ok"], list(run.trials["reason"])
    states = states_of(run)
    assert len({state.identity for state in states.values()}) == 1
    assert all(any("keep_state.sh restore" in line for line in commands_of(run, mount)) for mount in states)
    assert nothing_is_left()


def test_without_room_each_mount_makes_the_state_again(
    device: str, results_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other bytes, since a file system notes the time, and the same files."""
    crowded = lambda self: self.model_copy(update={"mount_root_free_bytes": MIB})  # noqa: E731
    gather = facts.gather
    monkeypatch.setattr(workflow, "gather", lambda *args, **more: _with_room(gather(*args, **more), crowded))
    run = measure(
        results_dir, {"ext4": {"type": "ext4", "device": "data", "state": "filled"}}, {"filled": FILLED}, repeats=2
    )
    assert list(run.trials["status"].unique()) == ["ok"], list(run.trials["reason"])
    states = states_of(run)
    assert len({state.digest for state in states.values()}) == 1
    assert len({state.identity for state in states.values()}) == len(states)
    assert nothing_is_left()


def _with_room(known: BoxFacts, change: Any) -> BoxFacts:
    return replace(known, storage=change(known.storage))


@pytest.mark.parametrize("kind", ["ext4", "raw"])
def test_a_worn_device_is_written_before_and_discarded_before_others(device: str, kind: str, results_dir: Path) -> None:
    worn = {"worn": {"write": 1.5, "purge": "discard"}}
    filesystems = {"x": {"type": kind, "device": "data", "state": ["fresh", "worn"]}}
    resolved = as_is(filesystems=filesystems, states=worn, workloads={"w": WRITE}, design={"repeats": 2})
    run = store.load_run(workflow.run(resolved, results=results_dir))
    assert list(run.trials["status"].unique()) == ["ok"], list(run.trials["reason"])
    verbs: dict[str, set[str]] = {}
    for state, mount in zip(_factors(run.trials), run.trials["mount"], strict=True):
        (line,) = (line for line in commands_of(run, mount) if line.startswith("wear.sh"))
        verbs.setdefault(state, set()).add(line.split()[-1])
    assert verbs == {"fresh": {"discard"}, "worn": {"write"}}
    assert nothing_is_left()
