"""Parameter files: YAML text to Sweep, Box and PublishedFigure, strictly.

Unknown keys, wrong types and values without units are errors that name file, key, what was got and what is allowed.
A list in the options of a workload is a factor: the workload is run once for each of its values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import yaml
from pydantic import BaseModel, Field, StringConstraints

from mountlab.core.conditions import STATE
from mountlab.core.errors import ParameterError, did_you_mean
from mountlab.core.metrics import METRICS
from mountlab.core.model import Design, Sweep, Workload
from mountlab.core.options import unknown_key
from mountlab.core.safe_yaml import Raw, check_texts, parse_value
from mountlab.core.shown import Shown
from mountlab.fio.grammar import read_lines, with_included
from mountlab.programs import TOOLS
from mountlab.sweep.capacity_entry import check_searches
from mountlab.sweep.design_entry import DesignFile, read_design
from mountlab.sweep.exclusion_entry import check_compared, read_exclusions
from mountlab.sweep.expectation_entry import expectation_text, read_expectation
from mountlab.sweep.filesystem_entry import FilesystemFile, read_filesystem, without_retired
from mountlab.sweep.neighbour_entry import check_beside, read_neighbours
from mountlab.sweep.promise_entry import KEY, read_promises
from mountlab.sweep.state_entry import StateFile, absent_cells, check_restored, in_each_state, read_states, read_turns
from mountlab.sweep.validated import File, check_choices, check_names, validated
from mountlab.sweep.workload_entry import read_workloads, same_definitions

Reader = Callable[[str, str], str]
"""Returns the text of a file that a sweep names. Arguments: its name, and the key that names it."""
MOST_TRIALS = 15_000
"""The most trials of a sweep: eight hours at two seconds each; planned in seconds, in half a gigabyte."""


class SweepFile(File):
    """A sweep file, presets and overrides already applied."""

    sections: ClassVar[dict[str, type[BaseModel]]] = {
        "design": DesignFile,
        "filesystems": FilesystemFile,
        "states": StateFile,
    }

    name: str
    """Of the sweep: a part of the run's name. Without it the name of the file."""
    question: Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
    """What is asked, in a sentence: the title of the report."""
    filesystems: Annotated[dict[str, FilesystemFile], Field(min_length=1)]
    """What is measured: a name of yours for each, and its entry."""
    workloads: Annotated[dict[str, dict[str, Any]], Field(min_length=1)]
    """What is run on each: a name of yours, and its entry. A list of values in it is a factor."""
    states: dict[str, StateFile] | None = None
    """States in which file systems can be when they are measured: a name of yours for each, and its entry. A file
    system says by `state` in which it is."""
    neighbours: dict[str, dict[str, Any]] | None = None
    """What can run beside a workload: a name of yours for each, and a tool with its options, `where` and `limits`. A
    workload says by `beside` what does."""
    exclude: list[dict[str, Any]] | None = None
    """Cells taken out, by `filesystem`, `workload` and any option: `[{filesystem: tmpfs, direct: true}]`."""
    box: str = "local"
    """The name of a file of `params/boxes`. `BOX=` and `--box` say another one."""
    boxes: list[str] | None = None
    """In the place of `box`, two or more of them: the same sweep on each, one run a box, and one report across them. A
    single box named from outside takes the place of all."""
    design: DesignFile = DesignFile()
    """How often, in which order, and how it is judged."""
    metrics: list[str] | None = None
    """The metrics that the answer is about. Without it the main metrics of each tool."""
    baseline: str | None = None
    """The file system that the others are compared with. Without it nothing is compared."""
    expectation: str | dict[str, Any] = ""
    """What you expect to see, written down before: a text, or claims (faster, slower, same) on parts of the question or
    workloads, which are held against the result: `{says: in words, cold reads: faster, warm reads: {tmpfs: same}}`."""
    published: list[str] | None = None
    """Files of `params/published` whose figures are set beside yours."""


PRESET_KEYS: dict[str, str] = {
    "presets": "Named sets of changes to this file, merged key by key: `small: {design: {repeats: 3}}`.",
    "preset": "Which of them to apply: a name, or a list of names in order. `-p preset=small` says it from outside.",
}
"""Keys of a sweep file that are removed once they are applied, to what they are for."""
SWEEP_KEYS: tuple[str, ...] = (*SweepFile.model_fields, *PRESET_KEYS)
"""Every top-level key of a sweep file."""


