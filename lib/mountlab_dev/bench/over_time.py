"""What it costs to look inside of trials: the same job with fio's logs and the sampler, and without, in one run."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from mountlab.box.embedded import open_box
from mountlab.core.model import Box
from mountlab.core.trial_files import TrialFiles
from mountlab.results.writer import RunWriter
from mountlab.runner import workflow
from mountlab.runner.sweep_runner import run_sweep
from mountlab.sweep.plan import Plan, PlannedTrial

from mountlab_dev.bench.perturbation import INSIDE, METRIC, Figures, figure, ratio
from mountlab_dev.bench.table import Row
from mountlab_dev.bench.trials import FIO, Silent, a_sweep

PAIRS, RUNTIME = 100, "2s"
"""Two trials of a pair differ by 4 %: of 40 pairs the interval was as wide as what is allowed."""
_SAMPLER = re.compile(r"^sampler=.*$", re.MULTILINE)


def rows(box: Box, pairs: int, scratch: Path) -> Iterator[Row]:
    """Yield the ratio of IOPS with it to IOPS without, on one processor and on all: there the sampler has to share one
    with the tool."""
    yield _row(box, pairs, scratch / "one", jobs=1, what="one job")
    yield _row(box, pairs, scratch / "all", jobs=2, what="two jobs")


def _row(box: Box, pairs: int, scratch: Path, *, jobs: int, what: str) -> Row:
    name = f"fio looked into by default / without, {METRIC} of {pairs} pairs in one run, {what}"
    job = {**FIO, "runtime": RUNTIME, "numjobs": jobs}
    resolved = a_sweep(job, pairs, warmup=0, off={**job, "log_avg_msec": 0})
    with open_box(box) as connection:
        session = workflow.planned_on({box.name: connection}, resolved, box, results=scratch)
        plan = _off(session.plan)
        journal = Figures(RunWriter.create(plan, resolved, session.facts, results=scratch))
        run_sweep(plan, session.connection, journal, Silent())
    found: dict[bool, dict[int, float]] = {True: {}, False: {}}
    for trial, files in zip(plan.trials, journal.found, strict=True):
        found[_is_on(trial)][trial.block] = figure(trial, files)
    looked_into = (files for trial, files in zip(plan.trials, journal.found, strict=True) if _is_on(trial))
    if not all(TrialFiles.OVER_TIME in files for files in looked_into):
        return Row(name, [], unit="ratio", inside=INSIDE, why_not="the box has no shell that samples (sampling_shell)")
    return ratio(name, [(found[True][block], found[False][block]) for block in sorted(found[True])], INSIDE)


def _is_on(trial: PlannedTrial) -> bool:
    return trial.cell.workload.name != "off"


def _off(plan: Plan) -> Plan:
    """With the sampler in those trials alone that are looked into."""
    mount_groups = tuple(
        replace(each, trials=tuple(trial if _is_on(trial) else _without(trial) for trial in each.trials))
        for each in plan.mount_groups
    )
    return replace(plan, mount_groups=mount_groups)


def _without(trial: PlannedTrial) -> PlannedTrial:
    return replace(trial, head=_SAMPLER.sub("sampler=''", trial.head))
