"""dbench: the calls that a file server makes for office clients, from a load file."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mountlab.core.errors import ParseError, ToolError
from mountlab.core.model import FILES, Measurement, Program, Scalar, Target, Workload, everywhere
from mountlab.core.options import Option
from mountlab.core.resolution import Step, last_digit
from mountlab.core.units import MIB
from mountlab.tools.base import CACHE, ZEROS, Command, Manner, Tool, ToolOutput, Written, check_cache
from mountlab.tools.words import check_numbers, check_seconds, option_words

LOAD = "/usr/share/dbench/client.txt"
"""The load file of the package, which dbench reads where it is given no other."""
CLIENT_BYTES = 26 * MIB
"""The most that one client held at any time, seen every 0.15 s, was 23 MiB."""
_FORMS = {"sync": "-s", "sync_directories": "-S", "fsync": "-F"}
_STATED = {"sync": " (sync open)", "sync_directories": " (sync dirs)"}
"""How its output repeats them."""
_BEGIN = re.compile(r"^Running for (\d{1,6}) seconds with load '([^'\n]{1,200})'", re.MULTILINE)
_ROW = re.compile(r"^ ([A-Z][A-Za-z]{1,20}) +(\d{1,15}) +(\d{1,9}\.\d{3}) +(\d{1,12}\.\d{3})$", re.MULTILINE)
_END = re.compile(
    r"^Throughput ([\d.]{1,20}(?:e[+-]\d\d)?) MB/sec((?: \(sync \w{1,5}\))*)  (\d{1,6}) clients  (\d{1,6}) procs"
    r"  max_latency=(\d{1,12}\.\d{3}) ms$", re.MULTILINE,
)  # fmt: skip
_FAILED = re.compile(r"(?!failed to create barrier semaphore).*(?:failed|[Ee]rror|ERROR|FAILED).*")
"""The semaphore is made, and is taken for none where it is the first of the machine: its number is 0."""
LEAST_S = 2
"""In each second dbench takes what was done until then. In the last it ends, so that of one second nothing is known."""


class Dbench(Tool):
    """dbench 4: each client, a process, makes the calls of the load file of its package, as a file server did for an
    office client, again and again, without pauses. Its writes are zeros.

    `bandwidth` is what was read and written by time (1 MB is 10^6 B). The last second, a warm-up of a fifth of the time
    (where that is a second or more) and the removal of its files are not in it. The latency of each call, and how often
    it was made, are of all clients after the warm-up. dbench prints whole µs: a mean of less than half of one has no
    figure.
    """

    name = "dbench"
    programs: tuple[Program, ...] = (
        Program(name="dbench", packages=everywhere("dbench"), version=("dbench", "--help")),
    )
    options: Mapping[str, Option] = {
        "processes": Option(kind="int", help="how many clients there are at a time, each a process of its own"),
        "time": Option(kind="duration", help="how long they run, in whole seconds, 2 or more (-t)"),
        "sync": Option(kind="flag", default=0, help="open each file with O_SYNC (-s)"),
        "sync_directories": Option(kind="flag", default=0, help="flush directories that change (-S)"),
        "fsync": Option(kind="flag", default=0, help="flush after each write (-F)"),
        "cache": CACHE,
    }
    reserved: Mapping[str, str] = {
        "c": "figures of different load files cannot be compared: it is that of the package",
        "loadfile": "figures of different load files cannot be compared: it is that of the package",
        "D": "Mountlab names the directory, so that nothing else is written",
        "directory": "Mountlab names the directory, so that nothing else is written",
        "R": "clients that wait would be as fast on each file system",
        "target-rate": "clients that wait would be as fast on each file system",
        "skip-cleanup": "the removal is not measured in any case",
        "fake-io": "nothing would be read or written",
        "t": "write time",
        "s": "write sync",
        "S": "write sync_directories",
        "F": "write fsync",
    }
    clock_s = 1e-6
    longer = "time"
    steps: Mapping[str, Step] = {
        **dict.fromkeys(("operation_latency", "operation_latency_max"), Step(absolute=1e-6)),
        "operations": Step(absolute=1),
    }
    gives: tuple[str, ...] = ("bandwidth", "operation_latency", "operation_latency_max", "operations")

    def check(self, options: Mapping[str, Scalar], *, where: str) -> None:
        self.check_given(options, {"processes": "a number, such as 4", "time": "such as '60s'"}, where=where)
        check_numbers(self.name, options, {"processes": (1, 1000)}, where=where)
        check_seconds(self.name, options, "time", least=LEAST_S, where=where)
        check_cache(options, reads=False, where=where)

    def command(self, workload: Workload, directory: str, output: str, target: Target = FILES) -> Command:
        options = workload.options
        words = (*option_words(options, _FORMS), "-t", f"{float(options['time']):.0f}", "-D", directory)
        return Command(argv=("dbench", *words, str(options["processes"])), cache=self.cache_of(workload))

    def parse(self, workload: Workload, output: ToolOutput) -> list[Measurement]:
        """Return the bandwidth, the longest latency, and both latencies of each call. Raises ToolError where a client
        failed, or another load was run."""
        complaints = "\n".join(line for line in output.stdout.splitlines() if _FAILED.fullmatch(line))
        self.check_exit(output, output.stderr.strip() or complaints or output.stdout.strip()[-300:])
        begin, end = _BEGIN.search(output.stdout), _END.search(output.stdout)
        if not begin or not end:
            raise ParseError(
                "dbench's report is not whole",
                got=output.stdout.strip()[-120:] or "nothing",
                allowed="'Running for ...', its table, and 'Throughput ...'",
            )
        options = workload.options
        flushed = "".join(_STATED[name] for name in _STATED if options[name])
        asked = (str(int(float(options["time"]))), LOAD, flushed, *(str(options["processes"]),) * 2)
        got = (*begin.groups(), *end.groups()[1:4])
        if got != asked:
            words = "{} s of {}{} by {} clients, {} processes"
            raise ToolError("dbench did not do what was asked", got=words.format(*got), allowed=words.format(*asked))
        if complaints:
            raise ToolError("a client of dbench failed", evidence=complaints)
        rows = _ROW.findall(output.stdout)
        if not rows or not float(end[1]):
            raise ParseError("dbench counted nothing", got=f"{len(rows)} calls, {end[1]} MB/sec", allowed="both")
        return [
            Measurement(metric="bandwidth", value=1e6 * float(end[1]), unit="B/s", step=1e6 * last_digit(end[1])),
            Measurement(metric="operation_latency_max", value=float(end[5]) / 1e3, unit="s"),
            *(row for found in rows for row in _figures(*found)),
        ]

    def space_bytes(self, workload: Workload, target: Target = FILES) -> int:
        return CLIENT_BYTES * int(workload.options["processes"])

    def expected_s(self, workload: Workload) -> float:
        return 1.5 + float(workload.options["time"]) + self.uncounted_s(workload)

    def written(self, workload: Workload) -> Written:
        return ZEROS

    def manner(self, workload: Workload) -> Manner:
        return Manner(engine="calls of a file server", depth="1", jobs=str(workload.options["processes"]))

    def uncounted_s(self, workload: Workload) -> float:
        return float(int(float(workload.options["time"])) // 5)

    def main_metrics(self, workload: Workload) -> tuple[str, ...]:
        return ("bandwidth",)


def _figures(call: str, count: str, mean_ms: str, longest_ms: str) -> list[Measurement]:
    latencies = {"operation_latency": float(mean_ms), "operation_latency_max": float(longest_ms)}
    return [
        Measurement(metric="operations", label=call, value=float(count), unit="1"),
        *(Measurement(metric=name, label=call, value=ms / 1e3, unit="s") for name, ms in latencies.items() if ms),
    ]
