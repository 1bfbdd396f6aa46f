"""A disk that fails at any call, and one that loses power: what core.disk asks of the system goes through here.

`Disk` stands in the place of the module `os` (and of `shutil`) in mountlab.core.disk, and counts the calls that change
something. At one of them it raises an error, or the power goes: then nothing more arrives, and `after_cut` builds what
a machine could find when it starts again. A file's content is on the disk since its fsync, a directory's names since
the fsync of that directory; what came later may have arrived in part: names in the order in which they were given,
content not at all, cut off, or as zero bytes.
"""

from __future__ import annotations

import os
import shutil
from itertools import count
from pathlib import Path
from random import Random
from threading import RLock
from typing import Any

CHANGES = ("open", "write", "fsync", "ftruncate", "close", "mkdir", "rename", "replace", "unlink")


_MATTERS = os.O_WRONLY | os.O_RDWR | os.O_DIRECTORY
"""Of the flags of an open: what is opened to be read changes nothing; a directory is opened to be flushed."""


class PowerCut(BaseException):
    """Nothing handles it, as nothing handles a power cut."""


class Disk:
    """Everything below `root`; what is there already is on the disk."""

    def __init__(self, root: Path, *, fail_at: int = 0, error: int | None = None, lasting: bool = False) -> None:
        """At call number `fail_at`: an OSError of this number, at each call from then on where it is `lasting`; or the
        power goes where there is no number."""
        self.root = root
        self.calls: list[str] = []
        self._fail_at, self._error, self._lasting = fail_at, error, lasting
        self._off = False
        self._one_by_one = RLock()
        self._numbers = count(1)
        self._ids: dict[int, int] = {}
        self._synced: dict[int, bytes] = {}
        self._arriving: dict[int, bytes] = {}
        self._names: dict[int, list[dict[str, int]]] = {}
        self._adopt(root)

    def _adopt(self, path: Path) -> None:
        if path.is_dir():
            self._names[self._id(path)] = [self._listed(path)]
            for below in path.iterdir():
                self._adopt(below)
        else:
            self._synced[self._id(path)] = path.read_bytes()

    # ── in the place of os ───────────────────────────────────────────────────────────────────────────────────────────

    def __getattr__(self, name: str) -> Any:
        real = getattr(os, name)
        if name not in CHANGES:
            return real
        own = getattr(self, f"_{name}", None)
        return lambda *arguments, **options: self._called(name, own or real, *arguments, **options)

    def rmtree(self, path: Path) -> None:
        """For shutil."""
        self._called("rmtree", shutil.rmtree, path)

    def _called(self, name: str, real: Any, *arguments: Any, **options: Any) -> Any:
        if name == "open" and not arguments[1] & _MATTERS:
            return real(*arguments, **options)
        with self._one_by_one:  # several threads may wait for the disk
            return self._counted(name, real, *arguments, **options)

    def _counted(self, name: str, real: Any, *arguments: Any, **options: Any) -> Any:
        if self._off:
            raise PowerCut
        self.calls.append(name)
        number = len(self.calls)
        if self._fail_at and (number == self._fail_at or (self._lasting and number > self._fail_at)):
            self._fail(name, arguments)
        result = real(*arguments, **options)
        self._look(arguments)
        return result

    def _fail(self, name: str, arguments: tuple[Any, ...]) -> None:
        if self._error is None:
            self._off = True
            raise PowerCut
        if self._lasting and name in ("close", "unlink", "rmtree"):
            return  # a full disk lets go of what it has
        if name == "close":
            os.close(arguments[0])  # as the kernel does, also where it says that something went wrong
        raise OSError(self._error, os.strerror(self._error), str(arguments[0]))

    def _open(self, path: Path, flags: int, mode: int = 0o777) -> int:
        is_new = bool(flags & os.O_CREAT) and not os.path.exists(path)
        handle = os.open(path, flags, mode)
        if is_new:
            self._ids.pop(os.fstat(handle).st_ino, None)
        return handle

    def _mkdir(self, path: Path, mode: int = 0o777) -> None:
        os.mkdir(path, mode)
        self._ids.pop(os.stat(path).st_ino, None)
        self._names[self._id(path)] = [{}]

    def _write(self, handle: int, data: Any) -> int:
        taken = os.write(handle, data)
        self._arriving[self._id(handle)] = Path(f"/proc/self/fd/{handle}").read_bytes()
        return taken

    def _fsync(self, handle: int) -> None:
        path, number = Path(os.readlink(f"/proc/self/fd/{handle}")), self._id(handle)
        if path.is_dir():
            self._names[number] = [self._listed(path)]
        else:
            self._synced[number] = path.read_bytes()

    # ── what is on the disk ──────────────────────────────────────────────────────────────────────────────────────────

    def _id(self, what: Path | int) -> int:
        """Numbers of files are used again; these are not."""
        inode = os.stat(what).st_ino
        if inode not in self._ids:
            self._ids[inode] = next(self._numbers)
        return self._ids[inode]

    def _listed(self, directory: Path) -> dict[str, int]:
        return {path.name: self._id(path) for path in directory.iterdir()}

    def _look(self, arguments: tuple[Any, ...]) -> None:
        """Note the names in each directory that a call may have changed."""
        for path in (each for each in arguments if isinstance(each, Path)):
            parent = path.parent
            if parent.is_relative_to(self.root) and parent.is_dir():
                states = self._names.setdefault(self._id(parent), [{}])
                if states[-1] != (now := self._listed(parent)):
                    states.append(now)

    def after_cut(self, target: Path, how: str, chance: Random) -> None:
        """Build below `target` what is found later: "least" is only what was synced, "most" all names, and content that
        was not synced as zero bytes; "any" something in between."""
        self._build(target, self._id(self.root), how, chance)

    def _build(self, target: Path, number: int, how: str, chance: Random) -> None:
        target.mkdir(exist_ok=True)
        states = self._names[number]
        names = states[{"least": 0, "most": -1}[how]] if how != "any" else chance.choice(states)
        for name, each in names.items():
            if each in self._names:
                self._build(target / name, each, how, chance)
            else:
                (target / name).write_bytes(self._content(each, how, chance))

    def _content(self, number: int, how: str, chance: Random) -> bytes:
        synced = self._synced.get(number, b"")
        arriving = self._arriving.get(number, synced)
        if how == "least" or not arriving.startswith(synced):
            return synced
        zeros = synced + bytes(len(arriving) - len(synced))
        if how == "most":
            return zeros
        cut = chance.randint(len(synced), len(arriving))
        half = zeros[:cut] + arriving[cut:]
        return chance.choice((synced, zeros, arriving, arriving[:cut], half))
