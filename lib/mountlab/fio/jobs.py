"""fio's job files: several jobs from one text of a sweep, checked, and rewritten for our own directory."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from mountlab.core.errors import ParameterError, raise_all
from mountlab.core.model import Scalar
from mountlab.core.numbers import counted
from mountlab.core.units import GIB
from mountlab.fio import metadata, seeds
from mountlab.fio.grammar import JobLine, is_global, origins, safe_name
from mountlab.fio.options import OPTIONS, READS, WRITES, arguments, file_count, fio_seconds, is_on
from mountlab.fio.rules import BESIDE, Ruling, rule
from mountlab.fio.shares import SHARE, SHARED, parts_of
from mountlab.fio.values import filled_lines, unused_variables

OWN_NAME = "mountlab"
USUAL_SIZE = GIB
"""Bytes of a job that has no size: one for a whole device, or for files that are there already."""
_DATA = (
    "refill_buffers", "zero_buffers", "scramble_buffers", "buffer_pattern", "buffer_compress_percentage",
    "dedupe_percentage",
)  # fmt: skip
"""Options that say what data are written."""
_MOST_SHOWN = 4
"""Changes with the same reason that are shown one by one."""


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

    @property
    def start_s(self) -> float:
        """When its figures begin, in seconds after those of its phase: fio delays a job, and counts no ramp."""
        return (fio_seconds(str(self.options.get("startdelay", 0))) or 0.0) + float(self.options.get("ramp_time", 0))


@dataclass(frozen=True)
class JobChange:
    """What fio gets in the place of a line of a job file."""

    line: int
    was: str
    """'' for an option that is added to a section, whose first line it has."""
    now: str
    """'' for a line that is dropped."""
    why: str
    proposes: bool = False
    """Whether it rests on a size that Mountlab chose."""
    origin: str = ""
    """'more.fio, line 2' in a text with included files."""

    @property
    def place(self) -> str:
        return f"{self.line} ({self.origin})" if self.origin else str(self.line)

    @property
    def words(self) -> str:
        """'bs=4k-8k becomes bs=4096,8192'."""
        becomes = f"{self.was} becomes {self.now}" if self.was and self.now else ""
        return becomes or (f"{self.now} is added" if self.now else f"{self.was} is dropped")


@dataclass(frozen=True)
class JobText:
    """A job file as Mountlab reads it."""

    jobs: tuple[Job, ...]
    changes: tuple[JobChange, ...]
    problems: tuple[ParameterError, ...]
    """In the order of the file."""


def jobs_of(options: Mapping[str, Scalar], *, where: str = "jobs") -> tuple[Job, ...]:
    """Return the jobs of a workload. Raises ParameterError for a text that is no job file of ours: one for each of its
    lines that is wrong."""
    read = read_jobs(options, where=where)
    raise_all(read.problems)
    return read.jobs


def read_jobs(
    options: Mapping[str, Scalar],
    *,
    where: str = "jobs",
    values: Mapping[str, str] | None = None,
    usual_size: int = USUAL_SIZE,
) -> JobText:
    """Return the jobs of a workload, what is changed of its text, and what is wrong with it. `values`: of the variables
    in the text, beside those that the workload has. `usual_size`: bytes of a job for which no size is given."""
    beside = {name: value for name, value in options.items() if name not in BESIDE}
    if "jobs" not in options:
        problems = unused_variables(json.loads(str(options.get("variables", "{}"))), "", f"{where}.variables")
        return JobText((Job(OWN_NAME, metadata.completed(beside)),), (), tuple(problems))
    given = json.loads(str(options.get("variables", "{}")))
    for name, value in beside.items():
        if "$" in str(value):  # in a job file fio fills in what stands after '$', and has a shell compute with it
            got, allowed = repr(value)[:60], "text without '$'"
            raise ParameterError("not a value for a job file", where=f"{where}.{name}", got=got, allowed=allowed)
    texts = {name: str(value) for name, value in given.items()}
    reader = _Reader(beside, f"{where}.jobs", {**texts, **(values or {})}, usual_size)
    reader.read(str(options["jobs"]))
    reader.problems += unused_variables(given, str(options["jobs"]), f"{where}.variables")
    if not reader.jobs and not reader.problems:
        reader.problems.append(
            ParameterError(
                "the job file names no job",
                where=f"{where}.jobs",
                got=repr(options["jobs"])[:60],
                allowed="sections such as [log], each with options such as rw=write",
            )
        )
    jobs = tuple(_assign_phases(reader.jobs))
    wrong = (*reader.problems, *_check_times(jobs, f"{where}.jobs"))
    return JobText(
        jobs, with_origins(sorted(reader.changes, key=lambda change: change.line), str(options["jobs"])), wrong
    )


def with_origins(changes: Iterable[JobChange], text: str) -> tuple[JobChange, ...]:
    """Return changes with the places of the files that were included in the text."""
    places = origins(text)
    return tuple(replace(change, origin=places.get(change.line, "")) for change in changes)


@dataclass
class _Reader:
    """Reads a job file line by line."""

    beside: Mapping[str, Scalar]
    """Options of the sweep beside the text, which hold for every section."""
    where: str
    values: Mapping[str, str]
    """Of the variables in the text."""
    usual_size: int
    jobs: list[Job] = field(default_factory=list)
    changes: list[JobChange] = field(default_factory=list)
    problems: list[ParameterError] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.common, self.current = dict(self.beside), dict[str, Scalar]()
        self.common_given, self.given = set[str](), set[str]()
        self.lines = dict[str, JobLine]()
        self.section: JobLine | None = None
        self.names, self.files = dict[str, str](), dict[str, str]()

    def read(self, text: str) -> None:
        places = origins(text)
        for line, filled, why in filled_lines(text, self.values):
            place = f"{self.where}, line {line.number}"
            place += f" ({places[line.number]})" if line.number in places else ""
            try:
                if line.text.startswith("["):
                    self._end_section()
                    self._begin_section(line, place)
                elif self.section is None:
                    raise ParameterError("an option before the first section", where=place, got=line.text[:60])
                else:
                    self._take_option(line, filled, why, place)
            except ParameterError as error:
                self.problems.append(error)
        self._end_section()
        if self.section and not self.jobs and "rw" in self.common_given:
            self._add(self.section, f"[{OWN_NAME}]", "a job with the global options: the file names none")
            self.section = replace(self.section, value=OWN_NAME)
            self.current, self.given = dict(self.common), self.common_given
            self._end_section()

    def _begin_section(self, line: JobLine, place: str) -> None:
        name = line.value or ""
        self.section, self.lines = line, {}
        self.current = self.common if is_global(name) else dict(self.common)
        self.given = self.common_given if is_global(name) else {*self.common_given}
        if not name:
            raise ParameterError("a section without a name", where=place, got=line.text[:60], allowed="[NAME]")

    def _take_option(self, line: JobLine, filled: JobLine, reason: str, place: str) -> None:
        """Take an option. `reason`: why it is `filled` with another value than it has in the text."""
        ruling = rule(filled, place)
        if ruling.name == "filename":
            ruling = self._rule_files(str(ruling.value))
        if ruling.name == "bs" and "," in str(ruling.value):
            ruling = replace(ruling, value=_all_sizes(str(ruling.value), str(self.current["bs"])))
        if ruling.name == "wait_for":
            ruling = replace(ruling, value=self.names.get(str(ruling.value), ruling.value))
        if ruling.name:
            if not (ruling.name in SHARED and SHARE.fullmatch(str(ruling.value))):
                _check_once(ruling.name, ruling.value, self.beside, place)
            self._set_option(ruling.name, ruling.value)
            self.lines[ruling.name] = line
        now, why = f"{ruling.name}={_text(ruling.value)}" if ruling.name else "", ruling.why
        if not why:  # the text of its author says the same
            now = f"{ruling.name}={filled.value or 1}"
            why = reason or (f"another name of {ruling.name}" if ruling.name != line.key else "")
        if why:
            self.changes.append(JobChange(line.number, line.text, now, why))

    def _set_option(self, name: str, value: Scalar) -> None:
        self.current[name] = value
        self.given.add(name)
        if name == "rw":
            self.current["rw"], _, count = str(value).partition(":")
            self.current.pop("rw_count", None)
            self.current.update({"rw_count": count} if count else {})

    def _rule_files(self, text: str) -> Ruling:
        """Return names of files in our own directory: what was one file to several jobs stays one."""
        paths = text.replace("\\:", "-").split(":")
        for path in paths:
            self.files.setdefault(path, safe_name(path.rpartition("/")[2], {*self.files.values()}))
        names = ":".join(self.files[path] for path in paths)
        why = "files of that name in the directory of the trial, which stand for any device or path"
        return Ruling("filename", names, "" if names == text else why)

    def _end_section(self) -> None:
        if self.section is None or is_global(self.section.value or "") or not self.section.value:
            return
        line, self.section = self.section, None
        name, before = line.value or "", [job.name for job in self.jobs]
        safe = safe_name(name, {*before}, usual="job")
        if safe != name:
            self._add(line, f"[{safe}]", "a name of its own for each job, which names its files and figures", line.text)
        if name in self.names and not {"filename", "filename_format"} & {*self.current}:
            shared = f"{self.names[name]}.$jobnum.$filenum"
            self._add(line, f"filename_format={shared}", "sections of one name share their files")
            self.current["filename_format"] = shared
        if name.startswith("/") and not {"filename", "filename_format"} & {*self.current}:
            self.current["filename"] = self._rule_files(name).value
            why = f"fio takes the device that the section names, {name}, as its file"
            self._add(line, f"filename={self.current['filename']}", why)
        self.names.setdefault(name, safe)
        self._complete(line)
        self.jobs.append(Job(safe, self.current))

    def _complete(self, line: JobLine) -> None:
        """Give a job what fio takes where nothing is said, and a size."""
        if metadata.is_metadata(self.current):
            self._complete_metadata(line)
            return
        options = self.current
        if "rw" not in options:
            options["rw"] = "read"
            self._add(line, "rw=read", "what fio does where nothing is said")
        if options.get("time_based") and not options.get("runtime"):
            self._change(line, "time_based", 0, "fio ignores time_based where no runtime is given")
        self._complete_sizes(line)
        if options["rw"] in WRITES and options.get("refill_buffers") and not self.given.intersection(_DATA):
            self._add(line, "refill_buffers=1", "new data for each write, unless the file says what data")
        elif self.given.intersection(_DATA) and "refill_buffers" not in self.given:
            options.pop("refill_buffers", None)

    def _complete_metadata(self, line: JobLine) -> None:
        """Give a job that moves no data what its engine needs."""
        before, self.current = self.current, metadata.completed(self.current)
        why = f"what {self.current['ioengine']} needs: each file counts as one I/O of bs bytes"
        for name, value in self.current.items():
            if before.get(name) != value:
                own = self.lines.get(name)
                self._add(own or line, f"{name}={value}", why, own.text if own else "")
        if own := self.lines.get("filesize"):
            self._add(own, "", why, own.text)

    def _complete_sizes(self, line: JobLine) -> None:
        options, whole = self.current, int(self.beside.get("size", self.usual_size))
        proposes = "size" not in self.beside and "filesize" not in options and self.usual_size == USUAL_SIZE
        if "filesize" in options:
            whole = int(str(options["filesize"]).rpartition("-")[2]) * file_count(options)
        requested = {name: value for name, value in options.items() if name != "size" or name in self.given}
        for name, part in parts_of(requested, whole).items():
            self._change(line, name, part.size, part.why, proposes=proposes)
        if "filesize" in options and SHARE.fullmatch(str(requested.get("size", ""))):
            end = int(options.get("offset", 0)) + int(options["size"]) // file_count(options)
            self._change(line, "filesize", end, "the part of it that fio uses")
        if "size" not in options and "filesize" in options:
            options["size"] = whole
            self._add(line, f"size={options['size']}", "all files of it")
        elif "size" not in options:
            options["size"] = self.usual_size
            why = "the file names no size, as for a whole device: give one beside `jobs`"
            self._add(line, f"size={self.usual_size}", why, proposes=proposes)

    def _change(self, section: JobLine, name: str, value: int, why: str, *, proposes: bool = False) -> None:
        """Give an option another value: in its own line, or below the head of the section if it has none there."""
        self.current[name] = value
        line = self.lines.get(name)
        self._add(line or section, f"{name}={value}", why, line.text if line else "", proposes=proposes)

    def _add(self, line: JobLine, now: str, why: str, was: str = "", *, proposes: bool = False) -> None:
        self.changes.append(JobChange(line.number, was, now, why, proposes))


def _all_sizes(sizes: str, before: str) -> Scalar:
    """Return sizes of blocks for reads, writes and trims, each that is '' as it was before."""
    merged = [new or old for new, old in zip(sizes.split(","), before.split(",") * 3, strict=False)]
    return int(merged[0]) if len({*merged}) == 1 else ",".join(merged)


def _text(value: Scalar) -> str:
    """Return a value as a job file has it; durations are in seconds."""
    if not isinstance(value, float):
        return str(value)
    return f"{value:.0f}s" if value.is_integer() else f"{round(value * 1e6)}us"


def _check_once(key: str, value: Scalar, beside: Mapping[str, Scalar], place: str) -> None:
    """An option of the sweep that the text sets again would not be in effect."""
    if key in beside and beside[key] not in (OPTIONS[key].default if key in OPTIONS else None, value):
        raise ParameterError(
            "an option is given both in the job file and beside it",
            where=place,
            got=f"{key}={value}",
            allowed=f"in one place only; beside it stands {beside[key]}",
        )


def change_words(changes: Iterable[JobChange], *, most: int | None = _MOST_SHOWN) -> list[str]:
    """Return one sentence for each reason: what fio gets in the place of the lines, and how many more there are. Lines
    with the same words are named together."""
    by_reason: dict[str, dict[str, list[str]]] = {}
    for change in changes:
        by_reason.setdefault(change.why, {}).setdefault(change.words, []).append(change.place)
    sentences = []
    for why, lines in by_reason.items():
        words = [f"line{'s' * (len(places) > 1)} {', '.join(places)}: {text}" for text, places in lines.items()]
        left = sum(map(len, [*lines.values()][most:])) if most is not None else 0
        sentences.append("; ".join(words[:most]) + (f"; and {counted(left, 'more line')}" if left else "") + f": {why}")
    return sentences


def takes_usual_size(changes: Iterable[JobChange]) -> bool:
    """Return whether a job has a size that its file does not give."""
    return any(change.proposes for change in changes)


# --- times ------------------------------------------------------------------------------------------------------------


def _assign_phases(jobs: Iterable[Job]) -> Iterator[Job]:
    """Yield the jobs with their phases. One that waits for the last before it begins a phase, too."""
    phase, previous = 0, list[Job]()
    for job in jobs:
        waits = previous and job.options.get("wait_for") == previous[-1].name
        if previous and (is_on(job.options, "stonewall") or waits):
            phase, previous = phase + 1, []
        previous.append(replace(job, phase=phase))
        yield previous[-1]


def _check_times(jobs: tuple[Job, ...], where: str) -> Iterator[ParameterError]:
    """Yield an error for each job that leaves open when it runs, beside the others: figures of all of them together
    would be of no known time."""
    for phase in sorted({job.phase for job in jobs}):
        together, earlier = [job for job in jobs if job.phase == phase], [job for job in jobs if job.phase == phase - 1]
        awaited = {str(job.options.get("wait_for", "")) for job in together}
        delays = {fio_seconds(str(job.options.get("startdelay", 0))) for job in together}
        if awaited != {""} and (len(awaited) > 1 or [*awaited] != [job.name for job in earlier]):
            yield _open_time_error(
                "wait_for", together, where, "stonewall, or one job that waits for the only one before it"
            )
        if None in delays:
            yield _open_time_error("startdelay", together, where, "one time, as 10s: fio draws one from a range")
        elif len(delays) > 1 and phase:
            allowed = "one delay for all jobs after a stonewall: fio counts delays from its own start"
            yield _open_time_error("startdelay", together, where, allowed)


def _open_time_error(name: str, jobs: list[Job], where: str, allowed: str) -> ParameterError:
    job = next(job for job in jobs if name in job.options)
    return ParameterError(
        f"{name} leaves open which jobs run at the same time",
        where=f"{where}: [{job.name}].{name}",
        got=str(job.options[name]),
        allowed=allowed,
    )


# --- space ------------------------------------------------------------------------------------------------------------


def extent(jobs: Iterable[Job]) -> int:
    """Return the bytes of all files of jobs; those that several jobs, or clones, share are counted once."""
    sizes: dict[str, int] = {}
    for job in jobs:
        for clone in range(job.clones):
            for name, size in _files_of(job, clone):
                sizes[name] = max(size, sizes.get(name, 0))
    return sum(sizes.values())


def end_on_device(job: Job) -> int:
    """Return the end of what a job touches on a device, from the first byte that it may touch."""
    return _find_start(job, job.clones - 1) + int(job.options["size"])


def _find_start(job: Job, clone: int) -> int:
    return int(job.options.get("offset", 0)) + int(job.options.get("offset_increment", 0)) * clone


def _files_of(job: Job, clone: int) -> Iterator[tuple[str, int]]:
    """Yield the bytes of the files of a clone, under a name that only those who share them have."""
    options, files, start = job.options, file_count(job.options), _find_start(job, clone)
    largest = int(str(options.get("filesize", 0)).rpartition("-")[2])
    if "filename" in options:
        size = largest or start + math.ceil(int(options["size"]) / files)
        yield from ((name, size) for name in str(options["filename"]).split(":"))
    else:
        pattern = str(options.get("filename_format", "$jobname.$jobnum.$filenum"))
        name = pattern.replace("$jobname", job.name).replace("$jobnum", str(clone))
        yield name, largest * files or start * files + int(options["size"])


# --- what is run ------------------------------------------------------------------------------------------------------


def layout_of(jobs: Iterable[Job]) -> tuple[Job, ...]:
    """Return the jobs that read, as what lays out their files takes them: none waits for another."""
    readers = (job for job in jobs if job.options["rw"] in READS)
    waits = ("wait_for", "startdelay")
    return tuple(
        replace(job, options={name: value for name, value in job.options.items() if name not in waits})
        for job in readers
    )


def job_file(jobs: tuple[Job, ...], common: Mapping[str, str], seed: int | None, *, grouped: bool) -> str:
    """Return the text that is run: each job with all its options; its clones are reported together if `grouped`."""
    lines = ["[global]", *(f"{name}={value}" for name, value in common.items())]
    return "\n".join([*lines, *_job_lines(jobs, common, seed, grouped=grouped, whole=False)]) + "\n"


def client_job_file(jobs: tuple[Job, ...], common: Mapping[str, str], seed: int | None, *, grouped: bool) -> str:
    """Return the same for one of several clients. Nothing is global: a report has one place for that."""
    return "\n".join(_job_lines(jobs, common, seed, grouped=grouped, whole=True)) + "\n"


def _job_lines(
    jobs: tuple[Job, ...], common: Mapping[str, str], seed: int | None, *, grouped: bool, whole: bool
) -> Iterator[str]:
    """Yield the lines of each job; `whole`: with what is common to all."""
    for number, job in enumerate(jobs):
        yield f"[{job.name}]"
        if grouped and number:
            yield "new_group=1"
        options = {**dict(arguments(job.options)), **seeds.arguments(job.options, seed)}
        if "filename" in common:  # a device, with the place at which it may be touched
            options = {name: value for name, value in options.items() if name not in ("filename", "filename_format")}
            options |= {"offset": str(int(common["offset"]) + int(options["offset"]))} if "offset" in options else {}
        yield from (f"{name}={value}" for name, value in {**(common if whole else {}), **options}.items())
