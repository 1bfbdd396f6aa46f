"""Sentences, and numbers with their intervals as text. Every figure in them comes from the data.

Texts are plain: `mountlab.html` escapes them on their way into a page.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any

from mountlab.errors import in_one_line
from mountlab.model import (
    METRICS,
    Better,
    Caveat,
    Comparison,
    OptionState,
    PublishedFigure,
    Severity,
    Stop,
    Trial,
    Until,
    Verdict,
)
from mountlab.stats import OVER_BOXES_METHOD, WELCH_METHOD
from mountlab.units import format_seconds, scale_for

THIN_SPACE, FIGURE_SPACE, PUNCTUATION_SPACE = "\u202f", "\u2007", "\u2008"
"""Between thousands (no line breaks there), and as wide as a digit and as a full stop."""
MINUS, TIMES, MISSING = "\u2212", "\u00d7", "n/a"
NOT_IN_SWEEP = "not in the sweep"
NOT_MEASURED = "not measured"
"""In the place of a figure: the sweep file takes this cell out."""

_MEAN_DIGITS, _RATIO_DIGITS, _VAST = 3, 2, 100
_LARGEST = 1e6
"""An end beyond it is told as beyond it: more digits of it would be noise."""
_SENTENCES = 4
"""Comparisons that get a sentence of their own in the answer; the rest is summed up in one more."""


# ── numbers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Figures:
    """A value and its interval as text, all three with the same number of decimals."""

    value: str
    low: str
    high: str
    level: str = ""
    """Of the interval, where it is another one than that of its page: '90 %'."""

    @property
    def interval(self) -> str:
        """'[6.5, 7.3]', '[0.99, 1.01] (90 %)', or '' where there is no interval."""
        level = f" ({self.level})" if self.level else ""
        return f"[{self.low}, {self.high}]{level}" if MISSING not in (self.low, self.high) else ""

    def __str__(self) -> str:
        return f"{self.value} {self.interval}".strip()


def number(value: float, decimals: int) -> str:
    """A number with a fixed count of decimals, thousands set apart by a thin space; 'n/a' for NaN."""
    if math.isnan(value):
        return MISSING
    if math.isinf(value):
        return "∞" if value > 0 else f"{MINUS}∞"
    return f"{value:,.{decimals}f}".replace(",", THIN_SPACE).replace("-", MINUS)


def mean_figures(mean: float, low: float, high: float, *, factor: float = 1.0) -> Figures:
    """A mean and its interval, divided by `factor`: three significant digits, five where its interval is tight."""
    return _figures(mean / factor, low / factor, high / factor, digits=_MEAN_DIGITS)


def ratio_figures(ratio: float, low: float, high: float) -> Figures:
    """A ratio and its interval: two significant digits, up to four where the interval is tight. An end beside 1 that
    would be rounded onto it is shown as beside it: '<1.00', '>1'."""
    figures = _figures(ratio, low, high, digits=_RATIO_DIGITS)
    return replace(figures, low=_beside_one(low, figures.low), high=_beside_one(high, figures.high))


def _beside_one(end: float, shown: str) -> str:
    rounded_onto = shown == number(1, len(_fraction(shown))) and end != 1
    return f"{'>' if end > 1 else '<'}{shown}" if rounded_onto else shown


def _figures(value: float, low: float, high: float, *, digits: int) -> Figures:
    """An interval so wide that its ends would need other decimals is shown as '<0.1' and by two digits, or as beyond a
    million. Where there is no value its bounds tell the decimals."""
    known = next((each for each in (value, low, high) if math.isfinite(each)), value)
    decimals = max(_decimals(known, digits), min(_decimals_of_spread((high - low) / 2), _decimals(known, digits + 2)))
    smallest = 10.0**-decimals
    shown_low = f"<{number(smallest, decimals)}" if 0 < low < smallest / 2 else number(low, decimals)
    vast = math.isfinite(high) and abs(high) > _VAST * abs(value)
    return Figures(number(value, decimals), shown_low, _vast(high) if vast else number(high, decimals))


def _vast(high: float) -> str:
    return number(float(f"{high:.2g}"), 0) if abs(high) <= _LARGEST else f">{number(_LARGEST, 0)}"


def _decimals(value: float, digits: int) -> int:
    """Decimals that show `digits` significant digits of `value`; none for zero and for what is not finite."""
    if not math.isfinite(value) or value == 0:
        return 0
    return max(0, digits - 1 - math.floor(math.log10(abs(value))))


def _decimals_of_spread(half: float) -> int:
    """Decimals for half an interval: one significant digit, two where the first is a 1 (0.12, not 0.1)."""
    return _decimals(half, 2 if f"{half:e}".startswith("1") else 1)


def align_decimals(texts: Sequence[str]) -> list[str]:
    """The texts, filled up on the right so that the decimal points of a right-aligned column stand below each other."""
    widest = max((len(_fraction(text)) for text in texts), default=0)
    return [text + _filler(len(_fraction(text)), widest) for text in texts]


def _fraction(text: str) -> str:
    return text.partition(".")[2] if text != MISSING else ""


def _filler(digits: int, widest: int) -> str:
    point = PUNCTUATION_SPACE if digits == 0 < widest else ""
    return point + FIGURE_SPACE * (widest - digits)


def quantity(value: float, unit: str) -> str:
    """A value in base units with the unit that suits it: '598 MB/s'. Unknown units are shown as they are."""
    scale = scale_for(unit, abs(value))
    return f"{scale.show(value)}\u00a0{scale.unit}"


def best(intervals: Sequence[tuple[float, float, float]], better: Better) -> list[float]:
    """The means of (mean, low, high) that may be the best: the best one, and from there on all whose interval meets its
    own, up to the first that does not: noise alone makes none better than one that is measured better.

    The best is the largest of a rate and the smallest of a time. Empty where no mean is known, or neither is better.
    """
    known = sorted((each for each in intervals if math.isfinite(each[0])), reverse=better == "higher")
    if not known or better == "neither":
        return []
    mean, low, high = known[0]
    meeting = takewhile(lambda each: each[0] == mean or (each[1] <= high and low <= each[2]), known)
    return [each[0] for each in meeting]


def percent(fraction: float) -> str:
    """0.02 as '2 %', 0.0123 as '1.2 %': two significant digits, the unit set apart by a no-break space."""
    return f"{number(fraction * 100, 0 if abs(fraction) >= 0.1 else _trimmed(fraction * 100))}\u00a0%"


def _trimmed(value: float) -> int:
    """Decimals for two significant digits, without a zero at the end."""
    decimals = _decimals(value, 2)
    text = f"{value:.{decimals}f}"
    return decimals - (len(text) - len(text.rstrip("0"))) if "." in text else 0


def counted(n: int, noun: str) -> str:
    """'1 block', '5 blocks', '3 boxes'."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}{'es' if noun.endswith('x') else 's'}"


