"""Leave trials of a run out of its figures, or let them count again: exclude.yml beside the run.

The journal and the raw output stay as they are.
"""

from __future__ import annotations

import getpass
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from mountlab.core.disk import path_text, remove_file, replace_file
from mountlab.core.errors import InputError, StoreError
from mountlab.core.safe_yaml import as_yaml
from mountlab.results.find import run_path
from mountlab.results.info import EXCLUDE, as_outcomes, read_excluded
from mountlab.results.journal import read_journal
from mountlab.results.run_file import check_is_run
from mountlab.results.store import Run, load_run
from mountlab.results.tables import derive
from mountlab.results.writer import held_run
from mountlab.sweep.exclude_file import ExclusionFile, as_mapping, check_excludable


def exclude(run: Path | str, *trials: str, reason: str = "", undo: bool = False) -> Run:
    """Leave trials of a run out of its figures, with the reason why, and return the run as it is then. `undo`: let them
    count again.

    Nothing is removed: the trials stay in the journal and in raw/, and the report shows them with the reason, who left
    them out and when, and every figure without them and with them. Rewrites exclude.yml.

    Raises InputError without a reason, ParameterError for a trial that the run does not have or that gave no figure,
    and RunInUse while the run is measured.
    """
    path = run_path(run)
    check_is_run(path)
    _check_words(trials, reason, undo=undo)
    with held_run(path):
        journal = as_outcomes(path, read_journal(path))
        statuses: dict[str, str] = {trial.trial_id: trial.status for trial in journal}
        excluded = read_excluded(path, journal)
        if undo:
            _check_excluded(path, trials, excluded)
            remaining = {name: file for name, file in excluded.items() if name not in trials}
        else:
            for name in trials:
                check_excludable(name, statuses, where=path_text(path))
            now = datetime.now(UTC).isoformat(timespec="seconds")
            entry = ExclusionFile(reason=reason, by=getpass.getuser(), at=now)
            remaining = {**excluded, **dict.fromkeys(trials, entry)}
        if remaining:
            replace_file(path / EXCLUDE, as_yaml(as_mapping(remaining)).encode())
        else:
            remove_file(path / EXCLUDE)
    derive(path)
    return load_run(path)


def _check_words(trials: Sequence[str], reason: str, *, undo: bool) -> None:
    if not trials:
        raise InputError("no trial is named", where="exclude", got="nothing", allowed="ids of trials, such as t0012")
    if not undo and not reason.strip():
        raise InputError(
            "a trial is excluded for a reason",
            where=f"exclude {' '.join(trials)}",
            got=repr(reason),
            allowed="a text that says what was wrong with the trial",
            next_step='--reason "the nightly backup ran, by its log"',
        )
    if undo and reason:
        raise InputError("both a reason and undo are given", where="exclude", got=repr(reason), allowed="one of them")


def _check_excluded(path: Path, trials: Sequence[str], excluded: dict[str, ExclusionFile]) -> None:
    missing = [name for name in trials if name not in excluded]
    if missing:
        raise StoreError(
            "the trial is not excluded",
            where=path_text(path / EXCLUDE),
            got=", ".join(missing),
            allowed=", ".join(excluded) or "none: no trial of this run is excluded",
        )
