"""fio: golden commands, and what is and is not believed of its reports."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mountlab.core.errors import ParameterError, ParseError, ToolError, TrialError
from mountlab.core.model import Measurement, Scalar, Workload
from mountlab.fio.tool import FILE, Fio
from mountlab.stats.histograms import bin_of, count
from mountlab.tools.base import ToolOutput
from rows import every_row

DATA = Path(__file__).parents[1] / "data" / "fio"
DEFAULTS: dict[str, Scalar] = {key: o.default for key, o in Fio.options.items() if o.default is not None}
MIB = 1024**2


def workload(**options: Any) -> Workload:
    return Workload(name="w", tool="fio", options={**DEFAULTS, "rw": "randread", "size": 64 * MIB, **options})


def report(text: str, *, exit_status: int = 0, stderr: str = "") -> ToolOutput:
    return ToolOutput(exit_status=exit_status, stdout="", stderr=stderr, files={FILE: text})


def recording(name: str, **more: Any) -> ToolOutput:
    return report((DATA / name).read_text(), **more)


def by_metric(rows: list[Measurement]) -> dict[str, float]:
    return {f"{row.label}_{row.metric}" if row.label else row.metric: row.value for row in rows}


# --- commands ---------------------------------------------------------------------------------------------------------

BASE = ["fio", "--name=mountlab", "--directory=/m/t"]
REPORT = ["--group_reporting=1", "--eta=never", "--output-format=json+", "--output=/out/fio.json"]


def arguments(**options: Any) -> list[str]:
    argv = list(Fio().command(workload(**options), "/m/t", "/out").argv)
    assert argv[:3] == BASE
    assert argv[-4:] == REPORT or argv[-5:-1] == REPORT
    return argv[3 : argv.index(REPORT[0])]


def test_the_command_of_a_read_is_exactly_this() -> None:
    command = Fio().command(workload(bs=65536, direct=1, log_avg_msec=0), "/m/t", "/out")
    options = ["--bs=65536", "--numjobs=1", "--ioengine=psync", "--refill_buffers=1", "--rw=randread",
               "--size=67108864", "--direct=1"]  # fmt: skip
    assert list(command.argv) == [*BASE, *options, *REPORT]
    assert [list(argv) for argv in command.prepare] == [[*BASE, *options, "--create_only=1", "--eta=never"]]
    assert command.cache is None


@every_row(
    ("options", "argument"),
    [
        ({"time_based": 1, "runtime": 0.5}, "--runtime=500000us"),
        ({"runtime": 1234567.25}, "--runtime=1234567250000us"),
        ({"rate_process": 1234567.5}, "--rate_process=1234567.5"),
    ],
)
def test_fractions_reach_fio_in_a_form_that_it_takes(options: dict[str, Scalar], argument: str) -> None:
    """fio takes fractions of a second only in a smaller unit. (Other options: GOLDEN of the conformance.)"""
    assert argument in arguments(**options)


@pytest.mark.parametrize(
    ("rw", "metrics"),
    [
        ("read", ("read_bandwidth",)), ("randwrite", ("write_bandwidth",)),
        ("randrw", ("read_bandwidth", "write_bandwidth")),
    ],
)  # fmt: skip
def test_the_answer_is_about_the_directions_that_were_asked(rw: str, metrics: tuple[str, ...]) -> None:
    assert Fio().main_metrics(workload(rw=rw)) == metrics


@every_row(
    ("option", "whole"),
    [
        ("exec_pre", "exec_prerun"), ("exec_po", "exec_postrun"), ("filename_f", "filename_format"),
        ("opendi", "opendir"), ("daemoniz", "daemonize"), ("filenam", "filename or filename_format"),
        ("runtim", "runtime"),
    ],
)  # fmt: skip
def test_shortened_names_do_not_slip_past_the_reserved_ones(option: str, whole: str) -> None:
    """fio takes any unambiguous beginning of an option: exec_pre=CMD runs CMD."""
    with pytest.raises(ParameterError) as caught:
        Fio().check(workload(**{option: "/x"}).options, where="s.yml: workloads.w")
    error = caught.value
    assert (error.what, error.where) == ("a shortened option of fio's", f"s.yml: workloads.w.{option}")
    assert error.next_step == f"write {whole}"


@pytest.mark.parametrize(
    ("option", "next_step"),
    [
        ("run_time", "write runtime"), ("num_jobs", "write numjobs"), ("time__based", "write time_based"),
        ("block_size", "write bs"), ("read_write", "write rw"), ("rand_seed", "write randseed"),
        ("file_size", "the plan could not tell how much space it takes: give size and numjobs"),
    ],
)  # fmt: skip
def test_an_underscore_too_many_is_refused_without_a_box(option: str, next_step: str) -> None:
    """Trap: only the box's fio refused it, after `sweep check` had called the sweep valid."""
    with pytest.raises(ParameterError) as caught:
        Fio().check(workload(**{option: 1}).options, where="s.yml: workloads.w")
    error = caught.value
    assert (error.what, error.where, error.got) == ("fio has no such option", f"s.yml: workloads.w.{option}", option)
    assert error.next_step == next_step


