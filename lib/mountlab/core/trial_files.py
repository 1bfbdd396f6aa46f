"""The names of the files that a trial leaves below raw/: trial.sh writes most of them, readers take them from here."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import NamedTuple


class TrialFiles(StrEnum):
    """Files of the raw output of one trial, beside those that its tool writes itself."""

    # The tool's end.
    EXIT_STATUS = "exit_status"
    STDOUT = "stdout"
    STDERR = "stderr"
    # The box around the tool.
    BEFORE = "before.txt"
    AFTER = "after.txt"
    STARTED = "started_ns"
    ENDED = "ended_ns"
    UPTIME = "uptime"
    OVER_TIME = "over_time"
    MEMORY = "memory.txt"
    OPEN_FILES = "open_files.txt"
    """The directories in which a watched program had files open."""
    CONTAINED_BY = "contained_by"
    CACHE = "cache"
    KERNEL = "kernel"
    """What the kernel logged, of a trial that failed."""
    # The preparation, and why nothing was measured, or nothing counts.
    PREPARATION = "prepare.log"
    UNPREPARED = "unprepared"
    REFUSED = "refused"
    MOUNT_CHANGED = "mount_changed"
    MOUNT_SPOILT = "mount_spoilt"
    NOT_WRITABLE = "not_writable"
    LEFT_RUNNING = "left_running"
    LEFT_DEVICES = "left_devices"
    # What ran beside it.
    NEIGHBOURS = "neighbours"
    """When each neighbour began, moved its first bytes and ended, and what it had moved by then (neighbour.sh). Those
    on a client have the times of its clock."""
    NEIGHBOUR_FAILED = "neighbour_failed"
    """Why nothing was measured: a neighbour did not run."""
    # Diagnostic trials.
    TRACE = "trace.data.gz"
    TRACE_SAID = "trace_said"
    UNTRACED = "untraced"
    PROGRAM_CALLS = "program_calls.gz"
    """The system calls of the tool, without names (program_calls.sh)."""
    UNPROFILED = "unprofiled"
    # Written on the control machine.
    ARGV = "argv"
    COMMANDS = "commands.json"
    """Those before the measured command; also those of a mount. Earlier versions kept none."""
    ROUNDS = "precondition.json"
    REASON = "reason"
    """Of an attempt that was repeated."""
    IMPORTED_LOG = "log.txt"


class Uptimes(NamedTuple):
    """Readings of /proc/uptime around the looks at the wall clock just before and just after the tool, in seconds."""

    before_start: float
    start: float
    end: float
    after_end: float


def read_uptimes(files: Mapping[str, str]) -> Uptimes | None:
    """Return them from the files of a trial; None of one that did not end, and of earlier versions."""
    words = files.get(TrialFiles.UPTIME, "").split()[1:]
    is_whole = len(words) == 4 and all(re.fullmatch(r"\d+(\.\d+)?", word, re.ASCII) for word in words)
    return Uptimes(*map(float, words)) if is_whole else None
