"""What a file system on a block device lies on: a loop image that we make, a scratch device that the box's owner gave
us, compressed memory, or a device of the pmbd module; or on several images or scratch devices, and layers on them. Each
binds {device}; an external journal binds {journal}."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mountlab.core.errors import ParameterError
from mountlab.core.model import Filesystem, Place, Program, Step, StepRole, everywhere
from mountlab.core.shell import script_argv
from mountlab.core.units import format_bytes
from mountlab.filesystems.base import borrow_step, script_step, timed_step
from mountlab.filesystems.directory import made_directory
from mountlab.filesystems.guard import guarded
from mountlab.filesystems.stack import check_stack, devices_below, layer_programs, layer_steps, top_bytes

LOSETUP = Program(
    name="losetup",
    packages=everywhere("util-linux", apt="mount"),
    version=("losetup", "--version"),
    busybox_lacks="--find --show, --direct-io and --list",
)
BLKID = Program(
    name="blkid", packages=everywhere("util-linux"), version=("blkid", "--version"), busybox_lacks="-p (read a device)"
)
MKE2FS = Program(
    name="mke2fs", packages=everywhere("e2fsprogs"), version=("mke2fs", "-V"), busybox_lacks="ext3, ext4, -U, -E and -O"
)
GUARD_PROGRAMS = (
    BLKID,
    Program(name="wipefs", packages=everywhere("util-linux"), version=("wipefs", "--version")),
    LOSETUP,
    MKE2FS,
    Program(name="cmp", packages=everywhere("diffutils"), version=("cmp", "--version")),
)
"""Programs that the guard of a scratch device runs."""

DEVICE = "{device}"
MEMBER = "{member1}"
JOURNAL = "{journal}"
REALTIME = "{realtime}"
"""Placeholders for the device's name as losetup, the guard or the kernel prints it, not its stable name (a link)."""
KEYS = frozenset({
    "image", "members", "image_dir", "direct_io", "preallocate", "device", "stack", "zram", "zram_algorithm", "pmbd",
})  # fmt: skip
JOURNAL_KEYS = frozenset({"journal_image", "journal_device"})
MOST_MEMBERS = 16
"""Images of one file system."""
PMBD_DEVICE = "/dev/pma"
LONGEST_S = 24 * 3600.0
"""How long a whole device may take to be written, or a file system to be aged."""
DETACH = "detach.sh"
"""Name of the script that undoes a loop device, as an argument of the command."""


_BLOCKS = {"sparse": "sparse", "full": "all its blocks allocated beforehand", "written": "all its blocks written"}


def check(fs: Filesystem, *, smallest: int, where: str, takes_several: bool = False) -> None:
    """Raise ParameterError unless exactly one backing is given, it is large enough, and of as many devices as the file
    system or its lowest layer takes."""
    kinds = {"image": fs.image_bytes, "device": fs.device, "zram": fs.zram_bytes, "pmbd": fs.pmbd}
    backings = [name for name, value in kinds.items() if value is not None]
    if len(backings) != 1:
        raise ParameterError(
            f"{fs.type} needs one device",
            where=where,
            got=" and ".join(backings) or "none",
            allowed="image: SIZE (a loop image that Mountlab makes), device: NAME (a scratch device of the box), "
            "zram: SIZE (compressed memory) or pmbd: MODE (a device of the pmbd module)",
        )
    _check_devices(fs, where, takes_several=takes_several)
    check_stack(fs, where=where)
    for key, size in (("image", fs.image_bytes), ("zram", fs.zram_bytes)):
        if size is not None and top_bytes(fs, size) < smallest:
            offered = f", and the layers offer {format_bytes(float(top_bytes(fs, size)))} of it" if fs.stack else ""
            raise ParameterError(
                f"too small for {fs.type}",
                where=f"{where}.{key}",
                got=f"{format_bytes(float(size))}{offered}",
                allowed=f"{format_bytes(float(smallest))} or more{' of what they offer' if fs.stack else ''}",
            )
    _check_journal(fs, where)


