"""What lies below each file system, and whether those that are compared differ in one thing only."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mountlab.checks.asked import cache_state, reads_of
from mountlab.checks.base import Check, Doubt, Evidence, in_memory, standing
from mountlab.core.box_facts import BoxFacts
from mountlab.core.groups import by_key
from mountlab.core.model import Design, Filesystem, Sweep, Workload
from mountlab.core.numbers import listed
from mountlab.core.units import format_bytes
from mountlab.filesystems import is_made
from mountlab.filesystems.without_effect import kernel_version

SIMILAR_SIZE = 1.1
"""Sizes that differ by less than this factor do not count as different."""
_OF_DEVICES = ("mkfs options", "what it lies on", "journal")
"""What a file system in memory cannot have: its type says that already."""


def image_in_memory(evidence: Evidence) -> Iterator[Doubt]:
    """Loop images whose 'disk' is memory.

    The loop image lies on tmpfs or ramfs.
    """
    for name, fstype in evidence.backing_types.items():
        if fstype in ("tmpfs", "ramfs"):
            yield _in_memory(name, fstype)


def image_will_be_in_memory(sweep: Sweep, facts: BoxFacts) -> Iterator[Doubt]:
    """Loop images below a mount root that is memory."""
    fstype = facts.storage.mount_root_fstype
    for fs in sweep.filesystems if fstype in ("tmpfs", "ramfs") else ():
        if (fs.over or fs).image_bytes and not (fs.over or fs).image_dir:
            yield _in_memory(fs.name, str(fstype))


def _in_memory(name: str, fstype: str) -> Doubt:
    return Doubt.of_filesystem(
        name,
        f"its image lies on {fstype}, so no disk is measured. Set mount_root in the box file to a directory on a disk.",
    )


def loop_images(evidence: Evidence) -> Iterator[Doubt]:
    """File systems on a loop image share the disk with the file system that holds the image.

    The file system lives in an image file, so its figures include the file system below and the loop driver.
    """
    for fs in evidence.sweep.filesystems:
        if fs.image_bytes and fs.name in evidence.backing_types:
            backing = evidence.backing_types[fs.name]
            below = "a file system that the kernel does not show" if backing == "unknown" else backing
            size = format_bytes(fs.image_bytes)
            files = f"an image file of {size}" if fs.members == 1 else f"{fs.members} image files of {size} each"
            yield Doubt.of_filesystem(
                fs.name,
                f"it lives in {files} on {below}, so figures include that file "
                "system and the loop driver. To measure the disk alone, give the box a scratch device.",
            )


def uncapped_memory(sweep: Sweep, _: BoxFacts) -> Iterator[Doubt]:
    """ramfs has no size limit of its own.

    The file system is ramfs, with a size in the sweep. The plan enforces the size, the kernel does not.
    """
    for fs in sweep.filesystems:
        if fs.type == "ramfs" and fs.size_bytes:
            yield Doubt.of_filesystem(
                fs.name,
                f"ramfs has no size limit; Mountlab kept every workload below {format_bytes(fs.size_bytes)} "
                "by its plan.",
            )


def historic_names(sweep: Sweep, _: BoxFacts) -> Iterator[Doubt]:
    """File systems that no kernel of today knows by the name in the sweep.

    The type is shmfs. A tmpfs was measured.
    """
    for fs in sweep.filesystems:
        if fs.type == "shmfs":
            where = "mounted with that source" if fs.size_bytes else "the box's own, in a directory below /dev/shm"
            yield Doubt.of_filesystem(
                fs.name,
                "shmfs is the name that tmpfs had in kernel 2.4, and lives on in the source column of old "
                f"fstab lines: a tmpfs was measured, {where}.",
            )


# --- compared sides ---------------------------------------------------------------------------------------------------


def sides_differ(evidence: Evidence) -> Iterator[Doubt]:
    """File systems that differ from the baseline in more than one thing.

    A file system differs from the baseline in two or more of these: type, mount options, mkfs options, tunables, what
    it lies on, journal, size (by more than 10 %), disk, options added by the kernel. For a file system in memory the
    type includes what it lies on.
    """
    below = _lowest_devices(evidence)
    added = by_key((row.filesystem, row.kernel_says) for row in evidence.options if row.state == "added")
    yield from _differing(evidence.sweep, below, added)


def will_differ(sweep: Sweep, _: BoxFacts) -> Iterator[Doubt]:
    """File systems that the sweep asks to differ from the baseline in more than one thing."""
    yield from _differing(sweep, {}, {})


def _differing(sweep: Sweep, below: Mapping[str, tuple[str, ...]], added: Mapping[str, list[str]]) -> Iterator[Doubt]:
    baseline = next((fs for fs in sweep.filesystems if fs.name == sweep.baseline), None)
    for fs in sweep.filesystems if baseline and not sweep.imported else ():
        if baseline is None or fs is baseline:
            continue
        differences = list(_differences(fs, baseline, below))
        ours, theirs = (", ".join(sorted(added.get(side.name, ()))) or "none" for side in (fs, baseline))
        if fs.type == baseline.type and ours != theirs:
            differences.append(f"options that the kernel added by itself ({ours}; {theirs})")
        if len(differences) > 1:
            yield Doubt.of_filesystem(
                fs.name,
                f"it differs from the baseline {baseline.name} in {len(differences)} things: {'; '.join(differences)}. "
                "The ratio covers all of them together. To separate them, change one at a time.",
            )


def _differences(fs: Filesystem, baseline: Filesystem, below: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    """Yield what is not the same: 'mount options (noatime; none)'."""
    aspects = (_aspects(fs), _aspects(baseline))
    memory = in_memory(fs) or in_memory(baseline)
    for name, ours in aspects[0].items():
        if ours != aspects[1][name] and not (memory and name in _OF_DEVICES):
            yield f"{name} ({ours}; {aspects[1][name]})"
    sizes = [0 if memory else _size(side) for side in (fs, baseline)]
    if all(sizes) and max(sizes) > SIMILAR_SIZE * min(sizes):
        yield f"size ({'; '.join(format_bytes(size) for size in sizes)})"
    disks = [below.get(side.name, ()) for side in (fs, baseline)]
    if all(disks) and disks[0] != disks[1] and aspects[0]["what it lies on"] == aspects[1]["what it lies on"]:
        yield f"disk ({'; '.join(', '.join(names) for names in disks)})"


def _aspects(fs: Filesystem) -> dict[str, str]:
    lower = fs.over or fs
    journal = lower.journal_device or ("an image of its own" if lower.journal_image_bytes else "inside")
    return {
        "type": fs.type if not fs.over else f"{fs.type} over {lower.type}",
        "mount options": ",".join(sorted((*fs.options, *(lower.options if fs.over else ())))) or "none",
        "mkfs options": " ".join(lower.mkfs) or "none",
        "tunables": ", ".join(f"{key}={value}" for key, value in sorted(lower.tunables.items())) or "none",
        "what it lies on": _backing(lower),
        "journal": journal,
        "realtime device": "an image of its own" if lower.realtime_image_bytes else "none",
    }


def folios_differ(evidence: Evidence) -> Iterator[Doubt]:
    """tmpfs and a file system on a device keep files in pieces of another size in memory: warm reads tell that, too.

    A workload reads buffered, and not from a cold page cache. Files of the tmpfs lie in single pages and those of the
    other in large folios, or the other way round. The option `huge=` in effect and the setting `shmem_enabled` of
    transparent huge pages tell it of tmpfs, the version of the kernel of ext4 (since 6.16) and xfs (since 5.18). With
    `huge=never` tmpfs read at 0.36 of ext4's speed, with `huge=always` at 1.37.
    """
    sweep = evidence.sweep
    warm = any(_reads_memory(workload, sweep.design) for workload in sweep.workloads) and not sweep.imported
    pieces = {fs.name: _pieces(evidence, fs.name) for fs in (sweep.filesystems if warm else ())}
    on_devices = {name: piece for name, piece in pieces.items() if evidence.fstypes.get(name) != "tmpfs"}
    for name, ours in pieces.items():
        if ours is None or name in on_devices:
            continue
        others = [(other, piece) for other, piece in on_devices.items() if piece and piece.large != ours.large]
        if others:
            by_words = by_key((piece.words, other) for other, piece in others)
            theirs = listed([f"{words} of {listed(names)}" for words, names in by_words.items()])
            yield Doubt.of_filesystem(
                name,
                f"in memory its files lie in {ours.words}, beside {theirs}. Larger pieces are copied faster, so ratios "
                "of warm reads tell that, too. Compare with huge=always (or huge=never) beside it.",
            )


@dataclass(frozen=True)
class _Pieces:
    """What the files of a file system lie in, in memory."""

    large: bool
    why: str

    @property
    def words(self) -> str:
        return f"{'large folios' if self.large else 'single pages'} ({self.why})"


_FOLIOS_SINCE = {"ext4": (6, 16), "xfs": (5, 18)}
"""Type of a file system to the first Linux in which its files have large folios."""


def _pieces(evidence: Evidence, name: str) -> _Pieces | None:
    """Return what files lie in; None where it is not known."""
    fstype, options = evidence.fstypes.get(name), evidence.in_effect.get(name, {})
    enabled, release = evidence.facts.memory.huge_files, evidence.facts.kernel.release or ""
    if not enabled or fstype is None:
        return None
    if fstype == "tmpfs":
        huge = options.get("huge", "never")
        large = enabled == "force" or (huge in ("always", "within_size") and enabled != "deny")
        return _Pieces(large, f"huge={huge}, shmem_enabled: {enabled}")
    since, kernel = _FOLIOS_SINCE.get(fstype), kernel_version(release)
    if since is None or not kernel:
        return None
    journal = options.get("data") == "journal"
    why = "data=journal" if journal else f"{fstype} of Linux {release}; large since {since[0]}.{since[1]}"
    return _Pieces(kernel >= since and not journal, why)


def _reads_memory(workload: Workload, design: Design) -> bool:
    buffered = any(not stream.direct for stream in reads_of(workload))
    return buffered and cache_state(workload, design) != "cold"


def made_once(sweep: Sweep, _: BoxFacts) -> Iterator[Doubt]:
    """File systems that are compared, and were made once for all blocks: how one making differs from the next is
    unknown.

    `fresh_filesystem: never`, two blocks or more, and two file systems or more.
    """
    design = sweep.design
    made = [fs.name for fs in sweep.filesystems if is_made(fs)]
    if design.fresh_filesystem == "never" and design.repeats > 1 and len(sweep.filesystems) > 1 and made:
        yield Doubt.of_run(
            f"{', '.join(made)}: made once for all blocks (fresh_filesystem: never). How one making of a file system "
            "differs from the next (its place on the device, what was allocated where) is then part of every ratio "
            "between file systems, and of no interval: more blocks do not help. A small difference may be one of two "
            "makings. Set fresh_filesystem: block; `mountlab plan` tells what that costs."
        )


def _backing(fs: Filesystem) -> str:
    if in_memory(fs):
        return "memory"
    parts = [layer.text for layer in fs.stack] + [vdev.text for vdev in fs.vdevs]
    layers = "".join(f", {part}" for part in parts)
    if fs.image_bytes:
        full = "" if fs.preallocate else ", sparse"
        count = "an image" if fs.members == 1 else f"{fs.members} images"
        cached = "" if fs.direct_io else ", through the cache"
        return f"{count} in {fs.image_dir or 'the mount root'}{full}{cached}{layers}"
    if fs.zram_bytes:
        return f"zram ({fs.zram_algorithm or 'default'}){layers}"
    if fs.device:
        return f"{'devices' if fs.more_devices else 'device'} {', '.join(fs.devices)}{layers}"
    return fs.pmbd or "a directory"


def _size(fs: Filesystem) -> int:
    lower = fs.over or fs
    return lower.size_bytes or lower.image_bytes or lower.zram_bytes or 0


def _lowest_devices(evidence: Evidence) -> dict[str, tuple[str, ...]]:
    """File system name to the names of the lowest devices below it."""
    devices: dict[str, tuple[str, ...]] = {}
    for mount, name in evidence.trials[["mount", "filesystem"]].drop_duplicates().itertuples(index=False):
        for lowest in evidence.levels.get(mount, ())[-1:]:
            devices[name] = tuple(sorted(evidence.device_names.get(device, device) for device in lowest))
    return devices


def _huge_pages_unknown(evidence: Evidence) -> str | None:
    """Blind only where a tmpfs is compared, and the box does not tell when it uses huge pages."""
    tmpfs = "tmpfs" in evidence.fstypes.values() and len(evidence.sweep.filesystems) > 1
    huge = evidence.facts.memory.huge_files
    return "the box does not tell when tmpfs has huge pages (shmem_enabled)" if tmpfs and not huge else None


CHECKS = (
    Check(
        "image-in-memory",
        image_in_memory,
        "Set `mount_root` of the box, or `image_dir`, to a directory on a disk.",
        foresee=image_will_be_in_memory,
    ),
    Check("loop-image", loop_images, "To measure the disk alone, give the box a scratch device.", severities=("note",)),
    standing(
        "size-not-enforced",
        uncapped_memory,
        "Nothing: the plan keeps every workload below the size. On your own machine mind that ramfs does not.",
        severities=("note",),
    ),
    standing("historic-name", historic_names, "Write tmpfs.", severities=("note",)),
    Check(
        "folios-differ",
        folios_differ,
        "Compare tmpfs with `huge=always` and with `huge=never`.",
        severities=("note",),
        blind=_huge_pages_unknown,
    ),
    standing("made-once", made_once, "Set `fresh_filesystem: block`; the plan tells what it costs."),
    Check(
        "sides-differ",
        sides_differ,
        "Change one thing at a time where you want to know which of them it was.",
        severities=("note", "warning"),
        foresee=will_differ,
    ),
)
