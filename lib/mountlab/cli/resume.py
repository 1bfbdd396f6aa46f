"""resume: continue a run that was stopped."""

from __future__ import annotations

from typing import Any

from mountlab.cli.arguments import RUN, argument
from mountlab.cli.shared import Arguments, finish, finish_batch, finish_boxes, run_of, verb


def add(verbs: Any) -> None:
    resume = verb(verbs, "resume", _resume, "go on with a run that was stopped, then report")
    argument(resume, RUN, "run")


def _resume(arguments: Arguments) -> int:
    from mountlab.batch import boxes
    from mountlab.report.kernels import prepare
    from mountlab.runner import workflow

    run = run_of(arguments.run)
    if boxes.is_batch(run):
        from mountlab.batch import commands

        ended = commands.resume_batch(run)
        return finish_boxes(ended) if len(ended[1].across) == 1 else finish_batch(ended)
    return finish(workflow.resume(run, measured=prepare))
