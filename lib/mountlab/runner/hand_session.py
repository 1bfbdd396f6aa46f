"""What is behind a box that is used by hand: the same planner, runner and writer as behind a sweep, asked for one step
at a time."""

from __future__ import annotations

import secrets
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from types import TracebackType

from mountlab.box import lock
from mountlab.box.connection import BoxConnection
from mountlab.box.scratch_links import check_links
from mountlab.box.survey import survey
from mountlab.core.box_facts import BoxFacts
from mountlab.core.disk import path_text
from mountlab.core.errors import ParameterError, PlanError, StoreError
from mountlab.core.findings import OptionEvidence
from mountlab.core.frames import pd
from mountlab.core.model import Box, Cell, CellStop, Filesystem, Sweep, Trial, Workload
from mountlab.core.safe_yaml import Raw
from mountlab.core.signals import all_handled
from mountlab.core.text import visible
from mountlab.filesystems.read_back import control_ids
from mountlab.outcome.archive import Files
from mountlab.outcome.judging import Outcome
from mountlab.report.execute import refresh_index
from mountlab.results.writer import RunWriter, held_run, new_run_id
from mountlab.runner.cell_state import CellStates
from mountlab.runner.clients import Clients
from mountlab.runner.finish import finishing
from mountlab.runner.interruption import Interruption
from mountlab.runner.live import watched
from mountlab.runner.mount_session import MountFiles, MountSession
from mountlab.runner.steps import StepRunner
from mountlab.runner.trial_executor import MountUses, NewMountNeeded, TrialExecutor
from mountlab.sweep.by_hand import HandSweep
from mountlab.sweep.design import MountGroup
from mountlab.sweep.feasible import check_feasible
from mountlab.sweep.plan import PlannedMount, PlannedMountGroup, PlannedTrial
from mountlab.sweep.planner import Planner
from mountlab.sweep.sweep_file import Resolved

BY_HAND = "its trials were asked for one by one"
"""How run.json describes such a run."""
MOST_TRIALS = 1000
"""Of one call."""


@dataclass(eq=False)
class Mounted:
    """A file system that is mounted."""

    mount: PlannedMount
    files: MountFiles
    undo: ExitStack

    @property
    def filesystem(self) -> Filesystem:
        return self.mount.filesystem


