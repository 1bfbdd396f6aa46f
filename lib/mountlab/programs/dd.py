"""dd (of GNU coreutils, uutils or BusyBox): one sequential stream of writes or reads."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import NamedTuple

from mountlab.core.errors import ParameterError, ParseError, ToolError
from mountlab.core.model import FILES, MARK_BYTES, Measurement, Program, Scalar, Target, Workload, everywhere
from mountlab.core.options import Option
from mountlab.core.resolution import Step, last_digit
from mountlab.core.shell import script_text
from mountlab.core.units import MIB
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

FILE = "dd.img"
SOURCE = ".data"
"""What the source of random data has behind the name of the output directory: trial.sh removes it with that."""
RANDOM_BYTES_PER_S = 300e6
"""For the plan's guess: how fast a kernel makes random data."""
TENTHS = re.compile(r"[.,]\d\Z")
UUTILS_CLOCK_S = 1e-3
"""uutils divides the bytes by whole multiples of this."""
ROUNDED = 1e-3
"""dd prints six digits of what dd_again.sh adds up."""
_SUMMARY = re.compile(
    r"^[^\d\n'\"]*(?P<bytes>\d{1,20})[^\d\n(（+]+(?:[(（][^)）\n]*[)）][^\d\n]*)?"
    r"(?P<seconds>\d{1,20}(?:[.,]\d{1,20})?(?:e[+-]?\d{1,3})?) (?P<word>s(?:econds)?)[,，]"
    r"(?:\s*(?P<rate>\d{1,20}(?:[.,]\d{1,20})?)\s?(?P<unit>[^\W\d]*)/)?.*$",
    re.MULTILINE,
)
"""The last line, in any language: '209715200 bytes (210 MB, 200 MiB) copied, 0.279132 s, 751 MB/s'. A verb may come
first (Ukrainian), words may be several (Croatian), commas and brackets may be wide (Chinese). BusyBox writes
'seconds'."""
_VERSION = "dd --version 2>/dev/null || dd --help"
"""BusyBox has no version but at the head of its help."""
_HELP = """
dd --help
dd if=/dev/null iflag=nocache count=0 status=none 2>/dev/null || echo no:nocache
case $(dd --version 2>/dev/null) in
*'(coreutils)'*) ;;
*) dd if="$(command -v dd)" of=/dev/null iflag=direct bs=4096 count=1 2>/dev/null || echo no:direct ;;
esac
dd if=/dev/zero of=/dev/null bs=512 count=1
"""
"""Its help, what it cannot do (uutils before 0.1 has buffers that direct I/O refuses, and 0.0.17 no `nocache`), and
whether it tells how long it took: BusyBox may be built without that line."""


