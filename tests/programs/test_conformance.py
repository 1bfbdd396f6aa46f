"""What every tool must keep. A new tool is complete when this and tests/live/test_live.py pass: it adds its
examples, the words that each of its options brings, what it refuses, its recordings and its version to the tables."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

import pytest
from mountlab.box.facts import gather_script, parse_sections
from mountlab.core.box_facts import InstalledProgram
from mountlab.core.errors import ParameterError, TrialError, in_one_line
from mountlab.core.model import Program, Workload
from mountlab.core.options import read_value
from mountlab.outcome.judging import ScriptExit, judge
from mountlab.programs import TOOLS, wml
from mountlab.runner.conformance import tools as conformance
from mountlab.runner.conformance.rules import Rule
from mountlab.sweep.sweep_file import resolve
from mountlab.tools.base import Command, Tool, ToolOutput
from rows import every_row

TESTS = Path(__file__).parents[1]
DATA = TESTS / "data"
DIRECTORY, OUTPUT = conformance.DIRECTORY, conformance.OUTPUT

DD_BY_COMMAND = {
    "argv": "dd if=/dev/zero of={directory}/x bs={block} count=200 conv=fdatasync", "block": "1M", "space": "200MiB",
    "metrics": {
        "write_bandwidth": {"pattern": r"([\d.]+) MB/s$", "unit": "MB/s", "from": "stderr"},
        "elapsed": {"pattern": r"copied, ([\d.]+) s", "unit": "s", "from": "stderr"},
        "bytes/write": {"pattern": r"^(\d+) bytes", "unit": "B", "from": "stderr"},
    },
}  # fmt: skip
EXAMPLES: dict[str, list[dict[str, Any]]] = {
    "command": [DD_BY_COMMAND],
    "db_bench": [
        {"benchmark": "fillrandom", "num": 20000},
        {"benchmark": "fillsync", "num": 200, "cache": "as_is"},
        {"benchmark": "readwhilewriting", "num": 20000, "threads": 2, "percentiles": True, "cache": "cold"},
    ],
    "dbench": [
        {"processes": 2, "time": "2s"},
        {"processes": 1, "time": "2s", "sync": True, "sync_directories": True, "fsync": True, "cache": "cold"},
    ],
    "dd": [
        {"direction": "write", "bs": "1MiB", "count": 200},
        {"direction": "read", "bs": "1MiB", "count": 200, "cache": "warm"},
        {"direction": "write", "bs": "1MiB", "count": 200, "data": "random"},
    ],
    "degrade": [{"size": "8MiB", "cache": "cold"}, {"size": "8MiB", "member": "first", "back": "returned"}],
    "filebench": [
        {"workload": "fileserver", "nfiles": 2000, "filesize": "8KiB", "threads": 4, "appendsize": "4KiB",
         "iosize": "8KiB", "runtime": "1s"},
        {"workload": "seqread", "filesize": "16MiB", "threads": 4, "iosize": "8KiB", "runtime": "1s", "cache": "cold"},
    ],
    "fio": [
        {"rw": "randread", "size": "64MiB", "direct": True, "runtime": "2s"},
        {"rw": "randwrite", "size": "64MiB", "runtime": "2s"},
        {"rw": "randrw", "size": "256KiB", "numjobs": 2, "cache": "cold"},
    ],
    "fs_mark": [
        {"count": 50, "file_size": "20000B", "sync": "sync_post_reverse", "threads": 2, "write_size": "4KiB",
         "loops": 3, "call_times": True},
        {"count": 200, "file_size": "100B", "sync": "none", "call_times": True, "keep_files": False, "cache": "as_is"},
    ],
    "ioping": [
        {"operation": "read", "count": 200, "access": "direct"},
        {"operation": "write", "count": 100, "cache": "as_is"},
    ],
    "large-directory": [{"names": 100_000}, {"names": 20_000, "operations": "create stat remove"}],
    "pg_test_fsync": [{"time_per_test": "1s"}, {"time_per_test": "1s", "cache": "cold"}],
    "pgbench": [
        {"scale": 1, "sessions": 2, "threads": 2, "runtime": "1s", "wal_segment_size": "1MiB", "max_wal_size": "8MiB",
         "synchronous_commit": True},
        {"builtin": "select-only", "scale": 1, "transactions": 200, "percentiles": False, "wal_segment_size": "1MiB",
         "cache": "cold"},
    ],
    "reflink": [
        {"size": "16MiB", "blocks": 20, "clones": 4},
        {"size": "16MiB", "blocks": 20, "clones": 4, "order": "sequential", "cache": "cold"},
    ],
    "rsync": [
        {"files": 1000},
        {"files": 300, "operations": "first changed", "change": "10%", "whole_file": False, "inplace": True,
         "fsync": True, "cache": "as_is"},
    ],
    "scrub": [{"size": "8MiB"}, {"size": "8MiB", "errors": 10, "member": "first"}],
    "send": [
        {"via": "send", "size": "16MiB", "change": "5%"},
        {"via": "send", "size": "16MiB", "change": "5%", "to": "null", "cache": "warm"},
        {"via": "rsync", "size": "16MiB", "change": "5%", "cache": "cold"},
        {"via": "send", "size": "8MiB", "change": "5%"},
        {"via": "send", "size": "8MiB", "change": "5%", "to": "null"},
    ],
    "snapshot": [
        {"size": "16MiB", "snapshots": 3, "change": "5%"},
        {"size": "8MiB", "snapshots": 3, "change": "5%"},
    ],
    "sqlite": [
        {"rows": 500, "transaction": 5, "journal_mode": "wal"},
        {"rows": 200, "operations": "vacuum", "synchronous": False, "journal_mode": False, "cache": "as_is"},
    ],
    "sysbench": [
        {"mode": "rndrw", "size": "64MiB", "files": 4, "time": "1s", "threads": 2},
        {"mode": "seqwr", "size": "64MiB", "files": 4, "events": 4096, "fsync_every": 0, "cache": "as_is"},
        {"mode": "seqrd", "size": "64MiB", "files": 4, "events": 4096, "flags": "direct", "cache": "cold"},
    ],
    "tree": [{"files": 5000, "operations": "make git-status copy grep stat remove"}, {"files": 2000}],
    "watched": [{"argv": "dd if=/dev/zero of=x bs=1M count=200 conv=fdatasync", "metrics": DD_BY_COMMAND["metrics"]}],
}  # fmt: skip
"""Options as in a sweep file, with every needed one."""
RECORDED: dict[str, list[dict[str, str]]] = {
    "command": [{"stderr": "dd/write-1m.stderr"}],
    "db_bench": [
        {"stdout": "db_bench/fillrandom-ext4.stdout"}, {"stdout": "db_bench/fillsync-ext4.stdout"},
        {"stdout": "db_bench/readwhilewriting-ext4.stdout"},
    ],
    "dbench": [
        {"stdout": "dbench/ext4.stdout"}, {"stdout": "dbench/sync-tmpfs.stdout"},
    ],
    "dd": [{"stderr": "dd/write-1m.stderr"}] * 3,
    "degrade": [{"stdout": "degrade/raid5.stdout"}, {"stdout": "degrade/mirror-returned.stdout"}],
    "filebench": [
        {"stdout": "filebench/fileserver.stdout", "settled": "filebench/settled"},
        {"stdout": "filebench/seqread.stdout", "settled": "filebench/settled"},
    ],
    "fio": [
        {"fio.json": "fio/psync-randread-direct.jsonplus"}, {"fio.json": "fio/psync-randwrite-fsync1.jsonplus"},
        {"fio.json": "fio/mixed-two-jobs.json"},
    ],
    "fs_mark": [{"stdout": "fs_mark/v-S4-L3-ext4.stdout"}, {"stdout": "fs_mark/v-unlinked-tmpfs.stdout"}],
    "ioping": [
        {"stdout": "ioping/read-direct-ext4.stdout"}, {"stdout": "ioping/write-ext4.stdout"},
    ],
    "large-directory": [
        {"stdout": "large-directory/ext4.stdout"}, {"stdout": "large-directory/busybox.stdout"},
    ],
    "pg_test_fsync": [{"stdout": "pg_test_fsync/ext4.stdout"}, {"stdout": "pg_test_fsync/ramfs.stdout"}],
    "pgbench": [
        {"stdout": "pgbench/ext4.stdout", "server": "pgbench/ext4.server", "latencies": "pgbench/ext4.latencies"},
        {"stdout": "pgbench/tmpfs-select.stdout", "server": "pgbench/tmpfs-select.server"},
    ],
    "reflink": [
        {"stdout": "reflink/btrfs-random.stdout", "first": "reflink/btrfs-random.first",
         "second": "reflink/btrfs-random.second"},
        {"stdout": "reflink/btrfs-sequential.stdout", "first": "reflink/btrfs-sequential.first",
         "second": "reflink/btrfs-sequential.second"},
    ],
    "rsync": [
        {"stdout": "rsync/ext4.stdout"}, {"stdout": "rsync/delta-tmpfs.stdout"},
    ],
    "scrub": [{"stdout": "scrub/ext4.stdout"}, {"stdout": "scrub/btrfs-raid1.stdout"}],
    "send": [
        {"stdout": "send/btrfs.stdout"}, {"stdout": "send/btrfs-null.stdout"},
        {"stdout": "send/rsync.stdout", "rsync.first": "send/rsync.first", "rsync.second": "send/rsync.second"},
        {"stdout": "send/zfs.stdout"}, {"stdout": "send/zfs-null.stdout"},
    ],
    "snapshot": [{"stdout": "snapshot/btrfs.stdout"}, {"stdout": "snapshot/zfs.stdout"}],
    "sqlite": [
        {"stdout": "sqlite/ext4-wal.stdout", "pragmas": "sqlite/ext4-wal.pragmas"},
        {"stdout": "sqlite/btrfs-vacuum.stdout", "pragmas": "sqlite/btrfs-vacuum.pragmas"},
    ],
    "sysbench": [
        {"stdout": "sysbench/rndrw-ext4.stdout"}, {"stdout": "sysbench/seqwr-ext4.stdout"},
        {"stdout": "sysbench/seqrd-direct-ext4.stdout"},
    ],
    "tree": [{"stdout": "tree/ext4.stdout"}, {"stdout": "tree/busybox.stdout"}],
    "watched": [{"stderr": "dd/write-1m.stderr"}],
}  # fmt: skip
"""For each example the files of a recorded trial of it."""
OTHER_WORK: dict[str, dict[str, Any]] = {
    "command": {"metrics": {"file_rate": {"pattern": r"(\d+) files/s", "unit": "1/s"}}},
    "db_bench": {"num": 20001},
    "dbench": {"time": "3s"},
    "dd": {"count": 201},
    "degrade": {"size": "1MiB"},
    "filebench": {"runtime": "60s"},
    "fio": {"size": "1GiB"},
    "fs_mark": {"count": 201},
    "ioping": {"count": 201},
    "large-directory": {"names": 100_001},
    "pg_test_fsync": {"time_per_test": "2s"},
    "pgbench": {"scale": 2},
    "reflink": {"blocks": 21},
    "rsync": {"files": 1001},
    "scrub": {"errors": 11},
    "send": {"size": "17MiB"},
    "snapshot": {"snapshots": 4},
    "sqlite": {"row_size": "101B"},
    "sysbench": {"size": "128MiB"},
    "tree": {"files": 5001},
    "watched": {"metrics": {"file_rate": {"pattern": r"(\d+) files/s", "unit": "1/s"}}},
}
"""Changes of the examples that the recordings do not fit."""
NEEDS_NOTHING = {"pg_test_fsync"}
TELLS_NO_AMOUNT = {"dbench", "pg_test_fsync"}
"""Tools that print neither how much they moved nor how long they took."""

each_tool = every_row("tool", TOOLS.values(), ids=list(TOOLS))
each_example = every_row(
    ("tool", "number"),
    [(TOOLS[name], i) for name, examples in EXAMPLES.items() for i in range(len(examples))],
    ids=lambda value: getattr(value, "name", value),
)


def workload(tool: Tool, number: int, **changes: Any) -> Workload:
    return read(tool, {**EXAMPLES[tool.name][number], **changes})


def read(tool: Tool, options: Mapping[str, Any]) -> Workload:
    """Options as in a sweep file; one that is None is not given."""
    entry = {"tool": tool.name, **{key: value for key, value in options.items() if value is not None}}
    raw = {"name": "s", "question": "?", "filesystems": {"d": {"type": "dir"}}, "workloads": {"w": entry}}
    return resolve(raw, where="s.yml").sweep.workloads[0]


def test_every_tool_has_examples_and_recordings_here() -> None:
    assert set(EXAMPLES) == set(RECORDED) == set(TOOLS)
    assert all(len(EXAMPLES[name]) == len(RECORDED[name]) for name in TOOLS)


def case(tool: Tool, number: int) -> conformance.ToolCase:
    files = {name: (DATA / path).read_bytes() for name, path in RECORDED[tool.name][number].items()}
    other = workload(tool, number, **OTHER_WORK[tool.name])
    return conformance.ToolCase(tool, workload(tool, number), conformance.output_of(files), other)


@each_tool
@every_row("rule", conformance.OF_TOOL, ids=lambda rule: rule.__name__)
def test_every_tool_keeps_the_rules_of_tools(rule: Rule[Tool], tool: Tool) -> None:
    assert TOOLS[tool.name] is tool
    rule(tool)


@each_example
@every_row("rule", conformance.OF_EXAMPLE, ids=lambda rule: rule.__name__)
def test_every_tool_keeps_the_rules_of_trials(rule: Rule[conformance.ToolCase], tool: Tool, number: int) -> None:
    rule(case(tool, number))


@each_example
@pytest.mark.parametrize("status", [1, 127, 137])
def test_a_tool_that_failed_is_quoted_by_the_last_line_of_its_errors(tool: Tool, number: int, status: int) -> None:
    """Defect: the terminal showed the first line: a warning, where the last had the reason."""
    error_text = {
        "stdout": b"",
        "stderr": b"a warning of no weight\nand this is why\n",
        "exit_status": f"{status}".encode(),
    }
    script_exit = ScriptExit(exit_status=0, archive=b"", error_text="")
    outcome = judge(workload(tool, number), error_text, script_exit, timeout_s=9.0, parse=tool.parse)
    assert in_one_line(outcome.reason).endswith(": and this is why"), outcome.reason
    assert "    | a warning of no weight\n    | and this is why" in outcome.reason


def test_two_tools_are_as_the_rules_expect_of_them() -> None:
    """What is allowed to a tool that says so is not allowed to the others."""
    assert {name for name, tool in TOOLS.items() if not {"elapsed", "bytes"} & {*tool.gives}} == TELLS_NO_AMOUNT
    for name, tool in TOOLS.items():
        defaults = {key: option.default for key, option in tool.options.items() if option.default is not None}
        with nullcontext() if name in NEEDS_NOTHING else pytest.raises(ParameterError, match=f"{name} needs"):
            tool.check(defaults, where="s.yml: workloads.w")


def test_the_state_of_the_cache_is_read_as_every_choice() -> None:
    assert read_value("cold", TOOLS["dd"].options["cache"], where="w").value == "cold"


# --- what a trial brings back -----------------------------------------------------------------------------------------


def test_what_a_trial_brings_back_is_read_as_text() -> None:
    output = ToolOutput.from_files({"exit_status": b"3\n", "stdout": b"a\xff", "stderr": b"", "x.json": b"{}"})
    assert (output.exit_status, output.stdout, output.stderr) == (3, "a\ufffd", "")
    assert output.files["x.json"] == "{}"


@pytest.mark.parametrize(
    ("files", "got"),
    [
        ({}, "no exit_status, stdout, stderr"),
        ({"stdout": b"", "stderr": b""}, "no exit_status"),
        ({"exit_status": b"", "stdout": b"", "stderr": b""}, "exit status ''"),
    ],
)
def test_a_trial_that_brought_back_too_little_is_a_failed_trial(files: dict[str, bytes], got: str) -> None:
    """Trap: one bad cell aborts the night. A full output directory cuts off what a trial writes last."""
    with pytest.raises(TrialError) as caught:
        ToolOutput.from_files(files)
    assert caught.value.what == "the trial brought back less than it should"
    assert caught.value.got == got
    assert "output_root" in caught.value.next_step


# --- the words that each option brings --------------------------------------------------------------------------------

PLAIN: dict[str, dict[str, Any]] = {
    "command": {"argv": "mybench {directory}", "space": "1MiB",
                "metrics": {"file_rate": {"pattern": "(x)", "unit": "1/s"}}},
    "db_bench": {"benchmark": "overwrite", "num": 10},
    "dbench": {"processes": 2, "time": "2s"},
    "dd": {"direction": "write", "count": 8},
    "degrade": {"size": "64MiB"},
    "filebench": {"workload": "fileserver"},
    "fio": {"rw": "write", "size": "64MiB", "log_avg_msec": False},
    "fs_mark": {"count": 10, "file_size": "4KiB"},
    "ioping": {"operation": "read", "count": 10},
    "large-directory": {"names": 10},
    "pg_test_fsync": {},
    "pgbench": {"scale": 10, "sessions": 2, "runtime": "60s"},
    "reflink": {"size": "64MiB"},
    "rsync": {"files": 10},
    "scrub": {"size": "64MiB"},
    "send": {"via": "send", "size": "64MiB"},
    "snapshot": {"size": "64MiB"},
    "sqlite": {"rows": 100},
    "sysbench": {"mode": "rndwr", "size": "2MiB", "time": "1s"},
    "tree": {"files": 10},
    "watched": {"argv": "mybench x", "metrics": {"file_rate": {"pattern": "(x)", "unit": "1/s"}}},
}  # fmt: skip
"""The shortest entry of each tool; fio's without logs, whose windows other options change."""
OWN = {"workload": None, "wml": "flowop statfile name=s,filesetname=tree", "space": "1MiB"}
INSTALLED = {"workload": None, "installed": "listdirs", "space": "1MiB"}
TIMED = {"time_based": True, "runtime": "2s"}
JOBS = "[log]\nfsync=1\n"
IN_DIRECTORIES = {"directories": 5, "files_per_directory": 7}
LOGS = " ".join(f"--write_{kind}_log={OUTPUT}/fio" for kind in ("bw", "lat", "iops"))
LAID_OUT = f"fio --name=mountlab --directory={DIRECTORY} --bs=4096 --numjobs=1 --ioengine=psync --refill_buffers=1"
COMMITS = {"metrics": {"commits": {"pattern": "(x)", "unit": "1", "better": "neither"}}}
FIGURES = {("commits", ""): 100.0, ("elapsed", ""): 2.0}
HANDED_THROUGH: dict[str, Any] = {
    "rate_iops": 500, "thread": True, "lat_percentiles": True, "slat_percentiles": True, "clat_percentiles": False,
    "percentile_list": "50:99", "nrfiles": 200, "openfiles": 1, "file_service_type": "random", "norandommap": True,
    "random_distribution": "zipf:1.2", "randseed": 7, "sync": "dsync", "thinktime": 5, "number_ios": 100, "loops": 2,
    "fallocate": "none", "buffer_compress_percentage": 50, "rate_process": "poisson", "verify": "crc32c", "rate": "1m",
    "iodepth_batch": 4,
}  # fmt: skip
"""Options of fio's own of which Mountlab knows nothing."""

