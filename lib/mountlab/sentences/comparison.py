"""What a comparison of runs says: in sentences, as text for the terminal, and as data.

The intervals are those that hold for all ratios together: an interval leaves out 1 exactly where a verdict says so.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import TypeVar

from mountlab.analysis.compare.caveats import FEW
from mountlab.analysis.compare.comparisons import AnswerOverRuns
from mountlab.analysis.compare.differences import WORKLOAD, Difference, known_areas
from mountlab.analysis.compare.over_boxes import RatioOverBoxes
from mountlab.analysis.compare.run_spread import below
from mountlab.analysis.compare.runs import CellOverRuns, Factor, RunComparison, box_of
from mountlab.analysis.compare.to_first import CellRatio
from mountlab.analysis.run_view import ComparedRun
from mountlab.core import numbers
from mountlab.core.fact_words import fact_name, fact_text
from mountlab.core.findings import Caveat, Comparison
from mountlab.core.groups import by_key
from mountlab.core.json import plain
from mountlab.core.names import metric_noun
from mountlab.core.text import aligned, capital, lines_of
from mountlab.sentences.trust import next_steps, trust_sentence, watch_advice
from mountlab.sentences.watched import same_work
from mountlab.wording import verdicts
from mountlab.wording.caveats import caveat_counts, doubts_by_cell, grouped

Varying = TypeVar("Varying", CellOverRuns, RatioOverBoxes)
"""What may differ from run to run by more than its trials explain."""
PLURAL: Mapping[Factor, str] = {"run": "runs", "box": "boxes"}
_MOST_NAMED = 3
_MOST_RATIOS = 6
"""Ratios of two runs on the first screen."""
_NAME_WIDTH = 12
_SHORT = 16
"""Characters of a value that stands beside the name of what differs."""
_VAST = 1000
"""A factor in an interval that excludes nothing."""

# ── sentences ────────────────────────────────────────────────────────────────────────────────────────────────────────


def title(comparison: RunComparison) -> str:
    """Return the question of the page."""
    runs = comparison.runs
    if comparison.is_pair:
        before, after = run_titles(runs)
        return f"Do {before} and {after} differ?"
    questions = [" ".join(run.sweep.question.split()) for run in runs]
    if comparison.factor == "box":
        return f"Does it hold over {numbers.counted(len(runs), 'box')}? {questions[0]}"
    one = questions[0] if len(set(questions)) == 1 else f"{runs[0].sweep.name} and others"
    return f"How did the answer change over {numbers.counted(len(runs), 'run')}? {one}"


def sentences(comparison: RunComparison) -> list[str]:
    """Return the answer. Of two runs: whether they differ, and whether one cause could be named. Of many: did the
    verdicts hold, how much runs differ by themselves, which run differs from the first. Of boxes: what holds over them
    and on each, what to expect of a further one, and where figures vary."""
    if comparison.is_pair:
        return [*same_work(comparison.runs, comparison.names), _answer_of_pair(comparison)]
    varying = _variation(comparison, "figure", comparison.cells, figure_name)
    if comparison.factor == "run":
        return [*_held_in_runs(comparison), *varying, _against_first(comparison)]
    of_ratios = _variation(comparison, "ratio", comparison.over_boxes, lambda ratio: answer_name(ratio.over))
    box_by_box = [_held_on_boxes(comparison), *_turned(comparison)] if comparison.answers else []
    ratios = {id(ratio.over): ratio for ratio in comparison.over_boxes if math.isfinite(ratio.further_high)}
    if ratios:  # what the strongest may be on the next box
        first = ratios[id(verdicts.strongest_first([ratio.over for ratio in ratios.values()])[0])]
        interval = numbers.ratio_figures(first.over.ratio, first.further_low, first.further_high).interval
        what, level = answer_name(first.over), numbers.percent(comparison.level)
        box_by_box.append(f"On one more such box a run would show for {what} a ratio within {interval}, at {level}.")
    missing = list(comparison.missing)
    whom = "it" if len(missing) == 1 else "them"
    without = (
        [f"Without {numbers.listed(missing)}: there are no figures of {whom} (see the caveats)."] if missing else []
    )
    return [*_over_boxes(comparison), *box_by_box, *varying, *of_ratios, *without]


def _answer_of_pair(pair: RunComparison) -> str:
    """'Yes: B is faster in 2, slower in 1 and undecided in 6 of 9 ratios, and one setting differs: kernel.', 'No
    difference is shown in any of 8 ratios; up to a factor of 20 is not excluded. No recorded setting differs.'"""
    fell = Counter(ratio.comparison.verdict for ratio in pair.ratios if verdicts.has_interval(ratio.comparison))
    total = len(pair.ratios)
    count = numbers.counted(total, "ratio")
    tally = verdicts.tally(fell, pair.smallest_effect, none=total - fell.total())
    if fell["faster"] or fell["slower"]:
        return f"Yes: B is {tally} of {count}, and {_causes(pair)}."
    if not fell:
        text = f"Not known: without an interval in {total} of {count}"
    elif fell["same"] == total:
        text = f"No: B is {tally} of {count}"
    else:
        any_ratio = f"any of {count}" if total > 1 else "the only ratio"
        where = f": B is {tally} of {count}" if fell["same"] else f" in {any_ratio}"
        text = f"No difference is shown{where}; {_not_excluded(pair)}"
    causes = _causes(pair)
    without = " if there were one" if causes.endswith("named") else ""
    return f"{text}. {capital(causes)}{without}."


