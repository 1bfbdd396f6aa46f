"""box prepare: install the tools on a box."""

from __future__ import annotations

from typing import Any

from mountlab.cli.shared import Arguments, ask, box_verb, say


def add(verbs: Any) -> None:
    parser = box_verb(verbs, "prepare", _prepare, "install the tools with the box's own package manager")
    parser.add_argument("--yes", action="store_true", help="do not ask")


def _prepare(arguments: Arguments) -> int:
    from mountlab.box import readiness
    from mountlab.box.embedded import open_box, prepare_here
    from mountlab.box.facts import gather
    from mountlab.results import paths
    from mountlab.sweep.feasible import all_programs

    box = paths.load_box(arguments.name)
    prepare_here(box, yes=arguments.yes, ask=ask, say=say)
    with open_box(box) as connection:
        facts = gather(connection, all_programs())
        installed = readiness.prepare(connection, facts, all_programs(), yes=arguments.yes, ask=ask)
    print(f"installed: {', '.join(installed)}" if installed else "nothing was installed")
    return 0
