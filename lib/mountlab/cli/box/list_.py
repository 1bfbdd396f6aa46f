"""box list: show the boxes of params/boxes."""

from __future__ import annotations

from typing import Any

from mountlab.cli.shared import Arguments, verb, wrong_file
from mountlab.core.errors import MountlabError
from mountlab.core.text import aligned, lines_of


def add(verbs: Any) -> None:
    verb(verbs, "list", _list, "the boxes of params/boxes, and how each is reached; connects to none")


def _list(_: Arguments) -> int:
    from mountlab.results import paths

    print(lines_of(aligned([("BOX", "REACHED BY", "SCRATCH DEVICES", "LABEL"), *map(_row, paths.box_names())])))
    return 0


def _row(name: str) -> tuple[str, str, str, str]:
    """Return what is shown of a box; of a file that is wrong its error."""
    from mountlab.results import paths

    try:
        box = paths.load_box(name)
    except MountlabError as error:
        return name, wrong_file(error), "", ""
    port, user = f"-p {box.port} " if box.port else "", f"{box.user}@" if box.user else ""
    reached = f"starts by itself ({box.embedded})" if box.embedded else f"ssh {port}{user}{box.host}"
    return name, reached, ", ".join(device.name for device in box.scratch) or "none", box.label or ""
