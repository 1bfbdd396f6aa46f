"""The parts of a report, each made in one call from a Run or a comparison of runs. Pure: no clock, no files, no box.

A notebook shows them one by one, `report.py` makes a page of the notebook. A part without data says why in
a sentence (html.nothing); on the page it is left out together with its heading.

A part with figures is a `Section`: its `frame` has them for pandas and seaborn. Other parts have no such attribute.
"""

from mountlab.report.html import Section
from mountlab.report.sections.about import left_out, options, parameters, reproduce, stopping, versions
from mountlab.report.sections.box import box, facts
from mountlab.report.sections.capacity import capacity
from mountlab.report.sections.clients import clients
from mountlab.report.sections.commands import commands
from mountlab.report.sections.conditions import conditions
from mountlab.report.sections.downloads import downloads
from mountlab.report.sections.either import answer, caveats, every_trial, overview, question, run_order
from mountlab.report.sections.figures import (
    bar_charts,
    device_bytes,
    distributions,
    inside_one,
    inside_trials,
    latencies,
    plots_of_plugins,
    responses,
)
from mountlab.report.sections.first import headline, means, not_checked
from mountlab.report.sections.memory import memory
from mountlab.report.sections.neighbours import neighbours
from mountlab.report.sections.program import program
from mountlab.report.sections.promises import promised
from mountlab.report.sections.published import published
from mountlab.report.sections.states import states
from mountlab.report.sections.tables import explained, tables
from mountlab.report.sections.trials import trials
from mountlab.report.sections.watched import watched
from mountlab.report.sections.why import why
from mountlab.report.sections.why_details import why_asleep, why_processors, why_slowest
from mountlab.report.views.comparison import cell_by_cell, differences, not_compared, verdicts, which

__all__ = [
    "Section",
    "answer", "bar_charts", "box", "capacity", "caveats", "cell_by_cell", "clients", "commands", "conditions",
    "device_bytes", "differences", "distributions", "downloads", "every_trial", "explained", "facts", "headline",
    "inside_one", "inside_trials", "latencies", "left_out", "means", "memory", "neighbours", "not_checked",
    "not_compared", "options", "overview", "parameters", "plots_of_plugins", "program", "promised", "published",
    "question", "reproduce", "responses", "run_order", "states", "stopping", "tables", "trials", "verdicts", "versions",
    "watched", "which", "why", "why_asleep", "why_processors", "why_slowest",
]  # fmt: skip
