"""How values show themselves in a notebook: one entry a type, HTML and plain text. Pure.

`model.Shown` asks here, and no earlier than a value is shown: the core has no HTML.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mountlab.analysis.run_view import RunView
from mountlab.core import numbers
from mountlab.core.findings import Caveat, Comparison, Estimate
from mountlab.core.model import Sweep
from mountlab.core.names import metric_noun, spoken_code, workload_label
from mountlab.core.shown import Several
from mountlab.core.units import scale_for
from mountlab.report import html, sections, terminal
from mountlab.report.html import Column, Html, Rows, Text
from mountlab.sweep import plan_text
from mountlab.wording import caveats, extension_words, verdicts

_MOST_CELLS = 12
"""Cells that a sweep names one by one; of more it gives the count."""


@dataclass(frozen=True)
class Look:
    """How one type shows itself."""

    page: Callable[[Any], Html]
    text: Callable[[Any], str]


def html_of(value: object) -> str:
    """Return a value as HTML, with the looks of JupyterLab."""
    return _look(value).page(value)._repr_html_()


def text_of(value: object) -> str:
    """Return a value as plain words, for terminals."""
    return _look(value).text(value)


def _look(value: object) -> Look:
    name = next(each.__name__ for each in type(value).__mro__ if each.__name__ in LOOKS)
    return LOOKS[name]


# ── sweep ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _sweep_page(sweep: Sweep) -> Html:
    head = html.paragraph(html.labelled(sweep.name, " ".join(sweep.question.split())), kind="shown")
    return html.box("shown", head, html.definitions(_sweep_facts(sweep)))


def _sweep_facts(sweep: Sweep) -> Mapping[str, Text]:
    cells = len(sweep.cells)
    facts = {
        "File systems": ", ".join(_filesystem(sweep, fs.name, fs.type) for fs in sweep.filesystems),
        "Workloads": numbers.first_few([workload.label for workload in sweep.workloads], _MOST_CELLS),
        "Cells": f"{cells}, each once in a block",
        "Blocks": _blocks(sweep),
        "Boxes" if sweep.boxes else "Box": numbers.listed(list(sweep.boxes)) or sweep.box,
        "Left out": ", ".join(f"{name} ({why})" for name, why in sweep.left_out.items()),
        "Expected": _expected(sweep),
    }
    return {name: text for name, text in facts.items() if text}


def _expected(sweep: Sweep) -> str:
    claims = [
        f"{part}: {f'{name} ' if name else ''}{claim}"
        for part, own in sweep.expected.items()
        for name, claim in own.items()
    ]
    return " ".join(
        [*([sweep.expectation] if sweep.expectation else []), *([f"({', '.join(claims)})"] if claims else [])]
    )


def _filesystem(sweep: Sweep, name: str, kind: str) -> str:
    what = [kind if kind != name else "", "baseline" if name == sweep.baseline else ""]
    said = ", ".join(each for each in what if each)
    return f"{name} ({said})" if said else name


def _blocks(sweep: Sweep) -> str:
    design = sweep.design
    count = ", ".join(plan_text.ending_texts(sweep)) or numbers.counted(design.repeats, "block")
    warm = f", after {numbers.counted(design.warmup, 'block')} of warm-up" if design.warmup else ""
    return ". ".join([f"{count}{warm}", *(text.removesuffix(".") for text in extension_words.extended_texts(sweep))])


def _sweep_text(sweep: Sweep) -> str:
    lines = (f"  {f'{name}:':14}{text}" for name, text in _sweep_facts(sweep).items())
    return "\n".join([f"Sweep {sweep.name}: {' '.join(sweep.question.split())}", *lines])


# ── run ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _run_page(run: RunView) -> Html:
    return html.joined(sections.question(run), sections.answer(run))


def _run_text(run: RunView) -> str:
    counts = run.trials["status"].value_counts()
    trials = ", ".join(f"{count} {status}" for status, count in counts.items())
    head = f"Run {run.info.run_id} ({run.info.status}; trials: {trials})"
    return f"{head}\n{terminal.run_answer(run)}"


# ── estimates and comparisons ────────────────────────────────────────────────────────────────────────────────────────


def _estimate_line(each: Estimate) -> str:
    """'598 [586, 610] MB/s'."""
    scale = scale_for(each.unit, abs(each.mean))
    figures = numbers.mean_figures(each.mean, each.low, each.high, factor=scale.factor)
    return " ".join(part for part in (figures.value, figures.interval, scale.unit) if part)


def _estimate_text(each: Estimate) -> str:
    """'598 [586, 610] MB/s; mean, t interval at 95 %, n = 5'."""
    return f"{_estimate_line(each)}; {_estimate_how(each)}"


def _estimate_how(each: Estimate) -> str:
    spread = f", CV {numbers.percent(each.cv)}" if each.n > 1 and each.cv == each.cv else ""
    return f"{each.method} at {numbers.percent(each.level)}, n = {each.n}{spread}"


def _estimate_page(each: Estimate) -> Html:
    return html.box("shown", html.stacked(_estimate_line(each), _estimate_how(each)))


def _comparison_text(each: Comparison) -> str:
    return verdicts.comparison_sentence(each, smallest_effect=_UNTOLD)


_UNTOLD = 0.02
"""A comparison by itself does not know which effect its sweep called small: the design's default."""


