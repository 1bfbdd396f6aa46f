"""Verbs that look after a box: check, prepare, claim, clean, helper."""

from __future__ import annotations

from typing import Any

from mountlab.cli.shared import Arguments, ask, say, verb


def add(verbs: Any) -> None:
    """Declare them, below `box`."""
    box = verb(verbs, "box", None, "look after a box").add_subparsers(required=True, metavar="VERB")
    for name, call, text in (
        ("check", _box_check, "is it fit, and what mends it if not"),
        ("prepare", _box_prepare, "install the tools with the box's own package manager"),
        (
            "claim",
            _box_claim,
            "give a scratch device to Mountlab: read all of it, mark it if it is blank; resumes what was interrupted",
        ),
        ("clean", _box_clean, "remove whatever Mountlab left there"),
        (
            "helper",
            _box_helper,
            "print the script that installs the helper, for `become: helper`; run on the box as root",
        ),
    ):
        parser = verb(box, name, call, text)
        parser.add_argument("name", help="a name from params/boxes")
        if name == "prepare":
            parser.add_argument("--yes", action="store_true", help="do not ask")
        if name == "claim":
            parser.add_argument("device", help="a scratch device of the box file, by its name there or its stable id")
            parser.add_argument(
                "--erase",
                metavar="ID",
                default="",
                help="claim a device that holds data, which is destroyed; ID: as the refusal without --erase shows it",
            )
        if name == "clean":
            parser.add_argument("--dry-run", action="store_true", help="only list")
            parser.add_argument("--force", action="store_true", help="even while a run may be going on there")
        if name == "helper":
            parser.add_argument("--user", help="who may use it; without it `user` of the box file")
            parser.add_argument(
                "--as", dest="login", metavar="LOGIN", help="log in so, with root or sudo, and run it now"
            )
            parser.add_argument("--remove", action="store_true", help="take the helper away again (with --as)")
            parser.add_argument("--yes", action="store_true", help="do not ask")


def _box_check(arguments: Arguments) -> int:
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


def _box_prepare(arguments: Arguments) -> int:
    from mountlab.box import care
    from mountlab.box.embedded import open_box, prepare_here
    from mountlab.box.facts import gather
    from mountlab.results import paths
    from mountlab.sweep.feasible import all_programs

    box = paths.load_box(arguments.name)
    prepare_here(box, yes=arguments.yes, ask=ask, say=say)
    with open_box(box) as connection:
        facts = gather(connection, all_programs())
        installed = care.prepare(connection, facts, all_programs(), yes=arguments.yes, ask=ask)
    print(f"installed: {', '.join(installed)}" if installed else "nothing was installed")
    return 0


def _box_claim(arguments: Arguments) -> int:
    from tqdm import tqdm

    from mountlab.box import claim, lock
    from mountlab.box.embedded import open_box
    from mountlab.box.facts import roots
    from mountlab.results import paths

    box = paths.load_box(arguments.name)
    device = claim.scratch_device(box, arguments.device)
    with open_box(box) as connection, tqdm(desc=device, unit="B", unit_scale=True, unit_divisor=1024, delay=1) as bar:

        def tell(position: claim.Position) -> None:
            bar.total = position.size
            bar.update(position.read - bar.n)

        lock.check_free(connection, roots(connection)[0])
        said = claim.claim(connection, device, erase=arguments.erase, tell=tell)
    print(said)
    return 0


def _box_clean(arguments: Arguments) -> int:
    from mountlab.box import care, lock
    from mountlab.box.embedded import open_box
    from mountlab.box.facts import roots
    from mountlab.results import paths

    with open_box(paths.load_box(arguments.name)) as connection:
        if not (arguments.force or arguments.dry_run):
            lock.check_free(connection, *roots(connection))
        found = care.clean(connection, dry_run=arguments.dry_run)
    for each in found:
        state = "found" if arguments.dry_run else "STILL THERE"
        if each.removed:
            state = "given back" if each.kind == "borrowed" else "removed"
        elif each.kind == "foreign":
            state = "not ours"
        print(f"{state:12} {each.kind:8} {each.name} {each.note}".rstrip())
    if not found:
        print("nothing of ours is on the box")
    return 0 if arguments.dry_run or all(each.removed for each in found) else 1


def _box_helper(arguments: Arguments) -> int:
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
            got="nobody",
            next_step=f"set `user` there, or: python -m mountlab box helper {box.name} --user mountlab",
        )
    script = helper.install_script(user, box)
    if not arguments.login:
        print(script, end="")
        return 0
    words = ("remove",) if arguments.remove else ()
    does = "remove the helper" if arguments.remove else f"install the helper for {user}"
    if not arguments.yes and not ask(f"On box {box.name}, as {arguments.login} with root: {does}?"):
        return 0
    as_root = replace(box, user=None if box.embedded else arguments.login, become="auto")
    with open_box(as_root) as connection:
        done = checked(connection, helper.install_argv(script, *words), what=f"could not {does}", root=True)
    print(done.text, end="")
    return 0
