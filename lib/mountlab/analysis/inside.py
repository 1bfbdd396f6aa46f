"""What happened over the time of one trial: the tool's own logs, and the counters of the box beside them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mountlab.core.frames import pd
from mountlab.core.model import Sweep, Workload
from mountlab.core.run_info import RunInfo
from mountlab.filesystems.counters_over_time import OverTime, Points
from mountlab.fio.jobs import jobs_of
from mountlab.fio.options import blocks
from mountlab.fio.series import Series, mean_over_jobs, together

_SIDES = ("read", "write")


@dataclass(frozen=True)
class Inside:
    """Of one trial."""

    series: Sequence[Series] = ()
    """What fio logged; of other tools nothing."""
    box: OverTime | None = None
    """None where the box's counters were not read meanwhile, or the trial was too short."""


def points_of(inside: Inside, workload: Workload) -> dict[str, Points]:
    """Return name of a quantity (plots.INSIDE) to its points, without those that were not seen."""
    start_s = _start_s(inside)
    quantities: dict[str, Points] = {
        name: [(at + start_s, value) for at, value in points] for name, points in _of_tool(inside.series, workload)
    }
    if inside.box:
        quantities |= dict(_of_box(inside.box))
    return {name: points for name, points in quantities.items() if len(points) > 1}


def _of_tool(series: Sequence[Series], workload: Workload) -> Iterator[tuple[str, Points]]:
    """Of jobs that begin at different times nothing: each counts from its own beginning. IOPS are from the bandwidth
    where only that was logged, and all I/Os are of one size."""
    jobs = jobs_of(workload.options) if series and workload.tool == "fio" else ()
    if len({(job.phase, job.start_s) for job in jobs}) > 1:
        return
    sizes = {size for job in jobs for size in blocks(job.options)}
    for side in _SIDES:
        bandwidth = together(series, f"{side}_bandwidth")
        counted = [(at, value / max(sizes)) for at, value in bandwidth] if len(sizes) == 1 else []
        yield f"{side}_bandwidth", bandwidth
        yield f"{side}_iops", together(series, f"{side}_iops") or counted
        yield f"{side}_latency_mean", mean_over_jobs(series, f"{side}_latency_mean", f"{side}_iops")


def _start_s(inside: Inside) -> float:
    """When the tool's logs begin: it ends with their end, and takes some tenths of a second before it counts."""
    length = inside.box.length if inside.box else None
    logged = max((log.points[-1].seconds for log in inside.series if log.points), default=0.0)
    return max(0.0, length - logged) if length is not None else 0.0


def _of_box(box: OverTime) -> Iterator[tuple[str, Points]]:
    """Of the devices the file system's own: below a loop device lies a disk that others use, too."""
    if device := box.own:
        yield "device_read", device.read
        yield "device_written", device.written
        yield "device_depth", device.depth
        yield "device_busy", device.busy
    yield from box.processors.items()
    yield "memory_pressure", box.pressure
    yield "dirty", box.dirty


def median_trials(
    sweep: Sweep, trials: pd.DataFrame, measurements: pd.DataFrame, answer_metrics: Mapping[str, Sequence[str]]
) -> dict[str, str]:
    """Return cell to its counted trial in the middle, by the first metric of the answer; of an even number the lower
    one."""
    good = trials[(trials["status"] == "ok") & ~trials["warmup"].astype(bool)]
    first_metrics = {label: next(iter(metrics), "") for label, metrics in answer_metrics.items()}
    rows = measurements[measurements["metric"].isin({*first_metrics.values()})]
    means = rows.groupby(["metric", "trial_id"])["value"].mean().fillna(math.inf).to_dict()
    medians = {}
    for cell in sweep.cells:
        trial_ids, metric = good.loc[good["cell"] == cell.id, "trial_id"], first_metrics.get(cell.workload.label, "")
        measured = sorted(trial_id for trial_id in trial_ids if (metric, trial_id) in means)
        ordered = sorted(measured, key=lambda trial_id: means[metric, trial_id]) or list(trial_ids)
        if ordered:
            medians[cell.id] = str(ordered[(len(ordered) - 1) // 2])
    return medians


def why_no_counters(info: RunInfo, sweep: Sweep) -> str:
    """Return why the box's counters over time are not there, in a sentence; '' where they should be."""
    if sweep.imported:
        return "The figures are from logs that were made elsewhere."
    programs = info.facts.programs
    if "sampling_shell" not in programs.model_fields_set:
        return (
            "The run is of an earlier version of Mountlab, which read the box's counters before and after a trial only."
        )
    if not sweep.design.sample_every_s:
        return "The sweep asks for no counters inside of trials (design.sample_every: false)."
    if not programs.sampling_shell:
        return (
            "The box has no shell that can wait for a part of a second (bash, or that of busybox): its counters were "
            "read before and after each trial only."
        )
    return ""
