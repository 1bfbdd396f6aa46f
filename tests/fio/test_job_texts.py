"""Job files as people have them: what of them fio gets as it is, what is changed and why, and what is refused."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mountlab.core.errors import ParameterError
from mountlab.core.model import MARK_BYTES, Scalar, Target, Workload
from mountlab.fio.jobs import USUAL_SIZE, change_words, jobs_of, read_jobs, takes_usual_size
from mountlab.fio.options import OPTIONS
from mountlab.fio.tool import Fio
from mountlab.sweep.job_import import Imported, import_text
from rows import every_row

DEFAULTS: dict[str, Scalar] = {key: o.default for key, o in OPTIONS.items() if o.default is not None}
KIB, MIB = 1024, 1024**2
DEVICE = """\
; of a whole device, as many public files are
[global]
name=bench
ioengine=aio      ; the old name
filename=/dev/nvme0n1
direct=1
time_based=600
timeout=60
group_reporting
write_bw_log=/tmp/bw
exec_prerun=echo 3 > /proc/sys/vm/drop_caches

[rand read 4k]
readwrite=randread:8
blocksize=4k
iodepth=${DEPTH}

[write]  # next
wait_for_previous
rw=write
bs=4k-1m
"""


def workload(text: str, **options: Any) -> Workload:
    return Workload(name="w", tool="fio", options={**DEFAULTS, "jobs": text, **options})


def only(text: str, **options: Any) -> dict[str, Scalar]:
    """The options of the only job of a text, without those that every job has."""
    (job,) = jobs_of(workload(text, **options).options)
    return {name: value for name, value in job.options.items() if DEFAULTS.get(name) != value}


def imported(text: str, *, size: int | None = None, include: dict[str, str] | None = None, **values: str) -> Imported:
    return import_text(text, variables=values, size=size, where="my.fio", include=(include or {}).get)


def changes(text: str) -> list[str]:
    return change_words(read_jobs(workload(text).options).changes)


# --- what a line means ------------------------------------------------------------------------------------------------


@every_row("given, handed", [("randread:8", "rw=randread:8"), ("write:4k", "rw=write:4k"), ("read", "rw=read")])
def test_fio_gets_after_how_many_requests_it_takes_another_offset(given: str, handed: str) -> None:
    text = f"[j]\nrw=randwrite:2\nrw={given}\nsize=1m\n"
    assert handed in Fio().command(workload(text), "/m/t", "/out").files["/out/jobs.fio"].splitlines()


@every_row(
    ("line", "option", "value"),
    [
        ("readwrite=randread", "rw", "randread"),
        ("rw=read,randwrite", "rw", "read"),
        ("blocksize=8k ; small", "bs", 8192),
        ("bs=8k,16k", "bs", "8192,16384,16384"),
        ("bs=4k-4M", "bs", "4096,4194304,4194304"),
        ("bs=,8k", "bs", "4096,8192,8192"),
        ("bs=8k,8k", "bs", 8192),
        ("bs=8k,", "bs", "8192,4096,4096"),
        ("bs=32k\nbs=,8k", "bs", "32768,8192,8192"),
        ("bs=8k,16k,32k\nbs=,,64k", "bs", "8192,16384,65536"),
        ("bs=8k\nbs=,8k", "bs", 8192),
        ("random_distribution=zoned_abs:95/1m:5/7m", "random_distribution", "zoned_abs:95/1m:5/7m"),
        ("timeout=1m # a minute", "runtime", 60.0),
        ("io_limit=1g", "io_size", 1024**3),
        ("ioengine=linuxaio", "ioengine", "libaio"),
        ("iomem=mmaphuge", "mem", "mmaphuge"),
        ("fileoffset=1m", "offset", MIB),
        ("filename=/dev/sdb", "filename", "sdb"),
        ("filename=a/x:b/x:y", "filename", "x:x-2:y"),
        ("filename=../../etc/passwd", "filename", "passwd"),
        ("filename=${DISK}", "filename", "DISK"),
        ("filename_format=${HOST}.$jobnum.$filenum", "filename_format", "HOST.$jobnum.$filenum"),
        ("filesize=4k-64k", "filesize", "4096-65536"),
        ("size=6400K:6400K:3200K", "size", 3200 * KIB),
        ("size=8m-4m", "size", 4 * MIB),
        ("offset=1m,2m", "offset", 2 * MIB),
        ("wait_for_previous", "stonewall", 1),
        ("rate=10MiB", "rate", "10000000"),
        ("hugepage-size=2m", "hugepage-size", "2m"),
    ],
)
def test_a_line_is_read_as_fio_reads_it(line: str, option: str, value: Scalar) -> None:
    """As the source of fio has it, and `fio --debug=parse` was seen to print it: a range in bs is two sizes."""
    read = only(f"[a]\nsize=1m\nrw=write\nrefill_buffers=0\ntime_based=0\n{line}")
    assert read[option] == value
    Fio().check(workload(f"[a]\nsize=8m\nrw=write\n{line}").options, where="w")
    plain = line.partition(";")[0].partition("#")[0].strip()
    is_changed = f"{option}={value}" not in (plain, f"{plain}=1") and plain.partition("=")[0] != option
    assert any(plain in words for words in changes(f"[a]\nsize=8m\nrw=write\n{line}")) >= is_changed


@every_row(
    "line",
    [
        "name=x", "description=a/b", "directory=/mnt/x", "group_reporting=1", "new_group", "write_lat_log=/tmp/x",
        "log_avg_msec=500", "per_job_logs=0", "percentile_list=50:99", "clat_percentiles=1", "disk_util=0",
        "unified_rw_reporting=mixed", "kb_base=1024", "fill_device=0", "output-format=json", "fill_device=1", "fill_fs",
        "write_bw_log=${LOG}", "size=0", "cgroup_nodelete=1",
    ],
)  # fmt: skip
def test_a_line_without_effect_on_the_io_is_dropped_and_reported(line: str) -> None:
    with_it, without = (f"[a]\nrw=read\nsize=1m\n{more}" for more in (line, ""))
    assert only(with_it) == only(without) or line.startswith("size")
    (words,) = changes(with_it)
    assert words.startswith(f"line 4: {line} is dropped: ")


@every_row(("line", "common"), [("loops=1", "loops=5"), ("offset=0", "offset=1m"), ("startdelay=0", "startdelay=5")])
def test_the_usual_value_in_a_section_takes_the_place_of_a_global_one(line: str, common: str) -> None:
    name, _, value = line.partition("=")
    assert str(only(f"[global]\n{common}\n[a]\nrw=read\nsize=1m\n{line}")[name]) == value


def test_a_comment_ends_a_line_and_a_section() -> None:
    text = "# of mine\n[global] ; all\nsize=1m#x\n   ;bs=8k\n[a] # one\nrw=read ; yes\n"
    assert only(text) == {"size": MIB, "rw": "read"}


def test_a_global_section_holds_for_what_follows_it_by_the_first_letters_of_its_name() -> None:
    text = "[global]\nsize=1m\nrw=read\n[a]\n[global two]\nbs=8k\n[b]\n"
    assert [(job.name, job.options["bs"], job.options["size"]) for job in jobs_of(workload(text).options)] == [
        ("a", 4096, MIB),
        ("b", 8192, MIB),
    ]


@every_row(
    ("text", "added"),
    [
        ("[a]\nsize=1m", {"rw": "read"}),
        ("[a]\nrw=read", {"size": USUAL_SIZE}),
        ("[a]\nrw=read\nsize=1m\ntime_based", {"time_based": 0}),
        ("[a]\nrw=read\nfilesize=1m\nnrfiles=3", {"size": 3 * MIB}),
        ("[a]\nrw=read\nfilesize=4k-1m\nnrfiles=3", {"size": 3 * MIB}),
        ("[global]\nrw=read\nsize=1m", {"rw": "read"}),
    ],
)
def test_what_a_file_leaves_open_is_what_fio_does_or_is_chosen_and_both_are_said(
    text: str, added: dict[str, Scalar]
) -> None:
    assert added.items() <= only(text).items() or added == {"time_based": 0}
    assert any("is added" in words or "becomes time_based=0" in words for words in changes(text))


@every_row(
    ("lines", "places"),
    [
        ("size=50%", (0, 0, 512 * KIB)),
        ("size=50%%", (0, 0, 512 * KIB)),
        ("size=10%:50%", (0, 0, 512 * KIB)),
        ("size=100%", (0, 0, MIB)),
        ("offset=25%", (256 * KIB, 0, 768 * KIB)),
        ("fileoffset=25%\nsize=50%", (256 * KIB, 0, 512 * KIB)),
        ("offset=75%\nsize=50%", (768 * KIB, 0, 256 * KIB)),
        ("offset_increment=50%\nnumjobs=2\nsize=50%", (0, 512 * KIB, 512 * KIB)),
        ("offset=10%\nsize=10%", (26 * 4 * KIB, 0, 25 * 4 * KIB)),
        ("offset=50%\nsize=64k", (512 * KIB, 0, 64 * KIB)),
        ("offset=50%\nsize=3m", (3 * MIB, 0, 3 * MIB)),
        ("offset=0%\nsize=50%\nbs=64k", (0, 0, 512 * KIB)),
        ("filesize=2m\nsize=50%", (0, 0, MIB)),
    ],
)
def test_a_share_is_one_of_the_file_that_stands_for_the_device(lines: str, places: tuple[int, int, int]) -> None:
    """As fio 3.33 was seen to read a file of 1 MiB: offsets up to the next block, sizes down. Given bytes fit in."""
    text = f"[a]\nfilename=/dev/sdb\nrw=read\n{lines}\n"
    read = read_jobs(workload(text).options, usual_size=MIB)
    (job,) = read.jobs
    assert job.options.get("filesize", MIB) == MIB, "fio uses the whole of a file that has a size of its own"
    assert read.problems == ()
    assert tuple(int(job.options.get(name, 0)) for name in ("offset", "offset_increment", "size")) == places
    written = imported(text, size=MIB)
    assert read_jobs(workload(written.text).options).jobs == written.jobs


def test_a_share_is_reported_with_what_it_is_of_and_keeps_the_warning_of_a_size_that_is_proposed() -> None:
    text = "[global]\nsize=50%\n[a]\nrw=read\nio_size=50%\n"
    read = read_jobs(workload(text).options)
    assert change_words(read.changes) == [
        "line 3: size=536870912 is added: 50 % of the 1GiB that stand for the device",
        "line 5: io_size=50% becomes io_size=268435456: 50 % of its size",
    ]
    assert takes_usual_size(read.changes)
    assert not takes_usual_size(read_jobs(workload(text, size=MIB).options).changes)
    filled = read_jobs(workload("[a]\nrw=write\nfill_device=1\nrefill_buffers=0\n").options)
    assert takes_usual_size(filled.changes)
    assert (filled.problems, filled.jobs[0].options["size"]) == ((), USUAL_SIZE)


def test_every_line_of_many_is_named_where_a_sweep_is_checked() -> None:
    sections = "".join(f"[{name}]\nfilename=/dev/{name}\n" for name in "abcdef")
    said = " ".join(Fio().remarks(workload(f"[global]\ntime_based\nrw=read\nsize=1m\n{sections}")))
    assert all(f"filename=/dev/{name} becomes filename={name}" in said for name in "abcdef")
    assert "lines 5, 7, 9, 11, 13, 15: time_based=0 is added: fio ignores time_based" in said


def test_a_section_that_is_named_as_a_device_has_it_as_its_file() -> None:
    text = "[/dev/sdb]\nrw=read\nsize=1m\n[x]\nrw=read\nsize=1m\nfilename=/dev/sdb\n"
    assert [job.options["filename"] for job in jobs_of(workload(text).options)] == ["sdb", "sdb"]
    assert "line 1: filename=sdb is added: fio takes the device that the section names, /dev/sdb" in " ".join(
        changes(text)
    )


def test_a_size_beside_the_text_is_taken_where_the_text_has_none() -> None:
    assert only("[a]\nrw=read", size=MIB)["size"] == MIB


def test_data_that_mountlab_makes_new_for_each_write_is_said_where_the_file_says_nothing() -> None:
    text = "[a]\nrw=write\nsize=1m\n"
    assert changes(text) == [
        "line 1: refill_buffers=1 is added: new data for each write, unless the file says what data"
    ]
    assert changes(f"{text}refill_buffers=0\n") == []


@every_row(
    "line",
    ["zero_buffers", "buffer_pattern=0xdead", "buffer_compress_percentage=50", "dedupe_percentage=10",
     "scramble_buffers=1"],
)  # fmt: skip
@pytest.mark.parametrize("section", ["[global]\n{}\n[a]\n", "[a]\n{}\n"])
def test_data_that_the_file_describes_are_left_to_fio(line: str, section: str) -> None:
    """refill_buffers=1 would write other data than the file says, or undo what fio itself sets beside the option."""
    text = f"{section.format(line)}rw=write\nsize=1m\n"
    assert changes(text) == []
    assert "refill_buffers" not in Fio().command(workload(text), "/m/t", "/out").files["/out/jobs.fio"]
    assert only(f"{text}refill_buffers=0\n")["refill_buffers"] == 0


@every_row(
    ("names", "read"),
    [
        (("rand read",), ["rand-read"]), (("a", "a"), ["a", "a-2"]), (("../x", "4k/1"), ["x", "4k-1"]),
        (("fio-test]",), ["fio-test"]), (("größe", "b" * 60), ["gr-e", "b" * 40]),
    ],
)  # fmt: skip
def test_each_job_has_a_name_of_its_own(names: tuple[str, ...], read: list[str]) -> None:
    text = "".join(f"[{name}]\nrw=read\nsize=1m\n" for name in names)
    assert [job.name for job in jobs_of(workload(text).options)] == read
    assert len(changes(text)) >= 1


# --- files ------------------------------------------------------------------------------------------------------------


@given(st.text(alphabet="/abdevsn0:\\.${}- ", min_size=1, max_size=40))
def test_no_name_of_a_file_leads_out_of_the_directory(name: str) -> None:
    """Whatever a file names, fio opens files in Mountlab's directory only: no device, no path upwards."""
    try:
        jobs = jobs_of(workload(f"[a]\nrw=read\nsize=1m\nfilename={name}").options)
    except ParameterError:
        return
    for own in str(jobs[0].options.get("filename", "file")).split(":"):
        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", own)


