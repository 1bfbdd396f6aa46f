"""A bundle in words: its page, its README, how to cite it, and its licence."""

from __future__ import annotations

from collections.abc import Sequence

from mountlab.core import numbers
from mountlab.core.checksums import MANIFEST
from mountlab.core.text import lines_of
from mountlab.publish.bundle import Bundle, BundleCheck, PublishedRun
from mountlab.publish.crate import SPDX, description
from mountlab.publish.paper import markdown_text
from mountlab.report import html
from mountlab.report.html import Html, Text
from mountlab.report.page import page

_FILES = {
    "report.html": "report", "notebooks/20_report.ipynb": "executed notebook", "estimates.csv": "estimates",
    "comparisons.csv": "comparisons", "latency_comparisons.csv": "comparisons of latencies",
    "condition_changes.csv": "changes by state and neighbour",
    "caveats.csv": "caveats", "measurements.csv": "measurements",
    "measurements.parquet": "measurements (Parquet)", "sweep.yml": "sweep", "box.yml": "box", "run.json": "run.json",
    "trials.jsonl": "journal", "published.json": "published figures", "exclude.yml": "excluded trials",
    "derived.json": "checksums of tables",
}  # fmt: skip
"""What is linked of a run, in the order of a reader."""
KEPT = "Nothing was replaced: host names, addresses, serial numbers and user names are those of the box."
TITLES = {
    "replaced": "What was replaced", "again": "Check it, and run it again", "files": "What is in it", "cite": "Cite it",
}  # fmt: skip


def index_page(bundle: Bundle, files: Sequence[str]) -> str:
    """Return the page of a bundle: each question with its answer and its files, what was replaced, how to check it all.

    `files`: the names of all files in it; what is not there is not linked.
    """
    comparisons = Html("")
    if bundle.comparisons:
        links = [html.link(f"{path}/report.html", title) for path, title in bundle.comparisons.items()]
        comparisons = html.joined(html.heading("Runs beside each other", level=2), html.items(links))
    raw = sum("/raw/" in name for name in files)
    contents = [html.link(name, name) for name in files if "/raw/" not in name]
    cited = f"{numbers.listed(bundle.authors)} ({bundle.date[:4]}): {bundle.title}. Data set, measured with Mountlab."
    body = html.joined(
        html.heading(bundle.title, level=1),
        html.paragraph(_about(bundle), kind="meta"),
        *(_run(run, files) for run in bundle.runs),
        comparisons,
        _again(bundle),
        _replaced(bundle),
        html.joined(
            html.heading(TITLES["files"], level=2),
            html.details(f"{len(contents)} files; {raw} more are raw output, below runs/", html.items(contents)),
        ),
        html.joined(
            html.heading(TITLES["cite"], level=2),
            html.paragraph(cited),
            html.paragraph(html.joined(html.link("CITATION.cff", "CITATION.cff"), html.link("LICENSE", "LICENSE"))),
        ),
    )
    return page(body, title=bundle.title, kind="bundle")


def _about(bundle: Bundle) -> str:
    runs = numbers.counted(len(bundle.runs), "run")
    return f"{numbers.listed(bundle.authors)}, {bundle.date}. {runs}. Licence {bundle.licence}."


def _run(run: PublishedRun, files: Sequence[str]) -> Html:
    facts = [run.run_id, f"box {run.box}", numbers.counted(run.trials, "trial")]
    facts += [run.status] if run.status != "complete" else []
    links = [html.link(f"{run.path}/{name}", text) for name, text in _FILES.items() if f"{run.path}/{name}" in files]
    return html.joined(
        html.heading(html.link(f"{run.path}/report.html", run.question), level=2),
        html.paragraph(", ".join(facts), kind="meta"),
        html.box("answer", *(html.paragraph(sentence) for sentence in run.sentences)),
        html.paragraph(caveat_text(run)),
        html.paragraph(Html(" · ").join(links)),
    )


def caveat_text(run: PublishedRun) -> str:
    """'2 warnings and 1 note: see the caveats of the report.'"""
    parts = [numbers.counted(count, severity) for severity, count in run.caveats.items() if count]
    return f"{numbers.listed(parts)}: see the caveats of the report." if parts else "No caveats."


def _again(bundle: Bundle) -> Html:
    return html.joined(
        html.heading(TITLES["again"], level=2),
        html.paragraph("The checksums, with no program of ours:"),
        html.code_block(f"sha256sum -c {MANIFEST}"),
        html.paragraph(
            f"All figures from the raw output, with Mountlab {bundle.mountlab_version} in the environment of "
            "environment/requirements.lock; nothing in the bundle is executed:"
        ),
        html.code_block("mountlab reproduce ."),
        html.paragraph("And once more, on a box of yours, the two runs beside each other:"),
        html.code_block("mountlab reproduce . --box NAME"),
    )


