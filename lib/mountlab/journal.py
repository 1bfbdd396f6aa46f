"""trials.jsonl, the truth about what ran: a line for each trial, on the disk before the next one begins.

A last line that a crash or a power cut has torn counts as not run. Anything else that is wrong with a journal (a line
in the middle that is no trial, a trial that stands in it twice) is not passed over: which line, and how to go on.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, get_args

from mountlab.disk import append_line, cut, read_plain, shown
from mountlab.errors import StoreError
from mountlab.model import Status, Trial

FILE = "trials.jsonl"
LARGEST = 1 << 30
"""Bytes; about two million trials."""
_STATUSES = frozenset(get_args(Status))
_TEXTS = tuple(field.name for field in fields(Trial) if field.type in ("str", "Status"))
_NUL = b"\0"


def read_journal(run: Path) -> list[Trial]:
    """Every trial of a journal. Raises StoreError for a line that is none, and for a trial that is in it twice."""
    file = run / FILE
    trials = [_trial(file, number, line) for number, line in enumerate(whole_lines(file), start=1)]
    seen: dict[str, int] = {}
    for number, trial in enumerate(trials, start=1):
        if trial.trial_id in seen:
            raise _damaged(file, seen[trial.trial_id], "a trial is in the journal twice",
                           f"{trial.trial_id} in lines {seen[trial.trial_id]} and {number}")  # fmt: skip
        seen[trial.trial_id] = number
    return trials


def append(run: Path, trial: Trial) -> None:
    """Add a trial. Raises KeepError where the disk does not take it; then it is not in the journal."""
    took = None if math.isnan(trial.elapsed_s) else trial.elapsed_s
    append_line(run / FILE, f"{json.dumps({**asdict(trial), 'elapsed_s': took})}\n".encode())


def whole_lines(file: Path) -> list[bytes]:
    """The lines of a journal, without a torn last one; none where there is no such file."""
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
    return f"the last line of {shown(file)} was torn ({len(torn)} B: {kind}): what it was to say counts as not done"


def _bytes(file: Path) -> bytes:
    return read_plain(file, LARGEST) if file.exists() else b""


def _whole(data: bytes) -> bytes:
    """Without what a write that was not finished has left at the end: a line without its end, or one with zero bytes,
    where the file had grown and its content had not yet arrived."""
    end = data.rfind(b"\n") + 1
    last = data.rfind(b"\n", 0, end - 1) + 1 if end else 0
    return data[:last] if _NUL in data[last:end] else data[:end]


def _trial(file: Path, number: int, line: bytes) -> Trial:
    try:
        read = json.loads(line.decode())
        trial = Trial(**{**read, "elapsed_s": math.nan if read.get("elapsed_s") is None else read["elapsed_s"]})
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise _damaged(file, number, "a line of the journal is not a trial", str(error)) from error
    wrong = next(_wrong(trial), "")
    if wrong:
        raise _damaged(file, number, "a line of the journal is not a trial", wrong)
    return trial


def _wrong(trial: Trial) -> Iterator[str]:
    """What no trial of ours would say."""
    values: dict[str, Any] = asdict(trial)
    yield from (f"{name}: {values[name]!r} is no text" for name in _TEXTS if not isinstance(values[name], str))
    if trial.status not in _STATUSES:
        yield f"status: {trial.status!r}"


def _damaged(file: Path, number: int, what: str, got: str) -> StoreError:
    return StoreError(
        what, where=f"{shown(file)}, line {number}", got=got,
        next_step=f"look at it; without that line its trial counts as not run, and `resume` runs it again: "
        f"sed -i.bak {number}d {shown(file)}",
    )  # fmt: skip
