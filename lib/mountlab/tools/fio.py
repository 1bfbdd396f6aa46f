"""fio 3: any pattern of reads and writes, read from the json+ file that it writes."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from mountlab.errors import ParameterError, ParseError, ToolError
from mountlab.model import FILES, MARK_BYTES, Measurement, Program, Scalar, Target, Workload, everywhere
from mountlab.options import Option
from mountlab.tools.base import CACHE, GUESSED_BYTES_PER_S, Cache, Command, ToolOutput, check_cache
from mountlab.units import GIB, KIB, MIB, NS_PER_S

FILE = "fio.json"
READS = ("read", "randread", "readwrite", "rw", "randrw", "trimread")
WRITES = ("write", "randwrite", "readwrite", "rw", "randrw")
PERCENTILES = {"p50": "50.000000", "p95": "95.000000", "p99": "99.000000", "p99_9": "99.900000"}
MOST = 1e18
"""Above any honest figure of a report: an exabyte, or thirty years in nanoseconds."""
_NAME = re.compile(r"[a-z][a-z0-9_]*\Z")
_OURS = "Mountlab sets it, so that fio works in its own directory only"
_PATHS = "it would make fio read, write or run something outside its own directory"
_GROWS = "the plan could not tell how much space it takes: give size and numjobs"


class Fio:
    """The flexible I/O tester. One job description, its threads reported together."""

    name = "fio"
    programs: tuple[Program, ...] = (Program(name="fio", packages=everywhere("fio"), version=("fio", "--version")),)
    options: Mapping[str, Option] = {
        "rw": Option(kind="choice", choices=("read", "write", "randread", "randwrite", "rw", "readwrite", "randrw")),
        "bs": Option(kind="size", default=4096),
        "size": Option(kind="size"),
        "io_size": Option(kind="size"),
        "numjobs": Option(kind="int", default=1),
        "iodepth": Option(kind="int"),
        "ioengine": Option(kind="text", default="psync"),
        "direct": Option(kind="flag"),
        "time_based": Option(kind="flag"),
        "runtime": Option(kind="duration"),
        "ramp_time": Option(kind="duration"),
        "end_fsync": Option(kind="flag"),
        "fsync": Option(kind="int"),
        "fdatasync": Option(kind="int"),
        "refill_buffers": Option(kind="flag", default=1),
        "rwmixread": Option(kind="int"),
        "cache": CACHE,
    }
    any_option = True
    reserved: Mapping[str, str] = {
        **dict.fromkeys(("name", "directory", "output", "output_format", "eta", "group_reporting"), _OURS),
        **dict.fromkeys(
            ("filename", "filename_format", "opendir", "exec_prerun", "exec_postrun", "include", "server", "client",
             "daemonize", "read_iolog", "write_iolog", "replay_redirect", "aux_path", "trigger", "trigger_file",
             "write_bw_log", "write_lat_log", "write_hist_log", "write_iops_log", "mem", "iomem", "hugepage_file",
             "merge_blktrace_file", "program", "arguments"),
            _PATHS,
        ),
        **dict.fromkeys(("fill_device", "fill_fs", "filesize"), _GROWS),
        "readwrite": "write rw", "blocksize": "write bs", "io_limit": "write io_size",
        **dict.fromkeys(("offset", "offset_increment", "offset_align"), "it could lead to our mark on a raw device"),
        "ioscheduler": "it would leave another scheduler on the box",
        "create_only": "Mountlab uses it to lay out files before a read is measured",
    }  # fmt: skip
    clock_s = 1e-3
    """fio states run times in whole milliseconds, and computes bandwidth from them."""

    box_help: tuple[str, ...] = ()

    def check_help(self, options: Mapping[str, Scalar], text: str, *, where: str) -> None:
        """Nothing is asked of the box."""

    def check(self, options: Mapping[str, Scalar], *, where: str) -> None:
        for needed, example in (("rw", "read, write, randread, ..."), ("size", "text with a unit, such as 256MiB")):
            if needed not in options:
                raise ParameterError(f"fio needs {needed}", where=f"{where}.{needed}", got="nothing", allowed=example)
        if options.get("time_based") and not options.get("runtime"):
            raise ParameterError(
                "time_based without a runtime never ends",
                where=f"{where}.runtime",
                got="nothing",
                allowed="text such as '60s'",
            )
        if options.get("ramp_time") and not options.get("time_based"):
            # fio does not count what it moves during the ramp: without a set time no count can be expected.
            raise ParameterError(
                "ramp_time needs time_based",
                where=f"{where}.ramp_time",
                got="no time_based",
                allowed="time_based: true, and a runtime",
            )
        if not options["numjobs"] or not options["bs"] or int(options["size"]) < int(options["bs"]):
            raise ParameterError(
                "fio would do nothing",
                where=where,
                got=f"numjobs {options['numjobs']}, size {options['size']}, bs {options['bs']}",
                allowed="one job or more, and a size of one block or more",
            )
        check_cache(options, reads=options["rw"] in READS, where=where)
        self._check_names(options, where)

    def _check_names(self, options: Mapping[str, Scalar], where: str) -> None:
        """Whole names of fio's own, and values that name no path: a path would lead out of our directory."""
        for name, value in options.items():
            if not _NAME.match(name) or str(value).startswith("external:"):
                raise ParameterError(
                    "not an option that can be given to fio",
                    where=f"{where}.{name}",
                    got=repr(value),
                    allowed="fio's own options, in lower case",
                )
            self._check_whole(name, where)
            if "/" in str(value):
                raise ParameterError(
                    "an option of fio's may name no path",
                    where=f"{where}.{name}",
                    got=repr(value),
                    allowed="values without '/': Mountlab gives fio its own directory, and nothing else",
                )

    def _check_whole(self, name: str, where: str) -> None:
        """fio takes shortened names: exec_pre runs a command as exec_prerun does. Only whole names pass."""
        known = (*self.options, *self.reserved)
        longer = [other for other in known if other.startswith(name)]
        if name not in known and longer:
            raise ParameterError(
                "a shortened option of fio's",
                where=f"{where}.{name}",
                got=name,
                allowed="whole names",
                next_step=f"write {' or '.join(longer)}",
            )

    def command(self, workload: Workload, directory: str, output: str, target: Target = FILES) -> Command:
        where = (
            (f"--filename={target.device}", f"--offset={MARK_BYTES}")
            if target.kind == "device"
            else (f"--directory={directory}",)
        )
        base = ("fio", "--name=mountlab", *where, *_arguments(workload.options))
        cache: Cache | None = workload.options.get("cache")  # type: ignore[assignment]
        reads = workload.options["rw"] in READS
        report = ("--group_reporting=1", "--eta=never", "--output-format=json+", f"--output={output}/{FILE}")
        return Command(
            argv=(*base, *report, *(("--invalidate=0",) if cache in ("warm", "as_is") else ())),
            prepare=_prepare(workload, base, where, directory, target),
            warm=(_warm(self.space_bytes(workload, target), directory, target),) if reads and cache == "warm" else (),
            cache=cache,
        )

    def parse(self, workload: Workload, output: ToolOutput) -> list[Measurement]:
        """Bandwidth, I/O rate and latency of each direction. Latency means are of the whole latency (submission and
        completion), percentiles of the completion latency, as fio computes them."""
        job = _only_job(_read_json(output))
        if output.exit_status != 0 or job["error"]:
            raise ToolError(
                f"fio failed with exit status {output.exit_status}, error {job['error']}", evidence=output.stderr
            )
        _check_echo(workload, job)
        sides = [side for side in ("read", "write") if _number(job[side], "io_bytes", side) > 0]
        runtimes_s = [_number(job[side], "runtime", side) / 1e3 for side in sides]
        moved = sum(_number(job[side], "io_bytes", side) for side in sides)
        _check_amount(workload, moved, max(runtimes_s, default=0.0))
        elapsed = Measurement(metric="elapsed", value=max(runtimes_s), unit="s")
        return [row for side in sides for row in _side(side, job[side])] + [elapsed]

    def space_bytes(self, workload: Workload, target: Target = FILES) -> int:
        """Every job has a file of its own; of a device all jobs use the same part."""
        jobs = 1 if target.kind == "device" else int(workload.options["numjobs"])
        return int(workload.options["size"]) * jobs

    def expected_s(self, workload: Workload) -> float:
        options = workload.options
        layout = self.space_bytes(workload) / GUESSED_BYTES_PER_S if options["rw"] in READS else 0.0
        fixed = int(options.get("io_size") or options["size"]) * int(options["numjobs"]) / GUESSED_BYTES_PER_S
        return 0.5 + layout + float(options.get("ramp_time", 0)) + float(options.get("runtime", fixed))

    def main_metrics(self, workload: Workload) -> tuple[str, ...]:
        sides = [side for side, patterns in (("read", READS), ("write", WRITES)) if workload.options["rw"] in patterns]
        return tuple(f"{side}_bandwidth" for side in sides)


