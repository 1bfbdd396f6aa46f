"""explain: trace each cell of a finished run, for the section Why of its report, or for the profile of its programs."""

from __future__ import annotations

from typing import Any

from mountlab.cli.arguments import RUN, argument
from mountlab.cli.shared import Arguments, finish, override, overrides, run_of, verb


def add(verbs: Any) -> None:
    explain = verb(verbs, "explain", _explain, "run each cell of a finished run again, traced, then report why")
    argument(explain, RUN, "run")
    explain.add_argument("--plan", action="store_true", help="show what would be run; changes nothing")
    explain.add_argument(
        "--profile", action="store_true", help="record the system calls of each cell instead: what its program does"
    )
    override(explain)


def _explain(arguments: Arguments) -> int:
    from mountlab.core.errors import ParameterError
    from mountlab.report.kernels import prepare
    from mountlab.runner.explain import explain, explain_plan, requested_blocks
    from mountlab.sweep.plan_text import plan_text

    profile, requested = arguments.profile, overrides(arguments)
    if profile and requested:
        raise ParameterError(
            "a profile is recorded once for each cell",
            where="explain --profile",
            got=", ".join(f"-p {key}={value}" for key, value in requested.items()),
            allowed="--profile alone; without it -p explain=8 asks for traced blocks",
        )
    run, blocks = run_of(arguments.run), requested_blocks(requested)
    if arguments.plan:
        with explain_plan(run, blocks=blocks, profile=profile) as session:
            print(plan_text(session.plan, session.facts))
        return 0
    return finish(explain(run, blocks=blocks, profile=profile, measured=prepare))
