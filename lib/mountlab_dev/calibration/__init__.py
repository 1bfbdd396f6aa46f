"""`make calibrate`: simulations that show how often the statistics are right, as tables of docs/calibration.md.

Every figure has a seed of its own, so that the same code gives the same tables.
"""

from mountlab_dev.calibration import tables
from mountlab_dev.calibration.boxes import over_few_boxes, parts_of_unlike_runs, parts_of_variance
from mountlab_dev.calibration.capacities import (
    lengths_of_trials,
    ratios_of_capacities,
    ratios_with_few_trials,
    searched_capacities,
    searches_with_few_trials,
)
from mountlab_dev.calibration.conditions import coverage_of_row_ratios, flips_found
from mountlab_dev.calibration.edges import missing_blocks, rounded_means, rounded_verdicts
from mountlab_dev.calibration.extended import missed_after_extensions
from mountlab_dev.calibration.gates import gate_outcomes
from mountlab_dev.calibration.ios import percentiles_of_few_ios
from mountlab_dev.calibration.limits import figures_with_limits, made_once_or_in_each_block, verdicts_with_limits
from mountlab_dev.calibration.order import capacities_that_change, drifts_of_few_blocks
from mountlab_dev.calibration.over_runs import changes_over_runs, delays_over_runs, sizes_of_changes
from mountlab_dev.calibration.rules import trials_needed
from mountlab_dev.calibration.run_spreads import gates_where_runs_differ
from mountlab_dev.calibration.scales import scales_of_means
from mountlab_dev.calibration.shares import shares_of_differences
from mountlab_dev.calibration.stopped import (
    means_of_like_neighbours,
    means_of_stopped_runs,
    ratios_when_stopping,
    spread_of_stopped_runs,
)
from mountlab_dev.calibration.tables import Maker

TABLES: tuple[Maker, ...] = (
    *tables.TABLES, scales_of_means, means_of_like_neighbours, ratios_when_stopping, means_of_stopped_runs,
    spread_of_stopped_runs, trials_needed, over_few_boxes, parts_of_variance, parts_of_unlike_runs, changes_over_runs,
    sizes_of_changes, delays_over_runs, gate_outcomes, gates_where_runs_differ, percentiles_of_few_ios,
    shares_of_differences, missing_blocks, rounded_means, rounded_verdicts, figures_with_limits, verdicts_with_limits,
    made_once_or_in_each_block, missed_after_extensions, drifts_of_few_blocks, lengths_of_trials, searched_capacities,
    searches_with_few_trials, ratios_with_few_trials, ratios_of_capacities, capacities_that_change,
    flips_found, coverage_of_row_ratios,
)  # fmt: skip
"""All that docs/calibration.md holds."""


__all__ = ["TABLES"]
