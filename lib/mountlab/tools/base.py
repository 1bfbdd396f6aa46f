"""What every benchmark tool tells Mountlab about itself."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import orjson

from mountlab.core.compressed import unpacked
from mountlab.core.errors import ParameterError, ParseError, ToolError
from mountlab.core.metrics import Metric
from mountlab.core.model import FILES, Filesystem, Measurement, Program, Scalar, Target, Workload
from mountlab.core.options import Option
from mountlab.core.resolution import Step
from mountlab.core.trial_files import TrialFiles
from mountlab.core.units import MIB

Cache = Literal["cold", "warm", "as_is"]
LOG_SUFFIX = ".log.gz"
LARGEST_LOG = 256 * MIB
"""Bytes of a log that was compressed."""
CACHE = Option(
    kind="choice",
    choices=("cold", "warm", "as_is"),
    help="state of the page cache before the measured part: emptied, filled with the file, or left alone",
)


@dataclass(frozen=True, kw_only=True)
class Command:
    """How to run one workload in one directory."""

    argv: tuple[str, ...]
    """The measured command."""
    prepare: tuple[tuple[str, ...], ...] = ()
    """Commands before it that are not measured; their writes are synced to the device."""
    drop: tuple[tuple[str, ...], ...] = ()
    """Commands that drop the caches of the clients that drive it, where the box's own are dropped."""
    fill: tuple[tuple[str, ...], ...] = ()
    """Commands that read once what the measured one will read. The plan says when they are run, and how often."""
    cache: Cache | None = None
    """What the workload asks of the page cache; None: as the design says."""
    files: Mapping[str, str] = field(default_factory=dict)
    """Path to text of what must lie in its directory, or beside its output, before anything is run."""
    log: str = ""
    """The name of a long log beside its output, which is compressed before it is brought back."""
    timeout_s: float = 600.0
    owner: str = ""
    """The account that its directory is given to; '' for the user who runs it."""
    seed: int | None = None
    """What it draws random offsets, sizes and data from; None: it takes no seed, or the sweep gives one."""


@dataclass(frozen=True)
class Written:
    """The data that a workload writes, or lays out to be read."""

    text: str
    reducible: bool | None
    """Whether a layer that compresses or deduplicates stores less of it; None: not known."""


@dataclass(frozen=True)
class Manner:
    """How a workload does its I/O, in the words of its tool; '' where that is not known."""

    engine: str = ""
    depth: str = ""
    """I/Os in flight at a time, of each job."""
    jobs: str = ""
    """Threads or processes at the same time."""


@dataclass(frozen=True)
class Commits:
    """What a trial claims to have made durable: after a crash of the machine all of it would still be there."""

    rate: float
    """Acknowledged commits per second."""
    clients: int
    """How many can wait for a commit at the same time: one flush may acknowledge one of each."""
    seconds: float | None = None
    """For how long the rate held; None: for as long as the command ran."""


ZEROS = Written("zeros", True)


@dataclass(frozen=True, kw_only=True)
class ToolOutput:
    """What the measured command left behind."""

    exit_status: int
    stdout: str
    stderr: str
    files: Mapping[str, str]
    """Files that it wrote into its output directory, by name."""
    decoded: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """File to what its tool has decoded of it."""

    @classmethod
    def from_files(cls, files: Mapping[str, bytes]) -> ToolOutput:
        """From the files that a trial brings back (lib/mountlab/sweep/trial.sh); compressed logs are unpacked.

        Raises ParseError where some are missing, as after a full output directory on the box.
        """
        plain = {name: data for name, data in files.items() if not name.endswith(".gz")}
        for name in (name for name in files if name.endswith(LOG_SUFFIX)):
            plain[name.removesuffix(".gz")] = unpacked(files[name], name, LARGEST_LOG)
        text = {name: data.decode(errors="replace") for name, data in plain.items()}
        missing = [name for name in (TrialFiles.EXIT_STATUS, TrialFiles.STDOUT, TrialFiles.STDERR) if name not in text]
        if missing or not text[TrialFiles.EXIT_STATUS].strip().isdecimal():
            raise ParseError(
                "the trial brought back less than it should",
                got=f"no {', '.join(missing)}" if missing else f"exit status {text['exit_status']!r}",
                allowed="exit_status, stdout and stderr",
                next_step="see whether the box's output_root is full",
            )
        return cls(
            exit_status=int(text[TrialFiles.EXIT_STATUS]),
            stdout=text[TrialFiles.STDOUT],
            stderr=text[TrialFiles.STDERR],
            files=text,
        )