@dataclass(frozen=True)
class Resolved(Shown):
    """A sweep and the plain mapping that makes it again."""

    sweep: Sweep
    """The sweep, checked and expanded."""
    parameters: Raw
    """The mapping: what run.json keeps."""


def on_box(resolved: Resolved, box: str) -> Resolved:
    """Return the sweep of one box from a sweep of several boxes, as its run there records it."""
    parameters = {key: value for key, value in resolved.parameters.items() if key != "boxes"}
    return Resolved(replace(resolved.sweep, box=box, boxes=()), {**parameters, "box": box})


def parse_override(text: str) -> tuple[str, Any]:
    """Return ('repeats', 3) from 'repeats=3'. Keys of the design need no 'design.' before them."""
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise ParameterError(
            "an override is KEY=VALUE", where=f"-p {text}", got=text, allowed="such as -p repeats=3 or -p preset=small"
        )
    try:
        return key, parse_value(value)
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError, ParameterError) as error:
        raise ParameterError("the value is not valid YAML", where=f"-p {text}", got=value) from error


def resolve(
    raw: Mapping[str, Any],
    *,
    where: str,
    overrides: Mapping[str, Any] | None = None,
    read: Reader | None = None,
    kept: bool = False,
) -> Resolved:
    """Apply presets and overrides to a sweep file's mapping and check the whole.

    `read` gives the text of a file that the sweep names (`job_file`) and takes its name and the key that has it. The
    text takes the place of the name: a run holds all that it takes to repeat it. `kept`: of a run that was measured,
    whose texts are shown as they are. Raises ParameterError for the first thing that is wrong, and what `read`
    raises.
    """
    if not kept:
        check_texts(raw, where)
        check_texts(overrides or {}, "override")
    merged = {key: value for key, value in raw.items() if value is not None}
    for key in merged:
        if key not in SWEEP_KEYS:
            raise unknown_key(key, list(SWEEP_KEYS), where=where, what="key")
    changes = dict(overrides or {})
    if changes.get("box") is not None:
        merged.pop("boxes", None)
    merged = _apply_presets({**merged, **({"preset": changes.pop("preset")} if "preset" in changes else {})}, where)
    if changes.get("boxes") is not None:
        merged.pop("box", None)
    for key, value in changes.items():
        _set(merged, key, value)
    if isinstance(merged.get("workloads"), dict):
        entries = merged["workloads"].items()
        merged["workloads"] = {name: _with_text(entry, read, f"{where}: workloads.{name}") for name, entry in entries}
    if "filesystems" in merged:
        merged["filesystems"] = without_retired(merged["filesystems"], where, kept=kept)
    return Resolved(_sweep(validated(SweepFile, merged, where, kept=kept), where), merged)


def _apply_presets(merged: Raw, where: str) -> Raw:
    presets, chosen = merged.pop("presets", {}), merged.pop("preset", [])
    if not isinstance(presets, dict):
        raise ParameterError("presets must be a mapping", where=f"{where}: presets", got=type(presets).__name__)
    names = [chosen] if isinstance(chosen, str) else chosen
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        allowed = ", ".join(map(str, presets)) or "none, since the file has no presets"
        problem = "preset must be a name or a list of names"
        raise ParameterError(problem, where=f"{where}: preset", got=repr(chosen), allowed=allowed)
    for name in names:
        if not presets:
            raise ParameterError(
                "the sweep file has no presets",
                where=f"{where}: preset",
                got=repr(name),
                allowed="no preset",
                next_step=f"leave it out, or write a preset {name!r} below `presets` in the file",
            )
        if name not in presets:
            raise unknown_key(name, presets, where=f"{where}: preset", what="preset")
        if not isinstance(presets[name], dict):
            got = type(presets[name]).__name__
            raise ParameterError("a preset must be a mapping", where=f"{where}: presets.{name}", got=got)
        merged = _merge(merged, presets[name])
    return merged


