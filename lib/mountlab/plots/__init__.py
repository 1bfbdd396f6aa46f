"""Estimates and trials as figures. Draws the intervals that it is given and computes none of its own.

Every plot is a frozen `Plot`: a Matplotlib figure, a title that states the finding, and a text for those who do not
see it. As HTML it is inline SVG whose text and axes take the colour of the page, so that it works on light and dark;
`save_bytes` gives it at the size of a paper.

A new plot is one function `plot_*` in one module here, and one entry below. A plug-in registers a `ReportPlot`.
"""

from mountlab.plots.bars import plot_bars
from mountlab.plots.base import Plot, ReportPlot
from mountlab.plots.capacity import plot_capacity
from mountlab.plots.clients import ClientPoint, plot_clients
from mountlab.plots.clustered import plot_clustered
from mountlab.plots.conditions import plot_conditions
from mountlab.plots.data import groups_of, ordered
from mountlab.plots.distribution import plot_distribution
from mountlab.plots.flame import plot_flame
from mountlab.plots.heat import plot_heat, plot_ratio_heat
from mountlab.plots.inside import INSIDE, InsideTrial, plot_inside, quiet
from mountlab.plots.latency import PLACES, plot_latencies, plot_percentiles
from mountlab.plots.layers import LAYER_COLOURS, LayerBar, plot_layers
from mountlab.plots.levels import kind_of
from mountlab.plots.moved import Delivered, plot_bytes
from mountlab.plots.order import plot_run_order
from mountlab.plots.planning import plot_simulated, plot_smallest_difference
from mountlab.plots.program import plot_concurrency, plot_offsets, plot_operations, plot_sizes, plot_syncs
from mountlab.plots.ratios import plot_published, plot_ratios
from mountlab.plots.response import plot_response
from mountlab.plots.series import Course, plot_series
from mountlab.plots.slowest import SlowOperation, plot_slowest
from mountlab.plots.style import STYLE, Mark, colour_of
from mountlab.plots.ticks import log_number_ticks, log_ticks, tick_text
from mountlab.plots.trials import plot_trials

__all__ = [
    "INSIDE", "LAYER_COLOURS", "PLACES", "STYLE", "ClientPoint", "Course", "Delivered", "InsideTrial", "LayerBar",
    "Mark", "Plot", "ReportPlot", "SlowOperation", "colour_of", "groups_of", "kind_of", "log_number_ticks", "log_ticks",
    "ordered", "plot_bars", "plot_bytes", "plot_capacity", "plot_clients", "plot_clustered", "plot_concurrency",
    "plot_conditions", "plot_distribution", "plot_flame", "plot_heat", "plot_inside", "plot_latencies", "plot_layers",
    "plot_offsets", "plot_operations", "plot_percentiles", "plot_published", "plot_ratio_heat", "plot_ratios",
    "plot_response", "plot_run_order", "plot_series", "plot_simulated", "plot_sizes", "plot_slowest",
    "plot_smallest_difference", "plot_syncs", "plot_trials", "quiet", "tick_text",
]  # fmt: skip
