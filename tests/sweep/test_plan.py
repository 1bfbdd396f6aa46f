"""The plan: what is refused before anything is changed, and every command of a run in order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from facts import known
from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import PlanError, UnsafeError
from mountlab.core.model import Box, ScratchDevice
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.guard import uuid_for
from mountlab.programs import TOOLS
from mountlab.sweep.clients import ClientMount, endpoints
from mountlab.sweep.feasible import all_programs, check_feasible, check_without_box, needed_programs, without_rights
from mountlab.sweep.plan import Plan
from mountlab.sweep.plan_text import plan_text
from mountlab.sweep.planner import make_plan
from rows import every_row
from sweeps import DD_READ, DD_WRITE, DIR, EXT4, FIO, RAMFS, TMPFS, sweep

GIB = 1024**3
FACTS = known(
    rights="root",
    user="root",
    hostname="bench",
    kernel="6.1",
    machine="x86_64",
    mount_root="/var/tmp/mountlab-root",
    output_root="/dev/shm/mountlab-root",
    mount_root_free_bytes=10 * GIB,
    memory_available_bytes=8 * GIB,
    kernel_filesystems=["ext4", "overlay", "ramfs", "tmpfs"],
    programs={program.name: {} for program in all_programs()},
)
BOX = Box(name="local", host="", embedded="loopback", scratch=(ScratchDevice(name="data", device="/dev/disk/by-id/x"),))


def plan(facts: BoxFacts = FACTS, *, seed: int = 7, **more: Any) -> Plan:
    return make_plan(sweep(**more).sweep, BOX, facts, run_id="r1", owner="me", seed=seed)


def refusal(facts: Mapping[str, Any] | None = None, **more: Any) -> PlanError:
    with pytest.raises(PlanError) as caught:
        check_feasible(sweep(**more).sweep, BOX, known(FACTS, **facts or {}))
    return caught.value


def line(argv: tuple[str, ...]) -> str:
    """A command as one line; scripts are shortened to their name, and steps lack the mark of the run."""
    if argv[0] == "env" and not argv[-1].startswith(("t0", "x0", "p0")):
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


@every_row("rights", ["none", "helper"])
def test_only_root_gives_a_directory_to_another_account(rights: str) -> None:
    entry = {"tool": "command", "argv": "mybench {directory}", "space": "1MiB", "owner": "postgres",
             "metrics": {"elapsed": {"from": "clock"}}}  # fmt: skip
    error = refusal({"rights": rights, "user": "alice", "programs": {**FACTS.programs.installed, "mybench": {}}},
                    filesystems={"d": DIR}, workloads={"w": entry})  # fmt: skip
    assert error.what == "only root gives a directory to another account"
    assert error.where == "workloads.w.owner"
    assert error.got == f"postgres, on box local as alice with the rights: {rights}"
    assert "sudo" in error.allowed
    assert "leave `owner` out" in error.next_step


def test_directories_need_no_rights() -> None:
    facts = known(FACTS, rights="none")
    check_feasible(sweep(filesystems={"d": DIR}).sweep, BOX, facts)
    assert not plan(facts, filesystems={"d": DIR}).privileged
    assert plan(known(FACTS, rights="sudo")).privileged


def test_what_cannot_be_mounted_without_rights_is_told_by_name() -> None:
    the_sweep = sweep(filesystems={"t": TMPFS, "d": DIR}).sweep
    needs = "tmpfs: mounting needs root or password-less sudo on the box"
    assert without_rights(the_sweep, known(rights="none")) == {"t": needs}
    assert without_rights(the_sweep, known(rights="sudo")) == without_rights(the_sweep, known(rights="root")) == {}


@every_row("rights", ["root", "sudo", "helper", "none"])
def test_in_a_container_that_may_not_mount_root_is_refused_before_the_start(rights: str) -> None:
    error = refusal({"rights": rights, "may_mount": False}, filesystems={"t": TMPFS, "d": DIR})
    assert error.what == "the box does not let us mount t"
    assert error.got == "a container without CAP_SYS_ADMIN: not even root may mount"
    assert "`--privileged`" in error.allowed
    assert "type: dir" in error.next_step
    facts = known(FACTS, rights=rights, may_mount=False)
    check_feasible(sweep(filesystems={"d": DIR}).sweep, BOX, facts)


def test_a_missing_program_is_named_with_the_command_that_installs_it() -> None:
    programs = {name: {} for name in FACTS.programs.installed if name not in ("mke2fs", "losetup")}
    error = refusal({"programs": programs}, filesystems={"e": EXT4})
    assert error.what == "the box lacks mke2fs, losetup"
    assert (error.where, error.got) == ("box local", "not on its PATH: mke2fs, losetup")
    assert error.next_step == "mountlab box prepare local"


def test_a_program_that_the_sweep_does_not_need_is_not_missed() -> None:
    check_feasible(
        sweep(filesystems={"d": DIR}).sweep, BOX, known(FACTS, programs={name: {} for name in (*OURS, "dd")})
    )


def test_a_kernel_without_the_file_system_is_told_before_mount_fails() -> None:
    """Trap: mount says 'wrong fs type, bad option, bad superblock' for everything."""
    error = refusal({"kernel_filesystems": ["tmpfs", "btrfs"]}, filesystems={"e": EXT4})
    assert error.what == "the kernel of the box has no ext4"
    assert (error.where, error.got, error.allowed) == ("filesystems.e", "ext4", "btrfs, tmpfs")
    assert error.next_step == ""


def test_where_a_kernel_that_has_the_file_system_can_be_had_is_said() -> None:
    error = refusal(filesystems={"f": {"type": "f2fs", "image": "128MiB"}})
    assert error.what == "the kernel of the box has no f2fs"
    assert error.next_step == "try it in a virtual box with `kernel: 6.1` in its box file"


def test_the_commands_of_a_plan_name_a_realtime_device_as_they_name_others() -> None:
    facts = known(FACTS, kernel_filesystems=["xfs"])
    xfs = {"type": "xfs", "image": "320MiB", "realtime_image": "64MiB", "journal_image": "80MiB"}
    text = plan_text(plan(facts, filesystems={"x": xfs}), facts)
    assert "-l logdev=JOURNAL -d rtinherit=1 -r rtdev=REALTIME DEVICE" in text
    assert "its data on a new image of 64MiB (realtime device)" in text


def test_an_image_larger_than_the_room_below_the_mount_root_is_refused() -> None:
    error = refusal(filesystems={"e": {"type": "ext4", "image": "11GiB"}})
    assert error.what == "too large: image 11.0 GiB"
    assert (error.where, error.got) == ("filesystems.e.image", "11.0 GiB")
    assert error.allowed == "at most 10.0 GiB (free in /var/tmp/mountlab-root)"
    assert error.next_step


def test_images_of_a_file_system_and_of_its_neighbour_must_fit_below_the_mount_root_together() -> None:
    images = {name: {"type": "ext4", "image": "6GiB"} for name in ("e", "other")}
    fio = {"tool": "fio", "rw": "write", "size": "4MiB"}
    neighbour = {"n": {**fio, "where": {"filesystem": "other"}}}
    check_feasible(sweep(filesystems=images, workloads={"w": fio}).sweep, BOX, FACTS)
    error = refusal(filesystems=images, workloads={"w": {**fio, "beside": "n"}}, neighbours=neighbour)
    assert error.what == "too large: e and the file systems beside it 12.0 GiB"
    assert (error.where, error.got) == ("workloads.w.beside", "12.0 GiB")


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
    large = {"tmpfs": TMPFS, "large": {**TMPFS, "size": "128MiB"}}
    left_out = [{"filesystem": "tmpfs", "workload": "w"}]
    both = sweep(filesystems=large, workloads={"w": {**DD_WRITE, "count": 65}, "v": DD_WRITE}, exclude=left_out)
    check_feasible(both.sweep, BOX, FACTS)


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
    check_feasible(sweep(filesystems={"f": entry}).sweep, BOX, known(FACTS, room={"f": GIB}))
    error = refusal({"room": {"f": 1024**2}}, filesystems={"f": entry})
    assert error.allowed == "at most 1.00 MiB (room in filesystems.f)"


def test_a_scratch_device_that_the_box_file_does_not_list_is_refused() -> None:
    """Trap: formatting a device because the user typed its name."""
    with pytest.raises(UnsafeError) as caught:
        check_feasible(sweep(filesystems={"e": {"type": "ext4", "device": "disk2"}}).sweep, BOX, FACTS)
    error = caught.value
    assert error.exit_code == 4
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


LONG = {**DD_WRITE, "count": 65}
LASTING = {"fresh_filesystem": "never"}


@pytest.mark.parametrize(
    ("more", "what"),
    [
        ({"workloads": {"w": LONG}}, "too large: w writes 65.0 MiB"),
        ({"filesystems": {"e": EXT4}, "workloads": {"w": {**DD_WRITE, "count": 128}}}, "too large: w writes 128 MiB"),
        (
            {"filesystems": {name: {"type": "ext4", "device": "data"} for name in "ab"}, "design": LASTING},
            "a device cannot hold two file systems at the same time",
        ),
        ({"design": {"strict": True}}, "what is planned cannot be trusted"),
    ],
    ids=["larger than a tmpfs", "larger than an image", "one device twice", "strict"],
)
def test_what_no_box_can_do_is_refused_without_one_in_the_words_of_a_plan(more: dict[str, Any], what: str) -> None:
    """Trap: `sweep check` called it valid, and `plan` refused it."""
    with pytest.raises(PlanError) as caught:
        check_without_box(sweep(**more).sweep)
    assert caught.value.what == what
    assert str(caught.value) == str(refusal(**more))


@pytest.mark.parametrize(
    "entry", [{"type": "dir"}, {"type": "ext4", "image": "11GiB"}, {"type": "ramfs", "size": "9GiB"}]
)
def test_what_only_a_box_can_tell_is_not_refused_without_one(entry: dict[str, Any]) -> None:
    check_without_box(sweep(filesystems={"f": entry}, workloads={"w": LONG}).sweep)


def test_what_a_plan_refuses_is_never_planned() -> None:
    with pytest.raises(PlanError):
        plan(workloads={"w": {**DD_WRITE, "count": 65}})


STATES = ("dumpe2fs", "xfs_db", "dump.f2fs", "sha256sum", "cp", "blkdiscard")
"""What lists, copies, checks and discards blocks of states."""
OURS = ["tar", "awk", "find"]


def test_needed_programs_are_those_of_the_tools_and_families_each_once() -> None:
    the_sweep = sweep(filesystems={"e": EXT4, "t": TMPFS}, workloads={"w": DD_WRITE, "r": DD_READ}).sweep
    assert [program.name for program in needed_programs(the_sweep)] == [
        *OURS,
        "dd",
        "mount",
        "mke2fs",
        "losetup",
    ]
    on_device = sweep(filesystems={"x": {"type": "xfs", "device": "data"}}).sweep
    assert [program.name for program in needed_programs(on_device)] == [
        *OURS,
        "dd",
        "mount",
        "mkfs.xfs",
        "blkid",
        "wipefs",
        "losetup",
        "mke2fs",
        "cmp",
    ]
    every = {program.name for known in (*TOOLS.values(), *FAMILIES.values()) for program in known.programs}
    names = [program.name for program in all_programs()]
    assert set(names) == {*OURS, *every, "losetup", "blkid", "wipefs", "cmp", "perf", "strace", "gzip", *STATES}
    assert len(names) == len(set(names))


# --- every command in order -------------------------------------------------------------------------------------------

RUN, OUT = "/var/tmp/mountlab-root/r1", "/dev/shm/mountlab-root/r1"
MNT = f"{RUN}/mnt"


def test_the_exact_commands_of_a_small_plan() -> None:
    small = plan(filesystems={"t": TMPFS, "e": EXT4}, design={"repeats": 1})

    def ext4(mount_id: str, *middle: str, options: str = "") -> list[str]:
        uuid = uuid_for("", "r1", mount_id)
        *strict, trial = middle
        return [
            f"image.sh {RUN}/img/e.img 134217728 full",
            f"losetup --find --show --direct-io=on {RUN}/img/e.img",
            f"timed.sh mke2fs -t ext4 -F -q -U {uuid} -E lazy_itable_init=0,lazy_journal_init=0,nodiscard {{device}}",
            f"mkdir -p {MNT}/e",
            *strict,
            f"timed.sh mount -t ext4{options} {{device}} {MNT}/e",
            f"evidence.sh {MNT}/e {{device}}",
            *filter(None, [trial]),
            f"umount {MNT}/e",
            f"rmdir {MNT}/e",
            f"detach.sh {{device}} {RUN}/img/e.img",
            f"rm -f {RUN}/img/e.img",
        ]

    tmpfs = [
        f"mkdir -p {MNT}/t",
        f"timed.sh mount -t tmpfs -o size=67108864 mountlab {MNT}/t",
        f"evidence.sh {MNT}/t",
        "env MOUNTLAB_RUN=r1 TRIAL",
        f"umount {MNT}/t",
        f"rmdir {MNT}/t",
    ]
    turns = {"t": tmpfs}
    turns |= {t.mount: ext4(t.mount, "env MOUNTLAB_RUN=r1 TRIAL", options=" -o noatime") for t in small.trials}
    expected = [text for t in small.trials for text in turns.get(t.cell.filesystem.name, turns[t.mount])]
    control = ext4("c-e", f"strict.sh mount -t ext4 {{device}} {MNT}/e", "")
    trial_ids = iter(("t0001", "t0002"))
    assert [line(argv) for argv in small.commands()] == [
        f"open.sh open {RUN} {OUT} me",
        *control,
        *(text.replace("TRIAL", next(trial_ids)) if "TRIAL" in text else text for text in expected),
        f"open.sh close {RUN} {OUT} me",
    ]


def test_a_mount_that_lasts_is_made_once_and_undone_in_reverse() -> None:
    lasting = plan(filesystems={"t": TMPFS, "r": RAMFS}, design={"fresh_filesystem": "never", "repeats": 2})
    lines = [line(argv) for argv in lasting.commands()]
    assert [mount.id for mount in lasting.lasting] == ["m000-t", "m000-r"]
    assert all(mount_group.mount is None for mount_group in lasting.mount_groups)
    assert [text for text in lines if text.startswith(("timed.sh mount", "umount"))] == [
        f"timed.sh mount -t tmpfs -o size=67108864 mountlab {MNT}/t",
        f"timed.sh mount -t ramfs mountlab {MNT}/r",
        f"umount {MNT}/r",
        f"umount {MNT}/t",
    ]
    first_trial, last_trial = (
        [i for i, text in enumerate(lines) if text.startswith("env MOUNTLAB_RUN")][end] for end in (0, -1)
    )
    assert lines.index(f"timed.sh mount -t ramfs mountlab {MNT}/r") < first_trial
    assert lines.index(f"umount {MNT}/r") > last_trial


@pytest.mark.parametrize("fresh", ["block", "cell", "never"])
def test_what_is_done_is_undone_in_the_reverse_order(fresh: str) -> None:
    the_plan = plan(
        filesystems={"t": TMPFS, "e": EXT4, "d": DIR},
        workloads={"w": DD_WRITE, "r": DD_READ},
        design={"fresh_filesystem": fresh, "repeats": 2, "warmup": 1},
    )
    owed: list[tuple[str, ...]] = []
    undo_of = {step.argv: step.undo for mount in (*the_plan.controls, *the_plan.mounts) for step in mount.steps}
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
        filesystems={"t": TMPFS, "r": RAMFS},
        workloads={"a": DD_WRITE, "b": DD_WRITE},
        design={"fresh_filesystem": fresh, "repeats": 2},
    )
    assert len(the_plan.mounts) == mounts
    assert len({mount.id for mount in the_plan.mounts}) == mounts
    assert {trial.mount for trial in the_plan.trials} == {mount.id for mount in the_plan.mounts}
    assert len(the_plan.trials) == 8


def test_trials_are_numbered_in_the_order_in_which_they_run_warm_up_included() -> None:
    the_plan = plan(filesystems={"t": TMPFS, "r": RAMFS}, design={"repeats": 2, "warmup": 1})
    assert [trial.trial_id for trial in the_plan.trials] == [f"t{i:04d}" for i in range(1, 7)]
    assert [(trial.block, trial.warmup) for trial in the_plan.trials] == [
        (0, True),
        (0, True),
        (1, False),
        (1, False),
        (2, False),
        (2, False),
    ]


def test_every_step_of_every_mount_ends_with_the_evidence() -> None:
    """What was asked is compared with what the kernel says it did."""
    for mount in plan(filesystems={"t": TMPFS, "e": EXT4, "d": DIR}).mounts:
        assert mount.steps[-1].keep == "evidence.txt"
        words = mount.steps[-1].argv
        assert words[words.index("evidence.sh") + 1] == mount.root


def test_the_opening_is_a_guard_that_is_undone_last() -> None:
    the_plan = plan()
    assert the_plan.opening.guard
    assert the_plan.commands()[0] == the_plan.opening.argv
    assert the_plan.commands()[-1] == the_plan.opening.undo


def test_the_same_seed_gives_the_same_plan_and_another_one_another_order() -> None:
    many = {"filesystems": {"t": TMPFS, "r": RAMFS, "e": EXT4}, "workloads": {"w": DD_WRITE, "r": DD_READ, "f": FIO}}
    assert plan(**many) == plan(**many)
    assert plan(**many).commands() != plan(seed=8, **many).commands()


THREE = {"filesystems": {"t": TMPFS, "r": RAMFS, "e": EXT4}, "workloads": {"f": FIO}}


def seeds(the_plan: Plan) -> dict[int, set[int | None]]:
    found: dict[int, set[int | None]] = {}
    for trial in the_plan.trials:
        found.setdefault(trial.block, set()).add(trial.command.seed)
    return found


def test_all_cells_of_a_block_draw_from_one_seed_and_no_two_blocks_from_the_same() -> None:
    """Common random numbers inside a block; between blocks trials are samples of the workload. Warm-up too."""
    found = seeds(plan(**THREE, design={"repeats": 40, "warmup": 3}))
    assert sorted(found) == [*range(-2, 41)]
    assert all(len(own) == 1 for own in found.values())
    assert len(set.union(*found.values())) == len(found)


def test_the_seed_of_a_block_is_what_fio_is_given_and_follows_from_that_of_the_run() -> None:
    trials = plan(**THREE).trials
    assert all(f"--randseed={trial.command.seed}" in trial.command.argv for trial in trials)
    assert all(f"--randseed={trial.command.seed}" in trial.argv[4] for trial in trials), "and the box is sent it"
    assert seeds(plan(**THREE)) == seeds(plan(**THREE))
    longer = seeds(plan(**THREE, design={"repeats": 9}))
    assert {block: longer[block] for block in (1, 2)} == seeds(plan(**THREE)), "more blocks change none before them"
    other = seeds(plan(seed=8, **THREE))
    assert all(other[block] != own for block, own in seeds(plan(**THREE)).items())


def test_each_round_before_a_trial_draws_from_a_seed_of_its_own() -> None:
    """A round that repeated the trial's places would leave the rest of a device as it was."""
    (trial,) = plan(workloads={"f": {**FIO, "rw": "randwrite", "precondition": 9}}, design={"repeats": 1}).trials
    assert trial.redrawn is not None
    rounds = [trial.redrawn(number) for number in range(1, 10)]
    assert len({each.command.seed for each in (trial, *rounds)}) == 10
    assert rounds[0].command == trial.redrawn(1).command
    assert {each.trial_id for each in rounds} == {trial.trial_id}


