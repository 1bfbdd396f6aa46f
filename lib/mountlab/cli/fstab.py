"""fstab: print the lines that make a mount of a run permanent."""

from __future__ import annotations

from typing import Any

from mountlab.cli.arguments import RUN, argument
from mountlab.cli.shared import Arguments, run_of, verb
from mountlab.core import disk
from mountlab.core.errors import StoreError


def add(verbs: Any) -> None:
    fstab = verb(verbs, "fstab", _fstab, "the lines that would make a mount of a run permanent; changes nothing")
    argument(fstab, RUN, "run")
    fstab.add_argument("filesystem", help="its name in the sweep")
    fstab.add_argument("--at", default=None, help="the mount point (default: /mnt/FILESYSTEM)")


def _fstab(arguments: Arguments) -> int:
    from mountlab.core.options import unknown_key
    from mountlab.filesystems.fstab import permanent_lines
    from mountlab.results import info, store

    path = run_of(arguments.run)
    run = store.load_run(path)
    if run.sweep.imported:
        what = "how the file systems of imported logs were mounted is not known"
        raise StoreError(what, where=disk.path_text(path))
    by_name = {fs.name: fs for fs in run.sweep.filesystems}
    if arguments.filesystem not in by_name:
        raise unknown_key(arguments.filesystem, by_name, where=disk.path_text(path), what="file system of this run")
    at = arguments.at or f"/mnt/{arguments.filesystem}"
    doubts = store.doubts_of_mount(run, arguments.filesystem)
    print(permanent_lines(by_name[arguments.filesystem], info.read_box(path), at=at, doubts=doubts))
    return 0
