"""Was a commit on the device when it was acknowledged? Commits that a workload calls durable, by flushes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mountlab.checks.base import Check, Doubt, Evidence, in_memory, of_trials
from mountlab.checks.flushed import flushed_devices
from mountlab.checks.layers import level_name
from mountlab.checks.places import writes_elsewhere
from mountlab.core.frames import rows_of
from mountlab.core.groups import by_key
from mountlab.core.model import Cell
from mountlab.filesystems.evidence import Device
from mountlab.programs import TOOLS

SLACK = 1.05
"""Beyond the bound by more than what begins in one window of counting and ends in another."""
_ADVICE = (
    "Look for what does not flush: a setting of the program, a mount option such as nobarrier, a layer between. Or do "
    "not call these commits durable. Direct writes with O_DSYNC need no flush on a device that knows FUA (queue/fua)."
)


@dataclass(frozen=True)
class ClaimedCommits:
    """What one trial claims, and what the device below it counted."""

    trial_id: str
    commits: float
    clients: int
    flushes: int
    """Of all devices that count them."""
    seconds: float
    """For how long the flushes were counted."""
    device: str

    @property
    def holds(self) -> bool:
        """Whether each commit can have been part of a flush: at each flush one of each client may wait."""
        return self.commits <= SLACK * self.flushes * self.clients + self.clients


def not_durable(evidence: Evidence) -> Iterator[Doubt]:
    """Commits that were acknowledged before they were on the device.

    A workload calls its commits durable: pgbench that writes, with `fsync` and `synchronous_commit`; sqlite with
    `synchronous: full` or `extra`; flushes of fio and of pg_test_fsync; a command with the metric `commits`. In
    some trial there were more of them than flushes of the device times clients: one flush may serve a commit of each
    client. Flushes of several devices (a RAID) are summed. Not on file systems in memory, where nothing is durable.
    """
    for cell in evidence.sweep.cells:
        claims = [
            claim for trial_id in evidence.counted.get(cell.id, ()) if (claim := _claim(evidence, cell, trial_id))
        ]
        broken = [claim for claim in claims if not claim.holds]
        if broken:
            worst = max(broken, key=lambda claim: claim.commits / (claim.flushes or 0.5))
            clients = f"{worst.clients} client{'s' * (worst.clients > 1)}"
            flushed = (
                f"{worst.flushes / worst.seconds:.1f} flushes a second, each for a commit of each client at most"
                if worst.flushes
                else "no flush at all"
            )
            yield Doubt.of_cell(
                cell,
                f"{of_trials([claim.trial_id for claim in broken], claims)} commits were acknowledged as "
                f"durable that were not on the device: {worst.commits / worst.seconds:.1f} commits a second by "
                f"{clients}, and {worst.device} counted {flushed}. {_ADVICE}",
            )


def _claim(evidence: Evidence, cell: Cell, trial_id: str) -> ClaimedCommits | None:
    """Return what a trial claims and its device counted; None where it claims nothing, or where that was not seen."""
    figures = evidence.once(_figures).get(trial_id, {})
    commits = TOOLS[cell.workload.tool].commits(cell.workload, figures)
    around = evidence.around.get(trial_id)
    devices, why = _devices(evidence, cell, trial_id)
    if commits is None or why or around is None or not around.seconds:
        return None
    name, traffic = level_name(devices, evidence.device_names), evidence.traffic[trial_id]
    flushes = sum(traffic[device].flushes for device in devices)
    count = commits.rate * (around.seconds if commits.seconds is None else commits.seconds)
    return ClaimedCommits(trial_id, count, commits.clients, flushes, around.seconds, name)


def _figures(evidence: Evidence) -> dict[str, dict[tuple[str, str], float]]:
    """Return trial id to metric and label to value."""
    rows = rows_of(evidence.measurements, "trial_id", "metric", "label", "value")
    by_trial = by_key((trial_id, ((metric, label), float(value))) for trial_id, metric, label, value in rows)
    return {trial_id: dict(figures) for trial_id, figures in by_trial.items()}


def _devices(evidence: Evidence, cell: Cell, trial_id: str) -> tuple[tuple[Device, ...], str]:
    """Return the devices whose flushes count for a trial, and '' or why they say nothing."""
    files = evidence.open_files.get(trial_id)
    if files and (mount := writes_elsewhere(files, str(cell.filesystem.path))):
        return (), f"it wrote to {mount.label}, and not only to the device below its directory"
    levels = () if in_memory(cell.filesystem) else evidence.levels_of(trial_id)
    return flushed_devices(levels, evidence.traffic.get(trial_id, {}), evidence.device_names, evidence.facts)


def _nothing_seen(evidence: Evidence) -> str | None:
    """Return why no claim could be held against a device; None where one was, and where nothing is claimed."""
    claiming = [
        (cell, trial_id)
        for cell in evidence.sweep.cells
        if not in_memory(cell.filesystem)
        for trial_id in evidence.counted.get(cell.id, ())
        if TOOLS[cell.workload.tool].commits(cell.workload, evidence.once(_figures).get(trial_id, {}))
    ]
    if not claiming:
        return None
    reasons = [_devices(evidence, cell, trial_id)[1] for cell, trial_id in claiming]
    return None if "" in reasons else reasons[0]


CHECKS = (Check("not-durable", not_durable, _ADVICE, severities=("error",), blind=_nothing_seen),)
