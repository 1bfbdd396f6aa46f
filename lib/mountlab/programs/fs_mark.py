"""fs_mark: many small files, created, written, flushed and closed by one process or many."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import NoReturn

from mountlab.core.errors import ParameterError, ParseError, ToolError
from mountlab.core.model import FILES, Measurement, Program, Scalar, Target, Workload, everywhere
from mountlab.core.options import Option
from mountlab.core.resolution import Step
from mountlab.core.units import KIB, MIB
from mountlab.tools.base import CACHE, ZEROS, Command, Manner, Tool, ToolOutput, Written, check_cache, checksum
from mountlab.tools.words import run_inside

LOG = "fs_log.txt"
SYNCS: dict[str, int] = {
    "none": 0, "fsync": 1, "sync": 2, "post_reverse": 3, "sync_post_reverse": 4, "post": 5, "sync_post": 6,
}  # fmt: skip
"""Our word for each of fs_mark's methods (-S)."""
FLUSH_THE_MACHINE = ("sync", "sync_post_reverse", "sync_post")
"""Methods that call sync(), which writes out every file system of the machine."""
CALLS = ("creat", "write", "fsync", "sync", "close", "unlink")
"""The system calls that -v times, in the order of its columns."""
LETTERS: dict[str, str] = {
    "count": "n", "file_size": "s", "sync": "S", "threads": "t", "write_size": "w", "name_length": "p",
    "random_length": "r", "directories": "D", "files_per_directory": "N", "loops": "L",
}  # fmt: skip
BLOCK_BYTES = 4 * KIB
FEWEST_RANDOM = 8
"""Letters and digits at the end of a name. Names begin with the second; with fewer, files would share a name."""
MOST: dict[str, int] = {
    "count": 1_000_000, "threads": 64, "write_size": MIB, "file_size": 2**31 - 1, "name_length": 127,
}  # fmt: skip
"""fs_mark's own limits; beyond that of file_size its numbers overflow, and at a name of 128 it is aborted."""
_GUESSED_FILES_PER_S, _GUESSED_FLUSHED_PER_S = 20_000.0, 1_000.0

HEADER = re.compile(r"^\s*#\s*(\S*fs_mark)\s+(.*)$")
THREADS = re.compile(r"^\s*#\s+Version (\S+), (\d{1,9}) thread\(s\) starting", re.ASCII)
TABLE = re.compile(r"^\s*#?FSUse%(\s+)Count\s+Size\s+Files/sec\s+App Overhead(\s+CREAT \(Min/Avg/Max\).*)?\s*$")
_ROW = re.compile(
    r"^\s*(\d{1,20})\s+(\d{1,20})\s+(\d{1,20})\s+(\d{1,20}\.\d)\s+(\d{1,20})((?:\s+\d{1,20}){18})?\s*$", re.ASCII
)
RATE_STEP = 0.1
"""Files a second have one digit behind the point."""
_LAST_COLUMN = re.compile(r" *\d+$", re.ASCII)
_GAP = " " * 8
"""What fs_mark prints between its first two headings. Where a paste changed it, the widths say nothing."""
_WIDTH, _WIDTH_VERBOSE = 17, 9
"""Characters of a row's last column, with the space before it: a narrower row was cut off."""
_LOOKS_LIKE_A_ROW = re.compile(r"^\s+\.?\d", re.ASCII)
_COMPLAINT = re.compile(
    r"^(Insufficient free space|fopen failed|fscanf read|fs_mark:|Error in |fill_dir:|Usage: fs_mark)"
)


@dataclass(frozen=True)
class Iteration:
    """One row of the table: what was done since the row before."""

    used_percent: int
    count: int
    """Files written since fs_mark began."""
    size: int
    files_per_s: float
    overhead_us: int
    calls_us: Mapping[str, tuple[int, int, int]]
    """System call to least, mean and most microseconds; {} without -v."""


@dataclass(frozen=True)
class FsMarkReport:
    """What fs_mark printed of one run."""

    options: Mapping[str, str]
    """As it repeats them: letter to value; '' for one that takes none."""
    threads: int
    """0: unknown."""
    each: int
    """Files of one iteration."""
    iterations: tuple[Iteration, ...]

    def label(self, row: Iteration) -> str:
        """'iteration 2': by its count, since rows of a log may be missing."""
        return f"iteration {row.count // self.each}"