def test_clients_of_a_trial_draw_from_seeds_of_their_own() -> None:
    (workload,) = sweep(workloads={"f": {**FIO, "rw": "randread"}}).sweep.workloads
    mounts = tuple(ClientMount(client=name, steps=(), root=f"/{name}") for name in ("a", "b"))
    driven = endpoints(replace(workload, clients=("a", "b")), mounts, "/r", "/o/t0001", 5)
    assert len({5, *(endpoint.seed for endpoint in driven)}) == 3


def test_random_data_to_copy_from_must_fit_into_the_memory_of_the_box() -> None:
    random = {"workloads": {"w": {**DD_WRITE, "data": "random"}}}
    room = {"output_root_fstype": "tmpfs", "output_root_free_bytes": 8 * 1024**2}
    check_feasible(sweep(**random).sweep, BOX, known(FACTS, **room))
    assert refusal({**room, "output_root_free_bytes": 7 * 1024**2}, **random).where == "workloads.w.data"
    assert "ext4" in refusal({**room, "output_root_fstype": "ext4"}, **random).got
    check_feasible(
        sweep(workloads={"w": {**DD_WRITE, "data": "random", "direction": "read"}}).sweep,
        BOX,
        known(FACTS, **{**room, "output_root_free_bytes": 0}),
    )


