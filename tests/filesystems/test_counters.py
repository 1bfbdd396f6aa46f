"""Counters around a trial: recorded snapshots, made-up ones, and those of an earlier version."""

from __future__ import annotations

from pathlib import Path

import pytest
from mountlab.filesystems.counters import Around, Extents, around, client_file
from mountlab.filesystems.evidence import DeviceBytes
from rows import every_row

DATA = Path(__file__).parents[1] / "data" / "trials"
BEFORE = {
    "/proc/stat": "cpu 1000 0 500 8000 100 0 0 50 0 0\ncpu0 1 2 3",
    "/proc/vmstat": "pswpin 5\npswpout 7",
    "/proc/diskstats": "8 0 sda 10 0 2000 5 10 0 4000 5 0 5 5 3 0 800 1",
    "/proc/pressure/cpu": "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000",
    "/proc/loadavg": "1.50 1.00 0.50 2/300 4000",
    "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "4",
    "/sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count": "1",
    "/proc/uptime": "1000.00 1500.00",
    "times": "0m0.01s 0m0.02s\n0m1.00s 0m0.50s",
}
AFTER = {
    **BEFORE,
    "/proc/stat": "cpu 1200 100 600 8500 120 0 0 130 0 0\ncpu0 1 2 3",
    "/proc/vmstat": "pswpin 6\npswpout 17",
    "/proc/diskstats": "8 0 sda 11 0 2008 5 12 0 4016 5 0 5 5 4 0 2848 1",
    "/proc/pressure/cpu": "some avg10=9.00 avg60=0.00 avg300=0.00 total=3500000",
    "/proc/loadavg": "1.90 1.00 0.50 2/300 4000",
    "/sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count": "6",
    "/proc/uptime": "1005.00 1500.00",
    "times": "0m0.01s 0m0.02s\n1m0.50s 0m0.60s",
}


def snapshot(sections: dict[str, str]) -> str:
    return "\n".join(f"==> {name} <==\n{text}\n" for name, text in sections.items())


def changed(
    before: dict[str, str] = BEFORE, after: dict[str, str] = AFTER, wall_s: float = 5.0, uptime: str | None = None
) -> Around:
    files = {
        "before.txt": snapshot(before),
        "after.txt": snapshot(after),
        "started_ns": "1000000000\n",
        "ended_ns": f"{1000000000 + int(wall_s * 1e9)}\n",
        **({} if uptime is None else {"uptime": uptime}),
    }
    found = around(files)
    assert found is not None
    return found


def without(*names: str) -> Around:
    return changed(*({key: text for key, text in each.items() if key not in names} for each in (BEFORE, AFTER)))


def recorded(name: str) -> Around:
    found = around({file.name: file.read_text() for file in (DATA / name).iterdir()})
    assert found is not None
    return found


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_processor_time_is_shared_out_by_hand() -> None:
    """Of 1000 ticks 80 were stolen; 300 were in user mode, of which our children took 59.5 s: more than there are."""
    seen = changed()
    assert seen.stolen == pytest.approx(80 / 1000)
    assert seen.others == 0.0
    assert seen.own == pytest.approx((59.5 + 0.1) * 100 / 1000)
    idle = changed(after={**AFTER, "times": "0m0.01s 0m0.02s\n0m1,50s 0m0,60s"})
    assert idle.others == pytest.approx((300 - 50) / 1000)
    assert idle.own == pytest.approx(60 / 1000)


def test_processors_are_busy_where_they_neither_idle_nor_wait_nor_are_taken() -> None:
    passed = [10, 20, 30, 400, 200, 5, 15, 320]
    stat = "cpu " + " ".join(map(str, passed))
    seen = changed(before={**BEFORE, "/proc/stat": "cpu 0 0 0 0 0 0 0 0"}, after={**AFTER, "/proc/stat": stat})
    assert seen.busy == pytest.approx((10 + 20 + 30 + 5 + 15) / 1000)


def test_memory_devices_and_heat_are_differences() -> None:
    seen = changed()
    assert (seen.swapped_pages, seen.throttled) == (11, 2)
    assert seen.discarded == {"8:0": 2048 * 512}
    assert seen.traffic == {"8:0": DeviceBytes(8 * 512, 16 * 512)}
    assert seen.names == {"8:0": "sda"}