def _check_devices(fs: Filesystem, where: str, *, takes_several: bool) -> None:
    """Raise ParameterError for several devices where there can be one only, and for one that is named twice."""
    if len({*fs.devices}) < len(fs.devices):
        raise ParameterError(
            "each device can be named once",
            where=f"{where}.device",
            got=", ".join(fs.devices),
            allowed="different scratch devices of the box file",
        )
    if not 1 <= fs.members <= MOST_MEMBERS or (fs.members > 1 and not fs.image_bytes):
        raise ParameterError(
            "members says how many images there are",
            where=f"{where}.members",
            got=str(fs.members) if fs.image_bytes else f"{fs.members} without image",
            allowed=f"1 to {MOST_MEMBERS}, beside image: SIZE; for scratch devices a list, device: [a, b]",
        )
    if devices_below(fs) > 1 and not fs.stack and not takes_several:
        raise ParameterError(
            f"{fs.type} lies on one device",
            where=where,
            got=f"{devices_below(fs)} devices",
            allowed="one, or a stack that makes one of them, such as stack: [{layer: md, level: raid1}]; "
            "btrfs, f2fs and zfs take several",
        )
    if fs.pmbd and fs.stack:
        raise ParameterError(
            "a device of the pmbd module takes no layers",
            where=f"{where}.stack",
            got=fs.stack[0].text,
            allowed="no stack",
        )


def _check_journal(fs: Filesystem, where: str) -> None:
    if fs.journal_image_bytes is not None and fs.journal_device is not None:
        raise ParameterError(
            "one external journal at most", where=where, got="journal_image and journal_device", allowed="one of them"
        )
    if fs.journal_device is not None and fs.journal_device in fs.devices:
        raise ParameterError(
            "an external journal needs a device of its own",
            where=f"{where}.journal_device",
            got=fs.journal_device,
            allowed="another scratch device of the box file",
        )


def programs(fs: Filesystem) -> tuple[Program, ...]:
    """Return the programs that the backing of this file system needs."""
    loop = (LOSETUP,) if fs.images_bytes else ()
    guard = GUARD_PROGRAMS if fs.scratch else ()
    return (*loop, *guard, *layer_programs(fs))  # modprobe is there wherever pmbd was found by modinfo


def has_journal(fs: Filesystem) -> bool:
    """Return whether it has an external journal."""
    return fs.journal_image_bytes is not None or fs.journal_device is not None


def members(fs: Filesystem) -> tuple[str, ...]:
    """Return what stands for each device that a file system, or the lowest of its layers, lies on."""
    first = MEMBER if fs.stack else DEVICE
    return (first, *(f"{{member{number}}}" for number in range(2, devices_below(fs) + 1)))


def steps(fs: Filesystem, place: Place) -> tuple[Step, ...]:
    """Return the steps that make {device}, of several devices and layers where there are such, and {journal} where
    there is an external one."""
    names = [name.strip("{}") for name in members(fs)]
    device: tuple[Step, ...]
    if fs.device is not None:
        pairs = zip(place.scratch_devices, names, strict=True)
        scratch = (_scratch(stable, identity, name) for (stable, identity), name in pairs)
        device = (*scratch, *_worn(fs, place))
    elif fs.zram_bytes is not None:
        device = (_zram(fs, place, names[0]),)
    elif fs.pmbd is not None:
        device = _pmbd(fs, place)
    else:
        device = _images(fs, place, names)
    return (*device, *layer_steps(fs, place, members(fs)), *_journal(fs, place), *_realtime(fs, place))


def _images(fs: Filesystem, place: Place, names: Sequence[str]) -> tuple[Step, ...]:
    """Return the steps of all images; `place.image` is the first."""
    beside = place.image.removesuffix(".img")
    images = [place.image, *(f"{beside}-{number}.img" for number in range(2, len(names) + 1))]
    first = _image(fs, place, images[0], fs.image_bytes, names[0])
    others = (
        step
        for image, name in zip(images[1:], names[1:], strict=True)
        for step in _image(replace(fs, image_dir=None), place, image, fs.image_bytes, name)
    )
    return (*first, *others)


