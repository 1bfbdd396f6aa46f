"""Time per file: what one file costs on each file system, for those who think in files and not in rates."""

from __future__ import annotations

from collections.abc import Iterator

from matplotlib.figure import Figure
from mountlab import plots
from mountlab.analysis.run_view import RunView

US = 1e6


def draw(run: RunView) -> Iterator[plots.Plot]:
    """The mean time per unpacked file of each cell, with its interval."""
    rows = run.estimates[(run.estimates["metric"] == "file_rate") & (run.estimates["tool"] == "untar")]
    rows = rows[rows["mean"] > 0]
    if rows.empty:
        return
    marks = plots.colour_of([fs.name for fs in run.sweep.filesystems])
    figure = Figure(figsize=(6, 1 + 0.4 * len(rows)), layout="constrained")
    axes = figure.subplots()
    for place, row in enumerate(rows.to_dict("records")):
        mean, ends = US / row["mean"], (US / row["high"], US / row["low"])
        mark = marks[row["filesystem"]]
        axes.plot(ends, [place, place], color=mark.colour)
        axes.plot([mean], [place], color=mark.colour, marker=mark.marker)
    axes.set_yticks(range(len(rows)), rows["cell"])
    axes.set_xlabel("time per file, µs")
    times = {str(row["cell"]): f"{US / row['mean']:.3g} µs" for row in rows.sort_values("mean").to_dict("records")}
    best, cells = list(times)[-1], "; ".join(f"{cell}: {time}" for cell, time in times.items())
    title = f"Shortest mean time per file: {times[best]} ({best})"
    yield plots.Plot(figure, title, f"Mean time per unpacked file. {cells}.")


TIME_PER_FILE = plots.ReportPlot("time-per-file", draw, heading="Time per file")
