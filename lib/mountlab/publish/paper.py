"""The tables of a run as people print them: means with their half widths in one unit, ratios with their verdicts.

As LaTeX (booktabs) and as Markdown. All text of a run is text there too: no command, no markup, no cell of its own.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from tabulate import tabulate

from mountlab.core import names
from mountlab.core.findings import Comparison
from mountlab.core.model import Sweep
from mountlab.core.numbers import mean_figures, number
from mountlab.core.units import Scale, scale_for
from mountlab.wording import phrases, verdicts

FORMATS = {"latex": "tex", "markdown": "md"}
"""Name of a format to the ending of its files."""
PLUS_MINUS = "±"


@dataclass(frozen=True)
class PaperTable:
    """A table of text: `numbers` are the columns that are set right."""

    caption: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numbers: frozenset[int]


# --- what they say ----------------------------------------------------------------------------------------------------


def mean_text(mean: float, low: float, high: float, *, factor: float = 1.0) -> str:
    """'2.71 ± 0.06' in sensible digits, the half width with those of the mean; '[low, high]' in the place of the half
    width where the interval is not as wide on both sides, in these digits; the mean alone where there is none (n < 2).
    """
    figures = mean_figures(mean, low, high, factor=factor)
    if not (math.isfinite(low) and math.isfinite(high)):
        return figures.value
    decimals = len(figures.value.partition(".")[2])
    below, above = (number(side / factor, decimals) for side in (mean - low, high - mean))
    return f"{figures.value} {PLUS_MINUS} {above}" if below == above else str(figures)


def estimate_tables(estimates: pd.DataFrame, sweep: Sweep) -> dict[str, PaperTable]:
    """Return one table for each metric and label, with a row for each cell in the order of the sweep."""
    tables = {}
    for (metric, label), frame in estimates.groupby(["metric", "label"], sort=False):
        unit = str(frame["unit"].iloc[0])
        scale = scale_for(unit, float(frame["mean"].abs().max()))
        order = {cell.id: place for place, cell in enumerate(sweep.cells)}
        columns = (frame[name].tolist() for name in ("cell", "mean", "low", "high", "n", "censored"))
        rows = []
        for cell_id, mean, low, high, n, late in sorted(zip(*columns, strict=True), key=lambda row: order[row[0]]):
            cell = sweep.combinations[cell_id]
            mean_text = _mean_or_bounds(mean, low, high, scale.factor)
            rows.append((cell.filesystem.name, cell.workload.label, mean_text, phrases.trial_count(n, late)))
        heading = names.metric_heading(str(metric), str(label))
        caption = f"{heading}: mean {PLUS_MINUS} half width of its {sweep.design.level:.0%} interval, n trials"
        name = "-".join(filter(None, (str(metric), re.sub(r"\W+", "_", str(label)))))
        head = ("file system", "workload", f"{heading.lower()}, {scale.unit}", "n")
        tables[f"estimates-{name}"] = PaperTable(caption, head, tuple(rows), frozenset((2, 3)))
    return tables


def _mean_or_bounds(mean: float, low: float, high: float, factor: float) -> str:
    """As `mean_text`; the bounds alone where half of the trials or more ran into their time limit."""
    if math.isnan(mean):
        return str(mean_figures(mean, low, high, factor=factor))
    return mean_text(mean, low, high, factor=factor)


def comparison_table(comparisons: Sequence[Comparison], sweep: Sweep) -> PaperTable:
    """Return every comparison, with the interval that holds together with those of all others, and the verdict."""
    rows = []
    for comparison in comparisons:
        figures = verdicts.compared_figures(comparison)
        label = names.workload_label(comparison.workload, comparison.factors)
        less = "" if comparison.more_is_better else ", less is better"
        noun = names.metric_noun(comparison.metric, comparison.label) + less
        pair = f"{comparison.candidate} / {comparison.baseline}"
        verdict = verdicts.verdict_of(comparison, sweep.design.smallest_effect)
        verdict = verdict if verdicts.has_interval(comparison) else "no interval"
        n = verdicts.pair_count(comparison)
        rows.append((label, noun, pair, figures.value, figures.interval, n, verdict))
    caption = f"Ratios with {sweep.design.level:.0%} intervals that hold for all {len(rows)} comparisons together"
    head = ("workload", "metric", "compared", "ratio", "interval", "n", "verdict")
    return PaperTable(caption, head, tuple(rows), frozenset((3, 4, 5)))


def pivot_table(frames: Mapping[str, pd.DataFrame], what: str, base: str, unit: str | None) -> PaperTable:
    """Return a pivot of `what` as one table: `frames` as `export.pivot_tables` makes them, in `base` units or in
    `unit`."""
    means = frames["mean"]
    cells = [name for name in means if pd.api.types.is_float_dtype(means[name])]
    scale = Scale(1.0, unit) if unit else scale_for(base, float(means[cells].abs().max().max()))
    parts = [frames[name].reindex(columns=means.columns) for name in ("mean", "low", "high", "n", "censored")]
    columns = []
    for name in means:
        texts = means[name].tolist()
        if name in cells:
            texts = []
            for mean, low, high, n, late in zip(*(part[name].tolist() for part in parts), strict=True):
                text = "" if math.isnan(mean) and not late > 0 else _mean_or_bounds(mean, low, high, scale.factor)
                texts.append(f"{text} (n = {phrases.trial_count(int(n), int(late))})" if late > 0 else text)
        columns.append(texts)
    caption = f"{what[0].upper()}{what[1:]}, {scale.unit}: mean {PLUS_MINUS} half width of the interval"
    places = frozenset(place for place, name in enumerate(means) if name in cells)
    return PaperTable(caption, tuple(map(str, means)), tuple(zip(*columns, strict=True)), places)


# --- how they are written ---------------------------------------------------------------------------------------------


def written(table: PaperTable, form: str) -> str:
    """Return a table in a format of FORMATS."""
    return latex(table) if form == "latex" else markdown(table)


_LATEX = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}", ">": r"\textgreater{}",
    "|": r"\textbar{}", '"': r"\textquotedbl{}", "±": r"$\pm$", "−": "$-$", "×": r"$\times$", "∞": r"$\infty$",
    "µ": r"\textmu{}", "\u202f": r"\,", "\u00a0": "~", "[": "{[}", "]": "{]}", "'": "{'}", "`": "{`}",
}  # fmt: skip
"""Each character by itself, so that no two of them become a command, a ligature or an option of the line before."""


def latex_text(text: str) -> str:
    r"""Return text on one line that LaTeX prints as it is: '\input{x}' is what stands on the page."""
    plain = "".join(char for char in " ".join(text.split(" ")) if char.isprintable() or char in _LATEX)
    return re.sub(r"-(?=-)", "-{}", "".join(_LATEX.get(char, char) for char in plain))


def latex(table: PaperTable) -> str:
    r"""Return a `table` with `tabular` inside, for a document with \usepackage{booktabs}."""
    columns = "".join("r" if place in table.numbers else "l" for place in range(len(table.head)))
    head, *rows = (
        " & ".join(latex_text(" ".join(cell.split("\n"))) for cell in row) + r" \\" for row in (table.head, *table.rows)
    )
    lines = [
        "% needs \\usepackage{booktabs} and \\usepackage{textcomp}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{latex_text(table.caption)}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        head,
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
        "",
    ]
    return "\n".join(lines)


_MARKDOWN = str.maketrans({char: f"\\{char}" for char in "\\`*_{}[]<>()#+!|&~$@"})


def markdown_text(text: str) -> str:
    """Return text on one line that Markdown shows as it is: no markup, no HTML, no cell of a table."""
    plain = re.sub(r"[\x00-\x1f\x7f]", " ", text).translate(_MARKDOWN)
    return re.sub(r"(?i)(:)(?=//)|(?<=www)(\.)", r"\\\g<0>", plain)  # else an address would be a link


def markdown(table: PaperTable) -> str:
    """Return a table below its caption, as GitHub and JupyterLab show it."""
    rows = [[markdown_text(cell) for cell in row] for row in table.rows]
    align = ["right" if place in table.numbers else "left" for place in range(len(table.head))]
    head = [markdown_text(name) for name in table.head]
    body = tabulate(rows, headers=head, tablefmt="pipe", disable_numparse=True, colalign=align if rows else None)
    return f"{markdown_text(table.caption)}\n\n{body}\n"
