"""Which options of imported logs the logs themselves state, and which are the user's word alone: kept in run.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

KEY = "stated"
"""Under `facts` of a run.json. Runs that an earlier version imported have none."""


@dataclass(frozen=True, kw_only=True)
class OptionOfLogs:
    """One option of a workload."""

    claimed: str | None = None
    """In the words of the import; None where it says nothing."""
    stated: int = 0
    """Outputs that state it."""
    values: Mapping[str, tuple[str, ...]]
    """File system to the values that its logs state."""

    @property
    def shown(self) -> str:
        """'4KiB', or 'ext4: 1; tmpfs: 0' where the logs of the file systems differ; 'not stated'."""
        stated = {name: ", ".join(each) for name, each in self.values.items()}
        if len(set(stated.values())) > 1:
            return "; ".join(f"{name}: {text}" for name, text in stated.items())
        return next(iter(stated.values()), "not stated")

    @property
    def differs(self) -> bool:
        """Whether the logs of one file system state something else than those of another."""
        return len(set(map(frozenset, self.values.values()))) > 1


@dataclass(frozen=True, kw_only=True)
class WorkloadOfLogs:
    """What is known of the options of a workload."""

    outputs: int
    """Outputs of its logs."""
    options: Mapping[str, OptionOfLogs]


_READ = TypeAdapter(dict[str, WorkloadOfLogs])


def read(facts: Mapping[str, Any]) -> dict[str, WorkloadOfLogs] | None:
    """Return workload label to what is known of its options; None where the run does not say it. Raises ValueError for
    a value of another shape."""
    kept = facts.get(KEY)
    return None if kept is None else _READ.validate_python(kept)


def unconfirmed(known: Mapping[str, WorkloadOfLogs]) -> list[str]:
    """Return the options that the import gives and no log states."""
    each = (item for own in known.values() for item in own.options.items())
    return list(dict.fromkeys(name for name, option in each if option.claimed is not None and not option.stated))


def differing(known: Mapping[str, WorkloadOfLogs]) -> Iterator[str]:
    """Yield 'fio rw=read: direct (ext4: 1; tmpfs: 0)' for options in which the logs of file systems differ."""
    for label, own in known.items():
        for name, option in own.options.items():
            if option.differs:
                yield f"{label}: {name} ({option.shown})"
