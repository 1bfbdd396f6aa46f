"""The exact order of effects of a run, after success and after every kind of failure."""

from __future__ import annotations

import gzip
import io
import json
import os
import signal
import tarfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from facts import known
from mountlab.box.connection import Completed
from mountlab.core.errors import BoxError, BoxRestarted, BoxTimeout, LeftoverError, UnsafeError
from mountlab.core.held import Lease
from mountlab.core.model import Box, Rights, ScratchDevice, Trial
from mountlab.core.trial_files import TrialFiles
from mountlab.filesystems.making import read_commands
from mountlab.outcome.archive import unpack
from mountlab.outcome.judging import Outcome
from mountlab.runner.sweep_runner import run_sweep
from mountlab.sweep.feasible import all_programs
from mountlab.sweep.plan import Plan
from mountlab.sweep.planner import FILLS, make_plan
from rows import every_row
from sweeps import DD_WRITE, EXT4, TMPFS, Silent, sweep

FACTS = known(
    rights="root",
    user="root",
    machine="x86_64",
    mount_root="/var/tmp/mountlab-root",
    output_root="/dev/shm/mountlab-root",
    programs={name: {} for name in (*(program.name for program in all_programs()), "lvm")},
    memory_available_bytes=2**33,
    mount_root_free_bytes=2**36,
    kernel_filesystems=None,
)
LOCAL = Box(name="local", host="", embedded="loopback")
PLAIN = {"type": "ext4", "image": "128MiB"}
SUMMARY = b"8+0 records in\n8+0 records out\n8388608 bytes (8.4 MB, 8.0 MiB) copied, 0.01 s, 839 MB/s\n"


def plan(filesystems: Mapping[str, Any], workloads: Sequence[str] = ("dd-write",), **design: Any) -> Plan:
    each = dict.fromkeys(workloads, DD_WRITE)
    resolved = sweep(filesystems=dict(filesystems), workloads=each, design={"repeats": 1, **design})
    return make_plan(resolved.sweep, LOCAL, FACTS, run_id="R", owner="me", seed=1)


