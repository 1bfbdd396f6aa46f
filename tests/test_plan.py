"""The plan: what is refused before anything is changed, and every command of a run in order."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from mountlab.errors import PlanError
from mountlab.filesystems import FAMILIES
from mountlab.model import Box, ScratchDevice
from mountlab.plan import Plan, all_programs, check_feasible, make_plan, needed_programs, without_rights
from mountlab.tools import TOOLS
from sweeps import DD_READ, DD_WRITE, DIR, EXT4, FIO, RAMFS, TMPFS, sweep

GIB = 1024**3
FACTS: dict[str, Any] = {
    "rights": "root", "user": "root", "hostname": "bench", "kernel": "6.1",
    "mount_root": "/var/tmp/mountlab-root", "output_root": "/dev/shm/mountlab-root",
    "mount_root_free_bytes": 10 * GIB, "memory_available_bytes": 8 * GIB,
    "kernel_filesystems": ["ext4", "ramfs", "tmpfs"], "programs": {program.name: {} for program in all_programs()},
}  # fmt: skip
BOX = Box(name="local", host="", embedded="loopback", scratch=(ScratchDevice(name="data", device="/dev/disk/by-id/x"),))


def plan(facts: Mapping[str, Any] = FACTS, *, seed: int = 7, **more: Any) -> Plan:
    return make_plan(sweep(**more).sweep, BOX, facts, run_id="r1", owner="me", seed=seed)


def refusal(facts: Mapping[str, Any] | None = None, **more: Any) -> PlanError:
    with pytest.raises(PlanError) as caught:
        check_feasible(sweep(**more).sweep, BOX, {**FACTS, **(facts or {})})
    return caught.value


def line(argv: tuple[str, ...]) -> str:
    """A command as one line; scripts are shortened to their name, and steps lack the mark of the run."""
    if argv[0] == "env" and not argv[-1].startswith("t0"):
        assert argv[1] == "MOUNTLAB_RUN=r1"
        argv = argv[2:]
    words = list(argv)
    while "-c" in words:
        at = words.index("-c")
        words[at - 1 : at + 2] = []
    return " ".join(words)


# --- what a box cannot run --------------------------------------------------------------------------------------------


def test_what_the_box_can_run_is_not_refused() -> None:
    check_feasible(sweep(filesystems={"t": TMPFS, "r": RAMFS, "e": EXT4, "d": DIR}).sweep, BOX, FACTS)


def test_without_rights_mounting_is_refused_before_the_start() -> None:
    error = refusal({"rights": "none", "user": "alice"}, filesystems={"t": TMPFS, "e": EXT4, "d": DIR})
    assert error.what == "the box does not let us mount t, e"
    assert (error.where, error.got) == ("box local, user alice", "neither root nor password-less sudo")
    assert "type dir need neither" in error.allowed
    assert "type: dir" in error.next_step


def test_directories_need_no_rights() -> None:
    facts = {**FACTS, "rights": "none"}
    check_feasible(sweep(filesystems={"d": DIR}).sweep, BOX, facts)
    assert not plan(facts, filesystems={"d": DIR}).privileged
    assert plan({**FACTS, "rights": "sudo"}).privileged


def test_what_cannot_be_mounted_without_rights_is_told_by_name() -> None:
    the_sweep = sweep(filesystems={"t": TMPFS, "d": DIR}).sweep
    assert without_rights(the_sweep, "none") == {"t": "tmpfs: mounting needs root or password-less sudo on the box"}
    assert without_rights(the_sweep, "sudo") == without_rights(the_sweep, "root") == {}


def test_a_missing_program_is_named_with_the_command_that_installs_it() -> None:
    programs = {name: {} for name in FACTS["programs"] if name not in ("mke2fs", "losetup")}
    error = refusal({"programs": programs}, filesystems={"e": EXT4})
    assert error.what == "the box lacks losetup, mke2fs"
    assert (error.where, error.got) == ("box local", "not on its PATH: losetup, mke2fs")
    assert error.next_step == "python -m mountlab box prepare local"


def test_a_program_that_the_sweep_does_not_need_is_not_missed() -> None:
    check_feasible(sweep(filesystems={"d": DIR}).sweep, BOX, {**FACTS, "programs": dict.fromkeys((*OURS, "dd"))})


def test_a_kernel_without_the_file_system_is_told_before_mount_fails() -> None:
    """Trap: mount says 'wrong fs type, bad option, bad superblock' for everything."""
    error = refusal({"kernel_filesystems": ["tmpfs", "btrfs"]}, filesystems={"e": EXT4})
    assert error.what == "the kernel of the box has no ext4"
    assert (error.where, error.got, error.allowed) == ("filesystems.e", "ext4", "btrfs, tmpfs")


def test_an_image_larger_than_the_room_below_the_mount_root_is_refused() -> None:
    error = refusal(filesystems={"e": {"type": "ext4", "image": "11GiB"}})
    assert error.what == "too large: image 11.0 GiB"
    assert (error.where, error.got) == ("filesystems.e.image", "11.0 GiB")
    assert error.allowed == "at most 10.0 GiB (free in /var/tmp/mountlab-root)"
    assert error.next_step


@pytest.mark.parametrize("type_", ["tmpfs", "ramfs"])
def test_memory_beyond_four_fifths_of_what_is_available_is_refused(type_: str) -> None:
    """Trap: ramfs takes any size and has no limit at all: it would take all the memory of the box."""
    error = refusal(filesystems={"m": {"type": type_, "size": "7GiB"}})
    assert (error.what, error.where) == ("too large: size 7.00 GiB", "filesystems.m.size")
    assert error.allowed == "at most 6.40 GiB (80% of the available memory)"


def test_a_workload_larger_than_its_file_system_is_refused() -> None:
    error = refusal(workloads={"w": {**DD_WRITE, "count": 65}})
    assert (error.what, error.where) == ("too large: w writes 65.0 MiB", "workloads.w")
    assert error.allowed == "at most 64.0 MiB (room in filesystems.tmpfs)"


def test_total_size_is_size_times_numjobs() -> None:
    """Trap: 8 jobs of 8G on a 4G device. Planned and refused before it starts."""
    jobs = {"tool": "fio", "rw": "write", "size": "16MiB"}
    check_feasible(sweep(workloads={"w": {**jobs, "numjobs": 4}}).sweep, BOX, FACTS)
    error = refusal(workloads={"w": {**jobs, "numjobs": [1, 8]}})
    assert error.what == "too large: w numjobs=8 writes 128 MiB"


def test_a_workload_must_fit_beside_the_inode_tables_of_an_image() -> None:
    error = refusal(filesystems={"e": EXT4}, workloads={"w": {**DD_WRITE, "count": 128}})
    assert error.what == "too large: w writes 128 MiB"
    assert error.allowed.startswith("at most 99.2 MiB")


@pytest.mark.parametrize("entry", [{"type": "dir"}, {"type": "ext4", "device": "data"}])
def test_room_that_only_the_box_can_tell_is_taken_from_the_survey(entry: dict[str, Any]) -> None:
    check_feasible(sweep(filesystems={"f": entry}).sweep, BOX, {**FACTS, "room": {"f": GIB}})
    error = refusal({"room": {"f": 1024**2}}, filesystems={"f": entry})
    assert error.allowed == "at most 1.00 MiB (room in filesystems.f)"


def test_a_scratch_device_that_the_box_file_does_not_list_is_refused() -> None:
    """Trap: formatting a device because the user typed its name."""
    error = refusal(filesystems={"e": {"type": "ext4", "device": "disk2"}})
    assert error.what == "the box file lists no such scratch device"
    assert (error.where, error.got, error.allowed) == ("filesystems.e.device", "disk2", "data")
    assert error.next_step == "params/boxes/local.yml: scratch: {disk2: /dev/disk/by-id/...}"


@pytest.mark.parametrize(
    ("entry", "what", "allowed"),
    [
        ({"type": "ext4", "image": "6GiB"}, "too large: all images together 12.0 GiB", "at most 10.0 GiB"),
        ({"type": "tmpfs", "size": "4GiB"}, "too large: all sizes together 8.00 GiB", "at most 6.40 GiB"),
    ],
)
def test_file_systems_that_last_for_the_whole_run_need_their_room_together(
    entry: dict[str, Any], what: str, allowed: str
) -> None:
    check_feasible(sweep(filesystems={"a": entry, "b": entry}).sweep, BOX, FACTS)
    error = refusal(filesystems={"a": entry, "b": entry}, design={"fresh_filesystem": "never"})
    assert (error.what, error.where) == (what, "design.fresh_filesystem: never")
    assert error.allowed.startswith(allowed)


def test_what_a_plan_refuses_is_never_planned() -> None:
    with pytest.raises(PlanError):
        plan(workloads={"w": {**DD_WRITE, "count": 65}})


OURS = ["tar", "awk", "find"]


def test_needed_programs_are_those_of_the_tools_and_families_each_once() -> None:
    the_sweep = sweep(filesystems={"e": EXT4, "t": TMPFS}, workloads={"w": DD_WRITE, "r": DD_READ}).sweep
    assert [program.name for program in needed_programs(the_sweep)] == [
        *OURS,
        "dd",
        "mount",
        "losetup",
        "blkid",
        "mke2fs",
    ]
    every = {program.name for known in (*TOOLS.values(), *FAMILIES.values()) for program in known.programs}
    assert {program.name for program in all_programs()} == {*OURS, *every}
    assert len(all_programs()) == len(OURS) + len(every)


# --- every command in order -------------------------------------------------------------------------------------------

RUN, OUT = "/var/tmp/mountlab-root/r1", "/dev/shm/mountlab-root/r1"
MNT = f"{RUN}/mnt"


def test_the_exact_commands_of_a_small_plan() -> None:
    small = plan(filesystems={"t": TMPFS, "e": EXT4}, design={"repeats": 1})
    ext4 = [
        f"fallocate -l 134217728 {RUN}/img/e.img",
        f"losetup --find --show --direct-io=on {RUN}/img/e.img",
        "mke2fs -t ext4 -F -q -L mountlab -E lazy_itable_init=0,lazy_journal_init=0,nodiscard {device}",
        f"mkdir -p {MNT}/e",
        f"mount -t ext4 -o noatime {{device}} {MNT}/e",
        f"evidence.sh {MNT}/e",
        "env MOUNTLAB_RUN=r1 TRIAL",
        f"umount {MNT}/e",
        f"rmdir {MNT}/e",
        "losetup -d {device}",
        f"rm -f {RUN}/img/e.img",
    ]
    tmpfs = [
        f"mkdir -p {MNT}/t",
        f"mount -t tmpfs -o size=67108864 mountlab {MNT}/t",
        f"evidence.sh {MNT}/t",
        "env MOUNTLAB_RUN=r1 TRIAL",
        f"umount {MNT}/t",
        f"rmdir {MNT}/t",
    ]
    turns = {"e": ext4, "t": tmpfs}
    expected = [text for trial in small.trials for text in turns[trial.cell.filesystem.name]]
    trial_ids = iter(("t0001", "t0002"))
    assert [line(argv) for argv in small.commands()] == [
        f"open.sh open {RUN} {OUT} me",
        *(text.replace("TRIAL", next(trial_ids)) if "TRIAL" in text else text for text in expected),
        f"open.sh close {RUN} {OUT} me",
    ]


def test_a_mount_that_lasts_is_made_once_and_undone_in_reverse() -> None:
    lasting = plan(filesystems={"t": TMPFS, "r": RAMFS}, design={"fresh_filesystem": "never", "repeats": 2})
    lines = [line(argv) for argv in lasting.commands()]
    assert [mount.id for mount in lasting.lasting] == ["m000-t", "m000-r"]
    assert all(turn.mount is None for turn in lasting.turns)
    assert [text for text in lines if text.startswith(("mount", "umount"))] == [
        f"mount -t tmpfs -o size=67108864 mountlab {MNT}/t",
        f"mount -t ramfs mountlab {MNT}/r",
        f"umount {MNT}/r",
        f"umount {MNT}/t",
    ]
    first_trial, last_trial = (
        [i for i, text in enumerate(lines) if text.startswith("env MOUNTLAB_RUN")][end] for end in (0, -1)
    )
    assert lines.index(f"mount -t ramfs mountlab {MNT}/r") < first_trial
    assert lines.index(f"umount {MNT}/r") > last_trial


@pytest.mark.parametrize("fresh", ["block", "cell", "never"])
def test_what_is_done_is_undone_in_the_reverse_order(fresh: str) -> None:
    the_plan = plan(
        filesystems={"t": TMPFS, "e": EXT4, "d": DIR}, workloads={"w": DD_WRITE, "r": DD_READ},
        design={"fresh_filesystem": fresh, "repeats": 2, "warmup": 1},
    )  # fmt: skip
    owed: list[tuple[str, ...]] = []
    undo_of = {step.argv: step.undo for mount in the_plan.mounts for step in mount.steps}
    undo_of[the_plan.opening.argv] = the_plan.opening.undo
    for argv in the_plan.commands():
        if owed and argv == owed[-1]:
            owed.pop()
        elif (undo := undo_of.get(argv)) is not None:
            owed.append(undo)
        else:
            assert argv not in owed, "undone out of order"
    assert owed == []


@pytest.mark.parametrize(("fresh", "mounts"), [("block", 4), ("cell", 8), ("never", 2)])
def test_file_systems_are_made_as_often_as_the_design_says(fresh: str, mounts: int) -> None:
    the_plan = plan(
        filesystems={"t": TMPFS, "r": RAMFS}, workloads={"a": DD_WRITE, "b": DD_WRITE},
        design={"fresh_filesystem": fresh, "repeats": 2},
    )  # fmt: skip
    assert len(the_plan.mounts) == mounts
    assert len({mount.id for mount in the_plan.mounts}) == mounts
    assert {trial.mount for trial in the_plan.trials} == {mount.id for mount in the_plan.mounts}
    assert len(the_plan.trials) == 8


def test_trials_are_numbered_in_the_order_in_which_they_run_warm_up_included() -> None:
    the_plan = plan(filesystems={"t": TMPFS, "r": RAMFS}, design={"repeats": 2, "warmup": 1})
    assert [trial.trial_id for trial in the_plan.trials] == [f"t{i:04d}" for i in range(1, 7)]
    assert [(trial.block, trial.warmup) for trial in the_plan.trials] == [
        (0, True), (0, True), (1, False), (1, False), (2, False), (2, False),
    ]  # fmt: skip


def test_every_step_of_every_mount_ends_with_the_evidence() -> None:
    """What was asked is compared with what the kernel says it did."""
    for mount in plan(filesystems={"t": TMPFS, "e": EXT4, "d": DIR}).mounts:
        assert mount.steps[-1].keep == "evidence.txt"
        assert mount.steps[-1].argv[-1] == mount.root


def test_the_opening_is_a_guard_that_is_undone_last() -> None:
    the_plan = plan()
    assert the_plan.opening.guard
    assert the_plan.commands()[0] == the_plan.opening.argv
    assert the_plan.commands()[-1] == the_plan.opening.undo


def test_the_same_seed_gives_the_same_plan_and_another_one_another_order() -> None:
    many = {"filesystems": {"t": TMPFS, "r": RAMFS, "e": EXT4}, "workloads": {"w": DD_WRITE, "r": DD_READ, "f": FIO}}
    assert plan(**many) == plan(**many)
    assert plan(**many).commands() != plan(seed=8, **many).commands()


def test_a_plan_changes_neither_sweep_nor_facts() -> None:
    before = json.dumps(FACTS, sort_keys=True)
    the_sweep = sweep().sweep
    assert make_plan(the_sweep, BOX, FACTS, run_id="r1", owner="me", seed=1).sweep == the_sweep
    assert json.dumps(FACTS, sort_keys=True) == before


# --- trials -----------------------------------------------------------------------------------------------------------


def script(the_plan: Plan) -> str:
    return the_plan.trials[0].argv[4]


def test_a_trial_is_one_command_that_carries_the_runs_name() -> None:
    (trial, _) = plan().trials
    assert trial.argv[:2] == ("env", "MOUNTLAB_RUN=r1")
    assert trial.argv[2:4] == ("sh", "-c")
    assert trial.argv[5:] == ("t0001",)


def test_the_script_of_a_trial_begins_with_its_variables_and_commands() -> None:
    lines = script(plan()).splitlines()
    directory = f"{MNT}/tmpfs/t0001"
    assert lines[:9] == [
        f"out={OUT}/t0001", f"directory={directory}", f"mountpoint={MNT}/tmpfs", "fstype=tmpfs", "cache=cold",
        "prepare() { :; }", "warm() { :; }",
        "load_program() { dd --version; }",
        f"measured() {{ timeout -k 5 60 dd if=/dev/zero of={directory}/dd.img bs=1048576 count=8 conv=fdatasync; }}",
    ]  # fmt: skip


def test_a_read_prepares_its_file_and_warms_the_cache_where_asked() -> None:
    the_plan = plan(workloads={"r": {**DD_READ, "cache": "warm"}})
    directory = f"{MNT}/tmpfs/t0001"
    assert "cache=warm" in script(the_plan)
    assert f"prepare() {{ dd if=/dev/zero of={directory}/dd.img bs=1048576 count=8 conv=fdatasync; }}" in script(
        the_plan
    )
    assert f"warm() {{ dd if={directory}/dd.img of=/dev/null bs=1048576; }}" in script(the_plan)


@pytest.mark.parametrize(
    ("drop", "cache", "expected"), [(True, None, "cold"), (False, None, "as_is"), (False, "cold", "cold"),
    (True, "as_is", "as_is")]
)  # fmt: skip
def test_the_state_of_the_cache_is_the_workloads_or_else_the_designs(
    drop: bool, cache: str | None, expected: str
) -> None:
    workload = (
        {**DD_READ, "cache": cache} if cache else {key: value for key, value in DD_READ.items() if key != "cache"}
    )
    assert f"\ncache={expected}\n" in script(plan(workloads={"r": workload}, design={"drop_caches": drop}))


def test_a_directory_expects_no_mount() -> None:
    assert "\nfstype=''\n" in script(plan(filesystems={"d": DIR}))


def test_every_trial_works_in_a_directory_of_its_own() -> None:
    the_plan = plan(filesystems={"t": TMPFS, "e": EXT4, "d": DIR}, workloads={"w": DD_WRITE, "f": FIO})
    directories = {trial.argv[4].splitlines()[1] for trial in the_plan.trials}
    outputs = {trial.argv[4].splitlines()[0] for trial in the_plan.trials}
    assert len(directories) == len(outputs) == len(the_plan.trials)


def test_the_control_side_waits_longer_than_the_box_lets_a_trial_run() -> None:
    """Trap: run(timeout=) leaves the remote process running: the box carries the time limit."""
    (trial, _) = plan(design={"trial_timeout": "90s"}).trials
    assert "timeout -k 5 90 dd" in script(plan(design={"trial_timeout": "90s"}))
    assert trial.timeout_s > 2 * 90


def test_words_with_spaces_and_quotes_reach_the_tool_as_one_word() -> None:
    fio = {"tool": "fio", "rw": "write", "size": "1MiB", "description": "it's $(id) `x`; rm -rf ."}
    assert """'--description=it'"'"'s $(id) `x`; rm -rf .'""" in script(plan(workloads={"f": fio}))


def test_the_guess_at_the_duration_counts_mounts_and_trials() -> None:
    short, long = plan(design={"repeats": 1}), plan(design={"repeats": 10})
    assert 0 < short.expected_s < long.expected_s
    assert long.expected_s == pytest.approx(10 * short.expected_s)
