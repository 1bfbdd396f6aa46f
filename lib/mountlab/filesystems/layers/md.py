"""md: the arrays of Linux's own software RAID."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from mountlab.core.errors import ParameterError
from mountlab.core.model import Program, everywhere
from mountlab.core.options import Option
from mountlab.core.stack_layer import StackLayer
from mountlab.core.units import KIB, MIB
from mountlab.filesystems.layers.base import (
    Blank,
    LayerKind,
    LayerReport,
    judged,
    need_devices,
    power_of_two,
    words_that_hold,
)  # fmt: skip
from mountlab.filesystems.superblock import NOTHING, Judgement

_LEAST = {"linear": 2, "raid0": 2, "raid1": 2, "raid4": 3, "raid5": 3, "raid6": 4, "raid10": 2}
"""Level to the fewest devices that it makes sense on (md(4); raid6 of three has no data device less than mirrors)."""
_MODULES = {"raid4": "raid456", "raid5": "raid456", "raid6": "raid456"}
_REDUNDANT = ("raid1", "raid4", "raid5", "raid6", "raid10")
_PARITY = {"raid4": 1, "raid5": 1, "raid6": 2}
_CHUNKED = ("raid0", "raid4", "raid5", "raid6", "raid10")
_LAYOUTS = {f"{kind}{copies}": (kind, copies) for kind in "nfo" for copies in (2, 3)}
_OVERHEAD = 8 * MIB
"""Of each device, for the super block and the bitmap, at most."""
_ROOM = 128 * MIB
"""Of each device, for a later change of its shape, at most: less than a thousandth of it, but two chunks at least."""


class Md(LayerKind):
    """An array of several devices: copies (raid1, raid10), parity (raid4, raid5, raid6), or neither (raid0, linear)."""

    kind = "md"
    required = "level"
    programs = (Program(name="mdadm", packages=everywhere("mdadm"), version=("mdadm", "--version")),)
    options: ClassVar[Mapping[str, Option]] = {
        "level": Option(kind="choice", choices=tuple(_LEAST), help="How data is laid out over the devices."),
        "chunk": Option(kind="size", help="What goes to one device before the next. Without it mdadm's own choice."),
        "layout": Option(kind="choice", choices=tuple(_LAYOUTS),
                         help="Of raid10: near, far or offset copies, and how many."),
        "bitmap": Option(kind="choice", choices=("internal", "none"),
                         help="Whether the array notes which parts are being written, so that a crash costs no "
                         "full synchronisation. Without it mdadm's own choice."),
        "write_mostly": Option(kind="int", help="Of raid1: so many of the devices, the last, are read from only when "
                               "the others cannot answer."),
        "journal": Option(kind="flag", help="Of raid4, raid5 and raid6: the last device takes every write first."),
    }  # fmt: skip

    goes_with: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "chunk": _CHUNKED, "layout": ("raid10",), "bitmap": _REDUNDANT, "write_mostly": ("raid1",),
        "journal": tuple(_PARITY),
    }  # fmt: skip

    def modules(self, layer: StackLayer) -> tuple[str, ...]:
        level = str(layer.options["level"])
        return (_MODULES.get(level, level),)

    def check(self, layer: StackLayer, below: int, *, where: str) -> None:
        level = str(layer.options["level"])
        journal = int(layer.options.get("journal", 0))
        need_devices(layer, below, _LEAST[level] + journal, where=where)
        power_of_two(layer, "chunk", 4 * KIB, 64 * MIB, where=where)
        copies = _copies(layer)
        if level == "raid10":
            need_devices(layer, below, copies, where=where)
        mostly = layer.options.get("write_mostly")
        if mostly is not None and not 0 < int(mostly) < below:
            raise ParameterError(
                "one device at least must be read from, and one less often",
                where=f"{where}.write_mostly",
                got=str(mostly),
                allowed="1" if below == 2 else f"1 to {below - 1}",
            )
        if journal and layer.options.get("bitmap") == "internal":
            raise ParameterError(
                "an array has a journal or a bitmap",
                where=f"{where}.bitmap",
                got="bitmap: internal with journal: true",
                allowed="one of them",
            )

    def words(self, layer: StackLayer, below: tuple[str, ...], uuid: str, blank: Blank) -> tuple[str, ...]:
        options, level = layer.options, str(layer.options["level"])
        count = len(below) - int(options.get("journal", 0))
        known = blank.zeros and level in _REDUNDANT
        words = {
            f"--level={level}": True,
            f"--raid-devices={count}": True,
            f"--chunk={int(options.get('chunk', 0)) // KIB}": "chunk" in options,
            f"--layout={options.get('layout')}": "layout" in options,
            f"--bitmap={options.get('bitmap')}": "bitmap" in options,
            "--assume-clean": known,
            f"--write-journal={below[-1]}": count < len(below),
        }
        members = list(below[:count])
        if mostly := int(options.get("write_mostly", 0)):
            members.insert(count - mostly, "--write-mostly")
        return (*words_that_hold(words), "--", *members)

    def holds(self, layer: StackLayer, size: int, below: int) -> int:
        level, chunk = str(layer.options["level"]), int(layer.options.get("chunk", 4 * KIB))
        each = max(0, size - _OVERHEAD - max(min(_ROOM, size // 1000), 2 * chunk)) // chunk * chunk
        count = below - int(layer.options.get("journal", 0))
        if level == "raid1":
            return each
        if level == "raid10":
            return each * count // _copies(layer)
        return each * (count - _PARITY.get(level, 0))

    def judge(self, layer: StackLayer, report: LayerReport) -> Iterator[tuple[str, Judgement]]:
        values = {path.rpartition("/md/")[2]: text.strip() for path, text in report.items() if "/md/" in path}
        states = [set(text.split(",")) for path, text in values.items() if path.endswith("/state")]
        for name, value in layer.options.items():
            option = f"md: {name}={layer.labels[name]}"
            if name == "level":
                yield option, judged(value, values.get("level", ""), "md/level")
            elif name == "chunk":
                yield option, judged(value, values.get("chunk_size", ""), "md/chunk_size")
            elif name == "layout":
                yield option, judged(_layout_number(str(value)), values.get("layout", ""), "md/layout")
            elif name == "bitmap":
                shown = values.get("bitmap/location", "")
                kept = "none" if shown == "none" else "internal"
                yield option, (judged(value, kept, "md/bitmap/location") if shown else NOTHING)
            else:
                flag, wanted = ("write_mostly", int(value)) if name == "write_mostly" else ("journal", int(value))
                found = sum(flag in words for words in states)
                yield option, ("in effect" if found == wanted else "changed", f"{found} devices are {flag}")


def _copies(layer: StackLayer) -> int:
    """Return how many copies raid10 keeps: two, where the sweep does not say."""
    return _LAYOUTS[str(layer.options.get("layout", "n2"))][1]


def _layout_number(name: str) -> int:
    """Return how the kernel writes a layout of raid10 (drivers/md/raid10.c): near copies, far copies, offset."""
    kind, copies = _LAYOUTS[name]
    return {"n": copies | 1 << 8, "f": 1 | copies << 8, "o": 1 | copies << 8 | 1 << 16}[kind]
