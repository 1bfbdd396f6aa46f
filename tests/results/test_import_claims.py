"""What an import says of its logs is held against what each log states about itself.

Logs are the recordings of tests/data, or are written here by the print statements of the tools: fio's init.c (2.1: the
sizes of `fio_uint_to_kmg`; 3.x: `num2str` with four digits) and stat.c (`json_add_job_opts`), fs_mark's
`print_run_info`, filebench's `echo` lines of its workload files, dd's and pg_test_fsync's own lines.
"""

from __future__ import annotations

import json
import random
import re
import shutil
import subprocess
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest
from mountlab.__main__ import main
from mountlab.core.errors import ParameterError
from mountlab.logs import Output, Part, read_log
from mountlab.logs.stated import stated
from mountlab.logs.statement import Stated
from mountlab.programs import TOOLS
from mountlab.report.sections import parameters
from mountlab.results.import_levels import readings
from mountlab.results.imported import import_file
from mountlab.results.journal import read_journal
from mountlab.results.store import Run, load_run
from rows import every_row

DATA = Path(__file__).parents[1] / "data"


def log(name: str) -> str:
    return (DATA / name).read_text()


def dd(bs: int, count: int, seconds: float = 0.5) -> str:
    moved = bs * count
    return (
        f"{count}+0 records in\n{count}+0 records out\n{moved} bytes ({moved / 1e6:.1f} MB, {moved / 2**20:.1f} MiB) "
        f"copied, {seconds} s, {moved / seconds / 1e6:.1f} MB/s\n"
    )


def _write(directory: Path, logs: dict[str, str], asked: dict[str, Any]) -> None:
    for name, text in logs.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    (directory / "old.yml").write_text(json.dumps({"question": "?", **asked}))


def bring(directory: Path, logs: dict[str, str], /, **asked: Any) -> Run:
    """Import some logs by an import file, and load the run."""
    _write(directory, logs, asked)
    return load_run(import_file(directory / "old.yml", results=directory / "results"))


def statuses(directory: Path, logs: dict[str, str], /, **asked: Any) -> list[str]:
    """Of the trials of an import."""
    _write(directory, logs, asked)
    return [trial.status for trial in read_journal(import_file(directory / "old.yml", results=directory / "results"))]


def refused(directory: Path, logs: dict[str, str], /, **asked: Any) -> ParameterError:
    """The error of an import of which nothing is kept."""
    with pytest.raises(ParameterError) as caught:
        bring(directory, logs, **asked)
    assert not (directory / "results").exists()
    return caught.value


