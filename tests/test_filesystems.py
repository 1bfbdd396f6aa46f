"""What every family of file systems must keep, and the exact commands of each."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from mountlab.errors import ParameterError
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.base import Family, evidence_step
from mountlab.model import Filesystem, Place

EVIDENCE = Path(__file__).parent / "data" / "evidence"
GIB = 1024**3
PLACE = Place(run_id="r1", run_dir="/mr/r1", mountpoint="/mr/r1/mnt/f", image="/mr/r1/img/f.img")
SCRATCH = replace(PLACE, device="/dev/disk/by-id/x")

EXAMPLES: dict[str, list[tuple[Filesystem, Place]]] = {
    "dir": [
        (Filesystem(name="f", type="dir"), PLACE),
        (Filesystem(name="f", type="dir", path="/srv/data"), PLACE),
    ],
    "tmpfs": [(Filesystem(name="f", type="tmpfs", size_bytes=GIB, options=("noatime",)), PLACE)],
    "ramfs": [(Filesystem(name="f", type="ramfs", size_bytes=GIB), PLACE)],
    "ext4": [
        (Filesystem(name="f", type="ext4", image_bytes=GIB, options=("noatime", "data=writeback")), PLACE),
        (Filesystem(name="f", type="ext4", device="data"), SCRATCH),
    ],
}
each_family = pytest.mark.parametrize("family", FAMILIES.values(), ids=list(FAMILIES))
each_example = pytest.mark.parametrize(
    ("family", "fs", "place"),
    [(FAMILIES[name], *example) for name, examples in EXAMPLES.items() for example in examples],
    ids=[f"{name}-{i}" for name, examples in EXAMPLES.items() for i in range(len(examples))],
)


def shortened(argv: tuple[str, ...] | None) -> str:
    """A command as one line; of a script its name and arguments."""
    assert argv is not None
    return " ".join(argv[3:] if argv[:2] == ("sh", "-c") else argv)


# --- conformance ------------------------------------------------------------------------------------------------------


def test_every_family_has_examples_here() -> None:
    assert set(EXAMPLES) == set(FAMILIES)


@each_family
def test_a_family_is_registered_under_its_own_type_and_says_what_it_is(family: Family) -> None:
    assert FAMILIES[family.type] is family
    assert type(family).__doc__


@each_family
def test_its_keys_are_keys_of_a_sweep_file(family: Family) -> None:
    assert family.keys <= {"size", "path", "image", "direct_io", "device", "mkfs", "options"}


@each_family
def test_its_programs_say_how_to_ask_their_version_and_where_to_get_them(family: Family) -> None:
    assert bool(family.programs) == family.needs_root
    for program in family.programs:
        assert program.version[0] == program.name
        assert set(program.packages) >= {"apt", "dnf", "zypper", "pacman"}


@each_example
def test_its_examples_are_accepted(family: Family, fs: Filesystem, place: Place) -> None:
    family.check(fs, where="f")
    assert family.root_of(fs, place).startswith("/")


@each_example
def test_every_step_says_why_and_is_a_list_of_plain_words(family: Family, fs: Filesystem, place: Place) -> None:
    for step in family.steps(fs, place):
        assert step.why
        for argv in (step.argv, step.undo or ("-",)):
            assert all(isinstance(word, str) and word for word in argv)


@each_example
def test_what_makes_something_is_undone_and_what_mounts_is_unmounted(
    family: Family, fs: Filesystem, place: Place
) -> None:
    steps = family.steps(fs, place)
    for step in steps:
        makes = step.argv[0] in ("mkdir", "mount", "fallocate", "losetup") or "make-dir" in step.argv
        assert makes == (step.undo is not None), step.why
    mounts = [step for step in steps if step.argv[0] == "mount"]
    assert [step.undo for step in mounts] == [("umount", step.argv[-1]) for step in mounts]
    assert bool(mounts) == family.needs_root


@each_example
def test_a_device_is_named_by_a_step_before_it_is_used(family: Family, fs: Filesystem, place: Place) -> None:
    bound: set[str] = set()
    for step in family.steps(fs, place):
        used = {word[1:-1] for word in step.argv if word.startswith("{") and word.endswith("}")}
        assert used <= bound, step.why
        bound |= {step.binds} if step.binds else set()
        assert {word[1:-1] for word in step.undo or () if word.startswith("{")} <= bound


@each_example
def test_it_is_mounted_and_made_below_the_runs_own_directory_or_where_the_user_said(
    family: Family, fs: Filesystem, place: Place
) -> None:
    paths = [
        word for step in family.steps(fs, place) for word in (*step.argv, *(step.undo or ())) if word.startswith("/")
    ]
    allowed = tuple(filter(None, (place.run_dir, fs.path, place.device)))
    assert all(path.startswith(allowed) for path in paths), paths


@each_example
def test_the_same_file_system_gives_the_same_steps(family: Family, fs: Filesystem, place: Place) -> None:
    assert family.steps(fs, place) == family.steps(fs, place)


@each_example
def test_what_it_can_hold_is_known_or_left_to_the_box(family: Family, fs: Filesystem, place: Place) -> None:
    capacity = family.capacity_bytes(fs)
    limits = [size for size in (fs.size_bytes, fs.image_bytes) if size]
    assert (capacity is None) == (not limits)
    assert capacity is None or 0 < capacity <= min(limits)


@pytest.mark.parametrize("name", ["tmpfs", "ramfs", "ext4"])
def test_it_reads_back_what_the_kernel_did(name: str) -> None:
    stated = FAMILIES[name].in_effect(EXAMPLES[name][0][0], {"evidence.txt": (EVIDENCE / f"{name}.txt").read_text()})
    assert stated["rw"] == ""
    expected = {"tmpfs": ("size", "1048576k"), "ramfs": ("relatime", ""), "ext4": ("data", "ordered")}[name]
    assert stated[expected[0]] == expected[1]


def test_the_directory_that_was_there_before_is_read_back_like_a_mount() -> None:
    text = (EVIDENCE / "tmpfs.txt").read_text()
    assert FAMILIES["dir"].in_effect(EXAMPLES["dir"][0][0], {"evidence.txt": text})["size"] == "1048576k"


# --- the exact commands of each ---------------------------------------------------------------------------------------


def commands(fs: Filesystem, place: Place = PLACE) -> list[str]:
    return [shortened(step.argv) for step in FAMILIES[fs.type].steps(fs, place)]


def undos(fs: Filesystem, place: Place = PLACE) -> list[str]:
    return [shortened(step.undo) for step in reversed(FAMILIES[fs.type].steps(fs, place)) if step.undo]


def test_tmpfs_is_mounted_with_its_size() -> None:
    fs = Filesystem(name="f", type="tmpfs", size_bytes=GIB, options=("noatime", "huge=always"))
    assert commands(fs) == [
        "mkdir -p /mr/r1/mnt/f",
        "mount -t tmpfs -o size=1073741824,noatime,huge=always mountlab /mr/r1/mnt/f",
    ]
    assert undos(fs) == ["umount /mr/r1/mnt/f", "rmdir /mr/r1/mnt/f"]


def test_ramfs_is_not_told_a_size_that_it_would_ignore() -> None:
    """Trap: ramfs takes size=, data=writeback, nobarrier and even nonsense, and returns 0."""
    fs = Filesystem(name="f", type="ramfs", size_bytes=GIB)
    assert commands(fs) == ["mkdir -p /mr/r1/mnt/f", "mount -t ramfs mountlab /mr/r1/mnt/f"]
    assert commands(replace(fs, options=("noatime",)))[-1] == "mount -t ramfs -o noatime mountlab /mr/r1/mnt/f"


def test_ext4_on_an_image_is_allocated_attached_made_and_mounted() -> None:
    """Trap: lazy inode table initialisation taxes the first minutes of results: off by default."""
    fs = Filesystem(name="f", type="ext4", image_bytes=GIB, options=("noatime",))
    assert commands(fs) == [
        "fallocate -l 1073741824 /mr/r1/img/f.img",
        "losetup --find --show --direct-io=on /mr/r1/img/f.img",
        "mke2fs -t ext4 -F -q -L mountlab -E lazy_itable_init=0,lazy_journal_init=0,nodiscard {device}",
        "mkdir -p /mr/r1/mnt/f",
        "mount -t ext4 -o noatime {device} /mr/r1/mnt/f",
    ]
    assert undos(fs) == [
        "umount /mr/r1/mnt/f", "rmdir /mr/r1/mnt/f", "losetup -d {device}", "rm -f /mr/r1/img/f.img",
    ]  # fmt: skip
    assert commands(replace(fs, direct_io=False))[1] == "losetup --find --show --direct-io=off /mr/r1/img/f.img"


def test_ext4_on_a_scratch_device_asks_the_guard_before_it_formats() -> None:
    """Trap: mke2fs without a terminal overwrites an existing file system and returns 0; nothing guards the user."""
    fs = Filesystem(name="f", type="ext4", device="data")
    steps = FAMILIES["ext4"].steps(fs, SCRATCH)
    assert commands(fs, SCRATCH) == [
        "guard.sh /dev/disk/by-id/x",
        "mke2fs -t ext4 -F -q -L mountlab -E lazy_itable_init=0,lazy_journal_init=0 {device}",
        "mkdir -p /mr/r1/mnt/f",
        "mount -t ext4 {device} /mr/r1/mnt/f",
    ]
    assert (steps[0].guard, steps[0].keep) == (True, "guard.txt")
    assert not any(step.guard for step in steps[1:])
    assert undos(fs, SCRATCH) == ["umount /mr/r1/mnt/f", "rmdir /mr/r1/mnt/f"]


@pytest.mark.parametrize(
    ("mkfs", "expected"),
    [
        (("-O", "^has_journal"), "-O ^has_journal -E lazy_itable_init=0,lazy_journal_init=0,nodiscard"),
        (("-E", "stride=4"), "-E stride=4,lazy_itable_init=0,lazy_journal_init=0,nodiscard"),
        (("-E", "lazy_itable_init=1"), "-E lazy_itable_init=1,lazy_journal_init=0,nodiscard"),
        (("-E", "discard"), "-E discard,lazy_itable_init=0,lazy_journal_init=0"),
        (("-b", "1024", "-E", "a=1", "-E", "b=2,c"),
        "-b 1024 -E a=1,b=2,c,lazy_itable_init=0,lazy_journal_init=0,nodiscard"),
    ],
)  # fmt: skip
def test_the_users_options_of_mkfs_win_and_ours_are_merged_into_one_e(mkfs: tuple[str, ...], expected: str) -> None:
    """mke2fs heeds only the last -E."""
    made = commands(Filesystem(name="f", type="ext4", image_bytes=GIB, mkfs=mkfs))[2]
    assert made == f"mke2fs -t ext4 -F -q -L mountlab {expected} {{device}}"


def test_a_directory_is_measured_in_one_of_our_own_inside_it() -> None:
    fs = Filesystem(name="f", type="dir", path="/srv/data")
    assert commands(fs) == ["make-dir /srv/data/mountlab-r1-f /mr/r1"]
    assert undos(fs) == ["remove-dir /srv/data/mountlab-r1-f"]
    assert FAMILIES["dir"].root_of(fs, PLACE) == "/srv/data/mountlab-r1-f"
    assert FAMILIES["dir"].root_of(replace(fs, path=None), PLACE) == "/mr/r1/f"


def test_making_and_removing_a_directory_for_real_leaves_the_neighbours(tmp_path: Path) -> None:
    run_dir, data = tmp_path / "r1", tmp_path / "data"
    run_dir.mkdir()
    data.mkdir()
    (data / "precious").write_text("x")
    place = Place(run_id="r1", run_dir=str(run_dir), mountpoint=str(run_dir / "mnt"), image="")
    (step,) = FAMILIES["dir"].steps(Filesystem(name="f", type="dir", path=str(data)), place)
    ours = data / "mountlab-r1-f"
    assert step.undo is not None
    subprocess.run(step.argv, check=True)
    assert (ours / ".mountlab").exists()
    assert (run_dir / "elsewhere").read_text() == f"{ours}\n"
    assert subprocess.run(step.argv, check=False, capture_output=True).returncode != 0, "made twice"
    (ours / ".mountlab").unlink()
    assert subprocess.run(step.undo, check=False).returncode != 0, "removed what had no marker"
    assert ours.exists()
    (ours / ".mountlab").touch()
    subprocess.run(step.undo, check=True)
    assert [path.name for path in data.iterdir()] == ["precious"]


def test_an_image_holds_less_than_its_size() -> None:
    ext4 = FAMILIES["ext4"]
    assert ext4.capacity_bytes(Filesystem(name="f", type="ext4", image_bytes=GIB)) == int(GIB * 0.9) - 64 * 1024**2
    assert ext4.capacity_bytes(Filesystem(name="f", type="ext4", image_bytes=16 * 1024**2)) > 8 * 1024**2
    assert ext4.capacity_bytes(Filesystem(name="f", type="ext4", device="x")) is None


@pytest.mark.parametrize("type_", ["tmpfs", "ramfs"])
def test_memory_without_a_bound_is_refused(type_: str) -> None:
    with pytest.raises(ParameterError, match=f"{type_} needs a size") as caught:
        FAMILIES[type_].check(Filesystem(name="f", type=type_), where="filesystems.f")
    assert caught.value.where == "filesystems.f.size"
    assert "all the memory of the box" in caught.value.next_step


# --- the scripts ------------------------------------------------------------------------------------------------------

SCRIPTS = sorted(Path(str(files("mountlab"))).rglob("*.sh"))


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="needs shellcheck, which is not installed")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_shellcheck_finds_nothing_in_our_scripts(script: Path) -> None:
    # SC2154, SC2034, SC2317 and SC2329: variables and functions that Python puts in front of the text.
    done = subprocess.run(
        ["shellcheck", "-s", "sh", "-S", "warning", "-e", "SC2154,SC2034,SC2317,SC2329", str(script)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout


def test_the_evidence_of_a_directory_is_read_on_a_real_machine(tmp_path: Path) -> None:
    argv = evidence_step(str(tmp_path)).argv
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    assert [line for line in done.stdout.splitlines() if line.startswith("==> ")][:4] == [
        "==> st_dev <==", "==> mountinfo <==", "==> df <==", "==> loops <==",
    ]  # fmt: skip
