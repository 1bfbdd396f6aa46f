"""Did the device below do other things while the trials ran?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from mountlab.checks.base import SIDES, Check, Doubt, Evidence, from_counters, in_memory, of_trials
from mountlab.checks.layers import is_of_loops, level_sums
from mountlab.checks.shape import drifting
from mountlab.checks.traffic import bytes_of, least_bytes
from mountlab.core.box_facts import BoxFacts
from mountlab.core.box_facts.storage import DriveSensor
from mountlab.core.groups import by_key
from mountlab.core.model import Cell, Filesystem, Sweep
from mountlab.core.units import KIB, MIB, format_bytes
from mountlab.filesystems import is_in_place
from mountlab.filesystems.counters import Around
from mountlab.filesystems.evidence import DeviceLevels, every_device
from mountlab.programs import TOOLS

FOREIGN_SHARE, FOREIGN_BYTES = 0.25, 16 * MIB
"""Bytes on the device that are not the trial's: beyond this share of the trial's own, and beyond what a journal, a log
or an update of access times takes."""
FLUSH_BYTES = 16 * KIB
"""What a file system may write for itself at a flush of an image that it holds: on ext4 and xfs about three blocks of
its journal or log."""
DISCARDED_BYTES = MIB
OF_ANYBODY = re.compile(r"blocked for more than|soft lockup|hard LOCKUP|Out of memory|rcu.*stall")
"""Lines of the kernel's log that tell of trouble for whatever ran."""
EXT = ("ext2", "ext3", "ext4")
LAZY = re.compile(r"lazy_(itable|journal)_init(=1)?(,|$)")


def other_io(evidence: Evidence) -> Iterator[Doubt]:
    """Bytes on the device that the trial did not move.

    The lowest device moved more than 16 MiB, and more than a quarter of the trial's bytes, that were not the trial's.
    Below a loop device that is what the loop device did not ask for, but for 16 KiB for each of its flushes: then the
    file system that holds the image writes its own journal. Otherwise it is what moved in the direction in which the
    tool moved nothing; with md and device mapper, on the least busy level. What neighbours moved on the device is
    wanted, and does not count.
    """
    for cell, trials in evidence.trials_with_counters():
        foreign = {trial_id: size for trial_id, _ in trials if (size := _foreign_bytes(evidence, trial_id))}
        if foreign:
            yield Doubt.of_cell(
                cell,
                f"{of_trials(list(foreign), trials)} the device moved up to "
                f"{format_bytes(float(max(foreign.values())))} that were not the trial's: other programs took "
                "bandwidth from it. Stop them, or give the box a scratch device.",
            )


def _foreign_bytes(evidence: Evidence, trial_id: str) -> int:
    """Return what the devices moved that was not the trial's; 0 where it is within what a file system does for itself.

    Below loop devices, what these did not ask for. Without them, what moved in the direction in which the tool moved
    nothing: in the other, the journal and other programs look the same, and a RAID writes more than it is asked to.
    """
    levels, traffic = evidence.levels_of(trial_id), evidence.traffic.get(trial_id, {})
    compared = _around_loops(levels)
    sums = level_sums(traffic, compared or levels)
    if not sums or (compared and len(sums) < 2) or evidence.mounts[trial_id] in evidence.buffered_loops:
        return 0
    beside, below = evidence.neighbours_on(trial_id, same=True), evidence.neighbours_on(trial_id, same=False)
    moving = [side for side in SIDES if evidence.moved.get((trial_id, side))]
    if compared:
        loops, lower = sums
        foreign = sum(max(0, bytes_of(lower, side) - bytes_of(loops, side)) for side in SIDES)
        foreign -= FLUSH_BYTES * loops.flushes + sum(load.read_bytes + load.write_bytes for load in below)
        ours = loops.read + loops.written
    else:
        idle = [side for side in SIDES if side not in moving] if moving else []
        foreign = sum(least_bytes(sums, side) for side in idle)
        foreign -= sum(load.moved(side) for load in (*beside, *below) for side in idle)
        ours = sum(least_bytes(sums, side) for side in moving)
    return foreign if foreign > max(FOREIGN_BYTES, FOREIGN_SHARE * ours) else 0