def test_files_that_jobs_share_stay_shared() -> None:
    """Two processes in one file contend for its lock; in files of their own they do not."""
    text = "[a]\nfilename=/dev/sdb\nrw=read\nsize=2m\nnumjobs=4\n[b]\nfilename=/dev/sdb\nrw=write\nsize=1m\n"
    lines = Fio().command(workload(text), "/m/t", "/out").files["/out/jobs.fio"].splitlines()
    assert lines.count("filename=sdb") == 2
    assert Fio().space_bytes(workload(text)) == 2 * MIB
    same = "[a]\nrw=read\nsize=1m\n[a]\nrw=write\nsize=1m\n"
    formats = [job.options.get("filename_format") for job in jobs_of(workload(same).options)]
    assert formats == [None, "a.$jobnum.$filenum"], "as fio names the files of the first"
    assert Fio().space_bytes(workload(same)) == MIB


@every_row(
    ("lines", "mebibytes"),
    [
        ("size=8m\nnumjobs=3", 24),
        ("size=8m\nnumjobs=3\nfilename=x", 8),
        ("size=8m\nfilename=x:y", 8),
        ("size=8m\nnumjobs=3\nfilename_format=x.$filenum", 8),
        ("size=8m\noffset=4m", 12),
        ("size=8m\noffset=4m\nnrfiles=2", 16),
        ("size=8m\nnumjobs=3\noffset_increment=8m\nfilename=x", 24),
        ("filesize=1m-2m\nnrfiles=3", 6),
        ("size=8m\nfilesize=1m\nnrfiles=3", 3),
    ],
)
def test_the_space_of_the_files_is_what_fio_makes_of_them(lines: str, mebibytes: int) -> None:
    """As fio 3.33 was seen to lay them out."""
    assert Fio().space_bytes(workload(f"[a]\nrw=read\n{lines}")) == mebibytes * MIB


