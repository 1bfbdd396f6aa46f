"""report: write the report of a run again."""

from __future__ import annotations

from typing import Any

from mountlab.cli.arguments import RUN, argument
from mountlab.cli.shared import Arguments, reporting, run_of, say, verb
from mountlab.core import disk


def add(verbs: Any) -> None:
    argument(verb(verbs, "report", _report, "write the report of a run again"), RUN, "run")


def _report(arguments: Arguments) -> int:
    from mountlab.report.kernels import prepare

    run = run_of(arguments.run)
    prepare()  # before the imports of this process: they take a second
    from mountlab.report.execute import write_report
    from mountlab.results import tables, writer

    with reporting(run):
        tables.derive(run, None)  # trials may have been excluded since
        if going_on := writer.going_on(run):
            say(f"note: {going_on}")
        print(f"report: {disk.path_text(write_report(run))}")
    return 0
