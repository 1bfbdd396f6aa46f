"""Did what runs beside the workloads do the same on each side?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import median

from mountlab.checks.base import Check, Doubt, Evidence
from mountlab.core.frames import pd, rows_of
from mountlab.core.groups import by_key
from mountlab.core.model import Cell, Sweep
from mountlab.core.numbers import listed, percent, quantity
from mountlab.filesystems.neighbours import Beside

DIFFERS = 0.10
"""Loads of one neighbour that differ by more than this share are two neighbours."""


@dataclass(frozen=True)
class Load:
    """What one neighbour did in the counted trials of one cell."""

    cell: Cell
    name: str
    trials: Mapping[str, Beside]
    """By the id of the trial."""

    @property
    def bytes_per_s(self) -> float:
        """The median of the trials."""
        return median(trial.bytes_per_s for trial in self.trials.values())


def loads(sweep: Sweep, trials: pd.DataFrame, beside: Mapping[str, Mapping[str, Beside]]) -> list[Load]:
    """Return what each neighbour did in the counted trials, cells in the order of the sweep. `beside`: trial id to its
    neighbours."""
    good = trials[(trials["status"] == "ok") & ~trials["warmup"].astype(bool)]
    by_cell: dict[str, list[str]] = by_key(rows_of(good, "cell", "trial_id"))
    rows = []
    for cell in sweep.cells:
        for name in cell.workload.beside:
            by_trial = {trial: beside.get(trial, {}).get(name) for trial in by_cell.get(cell.id, ())}
            kept = {trial: did for trial, did in by_trial.items() if did}
            rows += [Load(cell, name, kept)] if kept else []
    return rows


def _loads(evidence: Evidence) -> list[Load]:
    return loads(evidence.sweep, evidence.trials, {name: one.beside for name, one in evidence.around.items()})


def loads_differ(evidence: Evidence) -> Iterator[Doubt]:
    """Neighbours that made another load beside one file system than beside another.

    The median load of a neighbour, in bytes per second, differs by more than 10 % between the file systems under one
    workload.
    """
    groups = by_key(((load.cell.workload.label, load.name), load) for load in evidence.once(_loads))
    for (_, name), group in groups.items():
        rates = {load.cell.filesystem.name: load.bytes_per_s for load in group}
        least, most = min(rates.values()), max(rates.values())
        if most > least * (1 + DIFFERS):
            texts = listed([f"{quantity(rate, 'B/s')} on {filesystem}" for filesystem, rate in rates.items()])
            more = percent(round(most / least - 1, 2)) if least else "all"
            for load in group:
                yield Doubt.of_cell(
                    load.cell,
                    f"neighbour {name} moved {texts}, medians over trials: {more} more on one than on another. A ratio "
                    "between these file systems is also one of two loads. Give the neighbour a rate that each of them "
                    "can keep (fio: rate, rate_iops), unless the question is what each gives to both.",
                )


def _not_kept(evidence: Evidence) -> str | None:
    """Blind only where a workload has neighbours."""
    asked = any(workload.beside for workload in evidence.sweep.workloads)
    return "what the neighbours did was not kept" if asked and not evidence.once(_loads) else None


CHECKS = (
    Check(
        "neighbour-load-differs",
        loads_differ,
        "Give the neighbour a rate that each file system can keep.",
        blind=_not_kept,
    ),
)