def test_on_a_device_no_job_has_a_file_and_an_offset_begins_behind_the_mark() -> None:
    target = Target(kind="device", device="/dev/loop7", seed=1)
    own = workload("[a]\nrw=read\nsize=2m\nfilename=/dev/sda\noffset=4m\n[b]\nrw=read\nsize=1m\n")
    head, *jobs = Fio().command(own, "/m/t", "/out", target).files["/out/jobs.fio"].split("\n[")
    assert {"filename=/dev/loop7", f"offset={MARK_BYTES}"} <= {*head.splitlines()}
    assert [line for job in jobs for line in job.splitlines() if line.startswith(("filename", "offset"))] == [
        f"offset={MARK_BYTES + 4 * MIB}"
    ]
    assert Fio().space_bytes(own, target) == 6 * MIB


# --- times ------------------------------------------------------------------------------------------------------------


def test_a_job_that_waits_for_the_one_before_it_begins_a_phase() -> None:
    text = "[a]\nrw=write\nsize=1m\n[b c]\nwait_for=a\nrw=read\nsize=1m\n[d]\nwait_for=b c\nrw=read\nsize=1m\n"
    read = jobs_of(workload(text).options)
    assert [(job.phase, job.options.get("wait_for")) for job in read] == [(0, None), (1, "a"), (2, "b-c")]
    layout = Fio().command(workload(text), "/m/t", "/out").files["/out/layout.fio"]
    assert "wait_for" not in layout, "who is waited for does not read"


