"""Published figures beside ours."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mountlab import html, plots, words
from mountlab.html import Column, Html, Rows, Text
from mountlab.model import Comparison, PublishedFigure
from mountlab.run_view import RunView
from mountlab.sections.shared import (
    compared,
    names_of,
)


def published(run: RunView) -> Html:
    """Published ratios beside ours, as a picture and as a table with the sources."""
    pairs = [(theirs, words.ours_beside(theirs, compared(run))) for theirs in run.published]
    if not pairs:
        return html.nothing("This sweep names no published figures.")
    note = html.paragraph(
        "Absolute figures are of other machines, years and sizes: compare ratios and their order, not speeds."
    )
    plot = Html(plots.plot_published(pairs, filesystems=names_of(run))._repr_html_())
    return html.joined(note, plot, _published_table(run, pairs), _sources(run.published))


def _published_table(run: RunView, pairs: Sequence[tuple[PublishedFigure, Comparison | None]]) -> Html:
    head = [
        Column("What"), Column("Candidate"), Column("Baseline"), Column("Ratio", "number"),
        Column("Ours", "number"), Column("Our interval", "interval"), Column("Study"),
    ]  # fmt: skip
    rows = [_published_row(theirs, ours) for theirs, ours in pairs]
    return html.table(head, [Rows(rows)], caption="Published figures, and our ratio")


def _published_row(theirs: PublishedFigure, ours: Comparison | None) -> list[Text]:
    figures = words.ratio_figures(ours.ratio, ours.low, ours.high) if ours else None
    return [
        theirs.what,
        f"{theirs.candidate} {words.quantity(theirs.candidate_value, theirs.unit)}",
        f"{theirs.baseline} {words.quantity(theirs.baseline_value, theirs.unit)}",
        words.ratio_figures(theirs.ratio, math.nan, math.nan).value,
        figures.value if figures else words.MISSING,
        figures.interval if figures else "not measured",
        theirs.study,
    ]


def _sources(figures: Sequence[PublishedFigure]) -> Html:
    sources = {figure.study: figure.source for figure in figures}
    return html.items(f"{study}: {source}" for study, source in sources.items())
