"""Tools that misbehave, in the real script of a trial: each fails its trial with a reason, and the next one is fine."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from installed_programs import program
from mountlab.core.errors import (
    EnvironmentFault,
    ParseError,
    TimedOut,
    ToolError,
    TransientError,
    TrialError,
    in_one_line,
)
from mountlab.outcome import judging
from mountlab.outcome.archive import LARGEST_ARCHIVE, LARGEST_OUTPUT
from mountlab.outcome.consequences import CellEnds, Consequence, consequence_of
from mountlab.outcome.judging import Outcome, ScriptExit, judge
from mountlab.sweep.plan import PlannedTrial
from repetition import others_long
from sweep.test_trial_script import Machine, left, opened
from sweeps import sweep

GOOD = f"exec {shutil.which('dd')} if=/dev/zero of=/dev/null bs=64K count=2"
"""What the tool is otherwise: dd, and not that of busybox, which tells no time."""
LIMIT = "timeout -k 5 75 timeout -k 5 60 "


@pytest.fixture
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    """A box whose sh is dash, or where a test asks for it one whose sh and other programs are those of busybox."""
    name = getattr(request, "param", "dash")
    shell = program(name)
    machine = Machine(tmp_path)
    (machine.programs / "sh").symlink_to(shell)
    machine.time_limit_s = 40
    return machine


def with_each(hows: Iterable[str], with_busybox: Iterable[str]) -> pytest.MarkDecorator:
    other = (("busybox", how) for how in with_busybox)
    each = [*(("dash", how) for how in hows), *other]
    return pytest.mark.parametrize(("machine", "how"), each, indirect=["machine"])


def misbehaving(machine: Machine, text: str, limit_s: float = 60.0) -> tuple[Outcome, PlannedTrial]:
    """What comes of a trial whose tool is this script."""
    machine.program("tool", f"#!/bin/sh\n{text}\n")
    return misbehaves(machine, (planned := opened(machine).trials[0]), limit_s), planned


def misbehaves(
    machine: Machine, planned: PlannedTrial, limit_s: float = 60.0, text: Callable[[str], str] = str
) -> Outcome:
    before, _, after = text(planned.argv[4]).partition(LIMIT)
    limits = LIMIT.replace("75", f"{limit_s + 2:g}").replace("60", f"{limit_s:g}").replace("-k 5", "-k 1")
    script = f"{before}{limits}tool; }}{after.partition('; }')[2]}"
    limited = replace(planned, command=replace(planned.command, timeout_s=limit_s))
    return machine.outcome(limited, script)


def the_next_is_fine(machine: Machine, planned: PlannedTrial) -> None:
    assert left(machine) == []
    machine.program("tool", f"#!/bin/sh\n{GOOD}\n")
    assert misbehaves(machine, planned).reason == ""
    assert left(machine) == []


FLOOD = f"exec head -c {3 * LARGEST_OUTPUT} /dev/zero"
MISBEHAVIOUR: dict[str, tuple[str, type[TrialError], str]] = {
    "floods its output": (FLOOD, ToolError, "printed without end: more than 16.0 MiB in standard output"),
    "floods its errors": (f"{FLOOD} >&2", ToolError, "printed without end: more than 16.0 MiB in standard error"),
    "floods and does not mind": (
        "trap '' PIPE; head -c 99999999 /dev/zero; head -c 99999999 /dev/zero; exit 0", ToolError, "without end",
    ),
    "floods its directory": (
        f"head -c {2 * LARGEST_ARCHIVE} /dev/zero > fio_lat.log; echo '8+0' >&2", ToolError,
        "left more than 64.0 MiB beside its output",
    ),
    "prints binary": ("head -c 100000 /dev/urandom; head -c 100000 /dev/urandom >&2", ParseError, "summary"),
    "says nothing": (":", ParseError, "summary"),
    "is killed": ("kill -s KILL $$", TransientError, "dd was killed by SIGKILL"),
    "crashes": ("ulimit -c 0; kill -s SEGV $$", TransientError, "dd was killed by SIGSEGV"),
    "is not there": ("exit 127", ToolError, "a program of dd is not there"),
    "leaves processes": (
        "sleep 30 & sleep 30 & setsid sleep 30 & exit 0", ToolError, "left processes running, which were killed",
    ),
    "leaves processes that hold no pipe": (
        f"setsid sleep 30 >/dev/null 2>&1 & {GOOD}", ToolError,
        "left processes running, which were killed",
    ),
}  # fmt: skip


@pytest.mark.slow
@with_each(MISBEHAVIOUR, ("floods its output", "leaves processes", "prints binary"))
def test_a_tool_that_misbehaves_fails_its_trial_and_the_next_one_is_fine(machine: Machine, how: str) -> None:
    text, kind, told = MISBEHAVIOUR[how]
    outcome, planned = misbehaving(machine, text)
    assert (outcome.status, type(outcome.error)) == ("failed", kind), outcome.reason
    assert told in outcome.reason
    assert outcome.error is not None
    ends = consequence_of(outcome.error).cell_ends
    assert (outcome.retry, ends is not CellEnds.NEVER) == (kind is TransientError, True)
    assert sum(map(len, outcome.files.values())) <= LARGEST_ARCHIVE
    assert {"exit_status", "stdout", "stderr"} <= set(outcome.files) or "beside its output" in outcome.reason
    the_next_is_fine(machine, planned)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("machine", "piped"),
    others_long(product(("dash", "busybox"), (True, False)), kept={("dash", False), ("busybox", True)}),
    indirect=["machine"],
)
def test_of_a_directory_that_floods_the_beginning_comes_back(machine: Machine, piped: bool) -> None:
    """Into a file the kernel ends it, into a pipe `head`: the same bytes."""
    machine.piped = piped
    outcome, planned = misbehaving(machine, f"head -c {2 * LARGEST_ARCHIVE} /dev/zero > zz.log; {GOOD}")
    assert isinstance(outcome.error, ToolError)
    assert "left more than 64.0 MiB beside its output" in outcome.reason
    assert sum(map(len, outcome.files.values())) <= LARGEST_ARCHIVE
    the_next_is_fine(machine, planned)


def test_a_trial_may_leave_as_much_as_the_limits_say_and_not_a_byte_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judging, "LARGEST_OUTPUT", 8)
    monkeypatch.setattr(judging, "LARGEST_ARCHIVE", 100)
    (workload,) = sweep().sweep.workloads

    def judged(archive: int = 100, **files: bytes) -> Outcome:
        files = {"exit_status": b"0\n", "stdout": b"", "stderr": b"", **files}
        ended = ScriptExit(exit_status=0, archive=bytes(archive), error_text="")
        return judge(workload, files, ended, timeout_s=60, parse=lambda *_: ())

    for name in ("stdout", "stderr", "prepare.log"):
        assert judged(**{name: bytes(8)}).status == "ok"
        assert "printed without end" in judged(**{name: bytes(9)}).reason
    assert judged(100, a=bytes(50)).status == "ok"
    left = judged(101, a=bytes(1), b=bytes(30), c=bytes(20), d=bytes(50)).error
    assert left is not None
    assert [part.partition(":")[0] for part in left.got.split(", ")] == ["d", "b", "c"]


HANGS = {
    "sleeps": ("sleep 40", "ran longer than 1 s and was ended"),
    "ignores SIGTERM": ("trap '' TERM; while :; do sleep 1; done", "ignored SIGTERM and was killed"),
    "is stopped": ("kill -s STOP $$", "ran longer than 1 s"),
    "stops its time limit too": ("kill -s STOP $PPID $$", "ran longer than 1 s"),
    "forks without end": (
        'for i in 1 2 3 4 5 6 7 8; do sh -c "while :; do sleep 1 & wait; done" & done; wait', "ran longer than 1 s",
    ),
}  # fmt: skip


@pytest.mark.slow
@with_each(HANGS, ("sleeps", "is stopped"))
def test_a_tool_that_hangs_is_ended_with_all_that_it_has_started(machine: Machine, how: str) -> None:
    text, told = HANGS[how]
    outcome, planned = misbehaving(machine, text, limit_s=1)
    assert (outcome.status, type(outcome.error)) == ("timeout", TimedOut), outcome.reason
    assert told in outcome.reason
    the_next_is_fine(machine, planned)


def test_a_preparation_that_floods_its_log_is_cut_off(machine: Machine) -> None:
    (planned,) = opened(machine).trials
    flood = f"prepares=yes\nprepare() {{ head -c {3 * LARGEST_OUTPUT} /dev/zero; }}"
    script = planned.argv[4].replace("prepare() { :; }", flood)
    outcome = machine.outcome(planned, script)
    assert (outcome.status, type(outcome.error)) == ("failed", ToolError)
    assert "more than 16.0 MiB in its preparation" in outcome.reason
    the_next_is_fine(machine, planned)


# --- the kernel's words -----------------------------------------------------------------------------------------------

DMESG = """#!/bin/sh
[ "$1" = -r ] || exit 1
cat <<'EOF'
<3>[   50.000000] I/O error, dev sda, of an hour ago
<6>[   99.999000] for your information
{lines}
<15>[  100.000000] mountlab: trial failed
<3>[  100.010000] I/O error, dev sda, of somebody else
EOF
"""
OUT_OF_MEMORY = "<3>[   99.990000] Out of memory: Killed process 4711 (dd) total-vm:1kB, anon-rss:1kB"
BROKEN = (
    "<3>[   99.990000][  T12] I/O error, dev loop7, sector 8\n"
    "<2>[   99.999900] EXT4-fs (loop7): Remounting filesystem read-only"
)


def while_the_kernel_says(machine: Machine, lines: str, tool: str) -> Outcome:
    """What comes of a trial whose kernel logs these lines meanwhile."""
    (planned,) = opened(machine).trials
    machine.program("dmesg", DMESG.replace("{lines}", lines))
    machine.program("tool", f"#!/bin/sh\n{tool}\n")
    return misbehaves(
        machine,
        planned,
        text=lambda script: script.replace("trial failed ($$)", "trial failed").replace("/dev/kmsg", "/dev/null"),
    )


@pytest.mark.parametrize("how", ["exit 1", "kill -s KILL $$", "echo Killed >&2; exit 3"])
def test_where_memory_ran_out_the_trial_says_so_and_may_be_tried_again(machine: Machine, how: str) -> None:
    outcome = while_the_kernel_says(machine, OUT_OF_MEMORY, how)
    assert isinstance(outcome.error, TransientError)
    assert outcome.reason.startswith("the box had no memory left: its kernel killed dd\n")
    assert "| Out of memory: Killed process 4711 (dd)" in outcome.reason


def test_what_the_kernel_logged_since_the_trial_began_is_a_part_of_the_reason(machine: Machine) -> None:
    outcome = while_the_kernel_says(machine, BROKEN, "echo Input/output error >&2; exit 1")
    assert isinstance(outcome.error, ToolError)
    assert outcome.reason.endswith(
        "    | the kernel logged:\n    | I/O error, dev loop7, sector 8\n"
        "    | EXT4-fs (loop7): Remounting filesystem read-only"
    )
    last = "status 1: Input/output error (EXT4-fs (loop7): Remounting filesystem read-only)"
    assert in_one_line(outcome.reason).endswith(last)


def test_of_a_trial_that_is_ok_the_kernel_is_not_asked(machine: Machine) -> None:
    outcome = while_the_kernel_says(machine, OUT_OF_MEMORY, GOOD)
    assert outcome.reason == ""
    assert "kernel" not in outcome.files


# --- a script that is killed itself -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_what_a_killed_trial_left_is_brought_back_and_removed(machine: Machine) -> None:
    (planned,) = opened(machine).trials
    script = planned.argv[4].replace("measured() {", "measured() { echo half; sleep 0.2; kill -s KILL $$; sleep 1; ")
    killed = machine.run((*planned.argv[:4], script, *planned.argv[5:]))
    assert killed.returncode == -signal.SIGKILL
    assert left(machine) != []
    outcome = machine.outcome(planned, word="collect")
    assert {"before.txt", "uptime", "stdout"} <= set(outcome.files)
    the_next_is_fine(machine, planned)


def test_of_a_trial_that_left_nothing_nothing_is_collected(machine: Machine) -> None:
    (planned,) = opened(machine).trials
    assert machine.run((*planned.argv, "collect")).stdout == b""


# --- a directory for output that is full ------------------------------------------------------------------------------


@pytest.fixture
def small(machine: Machine) -> Iterator[Machine]:
    """Its directory for output lies on a file system of a few pages."""
    place = machine.output_root.parent
    subprocess.run([program("mount"), "-t", "tmpfs", "-o", "size=256k", "mountlab-test", place], check=True)
    yield machine
    assert subprocess.run(["umount", place], capture_output=True, check=False).stderr == b""


def leave_free(filler: Path, pages: int) -> None:
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while file.write(bytes(4096)):
            pass
    os.truncate(filler, filler.stat().st_size - 4096 * pages)


@pytest.mark.requires_root
@pytest.mark.slow
def test_wherever_the_directory_for_output_becomes_full_the_trial_says_so(small: Machine) -> None:
    """A page more is free each time: the disk is full at each write point in turn, and at last at none."""
    (planned,) = opened(small).trials
    filler, said = small.output_root / "filler", set()
    for pages in (*range(1, 20), 40):
        leave_free(filler, pages)
        outcome = small.outcome(planned)
        assert left(small) == [], pages
        assert outcome.status == "ok" or isinstance(outcome.error, EnvironmentFault), outcome.reason
        said.add("ok" if outcome.status == "ok" else outcome.reason.splitlines()[0])
    assert said == {"ok", "the box's directory for output is full"}
    assert outcome.status == "ok"
    filler.unlink()
    the_next_is_fine(small, planned)


@pytest.mark.requires_root
def test_a_tool_that_fills_the_directory_for_output_is_told(small: Machine) -> None:
    outcome, planned = misbehaving(small, "cat /dev/zero > big; echo full >&2; exit 1")
    assert isinstance(outcome.error, EnvironmentFault)
    assert "the box's directory for output is full" in outcome.reason
    assert outcome.error is not None
    assert consequence_of(outcome.error) == Consequence(retry=False, cell_ends=CellEnds.NEVER), (
        "who filled it is not known"
    )
    the_next_is_fine(small, planned)
