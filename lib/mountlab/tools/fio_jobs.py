"""fio's job files: several jobs from one text of a sweep, checked, and rewritten for our own directory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from mountlab.core.errors import ParameterError
from mountlab.core.model import Scalar
from mountlab.core.options import Option, read_value
from mountlab.tools import fio_seeds
from mountlab.tools.fio_options import OPTIONS, RESERVED, arguments, fio_bytes, fio_seconds

OWN_NAME = "mountlab"
BESIDE = ("jobs", "cache", "group_reporting", "log_avg_msec")
"""What is asked of all jobs together, beside the text."""
_SECTION = re.compile(r"\[([A-Za-z0-9_][A-Za-z0-9_.-]{0,39})\]\Z")
_BLANK = re.compile(r"\s*([;#].*)?\Z")
_NOT_IN_TEXT = {
    **RESERVED,
    **dict.fromkeys(BESIDE, "write it beside `jobs`, in the sweep"),
    "new_group": "Mountlab reports each job for itself",
    "wait_for": "write stonewall, so that all figures together are of a known time",
    "startdelay": "all figures together would be of no known time",
    "include": "write the whole text here",
}


@dataclass(frozen=True)
class Job:
    """One section of a job file, or the only job of a plain workload."""

    name: str
    options: Mapping[str, Scalar]
    """In base units, with every default."""
    phase: int = 0
    """Jobs of one phase run at the same time; those of the next begin when they are done (stonewall)."""

    @property
    def clones(self) -> int:
        return int(self.options["numjobs"])


def jobs_of(options: Mapping[str, Scalar], *, where: str = "jobs") -> tuple[Job, ...]:
    """Return the jobs of a workload. Raises ParameterError with the line of a text that is no job file of ours."""
    own = {name: value for name, value in options.items() if name not in BESIDE}
    if "jobs" not in options:
        return (Job(OWN_NAME, own),)
    _check_plain(own, where)
    jobs = list(_sections(str(options["jobs"]).removeprefix("\ufeff"), own, f"{where}.jobs"))
    if not jobs:
        raise ParameterError(
            "the job file names no job",
            where=f"{where}.jobs",
            got=repr(options["jobs"])[:60],
            allowed="sections such as [log], each with options such as rw=write",
        )
    return tuple(_in_phases(jobs))


def _check_plain(own: Mapping[str, Scalar], where: str) -> None:
    """In a job file fio fills in what stands after '$', and has a shell compute with it."""
    for name, value in own.items():
        if "$" in str(value):
            raise ParameterError(
                "not a value for a job file", where=f"{where}.{name}", got=repr(value)[:60], allowed="text without '$'"
            )


def _in_phases(jobs: list[Job]) -> Iterator[Job]:
    phase = 0
    for number, job in enumerate(jobs):
        phase += bool(number and job.options.get("stonewall"))
        yield replace(job, phase=phase)


def _sections(text: str, own: Mapping[str, Scalar], where: str) -> Iterator[Job]:
    """Yield each named section with the options that hold for it: those beside the text, global ones, its own."""
    common, current = dict(own), dict[str, Scalar]()
    name, seen = "", set[str]()
    for number, line in enumerate(text.splitlines(), start=1):
        place = f"{where}, line {number}"
        if _BLANK.match(line):
            continue
        if line.lstrip().startswith("["):
            if name not in ("", "global"):
                yield Job(name, current)
            name = _name(line.strip(), seen, place)
            current = common if name == "global" else dict(common)
            continue
        if not name:
            raise ParameterError("an option before the first section", where=place, got=line.strip()[:60])
        key, value = _option(line.strip(), place)
        _check_once(key, value, own, place)
        current[key] = value
    if name not in ("", "global"):
        yield Job(name, current)


def _name(line: str, seen: set[str], place: str) -> str:
    match = _SECTION.match(line)
    if not match or match[1] in seen:
        raise ParameterError(
            "not the name of a new job",
            where=place,
            got=repr(line)[:60],
            allowed="[NAME], each once, of letters, digits, '_', '.' and '-'",
        )
    if match[1] != "global":
        seen.add(match[1])
    return match[1]


def _option(line: str, place: str) -> tuple[str, Scalar]:
    key, equals, text = (part.strip() for part in line.partition("="))
    if not key:
        raise ParameterError(
            "a value without an option", where=place, got=line[:60], allowed="NAME=VALUE, or NAME alone"
        )
    if key.split(maxsplit=1)[0] == "include":
        key = "include"
    if key in _NOT_IN_TEXT:
        raise ParameterError(
            f"fio's option {key} is not for a job file to set", where=place, got=line[:60], allowed=_NOT_IN_TEXT[key]
        )
    if "$" in text or (equals and not text):
        raise ParameterError(
            "not a value for a job file", where=place, got=line[:60], allowed="NAME=VALUE, or NAME alone, without '$'"
        )
    return key, _value(key, text, OPTIONS.get(key, Option(kind="any")), place)


def _value(key: str, text: str, option: Option, place: str) -> Scalar:
    """In base units, from what fio reads in the text."""
    found: Scalar | None = text or 1
    if option.kind == "size":
        found = fio_bytes(text)
    elif option.kind == "duration":
        found = fio_seconds(text)
    elif option.kind in ("int", "flag"):
        found = fio_bytes(text or "1")
    if found is None or (option.kind == "flag" and found not in (0, 1)):
        raise ParameterError(
            f"fio's option {key} needs a plain value",
            where=place,
            got=repr(text)[:60],
            allowed={"size": "bytes, such as 4k or 4096", "duration": "a time, such as 10s", "flag": "0 or 1"}.get(
                option.kind, "a whole number"
            ),
        )
    return read_value(found, option, where=place).value if option.kind == "choice" else found


def _check_once(key: str, value: Scalar, own: Mapping[str, Scalar], place: str) -> None:
    """An option of the sweep that the text sets again would not be in effect."""
    if key in own and own[key] not in (OPTIONS[key].default if key in OPTIONS else None, value):
        raise ParameterError(
            "an option is given both in the job file and beside it",
            where=place,
            got=f"{key}={value}",
            allowed=f"in one place only; beside it stands {own[key]}",
        )


def job_file(jobs: tuple[Job, ...], common: Mapping[str, str], seed: int | None, *, grouped: bool) -> str:
    """Return the text that is run: each job with all its options; its clones are reported together if `grouped`."""
    lines = ["[global]", *(f"{name}={value}" for name, value in common.items())]
    return "\n".join([*lines, *_job_lines(jobs, {}, seed, grouped=grouped)]) + "\n"


def client_job_file(jobs: tuple[Job, ...], common: Mapping[str, str], seed: int | None, *, grouped: bool) -> str:
    """Return the same for one of several clients. Nothing is global: a report has one place for that."""
    return "\n".join(_job_lines(jobs, common, seed, grouped=grouped)) + "\n"


def _job_lines(jobs: tuple[Job, ...], common: Mapping[str, str], seed: int | None, *, grouped: bool) -> Iterator[str]:
    for number, job in enumerate(jobs):
        yield f"[{job.name}]"
        if grouped and number:
            yield "new_group=1"
        own = {**common, **dict(arguments(job.options)), **fio_seeds.arguments(job.options, seed)}
        yield from (f"{name}={value}" for name, value in own.items())
