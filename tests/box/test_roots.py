"""The roots of a box: Mountlab removes what it made there, and nothing else, whatever it does. Under three shells."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from itertools import product
from pathlib import Path

import pytest
from installed_programs import program
from mountlab.box import roots
from mountlab.box.leftovers import Leftover, parse_leftovers, remove_leftovers_argv
from mountlab.box.testing import ReplayBox
from mountlab.core.errors import BoxInUse, UnsafeError
from mountlab.core.held import Lease
from mountlab.core.model import Box, Filesystem, Place
from mountlab.core.shell import script_argv
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.directory import OPEN
from mountlab.sweep.run_directories import open_run_step
from repetition import others_long
from waiting import LIMIT_S

RUN, OWNER = "20260101T000000-test-local", "here 1/2 20260101T000000-test-local"
OTHER = "20260202T000000-test-local"
PRECIOUS = b"the only copy"
SHELLS = {"dash": ("dash",), "bash": ("bash", "--posix"), "busybox": ("busybox", "sh")}


@dataclass(frozen=True)
class Machine:
    """A box of one directory, with one shell."""

    path: Path
    shell: tuple[str, ...]
    programs: str

    @property
    def mount_root(self) -> Path:
        return self.path / "m"

    @property
    def output_root(self) -> Path:
        return self.path / "o"

    @property
    def run_dir(self) -> Path:
        return self.mount_root / RUN

    @property
    def out_dir(self) -> Path:
        return self.output_root / RUN

    @property
    def data(self) -> Path:
        """A directory of the user's in which a directory is measured."""
        return self.path / "data"

    def do(self, argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
        words = (*self.shell, *argv[1:]) if argv[0] == "sh" else tuple(argv)
        environment = {**os.environ, "PATH": f"{self.programs}{os.environ['PATH']}", "LC_ALL": "C"}
        return subprocess.run(words, capture_output=True, text=True, check=False, env=environment, timeout=LIMIT_S)

    def lease(self, run_id: str = RUN, owner: str = OWNER) -> Lease:
        made = (str(self.mount_root), str(self.output_root))
        return Lease(run_id=run_id, mount_root=made[0], output_root=made[1], owner=owner)

    def open(self, run_id: str = RUN, owner: str = OWNER) -> subprocess.CompletedProcess[str]:
        return self.do(open_run_step(self.lease(run_id, owner)).argv)

    def close(self, run_id: str = RUN, owner: str = OWNER) -> subprocess.CompletedProcess[str]:
        undo = open_run_step(self.lease(run_id, owner)).undo
        assert undo is not None
        return self.do(undo)

    def look(self) -> subprocess.CompletedProcess[str]:
        return self.do(script_argv(OPEN, "look", str(self.mount_root), str(self.output_root)))

    def clean(self, mode: str = "clean", owner: str = "") -> list[Leftover]:
        done = self.do(
            remove_leftovers_argv(mode, str(os.getuid()), str(self.mount_root), str(self.output_root), owner)
        )  # type: ignore[arg-type]
        assert (done.returncode, done.stderr) == (0, "")
        return parse_leftovers(done.stdout)

    def directory(self, name: str, inside: Path | None) -> tuple[Path, tuple[str, ...]]:
        """A directory that a run measures, and the command that removes it."""
        place = Place(run_id=RUN, run_dir=str(self.run_dir), mountpoint="/none", image="/none")
        fs = Filesystem(name=name, type="dir", path=str(inside) if inside else None)
        (step,) = FAMILIES["dir"].steps(fs, place)
        assert step.undo is not None
        assert self.do(step.argv).returncode == 0
        return Path(FAMILIES["dir"].root_of(fs, place)), step.undo


def machine_of(name: str, path: Path) -> Machine:
    shell = SHELLS[name]
    program(shell[0])
    programs = ""
    if name == "busybox":
        (path / "bin").mkdir()
        for name in (
            "awk",
            "cat",
            "grep",
            "ls",
            "mkdir",
            "rm",
            "rmdir",
            "sed",
            "sort",
            "stat",
            "tail",
            "tr",
            "readlink",
        ):
            (path / "bin" / name).symlink_to(str(shutil.which("busybox")))
        programs = f"{path / 'bin'}:"
    (path / "data").mkdir()
    return Machine(path, shell, programs)


@pytest.fixture(
    params=[
        "dash",
        # Of what differs between shells `killed` tests the most.
        *(pytest.param(shell, marks=pytest.mark.long) for shell in ("busybox", "bash")),
    ]
)
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Machine:
    return machine_of(request.param, tmp_path)


def full(machine: Machine) -> Machine:
    """With a run that has made one of everything, and was killed."""
    assert machine.open().stderr == ""
    image = machine.run_dir / "img" / "e.img"
    assert machine.do(script_argv("image.sh", str(image), "4096", "sparse")).stderr == ""
    for name in ("mnt/e", "mnt/o.below"):
        (machine.run_dir / name).mkdir(parents=True)
    (machine.run_dir / "mnt" / "r.device").symlink_to("/dev/loop0")
    (machine.run_dir / "borrowed").touch()
    for inside in (None, machine.data):
        own, _ = machine.directory("d", inside)
        for name in ("t0001/deep", "t0001.beside/n", "t0001.beside-b/n", "lower", "upper/x", "work"):
            (own / name).mkdir(parents=True)
        (own / ".mountlab-same").touch()
    for name in ("t0001/sub", "t0001.c", "x0001.trace", "s", "kept"):
        (machine.out_dir / name).mkdir(parents=True)
    files = ("t0001/stdout", "t0001.data", "x0001.trace/data", "job.1", "job.1.out", "last", "lease", "s/drop")
    for name in (*files, "kept/cluster.tar.gz"):
        (machine.out_dir / name).touch()
    return machine


@pytest.fixture(scope="module")
def once_killed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], tuple[Machine, Path]]:
    """For each shell a machine with a killed run, and a copy of all of it beside."""

    @cache
    def made(shell: str) -> tuple[Machine, Path]:
        place = tmp_path_factory.mktemp(shell)
        (place / "box").mkdir()
        machine = full(machine_of(shell, place / "box"))
        shutil.copytree(machine.path, place / "kept", symlinks=True)
        return machine, place / "kept"

    return made


