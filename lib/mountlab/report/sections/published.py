"""Published figures and claims beside ours."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mountlab import plots
from mountlab.analysis.published import Beside, beside
from mountlab.analysis.run_view import RunView
from mountlab.core import numbers
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Rows, Text, numeric
from mountlab.report.sections import frames
from mountlab.report.sections.shared import names_of
from mountlab.wording import verdicts

_MOST_UNMEASURED = 12


@frames.attach(frames.published)
def published(run: RunView) -> Html:
    """Published ratios and claims beside ours, as a picture and as a table with the sources."""
    results = beside(run)
    if not results:
        return html.nothing("This sweep names no published figures.")
    pairs = [(result.theirs, result.ours) for result in results if math.isfinite(result.theirs.ratio)]
    note = html.paragraph(
        "Absolute figures are of other machines, years and sizes: compare ratios and their order, not speeds."
    )
    plot = html.plot(plots.plot_published(pairs, filesystems=names_of(run))) if pairs else ""
    # The title of the picture says it of the ratios; a claim without figures is not in the picture.
    agreement = html.paragraph(verdicts.agreement_sentence([result.agreement for result in results]))
    sentence = agreement if len(pairs) < len(results) else ""
    sources = {figure.study: figure.source for figure in run.published}
    studies = html.items(f"{study}: {source}" for study, source in sources.items())
    return html.joined(sentence, note, plot, _published_tables(results), studies)


def _published_tables(results: Sequence[Beside]) -> Html:
    """One table; of many rows those that were not measured are folded."""
    measured = [result for result in results if result.ours]
    if not measured or len(results) - len(measured) <= _MOST_UNMEASURED:
        return _published_table(results)
    rest = [result for result in results if not result.ours]
    return html.joined(
        _published_table(measured), html.details(f"{len(rest)} that this run did not measure", _published_table(rest))
    )


def _published_table(results: Sequence[Beside]) -> Html:
    rows: list[list[Text]] = []
    for result in results:
        theirs, figures = result.theirs, verdicts.compared_figures(result.ours) if result.ours else None
        sides = ((theirs.candidate, theirs.candidate_value), (theirs.baseline, theirs.baseline_value))
        published = [
            f"{name} {numbers.quantity(value, theirs.unit)}" if math.isfinite(value) else name for name, value in sides
        ]
        ratio = (figures.value, figures.interval) if figures else (numbers.MISSING, "")
        agreement = verdicts.agreement_text(result.agreement, result.why)
        claim = verdicts.claim_text(theirs) + (f", {theirs.says}" if theirs.says and not theirs.claim else "")
        rows.append([theirs.what, *published, claim, *ratio, agreement, theirs.study])
    ours = (*numeric("Our ratio"), Column("Our interval", "interval"))
    head: Head = ["What", "Candidate", "Baseline", "Published", *ours, "Ours", "Study"]
    return html.table(head, [Rows(rows)], caption="Published, and our ratio")
