"""Caveats about the load that fio was asked for: rates that it did not make, and latencies of a closed loop."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from checks.test_checks import build, found, make, the_only
from facts import known
from mountlab.analysis.answer_metrics import answer_metrics
from mountlab.analysis.measurements import measurement_frame
from mountlab.checks import CHECKS, Evidence
from mountlab.checks.asked import part_of
from mountlab.checks.rates import rates
from mountlab.core.metrics import METRICS
from mountlab.core.model import Measurement, Trial
from rows import every_row

FIO = {"tool": "fio", "rw": "randread", "size": "64MiB", "bs": "4KiB"}
Figures = Mapping[str, Mapping[str, float]]


def ran(workload: dict[str, Any], *trials: Figures, **more: Any) -> Evidence:
    """Trials of one cell, each with metric to value under its labels."""
    the_sweep = make(workloads={"f": {**FIO, **workload}}, **more)
    table = pd.DataFrame([vars(_trial(block)) for block in range(1, len(trials) + 1)])
    rows = measurement_frame(
        (_trial(block), Measurement(metric=metric, value=value, unit=METRICS[metric], label=label))
        for block, figures in enumerate(trials, start=1)
        for label, own in figures.items()
        for metric, value in own.items()
    )
    answer = answer_metrics(the_sweep, rows)
    evidence: Evidence = build(make())
    return replace(evidence, sweep=the_sweep, trials=table, measurements=rows, answer_metrics=answer)


def _trial(block: int) -> Trial:
    return Trial(
        trial_id=f"t{block:04d}", block=block, warmup=False, cell="ext4/f", filesystem="ext4", workload="f", tool="fio",
        factors={}, mount="m-ext4", status="ok", reason="", started_at="", elapsed_s=1.0,
    )  # fmt: skip


def at(iops: float, *, block: int = 4096, seconds: float = 10.0, side: str = "read") -> dict[str, float]:
    return {
        f"{side}_iops": iops,
        f"{side}_bandwidth": iops * block,
        f"{side}_latency_p50": 1e-4,
        f"{side}_latency_p99": 1e-3,
        "elapsed": seconds,
    }


def whole(iops: float, **more: Any) -> Figures:
    return {"": at(iops, **more)}


def said(code: str, evidence: Evidence) -> str:
    """The message of the only caveat, with plain spaces."""
    return str(the_only(code, evidence).message).replace("\u00a0", " ").replace("\u202f", " ")


# --- processors that sleep between requests ---------------------------------------------------------------------------

IDLE = {"times": "POLL 0/0 µs, C1 2/2 µs, C6 133/600 µs"}
PAUSES = {"rate_iops": 300}


def rarely(iops: float, workload: dict[str, Any], **facts: Any) -> Evidence:
    """Reads of 100 µs in the middle, on a box with such idle states."""
    return replace(ran(workload, whole(iops)), facts=known(**{"cpu_idle": IDLE, **facts}))


def test_a_rate_at_which_processors_sleep_deeply_is_noted_with_what_it_takes_to_wake() -> None:
    """A public report: 64 us more at 300/s than at 6,000/s."""
    caveat = the_only("deep-idle", rarely(300, PAUSES))
    assert (caveat.severity, caveat.scope, caveat.subject, caveat.metrics) == ("note", "cell", "ext4/f", "read_latency")
    message = said("deep-idle", rarely(300, PAUSES))
    assert "a request comes every 3.33 ms" in message
    assert "enter idle state C6. To leave it takes up to 133 µs; the median latency is 100 µs of a read" in message


@every_row(
    ("what", "raised", "iops", "workload", "facts"),
    [
        ("a rate at which they do not sleep so long", False, 6000, {"rate_iops": 6000}, {}),
        ("a think time", True, 300, {"thinktime": 3000}, {}),
        ("one request after another", False, 300, {}, {}),
        ("the deep state switched off", False, 300, PAUSES, {"cpu_idle": {"times": "C1 2/2 µs", "switched_off": "C6"}}),
        ("a limit that somebody holds", False, 300, PAUSES, {"cpu_idle": {**IDLE, "limit": "10 µs"}}),
        ("a limit above it", True, 300, PAUSES, {"cpu_idle": {**IDLE, "limit": "200 µs"}}),
        ("idle=poll", False, 300, PAUSES, {"kernel_command_line": {"idle": "poll"}}),
        ("states that are not known", False, 300, PAUSES, {"cpu_idle": None}),
        ("an earlier version, without times", False, 300, PAUSES, {"cpu_idle": {"deepest": "C6 (133 µs)"}}),
        ("a machine of 1 µs", False, 300, PAUSES, {"cpu_idle": {"times": "POLL 0/0 µs, haltpoll idle 1/1 µs"}}),
    ],
)
def test_states_that_are_left_out_or_matter_little_are_not(
    what: str, raised: bool, iops: float, workload: dict[str, Any], facts: dict[str, Any]
) -> None:
    assert bool(found("deep-idle", rarely(iops, workload, **facts))) == raised, what


def test_a_box_that_does_not_tell_its_idle_states_has_not_passed() -> None:
    blind = CHECKS["deep-idle"].blind
    assert blind(rarely(300, PAUSES, cpu_idle=None)) == "the box does not tell its idle states (cpu_idle)"
    assert blind(rarely(300, {}, cpu_idle=None)) is None, "nothing waits"


# --- the rate ---------------------------------------------------------------------------------------------------------


def test_a_rate_that_the_box_does_not_keep_is_a_warning_with_both_figures() -> None:
    evidence = ran({"rate_iops": 4000}, whole(4001), whole(1000), whole(3999))
    caveat = the_only("rate-not-reached", evidence)
    assert (caveat.severity, caveat.scope, caveat.subject, caveat.metrics) == ("warning", "cell", "ext4/f", "read_")
    message = said("rate-not-reached", evidence)
    assert "in 1 of its 3 trials (t0002)" in message
    assert "t0002: reads at 1.00 k/s where 4.00 k/s was asked for (-75.0%)" in message
    for part in ("did not keep up", "latencies are those of an overloaded box", "Ask for less"):
        assert part in message


@pytest.mark.parametrize("iops", [3930, 4000, 4070])
def test_a_rate_that_is_kept_within_two_percent_raises_nothing(iops: float) -> None:
    assert found("rate-not-reached", ran({"rate_iops": 4000}, whole(iops))) == []
    assert found("rate-not-reached", ran({}, whole(iops))) == [], "none was asked for"


def test_the_rate_holds_for_each_of_the_processes() -> None:
    assert found("rate-not-reached", ran({"rate_iops": 1000, "numjobs": 4}, whole(4000))) == []
    assert "-75.0%" in the_only("rate-not-reached", ran({"rate_iops": 1000, "numjobs": 4}, whole(1000))).message


def test_a_rate_of_bytes_is_held_against_the_bandwidth() -> None:
    assert found("rate-not-reached", ran({"rate": "4m"}, whole(1024))) == []
    assert "4.19 MB/s was asked for (-50.0%)" in said("rate-not-reached", ran({"rate": "4m"}, whole(512)))


def test_each_direction_has_its_own_rate() -> None:
    """fio 3.33: '100,50' is 100 reads and 50 writes a second, '100' is 100 of each; a side left empty has no limit."""
    assert {side: each.value for side, each in rates({"rate_iops": "100,50", "bs": 4096}).items()} == {
        "read": 100,
        "write": 50,
    }
    assert rates({"rate_iops": 100, "bs": 4096}).keys() == {"read", "write"}
    assert rates({"rate_iops": ",50", "bs": 4096}).keys() == {"write"}
    assert rates({"rate_iops": "1k,,", "bs": 4096})["read"].value == 1024
    both = {"": at(100) | at(20, side="write")}
    evidence = ran({"rw": "randrw", "rate_iops": "100,50"}, both)
    assert the_only("rate-not-reached", evidence).metrics == "write_"
    assert "writes at 20.0 1/s where 50.0 1/s was asked for (-60.0%)" in said("rate-not-reached", evidence)


JOBS = "[log]\nrate_iops=100\n[scan]\nbs=64k\n[page]\nrate_iops=50\nnumjobs=2\n"


def test_each_job_of_a_job_file_has_its_own_rate() -> None:
    given = {"jobs": JOBS}
    kept = {"": at(9999), "log": at(100), "scan": at(9799), "page": at(100)}
    assert found("rate-not-reached", ran(given, kept)) == []
    apart = {"": at(9999), "log": at(100), "scan": at(9799), "page.0": at(50), "page.1": at(30)}
    assert "reads of job page at" in the_only("rate-not-reached", ran(given, apart)).message


@pytest.mark.parametrize("seconds", [1.0, 100.0])
def test_a_poisson_process_is_allowed_what_chance_makes_of_its_count(seconds: float) -> None:
    """Of 100 arrivals on average 5 standard deviations are 50; of 10,000 they are 5 %."""
    poisson = {"rate_iops": 100, "rate_process": "poisson"}
    off = {1.0: 0.5, 100.0: 0.05}[seconds]
    assert found("rate-not-reached", ran(poisson, whole(100 * (1 + off), seconds=seconds))) == []
    assert found("rate-not-reached", ran(poisson, whole(100 * (1 + off + 0.05), seconds=seconds))) != []
    constant = {**poisson, "rate_process": "linear"}
    assert found("rate-not-reached", ran(constant, whole(100 * (1 + off), seconds=seconds))) != []


MEASURED = [(19_000, 19_261), (34_000, 34_993), (51_000, 53_909), (60_000, 64_320)]
"""Asked, and made by fio 3.33 on tmpfs in 3 s, each by one process with rate_process=poisson."""


@pytest.mark.parametrize(("asked", "made"), MEASURED[1:])
def test_what_the_arithmetic_of_fio_makes_is_named_as_the_cause(asked: int, made: int) -> None:
    evidence = ran({"rate_iops": asked, "rate_process": "poisson"}, whole(made, seconds=30))
    message = said("rate-not-reached", evidence)
    assert "a whole number of microseconds in each process" in message
    assert "numjobs" in message
    assert "overloaded" not in message


@every_row(("asked", "made"), MEASURED)
def test_the_arithmetic_of_fio_is_what_was_measured(asked: int, made: int) -> None:
    (rate, _) = rates({"rate_iops": asked, "rate_process": "poisson", "bs": 4096}).values()
    assert rate.made(4096) == pytest.approx(made, rel=0.01)


def test_a_poisson_rate_that_the_box_does_not_keep_is_not_laid_at_the_door_of_fio() -> None:
    evidence = ran({"rate_iops": 51_000, "rate_process": "poisson"}, whole(20_000))
    assert "overloaded box" in the_only("rate-not-reached", evidence).message


def test_blocks_of_several_sizes_make_fewer_ios_than_were_asked_for() -> None:
    """fio 3.33 made 26 a second of 200 that were asked for, with blocks of 31,296 bytes on average."""
    evidence = ran({"rate_iops": 200, "bssplit": "4k/50:64k/50"}, whole(26, block=31_296, seconds=2))
    assert "counts rate_iops as bytes of the smallest block" in the_only("rate-not-reached", evidence).message


# --- closed loops -----------------------------------------------------------------------------------------------------

P99 = ["read_latency_p50", "read_latency_p99"]


def test_percentiles_of_a_saturated_closed_loop_are_noted_once_for_the_run() -> None:
    caveat = the_only("closed-loop-latency", ran({}, whole(9000), whole(9100), metrics=P99))
    assert (caveat.severity, caveat.scope) == ("note", "run")
    for part in (
        "1 workload (f)",
        "99th-percentile read",
        "when one is done",
        "arrive on time",
        "rate_process=poisson",
    ):
        assert part in caveat.message


def test_who_looks_at_bandwidth_only_is_told_nothing() -> None:
    assert found("closed-loop-latency", ran({}, whole(9000))) == []
    assert found("closed-loop-latency", ran({}, whole(9000), metrics=["read_iops"])) == []


@pytest.mark.parametrize("limit", [{"rate_iops": 4000}, {"rate": "16m"}, {"thinktime": 100}])
def test_a_load_that_leaves_the_device_time_is_no_saturated_loop(limit: dict[str, Any]) -> None:
    assert found("closed-loop-latency", ran(limit, whole(4050), metrics=P99)) == []


def test_a_rate_that_is_not_reached_makes_a_closed_loop() -> None:
    """A device of 50 IOPS, asked for 100: psync says p50 0.1 ms, and requests that arrive on time wait 986 ms."""
    assert found("closed-loop-latency", ran({"rate_iops": 100}, whole(50), metrics=P99)) != []
    assert found("closed-loop-latency", ran({"rate_iops": 100}, whole(150), metrics=P99)) == [], "more than was asked"


def test_only_the_direction_without_a_limit_counts() -> None:
    both = {"": at(100) | at(9000, side="write")}
    mixed = {"rw": "randrw", "rate_iops": "100,"}
    assert found("closed-loop-latency", ran(mixed, both, metrics=P99)) == []
    assert found("closed-loop-latency", ran(mixed, both, metrics=["write_latency_p99"])) != []


def test_a_percentile_that_is_expected_counts_as_one_that_is_asked_for() -> None:
    evidence = ran({}, whole(9000))
    part = part_of(evidence.sweep.workloads[0], "read_latency_p99", evidence.sweep.design)
    expecting = replace(evidence, sweep=replace(evidence.sweep, expected={part: {}}))
    assert "99th-percentile" in the_only("closed-loop-latency", expecting).message
