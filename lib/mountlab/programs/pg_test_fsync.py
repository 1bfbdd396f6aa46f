"""pg_test_fsync, which comes with PostgreSQL: how often a second each way of flushing a page can be done."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mountlab.core.errors import ParameterError, ParseError, ToolError
from mountlab.core.model import FILES, Measurement, Program, Scalar, Target, Workload
from mountlab.core.options import Option
from mountlab.core.resolution import Step
from mountlab.core.units import MIB
from mountlab.tools.base import CACHE, Command, Commits, Tool, ToolOutput, Written, check_cache

FILE = "pg_test_fsync.out"
FILE_BYTES = 16 * MIB
"""It writes one segment of PostgreSQL's write-ahead log, and then the first pages of it again and again."""
TESTS_ON_LINUX = 16
LONGEST_TEST_S = 3600
METHODS = ("open_datasync", "fdatasync", "fsync", "fsync_writethrough", "open_sync")
NO_DIRECT_IO = "the file system, with its mount options, does not take direct I/O"
NOT_HERE = "the operating system has no such method"
_WHOLE_NUMBER = re.compile(r"[0-9]{1,9}")
_ROW = re.compile(
    r"^\s*+(?P<label>\S.{0,160}?)\s{1,160}(?P<rate>\d{1,15}[.,]\d{3})(?P<unit>\s{0,160}[^\s\d][^\d]{0,60}?)"
    r"(?:\s+(?P<us>\d{1,15})\s+\S.*)?\s*$",
    re.ASCII,
)
_NOT_AVAILABLE = re.compile(r"^\s*+(?P<label>[^\s*].{0,160}?)(?:\s{2,160}[^\W\d][^\d*]{0,40}?|\s+n/a)(?P<star>\*?)\s*$")
_INDENTED = re.compile(r"^(?: {8}|\t)\s*\S")
_COUNTED = re.compile(r"^(?P<count>[0-9]{1,9}) operations per test|^Loops = (?P<loops>[0-9]{1,9})", re.MULTILINE)
"""Only versions that were never translated count operations. Later ones count seconds."""
_OLD_UNITS = ("ops/sec", "/second")
"""What stands behind a rate up to 9.2; later versions add microseconds. In 9.0 the program was called test_fsync."""


@dataclass(frozen=True)
class _Place:
    """Which row of the output it is: `words` stand in its label in every language."""

    section: str
    name: str
    words: tuple[str, ...]
    optional: bool
    """Whether it may be n/a."""


@dataclass(frozen=True)
class SyncTest:
    """One test: its rate, or the reason for which there is none."""

    label: str
    rate: float | None
    missing: str = ""
    line: int = 0
    """Where it stands in the text, from 1."""


@dataclass(frozen=True)
class SyncReport:
    """What pg_test_fsync printed, whatever the language."""

    seconds: int
    """For each test; 0 of a version that counts operations."""
    rows: tuple[SyncTest, ...]
    missing: int = 0
    """Rows of its last tests that are not in the text."""


