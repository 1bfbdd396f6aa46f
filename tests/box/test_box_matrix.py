"""Boxes of other kinds: programs of BusyBox and of uutils, and what programs of four Debian releases print."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from facts import known
from installed_programs import program
from mountlab.box import abilities, facts
from mountlab.box.abilities import DD_WORKLOADS
from mountlab.box.containment import ask_argv
from mountlab.box.readiness import CheckRow
from mountlab.box.testing import ReplayBox
from mountlab.box.tracing import PROGRAMS as TRACING
from mountlab.core.box_facts.programs import parse_programs
from mountlab.core.box_facts.storage import parse_block_devices
from mountlab.core.errors import ParameterError, PlanError
from mountlab.core.held import Lease
from mountlab.core.model import Box, Program
from mountlab.core.shell import script_argv
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.backing import BLKID, LOSETUP, MKE2FS
from mountlab.filesystems.base import MOUNT
from mountlab.filesystems.evidence import parts_by_heading
from mountlab.filesystems.superblock import read_back
from mountlab.fio import help as fio_help
from mountlab.programs import TOOLS
from mountlab.sweep.feasible import all_programs, check_feasible
from mountlab.sweep.run_directories import open_run_step
from rows import every_row
from sweep.test_plan import BOX, FACTS
from sweeps import sweep

DATA = Path(__file__).parents[1] / "data" / "box"
UUTILS_0_0_17_MKDIR = """#!/bin/sh
[ "$1" != -p ] || for each; do [ ! -d "$each" ] || chmod 755 "$each"; done
exec {mkdir} "$@"
"""
"""As the mkdir of uutils 0.0.17: with -p it changes the mode of a directory that is there."""


# --- programs of BusyBox ----------------------------------------------------------------------------------------------


def path_with(directory: Path, applets: tuple[str, ...]) -> str:
    """Return a search path on which these programs are BusyBox's."""
    for name in applets:
        (directory / name).unlink(missing_ok=True)
        (directory / name).symlink_to(program("busybox"))
    return f"{directory}:{os.environ['PATH']}:/usr/sbin:/sbin"


@every_row("asked", [LOSETUP, MOUNT, Program(name="find", packages={}, version=("find", "--version"))])
def test_a_program_of_busybox_has_the_version_of_busybox(asked: Program, tmp_path: Path) -> None:
    """Its own answer to --version is an error, or (mount) the list of all mounts."""
    environment = {"PATH": path_with(tmp_path, (asked.name,)), "LC_ALL": "C"}
    script = facts.gather_script([], [asked])
    argv = ["sh", "-c", script, "f", "", ""]
    done = subprocess.run(argv, env=environment, capture_output=True, text=True, check=True)
    found = facts.parse_sections(done.stdout).programs
    assert found.path(asked.name) == str(tmp_path / asked.name)
    assert re.match(r"BusyBox v\d", found.version(asked.name) or "")


@every_row(
    ("asked", "version", "reason"),
    [
        (LOSETUP, "losetup from util-linux 2.41.5", ""),
        (LOSETUP, None, ""),
        (LOSETUP, "BusyBox v1.37.0 (Debian)", "BusyBox's losetup lacks --find --show, --direct-io and --list"),
        (MKE2FS, "BusyBox v1.37.0 (Debian)", "BusyBox's mke2fs lacks ext3, ext4, -U, -E and -O"),
        (BLKID, "BusyBox v1.37.0 (Debian)", "BusyBox's blkid lacks -p (read a device)"),
        (MOUNT, "BusyBox v1.37.0 (Debian)", ""),
    ],
)
def test_a_program_of_busybox_that_will_not_do_is_unfit(asked: Program, version: str | None, reason: str) -> None:
    assert known(programs={asked.name: {"path": "/p", "version": version}}).programs.unfit(asked) == reason
    assert known().programs.unfit(asked) == "not found"