Golden = tuple[str, Any, dict[str, Any], list[str]]
"""Option, value, what else is given beside PLAIN, and what changes: 'PART: old words => new words'."""
GOLDEN: dict[str, list[Golden]] = {
    "command": [
        ("argv", "other -x {directory}", {}, [f"argv: mybench {DIRECTORY} => other -x {DIRECTORY}"]),
        ("metrics", {"elapsed": {"pattern": "(x)", "unit": "s"}}, {}, ["answers: file_rate => elapsed"]),
        ("space", "2MiB", {}, ["space: 1048576 => 2097152"]),
        ("time", "9s", {}, ["expected: 10.1 => 9.1"]),
        (
            "prepare",
            "mkdir {directory}/sub",
            {},
            [f"prepare: => mkdir {DIRECTORY}/sub", f"fill: => find {DIRECTORY} -type f -exec cat {{}} +"],
        ),
        ("version", "mybench -V", {}, ['version: sh -c sha256sum "$(command -v "$1")" checksum =>', "version: => -V"]),
        ("ok_status", "0 3", {}, ["fails at: 3 =>"]),
        ("owner", "postgres", {}, ["owner: => postgres"]),
        (
            "commit_clients",
            8,
            COMMITS,
            ["claims: Commits(rate=100.0, clients=1, seconds=1.0) => Commits(rate=100.0, clients=8, seconds=1.0)"],
        ),
        ("cache", "cold", {}, ["cache: => cold"]),
        ("cache", "warm", {"prepare": "mkdir {directory}/sub"}, ["cache: => warm"]),
    ],
    "db_bench": [
        (
            "benchmark",
            "fillsync",
            {"benchmark": "fillseq"},
            ["argv: --benchmarks=fillseq --num=10 => --benchmarks=fillsync --num=10000 --writes=10"],
        ),
        ("num", 11, {}, ["argv: --num=10 => --num=11", "prepare: --num=10 => --num=11"]),
        *(
            (name, value, {}, [f"{part}: --{word}={old} => --{word}={new}" for part in ("argv", "prepare")])
            for name, value, word, old, new in (
                ("value_size", "200B", "value_size", 100, 200),
                ("compression", "zstd", "compression_type", "none", "zstd"),
                ("memtable", "1MiB", "write_buffer_size", 67108864, 1048576),
                ("block_cache", "1MiB", "cache_size", 8388608, 1048576),
            )
        ),
        ("threads", 2, {}, ["argv: --threads=1 => --threads=2"]),
        ("sync", True, {}, ["argv: => --sync=1"]),
        ("disable_wal", True, {}, ["argv: => --disable_wal=1"]),
        ("direct", True, {}, ["argv: => --use_direct_reads=1 --use_direct_io_for_flush_and_compaction=1"]),
        ("percentiles", True, {}, ["argv: --histogram=0 => --histogram=1"]),
        ("cache", "warm", {"benchmark": "readrandom"}, ["cache: => warm"]),
    ],
    "dbench": [
        ("processes", 3, {}, ["argv: 2 => 3"]),
        ("time", "3s", {}, ["argv: -t 2 => -t 3"]),
        ("sync", True, {}, ["argv: => -s"]),
        ("sync_directories", True, {}, ["argv: => -S"]),
        ("fsync", True, {}, ["argv: => -F"]),
        ("cache", "cold", {}, ["cache: => cold"]),
    ],
    "dd": [
        (
            "direction",
            "read",
            {},
            [
                f"argv: if=/dev/zero of={DIRECTORY}/dd.img => if={DIRECTORY}/dd.img of=/dev/null",
                "argv: conv=fdatasync =>",
                f"prepare: => dd if=/dev/zero of={DIRECTORY}/dd.img bs=1048576 count=8 conv=fsync",
                f"fill: => dd if={DIRECTORY}/dd.img of=/dev/null bs=1048576 count=8",
            ],
        ),
        (
            "data",
            "random",
            {},
            [
                f"argv: if=/dev/zero => if={OUTPUT}.data",
                f"prepare: => dd if=/dev/urandom of={OUTPUT}.data bs=1048576 count=8 iflag=fullblock",
            ],
        ),
        (
            "data",
            "random",
            {"direction": "read"},
            ["prepare: if=/dev/zero => if=/dev/urandom", "prepare: => iflag=fullblock"],
        ),
        ("bs", "64KiB", {}, ["argv: bs=1048576 => bs=65536"]),
        ("count", 9, {}, ["argv: count=8 => count=9"]),
        ("conv", "none", {}, ["argv: conv=fdatasync =>"]),
        ("conv", "fsync", {}, ["argv: conv=fdatasync => conv=fsync"]),
        ("oflag", "direct", {}, ["argv: => oflag=direct"]),
        ("oflag", "dsync", {}, ["argv: => oflag=dsync"]),
        ("oflag", "sync", {}, ["argv: => oflag=sync"]),
        ("iflag", "direct", {"direction": "read"}, ["argv: => iflag=direct"]),
        ("runtime", "2s", {"runtime": "1s"}, ["argv: 1000000000 => 2000000000"]),
        ("cache", "cold", {}, ["cache: => cold"]),
        ("cache", "warm", {"direction": "read"}, ["cache: => warm"]),
    ],
    "filebench": [
        (
            "workload",
            "openfiles",
            {"workload": "statfile"},
            [
                "mountlab.f: size=131072 entries=10000 dirwidth=20 => size=0 entries=50000 dirwidth=100",
                "mountlab.f: instances=20 => instances=16",
                "mountlab.f: statfile name=stat-file => openfile name=open-file",
                "mountlab.f: => fd=1 flowop closefile name=close-file fd=1",
            ],
        ),
        ("wml", "flowop openfile name=o,filesetname=tree", OWN, ["mountlab.f: statfile name=s => openfile name=o"]),
        ("installed", "varmail", INSTALLED, ["prepare: listdirs => varmail"]),
        ("runtime", "9s", {}, ["mountlab.f: 60 => 9"]),
        ("runtime", "9s", INSTALLED, ["prepare: 60 => 9"]),
        ("nfiles", 77, {}, ["mountlab.f: entries=10000 => entries=77"]),
        ("filesize", "64KiB", {}, ["mountlab.f: mean=131072 => mean=65536"]),
        (
            "sizes",
            "fixed",
            {},
            [
                "mountlab.f: set $size=randvar(type=gamma randsrc=rand48 seed=0 min=0 mean=131072 gamma=1500) =>",
                "mountlab.f: size=$size => size=131072",
            ],
        ),
        ("dirwidth", 33, {}, ["mountlab.f: dirwidth=20 => dirwidth=33"]),
        ("prealloc", 50, {}, ["mountlab.f: prealloc=80 => prealloc=50"]),
        ("threads", 9, {}, ["mountlab.f: instances=50 => instances=9"]),
        ("writers", 3, {"workload": "oltp"}, ["mountlab.f: instances=10 => instances=3"]),
        ("iosize", "8KiB", {}, ["mountlab.f: iosize=1048576 => iosize=8192"] * 2),
        ("appendsize", "2KiB", {}, ["mountlab.f: iosize=16384 => iosize=2048"]),
        ("burst", 7, {"workload": "rwritefsync"}, ["mountlab.f: iters=16384 => iters=7"]),
        ("rate", 50, {"workload": "videoserver"}, ["mountlab.f: rate=96 => rate=50"]),
        ("direct", True, {"workload": "seqread"}, ["mountlab.f: directio=0 => directio=1"]),
        ("space", "501MiB", OWN, ["space: 1048576 => 525336576", "expected: 62.5021 => 63.5507"]),
        ("cache", "cold", {}, ["cache: => cold", "mountlab.f: as_is => cold"]),
        (
            "cache",
            "cold",
            INSTALLED,
            [
                f"prepare: sh {OUTPUT}/settle.sh as_is {DIRECTORY} => sh {OUTPUT}/settle.sh cold {DIRECTORY}",
                "cache: => cold",
            ],
        ),
    ],
    "fio": [
        (
            "rw",
            "randread",
            {},
            [
                "argv: --rw=write => --rw=randread",
                f"prepare: => {LAID_OUT} --rw=randread --size=67108864 --create_only=1 --eta=never",
                f"fill: => find {DIRECTORY} -type f -exec cat {{}} +",
            ],
        ),
        ("rw", "randwrite", {}, ["argv: --rw=write => --rw=randwrite"]),
        ("bs", "64KiB", {}, ["argv: --bs=4096 => --bs=65536"]),
        ("bssplit", "4k/60:64k/40", {}, ["argv: --bs=4096 =>", "argv: => --bssplit=4k/60:64k/40"]),
        ("size", "1MiB", {}, ["argv: --size=67108864 => --size=1048576"]),
        ("io_size", "1MiB", {}, ["argv: => --io_size=1048576"]),
        ("numjobs", 4, {}, ["argv: --numjobs=1 => --numjobs=4"]),
        ("iodepth", 32, {}, ["argv: => --iodepth=32"]),
        *(
            (("ioengine", name, {}, [f"argv: --ioengine=psync => --ioengine={name}"]))
            for name in ("libaio", "io_uring", "mmap", "sync")
        ),
        ("direct", True, {}, ["argv: => --direct=1"]),
        ("time_based", True, {"runtime": "500ms"}, ["argv: => --time_based=1"]),
        ("runtime", "2s", {}, ["argv: => --runtime=2000000us"]),
        ("ramp_time", "1.5s", TIMED, ["argv: => --ramp_time=1500000us"]),
        ("end_fsync", True, {}, ["argv: => --end_fsync=1"]),
        ("fsync", 1, {}, ["argv: => --fsync=1"]),
        ("fdatasync", 8, {}, ["argv: => --fdatasync=8"]),
        ("refill_buffers", False, {}, ["argv: --refill_buffers=1 => --refill_buffers=0"]),
        ("rwmixread", 70, {"rw": "randrw"}, ["argv: => --rwmixread=70", "prepare: => --rwmixread=70"]),
        ("group_reporting", False, {}, ["argv: --group_reporting=1 => --group_reporting=0"]),
        ("log_avg_msec", 100, {}, [f"argv: => --log_avg_msec=100 {LOGS}"]),
        (
            "jobs",
            JOBS,
            {},
            [
                f"argv: --name=mountlab --directory={DIRECTORY} --bs=4096 --numjobs=1 --ioengine=psync "
                f"--refill_buffers=1 --rw=write --size=67108864 --group_reporting=1 => {OUTPUT}/jobs.fio",
                f"jobs.fio: => [global] directory={DIRECTORY} group_reporting=1 [log] bs=4096 numjobs=1 ioengine=psync "
                "refill_buffers=1 rw=write size=67108864 fsync=1",
            ],
        ),
        (
            "variables",
            {"COUNT": 9},
            {"jobs": "[log]\nfsync=${COUNT}\n", "variables": {"COUNT": 8}},
            ["jobs.fio: fsync=8 => fsync=9"],
        ),
        ("cache", "cold", {}, ["cache: => cold"]),
        ("cache", "as_is", {}, ["argv: => --invalidate=0", "cache: => as_is"]),
        ("cache", "warm", {"rw": "read"}, ["argv: => --invalidate=0", "cache: => warm"]),
        *(
            (name, value, {}, [f"argv: => --{name}={int(value) if value in (True, False) else value}"])
            for name, value in HANDED_THROUGH.items()
        ),
        ("bsrange", "4k-64k", {}, ["argv: --bs=4096 =>", "argv: => --bsrange=4k-64k"]),
    ],
    "fs_mark": [
        ("count", 11, {}, ["argv: -n 10 => -n 11"]),
        ("file_size", "100B", {}, ["argv: -s 4096 => -s 100"]),
        ("loops", 2, {}, ["argv: -L 1 => -L 2"]),
        ("sync", "none", {}, ["argv: -S 1 => -S 0"]),
        ("sync", "sync", {}, ["argv: -S 1 => -S 2"]),
        ("sync", "post_reverse", {}, ["argv: -S 1 => -S 3"]),
        ("sync", "sync_post_reverse", {}, ["argv: -S 1 => -S 4"]),
        ("sync", "post", {}, ["argv: -S 1 => -S 5"]),
        ("sync", "sync_post", {}, ["argv: -S 1 => -S 6"]),
        ("threads", 2, {}, ["argv: -t 1 => -t 2"]),
        ("write_size", "1KiB", {}, ["argv: -w 16384 => -w 1024"]),
        ("name_length", 60, {}, ["argv: -p 40 => -p 60"]),
        ("random_length", 20, {}, ["argv: -r 24 => -r 20"]),
        ("call_times", True, {}, ["argv: => -v"]),
        ("keep_files", False, {}, ["argv: -L 1 =>"]),
        ("directories", 9, IN_DIRECTORIES, ["argv: -D 5 => -D 9"]),
        ("files_per_directory", 8, IN_DIRECTORIES, ["argv: -N 7 => -N 8"]),
        ("cache", "cold", {}, ["cache: => cold"]),
    ],
    "ioping": [
        ("operation", "write", {}, ["argv: => -W"]),
        ("count", 11, {}, ["argv: -c 11 => -c 12"]),
        ("time", "2s", {"count": None, "time": "1s"}, ["argv: -w 1.0 => -w 2.0"]),
        ("interval", "1ms", {}, ["argv: -i 0.000000000 => -i 0.001000000"]),
        ("size", "8KiB", {}, ["argv: -s 4096 => -s 8192"]),
        ("working_set", "2MiB", {}, ["argv: -S 1048576 => -S 2097152"]),
        ("order", "linear", {}, ["argv: => -L"]),
        ("access", "cached", {}, ["argv: => -C"]),
        ("access", "direct", {}, ["argv: => -D"]),
        ("durability", "dsync", {}, ["argv: => -y"]),
        ("durability", "sync", {}, ["argv: => -Y"]),
        ("cache", "cold", {}, ["cache: => cold"]),
    ],
    "large-directory": [
        ("names", 11, {}, ["argv: 10 => 11"]),
        ("operations", "remove create", {}, ["argv: create,list,stat,remove => create,remove"]),
        ("cache", "as_is", {}, ["argv: cold => as_is", "cache: cold => as_is"]),
    ],
    "rsync": [
        ("files", 200, {}, ["argv: 10 => 200", "argv: 1 => 4"]),
        ("operations", "changed first", {}, ["argv: first,unchanged,changed => first,changed"]),
        ("change", "50%", {}, ["argv: 1 => 5"]),
        ("whole_file", False, {}, ["argv: --whole-file => --no-whole-file"]),
        ("inplace", True, {}, ["argv: --whole-file => --whole-file --inplace"]),
        ("fsync", True, {}, ["argv: --whole-file => --whole-file --fsync"]),
        ("cache", "as_is", {}, ["argv: cold => as_is", "cache: cold => as_is"]),
    ],
    "sysbench": [
        (
            "mode",
            "seqrd",
            {},
            [
                "argv: --file-test-mode=rndwr => --file-test-mode=seqrd",
                f"fill: => find {DIRECTORY} -type f -exec cat {{}} +",
            ],
        ),
        (
            "size",
            "4MiB",
            {},
            [
                "argv: --file-total-size=2097152 => --file-total-size=4194304",
                "prepare: --file-total-size=2097152 => --file-total-size=4194304",
            ],
        ),
        ("files", 4, {}, ["argv: --file-num=128 => --file-num=4", "prepare: --file-num=128 => --file-num=4"]),
        (
            "bs",
            "4KiB",
            {},
            [
                "argv: --file-block-size=16384 => --file-block-size=4096",
                "prepare: --file-block-size=16384 => --file-block-size=4096",
            ],
        ),
        ("threads", 4, {}, ["argv: --threads=1 => --threads=4"]),
        ("time", "2s", {}, ["argv: --time=1 => --time=2"]),
        ("events", 9, {"time": None, "events": 8}, ["argv: --events=8 => --events=9"]),
        ("fsync_every", 0, {}, ["argv: --file-fsync-freq=100 => --file-fsync-freq=0"]),
        ("fsync_all", True, {}, ["argv: => --file-fsync-all=on"]),
        ("fsync_end", False, {}, ["argv: --file-fsync-end=on => --file-fsync-end=off"]),
        ("fsync_mode", "fdatasync", {}, ["argv: --file-fsync-mode=fsync => --file-fsync-mode=fdatasync"]),
        *((("flags", flag, {}, [f"argv: => --file-extra-flags={flag}"])) for flag in ("direct", "sync", "dsync")),
        ("read_ratio", "2", {"mode": "rndrw"}, ["argv: => --file-rw-ratio=2"]),
        ("cache", "warm", {"mode": "rndrd"}, ["cache: => warm"]),
    ],
    "watched": [
        ("argv", "other -x", {}, ["argv: mybench x => other -x"]),
        ("environment", {"A": "1"}, {}, ["argv: => env A=1"]),
        ("metrics", {"elapsed": {"pattern": "(x)", "unit": "s"}}, {}, ["answers: file_rate => elapsed"]),
        ("time", "9s", {}, ["expected: 10.1 => 9.1"]),
        ("version", "mybench -V", {}, ['version: sh -c sha256sum "$(command -v "$1")" checksum =>', "version: => -V"]),
        ("ok_status", "0 3", {}, ["fails at: 3 =>"]),
        (
            "commit_clients",
            8,
            COMMITS,
            ["claims: Commits(rate=100.0, clients=1, seconds=1.0) => Commits(rate=100.0, clients=8, seconds=1.0)"],
        ),
        ("cache", "cold", {}, ["cache: as_is => cold"]),
    ],
    "tree": [
        ("files", 11, {}, ["argv: 10 => 11"]),
        (
            "operations",
            "grep git-status",
            {},
            ["argv: make,copy,grep,stat,remove => git-status,grep", "argv: => git"],
        ),
        ("cache", "as_is", {}, ["argv: cold => as_is", "cache: cold => as_is"]),
    ],
    "pg_test_fsync": [
        ("time_per_test", "2s", {}, ["argv: -s 5 => -s 2"]),
        ("cache", "cold", {}, ["cache: => cold"]),
    ],
    "pgbench": [
        ("builtin", "select-only", {}, ["argv: -b tpcb-like => -b select-only"]),
        ("builtin", "simple-update", {}, ["argv: -b tpcb-like => -b simple-update"]),
        (
            "script",
            "SELECT 1;",
            {},
            [f"argv: -b tpcb-like => -f {OUTPUT}/own.sql -s 10", "own.sql: => SELECT 1;"],
        ),
        ("scale", 20, {}, ["prepare: 10 => 20"]),
        ("sessions", 4, {}, ["argv: -c 2 => -c 4"]),
        ("threads", 2, {}, ["argv: -j 1 => -j 2"]),
        ("runtime", "9s", {}, ["argv: -T 60 => -T 9"]),
        ("transactions", 9, {"runtime": None, "transactions": 8}, ["argv: -t 8 => -t 9"]),
        ("protocol", "prepared", {}, ["argv: -M simple => -M prepared"]),
        ("percentiles", False, {}, [f"argv: -l --log-prefix={OUTPUT}/log =>"]),
        *(
            (name, value, {}, [f"argv: => {name}={word}"])
            for name, value, word in (
                ("synchronous_commit", False, "off"),
                ("fsync", False, "off"),
                ("full_page_writes", True, "on"),
                ("wal_sync_method", "open_datasync", "open_datasync"),
                ("wal_init_zero", False, "off"),
                ("wal_recycle", False, "off"),
                ("wal_compression", "lz4", "lz4"),
                ("wal_compression", False, "off"),
                ("commit_delay", 100, "100"),
                ("shared_buffers", "64MiB", "67108864B"),
                ("max_wal_size", "256MiB", "268435456B"),
                ("checkpoint_timeout", "30s", "30s"),
            )
        ),
        ("data_checksums", True, {}, ["prepare: 0 => 1"]),
        ("wal_segment_size", "64MiB", {}, ["prepare: 16 => 64"]),
        ("cache", "warm", {}, ["cache: => warm"]),
    ],
    "sqlite": [
        ("rows", 110, {}, ["argv: 100 => 110"]),
        ("row_size", "1KiB", {}, ["argv: 100 => 1024"]),
        ("transaction", 10, {}, ["argv: 1 => 10"]),
        ("journal_mode", "wal", {}, ["argv: delete => wal"]),
        ("journal_mode", False, {}, ["argv: delete => off"]),
        ("synchronous", "extra", {}, ["argv: full => extra"]),
        ("page_size", "16KiB", {}, ["argv: 4096 => 16384"]),
        ("operations", "select insert", {}, ["argv: insert,update,select,vacuum => insert,select"]),
        ("cache", "as_is", {}, ["argv: cold => as_is", "cache: cold => as_is"]),
    ],
    "reflink": [
        ("size", "32MiB", {}, ["argv: 67108864 => 33554432", "prepare: 67108864 => 33554432"]),
        ("clones", 3, {}, ["argv: 10 => 3"]),
        ("bs", "8KiB", {}, ["argv: 4096 => 8192", "prepare: 4096 => 8192"]),
        ("blocks", 9, {}, ["argv: 500 => 9", "prepare: 500 => 9"]),
        ("order", "sequential", {}, ["argv: random => sequential"]),
        ("cache", "cold", {}, ["cache: => cold"]),
    ],
    "degrade": [
        ("size", "32MiB", {}, ["argv: 67108864 => 33554432", "prepare: 67108864 => 33554432"]),
        ("member", "3", {}, ["argv: 1 => 3", "prepare: => 3", "prepare: 1 =>"]),
        ("back", "returned", {}, ["argv: replaced => returned"]),
        ("cache", "cold", {}, ["cache: => cold"]),
    ],
    "scrub": [
        ("size", "32MiB", {}, ["argv: 16384 => 8192", "prepare: 16384 => 8192"]),
        ("errors", 7, {}, ["argv: 10 => 7", "prepare: 10 => 7"]),
        ("member", "3", {}, ["argv: 1 => 3", "prepare: 1 => 3"]),
        ("cache", "cold", {}, []),
    ],
    "send": [
        ("via", "rsync", {}, ["argv: btrfs => rsync", "prepare: btrfs => rsync"]),
        ("size", "128MiB", {}, ["argv: 67108864 => 134217728", "argv: 20 => 41", "prepare: 67108864 => 134217728"]),
        ("file_size", "128KiB", {}, ["argv: 65536 20 => 131072 10", "prepare: 65536 => 131072"]),
        ("change", "10%", {}, ["argv: 20 => 102"]),
        ("to", "null", {}, ["argv: directory => null"]),
        ("cache", "warm", {}, ["cache: => warm"]),
    ],
    "snapshot": [
        ("size", "128MiB", {}, ["argv: 67108864 => 134217728", "argv: 20 => 41", "prepare: 67108864 => 134217728"]),
        ("file_size", "128KiB", {}, ["argv: 65536 => 131072", "argv: 20 => 10", "prepare: 65536 => 131072"]),
        ("snapshots", 3, {}, ["argv: 10 => 3"]),
        ("change", "10%", {}, ["argv: 20 => 102"]),
        ("free", "wait", {}, ["argv: sync => wait"]),
        ("limit", "9s", {}, ["argv: 60 => 9"]),
        ("cache", "cold", {}, ["cache: => cold"]),
    ],
}
NAMED_BY_THE_STUDIES = {
    "rw", "bs", "bssplit", "iodepth", "numjobs", "ioengine", "direct", "fsync", "fdatasync", "size", "time_based",
    "runtime", "ramp_time", "rwmixread", "rate_iops", "thread", "group_reporting", "refill_buffers", "log_avg_msec",
    "lat_percentiles",
}  # fmt: skip
"""Options of fio: some are Mountlab's own to check, the others are handed through."""


