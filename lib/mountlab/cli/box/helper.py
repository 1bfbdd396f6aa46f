"""box helper: print or run the script that installs the helper."""

from __future__ import annotations

from typing import Any

from mountlab.cli.shared import Arguments, ask, box_verb


def add(verbs: Any) -> None:
    text = "print the script that installs the helper, for `become: helper`; run on the box as root"
    parser = box_verb(verbs, "helper", _helper, text)
    parser.add_argument("--user", help="who may use it; without it `user` of the box file")
    parser.add_argument("--as", dest="login", metavar="LOGIN", help="log in so, with root or sudo, and run it now")
    parser.add_argument("--remove", action="store_true", help="take the helper away again (with --as)")
    parser.add_argument(
        "--tracing", action="store_true", help="let it trace the kernel, for `explain`: all users' work is seen then"
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")


def _helper(arguments: Arguments) -> int:
    from dataclasses import replace

    from mountlab.box import helper
    from mountlab.box.connection import checked
    from mountlab.box.embedded import open_box
    from mountlab.core.errors import InputError
    from mountlab.results import paths

    box = paths.load_box(arguments.name)
    user = arguments.user or box.user
    if not user:
        raise InputError(
            "the helper is for one ordinary user of the box",
            where=f"params/boxes/{box.name}.yml: user",
            got="no user",
            next_step=f"set `user` there, or: mountlab box helper {box.name} --user mountlab",
        )
    script = helper.install_script(user, box, tracing=arguments.tracing)
    if not arguments.login:
        print(script, end="")
        return 0
    words = ("remove",) if arguments.remove else ()
    does = "remove the helper" if arguments.remove else f"install the helper for {user}"
    if not arguments.yes and not ask(f"On box {box.name}, as {arguments.login} with root: {does}?"):
        return 0
    as_root = replace(box, user=None if box.embedded else arguments.login, become="auto")
    with open_box(as_root) as connection:
        completed = checked(connection, helper.install_argv(script, *words), what=f"could not {does}", root=True)
    print(completed.text, end="")
    return 0