@pytest.fixture(params=["dash", *(pytest.param(shell, marks=pytest.mark.long) for shell in ("busybox", "bash"))])
def killed(request: pytest.FixtureRequest, once_killed: Callable[[str], tuple[Machine, Path]]) -> Machine:
    """A machine with a run that has made one of everything, and was killed: as it was made, whatever was done to it."""
    machine, kept = once_killed(request.param)
    shutil.rmtree(machine.path)
    shutil.copytree(kept, machine.path, symlinks=True)
    return machine


def gone(machine: Machine) -> bool:
    return not machine.mount_root.exists() and not machine.output_root.exists() and not list(machine.data.iterdir())


# --- what Mountlab makes goes -----------------------------------------------------------------------------------------


def test_an_opened_run_holds_both_roots_and_closing_leaves_nothing(machine: Machine) -> None:
    assert machine.open().stderr == ""
    assert [(root / "lock").read_text() for root in (machine.mount_root, machine.output_root)] == [f"{OWNER}\n"] * 2
    assert machine.open().returncode == 0, "asked again, after a lost connection"
    assert machine.close().returncode == 0
    assert gone(machine)
    assert machine.close().returncode == 0, "a second time"


@pytest.mark.slow
@pytest.mark.parametrize("killed", others_long(SHELLS, kept={"dash", "busybox"}), indirect=True)
def test_all_that_a_run_makes_is_removed_by_clean(killed: Machine) -> None:
    assert killed.look().returncode == 0
    found = killed.clean()
    assert [each for each in found if not each.removed or each.kind == "foreign"] == []
    assert gone(killed)
    assert killed.clean() == []


