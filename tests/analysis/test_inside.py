"""What is drawn of the time inside of trials: whose, which quantities, and why there are none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from facts import known
from mountlab.analysis.inside import Inside, median_trials, points_of, why_no_counters
from mountlab.core.model import Workload
from mountlab.core.run_info import RunInfo
from mountlab.filesystems.counters_over_time import DeviceOverTime, OverTime
from mountlab.fio.series import Series, SeriesPoint
from mountlab.plots import INSIDE
from synthetic_run import synthetic_run

RUN = synthetic_run()
FIO = Workload(name="f", tool="fio", options={"bs": 4096})
RAMP = [(0.1, 1.0), (0.2, 2.0)]


def series(metric: str, *values: float, job: int = 1) -> Series:
    return Series(metric, "1", job, tuple(SeriesPoint(0.1 * i, value) for i, value in enumerate(values, start=1)))


def test_the_trial_of_a_cell_is_the_one_in_the_middle() -> None:
    found = median_trials(RUN.sweep, RUN.trials, RUN.measurements, RUN.answer_metrics)
    good = RUN.trials[(RUN.trials.status == "ok") & ~RUN.trials.warmup]
    assert set(found) == set(good.cell)
    for cell, trial_id in found.items():
        (metric,) = RUN.answer_metrics[cell.partition("/")[2]]
        own = RUN.measurements[(RUN.measurements.cell == cell) & (RUN.measurements.metric == metric)]
        rows = own.set_index("trial_id")["value"]
        ordered = sorted(rows[good.loc[good.cell == cell, "trial_id"]])
        assert rows[trial_id] == ordered[(len(ordered) - 1) // 2]


def test_every_quantity_has_a_panel_and_what_was_not_seen_is_left_out() -> None:
    logs = [
        series(f"{side}_{what}", 1, 2) for side in ("read", "write") for what in ("bandwidth", "iops", "latency_mean")
    ]
    device = DeviceOverTime(device="8:0", read=RAMP, written=RAMP, depth=RAMP, busy=RAMP)
    shares = dict.fromkeys(("user", "system", "iowait", "steal"), RAMP)
    box = OverTime(devices=[device], processors=shares, pressure=RAMP, dirty=RAMP)
    assert points_of(Inside(logs, box), FIO).keys() == INSIDE.keys()
    assert points_of(Inside(logs[1:2], OverTime(dirty=RAMP, pressure=RAMP[:1])), FIO).keys() == {"read_iops", "dirty"}
    assert points_of(Inside(), FIO) == {}


def test_the_device_is_that_of_the_file_system_and_not_the_disk_below_it() -> None:
    box = OverTime(devices=[DeviceOverTime(device="7:0", read=RAMP), DeviceOverTime(device="8:0", read=RAMP[::-1])])
    assert points_of(Inside((), box), FIO)["device_read"] == RAMP


def test_what_fio_logged_ends_with_the_tool() -> None:
    """It begins to count after its files are open, some tenths of a second after it was started."""
    found = points_of(Inside([series("read_bandwidth", 1, 1, 1, 1)], OverTime(length=0.7)), FIO)
    assert [at for at, _ in found["read_bandwidth"]] == pytest.approx([0.4, 0.5, 0.6, 0.7])


@pytest.mark.parametrize("line", ["stonewall", "startdelay=1"])
def test_jobs_that_begin_at_different_times_have_no_common_time(line: str) -> None:
    text = f"[a]\nrw=read\nsize=1m\n[b]\n{line}\nrw=read\nsize=1m\n"
    logs = [series("read_bandwidth", 1, 2), series("read_bandwidth", 1, 2, job=2)]
    after = replace(FIO, options={"jobs": text, "bs": 4096, "numjobs": 1, "ioengine": "psync"})
    beside = replace(FIO, options={**after.options, "jobs": text.replace(f"{line}\n", "")})
    assert points_of(Inside(logs), after) == {}
    assert points_of(Inside(logs), beside)["read_bandwidth"] == [(0.1, 2.0), (0.2, 4.0)]


def test_iops_are_from_the_bandwidth_where_all_ios_are_of_one_size() -> None:
    logs = [series("write_bandwidth", 4096, 8192)]
    jobs = "[a]\nrw=write\nsize=1m\n[b]\nrw=write\nsize=1m\nbs={}\n"
    beside = {"bs": 4096, "numjobs": 1, "ioengine": "psync"}
    for options, found in (
        ({"bs": 4096}, [(0.1, 1.0), (0.2, 2.0)]),
        ({"bs": 4096, "bssplit": "4k/50:8k/50"}, None),
        ({"jobs": jobs.format("4k"), **beside}, [(0.1, 1.0), (0.2, 2.0)]),
        ({"jobs": jobs.format("8k"), **beside}, None),
    ):
        assert points_of(Inside(logs), replace(FIO, options=options)).get("write_iops") == found
    logged = [*logs, series("write_iops", 7, 7)]
    assert points_of(Inside(logged), FIO)["write_iops"] == [(0.1, 7.0), (0.2, 7.0)], "what fio logged comes first"


def test_why_there_are_no_counters_over_time() -> None:
    able = RunInfo(run_id="r", facts=known(sampling_shell="bash"))
    off = replace(RUN.sweep, design=replace(RUN.sweep.design, sample_every_s=0.0))
    assert why_no_counters(able, RUN.sweep) == ""
    assert "earlier version" in why_no_counters(RunInfo(run_id="r"), RUN.sweep)
    assert "no shell" in why_no_counters(RunInfo(run_id="r", facts=known(sampling_shell=None)), RUN.sweep)
    assert "sample_every: false" in why_no_counters(able, off)
    assert "made elsewhere" in why_no_counters(able, replace(RUN.sweep, imported=True))
