"""Two runs beside each other: a kernel before and after, two boxes, bare metal and a guest.

First what is known to differ between them, then the ratio of B to A for every cell that both have. The runs share no
blocks, so nothing that changed between them cancels: intervals are Welch's, from the spread inside each run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from mountlab import words
from mountlab.analysis import answer_labels, counted
from mountlab.errors import PlanError
from mountlab.model import (
    Caveat,
    Cell,
    Comparison,
    Filesystem,
    Sweep,
    Until,
    higher_is_better,
)
from mountlab.plan import needed_programs
from mountlab.run_view import ComparedRun
from mountlab.stats import WELCH_METHOD, compare_rows_unpaired, family, sequential, verdict

AREAS: dict[str, tuple[str, ...]] = {
    "system": ("kernel", "os"),
    "machine": (
        "hostname", "machine", "cpu_model", "cpus", "cpu_governor", "memory_bytes", "swap_bytes", "power",
        "clocksource", "page_bytes",
    ),
    "virtualisation": ("virtualization", "emulated"),
    "device": ("mount_root_source", "mount_root_fstype", "disk_links"),
    "rights": ("rights", "user"),
}  # fmt: skip
"""What of the facts about a box is held against each other, by what an owner changes at a time."""
_OF_A_DISK = ("model", "size_bytes", "rotational", "scheduler", "transport", "logical_sector_bytes")
_NOT_OF_THE_DESIGN = ("seed", "trial_timeout_s", "strict")
_MOST_NAMED = 4
Row = tuple[str, str, str]
"""Cell, metric and label."""


@dataclass(frozen=True)
class Difference:
    """One thing that is not the same in both runs, as it was kept."""

    area: str
    what: str
    a: Any
    b: Any
    known: bool = True
    """Whether both runs tell. Where one does not, nobody knows whether it differs."""


@dataclass(frozen=True)
class CellRatio:
    """B / A of one metric of one cell. `comparison` names its sides '<file system> in A' and '... in B'."""

    cell: Cell
    comparison: Comparison
    unit: str
    mean_a: float
    mean_b: float
    n_a: int
    n_b: int


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
    common = _common_cells(a.sweep, b.sweep)
    differences = tuple(_differences(a, b, common))
    ratios = _ratios(a, b, common)
    return RunComparison(
        a=a, b=b, differences=differences, ratios=ratios, only_a=_only(a.sweep, b.sweep),
        only_b=_only(b.sweep, a.sweep),
        caveats=tuple(_caveats(a, b, common, differences)), level=_level(a.sweep, b.sweep),
        smallest_effect=_smallest_effect(a.sweep, b.sweep),
    )  # fmt: skip


def _common_cells(a: Sweep, b: Sweep) -> list[Cell]:
    theirs = {cell.id for cell in b.cells}
    common = [cell for cell in a.cells if cell.id in theirs]
    if not common:
        raise PlanError(
            "the two runs have no cell in common", where="compare", got=f"B has {_some(sorted(theirs))}",
            allowed=f"cells of A: {_some([cell.id for cell in a.cells])}",
            next_step="run the same sweep twice; names of file systems and workloads tell what is the same",
        )  # fmt: skip
    return common


def _only(one: Sweep, other: Sweep) -> tuple[str, ...]:
    theirs = {cell.id for cell in other.cells}
    return tuple(cell.id for cell in one.cells if cell.id not in theirs)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    return ", ".join(names[:_MOST_NAMED]) + more


def _level(a: Sweep, b: Sweep) -> float:
    """The stricter of two."""
    return max(a.design.level, b.design.level)


def _smallest_effect(a: Sweep, b: Sweep) -> float:
    return min(a.design.smallest_effect, b.design.smallest_effect)


# ── what differs ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _differences(a: ComparedRun, b: ComparedRun, common: Sequence[Cell]) -> Iterator[Difference]:
    """What differs, worst known causes first: system, machine, virtualisation, device, tools, then what was asked."""
    facts = [_facts(each) for each in (a, b)]
    for area in (*AREAS, "tools"):
        yield from _of_mappings(area, *(each[area] for each in facts), none_is_unknown=True)
    for name in dict.fromkeys(cell.filesystem.name for cell in common):
        both = [next(fs for fs in each.sweep.filesystems if fs.name == name) for each in (a, b)]
        yield from _of_mappings(f"file system {name}", *(_asked(fs) for fs in both))
        yield from _of_mappings(f"options of {name} in effect", *(_in_effect(each, name) for each in (a, b)))
    for label in dict.fromkeys(cell.workload.label for cell in common):
        yield from _of_mappings(f"workload {label}", *(_of_workload(each.sweep, label) for each in (a, b)))
    yield from _of_mappings("design", *(_design(each.sweep) for each in (a, b)))


def _of_mappings(
    area: str, a: Mapping[str, Any], b: Mapping[str, Any], *, none_is_unknown: bool = False
) -> Iterator[Difference]:
    """What is not the same; what neither knows is no difference."""
    for key in {**a, **b}:
        if a.get(key) != b.get(key):
            known = not none_is_unknown or None not in (a.get(key), b.get(key))
            yield Difference(area, key, a.get(key), b.get(key), known)


def _facts(run: ComparedRun) -> dict[str, dict[str, Any]]:
    """What is known of the box of a run, by area."""
    facts = run.info.get("facts", {})
    found = {area: {key: facts.get(key) for key in keys} for area, keys in AREAS.items()}
    found["machine"] |= {"box": run.info.get("box", {}).get("name")}
    found["device"] |= _disks(facts)
    return {**found, "tools": _versions(run)}


def _disks(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The disks of a box, without those that are made for a file system."""
    disks = [each for each in facts.get("block_devices") or [] if each.get("type") == "disk" and each.get("size_bytes")]
    own = [each for each in disks if not str(each.get("name")).startswith(("loop", "zram", "ram"))]
    return {
        f"disk {each.get('name')}": {key: each[key] for key in _OF_A_DISK if each.get(key) not in (None, "")}
        for each in own
    }


