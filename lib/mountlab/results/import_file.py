"""What a user states about logs made elsewhere: the file system, workload and repeat of each file.

Either by the layout of the files, with names in braces:

    tool: fio
    files: logs/{filesystem}/{rw}-{bs}-{repeat}.json

or by a list:

    filesystems:
      ext4: {files: logs/disk-*.txt}
      tmpfs: {files: [logs/shm-1.txt, logs/shm-2.txt]}

A name in braces that is not filesystem, workload or repeat is a factor, and its levels are what the files are called.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from mountlab.core.errors import ParameterError
from mountlab.core.metrics import METRICS
from mountlab.core.model import Design, Filesystem, Scalar, Sweep, Workload
from mountlab.core.options import read_value, unknown_key
from mountlab.core.units import LEVELS
from mountlab.filesystems import FAMILIES
from mountlab.logs import FORMATS
from mountlab.programs import TOOLS
from mountlab.results.import_levels import MAIN, readings
from mountlab.results.import_names import choose_way, ways
from mountlab.sweep.validated import AS_SHARE, check_choices, check_names, validated
from mountlab.sweep.workload_entry import check_factor

UNKNOWN_TYPE = "not known"
_PLACEHOLDER = re.compile(r"\{([a-z][a-z0-9_]*)\}")
_SPECIAL = re.compile(r"[*?{]")
_FIXED = ("filesystem", "workload", "repeat")


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, use_attribute_docstrings=True)


class ImportedFilesystem(_File):
    """One entry of `filesystems`."""

    type: str | None = None
    """Which file system it was, where you know it."""
    options: list[str] | None = None
    """The mount options that you know of. They cannot be checked."""
    files: str | list[str] | dict[str, str | list[str]] | None = None
    """Its logs: a name with `*` or names in braces, several, or one or several for each workload."""


class ImportFile(_File):
    """The file that `mountlab import` takes."""

    sections: ClassVar[dict[str, type[BaseModel]]] = {"filesystems": ImportedFilesystem}
    question: Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
    """What the logs are asked: the title of the report."""
    name: str
    """Of the run. Without it the name of the file."""
    tool: str | None = None
    """Whose logs they are, where all are of one tool."""
    files: str | list[str] | None = None
    """Names of logs, relative to this file, such as `logs/{filesystem}/{bs}-{repeat}.txt`."""
    filesystems: dict[str, ImportedFilesystem] = {}
    """A name for each file system, and what is known of it."""
    workloads: dict[str, dict[str, Any]] = {}
    """A name for each workload: `tool`, and what is known of its options."""
    baseline: str | None = None
    """The file system that the others are compared with."""
    metrics: list[str] | None = None
    """The metrics that the answer is about. Without it the bandwidths and rates."""
    expectation: str = ""
    """What you expect to see, written down before."""
    published: list[str] | None = None
    """Files of `params/published` whose figures are set beside yours."""
    box: str = "unknown"
    """The name of the machine that made the logs."""
    level: Annotated[float, AS_SHARE, Field(ge=LEVELS[0], le=LEVELS[1])] = 0.95
    """Of the intervals, as a share."""
    smallest_effect: Annotated[float, AS_SHARE, Field(ge=0, lt=1)] = 0.02
    """The smallest difference that matters to you, as a share."""


@dataclass(frozen=True)
class Source:
    """A pattern of file names, and what it states about the files that match."""

    pattern: str
    says: Mapping[str, str] = field(default_factory=dict)

    @property
    def glob(self) -> str:
        """For a shell-like search: every name in braces is any text without '/'."""
        return _PLACEHOLDER.sub("*", self.pattern)

    @property
    def root(self) -> str:
        """The directories before the first of them that is not fixed."""
        parts = self.pattern.split("/")
        fixed = next((number for number, part in enumerate(parts) if _SPECIAL.search(part)), len(parts) - 1)
        return "/".join(parts[:fixed]) or ("/" if self.pattern.startswith("/") else ".")


@dataclass(frozen=True)
class LogFile:
    """A file, and what its place states about it."""

    name: str
    filesystem: str
    workload: Workload
    repeat: str


@dataclass(frozen=True)
class Layout:
    """An import, as far as names of files tell it: what was measured, and which log is whose."""

    file: ImportFile
    filesystems: tuple[Filesystem, ...]
    workloads: tuple[Workload, ...]
    logs: tuple[LogFile, ...]

    def sweep(self, *, repeats: int, metrics: Sequence[str]) -> Sweep:
        """As a sweep whose trials somebody else has run; `metrics` where the user names none."""
        file = self.file
        foreign = Design(warmup=0, fresh_filesystem="never", drop_caches=False, on_ineffective="caveat")
        return Sweep(
            name=file.name,
            question=file.question,
            box=file.box,
            filesystems=self.filesystems,
            workloads=self.workloads,
            design=replace(foreign, repeats=repeats, level=file.level, smallest_effect=file.smallest_effect),
            metrics=tuple(file.metrics or metrics),
            baseline=file.baseline,
            expectation=file.expectation.strip(),
            published=tuple(file.published or ()),
            imported=True,
        )


def read_import(raw: Mapping[str, Any], *, where: str) -> ImportFile:
    """Return an import file's mapping, checked. Raises ParameterError for the first thing that is wrong."""
    file = validated(ImportFile, raw, where)
    check_names((*file.filesystems, *file.workloads, file.name, file.box), where)
    check_names(file.published or (), f"{where}: published")
    for name, entry in file.filesystems.items():
        if entry.type is not None and entry.type not in FAMILIES:
            raise unknown_key(entry.type, FAMILIES, where=f"{where}: filesystems.{name}.type", what="file system type")
    check_choices(file.metrics or [], METRICS, f"{where}: metrics", "metric")
    if file.tool:
        _check_tool(file.tool, f"{where}: tool")
    if not list(sources(file)):
        raise ParameterError(
            "no files are named",
            where=f"{where}: files",
            got="nothing",
            allowed="files: logs/{filesystem}-{repeat}.txt, or files for each of filesystems",
        )
    return file


