"""exclude.yml beside a run: the trials that do not count, each with the reason, and who left it out when."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import BeforeValidator, StringConstraints

from mountlab.core.errors import ParameterError
from mountlab.core.options import unknown_key
from mountlab.core.safe_yaml import Raw
from mountlab.sweep.validated import File, validated


class ExclusionFile(File):
    """Why a trial does not count. A text alone is the reason."""

    reason: Annotated[str, StringConstraints(min_length=1, strip_whitespace=True)]
    """What was wrong with the trial: `the nightly backup ran, by its log`."""
    by: str = ""
    """Who left it out."""
    at: str = ""
    """When: date and time."""

    @property
    def text(self) -> str:
        """Return 'the backup ran; excluded by jo on 2026-11-23'."""
        parts = [f" by {self.by}" if self.by else "", f" on {self.at[:10]}" if self.at else ""]
        return f"{self.reason}; excluded{''.join(parts)}" if any(parts) else self.reason


def _of_text(value: object) -> object:
    return {"reason": value} if isinstance(value, str) else value


class ExcludeFile(File):
    """exclude.yml beside a run: trials that do not count, each with the reason."""

    exclude: dict[str, Annotated[ExclusionFile, BeforeValidator(_of_text), "text, or an entry"]]
    """Trial to the reason for which it does not count: `{t0012: the nightly backup ran, by its log}`."""


def parse_excluded(raw: Mapping[str, object], statuses: Mapping[str, str], *, where: str) -> dict[str, ExclusionFile]:
    """Return trial id to why it does not count. `statuses`: trial id to its status, of a whole run.

    Raises ParameterError for a trial that the run does not have or that gave no figure, and for one without a reason.
    """
    excluded = validated(ExcludeFile, raw, where).exclude
    for trial_id in excluded:
        check_excludable(trial_id, statuses, where=f"{where}: exclude")
    return excluded


def check_excludable(trial_id: str, statuses: Mapping[str, str], *, where: str) -> None:
    """Raise ParameterError for a trial that cannot be excluded."""
    if trial_id not in statuses:
        raise unknown_key(trial_id, statuses, where=where, what="trial of this run")
    if statuses[trial_id] not in ("ok", "timeout"):
        raise ParameterError(
            "a trial that gave no figure need not be excluded",
            where=f"{where}.{trial_id}",
            got=f"it is {statuses[trial_id]}",
            allowed="trials that are ok, or ran into their time limit",
        )


def as_mapping(excluded: Mapping[str, ExclusionFile]) -> Raw:
    """Return exclusions as exclude.yml holds them."""
    rows = {trial: entry.model_dump(exclude_defaults=True) for trial, entry in excluded.items()}
    return {"exclude": {trial: row if len(row) > 1 else row["reason"] for trial, row in rows.items()}}
