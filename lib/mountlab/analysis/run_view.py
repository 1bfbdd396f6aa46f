"""What a reader needs of a run that was measured, by who reads it; `store.Run` is all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from mountlab.analysis.inside import Inside
from mountlab.analysis.memory_use import Filled, Use
from mountlab.analysis.program import ProgramTrial
from mountlab.analysis.why_frames import Why
from mountlab.checks import Below, CellWrites, Moved
from mountlab.core.cell_stop import CellStop
from mountlab.core.errors import ParseError
from mountlab.core.findings import Caveat, Comparison, Exclusions, OptionEvidence, PublishedFigure
from mountlab.core.frames import pd
from mountlab.core.model import Measurement, Sweep
from mountlab.core.run_info import RunInfo
from mountlab.filesystems.counters import Around
from mountlab.filesystems.counters_over_time import OverTime
from mountlab.filesystems.kept import StateRecord
from mountlab.filesystems.making import RanCommand, Setup
from mountlab.filesystems.open_files import OpenFiles
from mountlab.fio.series import Series
from mountlab.programs.precondition import Rounds
from mountlab.stats.histograms import Histogram


@dataclass(frozen=True, kw_only=True)
class TrialRecord:
    """Everything that is read from the raw output of one trial."""

    measurements: tuple[Measurement, ...] = ()
    """The figures of its tool; () of a trial that is not ok."""
    refused: str = ""
    """Why a trial has none that a version without a check of figures recorded as ok."""
    around: Around | None = None
    """What the kernel counted while the tool ran."""
    memory: Filled | None = None
    """What memory its files took."""
    rounds: Rounds | None = None
    """The rounds that were run before it."""
    bandwidth: tuple[Series, ...] = ()
    """What fio logged of bandwidth over time, of a trial with figures."""
    argv: tuple[str, ...] = ()
    """The measured command; () where none was run."""
    before: tuple[RanCommand, ...] = ()
    """The commands before it, which are not measured; () also where an earlier version did not keep them."""
    files: tuple[str, ...] = ()
    """Its files of raw output that hold something."""
    damaged: Mapping[str, str] = field(default_factory=dict)
    """Part that cannot be read, of those that only some readers ask for, to why: commands, histograms, series."""
    detail: bytes = field(default=b"", repr=False)
    """A TrialDetail as JSON: it takes most of the room, and few readers ask for it."""
    open_files: OpenFiles | None = None
    """The files that a watched program had open; None where they could not be seen."""
    device: Below | None = None
    """What the devices below its file system did while the tool ran, where the evidence of its mount names one."""

    @property
    def busy(self) -> float | None:
        """The share of all processors' time, while the tool ran, in which they ran anything."""
        return self.around.busy if self.around else None

    def check(self, part: str) -> None:
        """Raise ParseError where a part is damaged."""
        if part in self.damaged:
            raise ParseError(self.damaged[part])


@dataclass(frozen=True)
class TrialDetail:
    """What a trial did over its time, and the latencies of its I/Os."""

    histograms: Mapping[str, Histogram] = field(default_factory=dict)
    """Place in fio's report ('read.clat_ns') to the latencies of all its jobs together."""
    series: tuple[Series, ...] = ()
    """What fio logged over time."""
    over_time: OverTime | None = None
    """What the kernel counted over that time."""


class Measured(Protocol):
    """What was asked, on which box, and every figure."""

    @property
    def info(self) -> RunInfo: ...
    @property
    def sweep(self) -> Sweep: ...
    @property
    def measurements(self) -> pd.DataFrame: ...
    @property
    def censored(self) -> Mapping[str, frozenset[int]]:
        """Cell to the counted blocks in which its trial ran into the time limit."""


class PilotRun(Measured, Protocol):
    """Of an earlier run, to plan a sweep by."""

    @property
    def trials(self) -> pd.DataFrame: ...


class ComparedRun(Measured, Protocol):
    """Of each of two runs that are compared."""

    @property
    def caveats(self) -> Sequence[Caveat]: ...
    @property
    def options(self) -> Sequence[OptionEvidence]: ...
    @property
    def answer_metrics(self) -> Mapping[str, tuple[str, ...]]: ...


class AnsweredRun(ComparedRun, Protocol):
    """Of each of many runs of one sweep: also what it answered."""

    @property
    def comparisons(self) -> Sequence[Comparison]: ...


class RunView(PilotRun, AnsweredRun, Protocol):
    """Of a run that is reported."""

    @property
    def estimates(self) -> pd.DataFrame: ...
    @property
    def checks_passed(self) -> Sequence[str]: ...
    @property
    def not_checked(self) -> Mapping[str, str]: ...
    @property
    def published(self) -> Sequence[PublishedFigure]: ...
    @property
    def stops(self) -> Sequence[CellStop]: ...
    @property
    def exclusions(self) -> Exclusions: ...
    @property
    def series(self) -> Mapping[str, Sequence[Series]]: ...
    @property
    def moved(self) -> Sequence[Moved]: ...
    @property
    def layer_writes(self) -> Sequence[CellWrites]: ...
    @property
    def memory(self) -> Sequence[Use]: ...
    @property
    def why(self) -> Why:
        """What its diagnostic trials explain; empty where it has none."""

    @property
    def programs(self) -> Sequence[ProgramTrial]:
        """What its programs do, by their recorded system calls; empty where none was recorded."""

    @property
    def latency_comparisons(self) -> Sequence[Comparison]:
        """Those of the percentiles that the answer is not about: a family of their own."""

    @property
    def records(self) -> Mapping[str, TrialRecord]:
        """Trial id to what is kept of it."""

    @property
    def setups(self) -> Sequence[Setup]:
        """Every making of a file system that left its evidence, in the order of the run."""

    @property
    def states(self) -> Sequence[StateRecord]:
        """What was made of each file system in each state that files make."""

    @property
    def percentiles(self) -> pd.DataFrame: ...
    def latencies(self, cell: str) -> Mapping[str, Histogram]: ...
    def inside(self, trial_id: str) -> Inside: ...
