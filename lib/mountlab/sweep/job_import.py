"""Rewrite a job file of fio for a sweep: each line that is changed or dropped is kept as a comment with its reason."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import PurePosixPath

from mountlab.core.errors import ParameterError, all_of
from mountlab.core.groups import by_key
from mountlab.core.model import Scalar
from mountlab.core.units import MIB
from mountlab.fio.grammar import JobLine, with_included
from mountlab.fio.jobs import USUAL_SIZE, Job, JobChange, extent, read_jobs, with_origins
from mountlab.fio.metadata import SINCE
from mountlab.fio.options import ALIASES, ENGINES, OPTIONS, WITHOUT_DATA, check_job, fio_bytes
from mountlab.fio.rules import COMMANDS, DROPPED, ENGINE_ALIASES
from mountlab.fio.values import IN_BYTES, filled_lines, unused_variables

_SIZES = ("size", "filesize", "io_size", "offset", "offset_increment")
"""Options whose values a smaller size makes smaller."""
_OF_OTHER_ENGINES = (
    "spdk_conf", "spdk_json_conf", "log_flags", "mem_size_mb", "shm_id", "env_context", "enable_wrr", "pool", "rbdname",
    "rbd_name", "clientname", "clustername", "busy_poll", "touch_objects", "cmd_type", "fdp", "fdp_pli", "plids",
    "fdp_pli_select", "dataplacement", "md_per_io_size", "pi_act", "pi_chk", "apptag", "uri", "volume", "brick",
    "daos_pool", "daos_cont", "daos_svcl", "daos_oclass", "daos_chunk_size",
)  # fmt: skip
"""Options of engines that use no file system."""
_SCHEDULER = (
    "the device of the box keeps its scheduler, which the report names: it orders and merges the I/Os of all file "
    "systems alike; to have another, set it on the box before a run"
)
_UNIT = re.compile(r"(\d+)\s*(sec|second|seconds|min|minute|minutes|hour|hours)\Z", re.IGNORECASE)
_FRACTION = re.compile(r"(\d+)\.(\d+)([kmgtp])b?\Z", re.IGNORECASE)


@dataclass(frozen=True)
class Imported:
    """A job file as a sweep takes it."""

    text: str
    changes: tuple[JobChange, ...]
    """Every line that is not as it was, by its number in the file that was read."""
    problems: tuple[ParameterError, ...]
    """What only the user can mend; then the text is no job file of a sweep yet."""
    jobs: tuple[Job, ...]

    @property
    def space_bytes(self) -> int:
        return extent(self.jobs)


def import_text(
    text: str,
    *,
    variables: Mapping[str, str],
    size: int | None,
    where: str,
    include: Callable[[str], str | None],
    engine: str | None = None,
) -> Imported:
    """Return a job file for a sweep. `size`: bytes that the largest size of the file becomes; others follow in
    proportion. `include`: the text of a file beside it, None where there is none. `engine`: what takes the place of
    engines that use no file system."""
    lines = [_printable(line) for line in with_included(text, PurePosixPath(where).name, lambda name, _: include(name))]
    whole = "\n".join(lines)
    read_lines = [(line, why) for _, line, why in filled_lines(whole, variables)]
    given = (line.value or "" for line, _ in read_lines if line.key in ("size", "filesize"))
    largest = max((fio_bytes(value) or 0 for value in given), default=0)
    mended, changes = [*lines], list[JobChange]()
    others = bool(engine) and any(_is_other_engine(line) for line, _ in read_lines)
    schedulers = {line.value for line, _ in read_lines if line.key == "ioscheduler"}
    for line, why in read_lines:
        change = _without_other_engine(line, engine) if others else None
        change = change or _mended(line, size / largest if size and largest else None)
        if line.key == "ioscheduler" and len(schedulers) == 1:
            change = JobChange(line.number, line.text, "", _SCHEDULER)
        if why == IN_BYTES:
            change = change or JobChange(line.number, line.text, f"{line.key}={line.value}", why)
        if change:
            changes.append(change)
            mended[line.number - 1] = change.now
    usual: dict[str, Scalar] = {name: option.default for name, option in OPTIONS.items() if option.default is not None}
    options = {**usual, "jobs": "\n".join(mended)}
    read = read_jobs(options, where=where, values=variables, usual_size=size or USUAL_SIZE)
    changes += read.changes
    of_jobs = (_placed(error, where) for error in (*read.problems, *_of_jobs(read.jobs, where)))
    problems = [*of_jobs, *unused_variables(variables, whole, "--var")]
    written = _commented(lines, changes, problems)
    return Imported(written, with_origins(changes, whole), tuple(problems), read.jobs)


def _is_other_engine(line: JobLine) -> bool:
    """Return whether a line chooses an engine whose I/Os those of another one can stand for."""
    engines = (*ENGINES, *ENGINE_ALIASES, *SINCE, *WITHOUT_DATA)
    return line.key == "ioengine" and "$" not in (line.value or "") and line.value not in engines


def _without_other_engine(line: JobLine, engine: str | None) -> JobChange | None:
    if _is_other_engine(line):
        why = f"asked for by --engine: {line.value} uses no file system of Linux, so these are other I/Os"
        return JobChange(line.number, line.text, f"ioengine={engine}", why)
    if line.key in _OF_OTHER_ENGINES:
        return JobChange(line.number, line.text, "", "an option of an engine that uses no file system")
    return None


def _printable(line: str) -> str:
    return "".join(sign if sign.isprintable() else " " for sign in line).strip()


def _mended(line: JobLine, scale: float | None) -> JobChange | None:
    """Return what makes a line one for a sweep, beside what every job file in a sweep has done to it."""
    name, text = ALIASES.get(line.key, line.key), line.value or ""
    if name in COMMANDS:
        why = "it runs a command on the box; Mountlab drops caches by itself, and `tool: command` runs commands"
        return JobChange(line.number, line.text, "", why)
    if name == "kb_base" and text == "1000":
        return JobChange(line.number, line.text, "", DROPPED[name])
    if name in ("ioscheduler", "fill_device", "include") or not text:
        return None
    if name == "mem" and ":" in text:
        return JobChange(line.number, line.text, f"mem={text.partition(':')[0]}", "buffers in no file of the box")
    if match := _UNIT.match(text):
        why = f"fio reads {text} as {match[1]} microseconds"
        return JobChange(line.number, line.text, f"{line.key}={match[1]}{match[2][0].lower()}", why)
    if match := _FRACTION.match(text):
        why = f"fio reads {text} as {match[1]} bytes"
        whole, unit = round(Fraction(f"{match[1]}.{match[2]}") * (fio_bytes(f"1{match[3]}") or 1)), match[3]
        line = replace(line, value=f"{match[1]}{unit}" if not int(match[2]) else str(whole))
        return _scaled(name, line, scale) or JobChange(line.number, line.text, f"{line.key}={line.value}", why)
    return _scaled(name, line, scale)


def _scaled(name: str, line: JobLine, scale: float | None) -> JobChange | None:
    size = fio_bytes(line.value or "")
    if name not in _SIZES or not size or scale is None:
        return None
    scaled = int(size * scale) // MIB
    now = f"{scaled}m" if scaled else str(min(size, MIB))
    return JobChange(line.number, line.text, f"{line.key}={now}", "in proportion to the size that was asked for")


def _of_jobs(jobs: tuple[Job, ...], where: str) -> Iterator[ParameterError]:
    for job in jobs:
        try:
            check_job(job.options, where=f"{where}: [{job.name}]")
        except ParameterError as error:
            yield from all_of(error)


def _placed(error: ParameterError, where: str) -> ParameterError:
    """Name the file, and no key of a sweep."""
    error.where = error.where.replace(f"{where}.jobs", where)
    return error


def _commented(lines: list[str], changes: list[JobChange], problems: list[ParameterError]) -> str:
    """Return the lines with each change, and above what is wrong the reason."""
    places = ((re.search(r", line (\d+)( \(.*\))?\Z", error.where), error) for error in problems)
    refused = {int(match[1]): error for match, error in places if match}
    by_line = by_key((change.line, change) for change in changes)
    written: list[str] = []
    for number, line in enumerate(lines, start=1):
        if number in refused:
            written.append(f"# refused: {refused[number].what}; allowed: {refused[number].allowed}")
        of_line = by_line.get(number, [])
        replaced = [change for change in of_line if change.was]
        added = [change for change in of_line if not change.was]
        if not replaced:
            written.append(line)
        elif replaced[-1].now:
            written.append(f"{replaced[-1].now}   # was {line}: {'; '.join(change.why for change in replaced)}")
        else:
            written.append(f"# dropped: {line}   ({replaced[-1].why})")
        written += [f"{change.now}   # added: {change.why}" for change in added]
    return "\n".join(written) + "\n"
