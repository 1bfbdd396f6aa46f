"""The plots of a report: those that the shape of its sweep asks for, and that what was measured allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

from mountlab import plots
from mountlab.analysis.inside import median_trials, points_of, why_no_counters
from mountlab.analysis.measurements import counted
from mountlab.analysis.run_order import run_order_sentences
from mountlab.analysis.run_view import RunView
from mountlab.checks import steadiness
from mountlab.core import numbers, plugins
from mountlab.core.errors import PluginError
from mountlab.core.frames import pd
from mountlab.core.model import Cell
from mountlab.fio.series import together
from mountlab.plots import Plot, ReportPlot
from mountlab.report import html
from mountlab.report.html import Head, Html, Rows, Text, numeric
from mountlab.report.sections import frames
from mountlab.report.sections.capacity import capacity_plots
from mountlab.report.sections.choice import Picture, PlotKind, Shape, chosen, shape_of
from mountlab.report.sections.clients import client_plots
from mountlab.report.sections.program import program_plots
from mountlab.report.sections.shared import answer_metrics, names_of, orders, swatches, within
from mountlab.report.sections.tables import latency_ratios
from mountlab.report.sections.why import layer_plots
from mountlab.report.sections.why_details import flame_plots, sleep_plots, slowest_plots
from mountlab.wording import phrases, verdicts

MOST_ROWS, MOST_PANELS = 48, 12
"""Of one plot, with the headings of rows: a taller one would not fit on a page of paper. What is more goes into
another."""
MOST_NAMED = 4
MOST_INSIDE, OPEN_INSIDE = 8, 2
"""Workloads whose course is drawn: each is a figure of some 60 kB, most of a page tall, so that those after the first
two are folded. Notebook 30 draws any trial."""
_COMPLETIONS = ("read.clat_ns", "write.clat_ns", "sync.lat_ns")
"""The latencies that metrics are about; fio may keep others beside them."""
_LOGGED = ("read_bandwidth", "write_bandwidth")
_LATENCIES = ("read_latency_mean", "write_latency_mean")
_NO_TRIAL = "No counted trial has a figure."
_NOT_ALIKE = "The trials of a search differ in their rate: they have no mean. See How much can it take?"


def shape(run: RunView) -> Shape:
    """Return the shape of the run's sweep, and what was measured of it."""
    finite = run.estimates.loc[run.estimates["mean"].notna(), ["cell", "metric", "label"]].fillna("")
    logs = (run.series.get(trial_id, ()) for trial_id, _ in _good(run))
    logged = {course.metric for series in logs for course in series if len(course.points) > 1}
    places = set(run.percentiles["place"])
    return shape_of(
        run.sweep,
        run.answer_metrics,
        finite.itertuples(index=False, name=None),
        compared=any(verdicts.effect(comparison) >= 0 for comparison in run.comparisons),
        places=[place for place in _COMPLETIONS if place in places],
        logged=[metric for metric in _LOGGED if metric in logged],
        counters=bool(run.moved),
    )


def _shown(run: RunView, *kinds: PlotKind) -> list[Picture]:
    return [picture for picture in chosen(shape(run)) if picture.kind in kinds]


def _side_by_side(run: RunView, drawn: Iterable[Plot], why_none: str) -> Html:
    """Return the plots beside each other, and which trials are in none of them; where there is no plot, why."""
    pictures = [html.plot(plot) for plot in drawn]
    return html.joined(html.columns(*pictures), _not_drawn(run)) if pictures else html.nothing(why_none)


def _why_no_trial(run: RunView) -> str:
    """Return why there is no plot of trials beside each other."""
    return _NOT_ALIKE if run.sweep.searches else _NO_TRIAL


def _not_drawn(run: RunView) -> Text:
    """Return the trials without a value to draw, counted by cell."""
    late = {cell: len(blocks) for cell, blocks in run.censored.items()}
    if not late:
        return ""
    cells = numbers.listed([f"{count} of {cell}" for cell, count in list(late.items())[:MOST_NAMED]])
    more = f" and {numbers.counted(len(late) - MOST_NAMED, 'more cell')}" if len(late) > MOST_NAMED else ""
    return html.paragraph(f"Not drawn: {phrases.without_value(sum(late.values()))} ({cells}{more}).", kind="meta")


