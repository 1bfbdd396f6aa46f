"""explain: trace each cell of a finished run, for the section Why of its report."""

from __future__ import annotations

from typing import Any

from mountlab.cli.arguments import RUN, argument
from mountlab.cli.shared import Arguments, finish, override, overrides, run_of, verb


def add(verbs: Any) -> None:
    explain = verb(verbs, "explain", _explain, "run each cell of a finished run again, traced, then report why")
    argument(explain, RUN, "run")
    explain.add_argument("--plan", action="store_true", help="show what would be run; changes nothing")
    override(explain)


def _explain(arguments: Arguments) -> int:
    from mountlab.report.kernels import prepare
    from mountlab.runner.explain import explain, explain_plan, requested_blocks
    from mountlab.sweep.plan_text import plan_text

    run, blocks = run_of(arguments.run), requested_blocks(overrides(arguments))
    if arguments.plan:
        with explain_plan(run, blocks=blocks) as session:
            print(plan_text(session.plan, session.facts))
        return 0
    return finish(explain(run, blocks=blocks, measured=prepare))
