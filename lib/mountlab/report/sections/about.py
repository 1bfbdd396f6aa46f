"""What was measured, on what, and how to run it again."""

from __future__ import annotations

import math

import yaml

from mountlab.analysis.run_view import RunView
from mountlab.core import numbers
from mountlab.programs import data_lines
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Rows, Text, numeric
from mountlab.report.sections import frames
from mountlab.report.sections.shared import swatches
from mountlab.sweep import plan_text
from mountlab.wording import extension_words, phrases


@frames.attach(frames.options)
def options(run: RunView) -> Html:
    """Return one row for each option that was asked for, and for each that the kernel added, with the kernel's
    words."""
    if not run.options:
        return html.nothing("No option was asked for.")
    head: Head = ["File system", "Kind", "Asked", "State", Column("The kernel says", "code")]
    rows: list[list[Text]] = []
    for o in run.options:
        requested = html.code(o.option) if o.option else "added by the kernel"
        rows.append([o.filesystem, o.kind, requested, phrases.OPTION_STATES[o.state], o.kernel_says])
    return html.table(head, [Rows(rows)], caption="Requested options, and what the kernel reports")


@frames.attach(frames.left_out)
def left_out(run: RunView) -> Html:
    """Return the file systems of the sweep that were not measured, and why."""
    if not run.sweep.left_out:
        return html.nothing("Nothing was left out: every file system of the sweep was measured.")
    return html.definitions(dict(run.sweep.left_out))


@frames.attach(frames.stops)
def stopping(run: RunView) -> Html:
    """Until when blocks went on, and for each cell why it has no more; with `repeats` that there was no such rule."""
    if not run.sweep.decides:
        if run.sweep.by_hand:
            return html.paragraph("Trials were asked for by hand: their number was not fixed beforehand.")
        blocks_text = f"The number of blocks was fixed beforehand: {run.sweep.stages[0].counted.stop - 1}."
        more = [*extension_words.extended_texts(run.sweep), extension_words.corrected_text(run.sweep)]
        return html.paragraph(" ".join(filter(None, [blocks_text, *more])))
    together = "All cells of a workload leave together. Intervals are corrected for these looks after every block."
    if run.sweep.searches:
        together = "Each search ended by itself. Its interval holds whenever it is looked at."
    rule = html.paragraph(f"Blocks went on {'; '.join(plan_text.ending_texts(run.sweep))}. {together}")
    head: Head = ["File system", *numeric("Blocks", "n", "Reached"), "Of", "Why no more"]
    keys = swatches(run)
    rows: list[tuple[str, list[Text]]] = []
    for stop in run.stops:
        cell = run.sweep.combinations[stop.cell]
        reached = f"±\u00a0{numbers.percent(stop.half_width)}" if math.isfinite(stop.half_width) else numbers.MISSING
        counts = [str(stop.blocks), str(stop.n), reached]
        row: list[Text] = [keys[cell.filesystem.name], *counts, stop.metric, phrases.stop_text(stop)]
        rows.append((cell.workload.label, row))
    caption = "Why each cell has no more trials; its widest interval"
    return html.joined(rule, html.grouped_table(head, rows, caption=caption))


def versions(run: RunView) -> Html:
    """Versions on the control machine, and what makes the run the one it is."""
    info = run.info
    about = {
        "Run": info.run_id,
        "Mountlab": info.mountlab_version,
        "Commit": info.git_commit or "none",
        "Seed": "none" if info.seed is None else info.seed,
        **({} if run.sweep.imported else {"Data": "; ".join(data_lines(run.sweep.workloads))}),
        **info.versions,
        **{f"Plug-in {p.distribution}": f"{p.version} ({p.parts_text})" for p in info.plugins},
    }
    return html.definitions({name: str(text) for name, text in about.items()})


def parameters(run: RunView) -> Html:
    """Return the options that imported logs state, beside what the import says; and the resolved sweep in YAML."""
    logs = run.info.facts.surveyed.stated or {}
    rows = [
        [label, name, option.claimed or "", log.shown(name), f"{option.stated} of {log.outputs}"]
        for label, log in logs.items()
        for name, option in log.options.items()
    ]
    head: Head = ["Workload", "Option", Column("In the import", "code"), "In the logs"]
    head = [*head, *numeric("Outputs that state it")]
    options: Text = html.table(head, [Rows(rows)], caption="Options of the logs") if rows else ""
    text = yaml.safe_dump(run.info.parameters, sort_keys=False, allow_unicode=True, width=100)
    return html.joined(options, html.details("The whole sweep, resolved", html.code_block(text), printed=True))


def reproduce(run: RunView) -> Html:
    """Return the one line that runs it all again."""
    return html.code_block(run.info.command)