def words_of(argv: Sequence[str]) -> list[str]:
    """The words of a command line, a letter and its value together: '-n 10'."""
    words: list[str] = []
    for word in argv:
        if words and re.fullmatch("-[A-Za-z]", words[-1]) and not word.startswith("-"):
            words[-1] += f" {word}"
        else:
            words.append(word)
    return words


def parts_of(command: Command) -> dict[str, list[str]]:
    own = {name.removeprefix(f"{OUTPUT}/"): re.split(r"[\s,]+", text.strip()) for name, text in command.files.items()}
    return {
        "argv": words_of(command.argv),
        "prepare": [word for argv in command.prepare for word in argv],
        "fill": [word for argv in command.fill for word in argv],
        "cache": [command.cache or ""],
        "owner": [command.owner],
        **own,
    }


def beyond_the_command(tool: Tool, own: Workload) -> dict[str, list[str]]:
    """What an option may change that is in no command line of a trial."""
    return {
        "space": [str(tool.space_bytes(own))],
        "expected": [f"{tool.expected_s(own):g}"],
        "answers": [*tool.main_metrics(own)],
        "version": [word for program in tool.programs_for(own) for word in program.version],
        "claims": [str(tool.commits(own, FIGURES))],
        "fails at": [str(status) for status in (1, 2, 3) if "exit status" in failure(tool, own, status)],
    }