FIO, FS_MARK = "fio/psync-randread-direct.jsonplus", "fs_mark/S0-t4.stdout"
"""randread, 4k, psync, direct, 64m, 2 s; 1000 files of 100 B in 100 directories, 4 threads, no sync."""
WORDS: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    ("fio", FIO, {"rw": "randread"}, {"rw": "randwrite"}), ("fio", FIO, {"bs": "4KiB"}, {"bs": "1MiB"}),
    ("fio", FIO, {"bs": "4096B"}, {"bs": "4kB"}), ("fio", FIO, {"ioengine": "psync"}, {"ioengine": "libaio"}),
    ("fio", FIO, {"direct": True}, {"direct": False}), ("fio", FIO, {"size": "64MiB"}, {"size": "64MB"}),
    ("fio", FIO, {"runtime": "2000ms"}, {"runtime": "2min"}),
    ("fio", "fio/psync-randwrite-fsync1.jsonplus", {"fsync": 1}, {"fsync": 32}),
    ("fio", "fio/clones.jsonplus", {"numjobs": 2}, {"numjobs": 4}),
    ("fio", "fio/clones.jsonplus", {"iodepth": 4}, {"iodepth": 1}),
    ("fio", "fio/clones.jsonplus", {"fdatasync": 8}, {"fdatasync": 0}),
    ("fio", "fio/clones.jsonplus", {"group_reporting": False}, {"group_reporting": True}),
    ("fio", "fio/human-write.stdout", {"rw": "write"}, {"rw": "randwrite"}),
    ("fio", "fio/human-write.stdout", {"bs": "1MiB"}, {"bs": "512KiB"}),
    ("fio", "fio/human-randrw.stdout", {"rw": "randrw", "numjobs": 2}, {"numjobs": 1}),
    ("fio", "fio/human-randrw.stdout", {"iodepth": 1}, {"iodepth": 32}),
    ("fio", "fio/human-randrw.stdout", {"ioengine": "psync"}, {"ioengine": "io_uring"}),
    ("fio", "fio/2.1.10-randrw.stdout", {"bs": "4KiB"}, {"bs": "8KiB"}),
    ("fio", "fio/2.21-randrw.stdout", {"rw": "randrw"}, {"rw": "randread"}),
    ("fio", "fio/2.1.10-write.json", {"rw": "write"}, {"rw": "read"}),
    ("fio", "fio/2.1.10-write.json", {"rw": "randwrite"}, {"rw": "randrw"}),
    ("fio", "fio/2.2.10-write.json", {"bs": "1MiB"}, {"bs": "4KiB"}),
    ("fio", "fio/2.21-write.json", {"bs": "1MiB"}, {"bs": "64KiB"}),
    ("fs_mark", FS_MARK, {"count": 1000}, {"count": 100}), ("fs_mark", FS_MARK, {"threads": 4}, {"threads": 1}),
    ("fs_mark", FS_MARK, {"file_size": "100B"}, {"file_size": "4KiB"}),
    ("fs_mark", FS_MARK, {"sync": "none"}, {"sync": "fsync"}), ("fs_mark", FS_MARK, {"loops": 1}, {"loops": 3}),
    ("fs_mark", FS_MARK, {"directories": 100}, {"directories": 10}),
    ("fs_mark", FS_MARK, {"files_per_directory": 100}, {"files_per_directory": 1000}),
    ("fs_mark", FS_MARK, {"write_size": "16KiB"}, {"write_size": "4KiB"}),
    ("fs_mark", FS_MARK, {"name_length": 40, "random_length": 24}, {"random_length": 12}),
    ("fs_mark", FS_MARK, {"call_times": False}, {"call_times": True}),
    ("fs_mark", "fs_mark/v-unlinked-tmpfs.stdout", {"keep_files": False}, {"keep_files": True}),
    ("fs_mark", "fs_mark/v-S4-L3-ext4.stdout", {"sync": "sync_post_reverse"}, {"sync": "post_reverse"}),
    ("filebench", "filebench/samples/fileserver.stdout", {"workload": "fileserver"}, {"workload": "varmail"}),
    ("filebench", "filebench/samples/seqread.stdout", {"installed": "filemicro_seqread"}, {"installed": "oltp"}),
    ("filebench", "filebench/samples/fileserver.stdout", {"runtime": "6s"}, {"runtime": "60s"}),
    ("filebench", "filebench/samples/fileserver.stdout", {"nfiles": 1000}, {"nfiles": 10000}),
    ("filebench", "filebench/1.4.9.1.stdout", {"threads": 2}, {"threads": 16}),
    ("filebench", "filebench/1.4.9.1.stdout", {"dirwidth": 20, "runtime": "5s"}, {"dirwidth": 100}),
    ("dd", "dd/write-1m.stderr", {"bs": "1MiB"}, {"bs": "64KiB"}),
    ("dd", "dd/write-1m.stderr", {"count": 200}, {"count": 100}),
    ("dd", "dd/locale-de_DE.stderr", {"bs": "1024KiB"}, {"bs": "1MB"}),
    ("pg_test_fsync", "pg_test_fsync/ramfs.stdout", {"time_per_test": "1s"}, {"time_per_test": "5s"}),
    ("pg_test_fsync", "pg_test_fsync/ramfs-ja.stdout", {"time_per_test": "1000ms"}, {"time_per_test": "2s"}),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("tool", "name", "right", "wrong"), WORDS)
