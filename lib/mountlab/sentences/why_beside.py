"""Sentences on syncs beside a neighbour: how long they wait for the journal, and meanwhile for data of others."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mountlab.analysis.why import FEWEST, WorkFigure, has_neighbour
from mountlab.core.layers import COMMIT_SHARE, OTHERS_SHARE
from mountlab.core.model import Filesystem, Sweep, Workload
from mountlab.core.numbers import mean_figures

_OF_ALL = "Ratios of device I/Os, flushes and commits are left out: they would count the work of the neighbour as well."


def beside_sentences(sweep: Sweep, figures: Sequence[WorkFigure]) -> Iterator[tuple[str, str]]:
    """Yield each workload with neighbours, and what its syncs wait for: the journal, and meanwhile data of others; with
    the shares of the same workload alone, where the sweep has it."""
    for workload in sweep.workloads:
        if workload.beside:
            texts = [_cell_text(sweep, workload, filesystem, figures) for filesystem in sweep.filesystems]
            of_all = [_OF_ALL] if any(has_neighbour(sweep, workload, each) for each in sweep.filesystems) else []
            if sentences := [*filter(None, texts), *of_all]:
                yield workload.label, " ".join(sentences)


def _cell_text(sweep: Sweep, workload: Workload, filesystem: Filesystem, figures: Sequence[WorkFigure]) -> str:
    """'On ext4 a sync waits for the journal in 74 % of its time ...'; '' for a cell without syncs."""
    commit, others = _shares(figures, filesystem, workload)
    if not commit:
        return ""
    behind = f"On {filesystem.name} a sync waits for the journal in {commit} of its time"
    if not others:
        return f"{behind}; how much of it beside data of others is unknown."
    alone = next((other for other in sweep.workloads if _is_alone(other, workload)), None)
    pair = _shares(figures, filesystem, alone) if alone else ("", "")
    without = f" (without neighbour: {pair[0]} and {pair[1]})" if all(pair) else ""
    return f"{behind}, and in {others} the device meanwhile writes data of others{without}."


def _is_alone(other: Workload, workload: Workload) -> bool:
    same = (other.name, {**other.factors, "beside": ""}) == (workload.name, {**workload.factors, "beside": ""})
    return same and not other.beside


def _shares(work: Sequence[WorkFigure], filesystem: Filesystem, workload: Workload) -> tuple[str, str]:
    """Return COMMIT_SHARE and OTHERS_SHARE of a cell as text; '' for what too few trials have."""
    cell = [each for each in work if (each.filesystem, each.workload_label) == (filesystem.name, workload.label)]
    figures = {each.quantity: each for each in cell if each.figure.n >= FEWEST}
    commit, others = (_text(figures[name]) if name in figures else "" for name in (COMMIT_SHARE, OTHERS_SHARE))
    return commit, others


def _text(figure: WorkFigure) -> str:
    value = figure.figure
    figures = mean_figures(value.mean, value.low, value.high, factor=0.01)
    return f"{figures.value}\u00a0% {figures.interval}".strip()