class Tool(Protocol):
    """A benchmark program. Pure: it builds commands and reads outputs, and runs nothing.

    What has a value or an answer here is what most tools say.
    """

    name: str
    programs: tuple[Program, ...]
    options: Mapping[str, Option]
    in_place: bool = False
    """Whether it works in a directory that is there, and makes none: on file systems of type in_place alone."""
    changes_devices: bool = False
    """Whether it changes devices below the file system: then it is no neighbour of what is measured there."""
    provokes: str = ""
    """Pattern of what the kernel logs because of its own work; '' for nothing."""
    any_option: bool = False
    """Whether options beside those of `options` are handed to the program."""
    reserved: Mapping[str, str]
    """Options that a sweep may not set, and why."""
    clock_s: float
    """The resolution of the program's own clock."""
    times_itself: bool = False
    """Whether a latency that it tells may hold time of its own beside that of its system calls."""
    longer: str = "more work"
    """What of a sweep makes its trials longer."""
    steps: Mapping[str, Step] = {}
    """Metric to what rounds each of its figures, beside the step that `parse` finds in the text (Measurement.step)."""
    gives: tuple[str, ...]
    """The metrics that it can tell, some of them only where an option asks for it."""

    box_help: tuple[str, ...] = ()
    """The command by which the box's own program says what options it knows; () where it says nothing of use.
    The word '{options}' in it stands for the names of the options that the sweep gives."""
    drives_clients: bool = False
    """Whether several boxes can drive a workload of it together, one of them asking."""

    def check(self, options: Mapping[str, Scalar], *, where: str) -> None:
        """Raise ParameterError where the options do not make sense together."""

    def check_help(self, options: Mapping[str, Scalar], text: str, *, where: str) -> None:
        """Raise ParameterError for an option that the box's own program, by its help, does not know."""
        return

    @abstractmethod
    def command(self, workload: Workload, directory: str, output: str, target: Target = FILES) -> Command:
        """Return the command of the workload in `directory`, or on the device of `target`; its files go to `output`."""

    @abstractmethod
    def parse(self, workload: Workload, output: ToolOutput) -> list[Measurement]:
        """Return figures of one trial. Raises ToolError when what ran is not what was asked, ParseError when the output
        cannot be read."""

    @abstractmethod
    def space_bytes(self, workload: Workload, target: Target = FILES) -> int:
        """Return the most that the workload holds in its directory at any time, or its part of the device."""

    @abstractmethod
    def expected_s(self, workload: Workload) -> float:
        """Return a rough guess at its duration, for the plan."""

    def queue_depth(self, argv: Sequence[str]) -> int:
        """Return how many operations each of its threads keeps under way at a time; 0 where that is not known."""
        return 0

    def hides_calls(self, argv: Sequence[str]) -> str:
        """Return why what it reads and writes are no system calls of its own; '' where they are."""
        return ""

    def uncounted_s(self, workload: Workload) -> float:
        """Return how long it runs before it counts."""
        return 0.0

    @abstractmethod
    def written(self, workload: Workload) -> Written:
        """Return the data that the workload writes, or lays out to be read."""

    @abstractmethod
    def main_metrics(self, workload: Workload) -> tuple[str, ...]:
        """Return the metrics that an answer is about when the sweep names none."""

    def commits(self, workload: Workload, figures: Mapping[tuple[str, str], float]) -> Commits | None:
        """Return what a trial claims to have made durable; None where the workload claims nothing. `figures`: metric
        and label to the value that `parse` gave."""
        return None

    neighbour_defaults: Mapping[str, Any] = {}
    """Option to its value in a sweep file for a neighbour that does not give it."""

    def lasting(self, workload: Workload, seconds: float) -> Workload:
        """Return a neighbour's workload so that it runs for so long by itself, where the tool can do that and the
        workload does not say how long. Others end, and are started again."""
        return workload

    def remarks(self, workload: Workload) -> tuple[str, ...]:
        """Return what the program gets that is not as the text of the workload has it, and why."""
        return ()

    def manner(self, workload: Workload) -> Manner:
        """Return how the workload does its I/O, as far as its options say."""
        return Manner()

    def check_given(self, options: Mapping[str, Scalar], needed: Mapping[str, str], *, where: str) -> None:
        """Raise ParameterError where an option is missing; `needed`: its name to an example."""
        for name, example in needed.items():
            if name not in options:
                raise ParameterError(
                    f"{self.name} needs {name}", where=f"{where}.{name}", got="nothing", allowed=example
                )

    def check_exit(self, output: ToolOutput, evidence: str) -> None:
        """Raise ToolError with the evidence where the program failed."""
        if output.exit_status != 0:
            raise ToolError(f"{self.name} failed with exit status {output.exit_status}", evidence=evidence)

    @staticmethod
    def cache_of(workload: Workload) -> Cache | None:
        """Return what the workload asks of the page cache; None where it says nothing."""
        return workload.options.get("cache")  # type: ignore[return-value]

    def programs_for(self, workload: Workload) -> tuple[Program, ...]:
        """Return the programs that the workload needs."""
        return self.programs

    def programs_on(self, fstype: str, workload: Workload) -> tuple[Program, ...]:
        """Return those that it needs on a file system of a type; the same on each, where that makes no difference."""
        return self.programs_for(workload)

    def refuses(self, kind: str, workload: Workload) -> str | None:
        """Return why the workload cannot run on a file system that the kernel calls `kind`, with what can be done; None
        where it can, or where the box has to try."""
        return None

    def refuses_place(self, fs: Filesystem, workload: Workload) -> str | None:
        """Return why the workload cannot run on what a file system lies on, with what can be done; None where it
        can."""
        return None

    def own_metrics(self, options: Mapping[str, Scalar]) -> Mapping[str, Metric]:
        """Return the metrics that the options define, beside METRICS."""
        return {}

    def source_bytes(self, workload: Workload) -> int:
        """Return the size of the file in the box's memory that it copies from; 0 for none."""
        return 0

    def check_open_loop(self, options: Mapping[str, Scalar], *, where: str) -> tuple[str, ...]:
        """Return the directions (read, write) of a workload whose requests arrive by themselves. Raises ParameterError
        for options that it cannot have."""
        raise ParameterError(
            f"{self.name} has no open-loop load",
            where=f"{where}.capacity",
            got=f"tool: {self.name}",
            allowed="a workload of fio: its requests can arrive at a rate, whether or not earlier ones are done",
        )

    def largest_rate(self, workload: Workload) -> float:
        """Return the most requests per second that an open-loop trial of a workload can have."""
        return math.inf

    def least_rate(self, workload: Workload) -> float:
        """Return the fewest requests per second that an open-loop trial of a workload can have: with fewer it would
        last too long until it knows whether the objective holds."""
        return 1.0

    def trial_s(self, workload: Workload, rate: float) -> float:
        """Return how long an open-loop trial of a workload takes at this rate, in seconds."""
        return self.expected_s(workload)

    def check_clients(self, options: Mapping[str, Scalar], *, where: str) -> None:
        """Raise ParameterError for options that several clients cannot have."""
        return


def check_cache(options: Mapping[str, Scalar], *, reads: bool, where: str) -> None:
    """Raise ParameterError where a workload that reads nothing asks for a warm cache."""
    if options.get("cache") == "warm" and not reads:
        raise ParameterError(
            "a write has no file to fill the page cache with",
            where=f"{where}.cache",
            got="'warm'",
            allowed="warm for reads; cold or as_is for writes",
        )


GUESSED_BYTES_PER_S = 500e6
"""For the plan's guess at the duration of a workload of fixed size; replaced by what trials took as they run."""


def checksum(program: str) -> tuple[str, ...]:
    """Return what to ask of a program that has no word for its version: the same text, the same program."""
    return ("sh", "-c", 'sha256sum "$(command -v "$1")"', "checksum", program)


def decode_json(data: bytes | str) -> Any:
    """Return what a text in JSON says, faster than the standard decoder. Raises ValueError for anything else."""
    return orjson.loads(data)
