"""A batch on several boxes at the same time: gives out its items, and does not wait for a task that hangs.

What is true of a batch is in its journal and in the directories of its runs. Workers and schedulers may be lost: an
item that was being done is given out once more, and goes on with its run.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from mountlab.batch import cluster
from mountlab.batch.batch_file import Item, ItemOutcome
from mountlab.batch.cluster import Broken, Cluster, Taken, Unfit
from mountlab.batch.item import TICK_S
from mountlab.batch.plan import UNREACHABLE, Places
from mountlab.batch.progress import Watch
from mountlab.batch.queue import HERE, Queue, Task
from mountlab.batch.store import BatchDirectory, cannot, full_disk, now
from mountlab.batch.view import Planned
from mountlab.batch.work import located, session_of, unfit, work_of
from mountlab.core import errors
from mountlab.core.errors import KeepError, SchedulerError
from mountlab.core.signals import all_handled
from mountlab.results import journal, paths

FIRST_PAUSE_S, LONGEST_PAUSE_S = 2.0, 30.0
"""Before an item is tried again that somebody else was in the way of: doubled each time."""
MARGIN_S = 60.0
"""Somebody who is gone is out of the way after the grace time of the box and this."""
REGAIN_S = 60.0
"""How long a scheduler that is gone is waited for."""
IN_THE_WAY = ("BoxInUse", "RunInUse")


def do_many(
    items: Sequence[Item],
    spots: Places,
    directory: BatchDirectory,
    results: Path,
    *,
    scheduler: str | None,
    at_once: int | None,
) -> None:
    """Do these items, and record what became of each.

    Raises KeyboardInterrupt when stopped and KeepError when nothing can be written any more, both after what ran has
    ended; SchedulerError where the scheduler cannot be reached, or not again, or none of its workers is fit.
    """
    movable = tuple(located(item) for item in items)
    queue = spots.queue(movable, at_once=at_once)
    with Watch(queue, spots.names, directory, results) as watch:
        many = _Many(movable, spots, directory, results, queue, watch)
        with all_handled(many.count_interrupt):
            many.run(scheduler)
        if many.full is not None:
            raise many.full
        if many.interrupts:
            raise KeyboardInterrupt


@dataclass
class _Wait:
    """An item that somebody is in the way of."""

    until: float
    pause_s: float
    trials: int = 0


@dataclass
class _Many:
    items: Sequence[Item]
    spots: Places
    directory: BatchDirectory
    results: Path
    queue: Queue
    watch: Watch
    interrupts: int = 0
    """How often Ctrl-C was pressed; SIGTERM and SIGHUP count, too."""
    full: KeepError | None = None
    stop_requested: bool = False
    """Of the workers."""
    waits: dict[str, _Wait] = field(default_factory=dict)
    reported_unfit: set[str] = field(default_factory=set)

    @property
    def stopping(self) -> bool:
        return bool(self.interrupts or self.full)

    def count_interrupt(self, *_: object) -> None:
        """Handle a signal: an exception in the middle of something would lose an outcome."""
        self.interrupts += 1

    # ── the scheduler ────────────────────────────────────────────────────────────────────────────────────────────────

    def run(self, scheduler: str | None) -> None:
        session = session_of(self.directory, self.items, self.spots.machines)
        threads = len(set(self.spots.machines.values())) + 1
        gone_at: float | None = None
        while self.queue.pending and not self.stopping:
            try:
                with cluster.opened(scheduler, partial(unfit, session), threads=threads) as engine:
                    self.check_workers(engine)
                    if gone_at is not None:
                        self.watch.say(f"the scheduler is back after {time.monotonic() - gone_at:.0f} s")
                    gone_at = None
                    self.do_tasks(engine, partial(work_of, session=session, results=self.results))
            except SchedulerError as error:
                if gone_at is None and not self.queue.running:
                    raise
                gone_at = self.await_scheduler(error, gone_at)

    def await_scheduler(self, error: SchedulerError, gone_at: float | None) -> float:
        """Wait a moment for the scheduler; what was given out is given out again. Return since when it is gone."""
        moment = time.monotonic()
        if gone_at is None:
            gone_at = moment
            self.watch.say(f"{errors.in_one_line(str(error))}; trying again for {REGAIN_S:g} s")
        elif moment - gone_at > REGAIN_S:
            error.next_step = f"when it is back: {self.directory.command} --scheduler {error.where}"
            raise error
        for task in list(self.queue.running.values()):
            self.queue.again(task)
            self.watch.waits(task, "the scheduler is gone")
        if not self.stopping:
            time.sleep(TICK_S)
        return gone_at

    def check_workers(self, engine: Cluster) -> None:
        """Say which workers are not fit; raise SchedulerError where all are not."""
        statuses = engine.look_around()
        self.report_workers(engine)
        bad = [status.why for status in statuses.values() if status.why]
        if bad and len(bad) == len(engine.workers):
            raise SchedulerError(
                "no worker of the scheduler can work on this batch",
                got=bad[0],
                where=", ".join(sorted(statuses)),
                allowed="Mountlab in this version, its box files, sweeps and "
                "notebooks, and the results directory on a disk that all share, at the same path",
                next_step="see docs/batches.md; without SCHEDULER this machine does all by itself",
            )
        if not engine.workers:
            self.watch.say("the scheduler has no worker yet; waiting for one")

    def report_workers(self, engine: Cluster) -> None:
        for worker, silent_s in engine.gone().items():
            busy = f"did not answer the scheduler for {silent_s:g} s, and was given up: it may only be busy"
            self.watch.say(f"worker {worker} {busy if silent_s else 'is gone'}; what it was doing goes on at another")
        for worker, status in engine.statuses.items():
            if status.why and worker not in self.reported_unfit:
                self.reported_unfit.add(worker)
                self.watch.say(f"worker {worker} is left out: {status.why}")

    # ── the work ─────────────────────────────────────────────────────────────────────────────────────────────────────

    def do_tasks(self, engine: Cluster, work: Any) -> None:
        """Until nothing is left, or all that ran has ended after a stop."""
        while self.queue.running if self.stopping else self.queue.pending:
            if self.stopping:
                self.request_stop(engine)
                if not engine.here and (self.interrupts > 1 or not engine.workers):
                    return  # no worker is left to wait for; a task whose client is gone stops by itself
            else:
                self.give_out(engine, work)
            for key, answer in engine.ended(TICK_S):
                self.settle(self.queue.running[key], answer)
            self.report_workers(engine)
            self.watch.tick()

    def request_stop(self, engine: Cluster) -> None:
        if self.stop_requested:
            return
        self.stop_requested = True
        engine.stop()
        more = "" if engine.here else "; Ctrl-C once more does not wait for that"
        self.watch.say(f"stopping: what was done on the boxes is being undone{more}")

    def give_out(self, engine: Cluster, work: Any) -> None:
        for task in self.queue.ready(time.monotonic()):
            only = engine.fit(task.machines)
            if only is not None:
                self.watch.begin(task)
                engine.give(task.key, work(task), machines=task.machines, only=only)
            elif HERE in task.machines and engine.workers:
                self.refuse_own_box(task)
            else:
                self.postpone(task, "no worker is there for it")

    def postpone(self, task: Task, why: str, pause_s: float | None = None) -> None:
        self.queue.again(task, at=time.monotonic() + (FIRST_PAUSE_S if pause_s is None else pause_s))
        self.watch.waits(task, why)

    def refuse_own_box(self, task: Task) -> None:
        """A box that is started where its item is done is another machine for each worker's."""
        problem = SchedulerError(
            "this box is the machine that works on it, and no worker of the scheduler is on this machine",
            where=f"box {task.box}",
            allowed="a worker on this machine, or a box with a `host`",
            next_step="start one here: dask worker ADDRESS",
        )
        plans = [Planned(item, problem=str(problem), error=type(problem).__name__) for item in task.items]
        if task.planning:
            self.settle(task, plans)
        else:
            self.record(task, cannot(plans[0]))

    def settle(self, task: Task, answer: Any) -> None:
        """Do what follows from the answer of a task."""
        if isinstance(answer, Taken):
            self.postpone(task, "another task of this scheduler has the machine")
        elif isinstance(answer, Unfit):
            self.postpone(task, "its worker was not fit", 0.0)
        elif isinstance(answer, list):
            self.queue.ended(task)
            self.watch.end(task, None)
            self.take_out(task, answer)
        elif isinstance(answer, Broken) and task.planning:
            self.queue.ended(task)  # the items themselves will tell
            self.watch.end(task, None, errors.in_one_line(answer.why))
        elif isinstance(answer, Broken):
            self.record(task, ItemOutcome(task.item.id, "failed", now(), 0.0, reason=answer.why, error=answer.error))
        else:
            self.settle_outcome(task, answer)

    def take_out(self, task: Task, plans: Sequence[Planned]) -> None:
        self.watch.planned(task.box, plans)
        for plan in self.queue.planned(plans):
            outcome = cannot(plan)
            self.directory.record(outcome)
            self.watch.cannot(task.box, plan.item, outcome)
            if plan.error in UNREACHABLE:
                self.queue.lost(task.box)

    def settle_outcome(self, task: Task, outcome: ItemOutcome) -> None:
        """Record an outcome, unless somebody was in the way, or another box may do better."""
        if outcome.error in UNREACHABLE:
            self.queue.lost(task.box)
        if outcome.error in IN_THE_WAY and not self.stopping and (wait := self.wait_for(task)) is not None:
            self.postpone(task, errors.in_one_line(outcome.reason), wait.pause_s)
            wait.pause_s = min(2 * wait.pause_s, LONGEST_PAUSE_S)
        elif task.item.pool and outcome.state == "failed" and self.try_elsewhere(task, outcome):
            self.watch.end(task, None, errors.in_one_line(outcome.reason))
        else:
            undone = outcome.state == "failed" and not outcome.run and not outcome.notebook
            if undone and task.item.pool and task.item.optional:  # no box of its label can do it
                outcome = replace(outcome, state="left out")
            self.record(task, outcome)

    def wait_for(self, task: Task) -> _Wait | None:
        """Return how long to wait for who is in the way: as long as the run of the item grows, and then until its box
        would have given all back."""
        moment, patience_s = time.monotonic(), MARGIN_S
        if task.box:
            patience_s += paths.load_box(task.box).grace_s
        wait = self.waits.setdefault(task.item.id, _Wait(moment + patience_s, FIRST_PAUSE_S))
        run = self.directory.run_of(task.item, self.results)
        trials = len(journal.read_journal(run)) if run else 0
        if trials > wait.trials:
            wait.trials, wait.until = trials, moment + patience_s
        return wait if moment < wait.until else None

    def try_elsewhere(self, task: Task, outcome: ItemOutcome) -> bool:
        """Queue an item for another box of its label where this one is lost, or cannot do it; return whether it is."""
        if outcome.run and outcome.error not in UNREACHABLE:
            return False  # its trials failed, or its report: another box is no remedy
        if not self.queue.elsewhere(task):
            return False
        why = errors.in_one_line(outcome.reason)
        self.watch.say(f"{task.item.id}: not on {task.box}, so on another of {task.item.pool}: {why}")
        return True

    def record(self, task: Task, outcome: ItemOutcome) -> None:
        self.queue.ended(task)
        self.directory.record(outcome)
        self.watch.end(task, outcome)
        if outcome.error == KeepError.__name__ and self.full is None:
            self.full = full_disk(task.item, outcome, self.directory)
