"""One entry of `filesystems` in a sweep file: from what YAML gives to a Filesystem, strictly."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from mountlab.core.errors import ParameterError
from mountlab.core.model import Filesystem
from mountlab.core.options import unknown_key
from mountlab.core.units import SizeText, parse_bytes
from mountlab.filesystems import FAMILIES
from mountlab.sweep.layer_entry import read_stack
from mountlab.sweep.validated import File, check_text
from mountlab.sweep.vdev_entry import read_vdevs

BOX_PATH = re.compile(r"(?!.*/\.\.?(/|\Z))(/[A-Za-z0-9_.+-]+){2,}\Z")
"""A directory that a box file gives to Mountlab: absolute, of two parts or more, in plain characters, none '..'."""
_MEASURED = re.compile(r"(?!.*/\.\.?(/|\Z))(/[A-Za-z0-9_.+-]+)+\Z")
"""A directory of the box that may be measured: the same, also of one part (/srv)."""
_OF_THE_KERNEL = re.compile(r"/(dev(?!/shm(/|\Z))|proc|sys)(/|\Z)")
"""Where no disk's or memory's files lie, but devices and what the kernel tells."""
_NOT_FOR_MOUNT = ("journal_dev", "journal_path", "loop", "bind", "rbind", "move", "remount", "offset", "sizelimit",
                  "logdev", "rtdev", "device", "lowerdir", "upperdir", "workdir", "datadir", "physaddr", "init",
                  "helper", "uhelper", "encryption", "verity", "X-mount", "x-mount")  # fmt: skip
"""Names, up to the first of '=', '.' and '+'. mount(8) itself acts on the last of them: it would look for a helper,
mount a part of the file system, or make the mount point."""
# A comma stands in a list of numbers only (bind:0,2): elsewhere it would begin another option. Blanks stand in the
# names of two memory policies only, and * where f2fs takes it for every file.
_MOUNT_OPTION = re.compile(
    r"([A-Za-z_][A-Za-z0-9_.:/=+%-]*|compress_extension=\*|"
    r"mpol=(weighted interleave|prefer \(many\))(=[a-z]+)?(:[\d:/-]*)?)(,\d[\d:/-]*)*"
)
_PATTERNS = {
    "zram_algorithm": (r"[a-z0-9-]{2,20}", "an algorithm of the box's kernel, such as lzo-rle or lz4"),
    "server": (r"(\d{1,3}\.){3}\d{1,3}|[0-9A-Fa-f:]*:[0-9A-Fa-f:]+", "an address of the box, such as 192.168.7.1"),
    "pmbd": (r"[A-Za-z0-9;]{1,100}", "a mode of the pmbd module, such as pmbd16;hmo8;hms16;pmapY;ntsY;wbY;"),
}
_SIZES = {
    "size": "size_bytes", "image": "image_bytes", "zram": "zram_bytes", "journal_image": "journal_image_bytes",
    "realtime_image": "realtime_image_bytes", "arc": "arc_bytes",
}  # fmt: skip
_AS_THEY_ARE = ("path", "server", "image_dir", "zram_algorithm", "pmbd", "journal_device")


class FilesystemFile(File):
    """The keys that YAML may hold. The family of a type says which of them it understands."""

    type: str
    """Which file system it is."""
    size: SizeText | None = None
    """How much it may hold. tmpfs and hugetlbfs are mounted with it, a plan holds ramfs to it, pmfs is formatted with
    it."""
    path: str | None = None
    """An existing directory of the box to be measured. Without it one below the mount root."""
    server: str | None = None
    """nfs: the address under which clients reach the box; its server listens there, and nowhere else. Without it
    127.0.0.1, for the box alone."""
    image: SizeText | None = None
    """It lies on a loop image of this size, which Mountlab makes and removes."""
    members: int | None = None
    """On so many images of that size: of a file system that takes several devices, or with a `stack` that makes one of
    them."""
    image_dir: str | None = None
    """An existing directory in which the image is made. Without it the mount root: it says which disk is measured."""
    direct_io: bool | None = None
    """Whether the loop device bypasses the page cache of the file system that holds the image. `true` where it is not
    given."""
    preallocate: bool | None = None
    """Whether the image has all its blocks beforehand, or is sparse. `true` where it is not given."""
    device: str | list[str] | None = None
    """It lies on this scratch device of the box file, which `box claim` has given to Mountlab, or on a list of them."""
    stack: list[dict[str, Any]] | None = None
    """Layers between its devices and itself, from the devices upwards: `[{layer: md, level: raid1}, {layer: luks}]`.
    `md` and `lvm` make one device of several ([how-to](../how-to/layers.md))."""
    vdevs: list[Any] | None = None
    """zfs: the parts of the pool, each device in one: `[{mirror: [a, b]}, {mirror: [c, d]}, {log: [e]}]`, images by
    number. `raidz1` to `raidz3`; `log`, `cache`, `special`, `dedup`, `spare`. Without it all are striped."""
    arc: SizeText | None = None
    """zfs: the most that it caches in memory (ARC) while it is mounted. Without it what the box has."""
    zram: SizeText | None = None
    """It lies on a compressed device in memory of this size."""
    zram_algorithm: str | None = None
    """How that is compressed, such as lzo-rle or lz4. Without it the kernel's own choice."""
    pmbd: str | None = None
    """It lies on a device of the pmbd module, loaded with this mode. Needs its kernel (3.2)."""
    journal_image: SizeText | None = None
    """Its journal (xfs: log) lies outside, on a loop image of this size."""
    journal_device: str | None = None
    """Its journal (xfs: log) lies outside, on this scratch device of the box file."""
    realtime_image: SizeText | None = None
    """xfs: the data of its files lie on a realtime device, a loop image of this size. A scratch device cannot be one:
    it would carry no mark afterwards, by which it is known as Mountlab's."""
    over: FilesystemFile | None = None
    """The file system that holds the layers of an overlay: an entry of its own."""
    mkfs: list[str] | None = None
    """Words for its mkfs, one an entry: `[-O, bigalloc, -C, '65536']`. No path; the keys above name what is
    formatted."""
    options: list[str] | None = None
    """Mount options, one an entry: `[noatime, data=writeback]`. What the kernel made of them is read back."""
    tunables: dict[str, str | int] | None = None
    """Settings while it is mounted: a name below `/sys/fs/TYPE/DEVICE`, or `queue/NAME`, and its value. Given back
    afterwards."""
    state: str | list[str] | None = None
    """In which states it is measured: `fresh`, names of `states`, or a list of these, each of which is restored before
    a mount. Without it `fresh`."""
    promised: dict[str, Any] | None = None
    """What its device is promised to do, which the report holds against the figures: read and write rates (at least so
    much) and latencies (at most). `by` names the workloads that ask it, `burst` what it does for a while: `{read_iops:
    3000, write_bandwidth: 125MiB, by: [random-read], burst: {read_iops: 16000}}`. Any type with a device
    ([recipe](../recipes.md#a-cloud-volume))."""