def _around_loops(levels: DeviceLevels) -> DeviceLevels:
    """Return the first level of loop devices and the one that their images lie on at last; () where there is none."""
    first = next((place for place, level in enumerate(levels[:-1]) if is_of_loops(level)), None)
    if first is None:
        return ()
    lower = next((level for level in levels[first + 1 :] if not is_of_loops(level)), levels[-1])
    return (levels[first], lower)


def kernel_messages(evidence: Evidence) -> Iterator[Doubt]:
    """What the kernel logged about the device, or about tasks that hang, during the trials.

    The kernel logged, at the level of a warning or worse, a line that names the device, its disk or its controller, or
    tells of hanging tasks or lack of memory. The log is read from the line on that the kernel writes when caches are
    dropped: not with `as_is`, not without root, and not for trials under half a second.
    """
    for cell, trials in evidence.trials_with_counters():
        lines_of = {
            trial_id: lines
            for trial_id, around in trials
            if (lines := _about(_unprovoked(around.kernel_log, cell), _names_below(evidence, trial_id)))
        }
        if lines_of:
            first = next(iter(lines_of.values()))[0]
            yield Doubt.of_cell(
                cell,
                f"{of_trials(list(lines_of), trials)} the kernel logged a warning or an error that concerns it: "
                f'"{first[:160]}". Time that the kernel spends on trouble is in the figures: see dmesg on the box, '
                "mend it, and run again.",
            )


def _unprovoked(lines: Sequence[str] | None, cell: Cell) -> list[str]:
    """Return what the kernel logged, without what the tool makes it log."""
    provoked = TOOLS[cell.workload.tool].provokes
    return [line for line in lines or () if not (provoked and re.search(provoked, line))]


def _names_below(evidence: Evidence, trial_id: str) -> list[str]:
    """Return the names of the devices below a trial, and of the disks that they are on."""
    names = [evidence.device_names.get(device, "") for device in every_device(evidence.levels_of(trial_id))]
    disks = [disk.name for name in names if (disk := evidence.facts.storage.disk_of(name))]
    controllers = [match[1] for name in names if (match := re.match(r"(nvme\d+)n\d", name))]
    return [name for name in dict.fromkeys((*names, *disks, *controllers)) if name]


def _about(lines: Sequence[str], names: Sequence[str]) -> list[str]:
    device = re.compile(rf"\b({'|'.join(map(re.escape, names))})\b") if names else None
    return [line for line in lines if OF_ANYBODY.search(line) or (device and device.search(line))]


def lazy_init(evidence: Evidence) -> Iterator[Doubt]:
    """The kernel was still writing the inode tables of a new ext4 file system.

    mkfs was asked for `lazy_itable_init`, and the kernel's thread for it ran during trials. Since Linux 5.13 the thread
    runs after every mount, so it alone proves nothing.
    """
    for cell, trials in evidence.trials_with_counters():
        running = [trial_id for trial_id, around in trials if around.lazy_init]
        if running and asks_lazy_init(cell.filesystem):
            yield Doubt.of_cell(
                cell,
                f"{of_trials(running, trials)} the kernel was still writing its inode tables (its thread "
                "ext4lazyinit, and mkfs was asked for lazy_itable_init): the first minutes after such a mkfs are "
                "taxed. Leave the option away, as Mountlab does by default, or warm up until it is done.",
            )


def asks_lazy_init(fs: Filesystem) -> bool:
    """Return whether the sweep wants the file system to be made with lazy initialisation."""
    lower = fs.over or fs
    return lower.type in EXT and any(map(LAZY.search, lower.mkfs))


def will_initialise_late(sweep: Sweep, _: BoxFacts) -> Iterator[Doubt]:
    """ext file systems that the sweep wants to be made with lazy initialisation."""
    for cell in sweep.cells:
        if asks_lazy_init(cell.filesystem):
            yield Doubt.of_cell(
                cell,
                "its mkfs leaves the inode tables to a thread of the kernel (lazy_itable_init), which writes them "
                "while the trials run: the first minutes are taxed. Leave the option away, unless it is the question.",
            )