@every_row(
    ("sections", "what"),
    [
        (("a", "b\nwait_for=nobody"), "wait_for leaves open"),
        (("a", "b", "c\nwait_for=b"), "wait_for leaves open"),
        (("a", "b\nwait_for=a", "c"), "wait_for leaves open"),
        (("a\nstartdelay=1", "b"), ""),
        (("a", "b\nstonewall\nstartdelay=1", "c"), "startdelay leaves open"),
        (("a\nstartdelay=1-5",), "startdelay leaves open"),
        (("a\nstartdelay=1", "b\nstonewall"), ""),
        (("a\nstartdelay=2", "b\nstartdelay=2s"), ""),
        (("a\nstonewall=0", "b\nstonewall=0"), ""),
    ],
)
def test_figures_of_all_jobs_are_of_a_known_time(sections: tuple[str, ...], what: str) -> None:
    name, _, rest = sections[0].partition("\n")
    text = "[global]\nrw=read\nsize=1m\n" + "".join(
        "[{}]\n{}\n".format(*section.partition("\n")[::2]) for section in (f"{name}\n{rest}", *sections[1:])
    )
    problems = read_jobs(workload(text).options).problems
    assert [error.what.partition(" which")[0] for error in problems] == ([what] if what else [])


def test_a_stonewall_of_0_is_none() -> None:
    text = "[a]\nrw=read\nsize=1m\n[b]\nstonewall=0\nrw=read\nsize=1m\n"
    assert {job.phase for job in jobs_of(workload(text).options)} == {0}


