"""lvm: a logical volume on one or several devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from mountlab.core.errors import ParameterError
from mountlab.core.model import Program, everywhere
from mountlab.core.options import Option
from mountlab.core.stack_layer import StackLayer
from mountlab.core.units import GIB, KIB, MIB
from mountlab.filesystems.guard import uuid_for
from mountlab.filesystems.layers.base import (
    Blank,
    LayerKind,
    LayerReport,
    judged,
    name_of,
    need_devices,
    power_of_two,
    words_that_hold,
)  # fmt: skip
from mountlab.filesystems.superblock import Judgement

_LEAST = {
    "linear": 1, "striped": 2, "raid1": 2, "raid5": 3, "raid6": 5, "raid10": 4, "thin": 1, "snapshot": 1, "cache": 2,
    "writecache": 2,
}  # fmt: skip
"""Kind to the fewest devices that lvcreate takes for it (lvmraid(7)); a cache is a device of its own, the last."""
_MODULES = {"thin": "dm-thin-pool", "cache": "dm-cache", "writecache": "dm-writecache", "snapshot": "dm-snapshot"}
_CACHES = ("cache", "writecache")
_PARITY = {"raid5": 1, "raid6": 2}
_STRIPED = ("striped", "raid5", "raid6", "raid10")
_RAID = ("raid1", "raid5", "raid6", "raid10")
_MODES = {"J": "journal", "B": "bitmap"}
"""Mode of dm-integrity in the kernel's table to LVM's word for it."""
_OVERHEAD = 16 * MIB
"""Of each device, at most: the metadata of the group, that of the copies, and what is no whole extent of 4 MiB."""
EXTENT = 4 * MIB
"""What LVM gives to a volume at once."""
_POOL = 0.89
"""Of a group, what 90 % of it offers at least: to a pool, whose own metadata is a thousandth and less, and to copies
with checksums, which take 4 MiB and as much again for each 500 MB (lvmraid(7))."""
_LEAST_WITH_CHECKSUMS = 160 * MIB
"""Of each device, so that the tenth which is left has room for the checksums and for whole extents."""
_SHARE = 0.47
"""Of a group, what a volume of 48 % of it offers at least, whose copies have the rest."""
_CHUNKS = {"thin": (64 * KIB, GIB), "cache": (32 * KIB, GIB), "snapshot": (4 * KIB, 512 * KIB)}
"""Kind to the smallest and the largest `chunk`."""


class Lvm(LayerKind):
    """A logical volume that takes a whole volume group, made of all devices below it. A thin volume is as large as its
    pool or smaller: the pool cannot overflow. Of `cache` and `writecache` the last device is the fast one. Of
    `snapshot` a snapshot stands beside the volume, and has room for a copy of all of it: what is overwritten for the
    first time is copied there."""

    kind = "lvm"
    required = "kind"
    programs = (Program(name="lvm", packages=everywhere("lvm2"), version=("lvm", "version"), version_word="LVM"),)
    options: ClassVar[Mapping[str, Option]] = {
        "kind": Option(kind="choice", choices=tuple(_LEAST), help="How data is laid out over the devices."),
        "stripe": Option(kind="size", help="What goes to one device before the next. Without it LVM's own choice."),
        "chunk": Option(kind="size", help="What the pool of thin gives to a volume at once, what cache keeps at once, "
                        "or what snapshot copies at once. Without it LVM's own choice."),
        "volume": Option(kind="size", help="Of thin: the size of the volume, in whole 4 MiB. The rest of the pool is "
                         "for snapshots of it. Without it the volume is as large as its pool."),
        "mode": Option(kind="choice", choices=("writethrough", "writeback"),
                       help="Of cache: whether a write ends on the slow devices too, or on the fast one alone. Without "
                       "it LVM's own choice."),
        "block_size": Option(kind="size", help="Of writecache: what it keeps at once, `512B` or `4KiB`. Without it "
                             "LVM's own choice."),
        "integrity": Option(kind="choice", choices=("journal",),
                            help="Of copies and parity: dm-integrity keeps a checksum of each block on each part, and "
                            "this keeps it right after a crash. What does not match is repaired from the others."),
    }  # fmt: skip

    goes_with: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "stripe": _STRIPED, "chunk": tuple(_CHUNKS), "mode": ("cache",), "block_size": ("writecache",),
        "integrity": _RAID, "volume": ("thin",),
    }  # fmt: skip

    def modules(self, layer: StackLayer) -> tuple[str, ...]:
        kind = str(layer.options["kind"])
        module = "dm-raid" if kind in _RAID else _MODULES.get(kind)
        return ("dm-mod", *((module,) if module else ()), *(("dm-integrity",) if "integrity" in layer.options else ()))

    def state_commands(self, layer: StackLayer, uuid: str) -> tuple[tuple[str, ...], ...]:
        if layer.options["kind"] not in _RAID:
            return ()
        volume = f"{name_of(uuid)}/data"
        return ("echo", "lvm", volume), ("dmsetup", "status", volume.replace("-", "--").replace("/", "-"))

    def check(self, layer: StackLayer, below: int, *, where: str) -> None:
        kind = str(layer.options["kind"])
        need_devices(layer, below, _LEAST[kind], where=where)
        power_of_two(layer, "stripe", 4 * KIB, 4 * MIB, where=where)
        if "chunk" in layer.options:
            power_of_two(layer, "chunk", *_CHUNKS[kind], where=where)
        if layer.options.get("block_size", 512) not in (512, 4 * KIB):
            raise ParameterError(
                "not a value for block_size",
                where=f"{where}.block_size",
                got=layer.labels["block_size"],
                allowed="512B or 4KiB",
            )
        volume = int(layer.options.get("volume", EXTENT))
        if volume % EXTENT or not volume:
            raise ParameterError(
                "not a value for volume", where=f"{where}.volume", got=layer.labels["volume"], allowed="whole 4 MiB"
            )
        if kind == "raid10" and below % 2:
            raise ParameterError(
                "raid10 of lvm needs an even number of devices", where=where, got=str(below), allowed="4, 6, 8, ..."
            )

    def words(self, layer: StackLayer, below: tuple[str, ...], uuid: str, blank: Blank) -> tuple[str, ...]:
        """Two-word options go as one, with `=`. The UUID of each physical volume is a word, as the guard reads them."""
        options, kind = layer.options, str(layer.options["kind"])
        volumes = ",".join(uuid_for("", uuid, str(at)) for at in range(len(below)))
        stripes = {"striped": len(below), "raid10": len(below) // 2}.get(kind, len(below) - _PARITY.get(kind, 0))
        words = {
            f"--type={'thin-pool' if kind == 'thin' else kind}": True,
            f"--stripes={stripes}": kind in _STRIPED,
            f"--stripesize={int(options.get('stripe', 0)) // KIB}k": "stripe" in options,
            f"--mirrors={len(below) - 1 if kind == 'raid1' else 1}": kind in ("raid1", "raid10"),
            "--nosync": blank.zeros and kind in ("raid1", "raid5", "raid10"),
            f"--chunksize={int(options.get('chunk', 0)) // KIB}k": "chunk" in options,
            f"--cachemode={options.get('mode')}": "mode" in options,
            f"--cachesettings=block_size={options.get('block_size')}": "block_size" in options,
            "--raidintegrity=y": "integrity" in options,
            f"--raidintegritymode={options.get('integrity')}": "integrity" in options,
        }
        size = (f"volume={layer.options['volume']}",) if "volume" in layer.options else ()
        return (f"volumes={volumes}", *size, *words_that_hold(words), "--", *below)

    def holds(self, layer: StackLayer, size: int, below: int) -> int:
        kind, each = str(layer.options["kind"]), max(0, size - _OVERHEAD)
        if "integrity" in layer.options:
            each = int(each * _POOL) if each >= _LEAST_WITH_CHECKSUMS else 0
        if kind in ("raid1", "raid10"):
            return each if kind == "raid1" else each * below // 2
        chunk = int(layer.options.get("chunk", 1))
        if kind in _CACHES:
            return each * (below - 1) if chunk <= each else 0
        if kind == "thin":
            pool = int(each * below * _POOL) // chunk * chunk
            volume = int(layer.options.get("volume", pool))
            return volume if volume <= pool else 0
        return int(each * (below - _PARITY.get(kind, 0)) * (_SHARE if kind == "snapshot" else 1))

    def judge(self, layer: StackLayer, report: LayerReport) -> Iterator[tuple[str, Judgement]]:
        rows = [line.strip().split("|") for line in report.get("lvs", "").splitlines()]
        volumes = {row[0].strip("[]"): row[1:] for row in rows if len(row) > 4}
        empty = [""] * 5
        data, holds_chunk = volumes.get("data", empty), {"thin": "pool", "snapshot": "kept"}
        target, modes = _target(report.get("table", "")), _integrity_modes(report.get("table", ""))
        for name, value in layer.options.items():
            shown, source = {
                "kind": (data[0], "lvs segtype"),
                "stripe": (data[2], "lvs stripe_size"),
                "chunk": (volumes.get(holds_chunk.get(str(layer.options["kind"]), "data"), empty)[3], "lvs chunk_size"),
                "volume": (data[4], "lvs lv_size"),
                "mode": (next((word for word in target if word in ("writethrough", "writeback")), ""), "the table"),
                "block_size": ((target[4:] or [""])[0], "the table"),
                "integrity": (", ".join(modes), "the table"),
            }[name]
            if name == "kind" and target[:1] == ["snapshot-origin"]:
                shown, source = "snapshot", "the table"
            yield f"lvm: {name}={layer.labels[name]}", judged(value, shown, source)


def _target(table: str) -> list[str]:
    """Return the kernel's target of the volume with its arguments, from `dmsetup table`."""
    lines = (line.partition(": ") for line in table.splitlines())
    return next((words.split()[2:] for name, _, words in lines if name.endswith("-data")), [])


def _integrity_modes(table: str) -> list[str]:
    """Return in which modes dm-integrity keeps checksums below the volume, from `dmsetup table`."""
    rows = (line.partition(": ")[2].split() for line in table.splitlines())
    return sorted({_MODES.get(row[6], row[6]) for row in rows if len(row) > 6 and row[2] == "integrity"})