_NOT_MADE_WORDS = """
    9p afs apfs aufs bcachefs beegfs ceph cephfs cifs cramfs ecryptfs erofs exfat famfs fat fat32 fuse gfs2
    glusterfs gpfs hfs hfsplus iso9660 jffs2 jfs lustre minix msdos nilfs2 nova ntfs ntfs3 ocfs2 orangefs reiser4
    reiserfs smb smb3 squashfs sshfs ubifs udf ufs vfat virtiofs zonefs
"""
NOT_MADE = frozenset(_NOT_MADE_WORDS.split())
"""File systems that exist, and that Mountlab does not make: no name here is a mistyped name of another."""


def check_type(kind: str, where: str) -> None:
    """Raise ParameterError for a type of file system that Mountlab does not make."""
    if kind in FAMILIES:
        return
    if kind.casefold() not in NOT_MADE:
        raise unknown_key(kind, FAMILIES, where=where, what="file system type")
    raise ParameterError(
        f"Mountlab does not support {kind}",
        where=where,
        got=repr(kind),
        allowed=", ".join(sorted(FAMILIES)),
        next_step=f"mount {kind} on the box yourself, and measure a directory on it: "
        f"{{type: dir, path: /mnt/{kind.casefold()}}}",
    )


def read_filesystem(name: str, entry: FilesystemFile, where: str, *, also: Iterable[str] = ()) -> Filesystem:
    """Return the file system of one entry. Raises ParameterError for the first thing that is wrong; `also`: keys that
    others read."""
    check_type(entry.type, f"{where}.type")
    family = FAMILIES[entry.type]
    keys = {"type", *family.keys, *also}
    for key in ("stack", "members"):
        if key in entry.model_fields_set - keys:
            raise ParameterError(
                f"{entry.type} has no devices below it that Mountlab makes",
                where=f"{where}.{key}",
                got=key,
                allowed=f"{key} of {', '.join(name for name in FAMILIES if key in FAMILIES[name].keys)}",
                next_step=f"take {key} out",
            )
    for key in entry.model_fields_set - keys:
        raise unknown_key(key, sorted(keys), where=f"{where}.{key}", what=f"key for {entry.type}")
    _check_text(entry, where)
    devices = _device_names(entry)
    if entry.device == []:
        raise ParameterError(
            "device names no device",
            where=f"{where}.device",
            got="[]",
            allowed="NAME, or a list of them: names below `scratch` of the box file",
            next_step="name one; `mountlab box show BOX` lists them",
        )
    values: dict[str, Any] = {key: getattr(entry, key) for key in _AS_THEY_ARE}
    texts = {key: text for key in _SIZES if (text := getattr(entry, key)) is not None}
    sizes: dict[str, Any] = {_SIZES[key]: parse_bytes(text, where=f"{where}.{key}") for key, text in texts.items()}
    fs = Filesystem(
        name=name,
        type=entry.type,
        **values,
        **sizes,
        members=1 if entry.members is None else entry.members,
        device=devices[0] if devices else None,
        more_devices=tuple(devices[1:]),
        stack=read_stack(entry.stack or [], f"{where}.stack"),
        vdevs=read_vdevs(entry.vdevs or [], f"{where}.vdevs"),
        direct_io=entry.direct_io is not False,
        preallocate=entry.preallocate is not False,
        over=read_filesystem(name, entry.over, f"{where}.over") if entry.over else None,
        mkfs=_mkfs_words(entry.mkfs or [], f"{where}.mkfs"),
        options=_mount_options(entry, f"{where}.options"),
        tunables=_tunables(entry.tunables or {}, f"{where}.tunables"),
    )
    family.check(fs, where=where)
    return fs


