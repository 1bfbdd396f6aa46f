"""What fio states about its own options: in JSON by name, in human text in the line of each job, and by its figures."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from mountlab.core.model import Measurement, Scalar
from mountlab.fio import report as fio_report
from mountlab.fio.options import ALIASES, OPTIONS, fio_bytes, fio_seconds
from mountlab.logs import fio_json
from mountlab.logs.base import Output
from mountlab.logs.statement import Stated, words

_INVERSE = {"rwmixwrite": "rwmixread", "buffered": "direct"}
"""Options of fio's that say the opposite of another."""
_PASSED_OVER = frozenset(
    {
        *_INVERSE, "jobs", "cache", "name", "description", "filename", "directory", "filename_format", "opendir",
        "unlink", "new_group", "unified_rw_reporting", "kb_base", "unit_base", "per_job_logs", "bwavgtime",
        "iopsavgtime", "log_offset", "log_unix_epoch", "log_alternate_epoch", "log_compression",
        "log_store_compressed", "percentile_list", "clat_percentiles", "lat_percentiles", "slat_percentiles",
        "significant_figures",
    }
)  # fmt: skip
"""Options that are read as their opposite, that only Mountlab has, and that say where the files lie, which is what is
compared, or how figures are named, counted and printed."""
_LOGS = re.compile(r"(write_\w+_log|log_hist_msec|log_hist_coarseness|log_max_value|log_window_value)\Z")
_TIMES = ("startdelay", "steadystate_duration", "steadystate_ramp_time")
"""Options that are seconds to fio and that Mountlab does not model."""
_DEFAULT_BS = "4k"
_LEFT_OPEN = "not given"
"""In the place of a value, for a job that does not give the option where others do."""
_DIRECTIONS = {"read": (0,), "write": (1,), "rw": (0, 1), "trim": (2,), "trimwrite": (1, 2)}
"""Places of reads, writes and trims in `bs=4k,8k,16k`, by pattern; the same of random ones."""
_ROUNDING = 0.02


def fio(output: Output) -> Iterator[Stated]:
    """Yield what an output of fio states; what its options do not tell, by its figures."""
    text = output.part.text
    options = {option.option: option for option in _state_header(text)}
    start = fio_json.brace(text) if output.part.form == "json" else None
    for option in _state_json(text, start) if start is not None else ():
        if not (option.vague and option.option in options):
            options[option.option] = option
    yield from options.values()
    for option in _state_computed(output.measurements):
        vague = option.option not in options or options[option.option].vague
        if vague and not {"bssplit", "bsrange"} & options.keys():
            yield option


# --- JSON -------------------------------------------------------------------------------------------------------------


def _state_json(text: str, start: int) -> Iterator[Stated]:
    """Yield the options of all jobs; several jobs that differ in an option state all of its values."""
    report = fio_report.decode(text[start:])
    jobs = report.get("jobs") or fio_report.entries(report)
    shared = report.get("global options")
    common = shared if isinstance(shared, dict) else {}
    given = [{**common, **job.get("job options", {})} for job in jobs if isinstance(job, dict)]
    # By the names that Mountlab has for them.
    whole = [{ALIASES.get(name, name): str(value).strip() for name, value in options.items()} for options in given]
    for option in dict.fromkeys(name for job in whole for name in (*job, *_list_implied(job))):
        if option not in _PASSED_OVER and not _LOGS.match(option):
            yield _state_option(option, whole, text, start)
    clones = {str(job.get("groupid")) for job in jobs} if len(jobs) > 1 and "client_stats" not in report else {}
    if len(clones) == 1 and all(job == whole[0] for job in whole) and "numjobs" not in whole[0]:
        words = f"{len(jobs)} entries of one job"
        yield Stated(option="numjobs", value=len(jobs), text=words, line=text.count("\n", 0, start) + 1, computed=True)


def _list_implied(job: Mapping[str, str]) -> Iterator[str]:
    if {"bsrange", "bssplit"} & job.keys():
        yield "bs"
    yield from (ours for name, ours in _INVERSE.items() if name in job)


