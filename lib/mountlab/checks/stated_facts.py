"""Which options of imported logs the logs themselves state, and which are the user's word alone: kept in run.json."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import TypeAdapter

from mountlab.core.model import Scalar
from mountlab.core.numbers import first_few, listed
from mountlab.core.units import format_bytes
from mountlab.tools import TOOLS

KEY = "stated"
"""Under `facts` of a run.json. Runs that an earlier version imported have none."""
NOT_STATED, NOT_GIVEN = "not stated", "not given"
"""In the place of the value of an option: logs do not state it, the sweep of a measured run does not give it."""
VERSION = "version"
"""That of the tool, which stands among its options: of another version they may mean something else."""
WITHOUT_EFFECT = frozenset({"group_reporting", "log_avg_msec", "installed"})
"""Options whose difference is none of the I/O: which figures are printed, and what `workload` says, too."""
_OF_A_LOG = frozenset({"randseed", "random_generator"})
"""Options that repeats of one workload are expected to have each their own value of."""
_MOST_NAMED, _LONGEST = 3, 200


@dataclass(frozen=True, kw_only=True)
class OptionOfLogs:
    """One option of a workload."""

    claimed: str | None = None
    """In the words of the import; None where it says nothing."""
    stated: int = 0
    """Outputs that state it."""
    values: Mapping[str, tuple[str, ...]]
    """File system to the values that its logs state, with 'not stated' where some do not; without those that state
    none."""

    def of(self, filesystem: str) -> str:
        """'4KiB'; '30 s or 60 s' where the logs of one file system differ; 'not stated'."""
        return " or ".join(self.values.get(filesystem, ())) or NOT_STATED


@dataclass(frozen=True, kw_only=True)
class WorkloadOfLogs:
    """What is known of the options of a workload."""

    outputs: int
    """Outputs of its logs."""
    options: Mapping[str, OptionOfLogs]
    filesystems: tuple[str, ...] = ()
    """Those that have an output with figures; () in runs that an earlier version imported."""

    def shown(self, option: str, filesystems: Sequence[str] = ()) -> str:
        """'4KiB', or '1 in ext4, not stated in tmpfs' where the logs differ; of these file systems, or of all."""
        one = self.options[option]
        return by_value((name, one.of(name)) for name in filesystems or self.filesystems or one.values)

    def differing(self, filesystems: Sequence[str] = ()) -> Iterator[str]:
        """Yield the options that the logs of these file systems, or of all, state differently, or that only some do."""
        for name, one in self.options.items():
            values = [frozenset(one.values.get(fs, ())) for fs in filesystems or self.filesystems or one.values]
            among_repeats = name not in _OF_A_LOG and any(len(each) > 1 for each in values)
            if (len(set(values)) > 1 or among_repeats) and name not in WITHOUT_EFFECT:
                yield name


def by_value(values: Iterable[tuple[str, str]]) -> str:
    """Return '4 in ext4, 1 in tmpfs', or '4 in ext4 and xfs; 1 in tmpfs', for pairs of a side and its value; '4' where
    all have it."""
    found: dict[str, list[str]] = {}
    for side, value in values:
        found.setdefault(value, []).append(side)
    if len(found) < 2:
        return next(iter(found), NOT_STATED)
    between = ", " if len(found) == sum(map(len, found.values())) else "; "
    return between.join(f"{value} in {listed(sides)}" for value, sides in found.items())


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


def differing(known: Mapping[str, WorkloadOfLogs]) -> list[str]:
    """Return 'numjobs: 4 in ext4, 1 in tmpfs' for options in which the logs of a workload differ; behind the workloads
    where these are not all."""
    found: dict[str, list[str]] = {}
    for label, own in known.items():
        for name in own.differing():
            found.setdefault(f"{name}: {own.shown(name)}", []).append(label)
    return [
        text if len(labels) == len(known) else f"{first_few(labels, _MOST_NAMED)}: {text}"
        for text, labels in found.items()
    ]


def value_text(tool: str, option: str, value: Scalar) -> str:
    """Return the value of an option as people read it; one text for what has two spellings."""
    known = TOOLS[tool].options.get(option)
    if option == "rw" and value == "readwrite":
        return "rw"
    is_size = known.kind == "size" if known else option.endswith("size") or option.startswith("offset")
    if isinstance(value, str) or not (is_size or (known and known.kind == "duration")):
        return str(value)[:_LONGEST]
    return format_bytes(round(value)) if is_size else f"{value:g} s"
