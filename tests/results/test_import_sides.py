"""Sides of imported logs: each option in which they differ is named, and so is work that was not equal.

The logs are fio reports with the keys that fio's stat.c writes. Options are spelled as fio's parse.c reads them, and a
flag without a value is not in them, as with fio 3.33.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from mountlab.__main__ import main
from mountlab.analysis.compare.runs import compare_runs
from mountlab.core.model import Workload
from mountlab.report import sections
from mountlab.report.terminal import run_answer
from mountlab.results.imported import import_file
from mountlab.results.store import Run, load_run
from mountlab.sentences import comparison as words
from rows import every_row
from synthetic_run import synthetic_run

MB = 1_000_000
Options = dict[str, str]


def fio(options: Options, *, seconds: float = 30, rate: float = 100 * MB, clones: int = 1, **more: Any) -> str:
    """A report of fio's on reads of 4 KiB."""
    moved = round(rate * seconds / 4096 / clones) * 4096
    ios, none = moved // 4096, {"N": 0, "mean": 0.0}
    latency = {"N": ios, "mean": 40_000.0}
    zero = {"io_bytes": 0, "bw_bytes": 0, "iops": 0, "runtime": 0, "total_ios": 0, "lat_ns": none, "clat_ns": none}
    read = {"io_bytes": moved, "bw_bytes": round(moved / seconds), "iops": ios / seconds, "runtime": seconds * 1e3,
            "total_ios": ios, "lat_ns": latency, "clat_ns": latency}  # fmt: skip
    job = {"jobname": "j", "groupid": 0, "error": 0, "job options": options, "read": read, "write": zero}
    return json.dumps({"fio version": "fio-3.33", **more, "jobs": [job] * clones}, indent=1)


def bring(directory: Path, logs: dict[str, str], name: str = "old", **asked: Any) -> Run:
    """Import logs that are named after their file systems, which are compared with the first of them."""
    directory.mkdir(exist_ok=True)
    for fs, text in logs.items():
        (directory / f"{name}-{fs}.json").write_text(text)
    raw = {
        "question": "?",
        "tool": "fio",
        "files": f"{name}-{{filesystem}}.json",
        "baseline": next(iter(logs)),
        **asked,
    }
    (directory / f"{name}.yml").write_text(json.dumps(raw))
    return load_run(import_file(directory / f"{name}.yml", results=directory / "results"))


def named(text: str) -> list[str]:
    """The options in which the logs differ, as the terminal shows them."""
    _, head, rest = text.partition("Options in which the logs differ, or that only some state:\n")
    return rest.split("\n\n")[0].splitlines() if head else []


DIFFERENT: list[tuple[Options, Options, list[str]]] = [
    ({"norandommap": "1"}, {}, ["norandommap: 1 in a, not stated in b"]),
    ({"numjobs": "4"}, {"numjobs": "1"}, ["numjobs: 4 in a, 1 in b"]),
    ({"numjobs": "4"}, {}, ["numjobs: 4 in a, not stated in b"]),
    ({"runtime": "30"}, {"runtime": "1m", "time_based": "1"},
     ["runtime: 30 s in a, 60 s in b", "time_based: not stated in a, 1 in b"]),
    ({"ioengine": "libaio", "iodepth": "32"}, {"ioengine": "io_uring", "iodepth": "8"},
     ["ioengine: libaio in a, io_uring in b", "iodepth: 32 in a, 8 in b"]),
    ({"size": "10%"}, {"size": "20%"}, ["size: 10% in a, 20% in b"]),
    ({"rate": "10m"}, {"rate": "20m"}, ["rate: 10485760 in a, 20971520 in b"]),
    ({"cpus_allowed": "0-3"}, {"cpus_allowed": "0"}, ["cpus_allowed: 0-3 in a, 0 in b"]),
    ({"filesize": "1g"}, {"filesize": "2048m"}, ["filesize: 1GiB in a, 2GiB in b"]),
]  # fmt: skip
ALIKE: list[tuple[Options, Options]] = [
    ({"runtime": "60"}, {"runtime": "60s"}), ({"runtime": "1m"}, {"timeout": "60"}), ({"bs": "4k"}, {"bs": "4096"}),
    ({"blocksize": "4kb"}, {"bs": "4k"}), ({"rw": "randread"}, {"readwrite": "randread"}),
    ({"rw": "readwrite"}, {"rw": "rw"}), ({"direct": "1"}, {"buffered": "0"}), ({"nr_files": "4"}, {"nrfiles": "4"}),
    ({"filesize": "1g"}, {"filesize": "1024m"}), ({"norandommap": "1"}, {"norandommap": ""}),
    ({"startdelay": "5"}, {"startdelay": "5s"}),
    ({"name": "a", "filename": "/mnt/a/f", "description": "one"}, {"name": "b", "directory": "/mnt/b"}),
    ({"write_bw_log": "a", "log_avg_msec": "500", "group_reporting": "1"}, {"percentile_list": "50:99"}),
    ({"bs": "4k"}, {}),
]  # fmt: skip
"""A log without `bs` has it from its figures: bytes over I/Os."""


