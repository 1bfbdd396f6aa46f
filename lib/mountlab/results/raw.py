"""Raw output of a run turned into values: measurements, counters, rounds, series, options."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TypeVar

from pydantic import TypeAdapter

from mountlab.analysis.memory_use import filled as memory_of
from mountlab.analysis.run_view import TrialDetail, TrialRecord
from mountlab.core.disk import path_text, read_plain
from mountlab.core.errors import FigureError, MountlabError, StoreError
from mountlab.core.findings import OptionEvidence
from mountlab.core.model import Filesystem, Measurement, Sweep, Trial, Workload
from mountlab.core.mountinfo import mount_lines
from mountlab.core.trial_files import TrialFiles
from mountlab.core.units import NS_PER_S
from mountlab.filesystems.counters import around
from mountlab.filesystems.counters_over_time import over_time
from mountlab.filesystems.evidence import loops_below, parts_by_heading
from mountlab.filesystems.kept import StateOfMount, StateRecord, read_record
from mountlab.filesystems.making import Setup, read_commands, setup_of
from mountlab.filesystems.open_files import read_open_files
from mountlab.filesystems.read_back import control_files, control_ids, options_in_effect
from mountlab.filesystems.stack import LAYER_MADE
from mountlab.fio.report import FILE as FIO_REPORT
from mountlab.fio.report import decode, latencies_of
from mountlab.fio.series import PREFIX, Series, read_series
from mountlab.logs import decoded, read_one
from mountlab.programs.parsing import parsed
from mountlab.programs.precondition import read_rounds
from mountlab.stats.histograms import Histogram
from mountlab.tools.base import ToolOutput

T = TypeVar("T")
TIMED_FILES = (("mkfs.txt", "mkfs_time"), ("mkfs-below.txt", "mkfs_time"), ("mount.txt", "mount_time"))
"""Of the evidence of a mount, and the metrics that they give."""
COMPRESSED = ".gz"
"""Of a diagnostic trial and its mount: no text, and no output of the tool."""


def read_options(raw: Path, sweep: Sweep, evidence: Mapping[str, Mapping[str, str]]) -> list[OptionEvidence]:
    """Return what became of each option, by the evidence of each file system that was mounted."""
    return [
        row
        for fs in sweep.filesystems
        if fs.name in evidence
        for row in options_in_effect(fs, evidence[fs.name], control_of(raw, fs))
    ]


def read_trial(directory: Path, trial: Trial, workload: Workload | None, imported: bool) -> TrialRecord:
    """Return the record of a trial from its directory of raw output. `workload`: of one with figures; `imported`:
    whether it is a log from elsewhere. Raises StoreError where that of a trial with figures is missing, and as its
    parsers do."""
    if trial.status != "ok" and not directory.is_dir():
        return TrialRecord()
    paths = {path.name: path for path in _plain_files(directory)}
    files = {name: read_plain(path) for name, path in paths.items()}
    if workload is None:
        return record_of(trial, files)
    try:
        if imported:
            text, where = decoded(files[TrialFiles.IMPORTED_LOG]), path_text(paths[TrialFiles.IMPORTED_LOG])
            log = read_one(workload.tool, text, where=where, known=workload.options)
            return TrialRecord(measurements=tuple(log.measurements), files=_filled(files))
        output = ToolOutput.from_files(files)
        return record_of(trial, files, output, parsed(workload, output))
    except FigureError as error:
        return replace(record_of(trial, files), refused=str(error))


def record_of(
    trial: Trial,
    files: Mapping[str, bytes],
    output: ToolOutput | None = None,
    measurements: Sequence[Measurement] = (),
) -> TrialRecord:
    """Return the record of a trial from its raw output. `output`: of one with figures, as its tool has decoded it.
    Raises ValueError and MountlabError where a part is damaged that every reader needs."""
    damaged: dict[str, str] = {}

    def part(name: str, read: Callable[[], T], otherwise: T) -> T:
        try:
            return read()
        except (MountlabError, ValueError, LookupError, TypeError) as error:
            damaged[name] = str(error)
            return otherwise

    decoded_files = output.files if output else {}
    texts = {
        name: decoded_files[name] if name in decoded_files else data.decode(errors="replace")
        for name, data in files.items()
        if not name.endswith(COMPRESSED)
    }
    logs, bandwidth = part("series", lambda: read_series(texts), list[Series]()), list[Series]()
    if trial.tool == "fio" and trial.status == "ok":
        whole = {name: text for name, text in texts.items() if name.startswith(f"{PREFIX}_bw.")}
        bandwidth = read_series(whole) if damaged else [log for log in logs if log.metric.endswith("_bandwidth")]
    histograms: Mapping[str, Histogram] = {}
    if trial.status == "ok" and FIO_REPORT in texts:  # another tool may have run fio
        report = output.decoded.get(FIO_REPORT) if output else None
        histograms = part("histograms", lambda: latencies_of(report or decode(texts[FIO_REPORT])), histograms)
    detail = TrialDetail(histograms, tuple(logs), part("series", lambda: over_time(texts), None))
    commands = texts.get(TrialFiles.COMMANDS)
    return TrialRecord(
        measurements=tuple(measurements),
        around=around(texts),
        open_files=part("open files", lambda: read_open_files(texts), None),
        memory=memory_of(texts.get(TrialFiles.MEMORY, "")),
        rounds=read_rounds(texts[TrialFiles.ROUNDS]) if TrialFiles.ROUNDS in texts else None,
        bandwidth=tuple(bandwidth),
        argv=_argv(texts.get(TrialFiles.ARGV, "")),
        before=part("commands", lambda: read_commands(commands) if commands else (), ()),
        files=_filled(files),
        damaged=damaged,
        detail=detail_type().dump_json(detail),
    )


@cache
def detail_type() -> TypeAdapter[TrialDetail]:
    """Return what reads and writes `TrialRecord.detail`. It takes some hundredths of a second to make."""
    return TypeAdapter(TrialDetail)


def _filled(files: Mapping[str, bytes]) -> tuple[str, ...]:
    return tuple(sorted(name for name, data in files.items() if data))


def measured_rows(
    raw: Path, journal: Sequence[Trial], sweep: Sweep, records: Mapping[str, TrialRecord]
) -> Iterator[tuple[Trial, Measurement]]:
    """Yield the figures of the trials that are ok, and of their mounts."""
    ok = {trial.cell for trial in journal if trial.status == "ok" and not trial.diagnostic}
    # Of each file system the cell with the first workload of the sweep that it takes.
    first = {cell.filesystem.name: cell.id for cell in reversed(sweep.cells) if cell.id in ok}.values()
    timed = set[str]()
    for trial in journal:
        if trial.status == "ok":
            yield from ((trial, row) for row in records[trial.trial_id].measurements)
            if trial.cell in first and trial.mount not in timed:
                timed.add(trial.mount)
                yield from ((trial, row) for row in _mount_times(raw / trial.mount))


def _mount_times(mount: Path) -> Iterator[Measurement]:
    """Yield how long the file system took to make and to mount. These figures belong to a mount, not to a workload:
    they stand with the first workload of the sweep, once for each mount."""
    times = [(metric, _elapsed_s(mount / file)) for file, metric in TIMED_FILES]
    layers = [_elapsed_s(path) for path in sorted(mount.glob(LAYER_MADE.format("*")))]
    if layers and None not in layers:
        times.append(("layers_time", sum(filter(None, layers))))
    for metric, seconds in times:
        if seconds is not None:
            yield Measurement(metric=metric, value=seconds, unit="s", step=1 / NS_PER_S)


def _elapsed_s(file: Path) -> float | None:
    """Return how long the command took whose output a file is; None where there is no such file, and where the box has
    no clock that tells parts of a second (timed.sh)."""
    if not file.exists():
        return None
    elapsed = parts_by_heading(read_plain(file).decode(errors="replace")).get("elapsed_ns")
    return None if elapsed is None else int(elapsed) / NS_PER_S


def control_of(raw: Path, fs: Filesystem) -> dict[str, str] | None:
    """Return the evidence of the same file system made without options, where the run has it."""
    controls = [raw / control for control in control_ids(fs.name)]
    return control_files(*(text_files(path) if (path / "evidence.txt").exists() else None for path in controls))


def text_files(directory: Path) -> dict[str, str]:
    """Return the texts in a directory of raw output, without what is compressed."""
    files = (file for file in _plain_files(directory) if file.suffix != COMPRESSED)
    return {file.name: read_plain(file).decode(errors="replace") for file in files}


def _plain_files(directory: Path) -> list[Path]:
    """Return what lies in a directory of raw output, but for the directories of earlier attempts."""
    if not directory.is_dir():
        raise StoreError(
            "the raw output of a trial or a mount that the journal names is not there",
            where=path_text(directory),
            next_step="bring it back; or take its line out of trials.jsonl: it then counts as not run",
        )
    with os.scandir(directory) as entries:
        return [directory / entry.name for entry in entries if not entry.is_dir(follow_symlinks=False)]


def _argv(text: str) -> tuple[str, ...]:
    """Return the argument list in a file `argv`; () where it is none: an earlier version could damage it in a
    bundle."""
    try:
        words = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    is_argv = isinstance(words, list) and all(isinstance(word, str) for word in words)
    return tuple(words) if is_argv else ()


def read_setups(raw: Path, mounts: Mapping[str, str]) -> list[Setup]:
    """Return how each file system was made whose mount left its evidence. `mounts`: mount to file system."""
    there = {name: fs for name, fs in mounts.items() if (raw / name / "evidence.txt").exists()}
    return [setup_of(name, fs, text_files(raw / name)) for name, fs in there.items()]


def read_states(raw: Path, mounts: Mapping[str, str]) -> list[StateRecord]:
    """Return what was made of each file system in each state that files make. `mounts`: mount to file system."""
    began: dict[tuple[str, str], dict[str, str]] = {}
    names: dict[str, str] = {}
    for mount, fs in mounts.items():
        file = raw / mount / StateOfMount.FILE
        if file.exists():
            state = StateOfMount.read(read_plain(file).decode(errors="replace"))
            began.setdefault((fs, state.making), {})[mount] = state.identity
            names[state.making] = state.state
    return [read_record(fs, names[making], text_files(raw / making), of) for (fs, making), of in began.items()]


def backing_types(by_filesystem: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """For file systems on loop images: the type of the file system that holds the first one."""
    types = {}
    for name, evidence in by_filesystem.items():
        for loop in loops_below(evidence)[:1]:
            lines = mount_lines(parts_by_heading(evidence["evidence.txt"])["mountinfo"])
            types[name] = next(
                (line.fstype for line in reversed(lines) if line.device == loop.backing_device), "unknown"
            )
    return types
