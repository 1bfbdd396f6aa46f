"""Properties of pools and datasets of ZFS that a sweep may set, with their values (zpoolprops(7), zfsprops(7), 2.3)."""

from __future__ import annotations

import re
from dataclasses import dataclass

from mountlab.core.errors import ParameterError, did_you_mean
from mountlab.core.units import KIB, MIB, kernel_bytes

_SHA = ("sha256", "sha512", "skein", "blake3")
_CHECKSUMS = ("on", "off", "fletcher2", "fletcher4", "noparity", "edonr", *_SHA)
_ON_OFF = ("on", "off")
_CACHED = ("all", "none", "metadata")
_GZIP = re.compile(r"gzip-[1-9]|zstd-([1-9]|1[0-9])|zstd-fast-([1-9]|10|[2-9]0|100|500|1000)")
_COMPRESSION = ("on", "off", "lz4", "lzjb", "zle", "gzip", "zstd", "zstd-fast")


@dataclass(frozen=True)
class Sizes:
    """Powers of two in bytes, and 0 where that is a value."""

    least: int
    most: int
    or_zero: bool = False

    def takes(self, text: str) -> bool:
        size = kernel_bytes(text.lower())
        if size is None:
            return False
        return (size == 0 and self.or_zero) or (self.least <= size <= self.most and not size & (size - 1))

    def __str__(self) -> str:
        return f"{'0, or ' if self.or_zero else ''}a power of two from {_short(self.least)} to {_short(self.most)}"


def _short(size: int) -> str:
    return f"{size // MIB}M" if size >= MIB else f"{size // KIB}K" if size >= KIB else str(size)


PropertyValues = tuple[str, ...] | Sizes | range

DATASET: dict[str, PropertyValues] = {
    "recordsize": Sizes(512, 16 * MIB),
    "compression": _COMPRESSION,
    "checksum": _CHECKSUMS,
    "encryption": ("off", "on", *(f"aes-{bits}-{mode}" for mode in ("ccm", "gcm") for bits in (128, 192, 256))),
    "dedup": ("on", "off", "verify", *_SHA),
    "sync": ("standard", "always", "disabled"),
    "logbias": ("latency", "throughput"),
    "atime": _ON_OFF,
    "relatime": _ON_OFF,
    "xattr": ("on", "off", "sa", "dir"),
    "acltype": ("off", "noacl", "posix", "posixacl", "nfsv4"),
    "aclinherit": ("discard", "noallow", "restricted", "passthrough", "passthrough-x"),
    "aclmode": ("discard", "groupmask", "passthrough", "restricted"),
    "primarycache": _CACHED,
    "secondarycache": _CACHED,
    "prefetch": _CACHED,
    "direct": ("disabled", "standard", "always"),
    "redundant_metadata": ("all", "most", "some", "none"),
    "copies": ("1", "2", "3"),
    "dnodesize": ("legacy", "auto", "1k", "2k", "4k", "8k", "16k"),
    "special_small_blocks": Sizes(512, 16 * MIB, or_zero=True),
    "snapdir": ("hidden", "visible"),
    "casesensitivity": ("sensitive", "insensitive", "mixed"),
    "normalization": ("none", "formC", "formD", "formKC", "formKD"),
    "utf8only": _ON_OFF,
    "exec": _ON_OFF,
    "setuid": _ON_OFF,
    "devices": _ON_OFF,
    "nbmand": _ON_OFF,
    "overlay": _ON_OFF,
}
"""Of a dataset. Not those that say where it is mounted or how much it may hold, which Mountlab decides or counts on."""
POOL: dict[str, PropertyValues] = {
    "ashift": range(9, 17),
    "autotrim": _ON_OFF,
    "failmode": ("wait", "continue", "panic"),
    "autoexpand": _ON_OFF,
    "autoreplace": _ON_OFF,
    "delegation": _ON_OFF,
    "listsnapshots": _ON_OFF,
}
OURS = ("altroot", "bootfs", "cachefile", "comment", "mountpoint", "canmount", "multihost", "readonly", "name", "guid")
"""Properties that Mountlab sets, or needs as they are."""
_FEATURE = re.compile(r"feature@[a-z0-9_]+")
_WORDS = {
    "dir": "on", "gzip-6": "gzip", "posixacl": "posix", "noacl": "off", "zstd-fast-1": "zstd-fast",
}  # fmt: skip
"""A value to how ZFS shows it."""
_SINCE = (("xattr", "on", "sa"), ("dedup", "verify", "sha256,verify"),
          ("encryption", "on", "aes-256-gcm"))  # fmt: skip
"""PropertyValues that newer versions, or all of them, show by another word."""


def values_of(name: str, pool: bool) -> PropertyValues | None:
    """Return the values of a property; None where a sweep cannot set it."""
    if pool and _FEATURE.fullmatch(name):
        return ("enabled", "disabled")
    return (POOL if pool else DATASET).get(name)


def check_property(word: str, *, pool: bool, where: str) -> None:
    """Raise ParameterError for a word that is no property with a value that it takes."""
    name, equals, value = word.partition("=")
    kind = "pool" if pool else "dataset"
    known = POOL if pool else DATASET
    values = values_of(name, pool)
    if values is None:
        other = name in (DATASET if pool else POOL)
        hint = f"it is a property of the {'dataset: give it in options' if pool else 'pool: mkfs: [-o, NAME=VALUE]'}"
        raise ParameterError(
            f"not a property of a {kind} that a sweep sets" if name not in OURS else f"Mountlab sets {name} itself",
            where=where,
            got=word,
            allowed=", ".join(known) + (", feature@NAME" if pool else ""),
            next_step=hint if other else did_you_mean(name, known) or "take it out",
        )
    if not equals or not _takes(values, name, value):
        raise ParameterError(f"not a value for {name}", where=where, got=word, allowed=_allowed(name, values))


def _takes(values: PropertyValues, name: str, value: str) -> bool:
    if isinstance(values, Sizes):
        return values.takes(value)
    if isinstance(values, range):
        return value.isdecimal() and int(value) in values
    return value in values or (name == "compression" and _GZIP.fullmatch(value) is not None)


def _allowed(name: str, values: PropertyValues) -> str:
    if isinstance(values, Sizes):
        return f"{name}= {values}"
    if isinstance(values, range):
        return f"{name}= {values[0]} to {values[-1]}"
    more = ", gzip-1 to gzip-9, zstd-1 to zstd-19, zstd-fast-N" if name == "compression" else ""
    return f"{name}= {', '.join(values)}{more}"


def same_value(name: str, asked: str, shown: str) -> bool:
    """Return whether `zfs get -p` or `zpool get -p` shows the value that was asked for."""
    if name.startswith("feature@"):
        return shown in (("enabled", "active") if asked == "enabled" else ("disabled",))
    ours, theirs = (_WORDS.get(word, word) for word in (asked, shown))
    if ours == theirs or (name, ours, theirs) in _SINCE:
        return True
    size = kernel_bytes(ours.lower())
    return size is not None and size == kernel_bytes(theirs.lower())
