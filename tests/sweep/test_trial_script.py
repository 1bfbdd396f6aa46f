"""The script of one trial, run for real in a directory: no root, no mount, no network."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from facts import known
from installed_programs import program
from mountlab.analysis.memory_use import filled
from mountlab.box.containment import CGROUPS
from mountlab.core.errors import in_one_line
from mountlab.core.places import SHIPPED
from mountlab.core.shell import script_argv, script_text
from mountlab.core.trial_files import TrialFiles
from mountlab.core.units import MIB, NS_PER_S
from mountlab.filesystems.counters import Extents, around
from mountlab.filesystems.counters_over_time import over_time
from mountlab.outcome.archive import unpack
from mountlab.outcome.judging import Outcome, ScriptExit, judge
from mountlab.programs.parsing import parsed
from mountlab.sweep.plan import Plan, PlannedTrial
from mountlab.sweep.planner import make_plan
from repetition import others_long
from sweep.test_plan import BOX, FACTS
from sweeps import DIR, TMPFS, sweep
from waiting import wait_until

RUN = f"r{os.getpid()}"
"""Of each worker its own: cgroups have its name, and what is left of it is killed wherever it is on this machine."""
WRITE = {"tool": "dd", "direction": "write", "bs": "64KiB", "count": 2}
READ = {"tool": "dd", "direction": "read", "bs": "64KiB", "count": 2, "cache": "as_is"}
TICK = 0.01 + 1e-9
"""The uptime of a box is in hundredths of a second: a time between two of them is up to one less than what went by."""
COUNTERS = {"before.txt", "after.txt", "started_ns", "ended_ns", "uptime"}
ALWAYS = COUNTERS | {"contained_by", "exit_status", "stdout", "stderr", "st_dev", "prepare.log", "warm.log"}


PROGRAMS = ("sh", "ls", "md5sum", "truncate")
"""Of this machine, for workloads of the tool `command`."""


class Machine:
    """Runs the commands of a plan here. `sync` does nothing: it would wait for the whole machine; and what the
    machine's kernel says is not of these tests."""

    time_limit_s = 60
    piped = False
    without_cgroups = False

    def __init__(self, path: Path) -> None:
        self.mount_root, self.output_root, programs = path / "mr" / "root", path / "out" / "root", path / "bin"
        for directory in (self.mount_root.parent, self.output_root.parent, programs):
            directory.mkdir()
        self.programs = programs
        self.program("sync", "#!/bin/sh\n")
        self.program("dmesg", "#!/bin/sh\n")
        self.environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "LC_ALL": "C"}

    def program(self, name: str, text: str) -> None:
        """Put a program of our own in the place of the machine's."""
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(0o755)

    def plan(self, **more: Any) -> Plan:
        given = {
            "filesystems": {"d": DIR},
            "workloads": {"w": WRITE},
            "design": {"repeats": 1, "drop_caches": False},
            **more,
        }
        programs = {**FACTS.programs.installed, **{name: {} for name in PROGRAMS}}
        roots = {"mount_root": str(self.mount_root), "output_root": str(self.output_root)}
        facts = known(FACTS, **roots, programs=programs)
        return make_plan(sweep(**given).sweep, BOX, facts, run_id=RUN, owner="me", seed=1)

    def run(self, argv: tuple[str, ...]) -> subprocess.CompletedProcess[bytes]:
        """What it prints goes into a file, as on a box (job.sh), unless a test wants a pipe."""
        with tempfile.TemporaryFile() as file:
            done = subprocess.run(
                argv, stdout=subprocess.PIPE if self.piped else file, stderr=subprocess.PIPE, check=False,
                env=self.environment, timeout=self.time_limit_s, input=b"",
            )  # fmt: skip
            if self.piped:
                return done
            file.seek(0)
            return subprocess.CompletedProcess(argv, done.returncode, file.read(), done.stderr)

    def do(self, argv: tuple[str, ...] | None) -> None:
        assert argv is not None
        done = self.run(argv)
        assert done.returncode == 0, done.stderr

    def trial(self, planned: PlannedTrial, script: str | None = None) -> tuple[dict[str, bytes], str, str]:
        """Files that came back, and what the runner says of them."""
        outcome = self.outcome(planned, script)
        return dict(outcome.files), outcome.status, outcome.reason

    def outcome(self, planned: PlannedTrial, script: str | None = None, *, word: str = "") -> Outcome:
        words = (word,) if word else ()
        done = self.run((*planned.argv[:4], script or planned.argv[4], *planned.argv[5:], *words))
        assert done.returncode == 0, done.stderr
        script_exit = ScriptExit(exit_status=0, archive=done.stdout, error_text=done.stderr.decode(errors="replace"))
        return judge(
            planned.cell.workload, unpack(done.stdout), script_exit, timeout_s=planned.command.timeout_s, parse=parsed
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def opened(machine: Machine, **more: Any) -> Plan:
    plan = machine.plan(**more)
    machine.do(plan.opening.argv)
    for step in plan.mounts[0].steps:
        machine.do(step.argv)
    return plan


def left(machine: Machine) -> list[str]:
    """What a trial left in the directories of the run."""
    roots = (machine.mount_root / RUN / "d", machine.output_root / RUN)
    return [path.name for root in roots for path in root.iterdir() if path.name not in (".mountlab", "alive")]


@pytest.mark.slow
def test_a_whole_plan_for_a_directory_runs_and_leaves_nothing(machine: Machine) -> None:
    for argv in machine.plan(workloads={"w": WRITE, "r": READ}, design={"repeats": 2, "drop_caches": False}).commands():
        machine.do(argv)
    assert list(machine.mount_root.parent.iterdir()) == []
    assert list(machine.output_root.parent.iterdir()) == []


def test_a_trial_brings_back_what_it_printed_and_the_counters_around_it(machine: Machine) -> None:
    plan = opened(machine)
    files, status, reason = machine.trial(plan.trials[0])
    assert (status, reason) == ("ok", "")
    assert set(files) == ALWAYS
    assert files["exit_status"] == b"0\n"
    assert b"131072 bytes (131 kB, 128 KiB) copied" in files["stderr"]
    assert files["stdout"] == b""
    for snapshot in ("before.txt", "after.txt"):
        assert b"==> /proc/diskstats <==" in files[snapshot]
        assert b"==> /proc/vmstat <==" in files[snapshot]
    assert int(files["started_ns"]) < int(files["ended_ns"])
    assert left(machine) == []


def test_what_looks_at_the_box_is_in_no_counter_of_the_trial(machine: Machine) -> None:
    """Health logs of drives and states of pools are printed by programs, which read too."""
    planned = opened(machine).trials[0]
    looks = "show_state() { head -c 50000000 /dev/zero | tail -c 1; }"
    files, status, _ = machine.trial(planned, planned.argv[4].replace("show_state() { :; }", looks))
    seen = around({name: data.decode() for name, data in files.items()})
    assert status == "ok"
    assert seen is not None
    assert seen.read_calls is not None
    assert 131072 <= seen.read_calls < 50000000


def test_a_read_prepares_its_file_first_and_keeps_the_log_of_it(machine: Machine) -> None:
    files, status, _ = machine.trial(opened(machine, workloads={"r": READ}).trials[0])
    assert status == "ok"
    assert b"131072 bytes" in files["prepare.log"]
    assert b"131072 bytes" in files["stderr"]


@pytest.mark.slow
@pytest.mark.requires_program("fio")
def test_a_report_file_of_the_tool_comes_back_too(machine: Machine) -> None:
    fio = {"tool": "fio", "rw": "randread", "bs": "4KiB", "size": "64KiB", "direct": False}
    files, status, reason = machine.trial(opened(machine, workloads={"f": fio}).trials[0])
    assert status == "ok" or "less than its clock can tell" in reason
    assert files["fio.json"].lstrip().startswith((b"{", b"fio"))
    assert left(machine) == []


def test_without_the_expected_mount_the_trial_is_refused(machine: Machine) -> None:
    """Trap: a refused mount, then a benchmark on the bare directory: fio ran happily and reported the root disk."""
    plan = machine.plan(filesystems={"t": TMPFS})
    machine.do(plan.opening.argv)
    mountpoint = machine.mount_root / RUN / "mnt" / "t"
    mountpoint.mkdir(parents=True)
    files, status, reason = machine.trial(plan.trials[0])
    assert set(files) == {"refused", "uptime"}
    assert (status, reason) == ("invalid", f"no tmpfs is mounted on {mountpoint}")
    assert list(mountpoint.iterdir()) == []


def test_a_mount_of_another_type_than_expected_is_refused(machine: Machine) -> None:
    plan = machine.plan(filesystems={"t": TMPFS})
    machine.do(plan.opening.argv)
    script = plan.trials[0].argv[4].replace(f"mountpoint={machine.mount_root}/{RUN}/mnt/t", "mountpoint=/proc")
    _, status, reason = machine.trial(plan.trials[0], script)
    assert (status, reason) == ("invalid", "no tmpfs is mounted on /proc")


def test_a_directory_on_another_file_system_is_refused(machine: Machine) -> None:
    """Trap: mounted on one path, measured on another."""
    plan = opened(machine)
    root = machine.mount_root / RUN / "d"
    script = plan.trials[0].argv[4].replace(f"mountpoint={root}\n", "mountpoint=/proc\n")
    _, status, reason = machine.trial(plan.trials[0], script)
    assert (status, reason) == ("invalid", f"{root}/t0001 is not on the file system of /proc")
    assert left(machine) == []


def test_a_directory_that_is_there_already_is_not_measured_in(machine: Machine) -> None:
    plan = opened(machine)
    (machine.mount_root / RUN / "d" / "t0001").mkdir()
    files, status, reason = machine.trial(plan.trials[0])
    assert status == "invalid"
    assert "File exists" in reason
    assert "stderr" not in files


def test_a_preparation_that_fails_is_told_and_nothing_is_measured(machine: Machine) -> None:
    plan = opened(machine, workloads={"r": READ})
    script = plan.trials[0].argv[4].replace("prepare() { dd ", "prepare() { no-such-program ")
    files, status, reason = machine.trial(plan.trials[0], script)
    assert "unprepared" in files
    assert "exit_status" not in files
    assert status == "failed"
    assert reason.startswith("the preparation failed: ")
    assert "no-such-program" in reason
    assert left(machine) == []


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("none", None, "filebench has no workload none on this box; those that it has are in {share}/workloads"),
        (
            "odd",
            'define fileset name=x,path=/tmp\nsystem "rm x"\n',
            "filebench's own workload odd would work outside of our directory, or run a command: "
            'define fileset name=x,path=/tmp;system "rm x";',
        ),
    ],
)
def test_why_an_installed_workload_cannot_be_run_is_in_the_line_of_the_terminal(
    machine: Machine, name: str, text: str | None, why: str
) -> None:
    """Defect: the line began in the middle of a word, since only the end of the reason was kept."""
    machine.program("filebench", "#!/bin/sh\nexit 1\n")
    share = machine.programs.parent / "share" / "filebench"
    (share / "workloads").mkdir(parents=True, exist_ok=True)
    if text is not None:
        (share / "workloads" / f"{name}.f").write_text(text)
    entry = {"tool": "filebench", "installed": name, "space": "1MiB", "runtime": "1s"}
    _, status, reason = machine.trial(opened(machine, workloads={"f": entry}).trials[0])
    assert (status, in_one_line(reason)) == ("failed", f"the preparation failed: {why.format(share=share)}")