def _versions(run: ComparedRun) -> dict[str, Any]:
    """Mountlab, and the programs of the box that the sweep needs."""
    programs = run.info.get("facts", {}).get("programs") or {}
    needed = [] if run.sweep.imported else [program.name for program in needed_programs(run.sweep)]
    found = {name: programs.get(name, {}).get("version") for name in needed}
    return {"mountlab": run.info.get("mountlab_version"), **found}


def _asked(fs: Filesystem) -> dict[str, Any]:
    return {field.name: getattr(fs, field.name) for field in fields(fs) if field.name != "name"}


def _of_workload(sweep: Sweep, label: str) -> dict[str, Any]:
    workload = next(each for each in sweep.workloads if each.label == label)
    return {**workload.options, "precondition": workload.precondition}


def _in_effect(run: ComparedRun, filesystem: str) -> dict[str, Any]:
    own = [each for each in run.options if each.filesystem == filesystem]
    return {each.option or each.kernel_says: each.state for each in own}


def _design(sweep: Sweep) -> dict[str, Any]:
    design = sweep.design
    told = {field.name: getattr(design, field.name) for field in fields(design) if field.name not in _NOT_OF_THE_DESIGN}
    if design.until is None:
        return {**told, "until": "no rule"}
    return {**told, "repeats": "by the rule", "until": words.rule_text(design.until)}


# ── ratios ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class _Figures:
    """The counted values of one run, and the unit of each."""

    values: Mapping[Row, list[float]]
    units: Mapping[Row, str]

    @classmethod
    def of(cls, run: ComparedRun) -> _Figures:
        values: dict[Row, list[float]] = {}
        units: dict[Row, str] = {}
        frame = counted(run.measurements)
        columns = (frame[name] for name in ("cell", "metric", "label", "unit", "value"))
        for cell, metric, label, unit, value in zip(*columns, strict=True):
            values.setdefault((cell, metric, label), []).append(float(value))
            units[cell, metric, label] = unit
        return cls(values, units)


def _ratios(a: ComparedRun, b: ComparedRun, common: Sequence[Cell]) -> tuple[CellRatio, ...]:
    of_a, of_b = _Figures.of(a), _Figures.of(b)
    wanted = list(_rows(a, b, common))
    both = [(cell, row) for cell, row in wanted if row in of_a.values and row in of_b.values]
    asked = [(cell, row) for cell, row in both if of_a.units[row] == of_b.units[row]]
    if not asked:
        raise PlanError(
            "the two runs have no figure in common", where="compare", got=_why_none(wanted, both, of_a, of_b),
            allowed="a metric, in the same unit, that both runs have of the same cell",
            next_step="name it under `metrics` in both sweeps, and look at the failed trials of both runs",
        )  # fmt: skip
    found = compare_rows_unpaired(*(_table([of.values[row] for _, row in asked]) for of in (of_b, of_a)))
    level, effect = _level(a.sweep, b.sweep), _smallest_effect(a.sweep, b.sweep)
    together = family(found, level=level, smallest_effect=effect, until=_until(a.sweep, b.sweep, level))
    columns = (
        found.ratio, found.n, together.p, together.p_adjusted, together.low, together.high, together.low_all,
        together.high_all, together.p_equivalent_adjusted, together.needed,
    )  # fmt: skip
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return tuple(
        CellRatio(
            cell, _comparison(cell, row, level, figures), of_a.units[row], float(np.mean(of_a.values[row])),
            float(np.mean(of_b.values[row])), len(of_a.values[row]), len(of_b.values[row]),
        )
        for (cell, row), figures in zip(asked, rows, strict=True)
    )  # fmt: skip