def zeroed_by_device(evidence: Evidence) -> Iterator[Doubt]:
    """Devices that zero blocks without writing them, where the question is what lazy initialisation saves at mkfs.

    The sweep compares `mkfs_time` with and without lazy initialisation, and `queue/write_zeroes_max_bytes` is not 0.
    Foreseen for loop images.
    """
    for cell in _timed_at_mkfs(evidence.sweep, evidence.answer_metrics):
        size = evidence.zeroes.get(cell.filesystem.name, 0)
        if size:
            yield Doubt.of_cell(
                cell,
                f"its device zeroes blocks without writing them, up to {format_bytes(float(size))} by one command "
                f"(queue/write_zeroes_max_bytes), and mkfs uses that. {_NOTHING_SAVED}",
                metrics=MKFS_TIME,
            )


def will_be_zeroed_by_device(sweep: Sweep, _: BoxFacts) -> Iterator[Doubt]:
    """Loop images, zeroed by fallocate(), where the question is what lazy initialisation saves at mkfs."""
    metrics = {workload.label: sweep.metrics for workload in sweep.workloads}
    for cell in _timed_at_mkfs(sweep, metrics):
        if (cell.filesystem.over or cell.filesystem).image_bytes:
            yield Doubt.of_cell(
                cell,
                "a loop device zeroes blocks without writing them (fallocate() of its image), and mkfs uses that. "
                + _NOTHING_SAVED,
                metrics=MKFS_TIME,
            )


def _timed_at_mkfs(sweep: Sweep, metrics: Mapping[str, Sequence[str]]) -> Iterator[Cell]:
    """Yield the cells on ext whose mkfs is timed, of a sweep that asks for lazy initialisation."""
    if any(map(asks_lazy_init, sweep.filesystems)):
        for cell in sweep.cells:
            kind = (cell.filesystem.over or cell.filesystem).type
            if kind in EXT and MKFS_TIME in metrics.get(cell.workload.label, ()):
                yield cell


MKFS_TIME = "mkfs_time"
_NOTHING_SAVED = (
    "So mkfs writes no zeros with lazy_itable_init=0 and lazy_journal_init=0 either, and what lazy initialisation "
    "saves where they must be written does not show. Measure it on a disk without that command, or on the box `vm`."
)


def hot_drives(evidence: Evidence) -> Iterator[Doubt]:
    """Drives that were as hot as where they warn: many slow themselves down there.

    Before or after a trial the drive below was as hot as the temperature at which it warns, by its sensor (hwmon of
    nvme or drivetemp). Or the log of an NVMe drive counts more minutes of heat, or more transitions to a slower state,
    after a trial than before (nvme-cli or smartctl, by root).
    """
    sensors = evidence.facts.storage.sensors or {}
    for cell, trials in evidence.trials_with_counters():
        hot: dict[str, list[tuple[str, float]]] = {}
        for trial_id, around in trials:
            for drive in _names_below(evidence, trial_id):
                sensor = sensors.get(drive, DriveSensor())
                celsius, limit = around.celsius.get(sensor.file or ""), sensor.warning_celsius
                if celsius is not None and limit and celsius >= limit:
                    hot.setdefault(drive, []).append((trial_id, celsius))
        for drive, readings in hot.items():
            yield Doubt.of_cell(
                cell,
                f"{of_trials([trial_id for trial_id, _ in readings], trials)} drive {drive} was at up to "
                f"{max(celsius for _, celsius in readings):.0f} °C; it warns at "
                f"{sensors[drive].warning_celsius:.0f} °C. Hot drives slow themselves down: cool it, or leave it "
                "pauses.",
            )
        yield from _alarms(evidence, cell, trials)