def _prepare(
    workload: Workload, base: tuple[str, ...], where: tuple[str, ...], directory: str, target: Target
) -> tuple[tuple[str, ...], ...]:
    """What must be there before a read is measured: files laid out; blocks of a device written, since one that never
    was answers from nothing. Files that can only be mapped get their size first, which fio would write."""
    options = workload.options
    fill = (
        "fio",
        "--name=mountlab",
        *where,
        "--rw=write",
        f"--size={options['size']}",
        "--refill_buffers=1",
        "--eta=never",
    )
    if target.kind == "mapped":
        names = [f"{directory}/mountlab.{job}.0" for job in range(int(options["numjobs"]))]
        mapped = (*fill, f"--numjobs={options['numjobs']}", "--ioengine=mmap", f"--bs={options['bs']}")
        return (("truncate", "-s", str(options["size"]), *names), *((mapped,) if options["rw"] in READS else ()))
    if options["rw"] not in READS:
        return ()
    if target.kind == "device":
        return ((*fill, f"--bs={MIB}", "--ioengine=psync", "--end_fsync=1"),)
    return ((*base, "--create_only=1", "--eta=never"),)


def _warm(size: int, directory: str, target: Target) -> tuple[str, ...]:
    """Reads everything once, so that the page cache holds it."""
    if target.kind != "device":
        return ("find", directory, "-type", "f", "-exec", "cat", "{}", "+")
    skip, count = MARK_BYTES // MIB, math.ceil(size / MIB)
    return ("dd", f"if={target.device}", "of=/dev/null", f"bs={MIB}", f"skip={skip}", f"count={count}")


