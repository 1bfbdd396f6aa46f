"""The local box, for real: a private sshd on loopback, and what Fabric and we make of it."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mountlab.box.connection import BoxConnection
from mountlab.box.embedded import here, loopback, open_box
from mountlab.box.embedded.loopback import install_sshd, private_sshd
from mountlab.box.facts import gather
from mountlab.box.ssh import Endpoint, SshBox, connect
from mountlab.core.errors import BoxError, BoxTimeout, HostKeyError, ParameterError, PlanError
from mountlab.core.model import Box, Program
from ordinary import Ordinary, allow_sudo, ordinary_user
from processes import is_alive, processes_with
from waiting import LIMIT_S, wait_until

pytestmark = [pytest.mark.box, pytest.mark.requires_program("sshd"), pytest.mark.requires_program("ssh-keygen")]

LOCAL = Box(name="local", host="", embedded="loopback")


@pytest.fixture(scope="module")
def local() -> Iterator[BoxConnection]:
    with open_box(LOCAL) as connection:
        yield connection


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    with private_sshd(LOCAL) as running:
        yield running


# --- commands ---------------------------------------------------------------------------------------------------------


def test_every_byte_arrives_on_both_streams(local: BoxConnection) -> None:
    every = bytes(range(256))
    argv = (sys.executable, "-c", "import os; b = bytes(range(256)); os.write(1, b); os.write(2, b[::-1])")
    done = local.run(argv)
    assert (done.stdout, done.stderr, done.exit_status, done.argv) == (every, every[::-1], 0, argv)


def test_five_megabytes_arrive_whole(local: BoxConnection) -> None:
    code = "import sys; sys.stdout.buffer.write(bytes(range(256)) * 20480)"
    assert local.run((sys.executable, "-c", code)).stdout == bytes(range(256)) * 20480


def test_a_tar_stream_arrives_whole(local: BoxConnection, tmp_path: Path) -> None:
    (tmp_path / "random").write_bytes(os.urandom(300_000))
    stream = local.run(("tar", "-C", str(tmp_path), "-cf", "-", ".")).stdout
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    subprocess.run(["tar", "-C", str(unpacked), "-xf", "-"], input=stream, check=True)
    assert (unpacked / "random").read_bytes() == (tmp_path / "random").read_bytes()


@pytest.mark.parametrize(
    ("argv", "exit_status"),
    [(("true",), 0), (("sh", "-c", "exit 7"), 7), (("sh", "-c", "kill -9 $$"), 137), (("no-such-program",), 127)],
)
def test_exit_statuses_are_answers(local: BoxConnection, argv: tuple[str, ...], exit_status: int) -> None:
    assert local.run(argv).exit_status == exit_status


def test_arguments_and_environment(local: BoxConnection) -> None:
    words = ("a b", "it's", "$HOME", "back\\slash", "new\nline", "!", "*", "", "é")
    assert local.run(("printf", "%s|", *words)).text == "".join(f"{word}|" for word in words)
    environment = local.run(("env",)).text.splitlines()
    assert "LC_ALL=C" in environment
    assert any(line.startswith("PATH=") and line.endswith(":/usr/local/sbin:/usr/sbin:/sbin") for line in environment)
    assert local.run(("cat",)).stdout == b""  # standard input is empty, and not ours


def test_packets_are_sent_at_once(endpoint: Endpoint) -> None:
    """Without TCP_NODELAY every command waits 40 ms for a delayed acknowledgement."""
    opened = connect(LOCAL, endpoint)
    sock = opened._connection.transport.sock
    assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
    opened.close()


@pytest.mark.requires_root  # whose sshd alone needs this directory
def test_two_that_start_and_stop_at_the_same_moment_agree_on_the_directory_of_sshd(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(loopback, "PRIVSEP_DIR", tmp_path / "sshd")
    monkeypatch.setattr(loopback, "_sshds", dict)

    def starts_and_stops(_: int) -> None:
        for _ in range(500):
            loopback._make_privsep_dir()
            loopback._remove_privsep_dir(set())

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(starts_and_stops, range(4)))
    loopback._make_privsep_dir()
    assert (tmp_path / "sshd").is_dir()


@pytest.mark.requires_root  # whose sshd alone needs this directory
def test_one_that_starts_while_another_looks_for_sshds_has_the_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Trap: the other one then removed what the new sshd had seen there, and its connections died."""
    monkeypatch.setattr(loopback, "PRIVSEP_DIR", tmp_path / "sshd")
    monkeypatch.setattr(loopback, "spawn", lambda *_: daemon)
    monkeypatch.setattr(loopback, "_wait_for_greeting", lambda *_: True)
    loopback._make_privsep_dir()
    with subprocess.Popen(["sleep", "60"]) as daemon:
        starts = threading.Thread(target=lambda: loopback._start(LOCAL, "sshd", tmp_path, forwards=False))

        looks = iter([lambda: None, lambda: (starts.start(), starts.join(0.5))])
        monkeypatch.setattr(loopback, "_sshds", lambda: (next(looks)(), {})[1])
        loopback._remove_privsep_dir({0})
        starts.join()
        daemon.kill()
    assert (tmp_path / "sshd").is_dir()


