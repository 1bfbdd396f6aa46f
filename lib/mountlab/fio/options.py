"""What a sweep may ask of fio: its options, those that are Mountlab's, and how fio writes sizes and times."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from mountlab.core.errors import ParameterError, did_you_mean, raise_all
from mountlab.core.model import Scalar
from mountlab.core.options import Option
from mountlab.core.units import KIB
from mountlab.fio import metadata
from mountlab.tools.base import CACHE, Written

READS = ("read", "randread", "readwrite", "rw", "randrw", "trimread")
WRITES = ("write", "randwrite", "readwrite", "rw", "randrw")
ENGINES = (
    "psync", "sync", "vsync", "pvsync", "pvsync2", "libaio", "io_uring", "posixaio", "mmap", "splice", "libpmem",
)  # fmt: skip
"""Those that read and write files of fio's own making. Others talk to servers, run programs, or move no data."""
HIDDEN_CALLS: Mapping[str, str] = {
    "--ioengine=mmap": "fio's engine mmap reads and writes mapped memory: page faults are no system calls",
    "--ioengine=libpmem": "fio's engine libpmem reads and writes mapped memory: page faults are no system calls",
    "--ioengine=posixaio": "fio's engine posixaio leaves reads and writes to threads of the C library",
    "--ioengine=splice": "fio's engine splice moves data by splice and vmsplice, which are not recorded",
    **dict.fromkeys(
        ("--sqthread_poll", "--sqthread_poll=1"), "a thread of the kernel submits what fio does (sqthread_poll)"
    ),
}
"""Word of fio's command to why no system call of its own stands for what it reads or writes."""
WITHOUT_DATA = ("dircreate", "dirstat", "dirdelete", "net", "netsplice", "cpuio", "exec")
"""Engines that store no data: they work on directories, or do other work. No engine can stand for them."""
OPTIONS: Mapping[str, Option] = {
    "rw": Option(
        kind="choice",
        choices=("read", "write", "randread", "randwrite", "rw", "readwrite", "randrw"),
        help="the pattern: reads, writes or both, in order or at random",
    ),
    "bs": Option(kind="size", default=4096, help="bytes of one I/O"),
    "bssplit": Option(kind="text", help="a mix of block sizes, as fio writes it: 4k/60:64k/40"),
    "size": Option(kind="size", help="of the file of each job"),
    "io_size": Option(kind="size", help="bytes that each job moves, where that is not its size"),
    "numjobs": Option(kind="int", default=1, help="clones of the job, each a process with a file of its own"),
    "iodepth": Option(kind="int", help="I/Os in flight at a time; asynchronous engines only"),
    "ioengine": Option(
        kind="text",
        default="psync",
        help=f"how I/O is done: {', '.join(ENGINES)}. With {', '.join(metadata.SINCE)} no data is moved",
    ),
    "direct": Option(kind="flag", help="past the page cache (O_DIRECT)"),
    "time_based": Option(kind="flag", help="go on for the whole `runtime`, again from the beginning where needed"),
    "runtime": Option(kind="duration", help="how long at most; with `time_based` how long"),
    "ramp_time": Option(kind="duration", help="how long it runs before it counts; with `time_based` only"),
    "end_fsync": Option(kind="flag", help="flush once at the end; the flush is timed"),
    "fsync": Option(kind="int", help="an fsync after so many writes; 0: none"),
    "fdatasync": Option(kind="int", help="an fdatasync after so many writes; 0: none"),
    "refill_buffers": Option(kind="flag", default=1, help="new data for each write, which no device can compress away"),
    "rwmixread": Option(kind="int", help="per cent of reads in a mix"),
    "group_reporting": Option(kind="flag", help="false: the figures of each job beside those of all together"),
    "log_avg_msec": Option(
        kind="int",
        can_be_off=True,
        help="keep bandwidth, I/O rate and latency over time, averaged over so many milliseconds; 0 or false: keep "
        "none. Without it they are averaged over a twentieth of `runtime` (50 ms to 1 s), or over 100 ms or more "
        "without a set time. Then I/Os below 64 KiB that do not wait for a device (`direct`, `fsync: 1`) have the "
        "bandwidth only, and more than 16 jobs, or several clients, have no log",
    ),
    "jobs": Option(kind="text", help="the text of a job file, for several jobs at once", file_key="job_file"),
    "variables": Option(
        kind="mapping",
        help="values of the variables in the text of `jobs`: {SIZE: 1g} for ${SIZE}, {ncpus: 4} for $ncpus",
    ),
    "cache": CACHE,
}

