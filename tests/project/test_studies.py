"""The published studies at their own numbers: the plan of each full sweep, held against what the study wrote.

The lines below are the studies' own, as their articles print them. Sizes in them are those of the tools: k is 1,024.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
import yaml
from mountlab.core.box_facts import Surveyed
from mountlab.core.errors import PlanError
from mountlab.core.places import SHIPPED
from mountlab.core.units import GIB
from mountlab.programs.pg_test_fsync import measurements, read_report
from mountlab.results import paths
from mountlab.results.paths import load_sweep
from mountlab.sweep.plan import Plan, PlannedTrial
from mountlab.sweep.planner import make_plan
from project.test_sweep_files import BOX, facts
from rows import every_row

SUFFIX = {"k": 1024, "K": 1024, "m": 1024**2, "M": 1024**2, "g": 1024**3, "G": 1024**3}


def number(text: str) -> str:
    """A size as a count of bytes; any other text as it is."""
    if text[-1:] in SUFFIX and text[:-1].isdecimal():
        return str(int(text[:-1]) * SUFFIX[text[-1]])
    return text


def plan_of(name: str, room: int | None = None, **overrides: Any) -> Plan:
    sweep = load_sweep(paths.PARAMS / "sweeps" / f"{name}.yml", overrides).sweep
    known = facts(sweep)
    if room is not None:
        known = known.with_survey(Surveyed(room=dict.fromkeys(known.surveyed.room, room)))
    return make_plan(sweep, replace(BOX, name=sweep.box), known, run_id="r1", owner="me", seed=1)


def trials(plan: Plan, workload: str, **factors: str) -> list[PlannedTrial]:
    """Those of a workload, at some levels of its factors."""
    found = [
        trial
        for trial in plan.trials
        if trial.cell.workload.name == workload
        and all(trial.cell.workload.factors.get(key) == value for key, value in factors.items())
    ]
    assert found
    return found


def one(plan: Plan, workload: str, **factors: str) -> tuple[str, ...]:
    """The command of the trials of a workload: without its paths it is the same for all of them."""
    commands = {trial.command.argv for trial in trials(plan, workload, **factors)}
    return min(commands)


def mounts(plan: Plan) -> dict[str, tuple[str, ...]]:
    """File system to its mount command."""
    return {
        mount.filesystem.name: step.argv[step.argv.index("timed.sh") + 1 :]
        for mount in plan.mounts
        for step in mount.steps
        if step.keep == "mount.txt"
    }


def mount_options(argv: tuple[str, ...]) -> set[str]:
    """'size=4G,noatime' of a mount command, with sizes in bytes."""
    return options(argv[argv.index("-o") + 1]) if "-o" in argv else set()


def options(text: str) -> set[str]:
    pairs = (word.partition("=") for word in text.split(",") if word)
    return {f"{name}{sign}{number(value)}" for name, sign, value in pairs}


def assignments(words: Iterator[str] | tuple[str, ...] | list[str]) -> dict[str, str]:
    """'bs=64k' as {'bs': '65536'}."""
    return {key: number(value) for key, sign, value in (word.partition("=") for word in words) if sign}


def letters(words: list[str]) -> dict[str, str]:
    """'-n 10000 -s 100' as {'-n': '10000', '-s': '100'}."""
    return {word: after for word, after in pairwise(words) if word.startswith("-")}


# --- A and B: dd ------------------------------------------------------------------------------------------------------

A_MOUNT = "size=4G"
A_WRITE = "dd count=2k bs=1M if=/dev/zero"
B_MOUNT = "size=64m"
B_WRITE = "dd if=/dev/zero bs=64k count=1k conv=fdatasync"


def one_dd(plan: Plan, name: str, **factors: str) -> tuple[str, ...]:
    """dd itself, which a script runs again and again."""
    argv = one(plan, name, **factors)
    return argv[argv.index("dd") :]


@pytest.mark.parametrize(
    ("sweep", "mount", "write"), [("a-ramdisk", A_MOUNT, A_WRITE), ("b-tmpfs-cloud", B_MOUNT, B_WRITE)], ids=["A", "B"]
)
def test_the_dd_of_a_study_is_its_own(sweep: str, mount: str, write: str) -> None:
    plan = plan_of(sweep)
    argv = mounts(plan)["tmpfs"]
    assert argv[:3] == ("mount", "-t", "tmpfs")
    assert mount_options(argv) == options(mount)
    theirs, ours = assignments(write.split()), assignments(one_dd(plan, "dd-write"))
    assert {key: value for key, value in ours.items() if key != "of"} == theirs
    for cache in ("cold", "warm"):  # before and after drop_caches; right after the file was written
        read = assignments(one_dd(plan, "dd-read", cache=cache))
        assert {key: read[key] for key in ("bs", "count", "of")} == {
            "bs": theirs["bs"],
            "count": theirs["count"],
            "of": "/dev/null",
        }


def test_study_a_also_writes_what_its_author_asks_for() -> None:
    flushed = assignments(one(plan_of("a-ramdisk"), "dd-write-flushed"))
    assert flushed == {**assignments(one(plan_of("a-ramdisk"), "dd-write")), "conv": "fdatasync", "of": flushed["of"]}


# --- C: pg_test_fsync -------------------------------------------------------------------------------------------------

C_MOUNTS = {
    "tmpfs": ("tmpfs", "size=10G,noatime,nodiratime,rw"),
    "ramfs": ("ramfs", "noatime,nodiratime,rw,data=writeback,nodelalloc,nobarrier"),
    "shmfs": ("tmpfs", "size=20g"),
}
C_SECONDS = "5"
"""What pg_test_fsync takes for each test where it is given no -s, as in the study."""


def test_study_c_mounts_and_flushes_as_it_wrote() -> None:
    plan = plan_of("c-memory-fsync")
    found = mounts(plan)
    for name, (kind, theirs) in C_MOUNTS.items():
        assert found[name][:3] == ("mount", "-t", kind)
        assert mount_options(found[name]) == options(theirs)
    assert found["shmfs"][-2] == "shmfs"
    assert found["hugetlbfs"][:3] == ("mount", "-t", "hugetlbfs")
    command = one(plan, "methods")
    assert (command[0].rpartition("/")[2], command[1:4]) == ("pg_test_fsync", ("-s", C_SECONDS, "-f"))
    assert {t.cell.filesystem.name for t in trials(plan, "methods") if not t.skip_reason} == {*C_MOUNTS, "disk"}


def test_every_row_of_study_c_is_measured_and_so_is_the_one_without_a_figure() -> None:
    """pg_test_fsync writes and closes in both orders; of the second no figure was published."""
    recorded = (SHIPPED / "tests/data/pg_test_fsync/ramfs.stdout").read_text()
    measured = {row.label for row in measurements(read_report(recorded)) if row.metric == "sync_rate"}
    published = {row.label for row in paths.load_published(("c-memory-fsync",))}
    assert published < measured
    assert "descriptor: write, close, fsync" in measured - published


# --- D: tuning ext4 ---------------------------------------------------------------------------------------------------

D_MKFS = "lazy_itable_init=0,lazy_journal_init=0"
FS_MARK = "fs_mark -n 10000 -s 100 -L 1 -S {} -D 100 -N 100 -t 32"
D_FS_MARK = {
    "d2-journal-mode": ("small-files", FS_MARK.format(0)),
    "d3-journal-options": ("flushed-files", FS_MARK.format(1)),
    "d5-barrier": ("flushed-files", FS_MARK.format(1)),
}
D_BOTH = "data=writeback,journal_async_commit"
"""Of both sides, from its fourth test on."""
D_MOUNTS = {
    "d2-journal-mode": {"writeback": "data=writeback", "ordered": "data=ordered", "journal": "data=journal"},
    "d3-journal-options": {
        "checksum": "data=writeback,journal_checksum", "async-commit": "data=writeback,journal_async_commit",
    },
    "d4-external-journal": {"internal": D_BOTH, "external": D_BOTH},
    "d5-barrier": {"barrier": f"{D_BOTH},barrier", "nobarrier": f"{D_BOTH},nobarrier"},
    "d6-inode-readahead": {"blocks-32": D_BOTH, "blocks-4096": D_BOTH},
    "d7-atime": {"relatime": f"{D_BOTH},relatime", "noatime": f"{D_BOTH},noatime"},
}  # fmt: skip
D_FILEBENCH = {
    "d4-external-journal": ("fileserver", "fileserver"),
    "d6-inode-readahead": ("fileserver", "fileserver"),
    "d7-atime": ("seqread", "seqread"),
}
"""The workload of the sweep, and which of filebench's it is."""
D_SECONDS = 60
D_READAHEAD = {"32", "4096"}