class Dd(Tool):
    """Writes zeros or random data to a file, or reads a file that it wrote before. Writes end with fdatasync unless
    asked otherwise: without a flush dd times the page cache. With `runtime` one trial is several runs of dd.

    With `data: random` a write copies from a file in the box's memory, made before the clock starts; the copy is in
    its time. That data is new for each trial. dd may be BusyBox's or that of uutils, if it prints how long it took and
    has the options of the sweep; otherwise the plan says so. A trial must have copied exactly `bs` times `count` bytes.
    """

    name = "dd"
    programs: tuple[Program, ...] = (
        Program(name="dd", packages=everywhere("coreutils"), version=("sh", "-c", _VERSION, "version", "dd")),
    )
    options: Mapping[str, Option] = {
        "direction": Option(
            kind="choice", choices=("write", "read"), help="write a file, or read a file written before"
        ),
        "data": Option(
            kind="choice",
            choices=("zeros", "random"),
            default="zeros",
            help="what the file holds: zeros, as most published figures; or random data, which nothing compresses. A "
            "write then copies from a file in the box's memory, made before the clock starts",
        ),
        "bs": Option(kind="size", default=MIB, help="bytes of one block"),
        "count": Option(kind="int", help="blocks"),
        "conv": Option(
            kind="choice",
            choices=("fdatasync", "fsync", "none"),
            default="fdatasync",
            help="how a write ends: the flush is timed",
        ),
        "oflag": Option(
            kind="choice", choices=("direct", "dsync", "sync", "none"), default="none", help="how each block is written"
        ),
        "iflag": Option(kind="choice", choices=("direct", "none"), default="none", help="how each block is read"),
        "runtime": Option(
            kind="duration",
            help="run dd again and again, until its runs took so long together; figures are of all of them. Before "
            "each further cold read the file's pages are dropped (posix_fadvise)",
        ),
        "cache": CACHE,
    }
    reserved: Mapping[str, str] = {
        "if": "Mountlab names the file, so that nothing else is read",
        "of": "Mountlab names the file, so that nothing else is overwritten",
    }
    clock_s = 1e-9
    longer = "runtime, or a larger count"
    steps: Mapping[str, Step] = {"bytes": Step(absolute=1)}
    gives: tuple[str, ...] = ("read_bandwidth", "write_bandwidth", "bandwidth", "elapsed", "bytes")
    """`bandwidth` where a log from elsewhere does not tell whether it read or wrote."""

    box_help: tuple[str, ...] = ("sh", "-c", _HELP, "dd-help")

    def check_help(self, options: Mapping[str, Scalar], text: str, *, where: str) -> None:
        """GNU's dd has all options of this table; BusyBox's and that of older uutils lack some."""
        reads = options["direction"] == "read"
        words = set(text.split())
        again_cold = reads and "runtime" in options and options.get("cache") not in ("warm", "as_is")
        if "BusyBox" not in text:
            if "no:direct" in words and "direct" in (options["iflag"], options["oflag"]):
                raise ParameterError(
                    "the box's dd cannot do direct I/O: it does not align its buffers",
                    where=f"{where}.{'iflag' if reads else 'oflag'}",
                    got="'direct'",
                    allowed="none" if reads else "dsync, sync, none",
                    next_step="write one of these, install GNU coreutils on the box, or measure with fio",
                )
            if "no:nocache" in words and again_cold:
                raise _cannot_drop("the box's dd", options, where)
            return
        if not _SUMMARY.search(text):
            raise ParameterError(
                "the box's dd, which is BusyBox's, does not tell how long it took",
                where=f"{where}.tool",
                got=text.strip().splitlines()[-1],
                allowed="'... bytes ... copied, ... seconds, ...'",
                next_step="install coreutils on the box, or measure with fio",
            )
        for name in ("iflag",) if reads else ("conv", "oflag"):
            _check_word(name, str(options[name]), text, where)
        if again_cold:
            raise _cannot_drop("the box's dd, which is BusyBox's,", options, where)

    def check(self, options: Mapping[str, Scalar], *, where: str) -> None:
        needed = {"direction": "write or read", "count": "the number of blocks, such as 256"}
        self.check_given(options, needed, where=where)
        for amount in ("count", "bs"):
            if not options[amount]:
                raise ParameterError("dd would copy nothing", where=f"{where}.{amount}", got="0", allowed="1 or more")
        if options.get("runtime") == 0:
            raise ParameterError(
                "dd runs once where it has no runtime",
                where=f"{where}.runtime",
                got="0s",
                allowed="a time, such as 1s; or none",
            )
        check_cache(options, reads=options["direction"] == "read", where=where)
        idle = "oflag" if options["direction"] == "read" else "iflag"
        if options[idle] != "none":
            raise ParameterError(
                f"{idle} would not be in effect",
                where=f"{where}.{idle}",
                got=repr(options[idle]),
                allowed=f"none, since {'/dev/null' if idle == 'oflag' else 'the source of its data'} is on that side",
            )

    def command(self, workload: Workload, directory: str, output: str, target: Target = FILES) -> Command:
        device = target.kind == "device"
        file = target.device if device else f"{directory}/{FILE}"
        # Beyond our mark, and without cutting off what follows, which a device does not have.
        to = (f"of={file}", *((f"seek={MARK_BYTES}", "oflag=seek_bytes") if device else ()))
        source = (f"if={file}", *((f"skip={MARK_BYTES}", "iflag=skip_bytes") if device else ()))
        options, cache = workload.options, self.cache_of(workload)
        random = _is_random(workload)
        if options["direction"] == "write":
            flags = (*_flag("conv", options), *_flag("oflag", options))
            data = f"{output}{SOURCE}" if random else "/dev/zero"
            made = (_copy_random(f"of={data}", *_extent(options)),) if random else ()
            write = ("dd", f"if={data}", *to, *_extent(options), *flags)
            return Command(argv=_repeat(write, options, ""), prepare=made, cache=cache)
        into = (*to, *_extent(options), "conv=fsync")
        prepare = _copy_random(*into) if random else ("dd", "if=/dev/zero", *into)
        read = ("dd", *source, "of=/dev/null", *_extent(options), *_flag("iflag", options))
        fill = ("dd", *source, "of=/dev/null", *_extent(options))
        again = _repeat(read, options, file if cache == "cold" else "")
        return Command(argv=again, prepare=(prepare,), fill=(fill,), cache=cache)

    def parse(self, workload: Workload, output: ToolOutput) -> list[Measurement]:
        """Rate computed from bytes and seconds: most versions print it to two or three digits only."""
        self.check_exit(output, output.stderr)
        requested, least_s = self.space_bytes(workload), float(workload.options.get("runtime", 0))
        passes = read_summaries(output.stderr) if least_s else [read_summary(output.stderr)]
        other = [run.copied for run in passes if run.copied != requested]
        if other:
            raise ToolError("dd did not copy what was asked", got=f"{other[0]} B", allowed=f"{requested} B")
        # As if all passes were rounded the same way: those that take as long as each other are.
        seconds, step_s = sum(run.seconds for run in passes), sum(run.step_s for run in passes)
        if seconds < least_s * (1 - ROUNDED) - step_s / 2:
            raise ToolError("dd stopped early", got=f"{len(passes)} runs in {seconds:g} s", allowed=f"{least_s:g} s")
        whole = Summary(requested * len(passes), seconds, step_s)
        return measurements(whole, str(workload.options["direction"]))

    def space_bytes(self, workload: Workload, target: Target = FILES) -> int:
        return int(workload.options["bs"]) * int(workload.options["count"])

    def expected_s(self, workload: Workload) -> float:
        passes = 1 if workload.options["direction"] == "write" else 2
        drawn = self.space_bytes(workload) / RANDOM_BYTES_PER_S if _is_random(workload) else 0.0
        once = self.space_bytes(workload) / GUESSED_BYTES_PER_S
        return 0.1 + (passes - 1) * once + max(once, float(workload.options.get("runtime", 0))) + drawn

    def source_bytes(self, workload: Workload) -> int:
        copied = workload.options["direction"] == "write" and _is_random(workload)
        return self.space_bytes(workload) if copied else 0

    def written(self, workload: Workload) -> Written:
        return Written("random data, new for each trial", False) if _is_random(workload) else ZEROS

    def manner(self, workload: Workload) -> Manner:
        return Manner(engine=str(workload.options["direction"]), depth="1", jobs="1")

    def main_metrics(self, workload: Workload) -> tuple[str, ...]:
        return (f"{workload.options['direction']}_bandwidth",)