NEEDED = {"rw": "read, write, randread, ...", "size": "text with a unit, such as 256MiB"}
_NAME = re.compile(r"[a-z][a-z0-9_]*\Z|hugepage-size\Z")
_SIZE = re.compile(
    r"(?:(?P<hex>0x[0-9a-f]{1,16})|(?P<number>\d{1,18})(?P<unit>[kmgtp]?))(?P<suffix>i?b|i)?\Z", re.IGNORECASE
)
_TIME = re.compile(r"(\d{1,15})(d|h|m|s|ms|msec|us|usec)?\Z", re.IGNORECASE)
_TIME_UNITS = {"d": 86400.0, "h": 3600.0, "m": 60.0, "ms": 1e-3, "msec": 1e-3, "us": 1e-6, "usec": 1e-6}
_SHARES = re.compile(r",?\d+[kmgt]?b?/\d*([:,]\d+[kmgt]?b?/\d*)*,?\Z", re.IGNORECASE)
"""'4k/60:64k/40'; with the next the only values of fio's with a '/' that are no path."""
_ZONES = re.compile(r"zoned(_abs)?:\d+/\d*[kmgt]?b?([:,]\d+/\d*[kmgt]?b?)*\Z", re.IGNORECASE)
"""'zoned:60/10:40/90': so many I/Os in such a share of the file, or with zoned_abs in so many bytes, per cent."""
_DIRECTIONS = 3
"""Reads, writes and trims."""
_WITH_SHARES = {"bssplit": _SHARES, "cmdprio_bssplit": _SHARES, "random_distribution": _ZONES}
_DURATIONS = tuple(name for name, option in OPTIONS.items() if option.kind == "duration")
_OURS = "Mountlab sets it, so that fio works in its own directory only"
_PATHS = "it would make fio read, write or run something outside its own directory"
_GROWS = "the plan could not tell how much space it takes: give size and numjobs"
ALIASES: Mapping[str, str] = {
    "readwrite": "rw", "blocksize": "bs", "io_limit": "io_size", "blockalign": "ba", "blocksize_range": "bsrange",
    "blocksize_unaligned": "bs_unaligned", "iodepth_batch_submit": "iodepth_batch", "timeout": "runtime",
    "iodepth_batch_complete": "iodepth_batch_complete_min", "nr_files": "nrfiles", "ratemin": "rate_min",
    "ratecycle": "rate_cycle", "wait_for_previous": "stonewall", "disable_bw": "disable_bw_measurement",
    "ss": "steadystate", "ss_dur": "steadystate_duration", "ss_ramp": "steadystate_ramp_time",
    "ss_interval": "steadystate_check_interval", "mem_align": "iomem_align", "iomem": "mem", "fill_fs": "fill_device",
    "fileoffset": "offset",
}  # fmt: skip
"""Other names that fio has for an option."""
_LEADING_OUT = (
    "filename", "filename_format", "opendir", "exec_prerun", "exec_postrun", "include", "server", "client", "daemonize",
    "read_iolog", "write_iolog", "replay_redirect", "aux_path", "trigger", "trigger_file", "write_bw_log",
    "write_lat_log", "write_hist_log", "write_iops_log", "mem", "iomem", "hugepage_file", "merge_blktrace_file",
    "program", "arguments",
)  # fmt: skip
RESERVED: Mapping[str, str] = {
    **dict.fromkeys(("name", "directory", "output", "output_format", "eta"), _OURS),
    **dict.fromkeys(_LEADING_OUT, _PATHS),
    **dict.fromkeys(("fill_device", "fill_fs", "filesize"), _GROWS),
    **dict.fromkeys(
        ("offset", "fileoffset", "offset_increment", "offset_align"), "it could lead to our mark on a raw device"
    ),
    **{alias: f"write {name}" for alias, name in ALIASES.items()},
    "ioscheduler": "fio would leave another scheduler on the box: set it there before a run",
    "cgroup_nodelete": "it would leave a group of processes on the box",
    "create_only": "Mountlab uses it to lay out files before a read is measured",
    "unified_rw_reporting": "Mountlab keeps the figures of reads and writes apart",
    "kb_base": "sizes have their units spelled out in a sweep",
    "stats": "a job without figures is no measurement",
    "wait_for": "it would wait for another job: give `jobs`, a text with several, and there write stonewall",
    "exitall": "it would end other jobs: give `jobs`, a text with several, and write it there",
}

