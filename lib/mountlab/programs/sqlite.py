"""SQLite by its own shell: commits of inserts and updates, point reads, and a vacuum."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from mountlab.core.errors import ParameterError, ParseError, ToolError
from mountlab.core.model import FILES, Measurement, Program, Scalar, Target, Workload, everywhere
from mountlab.core.options import Option
from mountlab.core.units import KIB, format_bytes
from mountlab.tools.base import Commits, Manner, ToolOutput, Written
from mountlab.tools.operations import COLD, OperationsTool, Timed, operations_option, rate_and_time

PRAGMAS = "pragmas"
"""In the output directory: what SQLite tells of its settings, a line for each operation."""
_ORDER = ("insert", "update", "select", "vacuum")
_SYNCHRONOUS = ("off", "normal", "full", "extra")
"""In the order of the numbers by which SQLite tells them."""
_LARGEST_ROW, _ROW_OVERHEAD = 64 * KIB, 12
_GUESSED_COMMITS_PER_S, _GUESSED_ROWS_PER_S = 1000, 100_000


class Sqlite(OperationsTool):
    """One table of SQLite with rows of seeded bytes. Up to four operations, each by a process of its own:

    - insert: rows in the order of their key, `transaction` of them in each commit.
    - update: each row once, in an order that leaps about, as many in each commit.
    - select: each row once by its key, in such an order.
    - vacuum: the file is written again, with its temporary files in the same directory.

    `operation_rate` is commits (insert, update) or reads (select) by time. SQLite itself is asked for its journal
    mode, level of synchronisation and page size in each process, and a trial fails where one is not as it was asked,
    or where rows or bytes are missing. With a write-ahead log the last checkpoint comes when a process ends, and is in
    no figure. The shell reads its statements from a pipe: on tmpfs, with two processors, a commit of
    one row took 42 us (`wal`).
    """

    name = "sqlite"
    order = _ORDER
    amount, noun = "rows", "rows"
    script = "sqlite.sh"
    loads = ("sh", "awk", "tr", "sync", "date")
    programs: tuple[Program, ...] = (
        Program(
            name="sqlite3",
            packages=everywhere("sqlite3", dnf="sqlite", pacman="sqlite"),
            version=("sqlite3", "-version"),
        ),
    )
    options: Mapping[str, Option] = {
        "rows": Option(kind="int", help="how many rows the table has, up to 1000000"),
        "row_size": Option(kind="size", default=100, help="bytes of a row, up to 64KiB"),
        "transaction": Option(kind="int", default=1, help="rows that are committed together"),
        "journal_mode": Option(
            kind="choice",
            choices=("delete", "truncate", "persist", "memory", "wal", "off"),
            default="delete",
            help="how a commit can be undone; wal: a write-ahead log",
        ),
        "synchronous": Option(
            kind="choice",
            choices=_SYNCHRONOUS,
            default="full",
            help="what is flushed: nothing, less than each commit, each commit, its directory too",
        ),
        "page_size": Option(kind="size", default=4 * KIB, help="of the file"),
        "operations": operations_option(
            _ORDER, "which are measured, with blanks between. Rows are inserted in any case"
        ),
        "cache": COLD,
    }
    reserved: Mapping[str, str] = {
        "seed": "each block has a seed of its own; -p seed=... repeats those of a run",
    }
    longer = "more rows"
    gives: tuple[str, ...] = ("operation_rate", "elapsed")

    def check(self, options: Mapping[str, Scalar], *, where: str) -> None:
        super().check(options, where=where)
        rows, size, page = (int(options[name]) for name in ("rows", "row_size", "page_size"))
        if not 1 <= size <= _LARGEST_ROW:
            raise _wrong("row_size", format_bytes(size), f"1B to {format_bytes(_LARGEST_ROW)}", where)
        if page & (page - 1) or not 512 <= page <= 64 * KIB:
            raise _wrong("page_size", format_bytes(page), "512B, 1KiB, 2KiB ... 64KiB", where)
        transaction = int(options["transaction"])
        if not transaction or rows % transaction:
            raise _wrong("transaction", transaction, f"a divisor of rows ({rows})", where)

    def arguments(self, workload: Workload, output: str) -> tuple[str, ...]:
        names = ("row_size", "transaction", "journal_mode", "synchronous", "page_size")
        return (f"{output}/{PRAGMAS}", *(str(workload.options[name]) for name in names))

    def expected_counts(self, workload: Workload) -> Mapping[str, tuple[int, ...]]:
        rows = int(workload.options["rows"])
        whole = (rows, rows * int(workload.options["row_size"]))
        return {**dict.fromkeys(_ORDER, whole), "update": (rows,)}

    def parse(self, workload: Workload, output: ToolOutput) -> list[Measurement]:
        """Return rates and times. Raises ToolError where SQLite had other settings than were asked for."""
        rows = super().parse(workload, output)
        options = workload.options
        requested = (
            str(options["journal_mode"]),
            str(_SYNCHRONOUS.index(str(options["synchronous"]))),
            str(options["page_size"]),
        )
        stated = {
            name: tuple(words) for name, *words in map(str.split, output.files.get(PRAGMAS, "").splitlines()) if name
        }
        if not stated.keys() >= {"insert", *self.measured(workload)}:
            raise ParseError(
                "SQLite does not tell its settings", where=PRAGMAS, got=", ".join(stated) or "nothing",
                allowed="a line for each operation",
            )  # fmt: skip
        for name, words in stated.items():
            if words != requested:
                raise ToolError(
                    "SQLite does not work as was asked",
                    where=name,
                    got=f"journal_mode, synchronous, page_size: {' '.join(words)}",
                    allowed=" ".join(requested),
                    next_step="the file system may lack what a write-ahead log needs (shared maps of a file)"
                    if requested[0] == "wal"
                    else "",
                )
        return rows

    def figures(self, name: str, line: Timed, workload: Workload) -> Sequence[Measurement]:
        rows = int(workload.options["rows"])
        number = rows if name == "select" else rows // int(workload.options["transaction"])
        found = rate_and_time("operation_rate", name, number, line)
        return found if name != "vacuum" else found[1:]

    def commits(self, workload: Workload, figures: Mapping[tuple[str, str], float]) -> Commits | None:
        """Each transaction, at the levels `full` and `extra`: below these, a commit may be lost with the power."""
        if workload.options["synchronous"] not in ("full", "extra"):
            return None
        seconds = [figures.get(("elapsed", name), 0.0) for name in ("insert", "update")]
        transactions = int(workload.options["rows"]) // int(workload.options["transaction"])
        total = sum(seconds)
        return Commits(transactions * sum(map(bool, seconds)) / total, 1, total) if total else None

    def space_bytes(self, workload: Workload, target: Target = FILES) -> int:
        """Return the space for the table, and as much for its journal and for the temporary file of a vacuum."""
        rows, size = int(workload.options["rows"]), int(workload.options["row_size"])
        page = int(workload.options["page_size"])
        in_a_page = page // (size + _ROW_OVERHEAD)
        pages = math.ceil(rows / in_a_page) if in_a_page else rows * (math.ceil(size / (page - 4)) + 1)
        return 3 * page * (pages * 17 // 16 + 64) + 512 * KIB

    def expected_s(self, workload: Workload) -> float:
        rows, writes = int(workload.options["rows"]), [n for n in self.measured(workload) if n in ("insert", "update")]
        commits = rows // int(workload.options["transaction"]) * max(1, len(writes))
        if workload.options["synchronous"] == "off":
            commits = 0
        return 1.5 + commits / _GUESSED_COMMITS_PER_S + len(_ORDER) * rows / _GUESSED_ROWS_PER_S

    def written(self, workload: Workload) -> Written:
        return Written("seeded bytes in rows, which repeat after a mebibyte", False)

    def manner(self, workload: Workload) -> Manner:
        options = workload.options
        return Manner(engine=f"{options['journal_mode']}, synchronous {options['synchronous']}", depth="1", jobs="1")

    def main_metrics(self, workload: Workload) -> tuple[str, ...]:
        return ("elapsed",) if self.measured(workload) == ("vacuum",) else ("operation_rate",)


def _wrong(name: str, got: object, allowed: str, where: str) -> ParameterError:
    return ParameterError("sqlite cannot do this", where=f"{where}.{name}", got=str(got), allowed=allowed)
