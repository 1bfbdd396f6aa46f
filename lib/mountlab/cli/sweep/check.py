"""sweep check: check a sweep file without a box, and show what would be measured."""

from __future__ import annotations

from typing import Any

from mountlab.cli.arguments import SWEEP, argument
from mountlab.cli.shared import Arguments, override, overrides, verb


def add(verbs: Any) -> None:
    parser = verb(verbs, "check", _check, "check a sweep without a box, and show what would be measured")
    argument(parser, SWEEP, "sweep", type=str)
    override(parser)


def _check(arguments: Arguments) -> int:
    from mountlab.results import paths
    from mountlab.sweep.feasible import check_without_box
    from mountlab.sweep.plan_text import sweep_text

    sweep = paths.load_sweep(arguments.sweep, overrides(arguments)).sweep
    paths.load_published(sweep.published)
    check_without_box(sweep)
    boxes = {sweep.box, *sweep.boxes, *sweep.clients} & {*paths.box_names()}
    print(sweep_text(sweep, map(paths.load_box, sorted(boxes))))
    print(
        f"\nThe sweep is valid. Next: mountlab plan {arguments.sweep}, which connects to the box and changes nothing."
    )
    return 0