class FsMark(Tool):
    """Makes files in its directory and counts how many a second. Each thread is a process; `count` is for each thread
    and each loop.

    It writes zeros. It prints no version, so a checksum of the program stands for one. Its clock is the wall clock.
    """

    name = "fs_mark"
    programs: tuple[Program, ...] = (
        # Only the head of each output states its version.
        Program(name="fs_mark", packages=everywhere("fs_mark", apt="fsmark"), version=checksum("fs_mark")),
    )
    options: Mapping[str, Option] = {
        "count": Option(kind="int", help="files for each thread and each loop (-n)"),
        "file_size": Option(kind="size", help="size of each file (-s)"),
        "loops": Option(kind="int", default=1, help="how often all of it is done; the files stay (-L)"),
        "sync": Option(
            kind="choice",
            choices=tuple(SYNCS),
            default="fsync",
            help="when files are flushed (-S 0 to 6). `none`: never. `fsync`: each before it is closed. `sync`: sync() "
            "after all, and one fsync per thread. `post_reverse`: after all each is opened again and flushed, last "
            "first. `post`: the same in order. With `sync_` the same after a sync()",
        ),
        "directories": Option(kind="int", help="subdirectories in which files are laid (-D)"),
        "files_per_directory": Option(kind="int", help="files in a subdirectory before the next is taken (-N)"),
        "threads": Option(kind="int", default=1, help="processes at a time (-t)"),
        "write_size": Option(kind="size", default=16 * KIB, help="bytes of one write() (-w)"),
        "name_length": Option(kind="int", default=40, help="bytes of a file's name (-p)"),
        "random_length": Option(kind="int", default=24, help="random bytes at the end of a name (-r)"),
        "call_times": Option(kind="flag", default=0, help="time each system call too (-v)"),
        "keep_files": Option(kind="flag", default=1, help="leave the files; without, each is unlinked, and timed (-k)"),
        "cache": CACHE,
    }
    reserved: Mapping[str, str] = {
        **{letter: f"write {name}" for name, letter in LETTERS.items()},
        "v": "write call_times",
        "k": "write keep_files",
        "F": "the plan could not tell how much space it takes: give count and loops",
        "d": "Mountlab names the directory, so that nothing else is written",
        "l": "Mountlab names the log file, which would lie in the directory of the run",
    }
    clock_s = 1e-6
    longer = "a larger count"
    steps: Mapping[str, Step] = {
        # Whole microseconds, the rest cut off: a call may have taken one more, which is half of this step.
        **dict.fromkeys(("operation_latency", "operation_latency_min", "operation_latency_max"), Step(absolute=2e-6)),
        "file_rate": Step(clock_s=clock_s),
        "elapsed": Step(absolute=clock_s),
        "space_used": Step(absolute=0.01),
        "bytes": Step(absolute=1),
    }
    gives: tuple[str, ...] = (
        "file_rate", "operation_latency", "operation_latency_min", "operation_latency_max", "app_overhead",
        "space_used", "elapsed", "bytes",
    )  # fmt: skip

    def check(self, options: Mapping[str, Scalar], *, where: str) -> None:
        needed = {"count": "a number, such as 1000", "file_size": "text with a unit, such as '4KiB'"}
        self.check_given(options, needed, where=where)
        for name in ("count", "loops", "threads", "write_size", "name_length"):
            if not 1 <= int(options[name]) <= MOST.get(name, 1_000_000):
                raise _beyond_error(name, options, f"1 to {MOST.get(name, 1_000_000)}", where)
        if int(options["file_size"]) > MOST["file_size"]:
            raise _beyond_error("file_size", options, f"at most {MOST['file_size']} B", where)
        if not FEWEST_RANDOM <= int(options["random_length"]) <= int(options["name_length"]):
            # With few random bytes files of one second share a name, and fs_mark counts files that it did not make.
            raise _beyond_error(
                "random_length", options, f"{FEWEST_RANDOM} to name_length ({options['name_length']})", where
            )
        if not options["keep_files"] and int(options["loops"]) > 1:
            raise _beyond_error("keep_files", options, "true with loops above 1: fs_mark's -L keeps the files", where)
        _check_directories(options, where)
        check_cache(options, reads=False, where=where)

    def command(self, workload: Workload, directory: str, output: str, target: Target = FILES) -> Command:
        options = workload.options
        given = [(LETTERS[name], _format_value(name, options[name])) for name in LETTERS if name in options]
        # -L keeps the files: without it fs_mark runs once and unlinks them.
        words = [
            word for letter, value in given if letter != "L" or options["keep_files"] for word in (f"-{letter}", value)
        ]
        # Its own limit for the name of a directory can be as low as 40 bytes, so it is started inside of it.
        verbose = ("-v",) if options["call_times"] else ()
        cache = self.cache_of(workload)
        argv = ("fs_mark", "-d", ".", "-l", f"{output}/{LOG}", *words, *verbose)
        return Command(argv=run_inside(directory, *argv), cache=cache)

    def parse(self, workload: Workload, output: ToolOutput) -> list[Measurement]:
        """Return files a second over all iterations, and of each where there are several."""
        self.check_exit(output, _find_evidence(output))
        report = read_report(output.stdout)
        _check_requested(workload, report)
        return measurements(report)

    def space_bytes(self, workload: Workload, target: Target = FILES) -> int:
        """Return the space for the files: they take whole blocks, and stay until the trial ends."""
        file_bytes = max(1, math.ceil(int(workload.options["file_size"]) / BLOCK_BYTES)) * BLOCK_BYTES
        return file_bytes * _count_files(workload)

    def expected_s(self, workload: Workload) -> float:
        rate = _GUESSED_FILES_PER_S if workload.options["sync"] == "none" else _GUESSED_FLUSHED_PER_S
        return 0.1 + _count_files(workload) / rate

    def written(self, workload: Workload) -> Written:
        return ZEROS

    def manner(self, workload: Workload) -> Manner:
        return Manner(engine="write", depth="1", jobs=str(workload.options["threads"]))

    def main_metrics(self, workload: Workload) -> tuple[str, ...]:
        return ("file_rate",)


