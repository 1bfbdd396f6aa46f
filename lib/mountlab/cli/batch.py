"""batch: measure many sweeps on many boxes."""

from __future__ import annotations

from typing import Any

from mountlab.cli.arguments import BATCH, RUN, argument
from mountlab.cli.shared import Arguments, finish_batch, run_of, verb
from mountlab.core.errors import InputError


def add(verbs: Any) -> None:
    batch = verb(verbs, "batch", _batch, "notebooks x sweeps x boxes x overrides, and one page on all of them")
    argument(batch, BATCH, "file", nargs="?")
    batch.add_argument("--plan", action="store_true", help="what would run, and how long; changes nothing")
    argument(batch, RUN, "--resume", metavar="DIR", help="go on with the batch of this directory")
    batch.add_argument(
        "--new", action="store_true", help="start a new batch, where FILE would resume an unfinished one"
    )
    batch.add_argument(
        "--scheduler", metavar="ADDRESS", help="of dask.distributed, such as tcp://HOST:8786: its workers do the items"
    )
    batch.add_argument(
        "--at-once", type=int, metavar="N", help="at most so many boxes at the same time; without it all of them"
    )


def _batch(arguments: Arguments) -> int:
    from mountlab.batch import commands
    from mountlab.batch.store import load_batch
    from mountlab.batch.view import plan_text
    from mountlab.results import paths

    if (arguments.file is None) == (arguments.resume is None):
        raise InputError(
            "a batch is named by its file, or by its directory", allowed="batch FILE, or batch --resume DIR"
        )
    resumed = run_of(arguments.resume) if arguments.resume else None
    if arguments.plan:
        print(plan_text(*commands.plan(arguments.file, resumed)))
        return 0
    how = {"scheduler": arguments.scheduler, "at_once": arguments.at_once}
    if resumed:
        return finish_batch(commands.resume_batch(resumed, **how))
    made = load_batch(arguments.file)
    return finish_batch(commands.run_batch(made, results=paths.RESULTS, new=arguments.new, **how))