_NUMBERS = (
    "rate", "rate_min", "rate_iops", "rate_iops_min", "rate_cycle", "thinktime", "thinktime_spin", "thinktime_blocks",
    "nrfiles", "openfiles", "loops", "number_ios", "iodepth", "iodepth_low", "iodepth_batch", "numjobs",
    "iodepth_batch_complete_min", "iodepth_batch_complete_max", "rwmixread", "rwmixwrite", "percentage_random",
    "randseed", "write_barrier", "max_latency", "dedupe_percentage", "buffer_compress_percentage",
)  # fmt: skip
"""Options that are whole numbers to any fio; of the others its own help tells."""
_WHOLE = ("rate", "iodepth_batch")
"""Options of fio's own with which the names of others begin."""


def fio_bytes(text: str, kb_base: str = "") -> int | None:
    """Return the bytes that fio reads in a size; None where it is no size. Unless kb_base is 1000 its units are the
    opposite of what they say: 4k and 4kb are 4096 to it, and 4KiB is 4000 (fio(1), kb_base, and its parse.c)."""
    match = _SIZE.match(text.strip())
    if not match:
        return None
    if match["hex"]:
        return int(match["hex"], 16)
    base = 1000 if ((match["suffix"] or "").lower() == "ib") != (kb_base == "1000") else KIB
    return int(match["number"]) * int(base ** " kmgtp".index(match["unit"].lower() or " "))


def fio_seconds(text: str) -> float | None:
    """Return the seconds that fio reads in '10', '10s' or '500ms'. None where it is no time."""
    match = _TIME.match(text.strip())
    return int(match[1]) * _TIME_UNITS.get((match[2] or "s").lower(), 1.0) if match else None


def numbers(text: str) -> bool:
    """Return whether fio reads a whole number in a text, with or without a unit, or one for read, write and trim."""
    parts = [part.strip() for part in re.split(r"[,:]", text) if part.strip()]
    return bool(parts) and all(
        re.fullmatch("-?[0-9]+", part) or fio_bytes(part.removeprefix("-")) is not None or fio_seconds(part) is not None
        for part in parts
    )


def waits(options: Mapping[str, Scalar]) -> bool:
    """Return whether each I/O of a job waits for its device, where there is one."""
    flushed = (str(options.get(name)) in ("1", "sync", "dsync") for name in ("fsync", "fdatasync", "sync"))
    return is_on(options, "direct") or any(flushed)


def arguments(options: Mapping[str, Scalar]) -> Iterator[tuple[str, str]]:
    """Yield name and value of each option for fio itself, as text that it reads."""
    mixed, counts = not _leaves_sizes(_mix(options)), "rw_count" in options
    for name, value in options.items():
        if name not in ("cache", "jobs", "variables", "group_reporting", "rw_count") and not (name == "bs" and mixed):
            yield name, _argument(name, value) + (f":{options['rw_count']}" if name == "rw" and counts else "")


def _mix(options: Mapping[str, Scalar]) -> str:
    return str(options.get("bssplit") or options.get("bsrange") or "")


def _leaves_sizes(mix: str) -> bool:
    """Return whether a mix of block sizes leaves those of reads, or of writes, to `bs`: '64k/100,' is of reads only."""
    return not all(part.strip() for part in mix.split(","))


def _argument(name: str, value: Scalar) -> str:
    """fio reads times without a unit as seconds, and fractions not at all: give microseconds."""
    if name in _DURATIONS:
        return f"{round(float(value) * 1e6)}us"
    return f"{value:.15g}" if isinstance(value, float) else str(value)


def same(name: str, requested: str, echoed: str) -> bool:
    """Return whether two texts mean the same value to fio: 4k and 4096, 2 and 2000000us, 1 and no value."""
    return requested == echoed or _meaning(name, requested) == _meaning(name, echoed)


def _meaning(name: str, text: str) -> object:
    number = fio_seconds(text) if name in _DURATIONS else fio_bytes(text or "1")
    return text.lower() if number is None else number