def listed(parts: Sequence[str]) -> str:
    """'a', 'a and b', 'a, b and c'."""
    return " and ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class MetricWords:
    """How one metric is spoken of. `ratio` has the places {candidate}, {times} and {baseline}."""

    noun: str
    ratio: str


def _rate(noun: str, verb: str) -> MetricWords:
    return MetricWords(noun, f"{{candidate}} {verb} {{times}} as fast as {{baseline}}")


def _many(noun: str) -> MetricWords:
    return MetricWords(noun, f"{{candidate}} has {{times}} the {noun} of {{baseline}}")


_PARTS = {
    "mean": "mean {} latency", "p50": "median {} latency", "p95": "95th-percentile {} latency",
    "p99": "99th-percentile {} latency", "p99_9": "99.9th-percentile {} latency",
}  # fmt: skip

METRIC_WORDS: dict[str, MetricWords] = {
    "read_bandwidth": _rate("read bandwidth", "reads"),
    "write_bandwidth": _rate("write bandwidth", "writes"),
    "bandwidth": _rate("bandwidth", "moves data"),
    "read_iops": _many("read IOPS"),
    "write_iops": _many("write IOPS"),
    "read_ios": _many("number of reads"),
    "write_ios": _many("number of writes"),
    "sync_ios": _many("number of syncs"),
    **{
        # Of these two fio's percentiles are of completion, its mean of submission too (METHODS tells why).
        f"{side}_latency_{part}": _many(text.format(side if part == "mean" else f"{side} completion"))
        for side in ("read", "write")
        for part, text in _PARTS.items()
    },
    **{
        f"{side}_{kind}_latency_{part}": _many(text.format(f"{side} {kind}"))
        for side in ("read", "write")
        for kind in ("submission", "completion", "total")
        for part, text in _PARTS.items()
        if f"{side}_{kind}_latency_{part}" in METRICS
    },
    **{f"sync_latency_{part}": _many(text.format("sync")) for part, text in _PARTS.items()},
    "user_cpu": _many("user processor time"),
    "system_cpu": _many("system processor time"),
    "context_switches": _many("context switches"),
    "major_faults": _many("major page faults"),
    "minor_faults": _many("minor page faults"),
    "disk_utilization": _many("disk utilization"),
    "file_rate": _rate("file rate", "handles files"),
    "operation_rate": _rate("operation rate", "does operations"),
    "sync_rate": _rate("sync rate", "syncs"),
    "operation_latency": _many("operation latency"),
    "operation_latency_min": _many("least operation latency"),
    "operation_latency_max": _many("greatest operation latency"),
    "app_overhead": _many("time spent by the tool itself"),
    "space_used": _many("used share of the space"),
    "operations": _many("operations"),
    "elapsed": _many("elapsed time"),
    "bytes": _many("bytes moved"),
    "mkfs_time": _many("mkfs time"),
    "mount_time": _many("mount time"),
}
"""One entry for every metric of `model.METRICS`."""


def metric_words(metric: str) -> MetricWords:
    """Return the words of a metric; of one that a sweep defines, its name without underscores."""
    return METRIC_WORDS.get(metric) or _many(metric.replace("_", " "))