def test_an_option_that_the_log_contradicts_is_refused_and_one_in_other_spelling_is_not(
    tool: str, name: str, right: dict[str, Any], wrong: dict[str, Any], tmp_path: Path
) -> None:
    found = statuses(tmp_path, {"ext4.log": log(name)}, tool=tool, files="{filesystem}.log", workloads={"w": right})
    assert set(found) == {"ok"}
    shutil.rmtree(tmp_path / "results")
    error = refused(tmp_path, {}, tool=tool, files="{filesystem}.log", workloads={"w": wrong})
    ((option, value),) = wrong.items()
    assert error.what == f"a log contradicts the import: {option}"
    line = int(re.fullmatch(r"ext4\.log, line (\d+)", error.where)[1])  # type: ignore[index]
    assert error.allowed == f"{option}: {value}, as in old.yml: workloads.w.{option}" or str(value) in error.allowed
    assert error.got.startswith(f"{option}=")
    quoted = error.got.partition(", from ")[2].strip("'\"")
    computed = "on average" in quoted or "all of them" in quoted
    assert computed or quoted.partition(", ")[0] in " ".join(log(name).split("\n")[line - 1].split())


def test_the_error_says_what_where_and_how_many_others(tmp_path: Path) -> None:
    files = {f"ext4-1M-{n}.txt": dd(65536, 200) for n in (1, 2, 3)} | {"ext4-64K-1.txt": dd(65536, 200)}
    error = refused(tmp_path, files, tool="dd", files="{filesystem}-{bs}-{repeat}.txt")
    assert str(error).splitlines() == [
        "a log contradicts the import: bs",
        "  where:   ext4-1M-1.txt, line 2",
        "  got:     bs=64KiB, from '200+0 records out, 13107200 bytes'",
        "  allowed: bs=1M, as in the name of the file",
        "  next:    correct bs in the import, or take it out; give logs of another workload a name of their own. "
        "Other logs contradict it, too: ext4-1M-2.txt, ext4-1M-3.txt",
    ]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pattern", "name", "fits"),
    [
        ("{filesystem}-{bs}.json", "ext4-4k.json", True),
        ("{filesystem}-{bs}.json", "ext4-4K.json", True),
        ("{filesystem}-{bs}.json", "ext4-4096.json", True),
        ("{filesystem}-{bs}.json", "ext4-4.json", True),
        ("{filesystem}-{bs}.json", "ext4-4KiB.json", True),
        ("{filesystem}-{bs}.json", "ext4-bs4k.json", True),
        ("{filesystem}-{bs}.json", "ext4-small.json", True),
        ("{filesystem}-{bs}.json", "ext4-64k.json", False),
        ("{filesystem}-{bs}.json", "ext4-1M.json", False),
        ("{filesystem}-{bs}.json", "ext4-64.json", False),
        ("{filesystem}-{rw}.json", "ext4-randread.json", True),
        ("{filesystem}_{rw}.json", "ext4_rand-read.json", True),
        ("{filesystem}-{rw}.json", "ext4-RandomRead.json", True),
        ("{filesystem}-{rw}.json", "ext4-read.json", False),
        ("{filesystem}-{rw}.json", "ext4-randwrite.json", False),
        ("{filesystem}-{rw}.json", "ext4-rr.json", True),
        ("{filesystem}-{direct}.json", "ext4-direct.json", True),
        ("{filesystem}-{direct}.json", "ext4-0.json", False),
        ("{filesystem}-{runtime}.json", "ext4-2s.json", True),
        ("{filesystem}-{runtime}.json", "ext4-60.json", False),
        ("{filesystem}-{kernel}.json", "ext4-6.1.json", True),
        ("{filesystem}-{ioengine}.json", "ext4-psync.json", True),
        ("{filesystem}-{ioengine}.json", "ext4-aio.json", True),
        ("{filesystem}-{ioengine}.json", "ext4-libaio.json", False),
        ("{filesystem}-{workload}.json", "ext4-randread.json", True),
        ("{filesystem}-{workload}.json", "ext4-read.json", True),
        ("{filesystem}-{workload}.json", "ext4-write.json", False),
        ("{filesystem}-{workload}.json", "ext4-randwrite.json", False),
        ("{filesystem}-{workload}.json", "ext4-nightly.json", True),
    ],
)
def test_a_level_in_the_name_of_a_file_is_held_against_the_log(
    pattern: str, name: str, fits: bool, tmp_path: Path
) -> None:
    if fits:
        assert statuses(tmp_path, {name: log(FIO)}, tool="fio", files=pattern) == ["ok"]
    else:
        error = refused(tmp_path, {name: log(FIO)}, tool="fio", files=pattern)
        assert (error.where.split(",")[0], "the name of the " in error.allowed) == (name, True)