def test_a_plan_changes_neither_sweep_nor_facts() -> None:
    before = FACTS.as_record()
    the_sweep = sweep().sweep
    assert make_plan(the_sweep, BOX, FACTS, run_id="r1", owner="me", seed=1).sweep == the_sweep
    assert FACTS.as_record() == before


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
    assert lines[:30] == [
        f"out={OUT}/t0001",
        f"directory={directory}",
        f"mountpoint={MNT}/tmpfs",
        "fstype=tmpfs",
        "target=''",
        "cache=cold",
        "in_place=''",
        "lazy=''",
        "direct=''",
        "reads=''",
        "sensors=''",
        "in_memory=yes",
        "helper=''",
        "cgroups=/sys/fs/cgroup",
        "sampler=''",
        "trace_around=''",
        "long_log=''",
        "sample_ms=100",
        "mount_namespace=''",
        "pid_namespace=''",
        f"largest_output={16 * 2**20}",
        f"largest_archive={64 * 2**20}",
        "prepares=''",
        "warms=''",
        "prepare() { :; }",
        "warm() { :; }",
        "load_program() { sh -c 'dd --version 2>/dev/null || dd --help' version dd; }",
        "show_drives() { :; }",
        "show_state() { :; }",
        f'measured() {{ exec "$@" timeout -k 5 75 timeout -k 5 60 dd if=/dev/zero of={directory}/dd.img bs=1048576 '
        "count=8 conv=fdatasync; }",
    ]


