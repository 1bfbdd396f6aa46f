"""filebench 1.5: workloads of many operations on many files, made by us from a table (mountlab.programs.wml)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

from mountlab.core.errors import ParameterError, ParseError, ToolError
from mountlab.core.model import FILES, Measurement, Program, Scalar, Target, Workload, everywhere
from mountlab.core.options import Option, unknown_key
from mountlab.core.resolution import Step, last_digit
from mountlab.core.shell import script_text
from mountlab.core.units import MIB
from mountlab.programs import wml
from mountlab.tools.base import CACHE, GUESSED_BYTES_PER_S, Command, Manner, Tool, ToolOutput, Written, check_cache

SCRIPT, WRAPPER, SETTLE, INSTALLED = "mountlab.f", "filebench.sh", "settle.sh", "installed.sh"
"""Files in the output directory: what filebench runs, and what runs around it."""
SETTLED = "settled"
RUNTIME_S = 60
LATE = 0.9
"""Of work of a fixed amount filebench counts what comes after its clock has started: this share of it must be."""
SLACK = 100
"""Operations that may end while filebench adds up its lines."""
_HINT = (
    "filebench is not packaged here: build the master branch of github.com/filebench/filebench on the box, or leave "
    "out the workloads that need it. Its release 1.5-alpha3 gets the mean latency wrong"
)


class Filebench(Tool):
    """One workload of the table, of the user's own, or of those that are installed with filebench.

    First filebench makes its files. They are flushed, and evicted from the page cache where that is asked. Then it
    measures.

    It writes what is in its buffers, mostly zeros. Sizes of files that vary use the seed of the block; the files and
    places of its operations come from a fixed sequence (caveat `trials-replayed`). It looks for the end of a fixed
    amount of work once a second, so such workloads give latencies and no rates. Release 1.5-alpha3 computes the mean
    latency of its summary wrongly: that figure is then missing.
    """

    name = "filebench"
    programs: tuple[Program, ...] = (
        Program(name="filebench", packages={}, version=("filebench", "-h"), version_word="version", hint=_HINT),
        Program(name="setarch", packages=everywhere("util-linux"), version=("setarch", "--version")),
    )
    options: Mapping[str, Option] = {
        "workload": Option(kind="choice", choices=tuple(sorted(wml.RECIPES)), help="what to do, by its usual name"),
        "wml": Option(kind="text", help="a workload of your own, as text", file_key="wml_file"),
        "installed": Option(kind="text", help="a workload that was installed with filebench, by name"),
        "runtime": Option(kind="duration", help="whole seconds that are measured; 60s where nothing is said"),
        "nfiles": Option(kind="int", help="files (makedirs, removedirs: directories)"),
        "filesize": Option(kind="size", help="of each file, on average where sizes vary"),
        "sizes": Option(kind="choice", choices=("gamma", "fixed"), help="whether file sizes vary around their mean"),
        "dirwidth": Option(kind="int", help="entries of a directory"),
        "prealloc": Option(kind="int", help="per cent of the files that are there at the beginning"),
        "threads": Option(kind="int", help="that do the operations at the same time"),
        "writers": Option(kind="int", help="oltp: processes that write to the database"),
        "iosize": Option(kind="size", help="bytes of one read or write"),
        "appendsize": Option(kind="size", help="the most that is appended at once"),
        "burst": Option(kind="int", help="writes between two fsyncs"),
        "rate": Option(kind="int", help="videoserver: reads a second"),
        "direct": Option(kind="flag", help="past the page cache"),
        "space": Option(kind="size", help="wml, installed: the most that its files take, for the plan"),
        "cache": CACHE,
    }
    reserved: Mapping[str, str] = {
        "dir": "Mountlab names the directory, so that nothing else is touched",
        "run": "write runtime",
    }
    clock_s = 1e-3
    longer = "runtime"
    steps: Mapping[str, Step] = {
        "operation_rate": Step(clock_s=clock_s),
        "elapsed": Step(absolute=clock_s),
        "operations": Step(absolute=1),
    }
    gives: tuple[str, ...] = (
        "operation_rate", "operation_latency", "operation_latency_min", "operation_latency_max", "operations",
        "bandwidth", "elapsed", "bytes",
    )  # fmt: skip

    def check(self, options: Mapping[str, Scalar], *, where: str) -> None:
        sources = [key for key in ("workload", "wml", "installed") if key in options]
        if len(sources) != 1:
            raise ParameterError(
                "filebench needs one workload",
                where=f"{where}.workload",
                got=", ".join(sources) or "nothing",
                allowed="workload: one of the usual names; or wml: a text; or installed: a name",
            )
        if sources == ["workload"]:
            _check_recipe(options, where)
        else:
            _check_own(options, sources[0], where)
        runtime = float(options.get("runtime", RUNTIME_S))
        if runtime < 1 or runtime % 1:
            raise ParameterError(
                "filebench counts whole seconds", where=f"{where}.runtime", got=f"{runtime:g} s", allowed="1s or more"
            )

    def command(self, workload: Workload, directory: str, output: str, target: Target = FILES) -> Command:
        cache = self.cache_of(workload)
        settle = f"sh {output}/{SETTLE} {cache or 'as_is'} {directory}"
        script = f"{output}/{SCRIPT}"
        texts = {
            f"{output}/{WRAPPER}": script_text("filebench.sh"),
            f"{output}/{SETTLE}": script_text("filebench_settle.sh"),
        }
        prepare: tuple[tuple[str, ...], ...] = ()
        if "installed" in workload.options:
            texts[f"{output}/{INSTALLED}"] = script_text("filebench_installed.sh")
            words = (str(workload.options["installed"]), directory, settle, str(_runtime(workload)), script)
            prepare = (("sh", f"{output}/{INSTALLED}", *words),)
        else:
            texts[script] = wml.whole(_make_body(workload, target.seed), directory, settle, _limit(workload))
        argv = ("sh", f"{output}/{WRAPPER}", "filebench", "-f", script)
        name, sizes = (str(workload.options.get(key, "")) for key in ("workload", "sizes"))
        seed = target.seed if name and wml.varies(name, sizes) else None
        return Command(argv=argv, prepare=prepare, cache=cache, files=texts, seed=seed)

    def parse(self, workload: Workload, output: ToolOutput) -> list[Measurement]:
        """Return the measurements. Rates are of the whole run, whose time follows from the count and the rate of its
        summary. A workload that ends by itself gives no rates: filebench looks only once a second whether it has
        ended."""
        printed = f"{output.stdout}\n{output.stderr}"
        self.check_exit(output, printed)
        report = read_report(output.stdout, output.stderr)
        text = output.files.get(SCRIPT) or _make_body(workload)
        kinds, fixed = wml.kinds(text), wml.is_fixed_work(text)
        _check_operations(report, kinds)
        if fixed:
            _check_amount(workload, report)
            _check_latency(report)
        elif report.took_s < (asked_s := _runtime(workload)):
            got, allowed = f"{report.took_s} s", f"{asked_s} s"
            raise ToolError("filebench stopped early", got=got, allowed=allowed, evidence=printed)
        if SETTLED not in output.files:
            raise ToolError("filebench measured without its files being flushed before", got=f"no file {SETTLED!r}")
        return [*figures(report, fixed=fixed), *_sum_bytes(report, kinds)]

    def space_bytes(self, workload: Workload, target: Target = FILES) -> int:
        if "workload" not in workload.options:
            return int(workload.options["space"])
        name, given = str(workload.options["workload"]), _read_amounts(workload.options)
        return wml.space_bytes(name, given, str(workload.options.get("sizes", "")), _runtime(workload))

    def expected_s(self, workload: Workload) -> float:
        # A second passes before filebench measures, and up to one after work of a fixed amount.
        return 2.5 + self.space_bytes(workload) / GUESSED_BYTES_PER_S + (_limit(workload) or 0)

    def written(self, workload: Workload) -> Written:
        return Written("zeros for the most part: what lies in its buffers", True)

    def manner(self, workload: Workload) -> Manner:
        return Manner(jobs=str(workload.options.get("threads", "")))

    def main_metrics(self, workload: Workload) -> tuple[str, ...]:
        return ("operation_latency",) if wml.is_fixed_work(_make_body(workload)) else ("operation_rate",)


# --- what is asked ----------------------------------------------------------------------------------------------------


def _check_recipe(options: Mapping[str, Scalar], where: str) -> None:
    name = str(options["workload"])
    takes = wml.takes(name)
    for key in options:
        if key not in takes | {"workload", "cache"}:
            raise unknown_key(key, sorted(takes), where=f"{where}.{key}", what=f"option of filebench's {name}")
    values = wml.amounts(name, _read_amounts(options))
    for key in sorted(takes & values.keys() - {"prealloc", "direct"}):
        if not values[key] and wml.RECIPES[name].defaults.get(key):
            raise ParameterError("filebench would do nothing", where=f"{where}.{key}", got="0", allowed="1 or more")
    if values.get("prealloc", 0) > 100:
        got = str(values["prealloc"])
        raise ParameterError("more files than there are", where=f"{where}.prealloc", got=got, allowed="0 to 100")
    if values.get("dirwidth", 2) < 2:
        raise ParameterError("a directory needs room", where=f"{where}.dirwidth", got="1", allowed="2 or more")
    moved = {kind for kind in wml.kinds(wml.generate(name, {})).values() if kind in wml.READS | wml.WRITES}
    check_cache(options, reads=not moved or bool(moved & wml.READS), where=where)


def _check_own(options: Mapping[str, Scalar], source: str, where: str) -> None:
    for key in options:
        if key not in (source, "runtime", "space", "cache"):
            raise ParameterError(
                f"{key} is for workloads of Mountlab's own",
                where=f"{where}.{key}",
                got=key,
                allowed="runtime, space, cache: everything else is in the text of the workload",
            )
    if not options.get("space"):
        raise ParameterError(
            "how much space the workload takes is not known",
            where=f"{where}.space",
            got="nothing",
            allowed="the most that its files take, such as 2GiB",
        )
    if source == "installed" and not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,99}", str(options["installed"])):
        raise ParameterError(
            "not the name of a workload",
            where=f"{where}.installed",
            got=repr(options["installed"]),
            allowed="letters, digits, '_' and '-', such as fileserver",
        )
    if source == "wml":
        text = str(options["wml"])
        wml.read_text(text, where=f"{where}.wml")
        in_text, beside = wml.run_seconds(text), options.get("runtime")
        if in_text and beside and in_text != float(beside):
            got = f"{float(beside):g} s, and `run {in_text}` in the text"
            raise ParameterError("two run times", where=f"{where}.runtime", got=got, allowed="one of them")


def _read_amounts(options: Mapping[str, Scalar]) -> dict[str, int]:
    return {key: int(value) for key, value in options.items() if isinstance(value, int) and key != "space"}


def draws_places(workload: Workload) -> bool:
    """Return whether its operations draw files, places or sizes at random, as far as its text tells."""
    body = _make_body(workload)
    return not body or bool(re.search(r"\brandom\b|appendfilerand", body))


def _make_body(workload: Workload, seed: int | None = None) -> str:
    """Return the workload's text, or '' for an installed one, which only the box knows."""
    options = workload.options
    if "wml" in options:
        return wml.read_text(str(options["wml"]), where=f"workloads.{workload.name}.wml")
    if "installed" in options:
        return ""
    return wml.generate(str(options["workload"]), _read_amounts(options), str(options.get("sizes", "")), seed)


