"""demo: measure two small studies on this machine."""

from __future__ import annotations

from typing import Any

from mountlab.cli.arguments import BOX, argument
from mountlab.cli.shared import Arguments, announce, ask, finish, override, overrides, say, verb


def add(verbs: Any) -> None:
    demo = verb(verbs, "demo", _demo, "studies A and B at a small size on this machine")
    argument(demo, BOX, "--box", default="local")
    demo.add_argument("--yes", action="store_true", help="install missing tools without asking")
    override(demo)


def _demo(arguments: Arguments) -> int:
    from mountlab.report.kernels import prepare
    from mountlab.runner.demo import demo, may_ask

    question = ask if may_ask() and not arguments.yes else announce
    return finish(demo(arguments.box, overrides(arguments), ask=question, say=say, measured=prepare))
