"""Sentences on why one file system is slower than another. Every figure in them comes from the diagnostic trials."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from mountlab.analysis.run_view import RunView
from mountlab.analysis.why import Cause, LayerPart, PartOfDifference, WorkFigure, behind, splits, work
from mountlab.analysis.why_answer import Answer, answering
from mountlab.analysis.why_doubts import Off
from mountlab.core.findings import Comparison
from mountlab.core.groups import by_key
from mountlab.core.layers import LAYERS, QUANTITIES, layer_noun
from mountlab.core.names import cell_id, latency_noun, metric_noun
from mountlab.core.numbers import MISSING, counted, listed, number, percent, quantity, ratio_figures
from mountlab.core.text import capital
from mountlab.core.units import scale_for, significant
from mountlab.sentences.why_doubts import off_text
from mountlab.stats import DifferenceShare
from mountlab.sweep.design_entry import MOST_DIAGNOSTIC
from mountlab.wording import verdicts

_MOST_MORE, _MOST_ANSWERS = 2, 3
"""Parts that are named after the largest; differences that the answer explains."""
_ENOUGH_BLOCKS = 10
"""Diagnostic blocks that name the part that makes three quarters of a difference (docs/why.md)."""
_BELOW = ("writeback", "journal", "queue", "device", "flush")
"""Layers in which an operation waits for the device."""
_TENTHS = (0.95, 9.95)
"""Counts between these are shown to a tenth."""
_LEAST_SHARE = 0.05
"""A smaller part of a difference is in the table alone; of a wait it is not named."""
_LEAST_WAIT, _HALF, _MOST_RAN = 0.2, 0.5, 3
"""Share of a difference from which on the wait for a processor is explained; of such a wait from which on an idle
processor explains it; programs that are named."""
_WORK = ("device_ios_per_op", "write_amplification", "flushes_per_sync", "commits_per_sync")
_MOST_WORK, _MOST_CLUES = 2, 3
"""Ratios of work that are looked at; how many of them are named for a difference, and for several together."""
_EACH: Mapping[str, str] = {"flush": "flush", "device": "device I/O", "journal": "commit"}
"""Layer to one of what an operation waits for in it."""
_WORK_APART, _LEAST_WORK, _HARDLY_ANY = 1.1, 0.01, 0.001
"""The factor, and the amount per operation, by which ratios of work differ that may explain something; a count per
operation that tells no more than that it is smaller."""


Instead = Callable[[str, str], Mapping[str, float]]
"""Cell and operation to what ran while that waited for a processor, each with its seconds for each operation."""


def cause_subject(cause: Cause, *, name_workload: bool = True) -> str:
    """'ext4 takes longer than xfs, mean sync latency under fsync': whose time the parts are; 'xfs and ext4, ...' where
    no difference is shown."""
    under = f" under {cause.workload_label}" if name_workload else ""
    slower, faster = _by_time(cause)
    pair = f"{slower} takes longer than {faster}" if cause.differs else f"{cause.candidate} and {cause.baseline}"
    return f"{pair}, {_latency(cause)}{under}"


def _by_time(cause: Cause) -> tuple[str, str]:
    """Return the slower file system, and the faster one."""
    pair = cause.candidate, cause.baseline
    return pair if cause.ratio.ratio > 1 else (pair[1], pair[0])


def cause_sentence(
    cause: Cause, figures: Sequence[WorkFigure], instead: Instead, *, name_n: bool = True, off: Sequence[Off] = ()
) -> str:
    """'The largest part of the difference is flushes (for the journal): 80 % [71, 88]. xfs takes 0.58 [0.54, 0.62] of
    ext4's time: 0.88 ms against 1.53 ms; n = 5 diagnostic blocks. Work: 2.1 flushes per sync on ext4, 1.0 on xfs.';
    where nothing is shown, why. `off`: its sides whose parts do not add up, where shares are withheld."""
    clause, largest = work_words(cause, figures), cause.largest
    done = f" Work: {clause}." if clause else ""
    n = f"; n = {counted(cause.ratio.n, 'diagnostic block')}" if name_n else ""
    if largest is None:
        return f"{_nothing_shown(cause).removesuffix('.')}{n}.{done}"
    if far := [off_side for off_side in off if off_side.is_far]:
        shares = f"Shares are withheld: {off_text(far)}."
    else:
        shares = f"{_largest(cause, largest)}{_more(cause, largest)}{_summed(cause, largest)}"
        shares += _consequence(cause, instead)
    sides = f"{quantity(cause.ours.mean, 's')} against {quantity(cause.theirs.mean, 's')}"
    return f"{shares} {_ratio(cause)}: {sides}{n}.{done}"


def part_noun(cause: Cause, part: LayerPart) -> str:
    """'flushes (for the journal)'; beside these 'flushes (of the sync itself)', so that no two have one name."""
    alone = sum(other.part.layer == part.layer for other in cause.parts) <= 1
    noun = layer_noun(*part)
    return noun if alone or not part.layer or part.through != "own" else f"{noun} (of the {cause.operation} itself)"


def _latency(cause: Cause) -> str:
    return latency_noun(cause.operation, cause.statistic)


def _largest(cause: Cause, part: PartOfDifference) -> str:
    """'The largest part of the difference is flushes: 80 % [71, 88].'; 'Beside waiting for a processor, 42 % [36, 50],
    the largest part of ...'; 'The largest part of the difference may be flushes, 45 % [40, 50], or the device, 41 %
    [38, 44].'"""
    beside = f"{_beside_wait(cause)}the largest part of the difference"
    if cause.as_large:
        return f"{capital(beside)} may be {_either(cause, (part, *cause.as_large))}."
    return f"{capital(beside)} is {part_noun(cause, part.part)}: {share_words(part.share)}."


