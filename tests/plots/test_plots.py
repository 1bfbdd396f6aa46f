"""Plots, tested by their artists and by the SVG that they become."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from mountlab import plots
from mountlab.core import numbers
from mountlab.core.errors import InputError
from mountlab.core.findings import Comparison
from mountlab.plots import Plot
from mountlab.plots.style import UNUSABLE
from mountlab.plots.ticks import plain_ticks
from mountlab.wording import verdicts
from rows import every_row
from synthetic_run import SyntheticRun, comparison, synthetic_run

HOSTILE = """<script>alert("x")</script>]]><!-- ' $\\frac & \x00"""
RUN = synthetic_run()
ORDER: dict[str, Any] = {"filesystems": ["tmpfs", "ramfs", "ext4"], "workloads": [w.label for w in RUN.sweep.workloads]}
SVG = "{http://www.w3.org/2000/svg}"


def pairs(run: SyntheticRun) -> list[Any]:
    return [(theirs, verdicts.ours_beside(theirs, run.comparisons)) for theirs in run.published]


def every_plot(run: SyntheticRun) -> list[Plot]:
    bandwidths = [c for c in run.comparisons if "bandwidth" in c.metric]
    return [
        plots.plot_ratios(bandwidths, filesystems=ORDER["filesystems"]),
        plots.plot_trials(run.measurements, run.estimates, "read_bandwidth", **ORDER),
        plots.plot_run_order(run.measurements, "read_bandwidth", **ORDER),
        plots.plot_published(pairs(run), filesystems=ORDER["filesystems"]),
    ]


KINDS = ("ratios", "trials", "run order", "published")
each_kind = pytest.mark.parametrize("kind", KINDS)


@cache
def drawn() -> dict[str, Plot]:
    return dict(zip(KINDS, every_plot(RUN), strict=True))


@cache
def svg_of(kind: str) -> str:
    return drawn()[kind].svg()


def ratios_of(comparisons: Sequence[Comparison], **more: Any) -> Plot:
    """The ratios of a sweep whose file systems are those that are compared."""
    names = dict.fromkeys(name for each in comparisons for name in (each.candidate, each.baseline))
    return plots.plot_ratios(comparisons, filesystems=list(names), **more)


def texts(plot: Plot) -> list[str]:
    return [str(node.text) for node in ElementTree.fromstring(plot.svg()).iter(f"{SVG}text")]


def marker_places(plot: Plot, marker: str) -> list[float]:
    lines = [line for axes in plot.figure.axes for line in axes.lines if line.get_marker() == marker]
    return [float(x) for line in lines for x in line.get_xdata()]


def dots_of(plot: Plot, *, hollow: bool | None = None) -> list[tuple[float, float]]:
    """The dots of markers without a line, from left to right; all, or only the hollow or the full ones."""
    lines = [line for axes in plot.figure.axes for line in axes.lines if line.get_linestyle() == "None"]
    chosen = [line for line in lines if hollow in (None, line.get_markerfacecolor() == "none")]
    pairs = [(float(x), float(y)) for line in chosen for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)]
    return sorted(pairs)


def intervals(plot: Plot) -> list[tuple[float, float]]:
    """Horizontal lines of two points: (low, high)."""
    lines = [line for axes in plot.figure.axes for line in axes.lines if len(line.get_xdata()) == 2]
    ends = [(tuple(map(float, line.get_xdata())), tuple(map(float, line.get_ydata()))) for line in lines]
    return [(xs[0], xs[1]) for xs, ys in ends if ys[0] == ys[1] and xs != (0.0, 1.0)]


# --- every plot -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@each_kind
def test_says_what_it_shows(kind: str) -> None:
    plot = drawn()[kind]
    assert re.search(r"\d", plot.title), "the title states a finding"
    assert plot.alt.endswith(".")
    svg = ElementTree.fromstring(svg_of(kind))
    assert svg.attrib["role"] == "img"
    assert svg.attrib["aria-label"] == plot.alt
    assert plot.title in plot._repr_html_()