def test_warming_that_fails_is_told_and_nothing_is_measured(machine: Machine) -> None:
    plan = opened(machine)
    script = plan.trials[0].argv[4].replace("warm() { :; }", "warms=yes\nwarm() { cat /no/such/file; }")
    files, status, reason = machine.trial(plan.trials[0], script)
    assert "exit_status" not in files
    assert (status, reason.startswith("the preparation failed: ")) == ("failed", True)


def test_a_tool_that_fails_is_a_failed_trial_with_its_words(machine: Machine) -> None:
    plan = opened(machine)
    script = plan.trials[0].argv[4].replace("if=/dev/zero", "if=/no/such/file")
    files, status, reason = machine.trial(plan.trials[0], script)
    assert files["exit_status"] == b"1\n"
    assert status == "failed"
    assert "No such file or directory" in reason


def test_a_tool_that_runs_too_long_is_ended_on_the_box(machine: Machine) -> None:
    plan = opened(machine)
    script = plan.trials[0].argv[4].replace("measured() {", "measured() { timeout -k 5 0.1 sleep 20; return; ")
    files, status, reason = machine.trial(plan.trials[0], script)
    assert files["exit_status"] == b"124\n"
    assert (status, reason) == ("timeout", "ran longer than 60 s and was ended (design.trial_timeout)")
    assert left(machine) == []


