"""sysbench fileio: reads, writes and flushes of blocks in a set of files."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mountlab.core.errors import ParameterError, ParseError
from mountlab.core.model import FILES, Measurement, Program, Scalar, Target, Workload, everywhere
from mountlab.core.options import Option
from mountlab.core.resolution import Step, last_digit
from mountlab.core.units import KIB, MIB
from mountlab.tools.base import (
    CACHE,
    GUESSED_BYTES_PER_S,
    ZEROS,
    Command,
    Manner,
    Tool,
    ToolOutput,
    Written,
    check_cache,
)
from mountlab.tools.words import (
    check_numbers,
    check_seconds,
    check_stated,
    option_words,
    refuse_direct,
    run_inside,
)

MODES: dict[str, str] = {
    "seqwr": "sequential write (creation)", "seqrewr": "sequential rewrite", "seqrd": "sequential read",
    "rndrd": "random read", "rndwr": "random write", "rndrw": "random r/w",
}  # fmt: skip
"""Each mode, and what sysbench calls it in its output."""
READS, WRITES = ("seqrd", "rndrd", "rndrw"), ("seqwr", "seqrewr", "rndwr", "rndrw")
_FLAGS = {"none": "(none)", "direct": "directio", "sync": "sync", "dsync": "dsync"}
"""What files are opened with, and how its output names that."""
_FILES_FORMS = {"files": "--file-num={}", "size": "--file-total-size={}", "bs": "--file-block-size={}"}
_FORMS = {
    "mode": "--file-test-mode={}", "threads": "--threads={}", "fsync_every": "--file-fsync-freq={}",
    "fsync_all": "--file-fsync-all=on", "fsync_mode": "--file-fsync-mode={}", "read_ratio": "--file-rw-ratio={}",
}  # fmt: skip
_RATES = {"reads/s": "read_iops", "writes/s": "write_iops", "fsyncs/s": "sync_rate"}
_SIDES = {"read": "reads/s", "write": "writes/s"}
_LATENCIES = {
    "min": "operation_latency_min",
    "max": "operation_latency_max",
    "99th percentile": "operation_latency_p99",
}
_FIGURE = re.compile(r"^ +([a-z0-9 ,/A-Z]{1,40}): +(\d{1,18}(?:\.\d{1,6})?)s?$", re.MULTILINE)
_BIN = 0.018
"""A percentile is the upper end of one of 1024 bins, which lie evenly on a logarithmic scale from 1 us to 100 s."""
_GUESSED_REQUESTS_PER_S = 1000


class Sysbench(Tool):
    """sysbench fileio: blocks are read, written or both, in order or at random offsets, in `files` files of `size` all
    together. They are laid out before, but for `seqwr`, which creates them itself, and begins again when all are full.

    After every `fsync_every` requests each of the files is flushed, one after the other: with its defaults 128 flushes
    after 100 requests. These are requests too: `events` counts them, and latencies have theirs. A flush at the end
    (`fsync_end`) is within the time that rates are divided by, and in no latency. It writes zeros.
    """

    name = "sysbench"
    programs: tuple[Program, ...] = (
        Program(name="sysbench", packages=everywhere("sysbench"), version=("sysbench", "--version")),
    )
    options: Mapping[str, Option] = {
        "mode": Option(
            kind="choice",
            choices=tuple(MODES),
            help="sequential (seqrd, seqwr, and seqrewr, which writes over what is there) or random (rndrd, rndwr, "
            "rndrw) reads and writes (--file-test-mode)",
        ),
        "size": Option(kind="size", help="all files together (--file-total-size)"),
        "files": Option(kind="int", default=128, help="how many files hold that (--file-num)"),
        "bs": Option(kind="size", default=16 * KIB, help="bytes of a request (--file-block-size)"),
        "threads": Option(kind="int", default=1, help="threads at a time (--threads)"),
        "time": Option(kind="duration", help="how long it runs, in whole seconds (--time); or give events"),
        "events": Option(kind="int", help="how many requests it makes, flushes among them (--events); or give time"),
        "fsync_every": Option(
            kind="int", default=100, help="requests before all files are flushed; 0: never (--file-fsync-freq)"
        ),
        "fsync_all": Option(
            kind="flag", default=0, help="flush after each write, and at no other time (--file-fsync-all)"
        ),
        "fsync_end": Option(kind="flag", default=1, help="flush all files at the end (--file-fsync-end)"),
        "fsync_mode": Option(
            kind="choice", choices=("fsync", "fdatasync"), default="fsync", help="how it flushes (--file-fsync-mode)"
        ),
        "flags": Option(
            kind="choice", choices=tuple(_FLAGS), default="none", help="how files are opened (--file-extra-flags)"
        ),
        "read_ratio": Option(kind="text", help="of rndrw: reads for each write, 1.5 by default (--file-rw-ratio)"),
        "cache": CACHE,
    }
    reserved: Mapping[str, str] = {
        "file-io-mode": "with others than sync a request is not over when its latency is taken",
        "validate": "its checksums are computed within the time of a request",
        "rand-seed": "each block has a seed of its own; -p seed=... repeats those of a run",
        "percentile": "the figure is the 99th percentile, as of other tools",
        **{
            form.removeprefix("--").partition("=")[0]: f"write {name}"
            for name, form in {**_FILES_FORMS, **_FORMS}.items()
            if form.removeprefix("--").partition("=")[0] != name
        },
        "file-extra-flags": "write flags",
        "file-fsync-end": "write fsync_end",
    }
    clock_s = 1e-4
    longer = "time or events"
    steps: Mapping[str, Step] = dict.fromkeys(("operations", "bytes"), Step(absolute=1))
    gives: tuple[str, ...] = (
        *_RATES.values(), "read_bandwidth", "write_bandwidth", "operation_latency", *_LATENCIES.values(), "operations",
        "elapsed", "bytes",
    )  # fmt: skip

    def check(self, options: Mapping[str, Scalar], *, where: str) -> None:
        self.check_given(options, {"mode": "seqrd, rndrw ...", "size": "text with a unit, such as '1GiB'"}, where=where)
        limits = {"files": (1, 100_000), "bs": (1, 1024 * MIB), "threads": (1, 1024), "events": (1, 10**12)}
        check_numbers(self.name, options, limits, where=where)
        whole = int(options["files"]) * int(options["bs"])
        if not int(options["size"]) or int(options["size"]) % whole:
            raise ParameterError(
                "sysbench would cut the end of its files off",
                where=f"{where}.size",
                got=f"{options['size']} B",
                allowed=f"a multiple of files times bs, {whole} B",
            )
        if ("time" in options) == ("events" in options):
            raise ParameterError(
                "sysbench needs to know when to end",
                where=f"{where}.time",
                got="both time and events" if "time" in options else "neither time nor events",
                allowed="one of them",
            )
        check_seconds(self.name, options, "time", where=where)
        ratio = str(options.get("read_ratio", "1.5"))
        if not re.fullmatch(r"\d{1,6}(\.\d{1,2})?", ratio) or ("read_ratio" in options and options["mode"] != "rndrw"):
            raise ParameterError(
                "not a ratio of reads to writes",
                where=f"{where}.read_ratio",
                got=repr(ratio),
                allowed="a number such as '1.5', of mode: rndrw",
            )
        check_cache(options, reads=options["mode"] in READS, where=where)

    def command(self, workload: Workload, directory: str, output: str, target: Target = FILES) -> Command:
        options, seed = workload.options, () if target.seed is None else (f"--rand-seed={target.seed % 2**31 or 1}",)
        files = ("sysbench", "fileio", *option_words(options, _FILES_FORMS))
        end = (f"--time={float(options.get('time', 0)):g}", f"--events={options.get('events', 0)}", "--percentile=99")
        flushed = f"--file-fsync-end={'on' if options['fsync_end'] else 'off'}"
        flags = () if options["flags"] == "none" else (f"--file-extra-flags={options['flags']}",)
        how = (*option_words(options, _FORMS), flushed, *flags, *end, *seed)
        fill = ("find", directory, "-type", "f", "-exec", "cat", "{}", "+")
        return Command(
            argv=run_inside(directory, *files, *how, "run"),
            prepare=() if options["mode"] == "seqwr" else (run_inside(directory, *files, "prepare"),),
            fill=(fill,) if options["mode"] in READS else (),
            cache=self.cache_of(workload),
            seed=target.seed,
        )

    def parse(self, workload: Workload, output: ToolOutput) -> list[Measurement]:
        """Return rates, bandwidths and latencies. What was not done has no figure, and neither has a latency that
        sysbench prints as 0.00 ms."""
        self.check_exit(output, output.stderr.strip() or _fatal(output.stdout) or output.stdout.strip()[-300:])
        options, lines = workload.options, {line.strip() for line in output.stdout.splitlines()}
        check_stated(self.name, lines, list(_requested(options)))
        texts = dict(_FIGURE.findall(output.stdout))
        missing = {*_RATES, *_LATENCIES, "sum", "total time", "total number of events"} - {*texts}
        if missing:
            raise ParseError(
                "sysbench's report is not whole", got=f"no {sorted(missing)[0]!r}", allowed="each figure of its report"
            )
        events, elapsed_s = int(float(texts["total number of events"])), float(texts["total time"])
        _check_amount(options, events, elapsed_s)
        rows = [
            Measurement(metric="elapsed", value=elapsed_s, unit="s", step=1e-4),
            Measurement(metric="operations", value=float(events), unit="1"),
            Measurement(
                metric="operation_latency", value=float(texts["sum"]) / 1e3 / events, unit="s", step=1e-5 / events
            ),
        ]
        for name, metric in _RATES.items():
            if float(texts[name]):
                rows.append(
                    Measurement(metric=metric, value=float(texts[name]), unit="1/s", step=last_digit(texts[name]))
                )
        for name, metric in _LATENCIES.items():
            value = float(texts[name]) / 1e3
            if value:
                step = max(1e-5, _BIN * value if "percentile" in name else 0)
                rows.append(Measurement(metric=metric, value=value, unit="s", step=step))
        return [*rows, *_moved(options, texts, events)]

    def space_bytes(self, workload: Workload, target: Target = FILES) -> int:
        return int(workload.options["size"])

    def expected_s(self, workload: Workload) -> float:
        options = workload.options
        ran = float(options.get("time", 0)) or int(options["events"]) / _GUESSED_REQUESTS_PER_S
        return 0.5 + ran + int(options["size"]) / GUESSED_BYTES_PER_S

    def written(self, workload: Workload) -> Written:
        return ZEROS

    def manner(self, workload: Workload) -> Manner:
        return Manner(engine="pread, pwrite", depth="1", jobs=str(workload.options["threads"]))

    def refuses(self, kind: str, workload: Workload) -> str | None:
        return refuse_direct(kind, workload.options, "flags", "direct")

    def main_metrics(self, workload: Workload) -> tuple[str, ...]:
        mode = str(workload.options["mode"])
        if mode.startswith("seq"):
            return ("read_bandwidth",) if mode in READS else ("write_bandwidth",)
        return tuple(f"{side}_iops" for side, modes in (("read", READS), ("write", WRITES)) if mode in modes)


def _size_text(size: float) -> str:
    """'16MiB', as sysbench prints it."""
    unit = ""
    for larger in "KMGT":
        if size < KIB:
            break
        size, unit = size / KIB, f"{larger}i"
    return f"{size:.5g}{unit}B"


def _requested(options: Mapping[str, Scalar]) -> list[str]:
    """Return the lines by which sysbench repeats what it was asked to do."""
    size, files, mode = int(options["size"]), int(options["files"]), str(options["mode"])
    flushes = ["Calling fsync() after each write operation."]
    if not options["fsync_all"]:
        every, end = int(options["fsync_every"]), options["fsync_end"]
        flushes = [f"Periodic FSYNC enabled, calling fsync() each {every} requests."] if every else []
        flushes += ["Calling fsync() at the end of test, Enabled."] if end else []
    return [
        f"Number of threads: {options['threads']}",
        f"Extra file open flags: {_FLAGS[str(options['flags'])]}",
        f"{files} files, {_size_text(size / files)} each",
        f"{_size_text(size)} total file size",
        f"Block size {_size_text(int(options['bs']))}",
        *flushes,
        "Using synchronous I/O mode",
        f"Doing {MODES[mode]} test",
    ]


def _check_amount(options: Mapping[str, Scalar], events: int, elapsed_s: float) -> None:
    """Raise where it did less than it was asked."""
    done = events if "events" in options else elapsed_s
    wanted = float(options.get("events", options.get("time", 0)))
    if done < wanted or not events or not elapsed_s or ("events" in options and done != wanted):
        raise ParseError(
            "sysbench did not do what was asked",
            where="total number of events" if "events" in options else "total time",
            got=f"{done:g}",
            allowed=f"{wanted:g}" if "events" in options else f"{wanted:g} s or more, and an event",
        )


def _moved(options: Mapping[str, Scalar], texts: Mapping[str, str], events: int) -> list[Measurement]:
    """Return bandwidth and bytes of each side. A request is one block, and each rate is divided by the same time; which
    is found from the number of all events. Flushes at the end are no events, and those of fsync_all are in the event of
    their write."""
    rates = {name: float(texts[name]) for name in _RATES}
    at_end = int(options["files"]) if options["fsync_end"] and rates["writes/s"] and not options["fsync_all"] else 0
    counted = rates["reads/s"] + rates["writes/s"] + (0 if options["fsync_all"] else rates["fsyncs/s"])
    if not counted:
        raise ParseError("sysbench's rates are zero", got="0.00 reads/s, writes/s", allowed="more, since it had events")
    seconds, size = (events + at_end) / counted, int(options["bs"])
    rows = list[Measurement]()
    for side, name in _SIDES.items():
        rate, step = size * rates[name], size * last_digit(texts[name])
        if rate:
            moved = float(round(rates[name] * seconds) * size)
            rows.append(Measurement(metric=f"{side}_bandwidth", value=rate, unit="B/s", step=step))
            rows.append(Measurement(metric="bytes", label=side, value=moved, unit="B", step=step * seconds))
    return rows


def _fatal(text: str) -> str:
    return "\n".join(line for line in text.splitlines() if line.startswith(("FATAL", "WARNING")))