def test_a_program_that_is_looked_for_beside_the_path_is_loaded_from_where_it_is() -> None:
    at = "/usr/lib/postgresql/16/bin/pg_test_fsync"
    programs: dict[str, Any] = {program.name: {} for program in all_programs()}
    facts = known(FACTS, programs={**programs, "pg_test_fsync": {"path": at}, "dd": {"path": "/opt/dd"}})
    elsewhere, usual = (script(plan(facts, workloads={"w": w})) for w in ({"tool": "pg_test_fsync"}, DD_WRITE))
    assert f"load_program() {{ {at} --version; }}" in elsewhere.splitlines()
    assert f" timeout -k 5 60 {at} " in elsewhere
    assert "/opt/dd" not in usual


OWN_COMMAND = {
    "tool": "command", "prepare": "dd of={directory}/f", "argv": "dd if={directory}/f", "space": "1MiB",
    "metrics": {"elapsed": {"from": "clock"}},
}  # fmt: skip


@every_row(
    ("what", "workload", "reads"),
    [
        ("cold reads", {"tool": "dd", "direction": "read", "count": 8}, str(8 * 2**20)),
        ("warm reads", {"tool": "dd", "direction": "read", "count": 8, "cache": "warm"}, "''"),
        ("direct reads of what is cached", {"tool": "dd", "direction": "read", "count": 8, "cache": "as_is",
                                            "iflag": "direct"}, str(8 * 2**20)),
        ("writes", {"tool": "dd", "direction": "write", "count": 8}, "''"),
        ("a command", OWN_COMMAND, "calls"),
        ("a command in a warm cache", {**OWN_COMMAND, "cache": "warm"}, "''"),
        ("a benchmark that only writes", {"tool": "fs_mark", "count": 8, "file_size": "1KiB"}, "''"),
    ],
)  # fmt: skip
def test_files_are_looked_at_only_where_a_device_should_deliver(
    what: str, workload: dict[str, Any], reads: str
) -> None:
    assert f"reads={reads}" in script(plan(filesystems={"e": EXT4}, workloads={"w": workload})).splitlines(), what
    for without in (TMPFS, {"type": "raw", "image": "64MiB"}):
        assert "reads=''" in script(plan(filesystems={"f": without}, workloads={"w": workload})).splitlines(), what