def _not_excluded(pair: RunComparison) -> str:
    """'up to a factor of 20 is not excluded': the largest in any interval."""
    intervals = [ratio.comparison.verdict_interval for ratio in pair.ratios]
    factor = max(end for one in intervals if one.is_known for end in (one.high, 1 / one.low if one.low else math.inf))
    if factor >= _VAST:
        return "no factor is excluded"
    size = f"a factor of {numbers.ratio_figures(*[factor] * 3).value}" if factor > 2 else numbers.percent(factor - 1)
    return f"up to {size} is not excluded"


def _causes(pair: RunComparison) -> str:
    """Return whether one cause could be named: '8 settings differ, so no cause could be named'."""
    names = [difference_name(replace(row, part="")) for row in pair.differences if row.known]
    settings = list(dict.fromkeys(names))
    if not settings:
        return "no recorded setting differs"
    if len(settings) == 1:
        return f"one setting differs: {settings[0]}"
    return f"{len(settings)} settings differ, so no cause could be named"


def what_differs(pair: RunComparison) -> str:
    """'workload dd-write (count 256 → 512); system (kernel)': by area what is known to differ, with values that are
    short."""
    by_area: dict[str, dict[str, None]] = {}
    for row in pair.differences:
        if row.known:
            values, name = difference_values(row), difference_name(replace(row, part=""))
            is_short = not row.part and max(map(len, values)) <= _SHORT
            by_area.setdefault(row.area, {})[f"{name} {' → '.join(values)}" if is_short else name] = None
    return "; ".join(f"{area} ({', '.join(names)})" for area, names in by_area.items())


def trust_lines(comparison: RunComparison) -> list[tuple[str, str]]:
    """Return how far the answer can be trusted, and what to do next, each below its name."""
    first, *others = comparison.runs
    passed = [check for check in first.checks_passed if all(check in run.checks_passed for run in others)]
    lines = [(f"Trust: {comparison.trust.grade}", trust_sentence(comparison.trust, passed))]
    gravest = next_steps(comparison.trust, (), None, watch_advice(first.sweep))
    steps = " ".join(filter(None, (next_step(comparison), gravest)))
    return [*lines, ("Next", steps)] if steps else lines


