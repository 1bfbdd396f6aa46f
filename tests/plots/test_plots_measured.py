"""Plots over swept options, of latencies, courses and bytes: tested by their artists."""

from __future__ import annotations

import ast
import io
import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.collections import LineCollection
from mountlab import plots
from mountlab.core import numbers
from mountlab.core.errors import InputError
from mountlab.core.model import Workload
from mountlab.plots import Course, Delivered, InsideTrial, Plot
from mountlab.plots.axes import dots
from mountlab.plots.latency import nines
from mountlab.plots.levels import kind_of, levels_of
from mountlab.plots.panels import MOST_PANELS, apart, figure_of, panel_figure
from mountlab.plots.series import thinned
from mountlab.plots.svg import MOST_TITLES
from mountlab.stats.histograms import Histogram, count
from repetition import others_long
from rows import every_row
from synthetic_run import SWEPT, SyntheticRun, comparison, synthetic_run

HOSTILE = """<script>alert("x")</script>]]><!-- ' $\\frac & \x00"""
NAMES = ["tmpfs", "ramfs", "ext4"]
ORDER: dict[str, Any] = {"filesystems": NAMES, "workloads": [w.label for w in SWEPT]}
SVG = "{http://www.w3.org/2000/svg}"
COURSES = [
    Course(name, "fio bs=4KiB", [(0.1 * i, 1e8 + i) for i in range(20)], steady=name != "ext4") for name in NAMES
]
INSIDE = [
    InsideTrial(
        name,
        "t0001",
        {
            "read_bandwidth": [(0.1 * i, (1 + place) * 1e8 + i) for i in range(1, 21)],
            "device_busy": [(0.1 * i, 0.9 if name == "ext4" else 0.0) for i in range(1, 21)],
            "user": [(0.1 * i, 0.4) for i in range(1, 21)],
            "system": [(0.1 * i, 0.1) for i in range(1, 21)],
            "steal": [(0.1 * i, 0.004) for i in range(1, 21)],
            "dirty": [(0.1 * i, 4e6 * i) for i in range(21)],
        },
    )
    for place, name in enumerate(NAMES)
]
DELIVERED = [
    Delivered(name, work, "read", 1e8, 1e8 * share)
    for name, work, share in (
        ("ext4", "r cache=cold", 1.0),
        ("ext4", "r cache=cold", 1.02),
        ("ext4", "r cache=warm", 0.0),
        ("xfs", "r cache=cold", 40.0),
    )
]


@cache
def swept_run() -> SyntheticRun:
    return synthetic_run(workloads=SWEPT)


@cache
def latencies() -> dict[tuple[str, str], Histogram]:
    """(workload, file system) to the latencies of reads."""
    cells = [(workload.label, name) for workload in SWEPT for name in NAMES]
    return {(label, name): swept_run().latencies(f"{name}/{label}")["read.clat_ns"] for label, name in cells}


def response(run: SyntheticRun | None = None, factor: str = "bs", **changes: Any) -> Plot:
    values: dict[str, Any] = {"workload": "fio", "filesystems": NAMES, **changes}
    run = run or swept_run()
    estimates = with_factors(run)
    return plots.plot_response(run.measurements, estimates, "read_bandwidth", factor, **values)


def with_factors(run: SyntheticRun) -> pd.DataFrame:
    """Estimates as a Run has them: a column for each swept option, between the workload and the metric."""
    swept = {cell.id: cell.workload.factors for cell in run.sweep.cells}
    names = list(dict.fromkeys(name for factors in swept.values() for name in factors))
    columns = {name: [swept[cell].get(name, "") for cell in run.estimates["cell"]] for name in names}
    frame = run.estimates.assign(**columns)
    last = ["metric", "label", "unit", "n", "mean", "low", "high", "sd", "cv", "level", "method", "cell"]
    return frame[["run_id", "box", "filesystem", "tool", "workload", *names, *last]]


def clustered(run: SyntheticRun, factors: tuple[str, str] = ("numjobs", "bs"), metric: str = "read_bandwidth") -> Plot:
    return plots.plot_clustered(run.measurements, run.estimates, metric, factors, workload="fio", filesystems=NAMES)


def heat(estimates: pd.DataFrame) -> Plot:
    return plots.plot_heat(estimates, "read_bandwidth", ("bs", "numjobs"), workload="fio", filesystems=NAMES)


DRAW: dict[str, Callable[[], Plot]] = {
    "response": response,
    "clustered": lambda: clustered(swept_run()),
    "heat": lambda: heat(with_factors(swept_run())),
    "ratio heat": lambda: plots.plot_ratio_heat(
        swept_run().comparisons, "read_bandwidth", ("bs", "numjobs"), workload="fio"
    ),
    "percentiles": lambda: plots.plot_percentiles(swept_run().percentiles, "read.clat_ns", **ORDER),
    "latencies": lambda: plots.plot_latencies(latencies(), "read latency", filesystems=NAMES),
    "distribution": lambda: plots.plot_distribution(swept_run().measurements, "read_bandwidth", **ORDER),
    "series": lambda: plots.plot_series(COURSES, "read_bandwidth", "B/s", filesystems=NAMES, workloads=["fio bs=4KiB"]),
    "inside": lambda: plots.plot_inside(INSIDE, "fio bs=4KiB", filesystems=NAMES),
    "bytes": lambda: plots.plot_bytes(
        DELIVERED, filesystems=["ext4", "xfs"], workloads=["r cache=cold", "r cache=warm"]
    ),
    "bars": lambda: plots.plot_bars(swept_run().measurements, swept_run().estimates, "read_bandwidth", **ORDER),
}
each_plot = pytest.mark.parametrize("plot", DRAW, indirect=True)