def test_calls_extents_temperatures_and_caches_are_read_from_what_a_trial_leaves() -> None:
    sensor = "/sys/class/hwmon/hwmon2/temp1_input"
    extents = "files 2\nsize 1000\nhole 100\nunwritten 300\nwritten 600"
    earlier, later = "nr_dirtied 7\nnr_dirty 9\nnr_writeback 1", "nr_dirtied 17\nnr_dirty 5\nnr_writeback 2"
    seen = changed(
        before={**BEFORE, "io": "rchar: 100\nwchar: 50\nsyscr: 3", sensor: "45850", "/proc/vmstat": earlier},
        after={**AFTER, "io": "rchar: 1100\nwchar: 60\nsyscr: 9", sensor: "43850", "/proc/vmstat": later,
               "extents": extents},
    )  # fmt: skip
    assert (seen.read_calls, seen.write_calls, seen.dirtied_pages) == (1000, 10, 10)
    assert seen.waiting_pages == -3
    assert seen.celsius == {sensor: 45.85}
    assert seen.extents == Extents(files=2, size=1000, hole=100, unwritten=300)
    assert seen.extents.without_data == pytest.approx(0.4)
    quiet = changed()
    assert (quiet.read_calls, quiet.extents, quiet.celsius, quiet.cache) == (None, None, {}, None), "an earlier version"


LOG = """{{
  "critical_warning" : 0, "temperature" : 341, "avail_spare" : 100, "warning_temp_time" : {minutes},
  "critical_comp_time" : 0, "thm_temp1_trans_count" : {times}, "thm_temp2_trans_count" : 0, "thm_temp1_total_time" : 77
}}"""


def test_a_drive_that_slowed_itself_down_is_told_by_its_log() -> None:
    def logs(minutes: int, times: int) -> str:
        return f"drive nvme0\n{LOG.format(minutes=minutes, times=times)}\ndrive nvme1\n{LOG.format(minutes=5, times=5)}"

    seen = changed(before={**BEFORE, "drives": logs(3, 9)}, after={**AFTER, "drives": logs(4, 11)})
    assert seen.drive_alarms == {"nvme0": 3, "nvme1": 0}
    assert changed(before={**BEFORE, "drives": ""}, after={**AFTER, "drives": logs(4, 11)}).drive_alarms == {}
    assert changed(after={**AFTER, "drives": "drive nvme0\nnvme: not permitted"}).drive_alarms == {}


def test_what_each_client_made_of_its_cache_is_kept_by_its_name() -> None:
    files = {"before.txt": snapshot(BEFORE), "after.txt": snapshot(AFTER), "cache": "fadvise\n"}
    seen = around({**files, client_file("a-b"): "drop_caches\n", client_file("c"): "filled\n", "client-c-log": "x"})
    assert seen is not None
    assert seen.cache == "fadvise"
    assert seen.clients == {"a-b": "drop_caches", "c": "filled"}


def test_pressure_of_its_own_cgroup_is_kept_beside_that_of_the_box() -> None:
    group = "/sys/fs/cgroup/unified/mountlab-r.t0001.77"
    totals = {f"{group}/io.pressure": (250_000, 1_500_000), f"{group}/cpu.pressure": (0, 500_000)}
    before, after = (
        {name: f"some avg10=0.00 avg60=0.00 avg300=0.00 total={pair[side]}" for name, pair in totals.items()}
        for side in (0, 1)
    )
    assert changed(before, after).own_pressure == {"io": pytest.approx(0.25), "cpu": pytest.approx(0.1)}
    assert changed().own_pressure == {}


def test_pressure_is_a_share_of_the_time() -> None:
    assert changed().pressure == {"cpu": pytest.approx(2.5 / 5.0)}


AT_ONCE = "990.00 1000.00 1000.00 1005.00 1005.00\n"
LATE = "990.00 1000.00 1000.30 1005.00 1006.00\n"
"""On a machine that kept us waiting: at the start for 0.3 s, at the end for a second."""


