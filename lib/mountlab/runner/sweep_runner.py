"""The order of effects of one run: open the box; in each block make each file system, run its trials and undo it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, nullcontext

from mountlab.box.connection import BoxConnection
from mountlab.box.leftovers import remove_leftovers
from mountlab.core.errors import BoxRestarted, CommandError, ParseError
from mountlab.core.signals import all_handled
from mountlab.runner.cell_state import CellStates
from mountlab.runner.clients import Clients
from mountlab.runner.contracts import Progress, Recorder
from mountlab.runner.interruption import Interruption
from mountlab.runner.mount_session import MountSession, PersistentMounts
from mountlab.runner.steps import StepRunner
from mountlab.runner.trial_executor import MountUses, NewMountNeeded, TrialExecutor
from mountlab.sweep.plan import Plan, PlannedBlock, PlannedMount, PlannedTrial
from mountlab.sweep.planned_state import PlannedState

MOST_RESTARTS = 2
"""How often a file system is made again whose making ended with a restart of the box; then its trials fail."""


def run_sweep(
    plan: Plan, box: BoxConnection, recorder: Recorder, progress: Progress, clients: Clients | None = None
) -> None:
    """Run every trial of the plan that the journal does not hold yet, and that the design's stop rule still wants.

    A trial or a mount that fails is recorded with its reason, and the rest goes on. Raises BoxError when the box is
    lost, UnsafeError when going on could destroy data, KeyboardInterrupt when asked to stop: always after undoing
    every change, LeftoverError when that was not possible.
    """
    SweepRunner(plan, box, recorder, progress, clients or Clients(plan, box, {})).run()


class SweepRunner:
    """Runs one plan on one box."""

    def __init__(
        self, plan: Plan, box: BoxConnection, recorder: Recorder, progress: Progress, clients: Clients
    ) -> None:
        self.plan, self.box, self.recorder, self.progress, self.clients = plan, box, recorder, progress, clients
        self.interruption = Interruption()
        self.steps = StepRunner(
            box, plan.run_id, plan.privileged, say=progress.notice, interruptible=self.interruption.at_once
        )
        self.mounts = MountSession(self.steps, recorder, clients, plan.sweep.design)
        self.cells = CellStates(plan.sweep, recorder)
        self.mount_uses = MountUses()
        self.trials = TrialExecutor(
            plan, box, clients, recorder, progress, self.cells, self.interruption, self.mount_uses
        )
        self._restarts: Counter[str] = Counter()
        """Number of restarts of the box during the making of a mount, by the mount's id."""

    def run(self) -> None:
        """Run the whole plan, as `run_sweep` does."""
        with all_handled(self.interruption.handle), ExitStack() as undo:
            self.steps.do(self.plan.opening, undo)
            while True:
                try:
                    self.run_blocks()
                    return
                except BoxRestarted as error:
                    self.progress.notice(f"{error.what}; its file systems are made again")
                    self.reopen_box()

    def run_blocks(self) -> None:
        """Run all blocks. Raises BoxRestarted when the box is restarted meanwhile, which undoes everything on it."""
        stop_requested = lambda: self.interruption.requested  # noqa: E731  # two arguments of one meaning
        with (
            self.clients.held(stop_requested),
            self.box.holding(self.plan.lease, stop_requested),
            ExitStack() as undo,
        ):
            for control in self.plan.controls:
                self.mounts.read_control(control)
            self.restore_cells()
            persistent = PersistentMounts(self.mounts, undo)
            wanted = {trial.mount for trial in self.plan.trials if not trial.skip_reason and self.cells.wants(trial)}
            for mount in self.plan.lasting:
                if mount.id in wanted:
                    persistent.make(mount)
            persistent.failures |= self.make_states(wanted, undo)
            for block in self.plan.blocks:
                self.apply_stop_rule(block)
                for group in block.mount_groups:
                    self.run_on_mount(group.mount, group.trials, persistent)

    def make_states(self, wanted: set[str], undo: ExitStack) -> dict[str, str]:
        """Make the states that the mounts in `wanted` restore, and return mount to why its state could not be made.

        All of them before the first trial: no block runs right after hours of writing that others do not have.
        """
        failures: dict[str, str] = {}
        for state in self.plan.states:
            of_state = [mount.id for mount in self.plan.mounts if mount.made_state and mount.made_state.id == state.id]
            mounts = [mount for mount in of_state if mount in wanted]
            if mounts and not state.again and (reason := self.make_state(state, undo)):
                failures |= dict.fromkeys(mounts, reason)
        return failures

    def make_state(self, state: PlannedState, undo: ExitStack) -> str:
        """Make one state, kept until `undo` is closed; return why it could not be made. Raises BoxRestarted."""
        if self._restarts[state.id] > MOST_RESTARTS:
            return f"the box was restarted {self._restarts[state.id]} times while the state {state.state.name} was made"
        self.interruption.check()
        self.progress.notice(f"{state.filesystem.name}: the state {state.state.name} is made")
        try:
            self.mounts.make_state(state, undo)
        except (CommandError, ParseError) as error:
            return str(error)
        except BoxRestarted:
            self._restarts[state.id] += 1
            raise
        return ""

    def restore_cells(self) -> None:
        """Repeat the decisions of an earlier session of this run, from its journal."""
        self.cells.add(self.recorder.recorded_trials())
        for block in self.plan.counted_blocks:
            self.apply_stop_rule(block)
            if any(self.cells.wants(trial) for trial in block.trials):
                return  # later blocks are decided when the run comes to them

    def apply_stop_rule(self, block: PlannedBlock) -> None:
        """Apply the stop rule before a block, and report the trials that it saves."""
        stops = self.cells.decide_stops(block)
        if stops:
            cells = {stop.cell for stop in stops}
            later = [other for other in self.plan.counted_blocks if other.number >= block.number]
            trials = [trial for other in later for trial in other.trials if trial.cell.id in cells]
            self.progress.end_cells(stops, trials)

    def run_on_mount(
        self, mount: PlannedMount | None, trials: Sequence[PlannedTrial], persistent: PersistentMounts
    ) -> None:
        """Run the trials of one group. If its mount fails, they fail, and nothing else does. `mount`: None for a
        persistent one. A mount that is unfit for use is made again for the trials that are left."""
        wanted = [trial for trial in trials if self.cells.wants(trial)]
        while wanted := self.trials.runnable(wanted, persistent.failures):
            try:
                with self.mounts.verified(mount) if mount else nullcontext():
                    for trial in wanted:
                        self.trials.run(trial)
                return
            except NewMountNeeded as error:
                self.prepare_new_mount(mount, wanted, persistent, str(error))
            except (CommandError, ParseError) as error:  # of a step on the box or a client, or of the kernel's report
                self.trials.record_not_run(wanted, "failed", str(error))
            except BoxRestarted as error:
                self.count_restart(wanted, error)
                raise

    def prepare_new_mount(
        self, mount: PlannedMount | None, trials: Sequence[PlannedTrial], persistent: PersistentMounts, why: str
    ) -> None:
        """Forget an unfit mount, and make a persistent one again at once; another is undone by now."""
        mount_id = trials[0].mount
        self.mount_uses.forget(mount_id)
        if any(self.cells.wants(trial) for trial in trials):
            name = trials[0].cell.filesystem.name
            self.progress.notice(f"{name}: {why}; it is made again")
        if mount is None:
            persistent.make_again(mount_id)

    def count_restart(self, trials: Sequence[PlannedTrial], error: BoxRestarted) -> None:
        """Let trials fail whose file system restarts the box again and again when it is made."""
        if any(self.recorder.has(trial.trial_id) for trial in trials):
            return
        self._restarts[trials[0].mount] += 1
        if self._restarts[trials[0].mount] > MOST_RESTARTS:
            self.trials.record_not_run(trials, "failed", str(error))

    def reopen_box(self) -> None:
        """Open a restarted box as at first. What outlived the restart (images, the lock) is removed before."""
        self.interruption.check()
        remove_leftovers(self.box, below=(self.plan.lease.mount_root, self.plan.lease.output_root))
        self.mount_uses.clear()
        self.steps.do(self.plan.opening, ExitStack())  # the first opening has registered its undo
