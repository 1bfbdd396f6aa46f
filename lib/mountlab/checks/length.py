"""How long a trial measured: too short for its own start and end to vanish in it, or for the clock of its tool."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from mountlab.checks.base import Check, Doubt, Evidence
from mountlab.core.box_facts import BoxFacts
from mountlab.core.model import Cell, Design, Sweep, Workload
from mountlab.core.numbers import counted, listed
from mountlab.core.units import format_seconds
from mountlab.fio.jobs import jobs_of
from mountlab.programs import TOOLS

CLOCK_SHARE = 0.005
"""A clock step larger than this share of the run time shows in the figure."""
CLOSE = 0.99
"""A tool with a limit of a second may say that it took a little less."""
_EXACT_BELOW = 10
"""A factor above this is shown without decimals."""


def limit_s(workload: Workload) -> float | None:
    """Return the time that ends each measurement of a workload; None where an amount of work does."""
    if workload.tool == "fio":
        limits = [job.options.get("runtime") for job in jobs_of(workload.options)]
        return max(float(limit) for limit in limits if limit) if all(limits) else None
    given = workload.options.get({"filebench": "runtime", "pg_test_fsync": "time_per_test"}.get(workload.tool, ""))
    return None if given is None else float(given)


def _measured_s(evidence: Evidence) -> Mapping[str, float]:
    """Return cell to the seconds that its trials measured, on average: by the tool's clock, else by the limit it was
    given."""
    rows = evidence.estimates
    elapsed = rows[(rows["metric"] == "elapsed") & (rows["label"] == "")]
    by_tool = dict(zip(elapsed["cell"], elapsed["mean"].astype(float), strict=True))
    limits = {cell.id: limit_s(cell.workload) for cell in evidence.sweep.cells if cell.id in evidence.counted}
    return {**{cell: limit for cell, limit in limits.items() if limit}, **by_tool}


def too_short(evidence: Evidence) -> Iterator[Doubt]:
    """Trials that measured for less than `design.shortest_trial`, or so briefly that the tool's own clock rounds the
    figure.

    Trials measured for less than `design.shortest_trial`: a warning about the run, foreseen where the workload's own
    limit is shorter. A note where half a step of the tool's own clock is more than 0.5 % of the trial.
    """
    measured = evidence.once(_measured_s)
    cells = [cell for cell in evidence.sweep.cells if cell.id in measured]
    yield from _below_shortest(cells, measured, evidence.sweep.design, "measured")
    for cell in cells:
        clock_s = TOOLS[cell.workload.tool].clock_s
        below = measured[cell.id] < CLOSE * evidence.sweep.design.shortest_trial_s
        if not below and clock_s / 2 > CLOCK_SHARE * measured[cell.id]:
            error = clock_s / 2 / measured[cell.id]
            yield Doubt.of_cell(
                cell,
                f"trials took {format_seconds(measured[cell.id])} by a clock that counts "
                f"{format_seconds(clock_s)} steps: each figure may be off by {error:.1%}. Give it more work.",
                severity="note",
            )


def will_be_too_short(sweep: Sweep, _: BoxFacts) -> Iterator[Doubt]:
    """Workloads whose limit is below `design.shortest_trial`."""
    limits = {cell.id: limit for cell in sweep.cells if (limit := limit_s(cell.workload))}
    cells = [cell for cell in sweep.cells if cell.id in limits]
    yield from _below_shortest(cells, limits, sweep.design, "will measure")


def _below_shortest(cells: Sequence[Cell], measured: Mapping[str, float], design: Design, verb: str) -> Iterator[Doubt]:
    """One doubt about all of the cells that are below it."""
    least = design.shortest_trial_s
    short = [cell for cell in cells if measured[cell.id] < CLOSE * least]
    if not short:
        return
    shortest = min(short, key=lambda cell: measured[cell.id])
    taken = measured[shortest.id]
    tools = dict.fromkeys(cell.workload.tool for cell in short)
    means = listed([f"{tool}: {TOOLS[tool].longer}" for tool in tools])
    yield Doubt.of_run(
        f"Of {counted(len(cells), 'cell')}, {len(short)} {verb} for less than {format_seconds(least)} a trial, "
        f"{shortest.id} for {format_seconds(taken)}: so short a time shows how a trial starts and what disturbs it as "
        f"much as the file system. Give it {_factor(least / taken)} times the work ({means}), or set "
        "design.shortest_trial to what you accept."
    )


def _factor(ratio: float) -> str:
    """Return how many times the work is enough: '1.3', '25'."""
    return f"{math.ceil(ratio) if ratio > _EXACT_BELOW else math.ceil(10 * ratio) / 10:g}"


def _no_time(evidence: Evidence) -> str | None:
    return None if evidence.once(_measured_s) else "no tool stated how long it measured"


CHECKS = (
    Check(
        "too-short",
        too_short,
        "Give each trial more work, or a longer `runtime`; `design.shortest_trial` says what is long enough.",
        severities=("warning", "note"),
        foresee=will_be_too_short,
        blind=_no_time,
    ),
)
