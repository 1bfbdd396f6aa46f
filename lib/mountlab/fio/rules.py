"""What becomes of each option of a job file: it is kept, mapped, or dropped with a reason; or it is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mountlab.core.errors import ParameterError
from mountlab.core.model import Scalar
from mountlab.core.options import Option, read_value
from mountlab.fio.grammar import JobLine
from mountlab.fio.options import ALIASES, OPTIONS, RESERVED, fio_bytes, fio_seconds
from mountlab.fio.shares import SHARE, SHARED
from mountlab.fio.values import KEYWORDS

BESIDE = ("jobs", "variables", "cache", "group_reporting", "log_avg_msec")
"""What is asked of all jobs together, beside the text."""
IMPORT = "`mountlab sweep import-job FILE` writes a sweep without it"
_OWN_DIRECTORY = "each trial has a directory of its own on the file system under test"
_LABEL = "a label in the output of fio, without effect on the I/O"
_REPORTED = "Mountlab reports each section by itself, with its clones together, and reads and writes apart"
_LOGS = "Mountlab keeps logs of its own: `log_avg_msec` beside `jobs`"
DROPPED: Mapping[str, str] = {
    **dict.fromkeys(("name", "description"), _LABEL),
    **dict.fromkeys(("directory", "aux_path"), _OWN_DIRECTORY),
    **dict.fromkeys(("group_reporting", "new_group", "unified_rw_reporting", "stats", "disk_util"), _REPORTED),
    **dict.fromkeys(("percentile_list", "clat_percentiles", "lat_percentiles", "slat_percentiles"), _REPORTED),
    **dict.fromkeys(("output", "output_format", "output-format", "eta", "minimal", "status-interval"), _REPORTED),
    **dict.fromkeys(("write_bw_log", "write_lat_log", "write_iops_log", "write_hist_log", "write_iolog"), _LOGS),
    **dict.fromkeys(("log_avg_msec", "log_hist_msec", "log_hist_coarseness", "log_max_value"), _LOGS),
    **dict.fromkeys(("log_offset", "log_prio", "log_issue_time", "log_unix_epoch", "log_alternate_epoch"), _LOGS),
    **dict.fromkeys(("log_compression", "log_compression_cpus", "log_store_compressed", "log_entries"), _LOGS),
    **dict.fromkeys(("log_alternate_epoch_clock_id", "log_window_value"), _LOGS),
    **dict.fromkeys(("per_job_logs", "bwavgtime", "iopsavgtime"), _LOGS),
    "fill_device": "the file whose size is given, or proposed, stands for the device: it is written whole",
    "cgroup_nodelete": "it would leave a group of processes on the box, and has no effect on the I/O",
    "kb_base": "sizes are read by it, and given to fio in bytes",
    "replay_no_stall": "without effect: nothing is replayed",
}
"""Options that do not change the I/O, and why Mountlab does without."""
_WITHOUT_EFFECT = {"fill_device": ("0",), "create_only": ("0",), "kb_base": ("1024",)}
"""Options that are refused but for fio's own value."""
_REFUSED: Mapping[str, str] = {
    **{
        name: f"jobs without it: {why}" for name, why in RESERVED.items() if name not in (*DROPPED, *ALIASES, "exitall")
    },
    "include": "a plain file beside the sweep file, or FILE of `mountlab sweep import-job FILE`; or its text",
    "offset_align": "offsets in bytes",
}
_ANY_NUMBER_IS_ON = ("time_based", "refill_buffers", "stonewall")
"""Flags to which fio takes any number but 0 for on."""
COMMANDS = ("exec_prerun", "exec_postrun")
"""Options that run a command on the box."""
ENGINE_ALIASES = {"aio": "libaio", "linuxaio": "libaio"}
"""Other names that fio has for an engine."""
_FORMAT = re.compile(r"(\$(jobname|jobnum|filenum)|[A-Za-z0-9_.-])+\Z")
_KIB = re.compile(r"\b(\d+[kmgtp]ib)\b", re.IGNORECASE)
_MOST_SIZES = 3
"""Of blocks: for reads, writes and trims."""


