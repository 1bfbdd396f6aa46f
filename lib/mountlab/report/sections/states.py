"""In which state trials have found each file system: how full, how old, in how many pieces."""

from __future__ import annotations

from mountlab.analysis.run_view import RunView
from mountlab.core import numbers
from mountlab.core.numbers import percent
from mountlab.filesystems.kept import StateRecord
from mountlab.filesystems.state_evidence import StateEvidence
from mountlab.report import html
from mountlab.report.html import Head, Html, Rows, numeric
from mountlab.report.sections import frames
from mountlab.report.sections.shared import swatches

_SHOWN = 12
"""Digits of a checksum: the whole of it is in the raw output of each mount."""


@frames.attach(frames.states)
def states(run: RunView) -> Html:
    """A row for each file system and state that files make, fresh and as made; and the checksum that mounts began
    from."""
    if not run.states:
        return html.nothing("No file system is brought into a state.")
    marks = swatches(run)
    rows = [[marks.get(record.filesystem, record.filesystem), record.state, *_cells(record)] for record in run.states]
    figures = numeric("In use", "Files", "Written, capacities", "Extents a file")
    head: Head = [
        "File system",
        "State",
        *figures,
        "Free space, mean piece",
        "Blocks in use, SHA-256",
        *numeric("Mounts"),
    ]
    note = (
        "In use is what df counts. Extents are of a sample of 1 000 files. Pieces of free space are as the file system "
        "counts them, fresh → made. Each mount began from blocks with the checksum shown; or, where they "
        "are not kept, from the same files, made again."
    )
    table = html.table(head, [Rows(rows)], caption="States of the file systems")
    return html.joined(html.paragraph(note, kind="meta"), table)


def _cells(record: StateRecord) -> list[str]:
    fresh, reached, (first, *others) = record.fresh, record.reached, record.identities
    more = f" and {numbers.counted(len(others), 'other')}" if others else ""
    return [
        percent(round(reached.fill, 3)),
        numbers.number(reached.files, 0),
        numbers.number(record.made.age, 1),
        _number(reached.extents_per_file),
        f"{_piece(fresh)} → {_piece(reached)}",
        f"{first[:_SHOWN]}{more}" if first else f"made again, files {record.made.digest[:_SHOWN]}",
        str(len(record.mounts)),
    ]


def _number(value: float | None) -> str:
    return "unknown" if value is None else numbers.number(value, 2)


def _piece(evidence: StateEvidence) -> str:
    return "unknown" if evidence.free is None else numbers.quantity(evidence.free.mean_bytes, "B")
