"""zfs: a pool on one device or several, and a dataset in it.

The pool is made like a layer (layer.sh): written down before it is made, known by a comment in its labels that holds
the UUID of its mount, and undone by what was written down.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import ParameterError
from mountlab.core.findings import OptionEvidence, OptionState
from mountlab.core.model import Filesystem, Place, Program, Step, StepRole
from mountlab.core.shell import script_argv
from mountlab.core.state import State
from mountlab.core.units import MIB, format_bytes, kernel_bytes
from mountlab.filesystems import backing
from mountlab.filesystems.base import MOUNT, Family, borrow_step, directory_step, mount_step, script_step, timed_step
from mountlab.filesystems.cache_counters import ARCSTATS
from mountlab.filesystems.evidence import parts_by_heading
from mountlab.filesystems.guard import MAKES_DEVICES, guarded, uuid_for
from mountlab.filesystems.layers.base import name_of
from mountlab.filesystems.stack import LONGEST_S, top_bytes
from mountlab.filesystems.superblock import NOTHING, Judgement
from mountlab.filesystems.vdevs import (
    DEFAULT_RECORD,
    asked_layout,
    check_layout,
    holds,
    is_shown,
    layout,
    shown_layout,
    words,
)
from mountlab.filesystems.zfs_properties import check_property, same_value
from mountlab.tools.own_script import ZFS, ZPOOL

POOL_FILE = "pool.txt"
"""Raw output: what zpool, zfs and the module show of the pool after it is mounted."""
_SMALLEST_DEVICE, _SMALLEST_ARC = 64 * MIB, 64 * MIB
"""What ZFS itself takes at least (SPA_MINDEVSIZE, MIN_ARC_MAX)."""


class Zfs(Family):
    """ZFS: a pool of devices, with copies or parity by itself, and one dataset in it. What it caches in memory (ARC)
    is emptied before a cold trial by export and import of the pool."""

    type = "zfs"
    expected = False
    cache_counters = (ARCSTATS,)
    controlled = False
    """`zfs get` says itself which property is a default."""
    keys = frozenset({"mkfs", "options", "vdevs", "arc"}) | (backing.KEYS - {"zram", "zram_algorithm", "pmbd"})
    kernel_hint = (
        "on the box, as root; Debian, with contrib in its sources: apt-get install linux-headers-$(uname -r) zfs-dkms "
        "zfsutils-linux, then modprobe zfs; Ubuntu: apt-get install zfsutils-linux. Or in a virtual box with zfs: "
        "`with: [zfs]` in its box file"
    )

    @property
    def programs(self) -> tuple[Program, ...]:
        return (MOUNT, ZPOOL, ZFS)

    def needed_programs(self, fs: Filesystem) -> tuple[Program, ...]:
        return (*self.programs, *backing.programs(fs))

    def check(self, fs: Filesystem, *, where: str) -> None:
        backing.check(fs, smallest=_SMALLEST_DEVICE, where=where, takes_several=True)
        if fs.image_bytes is not None and not fs.stack and fs.image_bytes < _SMALLEST_DEVICE:
            raise ParameterError(
                "too small for zfs",
                where=f"{where}.image",
                got=f"{format_bytes(float(fs.image_bytes))} each",
                allowed=f"{format_bytes(float(_SMALLEST_DEVICE))} or more",
            )
        check_layout(fs, where=where)
        list(_pool_words(fs.mkfs, f"{where}.mkfs"))
        for option in fs.options:
            check_property(option, pool=False, where=f"{where}.options")
        if fs.arc_bytes is not None and fs.arc_bytes < _SMALLEST_ARC:
            raise ParameterError(
                "too small for the cache of zfs",
                where=f"{where}.arc",
                got=format_bytes(float(fs.arc_bytes)),
                allowed=f"{format_bytes(float(_SMALLEST_ARC))} or more, and less than the memory of the box",
            )

    def steps(self, fs: Filesystem, place: Place) -> tuple[Step, ...]:
        return (
            *backing.steps(fs, place),
            self._pool_step(fs, place),
            *self._arc_steps(fs, place),
            directory_step(place.mountpoint),
            mount_step(replace(fs, options=()), self.type, f"{pool_name(place)}/data", place),
            script_step(
                MAKES_DEVICES, "show", place.run_dir, pool_uuid(place), why="read back what the pool is", keep=POOL_FILE
            ),
        )

    def state_commands(self, place: Place) -> tuple[tuple[str, ...], ...]:
        return (("zpool", "status", pool_name(place)),)

    def _pool_step(self, fs: Filesystem, place: Place) -> Step:
        on_scratch = fs.device is not None and not fs.stack
        devices = ("{device}",) if fs.stack else backing.members(fs)
        uuid = pool_uuid(place)
        argv = script_argv(
            MAKES_DEVICES,
            "make",
            place.run_dir,
            self.type,
            uuid,
            "marked" if on_scratch else "images",
            *fs.mkfs,
            "+",
            *fs.options,
            "+",
            *words(fs),
            "--",
            *devices,
        )
        undo = script_argv(MAKES_DEVICES, "back", place.run_dir, uuid)
        made = timed_step(argv, StepRole.FORMAT, why=f"make the pool of {fs.name}", keep="mkfs.txt", undo=undo)
        return replace(made, argv=guarded(made.argv, place.scratch_devices if on_scratch else ()), timeout_s=LONGEST_S)

    def _arc_steps(self, fs: Filesystem, place: Place) -> tuple[Step, ...]:
        if fs.arc_bytes is None:
            return ()
        why = "bound the cache of zfs for the time of the mount"
        return (borrow_step(place, "arc", str(fs.arc_bytes), back=("arc", "zfs"), why=why),)

    def refuses_state(self, fs: Filesystem, state: State) -> str | None:
        return "a pool may lie on several devices, and write wears one: not with zfs" if state.worn else None

    def capacity_bytes(self, fs: Filesystem) -> int | None:
        if fs.image_bytes is None:
            return None
        each = top_bytes(fs, fs.image_bytes) if fs.stack else fs.image_bytes
        return holds(fs, each, record=_record_bytes(fs), ashift=_ashift(fs))

    def foreseen(self, fs: Filesystem, facts: BoxFacts) -> dict[str, str]:
        return {option: why for option in fs.options if (why := _idle(fs, option))}

    def judge(self, fs: Filesystem, files: Mapping[str, str]) -> list[OptionEvidence]:
        """Return each property, vdev and bound, and what zpool, zfs and the module show of it."""
        parts = parts_by_heading(files.get(POOL_FILE, ""))
        rows = (
            *(("mount", option, _dataset(fs, option, parts)) for option in fs.options),
            *(("mkfs", word, judgement) for word, judgement in _of_pool(fs, parts)),
            *(("backing", option, judgement) for option, judgement in _backing(fs, parts)),
        )
        return [
            OptionEvidence(filesystem=fs.name, option=option, kind=kind, state=state, kernel_says=says)  # type: ignore[arg-type]
            for kind, option, (state, says) in rows
        ]


def pool_uuid(place: Place) -> str:
    """Return what the pool of a mount is marked with."""
    return uuid_for("", place.uuid, "pool")


def pool_name(place: Place) -> str:
    """Return the name of the pool of a mount."""
    return name_of(pool_uuid(place))


def commands(fs: Filesystem, devices: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return the commands by which a person makes such a pool on these devices."""
    key = ("keyformat=passphrase",) if _setting(fs, "encryption") not in ("", "off") else ()
    options = (word for option in (*key, *fs.options) for word in ("-o", option))
    vdevs = (devices[int(word) - 1] if word.isdecimal() else word for word in words(fs))
    return (
        ("zpool", "create", *fs.mkfs, "-O", "mountpoint=none", "POOL", *vdevs),
        ("zfs", "create", "-o", "mountpoint=legacy", *options, "POOL/data"),
    )