def test_the_end_of_a_job_ends_the_others_of_its_phase_and_no_clone_of_its_alone() -> None:
    """`exitall` acts on a group of fio's, and each new_group would be one."""
    text = "[a]\nrw=read\nsize=1m\nexitall\n[b]\nrw=read\nsize=1m\n"
    lines = Fio().command(workload(text), "/m/t", "/out").files["/out/jobs.fio"].splitlines()
    assert "new_group=1" not in lines
    assert "group_reporting=0" in lines


# --- all problems at once ---------------------------------------------------------------------------------------------


def test_every_problem_of_a_file_is_reported_at_once_with_its_line() -> None:
    text = "[a]\nsize=${S}\nexec_prerun=sync\nruntime=1 minute\nrw=read\n[b]\nioengine=rbd\nbssplit=4k/200\nsize=1m\n"
    with pytest.raises(ParameterError) as caught:
        Fio().check(workload(text).options, where="w")
    said = str(caught.value)
    for line, got in ((2, "size=${S}"), (3, "exec_prerun=sync"), (4, "'1 minute'")):
        assert f"where:   w.jobs, line {line}\n  got:     {got}\n  allowed: " in said
    assert "[b].ioengine" in said
    assert "[b].bssplit" in said
    assert "--var S=..." in said
    assert said.count("error: ") == 4


