"""The frames of a run's diagnostic trials: read from derived files where these are as they were written and made from
what lies there now, else made from the traces.

`raw/<trial>/` holds a trace and what is needed to read it. A published copy holds, in its place, what was read out of
it (`EXPLAINED`): a trace is binary, and names the machine and everything that ran on it.
"""

from __future__ import annotations

import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import starmap
from pathlib import Path
from typing import Any

from mountlab.analysis.program import is_profiled
from mountlab.analysis.why_frames import COLUMNS, Why, frame_of
from mountlab.core.compressed import unpacked
from mountlab.core.disk import read_plain
from mountlab.core.errors import ParseError, in_one_line
from mountlab.core.frames import pd
from mountlab.core.layers import RAN_INSTEAD
from mountlab.core.model import Trial
from mountlab.core.trial_files import TrialFiles
from mountlab.filesystems.evidence import device_levels, disk_rows, parts_by_heading, uncounted_reason
from mountlab.programs import TOOLS
from mountlab.results import derived
from mountlab.results.raw import text_files
from mountlab.results.stamp import FIGURES, truth_bytes
from mountlab.results.symbols import symbols_of
from mountlab.sweep.traced import SYMBOLS
from mountlab.tracing.explained import Calls, Explained, LayerRow, SlowRow, ToolFigures, TraceRow, explained
from mountlab.tracing.flame import SleepRow, StackRow, is_kernels
from mountlab.tracing.spent import HELD, IDLE, UNKNOWN
from mountlab.tracing.work import WorkRow

TRACE, SAID, UNTRACED = TrialFiles.TRACE, TrialFiles.TRACE_SAID, TrialFiles.UNTRACED
FDS, TASKS = "trace_fds", "trace_tasks"
ARGV = TrialFiles.ARGV
CALLS, WINDOWS, TOOL = "trace_calls.data.gz", "trace_windows", "trace_tool"
EXPLAINED = "explained.json"
"""In a published copy, in the place of the trace."""
NAMES_A_MACHINE = (TRACE, CALLS, FDS, TASKS, SYMBOLS)
"""Files that a published copy is without."""
_LARGEST = 1 << 29
"""Of a trace that was unpacked: the collection ends one at a tenth of it."""
_PARTS: Mapping[str, tuple[str, Callable[..., Any]]] = {
    "why_layers": ("layers", LayerRow), "why_work": ("work", WorkRow), "why_traces": ("trace", TraceRow),
    "why_slowest": ("slowest", SlowRow), "why_stacks": ("stacks", StackRow), "why_sleeps": ("sleeps", SleepRow),
}  # fmt: skip
"""Frame to its rows in what a trace explains."""
_PARTITION = re.compile(r"p?\d+\Z")


def file_of(frame: str) -> str:
    """Return the name of the derived file that holds a frame."""
    return f"{frame}.parquet"


FILES = tuple(map(file_of, COLUMNS))


def derived_files(why: Why) -> dict[str, bytes]:
    """Return the derived files of the frames; none where there are no diagnostic trials."""
    return {file_of(name): _as_parquet(frame) for name, frame in why.frames.items()} if why else {}


def read_kept(run: Path, truth: Mapping[str, str]) -> Why | None:
    """Return the frames in the derived files of a run; none in them where it has no diagnostic trials. None where these
    files are not as they were written, or were made from something else than this truth."""
    try:
        seal = derived.read(run)
        if seal is None or dict(seal.made_from) != dict(truth):
            return None
        files = {name: truth_bytes(run / file_of(name)) for name in COLUMNS if file_of(name) in seal.files}
        if files and (seal.figures, seal.tables) != (FIGURES, derived.TABLES):
            return None
        if not all(data is not None and seal.vouches(file_of(name), data) for name, data in files.items()):
            return None
        frames = {name: _from_parquet(name, data) for name, data in files.items() if data is not None}
    except derived.DAMAGE:
        return None
    return Why(**{name.removeprefix("why_"): frame for name, frame in frames.items()})


