"""db_bench: RocksDB's own benchmark, one of its operations a trial."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mountlab.core.errors import ParameterError, ParseError, ToolError
from mountlab.core.model import FILES, Measurement, Program, Scalar, Target, Workload
from mountlab.core.options import Option
from mountlab.core.resolution import Step
from mountlab.core.units import MIB
from mountlab.tools.base import CACHE, Command, Manner, Tool, ToolOutput, Written, check_cache
from mountlab.tools.words import check_numbers, check_stated, option_words, refuse_direct

READS = ("readrandom", "readwhilewriting")
ON_A_DATABASE = ("overwrite", *READS)
"""Benchmarks of a database that is made before."""
COMPRESSIONS = {"none": "NoCompression", "snappy": "Snappy", "lz4": "LZ4", "zstd": "ZSTD"}
"""Each way to compress, and what db_bench calls it in its output."""
KEY_BYTES = 16
RECORD_BYTES = 40
"""What a record takes beside its key and value, in the log and in a table."""
_DB_FORMS = {
    "value_size": "--value_size={}", "compression": "--compression_type={}", "memtable": "--write_buffer_size={}",
    "block_cache": "--cache_size={}",
}  # fmt: skip
_FORMS = {
    "threads": "--threads={}", "sync": "--sync=1", "disable_wal": "--disable_wal=1",
    "direct": "--use_direct_reads=1 --use_direct_io_for_flush_and_compaction=1",
}  # fmt: skip
_OWN_BYTES = 5 * MIB
"""Its list of tables, for which it allocates 4 MiB, its own log, and the copy of its options."""
_FILLSYNC_SHARE = 1000
"""fillsync takes this part of --num for the number of its keys."""
_RESULT = re.compile(
    r"^(\w{1,40}) +: +(\d{1,15}\.\d{3}) micros/op (\d{1,15}) ops/sec (\d{1,12}\.\d{3}) seconds (\d{1,15}) operations;"
    r" +(\d{1,12}\.\d) MB/s(?: \((\d{1,15}) of (\d{1,15}) found\)| \(\d{1,15} ops\))?$", re.MULTILINE,
)  # fmt: skip
_PERCENTILES = re.compile(
    r"^Percentiles: P50: (\d{1,12}\.\d\d) P75: \S{1,20} P99: (\d{1,12}\.\d\d) P99\.9: (\d{1,12}\.\d\d) ", re.MULTILINE
)
_BIN = 0.5
"""Each bin of its histogram reaches half as far again as the one before; a percentile is interpolated in it."""
_MIB_STEP = 0.06
"""Its MB/s are MiB/s with one digit behind the point."""
_GUESSED_PER_S, _GUESSED_SYNCED_PER_S = 50_000.0, 500.0


class DbBench(Tool):
    """One benchmark of RocksDB's db_bench. `fillseq` and `fillrandom` write `num` records, in the order of their keys
    or not. `fillsync` flushes each of them. `overwrite` writes `num` records over those that are there. `readrandom`
    reads as many; `readwhilewriting` does that while one more thread writes without pause, whose work is not counted.

    The last three need a database, which is made before: all `num` keys, in another order each block, in one sorted
    run. Each thread does `num` operations. `operation_latency` is the time of a thread by operation; `operation_rate`
    is all operations by time. `bandwidth` is keys and values by time, before compression, the log and compactions: not
    what the device moves. Values can be compressed to half their size. Debian's db_bench has assertions, which cost it
    time on each file system. Where one is full an assertion may end it, and no line says why.
    """

    name = "db_bench"
    programs: tuple[Program, ...] = (
        Program(
            name="db_bench",
            packages={"apt": "rocksdb-tools"},
            hint="Debian and Ubuntu have db_bench in the package rocksdb-tools; elsewhere build it with RocksDB "
            "(make db_bench), and put it on the PATH of the box",
            version=("db_bench", "--version"),
        ),
    )
    options: Mapping[str, Option] = {
        "benchmark": Option(
            kind="choice",
            choices=("fillseq", "fillrandom", "fillsync", *ON_A_DATABASE),
            help="what is measured (--benchmarks)",
        ),
        "num": Option(kind="int", help="keys of the database, and operations of each thread (--num)"),
        "value_size": Option(kind="size", default=100, help="bytes of a value; a key has 16 (--value_size)"),
        "threads": Option(kind="int", default=1, help="threads that do the same at a time (--threads)"),
        "sync": Option(kind="flag", default=0, help="flush the log after each write (--sync)"),
        "disable_wal": Option(kind="flag", default=0, help="write no log: a crash loses what is in memory"),
        "compression": Option(
            kind="choice", choices=tuple(COMPRESSIONS), default="none", help="of tables (--compression_type)"
        ),
        "memtable": Option(
            kind="size",
            default=64 * MIB,
            help="what is gathered in memory before a table is written (--write_buffer_size)",
        ),
        "block_cache": Option(kind="size", default=8 * MIB, help="RocksDB's own cache of tables (--cache_size)"),
        "direct": Option(kind="flag", default=0, help="read and write tables past the page cache; not the log"),
        "percentiles": Option(kind="flag", default=0, help="percentiles of the latency, too (--histogram)"),
        "cache": CACHE,
    }
    reserved: Mapping[str, str] = {
        "db": "Mountlab names the directory, so that nothing else is written",
        "wal_dir": "the log lies with the database, on the file system under test",
        "benchmarks": "write benchmark: one a trial, so that each begins alike",
        "use_existing_db": "a database that is needed is made before each trial",
        "seed": "each block has a seed of its own; -p seed=... repeats those of a run",
        "duration": "a trial with another number of operations ends with another database",
        "histogram": "write percentiles",
        "compression_type": "write compression",
        "write_buffer_size": "write memtable",
        "cache_size": "write block_cache",
    }
    clock_s = 1e-6
    longer = "a larger num"
    steps: Mapping[str, Step] = {"operations": Step(absolute=1)}
    gives: tuple[str, ...] = (
        "operation_rate", "operation_latency", "operation_latency_p50", "operation_latency_p99",
        "operation_latency_p99_9", "bandwidth", "operations", "elapsed",
    )  # fmt: skip

    def check(self, options: Mapping[str, Scalar], *, where: str) -> None:
        needed = {"benchmark": "fillseq, readrandom ...", "num": "a number, such as 1000000"}
        self.check_given(options, needed, where=where)
        limits = {
            "num": (1, 10**9), "threads": (1, 256), "value_size": (1, 64 * MIB), "memtable": (64 * 1024, 2**40),
            "block_cache": (0, 2**40),
        }  # fmt: skip
        check_numbers(self.name, options, limits, where=where)
        if options["disable_wal"] and (options["sync"] or options["benchmark"] == "fillsync"):
            raise ParameterError(
                "RocksDB cannot flush a log that it does not write",
                where=f"{where}.disable_wal",
                got="true",
                allowed="false with sync: true, and with benchmark: fillsync",
            )
        check_cache(options, reads=options["benchmark"] in READS, where=where)

    def command(self, workload: Workload, directory: str, output: str, target: Target = FILES) -> Command:
        options, name = workload.options, str(workload.options["benchmark"])
        seed = () if target.seed is None else (f"--seed={target.seed % 2**31 or 1}",)
        database = ("db_bench", f"--db={directory}/db", *option_words(options, _DB_FORMS), *seed)
        num = int(options["num"])
        # fillsync would write over num/1000 keys again and again.
        keys = (f"--num={num * _FILLSYNC_SHARE}", f"--writes={num}") if name == "fillsync" else (f"--num={num}",)
        exists = ("--use_existing_db=1",) if name in ON_A_DATABASE else ()
        measured = (f"--benchmarks={name}", *keys, *exists, *option_words(options, _FORMS))
        return Command(
            argv=(*database, *measured, f"--histogram={options['percentiles']}"),
            prepare=((*database, "--benchmarks=filluniquerandom,compact", f"--num={num}"),) if exists else (),
            fill=(("find", f"{directory}/db", "-type", "f", "-exec", "cat", "{}", "+"),) if name in READS else (),
            cache=self.cache_of(workload),
            seed=target.seed,
        )

    def parse(self, workload: Workload, output: ToolOutput) -> list[Measurement]:
        """Return rate, latency and logical bandwidth. Raises ToolError where operations or keys are missing."""
        self.check_exit(output, _complaints(output.stderr) or output.stdout.strip()[-300:])
        options, results = workload.options, _RESULT.findall(output.stdout)
        if len(results) != 1:
            raise ParseError(
                "db_bench's result cannot be read",
                got=output.stdout.strip()[-160:] or "nothing",
                allowed="one line 'NAME : ... micros/op ... ops/sec ... seconds ... operations; ... MB/s'",
            )
        name, micros, rate, seconds, operations, mib, looked_up, of_keys = results[0]
        asked = int(options["num"]) * int(options["threads"])
        if (name, int(operations)) != (options["benchmark"], asked) or looked_up != of_keys:
            raise ToolError(
                "db_bench did not do what was asked",
                got=f"{operations} operations of {name}" + (f", {looked_up} of {of_keys} found" if of_keys else ""),
                allowed=f"{asked} operations of {options['benchmark']}, and each key found",
            )
        moved = (KEY_BYTES + int(options["value_size"])) * int(rate)
        if abs(moved / MIB - float(mib)) > _MIB_STEP + moved / MIB / int(rate or 1):
            raise ToolError(
                "db_bench did not move what was asked", got=f"{mib} MB/s", allowed=f"{moved / MIB:.2f} MiB/s of records"
            )
        compression = COMPRESSIONS[str(options["compression"])]
        stated = [f"Values:     {options['value_size']} bytes each", f"Compression: {compression}"]
        check_stated(self.name, {line.partition(" (")[0] for line in output.stdout.splitlines()}, stated)
        elapsed_s = float(seconds)
        if not elapsed_s or not int(rate):
            raise ParseError("db_bench ended before its clock moved", got=f"{seconds} s", allowed="a larger num")
        # Its time has a thousandth of a second. One thread tells it to a thousandth of a microsecond an operation.
        precise_s = asked * float(micros) / 1e6 if options["threads"] == 1 else elapsed_s
        return [
            Measurement(metric="operation_rate", value=float(rate), unit="1/s", step=1.0),
            Measurement(metric="operation_latency", value=float(micros) / 1e6, unit="s", step=1e-9),
            Measurement(metric="bandwidth", value=float(moved), unit="B/s", step=moved / int(rate)),
            Measurement(metric="operations", value=float(operations), unit="1"),
            Measurement(
                metric="elapsed", value=precise_s, unit="s", step=1e-9 * asked if precise_s != elapsed_s else 1e-3
            ),
            *(_percentiles(output.stdout) if options["percentiles"] else ()),
        ]

    def space_bytes(self, workload: Workload, target: Target = FILES) -> int:
        """Return the space for all records, twice where a compaction may write them again; for the logs, which are
        allocated before they are written; and for RocksDB's own files."""
        options = workload.options
        record = KEY_BYTES + int(options["value_size"]) + RECORD_BYTES
        writers = 1 if options["benchmark"] in READS else int(options["threads"])
        databases = writers + (options["benchmark"] in ON_A_DATABASE)
        copies = 1 if (options["benchmark"], databases) == ("fillseq", 1) else 2
        return copies * databases * record * int(options["num"]) + 3 * int(options["memtable"]) + _OWN_BYTES

    def expected_s(self, workload: Workload) -> float:
        options = workload.options
        flushed = options["sync"] or options["benchmark"] == "fillsync"
        operations = int(options["num"]) * int(options["threads"])
        made = int(options["num"]) / _GUESSED_PER_S if options["benchmark"] in ON_A_DATABASE else 0
        return 0.2 + made + operations / (_GUESSED_SYNCED_PER_S if flushed else _GUESSED_PER_S)

    def written(self, workload: Workload) -> Written:
        return Written("values that can be compressed to half their size", True)

    def manner(self, workload: Workload) -> Manner:
        return Manner(engine="RocksDB", depth="1", jobs=str(workload.options["threads"]))

    def refuses(self, kind: str, workload: Workload) -> str | None:
        return refuse_direct(kind, workload.options, "direct")

    def remarks(self, workload: Workload) -> tuple[str, ...]:
        if workload.options["benchmark"] != "fillsync":
            return ()
        return ("fillsync writes num records to as many keys: by itself it would write over a thousandth of them",)

    def main_metrics(self, workload: Workload) -> tuple[str, ...]:
        return ("operation_rate",)


def _complaints(text: str) -> str:
    """Return what it printed of errors, without its progress."""
    lines = (line.strip() for line in text.replace("\r", "\n").splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("... finished"))


def _percentiles(text: str) -> list[Measurement]:
    """Return the percentiles of the operations that are counted: the last that are printed. (Those of the writer of
    readwhilewriting come before, where it has any.)"""
    found = _PERCENTILES.findall(text)
    if not found:
        raise ParseError("db_bench printed no percentiles", got="none", allowed="a line 'Percentiles: P50: ...'")
    return [
        Measurement(
            metric=f"operation_latency_{part}", value=float(us) / 1e6, unit="s", step=max(1e-8, _BIN * float(us) / 1e6)
        )
        for part, us in zip(("p50", "p99", "p99_9"), found[-1], strict=True)
        if float(us)
    ]
