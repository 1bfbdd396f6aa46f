"""What tools give for the figures of a trial: checked as it is recorded, and each with the step of its own text."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mountlab.core.errors import FigureError, ValueRefused
from mountlab.core.figures import checked
from mountlab.core.metrics import Metric
from mountlab.core.model import Measurement, Workload
from mountlab.logs import read_one
from mountlab.programs import TOOLS
from mountlab.programs.parsing import parsed
from mountlab.tools.base import ToolOutput
from programs.test_conformance import EXAMPLES, case
from rows import every_row

DATA = Path(__file__).parents[1] / "data"
OWN = {"frost": Metric("°C", "neither"), "pause": Metric("s", "lower")}
GOOD = Measurement(metric="write_bandwidth", value=5e8, unit="B/s")
ELAPSED = Measurement(metric="elapsed", value=2.0, unit="s")


def check(rows: Any) -> list[Measurement]:
    return checked(rows, OWN, {}, giver="the plug-in mountlab-slow 1.0", authors="the authors of mountlab-slow")


def row(metric: str = "elapsed", value: Any = 2.0, unit: Any = "s", **more: Any) -> Measurement:
    return Measurement(metric=metric, value=value, unit=unit, **more)


@every_row(
    ("rows", "what", "got", "allowed"),
    [
        (None, "no figures", "None (NoneType)", "a list of Measurement"),
        ([], "no figures", "[] (list)", "a list of Measurement"),
        ({"elapsed": 2.0}, "no figures", "{'elapsed': 2.0} (dict)", "a list of Measurement"),
        ([GOOD, 3.0], "a row that is no measurement", "3.0 (float)", "Measurement("),
        ([row("throughput")], "a metric that is not one of a tool: throughput", "'throughput'", "own_metrics()"),
        ([row("mount_time")], "a metric that is not one of a tool: mount_time", "'mount_time'", ""),
        ([row("write_bandwith")], "a metric that is not", "'write_bandwith'", "did you mean 'write_bandwidth'"),
        ([row("write_bandwidth", unit="MB/s")], "write_bandwidth in a unit that is not its own", "'MB/s'", "'B/s'"),
        ([row(unit=None)], "a figure whose unit is no text", "None (NoneType)", "text"),
        ([row(value="2.0")], "elapsed with a value or step that is no number", "'2.0' (str)", "a number"),
        ([row(value=None)], "elapsed with a value or step that is no number", "None (NoneType)", "a number"),
        ([row(value=True)], "elapsed with a value or step that is no number", "True (bool)", "a number"),
        ([row(step="1")], "elapsed with a value or step that is no number", "'1' (str)", "a number"),
        ([GOOD, GOOD], "two values of write_bandwidth in one trial", "5e+08, 5e+08", "one, or a label for each"),
    ],
)
def test_what_is_no_figure_is_refused_with_who_gave_it(rows: Any, what: str, got: str, allowed: str) -> None:
    with pytest.raises(FigureError) as caught:
        check(rows)
    error = caught.value
    assert not isinstance(error, ValueRefused)
    assert error.what.startswith(f"the plug-in mountlab-slow 1.0 gave {what}")
    assert error.got == got
    assert allowed in error.allowed
    assert error.next_step == "report it to the authors of mountlab-slow"


@every_row(
    ("refused", "got", "allowed"),
    [
        (row(value=math.nan), "nan", "a finite number"),
        (row(value=math.inf), "inf", "a finite number"),
        (row(value=0), "0 s", "more than 0"),
        (row(value=-2.0), "-2 s", "more than 0"),
        (row("operations", -1.0, "1"), "-1 1", "0 or more"),
        (row("pause", -1.0), "-1 s", "0 or more"),
        (row(step=-1.0), "2, step -1", "a step of 0 or more"),
        (row(step=math.nan), "2, step nan", "a step of 0 or more"),
    ],
)
def test_a_value_that_no_trial_can_have_is_refused(refused: Measurement, got: str, allowed: str) -> None:
    with pytest.raises(ValueRefused) as caught:
        check([GOOD, refused])
    assert caught.value.what == f"the plug-in mountlab-slow 1.0 gave a value of {refused.metric} that cannot be: {got}"
    assert (caught.value.got, allowed in caught.value.allowed) == (got, True)


def test_what_a_trial_can_have_passes() -> None:
    """A count of 0, a metric of the workload's own below zero, numbers of numpy, and one metric under two labels."""
    rows = [row("operations", 0.0, "1"), row("frost", -5.0, "°C"), row("pause", 0.0), row(value=np.float32(2)),
            row("bytes", np.int64(4096), "B", label="read"), row("bytes", 1, "B", label="write")]  # fmt: skip
    assert check(rows) == rows


# --- steps ------------------------------------------------------------------------------------------------------------


@every_row(
    ("name", "number"), [(name, number) for name, examples in EXAMPLES.items() for number in range(len(examples))]
)
def test_every_rate_and_time_of_a_recorded_trial_has_a_step(name: str, number: int) -> None:
    recorded = case(TOOLS[name], number)
    assert all(each.step > 0 for each in parsed(recorded.workload, recorded.output))


def test_a_rate_has_the_step_of_the_clock_that_it_is_computed_by() -> None:
    """fio counts milliseconds: of a run of 20 ms one is 5 %."""
    report = json.loads((DATA / "fio" / "mixed-two-jobs.json").read_text())
    rows = {(each.metric, each.label): each for each in read_one("fio", json.dumps(report)).measurements}
    took, rate = rows["elapsed", ""], rows["read_bandwidth", ""]
    assert took.step == 1e-3
    assert rate.step == pytest.approx(rate.value * 1e-3 / took.value)