def _arguments(options: Mapping[str, Scalar]) -> tuple[str, ...]:
    def text(value: Scalar) -> str:
        return f"{value:.15g}" if isinstance(value, float) else str(value)

    return tuple(f"--{name}={_duration(name, text(value))}" for name, value in options.items() if name != "cache")


def _duration(name: str, text: str) -> str:
    """fio reads times without a unit as seconds, and fractions not at all: give microseconds."""
    return f"{round(float(text) * 1e6)}us" if name in ("runtime", "ramp_time") else text


def _read_json(output: ToolOutput) -> dict[str, Any]:
    text = output.files.get(FILE, "")
    # Notes and errors of fio's may stand before the JSON, and a summary after it.
    start = re.search(r"^\{", text, re.MULTILINE)
    if not start:
        raise ToolError(
            f"fio wrote no report (exit status {output.exit_status})", evidence=output.stderr or output.stdout
        )
    try:
        report, _ = json.JSONDecoder().raw_decode(text, start.start())
        return dict(report)
    except json.JSONDecodeError as error:
        raise ParseError("fio's report is not whole", where=f"{FILE}, line {error.lineno}", got=error.msg) from error


def _only_job(report: dict[str, Any]) -> dict[str, Any]:
    jobs = report.get("jobs")
    if not isinstance(jobs, list) or len(jobs) != 1:
        raise ParseError(
            "one group of jobs was asked for", where=FILE, got=f"{len(jobs) if isinstance(jobs, list) else 'no'} jobs"
        )
    job = _mapping({"jobs[0]": jobs[0]}, "jobs[0]", "jobs")
    for key in ("read", "write", "job options"):
        _mapping(job, key, "jobs[0]")
    _number(job, "error", "jobs[0]")
    return job


def _mapping(parent: Mapping[str, Any], key: str, place: str) -> dict[str, Any]:
    value = parent.get(key)
    if not isinstance(value, dict):
        raise _lacks(key, place, value, "an object")
    return value


