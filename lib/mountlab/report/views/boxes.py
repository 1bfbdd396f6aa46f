"""One sweep on several boxes, as text, as data and as the parts of a page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from mountlab.analysis import verdicts
from mountlab.analysis.compare.boxes import Across, CellOverBoxes, RatioOverBoxes, differs
from mountlab.checks.caveats import caveat_line, grouped
from mountlab.core import numbers
from mountlab.core.findings import Comparison, Verdict
from mountlab.core.json import plain
from mountlab.core.names import metric_heading, metric_noun, workload_label
from mountlab.core.text import lines_of
from mountlab.core.units import scale_for
from mountlab.plots.over_runs import Relative, plot_answer_over_runs, plot_over_runs, room_for
from mountlab.report import html
from mountlab.report.html import Column, Html, Rows, Text
from mountlab.report.views.compare import about, named_difference, shown_fact
from mountlab.stats.between import Spread

SIGNS: Mapping[Verdict, str] = {
    "faster": "▲ faster", "slower": "▼ slower", "same": "= same", "undecided": "? undecided",
}  # fmt: skip
"""A verdict with a sign for those who skim."""
_MOST_TOLD = 3
_OVER = "all boxes"

# ── sentences ────────────────────────────────────────────────────────────────────────────────────────────────────────


def title(across: Across) -> str:
    """The question of the page."""
    asked = " ".join(across.runs[0].sweep.question.split())
    return f"Does it hold over {numbers.counted(len(across.boxes), 'box')}? {asked}"


def sentences(across: Across) -> list[str]:
    """The answer: what holds over boxes and on each, what to expect of a further one, and where figures vary."""
    return [*_over_boxes(across), *_on_each(across), *_further(across), *_parts(across), *_without(across)]


def _over_boxes(across: Across) -> Iterator[str]:
    overall = [verdicts.together(each.over) for each in across.ratios]
    if not overall:
        yield "The runs have no comparison, so there is no answer to hold over boxes; their figures are below."
        return
    told = verdicts.answer(overall, smallest_effect=across.smallest_effect)
    first = told[0]
    if first.startswith(("Undecided", "Nothing")):
        first = first[0].lower() + first[1:]
    yield f"Over {numbers.counted(len(across.boxes), 'box')}, each counting alike: {first}"
    yield from told[1:]


def _on_each(across: Across) -> Iterator[str]:
    """'The same verdict on every box: 7 of 9 comparisons. Turned round: ...'."""
    if not across.ratios:
        return
    held = [each for each in across.ratios if each.holds]
    total = numbers.counted(len(across.ratios), "comparison")
    has = "has" if 1 in (len(held), len(across.ratios)) else "have"
    yield f"Box by box, {len(held)} of {total} {has} the same verdict, faster, slower or the same, on every box."
    turned = [each for each in across.ratios if each.turns]
    for each in turned[:_MOST_TOLD]:
        yield f"It turns round: {name_of(each)} is {_by_verdict(across, each)}."
    if len(turned) > _MOST_TOLD:
        yield f"{len(turned) - _MOST_TOLD} more turn round; the table has all of them."


def name_of(ratio: RatioOverBoxes) -> str:
    """'tmpfs to ext4, dd-write: write bandwidth'."""
    workload = workload_label(ratio.over.workload, ratio.over.factors)
    noun = metric_noun(ratio.over.metric, ratio.over.label)
    return f"{ratio.over.candidate} to {ratio.over.baseline}, {workload}: {noun}"


def _by_verdict(across: Across, ratio: RatioOverBoxes) -> str:
    """'faster on a and b, undecided on c'."""
    parts = ratio.verdicts.items()
    return ", ".join(
        f"{_spoken(across, verdict)} on {numbers.listed([across.boxes[i] for i in own])}" for verdict, own in parts
    )


def _spoken(across: Across, verdict: str) -> str:
    return verdicts.verdict_text(verdict, across.smallest_effect)  # type: ignore[arg-type]


def _further(across: Across) -> Iterator[str]:
    """What the strongest ratio may be on the next box."""
    known = {id(each.over): each for each in across.ratios if math.isfinite(each.further_high)}
    if not known:
        return
    first = known[id(verdicts.strongest_first([each.over for each in known.values()])[0])]
    figures = numbers.ratio_figures(first.over.ratio, first.further_low, first.further_high)
    level = numbers.percent(across.level)
    yield f"On one more such box a run would show for {name_of(first)} a ratio within {figures.interval}, at {level}."


def _parts(across: Across) -> Iterator[str]:
    """Where figures and ratios vary: between boxes, or inside them."""
    for noun, own in (("figure", across.cells), ("ratio", across.ratios)):
        known = [each for each in own if not math.isnan(each.p_adjusted)]
        if not known:
            continue
        beyond = [each for each in known if differs(each, across.level)]
        count = numbers.counted(len(known), noun)
        if not beyond:
            yield f"Nothing shows that boxes differ in a {noun} by more than their trials explain, in {count}."
            continue
        most = max(beyond, key=lambda each: each.spread.between)
        yield (
            f"{len(beyond)} of {count} {'differs' if len(beyond) == 1 else 'differ'} from box to box by more than the "
            f"trials explain, most {_about(most)}: by {_percent(most.spread.between)} between boxes and "
            f"{_percent(most.spread.within)} from trial to trial, {_percent(most.spread.share)} of the variance "
            "between boxes."
        )


def _about(part: CellOverBoxes | RatioOverBoxes) -> str:
    if isinstance(part, RatioOverBoxes):
        return name_of(part)
    return f"{part.cell.id} ({metric_noun(part.metric, part.label)})"


def _without(across: Across) -> Iterator[str]:
    if across.missing:
        whom = "it" if len(across.missing) == 1 else "them"
        yield f"Without {numbers.listed(list(across.missing))}: there are no figures of {whom} (see the caveats)."


def _percent(share: float) -> str:
    return numbers.percent(share) if math.isfinite(share) else numbers.MISSING


# ── text and data ────────────────────────────────────────────────────────────────────────────────────────────────────


def across_text(across: Across) -> str:
    """For the terminal: the boxes, the answer, one row a ratio, one row a figure."""
    return lines_of(_lines(across))


def _lines(across: Across) -> Iterator[str]:
    width = max(map(len, (*across.boxes, *across.missing)))
    yield from (f"{name:{width}}  {about(run)}" for name, run in zip(across.boxes, across.runs, strict=True))
    yield from (f"{name:{width}}  no figures: {' '.join(why.split())}" for name, why in across.missing.items())
    yield ""
    yield from sentences(across)
    yield ""
    yield from _columns(
        ("ratio", *across.boxes, "over boxes", "", "further box"), (_ratio_row(each) for each in across.ratios)
    )
    yield ""
    head = ("figure", *across.boxes, "between", "inside", "share between")
    yield from _columns(head, (_figure_row(each) for each in across.cells))


def _columns(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> Iterator[str]:
    table = [head, *rows]
    widths = [max(len(row[place]) for row in table) for place in range(len(head))]
    if len(table) > 1:
        yield from ("  ".join(t.ljust(w) for t, w in zip(row, widths, strict=True)).rstrip() for row in table)


def _ratio_row(each: RatioOverBoxes) -> tuple[str, ...]:
    on_each = [f"{_value(one)} {one.verdict}" if one else numbers.MISSING for one in each.on_each]
    over = verdicts.together(each.over)
    further = numbers.ratio_figures(over.ratio, each.further_low, each.further_high).interval
    return (name_of(each), *on_each, f"{_value(over)} {_interval(over)}".strip(), over.verdict, further)


def _value(one: Comparison) -> str:
    return verdicts.compared_figures(one).value


def _interval(one: Comparison) -> str:
    return verdicts.compared_figures(one).interval if verdicts.has_interval(one) else ""


def _figure_row(each: CellOverBoxes) -> tuple[str, ...]:
    means = [numbers.quantity(one.mean, each.unit) if one else numbers.MISSING for one in each.estimates]
    parts = (each.spread.between, each.spread.within, each.spread.share)
    return (_about(each), *means, *map(_percent, parts))


def across_json(across: Across) -> dict[str, Any]:
    """Everything, JSON-able: what is infinite or not known is null."""
    read: dict[str, Any] = plain(
        {
            "boxes": {name: run.info.get("run_id") for name, run in zip(across.boxes, across.runs, strict=True)},
            "missing": dict(across.missing),
            "level": across.level,
            "smallest_effect": across.smallest_effect,
            "sentences": sentences(across),
            "ratios": [
                {
                    "on_each": [one and asdict(one) for one in each.on_each],
                    "over": asdict(each.over),
                    "further": [each.further_low, each.further_high],
                    "spread": asdict(each.spread),
                    "p_adjusted": each.p_adjusted,
                }
                for each in across.ratios
            ],
            "figures": [
                {
                    "cell": each.cell.id,
                    "metric": each.metric,
                    "label": each.label,
                    "unit": each.unit,
                    "estimates": [one and asdict(one) for one in each.estimates],
                    "spread": asdict(each.spread),
                    "p_adjusted": each.p_adjusted,
                }
                for each in across.cells
            ],
            "differences": [asdict(each) for each in across.differences],
            "caveats": [asdict(each) for each in across.caveats],
        }
    )
    return read


# ── the parts of a page ──────────────────────────────────────────────────────────────────────────────────────────────


def heading(across: Across) -> Html:
    """The title, and below it which boxes and when."""
    days = sorted(str(run.info.get("created_at", "")).partition("T")[0] for run in across.runs)
    told = [numbers.listed(list(across.boxes)), days[0] if days[0] == days[-1] else f"{days[0]} to {days[-1]}"]
    return html.joined(html.heading(title(across), level=1), html.paragraph(" · ".join(told), kind="meta"))


def answer(across: Across) -> Html:
    """The answer in sentences."""
    groups = grouped(across.caveats)
    link = html.told(html.link("#Caveats", "Caveats"), caveat_line(groups))
    told = html.box("answer", *(html.paragraph(each) for each in sentences(across)))
    return html.joined(told, html.paragraph(link, kind=f"alert {groups[0].severity}"))


def overview(across: Across) -> Html:
    """Two pictures: each ratio on every box and over them, and every figure over its mean over boxes."""
    names = [fs.name for fs in across.runs[0].sweep.filesystems]
    rows = {name_of(each): (*each.on_each, verdicts.together(each.over)) for each in _widest_first(across.ratios)}
    drawn: list[Text] = []
    if any(verdicts.effect(each) >= 0 for own in rows.values() for each in own if each):
        plot = plot_answer_over_runs(
            rows,
            (*across.boxes, _OVER),
            title=next(_on_each(across)),
            smallest_effect=across.smallest_effect,
            filesystems=names,
        )
        room = room_for(len(across.boxes) + 1)
        more = f"{room} of {len(rows)} comparisons are drawn; the table below has all of them."
        drawn.append(html.joined(html.plot(plot), html.paragraph(more, kind="meta") if len(rows) > room else ""))
    points = list(_relative(across))
    if points:
        plot = plot_over_runs(
            points,
            across.boxes,
            title="Each figure on every box, over its mean over boxes",
            filesystems=names,
            noun="box",
        )
        drawn.append(html.plot(plot))
    return html.columns(*drawn) if drawn else html.paragraph("Nothing to plot.")


def _widest_first(ratios: Sequence[RatioOverBoxes]) -> list[RatioOverBoxes]:
    """Those that turn round, then those in which boxes differ most."""
    return sorted(ratios, key=lambda each: (not each.turns, -_known(each.spread.between)))


def _known(value: float) -> float:
    return value if math.isfinite(value) else -1.0


def _relative(across: Across) -> Iterator[Relative]:
    several = len({(each.metric, each.label) for each in across.cells}) > 1
    for each in sorted(across.cells, key=lambda each: -_known(each.spread.between)):
        known = [one.mean for one in each.estimates if one]
        mean = sum(known) / len(known)
        group = each.cell.workload.label + (f": {metric_noun(each.metric, each.label)}" if several else "")
        for place, one in enumerate(each.estimates):
            if one and mean > 0:
                parts = (one.mean / mean, one.low / mean, one.high / mean)
                yield Relative(group, each.cell.filesystem.name, place, *parts)


def which(across: Across) -> Html:
    """Which box is which, and which has no figures."""
    head = [Column("Box"), Column("Run"), Column("Machine"), Column("Kernel"), Column("Date"), Column("Status")]
    rows: list[list[Text]] = []
    for name, run in zip(across.boxes, across.runs, strict=True):
        facts = run.info.get("facts", {})
        rows.append(
            [
                name,
                str(run.info.get("run_id", "")),
                str(facts.get("cpu_model") or "not known"),
                str(facts.get("kernel") or "not known"),
                str(run.info.get("created_at", ""))[:16].replace("T", " "),
                str(run.info.get("status", "complete")),
            ]
        )
    rows += [[name, "", "", "", "", f"no figures: {' '.join(why.split())}"] for name, why in across.missing.items()]
    return html.table(head, [Rows(rows)], caption=f"The {numbers.counted(len(rows), 'box')} of the sweep")


def ratios(across: Across) -> Html:
    """Every ratio on each box, over them, and on a further one."""
    if not across.ratios:
        return html.paragraph("The runs have no comparison.")
    head = [
        Column("Comparison"),
        *(Column(name, "number") for name in across.boxes),
        Column("Over boxes", "number"),
        Column("Further box", "interval"),
        Column("Box to box, %", "number"),
        Column("Block to block, %", "number"),
        Column("p", "number"),
    ]
    groups: dict[str, list[list[Text]]] = {}
    for each in across.ratios:
        pair, _, row = name_of(each).partition(", ")
        over = verdicts.together(each.over)
        further = numbers.ratio_figures(over.ratio, each.further_low, each.further_high)
        groups.setdefault(row, []).append(
            [
                pair,
                *(_ratio_cell(one) for one in each.on_each),
                _ratio_cell(over),
                further.interval,
                *_two_parts(each.spread),
                _p(each.p_adjusted),
            ]
        )
    caption = (
        "Ratio, interval and verdict: on each box by its own blocks, those of a box together; over boxes, each "
        "counting alike, those of all ratios together. p: that the ratio is the same on all boxes"
    )
    return html.table(head, [Rows(own, row) for row, own in groups.items()], caption=caption)


def _ratio_cell(one: Comparison | None) -> Text:
    if one is None:
        return numbers.MISSING
    if not verdicts.has_interval(one):
        return html.stacked(_value(one), "no interval")
    return html.stacked(_value(one), f"{_interval(one)} {SIGNS[one.verdict]}")


def _two_parts(found: Spread) -> tuple[Text, Text]:
    """The standard deviation between boxes with its interval, and that inside them."""
    return _with_interval(found.between, found.low, found.high), _in_percent(found.within)


def _with_interval(value: float, low: float, high: float) -> Text:
    if not math.isfinite(high):
        return _in_percent(value)
    return html.stacked(_in_percent(value), f"[{_in_percent(low)}, {_in_percent(high)}]")


def _in_percent(share: float) -> str:
    return numbers.number(share * 100, 1)


def _p(p: float) -> str:
    return numbers.MISSING if math.isnan(p) else numbers.p_text(p)


def parts(across: Across) -> Html:
    """One table a metric: the mean on each box, and the variance between boxes and inside them."""
    by_metric: dict[str, list[CellOverBoxes]] = {}
    for each in across.cells:
        by_metric.setdefault(each.metric, []).append(each)
    return html.joined(*(_metric_table(across, metric, own) for metric, own in by_metric.items()))


def _metric_table(across: Across, metric: str, cells: Sequence[CellOverBoxes]) -> Html:
    scale = scale_for(cells[0].unit, max(abs(one.mean) for each in cells for one in each.estimates if one))
    head = [
        Column("File system"),
        *(Column(f"{name}, {scale.unit}", "number") for name in across.boxes),
        Column("Between boxes, %", "number"),
        Column("Inside a box, %", "number"),
        Column("Share between, %", "number"),
        Column("p", "number"),
    ]
    groups: dict[str, list[list[Text]]] = {}
    for each in cells:
        found = each.spread
        means = (_mean_cell(each, place, scale.factor) for place in range(len(across.boxes)))
        group = each.cell.workload.label + (f" ({each.label})" if each.label else "")
        groups.setdefault(group, []).append(
            [
                each.cell.filesystem.name,
                *means,
                _with_interval(found.between, found.low, found.high),
                _with_interval(found.within, found.within_low, found.within_high),
                _with_interval(found.share, found.share_low, found.share_high),
                _p(each.p_adjusted),
            ]
        )
    named = f"{metric_heading(metric)}, {scale.unit}"
    caption = f"{named}: mean and interval on each box; then the standard deviations, and the share of the variance"
    return html.table(head, [Rows(rows, group) for group, rows in groups.items()], caption=caption)


def _mean_cell(each: CellOverBoxes, place: int, factor: float) -> Text:
    one = each.estimates[place]
    if one is None:
        return numbers.MISSING
    figures = numbers.mean_figures(one.mean, one.low, one.high, factor=factor)
    return html.stacked(figures.value, figures.interval or "no interval")


def differences(across: Across) -> Html:
    """What is known to differ, a column a box; and what nobody can say."""
    known = [each for each in across.differences if each.known]
    unknown = [f"{each.area}: {named_difference(each.what)}" for each in across.differences if not each.known]
    shown: Text = html.paragraph("Nothing that was kept differs.")
    if known:
        groups: dict[str, list[list[Text]]] = {}
        for each in known:
            values = [shown_fact(each.what, value, known=True) for value in each.values]
            groups.setdefault(each.area, []).append([named_difference(each.what), *values])
        head = [Column("What"), *map(Column, across.boxes)]
        caption = f"{numbers.counted(len(known), 'difference')} in {numbers.counted(len(groups), 'respect')}"
        shown = html.table(head, [Rows(rows, area) for area, rows in groups.items()], caption=caption)
    heard = html.details(f"Not known of all boxes: {len(unknown)}", html.items(unknown)) if unknown else ""
    return html.joined(shown, heard)


def caveats(across: Across) -> Html:
    """Caveats, worst first."""
    return html.joined(*(html.caveat_box(group) for group in grouped(across.caveats)))


def entry(across: Across) -> dict[str, Any]:
    """What the index of results shows of the page."""
    return {
        "kind": "comparison",
        "title": title(across),
        "page": "report.html",
        "verdict": sentences(across)[0],
        "created_at": max(str(run.info.get("created_at", "")) for run in across.runs),
        "caveats": Counter(each.severity for each in across.caveats),
        "runs": [str(run.info.get("run_id")) for run in across.runs],
    }