def test_the_name_of_a_workload_gives_way_to_what_the_import_says_of_it(tmp_path: Path) -> None:
    run = bring(
        tmp_path,
        {"ext4-write.json": log(FIO)},
        tool="fio",
        files="{filesystem}-{workload}.json",
        workloads={"write": {"rw": "randread"}},
    )
    assert run.trials["status"].tolist() == ["ok"]


def test_the_log_of_another_tool_is_refused(tmp_path: Path) -> None:
    error = refused(tmp_path, {"ext4.log": log("dd/write-1m.stderr")}, tool="fio", files="{filesystem}.log")
    assert (error.what, error.where) == ("a log is of another tool than the import says", "ext4.log")
    assert (error.got, "fio" in error.allowed) == ("output of dd", True)


def test_a_dd_that_stopped_early_is_a_failed_trial_and_one_of_other_blocks_is_refused(tmp_path: Path) -> None:
    asked: dict[str, Any] = {
        "tool": "dd", "files": "{filesystem}-{repeat}.txt", "workloads": {"w": {"bs": "1MiB", "count": 200}}
    }  # fmt: skip
    run = bring(tmp_path, {"ext4-1.txt": dd(2**20, 200), "ext4-2.txt": dd(2**20, 150)}, **asked)
    assert run.trials["status"].tolist() == ["ok", "failed"]
    shutil.rmtree(tmp_path / "results")
    error = refused(tmp_path, {"ext4-2.txt": dd(65536, 200)}, **asked)
    assert error.what == "a log contradicts the import: bs"
    (tmp_path / "ext4-2.txt").write_text(dd(2**19, 400))
    assert "bs=512KiB" in refused(tmp_path, {}, **asked).got, "as many bytes, in other blocks"


# --- logs of one cell -------------------------------------------------------------------------------------------------


def test_logs_of_one_cell_with_two_block_sizes_are_refused(tmp_path: Path) -> None:
    files = {"ext4-1.txt": dd(2**20, 200), "ext4-2.txt": dd(2**20, 200), "ext4-3.txt": dd(65536, 200)}
    error = refused(tmp_path, files, tool="dd", files="{filesystem}-{repeat}.txt")
    assert (error.what, error.where) == ("logs of one cell differ in bs", "ext4/dd")
    assert error.got == "bs=1MiB in ext4-1.txt, line 2; bs=64KiB in ext4-3.txt, line 2"
    assert "{bs} in the pattern" in error.next_step


def test_logs_of_one_cell_may_differ_in_how_long_they_ran_and_in_how_fio_prints_a_size(tmp_path: Path) -> None:
    longer = log(FIO).replace('"runtime" : "2"', '"runtime" : "1"')
    spelled = log(FIO).replace('"bs" : "4k"', '"bs" : "4096"').replace('"size" : "64m"', '"size" : "65536kb"')
    files = {"ext4-1.json": log(FIO), "ext4-2.json": longer, "ext4-3.json": spelled}
    run = bring(tmp_path, files, tool="fio", files="{filesystem}-{repeat}.json")
    assert run.trials["status"].tolist() == ["ok"] * 3


def test_file_systems_whose_logs_state_different_options_have_a_caveat(tmp_path: Path) -> None:
    files = {"ext4.json": log(FIO), "tmpfs.json": log("fio/psync-randread-buffered.jsonplus")}
    run = bring(tmp_path, files, tool="fio", files="{filesystem}.json", baseline="ext4")
    (told,) = [each.message for each in run.caveats if each.code == "logs-differ"]
    assert "direct: 1 in ext4, 0 in tmpfs" in told


# --- what is confirmed ------------------------------------------------------------------------------------------------


def test_the_report_says_which_options_the_logs_confirm_and_which_are_the_users_word(tmp_path: Path) -> None:
    run = bring(
        tmp_path,
        {"ext4-1.json": log(FIO), "ext4-2.json": log(FIO)},
        tool="fio",
        files="{filesystem}-{repeat}.json",
        workloads={"w": {"bs": "4KiB", "fsync": 1}},
    )
    (caveat,) = [each.message for each in run.caveats if each.code == "imported"]
    assert "no log states fsync, which only the import says" in caveat
    shown = re.sub(r"\s+", " ", repr(parameters(run)))
    assert "Options of the logs" in shown
    for row in ("bs bs: 4KiB 4KiB 2 of 2", "fsync fsync: 1 not stated 0 of 2", "direct 1 2 of 2"):
        assert row in shown, shown[:600]


