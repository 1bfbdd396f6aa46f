"""What was altered after it was written: the raw output of a run against its checksums."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mountlab.core import chain
from mountlab.core.model import Sweep, Trial
from mountlab.core.run_info import RunInfo
from mountlab.results import derived, raw_sums
from mountlab.results.info import read_sweep, without_excluded
from mountlab.results.journal import Journal, read_as_it_is, read_checked
from mountlab.results.journal import altered as altered_lines
from mountlab.results.raw_sums import Problem
from mountlab.results.stamp import truth_of


def refuse_altered(path: Path, info: RunInfo) -> None:
    """Raise AlteredError where the journal of a run was altered. A journal from which figures were derived as it is now
    was looked at then."""
    if info.has_checksums and not derived.is_made_from(path, truth_of(path)):
        read_checked(path)


def altered(path: Path) -> list[Problem]:
    """Return which measurements are not as they were written, and what is wrong there. Raises StoreError for a journal
    that cannot be read."""
    journal = read_as_it_is(path)
    trials = without_excluded(path, journal.trials)
    return [*altered_lines(path, journal), *altered_raw(path, read_sweep(path).sweep, journal, trials)]


def altered_raw(path: Path, sweep: Sweep, journal: Journal, trials: Sequence[Trial]) -> list[Problem]:
    """Return where raw output is not what it was when it was written; that of excluded trials is not looked at."""
    accepted = accepted_raw(journal.record)
    counted = [trial.trial_id for trial in trials if trial.status != "excluded" and trial.trial_id in journal.raw]
    digests = {trial_id: accepted.get(trial_id, journal.raw[trial_id]) for trial_id in counted}
    return [
        *raw_sums.altered_trials(path / "raw", digests),
        *raw_sums.altered_mounts(path / "raw", _mounts_with_sums(journal.record, sweep, trials), accepted),
    ]


def altered_excluded(path: Path, journal: Journal, trials: Sequence[Trial]) -> list[str]:
    """Return the excluded trials whose raw output is not what it was when it was written."""
    accepted = accepted_raw(journal.record)
    excluded = [trial.trial_id for trial in trials if trial.status == "excluded" and trial.trial_id in journal.raw]
    digests = {trial_id: accepted.get(trial_id, journal.raw[trial_id]) for trial_id in excluded}
    return [problem.name for problem in raw_sums.altered_trials(path / "raw", digests)]


def accepted_raw(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the trials and mounts whose altered raw output a person accepted, each with its digest then."""
    return {name: digest for entry in record.get(chain.ALTERED, ()) for name, digest in entry.get("raw", {}).items()}


def _mounts_with_sums(record: Mapping[str, Any], sweep: Sweep, trials: Iterable[Trial]) -> list[str]:
    """Return the directories of mounts below raw/ that have checksums: none in a run of an earlier version."""
    if chain.KEY not in record or sweep.imported:
        return []
    mounts = {trial.mount for trial in trials if trial.status != "excluded"}
    return sorted(mounts - {""} | {f"c-{fs.name}" for fs in sweep.filesystems})