def read_report(text: str) -> FsMarkReport:
    """Return the only run in a text (its standard output, or its log file). Raises ParseError where there is none,
    several, or one that is not whole, and ToolError where fs_mark says that it failed."""
    lines = text.split("\n")
    starts = [at for at, line in enumerate(lines) if HEADER.match(line)]
    if not starts:
        raise _header_error(lines)
    if len(starts) != 1:
        raise ParseError("the output of one run of fs_mark is needed", got=f"{len(starts)} runs", allowed="one")
    return _read_run(lines, starts[0])


def _header_error(lines: list[str]) -> ToolError | ParseError:
    usage = next((at for at, line in enumerate(lines) if line.startswith("Usage: fs_mark")), None)
    if usage is not None:
        return ToolError("fs_mark did not take its options, and printed its usage", evidence="\n".join(lines[:usage]))
    got = next((line for line in lines if line.strip()), "nothing")
    return ParseError(
        "fs_mark's header is missing",
        got=got[:200],
        allowed="'#  fs_mark  -n ...', above the table",
        next_step="paste the output from the line '#  fs_mark' on: the rows are checked by what it says",
    )


def _read_run(lines: list[str], start: int) -> FsMarkReport:
    header = HEADER.match(lines[start])
    table = next((at for at in range(start, len(lines)) if TABLE.match(lines[at])), None)
    version = next((match for line in lines[start:table] if (match := THREADS.match(line))), None)
    if not header or not version or table is None:
        raise ParseError(
            "fs_mark's header is not whole",
            where=f"line {start + 1}",
            got=lines[start][:200],
            allowed="its options, its version, and the line 'FSUse% Count Size Files/sec App Overhead'",
        )
    options, threads = options_of(header[2]), int(version[2])
    files = stated_number(options, "n", 1000) * threads
    report = FsMarkReport(options, threads, files, read_rows(lines, table))
    _check_rows(report, table + 1)
    return report


def read_rows(lines: list[str], table: int) -> tuple[Iteration, ...]:
    """Return the rows below the headings of a table, which are a line counted from 0."""
    headings: re.Match[str] = TABLE.match(lines[table])  # type: ignore[assignment]
    form = _Form(verbose=bool(headings[2]), as_printed=headings[1] == _GAP)
    # What ends without a newline may be cut off, and a number that was cut off is another number.
    below = range(table + 1, len(lines))
    last = len(lines) - 1 if not form.as_printed else None
    return tuple(row for at in below if (row := _read_row(lines[at], at + 1, form, cut_off=at == last)))


def options_of(echoed: str) -> dict[str, str]:
    """'-n  1000  -v  -d  /srv ' as {'n': '1000', 'v': '', 'd': '/srv'}."""
    words = echoed.split()
    pairs = zip_longest(words, words[1:], fillvalue="")
    return {
        word[1]: word[2:] or ("" if after.startswith("-") else after)
        for word, after in pairs
        if re.match(r"-[A-Za-z]", word)
    }