def test_an_sshd_that_nobody_has_waited_for_needs_no_directory(tmp_path: Path) -> None:
    """The first process of a container may never ask how the sessions of an sshd ended."""
    shutil.copy(shutil.which("sleep") or pytest.fail("no sleep"), tmp_path / "sshd")
    ended, running = (subprocess.Popen([tmp_path / "sshd", seconds]) for seconds in ("0", "60"))
    try:
        wait_until("its end", lambda: ended.pid not in loopback._sshds())
        assert loopback._sshds()[running.pid] == os.getpid()
        assert ended.returncode is None, "it is still there, and nobody has waited for it"
    finally:
        running.kill()
        running.wait()
        ended.wait()


# --- time limits, lost connections, Ctrl-C ----------------------------------------------------------------------------


def test_a_command_that_takes_too_long_is_stopped_on_the_box(local: BoxConnection, tmp_path: Path) -> None:
    pid_file = tmp_path / "pid"
    script = f"echo $$ > {pid_file}; echo half-way >&2; exec sleep 60"
    with pytest.raises(BoxTimeout) as caught:
        local.run(("sh", "-c", script), timeout_s=1)
    assert caught.value.what == "a command on the box did not end in 1 s and was stopped"
    assert script in caught.value.got
    assert caught.value.evidence.strip() == "half-way"
    wait_until("the end of the command", lambda: not is_alive(int(pid_file.read_text())))
    assert local.run(("true",)).ok


def test_exit_status_124_of_its_own_is_no_time_out(local: BoxConnection) -> None:
    assert local.run(("sh", "-c", "exit 124")).exit_status == 124


def test_a_lost_connection_is_an_error_and_the_next_command_connects_anew(local: BoxConnection) -> None:
    # Up from sh, timeout and the login shell to the process of sshd that serves us.
    script = r"""
    pid=$$
    while read -r name <"/proc/$pid/comm" && case $name in sshd*) false ;; esac; do
        pid=$(sed -n 's/^PPid:[[:space:]]*//p' "/proc/$pid/status")
    done
    kill -9 "$pid"; sleep 5"""
    with pytest.raises(BoxError) as caught:
        local.run(("sh", "-c", script))
    assert caught.value.what == "the connection to the box was lost while a command ran"
    assert "mountlab box clean local" in caught.value.next_step
    assert local.run(("echo", "again")).text == "again\n"


def test_ctrl_c_ends_a_command_and_leaves_a_usable_connection(local: BoxConnection) -> None:
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        local.run(("sleep", f"{2 * LIMIT_S}"), timeout_s=LIMIT_S)
    assert local.run(("true",)).ok


# --- rights -----------------------------------------------------------------------------------------------------------


def test_become_none_takes_rights_away() -> None:
    with open_box(replace(LOCAL, become="none")) as connection:
        assert connection.rights == "none"
        with pytest.raises(PlanError, match="this needs root on the box"):
            connection.run(("mount",), root=True)
        assert connection.run(("true",)).ok


@pytest.mark.requires_root
def test_root_has_rights(local: BoxConnection) -> None:
    assert local.rights == "root"
    assert local.run(("id", "-u"), root=True).text == "0\n"


def test_facts_of_this_machine(local: BoxConnection) -> None:
    facts = gather(local, [Program(name="sh", packages={}, version=("sh", "-c", "echo one; echo two"))])
    assert facts.kernel.release == os.uname().release
    assert facts.rights.uid == os.geteuid()
    assert facts.rights.level == local.rights
    assert facts.programs.version("sh") == "one"
    assert set(facts.kernel.filesystems or ()) >= {"proc", "tmpfs"}


# --- host keys and logins ---------------------------------------------------------------------------------------------


