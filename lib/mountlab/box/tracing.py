"""Whether the kernel of a box can be traced, and which events it has: asked only where a sweep explains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from mountlab.core.box_facts.rights import SYS_ADMIN
from mountlab.core.box_facts.surveyed import Surveyed
from mountlab.core.model import Program, everywhere
from mountlab.core.shell import script_argv
from mountlab.tracing.events import EVENTS, missing

if TYPE_CHECKING:  # a report connects to no box, and needs no paramiko
    from mountlab.box.connection import BoxConnection, Completed

AROUND = "unshare -m --propagation slave"
"""What is mounted for perf is seen by perf alone, and goes with it; what others unmount goes there too."""
PROGRAMS = (
    Program(name="perf", packages=everywhere("perf", apt="linux-perf"), version=("perf", "--version"),
        hint="install perf for the kernel of the box (Debian: linux-perf, Ubuntu: linux-tools-generic)"),
    Program(name="gzip", packages=everywhere("gzip"), version=("gzip", "--version")),
)  # fmt: skip
"""What a diagnostic trial runs beside its tool."""
PROFILING_PROGRAMS = (
    Program(name="strace", packages=everywhere("strace"), version=("strace", "-V")),
    PROGRAMS[-1],
)
"""What one that records system calls runs in its place (mountlab.sweep.profiled)."""
ASK_TIMEOUT_S = 60.0
_PERFMON = 38


def tracing_facts(connection: BoxConnection) -> Surveyed:
    """Return which events of EVENTS a box has, and why it cannot be traced. Records nothing that is kept, and leaves
    nothing there."""
    if connection.rights == "none":
        return Surveyed(trace_events=(), trace_reason="tracing needs root or password-less sudo on the box")
    argv = script_argv("tracing.sh", *(event.name for event in EVENTS))
    completed = connection.run(argv, root=True, timeout_s=ASK_TIMEOUT_S)
    _, refusal, why = completed.error_text.strip().partition("refused: ")
    if refusal:
        return Surveyed(trace_events=(), trace_reason=f"the helper of the box refuses: {why}")
    return read_answer(completed)


def read_answer(completed: Completed) -> Surveyed:
    """Parse the output of tracing.sh."""
    answers: dict[str, list[str]] = {}
    for line in completed.text.splitlines():
        word, _, rest = line.partition(" ")
        answers.setdefault(word, []).append(rest)
    names = {event.name for event in EVENTS}
    events = [name for name in answers.get("event", []) if name in names]
    return Surveyed(trace_events=tuple(events), trace_reason=_reason(answers, events))


def _reason(answers: Mapping[str, list[str]], events: list[str]) -> str:
    """Return why a box cannot be traced; '' where it can."""
    lacking = missing(events)
    if "records" in answers and not lacking:
        return ""
    if "[confidentiality]" in " ".join(answers.get("lockdown", [])):
        return "its kernel is locked down (confidentiality), which forbids tracing even to root"
    capabilities = int((answers.get("capabilities") or ["0"])[0] or "0", 16)
    if not capabilities >> SYS_ADMIN & 1:
        more = "" if capabilities >> _PERFMON & 1 else " and CAP_PERFMON"
        return f"it is a container without CAP_SYS_ADMIN{more}"
    words = "; ".join(answers.get("said", []))
    if events and lacking:
        return f"its kernel lacks the events {', '.join(lacking)}"
    return words or "its kernel has no tracefs (CONFIG_FTRACE, CONFIG_TRACEPOINTS)"