def _comparison_page(each: Comparison) -> Html:
    return html.box("shown", html.paragraph(_comparison_text(each)))


def _comparisons_page(several: Sequence[Comparison]) -> Html:
    head = [
        Column("Workload"),
        Column("Metric"),
        Column("Compared"),
        Column("Ratio", "number"),
        Column("Interval", "interval"),
        Column("n", "number"),
        Column("Verdict"),
    ]
    rows = [_comparison_row(each) for each in several]
    caption = f"{numbers.counted(len(several), 'comparison')}; intervals and verdicts hold for all together"
    return html.box("shown", html.table(head, [Rows(rows)], caption=caption))


def _comparison_row(each: Comparison) -> list[Text]:
    figures = verdicts.compared_figures(each)
    verdict = each.verdict if verdicts.has_interval(each) else "none"
    return [
        workload_label(each.workload, each.factors),
        metric_noun(each.metric, each.label),
        f"{each.candidate} / {each.baseline}",
        figures.value,
        figures.interval,
        str(each.n),
        verdict,
    ]


# ── caveats ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _caveats_page(several: Sequence[Caveat]) -> Html:
    return html.joined(*(html.caveat_box(group) for group in caveats.grouped(several)))


def _caveat_text(each: Caveat) -> str:
    about = f" ({each.subject})" if each.subject else ""
    return f"{caveats.SEVERITY_WORDS[each.severity]}: {spoken_code(each.code)}{about}: {each.message}"


# ── several ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_TABLES: Mapping[type, Callable[[Any], Html]] = {Comparison: _comparisons_page, Caveat: _caveats_page}


def _several_page(several: Several[Any]) -> Html:
    if not several:
        return html.paragraph("None.")
    return _TABLES[type(several[0])](several)


def _several_text(several: Several[Any]) -> str:
    return "\n".join(text_of(each) for each in several) or "None."


LOOKS: Mapping[str, Look] = {
    "Plot": Look(html.plot, lambda plot: f"{plot.title}\n{plot.alt}"),
    "Sweep": Look(_sweep_page, _sweep_text),
    "Resolved": Look(lambda resolved: _sweep_page(resolved.sweep), lambda resolved: _sweep_text(resolved.sweep)),
    "Run": Look(_run_page, _run_text),
    "Estimate": Look(_estimate_page, _estimate_text),
    "Comparison": Look(_comparison_page, _comparison_text),
    "Caveat": Look(lambda caveat: _caveats_page([caveat]), _caveat_text),
    "Several": Look(_several_page, _several_text),
}
"""Name of a type to its looks."""
