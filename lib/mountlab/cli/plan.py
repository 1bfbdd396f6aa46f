"""plan: show what would run."""

from __future__ import annotations

from typing import Any

from mountlab.cli.arguments import RUN, argument
from mountlab.cli.shared import Arguments, json_text, overrides, run_of, sweep_verb


def add(verbs: Any) -> None:
    plan = sweep_verb(verbs, "plan", _plan, "what would run, every command, what would be formatted; changes nothing")
    plan.add_argument("--json", action="store_true", help="as data")
    argument(plan, RUN, "--pilot", metavar="RUN", help="an earlier run: predict precision, time and power")


def _plan(arguments: Arguments) -> int:
    from mountlab.results import paths, store
    from mountlab.runner import workflow
    from mountlab.sweep.plan_text import plan_json, plan_text

    resolved = paths.load_sweep(arguments.sweep, overrides(arguments))
    if resolved.sweep.boxes and not (arguments.box or arguments.pilot):
        return _plan_on_boxes(resolved, as_json=arguments.json)
    pilot = store.load_run(run_of(arguments.pilot)) if arguments.pilot else None
    with workflow.planned(resolved, box=arguments.box) as session:
        as_json, more = _predicted(resolved.sweep, pilot, session.facts) if pilot else ({}, [])
        if arguments.json:
            print(json_text({**plan_json(session.plan, session.facts), **as_json}))
        else:
            print(plan_text(session.plan, session.facts), *more, sep="\n\n")
    return 0


def _predicted(sweep: Any, pilot: Any, facts: Any) -> tuple[dict[str, object], list[str]]:
    """Return what an earlier run predicts, as data and as text."""
    from mountlab.analysis.forecast import forecast
    from mountlab.report.views.forecast import forecast_json, forecast_text

    predicted = forecast(sweep, pilot, facts=facts)
    return {"pilot": forecast_json(predicted)}, [forecast_text(predicted, sweep)]


def _plan_on_boxes(resolved: Any, *, as_json: bool) -> int:
    """Return the plan for each box; the exit code is that of the first box that cannot do it."""
    from mountlab.batch import boxes

    planned = boxes.plans(resolved)
    print(json_text(boxes.plans_json(planned)) if as_json else boxes.plans_text(planned))
    return next((box.error.exit_code for box in planned if box.error), 0)
