"""What a neighbour did, from the lines of its trial: loads, gaps and limits by their definition."""

from __future__ import annotations

import pytest
from mountlab.filesystems.neighbours import Beside, read_beside

BEGIN = ["n begun 90.00", "n moves 91.00", "n from 100.00 1000 2000 0 0 10 5 8 2 0"]
END = ["n to 110.00 1000 22000 4096 10000 30 25 58 2 0"]


def did(*between: str) -> Beside:
    return read_beside({"neighbours": "\n".join([*BEGIN, *between, *END])})["n"]


def test_its_load_is_what_it_moved_between_the_two_looks() -> None:
    beside = did()
    assert (beside.seconds, beside.read_bytes, beside.write_bytes, beside.calls) == (10.0, 4096, 20_000, 20)
    assert (beside.bytes_per_s, beside.calls_per_s) == (2409.6, 2.0)
    assert (beside.user_s, beside.all_s, beside.disk_reads) == (0.2, 0.5, 4096)


@pytest.mark.parametrize(
    ("lines", "gaps", "restarts"),
    [
        ([], (), 0),
        (["n ended 103.00 0", "n begun 103.01", "n moves 103.40"], ((3.0, 3.4),), 1),
        (["n ended 103.00 1", "n begun 103.01", "n ended 103.20 1", "n moves 104.00"], ((3.0, 4.0),), 2),
        (["n ended 108.00 137"], ((8.0, 10.0),), 1),
        (["n look 104.00 0 0 0 0 0 0 0 0 0", "n look 105.00 0 0 0 0 0 0 0 2 0"], ((0.0, 4.0),), 0),
        (["n look 104.00 0 0 0 0 0 0 0 2 0", "n look 105.00 0 0 0 0 0 0 0 2 1"], ((4.0, 5.0),), 0),
        (["n ended 104.50 0", "n look 105.00 0 0 0 0 0 0 0 0 0", "n moves 105.20"], ((0.0, 5.2),), 1),
        (["n ended 99.00 0", "n moves 99.50"], (), 0),
        (["n ended 99.00 0", "n moves 100.50"], ((0.0, 0.5),), 0),
    ],
)
def test_gaps_reach_from_an_end_to_the_next_first_bytes(
    lines: list[str], gaps: tuple[tuple[float, float], ...], restarts: int
) -> None:
    beside = did(*lines)
    assert (beside.gaps, beside.restarts) == (gaps, restarts)
    assert beside.gap_share == pytest.approx(sum(end - begin for begin, end in gaps) / 10)


def test_a_gap_until_the_end_ends_no_later_whatever_the_uptime_of_the_box() -> None:
    for hundredths in range(5_800_000, 5_800_100):
        start, end = hundredths / 100, (hundredths + 185) / 100
        zeros = " 0" * 9
        lines = [f"n begun {start}", f"n from {start}{zeros}", f"n ended {end - 0.5:.2f} 0", f"n to {end}{zeros}"]
        beside = read_beside({"neighbours": "\n".join(lines)})["n"]
        assert (beside.seconds, beside.gaps[-1][1]) == (1.85, 1.85)


def test_limits_are_in_the_words_of_the_kernel() -> None:
    assert did("n limit 99.00 cpu_max cpu.max: 50000 100000").limits == {"cpu_max": "cpu.max: 50000 100000"}


def test_without_both_looks_nothing_is_known() -> None:
    assert read_beside({"neighbours": "\n".join(BEGIN)}) == {}
    assert read_beside({}) == {}


# --- on a client ------------------------------------------------------------------------------------------------------

UPTIME = "90.00 100.00 100.01 103.00 103.01"
"""Of trial.sh: its begin, and looks at the clock around both ends of the measured command."""


def look(at: float, written: int, *, stopped: int = 0) -> str:
    return f"n look {at:.2f} 0 {written} 0 0 {written // 1000} 1 2 1 {stopped}"


def away(*lines: str, ahead: float = 0.0) -> dict[str, Beside]:
    return read_beside({"uptime": UPTIME, "neighbours": "\n".join([*lines, f"n ahead {ahead:.2f}"])})


def test_the_load_of_the_measured_time_lies_between_looks_of_a_clock_that_is_ahead() -> None:
    """It writes 1000 bytes a second from the 599th to the 605th second of its own clock, 500 s ahead."""
    lines = ("n begun 598.00", "n moves 598.50", *(look(599 + n, 1000 * n) for n in range(7)))
    beside = away(*lines, ahead=500.0)["n"]
    assert beside.seconds == pytest.approx(2.99)
    assert beside.write_bytes == 2990
    assert beside.gaps == ()


def test_a_time_in_which_it_was_stopped_is_a_gap_up_to_the_end_of_the_measured_time() -> None:
    lines = [look(99.5, 0), look(101.5, 10), look(102, 10, stopped=1), look(104, 10, stopped=1)]
    assert away(*lines)["n"].gaps == ((1.49, 2.99),)


def test_an_end_on_the_clock_of_the_client_is_a_gap_on_that_of_the_box() -> None:
    lines = [look(129.5, 0), "n ended 131.01 0", "n moves 132.01", look(134, 10)]
    beside = away(*lines, ahead=30.0)["n"]
    assert (beside.gaps, beside.restarts, beside.last_status) == (((1.0, 2.0),), 1, 0)


@pytest.mark.parametrize("at", [(100.5, 104), (99, 102)])
def test_without_a_look_on_both_sides_of_the_measured_time_nothing_is_known_of_it(at: tuple[float, float]) -> None:
    assert away(look(at[0], 0), look(at[1], 10)) == {}


@pytest.mark.parametrize(
    "uptime", ["", "90.00 100.00 100.01", UPTIME.replace("100.01", "?"), UPTIME.replace("103.00", "?")]
)
def test_without_both_ends_of_the_measured_time_nothing_is_known(uptime: str) -> None:
    lines = "\n".join([look(99, 0), look(104, 10), "n ahead 0.00"])
    assert read_beside({"uptime": uptime, "neighbours": lines}) == {}
