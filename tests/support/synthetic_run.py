"""A run made up for the tests of the report: three file systems, seven workloads, five blocks and one of warm-up."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from mountlab.analysis.estimates import percentile_frame
from mountlab.analysis.frames import comparison_frame
from mountlab.analysis.inside import Inside
from mountlab.analysis.memory_use import Use
from mountlab.analysis.program import ProgramTrial
from mountlab.analysis.run_view import TrialRecord
from mountlab.analysis.sweep_comparisons import latency_comparisons
from mountlab.analysis.why_frames import Why
from mountlab.checks import CellWrites, Moved
from mountlab.core.box_facts import BoxFacts
from mountlab.core.cell_stop import CellStop
from mountlab.core.findings import Caveat, Comparison, Exclusions, OptionEvidence, PublishedFigure, Verdict
from mountlab.core.metrics import METRICS, higher_is_better
from mountlab.core.model import Design, Filesystem, Sweep, Workload
from mountlab.core.run_info import RunInfo
from mountlab.filesystems.kept import StateRecord
from mountlab.filesystems.making import Setup
from mountlab.fio.series import Series, SeriesPoint
from mountlab.stats.histograms import Histogram, count, merge
from scipy import stats
from synthetic_records import records, setups

_DD: dict[str, Any] = {"bs": 2**20, "count": 512}
_FIO: dict[str, Any] = {"bs": 4096, "size": 2**28, "numjobs": 1}
WORKLOADS = (
    Workload(name="dd-write", tool="dd", options={**_DD, "direction": "write", "conv": "fdatasync"}),
    Workload(
        name="dd-read", tool="dd", options={**_DD, "direction": "read", "cache": "cold"}, factors={"cache": "cold"}
    ),
    Workload(
        name="dd-read", tool="dd", options={**_DD, "direction": "read", "cache": "warm"}, factors={"cache": "warm"}
    ),
    *(
        Workload(name="fio", tool="fio", options={**_FIO, "rw": rw, "end_fsync": True}, factors={"rw": rw})
        for rw in ("read", "write", "randread", "randwrite")
    ),
)
MEANS = {"tmpfs": 2.7e9, "ramfs": 2.68e9, "ext4": 3.8e8}


@dataclass
class SyntheticRun:
    """What `store.Run` is to the report."""

    info: RunInfo
    sweep: Sweep
    trials: pd.DataFrame
    measurements: pd.DataFrame
    estimates: pd.DataFrame
    comparisons: list[Comparison]
    caveats: list[Caveat] = field(default_factory=list)
    checks_passed: list[str] = field(default_factory=list)
    not_checked: dict[str, str] = field(default_factory=dict)
    options: list[OptionEvidence] = field(default_factory=list)
    published: list[PublishedFigure] = field(default_factory=list)
    answer_metrics: dict[str, tuple[str, ...]] = field(default_factory=dict)
    stops: list[CellStop] = field(default_factory=list)
    series: dict[str, list[Series]] = field(default_factory=dict)
    moved: list[Moved] = field(default_factory=list)
    layer_writes: list[CellWrites] = field(default_factory=list)
    memory: list[Use] = field(default_factory=list)
    records: dict[str, TrialRecord] = field(default_factory=dict)
    setups: list[Setup] = field(default_factory=list)
    states: list[StateRecord] = field(default_factory=list)
    histograms: dict[str, dict[str, list[Histogram]]] = field(default_factory=dict)
    insides: dict[str, Inside] = field(default_factory=dict)
    censored: dict[str, frozenset[int]] = field(default_factory=dict)
    exclusions: Exclusions = field(default_factory=Exclusions)
    why: Why = field(default_factory=Why)
    programs: Sequence[ProgramTrial] = ()
    path: Path = Path("results/synthetic")

    @property
    def ratios(self) -> pd.DataFrame:
        return comparison_frame(self)

    @property
    def latency_comparisons(self) -> list[Comparison]:
        about, answered = (self.sweep, self.measurements, self.censored), self.answer_metrics
        return latency_comparisons(*about, answered=answered)

    @property
    def percentiles(self) -> pd.DataFrame:
        return percentile_frame(self.sweep, self.histograms, self.censored)

    def inside(self, trial_id: str) -> Inside:
        return self.insides.get(trial_id, Inside(self.series.get(trial_id, ())))

    def latencies(self, cell: str) -> dict[str, Histogram]:
        return {place: merge(each) for place, each in self.histograms.get(cell, {}).items()}


def comparison(**changes: Any) -> Comparison:
    """One comparison, tmpfs to ext4, of 6.9 [6.5, 7.3], with what a test changes."""
    values: dict[str, Any] = {
        "baseline": "ext4", "candidate": "tmpfs", "workload": "dd-write", "tool": "dd", "factors": {},
        "metric": "write_bandwidth", "label": "", "ratio": 6.9, "low": 6.5, "high": 7.3, "n": 5, "level": 0.95,
        "p": 0.001, "p_adjusted": 0.002, "verdict": "faster", "method": "paired t on logs",
    }  # fmt: skip
    values |= changes
    return Comparison.of_columns(**{"low_all": values["low"], "high_all": values["high"], **values})


SWEPT = tuple(
    Workload(
        name="fio",
        tool="fio",
        options={**_FIO, "rw": "randread"},
        factors={"rw": "randread", "bs": bs, "numjobs": jobs},
    )
    for bs in ("4KiB", "64KiB", "1MiB")
    for jobs in ("1", "4")
)
"""A sweep of two numbers, one of them a size."""


def synthetic_run(
    *,
    hostile: str = "",
    blocks: int = 5,
    caveats: bool = True,
    workloads: Sequence[Workload] = WORKLOADS,
    filesystems: int = 3,
) -> SyntheticRun:
    """`hostile`: text put wherever a box, a log or a sweep file could put text of its own. `filesystems`: how many;
    beyond three they are called fs3, fs4, ... Each is made once, and copied for each caller."""
    key = repr((hostile, blocks, caveats, workloads, filesystems))
    if key not in _KEPT:
        _KEPT[key] = _made(hostile, blocks, caveats, workloads, filesystems)
    return replace(_KEPT[key], **{each.name: copy(getattr(_KEPT[key], each.name)) for each in fields(SyntheticRun)})


_KEPT: dict[str, SyntheticRun] = {}


def _made(hostile: str, blocks: int, caveats: bool, workloads: Sequence[Workload], filesystems: int) -> SyntheticRun:
    sweep = _sweep(hostile, blocks, workloads, filesystems)
    trials, measurements = _trials(sweep, hostile)
    estimates = _estimates(measurements)
    return SyntheticRun(
        info=_info(hostile),
        sweep=sweep,
        trials=trials,
        measurements=measurements,
        estimates=estimates,
        comparisons=_comparisons(measurements, sweep),
        caveats=_caveats(sweep, hostile) if caveats else [],
        checks_passed=[
            f"the directory of every trial was on its file system {hostile}".strip(),
            "no trial hit the limit",
        ],
        options=_options(sweep, hostile),
        published=_published(hostile),
        answer_metrics={w.label: (_metric(w),) for w in sweep.workloads},
        series=_series(trials),
        moved=_moved(sweep, trials),
        memory=_memory(sweep),
        records=records(trials, hostile),
        setups=setups(trials, hostile),
        histograms=_histograms(sweep, trials),
    )


def _counted_fio(trials: pd.DataFrame) -> list[dict[str, Any]]:
    good = trials[(trials.status == "ok") & ~trials.warmup & (trials.tool == "fio")]
    return [{str(key): value for key, value in row.items()} for row in good.to_dict("records")]


def _side(row: Mapping[str, Any]) -> str:
    return "write" if "write" in row["cell"].partition("/")[2] else "read"


def _series(trials: pd.DataFrame) -> dict[str, list[Series]]:
    """Two jobs, twelve windows; those of ext4 fall to a half."""
    found = {}
    for row in _counted_fio(trials):
        falls = row["filesystem"] == "ext4"
        points = tuple(SeriesPoint(0.1 * (i + 1), 1e8 * (2 - i / 11 if falls else 2)) for i in range(12))
        found[row["trial_id"]] = [Series(f"{_side(row)}_bandwidth", "B/s", job, points) for job in (1, 2)]
    return found


def _memory(sweep: Sweep) -> list[Use]:
    """What is written to tmpfs is in memory, and gone from it when it is removed."""
    cells = [cell for cell in sweep.cells if cell.filesystem.name == "tmpfs"]
    size, before = 2.0**29, 2.0**28
    return [
        Use(
            cell=cell,
            n=5,
            files=size,
            before=before,
            full=before + size,
            after=before,
            taken=size,
            least=size,
            most=size,
            kept=0.0,
            huge_pages=False,
        )
        for cell in cells
    ]


def _moved(sweep: Sweep, trials: pd.DataFrame) -> list[Moved]:
    """ext4 alone has a device, and a warm cache answers for it."""
    cells = {cell.id: cell for cell in sweep.cells if cell.filesystem.name == "ext4"}
    good = trials[(trials.status == "ok") & ~trials.warmup & trials.cell.isin(list(cells))]
    return [
        Moved(trial_id, cells[cell], "write" if "write" in cell else "read", 2.0**26, 4096 if "warm" in cell else 2**26)
        for trial_id, cell in zip(good.trial_id, good.cell, strict=True)
    ]


def _histograms(sweep: Sweep, trials: pd.DataFrame) -> dict[str, dict[str, list[Histogram]]]:
    """A thousand I/Os a trial, those of ext4 ten times as long as the others."""
    rng = np.random.default_rng(5)
    found: dict[str, dict[str, list[Histogram]]] = {}
    for row in _counted_fio(trials):
        scale = 10 if row["filesystem"] == "ext4" else 1
        latencies = count(int(each) for each in scale * rng.lognormal(9, 0.6, 1000))
        place = f"{_side(row)}.clat_ns"
        found.setdefault(row["cell"], {}).setdefault(place, []).append(latencies)
    return found


def _metric(workload: Workload) -> str:
    return "write_bandwidth" if "write" in workload.label else "read_bandwidth"


def _sweep(hostile: str, blocks: int, workloads: Sequence[Workload], filesystems: int) -> Sweep:
    workloads = tuple(workloads)
    if hostile:
        workloads = (
            *workloads,
            Workload(name="fio", tool="fio", options={**_FIO, "rw": hostile}, factors={"rw": hostile}),
        )
    return Sweep(
        name="ramdisk",
        question=f"How much faster than the disk is a RAM disk, and does it matter which? {hostile}".strip(),
        box="local",
        filesystems=(
            Filesystem(name="tmpfs", type="tmpfs", size_bytes=2**28, options=("noatime",)),
            Filesystem(name="ramfs", type="ramfs", size_bytes=2**28, options=("data=writeback",)),
            Filesystem(name="ext4", type="ext4", image_bytes=2**29, options=("noatime", "data=ordered")),
            *(Filesystem(name=f"fs{place}", type="xfs", image_bytes=2**29) for place in range(3, filesystems)),
        ),
        workloads=workloads,
        design=Design(repeats=blocks, seed=7),
        baseline="ext4",
        expectation=f"tmpfs and ramfs write several times as fast as ext4. {hostile}".strip(),
        left_out={"scratch": f"the box file names no scratch device {hostile}".strip()},
    )


def _trials(sweep: Sweep, hostile: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(3)
    trials, measurements = [], []
    for block in range(sweep.design.repeats + 1):
        for cell in rng.permutation(np.array(sweep.cells, dtype=object)):
            seq, workload, fs = len(trials) + 1, cell.workload, cell.filesystem.name
            failed = block == 2 and workload.label == "fio rw=randwrite" and fs == "ramfs"
            common = {
                "trial_id": f"t{seq:04d}",
                "block": block,
                "warmup": block == 0,
                "cell": cell.id,
                "filesystem": fs,
                "workload": workload.name,
                "tool": workload.tool,
                "factors": dict(workload.factors),
            }
            reason = f"fio: exit status 1: No space left on device {hostile}".strip() if failed else ""
            trials.append(
                {
                    **common,
                    "seq": seq,
                    "mount": f"m{block}-{fs}",
                    "status": "failed" if failed else "ok",
                    "reason": reason,
                    "started_at": "2026-11-20T09:30:00+00:00",
                    "elapsed_s": 1.234,
                }
            )
            for metric, value in _values(workload, fs, rng, warmup=block == 0).items() if not failed else ():
                measurements.append({**common, "metric": metric, "label": "", "unit": METRICS[metric], "value": value})
    return pd.DataFrame(trials), pd.DataFrame(measurements)


def _values(workload: Workload, fs: str, rng: np.random.Generator, *, warmup: bool) -> dict[str, float]:
    mean = (
        6.5e9
        if workload.factors.get("cache") == "warm"
        else MEANS.get(fs, 4.2e8) * (0.6 if "rand" in workload.label else 1)
    )
    value = mean * rng.normal(0.8 if warmup else 1, 0.02 if fs != "ext4" else 0.05)
    metric = _metric(workload)
    values = {metric: value}
    if workload.tool == "fio":
        side = metric.partition("_")[0]
        values |= {f"{side}_iops": value / 4096, f"{side}_latency_p99": 8192 / value}
    return values


def _estimates(measurements: pd.DataFrame) -> pd.DataFrame:
    rows = []
    keys = ["filesystem", "workload", "tool", "cell", "metric", "label", "unit"]
    for key, part in measurements[~measurements.warmup].groupby(keys):
        values = part["value"].to_numpy()
        n, mean, sd = len(values), values.mean(), values.std(ddof=1) if len(values) > 1 else math.nan
        half = stats.t.ppf(0.975, n - 1) * sd / math.sqrt(n) if n > 1 else math.nan
        rows.append(
            {
                **dict(zip(keys, key, strict=True)),
                "run_id": "synthetic",
                "box": "local",
                "n": n,
                "censored": 0,
                "mean": mean,
                "low": mean * math.exp(-half / mean),
                "high": mean * math.exp(half / mean),
                "sd": sd,
                "cv": sd / mean,
                "level": 0.95,
                "method": "t",
            }
        )
    return pd.DataFrame(rows)


def _comparisons(measurements: pd.DataFrame, sweep: Sweep) -> list[Comparison]:
    counted = (
        measurements[~measurements.warmup].set_index(["filesystem", "cell", "block", "metric"])["value"].sort_index()
    )
    found = []
    for workload in sweep.workloads:
        for name in (fs.name for fs in sweep.filesystems if fs.name != "ext4"):
            for metric in sorted({m for _, cell, _, m in counted.index if cell == f"ext4/{workload.label}"}):
                ours = counted.xs((name, f"{name}/{workload.label}"))
                theirs = counted.xs(("ext4", f"ext4/{workload.label}"))
                logs = np.log(ours.xs(metric, level="metric") / theirs.xs(metric, level="metric")).dropna().to_numpy()
                found.append(_compare(logs, name, workload, metric))
    return found


def _compare(logs: np.ndarray, name: str, workload: Workload, metric: str) -> Comparison:
    n, mean = len(logs), float(logs.mean())
    half = float(stats.t.ppf(0.975, n - 1) * logs.std(ddof=1) / math.sqrt(n)) if n > 1 else math.nan
    ratio, low, high = math.exp(mean), math.exp(mean - half), math.exp(mean + half)
    verdict: Verdict = "undecided"
    if low > 1.02 or high < 0.98:
        verdict = "faster" if (ratio > 1) == higher_is_better(metric) else "slower"
    elif low > 0.98 and high < 1.02:
        verdict = "same"
    return comparison(
        candidate=name,
        workload=workload.name,
        tool=workload.tool,
        factors=dict(workload.factors),
        metric=metric,
        ratio=ratio,
        low=low,
        high=high,
        n=n,
        verdict=verdict,
    )


def _caveats(sweep: Sweep, hostile: str) -> list[Caveat]:
    few = "n = 5: an interval from five trials is wide. Ask for more blocks: -p repeats=10."
    cached = [
        Caveat(
            code="cache-served-read",
            severity="error",
            scope="cell",
            subject=cell.id,
            message=f"The application read 64 MiB and the device delivered {kib} KiB: this is the page cache. "
            f"Set drop_caches, or read it as the speed of memory. {hostile}".strip(),
        )
        for kib, cell in enumerate(sweep.cells)
        if cell.filesystem.name == "ext4" and "warm" in cell.workload.label
    ]
    return [
        *(Caveat(code="few-trials", severity="note", scope="cell", subject=c.id, message=few) for c in sweep.cells),
        Caveat(
            code="option-not-in-effect",
            severity="warning",
            scope="filesystem",
            subject="ramfs",
            message="ramfs was asked for data=writeback, and /proc/mounts does not show it: ramfs takes any option and "
            "ignores it. Leave it out.",
        ),
        *cached,
    ]


def _options(sweep: Sweep, hostile: str) -> list[OptionEvidence]:
    return [
        OptionEvidence(filesystem=name, option=option, kind="mount", state=state, kernel_says=says)  # type: ignore[arg-type]
        for name, option, state, says in (
            ("tmpfs", "noatime", "in effect", "rw,noatime,size=262144k"),
            ("ramfs", "data=writeback", "ignored", f"rw,relatime{hostile}"),
            ("ext4", "data=ordered", "not visible", "rw,noatime"),
        )
    ]


def _published(hostile: str) -> list[PublishedFigure]:
    common = {"candidate": "tmpfs", "baseline": "ext4", "unit": "B/s"}
    return [
        PublishedFigure(
            study="A",
            source=f"an article of 2013/2015, ext4-era hard disk {hostile}".strip(),
            what="dd, write 2 GiB",
            workload="dd-write",
            factors={},
            metric="write_bandwidth",
            candidate_value=598e6,
            baseline_value=54e6,
            **common,
        ),
        PublishedFigure(
            study="A",
            source=f"an article of 2013/2015, ext4-era hard disk {hostile}".strip(),
            what="dd, read, cache warm",
            workload="dd-read",
            factors={"cache": "warm"},
            metric="read_bandwidth",
            candidate_value=1.1e9,
            baseline_value=886e6,
            **common,
        ),
        PublishedFigure(
            study="B",
            source="an article of 2018, Amazon Linux, SSD",
            what="dd, write 64 MiB, fdatasync",
            workload="dd-write-64k",
            factors={},
            metric="write_bandwidth",
            candidate_value=2.7e9,
            baseline_value=380e6,
            **common,
        ),
    ]


def _info(hostile: str) -> RunInfo:
    facts = {
        "hostname": f"bench-1 {hostile}".strip(),
        "kernel": "6.18.5",
        "machine": "x86_64",
        "os": "Debian GNU/Linux 12 (bookworm)",
        "cpu_model": "AMD EPYC 9R14",
        "cpus": 2,
        "memory_bytes": 25_000_000_000,
        "memory_available_bytes": 24_100_000_000,
        "swap_bytes": 0,
        "user": "root",
        "uid": 0,
        "rights": "root",
        "mount_root": "/var/tmp/mountlab-root",
        "mount_root_source": "/dev/vda",
        "mount_root_fstype": "ext4",
        "virtualization": "kvm",
        "cpu_governor": None,
        "clocksource": "tsc",
        "kernel_filesystems": ["ext4", "xfs", "btrfs", "tmpfs", "ramfs"],
        "block_devices": [{"name": "vda", "size_bytes": 2**38, "rotational": False, "model": hostile or None}],
        "package_manager": "apt",
        "programs": {"fio": {"path": "/usr/bin/fio", "version": "fio-3.33"}, "dd": {"path": "/usr/bin/dd"}},
    }
    return RunInfo(
        schema=1,
        mountlab_version="0.1.0",
        run_id="20261120-093000-ramdisk-local",
        status="complete",
        created_at="2026-11-20T09:30:00+00:00",
        finished_at="2026-11-20T09:32:12+00:00",
        box={"name": "local"},
        facts=BoxFacts.from_record(facts),
        versions={"python": "3.11.7", "pandas": "3.1.1", "scipy": "1.17.1"},
        git_commit="0123abc",
        seed=7,
        parameters={"question": f"How much faster? {hostile}".strip(), "design": {"repeats": 5}},
        command=f"mountlab run params/sweeps/ramdisk.yml --box local {hostile}".strip(),
    )
