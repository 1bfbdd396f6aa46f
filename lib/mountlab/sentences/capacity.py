"""Sentences on searches for a capacity. Every figure in them comes from the data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from mountlab.analysis.load_curve import CellSearch, LoadCurve
from mountlab.core.errors import in_one_line
from mountlab.core.findings import Caveat, Comparison, Estimate
from mountlab.core.groups import by_key
from mountlab.core.metrics import PERCENT_OF
from mountlab.core.model import Sweep
from mountlab.core.numbers import MISSING, count_figures, counted, listed, number, percent, quantity, rough_duration
from mountlab.core.objectives import objective_text, percentile_text
from mountlab.core.text import capital
from mountlab.stats.histograms import ios_needed
from mountlab.wording import verdicts

UNIT = "requests/s"
SEEN_LATE_S = 1e-3
"""Requests that were issued later than this did not keep their schedule; where none was, others were never issued."""
NO_SEARCH = "The run holds no search for a capacity: a workload asks for one by `capacity`."


def bounded(capacity: Estimate) -> bool:
    """Return whether the trials bound a capacity on both sides."""
    return capacity.low > 0 and math.isfinite(capacity.high)


def capacity_figures(search: CellSearch) -> tuple[str, str]:
    """Return the value and the interval for two columns; of an interval that is open at an end the bound."""
    low, high = search.capacity.low, search.capacity.high
    if bounded(search.capacity):
        figures = count_figures(search.capacity.mean, low, high)
        return figures.value, figures.interval
    if low > 0 or math.isfinite(high):
        return (f"≥ {_rate(low)}" if low > 0 else f"< {_rate(high)}"), ""
    return "not measured", ""


def _rate(rate: float) -> str:
    """'1 230', '5': three significant digits of a rate, which is a whole number."""
    return number(float(f"{rate:.3g}"), 0)


def _rate_text(rate: float) -> str:
    """'1 request/s', '1 230 requests/s'."""
    return f"{_rate(rate)} {'request/s' if rate == 1 else UNIT}"


# ── the answer ───────────────────────────────────────────────────────────────────────────────────────────────────────

BUSY = ("box-busy", "time-stolen", "other-io", "swapping", "throttled", "drive-hot")
"""Caveats on what else the box did, or on what slowed it."""


def by_workload(searches: Sequence[CellSearch]) -> dict[str, list[CellSearch]]:
    """Return the searches below the labels of their workloads."""
    return by_key((search.cell.workload.label, search) for search in searches)


def ratios_of(comparisons: Iterable[Comparison]) -> dict[str, Comparison]:
    """Return cell to its comparison with the baseline, with the interval that holds for all together."""
    return {verdicts.cell_id(c.candidate, c): c for c in comparisons if c.metric == "capacity"}


def answer_lines(
    sweep: Sweep, searches: Sequence[CellSearch], comparisons: Iterable[Comparison], caveats: Sequence[Caveat]
) -> list[tuple[str, str]]:
    """Return the answer of each workload, the baseline first, after its label where there are several; then why
    capacities were not measured, and what would measure them.

    'At read p99 ≤ 5 ms, ext4 takes 3 140 [3 010, 3 280] requests/s; xfs takes 3 800 [3 650, 3 960] requests/s, 1.21
    times as many [1.15, 1.27]: faster.'"""
    ratios, groups = ratios_of(comparisons), by_workload(searches)
    lines = []
    for label, members in groups.items():
        name = label if len(groups) > 1 else ""
        ordered = sorted(members, key=lambda member: member.cell.filesystem.name != sweep.baseline)
        measured = [search for search in ordered if is_measured(search)]
        alike = by_key(
            (_clause(search, ratios.get(search.cell.id), sweep, caveats), search.cell.filesystem.name)
            for search in measured
        )
        clauses = [_said_of(names, clause) for clause, names in alike.items()]
        sentences = ["; ".join(clauses[at : at + _MOST_CLAUSES]) for at in range(0, len(clauses), _MOST_CLAUSES)]
        if sentences:
            at = objective_text(members[0].search.objective)
            lines.append((name, f"At {at}, {'. '.join(sentences)}."))
        if wider := _wider_text(measured):
            lines.append((name, wider))
        if missing := [search for search in ordered if not is_measured(search)]:
            names = listed([search.cell.filesystem.name for search in missing])
            if not measured:
                how_much = f"how much {names} {'takes' if len(missing) == 1 else 'take'}"
                lines.append((name, f"Not measured: {how_much} at {objective_text(members[0].search.objective)}."))
            reasons = " ".join(_reasons(missing))
            lines.append((name, f"Not measured: {names}. {reasons}") if measured else ("", reasons))
            lines.append(("To measure it", f"{capital('; '.join(_next_steps(missing, caveats)))}."))
    return lines