@pytest.mark.parametrize("sweep", D_FS_MARK)
def test_the_fs_mark_of_a_study_is_its_own(sweep: str) -> None:
    workload, line = D_FS_MARK[sweep]
    command = list(one(plan_of(sweep), workload))
    ours = letters(command[command.index("fs_mark") :])
    assert {key: ours.get(key) for key in letters(line.split())} == letters(line.split())


@every_row("sweep", D_MOUNTS)
def test_the_mount_options_of_a_study_are_its_own(sweep: str) -> None:
    found = mounts(plan_of(sweep))
    for name, theirs in D_MOUNTS[sweep].items():
        assert mount_options(found[name]) == options(theirs)


@every_row("sweep", sorted({*D_FS_MARK, *D_MOUNTS, *D_FILEBENCH}))
def test_every_ext4_of_study_d_is_made_without_lazy_initialisation(sweep: str) -> None:
    made = [
        step.argv
        for mount in plan_of(sweep).mounts
        for step in mount.steps
        if step.keep == "mkfs.txt" and "ext4" in step.argv
    ]
    assert made
    for argv in made:
        asked = {word for each in argv if each.startswith("lazy_") for word in each.split(",")}
        assert asked == set(D_MKFS.split(","))


def test_study_d1_times_mkfs_with_and_without_it() -> None:
    sweep = load_sweep(paths.PARAMS / "sweeps" / "d1-lazy-init.yml").sweep
    asked = {fs.name: fs.mkfs for fs in sweep.filesystems}
    assert asked["eager"] == ("-E", D_MKFS)
    assert asked["lazy"] == ("-E", "lazy_itable_init=1,lazy_journal_init=1")
    assert "mkfs_time" in sweep.metrics


