"""The plots of a report keep the rules that `mountlab conform` asks of those of plug-ins."""

from __future__ import annotations

import pytest
from mountlab.analysis.example import ExampleRun
from mountlab.report.sections.figures import PLOTS
from mountlab.runner.conformance import plots as conformance
from synthetic_run import SWEPT, WORKLOADS, synthetic_run

NOT_OF_THIS_RUN = {"clients"}
"""Its workloads are driven by one box."""


@pytest.mark.slow
@pytest.mark.parametrize("name", PLOTS.own)
def test_every_plot_of_a_report_keeps_the_rules_of_plots(name: str) -> None:
    run, plot = synthetic_run(workloads=SWEPT if name == "responses" else WORKLOADS), PLOTS[name]
    case = conformance.PlotCase(plot, run, ExampleRun(run.sweep, {}))
    rules = [rule for rule in conformance.OF_RUN if name not in NOT_OF_THIS_RUN or "draws_what" not in rule.__name__]
    for each in conformance.OF_PLOT:
        each(plot)
    for rule in rules:
        rule(case)
