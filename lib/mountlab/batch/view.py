"""A batch as text for the terminal, as the parts of its page, and as its entry in the index of results. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from mountlab.analysis import answers, load_curve
from mountlab.analysis.promises import answer_sentence
from mountlab.analysis.published import Beside, beside
from mountlab.analysis.run_view import RunView
from mountlab.analysis.trust import Trust, trust_of
from mountlab.batch.batch_file import Batch, Item, ItemOutcome, ItemState
from mountlab.core import errors, numbers
from mountlab.core.errors import in_one_line
from mountlab.core.findings import PublishedFigure, Severity
from mountlab.core.groups import by_key
from mountlab.core.names import workload_label
from mountlab.core.text import aligned, capital, lines_of
from mountlab.report import html
from mountlab.report.html import Column, Html, Rows, Text
from mountlab.sentences import capacity
from mountlab.sentences.trust import reasons_text, trust_lines
from mountlab.wording import verdicts
from mountlab.wording.caveats import SEVERITY_WORDS, caveat_counts

STATE_WORDS: dict[ItemState | None, str] = {
    "done": "✓ done", "failed": "✗ failed", "left out": "– left out", "stopped": "… stopped", None: "… not begun",
}  # fmt: skip
_SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
_MOST_NAMED = 3
"""Reasons that the answer names, and items of one reason."""
NOTEBOOK_S = 6.0
"""Guess at what a notebook and the report of its run take, beside what is measured."""


@dataclass(frozen=True)
class ItemResult:
    """What a run says, in short."""

    question: str
    verdict: str
    caveats: Mapping[str, int]
    """Severity to how many kinds of caveats there are."""
    bad_trials: Mapping[str, int]
    """Status to number, of the trials that are neither ok nor left out on purpose."""
    left_out: Mapping[str, str]
    beside: Sequence[Beside] = ()
    not_citable: str = ""
    """Why its answer cannot be cited: '2 cells not to be used', 'undecided; up to 18 blocks needed'; '' if it can."""
    next_step: str = ""
    trust: str = ""
    """Its grade: 'high', 'medium' or 'low'; '' where nothing was measured that could be trusted."""


@dataclass(frozen=True)
class BatchView:
    """A batch with what became of it."""

    batch: Batch
    name: str
    created_at: str
    outcomes: Mapping[str, ItemOutcome]
    results: Mapping[str, ItemResult]
    """By item, of those that have measured something."""
    expected: Mapping[str, Sequence[PublishedFigure]] = field(default_factory=dict)
    """By item, of those that have not: what others published of the same."""
    across: Mapping[str, str] = field(default_factory=dict)
    """Label of a sweep that is run on several boxes to its page across them, or to the reason why there is none."""
    command: str = ""
    """The line that goes on with it."""

    def state(self, item: Item) -> ItemState | None:
        """Return how its last attempt ended; None where there was none."""
        return self.outcomes[item.id].state if item.id in self.outcomes else None

    def having(self, *states: ItemState | None) -> list[Item]:
        """Return the items in one of these states, in their order."""
        return [item for item in self.batch.items if self.state(item) in states]


def result_of(run: RunView) -> ItemResult:
    """Return the answer of a run, whether it can be cited, and its caveats."""
    statuses = Counter(map(str, run.trials["status"]))
    searches = load_curve.searches(run) if run.sweep.searches else []
    capacities = capacity.answer_lines(run.sweep, searches, run.comparisons, run.caveats)
    trust = trust_of(run)
    trusted = dict(trust_lines(run, trust))
    return ItemResult(
        question=" ".join(run.sweep.question.split()),
        verdict=capacities[0][1] if capacities else answer_sentence(run, trust),
        beside=beside(run),
        caveats=caveat_counts((caveat.severity, caveat.code) for caveat in run.caveats),
        left_out=dict(run.sweep.left_out),
        bad_trials={status: n for status, n in statuses.items() if status in ("failed", "invalid")},
        not_citable=_why_not_citable(run, trust),
        next_step=trusted.get("Next", ""),
        trust=trust.grade if trusted else "",
    )


def _why_not_citable(run: RunView, trust: Trust) -> str:
    """Return why the answer of a run cannot be cited: some of it is not to be used, nothing of it is decided, or its
    trust is low."""
    comparisons = answers.answering(run)
    errors_ = [caveat for caveat in run.caveats if caveat.severity == "error"]
    if errors_:
        cells = {caveat.subject for caveat in errors_ if caveat.scope == "cell"}
        return f"{numbers.counted(len(cells), 'cell') if cells else 'figures'} not to be used"
    if comparisons and all(comparison.verdict == "undecided" for comparison in comparisons):
        return f"undecided{verdicts.most_needed(comparisons)}"
    return f"low trust ({reasons_text(replace(trust, reasons=trust.reasons[:1]))})" if trust.grade == "low" else ""


# ── beforehand, and meanwhile ────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Planned:
    """One item before it is run."""

    item: Item
    expected_s: float = NOTEBOOK_S
    trials: int = 0
    note: str = ""
    """What is done of it already."""
    problem: str = ""
    """Why its box cannot do it."""
    error: str = ""
    """The name of that error's class."""