def failure(tool: Tool, own: Workload, status: int) -> str:
    """What is said of a trial that printed nothing and ended so."""
    with pytest.raises(TrialError) as caught:
        tool.parse(own, ToolOutput(exit_status=status, stdout="", stderr="", files={}))
    return str(caught.value)


def differences(old: Mapping[str, list[str]], new: Mapping[str, list[str]]) -> list[str]:
    found = []
    for part in dict.fromkeys((*old, *new)):
        before, after = old.get(part, []), new.get(part, [])
        for kind, i, j, k, m in SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
            if kind != "equal":
                found.append(" ".join(f"{part}: {' '.join(before[i:j])} => {' '.join(after[k:m])}".split()))
    return found


each_golden = every_row(
    ("tool", "golden"),
    [(TOOLS[name], golden) for name in GOLDEN for golden in GOLDEN[name]],
    ids=lambda value: getattr(value, "name", None) or f"{value[0]}={str(value[1])[:20]!r}",
)


def test_every_option_of_every_tool_has_its_golden_words() -> None:
    assert set(GOLDEN) == set(PLAIN) == set(TOOLS)
    for name, tool in TOOLS.items():
        told = {option for option, *_ in GOLDEN[name]}
        assert (told >= set(tool.options)) if tool.any_option else (told == set(tool.options)), name
    assert {option for option, *_ in GOLDEN["fio"]} >= NAMED_BY_THE_STUDIES