@pytest.fixture
def home(endpoint: Endpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An ssh configuration of a user's, in which `lab` is the private sshd, with the right key to log in."""
    ssh = tmp_path / ".ssh"
    ssh.mkdir()
    (ssh / "config").write_text(
        f"Host lab jump\n HostName {endpoint.host}\n Port {endpoint.port}\n User {endpoint.user}\n"
        f" IdentityFile {endpoint.key_file}\n"
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    return ssh


def other_key(directory: Path) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(directory / "other")], check=True)
    return (directory / "other.pub").read_text().split()[1]


def test_a_box_of_the_users_own_configuration(home: Path, endpoint: Endpoint) -> None:
    shutil.copy(endpoint.known_hosts, home / "known_hosts")
    with open_box(Box(name="lab", host="lab")) as connection:
        assert connection.run(("id", "-un")).text.strip() == endpoint.user


def test_what_goes_to_a_box_of_the_users_is_compressed(home: Path, endpoint: Endpoint) -> None:
    """Over a link with latency the script of a trial, and what it brings back, would each take a round trip more."""
    shutil.copy(endpoint.known_hosts, home / "known_hosts")
    with open_box(Box(name="lab", host="lab")) as connection:
        assert connection.run(("printf", "%s", "x" * 20000)).stdout == b"x" * 20000
        assert connection.run(("sh", "-c", "head -c 256000 /dev/zero")).stdout == bytes(256000)
        transport = connection._connection.transport
        assert (transport.remote_compression, transport.local_compression) == ("zlib@openssh.com",) * 2


def test_an_unknown_host_key_is_refused_and_shown(home: Path, endpoint: Endpoint) -> None:
    with pytest.raises(HostKeyError) as caught:
        connect(Box(name="lab", host="lab"))
    error = caught.value
    shown = subprocess.run(
        ["ssh-keygen", "-lf", endpoint.key_file.with_name("host_key.pub")], capture_output=True, text=True, check=True
    ).stdout.split()[1]
    assert error.what == "the box's host key is unknown, so this may be another machine"
    assert error.where == "params/boxes/lab.yml: host"
    assert error.got == f"[127.0.0.1]:{endpoint.port} shows ssh-ed25519 {shown}"
    assert str(home / "known_hosts") in error.allowed
    assert "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub" in error.next_step
    assert "run `ssh lab` once" in error.next_step
    assert endpoint.known_hosts.read_text().strip() in error.next_step  # the very line to add
    assert error.exit_code == 3


def test_a_changed_host_key_never_continues(home: Path, endpoint: Endpoint) -> None:
    (home / "known_hosts").write_text(f"[127.0.0.1]:{endpoint.port} ssh-ed25519 {other_key(home)}\n")
    with pytest.raises(HostKeyError) as caught:
        connect(Box(name="lab", host="lab"))
    error = caught.value
    assert "has CHANGED" in error.what
    assert error.got.startswith("ssh-ed25519 SHA256:")
    assert error.allowed.startswith("ssh-ed25519 SHA256:")
    assert error.got.split()[1] != error.allowed.split()[1].rstrip(",")
    assert f"ssh-keygen -R '[127.0.0.1]:{endpoint.port}'" in error.next_step


def test_host_key_alias_and_known_hosts_file_of_the_configuration(home: Path, endpoint: Endpoint) -> None:
    kind, key = endpoint.known_hosts.read_text().split()[1:]
    (home / "mine").write_text(f"rack7 {kind} {key}\n")
    config = home / "config"
    config.write_text(config.read_text() + f" HostKeyAlias rack7\n UserKnownHostsFile {home / 'mine'}\n")
    with open_box(Box(name="lab", host="lab")) as connection:
        assert connection.run(("true",)).ok


def test_the_key_of_a_jump_host_is_checked_too(home: Path) -> None:
    config = home / "config"
    config.write_text(f"Host far\n HostName far.invalid\n ProxyJump jump\n{config.read_text()}")
    with pytest.raises(HostKeyError, match="host key is unknown"):
        connect(Box(name="far", host="far"))


def test_the_revoked_key_of_a_jump_host_ends_it(home: Path, endpoint: Endpoint) -> None:
    known = endpoint.known_hosts.read_text()
    (home / "known_hosts").write_text(f"{known}@revoked * {' '.join(known.split()[1:])}\n")
    config = home / "config"
    config.write_text(f"Host far\n HostName far.invalid\n ProxyJump jump\n{config.read_text()}")
    with pytest.raises(HostKeyError, match="was REVOKED"):
        connect(Box(name="far", host="far"))


