"""A connection that outlives its own loss: the box is a scripted one, its shell script a real one."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
from installed_programs import program
from mountlab.box.connection import Completed
from mountlab.box.lease import Heartbeat, beat_s, lease_argv
from mountlab.box.resident import JobRequest, ResidentShell
from mountlab.box.steady import JobAnswer, SteadyBox
from mountlab.core.errors import BoxError, BoxLost, BoxRestarted, BoxTimeout, CommandError, FloodError, HostKeyError
from mountlab.core.held import Lease
from mountlab.core.model import Box, Rights
from mountlab.core.shell import SharedScript, script_argv, script_text
from mountlab.sweep.run_directories import open_run_step
from processes import is_alive
from rows import every_row
from waiting import LIMIT_S, wait_until

BOOT = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
LOST = BoxLost("the connection was lost", where="box b", got="reset by peer")
REFUSED = BoxLost("the box refused the connection", next_step="see that sshd runs there")


class Heard:
    """What a box hears of us."""

    def __init__(self, deaf: bool) -> None:
        self.lines, self.closed, self.deaf = 0, False, deaf

    def send(self, data: bytes) -> None:
        if self.deaf:
            raise LOST
        self.lines += data.count(b"\n")

    def close(self) -> None:
        self.closed = True


class LocalTalk:
    """A shell of this machine in the place of one that stays on the box."""

    where = "box b"

    def __init__(self, machine: Machine, argv: Sequence[str]) -> None:
        self._machine, self._asked, self._answered = machine, False, False
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        if data.startswith(b"{ asked"):
            self._machine.sent.append(data)
            self._machine._maybe(self._machine.before)
            self._answered = False
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def receive(self, timeout_s: float) -> bytes:
        assert self.process.stdout is not None
        data = os.read(self.process.stdout.fileno(), 65536)
        if not data:
            raise LOST
        if not self._answered:
            self._answered = True
            self._machine._maybe(self._machine.after)
        return data

    def close(self) -> None:
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
        self.process.wait()


class Machine:
    """This machine without SSH: it runs what it is told, and breaks where a test says so.

    `before` and `after` are what is raised, in turn, in the place of a command or of its answer; None raises nothing.
    """

    box = Box(name="b", host="b", grace_s=60.0)
    rights: Rights = "root"

    def __init__(self) -> None:
        self.before: list[BaseException | None] = []
        self.after: list[BaseException | None] = []
        self.opening: list[BaseException | None] = []
        self.sent: list[tuple[str, ...] | bytes] = []
        """Commands as they are, and what a shell that stays here is asked for."""
        self.talks: list[LocalTalk] = []
        self.heard: list[Heard] = []
        self.deaf: list[bool] = []
        self.reopened = 0

    def run(self, argv: Sequence[str], *, timeout_s: float = 60.0, root: bool = False) -> Completed:
        self.sent.append(tuple(argv))
        self._maybe(self.before)
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout_s, check=False)
        self._maybe(self.after)
        return Completed(tuple(argv), done.returncode, done.stdout, done.stderr, 0.0)

    def reopen(self) -> None:
        self.reopened += 1
        self._maybe(self.opening)

    def attend(self, argv: Sequence[str], *, root: bool = False) -> Any:
        self.heard.append(Heard(self.deaf.pop(0) if self.deaf else False))
        return self.heard[-1]

    def talk(self, argv: Sequence[str], *, root: bool = False) -> Any:
        self.talks.append(LocalTalk(self, argv))
        return self.talks[-1]

    def spoken(self, argv: Sequence[str], timeout_s: float, *, root: bool) -> Sequence[str]:
        return argv

    def holding(self, lease: Lease, stopped: Callable[[], bool]) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None: ...

    @staticmethod
    def _maybe(errors: list[BaseException | None]) -> None:
        error = errors.pop(0) if errors else None
        if error is not None:
            raise error


class Watch:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now, self.slept = 0.0, list[float]()

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.fixture
def watch() -> Watch:
    return Watch()


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def steady(machine: Machine, watch: Watch, said: list[str]) -> SteadyBox:
    box = SteadyBox(machine, sleep=watch.sleep, clock=lambda: watch.now)
    box.say = said.append
    return box


@pytest.fixture
def lease(tmp_path: Path) -> Lease:
    """Of a run that no other test has: what cleans the box ends the processes of that run."""
    run_id = f"{os.getpid()}-{tmp_path.name}"
    (tmp_path / "out" / run_id).mkdir(parents=True)
    (tmp_path / "out" / run_id / "alive").touch()
    return Lease(run_id=run_id, mount_root=str(tmp_path / "m"), output_root=str(tmp_path / "out"), owner="me 1/2 it")


@pytest.fixture
def held(steady: SteadyBox, lease: Lease) -> Iterator[SteadyBox]:
    with steady.holding(lease, lambda: False):
        yield steady


def counting(tmp_path: Path) -> tuple[str, ...]:
    """A command that tells how often it was run, by a file that grows."""
    return ("sh", "-c", 'echo x >> "$1/ran"; wc -l < "$1/ran"; echo told >&2; exit 3', "count", str(tmp_path))


# --- before a run holds anything --------------------------------------------------------------------------------------


def test_before_a_run_commands_go_to_the_box_as_they_are(steady: SteadyBox, machine: Machine) -> None:
    assert steady.run(("echo", "hi")).text == "hi\n"
    assert machine.sent == [("echo", "hi")]


def test_a_lost_connection_is_made_anew_and_the_command_repeated(
    steady: SteadyBox, machine: Machine, watch: Watch, said: list[str]
) -> None:
    machine.before, machine.opening = [LOST], [REFUSED, REFUSED]
    assert steady.run(("echo", "hi")).text == "hi\n"
    assert machine.reopened == 3
    assert watch.slept == [0.5, 1.0]
    assert said == [
        "the connection to box b was lost; trying again for 60 s",
        "the connection to box b is back after 2 s",
    ]


def test_a_box_that_does_not_come_back_within_its_grace_is_lost(
    steady: SteadyBox, machine: Machine, watch: Watch
) -> None:
    machine.before, machine.opening = [LOST], [REFUSED] * 99
    with pytest.raises(BoxLost, match="was lost, and did not come back: the box refused the connection") as error:
        steady.run(("true",))
    assert 30 < watch.now <= 60
    assert max(watch.slept) <= 30
    assert "`grace` of the box file" in error.value.allowed
    assert error.value.next_step == "see that sshd runs there"


def test_once_lost_nothing_waits_again(steady: SteadyBox, machine: Machine, watch: Watch) -> None:
    """What is undone at the end of a run would otherwise wait as long for each of its commands."""
    machine.before, machine.opening = [LOST], [REFUSED] * 99
    with pytest.raises(BoxLost):
        steady.run(("true",))
    slept, sent = len(watch.slept), len(machine.sent)
    with pytest.raises(BoxLost, match="did not come back"):
        steady.run(("umount", "/x"))
    assert (len(watch.slept), len(machine.sent)) == (slept, sent)


def test_a_host_key_that_has_changed_meanwhile_is_never_accepted(steady: SteadyBox, machine: Machine) -> None:
    machine.before, machine.opening = [LOST], [REFUSED, HostKeyError("the host key has CHANGED")]
    with pytest.raises(HostKeyError, match="CHANGED"):
        steady.run(("true",))


def test_an_embedded_box_that_has_ended_is_not_waited_for(steady: SteadyBox, machine: Machine, watch: Watch) -> None:
    machine.before, machine.opening = [LOST], [BoxError("the embedded box has ended by itself")]
    with pytest.raises(BoxLost, match="the embedded box has ended by itself"):
        steady.run(("true",))
    assert watch.slept == []


def test_a_box_that_is_lost_again_at_once_is_not_tried_for_ever(steady: SteadyBox, machine: Machine) -> None:
    """Where a shell cannot stay, as without setsid, each connection is well, and none of use."""
    machine.before = [LOST] * 99
    with pytest.raises(BoxLost, match="was lost again at once, 10 times in a row") as error:
        steady.run(("true",))
    assert machine.reopened == 9
    assert error.value.got == "reset by peer"
    assert "setsid sh -s" in error.value.next_step


# --- while it holds something: exactly once ---------------------------------------------------------------------------


def test_a_command_gives_its_status_and_both_outputs(held: SteadyBox, tmp_path: Path) -> None:
    done = held.run(counting(tmp_path))
    assert (done.exit_status, done.stdout, done.stderr) == (3, b"1\n", b"told\n")
    assert done.argv == counting(tmp_path)


def test_every_byte_of_an_output_arrives(held: SteadyBox, tmp_path: Path) -> None:
    data = bytes(range(256)) * 1000 + b"mountlab-job done 0 0 x\n"
    (tmp_path / "data").write_bytes(data)
    assert held.run(("cat", str(tmp_path / "data"))).stdout == data


def test_what_marks_a_command_with_its_run_marks_no_other(held: SteadyBox) -> None:
    say = ("sh", "-c", 'echo "${MOUNTLAB_RUN-none}"')
    assert held.run(("env", "MOUNTLAB_RUN=r 1", *say)).text == "r 1\n"
    assert held.run(say).text == "none\n"
    assert held.run(("env", "MOUNTLAB_ELSE=x", *say)).text == "none\n"


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_connection_lost_before_or_after_a_command_does_not_run_it_twice(
    when: str, held: SteadyBox, machine: Machine, tmp_path: Path
) -> None:
    setattr(machine, when, [LOST, LOST])
    done = held.run(counting(tmp_path))
    assert (done.exit_status, done.stdout, done.stderr) == (3, b"1\n", b"told\n")
    assert held.run(counting(tmp_path)).stdout == b"2\n", "the next one is another"


@pytest.mark.slow
def test_a_command_that_still_runs_when_the_connection_is_back_is_waited_for(
    held: SteadyBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first asking is given up while the command runs: the shell that waited for it is killed, the command is
    not."""
    slow = ("sh", "-c", 'echo x >> "$1/ran"; sleep 0.5; wc -l < "$1/ran"', "slow", str(tmp_path))
    receive, killed = LocalTalk.receive, threading.Event()

    def cut_short(self: LocalTalk, timeout_s: float) -> bytes:
        if not killed.is_set():
            wait_until("the command", (tmp_path / "ran").exists)
            (shell,) = children(self.process.pid)
            os.kill(shell, signal.SIGKILL)
            killed.set()
        return receive(self, timeout_s)

    monkeypatch.setattr(LocalTalk, "receive", cut_short)
    assert held.run(slow).stdout == b"1\n"
    assert killed.is_set()


