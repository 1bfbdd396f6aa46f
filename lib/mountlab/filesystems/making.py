"""How a file system was made: the commands that were run for it, and the kernel's report on it and its devices."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

from mountlab.core.errors import ParseError
from mountlab.core.model import Step
from mountlab.core.mountinfo import mount_lines
from mountlab.core.trial_files import TrialFiles
from mountlab.core.units import KIB
from mountlab.filesystems.evidence import (
    Device,
    device_levels,
    every_device,
    mount_of,
    parts_by_heading,
    settings,
    slaves,
)

TIMED = "timed.sh"
_READING = "evidence.sh"
_BELOW = "evidence-below.txt"
"""The evidence of the file system that holds the layers of an overlay."""


@dataclass(frozen=True)
class RanCommand:
    """A command as it was run on the box. `keep`: the file of raw output that holds what it printed; '' for none."""

    why: str
    argv: tuple[str, ...]
    keep: str = ""


@dataclass(frozen=True)
class BlockDevice:
    """A device below a file system, and how its queue was set; None: not recorded."""

    number: Device
    name: str
    scheduler: str | None = None
    read_ahead_bytes: int | None = None


@dataclass(frozen=True)
class Setup:
    """How one file system was made for one mount."""

    mount: str
    """The name of its directory of raw output."""
    filesystem: str
    mountinfo: str
    """Its line of /proc/self/mountinfo as the kernel wrote it; '' where the kernel shows none."""
    devices: tuple[BlockDevice, ...]
    """Block devices from the file system downwards, each once; () for none."""
    commands: tuple[RanCommand, ...] | None = None
    """Commands in their order; None: not recorded."""
    files: tuple[str, ...] = ()
    """Names of its files of raw output."""


def ran_command(step: Step, argv: Sequence[str]) -> RanCommand | None:
    """Return the command that a step ran as `argv`, without the scripts around it, whose names say enough; None where
    it only read the kernel's report."""
    words = list(argv[2:] if argv[:1] == ("env",) else argv)
    if TIMED in words:
        words = words[len(words) - words[::-1].index(TIMED) :]
    if words[:2] == ["sh", "-c"]:
        words = words[3:]
    return None if words[:1] == [_READING] else RanCommand(step.why, tuple(words), step.keep or "")


def commands_text(commands: Sequence[RanCommand]) -> str:
    """Return the text of a file TrialFiles.COMMANDS."""
    return json.dumps([asdict(command) for command in commands], indent=1)


def read_commands(text: str) -> tuple[RanCommand, ...]:
    """Return the commands in a file TrialFiles.COMMANDS. Raises ParseError for what is none."""
    try:
        rows = json.loads(text)
        commands = tuple(RanCommand(row["why"], tuple(row["argv"]), row["keep"]) for row in rows)
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        raise ParseError(
            f"{TrialFiles.COMMANDS} cannot be read", got=text[:100], allowed="a list of commands"
        ) from error
    if not all(isinstance(word, str) for command in commands for word in (command.why, command.keep, *command.argv)):
        raise ParseError(f"{TrialFiles.COMMANDS} cannot be read", got=text[:100], allowed="commands as lists of text")
    return commands


def setup_of(mount: str, filesystem: str, files: Mapping[str, str]) -> Setup:
    """Return how a file system was made, from the files that its mount brought back. Raises ParseError."""
    commands = read_commands(files[TrialFiles.COMMANDS]) if TrialFiles.COMMANDS in files else None
    line = mount_of(files).text
    return Setup(mount, filesystem, line, tuple(block_devices(files)), commands, tuple(sorted(files)))


def block_devices(evidence: Mapping[str, str]) -> list[BlockDevice]:
    """Return the devices of `device_levels`, each once, with the settings of its queue where they were recorded."""
    files = {"evidence.txt": evidence[_BELOW]} if _BELOW in evidence else evidence
    parts, levels = parts_by_heading(files["evidence.txt"]), device_levels(files)
    names = {line.device: line.source.removeprefix("/dev/") for line in mount_lines(parts.get("mountinfo", ""))}
    for slave in slaves(files):
        names |= {slave.upper: slave.upper_name, slave.device: slave.name}
    known = _below(files)
    for number in levels[0] if levels and len(levels[0]) == 1 else ():
        known[number] = BlockDevice(number, parts.get("name", "").strip() or number, *_queue(settings(files)))
    return [known.get(number, BlockDevice(number, names.get(number, number))) for number in every_device(levels)]


def _queue(settings_of: Mapping[str, str]) -> tuple[str | None, int | None]:
    """Return scheduler and read-ahead in bytes (kernel: ABI/stable/sysfs-block) from the settings of a device. One
    without requests to order (zram, device mapper) shows no scheduler."""
    by_name = {path.rpartition("/queue/")[2]: text for path, text in settings_of.items() if "/queue/" in path}
    ahead = _bytes(by_name.get("read_ahead_kb", ""))
    return _active(by_name.get("scheduler", "" if ahead is None else "none")), ahead


def _below(evidence: Mapping[str, str]) -> dict[Device, BlockDevice]:
    """Return devices below others whose queues were read, by number: the one that holds the image of a loop device,
    slaves, and the devices of a btrfs. A line has number, name, read-ahead in KiB and schedulers, between tabs; newer
    ones also whether it counts its bytes."""
    rows = [line.split("\t") for line in parts_by_heading(evidence["evidence.txt"]).get("below", "").splitlines()]
    return {row[0]: BlockDevice(row[0], row[1], _active(row[3]), _bytes(row[2])) for row in rows if len(row) in (4, 5)}


def _active(schedulers: str) -> str | None:
    """Return the active one of schedulers such as '[none] mq-deadline'; a queue with a single one has no brackets."""
    inside = schedulers.partition("[")[2].partition("]")[0]
    return inside or schedulers.strip() or None


def _bytes(kib: str) -> int | None:
    return int(kib) * KIB if kib.isdecimal() else None