@cache
def drawn(name: str) -> Plot:
    return DRAW[name]()


@pytest.fixture(name="plot")
def _plot(request: pytest.FixtureRequest) -> Plot:
    return drawn(request.param)


def texts(plot: Plot) -> list[str]:
    return [str(node.text) for node in ElementTree.fromstring(plot.svg()).iter(f"{SVG}text")]


def whiskers(plot: Plot) -> list[tuple[float, float]]:
    """Lower and upper end of every vertical line of a collection."""
    found = [c for axes in plot.figure.axes for c in axes.collections if isinstance(c, LineCollection)]
    return [(float(line[0][1]), float(line[1][1])) for each in found for line in each.get_segments()]


def lines(plot: Plot, colour: str, *, joined: bool = True) -> list[list[tuple[float, float]]]:
    """The points of each line of a colour; or of each cloud of dots."""
    return [
        list(zip(map(float, line.get_xdata()), map(float, line.get_ydata()), strict=True))
        for axes in plot.figure.axes
        for line in axes.lines
        if line.get_color() == colour and (line.get_linestyle() != "None") == joined
    ]


def colour(name: str, among: Sequence[str] = NAMES) -> str:
    return plots.colour_of(among)[name].colour


# --- inside of trials -------------------------------------------------------------------------------------------------


def panels(plot: Plot) -> list[str]:
    return [axes.get_title(loc="left") for axes in plot.figure.axes]


def test_each_quantity_has_a_panel_of_its_own_and_what_stays_at_zero_has_none() -> None:
    assert panels(drawn("inside")) == [
        "Read bandwidth, MB/s", "Device busy, %", "Processors: user, %", "Processors: system, %",
        "Dirty pages, MB",
    ]  # fmt: skip
    assert plots.quiet("steal", INSIDE), "0.4 % is nothing"
    assert plots.quiet("device_read", INSIDE), "it was not recorded"
    plot = drawn("inside")
    assert len({axes.get_xlim() for axes in plot.figure.axes}) == 1
    for name in NAMES:
        found = lines(plot, colour(name))
        assert len(found) == 5
        given = INSIDE[NAMES.index(name)].points["read_bandwidth"]
        assert found[0] == [(pytest.approx(at), pytest.approx(value / 1e6)) for at, value in given]
        assert found[2][0][1] == pytest.approx(40), "shares are per cent"
    assert plot.title == (
        "Busiest inside fio bs=4KiB: the processors on tmpfs (50\u00a0%) and ramfs (50\u00a0%) and "
        "the device on ext4 (90\u00a0%)"
    )
    assert "Device busy: tmpfs 0\u00a0%, ramfs 0\u00a0%, ext4 90\u00a0%" in plot.alt


def test_of_many_file_systems_the_title_says_how_many_and_how_busy() -> None:
    names = [f"fs{number}" for number in range(5)]
    trials = [
        InsideTrial(name, name, {"device_busy": [(1.0, 0.1 * at), (2.0, 0.1 * at)]})
        for at, name in enumerate(names, start=1)
    ]
    few, many = (plots.plot_inside(some, "w", filesystems=names).title for some in (trials[:4], trials))
    assert few.endswith("fs2 (30\u00a0%) and fs3 (40\u00a0%)")
    assert many == "Busiest inside w: the device on 5 file systems (10\u00a0% to 50\u00a0%)"


def test_shares_begin_at_zero_however_far_they_spread() -> None:
    wide = {name: [(i, 1e-4 * 2.0**i) for i in range(13)] for name in ("user", "dirty")}
    dirty, user = plots.plot_inside([InsideTrial("ext4", "t1", wide)], "w", filesystems=NAMES).figure.axes[::-1]
    assert (user.get_yscale(), user.get_ylim()[0], dirty.get_yscale()) == ("linear", 0, "log")


def test_without_the_counters_of_the_box_the_title_tells_of_the_tool() -> None:
    bare = [InsideTrial("ext4", "t1", {"write_bandwidth": [(0.1, 1e8), (0.2, 3e8)]})]
    title = plots.plot_inside(bare, "w", filesystems=NAMES).title
    assert title == "Inside w: write bandwidth from 100\u00a0MB/s to 300\u00a0MB/s"
    with pytest.raises(InputError, match="course"):
        plots.plot_inside([InsideTrial("ext4", "t1", {})], "w", filesystems=NAMES)


def test_a_long_trial_is_a_line_of_some_sixty_points() -> None:
    long = [InsideTrial("ext4", "t1", {"dirty": [(i, 1.0 + i % 7) for i in range(5000)]})]
    plot = plots.plot_inside(long, "w", filesystems=NAMES)
    assert 40 <= len(lines(plot, colour("ext4"))[0]) <= 60
    assert len(plot.svg()) < 40_000