@pytest.mark.slow
@every_row(("ours", "theirs", "lines"), [*DIFFERENT, *((*pair, []) for pair in ALIKE)])
def test_each_difference_of_the_options_is_shown_with_both_values_and_no_other_is(
    ours: Options, theirs: Options, lines: list[str], tmp_path: Path
) -> None:
    seconds = 60 if {"runtime": "1m", "time_based": "1"} in (ours, theirs) else 30
    run = bring(tmp_path, {"a": fio(ours), "b": fio(theirs, seconds=seconds)})
    assert named(run_answer(run)) == lines
    told = [each.message for each in run.caveats if each.code == "logs-differ"]
    assert len(told) == bool(lines)
    assert all(line in told[0] for line in lines)


def test_options_of_all_jobs_count_whether_they_are_global_or_not(tmp_path: Path) -> None:
    ours = fio({"bs": "4k"}, **{"global options": {"norandommap": "1", "bs": "8k"}})
    assert named(run_answer(bring(tmp_path, {"a": ours, "b": fio({"bs": "4k", "norandommap": "1"})}))) == []


def test_clones_that_have_an_entry_each_are_counted_where_fio_does_not_list_numjobs(tmp_path: Path) -> None:
    """fio before 3.33 leaves numjobs out of its global options."""
    run = bring(tmp_path, {"a": fio({"rw": "read"}, clones=3), "b": fio({"rw": "read", "numjobs": "2"})})
    assert named(run_answer(run)) == ["numjobs: 3 in a, 2 in b"]


def test_an_option_that_only_one_of_several_jobs_gives_is_told(tmp_path: Path) -> None:
    two = json.loads(fio({"numjobs": "1"}, clones=2))
    two["jobs"][1] = {**two["jobs"][1], "job options": {"numjobs": "1", "fsync": "1"}}
    run = bring(tmp_path, {"a": json.dumps(two, indent=1), "b": fio({"numjobs": "1"}, clones=2)})
    assert named(run_answer(run)) == ["fsync: not given, 1 in a, not stated in b"]


@every_row(
    ("first", "second", "lines"),
    [
        ({"norandommap": "1"}, {}, ["norandommap: 1 or not stated"]),
        ({"runtime": "30"}, {"runtime": "20"}, ["runtime: 30 s or 20 s"]),
        ({"randseed": "1"}, {"randseed": "2"}, []),
    ],
)
def test_logs_of_one_cell_that_differ_are_told_where_they_are_not_refused(
    first: Options, second: Options, lines: list[str], tmp_path: Path
) -> None:
    logs = {"a-1": fio(first), "a-2": fio(second)}
    assert named(run_answer(bring(tmp_path, logs, files="old-{filesystem}-{repeat}.json", baseline="a"))) == lines


def test_a_log_that_failed_is_no_side_without_its_options(tmp_path: Path) -> None:
    logs = {"a-1": fio({"numjobs": "2"}), "a-2": "Segmentation fault", "b-1": fio({"numjobs": "2"})}
    assert named(run_answer(bring(tmp_path, logs, files="old-{filesystem}-{repeat}.json", baseline="a"))) == []


def dd(bs: int, count: int, seconds: float) -> str:
    return f"{count}+0 records in\n{count}+0 records out\n{bs * count} bytes copied, {seconds} s, 1 MB/s\n"