def _read_value(option: str, job: Mapping[str, str]) -> Scalar | None:
    """Return the value of an option in base units; None where the job does not state it readably."""
    if option == "rw":
        return _read_pattern(job.get("rw", "")) or None
    if option == "bs":
        return _read_blocks(job)
    for name, whole in (("rwmixwrite", 100), ("buffered", 1)):
        if _INVERSE[name] == option and name in job:
            number = _read_flag(job[name], "")
            return None if number is None else whole - number
    if option not in job:
        return None
    text = job[option]
    if option not in OPTIONS:  # one number for '4k' and '4096', else its words
        plain = fio_seconds(text) if option in _TIMES else _read_flag(text, "")
        return text if plain is None else plain
    read = _READ.get(OPTIONS[option].kind)
    return read(text, job.get("kb_base", "")) if read else text


def _read_pattern(text: str) -> str:
    """'randread' of 'randread:8', which is followed by how often an offset is drawn, and 'rw' of 'readwrite'."""
    word = text.partition(":")[0].lower()
    return "rw" if word == "readwrite" else word


def _read_blocks(job: Mapping[str, str]) -> Scalar | None:
    """Return the size of each I/O; a text where there are several."""
    for mix in ("bssplit", "bsrange"):
        if mix in job:
            sizes = [fio_bytes(word, job.get("kb_base", "")) for word in job[mix].split("-")]
            same = sizes[0] if mix != "bssplit" and len(set(sizes)) == 1 else None
            return same if same is not None else f"{mix}={job[mix]}"
    if "bs" not in job:
        return None
    parts = [part.strip() or _DEFAULT_BS for part in job["bs"].split(",")]
    three = [*parts, *([parts[-1]] * (3 - len(parts)))]
    sizes = [
        fio_bytes(three[place], job.get("kb_base", "")) for place in _find_places(_read_pattern(job.get("rw", "")))
    ]
    return None if None in sizes else _join_values([size for size in sizes if size is not None])


def _find_places(pattern: str) -> Sequence[int]:
    return _DIRECTIONS.get(pattern.removeprefix("rand"), (0, 1, 2))


def _join_values(values: Sequence[Scalar]) -> Scalar:
    different = list(dict.fromkeys(values))
    return different[0] if len(different) == 1 else ", ".join(map(str, different))


def _read_flag(text: str, _: str) -> int | None:
    """1 for an option without a value."""
    return fio_bytes(text or "1")


_READ: Mapping[str, Callable[[str, str], Scalar | None]] = {
    "size": fio_bytes,
    "duration": lambda text, _: fio_seconds(text),
    "int": lambda text, _: fio_bytes(text),
    "flag": _read_flag,
}
"""Kind of an option to what reads its text, with kb_base beside it."""


def _state_option(option: str, jobs: Sequence[Mapping[str, str]], text: str, start: int) -> Stated:
    """Return the value of all jobs, with the words and the place of the first of them. Where some jobs leave it open,
    or give it unreadably, no single value is that of the log."""
    values = [_read_value(option, job) for job in jobs]
    shown = [job.get(option, _LEFT_OPEN) if value is None else value for job, value in zip(jobs, values, strict=True)]
    words, line = f"{option}: {shown[0]}", 1
    blocks = "|".join(re.escape(f'"{name} options"') for name in ("global", "job"))
    names = [option, *(name for name, ours in ALIASES.items() if ours == option), "bssplit", "bsrange", *_INVERSE]
    for name in names:
        pattern = rf'(?:{blocks})\s*:\s*\{{[^{{}}]*?("{name}"\s*:\s*"[^"\n]*")'
        if match := re.compile(pattern).search(text, start):
            words, line = " ".join(match[1].split()), text.count("\n", 0, match.start(1)) + 1
            break
    return Stated(option=option, value=_join_values(shown), text=words, line=line, vague=None in values)


# --- human text -------------------------------------------------------------------------------------------------------

