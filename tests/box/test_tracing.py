"""Whether a box can be traced: what its answer means."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from mountlab.box.connection import Completed
from mountlab.box.testing import ReplayBox
from mountlab.box.tracing import read_answer, tracing_facts
from mountlab.core.box_facts import Surveyed
from mountlab.core.shell import script_argv, script_text
from mountlab.core.units import MIB
from mountlab.sweep.traced import LARGEST_TRACE
from mountlab.tracing.events import EVENTS
from processes import processes_with
from rows import every_row
from waiting import wait_until

EVERY = [f"event {event.name}" for event in EVENTS]
ROOT = "capabilities 000001ffffffffff"


def said(*lines: str) -> Surveyed:
    return read_answer(Completed((), 0, "\n".join(lines).encode(), b"", 0.0))


def test_a_box_that_records_has_no_reason_against_it() -> None:
    facts = said(ROOT, "lockdown [none] integrity confidentiality", *EVERY, "records")
    assert facts == Surveyed(trace_events=tuple(event.name for event in EVENTS), trace_reason="")


def test_events_that_were_not_asked_for_are_not_taken() -> None:
    assert said(ROOT, "event made:up", *EVERY, "records").trace_events == tuple(event.name for event in EVENTS)


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
    assert words in said(*lines).trace_reason


def test_a_box_without_root_is_not_asked() -> None:
    facts = tracing_facts(ReplayBox(rights="none"))
    assert facts.trace_events == ()
    assert facts.trace_reason


FAKE_PERF = """#!{python}
import os, pathlib, select, signal, subprocess, sys
words = sys.argv[1:]
def obey(size): # writes so many bytes at each order
    orders, done = map(int, words[words.index("--control") + 1].removeprefix("fd:").split(","))
    while command.poll() is None:
        if select.select([orders], [], [], 0.02)[0]:
            os.read(orders, 99)
            with file.open("a") as record:
                record.write("x" * size)
            os.write(done, b"ack\\n")
file = pathlib.Path(words[words.index("-o") + 1])
file.with_suffix(".words").write_text("\\n".join([os.environ["PERF_CONFIG"], *words]))
file.write_text("recorded")
with subprocess.Popen(words[words.index("--") + 1 :]) as command:
    signal.signal(signal.SIGINT, lambda *_: command.kill())
    if "--control" in words:
        {obeys}
"""
OBEYS = "obey(0)"
SLEEPS = 'prev_state & 3 && !(prev_comm ~ "ksoftirqd*")'
OTHERS = '!(prev_state & 3) || prev_comm ~ "ksoftirqd*"'
"""Between them, each switch once."""
ENDS = "os.kill(os.getpid(), signal.SIGINT)"


def perf_shell(place: Path, obeys: str, *events: str) -> subprocess.Popen[bytes]:
    """perf.sh with a perf that writes down how it was called, and starts its command."""
    (place / "perf").write_text(FAKE_PERF.format(python=sys.executable, obeys=obeys))
    (place / "perf").chmod(0o755)
    text = f"[ -d /sys/kernel/tracing/events ] || mount() {{ :; }}\n{script_text('perf.sh')}"
    command = ["sh", "-c", text, "perf.sh", str(place), "70", "5", "4711", "0,74", *events]
    return subprocess.Popen(
        command, env={**os.environ, "PATH": f"{place}:{os.environ['PATH']}"}, stderr=subprocess.DEVNULL
    )


def test_two_perfs_record_until_their_shell_is_ended(tmp_path: Path) -> None:
    event = "sched:sched_switch/call-graph=fp/"
    with perf_shell(tmp_path, OBEYS, event, "sched:sched_waking") as shell:
        wait_until("both record", (tmp_path / "ready").exists)
        shell.terminate()
        assert shell.wait() == 0
    whole, calls = ((tmp_path / f"{name}.words").read_text().splitlines() for name in ("data", "calls"))
    assert (whole[0], calls[0]) == ("/dev/null", "/dev/null"), "no settings of the user's"
    assert ["-a" in words for words in (whole, calls)] == [True, False]
    assert whole[whole.index("-D") + 1] == "5"
    assert whole[whole.index("--max-size") + 1] == f"{LARGEST_TRACE // MIB}M"
    assert "--kernel-callchains" in whole, "the tool's own functions are not shown"
    asked = [whole[at + 1] for at, word in enumerate(whole) if word in ("-e", "--filter")]
    assert asked == [event, SLEEPS, "sched:sched_switch", OTHERS, "sched:sched_waking"]
    assert calls[calls.index("-p") + 1] == "4711"
    assert [calls[at + 1] for at, word in enumerate(calls) if word == "--filter"] == ["id == 0 || id == 74"] * 2
    assert all("--no-buildid-cache" in words and words[-1] == "70" for words in (whole, calls))
    assert (tmp_path / "windows").read_text().startswith("enable 1")
    assert processes_with(str(tmp_path)) == []


@pytest.mark.slow
@every_row(("size", "kinds"), [
    (2_000, {"enable"}),
    (5_000_000, {"enable", "disable"}),  # about 45,000 events
])  # fmt: skip
def test_many_calls_are_recorded_in_windows_and_few_all_the_time(size: int, kinds: set[str]) -> None:
    with TemporaryDirectory() as name, perf_shell(Path(name), f"obey({size})") as shell:
        place = Path(name)
        wait_until("some looks", lambda: (place / "calls").exists() and (place / "calls").stat().st_size > 4 * size)
        shell.terminate()
        assert shell.wait() == 0
        orders = [line.split()[0] for line in (place / "windows").read_text().splitlines()]
    assert set(orders) == kinds
    assert orders[:2] in (["enable"], ["enable", "disable"])
    assert all(before != after for before, after in pairwise(orders)), "each window ends before the next begins"


def test_a_perf_that_ends_before_it_does_what_it_is_told_ends_the_record(tmp_path: Path) -> None:
    with perf_shell(tmp_path, ENDS) as shell:
        assert shell.wait(30) == 0
    assert (tmp_path / "data").read_text() == "recorded"
    assert processes_with(str(tmp_path)) == []


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
    asked = script_argv("tracing.sh", *(event.name for event in EVENTS))
    done = subprocess.run([*around, *asked], capture_output=True, check=True)
    facts = read_answer(Completed((), 0, done.stdout, done.stderr, 0.0))
    assert facts.trace_reason.startswith(f"it is {words}" if words else "")
    assert bool(facts.trace_reason) == bool(lost)
    assert tracefs() == before
