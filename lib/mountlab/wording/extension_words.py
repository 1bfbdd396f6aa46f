"""How a run was extended, in words."""

from __future__ import annotations

from collections.abc import Mapping

from mountlab.core.model import Extensions, Stage, Sweep
from mountlab.core.numbers import counted, level_text, listed
from mountlab.stats.sequential import level_after


def looks(sweep: Sweep) -> int:
    """Return how often the results of a run were looked at, this time included; 1 where it was never extended."""
    return 1 + (sweep.repeated_looks.count if isinstance(sweep.repeated_looks, Extensions) else 0)


def looks_text(sweep: Sweep) -> str:
    """Return 'Corrected for 2 looks.'; '' of one look."""
    count = looks(sweep)
    return f"Corrected for {count} looks." if count > 1 else ""


def corrected_text(sweep: Sweep) -> str:
    """Return 'Intervals and verdicts are corrected for 2 looks.', with the level at which they are computed; '' of one
    look."""
    if looks(sweep) == 1:
        return ""
    level = sweep.design.level
    computed, holds = level_text(level_after(sweep.repeated_looks, level)), level_text(level)
    return (
        f"Intervals and verdicts are corrected for {looks(sweep)} looks: an interval that is to hold at {holds} is "
        f"computed at {computed}."
    )


def extended_texts(sweep: Sweep) -> list[str]:
    """Return 'Extended on 2026-11-23 with 5 blocks (6 to 10; looks: 2)' for each extension, with the cells it added."""
    stages, seen = sweep.stages, 1
    texts = []
    for stage in stages[1:]:
        seen += stage.repeats_cells
        said = f"Extended on {stage.at[:10]} with {counted(len(stage.counted), 'block')}"
        texts.append(f"{said} ({numbers_text(stage.counted)}; looks: {seen}){_added(stage)}.")
    return texts


def late_cells(sweep: Sweep) -> Mapping[str, Stage]:
    """Return the cells that an extension added, each with the blocks that it came with."""
    return {cell: stage for stage in sweep.stages[1:] for cell in stage.added_cells}


def uncompared(sweep: Sweep) -> list[str]:
    """Return the cells that have no block together with the baseline of their workload."""
    cells = {(cell.filesystem.name, cell.workload.label): cell.id for cell in sweep.cells}
    pairs = [(own, cells.get((sweep.baseline or "", label))) for (_, label), own in cells.items()]
    return [own for own, base in pairs if base and not sweep.have_blocks(own, base)]


def _added(stage: Stage) -> str:
    if not stage.added_cells:
        return ""
    alone = "" if stage.repeats_cells else ", alone"
    return f", which hold the new cells {listed(list(stage.added_cells))}{alone}"


def numbers_text(blocks: range) -> str:
    """Return '6 to 10'."""
    first, last = blocks[0], blocks[-1]
    return str(first) if first == last else f"{first} to {last}"