def test_an_image_where_losetup_is_busybox_s_is_refused_in_the_plan() -> None:
    programs = {**FACTS.programs.installed, "losetup": {"path": "/sbin/losetup", "version": "BusyBox v1.36.1"}}
    with pytest.raises(PlanError, match="the box lacks losetup") as caught:
        check_feasible(
            sweep(filesystems={"e": {"type": "ext4", "image": "64MiB"}}).sweep, BOX, known(FACTS, programs=programs)
        )
    assert caught.value.got == "BusyBox's losetup lacks --find --show, --direct-io and --list"
    assert caught.value.next_step == "mountlab box prepare local"


@every_row(
    ("shell", "expected"),
    [(("busybox", "sh"), r"==> elapsed_ns <==\n\d+\n==> kernel <=="), (("dash",), r"==> kernel <==")],
)
def test_a_mount_is_timed_where_the_box_tells_parts_of_a_second(
    shell: tuple[str, ...], expected: str, tmp_path: Path
) -> None:
    """BusyBox's date prints whole seconds and the letters %N; its shell has microseconds, dash has none."""
    (tmp_path / "dmesg").write_text("#!/bin/sh\n")
    (tmp_path / "dmesg").chmod(0o755)
    environment = {"PATH": path_with(tmp_path, ("date",)), "LC_ALL": "C"}
    if "N" not in subprocess.run(["date", "+%N"], env=environment, capture_output=True, text=True, check=True).stdout:
        pytest.skip("skipped: the date of this BusyBox tells nanoseconds")
    if (
        shell[0] == "busybox"
        and not subprocess.run(
            [program("busybox"), "sh", "-c", "echo $EPOCHREALTIME"], capture_output=True, text=True, check=True
        ).stdout.strip()
    ):
        pytest.skip("skipped: the shell of this BusyBox has no EPOCHREALTIME")
    words = (program(shell[0]), *shell[1:], *script_argv("timed.sh", "true")[1:])
    done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(expected, done.stdout.strip())


# --- programs of uutils -----------------------------------------------------------------------------------------------


