"""What ran beside the workloads: the load that each neighbour achieved, and when it did not run."""

from __future__ import annotations

from statistics import median

from mountlab.analysis.run_view import RunView
from mountlab.checks.beside import Load
from mountlab.core import numbers
from mountlab.core.units import scale_for
from mountlab.filesystems.neighbours import MOST_GAP
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Rows, numeric
from mountlab.report.sections import frames
from mountlab.report.sections.shared import swatches
from mountlab.sweep.beside import neighbour_texts


@frames.attach(frames.neighbours)
def neighbours(run: RunView) -> Html:
    """Show what each neighbour is, and a table of what it did in each cell."""
    loads = frames.run_loads(run)
    if not loads:
        return html.nothing("No workload has neighbours, or what they did was not kept.")
    scale = scale_for("B/s", max(trial.bytes_per_s for load in loads for trial in load.trials.values()))
    marks = swatches(run)
    rows = [[marks.get(row[0], row[0]), *row[1:]] for row in (_row(load, scale.factor) for load in loads)]
    figures = numeric(f"Load, {scale.unit}", "Calls/s", "n", "Restarts", "Most time without it")
    spread = Column(f"Least to most, {scale.unit}", "interval")
    head: Head = ["File system", "Workload", "Neighbour", figures[0], spread, *figures[1:], "Limits in effect"]
    return html.joined(
        html.items(f"{text}." for text in neighbour_texts(run.sweep)),
        html.table(head, [Rows(rows)], caption="What neighbours did while the tool ran, medians over trials"),
        html.paragraph(
            f"A trial is invalid where a neighbour did not run for more than {numbers.percent(MOST_GAP)} of its time."
        ),
    )


def _row(load: Load, factor: float) -> list[str]:
    trials = list(load.trials.values())
    rates = [trial.bytes_per_s / factor for trial in trials]
    limits = {name: text for trial in trials for name, text in trial.limits.items()}
    return [
        load.cell.filesystem.name,
        load.cell.workload.label,
        load.name,
        numbers.number(median(rates), 1),
        f"{numbers.number(min(rates), 1)} to {numbers.number(max(rates), 1)}",
        numbers.number(median(trial.calls_per_s for trial in trials), 0),
        str(len(trials)),
        str(sum(trial.restarts for trial in trials)),
        numbers.percent(round(max(trial.gap_share for trial in trials), 3)),
        "; ".join(f"{name} {text}" for name, text in limits.items()) or "none",
    ]
