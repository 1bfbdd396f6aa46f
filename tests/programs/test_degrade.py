"""degrade: its figures, outputs that are refused, and file systems without a member to lose."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mountlab.core.array import Array
from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import ParameterError, ToolError
from mountlab.core.model import Place, Target, Workload
from mountlab.filesystems.members import planned_array
from mountlab.filesystems.zfs import pool_uuid
from mountlab.programs import TOOLS
from mountlab.programs.degrade import Degrade
from mountlab.sweep.beside import neighbour_refusal
from mountlab.tools.base import ToolOutput
from rows import every_row
from sweeps import assert_refused, sweep

DATA = Path(__file__).parents[1] / "data/degrade"
RAID5 = (DATA / "raid5.stdout").read_text()
"""A trial on three loop images in the virtual box; the other one on a mirror of ZFS."""
RETURNED = (DATA / "mirror-returned.stdout").read_text()
LOST = {"tool": "degrade", "size": "8MiB"}


def md(level: str, members: int = 4, **options: Any) -> dict[str, Any]:
    stack = [{"layer": "md", "level": level, **options}]
    return {"type": "ext4", "image": "64MiB", "members": members, "stack": stack}


def zfs(members: int, *vdevs: Any) -> dict[str, Any]:
    return {"type": "zfs", "image": "80MiB", "members": members, "vdevs": list(vdevs)}


def resolved(filesystem: Mapping[str, Any], **changes: Any) -> Any:
    return sweep(filesystems={"f": dict(filesystem)}, workloads={"w": {**LOST, **changes}}).sweep


def workload(**changes: Any) -> Workload:
    return resolved(md("raid1"), **changes).workloads[0]


def parse(stdout: str) -> dict[tuple[str, str], float]:
    output = ToolOutput(exit_status=0, stdout=stdout, stderr="", files={})
    return {(row.metric, row.label): row.value for row in Degrade().parse(workload(), output)}


def seconds(stdout: str, operation: str) -> float:
    """Between the second and the third reading of the clock, in nanoseconds."""
    (found,) = re.findall(rf"^timed {operation} \d+ (\d+) (\d+) ", stdout, re.MULTILINE)
    return (int(found[1]) - int(found[0])) / 1e9


# --- figures ----------------------------------------------------------------------------------------------------------


@every_row("stdout", [RAID5, RETURNED])
def test_a_rate_is_the_file_by_the_time_of_the_box(stdout: str) -> None:
    figures = parse(stdout)
    for side in ("read", "write"):
        for state in ("healthy", "degraded"):
            expected = (8 << 20) / seconds(stdout, f"{side}_{state}")
            assert figures[f"{side}_bandwidth", state] == pytest.approx(expected)


@every_row("stdout", [RAID5, RETURNED])
def test_the_rebuild_moves_what_was_written_to_the_member(stdout: str) -> None:
    figures, took = parse(stdout), seconds(stdout, "rebuild")
    before, after = (int(re.findall(rf"^{word} \d+ (\d+)", stdout, re.M)[0]) for word in ("blank", "rebuilt"))
    assert figures["operation_latency", "rebuild"] == pytest.approx(took)
    assert figures["bandwidth", "rebuild"] == pytest.approx((after - before) * 512 / took)


def test_the_rebuild_is_as_precise_as_the_last_look_at_it() -> None:
    """The kernel does not say when it has ended: between two looks, 0.28 s apart, beside what the clock adds."""
    steps = []
    for ended in ("ended 25620 25620", "ended 25620 25648"):
        stdout = re.sub(r"^ended .*", ended, RAID5, flags=re.MULTILINE)
        output = ToolOutput(exit_status=0, stdout=stdout, stderr="", files={})
        rows = Degrade().parse(workload(), output)
        steps += [row.step for row in rows if row.metric == "operation_latency"]
    assert steps[1] - steps[0] == pytest.approx(0.28)


# --- what is refused --------------------------------------------------------------------------------------------------


@every_row(
    ("line", "other", "where"),
    [
        ("state_healthy whole", "state_healthy degraded, 1 missing, idle", "state_healthy"),
        ("state_degraded degraded, 1 missing, idle", "state_degraded whole", "state_degraded"),
        ("state_still degraded, 1 missing, idle", "state_still whole", "state_still"),
        ("state_whole whole", "state_whole degraded, 1 missing, recover", "state_whole"),
        ("sizes 8388608 8388608", "sizes 8388608 4096", "bytes of the files"),
        (r"served \w+", "served 0", "checksums of the files that were read"),
        (r"kept \w+", "kept 0", "checksums of overwritten files"),
        (r"after (\d+) \d+", r"after \1 999999999", "sectors written to the lost member"),
        (r"after \d+ (\d+)", r"after 999999999 \1", "bytes read from the lost member"),
        (r"rebuilt (\d+) \d+", r"rebuilt \1 41567", "written to the member that came back"),
    ],
)
def test_a_trial_that_did_not_lose_a_member_or_changed_a_file_gives_no_figures(
    line: str, other: str, where: str
) -> None:
    changed, count = re.subn(f"^{line}", other, RAID5, count=1, flags=re.MULTILINE)
    assert count == 1
    with pytest.raises(ToolError) as caught:
        parse(changed)
    assert where in caught.value.where


@every_row(
    ("filesystem", "changes", "words"),
    [
        (md("raid1"), {}, ""),
        (md("raid10"), {"member": "4"}, ""),
        (
            md("raid10"),
            {"member": "5"},
            "device 5 is none whose loss f survives: member is first, last, or one of 1",
        ),
        (md("raid5", journal=True), {"member": "4"}, "one of 1, 2, 3"),
        (md("raid0"), {}, "md raid0 has no copies and no parity: md as the lowest layer"),
        (md("raid1"), {"back": "returned"}, "give its layer bitmap: internal, or say back: replaced"),
        (md("raid1", bitmap="internal"), {"back": "returned"}, ""),
        (zfs(2, {"mirror": [1, 2]}), {"back": "returned"}, ""),
        (zfs(3, {"raidz1": [1, 2]}, {"cache": [3]}), {"member": "3"}, "one of 1, 2"),
        (zfs(2), {}, "the pool has no copies and no parity"),
        ({"type": "ext4", "image": "64MiB"}, {}, "ext4 on one device has no member to lose"),
        ({"type": "ext4", "image": "64MiB", "stack": [{"layer": "luks"}]}, {}, "its lowest layer is luks"),
        ({"type": "btrfs", "image": "128MiB", "members": 2}, {}, "only after a mount with `degraded`"),
        ({"type": "dir"}, {}, "dir lies on no array that Mountlab makes"),
        ({"type": "tmpfs", "size": "64MiB"}, {}, "tmpfs lies on no array"),
        ({"type": "overlay", "over": {"type": "tmpfs", "size": "64MiB"}}, {}, "overlay lies on no array"),
    ],
)
def test_a_file_system_without_a_member_to_lose_is_skipped_with_the_reason(
    filesystem: dict[str, Any], changes: dict[str, Any], words: str
) -> None:
    assert_refused(resolved(filesystem, **changes), words)


@every_row(
    ("changes", "key"),
    [({"size": "0B"}, "size"), ({"size": "5000B"}, "size"), ({"member": "0"}, "member"), ({"cache": "warm"}, "cache")],
)
def test_what_no_trial_can_do_is_an_error_of_its_key(changes: dict[str, Any], key: str) -> None:
    with pytest.raises(ParameterError) as caught:
        workload(**changes)
    assert caught.value.where.endswith(f"workloads.w.{key}")


def test_it_is_no_neighbour() -> None:
    dd = {"tool": "dd", "direction": "write", "count": 1, "beside": "n"}
    asked = sweep(filesystems={"f": md("raid1")}, neighbours={"n": LOST}, workloads={"w": dd}).sweep
    (fs,) = asked.filesystems
    assert "changes devices below" in str(neighbour_refusal(fs, fs, asked.neighbours["n"], BoxFacts()))


# --- which member -----------------------------------------------------------------------------------------------------

PLACE = Place(
    run_id="r", run_dir="/m/r", mountpoint="/m/r/mnt/f", image="/m/r/img/f.img", uuid="1-2", layer_uuids=("u",)
)


def test_the_array_of_a_mount_is_known_by_the_uuid_that_was_written_down() -> None:
    fs = resolved(md("raid6")).filesystems[0]
    assert planned_array(fs, PLACE) == Array("md", (1, 2, 3, 4), "/m/r", "u", 4)
    fs = resolved(zfs(4, {"mirror": [3, 2]}, {"log": [1]}, {"cache": [4]})).filesystems[0]
    assert planned_array(fs, PLACE) == Array("zfs", (2, 3), "/m/r", pool_uuid(PLACE), 4)
    assert planned_array(resolved({"type": "tmpfs", "size": "64MiB"}).filesystems[0], PLACE) is None


@every_row(("member", "number"), [("first", "2"), ("last", "3"), ("3", "3")])
def test_a_member_is_given_by_its_number_in_the_record(member: str, number: str) -> None:
    target = Target(array=Array("zfs", (2, 3), "/m/r", "u"))
    command = TOOLS["degrade"].command(workload(member=member), "/m/t1", "/o/t1", target)
    at = command.argv.index("u")
    assert (command.argv[at - 1], command.argv[at + 1]) == ("/m/r", number)