# --- variables --------------------------------------------------------------------------------------------------------


def test_variables_have_the_values_that_stand_beside_the_text() -> None:
    text = "[a]\nrw=${RW}\nsize=${N}m\nnumjobs=$ncpus\n"
    read = only(text, variables='{"RW": "randread", "N": 2, "ncpus": 4}')
    assert (read["rw"], read["size"], read["numjobs"]) == ("randread", 2 * MIB, 4)


def test_a_variable_of_a_shell_has_its_value_where_one_is_given() -> None:
    """As in a text within a script: fio itself reads ${NAME} only. What fio has of its own stays."""
    text = "[a]\nrw=read\nsize=$SIZE\nfilename_format=$jobname.$jobnum\n"
    assert only(text, variables='{"SIZE": "2m"}')["size"] == 2 * MIB
    assert imported(text, SIZE="2m").jobs[0].options["filename_format"] == "$jobname.$jobnum"
    (error,) = imported(text).problems
    assert "--var SIZE=..." in error.next_step


@every_row(
    ("line", "values", "option", "value"),
    [
        ("filesize=10*10*1000*$mb_memory", {"mb_memory": 64}, "filesize", 6_400_000),
        ("numjobs=$ncpus*2", {"ncpus": 3}, "numjobs", 6),
        ("numjobs=$ncpus/2+1", {"ncpus": 7}, "numjobs", 4),
        ("bs=(2*1024)", {}, "bs", 2048),
        ("bs=(4k*2)", {}, "bs", 8192),
        ("runtime=(2*30)", {}, "runtime", 60.0),
        ("filename=a$ncpus-2", {"ncpus": 3}, "filename", "a3-2"),
    ],
)
def test_sums_have_the_value_that_fio_computes(line: str, values: dict[str, int], option: str, value: Scalar) -> None:
    """With a number of the box in them (by bc, whole numbers), or in brackets; other texts stay."""
    text = f"[a]\nrw=write\nsize=8m\n{line}\n"
    assert only(text, variables=json.dumps(values))[option] == value
    written = imported(text, **{name: str(number) for name, number in values.items()})
    assert (written.problems, written.jobs[0].options[option]) == ((), value)
    assert "*" not in written.text.split(line.partition("=")[0])[1].partition("#")[0]


def test_a_number_of_the_box_without_a_value_is_named_with_the_way_to_give_it() -> None:
    (error,) = read_jobs(workload("[a]\nrw=read\nsize=1m\nnumjobs=$ncpus*2\n").options).problems
    assert "$ncpus is a number of each box" in error.what
    assert "--var ncpus=..." in error.next_step


@every_row(
    ("text", "sizes"),
    [
        ("[global]\nsize=1m\nkb_base=1000\n[a]\nrw=read\nbs=4k\n", (1_000_000, 4000)),
        ("[global]\nkb_base=1000\n[a]\nrw=read\nsize=1MiB\nbs=4kb\nruntime=1m\n", (MIB, 4000)),
        ("[global]\nsize=1m\n[a]\nrw=read\nkb_base=1000\nbs=4k,8k\n", (MIB, "4000,8000,8000")),
        ("[global]\nkb_base=1000\nsize=1m\n[a]\nrw=read\nkb_base=1024\nbs=4k\n", (1_000_000, 4096)),
    ],
)
def test_sizes_are_read_by_the_base_of_units_of_their_section(text: str, sizes: tuple[Scalar, Scalar]) -> None:
    (job,) = jobs_of(workload(text).options)
    assert (job.options["size"], job.options["bs"], job.options.get("runtime", 60.0)) == (*sizes, 60.0)
    assert "kb_base=1000 is dropped: sizes are read by it, and given to fio in bytes" in " ".join(changes(text))
    assert imported(text).jobs == (job,)
    scaled = imported(text, size=256 * MIB)
    assert scaled.jobs[0].options["size"] == 256 * MIB
    assert jobs_of(workload(scaled.text).options) == scaled.jobs