# ── over the swept options ───────────────────────────────────────────────────────────────────────────────────────────


def response_plots(run: RunView) -> Iterator[Plot]:
    """Return the answer's metrics over each swept number or size, and maps of two swept options."""
    return (_over_factors(run, picture) for picture in _shown(run, "response", "heat", "ratio heat"))


def clustered_plots(run: RunView) -> Iterator[Plot]:
    """Yield clusters of bars over two swept numbers."""
    for picture in _shown(run, "clustered"):
        along, bars = picture.factors
        yield plots.plot_clustered(
            run.measurements,
            run.estimates,
            picture.metric,
            (along, bars),
            workload=picture.workload,
            label=picture.label,
            filesystems=names_of(run),
        )


@frames.attach(frames.values)
def responses(run: RunView) -> Html:
    """Return the plots over swept options, side by side."""
    drawn = [*response_plots(run), *clustered_plots(run)]
    return _side_by_side(run, drawn, "No size and no number was swept, and no two options together.")


def _over_factors(run: RunView, picture: Picture) -> Plot:
    what = {"workload": picture.workload, "label": picture.label}
    if picture.kind == "response":
        return plots.plot_response(
            run.measurements, run.estimates, picture.metric, picture.factors[0], filesystems=names_of(run), **what
        )
    across, up = picture.factors
    key = (picture.metric, picture.workload, picture.label)
    of_picture = [c for c in run.comparisons if (c.metric, c.workload, c.label) == key and verdicts.effect(c) >= 0]
    if picture.kind == "ratio heat" and of_picture:
        return plots.plot_ratio_heat(of_picture, picture.metric, (across, up), **what)
    return plots.plot_heat(run.estimates, picture.metric, (across, up), filesystems=names_of(run), **what)


# ── trials ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def trial_plots(run: RunView) -> Iterator[Plot]:
    """Return every counted trial of the answer's metrics, with mean and interval of each cell."""

    return _in_parts(run, partial(plots.plot_trials, run.measurements, run.estimates), MOST_ROWS)


def every_trial(run: RunView) -> Html:
    """Return the plots of every trial, side by side."""
    return _side_by_side(run, trial_plots(run), _why_no_trial(run))


def bar_plots(run: RunView) -> Iterator[Plot]:
    """Means as bars, with their intervals and the trials."""

    return _in_parts(run, partial(plots.plot_bars, run.measurements, run.estimates), MOST_ROWS)


@frames.attach(frames.values)
def bar_charts(run: RunView) -> Html:
    """Return the bar charts behind a summary, for those who expect them."""
    drawn = list(bar_plots(run))
    if not drawn:
        return html.nothing(_why_no_trial(run))
    return html.details(numbers.counted(len(drawn), "bar chart"), _side_by_side(run, drawn, _NO_TRIAL))


def run_order_plots(run: RunView) -> Iterator[Plot]:
    """Return every trial of the answer's metrics in the order in which it ran."""
    measured = run.measurements.merge(run.trials[["trial_id", "seq"]], on="trial_id", how="left")

    return _in_parts(run, partial(plots.plot_run_order, measured), MOST_PANELS * (len(names_of(run)) + 1))


def run_order(run: RunView) -> Html:
    """Return the plots in run order, side by side, below what they show."""
    drawn = _side_by_side(run, run_order_plots(run), _why_no_trial(run))
    if str(drawn).startswith(html.NOTHING) or run.sweep.searches:
        return drawn
    return html.joined(*map(html.paragraph, run_order_sentences(run)), drawn)


def distribution_plots(run: RunView) -> Iterator[Plot]:
    """Return the empirical distribution of the trials of each cell."""

    return _in_parts(run, partial(plots.plot_distribution, run.measurements), MOST_PANELS * (len(names_of(run)) + 1))


@frames.attach(frames.values)
def distributions(run: RunView) -> Html:
    """Return the distributions, side by side."""
    return _side_by_side(run, distribution_plots(run), _why_no_trial(run))


