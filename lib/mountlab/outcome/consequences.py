"""What follows from a trial that gave no measurement: another attempt, or the end of its cell. Whether its file system
is made again does not depend on the error, but on what the trial found there or left (runner.trial_executor)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from mountlab.core.errors import (
    EnvironmentFault,
    TimedOut,
    TransientError,
    TrialError,
    ValueRefused,
    in_one_line,
)
from mountlab.core.model import Trial

SET_ASIDE = "set aside: "
"""First words of the reason for which the later trials of a cell are skipped."""


class CellEnds(Enum):
    """When a cell has no more trials after an error."""

    NEVER = "never"
    AT_ONCE = "after this trial"
    TWO_EXHAUSTED = "when two of its trials in a row have used up their attempts"
    FIRST_TWO = "when its first two trials ended like this"


@dataclass(frozen=True)
class Consequence:
    """What follows from one kind of error of a trial, for the trial and for its cell."""

    retry: bool
    """Whether the trial is attempted again at once, up to design.retries times."""
    cell_ends: CellEnds


CONSEQUENCES: Mapping[type[TrialError], Consequence] = {
    # It may go another way: killed, no memory, a client cut off. Twice in a row, retries included, is no accident.
    TransientError: Consequence(retry=True, cell_ends=CellEnds.TWO_EXHAUSTED),
    # An outcome and no failure: a repetition would leave the slow trials out of the figures.
    TimedOut: Consequence(retry=False, cell_ends=CellEnds.FIRST_TWO),
    # Neither the tool nor its options are at fault.
    EnvironmentFault: Consequence(retry=False, cell_ends=CellEnds.NEVER),
    # The next value may be a good one.
    ValueRefused: Consequence(retry=False, cell_ends=CellEnds.NEVER),
    # The tool failed, or its output has no figures: later trials of the cell would do the same.
    TrialError: Consequence(retry=False, cell_ends=CellEnds.AT_ONCE),
}
"""Kind of error to what follows; an error counts as the nearest of its base classes here."""


def consequence_of(error: TrialError) -> Consequence:
    """Return what follows from an error."""
    return next(CONSEQUENCES[kind] for kind in type(error).__mro__ if kind in CONSEQUENCES)


def is_last_of_cell(error: TrialError, trial: Trial, earlier: Sequence[Trial]) -> bool:
    """Return whether a trial is the last one of its cell. `error`: the error of its last attempt; `earlier`: the trials
    in the journal, of any cell."""
    same_cell = [other for other in earlier if other.cell == trial.cell and not other.diagnostic]
    match consequence_of(error).cell_ends:
        case CellEnds.AT_ONCE:
            return True
        case CellEnds.TWO_EXHAUSTED:
            return same_cell[-1:] != [] and same_cell[-1].exhausted
        case CellEnds.FIRST_TWO:
            return same_cell != [] and all(other.status == "timeout" for other in same_cell)
        case CellEnds.NEVER:
            return False


def set_aside_reasons(trials: Iterable[Trial]) -> dict[str, str]:
    """Return id of a cell that has no more trials to the reason, from the trials of the journal."""
    return {
        trial.cell: f"{SET_ASIDE}{trial.trial_id} {trial.status}: {in_one_line(trial.reason)}"
        for trial in trials
        if trial.set_aside
    }
