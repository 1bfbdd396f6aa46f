"""What follows from what a trial brought back: a measurement or which error, and whether its cell has more trials."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from mountlab.core.errors import (
    KERNEL,
    EnvironmentFault,
    MountChanged,
    ParseError,
    TimedOut,
    ToolError,
    TransientError,
    TrialError,
)
from mountlab.core.model import Measurement, Trial, Workload
from mountlab.outcome.consequences import is_last_of_cell
from mountlab.outcome.judging import ScriptExit, is_late, judge, script_timeout
from mountlab.outcome.kernel_log import KERNEL_LINES, with_kernel
from mountlab.tools.base import ToolOutput
from rows import every_row
from sweeps import sweep

LIMIT_S = 60.0
KILLED = "<3>[    9.1] Out of memory: Killed process 12 (dd) total-vm:1kB"


def no_figures(workload: Workload, output: ToolOutput) -> Sequence[Measurement]:
    raise ParseError("no summary")


def came(status: int, *, seconds: float = 1.0, **more: str) -> dict[str, bytes]:
    """The files of a trial whose tool ended with a status after so many seconds."""
    clock = {"before.txt": "", "after.txt": "", "started_ns": "0", "ended_ns": str(int(seconds * 1e9))}
    texts = {"exit_status": f"{status}\n", "stdout": "", "stderr": "", **clock, **more}
    return {name: text.encode() for name, text in texts.items()}


@every_row(
    ("files", "kind", "words"),
    [
        (came(1), ParseError, "no summary"),
        (came(124), TimedOut, "was ended"),
        (came(143, seconds=LIMIT_S), TimedOut, "was ended"),
        (came(137, seconds=LIMIT_S), TimedOut, "ignored SIGTERM and was killed"),
        (came(143, seconds=59.9), TransientError, "dd was killed by SIGTERM"),
        (came(128, seconds=61), ParseError, "no summary"),
        (came(126), ToolError, "a program of dd cannot be run"),
        (came(127), ToolError, "a program of dd is not there"),
        (came(124, mount_changed="a\nb"), TimedOut, "was ended"),
        (came(0, mount_changed="a\nb", left_running="sleep"), MountChanged, "changed what is mounted"),
        (came(0, left_running="sleep\nsleep"), ToolError, "left processes running"),
        (came(0, unprepared="no room", untraced="locked"), ToolError, "the preparation failed: no room"),
        ({"untraced": b"locked"}, EnvironmentFault, "it was not traced: locked"),
        (came(0, untraced="broke off"), TransientError, "it was not traced: broke off"),
        (came(1, kernel=KILLED), TransientError, "its kernel killed dd"),
        ({"refused": b"no tmpfs", "kernel": KILLED.encode()}, EnvironmentFault, "no tmpfs"),
    ],
)
def test_what_is_no_measurement_is_the_error_that_tells_what_follows(
    files: dict[str, bytes], kind: type[TrialError], words: str
) -> None:
    (workload,) = sweep().sweep.workloads
    outcome = judge(
        workload, files, ScriptExit(exit_status=0, archive=b"", error_text=""), timeout_s=LIMIT_S, parse=no_figures
    )
    assert type(outcome.error) is kind
    assert words in outcome.reason
    refused = kind is MountChanged or "refused" in files
    assert outcome.status == ("timeout" if kind is TimedOut else "invalid" if refused else "failed")


@every_row(("status", "kind"), [(95, EnvironmentFault), (137, TransientError)])
def test_a_script_that_fails_is_no_fault_of_the_cell(status: int, kind: type[TrialError]) -> None:
    (workload,) = sweep().sweep.workloads
    script_exit = ScriptExit(exit_status=status, archive=b"", error_text="boom")
    outcome = judge(workload, {}, script_exit, timeout_s=LIMIT_S, parse=no_figures)
    assert outcome.reason == f"the trial's script failed with exit status {status}: boom"
    assert (type(outcome.error), outcome.retry) == (kind, kind is TransientError)


def trial(cell: str = "a/w", **changes: Any) -> Trial:
    common: dict[str, Any] = {
        "trial_id": "t1", "block": 1, "warmup": False, "filesystem": "a", "workload": "w", "tool": "dd", "factors": {},
        "mount": "m", "status": "ok", "reason": "", "started_at": "", "elapsed_s": 1.0,
    }  # fmt: skip
    return Trial(**{**common, "cell": cell, **changes})


EXHAUSTED, LATE = trial(status="failed", exhausted=True), trial(status="timeout")


@every_row(
    ("kind", "earlier", "ends"),
    [
        (ToolError, [], True),
        (EnvironmentFault, [EXHAUSTED, LATE], False),
        (TransientError, [], False),
        (TransientError, [EXHAUSTED], True),
        (TransientError, [EXHAUSTED, trial()], False),
        (TransientError, [trial(status="invalid")], False),
        (TransientError, [trial(), EXHAUSTED, trial("b/w")], True),
        (TransientError, [trial("b/w", exhausted=True)], False),
        (TransientError, [trial(diagnostic=True, exhausted=True)], False),
        (TimedOut, [], False),
        (TimedOut, [LATE], True),
        (TimedOut, [LATE, trial("b/w"), trial(diagnostic=True)], True),
        (TimedOut, [LATE, trial()], False),
        (TimedOut, [trial("b/w", status="timeout")], False),
    ],
)
def test_which_trial_is_the_last_of_its_cell(kind: type[TrialError], earlier: Sequence[Trial], ends: bool) -> None:
    """Other cells and diagnostic trials do not count."""
    assert is_last_of_cell(kind("x"), trial(), earlier) is ends


def test_a_reason_ends_with_the_last_words_of_the_kernel_once() -> None:
    words = [f"line {number}" for number in range(KERNEL_LINES + 2)]
    reason = with_kernel("it failed", [*words, words[-1]])
    assert reason.splitlines() == ["it failed", f"    | {KERNEL}", *(f"    | {word}" for word in words[3:])]
    assert with_kernel(reason, ["another"]) == reason
    assert with_kernel("it failed", []) == "it failed"


def test_a_trial_that_the_box_ended_says_in_which_part_and_is_known_as_late_by_its_reason() -> None:
    parts = ["in its preparation", "in the tool", "in its end"]
    for part, files in zip(parts, ({}, {"started_ns": b"1"}, {"started_ns": b"1", "ended_ns": b"2"}), strict=True):
        reason = str(script_timeout(files, 90))
        assert part in reason
        assert is_late(reason)
    for other in ("ran longer than the others", "its limit (design.trial_timeout) is too short"):
        assert not is_late(other)