@every_row(("name", "value"), [("ioengine", "external:/x.so"), ("Direct", 1), ("out-put", "x"), ("a b", 1), ("--x", 1)])
def test_what_is_not_an_option_of_fios_own_is_refused(name: str, value: Scalar) -> None:
    with pytest.raises(ParameterError, match="not an option that can be given to fio") as caught:
        Fio().check(workload(**{name: value}).options, where="w")
    assert caught.value.where == f"w.{name}"


@pytest.mark.parametrize("options", [{"numjobs": 0}, {"size": 4095}, {"bs": 0}])
def test_a_workload_that_would_do_nothing_is_refused(options: dict[str, Scalar]) -> None:
    with pytest.raises(ParameterError, match="fio would do nothing"):
        Fio().check(workload(**options).options, where="w")


# --- recordings -------------------------------------------------------------------------------------------------------


def in_bin(seconds: float) -> Any:
    """What lies in the bin of fio's with this middle."""
    return pytest.approx(seconds, abs=bin_of(round(seconds * 1e9))[1] / 2e9)


def test_a_direct_random_read_gives_the_figures_of_the_report() -> None:
    """Trap: units. Bandwidth is bw_bytes in B/s, and not bw, which is in KiB/s."""
    figures = by_metric(Fio().parse(workload(direct=1, runtime=2.0), recording("psync-randread-direct.jsonplus")))
    assert figures == {
        "read_bandwidth": 59724633.0,
        "read_iops": 14581.209395,
        "read_bytes": 119508992.0,
        "read_ios": 29177,
        "read_latency_mean": pytest.approx(68.0e-6, rel=0.02),
        "read_latency_p50": in_bin(49.920e-6),
        "read_latency_p95": in_bin(85.504e-6),
        "read_latency_p99": in_bin(325.632e-6),
        "read_latency_p99_9": in_bin(2211.840e-6),
        "elapsed": 2.001,
        "read_completion_latency_mean": pytest.approx(68.0e-6, rel=0.02),
        "user_cpu": pytest.approx(0.014),
        "system_cpu": pytest.approx(0.351),
        "context_switches": 29111,
        "major_faults": 0,
        "minor_faults": 13,
        "disk_utilization": pytest.approx(0.58635394),
    }
    assert figures["read_bandwidth"] == pytest.approx(figures["read_iops"] * 4096, rel=1e-5)
    assert figures["read_bandwidth"] == pytest.approx(figures["read_bytes"] / figures["elapsed"], rel=1e-3)


