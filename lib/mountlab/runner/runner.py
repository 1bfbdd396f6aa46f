"""The order of effects of one run: open, and for each mount make, try and undo; always undone, whatever happens."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import groupby
from types import FrameType
from typing import Protocol

from mountlab.analysis.capacity import searches
from mountlab.analysis.stopping import decide
from mountlab.box.care import clean, kill_run
from mountlab.box.connection import BoxConnection
from mountlab.checks.outcome import Attempts, Ended, Files, Outcome, in_vain, judge, never_ended, set_aside, unpack
from mountlab.core.errors import BoxRestarted, BoxTimeout, ClientLost, CommandError, FloodError, ParseError, ToolError
from mountlab.core.findings import OptionEvidence
from mountlab.core.frames import pd
from mountlab.core.model import Status, Stop, Sweep, Trial
from mountlab.core.signals import all_handled
from mountlab.filesystems.making import COMMANDS, RanCommand, commands_text
from mountlab.filesystems.read_back import control_files, control_ids, ineffective, options_in_effect
from mountlab.runner.clients import Clients
from mountlab.runner.steps import StepRunner
from mountlab.sweep.plan import Plan, PlannedMount, PlannedTrial, WholePlot
from mountlab.tools.base import ToolOutput
from mountlab.tools.parsing import parsed
from mountlab.tools.precondition import FILE as ROUNDS_FILE
from mountlab.tools.precondition import Rounds, level


class Spoilt(Exception):
    """A trial left its file system unfit for the next one. A run tries the rest on one that is made again."""


RESTARTS = 2
"""Retries for a file system whose trials were lost to reboots."""
COLLECT, COLLECT_TIMEOUT_S = "collect", 120.0
"""The word by which trial.sh brings back what a killed trial left."""


class Journal(Protocol):
    """Where results go as soon as they exist (mountlab.results.writer.RunWriter)."""

    def has(self, trial_id: str) -> bool: ...
    def record(self, trial: Trial, files: Files) -> None: ...
    def keep_mount(self, mount_id: str, files: Files) -> None: ...
    def ended(self) -> list[Trial]: ...
    def measured(self, sweep: Sweep) -> tuple[list[Trial], pd.DataFrame]: ...


class Progress(Protocol):
    """The receiver of reports on what goes on (mountlab.runner.progress)."""

    def begin(self, trial: PlannedTrial) -> None: ...
    def end(self, planned: PlannedTrial, trial: Trial) -> None: ...
    def leave(self, stops: Sequence[Stop], trials: Sequence[PlannedTrial]) -> None: ...
    def notice(self, text: str) -> None: ...


def run_sweep(
    plan: Plan, box: BoxConnection, journal: Journal, progress: Progress, clients: Clients | None = None
) -> None:
    """Run every trial of the plan that the journal does not hold yet, and that the design's stopping rule still asks
    for: it is asked before each block, about the trials of the blocks before it.

    A trial or a mount that fails is recorded with its reason, and the rest goes on. Raises BoxError when the box is
    lost, UnsafeError when going on could destroy data, KeyboardInterrupt when asked to stop: always after undoing
    what was done, LeftoverError when that was not possible.
    """
    run = PlanRunner(plan, box, journal, progress, clients or Clients(plan, box, {}))
    with all_handled(run.stops.handle), ExitStack() as undo:
        run.step_runner.do(plan.opening, undo)
        while not run.completes():
            run.open_again()


class Stops:
    """Turns SIGINT, SIGTERM and SIGHUP into one KeyboardInterrupt, raised only while a trial runs or between turns: a
    mount that is interrupted half-way could not be undone."""

    def __init__(self) -> None:
        self.asked = False
        self._at_once = False

    def handle(self, _number: int, _frame: FrameType | None) -> None:
        self.asked = True
        if self._at_once:
            self._at_once = False
            raise KeyboardInterrupt

    def check(self) -> None:
        """Raise KeyboardInterrupt where a stop was asked for."""
        if self.asked:
            raise KeyboardInterrupt

    @contextmanager
    def allowed(self) -> Iterator[None]:
        """Here a stop takes effect at once."""
        self.check()
        self._at_once = True
        try:
            yield
        finally:
            self._at_once = False


@dataclass
class PlanRunner:
    """Does what a plan says, on one box."""

    plan: Plan
    box: BoxConnection
    journal: Journal
    progress: Progress
    clients: Clients
    controls: dict[str, dict[str, str]] = field(default_factory=dict)
    """File system name to the evidence of the one made without options."""
    broken: dict[str, str] = field(default_factory=dict)
    """Mount that was to last for the whole run to the reason for which there is none."""
    preconditioned: set[tuple[str, str]] = field(default_factory=set)
    """Mounts and cells whose rounds have been run."""
    aside: dict[str, str] = field(default_factory=dict)
    """Cell to why its later trials are skipped."""
    left: dict[str, Stop] = field(default_factory=dict)
    """Cell to why it has no more trials."""
    rates: dict[str, float] = field(default_factory=dict)
    """Cell to the arrival rate of its trial in this block, of a search; before its second block that is planned."""
    used: set[str] = field(default_factory=set)
    """Mounts that a trial has had since they were made."""
    refused: set[str] = field(default_factory=set)
    """Trials for which a mount that others had used was made again."""
    lasts: ExitStack = field(default_factory=ExitStack)
    """What undoes all mounts that last for the whole run."""
    stays: dict[str, ExitStack] = field(default_factory=dict)
    """Mount that lasts for the whole run to what undoes it."""
    restarts: Counter[str] = field(default_factory=Counter)
    """Mount to how often the box was restarted while it was made."""
    stops: Stops = field(default_factory=Stops)

    def __post_init__(self) -> None:
        self.step_runner = StepRunner(self.box, self.plan.run_id, self.plan.privileged, say=self.progress.notice)

    def completes(self) -> bool:
        """Make all that is still wanted, unless the box is restarted meanwhile: what was made on it is gone then."""
        try:
            with (
                self.clients.held(lambda: self.stops.asked),
                self.box.holding(self.plan.lease, lambda: self.stops.asked),
                ExitStack() as undo,
            ):
                self.everything(undo)
        except BoxRestarted as error:
            self.progress.notice(f"{error.what}; its file systems are made again")
            return False
        return True

    def everything(self, undo: ExitStack) -> None:
        self.lasts = undo
        for control in self.plan.controls:
            if control.id not in self.controls:
                self.control(control)
        self.recall()
        for mount in self.plan.lasting:
            if any(self.wants(trial) for trial in self.plan.trials if trial.mount == mount.id):
                self.lasting(mount, undo)
        for (diagnostic, block), turns in groupby(self.plan.whole_plots, key=_block_of):
            if not diagnostic:
                self.look(block)
            for turn in turns:
                waiting = [trial for trial in turn.trials if self.wants(trial)]
                if waiting:
                    self.turn(turn.mount, waiting)

    def open_again(self) -> None:
        """On a box that was restarted: remove what outlived that (images, the lock), and open it as at first."""
        self.stops.check()
        clean(self.box, below=(self.plan.lease.mount_root, self.plan.lease.output_root))
        self.preconditioned.clear()
        self.broken.clear()
        self.used.clear()
        self.step_runner.do(self.plan.opening, ExitStack())  # its undo waits already

    def control(self, mount: PlannedMount) -> None:
        """Make a file system without its options, see what the kernel shows, and undo it again. Where that fails the
        one with options may still do: then there is nothing to hold it against."""
        with suppress(CommandError), self.made(mount) as files:
            self.controls[mount.id] = files

    @contextmanager
    def made(self, mount: PlannedMount) -> Iterator[dict[str, str]]:
        """Make and mount a file system, keep the kernel's word on it, and undo all of that at the end."""
        bound: dict[str, str] = {}
        kept: dict[str, bytes] = {}
        ran: list[RanCommand] = []
        with ExitStack() as undo:
            for step in mount.steps:
                done = self.step_runner.do(step, undo, bound, ran)
                if step.keep:
                    kept[step.keep] = done.stdout + (done.stderr if step.guard else b"")
            kept[COMMANDS] = commands_text(ran).encode()
            self.journal.keep_mount(mount.id, kept)
            undo.enter_context(self.clients.mounted(mount))
            yield {name: data.decode(errors="replace") for name, data in kept.items()}

    @contextmanager
    def mounted(self, mount: PlannedMount) -> Iterator[dict[str, str]]:
        """A file system with every option in effect, and the kernel's word on it. Raises CommandError for one that is
        not, unless the design says that this is a caveat."""
        with self.made(mount) as files:
            fs = mount.filesystem
            control = control_files(*(self.controls.get(each) for each in control_ids(fs.name)))
            failed = ineffective(options_in_effect(fs, files, control))
            if failed and self.plan.sweep.design.on_ineffective == "error":
                raise _not_in_effect(fs.name, failed)
            yield files

    def lasting(self, mount: PlannedMount, undo: ExitStack) -> None:
        """Make a file system that stays until `undo`. One that fails fails its trials, when their turn comes."""
        self.stays[mount.id] = own = undo.enter_context(ExitStack())
        try:
            if not mount.skip:
                own.enter_context(self.mounted(mount))
        except (CommandError, ParseError) as error:
            self.broken[mount.id] = str(error)

    def recall(self) -> None:
        """What the stopping rule decided in an earlier session of the run, and which cells were set aside."""
        self.aside |= set_aside(self.journal.ended())
        counted = (turn for turn in self.plan.whole_plots if not turn.diagnostic)
        for (_, block), turns in groupby(counted, key=_block_of):
            self.look(block)
            if any(self.wants(trial) for turn in turns for trial in turn.trials):
                return

    def look(self, block: int) -> None:
        """Before a block: which cells have been measured often enough, and at which rates do searches go on?"""
        sweep = self.plan.sweep
        fewest = sweep.design.until.min if sweep.design.until else 1
        if not sweep.decides or block <= fewest:
            return
        trials, measurements = self.journal.measured(sweep)
        leaving = decide(sweep, trials, measurements, before=block, left=self.left)
        if sweep.searches:
            found = searches(sweep, measurements, before=block)
            self.rates = {cell: own.next_rate for cell, own in found.items() if cell not in self.left | leaving}
        self.left |= leaving
        if leaving:
            later = (turn for turn in self.plan.whole_plots if turn.block >= block and not turn.diagnostic)
            dropped = [trial for turn in later for trial in turn.trials if trial.cell.id in leaving]
            self.progress.leave(list(leaving.values()), dropped)

    def wants(self, trial: PlannedTrial) -> bool:
        """Return whether a trial is still to be run: a stopping rule drops counted ones alone."""
        left = trial.cell.id in self.left and not trial.diagnostic
        return not left and not self.journal.has(trial.trial_id)

    def turn(self, mount: PlannedMount | None, trials: list[PlannedTrial]) -> None:
        """Run all trials of one mount. A mount that fails fails its trials, and nothing else. One that a trial has
        spoilt is made again for the others."""
        rest = trials
        while wanted := self.runnable(rest):
            rest = self.on_one(mount, wanted)

    def on_one(self, mount: PlannedMount | None, wanted: list[PlannedTrial]) -> list[PlannedTrial]:
        """Run trials on one making of a mount, and return those that want another one."""
        try:
            with self.mounted(mount) if mount else nullcontext():
                for trial in wanted:
                    self.surely(trial)
        except Spoilt:
            rest = [trial for trial in wanted if self.wants(trial)]
            self.forget(mount, wanted[0], again=bool(rest))
            return rest
        except (CommandError, ParseError) as error:  # what failed, or evidence that cannot be read
            self._fail(wanted, str(error))
        except BoxRestarted as error:
            self.restarted(mount, wanted, error)
            raise
        return []

    def runnable(self, trials: list[PlannedTrial]) -> list[PlannedTrial]:
        """Record those that cannot be run, and return the others."""
        for trial in trials:
            skip = trial.skip or self.aside.get(trial.cell.id, "")
            if skip or trial.mount in self.broken:
                status: Status = "skipped" if skip else "failed"
                self._not_run(trial, status, skip or self.broken[trial.mount])
        return [trial for trial in trials if self.wants(trial)]

    def forget(self, mount: PlannedMount | None, trial: PlannedTrial, *, again: bool) -> None:
        """Forget a making of a file system that a trial has spoilt. One that lasts for the whole run is undone here and
        made again; one of a turn is undone by now."""
        name = trial.mount
        self.used.discard(name)
        self.preconditioned = {(of, cell) for of, cell in self.preconditioned if of != name}
        if again:
            self.progress.notice(f"{trial.cell.filesystem.name}: a tool left it unfit for use; it is made again")
        if mount is None:
            (lasting,) = (each for each in self.plan.lasting if each.id == name)
            self.stays[name].close()
            self.lasting(lasting, self.lasts)

    def surely(self, trial: PlannedTrial) -> None:
        """Run a trial. One that was interrupted by a restart of the box, or the loss of a client, has failed."""
        try:
            self.trial(trial)
        except (BoxRestarted, ClientLost) as error:
            self._fail([trial], str(error))
            raise

    def restarted(self, mount: PlannedMount | None, wanted: list[PlannedTrial], error: BoxRestarted) -> None:
        """A box that restarts again and again while a file system is made does so because of it: then its trials fail,
        instead of being tried for ever."""
        if any(self.journal.has(trial.trial_id) for trial in wanted):
            return
        name = mount.id if mount else wanted[0].mount
        self.restarts[name] += 1
        if self.restarts[name] > RESTARTS:
            self._fail(wanted, str(error))

    def _fail(self, trials: list[PlannedTrial], reason: str) -> None:
        for trial in trials:
            if not self.journal.has(trial.trial_id):
                self._not_run(trial, "failed", reason)

    def _not_run(self, planned: PlannedTrial, status: Status, reason: str) -> None:
        self._finish(planned, as_trial(planned, status, reason, datetime.now(UTC), 0.0), {})

    def trial(self, planned: PlannedTrial) -> None:
        """Try it until it gives a measurement, runs into its time limit, fails for a reason that stays, or has been
        tried often enough."""
        if planned.at_rate and not planned.warmup and planned.cell.id in self.rates:
            planned = planned.at_rate(self.rates[planned.cell.id])
        self.progress.begin(planned)
        kept = self.precondition(planned)
        began, started = datetime.now(UTC), time.monotonic()
        tried = Attempts((self.once(planned),))
        while tried.last.transient and len(tried.each) <= self.plan.sweep.design.retries:
            tried = Attempts((*tried.each, self.once(planned)))
        elapsed_s = time.monotonic() - started
        if tried.last.refused and planned.mount in self.used and planned.trial_id not in self.refused:
            self.refused.add(planned.trial_id)
            raise Spoilt
        self.used.add(planned.mount)
        trial = as_trial(planned, tried.last.status, tried.reason, began, elapsed_s, tried)
        self._finish(planned, trial, {**tried.files, **kept})
        if tried.last.spoilt:
            raise Spoilt

    def precondition(self, planned: PlannedTrial) -> Files:
        """Rounds before the first trial of a workload on a mount, where it asks for them: what to keep of them."""
        workload, key = planned.cell.workload, (planned.mount, planned.cell.id)
        if not workload.precondition or key in self.preconditioned:
            return {}
        rounds = Rounds(workload.precondition)
        assert planned.redrawn is not None
        while not rounds.done:
            outcome = self.once(planned.redrawn(len(rounds.levels) + 1))
            if outcome.error:
                rounds = replace(rounds, failed=outcome.reason)
            else:
                figures = parsed(workload, ToolOutput.from_files(outcome.files))
                rounds = replace(rounds, levels=(*rounds.levels, level(workload, figures)))
        self.preconditioned.add(key)
        return {ROUNDS_FILE: rounds.text().encode()}

    def once(self, planned: PlannedTrial) -> Outcome:
        """Return one attempt at a trial, together with its clients where it has some."""
        return self.clients.around(planned, lambda: self.alone(planned))

    def alone(self, planned: PlannedTrial) -> Outcome:
        """Run the command of a trial, and see what came of it."""
        try:
            with self.stops.allowed():
                done = self.box.run(planned.argv, timeout_s=planned.timeout_s, root=self.plan.privileged)
        except BoxTimeout:
            files = self.collected(planned)
            return Outcome(files=files, error=never_ended(files, planned.timeout_s))
        except FloodError as error:
            return Outcome(files=self.collected(planned), error=ToolError(str(error)))
        except KeyboardInterrupt:
            kill_run(self.box, self.plan.run_id)
            raise
        files = unpack(done.stdout) if done.ok else {"stderr": done.stderr, **self.collected(planned)}
        ended = Ended(exit_status=done.exit_status, archive=done.stdout, said=done.error_text)
        return judge(planned.cell.workload, files, ended, timeout_s=planned.command.timeout_s, parse=parsed)

    def collected(self, planned: PlannedTrial) -> dict[str, bytes]:
        """End what a trial that could not end itself has left running; what it left of files, brought back and gone."""
        kill_run(self.box, self.plan.run_id)
        try:
            done = self.box.run((*planned.argv, COLLECT), timeout_s=COLLECT_TIMEOUT_S, root=self.plan.privileged)
        except BoxTimeout:
            return {}
        return unpack(done.stdout)

    def _finish(self, planned: PlannedTrial, trial: Trial, files: Files) -> None:
        if trial.status == "timeout" and not trial.diagnostic and in_vain([*self.journal.ended(), trial], trial.cell):
            trial = replace(trial, set_aside=True)
        asked = {"argv": json.dumps(list(planned.command.argv)).encode()}
        if before := _unmeasured(planned):
            asked[COMMANDS] = commands_text(before).encode()
        self.journal.record(trial, {**files, **asked})
        self.aside |= set_aside([trial])
        self.progress.end(planned, trial)


