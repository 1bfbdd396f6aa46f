"""Telling people how far a run is: elapsed and remaining time and the running cell, in a terminal or a notebook."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Sequence
from types import TracebackType
from typing import Any

from tqdm import tqdm as terminal_bar
from tqdm.notebook import tqdm as notebook_bar

from mountlab import words
from mountlab.errors import in_one_line
from mountlab.model import Stop, Trial
from mountlab.plan import Plan, PlannedTrial

FORMAT = "{desc} |{bar}| {n_fmt}/{total_fmt} trials, {elapsed} elapsed{postfix}"


class Remaining:
    """The time that the trials still to run will take: by what the same cell took, or by the plan's guess corrected
    by how wrong it was so far."""

    def __init__(self, plan: Plan) -> None:
        self._waiting = {trial.trial_id: trial for trial in plan.trials}
        self._took: dict[str, list[float]] = defaultdict(list)
        self._guessed_s, self._spent_s = 0.0, 0.0

    def end(self, planned: PlannedTrial, elapsed_s: float) -> None:
        del self._waiting[planned.trial_id]
        self._took[planned.cell.id].append(elapsed_s)
        self._guessed_s += planned.expected_s
        self._spent_s += elapsed_s

    def forget(self, trial_id: str) -> None:
        """A trial that an earlier session of the run has done, or that is not needed any more."""
        self._waiting.pop(trial_id)

    def seconds(self) -> float:
        factor = self._spent_s / self._guessed_s if self._guessed_s else 1.0
        return sum(self._one(trial, factor) for trial in self._waiting.values())

    def _one(self, trial: PlannedTrial, factor: float) -> float:
        took = self._took.get(trial.cell.id)
        return sum(took) / len(took) if took else trial.expected_s * factor


class Bar:
    """A progress bar on standard error, or a widget in a notebook with a person before it."""

    def __init__(self, plan: Plan, done: set[str]) -> None:
        self._remaining = Remaining(plan)
        for trial_id in done:
            self._remaining.forget(trial_id)
        self._failed = 0
        bar: Any = notebook_bar if _in_notebook() else terminal_bar
        # In a log each refresh would be a line of its own: there a line every ten seconds is enough.
        self._live = _in_notebook() or sys.stderr.isatty()
        pause_s = 0.2 if self._live else 10.0
        total = len(plan.trials)
        self._bar = bar(
            total=total, initial=len(done), bar_format=FORMAT, file=sys.stderr, mininterval=pause_s, leave=True
        )

    def begin(self, trial: PlannedTrial) -> None:
        kind = "warm-up" if trial.warmup else f"block {trial.block}"
        self._bar.set_description_str(f"{kind}, {trial.cell.id}", refresh=False)
        self._show()

    def end(self, planned: PlannedTrial, trial: Trial) -> None:
        self._remaining.end(planned, trial.elapsed_s)
        if trial.status not in ("ok", "skipped"):
            self._failed += 1
            self._bar.write(
                f"{trial.status}: {trial.trial_id} {trial.cell}: {in_one_line(trial.reason)}", file=sys.stderr
            )
        self._bar.update(1)
        self._show()

    def leave(self, stops: Sequence[Stop], trials: Sequence[PlannedTrial]) -> None:
        """Cells that are done: their trials are not waited for any more."""
        for trial in trials:
            self._remaining.forget(trial.trial_id)
        self._bar.total -= len(trials)
        if hasattr(self._bar, "container"):  # the widget of a notebook keeps its own
            self._bar.container.children[1].max = self._bar.total
        for line in words.leaving(stops):
            self._bar.write(line, file=sys.stderr)
        self._show()

    def _show(self) -> None:
        minutes, seconds = divmod(round(self._remaining.seconds()), 60)
        failed = f", {self._failed} failed" if self._failed else ""
        self._bar.set_postfix_str(f"about {minutes:02d}:{seconds:02d} left{failed}", refresh=self._live)

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._bar.set_description_str("measured", refresh=False)
        self._bar.close()


def _in_notebook() -> bool:
    """Whether this is a Jupyter kernel: there, and not in IPython's terminal, get_ipython has a kernel."""
    shell = sys.modules.get("IPython")
    return shell is not None and getattr(shell.get_ipython(), "kernel", None) is not None
