"""`make demo`: studies A and B at a small size on the local box, with whatever this machine and this user allow."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from mountlab.box import readiness
from mountlab.box.embedded import open_box, prepare_here
from mountlab.box.facts import gather
from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import PlanError
from mountlab.core.model import Box
from mountlab.programs import TOOLS
from mountlab.results import paths
from mountlab.runner import workflow
from mountlab.sweep.feasible import all_programs, needed_programs, without_rights
from mountlab.sweep.sweep_file import Resolved

SWEEP = "ramdisk"


def demo(
    box_name: str,
    overrides: Mapping[str, Any],
    *,
    ask: Callable[[str], bool],
    say: Callable[[str], None],
    measured: Callable[[], object] | None = None,
) -> Path:
    """Install what is missing if that is possible, leave out what is not, measure, and return the run directory.
    `measured`: as for workflow.run."""
    box = paths.load_box(box_name)
    prepare_here(box, yes=False, ask=ask, say=say)
    facts = _prepare(box, ask=ask)
    return workflow.run(choose(facts, overrides), box=box_name, measured=measured)


def _prepare(box: Box, *, ask: Callable[[str], bool]) -> BoxFacts:
    needs = needed_programs(paths.load_sweep(SWEEP).sweep)
    with open_box(box) as connection:
        facts = gather(connection, all_programs())
        if facts.rights.level not in ("none", "helper") and readiness.prepare(
            connection, facts, needs, yes=False, ask=ask
        ):
            facts = gather(connection, all_programs())
    return facts


def choose(facts: BoxFacts, overrides: Mapping[str, Any]) -> Resolved:
    """Return the small sweep, without what these rights and these programs do not allow; `left_out` says what and
    why."""
    full = paths.load_sweep(SWEEP).sweep
    left_out = without_rights(full, facts)
    preset = ["small", "no-root"] if left_out else ["small"]
    absent = {
        workload.name: f"{workload.name}: the box has no {tool}, and installing it needs root"
        for workload in full.workloads
        for tool in [TOOLS[workload.tool].programs[0].name]
        if tool not in facts.programs.installed
    }
    removed = {f"workloads.{name}": None for name in absent}
    if len(absent) == len({workload.name for workload in full.workloads}):
        raise PlanError(
            "the box has none of the tools of the demo", where=f"box {facts.machine.hostname}", got="neither dd nor fio"
        )
    resolved = paths.load_sweep(SWEEP, {"preset": preset, **removed, **overrides})
    return replace(resolved, sweep=replace(resolved.sweep, left_out={**left_out, **absent}))


def may_ask() -> bool:
    """Return whether a person sits before the terminal; without one the demo installs what it has said it needs."""
    return sys.stdin.isatty()