def children(pid: int) -> list[int]:
    return [int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def told(lease: Lease, *asked: bytes) -> bytes:
    """What a new shell on the box answers."""
    text = script_text("job.sh").encode() + b"".join(asked)
    argv = ("sh", "-s", lease.output_dir, "END")
    return subprocess.run(argv, input=text, capture_output=True, timeout=LIMIT_S, check=False).stdout


def test_a_late_asking_for_an_earlier_command_runs_nothing(
    held: SteadyBox, machine: Machine, lease: Lease, tmp_path: Path
) -> None:
    """A packet that a stalled link delivers minutes later."""
    held.run(counting(tmp_path))
    late = machine.sent[-1]
    assert isinstance(late, bytes)
    held.run(("true",))
    assert told(lease, late).startswith(b"mountlab-job stale")
    assert (tmp_path / "ran").read_text() == "x\n"


@pytest.mark.slow
def test_an_asking_that_is_cut_off_anywhere_runs_nothing(lease: Lease, tmp_path: Path) -> None:
    """`rm -r /a/b` could become `rm -r /a`."""
    whole = JobRequest(1, "9", "", ("touch", f"{tmp_path}/ran", f"{tmp_path}/ran two")).text()
    for end in range(len(whole) - 2):
        assert told(lease, whole[:end]) == b""
    assert not list(tmp_path.glob("ran*"))
    assert told(lease, whole).startswith(b"mountlab-job done 0")
    assert len(list(tmp_path.glob("ran*"))) == 2


def test_the_body_of_a_script_is_sent_once_to_each_shell(held: SteadyBox, machine: Machine) -> None:
    body = f"# {'long' * 1000}\nprintf '%s\\n' \"$n $1\""
    argvs = [("sh", "-c", SharedScript(f"n='{n}'\n", body), "name", "it's") for n in range(3)]
    assert [held.run(argv).text for argv in argvs] == [f"{n} it's\n" for n in range(3)]
    machine.before = [LOST]
    assert held.run(argvs[0]).text == "0 it's\n", "asked of another shell"
    assert max(map(len, machine.sent)) < 200


def test_a_shell_that_lacks_the_body_of_a_script_does_not_run_its_head(lease: Lease, tmp_path: Path) -> None:
    script = SharedScript(f"touch {tmp_path}/ran\n", "true")
    assert told(lease, JobRequest(1, "9", "", ("sh", "-c", script)).text()).startswith(b"mountlab-job died")
    assert not (tmp_path / "ran").exists()


def test_one_shell_serves_all_commands_and_goes_home_at_the_end(
    steady: SteadyBox, machine: Machine, lease: Lease
) -> None:
    with steady.holding(lease, lambda: False):
        assert [steady.run(("echo", str(n))).text for n in range(5)] == [f"{n}\n" for n in range(5)]
        (talk,) = machine.talks
    assert talk.process.returncode == 0


def test_what_is_lost_in_an_answer_is_asked_of_another_shell(held: SteadyBox, machine: Machine) -> None:
    machine.after = [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        held.run(("echo", "one"))
    assert held.run(("echo", "two")).text == "two\n"
    assert len(machine.talks) == 2


def test_what_prints_without_end_is_ended(held: SteadyBox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mountlab.box.resident.LARGEST_ANSWER", 100_000)
    with pytest.raises(FloodError, match="sent more than this machine is ready to hold"):
        held.run(("head", "-c", "1000000", "/dev/zero"))
    assert held.run(("echo", "hi")).text == "hi\n"


@pytest.mark.slow
def test_a_command_beyond_its_time_is_stopped_by_the_box(held: SteadyBox) -> None:
    with pytest.raises(BoxTimeout, match=r"did not end in 0.5 s and was stopped") as error:
        held.run(("sleep", "60"), timeout_s=0.5)
    assert error.value.got == "sleep 60"


def test_a_command_that_itself_ends_with_124_has_not_run_out_of_time(held: SteadyBox) -> None:
    assert held.run(("sh", "-c", "exit 124")).exit_status == 124


@pytest.mark.slow
def test_what_was_read_takes_no_room_any_more(held: SteadyBox, lease: Lease) -> None:
    for _ in range(130):
        held.run(("echo", "x" * 1000))
    files = list(Path(lease.output_dir).iterdir())
    assert sum(file.stat().st_size for file in files) < 64 * 41 * 2 + 2000
    assert len(files) < 3 * 100


# --- a box that is not what it was ------------------------------------------------------------------------------------


def test_another_boot_id_is_a_restart_and_nothing_runs(steady: SteadyBox, lease: Lease, tmp_path: Path) -> None:
    with steady.holding(lease, lambda: False):
        steady.run(("true",))
        steady._boot = "another"
        with pytest.raises(BoxRestarted, match="the box was started again meanwhile") as error:
            steady.run(counting(tmp_path))
    assert error.value.got == "another boot id than before"
    assert not (tmp_path / "ran").exists()
    with steady.holding(lease, lambda: False):
        assert steady.run(counting(tmp_path)).stdout == b"1\n", "held anew, the box is taken as it is now"


@pytest.mark.parametrize("kept", [False, True], ids=["whole", "but for a user's file"])
def test_a_box_that_has_cleaned_itself_is_a_restart_too(kept: bool, held: SteadyBox, lease: Lease) -> None:
    held.run(("true",))
    shutil.rmtree(lease.output_dir)
    if kept:
        (Path(lease.output_dir)).mkdir()
        (Path(lease.output_dir) / "thesis.tex").touch()
    with pytest.raises(BoxRestarted, match="what the run had made on the box is gone") as error:
        held.run(("true",))
    assert "at least every 60 s" in error.value.allowed


def test_a_command_killed_with_what_keeps_its_output_counts_as_killed(held: SteadyBox) -> None:
    done = held.run(("sh", "-c", "kill -9 $(sed -n 's/^PPid:.//p' /proc/$PPID/status) $PPID"))
    assert done.exit_status == 137
    assert "killed from outside" in done.error_text


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Lease]:
    """A box whose directory for output has no room left."""
    room = tmp_path / "full"
    room.mkdir()
    subprocess.run((program("mount"), "-t", "tmpfs", "-o", "size=64k", "mountlab-test", room), check=True)
    (room / "R").mkdir()
    (room / "R" / "alive").touch()
    subprocess.run(("dd", "if=/dev/zero", f"of={room}/filler", "bs=4k"), check=False, stderr=subprocess.DEVNULL)
    yield Lease(run_id="R", mount_root="/nowhere", output_root=str(room), owner="me")
    subprocess.run(("umount", room), check=True)


@pytest.mark.requires_root
def test_on_a_box_without_room_for_output_commands_run_once_all_the_same(
    steady: SteadyBox, full: Lease, tmp_path: Path
) -> None:
    """What was mounted must be undone."""
    with steady.holding(full, lambda: False):
        assert steady.run(counting(tmp_path)).stdout == b"1\n"
        (Path(full.output_root) / "filler").unlink()
        assert steady.run(counting(tmp_path)).stdout == b"2\n"
        assert (Path(full.output_dir) / "last").exists(), "a job again"


@pytest.mark.requires_root
def test_a_connection_lost_on_a_box_without_room_does_not_run_a_command_twice(
    steady: SteadyBox, machine: Machine, full: Lease, tmp_path: Path
) -> None:
    with steady.holding(full, lambda: False):
        machine.after = [None, LOST]
        with pytest.raises(CommandError, match="it is unknown whether the command was run") as error:
            steady.run(counting(tmp_path))
    assert error.value.where == f"box b: {full.output_dir}"
    assert (tmp_path / "ran").read_text() == "x\n"


def test_an_answer_that_is_none_is_refused(held: SteadyBox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ResidentShell, "ask", lambda *_, **__: (b"Welcome to this machine!\n", b"motd"))
    with pytest.raises(CommandError, match="did not answer as it should") as error:
        held.run(("true",))
    assert "Welcome" in error.value.got


@every_row("printed", [b"", b"mountlab-job done", b"done 0 0 x\n", b"mountlab-job\n"])
def test_what_is_no_answer_is_none(printed: bytes) -> None:
    assert JobAnswer.of(printed) is None


# --- the lease --------------------------------------------------------------------------------------------------------


def test_while_it_holds_something_the_box_hears_of_us_and_at_the_end_no_more(
    steady: SteadyBox, machine: Machine, lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mountlab.box.lease.BEAT_S", 0.01)
    with steady.holding(lease, lambda: False):
        wait_until("three signs of life", lambda: machine.heard[0].lines > 2)
    assert machine.heard[0].closed
    wait_until("no thread", lambda: "mountlab-lease" not in [thread.name for thread in threading.enumerate()])


def test_on_a_new_connection_the_box_hears_of_us_at_once(steady: SteadyBox, machine: Machine, lease: Lease) -> None:
    machine.deaf = [True]
    with steady.holding(lease, lambda: False):
        machine.before = [LOST]
        steady.run(("true",))
        wait_until("a second lease", lambda: len(machine.heard) == 2)


def test_signs_of_life_come_ten_times_in_the_grace_and_every_half_minute() -> None:
    assert beat_s(Box(name="b", host="b", grace_s=5.0)) == 0.5
    assert beat_s(Box(name="b", host="b", grace_s=3600.0)) == 30.0


def test_who_is_asked_to_stop_waits_no_longer(steady: SteadyBox, machine: Machine, watch: Watch, lease: Lease) -> None:
    asked: list[bool] = []
    with steady.holding(lease, lambda: bool(asked)):
        asked.append(True)
        machine.before, machine.opening = [LOST], [REFUSED] * 99
        with pytest.raises(BoxLost):
            steady.run(("true",))
    assert watch.slept == []


class TheBoxAlone:
    """lease.sh as a process of its own, with the end of its standard input in our hand."""

    def __init__(self, lease: Lease, grace_s: float, lock: str = "", path: str = "") -> None:
        shutil.rmtree(lease.output_root)
        subprocess.run(open_run_step(lease).argv, check=True)
        for root in (lease.mount_root, lease.output_root) if lock else ():
            (Path(root) / "lock").write_text(lock)
        argv = lease_argv(lease, grace_s, str(os.getuid()))
        self.lease = lease
        environment = {**os.environ, "PATH": f"{path}:{os.environ['PATH']}"}
        self.process = subprocess.Popen(argv, stdin=subprocess.PIPE, env=environment)
        wait_until("a watcher", self.watcher)

    def watcher(self) -> int:
        file = Path(self.lease.output_dir) / "lease"
        return int(file.read_text() or 0) if file.exists() else 0

    def gone(self) -> bool:
        return not Path(self.lease.mount_root).exists() and not Path(self.lease.output_root).exists()


@pytest.mark.slow
def test_a_cleaning_that_fails_is_repeated(tmp_path: Path) -> None:
    (tmp_path / "alive").touch()
    fails_once = f"echo >> {tmp_path}/calls; [ $(wc -l < {tmp_path}/calls) -gt 1 ]"
    argv = ("env", "MOUNTLAB_LEASE=R", *script_argv("lease.sh", str(tmp_path), "1", "R"), "sh", "-c", fails_once)
    subprocess.run(argv, input=b"", check=True)
    wait_until("a second try", lambda: (tmp_path / "calls").exists() and (tmp_path / "calls").read_text() == "\n\n")


def test_a_process_that_has_the_number_of_a_watcher_is_none(lease: Lease) -> None:
    alone = TheBoxAlone(lease, 600)
    watcher = alone.watcher()
    (Path(lease.output_dir) / "lease").write_text(f"{os.getpid()}\n")
    argv = lease_argv(lease, 600, str(os.getuid()))
    subprocess.run(argv, input=b"", check=True)
    assert is_alive(alone.watcher())
    assert alone.watcher() not in (os.getpid(), watcher)
    subprocess.run(argv, input=b"", check=True)
    again = alone.watcher()
    subprocess.run(argv, input=b"", check=True)
    assert alone.watcher() == again, "one is enough"
    closed(lease)
    alone.process.communicate()


@pytest.mark.slow
def test_without_a_sign_of_life_the_box_ends_what_runs_and_cleans_itself(lease: Lease) -> None:
    alone = TheBoxAlone(lease, 2)
    load = subprocess.Popen(("sleep", "900"), env={"MOUNTLAB_RUN": lease.run_id}, cwd=lease.output_dir)
    alone.process.communicate()
    wait_until("a clean box", alone.gone)
    assert load.wait(LIMIT_S) == -15


@pytest.mark.slow
def test_signs_of_life_keep_it(lease: Lease) -> None:
    alone = TheBoxAlone(lease, 4)
    assert alone.process.stdin is not None
    for _ in range(20):
        alone.process.stdin.write(b"\n")
        alone.process.stdin.flush()
        threading.Event().wait(0.25)
    assert Path(lease.output_dir).exists()
    alone.process.communicate()
    wait_until("a clean box", alone.gone)


@pytest.mark.slow
def test_a_box_that_another_run_has_now_is_not_cleaned(lease: Lease) -> None:
    alone = TheBoxAlone(lease, 1, lock="somebody 3/4 else\n")
    watcher = alone.watcher()
    alone.process.communicate()
    wait_until("the end of the watcher", lambda: not is_alive(watcher))
    assert Path(lease.output_dir).exists()


# --- and its end with the run -----------------------------------------------------------------------------------------


def closed(lease: Lease) -> None:
    undo = open_run_step(lease).undo
    assert undo is not None
    subprocess.run(undo, check=True)


def holders(lease: Lease) -> list[str]:
    """The processes of a lease: what listens, what watches, what it waits in."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if lease.output_dir.encode() in (process / "cmdline").read_bytes():
                found.append(process.name)
        except OSError:
            continue
    return found


@pytest.mark.slow
def test_close_ends_the_lease_though_the_connection_is_not_known_to_be_lost(lease: Lease, tmp_path: Path) -> None:
    """A link that was reset on one side only: the box's sshd keeps the other one for minutes. Nothing comes, nothing
    ends, and the watcher never wakes: its `sleep` does not end."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "sleep").write_text(f"#!/bin/sh\nexec {shutil.which('sleep')} infinity\n")
    (tmp_path / "bin" / "sleep").chmod(0o755)
    alone = TheBoxAlone(lease, 600, path=str(tmp_path / "bin"))
    watcher = alone.watcher()
    closed(lease)
    alone.process.wait(LIMIT_S)
    wait_until("the end of the watcher", lambda: not is_alive(watcher))
    wait_until("no process of the lease", lambda: holders(lease) == [])
    assert alone.gone()
    alone.process.communicate()


def test_a_lease_that_comes_after_the_end_of_its_run_holds_nothing(lease: Lease) -> None:
    """A connection that was made before the end, and whose command begins after it."""
    TheBoxAlone(lease, 600).process.communicate()
    closed(lease)
    late = subprocess.Popen(lease_argv(lease, 600, "0"), stdin=subprocess.PIPE)
    late.wait(LIMIT_S)
    late.communicate()
    assert holders(lease) == []
    assert not Path(lease.output_root).exists()


@pytest.mark.slow
@pytest.mark.parametrize("milliseconds", [range(0, 20, 4), pytest.param(range(20), marks=pytest.mark.long)], ids=str)
def test_a_lease_that_begins_while_its_run_ends_holds_nothing(milliseconds: range, lease: Lease) -> None:
    for number in milliseconds:
        alone = TheBoxAlone(lease, 600) if number == 0 else None
        if alone is None:
            subprocess.run(open_run_step(lease).argv, check=True)
        late = subprocess.Popen(lease_argv(lease, 600, "0"), stdin=subprocess.PIPE)
        threading.Event().wait(number / 1000)
        closed(lease)
        for process in filter(None, (late, alone and alone.process)):
            process.wait(LIMIT_S)
            process.communicate()
        wait_until("no process of the lease", lambda: holders(lease) == [])
        assert not Path(lease.output_root).exists()


def test_a_lease_that_is_made_anew_while_its_run_ends_is_closed(lease: Lease) -> None:
    made: list[Heard] = []
    again, over = threading.Event(), threading.Event()

    def attend() -> Any:
        if made:
            again.set()
            over.wait(LIMIT_S)  # the run ends while the connection is made
        made.append(Heard(deaf=not made))
        return made[-1]

    heart = Heartbeat(attend, 0.01)
    heart.begin()
    assert again.wait(LIMIT_S)
    heart.stop()
    over.set()
    wait_until("the end of the new lease", lambda: len(made) == 2 and made[1].closed)