class HandSession:
    """One run by hand, from the opening of a box to its end. `kept` ends its directory, after all else was undone."""

    def __init__(
        self,
        asked: HandSweep,
        the_box: Box,
        connection: BoxConnection,
        facts: BoxFacts,
        *,
        results: Path,
        kept: ExitStack,
    ) -> None:
        self.is_open = False
        self.mounts: list[Mounted] = []
        """Those that are mounted now, in the order in which they were."""
        self.recorder = HandJournal()
        self._asked, self._connection, self._results, self._kept = asked, connection, results, kept
        self.planner = _planner(asked, the_box, facts, results)
        self._plan, self._quiet, self._interruption = self.planner.plan(), _Quiet(), Interruption()
        self._clients = Clients(self._plan, connection, {})
        self._steps = StepRunner(connection, self._plan.run_id, self._plan.privileged, say=self._quiet.notice)
        self._mounts = MountSession(self._steps, self.recorder, self._clients, self._plan.sweep.design)
        self._mount_uses = MountUses()
        self._unfit: dict[str, str] = {}
        """Mount to why no trial can run on it any more."""
        self._undo, self._all_mounts = ExitStack(), ExitStack()
        self._made = self._trials = 0
        self._on_mount: Counter[tuple[str, str]] = Counter()
        """Mount and cell to how many counted trials they have had in common."""
        self._known: set[str] = set()
        """Workloads whose options the box's own program knows."""

    @property
    def path(self) -> Path:
        """The run directory, which is made with the first trial."""
        return self._results / self.planner.run_id

    def hold(self, undo: ExitStack) -> None:
        """Open the run on the box. What `undo` holds of an opened box is taken over."""
        with self._attended():
            self._steps.do(self._plan.opening, undo)
            undo.enter_context(self._connection.holding(self.planner.lease, lambda: self._interruption.requested))
            self._all_mounts = undo.enter_context(ExitStack())
            self._interruption.check()
        self._undo, self.is_open = undo.pop_all(), True

    def close(
        self,
        kind: type[BaseException] | None = None,
        error: BaseException | None = None,
        trace: TracebackType | None = None,
    ) -> None:
        """Undo everything, and end the run directory. A second call does nothing."""
        self.is_open = False
        self.mounts.clear()
        with self._attended():
            self._undo.pop_all().__exit__(kind, error, trace)

    def check_open(self) -> None:
        """Raise PlanError for a box that was closed."""
        if not self.is_open:
            name = self.planner.box.name
            again = f'open it again: mountlab.box("{name}")'
            raise PlanError("the box is closed", where=f"box {name}", next_step=again)

    @contextmanager
    def _attended(self) -> Iterator[None]:
        """Handle signals as a run does: a stop takes effect while a tool runs, and after a step that is not to be cut
        short."""
        self._interruption.requested = False
        with all_handled(self._interruption.handle):
            yield
        self._interruption.check()

    # --- mounts -------------------------------------------------------------------------------------------------------

    def mount(self, kind: str, name: str, entry: Raw) -> Mounted:
        """Make and mount a file system. Raises as the plan of a sweep does, and as the runner does."""
        self.check_open()
        asked, fs = self._asked.with_filesystem(kind, name, entry)
        self._check_not_mounted(fs)
        planner = replace(self.planner, facts=self._surveyed(fs))
        with self._attended():
            made = self._make(planner, fs)
        self.mounts.append(made)
        self._asked, self.planner = asked, planner
        return made

    def unmount(self, made: Mounted) -> None:
        """Unmount a file system, and remove what it lay on. A second call does nothing."""
        if made in self.mounts:
            self.mounts.remove(made)
        with self._attended():
            made.undo.close()

    def options(self, made: Mounted) -> list[OptionEvidence]:
        """What became of each option that was asked for."""
        return self._mounts.option_evidence(made.filesystem, made.files)

    def _make(self, planner: Planner, fs: Filesystem) -> Mounted:
        self._made += 1
        mount = planner.mount(f"m{self._made:03d}-{fs.name}", fs)
        if mount.skip_reason:
            raise PlanError(
                f"{fs.name} cannot be mounted on this box", where=f"filesystems.{fs.name}", got=mount.skip_reason
            )
        for control in planner.controls(fs):
            self._mounts.read_control(control)
        with ExitStack() as undo:
            files = undo.enter_context(self._mounts.verified(mount))
            self._interruption.check()
            return Mounted(mount, files, self._all_mounts.enter_context(undo.pop_all()))

    def _check_not_mounted(self, fs: Filesystem) -> None:
        if fs.name in (made.filesystem.name for made in self.mounts):
            raise PlanError(
                "a file system of this name is mounted",
                where=f"{self._asked.where}: filesystems.{fs.name}",
                got=fs.name,
                allowed="each name once at a time",
                next_step="unmount it first, or give the second one a name: box.mounted(..., name=...)",
            )

    def _surveyed(self, fs: Filesystem) -> BoxFacts:
        """The facts, and what only the box can tell of this file system."""
        at_once = (*(made.filesystem for made in self.mounts), fs)
        known, the_box = self.planner.facts, self.planner.box
        alone, together = self._about((fs,)), self._about(at_once)
        check_feasible(together, the_box, known)
        check_links(alone, self._connection, known)
        facts = survey(alone, self._connection, known)
        check_feasible(together, the_box, facts)
        return facts

    def _about(self, filesystems: tuple[Filesystem, ...], workloads: tuple[Workload, ...] = ()) -> Sweep:
        """A sweep of these alone, all of them at the same time."""
        design = replace(self.planner.sweep.design, fresh_filesystem="never")
        bare = replace(self.planner.sweep, excluded=(), baseline=None, design=design)
        return replace(bare, filesystems=filesystems, workloads=workloads)

    # --- trials -------------------------------------------------------------------------------------------------------

    def plan(
        self, made: Mounted, name: str, entry: Raw, *, n: int, warmup: int, most: int = MOST_TRIALS
    ) -> tuple[PlannedTrial, ...]:
        """Plan `n` counted trials of each cell of a workload, after `warmup` others, and write down that they are to be
        run. Raises as the plan of a sweep does, and ParameterError for more than `most`."""
        self.check_open()
        self._check_usable(made)
        asked, workloads = self._asked.with_workload(made.filesystem.name, name, entry)
        _check_number(n, warmup, len(workloads), most, f"{asked.where}: workloads.{workloads[0].name}")
        planner = replace(self.planner, sweep=asked.resolved().sweep, facts=self._facts_for(made, workloads))
        own = {workload.label for workload in workloads}
        cells = [each for each in planner.sweep.cells if each.filesystem.name == made.filesystem.name]
        mount_groups = self._mount_groups([cell for cell in cells if cell.workload.label in own], n, warmup)
        planned = tuple(
            planner.trial(self._trials + number, group, group.cells[0], made.mount)
            for number, group in enumerate(mount_groups, start=1)
        )
        if planned[0].skip_reason:
            raise PlanError("this workload cannot run here", where=f"{asked.where}.trial", got=planned[0].skip_reason)
        self._begin(made, planned, asked, planner)
        return planned

    def run(self, planned: tuple[PlannedTrial, ...]) -> list[Trial]:
        """Run what was planned last, and return it as it is in the journal. Several trials are shown as they go on."""
        writer = self.recorder.begun(self.path)
        watch = watched(self._plan, writer, set()) if len(planned) > 1 else self._quiet
        cells = CellStates(self._plan.sweep, self.recorder)  # a cell set aside by an earlier call may be tried again
        executor = TrialExecutor(
            self._plan, self._connection, self._clients, self.recorder, watch, cells, self._interruption,
            self._mount_uses, makes_again=False,
        )  # fmt: skip
        try:
            with self._attended(), watch:
                for trial in planned:
                    try:
                        for wanted in executor.runnable([trial], self._unfit):
                            executor.run(wanted)
                    except NewMountNeeded as error:
                        self._unfit[trial.mount] = str(error)
        except KeyboardInterrupt:
            if not watch.stopped:  # the button ends these trials, and the notebook goes on
                raise
        ids = {trial.trial_id for trial in planned}
        return [trial for trial in writer.recorded_trials() if trial.trial_id in ids]

    def measured(self) -> pd.DataFrame:
        """The figures so far. Raises StoreError before the first trial."""
        return self.recorder.begun(self.path).measured(self.planner.sweep)[1]

    def _check_usable(self, made: Mounted) -> None:
        unfit = self._unfit.get(made.mount.id)
        if made in self.mounts and not unfit:
            return
        raise PlanError(
            "nothing can be run here",
            where=f"{self._asked.where}: filesystems.{made.filesystem.name}",
            got=unfit or "it is not mounted any more",
            allowed="a file system that is mounted, and fit for use",
            next_step="mount it again: box.mounted(...)",
        )

    def _facts_for(self, made: Mounted, workloads: tuple[Workload, ...]) -> BoxFacts:
        facts, labels = self.planner.facts, {workload.label for workload in workloads}
        check_feasible(self._about((made.filesystem,), workloads), self.planner.box, facts)
        if labels <= self._known:
            return facts
        facts = survey(self._about((), workloads), self._connection, facts)
        self._known |= labels
        return facts

    def _mount_groups(self, cells: Sequence[Cell], n: int, warmup: int) -> Iterator[MountGroup]:
        """Each cell once a block, in random order. The blocks of a cell go on from those that it has had."""
        rng = Random(f"{self.planner.seed} {self._trials}")  # noqa: S311  # an order that can be drawn again, no secret
        had: dict[str, list[int]] = {cell.id: [] for cell in cells}
        for trial in self.recorder.recorded_trials():
            had.setdefault(trial.cell, []).append(trial.block)
        for number in (*range(-warmup, 0), *range(1, n + 1)):
            for cell in rng.sample(cells, len(cells)):
                begun = min([1, *had[cell.id]]) if number < 0 else max([0, *had[cell.id]])
                yield MountGroup(begun + number, number < 0, cell.filesystem, (cell,))

    def _begin(self, made: Mounted, planned: tuple[PlannedTrial, ...], asked: HandSweep, planner: Planner) -> None:
        """Write down what is to be run, before it is."""
        self._trials += len(planned)
        self._on_mount.update((trial.mount, trial.cell.id) for trial in planned if not trial.warmup)
        blocks = max(asked.blocks, *(trial.block for trial in planned))
        self._asked = replace(asked, blocks=blocks, remade=max(self._on_mount.values(), default=0) < 2)
        resolved = self._asked.resolved()
        self.planner = replace(planner, sweep=resolved.sweep)
        self._plan = self.planner.plan(mount_groups=(PlannedMountGroup(mount=None, trials=planned),))
        self._write(resolved, [trial.trial_id for trial in planned])
        self.recorder.keep_waiting(made.mount.id, *control_ids(made.filesystem.name))

    def _write(self, resolved: Resolved, planned: list[str]) -> None:
        writer, facts = self.recorder.writer, self.planner.facts
        if writer is not None:
            writer.grow(resolved, facts, [*(trial.trial_id for trial in writer.recorded_trials()), *planned])
            return
        writer = RunWriter.create(self._plan, resolved, facts, results=self._results, by_hand=BY_HAND)
        self._kept.callback(refresh_index, writer.path.parent)
        self._kept.enter_context(held_run(writer.path))
        final = self._kept.enter_context(finishing(writer, resolved.sweep))
        self._kept.callback(setattr, final, "status", "complete")
        self._kept.callback(self._settle)
        self.recorder.writer = writer

    def _settle(self) -> None:
        """At the end, run.json asks for what is in the journal, and for no more."""
        ended = self.recorder.recorded_trials()
        names = {cell.id: (cell.filesystem.name, cell.workload.name) for cell in self.planner.sweep.cells}
        if ended:
            pairs = frozenset(names[trial.cell] for trial in ended)
            self._asked = replace(self._asked, pairs=pairs, blocks=max([1, *(trial.block for trial in ended)]))
            self._write(self._asked.resolved(), [])


