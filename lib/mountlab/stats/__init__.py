"""Statistics. Every interval and every p value that Mountlab prints is computed in this package."""

from mountlab.stats.adjusted import adjust_comparisons, holm, look_level, verdict
from mountlab.stats.anova import explained, variance_table
from mountlab.stats.comparisons import (
    RATIO_METHOD,
    WELCH_METHOD,
    Ratio,
    compare,
    compare_row_ratios,
    compare_rows,
    compare_rows_unpaired,
    compare_unpaired,
    p_equivalent,
)
from mountlab.stats.estimates import STATISTICS, T_METHOD, estimate, estimate_of_moments, estimate_samples
from mountlab.stats.over_boxes import OVER_BOXES_METHOD
from mountlab.stats.shares import DifferenceShare, not_smaller, shares_of_parts

__all__ = [
    "OVER_BOXES_METHOD",
    "RATIO_METHOD",
    "STATISTICS",
    "T_METHOD",
    "WELCH_METHOD",
    "DifferenceShare",
    "Ratio",
    "adjust_comparisons",
    "compare",
    "compare_row_ratios",
    "compare_rows",
    "compare_rows_unpaired",
    "compare_unpaired",
    "estimate",
    "estimate_of_moments",
    "estimate_samples",
    "explained",
    "holm",
    "look_level",
    "not_smaller",
    "p_equivalent",
    "shares_of_parts",
    "variance_table",
    "verdict",
]  # fmt: skip