@each_golden
def test_each_option_changes_these_words_and_no_others(tool: Tool, golden: Golden) -> None:
    option, value, beside, expected = golden
    plain = {**PLAIN[tool.name], **beside}
    old, new = read(tool, plain), read(tool, {**plain, option: value})
    commands = [parts_of(tool.command(own, DIRECTORY, OUTPUT)) for own in (old, new)]
    found = differences(*commands)
    assert (found or differences(beyond_the_command(tool, old), beyond_the_command(tool, new))) == expected


@each_golden
def test_the_program_itself_knows_each_option_that_it_is_given(tool: Tool, golden: Golden) -> None:
    """By its own help, as recorded."""
    option, value, beside, _ = golden
    asked(tool, {**PLAIN[tool.name], **beside, option: value})
    assert bool(tool.box_help) == (tool.name in HELP)


# --- what is refused --------------------------------------------------------------------------------------------------

HELP = {"fio": "fio/help-3.33.txt", "dd": "versions/dd-9.1-help.txt"}
"""What the programs say of their options, for tools that ask the box."""

Refusal = tuple[dict[str, Any], str, str, str, str]
"""Changes of PLAIN, a part of what happened, the key, what was got, and a part of what is allowed."""
UNKNOWN: dict[str, Refusal] = {
    "command": ({"spcae": "1MiB"}, "unknown option for command", "spcae", "'spcae'", "argv, cache"),
    "db_bench": ({"thraeds": 8}, "unknown option for db_bench", "thraeds", "'thraeds'", "benchmark, block_cache"),
    "dbench": ({"procesess": 8}, "unknown option for dbench", "procesess", "'procesess'", "cache, fsync"),
    "dd": ({"cuont": 8}, "unknown option for dd", "cuont", "'cuont'", "bs, cache, conv, count"),
    "degrade": ({"membr": "first"}, "unknown option for degrade", "membr", "'membr'", "back, cache, member, size"),
    "filebench": ({"nfile": 8}, "unknown option for filebench", "nfile", "'nfile'", "appendsize, burst"),
    "fio": ({"iodpeth": 4}, "the box's fio has no such option", "iodpeth", "iodpeth", "what `fio --cmdhelp` lists"),
    "fs_mark": ({"cuont": 8}, "unknown option for fs_mark", "cuont", "'cuont'", "cache, call_times, count"),
    "ioping": ({"cuont": 8}, "unknown option for ioping", "cuont", "'cuont'", "access, cache, count"),
    "large-directory": ({"nmaes": 8}, "unknown option for large-directory", "nmaes", "'nmaes'", "cache, names"),
    "rsync": ({"fiels": 8}, "unknown option for rsync", "fiels", "'fiels'", "cache, change, files"),
    "sysbench": ({"thraeds": 8}, "unknown option for sysbench", "thraeds", "'thraeds'", "bs, cache, events, files"),
    "tree": ({"fiels": 8}, "unknown option for tree", "fiels", "'fiels'", "cache, files, operations"),
    "watched": ({"metrcis": {}}, "unknown option for watched", "metrcis", "'metrcis'", "argv, cache, commit_clients"),
    "pg_test_fsync": ({"time_per_tset": "1s"}, "unknown option for pg_test_fsync", "time_per_tset", "'time_per_tset'",
                      "cache, time_per_test"),
    "pgbench": ({"slace": 8}, "unknown option for pgbench", "slace", "'slace'", "builtin, cache, checkpoint_timeout"),
    "sqlite": ({"rosw": 8}, "unknown option for sqlite", "rosw", "'rosw'", "cache, journal_mode"),
    "reflink": ({"bloks": 8}, "unknown option for reflink", "bloks", "'bloks'", "blocks, bs, cache"),
    "scrub": ({"erors": 3}, "unknown option for scrub", "erors", "'erors'", "cache, errors, member, size"),
    "send": ({"chnage": "2%"}, "unknown option for send", "chnage", "'chnage'", "cache, change"),
    "snapshot": ({"limti": "2s"}, "unknown option for snapshot", "limti", "'limti'", "cache, change"),
}  # fmt: skip
MEANT = {"command": "space", "db_bench": "threads", "dbench": "processes", "dd": "count", "degrade": "member",
         "filebench": "nfiles",
         "fio": "iodepth", "fs_mark": "count", "ioping": "count", "large-directory": "names",
         "pg_test_fsync": "time_per_test", "pgbench": "scale", "reflink": "blocks", "rsync": "files", "scrub": "errors",
         "send": "change",
         "snapshot": "limit", "sqlite": "rows", "sysbench": "threads", "tree": "files",
         "watched": "metrics"}  # fmt: skip
