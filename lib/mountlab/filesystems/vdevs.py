"""The parts of a pool of ZFS: which there are, how many devices each takes, and how much they hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from mountlab.core.errors import ParameterError
from mountlab.core.model import Filesystem
from mountlab.core.units import GIB, KIB, MIB
from mountlab.core.vdev import Vdev
from mountlab.filesystems.stack import devices_below

KINDS = {"stripe": 1, "mirror": 2, "raidz1": 2, "raidz2": 3, "raidz3": 4}
"""How data lies on devices, to the fewest devices (zpoolconcepts(7))."""
USES = {
    "log": ("stripe", "mirror"),
    "cache": (),
    "special": ("stripe", "mirror"),
    "dedup": ("stripe", "mirror"),
    "spare": (),
}
"""What a pool uses devices for beside data, to the kinds that it takes for that."""
_PARITY = {"raidz1": 1, "raidz2": 2, "raidz3": 3}
_LABELS = 5 * MIB
"""Of each device: four labels and the boot block are 4.5 MiB (ZFS On-Disk Specification, 1.2)."""
_METASLABS = 15 / 16
"""A device has at least 16 metaslabs, and what is no whole one at its end is not used (vdev_metaslab_set_size)."""
_LARGEST_SLOP, _SMALLEST_SLOP = 128 * GIB, 128 * MIB
_METADATA = 0.9


def layout(fs: Filesystem) -> tuple[Vdev, ...]:
    """Return the parts of its pool; without `vdevs` all devices are striped."""
    return fs.vdevs or (Vdev("stripe", member_names(fs)),)


def member_names(fs: Filesystem) -> tuple[str, ...]:
    """Return the names by which a sweep gives devices to parts of the pool: of scratch devices, else numbers."""
    if fs.devices and not fs.stack:
        return fs.devices
    return tuple(map(str, range(1, 2 if fs.stack else devices_below(fs) + 1)))


def check_layout(fs: Filesystem, *, where: str) -> None:
    """Raise ParameterError unless the parts take each device once, and as many as each needs."""
    names, vdevs = member_names(fs), layout(fs)
    used = [member for vdev in vdevs for member in vdev.members]
    for at, vdev in enumerate(vdevs):
        part = f"{where}.vdevs[{at}]"
        for member in (member for member in vdev.members if member not in names):
            raise _refused(fs, "the pool has no such device", part, member, ", ".join(names))
        least = KINDS[vdev.kind]
        if len(vdev.members) < least:
            got = f"{len(vdev.members)}: {', '.join(vdev.members)}"
            raise _refused(fs, f"{vdev.kind} takes {least} devices or more", part, got, f"{least} or more")
    for name in names:
        if used.count(name) != 1:
            got = f"{name} {'in no part' if not used.count(name) else f'{used.count(name)} times'}"
            raise _refused(fs, "each device of a pool is in one part of it", f"{where}.vdevs", got, ", ".join(names))
    if all(vdev.use for vdev in vdevs):
        uses = ", ".join(dict.fromkeys(vdev.use for vdev in vdevs))
        raise _refused(fs, "a pool needs devices for data", f"{where}.vdevs", f"{uses} alone", ", ".join(KINDS))


def _refused(fs: Filesystem, what: str, where: str, got: str, allowed: str) -> ParameterError:
    named = "the devices of the entry by name" if fs.devices and not fs.stack else "its images by number, from 1"
    next_step = f"vdevs takes {named}; such as {{mirror: [{', '.join(member_names(fs)[:2])}]}}"
    return ParameterError(what, where=where, got=got, allowed=allowed, next_step=next_step)


def words(fs: Filesystem) -> tuple[str, ...]:
    """Return the parts as `zpool create` takes them, each device by its number from 1."""
    number = {name: str(at) for at, name in enumerate(member_names(fs), start=1)}
    return tuple(_words(sorted(layout(fs), key=lambda vdev: ["", *USES].index(vdev.use)), number))


def _words(vdevs: Sequence[Vdev], number: dict[str, str]) -> Iterator[str]:
    use = ""
    for vdev in vdevs:
        if vdev.use != use:
            use = vdev.use
            yield use
        if vdev.kind != "stripe":
            yield vdev.kind
        yield from (number[member] for member in vdev.members)


_LEAF = re.compile(r"/(\d+)\Z")
_GROUP = re.compile(r"(mirror|raidz[123])-\d+\Z")
_HEADINGS = {"logs": "log", "cache": "cache", "special": "special", "dedup": "dedup", "spares": "spare"}


def shown_layout(status: str) -> list[tuple[str, str, frozenset[str]]]:
    """Return use, kind and numbers of the devices of each part that `zpool status -P` shows; stripes of one use are
    one part."""
    parts: dict[tuple[str, str, str], set[str]] = {}
    use, group = "", ("stripe", "")
    lines = iter(status.splitlines())
    for line in lines:
        if line.split()[:2] == ["NAME", "STATE"]:
            break
    for line in lines:
        name = (line.split() or [""])[0]
        if name == "errors:":
            break
        if name in _HEADINGS:
            use, group = _HEADINGS[name], ("stripe", "")
        elif match := _GROUP.match(name):
            group = (match[1], name)
        elif leaf := _LEAF.search(name):
            inside = line.lstrip("\t").startswith("    ")
            kind, which = group if inside else ("stripe", "")
            parts.setdefault((use, kind, which), set()).add(leaf[1])
    return [(use, kind, frozenset(members)) for (use, kind, _), members in parts.items()]


def asked_layout(fs: Filesystem) -> dict[str, tuple[str, str, frozenset[str]]]:
    """Return each part of the pool as the sweep gives it, to its use, kind and numbers of devices."""
    number = {name: str(at) for at, name in enumerate(member_names(fs), start=1)}
    return {
        vdev.text: (vdev.use, vdev.kind, frozenset(number[member] for member in vdev.members)) for vdev in layout(fs)
    }


def is_shown(asked: tuple[str, str, frozenset[str]], shown: Sequence[tuple[str, str, frozenset[str]]]) -> bool:
    """Return whether a part that was asked for is among those shown; stripes of one use are shown as one."""
    use, kind, members = asked
    return any(use == other and kind == its and (members == those if kind != "stripe" else members <= those)
               for other, its, those in shown)  # fmt: skip


def holds(fs: Filesystem, each: int, *, record: int, ashift: int) -> int:
    """Return how many bytes may be written into a pool on devices of `each` bytes, at least: without labels, parity,
    what ZFS keeps back (spa_get_slop_space), and a tenth for metadata."""
    usable = int(max(0, each - _LABELS) * _METASLABS)
    raw = sum(_share(vdev, record, ashift) * usable for vdev in layout(fs) if not vdev.use)
    slop = max(min(raw / 32, _LARGEST_SLOP), min(raw / 2, _SMALLEST_SLOP))
    return int((raw - slop) * _METADATA)


def _share(vdev: Vdev, record: int, ashift: int) -> float:
    """Return how many times the size of one device a part holds. Of raidz what a record of this size takes, padded
    to a multiple of its parity and one (vdev_raidz_asize)."""
    count = len(vdev.members)
    if vdev.kind not in _PARITY:
        return 1.0 if vdev.kind == "mirror" else float(count)
    parity, sectors = _PARITY[vdev.kind], max(1, record >> ashift)
    rows = -(-sectors // (count - parity))
    total = sectors + parity * rows
    return count * sectors / (-(-total // (parity + 1)) * (parity + 1))


DEFAULT_RECORD = 128 * KIB
