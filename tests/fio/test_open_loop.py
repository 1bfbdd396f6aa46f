"""Open-loop load with fio: what is run, and what a log says of requests that were due on time.

The servers here are simulated request by request, with the threads' own schedules: the truth is known, and the log
holds only what fio would have written of it.
"""

from __future__ import annotations

import heapq
import re
from dataclasses import dataclass

import numpy as np
import pytest
from mountlab.core.errors import ParameterError, ParseError, ToolError
from mountlab.core.model import Target, Workload
from mountlab.core.search import Objective, Search
from mountlab.fio import open_loop
from mountlab.fio.tool import Fio
from rows import every_row

OPTIONS = {"rw": "randread", "bs": 4096, "size": 2**26, "runtime": 8.0, "ioengine": "psync", "numjobs": 1}
BEGIN_MS = 1_795_000_000_000


def search(limit_s: float = 0.005, **more: float) -> Search:
    return Search(objective=Objective(limits={"p99": limit_s}, of=("read",)), **more)  # type: ignore[arg-type]


@dataclass
class Truth:
    """What a simulated server did: of each request when it was due, issued and done, in seconds."""

    due: np.ndarray
    issued: np.ndarray
    done: np.ndarray
    thread: np.ndarray

    def log(self) -> str:
        """What fio would log: thread after thread, the end in milliseconds, the latency from the issue."""
        rows = sorted(zip(self.thread, self.done, self.issued, strict=True))
        return "".join(
            f"{BEGIN_MS + int(done * 1e3)}, {round((done - issued) * 1e9)}, 0, 4096, 0\n" for _, done, issued in rows
        )

    def percentile(self, percent: float, begin: float, end: float) -> float:
        """Of the latency from when requests were due."""
        own = (self.due >= begin) & (self.due < end)
        return float(np.quantile((self.done - self.due)[own], percent / 100))


def served(
    rate: float, threads: int, service_s: float, seconds: float, *, pause: tuple[float, float] = (0, 0)
) -> Truth:
    """Requests of so many threads, each with one at a time, at one server that takes them in order of issue and does
    nothing during the pause."""
    rng = np.random.default_rng(7)
    schedules = [
        np.cumsum(rng.exponential(threads / rate, int(3 * rate * seconds / threads) + 20)) for _ in range(threads)
    ]
    places, rows, free = [0] * threads, [], 0.0
    waiting = [(own[0], thread) for thread, own in enumerate(schedules)]
    heapq.heapify(waiting)
    while waiting:
        issued, thread = heapq.heappop(waiting)
        begin = max(issued, free)
        if pause[0] <= begin < pause[1]:
            begin = pause[1]
        free = done = begin + service_s
        rows.append((schedules[thread][places[thread]], issued, done, thread))
        places[thread] += 1
        following = max(schedules[thread][places[thread]], done + 1e-6)
        if following < seconds:
            heapq.heappush(waiting, (following, thread))
    due, issue, end, thread_of = (np.array(column) for column in zip(*rows, strict=True))
    return Truth(due, issue, end, thread_of)


@dataclass
class Overload:
    """A trial of which each thread ends with requests that were due and never issued."""

    issued: Truth
    latency: np.ndarray
    """Of each request that was due in the counted time; of those that were never issued how long they had waited."""


def overload(rate: float, threads: int, service_s: float, counted_s: float) -> Overload:
    """Threads that begin at random within 2 s, each with a request at once, and end as long after that as fio's do."""
    rng = np.random.default_rng(3)
    begins = np.sort(rng.uniform(0, open_loop.SPREAD_S, threads))
    lasts_s = open_loop.settle_s(counted_s) + counted_s
    most = int(9 * lasts_s * rate / threads) + 50
    schedules = [begin + np.append(0, np.cumsum(rng.exponential(threads / rate, most)))
                 for begin in begins]  # fmt: skip
    places, rows, free, never = [0] * threads, [], 0.0, []
    queue = [(own[0], thread) for thread, own in enumerate(schedules)]
    heapq.heapify(queue)
    while queue:
        issued, thread = heapq.heappop(queue)
        free = done = max(issued, free) + service_s
        rows.append((schedules[thread][places[thread]], issued, done, thread))
        places[thread] += 1
        following = schedules[thread][places[thread]]
        ends = begins[thread] + lasts_s
        if max(following, done) < ends:
            heapq.heappush(queue, (max(following, done + 1e-6), thread))
        else:
            left = schedules[thread][places[thread] :]
            never += [(due, done - due) for due in left[left < done]]
    truth = Truth(*(np.array(column) for column in zip(*rows, strict=True)))
    since, until = begins[0] + lasts_s - counted_s, begins[0] + lasts_s
    waits = [wait for due, wait in never if since <= due < until]
    known = (truth.due >= since) & (truth.due < until)
    return Overload(truth, np.concatenate([(truth.done - truth.due)[known], waits]))


