"""box claim: give a scratch device to Mountlab."""

from __future__ import annotations

from typing import Any

from mountlab.cli.shared import Arguments, box_verb


def add(verbs: Any) -> None:
    text = "give a scratch device to Mountlab: read all of it, mark it if it is blank; resumes what was interrupted"
    parser = box_verb(verbs, "claim", _claim, text)
    parser.add_argument("device", help="a scratch device of the box file, by its name there or its stable id")
    parser.add_argument(
        "--erase",
        metavar="ID",
        default="",
        help="claim a device that holds data, which is destroyed; ID: as the refusal without --erase shows it",
    )


def _claim(arguments: Arguments) -> int:
    from tqdm import tqdm

    from mountlab.box import claim, lock
    from mountlab.box.embedded import open_box
    from mountlab.box.facts import roots
    from mountlab.results import paths

    box = paths.load_box(arguments.name)
    device = claim.scratch_device(box, arguments.device)
    with open_box(box) as connection, tqdm(desc=device, unit="B", unit_scale=True, unit_divisor=1024, delay=1) as bar:

        def report(position: claim.Position) -> None:
            bar.total = position.size
            bar.update(position.read - bar.n)

        lock.check_free(connection, roots(connection)[0])
        outcome = claim.claim(connection, device, erase=arguments.erase, report=report)
    print(outcome)
    return 0