@every_row(("text", "name"), [("[a]\nrw=read\nsize=1m\n", "RW"), ("[a]\nrw=${RW}\nsize=1m\n", "rw")])
def test_a_variable_that_the_text_does_not_have_is_refused(text: str, name: str) -> None:
    with pytest.raises(ParameterError, match="no such variable") as caught:
        Fio().check(workload(text, variables=f'{{"{name}": "read"}}').options, where="w")
    assert (caught.value.got, caught.value.where) in ((name, "w.variables"), ("rw=${RW}", "w.jobs, line 2"))


# --- import -----------------------------------------------------------------------------------------------------------


def test_a_job_file_is_written_with_a_comment_on_each_change() -> None:
    read = imported(DEVICE, DEPTH="4")
    assert read.problems == ()
    for line in (
        "# dropped: name=bench   (a label in the output of fio, without effect on the I/O)",
        "filename=nvme0n1   # was filename=/dev/nvme0n1: files of that name in the directory of the trial, which stand "
        "for any device or path",
        "time_based=1   # was time_based=600: fio takes any number but 0 for on",
        "[rand-read-4k]   # was [rand read 4k]: a name of its own for each job, which names its files and figures",
        "iodepth=4   # was iodepth=${DEPTH}: the values of its variables",
        f"size={USUAL_SIZE}   # added: the file names no size, as for a whole device: give one beside `jobs`",
    ):
        assert line in read.text.splitlines()
    assert "# dropped: exec_prerun=echo 3 > /proc/sys/vm/drop_caches   (it runs a command on the box" in read.text
    assert "; of a whole device, as many public files are" in read.text, "the comments of its author stay"


@every_row("text", [DEVICE.replace("${DEPTH}", "8"), "[a]\nrw=read\n[a]\nrw=write\n", "[global]\nrw=read\n"])
def test_what_is_written_is_read_without_a_further_change_and_means_the_same(text: str) -> None:
    written = imported(text)
    again = read_jobs(workload(written.text).options)
    assert (again.changes, again.problems, again.jobs) == ((), (), written.jobs)


@given(st.text(alphabet="[]ab=;#\n 14kglo$/{}rw", max_size=60))
def test_any_text_is_written_as_a_job_file_or_refused(text: str) -> None:
    written = imported(text)
    assert written.problems or read_jobs(workload(written.text).options).jobs == written.jobs


@every_row(
    ("line", "written"),
    [
        ("runtime=10sec", "runtime=10s"), ("runtime=5 min", "runtime=5m"), ("io_size=1024.0M", "io_size=1024M"),
        ("io_size=1.5g", "io_size=1610612736"), ("mem=mmaphuge:/mnt/huge/x", "mem=mmaphuge"),
    ],
)  # fmt: skip
def test_what_fio_would_misread_or_read_elsewhere_is_written_as_it_is_meant(line: str, written: str) -> None:
    read = imported(f"[a]\nrw=read\nsize=1m\n{line}\n")
    assert read.problems == ()
    assert f"{written}   # was {line}: " in read.text


def test_a_size_that_is_asked_for_is_that_of_the_largest_and_the_others_are_in_proportion() -> None:
    text = "[a]\nrw=read\nsize=100g\n[b]\nrw=write\nsize=50g\noffset=100g\nnrfiles=2\nfilesize=8k\n"
    a, b = imported(text, size=64 * MIB).jobs
    assert (a.options["size"], b.options["size"], b.options["offset"]) == (64 * MIB, 32 * MIB, 64 * MIB)
    assert b.options["filesize"] == 8 * KIB, "what is small already stays"
    assert imported("[a]\nrw=read\nsize=9g:9g\n", size=64 * MIB).jobs[0].options["size"] == 64 * MIB
    assert imported("[a]\nrw=read\nsize=${S}\n", size=64 * MIB, S="9g").jobs[0].options["size"] == 64 * MIB
    assert imported("[a]\nrw=read\n", size=64 * MIB).jobs[0].options["size"] == 64 * MIB