def _in_parts(run: RunView, draw: Callable[..., Plot], most_rows: int) -> Iterator[Plot]:
    """Yield one plot a metric of the answer; more than one, in the order of the sweep, where it has more rows and
    headings than go into one."""
    measured, order = counted(run.measurements), orders(run)
    for metric in answer_metrics(run):
        rows = measured[measured["metric"] == metric]
        if len(rows):
            of_group = Counter(plots.groups_of(rows).values())
            groups_in_order = plots.ordered(of_group, order["workloads"])
            parts = within({group: of_group[group] + 1 for group in groups_in_order}, most_rows)
            for number, groups in enumerate(parts, start=1):
                plot = draw(metric, groups=groups, **order)
                part = f" (part {number} of {len(parts)})" if len(parts) > 1 else ""
                yield replace(plot, title=plot.title + part)


# ── latencies, courses, bytes ────────────────────────────────────────────────────────────────────────────────────────


def latency_plots(run: RunView) -> Iterator[Plot]:
    """Yield latency percentiles with the interval over trials, and the distribution over all I/Os."""
    for picture in _shown(run, "percentiles"):
        yield plots.plot_percentiles(run.percentiles, picture.place, **orders(run))
    for picture in _shown(run, "latencies"):
        cells = sorted(run.sweep.cells, key=lambda cell: run.sweep.workloads.index(cell.workload))
        histograms = [(cell, run.latencies(cell.id).get(picture.place)) for cell in cells]
        pooled = {(cell.workload.label, cell.filesystem.name): pool for cell, pool in histograms if pool is not None}
        yield plots.plot_latencies(pooled, plots.PLACES[picture.place], filesystems=names_of(run))


@frames.attach(lambda run: run.percentiles)
def latencies(run: RunView) -> Html:
    """Return the plots of latencies, side by side, and the ratios of their percentiles to those of the baseline."""
    drawn, ratios = [html.plot(plot) for plot in latency_plots(run)], latency_ratios(run)
    if not drawn:
        why = _NOT_ALIKE if run.sweep.searches else "No latency histogram was kept; fio keeps them."
        return ratios or html.nothing(why)
    timelines = html.link("#The-slowest-operations", "Their timelines")
    slowest = html.paragraph(html.joined("Why are the slowest so slow? ", timelines)) if len(run.why.slowest) else ""
    return html.joined(html.columns(*drawn), slowest, _not_drawn(run), ratios or "")


def series_plots(run: RunView) -> Iterator[Plot]:
    """Yield what fio logged over the time of each trial."""
    for picture in _shown(run, "series"):
        courses = _courses(run, picture.metric)
        yield plots.plot_series(courses, picture.metric, run.sweep.metric(picture.metric).unit, **orders(run))


def inside_plots(run: RunView) -> Iterator[Plot]:
    """Return the trial in the middle of each cell over its time, one figure a workload."""
    return _of_inside(run, _inside(run))


def _of_inside(run: RunView, courses: Mapping[str, Sequence[plots.InsideTrial]]) -> Iterator[Plot]:
    for label, trials in list(courses.items())[:MOST_INSIDE]:
        yield plots.plot_inside(trials, label, filesystems=names_of(run))


def _inside(run: RunView) -> dict[str, list[plots.InsideTrial]]:
    """Return label of each workload to its trials in the middle, without those that were too short to have a course."""
    cells = sorted(run.sweep.cells, key=lambda cell: run.sweep.workloads.index(cell.workload))
    chosen_trials = median_trials(run.sweep, run.trials, run.measurements, run.answer_metrics)
    courses: dict[str, list[plots.InsideTrial]] = {}
    for cell in (cell for cell in cells if cell.id in chosen_trials):
        if len(courses) <= MOST_INSIDE or cell.workload.label in courses:
            trial = _inside_trial(run, cell, chosen_trials[cell.id])
            courses.setdefault(cell.workload.label, []).extend([trial] if trial.points else [])
    return {label: trials for label, trials in courses.items() if not all(plots.quiet(n, trials) for n in plots.INSIDE)}


def _inside_trial(run: RunView, cell: Cell, trial_id: str) -> plots.InsideTrial:
    return plots.InsideTrial(cell.filesystem.name, trial_id, points_of(run.inside(trial_id), cell.workload))


_INSIDE_COLUMNS = ("filesystem", "workload", "trial_id", "quantity", "seconds", "value")


