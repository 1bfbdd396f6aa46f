"""Whether a box can set the limits of neighbours, tried in an empty cgroup on the devices of the sweep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mountlab.box.connection import BoxConnection
from mountlab.box.containment import CGROUPS
from mountlab.checks import asks_direct
from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import CommandError, PlanError
from mountlab.core.model import Filesystem, Neighbour, Scalar, Sweep
from mountlab.core.shell import script_argv
from mountlab.filesystems import FAMILIES
from mountlab.sweep.beside import neighbour_refusal, neighbours_of, place_of
from mountlab.sweep.neighbour_entry import LIMITS_KNOWN

MODEST: Mapping[str, Scalar] = {name: known.modest for name, known in LIMITS_KNOWN.items()}
SCHEDULER = "queue/scheduler"
LOOP, UNKNOWN = "loop", "unknown"
"""What try_limits.sh takes for a device that only the mount makes."""


@dataclass(frozen=True)
class LimitAnswers:
    """What a box says to limits on one file system."""

    cgroups: str
    """What is mounted: 'v1: cpu blkio; v2 in /sys/fs/cgroup/unified: hugetlb (enabled: none)'."""
    possible: tuple[str, ...]
    refused: Mapping[str, tuple[str, str]]
    """Limit to why it cannot be set, and what to do."""


def check_limits(sweep: Sweep, connection: BoxConnection, facts: BoxFacts) -> None:
    """Raise PlanError for the first limit of a neighbour that the box cannot set. What only the mount makes, such as a
    device in memory, is not tried: there the trial itself says so."""
    for neighbour, fs in _limited(sweep, facts):
        answers = _ask(neighbour, fs, neighbour.limits, connection, facts)
        for limit, (why, next_step) in answers.refused.items():
            possible = _ask(neighbour, fs, MODEST, connection, facts).possible
            raise PlanError(
                f"the box cannot set {limit} for neighbour {neighbour.name} on {fs.name}",
                where=f"neighbours.{neighbour.name}.limits.{limit}",
                got=f"{why}; cgroups of the box: {answers.cgroups}",
                allowed=", ".join(possible) or "no limit can be set there",
                next_step=next_step,
            )


def _limited(sweep: Sweep, facts: BoxFacts) -> Iterator[tuple[Neighbour, Filesystem]]:
    """Yield each neighbour with limits and the file systems of the box on which it runs, each pair once."""
    seen = set[tuple[str, str]]()
    for cell in sweep.cells:
        for neighbour in neighbours_of(sweep, cell.workload):
            place = place_of(sweep, neighbour, cell.filesystem)
            pair = (neighbour.name, place.name)
            skipped = neighbour_refusal(cell.filesystem, place, neighbour, facts)
            if neighbour.limits and not neighbour.place.client and not skipped and pair not in seen:
                seen.add(pair)
                yield neighbour, place


def _ask(
    neighbour: Neighbour, fs: Filesystem, limits: Mapping[str, Scalar], connection: BoxConnection, facts: BoxFacts
) -> LimitAnswers:
    words = [str(word) for limit in limits.items() for word in limit]
    direct = "yes" if asks_direct(neighbour.workload) else ""
    device = _device(fs, connection, facts)
    scheduler = fs.tunables.get(SCHEDULER, "")
    argv = script_argv("try_limits.sh", CGROUPS, FAMILIES[fs.type].mounted_as(fs), device, scheduler, direct, *words)
    completed = connection.run(argv, root=facts.rights.privileged)
    if not completed.ok:
        raise CommandError(f"limits of neighbour {neighbour.name} cannot be tried", evidence=completed.error_text)
    return read_answers(completed.text)


def read_answers(printed: str) -> LimitAnswers:
    """Parse what try_limits.sh prints."""
    rows = [line.split("\t") for line in printed.splitlines()]
    return LimitAnswers(
        cgroups=next((row[1] for row in rows if row[0] == "cgroups"), ""),
        possible=tuple(row[1] for row in rows if row[0] == "set"),
        refused={row[1]: (row[2], row[3]) for row in rows if row[0] == "refused"},
    )


def _device(fs: Filesystem, connection: BoxConnection, facts: BoxFacts) -> str:
    """Return the device that try_limits.sh is to take: its name, '' for none, a directory on it, LOOP or UNKNOWN."""
    if fs.type in ("dir", "bind"):
        return fs.path or str(facts.storage.mount_root)
    if fs.image_bytes:
        return LOOP
    if fs.zram_bytes or fs.pmbd:
        return UNKNOWN
    return connection.box.block_devices.get(fs.device or "", "")
