"""What mkfs was asked for against what the file system's own tools read back from the device.

A family of tools is one entry of READERS: ext reads the header of dumpe2fs, xfs the table of xfs_info, btrfs the super
block and the profiles of its block groups, f2fs the bytes of its super block. What none of them knows by name is looked
for in the differences from a file system that was made without the user's options (the control). That was made twice:
what differs between these two proves nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from mountlab.core.findings import OptionState
from mountlab.core.units import MIB, SECTOR_BYTES, kernel_bytes
from mountlab.filesystems.f2fs_super import f2fs_super

Parts = Mapping[str, str]
"""The sections of evidence.txt (mountlab.filesystems.evidence.parts_by_heading)."""
Judgement = tuple[OptionState, str]
"""The state of one option, and the words of the tool that tell it."""

NOTHING: Judgement = ("not visible", "nothing")


@dataclass(frozen=True)
class MkfsSetting:
    """One setting of a mkfs: `-E stride=16,stripe_width=64` is two of them, with letter '-E'."""

    letter: str
    key: str
    """'' where the letter itself is the key, as in `-b 4096`."""
    value: str

    @property
    def text(self) -> str:
        setting = f"{self.key}={self.value}" if self.key and self.value else self.key or self.value
        return f"{self.letter} {setting}".strip()


_OPTION = re.compile(r"--?[A-Za-z][\w-]*")


def settings_of(words: tuple[str, ...], *, lists: str) -> list[MkfsSetting]:
    """Return the words of a mkfs, taken apart. `lists`: the letters whose argument is a list of settings."""
    settings: list[MkfsSetting] = []
    rest = list(words)
    while rest:
        letter, equals, value = rest.pop(0).partition("=")
        if not equals and rest and not _OPTION.fullmatch(rest[0]):
            value = rest.pop(0)
        if letter.removeprefix("-") in tuple(lists):
            parts = (part.partition("=") for part in value.split(",") if part)
            settings += [MkfsSetting(letter, key, value_of) for key, _, value_of in parts]
        else:
            settings.append(MkfsSetting(letter, "", value))
    return settings


def same(requested: str, stated: str) -> bool:
    """Equal as text, as numbers or as sizes; or all that is stated beyond what was asked for stands after a blank."""
    ours, theirs = requested.strip().lower(), stated.strip().lower()
    if ours == theirs or (ours and theirs.split()[:1] == [ours]):
        return True
    number = kernel_bytes(ours)
    return number is not None and number == kernel_bytes(theirs)


def judged(requested: str, stated: str, *, says: str) -> Judgement:
    """In effect where both are the same, else changed."""
    return ("in effect" if same(requested, stated) else "changed", says)


# --- dumpe2fs ---------------------------------------------------------------------------------------------------------

_EXT_KEYS = {
    "-b": "block size", "-C": "cluster size", "-g": "blocks per group", "-G": "flex block group size",
    "-I": "inode size", "-r": "filesystem revision #", "-o": "filesystem os type", "-U": "filesystem uuid",
    "-L": "filesystem volume name", "desc_size": "group descriptor size", "encoding": "character encoding",
    "stride": "raid stride", "stripe_width": "raid stripe width", "stripe-width": "raid stripe width",
}  # fmt: skip
_EXT_FEATURES = {"extents": "extent"}
_INODES_OF_ROUNDING = 2
"""mke2fs fills up the last block of inodes of each group, and rounds to eights."""


def journal_features(parts: Parts) -> list[str] | None:
    """Return the features of the journal of an ext3 or ext4; None where dumpe2fs names none."""
    stated = _header(parts).get("journal features")
    return None if stated is None else stated.replace("(none)", "").split()


def _header(parts: Parts) -> dict[str, str]:
    pairs = (line.partition(":") for line in parts.get("dumpe2fs", "").splitlines() if ":" in line)
    return {key.strip().lower(): value.strip() for key, _, value in pairs}


def _ext_one(setting: MkfsSetting, header: Mapping[str, str], parts: Parts) -> Judgement | None:
    if not header:
        return NOTHING
    special = _EXT_SPECIAL.get(setting.key or setting.letter)
    if setting.letter == "-O":
        return _feature(setting.key, _EXT_FEATURES, header.get("filesystem features", "").split())
    if special:
        return special(setting.value, header, parts)
    key = _EXT_KEYS.get(setting.key or setting.letter) or _named(setting.key, header)
    return judged(setting.value, header[key], says=f"{key}: {header[key]}") if key in header else None


def _named(key: str, header: Mapping[str, str]) -> str:
    """Return the line of the dump whose name holds all the words of an option: stripe_width is 'RAID stripe width'."""
    words = set(re.split(r"[-_ ]", key.lower())) if key else {""}
    return next((name for name in header if words <= set(name.split())), "")


def _feature(requested: str, aliases: Mapping[str, str], features: list[str]) -> Judgement:
    """Return a feature that is set, or with ^ one that is not."""
    plain = requested.removeprefix("^")
    if plain == "none":
        return NOTHING
    name = _plain(aliases.get(plain, plain))
    there = name in map(_plain, features)
    wanted = not requested.startswith("^")
    return ("in effect" if there == wanted else "ignored", f"{plain} is {'a feature' if there else 'not a feature'}")


def _plain(name: str) -> str:
    return name.lower().replace("-", "_")


def _number(header: Mapping[str, str], key: str) -> int:
    match = re.match(r"\d+", header.get(key, ""))
    return int(match[0]) if match else 0


def _inodes(value: str, header: Mapping[str, str], parts: Parts) -> Judgement:
    wanted = kernel_bytes(value) or 0
    return _as_many_inodes(wanted, header, f"inode count: {header.get('inode count')}")


def _bytes_an_inode(value: str, header: Mapping[str, str], parts: Parts) -> Judgement:
    room = _number(header, "block count") * _number(header, "block size")
    ratio, count = kernel_bytes(value) or 1, _number(header, "inode count") or 1
    return _as_many_inodes(room // ratio, header, f"one inode for {room // count} bytes")


def _as_many_inodes(wanted: int, header: Mapping[str, str], says: str) -> Judgement:
    per_group = _number(header, "inodes per group") or 1
    in_a_block = _number(header, "block size") // (_number(header, "inode size") or 1)
    groups = _number(header, "inode count") / per_group
    off = abs(_number(header, "inode count") - wanted)
    return ("in effect" if off <= groups * in_a_block * _INODES_OF_ROUNDING else "changed", says)


def _reserved(value: str, header: Mapping[str, str], parts: Parts) -> Judgement:
    if not re.fullmatch(r"\d+(\.\d*)?", value):
        return NOTHING
    blocks, reserved = _number(header, "block count"), _number(header, "reserved block count")
    cluster = max(1, _number(header, "cluster size") // (_number(header, "block size") or 1))
    off = abs(reserved - blocks * float(value) / 100)
    return ("in effect" if off <= cluster else "changed", f"reserved block count: {reserved} of {blocks}")


def _on_error(value: str, header: Mapping[str, str], parts: Parts) -> Judgement:
    stated = header.get("errors behavior", "")
    return judged(value.partition("-")[0], stated, says=f"errors behavior: {stated}")


def _journal_size(value: str, header: Mapping[str, str], parts: Parts) -> Judgement:
    stated = header.get("total journal size") or header.get("journal size", "")
    wanted = kernel_bytes(value if value[-1:].isalpha() else f"{value}m")
    return ("in effect" if wanted == kernel_bytes(stated) else "changed", f"total journal size: {stated}")


def _external(value: str, header: Mapping[str, str], parts: Parts) -> Judgement:
    stated = header.get("journal device", "")
    return ("in effect", f"journal device: {stated}") if stated else ("ignored", "no journal device")


def _lazy_tables(value: str, header: Mapping[str, str], parts: Parts) -> Judgement:
    """Return whether inode tables are still to be zeroed, by the flags of the groups. A file system without flags has
    none."""
    match = re.match(r"(\d+) (\d+)", parts.get("itable", ""))
    if not match:
        return NOTHING
    groups, zeroed = int(match[1]), int(match[2])
    features = header.get("filesystem features", "").split()
    flagged = "metadata_csum" in features or "uninit_bg" in features
    says = f"inode tables zeroed in {zeroed} of {groups} groups" if flagged else "no group is marked as not zeroed"
    if value != "0":
        return ("in effect" if flagged and zeroed < groups else "not visible", says)
    return ("in effect" if not flagged or zeroed == groups else "ignored", says)


def _root_owner(value: str, header: Mapping[str, str], parts: Parts) -> Judgement:
    stated = ":".join(parts.get("root", "").split()[1:3])
    return judged(value or "0:0", stated, says=f"the root directory is of {stated}")


_EXT_SPECIAL: dict[str, Callable[[str, Mapping[str, str], Parts], Judgement]] = {
    "-N": _inodes,
    "-i": _bytes_an_inode,
    "-m": _reserved,
    "-e": _on_error,
    "size": _journal_size,
    "device": _external,
    "lazy_itable_init": _lazy_tables,
    "root_owner": _root_owner,
}


# --- xfs_info ---------------------------------------------------------------------------------------------------------

_XFS_SECTION = {"d": "data", "b": "data", "l": "log", "n": "naming", "r": "realtime"}
"""What xfs_info calls the part of each letter of mkfs.xfs; everything else is in its meta-data."""
_XFS_KEYS = {
    "b.size": "data.bsize", "i.size": "meta-data.isize", "i.maxpct": "data.imaxpct", "s.size": "meta-data.sectsz",
    "n.size": "naming.bsize", "d.sectsize": "meta-data.sectsz", "l.sectsize": "log.sectsz",
    "r.extsize": "realtime.extsz",
}  # fmt: skip
_XFS_BYTES = {
    "d.su": "data.sunit", "l.su": "log.sunit", "d.agsize": "meta-data.agsize", "d.size": "data.blocks",
    "l.size": "log.blocks",
}  # fmt: skip
"""Asked for in bytes, shown in blocks of the file system."""
_XFS_WORDS = {"d.noalign": ("data.sunit", "0"), "n.version=ci": ("naming.ascii-ci", "1")}
_XFS_ROUNDED = {"d.size", "l.size", "d.agsize"}
_XFS_SECTORS = {"d.sunit": "data.sunit", "d.swidth": "data.swidth", "l.sunit": "log.sunit"}
"""Asked for in sectors of 512 bytes, shown in blocks of the file system."""


def _xfs_info(parts: Parts) -> dict[str, str]:
    """'data.bsize': '4096', ... A line whose first column is empty belongs to the part above it."""
    info: dict[str, str] = {}
    part = ""
    for line in parts.get("xfs_info", "").splitlines():
        head, _, rest = line.partition("=")
        part = head.split()[0] if head.strip() else part
        about = re.match(r"\s*(\S.*?)\s{2,}", rest)
        if part and about and "=" not in about[1]:
            info[f"{part}.is"] = about[1]
        version = re.search(r"version\s*=?\s*(\w+)", rest)
        if version:
            info[f"{part}.version"] = version[1]
        info |= {f"{part}.{key}": value for key, value in re.findall(r"([\w-]+)=\s*(\w+)", rest)}
    return info


def _xfs_one(setting: MkfsSetting, info: Mapping[str, str], parts: Parts) -> Judgement | None:
    if not info:
        return NOTHING
    letter = setting.letter.removeprefix("-")
    name = f"{letter}.{setting.key}"
    special = _xfs_special(name, setting.value, info)
    if special:
        return special
    likely = (f"{_XFS_SECTION.get(letter, 'meta-data')}.{setting.key}", f"meta-data.{setting.key}")
    key = _XFS_KEYS.get(name) or next((key for key in likely if key in info), "")
    return judged(setting.value or "1", info[key], says=_says(key, info[key])) if key in info else None


def _says(key: str, value: str) -> str:
    part, _, name = key.partition(".")
    return f"{part}: {name}={value}"


def _xfs_special(name: str, value: str, info: Mapping[str, str]) -> Judgement | None:
    if name in _XFS_BYTES:
        return _xfs_length(name, _XFS_BYTES[name], value, 1, info)
    if name in _XFS_SECTORS:
        return _xfs_length(name, _XFS_SECTORS[name], value, SECTOR_BYTES, info)
    if name == "d.sw" and value.isdecimal():
        stripe, width = int(info.get("data.sunit", "0")), int(info.get("data.swidth", "0"))
        return ("in effect" if width == stripe * int(value) else "changed", f"data: sunit={stripe} swidth={width} blks")
    if name in ("l.logdev", "l.internal"):
        external = "internal" not in info.get("log.is", "internal")
        state: OptionState = "in effect" if external == (name == "l.logdev" or value == "0") else "ignored"
        return (state, f"log: {info.get('log.is', '')}")
    plain = _XFS_WORDS.get(name if not value else f"{name}={value}")
    return judged(plain[1], info.get(plain[0], ""), says=_says(plain[0], info.get(plain[0], ""))) if plain else None


def _xfs_length(name: str, key: str, value: str, unit: int, info: Mapping[str, str]) -> Judgement:
    """Return a length, shown in blocks. mkfs.xfs rounds the sizes of its parts down to whole stripes."""
    block = int(info.get("data.bsize", "0"))
    wanted, shown = _xfs_bytes(value, block, unit), int(info.get(key, "0")) * block
    rounded = name in _XFS_ROUNDED and wanted is not None and 0 <= wanted - shown < MIB
    return ("in effect" if wanted == shown or rounded else "changed", f"{_says(key, info.get(key, '0'))} blks")


def _xfs_bytes(value: str, block: int, unit: int) -> int | None:
    """Return bytes of a number of mkfs.xfs: with b in blocks, with s in sectors, with k, m, ... in bytes, else in
    `unit`."""
    match = re.fullmatch(r"(\d+)([bs])", value)
    if match:
        return int(match[1]) * (block if match[2] == "b" else SECTOR_BYTES)
    return int(value) * unit if value.isdecimal() else kernel_bytes(value)


# --- btrfs ------------------------------------------------------------------------------------------------------------

_BTRFS_KEYS = {
    "-n": "nodesize", "--nodesize": "nodesize", "-s": "sectorsize", "--sectorsize": "sectorsize", "-b": "total_bytes",
    "--byte-count": "total_bytes", "-U": "fsid", "--uuid": "fsid", "-L": "label", "--label": "label",
}  # fmt: skip
_BTRFS_FEATURE_LISTS = ("-O", "-R", "--features", "--runtime-features")
_BTRFS_PROFILES = {"-d": "data", "--data": "data", "-m": "metadata", "--metadata": "metadata"}
_SET_BY_KERNEL = ("BIG_METADATA", "COMPRESS_LZO", "COMPRESS_ZSTD", "MIXED_BACKREF")
"""Set in memory by open_ctree, and on the device with the next commit: by then if anybody on the machine calls sync."""
_BTRFS_FEATURES = {"extref": "extended_iref", "mixed-bg": "mixed_groups", "squota": "simple_quota"}


def _btrfs_quota(setting: MkfsSetting, parts: Parts) -> Judgement | None:
    """Return whether quotas are on: then, and only then, the kernel makes a directory for them (5.9 and later)."""
    if setting.key not in ("quota", "^quota") or setting.letter not in _BTRFS_FEATURE_LISTS:
        return None
    stated = next((text.strip() for path, text in parts.items() if path.endswith("/qgroups/enabled")), None)
    if stated is None and setting.key == "quota":
        return NOTHING
    on = stated == "1"
    return ("in effect" if on == (setting.key == "quota") else "ignored", f"qgroups/enabled: {stated or 'absent'}")


def _of_mkfs(dump: Mapping[str, str]) -> Mapping[str, str]:
    """Return a super block without the flags that the kernel sets when it mounts."""
    features = [feature for feature in dump.get("features", "").split() if feature not in _SET_BY_KERNEL]
    return dump and {**dump, "incompat_flags": "", "features": " ".join(features)}


def _super(parts: Parts) -> dict[str, str]:
    dump = parts.get("dump-super", "")
    pairs = (line.split(None, 1) for line in dump.splitlines() if re.match(r"[a-z]\w*(\.\w+)?\s", line))
    values = {pair[0]: pair[1].strip() if len(pair) > 1 else "" for pair in pairs}
    return values and {**values, "features": " ".join(re.findall(r"^\s+\(? ?([A-Z][A-Z0-9_]+)", dump, re.MULTILINE))}


def _btrfs_one(setting: MkfsSetting, dump: Mapping[str, str], parts: Parts) -> Judgement | None:
    """Judge profiles by `btrfs filesystem df`, quota by /sys, everything else by the super block."""
    if quota := _btrfs_quota(setting, parts):
        return quota
    profiles = dict(re.findall(r"^([\w+]+), ?(\w+):", parts.get("btrfs-df", "").lower(), re.MULTILINE))
    if setting.letter in _BTRFS_PROFILES and profiles:
        name = _BTRFS_PROFILES[setting.letter]
        stated = profiles.get(name) or profiles.get("data+metadata", "")
        return judged(setting.value, stated, says=f"{name}, {stated.upper() if stated != 'single' else stated}")
    if "fsid" not in dump:
        return NOTHING
    if setting.letter in _BTRFS_FEATURE_LISTS:
        return _btrfs_feature(setting.key, dump["features"].split())
    if setting.letter in ("--csum", "--checksum"):
        stated = dump.get("csum_type", "")
        fits = f"({setting.value.lower()}" in stated.lower()
        return ("in effect" if fits else "changed", f"csum_type: {stated}")
    key = _BTRFS_KEYS.get(setting.letter, "")
    return judged(setting.value, dump[key], says=f"{key}: {dump[key]}") if key in dump else None


def _btrfs_feature(requested: str, features: list[str]) -> Judgement | None:
    """Judge a feature by the super block's flags. A feature without a flag (quota) has its own tree instead."""
    name = requested.removeprefix("^")
    effect = _feature(requested, _BTRFS_FEATURES, features)
    return effect if effect[0] == "in effect" or name not in ("quota", "list-all") else None


