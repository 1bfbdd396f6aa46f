"""scrub: its counts, outputs that are refused, and devices on which blocks are not found."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from mountlab.core.array import Array
from mountlab.core.errors import ParameterError, ToolError
from mountlab.core.model import Place, Target, Workload
from mountlab.filesystems.members import planned_array
from mountlab.programs import TOOLS
from mountlab.programs.scrub import Scrub
from mountlab.tools.base import ToolOutput
from rows import every_row
from sweeps import assert_refused, sweep

DATA = Path(__file__).parents[1] / "data/scrub"
EXT4, BTRFS, MIRROR = (
    (DATA / f"{name}.stdout").read_text() for name in ("ext4", "btrfs", "btrfs-raid1")
)  # real trials on loop images
BAD = {"tool": "scrub", "size": "8MiB"}


def resolved(filesystem: Mapping[str, Any], **changes: Any) -> Any:
    return sweep(filesystems={"f": dict(filesystem)}, workloads={"w": {**BAD, **changes}}).sweep


def on(kind: str, *stack: dict[str, Any], members: int = 2, **more: Any) -> dict[str, Any]:
    return {"type": kind, "image": "128MiB", "members": members, "stack": list(stack), **more}


def workload(**changes: Any) -> Workload:
    return resolved({"type": "ext4", "image": "64MiB"}, **changes).workloads[0]


def parse(stdout: str) -> dict[tuple[str, str], float]:
    output = ToolOutput(exit_status=0, stdout=stdout, stderr="", files={})
    return {(row.metric, row.label): row.value for row in Scrub().parse(workload(), output)}


# --- counts -----------------------------------------------------------------------------------------------------------


@every_row(
    ("stdout", "served", "found", "repaired"),
    [(EXT4, (10, 0, 10, 0), 0, 0), (BTRFS, (0, 10, 0, 10), 10, 0), (MIRROR, (0, 0, 0, 0), 10, 10)],
    ids=["ext4", "btrfs", "btrfs-raid1"],
)
def test_what_is_served_found_and_repaired_is_counted(
    stdout: str, served: tuple[int, ...], found: int, repaired: int
) -> None:
    """Without checksums all errors are served, with these they are refused, and a second copy repairs them."""
    figures = parse(stdout)
    labels = ("wrong before", "refused before", "wrong after", "refused after")
    assert tuple(figures["blocks", label] for label in labels) == served
    assert (figures["operations", "found"], figures["operations", "repaired"]) == (found, repaired)
    assert (figures["blocks", "planted"], figures["blocks", "unrepaired"]) == (10, 10 - repaired)


@every_row(("name", "found"), [("md-raid1", 5 * 16), ("zfs-mirror", 5)])
def test_what_is_found_is_counted_as_the_system_does(name: str, found: int) -> None:
    """Trials in the virtual box: md compares copies by 64 KiB, and ZFS counts checksums."""
    text = (DATA / f"{name}.stdout").read_text()
    output = ToolOutput(exit_status=0, stdout=text, stderr="", files={})
    rows = Scrub().parse(workload(size="4MiB", errors=5), output)
    figures = {(row.metric, row.label): row.value for row in rows}
    assert (figures["operations", "found"], figures["operations", "repaired"]) == (found, 5)
    assert (("operation_latency", "repair") in figures) == (name == "md-raid1")


def test_the_check_reads_the_device_at_a_rate_and_no_check_has_none() -> None:
    began, ended = (int(word) for word in re.findall(r"^timed check \d+ (\d+) (\d+) ", MIRROR, re.MULTILINE)[0])
    (sectors,) = re.findall(r"^scanned (\d+)", MIRROR, re.MULTILINE)
    assert parse(MIRROR)["bandwidth", "check"] == pytest.approx(int(sectors) * 512 / ((ended - began) / 1e9))
    assert not {metric for metric, _ in parse(EXT4)} & {"bandwidth", "operation_latency"}


@every_row(
    ("line", "other", "where"),
    [
        ("planted 10", "planted 9", "planted errors"),
        (r"before 2038", "before 2037", "blocks, before"),
        (r"after 2038", "after 2039", "blocks, after"),
        (r"repaired 0", "repaired 1", "blocks, repaired"),
    ],
)
def test_a_trial_that_lost_count_of_blocks_gives_no_figures(line: str, other: str, where: str) -> None:
    changed, count = re.subn(f"^{line}", other, EXT4, count=1, flags=re.MULTILINE)
    assert count == 1
    with pytest.raises(ToolError) as caught:
        parse(changed)
    assert caught.value.where == where


# --- what is refused --------------------------------------------------------------------------------------------------

RAID1 = {"layer": "md", "level": "raid1"}


@every_row(
    ("filesystem", "changes", "words"),
    [
        (on("ext4", members=1), {}, ""),
        (on("xfs", RAID1, image="512MiB"), {"member": "2"}, ""),
        (on("ext4", RAID1), {"member": "3"}, "f has no device 3: member is first, last, or 1 to 2"),
        (on("btrfs"), {}, ""),
        (on("zfs"), {}, ""),
        (on("ext4", {"layer": "md", "level": "raid0"}), {}, ""),
        (on("ext4", {"layer": "lvm", "kind": "striped"}), {}, ""),
        (on("ext4", {"layer": "lvm", "kind": "thin"}), {}, "lvm thin moves blocks"),
        (on("ext4", RAID1, {"layer": "luks"}), {}, "luks hides the blocks"),
        (on("ext4", {"layer": "integrity"}, members=1), {}, "integrity hides the blocks"),
        (on("zfs", RAID1), {}, "a pool on layers"),
        ({"type": "ext4", "zram": "64MiB"}, {}, "blocks of ext4 are not found on a device of its own"),
        ({"type": "dir"}, {}, "blocks of dir are not found"),
        ({"type": "tmpfs", "size": "64MiB"}, {}, "blocks of tmpfs are not found"),
        ({"type": "overlay", "over": {"type": "ext4", "image": "64MiB"}}, {}, "blocks of overlay are not found"),
    ],
)
def test_where_blocks_are_not_found_on_a_device_it_is_skipped_with_the_reason(
    filesystem: dict[str, Any], changes: dict[str, Any], words: str
) -> None:
    assert_refused(resolved(filesystem, **changes), words)


@every_row(
    ("changes", "key"),
    [
        ({"size": "0B"}, "size"),
        ({"size": "5000B"}, "size"),
        ({"errors": 1001}, "errors"),
        ({"size": "4KiB", "errors": 2}, "errors"),
        ({"member": "0"}, "member"),
        ({"cache": "warm"}, "cache"),
    ],
)
def test_what_no_trial_can_do_is_an_error_of_its_key(changes: dict[str, Any], key: str) -> None:
    with pytest.raises(ParameterError) as caught:
        workload(**changes)
    assert caught.value.where.endswith(f"workloads.w.{key}")


# --- which device -----------------------------------------------------------------------------------------------------


def test_a_file_system_without_layers_is_known_by_its_own_uuid() -> None:
    place = Place(run_id="r", run_dir="/m/r", mountpoint="/m/r/mnt/f", image="/m/r/img/f.img", uuid="1-2")
    fs = resolved(on("btrfs", members=3)).filesystems[0]
    assert planned_array(fs, place) == Array("device", (), "/m/r", "1-2", 3)


@every_row(("member", "number"), [("first", "1"), ("last", "3"), ("2", "2")])
def test_a_device_is_given_by_its_number(member: str, number: str) -> None:
    target = Target(array=Array("md", (), "/m/r", "u", 3))
    command = TOOLS["scrub"].command(workload(member=member), "/m/t1", "/o/t1", target)
    at = command.argv.index("u")
    assert (command.argv[at - 2 : at], command.argv[at + 1]) == (("md", "/m/r"), number)