@pytest.mark.parametrize(
    ("name", "options", "side"),
    [
        ("psync-randwrite-fsync1.jsonplus", {"rw": "randwrite", "runtime": 2.0}, "write"),
        ("io_uring-randread.json", {"ioengine": "io_uring", "runtime": 2.0}, "read"),
        ("json-and-normal.stdout", {"rw": "read", "bs": MIB, "runtime": 2.0}, "read"),
    ],
)
def test_each_recording_agrees_with_its_own_report_read_by_another_route(
    name: str, options: dict[str, Scalar], side: str
) -> None:
    """Also where text stands before and after the JSON (json-and-normal)."""
    text = (DATA / name).read_text()
    job = json.loads(text[text.index("{\n") : text.index("\n}\n") + 2])["jobs"][0]
    figures = by_metric(Fio().parse(workload(**options), report(text)))
    assert figures[f"{side}_bandwidth"] == job[side]["bw_bytes"]
    assert figures[f"{side}_bytes"] == job[side]["io_bytes"]
    assert figures[f"{side}_latency_p99"] == in_bin(job[side]["clat_ns"]["percentile"]["99.000000"] / 1e9)
    assert ("bins" in job[side]["clat_ns"]) == name.endswith("plus")
    assert figures[f"{side}_latency_mean"] == job[side]["lat_ns"]["mean"] / 1e9
    assert figures["elapsed"] == job[side]["runtime"] / 1e3
    other = {"read": "write", "write": "read"}[side]
    assert not any(metric.startswith(other) for metric in figures)


def test_a_mixed_workload_gives_both_directions() -> None:
    rows = Fio().parse(workload(rw="randrw", size=262144, numjobs=2), recording("mixed-two-jobs.json"))
    figures = by_metric(rows)
    assert figures["read_bytes"] + figures["write_bytes"] == 2 * 262144
    assert {"read_bandwidth", "write_bandwidth", "read_latency_p50", "write_latency_p50"} <= set(figures)
    assert len([row for row in rows if row.metric == "elapsed"]) == 1


def test_percentiles_that_are_switched_off_are_missing_and_not_zero() -> None:
    """Trap: a p99 that is always 0.0 because of a wrong key."""
    figures = by_metric(Fio().parse(workload(rw="read", bs=65536, size=MIB), recording("no-percentiles.json")))
    assert {"read_bandwidth", "read_latency_mean"} <= set(figures)
    assert not any(metric.startswith("read_latency_p") for metric in figures)


def test_a_percentile_of_zero_is_what_the_clock_could_not_see() -> None:
    for changes in ({"percentile.50.000000": 0, "bins": None}, {"bins": {"0": 20_000, "66048": 9177}}):
        text = changed_report({f"read.clat_ns.{key}": value for key, value in changes.items()})
        assert "read_latency_p50" not in by_metric(Fio().parse(workload(direct=1, runtime=2.0), report(text)))


@every_row("bins", [True, False])
@every_row(("ios", "given"), [(10_000, 4), (9_999, 3), (1_000, 3), (999, 2), (200, 2), (20, 1), (19, 0)])
def test_a_percentile_of_few_ios_is_missing(ios: int, given: int, bins: bool) -> None:
    """Ten I/Os above it: p99.9 of 100 I/Os is their largest, or nothing."""
    values = np.random.default_rng(1).lognormal(11, 0.5, ios).astype(int)
    own = {
        "percentile": {"50.000000": 5, "95.000000": 6, "99.000000": 7, "99.900000": 8},
        "N": ios,
        "bins": {str(ns): number for ns, number in count(values.tolist()).counts.items()} if bins else None,
        "min": int(values.min()),
        "max": int(values.max()),
    }
    text = changed_report({f"read.clat_ns.{key}": value for key, value in own.items()})
    figures = by_metric(Fio().parse(workload(direct=1, runtime=2.0), report(text)))
    names = [f"read_latency_{part}" for part in ("p50", "p95", "p99", "p99_9")]
    assert [name for name in names if name in figures] == names[:given]
    assert figures["read_ios"] == ios
    for name, percent in zip(names[:given] if bins and ios > 20 else (), (50, 95, 99, 99.9), strict=False):
        assert figures[name] == pytest.approx(np.percentile(values, percent) / 1e9, rel=0.01)


def test_a_percentile_says_how_far_it_is_rounded() -> None:
    """To a bin of fio's where there is no histogram; not at all where it was interpolated."""
    changes: tuple[dict[str, Any], ...] = ({}, {"read.clat_ns.bins": None})
    rows = [Fio().parse(workload(direct=1, runtime=2.0), report(changed_report(each))) for each in changes]
    interpolated, middle = (next(row for row in own if row.metric == "read_latency_p99") for own in rows)
    assert interpolated.step == 0
    assert (middle.value, middle.step) == (pytest.approx(325.632e-6), pytest.approx(4096e-9))


