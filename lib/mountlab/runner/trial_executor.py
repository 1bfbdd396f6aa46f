"""One trial: attempted, retried, judged and recorded."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from mountlab.box.connection import BoxConnection
from mountlab.box.leftovers import kill_run
from mountlab.core.errors import BoxRestarted, BoxTimeout, ClientLost, FloodError, NeighbourFault, ToolError
from mountlab.core.model import Status, Trial
from mountlab.core.trial_files import TrialFiles
from mountlab.filesystems.making import RanCommand, commands_text
from mountlab.outcome.archive import Files, unpack
from mountlab.outcome.consequences import is_last_of_cell
from mountlab.outcome.judging import Attempts, Outcome, ScriptExit, judge, script_timeout
from mountlab.programs.parsing import parsed
from mountlab.programs.precondition import Rounds, level
from mountlab.runner.away import NeighboursAway
from mountlab.runner.cell_state import CellStates
from mountlab.runner.clients import Clients
from mountlab.runner.contracts import Progress, Recorder
from mountlab.runner.interruption import Interruption
from mountlab.sweep.plan import Plan, PlannedTrial

COLLECT, COLLECT_TIMEOUT_S = "collect", 120.0
"""The argument with which trial.sh returns the files of a killed trial."""


class NewMountNeeded(Exception):
    """A file system must be made again before the next trial. The text says why."""


class MountSpoilt(NewMountNeeded):
    """A trial, which is recorded, has left it unfit for use."""


class MountFoundUnfit(NewMountNeeded):
    """A trial found it unfit for use, and measured nothing. It is not recorded: it is run again."""


@dataclass
class MountUses:
    """What trials have done with the file systems that are mounted now."""

    used: set[str] = field(default_factory=set)
    """Mounts on which a tool has run, be it in an attempt that was repeated or to precondition."""
    preconditioned: set[tuple[str, str]] = field(default_factory=set)
    """Mount and cell whose rounds of preconditioning have been run."""

    def clear(self) -> None:
        """Forget all file systems: the box was restarted."""
        self.used.clear()
        self.preconditioned.clear()

    def forget(self, mount_id: str) -> None:
        """Forget a file system that is made again."""
        self.used.discard(mount_id)
        self.preconditioned = {(mount, cell) for mount, cell in self.preconditioned if mount != mount_id}


class TrialExecutor:
    """Executes the trials of one run on mounted file systems.

    `makes_again`: whether a trial whose file system was found unfit gets a new one, once.
    """

    def __init__(
        self,
        plan: Plan,
        box: BoxConnection,
        clients: Clients,
        recorder: Recorder,
        progress: Progress,
        cells: CellStates,
        interruption: Interruption,
        mount_uses: MountUses,
        *,
        makes_again: bool = True,
    ) -> None:
        self._plan, self._box, self._clients, self._recorder, self._progress = plan, box, clients, recorder, progress
        self._cells, self._interruption, self._uses, self._makes_again = cells, interruption, mount_uses, makes_again
        self._got_new_mount: set[str] = set()
        """Trials for which a file system was made again because they had found it unfit."""

    def runnable(self, trials: Sequence[PlannedTrial], failures: dict[str, str]) -> list[PlannedTrial]:
        """Record the trials that cannot be run, and return the others. `failures`: mount to why there is none."""
        for trial in trials:
            if reason := trial.skip_reason or self._cells.skip_reasons.get(trial.cell.id, ""):
                self.record_not_run([trial], "skipped", reason)
            elif reason := failures.get(trial.mount, ""):
                self.record_not_run([trial], "failed", reason)
        return [trial for trial in trials if self._cells.wants(trial)]

    def record_not_run(self, trials: Sequence[PlannedTrial], status: Status, reason: str) -> None:
        """Record those of these trials that are not in the journal."""
        for planned in trials:
            if not self._recorder.has(planned.trial_id):
                self._record(planned, as_trial(planned, status, reason, datetime.now(UTC), 0.0), {}, Outcome())

    def run(self, planned: PlannedTrial) -> None:
        """Run and record one trial: attempted until it gives a measurement, fails for a reason that stays, or is out of
        retries (mountlab.outcome.consequences).

        Raises NewMountNeeded where its file system has to be made again: for the next trial, or to run this one again.
        A trial that is cut off by BoxRestarted or ClientLost is recorded as failed.
        """
        if planned.at_rate and not planned.warmup and planned.cell.id in self._cells.rates:
            planned = planned.at_rate(self._cells.rates[planned.cell.id])
        self._progress.begin(planned)
        try:
            self._run(planned)
        except (BoxRestarted, ClientLost) as error:
            self.record_not_run([planned], "failed", str(error))
            raise

    def _run(self, planned: PlannedTrial) -> None:
        rounds = self._precondition(planned)
        start, start_s = datetime.now(UTC), time.monotonic()
        attempts = Attempts((self._attempt(planned),))
        while attempts.last.retry and len(attempts.outcomes) <= self._plan.sweep.design.retries:
            attempts = Attempts((*attempts.outcomes, self._attempt(planned)))
        elapsed_s = time.monotonic() - start_s
        last = attempts.last
        may_get_new_mount = self._makes_again and planned.trial_id not in self._got_new_mount
        if last.found_mount_unfit and planned.mount in self._uses.used and may_get_new_mount:
            self._got_new_mount.add(planned.trial_id)
            raise MountFoundUnfit(f"{planned.trial_id} found it unfit for use")
        self._uses.used.add(planned.mount)
        trial = as_trial(planned, last.status, attempts.reason, start, elapsed_s, attempts)
        if last.error and not trial.diagnostic:  # else the journal would be read again after each trial
            trial = replace(trial, set_aside=is_last_of_cell(last.error, trial, self._recorder.recorded_trials()))
        self._record(planned, trial, {**attempts.files, **rounds}, last)
        if last.spoilt_mount:
            raise MountSpoilt("a tool left it unfit for use")

    def _record(self, planned: PlannedTrial, trial: Trial, files: Files, outcome: Outcome) -> None:
        commands: dict[str, bytes] = {TrialFiles.ARGV: json.dumps(list(planned.command.argv)).encode()}
        if preparing := _preparing_commands(planned):
            commands[TrialFiles.COMMANDS] = commands_text(preparing).encode()
        self._recorder.record(trial, {**files, **commands}, outcome)
        self._cells.add([trial])
        self._progress.end(planned, trial)

    def _precondition(self, planned: PlannedTrial) -> Files:
        """Run the rounds that a workload asks for before its first trial on a file system, and return their record."""
        workload, key = planned.cell.workload, (planned.mount, planned.cell.id)
        if not workload.precondition or key in self._uses.preconditioned:
            return {}
        rounds = Rounds(workload.precondition)
        assert planned.redrawn is not None
        while not rounds.done:
            outcome = self._attempt(planned.redrawn(len(rounds.levels) + 1))
            if outcome.error:
                rounds = replace(rounds, failed=outcome.reason)
            else:
                rounds = replace(rounds, levels=(*rounds.levels, level(workload, outcome.measurements)))
        self._uses.preconditioned.add(key)
        return {TrialFiles.ROUNDS: rounds.text().encode()}

    def _attempt(self, planned: PlannedTrial) -> Outcome:
        away = self._clients.neighbours(planned)
        try:
            with away.running():
                outcome = self._clients.attempt(planned, lambda: self._attempt_on_box(planned, away))
        except NeighbourFault as error:
            outcome = Outcome(error=error)
        if not outcome.found_mount_unfit:
            self._uses.used.add(planned.mount)
        return outcome

    def _attempt_on_box(self, planned: PlannedTrial, away: NeighboursAway) -> Outcome:
        try:
            with self._interruption.at_once():
                completed = self._box.run(planned.argv, timeout_s=planned.timeout_s, root=self._plan.privileged)
        except BoxTimeout:
            files = self._collect(planned)
            return Outcome(files=files, error=script_timeout(files, planned.timeout_s))
        except FloodError as error:
            return Outcome(files=self._collect(planned), error=ToolError(str(error)))
        except KeyboardInterrupt:
            kill_run(self._box, self._plan.run_id)
            raise
        files = (
            unpack(completed.stdout)
            if completed.ok
            else {TrialFiles.STDERR: completed.stderr, **self._collect(planned)}
        )
        script_exit = ScriptExit(
            exit_status=completed.exit_status, archive=completed.stdout, error_text=completed.error_text
        )
        return judge(
            planned.cell.workload,
            away.with_files(files),
            script_exit,
            timeout_s=planned.command.timeout_s,
            parse=parsed,
        )

    def _collect(self, planned: PlannedTrial) -> dict[str, bytes]:
        """Kill the processes of a trial that could not end itself, and return the files that it left."""
        kill_run(self._box, self._plan.run_id)
        try:
            completed = self._box.run((*planned.argv, COLLECT), timeout_s=COLLECT_TIMEOUT_S, root=self._plan.privileged)
        except BoxTimeout:
            return {}
        return unpack(completed.stdout)


def _preparing_commands(planned: PlannedTrial) -> list[RanCommand]:
    """Return the commands before the measured one: files are laid out, and the page cache is prepared."""
    return [RanCommand("lays out what is read; not measured", argv) for argv in planned.command.prepare] + [
        RanCommand("makes the page cache what it is to be; not measured", argv) for argv in planned.ready
    ]


def as_trial(
    planned: PlannedTrial,
    status: Status,
    reason: str,
    start: datetime,
    elapsed_s: float,
    attempts: Attempts | None = None,
) -> Trial:
    """Return the journal's record of a planned trial. `attempts`: none of a trial that was not run."""
    return Trial(
        trial_id=planned.trial_id,
        block=planned.block,
        warmup=planned.warmup,
        cell=planned.cell.id,
        filesystem=planned.cell.filesystem.name,
        workload=planned.cell.workload.name,
        tool=planned.cell.workload.tool,
        factors=dict(planned.cell.workload.factors),
        mount=planned.mount,
        status=status,
        reason=reason,
        started_at=start.isoformat(timespec="milliseconds"),
        elapsed_s=round(elapsed_s, 6),
        attempts=len(attempts.outcomes) if attempts else 1,
        seed=planned.command.seed,
        diagnostic=planned.diagnostic,
        exhausted=attempts is not None and attempts.last.retry,
    )