def _runtime(workload: Workload) -> int:
    in_text = wml.run_seconds(str(workload.options.get("wml", "")))
    return int(workload.options.get("runtime") or in_text or RUNTIME_S)


def _limit(workload: Workload) -> int | None:
    return None if wml.is_fixed_work(_make_body(workload)) else _runtime(workload)


# --- what was said ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Operations:
    """One line of figures: of an operation, or of the whole run."""

    name: str
    count: int
    bandwidth: float
    """B/s, from a figure in whole tenths of MiB/s."""
    latency_s: float
    """On average."""
    latency_step_s: float
    least_s: float = 0.0
    most_s: float = 0.0
    range_step_s: float = 0.0
    """To what the shortest and the longest time are rounded."""
    rate: float
    rate_step: float


@dataclass(frozen=True, kw_only=True)
class FilebenchReport:
    """What filebench 1.5 prints of one run."""

    took_s: int
    elapsed_s: float
    step_s: float
    """To what that time is known, which follows from how many operations there were, and how many a second."""
    operations: tuple[Operations, ...]
    summary: Operations


_NUMBER = r"\d{1,18}(?:\.\d{1,6})?"
_TENTHS = r"\d{1,18}\.\d"
"""How filebench prints every bandwidth."""
BANDWIDTH_STEP = MIB / 10
"""That in B/s."""
LINE = re.compile(
    rf"\s*(?P<name>[\w.:/-]+)\s+(?P<count>\d{{1,18}})ops\s+(?P<rate>{_NUMBER})ops/s\s+(?P<bandwidth>{_TENTHS})mb/s\s+"
    rf"(?P<latency>{_NUMBER})ms/op(?:\s+\[(?P<least>{_NUMBER})ms\s+-\s+(?P<most>{_NUMBER})ms\])?(?:\s+\[[\d ]*\])?\s*"
)
SUMMARY = re.compile(
    rf"\s*(?:\d+: +)?\d+\.\d+: IO Summary:\s+(?P<count>\d{{1,18}}) ops (?P<rate>{_NUMBER}) ops/s "
    rf"\d+/\d+ rd/wr\s+(?P<bandwidth>{_TENTHS})mb/s\s+(?P<latency>{_NUMBER})ms/op"
)
_FINE = re.compile(r"\.\d{3}\Z")
"""How builds since May 2017 print latencies. Those before, the release 1.5-alpha3 among them, print tenths of ms, and
for the summary divide the time of all operations by the number of those that read or write."""
_REASONS = {
    r"No space left on device": "filebench ran out of space",
    r"syntax error|Illegal character": "filebench could not read the workload",
    r"Run stopped early|could not obtain a file": "filebench ran out of files: give more nfiles, fewer threads or a "
    "shorter runtime",
    r"NO VALID RESULTS": "filebench's run failed",
    r"Failed to (?!write)|failed\b|Cannot ": "filebench failed",
    r"(?s)Starting .*no run command": "filebench's work was over before it began to count: give it more work",
    r"no run command": "the workload has no run line",
    r"Running\.\.\.": "filebench was ended while it measured",
    r"Starting ": "filebench was ended, or hung, before it measured: it does so under address-space randomisation",
    r"Filebench Version": "filebench was ended before it measured",
}
"""What filebench says (or the last thing that it said) to what happened, the most telling first."""