def has_traces(run: Path) -> bool:
    """Return whether a trial of a run was to be traced, or its published copy says what its trace explained."""
    return any(next((run / "raw").glob(f"*/{name}"), None) for name in (SAID, UNTRACED, TRACE, EXPLAINED))


def read_why(run: Path, trials: Iterable[Trial], measurements: pd.DataFrame) -> Why:
    """Return the frames of the diagnostic trials, from their traces. `measurements`: what the tools say."""
    rows: dict[str, list[tuple[object, ...]]] = {name: [] for name in COLUMNS}
    for trial in trials:
        if trial.diagnostic and not is_profiled(trial):
            explanation = explained_of(run / "raw", trial, measurements)
            about = (trial.trial_id, trial.block, trial.cell, trial.filesystem, trial.workload)
            for name, (part, _) in _PARTS.items():
                rows[name] += [(*about, *row) for row in getattr(explanation, part)]
    return Why(**{name.removeprefix("why_"): frame_of(name, of_frame) for name, of_frame in rows.items()})


def explained_of(raw: Path, trial: Trial, measurements: pd.DataFrame) -> Explained:
    """Return what the trace of a diagnostic trial explains; where it explains nothing, why."""
    directory = raw / trial.trial_id
    if trial.status != "ok":
        return _withheld(f"the trial is {trial.status}: {in_one_line(trial.reason)}")
    if (directory / EXPLAINED).exists():
        return _from_json(read_plain(directory / EXPLAINED))
    if not (directory / TRACE).exists():
        why_not = _text(directory / UNTRACED) or _text(directory / SAID) or "nothing says why"
        return _withheld(f"there is no trace: {in_one_line(why_not.strip())}")
    argv = json.loads(_text(directory / ARGV) or "[]")
    if reason := TOOLS[trial.tool].hides_calls(argv):
        return _withheld(reason)
    try:
        return explained(
            _unpacked(directory / TRACE),
            calls=_calls(directory),
            said=_text(directory / SAID) or "",
            depth=TOOLS[trial.tool].queue_depth(argv),
            kallsyms=unpacked(symbols_of(raw, trial.mount), SYMBOLS, _LARGEST).decode(errors="replace"),
            tasks=_text(directory / TASKS) or "",
            fds=_text(directory / FDS) or "",
            directory=f"{trial.filesystem}/{trial.trial_id}",
            devices=_devices(raw, trial),
            tool=_tool_figures(measurements, trial),
        )
    except (ParseError, FileNotFoundError) as error:
        return _withheld(f"the trace cannot be read: {in_one_line(str(error))}")


def _calls(directory: Path) -> Calls | None:
    if not (directory / CALLS).exists():
        return None
    root = (_text(directory / TOOL) or "").strip()
    return Calls(_unpacked(directory / CALLS), _text(directory / WINDOWS) or "", int(root) if root.isdecimal() else 0)


def as_json(explanation: Explained) -> str:
    """Return what a trace explains as a published copy holds it: without the names of other programs on the box."""
    public = replace(explanation, work=tuple(_without_names(explanation)))
    content = {part: [list(row) for row in getattr(public, part)] for part, _ in _PARTS.values()}
    return json.dumps(content, default=lambda number: number.item())  # NumPy's whole numbers


def _without_names(explanation: Explained) -> Iterator[WorkRow]:
    """Yield the ratios of work; what ran instead of operations is named where it is the tool or the kernel's."""
    stacks = [row.stack for row in explanation.stacks] + [row.stack for row in explanation.sleeps]
    public_names = {stack.partition(";")[0] for stack in stacks} | {IDLE, HELD, UNKNOWN}
    others = dict[str, float]()
    for row in explanation.work:
        if row.quantity != RAN_INSTEAD or row.label in public_names or is_kernels(row.label):
            yield row
        else:
            others[row.operation] = others.get(row.operation, 0.0) + row.value
    yield from (WorkRow(name, RAN_INSTEAD, "other programs", seconds, "s") for name, seconds in others.items())