def next_step(comparison: RunComparison) -> str:
    """Return what tells more: an end of what is unfinished, more runs or boxes, one change at a time; '' where there is
    nothing to do."""
    named = zip(comparison.names, comparison.runs, strict=True)
    compared = [ratio.comparison for ratio in comparison.ratios]
    if unfinished := [name for name, run in named if run.info.status != "complete"]:
        return f"Finish {numbers.listed(unfinished)} (mountlab resume)."
    if more_boxes := verdicts.most_needed(ratio.over for ratio in comparison.over_boxes):
        return f"Measure more boxes{more_boxes}."
    if not comparison.is_pair:
        missing = FEW - len(comparison.runs)
        plural = PLURAL[comparison.factor]
        more = f"more {comparison.factor if missing == 1 else plural}"
        return f"Measure {missing} {more}: {FEW} tell by how much {plural} differ." if missing > 0 else ""
    if len(known_areas(comparison.differences)) > 1:
        return "Repeat A unchanged, then change one setting at a time."
    if any(ratio.verdict == "undecided" for ratio in compared):
        return f"Repeat A and B in turns{verdicts.most_needed(compared)}."
    if all(ratio.verdict == "same" for ratio in compared):
        return ""
    return "Run each twice more, in turns, and judge all six with mountlab gate."


def strongest(pair: RunComparison) -> list[CellRatio]:
    """Return the ratios that a first screen has room for, the strongest effects first."""
    by_comparison = {id(ratio.comparison): ratio for ratio in pair.ratios}
    ordered = verdicts.strongest_first(ratio.comparison for ratio in pair.ratios)
    return [by_comparison[id(comparison)] for comparison in ordered[:_MOST_RATIOS]]


def _held_in_runs(comparison: RunComparison) -> Iterator[str]:
    answers = comparison.answers
    if not answers:
        yield "The runs share no comparison, so there are no verdicts to hold against each other."
        return
    changed = [answer for answer in answers if not answer.agrees]
    total = numbers.counted(len(answers), "comparison")
    if not changed:
        every = f"its {total.removeprefix('1 ')} has" if len(answers) == 1 else f"all {total} have"
        yield f"The answer held: {every} the same verdict in every run."
        return
    count = len(answers) - len(changed)
    has = "has" if count == 1 or len(answers) == 1 else "have"
    yield f"The answer did not hold throughout: {count} of {total} {has} the same verdict in every run."
    for answer in changed[:_MOST_NAMED]:
        yield f"{answer_name(answer.present[0])}: {_by_verdict(comparison, answer, 'in')}."
    if len(changed) > _MOST_NAMED:
        yield f"{len(changed) - _MOST_NAMED} more changed; the table has all of them."


def _held_on_boxes(comparison: RunComparison) -> str:
    """'Box by box, 7 of 9 comparisons have the same verdict, faster, slower or the same, on every box.'"""
    ratios = comparison.over_boxes
    count = sum(ratio.holds for ratio in ratios)
    total = numbers.counted(len(ratios), "comparison")
    has = "has" if 1 in (count, len(ratios)) else "have"
    return f"Box by box, {count} of {total} {has} the same verdict, faster, slower or the same, on every box."


def _turned(comparison: RunComparison) -> Iterator[str]:
    turned = [ratio for ratio in comparison.over_boxes if ratio.turns]
    for ratio in turned[:_MOST_NAMED]:
        yield f"It turns round: {answer_name(ratio.over)} is {_by_verdict(comparison, ratio, 'on')}."
    if len(turned) > _MOST_NAMED:
        yield f"{len(turned) - _MOST_NAMED} more turn round; the table has all of them."


def _by_verdict(comparison: RunComparison, answer: AnswerOverRuns, where: str) -> str:
    """'faster in A and B, undecided in C'; `where`: 'in' or 'on'."""
    names = comparison.names
    fell = {verdict: numbers.listed([names[place] for place in places]) for verdict, places in answer.verdicts.items()}
    smallest = comparison.smallest_effect
    return ", ".join(f"{verdicts.verdict_text(verdict, smallest)} {where} {runs}" for verdict, runs in fell.items())


