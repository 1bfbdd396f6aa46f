"""fs_mark: its command for each option, its limits, and every recording read as a careful person reads it."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mountlab.core.errors import ParameterError, ParseError, ToolError, TrialError
from mountlab.core.model import Measurement, Workload
from mountlab.logs import read_log
from mountlab.programs import TOOLS
from mountlab.programs.fs_mark import measurements, read_report
from mountlab.sweep.sweep_file import resolve
from mountlab.tools.base import ToolOutput
from rows import every_row

DATA = Path(__file__).parents[1] / "data" / "fs_mark"
FS_MARK = TOOLS["fs_mark"]
READABLE = sorted(
    path.name for path in DATA.glob("*.stdout") if path.name not in ("bad-option.stdout", "no-space.stdout")
)


def workload(**options: Any) -> Workload:
    entry = {"tool": "fs_mark", "count": 10, "file_size": "4KiB", **options}
    entry = {key: value for key, value in entry.items() if value is not None}
    raw = {"name": "s", "question": "?", "filesystems": {"d": {"type": "dir"}}, "workloads": {"w": entry}}
    return resolve(raw, where="s.yml").sweep.workloads[0]


def text(name: str) -> str:
    return (DATA / name).read_text()


def values(rows: list[Measurement]) -> dict[str, float]:
    return {f"{row.metric} {row.label}".strip(): row.value for row in rows}


def parse(stdout: str, *, exit_status: int = 0, **options: Any) -> dict[str, float]:
    output = ToolOutput(exit_status=exit_status, stdout=stdout, stderr="", files={})
    return values(FS_MARK.parse(workload(**options), output))


# --- the command ------------------------------------------------------------------------------------------------------


def test_it_is_started_inside_of_its_directory() -> None:
    """fs_mark of Debian refuses the name of a directory of 40 bytes or more."""
    command = FS_MARK.command(workload(), "/m/t1", "/o/t1")
    assert command.argv[:5] == ("sh", "-c", 'cd "$1" && shift && exec "$@"', "inside", "/m/t1")
    words = "fs_mark -d . -l /o/t1/fs_log.txt -n 10 -s 4096 -S 1 -t 1 -w 16384 -p 40 -r 24 -L 1"
    assert " ".join(command.argv[5:]) == words, "other options: GOLDEN of the conformance"


@every_row(
    ("options", "blocks"),
    [
        ({"file_size": "1B"}, 10), ({"file_size": "4097B"}, 20), ({"file_size": "0B"}, 10), ({"threads": 3}, 30),
        ({"loops": 5, "threads": 2}, 100),
    ],
)  # fmt: skip
def test_files_take_whole_blocks_for_every_thread_and_loop(options: dict[str, Any], blocks: int) -> None:
    assert FS_MARK.space_bytes(workload(**options)) == blocks * 4096


def test_flushed_files_are_guessed_to_take_longer() -> None:
    assert FS_MARK.expected_s(workload(count=1000)) > FS_MARK.expected_s(workload(count=1000, sync="none"))


@every_row(
    ("options", "key"),
    [
        ({"count": 0}, "count"),
        ({"count": 1_000_001}, "count"),
        ({"loops": 0}, "loops"),
        ({"threads": 65}, "threads"),
        ({"write_size": "0B"}, "write_size"),
        ({"write_size": "2MiB"}, "write_size"),
        ({"file_size": "2GiB"}, "file_size"),
        ({"name_length": 128}, "name_length"),
        ({"random_length": 7}, "random_length"),
        ({"name_length": 20, "random_length": 21}, "random_length"),
        ({"keep_files": False, "loops": 2}, "keep_files"),
        ({"directories": 10}, "files_per_directory"),
        ({"files_per_directory": 10}, "directories"),
        ({"directories": 1, "files_per_directory": 1}, "directories"),
        ({"directories": 2, "files_per_directory": 0}, "files_per_directory"),
        ({"cache": "warm"}, "cache"),
        ({"n": 10}, "n"),
        ({"d": "/etc"}, "d"),
        ({"F": True}, "F"),
        ({"l": "x"}, "l"),
        ({"sync": 1}, "sync"),
        ({"count": None}, "count"),
        ({"file_size": None}, "file_size"),
    ],
)
def test_what_fs_mark_cannot_do_is_refused_before_it_runs(options: dict[str, Any], key: str) -> None:
    with pytest.raises(ParameterError) as caught:
        workload(**options)
    assert caught.value.where == f"s.yml: workloads.w.{key}"
    assert caught.value.allowed


# --- recordings -------------------------------------------------------------------------------------------------------


def test_a_flush_after_all_files_is_told_apart_from_one_before_each_is_closed() -> None:
    found = values(measurements(read_report(text("v-S4-L3-ext4.stdout"))))
    assert found["operation_latency reopen+fsync+close"] == pytest.approx((146 + 97 + 87) / 3 * 1e-6)
    assert found["operation_latency sync"] == pytest.approx((4438 + 9118 + 2596) / 3 * 1e-6)
    extremes = [found[f"operation_latency_{kind} reopen+fsync+close"] for kind in ("min", "max")]
    assert extremes == [53e-6, 2092e-6], "of all iterations"
    assert "operation_latency fsync" not in found
    assert "operation_latency_min sync" not in found


def test_the_one_flush_after_sync_is_not_divided_by_all_files() -> None:
    found = values(measurements(read_report(text("v-S2-ext4.stdout"))))
    assert found["operation_latency sync"] == 2847e-6
    assert not [key for key in found if "fsync" in key]


def test_files_that_are_not_kept_are_unlinked_and_that_is_timed() -> None:
    found = values(measurements(read_report(text("v-unlinked-tmpfs.stdout"))))
    assert found["operation_latency unlink"] == 5e-6
    assert "operation_latency close" not in found  # less than a microsecond


def test_empty_files_have_no_bytes() -> None:
    assert "bytes write" not in values(measurements(read_report(text("v-S1-dirs-tmpfs.stdout"))))


def test_what_was_asked_is_held_against_what_it_says() -> None:
    options: dict[str, Any] = {
        "count": 50, "file_size": "20000B", "sync": "sync_post_reverse", "threads": 2, "write_size": "4KiB",
        "loops": 3, "call_times": True,
    }  # fmt: skip
    assert parse(text("v-S4-L3-ext4.stdout"), **options)["file_rate"] > 0
    for change in (
        {"count": 51},
        {"file_size": "19999B"},
        {"sync": "fsync"},
        {"threads": 3},
        {"write_size": "8KiB"},
        {"loops": 2},
        {"call_times": False},
        {"name_length": 41},
        {"random_length": 23},
        {"directories": 2, "files_per_directory": 1},
    ):
        with pytest.raises(ToolError, match="fs_mark did not run what was asked"):
            parse(text("v-S4-L3-ext4.stdout"), **{**options, **change})


def test_out_of_space_is_the_reason_and_no_figure() -> None:
    """Trap: an output of a full file system is never ok, whatever the exit status."""
    with pytest.raises(ToolError, match="Insufficient free space in /srv/bench/mnt/t/h") as caught:
        read_report(text("no-space.stdout"))
    assert caught.value.what == "fs_mark did not finish"
    with pytest.raises(ToolError, match="exit status 1"):
        parse(text("no-space.stdout"), exit_status=1)


def test_a_refused_option_is_told_without_the_usage() -> None:
    with pytest.raises(ToolError) as caught:
        read_report(text("bad-option.stdout"))
    assert caught.value.evidence == "Max filename size is 128"


def test_several_runs_of_one_log_file_are_read_in_order_and_are_no_report() -> None:
    first, second = (output.measurements for output in read_log("fs_mark", text("two-runs.log")))
    rates = {row.label: row.value for row in first if row.metric == "file_rate"}
    assert (rates["iteration 1"], rates["iteration 2"]) == (39682.5, 24242.4)
    (most,) = (row.value for row in second if (row.metric, row.label) == ("operation_latency_max", "creat"))
    assert most == pytest.approx(35e-6)
    with pytest.raises(ParseError, match="2 runs"):
        read_report(text("two-runs.log"))


NEWER = "Average Files/sec:       4721.0\np50 Files/sec: 4695\np90 Files/sec: 4695\np99 Files/sec: 4695\n"


def test_the_summary_of_newer_versions_is_no_row() -> None:
    assert read_report(text("S1-L2.stdout") + NEWER) == read_report(text("S1-L2.stdout"))


@every_row(
    ("change", "reason"),
    [
        (("4747.1", "inf"), "cannot be read"),
        (("4747.1", "0.0"), "cannot be read"),
        (("4747.1", "-1.0"), "cannot be read"),
        (("4747.1", "nan"), "cannot be read"),
        (("    69          400", "    69          300"), "did not make the files"),
        (("    69          400", "fopen failed to open: x"), "did not finish"),
        (("-L  2", "-L  3"), "stopped early"),
        (("-n  200", "-n  2x0"), "without a number"),
        (("1036", "1036 7"), "cannot be read"),
        (("FSUse%", "FS%"), "header is not whole"),
        (("Version", "Release"), "header is not whole"),
        (("    69          400         4096       4747.1             1036\n", ""), "stopped early"),
        (
            (
                "    69          200         4096       4695.6             1017\n"
                "    69          400         4096       4747.1             1036\n",
                "",
            ),
            "printed no figure",
        ),
    ],
)
def test_a_damaged_output_gives_no_figure(change: tuple[str, str], reason: str) -> None:
    damaged = text("S1-L2.stdout").replace(*change)
    assert damaged != text("S1-L2.stdout")
    with pytest.raises(TrialError, match=reason):
        read_report(damaged)


# --- properties -------------------------------------------------------------------------------------------------------


@every_row("name", READABLE)
def test_no_beginning_of_an_output_gives_another_figure(name: str) -> None:
    """Trap: a number from a half-written output. Every cut, byte by byte."""
    whole = text(name)
    known = read_report(whole)
    for end in range(len(whole)):
        found = known
        with suppress(TrialError):
            found = read_report(whole[:end])
        assert found == known


def test_a_header_that_was_folded_before_its_options_is_held_against_the_defaults_of_fs_mark() -> None:
    """Trap: a terminal folds the line behind the program's name, which leaves a header without a single word."""
    folded = text("S0-t4.stdout").replace("fs_mark  -n", "fs_mark  \n-n", 1)
    assert read_report(folded).options == {}
    with pytest.raises(ToolError, match="did not make the files that were asked"):
        read_report(folded.replace("         4000 ", "         8000 "))