# --- every plot -------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@each_plot
def test_says_what_it_shows_with_units_in_the_colour_of_the_page(plot: Plot) -> None:
    assert re.search(r"\d", plot.title), "the title states a finding"
    assert plot.alt.endswith(".")
    assert len(plot.alt) > 60
    names = [axes.get_xlabel() for axes in plot.figure.axes]
    names += [plot.figure.get_supxlabel(), plot.figure.get_supylabel(), plot.title]
    assert re.search(r"GB/s|MB/s|[mµ]s\b|%|ratio", " ".join(names))
    svg = plot.svg()
    assert ElementTree.fromstring(svg).attrib["aria-label"] == plot.alt
    assert "currentColor" in svg
    assert "#010203" not in svg
    assert "DejaVu" not in svg
    assert len(svg) < 150_000


def test_no_plot_computes_an_interval() -> None:
    """Nothing that could is imported by the package, and Matplotlib's own error bars are not used."""
    for path in Path(plots.__file__).parent.glob("*.py"):
        tree = ast.parse(path.read_text())
        names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        assert not {
            name
            for name in names
            if re.match(
                r"mountlab\.stats\.(?!histograms)|mountlab\.analysis\.(?!verdicts|run_view|load_curve)|scipy|seaborn|statistics\b",
                name,
            )
        } - ({"statistics"})
        called = {
            node.func.attr
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        }
        assert not called & {"errorbar", "std", "var", "sem", "ppf", "stdev", "quantile", "percentile", "bootstrap"}


@pytest.mark.slow
def test_the_same_data_give_the_same_text() -> None:
    again = response()
    assert again.svg() == response().svg()
    assert plots.plot_percentiles(swept_run().percentiles, "read.clat_ns", **ORDER).svg() == drawn("percentiles").svg()


@pytest.mark.slow
def test_hostile_text_stays_text() -> None:
    hostile = synthetic_run(hostile=HOSTILE, workloads=SWEPT[:1], blocks=2)
    order: dict[str, Any] = {"filesystems": NAMES, "workloads": [w.label for w in hostile.sweep.workloads]}
    odd = [Course("ext4", HOSTILE, [(0.0, 1.0), (1.0, 2.0)])]
    drawn = [
        plots.plot_percentiles(hostile.percentiles, "read.clat_ns", **order),
        plots.plot_distribution(hostile.measurements, "read_bandwidth", **order),
        plots.plot_bars(hostile.measurements, hostile.estimates, "read_bandwidth", **order),
        plots.plot_series(odd, "read_bandwidth", "B/s", filesystems=["ext4"]),
        plots.plot_bytes([Delivered(HOSTILE, HOSTILE, "read", 1.0, 1.0)], filesystems=[HOSTILE]),
    ]
    for plot in drawn:
        tags = {node.tag.removeprefix(SVG) for node in ElementTree.fromstring(plot.svg()).iter()}
        assert tags <= {"svg", "g", "path", "defs", "use", "text", "clipPath", "rect", "tspan", "title"}
        assert "<script" not in plot._repr_html_()


# --- what marks say when they are pointed at --------------------------------------------------------------------------


def said(plot: Plot, tag: str) -> list[str]:
    """The titles of all elements of a kind, in the order of the drawing."""
    nodes = ElementTree.fromstring(plot.svg()).iter(f"{SVG}{tag}")
    return [str(title.text) for node in nodes for title in node.findall(f"{SVG}title")]


@pytest.mark.slow
def test_each_trial_says_its_value_and_its_id() -> None:
    rows = swept_run().measurements
    rows = rows[(rows["metric"] == "read_bandwidth") & ~rows["warmup"]]
    figures = {row["trial_id"]: row for row in rows.to_dict("records")}
    titles = said(plots.plot_trials(swept_run().measurements, swept_run().estimates, "read_bandwidth", **ORDER), "use")
    assert len(titles) == len(figures)
    for title in titles:
        who, block, value, unit, trial = re.fullmatch(r"(\w+), block (\d+): ([\d.]+) (\S+) \((\w+)\)", title).groups()  # type: ignore[union-attr]
        row = figures[trial]
        assert (who, int(block), unit) == (row["filesystem"], row["block"], "GB/s")
        assert float(value) == pytest.approx(row["value"] / 1e9, rel=0.01)


@pytest.mark.slow
def test_each_mean_says_its_cell_and_its_interval() -> None:
    cell = "ext4/fio rw=randread bs=4KiB numjobs=4"
    row = swept_run().estimates.set_index(["cell", "metric"]).loc[(cell, "read_bandwidth")]
    figures = numbers.mean_figures(row["mean"], row.low, row.high, factor=1e9)
    assert f"{cell}: {figures} GB/s, n = 5" in said(drawn("clustered"), "g")
    assert f"{cell}: {figures} GB/s, n = 5" in said(drawn("response"), "use")
    assert f"{cell.replace('/', ', ')}: {figures} GB/s, n = 5" in said(drawn("bars"), "g")
    of_kind = {"clustered": "g", "response": "use", "bars": "g"}
    assert {name: len(said(drawn(name), tag)) for name, tag in of_kind.items()} == dict.fromkeys(of_kind, 18)


