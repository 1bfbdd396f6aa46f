"""Facts about what a session may do on a box: as whom, with which rights, within which limits."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import ClassVar

from mountlab.core.box_facts.base import FactPart, Group, fact
from mountlab.core.box_facts.parsing import lines

NO_LIMIT, ALL = "no limit", "all"
SYS_ADMIN = 21
"""The bit of CAP_SYS_ADMIN in a set of capabilities (capabilities(7))."""
_UNLIMITED = 2**60
"""Control groups of the first version say 'no limit' as the largest number of pages."""
_LIMITS = r"""
sed -n 's/^Cpus_allowed_list:/allowed/p' /proc/self/status
values all_ /sys/devices/system/cpu/online
while read -r _ _ _ root point rest; do
    case $rest in
        *' - cgroup2 '*) controllers= ;;
        *' - cgroup '*) controllers=,${rest##* }, ;;
        *) continue ;;
    esac
    case $controllers in ''|*,memory,*|*,cpu,*|*,pids,*|*,blkio,*) ;; *) continue ;; esac
    own=
    while IFS=: read -r _ names path; do
        # The second version has neither: ',,' stands in no list of names.
        case ${controllers:-,,} in *",$names,"*) own=$path ;; esac
    done </proc/self/cgroup
    [ -n "$own" ] || continue
    [ "$root" = / ] || own=${own#"$root"}
    if [ -z "$controllers" ]; then
        values known_ "$point/cgroup.controllers"
        limits "$point" "$own" memory.max memory.high cpu.max pids.max io.max
    else
        printf 'known_v1\t%s\n' "$controllers"
        limits "$point" "$own" memory.limit_in_bytes cpu.cfs_quota_us cpu.cfs_period_us pids.max \
            blkio.throttle.read_bps_device blkio.throttle.write_bps_device blkio.throttle.read_iops_device \
            blkio.throttle.write_iops_device
    fi
done </proc/self/mountinfo
"""
_THROTTLES = {
    f"blkio.throttle.{way}_{what}_device": f"{way[0]}{what}" for way in ("read", "write") for what in ("bps", "iops")
}


class SessionLimits(FactPart):
    """What the session's control group may use: the smallest limit of its own and of those above it, NO_LIMIT where
    none of them has one."""

    memory_bytes: int | str | None = None
    memory_high_bytes: int | str | None = None
    """Where it is slowed."""
    processors: float | str | None = None
    """How many processors' time."""
    processors_allowed: str | None = None
    """ALL, or their numbers: '0-3'."""
    tasks: int | str | None = None
    disks: str | None = None
    """'8:0 rbps=1048576, 8:16 wiops=100': the smallest of each device."""


def parse_may_mount(text: str) -> bool:
    """Return whether the capabilities that processes of the box can have at most, in hexadecimal, include mounting."""
    return bool(int(text, 16) >> SYS_ADMIN & 1)


def parse_limits(text: str) -> SessionLimits:
    """Return the limits. What the kernel does not tell is None."""
    values = lines(text)
    by_name = dict(values)
    limited = {word for name, value in values if name.startswith("known_") for word in re.split(r"[ ,]", value)}
    memory = [value for name, value in values if name in ("memory.max", "memory.limit_in_bytes")]
    allowed = by_name.get("allowed")
    return SessionLimits.of(
        memory_bytes=_least(memory, "memory" in limited),
        memory_high_bytes=_least([value for name, value in values if name == "memory.high"], "memory" in limited),
        processors=_least_quota(values, "cpu" in limited),
        processors_allowed=ALL if allowed and allowed == by_name.get("all_online") else allowed,
        tasks=_least([value for name, value in values if name == "pids.max"], "pids" in limited),
        disks=_disk_limits(values) or (NO_LIMIT if limited & {"io", "blkio"} else None),
    )


def _least(values: Iterable[str], known: bool) -> int | str | None:
    numbers = [int(value) for value in values if value.isdecimal() and int(value) < _UNLIMITED]
    return min(numbers, default=NO_LIMIT if known else None)


def _least_quota(values: list[tuple[str, str]], known: bool) -> float | str | None:
    """Return how many processors' time: quota by period, which the first version has in two files."""
    pairs = [value.split() for name, value in values if name == "cpu.max"]
    pairs += [
        [quota, period]
        for (name, quota), (after, period) in pairwise(values)
        if (name, after) == ("cpu.cfs_quota_us", "cpu.cfs_period_us")
    ]
    shares = [round(int(quota) / int(period), 3) for quota, period in pairs if quota.isdecimal() and int(period)]
    return min(shares, default=NO_LIMIT if known else None)


def _disk_limits(values: Iterable[tuple[str, str]]) -> str:
    least: dict[tuple[str, str], int] = {}
    for name, value in values:
        device, _, rest = value.partition(" ")
        kind = _THROTTLES.get(name)
        parts = [f"{kind}={rest}"] if kind else rest.split() if name == "io.max" else []
        for key, _, number in (part.partition("=") for part in parts):
            if number.isdecimal():
                least[device, key] = min(int(number), least.get((device, key), _UNLIMITED))
    return ", ".join(f"{device} {key}={number}" for (device, key), number in least.items())


class RightsFacts(Group):
    """What the session may do."""

    section: ClassVar = "Mountlab's own"
    limits: SessionLimits | None = fact("control group", _LIMITS, parse_limits, key="session_limits",
        section="Limits of the session", area="limits", rank=10,
        parts={"memory_bytes": "memory", "memory_high_bytes": "memory before it is slowed",
               "processors": "processor time", "processors_allowed": "processors it may run on", "tasks": "tasks",
               "disks": "disks"})  # fmt: skip
    level: str | None = fact("rights", key="rights", area="rights", rank=10)
    """One of core.model.Rights."""
    may_mount: bool | None = fact(
        "may mount", "sed -n 's/^CapBnd:[[:space:]]*//p' /proc/self/status", parse_may_mount, area="rights", rank=20
    )
    user: str | None = fact("user", "id -un", area="rights", rank=30)
    uid: int | None = fact("user number", "id -u", int)

    @property
    def as_root(self) -> bool:
        """Whether any command may be run as root."""
        return self.level in ("root", "sudo")

    @property
    def privileged(self) -> bool:
        """Whether anything may be run as root: the helper of a box does it for what it permits."""
        return self.level not in (None, "none")

    @property
    def cannot_mount(self) -> bool:
        """Whether not even root may mount: a container without CAP_SYS_ADMIN."""
        return self.may_mount is False
