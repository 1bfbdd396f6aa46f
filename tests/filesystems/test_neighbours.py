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


def test_limits_are_in_the_words_of_the_kernel() -> None:
    assert did("n limit 99.00 cpu_max cpu.max: 50000 100000").limits == {"cpu_max": "cpu.max: 50000 100000"}


def test_without_both_looks_nothing_is_known() -> None:
    assert read_beside({"neighbours": "\n".join(BEGIN)}) == {}
    assert read_beside({}) == {}