# --- what is not believed ---------------------------------------------------------------------------------------------


def changed_report(changes: dict[str, Any], name: str = "psync-randread-direct.jsonplus") -> str:
    """The report with values of jobs[0] set; None removes a key. Keys of percentiles hold a dot of their own."""
    loaded = json.loads((DATA / name).read_text())
    for path, value in changes.items():
        parts = path.replace(".000000", "#").split(".")
        target = loaded["jobs"][0]
        for part in parts[:-1]:
            target = target[part]
        key = parts[-1].replace("#", ".000000")
        if value is None:
            del target[key]
        else:
            target[key] = value
    return json.dumps(loaded)


def refusal(kind: type[TrialError], output: ToolOutput, **options: Any) -> TrialError:
    with pytest.raises(kind) as caught:
        Fio().parse(workload(**options), output)
    return caught.value


@every_row("exit_status", [0, 1])
def test_no_space_is_an_error_although_the_report_is_whole_and_a_note_comes_first(exit_status: int) -> None:
    """Trap: ENOSPC gives exit 1, whole JSON with error 28, and a line before '{'. The exit status alone says little."""
    output = recording("no-space.stdout", exit_status=exit_status, stderr=(DATA / "no-space.stderr").read_text())
    error = refusal(ToolError, output, rw="write", bs=MIB, size=2048 * MIB)
    assert error.what == f"fio failed with exit status {exit_status}, error 28"
    assert "No space left on device" in str(error)


@every_row(
    ("name", "options", "allowed"),
    [
        ("killed-time-based.json", {"size": MIB, "time_based": 1, "runtime": 20.0}, "20.0 s"),
        ("killed-size.json", {"rw": "write", "size": 64 * MIB}, "67108864 B"),
    ],
)
@every_row("exit_status", [0, 128])
def test_a_killed_fio_is_no_measurement_although_its_report_is_whole_and_without_error(
    name: str, options: dict[str, Scalar], allowed: str, exit_status: int
) -> None:
    """Trap: on SIGTERM the JSON is complete and says error 0, with partial figures."""
    error = refusal(ToolError, recording(name, exit_status=exit_status), **options)
    if exit_status:
        assert error.what == "fio failed with exit status 128, error 0"
    else:
        assert (error.what, error.allowed) == ("fio stopped early", allowed)
        assert " B in 0.9" in error.got


def test_a_time_based_run_that_moved_all_its_bytes_but_ended_early_is_refused() -> None:
    text = changed_report({"job options.runtime": "60"})
    error = refusal(ToolError, report(text), direct=1, time_based=1, runtime=60.0)
    assert (error.what, error.got, error.allowed) == ("fio stopped early", "119508992 B in 2.001 s", "60.0 s")


def test_a_run_with_both_a_size_and_a_time_may_end_with_either() -> None:
    text = changed_report({"read.io_bytes": 64 * MIB, "job options.runtime": "1m"})
    assert Fio().parse(workload(direct=1, runtime=60.0), report(text))
    text = changed_report({"read.io_bytes": 64 * MIB - 1, "job options.runtime": "60s"})
    error = refusal(ToolError, report(text), direct=1, runtime=60.0)
    assert error.allowed == "67108864 B or 60.0 s"


def test_a_size_that_is_no_multiple_of_the_block_is_met_by_its_whole_blocks() -> None:
    text = changed_report({"read.io_bytes": 2 * 4096, "job options.size": "12000"})
    assert Fio().parse(workload(direct=1, size=12000), report(text))


@every_row(
    ("option", "asked", "echoed"),
    [
        ("rw", "read", "'randread'"), ("bs", 8192, "'4k'"), ("size", 128 * MIB, "'64m'"),
        ("ioengine", "libaio", "'psync'"), ("direct", 0, "'1'"),
    ],
)  # fmt: skip
def test_a_report_of_something_else_than_was_asked_is_refused(option: str, asked: Scalar, echoed: str) -> None:
    """Trap: bs and size are echoed in 'job options': compare."""
    error = refusal(
        ToolError, recording("psync-randread-direct.jsonplus"), **{"direct": 1, "runtime": 2.0, option: asked}
    )
    assert (error.what, error.where) == ("fio did not run what was asked", f"fio.json: job options.{option}")
    assert (error.got, error.allowed) == (echoed, repr(asked))