def read_report(stdout: str, stderr: str = "", *, whole: bool = True) -> FilebenchReport:
    """Return the figures of one run of filebench 1.5. Raises ToolError with the reason where there are none, ParseError
    where they are not `whole`: without that, the summary alone is enough."""
    printed = f"{stdout}\n{stderr}"
    if re.search(r"Run stopped early|NO VALID RESULTS", printed) or "IO Summary" not in stdout:
        _raise_reason(printed)
    lines = stdout.splitlines(keepends=True)
    starts = [number for number, line in enumerate(lines) if "Per-Operation Breakdown" in line]
    ends = [number for number, line in enumerate(lines) if "IO Summary" in line]
    if not starts and len(ends) == 1 and not whole:
        starts = [ends[0] - 1]
    if len(starts) != 1 or len(ends) != 1 or ends[0] < starts[0]:
        got = f"{len(starts)} breakdowns, {len(ends)} summaries"
        raise ParseError("filebench's report is not that of one run", got=got, allowed="one of each")
    summary = _match_line(SUMMARY, lines, ends[0])
    total = _read_operations(summary, "")
    if not _FINE.search(summary["latency"]):
        total = replace(total, latency_s=0.0)
    if not total.count or not total.rate:
        raise ToolError("filebench did nothing", got=summary[0])
    elapsed = total.count / total.rate
    step = elapsed * total.rate_step / total.rate
    between = [number for number in range(starts[0] + 1, ends[0]) if lines[number].strip()]
    rows = tuple(_read_row(lines, number, elapsed, step) for number in between)
    took = re.search(r"Run took (\d{1,9}) seconds", stdout)
    if (whole and not took) or len({row.name for row in rows}) != len(rows):
        raise ParseError("filebench's report is not whole", got="no run time" if not took else "one name twice")
    took_s = int(took[1]) if took else round(elapsed)
    return FilebenchReport(took_s=took_s, elapsed_s=elapsed, step_s=step, operations=rows, summary=total)


