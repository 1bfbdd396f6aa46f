"""Looks at a box before anything is measured on it: what `box check` looks at, how idle it is, how steady it works."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from mountlab.box import readiness
from mountlab.box.connection import BoxConnection, checked
from mountlab.box.embedded import open_box
from mountlab.box.facts import gather
from mountlab.box.readiness import CheckRow
from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import BoxError
from mountlab.core.trial_files import TrialFiles
from mountlab.core.units import NS_PER_S
from mountlab.filesystems import kernel_types
from mountlab.filesystems.counters import Around, around
from mountlab.results import paths
from mountlab.sweep.feasible import all_programs

_SNAPSHOT = """
tail -v -n +1 /proc/diskstats /proc/vmstat /proc/stat /proc/pressure/* /proc/loadavg /proc/uptime 2>/dev/null
echo '==> times <=='
times
"""
_WORK = r"""
now() {
    ns=$(date +%s%N)
    case $ns in *N) ns=${EPOCHREALTIME%.*}${EPOCHREALTIME#*.}000 ;; esac
    echo "$ns"
}
for round in $(seq "$1"); do
    start=$(now)
    awk 'BEGIN { for (i = 0; i < 1000000; i++) x += i * i }'
    echo $(($(now) - start))
done
"""
"""In nanoseconds. BusyBox's date knows whole seconds only; its shell knows microseconds."""


@dataclass(frozen=True)
class Fitness:
    """The results of a check of a box before measuring."""

    facts: BoxFacts
    rows: Sequence[CheckRow]
    idle: Around
    """Counters of a time in which Mountlab ran nothing there."""
    work_s: Sequence[float]
    """Time of each round of the same work, in seconds."""


def look(name: str, *, pause_s: float = 3.0, rounds: int = 20) -> Fitness:
    """Check a box over one connection. Changes nothing on it. Raises what opening a box raises."""
    with open_box(paths.load_box(name)) as connection:
        facts = gather(connection, all_programs())
        rows = readiness.check(connection, facts, all_programs(), kernel_types())
        before = _snapshot(connection)
        started = time.time_ns()
        time.sleep(pause_s)
        ended = time.time_ns()
        after = _snapshot(connection)
        completed = checked(connection, ("sh", "-c", _WORK, "mountlab-work", str(rounds)), what="the box does no work")
    idle = around(
        {
            TrialFiles.BEFORE: before,
            TrialFiles.AFTER: after,
            TrialFiles.STARTED: str(started),
            TrialFiles.ENDED: str(ended),
        }
    )
    if idle is None:
        raise BoxError("the kernel's counters cannot be read", where=f"box {name}")
    return Fitness(facts, rows, idle, [int(line) / NS_PER_S for line in completed.text.split()])


def _snapshot(connection: BoxConnection) -> str:
    return checked(connection, ("sh", "-c", _SNAPSHOT), what="the kernel's counters cannot be read").text
