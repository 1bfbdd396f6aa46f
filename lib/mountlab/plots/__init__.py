"""Estimates and trials as figures. Draws the intervals that it is given and computes none of its own.

Every plot is a frozen `Plot`: a Matplotlib figure, a title that states the finding, and a text for those who do not
see it. As HTML it is inline SVG whose text and axes take the colour of the page, so that it works on light and dark;
`save_bytes` gives it at the size of a paper.

A new plot is one function `plot_*` in one module here, and one entry below.
"""

from mountlab.plots.axes import log_ticks, tick_text
from mountlab.plots.base import Mark, Plot, colour_of
from mountlab.plots.order import plot_run_order
from mountlab.plots.planning import plot_simulated, plot_smallest_difference
from mountlab.plots.ratios import plot_published, plot_ratios
from mountlab.plots.trials import plot_trials

__all__ = [
    "Mark", "Plot", "colour_of", "log_ticks", "plot_published", "plot_ratios", "plot_run_order", "plot_simulated",
    "plot_smallest_difference", "plot_trials", "tick_text",
]  # fmt: skip