_MOST_CLAUSES = 3
"""Capacities in one sentence."""


def is_measured(search: CellSearch) -> bool:
    """Return whether the trials bound the capacity on one side at least."""
    return search.capacity.low > 0 or math.isfinite(search.capacity.high)


def _clause(search: CellSearch, ratio: Comparison | None, sweep: Sweep, caveats: Sequence[Caveat]) -> str:
    """'takes 3 800 [3 650, 3 960] requests/s, 1.21 times as many [1.15, 1.27]: faster'."""
    text = _takes(search, caveats)
    if ratio is None or not verdicts.has_interval(ratio):
        return text
    times, _, interval = verdicts.times_text(ratio).partition(" times")
    verdict = verdicts.verdict_or_why(ratio, sweep.design.smallest_effect)
    return f"{text}, {times} times as many{interval}: {verdict}"


def _said_of(names: Sequence[str], clause: str) -> str:
    """'ext4 takes 3 300 requests/s', 'ext4 and xfs each take 3 300 requests/s: no difference is shown'."""
    if len(names) == 1:
        return f"{names[0]} {clause}"
    clause = clause.replace("takes", "take", 1).replace("already fails", "already fail", 1)
    alike = ": no difference is shown" if "[" in clause and ": " not in clause else ""
    return f"{listed(names)} each {clause}{alike}"


def _wider_text(searches: Sequence[CellSearch]) -> str:
    """'On ext4 the objective held at up to 2 780 requests/s and failed from 4 000 requests/s on. The interval reaches
    further, since a search of 15 trials is short.', of intervals that reach beyond these rates; '' where none does."""
    answers = by_key(
        ((_tried_text(search), _why_further(search)), search.cell.filesystem.name)
        for search in searches
        if bounded(search.capacity) and _reaches_further(search)
    )
    return " ".join(
        f"On {listed(names)} the objective {tried}. The interval reaches further, since {why}."
        for (tried, why), names in answers.items()
    )


def _why_further(search: CellSearch) -> str:
    """'the search was allowed to stop at ± 50 %', 'a search of 15 trials is short'."""
    width = search.search.half_width
    if half_width(search.capacity) <= width:
        return f"the search was allowed to stop at ±\u00a0{percent(width)}"
    return f"a search of {counted(len(search.counted), 'trial')} is short"


def _reaches_further(search: CellSearch) -> bool:
    """Return whether the trials agree on two rates between which the capacity lies, and the interval holds both."""
    highest, lowest = _answered_rates(search)
    if highest is None or lowest is None or lowest <= highest:
        return False
    return search.capacity.low < highest and lowest < search.capacity.high


def _takes(search: CellSearch, caveats: Sequence[Caveat]) -> str:
    """'takes 3 140 [3 010, 3 280] requests/s'; of an interval that is open at an end 'takes at least 12 000 requests/s'
    or 'already fails at 25 requests/s on this busy box'."""
    capacity, codes = search.capacity, {caveat.code for caveat in _about(search, caveats)}
    if capacity.low <= 0:
        return f"already fails at {_rate_text(capacity.high)}{' on this busy box' if codes.intersection(BUSY) else ''}"
    if not bounded(capacity):
        return f"takes at least {_rate_text(capacity.low)}"
    figures = count_figures(capacity.mean, capacity.low, capacity.high)
    if "capacity-changed" in codes:
        return f"takes between {figures.low} and {figures.high} {UNIT} (its capacity changed during the search)"
    width = search.search.half_width
    wide = f" ({half_width_text(capacity)}, where ±\u00a0{percent(width)} was asked for)"
    imprecise = half_width(capacity) > width and search.stop is not None and search.stop.reason != "precise"
    return f"takes {figures} {UNIT}{wide if imprecise else ''}"


