"""Below the split of latencies: the slowest operations one by one, where the processors were, and where threads
slept."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from mountlab import plots
from mountlab.analysis import why as causes_of
from mountlab.analysis.run_view import RunView
from mountlab.analysis.why_details import FEWEST_SAMPLES, processor_stacks, sleep_stacks, slowest
from mountlab.core import numbers
from mountlab.core.model import Cell
from mountlab.plots import Plot, SlowOperation
from mountlab.report import html
from mountlab.report.html import Html
from mountlab.report.sections import frames

_MOST_PLOTS = 12
"""Of each kind: one takes a third of a second and some tens of kilobytes of the page. The frames have all."""


_NOT_TRACED = "The run has no diagnostic trials."


@frames.attach(lambda run: run.why.slowest)
def why_slowest(run: RunView) -> Html:
    """Return the slowest operations of each cell as timelines, folded."""
    return _folded(slowest_plots(run), _NOT_TRACED)


def slowest_plots(run: RunView) -> Iterator[Plot]:
    """Yield a plot for each cell and main operation, for the first of them."""
    return islice(_slowest(run), _MOST_PLOTS)


def _slowest(run: RunView) -> Iterator[Plot]:
    for cell in run.sweep.cells:
        for operation in sorted(causes_of.main_operations(run.why, {cell.id})):
            ranked = enumerate(slowest(run.why, cell.id, operation), start=1)
            rows = [SlowOperation(f"{rank} in {slow.trial_id}", slow.pieces) for rank, slow in ranked]
            if rows:
                yield plots.plot_slowest(rows, operation, _name(run, cell))


@frames.attach(lambda run: run.why.stacks)
def why_processors(run: RunView) -> Html:
    """Return a flame graph for each cell; of a candidate with its difference to the baseline."""
    few = f"No cell has {numbers.counted(FEWEST_SAMPLES, 'sample')}."
    return _folded(flame_plots(run), few if run.why else _NOT_TRACED)


@frames.attach(lambda run: run.why.sleeps)
def why_asleep(run: RunView) -> Html:
    """Return a flame graph of where threads slept while operations were under way, for each cell."""
    few = f"Threads of no cell slept {FEWEST_SAMPLES} times."
    return _folded(sleep_plots(run), few if run.why else _NOT_TRACED)


def _folded(graphs: Iterator[Plot], why_none: str) -> Html:
    """Return plots, each behind its title, and where the others are; where there is none, why."""
    drawn = [html.details(plot.title, html.plot(plot)) for plot in graphs]
    if not drawn:
        return html.nothing(why_none)
    most = f"The page draws {numbers.counted(len(drawn), 'plot')} of them at most"
    note = html.paragraph(f"{most}: the frames why_slowest, why_stacks and why_sleeps have all.", kind="meta")
    return html.joined(*drawn, note if len(drawn) >= _MOST_PLOTS else "")


def flame_plots(run: RunView) -> Iterator[Plot]:
    """Yield the flame graph of each cell, and of each difference to the baseline, for the first of them."""
    return islice(_flames(run), _MOST_PLOTS)


def sleep_plots(run: RunView) -> Iterator[Plot]:
    """Yield the graph of where threads of each cell slept, and of each difference to the baseline."""
    return islice(_flames(run, asleep=True), _MOST_PLOTS)


def _flames(run: RunView, *, asleep: bool = False) -> Iterator[Plot]:
    stacks_of = sleep_stacks if asleep else processor_stacks
    for cell in run.sweep.cells:
        stacks = stacks_of(run.why, cell.id)
        if not stacks:
            continue
        yield plots.plot_flame(stacks, _name(run, cell), asleep=asleep)
        for other in run.sweep.cells:
            is_baseline = other.workload.label == cell.workload.label and other.filesystem.name == run.sweep.baseline
            if is_baseline and other.id != cell.id and (base := stacks_of(run.why, other.id)):
                yield plots.plot_flame(stacks, _name(run, cell), than=base, other=_name(run, other), asleep=asleep)


def _name(run: RunView, cell: Cell) -> str:
    alone = len(run.sweep.workloads) == 1
    return cell.filesystem.name if alone else f"{cell.filesystem.name} under {cell.workload.label}"
