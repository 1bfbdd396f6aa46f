"""Verbs that measure: plan, run, resume, batch, demo."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mountlab.cli.shared import (
    RUN,
    Arguments,
    announce,
    ask,
    finish,
    json_text,
    override,
    overrides,
    say,
    sweep_verb,
    verb,
)
from mountlab.core import disk
from mountlab.core.errors import InputError, MountlabError


def add(verbs: Any) -> None:
    """Declare them."""
    plan = sweep_verb(verbs, "plan", _plan, "what would run, every command, what would be formatted; changes nothing")
    plan.add_argument("--json", action="store_true", help="as data")
    plan.add_argument("--pilot", type=Path, metavar="RUN", help="an earlier run: predict precision, time and power")
    run = sweep_verb(verbs, "run", _run, "measure a sweep, then report; with `boxes` on each of them, and across them")
    run.add_argument("--scheduler", metavar="ADDRESS", help="of a sweep with `boxes`: a dask.distributed scheduler")
    resume = verb(verbs, "resume", _resume, "go on with a run that was stopped, then report")
    resume.add_argument("run", type=Path, help=RUN)
    batch = verb(verbs, "batch", _batch, "notebooks x sweeps x boxes x overrides, and one page on all of them")
    batch.add_argument("file", type=Path, nargs="?", help="such as params/batches/studies.yml")
    batch.add_argument("--plan", action="store_true", help="what would run, and how long; changes nothing")
    batch.add_argument("--resume", type=Path, metavar="DIR", help="go on with the batch of this directory")
    batch.add_argument(
        "--new", action="store_true", help="begin anew, where FILE would go on with what is not finished"
    )
    batch.add_argument(
        "--scheduler", metavar="ADDRESS", help="of dask.distributed, such as tcp://HOST:8786: its workers do the items"
    )
    batch.add_argument(
        "--at-once", type=int, metavar="N", help="at most so many boxes at the same time; without it all of them"
    )
    demo = verb(verbs, "demo", _demo, "studies A and B at a small size on this machine")
    demo.add_argument("--box", default="local", help="a name from params/boxes")
    demo.add_argument("--yes", action="store_true", help="install missing tools without asking")
    override(demo)


def _plan(arguments: Arguments) -> int:
    from mountlab.results import paths, store
    from mountlab.runner import workflow
    from mountlab.sweep.plan_text import plan_json, plan_text

    resolved = paths.load_sweep(arguments.sweep, overrides(arguments))
    if resolved.sweep.boxes and not (arguments.box or arguments.pilot):
        return _plan_on_boxes(resolved, as_json=arguments.json)
    pilot = store.load_run(arguments.pilot) if arguments.pilot else None
    with workflow.planned(resolved, box=arguments.box) as session:
        as_json, more = _predicted(resolved.sweep, pilot, session.facts) if pilot else ({}, [])
        if arguments.json:
            print(json_text({**plan_json(session.plan, session.facts), **as_json}))
        else:
            print(plan_text(session.plan, session.facts), *more, sep="\n\n")
    return 0


def _predicted(sweep: Any, pilot: Any, facts: Any) -> tuple[dict[str, Any], list[str]]:
    """What an earlier run predicts, as data and as text."""
    from mountlab.analysis.forecast import forecast
    from mountlab.report.views.forecast import forecast_json, forecast_text

    predicted = forecast(sweep, pilot, facts=facts)
    return {"pilot": forecast_json(predicted)}, [forecast_text(predicted, sweep)]


def _plan_on_boxes(resolved: Any, *, as_json: bool) -> int:
    """The plan for each box; the exit code is that of the first box that cannot do it."""
    from mountlab.batch import boxes

    planned = boxes.plans(resolved)
    print(json_text(boxes.plans_json(planned)) if as_json else boxes.plans_text(planned))
    return next((each.error.exit_code for each in planned if each.error), 0)


def _run(arguments: Arguments) -> int:
    from mountlab.results import paths
    from mountlab.runner import workflow

    resolved = paths.load_sweep(arguments.sweep, overrides(arguments))
    if resolved.sweep.boxes and not arguments.box:
        from mountlab.batch import boxes, commands

        made = boxes.batch_of(resolved)
        return _finish_boxes(commands.run_batch(made, results=paths.RESULTS, scheduler=arguments.scheduler))
    if arguments.scheduler:
        raise InputError(
            "a scheduler gives out boxes, and one box is asked for",
            where="--scheduler",
            got=arguments.scheduler,
            allowed="a sweep with `boxes`, without --box",
        )
    return finish(workflow.run(resolved, box=arguments.box))


def _resume(arguments: Arguments) -> int:
    from mountlab.batch import boxes
    from mountlab.results import paths
    from mountlab.runner import workflow

    if boxes.is_batch(arguments.run):
        from mountlab.batch import commands

        ended = commands.resume_batch(paths.found(arguments.run))
        return _finish_boxes(ended) if len(ended[1].across) == 1 else _finish_batch(ended)
    return finish(workflow.resume(arguments.run))


def _finish_boxes(ended: tuple[Path, Any]) -> int:
    """Report on a sweep that was run on several boxes: what became of each, the answer over boxes, the pages."""
    from mountlab.batch import boxes
    from mountlab.report.views.boxes import across_text

    try:
        print(f"\n{across_text(boxes.load_across(ended[0].parent))}")
    except MountlabError as error:
        say(f"nothing is said over boxes: {error}")
    return _finish_batch(ended)


def _finish_batch(ended: tuple[Path, Any]) -> int:
    """Report on a batch: what became of each item, and the pages."""
    from mountlab.batch import commands
    from mountlab.batch.view import summary_text

    page, view = ended
    print(f"\n{summary_text(view)}\n")
    for found in view.across.values():
        if found.startswith("../"):
            print(f"report over boxes: {disk.shown((page.parent / found).resolve())}")
    print(f"report: {disk.shown(page)}")
    return commands.exit_code(view)


def _batch(arguments: Arguments) -> int:
    from mountlab.batch import commands
    from mountlab.batch.store import load_batch
    from mountlab.batch.view import plan_text
    from mountlab.results import paths

    if (arguments.file is None) == (arguments.resume is None):
        raise InputError(
            "a batch is named by its file, or by its directory", allowed="batch FILE, or batch --resume DIR"
        )
    if arguments.plan:
        print(plan_text(*commands.plan(arguments.file, arguments.resume)))
        return 0
    how = {"scheduler": arguments.scheduler, "at_once": arguments.at_once}
    if arguments.resume:
        return _finish_batch(commands.resume_batch(arguments.resume, **how))
    made = load_batch(arguments.file)
    return _finish_batch(commands.run_batch(made, results=paths.RESULTS, anew=arguments.new, **how))


def _demo(arguments: Arguments) -> int:
    from mountlab.runner.demo import demo, may_ask

    asked = ask if may_ask() and not arguments.yes else announce
    return finish(demo(arguments.box, overrides(arguments), ask=asked, say=say))