def _merge(base: Any, change: Any) -> Any:
    """Merge a change into a value: mappings key by key; None removes a key; anything else replaces it."""
    if not isinstance(base, dict) or not isinstance(change, dict):
        return change
    merged = {key: _merge(base[key], change[key]) if key in change else base[key] for key in base}
    merged |= {key: value for key, value in change.items() if key not in base}
    return {key: value for key, value in merged.items() if value is not None}


def _set(merged: Raw, dotted: str, value: Any) -> None:
    path = dotted.split(".")
    if path[0] in DesignFile.model_fields:
        path = ["design", *path]
    elif path[0] not in SWEEP_KEYS:
        error = unknown_key(path[0], [*DesignFile.model_fields, *SWEEP_KEYS], where=f"override {dotted}", what="key")
        options = dict.fromkeys(option for tool in TOOLS.own.values() for option in tool.options)
        if spelled := [option for option in options if option.replace("_", "") == path[0].replace("_", "")]:
            error.next_step = f"it is an option of a workload: -p workloads.NAME.{spelled[0]}=VALUE"
        raise error
    target = merged
    for part in path[:-1]:
        if not isinstance(target.get(part, {}), (dict, type(None))):
            problem = "an override goes through a value that has no keys"
            raise ParameterError(problem, where=f"-p {dotted}", got=f"{part} is {target[part]!r}", allowed="a mapping")
        target[part] = dict(target.get(part) or {})
        target = target[part]
    if value is None:
        target.pop(path[-1], None)
    else:
        target[path[-1]] = value


def _with_text(entry: Any, read: Reader | None, where: str) -> Any:
    """Return a workload's entry with the text of each file that it names in the place of the name."""
    tool = TOOLS.get(str(entry.get("tool"))) if isinstance(entry, dict) else None
    keys = {option.file_key: key for key, option in tool.options.items() if option.file_key in entry} if tool else {}
    expanded = entry
    if keys:
        expanded = {key: value for key, value in entry.items() if key not in keys}
        for file_key, key in keys.items():
            expanded[key] = _text_of(entry[file_key], read, entry, key, f"{where}.{file_key}")
    if read is None or tool is not TOOLS["fio"] or not isinstance(expanded.get("jobs"), str):
        return expanded
    # Only what is read here is in the record of a run, which must be readable without the files.
    name, text = str(entry.get("job_file", "jobs")), str(expanded["jobs"])
    if not any(line.key == "include" for line in read_lines(text)):
        return expanded
    lines = with_included(text, name, lambda path, place: read(path, f"{where}: {place}"))
    return {**expanded, "jobs": "\n".join(lines)}


def _text_of(path: object, read: Reader | None, entry: Raw, key: str, where: str) -> str:
    if not isinstance(path, str) or not path:
        raise ParameterError(
            "a file is named by its path", where=where, got=repr(path), allowed="one path, beside the sweep file"
        )
    if key in entry:
        raise ParameterError(f"both a file and `{key}` are given", where=where, got=path, allowed="one of them")
    if read is None:
        raise ParameterError(
            "there is no directory here from which to read a file",
            where=where,
            got=path,
            allowed=f"its text, as `{key}`",
            next_step="name the sweep by its file",
        )
    return read(path, where)


