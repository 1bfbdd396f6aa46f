"""Diagnostic trials: perf beside the tool, what is kept of it, and what a box must have for that."""

from __future__ import annotations

import math
import shlex

from mountlab.box.tracing import AROUND
from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import PlanError
from mountlab.core.model import Box, Step, Sweep, Workload
from mountlab.core.shell import script_text
from mountlab.core.units import MIB, format_bytes
from mountlab.filesystems.base import script_step
from mountlab.programs import TOOLS
from mountlab.sweep.clients import driving_clients
from mountlab.tracing.calls import NUMBERS
from mountlab.tracing.events import perf_words

LARGEST_TRACE = 48 * MIB
"""Where perf ends its record by itself (perf.sh): compressed, it is a fraction of what a trial may bring back."""
TRACING_S = 4.0
"""Guess at what tracing adds to a trial: perf begins, ends, and its record is compressed."""
SYMBOLS = "kallsyms.gz"
"""Beside the evidence of a mount: the addresses of the kernel's functions."""
SPARE_S = 30.0
HELPER_TRACING = "ask root of the box for `mountlab box helper {box} --tracing`; or "
INSTEAD = (
    "design.explain: false; without tracing each report still shows what the box counts by itself: the bytes and I/Os "
    "of the device, the time in which processors ran, the pressure on memory and I/O"
)


def kernel_symbols_step() -> Step:
    """Keep the addresses of the kernel's functions; where the box hides them nothing is kept."""
    return script_step("kallsyms.sh", why="keep the addresses of the kernel's functions", keep=SYMBOLS)


def traced_head(workload: Workload, limit_s: float, facts: BoxFacts) -> str:
    """Return the variables of trace.sh: what perf records, when it begins, and when it ends by itself."""
    uncounted_s = TOOLS[workload.tool].uncounted_s(workload)
    variables = {
        "trace_around": AROUND,
        "trace_perf": script_text("perf.sh"),
        "trace_calls": ",".join(map(str, NUMBERS[str(facts.processors.architecture)].values())),
        "trace_events": " ".join(perf_words(facts.surveyed.trace_events)),
        "trace_s": str(math.ceil(limit_s + SPARE_S)),
        "trace_delay_ms": str(max(1, round(uncounted_s * 1000))),
        "trace_delay_s": str(math.ceil(uncounted_s)),
    }
    return "\n".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())


def check_traceable(sweep: Sweep, box: Box, facts: BoxFacts) -> None:
    """Raise PlanError where the sweep explains, and this box cannot be traced."""
    if not sweep.design.explain:
        return
    if driving_clients(sweep):
        raise PlanError(
            "a workload that clients drive is not explained: its operations begin on other machines",
            where="design.explain",
            got=f"clients {', '.join(driving_clients(sweep))}",
            allowed="workloads that the box itself runs",
            next_step=INSTEAD,
        )
    if reason := _reason(facts):
        raise PlanError(
            "the kernel of the box cannot be traced, which explaining takes",
            where=f"design.explain on box {box.name}",
            got=reason,
            allowed="root, password-less sudo or a helper that permits it, and a kernel that may be traced",
            next_step=(HELPER_TRACING.format(box=box.name) if facts.rights.level == "helper" else "") + INSTEAD,
        )
    room = facts.storage.output_root_free_bytes
    if room is not None and room < 2 * LARGEST_TRACE:
        raise PlanError(
            "there is no room for the record of a trace",
            where=f"design.explain on box {box.name}: {facts.storage.output_root}",
            got=format_bytes(float(room)),
            allowed=f"{format_bytes(float(2 * LARGEST_TRACE))} free",
            next_step="set output_root in the box file, or make room there",
        )


def _reason(facts: BoxFacts) -> str:
    """Return why a box cannot be traced, as far as that is known; '' where nothing is known against it."""
    if facts.rights.level == "none":
        return "neither root nor password-less sudo"
    if facts.processors.architecture not in NUMBERS:
        return f"a machine of type {facts.processors.architecture}: its system calls are not known by number"
    return facts.surveyed.trace_reason