def _journal(fs: Filesystem, place: Place) -> tuple[Step, ...]:
    if fs.journal_device is not None:
        return (_scratch(place.journal, place.journal_id, "journal"),)
    if fs.journal_image_bytes is not None:
        beside = place.image.removesuffix(".img") + "-journal.img"
        return _image(replace(fs, image_dir=None), place, beside, fs.journal_image_bytes, "journal")
    return ()


def _realtime(fs: Filesystem, place: Place) -> tuple[Step, ...]:
    if fs.realtime_image_bytes is None:
        return ()
    beside = place.image.removesuffix(".img") + "-realtime.img"
    return _image(replace(fs, image_dir=None), place, beside, fs.realtime_image_bytes, "realtime")


def _image(fs: Filesystem, place: Place, image: str, size: int | None, binds: str) -> tuple[Step, ...]:
    directory = (made_directory(image.rpartition("/")[0], place, fs.image_dir),) if fs.image_dir else ()
    origin, undo = place.origin, ("rm", "-f", image)
    if origin.kept:
        # Timed: the first plan of a sweep can only guess how long a restore takes.
        blocks, why = "written" if fs.preallocate else "sparse", "restore the image of the state"
        copy = script_argv("image.sh", image, str(size), blocks, origin.kept)
        make = timed_step(copy, why=why, keep="restore.txt", undo=undo)
    else:
        blocks = "sparse" if not fs.preallocate else "written" if origin.written else "full"
        make = script_step("image.sh", image, str(size), blocks, undo=undo, why=f"the image, {_BLOCKS[blocks]}")
    attach = Step(
        argv=("losetup", "--find", "--show", f"--direct-io={'on' if fs.direct_io else 'off'}", image),
        why="a loop device on the image",
        undo=script_argv(DETACH, f"{{{binds}}}", image),
        binds=binds,
    )
    return (*directory, make, attach)


def _scratch(device: str | None, identity: str, binds: str) -> Step:
    assert device is not None
    return script_step(
        "guard.sh",
        device,
        "",
        identity,
        guard=True,
        binds=binds,
        keep=f"guard-{binds}.txt",
        undo=script_argv("settle.sh", device, identity),
        why="the device must be claimed for Mountlab, and nothing may use it",
    )


def _worn(fs: Filesystem, place: Place) -> tuple[Step, ...]:
    """Return the step that writes or discards a whole device, where a state asks for it."""
    origin = place.origin
    if origin.write:
        words, why = ["write", f"{origin.write:g}"], "write the whole device"
    elif origin.discard:
        words, why = ["discard"], "discard what the device holds"
    else:
        return ()
    step = format_step(fs, place, script_argv("wear.sh", DEVICE, *words), why=why, keep="wear.txt", role=StepRole.OTHER)
    return (replace(step, timeout_s=LONGEST_S),)


def _zram(fs: Filesystem, place: Place, binds: str) -> Step:
    size, why = str(fs.zram_bytes), "a compressed device in memory"
    back = ("zram", f"{{{binds}}}")
    return borrow_step(place, "zram", size, fs.zram_algorithm or "", back=back, why=why, binds=binds)


def _pmbd(fs: Filesystem, place: Place) -> tuple[Step, ...]:
    why = "the module that makes the device"
    load = borrow_step(place, "module", "pmbd", f"mode={fs.pmbd}", back=("module", "pmbd"), why=why)
    name = Step(argv=("readlink", "-e", PMBD_DEVICE), why="the device that the module made", binds="device")
    return (load, name)


def format_step(
    fs: Filesystem,
    place: Place,
    argv: tuple[str, ...],
    *,
    why: str,
    keep: str,
    role: StepRole = StepRole.FORMAT,
    journal: bool = False,
) -> Step:
    """Return a timed step for `argv`, which writes a file system or a mark. On scratch devices it runs below the guard,
    which checks each again just before; what layers offer was made a moment ago."""
    step = timed_step(argv, role, why=why, keep=keep)
    devices: tuple[tuple[str, str], ...]
    if journal:
        devices = ((str(place.journal), place.journal_id),) if fs.journal_device else ()
    else:
        devices = () if fs.stack or fs.device is None else place.scratch_devices
    return replace(step, argv=guarded(step.argv, devices))