def _beside_wait(cause: Cause) -> str:
    """'beside waiting for a processor, 42 % [36, 50], ' where that is larger than the part that is named; else ''."""
    wait = cause.wait_before
    if not wait:
        return ""
    may_be_none = "" if wait.share.shown else ", which may be 0"
    return f"beside {layer_noun(*wait.part)}, {share_words(wait.share)}{may_be_none}, "


def _either(cause: Cause, parts: Sequence[PartOfDifference]) -> str:
    """'flushes, 45 % [40, 50], or the device, 41 % [38, 44]'."""
    *texts, last = _part_texts(cause, parts)
    return f"{', '.join(texts)}, or {last}"


# ── shares ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def share_words(share: DifferenceShare) -> str:
    """'80 % [71, 88]' in whole per cent, of what points the other way without its sign. A share above 1 is in words:
    other parts then point the other way. 'n/a' of no share; without an interval where that says nothing."""
    if share.share < 0:
        share = replace(share, share=-share.share, low=-share.high, high=-share.low)
    if not math.isfinite(share.share):
        return MISSING
    value = "more than all of it" if share.share > 1 else _percent(share.share)
    if not 0 < share.low <= 1:
        return value
    if share.high > 1:
        return f"{value} (at least {_percent(share.low)})"
    return f"{value} [{number(100 * share.low, 0)}, {number(100 * share.high, 0)}]"


def share_cells(share: DifferenceShare) -> tuple[str, str]:
    """Return a share and its interval as two cells: '80 %', '[71, 88]'; of a part that points the other way '4 %
    against'. An end above the whole is 'all'; two of them bound nothing."""
    if not math.isfinite(share.share):
        return MISSING, ""
    size = "more than all" if abs(share.share) > 1 else _percent(abs(share.share))
    if share.share < 0 and size != _percent(0):
        size += " against"
    if min(abs(share.low), abs(share.high)) > 1:
        return size, "no bound"
    ends = []
    for end in (share.low, share.high):
        text = "all" if abs(end) > 1 else number(100 * abs(end), 0)
        ends.append(f"{text} against" if end < 0 and text != "0" else text)
    return size, f"[{', '.join(ends)}]"


