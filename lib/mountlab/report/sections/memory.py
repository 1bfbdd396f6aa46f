"""What memory the files took on file systems that live in memory."""

from __future__ import annotations

from mountlab.analysis.memory_use import Use
from mountlab.analysis.run_view import RunView
from mountlab.core import numbers
from mountlab.core.groups import by_key
from mountlab.core.units import MIB, format_bytes
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Rows, numeric
from mountlab.report.sections import frames
from mountlab.report.sections.shared import swatches

_SMALL_SHARE = 0.05
"""Of what was taken: what is still taken beyond this, and beyond a MiB, was not given back."""


@frames.attach(frames.memory)
def memory(run: RunView) -> Html:
    """Memory before the files were there, with them, and after they were removed: a sentence for each file system, and
    a table."""
    if not run.memory:
        return html.nothing("No file system lives in memory, or the memory of the box was not read.")
    uses = by_key((use.cell.filesystem.name, use) for use in run.memory)
    largest = {name: max(members, key=lambda use: use.files) for name, members in uses.items()}
    marks, rows = swatches(run), []
    for use in run.memory:
        name = use.cell.filesystem.name
        sizes = [numbers.number(size / MIB, 1) for size in (use.files, use.before, use.full, use.after, use.taken)]
        spread = f"{numbers.number(use.least / MIB, 1)} to {numbers.number(use.most / MIB, 1)}"
        rows.append([marks.get(name, name), use.cell.workload.label, str(use.n), *sizes, spread])
    headings = ("Files", "In use before", "With the files", "After removal", "Taken")
    figures = numeric("n", *(f"{heading}, MiB" for heading in headings))
    head: Head = ["File system", "Workload", *figures, Column("Taken, least to most, MiB", "interval")]
    table = html.table(head, [Rows(rows)], caption="Memory of the box, medians over trials")
    return html.joined(html.items(_sentence(name, use) for name, use in largest.items()), table)


def _sentence(name: str, use: Use) -> str:
    """'tmpfs: 64.0 MiB of files took 64.1 MiB of memory, and gave it back when they were removed.'"""
    of_what = "of the huge pages that were reserved at the mount" if use.huge_pages else "of memory"
    fs = use.cell.filesystem
    earlier, why = (" and what earlier trials left", _ZRAM) if (fs.over or fs).zram_bytes else ("", "")
    took = f"{name}: {format_bytes(use.files)} of files{earlier} took {format_bytes(use.taken)} {of_what}"
    if use.kept <= max(MIB, _SMALL_SHARE * use.taken):
        return f"{took}, and gave it back when they were removed."
    return f"{took}; {format_bytes(use.kept)} were still in use after they were removed.{why}"


_ZRAM = " A zram device keeps a block until it is written again or discarded."