def _alarms(evidence: Evidence, cell: Cell, trials: Sequence[tuple[str, Around]]) -> Iterator[Doubt]:
    """Yield what the logs of drives count: heat, and how often a drive slowed itself down."""
    grown = by_key(
        (drive, trial_id)
        for trial_id, around in trials
        for drive in _names_below(evidence, trial_id)
        if around.drive_alarms.get(drive, 0) > 0
    )
    for drive, affected in grown.items():
        yield Doubt.of_cell(
            cell,
            f"{of_trials(affected, trials)} drive {drive} counted that it was too hot, or that it slowed itself down "
            "(thermal management of its log). Cool it, or leave it pauses.",
        )


def _no_sensor(evidence: Evidence) -> str | None:
    sensed = any(around.celsius or around.drive_alarms for around in evidence.around.values())
    return None if sensed else "no drive of the box tells its temperature (hwmon of nvme or drivetemp)"


def discards(evidence: Evidence) -> Iterator[Doubt]:
    """Blocks that were discarded on the device (TRIM) during the trials.

    The device had to discard 1 MiB or more during a trial. A note where the mount option `discard` asks for it, or is
    in effect where a program is watched.
    The message names what of this cell discards, by the mount options in effect.
    """
    for cell, trials in evidence.trials_with_counters():
        sizes = {
            trial_id: [
                sum(around.discarded.get(device, 0) for device in level) for level in evidence.levels_of(trial_id)
            ]
            for trial_id, around in trials
        }
        affected = [trial_id for trial_id, levels in sizes.items() if max(levels, default=0) >= DISCARDED_BYTES]
        if affected:
            on_loop = is_of_loops(evidence.levels_of(affected[0])[0])
            below = "" if any(sizes[trial_id][0] >= DISCARDED_BYTES for trial_id in affected) else _BELOW[on_loop]
            wanted = not below and (_asks_to_discard(cell.filesystem) or _watches_discard(evidence, cell))
            yield Doubt.of_cell(
                cell,
                f"{of_trials(affected, trials)} the device discarded up to "
                f"{format_bytes(float(max(max(sizes[trial_id]) for trial_id in affected)))} (TRIM), "
                f"{_discarded_by(evidence, cell, below=below)} A flash device works on that then or later, and writes "
                "wait for it.",
                severity="note" if wanted else "warning",
            )


def _asks_to_discard(fs: Filesystem) -> bool:
    return any(option.partition("=")[0] == "discard" for option in fs.options)


def _watches_discard(evidence: Evidence, cell: Cell) -> bool:
    """Return whether a program is watched on a file system that is mounted so: this is then part of what it costs."""
    return is_in_place(cell.filesystem) and "discard" in evidence.in_effect.get(cell.filesystem.name, {})


_BELOW = {True: "its loop device", False: "the device that it lies on"}


def _discarded_by(evidence: Evidence, cell: Cell, *, below: str) -> str:
    """Return what discards, as far as the cell has it, and what to do. `below`: the device that did not; '' where it
    did."""
    if below and any(layer.options.get("journal") for layer in cell.filesystem.stack):
        return f"only below {below}: md discards its journal, where that is a device of its own."
    if below:
        return f"only below {below}: the file system that holds the image did, or a program trimmed it."
    if _asks_to_discard(cell.filesystem):
        return "as the mount option discard asks. Compare with `nodiscard`, and trim before the run, not in it."
    options = evidence.in_effect.get(cell.filesystem.name)
    if options is None:
        return "and it is not known by what: the mount options in effect were not kept."
    if "discard" in options:
        value = options["discard"] and f"={options['discard']}"
        unasked = "" if is_in_place(cell.filesystem) else ", which is in effect although the sweep does not ask for it"
        return f"as the mount option discard{value} has it{unasked}. Compare with `nodiscard`."
    return (
        "and no option to discard is in effect: a program trimmed it (fstrim, or the tool itself). Trim before the "
        "run, not in it."
    )