def _number(parent: Mapping[str, Any], key: str, place: str) -> float:
    """A count or figure of the report: finite, and not below zero. Integers stay integers."""
    value = parent.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= MOST:
        raise _lacks(key, place, value, "a number from 0 to 1e18")
    return value


def _lacks(key: str, place: str, value: object, allowed: str) -> ParseError:
    got = "nothing" if value is None else f"{str(value)[:60]} ({type(value).__name__})"
    what = "fio's report is not json+ of version 3"
    return ParseError(what, where=f"{FILE}: {place}.{key}", got=got, allowed=allowed)


def _check_echo(workload: Workload, job: dict[str, Any]) -> None:
    """What fio says it was asked must be what we asked."""
    echoed = job["job options"]
    for name in ("rw", "bs", "size", "numjobs", "ioengine", "direct", "io_size"):
        asked = workload.options.get(name)
        if asked is not None and name in echoed and _in_bytes(str(echoed[name])) != _in_bytes(str(asked)):
            raise ToolError(
                "fio did not run what was asked",
                where=f"{FILE}: job options.{name}",
                got=repr(echoed[name]),
                allowed=repr(asked),
            )


def _in_bytes(text: str) -> str:
    """'4k' as '4096': fio repeats sizes as they were written, and counts k, m and g in 1024s."""
    match = re.fullmatch(r"(\d{1,15})([kmg])", text.lower())
    return str(int(match[1]) * {"k": KIB, "m": MIB, "g": GIB}[match[2]]) if match else text


def _check_amount(workload: Workload, moved: float, runtime_s: float) -> None:
    """A killed fio leaves a whole report with error 0: the work done, or the time spent, must be what was asked."""
    options = workload.options
    if not moved:
        raise ToolError("fio moved no bytes", where=FILE, got="io_bytes 0")
    asked_s = float(options.get("runtime") or math.inf)
    block, jobs = int(options["bs"]), int(options["numjobs"])
    files = int(options.get("nrfiles", 1))
    # fio gives every file the same whole number of blocks.
    asked = int(options.get("io_size") or options["size"]) // files // block * block * files * jobs
    if runtime_s >= 0.99 * asked_s or (moved >= asked and not options.get("time_based")):
        return
    raise ToolError(
        "fio stopped early",
        where=FILE,
        got=f"{moved} B in {runtime_s} s",
        allowed=f"{asked_s} s"
        if options.get("time_based")
        else f"{asked} B" + (f" or {asked_s} s" if asked_s < math.inf else ""),
    )


def _side(side: str, data: Mapping[str, Any]) -> list[Measurement]:
    if not _number(data, "runtime", side):
        raise ParseError("fio ran for less than its clock can tell (1 ms)", where=f"{FILE}: {side}.runtime", got="0")
    rates = [
        Measurement(metric=f"{side}_bandwidth", value=float(_number(data, "bw_bytes", side)), unit="B/s"),
        Measurement(metric=f"{side}_iops", value=float(_number(data, "iops", side)), unit="1/s"),
    ]
    for rate in rates:
        if not rate.value:
            raise ParseError("fio moved bytes at no rate", where=f"{FILE}: {side}", got=f"{rate.metric} 0")
    moved = Measurement(metric="bytes", label=side, value=float(_number(data, "io_bytes", side)), unit="B")
    return [*rates, moved, *_latencies(side, data)]


def _latencies(side: str, data: Mapping[str, Any]) -> Iterator[Measurement]:
    """Mean and percentiles, where fio counted them. Where they are switched off, and where its clock was too coarse
    to see any time pass, they are missing and not zero."""
    whole = _mapping(data, "lat_ns", side)
    if _number(whole, "N", f"{side}.lat_ns") and (mean := _number(whole, "mean", f"{side}.lat_ns")):
        yield Measurement(metric=f"{side}_latency_mean", value=mean / NS_PER_S, unit="s")
    completion = _mapping(data, "clat_ns", side)
    percentiles = _mapping(completion, "percentile", side) if "percentile" in completion else {}
    for name, key in PERCENTILES.items():
        if key in percentiles and (value := _number(percentiles, key, f"{side}.clat_ns.percentile")):
            yield Measurement(metric=f"{side}_latency_{name}", value=value / NS_PER_S, unit="s")