@every_row(
    ("ours", "theirs", "words"),
    [
        ((4096, 256), (2**20, 1), ""),
        ((2**20, 200), (2**20, 400), "count (400 against 200)"),
    ],
)
def test_as_many_bytes_in_other_blocks_are_equal_work(
    ours: tuple[int, int], theirs: tuple[int, int], words: str, tmp_path: Path
) -> None:
    rate = 2**20
    logs = {fs: dd(bs, count, bs * count / rate) for fs, (bs, count) in (("a", ours), ("b", theirs))}
    run = bring(tmp_path, logs, tool="dd")
    found = [each.message for each in run.caveats if each.code == "unequal-work"]
    assert len(found) == bool(words)
    assert all(words in each for each in found)
    assert ("bs: 4KiB in a, 1MiB in b" in named(run_answer(run))) == (ours[0] != theirs[0])


def test_the_version_of_the_tool_is_compared_too(tmp_path: Path) -> None:
    run = bring(tmp_path, {"a": fio({}), "b": fio({}).replace("fio-3.33", "fio-2.21")})
    assert named(run_answer(run)) == ["version: fio-3.33 in a, fio-2.21 in b"]


def test_the_report_shows_what_each_side_states(tmp_path: Path) -> None:
    run = bring(tmp_path, {"a": fio({"norandommap": "1"}), "b": fio({}), "c": fio({})})
    assert "1 in a; not stated in b and c" in sections.parameters(run)


