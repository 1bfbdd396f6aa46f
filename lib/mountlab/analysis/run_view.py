"""What a reader needs of a run that was measured, by who reads it; `store.Run` is all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from mountlab.analysis.inside import Inside
from mountlab.analysis.memory_use import Use
from mountlab.analysis.why_frames import Why
from mountlab.checks import Moved
from mountlab.core.findings import Caveat, Comparison, Exclusions, OptionEvidence, PublishedFigure
from mountlab.core.frames import pd
from mountlab.core.model import CellStop, Sweep
from mountlab.filesystems.evidence import DeviceBytes
from mountlab.filesystems.making import RanCommand, Setup
from mountlab.stats.histograms import Histogram
from mountlab.tools.fio_series import Series


@dataclass(frozen=True, kw_only=True)
class TrialRecord:
    """What is kept of one trial beside its figures."""

    argv: tuple[str, ...] = ()
    """The measured command; () where none was run."""
    before: tuple[RanCommand, ...] = ()
    """The commands before it, which are not measured; () also where an earlier version did not keep them."""
    files: tuple[str, ...] = ()
    """Its files of raw output that hold something."""
    device: DeviceBytes | None = None
    """What the device below its file system moved while the tool ran."""
    busy: float | None = None
    """The share of all processors' time, while the tool ran, in which they ran anything."""


class Measured(Protocol):
    """What was asked, on which box, and every figure."""

    @property
    def info(self) -> Mapping[str, Any]: ...
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
    def memory(self) -> Sequence[Use]: ...
    @property
    def why(self) -> Why:
        """What its diagnostic trials explain; empty where it has none."""

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
    def percentiles(self) -> pd.DataFrame: ...
    def latencies(self, cell: str) -> Mapping[str, Histogram]: ...
    def inside(self, trial_id: str) -> Inside: ...
