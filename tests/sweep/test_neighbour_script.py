"""Neighbours in the script of one trial, run for real in a directory: no root, no mount, no network."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from installed_programs import program
from mountlab.box.containment import CGROUPS
from mountlab.core.shell import script_argv
from mountlab.filesystems.neighbours import Beside, read_beside
from mountlab.outcome.archive import unpack
from mountlab.outcome.judging import Outcome
from mountlab.sweep.beside import AwayNeighbours
from mountlab.sweep.plan import PlannedTrial
from sweep.test_trial_script import RUN, Machine, left, opened
from waiting import wait_until

SLEEPS = {"tool": "command", "argv": "sh -c 'sleep 2; echo > {directory}/f'", "space": "1MiB"}
"""Measured: it takes two seconds, and leaves a file."""
STREAM = {"tool": "fio", "rw": "write", "bs": "64KiB", "size": "4MiB", "rate": "4m"}
WRITES = "while :; do echo x > {directory}/f; sleep 0.05; done"

pytestmark = [pytest.mark.slow, pytest.mark.requires_program("fio")]


@pytest.fixture(params=["cgroup", "environment"])
def machine(tmp_path: Path, request: pytest.FixtureRequest) -> Machine:
    """The machine with what cgroups it has, and without: then processes are found by their environment."""
    machine = Machine(tmp_path)
    machine.without_cgroups = request.param == "environment"
    return machine


def trial_beside(machine: Machine, neighbour: dict[str, Any], measured: dict[str, Any] = SLEEPS) -> PlannedTrial:
    workload = {**measured, "metrics": {"elapsed": {"from": "clock"}}, "beside": "n"}
    return opened(machine, workloads={"w": workload}, neighbours={"n": neighbour}).trials[0]


def script_of(machine: Machine, planned: PlannedTrial) -> str:
    script = planned.argv[4]
    return script.replace(f"cgroups={CGROUPS}\n", "cgroups=/nowhere\n") if machine.without_cgroups else script


def run(machine: Machine, planned: PlannedTrial) -> Outcome:
    outcome = machine.outcome(planned, script_of(machine, planned))
    assert left(machine) == []
    assert processes_of(machine) == []
    assert not list(Path(CGROUPS).glob(f"*/mountlab-{RUN}.{planned.trial_id}.1.*"))
    return outcome


def processes_of(machine: Machine) -> list[str]:
    """Those that have a directory of the test in their command or environment."""
    word, run, found = str(machine.mount_root.parent.parent).encode(), f"MOUNTLAB_RUN={RUN}".encode(), []
    for directory in Path("/proc").glob("[0-9]*"):
        try:
            texts = [(directory / name).read_bytes() for name in ("cmdline", "environ")]
        except OSError:
            continue
        if int(directory.name) != os.getpid() and any(run in text and word in text for text in texts):
            found.append(texts[0].replace(b"\0", b" ").decode()[:200])
    return found


def did(outcome: Outcome) -> Beside:
    return read_beside({name: data.decode(errors="replace") for name, data in outcome.files.items()})["n"]


def test_a_neighbour_runs_through_all_of_a_trial_and_its_load_is_kept(machine: Machine) -> None:
    outcome = run(machine, trial_beside(machine, STREAM))
    assert (outcome.status, outcome.reason) == ("ok", "")
    beside = did(outcome)
    assert beside.seconds >= 2
    assert beside.write_bytes >= 4 * 2**20
    assert (beside.restarts, beside.gaps) == (0, ())


def test_one_that_ends_early_is_started_again_and_its_gaps_are_recorded(machine: Machine, tmp_path: Path) -> None:
    """Every 0.6 s it stops for 0.3 s, as a tool does that needs time to begin. The measured command waits until it was
    started three times more, however long that takes."""
    starts = tmp_path / "starts"
    argv = f"sh -c 'sleep 0.3; echo x | tee -a {starts} > {{directory}}/f; sleep 0.3'"
    seen = f"$(wc -l < {starts})"
    until = f"sh -c 'n={seen}; while [ {seen} -lt $((n + 3)) ]; do sleep 0.1; done; echo > {{directory}}/f'"
    neighbour, measured = ({"tool": "command", "argv": text, "space": "1MiB"} for text in (argv, until))
    outcome = run(machine, trial_beside(machine, neighbour, measured))
    beside = did(outcome)
    assert beside.restarts >= 2
    assert len(beside.gaps) == beside.restarts
    assert all(end - begin >= 0.25 for begin, end in beside.gaps[:-1])
    assert all(end <= begin for (_, end), (begin, _) in pairwise(beside.gaps))
    assert beside.gaps[-1][1] <= beside.seconds
    share = sum(end - begin for begin, end in beside.gaps) / beside.seconds
    got = f"{share:.0%} of {beside.seconds:.2f} s without it"
    assert outcome.status == "invalid"
    assert re.match(rf"neighbour n did not run all the time\n +got: +{got}", outcome.reason)
    assert "allowed: 5%" in outcome.reason


def test_one_that_cannot_be_started_spoils_the_trial_before_it_is_measured(machine: Machine) -> None:
    neighbour = {"tool": "command", "argv": "sh -c 'echo no such disk >&2; exit 3' {directory}", "space": "1MiB"}
    outcome = run(machine, trial_beside(machine, neighbour))
    assert outcome.status == "invalid"
    assert outcome.reason.startswith("neighbour n did not run: it moved no bytes")
    assert "no such disk" in outcome.reason
    assert "exit_status" not in outcome.files


def test_files_that_cannot_be_laid_out_are_told(machine: Machine) -> None:
    planned = trial_beside(machine, {**STREAM, "rw": "read"})
    script = script_of(machine, planned).replace("lay_out_1() { fio ", "lay_out_1() { no-such-program ")
    outcome = machine.outcome(planned, script)
    assert outcome.status == "invalid"
    assert outcome.reason.startswith("neighbour n did not run: its files could not be laid out")
    assert "no-such-program" in outcome.reason
    assert left(machine) == []


def killed_in_the_middle(machine: Machine, planned: PlannedTrial, how: str) -> Outcome:
    """The outcome of a trial whose neighbour is killed 0.7 s after the measured command began."""
    outcomes: list[Outcome] = []
    thread = Thread(target=lambda: outcomes.append(run(machine, planned)))
    thread.start()
    out = machine.output_root / RUN / planned.trial_id
    wait_until(f"{planned.trial_id} is measured", lambda: (out / "started_ns").exists() or not thread.is_alive())
    time.sleep(0.7)
    victims = ancestors_of_fio(machine)
    if how == "killed":
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
    else:
        os.kill(victims[-1], signal.SIGSTOP)
    thread.join()
    return outcomes[0]


def ancestors_of_fio(machine: Machine) -> list[int]:
    """Processes from the shell that starts the neighbour again to the program itself, in this order."""
    table = {}
    for line in subprocess.run(
        ["ps", "-ww", "-eo", "pid=,ppid=,args="], check=False, capture_output=True, text=True
    ).stdout.splitlines():
        pid, parent, command = line.split(None, 2)
        table[int(pid)] = int(parent), command
    place = str(machine.mount_root)
    of_fio = [pid for pid, (_, command) in table.items() if command.startswith("fio") and place in command]
    lines = []
    for pid in of_fio:
        line = [pid]
        while table[line[0]][0] in table and table[line[0]][0] != os.getpid():
            line.insert(0, table[line[0]][0])
        lines.append(line[1:])  # the first is the shell of the trial
    return list(dict.fromkeys(pid for line in lines for pid in line))


@pytest.mark.parametrize("how", ["killed", "stopped"])
def test_one_that_is_gone_for_good_makes_its_trial_invalid(machine: Machine, how: str) -> None:
    outcome = killed_in_the_middle(machine, trial_beside(machine, STREAM), how)
    assert outcome.status == "invalid"
    assert "neighbour n did not run all the time" in outcome.reason


def test_a_trial_that_is_killed_leaves_nothing_of_its_neighbours(machine: Machine) -> None:
    planned = trial_beside(machine, STREAM)
    argv = (*planned.argv[:4], script_of(machine, planned), *planned.argv[5:])
    trial = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=machine.environment)
    wait_until("the trial is measured", (machine.output_root / RUN / planned.trial_id / "started_ns").exists)
    trial.kill()
    trial.wait()
    assert processes_of(machine)
    borrow = script_argv("borrow.sh")[2]
    clean = script_argv("leftovers.sh", "kill", "", RUN, "", "", borrow)
    machine.do(clean)
    machine.run((*argv, "collect"))
    assert processes_of(machine) == []
    assert left(machine) == []
    assert not list(Path(CGROUPS).glob(f"*/mountlab-{RUN}.t0001.1.*"))


@pytest.mark.requires_program("shellcheck")
def test_shellcheck_finds_nothing_in_its_script(machine: Machine, tmp_path: Path) -> None:
    file = tmp_path / "trial.sh"
    file.write_text(trial_beside(machine, {**STREAM, "rw": "read"}).argv[4])
    done = subprocess.run(
        [program("shellcheck"), "-s", "sh", "-S", "warning", str(file)], check=False, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout


def test_a_limit_that_cannot_be_set_is_an_error_before_anything_is_measured(machine: Machine) -> None:
    planned = trial_beside(machine, {**STREAM, "limits": {"cpu_max": "50%"}})
    script = script_of(machine, planned).replace(f"cgroups={CGROUPS}\n", "cgroups=/nowhere\n")
    outcome = machine.outcome(planned, script)
    assert outcome.status == "invalid"
    why = "neighbour n did not run: cpu_max cannot be limited: no controller cpu is mounted in /nowhere: mount cgroup2"
    assert left(machine) == []
    assert outcome.reason.startswith(why)
    assert "exit_status" not in outcome.files


# --- on a client ------------------------------------------------------------------------------------------------------


class Client:
    """This machine as the client on which a neighbour of a trial runs."""

    def __init__(self, machine: Machine, neighbour: dict[str, Any]) -> None:
        self.machine, self.out = machine, machine.output_root / RUN / "t0001"
        planned = trial_beside(machine, neighbour).beside
        self._away = AwayNeighbours(client="b", run_id=RUN, output=str(self.out), neighbours=planned)

    def argv(self, mode: str) -> tuple[str, ...]:
        argv, groups = self._away.argv(mode), "/nowhere" if self.machine.without_cgroups else CGROUPS
        return (*argv[:4], argv[4].replace(f"cgroups={CGROUPS}\n", f"cgroups={groups}\n"), *argv[5:])

    def do(self, mode: str) -> subprocess.CompletedProcess[bytes]:
        return self.machine.run(self.argv(mode))

    @contextmanager
    def connected(self) -> Iterator[subprocess.Popen[bytes]]:
        """Its neighbours run as long as this connection."""
        argv = self.argv("run")
        with subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, env=self.machine.environment
        ) as run:
            yield run
        # The shell that watched it has ended, and may have left the quarter of a second that it slept.
        wait_until("nothing of it runs", lambda: not processes_of(self.machine))
        assert left(self.machine) == []
        assert not list(Path(CGROUPS).glob(f"*/mountlab-{RUN}.t0001.*"))


@pytest.fixture
def client(machine: Machine) -> Client:
    return Client(machine, STREAM)


def test_a_neighbour_on_a_client_runs_until_it_is_stopped(client: Client) -> None:
    """The connection is still there: a network that is cut is not seen on the client, which another one reaches."""
    with client.connected():
        assert client.do("wait").returncode == 0
        wait_until("two looks", lambda: (client.out / "neighbours").read_text().count("n look ") >= 2)
        stopped = client.do("stop")
    assert stopped.returncode == 0
    events = [line.split()[1] for line in unpack(stopped.stdout)["neighbours"].decode().splitlines()]
    assert {"begun", "moves"} <= {*events}
    assert events[-1] == "look", "after the measured time"


def test_a_neighbour_on_a_client_ends_with_the_connection(client: Client) -> None:
    with client.connected() as connection:
        assert client.do("wait").returncode == 0
        assert connection.stdin is not None
        connection.stdin.close()
        wait_until("it ends by itself", lambda: connection.poll() is not None)
        assert client.do("stop").returncode == 0


def test_what_a_killed_shell_has_started_on_a_client_is_left_to_the_runner(client: Client) -> None:
    """`stop` fails at once; then the runner kills all processes of its run, and collects."""
    with client.connected() as connection:
        assert client.do("wait").returncode == 0
        connection.kill()
        connection.wait()
        stopped = client.do("stop")
        assert (stopped.returncode, stopped.stdout) == (1, b"")
        client.machine.do(script_argv("leftovers.sh", "kill", "", RUN, "", "", script_argv("borrow.sh")[2]))
        assert "neighbours" in unpack(client.do("collect").stdout)
        assert client.do("stop").returncode == 0, "nothing is left to stop"


def test_why_a_neighbour_does_not_run_on_a_client_is_known(machine: Machine) -> None:
    argv = "sh -c 'echo no such disk >&2; exit 3' {directory}"
    client = Client(machine, {"tool": "command", "argv": argv, "space": "1MiB"})
    with client.connected():
        waited = client.do("wait")
        assert (waited.returncode, waited.stdout) == (1, b"n: it moved no bytes\n")
        assert unpack(client.do("stop").stdout)["neighbour-n.txt"] == b"no such disk\n"