@pytest.mark.slow
def test_all_but_directories_elsewhere_is_removed_by_close(killed: Machine) -> None:
    _, undo = killed.directory("x", killed.data)
    assert killed.do(undo).returncode == 0
    done = killed.close()
    assert "mountlab-20260101T000000-test-local-d could not be removed" in done.stderr
    assert (killed.run_dir / "elsewhere").exists(), "by this clean finds it"
    assert all(each.removed for each in killed.clean())
    assert gone(killed)


@pytest.mark.slow
def test_what_an_older_version_left_is_removed_and_nothing_else(machine: Machine) -> None:
    """It wrote an empty marker into each root, and no lists."""
    for root in (machine.mount_root, machine.output_root):
        root.mkdir()
        (root / ".mountlab").touch()
        (root / "lock").write_text(f"{OWNER}\n")
    for name in ("img", "mnt/e", "d/t0001"):
        (machine.run_dir / name).mkdir(parents=True)
    (machine.run_dir / "img" / "e.img").touch()
    (machine.run_dir / "d" / ".mountlab").touch()
    (machine.out_dir / "t0001").mkdir(parents=True)
    (machine.out_dir / "alive").touch()
    copied = machine.mount_root / OTHER  # a copy of a run's results has such a name, too
    (copied / "raw" / "t0001").mkdir(parents=True)
    (copied / "run.json").write_bytes(PRECIOUS)
    found = machine.clean()
    assert [each.name for each in found if each.kind == "foreign"] == [str(copied)]
    assert (copied / "run.json").read_bytes() == PRECIOUS
    assert not machine.run_dir.exists()
    assert not machine.output_root.exists()
    shutil.rmtree(copied)
    machine.clean()
    assert gone(machine)


# --- what it did not make stays, whatever it does ---------------------------------------------------------------------

PLACES: dict[str, Callable[[Machine], Path]] = {
    "in the mount root": lambda m: m.mount_root / "thesis.tex",
    "hidden in the mount root": lambda m: m.mount_root / ".thesis",
    "in a directory in the mount root": lambda m: m.mount_root / "t0001" / "thesis.tex",
    "in a directory that is named as a run": lambda m: m.mount_root / OTHER / "img" / "thesis.tex",
    "in the output root": lambda m: m.output_root / "a b\\c" / "thesis.tex",
    "in the run's directory": lambda m: m.run_dir / "thesis.tex",
    "named as of a trial": lambda m: m.run_dir / "d" / "t0001.besides" / "thesis.tex",
    "in a directory of the run's": lambda m: m.run_dir / "notes" / "thesis.tex",
    "beside the images": lambda m: m.run_dir / "img" / "thesis.img",
    "beside the mount points": lambda m: m.run_dir / "mnt" / "thesis.tex",
    "in a mount point": lambda m: m.run_dir / "mnt" / "e" / "thesis.tex",
    "in a measured directory": lambda m: m.run_dir / "d" / "thesis.tex",
    "in a measured directory elsewhere": lambda m: m.data / f"mountlab-{RUN}-d" / "thesis.img",
    "in the run's directory for output": lambda m: m.out_dir / "thesis.tex",
}
ACTIONS: dict[str, Callable[[Machine], object]] = {
    "look": Machine.look,
    "remove": lambda machine: [machine.do(machine.directory("d2", inside)[1]) for inside in (None, machine.data)],
    "open": lambda machine: machine.open(OTHER),
    "the same again": Machine.open,
    "close": Machine.close,
    "close of another": lambda machine: machine.close(OTHER),
    "list": lambda machine: machine.clean("list"),
    "clean": Machine.clean,
    "lease": lambda machine: machine.clean(owner=OWNER),
}


INSIDE = "in a measured directory"
TELLING = (
    "in the mount root", "in the output root", "in a directory that is named as a run", "beside the images",
    "in a measured directory elsewhere", "in the run's directory for output",
)  # fmt: skip
"""One in each sort of directory that Mountlab looks through: the others are `long`."""
BY_DASH = {("dash", place) for place in TELLING}


def put(machine: Machine, place: str) -> Path:
    """A file of the user's."""
    file = PLACES[place](machine)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(PRECIOUS)
    return file


