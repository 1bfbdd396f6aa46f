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
from mountlab.filesystems.layers.base import Blank, LayerKind, LayerReport, judged, need_devices, only_for, power_of_two
from mountlab.filesystems.superblock import Judgement

_LEAST = {"linear": 1, "striped": 2, "raid1": 2, "raid5": 3, "raid6": 5, "raid10": 4, "thin": 1}
"""Kind to the fewest devices that lvcreate takes for it (lvmraid(7))."""
_PARITY = {"raid5": 1, "raid6": 2}
_STRIPED = ("striped", "raid5", "raid6", "raid10")
_OVERHEAD = 16 * MIB
"""Of each device, at most: the metadata of the group, that of the copies, and what is no whole extent of 4 MiB."""

_POOL = 0.89
"""Of a group, what a pool of 90 % of it offers at least: its own metadata is a thousandth and less."""


class Lvm(LayerKind):
    """A logical volume that takes a whole volume group, made of all devices below it. A thin volume is as large as its
    pool, which so cannot overflow."""

    kind = "lvm"
    required = "kind"
    programs = (Program(name="lvm", packages=everywhere("lvm2"), version=("lvm", "version"), version_word="LVM"),)
    options: ClassVar[Mapping[str, Option]] = {
        "kind": Option(kind="choice", choices=tuple(_LEAST), help="How data is laid out over the devices."),
        "stripe": Option(kind="size", help="What goes to one device before the next. Without it LVM's own choice."),
        "chunk": Option(kind="size", help="Of thin: what the pool gives to a volume at once. Without it LVM's own "
                        "choice."),
    }  # fmt: skip

    def modules(self, layer: StackLayer) -> tuple[str, ...]:
        kind = str(layer.options["kind"])
        return ("dm-mod", *(("dm-raid",) if kind.startswith("raid") else ("dm-thin-pool",) if kind == "thin" else ()))

    def check(self, layer: StackLayer, below: int, *, where: str) -> None:
        kind = str(layer.options["kind"])
        need_devices(layer, below, _LEAST[kind], where=where)
        only_for(layer, "stripe", "kind", kind, _STRIPED, where=where)
        only_for(layer, "chunk", "kind", kind, ("thin",), where=where)
        power_of_two(layer, "stripe", 4 * KIB, 4 * MIB, where=where)
        power_of_two(layer, "chunk", 64 * KIB, GIB, where=where)
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
        }
        return (f"volumes={volumes}", *(word for word, holds in words.items() if holds), "--", *below)

    def holds(self, layer: StackLayer, size: int, below: int) -> int:
        kind, each = str(layer.options["kind"]), max(0, size - _OVERHEAD)
        if kind in ("raid1", "raid10"):
            return each if kind == "raid1" else each * below // 2
        return int(each * (below - _PARITY.get(kind, 0)) * (_POOL if kind == "thin" else 1))

    def judge(self, layer: StackLayer, report: LayerReport) -> Iterator[tuple[str, Judgement]]:
        rows = [line.strip().split("|") for line in report.get("lvs", "").splitlines()]
        volumes = {row[0].strip("[]"): row[1:] for row in rows if len(row) > 4}
        data, pool = volumes.get("data", [""] * 5), volumes.get("pool", [""] * 5)
        for name, value in layer.options.items():
            shown = {"kind": data[0], "stripe": data[2], "chunk": pool[3]}[name]
            column = {"kind": "segtype", "stripe": "stripe_size", "chunk": "chunk_size"}[name]
            yield f"lvm: {name}={layer.labels[name]}", judged(value, shown, f"lvs {column}")
