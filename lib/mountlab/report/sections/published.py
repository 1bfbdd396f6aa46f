"""Published figures and claims beside ours."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mountlab import plots
from mountlab.analysis.published import Beside, beside
from mountlab.analysis.run_view import RunView
from mountlab.core import numbers
from mountlab.core.findings import PublishedFigure
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Rows, Text, numeric
from mountlab.report.sections.shared import names_of
from mountlab.wording import verdicts


def published(run: RunView) -> Html:
    """Published ratios and claims beside ours, as a picture and as a table with the sources."""
    found = beside(run)
    if not found:
        return html.nothing("This sweep names no published figures.")
    pairs = [(each.theirs, each.ours) for each in found if math.isfinite(each.theirs.ratio)]
    note = html.paragraph(
        "Absolute figures are of other machines, years and sizes: compare ratios and their order, not speeds."
    )
    plot = html.plot(plots.plot_published(pairs, filesystems=names_of(run))) if pairs else ""
    # The title of the picture says it of the ratios; a claim without figures is not in the picture.
    said = html.paragraph(verdicts.agreement_sentence([each.agreement for each in found]))
    sentence = said if len(pairs) < len(found) else ""
    return html.joined(sentence, note, plot, _published_table(found), _sources(run.published))


def _published_table(found: Sequence[Beside]) -> Html:
    ours = (*numeric("Our ratio"), Column("Our interval", "interval"))
    head: Head = ["What", "Candidate", "Baseline", "Published", *ours, "Ours", "Study"]
    return html.table(head, [Rows([_published_row(each) for each in found])], caption="Published, and our ratio")


def _published_row(each: Beside) -> list[Text]:
    theirs, ours = each.theirs, each.ours
    figures = verdicts.compared_figures(ours) if ours else None
    ratio = (figures.value, figures.interval) if figures else (numbers.MISSING, "")
    sides = ((theirs.candidate, theirs.candidate_value), (theirs.baseline, theirs.baseline_value))
    published = [*(_published_side(*side, theirs.unit) for side in sides), verdicts.claim_text(theirs)]
    return [theirs.what, *published, *ratio, verdicts.agreement_text(each.agreement, each.why), theirs.study]


def _published_side(name: str, value: float, unit: str) -> str:
    return f"{name} {numbers.quantity(value, unit)}" if math.isfinite(value) else name


def _sources(figures: Sequence[PublishedFigure]) -> Html:
    sources = {figure.study: figure.source for figure in figures}
    return html.items(f"{study}: {source}" for study, source in sources.items())