def test_one_of_several_keys_and_a_name_with_wildcards_are_enough(home: Path, endpoint: Endpoint) -> None:
    kind, key = endpoint.known_hosts.read_text().split()[1:]
    listed = f"[127.0.0.*]:* {kind} {other_key(home)}\n[127.0.0.*]:* {kind} {key}\n"
    (home / "known_hosts").write_text(f"[127.0.0.1]:{endpoint.port} ssh-rsa AAAA\n{listed}")
    with open_box(Box(name="lab", host="lab")) as connection:
        assert connection.run(("true",)).ok


def test_a_known_hosts_file_that_cannot_be_read(home: Path) -> None:
    (home / "known_hosts").write_bytes(b"\xff\xfe\n")
    with pytest.raises(BoxError) as caught:
        connect(Box(name="lab", host="lab"))
    assert caught.value.where == str(home / "known_hosts")


def test_a_refused_login(home: Path, endpoint: Endpoint) -> None:
    shutil.copy(endpoint.known_hosts, home / "known_hosts")
    with pytest.raises(BoxError) as caught:
        connect(Box(name="lab", host="lab", user="nobody"))
    assert caught.value.what == "the box refused the login"
    assert "nobody@127.0.0.1" in caught.value.got
    assert "ssh -l nobody lab true" in caught.value.next_step


def test_only_the_key_that_was_made_opens_the_door(endpoint: Endpoint, tmp_path: Path) -> None:
    other_key(tmp_path)
    with pytest.raises(BoxError, match="refused the login") as caught:
        connect(LOCAL, replace(endpoint, key_file=tmp_path / "other"))
    assert "Server listening" in caught.value.evidence  # the log of the private sshd


# --- starting and stopping --------------------------------------------------------------------------------------------


def private_directories() -> set[Path]:
    return set(Path(tempfile.gettempdir()).glob("mountlab-sshd-*"))


def test_nothing_is_left_after_it_stopped() -> None:
    before = private_directories()
    with private_sshd(LOCAL) as endpoint:
        directory = endpoint.key_file.parent
        assert directory.stat().st_mode & 0o777 == 0o700
        assert endpoint.key_file.stat().st_mode & 0o777 == 0o600
    assert not directory.exists()
    assert private_directories() == before
    with pytest.raises(BoxError, match="refused the connection"):
        connect(LOCAL, endpoint)


def test_two_at_a_time() -> None:
    with open_box(LOCAL) as one, open_box(LOCAL) as two:
        assert one.run(("true",)).ok
        assert two.run(("true",)).ok


