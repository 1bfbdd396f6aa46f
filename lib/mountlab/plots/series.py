"""What a tool did over the time of each trial."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from mountlab.core import names, numbers
from mountlab.core.groups import by_key
from mountlab.core.units import scale_for
from mountlab.plots.axes import in_alt
from mountlab.plots.base import Plot, require
from mountlab.plots.panels import figure_of, name_axes, panel_figure, shown_of, value_limits
from mountlab.plots.style import glyphs_on, marks_of

_MOST_POINTS, _MOST_TRIALS = 120, 12
"""Of one line, and of one cell. Windows are joined to longer ones, and only the first trials drawn, where there are
more: a page of a thousand lines would be large and show nothing."""


@dataclass(frozen=True)
class Course:
    """One trial: what its jobs together did in windows that ended after so many seconds."""

    filesystem: str
    workload_label: str
    """The name, with the levels of the factors."""
    points: Sequence[tuple[float, float]]
    """Seconds at which a window ended, and the value in it, in base units."""
    steady: bool | None = None
    """By the rule of the statistics; None where it is unknown."""


def plot_series(
    courses: Sequence[Course], metric: str, unit: str, *, filesystems: Sequence[str], workloads: Sequence[str] = ()
) -> Plot:
    """Return a metric over the time of each trial: one panel a workload, one line a trial, dotted where it was not
    steady.

    `courses`: the trials, with values in base units. `filesystems` and `workloads` (labels): all of the sweep, in its
    order. Raises InputError where no trial has two points.
    """
    drawn = [course for course in courses if len(course.points) > 1]
    require(drawn, f"log over time of {metric}")
    marks = marks_of(filesystems, {course.filesystem for course in drawn})
    scale = scale_for(unit, max(value for course in drawn for _, value in course.points))
    present = {course.workload_label for course in drawn}
    shown, more = shown_of([name for name in workloads if name in present] or sorted(present))
    with panel_figure(shown) as panels:
        for title, axes in panels.items():
            for name in marks:
                members = [course for course in drawn if (course.workload_label, course.filesystem) == (title, name)]
                for course in members[:_MOST_TRIALS]:
                    points = thinned(course.points)
                    xs, ys = [seconds for seconds, _ in points], [value / scale.factor for _, value in points]
                    style = ":" if course.steady is False else "-"
                    glyphs = glyphs_on(name, marks, len(xs))
                    axes.plot(xs, ys, color=marks[name].colour, linewidth=0.9, linestyle=style, **glyphs)
        values = [value / scale.factor for course in drawn for _, value in thinned(course.points)]
        longest = max(course.points[-1][0] for course in drawn)
        for axes in panels.values():
            value_limits(axes, values, [])
            axes.set_xlim(0, longest * 1.02)
        name_axes(panels, x=f"seconds in the trial{more}", y=f"{names.metric_noun(metric)}, {scale.unit}")
    steadiness = _steadiness(drawn)
    legend = {name: mark for name, mark in marks.items() if any(course.filesystem == name for course in drawn)}
    what = f"{names.metric_heading(metric)} inside of {numbers.counted(len(drawn), 'trial')}"
    return Plot(figure_of(panels), f"{what}: {steadiness[0]}", f"{what}, over time. {in_alt(steadiness)}", legend)


def thinned(points: Sequence[tuple[float, float]], most: int = _MOST_POINTS) -> list[tuple[float, float]]:
    """At most so many points: the means of several windows in a row, at the end of the last of them."""
    every = max(1, -(-len(points) // most))
    parts = [points[start : start + every] for start in range(0, len(points), every)]
    return [(part[-1][0], fmean(value for _, value in part)) for part in parts]


def _steadiness(courses: Sequence[Course]) -> list[str]:
    """Return how many trials were steady; and those cells in which most were not."""
    judged = [course for course in courses if course.steady is not None]
    if not judged:
        return ["it is unknown whether they were steady (fewer than ten windows, or jobs that do different things)"]
    steady = sum(bool(course.steady) for course in judged)
    cells = by_key(((course.filesystem, course.workload_label), bool(course.steady)) for course in judged)
    bad = [
        f"{name}, {workload}: {steady_here.count(False)} of {len(steady_here)} not steady"
        for (name, workload), steady_here in cells.items()
        if not all(steady_here)
    ]
    of = f"{len(judged)}" if len(judged) == len(courses) else f"the {len(judged)} that can be judged"
    return [f"{steady} of {of} were steady over five equal parts", *bad]