def _pool_words(given: tuple[str, ...], where: str) -> Iterator[tuple[str, str]]:
    """Yield letter and property of each setting of `zpool create`. Raises ParameterError for what Mountlab does not
    pass on."""
    pending = iter(given)
    for word in pending:
        if word == "-d":
            yield word, ""
            continue
        setting = next(pending, "") if word in ("-o", "-O") else ""
        if not setting:
            raise ParameterError(
                "not options for zpool create",
                where=where,
                got=word,
                allowed="-o PROPERTY=VALUE (of the pool), -O PROPERTY=VALUE (of its dataset), -d (no features)",
                next_step="name what the pool lies on by image or device, and its parts by vdevs",
            )
        check_property(setting, pool=word == "-o", where=where)
        if setting.startswith("encryption="):
            raise ParameterError(
                "Mountlab gives a key to the dataset of a pool, and to no other",
                where=where,
                got=f"{word} {setting}",
                allowed=f"options: [{setting}]",
            )
        yield word, setting


def _setting(fs: Filesystem, name: str, letter: str = "-O") -> str:
    """Return the value of a property that the sweep sets; '' where it sets none."""
    pool = [setting for given, setting in _pool_words(fs.mkfs, "mkfs") if given == letter]
    given = [*pool, *(fs.options if letter == "-O" else ())]
    return next((word.partition("=")[2] for word in reversed(given) if word.startswith(f"{name}=")), "")


def _record_bytes(fs: Filesystem) -> int:
    return kernel_bytes(_setting(fs, "recordsize").lower()) or DEFAULT_RECORD