class Summary(NamedTuple):
    """What dd reports of one run."""

    copied: int
    """Bytes."""
    seconds: float
    step_s: float
    """To what the seconds are rounded."""


def measurements(whole: Summary, side: str) -> list[Measurement]:
    """Return the figures of a summary; `side`: read or write, '' where a log does not tell."""
    rate = whole.copied / whole.seconds
    metric, step = f"{side}_bandwidth" if side else "bandwidth", rate * whole.step_s / whole.seconds
    return [
        Measurement(metric=metric, value=rate, unit="B/s", step=step),
        Measurement(metric="elapsed", value=whole.seconds, unit="s", step=whole.step_s),
        Measurement(metric="bytes", label=side, value=float(whole.copied), unit="B"),
    ]


def read_summary(stderr: str) -> Summary:
    """Return dd's last summary line, in any language and with either decimal sign.

    Raises ParseError where there is none, and where its time is zero or beyond all bounds.
    """
    return read_summaries(stderr)[-1]


def read_summaries(stderr: str) -> list[Summary]:
    """Return each of dd's summary lines, one for each run of it. Raises ParseError as `read_summary`."""
    matches = list(_SUMMARY.finditer(stderr))
    if not matches:
        raise ParseError(
            "dd printed no summary line",
            got=stderr.strip()[-200:] or "nothing",
            allowed="'... bytes ... copied, ... s, ...'",
        )
    summaries = []
    for match in matches:
        # BusyBox, which writes 'seconds', means MiB by MB; it prints microseconds.
        rate = match["rate"] if match["word"] == "s" else ""
        summaries.append(summary(int(match["bytes"]), match["seconds"], rate or "", match["unit"] or ""))
        if not 0 < summaries[-1].seconds < math.inf:
            raise ParseError("dd tells no time that can have passed", got=match[0], allowed="more than 0 s")
    return summaries


