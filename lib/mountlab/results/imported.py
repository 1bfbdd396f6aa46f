"""Logs from elsewhere become a run: read, given their place, and kept byte for byte below raw/."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mountlab.checks.stated_facts import VERSION
from mountlab.core.box_facts import FACTS, BoxFacts, InstalledProgram
from mountlab.core.disk import path_text
from mountlab.core.errors import MountlabError, ParameterError, ParseError, StoreError
from mountlab.core.model import Box, Measurement, Sweep, Trial
from mountlab.core.names import cell_id
from mountlab.core.safe_yaml import parse_yaml
from mountlab.logs import FORMATS, Output, Part, decoded, read_log
from mountlab.logs.base import LARGEST_LOG, original
from mountlab.logs.stated import stated
from mountlab.logs.statement import Stated
from mountlab.results import import_claims, plain_files, writer
from mountlab.results.import_claims import CheckedLog
from mountlab.results.import_file import Layout, LogFile, Source, blocks, layout, read_import, sources
from mountlab.results.paths import RESULTS, read_text
from mountlab.results.writer import ImportedRun

_ANSWERS = ("bandwidth", "operation_rate", "sync_rate", "file_rate")
"""What an answer is about where the user names no metric: how the names of these metrics end."""


@dataclass(frozen=True)
class _Read:
    """A file with its outputs."""

    log: LogFile
    data: bytes
    outputs: list[Output]
    stated: tuple[Mapping[str, Stated], ...]
    """What each output states about its own options."""

    @property
    def stated_beside_figures(self) -> tuple[Mapping[str, Stated], ...]:
        """The same of the outputs that have figures."""
        pairs = zip(self.outputs, self.stated, strict=False)  # a file that cannot be read states nothing at all
        return tuple(statement for output, statement in pairs if not output.problem)


def import_file(path: Path, *, results: Path = RESULTS) -> Path:
    """Import what a YAML file describes, of logs in its own directory and below it: their text is kept in the run.
    Returns the new run directory.

    Raises StoreError or ParameterError. An output without figures becomes a failed trial.
    """
    raw = parse_yaml(read_text(path, "import file", "name a YAML file"), where=path_text(path))
    return _import({"name": path.stem, **raw}, path.parent, where=path_text(path), results=results, below=True)


def import_patterns(raw: Mapping[str, object], *, results: Path = RESULTS) -> Path:
    """Import what the keys of an import file say, file names relative to the current directory: the person who types
    them may name logs anywhere."""
    return _import({"name": "logs", **raw}, Path(), where="import", results=results)


def _import(raw: Mapping[str, object], base: Path, *, where: str, results: Path, below: bool = False) -> Path:
    file = read_import(raw, where=where)
    find_files = partial(_matches_below, where=f"{where}: files") if below else _matches
    files = {name: path for source in sources(file) for name, path in find_files(source, base)}
    whole = layout(file, files, where=where)
    reads = [_read(log, files[log.name]) for log in whole.logs]
    import_claims.check(file, [CheckedLog(read.log, read.stated) for read in reads], where=where)
    sweep = _sweep(whole, reads, where)
    whole_logs = [CheckedLog(read.log, read.stated_beside_figures) for read in reads]
    confirmed = import_claims.confirmed(file, whole_logs, where=where)
    unknown = {key: None for key, fact in FACTS.items() if fact.script}
    run = ImportedRun(
        sweep=sweep,
        parameters={key: value for key, value in raw.items() if value is not None},
        box=Box(name=file.box, host=""),
        facts=BoxFacts.from_record({**unknown, "programs": _programs(reads), "stated": confirmed}),
        trials=tuple(_trials(reads)),
        files={read.log.name: hashlib.sha256(read.data).hexdigest() for read in reads},
    )
    return writer.keep_imported(run, results=results)


def _matches_below(source: Source, base: Path, where: str) -> Iterator[tuple[str, Path]]:
    """Yield the same of an import file, without hidden files. Raises StoreError for a pattern or a link that leads out
    of its directory."""
    plain_files.check_below(source.pattern, where)
    for name, _ in _matches(source, base):
        if not any(part.startswith(".") for part in name.split("/")):
            yield name, plain_files.resolved_below(base, name, where)


def _matches(source: Source, base: Path) -> Iterator[tuple[str, Path]]:
    """Yield files that a pattern may fit, by the name that the pattern would have for them."""
    root, start = source.root, base / source.root
    rest = source.glob if root == "." else source.glob[len(root.rstrip("/")) + 1 :]
    for path in sorted(start.glob(rest)):
        if path.is_file():
            below = path.relative_to(start).as_posix()
            yield below if root == "." else f"{root.rstrip('/')}/{below}", path


def _read(log: LogFile, path: Path) -> _Read:
    _check_size(path, log.name, ParameterError)
    data = path.read_bytes()
    text, tool = decoded(data), log.workload.tool
    try:
        outputs = read_log(tool, text, where=log.name, known=log.workload.options)
    except ParseError as error:
        _check_tool(tool, text, log.name)
        return _Read(log, data, [Output(part=Part(text=text, line=1), form="", problem=error)], ())
    return _Read(log, data, outputs, tuple(_statements(tool, text, outputs)))


def _check_size(path: Path, where: str, error: type[MountlabError]) -> None:
    if (size := path.stat().st_size) > LARGEST_LOG:
        raise error("too large for a log", where=where, got=f"{size} B", allowed=f"{LARGEST_LOG} B")


def _check_tool(tool: str, text: str, where: str) -> None:
    """Raise ParameterError for the log of another tool."""
    others = [name for name, log in FORMATS.items() if name != tool and log.split(text)]
    if others:
        raise ParameterError(
            "a log is of another tool than the import says",
            where=where,
            got=f"output of {', '.join(others)}",
            allowed=f"output of {tool}, which the import names as the tool",
            next_step=f"name the tool of these logs: {others[0]}; or leave this log out",
        )


def _statements(tool: str, text: str, outputs: Sequence[Output]) -> Iterator[Mapping[str, Stated]]:
    """Yield what each output states. One that is refused for its amount alone states the size of its blocks all the
    same."""
    whole = read_log(tool, text) if any(output.problem for output in outputs) else outputs
    for output, alone in zip(outputs, whole, strict=True):
        statements = {**stated(tool, alone), **_version(alone)}
        yield {name: statement for name, statement in statements.items() if not (output.problem and name == "count")}


def _version(output: Output) -> dict[str, Stated]:
    """Return the version of the tool as one more thing that an output states."""
    version = output.form.partition(" of ")[2] or output.form
    if output.problem or not re.search(r"\d", version):
        return {}
    return {VERSION: Stated(option=VERSION, value=version, text=version, line=output.part.line)}


def _sweep(whole: Layout, reads: list[_Read], where: str) -> Sweep:
    places = blocks(whole.logs, {read.log.name: len(read.outputs) for read in reads})
    last = max(places[read.log.name] + len(read.outputs) - 1 for read in reads)
    rows = [row for read in reads for output in read.outputs for row in output.measurements]
    _check_metrics(whole.file.metrics or [], rows, f"{where}: metrics")
    return whole.sweep(repeats=last, metrics=_answer_metrics(rows))


def _check_metrics(names: list[str], rows: list[Measurement], where: str) -> None:
    """An answer about what no log tells would be empty. Logs that all failed say so themselves."""
    metrics = dict.fromkeys(row.metric for row in rows)
    missing = [name for name in names if name not in metrics]
    if rows and missing:
        raise ParameterError(
            "a metric that no log has",
            where=where,
            got=missing[0],
            allowed=", ".join(metrics),
            next_step="name one of those that the logs have, or none",
        )


def _answer_metrics(rows: list[Measurement]) -> list[str]:
    """Return the rates that the logs hold; where they hold none, their first metric."""
    names = list(dict.fromkeys(row.metric for row in rows))
    # filebench tells a bandwidth beside the rate of operations, which is what it is asked for.
    part = "bandwidth" if "operation_rate" in names else ""
    return [name for name in names if name.endswith(_ANSWERS) and name != part] or names[:1]


def _trials(reads: list[_Read]) -> Iterator[tuple[Trial, Mapping[str, bytes]]]:
    """Block by block, as they would have been run."""
    logs = [read.log for read in reads]
    first = blocks(logs, {read.log.name: len(read.outputs) for read in reads})
    placed = [(first[read.log.name] + n, read, output) for read in reads for n, output in enumerate(read.outputs)]
    for seq, (block, read, output) in enumerate(sorted(placed, key=lambda place: place[0]), start=1):
        source = {"file": read.log.name, "line": output.part.line, "form": output.form}
        raw = {"log.txt": original(read.data, output.part), "source.json": json.dumps(source, indent=1).encode()}
        yield _trial(f"t{seq:04d}", block, read.log, output.problem), raw


def _trial(trial_id: str, block: int, log: LogFile, problem: MountlabError | None) -> Trial:
    return Trial(
        trial_id=trial_id,
        block=block,
        warmup=False,
        cell=cell_id(log.filesystem, log.workload.label),
        filesystem=log.filesystem,
        workload=log.workload.name,
        tool=log.workload.tool,
        factors=dict(log.workload.factors),
        mount="",
        status="failed" if problem else "ok",
        reason=str(problem) if problem else "",
        started_at="",
        elapsed_s=math.nan,
    )


def _programs(reads: list[_Read]) -> dict[str, InstalledProgram]:
    """Return the versions that the logs tell of their tools; where they tell several, all of them."""
    forms: dict[str, dict[str, None]] = {}
    for read in reads:
        for output in read.outputs:
            forms.setdefault(read.log.workload.tool, {})[output.form.partition(" of ")[2] or output.form] = None
    return {
        tool: InstalledProgram(version=", ".join(filter(None, forms)), path="not known")
        for tool, forms in forms.items()
    }


def read_log_files(tool: str, paths: Iterable[Path]) -> dict[str, list[Output]]:
    """Return the outputs in some logs, by the name of each; a file that cannot be read is an output with a problem, so
    that the others are read all the same. Raises ParameterError for a tool without a reader of logs."""
    return {str(path): _outputs_of(tool, path) for path in paths}


def _outputs_of(tool: str, path: Path) -> list[Output]:
    text = ""
    try:
        text = _log_text(path)
        return read_log(tool, text, where=path_text(path))
    except (ParseError, StoreError) as error:
        return [Output(part=Part(text=text, line=1), form="", problem=error)]


def _log_text(path: Path) -> str:
    try:
        _check_size(path, path_text(path), StoreError)
        return decoded(path.read_bytes())
    except OSError as error:
        raise StoreError("the log cannot be read", where=path_text(path), got=error.strerror or str(error)) from error
