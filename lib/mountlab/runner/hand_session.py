"""The session behind a box that is used by hand: planner, runner and writer of a sweep, one step at a time."""

from __future__ import annotations

import secrets
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
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
from mountlab.core.cell_stop import CellStop
from mountlab.core.disk import path_text
from mountlab.core.errors import ParameterError, PlanError, StoreError
from mountlab.core.findings import OptionEvidence
from mountlab.core.frames import pd
from mountlab.core.model import Box, Cell, Filesystem, Sweep, Trial, Workload
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
from mountlab.runner.live import progress_display
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
"""The largest number of trials in one call."""


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
    """One run by hand, from the opening of a box to its end. `run_end` ends its directory, once all is undone."""

    def __init__(
        self,
        sweep: HandSweep,
        the_box: Box,
        connection: BoxConnection,
        facts: BoxFacts,
        *,
        results: Path,
        run_end: ExitStack,
    ) -> None:
        self.is_open = False
        self.mounts: list[Mounted] = []
        """The file systems that are mounted now, in the order of mounting."""
        self.recorder = HandJournal()
        self._sweep, self._connection, self._results, self._run_end = sweep, connection, results, run_end
        self.planner = _planner(sweep, the_box, facts, results)
        self._plan, self._quiet, self._interruption = self.planner.plan(), _Quiet(), Interruption()
        self._clients = Clients(self._plan, connection, {})
        self._steps = StepRunner(connection, self._plan.run_id, self._plan.privileged, say=self._quiet.notice)
        self._mounts = MountSession(self._steps, self.recorder, self._clients, self._plan.sweep.design)
        self._mount_uses = MountUses()
        self._unfit: dict[str, str] = {}
        """Id of a mount to why no trial can run on it any more."""
        self._undo, self._all_mounts = ExitStack(), ExitStack()
        self._mount_count = self._trial_count = 0
        self._trials_on_mount: Counter[tuple[str, str]] = Counter()
        """Id of a mount and of a cell to the number of counted trials of this cell on it."""
        self._checked_labels: set[str] = set()
        """Labels of workloads whose options the box's program accepts."""

    @property
    def path(self) -> Path:
        """The run directory, which is made with the first trial."""
        return self._results / self.planner.run_id

    def hold(self, undo: ExitStack) -> None:
        """Open the run on the box. The session takes over what `undo` holds."""
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
        traceback: TracebackType | None = None,
    ) -> None:
        """Undo everything, and end the run directory. A second call does nothing."""
        self.is_open = False
        self.mounts.clear()
        with self._attended():
            self._undo.pop_all().__exit__(kind, error, traceback)

    def check_open(self) -> None:
        """Raise PlanError for a box that was closed."""
        if not self.is_open:
            name = self.planner.box.name
            command = f'open it again: mountlab.box("{name}")'
            raise PlanError("the box is closed", where=f"box {name}", next_step=command)

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
        """Make and mount a file system. Raises what planning a sweep and running it raise."""
        self.check_open()
        sweep, fs = self._sweep.with_filesystem(kind, name, entry)
        self._check_not_mounted(fs)
        planner = replace(self.planner, facts=self._surveyed(fs))
        with self._attended():
            mounted = self._make(planner, fs)
        self.mounts.append(mounted)
        self._sweep, self.planner = sweep, planner
        return mounted

    def unmount(self, mounted: Mounted) -> None:
        """Unmount a file system, and remove its image or loop device. A second call does nothing."""
        if mounted in self.mounts:
            self.mounts.remove(mounted)
        with self._attended():
            mounted.undo.close()

    def options(self, mounted: Mounted) -> list[OptionEvidence]:
        """Return for each requested option whether the kernel has it in effect."""
        return self._mounts.option_evidence(mounted.filesystem, mounted.files)

    def _make(self, planner: Planner, fs: Filesystem) -> Mounted:
        self._mount_count += 1
        mount = planner.mount(f"m{self._mount_count:03d}-{fs.name}", fs)
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
        if fs.name in (mounted.filesystem.name for mounted in self.mounts):
            raise PlanError(
                "a file system of this name is mounted",
                where=f"{self._sweep.where}: filesystems.{fs.name}",
                got=fs.name,
                allowed="each name once at a time",
                next_step="unmount it first, or give the second one a name: box.mounted(..., name=...)",
            )

    def _surveyed(self, fs: Filesystem) -> BoxFacts:
        """Return the facts with a survey of the box for this file system."""
        filesystems = (*(mounted.filesystem for mounted in self.mounts), fs)
        facts, the_box = self.planner.facts, self.planner.box
        single, together = self._sweep_of((fs,)), self._sweep_of(filesystems)
        check_feasible(together, the_box, facts)
        check_links(single, self._connection, facts)
        facts = survey(single, self._connection, facts)
        check_feasible(together, the_box, facts)
        return facts

    def _sweep_of(self, filesystems: tuple[Filesystem, ...], workloads: tuple[Workload, ...] = ()) -> Sweep:
        """Return a sweep of these file systems, all mounted at the same time, and these workloads."""
        design = replace(self.planner.sweep.design, fresh_filesystem="never")
        bare = replace(self.planner.sweep, excluded=(), baseline=None, design=design)
        return replace(bare, filesystems=filesystems, workloads=workloads)

    # --- trials -------------------------------------------------------------------------------------------------------

    def plan(
        self, mounted: Mounted, name: str, entry: Raw, *, n: int, warmup: int, most: int = MOST_TRIALS
    ) -> tuple[PlannedTrial, ...]:
        """Plan `n` counted trials of each cell of a workload, after `warmup` others, and write the plan to run.json.
        Raises what planning a sweep raises, and ParameterError for more than `most`."""
        self.check_open()
        self._check_usable(mounted)
        sweep, workloads = self._sweep.with_workload(mounted.filesystem.name, name, entry)
        _check_number(n, warmup, len(workloads), most, f"{sweep.where}: workloads.{workloads[0].name}")
        planner = replace(self.planner, sweep=sweep.resolved().sweep, facts=self._facts_for(mounted, workloads))
        labels = {workload.label for workload in workloads}
        cells = [cell for cell in planner.sweep.cells if cell.filesystem.name == mounted.filesystem.name]
        mount_groups = self._mount_groups([cell for cell in cells if cell.workload.label in labels], n, warmup)
        planned = tuple(
            planner.trial(self._trial_count + number, group, group.cells[0], mounted.mount)
            for number, group in enumerate(mount_groups, start=1)
        )
        if planned[0].skip_reason:
            raise PlanError("this workload cannot run here", where=f"{sweep.where}.trial", got=planned[0].skip_reason)
        self._begin(mounted, planned, sweep, planner)
        return planned

    def run(self, planned: tuple[PlannedTrial, ...]) -> list[Trial]:
        """Run the trials that were planned last, and return their records. Several trials have a progress display."""
        writer = self.recorder.started_writer(self.path)
        watch = progress_display(self._plan, writer, set()) if len(planned) > 1 else self._quiet
        cells = CellStates(self._plan.sweep, self.recorder)  # a cell set aside by an earlier call may be tried again
        executor = TrialExecutor(
            self._plan, self._connection, self._clients, self.recorder, watch, cells, self._interruption,
            self._mount_uses, makes_again=False,
        )  # fmt: skip
        try:
            with self._attended(), watch:
                for trial in planned:
                    try:
                        for runnable in executor.runnable([trial], self._unfit):
                            executor.run(runnable)
                    except NewMountNeeded as error:
                        self._unfit[trial.mount] = str(error)
        except KeyboardInterrupt:
            if not watch.stopped:  # the button ends these trials, and the notebook goes on
                raise
        ids = {trial.trial_id for trial in planned}
        return [trial for trial in writer.recorded_trials() if trial.trial_id in ids]

    def measured(self) -> pd.DataFrame:
        """The figures so far. Raises StoreError before the first trial."""
        return self.recorder.started_writer(self.path).measured(self.planner.sweep)[1]

    def _check_usable(self, mounted: Mounted) -> None:
        unfit = self._unfit.get(mounted.mount.id)
        if mounted in self.mounts and not unfit:
            return
        raise PlanError(
            "nothing can be run here",
            where=f"{self._sweep.where}: filesystems.{mounted.filesystem.name}",
            got=unfit or "it is not mounted any more",
            allowed="a file system that is mounted, and fit for use",
            next_step="mount it again: box.mounted(...)",
        )

    def _facts_for(self, mounted: Mounted, workloads: tuple[Workload, ...]) -> BoxFacts:
        facts, labels = self.planner.facts, {workload.label for workload in workloads}
        check_feasible(self._sweep_of((mounted.filesystem,), workloads), self.planner.box, facts)
        if labels <= self._checked_labels:
            return facts
        facts = survey(self._sweep_of((), workloads), self._connection, facts)
        self._checked_labels |= labels
        return facts

    def _mount_groups(self, cells: Sequence[Cell], n: int, warmup: int) -> Iterator[MountGroup]:
        """Yield each cell once a block, in random order. The block numbers of a cell continue."""
        rng = Random(f"{self.planner.seed} {self._trial_count}")  # noqa: S311  # a reproducible order, no secret
        blocks: dict[str, list[int]] = {cell.id: [] for cell in cells}
        for trial in self.recorder.recorded_trials():
            blocks.setdefault(trial.cell, []).append(trial.block)
        for number in (*range(-warmup, 0), *range(1, n + 1)):
            for cell in rng.sample(cells, len(cells)):
                start = min([1, *blocks[cell.id]]) if number < 0 else max([0, *blocks[cell.id]])
                yield MountGroup(start + number, number < 0, cell.filesystem, (cell,))

    def _begin(self, mounted: Mounted, planned: tuple[PlannedTrial, ...], sweep: HandSweep, planner: Planner) -> None:
        """Write the planned trials to run.json before they run."""
        self._trial_count += len(planned)
        self._trials_on_mount.update((trial.mount, trial.cell.id) for trial in planned if not trial.warmup)
        blocks = max(sweep.blocks, *(trial.block for trial in planned))
        self._sweep = replace(sweep, blocks=blocks, remade=max(self._trials_on_mount.values(), default=0) < 2)
        resolved = self._sweep.resolved()
        self.planner = replace(planner, sweep=resolved.sweep)
        self._plan = self.planner.plan(mount_groups=(PlannedMountGroup(mount=None, trials=planned),))
        self._write(resolved, [trial.trial_id for trial in planned])
        self.recorder.keep_waiting(mounted.mount.id, *control_ids(mounted.filesystem.name))

    def _write(self, resolved: Resolved, planned: list[str]) -> None:
        writer, facts = self.recorder.writer, self.planner.facts
        if writer is not None:
            writer.grow(resolved, facts, [*(trial.trial_id for trial in writer.recorded_trials()), *planned])
            return
        writer = RunWriter.create(self._plan, resolved, facts, results=self._results, by_hand=BY_HAND)
        self._run_end.callback(refresh_index, writer.path.parent)
        self._run_end.enter_context(held_run(writer.path))
        final = self._run_end.enter_context(finishing(writer, resolved.sweep))
        self._run_end.callback(setattr, final, "status", "complete")
        self._run_end.callback(self._settle)
        self.recorder.writer = writer

    def _settle(self) -> None:
        """Reduce the sweep in run.json to what is in the journal."""
        recorded = self.recorder.recorded_trials()
        names = {cell.id: (cell.filesystem.name, cell.workload.name) for cell in self.planner.sweep.cells}
        if recorded:
            pairs = frozenset(names[trial.cell] for trial in recorded)
            self._sweep = replace(self._sweep, pairs=pairs, blocks=max([1, *(trial.block for trial in recorded)]))
            self._write(self._sweep.resolved(), [])


