"""What a run says, as frames."""

from __future__ import annotations

from collections.abc import Sequence

from mountlab.analysis.measurements import factor_names
from mountlab.analysis.run_view import AnsweredRun
from mountlab.core.findings import COMPARISON_COLUMNS, Comparison, ConditionChange, Kept
from mountlab.core.frames import pd

_FIRST = ("baseline", "candidate", "workload", "tool")


def comparison_frame(run: AnsweredRun, comparisons: Sequence[Comparison] | None = None) -> pd.DataFrame:
    """Return one row a comparison (those of the answer where none are given), with the columns of comparisons.csv; one
    column a factor."""
    comparisons = run.comparisons if comparisons is None else comparisons
    names = factor_names(run.sweep)
    columns = [name for name in COMPARISON_COLUMNS if name not in ("factors", *_FIRST)]
    if not any(comparison.better for comparison in comparisons):
        columns.remove("better")
    rows = [
        {**comparison.columns, **{name: comparison.factors.get(name, "") for name in names}}
        for comparison in comparisons
    ]
    frame = pd.DataFrame(rows, columns=[*_FIRST, *names, *columns])
    return frame.astype({"needed": "Int64"})  # whole blocks, or nothing


def condition_frame(run: AnsweredRun, rows: Sequence[Kept | ConditionChange]) -> pd.DataFrame:
    """Return one row for each figure that a file system keeps, of it against itself, and one for each ratio that
    changes; columns as in comparisons.csv, after the condition and the level that it is compared with."""
    ratios = [row.ratio if isinstance(row, Kept) else row.change for row in rows]
    frame = comparison_frame(run, ratios)
    frame.insert(0, "condition", [row.condition for row in rows])
    frame.insert(1, "reference", [row.reference for row in rows])
    return frame.assign(flips=[isinstance(row, ConditionChange) and row.flips for row in rows])
