"""What the plan asks of the box beforehand, with a box that only answers."""

from __future__ import annotations

from typing import Any

import pytest
from facts import known
from mountlab.box.connection import timeout_error
from mountlab.box.containment import ask_argv
from mountlab.box.survey import DAX, _help_command, survey
from mountlab.box.testing import ReplayBox
from mountlab.core.box_facts import Surveyed
from mountlab.core.errors import BoxTimeout, PlanError, UnsafeError
from mountlab.core.model import Box, ScratchDevice
from mountlab.core.shell import script_argv
from mountlab.core.units import MIB
from mountlab.programs import TOOLS
from rows import every_row
from sweeps import sweep

DISK, JOURNAL = "/dev/disk/by-id/disk", "/dev/disk/by-id/journal"
BOX = Box(
    name="b",
    host="h",
    scratch=(
        ScratchDevice(name="data", device=DISK),
        ScratchDevice(name="log", device=JOURNAL),
        ScratchDevice(name="memory", device="memory:0x100000000"),
    ),
)
FACTS = known(rights="root", kernel="6.1.0", mount_root_free_bytes=5, kernel_filesystems=["ext4"])
ID = "11111111-2222-3333-4444-555555555555"


def box(**said: tuple[int, str]) -> ReplayBox:
    """`data` and `log` to the exit status and standard error of the guard."""
    made = ReplayBox(BOX).answer(TOOLS["dd"].box_help, "Usage: dd [OPERAND]...\n")
    made.answer(ask_argv(), "mount_namespace\tunshare -m --propagation slave\npid_namespace\t\n")
    for name, device in (("data", DISK), ("log", JOURNAL)):
        status, text = said.get(name, (0, f"identity: id-of-{name}\n/dev/{name} (1 GiB) is blank\n"))
        made.answer(script_argv("guard.sh", device, "", ""), f"/dev/{name}\n", stderr=text, exit_status=status)
        made.answer(("blockdev", "--getsize64", device), "1000000000\n")
    return made


def surveyed(replay: ReplayBox, **filesystems: dict[str, Any]) -> Surveyed:
    return survey(sweep(filesystems=filesystems).sweep, replay, FACTS).surveyed


def test_each_device_is_told_with_what_is_on_it_and_what_becomes_of_it() -> None:
    facts = surveyed(box(), f={"type": "ext4", "device": "data", "journal_device": "log"})
    assert facts.devices == {
        "f": f"{DISK}: /dev/data (1 GiB) is blank; will be written over; "
        f"its journal {JOURNAL}: /dev/log (1 GiB) is blank; will be written over"
    }
    assert facts.device_ids == {"data": "id-of-data", "log": "id-of-log"}
    assert facts.room == {"f": 900_000_000}


def test_of_a_raw_device_all_but_the_mark_may_be_written() -> None:
    assert surveyed(box(), f={"type": "raw", "device": "data"}).room == {"f": 1_000_000_000 - 2**20}


def test_the_device_below_an_overlay_is_asked_as_well() -> None:
    facts = surveyed(box(), o={"type": "overlay", "over": {"type": "ext4", "device": "data"}})
    assert facts.device_ids == {"data": "id-of-data"}


def test_a_pool_on_a_device_that_has_no_room_for_the_snapshots_of_a_state_is_refused() -> None:
    def looked_at(**layer: Any) -> Surveyed:
        stack = [{"layer": "lvm", "kind": "thin", "chunk": "64KiB", **layer}]
        on_thin = {"type": "ext4", "device": "data", "stack": stack, "state": ["fresh", "few"]}
        states = {"few": {"fill": "10%", "snapshots": 3, "change": "5%"}}
        return survey(sweep(filesystems={"f": on_thin}, states=states).sweep, box(), FACTS).surveyed

    with pytest.raises(PlanError, match="f cannot be in the state few") as refused:
        looked_at()
    assert "could overflow" in str(refused.value)
    assert looked_at(volume="256MiB").room == {"f": 256 * MIB}