@every_row(
    ("uptime", "wall_s", "step"),
    [
        (AT_ONCE, 5.004, 0),
        (AT_ONCE, 5.01, 0),
        (AT_ONCE, 4.99, 0),
        (AT_ONCE, 5.5, 0.49),
        (AT_ONCE, 2.0, -2.99),
        (AT_ONCE, 3605.0, 3599.99),
        (LATE, 4.69, 0),
        (LATE, 6.01, 0),
        (LATE, 4.5, -0.19),
        (LATE, 6.5, 0.49),
    ],
)
def test_a_wall_clock_was_set_by_as_much_as_it_lies_beyond_what_the_other_permits(
    uptime: str, wall_s: float, step: float
) -> None:
    """Trap: on a busy machine the two clocks are read a few delays of the scheduler apart; that is no step."""
    assert changed(wall_s=wall_s, uptime=uptime).clock_step_s == pytest.approx(step, abs=1e-6)


def test_a_wall_clock_that_was_set_is_not_believed() -> None:
    assert changed(wall_s=5.004, uptime=AT_ONCE).seconds == 5.004
    assert changed(wall_s=3605.0, uptime=AT_ONCE).seconds == pytest.approx(5.0)
    assert changed(wall_s=2.0, uptime=LATE).seconds == pytest.approx((4.7 + 6.0) / 2)


def test_an_earlier_version_could_not_tell_a_step_from_a_delay() -> None:
    """Its two clocks tell how long it took all the same."""
    assert (changed(wall_s=5.004).seconds, changed(wall_s=5.004).clock_step_s) == (5.004, None)
    assert (changed(wall_s=3605.0).seconds, changed(wall_s=3605.0).clock_step_s) == (5.0, None)


@every_row("text", ["", "990.00", "990.00 1000.00 1000.00", "990.00 1000.00 1000.00 nonsense 1005.00", "  \n"])
def test_times_that_cannot_be_read_are_not_known(text: str) -> None:
    assert changed(wall_s=3605.0, uptime=text).clock_step_s is None


def test_the_kernels_log_comes_without_its_stamps() -> None:
    log = "<4>[  123.456789] EXT4-fs (vda): warning\n<3>[ 1.0][  T12] blk_update_request: I/O error, dev sda\n<4>plain"
    seen = changed(after={**AFTER, "kernel": log, "ext4lazyinit": "1"})
    assert seen.kernel_log == ("EXT4-fs (vda): warning", "blk_update_request: I/O error, dev sda", "plain")
    assert seen.lazy_init is True
    assert changed(after={**AFTER, "kernel": "", "ext4lazyinit": "0"}).kernel_log == ()
    assert changed(after={**AFTER, "kernel": "", "ext4lazyinit": "0"}).lazy_init is False


# --- what is not there ------------------------------------------------------------------------------------------------


def test_what_a_box_does_not_tell_is_not_known_and_never_zero() -> None:
    nothing = without(*BEFORE)
    assert nothing == Around(seconds=5.0)
    assert without("times").others is None
    assert without("times").stolen == pytest.approx(0.08)
    assert without("times").stolen is not None
    assert without("/proc/uptime").clock_step_s is None
    old_kernel = {**BEFORE, "/proc/diskstats": "8 0 sda 10 0 2000 5 10 0 4000 5 0 5 5"}
    assert changed(before=old_kernel).discarded == {}
    assert around({"stdout": ""}) is None
    assert changed(before={**BEFORE, "times": "nonsense"}).others is None


@pytest.mark.parametrize("name", ["ext4-cold-read", "ext4-warm-read"])
def test_snapshots_of_an_earlier_version_tell_what_they_hold(name: str) -> None:
    seen = recorded(name)
    assert seen.seconds is not None
    assert seen.seconds > 0
    assert (seen.clock_step_s, seen.others, seen.lazy_init, seen.kernel_log) == (None, None, None, None)
    assert seen.names["254:0"] == "vda"


# --- recorded ---------------------------------------------------------------------------------------------------------


def test_a_recorded_direct_write_with_data_journal_went_through_the_page_cache() -> None:
    """64 MiB written with O_DIRECT, all of them in the page cache afterwards."""
    seen = recorded("ext4-journal-direct-write")
    assert seen.resident_bytes == 64 * 1024**2
    assert seen.others is not None
    assert 0 <= seen.others < 1
    assert seen.own is not None
    assert 0 < seen.own < 1
    assert seen.clock_step_s is None, "of an earlier version"
    assert seen.throttled is None, "this box counts none"


def test_a_recorded_read_from_a_directory() -> None:
    seen = recorded("directory-cold-read")
    assert seen.traffic["254:0"].read >= 64 * 1024**2
    assert seen.swapped_pages == 0
    assert seen.throttled is None, "this box counts none"
