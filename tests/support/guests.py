"""Virtual boxes in tests: a script in one, a sweep on one, and a run's directory left there as by a kill."""

from __future__ import annotations

import base64
import gzip
import shlex
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from conftest import prepared_vm, share_vm
from mountlab.box.connection import BoxConnection
from mountlab.box.embedded import open_box
from mountlab.box.leftovers import Leftover, remove_leftovers
from mountlab.core.model import Filesystem, Place, Step
from mountlab.core.shell import script_argv
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.guard import read_permission, uuid_for
from mountlab.results import store
from mountlab.runner import workflow
from mountlab.sweep.box_file import parse_box
from mountlab.sweep.filesystem_entry import FilesystemFile, read_filesystem
from sweeps import as_is
from waiting import LIMIT_S

# --- boxes ------------------------------------------------------------------------------------------------------------


@contextmanager
def virtual_box(**keys: Any) -> Iterator[BoxConnection]:
    """Yield a virtual box of these keys of a box file, built where this machine has none like it: of minutes."""
    with open_box(prepared_vm(parse_box({"embedded": "vm", **keys}, name="vm", where="vm.yml"))) as connection:
        yield connection


def sh(box: BoxConnection, script: str) -> str:
    """What a script prints, as root."""
    done = box.run(("sh", "-c", script), root=True, timeout_s=LIMIT_S)
    assert done.ok, done.error_text
    return done.text.strip()


def put(box: BoxConnection, path: str, text: str) -> None:
    """Write a file on the box, in parts that a command may hold."""
    packed = base64.b64encode(gzip.compress(text.encode())).decode()
    sh(box, f": >{path}.gz")
    for at in range(0, len(packed), 16_384):
        sh(box, f"echo {packed[at : at + 16_384]} | base64 -d >>{path}.gz")
    sh(box, f"gunzip -c {path}.gz >{path}; rm {path}.gz")


def disks_of(box: BoxConnection, count: int) -> tuple[tuple[str, str], ...]:
    """The stable names of its first disks and their identities; the guard takes them for devices that we may use."""
    found = []
    for number in range(1, count + 1):
        disk = f"/dev/disk/by-id/virtio-mountlab-disk{number}"
        looked = box.run(script_argv("guard.sh", disk, "", ""), root=True)
        assert looked.ok, looked.error_text
        found.append((disk, read_permission(looked.error_text)[0]))
    return tuple(found)


def measured(box: BoxConnection, results: Path, **sweep: Any) -> store.Run:
    """Run a sweep on a box that is up."""
    with pytest.MonkeyPatch.context() as patch:
        share_vm(box, patch)
        patch.setattr(workflow.paths, "load_box", lambda _: box.box)
        return store.load_run(workflow.run(as_is(**sweep), box="vm", results=results))


# --- a run that ends in the middle ------------------------------------------------------------------------------------


def place_of(run_dir: str) -> Place:
    """Where the file system `f` of a run `.../NAME/TIME-NAME` lies."""
    run_id = run_dir.rpartition("-")[2]
    return Place(
        run_id=run_id,
        run_dir=run_dir,
        mountpoint=f"{run_dir}/mnt/f",
        image=f"{run_dir}/img/f.img",
        uuid=uuid_for("", run_id),
    )


def prepare_run(box: BoxConnection, run_dir: str) -> None:
    """Make the directory of a run on a box, with its marks."""
    root, _, name = run_dir.rpartition("/")
    sh(box, f"mkdir -p {run_dir}/img && echo made >{root}/.mountlab && echo run {name} >{run_dir}/.mountlab")
    sh(box, f"echo images >{run_dir}/img/.mountlab")


def clean(box: BoxConnection, run_dir: str) -> list[Leftover]:
    """What `box clean` does for the runs that lie where this one lies in the guest."""
    root = run_dir.rpartition("/")[0]
    return remove_leftovers(box, below=(root, f"/dev/shm/{root.rpartition('/')[2]}"))


def clean_all(box: BoxConnection, run_dir: str) -> list[Leftover]:
    """The same, where nothing can be in its way."""
    removed = clean(box, run_dir)
    assert all(each.removed for each in removed), removed
    return removed


@contextmanager
def prepared_run(box: BoxConnection, run_dir: str) -> Iterator[str]:
    """Yield the directory of a run that is interrupted wherever a test likes; nothing of it is left."""
    prepare_run(box, run_dir)
    yield run_dir
    clean(box, run_dir)
    box.run(("rm", "-rf", run_dir.rpartition("/")[0]), root=True)


def read(entry: Mapping[str, Any]) -> Filesystem:
    """The file system `f` of this entry."""
    return read_filesystem("f", FilesystemFile(**entry), "f")


def make_until(box: BoxConnection, entry: Mapping[str, Any], place: Place, word: str = "") -> dict[str, str]:
    """Run the steps of a file system up to the first with this word; return what they print by placeholder."""
    fs = read(entry)
    values: dict[str, str] = {}
    for step in FAMILIES[fs.type].steps(fs, place):
        argv = tuple(_filled(each, values) for each in step.argv)
        if word in argv:
            break
        done = box.run(argv, root=True, timeout_s=LIMIT_S)
        assert done.ok, done.error_text
        if step.binds:
            values[step.binds] = done.text.strip()
    return values


def _filled(word: str, values: Mapping[str, str]) -> str:
    for name, value in values.items() if "\n" not in word else ():
        word = word.replace(f"{{{name}}}", value)
    return word


def as_line(step: Step) -> str:
    """A step in a script: it ends where the step fails."""
    line = quoted(step.argv)
    return f"{step.binds}=$({line}) || exit" if step.binds else f"{line} >/dev/null || exit"


def quoted(argv: tuple[str, ...]) -> str:
    """A command of a step in a script; its placeholders are variables of the same names."""
    return " ".join(f'"${word}"' if word[:1] == "{" and "\n" not in word else shlex.quote(word) for word in argv)
