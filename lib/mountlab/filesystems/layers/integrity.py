"""integrity: checksums of what is on one device, by dm-integrity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from mountlab.core.model import Program, everywhere
from mountlab.core.options import Option
from mountlab.core.stack_layer import StackLayer
from mountlab.core.units import KIB, MIB
from mountlab.filesystems.layers.base import (
    DMSETUP,
    Blank,
    LayerKind,
    LayerReport,
    judged,
    judged_flag,
    need_devices,
    power_of_two,
    words_that_hold,
)  # fmt: skip
from mountlab.filesystems.superblock import NOTHING, Judgement

_TAGS = {"crc32c": 4, "crc32": 4, "xxhash64": 8, "sha1": 20, "sha256": 32}
"""Algorithm to the bytes of its checksum. Those with a key protect from somebody who changes it; they cost as much."""
_MODES = {"journal": "J", "bitmap": "B", "none": "D"}
"""Mode to the letter of the mapping's table (kernel: admin-guide/device-mapper/dm-integrity)."""
_MOST_JOURNAL, _LEAST_JOURNAL = 64 * MIB, 128
"""The journal that integritysetup makes: at most these bytes, or one part in so many of the device."""
_REST = 2 * MIB
"""The super block, and what the last run of sectors leaves unused of its checksums, at most."""


def tagged_bytes(size: int, tag: int, sector: int) -> int:
    """Return how many bytes of a device are left beside a checksum of `tag` bytes for each sector, at least."""
    rest = size - min(_MOST_JOURNAL, size // _LEAST_JOURNAL) - _REST
    return max(0, int(rest / (1 + tag / sector))) // (4 * KIB) * (4 * KIB)


class Integrity(LayerKind):
    """A device that keeps a checksum of each sector: what was changed behind its back is an error when it is read.
    It is written once as a whole when it is made."""

    kind = "integrity"
    programs = (
        Program(name="integritysetup", packages=everywhere("cryptsetup", apt="cryptsetup-bin",
                dnf="integritysetup"), version=("integritysetup", "--version")),
        DMSETUP,
    )  # fmt: skip
    options: ClassVar[Mapping[str, Option]] = {
        "algorithm": Option(kind="choice", choices=tuple(_TAGS), help="The checksum. Without it integritysetup's own "
                            "choice."),
        "mode": Option(kind="choice", choices=tuple(_MODES),
                       help="What keeps data and checksum together in a crash: each write goes to a journal first; a "
                       "bitmap of what is being written; or nothing. Without it integritysetup's own choice."),
        "sector_size": Option(kind="size", help="What has a checksum, `512B` to `4KiB`. Without it integritysetup's "
                              "own choice."),
        "discards": Option(kind="flag", help="Whether discards go through to the device below."),
    }  # fmt: skip

    def modules(self, layer: StackLayer) -> tuple[str, ...]:
        return ("dm-integrity",)

    def check(self, layer: StackLayer, below: int, *, where: str) -> None:
        need_devices(layer, below, 1, where=where, most=1)
        power_of_two(layer, "sector_size", 512, 4 * KIB, where=where)

    def words(self, layer: StackLayer, below: tuple[str, ...], uuid: str, blank: Blank) -> tuple[str, ...]:
        options = layer.options
        words = {
            f"--integrity={options.get('algorithm')}": "algorithm" in options,
            f"--sector-size={options.get('sector_size')}": "sector_size" in options,
            "--integrity-no-journal": options.get("mode") == "none",
            "--integrity-bitmap-mode": options.get("mode") == "bitmap",
            "--allow-discards": bool(options.get("discards")),
        }
        return (*words_that_hold(words), "--", *below)

    def holds(self, layer: StackLayer, size: int, below: int) -> int:
        tag = _TAGS[str(layer.options.get("algorithm", "crc32c"))]
        return tagged_bytes(size, tag, int(layer.options.get("sector_size", 512)))

    def judge(self, layer: StackLayer, report: LayerReport) -> Iterator[tuple[str, Judgement]]:
        table = report.get("table", "").split()
        features = {name: value for name, _, value in (word.partition(":") for word in table)}
        mode = next((name for name, letter in _MODES.items() if table[6:7] == [letter]), "")
        for name, value in layer.options.items():
            option = f"integrity: {name}={layer.labels[name]}"
            if not table:
                yield option, NOTHING
            elif name == "discards":
                yield option, judged_flag(value, "allow_discards" in table, "allow_discards")
            else:
                shown = {
                    "algorithm": features.get("internal_hash", "").partition(":")[0],
                    "mode": mode,
                    "sector_size": features.get("block_size", "512"),
                }
                yield option, judged(value, shown[name], f"the table: {name}")