@given(
    st.sampled_from(READABLE),
    st.integers(0, 3000),
    st.integers(0, 40),
    st.text(alphabet="0123456789.- \n\tx%#-nan", max_size=8),
)
def test_a_damaged_output_gives_a_documented_error_or_figures_that_can_be(
    name: str, at: int, cut: int, put: str
) -> None:
    whole = text(name)
    at %= len(whole)
    rows: list[Measurement] = []
    with suppress(TrialError):
        rows = measurements(read_report(whole[:at] + put + whole[at + cut :]))
    assert all(0 <= row.value < float("inf") for row in rows)
    assert all(row.value > 0 for row in rows if row.unit != "1")


@pytest.mark.parametrize(("name", "end"), [("S0-t4.stdout", "17394"), ("verbose.stdout", "     0")])
def test_a_row_that_was_cut_off_is_refused_also_where_another_log_follows(name: str, end: str) -> None:
    """Trap: a number that was cut off is another number, and the next log brings the end of the line."""
    whole = text(name)
    row = next(line for line in whole.split("\n") if line.endswith(end) and line.startswith("    69"))
    longer = row[:-5] + "17394"  # in the last column, so that what is left is a number
    torn = whole[: whole.index(row)] + longer[:-2] + "\n" + text("S1-L2.stdout")
    problem = read_log("fs_mark", torn)[0].problem
    assert problem is not None
    assert (problem.what, problem.got) == ("a row of fs_mark's table cannot be read", longer[:-2][:200])
    assert "each column in its full width" in problem.allowed