@pytest.mark.slow
@each_kind
def test_has_units_and_takes_the_colour_of_the_page_and_loads_nothing(kind: str) -> None:
    assert re.search(
        r"GB/s|times as fast as ext4|trials in the order of the run", drawn()[kind].figure.axes[-1].get_xlabel()
    )
    svg = svg_of(kind)
    assert set(re.findall(r"https?://[^\"' ]+", svg)) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"}
    assert len(svg) < 150_000
    assert "max-width: min(100%" in svg, "it fits its place"
    assert svg.count("currentColor") > 10
    assert not re.search(r"#000000|#010203|fill: #ffffff|black|DejaVu", svg)
    assert "<style" not in svg, "it would style the page around the plot"


@pytest.mark.long
@pytest.mark.slow
def test_the_same_data_give_the_same_text() -> None:
    assert list(map(svg_of, KINDS)) == [plot.svg() for plot in every_plot(synthetic_run())]


@pytest.mark.slow
def test_ids_are_unique_on_a_page() -> None:
    ids = [found for kind in KINDS for found in re.findall(r'\bid="([^"]+)"', svg_of(kind))]
    used = {found for kind in KINDS for found in re.findall(r'(?:url\(#|href="#)([^")]+)', svg_of(kind))}
    assert len(ids) == len(set(ids))
    assert used
    assert used <= set(ids)


@pytest.mark.slow
def test_hostile_text_stays_text() -> None:
    drawings = [ElementTree.fromstring(plot.svg()) for plot in every_plot(synthetic_run(hostile=HOSTILE))]
    for drawing in drawings:
        tags = {node.tag.removeprefix(SVG) for node in drawing.iter()}
        assert tags <= {"svg", "g", "path", "defs", "use", "text", "clipPath", "rect", "tspan", "title"}
    of_ratios = [str(node.text) for node in drawings[0].iter(f"{SVG}text")]
    assert any(text.startswith('fio rw=<script>alert("x")</script>') for text in of_ratios)


def test_hostile_names_of_file_systems_stay_text() -> None:
    plot = ratios_of([comparison(candidate='</svg><script>"$x', baseline="_$\\")])
    assert "</svg><script>…"[:6] in "".join(texts(plot))
    assert "<script" not in plot._repr_html_()


@pytest.mark.slow
def test_settings_of_the_user_are_left_alone() -> None:
    before = dict(mpl.rcParams)
    ratios_of([comparison()]).svg()
    assert dict(mpl.rcParams) == before


def test_only_figures_no_global_state() -> None:
    sources = [path.read_text() for path in Path(plots.__file__).parent.glob("*.py")]
    assert len(sources) > 5
    assert not any("pyplot" in source for source in sources)
    assert all(isinstance(plot.figure, Figure) for plot in drawn().values())


# --- colours and axes -------------------------------------------------------------------------------------------------


