"""Which cells of a run have further trials: the effect of finished trials on later ones."""

from __future__ import annotations

from collections.abc import Iterable

from mountlab.analysis.stopping import RunSoFar, stop_rule
from mountlab.core.cell_stop import CellStop
from mountlab.core.model import Sweep, Trial
from mountlab.outcome.consequences import set_aside_reasons
from mountlab.runner.contracts import Recorder
from mountlab.sweep.plan import PlannedBlock, PlannedTrial


class CellStates:
    """The state of every cell: still measured, stopped by the rule of the design, or set aside after a failure.

    All of it follows from the journal, so a resumed run decides as the interrupted one would have done.
    """

    def __init__(self, sweep: Sweep, recorder: Recorder) -> None:
        self.stops: dict[str, CellStop] = {}
        """Id of a cell to why the stop rule ended it."""
        self.skip_reasons: dict[str, str] = {}
        """Id of a cell to why its later trials are skipped."""
        self.rates: dict[str, float] = {}
        """Id of a cell in a search to the arrival rate of its next trial (1/s); other cells keep the planned rate."""
        self._sweep, self._recorder = sweep, recorder
        self._rule = stop_rule(sweep)
        self._decided_block = 0
        """Number of the last block before which the rule was applied."""

    def wants(self, trial: PlannedTrial) -> bool:
        """Return whether a trial is still to be run. A stop rule ends counted trials only."""
        stopped = trial.cell.id in self.stops and not trial.diagnostic
        return not stopped and not self._recorder.has(trial.trial_id)

    def add(self, trials: Iterable[Trial]) -> None:
        """Add trials that have ended: some of them set their cell aside."""
        self.skip_reasons |= set_aside_reasons(trials)

    def decide_stops(self, block: PlannedBlock) -> list[CellStop]:
        """Apply the stop rule before a block, and return the cells that it ends now. Each block is decided once: later
        stops would change what the rule says about an earlier block."""
        if self._rule is None or block.diagnostic or block.number <= max(self._rule.fewest_blocks, self._decided_block):
            return []
        self._decided_block = block.number
        so_far = RunSoFar(*self._recorder.measured(self._sweep))
        decision = self._rule.decide(so_far, before=block.number, stopped=self.stops)
        self.stops |= decision.stops
        self.rates = dict(decision.rates)
        return list(decision.stops.values())
