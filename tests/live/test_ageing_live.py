"""age.sh, snapshots.sh and state_evidence.sh on real file systems, with each awk, shell and dd that boxes have."""

from __future__ import annotations

import hashlib
import os
import subprocess
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
from disks import BTRFS_SIZE, MIB, SIZE, XFS_SIZE, Disks, command
from installed_programs import program
from mountlab.core.shell import script_argv
from mountlab.filesystems.profiles import DEVELOPER, MAIL, MEDIA, AgeingProfile, SizeClass, ageing_argv
from mountlab.filesystems.state_evidence import free_space_reading, read_state, state_reading
from scipy import stats

pytestmark = [pytest.mark.box, pytest.mark.slow, pytest.mark.requires_root, pytest.mark.requires_program("mkfs.ext4")]

AWKS = {"mawk": ("mawk",), "gawk": ("gawk",), "busybox": ("busybox", "awk"), "original-awk": ("original-awk",)}
SMALL = AgeingProfile("mail", "", (SizeClass(1, 8192, 1),), 0.0, 0.0, 20, 2)
"""Files of one or two blocks: many of them in a small file system."""


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Disks]:
    with ExitStack() as undo:
        yield Disks(tmp_path, undo)


@contextmanager
def in_memory(directory: Path) -> Iterator[Callable[..., Path]]:
    """Give what makes an empty directory below a file system in memory."""
    with ExitStack() as undo:

        def mount(*options: str) -> Path:
            place = directory / f"mountlab-memory{len(list(directory.iterdir()))}"
            (place / "aged").mkdir(parents=True)
            command("mount", "-t", "tmpfs", "-o", ",".join(("size=48m", *options)), "mountlab", str(place))
            undo.callback(command, "umount", str(place))
            (place / "aged").mkdir()
            return place / "aged"

        yield mount


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Callable[..., Path]]:
    with in_memory(tmp_path) as mount:
        yield mount


def age(
    directory: Path, *, fill: float = 0.8, churn: float = 0, profile: AgeingProfile = MAIL, seed: int = 7,
    shell: tuple[str, ...] = ("sh",), path: str = os.environ["PATH"],
) -> subprocess.CompletedProcess[str]:  # fmt: skip
    argv = ageing_argv(str(directory), fill=fill, churn=churn, profile=profile, seed=seed)
    environment = {**os.environ, "PATH": path}
    return subprocess.run([*shell, *argv[1:]], env=environment, capture_output=True, text=True, check=False)


def snapshots(
    directory: Path, *, count: int = 3, change: float = 0.05, seed: int = 7, path: str = os.environ["PATH"]
) -> subprocess.CompletedProcess[str]:
    argv = script_argv("snapshots.sh", str(directory), str(count), str(change), str(seed))
    return subprocess.run(argv, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False)


