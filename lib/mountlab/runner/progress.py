"""Progress of a run in a terminal or a log: what is done, what runs now, and what remains.

A notebook with a person before it has a view of its own (mountlab.runner.live).
"""

from __future__ import annotations

import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from types import TracebackType

from tqdm import tqdm

from mountlab.core.cell_stop import CellStop
from mountlab.core.errors import in_one_line
from mountlab.core.model import Sweep, Trial
from mountlab.core.text import drawn_on, one_line, visible
from mountlab.sweep.plan import Plan, PlannedTrial
from mountlab.wording.phrases import stop_text

FORMAT = "{desc} |{bar}| {n_fmt}/{total_fmt} trials, {elapsed} elapsed{postfix}"


class Remaining:
    """Estimate of the remaining time: the mean time of earlier trials of a cell, or else the plan's guess, corrected by
    its error so far. A mount for some of the trials only is a part of the first of them."""

    def __init__(self, plan: Plan) -> None:
        self._waiting = {trial.trial_id: trial for trial in plan.trials}
        self._mounts_s = {group.trials[0].trial_id: group.mount_s for group in plan.mount_groups}
        self._durations: dict[str, list[float]] = defaultdict(list)
        self._guessed_s, self._spent_s = 0.0, 0.0

    def end(self, planned: PlannedTrial, elapsed_s: float) -> None:
        del self._waiting[planned.trial_id]
        self._durations[planned.cell.id].append(elapsed_s)
        self._guessed_s += self._guess_s(planned)
        self._spent_s += elapsed_s

    def forget(self, trial_id: str) -> None:
        """Drop a trial that an earlier session has run, or that is not needed any more."""
        self._waiting.pop(trial_id)

    def seconds(self) -> float:
        factor = self._spent_s / self._guessed_s if self._guessed_s else 1.0
        return sum(self._expected_s(trial, factor) for trial in list(self._waiting.values()))

    def _expected_s(self, trial: PlannedTrial, factor: float) -> float:
        durations = self._durations.get(trial.cell.id)
        return sum(durations) / len(durations) if durations else self._guess_s(trial) * factor

    def _guess_s(self, trial: PlannedTrial) -> float:
        return trial.expected_s + self._mounts_s.get(trial.trial_id, 0.0)


class Standing:
    """The state of a run for its displays: counts, the trial that runs now, failures."""

    def __init__(self, plan: Plan, recorded_ids: set[str], clock: Callable[[], float] = time.monotonic) -> None:
        """`recorded_ids`: the trials that an earlier session has in the journal."""
        self.total, self.done = len(plan.trials), len(recorded_ids)
        self.now: PlannedTrial | None = None
        self.failed: list[Trial] = []
        """Trials that are neither ok nor skipped, in the order in which they ended."""
        self.stopped_cells: dict[str, CellStop] = {}
        """Id of a cell to why the stop rule ended it."""
        self.remaining = Remaining(plan)
        self._clock, self._between_s = clock, 0.0
        self._ended: float | None = None
        """When the last trial ended: what lies between two is mounts, and belongs to the second one."""
        for trial_id in recorded_ids:
            self.remaining.forget(trial_id)

    def begin(self, trial: PlannedTrial) -> None:
        self.now = trial
        self._between_s = 0.0 if self._ended is None else self._clock() - self._ended

    def end(self, planned: PlannedTrial, trial: Trial) -> None:
        if trial.status in ("ok", "timeout"):
            self.remaining.end(planned, self._between_s + trial.elapsed_s)
        else:
            self.remaining.forget(trial.trial_id)
        self.now, self.done, self._ended = None, self.done + 1, self._clock()
        if trial.status not in ("ok", "skipped"):
            self.failed.append(trial)

    def end_cells(self, stops: Sequence[CellStop], trials: Sequence[PlannedTrial]) -> None:
        """Drop the remaining trials of cells that the stop rule has ended."""
        self.stopped_cells |= {stop.cell: stop for stop in stops}
        self.total -= len(trials)
        for trial in trials:
            self.remaining.forget(trial.trial_id)


class Bar:
    """A progress bar on standard error; where that is no terminal, a line now and then."""

    stopped = False
    """A bar has no button by which to stop."""

    def __init__(self, plan: Plan, recorded_ids: set[str]) -> None:
        self._standing, self._sweep = Standing(plan, recorded_ids), plan.sweep
        # In a log each refresh would be a line of its own: there a line every ten seconds is enough.
        self._live = sys.stderr.isatty()
        self._stream = drawn_on(sys.stderr)
        self._bar = tqdm(
            total=self._standing.total,
            initial=len(recorded_ids),
            bar_format=FORMAT,
            file=self._stream,
            mininterval=0.2 if self._live else 10.0,
            leave=True,
        )

    def begin(self, trial: PlannedTrial) -> None:
        self._standing.begin(trial)
        place = place_text(trial)
        self._bar.set_description_str(one_line(place), refresh=False)
        self._show()

    def end(self, planned: PlannedTrial, trial: Trial) -> None:
        failed = len(self._standing.failed)
        self._standing.end(planned, trial)
        for failure in self._standing.failed[failed:]:
            self.notice(failure_text(failure))
        self._bar.update(1)
        self._show()

    def end_cells(self, stops: Sequence[CellStop], trials: Sequence[PlannedTrial]) -> None:
        self._standing.end_cells(stops, trials)
        self._bar.total = self._standing.total
        for line in stop_notices(stops, self._sweep):
            self.notice(line)
        self._show()

    def notice(self, text: str) -> None:
        self._bar.write(visible(text), file=self._stream)

    def _show(self) -> None:
        minutes, seconds = divmod(round(self._standing.remaining.seconds()), 60)
        failures = "".join(f", {text}" for text in failure_counts(self._standing.failed))
        self._bar.set_postfix_str(f"about {minutes:02d}:{seconds:02d} left{failures}", refresh=self._live)

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._bar.set_description_str("measured", refresh=False)
        self._bar.close()


def stop_notices(stops: Iterable[CellStop], sweep: Sweep) -> list[str]:
    """Return one line for each workload and reason: 'fio rw=read: precise after 7 blocks (ext4, tmpfs)'."""
    cells, groups = {cell.id: cell for cell in sweep.cells}, defaultdict[tuple[str, str], list[str]](list)
    for stop in stops:
        cell = cells[stop.cell]
        groups[cell.workload.label, stop_text(stop)].append(cell.filesystem.name)
    return [f"{workload}: {why} ({', '.join(names)})" for (workload, why), names in groups.items()]


def place_text(trial: PlannedTrial) -> str:
    """Return where in a run a trial stands: 'block 2, ext4/dd-write', 'warm-up, ...', 'diagnostic block 1, ...'."""
    block = f"block {trial.block}"
    where = f"diagnostic {block}" if trial.diagnostic else "warm-up" if trial.warmup else block
    return f"{where}, {trial.cell.id}"


def failure_counts(trials: Iterable[Trial]) -> list[str]:
    """Count trials without a figure by status, ['2 failed', '1 timed out']; a status without trials is left out."""
    statuses = [trial.status == "timeout" for trial in trials]
    counts = {"failed": statuses.count(False), "timed out": statuses.count(True)}
    return [f"{count} {what}" for what, count in counts.items() if count]


def failure_text(trial: Trial) -> str:
    """Describe a failed trial: 'failed: t0007 ext4/dd-write: no space left'."""
    consequence = "; its later trials are skipped" if trial.set_aside else ""
    return f"{trial.status}: {trial.trial_id} {trial.cell}: {in_one_line(trial.reason)}{consequence}"
