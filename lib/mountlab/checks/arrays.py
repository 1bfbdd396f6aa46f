"""Arrays and pools that were not clean while trials ran."""

from __future__ import annotations

from collections.abc import Iterator

from mountlab.checks.base import Check, Doubt, Evidence, of_trials
from mountlab.core.groups import by_key
from mountlab.filesystems.counters import Around
from mountlab.filesystems.evidence import every_device


def unclean_arrays(evidence: Evidence) -> Iterator[Doubt]:
    """An array of md or of LVM below the file system synchronised, checked itself, or lacked a device during trials; or
    the pool of ZFS that it is in was not ONLINE, or ran a scrub or resilver.

    It is seen before or after a trial: in /proc/mdstat, `dmsetup status` and `zpool status`.
    """
    for cell, trials in evidence.trials_with_counters():
        found = by_key((what, trial_id) for trial_id, around in trials for what in _unclean(evidence, trial_id, around))
        for what, affected in found.items():
            yield Doubt.of_cell(
                cell,
                f"{of_trials(affected, trials)} {what} was not clean: its own reads and writes took their part of the "
                "devices, or fewer devices answered. Wait until /proc/mdstat, `lvs` or `zpool status` shows it clean, "
                "and run again; what the box begins by itself can be put off (mdcheck, checkarray, the monthly scrub).",
            )


def _arrays_below(evidence: Evidence, trial_id: str) -> list[str]:
    names = (evidence.device_names.get(device, "") for device in every_device(evidence.levels_of(trial_id)))
    return [name for name in names if name.startswith("md")]


def _unclean(evidence: Evidence, trial_id: str, around: Around) -> Iterator[str]:
    """Yield 'the array md127 (resync)', of what is below one trial; how far it was differs from trial to trial."""
    for name in _arrays_below(evidence, trial_id):
        if state := (around.arrays or {}).get(name):
            yield f"the array {name} ({state.partition(' at ')[0]})"
    for name, state in (around.below or {}).items():
        yield f"{name} ({state})"


def _not_shown(evidence: Evidence) -> str | None:
    """Blind where a file system lies on an array or in a pool that the trials saw nothing of."""
    for cell, trials in evidence.trials_with_counters():
        kinds = [str(layer.options.get("kind", "")) for layer in cell.filesystem.stack]
        raid = next((kind for kind in kinds if kind.startswith("raid")), "")
        for trial_id, around in trials:
            if around.below is None and (cell.filesystem.type == "zfs" or raid):
                return f"`dmsetup status` showed nothing of {raid} of LVM" if raid else "`zpool status` showed no pool"
            if around.arrays is None and (names := _arrays_below(evidence, trial_id)):
                return f"/proc/mdstat does not show {names[0]}"
    return None


CHECKS = (
    Check(
        "array-not-clean",
        unclean_arrays,
        "Wait until the array (/proc/mdstat, `lvs`) or the pool (`zpool status`) is clean, and run again.",
        blind=_not_shown,
    ),
)
