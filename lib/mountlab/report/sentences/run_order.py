"""Sentences on what the run order of the trials shows."""

from __future__ import annotations

from collections.abc import Iterator

from mountlab.analysis.run_order import Trend, trend_of
from mountlab.analysis.run_view import RunView
from mountlab.core.names import code_words
from mountlab.core.numbers import first_few, ratio_figures
from mountlab.core.text import capital
from mountlab.wording.caveats import grouped

_CODES, _MOST_NAMED = ("drift", "step", "burst-credits"), 3


def run_order_sentences(run: RunView) -> Iterator[str]:
    """Yield whether the figures of all cells together rose or fell over the run, by the checks where these raise a
    caveat about it and else by a line through the blocks; and the cells that changed by themselves."""
    groups = grouped(caveat for caveat in run.caveats if caveat.code in _CODES)
    of_run = [group for group in groups if group.caveats[0].scope == "run"]
    if of_run:
        yield from (f"{capital(group.first_sentence)}." for group in of_run)
    elif trend := trend_of(run):
        yield trend_sentence(trend, run.sweep.design.smallest_effect)
    for group in (group for group in groups if group not in of_run):
        cells = first_few([caveat.subject for caveat in group.caveats], _MOST_NAMED)
        yield f"{code_words(group.code).capitalize()}: {cells} (see Caveats)."


def trend_sentence(trend: Trend, smallest_effect: float) -> str:
    """Return whether the figures got better or worse; that they did neither only where the interval shows it."""
    if trend.low > 1 or trend.high < 1:
        shown = f"The figures got {'better' if trend.ratio > 1 else 'worse'} over the run"
    elif max(trend.high, 1 / trend.low) <= 1 + smallest_effect:
        shown = "No trend over the run"
    else:
        shown = "A trend over the run is neither shown nor excluded"
    figures = ratio_figures(trend.ratio, trend.low, trend.high)
    return (
        f"{shown}: over all cells together (times as rates), the last of {trend.blocks} blocks is at {figures} of the "
        "first, by a line through all of them."
    )