def test_a_trial_that_brought_back_too_little_fails_alone(machine: Machine) -> None:
    """Trap: one bad cell aborts the night."""
    plan = opened(machine)
    script = plan.trials[0].argv[4].replace("put exit_status $?", ': > "$out/exit_status"')
    _, status, reason = machine.trial(plan.trials[0], script)
    assert status == "failed"
    assert reason.startswith("the trial brought back less than it should")


def test_a_trial_leaves_the_current_directory_of_the_tool_empty_of_surprises(machine: Machine) -> None:
    """Trap: tools that write logs into the current directory (fs_mark, fio). It is the output directory."""
    plan = opened(machine)
    script = plan.trials[0].argv[4].replace("measured() {", "measured() { echo x > fs_log.txt; ")
    files, status, _ = machine.trial(plan.trials[0], script)
    assert (status, files["fs_log.txt"]) == ("ok", b"x\n")


def test_what_a_tool_writes_can_be_read_by_nobody_else(machine: Machine) -> None:
    plan = opened(machine)
    script = plan.trials[0].argv[4].replace("measured() {", 'measured() { stat -c %a "$directory" . > modes; ')
    assert machine.trial(plan.trials[0], script)[0]["modes"].split()[0] == b"700"


@pytest.mark.slow
@pytest.mark.requires_program("shellcheck")
@pytest.mark.parametrize("cache", others_long(["warm", "cold"], kept=["cold"]))
def test_shellcheck_finds_nothing_in_a_generated_script(machine: Machine, cache: str, tmp_path: Path) -> None:
    file = tmp_path / "trial.sh"
    file.write_text(machine.plan(workloads={"r": {**READ, "cache": cache}}).trials[0].argv[4])
    done = subprocess.run(
        ["shellcheck", "-s", "sh", "-S", "warning", str(file)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout


# --- what it takes ----------------------------------------------------------------------------------------------------


def started(machine: Machine, argv: tuple[str, ...]) -> list[str]:
    """The programs that a command runs and the shells that it forks, by strace."""
    log = machine.programs.parent / "strace"
    done = machine.run(
        ("strace", "-f", "--seccomp-bpf", "-qq", "-e", "trace=process", "-e", "signal=none", "-o", str(log), *argv)
    )
    assert done.returncode == 0, done.stderr
    born = re.findall(r"^\d+ +(?:<\.\.\. )?(?:v?fork|clone3?)\b.*= (\d+)$", log.read_text(), re.MULTILINE)
    ran = dict(re.findall(r'^(\d+) +execve\("(?:[^"]*/)?([^"/]+)"', log.read_text(), re.MULTILINE))
    return sorted(ran.get(process, "a shell") for process in born)


@pytest.mark.requires_program("strace")
@pytest.mark.parametrize(("in_memory", "most"), [("''", 17), ("yes", 21)])
def test_a_trial_starts_no_process_that_it_can_do_without(machine: Machine, in_memory: str, most: int) -> None:
    """To start one takes longer than all that the shell does itself. There used to be 19, and 39 with a file system in
    memory. Another shell than dash may fork more often."""
    dash = program("dash")
    (machine.programs / "sh").symlink_to(dash)
    (planned,) = opened(machine).trials
    script = planned.argv[4].replace("in_memory=''", f"in_memory={in_memory}").replace(CGROUPS, f"{CGROUPS}/none")
    names = started(machine, (*planned.argv[:4], script, *planned.argv[5:]))
    assert "dd" in names
    assert len(names) <= most, names
    assert left(machine) == []


# --- what else the box tells ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_snapshots_hold_what_the_caveats_look_at(machine: Machine) -> None:
    plan = opened(machine)
    script = plan.trials[0].argv[4].replace("measured() {", "measured() { seq 400000 | sort -R >/dev/null; ")
    files, status, _ = machine.trial(plan.trials[0], script)
    assert status == "ok"
    seen = around({name: data.decode() for name, data in files.items()})
    assert seen is not None
    assert seen.seconds is not None
    assert seen.own is not None
    assert seen.own * seen.seconds * (os.cpu_count() or 1) > 0.05, "sorting takes a processor"
    assert seen.others is not None
    assert seen.clock_step_s is not None
    assert (seen.lazy_init, seen.kernel_log) == (None, None), "neither ext4 nor a dropping of the caches"


# --- the counters over time -------------------------------------------------------------------------------------------


def sampling(planned: PlannedTrial, shell: str, seconds: float, *, tool: str = "") -> str:
    """The script of a trial whose tool takes so long, on a box with that shell."""
    script = planned.argv[4].replace("sampler=''", f"sampler='{shell}'")
    return script.replace("measured() {", f"measured() {{ {tool or f'sleep {seconds}'}; ")


def samplers(machine: Machine) -> list[str]:
    """The samplers of its trials that are running: what has their file as its output."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            output = os.readlink(process / "fd/1")
            if output.startswith(f"{machine.output_root}/") and "over_time" in output:
                found.append(process.name)
    return found


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "busybox sh"])
def test_the_counters_are_read_while_the_tool_runs(machine: Machine, shell: str) -> None:
    """Ten times a second, in the right order of magnitude: what is written appears on the way."""
    program(shell.split()[0])
    files, status, _ = machine.trial(opened(machine).trials[0], sampling(machine.plan().trials[0], shell, 1))
    assert status == "ok"
    found = over_time({name: data.decode() for name, data in files.items()})
    assert found is not None
    assert found.length is not None
    assert found.length >= 1 - TICK
    times = [at for at, _ in found.dirty]
    assert 3 <= len(times) <= 11 * found.length + 2
    late = max(after - before for before, after in pairwise(times))  # on a busy machine a look comes late
    assert -late / 2 - 0.02 <= times[0] < times[-1] <= found.length + late / 2 + 0.02
    for at in range(len(found.processors["user"])):
        assert 0 <= sum(points[at][1] for points in found.processors.values()) <= 1.01
    assert samplers(machine) == []
    assert left(machine) == []


@pytest.mark.slow
@pytest.mark.requires_program("strace")
def test_no_process_is_started_for_a_look(machine: Machine) -> None:
    """A trial that is six times as long starts as many; and the sampler itself is two, with the end of its pipe."""
    (planned,) = opened(machine).trials
    started_by = {
        (shell, seconds): len(
            started(machine, (*planned.argv[:4], sampling(planned, shell, seconds), *planned.argv[5:]))
        )
        for shell, seconds in (("", 0.2), ("bash", 0.2), ("bash", 1.2))
    }
    assert started_by["bash", 1.2] == started_by["bash", 0.2]
    assert started_by["bash", 0.2] <= started_by["", 0.2] + 3


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["", "not-there", "false"])
def test_a_box_without_a_shell_that_can_sample_measures_all_the_same(machine: Machine, shell: str) -> None:
    files, status, reason = machine.trial(opened(machine).trials[0], sampling(machine.plan().trials[0], shell, 0.2))
    assert (status, reason) == ("ok", "")
    assert over_time({name: data.decode() for name, data in files.items()}) is None
    assert set(files) - ALWAYS <= {"over_time"}


@pytest.mark.slow
@pytest.mark.parametrize("shell", ["bash", "busybox sh"])
def test_what_a_program_has_open_is_kept_up_to_32_mib(shell: str, tmp_path: Path) -> None:
    """The sampler goes on where its file has come to its end."""
    program(shell.split()[0])
    (empty, full), most = (tmp_path / "empty", tmp_path / "full"), 32 * MIB
    for file, size in ((empty, 0), (full, most)):
        with file.open("xb") as opened_file:
            opened_file.truncate(size)
        words = (
            script_text("sampler.sh"),
            "sampler",
            "20",
            str(tmp_path.stat().st_dev),
            "",
            "",
            str(os.getpid()),
            str(file),
        )
        with subprocess.Popen([*shell.split(), "-c", *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as sampler:
            assert sampler.stdout is not None
            assert len([sampler.stdout.readline() for _ in range(12)]) == 12
            sampler.communicate()
        assert sampler.returncode == 0
    assert empty.read_text().count("look\n") >= 5
    assert full.stat().st_size == most


@pytest.mark.slow
def test_a_sampler_that_is_killed_takes_nothing_along(machine: Machine) -> None:
    (planned,) = opened(machine).trials
    machine.program("dies", "#!/bin/sh\necho half\nkill -9 $$\n")
    files, status, _ = machine.trial(planned, sampling(planned, "dies", 0.2))
    assert (status, files["over_time"]) == ("ok", b"half\n")


@pytest.mark.slow
@pytest.mark.parametrize("victim", ["its shell", "its group"])
def test_a_trial_that_is_killed_leaves_no_sampler(machine: Machine, victim: str) -> None:
    """Of its shell alone: none that goes on when the tool has ended."""
    (planned,) = opened(machine).trials
    argv = (*planned.argv[:4], sampling(planned, "bash", 5), *planned.argv[5:])
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    trial = subprocess.Popen(argv, env=machine.environment, start_new_session=True, **quiet)
    wait_until("a sampler", lambda: len(samplers(machine)) == 1)
    os.kill(trial.pid, signal.SIGKILL) if victim == "its shell" else os.killpg(trial.pid, signal.SIGKILL)
    trial.wait()
    wait_until("no sampler", lambda: samplers(machine) == [])
    wait_until("the end of the group", lambda: not is_there(trial.pid))
    for place, names, _ in os.walk(CGROUPS):  # it bears what other workers remove meanwhile
        for name in names:
            if re.fullmatch(rf"mountlab-{RUN}\..*\.{trial.pid}", name):  # which the next trial would have removed
                os.rmdir(os.path.join(place, name))


def is_there(group: int) -> bool:
    """Whether a process of a group is running."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize("programs", ["own", "busybox"])
def test_the_memory_of_a_file_system_in_memory_is_read_empty_full_and_freed(machine: Machine, programs: str) -> None:
    """The files are 128 KiB while the tool has run, and gone in the last reading; elsewhere nothing is read."""
    plan = opened(machine, workloads={"r": READ})
    if programs == "busybox":
        busybox = program("busybox")
        for name in ("find", "awk", "stat", "tar", "head", "tail", "rm", "mkdir", "sh"):
            (machine.programs / name).symlink_to(busybox)
    files, status, _ = machine.trial(plan.trials[0], plan.trials[0].argv[4].replace("in_memory=''", "in_memory=yes"))
    assert (status, set(files) - ALWAYS) == ("ok", {"memory.txt"})
    found = filled(files["memory.txt"].decode())
    assert found is not None
    assert [each.files for each in (found.empty, found.full, found.freed)] == [0, 128 * 1024, 0]
    assert min(each.held for each in (found.empty, found.full, found.freed)) > 0
    assert left(machine) == []


DROP = "echo 3 > /proc/sys/vm/drop_caches"


def cold(machine: Machine, dropping: str) -> tuple[dict[str, bytes], str, str]:
    """A cold read whose script does `dropping` in the place of the machine's caches."""
    (trial,) = opened(machine, workloads={"r": {**READ, "cache": "cold"}}).trials
    assert DROP in trial.argv[4]
    return machine.trial(trial, trial.argv[4].replace(DROP, dropping))


@pytest.mark.parametrize("shell", ["dash", "busybox"])
def test_where_date_prints_whole_seconds_a_trial_ends_as_elsewhere(machine: Machine, shell: str) -> None:
    """BusyBox's date leaves %N as it is, which no shell calculates with: the trial was lost after it had run."""
    (machine.programs / "sh").symlink_to(program(shell))
    (machine.programs / "date").symlink_to(program("busybox"))
    files, status, reason = cold(machine, "true")
    assert (status, reason, files["cache"]) == ("ok", "", b"drop_caches\n")


def test_a_shell_that_has_the_wall_clock_starts_no_process_for_it(machine: Machine) -> None:
    (machine.programs / "sh").symlink_to(program("bash"))
    machine.program("date", "#!/bin/sh\necho none\n")
    files, status, _ = machine.trial(opened(machine).trials[0])
    seen = around({name: data.decode() for name, data in files.items()})
    assert status == "ok"
    assert seen is not None
    assert seen.clock_step_s == 0, "/proc/uptime agrees"
    assert seen.seconds == (int(files["ended_ns"]) - int(files["started_ns"])) / NS_PER_S


def test_the_wall_clock_of_a_shell_may_have_the_point_of_any_locale(machine: Machine) -> None:
    """dash, which has none itself, takes it from its environment."""
    (machine.programs / "sh").symlink_to(program("dash"))
    planned = opened(machine).trials[0]
    for point in ".,":
        machine.environment["EPOCHREALTIME"] = f"1764444444{point}000123"
        files, *_ = machine.trial(planned)
        assert files["started_ns"] == files["ended_ns"] == b"1764444444000123000\n"


NO_NOCACHE = """#!/bin/sh
case $* in *nocache*) echo 'dd: feature not implemented on this system -> nocache' >&2; exit 1 ;; esac
exec {dd} "$@"
"""
"""As the dd of uutils 0.0.17."""


def test_a_cold_read_whose_pages_cannot_be_dropped_is_no_cold_read(machine: Machine) -> None:
    machine.program("dd", NO_NOCACHE.format(dd=program("dd")))
    files, status, reason = cold(machine, "false")
    assert (status, "cache" in files) == ("failed", False)
    assert "the pages of its files cannot be dropped without root or GNU coreutils" in reason
    assert "feature not implemented on this system -> nocache" in reason
    assert left(machine) == []


def test_without_root_the_pages_of_the_files_are_dropped_by_dd(machine: Machine) -> None:
    files, status, _ = cold(machine, "false")
    assert (status, files["cache"]) == ("ok", b"fadvise\n")


def test_only_where_files_fill_memory_it_is_read(machine: Machine) -> None:
    image = {"type": "ext4", "image": "64MiB"}
    zram = {"type": "ext4", "zram": "64MiB"}
    for fs, expected in ((TMPFS, "yes"), (zram, "yes"), ({"type": "overlay", "over": TMPFS}, "yes"), (image, "''")):
        (trial, *_) = machine.plan(filesystems={"f": fs}).trials
        assert f"in_memory={expected}\n" in trial.argv[4]


WALL = """#!/bin/sh
sleep 0.2
awk -v ahead="$AHEAD" '{ printf "%.0f\\n", ($1 + ahead) * 1e9 }' /proc/uptime
sleep 0.2
"""


@pytest.mark.slow
@pytest.mark.parametrize("set_by", [0, 5, -5])
def test_the_wall_clock_is_held_against_one_that_nobody_sets(machine: Machine, set_by: int) -> None:
    """A `date` that is late, as on a busy machine, and goes by the other clock, but for what it is set by meanwhile."""
    machine.program("date", WALL)
    plan = opened(machine)
    script = plan.trials[0].argv[4].replace("    stamp ended_ns\n", f"    export AHEAD={set_by}\n    stamp ended_ns\n")
    files, status, _ = machine.trial(plan.trials[0], script)
    assert status == "ok"
    seen = around({name: data.decode() for name, data in files.items()})
    assert seen is not None
    assert seen.clock_step_s is not None
    began, began_by, script_exit, ended_by = map(float, files["uptime"].decode().split()[1:])
    late_s = began_by - began + ended_by - script_exit + 0.011  # as far as the two looks at `date` leave it open
    assert max(0, abs(set_by) - late_s) <= abs(seen.clock_step_s) <= abs(set_by)
    assert seen.clock_step_s * set_by >= 0
    assert seen.seconds is not None
    assert script_exit - began_by - 0.011 <= seen.seconds <= ended_by - began + 0.011


DMESG = """#!/bin/sh
[ "$1" = -r ] || exit 1
printf '<6>[    1.000000] sh (1): drop_caches: 3\\n<4>[    2.000000] an old warning\\n'
printf '<6>[    3.000000] sh (%s): drop_caches: 3\\n<6>[    4.000000] for your information\\n' "$NUMBER"
printf '<3>[    5.000000] I/O error, dev sda\\n<28>[    6.000000] of a daemon\\n'
"""
TWO_DATES = """#!/bin/sh
[ -e "$0.on" ] || {{ : >"$0.on"; echo {}; exit; }}
rm "$0.on"; echo {}
"""


@pytest.mark.slow
def test_the_kernels_log_counts_from_our_dropping_of_the_caches(machine: Machine) -> None:
    """Lines of others before it, and those below a warning, are not of this trial. <28> is a warning of facility 3."""
    machine.program("dmesg", DMESG)
    plan = opened(machine)
    script = plan.trials[0].argv[4].replace("dropped=\n", "dropped=yes NUMBER=$$; export NUMBER\n")
    for took_ns, log in ((500_000_001, ("I/O error, dev sda", "of a daemon")), (500_000_000, None)):
        machine.program("date", TWO_DATES.format(10**18, 10**18 + took_ns))
        files, status, _ = machine.trial(plan.trials[0], script)
        assert status == "ok"
        seen = around({name: data.decode() for name, data in files.items()})
        assert seen is not None
        assert seen.kernel_log == log


@pytest.mark.parametrize("running", [True, False])
def test_the_thread_that_writes_inode_tables_is_looked_for_where_it_was_asked_for(
    machine: Machine, running: bool, tmp_path: Path
) -> None:
    plan = opened(machine)
    # The real thread may be there, for somebody else; and one that has ended for a moment.
    thread = tmp_path / f"lazy-{running}"
    script = plan.trials[0].argv[4].replace("lazy=''", "lazy=yes").replace("!= ext4lazyinit", f"!= {thread.name}")
    if running:
        thread.symlink_to("/bin/sleep")
        before, look, after = script.rpartition("    in_use\n")  # the first is of what a tool has left
        script = f"{before}{look}    {thread} 9 >&- 2>&- 3>&- 4>&- & echo $! >other\n{after}"
        script = script.replace(
            'kernel_says >> "$out/after.txt"', 'kernel_says >> "$out/after.txt"; kill "$(cat other)"; rm other'
        )
    files, _, _ = machine.trial(plan.trials[0], script)
    seen = around({name: data.decode() for name, data in files.items()})
    assert seen is not None
    assert seen.lazy_init is running


@pytest.mark.requires_program("fincore")
@pytest.mark.parametrize(("oflag", "asked"), [("direct", True), ("none", False)])
def test_where_direct_io_was_asked_for_the_files_are_looked_for_in_the_page_cache(
    machine: Machine, oflag: str, asked: bool
) -> None:
    plan = opened(machine, workloads={"w": {**WRITE, "oflag": oflag}})
    files, status, reason = machine.trial(plan.trials[0])
    if status != "ok":
        pytest.skip(f"no direct I/O in this directory: {reason}")
    seen = around({name: data.decode() for name, data in files.items()})
    assert seen is not None
    assert (seen.resident_bytes is not None) == asked


OWN = {"tool": "command", "argv": "md5sum {directory}/f", "space": "64MiB", "metrics": {"elapsed": {"from": "clock"}}}
LAID_OUT = "truncate -s 64M {directory}/f"
FILEFRAG = """#!/bin/sh
cat <<'EOT'
Filesystem type is: ef53
File size of d/a is 67108864 (131072 blocks of 512 bytes)
d/a: 0 extents found
File size of d/b (is 3 (1 blocks of 2)) is 4194304 (8192 blocks of 512 bytes)
 ext:     logical_offset:        physical_offset: length:   expected: flags:
   0:        0..    2047:      45058..     47105:   2048:
   1:     4096..    6143:      61442..     63489:   2048:      49154: shared
   2:     6144..    9215:      63490..     66561:   3072:             last,unwritten,eof
d/b: 2 extents found
File size of d/c is 5 (2 block of 512 bytes)
 ext:     logical_offset:        physical_offset: length:   expected: flags:
   0:        0..       4:     308264..    308268:      5:             last,not_aligned,inline,eof
d/c: 1 extent found
File size of d/d is 1048576 (2048 blocks of 512 bytes)
 ext:     logical_offset:        physical_offset: length:   expected: flags:
   0:        0..    1023:          0..         0:      0:             unknown_loc,delalloc
   1:     1024..    2047: 100000000..1000001023:   1024: 1234567890: last,encoded,eof
d/d: 2 extents found
EOT
"""
"""What filefrag of e2fsprogs 1.47 prints, with a file of a strange name, and one with blocks beyond its end."""


def test_what_files_consist_of_is_summed_by_kind(machine: Machine) -> None:
    machine.program("filefrag", FILEFRAG)
    extents = extents_of(machine, opened(machine, workloads={"r": {**OWN, "prepare": LAID_OUT}}))
    assert extents == Extents(
        files=4, size=64 * MIB + 4 * MIB + 5 + MIB, hole=64 * MIB + MIB, unwritten=MIB, inline=5,
        compressed=MIB // 2,
    )  # fmt: skip


def test_without_filefrag_nothing_is_known_of_the_files(machine: Machine) -> None:
    machine.program("filefrag", "#!/bin/sh\nexit 127\n")
    assert extents_of(machine, opened(machine, workloads={"r": {**OWN, "prepare": LAID_OUT}})) is None


def test_where_a_program_reads_next_to_nothing_nobody_looks_at_its_files(machine: Machine) -> None:
    machine.program("filefrag", FILEFRAG)
    own = {**OWN, "argv": "ls {directory}", "prepare": LAID_OUT}
    plan = opened(machine, workloads={"r": own})
    assert extents_of(machine, plan) is None


def test_the_read_and_write_calls_of_the_tool_and_its_children_are_counted(machine: Machine) -> None:
    own = {**OWN, "argv": "sh -c 'cat {directory}/f | cat > /dev/null'", "prepare": LAID_OUT}
    files, status, _ = machine.trial(opened(machine, workloads={"r": own}).trials[0])
    seen = around({name: data.decode() for name, data in files.items()})
    assert status == "ok"
    assert seen is not None
    assert seen.read_calls is not None
    assert seen.write_calls is not None
    assert 128 * MIB <= seen.read_calls < 130 * MIB, "the file, and the pipe; and the counters themselves"
    assert 128 * MIB <= seen.write_calls < 129 * MIB


def extents_of(machine: Machine, plan: Plan) -> Extents | None:
    """What a trial says of its files, on a device whose counts of sectors are not known: others may read from it."""
    script, counts = plan.trials[0].argv[4], " sectors _ <"
    assert script.count(counts) == 1
    files, status, reason = machine.trial(plan.trials[0], script.replace(counts, " _ _ <"))
    assert status == "ok", reason
    seen = around({name: data.decode() for name, data in files.items()})
    assert seen is not None
    return seen.extents


def test_below_an_undone_mount_directories_of_trials_go_and_a_users_file_stays(tmp_path: Path) -> None:
    """A tool that unmounted the file system has written into the directory below; so may a user have."""
    point = tmp_path / "ext4"
    for name in ("t0001/tool", "t0002x/user", "notes/user"):
        (point / name).parent.mkdir(parents=True, exist_ok=True)
        (point / name).write_text("kept")
    (point / "t0003").symlink_to(tmp_path)
    argv = script_argv("free_mount.sh", "rmdir", str(point), "")
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "not empty" in done.stderr
    assert sorted(path.name for path in point.iterdir()) == ["notes", "t0002x", "t0003"]
    for name in ("t0002x", "notes"):
        (point / name / "user").unlink()
        (point / name).rmdir()
    (point / "t0003").unlink()
    assert subprocess.run(argv, capture_output=True, check=False).returncode == 0
    assert not point.exists()


def test_every_file_that_readers_look_for_is_written_by_a_script() -> None:
    """But for those that the control machine adds."""
    ours = {TrialFiles.ARGV, TrialFiles.COMMANDS, TrialFiles.ROUNDS, TrialFiles.REASON, TrialFiles.IMPORTED_LOG}
    scripts = "".join(file.read_text() for file in (SHIPPED / "lib" / "mountlab").rglob("*.sh"))
    written = re.findall(r"(?:\$out/|\bput |\bstamp |\bsnapshot |\blogged \w+ )([\w.]+)", scripts)
    assert {*TrialFiles} - ours <= {*written}