def metric_noun(metric: str, label: str = "") -> str:
    """'write bandwidth', or 'sync rate (fdatasync)' where a label tells rows of one metric apart."""
    noun = metric_words(metric).noun
    return f"{noun} ({label})" if label else noun


def metric_heading(metric: str, label: str = "") -> str:
    """The noun of a metric as a heading: 'Write bandwidth'."""
    noun = metric_noun(metric, label)
    return noun[0].upper() + noun[1:]


def workload_label(workload: str, factors: Mapping[str, str]) -> str:
    """'fio rw=read bs=4KiB' from a name and its factors; a workload that already says them is left as it is."""
    missing = [f"{key}={value}" for key, value in factors.items() if f"{key}={value}" not in workload.split()]
    return " ".join([workload, *missing])


def cell_id(filesystem: str, comparison: Comparison) -> str:
    """The id of the cell of one side of a comparison, as `model.Cell.id` makes it."""
    return f"{filesystem}/{workload_label(comparison.workload, comparison.factors)}"


# ── comparisons ──────────────────────────────────────────────────────────────────────────────────────────────────────


def effect(comparison: Comparison) -> float:
    """The size of an effect, whichever way it goes: |log ratio|. An unknown ratio sorts last, as -1."""
    return abs(math.log(comparison.ratio)) if 0 < comparison.ratio < math.inf else -1.0


def together(comparison: Comparison) -> Comparison:
    """The comparison with the interval that belongs to its verdict. Where that is `same`, the one of its two one-sided
    tests, which lies inside the margin; else the one that holds together with those of all others, which leaves out 1
    exactly where the verdict is faster or slower."""
    if comparison.verdict == "same" and not math.isnan(comparison.level_same):
        low, high, level = comparison.low_same, comparison.high_same, comparison.level_same
        return replace(comparison, low=low, high=high, level=level)
    return replace(comparison, low=comparison.low_all, high=comparison.high_all)


def compared_figures(comparison: Comparison) -> Figures:
    """Ratio and interval as text; of a verdict `same` with the level of the interval, which is not that of the page."""
    figures = ratio_figures(comparison.ratio, comparison.low, comparison.high)
    same = comparison.verdict == "same" and comparison.level == comparison.level_same
    return replace(figures, level=level_text(comparison.level)) if same else figures


def level_text(level: float) -> str:
    """'90 %', '99.4 %'."""
    return f"{100 * level:.4g}\u00a0%"


def has_interval(comparison: Comparison) -> bool:
    """Whether both bounds are known: `why_no_interval` says when they are not. They may be infinite."""
    return not (math.isnan(comparison.low) or math.isnan(comparison.high))


def why_no_interval(comparison: Comparison) -> str:
    """Why a comparison without an interval has none."""
    return "n is below 2" if comparison.n < 2 else "all trials are alike, and the step of the figure is unknown"


def trial_count(n: int, censored: int) -> str:
    """'10', or '10, 2 at the limit (median)': n of an estimate, with the trials that ran into the time limit."""
    if not censored:
        return str(n)
    return f"{n}, {'all' if censored == n else censored} at the limit ({'median' if 2 * censored < n else 'no figure'})"


def without_value(late: int) -> str:
    """'2 trials ran into the time limit and have no value', for what is made of the values of trials."""
    return f"{counted(late, 'trial')} ran into the time limit and {'has' if late == 1 else 'have'} no value"


def pair_count(comparison: Comparison) -> str:
    """'10', or '10, 2 at the limit (median)': n of a comparison, with the blocks in which a side ran into its limit."""
    late = comparison.censored
    return f"{comparison.n}, {late} at the limit ({_kind(comparison)})" if late else str(comparison.n)


def _kind(comparison: Comparison) -> str:
    """What the ratio of a comparison with trials at the time limit is."""
    return "median" if math.isfinite(comparison.ratio) else "only a bound" if comparison.n else "no ratio"


def counted_pairs(comparison: Comparison) -> str:
    """'n = 5 blocks'; of a comparison that is not paired, the trials of the side with fewer. Where trials ran into
    their time limit, in how many blocks, and what the ratio then is."""
    if comparison.censored:
        limit = f"with trials at the time limit in {counted(comparison.censored, 'block')}"
        return f"n = {counted(comparison.n, 'block')} that tell, {limit}, so that the ratio is a median"
    if comparison.method == WELCH_METHOD:
        return f"n = {comparison.n} on the side with fewer trials"
    return f"n = {counted(comparison.n, _unit_of(comparison))}"


def _unit_of(comparison: Comparison) -> str:
    """What n counts."""
    return "box" if comparison.method == OVER_BOXES_METHOD else "block"


def strongest_first(comparisons: Iterable[Comparison]) -> list[Comparison]:
    """Decided comparisons by the size of their effect, then those shown to be the same, then the undecided."""
    rank = {"faster": 0, "slower": 0, "same": 1, "undecided": 2}
    return sorted(comparisons, key=lambda c: (rank[c.verdict], -effect(c)))


