"""The tables of a run as CSV files that the page holds itself: they are saved without asking anybody for them."""

from __future__ import annotations

from dataclasses import dataclass

from mountlab.analysis.run_view import RunView
from mountlab.core import numbers
from mountlab.report import html
from mountlab.report.html import Html
from mountlab.report.sections.trials import trial_frame
from mountlab.results.tables import CHANGES, plain_csv, tables, with_factors_as_text

MOST_BYTES = {
    "estimates": 800_000, "comparisons": 400_000, CHANGES: 400_000, "trials": 800_000, "measurements": 300_000,
}  # fmt: skip
"""Table to how large its CSV may be in a page: the whole page is to open at once, and to be sent by mail."""


@dataclass(frozen=True)
class _SavedTable:
    name: str
    rows: int
    text: str

    @property
    def fits(self) -> bool:
        return len(self.text.encode()) <= MOST_BYTES[self.name]

    @property
    def size(self) -> str:
        return numbers.quantity(len(self.text.encode()), "B")


def downloads(run: RunView) -> Html:
    """Links that save estimates, comparisons, trials and measurements as CSV, and what is too large for the page."""
    frames = {**tables(run), "trials": with_factors_as_text(trial_frame(run))}
    files = [_SavedTable(name, len(frames[name]), plain_csv(frames[name]).decode()) for name in MOST_BYTES]
    files = [file for file in files if file.rows]
    if not files:
        return html.nothing("There are no figures to save.")
    run_id = run.info.run_id
    links = html.items(
        html.aside(
            html.download(f"{run_id}-{file.name}.csv", file.text, f"{file.name}.csv"),
            f"{numbers.counted(file.rows, 'row')}, {file.size}",
        )
        for file in files
        if file.fits
    )
    large = [f"{file.name}.csv ({file.size})" for file in files if not file.fits]
    if not large:
        return links
    command = html.code(f"mountlab export results/{run_id} --format csv")
    note = html.paragraph(f"Too large for this page: {numbers.listed(large)}. All tables as files:")
    return html.joined(links, note, command)
