"""box check: say what a box lacks, what mends it, and what of Mountlab works there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from mountlab.cli.shared import Arguments, box_verb

if TYPE_CHECKING:
    from mountlab.box.readiness import CheckRow


def add(verbs: Any) -> None:
    box_verb(verbs, "check", _check, "is it fit, and what mends it if not")


def _check(arguments: Arguments) -> int:
    from mountlab.box import readiness
    from mountlab.box.abilities import abilities
    from mountlab.box.embedded import open_box
    from mountlab.box.facts import gather
    from mountlab.filesystems import kernel_types
    from mountlab.results import paths
    from mountlab.sweep.feasible import all_programs

    with open_box(paths.load_box(arguments.name)) as connection:
        facts = gather(connection, all_programs())
        rows = readiness.check(connection, facts, all_programs(), kernel_types())
        _print(rows)
        print("\nWhat of Mountlab works here:")
        _print(abilities(connection, facts))
    return 0 if all(row.state != "missing" for row in rows) else 1


def _print(rows: Sequence[CheckRow]) -> None:
    for row in rows:
        print(f"{row.state:8} {row.name:18} {row.seen}" + (f"\n{'':27} mend: {row.mend}" if row.mend else ""))