def _from_json(data: bytes) -> Explained:
    try:
        content = {"sleeps": [], **json.loads(data)}  # copies of earlier versions have none
        return Explained(**{part: tuple(starmap(kind, content[part])) for part, kind in _PARTS.values()})
    except (ValueError, LookupError, TypeError, RecursionError) as error:
        return _withheld(f"what its trace explained cannot be read: {error}")


def _withheld(reason: str) -> Explained:
    row = TraceRow(
        operation="", operations=0, events=0, lost_events=0, window_s=0.0, traced_mean=math.nan, tool_mean=math.nan,
        withheld=reason,
    )  # fmt: skip
    return Explained(trace=(row,))


def _text(file: Path) -> str | None:
    return read_plain(file).decode(errors="replace") if file.exists() else None


def _unpacked(file: Path) -> bytes:
    return unpacked(read_plain(file), file.name, _LARGEST)


def _devices(raw: Path, trial: Trial) -> list[tuple[int, int]] | None:
    """Return the devices that the file system lies on itself, and the disks of those that are partitions; [] of one in
    memory, None where the kernel does not tell them."""
    evidence = text_files(raw / trial.mount)
    if "evidence.txt" not in evidence:
        return None
    levels = device_levels(evidence)
    if not levels:
        return None if uncounted_reason(evidence) else []
    rows = disk_rows(parts_by_heading(_text(raw / trial.trial_id / TrialFiles.BEFORE) or ""))
    return [_pair(device) for number in levels[0] for device in (number, *_disks(number, rows))]


def _disks(number: str, rows: Mapping[str, Sequence[str]]) -> Iterator[str]:
    name = rows[number][2] if number in rows else ""
    for other, row in rows.items():
        if other != number and name.startswith(row[2]) and _PARTITION.match(name.removeprefix(row[2])):
            yield other


def _pair(number: str) -> tuple[int, int]:
    major, _, minor = number.partition(":")
    return int(major), int(minor)


_FIGURE = re.compile(r"(\w+?)_(latency_mean|iops|rate|ios)\Z")


def _tool_figures(measurements: pd.DataFrame, trial: Trial) -> ToolFigures:
    """Return the latency that the tool measured, from when an operation was handed over until it was done, and the
    rate. fio has no rate of syncs: it is that of the reads or writes, by how many of each it did."""
    rows = measurements[(measurements["trial_id"] == trial.trial_id) & (measurements["label"] == "")]
    figures: dict[str, dict[str, float]] = {"latency_mean": {}, "iops": {}, "rate": {}, "ios": {}}
    for metric, value in zip(rows["metric"], rows["value"], strict=True):
        if match := _FIGURE.match(metric):
            figures[match[2]][match[1]] = float(value)
    counts, rates = figures["ios"], figures["iops"] | figures["rate"]
    per_s = next((rate / counts[name] for name, rate in rates.items() if counts.get(name)), math.nan)
    by_count = {name: count * per_s for name, count in counts.items()}
    return ToolFigures(figures["latency_mean"], by_count | rates, TOOLS[trial.tool].times_itself)


def _as_parquet(frame: pd.DataFrame) -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    whole = io.BytesIO()
    table = pa.Table.from_pandas(frame, preserve_index=False).replace_schema_metadata(None)
    parquet.write_table(table, whole, write_page_checksum=True)
    return whole.getvalue()


def _from_parquet(name: str, data: bytes) -> pd.DataFrame:
    import pyarrow as pa
    from pyarrow import parquet

    file = parquet.ParquetFile(pa.BufferReader(data), page_checksum_verification=True)
    frame = file.read(use_threads=False).to_pandas(use_threads=False)
    if tuple(frame.columns) != COLUMNS[name]:
        raise ValueError(f"other columns than those of {name}")
    return frame_of(name, list(frame.itertuples(index=False, name=None)))
