"""What the devices are promised to do, beside what they did."""

from __future__ import annotations

from mountlab.analysis.promises import BUSY, PromiseState, judged_promises, promise_lines, promise_text
from mountlab.analysis.run_view import RunView
from mountlab.core.groups import by_key
from mountlab.core.numbers import MISSING, counted, percent
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Rows, Text
from mountlab.report.sections import frames

_MARKS: dict[PromiseState, str] = {"kept": "✓", "broken": "✗", "undecided": "?", "not asked": "–"}


def promised_answer(run: RunView) -> Html:
    """Return a line for each promise, below the file system whose device it is of; nothing where there is none."""
    lines = by_key((line.filesystem, line) for line in promise_lines(run))
    boxes = []
    for name, group in lines.items():
        rows = [html.labelled(f"{_MARKS[line.state]} {promise_text(line.promise)}", line.text) for line in group]
        heading = html.paragraph(f"Promised by the device of {name}:", kind="meta")
        boxes.append(html.box("expected", heading, html.items(rows)))
    return html.joined(*boxes)


@frames.attach(frames.promises)
def promised(run: RunView) -> Html:
    """Return each promise of a device beside what each workload measured, and whether it was kept."""
    judged = judged_promises(run)
    if not judged:
        return html.nothing("This sweep names no promises of a device.")
    groups = []
    for name, rows in by_key((row.filesystem, row) for row in judged).items():
        cells: list[list[Text]] = [
            [
                promise_text(row.promise),
                row.workload or MISSING,
                f"{row.figure} {row.unit}".strip() or MISSING,
                row.interval,
                f"{row.state}{row.remark}",
            ]
            for row in rows
        ]
        groups.append(Rows(cells, f"Device of {name}"))
    measured = sum(bool(row.figure) for row in judged)
    level, margin = percent(run.sweep.design.level), percent(run.sweep.design.smallest_effect)
    how = (
        f"Kept: the whole interval misses the promise by {margin} at most. Broken: by more. The intervals hold at "
        f"{level} for all {counted(measured, 'figure')} together. Not asked: a cache answered, or the device had room "
        f"for more, busy for less than {percent(BUSY)} of the time or with too few requests in flight."
    )
    head: Head = ["Promise", "Workload", "Measured", Column("Interval", "interval"), "Verdict"]
    return html.joined(
        html.table(head, groups, caption="What was promised, and what was measured"), html.paragraph(how, kind="meta")
    )