def _replaced(bundle: Bundle) -> Html:
    parts: list[Text] = [html.heading(TITLES["replaced"], level=2), *map(html.paragraph, replaced_sentences(bundle))]
    if bundle.replaced:
        rows = [[row["kind"], str(row["different"]), str(row["times"])] for row in bundle.replaced]
        head = [html.Column("kind"), html.Column("different", "number"), html.Column("places", "number")]
        parts.append(html.table(head, [html.Rows(rows)], caption="Replaced by names that stay the same in all files"))
    return html.joined(*parts)


def replaced_sentences(bundle: Bundle) -> list[str]:
    """Return what became of names and addresses."""
    if bundle.replaced is None:
        return [KEPT]
    lines = ["Names of machines and people, addresses and serial numbers have been replaced; figures have not changed."]
    if bundle.ordinary:
        kinds = " or ".join(f"a {_OF_KIND.get(kind, kind)}" for kind in bundle.ordinary)
        lines.append(f"The name of {kinds} is an ordinary word, and was replaced only where it stands as a name.")
    return lines


_OF_KIND = {"serial": "serial number", "device": "volume", "wwn": "world-wide name"}


# --- files beside the page --------------------------------------------------------------------------------------------


def readme(bundle: Bundle) -> str:
    """Return README.md of a bundle; texts of others stand in it as text."""
    lines = [f"# {markdown_text(bundle.title)}"]
    lines += ["", f"{markdown_text(_about(bundle))} Open `index.html`; it needs no network.", ""]
    for run in bundle.runs:
        lines += [f"## {markdown_text(run.question)}", ""]
        lines += [f"[Report]({run.path}/report.html), raw output and figures: `{run.path}/`", ""]
        lines += [f"{markdown_text(sentence)}\n" for sentence in run.sentences]
    lines += [f"## {TITLES['again']}", "", "```", f"sha256sum -c {MANIFEST}"]
    lines += ["mountlab reproduce .", "mountlab reproduce . --box NAME", "```", ""]
    lines += [
        "`reproduce` makes all figures again from the raw output and says whether they equal those that are published",
        "here, to the last digit. With `--box` it runs the sweeps once more, on a box of yours.",
        "",
    ]
    lines += [f"## {TITLES['replaced']}", "", *replaced_sentences(bundle)]
    if bundle.replaced:
        lines += ["", "| kind | different | places |", "|---|---:|---:|"]
        lines += [f"| {row['kind']} | {row['different']} | {row['times']} |" for row in bundle.replaced]
    return "\n".join(lines) + "\n"


def licence_text(bundle: Bundle, of_mountlab: str) -> str:
    """Return LICENSE of a bundle. `of_mountlab`: the licence of the notebooks in it."""
    return (
        f"The measurements, reports and texts of this bundle are licensed under {bundle.licence}, by "
        f"{numbers.listed(bundle.authors)}.\nThe text of that licence: {SPDX}{bundle.licence}.html\n\n"
        f"The notebooks in notebooks/ are part of Mountlab, under this licence:\n\n{of_mountlab}"
    )


def citation(bundle: Bundle) -> dict[str, object]:
    """Return CITATION.cff of a bundle, for YAML."""
    return {
        "cff-version": "1.2.0",
        "message": "If you use these measurements, please cite them as below.",
        "type": "dataset",
        "title": bundle.title,
        "abstract": description(bundle),
        "authors": [{"name": name} for name in bundle.authors],
        "date-released": bundle.date,
        "license": bundle.licence,
        "keywords": ["file systems", "benchmark", "reproducibility"],
    }


# --- the result of a check ------------------------------------------------------------------------------------------


def checked_text(checked: BundleCheck) -> str:
    """Return what became of checksums and figures, for a terminal."""
    lines = [f"{checked.title}: {numbers.counted(len(checked.runs), 'run')}"]
    lines += [f"  {damage}" for damage in checked.damage]
    if checked.damage:
        lines.append(f"Files: {numbers.counted(len(checked.damage), 'file')} not as published.")
    else:
        lines.append("Files: all as published, by their checksums.")
    lines += [f"  {difference}" for difference in checked.differences]
    figures = numbers.counted(checked.figures, "figure")
    if checked.lost:
        runs = numbers.counted(len(checked.lost), "run")
        lines.append(f"Figures: of {runs} none could be made again: {numbers.listed(checked.lost)}.")
    elif not checked.differences:
        lines.append(f"Figures: all {figures} made again from the raw output equal those published, to the last digit.")
    else:
        lines.append(
            f"Figures: {len(checked.differences)} of {figures} and sentences made again from the raw output differ."
        )
    if checked.differences and checked.versions:
        lines.append(f"The likely reason: other versions of libraries: {'; '.join(checked.versions)}.")
    lines.append(
        "Not made again: pages and notebooks (report.html, index.html, README.md). Only their checksums are checked."
    )
    return lines_of(lines)