def summary(copied: int, seconds: str, rate: str, unit: str) -> Summary:
    """Return what the numbers of a summary line mean, as they are printed; `rate` in `unit` a second, '' where it is
    not known what that counts.

    GNU prints a time by six digits, without zeros at its end, and a rate by two or three. uutils up to 0.0.17 prints
    tenths of a second, and a rate that is finer: it then says how long it took, to a millisecond, since uutils divides
    by whole ones, cut off, and by one at least. (One decimal may be GNU's, too: a time that agrees with the rate
    stands.)
    """
    printed, step_s = as_number(seconds), last_digit(seconds)
    if step_s > 1e-6 and 0 < printed < math.inf and not TENTHS.search(seconds):  # others print microseconds
        step_s = min(step_s, 10.0 ** (math.floor(math.log10(printed)) - 5))
    scale = 1000.0 ** PREFIXES.get(prefix_of(unit), 0)
    per_s, rate_step = (as_number(rate) * scale, last_digit(rate) * scale) if rate else (0.0, 0.0)
    if not copied or not per_s or rate_step / per_s * printed >= step_s:
        return Summary(copied, printed, step_s)
    shortest, longest = copied / (per_s + rate_step / 2), copied / (per_s - rate_step / 2)
    if not (longest >= printed - step_s / 2 and shortest <= printed + step_s / 2):  # the two are not of one run
        return Summary(copied, printed, step_s)
    took = printed if shortest <= printed <= longest else copied / per_s
    return Summary(copied, took, longest - shortest + 2 * UUTILS_CLOCK_S)


PREFIXES = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5, "e": 6}
"""Of a unit, in small letters, to the power of 1000 or 1024 that it stands for."""


def prefix_of(unit: str) -> str:
    """Return the prefix of a unit of bytes, in small letters: 'm' of 'MB', '' of 'bytes'."""
    return "" if unit.lower().startswith("byte") else unit[:1].lower()


def as_number(text: str) -> float:
    """Return a printed number, whatever its decimal sign."""
    return float(text.replace(",", "."))


def _cannot_drop(program: str, options: Mapping[str, Scalar], where: str) -> ParameterError:
    """Return the error for cold reads again and again by a dd without `nocache`."""
    return ParameterError(
        f"{program} cannot drop the pages of a file between two cold reads",
        where=f"{where}.runtime",
        got=str(options["runtime"]),
        allowed="no runtime, or cache: warm",
        next_step="write one of these, or install coreutils on the box",
    )


def _check_word(name: str, value: str, text: str, where: str) -> None:
    """Raise ParameterError where the help lists no such word of `name`."""
    words = {word for listed in re.findall(rf"\b{name}=([\w|]+)", text) for word in listed.split("|")}
    choices = [word for word in Dd.options[name].choices if word in words or word == "none"]
    if value not in choices:
        raise ParameterError(
            f"the box's dd, which is BusyBox's, has no such {name}",
            where=f"{where}.{name}",
            got=repr(value),
            allowed=", ".join(choices),
            next_step="write one of these, or install coreutils on the box",
        )


def _repeat(once: tuple[str, ...], options: Mapping[str, Scalar], cold: str) -> tuple[str, ...]:
    """Return the command, or with `runtime` a script that runs it again and again. `cold`: the file whose pages are
    dropped between two runs."""
    if "runtime" not in options:
        return once
    least = f"{float(options['runtime']) * 1e9:.0f}"
    return ("sh", "-c", script_text("dd_again.sh"), "dd-again", least, cold, *once)


def _extent(options: Mapping[str, Scalar]) -> tuple[str, ...]:
    return (f"bs={options['bs']}", f"count={options['count']}")


def _is_random(workload: Workload) -> bool:
    """Return whether it writes random data; runs of older versions do not say, and wrote zeros."""
    return workload.options.get("data") == "random"


def _copy_random(*words: str) -> tuple[str, ...]:
    """Return a copy of random data. The kernel hands out at most 32 MiB at a time, less than a block may be."""
    return ("dd", "if=/dev/urandom", *words, "iflag=fullblock")


def _flag(name: str, options: Mapping[str, Scalar]) -> tuple[str, ...]:
    return () if options[name] == "none" else (f"{name}={options[name]}",)
