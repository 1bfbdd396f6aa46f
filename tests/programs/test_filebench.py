"""filebench: the workloads that we write, the texts that we refuse, and what is and is not believed of its reports."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from facts import known
from hypothesis import given
from hypothesis import strategies as st
from mountlab.box.facts import gather_script
from mountlab.core.errors import MountlabError, ParameterError, ParseError, PlanError, ToolError, TrialError
from mountlab.core.model import Workload
from mountlab.core.options import read_value
from mountlab.core.units import GIB, KIB, MIB
from mountlab.programs import wml
from mountlab.programs.filebench import Filebench, read_report
from mountlab.results.paths import load_box, load_sweep
from mountlab.sweep.feasible import check_feasible
from mountlab.sweep.sweep_file import resolve
from mountlab.tools.base import ToolOutput
from rows import every_row

DATA = Path(__file__).parents[1] / "data" / "filebench"
TOOL = Filebench()
OWN = """
# Two threads, one file set.
set $dir=/tmp
set $nthreads=2
define fileset name=tree,path=$dir,size=16k,entries=100,prealloc=100
define process name=reader,instances=1 {
  thread name=worker,memsize=2m,instances=$nthreads {
    flowop openfile name=open-it,filesetname=tree,fd=1
    flowop readwholefile name=read-it,fd=1,
        iosize=1m
    flowop closefile name=close-it,fd=1
  }
}
echo "a message / with * what it likes"
run 7
"""
SMALL: dict[str, Any] = {
    "nfiles": 2000, "filesize": "8KiB", "threads": 4, "appendsize": "4KiB", "iosize": "8KiB", "writers": 2, "burst": 64,
    "rate": 50, "runtime": "1s",
}  # fmt: skip
_FILE, _APPEND = {"filesize": "16MiB"}, {"filesize": "400MiB", "iosize": "4KiB"}
_MANY, _DIRS = {"nfiles": 60_000, "filesize": "1KiB"}, {"nfiles": 100_000}
RECORDED: dict[str, dict[str, Any]] = {
    "oltp": {"nfiles": 4, "filesize": "1MiB"}, "videoserver": {"nfiles": 4},
    "seqread": _FILE, "rread": _FILE, "rwrite": _FILE, "rwritedsync": _FILE, "rwritefsync": _FILE,
    "seqwrite": _APPEND, "writefsync": _APPEND, "createfiles": _MANY, "delete": _MANY, "copyfiles": _MANY,
    "makedirs": _DIRS, "removedirs": _DIRS,
}  # fmt: skip
"""What each recording was asked, beside SMALL."""


def workload(**options: Any) -> Workload:
    entry = {"tool": "filebench", **options}
    raw = {"name": "s", "question": "?", "filesystems": {"d": {"type": "dir"}}, "workloads": {"w": entry}}
    return resolve(raw, where="tests").sweep.workloads[0]


def recorded_workload(name: str) -> Workload:
    takes = wml.takes(name)
    options = {**SMALL, **RECORDED.get(name, {})}
    return workload(
        workload=name, **{key: value for key, value in options.items() if key in takes and wanted(name, key)}
    )


def wanted(name: str, key: str) -> bool:
    return bool(wml.RECIPES[name].defaults.get(key, 1))


def said(stdout: str, *, exit_status: int = 0, stderr: str = "") -> ToolOutput:
    return ToolOutput(exit_status=exit_status, stdout=stdout, stderr=stderr, files={"settled": "settled\n"})


def recording(name: str) -> str:
    return (DATA / f"{name}.stdout").read_text()


def sample(name: str) -> str:
    return (DATA / "samples" / f"{name}.stdout").read_text()


def refused(**options: Any) -> ParameterError:
    with pytest.raises(ParameterError) as caught:
        workload(**options)
    return caught.value


# --- the text of a workload -------------------------------------------------------------------------------------------


def test_the_whole_text_of_a_small_workload() -> None:
    command = TOOL.command(
        workload(workload="seqread", filesize="16MiB", runtime="5s", cache="cold"), "/m/t1", "/out/t1"
    )
    assert command.files["/out/t1/mountlab.f"] == (
        "set $dir=/m/t1\n"
        "define fileset name=tree,path=$dir,size=16777216,entries=1,dirwidth=20,prealloc=100\n"
        "define process name=mountlab,instances=1\n"
        "{\n"
        "  thread name=mountlab-thread,memsize=2097152,instances=1\n"
        "  {\n"
        "    flowop read name=read-block,filesetname=tree,iosize=1048576,directio=0\n"
        "  }\n"
        "}\n"
        "create files\n"
        'system "sh /out/t1/settle.sh cold /m/t1"\n'
        "run 5\n"
    )
    assert command.argv == ("sh", "/out/t1/filebench.sh", "filebench", "-f", "/out/t1/mountlab.f")
    assert "setarch" in command.files["/out/t1/filebench.sh"]


@every_row("name", wml.RECIPES)
def test_every_workload_stays_in_our_directory_and_is_whole(name: str) -> None:
    text = TOOL.command(workload(workload=name), "/m/t1", "/out").files["/out/mountlab.f"]
    assert text.startswith("set $dir=/m/t1\n")
    assert set(re.findall(r"path=([^,]+)", text)) == {"$dir"}
    assert set(re.findall(r"/\S*", text)) == {"/m/t1", "/out/settle.sh", '/m/t1"'}
    assert text.count("{") == text.count("}")
    assert re.search(r"\nrun( 60)?\n\Z", text)
    body = text.split("create files")[0].split("\n", 1)[1]
    assert wml.read_text(body, where="w") == body.strip()
    assert wml.is_fixed_work(text) == text.endswith("\nrun\n") == bool(wml.RECIPES[name].ends)
    sets, used = set(re.findall(r"fileset name=(\w+)", text)), set(re.findall(r"filesetname=(\w+)", text))
    assert sets == used


@every_row("name", wml.RECIPES)
def test_an_option_that_a_workload_would_not_heed_is_refused(name: str) -> None:
    kinds = {key: option.kind for key, option in Filebench.options.items()}
    values = {"size": "3MiB", "int": 3, "duration": "5s", "choice": "fixed", "flag": True}
    before = wml.generate(name, {})
    for key in sorted(kinds.keys() - {"workload", "wml", "installed", "space", "cache"}):
        if key not in wml.takes(name):
            assert refused(workload=name, **{key: values[kinds[key]]}).what == f"unknown option of filebench's {name}"
        elif key not in ("runtime", "sizes"):
            value = int(read_value(values[kinds[key]], Filebench.options[key], where="w").value)
            assert wml.generate(name, {key: value}) != before, key


def test_what_the_plan_must_know() -> None:
    own = workload(workload="fileserver", runtime="10s")
    # 10,000 files of 128 KiB and what is appended to them, and never so much that nothing would hold it.
    assert 10_000 * 144 * KIB < TOOL.space_bytes(own) < 2 * GIB
    assert TOOL.space_bytes(workload(workload="oltp", nfiles=4, filesize="1MiB")) > 5 * MIB
    assert TOOL.space_bytes(workload(workload="copyfiles")) > 2 * 1000 * 16 * KIB
    assert TOOL.expected_s(own) > 10
    assert (TOOL.main_metrics(own), TOOL.main_metrics(workload(workload="createfiles"))) == (
        ("operation_rate",),
        ("operation_latency",),
    )


@every_row(
    ("options", "what", "where"),
    [
        ({"workload": "nonesuch"}, "wrong value for an option", "workload"),
        ({"workload": "seqread", "installed": "fileserver"}, "filebench needs one workload", "workload"),
        ({"workload": "seqread", "runtime": "1500ms"}, "filebench counts whole seconds", "runtime"),
        ({"workload": "seqread", "filesize": "0B"}, "filebench would do nothing", "filesize"),
        ({"workload": "fileserver", "threads": 0}, "filebench would do nothing", "threads"),
        ({"workload": "fileserver", "prealloc": 101}, "more files than there are", "prealloc"),
        ({"workload": "fileserver", "dirwidth": 1}, "a directory needs room", "dirwidth"),
        ({"workload": "rwrite", "cache": "warm"}, "a write has no file to fill the page cache with", "cache"),
        ({"installed": "fileserver"}, "how much space the workload takes is not known", "space"),
        ({"installed": "../x", "space": "1GiB"}, "not the name of a workload", "installed"),
        ({"installed": "x", "space": "1GiB", "nfiles": 3}, "nfiles is for workloads of Mountlab's own", "nfiles"),
        ({"wml": OWN, "space": "1GiB", "runtime": "5s"}, "two run times", "runtime"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: dict[str, Any], what: str, where: str) -> None:
    error = refused(**options)
    assert error.what == what
    assert error.where.endswith(f".{where}")
    assert error.allowed


# --- a user's own text ------------------------------------------------------------------------------------------------


def test_of_a_user_s_text_the_directory_and_the_run_line_are_ours() -> None:
    own = workload(wml=OWN, space="16MiB")
    text = TOOL.command(own, "/m/t1", "/out").files["/out/mountlab.f"]
    assert "/tmp" not in text
    assert "a message" not in text
    assert text.startswith("set $dir=/m/t1\nset $nthreads=2\n")
    assert text.endswith('create files\nsystem "sh /out/settle.sh as_is /m/t1"\nrun 7\n')
    assert wml.kinds(OWN) == {"open-it": "openfile", "read-it": "readwholefile", "close-it": "closefile"}
    assert TOOL.space_bytes(own) == 16 * MIB


@every_row(
    ("run", "seconds"),
    [("run 7", 7), ("set $t=9\nrun $t", 9), ("", 60), ("run", 60), ("run $unknown", 60), ("# run 5", 60)],
)
def test_how_long_a_user_s_text_runs(run: str, seconds: int) -> None:
    own = workload(wml=OWN.replace("run 7", run), space="16MiB")
    assert TOOL.command(own, "/m/t1", "/out").files["/out/mountlab.f"].endswith(f"\nrun {seconds}\n")


@every_row(
    ("line", "what"),
    [
        ("define fileset name=x,path=/etc,size=1k,entries=1", "a workload may name no path"),
        ("define fileset name=x,path=other,size=1k,entries=1", "files must be made in our directory"),
        ("define fileset name=x,path =$dir,size=1k,entries=1", "$dir stands for our directory"),
        ("define fileset name=x,path=$dirs,size=1k,entries=1", "files must be made in our directory"),
        ("define fileset name=x,path=$other,size=1k,entries=1", "files must be made in our directory"),
        ("define fileset name=..,path=$dir,size=1k,entries=1", "dots are no name"),
        ("define fileset name=.,path=$dir,size=1k,entries=1", "dots are no name"),
        ("define fileset name=a;reboot,path=$dir,size=1k,entries=1", "hold only plain characters"),
        ("define fileset name=a*,path=$dir,size=1k,entries=1", "hold only plain characters"),
        ('define fileset name="a b",path=$dir,size=1k,entries=1', "hold only plain characters"),
        ("define fileset name=`id`,path=$dir,size=1k,entries=1", "hold only plain characters"),
        ("define fileset name=~,path=$dir,size=1k,entries=1", "hold only plain characters"),
        ('system "rm -rf ~"', "hold only plain characters"),
        ("system rm", "`system` is not for a workload to use"),
        ("set $x=1 system rm", "`system` is not for a workload to use"),
        ("psrun -5 60", "`psrun` is not for a workload to use"),
        ("set $x=1 run 5", "`run` is not for a workload to use"),
        ("quit", "`quit` is not for a workload to use"),
        ("enable multi", "`enable` is not for a workload to use"),
        ("set $x=$dir", "$dir stands for our directory"),
        ("set $x=1 set $dir=x", "$dir stands for our directory"),
        ('echo "x\n; reboot"', "hold only plain characters"),
    ],
)
def test_a_text_that_could_reach_beyond_our_directory_is_refused(line: str, what: str) -> None:
    """Trap: filebench runs an unquoted `rm -rf` of each path."""
    error = refused(wml=f"{OWN}\n{line}\n", space="1GiB")
    assert what in error.what
    assert error.where.endswith(".wml")
    assert error.got


def test_a_text_that_does_nothing_is_refused() -> None:
    assert refused(wml="set $nfiles=5\n# flowop read name=x\nrun 5", space="1GiB").what == "the workload does nothing"


def test_random_sizes_by_a_custom_variable_are_allowed() -> None:
    line = "set $size=cvar(type=cvar-gamma,parameters=mean:16384;gamma:1.5)"
    assert line in wml.read_text(f"{line}\n{OWN}", where="w")


def test_an_installed_workload_is_made_ready_on_the_box() -> None:
    command = TOOL.command(workload(installed="fileserver", space="2GiB", runtime="30s"), "/m/t1", "/out")
    assert command.prepare == (
        ("sh", "/out/installed.sh", "fileserver", "/m/t1", "sh /out/settle.sh as_is /m/t1", "30", "/out/mountlab.f"),
    )
    assert set(command.files) == {"/out/filebench.sh", "/out/settle.sh", "/out/installed.sh"}


# --- reports ----------------------------------------------------------------------------------------------------------


@every_row("name", wml.RECIPES)
def test_every_recording_is_read_as_what_it_was_asked(name: str) -> None:
    own = recorded_workload(name)
    rows = TOOL.parse(own, said(recording(name)))
    labels = {row.label for row in rows if row.metric == "operations"}
    assert labels == {"", *wml.kinds(wml.generate(name, {}))}
    rates = [row for row in rows if row.metric == "operation_rate"]
    assert bool(rates) == (not wml.RECIPES[name].ends)
    assert {row.metric for row in rows} >= {"elapsed", "operations", *TOOL.main_metrics(own)}
    assert all(row.value > 0 for row in rows if row.metric != "operations")
    sides = {row.label for row in rows if row.metric == "bytes"}
    kinds = {*wml.kinds(wml.generate(name, {})).values()}
    # The one video that is written in a second is 8 KiB: below the last digit of its bandwidth.
    assert sides == {
        side
        for side, of_side in (("read", wml.READS), ("write", wml.WRITES))
        if kinds & of_side and (name, side) != ("videoserver", "write")
    }


def test_work_that_ends_by_itself_gives_no_rate() -> None:
    """Trap: filebench looks once a second whether the work is done: 0.2 s of it count as 1 s."""
    rows = TOOL.parse(recorded_workload("delete"), said(recording("delete")))
    assert not {"operation_rate", "bandwidth"} & {row.metric for row in rows}


def test_work_of_which_filebench_missed_the_beginning_is_refused() -> None:
    """Trap: its clock starts after its threads: of 200 files that were created, 29 were counted."""
    own = workload(workload="delete", nfiles=120_000, filesize="1KiB", threads=4)
    with pytest.raises(ToolError, match="counted only the end of its work") as caught:
        TOOL.parse(own, said(recording("delete")))
    assert caught.value.allowed == "90% of 120000 or more"


@every_row(
    ("old", "new", "what"),
    [
        ("append ", "appended ", "filebench did not report what was asked"),
        ("IO Summary: ", "IO Summary: 9", "count and rate do not agree"),
        ("Run took 1 seconds", "Run took 0 seconds", "filebench stopped early"),
        ("Run took", "Run look", "filebench's report is not whole"),
        ("ms/op", "us/op", "cannot be read"),
        ("Per-Operation Breakdown", "Per-Operation", "not that of one run"),
        ("IO Summary:", "NO VALID RESULTS! IO Summary:", "filebench's run failed"),
    ],
)
def test_a_report_that_is_not_that_of_the_workload_is_refused(old: str, new: str, what: str) -> None:
    text = recording("fileserver")
    assert old in text
    with pytest.raises(TrialError, match=what):
        TOOL.parse(recorded_workload("fileserver"), said(text.replace(old, new)))


def test_a_line_too_few_is_seen_also_where_the_operations_are_not_known() -> None:
    lines = sample("fileserver").splitlines(keepends=True)
    cut = "".join(line for line in lines if not line.startswith("createfile1"))
    with pytest.raises(ParseError, match="lines and its summary do not agree"):
        TOOL.parse(workload(installed="fileserver", space="1GiB", runtime="6s"), said(cut))


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [("5892.3mb/s    0.005ms/op [", "5892mb/s    0.005ms/op [", 16), ("wr 5892.3mb/s", "wr 5892mb/s", 17)],
)
def test_a_bandwidth_without_its_decimal_is_refused(old: str, new: str, line: int) -> None:
    """filebench always prints one: a bandwidth without was torn."""
    text = recording("rwritefsync")
    assert text.count(old) == 1
    with pytest.raises(ParseError, match="a line of filebench's report cannot be read") as caught:
        read_report(text.replace(old, new))
    assert caught.value.where == f"line {line}"


def test_two_reports_in_one_output_are_refused() -> None:
    with pytest.raises(ParseError, match="not that of one run") as caught:
        TOOL.parse(recorded_workload("fileserver"), said(2 * recording("fileserver")))
    assert caught.value.got == "2 breakdowns, 2 summaries"


def test_files_that_ran_out_are_told_with_the_remedy() -> None:
    """Such a run exits with 0."""
    warning = "1.634: WARNING! Run stopped early:\n    flowop create-file-1 could not obtain a file. Please\n"
    with pytest.raises(ToolError, match="filebench ran out of files: give more nfiles"):
        TOOL.parse(recorded_workload("fileserver"), said("Filebench Version 1.5-alpha3\nRunning...\n", stderr=warning))


def test_figures_of_files_that_were_not_flushed_are_refused() -> None:
    output = ToolOutput(exit_status=0, stdout=recording("fileserver"), stderr="", files={})
    with pytest.raises(ToolError, match="without its files being flushed"):
        TOOL.parse(recorded_workload("fileserver"), output)


def test_a_report_cut_anywhere_gives_the_true_figures_or_none() -> None:
    whole = recording("oltp")
    own = recorded_workload("oltp")
    true = TOOL.parse(own, said(whole))
    for end in range(len(whole)):
        try:
            rows = TOOL.parse(own, said(whole[:end]))
        except TrialError:
            continue
        assert rows == true


@given(st.text(alphabet="0123456789.: ops/mbrdwIOSumary[]-\n", max_size=300))
def test_no_text_gives_anything_but_figures_above_zero_or_a_documented_error(text: str) -> None:
    head = "Filebench Version 1.5\nRun took 5 seconds...\nPer-Operation Breakdown\n"
    try:
        report = read_report(head + text + "\n1.000: IO Summary: 5 ops 1.000 ops/s 1/0 rd/wr 0.0mb/s 0.1ms/op\n")
    except MountlabError:
        return
    assert all(row.count >= 0 and 0 <= row.rate < float("inf") for row in report.operations)


def coarse(text: str) -> str:
    """As the release 1.5-alpha3 prints it: latencies in tenths of milliseconds."""
    return re.sub(r"(\d+\.\d)\d\dms/op", r"\1ms/op", text)


def test_the_mean_latency_of_the_release_is_not_believed() -> None:
    """It divides the time of all operations by the number of reads and writes."""
    own = recorded_workload("varmail")
    rows = {(row.metric, row.label): row.value for row in TOOL.parse(own, said(recording("varmail")))}
    release = {(row.metric, row.label): row.value for row in TOOL.parse(own, said(coarse(recording("varmail"))))}
    assert rows["operation_latency", ""] > 0
    assert ("operation_latency", "") not in release
    assert release["operation_rate", ""] == rows["operation_rate", ""]


def test_work_of_a_fixed_amount_has_no_answer_from_the_release() -> None:
    own = recorded_workload("delete")
    with pytest.raises(ToolError, match="no mean latency that can be believed") as caught:
        TOOL.parse(own, said(coarse(recording("delete"))))
    assert "master branch" in caught.value.next_step


# --- the program ------------------------------------------------------------------------------------------------------


def test_its_version_is_asked_where_it_tells_it() -> None:
    """`filebench -h` begins with its usage; the version is on a later line."""
    assert "grep -m 1 -- version" in gather_script((), TOOL.programs[:1])


def test_a_box_without_it_refuses_the_sweep_with_how_to_get_it() -> None:
    raw = {
        "name": "s", "question": "?", "filesystems": {"d": {"type": "dir"}},
        "workloads": {"w": {"tool": "filebench", "workload": "seqread"}},
    }  # fmt: skip
    has = {name: {"path": f"/usr/bin/{name}", "version": "1"} for name in ("tar", "awk", "find", "setarch")}
    facts = known(rights="root", user="root", programs=has, package_manager="apt")
    with pytest.raises(PlanError, match="the box lacks filebench") as caught:
        check_feasible(resolve(raw, where="tests").sweep, load_box("local"), facts)
    assert caught.value.next_step.startswith("filebench is not packaged here: build the master branch")
    assert "box prepare" not in caught.value.next_step


def test_a_text_of_the_user_s_own_may_stand_in_a_file_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "own.f").write_text(OWN)
    entry = "{tool: filebench, wml_file: own.f, runtime: 7s, space: 100MiB}"
    (tmp_path / "s.yml").write_text(f"{{question: Q, filesystems: {{d: {{type: dir}}}}, workloads: {{w: {entry}}}}}")
    read = load_sweep(tmp_path / "s.yml")
    assert read.parameters["workloads"]["w"]["wml"] == OWN
    assert read.sweep.workloads == resolve(read.parameters, where="run.json").sweep.workloads


PLAIN = """set $dir=/x
set $directio=1
set $size=4k
set $n = ($size * 3) / 2 + 1
define fileset name=t,path=$dir,size=$size,entries=10
define process name=p,instances=1 { thread name=t,memsize=10m,instances=1 {
  flowop write name=w,filesetname=t,directio=$directio,iosize=$n } }
"""


def test_a_variable_whose_name_begins_with_dir_is_another_variable() -> None:
    text = wml.read_text(PLAIN, where="w")
    assert "set $directio=1" in text
    assert "directio=$directio" in text


def test_sums_in_set_are_computed_since_filebench_1_5_takes_none() -> None:
    assert "set $n=6145\n" in wml.read_text(PLAIN, where="w")


@every_row(
    ("value", "got"), [("$none * 2", "$none"), ("$size / 0", "division"), ("4k - 8k", "-4096"), ("4k *", "syntax")]
)
def test_a_sum_without_a_value_is_refused(value: str, got: str) -> None:
    with pytest.raises(ParameterError) as caught:
        wml.read_text(PLAIN.replace("($size * 3) / 2 + 1", value), where="w")
    assert caught.value.what == "a sum in `set` has no value"
    assert got in caught.value.got