@pytest.mark.parametrize(
    ("old", "new"),
    [("13      177     3780", "13      177       37"), ("149      547     8634", "8649      547     8634")],
)
def test_call_times_that_do_not_agree_are_refused(old: str, new: str) -> None:
    whole = text("verbose.stdout")
    assert whole.count(old) == 1
    with pytest.raises(ParseError, match=r"fs_mark's times of (creat|fsync) do not agree") as caught:
        read_report(whole.replace(old, new))
    assert caught.value.where == "line 12"


def test_a_row_of_other_files_than_its_header_is_refused() -> None:
    whole = text("S1-L2.stdout")
    for changed in (whole.replace("-s  4096", "-s  8192"), whole.replace("400         4096", "400         4069")):
        with pytest.raises(ParseError, match="fs_mark's table and its header do not agree") as caught:
            read_report(changed)
        assert (caught.value.where, caught.value.got) in [
            ("iteration 1", "files of 4096 B"),
            ("iteration 2", "files of 4069 B"),
        ]


@given(st.text())
def test_any_other_text_is_an_error(noise: str) -> None:
    with pytest.raises(TrialError):
        read_report(noise)


@given(st.lists(st.integers(1, 10**7), min_size=1, max_size=6), st.integers(1, 64))
def test_the_whole_lies_between_its_iterations(tenths: list[int], threads: int) -> None:
    rows = [
        f"    1 {10 * threads * i:12} {4096:12} {rate / 10:12.1f} {5:16}\n" for i, rate in enumerate(tenths, start=1)
    ]
    head = re.sub(r"-n  \d+(.*)-L  \d+", rf"-n  10\1-L  {len(rows)}", text("S1-L2.stdout").split("    69")[0])
    head = head.replace("1 thread(s)", f"{threads} thread(s)")
    found = values(measurements(read_report(head + "".join(rows))))
    assert min(tenths) / 10 * 0.999999 <= found["file_rate"] <= max(tenths) / 10 * 1.000001


def test_a_failure_says_why_and_not_only_what_came_of_it() -> None:
    """With too little room it says so on stdout, and on stderr that the log of its child is not there."""
    stdout, came = text("no-space.stdout").rstrip().rsplit("\n", 1)
    output = ToolOutput(exit_status=1, stdout=f"{stdout}\n", stderr=f"{came}\n", files={})
    with pytest.raises(ToolError, match="fs_mark failed with exit status 1") as caught:
        FS_MARK.parse(workload(), output)
    assert [line.split(":")[0][:23] for line in caught.value.evidence.splitlines()] == [
        "fopen failed to open",
        "Insufficient free space",
    ]
