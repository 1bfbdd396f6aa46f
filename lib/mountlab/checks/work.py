"""Whether sides that are compared did the same work: for as long or as much, by as many jobs, through one engine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from mountlab.checks.base import Check, Doubt, Evidence
from mountlab.checks.stated_facts import NOT_GIVEN
from mountlab.core.box_facts.stated import NOT_STATED, WorkloadOfLogs
from mountlab.core.frames import pd, rows_of
from mountlab.core.model import Workload
from mountlab.core.names import cell_id
from mountlab.core.numbers import quantity
from mountlab.core.units import format_seconds
from mountlab.fio.jobs import jobs_of
from mountlab.fio.report import over_phases

OPTIONS = frozenset(
    {
        "runtime", "time_based", "ramp_time", "time_per_test",
        "size", "io_size", "number_ios", "filesize", "file_size", "loops", "nrfiles", "nfiles", "count",
        "numjobs", "threads", "ioengine", "iodepth",
    }
)  # fmt: skip
"""Options that say how long, how much, by how many and through what: a ratio of sides that differ in one is of it,
too."""
_DEFAULTS = {
    "time_based": "0", "ramp_time": "0 s", "number_ios": "0", "loops": "1", "nrfiles": "1", "numjobs": "1",
    "iodepth": "1",
}  # fmt: skip
"""What fio does without the option: who states that, hardly differs from one who states nothing."""
_SAME = 1.05
"""Times and amounts that differ by less than this factor count as the same."""
_EQUAL = "Compare sides of equal work, or say that the work differs wherever you show the ratio."
ADVICE = f"A ratio is of all this together: a short run or a small file may fit a cache. {_EQUAL}"


@dataclass(frozen=True)
class Extent:
    """How long the trials of a cell measured, and what they did in that time, on average."""

    seconds: float
    amounts: Mapping[str, float]
    """Rate, such as read_bandwidth, to rate times seconds of each trial: bytes or operations."""

    def differs(self, other: Extent) -> bool:
        """Return whether neither the time was the same nor any amount: of one alone, the speed is the reason."""
        shared = self.amounts.keys() & other.amounts.keys()
        same = any(is_same_amount(self.amounts[name], other.amounts[name]) for name in shared)
        return bool(shared) and not same and not is_same_amount(self.seconds, other.seconds)

    def until(self, limit: float | None) -> Extent:
        """Return the same, of the time up to a limit."""
        return replace(self, seconds=min(self.seconds, limit)) if limit else self

    def against(self, other: Extent) -> str:
        """'30.0 s against 60.0 s (moved: 3.1 GB against 12 GB)'."""
        shared = [name for name in self.amounts if name.endswith("bandwidth") and name in other.amounts]
        moved = [quantity(sum(extent.amounts[name] for name in shared), "B") for extent in (self, other)]
        times = " against ".join(format_seconds(extent.seconds) for extent in (self, other))
        return f"{times} (moved: {' against '.join(moved)})" if shared else times


def extents(measurements: pd.DataFrame) -> dict[tuple[str, str], Extent]:
    """Return (cell, label) to what its trials did, for those whose time is known."""
    frame = measurements[~measurements["warmup"].astype(bool)]
    rows = list(rows_of(frame, "trial_id", "cell", "label", "metric", "unit", "value"))
    elapsed = {(trial, label): value for trial, _, label, metric, _, value in rows if metric == "elapsed"}
    seconds: dict[tuple[str, str], list[float]] = {}
    amounts: dict[tuple[str, str], dict[str, list[float]]] = {}
    for trial, cell, label, metric, unit, value in rows:
        if metric == "elapsed":
            seconds.setdefault((cell, label), []).append(value)
        elif unit in ("B/s", "1/s") and (trial, label) in elapsed:
            moved = amounts.setdefault((cell, label), {}).setdefault(metric, [])
            moved.append(value * elapsed[trial, label])
    return {
        key: Extent(fmean(times), {metric: fmean(values) for metric, values in amounts.get(key, {}).items()})
        for key, times in seconds.items()
    }


def unequal(options: Mapping[str, Sequence[object]]) -> Iterator[str]:
    """Yield by which of the options in which sides differ they did unequal work; `options`: each with its values."""
    for name, values in options.items():
        stated = set(values) - {NOT_STATED, NOT_GIVEN}
        is_amount_of_other_blocks = name == "count" and "bs" in options
        if name in OPTIONS and stated != {_DEFAULTS.get(name)} and not is_amount_of_other_blocks:
            yield name


def limit_s(workload: Workload) -> float | None:
    """Return the time that ends a trial on a slow side, where its amount of work may end it on a fast one."""
    jobs = jobs_of(workload.options) if workload.tool == "fio" and workload.options else ()
    if not any(job.options.get("runtime") and not job.options.get("time_based") for job in jobs):
        return None
    return over_phases(
        [(job.phase, 0.0) for job in jobs], [float(job.options.get("runtime") or math.inf) for job in jobs]
    )


def unequal_work(evidence: Evidence) -> Iterator[Doubt]:
    """Sides that did not do the same work, so that a ratio is not of the file systems alone.

    The logs of a file system and of the baseline state other durations, amounts, numbers of jobs or engines, or only
    one of them states any. Or they measured neither for the same time nor for the same amount (5 % or more apart).
    Of measured trials only where a `runtime` without `time_based` ended one side, and its amount of work the other.
    """
    sweep, stated = evidence.sweep, evidence.facts.surveyed.stated or {}
    for cell in sweep.cells if sweep.baseline else ():
        label, baseline = cell.workload.label, cell_id(str(sweep.baseline), cell.workload.label)
        if cell.id == baseline or not sweep.has_cell(baseline):
            continue
        logs = stated.get(label)
        reasons = list(_options(logs, cell.filesystem.name, str(sweep.baseline))) if logs else []
        limit = None if sweep.imported else limit_s(cell.workload)
        if sweep.imported or limit:
            reached = evidence.once(_reached)
            reasons += apart(reached, reached, cell.id, baseline, limit=limit)
        if reasons:
            yield Doubt.of_cell(cell, f"it and the baseline {sweep.baseline} differ in {', '.join(reasons)}. {ADVICE}")


def _reached(evidence: Evidence) -> dict[tuple[str, str], Extent]:
    return extents(evidence.measurements)


def _options(logs: WorkloadOfLogs, filesystem: str, baseline: str) -> Iterator[str]:
    sides = (filesystem, baseline)
    differing = {name: [logs.options[name].text(side) for side in sides] for name in logs.differing(sides)}
    for name in unequal(differing):
        if len(set(differing[name])) > 1:  # else only the logs of one side differ among themselves
            yield f"{name} ({' against '.join(differing[name])})"


def apart(
    ours: Mapping[tuple[str, str], Extent],
    theirs: Mapping[tuple[str, str], Extent],
    cell: str,
    other: str,
    *,
    limit: float | None,
) -> Iterator[str]:
    """Yield what differs between a cell and another one of the other side, with both figures. Trials that both reached
    the limit were given the same time: how much longer a last flush took is a figure of the side."""
    for (name, label), one in ours.items():
        part = label and (name, "") in ours  # of one job of several, which the whole covers
        two = theirs.get((other, label))
        if name == cell and not part and two and one.until(limit).differs(two.until(limit)):
            of = f" of {label}" if label else ""
            yield f"the time that was measured{of}, {one.against(two)}"


def is_same_amount(a: float, b: float) -> bool:
    """Return whether two times or amounts differ by less than 5 %."""
    return max(a, b) <= _SAME * min(a, b)


CHECKS = (Check("unequal-work", unequal_work, _EQUAL),)
