"""Counts what a run kept and what it left behind, by a route of its own: files and /proc, nothing of Mountlab's."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from waiting import LIMIT_S, happens

"""How long processes that were told to go may take: what a killed Mountlab started is ended by a watchdog."""
CHANGES = {"started_at", "elapsed_s", "status", "reason"}
"""Fields of a trial that may differ from one execution of the same trial to another."""
WHAT_COUNTS = ("trial_id", "block", "cell", "filesystem", "workload", "tool", "mount", "warmup", "factors")


@dataclass(frozen=True)
class Kept:
    """What lies in a run directory."""

    trials: tuple[dict[str, Any], ...]
    """Lines of the journal, in their order."""
    torn: int
    """Lines that are no JSON, a last line without its end among them."""
    raw: dict[str, frozenset[str]]
    """Directory below raw/ to its files that hold something."""
    strange: tuple[str, ...]
    """Files that a finished run has no use for."""

    @property
    def order(self) -> tuple[str, ...]:
        return tuple(trial["trial_id"] for trial in self.trials)


def kept(run: Path) -> Kept:
    """What a run directory holds now; nothing where it is not there."""
    whole = (run / "trials.jsonl").read_bytes() if (run / "trials.jsonl").exists() else b""
    *lines, last = whole.split(b"\n")
    read = [_read(line) for line in lines]
    trials = tuple(each for each in read if each is not None)
    raw = {each.name: frozenset(_full(each)) for each in sorted((run / "raw").glob("*")) if each.is_dir()}
    strange = tuple(str(each) for each in run.rglob("*") if each.name.endswith(".tmp") or each.is_symlink())
    return Kept(trials, len(read) - len(trials) + bool(last), raw, strange)


def _read(line: bytes) -> dict[str, Any] | None:
    try:
        read = json.loads(line)
    except ValueError:
        return None
    return read if isinstance(read, dict) and isinstance(read.get("trial_id"), str) else None


def _full(directory: Path) -> Iterator[str]:
    for file in directory.iterdir():
        if file.is_file() and file.stat().st_size > 0:
            yield file.name


@dataclass(frozen=True)
class Count:
    """What a fault has cost. All of it should be nothing."""

    lost: tuple[str, ...] = ()
    duplicated: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    @property
    def numbers(self) -> tuple[int, int, int]:
        return len(self.lost), len(self.duplicated), len(self.left)

    def __add__(self, other: Count) -> Count:
        return Count(self.lost + other.lost, self.duplicated + other.duplicated, self.left + other.left)


def compare(run: Path, undisturbed: Kept, *, may_fail: Iterable[str] = ()) -> Count:
    """What a disturbed run has not of what the undisturbed one has, and what it has too often.

    Lost is a trial that is not in the journal, is in it as something else or in another place of the order, is not
    `ok` as the undisturbed one was (but for `may_fail`), or lacks a file of the undisturbed one; and a torn line.
    """
    found, excused = kept(run), {*may_fail}
    times = Counter(found.order)
    lost = [f"{trial}: not in the journal" for trial in undisturbed.order if trial not in times]
    lost += [f"{run.name}: {found.torn} torn lines"] if found.torn else []
    lost += [] if _places(found, undisturbed) else [f"{run.name}: another order: {' '.join(found.order)}"]
    mine = {trial["trial_id"]: trial for trial in found.trials}
    for theirs in undisturbed.trials:
        trial = mine.get(theirs["trial_id"])
        if trial is not None:
            lost += _lacks(trial, theirs, found, undisturbed, excused=theirs["trial_id"] in excused)
    extra = [f"{trial}: {n} times in the journal" for trial, n in times.items() if n > 1]
    extra += [f"{trial}: in the journal, and not in the sweep" for trial in times if trial not in undisturbed.order]
    return Count(tuple(lost), tuple(extra), found.strange)


def once(run: Path, total: int, *, may_fail: Iterable[str] = ()) -> Count:
    """What a run has not, or too often, of so many trials, where there is no undisturbed one to compare it with."""
    found, excused = kept(run), {*may_fail}
    times = Counter(found.order)
    names = [f"t{number:04}" for number in range(1, total + 1)]
    good = {each["trial_id"] for each in found.trials if each["status"] == "ok"} | excused
    lost = [f"{name}: not in the journal, or not ok" for name in names if name not in good or name not in times]
    lost += [f"{run.name}: {found.torn} torn lines"] if found.torn else []
    extra = [f"{name}: {n} times in the journal" for name, n in times.items() if n > 1 or name not in names]
    return Count(tuple(lost), tuple(extra), found.strange)


def _places(found: Kept, undisturbed: Kept) -> bool:
    """Whether the trials are in the order of the undisturbed run, each at its first place."""
    first = tuple(dict.fromkeys(found.order))
    return first == tuple(trial for trial in undisturbed.order if trial in set(first))


def _lacks(
    trial: dict[str, Any], theirs: dict[str, Any], found: Kept, undisturbed: Kept, *, excused: bool
) -> Iterator[str]:
    name = trial["trial_id"]
    for key in WHAT_COUNTS:
        if trial.get(key) != theirs[key]:
            yield f"{name}: {key} is {trial.get(key)}, and was {theirs[key]}"
    if excused and trial["status"] == "failed":
        if not trial["reason"]:
            yield f"{name}: failed without a reason"
        return
    if trial["status"] != theirs["status"]:
        yield f"{name}: {trial['status']}: {trial['reason']}"
    missing = undisturbed.raw[name] - found.raw.get(name, frozenset())
    if missing:
        yield f"{name}: no {', '.join(sorted(missing))}"


def witnessed(file: Path) -> Counter[str]:
    """How often each trial was executed on the box, by what its tool wrote there itself."""
    lines = file.read_text().splitlines() if file.exists() else []
    return Counter(Path(line).name for line in lines)


# --- what is left behind ----------------------------------------------------------------------------------------------


def left_behind(places: Sequence[Path], *, but: Iterable[int] = (), patience_s: float = LIMIT_S) -> tuple[str, ...]:
    """Mounts, loop devices, processes and files of a scene, whose directories `places` are nobody else's. Waits for
    what is going away. Processes of the test itself, and those in `but`, are no finding."""
    found: tuple[str, ...] = ()

    def nothing() -> bool:
        nonlocal found
        found = (*_mounts(places), *_loops(places), *_processes(places, {*but}), *_files(places))
        return not found

    happens(nothing, patience_s)
    return found


def _names(places: Sequence[Path]) -> tuple[str, ...]:
    return tuple(str(place) for place in places)


def _mounts(places: Sequence[Path]) -> Iterator[str]:
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        if line.split(" ")[4].startswith(_names(places)):
            yield f"mount {line.split(' ')[4]}"


def _loops(places: Sequence[Path]) -> Iterator[str]:
    for file in Path("/sys/block").glob("loop*/loop/backing_file"):
        backing = text_of(file).strip()
        if backing.startswith(_names(places)):
            yield f"loop {file.parts[3]} on {backing}"


def _processes(places: Sequence[Path], but: set[int]) -> Iterator[str]:
    """Whatever names one of the places in its command line or environment, or works there."""
    spared = but | {os.getpid(), os.getppid()}
    for process in Path("/proc").glob("[0-9]*"):
        if int(process.name) in spared or _state(process) in ("Z", ""):
            continue
        told = text_of(process / "cmdline") + "\0" + text_of(process / "environ") + "\0" + _cwd(process)
        if any(name in told for name in _names(places)):
            yield f"process {process.name}: {text_of(process / 'cmdline').replace(chr(0), ' ').strip()[:200]}"


def _state(process: Path) -> str:
    words = text_of(process / "stat").rpartition(")")[2].split()
    return words[0] if words else ""


def _cwd(process: Path) -> str:
    try:
        return os.readlink(process / "cwd")
    except OSError:
        return ""


def text_of(file: Path) -> str:
    try:
        return file.read_bytes().decode(errors="replace")
    except OSError:
        return ""


def _files(places: Sequence[Path]) -> Iterator[str]:
    for place in places:
        with suppress(FileNotFoundError, NotADirectoryError):  # not there, or gone meanwhile
            yield from (f"file {each}" for each in sorted(place.iterdir()))
