"""What snapshot, reflink and send share: shell scripts that time operations on the box (stamps.sh), on seeded files."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mountlab.core.errors import ParameterError, ParseError, ToolError
from mountlab.core.model import Measurement, Program, Scalar, Target, everywhere
from mountlab.core.options import Option
from mountlab.core.shell import script_text
from mountlab.core.units import KIB, parse_percent
from mountlab.tools import wall_clock
from mountlab.tools.base import Cache, Command

POOL_BYTES = 256 * KIB
"""The seeded bytes that contents.sh stretches."""
DATA = "seeded bytes that no block compresses; they repeat after 128 to 256 KiB, each time from another offset"
BTRFS = Program(name="btrfs", packages=everywhere("btrfs-progs", zypper="btrfsprogs"), version=("btrfs", "--version"))
_ZFS_HINT = (
    "{} comes with zfsutils-linux of contrib (Debian: with zfs-dkms and the headers of the kernel; Ubuntu: the kernel "
    "has the module), which starts services at each boot: install it by hand. Or a virtual box with zfs: `with: [zfs]`"
)
ZPOOL, ZFS = (
    Program(
        name=name,
        packages=everywhere("zfs", apt="zfsutils-linux"),
        version=(name, "version"),
        version_word="zfs-",
        services=True,
        hint=_ZFS_HINT.format(name),
    )
    for name in ("zpool", "zfs")
)
PROCESS_S = 0.002
"""For the plan's guess: the start of a program, which a script needs for each block or file that it changes."""
BLOCK_BYTES = 4 * KIB
_MOST_FILES = 100_000


@dataclass(frozen=True)
class Timed:
    """How often an operation was done, and how long it took."""

    seconds: tuple[float, ...]
    step_s: float
    """To what one of them is rounded, on average."""

    def rate(self, label: str, amount: int, metric: str = "bandwidth") -> Measurement:
        """Return at what rate `amount` bytes were moved in all of them."""
        seconds = math.fsum(self.seconds)
        value, step_s = amount / seconds, self.step_s * len(self.seconds)
        return Measurement(metric=metric, label=label, value=value, unit="B/s", step=value * step_s / seconds)

    def rows(self, label: str, *, done: int = 1) -> list[Measurement]:
        """Return the mean time of the operation, and the longest of several. `done`: how often each of them did it."""
        times = [seconds / done for seconds in self.seconds]
        step = self.step_s / done
        mean = Measurement(
            metric="operation_latency", label=label, value=math.fsum(times) / len(times), unit="s", step=step
        )
        longest = Measurement(metric="operation_latency_max", label=label, value=max(times), unit="s", step=step)
        return [mean] if len(times) == 1 else [mean, longest]


@dataclass(frozen=True)
class Notes:
    """What a script printed: its remarks in their order, and what it timed."""

    tool: str
    remarks: tuple[tuple[str, str], ...]
    timed: Mapping[str, Timed]

    def of(self, name: str) -> list[str]:
        """Return the values of all remarks with a name."""
        return [value for key, value in self.remarks if key == name]

    def require(self, what: str, got: object, requested: object, *, good: bool | None = None) -> None:
        """Raise ToolError where the script did other work than was asked. `good`: where it need not be equal."""
        if good is False or (good is None and got != requested):
            raise ToolError(f"{self.tool} did not do what was asked", where=what, got=f"{got}", allowed=f"{requested}")

    def timing(self, name: str, count: int) -> Timed:
        """Return the times of an operation. Raises ToolError for another number of times."""
        found = self.timed.get(name, Timed((), 0.0))
        self.require(f"timed {name}", len(found.seconds), count)
        return found

    def numbers(self, name: str, count: int) -> list[int]:
        """Return the numbers of all remarks with a name. Raises ToolError for another number of them."""
        words = " ".join(self.of(name)).split()
        self.require(name, len(words), count)
        if not all(word.isdecimal() for word in words):
            raise ParseError(f"{self.tool} printed no number", where=name, got=" ".join(words)[:120], allowed="digits")
        return [int(word) for word in words]


def elapsed(*timings: Timed) -> Measurement:
    """Return how long all of it took together."""
    total = math.fsum(seconds for timing in timings for seconds in timing.seconds)
    step = math.fsum(timing.step_s * len(timing.seconds) for timing in timings)
    return Measurement(metric="elapsed", value=total, unit="s", step=step)