def _rows(a: ComparedRun, b: ComparedRun, common: Sequence[Cell]) -> Iterator[tuple[Cell, Row]]:
    """The rows that the answers of both runs are about; of a metric that has labels, those of A."""
    labels = answer_labels(counted(a.measurements))
    for cell in common:
        workload = cell.workload.label
        for metric in a.answer_metrics.get(workload, ()):
            if metric in b.answer_metrics.get(workload, ()):
                yield from ((cell, (cell.id, metric, each)) for each in labels.get((workload, metric), ("",)))


def _why_none(wanted: Sequence[object], both: Sequence[tuple[Cell, Row]], a: _Figures, b: _Figures) -> str:
    if not wanted:
        return "their answers are about different metrics"
    if not both:
        return "the cells that both have gave no figure in one of them"
    row = both[0][1]
    return f"{row[1]} of {row[0]} in {a.units[row]} and in {b.units[row]}"


def _table(samples: Sequence[Sequence[float]]) -> np.ndarray[tuple[int, int], np.dtype[np.float64]]:
    table = np.full((len(samples), max(map(len, samples))), math.nan)
    for place, sample in enumerate(samples):
        table[place, : len(sample)] = sample
    return table


def _until(a: Sweep, b: Sweep, level: float) -> Until | None:
    """Of two stopping rules the one that costs more to correct for; it is enough for the other, too."""
    rules = [sweep.design.until for sweep in (a, b) if sweep.design.until]
    return max(rules, key=lambda rule: sequential.nominal_level(rule, level), default=None)


def _comparison(cell: Cell, row: Row, level: float, figures: tuple[Any, ...]) -> Comparison:
    ratio, n, p, p_adjusted, low, high, low_all, high_all, p_same, needed = figures
    _, metric, label = row
    workload, name = cell.workload, cell.filesystem.name
    said = verdict(
        ratio, p_adjusted=p_adjusted, p_equivalent_adjusted=p_same, level=level,
        more_is_better=higher_is_better(metric),
    )  # fmt: skip
    return Comparison(
        baseline=f"{name} in A", candidate=f"{name} in B", workload=workload.name, tool=workload.tool,
        factors=workload.factors, metric=metric, label=label, ratio=ratio, low=low, high=high, n=n, level=level, p=p,
        p_adjusted=p_adjusted, verdict=said, method=WELCH_METHOD, low_all=low_all, high_all=high_all,
        needed=None if math.isnan(needed) else int(needed),
    )  # fmt: skip


# ── caveats ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _caveats(
    a: ComparedRun, b: ComparedRun, common: Sequence[Cell], differences: Sequence[Difference]
) -> Iterator[Caveat]:
    yield from _of_the_sides(differences)
    yield Caveat(
        code="runs-not-paired", severity="warning", scope="run",
        message="the two runs share no blocks. Whatever else changed between them (time of day, neighbours, "
        "temperature, a reboot) is in every ratio, and the intervals know only the spread inside each run. Run A and B "
        "again, in turns, before a small ratio is believed.",
    )  # fmt: skip
    for name, run in (("A", a), ("B", b)):
        yield from _of_a_run(name, run)
        yield from _of_its_cells(name, run, common)


def _of_the_sides(differences: Sequence[Difference]) -> Iterator[Caveat]:
    """How many things differ: with more than one, nobody can say which of them a ratio is about."""
    areas = list(dict.fromkeys(each.area for each in differences if each.known))
    if len(areas) > 1:
        yield Caveat(
            code="sides-differ", severity="warning", scope="run",
            message=f"A and B differ in {len(areas)} respects: {'; '.join(areas)}. A ratio is about all of them "
            "together. Change one at a time to learn which of them it is.",
        )  # fmt: skip
    elif not areas:
        yield Caveat(
            code="sides-alike", severity="note", scope="run",
            message="nothing that was kept differs between A and B. What the ratios show is how much a run differs "
            "from its own repetition on this box.",
        )  # fmt: skip


def _of_a_run(name: str, run: ComparedRun) -> Iterator[Caveat]:
    if run.sweep.imported:
        yield Caveat(
            code="imported", severity="warning", scope="run",
            message=f"{name} was imported: of its box and its options nothing is known, nor what of them differs.",
        )  # fmt: skip
    if run.info.get("status", "complete") != "complete":
        yield Caveat(
            code="unfinished", severity="warning", scope="run",
            message=f"{name} is {run.info['status']}: its figures are of the trials so far. Go on with make resume.",
        )  # fmt: skip


def _of_its_cells(name: str, run: ComparedRun, common: Sequence[Cell]) -> Iterator[Caveat]:
    """Warnings and errors of a run about what is compared here."""
    cells = {cell.id for cell in common}
    filesystems = {cell.filesystem.name for cell in common}
    for each in run.caveats:
        about = {"run": True, "cell": each.subject in cells, "filesystem": each.subject in filesystems}
        if each.severity != "note" and each.code != "imported" and about.get(each.scope, False):
            yield Caveat(
                code=each.code, severity=each.severity, scope=each.scope, subject=each.subject, metrics=each.metrics,
                message=f"in {name}: {each.message}",
            )  # fmt: skip
