"""The figures of a sweep on a box, run after run, and where their level changed."""

from __future__ import annotations

from mountlab.report.views.history import answer, by_kernel, changes_table, histories_table, overview, title
from mountlab.results.histories import histories_of

__all__ = ["answer", "by_kernel", "changes_table", "histories_of", "histories_table", "overview", "title"]
