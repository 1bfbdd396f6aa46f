"""What a run says, as frames."""

from __future__ import annotations

from collections.abc import Sequence

from mountlab.analysis.measurements import factor_names
from mountlab.analysis.run_view import AnsweredRun
from mountlab.core.findings import COMPARISON_COLUMNS, Comparison
from mountlab.core.frames import pd


def comparison_frame(run: AnsweredRun, compared: Sequence[Comparison] | None = None) -> pd.DataFrame:
    """Return one row a comparison (those of the answer where none are given), with the columns of comparisons.csv; one
    column a factor."""
    compared = run.comparisons if compared is None else compared
    names = factor_names(run.sweep)
    own = [
        name
        for name in COMPARISON_COLUMNS
        if name not in ("factors", "baseline", "candidate", "workload", "tool")
        and (name != "better" or any(each.better for each in compared))
    ]
    rows = [{**each.columns, **{name: each.factors.get(name, "") for name in names}} for each in compared]
    frame = pd.DataFrame(rows, columns=["baseline", "candidate", "workload", "tool", *names, *own])
    return frame.astype({"needed": "Int64"})  # whole blocks, or nothing