def _variation(
    comparison: RunComparison, noun: str, parts: Sequence[Varying], name: Callable[[Varying], str]
) -> Iterator[str]:
    """Yield how many figures, or ratios, differ from run to run (or box to box) by more than their trials explain, and
    the one that does most. `name`: of a part."""
    run, runs = comparison.factor, PLURAL[comparison.factor]
    judged = [part for part in parts if not math.isnan(part.p_adjusted)]
    beyond = [part for part in judged if part.p_adjusted < 1 - comparison.level]
    count = numbers.counted(len(judged), noun)
    if not judged:
        if parts and noun == "figure":
            yield f"The part of a difference that is the {runs}' own is unknown: no run has two trials of a figure."
    elif not beyond:
        yield f"Nothing shows that {runs} differ in a {noun} by more than their trials explain, in {count}."
    else:
        most = max(beyond, key=lambda part: part.spread.between)
        between, within, share = map(percent, (most.spread.between, most.spread.within, most.spread.share))
        yield (
            f"{len(beyond)} of {count} {'differs' if len(beyond) == 1 else 'differ'} from {run} to {run} by more than "
            f"the trials explain, most {name(most)}: by {between} between {runs} and {within} from trial to trial, "
            f"{share} of the variance between {runs}."
        )


def plot_titles(comparison: RunComparison) -> tuple[str, str]:
    """Return those of the two pictures: the answer in every run, and every figure over its mean."""
    if comparison.factor == "run":
        return "The answer of every run", "Each figure in every run, over its mean over runs"
    return "The answer on every box, and over all of them", "Each figure on every box, over its mean over boxes"


def _against_first(comparison: RunComparison) -> str:
    """'Against A, all 18 ratios corrected together: B is faster in 2; C is undecided in 9.'"""
    columns = list(zip(*comparison.to_first, strict=True))[1:]
    fell = [Counter(ratio.comparison.verdict for ratio in column if ratio) for column in columns]
    tallies = [verdicts.tally(counts, comparison.smallest_effect) for counts in fell]
    alike = by_key(zip(tallies, comparison.names[1:], strict=True))
    parts = [f"{numbers.listed(runs)} {'are each' if len(runs) > 1 else 'is'} {tally}" for tally, runs in alike.items()]
    count = numbers.counted(len(comparison.ratios), "ratio")
    return f"Against A, {count} corrected together: {'; '.join(parts)}."


def _over_boxes(comparison: RunComparison) -> Iterator[str]:
    overall = [ratio.over for ratio in comparison.over_boxes]
    if not overall:
        yield "The runs have no comparison, so there is no answer to hold over boxes; their figures are below."
        return
    summary = verdicts.summary(overall, comparison.smallest_effect).replace(", in all:", ":", 1)
    yield f"Over {numbers.counted(len(comparison.runs), 'box')} {summary[0].lower()}{summary[1:]}"
    decided = [ratio for ratio in verdicts.strongest_first(overall) if ratio.verdict in ("faster", "slower", "same")]
    doubts = doubts_by_cell(comparison.caveats, comparison.runs[0].sweep.own_metrics)
    for ratio in decided[:_MOST_NAMED]:
        weak = verdicts.doubts_about(ratio, doubts)
        yield verdicts.comparison_sentence(ratio, smallest_effect=comparison.smallest_effect, doubts=weak)


# ── names ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def run_titles(runs: Sequence[ComparedRun]) -> list[str]:
    """Return a title for each run: 'tour (23 Nov)', with the year where the runs differ in it, and the time of day
    where two are of one day; the ids of the runs where that does not tell them apart."""
    began = [datetime.fromisoformat(run.info.created_at) if run.info.created_at else None for run in runs]
    year = " %Y" if len({moment.year for moment in began if moment}) > 1 else ""
    for clock in ("", ", %H:%M", ", %H:%M:%S"):
        days = [f" ({moment.day} {moment:%b{year}{clock}})" if moment else "" for moment in began]
        titles = [f"{run.sweep.name}{day}" for run, day in zip(runs, days, strict=True)]
        if len(set(days)) == len(days):
            break
    return titles if len(set(titles)) == len(titles) else [run.info.run_id for run in runs]