def _percent(share: float) -> str:
    return f"{number(100 * share, 0)}\u00a0%"


def _nothing_shown(cause: Cause) -> str:
    """Return why no part of a difference is named."""
    if cause.differs:
        noun = part_noun(cause, cause.parts[0].part)
        return f"{_ratio(cause)}, but no part stands out of the noise: {noun}, the largest, may be 0."
    if math.isnan(cause.ratio.low):
        return f"The diagnostic trials show no difference in {_latency(cause)}: its spread is unknown."
    return f"The diagnostic trials show no difference in {_latency(cause)}: {_ratio(cause)}."


def _ratio(cause: Cause) -> str:
    """'xfs takes 0.58 [0.54, 0.62] of ext4's time', 'btrfs takes 2.1 [1.9, 2.3] times ext4's time'."""
    figures = ratio_figures(cause.ratio.ratio, cause.ratio.low, cause.ratio.high)
    return f"{cause.candidate} takes {figures} {'of' if cause.ratio.ratio < 1 else 'times'} {cause.baseline}'s time"


def _more(cause: Cause, largest: PartOfDifference) -> str:
    """Return what else makes the difference, and what points the other way."""
    described = [row.part for row in (largest, cause.wait_before, *cause.as_large) if row]
    rest = [row for row in cause.parts if not any(part.holds(row.part) for part in described)]
    others = [row for row in rest if row.share.shown and abs(row.share.share) >= _LEAST_SHARE]
    along = [row for row in others if row.share.share > 0][:_MOST_MORE]
    against = [row for row in reversed(others) if row.share.share < 0][:_MOST_MORE]
    text = f" Then: {listed(_part_texts(cause, along))}." if along else ""
    return f"{text} Against it: {listed(_part_texts(cause, against))}." if against else text


def _summed(cause: Cause, first: PartOfDifference) -> str:
    """Return the layer that has more than the largest part, where one does in all that it served."""
    layer, layers = cause.by_layer[0], {first.part.layer, *(("run_queue",) if cause.wait_before else ())}
    if not layer.share.shown or layer.part.layer in layers or layer.share.share <= first.share.share:
        return ""
    return f" In total {layer_noun(*layer.part)} has more: {share_words(layer.share)}."


def _part_texts(cause: Cause, parts: Sequence[PartOfDifference]) -> list[str]:
    return [f"{part_noun(cause, part.part)}, {share_words(part.share)}" for part in parts]


# ── what follows from something else ─────────────────────────────────────────────────────────────────────────────────


def _consequence(cause: Cause, instead: Instead) -> str:
    """Return what made operations wait for a processor, where that is a good part of a difference; else ''."""
    waits = cause.waits
    if not waits or not waits.share.shown or waits.share.share < _LEAST_WAIT:
        return ""
    slower = cause.candidate if waits.seconds > 0 else cause.baseline
    ran = instead(cell_id(slower, cause.workload_label), cause.operation)
    return f" Waiting for a processor is a consequence, not a cause: {_ran_meanwhile(slower, ran)}."


def _ran_meanwhile(filesystem: str, ran: Mapping[str, float]) -> str:
    """'on xfs the processor meanwhile ran stress-ng (62 % of the wait) and kworker (20 %)'."""
    whole = sum(ran.values())
    if not whole:
        return "what ran meanwhile is not known"
    sized = []
    for name, seconds in ran.items():
        share = seconds / whole
        size = percent(round(share, 2))
        if name in _IDLE and share >= _HALF:
            return f"on {filesystem} the processor was idle for {size} of the wait: {_IDLE[name]}"
        if name not in _IDLE and share >= _LEAST_SHARE:
            sized.append(f"{'what is not known' if name == _UNKNOWN else name} ({size})")
    many = listed(sized[:_MOST_RAN]) if sized else "many programs, none for long"
    return f"on {filesystem} the processor meanwhile ran {many}"


