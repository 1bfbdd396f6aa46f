"""Two runs beside each other: a kernel before and after, two boxes, bare metal and a guest.

First what is known to differ between them, then the ratio of B to A for every cell that both have.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mountlab.analysis.compare.differences import Difference, caveats_of, differences, known_areas, sides_differ
from mountlab.analysis.compare.figures import common_cells, level_of, smallest_effect_of
from mountlab.analysis.compare.ratios import CellRatio, ratios_to_first
from mountlab.analysis.run_view import ComparedRun
from mountlab.analysis.same_cells import aligned
from mountlab.checks.base import of_run
from mountlab.core.errors import PlanError
from mountlab.core.findings import Caveat
from mountlab.core.model import Cell, Sweep


@dataclass(frozen=True)
class RunComparison:
    """Everything that two runs say beside each other."""

    a: ComparedRun
    b: ComparedRun
    differences: tuple[Difference, ...]
    ratios: tuple[CellRatio, ...]
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    """Cells of one run only."""
    caveats: tuple[Caveat, ...]
    level: float
    smallest_effect: float


def compare_runs(a: ComparedRun, b: ComparedRun) -> RunComparison:
    """Compare run B with run A. Raises PlanError where they are one run, have no cell in common, or no figure of the
    same metric and unit."""
    if a.info.get("run_id") == b.info.get("run_id"):
        raise PlanError(
            "a run is not compared with itself", where="compare", got=str(a.info.get("run_id")), allowed="two runs"
        )
    a, b = aligned((a, b))
    common = common_cells(a.sweep, b.sweep)
    found = differences(a, [b], [common])
    (ratios,) = ratios_to_first(a, [b])
    return RunComparison(
        a=a,
        b=b,
        differences=found,
        ratios=ratios,
        only_a=_only(a.sweep, b.sweep),
        only_b=_only(b.sweep, a.sweep),
        caveats=tuple(_caveats(a, b, common, found)),
        level=level_of((a, b)),
        smallest_effect=smallest_effect_of((a, b)),
    )


def _only(one: Sweep, other: Sweep) -> tuple[str, ...]:
    theirs = {cell.id for cell in other.cells}
    return tuple(cell.id for cell in one.cells if cell.id not in theirs)


def _caveats(a: ComparedRun, b: ComparedRun, common: Sequence[Cell], found: Sequence[Difference]) -> Iterator[Caveat]:
    yield from sides_differ(found, runs="A and B", so="A ratio is about all of them together.")
    if not known_areas(found):
        yield of_run(
            "sides-alike",
            "note",
            "nothing that was kept differs between A and B. What the ratios show is how much a run differs from its "
            "own repetition on this box.",
        )
    yield of_run(
        "runs-not-paired",
        "warning",
        "the two runs share no blocks. Whatever else changed between them (time of day, neighbours, temperature, a "
        "reboot) is in every ratio, and the intervals know only the spread inside each run. Run A and B again, in "
        "turns, before a small ratio is believed.",
    )
    for name, run in (("A", a), ("B", b)):
        yield from caveats_of(name, run, common)