def _ashift(fs: Filesystem) -> int:
    return int(_setting(fs, "ashift", "-o") or 12)


def _idle(fs: Filesystem, option: str) -> str:
    """Return why a property has nothing to do in this pool; '' where it has."""
    name, _, value = option.partition("=")
    uses = {vdev.use for vdev in layout(fs)}
    if name == "special_small_blocks" and value != "0" and "special" not in uses:
        return "the pool has no special device, which alone takes small blocks"
    if name == "secondarycache" and "cache" not in uses:
        return "the pool has no cache device, which this property is about"
    if name == "relatime" and _setting(fs, "atime") == "off":
        return "atime=off: no time of access is written at all"
    if name == "logbias" and _setting(fs, "sync") == "disabled":
        return "sync=disabled: nothing goes through the log"
    return ""


# --- what is shown ----------------------------------------------------------------------------------------------------


def _table(text: str) -> dict[str, tuple[str, str]]:
    """Return property to value and source, from `zfs get -Hp all` or `zpool get -Hp all`."""
    rows = (line.split("\t") for line in text.splitlines())
    return {row[1]: (row[2], row[3]) for row in rows if len(row) == 4}


def _dataset(fs: Filesystem, option: str, parts: Mapping[str, str]) -> Judgement:
    name, _, value = option.partition("=")
    shown, source = _table(parts.get("dataset", "")).get(name, ("", ""))
    if not shown:
        return NOTHING
    says = f"zfs get: {shown} (source: {source})"
    if not same_value(name, value, shown):
        return ("changed", says)
    why = _idle(fs, option)
    return ("without effect", f"{says}, but without effect here: {why}") if why else ("in effect", says)


def _of_pool(fs: Filesystem, parts: Mapping[str, str]) -> Iterator[tuple[str, Judgement]]:
    pool, dataset = _table(parts.get("pool", "")), _table(parts.get("dataset", ""))
    own = {option.partition("=")[0] for option in fs.options}
    for letter, setting in _pool_words(fs.mkfs, "mkfs"):
        name, _, value = setting.partition("=")
        if letter == "-d":
            features = {key: shown for key, (shown, _) in pool.items() if key.startswith("feature@")}
            asked = {given.partition("=")[0] for flag, given in _pool_words(fs.mkfs, "mkfs") if flag == "-o"}
            on = [key for key, shown in features.items() if shown != "disabled" and key not in asked]
            state: OptionState = "changed" if on else "in effect"
            yield "-d", (state, f"zpool get: {', '.join(on) or 'every feature is disabled'}") if features else NOTHING
            continue
        shown, source = (pool if letter == "-o" else dataset).get(name, ("", ""))
        says = f"{'zpool' if letter == '-o' else 'zfs'} get: {shown} (source: {source})"
        if not shown:
            judgement = NOTHING
        elif letter == "-O" and name in own:
            judgement = ("ignored", f"{says}: options sets it for the dataset")
        else:
            judgement = ("in effect" if same_value(name, value, shown) else "changed", says)
        yield f"{letter} {setting}", judgement


def _backing(fs: Filesystem, parts: Mapping[str, str]) -> Iterator[tuple[str, Judgement]]:
    status = parts.get("status", "")
    shown = shown_layout(status)
    for text, asked in asked_layout(fs).items() if fs.vdevs else ():
        there: OptionState = "in effect" if is_shown(asked, shown) else "changed"
        yield f"vdev {text}", (there, f"zpool status: {_in_words(shown)}") if shown else NOTHING
    if trouble := pool_trouble(status):
        yield "pool: ONLINE", ("changed", f"zpool status: {trouble}")
    module = dict(line.split(" ", 1) for line in parts.get("arc", "").splitlines() if " " in line)
    if fs.arc_bytes is not None:
        most = module.get("c_max", "")
        state: OptionState = "in effect" if most == str(fs.arc_bytes) else "changed"
        yield f"arc: {fs.arc_bytes}", (state, f"arcstats: c_max {most}") if most else NOTHING


def _in_words(shown: list[tuple[str, str, frozenset[str]]]) -> str:
    return ", ".join(f"{use + ' ' if use else ''}{kind} of {' '.join(sorted(members))}" for use, kind, members in shown)


def pool_trouble(status: str) -> str:
    """Return what `zpool status` shows of a pool that is not whole, or that is being repaired; '' of a clean one."""
    fields = dict(line.strip().split(": ", 1) for line in status.splitlines() if line.lstrip().find(": ") > 0)
    state, scan = fields.get("state", ""), fields.get("scan", "")
    words_ = [state] if state not in ("", "ONLINE") else []
    words_ += [scan.partition(" since ")[0]] if " in progress" in scan else []
    return ", ".join(words_)