def verdict_text(verdict: Verdict, smallest_effect: float) -> str:
    """'faster', 'slower', 'the same within 2 %', 'undecided'."""
    return f"the same within {percent(smallest_effect)}" if verdict == "same" else verdict


def verdict_of(comparison: Comparison, smallest_effect: float) -> str:
    """The same of one comparison; 'better' and 'worse' where the sweep defines the metric, which may be no speed."""
    own = _OF_OWN_METRICS.get(comparison.verdict) if comparison.better else None
    return own or verdict_text(comparison.verdict, smallest_effect)


_OF_OWN_METRICS: Mapping[Verdict, str] = {"faster": "better", "slower": "worse"}


def comparison_sentence(
    comparison: Comparison, *, smallest_effect: float, name_workload: bool = True, doubts: Sequence[str] = ()
) -> str:
    """One comparison as a sentence: ratio, interval, verdict, n, and the codes of the caveats that weaken it.

    'tmpfs writes 6.9 times [6.5, 7.3] as fast as ext4 under dd op=write: faster; n = 5 blocks.'
    """
    under = f" under {workload_label(comparison.workload, comparison.factors)}" if name_workload else ""
    doubt = f" Doubtful: {doubt_text(doubts)}." if doubts else ""
    if not has_interval(comparison):
        return _without_interval(comparison, under) + doubt
    claim = _CLAIMS[comparison.verdict](comparison, under, smallest_effect)
    return f"{claim}; {counted_pairs(comparison)}{needed(comparison)}.{doubt}"


def needed(comparison: Comparison) -> str:
    """What it would take to decide, where that can be said."""
    if not comparison.needed:
        return ""
    plural = counted(2, _unit_of(comparison)).removeprefix("2 ")
    return f"; about {number(comparison.needed, 0)} {plural} or fewer would decide"


def doubt_text(codes: Sequence[str]) -> str:
    """'noisy and too few (see the caveats)' for the codes of caveats."""
    return f"{listed([spoken_code(code) for code in codes])} (see the caveats)"


def spoken_code(code: str) -> str:
    """The code of a caveat as words."""
    return code.replace("_", " ").replace("-", " ")


def _times(comparison: Comparison) -> str:
    figures = compared_figures(comparison)
    return f"{figures.value} times {figures.interval}".strip()


def _ratio_clause(comparison: Comparison, under: str) -> str:
    template = metric_words(comparison.metric).ratio
    clause = template.format(candidate=comparison.candidate, baseline=comparison.baseline, times=_times(comparison))
    return clause + (f" ({comparison.label})" if comparison.label else "") + under


def _decided(comparison: Comparison, under: str, smallest_effect: float) -> str:
    said = verdict_of(comparison, smallest_effect)
    hint = "" if comparison.more_is_better else ", as less is better"
    if math.isnan(comparison.ratio):
        return f"{_bound_clause(comparison, under)}: {said}{hint}"
    return f"{_ratio_clause(comparison, under)}: {said}{hint}"


def _bound_clause(comparison: Comparison, under: str) -> str:
    """Of a ratio whose median lies among trials that did not end: on which side, and the bound where there is one."""
    noun = metric_noun(comparison.metric, comparison.label)
    slow = comparison.candidate if comparison.verdict == "slower" else comparison.baseline
    above = comparison.low > 1
    end = comparison.low if above else comparison.high
    bound = f"at {'least' if above else 'most'} {ratio_figures(end, end, end).value}"
    told = f" is {bound}" if 0 < end < math.inf else " has no bound"
    what = f"the ratio of {comparison.candidate} to {comparison.baseline} in {noun}"
    return f"Most trials of {slow}{under} ran into their time limit, so that {what}{told}"


def _same(comparison: Comparison, under: str, smallest_effect: float) -> str:
    noun = metric_noun(comparison.metric, comparison.label)
    figures = compared_figures(comparison)
    pair = f"{comparison.candidate} and {comparison.baseline}"
    return f"{pair} have the same {noun} within {percent(smallest_effect)}{under}: ratio {figures}"


def _undecided(comparison: Comparison, under: str, smallest_effect: float) -> str:
    noun = metric_noun(comparison.metric, comparison.label)
    figures = compared_figures(comparison)
    return (
        f"Undecided: whether the {noun} of {comparison.candidate} differs from that of {comparison.baseline}{under}"
        f"; ratio {figures}"
    )


_CLAIMS = {"faster": _decided, "slower": _decided, "same": _same, "undecided": _undecided}


def _without_interval(comparison: Comparison, under: str) -> str:
    if not math.isfinite(comparison.ratio):
        noun = metric_noun(comparison.metric, comparison.label)
        pair = f"{comparison.candidate} and {comparison.baseline}"
        told = f"No {_unit_of(comparison)} holds the {noun} of both {pair}{under}, so they cannot be compared"
        late = counted(comparison.censored, "block") if comparison.censored else ""
        return f"{told}: trials ran into the time limit in {late}." if late else f"{told}."
    blocks = counted(comparison.n, _unit_of(comparison))
    why = f"; {why_no_interval(comparison)}" if comparison.n > 1 else ""
    return f"{_ratio_clause(comparison, under)}; n = {blocks}{why}, so there is no interval and no verdict."


