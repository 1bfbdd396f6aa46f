"""Job files: read from the sweep, checked line by line, written anew, and reported job by job and together."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from mountlab.core.errors import ParameterError, ParseError, StoreError, ToolError
from mountlab.core.metrics import higher_is_better
from mountlab.core.model import MARK_BYTES, Measurement, Scalar, Target, Workload
from mountlab.fio import report as fio_report
from mountlab.fio.jobs import jobs_of
from mountlab.fio.options import OPTIONS, asked_bytes, blocks, fio_bytes, fio_seconds, same
from mountlab.fio.tool import Fio
from mountlab.results import paths
from mountlab.sweep.sweep_file import resolve
from mountlab.tools.base import ToolOutput
from rows import every_row

DATA = Path(__file__).parents[1] / "data" / "fio"
DEFAULTS: dict[str, Scalar] = {key: o.default for key, o in OPTIONS.items() if o.default is not None}
KIB, MIB = 1024, 1024**2
TEXT = """
; a log that is flushed, and data beside it
[global]
size=256k
[log]
rw=write
fsync=4
[data]
rw=randrw
bs=8k
numjobs=2
[check]
stonewall
rw=randread
ioengine=libaio
iodepth=4
direct=1
"""

SWEEP = "{question: Q, filesystems: {d: {type: dir}}, workloads: {w: {tool: fio, job_file: my.fio}}}"


def workload(text: str = TEXT, **options: Any) -> Workload:
    return Workload(name="w", tool="fio", options={**DEFAULTS, "jobs": text, **options})


def output(name: str, changes: dict[tuple[Any, ...], Any] | None = None) -> ToolOutput:
    loaded = json.loads((DATA / name).read_text())
    for path, value in (changes or {}).items():
        target = loaded
        for part in path[:-1]:
            target = target[part]
        target[path[-1]] = value
    return ToolOutput(exit_status=0, stdout="", stderr="", files={"fio.json": json.dumps(loaded)})


def table(rows: list[Measurement]) -> dict[tuple[str, str], float]:
    found = {(row.metric, row.label): row.value for row in rows}
    assert len(found) == len(rows)
    return found


# --- reading ----------------------------------------------------------------------------------------------------------


def test_each_section_has_the_options_that_hold_for_it() -> None:
    log, data, check = jobs_of(workload().options)
    assert (log.name, log.phase, log.clones) == ("log", 0, 1)
    assert log.options == {
        "bs": 4096, "numjobs": 1, "ioengine": "psync", "refill_buffers": 1, "size": 256 * KIB, "rw": "write",
        "fsync": 4,
    }  # fmt: skip
    assert (data.phase, data.clones, data.options["bs"]) == (0, 2, 8 * KIB)
    assert (check.phase, check.options["stonewall"], check.options["ioengine"]) == (1, 1, "libaio")


def test_what_stands_beside_the_text_holds_for_every_section() -> None:
    """So that a sweep can vary what the job file leaves open."""
    jobs = jobs_of(workload("[a]\nrw=read\n[b]\nrw=write\n", size=MIB, bs=16 * KIB).options)
    assert [(job.options["size"], job.options["bs"]) for job in jobs] == [(MIB, 16 * KIB)] * 2


@every_row(
    ("text", "where", "what"),
    [
        ("rw=read", "jobs, line 1", "an option before the first section"),
        ("[a]\nexec_prerun=id", "jobs, line 2", "fio's option exec_prerun is not for a job file to set"),
        ("[a]\ninclude other.fio", "jobs, line 2", "fio's option include is not for a job file to set"),
        ("[a]\nsize=$mb_memory", "jobs, line 2", "$mb_memory is a number of each box"),
        ("[a]\nsize=${SIZE}", "jobs, line 2", "a variable without a value"),
        ("[a]\nsize=", "jobs, line 2", "not a value for a job file"),
        ("[a]\nsize=1.5g", "jobs, line 2", "fio's option size needs a plain value"),
        ("[a]\nruntime=10sec", "jobs, line 2", "fio's option runtime needs a plain value"),
        ("[a]\nmem=mmap:/etc/x", "jobs, line 2", "fio's buffers may lie in no file"),
        ("[]", "jobs, line 1", "a section without a name"),
        ("[a]\nruntime=1 minute", "jobs, line 2", "fio's option runtime needs a plain value"),
        ("[a]\ndirect=2", "jobs, line 2", "fio's option direct needs a plain value"),
        ("[a]\niodepth=many", "jobs, line 2", "fio's option iodepth needs a plain value"),
        ("[a]\n=5", "jobs, line 2", "a value without an option"),
        ("[a]\nrw=read\n =", "jobs, line 3", "a value without an option"),
        ("[a]\nrw=randraed", "jobs, line 2", "wrong value for an option"),
        ("[a]\nrw=read\nsize=1k", "jobs: [a]", "fio would do nothing"),
        ("[a]\nrw=read\nsize=1m\nexec_pre=id", "jobs: [a].exec_pre", "a shortened option of fio's"),
        ("[a]\nrw=read\nsize=1m\nverify_state=a/b", "jobs: [a].verify_state", "an option of fio's may name no path"),
        (
            "[a]\nrw=read\nsize=1m\nioengine=net", "jobs: [a].ioengine",
            "not an engine that reads and writes files on Linux",
        ),
        ("[a]\nrw=read\nsize=1m\nrate_iops=fast", "jobs: [a].rate_iops", "fio's option rate_iops needs a number"),
        ("", "jobs", "the job file names no job"),
        ("[global]\nbs=8k", "jobs", "the job file names no job"),
    ],
)  # fmt: skip
def test_what_is_wrong_in_a_job_file_is_refused_by_its_line_or_its_job(text: str, where: str, what: str) -> None:
    with pytest.raises(ParameterError) as caught:
        Fio().check(workload(text).options, where="w")
    assert (caught.value.what, caught.value.where) == (what, f"w.{where}")


def test_a_byte_order_mark_before_a_job_file_is_not_there() -> None:
    assert jobs_of(workload("\ufeff" + TEXT).options) == jobs_of(workload().options)
    assert jobs_of(workload("\ufeff[a]\nrw=read\nsize=1m").options)[0].name == "a"


def test_an_option_in_the_text_and_beside_it_is_refused() -> None:
    """A factor that the job file sets again would be swept without effect."""
    with pytest.raises(ParameterError, match="given both in the job file and beside it") as caught:
        Fio().check(workload("[a]\nrw=read\nsize=1m\nbs=8k\n", bs=16 * KIB).options, where="w")
    assert caught.value.where == "w.jobs, line 4"


@given(st.text(alphabet="[]ab=;#\n 14kglo", max_size=60))
def test_any_text_is_jobs_or_the_documented_error(text: str) -> None:
    where = ""
    try:
        Fio().check(workload(text).options, where="w")
    except ParameterError as error:
        where = error.where
    assert where.startswith("w.jobs") == bool(where)


@every_row(
    ("text", "size", "seconds"),
    [
        ("4096", 4096, 4096), ("4k", 4096, None), ("4K", 4096, None), ("4KiB", 4000, None), ("4Ki", 4096, None),
        ("4kb", 4096, None), ("4MiB", 4_000_000, None), ("0x10", 16, None), ("1m", MIB, 60), ("2g", 2 * 1024**3, None),
        ("10s", None, 10), ("500ms", None, 0.5), ("2000000us", None, 2), ("1h", None, 3600), ("1d", None, 86400),
        ("10%", None, None), ("", None, None), ("4x", None, None), ("1.5k", None, None), ("1.5", None, None),
        ("ten", None, None),
    ],
)  # fmt: skip
def test_sizes_and_times_are_read_as_fio_reads_them(text: str, size: int | None, seconds: float | None) -> None:
    assert fio_bytes(text) == size
    assert fio_seconds(text) == (None if seconds is None else pytest.approx(seconds))


@every_row(
    ("name", "asked", "echoed", "equal"),
    [
        ("bs", "4096", "4k", True), ("bs", "4096", "8k", False), ("runtime", "2000000us", "2", True),
        ("runtime", "2000000us", "2000", False), ("direct", "1", "", True), ("direct", "0", "", False),
        ("thread", "1", "1", True), ("verify", "crc32c", "crc32c", True), ("verify", "crc32c", "md5", False),
        ("rwmixread", "70", "30", False), ("fsync", "1", "0", False),
    ],
)  # fmt: skip
def test_what_fio_echoes_is_compared_by_what_it_means(name: str, asked: str, echoed: str, equal: bool) -> None:
    assert same(name, asked, echoed) is equal


@every_row(
    ("options", "least"),
    [
        ({"size": MIB}, MIB),
        ({"size": 12000}, 8192),
        ({"size": MIB, "nrfiles": 3}, 255 * 4096),
        ({"size": MIB, "loops": 3}, 3 * MIB),
        ({"size": MIB, "number_ios": 10}, 40960),
        ({"size": MIB, "io_size": 3 * MIB}, 3 * MIB),
        ({"size": MIB, "bs": 8 * KIB, "rw": "read", "rw_count": "12k"}, 51 * 8 * KIB),
        ({"size": MIB, "bs": 8 * KIB, "rw": "randread", "rw_count": "8"}, MIB),
        ({"size": MIB, "bs": "8192,32768,32768", "rw": "randrw"}, 8 * KIB),
        ({"size": MIB, "bssplit": "4k/50:64k/50"}, MIB - 64 * KIB),
        ({"size": 1000 * KIB, "bsrange": "4k-64k"}, 936 * KIB),
    ],
)
def test_the_least_that_a_job_must_have_moved(options: dict[str, Scalar], least: float) -> None:
    """As fio 3.33 was seen to move it."""
    assert asked_bytes({**DEFAULTS, **options}, 1) == least
    assert asked_bytes({**DEFAULTS, **options}, 3) == 3 * least


def test_a_job_file_is_read_and_its_text_is_kept_with_the_run(tmp_path: Path) -> None:
    """A run must hold all that it takes to repeat it."""
    (tmp_path / "my.fio").write_text(TEXT)
    (tmp_path / "s.yml").write_text(SWEEP)
    read = paths.load_sweep(tmp_path / "s.yml")
    assert [job.name for job in jobs_of(read.sweep.workloads[0].options)] == ["log", "data", "check"]
    assert read.parameters["workloads"]["w"] == {"tool": "fio", "jobs": TEXT}
    assert resolve(read.parameters, where="run.json").sweep.workloads == read.sweep.workloads


def test_a_job_file_from_windows_is_read(tmp_path: Path) -> None:
    (tmp_path / "my.fio").write_bytes(TEXT.replace("\n", "\r\n").encode())
    (tmp_path / "s.yml").write_text(SWEEP)
    assert paths.load_sweep(tmp_path / "s.yml").parameters["workloads"]["w"]["jobs"] == TEXT


def test_a_job_file_that_is_not_there_is_told_with_its_path(tmp_path: Path) -> None:
    (tmp_path / "s.yml").write_text(SWEEP)
    with pytest.raises(StoreError, match=r"my\.fio") as caught:
        paths.load_sweep(tmp_path / "s.yml")
    assert caught.value.next_step == "correct its path in the sweep file"


@pytest.mark.parametrize(
    ("entry", "what", "allowed"),
    [
        ({"job_file": "my.fio"}, "no directory here", "`jobs`"),
        ({"job_file": ["a.fio", "b.fio"]}, "named by its path", "one path"),
        ({"job_file": "my.fio", "jobs": TEXT}, "both a file and `jobs`", "one of them"),
    ],
)
def test_a_job_file_is_one_path_and_read_where_the_sweep_file_is(
    entry: dict[str, Any], what: str, allowed: str
) -> None:
    with pytest.raises(ParameterError, match=what) as caught:
        resolve({**yaml.safe_load(SWEEP), "name": "s", "workloads": {"w": {"tool": "fio", **entry}}}, where="s.yml")
    assert caught.value.where == "s.yml: workloads.w.job_file"
    assert allowed in caught.value.allowed


def test_texts_of_several_lines_are_no_levels_of_a_factor() -> None:
    """The label of a level is a part of the name of its cell."""
    raw = {
        **yaml.safe_load(SWEEP),
        "name": "s",
        "workloads": {"w": {"tool": "fio", "jobs": [TEXT, TEXT + "size=2m\n"]}},
    }
    with pytest.raises(ParameterError, match="one line") as caught:
        resolve(raw, where="s.yml")
    assert caught.value.next_step == "write a workload for each text"


# --- what is run ------------------------------------------------------------------------------------------------------


def test_the_job_file_that_is_run_is_exactly_this() -> None:
    command = Fio().command(workload(log_avg_msec=0), "/m/t", "/out")
    assert command.argv == ("fio", "/out/jobs.fio", "--eta=never", "--output-format=json+", "--output=/out/fio.json")
    assert command.prepare == (("fio", "/out/layout.fio", "--eta=never"),)
    lines = command.files["/out/jobs.fio"].splitlines()
    assert lines[:3] == ["[global]", "directory=/m/t", "group_reporting=1"]
    assert lines[3:11] == [
        "[log]", "bs=4096", "numjobs=1", "ioengine=psync", "refill_buffers=1", "size=262144", "rw=write", "fsync=4",
    ]  # fmt: skip
    assert lines.count("new_group=1") == 2
    assert "stonewall=1" in lines


def test_every_job_draws_from_the_seed_of_the_block_but_one_that_says_how_it_is_seeded() -> None:
    text = "[a]\nrw=randread\nsize=1m\n[b]\nrw=randread\nsize=1m\nrandrepeat=1\n"
    command = Fio().command(workload(text), "/m/t", "/out", Target(seed=11))
    first, _, second = command.files["/out/jobs.fio"].partition("[b]")
    assert {"randrepeat=0", "randseed=11"} <= {*first.splitlines()}
    assert [line for line in second.splitlines() if "rand" in line and "rw=" not in line] == ["randrepeat=1"]
    assert command.seed is None, "not all of the trial follows from the seed"
    assert Fio().command(workload(), "/m/t", "/out", Target(seed=11)).seed == 11


def test_what_is_laid_out_comes_from_another_seed_than_what_is_written_over_it() -> None:
    def seeds(text: str) -> set[str]:
        return {*re.findall(r"randseed=(\d+)", text)}

    for target in (
        Target(seed=11),
        Target(kind="device", device="/dev/loop7", seed=11),
        Target(kind="mapped", seed=11),
    ):
        command = Fio().command(plain(), "/m/t", "/out", target)
        laid = seeds(" ".join(word for argv in command.prepare for word in argv))
        assert len(laid) == 1
        assert laid.isdisjoint(seeds(" ".join(command.argv)))
    files = Fio().command(workload(), "/m/t", "/out", Target(seed=11)).files
    assert seeds(files["/out/jobs.fio"]) == {"11"}
    assert len(seeds(files["/out/layout.fio"]) - {"11"}) == 1


@every_row("own", [{"randseed": 5}, {"randrepeat": 1}, {"allrandrepeat": 1}, {"randrepeat": 0}])
def test_the_word_of_the_sweep_on_seeds_wins(own: dict[str, int]) -> None:
    command = Fio().command(plain(**own), "/m/t", "/out", Target(seed=11))
    given = [word for word in command.argv if re.match("--(all)?rand(seed|repeat)=", word)]
    assert given == [f"--{name}={value}" for name, value in own.items()]
    assert command.seed is None


def test_only_what_is_read_is_laid_out_before() -> None:
    """A file that lies there already would be overwritten, which is another thing than written."""
    layout = Fio().command(workload(), "/m/t", "/out").files["/out/layout.fio"]
    assert "create_only=1" in layout.splitlines()
    assert "[log]" not in layout
    assert "[data]" in layout
    writes = Fio().command(workload("[a]\nrw=write\nsize=1m\n"), "/m/t", "/out")
    assert (writes.prepare, list(writes.files)) == ((), ["/out/jobs.fio"])


def test_clones_are_told_apart_where_the_sweep_asks_for_it() -> None:
    text = Fio().command(workload(group_reporting=0), "/m/t", "/out").files["/out/jobs.fio"]
    assert "group_reporting=0" in text
    assert "new_group" not in text
    assert "--group_reporting=0" in Fio().command(plain(group_reporting=0), "/m/t", "/out").argv


def plain(**options: Any) -> Workload:
    return Workload(name="w", tool="fio", options={**DEFAULTS, "rw": "randrw", "size": MIB, **options})


def test_logs_over_time_are_written_beside_the_report_and_nowhere_else() -> None:
    logs = {"log_avg_msec=500", "write_bw_log=/out/fio", "write_lat_log=/out/fio", "write_iops_log=/out/fio"}
    assert {f"--{log}" for log in logs} <= {*Fio().command(plain(log_avg_msec=500), "/m/t", "/out").argv}
    assert logs <= {*Fio().command(workload(log_avg_msec=500), "/m/t", "/out").files["/out/jobs.fio"].splitlines()}
    assert not any("log" in word for word in Fio().command(plain(log_avg_msec=0), "/m/t", "/out").argv)


def test_logs_over_time_are_kept_where_the_sweep_says_nothing() -> None:
    """A job with a set time has ten windows and more; of many jobs there are none."""
    assert "--log_avg_msec=100" in Fio().command(plain(), "/m/t", "/out").argv
    assert "--log_avg_msec=1000" in Fio().command(plain(time_based=1, runtime=60.0), "/m/t", "/out").argv
    assert "log_avg_msec=100" in Fio().command(workload(), "/m/t", "/out").files["/out/jobs.fio"].splitlines()
    assert not any("log" in word for word in Fio().command(plain(numjobs=17), "/m/t", "/out").argv)
    assert "--log_avg_msec=20" in Fio().command(plain(numjobs=17, log_avg_msec=20), "/m/t", "/out").argv
    assert not any("log" in word for argv in Fio().command(plain(), "/m/t", "/out").prepare for word in argv)


@every_row(
    ("options", "in_memory", "kept"),
    [
        ({}, False, False),
        ({"bs": 64 * KIB}, False, True),
        ({"bs": 64 * KIB}, True, True),
        ({"bs": 64 * KIB, "bssplit": "4k/90:64k/10"}, True, False),
        ({"direct": 1}, False, True),
        ({"direct": 1}, True, False),
        ({"fsync": 1}, False, True),
        ({"fdatasync": 1}, True, False),
        ({"fsync": 32}, False, False),
        ({"log_avg_msec": 50}, True, True),
    ],
)
def test_every_log_is_kept_by_default_where_it_costs_nothing(
    options: dict[str, Any], in_memory: bool, kept: bool
) -> None:
    """They take up to 50 ns of each I/O: of one that waits for a device, or moves much, that is not seen."""
    argv = Fio().command(plain(**options), "/m/t", "/out", Target(in_memory=in_memory)).argv
    written = {word for word in argv if word.startswith("--write_")}
    assert written == {f"--write_{kind}_log=/out/fio" for kind in (("bw", "lat", "iops") if kept else ("bw",))}


def test_every_log_is_kept_of_jobs_that_all_wait() -> None:
    text = "[a]\nrw=write\nsize=1m\ndirect=1\n[b]\nrw=write\nsize=1m\nsync=dsync\n"
    both, one = workload(text), workload(text + "[c]\nrw=write\nsize=1m\n")
    for asked, kept in ((both, True), (one, False)):
        lines = Fio().command(asked, "/m/t", "/out").files["/out/jobs.fio"].splitlines()
        assert ("write_lat_log=/out/fio" in lines) == kept


@pytest.mark.parametrize(("value", "kept"), [(False, 0), (0, 0), (250, 250)])
def test_logs_over_time_are_switched_off_by_false(value: object, kept: int) -> None:
    raw = {**yaml.safe_load(SWEEP), "name": "s"}
    raw["workloads"] = {"w": {"tool": "fio", "rw": "read", "size": "1MiB", "log_avg_msec": value}}
    (own,) = resolve(raw, where="s.yml").sweep.workloads
    assert own.options["log_avg_msec"] == kept
    raw["workloads"]["w"]["log_avg_msec"] = True
    with pytest.raises(ParameterError, match="wrong value") as caught:
        resolve(raw, where="s.yml")
    assert caught.value.allowed == "a whole number, or false"


@every_row(
    ("mix", "is_given", "sizes"),
    [
        ({"bssplit": "64k/100,"}, True, (16, 64)), ({"bsrange": ",32k-64k"}, True, (16, 64)),
        ({"bsrange": "32k-64k,64k"}, False, (32, 64)),
    ],
)  # fmt: skip
def test_a_mix_of_reads_or_writes_only_leaves_the_other_size(
    mix: dict[str, str], is_given: bool, sizes: tuple[int, int]
) -> None:
    """As fio 3.33 was seen to move them: it took 4 KiB where the size was not given to it."""
    options = plain(bs=16 * KIB, **mix).options
    Fio().check(options, where="w")
    assert (f"--bs={16 * KIB}" in Fio().command(plain(bs=16 * KIB, **mix), "/m/t", "/out").argv) == is_given
    assert blocks(options) == (sizes[0] * KIB, sizes[1] * KIB)


def test_a_mix_of_block_sizes_takes_the_place_of_the_one_size() -> None:
    argv = Fio().command(plain(bssplit="4k/60:64k/40"), "/m/t", "/out").argv
    assert "--bssplit=4k/60:64k/40" in argv
    assert not any(word.startswith("--bs=") for word in argv)
    for value in ("4k/60:64k/40", "4k/50:8k/", "4k/100,8k/50:16k/50", "512/10:4K/20", "4kb/100"):
        Fio().check(plain(bssplit=value).options, where="w")
    Fio().check(plain(random_distribution="zoned:60/10:30/20:10/70").options, where="w")


@every_row(
    ("value", "what"),
    [
        ("4k", "not a mix of block sizes"), ("fast", "not a mix of block sizes"),
        ("4k-8k", "not a mix of block sizes"), ("zoned:4k/50", "not a mix of block sizes"),
        ("4k/1,4k/1,4k/1,4k/1", "not a mix of block sizes"), ("4k/60:64k/50", "a mix of block sizes that cannot be"),
        ("4k/50,8k/101", "a mix of block sizes that cannot be"),
        ("0k/50:4k/50", "a mix of block sizes that cannot be"),
    ],
)  # fmt: skip
def test_a_mix_of_block_sizes_has_shares_of_at_most_all(value: str, what: str) -> None:
    with pytest.raises(ParameterError) as caught:
        Fio().check(plain(bssplit=value).options, where="w")
    assert (caught.value.what, caught.value.where) == (what, "w.bssplit")
    assert caught.value.allowed


@pytest.mark.parametrize("value", ["4k/50:../x", "/etc/passwd", "a/b"])
def test_a_path_is_no_mix_of_block_sizes(value: str) -> None:
    with pytest.raises(ParameterError, match="may name no path"):
        Fio().check(plain(bssplit=value).options, where="w")


def test_jobs_on_a_device_share_it_beyond_our_mark() -> None:
    target = Target(kind="device", device="/dev/loop7")
    command = Fio().command(workload(), "/m/t", "/out", target)
    text = command.files["/out/jobs.fio"]
    assert f"filename=/dev/loop7\noffset={MARK_BYTES}" in text
    assert "directory=" not in text
    assert command.prepare[0][:4] == ("fio", "--name=log", "--filename=/dev/loop7", f"--offset={MARK_BYTES}")
    assert Fio().space_bytes(workload(), target) == 256 * KIB


def test_files_that_can_only_be_mapped_are_made_for_every_clone() -> None:
    text = "[a]\nrw=read\nsize=1m\nnumjobs=2\n[b]\nrw=write\nsize=2m\n"
    prepare = Fio().command(workload(text, ioengine="mmap"), "/m/t", "/out", Target(kind="mapped")).prepare
    assert prepare[0] == ("truncate", "-s", str(MIB), "/m/t/a.0.0", "/m/t/a.1.0")
    assert prepare[1][:2] == ("fio", "--name=a")
    assert prepare[2] == ("truncate", "-s", str(2 * MIB), "/m/t/b.0.0")


def test_space_time_and_answer_are_those_of_all_jobs() -> None:
    own = workload("[a]\nrw=read\nsize=1m\nnumjobs=2\nruntime=10\ntime_based\n[b]\nstonewall\nrw=write\nsize=2m\n")
    assert Fio().space_bytes(own) == 4 * MIB
    assert 10 < Fio().expected_s(own) < 12
    assert Fio().main_metrics(own) == ("read_bandwidth", "write_bandwidth")


def test_a_warm_cache_needs_a_job_that_reads() -> None:
    Fio().check(workload(cache="warm").options, where="w")
    with pytest.raises(ParameterError, match="no file to fill the page cache with"):
        Fio().check(workload("[a]\nrw=write\nsize=1m\n", cache="warm").options, where="w")
    assert "invalidate=0" in Fio().command(workload(cache="warm"), "/m/t", "/out").files["/out/jobs.fio"]


# --- what is reported -------------------------------------------------------------------------------------------------


def test_each_job_has_rows_under_its_name_and_all_have_rows_together() -> None:
    report = json.loads((DATA / "jobs.jsonplus").read_text())
    log, data, check = report["jobs"]
    figures = table(Fio().parse(workload(), output("jobs.jsonplus")))
    assert figures["write_bandwidth", "log"] == log["write"]["bw_bytes"]
    assert figures["read_bandwidth", "data"] == data["read"]["bw_bytes"]
    assert figures["read_submission_latency_mean", "check"] == check["read"]["slat_ns"]["mean"] / 1e9
    assert figures["sync_ios", "log"] == log["sync"]["lat_ns"]["N"]
    assert figures["sync_latency_mean", "log"] == log["sync"]["lat_ns"]["mean"] / 1e9
    assert ("sync_latency_p50", "log") not in figures, "of so few calls"
    assert figures["bytes", "write"] == log["write"]["io_bytes"] + data["write"]["io_bytes"]
    assert figures["context_switches", ""] == sum(job["ctx"] for job in report["jobs"])
    assert ("read_bandwidth", "log") not in figures


def test_rates_of_all_jobs_are_over_the_longest_of_each_phase() -> None:
    """log and data run at the same time, check afterwards."""
    log, data, check = json.loads((DATA / "jobs.jsonplus").read_text())["jobs"]
    figures = table(Fio().parse(workload(), output("jobs.jsonplus")))
    written = log["write"]["io_bytes"] + data["write"]["io_bytes"]
    writing_ms = max(log["write"]["runtime"], data["write"]["runtime"])
    assert figures["write_bandwidth", ""] == pytest.approx(written * 1e3 / writing_ms)
    read = data["read"]["io_bytes"] + check["read"]["io_bytes"]
    reading_ms = data["read"]["runtime"] + check["read"]["runtime"]
    assert figures["read_bandwidth", ""] == pytest.approx(read * 1e3 / reading_ms)
    busy_ms = max(log["write"]["runtime"], data["read"]["runtime"], data["write"]["runtime"])
    assert figures["elapsed", ""] == pytest.approx((busy_ms + check["read"]["runtime"]) / 1e3)


@every_row(
    ("delays", "seconds"),
    [
        ((0, 0), 10.0), ((5, 5), 10.0), ((0, 3), 11.0), ((0, 1), 10.0), ((0, 10), 18.0), ((60, 0), 18.0),
    ],
)  # fmt: skip
def test_rates_of_jobs_that_begin_at_different_times_are_over_the_time_in_which_one_ran(
    delays: tuple[int, int], seconds: float
) -> None:
    """Jobs of 10 s and of 8 s: fio begins each within some milliseconds of its delay."""
    sections = (f"[{name}]\nrw=read\nsize=1m\nstartdelay={delay}\n" for name, delay in zip("ab", delays, strict=True))
    jobs = jobs_of(workload("".join(sections)).options)
    side = {"io_bytes": 40 * MIB, "total_ios": 10240}
    entries = [{"read": {**side, "runtime": ms}, "write": {"io_bytes": 0, "runtime": 0}} for ms in (10_000, 8_000)]
    begins = [(job.phase, job.start_s) for job in jobs]
    figures = {row.metric: row.value for row in fio_report.together(entries, begins)}
    assert figures["read_bandwidth"] == pytest.approx(80 * MIB / seconds)
    assert figures["elapsed"] == pytest.approx(seconds)


def test_percentiles_of_all_clones_are_those_of_the_merged_bins() -> None:
    options = {"ioengine": "libaio", "direct": 1, "iodepth": 4, "numjobs": 2, "group_reporting": 0, "fdatasync": 8,
               "size": 512 * KIB, "slat_percentiles": 1, "lat_percentiles": 1, "log_avg_msec": 1}  # fmt: skip
    rows = Fio().parse(plain(**options), output("clones.jsonplus"))
    figures, jobs = table(rows), json.loads((DATA / "clones.jsonplus").read_text())["jobs"]
    assert {label for _, label in figures} == {"", "read", "write", "mountlab.0", "mountlab.1"}
    bins: dict[int, int] = {}
    for job in jobs:
        for key, number in job["read"]["clat_ns"]["bins"].items():
            bins[int(key)] = bins.get(int(key), 0) + number
    pooled = [key for key in sorted(bins) for _ in range(bins[key])]
    assert figures["read_ios", ""] == len(pooled)
    assert figures["read_latency_p50", ""] == pytest.approx(pooled[math.ceil(len(pooled) / 2) - 1] / 1e9, rel=1 / 128)
    numbers, means = zip(*((job["read"]["lat_ns"]["N"], job["read"]["lat_ns"]["mean"]) for job in jobs), strict=True)
    weighted = sum(n * mean for n, mean in zip(numbers, means, strict=True)) / sum(numbers)
    assert figures["read_latency_mean", ""] == pytest.approx(weighted / 1e9)
    assert {
        ("read_total_latency_p50", ""), ("write_submission_latency_p50", "mountlab.1"),
        ("sync_latency_mean", "mountlab.0"),
    } <= set(figures)  # fmt: skip


@every_row(
    ("changes", "kind", "what"),
    [
        ({("jobs", 1, "error"): 28}, ToolError, "fio failed with exit status 0, error 28"),
        ({("jobs", 1, "write", "io_bytes"): 8192}, ToolError, "fio stopped early"),
        ({("jobs", 2, "read", "io_bytes"): 0}, ToolError, "fio moved no bytes"),
        ({("jobs", 0, "job options", "fsync"): "8"}, ToolError, "fio did not run what was asked"),
        ({("global options", "fsync"): "8"}, None, ""),
        ({("jobs", 0, "jobname"): "other"}, ParseError, "fio reports on other jobs than were asked for"),
    ],
)
def test_one_job_that_is_not_what_was_asked_spoils_the_trial(
    changes: dict[tuple[Any, ...], Any], kind: type[Exception] | None, what: str
) -> None:
    if kind is None:  # what a job says of itself counts for more than what is common to all
        assert Fio().parse(workload(), output("jobs.jsonplus", changes))
        return
    with pytest.raises(kind, match=what):
        Fio().parse(workload(), output("jobs.jsonplus", changes))


@every_row(("more", "stopped_early"), [("", True), ("ramp_time=100ms\n", False)])
def test_what_a_ramp_moves_is_not_counted_so_no_amount_is_missed(more: str, stopped_early: bool) -> None:
    """fio counts from the end of the ramp, and ends with the size of the file."""
    less = output("jobs.jsonplus", {("jobs", 2, "read", "io_bytes"): 8192})
    if stopped_early:
        with pytest.raises(ToolError, match="fio stopped early"):
            Fio().parse(workload(TEXT + more), less)
    else:
        assert Fio().parse(workload(TEXT + more), less)


def test_of_several_groups_in_an_unknown_order_no_common_rate_is_made() -> None:
    """As of an imported log: nobody can tell from a report whether its groups ran at the same time. Amounts add up."""
    rows = fio_report.measurements(json.loads((DATA / "jobs.jsonplus").read_text())["jobs"])
    assert {row.label for row in rows if row.metric != "bytes"} == {"log", "data", "check"}
    amounts = {row.label: row.value for row in rows if row.metric == "bytes"}
    assert amounts == {"read": 212992 + 262144, "write": 262144 + 311296}


def test_without_bins_percentiles_of_all_are_missing_and_means_are_not() -> None:
    changes: dict[tuple[Any, ...], Any] = {
        ("jobs", i, side, "clat_ns", "bins"): {} for i in range(3) for side in ("read", "write")
    }
    figures = table(Fio().parse(workload(), output("jobs.jsonplus", changes)))
    assert ("read_latency_mean", "") in figures
    assert ("read_latency_p50", "data") in figures
    assert ("read_latency_p50", "") not in figures


def test_bins_that_do_not_add_up_are_refused() -> None:
    with pytest.raises(ParseError, match="the bins of the histogram are not whole"):
        Fio().parse(workload(), output("jobs.jsonplus", {("jobs", 1, "read", "clat_ns", "bins"): {"1": 1}}))


def test_disks_are_told_apart_where_there_are_several() -> None:
    disks = [{"name": "sda", "util": 50.0, "read_ios": 3}, {"name": "sdb", "util": 25.0, "write_ios": 3},
             {"name": "sdc", "util": 0.0, "read_ios": 0, "write_ios": 0}]  # fmt: skip
    figures = table(Fio().parse(workload(), output("jobs.jsonplus", {("disk_util",): disks})))
    busy = {label: value for (metric, label), value in figures.items() if metric == "disk_utilization"}
    assert busy == {"sda": 0.5, "sdb": 0.25}


def test_what_fio_prints_that_is_no_json_is_missing_and_not_a_number() -> None:
    text = '{"jobs": [{"a": -nan, "b": nan, "c": inf}]}'
    assert fio_report.decode(text)["jobs"] == [{"a": None, "b": None, "c": None}]


def test_less_is_better_of_everything_but_rates() -> None:
    """A share of a processor and a count of context switches are a price."""
    assert higher_is_better("write_iops")
    assert higher_is_better("bandwidth")
    for metric in (
        "user_cpu",
        "system_cpu",
        "context_switches",
        "major_faults",
        "disk_utilization",
        "sync_latency_p99",
        "read_submission_latency_mean",
    ):
        assert not higher_is_better(metric), metric
