"""What a gate found: for the terminal, as data, as a Markdown summary, and as JUnit XML, which CI systems read."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from mountlab.analysis.compare.run_spread import below
from mountlab.analysis.gate import EXIT_CODES, WORST_FIRST, Gate, Judged
from mountlab.analysis.run_view import ComparedRun
from mountlab.core import names, numbers
from mountlab.core.json import plain
from mountlab.core.text import aligned, capital, lines_of, visible
from mountlab.sentences.comparison import caveat_lines, run_titles
from mountlab.stats import power

RUNS_A_SIDE = 3
"""With so many on each side, in turns, the runs tell by how much they differ."""
_SIGNS = {"fails": "✗ fails", "cannot tell": "? cannot tell", "passes": "✓ passes"}
_FAR = 2
"""How many times as many are needed where it is worth to say what would do if the change is what was seen; how many
times as bad is a share of the baseline instead of a percentage."""
_ESCAPED = str.maketrans({sign: f"\\{sign}" for sign in "\\|`*_[]<>~#"})

# ── sentences ────────────────────────────────────────────────────────────────────────────────────────────────────────


def headline(gate: Gate) -> str:
    """'Fails: the write bandwidth of tmpfs under dd-write is at least 12 % worse, where 5 % worse is allowed.'"""
    worst, margin = gate.judged[0], numbers.percent(gate.margin)
    if gate.outcome == "cannot tell":
        bounded = [figure for figure in gate.judged if figure.outcome == gate.outcome and not figure.reason]
        worst = max(bounded, key=lambda figure: figure.at_most, default=worst)
    noun = names.metric_noun(worst.metric, worst.label)
    figure = f"the {noun} of {worst.cell.filesystem.name} under {worst.cell.workload.label}"
    if gate.outcome == "passes":
        text = f"no figure is more than {_size(max(1.0, *(judged.at_most for judged in gate.judged)))}"
    elif worst.reason:
        text = f"{figure}: {worst.reason}"
    elif gate.outcome == "fails":
        text = f"{figure} is {_bound(worst, worst.at_least, 'at least', 'at most')}"
    else:
        text = f"{figure} may be {_bound(worst, worst.at_most, 'up to', 'as low as')}"
    return f"{gate.outcome.capitalize()}: {text}, where {margin} worse is allowed."


def _bound(figure: Judged, bound: float, worse: str, lower: str) -> str:
    """'at least 12 % worse', 'as low as 0.45 of the baseline', 'up to 2.2 times the baseline'. `worse`: the words
    before how much worse; `lower`: those before a share of the baseline, where more is better."""
    if not _FAR < bound < math.inf:
        return f"{worse} {_size(bound)}"
    if figure.cell.workload.metric(figure.metric).better == "higher":
        return f"{lower} {_factor(1 / bound)} of the baseline"
    return f"{worse} {_factor(bound)} times the baseline"


def _size(bound: float) -> str:
    """'12 % worse', '3.1 % better', 'a factor of 18 worse'."""
    if not math.isfinite(bound):
        return "infinitely worse"
    if bound > _FAR:
        return f"a factor of {_factor(bound)} worse"
    return f"{numbers.percent(abs(bound - 1))} {'worse' if bound >= 1 else 'better'}"


def _factor(value: float) -> str:
    return numbers.ratio_figures(value, value, value).value


def tally(gate: Gate) -> str:
    """'Of 9 figures 1 fails, 2 are inconclusive and 6 pass.'"""
    spoken = {
        "fails": ("fails", "fail"),
        "cannot tell": ("is inconclusive", "are inconclusive"),
        "passes": ("passes", "pass"),
    }
    counts = {kind: sum(figure.outcome == kind for figure in gate.judged) for kind in WORST_FIRST}
    parts = [f"{count} {spoken[kind][count > 1]}" for kind, count in counts.items() if count]
    figures = numbers.counted(len(gate.judged), "figure")
    if len(parts) == 1:
        return f"{'All ' if len(gate.judged) > 1 else ''}{figures} {parts[0].partition(' ')[2]}."
    return f"Of {figures} {numbers.listed(parts)}."


def why(figure: Judged) -> str:
    """Return one figure's outcome, and what it rests on or would take: 'cannot tell: needs 7 more blocks in each
    run (12 in all)'. What these numbers rest on is said once, by `promises`."""
    if figure.reason:
        return f"{figure.outcome}: {figure.reason}"
    unless = "" if math.isnan(figure.unless) else f"unless runs differ by more than {below(figure.unless)}"
    if figure.outcome == "cannot tell":
        return f"cannot tell: {_what_would(figure)}{f'; {figure.would} {unless}' if unless else ''}"
    ends = (
        (figure.at_least, "at least", "at most")
        if figure.outcome == "fails"
        else (figure.at_most, "at most", "at least")
    )
    return f"{figure.outcome}: {_bound(figure, *ends)}{f', {unless}' if unless else ''}"


