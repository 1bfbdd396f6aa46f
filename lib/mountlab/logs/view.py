"""Outputs of logs, for a terminal and for other programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mountlab.core.text import aligned, lines_of
from mountlab.core.units import scale_for
from mountlab.logs.base import Figure, Output

Logs = Mapping[str, Sequence[Output]]
"""Name of each log to its outputs."""
_HEAD = ("metric", "label", "value", "line")
_DIGITS = 4


def as_table(logs: Logs) -> str:
    """Return a table for each output, below its log and format; those without figures say so (and errors say why)."""
    return "\n\n".join(lines_of(_lines(name, output)) for name, outputs in logs.items() for output in outputs)


def _lines(name: str, output: Output) -> Iterator[str]:
    yield f"{name}, from line {output.part.line}: {output.form}"
    if output.problem:
        yield f"no figures: {output.problem.what}"
        return
    rows = [_HEAD, *map(_row, output.figures)]
    wide, far = (max(len(row[place]) for row in rows) for place in (2, 3))
    yield from aligned((metric, label, value.rjust(wide), line.rjust(far)) for metric, label, value, line in rows)
    yield from (f"note: {note}" for note in output.notes)


def _row(figure: Figure) -> tuple[str, str, str, str]:
    row = figure.measurement
    scale = scale_for(row.unit, row.value)
    unit = "" if scale.unit == "1" else f" {scale.unit}"
    return row.metric, row.label, f"{scale.show(row.value, _DIGITS)}{unit}", str(figure.line)


def as_json(logs: Logs) -> list[dict[str, Any]]:
    """Return one entry an output: figures in base units with their lines, or `error`."""
    return [{"file": name, **_entry(output)} for name, outputs in logs.items() for output in outputs]


def _entry(output: Output) -> dict[str, Any]:
    rows = [
        {"metric": row.metric, "label": row.label, "value": row.value, "unit": row.unit, "line": figure.line}
        for figure in output.figures
        for row in (figure.measurement,)
    ]
    problem = str(output.problem) if output.problem else None
    head = {"format": output.form, "line": output.part.line, "error": problem}
    return {**head, "figures": rows, "notes": list(output.notes)}