def test_two_groups_of_jobs_are_not_one_measurement() -> None:
    error = refusal(ParseError, recording("two-groups.json"), rw="read", bs=65536, size=MIB, numjobs=2)
    assert error.what == "fio reports on other jobs than were asked for"
    assert error.got.startswith("2 jobs: ")
    assert error.allowed == "1: mountlab"


def test_what_the_servers_of_clients_say_above_the_report_is_shown() -> None:
    text = f"fio: client vm: no space\n{(DATA / 'clients.jsonplus').read_text()}"
    with pytest.raises(ToolError, match="exit status 1") as caught:
        Fio().parse(replace(workload(), clients=("vm",)), report(text, exit_status=1, stderr="fio: failed\n"))
    assert caught.value.evidence.startswith("fio: client vm: no space\n")
    assert caught.value.evidence.endswith("fio: failed\n")


def test_without_a_report_the_words_of_fio_are_shown() -> None:
    stderr = (DATA / "bad-directory.stderr").read_text()
    error = refusal(ToolError, ToolOutput(exit_status=1, stdout="", stderr=stderr, files={}))
    assert error.what == "fio wrote no report (exit status 1)"
    assert "/nonexist is not a directory" in str(error)


@pytest.mark.parametrize("name", ["psync-randread-direct.jsonplus", "no-space.stdout"])
def test_a_report_cut_anywhere_never_gives_figures(name: str) -> None:
    text = (DATA / name).read_text().rstrip()
    for end in range(0, len(text) - 1, 61):
        with pytest.raises(TrialError):
            Fio().parse(workload(direct=1, runtime=2.0), report(text[:end]))


def test_a_cut_report_says_where() -> None:
    error = refusal(ParseError, report((DATA / "psync-randread-direct.jsonplus").read_text()[:5000]))
    assert error.what == "fio's report is not whole"
    assert error.where.startswith("fio.json, line ")


@every_row(
    "path",
    [
        "error", "read", "write", "job options", "read.io_bytes", "write.io_bytes", "read.runtime", "read.bw_bytes",
        "read.iops", "read.lat_ns", "read.lat_ns.N", "read.lat_ns.mean", "read.clat_ns",
    ],
)  # fmt: skip
@every_row("value", [None, "12", [], True, -1, math.nan, math.inf, 10**400])
def test_a_figure_that_is_missing_or_no_honest_number_is_refused_by_name(path: str, value: object) -> None:
    """Trap: float(value or 0.0)."""
    error = refusal(ParseError, report(changed_report({path: value})), direct=1, runtime=2.0)
    key = path.rpartition(".")[2]
    assert error.where.endswith(f".{key}")
    assert error.allowed
    if value is None:
        assert error.what == f"this is not a whole report of fio: it has no {key}"
        assert "as fio wrote it" in error.next_step
    else:
        assert error.what == "fio's report is not json+ of version 3"


@every_row(
    ("changes", "what"),
    [
        ({"read.io_bytes": 0}, "fio moved no bytes"),
        ({"read.runtime": 0, "read.io_bytes": 64 * MIB}, "less than its clock can tell"),
        ({"read.bw_bytes": 0}, "fio moved bytes at no rate"),
        ({"read.iops": 0.0}, "fio moved bytes at no rate"),
    ],
)
def test_a_report_without_work_or_without_time_is_refused(changes: dict[str, Any], what: str) -> None:
    options = {"direct": 1} if "read.runtime" in changes else {"direct": 1, "runtime": 2.0}
    with pytest.raises(TrialError, match=what):
        Fio().parse(workload(**options), report(changed_report(changes)))