class PgTestFsync(Tool):
    """Each method by which PostgreSQL can flush its log, one after the other, in a file of its own.

    It writes random data, the same in each write. Each method is a row, and every row is compared. `n/a`, as where a
    file system takes no direct I/O, is missing and not zero.
    """

    name = "pg_test_fsync"
    programs: tuple[Program, ...] = (
        Program(
            name="pg_test_fsync",
            # Debian has it in the server's package only, which sets up a database that starts with the machine.
            packages={"pacman": "postgresql", **dict.fromkeys(("dnf", "zypper"), "postgresql-contrib")},
            hint="pg_test_fsync comes with PostgreSQL's server: install it by hand (Debian: `apt-get install "
            "postgresql`). It also sets up a database that starts with the machine; `systemctl disable --now "
            "postgresql` stops it",
            version=("pg_test_fsync", "--version"),
            places=("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/lib/postgresql*/bin", "/opt/pgsql*/bin"),
        ),
    )
    options: Mapping[str, Option] = {
        "time_per_test": Option(kind="duration", default=5.0, help="how long each of some 16 tests lasts (-s)"),
        "cache": CACHE,
    }
    reserved: Mapping[str, str] = {
        "f": "Mountlab names the file, so that nothing else is overwritten",
        "filename": "Mountlab names the file, so that nothing else is overwritten",
        "s": "write time_per_test", "secs-per-test": "write time_per_test", "secs_per_test": "write time_per_test",
    }  # fmt: skip
    clock_s = 1e-6
    longer = "time_per_test"
    steps: Mapping[str, Step] = {"sync_rate": Step(absolute=1e-3), "operation_latency": Step(inverse=1e-3)}
    gives: tuple[str, ...] = ("sync_rate", "operation_latency")

    def check(self, options: Mapping[str, Scalar], *, where: str) -> None:
        seconds = float(options["time_per_test"])
        if not 1 <= seconds <= LONGEST_TEST_S or seconds != int(seconds):
            raise ParameterError(
                "pg_test_fsync counts whole seconds",
                where=f"{where}.time_per_test",
                got=f"{seconds:g} s",
                allowed=f"1s to {LONGEST_TEST_S}s, without a fraction",
            )
        check_cache(options, reads=False, where=where)

    def command(self, workload: Workload, directory: str, output: str, target: Target = FILES) -> Command:
        cache = self.cache_of(workload)
        seconds = str(_seconds(workload))
        return Command(argv=("pg_test_fsync", "-s", seconds, "-f", f"{directory}/{FILE}"), cache=cache)

    def parse(self, workload: Workload, output: ToolOutput) -> list[Measurement]:
        """Return a rate and a latency of each method that the file system offers; the others are missing."""
        self.check_exit(output, output.stderr.strip() or "\n".join(output.stdout.strip().splitlines()[-2:]))
        report = read_report(output.stdout)
        if report.seconds != _seconds(workload):
            raise ToolError(
                "pg_test_fsync did not run what was asked",
                where="its first line",
                got=f"{report.seconds} s per test",
                allowed=f"{_seconds(workload)} s",
            )
        return measurements(report)

    def commits(self, workload: Workload, figures: Mapping[tuple[str, str], float]) -> Commits | None:
        """Each fsync and fdatasync of one write or two: the other methods may need no flush of the device."""
        rates = [
            rate
            for (metric, label), rate in figures.items()
            if metric == "sync_rate"
            and label.startswith(("one ", "two "))
            and label.endswith((": fsync", ": fdatasync"))
        ]
        return Commits(sum(rates) / len(rates), 1, float(len(rates) * _seconds(workload))) if rates else None

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


def measurements(report: SyncReport) -> list[Measurement]:
    """Return the rate of each row, and the time of one operation, which is its inverse: the time that is printed is
    rounded to whole microseconds."""
    rates = [(row.label, row.rate) for row in report.rows if row.rate is not None]
    return [
        *(Measurement(metric="sync_rate", label=label, value=rate, unit="1/s") for label, rate in rates),
        *(Measurement(metric="operation_latency", label=label, value=1 / rate, unit="s") for label, rate in rates),
    ]


def read_report(text: str, *, whole: bool = True) -> SyncReport:
    """Return every row of an output, in any language, of every version since 9.0; unless it must be `whole`, also the
    rows above the place where it was cut off.

    Rows are known by their order, numbers and methods, which are not translated. Raises ParseError where a row is
    missing, out of order, or cannot be read.
    """
    if not text.endswith("\n"):
        raise ParseError("pg_test_fsync's output is cut off", got=text[-80:] or "nothing", allowed="whole lines")
    lines = [(number, line) for number, line in enumerate(text.split("\n"), start=1) if is_row(line)]
    head = "\n".join(text.split("\n")[: lines[0][0] - 1 if lines else None]).lstrip()
    counted = _COUNTED.match(head)
    numbers = _WHOLE_NUMBER.findall(head)[-_HEAD_NUMBERS:]  # before them may stand what is of a log
    if counted and counted["loops"]:
        return _make_report(0, lines, _OLDEST, whole)
    if not whole and len(numbers) == 1 and "kB" in head:  # the first line, with the seconds, is missing
        numbers = ["0", *numbers]
    elif len(numbers) < _HEAD_NUMBERS or not int(numbers[0]):
        raise ParseError(
            "pg_test_fsync's beginning cannot be read",
            where="its first lines",
            got=text.strip()[:120] or "nothing",
            allowed="the seconds per test (or operations, or loops), and above the first row the size of a page in kB",
        )
    return _make_report(0 if counted else int(numbers[0]), lines, list(_list_places(int(numbers[1]))), whole)


def _make_report(seconds: int, lines: Sequence[tuple[int, str]], places: Sequence[_Place], whole: bool) -> SyncReport:
    last = _ROW.match(lines[-1][1]) if lines else None
    timed = any((match := _ROW.match(line)) and match["us"] for _, line in lines)
    if not whole and 1 < len(lines) < len(places) and last and timed and not last["us"]:
        lines = lines[:-1]  # it is cut off
    missing = 0 if whole or not lines else max(0, len(places) - len(lines))
    return SyncReport(seconds, _read_rows(lines, places[: len(places) - missing]), missing)


