"""What became of blocks that `scrub` damaged below a file system, in a sentence for each cell."""

from __future__ import annotations

from collections.abc import Iterator

from mountlab.analysis.run_view import RunView
from mountlab.core.frames import rows_of
from mountlab.core.numbers import counted


def damage_lines(run: RunView) -> list[str]:
    """Return a sentence for each cell that damaged blocks, over its counted trials; [] of other runs."""
    return list(_lines(run))


def _lines(run: RunView) -> Iterator[str]:
    tools = {workload.label for workload in run.sweep.workloads if workload.tool == "scrub"}
    rows = run.measurements[run.measurements["metric"].isin(("blocks", "operations")) & ~run.measurements["warmup"]]
    counts: dict[str, dict[str, list[int]]] = {}
    for cell, label, value in rows_of(rows, "cell", "label", "value"):
        counts.setdefault(cell, {}).setdefault(label, []).append(int(value))
    for cell in run.sweep.cells:
        if cell.workload.label not in tools or cell.id not in counts:
            continue
        named = {label: _range(values) for label, values in counts[cell.id].items()}
        name = cell.filesystem.name + (f" ({cell.workload.label})" if len(tools) > 1 else "")
        yield (
            f"{name}: of {named['planted']} damaged blocks reads served {named['wrong before']} without an error and "
            f"refused {named['refused before']}; {named['repaired']} were repaired. After the scrub reads serve "
            f"{named['wrong after']} without an error and refuse {named['refused after']} "
            f"({counted(len(counts[cell.id]['planted']), 'trial')})."
        )


def _range(values: list[int]) -> str:
    low, high = min(values), max(values)
    return f"{low}" if low == high else f"{low} to {high}"
