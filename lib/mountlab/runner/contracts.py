"""What a run needs from outside: a journal that keeps results, and a receiver of progress reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from mountlab.core.cell_stop import CellStop
from mountlab.core.frames import pd
from mountlab.core.model import Sweep, Trial
from mountlab.outcome.archive import Files
from mountlab.outcome.judging import Outcome
from mountlab.sweep.plan import PlannedTrial


class Recorder(Protocol):
    """Where results go as soon as they exist (mountlab.results.writer.RunWriter)."""

    def has(self, trial_id: str) -> bool: ...
    def record(self, trial: Trial, files: Files, outcome: Outcome) -> None: ...
    def keep_mount(self, mount_id: str, files: Files) -> None: ...
    def mount_files(self, mount_id: str) -> Mapping[str, str]:
        """Return the texts that were kept of a mount, by an earlier session, too; {} where none were."""

    def recorded_trials(self) -> list[Trial]: ...
    def measured(self, sweep: Sweep) -> tuple[list[Trial], pd.DataFrame]: ...


class Progress(Protocol):
    """The receiver of reports on a run (mountlab.runner.progress)."""

    def begin(self, trial: PlannedTrial) -> None: ...
    def end(self, planned: PlannedTrial, trial: Trial) -> None: ...
    def end_cells(self, stops: Sequence[CellStop], trials: Sequence[PlannedTrial]) -> None: ...
    def notice(self, text: str) -> None: ...
