"""The plots of a report: those that the shape of its sweep asks for, and that what was measured allows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import pandas as pd

from mountlab import html, plots, words
from mountlab.analysis import counted
from mountlab.checks import steadiness
from mountlab.html import Html
from mountlab.model import METRICS
from mountlab.plots import Plot
from mountlab.run_view import RunView
from mountlab.sections.choice import Kind, Picture, Shape, chosen, shape_of
from mountlab.sections.shared import answer_metrics, names_of, orders, within
from mountlab.tools.fio_series import together
from mountlab.tools.histograms import Histogram

MOST_ROWS, MOST_PANELS = 36, 12
"""Of one plot: a taller one would not fit on a page of paper. What is more goes into another."""
_COMPLETIONS = ("read.clat_ns", "write.clat_ns", "sync.lat_ns")
"""The latencies that metrics are about; fio may keep others beside them."""
_LOGGED = ("read_bandwidth", "write_bandwidth")
_NO_TRIAL = "No trial succeeded."


def shape(run: RunView) -> Shape:
    """The shape of the run's sweep, and what was measured of it."""
    known = run.estimates[["cell", "metric", "label"]].fillna("")
    logs = (run.series.get(trial_id, ()) for trial_id, _ in _good(run))
    logged = {each.metric for series in logs for each in series if len(each.points) > 1}
    places = set(run.percentiles["place"])
    return shape_of(
        run.sweep, run.answer_metrics, known.itertuples(index=False, name=None),
        compared=any(words.effect(each) >= 0 for each in run.comparisons),
        places=[place for place in _COMPLETIONS if place in places],
        logged=[metric for metric in _LOGGED if metric in logged], counters=bool(run.moved),
    )  # fmt: skip


def _shown(run: RunView, *kinds: Kind) -> list[Picture]:
    return [picture for picture in chosen(shape(run)) if picture.kind in kinds]


def _side_by_side(drawn: Iterable[Plot], why_none: str) -> Html:
    """The plots beside each other; where there is none, why."""
    shown = [Html(plot._repr_html_()) for plot in drawn]
    return html.columns(*shown) if shown else html.nothing(why_none)


# ── over the swept options ───────────────────────────────────────────────────────────────────────────────────────────


def responses(run: RunView) -> Html:
    """The answer's metrics over each swept number or size, and maps of two swept options."""
    pictures = _shown(run, "response", "heat", "ratio heat")
    return _side_by_side(
        (_over_factors(run, each) for each in pictures), "No size and no number was swept, and no two options together."
    )


def _over_factors(run: RunView, picture: Picture) -> Plot:
    what = {"workload": picture.workload, "label": picture.label}
    if picture.kind == "response":
        return plots.plot_response(
            run.measurements, run.estimates, picture.metric, picture.factors[0], filesystems=names_of(run), **what
        )
    across, up = picture.factors
    own = [
        each for each in run.comparisons
        if (each.metric, each.workload, each.label) == (picture.metric, picture.workload, picture.label)
        and words.effect(each) >= 0
    ]  # fmt: skip
    if picture.kind == "ratio heat" and own:
        return plots.plot_ratio_heat(own, picture.metric, (across, up), **what)
    return plots.plot_heat(run.estimates, picture.metric, (across, up), filesystems=names_of(run), **what)


# ── trials ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def every_trial(run: RunView) -> Html:
    """Every counted trial of the answer's metrics, with mean and interval of each cell."""

    def draw(metric: str, groups: Sequence[str]) -> Plot:
        return plots.plot_trials(run.measurements, run.estimates, metric, groups=groups, **orders(run))

    return _side_by_side(_in_parts(run, draw, MOST_ROWS), _NO_TRIAL)


def bar_charts(run: RunView) -> Html:
    """The same as bars, behind a summary, for those who expect them."""

    def draw(metric: str, groups: Sequence[str]) -> Plot:
        return plots.plot_bars(run.measurements, run.estimates, metric, groups=groups, **orders(run))

    drawn = list(_in_parts(run, draw, MOST_ROWS))
    if not drawn:
        return html.nothing(_NO_TRIAL)
    return html.details(words.counted(len(drawn), "bar chart"), _side_by_side(drawn, _NO_TRIAL))


def run_order(run: RunView) -> Html:
    """Every trial of the answer's metrics in the order in which it ran."""
    measured = run.measurements.merge(run.trials[["trial_id", "seq"]], on="trial_id", how="left")

    def draw(metric: str, groups: Sequence[str]) -> Plot:
        return plots.plot_run_order(measured, metric, groups=groups, **orders(run))

    return _side_by_side(_in_parts(run, draw, MOST_PANELS * len(names_of(run))), _NO_TRIAL)


