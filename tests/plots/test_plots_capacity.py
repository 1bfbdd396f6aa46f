"""Latency over load as a figure, by its artists."""

from __future__ import annotations

import math
import re

import numpy as np
import pytest
from matplotlib.lines import Line2D
from mountlab import plots
from mountlab.analysis.load_curve import LoadCurve, searches
from mountlab.core.errors import InputError
from mountlab.plots import Plot
from searched_run import LIMIT_S, searched_run

NAMES = ("ext4", "xfs", "tmpfs")


def curves_of(*names: str, **more: object) -> list[LoadCurve]:
    return [curve for each in searches(searched_run(*names, **more)) for curve in each.curves]  # type: ignore[arg-type]


def lines(plot: Plot) -> list[Line2D]:
    return list(plot.figure.axes[0].lines)


def points_of(line: Line2D) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in np.column_stack([line.get_xdata(), line.get_ydata()])]


def test_a_point_is_a_trial_and_hollow_where_its_schedule_was_not_kept() -> None:
    (curve,) = curves_of("ext4", trials=20, lost=(4, 9))
    markers = [line for line in lines(plots.plot_capacity([curve], filesystems=NAMES)) if line.get_marker() == "o"]
    full, hollow = markers[0], markers[1]
    assert hollow.get_markerfacecolor() == "none"
    lost = [(each.asked, 1e3 * each.latencies["read_latency_p99"]) for each in curve.trials if not each.on_schedule]
    assert points_of(hollow) == pytest.approx(lost)
    assert len(points_of(full)) == 18


def test_the_interval_of_a_capacity_lies_below_all_latencies_and_has_none() -> None:
    (curve,) = curves_of("ext4")
    plot = plots.plot_capacity([curve], filesystems=NAMES)
    (bar,) = [line for line in lines(plot) if line.get_linewidth() == 2.6]
    (low, y), (high, _) = points_of(bar)
    assert (low, high) == pytest.approx((curve.capacity.low, curve.capacity.high))
    assert [(curve.capacity.mean, y)] in [pytest.approx(points_of(line)) for line in lines(plot)]
    latencies = [1e3 * value for trial in curve.trials for value in trial.latencies.values()]
    assert plot.figure.axes[0].get_ylim()[0] < y < min(latencies)
    svg = plot.svg()
    assert [tag for tag in re.findall("<text[^>]*>", svg) if "fill" not in tag] == [], "black on a dark page"


def test_the_objective_is_named_once_and_the_paler_lines_are() -> None:
    (curve,) = curves_of("ext4")
    plot = plots.plot_capacity([curve], filesystems=NAMES)
    said = [text.get_text().replace("\u00a0", " ") for text in _texts(plots, curve)]
    assert said == ["objective", "pale lines: medians", "capacity with its interval"]
    assert plot.figure.axes[0].get_title(loc="left") == ""
    assert f"{1e3 * LIMIT_S:g} ms" in plot.title.replace("\u00a0", " ")
    assert "the medians in pale lines" in plot.alt


def _texts(plots_of: object, curve: LoadCurve) -> list[object]:
    return list(plots.plot_capacity([curve], filesystems=NAMES).figure.axes[0].texts)


def test_an_interval_without_an_end_has_an_arrowhead_and_no_estimate() -> None:
    (curve,) = curves_of("ext4", capacities={"ext4": (math.nan, 3000.0, math.inf)})
    plot = plots.plot_capacity([curve], filesystems=NAMES)
    assert [line for line in lines(plot) if line.get_marker() == ">"]
    assert "holds up to" not in plot.title
    assert "capacity" not in plot.alt


def test_an_interval_without_ends_is_not_drawn() -> None:
    (curve,) = curves_of("ext4", capacities={"ext4": (3000.0, 0.0, math.inf)})
    assert not [line for line in lines(plots.plot_capacity([curve], filesystems=NAMES)) if line.get_marker() in "<>"]


def test_the_title_says_how_much_each_takes_with_its_interval() -> None:
    plot = plots.plot_capacity(curves_of("ext4", "xfs"), filesystems=NAMES)
    title = plot.title.replace("\u00a0", " ").replace("\u202f", "")
    intervals = "3080 [2930, 3230] requests/s on ext4 and 3980 [3780, 4180] on xfs"
    assert title == f"mail: read p99 ≤ 5 ms holds up to {intervals}"
    assert "capacity 3080 [2930, 3230] requests/s" in plot.alt.replace("\u202f", "")
    alike = curves_of("ext4", "xfs", capacities=dict.fromkeys(("ext4", "xfs"), (3300.0, 2000.0, 5800.0)))
    title = plots.plot_capacity(alike, filesystems=NAMES).title.replace("\u00a0", " ").replace("\u202f", "")
    assert title.endswith("holds up to 3300 [2000, 5800] requests/s on ext4 and xfs")


def test_bars_of_several_file_systems_do_not_lie_on_each_other() -> None:
    plot = plots.plot_capacity(curves_of(*NAMES), filesystems=NAMES)
    bars = [line for line in lines(plot) if line.get_linewidth() == 2.6]
    heights = [float(line.get_ydata()[0]) for line in bars]  # type: ignore[index]
    assert len(heights) == 3
    assert heights == sorted(set(heights), reverse=True)


def test_without_open_loop_trials_there_is_nothing_to_plot() -> None:
    with pytest.raises(InputError, match="there is no open-loop trial to plot"):
        plots.plot_capacity([], filesystems=NAMES)
