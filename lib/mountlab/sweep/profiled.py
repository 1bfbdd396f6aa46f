"""Diagnostic trials for the profile of a program: strace around the tool, and what a box must have for that."""

from __future__ import annotations

import shlex

from mountlab.core.errors import PlanError
from mountlab.core.model import Sweep
from mountlab.core.shell import script_text
from mountlab.sweep.clients import driving_clients
from mountlab.tracing.program_calls import CALLS

PROFILING_S = 2.0
"""Guess at what profiling adds to a trial, beside what the tracer makes slower."""


def profiled(argv: tuple[str, ...], output: str, directory: str) -> tuple[str, ...]:
    """Return a command that records what `argv` does to files (profile.sh). `output`, `directory`: of the trial."""
    calls = ",".join(f"?{name}" for name in CALLS)  # '?': one that a kernel or a strace does not have is no error
    script = f"filter={shlex.quote(script_text('program_calls.sh'))}\n{script_text('profile.sh')}"
    return ("sh", "-c", script, "profile.sh", output, directory, calls, *argv)


def check_profiled(sweep: Sweep) -> None:
    """Raise PlanError where the sweep profiles what runs on other machines."""
    if sweep.design.profile and (names := driving_clients(sweep)):
        raise PlanError(
            "a workload that clients drive has no profile: its calls are made on other machines",
            where="design.profile",
            got=f"clients {', '.join(names)}",
            allowed="workloads that the box itself runs",
            next_step="design.profile: false",
        )