def about(run: ComparedRun) -> str:
    """Return a run in one line: its sweep, its date, its box, its kernel, its id."""
    kernel = run.info.facts.kernel.release
    parts = (run.sweep.name, minute_of(run), f"box {box_of(run)}", f"Linux {kernel}" if kernel else "", run.info.run_id)
    return " · ".join(part for part in parts if part)


def minute_of(run: ComparedRun) -> str:
    """'2026-02-01 10:05 UTC'; '' where it is not known."""
    moment = run.info.created_at
    return f"{datetime.fromisoformat(moment):%Y-%m-%d %H:%M} UTC" if moment else ""


def day_of(run: ComparedRun) -> str:
    """'2026-02-01'; '' where it is not known."""
    return run.info.created_at.partition("T")[0]


def figure_name(figure: CellOverRuns) -> str:
    """'ext4/dd-write (write bandwidth)'."""
    return f"{figure.cell.id} ({metric_noun(figure.metric, figure.label)})"


def pair_name(comparison: Comparison) -> str:
    """'tmpfs to ext4'."""
    return f"{comparison.candidate} to {comparison.baseline}"


def row_name(comparison: Comparison) -> str:
    """'dd-write: write bandwidth'."""
    return f"{verdicts.workload_of(comparison)}: {metric_noun(comparison.metric, comparison.label)}"


def answer_name(comparison: Comparison) -> str:
    """'tmpfs to ext4, dd-write: write bandwidth'."""
    return f"{pair_name(comparison)}, {row_name(comparison)}"


def difference_name(difference: Difference) -> str:
    """Return a fact, one of its values, or a key of the parameters as people read it; an option as its tool has it."""
    is_option = difference.area.startswith(WORKLOAD)
    return difference.what if is_option else fact_name(difference.what, difference.part)


def difference_values(difference: Difference) -> list[str]:
    """Return what each run has kept of it; 'not known' where runs cannot all tell and this one does not."""
    return [
        fact_text(difference.what, value, difference.part) if difference.known or value is not None else "not known"
        for value in difference.values
    ]


def all_of(comparison: RunComparison) -> str:
    """'both runs', 'all runs' or 'all boxes'."""
    return "both runs" if comparison.is_pair else f"all {PLURAL[comparison.factor]}"


def percent(share: float) -> str:
    """'3 %', or that it is not known."""
    return numbers.percent(share) if math.isfinite(share) else numbers.MISSING


def p_text(p: float) -> str:
    """Return a p value, or that there is none."""
    return numbers.MISSING if math.isnan(p) else numbers.p_text(p)


def break_even_text(ratio: CellRatio) -> str:
    """'1.8 %'; '' where there is none."""
    return "" if math.isnan(ratio.unless) else below(ratio.unless)


# ── text ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def comparison_text(comparison: RunComparison) -> str:
    """For the terminal: the runs, the answer, what differs, one row a figure or ratio."""
    blocks = [block for block in map(list, _blocks(comparison)) if block]
    return lines_of(line for place, block in enumerate(blocks) for line in ([""] if place else []) + block)


def _blocks(comparison: RunComparison) -> Iterator[Iterable[str]]:
    """Yield the parts of the text, each as its lines."""
    width = max(_NAME_WIDTH, *map(len, (*comparison.names, *comparison.missing)))
    yield [
        *(f"{name:{width}} {about(run)}" for name, run in zip(comparison.names, comparison.runs, strict=True)),
        *(f"{name:{width}} no figures: {' '.join(why.split())}" for name, why in comparison.missing.items()),
    ]
    if comparison.is_pair:
        yield _answer_lines(comparison)
        yield _difference_lines(comparison)
        yield _ratio_lines(comparison)
        yield [comparison.runs_differ, "Break-even: B differs from A unless runs differ by more."]
        yield caveat_lines(comparison.caveats)
        return
    yield _answer_lines(comparison)
    yield _difference_lines(comparison)
    yield caveat_lines(caveat for caveat in comparison.caveats if caveat.code == "unequal-work")
    if comparison.factor == "box":
        yield _lines_over_boxes(comparison)
    yield _figure_lines(comparison)