@pytest.mark.slow
@pytest.mark.parametrize("killed", others_long(SHELLS, kept={"dash", "busybox"}), indirect=True)
def test_a_file_in_every_place_survives_everything(killed: Machine) -> None:
    files = [put(killed, place) for place in PLACES]
    for name, action in ACTIONS.items():
        action(killed)
        assert [file for file in files if not file.exists() or file.read_bytes() != PRECIOUS] == [], name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("killed", "place"),
    others_long(product(SHELLS, PLACES), kept={("dash", INSIDE), ("dash", "in the mount root")}),
    indirect=["killed"],
)
def test_a_users_file_survives_everything(killed: Machine, place: str) -> None:
    """Alone: nothing else on this machine makes an action stop before it comes to the file."""
    file = put(killed, place)
    for name, action in ACTIONS.items():
        action(killed)
        assert file.read_bytes() == PRECIOUS, name


@pytest.mark.slow
@pytest.mark.parametrize(
    ("killed", "place"),
    others_long(product(SHELLS, PLACES), kept=BY_DASH | {("busybox", INSIDE)}),
    indirect=["killed"],
)
def test_it_is_named_before_a_run_touches_anything_and_by_clean(killed: Machine, place: str) -> None:
    machine, file = killed, put(killed, place)
    before = sorted(machine.path.rglob("*"))
    for refused in (machine.look(), machine.open(OTHER)):
        assert refused.returncode == 1
        first, second = refused.stderr.splitlines()
        assert first.startswith("refused: ")
        assert "holds what Mountlab did not make: " in first
        assert second == "next: move that elsewhere, or write a directory for Mountlab alone"
    assert sorted(machine.path.rglob("*")) == before
    named = [each.name for each in machine.clean() if each.kind == "foreign"]
    assert len(named) == 1
    assert f"{file}/".startswith(f"{named[0]}/")
    assert not (machine.run_dir / "img" / "e.img").exists(), "what is ours has gone"
    file.unlink()
    if Path(named[0]).is_dir():
        shutil.rmtree(named[0])
    assert all(each.removed for each in machine.clean())
    assert gone(machine)


@pytest.mark.parametrize("kind", ["file", "directory", "link", "pipe"])
def test_close_leaves_and_names_what_came_while_the_run_went_on(machine: Machine, kind: str) -> None:
    machine.open()
    image = machine.run_dir / "img" / "e.img"
    machine.do(script_argv("image.sh", str(image), "4096", "sparse"))
    mine = machine.run_dir / "img" / "mine"
    {
        "file": mine.touch,
        "directory": mine.mkdir,
        "pipe": lambda: os.mkfifo(mine),
        "link": lambda: mine.symlink_to("/"),
    }[kind]()
    done = machine.close()
    assert (done.returncode, done.stdout, done.stderr) == (0, f"kept: {mine}\n", "")
    assert os.path.lexists(mine)
    assert not image.exists()
    assert not machine.output_root.exists()
    assert not (machine.mount_root / "lock").exists(), "the next run is refused by what is there, and not by a lock"


def test_only_the_first_names_are_told_with_how_many_more(machine: Machine) -> None:
    machine.mount_root.mkdir()
    for number in range(5):
        (machine.mount_root / f"{number}\n").touch()
    assert "did not make: 0?, 1?, 2? and 2 more\n" in machine.look().stderr


def test_a_name_that_is_taken_is_no_image_of_ours(machine: Machine) -> None:
    """The user's file is there before the image, which is refused, and the list does not name it."""
    machine.open()
    taken = machine.run_dir / "img" / "e.img"
    taken.write_bytes(PRECIOUS)
    assert "is there already" in machine.do(script_argv("image.sh", str(taken), "4096", "sparse")).stderr
    assert machine.close().stdout == f"kept: {taken}\n"
    assert taken.read_bytes() == PRECIOUS