def test_runs_that_an_earlier_version_imported_are_read_and_say_that_nothing_was_checked(tmp_path: Path) -> None:
    run = bring(tmp_path, {"ext4.json": log(FIO)}, tool="fio", files="{filesystem}.json")
    info = json.loads((run.path / "run.json").read_text())
    del info["facts"]["stated"]
    (run.path / "run.json").write_text(json.dumps(info))
    again = load_run(run.path, as_it_is=True)
    (caveat,) = [each.message for each in again.caveats if each.code == "imported"]
    assert "Options are not known, and were not checked." in caveat
    assert "Options of the logs" not in repr(parameters(again))


def test_the_verb_ends_with_bad_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ext4-64k-1.json").write_text(log(FIO))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mountlab.results.imported.import_patterns.__kwdefaults__", {"results": tmp_path / "results"})
    assert main(["import", "{filesystem}-{bs}-{repeat}.json", "--tool", "fio"]) == 2
    said = capsys.readouterr().err
    assert "ext4-64k-1.json, line 16" in said
    assert "bs=4KiB" in said
    assert "bs=64k" in said


# --- by the print statements ------------------------------------------------------------------------------------------

PATTERNS = ("read", "write", "randread", "randwrite", "rw", "randrw")


def header_of(text: str, form: str = "text") -> dict[str, Stated]:
    return stated("fio", Output(part=Part(text=text, line=1, form=form), form=form))


def kmg(number: int) -> str:
    """fio 2.1's fio_uint_to_kmg."""
    post = ""
    for post in ("", "K", "M", "G"):
        if number % 1024 or post == "G":
            return f"{number}{post}"
        number //= 1024
    return f"{number}{post}"


def num2str(number: int, *, pow2: bool) -> str:
    """fio 3's num2str with four significant digits and bytes."""
    prefixes, thousand = (("", "Ki", "Mi", "Gi"), 1024) if pow2 else (("", "k", "M", "G"), 1000)
    modulo, place = None, 0
    while len(str(number)) > 4:
        number, modulo, place = number // thousand, number % thousand, place + 1
    if modulo is None:
        return f"{number}{prefixes[place]}B"
    if 4 - len(str(number)) <= 1:
        return f"{number + (modulo >= thousand // 2)}{prefixes[place]}B"
    decimals = f"{modulo / thousand:.{4 - len(str(number)) - 1}f}"
    return f"{number + (decimals[0] == '1')}.{decimals[2:]}{prefixes[place]}B"


OTHER_SIZES = ("4K", "4kb", "4ki", "4KiB", "5000")


def seeds(few: int, all_of: int) -> list[Any]:
    """The first few in `make test`, the rest in `make test-all`."""
    return [*range(few), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(few, all_of))]


@pytest.mark.parametrize("seed", seeds(30, 300))
def test_fio_s_line_of_a_job_states_what_it_was_printed_from(seed: int) -> None:
    rng = random.Random(seed)
    sizes = [rng.choice([512, 4096, 1000, 65536, 2**20, rng.randrange(1, 2**24)]) for _ in range(3)]
    rw, depth = rng.choice(PATTERNS), rng.choice([1, 4, 32, 256])
    if seed % 3:
        pow2 = seed % 3 == 1
        told = ", ".join(
            f"({each}) {num2str(size, pow2=pow2)}-{num2str(size, pow2=pow2)}"
            for each, size in zip("RWT", sizes, strict=True)
        )
        line = f"job 1: (g=0): rw={rw}, bs={told}, ioengine=libaio, iodepth={depth}"
    else:
        told = "/".join(f"{kmg(size)}-{kmg(size)}" for size in sizes)
        line = f"job 1: (g=0): rw={rw}, bs={told}, ioengine=libaio, iodepth={depth}"
    found = header_of(f"{line}\n...\nfio-x\nStarting 3 processes\n")
    assert (found["rw"].value, found["iodepth"].value, found["ioengine"].value) == (rw, depth, "libaio")
    assert (found["numjobs"].value, found["numjobs"].line) == (3, 4)
    own = {"read": sizes[:1], "write": sizes[1:2]}.get(rw.removeprefix("rand"), sizes[:2])
    if len(set(own)) == 1:
        assert found["bs"].fits(own[0])
        assert not found["bs"].fits(own[0] * 2)
        assert not found["bs"].fits(own[0] * 1024 / 1000 + 600)
    elif found["bs"].slack == 0:
        assert not any(map(found["bs"].fits, own))