_IDLE: Mapping[str, str] = {
    "held back": "a CPU quota, or a virtual machine that is throttled",
    "idle": "it wakes up late, as in a virtual machine, or got the thread from another processor late",
}
"""What had the processor where no thread did, and what that means."""
_UNKNOWN = "?"
"""What had it where that is not known."""


def program_noun(program: str) -> str:
    """'none: a CPU quota, ...'; the name of a program."""
    nouns = {"idle": "none: it woke up or got the thread late", "held back": f"none: {_IDLE['held back']}"}
    return {**nouns, _UNKNOWN: "unknown"}.get(program, program)


# ── work ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def work_words(cause: Cause, figures: Sequence[WorkFigure]) -> str:
    """'2.1 flushes per sync on ext4, 1.0 on xfs (0.48 times [0.46, 0.50]); 3.1 device I/Os per sync on ext4, 2.0 on
    xfs': the work that differs, that behind the largest part first; else 'the same on both, 2.0 device I/Os per sync'.
    '' where none is known, and of an operation that waits for nothing below it."""
    amounts = _amounts(cause, figures)
    unlike = [(name, sides) for name, sides in amounts.items() if _differ(*sides)]
    main = _main_work(cause)
    unlike.sort(key=lambda item: (item[0] != main, -_times(*item[1])))
    if unlike:
        return "; ".join(_sides(cause, name, *sides) for name, sides in unlike[:_MOST_WORK])
    alike = [f"{_amount(theirs)} {_counted(name, theirs)}" for name, (theirs, _) in amounts.items()]
    return f"the same on both, {alike[0]}" if alike else ""


def _amounts(cause: Cause, figures: Sequence[WorkFigure]) -> dict[str, tuple[WorkFigure, WorkFigure]]:
    """Return the ratios of work of baseline and candidate that may explain a difference, that behind its largest part
    first."""
    names = dict.fromkeys((_main_work(cause), *_own_work(cause, figures)))
    return {name: sides for name in names if name and (sides := behind(cause, figures, name))}


def _main_work(cause: Cause) -> str:
    """Return the ratio of work behind the largest part; '' where there is none."""
    return LAYERS[cause.largest.part.layer].quantity if cause.largest and cause.largest.part.layer else ""


def _differ(theirs: WorkFigure, ours: WorkFigure) -> bool:
    """Return whether work differs by so much that it may explain something."""
    if ours.ratio is not None and ours.ratio.low <= 1 <= ours.ratio.high:
        return False
    return _times(theirs, ours) > _WORK_APART and abs(theirs.figure.mean - ours.figure.mean) >= _LEAST_WORK


def _own_work(cause: Cause, figures: Sequence[WorkFigure]) -> Sequence[str]:
    """Return the ratios of work that was done for this operation, and not for others: all where what lies below the
    file system makes a good part of its latency. Read-ahead reads before an operation waits: device I/Os are those of
    the reads where nothing is written."""
    below = sum(abs(part.seconds) for part in cause.parts if part.part.layer in _BELOW)
    if below >= _LEAST_SHARE * abs(cause.ours.mean - cause.theirs.mean):
        return _WORK
    device_ios = (behind(cause, figures, _WORK[0]) or ()) if cause.operation == "read" else ()
    return _WORK[:1] if any(figure.per == "read" for figure in device_ios) else ()


def _times(theirs: WorkFigure, ours: WorkFigure) -> float:
    """Return how many times one is the other, the larger by the smaller."""
    low, high = sorted((theirs.figure.mean, ours.figure.mean))
    return high / low if low else math.inf


def _sides(cause: Cause, name: str, theirs: WorkFigure, ours: WorkFigure) -> str:
    ratio, second = ours.ratio, _amount(ours)
    times = f" ({ratio_figures(ratio.ratio, ratio.low, ratio.high)} times)" if ratio else ""
    first = f"{_amount(theirs)} {_counted(name, theirs)} on {cause.baseline}"
    return f"{first}, {'none' if second == _NONE else second} on {cause.candidate}{times}"