def _inside_frame(courses: Mapping[str, Sequence[plots.InsideTrial]]) -> pd.DataFrame:
    """Return a row for each point of each quantity, in base units."""
    rows = [
        (trial.filesystem, label, trial.trial_id, quantity, *point)
        for label, trials in courses.items()
        for trial in trials
        for quantity, points in trial.points.items()
        for point in points
    ]
    return pd.DataFrame(rows, columns=list(_INSIDE_COLUMNS))


@frames.attach(lambda run: _inside_frame(_inside(run)))
def inside_trials(run: RunView) -> Html:
    """Return the trial in the middle of each cell over its time; and the bandwidth of every trial, where it was
    logged."""
    why = why_no_counters(run.info, run.sweep)
    courses = _inside(run)
    drawn = [html.plot(plot) for plot in _of_inside(run, courses)]
    every = list(series_plots(run))
    if not drawn and not every:
        return html.nothing(why or "No trial was long enough for a course: it takes two tenths of a second and more.")
    caption = " ".join(filter(None, (*_about_inside(run, courses), why)))
    more, folded = drawn[OPEN_INSIDE:], f"Bandwidth of every trial: {numbers.counted(len(every), 'plot')}"
    return html.joined(
        html.paragraph(caption, kind="meta") if caption else "",
        html.columns(*drawn[:OPEN_INSIDE]) if drawn else "",
        html.details(f"{numbers.counted(len(more), 'more workload')} over time", html.columns(*more)) if more else "",
        html.details(folded, _side_by_side(run, every, "")) if every else "",
    )


def _about_inside(run: RunView, courses: Mapping[str, Sequence[plots.InsideTrial]]) -> Iterator[str]:
    """Yield which trials are drawn, and what is not."""
    trials = [trial for members in list(courses.values())[:MOST_INSIDE] for trial in members]
    if not trials:
        return
    middle = "The trial in the middle of each search." if run.sweep.searches else ""
    yield middle or "The median trial of each cell, by the metric of the answer."
    if len(courses) > MOST_INSIDE:
        yield f"Drawn are the first {MOST_INSIDE} of {len(run.sweep.workloads)} workloads."
    empty = [look.title for name, look in plots.INSIDE.items() if plots.quiet(name, trials) and _seen(name, trials)]
    unseen = [look.title for name, look in plots.INSIDE.items() if not _seen(name, trials)]
    if empty:
        yield f"Left out, as zero in all of them: {numbers.listed(empty)}."
    if unseen:
        yield f"Not recorded for any of them: {numbers.listed(unseen)}."
    if any(_seen(name, trials) for name in _LOGGED) and not any(_seen(name, trials) for name in _LATENCIES):
        yield (
            "By default fio logs latency only where each I/O waits for a device or has 64 KiB or more. Set "
            "log_avg_msec in a workload to log it."
        )


def _seen(name: str, trials: Sequence[plots.InsideTrial]) -> bool:
    return any(trial.points.get(name) for trial in trials)


def _one(run: RunView, trial_id: str) -> dict[str, list[plots.InsideTrial]]:
    """Return label of the workload to the trial; empty where the run does not have it."""
    cells = run.trials.loc[run.trials["trial_id"] == trial_id, "cell"]
    of_trial = [run.sweep.combinations[cell] for cell in cells]
    return {cell.workload.label: [_inside_trial(run, cell, trial_id)] for cell in of_trial}


@frames.attach(lambda run, trial_id: _inside_frame(_one(run, trial_id)))
def inside_one(run: RunView, trial_id: str) -> Html:
    """Return one trial over its time, whichever it is."""
    for label, trials in _one(run, trial_id).items():
        if all(plots.quiet(name, trials) for name in plots.INSIDE):
            return html.nothing(why_no_counters(run.info, run.sweep) or "The trial was too short for a course.")
        return html.plot(plots.plot_inside(trials, label, filesystems=names_of(run)))
    return html.nothing(f"The run has no trial {trial_id}.")


def _courses(run: RunView, metric: str) -> list[plots.Course]:
    """Return the course of each counted trial that has one; whether it was steady is for the checks to say."""
    cells = {cell.id: cell for cell in run.sweep.cells}
    courses = []
    for trial_id, cell_id in _good(run):
        series = run.series.get(trial_id, ())
        points, cell = together(series, metric), cells[cell_id]
        if points:
            steady = steadiness(cell, series)
            judged = None if steady is None else steady.ok
            courses.append(plots.Course(cell.filesystem.name, cell.workload.label, points, judged))
    return courses