def answer(
    comparisons: Sequence[Comparison], *, smallest_effect: float, doubts: Mapping[str, Sequence[str]] | None = None
) -> list[str]:
    """The answer in one to six sentences, strongest effect first; many comparisons are summed up in one of them.

    Each candidate gets its strongest effect told, and then the strongest that points another way or is of another
    metric, so that a headline never hides a loss. Where nothing is decided, that comes first. `doubts` gives the codes
    of the caveats of a cell, by cell id; those that weaken every sentence are said once, at the end.
    """
    if not comparisons:
        return [nothing_compared(None, 2)]
    shown, alone = _headline(comparisons), len({(c.workload, *c.factors.items()) for c in comparisons}) == 1
    about = {id(each): _doubts_about(each, doubts or {}) for each in shown}
    common = [code for code in about[id(shown[0])] if len(shown) > 1 and all(code in codes for codes in about.values())]
    sentences = [
        comparison_sentence(
            each, smallest_effect=smallest_effect, name_workload=not alone,
            doubts=[code for code in about[id(each)] if code not in common],
        )
        for each in shown
    ]  # fmt: skip
    if len(shown) < len(comparisons):
        decided = any(each.verdict != "undecided" for each in comparisons)
        sentences.insert(len(sentences) if decided else 0, summary(comparisons, smallest_effect))
    return [*sentences, f"All of this is doubtful: {doubt_text(common)}."] if common else sentences


def nothing_compared(baseline: str | None, filesystems: int) -> str:
    """Why there is no comparison at all."""
    if filesystems < 2:
        return "There is one file system only, so nothing is compared; its means are below."
    if baseline is None:
        return "No baseline is named, so nothing is compared; the means are below."
    return "Nothing can be compared: no trial succeeded."


def _doubts_about(comparison: Comparison, doubts: Mapping[str, Sequence[str]]) -> list[str]:
    cells = (cell_id(comparison.candidate, comparison), cell_id(comparison.baseline, comparison))
    return sorted(
        {code for cell in cells for code in doubts.get(doubt_key(cell, comparison.metric), doubts.get(cell, ()))}
    )


