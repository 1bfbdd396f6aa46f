"""What the guard says, as people read it. What it does is tested on devices: tests/live/test_guard_live.py."""

from __future__ import annotations

import pytest
from mountlab.core.model import Box, ScratchDevice
from mountlab.core.shell import script_argv, script_text
from mountlab.filesystems.guard import (
    BOUND,
    MARK_UUID,
    OURS,
    UNCLAIMED,
    Refusal,
    formatted,
    mark_argv,
    permitting,
    read_permission,
    read_refusal,
    uuid_for,
)

ID = "11111111-2222-3333-4444-555555555555"


def test_a_refusal_is_taken_apart() -> None:
    said = f"refused: /dev/sdb (1 TiB) holds ext4, label MYDATA, id {ID}\npermit: {ID}\n"
    assert read_refusal(said) == Refusal(reason=f"/dev/sdb (1 TiB) holds ext4, label MYDATA, id {ID}", permit=ID)
    assert read_refusal("refused: /dev/sdb is read-only\n") == Refusal(reason="/dev/sdb is read-only", permit="")


def test_whatever_else_is_said_is_kept() -> None:
    assert read_refusal("sh: awk: not found\nrefused: x\n").reason == "sh: awk: not found refused: x"
    assert read_refusal("").reason == ""


def test_a_permission_is_taken_apart() -> None:
    said = "identity: 8:16,sectors=2048,serial=S1\n/dev/sdb (1 MiB) is blank\n"
    assert read_permission(said) == ("8:16,sectors=2048,serial=S1", "/dev/sdb (1 MiB) is blank")


BOX = Box(name="b", host="b", scratch=(ScratchDevice(name="data", device="/dev/disk/by-id/x"),))


def test_the_next_step_is_the_one_command_that_would_permit_it() -> None:
    named = Refusal("holds ext4", ID).next_step(BOX, "/dev/disk/by-id/x")
    assert named.endswith(f"mountlab box claim b data --erase {ID}")
    assert "destroy" in named


def test_a_device_that_was_not_claimed_is_to_be_claimed_and_not_erased() -> None:
    step = Refusal("carries no signature", UNCLAIMED).next_step(BOX, "/dev/disk/by-id/x")
    assert step.startswith("mountlab box claim b data ")
    assert "--erase" not in step


def test_nothing_permits_a_device_in_use() -> None:
    assert Refusal("is mounted on /", "").next_step(BOX, "/dev/x") == "end that use, or name another device"


def test_all_that_we_make_is_marked_with_what_the_script_knows_as_ours() -> None:
    script = script_text("guard.sh")
    assert f"\nOURS={OURS} " in script
    assert f"\nBOUND={BOUND} " in script
    assert MARK_UUID.startswith(OURS)
    assert uuid_for("", "run", "mount").startswith(OURS)
    assert bytes.fromhex(OURS.replace("-", "")) == b"mountlab"


def test_a_uuid_holds_what_its_device_is_bound_by_and_differs_between_mounts() -> None:
    identity = "boot=1,8:16,sectors=9,serial=S,bound=0123abcd"
    first, second = (uuid_for(identity, "run", mount) for mount in ("m1", "m2"))
    assert first != second
    assert first[: len(BOUND) + 9] == second[: len(BOUND) + 9] == f"{BOUND}0123-abcd"
    assert {len(first), len(second)} == {36}


@pytest.mark.parametrize("device", ["/dev/sdb", "/dev/disk/by-id/x"])
def test_the_mark_is_one_mebibyte_whatever_the_size_of_the_device(device: str) -> None:
    argv = mark_argv(device, ID)
    assert argv[argv.index("-b") + 1] == argv[-1] == "1024"
    assert (argv[argv.index("-U") + 1], argv[-2]) == (ID, device)
    assert "nodiscard" in argv


DISK = "/dev/disk/by-id/x"
LOOKS = script_argv("guard.sh", DISK, "", "8:16,serial=S1")
FORMATS = (*LOOKS, "mke2fs", "-q", "/dev/sdb")


def test_only_a_guard_with_a_command_formats() -> None:
    assert [*formatted(FORMATS)] == [DISK]
    assert [*formatted(LOOKS)] == [*formatted(("mke2fs", "-q", "/dev/sdb"))] == []


def test_what_a_power_cut_left_half_made_is_permitted_to_the_one_device_that_it_was_made_on() -> None:
    assert permitting(FORMATS, {DISK}) == (*LOOKS[:-2], "-", "8:16,serial=S1", "mke2fs", "-q", "/dev/sdb")
    assert permitting(FORMATS, {"/dev/disk/by-id/y"}) == permitting(FORMATS, set()) == FORMATS
    assert permitting(LOOKS, {DISK}) == LOOKS
