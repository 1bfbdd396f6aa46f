"""What histories say: in sentences, as text for the terminal, and as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from mountlab import words
from mountlab.as_json import plain
from mountlab.errors import printable
from mountlab.history import LEVEL, By, Group, History, Turn, grouped
from mountlab.stats.changes import Change, fewest_runs

Changed = tuple[History, Change]
_MOST_TOLD, _MOST_ROWS = 6, 40

# ── sentences ────────────────────────────────────────────────────────────────────────────────────────────────────────


def changed(found: Sequence[History]) -> list[Changed]:
    """Every change, the newest first."""
    pairs = [(history, change) for history in found for change in history.changes]
    return sorted(pairs, key=lambda pair: (pair[0].points[pair[1].at].at, pair[0].key.cell), reverse=True)


def named(history: History) -> str:
    """'ext4/fio bs=4KiB: read bandwidth'."""
    return f"{history.key.cell}: {words.metric_noun(history.key.metric, history.key.label)}"


def where(history: History) -> str:
    """'nightly-00 on box0'."""
    return f"{history.key.sweep} on {history.key.box}"


def change_title(history: History, change: Change) -> str:
    """'Read bandwidth 9.6 % lower since 2021-02-03: slower (ext4/fio bs=4KiB, nightly-00 on box0)'."""
    noun = words.metric_heading(history.key.metric, history.key.label)
    day = f"{history.points[change.at].at:%Y-%m-%d}"
    return f"{noun} {_moved(change)} since {day}: {history.verdict(change)} ({history.key.cell}, {where(history)})"


def _moved(change: Change) -> str:
    return f"{words.percent(abs(change.ratio - 1))} {'higher' if change.ratio > 1 else 'lower'}"


def change_sentence(history: History, change: Change) -> str:
    """What changed, by how much, since when, and how sure that is."""
    figures = words.ratio_figures(change.ratio, change.low, change.high)
    noun = words.metric_noun(history.key.metric, history.key.label)
    over = f", corrected over {number_of_histories(history.family)}"
    return (
        f"The {noun} of {history.key.cell} is {figures.value} times what it was (95 % interval {figures.low} to "
        f"{figures.high}; p = {words.p_text(change.p_adjusted)}{over}): {history.verdict(change)}."
    )


def range_sentence(history: History, change: Change) -> str:
    """Between which runs it changed, by date; and how sure the place is."""
    before, after = history.points[change.at - 1], history.points[change.at]
    told = f"It changed between the runs of {_day(before.at)} and {_day(after.at)}"
    if change.first == change.last:
        return f"{told}, with more than 95 % probability just there."
    first, last = history.points[change.first - 1], history.points[change.last]
    return f"{told}; with 95 % probability between those of {_day(first.at)} and {_day(last.at)}."


def _day(at: Any) -> str:
    return f"{at:%Y-%m-%d %H:%M}"


def turn_sentences(history: History, change: Change) -> list[str]:
    """What else changed there."""
    turns = history.turns(change)
    if not turns:
        return ["Nothing that runs keep of box and tools changed there."]
    return [_turn_sentence(turn, change) for turn in turns[:_MOST_TOLD]]


def _turn_sentence(turn: Turn, change: Change) -> str:
    place = "There" if turn.at == change.at else "Near it"
    alone = ", as in no run before" if turn.only_there else "; but it had been so before"
    commits = f" (git log {turn.commits})" if turn.commits else ""
    return f"{place} the {turn.what} changed from {turn.before} to {turn.after}{alone}{commits}."


def sentences(found: Sequence[History]) -> list[str]:
    """The answer: how many histories changed, the newest changes, and how often such an answer is false."""
    pairs = changed(found)
    runs = len({point.run for history in found for point in history.points})
    total = f"{number_of_histories(len(found))} over {words.counted(runs, 'run')}"
    told = [f"Nothing shows that a level changed: {total}."]
    if pairs:
        several = len({history.key for history, _ in pairs})
        told = [f"{words.counted(len(pairs), 'change')} in {several} of {total}."]
        told += [f"{_day(h.points[c.at].at)[:10]}, {where(h)}: {change_sentence(h, c)}" for h, c in pairs[:_MOST_TOLD]]
        if len(pairs) > _MOST_TOLD:
            told.append(f"{len(pairs) - _MOST_TOLD} more changed before; the table has all of them.")
    return [*told, *_short_ones(found), _false_alarms(found)]


def number_of_histories(count: int) -> str:
    """'1 history', '5 histories'."""
    return "1 history" if count == 1 else f"{count} histories"


def _short_ones(found: Sequence[History]) -> Iterator[str]:
    short = [history for history in found if history.too_short]
    if short:
        needed = max(fewest_runs(history.family, LEVEL) for history in short)
        are = "is" if len(short) == 1 else "are"
        yield f"{number_of_histories(len(short))} {are} too short to show any change: it takes {needed} runs or more."


def _false_alarms(found: Sequence[History]) -> str:
    families = len({(history.key.sweep, history.key.box) for history in found})
    expected = f": of these {families} at most {words.number(families * (1 - LEVEL), 2)}" if families > 1 else ""
    return (
        "The histories of a sweep on a box are corrected together: where none of them changed, 5 % of such families "
        f"tell of a change all the same{expected}. Who looks again after every run sees a false one more often."
    )


# ── text and data ────────────────────────────────────────────────────────────────────────────────────────────────────


def history_text(found: Sequence[History], *, by: By | None = None) -> str:
    """For the terminal: the answer, what changed where, and the runs where there are few histories."""
    return printable("\n".join(_lines(found, by)))


def _lines(found: Sequence[History], by: By | None) -> Iterator[str]:
    yield from sentences(found)
    for history, change in changed(found)[:_MOST_TOLD]:
        yield ""
        yield change_title(history, change)
        yield f"  {range_sentence(history, change)}"
        yield from (f"  {each}" for each in turn_sentences(history, change))
    yield ""
    if len(found) > _MOST_TOLD:
        yield from _aligned([_OVERVIEW, *map(overview_row, found)])
        return
    for history in found:
        yield f"{named(history)} ({where(history)})"
        yield from _aligned([_GROUP_HEAD, *map(group_row, grouped(history, by))] if by else _run_rows(history))
        yield ""


_OVERVIEW = ("sweep", "box", "cell", "metric", "runs", "first", "last", "changes")
_GROUP_HEAD = ("", "runs", "mean of runs", "95 % interval", "to the first", "interval, all together")


def overview_row(history: History) -> tuple[str, ...]:
    """Sweep, box, cell, metric, runs, first and last mean, and the changes."""
    key, first, last = history.key, history.points[0], history.points[-1]
    days = ", ".join(f"{history.points[c.at].at:%Y-%m-%d} × {words.number(c.ratio, 2)}" for c in history.changes)
    return (
        key.sweep, key.box, key.cell, words.metric_noun(key.metric, key.label), str(len(history.points)),
        words.quantity(first.mean, key.unit), words.quantity(last.mean, key.unit), days or "none shown",
    )  # fmt: skip


def _run_rows(history: History) -> list[tuple[str, ...]]:
    """The newest runs, the oldest of them first; a line where the level changed."""
    rows: list[tuple[str, ...]] = [("run", "date", "kernel", "n", "mean", "95 % interval")]
    start = max(0, len(history.points) - _MOST_ROWS)
    if start:
        rows.append((f"... {words.counted(start, 'older run')}", "", "", "", "", ""))
    turned = {change.at: change for change in history.changes}
    for place in range(start, len(history.points)):
        if place in turned:
            rows.append((f"-- × {words.number(turned[place].ratio, 3)} --", "", "", "", "", ""))
        rows.append(run_row(history, place))
    return rows


def run_row(history: History, place: int) -> tuple[str, ...]:
    """Run, date, kernel, n, mean and interval."""
    point, unit = history.points[place], history.key.unit
    one = point.estimate
    bounds = f"{words.quantity(one.low, unit)} to {words.quantity(one.high, unit)}" if point.n > 1 else "none"
    return (
        point.run, f"{point.at:%Y-%m-%d %H:%M}", point.facts.get("kernel", "not known"), str(point.n),
        words.quantity(point.mean, unit), bounds,
    )  # fmt: skip


def group_row(group: Group) -> tuple[str, ...]:
    """Name, runs, mean and interval of the runs, ratio to the first and its interval."""
    one = group.estimate
    bounds = f"{words.quantity(one.low, one.unit)} to {words.quantity(one.high, one.unit)}" if one.n > 1 else "none"
    figures = words.ratio_figures(group.ratio, group.low, group.high)
    return (group.name, str(one.n), words.quantity(one.mean, one.unit), bounds, figures.value, figures.interval)


def _aligned(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    yield from ("  ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)).rstrip() for row in rows)


_COLUMNS = (
    "sweep", "box", "cell", "metric", "label", "unit", "run", "date", "kernel", "n", "mean", "low", "high", "sd",
    "since",
)  # fmt: skip


def history_rows(found: Sequence[History]) -> Iterator[tuple[object, ...]]:
    """One row a run and figure below a row of names; `since`: the first run of its level, '' before any change."""
    yield _COLUMNS
    for history in found:
        key, since = history.key, ""
        starts = {change.at for change in history.changes}
        for place, point in enumerate(history.points):
            one, since = point.estimate, point.run if place in starts else since
            yield (key.sweep, key.box, key.cell, key.metric, key.label, key.unit, point.run, point.at.isoformat(),
                   point.facts.get("kernel", ""), point.n, point.mean, one.low, one.high, one.sd, since)  # fmt: skip


def history_json(found: Sequence[History]) -> dict[str, Any]:
    """Everything that histories say, JSON-able: what is not known is null."""
    made = [
        {**asdict(history.key), "family": history.family,
         "runs": [{**asdict(point), "at": point.at.isoformat()} for point in history.points],
         "changes": [change_json(history, change) for change in history.changes]}
        for history in found
    ]  # fmt: skip
    read: dict[str, Any] = plain({"level": LEVEL, "sentences": sentences(found), "histories": made})
    return read


def change_json(history: History, change: Change) -> dict[str, Any]:
    """One change, with what else changed there."""
    before, after = history.points[change.at - 1], history.points[change.at]
    turns = [{**asdict(turn), "commits": turn.commits} for turn in history.turns(change)]
    return {**asdict(change), "verdict": history.verdict(change), "before": before.run, "after": after.run,
            "date": after.at.isoformat(), "turns": turns}  # fmt: skip
