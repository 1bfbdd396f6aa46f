"""Histories as the parts of a page; and the page of one change."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import pairwise

from mountlab.analysis.history import LEVEL, History, grouped
from mountlab.core import numbers
from mountlab.plots.history import Line, Spot, Stretch, plot_history
from mountlab.plots.style import marks_of
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Rows, Text, numeric
from mountlab.sentences import history as words
from mountlab.stats.changes import CLIP, SHORTEST, Change

_MOST_DRAWN = 6
_BESIDE = 6
"""Runs on either side of a change that its page lists."""


def title(histories: Sequence[History]) -> Html:
    """Return the question, and what it is about."""
    days = sorted(f"{point.at:%Y-%m-%d}" for history in histories for point in (*history.points, *history.left_out))
    sweeps, boxes = {history.key.sweep for history in histories}, {history.key.box for history in histories}
    sweep = f"sweep {sweeps.pop()}" if len(sweeps) == 1 else numbers.counted(len(sweeps), "sweep")
    box = f"box {boxes.pop()}" if len(boxes) == 1 else f"{len(boxes)} boxes"
    title = html.heading("How did the figures change over the years?", level=1)
    return html.joined(title, html.paragraph(f"{days[0]} to {days[-1]} · {sweep} · {box}", kind="meta"))


def answer(histories: Sequence[History]) -> Html:
    """Return the answer in sentences."""
    return html.box("answer", *map(html.paragraph, words.sentences(histories)))


def overview(histories: Sequence[History]) -> Html:
    """Return the histories drawn, those that changed last first."""
    histories = [history for history in histories if history.points]
    if not histories:
        return html.nothing("No run has a figure to draw.")
    changed = [history for history, _ in words.changed(histories)]
    drawn = list({history.key: history for history in (*changed, *histories)}.values())[:_MOST_DRAWN]
    lines = [line_of(history, several=len(histories) > 1) for history in drawn]
    plot = plot_history(lines, title=words.sentences(histories)[0])
    note = f"{len(drawn)} of {words.number_of_histories(len(histories))} are drawn; the table below has all of them."
    return html.joined(html.plot(plot), html.paragraph(note, kind="meta") if len(histories) > len(drawn) else "")


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


def changes_table(histories: Sequence[History]) -> Html:
    """Return every change with its ratio, its runs, and what else changed there."""
    pairs = words.changed(histories)
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
        cells = [since, figures.value, figures.interval, p, history.verdict(change), turns or "nothing that is kept"]
        rows.append((words.where(history), [words.named(history), *cells]))
    caption = "Level after the change by that before; p corrected over histories of the sweep on the box and over looks"
    return html.grouped_table(head, rows, caption=caption)


def histories_table(histories: Sequence[History]) -> Html:
    """Return one row a history."""
    levels = ("First", "Last", "Changes", "A change from now on that would be reported")
    rows = ((words.where(history), words.overview_row(history)[2:]) for history in histories)
    caption = words.number_of_histories(len(histories))
    return html.grouped_table(["Cell", "Metric", *numeric("Runs"), *levels], rows, caption=caption)


def by_kernel(histories: Sequence[History]) -> Html:
    """Return the runs of each history by kernel, where there is more than one and few histories are looked at."""
    many = [history for history in histories if len({point.facts.get("kernel") for point in history.points}) > 1]
    if not many or len(histories) > _MOST_DRAWN:
        return html.nothing("By kernel only up to six histories are shown; choose a cell, a box or a metric.")
    means = ("Mean of runs", "95 % interval", "To the first", "Interval, all together")
    groups = [Rows(list(map(words.group_row, grouped(history, "kernel"))), words.named(history)) for history in many]
    caption = "Each run is one value; ratios to the first kernel hold together"
    return html.table(["Kernel", *numeric("Runs"), *means], groups, caption=caption)


# ── the page of one change ───────────────────────────────────────────────────────────────────────────────────────────


def change_id(history: History, change: Change) -> str:
    """Return the name of its directory: the same as long as it is found at the same run."""
    key, after = history.key, history.points[change.at]
    parts = (key.sweep, key.box, key.cell, key.metric, key.label, key.asked, after.run)
    return f"{after.at:%Y%m%d}-{sha256(chr(0).join(parts).encode()).hexdigest()[:10]}"


def change_entry(history: History, change: Change) -> dict[str, object]:
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
    turns: Html = html.paragraph("Nothing that runs keep of box and tools changed there.")
    rows: list[list[Text]] = []
    for turn in history.turns(change):
        since, earlier = history.points[turn.at].at, "never so" if turn.only_there else "had been so"
        rows.append([turn.what, turn.before, turn.after, f"{since:%Y-%m-%d %H:%M}", earlier, turn.commits])
    if rows:
        head: Head = ["What", "Before", "After", "Since the run of", "Before that", Column("Commits", "code")]
        caption = "That it changed at the same run does not show that it is the cause"
        turns = html.table(head, [Rows(rows)], caption=caption)
    sides_of_change = {
        "Before": range(max(change.since, change.at - _BESIDE), change.at),
        "After": range(change.at, min(change.until, change.at + _BESIDE)),
    }
    groups = []
    for name, places in sides_of_change.items():
        beside = (words.run_row(history, place) for place in places)
        groups.append(
            Rows([(html.link(links[run], run) if run in links else run, *rest) for run, *rest in beside], name)
        )
    columns = ("Run", "Date, UTC", "Kernel", "Trials", "Mean", "95 % interval")
    return html.joined(
        html.heading(words.change_title(history, change), level=1),
        html.paragraph(meta, kind="meta"),
        html.box("answer", *map(html.paragraph, lines)),
        html.plot(plot),
        html.heading("What else changed there", level=2),
        turns,
        html.heading("The runs on either side", level=2),
        html.table(columns, groups, caption="Intervals are from the trials inside a run"),
        html.heading("How sure that is", level=2),
        *map(html.paragraph, _how_sure(history)),
        html.heading("To go on", level=2),
        html.paragraph("The two runs beside each other, every cell and everything that differs between them:"),
        html.code_block(compare),
    )


def _how_sure(history: History) -> list[str]:
    runs, family = numbers.counted(len(history.points), "run"), words.number_of_histories(history.family)
    return [
        f"A change takes {SHORTEST} runs or more on either side. After each of {runs} the newest ones were tested "
        f"against those before. Where nothing changes in any of {family} of this sweep on this box, at most "
        f"{numbers.percent(1 - LEVEL)} of such families ever report a change, however often somebody looks.",
        f"One run counts for at most {CLIP:g} spreads, so that two odd runs hardly make a change. The test allows in "
        "part for neighbouring runs that are alike. Where they are very alike (a disk that ages, a room that warms), "
        "false changes are more frequent, and a drift appears as a step. The page Calibration of the documentation "
        "has the rates.",
    ]
