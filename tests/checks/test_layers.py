"""File systems on several devices: md, device mapper, btrfs on several. Bytes of a level are those of its devices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from checks.test_checks import CHAIN, MIB, READ, WRITE, build, found, make, the_only
from checks.test_checks_durable import TEN_S, TPCB
from checks.test_checks_durable import evidence as committing
from checks.test_checks_machine import KNOWN
from facts import known
from mountlab.checks import CHECKS, Evidence, layer_writes, moved_below
from mountlab.filesystems.counters import Around
from mountlab.filesystems.evidence import DeviceBytes, DeviceLevels
from rows import every_row

NAMES = {"9:127": "md127", "253:0": "dm-0", "7:0": "loop0", "7:1": "loop1", "254:0": "vda", "254:16": "vdb"}
LOOPS: DeviceLevels = (("9:127",), ("7:0", "7:1"), ("254:0",))
"""A RAID of two loop devices on one disk."""
DISKS: DeviceLevels = (("9:127",), ("254:0", "254:16"))
BTRFS: DeviceLevels = (("254:0", "254:16"),)
LUKS: DeviceLevels = (("253:0",), ("254:0",))


def layered(
    levels: DeviceLevels, moved: dict[str, tuple[float, float]], workload: dict[str, Any], **more: Any
) -> Evidence:
    """Five trials that move 512 MiB. `moved`: number of a device to MiB that it read and wrote in each."""
    traffic = {number: DeviceBytes(int(read * MIB), int(written * MIB)) for number, (read, written) in moved.items()}
    evidence = build(make(workloads={"w": workload}), traffic=traffic, levels={"m-ext4": levels}, **more)
    return replace(evidence, around={trial: Around(names=NAMES) for trial in evidence.around})


@every_row(
    ("levels", "written", "layers"),
    [
        (
            LOOPS,
            {"9:127": 512, "7:0": 512, "7:1": 512, "254:0": 1280},
            [("md127", 1.0), ("2 loop devices", 2.0), ("vda", 2.5)],
        ),
        (DISKS, {"9:127": 512, "254:0": 512, "254:16": 512}, [("md127", 1.0), ("vda and vdb", 2.0)]),
        (BTRFS, {"254:0": 256, "254:16": 256}, [("vda and vdb", 1.0)]),
        (LUKS, {"253:0": 512, "254:0": 512}, [("dm-0", 1.0), ("vda", 1.0)]),
        (LUKS, {"253:0": 512}, None),
        (CHAIN, {"7:0": 512, "254:0": 512}, None),
        (CHAIN[1:], {"254:0": 512}, None),
        ((), {"254:0": 512}, None),
    ],
)
def test_what_each_layer_wrote_is_told_for_each_byte_of_the_tool(
    levels: DeviceLevels, written: dict[str, int], layers: list[tuple[str, float]] | None
) -> None:
    evidence = layered(levels, {number: (0, size) for number, size in written.items()}, WRITE)
    told = [(one.trials, [(layer.name, layer.per_byte) for layer in one.layers]) for one in layer_writes(evidence)]
    assert told == ([(5, layers)] if layers else [])


def test_what_reads_only_has_no_amplification_of_writes() -> None:
    assert layer_writes(layered(LUKS, {"253:0": (512, 0), "254:0": (512, 0)}, READ)) == []


@every_row(
    ("levels", "moved", "raised"),
    [
        (DISKS, {"9:127": 512, "254:0": 256, "254:16": 256}, False),
        (BTRFS, {"254:0": 256, "254:16": 256}, False),
        (BTRFS, {"254:0": 256, "254:16": 26}, True),
        (DISKS, {"9:127": 512, "254:0": 26, "254:16": 26}, True),
        (LUKS, {"253:0": 26, "254:0": 512}, True),
    ],
)
def test_the_devices_of_a_level_deliver_together(levels: DeviceLevels, moved: dict[str, int], raised: bool) -> None:
    both = {number: (size, size) for number, size in moved.items()}
    reads = layered(levels, both, READ)
    assert bool([*found("cache-served", reads), *found("device-read-less", reads)]) == raised
    assert bool(found("not-flushed", layered(levels, both, WRITE))) == raised


def test_a_level_with_a_device_that_was_not_counted_says_nothing() -> None:
    evidence = layered(DISKS, {"9:127": (0, 512), "254:0": (0, 26)}, WRITE)
    assert found("not-flushed", evidence) == []


def test_a_layer_below_that_delivered_less_is_named_by_what_lies_above() -> None:
    message = the_only("device-read-less", layered(LUKS, {"253:0": (512, 0), "254:0": (26, 0)}, READ)).message
    assert "dm-0 was asked for all of it: below it parts have no data" in message


@every_row(
    ("levels", "moved", "raised"),
    [
        # A mirror writes twice, and a RAID 5 reads what it needs for its parity.
        (LOOPS, {"9:127": (0, 512), "7:0": (0, 512), "7:1": (0, 512), "254:0": (0, 1024)}, False),
        (DISKS, {"9:127": (0, 512), "254:0": (300, 512), "254:16": (300, 512)}, False),
        (LOOPS, {"9:127": (0, 512), "7:0": (0, 512), "7:1": (0, 512), "254:0": (0, 1536)}, True),
        (DISKS, {"9:127": (300, 512), "254:0": (300, 512), "254:16": (300, 512)}, True),
    ],
)
def test_what_a_raid_adds_is_not_of_other_programs(
    levels: DeviceLevels, moved: dict[str, tuple[float, float]], raised: bool
) -> None:
    assert bool(found("other-io", layered(levels, moved, WRITE))) == raised


VIRTIO = {name: {"write_cache": "write back"} for name in ("vda", "vdb")}


def flushing(levels: DeviceLevels, flushes: int, **settings: Any) -> Evidence:
    """A thousand commits of four clients; each device that may count flushes counted so many."""
    seen = committing(TPCB, TEN_S, 0, storage={"disk_settings": {**VIRTIO, **settings}})
    traffic = {
        number: DeviceBytes(0, 0, 0 if name.startswith(("md", "dm")) else flushes) for number, name in NAMES.items()
    }
    around = Around(seconds=11.0, names=NAMES)
    trials = dict.fromkeys(seen.traffic)
    return replace(
        seen, levels={"m": levels}, traffic=dict.fromkeys(trials, traffic), around=dict.fromkeys(trials, around)
    )


@every_row(
    ("levels", "flushes", "named", "raised"),
    [
        (LOOPS, 125, "2 loop devices", False),
        (LOOPS, 20, "2 loop devices", True),
        (DISKS, 20, "vda and vdb", True),
        (BTRFS, 20, "vda and vdb", True),
        (LUKS, 250, "", False),
        (LUKS, 20, "", True),
    ],
)
def test_flushes_are_those_of_the_first_level_that_counts_them(
    levels: DeviceLevels, flushes: int, named: str, raised: bool
) -> None:
    """md and device mapper pass flushes on without counting them."""
    seen = flushing(levels, flushes)
    assert [f"and {named or 'vda'} counted" in each.message for each in found("not-durable", seen)] == [True] * raised
    devices = 2 if named else 1
    below = moved_below(seen, seen.traffic, seen.mounts).values()
    assert {(one.flushes, one.flushes_of) for one in below} == {(devices * flushes, named)}


@every_row(
    ("levels", "settings", "why"),
    [
        (LUKS[:1], {}, "md and device mapper do not count flushes, and the kernel's report has no device below dm-0"),
        (DISKS, {"vdb": {"write_cache": "write through"}}, "vdb has no volatile cache (write through)"),
    ],
)
def test_where_a_device_of_a_level_counts_no_flushes_they_are_not_known(
    levels: DeviceLevels, settings: dict[str, Any], why: str
) -> None:
    seen = flushing(levels, 0, **settings)
    assert found("not-durable", seen) == []
    assert why in str(CHECKS["not-durable"].blind(seen))


@pytest.mark.parametrize(("each", "raised"), [(256, False), (512, True)])
def test_each_device_of_a_level_has_a_limit_of_its_own(each: int, raised: bool) -> None:
    """Two rotating disks in half a second: 537 MB/s each, or 1.07 GB/s."""
    disks = [{"name": name, "type": "disk", "rotational": True, "parent": None} for name in ("vda", "vdb")]
    moved = {"9:127": (2 * each, 0), "254:0": (each, 0), "254:16": (each, 0)}
    evidence = layered(DISKS, moved, READ, facts=known(KNOWN, block_devices=disks))
    frame = evidence.measurements.copy()
    frame.loc[frame["metric"] == "elapsed", "value"] = 0.5
    messages = [caveat.message for caveat in found("implausible", replace(evidence, measurements=frame))]
    assert ["in 5 of its 5 trials" in message for message in messages] == [True] * raised


@every_row(
    ("other", "disks"),
    [
        ((("9:127",), ("254:16", "254:0")), ""),
        ((("9:127",), ("254:0",)), "disk (vda; vda, vdb)"),
    ],
)
def test_sides_on_other_devices_differ_in_their_disks(other: DeviceLevels, disks: str) -> None:
    filesystems = {"ext4": {"type": "ext4", "image": "1GiB"}, "other": {"type": "xfs", "image": "1GiB"}}
    sides = make(filesystems=filesystems, baseline="ext4")
    evidence = build(sides, levels={"m-ext4": DISKS, "m-other": other})
    named = replace(evidence, around={trial: Around(names=NAMES) for trial in evidence.around})
    assert [disks in caveat.message for caveat in found("sides-differ", named)] == [True] * bool(disks)


def test_discards_below_a_layer_are_not_those_of_its_file_system() -> None:
    evidence = layered(LUKS, {"253:0": (0, 512), "254:0": (0, 512)}, WRITE)
    around = Around(names=NAMES, discarded={"253:0": 0, "254:0": 64 * MIB})
    below = replace(evidence, around=dict.fromkeys(evidence.around, around))
    assert "only below the device that it lies on:" in the_only("discards", below).message
