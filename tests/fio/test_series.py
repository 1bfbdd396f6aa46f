"""fio's logs over time: read whole and in base units, or refused with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mountlab.core.errors import ParseError
from mountlab.fio.series import Series, SeriesPoint, mean_over_jobs, read_series, together, window_ms
from mountlab.outcome.archive import LARGEST_ARCHIVE
from rows import every_row

DATA = Path(__file__).parents[1] / "data" / "fio"
LOGS = {path.name: path.read_text() for path in DATA.glob("fio_*.log")}


def test_the_recorded_logs_give_series_in_base_units() -> None:
    found = {(series.metric, series.job): series for series in read_series(LOGS)}
    bandwidth = found["read_bandwidth", 1]
    assert bandwidth.unit == "B/s"
    assert bandwidth.points[0] == SeriesPoint(0.2, 11240 * 1024.0)  # fio's log has KiB/s
    assert found["write_bandwidth", 1].points[0].value == 12140 * 1024
    assert found["read_iops", 1].points[0] == SeriesPoint(0.2, 2810.0)
    latency = found["write_latency_mean", 2]
    assert (latency.unit, latency.points[0].value) == ("s", pytest.approx(530.959e-6))
    assert {"read_submission_latency_mean", "write_completion_latency_mean"} <= {metric for metric, _ in found}


def test_every_window_of_the_recording_is_there_and_time_goes_on() -> None:
    for series in read_series(LOGS):
        times = [point.seconds for point in series.points]
        assert times == sorted(times)
        assert len(times) >= 5
        assert all(point.value > 0 for point in series.points)


def test_jobs_together_add_up_window_by_window() -> None:
    """Windows that end a little apart are the same window; one that a job has nothing in is left out."""
    one = Series("read_bandwidth", "B/s", 1, tuple(SeriesPoint(0.1 * i, 10.0 * i) for i in range(1, 6)))
    two = Series("read_bandwidth", "B/s", 2, tuple(SeriesPoint(0.1 * i + 0.004, 1.0) for i in (1, 2, 4, 5)))
    other = Series("write_bandwidth", "B/s", 1, one.points)
    assert together([one, two, other], "read_bandwidth") == [(pytest.approx(0.1 * i), 10 * i + 1) for i in (1, 2, 4, 5)]
    assert together([one], "read_bandwidth") == [(pytest.approx(0.1 * i), 10 * i) for i in range(1, 6)]
    assert together([one], "read_iops") == []
    assert together([Series("read_bandwidth", "B/s", 1, (SeriesPoint(0.0, 3.0),))], "read_bandwidth") == [(0, 3)]


def test_one_recorded_job_is_what_it_is_alone() -> None:
    series = read_series(LOGS)
    own = {each.metric: each for each in series if each.metric.endswith("_bandwidth")}
    assert len(own) > 1
    for metric, alone in own.items():
        assert [value for _, value in together(series, metric)] == [point.value for point in alone.points]


def test_other_files_and_empty_logs_are_no_series() -> None:
    assert read_series({"fio_bw.1.log": "", "fio.json": "{}", "x_bw.1.log": "1", "fio_bw.1.log.gz": "2"}) == []


def test_block_sizes_and_priorities_may_follow_a_value() -> None:
    (series,) = read_series({"fio_lat.12.log": "5, 1500, 1, 4096, 0, 0x0004\n"})
    assert (series.metric, series.job, series.points) == ("write_latency_mean", 12, (SeriesPoint(0.005, 1.5e-6),))


@every_row(
    ("text", "line", "what"),
    [
        ("1, 2, 0, 0\n1, 2, 0", 2, "cut off"), ("1, 2, 0, 0", 1, "cut off"), ("1, 2, 0\n", 1, "not a line"),
        ("1, 2, 0, 0\n\n", 2, "not a line"), ("1, -2, 0, 0\n", 1, "not a line"), ("1, 2, 3, 0\n", 1, "not a line"),
        ("1, nan, 0, 0\n", 1, "not a line"), ("1, 2.5, 0, 0\n", 1, "not a line"),
    ],
)  # fmt: skip
def test_a_line_that_cannot_be_read_is_named(text: str, line: int, what: str) -> None:
    with pytest.raises(ParseError, match=what) as caught:
        read_series({"fio_iops.1.log": text})
    assert caught.value.where == f"fio_iops.1.log, line {line}"


@given(st.text(max_size=60))
def test_any_text_gives_series_or_the_documented_error(text: str) -> None:
    try:
        found = read_series({"fio_bw.1.log": text})
    except ParseError:
        return
    assert all(point.value >= 0 for series in found for point in series.points)


@every_row("name", sorted(LOGS))
def test_a_log_cut_anywhere_gives_no_invented_point(name: str) -> None:
    whole = {series.metric: series.points for series in read_series({name: LOGS[name]})}
    for end in range(len(LOGS[name])):
        try:
            found = read_series({name: LOGS[name][:end]})
        except ParseError:
            continue
        for series in found:
            assert series.points == whole[series.metric][: len(series.points)]


def test_the_latency_of_all_jobs_is_weighted_by_their_ios() -> None:
    """Job 1 does 30 I/Os of 1 s while job 2 does 10 of 5 s: 80 s for 40 I/Os."""
    rates = [Series("read_iops", "1/s", job, (SeriesPoint(0.1, rate),)) for job, rate in ((1, 30.0), (2, 10.0))]
    latencies = [Series("read_latency_mean", "s", job, (SeriesPoint(0.1, s),)) for job, s in ((1, 1.0), (2, 5.0))]
    found = mean_over_jobs([*rates, *latencies], "read_latency_mean", "read_iops")
    assert found == [(pytest.approx(0.1), 2.0)]
    assert mean_over_jobs(latencies[:1], "read_latency_mean", "read_iops") == [(0.1, 1.0)]
    assert mean_over_jobs([], "read_latency_mean", "read_iops") == []


@every_row(("runtime_s", "expected"), [(0.5, 50), (1, 50), (4, 200), (10, 500), (20, 1000), (60, 1000), (3600, 1000)])
def test_windows_are_a_second_and_shorter_in_short_trials(runtime_s: float, expected: int) -> None:
    found = window_ms(1, runtime_s=runtime_s, expected_s=runtime_s)
    assert found == expected
    assert runtime_s * 1000 / found >= 10


@every_row("jobs", [1, 4, 16])
@every_row("runtime_s", [1.0, 600.0, 86400.0, 7 * 86400.0])
def test_what_the_logs_take_stays_below_what_a_trial_may_bring_back(jobs: int, runtime_s: float) -> None:
    """Five logs a job, in two directions, with lines of some 32 bytes."""
    size = 5 * 2 * 32 * jobs * runtime_s * 1000 / window_ms(jobs, runtime_s=runtime_s, expected_s=runtime_s)
    assert size < LARGEST_ARCHIVE / 4
    slow = 5 * 32 * jobs * 600 * 1000 / window_ms(jobs, runtime_s=None, expected_s=0.1)
    assert slow < LARGEST_ARCHIVE / 4


def test_many_jobs_keep_no_logs_unless_they_are_asked_for() -> None:
    assert window_ms(16, runtime_s=1, expected_s=1) > 0
    assert window_ms(17, runtime_s=1, expected_s=1) == 0