SETTLE_S = open_loop.settle_s(8.0)
LASTS_S = SETTLE_S + 8.0


def arrivals(truth: Truth, rate: float, threads: int) -> open_loop.Arrivals:
    return open_loop.arrivals(truth.log(), {"read": (rate, threads)}, SETTLE_S, 8.0)["read"]


def figures(found: open_loop.Arrivals, limit_s: float) -> dict[str, float]:
    rows = open_loop.measurements({"read": found}, search(limit_s).objective)
    return {row.metric: row.value for row in rows}


@every_row(("load", "threads"), [(0.5, 20), (0.8, 20), (0.5, 200), (0.8, 200), (0.95, 200)])
def test_latency_counts_from_when_a_request_was_due(load: float, threads: int) -> None:
    truth = served(1000.0, threads, load / 1000, LASTS_S)
    found = figures(arrivals(truth, 1000.0, threads), 1.0)
    true_p99 = truth.percentile(99, SETTLE_S, LASTS_S)
    assert found["read_latency_p99"] == pytest.approx(true_p99, rel=0.1, abs=1e-3)
    assert found["arrival_rate"] == pytest.approx(1000.0, rel=0.05)


def test_with_too_few_threads_nothing_is_said_near_the_limit() -> None:
    """Most requests find their thread busy, and the latency from their issue is far less than that of the arrivals."""
    truth = served(1000.0, 20, 0.95e-3, LASTS_S)
    found, true_p99 = arrivals(truth, 1000.0, 20), truth.percentile(99, SETTLE_S, LASTS_S)
    assert np.quantile(found.latency, 0.99) < 0.8 * true_p99
    assert "objective_used" not in figures(found, 0.8 * true_p99)
    assert figures(found, 0.2 * true_p99)["objective_used"] > 1


@pytest.mark.parametrize(("off", "holds"), [(0.8, False), (1.25, True)])
def test_the_objective_is_judged_as_the_truth_is(off: float, holds: bool) -> None:
    truth = served(1000.0, 100, 0.9e-3, LASTS_S)
    limit_s = off * truth.percentile(99, SETTLE_S, LASTS_S)
    assert (figures(arrivals(truth, 1000.0, 100), limit_s)["objective_used"] <= 1) is holds


def test_more_than_the_server_can_do_fails_the_objective() -> None:
    """The issue's own example, where a closed loop sees 0.1 ms: a server of 50 a second, and 100 arrive."""
    truth = served(100.0, 100, 0.02, LASTS_S)
    found = figures(arrivals(truth, 100.0, 100), 0.986)
    assert found["objective_used"] > 1
    assert found["completion_rate"] == pytest.approx(50, rel=0.03)
    assert found["asked_rate"] == 100


@every_row(("load", "threads", "within"), [(1.1, 200, 0.2), (1.5, 200, 0.08), (2.0, 100, 0.08), (4.0, 400, 0.08)])
def test_percentiles_in_overload_count_what_was_due_and_never_issued(load: float, threads: int, within: float) -> None:
    """Ten seconds of a server of 500 a second. Of a request that was never issued counts how long it had waited.
    How far behind a thread is follows from chance where the server has next to enough time."""
    truth, rate = overload(500 * load, threads, 1 / 500, 10.0), 500 * load
    log = truth.issued.log()
    found = open_loop.arrivals(log, {"read": (rate, threads)}, open_loop.settle_s(10.0), 10.0)["read"]
    assert found.due == pytest.approx(len(truth.latency), rel=0.03)
    for percent in (50, 95, 99):
        true = float(np.quantile(truth.latency, percent / 100))
        assert found.percentile(percent) == pytest.approx(true, rel=within), percent
    assert not found.short
    assert figures(found, 0.5)["objective_used"] > 1