def _counted(name: str, figure: WorkFigure) -> str:
    return QUANTITIES[name].counted.format(operation=figure.per)


_NONE = "no"


def _amount(figure: WorkFigure) -> str:
    mean = figure.figure.mean
    if 0 < mean < _HARDLY_ANY and figure.unit == "1":
        return f"fewer than {_HARDLY_ANY}"
    return work_value(mean, figure.unit) if mean else _NONE


def work_value(value: float, unit: str) -> str:
    """'2.1', '4.1 kB': a count has two significant digits, what has a unit gets it."""
    if unit in ("s", "B"):
        return quantity(value, unit)
    return number(value, 1) if _TENTHS[0] <= value < _TENTHS[1] else significant(value, 2)


# ── the answer of a run ──────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Clue:
    """The latency of an operation on each file system, and the work behind it that differs."""

    under: str
    """' under mail'; '' where there is a single workload."""
    blocks: int
    rows: Mapping[str, Mapping[str, str]]
    """What is measured to file system to its figure."""
    notes: tuple[str, ...]

    @property
    def text(self) -> str:
        """'Traced mean sync latency, µs: xfs 363, ext4 494; flushes per sync: xfs 1.4, ext4 2.1; n = 3 diagnostic
        blocks.'"""
        listings = [f"{noun}: {', '.join(map(' '.join, row.items()))}" for noun, row in self.rows.items()]
        return " ".join((f"{capital('; '.join(listings))}; {self.n}.", *self.notes))

    @property
    def n(self) -> str:
        """'n = 3 diagnostic blocks'."""
        return f"n = {counted(self.blocks, 'diagnostic block')}"


@dataclass(frozen=True)
class AnswerWhy:
    """What explains the differences that the answer is about. Lines are subjects and sentences."""

    why: tuple[str, str]
    """The answer, and where nothing is established."""
    clues: tuple[Clue, ...] = ()
    doubts: tuple[tuple[str, str], ...] = ()
    """Of what is established."""
    steps: tuple[tuple[str, str], ...] = ()
    """How to find out more."""
    more: tuple[tuple[str, str], ...] = ()
    """What the section Why has beside it."""


def explanation(run: RunView) -> AnswerWhy | None:
    """Return what explains the differences that the answer is about; None of a run without diagnostic trials."""
    answers = answering(run)
    if not answers:
        return None
    decided = [answer for answer in answers if answer.comparison.verdict != "undecided"]
    first, alone = (decided or answers)[:_MOST_ANSWERS], len(run.sweep.workloads) == 1
    clues = tuple(_clues(run, first, name_workload=not alone))
    if not decided:
        return AnswerWhy(("Why", "The cause is not established: no difference is shown."), clues)
    subject = "Why"
    if len(decided) == 1:
        pair, smallest = first[0].comparison, run.sweep.design.smallest_effect
        subject = f"Why {pair.candidate} is {verdicts.verdict_of(pair, smallest)} than {pair.baseline}"
        subject += _under(pair, name_workload=not alone)
    doubts = dict.fromkeys(text for answer in first if answer.established for text in _doubts(answer))
    steps, more = _next_steps(first, run.why.traces["block"].nunique()), len(decided) - len(first)
    return AnswerWhy(
        (subject, _summary(first, name_workload=not alone)),
        clues,
        doubts=(("Doubtful", f"{capital('; '.join(doubts))}."),) if doubts else (),
        steps=(("To explain the rest", f"{'; '.join(steps)}."),) if steps else (),
        more=(("", f"The section Why has {counted(more, 'more difference')}."),) if more else (),
    )


def answer_lines(run: RunView) -> list[tuple[str, str]]:
    """Return what explains the differences that the answer is about, as subjects and sentences: the answer in one; what
    makes it doubtful; the work that differs; how to find out more."""
    known = explanation(run)
    if known is None:
        return []
    clues = [(f"Clue{clue.under}", clue.text) for clue in known.clues]
    return [known.why, *known.doubts, *clues, *known.steps, *known.more]