WRONG_TYPE: dict[str, Refusal] = {
    "command": ({"space": 5}, "a number with its unit is needed", "space", "5 (int)", "text such as '64KiB'"),
    "db_bench": ({"num": "many"}, "wrong value for an option", "num", "'many' (str)", "a whole number"),
    "dbench": ({"sync": "yes"}, "wrong value for an option", "sync", "'yes' (str)", "true or false"),
    "dd": ({"count": "8"}, "wrong value for an option", "count", "'8' (str)", "a whole number"),
    "degrade": ({"member": 1}, "wrong value for an option", "member", "1 (int)", "text"),
    "filebench": ({"nfiles": "many"}, "wrong value for an option", "nfiles", "'many' (str)", "a whole number"),
    "fio": ({"direct": "yes"}, "wrong value for an option", "direct", "'yes' (str)", "true or false"),
    "fs_mark": ({"sync": False}, "wrong value for an option", "sync", "False (bool)", "none, fsync, sync"),
    "ioping": ({"interval": 1}, "a number with its unit is needed", "interval", "1 (int)", "text such as '60s'"),
    "large-directory": ({"names": "1e5"}, "wrong value for an option", "names", "'1e5' (str)", "a whole number"),
    "rsync": ({"inplace": "yes"}, "wrong value for an option", "inplace", "'yes' (str)", "true or false"),
    "sysbench": ({"bs": 4096}, "a number with its unit is needed", "bs", "4096 (int)", "text such as '64KiB'"),
    "watched": ({"environment": "A=1"}, "wrong value for an option", "environment", "'A=1' (str)", "a mapping"),
    "tree": ({"files": "many"}, "wrong value for an option", "files", "'many' (str)", "a whole number"),
    "pg_test_fsync": ({"time_per_test": 5}, "a number with its unit is needed", "time_per_test", "5 (int)",
                      "text such as '60s'"),
    "pgbench": ({"runtime": 60}, "a number with its unit is needed", "runtime", "60 (int)", "text such as '60s'"),
    "sqlite": ({"synchronous": True}, "wrong value for an option", "synchronous", "True (bool)", "off, normal, full"),
    "reflink": ({"bs": 4096}, "a number with its unit is needed", "bs", "4096 (int)", "text such as '64KiB'"),
    "scrub": ({"errors": "many"}, "wrong value for an option", "errors", "'many' (str)", "a whole number"),
    "send": ({"to": False}, "wrong value for an option", "to", "False (bool)", "directory, null"),
    "snapshot": ({"snapshots": "ten"}, "wrong value for an option", "snapshots", "'ten' (str)", "a whole number"),
}  # fmt: skip
WRONG_VALUE: dict[str, Refusal] = {
    "command": ({"space": "0B"}, "a command that writes takes room", "space", "0", "1B or more"),
    "db_bench": ({"disable_wal": True, "sync": True}, "RocksDB cannot flush a log", "disable_wal", "true",
                 "false with sync"),
    "dbench": ({"time": "1s"}, "dbench counts whole seconds", "time", "1 s", "2s to 3600s"),
    "dd": ({"count": 0}, "dd would copy nothing", "count", "0", "1 or more"),
    "degrade": ({"member": "second"}, "degrade has no such device", "member", "'second'", "last, first, or"),
    "filebench": ({"prealloc": 101}, "more files than there are", "prealloc", "101", "0 to 100"),
    "fio": ({"rwmixread": 101}, "beyond what the box's fio takes", "rwmixread", "101", "from 0 to 100"),
    "fs_mark": ({"threads": 65}, "fs_mark cannot do this", "threads", "threads 65", "1 to 64"),
    "ioping": ({"size": "2MiB"}, "a request of ioping does not fit", "working_set", "1048576 B", "size (2097152 B)"),
    "large-directory": ({"names": 1_000_001}, "not a number of names", "names", "1000001", "1 to 1000000"),
    "rsync": ({"change": "0%"}, "rsync cannot change this share", "change", "0%", "more than 0 %"),
    "sysbench": ({"size": "3MiB"}, "sysbench would cut the end of its files", "size", "3145728 B", "2097152 B"),
    "watched": ({"cache": "warm"}, "not known which files the program reads", "cache", "'warm'", "as_is, or cold"),
    "tree": ({"files": 0}, "not a number of files for tree", "files", "0", "1 to 1000000"),
    "pg_test_fsync": ({"time_per_test": "1.5s"}, "pg_test_fsync counts whole seconds", "time_per_test", "1.5 s",
                      "1s to 3600s"),
    "pgbench": ({"threads": 3}, "pgbench cannot do this", "threads", "3", "1 to 2, the number of sessions"),
    "sqlite": ({"transaction": 7}, "sqlite cannot do this", "transaction", "7", "a divisor of rows (100)"),
    "reflink": ({"bs": "1000B"}, "reflink overwrites whole blocks", "bs", "1000 B", "a multiple of 4KiB"),
    "scrub": ({"errors": 0}, "scrub cannot plant so many errors", "errors", "0", "1 to 1000"),
    "send": ({"change": "0%"}, "send cannot change this share of its files", "change", "0%", "more than 0 %"),
    "snapshot": ({"file_size": "1000B"}, "snapshot makes files of whole blocks", "file_size", "1000 B", "of 4KiB"),
}  # fmt: skip
RESERVED: dict[str, Refusal] = {
    "command": ({"output": "/etc"}, "command's option output is not for a sweep to set", "output", "output", "memory"),
    "db_bench": ({"db": "/etc"}, "db_bench's option db is not for a sweep to set", "db", "db", "nothing else"),
    "dbench": ({"loadfile": "/etc/x"}, "dbench's option loadfile is not for a sweep to set", "loadfile", "loadfile",
               "of the package"),
    "dd": ({"of": "/etc/x"}, "dd's option of is not for a sweep to set", "of", "of", "nothing else is overwritten"),
    "degrade": ({"device": "/dev/sda"}, "degrade's option device is not for a sweep to set", "device", "device",
                "claimed"),
    "filebench": ({"dir": "/etc"}, "filebench's option dir is not for a sweep to set", "dir", "dir", "nothing else"),
    "fio": ({"filename": "/etc/x"}, "fio's option filename is not for a sweep to set", "filename", "filename",
            "outside its own directory"),
    "fs_mark": ({"d": "/etc"}, "fs_mark's option d is not for a sweep to set", "d", "d", "nothing else is written"),
    "ioping": ({"T": "1s"}, "ioping's option T is not for a sweep to set", "T", "T", "what the figures are about"),
    "large-directory": ({"seed": 5}, "large-directory's option seed is not", "seed", "seed", "each block has a seed"),
    "rsync": ({"source": "/etc"}, "rsync's option source is not for a sweep to set", "source", "source", "checked"),
    "sysbench": ({"file-io-mode": "async"}, "sysbench's option file-io-mode is not", "file-io-mode",
                 "file-io-mode", "latency"),
    "watched": ({"directory": "/etc"}, "watched's option directory is not for a sweep to set", "directory", "directory",
                "path"),
    "tree": ({"seed": 5}, "tree's option seed is not for a sweep to set", "seed", "seed", "each block has a seed"),
    "pgbench": ({"port": 5432}, "pgbench's option port is not for a sweep to set", "port", "port", "no address"),
    "sqlite": ({"seed": 5}, "sqlite's option seed is not for a sweep to set", "seed", "seed", "each block has a seed"),
    "pg_test_fsync": ({"f": "/etc/x"}, "pg_test_fsync's option f is not for a sweep to set", "f", "f", "overwritten"),
    "scrub": ({"device": "/dev/sda"}, "scrub's option device is not for a sweep to set", "device", "device", "claimed"),
    **{
        name: ({"directory": "/etc"}, f"{name}'s option directory is not for a sweep to set", "directory", "directory",
               "so that nothing else is")
        for name in ("reflink", "send", "snapshot")
    },
}  # fmt: skip


