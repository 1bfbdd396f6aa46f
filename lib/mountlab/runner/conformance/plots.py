"""The conformance suite of the plots of a report. `mountlab conform` runs it for plug-ins."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from mountlab.analysis.run_view import RunView
from mountlab.plots.base import Plot, ReportPlot
from mountlab.runner.conformance.rules import NAME, Rule, require


@dataclass(frozen=True)
class PlotExample:
    """A run that a plot has something to draw of."""

    name: str
    sweep: Mapping[str, Any]
    """As in a sweep file; its question may be left out."""
    figures: Mapping[str, Sequence[float]]
    """`metric` or `metric/label` to its value in each block, in base units; the same in every cell."""


@dataclass(frozen=True)
class PlotCase:
    """The plots of one run."""

    plot: ReportPlot
    run: RunView
    empty: RunView
    """The same sweep before its first trial."""

    @cached_property
    def drawn(self) -> list[Plot]:
        return list(self.plot.draw(self.run))


# --- of a plot --------------------------------------------------------------------------------------------------------


def says_what_it_is(plot: ReportPlot) -> None:
    """It has a plain name, and a docstring that says what it draws."""
    require(re.fullmatch(NAME, plot.name), "not a name for a plot", got=plot.name, allowed=f"as in {NAME}")
    require(plot.draw.__doc__, "its function has no docstring", allowed="a sentence: what it draws")


# --- of a run ---------------------------------------------------------------------------------------------------------


def draws_what_was_measured(case: PlotCase) -> None:
    """It draws a run of its example."""
    drawn = case.drawn
    require(drawn, "nothing was drawn of the example", allowed="a Plot or more")
    for each in drawn:
        require(isinstance(each, Plot), "not a plot", got=type(each).__name__, allowed="mountlab.plots.Plot")


def draws_nothing_of_nothing(case: PlotCase) -> None:
    """It draws nothing of a run without figures."""
    drawn = list(case.plot.draw(case.empty))
    require(
        not drawn, "plots of a run without figures", got=[each.title for each in drawn], allowed="none, and no error"
    )


def says_what_it_shows(case: PlotCase) -> None:
    """Each plot has a title of one line, and a text for those who do not see it."""
    for each in case.drawn:
        require(
            each.title and "\n" not in each.title, "a title", got=repr(each.title), allowed="what was found, in a line"
        )
        require(each.alt and each.alt != each.title, "alt", got=repr(each.alt), allowed="what the picture shows")


def draws_the_same_again(case: PlotCase) -> None:
    """The same run gives the same picture."""
    first, second = ([each.svg() for each in drawn] for drawn in (case.drawn, case.plot.draw(case.run)))
    require(first == second, "two pictures of one run", allowed="no clock and no randomness; artists in a fixed order")


OF_PLOT: tuple[Rule[ReportPlot], ...] = (says_what_it_is,)
OF_RUN: tuple[Rule[PlotCase], ...] = (
    draws_what_was_measured, draws_nothing_of_nothing, says_what_it_shows, draws_the_same_again,
)  # fmt: skip