def _what_would(figure: Judged) -> str:
    where = "of each side" if figure.unit == "run" else "in each run"
    if power.too_many(figure.needed, figure.n):
        text = f"needs more than {power.MOST_RUN} {figure.unit}s {where}"
    elif figure.unit == "run":
        text = f"needs {numbers.counted(round(figure.needed), 'run')} {where}"
    else:
        text = f"needs {numbers.counted(round(figure.more), 'more block')} {where} ({round(figure.needed)} in all)"
    if figure.seen * _FAR < figure.needed:
        return f"{text}; or {round(figure.seen - figure.present)} more, if the change is as large as it seems"
    return text


def promises(gate: Gate) -> list[str]:
    """Say what may go wrong, and how often; what the numbers that are needed rest on; and by how much runs differ."""
    wrong, figures = numbers.percent(1 - gate.level), numbers.counted(len(gate.judged), "figure")
    error = (
        f"Error rate: the chance that any figure fails by mistake is at most {wrong}, and so is the chance that any "
        f"passes by mistake. This holds for {figures} together, {over_looks(gate)}."
    )
    if gate.looks == "once":
        error += " It does not hold if the question is asked again with more data."
    return [error, *_about_needs(gate), gate.runs_differ]


def _about_needs(gate: Gate) -> list[str]:
    """Return what the numbers in the rows have in common, where any is named."""
    open_figures = [figure for figure in gate.judged if not math.isnan(figure.needed)]
    if not open_figures:
        return []
    text = (
        "Numbers needed: with so many, a change without an effect passes with a chance of "
        f"{numbers.percent(power.POWER)} (power), and one of twice the margin fails with the same chance."
    )
    if gate.unit == "block" and any(figure.unit == "run" for figure in open_figures):
        text += " Runs are made in turns, and differ from run to run as the next line says."
    if any(power.too_many(figure.needed, figure.n) for figure in open_figures):
        text += " With half of the noise, a quarter of them is enough."
    return [text]


def advice(gate: Gate) -> list[str]:
    """Return what to do next: to find what changed, to measure what can tell, or to mend a figure; [] where it
    passes."""
    if gate.outcome == "passes":
        return []
    if gate.unequal:
        return ["Next: measure both sides with the same work; the warning says in what it differs."]
    if gate.outcome == "fails":
        return [f"Next: mountlab compare {_names(gate.baseline)[0]} {_names(gate.change)[0]} shows what differs."]
    open_figures = [figure for figure in gate.judged if figure.outcome == "cannot tell" and not figure.reason]
    if not open_figures:
        return ["Next: mend what the caveats of these figures name, and measure again."]
    most = max(open_figures, key=lambda figure: (figure.unit == "run", figure.needed))
    if gate.unit == "block" and most.unit == "run":
        return [
            f"Next: measure {RUNS_A_SIDE} runs of each side, in turns (change, baseline, change, baseline ...), and "
            "name all of them: mountlab gate RUN RUN RUN --against RUN RUN RUN. They show by how much runs differ; "
            "from that follows how many are needed."
        ]
    if power.too_many(most.needed, most.n):
        return [f"Next: reduce the noise: half of it needs a quarter of the {most.unit}s."]
    where = "each side, in turns" if most.unit == "run" else "each run (mountlab extend)"
    return [f"Next: measure {numbers.counted(round(most.more), f'more {most.unit}')} of {where}."]


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
    of = f"Only the first {numbers.counted(change, 'run')} of the change and {baseline} of the baseline are used"
    if gate.unit == "block":
        of = f"Only the first {numbers.counted(min(gate.counted), 'block')} of each run are used"
    again = f"a question that may be asked again is answered at fixed numbers of {gate.unit}s"
    return [f"{of}: {again}. If you ask only once, --looks once uses all."]


# ── text and data ────────────────────────────────────────────────────────────────────────────────────────────────────


def gate_text(gate: Gate) -> str:
    """Return one line a figure, the worst first; then what they come to."""
    lines = aligned(_row(figure) for figure in gate.judged)
    about = (*_differs(gate), *_what_counts(gate), *promises(gate))
    return lines_of([*lines, "", *about, "", headline(gate), tally(gate), *advice(gate)])


def _error(gate: Gate) -> str:
    """'Error: at most 5 % either way, for all figures together, over all looks at this change with more blocks ...'"""
    return f"Error: at most {numbers.percent(1 - gate.level)} either way, for all figures together, {over_looks(gate)}."