def distributions(run: RunView) -> Html:
    """The empirical distribution of the trials of each cell."""

    def draw(metric: str, groups: Sequence[str]) -> Plot:
        return plots.plot_distribution(run.measurements, metric, groups=groups, **orders(run))

    return _side_by_side(_in_parts(run, draw, MOST_PANELS * len(names_of(run))), _NO_TRIAL)


def _in_parts(run: RunView, draw: Callable[[str, Sequence[str]], Plot], most_rows: int) -> Iterator[Plot]:
    """One plot a metric of the answer; more than one where it has more rows than go into one."""
    measured = counted(run.measurements)
    for metric in answer_metrics(run):
        own = measured[measured["metric"] == metric]
        if len(own):
            parts = within(_rows_by_group(own), most_rows)
            for number, groups in enumerate(parts, start=1):
                plot = draw(metric, groups)
                part = f" (part {number} of {len(parts)})" if len(parts) > 1 else ""
                yield replace(plot, title=plot.title + part)


def _rows_by_group(measured: pd.DataFrame) -> dict[str, int]:
    """Each workload (with its label, where rows have one) to how many file systems have it."""
    keys = measured[["filesystem", "cell", "label"]].drop_duplicates().to_dict("records")
    rows: dict[str, int] = {}
    for key in keys:
        group = plots.group_of(key)
        rows[group] = rows.get(group, 0) + 1
    return rows


# ── latencies, courses, bytes ────────────────────────────────────────────────────────────────────────────────────────


def latencies(run: RunView) -> Html:
    """Latency percentiles with the interval over trials, and the distribution over all I/Os."""
    drawn: list[Plot] = [
        plots.plot_percentiles(run.percentiles, picture.place, **orders(run))
        for picture in _shown(run, "percentiles")
    ]  # fmt: skip
    drawn += [
        plots.plot_latencies(_pooled(run, picture.place), plots.PLACES[picture.place], filesystems=names_of(run))
        for picture in _shown(run, "latencies")
    ]
    return _side_by_side(drawn, "No latency histogram was kept; fio keeps them.")


def _pooled(run: RunView, place: str) -> dict[tuple[str, str], Histogram]:
    """(workload, file system) to the latencies of all I/Os, workloads in the order of the sweep."""
    cells = sorted(run.sweep.cells, key=lambda cell: run.sweep.workloads.index(cell.workload))
    found = [(cell, run.latencies(cell.id)) for cell in cells]
    return {(c.workload.label, c.filesystem.name): own[place] for c, own in found if place in own}


def inside_trials(run: RunView) -> Html:
    """What fio logged over the time of each trial."""
    drawn = (
        plots.plot_series(_courses(run, picture.metric), picture.metric, METRICS[picture.metric], **orders(run))
        for picture in _shown(run, "series")
    )
    return _side_by_side(drawn, "No log over time was kept (fio: log_avg_msec).")


def _courses(run: RunView, metric: str) -> list[plots.Course]:
    """The course of each counted trial that has one; whether it was steady is for the checks to say."""
    cells = {cell.id: cell for cell in run.sweep.cells}
    found = []
    for trial_id, cell_id in _good(run):
        series = run.series.get(trial_id, ())
        points, cell = together(series, metric), cells[cell_id]
        if points:
            steady = steadiness(cell, series)
            found.append(plots.Course(
                cell.filesystem.name, cell.workload.label, points, None if steady is None else steady.ok,
            ))  # fmt: skip
    return found


def _good(run: RunView) -> list[tuple[str, str]]:
    """Trial and cell of every counted trial."""
    good = run.trials[(run.trials["status"] == "ok") & ~run.trials["warmup"].astype(bool)]
    return list(zip(good["trial_id"], good["cell"], strict=True))


def device_bytes(run: RunView) -> Html:
    """What the tool moved against what the device delivered: whether a cache answered."""
    if not run.moved:
        return html.nothing("No trial ran on a device whose bytes the kernel counts.")
    told = [
        plots.Delivered(each.cell.filesystem.name, each.cell.workload.label, each.side, each.tool_bytes,
                        each.device_bytes)
        for each in run.moved
    ]  # fmt: skip
    by_group: dict[str, set[str]] = {}
    for each in told:
        by_group.setdefault(each.group, set()).add(each.filesystem)
    parts = within({group: len(names) for group, names in by_group.items()}, MOST_ROWS)
    without = [name for name in names_of(run) if all(each.filesystem != name for each in told)]
    note = html.paragraph(f"Without a device that is counted: {words.listed(without)}.", kind="meta") if without else ""
    drawn = (
        plots.plot_bytes([each for each in told if each.group in groups], **orders(run)) for groups in parts
    )  # fmt: skip
    return html.joined(_side_by_side(drawn, ""), note)
