"""What histories say: in sentences, as text for the terminal, and as data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from operator import attrgetter
from statistics import median_low
from typing import Any

from mountlab.analysis.history import LEVEL, By, Group, History, HistoryPoint, grouped
from mountlab.core import names, numbers
from mountlab.core.json import plain
from mountlab.core.text import aligned, lines_of
from mountlab.stats.changes import Change, fewest_runs
from mountlab.wording import phrases as words

Changed = tuple[History, Change]
_MOST_NAMED, _MOST_ROWS = 6, 40
_SOON, _SIZE = 6, 0.05
"""Runs within which a change should be reported, and the change whose delay the answer forecasts."""

# ── sentences ────────────────────────────────────────────────────────────────────────────────────────────────────────


def changed(histories: Sequence[History]) -> list[Changed]:
    """Return every change, the newest first."""
    pairs = [(history, change) for history in histories for change in history.changes]
    return sorted(pairs, key=lambda pair: (pair[0].points[pair[1].at].at, pair[0].key.cell), reverse=True)


def named(history: History) -> str:
    """'ext4/fio bs=4KiB: read bandwidth'."""
    return f"{history.key.cell}: {names.metric_noun(history.key.metric, history.key.label)}"


def where(history: History) -> str:
    """'nightly-00 on box0'."""
    return f"{history.key.sweep} on {history.key.box}"


def change_title(history: History, change: Change) -> str:
    """'Read bandwidth 9.6 % lower since 2021-02-03: slower (ext4/fio bs=4KiB, nightly-00 on box0)'."""
    noun = names.metric_heading(history.key.metric, history.key.label)
    day = f"{history.points[change.at].at:%Y-%m-%d}"
    moved = f"{numbers.percent(abs(change.ratio - 1))} {'higher' if change.ratio > 1 else 'lower'}"
    return f"{noun} {moved} since {day}: {history.verdict(change)} ({history.key.cell}, {where(history)})"


def change_sentence(history: History, change: Change) -> str:
    """Return what changed, by how much, since when, and how sure that is."""
    figures = numbers.ratio_figures(change.ratio, change.low, change.high)
    noun = names.metric_noun(history.key.metric, history.key.label)
    over = f", corrected over {number_of_histories(history.family)} and all looks"
    return (
        f"The {noun} of {history.key.cell} is {figures.value} times what it was (95 % interval {figures.low} to "
        f"{figures.high}; p = {numbers.p_text(change.p)}{over}): {history.verdict(change)}."
    )


def report_sentence(history: History, change: Change) -> str:
    """After which run the change was reported first, and what that means for its size."""
    runs = numbers.counted(change.reported - change.at + 1, "run")
    return (
        f"It was reported first after the run of {_day(history.points[change.reported].at)}, with {runs} after the "
        "change. The ratio and its interval allow for that: small changes are reported where chance enlarges them."
    )


def range_sentence(history: History, change: Change) -> str:
    """Between which runs it changed, by date; and how sure the place is."""
    before, after = history.points[change.at - 1], history.points[change.at]
    place = f"It changed between the runs of {_day(before.at)} and {_day(after.at)}"
    if change.first == change.last:
        return f"{place}, with more than 95 % probability just there."
    first, last = history.points[change.first - 1], history.points[change.last]
    return f"{place}; with 95 % probability between those of {_day(first.at)} and {_day(last.at)}."


def _day(at: Any) -> str:
    return f"{at:%Y-%m-%d %H:%M}"


def turn_sentences(history: History, change: Change) -> list[str]:
    """Return what else changed there."""
    turns = history.turns(change)
    if not turns:
        return ["Nothing that runs keep of box and tools changed there."]
    lines = []
    for turn in turns[:_MOST_NAMED]:
        place = "There" if turn.at == change.at else "Near it"
        alone = ", as in no run before" if turn.only_there else "; but it had been so before"
        commits = f" (git log {turn.commits})" if turn.commits else ""
        what = turn.what if ": " in turn.what else f"the {turn.what}"
        lines.append(f"{place} {what} changed from {turn.before} to {turn.after}{alone}{commits}.")
    return lines


def sentences(histories: Sequence[History]) -> list[str]:
    """Return the answer: how many histories changed, the newest changes, and how often such an answer is false."""
    pairs = changed(histories)
    runs = len({point.run for history in histories for point in (*history.points, *history.left_out)})
    total = f"{number_of_histories(len(histories))} over {numbers.counted(runs, 'run')}"
    lines = [f"Nothing shows that a level changed: {total}."]
    if pairs:
        several = len({history.key for history, _ in pairs})
        lines = [f"{numbers.counted(len(pairs), 'change')} in {several} of {total}."]
        lines += [
            f"{_day(h.points[c.at].at)[:10]}, {where(h)}: {change_sentence(h, c)}" for h, c in pairs[:_MOST_NAMED]
        ]
        if len(pairs) > _MOST_NAMED:
            lines.append(f"{len(pairs) - _MOST_NAMED} more changed before; the table has all of them.")
    lines += _left_out(histories)
    if short := [history for history in histories if history.too_short]:
        fewest = max(fewest_runs(history.family, LEVEL) for history in short)
        count = f"{number_of_histories(len(short))} {'is' if len(short) == 1 else 'are'}"
        lines.append(f"{count} too short to show any change: it takes {fewest} runs or more.")
    lines += _outlook(histories)
    families = len({(history.key.sweep, history.key.box) for history in histories})
    chance = f": of these {families} at most {numbers.number(families * (1 - LEVEL), 2)}" if families > 1 else ""
    false_alarms = (
        "The histories of a sweep on a box are corrected together, and for a look after every run. Where none of them "
        f"changes, at most {numbers.percent(1 - LEVEL)} of such families ever report a change, however often somebody "
        f"looks{chance}. That allows for odd runs, "
        "and in part for neighbouring runs that are alike: the page Calibration of the documentation has the rates."
    )
    return [*lines, false_alarms]


def number_of_histories(count: int) -> str:
    """'1 history', '5 histories'."""
    return "1 history" if count == 1 else f"{count} histories"


def _left_out(histories: Sequence[History]) -> Iterator[str]:
    """Yield the runs that do not count, and those that count by their mean, with the reason."""
    out = [(history, point) for history in histories for point in history.left_out]
    limit = "with half or more of their trials at the time limit, or with a metric that a limit does not bound"
    no_ratio = (False, "whose mean is 0 or no number", "No ratio to 0 exists")
    for censored, why, then in (no_ratio, (True, limit, "They have no median")):
        if pairs := [pair for pair in out if bool(pair[1].censored) == censored]:
            text = f"Left out: {_figures_of(pairs)}, {why}; the newest is {_newest(pairs)}."
            yield f"{text} {then}: look at these runs yourself."
    late = [(history, point) for history in histories for point in history.by_median]
    if late:
        median = "the figure is the median of all trials, with these as the worst"
        has = f"{'has' if len(late) == 1 else 'have'} trials that ran into their time limit"
        yield f"{_figures_of(late)} {has}: {median}; the newest is {_newest(late)}."
    zero = [(history, point) for history in histories for point in history.by_mean]
    if zero:
        count = "they count by the logarithm of their mean, and as odd runs where they are far off"
        yield f"{_figures_of(zero)} hold a trial of 0: {count}."


def _figures_of(pairs: Sequence[tuple[History, HistoryPoint]]) -> str:
    runs = {point.run for _, point in pairs}
    return f"{numbers.counted(len(pairs), 'figure')} of {numbers.counted(len(runs), 'run')}"


def _newest(pairs: Sequence[tuple[History, HistoryPoint]]) -> str:
    history, point = max(pairs, key=lambda pair: pair[1].at)
    return f"{named(history)} of {_day(point.at)}"


def soon(history: History) -> tuple[int, float] | None:
    """Return the change from now on that is reported within six runs, or as few more as it takes, in four of five
    cases."""
    return next(((runs, size) for runs, size in history.visible if runs >= _SOON), None)


def _outlook(histories: Sequence[History]) -> Iterator[str]:
    """Yield how large a change would be found, and how late."""
    sizes = list(filter(None, map(soon, histories)))
    if not sizes:
        return
    runs, size = median_low(sizes)
    of = f", by the median of {number_of_histories(len(sizes))}" if len(sizes) > 1 else ""
    by_history = ([runs for runs, size in history.visible if size <= _SIZE] for history in histories)
    delays = [delays[0] for delays in by_history if delays]
    late = f"at most {max(delays)} runs late" if delays else "not within the runs that are there"
    some = f" in {len(delays)} of {number_of_histories(len(histories))}" if 0 < len(delays) < len(histories) else ""
    yield (
        f"A change of {numbers.percent(size)} from now on would be reported after {runs} runs, in four of five "
        f"cases{of}; one of {numbers.percent(_SIZE)} {late}{some}."
    )


# ── text and data ────────────────────────────────────────────────────────────────────────────────────────────────────


def history_text(histories: Sequence[History], *, by: By | None = None) -> str:
    """For the terminal: the answer, what changed where, and the runs where there are few histories."""
    lines = sentences(histories)
    for history, change in changed(histories)[:_MOST_NAMED]:
        about = (range_sentence(history, change), report_sentence(history, change), *turn_sentences(history, change))
        lines += ["", change_title(history, change), *(f"  {sentence}" for sentence in about)]
    lines.append("")
    if len(histories) > _MOST_NAMED:
        return lines_of([*lines, *aligned([_OVERVIEW, *map(overview_row, histories)])])
    for history in histories:
        rows = [_GROUP_HEAD, *map(group_row, grouped(history, by))] if by else _run_rows(history)
        lines += [f"{named(history)} ({where(history)})", *aligned(rows), ""]
    return lines_of(lines)


_OVERVIEW = ("sweep", "box", "cell", "metric", "runs", "first", "last", "changes", "visible")
_GROUP_HEAD = ("", "runs", "mean of runs", "95 % interval", "to the first", "interval, all together")


def overview_row(history: History) -> tuple[str, ...]:
    """Return sweep, box, cell, metric, runs, first and last mean, the changes, and the change that would show soon."""
    key, ends = history.key, (history.points[:1], history.points[-1:])
    size = soon(history)
    days = ", ".join(f"{history.points[c.at].at:%Y-%m-%d} × {numbers.number(c.ratio, 2)}" for c in history.changes)
    means = [numbers.quantity(end[0].mean, key.unit) if end else "none" for end in ends]
    visible = f"{numbers.percent(size[1])} in {size[0]} runs" if size else "none yet"
    what = (key.sweep, key.box, key.cell, names.metric_noun(key.metric, key.label))
    return (*what, str(len(history.points)), *means, days or "none shown", visible)


def _run_rows(history: History) -> list[tuple[str, ...]]:
    """Return the newest runs, the oldest of them first; a line where the level changed."""
    rows: list[tuple[str, ...]] = [("run", "date", "kernel", "n", "mean", "95 % interval")]
    start = max(0, len(history.points) - _MOST_ROWS)
    if start:
        rows.append((f"... {numbers.counted(start, 'older run')}", "", "", "", "", ""))
    turned = {change.at: change for change in history.changes}
    for place in range(start, len(history.points)):
        if place in turned:
            rows.append((f"-- × {numbers.number(turned[place].ratio, 3)} --", "", "", "", "", ""))
        rows.append(run_row(history, place))
    return rows


def run_row(history: History, place: int) -> tuple[str, ...]:
    """Run, date, kernel, n, mean and interval."""
    point, unit = history.points[place], history.key.unit
    one = point.estimate
    has_interval = point.n > 1 and not point.censored
    bounds = f"{numbers.quantity(one.low, unit)} to {numbers.quantity(one.high, unit)}" if has_interval else "none"
    n, mean = words.trial_count(point.n, point.censored), numbers.quantity(point.mean, unit)
    return (point.run, _day(point.at), point.facts.get("kernel", "not known"), n, mean, bounds)


def group_row(group: Group) -> tuple[str, ...]:
    """Return name, runs, mean and interval of the runs, ratio to the first and its interval."""
    one = group.estimate
    bounds = f"{numbers.quantity(one.low, one.unit)} to {numbers.quantity(one.high, one.unit)}" if one.n > 1 else "none"
    figures = numbers.ratio_figures(group.ratio, group.low, group.high)
    return (group.name, str(one.n), numbers.quantity(one.mean, one.unit), bounds, figures.value, figures.interval)


_OF_KEY, _OF_POINT, _OF_ESTIMATE = (
    ("sweep", "box", "cell", "metric", "label", "unit"), ("n", "censored", "mean"), ("low", "high", "sd"),
)  # fmt: skip


def history_rows(histories: Sequence[History]) -> Iterator[tuple[object, ...]]:
    """Yield one row a run and figure below a row of names; `since`: the first run of its level, '' before any
    change."""
    yield (*_OF_KEY, "run", "date", "kernel", *_OF_POINT, *_OF_ESTIMATE, "since")
    of_key, of_point, of_estimate = (attrgetter(*names) for names in (_OF_KEY, _OF_POINT, _OF_ESTIMATE))
    for history in histories:
        since, starts = "", {change.at for change in history.changes}
        for place, point in enumerate(history.points):
            since = point.run if place in starts else since
            run = (point.run, point.at.isoformat(), point.facts.get("kernel", ""))
            yield (*of_key(history.key), *run, *of_point(point), *of_estimate(point.estimate), since)


def history_json(histories: Sequence[History]) -> dict[str, object]:
    """Return everything that histories say, JSON-able: what is not known is null."""
    entries = [
        {
            **asdict(history.key),
            "family": history.family,
            "runs": _runs_json(history),
            "left_out": [
                {"run": point.run, "mean": point.mean, "n": point.n, "censored": point.censored}
                for point in history.left_out
            ],
            "visible": [{"runs": runs, "size": size} for runs, size in history.visible],
            "changes": [change_json(history, change) for change in history.changes],
        }
        for history in histories
    ]
    document: dict[str, object] = plain({"level": LEVEL, "sentences": sentences(histories), "histories": entries})
    return document


def _runs_json(history: History) -> list[dict[str, object]]:
    """Return the runs; of facts with several values those values that differ between runs."""
    first = history.points[0].facts if history.points else {}
    steady = {name for name in first if ": " in name and len({point.facts.get(name) for point in history.points}) == 1}
    return [
        {
            **asdict(replace(point, facts={})),
            "facts": {name: value for name, value in point.facts.items() if name not in steady},
            "at": point.at.isoformat(),
        }
        for point in history.points
    ]


def change_json(history: History, change: Change) -> dict[str, object]:
    """Return one change, with what else changed there."""
    before, after = history.points[change.at - 1], history.points[change.at]
    turns = [{**asdict(turn), "commits": turn.commits} for turn in history.turns(change)]
    return {
        **asdict(change),
        "verdict": history.verdict(change),
        "before": before.run,
        "after": after.run,
        "date": after.at.isoformat(),
        "turns": turns,
    }
