"""What the pages of two runs, of many and of boxes share: who is compared, what differs, figures and verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from mountlab.analysis import verdicts
from mountlab.analysis.compare.boxes import Across, RatioOverBoxes, box_of
from mountlab.analysis.compare.comparisons import AnswerOverRuns
from mountlab.analysis.compare.differences import WORKLOAD, Difference, known_areas
from mountlab.analysis.compare.figures import CellOverRuns, differs
from mountlab.analysis.compare.many import ManyRuns
from mountlab.analysis.compare.ratios import CellRatio
from mountlab.analysis.compare.two import RunComparison
from mountlab.analysis.run_view import ComparedRun
from mountlab.checks.caveats import grouped
from mountlab.core import numbers
from mountlab.core.fact_words import fact_name, fact_text
from mountlab.core.findings import Caveat, Comparison, Estimate
from mountlab.core.names import metric_noun
from mountlab.core.text import aligned
from mountlab.plots.over_runs import Relative, plot_answer_over_runs, plot_over_runs, room_for
from mountlab.report import html
from mountlab.report.html import Head, Html, Rows, Text, numeric

Compared = RunComparison | ManyRuns | Across
_IN_EACH = (
    "From the run's own comparisons, paired by block: what changed between runs cancels inside them. The verdicts of "
    "one run hold together."
)
CellFigure = CellOverRuns | CellRatio
Varying = CellOverRuns | RatioOverBoxes
"""What may differ from run to run by more than its trials explain."""
F = TypeVar("F", bound=CellFigure)
V = TypeVar("V", bound=Varying)

# ── the runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def about(run: ComparedRun) -> str:
    """Return a run in one line: its name, its box, kernel and date."""
    kernel = run.info.get("facts", {}).get("kernel")
    more = "".join(f", {part}" for part in (f"Linux {kernel}" if kernel else "", _day(run)) if part)
    return f"{run.info.get('run_id', '')} (box {box_of(run)}{more})"


def _day(run: ComparedRun) -> str:
    return str(run.info.get("created_at", "")).partition("T")[0]


def filesystems_of(runs: Iterable[ComparedRun]) -> list[str]:
    """Return the file systems of all runs, in the order of the first, so that colours are those of its own report."""
    return list(dict.fromkeys(fs.name for run in runs for fs in run.sweep.filesystems))


def days(runs: Iterable[ComparedRun]) -> str:
    """Return the day of the runs, or the first and the last."""
    found = sorted(map(_day, runs))
    return found[0] if found[0] == found[-1] else f"{found[0]} to {found[-1]}"


def which_row(name: str, run: ComparedRun, where: str, status: str) -> list[Text]:
    """Return the row of a run in the table that names the runs; `where`: the box or the machine."""
    kernel = str(run.info.get("facts", {}).get("kernel") or "not known")
    day = str(run.info.get("created_at", ""))[:16].replace("T", " ")
    return [name, str(run.info.get("run_id", "")), where, kernel, day, status]


# ── text ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def columns(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """Yield the lines of a table for the terminal; none where there is no row."""
    table = [head, *rows]
    yield from aligned(table if len(table) > 1 else ())


def percent(share: float) -> str:
    """'3 %', or that it is not known."""
    return numbers.percent(share) if math.isfinite(share) else numbers.MISSING


def in_percent(share: float) -> str:
    """Return a share as the number of a column in percent."""
    return numbers.number(share * 100, 1)


def p_text(p: float) -> str:
    """Return a p value, or that there is none."""
    return numbers.MISSING if math.isnan(p) else numbers.p_text(p)


def mean_texts(figure: CellOverRuns) -> list[str]:
    """Return the mean in each run, with its unit."""
    return [numbers.quantity(one.mean, figure.unit) if one else numbers.MISSING for one in figure.estimates]


def figure_name(figure: CellFigure) -> str:
    """'ext4/dd-write (write bandwidth)'."""
    return f"{figure.cell.id} ({metric_noun(figure.metric, figure.label)})"


def group_name(figure: CellFigure) -> str:
    """Return the workload of a figure, and its label where rows have one."""
    return figure.cell.workload.label + (f" ({figure.label})" if figure.label else "")


def answer_name(comparison: Comparison) -> str:
    """'tmpfs to ext4, dd-write: write bandwidth'."""
    return f"{pair_name(comparison)}, {row_name(comparison)}"


def pair_name(comparison: Comparison) -> str:
    """'tmpfs to ext4'."""
    return f"{comparison.candidate} to {comparison.baseline}"


def row_name(comparison: Comparison) -> str:
    """'dd-write: write bandwidth'."""
    return f"{verdicts.workload_of(comparison)}: {metric_noun(comparison.metric, comparison.label)}"


def by_verdict(answer: AnswerOverRuns, names: Sequence[str], smallest_effect: float, where: str) -> str:
    """'faster in A and B, undecided in C'; `where`: 'in' or 'on'."""
    fell = {verdict: numbers.listed([names[i] for i in places]) for verdict, places in answer.verdicts.items()}
    return ", ".join(f"{verdicts.verdict_text(each, smallest_effect)} {where} {own}" for each, own in fell.items())


def apart(parts: Iterable[V], level: float) -> tuple[int, list[V]]:
    """Return how many are known to differ or not, and those that differ by more than their trials explain, the most
    first."""
    known = [each for each in parts if not math.isnan(each.p_adjusted)]
    beyond = [each for each in known if differs(each.p_adjusted, level)]
    return len(known), sorted(beyond, key=lambda each: -each.spread.between)


def how_many_differ(beyond: Sequence[object], of: str) -> str:
    """'3 of 9 figures differ'."""
    return f"{len(beyond)} of {of} {'differs' if len(beyond) == 1 else 'differ'}"


def difference_name(difference: Difference) -> str:
    """Return a fact, one of its values, or a key of the parameters as people read it; an option as its tool has it."""
    is_option = difference.area.startswith(WORKLOAD)
    return difference.what if is_option else fact_name(difference.what, difference.part)


def unequal_lines(found: Iterable[Caveat]) -> list[str]:
    """Return what the terminal shows of runs that did not do the same work: the caveat of the first cell."""
    unequal = [each for each in found if each.code == "unequal-work"]
    return [f"{group.severity}: {group.heading}: {group.caveats[0].message}" for group in grouped(unequal)]


def difference_values(difference: Difference) -> list[str]:
    """Return what each run has kept of it; 'not known' where runs cannot all tell and this one does not."""
    return [
        fact_text(difference.what, value, difference.part) if difference.known or value is not None else "not known"
        for value in difference.values
    ]


# ── data ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def figure_json(figure: CellOverRuns) -> dict[str, Any]:
    """Return one figure of every run, as data."""
    return {
        "cell": figure.cell.id,
        "metric": figure.metric,
        "label": figure.label,
        "unit": figure.unit,
        "estimates": [one and asdict(one) for one in figure.estimates],
        "spread": asdict(figure.spread),
        "p_adjusted": figure.p_adjusted,
    }


# ── the parts of a page ──────────────────────────────────────────────────────────────────────────────────────────────


def answer(sentences: Iterable[str], found: Sequence[Caveat], *between: Text) -> Html:
    """Return the answer in sentences, and the caveats in a line."""
    box = html.box("answer", *map(html.paragraph, sentences))
    return html.joined(box, *between, html.caveats_alert(grouped(found)))


def caveats(compared: Compared) -> Html:
    """Caveats, worst first."""
    return html.joined(*map(html.caveat_box, grouped(compared.caveats)))


def which(compared: RunComparison | ManyRuns) -> Html:
    """Return which run is which."""
    rows = []
    for name, run in zip(compared.names, compared.runs, strict=True):
        status = "imported" if run.sweep.imported else str(run.info.get("status", "complete"))
        rows.append(which_row(name, run, box_of(run), status))
    head = ["Run", "Name", "Box", "Kernel", "Date", "Status"]
    return html.table(head, [Rows(rows)], caption=f"The {numbers.counted(len(rows), 'run')}, in the order given")


def differences(compared: Compared) -> Html:
    """Return what is known to differ, a column a run; and what is not known of all."""
    found, names = compared.differences, compared.names
    known = [each for each in found if each.known]
    unknown = [f"{each.area}: {difference_name(each)}" for each in found if not each.known]
    shown: Text = html.paragraph("Nothing that was kept differs.")
    if known:
        respects = numbers.counted(len(known_areas(known)), "respect")
        rows = ((each.area, [difference_name(each), *difference_values(each)]) for each in known)
        caption = f"{numbers.counted(len(known), 'difference')} in {respects}"
        shown = html.grouped_table(["What", *names], rows, caption=caption)
    all_of = f"Not known of {_all_of(compared)}: {len(unknown)}"
    return html.joined(shown, html.details(all_of, html.items(unknown)) if unknown else "")


def _all_of(compared: Compared) -> str:
    """'both runs', 'all runs' or 'all boxes'."""
    if isinstance(compared, Across):
        return "all boxes"
    return "both runs" if isinstance(compared, RunComparison) else "all runs"


def verdicts_of(compared: RunComparison | ManyRuns) -> Html:
    """Return the verdicts of every run, from its own comparisons, which are paired by block."""
    if not compared.answers:
        return html.paragraph("The runs share no comparison.")
    head: Head = ["Comparison", *numeric(*compared.names), "Verdicts"]
    rows: list[tuple[str, list[Text]]] = []
    for each in compared.answers:
        one, cells = each.known[0], map(verdict_cell, each.on_each)
        held = "all alike" if each.agrees else "✗ change"
        rows.append((row_name(one), [pair_name(one), *cells, held]))
    caption = "Ratio, interval and verdict in each run; those of a run hold together"
    return html.joined(html.paragraph(_IN_EACH), html.grouped_table(head, rows, caption=caption))


def not_compared(compared: Compared) -> Html:
    """Cells that some runs do not have."""
    lists = [
        html.details(f"Only in {name}: {len(cells)}", html.items(cells)) for name, cells in compared.only_in.items()
    ]
    if lists:
        return html.joined(*lists)
    whose = _all_of(compared)
    return html.paragraph(f"{whose[0].upper()}{whose[1:]} have the same cells.")


def by_metric(figures: Iterable[F], made: Callable[[str, list[F]], Html]) -> Html:
    """Return one table a metric."""
    found: dict[str, list[F]] = {}
    for each in figures:
        found.setdefault(each.metric, []).append(each)
    return html.joined(*(made(metric, own) for metric, own in found.items()))


def largest_mean(figures: Iterable[CellOverRuns]) -> float:
    """Return the largest mean of all runs, for the scale of a table."""
    return max(abs(one.mean) for each in figures for one in each.estimates if one)


def verdict_cell(comparison: Comparison | None) -> Text:
    """Return a ratio above its interval and its verdict."""
    if comparison is None:
        return numbers.MISSING
    figures = verdicts.compared_figures(comparison)
    if not verdicts.has_interval(comparison):
        return html.stacked(figures.value, "no interval")
    return html.stacked(figures.value, f"{figures.interval} {verdicts.SIGNS[comparison.verdict]}")


def mean_cell(one: Estimate | None, factor: float, verdict: str = "") -> Text:
    """Return a mean above its interval, and a verdict behind that."""
    if one is None:
        return numbers.MISSING
    figures = numbers.mean_figures(one.mean, one.low, one.high, factor=factor)
    return html.stacked(figures.value, f"{figures.interval or 'no interval'}{verdict}")


def overview(
    compared: Across | ManyRuns,
    names: Sequence[str],
    answers: Mapping[str, Sequence[Comparison | None]],
    *,
    titles: tuple[str, str],
    over: Sequence[str] = (),
    noun: str = "run",
) -> Html:
    """Return two pictures beside each other: the ratios of the answer in every run, and `over` the runs, where one is
    above 0; and every figure over its mean over the runs, where one is above 0."""
    filesystems, drawn = filesystems_of(compared.runs), []
    if any(verdicts.effect(each) >= 0 for own in answers.values() for each in own if each):
        columns, smallest = (*names, *over), compared.smallest_effect
        plot = plot_answer_over_runs(
            answers, columns, title=titles[0], smallest_effect=smallest, filesystems=filesystems
        )
        room = room_for(len(columns))
        said = f"{room} of {len(answers)} comparisons are drawn; the table below has all of them."
        drawn.append(html.joined(html.plot(plot), html.paragraph(said, kind="meta") if len(answers) > room else ""))
    if points := list(_relative(compared.cells)):
        drawn.append(html.plot(plot_over_runs(points, names, title=titles[1], filesystems=filesystems, noun=noun)))
    return html.columns(*drawn) if drawn else html.paragraph("Nothing to plot.")


def _relative(cells: Sequence[CellOverRuns]) -> Iterator[Relative]:
    """Yield every estimate over the mean of its cell's estimates; the figures that differ most first."""
    several = len({(each.metric, each.label) for each in cells}) > 1
    for each in sorted(cells, key=most_apart):
        known = [one.mean for one in each.estimates if one]
        mean = sum(known) / len(known)
        group = each.cell.workload.label + (f": {metric_noun(each.metric, each.label)}" if several else "")
        for place, one in enumerate(each.estimates):
            if one and mean > 0:
                parts = (one.mean / mean, one.low / mean, one.high / mean)
                yield Relative(group, each.cell.filesystem.name, place, *parts)


def most_apart(part: Varying) -> float:
    """Return the key that sorts those first that differ most from run to run."""
    return -part.spread.between if math.isfinite(part.spread.between) else 1.0
