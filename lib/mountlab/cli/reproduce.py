"""reproduce: check a published bundle, or run its sweeps again."""

from __future__ import annotations

from typing import Any

from mountlab.cli.arguments import BOX, BUNDLE, argument
from mountlab.cli.shared import Arguments, verb
from mountlab.core import disk


def add(verbs: Any) -> None:
    reproduce = verb(verbs, "reproduce", _reproduce, "check a published bundle; with --box run its sweeps again")
    argument(reproduce, BUNDLE, "bundle")
    argument(reproduce, BOX, "--box", help=f"{BOX.text}: run the sweeps there, and compare")
    reproduce.add_argument(
        "--allow-commands", action="store_true", help="with --box: also run command lines of the bundle"
    )


def _reproduce(arguments: Arguments) -> int:
    from mountlab.publish import reproduce
    from mountlab.publish.bundle_view import checked_text

    with reproduce.opened(arguments.bundle) as place:
        checked = reproduce.check(place)
        print(checked_text(checked), flush=True)
        if arguments.box and checked.same:
            reproduce.refuse_commands(place, allowed=arguments.allow_commands)
            for text, page in reproduce.again(place, arguments.box):
                print(f"\n{text}\n\nreport: {disk.path_text(page)}", flush=True)
    return 0 if checked.same else 1