def plan_text(batch: Batch, planned: Sequence[Planned], takes_s: float) -> str:
    """Return what would run, and how long that takes in all."""
    rows = [("item", "trials", "about", "")]
    for plan in planned:
        name = f"{plan.item.id}  {plan.item.label}"
        if plan.problem:
            rows.append((name, "", "", f"{'left out' if plan.item.optional else 'fails'}: {in_one_line(plan.problem)}"))
        else:
            about = numbers.duration_text(round(plan.expected_s))
            rows.append((name, str(plan.trials) if plan.trials else "", about, plan.note))
    runnable = [plan for plan in planned if not plan.problem]
    how = "one after another" if takes_s >= sum(plan.expected_s for plan in runnable) else "the boxes at the same time"
    total = (
        f"{numbers.counted(len(runnable), 'item')} would run, {how}: about {numbers.rough_duration(takes_s)} in all."
    )
    return lines_of([" ".join(batch.title.split()), "", *aligned(rows), "", total])


class Ahead:
    """The time that the items still to run will take: the plan's guesses, corrected by how wrong they were so far."""

    def __init__(self, planned: Sequence[Planned]) -> None:
        self._waiting = {plan.item.id: plan.expected_s for plan in planned}
        self._guessed_s, self._spent_s = 0.0, 0.0

    def end(self, item: str, elapsed_s: float) -> None:
        """Count an item as done with; nothing is learnt from one that took no time."""
        guess = self._waiting.pop(item, 0.0)
        if elapsed_s >= 1.0:
            self._guessed_s, self._spent_s = self._guessed_s + guess, self._spent_s + elapsed_s

    def seconds(self, *, running_s: float = 0.0, running: str = "") -> float:
        """Return what is left, with one item running for so long already."""
        factor = self._spent_s / self._guessed_s if self._guessed_s else 1.0
        running_item_s = self._waiting.get(running, 0.0) * factor
        return sum(self._waiting.values()) * factor - min(running_item_s, running_s)


def summary_text(view: BatchView) -> str:
    """Return the summary for the terminal: one line an item, then what failed and why."""
    lines = [verdict(view), ""]
    for item in view.batch.items:
        lines.append(f"{STATE_WORDS[view.state(item)]:13} {item.id}  {item.label}")
        if item.id in view.results:
            lines.append(f"{'':13} {view.results[item.id].verdict}")
    for item in view.having("failed", "left out", "stopped"):
        outcome = view.outcomes[item.id]
        lines += ["", f"{outcome.state}: {item.id}", *(f"  {line}" for line in outcome.reason.splitlines())]
        lines += [f"  notebook: {view.name}/{outcome.notebook}"] if outcome.notebook else []
    return lines_of(lines)


def lines(view: BatchView) -> list[tuple[str, str]]:
    """Return what became of the items and which answers can be cited, why others cannot, and how ours stand to what was
    published, each below what it is about: ('', 'Both items finished; “why on local” can be cited, “tour on local”
    cannot.'), ('“tour on local”', '1 cell not to be used.')."""
    agreements = [row.agreement for item in view.batch.items for row in _published_of(view, item)]
    published = [("", verdicts.agreement_sentence(agreements))] if agreements else []
    return [("", f"{_finished(view)}{_citable(view)}."), *_not_citable(view), *published]


def _quoted(item: Item) -> str:
    return f"“{item.label}”"


def verdict(view: BatchView) -> str:
    """Return the same in one line."""
    return " ".join(f"{name}: {text}" if name else text for name, text in lines(view))


def _finished(view: BatchView) -> str:
    """'Both items finished', 'Of 12 items: 9 done, 1 failed and 2 left out'."""
    counts, total = Counter(view.state(item) for item in view.batch.items), len(view.batch.items)
    if counts["done"] == total:
        return {1: "The item finished", 2: "Both items finished"}.get(total, f"All {total} items finished")
    states: tuple[ItemState | None, ...] = ("done", "failed", "left out", "stopped", None)
    parts = [f"{counts[state]} {state or 'not begun'}" for state in states if counts[state]]
    return f"Of {numbers.counted(total, 'item')}: {numbers.listed(parts)}"


def _measured(view: BatchView) -> list[tuple[Item, ItemResult]]:
    """Return the items that have measured something, with what they say."""
    return [(item, view.results[item.id]) for item in view.batch.items if item.id in view.results]


