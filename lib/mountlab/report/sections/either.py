"""The parts that a run and a comparison of runs both have, by what they are given."""

from __future__ import annotations

from collections.abc import Callable

from mountlab.analysis.compare.runs import RunComparison
from mountlab.analysis.run_view import RunView
from mountlab.report import html
from mountlab.report.html import Html
from mountlab.report.sections import figures, first, frames
from mountlab.report.views import comparison

Either = RunView | RunComparison


def question(run: Either) -> Html:
    """Return the question, and below it where, when and how often it was asked."""
    return comparison.heading(run) if isinstance(run, RunComparison) else first.question(run)


@frames.attach(frames.ratios)
def answer(run: Either) -> Html:
    """Return what was asked, answered in sentences."""
    return comparison.answer(run) if isinstance(run, RunComparison) else first.answer(run)


@frames.attach(frames.overview)
def overview(run: Either) -> Html:
    """Return the answer in pictures."""
    return comparison.overview(run) if isinstance(run, RunComparison) else first.overview(run)


@frames.attach(frames.caveats)
def caveats(run: Either) -> Html:
    """Return what gives reason to doubt it, worst first."""
    return comparison.caveats(run) if isinstance(run, RunComparison) else first.caveats(run)


@frames.attach(frames.values)
def every_trial(run: Either) -> Html:
    """Return every trial with the mean of its cell; of several runs or boxes one after the other."""
    return _one_by_one(run, figures.every_trial)


@frames.attach(frames.in_order)
def run_order(run: Either) -> Html:
    """Return every trial in the order in which it ran; of several runs or boxes one after the other."""
    return _one_by_one(run, figures.run_order)


def _one_by_one(run: Either, part: Callable[[RunView], Html]) -> Html:
    if not isinstance(run, RunComparison):
        return part(run)
    by_name = zip(run.names, run.runs, strict=True)
    return html.joined(*(html.joined(html.heading(name, level=3), part(one)) for name, one in by_name))
