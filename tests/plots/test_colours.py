"""A file system has one colour and one marker in every plot of a run, whichever others are drawn beside it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from every_plot import NAMES, every_plot
from matplotlib.collections import Collection
from matplotlib.colors import to_hex
from matplotlib.patches import Patch
from mountlab import plots
from mountlab.core.errors import InputError
from mountlab.plots import Plot
from mountlab.plots.style import MARKS
from mountlab.plots.svg import INK
from repetition import others_long
from svg_marks import colours, drawings
from synthetic_run import SWEPT, WORKLOADS, synthetic_run

MARK_OF = plots.colour_of(NAMES)
EXPECTED = {name: mark.colour.lower() for name, mark in MARK_OF.items()}
PALETTE = {mark.colour.lower() for mark in MARKS}
NEUTRAL = {"o", "|", "<", ">", "^", "v", "None", "none", "", ","}
"""Dots of trials, ticks of means, ends of intervals that go on, and none."""
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


def test_fifty_file_systems_have_marks_of_their_own() -> None:
    marks = plots.colour_of([f"fs{i}" for i in range(49)])
    assert len({(mark.colour, mark.marker) for mark in marks.values()}) == 49
    assert all(mark.glyph == {each.marker: each.glyph for each in MARKS}[mark.marker] for mark in marks.values())


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