def test_hundreds_of_marks_say_nothing_and_paper_says_nothing() -> None:
    mark, at = plots.colour_of(["a"])["a"], [0.5] * (MOST_TITLES + 1)
    with panel_figure(["one", "two"]) as panel:
        dots(panel["one"], at, at, mark, size=3, texts=["x"] * len(at))
        dots(panel["two"], at[1:], at[1:], mark, size=3, texts=[HOSTILE, *"y" * (len(at) - 2)])
    plot = Plot(figure_of(panel), "title", "alt")
    assert set(said(plot, "use")) == {" ".join(HOSTILE.split()).replace("\x00", "\ufffd"), "y"}
    assert b"y\n" not in plot.save_bytes("svg")


# --- levels -----------------------------------------------------------------------------------------------------------


@every_row(
    ("names", "ordered", "places", "kind"),
    [
        (["1MiB", "4KiB", "64KiB"], ["4KiB", "64KiB", "1MiB"], [12, 16, 20], "size"),
        (["4", "1", "2"], ["1", "2", "4"], [1, 2, 4], "number"),
        (["1", "64", "8"], ["1", "8", "64"], [0, 3, 6], "number"),
        (["100ms", "2s"], ["100ms", "2s"], [math.log2(0.1), 1], "number"),
        (["0", "32"], ["0", "32"], [0, 32], "number"),
        (["write", "read"], ["write", "read"], [0, 1], "word"),
        (["none", "4KiB"], ["none", "4KiB"], [0, 1], "word"),
        (["1", "1.0"], ["1", "1.0"], [0, 1], "word"),
        (["nan", "inf"], ["nan", "inf"], [0, 1], "word"),
    ],
)
def test_levels_stand_where_their_values_say(
    names: list[str], ordered: list[str], places: list[float], kind: str
) -> None:
    found = levels_of(names)
    assert list(found.names) == ordered
    assert list(found.places) == pytest.approx(places)
    assert (found.kind, kind_of(names)) == (kind, kind)


def test_a_single_level_is_no_axis() -> None:
    assert kind_of(["4KiB"]) == "word"
    assert levels_of(["4KiB"]).step == 1


def test_a_panel_alone_is_higher_than_one_beside_others() -> None:
    def height(titles: Sequence[str]) -> float:
        with panel_figure(titles) as panels:
            pass
        figure = figure_of(panels)
        return float(panels[titles[0]].get_position().height * figure.get_size_inches()[1])

    assert height(["a"]) > 1.5 * height(["a", "b"]) == pytest.approx(1.5 * height(["a", "b", "c"]))


# --- response ---------------------------------------------------------------------------------------------------------


def test_a_response_draws_the_means_and_intervals_that_it_is_given() -> None:
    plot = response()
    own = swept_run().estimates[(swept_run().estimates.metric == "read_bandwidth")]
    assert sorted(whiskers(plot)) == [
        pytest.approx(ends) for ends in sorted(zip(own.low / 1e9, own.high / 1e9, strict=True))
    ]
    drawn = [y for name in NAMES for line in lines(plot, colour(name)) for _, y in line]
    assert sorted(drawn) == pytest.approx(sorted(own["mean"] / 1e9))


@pytest.mark.slow
def test_every_counted_trial_is_a_dot_behind() -> None:
    dots = [y for name in NAMES for cloud in lines(response(), colour(name), joined=False) for _, y in cloud]
    counted = swept_run().measurements[
        (swept_run().measurements.metric == "read_bandwidth") & ~swept_run().measurements.warmup
    ]
    assert sorted(dots) == pytest.approx(sorted(counted.value / 1e9))


@pytest.mark.slow
def test_the_other_option_makes_panels_and_sizes_stand_on_a_log_axis() -> None:
    plot = response()
    assert [axes.get_title(loc="left") for axes in plot.figure.axes] == ["numjobs=1", "numjobs=4"]
    assert list(plot.figure.axes[0].get_xticks()) == [12, 16, 20]
    assert {"4KiB", "64KiB", "1MiB"} <= set(texts(plot))
    assert list(plot.legend) == NAMES
    over_jobs = response(factor="numjobs")
    assert list(over_jobs.figure.axes[0].get_xticks()) == [1, 4]
    assert [axes.get_title(loc="left") for axes in over_jobs.figure.axes] == ["bs=4KiB", "bs=64KiB", "bs=1MiB"]


@pytest.mark.slow
def test_one_panel_is_labelled_at_its_lines() -> None:
    one = synthetic_run(workloads=[w for w in SWEPT if w.factors["numjobs"] == "1"])
    plot = response(one)
    assert not plot.legend
    assert set(NAMES) <= set(texts(plot))
    marks = plots.colour_of(NAMES)
    assert {marks[name].glyph for name in NAMES} <= set(texts(plot))


def test_the_title_tells_the_strongest_change() -> None:
    plot = response()
    own = with_factors(swept_run())
    own = own[own.metric == "read_bandwidth"].set_index(["filesystem", "numjobs", "bs"])["mean"]
    change = {
        (fs, jobs): abs(math.log(own[fs, jobs, "1MiB"] / own[fs, jobs, "4KiB"])) for fs in NAMES for jobs in ("1", "4")
    }
    name, jobs = max(change, key=lambda key: change[key])
    assert plot.title.startswith(f"Read bandwidth over bs under fio: {name}, numjobs={jobs} from ")