def garbage_collection(evidence: Evidence) -> Iterator[Doubt]:
    """Writes that become slower over the run on a device that does not rotate.

    A figure of writes has a `drift` for the worse, on a device that does not rotate. It is a guess.
    """
    for sample in (suspect.sample for suspect in drifting(evidence)):
        third = max(1, len(sample.values) // 3)
        first, last = sum(sample.values[:third]), sum(sample.values[-third:])
        slower = (last < first) == (sample.cell.workload.metric(sample.metric).better == "higher")
        if sample.metric.startswith("write") and slower and _on_flash(evidence, sample.cell, sample.trials[0]):
            yield Doubt.of_cell(
                sample.cell,
                f"{sample.name} became worse over the run, on a device that does not rotate: a flash device that has "
                "used up its clean blocks has to make new ones while it writes. Measure it worn on purpose "
                "(`state: worn`, with `states: {worn: {write: 2}}`), or trim it before the run.",
                metrics=sample.metric,
            )


def _on_flash(evidence: Evidence, cell: Cell, trial_id: str) -> bool:
    """Return whether all of the lowest devices say that they do not rotate, and are no memory."""
    lowest = [evidence.device_names.get(device, "") for level in evidence.levels_of(trial_id)[-1:] for device in level]
    disks = [evidence.facts.storage.disk_of(name) for name in lowest]
    flash = [
        disk is not None and disk.rotational is False and not disk.name.startswith(("zram", "ram", "pmem"))
        for disk in disks
    ]
    return bool(flash) and all(flash) and not in_memory(cell.filesystem)


def _no_device(evidence: Evidence) -> str | None:
    """Return why nothing is known of the devices; None also where there are none, and so nothing to disturb."""
    needed = {number for levels in evidence.levels.values() for number in every_device(levels)}
    counted = {number for traffic in evidence.traffic.values() for number in traffic}
    return "the devices below were not counted" if needed and not needed & counted else None


def _lazy_not_seen(evidence: Evidence) -> str | None:
    """Blind only where lazy initialisation was asked for, and the thread that does it was not looked for."""
    matters = any(map(asks_lazy_init, evidence.sweep.filesystems))
    return from_counters("lazy_init", "whether ext4lazyinit ran was not kept")(evidence) if matters else None


def _zeroing_unknown(evidence: Evidence) -> str | None:
    """Blind only where what lazy initialisation saves is the question, and no kernel tells how devices zero blocks."""
    matters = any(_timed_at_mkfs(evidence.sweep, evidence.answer_metrics))
    return "the kernel does not tell how devices zero blocks" if matters and not evidence.zeroes else None


def _no_disk_known(evidence: Evidence) -> str | None:
    shown = any(disk.rotational is not None for disk in evidence.facts.storage.block_devices or ())
    return None if shown else "the box does not tell whether its disks rotate"


CHECKS = (
    Check("other-io", other_io, "Stop what else uses the disk, or give the box a device of its own.", blind=_no_device),
    Check(
        "kernel-message",
        kernel_messages,
        "Read the line: a failing disk or link is mended first, and measured afterwards.",
        blind=from_counters(
            "kernel_log",
            "the kernel's log was not read: that takes root, trials of half a second or more, and caches "
            "that are dropped, which marks their beginning in it",
        ),
    ),
    Check(
        "lazy-init",
        lazy_init,
        "Leave `lazy_itable_init` away, unless it is the question.",
        foresee=will_initialise_late,
        blind=_lazy_not_seen,
    ),
    Check(
        "zeroed-by-device",
        zeroed_by_device,
        "Measure mkfs on a disk without a command that zeroes blocks, or on the box `vm`.",
        foresee=will_be_zeroed_by_device,
        blind=_zeroing_unknown,
    ),
    Check("drive-hot", hot_drives, "Cool the drive, or leave it pauses.", blind=_no_sensor),
    Check(
        "discards",
        discards,
        "Leave what the message names away; trim before the run, not in it.",
        severities=("warning", "note"),
        blind=from_counters("discarded", "the kernel does not count discards"),
    ),
    Check(
        "garbage-collection",
        garbage_collection,
        "Measure the device worn on purpose (`state: worn`, with `states: {worn: {write: 2}}`), which writes all of it "
        "twice before each mount, or trim it before the run.",
        severities=("note",),
        blind=_no_disk_known,
    ),
)
