"""What a gate found: for the terminal, as data, as a Markdown summary, and as JUnit XML, which CI systems read."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from mountlab.analysis.compare.run_spread import below
from mountlab.analysis.gate import EXIT_CODES, WORST_FIRST, Gate, Judged
from mountlab.analysis.run_view import ComparedRun
from mountlab.core import names, numbers
from mountlab.core.json import plain
from mountlab.core.text import aligned, lines_of, visible
from mountlab.report.sentences.comparison import caveat_lines
from mountlab.stats import power

RUNS_A_SIDE = 3
"""With so many on each side, in turns, the runs tell by how much they differ."""
_SIGNS = {"fails": "❌ fails", "cannot tell": "❔ cannot tell", "passes": "✅ passes"}
_FAR = 2
"""How many times as many are needed where it is worth to say what would do if the change is what was seen."""
_ESCAPED = str.maketrans({sign: f"\\{sign}" for sign in "\\|`*_[]<>~#"})

# ── sentences ────────────────────────────────────────────────────────────────────────────────────────────────────────


def headline(gate: Gate) -> str:
    """'Cannot tell: of 9 figures 1 is inconclusive and 8 pass, at a margin of 5 %.'"""
    spoken = {
        "fails": ("fails", "fail"),
        "cannot tell": ("is inconclusive", "are inconclusive"),
        "passes": ("passes", "pass"),
    }
    counts = {kind: sum(each.outcome == kind for each in gate.judged) for kind in WORST_FIRST}
    parts = [f"{count} {spoken[kind][count > 1]}" for kind, count in counts.items() if count]
    figures, margin = numbers.counted(len(gate.judged), "figure"), numbers.percent(gate.margin)
    return f"{gate.outcome.capitalize()}: of {figures} {numbers.listed(parts)}, at a margin of {margin}."


def why(gate: Gate, each: Judged) -> str:
    """Return one figure's outcome, and what it rests on or would take: 'cannot tell: needs 7 more blocks in each
    run'."""
    if each.reason:
        return f"{each.outcome}: {each.reason}"
    if each.outcome == "cannot tell":
        would = f"; {each.would} {_unless(each)}" if _unless(each) else ""
        return f"cannot tell: {_what_would(gate, each)}{would}"
    bound = each.at_least if each.outcome == "fails" else each.at_most
    said = "at least" if each.outcome == "fails" else "at most"
    even = f", {_unless(each)}" if _unless(each) else ""
    return f"{each.outcome}: {said} {_as_share(bound)}{even}"


def _unless(each: Judged) -> str:
    """'unless runs differ by more than 1.8 %'; '' where there is no break-even."""
    return "" if math.isnan(each.unless) else f"unless runs differ by more than {below(each.unless)}"


def _as_share(bound: float) -> str:
    """'3 % worse', '2 % better', 'infinitely worse'."""
    if not math.isfinite(bound):
        return "infinitely worse"
    return f"{numbers.percent(bound - 1)} worse" if bound >= 1 else f"{numbers.percent(1 - bound)} better"


def _what_would(gate: Gate, each: Judged) -> str:
    in_runs = each.unit == "run"
    where = "on each side" if in_runs else "in each run"
    if power.too_many(each.needed, each.n):
        text = f"at this noise needs more than {power.MOST_RUN} {each.unit}s {where}"
        text += "" if in_runs and gate.unit == "block" else "; half the noise, a quarter of them"
    elif in_runs:
        text = f"needs {numbers.counted(round(each.needed), 'run')} {where}"
    else:
        text = f"needs {numbers.counted(round(each.more), 'more block')} in each run ({round(each.needed)} in all)"
    if in_runs and gate.unit == "block":
        text += _first_look(each)
    if each.seen * _FAR < each.needed:
        return f"{text}; {round(each.seen - each.present)} more if it is as it looks"
    return text


