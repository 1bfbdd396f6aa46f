"""The lines that would make a file system of a run permanent: for /etc/fstab, and a systemd mount unit."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

from mountlab.core.errors import ParameterError
from mountlab.core.model import Box, Filesystem, Place, StepRole
from mountlab.core.units import MIB
from mountlab.filesystems import FAMILIES, zfs
from mountlab.filesystems.base import ANYTHING, BLOCK_DEVICE, NOT_MOUNTED

WITHOUT_FSCK = ("tmpfs", "ramfs", "hugetlbfs", "overlay", "btrfs", "xfs", "pmfs", "zfs", ANYTHING)
"""Types that fsck at boot has nothing to do for: fstab's sixth field is 0."""


def permanent_lines(fs: Filesystem, box: Box, *, at: str, doubts: Sequence[str] = ()) -> str:
    """Return text to read and to copy: what must be done beforehand, the fstab line and the unit, for a mount on the
    directory `at`. `doubts`: what the run found wrong with its options.

    Raises ParameterError for a file system that the run did not mount, and for a bad path `at`.
    """
    at = at.rstrip("/")
    if not re.fullmatch(r"(/[^/\x00-\x1f]+)+", at):
        raise ParameterError("not a directory to mount on", where="--at", got=repr(at), allowed="an absolute path")
    kind = FAMILIES[fs.type].mounted_as(fs)
    if kind in (NOT_MOUNTED, BLOCK_DEVICE):
        raise ParameterError(
            f"{fs.name} was not mounted by the run, so there is nothing to make permanent",
            where=f"filesystems.{fs.name}",
            got=fs.type,
            allowed="a file system that the run mounted",
        )
    source, options_of_ours = _source(fs, box)
    # A zram device is rebuilt at every boot, after fstab was read: it must not stop the boot.
    late = ("noauto", "nofail") if fs.zram_bytes else ()
    given = () if fs.type == "zfs" else fs.options  # those of a dataset are its properties
    options = ",".join((*options_of_ours, *given, *late)) or "defaults"
    kind = "none" if kind == ANYTHING else kind
    order = 0 if kind in (*WITHOUT_FSCK, "none") or late else 2
    fstab = f"{_escaped(source)}  {_escaped(at)}  {kind}  {_escaped(options)}  0 {order}"
    below = []
    if fs.over is not None and FAMILIES[fs.over.type].mounted_as(fs.over) != NOT_MOUNTED:
        below = [
            "# first, the file system that holds LOWER, UPPER and WORK, all three made by mkdir:",
            *permanent_lines(fs.over, box, at=f"{at}.below").splitlines()[:-12],
            "",
        ]
    warnings = [f"# beware: {doubt}" for doubt in doubts]
    lines = [*below, *warnings, *_once(fs, box, source), "# /etc/fstab", fstab, ""]
    return "\n".join([*lines, *_unit(fs.name, source, at, kind, options)])


def _source(fs: Filesystem, box: Box) -> tuple[str, tuple[str, ...]]:
    """Return what is mounted, and the options that Mountlab set by itself."""
    scratch = {device.name: device.device for device in box.scratch}
    options = tuple(option for option in FAMILIES[fs.type].own_options(fs) if "{" not in option)
    if fs.type == "pmfs":
        address = scratch.get(fs.device or "", "memory:ADDRESS").removeprefix("memory:")
        return "none", (f"physaddr={address}",)  # without init=, which formats
    if fs.type == "overlay":
        return "overlay", ("lowerdir=LOWER", "upperdir=UPPER", "workdir=WORK")
    if fs.type == "bind":
        return fs.path or "DIRECTORY", ("bind",)
    journal = scratch.get(fs.journal_device or "", "JOURNAL")
    if fs.type == "xfs" and (fs.journal_device or fs.journal_image_bytes):
        options = (f"logdev={journal}", *options)
    if fs.type == "zfs":
        return "POOL/data", ()
    if fs.realtime_image_bytes:
        options = ("rtdev=REALTIME", *options)
    if fs.stack:
        return "TOP-DEVICE", options
    if fs.image_bytes is not None:
        return "IMAGE-FILE", ("loop", *options)
    if fs.zram_bytes is not None:
        return "/dev/zram0", options
    if fs.device is not None:
        return scratch.get(fs.device, "DEVICE"), options
    return fs.type if fs.pmbd is None else "/dev/pma", options