# --- f2fs -------------------------------------------------------------------------------------------------------------

_F2FS_KEYS = {"-s": "segs_per_sec", "-z": "secs_per_zone", "-C": "encoding"}
_F2FS_LISTS = {"-e": "cold extensions", "-E": "hot extensions"}
_F2FS_UNSEEN = ("-a", "-t", "-r")
_OWN_SHARE = 1.0
"""By how many percent the share that is set aside may differ: it is counted in whole segments."""


def lacks_compression(parts: Parts) -> bool:
    """Return whether it is an f2fs whose super block has no compression: the kernel then ignores each option of it."""
    stated = f2fs_super(parts)
    return bool(stated) and "compression" not in stated["features"].split()


def _f2fs_one(setting: MkfsSetting, stated: Mapping[str, str], parts: Parts) -> Judgement | None:
    if not stated or setting.letter in _F2FS_UNSEEN:
        return NOTHING
    if setting.letter == "-O":
        return _feature(setting.key, {}, stated["features"].split())
    if setting.letter in _F2FS_LISTS:
        name = _F2FS_LISTS[setting.letter]
        there = setting.key in stated[name].split()
        return ("in effect" if there else "ignored", f"{name}: {stated[name] or 'none'}")
    if setting.letter == "-R":
        return _root_owner(setting.value, stated, parts)
    if setting.letter == "-w":
        size = str(1 << int(stated["log_sectorsize"]))
        return judged(setting.value, size, says=f"sector size: {size}")
    if setting.letter == "-i" and "large bitmap" in stated:
        extended = stated["large bitmap"] == "1" or stated["cp_payload"] != "0"
        return ("in effect" if extended else "ignored", f"large bitmap: {stated['large bitmap']}")
    if setting.letter == "-o":
        return _set_aside(setting.value, stated)
    key = _F2FS_KEYS.get(setting.letter, "")
    return judged(setting.value, stated[key], says=f"{key}: {stated[key] or 'none'}") if key in stated else None