@dataclass(frozen=True)
class _Form:
    """What the headings of a table tell of its rows."""

    verbose: bool
    """Whether they have times of system calls (-v)."""
    as_printed: bool
    """Whether the columns still have their widths."""


def _read_row(line: str, number: int, form: _Form, *, cut_off: bool) -> Iteration | None:
    """Read a row of the table; None for another line (what `time` adds, averages of newer versions)."""
    if _COMPLAINT.match(line):
        raise ToolError("fs_mark did not finish", where=f"line {number}", evidence=line)
    match = _ROW.match(line)
    if not match and not _LOOKS_LIKE_A_ROW.match(line):
        return None
    if not match or cut_off or bool(match[6]) != form.verbose or not float(match[4]) or not _is_wide(line, form):
        raise ParseError(
            "a row of fs_mark's table cannot be read",
            where=f"line {number}",
            got=line[:200],
            allowed=f"{23 if form.verbose else 5} numbers, each column in its full width, and files a second above 0",
        )
    times = [int(word) for word in (match[6] or "").split()]
    triples = zip(times[::3], times[1::3], times[2::3], strict=True)
    calls = dict(zip(CALLS, triples, strict=True)) if times else {}
    for call, (least, mean, most) in calls.items():
        # fs_mark has no longest sync(). It ignores calls of 0 us when it looks for the least, which may so be above the
        # mean.
        if call != "sync" and max(least, mean) > most:
            raise ParseError(
                f"fs_mark's times of {call} do not agree",
                where=f"line {number}",
                got=line.strip()[:200],
                allowed=f"at most {most} us, the longest, and not {max(least, mean)} us",
            )
    return Iteration(int(match[1]), int(match[2]), int(match[3]), float(match[4]), int(match[5]), calls)


def _is_wide(line: str, form: _Form) -> bool:
    last = _LAST_COLUMN.search(line.rstrip())
    wide = last is not None and len(last[0]) >= (_WIDTH_VERBOSE if form.verbose else _WIDTH)
    return wide or not form.as_printed


def _check_rows(report: FsMarkReport, line: int) -> None:
    """Raise unless there are as many rows as loops, each with as many files more as its threads make."""
    if not report.iterations:
        raise ToolError("fs_mark printed no figure", where=f"after line {line}", got="no row", allowed="one a loop")
    loops = max(1, stated_number(report.options, "L", 1))
    if "F" not in report.options and len(report.iterations) != loops:
        raise ToolError("fs_mark stopped early", got=f"{len(report.iterations)} iterations", allowed=f"{loops} (-L)")
    for number, row in enumerate(report.iterations, start=1):
        if row.count != report.each * number:
            raise ToolError(
                "fs_mark did not make the files that were asked",
                where=f"iteration {number}",
                got=f"{row.count} files",
                allowed=f"{report.each * number}: -n x threads x iterations",
            )
        if "s" in report.options and row.size != stated_number(report.options, "s", 0):
            raise ParseError(
                "fs_mark's table and its header do not agree",
                where=f"iteration {number}",
                got=f"files of {row.size} B",
                allowed=f"{report.options['s']} B (-s)",
            )


def _find_evidence(output: ToolOutput) -> str:
    """Its complaints, the reason last: on stdout stands why, on stderr only what came of it."""
    complaints = [line for line in output.stdout.splitlines() if _COMPLAINT.match(line)]
    lines = [*output.stderr.splitlines(), *complaints]
    return "\n".join(lines or output.stdout.strip().splitlines()[-2:])


def stated_number(options: Mapping[str, str], letter: str, otherwise: int) -> int:
    """Return the number of an option in the header. Raises ParseError where it is none."""
    text = options.get(letter, str(otherwise))
    if not re.fullmatch(r"[0-9]{1,10}", text):
        raise ParseError(f"fs_mark repeats -{letter} without a number", where="its header", got=repr(text[:60]))
    return int(text)


