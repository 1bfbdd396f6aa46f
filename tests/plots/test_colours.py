"""A file system has one colour and one marker in every plot of a run, whichever others are drawn beside it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from every_plot import NAMES, every_plot
from matplotlib.collections import Collection
from matplotlib.colors import to_hex, to_rgb
from matplotlib.patches import Patch
from mountlab import plots
from mountlab.core.errors import InputError
from mountlab.plots import Plot
from mountlab.plots.style import MARKS, UNUSABLE
from mountlab.plots.svg import INK
from mountlab.report.page import TEMPLATE
from mountlab.stats.histograms import Histogram
from repetition import others_long
from rows import every_row
from svg_marks import colours, drawings
from synthetic_run import SWEPT, WORKLOADS, synthetic_run

MARK_OF = plots.colour_of(NAMES)
EXPECTED = {name: mark.colour.lower() for name, mark in MARK_OF.items()}
PALETTE = {mark.colour.lower() for mark in MARKS}
NEUTRAL = {"o", "|", "<", ">", "^", "v", "None", "none", "", ","}
"""Dots of trials, ticks of means, ends of intervals that go on, and none."""
NO_MARKER = ("None", "none", "")
STYLE_SHEET = (TEMPLATE / "style.css").read_text()
OF_RATIOS = ("ratios", "answer over runs", "published")
"""A baseline has no ratio to itself."""
DRAWN = (("ext4",), ("ramfs", "ext4"))
"""What is drawn in `make test`, for all of these tests."""
FEW = (WORKLOADS[0], *WORKLOADS[3:5])
"""One of dd, and one that reads and one that writes of fio."""
OTHERS: tuple[tuple[str, ...], ...] = (("tmpfs",), ("ramfs",), NAMES)
ORANGE = "#d55e00"
"""Of the changes in a history."""


def of_the_palette(plot: Plot) -> set[str]:
    """The colours of file systems among those that a plot draws."""
    return {colour for axes in plot.figure.axes for artist in axes.get_children() for colour in _colours(artist)}


def _colours(artist: Any) -> Iterator[str]:
    if hasattr(artist, "get_marker"):
        yield from _known([artist.get_color()])
    elif isinstance(artist, Collection):
        yield from _known([*artist.get_facecolor(), *artist.get_edgecolor()])  # type: ignore[misc]
    elif isinstance(artist, Patch):
        yield from _known([artist.get_facecolor()])


def _known(found: list[Any]) -> set[str]:
    return {to_hex(each) for each in found if np.size(each) and to_hex(each) in PALETTE}


@cache
def kinds(only: tuple[str, ...]) -> dict[str, Plot]:
    """Every kind of plot of these file systems, drawn once for all that is looked at in it."""
    same = {name: name for name in NAMES}
    of_one = every_plot(synthetic_run(workloads=FEW), same, only=only)
    swept = every_plot(synthetic_run(workloads=SWEPT), same, only=only, factors=("bs", "numjobs"))
    drawing = {**of_one, **{name: draw for name, draw in swept.items() if name.startswith(("response", "clustered"))}}
    return {name: draw() for name, draw in drawing.items()}


@pytest.mark.slow
@pytest.mark.parametrize("only", [*DRAWN, *(pytest.param(only, marks=pytest.mark.long) for only in OTHERS)])
def test_a_file_system_keeps_its_colour_whichever_others_are_left_out(only: tuple[str, ...]) -> None:
    wrong = {}
    for name, plot in kinds(only).items():
        found = of_the_palette(plot) - ({ORANGE} if name == "history" and "ramfs" not in only else set())
        due = {EXPECTED[each] for each in only if each != "ext4" or name not in OF_RATIOS}
        if found != due and not (name == "published" and found < due):
            wrong[name] = found
    assert wrong == {}


@pytest.mark.slow
@pytest.mark.parametrize("only", others_long(NAMES, kept=["ext4"]))
def test_a_file_system_keeps_its_marker(only: str) -> None:
    wrong = {}
    for name, plot in kinds((only,)).items():
        markers = {str(line.get_marker()) for axes in plot.figure.axes for line in axes.lines}
        if markers - NEUTRAL - {MARK_OF[only].marker, "D" if name == "published" else ""}:
            wrong[name] = markers
    assert wrong == {}


@pytest.mark.slow
def test_the_keys_of_a_plot_are_those_colours() -> None:
    for name, plot in kinds(("ramfs", "ext4")).items():
        told = {key: mark for key, mark in plot.legend.items() if key in NAMES}
        assert told in ({}, {key: MARK_OF[key] for key in ("ramfs", "ext4")}), name


@pytest.mark.slow
def test_the_svg_has_the_colours_of_the_figure() -> None:
    plot = kinds(("ext4",))["trials"]
    (drawing,) = drawings(plot._repr_html_())
    assert colours(drawing) == {EXPECTED["ext4"]}


def contrast(one: Any, other: Any) -> float:
    """By WCAG 2: relative luminances, the lighter one above."""
    linear = np.array(
        [
            [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(each)]
            for each in (one, other)
        ]
    )
    dark, light = sorted(linear @ [0.2126, 0.7152, 0.0722])
    return float((light + 0.05) / (dark + 0.05))


def pages() -> list[tuple[str, str]]:
    """Background and text of a report, light and dark."""
    both = [re.findall(rf"--{name}: light-dark\((#\w{{6}}), (#\w{{6}})\)", STYLE_SHEET) for name in ("page", "ink")]
    return list(zip(*(found for (found,) in both), strict=True))


def seen_on(page: str, colour: Any, alpha: float | None) -> tuple[float, ...]:
    """A colour that lets something of the page through."""
    part = 1.0 if alpha is None else alpha
    return tuple(part * a + (1 - part) * b for a, b in zip(to_rgb(colour), to_rgb(page), strict=True))


@pytest.mark.parametrize(("page", "ink"), pages())
def test_every_colour_of_the_palette_is_seen_on_light_and_on_dark(page: str, ink: str) -> None:
    assert contrast("#ffffff", "#000000") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.005), "a known pair"
    assert contrast(ink, page) >= 7
    colours = [UNUSABLE, *(mark.colour for mark in MARKS)]
    assert {colour: contrast(colour, page) for colour in colours if contrast(colour, page) < 3} == {}


@pytest.mark.slow
@pytest.mark.parametrize(("page", "ink"), pages())
def test_every_marker_and_every_bar_is_seen_on_light_and_on_dark(page: str, ink: str) -> None:
    faint = []
    for name, plot in kinds(("ramfs", "ext4")).items():
        for axes in plot.figure.axes:
            bars = [bar for bar in axes.patches if bar.get_linewidth() and to_hex(bar.get_edgecolor()) in PALETTE]
            marks = [(bar.get_edgecolor(), bar.get_alpha()) for bar in bars]
            marks += [(line.get_color(), line.get_alpha()) for line in axes.lines if line.get_marker() not in NO_MARKER]
            for colour, alpha in marks:
                own = ink if to_hex(colour) == INK else colour
                if contrast(seen_on(page, own, alpha), page) < 3:
                    faint.append((name, to_hex(colour), alpha))
    assert faint == []


def test_fifty_file_systems_have_marks_of_their_own() -> None:
    marks = plots.colour_of([f"fs{i}" for i in range(49)])
    assert len({(mark.colour, mark.marker) for mark in marks.values()}) == 49
    assert all(mark.glyph == {each.marker: each.glyph for each in MARKS}[mark.marker] for mark in marks.values())


MANY = tuple(f"fs{place}" for place in range(9))
"""More than there are colours: two of them are used twice."""
POINTS = [(float(at), 1e6) for at in range(1, 12)]
SPREAD = Histogram({1000 * at: 5 for at in range(1, 12)})


@every_row(
    "draw",
    [
        lambda: plots.plot_series([plots.Course(name, "w", POINTS) for name in MANY], "iops", "1/s", filesystems=MANY),
        lambda: plots.plot_inside([plots.InsideTrial(name, "t0001", {"read_iops": POINTS}) for name in MANY], "w"),
        lambda: plots.plot_latencies({("w", name): SPREAD for name in MANY}, "reads", filesystems=MANY),
    ],
)
def test_lines_of_one_colour_carry_different_markers(draw: Callable[[], Plot]) -> None:
    lines = [line for axes in draw().figure.axes for line in axes.lines if len(line.get_xdata()) > 3]  # type: ignore[arg-type]
    looks = {(line.get_color(), line.get_marker()) for line in lines}
    assert (len(lines), len(looks)) == (9, 9)
    assert not {"None", ""} & {marker for _, marker in looks}


def test_a_file_system_that_the_sweep_has_not_is_refused() -> None:
    run = synthetic_run()
    with pytest.raises(InputError, match="place in the sweep"):
        plots.plot_trials(run.measurements, run.estimates, "read_bandwidth", filesystems=["ext4"])


def test_what_is_no_file_system_has_no_colour_of_one() -> None:
    """The lines of a plan are workloads."""
    plot = plots.plot_smallest_difference({"w": {3: 2.0, 5: 1.5}, "v": {3: 1.9, 5: 1.4}}, planned={"w": 5.0}, power=0.8)
    assert of_the_palette(plot) == set()
    assert {mark.colour for mark in plot.legend.values()} == {INK}
    assert "currentColor" in plot._repr_html_()
    assert INK not in plot._repr_html_()