def dd(line: str) -> dict[str, Measurement]:
    output = ToolOutput(exit_status=0, stdout="", stderr=f"8+0 records in\n8+0 records out\n{line}\n", files={})
    copied = int(line.split()[0])
    workload = Workload(name="w", tool="dd", options={"direction": "write", "bs": copied, "count": 1})
    own = {each.metric: each for each in parsed(workload, output)}
    logged = {each.metric: each for each in read_one("dd", output.stderr, known={"direction": "write"}).measurements}
    assert own == logged
    return own


@every_row(
    ("line", "seconds", "step_s"),
    [
        # uutils up to 0.0.17: tenths of a second, and a rate by which the time is known to 1 of 142, of 2681.
        ("8388608 bytes (8.4 MB, 8.0 MiB) copied, 0.1 s, 142 MB/s", 8388608 / 142e6, 8388608 / 142e6 / 142 + 2e-3),
        ("51200000 bytes (51 MB, 49 MiB) copied, 0.2 s, 268.1 MB/s", 0.512 / 2.681, 0.512 / 2.681 / 2681 + 2e-3),
        ("8388608 bytes (8.4 MB, 8.0 MiB) copied, 0.0 s, 1.2 GB/s", 8388608 / 1.2e9, 8388608 / 1.2e9 / 12 + 2e-3),
        ("51200000 bytes (51 MB, 49 MiB) copied, 0.2 s, 256 MB/s", 0.2, 0.2 / 256 + 2e-3),  # or GNU: 0.200000
        # GNU: six digits of the time, without zeros at the end.
        ("209715200 bytes (210 MB, 200 MiB) copied, 0.279132 s, 751 MB/s", 0.279132, 1e-6),
        ("209715200 bytes (210 MB, 200 MiB) copied, 0.2791 s, 751 MB/s", 0.2791, 1e-6),
        ("209715200 bytes (210 MB, 200 MiB) copied, 2.25 s, 93.2 MB/s", 2.25, 1e-5),
        ("512 bytes copied, 7.7536e-05 s, 6.6 MB/s", 7.7536e-05, 1e-9),
        # BusyBox: MB are MiB; microseconds.
        ("104857600 bytes (100.0MB) copied, 0.059173 seconds, 1.7GB/s", 0.059173, 1e-6),
    ],
)
def test_the_finer_of_time_and_rate_tells_how_long_dd_took(line: str, seconds: float, step_s: float) -> None:
    rows = dd(line)
    assert rows["elapsed"].value == pytest.approx(seconds)
    assert rows["elapsed"].step == pytest.approx(step_s, rel=0.01)
    rate = rows["write_bandwidth"]
    assert rate.value == pytest.approx(rows["bytes"].value / seconds)
    assert rate.step / rate.value == pytest.approx(step_s / seconds, rel=0.01)


@every_row(
    ("tool", "text", "metric", "step"),
    [
        ("fio", "fio/human-write.stdout", "write_latency_mean", 1e-8),  # (usec): avg=455.92
        ("fio", "fio/human-write.stdout", "user_cpu", 1e-4),  # usr=6.90%
        ("fio", "fio/human-write.stdout", "write_bandwidth", 4376 * 2**20 / 2.001**2 * 1e-3),  # 4376MiB/2001msec
        ("fio", "fio/2.21-write.json", "write_latency_mean", 1e-15),
        ("fio", "fio/2.2.10-write.json", "write_latency_mean", 1e-8),  # "mean" : 147.45 us
        ("fio", "fio/2.1.10-write.json", "write_iops", 3200 * 1e-3 / 0.08),  # 256 I/Os in 80 ms
        ("fio", "fio/terse-3.stdout", "write_latency_mean", 1e-12),
        ("filebench", "filebench/fileserver.stdout", "operation_latency", 1e-6),
        ("filebench", "filebench/1.4.9.1.stdout", "bandwidth", 2**20 / 10),
    ],
)
def test_a_log_is_rounded_to_the_digits_that_it_shows(tool: str, text: str, metric: str, step: float) -> None:
    rows = {each.metric: each for each in reversed(read_one(tool, (DATA / text).read_text()).measurements)}
    assert rows[metric].step == pytest.approx(step, rel=1e-3)


@every_row(
    ("all_of", "value", "step"),
    [("sum", 1731e6, 12e6), ("mean", 1731e6 / 3, 4e6), ("first", 1230e6, 1e7), ("last", 251e6, 1e6)],
)
def test_a_pattern_finds_the_step_of_each_number(all_of: str, value: float, step: float) -> None:
    """Errors of rounding add up as if all were rounded the same way."""
    metric = {"pattern": r"(?P<value>[\d.]+) (?P<unit>[MG]B/s)", "all": all_of}
    options = {"argv": "x", "ok_status": "0", "metrics": json.dumps({"write_bandwidth": metric})}
    text = "1.23 GB/s\n250 MB/s\n251 MB/s\n"
    output = ToolOutput(exit_status=0, stdout=text, stderr="", files={})
    (found,) = parsed(Workload(name="w", tool="command", options=options), output)
    assert (found.value, found.step) == pytest.approx((value, step))