@every_row(
    "text", ["{}", '{"jobs": []}', '{"jobs": {}}', '{"jobs": [1]}', '{"jobs": [[]]}', '{"jobs": null}', "[]", "null"]
)
def test_json_that_is_no_report_is_refused(text: str) -> None:
    with pytest.raises(TrialError):
        Fio().parse(workload(), report(text))


# --- whatever happens to a report -------------------------------------------------------------------------------------

SMALL = json.loads((DATA / "no-percentiles.json").read_text())
SMALL["jobs"][0]["read"]["clat_ns"]["percentile"] = {"50.000000": 5, "95.000000": 6, "99.000000": 7, "99.900000": 8}


def _paths(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    for key, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        yield (*path, key)
        yield from _paths(value, (*path, key))


READ_KEYS = {"jobs", "error", "read", "io_bytes", "bw_bytes", "iops", "runtime", "lat_ns", "clat_ns", "N", "mean",
    "percentile",
             "job options", "rw", "bs", "size", "numjobs", "ioengine", "50.000000", "99.000000", 0}  # fmt: skip
PATHS = [path for path in _paths(SMALL) if set(path) <= READ_KEYS | {"write"}]
JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 5),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
    st.just([{}]),
    st.just("9" * 30),
)


@pytest.mark.slow
@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(PATHS), JUNK), min_size=1, max_size=3))
def test_a_spoilt_report_gives_positive_figures_or_a_documented_error(
    spoils: list[tuple[tuple[Any, ...], Any]],
) -> None:
    """NaN, negative figures, KeyError and TypeError never come out."""
    spoilt = copy.deepcopy(SMALL)
    for path, value in spoils:
        target = spoilt
        try:
            for part in path[:-1]:
                target = target[part]
            target[path[-1]] = copy.deepcopy(value)
        except (KeyError, IndexError, TypeError, AttributeError):
            continue  # an earlier change took this place away
    try:
        rows = Fio().parse(workload(rw="read", bs=65536, size=MIB), report(json.dumps(spoilt)))
    except TrialError:
        return
    assert rows
    assert all(row.value < math.inf and (row.value > 0 or (row.value == 0 and row.unit == "1")) for row in rows)


# --- numbers ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "value"), [("rate", "1MiB"), ("bsrange", "4KiB-64k")])
def test_a_size_that_fio_reads_in_thousands_is_refused(name: str, value: str) -> None:
    """1MiB is 1,000,000 bytes to fio, and 1,048,576 wherever Mountlab reads it."""
    with pytest.raises(ParameterError) as caught:
        Fio().check(workload(**{name: value}).options, where="s.yml: workloads.w")
    assert caught.value.where == f"s.yml: workloads.w.{name}"
    assert "4KiB is 4000 bytes to fio" in str(caught.value)


@every_row(
    ("name", "value"),
    [
        ("rate_iops", "fast"), ("rate", "1m/s fast"), ("nrfiles", "two"), ("loops", 1.5), ("thinktime", "a while"),
        ("rate_iops", ","), ("rate_iops", ""), ("rwmixwrite", "half"), ("rate_iops", "100,fast"),
    ],
)  # fmt: skip
def test_an_option_that_is_a_number_to_fio_is_refused_before_anything_is_mounted(name: str, value: Scalar) -> None:
    with pytest.raises(ParameterError) as caught:
        Fio().check(workload(**{name: value}).options, where="s.yml: workloads.w")
    assert caught.value.where == f"s.yml: workloads.w.{name}"
    if "/" not in str(value):
        assert caught.value.what == f"fio's option {name} needs a number"
        assert (caught.value.got, caught.value.allowed[:14]) == (repr(value), "a whole number")


@every_row(
    ("name", "value"),
    [
        ("rate_iops", 100), ("rate_iops", "100,200,300"), ("rate", "1m,500k"), ("rate", ",500k"),
        ("thinktime", "10ms"), ("nrfiles", "4"), ("randseed", 2**60), ("number_ios", "1k"), ("rate", "0x100"),
        ("rate", "1m"),
    ],
)  # fmt: skip
def test_a_number_as_fio_writes_it_passes(name: str, value: Scalar) -> None:
    Fio().check(workload(**{name: value}).options, where="w")