@pytest.mark.slow
def test_a_measured_directory_with_a_users_file_is_used_again_by_the_same_run(machine: Machine) -> None:
    """Where file systems are made in each block, the run goes on; the file stays and is named."""
    machine.open()
    own, undo = machine.directory("d", machine.data)
    (own / "mine").write_bytes(PRECIOUS)
    (own / "t0001").mkdir()
    assert machine.do(undo).stdout == f"kept: {own / 'mine'}\n"
    assert sorted(path.name for path in own.iterdir()) == [".mountlab", "mine"]
    machine.directory("d", machine.data)
    assert machine.do(undo).returncode == 0
    assert machine.close().returncode == 0
    assert (own / "mine").read_bytes() == PRECIOUS
    (own / "mine").unlink()
    assert all(each.removed for each in machine.clean())
    assert gone(machine)


def test_only_the_contents_of_a_directory_go_where_another_removes_itself(machine: Machine) -> None:
    """As the helper asks it of the user, who may not remove what lies in root's directory."""
    machine.open()
    own, undo = machine.directory("d", None)
    (own / "t0001").mkdir()
    assert machine.do((*undo, "contents")).stderr == ""
    assert list(own.iterdir()) == []
    own.rmdir()
    kept, undo = machine.directory("e", None)
    (kept / "mine").touch()
    assert machine.do((*undo, "contents")).stdout == f"kept: {kept / 'mine'}\n"
    assert sorted(each.name for each in kept.iterdir()) == [".mountlab", "mine"]


def test_a_record_of_what_was_borrowed_stays_until_it_is_given_back(machine: Machine) -> None:
    machine.open()
    (machine.run_dir / "borrowed").write_text("boot\tsetting\t/nowhere\t1\n")
    done = machine.close()
    assert "what it borrowed could not all be given back" in done.stderr
    assert (machine.run_dir / "borrowed").exists()


# --- roots ------------------------------------------------------------------------------------------------------------


def test_a_root_that_was_there_before_stays_and_one_that_was_made_goes(machine: Machine) -> None:
    machine.mount_root.mkdir(mode=0o750)
    assert machine.open().returncode == 0
    assert machine.close().returncode == 0
    assert list(machine.mount_root.iterdir()) == []
    assert machine.mount_root.stat().st_mode & 0o777 == 0o750
    assert not machine.output_root.exists()


@pytest.mark.parametrize(
    ("state", "found", "advice"),
    [
        ("link", "is a symbolic link to real", "itself, or another directory"),
        ("file", "is not a directory", "write another directory"),
        ("data", "holds what Mountlab did not make: thesis.tex", "move that elsewhere"),
        ("marker", ".mountlab is a symbolic link", "remove it"),
    ],
)
def test_a_root_that_is_none_is_refused_with_the_reason(machine: Machine, state: str, found: str, advice: str) -> None:
    root = machine.output_root
    if state == "link":
        (machine.path / "real").mkdir()
        root.symlink_to("real")
    elif state == "file":
        root.touch()
    else:
        root.mkdir()
        (root / "thesis.tex").touch() if state == "data" else (root / ".mountlab").symlink_to("/etc/passwd")
    for done in (machine.look(), machine.open()):
        assert done.returncode == 1
        assert found in done.stderr
        assert advice in done.stderr
    assert not machine.mount_root.exists(), "the other root is not made either"


@pytest.mark.slow
def test_one_root_may_lie_in_the_other(machine: Machine) -> None:
    inner = Machine(machine.path, machine.shell, machine.programs)
    for outer, within in (
        (machine.mount_root, machine.mount_root / "out"),
        (machine.path / "x" / "m", machine.path / "x"),
    ):
        lease = Lease(run_id=RUN, mount_root=str(outer), output_root=str(within), owner=OWNER)
        step = open_run_step(lease)
        assert inner.do(step.argv).stderr == ""
        assert inner.do(step.argv).stderr == ""
        assert step.undo is not None
        assert inner.do(step.undo).stderr == ""
        assert not outer.exists()
        assert not within.exists()