def test_a_range_of_sizes_is_no_single_size() -> None:
    found = header_of(
        "j: (g=0): rw=read, bs=(R) 4096B-64.0KiB, (W) 4096B-4096B, (T) 4096B-4096B, ioengine=sync, iodepth=1\n"
    )
    assert not found["bs"].fits(4096)
    assert not found["bs"].fits(65536)


def test_sizes_by_order_are_those_of_the_pattern() -> None:
    """bs_is_seq_rand: the first pair is of sequential I/O, the second of random I/O."""
    line = "j: (g=0): rw={}, bs=(R) 64.0KiB-64.0KiB, (W) 4096B-4096B, bs_is_seq_rand, ioengine=sync, iodepth=1\n"
    assert header_of(line.format("write"))["bs"].fits(65536)
    assert header_of(line.format("randread"))["bs"].fits(4096)
    old = "j: (g=0): rw=randread, bs(seq/rand)=64K-64K/4K-4K, ioengine=sync, iodepth=1\n"
    assert header_of(old)["bs"].fits(4096)


def json_of(options: dict[str, str], common: dict[str, str] | None = None) -> dict[str, Stated]:
    report = {
        "fio version": "fio-3.33",
        **({"global options": common} if common else {}),
        "jobs": [{"jobname": "j", "job options": options}],
    }
    return header_of(json.dumps(report, indent=2), "json")


@every_row(
    ("options", "option", "value"),
    [
        ({"bs": "4k"}, "bs", 4096),
        ({"bs": "4K"}, "bs", 4096),
        ({"bs": "4096"}, "bs", 4096),
        ({"bs": "4kb"}, "bs", 4096),
        ({"bs": "4ki"}, "bs", 4096),
        ({"bs": "4kib"}, "bs", 4000),
        ({"bs": "4KiB"}, "bs", 4000),
        ({"bs": "4096b"}, "bs", 4096),
        ({"blocksize": "1m"}, "bs", 2**20),
        ({"bs": "4k", "kb_base": "1000"}, "bs", 4000),
        ({"bs": "4kib", "kb_base": "1000"}, "bs", 4096),
        ({"bs": "4k,8k", "rw": "randread"}, "bs", 4096),
        ({"bs": "4k,8k", "rw": "write"}, "bs", 8192),
        ({"bs": ",8k", "rw": "read"}, "bs", 4096),
        ({"bs": "4k,8k", "rw": "randrw"}, "bs", "4096, 8192"),
        ({"bs": "4k,4k", "rw": "randrw"}, "bs", 4096),
        ({"bsrange": "4k-4k"}, "bs", 4096),
        ({"bsrange": "4k-64k"}, "bs", "bsrange=4k-64k"),
        ({"bs": "4k", "bssplit": "4k/60:64k/40"}, "bs", "bssplit=4k/60:64k/40"),
        ({"rw": "randread:8"}, "rw", "randread"),
        ({"readwrite": "readwrite"}, "rw", "rw"),
        ({"runtime": "1m"}, "runtime", 60),
        ({"timeout": "30"}, "runtime", 30),
        ({"runtime": "500ms"}, "runtime", 0.5),
        ({"direct": ""}, "direct", 1),
        ({"buffered": "0"}, "direct", 1),
        ({"time_based": ""}, "time_based", 1),
        ({"rwmixwrite": "30"}, "rwmixread", 70),
        ({"io_limit": "1g"}, "io_size", 2**30),
    ],
)
def test_fio_s_job_options_mean_to_us_what_they_mean_to_fio(options: dict[str, str], option: str, value: Any) -> None:
    for found in (json_of(options), json_of({"name": "j"}, options)):
        assert found[option].value == value
        (name,) = [name for name in options if f'"{name}"' in found[option].text]
        assert found[option].text == f'"{name}": "{options[name]}"'