def read_notes(tool: str, text: str) -> Notes:
    """Return what the script of a tool printed. Raises ParseError where that is nothing, or a line is no remark."""
    remarks, readings = [], dict[str, list[tuple[float, float]]]()
    for number, line in enumerate(text.splitlines(), start=1):
        name, _, value = line.partition(" ")
        if not name.isidentifier() or not value:
            raise ParseError(
                f"a line of {tool} cannot be read", where=f"line {number}", got=repr(line[:120]), allowed="NAME VALUE"
            )
        if name == "timed":
            what, _, stamps = value.partition(" ")
            readings.setdefault(what, []).append(wall_clock.elapsed(f"{stamps}\n"))
        else:
            remarks.append((name, value))
    if not readings:
        raise ParseError(f"{tool} timed nothing", got=text.strip()[:120] or "no output", allowed="lines 'timed ...'")
    timed = {
        what: Timed(tuple(seconds for seconds, _ in pairs), math.fsum(step for _, step in pairs) / len(pairs))
        for what, pairs in readings.items()
    }
    return Notes(tool, tuple(remarks), timed)


@dataclass(frozen=True)
class Script:
    """A script of ours for one trial. It first lays out what the trial works on (`prepare`), then times it."""

    name: str
    program: str
    """What it runs, by the name of its Program."""
    common: tuple[str, ...]
    """Arguments of both calls, behind the program."""
    timed: tuple[str, ...]
    """Arguments of the timed call only."""
    beside: Mapping[str, str] = field(default_factory=dict)
    """Name to text of what lies beside it."""

    def command(
        self, output: str, target: Target, cache: Cache | None, fill: Sequence[tuple[str, ...]] = ()
    ) -> Command:
        """Return both calls of the script, which lies beside the output of the trial. `fill`: see Command."""
        path, seed = f"{output}/{self.name}", 1 if target.seed is None else target.seed
        return Command(
            argv=("sh", path, self.program, "measure", *self.common, *self.timed),
            prepare=(("sh", path, self.program, "prepare", *self.common, str(seed)),),
            fill=tuple(fill),
            files={path: script_text(self.name), **{f"{output}/{name}": text for name, text in self.beside.items()}},
            cache=cache,
            seed=target.seed,
        )


# --- options of a tree of files whose contents change -----------------------------------------------------------------


def changed_files(options: Mapping[str, Scalar]) -> int:
    """Return how many files a change overwrites."""
    share = parse_percent(options["change"])
    return max(1, round(share * int(options["size"]) / int(options["file_size"])))


def check_tree(tool: str, options: Mapping[str, Scalar], where: str) -> None:
    """Raise ParameterError for files that cannot be laid out, and for a change of nothing or of more than there is."""
    size, file_size = int(options["size"]), int(options["file_size"])
    if not file_size or file_size % BLOCK_BYTES:
        raise ParameterError(
            f"{tool} makes files of whole blocks",
            where=f"{where}.file_size",
            got=f"{file_size} B",
            allowed="a multiple of 4KiB: smaller files may lie in the metadata, and hold no space of their own",
        )
    if not size or size % file_size or size // file_size > _MOST_FILES:
        raise ParameterError(
            f"{tool} fills its directory with whole files",
            where=f"{where}.size",
            got=f"{size} B",
            allowed=f"a multiple of file_size ({file_size} B), for 1 to {_MOST_FILES:,} files",
        )
    share = parse_percent(options["change"], where=f"{where}.change")
    if not 0 < share <= 1:
        raise ParameterError(
            f"{tool} cannot change this share of its files",
            where=f"{where}.change",
            got=str(options["change"]),
            allowed="more than 0 %, at most 100 %",
        )


# --- a file of whole blocks, and one device of several ----------------------------------------------------------------

MEMBER = Option(
    kind="text", default="last", help="which device below the file system: last, first, or its number among them"
)


def check_member(tool: str, options: Mapping[str, Scalar], where: str) -> None:
    """Raise ParameterError for a file that is not of whole blocks, and for a device that no file system can have."""
    size, member = int(options["size"]), str(options["member"])
    if not size or size % BLOCK_BYTES:
        raise ParameterError(
            f"{tool} works on files of whole blocks",
            where=f"{where}.size",
            got=f"{size} B",
            allowed="a multiple of 4KiB",
        )
    if member not in ("first", "last") and not (member.isdecimal() and int(member)):
        raise ParameterError(
            f"{tool} has no such device",
            where=f"{where}.member",
            got=repr(member),
            allowed="last, first, or the number of a device, from '1', as text",
        )