# ── what was not measured ────────────────────────────────────────────────────────────────────────────────────────────


def _faults(search: CellSearch) -> dict[str, int]:
    """Return what keeps trials from an answer, to how many counted trials it does."""
    metrics = [curve.metric for curve in search.curves]
    short = sum(any(metric not in trial.latencies for metric in metrics) for trial in search.counted)
    return {"short": short, "late": len(search.lost)}


def _main_fault(search: CellSearch) -> str:
    """Return the fault of half of the trials or more; '' where neither has so many: the trials were too few."""
    least = max(1, len(search.counted) / 2)
    return next((fault for fault, trials in _faults(search).items() if trials >= least), "")


def _reasons(searches: Sequence[CellSearch]) -> list[str]:
    """Return why the capacities of these searches were not measured, each in a sentence."""
    percentile = listed([_percentile_of(curve) for curve in searches[0].curves])
    words = {"short": f"had too few requests for {percentile}", "late": "missed their schedule of arrivals"}
    sentences = []
    for fault, members in by_key((_main_fault(search), search) for search in searches).items():
        if fault:
            shares = [_share_of_trials(_faults(search)[fault], search) for search in members]
            sentences.append(f"{listed(shares)} {words[fault]}.")
            continue
        for search in members:
            name, trials = search.cell.filesystem.name, counted(len(search.counted), "trial")
            tried = f"{trials} of {name} were too few: the objective {_tried_text(search)}."
            sentences.append(tried if len(search.counted) > len(search.lost) else f"No trial of {name} counts.")
    return sentences


def _share_of_trials(count: int, search: CellSearch) -> str:
    """'5 of 8 trials of tmpfs'."""
    return f"{count} of {counted(len(search.counted), 'trial')} of {search.cell.filesystem.name}"


def _tried_text(search: CellSearch) -> str:
    """'held at up to 400 requests/s and failed from 800 requests/s on': what the trials on schedule answered."""
    highest, lowest = _answered_rates(search)
    if highest is not None and lowest is not None and lowest <= highest:
        return f"held and failed by turns between {_rate(lowest)} and {_rate_text(highest)}"
    parts = [f"held at up to {_rate_text(highest)}"] if highest is not None else []
    return " and ".join([*parts, *([f"failed from {_rate_text(lowest)} on"] if lowest is not None else [])])


def _answered_rates(search: CellSearch) -> tuple[float | None, float | None]:
    """Return the highest rate at which the objective held, and the lowest at which it failed."""
    rates = by_key((trial.meets_objective, trial.asked) for trial in search.counted if trial.on_schedule)
    return max(rates.get(True, ()), default=None), min(rates.get(False, ()), default=None)


def _next_steps(searches: Sequence[CellSearch], caveats: Sequence[Caveat]) -> list[str]:
    """Return what would measure these capacities: 'a runtime of 40 min or a looser objective', 'a quiet box'."""
    by_fault = by_key((_main_fault(search), search) for search in searches)
    steps = []
    if short := by_fault.get("short"):
        wanted = max(ios_needed(PERCENT_OF[curve.metric]) for search in short for curve in search.curves)
        lowest = min(trial.asked for search in short for trial in search.counted)
        steps.append(f"a `runtime` of {rough_duration(wanted / lowest)} or a looser objective")
    if any(search.stop is None or search.stop.reason == "not finished" for search in searches):
        steps.append("the rest of the search (`mountlab resume`)")
    elif "" in by_fault:
        steps.append(f"more trials (`max_trials` above {max(search.search.max_trials for search in by_fault[''])})")
    busy = any(caveat.code in BUSY for search in searches for caveat in _about(search, caveats))
    return [*steps, *(["a quiet box"] if busy or "late" in by_fault else [])]