def help_of(tool: Tool) -> str:
    return (DATA / HELP[tool.name]).read_text() if tool.box_help else ""


def refusal(tool: Tool, changes: Mapping[str, Any]) -> ParameterError:
    with pytest.raises(ParameterError) as caught:
        asked(tool, {**PLAIN[tool.name], **changes})
    return caught.value


def asked(tool: Tool, options: Mapping[str, Any]) -> None:
    """What a plan asks: whether we know the options, and whether the box's program does."""
    tool.check_help(read(tool, options).options, help_of(tool), where="workloads.w")


@each_tool
@every_row("table", [UNKNOWN, WRONG_TYPE, WRONG_VALUE, RESERVED], ids=["unknown", "type", "value", "ours"])
def test_a_bad_option_is_refused_with_what_where_got_and_allowed(table: dict[str, Refusal], tool: Tool) -> None:
    changes, what, key, got, allowed = table[tool.name]
    error = refusal(tool, changes)
    assert what in error.what
    assert error.where.endswith(f"workloads.w.{key}")
    assert error.got == got
    assert allowed in error.allowed
    assert all(part in str(error) for part in (error.what, error.where, error.got, error.allowed))


@each_tool
def test_a_misspelt_option_is_refused_with_the_one_that_was_meant(tool: Tool) -> None:
    assert MEANT[tool.name] in tool.options
    assert refusal(tool, UNKNOWN[tool.name][0]).next_step == f"did you mean '{MEANT[tool.name]}'?"