def _once(fs: Filesystem, box: Box, source: str) -> list[str]:
    """Return comments: what the mount alone does not do. A command that destroys what is there says so."""
    scratch = {device.name: device.device for device in box.scratch}
    journal = scratch.get(fs.journal_device or "", "JOURNAL")
    further = tuple((scratch.get(name, name), "") for name in fs.more_devices)
    place = Place(
        run_id="",
        run_dir="",
        mountpoint="",
        image=source,
        device=source,
        journal=journal,
        more_devices=further,
        layer_uuids=("",) * len(fs.stack),
    )
    steps = FAMILIES[fs.type].steps(fs, place) if fs.over is None else ()
    commands = [_command(step.argv) for step in steps if step.role is StepRole.FORMAT]
    if fs.type == "zfs":
        first = "TOP-DEVICE" if fs.stack else "IMAGE-FILE" if fs.image_bytes else scratch.get(fs.device or "", "DEVICE")
        commands = list(zfs.commands(fs, (first, *_further(fs, further).values())))
    when = "at every boot, after zramctl" if fs.zram_bytes else "once; it destroys what is on the device"
    named = {"{device}": source, "{journal}": journal, "{realtime}": "REALTIME"} | _further(fs, further)
    lines = [f"# {when}: {_as_typed(words, named)}" for words in commands]
    if fs.stack:
        layers = ", then ".join(layer.text for layer in fs.stack)
        boot = "what puts them together at boot is theirs (mdadm.conf, lvm.conf, crypttab)"
        lines.insert(0, f"# once, on {_devices(fs, scratch)}: {layers}; TOP-DEVICE is what they offer; {boot}")
    if fs.zram_bytes:
        algorithm = f" --algorithm {fs.zram_algorithm}" if fs.zram_algorithm else ""
        make = f"zramctl --find --size {fs.zram_bytes}{algorithm}"
        lines.insert(0, f"# at every boot, before all else: {make} (it prints the device: here /dev/zram0)")
    if fs.image_bytes and fs.over is None:
        times = f", {fs.members} times" if fs.members > 1 else ""
        lines.insert(0, f"# once{times}: fallocate -l {fs.image_bytes} IMAGE-FILE")
        lines += ["# (measured with direct I/O on the loop device: losetup --direct-io=on)"] if fs.direct_io else []
    lines += [
        f"# at every boot, after the mount: echo {value} > {_tunable(fs, name)}" for name, value in fs.tunables.items()
    ]
    if fs.type == "hugetlbfs" and fs.size_bytes:
        lines.append(f"# /etc/sysctl.d/: vm.nr_hugepages = {-(-fs.size_bytes // (2 * MIB))} (for pages of 2 MiB)")
    return [*lines, ""] if lines else []


def _tunable(fs: Filesystem, name: str) -> str:
    """Return the file of a tunable, with DEVICE for what the kernel will call the device (btrfs: its UUID)."""
    if name.startswith("queue/"):
        return f"/sys/block/DEVICE/{name}"
    return f"/sys/fs/{'ext4' if fs.type.startswith('ext') else fs.type}/DEVICE/{name}"


def _command(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command inside of guard and clock; () where there is none."""
    return argv[argv.index("timed.sh") + 1 :] if "timed.sh" in argv else ()


def _further(fs: Filesystem, further: tuple[tuple[str, str], ...]) -> dict[str, str]:
    """Return what stands for each device after the first to the device."""
    devices = [stable for stable, _ in further] or [f"IMAGE-FILE-{number}" for number in range(2, fs.members + 1)]
    return {f"{{member{number}}}": device for number, device in enumerate(devices, start=2)}


def _devices(fs: Filesystem, scratch: Mapping[str, str]) -> str:
    """Return the devices below the layers, in words."""
    of_images = "IMAGE-FILE" if fs.members == 1 else f"{fs.members} image files"
    return " ".join(scratch.get(name, name) for name in fs.devices) or of_images


def _as_typed(words: tuple[str, ...], named: Mapping[str, str]) -> str:
    """Return a mkfs command on these devices, without our mark. mkfs.xfs and mkfs.btrfs keep their -f: the run's own
    file system lies on the device."""
    kept: list[str] = []
    for word in words:
        if kept[-1:] == ["-U"] or word == "uuid=":  # with the option before it
            kept.pop()
        elif word not in ("-F", "-q"):
            word = word.removesuffix(",uuid=")
            kept.append(re.sub(r"\{\w+\}", lambda found: named.get(found[0], found[0]), word))
    return shlex.join(kept)


def _escaped(field: str) -> str:
    r"""Return a field of fstab(5): blanks as \040."""
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
        f"What={source.replace('%', '%%')}",
        f"Where={at.replace('%', '%%')}",
        f"Type={kind}",
        f"Options={options}",
        "",
        "[Install]",
        "WantedBy=local-fs.target",
    ]