@pytest.mark.parametrize("text", ["10%", "${SIZE}", "(4*1024)k"])
def test_an_option_that_cannot_be_read_contradicts_no_import(text: str) -> None:
    found = json_of({"size": text})["size"]
    assert (found.value, found.vague) == (text, True)


def test_jobs_of_one_log_that_differ_state_both(tmp_path: Path) -> None:
    """A job file with a writer and two readers: no single pattern is that of the log."""
    error = refused(
        tmp_path,
        {"ext4.json": log("fio/jobs.jsonplus")},
        tool="fio",
        files="{filesystem}.json",
        workloads={"w": {"rw": "randread"}},
    )
    assert error.got.startswith("rw=write, randrw, randread, from")


@pytest.mark.slow
@pytest.mark.requires_program("fio")
@pytest.mark.parametrize(
    "size", ["4k", "4kib", "8192b", *(pytest.param(size, marks=pytest.mark.long) for size in OTHER_SIZES)]
)
@pytest.mark.parametrize("kb_base", ["1000", "1024"])
def test_sizes_are_read_as_the_installed_fio_reads_them(size: str, kb_base: str, tmp_path: Path) -> None:
    words = ("--name=j", "--rw=write", f"--kb_base={kb_base}", f"--bs={size}", "--size=64k", "--filename=f")
    argv = ["fio", *words, "--output-format=json,normal"]
    said = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    (output,) = read_log("fio", said)
    by_name, by_header = stated("fio", output)["bs"], header_of(said[: said.index("{")])["bs"]
    assert by_name.text.startswith('"bs"')
    assert abs(float(by_name.value) - float(by_header.value)) <= by_header.slack
    assert by_header.slack <= 60


