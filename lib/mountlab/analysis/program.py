"""What the programs of a run do, by their recorded system calls: per trial, as a mapping for YAML, and as a sweep of
fio to begin with."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any, Protocol

from mountlab.core import numbers
from mountlab.core.frames import pd
from mountlab.core.model import Sweep, Trial
from mountlab.core.names import PROFILED
from mountlab.core.run_info import RunInfo
from mountlab.tracing.fio_workload import FioWorkload, fio_workload
from mountlab.tracing.program import Profile, SizeCount

_NOT_IN_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_OF_OUR_DESIGN = ("state", "promised")
"""Keys of a file system that need other sections of its sweep file."""
_DIGITS = 6


@dataclass(frozen=True, kw_only=True)
class ProgramTrial:
    """One trial whose system calls were recorded."""

    trial_id: str
    cell: str
    filesystem: str
    workload_label: str
    profile: Profile | None
    reason: str = ""
    """Why it has no profile."""


class ProfiledRun(Protocol):
    """What is asked of a run here."""

    @property
    def info(self) -> RunInfo: ...
    @property
    def sweep(self) -> Sweep: ...
    @property
    def trials(self) -> pd.DataFrame: ...
    @property
    def programs(self) -> Sequence[ProgramTrial]: ...
    @property
    def records(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, kw_only=True)
class Slower:
    """How long the tool of a cell took while its calls were recorded, and in the counted trials, in seconds."""

    cell: str
    recorded_s: float
    counted_s: float
    n: int
    """Counted trials."""

    @property
    def times(self) -> float:
        """Return how many times as long it took."""
        return self.recorded_s / self.counted_s


def is_profiled(trial: Trial) -> bool:
    """Return whether the system calls of a trial were to be recorded."""
    return trial.trial_id.startswith(PROFILED)


def slower(run: ProfiledRun) -> list[Slower]:
    """Return what recording changed of the time of each cell's tool; cells without counted trials are left out."""
    counted = run.trials[(run.trials["status"] == "ok") & ~run.trials["warmup"].astype(bool)]
    rows = []
    for trial in run.programs:
        recorded = _seconds(run, [trial.trial_id])
        others = _seconds(run, counted[counted["cell"] == trial.cell]["trial_id"])
        if trial.profile and recorded and others:
            rows.append(Slower(cell=trial.cell, recorded_s=recorded[0], counted_s=fmean(others), n=len(others)))
    return rows


def _seconds(run: ProfiledRun, trial_ids: Sequence[str] | pd.Series) -> list[float]:
    arounds = (record.around for name in trial_ids if (record := run.records.get(name)))
    return [around.seconds for around in arounds if around and around.seconds]


def slower_text(row: Slower) -> str:
    """Return '1.4 times as long as in 5 counted trials (ext4/sqlite)'."""
    return f"{row.times:.3g} times as long as in {numbers.counted(row.n, 'counted trial')} ({row.cell})"


def main_programs(run: ProfiledRun) -> dict[str, ProgramTrial]:
    """Return workload label to the trial whose profile stands for it: that of the baseline, else of the first file
    system that has one."""
    first: dict[str, ProgramTrial] = {}
    order = sorted(run.programs, key=lambda trial: trial.filesystem != run.sweep.baseline)
    for workload in run.sweep.workloads:
        own = [trial for trial in order if trial.workload_label == workload.label]
        if own:
            first[workload.label] = next((trial for trial in own if trial.profile), own[0])
    return first


def readable(run: ProfiledRun) -> dict[str, Any]:
    """Return workload label to file system to the figures of the profile, for program.yml."""
    shown: dict[str, Any] = {}
    for trial in run.programs:
        content = _plain(trial.profile) if trial.profile else {"no_profile": trial.reason}
        shown.setdefault(trial.workload_label, {})[trial.filesystem] = {"trial": trial.trial_id, **content}
    return shown


def _plain(profile: Profile) -> dict[str, Any]:
    content = asdict(profile)
    del content["points"], content["concurrency"]["course"]
    content["operations"] = {
        place: {
            row.operation: {"calls": row.calls, "failed": row.failed, "bytes": row.bytes, "seconds": row.seconds}
            for row in profile.operations
            if row.place == place
        }
        for place in dict.fromkeys(row.place for row in profile.operations)
    }
    for name, side in (("reads", profile.reads), ("writes", profile.writes)):
        if side:
            content[name] |= {"sizes": _counts(side.sizes), "by_size": _counts(side.by_size)}
    content["files"]["by_size"] = _counts(profile.files.by_size)
    content["seen"]["share"] = profile.seen.share
    rounded: dict[str, Any] = _rounded(content)
    return rounded


def _counts(sizes: Sequence[SizeCount]) -> dict[int, int]:
    return {entry.size: entry.calls for entry in sizes}


def _rounded(value: Any) -> Any:
    """Return a value as YAML shows it: floats with six digits, tuples as lists."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, Mapping):
        return {key: _rounded(member) for key, member in value.items()}
    return [_rounded(member) for member in value] if isinstance(value, tuple | list) else value


def fio_workloads(run: ProfiledRun) -> dict[str, FioWorkload]:
    """Return name of a workload to what fio would do in its place; only those that move data."""
    made = {}
    for label, trial in main_programs(run).items():
        workload = fio_workload(trial.profile) if trial.profile else FioWorkload()
        if workload.options:
            made[f"fio-{_NOT_IN_NAME.sub('-', label).strip('-')}"] = workload
    return made


def fio_sweep(run: ProfiledRun) -> dict[str, Any]:
    """Return a sweep of fio on the file systems of the run, for program-fio.yml; {} where nothing moves data."""
    workloads = {name: dict(workload.options) for name, workload in fio_workloads(run).items()}
    filesystems = run.info.parameters.get("filesystems")
    if not workloads or not isinstance(filesystems, Mapping):
        return {}
    kept = {
        name: {key: value for key, value in entry.items() if key not in _OF_OUR_DESIGN} | _made_for(entry)
        for name, entry in filesystems.items()
        if name in {fs.name for fs in run.sweep.filesystems}
    }
    sweep: dict[str, Any] = {
        "question": f"Does fio do what the programs of {run.sweep.name} do? (a beginning, not validated)",
        "box": run.info.box_name,
        "filesystems": kept,
    }
    if run.sweep.baseline:
        sweep["baseline"] = run.sweep.baseline
    return {**sweep, "workloads": workloads}


def _made_for(entry: Mapping[str, Any]) -> dict[str, str]:
    """Return what fio needs else than a watched program, for which no directory is made."""
    return {"type": "dir"} if entry.get("type") == "in_place" else {}


def work_of(profile: Profile) -> dict[str, float]:
    """Return the amounts by which two trials of a workload are seen to do the same work, or not."""
    reads, writes = profile.reads, profile.writes
    return {
        "reads": reads.calls if reads else 0,
        "bytes read": reads.bytes if reads else 0,
        "writes": writes.calls if writes else 0,
        "bytes written": writes.bytes if writes else 0,
        "syncs": profile.syncs.calls,
        "files opened": profile.files.opened,
        "files removed": profile.files.removed,
    }