def test_words_are_not_joined_by_a_line() -> None:
    run = synthetic_run()
    plot = response(run, factor="rw")
    assert all(len(line) == 1 for name in NAMES for line in lines(plot, colour(name), joined=True))
    assert len(lines(plot, colour("ext4"), joined=False)) == 2  # trials, and means


@pytest.mark.slow
@pytest.mark.parametrize("blocks", [1, 2])
def test_few_blocks_have_whiskers_only_where_there_are_intervals(blocks: int) -> None:
    assert bool(whiskers(response(synthetic_run(workloads=SWEPT, blocks=blocks)))) == (blocks > 1)


@pytest.mark.slow
def test_endless_intervals_and_unknown_means_are_survived() -> None:
    run = synthetic_run(workloads=SWEPT)
    run.estimates = run.estimates.assign(low=-math.inf, high=math.inf)
    assert whiskers(response(run)) == []
    run.estimates.loc[run.estimates.index[::2], "mean"] = math.nan
    plot = response(run)
    assert "nan" not in re.split(r"\W+", plot.title + plot.svg())


@pytest.mark.long
@pytest.mark.slow
def test_more_panels_than_fit_are_said() -> None:
    many = [
        Workload(name="fio", tool="fio", options={}, factors={"bs": bs, "rw": "read", "k": str(k)})
        for bs in ("4KiB", "8KiB")
        for k in range(MOST_PANELS + 3)
    ]
    plot = response(synthetic_run(workloads=many, blocks=2))
    assert len(plot.figure.axes) == MOST_PANELS
    assert f"the first {MOST_PANELS} of {MOST_PANELS + 3}" in plot.figure.get_supxlabel()


@pytest.mark.slow
def test_nine_file_systems_have_a_line_each() -> None:
    run = synthetic_run(workloads=SWEPT[:2], filesystems=9, blocks=2)
    names = [fs.name for fs in run.sweep.filesystems]
    plot = response(run, factor="numjobs", filesystems=names)
    assert sum(len(lines(plot, each, joined=True)) for each in {colour(n, names) for n in names}) == 9
    assert set(names) <= set(texts(plot))


def test_what_was_not_measured_is_refused() -> None:
    frames = (swept_run().measurements, with_factors(swept_run()))
    with pytest.raises(InputError, match="there is no estimate of write_bandwidth by bs"):
        plots.plot_response(*frames, "write_bandwidth", "bs", workload="fio", filesystems=NAMES)
    with pytest.raises(InputError, match="there is no estimate of read_bandwidth by iodepth"):
        response(factor="iodepth")


def test_labels_are_moved_apart_and_stay_in_order() -> None:
    moved = apart({"a": 0.5, "b": 0.51, "c": 0.1}, 0.1)
    assert moved["b"] - moved["a"] == pytest.approx(0.1)
    assert sum(moved.values()) == pytest.approx(1.11)
    assert moved["c"] < moved["a"] < moved["b"]


# --- clusters of bars -------------------------------------------------------------------------------------------------


def bars_in(axes: mpl.axes.Axes) -> list[mpl.patches.Rectangle]:
    return sorted((p for p in axes.patches if isinstance(p, mpl.patches.Rectangle)), key=lambda bar: bar.get_x())


def test_clusters_begin_at_zero_in_the_order_of_levels_and_hide_no_trial() -> None:
    plot = drawn("clustered")
    means = swept_run().estimates.set_index("cell")
    means = means[means.metric == "read_bandwidth"]["mean"]
    assert panels(plot) == NAMES
    for axes, name in zip(plot.figure.axes, NAMES, strict=True):
        wanted = [means[f"{name}/fio rw=randread bs={b} numjobs={j}"] for j in "14" for b in ("4KiB", "64KiB", "1MiB")]
        bars = bars_in(axes)
        assert [bar.get_height() for bar in bars] == pytest.approx([mean / 1e9 for mean in wanted])
        assert {bar.get_y() for bar in bars} == {0}
        assert axes.get_ylim()[0] == 0
        centres = [bar.get_x() + bar.get_width() / 2 for bar in bars]
        assert [round(x) for x in centres] == [0, 0, 0, 1, 1, 1], "a cluster around each tick"
        (trials,) = (line for line in axes.lines if line.get_marker() == "o")
        assert len(trials.get_xdata()) == 5 * len(bars)
        assert trials.get_zorder() > max(bar.get_zorder() for bar in bars)
    assert len(whiskers(plot)) == 18
    assert "bars, left to right: bs 4KiB, 64KiB, 1MiB" in plot.figure.get_supxlabel()


def test_a_direction_has_a_panel_and_those_of_a_file_system_share_their_scale() -> None:
    directions = [replace(each, factors={**each.factors, "rw": rw}) for rw in ("seq", "rand") for each in SWEPT]
    plot = clustered(synthetic_run(workloads=directions, blocks=2))
    titles = [title.split() for title in panels(plot)]
    assert [name for name, _ in titles] == [name for name in NAMES for _ in range(2)]
    assert [{rw for _, rw in titles[at : at + 2]} for at in (0, 2, 4)] == [{"rw=seq", "rw=rand"}] * 3
    limits = [axes.get_ylim() for axes in plot.figure.axes]
    assert limits[0::2] == limits[1::2]
    assert limits[0] != limits[4], "ext4 is a seventh as fast"
    assert {axes.get_title(loc="right") for axes in plot.figure.axes} == {"own scale"}