_HEAD_NUMBERS = 2
"""The seconds per test, and the size of a page."""


def is_row(line: str) -> bool:
    """Return whether a line is a row of the report: by its figures, or by its indentation."""
    return bool(_ROW.match(line) or _NOT_AVAILABLE.match(line) or _INDENTED.match(line))


def _read_rows(lines: Sequence[tuple[int, str]], places: Sequence[_Place]) -> tuple[SyncTest, ...]:
    if len(lines) != len(places):
        sections = ", ".join(dict.fromkeys(place.section for place in places))
        raise ParseError(
            "pg_test_fsync's output is not whole",
            got=f"{len(lines)} rows",
            allowed=f"{len(places)} rows, in the sections {sections}",
            next_step="paste the whole output, from its first line to the row of its last test",
        )
    timed = any((match := _ROW.match(line)) and match["us"] for _, line in lines)
    return tuple(_read_row(line, number, place, timed) for (number, line), place in zip(lines, places, strict=True))


def _list_places(page_kb: int) -> Iterator[_Place]:
    for times in ("one", "two"):
        for method in METHODS:
            yield _Place(f"{times} {page_kb}kB", method, (method,), method not in ("fdatasync", "fsync"))
    for kb in (16, 8, 4, 2, 1):
        words = (str(16 // kb), str(kb))
        yield _Place("write sizes", f"{16 // kb} * {kb}kB open_sync", words, True)
    for order in ("write, fsync, close", "write, close, fsync"):
        yield _Place("descriptor", order, (order,), False)
    yield _Place("non-sync", "write", ("write",), False)


_OLDEST_ROWS = {
    "non-sync": ("8k write",),
    "one write": ("open_datasync 8k write", "open_sync 8k write", "8k write, fdatasync", "8k write, fsync"),
    "two writes": ("2 open_datasync 8k writes", "2 open_sync 8k writes", "8k write, 8k write, fdatasync",
                   "8k write, 8k write, fsync"),
    "write sizes": ("open_sync 16k write", "2 open_sync 8k writes"),
    "descriptor": ("8k write, fsync, close", "8k write, close, fsync"),
}  # fmt: skip
_OLDEST = tuple(_Place(section, name, (name,), False) for section, names in _OLDEST_ROWS.items() for name in names)
"""The rows of test_fsync of 9.0 on Linux. Its names are kept: it opens no file for direct I/O, as later versions do."""


def _read_row(line: str, number: int, place: _Place, timed: bool) -> SyncTest:
    """Return one row; `timed`: whether this version prints microseconds, too."""
    label = f"{place.section}: {place.name}"
    match, missing = _ROW.match(line), _NOT_AVAILABLE.match(line)
    whole = match and (match["us"] if timed else match["unit"].strip() in _OLD_UNITS)
    if match and whole and _is_label_of(match["label"], place):
        rate = float(match["rate"].replace(",", "."))
        # The time is the inverse of the rate, rounded: two numbers that do not fit are not of one row.
        if rate > 0 and (not timed or abs(1e6 / rate - int(match["us"])) <= 0.501 + 1e3 / rate**2):
            return SyncTest(label, rate, line=number)
    elif missing and not match and place.optional and _is_label_of(missing["label"], place):
        return SyncTest(label, None, NO_DIRECT_IO if missing["star"] else NOT_HERE, number)
    raise ParseError(
        "a row of pg_test_fsync's cannot be read",
        where=f"line {number}",
        got=repr(line.strip()[:120]),
        allowed=f"{place.name!r}, two blanks or more, then {_FIGURES[timed]}" + (", or n/a" if place.optional else ""),
    )


_FIGURES = {
    True: "operations a second and microseconds that fit each other, as in '1250.000 ops/sec     800 usecs/op'",
    False: "operations a second, as in '1250.000 ops/sec'",
}


def _is_label_of(label: str, place: _Place) -> bool:
    """Return whether a label is that of a place. (Up to 9.2 a row of write sizes gives the size alone.)"""
    if place.section == "write sizes" and len(place.words) == 2:
        numbers = tuple(_WHOLE_NUMBER.findall(label))
        return numbers == place.words or (numbers == place.words[1:] and "open_sync write" in label)
    return label.strip() == place.words[0]
