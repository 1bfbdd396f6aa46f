"""The parts of a comparison: of two runs, of many, or of one sweep on several boxes."""

from __future__ import annotations

from mountlab.analysis.compare.boxes import Across
from mountlab.analysis.compare.two import RunComparison
from mountlab.report.html import Html
from mountlab.report.views import boxes, compare, compare_many, side_by_side
from mountlab.report.views.side_by_side import Compared


def heading(compared: Compared) -> Html:
    """Return the question, and which runs it is about."""
    if isinstance(compared, Across):
        return boxes.heading(compared)
    return compare.heading(compared) if isinstance(compared, RunComparison) else compare_many.heading(compared)


def answer(compared: Compared) -> Html:
    """Return the answer in sentences."""
    if isinstance(compared, Across):
        return boxes.answer(compared)
    return compare.answer(compared) if isinstance(compared, RunComparison) else compare_many.answer(compared)


def overview(compared: Compared) -> Html:
    """Return the answer in pictures."""
    if isinstance(compared, Across):
        return boxes.overview(compared)
    return compare.overview(compared) if isinstance(compared, RunComparison) else compare_many.overview(compared)


def caveats(compared: Compared) -> Html:
    """Return what gives reason to doubt it, worst first."""
    return side_by_side.caveats(compared)


def which(compared: Compared) -> Html:
    """Return which run, or which box, is which."""
    return boxes.which(compared) if isinstance(compared, Across) else side_by_side.which(compared)


def differences(compared: Compared) -> Html:
    """Return what is known to differ between the runs, and what is not known of all."""
    return side_by_side.differences(compared)


def verdicts(compared: Compared) -> Html:
    """Return the verdicts of every run, from its own comparisons; on boxes also those over all boxes."""
    return boxes.verdicts_of(compared) if isinstance(compared, Across) else side_by_side.verdicts_of(compared)


def cell_by_cell(compared: Compared) -> Html:
    """Return every figure in every run: of two runs with their ratio, of more with the spread between them."""
    if isinstance(compared, Across):
        return boxes.cell_by_cell(compared)
    if isinstance(compared, RunComparison):
        return compare.cell_by_cell(compared)
    return compare_many.cell_by_cell(compared)


def not_compared(compared: Compared) -> Html:
    """Cells that some runs do not have."""
    return side_by_side.not_compared(compared)
