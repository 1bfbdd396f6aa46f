"""box check: say what a box lacks, and what mends it."""

from __future__ import annotations

from typing import Any

from mountlab.cli.shared import Arguments, box_verb


def add(verbs: Any) -> None:
    box_verb(verbs, "check", _check, "is it fit, and what mends it if not")


def _check(arguments: Arguments) -> int:
    from mountlab.box import care
    from mountlab.box.embedded import open_box
    from mountlab.box.facts import gather
    from mountlab.filesystems import kernel_types
    from mountlab.results import paths
    from mountlab.sweep.feasible import all_programs

    with open_box(paths.load_box(arguments.name)) as connection:
        rows = care.check(connection, gather(connection, all_programs()), all_programs(), kernel_types())
    for row in rows:
        print(f"{row.state:8} {row.name:14} {row.seen}" + (f"\n{'':23} mend: {row.mend}" if row.mend else ""))
    return 0 if all(row.state != "missing" for row in rows) else 1
