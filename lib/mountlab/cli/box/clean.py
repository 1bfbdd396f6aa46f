"""box clean: remove what Mountlab left on a box."""

from __future__ import annotations

from typing import Any

from mountlab.cli.shared import Arguments, box_verb


def add(verbs: Any) -> None:
    parser = box_verb(verbs, "clean", _clean, "remove whatever Mountlab left there")
    parser.add_argument("--dry-run", action="store_true", help="only list")
    parser.add_argument("--force", action="store_true", help="even while a run may be going on there")


def _clean(arguments: Arguments) -> int:
    from mountlab.box import leftovers, lock
    from mountlab.box.embedded import open_box
    from mountlab.box.facts import roots
    from mountlab.results import paths

    with open_box(paths.load_box(arguments.name)) as connection:
        if not (arguments.force or arguments.dry_run):
            lock.check_free(connection, *roots(connection))
        rows = leftovers.remove_leftovers(connection, dry_run=arguments.dry_run)
    for leftover in rows:
        state = "found" if arguments.dry_run else "STILL THERE"
        if leftover.removed:
            state = "given back" if leftover.kind == "borrowed" else "removed"
        elif leftover.kind == "foreign":
            state = "not ours"
        print(f"{state:12} {leftover.kind:8} {leftover.name} {leftover.note}".rstrip())
    if not rows:
        print("nothing of ours is on the box")
    return 0 if arguments.dry_run or all(leftover.removed for leftover in rows) else 1
