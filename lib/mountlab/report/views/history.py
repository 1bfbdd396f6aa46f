"""Histories as the parts of a page; and the page of one change."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import pairwise
from typing import Any

from mountlab.analysis.history import LEVEL, History, grouped
from mountlab.core import numbers
from mountlab.plots.history import Line, Spot, Stretch, plot_history
from mountlab.plots.style import marks_of
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Rows, Text, numeric
from mountlab.report.sentences import history as words
from mountlab.stats.changes import CLIP, SHORTEST, Change

_MOST_DRAWN = 6
_BESIDE = 6
"""Runs on either side of a change that its page lists."""


def title(found: Sequence[History]) -> Html:
    """Return the question, and what it is about."""
    days = sorted(f"{point.at:%Y-%m-%d}" for history in found for point in (*history.points, *history.left_out))
    sweeps, boxes = {history.key.sweep for history in found}, {history.key.box for history in found}
    parts = [
        f"{days[0]} to {days[-1]}",
        _some("sweep", sweeps),
        f"box {boxes.pop()}" if len(boxes) == 1 else f"{len(boxes)} boxes",
    ]
    asked = "How did the figures change over the years?"
    return html.joined(html.heading(asked, level=1), html.paragraph(" · ".join(parts), kind="meta"))


def _some(noun: str, names: set[str]) -> str:
    return f"{noun} {next(iter(names))}" if len(names) == 1 else numbers.counted(len(names), noun)


def answer(found: Sequence[History]) -> Html:
    """Return the answer in sentences."""
    return html.box("answer", *(html.paragraph(each) for each in words.sentences(found)))


def overview(found: Sequence[History]) -> Html:
    """Return the histories drawn, those that changed last first."""
    found = [history for history in found if history.points]
    if not found:
        return html.nothing("No run has a figure to draw.")
    by_key = {history.key: history for history in (*(one for one, _ in words.changed(found)), *found)}
    drawn = list(by_key.values())[:_MOST_DRAWN]
    plot = plot_history([line_of(each, several=len(found) > 1) for each in drawn], title=words.sentences(found)[0])
    said = f"{len(drawn)} of {words.number_of_histories(len(found))} are drawn; the table below has all of them."
    return html.joined(html.plot(plot), html.paragraph(said, kind="meta") if len(found) > len(drawn) else "")


def line_of(history: History, *, several: bool) -> Line:
    """Return a history to be drawn; levels are geometric means of runs."""
    spots = [Spot(point.at, point.mean, point.estimate.low, point.estimate.high) for point in history.points]
    ends = [0, *(change.at for change in history.changes), len(spots)]
    stretches = [
        Stretch(start, end, math.exp(sum(point.level.value for point in history.points[start:end]) / (end - start)))
        for start, end in pairwise(ends)
    ]
    name = f"{words.named(history)}, {words.where(history)}" if several else words.named(history)
    newest = history.points[-1]
    mark = marks_of(newest.filesystems, [newest.filesystem])[newest.filesystem]
    return Line(name, mark, history.key.unit, spots, stretches, [(c.at, c.first, c.last) for c in history.changes])


def changes_table(found: Sequence[History]) -> Html:
    """Return every change with its ratio, its runs, and what else changed there."""
    pairs = words.changed(found)
    if not pairs:
        return html.nothing("Nothing shows that a level changed.")
    interval = Column("Interval", "interval")
    verdict = ("Verdict", "What else changed there")
    head: Head = ["Cell and metric", "Since", *numeric("Ratio"), interval, *numeric("p"), *verdict]
    rows: list[tuple[str, list[Text]]] = []
    for history, change in pairs:
        figures = numbers.ratio_figures(change.ratio, change.low, change.high)
        turns = "; ".join(f"{turn.what}: {turn.before} → {turn.after}" for turn in history.turns(change)[:3])
        since, p = f"{history.points[change.at].at:%Y-%m-%d}", numbers.p_text(change.p)
        said = [since, figures.value, figures.interval, p, history.verdict(change), turns or "nothing that is kept"]
        rows.append((words.where(history), [words.named(history), *said]))
    caption = "Level after the change by that before; p corrected over histories of the sweep on the box and over looks"
    return html.grouped_table(head, rows, caption=caption)


def histories_table(found: Sequence[History]) -> Html:
    """Return one row a history."""
    levels = ("First", "Last", "Changes", "A change from now on that would be reported")
    rows = ((words.where(each), words.overview_row(each)[2:]) for each in found)
    caption = words.number_of_histories(len(found))
    return html.grouped_table(["Cell", "Metric", *numeric("Runs"), *levels], rows, caption=caption)


def by_kernel(found: Sequence[History]) -> Html:
    """Return the runs of each history by kernel, where there is more than one and few histories are looked at."""
    many = [history for history in found if len({point.facts.get("kernel") for point in history.points}) > 1]
    if not many or len(found) > _MOST_DRAWN:
        return html.nothing("By kernel only up to six histories are shown; choose a cell, a box or a metric.")
    means = ("Mean of runs", "95 % interval", "To the first", "Interval, all together")
    groups = [Rows(list(map(words.group_row, grouped(each, "kernel"))), words.named(each)) for each in many]
    return html.table(
        ["Kernel", *numeric("Runs"), *means],
        groups,
        caption="Each run is one value; ratios to the first kernel hold together",
    )


# ── the page of one change ───────────────────────────────────────────────────────────────────────────────────────────


def change_id(history: History, change: Change) -> str:
    """Return the name of its directory: the same as long as it is found at the same run."""
    key, after = history.key, history.points[change.at]
    parts = (key.sweep, key.box, key.cell, key.metric, key.label, key.asked, after.run)
    return f"{after.at:%Y%m%d}-{sha256(chr(0).join(parts).encode()).hexdigest()[:10]}"


def change_entry(history: History, change: Change) -> dict[str, Any]:
    """Return the index entry of a change."""
    turns = words.turn_sentences(history, change)
    return {
        "kind": "change",
        "title": words.change_title(history, change),
        "page": "report.html",
        "created_at": history.points[change.at].at.isoformat(timespec="seconds"),
        "box": history.key.box,
        "sweep": history.key.sweep,
        "verdicts": [history.verdict(change)],
        "verdict": f"{words.change_sentence(history, change)} {turns[0]}",
        "runs": [point.run for point in history.points[change.since : change.until]],
        "caveats": {},
    }


def change_body(history: History, change: Change, links: Mapping[str, str], *, compare: str) -> Html:
    """Return the page of a change. `links`: run to the address of its report, for runs that have one; `compare`: the
    command that sets the two runs beside each other."""
    sides = [numbers.counted(change.at - change.since, "run"), numbers.counted(change.until - change.at, "run")]
    meta = f"{words.where(history)} · {sides[0]} before, {sides[1]} after"
    parts = (words.change_sentence, words.range_sentence, words.report_sentence)
    lines = [*(sentence(history, change) for sentence in parts), *words.turn_sentences(history, change)]
    plot = plot_history([line_of(history, several=False)], title=words.change_title(history, change))
    return html.joined(
        html.heading(words.change_title(history, change), level=1),
        html.paragraph(meta, kind="meta"),
        html.box("answer", *(html.paragraph(each) for each in lines)),
        html.plot(plot),
        html.heading("What else changed there", level=2),
        _turns_table(history, change),
        html.heading("The runs on either side", level=2),
        _runs_table(history, change, links),
        html.heading("How sure that is", level=2),
        *(html.paragraph(each) for each in _how_sure(history)),
        html.heading("To go on", level=2),
        html.paragraph("The two runs beside each other, every cell and everything that differs between them:"),
        html.code_block(compare),
    )


def _turns_table(history: History, change: Change) -> Html:
    turns = history.turns(change)
    if not turns:
        return html.paragraph("Nothing that runs keep of box and tools changed there.")
    head: Head = ["What", "Before", "After", "Since the run of", "Before that", Column("Commits", "code")]
    rows = []
    for turn in turns:
        since, earlier = history.points[turn.at].at, "never so" if turn.only_there else "had been so"
        rows.append([turn.what, turn.before, turn.after, f"{since:%Y-%m-%d %H:%M}", earlier, turn.commits])
    return html.table(head, [Rows(rows)], caption="That it changed at the same run does not show that it is the cause")


def _runs_table(history: History, change: Change, links: Mapping[str, str]) -> Html:
    head = ("Run", "Date, UTC", "Kernel", "Trials", "Mean", "95 % interval")
    sides = {
        "Before": range(max(change.since, change.at - _BESIDE), change.at),
        "After": range(change.at, min(change.until, change.at + _BESIDE)),
    }
    groups = []
    for name, places in sides.items():
        found = (words.run_row(history, place) for place in places)
        rows = [(html.link(links[run], run) if run in links else run, *rest) for run, *rest in found]
        groups.append(Rows(rows, name))
    return html.table(head, groups, caption="Intervals are from the trials inside a run")


def _how_sure(history: History) -> list[str]:
    runs, family = numbers.counted(len(history.points), "run"), words.number_of_histories(history.family)
    return [
        f"A change takes {SHORTEST} runs or more on either side. After each of {runs} the newest ones were tested "
        f"against those before. Where nothing changes in any of {family} of this sweep on this box, at most "
        f"{numbers.percent(1 - LEVEL)} of such families ever report a change, however often somebody looks.",
        f"One run counts for at most {CLIP:g} spreads, so that two odd runs hardly make a change. The test allows in "
        "part for neighbouring runs that are alike. Where they are very alike (a disk that ages, a room that warms), "
        "false changes are more frequent, and a drift appears as a step. docs/calibration.md has the rates.",
    ]