def test_drives_that_tell_their_heat_are_asked_around_a_trial() -> None:
    drive = {"file": "/sys/class/hwmon/hwmon1/temp1_input", "log": "nvme smart-log -o json /dev/nvme0"}
    lines = script(plan(facts=known(FACTS, drive_sensors={"nvme0": drive}))).splitlines()
    assert "sensors=/sys/class/hwmon/hwmon1/temp1_input" in lines
    assert "show_drives() { echo drive nvme0 && nvme smart-log -o json /dev/nvme0; }" in lines


def test_the_counters_are_sampled_where_the_box_can_and_the_sweep_does_not_forbid_it() -> None:
    """The shell for it is loaded before the counters, as the program is: dropped with the caches, it would be read."""
    able = known(FACTS, sampling_shell="busybox sh")
    lines = script(plan(facts=able)).splitlines()
    assert "sampler='busybox sh'" in lines
    assert any(line.startswith("load_program() ") and "&& nice busybox sh -c :" in line for line in lines)
    off = script(plan(facts=able, design={"repeats": 1, "sample_every": False})).splitlines()
    assert "sampler=''" in off
    assert not any("busybox" in line for line in off[:30])


def test_a_read_prepares_its_file_and_warms_the_cache_where_asked() -> None:
    the_plan = plan(workloads={"r": {**DD_READ, "cache": "warm"}})
    directory = f"{MNT}/tmpfs/t0001"
    assert "cache=warm" in script(the_plan)
    assert f"prepare() {{ dd if=/dev/zero of={directory}/dd.img bs=1048576 count=8 conv=fsync; }}" in script(the_plan)
    read = f"dd if={directory}/dd.img of=/dev/null bs=1048576 count=8"
    assert f"warm() {{ {read} && {read}; }}" in script(the_plan), "on its second read a page becomes active"


