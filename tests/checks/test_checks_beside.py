"""Caveats of neighbours: raised and not raised."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from checks.test_checks import _trial, build, found, make, the_two
from mountlab.analysis.measurements import measurement_frame
from mountlab.checks import CHECKS
from mountlab.checks.beside import loads
from mountlab.core.frames import pd
from mountlab.filesystems.counters import Around
from mountlab.filesystems.neighbours import Beside

FIO = {"tool": "fio", "rw": "write", "bs": "1MiB", "size": "64MiB"}
FILESYSTEMS = {"ext4": {"type": "ext4", "image": "1GiB"}, "xfs": {"type": "xfs", "image": "1GiB"}}


def beside(rate: float) -> Beside:
    return Beside(
        seconds=10.0, read_bytes=0, write_bytes=round(10 * rate), calls=10, disk_reads=0, user_s=0.1, all_s=0.2,
        restarts=0, gaps=(),
    )  # fmt: skip


def evidence(rates: Mapping[str, list[float]], kept: bool = True) -> Any:
    """Trials beside a neighbour with these loads in bytes per second, by file system."""
    sweep = make(filesystems=FILESYSTEMS, workloads={"w": {**FIO, "beside": "n"}}, neighbours={"n": FIO})
    trials = [
        (_trial(cell, number, 10 * place + number), rate)
        for place, cell in enumerate(sweep.cells)
        for number, rate in enumerate(rates[cell.filesystem.name], start=1)
    ]
    around = {trial.trial_id: Around(beside={"n": beside(rate)} if kept else {}) for trial, rate in trials}
    base = build(make())
    fields = {name: getattr(base, name) for name in base.__dataclass_fields__}
    frame = pd.DataFrame([vars(trial) for trial, _ in trials])
    return type(base)(
        **{**fields, "sweep": sweep, "trials": frame, "around": around, "measurements": measurement_frame([])}
    )


@pytest.mark.parametrize("xfs", [[100e6] * 3, [109e6] * 3, [100e6, 100e6, 500e6]])
def test_loads_of_one_neighbour_that_differ_by_up_to_a_tenth_are_not_doubted(xfs: list[float]) -> None:
    assert found("neighbour-load-differs", evidence({"ext4": [100e6] * 3, "xfs": xfs})) == []


def test_loads_of_one_neighbour_that_differ_by_more_than_a_tenth_are_doubted() -> None:
    for caveat in the_two("neighbour-load-differs", evidence({"ext4": [100e6] * 3, "xfs": [111e6] * 3})):
        message = caveat.message.replace("\u00a0", " ")
        assert "neighbour n moved 100 MB/s on ext4 and 111 MB/s on xfs" in message
        assert "11 % more on one than on another" in message


def test_where_nothing_was_kept_the_check_is_blind() -> None:
    check = CHECKS["neighbour-load-differs"]
    assert check.blind(evidence({"ext4": [1.0], "xfs": [2.0]}, kept=False))
    assert check.blind(evidence({"ext4": [1.0], "xfs": [2.0]})) is None
    assert check.blind(build(make())) is None


def test_loads_are_of_counted_trials() -> None:
    of = evidence({"ext4": [1e6, 3e6, 2e6], "xfs": [2e6]})
    around = {name: one.beside for name, one in of.around.items()}
    rows = loads(of.sweep, of.trials, around)
    assert [(row.cell.filesystem.name, row.bytes_per_s) for row in rows] == [("ext4", 2e6), ("xfs", 2e6)]
