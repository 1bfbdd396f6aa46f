"""run: measure a sweep, then report."""

from __future__ import annotations

from typing import Any

from mountlab.cli.shared import Arguments, finish, finish_boxes, overrides, sweep_verb
from mountlab.core.errors import InputError


def add(verbs: Any) -> None:
    run = sweep_verb(verbs, "run", _run, "measure a sweep, then report; with `boxes` on each of them, and across them")
    run.add_argument("--scheduler", metavar="ADDRESS", help="of a sweep with `boxes`: a dask.distributed scheduler")


def _run(arguments: Arguments) -> int:
    from mountlab.report.kernels import prepare
    from mountlab.results import paths
    from mountlab.runner import workflow

    resolved = paths.load_sweep(arguments.sweep, overrides(arguments))
    if resolved.sweep.boxes and not arguments.box:
        from mountlab.batch import boxes, commands

        made = boxes.batch_of(resolved)
        return finish_boxes(commands.run_batch(made, results=paths.RESULTS, scheduler=arguments.scheduler))
    if arguments.scheduler:
        raise InputError(
            "a scheduler gives out boxes, and one box is asked for",
            where="--scheduler",
            got=arguments.scheduler,
            allowed="a sweep with `boxes`, without --box",
        )
    return finish(workflow.run(resolved, box=arguments.box, measured=prepare))
