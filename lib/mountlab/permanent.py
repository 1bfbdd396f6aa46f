"""The lines that would make a file system of a run permanent: for /etc/fstab, and a systemd mount unit."""

from __future__ import annotations

import re
import shlex

from mountlab.errors import ParameterError
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.base import ANYTHING, BLOCK_DEVICE, NOT_MOUNTED
from mountlab.model import Box, Filesystem, Place

WITHOUT_FSCK = ("tmpfs", "ramfs", "hugetlbfs", "overlay", "btrfs", "xfs", "pmfs", ANYTHING)
"""Types that fsck at boot has nothing to do for: fstab's sixth field is 0."""


def permanent_lines(fs: Filesystem, box: Box, *, at: str) -> str:
    """Text to read and to copy: what must be done once, the fstab line and the unit, for a mount on the directory `at`.

    Raises ParameterError for a file system that the run did not mount, and for a directory that is none.
    """
    if not re.fullmatch(r"(/[^/\x00-\x1f]+)+", at):
        raise ParameterError("not a directory to mount on", where="--at", got=repr(at), allowed="an absolute path")
    kind = FAMILIES[fs.type].mounted_as(fs)
    if kind in (NOT_MOUNTED, BLOCK_DEVICE):
        raise ParameterError(
            f"{fs.name} was not mounted by the run, so there is nothing to make permanent",
            where=f"filesystems.{fs.name}", got=fs.type, allowed="a file system that the run mounted",
        )  # fmt: skip
    source, own = _source(fs, box)
    options = ",".join((*own, *fs.options)) or "defaults"
    kind = "none" if kind == ANYTHING else kind
    order = 0 if kind in (*WITHOUT_FSCK, "none") else 2
    fstab = f"{_escaped(source)}  {_escaped(at)}  {kind}  {options}  0 {order}"
    return "\n".join([*_once(fs, source), "# /etc/fstab", fstab, "", *_unit(fs.name, source, at, kind, options)])


def _source(fs: Filesystem, box: Box) -> tuple[str, tuple[str, ...]]:
    """What is mounted, and the options that Mountlab set by itself."""
    scratch = {each.name: each.device for each in box.scratch}
    own = tuple(option for option in FAMILIES[fs.type].own_options(fs) if "{" not in option)
    if fs.type == "pmfs":
        address = scratch.get(fs.device or "", "memory:ADDRESS").removeprefix("memory:")
        return "none", (f"physaddr={address}",)  # without init=, which formats
    if fs.type == "overlay":
        return "overlay", ("lowerdir=LOWER", "upperdir=UPPER", "workdir=WORK")
    if fs.type == "bind":
        return fs.path or "DIRECTORY", ("bind",)
    journal = scratch.get(fs.journal_device or "", "JOURNAL")
    if fs.type == "xfs" and (fs.journal_device or fs.journal_image_bytes):
        own = (f"logdev={journal}", *own)
    if fs.image_bytes is not None:
        return "IMAGE-FILE", ("loop", *own)
    if fs.zram_bytes is not None:
        return "/dev/zram0", own
    if fs.device is not None:
        return scratch.get(fs.device, "DEVICE"), own
    return fs.type if fs.pmbd is None else "/dev/pma", own


def _once(fs: Filesystem, source: str) -> list[str]:
    """Comments: what the mount alone does not do. A command that destroys what is there says so."""
    place = Place(run_id="", run_dir="", mountpoint="", image=source, device=source, journal="JOURNAL")
    commands = [_command(step.argv) for step in FAMILIES[fs.type].steps(fs, place)]
    lines = [
        "# once; it destroys what is on the device: " + shlex.join(_as_typed(words)).replace("'{device}'", source)
        .replace("{journal}", "JOURNAL").replace("{device}", source)
        for words in commands if words[:1] and words[0].startswith(("mke2fs", "mkfs."))
    ]  # fmt: skip
    lines += [f"# at every boot, after the mount: {name} = {value}" for name, value in fs.tunables.items()]
    if fs.type == "hugetlbfs" and fs.size_bytes:
        lines.append(f"# /etc/sysctl.d/: vm.nr_hugepages must be enough for {fs.size_bytes} bytes")
    if fs.zram_bytes:
        lines.append(f"# at every boot: zramctl --size {fs.zram_bytes} --algorithm {fs.zram_algorithm or 'lzo-rle'}")
    return [*lines, ""] if lines else []


def _command(argv: tuple[str, ...]) -> tuple[str, ...]:
    """The command inside of guard and clock; () where there is none."""
    return argv[argv.index("timed.sh") + 1 :] if "timed.sh" in argv else ()


def _as_typed(words: tuple[str, ...]) -> list[str]:
    """A mkfs command without our mark, and without the words that keep mkfs from asking."""
    kept: list[str] = []
    for word in words:
        if kept[-1:] == ["-U"] or word == "uuid=":  # with the option before it
            kept.pop()
        elif word not in ("-F", "-f", "-q"):
            kept.append(word.removesuffix(",uuid="))
    return kept


def _escaped(field: str) -> str:
    r"""A field of fstab(5): blanks as \040."""
    return field.replace("\\", "\\134").replace(" ", "\\040").replace("\t", "\\011")


def unit_name(at: str) -> str:
    """systemd's name for the unit of a mount point (systemd.unit(5), string escaping for inclusion in unit names)."""
    parts = [part for part in at.split("/") if part]
    escaped = "-".join(re.sub(r"[^A-Za-z0-9:_.]", lambda m: f"\\x{ord(m[0]):02x}", part) for part in parts) or "-"
    return re.sub(r"\A\.", r"\\x2e", escaped) + ".mount"


def _unit(name: str, source: str, at: str, kind: str, options: str) -> list[str]:
    return [
        f"# or /etc/systemd/system/{unit_name(at)}",
        "[Unit]",
        f"Description={name}, as measured with Mountlab",
        "",
        "[Mount]",
        f"What={source}",
        f"Where={at}",
        f"Type={kind}",
        f"Options={options}",
        "",
        "[Install]",
        "WantedBy=local-fs.target",
    ]
