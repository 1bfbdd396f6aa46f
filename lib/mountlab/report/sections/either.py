"""The parts that a run and a comparison of runs both have, by what they are given."""

from __future__ import annotations

from collections.abc import Callable

from mountlab.analysis.compare.boxes import Across
from mountlab.analysis.run_view import RunView
from mountlab.report import html
from mountlab.report.html import Html
from mountlab.report.sections import compared, figures, first
from mountlab.report.views.side_by_side import Compared

Either = RunView | Compared


def question(run: Either) -> Html:
    """Return the question, and below it where, when and how often it was asked."""
    return compared.heading(run) if isinstance(run, Compared) else first.question(run)


def answer(run: Either) -> Html:
    """Return what was asked, answered in sentences."""
    return compared.answer(run) if isinstance(run, Compared) else first.answer(run)


def overview(run: Either) -> Html:
    """Return the answer in pictures."""
    return compared.overview(run) if isinstance(run, Compared) else first.overview(run)


def caveats(run: Either) -> Html:
    """Return what gives reason to doubt it, worst first."""
    return compared.caveats(run) if isinstance(run, Compared) else first.caveats(run)


def every_trial(run: RunView | Across) -> Html:
    """Return every trial with the mean of its cell; of several boxes one after the other."""
    return _each(run, figures.every_trial)


def run_order(run: RunView | Across) -> Html:
    """Return every trial in the order in which it ran; of several boxes one after the other."""
    return _each(run, figures.run_order)


def _each(run: RunView | Across, part: Callable[[RunView], Html]) -> Html:
    if not isinstance(run, Across):
        return part(run)
    boxes = zip(run.boxes, run.runs, strict=True)
    return html.joined(*(html.joined(html.heading(name, level=3), part(own)) for name, own in boxes))