def _good(run: RunView) -> list[tuple[str, str]]:
    """Return trial and cell of every counted trial."""
    good = run.trials[(run.trials["status"] == "ok") & ~run.trials["warmup"].astype(bool)]
    return list(zip(good["trial_id"], good["cell"], strict=True))


def byte_plots(run: RunView) -> Iterator[Plot]:
    """Yield what the tool moved against what the device delivered: whether a cache answered."""
    delivered = [
        plots.Delivered(m.cell.filesystem.name, m.cell.workload.label, m.side, m.tool_bytes, m.device_bytes)
        for m in run.moved
    ]
    rows = Counter(group for group, _ in {(trial.group, trial.filesystem): None for trial in delivered})
    for groups in within({group: count + 1 for group, count in rows.items()}, MOST_ROWS):
        yield plots.plot_bytes([trial for trial in delivered if trial.group in groups], **orders(run))


@frames.attach(frames.moved)
def device_bytes(run: RunView) -> Html:
    """Return the plots of bytes, side by side, and which file systems have no device that is counted."""
    if not run.moved:
        return html.nothing("No trial ran on a device whose bytes the kernel counts.")
    with_device = {moved.cell.filesystem.name for moved in run.moved}
    without = numbers.listed([name for name in names_of(run) if name not in with_device])
    note = html.paragraph(f"Without a device that is counted: {without}.", kind="meta") if without else ""
    return html.joined(_side_by_side(run, byte_plots(run), ""), note, _layers(run))


def _layers(run: RunView) -> Text:
    """Return a table of what each layer wrote; '' where no file system lies on layers of devices."""
    marks = swatches(run)
    rows = [
        [
            marks[writes.cell.filesystem.name], writes.cell.workload.label, str(writes.trials),
            layer, numbers.number(per_byte, 2),
        ]
        for writes in run.layer_writes
        for layer, per_byte in (("application", 1.0), *((one.name, one.per_byte) for one in writes.layers))
    ]  # fmt: skip
    if not rows:
        return ""
    head: Head = ["File system", "Workload", *numeric("n"), "Layer", *numeric("Bytes per byte of the tool")]
    note = (
        "Write amplification by layer: what the devices of each layer wrote together while the tool ran, for all "
        "programs, mean over trials. Less than 1: the rest was in memory when the tool ended, or was compressed."
    )
    caption = "What each layer wrote"
    return html.joined(html.table(head, [Rows(rows)], caption=caption), html.paragraph(note, kind="meta"))


_OWN: Mapping[str, Callable[[RunView], Iterable[Plot]]] = {
    "capacity": capacity_plots,
    "responses": response_plots, "clustered": clustered_plots,
    "clients": client_plots, "trials": trial_plots, "run-order": run_order_plots,
    "distributions": distribution_plots, "latencies": latency_plots, "inside": inside_plots, "courses": series_plots,
    "bytes": byte_plots,
    "bars": bar_plots, "program": program_plots, "layers": layer_plots,
    "slowest": slowest_plots, "flames": flame_plots, "sleeps": sleep_plots,
}  # fmt: skip
PLOTS = plugins.Registry(
    plugins.PLOTS, {name: ReportPlot(name, draw) for name, draw in _OWN.items()}, ReportPlot, key="name"
)
"""The parts of a report that are plots of the run alone, in its order; and those of plug-ins."""


def plots_of_plugins(run: RunView) -> Html:
    """Return the plots of plug-ins, each below its heading; where one cannot be drawn, why."""
    parts: list[Text] = []
    for entry, part in PLOTS.of_plugins():
        try:
            if isinstance(part, PluginError):
                raise part
            with plugins.calling(entry):
                drawings = list(part.draw(run))
                plugins.check_answer(entry, drawings, list[Plot], "draw()")
                drawn = [html.plot(plot) for plot in drawings]
        except PluginError as error:
            parts.append(html.paragraph(f"{entry.name}: {error.in_short}.", kind="meta"))
        else:
            if drawn:
                by = html.paragraph(f"Drawn by {entry.owner}.", kind="meta")
                parts += [html.heading(part.heading or part.name, level=4), html.columns(*drawn), by]
    return html.joined(*parts) if parts else html.nothing("")