def ready(the_plan: Plan) -> dict[str, list[tuple[str, ...]]]:
    """Cell to what is done right before the measured command, without the trial's own directory, and that itself."""
    own = {trial.cell.id: (trial.trial_id, (*trial.ready, trial.command.argv)) for trial in the_plan.trials}
    return {
        cell: [tuple(word.replace(trial_id, "T") for word in argv) for argv in done]
        for cell, (trial_id, done) in own.items()
    }


@pytest.mark.parametrize("workload", [DD_READ, {**FIO, "rw": "read", "cache": ["cold", "warm"]}], ids=["dd", "fio"])
def test_a_file_that_memory_holds_is_read_as_often_before_cold_reads_as_before_warm_ones(
    workload: dict[str, Any],
) -> None:
    """The negative control: dropping the caches of tmpfs only moves its pages to another list, from which the next
    reads bring them back, and that was what made warm reads of tmpfs slower than cold ones."""
    filesystems = {"t": TMPFS, "r": RAMFS, "e": EXT4, "o": {"type": "overlay", "over": TMPFS}}
    done = ready(plan(filesystems=filesystems, workloads={"w": workload}))
    for name in ("t", "r", "o"):
        cold, warm = done[f"{name}/w cache=cold"], done[f"{name}/w cache=warm"]
        assert cold[:-1] == warm[:-1]
        assert len(cold) == 3
    assert len(done["e/w cache=cold"]) == 1, "a device can be read cold"
    assert len(done["e/w cache=warm"]) == 3


def test_a_directory_of_a_file_system_in_memory_cannot_be_read_cold_either() -> None:
    own = {"shm": {"type": "dir", "path": "/dev/shm"}, "disk": {"type": "dir", "path": "/srv/data"}}
    facts = known(FACTS, memory_directories=["/dev/shm"])
    done = ready(plan(facts, filesystems=own, workloads={"w": DD_READ}))
    assert {cell: len(commands) for cell, commands in done.items() if "cold" in cell} == {
        "shm/w cache=cold": 3,
        "disk/w cache=cold": 1,
    }


def test_what_is_left_as_it_is_is_not_read_before() -> None:
    done = ready(plan(workloads={"w": {**DD_READ, "cache": "as_is"}}))
    assert [len(commands) for commands in done.values()] == [1]


def test_a_write_is_not_read_before() -> None:
    done = ready(plan(workloads={"d": DD_WRITE, "f": {**FIO, "rw": "write"}}))
    assert [len(commands) for commands in done.values()] == [1, 1]