class HandJournal:
    """Where the runner keeps what it measures. There is no directory before the first trial: what mounts have printed
    waits for it, and that of a mount without a trial is never kept."""

    def __init__(self) -> None:
        self.writer: RunWriter | None = None
        self._waiting: dict[str, Files] = {}

    def begun(self, path: Path) -> RunWriter:
        """The writer. Raises StoreError before the first trial."""
        if self.writer is None:
            raise StoreError("nothing was measured yet", where=path_text(path), next_step="box.trial(place, tool=...)")
        return self.writer

    def has(self, trial_id: str) -> bool:
        return self.writer is not None and self.writer.has(trial_id)

    def record(self, trial: Trial, files: Files, outcome: Outcome) -> None:
        assert self.writer is not None
        self.writer.record(trial, files, outcome)

    def keep_mount(self, mount_id: str, files: Files) -> None:
        self._waiting[mount_id] = files

    def keep_waiting(self, *mount_ids: str) -> None:
        """Write down what these mounts have printed, where that is not done yet."""
        for mount_id in mount_ids:
            if self.writer is not None and mount_id in self._waiting:
                self.writer.keep_mount(mount_id, self._waiting.pop(mount_id))

    def recorded_trials(self) -> list[Trial]:
        return self.writer.recorded_trials() if self.writer is not None else []

    def measured(self, sweep: Sweep) -> tuple[list[Trial], pd.DataFrame]:
        return self.begun(Path()).measured(sweep)