# --- the recordings ---------------------------------------------------------------------------------------------------

GLOBBED = {
    "pg_test_fsync/*.stdout": ("test_pg_test_fsync.py", 'DATA.glob("*.stdout")'),
    "fs_mark/*.stdout": ("test_fs_mark.py", 'DATA.glob("*.stdout")'),
    "fio/fio_*.log": ("test_series.py", 'DATA.glob("fio_*.log")'),
    "fio/2.*-write.json": ("test_logs.py", 'f"fio/{version}-write.json"'),
    **{
        f"versions/{name}.txt": ("test_conformance.py", 'f"{name}-{version}.txt"')
        for name in ("cp-9.1", "find-4.9.0", "grep-3.8", "ls-9.1", "tar-1.34", "xargs-4.9.0")
    },
    "dd/uutils-*.stderr": ("test_logs_as_posted.py", 'f"dd/uutils-{version}.stderr"'),
}
"""Recordings that a test takes by a pattern of their names: the test, and how it says so."""


@pytest.mark.slow
def test_every_recording_of_a_tool_is_used_by_a_test() -> None:
    """But for the fuzzer, which takes whatever there is."""
    sources = {path.name: path.read_text() for path in TESTS.rglob("test_*.py")}
    assert all(words in sources[source] for source, words in GLOBBED.values())
    everything = "\n".join(sources.values())
    unused = []
    for path in sorted(path for name in (*TOOLS, "versions") for path in (DATA / name).rglob("*") if path.is_file()):
        own = sources.get(f"test_{path.relative_to(DATA).parts[0]}.py", "")
        taken = any(path.match(pattern) for pattern in GLOBBED) or (
            path.stem in wml.RECIPES and "filebench" in path.parts
        )
        quoted = f'"{path.name}"' in everything or f'/{path.name}"' in everything or f'"{path.stem}"' in own
        if not taken and not quoted:
            unused.append(str(path.relative_to(DATA)))
    assert unused == []


# --- versions ---------------------------------------------------------------------------------------------------------

SQLITE_VERSION = (DATA / "versions" / "sqlite3-3.40.1.txt").read_text().strip()
VERSIONS: dict[str, list[tuple[str, str, str]]] = {
    "db_bench": [("db_bench-7.8.3.txt", "db_bench version 7.8.3", "")],
    "dbench": [("dbench-4.00.txt", "dbench version 4.00 - Copyright Andrew Tridgell 1999-2004", "")],
    "dd": [
        ("dd-9.1.txt", "dd (coreutils) 9.1", ""),
        ("dd-busybox-1.35.0.txt", "BusyBox v1.35.0 (Debian 1:1.35.0-4+deb12u1+b1) multi-call binary.", "--version"),
    ],
    "filebench": [("filebench-1.5-alpha3.txt", "Filebench version 1.5-alpha3", "")],
    "ioping": [("ioping-1.3.txt", "ioping 1.3", "")],
    "rsync": [("rsync-3.5.0.txt", "rsync  version 3.5.0  protocol version 32", "")],
    "setarch": [("setarch-2.38.1.txt", "setarch from util-linux 2.38.1", "")],
    "fio": [("fio-3.33.txt", "fio-3.33", "")],
    "pg_test_fsync": [("pg_test_fsync-15.18.txt", "pg_test_fsync (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", "")],
    "pgbench": [("pgbench-15.18.txt", "pgbench (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", "")],
    "postgres": [("postgres-15.18.txt", "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", "")],
    "sqlite3": [("sqlite3-3.40.1.txt", SQLITE_VERSION, "")],
    "fs_mark": [("fs_mark-3.3-usage.txt", "", "")],
    "sysbench": [("sysbench-1.0.20.txt", "sysbench 1.0.20", "")],
    **{
        name: [
            (f"{name}-{version}.txt", first, ""),
            ("dd-busybox-1.35.0.txt", "BusyBox v1.35.0 (Debian 1:1.35.0-4+deb12u1+b1) multi-call binary.", "--version"),
        ]
        for name, version, first in (
            ("cp", "9.1", "cp (GNU coreutils) 9.1"),
            ("find", "4.9.0", "find (GNU findutils) 4.9.0"),
            ("grep", "3.8", "grep (GNU grep) 3.8"),
            ("ls", "9.1", "ls (GNU coreutils) 9.1"),
            ("tar", "1.34", "tar (GNU tar) 1.34"),
            ("xargs", "4.9.0", "xargs (GNU findutils) 4.9.0"),
        )
    },
    "mybench": [("fs_mark-3.3-usage.txt", "", "")],
    "btrfs": [("btrfs-6.2.txt", "btrfs-progs v6.2", "")],
}
"""Program to recordings of what it says of itself, the version in it ('' where that is a checksum of the program), and
the option at which it fails."""


def programs_of(tool: Tool) -> tuple[Program, ...]:
    return tool.programs or tool.programs_for(read(tool, PLAIN[tool.name]))


def test_every_program_of_every_tool_has_a_recording_of_its_version() -> None:
    assert set(VERSIONS) == {program.name for tool in TOOLS.values() for program in programs_of(tool)}


@pytest.mark.parametrize(
    ("program", "recording", "version", "fails_at"),
    [(program, *row) for tool in TOOLS.values() for program in programs_of(tool) for row in VERSIONS[program.name]],
    ids=lambda value: getattr(value, "name", ""),
)
def test_the_version_is_found_in_what_a_program_says_of_itself(
    program: Program, recording: str, version: str, fails_at: str, tmp_path: Path
) -> None:
    """Trap: no tool version, no measurement."""
    fake = tmp_path / program.name
    text = f'cat "{DATA}/versions/{recording}"\n[ "${{1:-}}" != "{fails_at or "never"}" ]\n'
    fake.write_text(f"#!/bin/sh\n{text}")
    fake.chmod(0o755)
    path = f"{tmp_path}:{os.defpath}"
    argv = ["sh", "-c", gather_script((), [program]), "facts", "", ""]
    done = subprocess.run(argv, env={"PATH": path}, capture_output=True, text=True, check=True)
    checksum = f"{hashlib.sha256(fake.read_bytes()).hexdigest()}  {fake}"
    assert parse_sections(done.stdout).programs.installed == {
        program.name: InstalledProgram(path=str(fake), version=version or checksum)
    }
