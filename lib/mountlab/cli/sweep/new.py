"""sweep new: write a sweep file to begin with."""

from __future__ import annotations

from typing import Any

from mountlab.cli.shared import Arguments, verb
from mountlab.core import disk
from mountlab.core.errors import StoreError


def add(verbs: Any) -> None:
    text = "write a small sweep with comments, params/sweeps/NAME.yml, to be changed"
    verb(verbs, "new", _new, text).add_argument("name", help="of the new sweep: letters, digits, '_', '.' and '-'")


def _new(arguments: Arguments) -> int:
    from mountlab.results import paths
    from mountlab.sweep.new_sweep import new_sweep
    from mountlab.sweep.validated import check_names

    name = arguments.name
    check_names([name], "NAME")
    path = paths.PARAMS / paths.SWEEPS / f"{name}.yml"
    if path.exists():
        raise StoreError("the sweep is there already", where=disk.path_text(path), next_step="choose another name")
    disk.make_directory(path.parent)
    disk.replace_file(path, new_sweep(name).encode())
    print(f"written: {disk.path_text(path)}\nnext:    change it, then: mountlab sweep check {name}")
    return 0