def _answer_lines(comparison: RunComparison) -> Iterator[str]:
    """Yield the answer, by how much runs of many are known to differ, the trust, and what to do next."""
    yield from sentences(comparison)
    if comparison.runs_differ and not comparison.is_pair:
        yield comparison.runs_differ
    yield from (f"{name}. {text}" for name, text in trust_lines(comparison))


def _difference_lines(comparison: RunComparison) -> Iterator[str]:
    """Yield what differs between the runs, and which cells some lack; of boxes, which differ anyhow, only options of
    workloads."""
    of_boxes = comparison.factor == "box"
    rows = [row for row in comparison.differences if not of_boxes or row.area.startswith(WORKLOAD)]
    lines = []
    for row in (row for row in rows if row.known):  # '6.18 in A and B, 6.19 in C'
        by_value = by_key(zip(difference_values(row), comparison.names, strict=True))
        values = ", ".join(f"{text} in {numbers.listed(names)}" for text, names in by_value.items())
        lines.append(f"{row.area}: {difference_name(row)}: {values}")
    if unknown := [difference_name(row) for row in rows if not row.known]:
        lines.append(f"not known of {all_of(comparison).replace('both runs', 'both')}: {', '.join(unknown)}")
    if not rows and not of_boxes:
        lines = ["in nothing that was kept"]
    yield from (f"{'' if place else 'differs':{_NAME_WIDTH}} {line}" for place, line in enumerate(lines))
    for name, cells in comparison.only_in.items():
        where = f"only in {name}"
        yield from (f"{'' if place else where:{_NAME_WIDTH}} {cell}" for place, cell in enumerate(cells))


def caveat_lines(caveats: Iterable[Caveat]) -> list[str]:
    """Return one line for each kind of caveat: the message of its first."""
    return [f"{group.severity}: {group.heading}: {group.caveats[0].message}" for group in grouped(caveats)]


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> list[str]:
    """Return the lines of a table; none where it has no row."""
    table = [head, *rows]
    return list(aligned(table)) if len(table) > 1 else []


def _ratio_lines(pair: RunComparison) -> list[str]:
    interval = f"{pair.level:.0%} interval"
    head = ("cell", "metric", "A", "B", "B / A", interval, "n", "break-even", "verdict")
    rows = []
    for ratio in pair.ratios:
        figures = verdicts.compared_figures(ratio.comparison)
        means = (numbers.quantity(mean, ratio.unit) for mean in (ratio.mean_a, ratio.mean_b))
        cells = (figures.value, figures.interval, f"{ratio.n_a}, {ratio.n_b}", break_even_text(ratio))
        verdict = verdicts.verdict_or_why(ratio.comparison, pair.smallest_effect)
        rows.append((ratio.cell.id, metric_noun(ratio.metric, ratio.label), *means, *cells, verdict))
    return _table(head, rows)


def _lines_over_boxes(comparison: RunComparison) -> list[str]:
    rows = []
    for ratio in comparison.over_boxes:
        over = ratio.over
        on_each = (
            f"{verdicts.compared_figures(one).value} {one.verdict}" if one else numbers.MISSING for one in ratio.on_each
        )
        further = numbers.ratio_figures(over.ratio, ratio.further_low, ratio.further_high).interval
        figures = str(verdicts.compared_figures(over))
        rows.append((answer_name(ratio.over), *on_each, figures, over.verdict, further))
    return _table(("ratio", *comparison.names, "over boxes", "", "further box"), rows)


def _figure_lines(comparison: RunComparison) -> list[str]:
    rows = []
    for figure in comparison.cells:
        means = (numbers.quantity(one.mean, figure.unit) if one else numbers.MISSING for one in figure.estimates)
        parts = (figure.spread.between, figure.spread.within, figure.spread.share)
        rows.append((figure_name(figure), *means, *map(percent, parts), p_text(figure.p_adjusted)))
    return _table(("figure", *comparison.names, "between", "within", "share between", "p"), rows)


