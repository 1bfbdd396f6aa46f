"""What a program does to its files, as figures: the types of a profile, which `program_figures` fills.

All figures are of files below the directory under test, unless a place is named. docs/why.md has the definitions.
"""

from __future__ import annotations

from dataclasses import dataclass, field

BINS = 200
"""Of the number of calls under way over time."""
MOST_POINTS = 3000
"""Of reads and writes over time: evenly spread ones stand for all."""
PATTERNS = ("consecutive", "strided", "forward", "backward", "first", "unknown")
"""How an access may follow the last one of its direction in its file."""


@dataclass(frozen=True, kw_only=True)
class OperationRow:
    """One kind of operation in one place."""

    place: str
    operation: str
    calls: int
    failed: int
    bytes: int
    seconds: float
    """All calls together, as the tracer saw them."""
    names: dict[str, int]
    """System call to how often it was called."""


@dataclass(frozen=True, kw_only=True)
class Quantiles:
    """Some values by their order; all 0 where there are none."""

    n: int = 0
    least: float = 0.0
    median: float = 0.0
    p90: float = 0.0
    most: float = 0.0
    mean: float = 0.0


@dataclass(frozen=True, kw_only=True)
class SizeCount:
    """Reads or writes of one size, or of sizes from one power of two up to the next."""

    size: int
    calls: int


@dataclass(frozen=True, kw_only=True)
class Direction:
    """The reads of a program that moved bytes, or its writes."""

    calls: int
    bytes: int
    files: int
    threads: int
    sizes: tuple[SizeCount, ...]
    """The most frequent sizes, the most frequent first."""
    by_size: tuple[SizeCount, ...]
    """All of them, by powers of two: `size` is the lower end."""
    pattern: str
    """'sequential', 'strided', 'random', 'skewed', 'mixed', or 'unknown'."""
    how: dict[str, int]
    """How each access follows the last one of its direction in its file (PATTERNS) to the number of accesses."""
    unique_bytes: int
    """What was read or written at least once."""
    again_share: float
    """The share of the bytes that had been read, or written, before."""
    hot_share: float
    """The share of accesses to blocks that falls on the hottest tenth of the blocks."""
    hot_by_chance: float
    """What that share would be if all blocks were equally likely."""
    block: int
    """The size of such a block in bytes."""
    extent: int
    """The bytes from the beginning of each file to the farthest access in it, together."""
    direct_share: float
    """The share of the bytes that go through O_DIRECT."""
    through_share: float
    """The share of the writes that wait for the device: O_SYNC, O_DSYNC, RWF_DSYNC."""
    async_share: float
    """The share that was handed over by io_submit."""


@dataclass(frozen=True, kw_only=True)
class Syncs:
    """Where a program waits until its data is safe."""

    calls: int
    names: dict[str, int]
    seconds: float
    empty: int
    """Syncs of files that had not been written since their last sync."""
    writes_between: Quantiles
    """Writes since the last sync of the file, over the syncs that are not empty."""
    bytes_between: Quantiles
    interval_s: Quantiles
    """From the begin of one sync to that of the next."""


@dataclass(frozen=True, kw_only=True)
class Concurrency:
    """How much of a program goes on at a time."""

    processes: int
    threads: int
    """Those with a call on files under test."""
    movers: int
    """The most threads that read or write over the same time: each from its first to its last access, of those that
    have a hundredth of all accesses."""
    busy_share: float
    """The share of the time with at least one call, or request of io_submit, under way."""
    mean: float
    """Calls under way, over the time in which there is one."""
    most: int
    shares: dict[int, float]
    """Number of calls under way to its share of the time."""
    requests_mean: float
    """Requests of io_submit under way, over the time in which there is one; 0 without any."""
    requests_most: int
    course: tuple[float, ...]
    """Mean number of calls and requests under way in each of BINS equal parts of the time."""


@dataclass(frozen=True, kw_only=True)
class FileCounts:
    """What happens to files and directories."""

    opened: int
    created: int
    """Those that the program itself made, or opened to make and found empty."""
    read: int
    written: int
    removed: int
    renamed: int
    linked: int
    mapped: int
    directories_made: int
    directories_removed: int
    deepest: int
    """Levels of directories below the one under test."""
    sizes: Quantiles
    """Sizes in bytes of the opened files, where they are known: the last one that was seen."""
    by_size: tuple[SizeCount, ...]


@dataclass(frozen=True, kw_only=True)
class BusyFile:
    """One of the files with the most reads and writes."""

    name: str
    """A pseudonym: file 1 is the busiest."""
    depth: int
    size: int | None
    reads: int
    writes: int
    read_bytes: int
    write_bytes: int


@dataclass(frozen=True, kw_only=True)
class Hidden:
    """What the record cannot show."""

    map_calls: int
    map_bytes: int
    shared_maps: int
    uring_calls: int
    uring_requests: int
    unknown_positions: int
    """Reads and writes through descriptors that were open before, or came from calls that are not recorded."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """How much of the program the record holds."""

    calls: int
    skipped: int
    """Calls beyond the limit of the record."""
    unread: int
    seconds: float
    """How long the program ran while it was traced, from its first to its last recorded call."""
    seen_s: float
    is_whole: bool

    @property
    def share(self) -> float:
        """Return the share of the time that was seen."""
        return self.seen_s / self.seconds if self.seconds else 1.0


@dataclass(frozen=True, kw_only=True)
class Points:
    """Reads and writes of the busiest files, and syncs, over time: for plots."""

    at: tuple[float, ...] = ()
    file: tuple[int, ...] = ()
    """0 for the busiest file."""
    offset: tuple[int, ...] = ()
    size: tuple[int, ...] = ()
    is_write: tuple[bool, ...] = ()
    of: int = 0
    """How many reads and writes of these files there are: `at` has at most MOST_POINTS of them."""
    sync_at: tuple[float, ...] = ()
    sync_bytes: tuple[int, ...] = ()
    sync_s: tuple[float, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Profile:
    """All that is known of what a program does."""

    seen: Seen
    operations: tuple[OperationRow, ...]
    reads: Direction | None
    writes: Direction | None
    syncs: Syncs
    concurrency: Concurrency
    files: FileCounts
    flags: dict[str, int]
    """Flag of open to how many opens have it; 'opens' to all of them."""
    think_s: Quantiles
    """From the end of a call of a thread to the begin of its next one."""
    hidden: Hidden
    busiest: tuple[BusyFile, ...]
    points: Points = field(repr=False)
