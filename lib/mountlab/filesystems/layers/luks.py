"""luks: encryption of one device, by dm-crypt."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import ClassVar

from mountlab.core.errors import ParameterError
from mountlab.core.model import Program, everywhere
from mountlab.core.options import Option
from mountlab.core.stack_layer import StackLayer
from mountlab.core.units import KIB, MIB
from mountlab.filesystems.layers.base import Blank, LayerKind, LayerReport, judged, need_devices, power_of_two
from mountlab.filesystems.superblock import Judgement

_CIPHER = re.compile(r"[a-z0-9,]+(-[a-z0-9:]+){1,3}")
_STATUS = re.compile(r"^ +([\w ]+): +(.*?)(?: bits| \[(?:bits|bytes)\])?$", re.MULTILINE)
"""A line of `cryptsetup status`; since 2.8 units are in brackets."""
_HEADER = 16 * MIB
"""What LUKS2 keeps for itself at the beginning (cryptsetup-luksFormat(8), --offset)."""
_FLAGS = {
    "no_read_workqueue": ("--perf-no_read_workqueue", "no_read_workqueue"),
    "no_write_workqueue": ("--perf-no_write_workqueue", "no_write_workqueue"),
    "discards": ("--allow-discards", "allow_discards"),
}
"""Option to the word by which cryptsetup opens with it, and the kernel's word for it."""


class Luks(LayerKind):
    """An encrypted device, format LUKS2. Its key is made for one mount and protects nothing: it is derived at once,
    which changes nothing of how reads and writes are done."""

    kind = "luks"
    programs = (
        Program(name="cryptsetup", packages=everywhere("cryptsetup", apt="cryptsetup-bin"),
                version=("cryptsetup", "--version")),
        Program(name="dmsetup", packages={"apt": "dmsetup", "dnf": "device-mapper", "zypper": "device-mapper",
                "pacman": "device-mapper"}, version=("dmsetup", "--version")),
    )  # fmt: skip
    options: ClassVar[Mapping[str, Option]] = {
        "cipher": Option(kind="text", help="Such as aes-xts-plain64. Without it cryptsetup's own choice."),
        "key_size": Option(kind="int", help="In bits; aes-xts splits it into two keys: 256 is AES-128."),
        "sector_size": Option(kind="size", help="What is encrypted at once, `512B` to `4KiB`. Without it "
                              "cryptsetup's own choice for the device."),
        "no_read_workqueue": Option(kind="flag", help="Whether reads are decrypted at once, and by no thread."),
        "no_write_workqueue": Option(kind="flag", help="Whether writes are encrypted at once, and by no thread."),
        "discards": Option(kind="flag", help="Whether discards go through to the device below."),
    }  # fmt: skip

    def modules(self, layer: StackLayer) -> tuple[str, ...]:
        return ("dm-crypt",)

    def check(self, layer: StackLayer, below: int, *, where: str) -> None:
        need_devices(layer, below, 1, where=where, most=1)
        power_of_two(layer, "sector_size", 512, 4 * KIB, where=where)
        cipher, bits = layer.options.get("cipher"), layer.options.get("key_size")
        if cipher is not None and not _CIPHER.fullmatch(str(cipher)):
            raise ParameterError(
                "not a cipher", where=f"{where}.cipher", got=repr(cipher), allowed="such as aes-xts-plain64"
            )
        least = 256 if "xts" in str(cipher or "xts") else 128
        if bits is not None and (int(bits) % 64 or not least <= int(bits) <= 512):
            raise ParameterError(
                "not a size of a key",
                where=f"{where}.key_size",
                got=str(bits),
                allowed="bits, such as 256 or 512; xts, which is cryptsetup's own choice, splits it into two keys",
            )

    def words(self, layer: StackLayer, below: tuple[str, ...], uuid: str, blank: Blank) -> tuple[str, ...]:
        options = layer.options
        given = {"cipher": "--cipher", "key_size": "--key-size", "sector_size": "--sector-size"}
        values = (f"{word}={options[name]}" for name, word in given.items() if name in options)
        flags = (word for name, (word, _) in _FLAGS.items() if options.get(name))
        return (*values, *flags, "--", *below)

    def holds(self, layer: StackLayer, size: int, below: int) -> int:
        return max(0, size - _HEADER)

    def judge(self, layer: StackLayer, report: LayerReport) -> Iterator[tuple[str, Judgement]]:
        status = dict(_STATUS.findall(report.get("status", "")))
        table = report.get("table", "").split()
        for name, value in layer.options.items():
            option = f"luks: {name}={layer.labels[name]}"
            if name in _FLAGS:
                word = _FLAGS[name][1]
                shown = word in table
                yield (
                    option,
                    (
                        "in effect" if shown == bool(value) else "changed",
                        f"the table has {'' if shown else 'no '}{word}",
                    ),
                )
            else:
                key = {"key_size": "keysize", "sector_size": "sector size"}.get(name, name)
                yield option, judged(value, status.get(key, ""), f"cryptsetup status: {key}")