# --- locks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shared", ["m", "o"])
def test_a_run_that_shares_one_root_is_refused_and_gives_back_the_other(machine: Machine, shared: str) -> None:
    """Whichever of the two is locked first."""
    machine.open()
    for own in ("a", "z"):
        names = {"m": own, "o": own, shared: shared}
        lease = Lease(
            run_id=OTHER,
            mount_root=str(machine.path / names["m"]),
            output_root=str(machine.path / names["o"]),
            owner="there 3/4 x",
        )
        done = machine.do(open_run_step(lease).argv)
        assert f"refused: {machine.path / shared} is in use by {OWNER}" in done.stderr
        assert not (machine.path / own).exists()
        undo = open_run_step(lease).undo
        assert undo is not None
        machine.do(undo)
    assert (machine.run_dir / "img").is_dir(), "the first run has lost nothing"
    assert (machine.out_dir / "alive").exists()
    assert machine.close().returncode == 0
    assert gone(machine)


@pytest.mark.requires_root
def test_without_room_for_a_lock_the_other_is_given_back(machine: Machine) -> None:
    machine.output_root.mkdir()
    subprocess.run(
        [program("mount"), "-t", "tmpfs", "-o", "size=16k", "mountlab-test", machine.output_root], check=True
    )
    try:
        (machine.output_root / ".mountlab").write_text("found\n")
        with suppress(OSError):
            (machine.output_root / "lost+found").write_bytes(bytes(2**20))
        done = machine.open()
        assert f"refused: {machine.output_root}/lock cannot be written" in done.stderr
        assert not machine.mount_root.exists()
        assert not (machine.output_root / "lock").exists()
    finally:
        subprocess.run(["umount", machine.output_root], check=True)


def test_the_same_run_resumed_elsewhere_is_not_closed_by_the_first(machine: Machine) -> None:
    machine.open(owner="there 3/4 x")
    assert machine.close().returncode == 0
    assert (machine.run_dir / "img").is_dir()
    refused = machine.open()
    assert refused.returncode == 1
    assert (machine.run_dir / "img").is_dir()


@pytest.mark.slow
def test_a_lease_cleans_only_what_its_owner_still_holds(killed: Machine) -> None:
    (killed.output_root / "lock").write_text("there 3/4 x\n")
    assert all(each.removed for each in killed.clean(owner=OWNER))
    assert not killed.mount_root.exists()
    assert (killed.out_dir / "job.1").exists()
    assert killed.clean(owner=OWNER) == []


# --- what the control side makes of it --------------------------------------------------------------------------------


def replay(said: str) -> ReplayBox:
    argv = script_argv(OPEN, "look", "/srv/m", "/dev/shm/o")
    return ReplayBox(Box(name="b", host="b")).answer(argv, stderr=said, exit_status=1 if said else 0)


def test_a_refusal_names_the_key_what_was_found_and_the_way_out() -> None:
    said = "refused: /srv/m holds what Mountlab did not make: thesis.tex\nnext: move that elsewhere\n"
    with pytest.raises(UnsafeError) as caught:
        roots.check(replay(said), "/srv/m", "/dev/shm/o")
    assert caught.value.exit_code == 4
    assert caught.value.where == "params/boxes/b.yml: mount_root"
    assert caught.value.got == "/srv/m holds what Mountlab did not make: thesis.tex"
    assert caught.value.next_step == "move that elsewhere"
    assert "a mount point too" in caught.value.allowed
    assert roots.refusal("refused: /dev/shm/o is not a directory", "b", "/srv/m").where.endswith("output_root")
    roots.check(replay(""), "/srv/m", "/dev/shm/o")


def test_a_root_that_was_taken_a_moment_ago_is_in_use() -> None:
    error = roots.refusal("refused: /srv/m is in use by here 1/2 r1", "b", "/srv/m")
    assert isinstance(error, BoxInUse)
    assert "here 1/2 r1" in error.got


def test_what_stays_is_read_from_what_was_printed() -> None:
    assert roots.read_kept_paths("kept: /srv/m/a b\nother\nkept: /x\n") == ("/srv/m/a b", "/x")
