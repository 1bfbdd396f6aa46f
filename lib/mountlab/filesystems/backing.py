"""What a file system on a block device lies on: a loop image that we make, a scratch device that the box's owner gave
us, compressed memory, or a device of the pmbd module. Each binds {device}; an external journal binds {journal}."""

from __future__ import annotations

from dataclasses import replace

from mountlab.core.errors import ParameterError
from mountlab.core.model import Filesystem, Place, Program, Step, StepRole, everywhere
from mountlab.core.shell import script_argv
from mountlab.core.units import format_bytes
from mountlab.filesystems.base import borrow_step, script_step, timed_step
from mountlab.filesystems.directory import made_directory

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
JOURNAL = "{journal}"
"""Placeholders for the device's name as losetup, the guard or the kernel prints it, not its stable name (a link)."""
KEYS = frozenset({"image", "image_dir", "direct_io", "preallocate", "device", "zram", "zram_algorithm", "pmbd"})
JOURNAL_KEYS = frozenset({"journal_image", "journal_device"})
PMBD_DEVICE = "/dev/pma"
LONGEST_S = 24 * 3600.0
"""How long a whole device may take to be written, or a file system to be aged."""
DETACH = "detach.sh"
"""Name of the script that undoes a loop device, as an argument of the command."""


_BLOCKS = {"sparse": "sparse", "full": "all its blocks allocated beforehand", "written": "all its blocks written"}


def check(fs: Filesystem, *, smallest: int, where: str) -> None:
    """Raise ParameterError unless exactly one backing is given, and it is large enough."""
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
    for key, size in (("image", fs.image_bytes), ("zram", fs.zram_bytes)):
        if size is not None and size < smallest:
            raise ParameterError(
                f"too small for {fs.type}",
                where=f"{where}.{key}",
                got=format_bytes(float(size)),
                allowed=f"{format_bytes(float(smallest))} or more",
            )
    _check_journal(fs, where)


def _check_journal(fs: Filesystem, where: str) -> None:
    if fs.journal_image_bytes is not None and fs.journal_device is not None:
        raise ParameterError(
            "one external journal at most", where=where, got="journal_image and journal_device", allowed="one of them"
        )
    if fs.journal_device is not None and fs.journal_device == fs.device:
        raise ParameterError(
            "an external journal needs a device of its own",
            where=f"{where}.journal_device",
            got=fs.journal_device,
            allowed="another scratch device of the box file",
        )


def programs(fs: Filesystem) -> tuple[Program, ...]:
    """Return the programs that the backing of this file system needs."""
    loop = (LOSETUP,) if fs.image_bytes or fs.journal_image_bytes else ()
    guard = GUARD_PROGRAMS if fs.device or fs.journal_device else ()
    return (*loop, *guard)  # modprobe is there wherever pmbd was found by modinfo


def has_journal(fs: Filesystem) -> bool:
    """Return whether it has an external journal."""
    return fs.journal_image_bytes is not None or fs.journal_device is not None


def steps(fs: Filesystem, place: Place) -> tuple[Step, ...]:
    """Return the steps that make {device}, and {journal} where there is an external one."""
    device: tuple[Step, ...]
    if fs.device is not None:
        device = (_scratch(place.device, place.device_id, "device"), *_worn(fs, place))
    elif fs.zram_bytes is not None:
        device = (_zram(fs, place),)
    elif fs.pmbd is not None:
        device = _pmbd(fs, place)
    else:
        device = _image(fs, place, place.image, fs.image_bytes, "device")
    return (*device, *_journal(fs, place))


def _journal(fs: Filesystem, place: Place) -> tuple[Step, ...]:
    if fs.journal_device is not None:
        return (_scratch(place.journal, place.journal_id, "journal"),)
    if fs.journal_image_bytes is not None:
        beside = place.image.removesuffix(".img") + "-journal.img"
        return _image(replace(fs, image_dir=None), place, beside, fs.journal_image_bytes, "journal")
    return ()


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


def _zram(fs: Filesystem, place: Place) -> Step:
    size, why = str(fs.zram_bytes), "a compressed device in memory"
    return borrow_step(place, "zram", size, fs.zram_algorithm or "", back=("zram", DEVICE), why=why, binds="device")


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
    """Return a timed step for `argv`, which writes a file system or a mark. On a scratch device it runs below the
    guard, which checks the device again just before."""
    step = timed_step(argv, role, why=why, keep=keep)
    scratch = place.journal if journal else place.device
    if (fs.journal_device if journal else fs.device) is None:
        return step
    assert scratch is not None
    identity = place.journal_id if journal else place.device_id
    return replace(step, argv=script_argv("guard.sh", scratch, "", identity, *step.argv))