def _headline(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons that get a sentence of their own: few, and one at least for each of the first candidates."""
    ordered = strongest_first(comparisons)
    if len(ordered) <= _SENTENCES + 1:
        return ordered
    candidates = list(dict.fromkeys(c.candidate for c in ordered))
    each = max(1, min(3, _SENTENCES // len(candidates))) if ordered[0].verdict != "undecided" else 1
    chosen = [
        c for name in candidates[:_SENTENCES] for c in _telling([c for c in ordered if c.candidate == name], each)
    ]
    return strongest_first(chosen)


def _telling(ordered: Sequence[Comparison], count: int) -> list[Comparison]:
    """The strongest, then what adds most to it: another verdict, then another metric, then the next strongest."""
    first, rest = ordered[0], ordered[1:]
    rest = sorted(rest, key=lambda c: (c.verdict in (first.verdict, "undecided"), c.metric == first.metric, -effect(c)))
    return [first, *rest[: count - 1]]


def finding(comparisons: Sequence[Comparison], smallest_effect: float) -> str:
    """The largest effect in one line, without its interval: the title of a plot of ratios."""
    first = strongest_first(comparisons)[0]
    if first.verdict in ("faster", "slower"):
        template, value = metric_words(first.metric).ratio, compared_figures(first).value
        clause = template.format(candidate=first.candidate, baseline=first.baseline, times=f"{value} times")
        return f"The largest effect: {clause} under {workload_label(first.workload, first.factors)}"
    if all(each.verdict == "same" for each in comparisons):
        return f"All are the same as {first.baseline} within {percent(smallest_effect)}"
    return f"Nothing is shown to be faster or slower than {first.baseline}"


def has_blocks(comparison: Comparison) -> bool:
    """Whether any block has both sides, or one of them ran into the time limit."""
    return comparison.n > 0 or comparison.censored > 0


def summary(comparisons: Sequence[Comparison], smallest_effect: float) -> str:
    """How often each verdict fell: 'Against ext4, in all: tmpfs is faster in 6 and undecided in 1 of 7 comparisons'."""
    baselines = listed(sorted({c.baseline for c in comparisons}))
    if all(each.verdict == "undecided" for each in comparisons):
        most = max(comparisons, key=lambda each: each.n)
        blocks = f"n = {counted(most.n, _unit_of(most))}"
        count = sum(map(has_blocks, comparisons)) or len(comparisons)
        return f"Nothing is shown to be faster or slower than {baselines}, in {count} comparisons; {blocks}."
    by_candidate: dict[str, list[Comparison]] = {}
    for each in strongest_first(comparisons):
        by_candidate.setdefault(each.candidate, []).append(each)
    alike: dict[str, list[str]] = {}
    for name, group in by_candidate.items():
        alike.setdefault(_tally(group, smallest_effect), []).append(name)
    tallies = [f"{listed(names)} {'are each' if len(names) > 1 else 'is'} {tally}" for tally, names in alike.items()]
    return f"Against {baselines}, in all: {'; '.join(tallies)}."


def _tally(group: Sequence[Comparison], smallest_effect: float) -> str:
    """'faster in 6 and undecided in 1 (dd-read cache=warm) of 7 comparisons': exceptions are named if they are few.
    Without a figure of both sides there is no comparison."""
    order: tuple[Verdict, ...] = ("faster", "slower", "same", "undecided")
    group = [c for c in group if has_blocks(c)] or group
    fell = {verdict: [_workload_of(c) for c in group if c.verdict == verdict] for verdict in order}
    present = [verdict for verdict in order if fell[verdict]]
    if len(present) == 1:
        return f"{verdict_text(present[0], smallest_effect)} in {_all_of(len(group))}"
    parts = [
        f"{verdict_text(verdict, smallest_effect)} in {len(where)}"
        + (f" ({listed(sorted(where))})" if len(where) <= min(2, (len(group) - 1) // 2) else "")
        for verdict, where in fell.items()
        if where
    ]
    return f"{listed(parts)} of {len(group)} comparisons"


def _workload_of(comparison: Comparison) -> str:
    return workload_label(comparison.workload, comparison.factors)


def _all_of(n: int) -> str:
    return {1: "its one comparison", 2: "both comparisons"}.get(n, f"all {n} comparisons")


# ── published figures ────────────────────────────────────────────────────────────────────────────────────────────────


def ours_beside(published: PublishedFigure, comparisons: Iterable[Comparison]) -> Comparison | None:
    """Our comparison of the same two file systems under the same workload and metric, or None if we have none."""
    for ours in comparisons:
        same_pair = (ours.candidate, ours.baseline) == (published.candidate, published.baseline)
        same_factors = all(ours.factors.get(key) == value for key, value in published.factors.items())
        same_row = (ours.metric, ours.label) == (published.metric, published.label)
        if same_pair and same_factors and same_row and ours.workload == published.workload:
            return ours
    return None


def published_sentence(pairs: Sequence[tuple[PublishedFigure, Comparison | None]]) -> str:
    """How many published ratios point the same way as ours."""
    found = [(theirs, ours) for theirs, ours in pairs if ours is not None and math.isfinite(ours.ratio)]
    if not found:
        return "None of the published ratios was measured in this run."
    decided = [(theirs, ours) for theirs, ours in found if ours.verdict in ("faster", "slower")]
    agree = sum((theirs.ratio > 1) == (ours.ratio > 1) for theirs, ours in decided)
    against = len(decided) - agree
    same = sum(ours.verdict == "same" for _, ours in found)
    single = sum(not has_interval(ours) for _, ours in found)
    undecided = len(found) - len(decided) - same - single
    parts = [
        f"{agree} {'points' if agree == 1 else 'point'} the same way as ours" if agree else "",
        f"{against} {'points' if against == 1 else 'point'} the other way" if against else "",
        f"for {same} ours is the same" if same else "",
        f"for {undecided} ours is undecided" if undecided else "",
        f"for {single} ours has no interval, and so no verdict" if single else "",
    ]
    return f"Of {counted(len(found), 'published ratio')}, {listed([part for part in parts if part])}."


# ── options ──────────────────────────────────────────────────────────────────────────────────────────────────────────

OPTION_STATES: dict[OptionState, str] = {
    "in effect": "✓ in effect",
    "changed": "✗ changed",
    "ignored": "✗ ignored",
    "without effect": "✗ shown, but without effect here",
    "not visible": "? not visible",
    "added": "+ added",
}
"""The state of an option, with a sign for those who skim."""


# ── caveats ──────────────────────────────────────────────────────────────────────────────────────────────────────────


_SENTENCE_END = re.compile(r"(?<=[a-z)%\"])\.(?= |$)|; |(?<=\d)\.(?= [A-Z])")


@dataclass(frozen=True)
class CaveatGroup:
    """The caveats of one code and severity."""

    code: str
    severity: Severity
    caveats: tuple[Caveat, ...]

    @property
    def heading(self) -> str:
        """'Cache served read (12 cells)'."""
        name = spoken_code(self.code).capitalize()
        subjects = {c.subject for c in self.caveats if c.subject}
        scope = self.caveats[0].scope.replace("filesystem", "file system")
        return f"{name} ({counted(len(subjects), scope)})" if subjects and scope != "run" else name

    @property
    def seen(self) -> str:
        """What was seen, in short: the first sentence of the first message, cut where it is long."""
        line = " ".join(self.caveats[0].message.split())
        sentence = _SENTENCE_END.split(line, maxsplit=1)[0].rstrip(".;:, ")
        if len(sentence) <= _LONGEST_SEEN:
            return sentence
        return f"{sentence[:_LONGEST_SEEN].rsplit(' ', 1)[0].rstrip('.;:, (')}…"


def grouped(caveats: Iterable[Caveat]) -> list[CaveatGroup]:
    """Caveats by severity (errors first) and code, in the order in which they were raised."""
    rank = {"error": 0, "warning": 1, "note": 2}
    groups: dict[tuple[Severity, str], list[Caveat]] = {}
    for caveat in caveats:
        groups.setdefault((caveat.severity, caveat.code), []).append(caveat)
    ordered = sorted(groups.items(), key=lambda item: rank[item[0][0]])
    return [CaveatGroup(code, severity, tuple(members)) for (severity, code), members in ordered]


SEVERITY_WORDS: dict[Severity, str] = {"error": "Do not use", "warning": "Doubt", "note": "Note"}
"""What the reader should do with a figure that has a caveat."""


_TOLD_IN_LINE, _LONGEST_SEEN = 2, 90


def caveat_line(groups: Sequence[CaveatGroup]) -> str:
    """All groups in one line; of the first few, unless they are notes, also what was seen.

    'Do not use: Cache served (1 cell): the page cache answered. Note: Too few (21 cells).'
    """
    first = {id(group) for group in [each for each in groups if each.severity != "note"][:_TOLD_IN_LINE]}
    lines: dict[Severity, list[str]] = {}
    for group in groups:
        line = f"{group.heading}: {group.seen}" if id(group) in first else group.heading
        lines.setdefault(group.severity, []).append(line)
    told = (f"{SEVERITY_WORDS[severity]}: {_in_line(texts)}" for severity, texts in lines.items())
    return " ".join(line if line.endswith("…") else f"{line}." for line in told)


def _in_line(texts: Sequence[str]) -> str:
    """Set apart by commas, or by semicolons where one of them has a comma or a colon."""
    return ("; " if any(":" in text or "," in text for text in texts) else ", ").join(texts)


def doubts_by_cell(caveats: Iterable[Caveat], own_metrics: Iterable[str] = ()) -> dict[str, list[str]]:
    """Codes of the warnings and errors about each cell, by cell id and by doubt_key; notes do not weaken a number.
    `own_metrics`: those that the sweep defines."""
    metrics = (*METRICS, *own_metrics)
    doubts: dict[str, list[str]] = {}
    for caveat in caveats:
        if caveat.scope == "cell" and caveat.severity != "note":
            for key in (caveat.subject, *(doubt_key(caveat.subject, metric) for metric in metrics)):
                codes = doubts.setdefault(key, [])
                weakens = "\t" not in key or key.rpartition("\t")[2].startswith(caveat.metrics)
                codes.extend([caveat.code] if weakens and caveat.code not in codes else [])
    return doubts


def doubt_key(cell: str, metric: str) -> str:
    """The key of what weakens one metric of a cell, in what `doubts_by_cell` gives."""
    return f"{cell}\t{metric}"


def no_caveats(checks: Sequence[str]) -> str:
    """'No caveats: 23 checks passed'."""
    return f"No caveats: {counted(len(checks), 'check')} passed"


# ── time ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def duration_text(seconds: float) -> str:
    """'35.7 s', '2 min 5 s', '3 h 10 min'."""
    if not math.isfinite(seconds) or seconds < 3600:
        return format_seconds(seconds) if math.isfinite(seconds) else MISSING
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def fresh_cost(more_s: float, expected_s: float) -> str:
    """What making file systems in each block would cost beside the expected time of a plan that makes them once."""
    share = f" ({percent(round(more_s / expected_s, 3))} more)" if expected_s else ""
    return f"fresh_filesystem: block would take about {duration_text(round(more_s, 1))} beyond that{share}"


# ── stopping ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def rule_text(until: Until) -> str:
    """A stopping rule in words: 'until every mean is within ± 3 % at 95 %, 5 to 40 blocks, at most 30 min'."""
    what, at = ("mean", " at") if until.of == "cells" else ("ratio", ", all together at")
    most = f", at most {duration_text(until.budget_s)}" if until.budget_s is not None else ""
    within = f"within ±\u00a0{percent(until.half_width)}{at} {percent(until.confidence)}"
    return f"until every {what} is {within}, {until.min} to {until.max} blocks{most}"


def stop_text(stop: Stop) -> str:
    """Why a cell has no more trials: 'precise after 7 blocks'."""
    blocks = counted(stop.blocks, "block")
    if stop.reason == "could not":
        because = f": {in_one_line(stop.why)}" if stop.why else ""
        return f"given up after {blocks}, too few figures{because}"
    return {
        "precise": f"precise after {blocks}", "max reached": f"not precise after {blocks}, the most that may be",
        "budget": f"out of time after {blocks}", "not finished": f"not finished, {blocks} so far",
    }[stop.reason]  # fmt: skip


def leaving(stops: Iterable[Stop]) -> list[str]:
    """One line for each workload and reason: 'fio rw=read: precise after 7 blocks (ext4, tmpfs)'."""
    groups: dict[tuple[str, str], list[str]] = {}
    for stop in stops:
        filesystem, _, workload = stop.cell.partition("/")
        groups.setdefault((workload, stop_text(stop)), []).append(filesystem)
    return [f"{workload}: {why} ({', '.join(names)})" for (workload, why), names in groups.items()]


# ── trials ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def place_text(block: int, cell: str, *, warmup: bool) -> str:
    """Where in a run a trial stands: 'block 2, ext4/dd-write'."""
    return f"{'warm-up' if warmup else f'block {block}'}, {cell}"


def without_figure(trials: Iterable[Trial]) -> list[str]:
    """'2 failed', '1 timed out': of trials that gave no figure, without those that there are none of."""
    statuses = [trial.status == "timeout" for trial in trials]
    counts = {"failed": statuses.count(False), "timed out": statuses.count(True)}
    return [f"{count} {what}" for what, count in counts.items() if count]


def failure_text(trial: Trial) -> str:
    """'failed: t0007 ext4/dd-write: no space left'."""
    aside = "; its later trials are skipped" if trial.set_aside else ""
    return f"{trial.status}: {trial.trial_id} {trial.cell}: {in_one_line(trial.reason)}{aside}"


# ── few trials ───────────────────────────────────────────────────────────────────────────────────────────────────────

_HEAVY = "a heavy tail (lognormal, σ 1)"
_MODES = "two modes (30\u00a0% of the trials twice as fast)"
_DRIFT = "a drift (4 standard deviations over the run)"
COVERED_BY_FEW: dict[int, dict[str, int]] = {
    2: {_HEAVY: 90, _MODES: 71},
    3: {_HEAVY: 84, _MODES: 64},
    4: {_HEAVY: 82, _MODES: 75, _DRIFT: 84},
    5: {_HEAVY: 82, _MODES: 83, _DRIFT: 61},
    6: {_HEAVY: 82, _MODES: 87, _DRIFT: 36},
    7: {_HEAVY: 83, _DRIFT: 18},
    8: {_HEAVY: 83, _DRIFT: 8},
    9: {_HEAVY: 83, _DRIFT: 3},
}
"""n to how many in a hundred 95 % intervals hold the truth, where that is 90 or fewer, for what n trials cannot show:
from the table of few trials in METHODS.md, which `make calibrate` makes (tests/test_calibrate.py compares the two)."""


def rests_on(n: int) -> str:
    """What the interval of n trials rests on, where these are too few to show it; '' for n < 2 and n >= 10.

    'n = 3 cannot show the shape of the spread: ... with two modes 64 % would.'
    """
    if n not in COVERED_BY_FEW:
        return ""
    others = [f"with {what} {covered}\u00a0%" for what, covered in COVERED_BY_FEW[n].items()]
    return (
        f"n = {n} cannot show the shape of the spread, so the interval rests on trials that are independent and "
        f"roughly normal: then 95\u00a0% of such intervals hold the truth; {listed(others)} would."
    )


# ── what explains how much ───────────────────────────────────────────────────────────────────────────────────────────

_SMALL_SHARE = 0.005
_EFFECTS = {"residual": "from trial to trial"}


def explained_sentence(rows: Iterable[Mapping[str, Any]], what: str) -> str:
    """'Of the differences in read bandwidth under dd-read: filesystem × cache 62 % [37 %, 77 %], filesystem 19 % ...':
    the effects of an analysis of variance (rows of stats.explained), the largest first."""
    rows = list(rows)
    if any(math.isnan(row["share"]) for row in rows):
        return f"How the differences in {what} are shared out cannot be told: {_no_shares(rows)}."
    ordered = sorted(rows, key=lambda row: -row["share"])
    told = [f"{effect_name(row['effect'])} {share_text(row)}" for row in ordered if row["share"] >= _SMALL_SHARE]
    return f"Of the differences in {what}: {listed(told)}."


def _no_shares(rows: Sequence[Mapping[str, Any]]) -> str:
    if not any(row["sum_sq"] for row in rows):
        return "all trials gave the same figure"
    return "cells are missing, so that effects overlap (see F and p)"


def effect_name(effect: str) -> str:
    """'filesystem × bs'."""
    return _EFFECTS.get(effect, effect.replace(" x ", " × ").replace("filesystem", "file system"))


def share_text(row: Mapping[str, Any]) -> str:
    """'62 % [37 %, 77 %]'; without an interval where there is none."""
    if math.isnan(row["share"]):
        return MISSING
    share = percent(round(row["share"], 2))
    if math.isnan(row["low"]):
        return share
    return f"{share} [{percent(round(row['low'], 2))}, {percent(round(row['high'], 2))}]"


def p_text(p: float) -> str:
    """A p value by two digits: '0.012'; '<0.0001' below that."""
    return "<0.0001" if p < 1e-4 else number(p, _decimals(p, 2))
