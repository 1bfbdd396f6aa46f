"""trials.jsonl, the truth about what ran: a line for each trial, on the disk before the next one begins.

A last line that a crash or a power cut has torn counts as not run. Anything else that is wrong with a journal (a line
in the middle that is no trial, a trial that stands in it twice) is not passed over: which line, and how to go on.
Each line holds a checksum that follows from the line before it (mountlab.core.chain).
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, get_args

from mountlab.core import chain
from mountlab.core.chain import Followed
from mountlab.core.disk import append_line, cut, path_text, read_plain
from mountlab.core.errors import StoreError
from mountlab.core.model import Status, Trial
from mountlab.results.raw_sums import ACCEPT, Problem, refuse_altered
from mountlab.results.run_file import FILE as INFO
from mountlab.results.run_file import read_unchecked

FILE = "trials.jsonl"
LARGEST = 1 << 30
"""Bytes; about two million trials."""
_STATUSES = frozenset(get_args(Status))
_TEXTS = tuple(field.name for field in fields(Trial) if field.type in ("str", "Status"))
_NUL = b"\0"


@dataclass(frozen=True)
class Journal:
    """A journal as it stands on the disk."""

    trials: list[Trial]
    raw: dict[str, str]
    """Trial id to the digest of its raw output; without those that an earlier version recorded."""
    lines: list[bytes]
    record: dict[str, Any]
    """run.json as it stands; empty where it cannot be read, which its own reader refuses."""
    followed: Followed


def read_journal(run: Path) -> list[Trial]:
    """Return every trial of a journal. Raises StoreError for a line that is no trial and for a trial that is in it
    twice, and AlteredError where a line does not follow from the line before it."""
    return read_checked(run).trials


def read_checked(run: Path) -> Journal:
    """Return a journal that follows its chain. Raises as `read_journal` does."""
    journal = read_as_it_is(run)
    problems = altered(run, journal)
    what = INFO if problems and problems[0].where.endswith(INFO) else "the journal"
    refuse_altered(problems, path_text(run), what, allowed="what Mountlab wrote")
    return journal


def read_as_it_is(run: Path) -> Journal:
    """Return a journal, whether or not it was altered. Raises StoreError for a line that is no trial and for a trial
    that is in it twice."""
    file = run / FILE
    lines = whole_lines(file)
    rows = [_row(file, number, line) for number, line in enumerate(lines, start=1)]
    trials = [_trial(file, number, row) for number, row in enumerate(rows, start=1)]
    first_lines: dict[str, int] = {}
    for number, trial in enumerate(trials, start=1):
        if first := first_lines.get(trial.trial_id):
            got = f"{trial.trial_id} in lines {first} and {number}"
            raise _damaged(file, first, got, "a trial is in the journal twice")
        first_lines[trial.trial_id] = number
    raw = {trial.trial_id: str(row[chain.RAW]) for trial, row in zip(trials, rows, strict=True) if chain.RAW in row}
    record = read_unchecked(run)
    return Journal(trials, raw, lines, record, chain.follow(lines, chain.anchor(record)))


def altered(run: Path, journal: Journal) -> list[Problem]:
    """Return where a journal was altered, and what is wrong there; nothing where it follows its chain."""
    record = journal.record
    if chain.KEY in record and record[chain.KEY] != chain.fixed(record):
        what = "the parameters, the facts or another part that never changes differ from what the run began with"
        return [Problem(path_text(run / INFO), what)]
    file = path_text(run / FILE)
    why = "this line was changed, or lines before it were added, removed or moved"
    problems = []
    for number in journal.followed.broken:
        name = journal.trials[number - 1].trial_id if number <= len(journal.trials) else "its end"
        what = f"{name} does not follow from the line before it: {why}"
        problems.append(Problem(f"{file}, line {number}", what))
    if count := journal.followed.missing:
        problems.append(Problem(f"{file}, line {len(journal.lines)}", f"lines are missing after the last one: {count}"))
    return problems


def append(run: Path, trial: Trial, *, raw: str, before: str) -> str:
    """Add a trial, and return the hash of its line. `raw`: the digest of its raw output; `before`: the hash that its
    line follows. Raises KeepError where the disk does not take it; then it is not in the journal."""
    line, digest = chain.chained(row_of(trial, raw), before)
    append_line(run / FILE, line + b"\n")
    return digest


def row_of(trial: Trial, raw: str) -> dict[str, Any]:
    """Return a trial as a line of the journal holds it."""
    took = None if math.isnan(trial.elapsed_s) else trial.elapsed_s
    return {**asdict(trial), "elapsed_s": took, chain.RAW: raw}


def whole_lines(file: Path) -> list[bytes]:
    """Return the lines of a journal, without a torn last one; none where there is no such file."""
    return _whole(_bytes(file)).split(b"\n")[:-1]


def mend(file: Path) -> str:
    """Cut off a torn last line, so that the next one begins where a line begins; what was cut, for people."""
    data = _bytes(file)
    whole = len(_whole(data))
    if whole == len(data):
        return ""
    cut(file, whole)
    torn = data[whole:]
    kind = "zero bytes, as a power cut leaves them" if _NUL in torn else f"it begins with {torn[:40]!r}"
    return f"the last line of {path_text(file)} was torn ({len(torn)} B: {kind}): what it was to say counts as not done"


def _bytes(file: Path) -> bytes:
    return read_plain(file, LARGEST) if file.exists() else b""


def _whole(data: bytes) -> bytes:
    """Without what a write that was not finished has left at the end: a line without its end, or one with zero bytes,
    where the file had grown and its content had not yet arrived."""
    end = data.rfind(b"\n") + 1
    last = data.rfind(b"\n", 0, end - 1) + 1 if end else 0
    return data[:last] if _NUL in data[last:end] else data[:end]


def _row(file: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line.decode())
    except (ValueError, RecursionError) as error:
        raise _damaged(file, number, str(error)) from error
    if not isinstance(row, dict):
        raise _damaged(file, number, repr(type(row).__name__))
    return row


def _trial(file: Path, number: int, row: dict[str, Any]) -> Trial:
    values = {key: value for key, value in row.items() if key not in (chain.KEY, chain.RAW)}
    try:
        trial = Trial(**{**values, "elapsed_s": math.nan if row.get("elapsed_s") is None else row["elapsed_s"]})
    except TypeError as error:
        raise _damaged(file, number, str(error)) from error
    for name in _TEXTS:
        if not isinstance(getattr(trial, name), str):
            raise _damaged(file, number, f"{name}: {getattr(trial, name)!r} is no text")
    if trial.status not in _STATUSES:
        raise _damaged(file, number, f"status: {trial.status!r}")
    return trial


def _damaged(file: Path, number: int, got: str, what: str = "a line of the journal is not a trial") -> StoreError:
    run = path_text(file.parent)
    return StoreError(
        what,
        where=f"{path_text(file)}, line {number}",
        got=got,
        next_step=f"look at it, and bring it back from a copy. Without that line its trial counts as not run: "
        f"sed -i.bak {number}d {path_text(file)} && {ACCEPT.format(run=run)}",
    )