@dataclass(frozen=True)
class Ruling:
    """What fio gets for one option of a job file."""

    name: str = ""
    """'' for an option that is dropped."""
    value: Scalar = ""
    why: str = ""
    """Why it is dropped or changed; '' for what stays as it is."""


def rule(line: JobLine, place: str) -> Ruling:
    """Return what becomes of an option. Raises ParameterError for one that cannot stand in a job file of a sweep."""
    if not line.key:
        raise _refusal(line, place, "a value without an option", "NAME=VALUE, or NAME alone")
    name, text = ALIASES.get(line.key, line.key), line.value
    if text in _WITHOUT_EFFECT.get(name, ()):
        return Ruling(why="without effect: it is what fio does anyway")
    if name in DROPPED:
        return Ruling(why=DROPPED[name])
    if name in _REFUSED and name not in _SPECIAL:
        what = f"fio's option {line.key} is not for a job file to set"
        raise _refusal(line, place, what, _REFUSED[name], IMPORT if name in (*COMMANDS, "ioscheduler") else "")
    if name in SHARED and SHARE.fullmatch(text or "") and int((text or "")[:-1]):
        return Ruling(name, text or "")
    if name == "filename" and text:
        return Ruling(name, text)
    if name == "filename_format" and text:
        return _name_format(name, text, line, place)
    if "$" in (text or "") or text == "":
        keyword = next((word for word in KEYWORDS if f"${word}" in (text or "")), "")
        names = list(dict.fromkeys(re.findall(r"\$\{?(\w+)", text or "")))
        what = "a variable without a value" if names else "not a value for a job file"
        what = f"${keyword} is a number of each box" if keyword else what
        allowed = f"a value for {', '.join(names)}" if names else "NAME=VALUE, or NAME alone, without '$'"
        raise _refusal(line, place, what, allowed, _variables(names))
    return _SPECIAL[name](name, text or "", line, place) if name in _SPECIAL else _plain(name, text, line, place)


def _variables(names: list[str]) -> str:
    """Return what gives a value to variables; '' where there is none."""
    words, values = " ".join(f"--var {name}=..." for name in names), ", ".join(f"{name}: ..." for name in names)
    return f"`variables: {{{values}}}` in the workload, or `mountlab sweep import-job FILE {words}`" if names else ""


def _refusal(line: JobLine, place: str, what: str, allowed: str, next_step: str = "") -> ParameterError:
    return ParameterError(what, where=place, got=line.text[:60], allowed=allowed, next_step=next_step)


def _plain(name: str, text: str | None, line: JobLine, place: str) -> Ruling:
    """Return an option in base units, from what fio reads in its text."""
    option = OPTIONS.get(name, Option(kind="any"))
    value: Scalar | None = text or 1
    if option.kind == "duration":
        value = fio_seconds(text or "")
    elif option.kind in ("int", "flag", "size"):
        value = fio_bytes(text or ("" if option.kind == "size" else "1"))
    why = _own_units(text or "")
    if name in _ANY_NUMBER_IS_ON and value is not None:
        number = value if isinstance(value, int) else fio_bytes(str(value))
        why = "fio takes any number but 0 for on" if number not in (0, 1, None) else why
        value = value if number is None else int(bool(number))
    if value is None or (option.kind == "flag" and value not in (0, 1)):
        raise ParameterError(
            f"fio's option {name} needs a plain value",
            where=place,
            got=repr(text)[:60],
            allowed={"size": "bytes, such as 4k or 4096", "duration": "a time, such as 10s", "flag": "0 or 1"}.get(
                option.kind, "a whole number"
            ),
            next_step="write 10s: fio reads 10sec and 10min as 10 microseconds" if option.kind == "duration" else "",
        )
    if option.kind == "choice":
        value = read_value(value, option, where=place).value
    elif why and isinstance(value, str):
        value = _KIB.sub(lambda match: str(fio_bytes(match[1])), value)
    return Ruling(name, value, why)


def _own_units(text: str) -> str:
    """Return what fio reads in a unit such as KiB; '' where there is none."""
    match = _KIB.search(text) if re.fullmatch(r"[\w.:,/%-]+", text) else None
    return f"{match[1]} is {fio_bytes(match[1])} bytes to fio, which swaps KiB and kB (kb_base)" if match else ""


