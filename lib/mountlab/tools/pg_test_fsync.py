"""pg_test_fsync, which comes with PostgreSQL: how often a second each way of flushing a page can be done."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mountlab.errors import ParameterError, ParseError, ToolError
from mountlab.model import FILES, Measurement, Program, Scalar, Target, Workload
from mountlab.options import Option
from mountlab.tools.base import CACHE, Cache, Command, ToolOutput, Written, check_cache
from mountlab.tools.resolution import Step
from mountlab.units import MIB

FILE = "pg_test_fsync.out"
FILE_BYTES = 16 * MIB
"""It writes one segment of PostgreSQL's write-ahead log, and then the first pages of it again and again."""
TESTS_ON_LINUX = 16
LONGEST_TEST_S = 3600
METHODS = ("open_datasync", "fdatasync", "fsync", "fsync_writethrough", "open_sync")
NO_DIRECT_IO = "the file system, with its mount options, does not take direct I/O"
NOT_HERE = "the operating system has no such method"
_WHOLE_NUMBER = re.compile(r"[0-9]{1,9}")
_ROW = re.compile(r"^ {8}(?P<label>.*\S) +(?P<rate>\d{1,15}[.,]\d{3}) +\S.* (?P<us>\d{1,15}) \S.*$", re.ASCII)
_NOT_AVAILABLE = re.compile(r"^ {8}(?P<label>.*\S) {2,}[^\W\d][^\d*]*(?P<star>\*?)$")
_INDENTED = re.compile(r"^ {8}")


@dataclass(frozen=True)
class _Place:
    """Which row of the output it is: `words` stand in its label in every language."""

    section: str
    name: str
    words: tuple[str, ...]
    optional: bool
    """Whether it may be n/a."""


@dataclass(frozen=True)
class Row:
    """One test: its rate, or the reason for which there is none."""

    label: str
    rate: float | None
    missing: str = ""


@dataclass(frozen=True)
class Report:
    """What pg_test_fsync printed, whatever the language."""

    seconds: int
    rows: tuple[Row, ...]


class PgTestFsync:
    """Each method by which PostgreSQL can flush its log, one after the other, in a file of its own."""

    name = "pg_test_fsync"
    programs: tuple[Program, ...] = (
        Program(
            name="pg_test_fsync",
            # Debian has it in the server's package only, which sets up a database that starts with the machine.
            packages={"pacman": "postgresql", **dict.fromkeys(("dnf", "zypper"), "postgresql-contrib")},
            hint="pg_test_fsync comes with PostgreSQL's server (Debian: `apt-get install postgresql`), which also "
            "sets up a database that starts with the machine: that is for you to do, and `systemctl disable --now "
            "postgresql` keeps it still",
            version=("pg_test_fsync", "--version"),
            places=("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/lib/postgresql*/bin", "/opt/pgsql*/bin"),
        ),
    )  # fmt: skip
    options: Mapping[str, Option] = {
        "time_per_test": Option(kind="duration", default=5.0, help="how long each of some 16 tests lasts (-s)"),
        "cache": CACHE,
    }
    any_option = False
    reserved: Mapping[str, str] = {
        "f": "Mountlab names the file, so that nothing else is overwritten",
        "filename": "Mountlab names the file, so that nothing else is overwritten",
        "s": "write time_per_test", "secs-per-test": "write time_per_test", "secs_per_test": "write time_per_test",
    }  # fmt: skip
    clock_s = 1e-6
    steps: Mapping[str, Step] = {"sync_rate": Step(absolute=1e-3), "operation_latency": Step(inverse=1e-3)}
    gives: tuple[str, ...] = ("sync_rate", "operation_latency")

    box_help: tuple[str, ...] = ()

    def check_help(self, options: Mapping[str, Scalar], text: str, *, where: str) -> None:
        """Nothing is asked of the box."""

    def check(self, options: Mapping[str, Scalar], *, where: str) -> None:
        seconds = float(options["time_per_test"])
        if not 1 <= seconds <= LONGEST_TEST_S or seconds != int(seconds):
            raise ParameterError(
                "pg_test_fsync counts whole seconds", where=f"{where}.time_per_test", got=f"{seconds:g} s",
                allowed=f"1s to {LONGEST_TEST_S}s, without a fraction",
            )  # fmt: skip
        check_cache(options, reads=False, where=where)

    def command(self, workload: Workload, directory: str, output: str, target: Target = FILES) -> Command:
        cache: Cache | None = workload.options.get("cache")  # type: ignore[assignment]
        seconds = str(_seconds(workload))
        return Command(argv=("pg_test_fsync", "-s", seconds, "-f", f"{directory}/{FILE}"), cache=cache)

    def parse(self, workload: Workload, output: ToolOutput) -> list[Measurement]:
        """A rate and a latency of each method that the file system offers; the others are missing."""
        if output.exit_status != 0:
            said = output.stderr.strip() or "\n".join(output.stdout.strip().splitlines()[-2:])
            raise ToolError(f"pg_test_fsync failed with exit status {output.exit_status}", evidence=said)
        report = read_report(output.stdout)
        if report.seconds != _seconds(workload):
            raise ToolError(
                "pg_test_fsync did not run what was asked", where="its first line",
                got=f"{report.seconds} s per test", allowed=f"{_seconds(workload)} s",
            )  # fmt: skip
        return measurements(report)

    def space_bytes(self, workload: Workload, target: Target = FILES) -> int:
        return FILE_BYTES

    def expected_s(self, workload: Workload) -> float:
        return 0.5 + TESTS_ON_LINUX * _seconds(workload)

    def written(self, workload: Workload) -> Written:
        return Written("random data, the same in each write", False)

    def main_metrics(self, workload: Workload) -> tuple[str, ...]:
        return ("sync_rate",)


