"""Raw output of a run turned into values: measurements, counters, rounds, series, options."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from mountlab.analysis.inside import Inside
from mountlab.analysis.memory_use import FILE as MEMORY_FILE
from mountlab.analysis.memory_use import Filled, filled
from mountlab.analysis.run_view import TrialRecord
from mountlab.core.disk import read_plain, shown
from mountlab.core.errors import FigureError, StoreError
from mountlab.core.findings import OptionEvidence
from mountlab.core.model import Filesystem, Measurement, Sweep, Trial, Workload
from mountlab.core.mountinfo import mount_lines
from mountlab.core.units import NS_PER_S
from mountlab.filesystems.counters import FILES as COUNTER_FILES
from mountlab.filesystems.counters import Around, around, client_file
from mountlab.filesystems.counters_over_time import FILES as OVER_TIME_FILES
from mountlab.filesystems.counters_over_time import over_time
from mountlab.filesystems.evidence import DeviceBytes, file_system_device, loops, parts_by_heading
from mountlab.filesystems.making import COMMANDS, Setup, read_commands, setup_of
from mountlab.filesystems.read_back import control_files, control_ids, options_in_effect
from mountlab.logs import decoded, read_one
from mountlab.tools.base import LOG_SUFFIX, ToolOutput
from mountlab.tools.fio_series import PREFIX, Series, read_series
from mountlab.tools.parsing import parsed
from mountlab.tools.precondition import FILE as ROUNDS_FILE
from mountlab.tools.precondition import Rounds, read_rounds

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


def read_measurements(
    raw: Path,
    journal: list[Trial],
    sweep: Sweep,
    known: dict[str, list[Measurement]],
    refused: dict[str, FigureError] | None = None,
) -> Iterator[tuple[Trial, Measurement]]:
    """Yield the figures of the trials that are ok. `known` keeps those that were read, by trial, for the next time;
    `refused` why others have none, which a version that did not check them recorded."""
    workloads = {cell.id: cell.workload for cell in sweep.cells}
    first, timed = _first_cells(journal, sweep), set[str]()
    for trial in journal:
        if trial.status == "ok":
            if trial.trial_id not in known:
                try:
                    parse = _imported if sweep.imported else _parsed
                    known[trial.trial_id] = parse(raw / trial.trial_id, workloads[trial.cell])
                except FigureError as error:
                    known[trial.trial_id] = []
                    if refused is not None:
                        refused[trial.trial_id] = error
            yield from ((trial, row) for row in known[trial.trial_id])
            if trial.cell in first and trial.mount not in timed:
                timed.add(trial.mount)
                yield from ((trial, row) for row in _made(raw / trial.mount))


def _parsed(raw: Path, workload: Workload) -> list[Measurement]:
    files = (file for file in _plain_files(raw) if file.suffix != COMPRESSED or file.name.endswith(LOG_SUFFIX))
    output = ToolOutput.from_files({file.name: read_plain(file) for file in files})
    return parsed(workload, output)


def _imported(raw: Path, workload: Workload) -> list[Measurement]:
    log = raw / "log.txt"
    return read_one(workload.tool, decoded(read_plain(log)), where=shown(log), known=workload.options).measurements


def _first_cells(journal: list[Trial], sweep: Sweep) -> set[str]:
    """Of each file system, the cell with the first workload of the sweep that it takes."""
    ok = {trial.cell for trial in journal if trial.status == "ok" and not trial.diagnostic}
    cells = {cell.filesystem.name: cell.id for cell in reversed(sweep.cells) if cell.id in ok}
    return set(cells.values())


def _made(mount: Path) -> Iterator[Measurement]:
    """Yield how long the file system took to make and to mount. These figures belong to a mount, not to a workload:
    they stand with the first workload of the sweep, once for each mount."""
    for file, metric in TIMED_FILES:
        if (mount / file).exists():
            parts = parts_by_heading(read_plain(mount / file).decode(errors="replace"))
            if "elapsed_ns" in parts:  # a box may have no clock that tells parts of a second (timed.sh)
                elapsed_ns = int(parts["elapsed_ns"])
                yield Measurement(metric=metric, value=elapsed_ns / NS_PER_S, unit="s", step=1 / NS_PER_S)


def control_of(raw: Path, fs: Filesystem) -> dict[str, str] | None:
    """Return the evidence of the same file system made without options, where the run has it."""
    made = [raw / control for control in control_ids(fs.name)]
    return control_files(*(text_files(each) if (each / "evidence.txt").exists() else None for each in made))


def text_files(directory: Path) -> dict[str, str]:
    """Return the texts in a directory of raw output, without what is compressed."""
    files = (file for file in _plain_files(directory) if file.suffix != COMPRESSED)
    return {file.name: read_plain(file).decode(errors="replace") for file in files}


def _plain_files(directory: Path) -> list[Path]:
    """Return what lies in a directory of raw output, but for the directories of earlier attempts."""
    if not directory.is_dir():
        raise StoreError(
            "the raw output of a trial or a mount that the journal names is not there",
            where=shown(directory),
            next_step="bring it back; or take its line out of trials.jsonl: it then counts as not run",
        )
    with os.scandir(directory) as entries:
        return [directory / entry.name for entry in entries if not entry.is_dir(follow_symlinks=False)]


def read_around(raw: Path, journal: list[Trial], sweep: Sweep) -> dict[str, Around]:
    """Return trial id to what the box did meanwhile, where the counters were kept."""
    found, clients = {}, {cell.id: cell.workload.clients for cell in sweep.cells}
    for trial in journal:
        names = [*COUNTER_FILES, *(client_file(client) for client in clients.get(trial.cell, ()))]
        kept = {name: raw / trial.trial_id / name for name in names}
        files = {name: read_plain(file).decode(errors="replace") for name, file in kept.items() if file.exists()}
        if (changed := around(files)) is not None:
            found[trial.trial_id] = changed
    return found


def read_memory(raw: Path, journal: list[Trial]) -> dict[str, Filled]:
    """Return trial id to what memory its files took, where that was read."""
    files = {trial.trial_id: raw / trial.trial_id / MEMORY_FILE for trial in journal}
    texts = {trial_id: read_plain(file).decode(errors="replace") for trial_id, file in files.items() if file.exists()}
    return {trial_id: each for trial_id, text in texts.items() if (each := filled(text))}


def read_record(directory: Path, *, device: DeviceBytes | None, busy: float | None) -> TrialRecord:
    """Return what is kept of the trial with this directory of raw output; of one without a directory only what is
    given."""
    files = sorted(_plain_files(directory), key=lambda file: file.name) if directory.is_dir() else []
    said = [file.name for file in files if file.lstat().st_size]
    argv, before = directory / "argv", directory / COMMANDS
    return TrialRecord(
        argv=_argv(read_plain(argv).decode(errors="replace")) if argv.name in said else (),
        before=read_commands(read_plain(before).decode(errors="replace")) if before.name in said else (),
        files=tuple(said),
        device=device,
        busy=busy,
    )


def _argv(text: str) -> tuple[str, ...]:
    """Return the argument list in a file `argv`; () where it is none: an earlier version could damage it in a
    bundle."""
    try:
        words = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    known = isinstance(words, list) and all(isinstance(word, str) for word in words)
    return tuple(words) if known else ()


def read_setups(raw: Path, mounts: Mapping[str, str]) -> list[Setup]:
    """Return how each file system was made whose mount left its evidence. `mounts`: mount to file system."""
    there = {name: fs for name, fs in mounts.items() if (raw / name / "evidence.txt").exists()}
    return [setup_of(name, fs, text_files(raw / name)) for name, fs in there.items()]


def read_preconditioned(raw: Path, journal: list[Trial]) -> dict[str, Rounds]:
    """Return trial id to the rounds that were run before it."""
    files = {trial.trial_id: raw / trial.trial_id / ROUNDS_FILE for trial in journal}
    return {trial_id: read_rounds(read_plain(file).decode()) for trial_id, file in files.items() if file.exists()}


def read_all_series(raw: Path, journal: list[Trial]) -> dict[str, list[Series]]:
    """Return trial id to what fio logged over time, where it was asked to."""
    found = {}
    for trial in journal:
        logs = list((raw / trial.trial_id).glob(f"{PREFIX}_bw.*.log")) if trial.tool == "fio" else []
        if logs and trial.status == "ok":
            found[trial.trial_id] = read_series({log.name: read_plain(log).decode() for log in logs})
    return found


def read_inside(raw: Path) -> Inside:
    """Return what one trial did over its time, from the directory of its raw output."""
    logs = list(raw.glob(f"{PREFIX}_*.log"))
    kept = (raw / name for name in OVER_TIME_FILES)
    files = {file.name: read_plain(file).decode(errors="replace") for file in kept if file.exists()}
    return Inside(tuple(read_series({log.name: read_plain(log).decode() for log in logs})), over_time(files))


def backing_types(by_filesystem: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """For file systems on a loop image: the type of the file system that holds the image."""
    types = {}
    for name, evidence in by_filesystem.items():
        loop = loops(evidence).get(file_system_device(evidence))
        if loop:
            lines = mount_lines(parts_by_heading(evidence["evidence.txt"])["mountinfo"])
            types[name] = next(
                (line.fstype for line in reversed(lines) if line.device == loop.backing_device), "unknown"
            )
    return types