def test_a_level_without_a_figure_leaves_its_place_empty() -> None:
    run = swept_run()
    without = run.estimates[~run.estimates["cell"].str.contains("bs=64KiB numjobs=1", regex=False)]
    first = clustered(replace(run, estimates=without)).figure.axes[0]
    left = [bar.get_x() for bar in bars_in(drawn("clustered").figure.axes[0])]
    assert [bar.get_x() for bar in bars_in(first)] == pytest.approx([left[0], *left[2:]])


# --- maps -------------------------------------------------------------------------------------------------------------


def squares(plot: Plot) -> list[mpl.patches.Rectangle]:
    return [p for axes in plot.figure.axes for p in axes.patches if isinstance(p, mpl.patches.Rectangle)]


def test_a_map_has_a_number_in_each_cell() -> None:
    plot = drawn("heat")
    own = swept_run().estimates[swept_run().estimates.metric == "read_bandwidth"]
    wanted = [numbers.mean_figures(mean, math.nan, math.nan, factor=1e9).value for mean in own["mean"]]
    written = [text.get_text() for axes in plot.figure.axes for text in axes.texts]
    assert sorted(written) == sorted(wanted)
    assert [axes.get_title(loc="left") for axes in plot.figure.axes] == NAMES


def test_cells_without_a_figure_are_hatched_and_said() -> None:
    estimates = with_factors(swept_run())
    plot = heat(estimates[~((estimates.filesystem == "ext4") & (estimates.bs == "4KiB"))])
    assert sum(square.get_hatch() is not None for square in squares(plot)) == 2
    assert "2 cells without a figure, hatched." in plot.alt
    assert all(square.get_hatch() is None for square in squares(drawn("heat")))


def test_a_map_of_ratios_marks_what_is_undecided() -> None:
    swept, of = {"bs": "4KiB", "numjobs": "1"}, {"workload": "fio", "metric": "read_bandwidth"}
    decided = comparison(**of, factors=swept)
    undecided = comparison(**of, factors={**swept, "bs": "8KiB"}, ratio=1.01, verdict="undecided")
    plot = plots.plot_ratio_heat([decided, undecided], "read_bandwidth", ("bs", "numjobs"), workload="fio")
    (axes,) = plot.figure.axes
    assert [text.get_text() for text in axes.texts] == ["6.9", "1.0?"]
    assert "?: undecided" in plot.figure.get_supxlabel()
    unusable = replace(undecided, verdict="not usable")
    marked = plots.plot_ratio_heat([decided, unusable], "read_bandwidth", ("bs", "numjobs"), workload="fio")
    assert "✕: do not use" in marked.figure.get_supxlabel()
    faces = [square.get_facecolor() for square in squares(plot)]
    assert faces[0][2] < faces[1][2], "far from the baseline is a strong colour"


def test_a_map_of_one_cell() -> None:
    plot = plots.plot_ratio_heat(
        [comparison(workload="w", factors={"a": "1", "b": "2"}, ratio=1.0)], "write_bandwidth", ("a", "b"), workload="w"
    )
    assert ElementTree.fromstring(plot.svg()).tag == f"{SVG}svg"
    with pytest.raises(InputError, match="there is no ratio"):
        plots.plot_ratio_heat([comparison(ratio=math.nan)], "write_bandwidth", ("a", "b"), workload="w")


# --- latencies --------------------------------------------------------------------------------------------------------


def test_percentiles_and_their_band_are_those_of_the_frame() -> None:
    plot, label = drawn("percentiles"), SWEPT[0].label
    own = swept_run().percentiles[(swept_run().percentiles.cell == f"ext4/{label}")]
    (axes,) = [axes for axes in plot.figure.axes if axes.get_title(loc="left").startswith(label[:20])][:1]
    (line,) = [line for line in axes.lines if line.get_color() == colour("ext4")]
    assert list(line.get_xdata()) == pytest.approx([nines(percent) for percent in own.percent])
    assert list(line.get_ydata()) == pytest.approx(list(own["mean"] * 1e6))
    bands = [path.vertices for c in axes.collections for path in c.get_paths() if len(path.vertices) > 2 * len(own)]
    edges = {round(float(y), 3) for band in bands for _, y in band}
    assert {round(low * 1e6, 3) for low in own.low} | {round(high * 1e6, 3) for high in own.high} <= edges


def test_a_percentile_without_an_interval_has_no_band() -> None:
    once = synthetic_run(workloads=SWEPT[:1], blocks=1)
    plot = plots.plot_percentiles(once.percentiles, "read.clat_ns", filesystems=NAMES)
    assert not [path for axes in plot.figure.axes for c in axes.collections for path in c.get_paths()]
    with pytest.raises(InputError, match="there is no latency percentile of sync"):
        plots.plot_percentiles(once.percentiles, "sync.lat_ns", filesystems=NAMES)


def test_the_distribution_of_latencies_ends_at_all_of_them() -> None:
    plot = drawn("latencies")
    for line in lines(plot, colour("ext4")):
        heights = [y for _, y in line]
        assert heights[0] == 0
        assert heights[-1] == pytest.approx(100)
        assert heights == sorted(heights)
        assert len(heights) < 200
    total = sum(each.total for each in latencies().values())
    assert numbers.number(total, 0) in plot.title