def _on(comparison: Comparison, *, name_workload: bool) -> str:
    """'xfs', 'xfs under mail'."""
    return f"{comparison.candidate}{_under(comparison, name_workload=name_workload)}"


def _under(comparison: Comparison, *, name_workload: bool) -> str:
    return f" under {verdicts.workload_of(comparison)}" if name_workload else ""


def _summary(answers: Sequence[Answer], *, name_workload: bool) -> str:
    """'On ext4 mostly flushes (for the journal), 80 % [71, 88] of the difference in mean sync latency. The cause is not
    established on btrfs (several candidates).'; of a single answer without its file system."""
    alone, clauses, latency = len(answers) == 1, list[str](), ""
    for answer in answers:
        if (part := answer.established) and answer.cause:
            on = "" if alone else f"on {_on(answer.comparison, name_workload=name_workload)} "
            degree = "mostly" if part.share.low > _HALF else "the largest part is"
            size = share_words(part.share).replace("all of it", "all")
            noun = part_noun(answer.cause, part.part)
            what = f"{on}{_beside_wait(answer.cause)}{degree} {noun}, {size}"
            named = _latency(answer.cause)
            clauses.append(f"{what} of the difference in {named}" if named != latency else what)
            latency = named
    known = [f"{capital('; '.join(clauses))}."] if clauses else []
    reasons = by_key(
        (_why_open(answer), _on(answer.comparison, name_workload=name_workload))
        for answer in answers
        if not answer.established
    )
    if alone and reasons:
        known.append(f"The cause is not established: {next(iter(reasons))}.")
    elif reasons:
        where = listed([f"{listed(names)} ({reason})" for reason, names in reasons.items()])
        known.append(f"The cause is not established on {where}.")
    return " ".join(known)


def _why_open(answer: Answer) -> str:
    """Return why the cause of a difference is not established."""
    cause = answer.cause
    if cause is None:
        return "too few diagnostic trials hold both sides"
    if answer.against:
        return "the diagnostic trials show the opposite"
    if not cause.differs:
        return "the diagnostic trials show no difference"
    if answer.is_far_off:
        return "its parts do not add up"
    return "several candidates" if cause.largest else "no part stands out"


def _clues(run: RunView, answers: Sequence[Answer], *, name_workload: bool) -> Iterator[Clue]:
    """Yield the latency of each workload and operation, and the work that differs behind it; what is alike as a
    note."""
    figures = work(run.why, run.sweep)
    groups = by_key(
        ((answer.cause.workload_label, answer.cause.operation), (answer, answer.cause))
        for answer in answers
        if answer.cause
    )
    for (label, _), members in groups.items():
        amounts = [(cause, _amounts(cause, figures)) for _, cause in members]
        names = list(dict.fromkeys(name for _, known in amounts for name in known))
        sides = {name: [known[name] for _, known in amounts if name in known] for name in names}
        unlike = [name for name in names if any(_differ(*pair) for pair in sides[name])]
        main = {_main_work(cause) for _, cause in members}
        unlike.sort(key=lambda name: (name not in main, -max(_times(*pair) for pair in sides[name])))
        rows, notes = dict[str, dict[str, str]](), list[str]()
        for latency, alike in by_key((_latency(cause), cause) for _, cause in members).items():
            means = {name: mean for cause in alike for name, mean in _means(cause).items()}
            rows.update(_in_one_unit(f"traced {latency}", means))
        longer = [
            (cause, LAYERS[part.part.layer].quantity, waits)
            for answer, cause in members
            if (part := answer.established) and (waits := _longer_each(run, cause, part, sides))
        ]
        for name in unlike[:_MOST_CLUES]:
            of_each = {figure.filesystem: _amount(figure) for pair in sides[name] for figure in pair}
            noun = _counted(name, sides[name][0][0])
            rows[noun] = {on: "none" if amount == _NONE else amount for on, amount in of_each.items()}
        for cause, name, waits in longer:
            rows.update(waits)
            slower, faster = _by_time(cause)
            what = _counted(name, sides[name][0][0])
            notes.append(f"{slower} has about as many {what} as {faster}, and waits longer for each.")
        for name in [name for name in names if name not in unlike][:1]:
            low, *_, high = sorted((figure for pair in sides[name] for figure in pair), key=lambda w: w.figure.mean)
            span = dict.fromkeys((_amount(low), _amount(high)))
            notes.append(f"{capital(_counted(name, low))} are about equal ({' to '.join(span)}).")
        blocks = min(cause.ratio.n for _, cause in members)
        yield Clue(f" under {label}" if name_workload else "", blocks, rows, tuple(notes))