def _row(figure: Judged) -> tuple[str, ...]:
    """Return the outcome, the figure, both means, the ratio, its interval, and why."""
    figures = numbers.ratio_figures(*figure.ratio)
    noun, unit = names.metric_noun(figure.metric, figure.label), figure.cell.workload.metric(figure.metric).unit
    change, baseline = (numbers.quantity(mean, unit) if math.isfinite(mean) else "" for mean in figure.means)
    numbers_of = (baseline, change, figures.value, figures.interval)
    return (figure.outcome, figure.cell.id, noun, *numbers_of, why(figure).partition(": ")[2])


def _differs(gate: Gate) -> list[str]:
    areas = [f"The two sides differ in {numbers.listed(list(gate.differs))}."] if gate.differs else []
    return [*areas, *gate.options, *caveat_lines(gate.unequal)]


def gate_json(gate: Gate) -> dict[str, object]:
    """Return everything in the gate, JSON-able: what is infinite or not known is null."""
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
        "caveats": [asdict(caveat) for caveat in gate.unequal],
        "figures": [plain(_figure_json(figure)) for figure in gate.judged],
    }


def _figure_json(figure: Judged) -> dict[str, object]:
    about = {"outcome": figure.outcome, "cell": figure.cell.id, "metric": figure.metric, "label": figure.label}
    ratio = dict(zip(("ratio", "low", "high"), figure.ratio, strict=True))
    bounds = {"at_least": figure.at_least, "at_most": figure.at_most, "needed": figure.needed, "more": figure.more}
    spreads = [{"sd": one.sd, "degrees": one.degrees, "earlier_runs": one.runs} for one in figure.spread]
    return {
        **about,
        **ratio,
        "n": figure.n,
        "reason": figure.reason,
        **bounds,
        "means": dict(zip(("change", "baseline"), figure.means, strict=True)),
        "needed_as_seen": figure.seen,
        "needed_unit": figure.unit,
        "break_even": {"outcome": figure.would, "runs_differ": figure.unless},
        "run_spread": dict(zip(("change", "baseline"), spreads, strict=False)),
    }


def _names(runs: Sequence[ComparedRun]) -> list[str]:
    return [run.info.run_id for run in runs]


# ── Markdown ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def gate_markdown(gate: Gate) -> str:
    """Return a summary as CI systems show it beside a change: the outcome, a table, what may be wrong."""
    about, level = [*_differs(gate), *_what_counts(gate)], numbers.level_text(gate.level)
    titles = dict(zip(_names((*gate.change, *gate.baseline)), run_titles((*gate.change, *gate.baseline)), strict=True))
    sides = {"Change": gate.change, "Baseline": gate.baseline}
    of_side = {name: [f"{titles[run]}, {run}" for run in _names(runs)] for name, runs in sides.items()}
    lines = [
        f"## {_SIGNS[gate.outcome].partition(' ')[0]} {_safe(headline(gate))}",
        "",
        _safe(" ".join([tally(gate), *advice(gate)])),
        "",
        *(f"- {name}: {_safe('; '.join(runs))}" for name, runs in of_side.items()),
        *(f"- {_safe(capital(line))}" for line in about),
        "",
        f"| Outcome | Cell | Figure | Baseline | Change | Change / baseline | Interval, each end {level} | Why |",
        "|---|---|---|---:|---:|---:|---:|---|",
    ]
    for figure in gate.judged:
        _, *cells, reason = _row(figure)
        shown = map(_safe, (*cells, capital(reason)))
        lines.append(f"| {' | '.join([_SIGNS[figure.outcome], *shown])} |")
    return "\n".join([*lines, "", *(f"- {_safe(line)}" for line in promises(gate))]) + "\n"


def _safe(text: str) -> str:
    """Return text from anywhere in a line of Markdown: it makes no table, link or tag."""
    return visible(text).replace("\n", " ").translate(_ESCAPED)


# ── JUnit XML ────────────────────────────────────────────────────────────────────────────────────────────────────────


def gate_junit(gate: Gate) -> bytes:
    """Return one test case a figure: a figure that fails is a failure, an inconclusive one is skipped with the reason,
    and one that the change lacks, for no known reason, is an error."""
    suite = TestSuite("mountlab gate")
    properties = {
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
    for name, value in properties.items():
        suite.add_property(name, visible(value))
    for figure in gate.judged:
        label = f" {visible(figure.label)}" if figure.label else ""
        case, text = TestCase(f"{figure.metric}{label}", visible(figure.cell.id), 0), visible(why(figure))
        if figure.outcome == "fails":
            case.result = [(Error if figure.reason else Failure)(text, figure.outcome)]
        elif figure.outcome == "cannot tell":
            case.result = [Skipped(text, figure.outcome)]
        case.system_out = visible(f"{text}; change / baseline {numbers.ratio_figures(*figure.ratio)}")
        suite.add_testcase(case)
    document = JUnitXml()
    document.add_testsuite(suite)
    document.update_statistics()  # type: ignore[no-untyped-call]
    return bytes(document.tostring())  # type: ignore[no-untyped-call]
