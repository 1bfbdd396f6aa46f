"""Arrays and pools that were not clean while trials ran."""

from __future__ import annotations

from collections.abc import Iterator

from mountlab.checks.base import Check, Doubt, Evidence, of_trials
from mountlab.core.groups import by_key
from mountlab.filesystems.counters import Around
from mountlab.filesystems.evidence import every_device


def unclean_arrays(evidence: Evidence) -> Iterator[Doubt]:
    """An array of md below the file system synchronised, checked itself, or lacked a device during trials; or the pool
    of ZFS that it is in was not ONLINE.

    /proc/mdstat shows it before or after a trial, for an array that the file system lies on; of a pool the kernel shows
    the state, for each trial too. A resilver or scrub of a pool that is ONLINE is not seen.
    """
    for cell, trials in evidence.trials_with_counters():
        found = by_key((what, trial_id) for trial_id, around in trials for what in _unclean(evidence, trial_id, around))
        for what, affected in found.items():
            yield Doubt.of_cell(
                cell,
                f"{of_trials(affected, trials)} the array {what} was not clean: its own reads and writes took their "
                "part of the devices, or fewer devices answered. Wait until /proc/mdstat shows it clean, and run "
                "again; a check that the box begins by itself can be put off (mdcheck, checkarray).",
            )
        pools = by_key((what, trial_id) for trial_id, around in trials for what in (around.pools or {}).items())
        for (name, state), affected in pools.items():
            yield Doubt.of_cell(
                cell,
                f"{of_trials(affected, trials)} the pool {name} was {state}: fewer devices answered, or none. `zpool "
                "status` names the device; its errors may have cost time, too. Run again with devices that are whole.",
            )


def _arrays_below(evidence: Evidence, trial_id: str) -> list[str]:
    names = (evidence.device_names.get(device, "") for device in every_device(evidence.levels_of(trial_id)))
    return [name for name in names if name.startswith("md")]


def _unclean(evidence: Evidence, trial_id: str, around: Around) -> Iterator[str]:
    """Yield 'md127 (resync)', of the arrays below one trial; how far it was differs from trial to trial."""
    for name in _arrays_below(evidence, trial_id):
        if state := (around.arrays or {}).get(name):
            yield f"{name} ({state.partition(' at ')[0]})"


def _not_shown(evidence: Evidence) -> str | None:
    """Blind where a file system lies on an array that the trials saw nothing of, and on one of LVM."""
    for cell, trials in evidence.trials_with_counters():
        kinds = [str(layer.options.get("kind", "")) for layer in cell.filesystem.stack]
        if kind := next((kind for kind in kinds if kind.startswith("raid")), ""):
            return f"/proc/mdstat does not show what {kind} of LVM does"
        for trial_id, around in trials:
            if cell.filesystem.type == "zfs" and around.pools is None:
                return "the kernel of the box does not show the state of the pool (/proc/spl/kstat/zfs)"
            if around.arrays is None and (names := _arrays_below(evidence, trial_id)):
                return f"/proc/mdstat does not show {names[0]}"
    return None


CHECKS = (
    Check(
        "array-not-clean",
        unclean_arrays,
        "Wait until the array (/proc/mdstat) or the pool (`zpool status`) is clean, and run again.",
        blind=_not_shown,
    ),
)