def _set_aside(value: str, stated: Mapping[str, str]) -> Judgement:
    """Judge the share of the segments beyond those that mkfs.f2fs keeps in any case."""
    if "overprovision segments" not in stated or float(value) == 0:  # 0 leaves the choice to mkfs.f2fs
        return NOTHING
    kept, aside = int(stated["reserved segments"]), int(stated["overprovision segments"])
    main = int(stated["segment_count_main"])
    share = 100 * (aside - kept) / max(1, main - kept)
    near = abs(share - float(value)) <= max(_OWN_SHARE, 100 / max(1, main - kept))
    return ("in effect" if near else "changed", f"{aside} of {main} segments are set aside, {kept} of them in any case")


# --- proof by difference ----------------------------------------------------------------------------------------------

_EACH_TIME = re.compile(
    r"uuid|fsid|seed|time|created|written|checked|checksum|csum$|^csum|last|mount count|lifetime|free|generation|"
    r"sequence|root$|bytes_used|_lsn|state|cache|is$"
)
"""What is known to differ between any two file systems that were made alike. Two makings within one second have equal
time stamps, so that a second making alone does not tell."""
_PROOFS = 3
"""Differences that are named as the proof of one option."""


@dataclass(frozen=True)
class Differences:
    """The lines in which a file system differs from one without the user's options, and not at each making."""

    lines: tuple[tuple[str, str], ...] = ()
    known: bool = True
    """Whether a second making tells what differs at each making."""


