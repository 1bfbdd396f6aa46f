"""Sentences on what a neighbour adds to a sync through the journal that both share, from the diagnostic trials."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mountlab.analysis.why import WorkFigure, has_neighbour
from mountlab.core.layers import COMMIT_SHARE, OTHERS_SHARE
from mountlab.core.model import Filesystem, Sweep, Workload
from mountlab.core.numbers import listed, mean_figures

_OF_ALL = (
    "Device I/Os, flushes and commits there are those of all programs, and are not divided by the tool's operations."
)


def beside_sentences(sweep: Sweep, figures: Sequence[WorkFigure]) -> Iterator[str]:
    """Yield for each workload with neighbours what passes of a sync while it waits for the journal, and which part of
    that while the device writes data of others; beside the same workload alone, where the sweep has it."""
    for workload in sweep.workloads:
        if workload.beside:
            texts = [_cell_text(sweep, workload, filesystem, figures) for filesystem in sweep.filesystems]
            of_all = [_OF_ALL] if any(has_neighbour(sweep, workload, each) for each in sweep.filesystems) else []
            if sentences := [*filter(None, texts), *of_all]:
                yield f"{workload.label}: {' '.join(sentences)}"


def _cell_text(sweep: Sweep, workload: Workload, filesystem: Filesystem, figures: Sequence[WorkFigure]) -> str:
    """'On ext4 33 % [20, 54] of the time of a sync passes behind the journal, 12 % [8, 18] of it all while ...'; '' of
    a cell without syncs."""
    commit, others = (_find(figures, filesystem, workload, name) for name in (COMMIT_SHARE, OTHERS_SHARE))
    if commit is None:
        return ""
    behind = f"On {filesystem.name} a sync waits for the journal in {_share(commit)} of its time"
    if others is None:
        return f"{behind}; which part is due to others is unknown: the trace does not tell the device's requests."
    alone = next((other for other in sweep.workloads if _is_alone(other, workload)), None)
    pair = [_find(figures, filesystem, alone, name) for name in (COMMIT_SHARE, OTHERS_SHARE)] if alone else []
    without = f" Alone: {listed([_share(figure) for figure in pair if figure])}." if all(pair) and pair else ""
    return f"{behind}; in {_share(others)} the device meanwhile writes data that the tool did not submit.{without}"


def _is_alone(other: Workload, workload: Workload) -> bool:
    same = (other.name, {**other.factors, "beside": ""}) == (workload.name, {**workload.factors, "beside": ""})
    return same and not other.beside


def _find(
    figures: Sequence[WorkFigure], filesystem: Filesystem, workload: Workload, quantity: str
) -> WorkFigure | None:
    where = filesystem.name, workload.label, quantity
    return next((each for each in figures if (each.filesystem, each.workload_label, each.quantity) == where), None)


def _share(figure: WorkFigure) -> str:
    value = figure.figure
    figures = mean_figures(value.mean, value.low, value.high, factor=0.01)
    return f"{figures.value}\u00a0% {figures.interval}".strip()
