"""What a design can show, from an earlier run of the same sweep: its pilot."""

from __future__ import annotations

from mountlab.analysis.forecast import forecast
from mountlab.report.views.forecast import curves
from mountlab.report.views.forecast import forecast_sentences as sentences
from mountlab.report.views.forecast import forecast_table as table

__all__ = ["curves", "forecast", "sentences", "table"]
