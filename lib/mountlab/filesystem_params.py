"""One entry of `filesystems` in a sweep file: from what YAML gives to a Filesystem, strictly."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict

from mountlab.errors import ParameterError
from mountlab.filesystems import FAMILIES
from mountlab.model import Filesystem
from mountlab.options import unknown_key
from mountlab.units import parse_bytes

BOX_PATH = re.compile(r"(?!.*/\.\.?(/|\Z))(/[A-Za-z0-9_.+-]+){2,}\Z")
"""A directory of the box that may be named: absolute, of two parts or more, in plain characters, none of them '..'."""
_NOT_FOR_MOUNT = ("journal_dev", "journal_path", "loop", "bind", "rbind", "move", "remount", "offset", "sizelimit",
                  "logdev", "rtdev", "device", "lowerdir", "upperdir", "workdir", "physaddr", "init")  # fmt: skip
_PATTERNS = {
    "overwrite": (r"[0-9A-Za-z:_-]{4,64}", "the id of what is on the device now, as `make plan` shows it"),
    "journal_overwrite": (r"[0-9A-Za-z:_-]{4,64}", "the id of what is on the device now, as `make plan` shows it"),
    "zram_algorithm": (r"[a-z0-9-]{2,20}", "an algorithm of the box's kernel, such as lzo-rle or lz4"),
    "pmbd": (r"[A-Za-z0-9;]{1,100}", "a mode of the pmbd module, such as pmbd16;hmo8;hms16;pmapY;ntsY;wbY;"),
}
_SIZES = {"size": "size_bytes", "image": "image_bytes", "zram": "zram_bytes", "journal_image": "journal_image_bytes"}
_AS_THEY_ARE = (
    "path",
    "image_dir",
    "device",
    "overwrite",
    "zram_algorithm",
    "pmbd",
    "journal_device",
    "journal_overwrite",
)


class FilesystemFile(BaseModel):
    """What YAML may hold. Which keys a type understands is told by its family."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    type: str
    size: str | None = None
    path: str | None = None
    image: str | None = None
    image_dir: str | None = None
    direct_io: bool | None = None
    preallocate: bool | None = None
    device: str | None = None
    overwrite: str | None = None
    zram: str | None = None
    zram_algorithm: str | None = None
    pmbd: str | None = None
    journal_image: str | None = None
    journal_device: str | None = None
    journal_overwrite: str | None = None
    over: FilesystemFile | None = None
    mkfs: list[str] | None = None
    options: list[str] | None = None
    tunables: dict[str, str | int] | None = None


def read_filesystem(name: str, entry: FilesystemFile, where: str) -> Filesystem:
    """The file system of one entry. Raises ParameterError for the first thing that is wrong."""
    if entry.type not in FAMILIES:
        raise unknown_key(entry.type, FAMILIES, where=f"{where}.type", what="file system type")
    family = FAMILIES[entry.type]
    for key in entry.model_fields_set - {"type"} - family.keys:
        raise unknown_key(key, sorted({"type", *family.keys}), where=f"{where}.{key}", what=f"key for {entry.type}")
    _check_text(entry, where)
    given: dict[str, Any] = {key: getattr(entry, key) for key in _AS_THEY_ARE}
    sizes: dict[str, Any] = {field: _size(getattr(entry, key), f"{where}.{key}") for key, field in _SIZES.items()}
    fs = Filesystem(
        name=name, type=entry.type, **given, **sizes,
        direct_io=entry.direct_io is not False, preallocate=entry.preallocate is not False,
        over=read_filesystem(name, entry.over, f"{where}.over") if entry.over else None,
        mkfs=_mkfs_words(entry.mkfs or [], f"{where}.mkfs"),
        options=_mount_options(entry.options or [], f"{where}.options"),
        tunables=_tunables(entry.tunables or {}, f"{where}.tunables"),
    )  # fmt: skip
    family.check(fs, where=where)
    return fs


def _size(text: str | None, where: str) -> int | None:
    return None if text is None else parse_bytes(text, where=where)


def _check_text(entry: FilesystemFile, where: str) -> None:
    for key in ("path", "image_dir"):
        path = getattr(entry, key)
        if path is not None and not BOX_PATH.match(path) and path not in ("/tmp",):
            raise ParameterError(
                "not a directory that can be measured",
                where=f"{where}.{key}",
                got=repr(path),
                allowed="an absolute path of two parts or more, in plain characters",
            )
    for key, (pattern, allowed) in _PATTERNS.items():
        text = getattr(entry, key)
        if text is not None and not re.fullmatch(pattern, text):
            raise ParameterError(f"not a value for {key}", where=f"{where}.{key}", got=repr(text), allowed=allowed)


def _mkfs_words(words: list[str], where: str) -> tuple[str, ...]:
    for word in words:
        if not re.fullmatch(r"[A-Za-z0-9_.,:=^+/-]+", word):
            raise ParameterError(
                "not a word for mkfs", where=where, got=repr(word),
                allowed="a list with one word an entry, such as [-O, bigalloc, -b, '4096']",
            )  # fmt: skip
    return tuple(words)


def _mount_options(options: list[str], where: str) -> tuple[str, ...]:
    for option in options:
        if not re.fullmatch(r"[A-Za-z0-9_.:/=+%-]+(,\d[\d-]*)*", option):  # with commas in lists of numbers: bind:0,2
            raise ParameterError(
                "not a mount option",
                where=where,
                got=repr(option),
                allowed="a list with one option an entry, such as [noatime, data=writeback]",
            )
    for option in options:
        if option.partition("=")[0] in _NOT_FOR_MOUNT:
            raise ParameterError(
                "a mount option that reaches beyond the file system under test",
                where=where,
                got=repr(option),
                allowed=f"any but {', '.join(_NOT_FOR_MOUNT)}",
            )
    return tuple(options)


def _tunables(values: Mapping[str, Any], where: str) -> dict[str, str]:
    for name, value in values.items():
        if isinstance(value, bool) or not re.fullmatch(r"[A-Za-z0-9_. -]{1,60}", str(value)):
            raise ParameterError(
                "not a value for a tunable", where=f"{where}.{name}", got=repr(value),
                allowed="a number, or a word in plain characters",
            )  # fmt: skip
    return {name: str(value) for name, value in values.items()}