def _first_look(each: Judged) -> str:
    """', interleaved'; where it is not measured by how much runs differ, also how many would measure it."""
    assumed = [one.sd for one in each.spread if not one.runs]
    if not assumed or each.needed <= RUNS_A_SIDE:
        return ", interleaved"
    return f", interleaved, if they differ by {numbers.percent(max(assumed))}; {RUNS_A_SIDE} measure by how much"


def promises(gate: Gate) -> str:
    """Say what may go wrong, and how often."""
    wrong = numbers.percent(1 - gate.level)
    said = (
        f"The chance that any figure fails by mistake is at most {wrong}, and so is the chance that any passes by "
        f"mistake, over {numbers.counted(len(gate.judged), 'figure')} together, {over_looks(gate)}."
    )
    if gate.looks == "once":
        said += " It does not hold if the question is asked again with more data."
    if any(math.isfinite(each.needed) for each in gate.judged):
        said += (
            " With as many as are named, no change at all would pass, and one of twice the margin fail, in "
            f"{numbers.percent(power.POWER)} of cases."
        )
    return f"{said} {gate.runs_differ}"


def advice(gate: Gate) -> list[str]:
    """Say how to measure runs that can tell, where one beside one cannot."""
    if gate.unit == "run" or all(each.unit == "block" for each in gate.judged):
        return []
    return [
        f"Measure {RUNS_A_SIDE} runs of each side or more, in turns (change, baseline, change, baseline ...), and name "
        "all of them: gate RUN RUN RUN --against RUN RUN RUN."
    ]


def over_looks(gate: Gate) -> str:
    """Say which looks the error holds over: 'over all looks at this change with more blocks in both runs'."""
    if gate.looks == "once":
        return "in this one look"
    more = "runs on either side" if gate.unit == "run" else "blocks in both runs"
    return f"over all looks at this change with more {more}"


def _what_counts(gate: Gate) -> list[str]:
    """Return which blocks or runs count, where that is not all."""
    if not gate.left_out:
        return []
    change, baseline = gate.counted
    of = (
        f"The first {min(gate.counted)} blocks of each run count"
        if gate.unit == "block"
        else f"The first {numbers.counted(change, 'run')} of the change and {baseline} of the baseline count"
    )
    return [f"{of}, since looks are at fixed numbers; --looks once, for a question that is asked once, counts all."]


# ── text and data ────────────────────────────────────────────────────────────────────────────────────────────────────


def gate_text(gate: Gate) -> str:
    """Return one line a figure, the worst first; then what they come to."""
    lines = aligned(_row(gate, each) for each in gate.judged)
    about = (*_differs(gate), *_what_counts(gate), gate.runs_differ, *advice(gate))
    return lines_of([*lines, "", *about, _error(gate), headline(gate)])


def _error(gate: Gate) -> str:
    """'Error: at most 5 % either way, for all figures together, over all looks at this change with more blocks ...'"""
    return f"Error: at most {numbers.percent(1 - gate.level)} either way, for all figures together, {over_looks(gate)}."


def _row(gate: Gate, each: Judged) -> tuple[str, ...]:
    figures = numbers.ratio_figures(*each.ratio)
    noun = names.metric_noun(each.metric, each.label)
    return (each.outcome, each.cell.id, noun, figures.value, figures.interval, why(gate, each).partition(": ")[2])


def _differs(gate: Gate) -> list[str]:
    areas = [f"The two sides differ in {numbers.listed(list(gate.differs))}."] if gate.differs else []
    return [*areas, *gate.options, *caveat_lines(gate.unequal)]


def gate_json(gate: Gate) -> dict[str, Any]:
    """Return the same as data; what is infinite or not known is null."""
    return {
        "outcome": gate.outcome,
        "exit_code": EXIT_CODES[gate.outcome],
        "margin": gate.margin,
        "level": gate.level,
        "looks": gate.looks,
        "unit": gate.unit,
        "counted": min(gate.counted),
        "error": _error(gate),
        "runs_differ": gate.runs_differ,
        "advice": advice(gate),
        "change": _names(gate.change),
        "baseline": _names(gate.baseline),
        "differs": list(gate.differs),
        "options": list(gate.options),
        "caveats": [asdict(each) for each in gate.unequal],
        "figures": [plain(_figure_json(each)) for each in gate.judged],
    }


