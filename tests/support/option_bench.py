"""Mounts file systems with options as a run does, and keeps what the kernel says about them."""

from __future__ import annotations

import re
import subprocess
from contextlib import ExitStack
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Protocol

import pytest
from installed_programs import program
from mountlab.box.connection import BoxConnection
from mountlab.box.embedded.here import SBIN
from mountlab.core.model import Filesystem
from mountlab.filesystems.effect import AGAIN, effects
from mountlab.filesystems.evidence import kernel_log
from waiting import LIMIT_S, wait_until

ON_A_DEVICE = ("ext2", "ext3", "ext4", "xfs", "btrfs", "f2fs")
IMAGE = 640 * 2**20
MAKE = {
    **{kind: ("mke2fs", "-t", kind, "-F", "-q") for kind in ("ext2", "ext3", "ext4")},
    "xfs": ("mkfs.xfs", "-q", "-f"),
    "btrfs": ("mkfs.btrfs", "-q", "-f"),
    "f2fs": ("mkfs.f2fs", "-q", "-f"),
}


@dataclass(frozen=True)
class Request:
    """One line of the table."""

    kind: str
    mkfs: tuple[str, ...]
    options: str
    states: tuple[str, ...]
    says: tuple[str, ...]
    note: str

    @property
    def added(self) -> str:
        return self.note.removeprefix("+").strip() if self.note.startswith("+") else ""

    @property
    def filesystem(self) -> Filesystem:
        options = (self.options,) if self.options else ()
        return Filesystem(name=self.kind, type=self.kind, mkfs=self.mkfs, options=options)

    def holds_on(self, kernel: tuple[int, ...]) -> bool:
        match = re.fullmatch(r"(<|>=)(\d+)\.(\d+)", self.note)
        return not match or (kernel < (int(match[2]), int(match[3]))) == (match[1] == "<")

    def __str__(self) -> str:
        return " ".join([self.kind, *self.mkfs, self.options]).strip()


def parse(line: str) -> Request:
    kind, mkfs, options, states, says, note = (cell.strip() for cell in line.split("|"))
    return Request(kind, tuple(mkfs.split()), options, _cells(states), _cells(says), note)


def _cells(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(";"))


def refine(line: str) -> str:
    """A line may end after any column."""
    return line + "|" * (5 - line.count("|"))


@dataclass(frozen=True)
class Done:
    """A command that ended."""

    status: int
    out: str
    error: str


class Machine(Protocol):
    """Where file systems are mounted."""

    def __call__(self, *argv: str) -> Done: ...


BUSY = re.compile("in use|busy", re.IGNORECASE)


def patiently(run: Machine, *argv: str) -> str:
    """Run a mkfs, again as long as its device is busy: a process that entered a mount namespace of its own while the
    device was mounted (a build of the virtual box, in another worker) holds it until it ends."""

    def done() -> Done | None:
        answer = run(*argv)
        return None if answer.status and BUSY.search(answer.error) else answer

    answer = wait_until(f"{' '.join(argv)}: a device that is not busy", done)
    assert answer is not None
    assert answer.status == 0, f"{' '.join(argv)}: {answer.error}"
    return answer.out


