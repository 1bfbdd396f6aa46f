"""The parts of the notebook that runs a sweep: of one run, or of the runs of one sweep on several boxes."""

from __future__ import annotations

from collections.abc import Callable

from mountlab.analysis.compare.boxes import Across
from mountlab.analysis.run_view import RunView
from mountlab.report import html
from mountlab.report.html import Html
from mountlab.report.sections import figures, first
from mountlab.report.views import boxes as across_view

Either = RunView | Across


def answer(run: Either) -> Html:
    """What was asked, answered in sentences."""
    return across_view.answer(run) if isinstance(run, Across) else first.answer(run)


def overview(run: Either) -> Html:
    """The answer in pictures."""
    return across_view.overview(run) if isinstance(run, Across) else first.overview(run)


def caveats(run: Either) -> Html:
    """What gives reason to doubt it, worst first."""
    return across_view.caveats(run) if isinstance(run, Across) else first.caveats(run)


def every_trial(run: Either) -> Html:
    """Every trial with the mean of its cell; of several boxes one after the other."""
    return _each(run, figures.every_trial)


def run_order(run: Either) -> Html:
    """Every trial in the order in which it ran; of several boxes one after the other."""
    return _each(run, figures.run_order)


def _each(run: Either, part: Callable[[RunView], Html]) -> Html:
    if not isinstance(run, Across):
        return part(run)
    boxes = zip(run.boxes, run.runs, strict=True)
    return html.joined(*(html.joined(html.heading(name, level=3), part(own)) for name, own in boxes))
