"""The counters of the box over the time of a trial: from made-up looks whose rates are known, and from a recording."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mountlab.filesystems.counters import around
from mountlab.filesystems.counters_over_time import OverTime, over_time

RECORDED = Path(__file__).parents[1] / "data" / "trials" / "ext4-over-time"
"""dd writes 300 MiB into ext4 on an image, 1.2 s long."""


def look(at: float, *, cpu: str = "0 0 0 0 0 0 0 0", waited: str = "0", dirty: str = "0 0", disk: str = "") -> str:
    """A line of the sampler, so many seconds after it was begun at 100 s."""
    return f"{100 + at:.2f} {1e9 + at:.6f};{cpu} 0 0;{waited};{dirty};{disk}".rstrip(";") + "\n"


def files(*looks: str, end: float = 10.0) -> dict[str, str]:
    """Of a tool that was started with the first look."""
    return {
        "over_time": "".join(looks),
        "started_ns": f"{10**18}\n",
        "uptime": f"99.9 100.00 100.00 {100 + end:.2f} {100 + end:.2f}\n",
    }


def read(*looks: str, end: float = 10.0) -> OverTime:
    found = over_time(files(*looks, end=end))
    assert found is not None
    return found


def disk(read: int = 0, written: int = 0, busy_ms: int = 0, waited_ms: int = 0) -> str:
    """A part of a line: what the kernel shows of one device (block/stat.rst), with sectors of 512 bytes."""
    return f"8:0 9 9 {read} 9 9 9 {written} 9 0 {busy_ms} {waited_ms} 0 0 0 0 0 0"


def test_a_device_moves_bytes_is_busy_and_has_requests_waiting() -> None:
    later = disk(1000, 4000, busy_ms=250, waited_ms=2000)
    found = read(look(0, disk=disk()), look(0.5, disk=later), look(1, disk=later))
    own = found.own
    assert own is not None
    assert own.device == "8:0"
    assert own.read == [(0.5, 1000 * 512 / 0.5), (1.0, 0.0)]
    assert own.written == [(0.5, 4000 * 512 / 0.5), (1.0, 0.0)]
    assert own.busy == [(0.5, 0.5), (1.0, 0.0)]
    assert own.depth == [(0.5, 4.0), (1.0, 0.0)]


def test_processors_are_shares_of_all_that_passed() -> None:
    """user nice system idle iowait irq softirq steal: of 100 ticks."""
    found = read(look(0, cpu="5 5 5 5 5 5 5 5"), look(0.5, cpu="25 15 15 25 25 5 15 15"))
    shares = {name: points[0][1] for name, points in found.processors.items()}
    assert shares == {"user": 0.3, "system": 0.2, "iowait": 0.2, "steal": 0.1}


def test_an_iowait_that_falls_back_is_none() -> None:
    """The kernel's own warning: it may decrease (filesystems/proc.rst)."""
    found = read(look(0, cpu="0 0 0 0 50 0 0 0"), look(0.5, cpu="50 0 0 50 48 0 0 0"))
    assert found.processors["iowait"][0][1] == 0.0
    assert found.processors["user"][0][1] == 0.5, "it takes nothing from the time that passed"


def test_memory_pressure_is_time_that_was_waited_and_dirty_pages_are_what_is_there() -> None:
    found = read(look(0, waited="1000", dirty="100 20"), look(0.5, waited="251000", dirty="8 0"))
    assert found.pressure == [(0.5, 0.5)]
    assert found.dirty == [(0.0, 120 * 1024.0), (0.5, 8 * 1024.0)]


def test_what_the_box_does_not_count_has_no_points() -> None:
    found = read("100.00;;;\n", "100.50;;;\n")
    assert (found.own, found.pressure, found.dirty) == (None, [], [])
    assert not any(found.processors.values())


def test_a_device_that_comes_or_goes_is_seen_while_it_is_there() -> None:
    found = read(look(0, disk=disk()), look(0.5, disk=disk(written=1000)), look(1))
    assert found.own is not None
    assert found.own.written == [(0.5, 1_024_000.0)]


def test_windows_outside_of_the_tools_time_do_not_count() -> None:
    """The sampler begins before the tool, and ends after what is done at the end of a trial."""
    looks = [look(at / 10, dirty=f"{at + 2} 0") for at in range(-2, 9)]
    found = read(*looks, end=0.5)
    assert [round(at, 1) for at, _ in found.dirty] == [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
    assert found.length == 0.5


def test_a_look_right_after_another_makes_no_window_of_its_own_and_loses_nothing() -> None:
    """At the end of a trial the sampler looks once more."""
    disks = [disk(written=at) for at in (0, 10, 20, 520)]
    found = read(*(look(at, disk=each) for at, each in zip((0, 0.1, 0.2, 0.203), disks, strict=True)))
    assert [round(at, 3) for at, _ in found.dirty] == [0.0, 0.1, 0.203]
    assert found.own is not None
    assert found.own.written[-1][1] == pytest.approx(510 * 512 / 0.103)


def test_the_finer_clock_counts_unless_it_was_set() -> None:
    fine = read("100.00 1000000000.000;;;1 0\n", "100.10 1000000000.104;;;1 0\n")
    assert [round(at, 3) for at, _ in fine.dirty] == [0.0, 0.104]
    stepped = read("100.00 1000000000.0;;;1 0\n", "100.10 1000003600.1;;;1 0\n")
    assert [round(at, 3) for at, _ in stepped.dirty] == [0.0, 0.1]
    absent = read("100.00;;;1 0\n", "100.10;;;1 0\n")
    assert [round(at, 3) for at, _ in absent.dirty] == [0.0, 0.1]


def test_one_look_is_no_course_and_a_line_that_is_cut_off_is_left_out() -> None:
    assert over_time(files(look(0))) is None
    assert over_time({}) is None
    whole, half = look(0) + look(0.1), look(0.2)[:20]
    assert over_time(files(whole)) == over_time(files(whole + half))


@given(st.text())
def test_nothing_that_a_full_disk_leaves_makes_it_fail(text: str) -> None:
    over_time({"over_time": text[: text.rfind(";") + 1]})
    over_time(files(look(0) + look(0.1) + text.replace("\n", " ")))


def test_a_recording_agrees_with_the_counters_around_it() -> None:
    """Each device moved over time what it moved in all, the parts before the first and after the last window aside."""
    kept = {file.name: file.read_text() for file in RECORDED.iterdir()}
    found, whole = over_time(kept), around(kept)
    assert found is not None
    assert whole is not None
    assert whole.seconds is not None
    own = found.own
    assert own is not None
    assert [each.device for each in found.devices] == ["7:0", "254:0"]
    starts = [found.dirty[0][0], *(at for at, _ in own.written)]
    moved = sum(rate * (late - early) for (late, rate), early in zip(own.written, starts, strict=False))
    assert moved == pytest.approx(whole.traffic["7:0"].written, rel=0.05)
    assert moved > 0.6 * 300 * 2**20
    assert found.length == pytest.approx(whole.seconds, abs=0.02)
    busy = [sum(share[place][1] for share in found.processors.values()) for place in range(len(own.written))]
    assert all(0 <= each <= 1.0001 for each in busy)
    assert max(value for _, value in found.dirty) > 100e6, "what dd wrote waited in the page cache"
