"""What devices are promised to do, held against figures: from the definition, in tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from hypothesis import given
from hypothesis import strategies as st
from mountlab.analysis.estimates import estimate_frame
from mountlab.analysis.inside import Inside
from mountlab.analysis.promises import (
    ABOVE,
    above_text,
    answer_sentence,
    judged_promises,
    promise_lines,
    promise_text,
    state_of,
)
from mountlab.analysis.trust import trust_of
from mountlab.checks import Moved
from mountlab.core.findings import Caveat
from mountlab.core.metrics import METRICS
from mountlab.core.model import Design, Filesystem, Sweep, Workload
from mountlab.core.numbers import count_figures
from mountlab.core.promises import Promise
from mountlab.filesystems.counters_over_time import DeviceOverTime, OverTime
from mountlab.stats import estimate
from rows import every_row
from synthetic_run import SyntheticRun, synthetic_run

IOPS = Promise(metric="read_iops", value=3000.0)
LATENCY = Promise(metric="read_latency_p99", value=0.01)
FIO: dict[str, Any] = {
    "rw": "randread", "bs": 4096, "size": 2**26, "numjobs": 1, "iodepth": 32, "direct": 1,
}  # fmt: skip
BLOCK = 4096.0


# ── one figure ───────────────────────────────────────────────────────────────────────────────────────────────────────


@every_row(
    ("promise", "low", "high", "state"),
    [
        (IOPS, 3000, 3100, "kept"),
        (IOPS, 2942, 2999, "kept"),  # short of it by less than 2 %: 3000 / 1.02 is 2941.2
        (IOPS, 2941, 2999, "undecided"),
        (IOPS, 2500, 2942, "undecided"),
        (IOPS, 2500, 2941, "broken"),
        (IOPS, float("nan"), float("nan"), "undecided"),
        (IOPS, 0, float("inf"), "undecided"),
        (LATENCY, 0.001, 0.0102, "kept"),
        (LATENCY, 0.001, 0.0103, "undecided"),
        (LATENCY, 0.0102, 0.5, "undecided"),
        (LATENCY, 0.0103, 0.5, "broken"),
    ],
)
def test_a_promise_is_decided_where_the_whole_interval_is_on_one_side(
    promise: Promise, low: float, high: float, state: str
) -> None:
    assert state_of(promise, low, high, 0.02) == state


@given(
    metric=st.sampled_from(["read_iops", "write_bandwidth", "write_latency_p50"]),
    value=st.floats(1e-3, 1e9),
    ends=st.tuples(st.floats(0.1, 10.0), st.floats(0.1, 10.0)).map(sorted),
    power=st.integers(-20, 20),
)
def test_figure_and_promise_in_another_unit_have_the_same_verdict(
    metric: str, value: float, ends: list[float], power: int
) -> None:
    low, high = (value * end for end in ends)
    scaled = Promise(metric=metric, value=value * 2.0**power)
    assert state_of(Promise(metric=metric, value=value), low, high, 0.02) == state_of(
        scaled, low * 2.0**power, high * 2.0**power, 0.02
    )


@every_row(
    ("promise", "mean", "words"),
    [
        (IOPS, 3000 * (1 + ABOVE), ""),
        (IOPS, 3000 * (1 + ABOVE) + 1, "above what was promised: burst or cache"),
        (replace(IOPS, burst=16000), 9000, "above what was promised: within the burst figure of 16\u2009000"),
        (replace(IOPS, burst=16000), 16000 * (1 + ABOVE), "within the burst figure"),
        (replace(IOPS, burst=16000), 20000, "above the burst figure of 16\u2009000 as well: check for a cache"),
        (LATENCY, 0.0001, ""),
    ],
)
def test_a_rate_above_the_promise_is_named(promise: Promise, mean: float, words: str) -> None:
    found = above_text(promise, mean)
    assert words in found if words else not found


@every_row(
    ("metric", "value", "text"),
    [
        ("read_iops", 3000, "Read IOPS of at least 3\u2009000"),
        ("write_bandwidth", 125 * 2**20, "Write bandwidth of at least 131\u00a0MB/s"),
        ("read_latency_p99", 0.002, "99th-percentile read completion latency of at most 2.00\u00a0ms"),
    ],
)
def test_the_words_of_a_promise(metric: str, value: float, text: str) -> None:
    assert promise_text(Promise(metric=metric, value=value)) == text


# ── a run ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def run_of(
    *promises: Promise,
    options: Mapping[str, Any] | None = None,
    iops: float = 2000.0,
    latency: float = 0.02,
    share: float | None = 1.0,
    busy: float = 1.0,
    depth: float = 31.0,
    over_time: bool = True,
    caveats: Sequence[Caveat] = (),
    names: Sequence[str] = ("random-read",),
    imported: bool = False,
) -> SyntheticRun:
    """Five blocks of workloads on one file system, whose device was busy with 31 requests, at 2,000 IOPS of 4 KiB."""
    workloads = tuple(Workload(name=name, tool="fio", options={**FIO, **(options or {})}) for name in names)
    sweep = Sweep(
        name="s", question="?", box="b", filesystems=(Filesystem(name="ebs", type="ext4"),), workloads=workloads,
        design=Design(), promised={"ebs": promises} if promises else {}, imported=imported,
    )  # fmt: skip
    trials, measurements, moved, insides = [], [], [], {}
    for block in range(1, 6):
        for cell in sweep.cells:
            trial_id = f"t{len(trials) + 1:04d}"
            common = {"trial_id": trial_id, "cell": cell.id, "block": block, "warmup": False}
            trials.append({**common, "status": "ok"})
            wobble = 1 + 0.001 * (block - 3)
            figures = {"iops": iops * wobble, "bandwidth": iops * wobble * BLOCK, "latency_p99": latency * wobble}
            for side in ("read", "write"):
                for kind, value in figures.items():
                    metric = f"{side}_{kind}"
                    row = {"metric": metric, "label": "", "unit": METRICS[metric], "value": value, "step": 0.0}
                    measurements.append({**common, **row})
                if share is not None:
                    moved.append(Moved(trial_id, cell, side, 1e9, round(share * 1e9)))  # type: ignore[arg-type]
            own = DeviceOverTime(device="8:0", busy=[(1.0, busy)] * 3, depth=[(1.0, depth)] * 3)
            insides[trial_id] = Inside(box=OverTime(devices=[own]) if over_time else None)
    frame = pd.DataFrame(measurements)
    return replace(
        synthetic_run(caveats=False), sweep=sweep, trials=pd.DataFrame(trials), measurements=frame, moved=moved,
        estimates=estimate_frame(sweep, frame, run_id="r", box="b"), insides=insides, caveats=list(caveats),
    )  # fmt: skip


def about(code: str, severity: Any = "warning", subject: str = "ebs/random-read") -> Caveat:
    return Caveat(code=code, severity=severity, message="m", scope="cell", subject=subject)


KEPT = replace(IOPS, value=1900.0)
UNDECIDED = replace(IOPS, value=2040.0)  # less the 2 %: the mean


@every_row(
    ("promise", "changes", "state", "why"),
    [
        (IOPS, {}, "broken", ""),
        (KEPT, {}, "kept", ""),
        (UNDECIDED, {}, "undecided", ""),
        (replace(IOPS, value=1000.0), {}, "kept", "above what was promised"),
        (replace(IOPS, value=1000.0, burst=2000.0), {}, "kept", "within the burst figure of 2\u2009000"),
        # what had room for more was not asked; what was kept was kept all the same
        (IOPS, {"busy": 0.89}, "not asked", "busy for only 89\u00a0% of the time"),
        (IOPS, {"depth": 2.9}, "not asked", "2.90 requests in flight are too few"),
        (replace(IOPS, value=9e4), {}, "not asked", "31.0 requests in flight are too few"),
        (IOPS, {"over_time": False}, "not asked", "no counters over time"),
        (IOPS, {"options": {"rate_iops": "2000"}}, "not asked", "sets its own rate"),
        (IOPS, {"options": {"rw": "randrw"}}, "not asked", "reads and writes at the same time"),
        (IOPS, {"caveats": [about("other-io")]}, "not asked", "other programs"),
        (UNDECIDED, {"busy": 0.5}, "not asked", "busy for only 50\u00a0%"),
        (KEPT, {"busy": 0.1, "depth": 1.0}, "kept", ""),
        (KEPT, {"over_time": False}, "kept", ""),
        (KEPT, {"options": {"rate_iops": "2000"}}, "kept", ""),
        # what another than the device answered says nothing either way
        (KEPT, {"share": 0.5}, "not asked", "moved only 50\u00a0% of the bytes"),
        (KEPT, {"share": None}, "not asked", "no counters show what its device moved"),
        (KEPT, {"imported": True, "share": None}, "not asked", "no counters"),
        (KEPT, {"options": {"direct": 0, "cache": "warm"}}, "not asked", "warm reads are of the page cache"),
        (KEPT, {"caveats": [about("burst-credits", "error")]}, "not asked", "do not use: burst credits"),
        (KEPT, {"caveats": [about("direct-not-honoured")]}, "not asked", "direct not honoured"),
        (KEPT, {"caveats": [about("direct-not-honoured", "note")]}, "kept", ""),
        (KEPT, {"caveats": [about("burst-credits", "error", "ebs/other")]}, "kept", ""),
        (
            replace(KEPT, metric="write_iops"),
            {"options": {"rw": "randwrite", "direct": 0}},
            "not asked",
            "unflushed writes are of the page cache",
        ),
        # latencies: requests that wait for one another are the workload's own, unless it is meant to ask
        (LATENCY, {"depth": 1.0}, "broken", ""),
        (LATENCY, {}, "not asked", "31.0 requests in flight waited"),
        (LATENCY, {"over_time": False}, "not asked", "no counters over time"),
        (replace(LATENCY, by=("random-read",)), {}, "broken", ""),
        (replace(LATENCY, value=0.05), {}, "kept", ""),
        # who is meant to ask
        (replace(IOPS, by=("random-read",)), {}, "broken", ""),
        (replace(IOPS, by=("other",)), {}, "not asked", "no workload of other has measured read IOPS"),
        (replace(IOPS, metric="read_latency_p50"), {}, "not asked", "no workload has measured"),
    ],
)
def test_a_promise_beside_a_workload(promise: Promise, changes: dict[str, Any], state: str, why: str) -> None:
    [row] = judged_promises(run_of(promise, **changes))
    assert row.state == state
    assert why in row.why if why else not row.why


@every_row(
    ("iops", "bandwidth", "states"),
    [
        (3000, 20e6, ["broken", "not asked"]),  # 3,000 I/Os of 4 KiB make 12.3 MB/s
        (3000, 12e6, ["not asked", "broken"]),  # 12 MB/s are 2,930 I/Os
        (3000, 12.2e6, ["broken", "broken"]),  # both ends meet within 2 %
    ],
)
def test_of_two_rates_a_workload_asks_the_one_that_ends_it(iops: float, bandwidth: float, states: list[str]) -> None:
    rates = Promise(metric="read_iops", value=iops), Promise(metric="read_bandwidth", value=bandwidth)
    assert [row.state for row in judged_promises(run_of(*rates))] == states


def test_intervals_hold_for_all_promised_figures_together() -> None:
    run = run_of(IOPS, LATENCY, names=("random-read", "other"))
    values = [2000 * (1 + 0.001 * (block - 3)) for block in range(1, 6)]
    alone, joint = (estimate(values, level=level) for level in (0.95, 1 - 0.05 / 4))
    found = judged_promises(run)[0]
    assert joint.low < alone.low
    assert found.interval == count_figures(joint.mean, joint.low, joint.high).interval


def test_the_first_screen_names_the_worst_of_the_workloads() -> None:
    run = run_of(IOPS, replace(LATENCY, value=1.0), names=("random-read", "other"))
    mixed = replace(run, caveats=[about("other-io"), about("noisy", subject="ebs/other")])
    assert [line.state for line in promise_lines(mixed)] == ["broken", "kept"]
    assert promise_lines(mixed)[0].text == "broken, 2\u202f000 [1\u202f994, 2\u202f006] under other, doubtful: noisy."
    assert promise_lines(run)[0].text.endswith("under random-read; 1 more workload asked it.")


@every_row(
    ("promises", "sentence"),
    [
        ([IOPS], "The promise was broken."),
        ([IOPS, LATENCY], "Of 2 promises, 1 was broken and 1 was not asked."),
        ([KEPT, replace(KEPT, value=1950.0), UNDECIDED], "Of 3 promises, 1 was undecided and 2 were kept."),
    ],
)
def test_where_nothing_is_compared_the_answer_counts_the_promises(promises: list[Promise], sentence: str) -> None:
    run = replace(run_of(*promises), comparisons=[])
    assert answer_sentence(run, trust_of(run)) == sentence


def test_without_promises_nothing_is_said() -> None:
    assert judged_promises(run_of()) == promise_lines(run_of()) == []