def test_a_pause_of_the_server_counts_for_all_that_were_due_in_it() -> None:
    """150 ms in 8 s are 1.9 % of the requests: the 99th percentile sees them, whichever were issued meanwhile."""
    truth = served(2000.0, 400, 0.1e-3, LASTS_S, pause=(8.0, 8.15))
    found = figures(arrivals(truth, 2000.0, 400), 0.02)
    assert found["objective_used"] > 1
    assert truth.percentile(99, SETTLE_S, LASTS_S) > 0.02


def without(truth: Truth, gone: np.ndarray) -> Truth:
    return Truth(*(each[~gone] for each in (truth.due, truth.issued, truth.done, truth.thread)))


@pytest.mark.slow
def test_a_generator_that_stood_still_or_fell_behind_kept_no_schedule() -> None:
    truth = served(2000.0, 400, 0.1e-3, LASTS_S)
    still = arrivals(without(truth, (truth.due > 8) & (truth.due < 8.2)), 2000.0, 400)
    assert still.stall == pytest.approx(0.2, abs=0.02)
    assert figures(still, 0.02)["largest_lateness"] == pytest.approx(0.2, abs=0.02)
    assert "objective_used" not in figures(still, 0.02) or figures(still, 0.02)["objective_used"] > 1
    behind = arrivals(without(truth, np.arange(len(truth.due)) % 20 == 0), 2000.0, 400)
    assert behind.short
    assert "objective_used" not in figures(behind, 0.02)
    assert not arrivals(truth, 2000.0, 400).short


def test_bounds_hold_the_truth() -> None:
    """Of the requests that are later than a limit: no fewer than the least, no more than the most."""
    truth = served(1000.0, 30, 0.9e-3, LASTS_S)
    found = arrivals(truth, 1000.0, 30)
    own = (truth.due >= SETTLE_S) & (truth.due < LASTS_S)
    for limit_s in (0.002, 0.005, 0.01, 0.02):
        late = np.count_nonzero((truth.done - truth.due)[own] > limit_s)
        least, expected, most = found.late(limit_s)
        assert least <= late + 5
        assert most >= late - 5
        assert least <= expected <= most
        assert expected == pytest.approx(late, rel=0.15, abs=20)


@every_row("rate", [1.0, 2.0, 17.0, 3141.0, 99_999.0])
@every_row("rw", ["randread", "randwrite", "randrw"])
def test_the_jobs_ask_for_the_rate_and_no_thread_for_too_much(rate: float, rw: str) -> None:
    options = {**OPTIONS, "rw": rw}
    text = open_loop.job_file({"rw": rw, "bs": "4096"}, search(), rate, options, "/out")
    jobs = [int(a) * int(b) for a, b in re.findall(r"numjobs=(\d+)\nrate_iops=(\d+)", text)]
    assert sum(jobs) == max(rate, 2 if rw == "randrw" else 1)
    assert text.count("rate_process=poisson") == 1
    assert "rw=randrw" not in text
    counts = [int(clones) for clones in re.findall(r"numjobs=(\d+)", text)]
    assert sum(counts) <= 2 * open_loop.MOST_THREADS


def objective(*percentiles: str, of: tuple[str, ...] = ("read",)) -> Objective:
    return Objective(limits=dict.fromkeys(percentiles, 0.005), of=of)  # type: ignore[arg-type]


@every_row(
    ("asked", "runtime", "rate", "counted"),
    [
        (objective("p99"), 2.0, 500.0, 2.0), (objective("p99"), 2.0, 200.0, 5.0), (objective("p99"), 2.0, 25.0, 40.0),
        (objective("p99"), 60.0, 25.0, 60.0), (objective("p50"), 2.0, 2.0, 10.0),
        (objective("p50", "p99_9"), 2.0, 1000.0, 10.0),
    ],
)  # fmt: skip
def test_a_trial_lasts_until_ten_requests_lie_beyond_its_percentile(
    asked: Objective, runtime: float, rate: float, counted: float
) -> None:
    """p99 has ten of 1,000 requests above it, p99.9 of 10,000, p50 of 20."""
    assert open_loop.counted_s({**OPTIONS, "runtime": runtime}, asked, rate) == pytest.approx(counted)


