"""Whether a box can be traced: what its answer means."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from mountlab.box.connection import Completed
from mountlab.box.testing import ReplayBox
from mountlab.box.tracing import answered, script, tracing_facts
from mountlab.core.units import MIB
from mountlab.sweep.traced import LARGEST_TRACE
from mountlab.tracing.events import EVENTS
from rows import every_row

EVERY = [f"event {event.name}" for event in EVENTS]
ROOT = "capabilities 000001ffffffffff"


def said(*lines: str) -> dict[str, object]:
    return answered(Completed((), 0, "\n".join(lines).encode(), b"", 0.0))


def test_a_box_that_records_has_no_reason_against_it() -> None:
    facts = said(ROOT, "lockdown [none] integrity confidentiality", *EVERY, "records")
    assert facts == {"trace_events": [event.name for event in EVENTS], "trace_reason": ""}


def test_events_that_were_not_asked_for_are_not_taken() -> None:
    assert said(ROOT, "event made:up", *EVERY, "records")["trace_events"] == [event.name for event in EVENTS]


@every_row(
    ("lines", "words"),
    [
        ([ROOT, "lockdown none integrity [confidentiality]", *EVERY, "said Operation not permitted"], "locked down"),
        (["capabilities 00000000a80425fb", "said unshare: unshare failed"], "container without CAP_SYS_ADMIN and CAP_"),
        (["capabilities 00000040a80425fb", *EVERY, "said no"], "container without CAP_SYS_ADMIN"),
        ([ROOT, *(line for line in EVERY if "block" not in line), "records"], "lacks the events block:block_bio_queue"),
        ([ROOT, *EVERY, "said Error: No permission to enable sched:sched_switch"], "No permission to enable"),
        ([ROOT], "no tracefs"),
        ([], "container without"),
    ],
)
def test_a_box_that_cannot_be_traced_says_why(lines: list[str], words: str) -> None:
    assert words in str(said(*lines)["trace_reason"])


def test_a_box_without_root_is_not_asked() -> None:
    facts = tracing_facts(ReplayBox(rights="none"))
    assert facts["trace_events"] == []
    assert facts["trace_reason"]


def test_perf_leaves_out_its_own_calls_and_ends_at_the_bound(tmp_path: Path) -> None:
    """Run with a perf that says how it was called."""
    (tmp_path / "perf").write_text('#!/bin/sh\necho "$PPID $$" "$PERF_CONFIG"\nprintf "%s\\n" "$@"\n')
    (tmp_path / "perf").chmod(0o755)
    words = ["sh", "-c", f"echo $$; [ -d /sys/kernel/tracing/events ] || mount() {{ :; }}\n{script('perf.sh')}"]
    command = [*words, "perf.sh", "/to", "70", "5", "sched:sched_switch/call-graph=fp/", "syscalls:sys_enter_read"]
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PATH": path})
    number, called, *given = done.stdout.splitlines()
    assert called.split()[1:] == [number, "/dev/null"]
    events = ["-e", "sched:sched_switch/call-graph=fp/", "-e", "syscalls:sys_enter_read"]
    at = given.index("-e")
    assert given[at : at + 6] == [*events, "--filter", f"common_pid != {number}"]
    assert given[given.index("-D") + 1] == "5"
    assert given[given.index("--max-size") + 1] == f"{LARGEST_TRACE // MIB}M"
    assert given[0] == "record"
    assert "--no-buildid-cache" in given
    assert given[-2:] == ["/to", "70"]


def tracefs() -> list[str]:
    return [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if " - tracefs " in line]


@pytest.mark.box
@pytest.mark.requires_root
@pytest.mark.requires_program("perf", "setpriv", "mount")
@pytest.mark.parametrize(
    ("lost", "words"),
    [
        ("", ""),
        ("-sys_admin,-perfmon", "a container without CAP_SYS_ADMIN and CAP_PERFMON"),
        ("-sys_admin", "a container without"),
    ],
)
def test_what_a_process_without_the_capability_is_told(lost: str, words: str) -> None:
    """Asked for real, with the capabilities that a container has, and leaving no tracefs."""
    before = tracefs()
    around = ["setpriv", f"--inh-caps={lost}", f"--bounding-set={lost}"] if lost else []
    asked = ["sh", "-c", script("tracing.sh"), "tracing.sh", *(event.name for event in EVENTS)]
    done = subprocess.run([*around, *asked], capture_output=True, check=True)
    facts = answered(Completed((), 0, done.stdout, done.stderr, 0.0))
    assert str(facts["trace_reason"]).startswith(f"it is {words}" if words else "")
    assert bool(facts["trace_reason"]) == bool(lost)
    assert tracefs() == before
