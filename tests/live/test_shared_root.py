"""The mount root is a shared mount while a run is open, whatever / is: no namespace keeps what was mounted below it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from mountlab.box.containment import OFFERS
from mountlab.box.leftovers import parse_leftovers, remove_leftovers_argv
from mountlab.core.held import Lease
from mountlab.sweep.run_directories import open_run_step
from namespaces import entered, holding, mount_namespace, mount_points
from waiting import LIMIT_S

pytestmark = [pytest.mark.box, pytest.mark.requires_root, pytest.mark.requires_program("unshare", "nsenter")]

RUN, OWNER = "20260101T000000-test-local", "here 1/2 20260101T000000-test-local"
OTHER = "20260202T000000-test-local"
NEEDS_BIND = {"private": True, "slave": True, "shared": False}
"""Propagation of / to whether the mount root must be bound to itself."""
LOGGED = """#!/bin/sh
echo "${0##*/} $*" >> "$LOG"
case "${0##*/} $*" in $REFUSED) echo refused >&2; exit 32 ;; esac
exec "$REAL/${0##*/}" "$@"
"""


@dataclass(frozen=True)
class Machine:
    """A mount namespace with both roots of a box, in which mount and umount are written down."""

    pid: int
    path: Path
    refused: str = "no"
    """Pattern of commands that fail."""

    @property
    def root(self) -> Path:
        return self.path / "m"

    @property
    def point(self) -> Path:
        return self.root / RUN / "mnt" / "x"

    def do(self, argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
        programs = self.path / "bin"
        if not programs.exists():
            programs.mkdir()
            for name in ("mount", "umount"):
                (programs / name).write_text(LOGGED)
                (programs / name).chmod(0o755)
        own = {"LOG": str(self.path / "log"), "REFUSED": self.refused, "REAL": "/bin", "LC_ALL": "C"}
        environment = {**os.environ, **own, "PATH": f"{programs}:{os.environ['PATH']}"}
        return subprocess.run(
            [*entered(self.pid), *argv],
            capture_output=True,
            text=True,
            check=False,
            env=environment,
            timeout=LIMIT_S,
        )

    def must(self, *argv: str) -> str:
        done = self.do(argv)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    def lease(self, run_id: str = RUN, output_root: str = "o") -> Lease:
        root, output = str(self.root), str(self.path / output_root)
        return Lease(run_id=run_id, mount_root=root, output_root=output, owner=OWNER.replace(RUN, run_id))

    def open(self, **lease: str) -> subprocess.CompletedProcess[str]:
        return self.do(open_run_step(self.lease(**lease)).argv)

    def close(self, *around: str, **lease: str) -> subprocess.CompletedProcess[str]:
        undo = open_run_step(self.lease(**lease)).undo
        assert undo is not None
        return self.do((*around, *undo))

    def clean(self) -> list[tuple[str, str, bool]]:
        argv = remove_leftovers_argv("clean", "0", str(self.root), str(self.path / "o"), "")
        return [(left.kind, left.name, left.removed) for left in parse_leftovers(self.must(*argv))]

    def mount(self) -> None:
        """What a run measures."""
        self.must("mkdir", "-p", str(self.point))
        self.must("mount", "-t", "tmpfs", "mountlab-test", str(self.point))

    def log(self) -> list[str]:
        """Commands that were run since this was asked last, with M for the mount root."""
        log = self.path / "log"
        lines = log.read_text().replace(str(self.root), "M").splitlines() if log.exists() else []
        log.unlink(missing_ok=True)
        return lines

    def mounts(self) -> list[str]:
        """All that the kernel says of mounts below our directory: others mount elsewhere meanwhile."""
        lines = Path(f"/proc/{self.pid}/mountinfo").read_text().splitlines()
        return [line for line in lines if f" {self.path}/" in line]

    def points(self) -> list[str]:
        return [point.replace(str(self.root), "M") for point in mount_points(self.pid, self.root)]


BOUND = ["mount --bind M M", "mount --make-shared M"]


@pytest.fixture(params=NEEDS_BIND)
def propagation(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def machine(propagation: str, tmp_path: Path) -> Iterator[Machine]:
    with mount_namespace(propagation) as pid:
        yield Machine(pid, tmp_path)


@pytest.fixture
def private(tmp_path: Path) -> Iterator[Machine]:
    with mount_namespace("private") as pid:
        yield Machine(pid, tmp_path)


def test_the_root_is_bound_first_and_unbound_last_and_only_where_it_must(machine: Machine, propagation: str) -> None:
    bound = NEEDS_BIND[propagation]
    done = machine.open()
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert machine.log() == (BOUND if bound else [])
    machine.open()
    assert machine.log() == [], "asked again, after a lost connection"
    machine.mount()
    machine.must("umount", str(machine.point))
    machine.log()
    assert machine.close().returncode == 0
    assert machine.log() == (["umount M"] if bound else [])
    assert machine.close().returncode == 0, "a second time"
    assert (machine.log(), machine.points(), machine.root.exists()) == ([], [], False)


@pytest.mark.parametrize("words", [words for offers in OFFERS.values() for words in offers])
def test_a_trial_of_others_keeps_no_mount_of_the_run(words: str, machine: Machine) -> None:
    """Made before the trial began, and while it ran."""
    if machine.do((*words.split(), "true")).returncode != 0:
        pytest.skip(f"{words} does not work here")
    machine.open()
    machine.mount()
    later = Path(f"{machine.point}.later")
    with holding(*entered(machine.pid), *words.split()) as parent:
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        inside = int(children[0]) if children else parent
        machine.must("mkdir", str(later))
        machine.must("mount", "-t", "tmpfs", "mountlab-test", str(later))
        assert str(machine.point) in mount_points(inside, machine.root), "a trial sees what is mounted"
        for point in (machine.point, later):
            machine.must("umount", str(point))
        seen = mount_points(inside, machine.root)
        assert not {str(machine.point), str(later)} & {*seen}
        assert machine.close().returncode == 0
        assert not machine.root.exists(), "nor the directory"


def test_clean_unbinds_after_all_else_and_once(machine: Machine, propagation: str) -> None:
    machine.open()
    machine.mount()
    machine.log()
    found = machine.clean()
    point, run = str(machine.point), str(machine.point.parents[1])
    output = str(machine.path / "o")
    assert found == [
        ("mount", point, True), ("files", f"{output}/{RUN}", True), ("root", output, True), ("files", run, True),
        ("root", str(machine.root), True),
    ]  # fmt: skip
    assert machine.log() == [f"umount M/{RUN}/mnt/x", *(["umount M"] if NEEDS_BIND[propagation] else [])]
    assert (machine.clean(), machine.points()) == ([], [])


def test_it_stays_bound_as_long_as_something_is_mounted_below(private: Machine) -> None:
    private.open()
    private.mount()
    private.log()
    done = private.close()
    assert (done.returncode, private.log()) == (1, [])
    assert private.points() == ["M", f"M/{RUN}/mnt/x"]
    assert private.open(run_id=OTHER).returncode == 0, "the next run goes on with it"
    assert private.log() == []
    private.must("umount", str(private.point))
    private.log()
    assert private.close(run_id=OTHER).returncode == 0
    assert (private.log(), private.points()) == (["umount M"], [])
    private.clean()
    assert (private.log(), private.root.exists()) == ([], False)


def test_a_run_that_is_refused_does_not_unbind_the_root_of_another(private: Machine) -> None:
    private.open()
    private.log()
    assert "is in use by" in private.open(run_id=OTHER).stderr
    private.close(run_id=OTHER)
    assert (private.log(), private.points()) == ([], ["M"])
    private.close()
    assert (private.log(), private.points()) == (["umount M"], [])


def bind(machine: Machine) -> None:
    machine.must("mount", "--bind", str(machine.root), str(machine.root))


def disk(machine: Machine) -> None:
    machine.must("mount", "-t", "tmpfs", "mountlab-test", str(machine.root))


@pytest.mark.parametrize("put", [bind, disk])
@pytest.mark.parametrize("end", [Machine.close, Machine.clean])
def test_a_mount_of_the_users_at_the_same_place_stays_as_it_is(
    put: Callable[[Machine], None], end: Callable[[Machine], object], private: Machine
) -> None:
    private.root.mkdir()
    put(private)
    before = private.mounts()
    private.open()
    private.mount()
    private.must("umount", str(private.point))
    assert private.points() == ["M", "M"]
    end(private)
    assert private.mounts() == before
    private.clean()
    assert private.mounts() == before


def test_what_is_mounted_there_after_our_bind_has_gone_is_not_ours(private: Machine) -> None:
    """Somebody unmounts the bind, and mounts a disk of his own at its place."""
    private.open()
    private.must("umount", str(private.root))
    record = (private.root / ".mountlab").read_text()
    disk(private)
    private.must("sh", "-c", 'printf %s "$1" > "$2/.mountlab"', "copy", record, str(private.root))
    private.log()
    private.clean()
    assert (private.log(), private.points()) == ([], ["M"])


def test_a_run_goes_on_where_nothing_can_be_bound_and_says_why(private: Machine, tmp_path: Path) -> None:
    for pattern in ("*--bind*", "*--make-shared*"):
        machine = Machine(private.pid, tmp_path, pattern)
        done = machine.open()
        assert (done.returncode, done.stdout, done.stderr) == (0, f"private: {machine.root}: refused\n", "")
        assert machine.points() == []
        machine.close()
        assert not machine.root.exists()


def test_what_is_mounted_below_before_is_not_hidden(private: Machine) -> None:
    inside = private.root / "o"
    inside.mkdir(parents=True)
    private.must("mount", "-t", "tmpfs", "mountlab-test", str(inside))
    done = private.open(output_root="m/o")
    assert (done.returncode, done.stdout) == (0, f"private: {private.root}: {inside} is mounted below it\n")
    assert private.points() == ["M/o"]
    private.close(output_root="m/o")
    private.must("umount", str(inside))


def test_the_command_that_closes_may_have_its_output_below_the_root(private: Machine) -> None:
    """As job.sh keeps it, where the output root lies in the mount root."""
    private.open(output_root="m/o")
    private.log()
    kept = ("sh", "-c", 'exec "$@" > "$0"', str(private.root / "o" / RUN / "job.7.out"))
    private.close(*kept, output_root="m/o")
    assert (private.log(), private.points()) == (["umount M", "umount -l M"], [])
    assert not private.root.exists()