class HandJournal:
    """The recorder of a run by hand. There is no directory before the first trial: the output of mounts waits for it,
    and that of a mount without a trial is never written."""

    def __init__(self) -> None:
        self.writer: RunWriter | None = None
        self._waiting: dict[str, Files] = {}

    def started_writer(self, path: Path) -> RunWriter:
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

    def mount_files(self, mount_id: str) -> Mapping[str, str]:
        return {}

    def keep_waiting(self, *mount_ids: str) -> None:
        """Write the output of these mounts, unless it is written already."""
        for mount_id in mount_ids:
            if self.writer is not None and mount_id in self._waiting:
                self.writer.keep_mount(mount_id, self._waiting.pop(mount_id))

    def recorded_trials(self) -> list[Trial]:
        return self.writer.recorded_trials() if self.writer is not None else []

    def measured(self, sweep: Sweep) -> tuple[list[Trial], pd.DataFrame]:
        return self.started_writer(Path()).measured(sweep)


class _Quiet:
    """No display of progress; only notices, on standard error."""

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
    """Raise ParameterError for a number of trials that is negative, zero in all, or too high."""
    if n < 0 or warmup < 0 or not 1 <= (n + warmup) * cells <= most:
        several = f" of each of {cells} combinations" if cells > 1 else ""
        raise ParameterError(
            "not a number of trials",
            where=where,
            got=f"{n} and {warmup} for warm-up{several}",
            allowed=f"1 to {most} in all",
            next_step="box.trials(place, n=..., ...) runs several" if most == 1 else "",
        )


def _planner(hand_sweep: HandSweep, the_box: Box, facts: BoxFacts, results: Path) -> Planner:
    sweep = hand_sweep.empty()
    run_id = new_run_id(sweep, the_box, results)
    seed = secrets.randbelow(2**31) if sweep.design.seed is None else sweep.design.seed
    return Planner(sweep, the_box, facts, run_id, str(lock.this_process(run_id)), seed)
