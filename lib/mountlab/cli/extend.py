"""extend: add blocks, file systems or workloads to a finished run."""

from __future__ import annotations

from typing import Any

from mountlab.cli.arguments import RUN, SWEEP, argument
from mountlab.cli.shared import Arguments, finish, override, overrides, run_of, verb


def add(verbs: Any) -> None:
    extend = verb(verbs, "extend", _extend, "add blocks, file systems or workloads to a finished run, then report")
    argument(extend, RUN, "run")
    argument(extend, SWEEP, "--sweep", help="a sweep with all that the run has, and more (default: its own)")
    extend.add_argument("--only-new", action="store_true", help="the added blocks hold the added cells alone")
    extend.add_argument("--plan", action="store_true", help="show what would be added; changes nothing")
    override(extend)


def _extend(arguments: Arguments) -> int:
    from mountlab.report.kernels import prepare
    from mountlab.runner.extend import extend, extension_plan
    from mountlab.sweep.plan_text import plan_text

    run, changes = run_of(arguments.run), overrides(arguments)
    if arguments.plan:
        with extension_plan(run, arguments.sweep, only_new=arguments.only_new, overrides=changes) as session:
            print(plan_text(session.plan, session.facts))
        return 0
    made = extend(run, arguments.sweep, only_new=arguments.only_new, measured=prepare, **changes)
    return finish(made)