# ── data ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def entry(comparison: RunComparison) -> dict[str, object]:
    """Return what the index of results shows of the page. Its date is that of the newest run, so that it is the same
    when made again."""
    return {
        "kind": "comparison",
        "title": title(comparison),
        "page": "report.html",
        "verdict": sentences(comparison)[0],
        "created_at": max(run.info.created_at for run in comparison.runs),
        "caveats": caveat_counts((caveat.severity, caveat.code) for caveat in comparison.caveats),
        "runs": [run.info.run_id for run in comparison.runs],
    }


def comparison_json(comparison: RunComparison) -> dict[str, object]:
    """Return everything in the comparison, JSON-able: what is infinite or not known is null."""
    runs = {name: run.info.run_id for name, run in zip(comparison.names, comparison.runs, strict=True)}
    content: dict[str, object] = {
        "level": comparison.level,
        "smallest_effect": comparison.smallest_effect,
        "sentences": sentences(comparison),
        **{name.partition(":")[0].lower(): text for name, text in trust_lines(comparison)},
        "differences": [asdict(row) for row in comparison.differences],
        "caveats": [asdict(caveat) for caveat in comparison.caveats],
    }
    if comparison.factor == "box":
        ratios = [
            {
                "on_each": [one and _answer_json(one) for one in ratio.on_each],
                "over": ratio.over.columns,
                "further": [ratio.further_low, ratio.further_high],
                "spread": asdict(ratio.spread),
                "p_adjusted": ratio.p_adjusted,
            }
            for ratio in comparison.over_boxes
        ]
        cells = list(map(_cell_json, comparison.cells))
        content |= {"boxes": runs, "missing": dict(comparison.missing), "ratios": ratios, "figures": cells}
    elif comparison.is_pair:
        content |= {**_pair_json(comparison), "runs_differ": comparison.runs_differ}
    else:
        content |= {
            "runs": runs,
            "runs_differ": comparison.runs_differ,
            "answers": [[one and _answer_json(one) for one in answer.on_each] for answer in comparison.answers],
            "cells": [
                {**_cell_json(cell), "to_first": [ratio and ratio.comparison.columns for ratio in cell.ratios]}
                for cell in comparison.cells
            ],
        }
    data: dict[str, object] = plain(content)
    return data


def _answer_json(comparison: Comparison) -> dict[str, object]:
    """Return the columns of a comparison; `low`, `high` and `level` are of the interval of its verdict."""
    interval = comparison.verdict_interval
    return {**comparison.columns, "low": interval.low, "high": interval.high, "level": interval.level}


def _cell_json(cell: CellOverRuns) -> dict[str, object]:
    return {
        "cell": cell.cell.id,
        "metric": cell.metric,
        "label": cell.label,
        "unit": cell.unit,
        "estimates": [one and asdict(one) for one in cell.estimates],
        "spread": asdict(cell.spread),
        "p_adjusted": cell.p_adjusted,
    }


def _pair_json(pair: RunComparison) -> dict[str, object]:
    differences = []
    for row in pair.differences:
        a, b = row.values
        differences.append({"area": row.area, "what": row.what, "part": row.part, "a": a, "b": b, "known": row.known})
    return {
        **dict(zip("ab", (run.info.run_id for run in pair.runs), strict=True)),
        "differences": differences,
        "ratios": [
            {
                "cell": ratio.cell.id,
                "unit": ratio.unit,
                "mean_a": ratio.mean_a,
                "mean_b": ratio.mean_b,
                "n_a": ratio.n_a,
                "n_b": ratio.n_b,
                "break_even": ratio.unless,
                "run_spread": dict(zip("ab", map(asdict, ratio.spread), strict=True)),
                **ratio.comparison.columns,
            }
            for ratio in pair.ratios
        ],
        "only_a": pair.only_in.get("A", ()),
        "only_b": pair.only_in.get("B", ()),
    }