@dataclass
class Bench:
    """Makes file systems on one loop device and mounts them, as Mountlab's own steps do."""

    run: Machine
    directory: str
    device: str
    kernel: tuple[int, ...]
    made: tuple[str, tuple[str, ...]] = ("", ())
    controls: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def mountpoint(self) -> str:
        return f"{self.directory}/mnt"

    def ask(self, request: Request) -> tuple[int, dict[str, str]]:
        """Exit status of the mount, and what is kept of it: mount.txt, and evidence.txt where it did not fail."""
        self._make(request.kind, request.mkfs)
        return self._mounted(request.kind, request.options)

    def control(self, kind: str) -> dict[str, str]:
        """The files of the mount without options, made when they are first needed."""
        if kind not in self.controls:
            self._make(kind, ())
            strict = self.script("strict.sh", *self._mount(kind, ""))
            status, kept = self._mounted(kind, "")
            if status:
                pytest.skip(f"this kernel mounts no {kind}: {kept['error'].strip()}")
            self.made = ("", ())
            self._make(kind, ())
            again = self._mounted(kind, "")[1]["evidence.txt"]
            self.controls[kind] = {**kept, "strict.txt": strict.out, AGAIN: again}
        return self.controls[kind]

    def alone(self, request: Request) -> str:
        """What the kernel shows with each of several options alone, asked as the control of a run is."""
        if "," not in request.options:
            return ""
        self._make(request.kind, ())
        self.must(*self._mount(request.kind, ""))
        asked = self.script("alone.sh", request.options.replace(",", "\n"), *self._mount(request.kind, ""))
        self._unmount(request.kind)
        assert asked.status == 0, asked.error
        return asked.out

    def must(self, *argv: str) -> str:
        done = self.run(*argv)
        assert done.status == 0, f"{' '.join(argv)}: {done.error}"
        return done.out

    def script(self, name: str, *arguments: str) -> Done:
        return self.run("sh", "-c", files("mountlab.filesystems").joinpath(name).read_text(), name, *arguments)

    def _make(self, kind: str, words: tuple[str, ...]) -> None:
        if kind in ON_A_DEVICE and self.made != (kind, words):
            patiently(self.run, *MAKE[kind], *words, self.device)
            self.made = (kind, words)

    def _mount(self, kind: str, options: str) -> tuple[str, ...]:
        layers = self._layers() if kind == "overlay" else ""
        asked = ",".join(filter(None, (layers, options)))
        source = self.device if kind in ON_A_DEVICE else "mountlab"
        return ("mount", "-t", kind, *(("-o", asked) if asked else ()), source, self.mountpoint)

    def _layers(self) -> str:
        """Empty directories: what a volatile overlay has written to is not mounted again."""
        paths = {name: f"{self.directory}/{name}" for name in ("lower", "upper", "work")}
        self.must("rm", "-rf", *paths.values())
        self.must("mkdir", *paths.values())
        return ",".join(f"{name}dir={path}" for name, path in paths.items())

    def _mounted(self, kind: str, options: str) -> tuple[int, dict[str, str]]:
        mount = self.script("timed.sh", *self._mount(kind, options))
        if mount.status:
            return mount.status, {"mount.txt": mount.out, "error": mount.error}
        device = (self.device,) if kind in ON_A_DEVICE else ()
        evidence = self.script("evidence.sh", self.mountpoint, *device)
        self._unmount(kind)
        assert evidence.status == 0, evidence.error
        return 0, {"mount.txt": mount.out, "evidence.txt": evidence.out}

    def _unmount(self, kind: str) -> None:
        """While somebody's copy of our mount is there (another mount namespace), a new mount would be the old one, with
        the old options: the device is free when it can be opened exclusively, as wipefs does."""
        self.must("umount", self.mountpoint)
        if kind in ON_A_DEVICE:
            patiently(self.run, "wipefs", "--all", "--no-act", "--quiet", self.device)


def compare(bench: Bench, request: Request) -> None:
    """Mount what a line of the table asks for, and compare what Mountlab makes of the kernel's report with the line."""
    if not request.holds_on(bench.kernel):
        pytest.skip(f"true of kernels {request.note}, and this is {'.'.join(map(str, bench.kernel))}")
    control = bench.control(request.kind)
    status, kept = bench.ask(request)
    if "refused" in request.states:
        assert status != 0, "the mount was to be refused"
        assert request.says[0].lower() in " ".join(kernel_log(kept)).lower()
        return
    assert status == 0, kept.get("error")
    rows = effects(request.filesystem, kept, {**control, "alone.txt": bench.alone(request)})
    asked = [row for row in rows if row.state != "added"]
    assert [row.state for row in asked] == list(request.states), asked
    for row, words in zip(asked, request.says, strict=True):
        assert words in row.kernel_says
    if request.added:
        assert request.added in [row.kernel_says for row in rows if row.state == "added"]


def guest(box: BoxConnection) -> Machine:
    """A virtual box, with a kernel of its own."""

    def run(*argv: str) -> Done:
        done = box.run(argv, root=True, timeout_s=300.0)
        return Done(done.exit_status, done.text, done.error_text)

    return run


def set_up(machine: Machine, directory: str, stack: ExitStack) -> Bench:
    """A bench on an image in `directory`, which `stack` removes."""
    image = f"{directory}/disk.img"
    assert machine("sh", "-c", f"mkdir {directory}/mnt && truncate -s {IMAGE} {image}").status == 0
    attached = machine("losetup", "--find", "--show", image)
    if attached.status:
        pytest.skip(f"no loop device: {attached.error.strip()}")
    device = attached.out.strip()
    stack.callback(machine, "losetup", "-d", device)
    stack.callback(machine, "rm", "-rf", directory)
    release = machine("cat", "/proc/sys/kernel/osrelease").out
    return Bench(machine, directory, device, tuple(map(int, re.findall(r"\d+", release)[:2])))


def local(*argv: str) -> Done:
    """This machine, without a box in between; the test is skipped where it lacks the program."""
    program(argv[0])
    environment = {"PATH": f"{SBIN}:/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C"}
    done = subprocess.run(argv, capture_output=True, text=True, timeout=LIMIT_S, check=False, env=environment)
    return Done(done.returncode, done.stdout, done.stderr)