def _block_sizes(name: str, text: str, line: JobLine, place: str) -> Ruling:
    """Return one size of blocks, or one each for reads, writes and trims: '' for one that stays as it was. fio takes
    '-' and ':' for ',' here."""
    separator = next((mark for mark in ",:-" if mark in text), ",")
    sizes = [fio_bytes(part) if part.strip() else "" for part in text.split(separator)]
    if None in sizes or not any(sizes) or len(sizes) > _MOST_SIZES:
        return _plain(name, text, line, place)
    read, write, trim = (*sizes, sizes[-1], sizes[-1])[:_MOST_SIZES]
    why = "fio reads a range in bs as the sizes of reads and writes; bsrange is a range" if separator != "," else ""
    value = read if read == write == trim else f"{read},{write},{trim}"
    return Ruling(name, value or 0, why or _own_units(text))


def _pattern(name: str, text: str, line: JobLine, place: str) -> Ruling:
    """Return the pattern. Behind ':' fio takes the I/Os to the next random place, or the bytes that it leaves out after
    each one of a sequence."""
    base, separator, more = next((text.partition(mark) for mark in ":," if mark in text), (text, "", ""))
    if separator and (separator == "," or fio_bytes(more)):
        read_value(base, OPTIONS[name], where=place)
        return Ruling(name, text) if separator == ":" else Ruling(name, base, "fio takes the first pattern only")
    return _plain(name, text, line, place)


def _size(name: str, text: str, line: JobLine, place: str) -> Ruling:
    if text in ("0", "0%"):
        return Ruling(why="the size of a device or of files that are there already: here are none")
    return _plain(name, text, line, place)


def _file_size(name: str, text: str, line: JobLine, place: str) -> Ruling:
    sizes = [fio_bytes(part) for part in re.split("[-:]", text)]
    if None in sizes or len(sizes) > 2:
        raise _refusal(line, place, "fio's option filesize needs a plain value", "bytes, such as 4k or 4k-64k")
    low, high = sorted(size or 0 for size in (sizes[0], sizes[-1]))
    return Ruling(name, low if low == high else f"{low}-{high}", _own_units(text))


def _offset(name: str, text: str, line: JobLine, place: str) -> Ruling:
    value = fio_bytes("0" if text == "0%" else text)
    if value is None:
        raise _refusal(line, place, f"fio's option {name} needs a plain value", "bytes, such as 1g, or 0% to 100%")
    return Ruling(name, value, _own_units(text))


def _memory(name: str, text: str, line: JobLine, place: str) -> Ruling:
    if not re.fullmatch("[a-z]+", text) or text == "cudamalloc":
        allowed = "malloc, shm, shmhuge, mmap, mmaphuge, mmapshared"
        raise _refusal(line, place, "fio's buffers may lie in no file", allowed, IMPORT)
    return Ruling(name, text)


def _engine(name: str, text: str, line: JobLine, place: str) -> Ruling:
    first = ENGINE_ALIASES.get(text, text)
    return Ruling(name, first, f"another name of {first}" if first != text else "")


def _name_format(name: str, text: str, line: JobLine, place: str) -> Ruling:
    """Return the pattern of names of files, without directories and variables of the environment."""
    plain = re.sub(r"\$\{(\w+)\}", r"\1", text.replace("\\", "").replace("$clientuid", "0"))
    plain = plain.strip("/").replace("/", "-")
    if not _FORMAT.match(plain) or plain.startswith((".", "-")):
        raise _refusal(line, place, "not a pattern of names of files", "such as $jobname.$jobnum.$filenum")
    return Ruling(name, plain, "" if plain == text else "files in the directory of the trial")


def _as_text(name: str, text: str, line: JobLine, place: str) -> Ruling:
    return Ruling(name, text)


_SPECIAL = {
    "bs": _block_sizes, "rw": _pattern, "size": _size, "filesize": _file_size, "offset": _offset,
    "offset_increment": _offset, "mem": _memory, "ioengine": _engine, "filename": _as_text,
    "filename_format": _name_format, "startdelay": _as_text, "wait_for": _as_text,
}  # fmt: skip
"""Options whose values mean something else to fio than a number or a text, or that are refused for some values only."""