def _means(cause: Cause) -> dict[str, float]:
    """Return the latency of the baseline and of the candidate."""
    return {cause.baseline: cause.theirs.mean, cause.candidate: cause.ours.mean}


def _in_one_unit(noun: str, seconds: Mapping[str, float]) -> dict[str, dict[str, str]]:
    """Return times of file systems as a row: {'mean sync latency, ms': {'xfs': '0.363', 'ext4': '0.494'}}."""
    scale = scale_for("s", max(seconds.values()))
    figures = {name: value / scale.factor for name, value in seconds.items()}
    shown = {name: significant(v) if v >= _HARDLY_ANY else f"<{_HARDLY_ANY}" for name, v in figures.items()}
    return {f"{noun}, {scale.unit}": shown}


def _longer_each(
    run: RunView,
    cause: Cause,
    part: PartOfDifference,
    sides: Mapping[str, Sequence[tuple[WorkFigure, WorkFigure]]],
) -> dict[str, dict[str, str]]:
    """Return, of a part whose work is alike on both sides, but not the time, a row with how long an operation of each
    file system waits for one of what is done; else nothing. `sides`: ratios of work of all pairs."""
    layer, both = part.part.layer, (cause.baseline, cause.candidate)
    pairs = sides.get(LAYERS[layer].quantity, ()) if layer in _EACH else ()
    if not any(tuple(f.filesystem for f in pair) == both and not _differ(*pair) for pair in pairs):
        return {}
    latency = (cause.workload_label, cause.operation, cause.statistic)
    waits = {
        split.filesystem: sum(seconds.mean for own, seconds in split.parts.items() if own.layer == layer)
        for split in splits(run.why, run.sweep)
        if (split.workload_label, split.operation, split.statistic) == latency
    }
    counts = {figure.filesystem: figure.figure.mean for pair in pairs for figure in pair}
    each = {name: waits[name] / count for name, count in counts.items() if count and waits.get(name)}
    slower, faster = _by_time(cause)
    if each.get(slower, 0.0) <= _WORK_APART * each.get(faster, math.inf):
        return {}
    return _in_one_unit(f"waiting per {_EACH[layer]}", each)


def _next_steps(answers: Sequence[Answer], blocks: int) -> list[str]:
    """Return what would establish the rest, or remove the doubts. `blocks`: diagnostic blocks of the run."""
    steps = ["Shorter trials, whose record fits"] if any(answer.cut for answer in answers) else []
    more = min(max(_ENOUGH_BLOCKS, 2 * blocks), MOST_DIAGNOSTIC)
    if more > blocks and not all(answer.established for answer in answers):
        steps.append(f"{more} diagnostic blocks instead of {blocks} (`mountlab explain RUN -p explain={more}`)")
    return steps


def _doubts(answer: Answer) -> Iterator[str]:
    """Yield what weakens the explanation."""
    for cost in answer.slowed:
        figures = ratio_figures(cost.ratio.ratio, cost.ratio.low, cost.ratio.high)
        yield f"while traced, {cost.cell} has {figures} times its counted {metric_noun(cost.metric)}"
    if answer.cut:
        yield f"the record of {listed([cut.cell for cut in answer.cut])} ended early"
    if answer.off:
        yield off_text(answer.off)