@pytest.mark.parametrize("sweep", D_FILEBENCH)
def test_the_filebench_of_a_study_is_its_own(sweep: str) -> None:
    name, recipe = D_FILEBENCH[sweep]
    plan = plan_of(sweep, preset="filebench")
    for trial in trials(plan, name):
        given = trial.cell.workload.options
        assert (given["workload"], given["runtime"]) == (recipe, D_SECONDS)
        assert any(f"run {D_SECONDS}" in text for text in trial.command.files.values())


D7_BLOCK = "1m"
"""Of filemicro_seqread.f, as filebench ships it; it names no other."""


def test_study_d7_is_held_against_reads_of_its_own_block() -> None:
    """Defect: only reads of 4 KiB were compared, which the study's file does not make."""
    filebench, fio = plan_of("d7-atime", preset="filebench"), plan_of("d7-atime")
    rows = {(row.workload, row.factors.get("iosize", "")): row for row in paths.load_published(("d7-atime",))}
    assert {"1MiB", "4KiB"} == {size for name, size in rows if name == "seqread"}
    texts = [text for t in trials(filebench, "seqread", iosize="1MiB") for text in t.command.files.values()]
    assert {size for text in texts for size in re.findall(r"iosize=(\d+)", text)} == {number(D7_BLOCK)}
    assert assignments([word.lstrip("-") for word in one(fio, "one-file")])["bs"] == number(D7_BLOCK)
    assert ("one-file", "") in rows
    for name, size in [("seqread", "4KiB"), ("small-files", "")]:
        assert "a size of ours" in rows[name, size].what