def differences(made: Mapping[str, str], plain: Mapping[str, str], second: Mapping[str, str]) -> Differences:
    """Return what proves an option: it differs from the control, and two makings without the option agree about it."""
    if not plain:
        return Differences()
    lines = tuple(
        (key, value)
        for key, value in made.items()
        if plain.get(key) != value and not _EACH_TIME.search(key) and (not second or plain.get(key) == second.get(key))
    )
    return Differences(lines, known=bool(second))


def differs(setting: MkfsSetting, changes: Differences, everything: list[MkfsSetting]) -> Judgement:
    """Return an option that no line names: in effect where a line differs from the control and states the value that
    was asked for, or where nothing else was asked for that could have made the difference."""
    exact = [f"{key}: {value}" for key, value in changes.lines if setting.value and same(setting.value, value)]
    alone = [f"{key}: {value}" for key, value in changes.lines] if len(everything) == 1 else []
    says = exact[0] if exact else "shown as " + ", ".join(alone[:_PROOFS])
    if not (exact or alone):
        return NOTHING
    if not changes.known:
        return ("not visible", f"nothing that is sure; a control made once only does not tell whether {says} proves it")
    return ("in effect", says)


# --- which reader for which file system -------------------------------------------------------------------------------

_XFS_LINES = {
    "agcount", "crc", "finobt", "sparse", "rmapbt", "reflink", "bigtime", "inobtcount", "nrext64", "lazy-count", "sw",
    "swidth", "version", "ftype", "size", "maxpct", "internal", "logdev",
}  # fmt: skip
"""Settings that xfs_info shows under their own names, or that have a rule."""