def test_one_colour_and_marker_for_each_file_system() -> None:
    marks = plots.colour_of(["tmpfs", "ramfs", "ext4", "tmpfs"])
    assert list(marks) == ["tmpfs", "ramfs", "ext4"]
    assert len({mark.colour for mark in marks.values()}) == len({mark.marker for mark in marks.values()}) == 3
    assert len(plots.colour_of([f"fs{i}" for i in range(20)])) == 20


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("page", ["#ffffff", "#15181c"])
def test_the_first_colours_are_seen_on_light_and_dark(page: str) -> None:
    for mark in list(plots.colour_of(["a", "b", "c", "d"]).values())[:3]:
        light, dark = sorted((luminance(mark.colour), luminance(page)), reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 3


@every_row(
    ("low", "high", "ticks"),
    [
        (0.4, 12, [0.5, 1, 2, 5, 10]),
        (0.9, 1.1, [0.9, 0.95, 1.0, 1.05, 1.1]),
        (50, 9000, [50, 100, 200, 500, 1000, 2000, 5000]),
        (0.001, 1e6, [0.01, 1, 100, 10000]),
    ],
)
def test_log_ticks_are_round(low: float, high: float, ticks: list[float]) -> None:
    assert set(ticks) <= {round(tick, 9) for tick in plots.log_ticks(low, high)}


@given(st.floats(1e-6, 1e9), st.floats(1.02, 1e9))
def test_any_log_axis_has_a_few_readable_ticks(low: float, factor: float) -> None:
    ticks = [tick for tick in plots.log_ticks(low, low * factor) if low <= tick <= low * factor]
    assert 1 <= len(ticks) <= 10
    assert not any("e" in plots.tick_text(tick) for tick in ticks)


@every_row(("value", "text"), [(0.5, "0.5"), (1, "1"), (2000, "2\u202f000"), (1.05, "1.05"), (0.01, "0.01")])
def test_ticks_as_people_write_them(value: float, text: str) -> None:
    assert plots.tick_text(value) == text


def test_where_no_two_texts_have_room_one_tick_is_left() -> None:
    """On an axis of six points, and on one as high as a text."""
    axes = Figure(figsize=(1, 1)).add_axes((0.2, 0.2, 6 / 72, 6 / 72))
    for axis in (axes.xaxis, axes.yaxis):
        plain_ticks(axis)
        assert len(axis.get_majorticklocs()) == 1


# --- ratios -----------------------------------------------------------------------------------------------------------


def test_ratios_draw_the_intervals_they_are_given_undecided_is_hollow_and_what_does_not_matter_shaded() -> None:
    other = comparison(candidate="ramfs", ratio=2.0, low=1.8, high=2.2, verdict="undecided")
    plot = ratios_of([comparison(), other], smallest_effect=0.05)
    assert {(6.5, 7.3), (1.8, 2.2)} <= set(intervals(plot))
    assert {"6.9 [6.5, 7.3]", "2.0 [1.8, 2.2]"} <= set(texts(plot))
    (axes,) = plot.figure.axes
    zones = [part.get_paths()[0].get_extents() for part in axes.collections if isinstance(part, PolyCollection)]
    assert [(zone.x0, zone.x1) for zone in zones] == [pytest.approx((0.95, 1.05))]
    assert "±5\u00a0%" in axes.get_xlabel()
    faces = {line.get_markerfacecolor() for line in axes.lines if len(line.get_xdata()) == 1}
    assert "none" in faces
    assert len(faces) == 2


def test_what_is_not_to_be_used_is_hollow_and_grey_and_a_doubtful_ratio_is_marked() -> None:
    weak = {"ext4/dd-write": ["noisy"]}
    plot = ratios_of([comparison(), comparison(workload="dd-read", verdict="not usable")], doubts=weak)
    grey = [line for axes in plot.figure.axes for line in axes.lines if line.get_color() == UNUSABLE]
    assert [line.get_markerfacecolor() for line in grey if line.get_marker() == "o"] == ["none"]
    assert {"6.9 [6.5, 7.3] †", "do not use"} <= {*texts(plot)}
    said = {str(node.text) for node in ElementTree.fromstring(plot.svg()).iter(f"{SVG}title")}
    assert said == {"tmpfs: 6.9 [6.5, 7.3] †", "tmpfs: 6.9 [6.5, 7.3], do not use"}


def test_a_zone_that_would_look_like_the_baseline_is_not_drawn() -> None:
    wide = ratios_of([comparison(ratio=900.0, low=800.0, high=1000.0)])
    assert "shaded" not in wide.figure.axes[0].get_xlabel()
    assert "shaded" in ratios_of([comparison(ratio=1.1, low=1.0, high=1.2)]).figure.axes[0].get_xlabel()


def test_ratios_are_sorted_by_effect() -> None:
    plot = ratios_of(
        [
            comparison(workload="weak", ratio=1.2, low=1.1, high=1.3),
            comparison(workload="strong", ratio=6.9),
            comparison(workload="slow", ratio=0.05, low=0.04, high=0.06),
        ]
    )
    assert [text for text in texts(plot) if text in ("weak", "slow", "strong")] == ["slow", "strong", "weak"]


def test_without_an_interval_only_the_ratio_is_drawn() -> None:
    plot = ratios_of([comparison(low=math.nan, high=math.nan, n=1, verdict="undecided")])
    assert intervals(plot) == []
    assert "6.9" in texts(plot)
    with pytest.raises(InputError, match="there is no ratio to plot"):
        ratios_of([comparison(ratio=math.nan, low=math.nan, high=math.nan)])


def test_a_vast_interval_does_not_squeeze_the_others() -> None:
    plot = ratios_of([comparison(), comparison(candidate="ramfs", ratio=2, low=1e-6, high=1e6, verdict="undecided")])
    (axes,) = plot.figure.axes
    low, high = axes.get_xlim()
    assert low > 0.1
    assert high < 100
    assert marker_places(plot, "<") == pytest.approx([low])
    assert marker_places(plot, ">") == pytest.approx([high])


def test_metrics_of_one_workload_are_told_apart() -> None:
    plot = ratios_of([comparison(), comparison(metric="write_latency_p99", ratio=0.1, low=0.09, high=0.11)])
    shown = " ".join(texts(plot))
    assert "99th-percentile write" in shown
    assert "write bandwidth" in shown


# --- clients ----------------------------------------------------------------------------------------------------------


def test_each_client_has_its_interval_and_trials_on_a_log_axis_around_all_of_them() -> None:
    values: dict[str, Any] = {"filesystem": "ext4", "group": "ext4/w: write bandwidth"}
    one = plots.ClientPoint(client="one", ratio=4.0, low=3.5, high=4.5, trials=(3.9, 4.1), straggles=False, **values)
    two = plots.ClientPoint(client="two", ratio=0.25, low=0.2, high=0.3, trials=(0.1, 0.6), straggles=True, **values)
    plot = plots.plot_clients([one, two], limit=0.8, filesystems=["ext4"])
    assert {(0.2, 0.3), (3.5, 4.5)} <= set(intervals(plot))
    (axes,) = plot.figure.axes
    assert axes.get_xscale() == "log"
    low, high = axes.get_xlim()
    assert low < 0.1
    assert high > 4.5
    (zone,) = [part.get_paths()[0].get_extents() for part in axes.collections if isinstance(part, PolyCollection)]
    assert (zone.x0, zone.x1) == pytest.approx((low, 0.8))


# --- trials -----------------------------------------------------------------------------------------------------------


def test_every_counted_trial_is_a_dot_and_means_and_intervals_are_those_of_the_estimates() -> None:
    plot = plots.plot_trials(RUN.measurements, RUN.estimates, "write_bandwidth", **ORDER)
    wanted = RUN.measurements[(RUN.measurements.metric == "write_bandwidth") & ~RUN.measurements.warmup]
    means = set(marker_places(plot, "|"))
    assert [x for x, _ in dots_of(plot) if x not in means] == pytest.approx(sorted(wanted.value / 1e9))
    own = RUN.estimates[RUN.estimates.metric == "write_bandwidth"]
    assert sorted(marker_places(plot, "|")) == pytest.approx(sorted(own["mean"] / 1e9))
    drawn = sorted(intervals(plot))
    assert [low for low, _ in drawn] == pytest.approx(sorted(own.low / 1e9))
    assert sorted(high for _, high in drawn) == pytest.approx(sorted(own.high / 1e9))


def test_trials_come_in_the_order_of_the_sweep() -> None:
    shown = texts(plots.plot_trials(RUN.measurements, RUN.estimates, "read_bandwidth", **ORDER))
    labels = [label for label in ORDER["workloads"] if label in shown]
    assert [text for text in shown if text in labels] == labels


def test_one_block_has_no_interval() -> None:
    run = synthetic_run(blocks=1)
    plot = plots.plot_trials(run.measurements, run.estimates, "write_bandwidth", **ORDER)
    assert intervals(plot) == []
    assert len(marker_places(plot, "|")) == 9


def test_labels_of_one_metric_have_rows_of_their_own() -> None:
    data = RUN.measurements[RUN.measurements.cell == "ext4/dd-write"]
    methods = [data.assign(label=name) for name in ("fsync", "fdatasync")]
    both = pd.concat(methods, ignore_index=True)
    plot = plots.plot_trials(both, RUN.estimates[:0], "write_bandwidth", **ORDER)
    assert {"dd-write (fsync)", "dd-write (fdatasync)"} <= set(texts(plot))


def test_a_metric_that_was_not_measured() -> None:
    with pytest.raises(InputError, match="there is no trial with mkfs_time to plot"):
        plots.plot_trials(RUN.measurements, RUN.estimates, "mkfs_time", **ORDER)
    only_warm = RUN.measurements[RUN.measurements.warmup]
    with pytest.raises(InputError, match="there is no counted trial with read_bandwidth"):
        plots.plot_run_order(only_warm, "read_bandwidth", **ORDER)


# --- run order --------------------------------------------------------------------------------------------------------


def test_run_order_shows_every_trial_warm_up_hollow() -> None:
    plot = plots.plot_run_order(RUN.measurements, "write_bandwidth", **ORDER)
    own = RUN.measurements[RUN.measurements.metric == "write_bandwidth"]
    assert len(dots_of(plot)) == len(own)
    assert len(dots_of(plot, hollow=True)) == own.warmup.sum()
    assert list(plot.legend) == ["tmpfs", "ramfs", "ext4"]
    assert '<p class="legend">' in plot._repr_html_()


def test_run_order_is_relative_to_the_mean_of_the_counted_trials() -> None:
    cell = RUN.measurements[(RUN.measurements.cell == "ext4/dd-write")]
    plot = plots.plot_run_order(cell, "write_bandwidth", **ORDER)
    values = cell.value / cell[~cell.warmup].value.mean()
    assert [y for _, y in dots_of(plot)] == pytest.approx(list(values))
    worst = max(values[~cell.warmup], key=lambda value: abs(value - 1))
    assert numbers.percent(abs(worst - 1)) in plot.title


def test_run_order_follows_the_sequence_it_is_given() -> None:
    mixed = RUN.measurements.assign(seq=range(len(RUN.measurements), 0, -1))
    plot = plots.plot_run_order(mixed[mixed.cell == "ext4/dd-write"], "write_bandwidth", **ORDER)
    assert dots_of(plot)[-1] == dots_of(plot, hollow=True)[-1], "the warm-up came last"


# --- published --------------------------------------------------------------------------------------------------------


def test_published_ratios_stand_beside_ours() -> None:
    plot = plots.plot_published(pairs(RUN), filesystems=ORDER["filesystems"])
    assert marker_places(plot, "D")[0] == pytest.approx(598 / 54)
    assert {"tmpfs: dd, write 2 GiB", "published", "ours", "11"} <= set(texts(plot))
    assert "ours not measured" in plot.alt
    assert plot.title == "Of 2 published ratios, 1 points the same way as ours and for 1 ours is undecided."


def test_many_published_ratios_stand_in_one_row_with_ours_and_those_not_measured_are_left_out() -> None:
    (theirs, ours), *_ = [(theirs, ours) for theirs, ours in pairs(RUN) if ours]
    names = [f"layout-{number}" for number in range(14)]
    many = [
        (replace(theirs, candidate=name, what=what), replace(ours, candidate=name) if name != names[-1] else None)
        for what in ("write", "read")
        for name in names
    ]
    plot = plots.plot_published(many, filesystems=names)
    shown = texts(plot)
    assert {"write", "read", "layout-0", "◇ 11"} <= set(shown)
    assert shown.count("layout-12") == 2, "one row below each heading"
    assert "layout-13" not in shown
    assert marker_places(plot, "D").count(many[0][0].ratio) == 26
    assert any("◇ published" in text for text in shown)
    assert "layout-13" in " ".join(texts(plots.plot_published([(a, None) for a, _ in many], filesystems=names)))


# --- simulated runs ---------------------------------------------------------------------------------------------------

SIMULATED = [([1.0, 3.0], 0.5, 3.5), ([2.8, 3.2], 2.5, 3.5), ([2.0, 2.1], -4.0, 44.0), ([0.9, 1.0], 0.8, 1.1)]


def test_simulated_runs_show_their_trials_and_intervals_over_the_truth() -> None:
    plot = plots.plot_simulated(SIMULATED, truth=2.0, finding="Two of four miss")
    assert marker_places(plot, "o") == pytest.approx([0.5, 1.5, 1.4, 1.6, 1.0, 1.05, 0.45, 0.5])
    drawn = intervals(plot)[1::2]  # below the dots of two trials each, which look like an interval to this test
    left, right = plot.figure.axes[0].get_xlim()
    assert drawn == [pytest.approx(ends) for ends in ((0.25, 1.75), (1.25, 1.75), (left, right), (0.4, 0.55))]
    assert right - left < 5, "a vast interval does not hide the others"
    assert marker_places(plot, ">") == [right]
    assert marker_places(plot, "X") == pytest.approx([1.25, 0.55]), "at the near end of those that miss the truth"
    assert plot.title == "Two of four miss"
    assert plot.alt == "4 simulated runs with their intervals; 2 of them miss the truth. Two of four miss"
    assert "mean over the truth = 1; dots: trials; ✖: misses the truth" in texts(plot)
    with pytest.raises(InputError, match="there is no simulated run to plot"):
        plots.plot_simulated([], truth=1.0, finding="")


# --- smallest differences ---------------------------------------------------------------------------------------------

CURVES = {"w: write bandwidth": {3: 12.0, 5: 1.5, 10: 1.2, 20: 1.1}, HOSTILE: {5: 1.05, 10: 1.02, 20: math.nan}}


def test_each_line_is_the_smallest_difference_in_percent_by_blocks() -> None:
    """What cannot be drawn is left out: a difference of ten times and more, and an unknown one."""
    plot = plots.plot_smallest_difference(CURVES, planned={"w: write bandwidth": 10.0, HOSTILE: 7.0}, power=0.8)
    axes = plot.figure.axes[0]
    drawn = [line for line in axes.lines if len(line.get_xdata()) > 1]
    assert [list(map(float, line.get_xdata())) for line in drawn] == [[5, 10, 20], [5, 10]]
    assert [list(map(float, line.get_ydata())) for line in drawn] == [
        pytest.approx([50, 20, 10]),
        pytest.approx([5, 2]),
    ]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert len({mark.marker for mark in plot.legend.values()}) == 2
    assert [x for x, _ in dots_of(plot)] == [10.0], "a dot marks the planned blocks where the line has them"
    assert plot.title == "w: write bandwidth: 10 blocks show 20\u00a0% or more, with a chance of 80\u00a0%"
    assert plot.alt.startswith("Smallest difference shown with a chance of 80\u00a0%, by number of blocks. w: write")
    assert "10 blocks show 2\u00a0% or more" in plot.alt
    assert ElementTree.fromstring(plot.svg()).tag == f"{SVG}svg"
    with pytest.raises(InputError, match="there is no smallest difference to plot"):
        plots.plot_smallest_difference({"w": {3: math.inf, 5: math.nan}}, planned={}, power=0.8)


def test_the_alternative_text_of_ratios_has_the_level_of_either_kind_of_interval() -> None:
    same = comparison(candidate="xfs", ratio=1.0, verdict="same", low_same=0.99, high_same=1.01, level_same=0.9)
    for comparisons in ([same, comparison()], [comparison(), same]):
        assert (
            "with 95\u00a0% intervals, at least 90\u00a0% where the verdict is the same." in ratios_of(comparisons).alt
        )
    assert "with 95\u00a0% intervals. " in ratios_of([comparison()]).alt
