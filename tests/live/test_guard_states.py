"""Each state of a scratch device, made for real, and what the guard and `box claim` make of it; what they refuse stays
as it is to the last byte. The table in docs/data/device-states.csv is made of the same list."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from device_states import CLAIM, ERASE, FORMATS, NEVER, STATES, Done, State, claim, guard, lines
from disks import OURS, Disks
from mountlab.filesystems.guard import UNCLAIMED, mark_argv, read_permission, read_refusal
from mountlab_dev import evidence

pytestmark = [
    pytest.mark.box,
    pytest.mark.requires_root,
    pytest.mark.requires_program("losetup", "mke2fs", "wipefs"),
]

EACH_BRANCH = {
    "blank": {"zeros from end to end", "zeros, a partition"},
    "data without a signature": {
        "one byte inside", "one byte at the end", "zeros, a partition beside a mounted one",
    },
    "somebody's data": {
        "ext4", "btrfs", "GPT whose partitions the kernel knows", "GPT, only the second copy", "md member over ext4",
        "ZFS member",
    },
    "claimed": {
        "claimed, then used raw", "claimed, then ext4 of a sweep", "claimed, then btrfs of a sweep",
        "claimed, then external log of an xfs", "copy of a claimed device", "claimed, then grown",
    },
    "with a mark that this box has no record of": {"ext4", "partition beside a mounted one"},
    "claimed, then changed in the same boot": {
        "one byte at 33 MiB", "8 MiB of a database at 40 MiB", "files in the mark", "one byte written to its file",
        "ext4", "zeros written over zeros",
    },
    "used by a sweep, then changed in the same boot": {"one byte at 33 MiB", "ext4 with the same UUID"},
    "claimed, then changed after a restart": {
        "unchanged", "one byte at the end", "4 MiB at 33 MiB", "files in the mark",
    },
    "used by a sweep, then changed after a restart": {"unchanged", "files in its ext4"},
    "a sweep's use was cut off, then": {"ext4 with another mark"},
    "claimed, and beside the mark": {
        "MBR beside an ext4 of ours", "btrfs, over which the mark was written", "btrfs, only its second super block",
        "one byte inside of its area", "LVM label on an ext4 of ours",
    },
    "in use": {
        "mounted in another namespace", "second device of a mounted btrfs", "external journal", "swap",
        "below a loop device", "a loop device on a block device", "file with two loop devices",
        "disk of a mounted partition", "partition of a mounted disk", "mapped by another node of its number",
        "disk with an open partition", "read-only", "its file locked as QEMU does",
        "its file locked by a descriptor on its way",
    },
}  # fmt: skip
"""States of which each takes another way through guard.sh, claim.sh and device.sh. The others take the same way with
another signature, or are in use for another reason. A mounted device and one that is held open are in
test_scratch_device.py and test_guard_live.py, too."""
ASKED_TWICE = {
    ("data without a signature", "one byte inside"), ("somebody's data", "ext4"), ("claimed", "claimed, then used raw"),
    ("in use", "swap"), ("claimed, then changed in the same boot", "one byte at 33 MiB"),
    ("claimed, then changed after a restart", "4 MiB at 33 MiB"),
}  # fmt: skip
"""States in which a wrong id, a second claim and a mkfs of each sort are tried in `make test`: what becomes of these
does not depend on what the device is. `make test-all` tries them in every state."""
UNCLAIMED_SAYS = "Mountlab has not claimed it"


def cases(short: Callable[[str, str], bool], others: tuple[pytest.MarkDecorator, ...]) -> list[Any]:
    return [
        pytest.param(state, id=f"{group}: {name}", marks=() if short(group, name) else others)
        for group, states in STATES.items()
        for name, state in states.items()
        if others or short(group, name)
    ]


PLAIN = cases(lambda group, name: name in EACH_BRANCH[group] and (group, name) not in ASKED_TWICE, ())[::6]
"""A sixth of them: each is a device that is made, looked at and claimed. IN_EVERY_WAY asks the same of every state."""
IN_EVERY_WAY = cases(lambda *state: state in ASKED_TWICE, (pytest.mark.long,))


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Disks]:
    with ExitStack() as undo:
        yield Disks(tmp_path, undo)


def refused(done: Done, says: str) -> str:
    """The id that would permit it."""
    assert (done.returncode, done.stdout) == (1, ""), done.stdout + done.stderr
    assert done.stderr.startswith("refused: "), done.stderr
    refusal = read_refusal(done.stderr)
    assert re.search(says, refusal.reason), refusal.reason
    return refusal.permit


@pytest.mark.parametrize("state", PLAIN)
def test_what_the_guard_and_a_claim_make_of_a_device(state: State, made: Disks) -> None:
    device = state.build(made)
    before = made.digests()
    if state.verdict == FORMATS:
        identity = found_ours(guard(device), device, state)
        done = guard(device, "mke2fs", "-q", "-F", "-U", OURS, device, expected=identity)
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        return
    permit = refused(guard(device, *mark_argv(device)), UNCLAIMED_SAYS if state.verdict == CLAIM else state.says)
    if state.verdict == NEVER:
        refused(claim(device, OURS), state.says)
        assert made.digests() == before
        return
    assert re.fullmatch(UNCLAIMED if state.verdict == CLAIM else state.permit, permit)
    if state.permit:
        permit = refused(claim(device), state.says)
        assert re.fullmatch(state.permit, permit), permit
        assert made.digests() == before
    assert claim(device, permit if state.permit else "").stdout.startswith(f"claimed {device} ")
    assert "holds ext2 of Mountlab's own" in guard(device).stderr


@pytest.mark.parametrize("state", IN_EVERY_WAY)
def test_the_same_asked_in_every_way(state: State, made: Disks) -> None:
    """With a command and without, a second time, and with wrong ids."""
    device = state.build(made)
    before = made.digests()
    if state.verdict == FORMATS:
        formats(device, state)
    elif state.verdict == CLAIM:
        for argv in ((), mark_argv(device)):
            assert refused(guard(device, *argv), UNCLAIMED_SAYS) == UNCLAIMED
        claims(device, state, made, before)
    else:
        for argv in ((), mark_argv(device)):
            assert re.fullmatch(state.permit, refused(guard(device, *argv), state.says))
        if state.verdict == ERASE:
            erases(device, state, made, before)
        else:
            assert state.verdict == NEVER
            refused(claim(device), state.says)
            refused(claim(device, OURS), state.says)
            assert made.digests() == before


def found_ours(looked: Done, device: str, state: State) -> str:
    """Its identity."""
    assert (looked.returncode, looked.stdout.strip()) == (0, device), looked.stderr
    identity, found = read_permission(looked.stderr)
    assert re.search(state.says, found), found
    assert re.fullmatch(r"boot=[0-9a-f]{8},\d+:\d+,sectors=\d+[!-~]*,bound=[0-9a-f]{8}", identity)
    return identity


def formats(device: str, state: State) -> None:
    looked = guard(device)
    identity = found_ours(looked, device, state)
    again = claim(device)
    assert again.stdout.startswith("already "), again.stderr
    assert guard(device).stderr == looked.stderr, "a second claim has changed it"
    done = guard(device, "mke2fs", "-q", "-F", "-U", OURS, device, expected=identity)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    assert read_permission(guard(device).stderr)[0] == identity


def claims(device: str, state: State, made: Disks, before: list[str]) -> None:
    """What carries no signature is read; only where all of it is zero it is ours afterwards."""
    if state.permit:
        erases(device, state, made, before)
        return
    done = claim(device)
    assert done.stdout.startswith(f"claimed {device} "), done.stderr
    assert "every byte of it zero" in done.stdout
    looked = guard(device)
    assert looked.returncode == 0
    assert "holds ext2 of Mountlab's own" in looked.stderr


def erases(device: str, state: State, made: Disks, before: list[str]) -> None:
    permit = refused(claim(device), state.says)
    assert re.fullmatch(state.permit, permit), permit
    for wrong in ("99999999-2222-3333-4444-555555555555", permit[:-1]):
        assert refused(claim(device, wrong), f"and its id is not {re.escape(wrong)}") == permit
    assert made.digests() == before
    done = claim(device, permit)
    assert done.stdout.startswith(f"claimed {device} "), done.stderr
    assert "holds ext2 of Mountlab's own" in guard(device).stderr


def test_each_branch_is_one_of_the_states() -> None:
    assert all(name in EACH_BRANCH[group] for group, name in ASKED_TWICE)
    assert all(names <= STATES[group].keys() for group, names in EACH_BRANCH.items())
    assert EACH_BRANCH.keys() == STATES.keys()


def test_the_table_in_git_is_made_of_these_states() -> None:
    assert evidence.rows("device-states") == [list(line) for line in lines()], (
        "python tests/support/device_states.py writes it"
    )
