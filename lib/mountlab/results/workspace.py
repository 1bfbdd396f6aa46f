"""Make a workspace: a directory of a researcher's own, with Mountlab as a dependency at a fixed version."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from importlib import metadata
from importlib.resources import files
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import url2pathname

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from mountlab.core import disk
from mountlab.core.errors import ParameterError, StoreError
from mountlab.core.extras import EXTRAS
from mountlab.core.places import SHIPPED
from mountlab.results import writer
from mountlab.results.pinned import Pin, pin, runtime_environment, runtime_lock
from mountlab.sweep.new_sweep import new_sweep

SWEEP = "mine"
"""The sweep that a workspace begins with."""
_TEMPLATES = {
    "Makefile": "Makefile", "README.md": "README.md", "gitignore": ".gitignore", "gitattributes": ".gitattributes",
    "results.gitignore": "results/.gitignore",
}  # fmt: skip
"""File of new_workspace to its name in the workspace."""
_COPIED = ("params/boxes/local.yml", "params/boxes/example.yml")


@dataclass(frozen=True, kw_only=True)
class NewWorkspace:
    """What `make_workspace` did."""

    pin: Pin
    written: tuple[Path, ...]
    kept: tuple[Path, ...]
    """Files that were there, and stay as they are."""


def make_workspace(directory: Path) -> NewWorkspace:
    """Write what a workspace lacks. Raises ParameterError for a directory in a clone of Mountlab, StoreError for a
    file."""
    place = directory.resolve()
    _check(place, str(directory))
    current = installed_pin()
    wanted = {place / name: content for name, content in _files(place.name, current).items()}
    kept = tuple(path for path in wanted if os.path.lexists(path))
    written = tuple(path for path in wanted if path not in kept)
    for path in written:
        disk.make_directory(path.parent)
        disk.replace_file(path, wanted[path])
    return NewWorkspace(pin=current, written=written, kept=kept)


def _check(place: Path, given: str) -> None:
    clone = next((above for above in (place, *place.parents) if (above / "lib/mountlab/__init__.py").is_file()), None)
    if clone is not None:
        raise ParameterError(
            "a workspace cannot lie inside a clone of Mountlab",
            where="DIR",
            got=f"{given}, in the clone {clone}",
            allowed="a directory outside it, so that it can be a repository of its own",
            next_step="name another one; the clone itself serves as a workspace, too: mountlab sweep new NAME",
        )
    if place.exists() and not place.is_dir():
        raise StoreError("a workspace is a directory", where=given, got="a file", next_step="name another one")


def _files(name: str, current: Pin) -> dict[str, bytes]:
    """Return the files of a workspace, whose directory has this name, by their paths in it."""
    direct = _runtime_names(metadata.requires("mountlab") or [])
    lock = runtime_lock((SHIPPED / "requirements.lock").read_text(), direct, metadata.version("mountlab"))
    environment = runtime_environment((SHIPPED / "environment.yml").read_text(), direct, re.sub(r"[^\w.-]+", "-", name))
    templates = files("mountlab.results") / "new_workspace"
    texts = {path: (templates / file).read_text() for file, path in _TEMPLATES.items()} | {
        f"params/sweeps/{SWEEP}.yml": new_sweep(SWEEP),
        "requirements.lock": lock,
        "environment.yml": environment,
        "mountlab.lock": current.text(),
    }
    texts["README.md"] = texts["README.md"].replace("NAME", name)
    notebooks = (f"notebooks/{path.name}" for path in sorted((SHIPPED / "notebooks").glob("*.ipynb")))
    copies = {path: (SHIPPED / path).read_bytes() for path in (*_COPIED, *notebooks)}
    return {path: text.encode() for path, text in texts.items()} | copies | dict(current.files)


def _runtime_names(needs: list[str]) -> set[str]:
    """Return the packages that these requirements name, without those of developers' extras."""
    of_extra = re.compile(r'extra == "([^"]+)"')
    return {
        canonicalize_name(each.name)
        for each in map(Requirement, needs)
        if (extra := of_extra.search(str(each.marker))) is None or extra[1] in EXTRAS
    }


def installed_pin() -> Pin:
    """Return the pin of the Mountlab that runs, from what its installer recorded of it."""
    installed = metadata.distribution("mountlab")
    text = installed.read_text("direct_url.json")
    record: dict[str, Any] | None = json.loads(text) if text else None
    path = _local_path(str(record["url"])) if record else None
    archive = path.read_bytes() if path is not None and path.is_file() else None
    commit = writer.git_commit(path) if path is not None and path.is_dir() else None
    return pin(installed.version, record, archive=archive, commit=commit)


def _local_path(url: str) -> Path | None:
    parts = urlsplit(url)
    return Path(url2pathname(parts.path)) if parts.scheme == "file" else None