@every_row(
    ("asked", "more", "floor"),
    [
        (objective("p99"), {}, 25), (objective("p99"), {"runtime": 100.0}, 10), (objective("p99_9"), {}, 250),
        (objective("p50"), {}, 2), (objective("p99", of=("read", "write")), {"rw": "randrw", "rwmixread": 90}, 250),
        (objective("p99"), {"rw": "randrw", "rwmixread": 90}, 28),
    ],
)  # fmt: skip
def test_the_floor_is_the_lowest_rate_whose_requests_come_in_40_s_or_the_runtime(
    asked: Objective, more: dict[str, object], floor: int
) -> None:
    assert open_loop.least_rate({**OPTIONS, **more}, asked) == floor  # type: ignore[dict-item]


@every_row("rate", [25.0, 77.0, 200.0, 1000.0])
def test_what_fio_echoes_tells_how_long_requests_counted(rate: float) -> None:
    counted = open_loop.counted_s(OPTIONS, objective("p99"), rate)
    echoed = options_of(open_loop.job_file({"rw": "randread"}, search(), rate, OPTIONS, "/out"))
    assert open_loop._times({"global options": echoed})[1] == pytest.approx(counted, abs=1e-5)


def options_of(text: str) -> dict[str, str]:
    return dict(re.findall(r"^(\w+)=(\S+)$", text, re.M))


@every_row("rate", [25.0, 200.0, 1000.0, 20_000.0])
def test_threads_that_begin_make_no_more_requests_than_those_miss_that_have_not_begun(rate: float) -> None:
    """Each thread makes a request as it begins; until all have, half of them on average are missing."""
    text = open_loop.job_file({"rw": "randread"}, search(), rate, OPTIONS, "/out")
    threads = sum(map(int, re.findall(r"^numjobs=(\d+)$", text, re.M)))
    spread, _ = open_loop._times({"global options": options_of(text)})
    assert threads <= spread * rate / 2 or spread == open_loop.SPREAD_S
    assert spread <= open_loop.SPREAD_S
    assert spread * rate / 2 <= threads + rate * 1e-3, "and no longer than that takes"


def test_a_report_of_threads_that_began_inside_two_seconds_is_read() -> None:
    assert open_loop._times({"global options": {"startdelay": "0-2s", "runtime": "8000000us"}}) == (2.0, 5.0)


def test_a_report_without_the_time_that_was_asked_is_refused() -> None:
    with pytest.raises(ParseError, match="for how long"):
        open_loop._times({})


def test_threads_suffice_for_what_may_be_late() -> None:
    p99 = objective("p99")
    assert open_loop.threads(3000, p99, 10) >= 0.01 * 3000 * 10
    assert open_loop.threads(5, p99, 10) == 5
    assert open_loop.threads(500_000, p99, 10) == open_loop.MOST_THREADS


@every_row(
    ("more", "said"),
    [
        ({"rw": "read"}, "no order"), ({"iodepth": 8}, "no iodepth"), ({"numjobs": 4}, "no numjobs"),
        ({"fsync": 1}, "no fsync"), ({"runtime": 0.5}, "needs time"), ({"rate_iops": "5"}, "no rate_iops"),
    ],
)  # fmt: skip
def test_what_an_open_loop_cannot_have_is_refused(more: dict[str, object], said: str) -> None:
    with pytest.raises(ParameterError, match=said):
        open_loop.check({**OPTIONS, **more}, where="w")  # type: ignore[dict-item]


def test_the_command_of_a_trial_lays_out_what_is_written_over() -> None:
    workload = Workload(name="w", tool="fio", options={**OPTIONS, "rw": "randwrite"}, search=search())
    command = Fio().command(workload, "/d", "/out", Target(rate=250.0, seed=3))
    assert command.prepare[0][:2] == ("fio", "--name=mountlab")
    assert "--rw=write" in command.prepare[0]
    assert command.log == open_loop.LOG_FILE
    (text,) = command.files.values()
    assert "rw=randwrite" in text
    assert "randseed=3" in text


def test_a_log_that_is_no_log_is_refused() -> None:
    with pytest.raises(ParseError, match="cannot be read"):
        open_loop.arrivals("no, log\n", {"read": (1.0, 1)}, 1.0, 1.0)
    with pytest.raises(ToolError, match="issued no request"):
        open_loop.arrivals("", {"read": (1.0, 1)}, 1.0, 1.0)