def test_it_goes_with_us_even_when_we_are_killed_outright(tmp_path: Path) -> None:
    code = """
import time
from mountlab.box.embedded.loopback import private_sshd
from mountlab.core.model import Box
with private_sshd(Box(name="local", host="", embedded="loopback")) as endpoint:
    print(endpoint.key_file.parent, flush=True)
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        directory = Path(process.stdout.readline().strip())
        assert len(processes_with(str(directory))) == 2  # sshd and the watchdog
        process.kill()
    wait_until("no directory", lambda: not directory.exists())
    wait_until("no process", lambda: not processes_with(str(directory)))


def test_ctrl_c_in_the_terminal_does_not_reach_sshd() -> None:
    with private_sshd(LOCAL) as endpoint:
        pids = processes_with(str(endpoint.key_file.parent))
        assert all(os.getsid(pid) != os.getsid(0) for pid in pids)


def test_an_sshd_that_does_not_start_shows_its_log(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    broken = tmp_path / "sshd"
    broken.write_text("#!/bin/sh\necho 'Privilege separation user does not exist' >&2\nexit 255\n")
    broken.chmod(0o755)
    find = here.find_program
    monkeypatch.setattr(here, "find_program", lambda name: str(broken) if name == "sshd" else find(name))
    before = private_directories()
    with pytest.raises(BoxError) as caught, private_sshd(LOCAL):
        pass
    assert caught.value.what == "the private sshd did not start"
    assert caught.value.got == "exit status 255"
    assert "Privilege separation user" in caught.value.evidence
    assert private_directories() == before


def hide_programs(monkeypatch: pytest.MonkeyPatch, *hidden: str) -> None:
    find = here.find_program
    monkeypatch.setattr(here, "find_program", lambda name: None if name in hidden else find(name))


def test_a_missing_sshd_comes_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    hide_programs(monkeypatch, "sshd")
    monkeypatch.setattr(here, "manager", lambda: "pacman")
    with pytest.raises(BoxError) as caught, private_sshd(LOCAL):
        pass
    assert caught.value.what.startswith("sshd is missing on this machine")
    assert "mountlab box prepare local" in caught.value.next_step
    assert "pacman -S --needed --noconfirm openssh" in caught.value.next_step


def test_installing_sshd_asks_first(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Any] = []
    questions: list[str] = []

    def refuse(question: str) -> bool:
        questions.append(question)
        return False

    monkeypatch.setattr(here.subprocess, "run", lambda *args, **_: ran.append(args))
    assert install_sshd(LOCAL, yes=False, ask=refuse) == ()  # it is there: nothing to ask
    assert questions == []
    hide_programs(monkeypatch, "sshd")
    monkeypatch.setattr(here, "manager", lambda: "apt")
    assert install_sshd(LOCAL, yes=False, ask=refuse) == ()
    assert len(questions) == 1
    assert "apt-get install -y openssh-server" in questions[0]
    assert ran == []
    hide_programs(monkeypatch, "sshd", *here.MANAGERS)
    monkeypatch.setattr(here, "manager", lambda: None)
    with pytest.raises(BoxError, match="no package manager that we know"):
        install_sshd(LOCAL, yes=True, ask=refuse)


def test_an_unknown_kind_of_box() -> None:
    with pytest.raises(ParameterError) as caught, open_box(Box(name="b", host="", embedded="moon")):
        pass
    assert (caught.value.got, caught.value.allowed) == ("moon", "loopback, vm")


def test_a_locked_password_is_seen(tmp_path: Path) -> None:
    shadow = tmp_path / "shadow"
    shadow.write_text("root:!:1::\nalice:$y$hash:1::\nbob:!$y$hash:1::\nrooty:*:1::\n")
    assert [loopback._is_locked(user, shadow) for user in ("root", "alice", "bob", "rooty", "nobody")] == [
        True,
        False,
        True,
        False,
        False,
    ]
    assert not loopback._is_locked("root", tmp_path / "absent")


# --- an ordinary user -------------------------------------------------------------------------------------------------


@pytest.fixture
def user() -> Iterator[Ordinary]:
    with ordinary_user() as ordinary:
        yield ordinary


@pytest.mark.long
@pytest.mark.requires_root
@pytest.mark.requires_program("useradd")
@pytest.mark.requires_program("setpriv")
def test_it_works_for_an_ordinary_user(user: Ordinary) -> None:
    code = """
import os, sys
from mountlab.box.embedded import open_box
from mountlab.box.leftovers import remove_leftovers
from mountlab.core.errors import PlanError
from mountlab.box.facts import gather
from mountlab.core.model import Box
with open_box(Box(name="local", host="", embedded="loopback")) as box:
    facts = gather(box, [])
    print(box.rights, facts.rights.user, *facts.storage.roots, remove_leftovers(box))
    try:
        box.run(("mount",), root=True)
    except PlanError:
        print("no root")
"""
    command = [*user.python, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert done.stderr == ""
    rights, name, mount_root, output_root, *left = done.stdout.splitlines()[0].split()
    assert (rights, name, left) == ("none", user.name, ["[]"])
    assert mount_root == f"/var/tmp/mountlab-{user.name}"
    assert output_root in (f"/dev/shm/mountlab-{user.name}", f"{mount_root}/out")
    assert done.stdout.splitlines()[1] == "no root"


@pytest.mark.long
@pytest.mark.requires_root
@pytest.mark.requires_program("useradd")
@pytest.mark.requires_program("setpriv")
@pytest.mark.requires_program("sudo")
def test_sudo_without_a_password_gives_root(user: Ordinary) -> None:
    allow_sudo(user)
    code = """
from mountlab.box.embedded import open_box
from mountlab.core.errors import BoxTimeout
from mountlab.core.model import Box
with open_box(Box(name="local", host="", embedded="loopback", become="sudo")) as box:
    print(box.rights, box.run(("id", "-u")).text.strip() != "0", box.run(("id", "-u"), root=True).text.strip())
    print(box.run(("sh", "-c", "echo $LC_ALL; command -v losetup"), root=True).text.split())
    try:
        box.run(("sleep", "30"), timeout_s=1, root=True)
    except BoxTimeout:
        print("stopped")
"""
    command = [*user.python, "-c", code]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    assert done.stderr == ""
    first, second, third = done.stdout.splitlines()
    assert first == "sudo True 0"
    assert second.startswith("['C', '/")
    assert third == "stopped"


def test_a_box_is_what_the_protocol_says(local: BoxConnection) -> None:
    assert isinstance(local, SshBox)
    assert local.box == LOCAL
    assert shlex.join(local.run(("true",)).argv) == "true"
