"""Every plot of a run, of the shapes that runs have: used by those who measure texts, colours and scales."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from mountlab import plots
from mountlab.analysis.load_curve import searches
from mountlab.analysis.why import splits
from mountlab.analysis.why_details import processor_stacks, slowest
from mountlab.core.findings import Comparison
from mountlab.core.model import Workload
from mountlab.plots import Plot
from mountlab.plots.history import Line, Spot, Stretch, plot_history
from mountlab.plots.over_runs import Relative, plot_answer_over_runs, plot_over_runs
from mountlab.plots.style import marks_of
from mountlab.tracing.program import Profile
from mountlab.tracing.program_figures import profile_of
from mountlab.wording import verdicts
from searched_run import MAIL, searched_run
from simulated_why import simulated_why, sweep_of
from synthetic_run import SWEPT, WORKLOADS, SyntheticRun, synthetic_run

NAMES = ("tmpfs", "ramfs", "ext4")
LONG_NAMES = ("btrfs-zstd15-discard-async", "xfs-reflink-external-log-on-nvme", "ext4-data-journal-lazytime")
LONG_WORKLOADS = tuple(
    Workload(
        name="fio-random-mixed-on-many-files",
        tool="fio",
        options={},
        factors={"rw": rw, "bs": bs, "iodepth": "128", "ioengine": engine},
    )
    for rw in ("randread", "randwrite")
    for bs in ("4KiB", "1024KiB")
    for engine in ("io_uring", "libaio", "psync")
)
MANY_LEVELS = tuple(
    Workload(name="fio", tool="fio", options={}, factors={"rw": "read", "bs": f"{2**i}KiB", "iodepth": str(8**depth)})
    for i in range(2, 13)
    for depth in range(3)
)
DRAWN = Mapping[str, Callable[[], Plot]]


def every_plot(
    run: SyntheticRun, names: Mapping[str, str], *, only: Sequence[str] = (), factors: tuple[str, str] | None = None
) -> DRAWN:
    """Name to what draws each kind of plot. `names`: of the run's file systems to those that are shown; `only`: some of
    the shown ones, as where others are filtered out; `factors`: two swept numbers of a workload called fio."""
    kept = set(only or names.values())
    order = [names.get(fs.name, fs.name) for fs in run.sweep.filesystems]
    labels = [workload.label for workload in run.sweep.workloads]
    both: dict[str, Any] = {"filesystems": order, "workloads": labels}
    measured, means = (_kept(frame, names, kept) for frame in (run.measurements, run.estimates))
    percentiles = _kept(run.percentiles, names, kept)
    compared = [_renamed(each, names) for each in run.comparisons if names.get(each.candidate) in kept]
    metric = str(measured["metric"].iloc[0])
    drawn: dict[str, Callable[[], Plot]] = {
        "trials": partial(plots.plot_trials, measured, means, metric, **both),
        "bars": partial(plots.plot_bars, measured, means, metric, **both),
        "run order": partial(plots.plot_run_order, measured, metric, **both),
        "distribution": partial(plots.plot_distribution, measured, metric, **both),
        "series": partial(plots.plot_series, _courses(kept, labels), metric, "B/s", **both),
        "bytes": partial(plots.plot_bytes, _delivered(kept, labels), **both),
        "clients": partial(plots.plot_clients, _clients(kept, labels), limit=0.8, filesystems=order),
        "history": partial(plot_history, _lines(kept, labels, order), title="3 of 3 changed"),
        "over runs": partial(
            plot_over_runs, _relative(kept, labels), ["A", "box-in-the-second-rack", "C"], title="1", filesystems=order
        ),
    }
    if compared:
        drawn["ratios"] = partial(plots.plot_ratios, compared, filesystems=order)
        drawn["answer over runs"] = partial(_over_runs, compared, order)
        pairs = [(theirs, verdicts.ours_beside(theirs, compared)) for theirs in run.published]
        pairs = [(theirs, ours) for theirs, ours in pairs if ours]
        if pairs and set(names) == set(names.values()):
            drawn["published"] = partial(plots.plot_published, pairs, filesystems=order)
    for place in dict.fromkeys(percentiles["place"]):
        drawn[f"percentiles {place}"] = partial(plots.plot_percentiles, percentiles, place, **both)
        drawn[f"latencies {place}"] = partial(_latencies, run, names, kept, place, order)
    if factors:
        swept = _with_factors(means, run)
        what: dict[str, Any] = {"workload": run.sweep.workloads[0].name}
        for factor in factors:
            drawn[f"response over {factor}"] = partial(
                plots.plot_response, measured, swept, metric, factor, filesystems=order, **what
            )
        drawn["clustered"] = partial(
            plots.plot_clustered, measured, swept, metric, factors[::-1], filesystems=order, **what
        )
        drawn["heat"] = partial(plots.plot_heat, swept, metric, factors, filesystems=order, **what)
        if compared:
            drawn["ratio heat"] = partial(plots.plot_ratio_heat, compared, metric, factors, **what)
            levels = list(dict.fromkeys(workload.factors[factors[0]] for workload in run.sweep.workloads))
            drawn["conditions"] = partial(
                plots.plot_conditions, compared, factors[0], levels=levels, finding="None flips", filesystems=order
            )
    return drawn


def shapes() -> Mapping[str, Callable[[], DRAWN]]:
    """Runs of many shapes, each made when it is asked for: that of the demo; long names; one of everything; many levels
    of two numbers; many file systems."""
    as_they_are = {name: name for name in NAMES}
    long = dict(zip(NAMES, LONG_NAMES, strict=True))
    first = {NAMES[0]: NAMES[0]}
    many = [f"fs{place}" for place in range(3, 9)]
    return {
        "demo": lambda: every_plot(synthetic_run(workloads=WORKLOADS), as_they_are),
        "swept": lambda: every_plot(synthetic_run(workloads=SWEPT), as_they_are, factors=("bs", "numjobs")),
        "long": lambda: every_plot(
            synthetic_run(workloads=LONG_WORKLOADS, blocks=14), long, factors=("bs", "ioengine")
        ),
        "one": lambda: every_plot(synthetic_run(workloads=WORKLOADS[3:4], blocks=2), first, only=[NAMES[0]]),
        "levels": lambda: every_plot(
            synthetic_run(workloads=MANY_LEVELS, blocks=2), as_they_are, factors=("bs", "iodepth")
        ),
        "many": lambda: every_plot(
            synthetic_run(filesystems=9, workloads=WORKLOADS[:3], blocks=3), {name: name for name in (*NAMES, *many)}
        ),
    }


def _kept(frame: pd.DataFrame, names: Mapping[str, str], kept: set[str]) -> pd.DataFrame:
    shown = frame.assign(filesystem=frame["filesystem"].map(lambda name: names.get(name, name)))
    return shown[shown["filesystem"].isin(kept)].reset_index(drop=True)


def _renamed(each: Comparison, names: Mapping[str, str]) -> Comparison:
    return replace(each, candidate=names[each.candidate], baseline=names.get(each.baseline, each.baseline))


def _with_factors(estimates: pd.DataFrame, run: SyntheticRun) -> pd.DataFrame:
    """Estimates as a Run has them: a column for each swept option, between the workload and the metric."""
    swept = {cell.id: cell.workload.factors for cell in run.sweep.cells}
    found = list(dict.fromkeys(name for factors in swept.values() for name in factors))
    frame = estimates.assign(**{name: [swept[cell].get(name, "") for cell in estimates["cell"]] for name in found})
    rest = [name for name in estimates.columns if name not in ("filesystem", "workload", "metric")]
    return frame[["filesystem", "workload", *found, "metric", *rest]]


def _courses(kept: set[str], labels: Sequence[str]) -> list[plots.Course]:
    return [
        plots.Course(name, label, [(0.25 * i, 1e8 * (place + 1) + 2e6 * i) for i in range(20)], steady=True)
        for label in labels
        for place, name in enumerate(sorted(kept))
    ]


def _delivered(kept: set[str], labels: Sequence[str]) -> list[plots.Delivered]:
    return [plots.Delivered(name, label, "read", 1e8, 1e8) for label in labels for name in sorted(kept)]


def _clients(kept: set[str], labels: Sequence[str]) -> list[plots.ClientPoint]:
    return [
        plots.ClientPoint(
            filesystem=name,
            group=f"{name}/{labels[0]}: write bandwidth",
            client=client,
            ratio=ratio,
            low=0.9 * ratio,
            high=1.1 * ratio,
            trials=(ratio, 1.02 * ratio),
            straggles=ratio < 0.8,
        )
        for name in sorted(kept)
        for client, ratio in (("client-one", 1.0), ("client-two", 0.6))
    ]


def _lines(kept: set[str], labels: Sequence[str], order: Sequence[str]) -> list[Line]:
    marks = marks_of(order, kept)
    began = datetime(2026, 1, 1, tzinfo=UTC)
    return [
        Line(
            f"{name}/{labels[0]} (write bandwidth), nightly on box db1",
            marks[name],
            "B/s",
            [Spot(began + timedelta(days=9 * i), 1e8 + 1e6 * (i % 3), 9e7, 1.2e8) for i in range(40)],
            [Stretch(0, 20, 1e8), Stretch(20, 40, 1.1e8)],
            [(20, 18, 22)],
        )
        for name in sorted(kept)
    ]


def _relative(kept: set[str], labels: Sequence[str]) -> list[Relative]:
    return [
        Relative(f"{label}: write bandwidth", name, run, 1 + 0.03 * run, 0.9, 1.2)
        for label in labels[:4]
        for name in sorted(kept)
        for run in range(3)
    ]


def _over_runs(compared: Sequence[Comparison], order: Sequence[str]) -> Plot:
    answers = {f"{each.candidate} to {each.baseline}, {place}": [each, each] for place, each in enumerate(compared)}
    return plot_answer_over_runs(answers, ["A", "B"], title="1 of 2", filesystems=order)


def _latencies(run: SyntheticRun, names: Mapping[str, str], kept: set[str], place: str, order: Sequence[str]) -> Plot:
    found = {}
    for cell in run.sweep.cells:
        name, own = names.get(cell.filesystem.name, cell.filesystem.name), run.latencies(cell.id)
        if name in kept and place in own:
            found[cell.workload.label, name] = own[place]
    return plots.plot_latencies(found, plots.PLACES[place], filesystems=order)


def _layers(names: Sequence[str]) -> Plot:
    """Parts of a sync on some file systems, under a workload with a long name."""
    sweep = sweep_of(*names, workloads=LONG_WORKLOADS[:1])
    found = [split for split in splits(simulated_why(sweep), sweep) if split.operation == "sync"]
    bars = [
        plots.LayerBar(each.filesystem, each.statistic, each.whole, {p: own.mean for p, own in each.parts.items()})
        for each in found
    ]
    return plots.plot_layers(bars, "sync", LONG_WORKLOADS[0].label)


def _slow() -> list[plots.SlowOperation]:
    sweep = sweep_of("ext4")
    found = slowest(simulated_why(sweep), sweep.cells[0].id, "sync")
    return [plots.SlowOperation(f"{rank} in {each.trial_id}", each.pieces) for rank, each in enumerate(found, 1)]


def _stacks(name: str) -> Mapping[str, float]:
    sweep = sweep_of(name)
    return processor_stacks(simulated_why(sweep), sweep.cells[0].id)


def _capacity(workload: Workload, **more: Any) -> Plot:
    """Searches of three file systems, one of which has no upper bound."""
    names, open_end = ("ext4", "xfs", "tmpfs"), {"tmpfs": (float("nan"), 12_000.0, float("inf"))}
    found = searches(searched_run(*names, capacities=open_end, workloads=[workload], **more))
    return plots.plot_capacity([curve for each in found for curve in each.curves], filesystems=names)


def figures_of_no_run() -> DRAWN:
    """Plots of runs of another kind."""
    rng = np.random.default_rng(7)
    simulated = [(list(rng.normal(1, 0.1, 3)), 0.8, 1.2) for _ in range(40)]
    curves = {f"{each.label}: write bandwidth": {3: 4.0, 5: 1.5, 10: 1.2, 20: 1.1} for each in LONG_WORKLOADS[:3]}
    planned = dict.fromkeys(curves, 10.0)
    return {
        "capacity": partial(_capacity, MAIL, lost=(4, 9)),
        "capacity, long": partial(_capacity, replace(LONG_WORKLOADS[0], search=MAIL.search), trials=60, spread=0.5),
        "layers": partial(_layers, ("ext4", "xfs", "btrfs", "tmpfs")),
        "layers, one": partial(_layers, ("xfs",)),
        "operations": partial(plots.plot_operations, _profile(), LONG_WORKLOADS[0].label),
        "sizes": partial(plots.plot_sizes, _profile(), LONG_WORKLOADS[0].label),
        "offsets": partial(plots.plot_offsets, _profile(), LONG_WORKLOADS[0].label),
        "syncs": partial(plots.plot_syncs, _profile(), LONG_WORKLOADS[0].label),
        "concurrency": partial(plots.plot_concurrency, _profile(), LONG_WORKLOADS[0].label),
        "slowest": partial(plots.plot_slowest, _slow(), "sync", f"ext4 under {LONG_WORKLOADS[0].label}"),
        "flame": partial(plots.plot_flame, _stacks("ext4"), "ext4"),
        "flame of a difference": partial(
            plots.plot_flame, _stacks("ext4"), f"ext4 under {LONG_WORKLOADS[0].label}", than=_stacks("xfs"), other="xfs"
        ),
        "flame of sleep": partial(plots.plot_flame, _stacks("ext4"), "ext4", asleep=True),
        "simulated": partial(plots.plot_simulated, simulated, truth=1.0, finding="0 of 40 miss"),
        "smallest difference": partial(plots.plot_smallest_difference, curves, planned=planned, power=0.8),
    }


@cache
def _profile() -> Profile:
    """A program with five files, each written in order, synced, and read at random."""
    lines, kinds = [], ("write", "fdatasync", "pread64")
    for file in range(5):
        lines.append(f"{90 + file} {1000 + file}.000000 openat(AT_FDCWD<t>, <t/{file}>, O_RDWR|O_CREAT) = 3<t/{file}>")
        for number in range(90):
            at = f"{90 + file} {1000 + file}.{number * 9000 + 9000:06d}"
            kind = kinds[2 if number >= 45 else int(number % 15 == 14)]
            size = 512 << (number % (2 + 3 * file))
            more = {"write": f', "", {size}) = {size}', "fdatasync": ") = 0"}.get(
                kind, f', "", {size}, {number * 7919 % 45 * 4096}) = {size}'
            )
            lines.append(f"{at} {kind}(3<t/{file}>{more} <0.00{number % 10 + 1}000>")
    return profile_of(lines)