def test_an_engine_that_uses_no_file_system_is_replaced_only_where_that_is_asked_for() -> None:
    text = "[a]\nioengine=spdk_bdev\nspdk_conf=./x.conf\nrw=read\nsize=1m\n"
    assert any("import-job FILE --engine" in error.next_step for error in imported(text).problems)
    read = import_text(text, variables={}, size=None, where="my.fio", include={}.get, engine="libaio")
    assert read.problems == ()
    assert "ioengine=libaio   # was ioengine=spdk_bdev: asked for by --engine: " in read.text
    assert "# dropped: spdk_conf=./x.conf   (" in read.text


@every_row("engine", ["dirdelete", "cpuio", "net"])
def test_an_engine_that_nothing_can_stand_for_is_not_replaced(engine: str) -> None:
    text = f"[a]\nioengine={engine}\nrw=read\nsize=1m\n"
    (error,) = import_text(text, variables={}, size=None, where="f", include={}.get, engine="libaio").problems
    assert error.what == "not an engine that reads and writes files on Linux"
    assert error.next_step == "leave the job out: no other engine can stand for it"


def test_included_files_are_written_in_the_place_of_their_names() -> None:
    read = imported("[a]\ninclude more.fio\nrw=read\n", include={"more.fio": "size=3m\nbs=8k"})
    assert (read.jobs[0].options["size"], read.jobs[0].options["bs"]) == (3 * MIB, 8 * KIB)
    (error,) = imported("[a]\ninclude gone.fio\nrw=read\n").problems
    assert (error.where, error.got) == ("my.fio, line 2", "include gone.fio")


def test_what_cannot_be_mended_is_marked_in_the_text() -> None:
    read = imported("[a]\nrw=read\nopendir=/x\nsize=1m\n")
    assert [error.where for error in read.problems] == ["my.fio, line 3"]
    assert "# refused: fio's option opendir is not for a job file to set; allowed: " in read.text


def test_a_scheduler_for_all_jobs_is_dropped_with_its_effect_and_several_are_not_taken_for_one() -> None:
    text = "[global]\nrw=read\nsize=1m\nioscheduler=none\n[a]\n[b]\nstonewall\nioscheduler={}\n"
    read = imported(text.format("none"))
    assert read.problems == ()
    dropped = "# dropped: ioscheduler=none   (the device of the box keeps its scheduler, which the report names"
    assert read.text.count(dropped) == 2
    assert [error.got for error in imported(text.format("bfq")).problems] == ["ioscheduler=none", "ioscheduler=bfq"]
    (error,) = read_jobs(workload("[a]\nrw=read\nsize=1m\nioscheduler=none\n").options).problems
    assert "import-job FILE` writes a sweep without it" in error.next_step


@pytest.mark.requires_program("fio")
def test_fio_takes_the_same_options_from_the_file_and_from_what_is_written(tmp_path: Path) -> None:
    """By fio's own words (--showcmd): only what the comments name is another."""
    text = DEVICE.replace("${DEPTH}", "8").replace("ioengine=aio", "ioengine=libaio").replace("readwrite", "rw")
    (tmp_path / "old.fio").write_text(text.replace("name=bench", ""))
    (tmp_path / "new.fio").write_text(imported(text).text)

    def given_by(name: str) -> set[str]:
        shown = subprocess.run(["fio", "--showcmd", tmp_path / name], capture_output=True, text=True, check=True)
        return {*re.split(" +(?=--)", shown.stdout.strip())}

    old, new = given_by("old.fio"), given_by("new.fio")
    assert old - new == {
        "--name=rand read 4k", "--filename=/dev/nvme0n1", "--time_based=600", "--group_reporting", "--bs=4k-1m",
        "--stonewall", "--write_bw_log=/tmp/bw", "--exec_prerun=echo 3 > /proc/sys/vm/drop_caches",
    }  # fmt: skip
    assert new - old == {
        "--name=rand-read-4k", "--filename=nvme0n1", "--time_based=1", "--stonewall=1", "--bs=4096,1048576,1048576",
        f"--size={USUAL_SIZE}", "--refill_buffers=1",
    }  # fmt: skip