def archive(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, data in files.items():
            member = tarfile.TarInfo(f"./{name}")
            member.size = len(data)
            tar.addfile(member, io.BytesIO(data))
    return out.getvalue()


GOOD = archive({"exit_status": b"0\n", "stdout": b"", "stderr": SUMMARY})


class ScriptedBox:
    """A box that answers everything with success, but for what a test scripts: word -> answers, first to last.

    An answer is an exit status, an exception to raise, or a callable.
    """

    box = LOCAL
    rights: Rights = "root"

    def __init__(self, *, said: Mapping[str, bytes] | None = None, **script: Sequence[Any]) -> None:
        self.said = said or {}
        self.script = {word: list(answers) for word, answers in script.items()}
        self.calls: list[str] = []

    def holding(self, lease: Lease, stopped: Callable[[], bool]) -> AbstractContextManager[None]:
        return nullcontext()

    def run(self, argv: Sequence[str], *, timeout_s: float = 60.0, root: bool = False) -> Completed:
        name = self.name(argv)
        self.calls.append(name)
        answers = self.script.get(name.split()[0].replace("-", "_"), [])
        answer = answers.pop(0) if answers else 0
        if callable(answer):
            answer()
            answer = 0
        if isinstance(answer, BaseException):
            raise answer
        said = self.evidence(argv) if name == "evidence" else self.output(name)
        return Completed(tuple(argv), int(answer), said, b"it says why" if answer else b"", 0.0)

    @staticmethod
    def evidence(argv: Sequence[str]) -> bytes:
        """What a kernel would say of a mount on the run's directory, if it did all that these tests ask for."""
        root = argv[argv.index("evidence.sh") + 1]
        kind = root.rpartition("/")[2]
        options = {"tmpfs": "rw,size=65536k", "ext4": "rw,noatime"}.get(kind, "rw")
        number, st_dev = ("7:9", 0x709) if kind == "ext4" else ("0:50", 50)
        return (
            f"==> st_dev <==\n{st_dev}\n==> mountinfo <==\n30 1 {number} / {root} rw,noatime - {kind} src {options}\n"
            f"==> df <==\nFilesystem 1024-blocks Used Available Capacity Mounted on\nsrc 100 0 100 0% {root}\n"
            "==> loops <==\n7:9\t1\t65024\t/x.img\n"
        ).encode()

    def output(self, name: str) -> bytes:
        given = {
            "trial": GOOD,
            "losetup --find": b"/dev/loop9\n",
            "guard": b"/dev/sdb\n",
            "strict": b"refuses\n",
            **self.said,
        }
        return given.get(name, b"")

    @staticmethod
    def name(argv: Sequence[str]) -> str:
        """Scripts by what they do, commands by their words, without the mark of the run."""
        argv = argv[2:] if argv[0] == "env" else argv
        if argv[:2] == ("sh", "-c") and argv[3].startswith(("t0", "x0", "p0")):
            return "collect" if argv[4:] else "trial"
        if argv[:2] == ("sh", "-c") and argv[3] in ("timed.sh", "guard.sh") and "-c" not in argv[4:]:
            return argv[4] if argv[3] == "timed.sh" else "guard"
        if argv[:2] == ("sh", "-c") and argv[3] == "guard.sh":
            return f"guarded {argv[argv.index('timed.sh') + 1]}"
        if argv[:2] == ("sh", "-c"):
            return argv[4] if argv[3] in ("open.sh", "mountlab-clean") else argv[3].removesuffix(".sh")
        if argv[0] == "losetup":
            return " ".join(argv[:2])
        return argv[0]

    def close(self) -> None: ...


class Memory:
    """A journal in memory, which notes the order of what is kept."""

    def __init__(self, done: Sequence[str] = ()) -> None:
        self.done = set(done)
        self.trials: list[Trial] = []
        self.mounts: list[str] = []
        self.files: dict[str, dict[str, bytes]] = {}
        self.of_mounts: dict[str, dict[str, bytes]] = {}

    def has(self, trial_id: str) -> bool:
        return trial_id in self.done or any(trial.trial_id == trial_id for trial in self.trials)

    def recorded_trials(self) -> list[Trial]:
        return self.trials

    def record(self, trial: Trial, files: Mapping[str, bytes], outcome: Outcome) -> None:
        assert "argv" in files
        self.trials.append(trial)
        self.files[trial.trial_id] = dict(files)

    def keep_mount(self, mount_id: str, files: Mapping[str, bytes]) -> None:
        assert "evidence.txt" in files
        self.mounts.append(mount_id)
        self.of_mounts[mount_id] = dict(files)

    def mount_files(self, mount_id: str) -> Mapping[str, str]:
        return {name: data.decode() for name, data in self.of_mounts.get(mount_id, {}).items()}


EXT4_SETUP = ["image", "losetup --find", "mke2fs", "mkdir", "mount", "evidence"]
EXT4_UNDO = ["umount", "rmdir", "detach", "rm"]
CONTROL = [*EXT4_SETUP[:4], "strict", *EXT4_SETUP[4:], *EXT4_UNDO]
"""ext4 with options is made once without them, first of all."""


def test_a_run_opens_makes_measures_undoes_in_reverse_and_closes() -> None:
    box, journal = ScriptedBox(), Memory()
    run_sweep(plan({"ext4": EXT4}), box, journal, Silent())
    assert box.calls == ["open", *CONTROL, *EXT4_SETUP, "trial", *EXT4_UNDO, "close"]
    assert [trial.status for trial in journal.trials] == ["ok"]
    assert journal.mounts == ["c-ext4", journal.trials[0].mount]


def test_the_file_system_of_a_neighbour_is_made_first_and_undone_last() -> None:
    """Blocks of ext4 alone need it not; the neighbour of a trial on tmpfs lies on ext4."""
    filesystems = {"t": {"type": "tmpfs", "size": "64MiB"}, "ext4": PLAIN}
    neighbours = {"n": {"tool": "fio", "rw": "write", "size": "16MiB", "where": {"filesystem": "ext4"}}}
    resolved = sweep(
        filesystems=filesystems, workloads={"w": {**DD_WRITE, "beside": "n"}}, neighbours=neighbours,
        design={"repeats": 1, "warmup": 0, "retries": 0},
    )  # fmt: skip
    plan = make_plan(resolved.sweep, LOCAL, FACTS, run_id="R", owner="me", seed=1)
    box, journal = ScriptedBox(), Memory()
    run_sweep(plan, box, journal, Silent())
    tmpfs = ["mkdir", "mount", "evidence"]
    both = [*EXT4_SETUP, *tmpfs, "trial", "umount", "rmdir", *EXT4_UNDO]
    alone = [*EXT4_SETUP, "trial", *EXT4_UNDO]
    assert box.calls in (["open", *both, *alone, "close"], ["open", *alone, *both, "close"])
    assert [box.name(argv) for argv in plan.commands()] == [*box.calls[:-1], "close"]


def test_the_commands_of_a_mount_are_kept_as_they_were_run() -> None:
    box, journal = ScriptedBox(), Memory()
    run_sweep(plan({"ext4": EXT4}), box, journal, Silent())
    commands = read_commands(journal.of_mounts[journal.mounts[1]][TrialFiles.COMMANDS].decode())
    assert [each.argv[0] for each in commands] == ["image.sh", "losetup", "mke2fs", "mkdir", "mount"]
    by_file = {each.keep: each.argv for each in commands}
    assert by_file["mkfs.txt"][-1] == "/dev/loop9", "what losetup named"
    assert by_file["mount.txt"][-2:] == ("/dev/loop9", "/var/tmp/mountlab-root/R/mnt/ext4")


def test_what_is_run_before_the_measured_command_is_kept_too() -> None:
    reads = {"tool": "dd", "direction": "read", "bs": "1MiB", "count": 8, "cache": "warm"}
    resolved = sweep(
        filesystems={"t": TMPFS}, workloads={"r": reads, "w": DD_WRITE}, design={"repeats": 1, "warmup": 0}
    )
    journal = Memory()
    made = make_plan(resolved.sweep, LOCAL, FACTS, run_id="R", owner="me", seed=1)
    run_sweep(made, ScriptedBox(), journal, Silent())
    commands = {name: files.get(TrialFiles.COMMANDS) for name, files in journal.files.items()}
    kept = {trial.workload: (trial.trial_id, commands[trial.trial_id]) for trial in journal.trials}
    assert kept["w"][1] is None
    name, data = kept["r"]
    assert data
    assert [each.argv[:2] for each in read_commands(data.decode())] == [
        ("dd", "if=/dev/zero"),
        *[("dd", f"if=/var/tmp/mountlab-root/R/mnt/t/{name}/dd.img")] * FILLS,
    ]


@every_row(
    ("failing", "undone"),
    [
        ("image", []),
        ("losetup", ["rm"]),
        ("mke2fs", ["detach", "rm"]),
        ("mount", ["rmdir", "detach", "rm"]),
        ("evidence", EXT4_UNDO),
    ],
)
def test_a_step_that_fails_undoes_what_came_before_it_and_fails_the_trials_of_that_mount(
    failing: str, undone: list[str]
) -> None:
    """A failed mkfs that is only a log line."""
    box, journal = ScriptedBox(**{failing: [1]}), Memory()
    run_sweep(plan({"ext4": PLAIN}), box, journal, Silent())
    reached = [step.split()[0] for step in EXT4_SETUP].index(failing) + 1
    assert box.calls == ["open", *EXT4_SETUP[:reached], *undone, "close"]
    assert [trial.status for trial in journal.trials] == ["failed"]
    assert "exit status 1" in journal.trials[0].reason
    assert "it says why" in journal.trials[0].reason


def test_one_bad_file_system_does_not_end_the_night() -> None:
    box, journal = ScriptedBox(mke2fs=[1]), Memory()
    run_sweep(plan({"ext4": PLAIN, "tmpfs": TMPFS}), box, journal, Silent())
    assert {trial.filesystem: trial.status for trial in journal.trials} == {"ext4": "failed", "tmpfs": "ok"}


def test_a_busy_mount_is_tried_again_after_what_keeps_it_busy_was_ended() -> None:
    box = ScriptedBox(umount=[32, 32], free_mount=[1, 1])
    run_sweep(plan({"tmpfs": TMPFS}), box, Memory(), Silent())
    assert box.calls[4:] == [
        "trial",
        "umount",
        "kill",
        "free_mount",
        "umount",
        "kill",
        "free_mount",
        "umount",
        "rmdir",
        "close",
    ]


def test_what_a_tool_put_in_the_way_of_an_undo_is_taken_away_and_said() -> None:
    box, progress = (
        ScriptedBox(rmdir=[1], said={"free_mount": b"a tool left files in /x/t0001, below the mount: removed\n"}),
        Told(),
    )
    run_sweep(plan({"tmpfs": TMPFS}), box, Memory(), progress)
    assert box.calls[4:] == ["trial", "umount", "rmdir", "kill", "free_mount", "close"]
    assert progress.notices == ["a tool left files in /x/t0001, below the mount: removed"]


def test_a_root_that_stays_private_and_a_loop_device_that_stays_in_use_are_said() -> None:
    said = {"open": b"private: /mr: refused\n", "detach": b"lazily: /dev/loop9 on /mr/r1/img/e.img is still in use\n"}
    box, progress = ScriptedBox(said=said), Told()
    run_sweep(plan({"ext4": EXT4}), box, Memory(), progress)
    assert list(dict.fromkeys(progress.notices)) == [
        "box local: mounts below the mount root stay private (/mr: refused): where another mount namespace holds them, "
        "as that of a trial of another Mountlab does, their devices stay busy until it ends",
        "box local: lazily: /dev/loop9 on /mr/r1/img/e.img is still in use",
    ]


def test_what_cannot_be_undone_is_said_and_the_rest_is_undone_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mountlab.runner.steps.UNDO_TRIES", 2)
    box = ScriptedBox(umount=[32] * 99, free_mount=[1] * 99)
    with pytest.raises(LeftoverError, match="could not undo: umount") as error:
        run_sweep(plan({"tmpfs": TMPFS}), box, Memory(), Silent())
    assert box.calls[-2:] == ["rmdir", "close"]
    assert error.value.next_step == "mountlab box clean local"
    assert "it says why" in str(error.value)


def test_a_root_directory_that_is_not_ours_is_unsafe_and_nothing_is_begun() -> None:
    box = ScriptedBox(open=[1])
    with pytest.raises(UnsafeError, match="refused to go on"):
        run_sweep(plan({"tmpfs": TMPFS}), box, Memory(), Silent())
    assert box.calls == ["open"]


def test_a_trial_that_never_ends_is_killed_and_recorded_and_the_next_one_runs() -> None:
    """The box itself stops it: a lost connection is another error."""
    box, journal = ScriptedBox(trial=[BoxTimeout("no answer in 180 s")], collect=[BoxTimeout("nor here")]), Memory()
    run_sweep(plan({"tmpfs": TMPFS}, repeats=2, retries=5), box, journal, Silent())
    assert box.calls[4:8] == ["trial", "kill", "collect", "umount"]
    told = "ran longer than 180 s in all, and was ended in its preparation (design.trial_timeout)"
    assert [(trial.status, trial.reason) for trial in journal.trials] == [("timeout", told), ("ok", "")]


KILLED = archive({"exit_status": b"137\n", "stdout": b"", "stderr": b"Killed\n", "kernel": b""})
NO_SPACE = archive({"exit_status": b"1\n", "stdout": b"", "stderr": b"dd: No space left on device\n"})


class Giving(ScriptedBox):
    """A box whose trials give these archives, one after the other, and at last good ones."""

    def __init__(self, *archives: bytes) -> None:
        super().__init__()
        self.archives = list(archives)

    def output(self, name: str) -> bytes:
        return self.archives.pop(0) if name == "trial" and self.archives else super().output(name)


class GivingTo(ScriptedBox):
    """A box whose trials give these archives by file system, and at last good ones."""

    def __init__(self, archives: dict[str, list[bytes]]) -> None:
        super().__init__()
        self.archives = archives

    def run(self, argv: Sequence[str], *, timeout_s: float = 60.0, root: bool = False) -> Completed:
        done = super().run(argv, timeout_s=timeout_s, root=root)
        waiting = next((given for name, given in self.archives.items() if f"/mnt/{name}" in " ".join(argv)), [])
        return replace(done, stdout=waiting.pop(0)) if self.name(argv) == "trial" and waiting else done


def test_a_trial_that_failed_for_a_passing_reason_is_tried_again_at_once_and_is_in_the_journal_once() -> None:
    box, journal = Giving(KILLED), Memory()
    run_sweep(plan({"tmpfs": TMPFS}), box, journal, Silent())
    assert box.calls[4:7] == ["trial", "trial", "umount"]
    (trial,) = journal.trials
    assert (trial.status, trial.reason, trial.attempts, trial.set_aside) == ("ok", "", 2, False)
    kept = journal.files[trial.trial_id]
    assert kept["attempt-1/stderr"] == b"Killed\n"
    assert kept["attempt-1/reason"].startswith(b"dd was killed by SIGKILL")
    assert kept["stderr"] == SUMMARY


LATE = archive({"exit_status": b"124\n", "stdout": b"", "stderr": b""})


def test_a_trial_that_ran_into_its_limit_is_an_outcome_and_is_never_repeated() -> None:
    """Defect: drawn again, the slow trials were left out of the mean."""
    box, journal = Giving(GOOD, LATE, GOOD, LATE), Memory()
    run_sweep(plan({"tmpfs": TMPFS}, repeats=5, retries=5), box, journal, Silent())
    assert box.calls.count("trial") == 5
    assert [trial.status for trial in journal.trials] == ["ok", "timeout", "ok", "timeout", "ok"]
    assert {(trial.attempts, trial.set_aside) for trial in journal.trials} == {(1, False)}


def test_an_attempt_that_was_killed_and_then_ran_into_the_limit_is_a_timeout() -> None:
    journal = Memory()
    run_sweep(plan({"tmpfs": TMPFS}, retries=5), Giving(KILLED, LATE), journal, Silent())
    assert [(trial.status, trial.attempts) for trial in journal.trials] == [("timeout", 2)]


@pytest.mark.parametrize("stopped_after", [1, 2, 5])
def test_a_cell_whose_first_trials_all_run_into_the_limit_does_not_burn_the_night(stopped_after: int) -> None:
    """Also where the run is stopped in between and resumed."""
    design = {"repeats": 5, "retries": 5}
    box, whole, journal = Giving(*[LATE] * 5), Memory(), Memory()
    run_sweep(plan({"tmpfs": TMPFS}, **design), box, whole, Silent())
    journal.trials = whole.trials[:stopped_after]
    run_sweep(plan({"tmpfs": TMPFS}, **design), Giving(*[LATE] * 5), journal, Silent())
    for trials in (whole.trials, journal.trials):
        assert [trial.status for trial in trials] == ["timeout", "timeout", *["skipped"] * 3]
        assert trials[2].reason.startswith("set aside: t0002 timeout: ran longer than 60 s")


@pytest.mark.slow
def test_two_trials_in_a_row_without_luck_in_any_attempt_set_their_cell_aside_and_no_other() -> None:
    killed = {"tmpfs": [KILLED] * 6}
    box, journal = GivingTo(killed), Memory()
    run_sweep(plan({"tmpfs": TMPFS, "ext4": PLAIN}, repeats=4, retries=2), box, journal, Silent())
    own, others = ([one for one in journal.trials if (one.filesystem == "tmpfs") == mine] for mine in (True, False))
    assert [trial.status for trial in own] == ["failed", "failed", "skipped", "skipped"]
    assert [(trial.attempts, trial.exhausted, trial.set_aside) for trial in own[:2]] == [
        (3, True, False),
        (3, True, True),
    ]
    assert own[0].reason.startswith("dd was killed by SIGKILL: Killed (the last of 3 attempts)")
    assert {trial.reason for trial in own[2:]} == {
        f"set aside: {own[1].trial_id} failed: dd was killed by SIGKILL: Killed (the last of 3 attempts)"
    }
    assert [trial.status for trial in others] == ["ok"] * 4
    mounts = [name for name in box.calls if name == "mount"]
    assert len(mounts) == 6, "nothing is made for a cell that was set aside"


@pytest.mark.parametrize("stopped_after", [0, 1, 2])
def test_exhausted_trials_that_are_not_in_a_row_set_nothing_aside(stopped_after: int) -> None:
    """A single accident cost a cell all of its later trials. Also where the run is resumed in between."""
    archives, whole, journal = [KILLED, KILLED, GOOD, KILLED, KILLED], Memory(), Memory()
    run_sweep(plan({"tmpfs": TMPFS}, repeats=4), Giving(*archives), whole, Silent())
    journal.trials = whole.trials[:stopped_after]
    given_before = {0: 0, 1: 2, 2: 3}[stopped_after]
    run_sweep(plan({"tmpfs": TMPFS}, repeats=4), Giving(*archives[given_before:]), journal, Silent())
    for trials in (whole.trials, journal.trials):
        assert [trial.status for trial in trials] == ["failed", "ok", "failed", "ok"]
        assert [trial.exhausted for trial in trials] == [True, False, True, False]
        assert not any(trial.set_aside for trial in trials)


def test_after_a_measurement_the_journal_is_not_read_again() -> None:
    """Defect: each trial read and checked all lines before it: time with the square of the trials."""

    class Read(Memory):
        times = 0

        def recorded_trials(self) -> list[Trial]:
            self.times += 1
            return super().recorded_trials()

    journal = Read()
    run_sweep(plan({"tmpfs": TMPFS}, repeats=5), Giving(), journal, Silent())
    assert len(journal.trials) == 5
    assert journal.times == 1, "at the start, for what an earlier session has left"


def test_a_failure_that_stays_is_not_tried_again() -> None:
    box, journal = Giving(NO_SPACE), Memory()
    run_sweep(plan({"tmpfs": TMPFS}, repeats=3, retries=5), box, journal, Silent())
    assert box.calls.count("trial") == 1
    assert [(trial.status, trial.attempts) for trial in journal.trials] == [
        ("failed", 1),
        ("skipped", 1),
        ("skipped", 1),
    ]


def test_what_is_no_fault_of_the_cell_sets_nothing_aside() -> None:
    box, journal = Giving(archive({"refused": b"no tmpfs is mounted on /x\n"})), Memory()
    run_sweep(plan({"tmpfs": TMPFS}, repeats=2), box, journal, Silent())
    assert [(trial.status, trial.attempts) for trial in journal.trials] == [("invalid", 1), ("ok", 1)]


def test_a_resumed_run_knows_from_the_journal_which_cells_were_set_aside() -> None:
    """Stopped right after the failure, before any trial was skipped because of it."""
    whole, journal, resumed = Memory(), Memory(), Giving()
    run_sweep(plan({"tmpfs": TMPFS}, repeats=3), Giving(NO_SPACE), whole, Silent())
    journal.trials = whole.trials[:1]
    run_sweep(plan({"tmpfs": TMPFS}, repeats=3), resumed, journal, Silent())
    assert resumed.calls == ["open", "close"]
    assert [(each.trial_id, each.status, each.reason) for each in journal.trials] == [
        (each.trial_id, each.status, each.reason) for each in whole.trials
    ]


def test_a_script_that_was_killed_is_collected_and_tried_again() -> None:
    box, journal = ScriptedBox(trial=[137]), Memory()
    run_sweep(plan({"tmpfs": TMPFS}), box, journal, Silent())
    assert box.calls[4:9] == ["trial", "kill", "collect", "trial", "umount"]
    assert [(trial.status, trial.attempts) for trial in journal.trials] == [("ok", 2)]
    assert journal.files["t0001"]["attempt-1/stderr"] == b"it says why"


def test_a_lost_box_ends_the_run_after_the_undoing_was_tried() -> None:
    box, journal = ScriptedBox(trial=[BoxError("the connection was lost")]), Memory()
    with pytest.raises(BoxError, match="the connection was lost"):
        run_sweep(plan({"tmpfs": TMPFS}, repeats=2), box, journal, Silent())
    assert box.calls[4:] == ["trial", "umount", "rmdir", "close"]
    assert journal.trials == []


# --- a box that is restarted ------------------------------------------------------------------------------------------

RESTARTED = "the box was started again meanwhile"
TMPFS_SETUP, TMPFS_UNDO = ["mkdir", "mount", "evidence"], ["umount", "rmdir"]
AGAIN = ["id", "clean", "open"]


class Told(Silent):
    def __init__(self) -> None:
        self.notices: list[str] = []

    def notice(self, text: str) -> None:
        self.notices.append(text)


# --- file systems that a tool has spoilt ------------------------------------------------------------------------------

WROTE = {"exit_status": b"0\n", "stdout": b"", "stderr": SUMMARY}
SPOILT = archive({**WROTE, "mount_spoilt": b"tmpfs 0:50 / rw src rw\ntmpfs 0:50 / rw src ro\n"})
CONTAINED = archive({**WROTE, "mount_changed": b"tmpfs 0:50 / rw src rw\n\n"})
REFUSED = archive({"refused": b"mkdir: cannot create directory 'x': Input/output error\n"})
MADE = ["mkdir", "mount", "evidence"]
UNDONE = ["umount", "rmdir"]


@pytest.mark.parametrize("fresh", ["block", "never"])
def test_a_file_system_that_a_tool_has_spoilt_is_made_again_for_the_other_cells(fresh: str) -> None:
    box, journal, progress = Giving(SPOILT), Memory(), Told()
    run_sweep(plan({"tmpfs": TMPFS}, workloads=("a", "b"), repeats=2, fresh_filesystem=fresh), box, journal, progress)
    first, second, *later = journal.trials
    assert (first.status, first.set_aside, second.status) == ("invalid", True, "ok")
    assert "the tool changed what is mounted on the directory under test" in first.reason
    assert "tmpfs 0:50 / rw src ro" in first.reason
    assert {trial.cell: trial.status for trial in later} == {first.cell: "skipped", second.cell: "ok"}
    made = box.calls.index("evidence", box.calls.index("trial") - 1)
    assert box.calls[made : made + 8] == ["evidence", "trial", *UNDONE, *MADE, "trial"]
    assert progress.notices == ["tmpfs: a tool left it unfit for use; it is made again"]


def test_what_a_tool_did_in_a_mount_namespace_of_its_own_spoils_its_trial_and_nothing_else() -> None:
    box, journal = Giving(CONTAINED), Memory()
    run_sweep(plan({"tmpfs": TMPFS}, workloads=("a", "b")), box, journal, Silent())
    assert [trial.status for trial in journal.trials] == ["invalid", "ok"]
    assert "the tool unmounted the directory under test" in journal.trials[0].reason
    assert box.calls.count("mount") == 1 + box.calls.count("strict")


def test_a_trial_that_is_refused_where_another_one_ran_is_tried_once_more_on_a_new_file_system() -> None:
    """A file system that shut itself down after the last look at it."""
    box, journal, progress = Giving(GOOD, REFUSED), Memory(), Told()
    run_sweep(plan({"tmpfs": TMPFS}, repeats=2, fresh_filesystem="never"), box, journal, progress)
    assert progress.notices == ["tmpfs: t0002 found it unfit for use; it is made again"]
    assert [trial.status for trial in journal.trials] == ["ok", "ok"]
    assert box.calls[4:] == ["trial", "trial", *UNDONE, *MADE, "trial", *UNDONE, "close"]


def test_an_attempt_after_one_that_left_its_file_system_unfit_is_made_on_a_new_one() -> None:
    box, journal = Giving(KILLED, REFUSED), Memory()
    run_sweep(plan({"tmpfs": TMPFS}, fresh_filesystem="never"), box, journal, Silent())
    assert [trial.status for trial in journal.trials] == ["ok"]
    assert box.calls.count("trial") == 3


def test_a_trial_that_is_refused_on_a_new_file_system_is_invalid() -> None:
    box, journal = Giving(GOOD, REFUSED, REFUSED), Memory()
    run_sweep(plan({"tmpfs": TMPFS}, repeats=2, fresh_filesystem="never"), box, journal, Silent())
    assert [trial.status for trial in journal.trials] == ["ok", "invalid"]


@pytest.mark.parametrize("before", ["spoilt", "restarted"])
def test_a_file_system_that_was_made_again_is_a_new_one(before: str) -> None:
    """What a trial on it refuses is not tried once more."""
    box, journal = Giving(SPOILT if before == "spoilt" else GOOD, REFUSED), Memory()
    box.script["trial"] = [0, BoxRestarted(RESTARTED)] if before == "restarted" else []
    workloads = ("a", "b") if before == "spoilt" else ("a",)
    repeats = 1 if before == "spoilt" else 3
    run_sweep(
        plan({"tmpfs": TMPFS}, workloads=workloads, repeats=repeats, fresh_filesystem="never"), box, journal, Silent()
    )
    between = ["failed"] if before == "restarted" else []
    assert [trial.status for trial in journal.trials[1:]] == [*between, "invalid"]


def test_a_restart_fails_the_trial_that_it_interrupts_and_the_block_goes_on_with_file_systems_made_again() -> None:
    box, journal, told = ScriptedBox(trial=[BoxRestarted(RESTARTED)]), Memory(), Told()
    run_sweep(plan({"tmpfs": TMPFS}, repeats=2), box, journal, told)
    one = [*TMPFS_SETUP, "trial", *TMPFS_UNDO]
    assert box.calls == ["open", *one, *AGAIN, *one, "close"]
    assert [(trial.trial_id, trial.status, trial.reason) for trial in journal.trials] == [
        ("t0001", "failed", RESTARTED),
        ("t0002", "ok", ""),
    ]
    assert told.notices == [f"{RESTARTED}; its file systems are made again"]


def test_a_restart_while_a_file_system_is_made_costs_no_trial() -> None:
    box, journal = ScriptedBox(mount=[BoxRestarted(RESTARTED)]), Memory()
    run_sweep(plan({"tmpfs": TMPFS}), box, journal, Silent())
    assert box.calls == ["open", "mkdir", "mount", "rmdir", *AGAIN, *TMPFS_SETUP, "trial", *TMPFS_UNDO, "close"]
    assert [trial.status for trial in journal.trials] == ["ok"]


def test_a_file_system_whose_making_restarts_the_box_again_and_again_fails_its_own_trials_only() -> None:
    crashing = [BoxRestarted(RESTARTED)] * 99
    box, journal = ScriptedBox(mke2fs=crashing), Memory()
    run_sweep(plan({"ext4": PLAIN, "tmpfs": TMPFS}), box, journal, Silent())
    assert {trial.filesystem: trial.status for trial in journal.trials} == {"ext4": "failed", "tmpfs": "ok"}
    assert box.calls.count("mke2fs") == 3


def test_trials_that_restart_the_box_fail_by_themselves_and_not_those_after_them() -> None:
    box, journal = ScriptedBox(trial=[BoxRestarted(RESTARTED)] * 3), Memory()
    run_sweep(plan({"tmpfs": TMPFS}, workloads=("a", "b", "c", "d")), box, journal, Silent())
    assert [trial.status for trial in journal.trials] == ["failed", "failed", "failed", "ok"]


def test_file_systems_that_last_are_made_again_once_each_after_a_restart() -> None:
    box, journal = ScriptedBox(trial=[0, BoxRestarted(RESTARTED)]), Memory()
    run_sweep(plan({"tmpfs": TMPFS}, repeats=3, fresh_filesystem="never"), box, journal, Silent())
    life = [*TMPFS_SETUP, "trial", "trial", *TMPFS_UNDO]
    assert box.calls == ["open", *life, *AGAIN, *TMPFS_SETUP, "trial", *TMPFS_UNDO, "close"]
    assert [trial.status for trial in journal.trials] == ["ok", "failed", "ok"]


def test_the_boxs_own_view_of_a_file_system_without_options_is_not_asked_for_again_after_a_restart() -> None:
    box = ScriptedBox(trial=[BoxRestarted(RESTARTED)])
    run_sweep(plan({"ext4": EXT4}, repeats=2), box, Memory(), Silent())
    assert box.calls.count("strict") == 1


def test_ctrl_c_while_the_box_restarts_ends_the_run() -> None:
    def both() -> None:
        os.kill(os.getpid(), signal.SIGINT)
        raise BoxRestarted(RESTARTED)

    box = ScriptedBox(mount=[both])
    with pytest.raises(KeyboardInterrupt):
        run_sweep(plan({"tmpfs": TMPFS}), box, Memory(), Silent())
    assert box.calls == ["open", "mkdir", "mount", "rmdir", "close"]


# --- being asked to stop ----------------------------------------------------------------------------------------------


def test_ctrl_c_during_a_trial_kills_the_tool_and_undoes_everything() -> None:
    box, journal = ScriptedBox(trial=[lambda: os.kill(os.getpid(), signal.SIGINT)]), Memory()
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        run_sweep(plan({"tmpfs": TMPFS}, repeats=2), box, journal, Silent())
    assert box.calls[4:] == ["trial", "kill", "umount", "rmdir", "close"]
    assert journal.trials == []
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_between_mkfs_and_mount_takes_effect_when_the_mount_can_be_undone() -> None:
    """A mount that is interrupted half-way would be left behind."""
    box = ScriptedBox(mount=[lambda: os.kill(os.getpid(), signal.SIGINT)])
    with pytest.raises(KeyboardInterrupt):
        run_sweep(plan({"ext4": PLAIN}), box, Memory(), Silent())
    assert box.calls == ["open", *EXT4_SETUP, "kill", *EXT4_UNDO, "close"]


def test_trials_that_the_journal_holds_are_not_run_again() -> None:
    """A resume that skips what did not run and repeats what did."""
    box, journal = ScriptedBox(), Memory(done=["t0001"])
    run_sweep(plan({"tmpfs": TMPFS}, repeats=2), box, journal, Silent())
    assert [trial.trial_id for trial in journal.trials] == ["t0002"]
    assert box.calls.count("mount") == 1
    whole = ScriptedBox()
    run_sweep(plan({"tmpfs": TMPFS}, fresh_filesystem="never"), whole, Memory(done=["t0001"]), Silent())
    assert whole.calls == ["open", "close"], "nothing is made for trials that are done"


def test_with_fresh_never_every_file_system_is_made_once_and_stays_until_the_end() -> None:
    box = ScriptedBox()
    run_sweep(plan({"tmpfs": TMPFS, "ext4": PLAIN}, repeats=2, fresh_filesystem="never"), box, Memory(), Silent())
    tmpfs = ["mkdir", "mount", "evidence"]
    assert box.calls == ["open", *tmpfs, *EXT4_SETUP, *["trial"] * 4, *EXT4_UNDO, "umount", "rmdir", "close"]


def test_a_lasting_file_system_that_fails_fails_its_own_trials_only() -> None:
    box, journal = ScriptedBox(mke2fs=[1]), Memory()
    run_sweep(plan({"tmpfs": TMPFS, "ext4": PLAIN}, repeats=2, fresh_filesystem="never"), box, journal, Silent())
    by_status = sorted((trial.filesystem, trial.status) for trial in journal.trials)
    assert by_status == [("ext4", "failed")] * 2 + [("tmpfs", "ok")] * 2
    assert box.calls[-3:] == ["umount", "rmdir", "close"]


def test_a_control_that_fails_is_undone_and_the_run_goes_on_without_it() -> None:
    box, journal = ScriptedBox(strict=[1]), Memory()
    run_sweep(plan({"ext4": EXT4}), box, journal, Silent())
    assert box.calls[1:10] == [*CONTROL[:5], "rmdir", "detach", "rm", "image"]
    assert [trial.status for trial in journal.trials] == ["ok"]


def test_the_second_making_without_options_is_kept_beside_the_first() -> None:
    packed = {**EXT4, "options": [], "mkfs": ["-E", "packed_meta_blocks=1"]}
    journal = Memory()
    run_sweep(plan({"ext4": packed}), ScriptedBox(), journal, Silent())
    assert journal.mounts == ["c-ext4", "again-ext4", journal.trials[0].mount]
    assert [trial.status for trial in journal.trials] == ["ok"]


class RamfsBox(ScriptedBox):
    """Takes every option, as ramfs does."""

    def output(self, name: str) -> bytes:
        return b"accepts\n" if name == "strict" else super().output(name)


def test_an_option_that_the_kernel_ignored_fails_the_trials_and_says_so() -> None:
    """Trap: ramfs takes data=writeback, and returns 0."""
    filesystems = {"ramfs": {**TMPFS, "type": "ramfs", "options": ["data=writeback"]}}
    box, journal = RamfsBox(), Memory()
    run_sweep(plan(filesystems), box, journal, Silent())
    assert "trial" not in box.calls
    assert box.calls[-3:] == ["umount", "rmdir", "close"]
    (trial,) = journal.trials
    assert trial.status == "failed"
    for part in (
        "ramfs: not in effect as asked: data=writeback (ignored)",
        "data=writeback: ignored",
        "on_ineffective",
    ):
        assert part in trial.reason
    assert trial.mount in journal.mounts, "the evidence is kept"


def test_as_a_caveat_an_option_that_the_kernel_ignored_lets_the_trials_run() -> None:
    filesystems = {"ramfs": {**TMPFS, "type": "ramfs", "options": ["data=writeback"]}}
    journal = Memory()
    run_sweep(plan(filesystems, on_ineffective="caveat"), RamfsBox(), journal, Silent())
    assert [trial.status for trial in journal.trials] == ["ok"]


@pytest.mark.parametrize("fresh", ["block", "never"])
def test_what_cannot_run_here_is_skipped_with_the_reason_and_nothing_is_made_for_it(fresh: str) -> None:
    box, journal = ScriptedBox(), Memory()
    huge = {"type": "hugetlbfs", "size": "64MiB"}
    run_sweep(plan({"huge": huge}, fresh_filesystem=fresh), box, journal, Silent())
    assert box.calls == ["open", "close"]
    assert [(trial.status, trial.reason[:27]) for trial in journal.trials] == [
        ("skipped", "hugetlbfs has no write(): i")
    ]


def scratch_plan(repeats: int = 1) -> Plan:
    resolved = sweep(filesystems={"ext4": {"type": "ext4", "device": "data"}}, design={"repeats": repeats})
    box = replace(LOCAL, scratch=(ScratchDevice(name="data", device="/dev/disk/by-id/x"),))
    facts = known(FACTS, device_ids={"data": "8:16,x"})
    return make_plan(resolved.sweep, box, facts, run_id="R", owner="me", seed=1)


def test_a_scratch_device_is_looked_at_first_and_again_as_it_is_formatted() -> None:
    box = ScriptedBox()
    run_sweep(scratch_plan(), box, Memory(), Silent())
    assert box.calls[:5] == ["open", "guard", "guarded mke2fs", "mkdir", "mount"]


class Overwriting(ScriptedBox):
    """Notes what each mkfs on the device was permitted to write over."""

    permitted: tuple[str, ...] = ()

    def run(self, argv: Sequence[str], **more: Any) -> Completed:
        if self.name(argv).startswith("guarded"):
            self.permitted = (*self.permitted, argv[[*argv].index("guard.sh") + 2])
        return super().run(argv, **more)


def test_a_device_whose_mkfs_was_cut_off_by_a_restart_is_formatted_again_and_then_guarded_as_before() -> None:
    """It carries no signature then, and is not blank: the guard would refuse it."""
    box, journal = Overwriting(guarded=[0, BoxRestarted(RESTARTED), 1]), Memory()
    run_sweep(scratch_plan(repeats=4), box, journal, Silent())
    assert [trial.status for trial in journal.trials] == ["ok", "failed", "ok", "ok"]
    assert box.permitted == ("", "", "-", "-", "")


def test_a_restart_at_any_other_step_permits_nothing() -> None:
    box = Overwriting(trial=[BoxRestarted(RESTARTED)], mount=[0, BoxRestarted(RESTARTED)])
    run_sweep(scratch_plan(repeats=3), box, Memory(), Silent())
    assert {*box.permitted} == {""}
    assert len(box.permitted) == 4


@pytest.mark.parametrize(
    ("said", "error"),
    [(b"refused: /dev/sdb is mounted on /home\n", UnsafeError), (b"mke2fs: No space left on device\n", None)],
)
def test_the_guard_s_second_no_ends_the_run_and_a_failed_mkfs_does_not(
    said: bytes, error: type[Exception] | None
) -> None:
    class Says(ScriptedBox):
        def run(self, argv: Sequence[str], **more: Any) -> Completed:
            done = super().run(argv, **more)
            return Completed(done.argv, done.exit_status, b"", said, 0.0) if done.exit_status else done

    box, journal = Says(guarded=[1]), Memory()
    if error is None:
        run_sweep(scratch_plan(), box, journal, Silent())
        assert "No space left on device" in journal.trials[0].reason
    else:
        with pytest.raises(error) as caught:
            run_sweep(scratch_plan(), box, journal, Silent())
        assert "/dev/sdb is mounted on /home" in str(caught.value)
    assert box.calls[-1] == "close"


def test_a_mount_that_is_refused_says_what_the_kernel_logged() -> None:
    """Trap: mount says 'wrong fs type, bad option, bad superblock' of everything; the reason is in the kernel's log."""

    class Says(ScriptedBox):
        def run(self, argv: Sequence[str], **more: Any) -> Completed:
            done = super().run(argv, **more)
            logged = b"==> elapsed_ns <==\n1\n==> kernel <==\nEXT4-fs (loop9): can't mount with data=\n"
            return Completed(done.argv, 32, logged, b"mount: wrong fs type", 0.0) if done.exit_status else done

    journal = Memory()
    run_sweep(plan({"ext4": PLAIN}), Says(mount=[32]), journal, Silent())
    (trial,) = journal.trials
    for part in ("mount: wrong fs type", "the kernel logged:", "EXT4-fs (loop9): can't mount with data="):
        assert part in trial.reason
    assert "elapsed_ns" not in trial.reason


def test_a_tool_that_fails_is_a_failed_trial_with_its_own_words() -> None:
    failed = archive({"exit_status": b"1\n", "stdout": b"", "stderr": b"dd: No space left on device\n"})
    journal = Memory()
    run_sweep(plan({"tmpfs": TMPFS}, retries=0), Giving(failed), journal, Silent())
    assert journal.trials[0].status == "failed"
    assert "dd failed with exit status 1" in journal.trials[0].reason
    assert "No space left on device" in journal.trials[0].reason


def test_an_archive_that_is_cut_off_is_a_failed_trial_and_what_came_is_kept() -> None:
    for cut in (0, 700, len(GOOD) // 2 + 100):
        assert unpack(GOOD[:cut]) == ({"archive": GOOD[:cut]} if cut else {}) or "exit_status" in unpack(GOOD[:cut])
    for none in (b"not a tar at all", gzip.compress(GOOD)):
        assert unpack(none) == {"archive": none}


def test_only_plain_files_leave_an_archive(tmp_path: Path) -> None:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        link = tarfile.TarInfo("./link")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        tar.addfile(link)
        for name in ("../up", "/etc/absolute", "./sub/file", ".", "..", "./good"):
            member = tarfile.TarInfo(name)
            member.size = 2
            tar.addfile(member, io.BytesIO(b"ok"))
    assert unpack(out.getvalue()) == {"good": b"ok"}


# --- states -----------------------------------------------------------------------------------------------------------

AGED = {"aged": {"fill": "80%", "churn": 2}}
STATED = {"type": "ext4", "image": "128MiB", "state": ["aged"]}
READ = [
    "==> df <==\n/dev/loop9 100000 20000 80000 20% /mnt\n==> files <==\n7\n",
    "capacity 1000\nfill 0.8\nfiles 7\nwritten 2800\nage 2.8\nrounds 3\nlargest 9\nseed 1\ndigest d1\n",
]
SAID = {"state_evidence": READ[0].encode(), "age": READ[1].encode(), "keep_state": b"5a5a\n"}
MADE_AND_KEPT = [
    *("image", "losetup --find", "mke2fs", "state_evidence", "mkdir", "mount", "evidence", "state_evidence", "mkdir"),
    *("age", "state_evidence", "umount", "rmdir", "state_evidence", "keep_state", "detach"),
]
"""A state is kept on the image that it was made on: what goes is its loop device."""
RESTORED = ["timed", "losetup --find", "keep_state", "mkdir", "mount", "evidence", "trial", *EXT4_UNDO]
"""The image is a copy, its blocks are compared, and no mkfs runs."""


def stated_plan(filesystem: Mapping[str, Any], states: Mapping[str, Any] = AGED, **design: Any) -> Plan:
    resolved = sweep(
        filesystems={"ext4": dict(filesystem)}, states=dict(states), design={"repeats": 1, "warmup": 0, **design}
    )
    return make_plan(resolved.sweep, LOCAL, FACTS, run_id="R", owner="me", seed=1)


def test_a_state_is_made_before_the_first_trial_and_restored_before_each_mount() -> None:
    box, journal = ScriptedBox(said=SAID), Memory()
    run_sweep(stated_plan(STATED, repeats=2), box, journal, Silent())
    assert box.calls == ["open", *MADE_AND_KEPT, *RESTORED, *RESTORED, "rm", "rm", "close"]
    assert [trial.status for trial in journal.trials] == ["ok", "ok"]
    assert journal.mounts[0] == "s-ext4-aged"
    began = {json.loads(journal.of_mounts[trial.mount]["state.json"])["identity"] for trial in journal.trials}
    assert began == {"5a5a"}


@every_row(("failing", "undone"), [("age", ["umount", "rmdir", "detach", "rm"]), ("mke2fs", ["detach", "rm"])])
def test_a_state_that_is_not_reached_fails_its_trials_and_nothing_else(failing: str, undone: list[str]) -> None:
    both = {**STATED, "state": ["fresh", "aged"]}
    box, journal = ScriptedBox(said=SAID, **{failing: [3]}), Memory()
    run_sweep(stated_plan(both), box, journal, Silent())
    before = box.calls[: box.calls.index("image", 2) if "image" in box.calls[2:] else len(box.calls)]
    assert before == ["open", *MADE_AND_KEPT[: MADE_AND_KEPT.index(failing) + 1], *undone]
    by_state = {trial.factors["state"]: (trial.status, trial.reason) for trial in journal.trials}
    assert by_state["fresh"] == ("ok", "")
    assert by_state["aged"][0] == "failed"
    assert "exit status 3" in by_state["aged"][1]
    assert "it says why" in by_state["aged"][1]


def test_blocks_that_are_not_those_that_were_kept_fail_the_trials_of_the_mount() -> None:
    box, journal = ScriptedBox(said=SAID, keep_state=[0, 1]), Memory()
    run_sweep(stated_plan(STATED, repeats=2), box, journal, Silent())
    assert [trial.status for trial in journal.trials] == ["failed", "ok"]
    assert "it says why" in journal.trials[0].reason


def test_another_making_from_the_same_seed_has_the_same_files_or_its_trials_fail() -> None:
    journal = Memory()
    journal.of_mounts["s-ext4-aged"] = {"age.txt": READ[1].replace("d1", "d2").encode()}
    run_sweep(stated_plan(STATED), ScriptedBox(said=SAID), journal, Silent())
    (trial,) = journal.trials
    assert trial.status == "failed"
    assert "the state aged is not what it was" in trial.reason
    assert "d1" in trial.reason


ON_TWO = {"type": "btrfs", "image": "256MiB", "members": 2, "state": "aged"}
MADE_AGAIN = [
    *("mkfs.btrfs", "state_evidence", "mkdir", "mount", "evidence", "state_evidence", "mkdir", "age", "state_evidence"),
    *("umount", "rmdir", "state_evidence", "mkdir", "mount", "evidence", "trial", "umount", "rmdir"),
]
"""Nothing is kept, and no checksum of blocks is computed: the digest of the files tells."""


def test_on_several_devices_each_mount_makes_the_state_again_from_its_seed() -> None:
    box, journal = ScriptedBox(said=SAID), Memory()
    run_sweep(stated_plan(ON_TWO, repeats=2), box, journal, Silent())
    assert [trial.status for trial in journal.trials] == ["ok", "ok"], [trial.reason for trial in journal.trials]
    assert "keep_state" not in box.calls
    starts = [number for number, call in enumerate(box.calls) if call == "mkfs.btrfs"]
    assert [box.calls[start : start + len(MADE_AGAIN)] for start in starts] == [MADE_AGAIN, MADE_AGAIN]
    began = [json.loads(journal.of_mounts[trial.mount]["state.json"]) for trial in journal.trials]
    assert [(state["identity"], state["digest"]) for state in began] == [("", "d1"), ("", "d1")]


def test_a_state_in_a_pool_is_made_again_on_the_capacity_that_the_first_making_had() -> None:
    in_pool = {"type": "zfs", "image": "128MiB", "state": ["aged"]}
    given = []

    class Pool(ScriptedBox):
        def run(self, argv: Sequence[str], *, timeout_s: float = 60.0, root: bool = False) -> Completed:
            given.extend([argv[-1]] if "age.sh" in argv else [])
            return super().run(argv, timeout_s=timeout_s, root=root)

    journal = Memory()
    run_sweep(stated_plan(in_pool, repeats=2), Pool(said=SAID), journal, Silent())
    assert given == ["", "1000"]


ON_THIN = {
    "type": "ext4",
    "image": "256MiB",
    "stack": [{"layer": "lvm", "kind": "thin", "chunk": "64KiB", "volume": "64MiB"}],
    "state": ["few"],
}
FEW = {"few": {"fill": "10%", "snapshots": 3, "change": "5%"}}


class Volume(ScriptedBox):
    """A thin volume of LVM; `given` are the words of each call of a script, by its name."""

    def run(self, argv: Sequence[str], *, timeout_s: float = 60.0, root: bool = False) -> Completed:
        self.given = [*getattr(self, "given", []), [word for word in argv if "\n" not in word]]
        return super().run(argv, timeout_s=timeout_s, root=root)


def test_snapshots_of_a_volume_are_taken_of_the_layer_below_it_on_the_capacity_of_the_first_making() -> None:
    box, journal = Volume(said=SAID), Memory()
    run_sweep(stated_plan(ON_THIN, FEW, repeats=2), box, journal, Silent())
    assert [trial.status for trial in journal.trials] == ["ok", "ok"], [trial.reason for trial in journal.trials]
    taken = [words[words.index("snapshots.sh") + 2 :] for words in box.given if "snapshots.sh" in words]
    made = [words[words.index("lvm") + 1] for words in box.given if "make" in words and "layer.sh" in words]
    assert [(words[:5], words[-1]) for words in taken] == [(["3", "0.05", "1", "1000", "0.1"], uuid) for uuid in made]


def test_what_a_snapshot_that_failed_has_suspended_goes_on_before_anything_is_unmounted() -> None:
    box, journal = Volume(said=SAID, snapshots=[3]), Memory()
    run_sweep(stated_plan(ON_THIN, FEW), box, journal, Silent())
    assert [trial.status for trial in journal.trials] == ["failed"]
    failed = next(at for at, words in enumerate(box.given) if "snapshots.sh" in words)
    assert ("resume" in box.given[failed + 1], box.given[failed + 2][0]) == (True, "umount")


def test_what_a_resumed_run_wants_no_trial_of_is_not_made() -> None:
    planned = stated_plan(STATED)
    box, journal = ScriptedBox(said=SAID), Memory(done=[trial.trial_id for trial in planned.trials])
    run_sweep(planned, box, journal, Silent())
    assert box.calls == ["open", "close"]
