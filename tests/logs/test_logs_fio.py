"""fio's logs of all versions, printed by the statements of fio itself (support/fio_print.py), and of a live fio."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from fio_print import PERCENTS, VERSIONS, Job, Latency, Side, Style, number, report
from hypothesis import given, settings
from hypothesis import strategies as st
from mountlab.core.errors import ParseError, ToolError
from mountlab.logs import decoded, read_log, read_one
from mountlab.logs.frame import tidy
from mountlab.results.imported import import_patterns
from mountlab.results.store import Run, load_run
from rows import every_row

DATA = Path(__file__).parents[1] / "data" / "fio"
KEPT = {"p50": 50, "p95": 95, "p99": 99, "p99_9": 99.9}


def figures(text: str) -> dict[str, float]:
    """The figures of the only output of a log, by metric and label."""
    rows = read_one("fio", text, where="log.txt").measurements
    return {f"{row.metric} {row.label}".strip(): row.value for row in rows}


def problem(text: str) -> str:
    with pytest.raises((ToolError, ParseError)) as caught:
        read_one("fio", text, where="log.txt")
    return str(caught.value)


# --- text of any figures ----------------------------------------------------------------------------------------------


@st.composite
def latencies(draw: st.DrawFn, most_ns: int = 10**11) -> tuple[Latency, list[int]]:
    """With its percentiles."""
    scale = draw(st.sampled_from((10**3, 10**5, 10**7, most_ns // 10)))
    least, mean, most = sorted(draw(st.lists(st.integers(1000, 10 * scale), min_size=3, max_size=3)))
    points = sorted(draw(st.lists(st.integers(least, most), min_size=17, max_size=17)))
    return Latency(least, most, mean + draw(st.integers(0, 99)) / 100, float(draw(st.integers(0, scale)))), points


@st.composite
def sides(draw: st.DrawFn) -> Side:
    of, points = draw(latencies())
    ios, block = draw(st.integers(1, 10**8)), draw(st.sampled_from((512, 4096, 65536, 2**20)))
    least = max(1, ios * block // 10**11, of.most // 10**6)  # no I/O takes longer than the run
    ms = draw(st.integers(least, max(least, min(10**7, ios * block))))
    ios = max(ios, ms)
    return Side(ios, block, ms, of, points)


@st.composite
def jobs(draw: st.DrawFn) -> Job:
    names = draw(st.sampled_from((("read",), ("write",), ("read", "write"), ("write", "trim"))))
    flush, points = draw(latencies(10**9))
    return Job("j", {name: draw(sides()) for name in names}, draw(st.integers(1, 10**6)), flush, points)


def check(found: dict[str, float], job: Job, version: tuple[int, ...]) -> None:
    """Hold what was read against what was printed: each figure is there, and off by no more than its last digit."""
    for name, side in job.sides.items():
        if name == "trim":
            continue
        assert found[f"{name}_iops"] == pytest.approx(side.ios * 1000 / side.ms, rel=1e-12)
        # Four digits, or (with the decimals of fio 2) at least the three before the point; rates are whole bytes.
        assert found[f"{name}_bandwidth"] == pytest.approx(side.moved * 1000 / side.ms, rel=0.0055, abs=1)
        assert found[f"bytes {name}"] == pytest.approx(side.moved, rel=0.0055)
        check_latency(found, f"{name}_latency", side.whole, side.points, side.ios, version)
    longest = max(side.ms for name, side in job.sides.items() if name != "trim")
    assert found["elapsed"] == longest / 1e3
    flushed = job.flush is not None and version >= (3, 4)
    assert ("sync_latency_mean" in found) == flushed
    if job.flush and flushed:
        assert found["sync_ios"] == job.flushes
        check_latency(found, "sync_latency", job.flush, job.flush_points, job.flushes, version)


def check_latency(
    found: dict[str, float], metric: str, of: Latency, points: Any, ios: int, version: tuple[int, ...]
) -> None:
    assert found[f"{metric}_mean"] == pytest.approx(of.mean / 1e9, rel=0.0051 if version >= (3,) else 0.006, abs=1e-11)
    for name, percent in KEPT.items():
        enough = ios * (100 - percent) / 100 >= 10 - 1e-9 and ios * percent / 100 >= 10
        assert (f"{metric}_{name}" in found) == enough
        point = points[PERCENTS.index(percent)]
        # fio rounds percentiles up to whole units, and the unit is at most 1/2 of the smallest of them, or 1 us.
        assert not enough or point / 1e9 - 1e-12 <= found[f"{metric}_{name}"] <= point / 1e9 + max(
            1e-6, points[0] / 2e9
        )


@pytest.mark.slow
@settings(deadline=None, max_examples=300)
@given(jobs(), st.sampled_from(VERSIONS), st.booleans())
def test_every_figure_that_fio_prints_is_read_back(job: Job, version: tuple[int, ...], bits: bool) -> None:
    """The property: whatever the figures, none is lost, and none is another."""
    style = Style(version, bits=bits and version >= (2, 17))
    check(figures(report([job], style)), job, version)


@pytest.mark.long
@pytest.mark.slow
@settings(deadline=None, max_examples=100)
@given(st.lists(jobs(), min_size=2, max_size=3), st.sampled_from(VERSIONS))
def test_every_figure_of_several_jobs_is_read_back(several: list[Job], version: tuple[int, ...]) -> None:
    named = [replace(job, name=f"j{number}", pid=number) for number, job in enumerate(several)]
    found = figures(report(named, Style(version)))
    for job in named:
        own = {key.removesuffix(f" {job.name}"): value for key, value in found.items() if key.endswith(job.name)}
        amounts = {f"bytes {name}": float(side.moved) for name, side in job.sides.items()}  # only their sum has any
        check({**own, **amounts}, job, version)
    for name in ("read", "write"):
        own_sides = [job.sides[name] for job in named if name in job.sides]
        moved, longest = sum(side.moved for side in own_sides), max((side.ms for side in own_sides), default=0)
        if own_sides and all(side.moved >= 2**20 for side in own_sides):  # fio 2 cuts sums to whole KiB
            assert found.get(f"{name}_bandwidth", 0) == pytest.approx(moved * 1000 / longest, rel=0.0055, abs=2048)


# --- counts with units ------------------------------------------------------------------------------------------------


def recorded(name: str) -> str:
    return decoded((DATA / name).read_bytes())


def plain(**more: Any) -> Job:
    """A job that writes 10,000 blocks in two seconds."""
    whole = Latency(1_000_000, 4_251_400_123, 6_950_000.25, 2e6)
    side = Side(10_000, 4096, 2000, whole, [10**6 * rank for rank in range(2, 19)])
    return replace(Job("j", {"write": side}), **more)


@every_row("version", VERSIONS)
def test_a_slow_trial_is_not_lost_for_the_unit_of_its_maximum(version: tuple[int, ...]) -> None:
    """Trap: a line with `max=4251.4K` is passed over, so that a cell loses exactly its slow trials."""
    text = report([plain()], Style(version))
    slowest = next(line for line in text.split("\n") if line.startswith("     lat"))
    assert ("max=4251.4K," in slowest) == (version < (2, 17))
    assert figures(text)["write_latency_mean"] == pytest.approx(6.95e-3, rel=1e-3)


def test_num2str_prints_as_those_who_use_it_saw_it() -> None:
    """The printer of these tests against lines in recordings of fio itself, and against the cases in its history."""
    assert [number(value, (2, 1, 10), base=1024, unit="B") for value in (100317 * 1024, 201336 * 1024)] == [
        "100317KB",
        "201336KB",
    ]
    assert (number(20_900, (3, 33)), number(13_963, (3, 33)), number(13_963, (3, 7))) == ("20.9k", "14.0k", "13.0k")
    assert number(4_251_005, (2, 1, 10)) == "4251.5K"


def test_a_carry_that_fio_lost_is_put_back() -> None:
    """Trap: fio before 3.26 prints 13,963 as 13.0k, and 9.996 GiB as 9.00GiB: a figure too low by up to a tenth."""
    whole = plain().sides["write"]
    side = replace(whole, ios=27_926, block=2_676_123)
    text = report([replace(plain(), sides={"write": side})], Style((3, 7)))
    assert "IOPS=13.0k, BW=34.8GiB/s" in text
    assert figures(text)["write_iops"] == 13_963
    narrow = report([replace(plain(), sides={"write": replace(side, block=1024)})], Style((3, 7)))
    assert "BW=13.6MiB/s (14.3MB/s)(27.3MiB/" in narrow
    lost = report([replace(plain(), sides={"write": replace(side, ios=28_600, block=1024)})], Style((3, 7)))
    assert "BW=13.0MiB/s (14.6MB/s)(27.9MiB/" in lost
    found = figures(lost)
    assert found["write_bandwidth"] == pytest.approx(28_600 * 1024 / 2, rel=0.005)


def test_results_without_their_job_below_a_run_are_outputs_of_their_own() -> None:
    """In notes they are what is left of further runs: they were passed over without a word."""
    run = report([plain()], Style((3, 33)))
    loose = "  write: IOPS=12.7k, BW=49.8MiB/s (52.2MB/s)(399MiB/8012msec)\n"
    old = "read : io=10240MB, bw=63317KB/s, iops=15829, runt=165607msec\n"
    first, new, last = read_log("fio", f"{run}\n# fio ...\n{loose}\n{old}")
    assert first.measurements == read_log("fio", run)[0].measurements
    assert next(row.value for row in new.measurements if row.metric == "write_iops") == 12_700
    assert next(row.value for row in last.measurements if row.metric == "read_iops") == 15_829
    assert all("nothing shows that it is whole" in output.notes[-1] for output in (new, last))


def test_figures_that_agree_as_they_are_printed_have_lost_no_carry() -> None:
    """64,000 B in 1 ms: 64.0MB/s and 61.0MiB/s are the same rate, and both might have lost a carry (65.0MB/s)."""
    whole = plain().sides["write"]
    text = report([replace(plain(), sides={"write": replace(whole, ios=16_000, block=8000)})], Style((3, 33)))
    assert "BW=61.0MiB/s (64.0MB/s)(122MiB/" in text
    assert figures(text)["write_bandwidth"] == pytest.approx(64e6, rel=0.001)


def test_iops_whose_carry_may_be_lost_are_missing_where_nothing_else_tells() -> None:
    whole = plain().sides["write"]
    text = report([replace(plain(), sides={"write": replace(whole, ios=27_926)})], Style((3, 7)))
    lines = [line for line in text.split("\n") if "issued rwts" not in line]
    assert "IOPS=13.0k" in text
    assert "write_iops" not in figures("\n".join(lines))


@every_row(
    ("old", "new"),
    [
        ("max=4251", "max=many"),
        ("avg= 6.95", "avg= ?"),
        ("  cpu          : usr=1.50%", "  cpu          : usr=high"),
        ("issued rwts: total=0,10000", "issued rwts: total=0;10000"),
        ("clat percentiles (msec):", "clat percentiles (h):"),
        ("     lat (msec): min=", "     lat (msec) : min="),
    ],
)
def test_a_line_of_figures_that_cannot_be_read_is_never_passed_over(old: str, new: str) -> None:
    whole = replace(
        plain().sides["write"],
        whole=Latency(3 * 10**6, 4_251_400_123, 6_950_000.25, 2e6),
        points=[3 * 10**6, *(10**8 * rank for rank in range(2, 18))],
    )
    text = report([replace(plain(), sides={"write": whole})], Style((3, 33)))
    assert text.count(old) >= 1
    line = next(n for n, line in enumerate(text.split("\n"), start=1) if old in line)
    said = problem(text.replace(old, new, 1))
    assert "cannot be read" in said
    assert f"log.txt, line {line}\n" in said


def test_iops_that_are_not_those_of_the_ios_are_not_believed() -> None:
    text = report([plain()], Style((3, 33)))
    said = problem(text.replace("IOPS=5000", "IOPS=6000"))
    assert said.startswith("fio's IOPS, I/Os and time do not agree\n")


# --- flushes ----------------------------------------------------------------------------------------------------------


def test_flushes_have_the_same_names_in_text_as_in_json() -> None:
    """The same run in both formats, of a live fio. Trap: a flush study loses its main figure."""
    text = recorded("status-interval-both.stdout")
    in_json = {row.metric: row for row in read_one("fio", text).measurements}
    in_text = {row.metric: row for row in read_one("fio", text[text.rindex("flush: (groupid") :]).measurements}
    flushes = {metric for metric in in_json if metric.startswith("sync_")}
    assert flushes == {metric for metric in in_text if metric.startswith("sync_")} > {"sync_ios", "sync_latency_p99"}
    for metric in flushes:
        assert in_text[metric].value == pytest.approx(in_json[metric].value, rel=0.001, abs=1e-6), metric


@pytest.mark.parametrize("name", ["psync-randwrite-fsync1.jsonplus"])
def test_flushes_of_fio_before_3_18_are_counted_beside_their_latency(name: str) -> None:
    told = json.loads(recorded(name))
    today = figures(json.dumps(told, indent=1))
    for side in ("read", "write", "trim"):
        for section in ("slat_ns", "clat_ns", "lat_ns"):
            told["jobs"][0][side].get(section, {}).pop("N", None)
    told["jobs"][0]["sync"]["lat_ns"].pop("N")
    assert figures(json.dumps(told, indent=1)) == today
    assert "sync_latency_mean" in today


# --- snapshots and repeats --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["status-interval.stdout", "status-interval.reports", "status-interval-both.stdout"])
def test_snapshots_of_a_live_fio_are_one_trial_which_is_the_last(name: str) -> None:
    """Trap: --status-interval gives n = 4 with an interval, of one run."""
    (output,) = read_log("fio", recorded(name))
    assert output.form.endswith(" after 3 snapshots of fio-3.33")
    found = {figure.measurement.metric: figure for figure in output.figures}
    assert found["elapsed"].measurement.value == pytest.approx(3, abs=0.02)
    line = recorded(name).split("\n")[found["write_bandwidth"].line - 1]
    assert "write: IOPS=" in line or '"bw_bytes"' in line
    assert found["write_bandwidth"].line > recorded(name).count("\n") / 2


@pytest.mark.parametrize("name", ["repeats.stdout", "repeats.reports"])
def test_repeats_of_a_live_fio_remain_trials(name: str) -> None:
    outputs = read_log("fio", recorded(name))
    assert [output.problem for output in outputs] == [None, None]
    assert len({output.measurements[0].value for output in outputs}) == 2


def at(seconds: float) -> str:
    return time.strftime("%a %b %e %H:%M:%S %Y", time.gmtime(seconds))


def text_after(ms: int, began: float, *, pid: int, header: bool, version: tuple[int, ...] = (3, 33)) -> str:
    """What fio prints when a job has run so long: it does 2,500 writes a second."""
    side = replace(plain().sides["write"], ms=ms, ios=max(1, ms * 5 // 2))
    return report([plain(sides={"write": side}, pid=pid)], Style(version, date=at(began + ms / 1e3), header=header))


def test_snapshots_of_a_fio_that_prints_no_time_are_told_by_process_and_header() -> None:
    version = (2, 0, 8)
    snapshots = [text_after(ms, 0, pid=77, header=ms == 1000, version=version) for ms in (1000, 2000, 3001)]
    assert len(read_log("fio", "".join(snapshots))) == 1
    repeats = [text_after(ms, 0, pid=77, header=True, version=version) for ms in (1000, 2000, 3001)]
    assert len(read_log("fio", "".join(repeats))) == 3


def test_a_snapshot_right_before_the_end_of_a_short_run_is_no_trial() -> None:
    """Of a real log of fio 3.1 with runtime=1 and --status-interval=1: the times tell nothing, the header does."""
    texts = [text_after(ms, 1e9 + 0.01, pid=4896, header=ms == 980, version=(3, 1)) for ms in (980, 1000)]
    assert len(read_log("fio", "".join(texts))) == 1


def test_snapshots_of_two_runs_in_one_file_are_two_trials() -> None:
    first = [text_after(ms, 1e9, pid=77, header=ms == 1000) for ms in (1000, 2000, 3001)]
    second = [text_after(ms, 1e9 + 10, pid=78, header=ms == 1000) for ms in (1000, 2000, 3001)]
    outputs = read_log("fio", "".join([*first, *second]))
    assert [output.form for output in outputs] == ["text after 2 snapshots of fio-3.33"] * 2


def json_after(ms: int, began: float, *, bytes_of: int, stamps: str) -> str:
    """A report as fio prints it when a job has run so long; `stamps` says which of the times its version prints."""
    told = json.loads(recorded("repeats.reports").partition("\n}\n")[0] + "\n}")
    now, job = began + ms / 1e3, told["jobs"][0]
    for key, value in (("timestamp_ms", int(now * 1e3)), ("timestamp", int(now))):
        del told[key]
        if key in stamps.split():
            told[key] = value
    ios = bytes_of // 4096
    job["elapsed"], job["ctx"], job["job options"] = math.ceil(ms / 1e3), ios, {"rw": "randwrite"}
    told["global options"] = {}
    job["write"] |= {
        "io_bytes": ios * 4096,
        "total_ios": ios,
        "runtime": ms,
        "bw_bytes": ios * 4096 * 1000 // ms,
        "iops": ios * 1000 / ms,
    }
    return json.dumps(told, indent=2) + "\n"


def in_json(stamps: str, bytes_of: int = 0) -> Callable[[int, float, int], str]:
    return lambda ms, began, _: json_after(ms, began, bytes_of=bytes_of or ms * 40_960, stamps=stamps)


def in_text(*, header: bool, same_process: bool) -> Callable[[int, float, int], str]:
    """In a container every fio may have the same process number."""
    return lambda ms, began, place: text_after(ms, began, pid=7 if same_process else 100 + place, header=header)


STAMPS = ("timestamp timestamp_ms", "timestamp")
SNAPSHOTS: list[Callable[[int, float, int], str]] = [
    lambda ms, began, place: text_after(ms, began, pid=77, header=not place), *map(in_json, STAMPS),
]  # fmt: skip
REPEATS = [*(in_text(header=h, same_process=s) for h in (True, False) for s in (True, False)), *map(in_json, STAMPS)]
"""What prints a report: from run time in ms, when the run began, and which report of the file it is."""


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(SNAPSHOTS), st.floats(1e9, 2e9), st.integers(1000, 60_000), st.integers(2, 6), st.integers(1, 999)
)
def test_snapshots_are_one_trial(
    shown: Callable[[int, float, int], str], began: float, interval_ms: int, number_of: int, odd_ms: int
) -> None:
    times = [interval_ms * (place + 1) for place in range(number_of)]
    times[-1] += odd_ms
    (output,) = read_log("fio", "".join(shown(ms, began, place) for place, ms in enumerate(times)))
    assert output.problem is None
    assert {row.metric: row.value for row in output.measurements}["elapsed"] == times[-1] / 1e3


def repeats(shown: Callable[[int, float, int], str], began: float, times: list[int], pause_s: float) -> int:
    """How many trials there are in the reports of runs one after the other."""
    texts = []
    for place, ms in enumerate(times):
        texts.append(shown(ms, began, place))
        began += ms / 1e3 + pause_s
    return len(read_log("fio", "".join(texts)))


@pytest.mark.slow
@settings(deadline=None, max_examples=120)
@given(st.sampled_from(REPEATS), st.floats(1e9, 2e9), st.integers(1500, 60_000), st.integers(2, 6), st.integers(0, 50))
def test_repeats_remain_trials(
    shown: Callable[[int, float, int], str], began: float, ms: int, number_of: int, more_ms: int
) -> None:
    """A later run may do more, and take longer."""
    times = [ms + place * more_ms for place in range(number_of)]
    assert repeats(shown, began, times, 0.3 if REPEATS.index(shown) < 4 else 0.05) == number_of


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(st.sampled_from(STAMPS), st.floats(1e9, 2e9), st.integers(20, 900), st.integers(2, 6), st.integers(0, 400))
def test_short_repeats_of_a_fixed_amount_remain_trials(
    stamps: str, began: float, ms: int, number_of: int, more_ms: int
) -> None:
    """Many runs may end in the same second, and by chance each may take longer than the one before."""
    times = [ms + place * more_ms for place in range(number_of)]
    assert repeats(in_json(stamps, 2**26), began, times, 0.05) == number_of


def test_reports_without_times_that_may_be_snapshots_or_runs_are_refused_with_the_reason() -> None:
    """fio 2.1 prints no time in JSON."""
    growing = "".join(json_after(ms, 0, bytes_of=ms * 40_960, stamps="") for ms in (1000, 2000, 3000))
    said = problem(growing)
    assert said.startswith("these may be snapshots of one run (--status-interval), or several runs\n")
    assert "3 reports of the same jobs" in said
    assert "put each run into a file of its own" in said
    same = "".join(json_after(ms, 0, bytes_of=2**26, stamps="") for ms in (1000, 2000, 3000))
    assert len(read_log("fio", same)) == 3, "a fixed amount is no snapshot of itself"


# --- clients ------------------------------------------------------------------------------------------


def test_clients_in_text_are_one_trial_with_their_sum() -> None:
    """Trap: each client becomes a trial, and the sum, whose unit fio forgets ('BW=28.7Mi (30.1M)'), is refused."""
    text = recorded("clients.stdout")
    assert "BW=28.7Mi (30.1M)(57.4MiB/2002msec)" in text
    found = figures(text)
    assert found["write_bandwidth"] == pytest.approx(28.7 * 2**20)
    assert (found["write_ios"], found["sync_ios"]) == (14689, 1836)
    assert found["write_bandwidth vm a.0"] + found["write_bandwidth vm a.1"] == pytest.approx(
        found["write_bandwidth"], rel=0.01
    )
    assert len(read_log("fio", text + text)) == 2, "repeats are trials"


def test_the_sum_of_clients_alone_is_read() -> None:
    text = recorded("clients.stdout")
    alone = text[text.index("All clients: ") :]
    assert figures(alone)["write_bandwidth"] == pytest.approx(28.7 * 2**20)
    (cut,) = read_log("fio", alone[: alone.index("  cpu ")])
    assert cut.problem is None
    assert cut.notes == ("job All clients: not in this text: the number of I/Os ('issued ...')",)


def test_clients_that_do_not_add_up_are_not_believed() -> None:
    text = recorded("clients.stdout")
    first = text.index("a: (groupid")
    second = text.index("a: (groupid", first + 1)
    assert problem(text[:first] + text[second:]).startswith("fio's clients and their sum do not agree\n")


def client_report() -> Any:
    text = recorded("clients.jsonplus")
    return json.JSONDecoder().raw_decode(text, text.index("{"))[0]


def without_counts(told: Any) -> Any:
    """As fio 3.0 to 3.17 prints it: a latency does not say how many I/Os it is of; 3.7 has no job_runtime."""
    if isinstance(told, list):
        return [without_counts(each) for each in told]
    if isinstance(told, dict):
        return {key: without_counts(value) for key, value in told.items() if key not in ("N", "job_runtime")}
    return told


def test_json_of_clients_of_fio_3_7_is_read() -> None:
    """Made from a recording of fio 3.33, as 3.7 prints it."""
    told = client_report()
    today = figures(json.dumps(told, indent=1))
    old = figures(json.dumps(without_counts(told), indent=1))
    assert old == {key: value for key, value in today.items() if key not in ("user_cpu", "system_cpu")}


def test_the_sum_of_clients_in_json_is_held_against_them_and_read_where_it_is_alone() -> None:
    told = client_report()
    *clients, whole = told["client_stats"]
    assert whole["jobname"] == "All clients"
    side = "write" if whole["write"]["io_bytes"] else "read"
    alone = figures(json.dumps({**told, "client_stats": [whole]}, indent=1))
    assert alone[f"bytes {side}"] == whole[side]["io_bytes"]
    lost = json.dumps({**told, "client_stats": [*clients[1:], whole]}, indent=1)
    assert "fio's figures do not agree" in problem(lost)


# --- as people paste and keep logs ------------------------------------------------------------------------------------


def test_an_edited_report_in_json_says_what_is_allowed() -> None:
    told = recorded("repeats.reports").replace('"jobs" : [', '"jobs" : [ ...', 1)
    (first, _) = read_log("fio", told, where="log.txt")
    assert "from its first brace to its last" in str(first.problem)


def test_a_latency_longer_than_the_run_is_missing() -> None:
    """Trap: fio 2.1.11 prints `lat (msec): min=756523K, max=756553K, avg=756537530.85` for 30 s without clat."""
    text = report([plain()], Style((2, 1, 10)))
    line = next(line for line in text.split("\n") if line.startswith("     lat"))
    wrong = text.replace(line, "     lat (msec): min=756523K, max=756553K, avg=756537530.85, stdev=8719.64")
    assert {*figures(text)} - {*figures(wrong)} == {"write_latency_mean"}
    told = json.loads(recorded("repeats.reports").partition("\n}\n")[0] + "\n}")
    told["jobs"][0]["write"]["lat_ns"]["mean"] = 756_537_530_850_000.0
    whole = json.dumps(told, indent=1)
    assert "write_latency_mean" not in figures(whole)
    assert "write_latency_mean" not in set(tidy("fio", [("x", whole.encode())]).frame["metric"])


def test_a_log_without_its_sums_is_read_and_says_so() -> None:
    text = report([plain()], Style((3, 33)))
    (output,) = read_log("fio", text[: text.index("Run status")])
    assert output.measurements == read_log("fio", text)[0].measurements
    assert "('Run status group') are not in this text" in output.notes[0]


# --- as a run ---------------------------------------------------------------------------------------------------------


def imported(directory: Path, results: Path, files: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> Run:
    for name, text in files.items():
        (directory / name).write_text(text)
    monkeypatch.chdir(directory)
    raw = {"question": "?", "tool": "fio", "files": "{filesystem}-{repeat}.txt", "metrics": ["write_bandwidth"]}
    return load_run(import_patterns(raw, results=results))


def test_slow_trials_of_a_run_keep_their_latency(
    tmp_path: Path, results_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trap: the mean of the three fast trials of five, and a false `faster`."""
    files, side = {}, plain().sides["write"]
    for place, (mean, most) in enumerate([(4.5, 0.9), (4.7, 0.95), (4.66, 0.99), (10.4, 4.2514), (10.5, 4.3)], start=1):
        whole = Latency(1_000_000, round(most * 1e9), mean * 1e6, 2e6)
        trial = plain(sides={"write": replace(side, whole=whole, ms=2000 + place)}, pid=place)
        files[f"disk-{place}.txt"] = report([trial], Style((2, 1, 10)))
    rows = imported(tmp_path, results_dir, files, monkeypatch).estimates
    (latency,) = rows[rows["metric"] == "write_latency_mean"].itertuples()
    assert (latency.n, latency.mean) == (5, pytest.approx(6.952e-3))