def _about(search: CellSearch, caveats: Sequence[Caveat]) -> list[Caveat]:
    """Return the caveats that weaken the capacity of a cell: notes do not."""
    about = (caveat for caveat in caveats if caveat.scope == "cell" and caveat.subject == search.cell.id)
    return [caveat for caveat in about if caveat.severity != "note" and "capacity".startswith(caveat.metrics)]


def stop_sentence(search: CellSearch) -> str:
    """'24 trials, precise', '11 trials: the objective already fails at the floor of 25 requests/s'."""
    trials, stop = counted(len(search.counted), "trial"), search.stop
    if stop is None:
        return trials
    if stop.reason == "could not":
        return f"{trials}: {in_one_line(stop.why)}"
    ends = {"max reached": "the most that were allowed, not precise", "budget": "out of time"}
    return f"{trials}, {ends.get(stop.reason, stop.reason)}"


def open_sentence(search: CellSearch) -> str:
    """Say what the open end of an interval means; '' of one that has none, and of what was not measured."""
    if bounded(search.capacity) or not is_measured(search):
        return ""
    name = search.cell.filesystem.name
    if search.capacity.low > 0:
        return f"{name}: no upper bound, since the objective did not fail often enough at the highest rates."
    return f"{name}: no lower bound, since the objective did not hold often enough at the lowest rates."


def lost_sentence(search: CellSearch) -> str:
    """'2 of 24 trials of ext4 missed their schedule, from 2 580 requests/s on, and do not count. Some requests started
    up to 800 ms late.'; '' where all count."""
    if not search.lost:
        return ""
    latest = max(trial.lateness for trial in search.lost)
    how = f"started up to {quantity(latest, 's')} late" if latest >= SEEN_LATE_S else "were never issued"
    lowest = _rate_text(min(trial.asked for trial in search.lost))
    trials = _share_of_trials(len(search.lost), search)
    if len(search.lost) == 1:
        return f"{trials} missed its schedule, at {lowest}, and does not count. Some requests {how}."
    return f"{trials} missed their schedule, from {lowest} on, and do not count. Some requests {how}."


def undrawn_sentence(search: CellSearch) -> str:
    """Say how many trials that count are not in the figure, and why; '' where all are."""
    metrics = {curve.metric: curve for curve in search.curves}
    on_schedule = [trial for trial in search.counted if trial.on_schedule]
    missing = [sum(metric not in trial.latencies for trial in on_schedule) for metric in metrics]
    if not any(missing):
        return ""
    name, what = search.cell.filesystem.name, listed([_percentile_of(curve) for curve in metrics.values()])
    return f"Not drawn: {counted(max(missing), 'trial')} of {name}, with too few requests for {what}."


def _percentile_of(curve: LoadCurve) -> str:
    """'read p99.9'."""
    return f"{curve.direction} {percentile_text(curve.percentile)}"


def knee_sentence(curves: Sequence[LoadCurve]) -> str:
    """'Read p99 is flat up to 2 100 requests/s on ext4, and more than twice as long from 2 400 requests/s on.'; ''
    where no curve shows it."""
    knees = by_key((knee, curve.filesystem) for curve in curves if (knee := curve.knee))
    ends = [
        f"up to {_rate_text(low)} on {listed(names)}, and more than twice as long from {_rate_text(high)} on"
        for (low, high), names in knees.items()
    ]
    what = _percentile_of(curves[0])
    return f"{capital(what)} is flat {'; '.join(ends)}." if ends else ""


def half_width(capacity: Estimate) -> float:
    """Return how far the ends lie from the middle of the interval, relative; infinite where one is open."""
    return (capacity.high - capacity.low) / (capacity.high + capacity.low) if bounded(capacity) else math.inf


def half_width_text(capacity: Estimate) -> str:
    """'± 4.4 %'."""
    return f"±\u00a0{percent(half_width(capacity))}" if bounded(capacity) else MISSING