_JOB = re.compile(
    r"^[ \t]*\S.*: \(g=\d+\): rw=(?P<rw>\w+), (?P<bs>bs(?:\(seq/rand\))?=.*?), ?ioengine=(?P<ioengine>[\w-]+), "
    r"iodepth=(?P<iodepth>\d{1,18})$",
    re.MULTILINE,
)
_RANGE = re.compile(r"([\d.]{1,24}[kKMGTPE]?i?B?)-([\d.]{1,24}[kKMGTPE]?i?B?)")
_PRINTED = re.compile(r"(\d{1,18})(?:\.(\d{1,6}))?([kKMGTPE]?)(i?)(B?)\Z")
_STARTING = re.compile(r"^[ \t]*Starting (?:(\d{1,9}) threads?)?(?: and )?(?:(\d{1,9}) process(?:es)?)?$", re.MULTILINE)


def _state_header(text: str) -> Iterator[Stated]:
    """Yield the line of each job; clones have one together, so that the number of processes is theirs."""
    jobs = list(_JOB.finditer(text))
    if not jobs:
        return
    at = words(text, jobs[0])
    for option in ("rw", "ioengine"):
        yield Stated(option=option, value=_join_values([_read_pattern(job[option]) for job in jobs]), **at)
    yield Stated(option="iodepth", value=_join_values([int(job["iodepth"]) for job in jobs]), **at)
    sizes = [_read_printed_blocks(job) for job in jobs]
    slack = max(slack for _, slack in sizes)
    yield Stated(option="bs", value=_join_values([value for value, _ in sizes]), slack=slack, **at)
    started = _STARTING.search(text)
    if started and len(jobs) == 1:
        number = int(started[1] or 0) + int(started[2] or 0)
        yield Stated(option="numjobs", value=number, **words(text, started))


def _read_printed_blocks(job: re.Match[str]) -> tuple[Scalar, float]:
    """Return the size of each I/O in the line of a job, and how far off it may be."""
    ranges = [(_read_printed(least), _read_printed(most)) for least, most in _RANGE.findall(job["bs"])]
    pattern = job["rw"]
    by_order = "seq" in job["bs"]
    places = [int(pattern.startswith("rand"))] if by_order else _find_places(pattern)
    used = [ranges[place] for place in places if place < len(ranges)] or ranges
    sizes = [size for pair in used for size, _ in pair]
    return (_join_values(sizes) if sizes else job["bs"]), max(
        (slack for pair in used for _, slack in pair), default=0.0
    )


def _read_printed(text: str) -> tuple[Scalar, float]:
    """Return a size as fio prints it, and half of its last digit: '64.0KiB', '65.5kB', '4096B'; '4K' of version 2."""
    match = _PRINTED.match(text)
    if not match:
        return text, 0.0
    base = 1024 if match[4] or not match[5] else 1000
    unit = base ** " KMGTPE".index(match[3].upper() or " ")
    exact = unit == 1 or not match[5]
    value = round(float(f"{match[1]}.{match[2] or 0}") * unit)
    return value, 0.0 if exact else 0.51 * unit * 10.0 ** -len(match[2] or "")


# --- figures ----------------------------------------------------------------------------------------------------------


def _state_computed(rows: Sequence[Measurement]) -> Iterator[Stated]:
    """Yield the direction and the mean size of an I/O, where no option tells (before version 2.3, and of defaults)."""
    values = {(row.metric, row.label): row.value for row in rows}
    sides = [side for side in fio_report.SIDES if values.get((f"{side}_bandwidth", ""))]
    if len(sides) == 1:
        moved = f"{values.get(('bytes', sides[0]), 0):.0f} bytes, all of them by {sides[0]}s"
        yield Stated(option="rw", value=sides[0], also=(f"rand{sides[0]}",), text=moved, line=1, computed=True)
    means = [_mean_block(values, side) for side in sides]
    if len(means) == 1 and means[0]:
        mean, slack = means[0]
        yield Stated(
            option="bs", value=mean, slack=slack, text=f"{mean:.0f} bytes an I/O on average", line=1, computed=True
        )


def _mean_block(values: Mapping[tuple[str, str], float], side: str) -> tuple[float, float] | None:
    """Return the mean size of an I/O and how far it may be off: old versions print rates of I/Os in whole numbers."""
    ios, rate, moved = (values.get(key) for key in ((f"{side}_ios", ""), (f"{side}_iops", ""), ("bytes", side)))
    if not ios or not rate or not moved:
        return None
    return moved / ios, moved / ios * (_ROUNDING + 1 / rate + 1 / ios)