def test_study_e_asks_for_no_state_of_the_cache() -> None:
    sweep = load_sweep(paths.PARAMS / "sweeps" / "e-nvm.yml").sweep
    assert not any("cache" in workload.options for workload in sweep.workloads)


def test_study_d4_has_its_journal_on_another_device() -> None:
    made = {
        mount.filesystem.name: [word for step in mount.steps if step.keep == "mkfs.txt" for word in step.argv]
        for mount in plan_of("d4-external-journal").mounts
    }
    assert any(word.startswith("device=") for word in made["external"])
    assert not any(word.startswith("device=") for word in made["internal"])


def test_study_d6_sets_both_values() -> None:
    sweep = load_sweep(paths.PARAMS / "sweeps" / "d6-inode-readahead.yml").sweep
    assert {str(fs.tunables["inode_readahead_blks"]) for fs in sweep.filesystems} == D_READAHEAD


# --- E: fio -----------------------------------------------------------------------------------------------------------

# -runtime=30 in the study, in seconds.
E_FIO = "-direct=1 -iodepth=1 -thread=1 -ioengine=psync -runtime=30000000us -group_reporting=1"
E_RW = {"read", "write", "randread", "randwrite"}
E_BS = {"1k", "2k", "4k", "8k"}
E_JOBS = {"1", "2", "4", "8"}
E_REPEATS, E_SIZE, E_DEVICE = 3, "8GiB", 4 * GIB


@pytest.mark.slow
def test_the_fio_of_study_e_is_its_own() -> None:
    plan = plan_of("e-nvm")
    theirs = assignments([word.lstrip("-") for word in E_FIO.split()])
    cells = set()
    for trial in trials(plan, "fio"):
        ours = assignments([word.lstrip("-") for word in trial.command.argv])
        assert {key: ours.get(key) for key in theirs} == theirs
        cells.add((ours["rw"], ours["bs"], ours["numjobs"]))
    assert cells == {(rw, number(bs), jobs) for rw in E_RW for bs in E_BS for jobs in E_JOBS}
    assert len(cells) == 64
    assert plan.sweep.design.repeats == E_REPEATS
    assert {"raw", "ext4", "pmfs", "ext4-pmbd"} <= {fs.name for fs in plan.sweep.filesystems}


@pytest.mark.slow
def test_the_size_of_study_e_is_refused_on_its_own_device() -> None:
    plan_of("e-nvm", room=E_DEVICE)
    with pytest.raises(PlanError, match="too large: fio"):
        plan_of("e-nvm", room=E_DEVICE, **{"workloads.fio.size": E_SIZE})


# --- what differs is said ---------------------------------------------------------------------------------------------

STUDIES = sorted(
    path.stem
    for path in (paths.PARAMS / "sweeps").glob("*.yml")
    if path.stem[:2].rstrip("-0123456789") in "abcde" and not path.stem.startswith("d8")
)


def comment_of(name: str) -> str:
    """The comment at the head of a sweep file, as one line."""
    lines = (paths.PARAMS / "sweeps" / f"{name}.yml").read_text().splitlines()
    return " ".join(line.lstrip("# ") for line in lines if line.startswith("#"))


@every_row("name", STUDIES)
def test_a_sweep_says_in_what_it_differs_from_its_study(name: str) -> None:
    assert "differs" in comment_of(name)


def given(name: str) -> Mapping[str, Any]:
    return yaml.safe_load((paths.PARAMS / "sweeps" / f"{name}.yml").read_text())  # type: ignore[no-any-return]


@every_row("name", STUDIES)
def test_every_published_row_is_of_cells_that_the_sweep_has(name: str) -> None:
    presets = [{}, *({"preset": each} for each in given(name)["presets"] if each == "filebench")]
    sweeps = [load_sweep(paths.PARAMS / "sweeps" / f"{name}.yml", overrides).sweep for overrides in presets]
    for row in paths.load_published(sweeps[0].published):
        assert any(
            cell.filesystem.name == row.candidate
            and cell.workload.name == row.workload
            and all(cell.workload.factors.get(key) == value for key, value in row.factors.items())
            for sweep in sweeps
            for cell in sweep.cells
        ), row.what