@dataclass(frozen=True)
class MkfsReader:
    """How the settings of one mkfs are read back."""

    lists: str
    """The letters whose argument is a list of settings."""
    dump: Callable[[Parts], Mapping[str, str]]
    """What its tool read back, line by line; {} where it read nothing."""
    judge: Callable[[MkfsSetting, Mapping[str, str], Parts], Judgement | None]
    """Whether a setting is in effect; None where no line bears its name."""
    names_line: Callable[[MkfsSetting], bool]
    """Whether the line that tells a setting is known before the dump is seen."""
    made: Callable[[Mapping[str, str]], Mapping[str, str]] = dict
    """A dump without what is no work of mkfs."""


def _ext_names_line(setting: MkfsSetting) -> bool:
    return setting.letter == "-O" or (setting.key or setting.letter) in {**_EXT_KEYS, **_EXT_SPECIAL}


def _xfs_names_line(setting: MkfsSetting) -> bool:
    name = f"{setting.letter.removeprefix('-')}.{setting.key}"
    return name in {**_XFS_KEYS, **_XFS_BYTES, **_XFS_SECTORS, **_XFS_WORDS} or setting.key in _XFS_LINES


def _btrfs_names_line(setting: MkfsSetting) -> bool:
    return setting.letter in {*_BTRFS_KEYS, *_BTRFS_PROFILES, *_BTRFS_FEATURE_LISTS, "--csum", "--checksum"}


