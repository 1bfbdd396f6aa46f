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
from mountlab.filesystems.layers.integrity import tagged_bytes
from mountlab.filesystems.superblock import Judgement

_CIPHER = re.compile(r"(?P<name>[a-z0-9_,]+)-(?P<mode>xts|cbc|ctr|lrw|adiantum|ecb)(?:-(?P<iv>\w+(?::\w+)?))?")
_IVS = ("plain", "plain64", "plain64be", "benbi", "null", "eboiv", "essiv:sha256")
"""Those that need neither checksums nor a key of their own (kernel: admin-guide/device-mapper/dm-crypt)."""
_KEY_SIZES = {"xts": (256, 384, 512), "lrw": (256, 320, 384), "adiantum": (256,)}
"""Mode to the sizes of its keys in bits; those of other modes are 128, 192 and 256. xts has two keys in one."""
_TAGS = {"hmac-sha256": 32, "hmac-sha512": 64}
"""What `integrity` takes, and the bytes for each sector."""
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
        DMSETUP,
    )  # fmt: skip
    options: ClassVar[Mapping[str, Option]] = {
        "cipher": Option(kind="text", help="Such as aes-xts-plain64. Without it cryptsetup's own choice."),
        "key_size": Option(kind="int", help="In bits; aes-xts splits it into two keys: 256 is AES-128."),
        "sector_size": Option(kind="size", help="What is encrypted at once, `512B` to `4KiB`. Without it "
                              "cryptsetup's own choice for the device."),
        "no_read_workqueue": Option(kind="flag", help="Whether reads are decrypted at once, and by no thread."),
        "no_write_workqueue": Option(kind="flag", help="Whether writes are encrypted at once, and by no thread."),
        "discards": Option(kind="flag", help="Whether discards go through to the device below."),
        "integrity": Option(kind="choice", choices=tuple(_TAGS),
                            help="A keyed checksum of each sector, by dm-integrity below. The device is written once "
                            "as a whole when the layer is made."),
    }  # fmt: skip

    def modules(self, layer: StackLayer) -> tuple[str, ...]:
        return ("dm-crypt", *(("dm-integrity",) if "integrity" in layer.options else ()))

    def check(self, layer: StackLayer, below: int, *, where: str) -> None:
        need_devices(layer, below, 1, where=where, most=1)
        power_of_two(layer, "sector_size", 512, 4 * KIB, where=where)
        mode = _check_cipher(str(layer.options.get("cipher", "aes-xts-plain64")), f"{where}.cipher")
        bits, sizes = layer.options.get("key_size"), _KEY_SIZES.get(mode, (128, 192, 256))
        if bits is not None and int(bits) not in sizes:
            raise ParameterError(
                f"not a size of a key for {mode}",
                where=f"{where}.key_size",
                got=str(bits),
                allowed=f"{', '.join(map(str, sizes))} bits{'; xts splits it into two keys' * (mode == 'xts')}",
                next_step="choose one of these, or leave key_size out",
            )
        if "integrity" in layer.options and layer.options.get("discards"):
            raise ParameterError(
                "cryptsetup passes no discards through where there are checksums",
                where=f"{where}.discards",
                got="discards: true with integrity",
                allowed="one of them",
                next_step="take discards out, or integrity",
            )

    def words(self, layer: StackLayer, below: tuple[str, ...], uuid: str, blank: Blank) -> tuple[str, ...]:
        options = layer.options
        given = {"cipher": "--cipher", "key_size": "--key-size", "sector_size": "--sector-size",
                 "integrity": "--integrity"}  # fmt: skip
        values = (f"{word}={options[name]}" for name, word in given.items() if name in options)
        flags = words_that_hold({word: bool(options.get(name)) for name, (word, _) in _FLAGS.items()})
        return (*values, *flags, "--", *below)

    def holds(self, layer: StackLayer, size: int, below: int) -> int:
        left, tag = max(0, size - _HEADER), _TAGS.get(str(layer.options.get("integrity")))
        return tagged_bytes(left, tag, int(layer.options.get("sector_size", 512))) if tag else left

    def judge(self, layer: StackLayer, report: LayerReport) -> Iterator[tuple[str, Judgement]]:
        status = dict(_STATUS.findall(report.get("status", "")))
        table = report.get("table", "").split()
        for name, value in layer.options.items():
            option = f"luks: {name}={layer.labels[name]}"
            if name in _FLAGS:
                word = _FLAGS[name][1]
                yield option, judged_flag(value, word in table, word)
            elif name == "integrity":
                shown = status.get("integrity", "")
                yield option, judged(value, shown.replace("(", "-").rstrip(")"), "cryptsetup status: integrity")
            else:
                key = {"key_size": "keysize", "sector_size": "sector size"}.get(name, name)
                shown = status.get(key, "")
                if name == "key_size" and (checksums := status.get("integrity keysize")):
                    shown = str(int(shown) - int(checksums))
                yield option, judged(value, shown, f"cryptsetup status: {key}")


def _check_cipher(cipher: str, where: str) -> str:
    """Return the mode of a cipher. Raises ParameterError where it is none, or cryptsetup would make no device of it."""
    match = _CIPHER.fullmatch(cipher)
    if match and (match["iv"] in _IVS or (match["mode"] == "ecb" and not match["iv"])):
        return match["mode"]
    raise ParameterError(
        "not a cipher",
        where=where,
        got=repr(cipher),
        allowed=f"CIPHER-MODE-IV, such as aes-xts-plain64 or aes-cbc-essiv:sha256; IV: {', '.join(_IVS)}",
        next_step="write all three; `cryptsetup benchmark` shows ciphers and modes",
    )