def sources(file: ImportFile) -> Iterator[Source]:
    """Yield every pattern of an import, with what it is known to be of."""
    yield from (Source(pattern) for pattern in _listed(file.files))
    for name, entry in file.filesystems.items():
        if isinstance(entry.files, dict):
            for workload, patterns in entry.files.items():
                says = {"filesystem": name, "workload": workload}
                yield from (Source(pattern, says) for pattern in _listed(patterns))
        else:
            yield from (Source(pattern, {"filesystem": name}) for pattern in _listed(entry.files))


def layout(file: ImportFile, names: Iterable[str], *, where: str) -> Layout:
    """Return which of the files is what. Raises ParameterError where a pattern fits no file, or a file two patterns,
    and where something is named that no file is of."""
    logs = _in_one_order(_logs(file, list(names), where))
    names_of_logs = list(dict.fromkeys(log.filesystem for log in logs))
    filesystems = list(dict.fromkeys([*(name for name in file.filesystems if name in names_of_logs), *names_of_logs]))
    workloads = list({log.workload.label: log.workload for log in logs}.values())
    if gone := [name for name in file.filesystems if name not in names_of_logs]:
        raise ParameterError("a file system without a log", where=f"{where}: filesystems.{gone[0]}", got="no file")
    if gone := [name for name in file.workloads if name not in {workload.name for workload in workloads}]:
        raise ParameterError("a workload without a log", where=f"{where}: workloads.{gone[0]}", got="no file")
    baseline = [file.baseline] if file.baseline else []
    check_choices(baseline, dict.fromkeys(filesystems), f"{where}: baseline", "file system")
    return Layout(file, tuple(_filesystem(file, name) for name in filesystems), tuple(workloads), tuple(logs))


def _in_one_order(logs: Iterable[LogFile]) -> list[LogFile]:
    """Logs whose workloads have the same factors name them in the order of the first: two patterns may have two."""
    orders: dict[tuple[str, frozenset[str]], tuple[str, ...]] = {}
    ordered = []
    for log in logs:
        factors = log.workload.factors
        order = orders.setdefault((log.workload.name, frozenset(factors)), tuple(factors))
        ordered.append(replace(log, workload=replace(log.workload, factors={key: factors[key] for key in order})))
    return ordered


def blocks(logs: Sequence[LogFile], outputs: Mapping[str, int]) -> dict[str, int]:
    """Return the block of the first output of each file; `outputs` says how many a file holds.

    Files with a {repeat} are in the block of that repeat, so that one that is missing shifts no other. Else the files
    of a cell are counted in the order of their names.
    """
    most = max(outputs.values(), default=1)
    if all(log.repeat for log in logs):
        repeats = sorted({log.repeat for log in logs}, key=natural)
        return {log.name: repeats.index(log.repeat) * most + 1 for log in logs}
    counts: dict[tuple[str, str], int] = {}
    places = {}
    for log in sorted(logs, key=lambda log: natural(log.name)):
        cell = (log.filesystem, log.workload.label)
        places[log.name] = counts.get(cell, 0) + 1
        counts[cell] = counts.get(cell, 0) + outputs[log.name]
    return places