def _device_names(entry: FilesystemFile) -> list[str]:
    return [entry.device] if isinstance(entry.device, str) else entry.device or []


RETIRED = {"overwrite": "device", "journal_overwrite": "journal_device"}
"""Keys of earlier versions, by which a sweep file allowed that what is on a device is destroyed, and the device's."""


def without_retired(entries: Any, where: str, *, kept: bool) -> Any:
    """Return the entries of `filesystems` without keys that have no effect any more; `kept`: of a measured run. Raises
    ParameterError for one in a sweep file: a device is given to Mountlab once, by hand."""
    if not isinstance(entries, dict):
        return entries
    return {name: _without_retired(entry, f"{where}: filesystems.{name}", kept=kept) for name, entry in entries.items()}


def _without_retired(entry: Any, where: str, *, kept: bool) -> Any:
    if not isinstance(entry, dict):
        return entry
    for key in entry.keys() & RETIRED.keys() if not kept else ():
        device = entry.get(RETIRED[key]) or "DEVICE"
        raise ParameterError(
            "a sweep cannot allow that a device is overwritten",
            where=f"{where}.{key}",
            got=repr(entry[key]),
            allowed="a device that `box claim` has given to Mountlab",
            next_step=f"take `{key}` out; mountlab box claim BOX {device} --erase {entry[key]}",
        )
    rest = {key: value for key, value in entry.items() if key not in RETIRED}
    return {**rest, "over": _without_retired(entry["over"], f"{where}.over", kept=kept)} if "over" in entry else rest


def _check_text(entry: FilesystemFile, where: str) -> None:
    what, paths = (
        "not a directory that can be measured",
        "an absolute path such as /srv or /mnt/disk, in plain characters",
    )
    for key in ("path", "image_dir"):
        path = getattr(entry, key)
        if path is not None:
            check_text(path, _MEASURED, what, f"{where}.{key}", paths)
            if _OF_THE_KERNEL.match(path):
                raise _no_place(what, path, f"{where}.{key}", "a directory with files; below /dev only /dev/shm")
    for key, device in (
        *(("device", device) for device in _device_names(entry)),
        ("journal_device", entry.journal_device),
    ):
        if device and device.startswith("/"):
            what = "a sweep knows a scratch device by its name in the box file"
            raise _no_place(what, device, f"{where}.{key}", f"a name below `scratch` there, such as {key}: disk")
    for key, (pattern, allowed) in _PATTERNS.items():
        text = getattr(entry, key)
        if text is not None:
            check_text(text, pattern, f"not a value for {key}", f"{where}.{key}", allowed)


def _no_place(what: str, path: str, where: str, allowed: str) -> ParameterError:
    """Return the error for a device where a directory or a name is needed, with the way to measure a device."""
    next_step = "a device is measured as {type: ext4, device: NAME}, after `mountlab box claim BOX DEVICE`"
    return ParameterError(what, where=where, got=repr(path), allowed=allowed, next_step=next_step)


def _mkfs_words(words: list[str], where: str) -> tuple[str, ...]:
    allowed = "a list with one word an entry, such as [-O, bigalloc, -b, '4096']"
    for word in words:
        check_text(word, r"[A-Za-z0-9_.,:=^+/@-]+", "not a word for mkfs", where, allowed)
    return tuple(words)


def _mount_options(entry: FilesystemFile, where: str) -> tuple[str, ...]:
    options, allowed = entry.options or [], "a list with one option an entry, such as [noatime, data=writeback]"
    for option in options:
        check_text(option, _MOUNT_OPTION, "not a mount option", where, allowed)
    # Of zfs they are properties of a dataset, which mount(8) never sees.
    for option in options if entry.type != "zfs" else ():
        if re.split(r"[=.+]", option)[0] in _NOT_FOR_MOUNT:
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
                "not a value for a tunable",
                where=f"{where}.{name}",
                got=repr(value),
                allowed="a number, or a word in plain characters",
            )
    return {name: str(value) for name, value in values.items()}
