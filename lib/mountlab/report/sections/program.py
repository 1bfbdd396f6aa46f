"""What each program does to its files, by the system calls of a trial of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from mountlab import plots
from mountlab.analysis.program import ProgramTrial, fio_workloads, main_programs, slower, slower_text, work_of
from mountlab.analysis.run_view import RunView
from mountlab.core import numbers
from mountlab.core.safe_yaml import as_yaml
from mountlab.core.units import format_bytes
from mountlab.plots import Plot
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Rows, Text
from mountlab.report.sections import frames
from mountlab.report.sections.shared import swatches
from mountlab.tracing import program_words as words
from mountlab.tracing.program import Profile
from mountlab.tracing.program_state import TEST

_MOST_OPEN = 2
"""Workloads whose pictures stand open."""
_MOST_DRAWN = 6
_BYTES = ("bytes read", "bytes written")
_FILES = "program.yml", "program-fio.yml"


@frames.attach(frames.programs)
def program(run: RunView) -> Html:
    """Return for each workload what its program does, in sentences and pictures; a table by which one sees whether it
    did the same on each file system; and a workload of fio to begin with."""
    if not run.programs:
        return html.nothing("No system calls were recorded: `design: {profile: true}` does, or `explain --profile`.")
    parts = []
    for number, (label, trial) in enumerate(main_programs(run).items()):
        body = _one(trial, draws=number < _MOST_DRAWN)
        parts.append(body if number < _MOST_OPEN else html.details(label, body))
    return html.joined(*parts, _same_work(run), _fio(run), _beside(run))


def program_plots(run: RunView) -> Iterator[Plot]:
    """Yield the pictures of the first workloads."""
    for trial in islice(main_programs(run).values(), _MOST_DRAWN):
        yield from _plots_of(trial)


def _plots_of(trial: ProgramTrial) -> Iterator[Plot]:
    profile, name = trial.profile, trial.workload_label
    if profile is None:
        return
    if words.operations_under_test(profile):
        yield plots.plot_operations(profile, name)
    if profile.reads or profile.writes:
        yield plots.plot_sizes(profile, name)
    if profile.points.at:
        yield plots.plot_offsets(profile, name)
    if profile.points.sync_at:
        yield plots.plot_syncs(profile, name)
    if profile.concurrency.course and words.operations_under_test(profile):
        yield plots.plot_concurrency(profile, name)


def _one(trial: ProgramTrial, *, draws: bool) -> Html:
    heading = html.paragraph(html.labelled(trial.workload_label, f"trial {trial.trial_id} on {trial.filesystem}."))
    if trial.profile is None:
        return html.joined(heading, html.paragraph(f"It has no profile: {trial.reason}"))
    drawn = [html.plot(plot) for plot in _plots_of(trial)] if draws else []
    return html.joined(
        heading,
        html.definitions(words.facts(trial.profile), kind="notes"),
        html.items(words.unseen(trial.profile)),
        html.columns(*drawn) if drawn else "",
        _elsewhere(trial.profile),
    )


def _elsewhere(profile: Profile) -> Text:
    """Return the calls outside of the directory under test, folded."""
    rows: list[list[Text]] = [
        [row.place, row.operation, f"{row.calls:,}".replace(",", "\u202f"), format_bytes(float(row.bytes))]
        for row in profile.operations
        if row.place != TEST
    ]
    head: Head = ["Where", "Operation", *html.numeric("Calls", "Bytes")]
    table = html.table(head, [Rows(rows)], caption="Calls elsewhere: libraries, settings, pipes and the like")
    return html.details("Calls outside of the directory under test", table) if rows else ""


def _same_work(run: RunView) -> Text:
    """Return a table of the work on each file system, for each workload with two profiles or more."""
    tables, marks = [], swatches(run)
    for label in dict.fromkeys(trial.workload_label for trial in run.programs):
        own = [(trial.filesystem, trial.profile) for trial in run.programs if trial.workload_label == label]
        seen = {name: work_of(profile) for name, profile in own if profile}
        if len(seen) < 2:
            continue
        rows: list[list[Text]] = [
            [quantity, *(_amount(quantity, work[quantity]) for work in seen.values())]
            for quantity in next(iter(seen.values()))
        ]
        head: Head = ["Work", *(Column(marks[name], "number") for name in seen)]
        tables.append(html.table(head, [Rows(rows)], caption=f"Work of one trial under {label}"))
    return html.joined(*tables) if tables else ""


def _amount(quantity: str, amount: float) -> str:
    return format_bytes(float(amount)) if quantity in _BYTES else f"{amount:,.0f}".replace(",", "\u202f")


def _fio(run: RunView) -> Text:
    """Return the workloads of fio, and what each does not carry over."""
    made = fio_workloads(run)
    if not made:
        return ""
    text = as_yaml({"workloads": {name: dict(workload.options) for name, workload in made.items()}})
    about = html.paragraph(
        "A workload of fio to begin with, not validated: compare bytes, syncs and latency before you use it."
    )
    lost = [
        html.details(f"What {name} does not carry over", html.items(workload.not_carried))
        for name, workload in made.items()
    ]
    return html.joined(about, html.code_block(text), *lost)


def _beside(run: RunView) -> Text:
    """Return where the files are, and what recording costs."""
    links = html.joined("All figures: ", html.beside(_FILES[0], _FILES[0]))
    if fio_workloads(run):
        links = html.joined(links, "; a sweep of fio: ", html.beside(_FILES[1], _FILES[1]))
    costs: Sequence[str] = [slower_text(row) for row in slower(run)]
    cost = f"While its calls were recorded the tool took {numbers.listed(costs)}." if costs else ""
    return html.joined(html.paragraph(links), html.paragraph(f"{cost} {words.ABOUT}".strip(), kind="meta"))