def test_the_directory_above_a_root_keeps_its_mode(tmp_path: Path) -> None:
    """/dev/shm and /var/tmp lost their mode 1777 by `mkdir -p`, and other users could write there no more."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "mkdir").write_text(UUTILS_0_0_17_MKDIR.format(mkdir=shutil.which("mkdir")))
    (tmp_path / "bin" / "mkdir").chmod(0o755)
    shared = tmp_path / "shm"
    shared.mkdir()
    shared.chmod(0o1777)
    lease = Lease(run_id="r1", mount_root=str(shared / "m"), output_root=str(shared / "o"), owner="me")
    step = open_run_step(lease)
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(step.argv, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert oct(shared.stat().st_mode & 0o7777) == "0o1777"
    assert step.undo is not None
    subprocess.run(step.undo, env=environment, capture_output=True, check=True)


NO_DIRECT, NO_DROP = "cannot do direct I/O", "cannot drop the pages of a file between two cold reads"
NO_TIME = "does not tell how long it took"
DD_REFUSES: Mapping[tuple[str, str], tuple[str, str, str]] = {
    ("bullseye", "gnu"): ("", "", ""),
    ("bullseye", "busybox"): (NO_TIME, NO_TIME, NO_TIME),
    ("bookworm", "gnu"): ("", "", ""),
    ("bookworm", "uutils"): ("", NO_DIRECT, NO_DROP),  # 0.0.17
    ("bookworm", "busybox"): (NO_TIME, NO_TIME, NO_TIME),
    ("trixie", "gnu"): ("", "", ""),
    ("trixie", "uutils"): ("", NO_DIRECT, ""),  # 0.0.30
    ("trixie", "busybox"): (NO_TIME, NO_TIME, NO_TIME),
    ("forky", "gnu"): ("", "", ""),
    ("forky", "uutils"): ("", "", ""),  # 0.12
    ("forky", "busybox"): (NO_TIME, NO_TIME, NO_TIME),
}
"""Release and kind to what is refused of a plain write, of a write with direct I/O, of cold reads again and again."""


@every_row(("of", "refused"), list(DD_REFUSES.items()))
def test_what_the_dd_of_a_release_lacks_is_refused_in_the_plan(of: tuple[str, str], refused: tuple[str, ...]) -> None:
    text = (DATA / of[0] / f"dd-{of[1]}.txt").read_text()
    for options, expected in zip(DD_WORKLOADS, refused, strict=True):
        if expected:
            with pytest.raises(ParameterError, match=expected) as caught:
                TOOLS["dd"].check_help(options, text, where="w")
            assert "coreutils" in caught.value.next_step
        else:
            TOOLS["dd"].check_help(options, text, where="w")


# --- what the programs of a release print -----------------------------------------------------------------------------


VERSIONS = {
    "bullseye": {"fio": "3.25", "mount": "2.36.1", "mke2fs": "1.46.2", "mkfs.xfs": "5.10.0", "mkfs.btrfs": "v5.10.1"},
    "bookworm": {"fio": "3.33", "mount": "2.38.1", "mke2fs": "1.47.0", "mkfs.xfs": "6.1.0", "mkfs.btrfs": "v6.2"},
    "trixie": {"fio": "3.39", "mount": "2.41.5", "mke2fs": "1.47.2", "mkfs.xfs": "6.13.0", "mkfs.btrfs": "v6.14"},
    "forky": {"fio": "3.41", "mount": "2.42.4", "mke2fs": "1.47.4", "mkfs.xfs": "7.2.0", "mkfs.btrfs": "v7.1"},
}


@every_row(("release", "versions"), list(VERSIONS.items()))
def test_the_versions_of_a_release_are_read(release: str, versions: Mapping[str, str]) -> None:
    lines = (DATA / release / "programs.txt").read_text().splitlines()
    found = parse_programs("\n".join(line.partition("\t")[2] for line in lines))
    for name, version in versions.items():
        assert version in (found[name].version or "")
    named = {program.name: program for program in all_programs()}
    assert [known(programs=found).programs.unfit(named[name]) for name in found] == [""] * len(found)


@every_row("release", list(VERSIONS))
def test_the_devices_of_a_release_are_read(release: str) -> None:
    """lsblk of util-linux 2.36 has one mount point a device, and no column of many."""
    (disk,) = (
        device for device in parse_block_devices((DATA / release / "lsblk.json").read_text()) if device.name == "vda"
    )
    assert (disk.size_bytes, disk.rotational, disk.scheduler) == (256 * 2**30, True, "mq-deadline")
    assert (disk.mountpoints, disk.logical_sector_bytes, disk.physical_sector_bytes) == ((), 512, 4096)


MKFS = {
    "ext4": "-b 1024 -O extent,metadata_csum,^bigalloc",
    "xfs": "-b size=4096 -i size=512 -m crc=1,reflink=1,finobt=1 -n ftype=1",
    "btrfs": "-n 16384 -s 4096 --csum crc32c",
}


@every_row("release", list(VERSIONS))
@every_row("fs", list(MKFS))
def test_settings_of_mkfs_are_read_back_from_the_dump_of_a_release(release: str, fs: str) -> None:
    parts = parts_by_heading((DATA / release / f"{fs}.txt").read_text())
    found = list(read_back(fs, tuple(MKFS[fs].split()), parts, {}, {}))
    if fs == "ext4":  # of a small one mke2fs made inodes of 128 bytes up to 1.46.2
        found += read_back(fs, ("-I", "128" if release == "bullseye" else "256"), parts, {}, {})
    assert {state for _, (state, _) in found} == {"in effect"}


@every_row("release", ["bullseye", "forky"])
def test_options_of_the_fio_of_a_release_are_read(release: str) -> None:
    known = fio_help.read_help((DATA / release / "fio-help.txt").read_text())
    assert known
    fio_help.check_options({"rw": "randread", "ioengine": "psync", "iodepth": "4"}, known, where="w")
    with pytest.raises(ParameterError, match="rw"):
        fio_help.check_options({"rw": "sideways"}, known, where="w")


# --- what of Mountlab works -------------------------------------------------------------------------------------------


def able_rows(**changes: Any) -> dict[str, list[CheckRow]]:
    """What `box check` says of a box that has everything but for the changes."""
    given: dict[str, Any] = {
        "rights": "root",
        "kernel": "6.1.0",
        "loop_devices": True,
        "kernel_filesystems": sorted({kind for family in FAMILIES.own.values() for kind in family.kernel_types}),
        "programs": {program.name: {"path": "/p", "version": "1"} for program in (*all_programs(), *TRACING)},
        "sampling_shell": "bash",
        **{name: value for name, value in changes.items() if name not in ("probe", "dd", "offers")},
    }
    box = ReplayBox(Box(name="b", host="b"), rights=given["rights"])
    counts = "".join(f"counts {file}\n" for file in abilities.COUNTERS)
    all_of_it = f"{counts}drops\nevicts\nlogs\n"
    box.answer(("sh", "-c", abilities.PROBE, "mountlab-abilities"), changes.get("probe", all_of_it))
    box.answer(TOOLS["dd"].box_help, changes.get("dd", (DATA / "trixie" / "dd-gnu.txt").read_text()))
    box.answer(ask_argv(), changes.get("offers", "pid_namespace\tunshare -m --propagation slave -p -f --mount-proc\n"))
    box.when(lambda argv: "tracing.sh" in argv, "records\n")
    rows: dict[str, list[CheckRow]] = {}
    for row in abilities.abilities(box, known(**given)):
        rows.setdefault(row.name, []).append(row)
    return rows


def test_what_works_on_a_box_that_has_everything() -> None:
    rows = able_rows()
    assert {row.state for name, found in rows.items() for row in found if name not in ("types", "tracing")} == {"ok"}
    for kind in ("ext4", "xfs", "btrfs", "tmpfs", "dir"):
        assert re.search(rf"\b{kind}\b", rows["types"][0].seen)


WITHOUT_FIO = {name: {"path": "/p", "version": "1"} for name in (p.name for p in all_programs()) if name != "fio"}
WITHOUT_PERF = {name: own for name, own in WITHOUT_FIO.items() if name != "perf"}
BUSYBOX = {"path": "/sbin/losetup", "version": "BusyBox v1.37.0"}


@every_row(
    ("changes", "name", "seen"),
    [
        ({"programs": WITHOUT_FIO}, "tool fio", "does not run: without fio"),
        ({"dd": (DATA / "bookworm" / "dd-uutils.txt").read_text()}, "tool dd", "cannot do direct I/O"),
        ({"dd": (DATA / "trixie" / "dd-busybox.txt").read_text()}, "tool dd", "does not tell how long it took"),
        ({"kernel_filesystems": ["ext4", "tmpfs"]}, "types", "not btrfs: the kernel has no btrfs"),
        ({"loop_devices": False}, "types", "none on images (key image): the kernel has no loop devices"),
        ({"programs": {**WITHOUT_FIO, "losetup": BUSYBOX}}, "types", "none on images (key image): BusyBox's losetup"),
        ({"rights": "none"}, "types", "xfs, zfs: mounting needs root"),
        ({"probe": "evicts\n"}, "cold reads", "only the pages of a trial's own files"),
        ({"probe": ""}, "cold reads", "neither may the caches be dropped"),
        ({"probe": "counts /proc/stat\n"}, "counters", "not: bytes of each device"),
        ({"sampling_shell": None}, "over time", "no counters during a trial"),
        ({"probe": ""}, "kernel log", "cannot be read"),
        ({"offers": ""}, "processes", "a daemon may outlive a trial"),
        ({"rights": "none"}, "tracing", "no `mountlab explain`: tracing needs root"),
        (
            {"programs": {name: own for name, own in WITHOUT_FIO.items() if name != "perf"}},
            "tracing",
            "no `mountlab explain`",
        ),
    ],
)
def test_what_does_not_work_is_said_with_its_reason(changes: dict[str, Any], name: str, seen: str) -> None:
    limited = [row for row in able_rows(**changes)[name] if row.state == "limited"]
    assert any(seen in row.seen for row in limited)