def _seconds(workload: Workload) -> int:
    return int(float(workload.options["time_per_test"]))


def measurements(report: Report) -> list[Measurement]:
    """The rate of each row, and the time of one operation, which is its inverse: the time that is printed is rounded
    to whole microseconds."""
    rates = [(row.label, row.rate) for row in report.rows if row.rate is not None]
    return [
        *(Measurement(metric="sync_rate", label=label, value=rate, unit="1/s") for label, rate in rates),
        *(Measurement(metric="operation_latency", label=label, value=1 / rate, unit="s") for label, rate in rates),
    ]


def read_report(text: str) -> Report:
    """Every row of an output, in any language: rows are known by their order, numbers and methods, which are not
    translated. Raises ParseError where a row is missing, out of order, or cannot be read."""
    if not text.endswith("\n"):
        raise ParseError("pg_test_fsync's output is cut off", got=text[-80:] or "nothing", allowed="whole lines")
    paragraphs = re.split(r"\n\s*\n", text)
    seconds = _WHOLE_NUMBER.search(paragraphs[0].lstrip("\n").split("\n")[0])
    page = _WHOLE_NUMBER.search(paragraphs[1].split("\n")[0]) if len(paragraphs) > 1 else None
    if not seconds or not page or not int(seconds[0]):
        raise ParseError(
            "pg_test_fsync's beginning cannot be read", where="its first lines", got=text.strip()[:120] or "nothing",
            allowed="the seconds per test, and after a blank line the size of a page in kB",
        )  # fmt: skip
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if _INDENTED.match(line)]
    places = list(_places(int(page[0])))
    if len(lines) != len(places):
        raise ParseError("pg_test_fsync's output is not whole", got=f"{len(lines)} rows", allowed=f"{len(places)} rows")
    return Report(
        int(seconds[0]), tuple(_row(line, number, place) for (number, line), place in zip(lines, places, strict=True))
    )


def _places(page_kb: int) -> Iterator[_Place]:
    for times in ("one", "two"):
        for method in METHODS:
            yield _Place(f"{times} {page_kb}kB", method, (method,), method not in ("fdatasync", "fsync"))
    for kb in (16, 8, 4, 2, 1):
        words = (str(16 // kb), str(kb))
        yield _Place("write sizes", f"{16 // kb} * {kb}kB open_sync", words, True)
    for order in ("write, fsync, close", "write, close, fsync"):
        yield _Place("descriptor", order, (order,), False)
    yield _Place("non-sync", "write", ("write",), False)


def _row(line: str, number: int, place: _Place) -> Row:
    label = f"{place.section}: {place.name}"
    found, missing = _ROW.match(line), _NOT_AVAILABLE.match(line)
    if found and _is_of(found["label"], place):
        rate = float(found["rate"].replace(",", "."))
        # The time is the inverse of the rate, rounded: two numbers that do not fit are not of one row.
        if rate > 0 and abs(1e6 / rate - int(found["us"])) <= 0.501 + 1e3 / rate**2:
            return Row(label, rate)
    elif missing and place.optional and _is_of(missing["label"], place):
        return Row(label, None, NO_DIRECT_IO if missing["star"] else NOT_HERE)
    raise ParseError(
        "a row of pg_test_fsync's cannot be read", where=f"line {number}", got=line.strip()[:120],
        allowed=f"{place.name}, operations a second and microseconds that fit each other"
        + (", or n/a" if place.optional else ""),
    )  # fmt: skip


def _is_of(label: str, place: _Place) -> bool:
    if place.section == "write sizes":
        return tuple(_WHOLE_NUMBER.findall(label)) == place.words
    return label.strip() == place.words[0]