def _f2fs_names_line(setting: MkfsSetting) -> bool:
    return setting.letter in {*_F2FS_KEYS, *_F2FS_LISTS, *_F2FS_UNSEEN, "-O", "-R", "-w", "-o", "-i"}


READERS = {
    **dict.fromkeys(("ext2", "ext3", "ext4"), MkfsReader("EOJ", _header, _ext_one, _ext_names_line)),
    "xfs": MkfsReader("bdilmnrs", _xfs_info, _xfs_one, _xfs_names_line),
    "btrfs": MkfsReader("OR", _super, _btrfs_one, _btrfs_names_line, _of_mkfs),
    "f2fs": MkfsReader("OeE", f2fs_super, _f2fs_one, _f2fs_names_line),
}
"""File system type to the reader of its dumps."""


def proved_by_difference(fstype: str, words: tuple[str, ...]) -> bool:
    """Return whether a mkfs option may need the proof by difference, and so a control that is made twice."""
    reader = READERS.get(fstype)
    return reader is not None and not all(map(reader.names_line, settings_of(words, lists=reader.lists)))


def read_back(
    fstype: str, words: tuple[str, ...], parts: Parts, control: Parts, again: Parts
) -> Iterator[tuple[str, Judgement]]:
    """Yield each option of a mkfs as people write it, its state, and the words that tell it.

    `control` and `again`: the sections of two makings without options; {} for one that there is not.

    `fstype` may be what lies on another device (zram, pmem): any type that has no reader gives 'not visible'.
    """
    reader = READERS.get(fstype)
    settings = settings_of(words, lists=reader.lists if reader else "")
    if reader is None:
        yield from ((setting.text, NOTHING) for setting in settings)
        return
    dump = reader.dump(parts)
    changes = differences(*(reader.made(reader.dump(sections)) for sections in (parts, control, again)))
    for setting in settings:
        yield setting.text, reader.judge(setting, dump, parts) or differs(setting, changes, settings)