@every_row(
    ("drop", "cache", "expected", "loads"),
    [
        (True, None, "cold", True),
        (False, None, "as_is", False),
        (False, "cold", "cold", True),
        (False, "warm", "warm", True),
        (True, "as_is", "as_is", False),
    ],
)
def test_the_state_of_the_cache_is_the_workloads_or_else_the_designs(
    drop: bool, cache: str | None, expected: str, loads: bool
) -> None:
    """Programs that the dropping of a cache has removed are loaded again; no other trial loads them."""
    workload = (
        {**DD_READ, "cache": cache} if cache else {key: value for key, value in DD_READ.items() if key != "cache"}
    )
    able = known(FACTS, sampling_shell="busybox sh")
    lines = script(plan(able, workloads={"r": workload}, design={"drop_caches": drop})).splitlines()
    assert f"cache={expected}" in lines
    assert ("load_program() { :; }" not in lines) is loads


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


# --- controls, skips, raw devices -------------------------------------------------------------------------------------


def test_a_file_system_with_options_is_made_once_without_them_and_strictness_is_tried_before_its_mount() -> None:
    filesystems = {
        "plain": {"type": "ext4", "image": "64MiB"},
        "e": {**EXT4, "tunables": {"inode_readahead_blks": 64}},
        "o": {"type": "overlay", "over": EXT4},
    }
    controls = {control.id: control for control in plan(filesystems=filesystems).controls}
    assert set(controls) == {"c-e", "c-o"}
    for control in controls.values():
        words = [word for step in control.steps for word in step.argv]
        assert "noatime" not in " ".join(words)
        assert "borrow.sh" not in words
        kept = [step.keep for step in control.steps if step.keep]
        assert kept[-3:] == ["strict.txt", "mount.txt", "evidence.txt"]
    below = [step.keep for step in controls["c-o"].steps if step.keep]
    assert below[:4] == ["mkfs-below.txt", "strict-below.txt", "mount-below.txt", "evidence-below.txt"]
    layers = controls["c-o"].steps[-3].argv
    assert layers[layers.index("strict.sh") + 1 :][:3] == ("mount", "-t", "overlay")
    assert layers[-3].startswith("lowerdir=")


def test_a_control_is_made_twice_only_where_a_difference_may_be_the_proof() -> None:
    """What differs between two makings without the option, such as the fsid, proves nothing."""
    packed = {"type": "ext4", "image": "64MiB", "mkfs": ["-E", "packed_meta_blocks=1"]}
    named = {"type": "ext4", "image": "64MiB", "mkfs": ["-b", "4096"]}
    made = plan(filesystems={"p": packed, "n": named, "o": {"type": "overlay", "over": packed}})
    controls = {control.id: control for control in made.controls}
    assert list(controls) == ["c-p", "again-p", "c-n", "c-o", "again-o"]
    assert controls["c-p"].place.uuid != controls["again-p"].place.uuid
    assert [step.keep for step in controls["again-p"].steps if step.keep] == ["mkfs.txt", "mount.txt", "evidence.txt"]
    assert "packed" not in " ".join(word for step in controls["again-p"].steps for word in step.argv)


def test_of_several_options_each_is_mounted_alone_to_see_what_it_does() -> None:
    many = {"type": "ext4", "image": "64MiB", "options": ["data=journal", "bsdgroups"]}
    (control,) = plan(filesystems={"e": many}).controls
    assert line(control.steps[-1].argv).startswith("alone.sh data=journal\nbsdgroups mount -t ext4 {device}")
    assert (control.steps[-1].keep, control.steps[-1].undo) == ("alone.txt", None)


def test_a_device_that_no_two_file_systems_can_share_at_the_same_time_is_refused_before_the_start() -> None:
    on_data = {"type": "ext4", "device": "data"}
    facts = {"room": {"a": GIB, "b": GIB}}
    error = refusal(facts, filesystems={"a": on_data, "b": on_data}, design={"fresh_filesystem": "never"})
    assert error.what == "a device cannot hold two file systems at the same time"
    assert (error.got, error.allowed) == ("data is the device of 2 of them", "fresh_filesystem: block or cell")


def test_a_box_on_which_nothing_can_be_mounted_is_refused_with_the_reasons() -> None:
    error = refusal(filesystems={"p": {"type": "pmfs", "device": "nvm", "size": "64MiB"}})
    assert error.what == "none of the file systems can be mounted on this box"
    assert "booted with memmap=SIZE$ADDRESS" in error.got


@pytest.mark.parametrize(
    ("entry", "got", "allowed"),
    [
        ({"type": "pmfs", "device": "data", "size": "1GiB"}, "data: /dev/disk/by-id/x", "memory:0x... for pmfs"),
        ({"type": "ext4", "device": "nvm"}, "nvm: memory:0x1000", "a block device; memory:0x... is for pmfs"),
    ],
)
def test_memory_is_for_pmfs_and_disks_are_not(entry: dict[str, Any], got: str, allowed: str) -> None:
    memory = replace(BOX, scratch=(*BOX.scratch, ScratchDevice(name="nvm", device="memory:0x1000")))
    with pytest.raises(PlanError, match="cannot lie on this scratch device") as caught:
        check_feasible(sweep(filesystems={"f": entry}).sweep, memory, known(FACTS, kernel_filesystems=["ext4", "pmfs"]))
    assert (caught.value.got, caught.value.allowed) == (got, allowed)