def blocks(options: Mapping[str, Scalar]) -> tuple[int, int]:
    """Return the smallest and the largest block that a job may move at once."""
    mix = _mix(options)
    text = f"{mix},{options['bs']}" if _leaves_sizes(mix) else mix
    sizes = [fio_bytes(word.partition("/")[0]) for word in re.split(r"[,:-]", text)]
    sizes_given = [size for size in sizes if size] or [int(fio_bytes(str(options["bs"])) or 1)]
    return min(sizes_given), max(sizes_given)


def check_job(options: Mapping[str, Scalar], *, where: str) -> None:
    """Raise ParameterError where the options of one job do not make sense together, or are not for a sweep to give: one
    for each that is wrong."""
    checks: list[Callable[[], None]] = [
        lambda: _check_engine(str(options["ioengine"]), f"{where}.ioengine"),
        lambda: _check_amount(options, where),
        lambda: _check_split(str(options.get("bssplit", "4k/100")), f"{where}.bssplit"),
        *(partial(_check_option, name, value, f"{where}.{name}") for name, value in options.items()),
    ]
    problems: list[ParameterError] = []
    for check in checks:
        try:
            check()
        except ParameterError as error:
            problems.append(error)
    raise_all(problems)


def _check_amount(options: Mapping[str, Scalar], where: str) -> None:
    if options.get("time_based") and not options.get("runtime"):
        raise ParameterError(
            "time_based without a runtime never ends",
            where=f"{where}.runtime",
            got="nothing",
            allowed="text such as '60s'",
        )
    if not options["numjobs"] or not options["bs"] or int(options["size"]) < blocks(options)[0]:
        raise ParameterError(
            "fio would do nothing",
            where=where,
            got=f"numjobs {options['numjobs']}, size {options['size']}, bs {options['bs']}",
            allowed="one job or more, and a size of one block or more",
        )


def _check_option(name: str, value: Scalar, where: str) -> None:
    _check_name(name, value, where)
    _check_units(name, value, where)
    if name in _NUMBERS and not numbers(_argument(name, value)):
        raise ParameterError(
            f"fio's option {name} needs a number",
            where=where,
            got=repr(value),
            allowed="a whole number, as 100 or 4k; with commas one each for reads, writes and trims",
        )


def _check_units(name: str, value: Scalar, where: str) -> None:
    """Raise ParameterError for a size that fio itself would read as something else than Mountlab."""
    size = re.search(r"\d+[kmgtp]ib\b", value, re.IGNORECASE) if isinstance(value, str) else None
    if size and re.fullmatch(r"[\w.:,/%-]+", str(value)):
        raise ParameterError(
            f"fio reads the sizes of {name} by units of its own",
            where=where,
            got=size[0],
            allowed="4k for 4096 bytes: 4KiB is 4000 bytes to fio",
            next_step="write it as fio means it, or in bytes",
        )


def _check_split(text: str, where: str) -> None:
    """Block sizes with their shares, for all directions or for each."""
    directions = text.split(",")
    if not _SHARES.match(text) or len(directions) > _DIRECTIONS:
        raise ParameterError(
            "not a mix of block sizes",
            where=where,
            got=repr(text),
            allowed="SIZE/PERCENT with ':' between, such as 4k/60:64k/40; with ',' for reads, writes and trims",
        )
    for mix in filter(None, directions):
        parts = [part.partition("/") for part in mix.split(":")]
        total = sum(int(share or 0) for _, _, share in parts)
        if total > 100 or not all(fio_bytes(size) for size, _, _ in parts):
            raise ParameterError(
                "a mix of block sizes that cannot be",
                where=where,
                got=f"{mix}: {total} %",
                allowed="sizes above 0, and shares of 100 % or less together",
            )


def _check_name(name: str, value: Scalar, where: str) -> None:
    """Whole names of fio's own, and values that name no path: a path would lead out of our directory."""
    if not _NAME.match(name) or str(value).startswith("external:"):
        raise ParameterError(
            "not an option that can be given to fio",
            where=where,
            got=repr(value),
            allowed="fio's own options, in lower case",
        )
    _check_whole(name, where)
    if name == "jobs" or (name in _WITH_SHARES and _WITH_SHARES[name].match(str(value))):
        return
    if "/" in str(value) or "\n" in str(value):
        raise ParameterError(
            "an option of fio's may name no path",
            where=where,
            got=repr(value),
            allowed="values without '/': Mountlab gives fio its own directory, and nothing else",
        )