def _raise_reason(printed: str) -> NoReturn:
    for pattern, what in _REASONS.items():
        if reason := re.search(pattern, printed):
            line = next((line for line in printed.splitlines() if reason[0][-20:] in line), "")
            raise ToolError(what, got=line.strip() or "no IO Summary", allowed="an IO Summary", evidence=printed)
    raise ParseError(
        "filebench printed no IO Summary", got=printed.strip()[-200:] or "nothing", allowed="an IO Summary"
    )


def _match_line(pattern: re.Pattern[str], lines: list[str], number: int) -> re.Match[str]:
    match = pattern.fullmatch(lines[number].rstrip("\r\n"))
    if not match or not lines[number].endswith("\n"):
        raise ParseError(
            "a line of filebench's report cannot be read",
            where=f"line {number + 1}",
            got=lines[number].strip()[:120],
            allowed="NAME COUNTops RATEops/s BANDWIDTHmb/s LATENCYms/op [LEASTms - MOSTms]",
        )
    return match


def _read_row(lines: list[str], number: int, elapsed_s: float, step_s: float) -> Operations:
    """Read one operation. Its rate, printed in whole numbers, is recomputed, and must be near what is printed."""
    match = _match_line(LINE, lines, number)
    printed, rate = float(match["rate"]), int(match["count"]) / elapsed_s
    if abs(printed - rate) > 1 + 2e-3 * rate:
        raise ParseError(
            "filebench's count and rate do not agree",
            where=f"line {number + 1}",
            got=match[0].strip(),
            allowed=f"{rate:.0f} ops/s in {elapsed_s:.3f} s",
        )
    return replace(_read_operations(match, match["name"]), rate=rate, rate_step=rate * step_s / elapsed_s)