def test_memory_is_no_block_device() -> None:
    facts = surveyed(box(), p={"type": "pmfs", "device": "memory", "size": "1GiB"}, d={"type": "dir"})
    assert (facts.devices, facts.device_ids, facts.room) == ({}, {}, {"d": 5})


def test_a_slow_program_has_time_for_each_option_and_one_that_hangs_names_the_next_step() -> None:
    """Defect: on an emulated processor fio starts for a second and more, and is started for each option."""
    entry = {"tool": "fio", "rw": "read", "size": "1MiB", "direct": True}
    swept = sweep(filesystems={"d": {"type": "dir"}}, workloads={"w": entry}).sweep
    argv = _help_command(TOOLS["fio"], swept)
    slow = ReplayBox(BOX).answer(argv).answer(ask_argv(), "pid_namespace\t\n")
    survey(swept, slow, FACTS)
    starts = 1 + len(argv) - 4 + 4  # the list, each option, each engine that has some of its own
    assert slow.calls[0].timeout_s >= 10 * starts
    with pytest.raises(BoxTimeout) as raised:
        survey(swept, ReplayBox(BOX).fail(argv, timeout_error(argv, 9.0, "box b", b"fio: slow")), FACTS)
    assert raised.value.what.startswith("the box's fio did not list its options in ")
    assert "`fio --version`" in raised.value.next_step
    assert (raised.value.where, raised.value.evidence) == ("box b", "fio: slow")


def test_the_guard_looks_as_root() -> None:
    replay = box()
    surveyed(replay, f={"type": "ext4", "device": "data"})
    assert [call.argv[-3:] for call in replay.calls if "guard.sh" in call.argv] == [(DISK, "", "")]
    assert all(call.root for call in replay.calls)


@every_row(
    ("data", "fs"),
    [
        ("data", {"type": "ext4", "device": "data"}),
        ("log", {"type": "ext4", "device": "data", "journal_device": "log"}),
        ("data", {"type": "overlay", "over": {"type": "ext4", "device": "data"}}),
    ],
)
@every_row(("permit", "more"), [("claim", ""), (ID, f" --erase {ID}")])
def test_a_refusal_names_the_command_that_may_permit_it(data: str, fs: dict[str, Any], permit: str, more: str) -> None:
    refusing = box(**{data: (1, f"refused: /dev/{data} holds xfs, id {ID}\npermit: {permit}\n")})
    with pytest.raises(UnsafeError) as refusal:
        surveyed(refusing, f=fs)
    assert refusal.value.what == f"{DISK if data == 'data' else JOURNAL} will not be formatted"
    assert refusal.value.got == f"/dev/{data} holds xfs, id {ID}"
    assert f"mountlab box claim {BOX.name} {data}{more}" in refusal.value.next_step
    assert refusal.value.exit_code == 4


def test_where_one_device_is_refused_the_others_are_told_as_well() -> None:
    refusing = box(log=(1, "refused: /dev/log is mounted on /srv\n"))
    with pytest.raises(UnsafeError) as refusal:
        surveyed(refusing, f={"type": "ext4", "device": "data"}, g={"type": "ext4", "device": "log"})
    assert refusal.value.evidence.splitlines() == [
        f"{DISK}: /dev/data (1 GiB) is blank; will be written over",
        f"{JOURNAL}: /dev/log is mounted on /srv; will not be touched",
    ]


@pytest.mark.parametrize(("said", "expected"), [("1\n", {"data": True}), ("0\n", {"data": False}), ("", {})])
def test_a_device_is_asked_for_dax_where_a_file_system_wants_it(said: str, expected: dict[str, bool]) -> None:
    replay = box().answer(("sh", "-c", DAX, "dax", DISK), said)
    facts = surveyed(replay, f={"type": "ext4", "device": "data", "journal_device": "log", "options": ["dax=always"]})
    assert facts.device_dax == expected
    assert surveyed(box(), f={"type": "ext4", "device": "data"}).device_dax == {}