def natural(text: str) -> list[tuple[int, int | str]]:
    """Return a key to sort by, in which 'run-10' comes after 'run-9'."""
    return [(0, int(part)) if part.isdecimal() else (1, part) for part in re.split(r"(\d{1,18})", text) if part]


# --- one file ---------------------------------------------------------------------------------------------------------


def _logs(file: ImportFile, names: Sequence[str], where: str) -> Iterator[LogFile]:
    claimed: dict[str, str] = {}
    for source in sources(file):
        fits = {name: fit for name in sorted(names, key=natural) if (fit := ways(source.pattern, name))}
        if not fits:
            raise ParameterError(
                "no file fits a pattern",
                where=f"{where}: files",
                got=source.pattern,
                allowed=", ".join(sorted(names)[:5]) or "names of files, relative to this one",
            )
        for name, fit in fits.items():
            place = f"{where}: {name}"
            if name in claimed:
                got = f"{claimed[name]} and {source.pattern}"
                raise ParameterError("a file fits two patterns", where=place, got=got, allowed="one")
            claimed[name] = source.pattern
            says = choose_way(fit, partial(_count_known, file, source.says), pattern=source.pattern, where=place)
            yield _log(file, name, {**source.says, **says}, where)


def _count_known(file: ImportFile, fixed: Mapping[str, str], says: Mapping[str, str]) -> int:
    """Return how many of the names in braces are known: those of the import, and values of the tool's options."""
    names = {"filesystem": {*file.filesystems, file.baseline or ""}, "workload": {*file.workloads}}
    workload = {**fixed, **says}.get("workload", next(iter(file.workloads), ""))
    tool = file.workloads.get(workload, {}).get("tool", file.tool)
    options = TOOLS[tool].options if isinstance(tool, str) and tool in TOOLS else {}
    main = MAIN.get(tool or "", "")
    return sum(
        text in names.get(key, ())
        or bool(key in options and readings(key, text, options[key]))
        or bool(key == "workload" and main and readings(main, text, options[main]))
        for key, text in says.items()
    )


def _log(file: ImportFile, name: str, says: Mapping[str, str], where: str) -> LogFile:
    if "filesystem" not in says:
        raise ParameterError(
            "which file system a log is of is not said",
            where=f"{where}: {name}",
            got="no {filesystem}",
            allowed="{filesystem} in the pattern, or files below an entry of filesystems",
        )
    check_names([says["filesystem"]], f"{where}: {name}")
    return LogFile(name, says["filesystem"], _workload(file, says, f"{where}: {name}"), says.get("repeat", ""))


def _workload(file: ImportFile, says: Mapping[str, str], where: str) -> Workload:
    only = next(iter(file.workloads)) if len(file.workloads) == 1 else file.tool
    name = says.get("workload") or only
    if name is None or (file.workloads and name not in file.workloads):
        allowed = ", ".join(file.workloads) or "tool: at the top, or an entry of workloads for each"
        what = "which workload a log is of is not said"
        raise ParameterError(what, where=where, got=name or "nothing", allowed=allowed)
    check_names([name], where)
    entries = dict(file.workloads.get(name, {}))
    tool = entries.pop("tool", file.tool)
    _check_tool(tool, f"{where}: tool")
    factors = {key: value for key, value in says.items() if key not in _FIXED}
    for key in factors:
        check_factor(key, where)
    return Workload(name=name, tool=tool, options=_options(tool, entries, factors, where), factors=factors)


def _options(tool: str, entries: Mapping[str, Any], factors: Mapping[str, str], where: str) -> dict[str, Scalar]:
    """Return what is known of the options. The levels of a factor are options where they are one of its choices."""
    allowed = TOOLS[tool].options
    options: dict[str, Scalar] = {}
    for key, raw in entries.items():
        if key not in allowed:
            raise unknown_key(key, allowed, where=f"{where}: {key}", what=f"option for {tool}")
        options[key] = read_value(raw, allowed[key], where=f"{where}: {key}").value
    chosen = {key: value for key, value in factors.items() if key in allowed and value in allowed[key].choices}
    return {**options, **chosen}


def _filesystem(file: ImportFile, name: str) -> Filesystem:
    entry = file.filesystems.get(name, ImportedFilesystem())
    return Filesystem(name=name, type=entry.type or UNKNOWN_TYPE, options=tuple(entry.options or ()))


def _check_tool(name: object, where: str) -> None:
    if not isinstance(name, str) or name not in FORMATS:
        raise unknown_key(name, FORMATS, where=where, what="tool with logs to read")


def _listed(patterns: str | list[str] | None) -> list[str]:
    return [patterns] if isinstance(patterns, str) else list(patterns or [])
