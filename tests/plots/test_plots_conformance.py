"""The plots of a report keep the rules that `mountlab conform` asks of those of plug-ins."""

from __future__ import annotations

from dataclasses import replace

import pytest
from mountlab.analysis.example import ExampleRun
from mountlab.report.sections.figures import PLOTS
from mountlab.runner.conformance import plots as conformance
from repetition import others_long
from searched_run import searched_run
from simulated_why import FSYNC, simulated_why
from synthetic_run import SWEPT, WORKLOADS, synthetic_run

FEW = (WORKLOADS[0], *WORKLOADS[3:5])
"""One of dd, and one that reads and one that writes of fio."""
KEPT = ("bars", "trials", "layers", "capacity")
"""One of means, of single trials, of parts of an operation and of a search."""
NOT_OF_THIS_RUN = {"clients", "program"}
"""Its workloads are driven by one box, and no system call of theirs was recorded."""


@pytest.mark.slow
@pytest.mark.parametrize("name", others_long(PLOTS.own, kept=KEPT))
def test_every_plot_of_a_report_keeps_the_rules_of_plots(name: str) -> None:
    explained, plot = name in ("layers", "slowest", "flames", "sleeps"), PLOTS[name]
    run = synthetic_run(workloads=SWEPT if name in ("responses", "clustered") else FEW[:1] if explained else FEW)
    if explained:
        run = replace(run, why=simulated_why(run.sweep, dict.fromkeys(("tmpfs", "ramfs", "ext4"), FSYNC["ext4"])))
    drawn = searched_run("ext4", "xfs") if name == "capacity" else run
    case = conformance.PlotCase(plot, drawn, ExampleRun(drawn.sweep, {}))
    rules = [rule for rule in conformance.OF_RUN if name not in NOT_OF_THIS_RUN or "draws_what" not in rule.__name__]
    for each in conformance.OF_PLOT:
        each(plot)
    for rule in rules:
        rule(case)
