"""How values show themselves in a notebook: one entry a type, HTML and plain text. Pure.

`model.Shown` asks here, and no earlier than a value is shown: the core has no HTML.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mountlab.analysis.promises import promise_text
from mountlab.analysis.run_view import RunView
from mountlab.core import numbers
from mountlab.core.findings import Caveat, Comparison, Estimate
from mountlab.core.model import Sweep
from mountlab.core.names import code_words, metric_noun, workload_label
from mountlab.core.shown import Several
from mountlab.core.units import scale_for
from mountlab.report import html, sections, terminal
from mountlab.report.html import Column, Head, Html, Rows, Text, numeric
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
    return next(LOOKS[kind.__name__] for kind in type(value).__mro__ if kind.__name__ in LOOKS)


# ── sweep ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _sweep_page(sweep: Sweep) -> Html:
    head = html.paragraph(html.labelled(sweep.name, " ".join(sweep.question.split())), kind="shown")
    return html.box("shown", head, html.definitions(_sweep_facts(sweep)))


def _sweep_facts(sweep: Sweep) -> Mapping[str, Text]:
    filesystems = []
    for fs in sweep.filesystems:
        remarks = [*([fs.type] if fs.type != fs.name else []), *(["baseline"] if fs.name == sweep.baseline else [])]
        filesystems.append(f"{fs.name} ({', '.join(remarks)})" if remarks else fs.name)
    design = sweep.design
    count = ", ".join(plan_text.ending_texts(sweep)) or numbers.counted(design.repeats, "block")
    warm = f", after {numbers.counted(design.warmup, 'block')} of warm-up" if design.warmup else ""
    extended = [text.removesuffix(".") for text in extension_words.extended_texts(sweep)]
    claims = [
        f"{part}: {f'{name} ' if name else ''}{claim}"
        for part, of_part in sweep.expected.items()
        for name, claim in of_part.items()
    ]
    facts = {
        "File systems": ", ".join(filesystems),
        "Workloads": numbers.first_few([workload.label for workload in sweep.workloads], _MOST_CELLS),
        "Cells": f"{len(sweep.cells)}, each once in a block",
        "Blocks": ". ".join([f"{count}{warm}", *extended]),
        "Boxes" if sweep.boxes else "Box": numbers.listed(list(sweep.boxes)) or sweep.box,
        "Left out": ", ".join(f"{name} ({why})" for name, why in sweep.left_out.items()),
        "Promised": "; ".join(
            f"{name}: {', '.join(map(promise_text, promises))}" for name, promises in sweep.promised.items()
        ),
        "Expected": " ".join(filter(None, (sweep.expectation, f"({', '.join(claims)})" if claims else ""))),
    }
    return {name: text for name, text in facts.items() if text}


def _sweep_text(sweep: Sweep) -> str:
    lines = (f"  {f'{name}:':14}{text}" for name, text in _sweep_facts(sweep).items())
    return "\n".join([f"Sweep {sweep.name}: {' '.join(sweep.question.split())}", *lines])


# ── run ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _run_text(run: RunView) -> str:
    counts = run.trials["status"].value_counts()
    trials = ", ".join(f"{count} {status}" for status, count in counts.items())
    head = f"Run {run.info.run_id} ({run.info.status}; trials: {trials})"
    return f"{head}\n{terminal.run_answer(run)}"


# ── estimates and comparisons ────────────────────────────────────────────────────────────────────────────────────────


def _estimate_line(estimate: Estimate) -> str:
    """'598 [586, 610] MB/s'."""
    scale = scale_for(estimate.unit, abs(estimate.mean))
    figures = numbers.mean_figures(estimate.mean, estimate.low, estimate.high, factor=scale.factor)
    return " ".join(part for part in (figures.value, figures.interval, scale.unit) if part)


def _estimate_how(estimate: Estimate) -> str:
    spread = f", CV {numbers.percent(estimate.cv)}" if estimate.n > 1 and estimate.cv == estimate.cv else ""
    return f"{estimate.method} at {numbers.percent(estimate.level)}, n = {estimate.n}{spread}"


def _comparison_text(comparison: Comparison) -> str:
    return verdicts.comparison_sentence(comparison, smallest_effect=_UNTOLD)


_UNTOLD = 0.02
"""A comparison by itself does not know which effect its sweep called small: the design's default."""


def _comparisons_page(several: Sequence[Comparison]) -> Html:
    what = ["Workload", "Metric", "Compared"]
    head: Head = [*what, *numeric("Ratio"), Column("Interval", "interval"), *numeric("n"), "Verdict"]
    rows = []
    for comparison in several:
        figures = verdicts.compared_figures(comparison)
        label = workload_label(comparison.workload, comparison.factors)
        pair = f"{comparison.candidate} / {comparison.baseline}"
        verdict = comparison.verdict if verdicts.has_interval(comparison) else "none"
        noun = metric_noun(comparison.metric, comparison.label)
        rows.append([label, noun, pair, figures.value, figures.interval, str(comparison.n), verdict])
    caption = f"{numbers.counted(len(several), 'comparison')}; intervals and verdicts hold for all together"
    return html.box("shown", html.table(head, [Rows(rows)], caption=caption))


# ── caveats ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _caveats_page(several: Sequence[Caveat]) -> Html:
    return html.joined(*(html.caveat_box(group) for group in caveats.grouped(several)))


def _caveat_text(caveat: Caveat) -> str:
    about = f" ({caveat.subject})" if caveat.subject else ""
    return f"{caveats.SEVERITY_WORDS[caveat.severity]}: {code_words(caveat.code)}{about}: {caveat.message}"


# ── several ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _several_page(several: Several[Any]) -> Html:
    if not several:
        return html.paragraph("None.")
    return _comparisons_page(several) if isinstance(several[0], Comparison) else _caveats_page(several)


LOOKS: Mapping[str, Look] = {
    "Plot": Look(html.plot, lambda plot: f"{plot.title}\n{plot.alt}"),
    "Sweep": Look(_sweep_page, _sweep_text),
    "Resolved": Look(lambda resolved: _sweep_page(resolved.sweep), lambda resolved: _sweep_text(resolved.sweep)),
    "Run": Look(lambda run: html.joined(sections.question(run), sections.answer(run)), _run_text),
    "Estimate": Look(
        lambda estimate: html.box("shown", html.stacked(_estimate_line(estimate), _estimate_how(estimate))),
        lambda estimate: f"{_estimate_line(estimate)}; {_estimate_how(estimate)}",
    ),
    "Comparison": Look(
        lambda comparison: html.box("shown", html.paragraph(_comparison_text(comparison))), _comparison_text
    ),
    "Caveat": Look(lambda caveat: _caveats_page([caveat]), _caveat_text),
    "Several": Look(_several_page, lambda several: "\n".join(map(text_of, several)) or "None."),
}
"""Name of a type to its looks."""
