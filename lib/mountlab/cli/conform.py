"""conform: check the parts that an installed plug-in registers."""

from __future__ import annotations

from typing import Any

from mountlab.cli.arguments import PLUGIN, argument
from mountlab.cli.shared import Arguments, verb


def add(verbs: Any) -> None:
    conform = verb(verbs, "conform", _conform, "check the parts that an installed plug-in registers; touches no box")
    argument(conform, PLUGIN, "package", metavar="PACKAGE")


def _conform(arguments: Arguments) -> int:
    from mountlab.core.numbers import counted
    from mountlab.runner.conformance.suites import conform, entries_of

    entries, failed, asked = entries_of(arguments.package), 0, 0
    for item in conform(entries):
        print(item, flush=True)
        asked, failed = asked + 1, failed + bool(item.problem)
    print(f"{entries[0].owner}: {counted(asked - failed, 'item')} passed, {failed} failed")
    return 1 if failed else 0