def test_the_differences_are_printed_after_the_import(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.json").write_text(fio({"numjobs": "4", "norandommap": "1"}))
    (tmp_path / "b.json").write_text(fio({"numjobs": "1"}))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("mountlab.results.imported.import_patterns.__kwdefaults__", {"results": tmp_path / "results"})
    monkeypatch.setattr("mountlab.report.execute.write_report", lambda path: path / "report.html")
    main(["import", "{filesystem}.json", "--tool", "fio", "--baseline", "a"])
    said = capsys.readouterr().out
    assert named(said) == ["numjobs: 4 in a, 1 in b", "norandommap: 1 in a, not stated in b"]
    assert "warning: Unequal work (1 cell): it and the baseline a differ in numjobs (1 against 4)" in said


# ── unequal work ─────────────────────────────────────────────────────────────────────────────────────────────────────


def reasons(run: Run) -> str:
    """What the caveat on the comparison of b with a says; '' without one."""
    found = [each for each in run.caveats if each.code == "unequal-work"]
    assert {(each.scope, each.subject, each.severity) for each in found} <= {("cell", "b/fio", "warning")}
    return found[0].message.partition(". ")[0] if found else ""


@pytest.mark.slow
@every_row(
    ("ours", "theirs", "words"),
    [
        ({"runtime": "30"}, {"runtime": "60"}, "runtime (60 s against 30 s)"),
        ({"time_based": "1", "runtime": "30"}, {"runtime": "30"}, "time_based (not stated against 1)"),
        ({"io_size": "1g"}, {"io_size": "2g"}, "io_size (2GiB against 1GiB)"),
        ({"size": "1g"}, {"size": "2g"}, "size (2GiB against 1GiB)"),
        ({"number_ios": "1000"}, {}, "number_ios (not stated against 1000)"),
        ({"numjobs": "4"}, {}, "numjobs (not stated against 4)"),
        ({"ioengine": "psync"}, {"ioengine": "libaio"}, "ioengine (libaio against psync)"),
        ({"numjobs": "1", "time_based": "0", "iodepth": "1"}, {}, ""),
        ({"norandommap": "1"}, {}, ""),
    ],
)
def test_options_that_bound_the_work_are_named_in_a_caveat_on_the_comparison(
    ours: Options, theirs: Options, words: str, tmp_path: Path
) -> None:
    """An option that one side gives its default, and that the other does not state, is no reason."""
    found = reasons(bring(tmp_path, {"a": fio(ours), "b": fio(theirs)}))
    assert found == (f"it and the baseline a differ in {words}" if words else "")


@pytest.mark.slow
@every_row(
    ("seconds", "rate", "words"),
    [
        (60, 90 * MB, "the time that was measured, 60.0 s against 30.0 s (moved: 5.40 GB against 3.00 GB)"),
        (20, 90 * MB, "the time that was measured, 20.0 s against 30.0 s (moved: 1.80 GB against 3.00 GB)"),
        (60, 50 * MB, ""),
        (30, 50 * MB, ""),
        (31, 50 * MB, ""),
    ],
)
def test_times_that_differ_are_named_unless_the_amount_of_work_is_the_same(
    seconds: float, rate: float, words: str, tmp_path: Path
) -> None:
    """Beside 30 s at 100 MB/s: of equal amounts the time is the speed; 3 % more is how fio ends."""
    found = reasons(bring(tmp_path, {"a": fio({}), "b": fio({}, seconds=seconds, rate=rate)}))
    assert found.replace("\u00a0", " ") == (f"it and the baseline a differ in {words}" if words else "")


def test_equal_amounts_in_trials_of_unequal_speed_are_the_same_amount(tmp_path: Path) -> None:
    """The mean rate times the mean time is more than was moved."""
    amount, files = 3000 * MB, {}
    for repeat, (a, b) in enumerate([(30, 10), (60, 90), (120, 20)], start=1):
        files |= {
            f"a-{repeat}": fio({}, seconds=a, rate=amount / a),
            f"b-{repeat}": fio({}, seconds=b, rate=amount / b),
        }
    run = bring(tmp_path, files, files="old-{filesystem}-{repeat}.json", baseline="a")
    assert reasons(run) == ""


@pytest.mark.slow
@pytest.mark.requires_program("fio")
def test_two_runs_of_the_installed_fio_differ_in_what_they_were_given(tmp_path: Path) -> None:
    shared = ("--name=j", "--filename=f", "--size=64k", "--rw=read", "--output-format=json")
    ours, theirs = (
        subprocess.run(["fio", *shared, *more], cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        for more in (("--bs=4k", "--numjobs=2", "--norandommap=1"), ("--blocksize=4096", "--loops=200"))
    )
    lines = named(run_answer(bring(tmp_path, {"a": ours, "b": theirs})))
    assert lines == ["numjobs: 2 in a, not stated in b", "norandommap: 1 in a, not stated in b",
                     "loops: not stated in a, 200 in b"]  # fmt: skip


# ── runs beside each other ───────────────────────────────────────────────────────────────────────────────────────────


def test_two_imported_runs_are_compared_by_what_their_logs_state(tmp_path: Path) -> None:
    a = bring(tmp_path, {"ext4": fio({"runtime": "30", "numjobs": "4", "norandommap": "1"})}, "one")
    b = bring(tmp_path, {"ext4": fio({"runtime": "1m", "numjobs": "1"}, seconds=60)}, "two")
    found = compare_runs((a, b))
    text = words.comparison_text(found).replace("\u00a0", " ")
    for line in ("runtime: 30 s in A, 60 s in B", "numjobs: 4 in A, 1 in B", "norandommap: 1 in A, not stated in B"):
        assert f"workload fio: {line}" in text
    (caveat,) = [each for each in found.caveats if each.code == "unequal-work"]
    assert caveat.subject == "ext4/fio"
    assert "runtime (30 s in A, 60 s in B), numjobs (4 in A, 1 in B), the time that was measured" in caveat.message
    assert caveat.message.partition(".")[0] in text


def test_imported_runs_that_state_the_same_are_not_said_to_be_repetitions(tmp_path: Path) -> None:
    a, b = (bring(tmp_path, {"ext4": fio({"bs": spelled})}, name) for name, spelled in (("one", "4k"), ("two", "4096")))
    found = compare_runs((a, b))
    assert found.differences == ()
    assert {each.code for each in found.caveats} & {"sides-alike", "unequal-work"} == set()


def test_an_imported_run_is_compared_with_what_a_measured_one_asked_for(tmp_path: Path) -> None:
    options = {"rw": "randread", "bs": 4096, "numjobs": 1, "runtime": 30.0, "time_based": 1}
    measured = synthetic_run(workloads=[Workload(name="fio", tool="fio", options=options)])
    imported = bring(tmp_path, {"ext4": fio({"readwrite": "randread", "bs": "4k", "numjobs": "4", "runtime": "30"})})
    found = compare_runs((measured, imported))
    assert {each.what: each.values for each in found.differences if each.area == "workload fio"} == {
        "numjobs": ("1", "4"),
        "time_based": ("1", "not stated"),
    }
    (caveat,) = [each for each in found.caveats if each.code == "unequal-work"]
    assert "numjobs (1 in A, 4 in B), time_based (1 in A, not stated in B)" in caveat.message