def _citable(view: BatchView) -> str:
    """'; neither can be cited', of the items that measured something; of few that differ in it their names."""
    by_citable = by_key((not result.not_citable, _quoted(item)) for item, result in _measured(view))
    good, unfit = by_citable.get(True, []), by_citable.get(False, [])
    total, bad = len(view.results), len(unfit)
    if not total:
        return ""
    if good and unfit:
        if total > _MOST_NAMED:
            return f"; {len(good)} of {total} can be cited"
        return f"; {numbers.listed(good)} can be cited, {numbers.listed(unfit)} cannot"
    none, every = {1: ("it cannot", "it can"), 2: ("neither can", "both can")}.get(
        total, (f"none of {total} can", f"all {total} can")
    )
    return f"; {none if bad else every} be cited"


def _not_citable(view: BatchView) -> list[tuple[str, str]]:
    """Return each reason below the items that it holds for."""
    reasons = by_key((result.not_citable, _quoted(item)) for item, result in _measured(view) if result.not_citable)
    parts = [(numbers.first_few(names, _MOST_NAMED), f"{capital(why)}.") for why, names in reasons.items()]
    return [*parts[:_MOST_NAMED], *([("", "The table has the other reasons.")] if len(parts) > _MOST_NAMED else [])]


def exit_code(view: BatchView) -> int:
    """0 where all is done and every trial was good, 1 where some of it is not; 3 where no box could be reached."""
    kinds = [getattr(errors, view.outcomes[item.id].error, None) for item in view.having("failed")]
    if kinds and not view.results and all(getattr(kind, "exit_code", 1) == 3 for kind in kinds):
        return 3
    bad = any(result.bad_trials for result in view.results.values())
    return 1 if bad or view.having("failed", "stopped", None) else 0


def entry(view: BatchView) -> dict[str, object]:
    """Return what the index of results shows of a batch."""
    caveats: Counter[str] = sum((Counter(result.caveats) for result in view.results.values()), Counter())
    return {
        "kind": "batch",
        "title": view.batch.title,
        "created_at": view.created_at,
        "page": "report.html",
        "verdict": verdict(view),
        "caveats": {severity: caveats[severity] for severity in _SEVERITIES},
        "runs": [outcome.run for outcome in view.outcomes.values() if outcome.run],
    }


# ── the page ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def title(view: BatchView) -> Html:
    """Return the title, and below it when and how long."""
    spent = sum(outcome.elapsed_s for outcome in view.outcomes.values())
    day = datetime.fromisoformat(view.created_at).strftime("%Y-%m-%d %H:%M %Z").strip()
    parts = (view.name, day, numbers.counted(len(view.batch.items), "item"), numbers.rough_duration(spent))
    return html.joined(html.heading(view.batch.title, level=1), html.paragraph(" · ".join(parts), kind="meta"))


def answer(view: BatchView) -> Html:
    """Return what became of the batch, then what each study says, in a sentence each."""
    unfinished = view.having("failed", "stopped", None)
    alert: Text = ""
    if unfinished:
        names = numbers.listed([item.id for item in unfinished])
        alert = html.box("alert warning", html.paragraph(f"Not finished: {names}. To go on:"), html.code(view.command))
    (_, first), *others = lines(view)
    steps = [(f"Next for {_quoted(item)}", result.next_step) for item, result in _measured(view) if result.not_citable]
    below = (*others, *(step for step in steps[:_MOST_NAMED] if step[1]))
    parts = (html.paragraph(html.labelled(*line)) for line in below)
    return html.joined(html.box("answer", html.paragraph(first, kind="lead"), *parts), alert)


def items(view: BatchView) -> Html:
    """Return one row an item: its state, what its run says, how far to trust it, and the way to its report."""
    head = [Column(name) for name in ("Item", "State", "What it says", "Trust", "Report")]
    groups = by_key((item.group, _item_row(view, item)) for item in view.batch.items)
    parts = [Rows(rows, name if len(groups) > 1 else "") for name, rows in groups.items()]
    return html.table(head, parts, caption="Items, in the order of the batch")


def over_boxes(view: BatchView) -> Html:
    """Return the pages of the sweeps that were run on several boxes."""
    if not view.across:
        return html.nothing("No sweep of this batch was run on several boxes.")
    return html.items(
        html.link(page, label) if page.startswith("../") else html.labelled(label, page)
        for label, page in view.across.items()
    )


