"""Two runs beside each other: a kernel before and after, two boxes, bare metal and a guest.

First what is known to differ between them, then the ratio of B to A for every cell that both have. The runs share no
blocks, so nothing that changed between them cancels: intervals are Welch's, from the spread inside each run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from mountlab.analysis.compare.ratios import CellRatio, common_cells, level_of, ratios_to_first, smallest_effect_of
from mountlab.analysis.run_view import ComparedRun
from mountlab.analysis.same_cells import aligned
from mountlab.core.errors import PlanError
from mountlab.core.findings import Caveat
from mountlab.core.model import Cell, Filesystem, Sweep
from mountlab.sweep import plan_text
from mountlab.sweep.feasible import needed_programs

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
_NOT_OF_THE_DESIGN = ("seed", "trial_timeout_s", "retries", "strict")


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
    differences = tuple(differences_of(a, b, common))
    (ratios,) = ratios_to_first(a, [b])
    return RunComparison(
        a=a,
        b=b,
        differences=differences,
        ratios=ratios,
        only_a=_only(a.sweep, b.sweep),
        only_b=_only(b.sweep, a.sweep),
        caveats=tuple(_caveats(a, b, common, differences)),
        level=level_of((a, b)),
        smallest_effect=smallest_effect_of((a, b)),
    )


def _only(one: Sweep, other: Sweep) -> tuple[str, ...]:
    theirs = {cell.id for cell in other.cells}
    return tuple(cell.id for cell in one.cells if cell.id not in theirs)


# ── what differs ─────────────────────────────────────────────────────────────────────────────────────────────────────


def differences_of(a: ComparedRun, b: ComparedRun, common: Sequence[Cell]) -> Iterator[Difference]:
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
    return {**told, "repeats": "by the rule", "until": plan_text.rule_text(design.until)}


# ── caveats ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _caveats(
    a: ComparedRun, b: ComparedRun, common: Sequence[Cell], differences: Sequence[Difference]
) -> Iterator[Caveat]:
    yield from _of_the_sides(differences)
    yield Caveat(
        code="runs-not-paired",
        severity="warning",
        scope="run",
        message="the two runs share no blocks. Whatever else changed between them (time of day, neighbours, "
        "temperature, a reboot) is in every ratio, and the intervals know only the spread inside each run. Run A and B "
        "again, in turns, before a small ratio is believed.",
    )
    for name, run in (("A", a), ("B", b)):
        yield from caveats_of(name, run, common)


def _of_the_sides(differences: Sequence[Difference]) -> Iterator[Caveat]:
    """How many things differ: with more than one, nobody can say which of them a ratio is about."""
    areas = list(dict.fromkeys(each.area for each in differences if each.known))
    if len(areas) > 1:
        yield Caveat(
            code="sides-differ",
            severity="warning",
            scope="run",
            message=f"A and B differ in {len(areas)} respects: {'; '.join(areas)}. A ratio is about all of them "
            "together. Change one at a time to learn which of them it is.",
        )
    elif not areas:
        yield Caveat(
            code="sides-alike",
            severity="note",
            scope="run",
            message="nothing that was kept differs between A and B. What the ratios show is how much a run differs "
            "from its own repetition on this box.",
        )


def caveats_of(name: str, run: ComparedRun, common: Sequence[Cell]) -> Iterator[Caveat]:
    """What weakens a run that is compared: that it is imported or unfinished, its own warnings about these cells."""
    yield from _of_a_run(name, run)
    yield from _of_its_cells(name, run, common)


def _of_a_run(name: str, run: ComparedRun) -> Iterator[Caveat]:
    if run.sweep.imported:
        yield Caveat(
            code="imported",
            severity="warning",
            scope="run",
            message=f"{name} was imported: of its box and its options nothing is known, nor what of them differs.",
        )
    if run.info.get("status", "complete") != "complete":
        yield Caveat(
            code="unfinished",
            severity="warning",
            scope="run",
            message=f"{name} is {run.info['status']}: its figures are of the trials so far. Go on with make resume.",
        )


def _of_its_cells(name: str, run: ComparedRun, common: Sequence[Cell]) -> Iterator[Caveat]:
    """Warnings and errors of a run about what is compared here."""
    cells = {cell.id for cell in common}
    filesystems = {cell.filesystem.name for cell in common}
    for each in run.caveats:
        about = {"run": True, "cell": each.subject in cells, "filesystem": each.subject in filesystems}
        if each.severity != "note" and each.code != "imported" and about.get(each.scope, False):
            yield Caveat(
                code=each.code,
                severity=each.severity,
                scope=each.scope,
                subject=each.subject,
                metrics=each.metrics,
                message=f"in {name}: {each.message}",
            )
