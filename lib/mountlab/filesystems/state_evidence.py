"""What shows the state of a file system: how full it is, and in how many pieces its files and its free space lie.

Free space is measured by the file system's own tools on the unmounted device: e2freefrag, `xfs_db -c "freesp -s"`, the
free space tree of btrfs, and the segment table of f2fs. All count the same thing: maximal runs of free blocks.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from mountlab.core.errors import ParseError
from mountlab.core.shell import script_argv
from mountlab.core.units import KIB
from mountlab.filesystems.evidence import parts_by_heading

_SCRIPT = "state_evidence.sh"


def state_reading(directory: str, *, seed: int) -> tuple[str, ...]:
    """Return the command that reads the mounted part of the evidence."""
    return script_argv(_SCRIPT, "mounted", directory, str(seed))


def free_space_reading(kind: str, device: str) -> tuple[str, ...]:
    """Return the command that reads the unmounted part, of a file system of this type."""
    return script_argv(_SCRIPT, "unmounted", kind, device)


@dataclass(frozen=True)
class MadeState:
    """What age.sh printed."""

    capacity_bytes: int
    fill: float
    """Share of the capacity in use at the end."""
    files: int
    written_bytes: int
    age: float
    """Bytes written, in capacities."""
    rounds: int
    seed: int
    digest: str
    """SHA-256 of the sorted names and sizes: equal digests mean equal files, contents included."""


def read_made(text: str) -> MadeState:
    """Read the lines of age.sh. Raises ParseError where one is missing."""
    lines = dict(line.split(" ", 1) for line in text.splitlines() if " " in line)
    try:
        return MadeState(
            capacity_bytes=int(lines["capacity"]),
            fill=float(lines["fill"]),
            files=int(lines["files"]),
            written_bytes=int(lines["written"]),
            age=float(lines["age"]),
            rounds=int(lines["rounds"]),
            seed=int(lines["seed"]),
            digest=lines["digest"],
        )
    except (KeyError, ValueError) as error:
        raise ParseError("age.sh did not print what it made", evidence=text) from error


@dataclass(frozen=True)
class FreeSpace:
    """Free space as maximal runs of free blocks; for btrfs that of its data block groups."""

    size_bytes: int
    extents: int

    @property
    def mean_bytes(self) -> float:
        """Mean size of a free extent; 0 without free space."""
        return self.size_bytes / self.extents if self.extents else 0.0


@dataclass(frozen=True)
class StateEvidence:
    """The state of a file system at one time. None: the box lacks the program, or the file system has no figure."""

    capacity_bytes: int
    """What is used and what is available, as df counts them."""
    used_bytes: int
    files: int
    extents: Mapping[int, int]
    """Number of extents to number of files, in a sample; empty where none could be looked at."""
    free: FreeSpace | None

    @property
    def fill(self) -> float:
        return self.used_bytes / self.capacity_bytes

    @property
    def extents_per_file(self) -> float | None:
        """Mean over the sample."""
        files = sum(self.extents.values())
        return sum(count * number for count, number in self.extents.items()) / files if files else None

    @property
    def fragmented_share(self) -> float | None:
        """Share of the sample with more than one extent."""
        files = sum(self.extents.values())
        return sum(number for count, number in self.extents.items() if count > 1) / files if files else None


def read_state(mounted: str, unmounted: str) -> StateEvidence:
    """Read both outputs of state_evidence.sh. Raises ParseError where the use of space is missing."""
    parts = parts_by_heading(mounted) | parts_by_heading(unmounted)
    space = re.search(r"\s(\d+)\s+(\d+)\s+(\d+)\s+\d+%\s", parts.get("df", ""))
    if space is None or not parts.get("files", "").strip().isdigit():
        raise ParseError("the use of space is missing in the evidence of the state", evidence=mounted)
    used, available = int(space[2]) * KIB, int(space[3]) * KIB
    lines = (line.split() for line in parts.get("extents", "").splitlines())
    return StateEvidence(
        capacity_bytes=used + available,
        used_bytes=used,
        files=int(parts["files"]),
        extents={int(count): int(number) for number, count in lines},
        free=next((free for reader in _READERS if (free := reader(parts)) is not None), None),
    )


def _ext(parts: Mapping[str, str]) -> FreeSpace | None:
    text = parts.get("e2freefrag", "")
    blocksize, free = re.search(r"^Blocksize: (\d+)", text, re.M), re.search(r"^Free blocks: (\d+)", text, re.M)
    if blocksize is None or free is None:
        return None
    # Not "Num. free extent:", which versions before 1.44 do not print.
    rows = re.findall(r"^ *\d+[KMGT]\.\.\. *\d+[KMGT]- *: *(\d+) +\d+ ", text, re.M)
    return FreeSpace(int(free[1]) * int(blocksize[1]), sum(map(int, rows)))


def _xfs(parts: Mapping[str, str]) -> FreeSpace | None:
    blocksize = re.search(r"blocksize = (\d+)", parts.get("xfs-blocksize", ""))
    text = parts.get("xfs-freesp", "")
    extents, blocks = re.search(r"total free extents (\d+)", text), re.search(r"total free blocks (\d+)", text)
    if blocksize is None or extents is None or blocks is None:
        return None
    return FreeSpace(int(blocks[1]) * int(blocksize[1]), int(extents[1]))


def _btrfs(parts: Mapping[str, str]) -> FreeSpace | None:
    """The counts of the free space tree, for block groups that hold data; the bytes as `filesystem usage` has them."""
    types = dict(re.findall(r"CHUNK_ITEM (\d+)\).*\n\s+length \d+ .*type (\S+)", parts.get("btrfs-chunks", "")))
    counts = re.findall(
        r"key \((\d+) FREE_SPACE_INFO \d+\).*\n\s+free space info extent count (\d+)", parts.get("btrfs-free-space", "")
    )
    usage = re.findall(r"^Data.*: Size:(\d+), Used:(\d+)", parts.get("btrfs-usage", ""), re.M)
    if not counts or not usage:
        return None
    data = [int(count) for start, count in counts if "DATA" in types.get(start, "").split("|")]
    return FreeSpace(sum(int(size) - int(used) for size, used in usage), sum(data))


def _f2fs(parts: Mapping[str, str]) -> FreeSpace | None:
    """Its main area, that which is set aside for the cleaning included."""
    counts = re.fullmatch(r"(\d+) (\d+)", parts.get("f2fs-free", "").strip())
    return FreeSpace(int(counts[1]) * 4 * KIB, int(counts[2])) if counts else None


_READERS: tuple[Callable[[Mapping[str, str]], FreeSpace | None], ...] = (_ext, _xfs, _btrfs, _f2fs)
