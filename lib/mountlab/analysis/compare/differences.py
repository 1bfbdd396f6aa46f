"""What is known to differ between runs: the facts of their boxes, and what was asked of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from mountlab.analysis.box_facts import by_area, is_detail
from mountlab.analysis.run_view import ComparedRun
from mountlab.checks.stated_facts import NOT_GIVEN, VERSION, value_text
from mountlab.core.box_facts import AREAS, fact_of
from mountlab.core.box_facts.stated import NOT_STATED, WITHOUT_EFFECT, by_value
from mountlab.core.model import Cell, Filesystem, Sweep
from mountlab.sweep import plan_text
from mountlab.sweep.feasible import needed_programs

WORKLOAD = "workload "
"""What the area of the options of a workload begins with."""
_NOT_OF_THE_DESIGN = ("seed", "trial_timeout_s", "retries", "strict")


@dataclass(frozen=True)
class Difference:
    """One thing that is not the same in all runs."""

    area: str
    what: str
    values: tuple[Any, ...]
    """As it was kept in each run."""
    known: bool = True
    """Whether all runs tell. Where one does not, it is not known whether it differs."""
    part: str = ""
    """Which value it is, of a fact that has several."""


def differences(
    first: ComparedRun, others: Sequence[ComparedRun], common: Sequence[Sequence[Cell]]
) -> tuple[Difference, ...]:
    """Return what is not the same in all runs, worst known causes first: system, machine, limits, virtualisation,
    device, tools, then what was asked. `common`: the cells that each other run has in common with the first."""
    found: dict[tuple[str, str, str], dict[int, Difference]] = {}
    for place, (other, cells) in enumerate(zip(others, common, strict=True)):
        for each in _of_two(first, other, cells):
            found.setdefault((each.area, each.what, each.part), {})[place] = each
    return tuple(
        _of_all({**own, **dict(_unknown(found.get((area, what, ""), {})))} if part else own, len(others))
        for (area, what, part), own in found.items()
    )


def _unknown(whole: Mapping[int, Difference]) -> Iterator[tuple[int, Difference]]:
    """Return the runs that do not know a fact at all, and so none of its values."""
    return ((place, replace(each, values=(each.values[0], None))) for place, each in whole.items() if not each.known)


def known_areas(found: Iterable[Difference]) -> list[str]:
    """In what respects the runs are known to differ."""
    return list(dict.fromkeys(each.area for each in found if each.known))


def option_texts(found: Iterable[Difference], names: Sequence[str]) -> Iterator[str]:
    """Yield 'workload fio: runtime: 30 s in A, 60 s in B' for each option of a workload that is not the same."""
    for row in found:
        if row.area.startswith(WORKLOAD):
            yield f"{row.area}: {row.what}: {values_by_run(row, names)}"


def values_by_run(difference: Difference, names: Sequence[str]) -> str:
    """'30 s in A and C, 60 s in B'."""
    return by_value(zip(names, map(str, difference.values), strict=True))


def _of_all(own: Mapping[int, Difference], others: int) -> Difference:
    one = next(iter(own.values()))
    a = one.values[0]
    values = (a, *(own[place].values[1] if place in own else a for place in range(others)))
    return replace(one, values=values, known=any(each.known for each in own.values()))


def _of_two(a: ComparedRun, b: ComparedRun, common: Sequence[Cell]) -> Iterator[Difference]:
    facts = [_facts(each) for each in (a, b)]
    of_boxes = [each for area in (*AREAS, "tools") for each in _of_facts(area, *(own[area] for own in facts))]
    yield from sorted(of_boxes, key=lambda each: is_detail(each.what, each.part))
    for name in dict.fromkeys(cell.filesystem.name for cell in common):
        both = [next(fs for fs in each.sweep.filesystems if fs.name == name) for each in (a, b)]
        yield from _of_mappings(f"file system {name}", *(_asked(fs) for fs in both))
        yield from _of_mappings(f"options of {name} in effect", *(_in_effect(each, name) for each in (a, b)))
    for label in dict.fromkeys(cell.workload.label for cell in common):
        names = [cell.filesystem.name for cell in common if cell.workload.label == label]
        yield from _of_mappings(f"{WORKLOAD}{label}", *_of_workloads(a, b, label, names))
    yield from _of_mappings("design", *(_design(each.sweep) for each in (a, b)))


def _of_facts(area: str, a: Mapping[str, Any], b: Mapping[str, Any]) -> Iterator[Difference]:
    """Yield what is not the same; of a fact with several values each of them. A run that does not know a fact differs
    in nothing."""
    for each in _of_mappings(area, a, b, none_is_unknown=True):
        whole = [value for value in each.values if isinstance(value, Mapping)]
        if len(whole) < 2:
            yield each
            continue
        lacking = dict.fromkeys({**whole[0], **whole[1]}, fact_of(each.what).lacking or None)
        parts = _of_mappings(area, *({**lacking, **own} for own in whole), none_is_unknown=True)
        yield from (replace(part, what=each.what, part=part.what) for part in parts)


def _of_mappings(
    area: str, a: Mapping[str, Any], b: Mapping[str, Any], *, none_is_unknown: bool = False
) -> Iterator[Difference]:
    """Yield what is not the same; what neither knows is no difference."""
    for key in {**a, **b}:
        values = (a.get(key), b.get(key))
        if values[0] != values[1]:
            yield Difference(area, key, values, known=not none_is_unknown or None not in values)


def _facts(run: ComparedRun) -> dict[str, dict[str, Any]]:
    """Return what is known of the box of a run, by area."""
    found = by_area(run.info.facts)
    found["machine"] |= {"box": run.info.box_name or None}
    return {**found, "tools": _versions(run)}


def _versions(run: ComparedRun) -> dict[str, Any]:
    """Mountlab, and the programs of the box that the sweep needs."""
    programs = run.info.facts.programs
    needed = [] if run.sweep.imported else [program.name for program in needed_programs(run.sweep)]
    found = {name: programs.version(name) for name in needed}
    return {"mountlab": run.info.mountlab_version or None, **found}


def _asked(fs: Filesystem) -> dict[str, Any]:
    return {field.name: getattr(fs, field.name) for field in fields(fs) if field.name != "name"}


def _of_workloads(a: ComparedRun, b: ComparedRun, label: str, filesystems: Sequence[str]) -> list[dict[str, Any]]:
    """Return the options of a workload in both runs, as people read them, and the word for one that a run lacks; of
    imported logs, what they state themselves counts before the words of the import."""
    sides = [_of_workload(run, label, filesystems) for run in (a, b)]
    imported = [run.sweep.imported for run in (a, b)]
    names = dict.fromkeys(name for side in sides for name in side)
    if any(imported):
        names = {name: None for name in names if name not in WITHOUT_EFFECT}
        if not all(imported):  # the programs of the box have the version
            names.pop(VERSION, None)
    lacking = [NOT_STATED if each else NOT_GIVEN for each in imported]
    return [{name: side.get(name, word) for name in names} for side, word in zip(sides, lacking, strict=True)]


def _of_workload(run: ComparedRun, label: str, filesystems: Sequence[str]) -> dict[str, Any]:
    workload = next(each for each in run.sweep.workloads if each.label == label)
    options = {name: value_text(workload.tool, name, value) for name, value in workload.options.items()}
    found = {**options, **({"precondition": workload.precondition} if workload.precondition else {})}
    stated = (run.info.facts.surveyed.stated or {}).get(label)
    if stated:
        named = [name for name, one in stated.options.items() if any(fs in one.values for fs in filesystems)]
        found |= {name: stated.shown(name, filesystems) for name in named}
    return found


def _in_effect(run: ComparedRun, filesystem: str) -> dict[str, Any]:
    own = [each for each in run.options if each.filesystem == filesystem]
    return {each.option or each.kernel_says: each.state for each in own}


def _design(sweep: Sweep) -> dict[str, Any]:
    design = sweep.design
    keys = {field.name: getattr(design, field.name) for field in fields(design) if field.name not in _NOT_OF_THE_DESIGN}
    if design.until is None:
        return {**keys, "until": "no rule"}
    return {**keys, "repeats": "by the rule", "until": plan_text.rule_text(design.until)}
