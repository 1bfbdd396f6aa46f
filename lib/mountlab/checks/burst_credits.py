"""The caveat on throughput that steps down to a lower level, unless other work on the box explains it."""

from __future__ import annotations

from collections.abc import Iterator

from mountlab.checks.base import Check, Doubt, Evidence
from mountlab.checks.burst import on_a_device, stepped_down
from mountlab.checks.device import other_io
from mountlab.checks.machine import busy

_MEANS = (
    "So does a volume whose burst credits are used up (cloud volumes and instances with credits for I/O), or a drive "
    "whose fast cache is full. A mean over both levels describes neither. Measure the lower level with precondition or "
    "a longer ramp_time, or let the device rest until the higher one lasts for whole trials. Exclude the trials of the "
    "other level with that reason (mountlab exclude)."
)
_DISTURBED = (
    "Other programs used the processors or the disk during these trials, which explains such a step; so does a volume "
    "whose burst credits are used up. Measure again on a quiet box to tell the two apart."
)


def burst_credits(evidence: Evidence) -> Iterator[Doubt]:
    """Throughput that steps down to a lower level and stays there, as where a cloud volume's burst credits run out.

    Of cells whose bytes the device moved. fio's log of a trial is at two levels, three windows or more at each, the
    later one lower by 20 % or more. No later trial is at the higher one, or most trials fall after about the same
    amount. Or half of the cells on a device, or more, step down between the same trials, in one of 100
    possible orders or more. Such cells have no `step`, `drift`, `two-modes`, `autocorrelated` and `not-steady` besides.
    A note where `box-busy` or `other-io` is raised for the cell: that explains a step.
    """
    seen = evidence.once(stepped_down)
    disturbed = {doubt.subject for check in (busy, other_io) for doubt in check(evidence)} if seen else set()
    for cell in evidence.sweep.cells:
        if cell.id in disturbed & seen.keys():
            yield Doubt.of_cell(cell, f"{seen[cell.id]} {_DISTURBED}", severity="note")
        elif cell.id in seen:
            yield Doubt.of_cell(cell, f"{seen[cell.id]} {_MEANS}")


def _no_device(evidence: Evidence) -> str | None:
    return None if evidence.once(on_a_device) else "no cell moved its bytes on a device whose counters were kept"


CHECKS = (
    Check(
        "burst-credits",
        burst_credits,
        "Measure the sustained level (`precondition`, `ramp_time`), or within the credits; never average the two.",
        severities=("error", "note"),
        blind=_no_device,
    ),
)
