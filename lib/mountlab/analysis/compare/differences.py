"""What is known to differ between runs: the facts of their boxes, and what was asked of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from mountlab.analysis.box_facts import by_area, is_detail
from mountlab.analysis.run_view import ComparedRun
from mountlab.checks.stated_facts import NOT_GIVEN, VERSION, value_text
from mountlab.core.box_facts import AREAS, fact_of
from mountlab.core.box_facts.stated import NOT_STATED, WITHOUT_EFFECT, by_value
from mountlab.core.model import Cell, Design, Filesystem
from mountlab.sweep import plan_text
from mountlab.sweep.feasible import needed_programs

Values = Mapping[str, object]
"""Name of a fact, an option or a key to its value in one run; None where that is not known."""
WORKLOAD = "workload "
"""What the area of the options of a workload begins with."""
_NOT_OF_THE_DESIGN = ("seed", "trial_timeout_s", "retries", "strict", "explain", "profile")
"""Keys that are no cause of a difference; diagnostic trials run after all counted ones."""


@dataclass(frozen=True)
class Difference:
    """One thing that is not the same in all runs."""

    area: str
    what: str
    values: tuple[object, ...]
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
    by_fact: dict[tuple[str, str, str], dict[int, Difference]] = {}
    for place, (other, cells) in enumerate(zip(others, common, strict=True)):
        for row in _of_two(first, other, cells):
            by_fact.setdefault((row.area, row.what, row.part), {})[place] = row
    rows = []
    for (area, what, part), of_runs in by_fact.items():
        one = next(iter(of_runs.values()))
        values = {place: row.values[1] for place, row in of_runs.items()}
        if part:  # a run that does not know the fact at all knows none of its values
            values |= {place: None for place, row in by_fact.get((area, what, ""), {}).items() if not row.known}
        first_value = one.values[0]
        known = any(row.known for row in of_runs.values())
        in_order = (values.get(place, first_value) for place in range(len(others)))
        rows.append(replace(one, values=(first_value, *in_order), known=known))
    return tuple(rows)


def known_areas(rows: Iterable[Difference]) -> list[str]:
    """In what respects the runs are known to differ."""
    return list(dict.fromkeys(row.area for row in rows if row.known))


def option_texts(rows: Iterable[Difference], names: Sequence[str]) -> Iterator[str]:
    """Yield 'workload fio: runtime: 30 s in A, 60 s in B' for each option of a workload that is not the same."""
    for row in rows:
        if row.area.startswith(WORKLOAD):
            yield f"{row.area}: {row.what}: {values_by_run(row, names)}"


def values_by_run(difference: Difference, names: Sequence[str]) -> str:
    """'30 s in A and C, 60 s in B'."""
    return by_value(zip(names, map(str, difference.values), strict=True))


def _of_two(a: ComparedRun, b: ComparedRun, common: Sequence[Cell]) -> Iterator[Difference]:
    facts = [_facts(run) for run in (a, b)]
    of_boxes = [row for area in (*AREAS, "tools") for row in _of_facts(area, *(areas[area] for areas in facts))]
    yield from sorted(of_boxes, key=lambda row: is_detail(row.what, row.part))
    for name in dict.fromkeys(cell.filesystem.name for cell in common):
        both = [next(fs for fs in run.sweep.filesystems if fs.name == name) for run in (a, b)]
        yield from _of_mappings(f"file system {name}", *(_without(fs, "name") for fs in both))
        in_effect = [
            {option.option or option.kernel_says: option.state for option in run.options if option.filesystem == name}
            for run in (a, b)
        ]
        yield from _of_mappings(f"options of {name} in effect", *in_effect)
    for label in dict.fromkeys(cell.workload.label for cell in common):
        names = [cell.filesystem.name for cell in common if cell.workload.label == label]
        yield from _of_mappings(f"{WORKLOAD}{label}", *_of_workloads(a, b, label, names))
    yield from _of_mappings("design", *(_design(run.sweep.design) for run in (a, b)))


def _of_facts(area: str, a: Values, b: Values) -> Iterator[Difference]:
    """Yield what is not the same; of a fact with several values each of them. A run that does not know a fact differs
    in nothing."""
    for row in _of_mappings(area, a, b, none_is_unknown=True):
        wholes = [value for value in row.values if isinstance(value, Mapping)]
        if len(wholes) < 2:
            yield row
            continue
        lacking = dict.fromkeys({**wholes[0], **wholes[1]}, fact_of(row.what).lacking or None)
        parts = _of_mappings(area, *({**lacking, **whole} for whole in wholes), none_is_unknown=True)
        yield from (replace(part, what=row.what, part=part.what) for part in parts)


def _of_mappings(area: str, a: Values, b: Values, *, none_is_unknown: bool = False) -> Iterator[Difference]:
    """Yield what is not the same; what neither knows is no difference."""
    for key in {**a, **b}:
        values = (a.get(key), b.get(key))
        if values[0] != values[1]:
            yield Difference(area, key, values, known=not none_is_unknown or None not in values)


def _facts(run: ComparedRun) -> dict[str, Values]:
    """Return what is known of the box of a run, by area; `tools` has Mountlab, and the programs that the sweep
    needs."""
    areas = by_area(run.info.facts)
    names = [] if run.sweep.imported else [program.name for program in needed_programs(run.sweep)]
    versions = {name: run.info.facts.programs.version(name) for name in names}
    return {
        **areas,
        "machine": {**areas["machine"], "box": run.info.box_name or None},
        "tools": {"mountlab": run.info.mountlab_version or None, **versions},
    }


def _without(record: Filesystem | Design, *names: str) -> dict[str, object]:
    return {field.name: getattr(record, field.name) for field in fields(record) if field.name not in names}


def _of_workloads(a: ComparedRun, b: ComparedRun, label: str, filesystems: Sequence[str]) -> list[Values]:
    """Return the options of a workload in both runs, as people read them, and the word for one that a run lacks; of
    imported logs, what they state themselves counts before the words of the import."""
    sides = [_of_workload(run, label, filesystems) for run in (a, b)]
    imported = [run.sweep.imported for run in (a, b)]
    names = dict.fromkeys(name for side in sides for name in side)
    if any(imported):
        names = {name: None for name in names if name not in WITHOUT_EFFECT}
        if not all(imported):  # the programs of the box have the version
            names.pop(VERSION, None)
    lacking = [NOT_STATED if is_import else NOT_GIVEN for is_import in imported]
    return [{name: side.get(name, word) for name in names} for side, word in zip(sides, lacking, strict=True)]


def _of_workload(run: ComparedRun, label: str, filesystems: Sequence[str]) -> dict[str, object]:
    workload = next(workload for workload in run.sweep.workloads if workload.label == label)
    options = {name: value_text(workload.tool, name, value) for name, value in workload.options.items()}
    entries: dict[str, object] = {**options}
    if workload.precondition:
        entries["precondition"] = workload.precondition
    stated = (run.info.facts.surveyed.stated or {}).get(label)
    if stated:
        names = [name for name, one in stated.options.items() if any(fs in one.values for fs in filesystems)]
        entries |= {name: stated.shown(name, filesystems) for name in names}
    return entries


def _design(design: Design) -> Values:
    keys = _without(design, *_NOT_OF_THE_DESIGN)
    if design.until is None:
        return {**keys, "until": "no rule"}
    return {**keys, "repeats": "by the rule", "until": plan_text.rule_text(design.until)}