def _sweep(file: SweepFile, where: str) -> Sweep:
    boxes = _boxes(file, where)
    check_names((*file.filesystems, *file.workloads, file.name, file.box, *boxes), where)
    check_names((*(file.states or ()), *(file.neighbours or ())), where)
    check_names(file.published or (), f"{where}: published")
    filesystems = tuple(
        read_filesystem(name, entry, f"{where}: filesystems.{name}", also=[KEY, STATE])
        for name, entry in file.filesystems.items()
    )
    workloads = tuple(
        w for name, entry in file.workloads.items() for w in read_workloads(name, entry, f"{where}: workloads.{name}")
    )
    own_metrics = same_definitions(workloads, f"{where}: workloads")
    neighbours = read_neighbours(file.neighbours or {}, filesystems=file.filesystems, where=f"{where}: neighbours")
    check_beside(workloads, neighbours, f"{where}: workloads")
    states = read_states(file.states or {}, f"{where}: states")
    turns = read_turns(
        {name: entry.state for name, entry in file.filesystems.items()},
        states=states,
        filesystems=filesystems,
        where=f"{where}: filesystems",
    )
    workloads = in_each_state(workloads, turns, f"{where}: workloads")
    check_choices(file.metrics or [], {**METRICS, **own_metrics}, f"{where}: metrics", "metric")
    check_choices([file.baseline] if file.baseline else [], file.filesystems, f"{where}: baseline", "file system")
    design = _with_search_blocks(file.design, workloads, read_design(file.design, file.baseline, where), where)
    check_restored(turns, design, f"{where}: design.fresh_filesystem")
    blocks = design.repeats + design.warmup + design.explain + design.profile
    absent = absent_cells(filesystems, workloads, turns)
    _check_trials(len(filesystems) * len(workloads) - len(absent), blocks, where)
    sweep = Sweep(
        name=file.name,
        question=file.question.strip(),
        box=boxes[0] if boxes else file.box,
        boxes=boxes,
        filesystems=filesystems,
        workloads=workloads,
        states=states,
        neighbours=neighbours,
        excluded=read_exclusions(file.exclude, filesystems, workloads, f"{where}: exclude", absent=absent),
        design=design,
        metrics=tuple(file.metrics or ()),
        baseline=file.baseline,
        expectation=expectation_text(file.expectation),
        expected=read_expectation(
            file.expectation,
            compared=[fs for fs in filesystems if fs.name != file.baseline],
            workloads=workloads,
            metrics=file.metrics or (),
            design=design,
            where=f"{where}: expectation",
        ),
        promised=read_promises(
            {name: entry.promised for name, entry in file.filesystems.items()},
            filesystems=filesystems,
            workloads=workloads,
            where=f"{where}: filesystems",
        ),
        published=tuple(file.published or ()),
    )
    check_compared(sweep, f"{where}: exclude")
    return sweep


def _with_search_blocks(file: DesignFile, workloads: tuple[Workload, ...], design: Design, where: str) -> Design:
    """Return the design of a sweep. A sweep of searches has as many blocks as one search may have trials."""
    keys = {
        key: getattr(file, key) for key in ("repeats", "until", "explain", "profile") if key in file.model_fields_set
    }
    blocks = check_searches(workloads, {key: value for key, value in keys.items() if value}, where)
    return replace(design, repeats=blocks) if blocks else design


def _boxes(file: SweepFile, where: str) -> tuple[str, ...]:
    """Return the boxes over which the sweep is run; () for one. Raises ParameterError for what is no factor."""
    boxes = file.boxes
    if boxes is None:
        return ()
    if "box" in file.model_fields_set:
        raise ParameterError(
            "both box and boxes say where the sweep runs", where=where, got=f"box: {file.box} and boxes", allowed="one"
        )
    repeated = [name for place, name in enumerate(boxes) if name in boxes[:place]]
    if len(boxes) <= 1 or repeated:
        raise ParameterError(
            "one box is no factor" if not repeated else "a box is named twice",
            where=f"{where}: boxes",
            got=", ".join(repeated or boxes) or "an empty list",
            allowed="two boxes or more, each once",
            next_step="box: NAME runs it on one; more repeats on one box are design.repeats",
        )
    return tuple(boxes)


def _check_trials(cells: int, blocks: int, where: str) -> None:
    """Raise ParameterError for a sweep that would fill the memory of this machine before it is begun."""
    if cells * blocks > MOST_TRIALS:
        raise ParameterError(
            "too many trials for one sweep",
            where=where,
            allowed=f"{MOST_TRIALS:,}",
            got=f"{cells * blocks:,}: {cells:,} cells in {blocks:,} blocks",
            next_step="fewer levels, repeats (or until.max), or several sweeps",
        )


def unknown_names(names: list[str], extra: tuple[str, ...] = ()) -> None:
    """Raise ParameterError for a notebook parameter that no sweep file knows; papermill itself only warns."""
    allowed = [*SWEEP_KEYS, *extra]
    for name in names:
        if name not in allowed:
            raise ParameterError(
                "unknown parameter",
                where=f"notebook parameter {name}",
                got=repr(name),
                allowed=", ".join(sorted(allowed)),
                next_step=did_you_mean(name, allowed),
            )