def _block_of(turn: WholePlot) -> tuple[bool, int]:
    """Return the block of a turn: diagnostic ones have numbers of their own."""
    return turn.diagnostic, turn.block


def _unmeasured(planned: PlannedTrial) -> list[RanCommand]:
    """Return what is run before the measured command: what it reads is laid out, and the page cache made as it is to
    be."""
    laid_out = [RanCommand("lays out what is read; not measured", argv) for argv in planned.command.prepare]
    return laid_out + [
        RanCommand("makes the page cache what it is to be; not measured", argv) for argv in planned.ready
    ]


def _not_in_effect(name: str, rows: list[OptionEvidence]) -> CommandError:
    return CommandError(
        f"{name}: not in effect as asked: {', '.join(f'{row.option} ({row.state})' for row in rows)}",
        where=f"filesystems.{name}",
        got="; ".join(f"{row.option}: {row.state}, the kernel says {row.kernel_says}" for row in rows),
        allowed="every option in effect, or shown nowhere by a kernel that refuses what it does not know",
        next_step="remove what the kernel ignores, or measure without it: design.on_ineffective: caveat",
    )


def as_trial(
    planned: PlannedTrial, status: Status, reason: str, began: datetime, elapsed_s: float, tried: Attempts | None = None
) -> Trial:
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
        started_at=began.isoformat(timespec="milliseconds"),
        elapsed_s=round(elapsed_s, 6),
        attempts=len(tried.each) if tried else 1,
        set_aside=tried is not None and tried.last.hopeless and not planned.diagnostic,
        seed=planned.command.seed,
        diagnostic=planned.diagnostic,
    )