class _Quiet:
    """Tells nothing but what a person must know."""

    stopped = False

    def __enter__(self) -> _Quiet:
        return self

    def __exit__(self, *_error: object) -> None: ...
    def begin(self, trial: PlannedTrial) -> None: ...
    def end(self, planned: PlannedTrial, trial: Trial) -> None: ...
    def end_cells(self, stops: Sequence[CellStop], trials: Sequence[PlannedTrial]) -> None: ...

    def notice(self, text: str) -> None:
        sys.stderr.write(f"{visible(text)}\n")


def _check_number(n: int, warmup: int, cells: int, most: int, where: str) -> None:
    """Raise ParameterError for what is no number of trials, or one too high."""
    if n < 0 or warmup < 0 or not 1 <= (n + warmup) * cells <= most:
        several = f" of each of {cells} combinations" if cells > 1 else ""
        raise ParameterError(
            "not a number of trials",
            where=where,
            got=f"{n} and {warmup} for warm-up{several}",
            allowed=f"1 to {most} in all",
            next_step="box.trials(place, n=..., ...) runs several" if most == 1 else "",
        )


def _planner(asked: HandSweep, the_box: Box, facts: BoxFacts, results: Path) -> Planner:
    sweep = asked.empty()
    run_id = new_run_id(sweep, the_box, results)
    seed = secrets.randbelow(2**31) if sweep.design.seed is None else sweep.design.seed
    return Planner(sweep, the_box, facts, run_id, str(lock.this_process(run_id)), seed)