def test_snapshots_become_one_trial_of_a_run(
    tmp_path: Path, results_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trap: n = 4 with an interval, of one run."""
    files = {"disk-1.txt": recorded("status-interval.stdout"), "ram-1.txt": recorded("status-interval.reports")}
    run = imported(tmp_path, results_dir, files, monkeypatch)
    assert run.trials["status"].tolist() == ["ok", "ok"]
    rows = run.estimates[run.estimates["metric"] == "write_bandwidth"]
    assert set(rows["n"]) == {1}
    assert rows["low"].isna().all()


SEVERAL = {
    "json, a group": ("clones.jsonplus", ("bytes read", "bytes write"), None),
    "json, two groups": ("jobs.jsonplus", ("bytes read", "bytes write"), True),
    "text, a group": (lambda: report([plain(name="a"), plain(name="b")], Style((3, 33))), ("bytes write",), None),
    "text, two groups": (lambda: in_two_groups((3, 33)), ("bytes write",), True),
    "text of fio 2, two groups": (lambda: in_two_groups((2, 1, 10)), ("bytes write",), True),
    "text without its sums": (lambda: in_two_groups((3, 33)).partition("\nRun status")[0], (), False),
}  # fmt: skip


def in_two_groups(version: tuple[int, ...]) -> str:
    """What fio prints of two jobs with a group each."""
    jobs = report([plain(name="a"), plain(name="b")], Style(version)).partition("\nRun status group 0")[0]
    (own,) = report([plain(name="a")], Style(version)).split("\nRun status group 0")[1:]
    return jobs.replace("b: (groupid=0", "b: (groupid=1") + "".join(f"\nRun status group {n}{own}" for n in (0, 1))


@every_row("row", SEVERAL)
def test_amounts_of_several_jobs_are_their_sum_and_a_note_says_so(row: str) -> None:
    """Without a word in one group, where all figures have a sum."""
    source, names, summed = SEVERAL[row]
    output = read_one("fio", source() if callable(source) else recorded(source))
    found = {f"{each.metric} {each.label}": each.value for each in output.measurements if each.metric == "bytes"}
    if not callable(source):
        jobs = json.loads(recorded(source))["jobs"]
        expected = {name: sum(job[name.split()[1]]["io_bytes"] for job in jobs) for name in names}
    else:
        expected = dict.fromkeys(names, 2 * 10_000 * 4096)
    assert found == pytest.approx({name: value for name, value in expected.items() if value}, rel=2e-3)
    note = "amounts of single jobs are left out" + (": `bytes` is the sum of all" if summed else "")
    assert [each for each in output.notes if each.startswith("amounts")] == ([] if summed is None else [note])


SUMS = """Without the patch:
Run status group 0 (all jobs):
  WRITE: io=3200.0MB, aggrb=13095KB/s, minb=3273KB/s, maxb=3284KB/s, mint=249447msec, maxt=250214msec

Run status group 1 (all jobs):
   READ: io=1595.2MB, aggrb=8825KB/s, minb=2194KB/s, maxb=2224KB/s, mint=184517msec, maxt=185077msec
  WRITE: io=1604.9MB, aggrb=8879KB/s, minb=2207KB/s, maxb=2245KB/s, mint=184519msec, maxt=185079msec
"""


def test_sums_of_several_groups_without_their_jobs_are_read_and_begin_again_with_each_run() -> None:
    first, second = read_log("fio", SUMS + SUMS.replace("Without", "With").replace("13095KB", "13096KB"))
    assert first.problem is second.problem is None
    found = {f"{row.metric} {row.label}": row.value for row in first.measurements}
    expected = {
        "bytes write": 4804.9 * 2**20, "bytes read": 1595.2 * 2**20, "write_bandwidth group 0": 13095 * 1024,
        "elapsed group 0": 250.214, "read_bandwidth group 1": 8825 * 1024, "write_bandwidth group 1": 8879 * 1024,
        "elapsed group 1": 185.079,
    }  # fmt: skip
    assert found == pytest.approx(expected, rel=1e-3)
    assert "the jobs are not in this text: figures are those of 'Run status group'" in first.notes


def test_sums_before_and_after_a_patch_are_two_outputs() -> None:
    bare = "".join(line for line in SUMS.splitlines(keepends=True) if not line.startswith("Run"))
    before, after = ("READ: io=1595.2MB, aggrb=8825KB/s", "READ: io=1700.2MB, aggrb=9406KB/s")
    one = next(line for line in bare.splitlines() if "READ" in line)
    first, second = read_log("fio", f"> before:\n> {one}\n> after:\n> {one.replace(before, after)}\n")
    values = [next(iter(output.measurements)).value for output in (first, second)]
    assert values == pytest.approx([8825 * 1024, 9406 * 1024], rel=1e-3)


def test_the_sums_of_a_run_may_be_repeated_below_it_but_not_others() -> None:
    text = recorded("human-randrw.stdout")
    sums = "Run status group 0" + text.split("Run status group 0")[1].partition("\nDisk stats")[0]
    words = "\nThe sums say how much it was:\n\n"
    assert figures(f"{text}{words}{sums}\n") == figures(text)
    changed = {"76.6MiB": "38.3MiB", "80.3MB": "40.2MB", "io=153MiB (161MB)": "io=76.6MiB (80.3MB)"}
    for old, new in changed.items():
        sums = sums.replace(old, new)
    assert "not whole" in problem(f"{text}{words}{sums}\n")


def test_completions_that_take_longer_than_the_whole_were_not_measured() -> None:
    """As fio with io_uring's sqthread_poll prints them, in text and JSON; a bit of rounding is none."""
    text = report([plain()], Style((3, 33)))
    whole = next(line for line in text.split("\n") if line.lstrip().startswith("lat ("))
    shown = re.sub(r"avg=[^,]*", "avg=42.45", whole)
    for output in (read_one("fio", text.replace(whole, shown)), read_one("fio", json.dumps(unmeasured()))):
        names = {row.metric for row in output.measurements}
        assert {"write_latency_mean", "write_iops"} <= names
        assert not any(name.startswith(("write_completion", "write_latency_p")) for name in names)
        assert any("completions of writes took longer than the whole writes" in note for note in output.notes)
    frame = tidy("fio", [("x", json.dumps(unmeasured()).encode())]).frame
    assert not any(name.startswith(("write_completion", "write_latency_p")) for name in frame["metric"])
    assert "write_latency_p50" in figures(text)


def unmeasured() -> Any:
    """A report whose completions took 17 s each, as long as fio's scale is."""
    told = json.loads(recorded("psync-randwrite-fsync1.jsonplus"))
    section = told["jobs"][0]["write"]["clat_ns"]
    del section["bins"]
    section["mean"] = 4e12
    section["percentile"] = dict.fromkeys(section.get("percentile", {"50.000000": 0}), 17112760320)
    return told