def _check_requested(workload: Workload, report: FsMarkReport) -> None:
    """What fs_mark says it was asked must be what we asked."""
    options = workload.options
    for name, letter in LETTERS.items():
        if name not in options or (letter == "L" and not options["keep_files"]):
            continue
        requested, echoed = _format_value(name, options[name]), report.options.get(letter, "nothing")
        if requested != echoed:
            _refuse(f"-{letter} ({name})", echoed, requested)
    for row in report.iterations:
        if row.size != options["file_size"]:
            _refuse("the size of its files", f"{row.size} B", f"{options['file_size']} B")
    if bool(report.iterations[0].calls_us) != bool(options["call_times"]):
        _refuse("-v", "no call times" if options["call_times"] else "call times", "the other")


def _refuse(where: str, got: str, requested: str) -> NoReturn:
    raise ToolError("fs_mark did not run what was asked", where=where, got=got, allowed=requested)


def measurements(report: FsMarkReport) -> list[Measurement]:
    """Return every figure of a run. The whole is all files by all time, which the rate of each iteration tells; a mean
    of the rates would give slow iterations too little weight."""
    rows = report.iterations
    elapsed_s = sum(report.each / row.files_per_s for row in rows)
    # As if all rates were rounded the same way: those that are equal are.
    step_s = sum(RATE_STEP * report.each / row.files_per_s**2 for row in rows)
    made = report.each * len(rows)
    rate = made / elapsed_s
    figures = [
        Measurement(metric="file_rate", value=rate, unit="1/s", step=rate * step_s / elapsed_s),
        Measurement(metric="elapsed", value=elapsed_s, unit="s", step=step_s),
        Measurement(metric="space_used", value=rows[-1].used_percent / 100, unit="1"),
    ]
    if rows[-1].size:
        figures.append(Measurement(metric="bytes", label="write", value=float(rows[-1].size * made), unit="B"))
    if overhead_us := sum(row.overhead_us for row in rows):
        figures.append(Measurement(metric="app_overhead", value=overhead_us / 1e6, unit="s", step=len(rows) / 1e6))
    if len(rows) > 1:
        figures += iteration_rates(report)
    return figures + _list_latencies(report)


def iteration_rates(report: FsMarkReport) -> list[Measurement]:
    """Return the rate of each iteration, under its label."""
    return [
        Measurement(metric="file_rate", label=report.label(row), value=row.files_per_s, unit="1/s", step=RATE_STEP)
        for row in report.iterations
    ]


def _list_latencies(report: FsMarkReport) -> list[Measurement]:
    """Times of system calls. fs_mark counts whole microseconds and cuts off the rest: a call that it did not make, or
    that took less than one, is missing and not zero."""
    if not report.iterations[0].calls_us:
        return []
    method = report.options.get("S", "1")
    figures: list[Measurement] = []
    for call in CALLS:
        times = [row.calls_us[call] for row in report.iterations]
        # After sync() one file is flushed for each thread, and fs_mark divides its time by the number of all files.
        if call == "fsync" and method == "2":
            continue
        label = "reopen+fsync+close" if call == "fsync" and method != "1" else call
        values = {
            "operation_latency_min": min(least for least, _, _ in times),
            "operation_latency": sum(mean for _, mean, _ in times) / len(times),
            "operation_latency_max": max(most for _, _, most in times),
        }
        figures += [Measurement(metric=m, label=label, value=us / 1e6, unit="s") for m, us in values.items() if us]
    return figures


def _count_files(workload: Workload) -> int:
    return math.prod(int(workload.options[name]) for name in ("count", "threads", "loops"))


def _format_value(name: str, value: Scalar) -> str:
    return str(SYNCS[str(value)]) if name == "sync" else str(value)


def _check_directories(options: Mapping[str, Scalar], where: str) -> None:
    """Without a number of files for each, fs_mark takes the next directory every 180 seconds: it would use one."""
    given = [name for name in ("directories", "files_per_directory") if name in options]
    if len(given) == 1:
        missing = "files_per_directory" if given == ["directories"] else "directories"
        raise ParameterError(
            "directories and files_per_directory go together",
            where=f"{where}.{missing}",
            got="nothing",
            allowed="both: without files_per_directory fs_mark changes the directory every 180 seconds only",
        )
    for name, least in (("directories", 2), ("files_per_directory", 1)):
        if name in options and not least <= int(options[name]) <= MOST["count"]:
            raise _beyond_error(name, options, f"{least} to {MOST['count']}", where)


def _beyond_error(name: str, options: Mapping[str, Scalar], allowed: str, where: str) -> ParameterError:
    return ParameterError(
        "fs_mark cannot do this", where=f"{where}.{name}", got=f"{name} {options[name]}", allowed=allowed
    )
