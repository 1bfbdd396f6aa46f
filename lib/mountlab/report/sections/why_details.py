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

_MOST_PLOTS = 12
"""Of each kind: one takes a third of a second and some tens of kilobytes of the page. The frames have all."""


def why_slowest(run: RunView) -> Html:
    """Return the slowest operations of each cell as timelines, folded."""
    drawn = [html.details(plot.title, html.plot(plot)) for plot in slowest_plots(run)]
    return html.joined(*drawn, _others(len(drawn))) if drawn else html.nothing("The run has no diagnostic trials.")


def _others(drawn: int) -> Html | str:
    if drawn < _MOST_PLOTS:
        return ""
    most = f"The page draws {numbers.counted(drawn, 'plot')} of them at most"
    return html.paragraph(f"{most}: the frames why_slowest, why_stacks and why_sleeps have all.", kind="meta")


def slowest_plots(run: RunView) -> Iterator[Plot]:
    """Yield a plot for each cell and main operation, for the first of them."""
    return islice(_slowest(run), _MOST_PLOTS)


def _slowest(run: RunView) -> Iterator[Plot]:
    for cell in run.sweep.cells:
        for operation in sorted(causes_of.main_operations(run.why, {cell.id})):
            found = slowest(run.why, cell.id, operation)
            rows = [
                SlowOperation(f"{rank} in {each.trial_id}", each.pieces) for rank, each in enumerate(found, start=1)
            ]
            if rows:
                yield plots.plot_slowest(rows, operation, _name(run, cell))


def why_processors(run: RunView) -> Html:
    """Return a flame graph for each cell; of a candidate with its difference to the baseline."""
    return _flame_graphs(run, flame_plots(run), f"No cell has {numbers.counted(FEWEST_SAMPLES, 'sample')}.")


def why_asleep(run: RunView) -> Html:
    """Return the same of where threads slept while operations were under way."""
    return _flame_graphs(run, sleep_plots(run), f"Threads of no cell slept {FEWEST_SAMPLES} times.")


def _flame_graphs(run: RunView, graphs: Iterator[Plot], few: str) -> Html:
    drawn = [html.details(plot.title, html.plot(plot)) for plot in graphs]
    if drawn:
        return html.joined(*drawn, _others(len(drawn)))
    return html.nothing(few if run.why else "The run has no diagnostic trials.")


def flame_plots(run: RunView) -> Iterator[Plot]:
    """Yield the flame graph of each cell, and of each difference to the baseline, for the first of them."""
    return islice(_flames(run), _MOST_PLOTS)


def sleep_plots(run: RunView) -> Iterator[Plot]:
    """Yield those of where threads slept."""
    return islice(_flames(run, asleep=True), _MOST_PLOTS)


def _flames(run: RunView, *, asleep: bool = False) -> Iterator[Plot]:
    stacks_of = sleep_stacks if asleep else processor_stacks
    for cell in run.sweep.cells:
        stacks = stacks_of(run.why, cell.id)
        if not stacks:
            continue
        yield plots.plot_flame(stacks, _name(run, cell), asleep=asleep)
        baseline = _baseline(run, cell)
        base = stacks_of(run.why, baseline.id) if baseline else {}
        if baseline and base:
            yield plots.plot_flame(stacks, _name(run, cell), than=base, other=_name(run, baseline), asleep=asleep)


def _baseline(run: RunView, cell: Cell) -> Cell | None:
    """Return the cell that a cell is compared with."""
    same = (each for each in run.sweep.cells if each.workload.label == cell.workload.label)
    return next((each for each in same if each.filesystem.name == run.sweep.baseline and each.id != cell.id), None)


def _name(run: RunView, cell: Cell) -> str:
    alone = len(run.sweep.workloads) == 1
    return cell.filesystem.name if alone else f"{cell.filesystem.name} under {cell.workload.label}"