def _item_row(view: BatchView, item: Item) -> list[Text]:
    outcome, result = view.outcomes.get(item.id), view.results.get(item.id)
    says: Text = in_one_line(outcome.reason) if outcome and outcome.reason else ""
    trust: Text = ""
    if result:
        unfit = f"Cannot be cited, {result.not_citable}" if result.not_citable else ""
        says = html.stacked(html.labelled(unfit, result.verdict), result.question)
        counts = [f"{n} × {SEVERITY_WORDS[kind]}" for kind in _SEVERITIES if (n := result.caveats.get(kind))]
        counts += [numbers.counted(n, f"{status} trial") for status, n in result.bad_trials.items()]
        trust = html.stacked(result.trust, "; ".join(counts) or "no caveat")
    state = STATE_WORDS[view.state(item)].replace(" ", "\u00a0")
    where = f"; done on {outcome.box}" if outcome and outcome.box else ""
    return [html.stacked(item.label, f"{item.id}{where}"), state, says, trust, _links(outcome)]


def _links(outcome: ItemOutcome | None) -> Html:
    if outcome is None:
        return html.joined()
    page = html.link(outcome.page, "report") if outcome.page else ""
    notebook = html.link(outcome.notebook, "notebook") if outcome.notebook else ""
    return html.joined(page, notebook)


def published(view: BatchView) -> Html:
    """Return what was published, study by study, and what we saw: computed from comparisons."""
    rows = {item.id: of_item for item in view.batch.items if (of_item := _published_of(view, item))}
    if not rows:
        return html.nothing("No sweep of this batch names published figures.")
    groups = []
    for item in view.batch.items:
        if item.id in rows:
            studies = list(dict.fromkeys(row.theirs.study for row in rows[item.id]))
            name, outcome = f"{numbers.listed(studies)}: {item.label}", view.outcomes.get(item.id)
            linked = html.link(outcome.page, name) if outcome and outcome.page else ""
            heading: Text = linked or f"{name} ({STATE_WORDS[view.state(item)]})"
            groups.append(Rows([_published_row(row) for row in rows[item.id]], heading))
    words = [Column(name) for name in ("Published", "Compared", "Theirs")]
    head = [*words, Column("Ours", "number"), Column("Our interval", "interval"), Column("Verdict")]
    all_rows = [row for of_item in rows.values() for row in of_item]
    sources = {row.theirs.study: row.theirs.source for row in all_rows}
    return html.joined(
        html.paragraph(verdicts.agreement_sentence([row.agreement for row in all_rows])),
        html.paragraph(
            "Absolute figures are of other machines, years and sizes: compare directions and their order, not speeds."
        ),
        html.table(head, groups, caption="Published, and what we saw; ratios of candidate to baseline"),
        html.items(f"{name}: {text}" for name, text in sources.items()),
    )


def _published_of(view: BatchView, item: Item) -> list[Beside]:
    """Return what was published of an item's sweep, with ours. Of rows about a workload that this sweep does not have
    (of another tool, in a preset) nothing is said where others of the same study were measured."""
    if item.id in view.results:
        rows = list(view.results[item.id].beside)
        return [row for row in rows if row.agreement != "not measured"] or rows
    return [Beside(theirs, None, "not measured") for theirs in view.expected.get(item.id, ())]


def _published_row(row: Beside) -> list[Text]:
    theirs = row.theirs
    figures = verdicts.compared_figures(row.ours) if row.ours else None
    sides = f"{theirs.candidate} / {theirs.baseline}"
    if theirs.baseline_factors:
        other = workload_label(theirs.baseline, {**theirs.factors, **theirs.baseline_factors})
        sides = f"{workload_label(theirs.candidate, theirs.factors)} / {other}"
    return [
        html.stacked(theirs.what, theirs.says) if theirs.says else theirs.what,
        sides,
        verdicts.claim_text(theirs),
        figures.value if figures else numbers.MISSING,
        figures.interval if figures else "",
        verdicts.agreement_text(row.agreement, row.why, signs=True),
    ]


def failures(view: BatchView) -> Html:
    """Return what failed or was stopped, each with the whole reason and the notebook with the failed cell."""
    return _reasons(view, view.having("failed", "stopped"), "Nothing failed.")


def left_out(view: BatchView) -> Html:
    """Return what the boxes cannot do: whole items, and parts of sweeps."""
    parts = [
        html.definitions({f"{item.id}: {name}": why for name, why in view.results[item.id].left_out.items()})
        for item in view.batch.items
        if item.id in view.results and view.results[item.id].left_out
    ]
    return html.joined(_reasons(view, view.having("left out"), "" if parts else "Nothing was left out."), *parts)


def _reasons(view: BatchView, chosen: Sequence[Item], nothing: str) -> Html:
    parts: list[Html] = [] if chosen or not nothing else [html.nothing(nothing)]
    for item in chosen:
        outcome = view.outcomes[item.id]
        heading = html.heading(f"{item.id}: {item.label}", level=3)
        parts += [heading, html.code_block(outcome.reason), _links(outcome)]
    return html.joined(*parts)


def again(view: BatchView) -> Html:
    """Return the line that resumes it, where something is left to do."""
    if view.having("failed", "stopped", None):
        return html.code_block(view.command)
    return html.nothing("Nothing is left to do.")