def test_zram_needs_a_kernel_with_it() -> None:
    zram = {"z": {"type": "ext4", "zram": "64MiB"}}
    check_feasible(sweep(filesystems=zram).sweep, BOX, known(FACTS, kernel_features=["zram"]))
    assert refusal({"kernel_features": ["loop"]}, filesystems=zram).what == "the kernel of the box has no zram"
    luks = {"luks": {"type": "ext4", "image": "64MiB", "stack": [{"layer": "luks"}]}}
    refused = refusal({"kernel_features": ["loop", "raid1"]}, filesystems=luks)
    assert (refused.what, refused.where) == ("the kernel of the box has no dm-crypt", "filesystems.luks.stack")


def test_jobs_share_a_raw_device_and_leave_our_mark_alone() -> None:
    """The study: 8 jobs of 8G each on one device of 16G, all on the same part."""
    jobs = {"tool": "fio", "rw": "write", "size": "48MiB", "numjobs": 8}
    raw = plan(filesystems={"r": {"type": "raw", "image": "64MiB"}}, workloads={"w": jobs})
    argv = raw.trials[0].command.argv
    assert f"--filename={MNT}/r.device" in argv
    assert f"--offset={1024**2}" in argv
    assert "\nfstype=raw\n" in script(raw)
    assert f"\ntarget={MNT}/r.device\n" in script(raw)
    error = refusal(filesystems={"r": {"type": "raw", "image": "64MiB"}}, workloads={"w": {**jobs, "size": "64MiB"}})
    assert error.allowed == "at most 63.0 MiB (room in filesystems.r)"


def test_the_guard_is_told_what_the_survey_saw() -> None:
    facts = known(FACTS, device_ids={"data": "8:16,disk"}, room={"f": GIB})
    guarded = plan(facts, filesystems={"f": {"type": "ext4", "device": "data"}})
    place = guarded.mounts[0].place
    assert (place.device, place.device_id) == ("/dev/disk/by-id/x", "8:16,disk")
    assert guarded.mounts[0].steps[0].argv[-3:] == ("/dev/disk/by-id/x", "", "8:16,disk")


def test_what_is_made_on_a_device_carries_a_mark_that_is_bound_to_it() -> None:
    identity, log = "boot=1,8:16,sectors=9,serial=S,bound=0123abcd", "boot=1,8:32,sectors=9,serial=J,bound=98765432"
    more = {"room": {"f": GIB, "x": GIB}, "kernel_filesystems": ["ext4", "xfs"]}
    facts = known(FACTS, device_ids={"data": identity, "log": log}, **more)
    both = {"device": "data", "journal_device": "log"}
    box = replace(
        BOX, scratch=tuple(ScratchDevice(name=each, device=f"/dev/disk/by-id/{each}") for each in both.values())
    )
    resolved = sweep(filesystems={"f": {"type": "ext4", **both}, "x": {"type": "xfs", **both}})
    made = make_plan(resolved.sweep, box, facts, run_id="r1", owner="me", seed=1)
    places = {mount.filesystem.name: mount.place for mount in made.mounts}
    assert places["f"].uuid.startswith("6d6f756e-746c-6143-0123-abcd")
    assert places["f"].journal_uuid.startswith("6d6f756e-746c-6143-9876-5432")
    mkfs_xfs, log_mark = (
        next(argv for argv in (step.argv for mount in made.mounts for step in mount.steps) if word in argv)
        for word in (f"uuid={places['x'].uuid}", places["x"].uuid)
    )
    assert ("mkfs.xfs" in mkfs_xfs, "mke2fs" in log_mark) == (True, True), "its log carries the UUID of the file system"
    uuids = [mount.place.uuid for mount in made.mounts if mount.filesystem.name == "f"]
    assert len({*uuids}) == len(uuids)


@pytest.mark.parametrize(
    ("entry", "facts", "where", "allowed"),
    [
        (
            {"type": "ext4", "zram": "200GiB"},
            {},
            "filesystems.f.zram",
            "at most 6.40 GiB (80% of the available memory)",
        ),
        (
            {"type": "ext4", "image": "9GiB", "image_dir": "/dev/shm"},
            {"image_room": {"f": 20 * GIB}, "memory_directories": ["/dev/shm"]},
            "filesystems.f.image",
            "at most 6.40 GiB (80% of the available memory)",
        ),
        (
            {"type": "ext4", "image": "9GiB", "image_dir": "/srv/x"},
            {"image_room": {"f": GIB}},
            "filesystems.f.image",
            "at most 1.00 GiB (free in /srv/x)",
        ),
    ],
)
def test_what_would_fill_memory_or_a_directory_is_refused(
    entry: dict[str, Any], facts: BoxFacts, where: str, allowed: str
) -> None:
    error = refusal(facts, filesystems={"f": entry})
    assert (error.where, error.allowed) == (where, allowed)