def _figure_json(each: Judged) -> dict[str, object]:
    about = {"outcome": each.outcome, "cell": each.cell.id, "metric": each.metric, "label": each.label}
    ratio = dict(zip(("ratio", "low", "high"), each.ratio, strict=True))
    bounds = {"at_least": each.at_least, "at_most": each.at_most, "needed": each.needed, "more": each.more}
    spreads = [{"sd": one.sd, "degrees": one.degrees, "earlier_runs": one.runs} for one in each.spread]
    return {
        **about,
        **ratio,
        "n": each.n,
        "reason": each.reason,
        **bounds,
        "needed_as_seen": each.seen,
        "needed_unit": each.unit,
        "break_even": {"outcome": each.would, "runs_differ": each.unless},
        "run_spread": dict(zip(("change", "baseline"), spreads, strict=False)),
    }


def _names(runs: Sequence[ComparedRun]) -> list[str]:
    return [run.info.run_id for run in runs]


# ── Markdown ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def gate_markdown(gate: Gate) -> str:
    """Return a summary as CI systems show it beside a change: the outcome, a table, what may be wrong."""
    return "\n".join(_markdown(gate)) + "\n"


def _markdown(gate: Gate) -> Iterator[str]:
    yield f"## {_SIGNS[gate.outcome].partition(' ')[0]} {_safe(headline(gate))}"
    yield ""
    for name, runs in (("Change", gate.change), ("Baseline", gate.baseline)):
        yield f"- {name}: {', '.join(map(_safe, _names(runs)))}"
    yield from (f"- {_safe(each)}" for each in (*_differs(gate), *_what_counts(gate), *advice(gate)))
    yield ""
    yield "| Outcome | Cell | Figure | Change / baseline | Interval | Why |"
    yield "|---|---|---|---:|---:|---|"
    for each in gate.judged:
        _, cell, noun, *figures, reason = _row(gate, each)
        yield f"| {' | '.join([_SIGNS[each.outcome], *map(_safe, (cell, noun, *figures, reason))])} |"
    yield ""
    yield _safe(promises(gate))


def _safe(text: str) -> str:
    """Return text from anywhere in a line of Markdown: it makes no table, link or tag."""
    return visible(text).replace("\n", " ").translate(_ESCAPED)


# ── JUnit XML ────────────────────────────────────────────────────────────────────────────────────────────────────────


def gate_junit(gate: Gate) -> bytes:
    """Return one test case a figure: a figure that fails is a failure, an inconclusive one is skipped with the reason,
    and one that the change lacks, for no known reason, is an error."""
    suite = TestSuite("mountlab gate")
    known = {
        "outcome": gate.outcome,
        "margin": f"{gate.margin:g}",
        "level": f"{gate.level:g}",
        "looks": gate.looks,
        "error": _error(gate),
        "runs_differ": gate.runs_differ,
        "options": "; ".join(gate.options),
        "change": ", ".join(_names(gate.change)),
        "baseline": ", ".join(_names(gate.baseline)),
    }
    for name, value in known.items():
        suite.add_property(name, visible(value))
    for each in gate.judged:
        suite.add_testcase(_case(gate, each))
    document = JUnitXml()
    document.add_testsuite(suite)
    document.update_statistics()  # type: ignore[no-untyped-call]
    return bytes(document.tostring())  # type: ignore[no-untyped-call]


def _case(gate: Gate, each: Judged) -> TestCase:
    case = TestCase(each.metric + (f" {visible(each.label)}" if each.label else ""), visible(each.cell.id), 0)
    text = visible(why(gate, each))
    if each.outcome == "fails":
        case.result = [(Error if each.reason else Failure)(text, each.outcome)]
    elif each.outcome == "cannot tell":
        case.result = [Skipped(text, each.outcome)]
    case.system_out = visible(f"{text}; change / baseline {numbers.ratio_figures(*each.ratio)}")
    return case