def _read_operations(match: re.Match[str], name: str) -> Operations:
    printed = match.groupdict()
    count = int(printed["count"])
    times = {key: float(printed.get(key) or 0) / 1e3 if count else 0.0 for key in ("latency", "least", "most")}
    return Operations(
        name=name,
        count=count,
        bandwidth=float(printed["bandwidth"]) * MIB,
        latency_s=times["latency"],
        latency_step_s=last_digit(f"{printed['latency']}e-3"),
        least_s=times["least"],
        most_s=times["most"],
        range_step_s=last_digit(f"{printed.get('least') or 0}e-3"),
        rate=float(printed["rate"]),
        rate_step=last_digit(printed["rate"]),
    )


def _check_operations(report: FilebenchReport, kinds: Mapping[str, str]) -> None:
    """Every operation of the workload must be in the report: a cut or mixed report has fewer or others."""
    seen = {row.name for row in report.operations}
    if kinds and seen != set(kinds):
        raise ToolError(
            "filebench did not report what was asked", got=", ".join(sorted(seen)), allowed=", ".join(sorted(kinds))
        )
    counted = sum(row.count for row in report.operations if kinds.get(row.name) not in wml.IDLE)
    # The summary leaves out operations of some kinds; the kinds of an installed workload are unknown here.
    short = report.summary.count - counted
    if short > SLACK or (kinds and short < -SLACK):
        raise ParseError(
            "filebench's lines and its summary do not agree",
            got=f"{counted} operations by line",
            allowed=f"{report.summary.count}",
        )


def _check_amount(workload: Workload, report: FilebenchReport) -> None:
    """Work of a fixed amount: most of it must have been counted."""
    name = str(workload.options.get("workload", ""))
    recipe = wml.RECIPES.get(name)
    if recipe is None or not recipe.ends:
        return
    requested = int(recipe.count.format_map(wml.amounts(name, _read_amounts(workload.options))))
    counted = next(row.count for row in report.operations if row.name == recipe.ends)
    if counted < LATE * requested:
        raise ToolError(
            "filebench counted only the end of its work, since its clock starts late",
            got=f"{counted} x {recipe.ends}",
            allowed=f"{LATE:.0%} of {requested} or more",
            next_step="give it more work",
        )


def _check_latency(report: FilebenchReport) -> None:
    """Of work of a fixed amount the mean latency is the answer."""
    if not report.summary.latency_s:
        raise ToolError(
            "filebench tells no mean latency that can be believed",
            got="a build of before May 2017, or less than 1 us",
            allowed="latencies with three digits after the point",
            next_step=_HINT,
        )


def figures(report: FilebenchReport, *, fixed: bool = False) -> Iterator[Measurement]:
    """Yield figures of the whole run and of each operation; no rates of work of a fixed amount. What is below the last
    digit that filebench prints is missing, and not zero."""
    yield Measurement(metric="elapsed", value=report.elapsed_s, unit="s", step=report.step_s)
    for row in (report.summary, *report.operations):
        rates = {
            "operation_rate": (row.rate, "1/s", row.rate_step), "bandwidth": (row.bandwidth, "B/s", BANDWIDTH_STEP),
        }  # fmt: skip
        latencies = {
            "operation_latency": (row.latency_s, "s", row.latency_step_s),
            "operation_latency_min": (row.least_s, "s", row.range_step_s),
            "operation_latency_max": (row.most_s, "s", row.range_step_s),
        }
        yield Measurement(metric="operations", label=row.name, value=float(row.count), unit="1")
        for metric, (value, unit, step) in (latencies if fixed else rates | latencies).items():
            if value:
                yield Measurement(metric=metric, label=row.name, value=value, unit=unit, step=step)


def _sum_bytes(report: FilebenchReport, kinds: Mapping[str, str]) -> Iterator[Measurement]:
    """Yield bytes by side, where the workload's text tells which operations read and which write."""
    for side, of_side in (("read", wml.READS), ("write", wml.WRITES)):
        bandwidths = [row.bandwidth for row in report.operations if kinds.get(row.name) in of_side]
        moved, step = sum(bandwidths) * report.elapsed_s, len(bandwidths) * BANDWIDTH_STEP * report.elapsed_s
        if moved:
            yield Measurement(metric="bytes", label=side, value=moved, unit="B", step=step)