def _check_whole(name: str, where: str) -> None:
    """fio takes shortened names: exec_pre runs a command as exec_prerun does. Only whole names pass, and none that
    differs from one only in its underscores."""
    names = (*OPTIONS, *RESERVED, *_WHOLE, *_NUMBERS)
    if name in names:
        return
    longer = [other for other in names if other.startswith(name)]
    same = [other for other in names if other.replace("_", "") == name.replace("_", "")]
    if longer or same:
        raise ParameterError(
            "a shortened option of fio's" if longer else "fio has no such option",
            where=where,
            got=name,
            allowed="whole names",
            next_step=f"write {' or '.join(longer)}" if longer else RESERVED.get(same[0], f"write {same[0]}"),
        )


def _check_engine(engine: str, where: str) -> None:
    if engine in (*ENGINES, *metadata.SINCE):
        return
    replace = "take one of these; for a job file `mountlab sweep import-job FILE --engine libaio` does so"
    leave_out = "leave the job out: no other engine can stand for it"
    raise ParameterError(
        "not an engine that reads and writes files on Linux",
        where=where,
        got=repr(engine),
        allowed=", ".join((*ENGINES, *metadata.SINCE)),
        next_step=leave_out if engine in WITHOUT_DATA else did_you_mean(engine, ENGINES) or replace,
    )


def asked_bytes(options: Mapping[str, Scalar], clones: int) -> float:
    """Return the least that so many clones of a job move, where no time ends them."""
    smallest, largest = blocks(options)
    files = file_count(options)
    least = fio_bytes(str(options.get("filesize", "")).partition("-")[0])
    size = int(options["size"]) if least is None else min(int(options["size"]), least * files)
    per_file = int(options.get("io_size") or size) // files
    in_order = not str(options.get("rw", "")).startswith("rand")
    hole = (fio_bytes(str(options.get("rw_count", 0))) or 0) if in_order else 0
    # fio gives every file the same whole number of blocks, and may end with the first pass where it leaves holes. Of
    # mixed sizes the last one may not fit any more; of two sizes of `bs` at random that may be the first one.
    whole = max(
        per_file // (largest + hole) * smallest if hole or smallest == largest else per_file - largest, smallest
    )
    if smallest != largest and not in_order and _leaves_sizes(_mix(options)):
        whole = smallest
    total = whole * files * _whole(options, "loops")
    limit = fio_bytes(str(options.get("number_ios", ""))) or math.inf
    return min(total, limit * smallest) * clones


def file_count(options: Mapping[str, Scalar]) -> int:
    """Return the number of files of each clone of a job."""
    return len(str(options["filename"]).split(":")) if "filename" in options else _whole(options, "nrfiles")


def _whole(options: Mapping[str, Scalar], name: str) -> int:
    """Return a count of fio's, 1 where it is not given or not known."""
    return fio_bytes(str(options.get(name, 1))) or 1


def written(jobs: Sequence[Mapping[str, Scalar]]) -> Written:
    """Return the data that jobs write: that of each different kind among them."""
    kinds = list(dict.fromkeys(map(_written, jobs)))
    return Written("; ".join(kind.text for kind in kinds), any(kind.reducible for kind in kinds))


def _written(options: Mapping[str, Scalar]) -> Written:
    """Of one job, in the order in which fio looks at its options (fill_io_buffer)."""
    if metadata.is_metadata(options):
        return Written("nothing: files are created, looked up or deleted", False)
    reduced = [f"{name} {options[name]}" for name in _REDUCED if is_on(options, name)]
    if reduced:
        return Written(f"random data, reduced on purpose ({', '.join(reduced)})", True)
    for name, text in (("buffer_pattern", "one pattern again and again"), ("zero_buffers", "zeros")):
        if name in options and is_on(options, name):
            return Written(text, True)
    if is_on(options, "refill_buffers"):
        return Written("random data, new for each write", False)
    if is_on(options, "scramble_buffers", "1"):
        return Written("the same random data in each write, changed in a few bytes of each 512", False)
    return Written("the same random data in each write", True)


_REDUCED = ("buffer_compress_percentage", "dedupe_percentage")


def is_on(options: Mapping[str, Scalar], name: str, default: str = "0") -> bool:
    """Return whether a flag is on; `default`: what fio takes where nothing is said."""
    return str(options.get(name, default)) not in ("0", "False")