def test_a_histogram_of_one_io_is_drawn() -> None:
    plot = plots.plot_latencies({("w", "ext4"): count([1000])}, "read latency", filesystems=NAMES)
    assert ElementTree.fromstring(plot.svg()).tag == f"{SVG}svg"
    with pytest.raises(InputError, match="there is no histogram"):
        plots.plot_latencies({("w", "ext4"): count([])}, "read latency", filesystems=NAMES)


# --- trials -----------------------------------------------------------------------------------------------------------


def test_the_distribution_has_a_step_for_each_trial() -> None:
    plot = drawn("distribution")
    own = swept_run().measurements[
        (swept_run().measurements.cell == f"ext4/{SWEPT[0].label}") & ~swept_run().measurements.warmup
    ]
    values = sorted(own[own.metric == "read_bandwidth"].value / 1e9)
    steps = [line for line in lines(plot, colour("ext4")) if line[-1][0] == pytest.approx(values[-1])]
    assert [x for x, _ in steps[0]] == pytest.approx([values[0], *values])
    assert [y for _, y in steps[0]] == pytest.approx([0, 20, 40, 60, 80, 100])


@pytest.mark.parametrize(("apart", "finding"), [(20, "no trial of one file system lies in the range of another"),
                                                 (2, "the trials of some file systems overlap")])  # fmt: skip
def test_the_title_of_a_distribution_says_whether_trials_of_two_file_systems_overlap(apart: int, finding: str) -> None:
    rows = swept_run().measurements
    rows = rows[(rows["workload"] == "fio") & (rows["cell"].str.endswith(SWEPT[0].label)) & ~rows["warmup"]]
    values = rows["block"] + apart * rows["filesystem"].map(NAMES.index)
    plot = plots.plot_distribution(rows.assign(value=values * 1e9), "read_bandwidth", **ORDER)
    assert plot.title == f"Read bandwidth of 15 trials: {finding}"


def test_bars_begin_at_zero_and_hide_no_trial() -> None:
    plot = drawn("bars")
    (axes,) = plot.figure.axes
    own = swept_run().estimates[swept_run().estimates.metric == "read_bandwidth"]
    assert axes.get_xlim()[0] == 0
    assert {bar.get_x() for bar in axes.patches} == {0}
    assert sorted(bar.get_width() for bar in axes.patches) == pytest.approx(sorted(own["mean"] / 1e9))
    dots = [line for line in axes.lines if line.get_linestyle() == "None" and line.get_marker() == "o"]
    assert sum(len(line.get_xdata()) for line in dots) == own.n.sum()
    assert min(line.get_zorder() for line in dots) > max(bar.get_zorder() for bar in axes.patches)


@pytest.mark.slow
def test_some_of_the_workloads_are_drawn_alone() -> None:
    few = [ORDER["workloads"][1]]
    for draw in (plots.plot_trials, plots.plot_bars):
        plot = draw(swept_run().measurements, swept_run().estimates, "read_bandwidth", groups=few, **ORDER)
        assert few[0] in texts(plot)
        assert ORDER["workloads"][0] not in texts(plot)
    order = plots.plot_run_order(swept_run().measurements, "read_bandwidth", groups=few, **ORDER)
    assert len(order.figure.axes) == 1
    assert order.figure.axes[0].lines[0].get_xdata()[0] is not None


@pytest.mark.long
@pytest.mark.slow
def test_thousands_of_trials_are_one_picture_inside_the_plot() -> None:
    cell = swept_run().measurements[swept_run().measurements.cell == f"ext4/{SWEPT[0].label}"]
    many = pd.concat([cell.assign(block=i, trial_id=f"t{i}", warmup=False) for i in range(1, 401)], ignore_index=True)
    for plot in (
        plots.plot_trials(many, swept_run().estimates, "read_bandwidth", filesystems=NAMES),
        plots.plot_run_order(many, "read_bandwidth", filesystems=NAMES),
    ):
        svg = plot.svg()
        assert svg.count("<image") >= 1
        assert "data:image/png;base64" in svg
        assert len(svg) < 200_000
    assert "<image" not in drawn("bars").svg()


@pytest.mark.slow
def test_run_order_names_its_blocks() -> None:
    plot = plots.plot_run_order(swept_run().measurements, "read_bandwidth", **ORDER)
    assert [text.get_text() for text in plot.figure.axes[-1].get_xticklabels()] == ["W", "1", "2", "3", "4", "5"]


# --- courses ----------------------------------------------------------------------------------------------------------


def test_a_course_that_was_not_steady_is_dotted() -> None:
    (axes,) = drawn("series").figure.axes
    styles = {line.get_color(): line.get_linestyle() for line in axes.lines}
    assert styles == {colour("tmpfs"): "-", colour("ramfs"): "-", colour("ext4"): ":"}
    assert "2 of 3 were steady" in drawn("series").title
    assert "ext4, fio bs=4KiB: 1 of 1 not steady" in drawn("series").alt


def test_whether_it_was_steady_may_be_unknown() -> None:
    plot = plots.plot_series([Course("a", "w", [(1.0, 2.0), (2.0, 2.0)])], "read_bandwidth", "B/s", filesystems=["a"])
    assert "it is unknown whether they were steady" in plot.title
    with pytest.raises(InputError, match="there is no log over time"):
        plots.plot_series([Course("a", "w", [(1.0, 2.0)])], "read_bandwidth", "B/s", filesystems=["a"])


