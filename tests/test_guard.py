"""What the guard says, as people read it. What it does is tested on devices: tests/box/test_guard_live.py."""

from __future__ import annotations

from importlib.resources import files

import pytest
from mountlab.filesystems.base import script_argv
from mountlab.filesystems.guard import (
    MARK_UUID,
    OURS,
    Refusal,
    formatted,
    mark_argv,
    permitting,
    read_permission,
    read_refusal,
)
from mountlab.plan import our_uuid

ID = "11111111-2222-3333-4444-555555555555"


def test_a_refusal_is_taken_apart() -> None:
    said = f"refused: /dev/sdb (1 TiB) holds ext4, label MYDATA, id {ID}\npermit: {ID}\n"
    assert read_refusal(said) == Refusal(found=f"/dev/sdb (1 TiB) holds ext4, label MYDATA, id {ID}", permit=ID)
    assert read_refusal("refused: /dev/sdb is read-only\n") == Refusal(found="/dev/sdb is read-only", permit="")


def test_whatever_else_is_said_is_kept() -> None:
    assert read_refusal("sh: awk: not found\nrefused: x\n").found == "sh: awk: not found refused: x"
    assert read_refusal("").found == ""


def test_a_permission_is_taken_apart() -> None:
    said = "identity: 8:16,sectors=2048,serial=S1\n/dev/sdb (1 MiB) is blank\n"
    assert read_permission(said) == ("8:16,sectors=2048,serial=S1", "/dev/sdb (1 MiB) is blank")


def test_the_next_step_is_the_one_line_that_would_permit_it() -> None:
    named = Refusal("holds ext4", ID).next_step("/dev/disk/by-id/x", "filesystems.f.overwrite")
    assert f"add `overwrite: {ID}` to filesystems.f in the sweep file" in named
    assert "destroy" in named


def test_a_command_that_destroys_says_so() -> None:
    by_hand = Refusal("holds squashfs without an id", "-").next_step("/dev/disk/by-id/x", "filesystems.f.overwrite")
    before, _, shown = by_hand.partition("wipefs -a /dev/disk/by-id/x && ")
    assert "which destroys what is on it" in before
    assert shown == " ".join(mark_argv("/dev/disk/by-id/x"))


def test_nothing_permits_a_device_in_use() -> None:
    assert Refusal("is mounted on /", "").next_step("/dev/x", "overwrite") == "end that use, or name another device"


def test_all_that_we_make_is_marked_with_what_the_script_knows_as_ours() -> None:
    script = files("mountlab.filesystems").joinpath("guard.sh").read_text()
    assert f"\nOURS={OURS}\n" in script
    assert f'"${{OURS}}{MARK_UUID.removeprefix(OURS)}"' in script
    assert our_uuid("run", "mount").startswith(OURS)
    assert bytes.fromhex(OURS.replace("-", "")) == b"mountlab"


@pytest.mark.parametrize("device", ["/dev/sdb", "/dev/disk/by-id/x"])
def test_the_mark_is_one_mebibyte_whatever_the_size_of_the_device(device: str) -> None:
    argv = mark_argv(device, ID)
    assert argv[argv.index("-b") + 1] == argv[-1] == "1024"
    assert (argv[argv.index("-U") + 1], argv[-2]) == (ID, device)
    assert "nodiscard" in argv


DISK = "/dev/disk/by-id/x"
LOOKS = script_argv("guard.sh", DISK, ID, "8:16,serial=S1")
FORMATS = (*LOOKS, "mke2fs", "-q", "/dev/sdb")


def test_only_a_guard_with_a_command_formats() -> None:
    assert [*formatted(FORMATS)] == [DISK]
    assert [*formatted(LOOKS)] == [*formatted(("mke2fs", "-q", "/dev/sdb"))] == []


def test_what_a_power_cut_left_half_made_is_permitted_to_the_one_device_that_it_was_made_on() -> None:
    assert permitting(FORMATS, {DISK}) == (*LOOKS[:-2], "-", "8:16,serial=S1", "mke2fs", "-q", "/dev/sdb")
    assert permitting(FORMATS, {"/dev/disk/by-id/y"}) == permitting(FORMATS, set()) == FORMATS
    assert permitting(LOOKS, {DISK}) == LOOKS