def figures(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return dict(line.split(" ") for line in done.stdout.splitlines())


def contents(directory: Path) -> dict[str, str]:
    """Name to digest, for each file."""
    files = sorted(path for path in directory.rglob("*") if path.is_file())
    return {str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


class Aged(NamedTuple):
    printed: Mapping[str, str]
    contents: Mapping[str, str]


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Aged:
    """What the awk of this machine makes."""
    with in_memory(tmp_path_factory.mktemp("plain")) as mount:
        directory = mount()
        return Aged(figures(age(directory, churn=1)), contents(directory))


@pytest.mark.parametrize("awk", AWKS)
def test_each_awk_makes_the_same_files(awk: str, plain: Aged, memory: Callable[..., Path], tmp_path: Path) -> None:
    """Another program is first in PATH under the name awk; the shell is BusyBox's where the awk is."""
    shims = tmp_path / "bin"
    shims.mkdir()
    found, *applet = AWKS[awk]
    (shims / "awk").write_text(f'#!/bin/sh\nexec {program(found)} {" ".join(applet)} "$@"\n')
    (shims / "awk").chmod(0o755)
    shell = (program("busybox"), "sh") if awk == "busybox" else ("sh",)
    directory = memory()
    printed = figures(age(directory, churn=1, shell=shell, path=f"{shims}:{os.environ['PATH']}"))
    assert Aged(printed, contents(directory)) == plain


def on_ext4(made: Disks) -> Path:
    device = made.loop(size=SIZE)
    command("mke2fs", "-q", "-F", "-t", "ext4", "-E", "lazy_itable_init=0", device)
    return made.mount(device)


def on_xfs(made: Disks) -> Path:
    device = made.loop(size=XFS_SIZE)
    command("mkfs.xfs", "-q", "-f", device)
    return made.mount(device)


def on_btrfs(made: Disks) -> Path:
    device = made.loop(size=BTRFS_SIZE)
    command("mkfs.btrfs", "-q", "-f", device)
    return made.mount(device)


@pytest.mark.parametrize(("mounted", "churn"), [(on_ext4, 0), (on_ext4, 1), (on_xfs, 0.25), (on_btrfs, 0.25)])
def test_the_fill_is_reached_and_a_second_making_is_equal(
    mounted: Callable[[Disks], Path], churn: float, made: Disks
) -> None:
    places, digests = [mounted(made) for _ in range(2)], set()
    for place in places:
        empty = os.statvfs(place)
        capacity = (empty.f_blocks - empty.f_bfree + empty.f_bavail) * empty.f_frsize
        (place / "aged").mkdir()
        printed = figures(age(place / "aged", churn=churn, profile=DEVELOPER))
        after = os.statvfs(place)
        used = (after.f_blocks - after.f_bfree) * after.f_frsize
        assert int(printed["capacity"]) == capacity
        assert used / capacity == pytest.approx(0.8, abs=0.02)
        assert float(printed["fill"]) == pytest.approx(used / capacity, abs=0.005)
        assert len(contents(place / "aged")) == int(printed["files"])
        assert float(printed["age"]) == pytest.approx(0.8 + churn, abs=0.15)
        digests.add((printed["digest"], *contents(place / "aged").items()))
    assert len(digests) == 1


def test_another_seed_makes_other_files(memory: Callable[..., Path]) -> None:
    assert figures(age(memory(), seed=1))["digest"] != figures(age(memory(), seed=2))["digest"]


def test_sizes_follow_the_profile(memory: Callable[..., Path]) -> None:
    """Without the last file, which is cut to what is missing."""
    directory = memory("size=192m")
    printed = figures(age(directory))
    size_of = {int(path.name): path.stat().st_size for path in directory.rglob("*") if path.is_file()}
    del size_of[max(size_of)]
    assert max(size_of.values()) <= int(printed["largest"])
    counts = [sum(size.lower <= value < size.upper for value in size_of.values()) for size in MAIL.sizes[:-1]]
    weights = [size.weight for size in MAIL.sizes[:-1]]
    assert stats.chisquare(counts, [sum(counts) * weight / sum(weights) for weight in weights]).pvalue > 1e-3
    for size in MAIL.sizes[:3]:
        within = [(value - size.lower) / (size.upper - size.lower) for value in size_of.values()]
        spread = stats.kstest([value for value in within if 0 <= value < 1], "uniform")
        assert spread.pvalue > 1e-3


@pytest.mark.parametrize(
    ("rule", "churn", "ratio"),
    [
        pytest.param((0.0, 0.0), 2, 2.54, id="any"),  # exponential ages: ln(1 - 0.8275) / ln(1 - 0.5)
        pytest.param((DEVELOPER.young_share, DEVELOPER.young_weight), 12, 3.7, id="young", marks=pytest.mark.long),
    ],
)
def test_ages_of_files_follow_the_rule_of_deletion(
    rule: tuple[float, float], churn: int, ratio: float, memory: Callable[..., Path]
) -> None:
    """The ratio of the age that 83 % of the files have not reached to the median, which the sources tabulate."""
    profile = replace(SMALL, young_share=rule[0], young_weight=rule[1])
    directory = memory("size=12m")
    figures(age(directory, churn=churn, profile=profile))
    numbers = [int(path.name) for path in directory.rglob("*") if path.is_file()]
    ages = sorted(max(numbers) - number for number in numbers)
    assert ages[int(0.8275 * len(ages))] / ages[len(ages) // 2] == pytest.approx(ratio, rel=0.15)


def test_nothing_can_be_compressed_or_shared(memory: Callable[..., Path]) -> None:
    directory = memory()
    figures(age(directory))
    files = [path.read_bytes() for path in directory.rglob("*") if path.is_file()]
    blocks = [data[at : at + 4096] for data in files for at in range(0, len(data), 4096)]
    assert len(set(blocks)) == len(blocks)
    extents = [data[at : at + 128 * 1024] for data in files for at in range(0, len(data) - 128 * 1024, 128 * 1024)]
    assert extents
    assert all(len(zlib.compress(extent, 9)) > 0.98 * len(extent) for extent in extents)


def test_what_is_too_small_for_the_profile_is_refused(memory: Callable[..., Path]) -> None:
    done = age(directory := memory(), profile=MEDIA)
    assert (done.returncode, done.stdout) == (1, "")
    assert "less than half of the files of this profile fit, with at most 6291456 bytes each" in done.stderr
    assert not list(directory.iterdir())


def test_a_directory_that_is_not_empty_is_refused(memory: Callable[..., Path]) -> None:
    directory = memory()
    (directory / ".mine").write_text("precious")
    done = age(directory)
    assert (done.returncode, done.stderr) == (1, f"refused: {directory} is not empty: .mine\n")
    assert (directory / ".mine").read_text() == "precious"


def test_a_directory_on_no_mount_of_its_own_is_refused(tmp_path: Path) -> None:
    """Else a mount that went away would have the disk of the box filled."""
    directory = tmp_path / "aged"
    directory.mkdir()
    done = age(directory)
    assert done.returncode == 1
    assert done.stderr == f"refused: neither {directory} nor the directory that holds it is a mount point\n"


def test_a_file_system_without_a_limit_is_refused(tmp_path: Path) -> None:
    """Ageing ramfs would fill the memory of the box."""
    place = tmp_path / "mountlab ramfs"
    place.mkdir()
    command("mount", "-t", "ramfs", "mountlab", str(place))
    try:
        done = age(place)
    finally:
        command("umount", str(place))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"refused: the file system on {place} has no limit that df shows\n"


def test_a_link_is_refused(memory: Callable[..., Path], tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(memory())
    assert age(tmp_path / "link").stderr == f"refused: {tmp_path}/link is a symbolic link\n"


def test_a_program_that_is_missing_is_named(memory: Callable[..., Path], tmp_path: Path) -> None:
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    for name in ("awk", "df", "find", "sed"):
        (bin_ / name).symlink_to(program(name))
    done = age(memory(), path=str(bin_), shell=("/bin/sh",))
    assert (done.returncode, done.stderr) == (1, "refused: the box has no sha256sum\n")


def test_a_file_system_that_is_full_before_is_an_error_with_what_was_reached(memory: Callable[..., Path]) -> None:
    """This one has room for 100 inodes only."""
    done = age(memory("nr_inodes=100"), profile=SMALL)
    assert (done.returncode, done.stdout) == (3, "")
    assert "the state was not reached: files could not be written after " in done.stderr
    assert done.stderr.endswith(" of the file system is in use, 0.8 was asked for\n")


def test_a_fill_below_what_is_in_use_is_an_error(made: Disks) -> None:
    place = on_btrfs(made)
    (place / "aged").mkdir()
    (place / "before").write_bytes(os.urandom(20 * MIB))
    done = age(place / "aged", fill=0.1)
    assert (done.returncode, done.stdout) == (3, "")
    assert "bytes are in use from the beginning" in done.stderr


def with_busybox(names: tuple[str, ...], directory: Path) -> str:
    """Return a PATH where BusyBox is first under these names."""
    directory.mkdir()
    for name in names:
        (directory / name).symlink_to(program("busybox"))
    return f"{directory}:{os.environ['PATH']}"


@pytest.fixture
def snapshotted(made: Disks) -> tuple[Path, dict[str, str]]:
    place = on_btrfs(made) / "snapshots"
    place.mkdir()
    return place, figures(snapshots(place))


def test_each_snapshot_differs_from_the_one_before_in_the_share_that_was_changed(
    snapshotted: tuple[Path, dict[str, str]],
) -> None:
    place, printed = snapshotted
    assert sorted(path.name for path in place.iterdir()) == ["1", "2", "3", "live"]
    versions = [(place / str(number) / "file").read_bytes() for number in (1, 2, 3)]
    assert printed["digest"] == hashlib.sha256(versions[-1]).hexdigest()
    assert {len(version) for version in versions} == {int(printed["size"])}
    blocks = [[version[at : at + 4096] for at in range(0, len(version), 4096)] for version in versions]
    changed = [sum(one != other for one, other in zip(*pair, strict=True)) for pair in pairwise(blocks)]
    assert changed == [int(printed["changed"]) // 4096] * 2
    assert changed[0] == pytest.approx(0.05 * len(blocks[0]), abs=1)
    with pytest.raises(OSError, match="Read-only"):
        (place / "1" / "new").write_text("")


def test_busybox_makes_the_same_snapshots(
    snapshotted: tuple[Path, dict[str, str]], made: Disks, tmp_path: Path
) -> None:
    """Its dd cannot pass over blocks that stay as they are."""
    place = on_btrfs(made) / "snapshots"
    place.mkdir()
    printed = figures(snapshots(place, path=with_busybox(("awk", "dd", "tr"), tmp_path / "bin")))
    assert {name: printed[name] for name in printed if name != "fill"} == {
        name: snapshotted[1][name] for name in printed if name != "fill"
    }
    assert (place / "1" / "file").read_bytes() == (snapshotted[0] / "1" / "file").read_bytes()


def test_snapshots_of_another_file_system_are_refused(memory: Callable[..., Path]) -> None:
    done = snapshots(directory := memory())
    assert (done.returncode, done.stdout) == (1, "")
    reason = (
        f"snapshots can be made on btrfs, zfs and thin volumes of LVM only, and {directory} is on another file system"
    )
    assert done.stderr == f"refused: {reason}\n"


def test_a_snapshot_that_cannot_be_taken_is_an_error_with_the_number_of_those_that_are_there(
    made: Disks, tmp_path: Path
) -> None:
    place = on_btrfs(made) / "snapshots"
    place.mkdir()
    shim = tmp_path / "bin"
    shim.mkdir()
    (shim / "btrfs").write_text(f'#!/bin/sh\ncase $* in *" 2") exit 1 ;; esac\nexec {program("btrfs")} "$@"\n')
    (shim / "btrfs").chmod(0o755)
    done = snapshots(place, path=f"{shim}:{os.environ['PATH']}")
    assert (done.returncode, done.stdout) == (3, "")
    assert "the state was not reached: snapshot 2 of 3 could not be taken\n" in done.stderr
    assert done.stderr.endswith("the state was not reached: 1 of 3 snapshots are there\n")


@pytest.mark.parametrize(("kind", "mounted"), [("ext4", on_ext4), ("xfs", on_xfs), ("btrfs", on_btrfs)])
def test_the_evidence_of_a_state_agrees_with_what_made_it(
    kind: str, mounted: Callable[[Disks], Path], made: Disks
) -> None:
    place = mounted(made)
    (place / "aged").mkdir()
    printed = figures(age(place / "aged", churn=0.5))
    argv = state_reading(str(place), seed=7)
    texts = [subprocess.run(argv, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert texts[0] == texts[1]
    free = free_space_reading(kind, made.loops[0])
    refusal = subprocess.run(free, capture_output=True, text=True, check=False)
    assert (refusal.returncode, refusal.stderr) == (1, f"refused: {made.loops[0]} is mounted\n")
    command("umount", str(place))
    state = read_state(texts[0], subprocess.run(free, capture_output=True, text=True, check=True).stdout)
    command("mount", made.loops[0], str(place))
    assert state.fill == pytest.approx(float(printed["fill"]), abs=0.05)  # what btrfs has available changes
    assert state.files == int(printed["files"])
    assert sum(state.extents.values()) == min(1000, state.files)
    assert state.free is not None
    assert state.free.extents > 20
    assert state.free.size_bytes > 0.1 * state.capacity_bytes