def test_long_courses_are_thinned_to_the_means_of_their_windows() -> None:
    points = [(float(i), float(i % 7)) for i in range(1, 5001)]
    few = thinned(points)
    assert len(few) <= 120
    assert few[-1][0] == 5000
    assert np.mean([value for _, value in few]) == pytest.approx(np.mean([value for _, value in points]), rel=0.01)
    assert thinned(points[:100]) == points[:100]


# --- bytes ------------------------------------------------------------------------------------------------------------


def test_bytes_are_shares_of_what_the_tool_asked_for() -> None:
    plot = drawn("bytes")
    two = ["ext4", "xfs"]
    assert sorted(x for cloud in lines(plot, colour("ext4", two), joined=False) for x, _ in cloud) == pytest.approx(
        [0, 100, 102]
    )
    assert plot.title == (
        "In 1 of 3 rows the device moved less than 90\u00a0% of the tool's bytes: a cache answered or kept the rest"
    )
    assert {"101\u00a0MB of 100\u00a0MB", "0\u00a0B of 100\u00a0MB"} <= set(texts(plot))
    (axes,) = plot.figure.axes  # far more than was asked for ends at an arrowhead
    heads = [line for line in axes.lines if line.get_marker() == ">"]
    assert [float(line.get_xdata()[0]) for line in heads] == [axes.get_xlim()[1]]
    assert axes.get_xlim()[1] < 300


@every_row(
    ("device_mb", "title"),
    [
        ({"ext4": 1.0, "tmpfs": 1.05}, "The device moved what was asked of it in every row: no cache answered"),
        ({"ext4": 1.2, "tmpfs": 34.1},
         "The device moved more than the tool in 2 of 2 rows, most on tmpfs: 34.1\u00a0MB for 1.00\u00a0MB"),
        ({"ext4": 1.0, "tmpfs": 1.2},
         "The device moved more than the tool in 1 of 2 rows, most on tmpfs: 1.20\u00a0MB for 1.00\u00a0MB"),
    ],
)  # fmt: skip
def test_without_a_cache_the_title_says_so_or_where_the_device_moved_more(
    device_mb: dict[str, float], title: str
) -> None:
    trials = [Delivered(name, "w", "write", 1e6, 1e6 * megabytes) for name, megabytes in device_mb.items()]
    assert plots.plot_bytes(trials, filesystems=NAMES).title == title
    with pytest.raises(InputError, match="there is no trial with counters"):
        plots.plot_bytes([Delivered("ext4", "w", "write", 0.0, 0.0)], filesystems=NAMES)


# --- paper ------------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize(
    ("form", "name"), others_long([("svg", "response"), ("png", "heat"), ("pdf", "series")], kept=[("svg", "response")])
)
def test_a_figure_for_a_paper_is_the_same_bytes_each_time(form: Any, name: str) -> None:
    plot = drawn(name)
    before = plot.svg()
    made = plot.save_bytes(form, width_in=3.3)
    assert made == plot.save_bytes(form, width_in=3.3)
    assert made.startswith({"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}[form])
    assert plot.svg() == before, "the plot itself stays as it is"


@pytest.mark.slow
def test_a_figure_for_a_paper_is_black_on_white_and_as_wide_as_asked() -> None:
    svg = drawn("response").save_bytes("svg", width_in=3.3).decode()
    assert f'width="{3.3 * 72:g}pt"' in svg
    assert "#010203" not in svg
    assert "<text" not in svg, "text is drawn as paths"
    pixels = mpl.image.imread(io.BytesIO(drawn("response").save_bytes("png", width_in=3.3)))
    assert pixels.shape[1] == pytest.approx(3.3 * 300, abs=2)
    assert pixels[0, 0][:3].tolist() == [1, 1, 1]


@pytest.mark.slow
def test_keys_of_the_page_are_drawn_into_the_figure() -> None:
    with_keys = drawn("series").save_bytes("svg")
    assert all(f"<!-- {name} -->".encode() in with_keys for name in NAMES)
    plain = plots.Plot(drawn("series").figure, "t", "a").save_bytes("svg")
    assert b"<!-- ext4 -->" not in plain


def test_other_forms_and_widths_are_refused() -> None:
    with pytest.raises(InputError, match="a figure is saved as one of these") as caught:
        drawn("bars").save_bytes("gif")
    assert caught.value.allowed == "svg, png, pdf"
    with pytest.raises(InputError, match="fits on a page"):
        drawn("bars").save_bytes("svg", width_in=0.1)


@pytest.mark.slow
@pytest.mark.parametrize("draw", [plots.plot_trials, plots.plot_bars])
def test_estimates_that_were_read_from_csv_have_their_means_drawn(draw: Any) -> None:
    """pandas reads an empty label as NaN."""
    again = pd.read_csv(io.StringIO(swept_run().estimates.to_csv(index=False)))
    assert again["label"].isna().all()
    ours = draw(swept_run().measurements, swept_run().estimates, "read_bandwidth", **ORDER)
    assert draw(swept_run().measurements, again, "read_bandwidth", **ORDER).alt == ours.alt
