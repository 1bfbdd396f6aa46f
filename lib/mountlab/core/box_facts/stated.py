"""Which options of imported logs the logs themselves state, and which are the user's word alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from mountlab.core.box_facts.base import FactPart, Listed
from mountlab.core.groups import by_key
from mountlab.core.numbers import listed

NOT_STATED = "not stated"
"""In the place of the value of an option that logs do not state."""
WITHOUT_EFFECT = frozenset({"group_reporting", "log_avg_msec", "installed"})
"""Options whose difference is none of the I/O: which figures are printed, and what `workload` says, too."""
_OF_A_LOG = frozenset({"randseed", "random_generator"})
"""Options that repeats of one workload are expected to have each their own value of."""


class OptionOfLogs(FactPart):
    """One option of a workload."""

    claimed: str | None = None
    """In the words of the import; None where it says nothing."""
    stated: int = 0
    """Outputs that state it."""
    values: Mapping[str, Listed[str]]
    """File system to the values that its logs state, with 'not stated' where some do not; without those that state
    none."""

    def text(self, filesystem: str) -> str:
        """'4KiB'; '30 s or 60 s' where the logs of one file system differ; 'not stated'."""
        return " or ".join(self.values.get(filesystem, ())) or NOT_STATED


class WorkloadOfLogs(FactPart):
    """What is known of the options of a workload."""

    outputs: int
    """Outputs of its logs."""
    options: Mapping[str, OptionOfLogs]
    filesystems: Listed[str] = ()
    """Those that have an output with figures; () in runs that an earlier version imported."""

    def shown(self, option: str, filesystems: Sequence[str] = ()) -> str:
        """'4KiB', or '1 in ext4, not stated in tmpfs' where the logs differ; of these file systems, or of all."""
        one = self.options[option]
        return by_value((name, one.text(name)) for name in filesystems or self.filesystems or one.values)

    def differing(self, filesystems: Sequence[str] = ()) -> Iterator[str]:
        """Yield the options that the logs of these file systems, or of all, state differently, or that only some do."""
        for name, one in self.options.items():
            values = [frozenset(one.values.get(fs, ())) for fs in filesystems or self.filesystems or one.values]
            among_repeats = name not in _OF_A_LOG and any(len(several) > 1 for several in values)
            if (len(set(values)) > 1 or among_repeats) and name not in WITHOUT_EFFECT:
                yield name


def by_value(values: Iterable[tuple[str, str]]) -> str:
    """Return '4 in ext4, 1 in tmpfs', or '4 in ext4 and xfs; 1 in tmpfs', for pairs of a side and its value; '4' where
    all have it."""
    sides_of = by_key((value, side) for side, value in values)
    if len(sides_of) < 2:
        return next(iter(sides_of), NOT_STATED)
    between = ", " if len(sides_of) == sum(map(len, sides_of.values())) else "; "
    return between.join(f"{value} in {listed(sides)}" for value, sides in sides_of.items())