@pytest.mark.slow
@pytest.mark.requires_program("fio")
def test_a_size_in_kib_units_is_not_taken_for_a_run_that_stopped(tmp_path: Path) -> None:
    """To fio 8MiB are 8,000,000 bytes: all of them were written."""
    words = ("--name=j", "--rw=write", "--bs=4k", "--size=8MiB", "--filename=f", "--output-format=json")
    said = subprocess.run(["fio", *words], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    (output,) = read_log("fio", said)
    assert output.problem is None
    (moved,) = [row.value for row in output.measurements if row.metric == "bytes"]
    assert moved == 8_000_000 // 4096 * 4096


@pytest.mark.parametrize("seed", seeds(15, 50))
def test_fs_mark_s_header_states_what_it_was_printed_from(seed: int) -> None:
    """By print_run_info of fs_mark.c."""
    rng = random.Random(seed)
    policy = ("NO SYNC", "INBAND FSYNC", "SYSTEM SYNC/SINGLE FSYNC", "POST REVERSE", "SYNC POST REVERSE", "POST",
              "SYNC POST")  # fmt: skip
    ours = ("none", "fsync", "sync", "post_reverse", "sync_post_reverse", "post", "sync_post")
    method, threads, size, count = rng.randrange(7), rng.randrange(1, 65), rng.randrange(2**20), rng.randrange(1, 10**6)
    loops, verbose, subdirs = rng.choice([None, 1, 7]), rng.random() < 0.5, rng.choice([0, 10])
    words = ["fs_mark", "-d", "/m-L1/x", "-n", count, "-s", size, "-S", method, "-t", threads]
    words += ["-L", loops] * (loops is not None) + ["-v"] * verbose
    directories = (
        f"Round Robin between directories across {subdirs} subdirectories with 5 files per subdirectory."
        if subdirs
        else " no subdirectories used"
    )
    text = (
        "\n# "
        + "".join(f" {word} " for word in words)
        + f"\n#\tVersion 3.3, {threads} thread(s) starting at Fri Nov 20 14:20:10 2026\n"
        f"#\tSync method: {policy[method]}: Issue it.\n#\tDirectories: {directories}\n"
        "#\tFile names: 40 bytes long, (16 initial bytes of time stamp with 24 random bytes at end of name)\n"
        f"#\tFiles info: size {size} bytes, written with an IO size of 16384 bytes per write\n"
    )
    found = stated("fs_mark", Output(part=Part(text=text, line=1), form=""))
    expected = {
        "count": count,
        "file_size": size,
        "threads": threads,
        "sync": ours[method],
        "write_size": 16384,
        "loops": loops or 1,
        "call_times": int(verbose),
        "keep_files": int(loops is not None),
    }
    assert {name: found[name].value for name in expected} == expected
    assert ("directories" in found) == bool(subdirs)


def test_a_run_of_filebench_that_ends_by_itself_states_no_time() -> None:
    """By the echo line of createfiles.f, which ends when its files are made."""
    text = "0.008: Createfiles Version 3.0 personality successfully loaded\n3.1: Run took 2 seconds...\n"
    found = stated("filebench", Output(part=Part(text=text, line=1), form=""))
    assert found["workload"].fits("createfiles")
    assert "runtime" not in found


@pytest.mark.slow
def test_a_personality_of_the_users_own_is_not_held_against_a_name(tmp_path: Path) -> None:
    own = log("filebench/samples/fileserver.stdout")
    asked: dict[str, Any] = {"tool": "filebench", "files": "{filesystem}.log"}
    run = bring(tmp_path, {"ext4.log": own}, **asked, workloads={"w": {"installed": "my_fileserver"}})
    assert run.trials["status"].tolist() == ["ok"]
    shutil.rmtree(tmp_path / "results")
    other = own.replace("File-server Version", "Mine Version")
    assert len(bring(tmp_path, {"ext4.log": other}, **asked, workloads={"w": {"installed": "oltp"}}).trials) == 1


def test_operations_per_test_are_no_seconds() -> None:
    """PostgreSQL before 9.2 printed '2000 operations per test'."""
    text = "2000 operations per test\nO_DIRECT supported\n\nCompare:\n        open_datasync   n/a\n"
    assert stated("pg_test_fsync", Output(part=Part(text=text, line=1), form="")) == {}


@every_row(
    ("tool", "name", "level", "values"),
    [
        ("fio", "bs", "4k", {4096, 4000}),
        ("fio", "bs", "4KiB", {4096}),
        ("fio", "bs", "1.5m", {1572864, 1500000}),
        ("fio", "bs", "big", set()),
        ("fio", "iodepth", "qd32", {32}),
        ("fio", "iodepth", "32x4", set()),
        ("fio", "numjobs", "4jobs", {4}),
        ("fio", "rw", "seq-read", {"read"}),
        ("fio", "rw", "readwrite", {"rw"}),
        ("fs_mark", "sync", "sync_post", {"sync_post"}),
        ("fio", "direct", "nodirect", {0}),
        ("fio", "runtime", "1min", {60}),
        ("dd", "oflag", "dsync", {"dsync"}),
        ("filebench", "workload", "Varmail", {"varmail"}),
    ],
)
def test_what_a_level_may_mean(tool: str, name: str, level: str, values: set[Any]) -> None:
    assert set(readings(name, level, TOOLS[tool].options[name])) == values


PASTES = {
    "JSON below words, indented": (
        "fio", "fio/psync-randread-direct.jsonplus", "Testing a profile..\n", "  ", {"rw": "randread", "bs": 4096}
    ),
    "text, indented": ("fio", "fio/human-write.stdout", "", "    ", {"ioengine": "psync", "iodepth": 1}),
}  # fmt: skip


@pytest.mark.parametrize("name", PASTES)
def test_what_a_pasted_log_states_is_found_too(name: str) -> None:
    """The readers take such logs: so what they state has to be compared with the import."""
    tool, file, above, margin, values = PASTES[name]
    text = above + indent((DATA / file).read_text(), margin)
    (output,) = read_log(tool, text)
    found = stated(tool, output)
    assert {option: found[option].value for option in values} == values


def test_seconds_per_test_are_found_without_the_blank_lines_and_above_a_folded_line() -> None:
    text = (DATA / "pg_test_fsync" / "ramfs.stdout").read_text()
    pasted = text.replace("open_datasync and open_sync.", "open_datasync and\nopen_sync.").replace("\n\n", "\n")
    assert pasted != text
    for each in (text, pasted):
        (output,) = read_log("pg_test_fsync", "user@host1:~$ pg_test_fsync -f x\n" + each)
        assert stated("pg_test_fsync", output)["time_per_test"].value == 1.0
