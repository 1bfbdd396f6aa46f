"""Sides of a comparison that did not do the same work."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from checks.test_checks import build, found, make, the_only
from mountlab.checks import Evidence
from mountlab.checks.work import Extent
from rows import every_row
from sweeps import sweep

TWO = {"filesystems": {"ext4": {"type": "ext4", "image": "1GiB"}, "tmpfs": {"type": "tmpfs", "size": "1GiB"}}}
FIO = {"tool": "fio", "rw": "read", "size": "512MiB"}


def evidence(**changes: Any) -> Evidence:
    """Trials of 5 s on ext4 and of 10 s on tmpfs, at the same rate; `changes`: in the sweep."""
    whole = build(make(**TWO, baseline="ext4"))
    frame = whole.measurements
    late = (frame["cell"] == "tmpfs/r") & (frame["metric"] == "elapsed")
    longer = frame.assign(value=frame["value"].mask(late, 10.0))
    return replace(whole, measurements=longer, sweep=replace(whole.sweep, **changes))


def test_logs_of_other_length_and_amount_have_a_caveat_on_the_cell_that_is_compared() -> None:
    caveat = the_only("unequal-work", evidence(imported=True))
    assert (caveat.severity, caveat.scope, caveat.subject) == ("warning", "cell", "tmpfs/r")
    assert caveat.message.replace("\u00a0", " ").startswith(
        "it and the baseline ext4 differ in the time that was measured, 10.0 s against 5.00 s (moved: 1.00 GB against "
        "500 MB). A ratio is of all this together: a short run or a small file may fit a cache."
    )


def test_measured_trials_of_one_workload_that_its_amount_ends_do_the_same_work() -> None:
    assert found("unequal-work", evidence()) == []


@every_row(
    ("options", "raised"),
    [
        ({"runtime": "10s"}, True),
        ({"runtime": "6s"}, True),
        ({"runtime": "5s"}, False),  # it ended both: one flushed for another 5 s
        ({"runtime": "10s", "time_based": True}, False),
        ({}, False),
    ],
)
def test_a_runtime_that_may_end_the_slow_side_only_is_a_caveat_where_it_did(
    options: dict[str, Any], raised: bool
) -> None:
    given = sweep(**TWO, baseline="ext4", workloads={"r": {**FIO, **options}}, design={"trial_timeout": "10min"})
    looked = found("unequal-work", replace(evidence(), sweep=given.sweep))
    assert [each.subject for each in looked] == ["tmpfs/r"] * raised


def test_without_a_baseline_nothing_is_compared() -> None:
    assert found("unequal-work", evidence(imported=True, baseline=None)) == []
    assert found("unequal-work", evidence(imported=True, excluded=("ext4/r",))) == []


@every_row(
    ("seconds", "amounts", "differs"),
    [
        (10, {"read_bandwidth": 200}, True),
        (10, {"read_bandwidth": 104}, False),
        (5.2, {"read_bandwidth": 200}, False),
        (10, {"read_bandwidth": 101, "read_iops": 400}, False),
        (10, {"file_rate": 400}, False),
        (10, {}, False),
    ],
)
def test_neither_the_time_nor_an_amount_that_both_know_is_the_same(
    seconds: float, amounts: dict[str, float], differs: bool
) -> None:
    """Within 5 % they are; other blocks of the same bytes are as much, in other I/Os."""
    assert Extent(seconds, amounts).differs(Extent(5, {"read_bandwidth": 100, "read_iops": 100})) == differs
