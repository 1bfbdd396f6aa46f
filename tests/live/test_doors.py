"""The private sshd under attack, and secrets that must not be left anywhere. Paramiko itself tries the doors."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
import yaml
from live.test_papermill import run_by_papermill
from mountlab.box.embedded import loopback
from mountlab.box.embedded.loopback import private_sshd
from mountlab.box.ssh import Endpoint, connect
from mountlab.core.errors import BoxError
from mountlab.core.model import Box
from mountlab.publish import export
from mountlab.results import paths, store, tables
from ownbox import output_root
from paramiko import Ed25519Key, Transport
from paramiko.ssh_exception import AuthenticationException, BadAuthenticationType, ChannelException, SSHException
from waiting import LIMIT_S

pytestmark = [pytest.mark.box, pytest.mark.requires_program("sshd"), pytest.mark.requires_program("ssh-keygen")]

LOCAL = Box(name="local", host="", embedded="loopback")
PASSPHRASE = f"planted-passphrase-{uuid4().hex}"
"""Of this session: another one on this machine plants its own."""


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Endpoint]:
    with private_sshd(LOCAL) as running:
        yield running


@pytest.fixture
def transport(endpoint: Endpoint) -> Iterator[Transport]:
    """Connected, and not yet logged in."""
    opened = Transport((endpoint.host, endpoint.port))
    opened.start_client(timeout=LIMIT_S)
    yield opened
    opened.close()


@pytest.fixture
def inside(transport: Transport, endpoint: Endpoint) -> Transport:
    """Logged in, with the key that was made for it."""
    transport.auth_publickey(endpoint.user, Ed25519Key.from_private_key_file(str(endpoint.key_file)))
    return transport


# --- who gets in ------------------------------------------------------------------------------------------------------


def test_no_password_and_no_questions(transport: Transport, endpoint: Endpoint) -> None:
    with pytest.raises(BadAuthenticationType) as caught:
        transport.auth_password(endpoint.user, "")
    assert caught.value.allowed_types == ["publickey"]
    with pytest.raises(BadAuthenticationType):
        transport.auth_interactive(endpoint.user, lambda *_: [""])


def test_nobody_gets_in_with_nothing(transport: Transport, endpoint: Endpoint) -> None:
    with pytest.raises(BadAuthenticationType):
        transport.auth_none(endpoint.user)


@pytest.mark.parametrize("user", ["nobody", "daemon", "root ", "ROOT", "", "a" * 300, "-oX", "$(id)"])
def test_the_right_key_opens_for_one_user_only(user: str, transport: Transport, endpoint: Endpoint) -> None:
    key = Ed25519Key.from_private_key_file(str(endpoint.key_file))
    with pytest.raises((AuthenticationException, SSHException)):
        transport.auth_publickey(user, key)
    assert not transport.is_authenticated()


def test_it_listens_on_loopback_only(endpoint: Endpoint) -> None:
    listening = [line.split()[1] for file in ("tcp", "tcp6") for line in _rows(file) if line.split()[3] == "0A"]
    assert [each for each in listening if each.endswith(f":{endpoint.port:04X}")] == [f"0100007F:{endpoint.port:04X}"]


def _rows(file: str) -> list[str]:
    path = Path("/proc/net", file)
    return path.read_text().splitlines()[1:] if path.exists() else []


def test_its_keys_are_for_its_user_alone(endpoint: Endpoint) -> None:
    directory = endpoint.key_file.parent
    assert directory.stat().st_mode & 0o077 == 0
    assert all((directory / name).stat().st_mode & 0o077 == 0 for name in ("host_key", "client_key"))


# --- what those may do who are in -------------------------------------------------------------------------------------


def test_nothing_is_forwarded(inside: Transport, endpoint: Endpoint) -> None:
    with pytest.raises(ChannelException):
        inside.open_channel("direct-tcpip", (endpoint.host, endpoint.port), ("127.0.0.1", 1), timeout=LIMIT_S)
    with pytest.raises(SSHException):
        inside.request_port_forward("127.0.0.1", 0)
    with pytest.raises((SSHException, EOFError)):  # a tunnel of a network
        inside.open_channel("tun@openssh.com", timeout=LIMIT_S)


def test_the_agent_is_not_taken(inside: Transport) -> None:
    channel = inside.open_session(timeout=LIMIT_S)
    with suppress(SSHException):
        channel.request_forward_agent(lambda *_: None)
    channel.exec_command("echo agent=$SSH_AUTH_SOCK")
    assert channel.makefile().read() == b"agent=\n"


def test_no_terminal_no_files_and_no_x(inside: Transport) -> None:
    for ask in (
        lambda each: each.get_pty(),
        lambda each: each.invoke_subsystem("sftp"),
        lambda each: each.request_x11(),
    ):
        channel = inside.open_session(timeout=LIMIT_S)
        with pytest.raises(SSHException):
            ask(channel)


def test_the_environment_is_not_ours_to_set(inside: Transport) -> None:
    for name in ("LD_PRELOAD", "PATH", "BASH_ENV", "ENV", "MOUNTLAB_RUN"):
        channel = inside.open_session(timeout=LIMIT_S)
        with suppress(SSHException):
            channel.set_environment_variable(name, "/planted")
        channel.exec_command("env")
        assert b"/planted" not in channel.makefile().read()


def test_the_configuration_names_no_file_but_its_own(tmp_path: Path) -> None:
    text = loopback.configuration(tmp_path, 4022, "alice", pam=False)
    assert set(re.findall(r'"(/[^"]*)"', text)) == {f"{tmp_path}/{name}" for name in ("host_key", "authorized_keys")}
    assert "Subsystem" not in text
    assert "DisableForwarding yes" in text


# --- secrets ----------------------------------------------------------------------------------------------------------


@contextmanager
def agent(key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An ssh agent that holds a key with a passphrase."""
    ask = tmp_path / "ask"
    ask.write_text(f"#!/bin/sh\necho {PASSPHRASE}\n")
    ask.chmod(0o700)
    socket = tmp_path / "agent.sock"
    with subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL) as running:
        try:
            environment = {
                **os.environ,
                "SSH_AUTH_SOCK": str(socket),
                "SSH_ASKPASS": str(ask),
                "SSH_ASKPASS_REQUIRE": "force",
                "DISPLAY": ":0",
            }
            for _ in range(50):
                done = subprocess.run(["ssh-add", str(key)], env=environment, capture_output=True, check=False)
                if done.returncode == 0:
                    break
                os.sched_yield()
                subprocess.run(["sleep", "0.1"], check=True)
            assert done.returncode == 0, done.stderr
            monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
            yield str(socket)
        finally:
            running.terminate()


@pytest.fixture
def locked_key(endpoint: Endpoint, tmp_path: Path) -> Path:
    """A key with a passphrase, which the private sshd knows."""
    key = tmp_path / "locked"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", PASSPHRASE, "-f", str(key)], check=True)
    with (endpoint.key_file.parent / "authorized_keys").open("a") as known:
        known.write(key.with_suffix(".pub").read_text())
    return key


@pytest.fixture
def lab(endpoint: Endpoint, locked_key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A box `lab` of the user's own, which only the locked key opens. Gives the directory for results."""
    ssh = tmp_path / ".ssh"
    ssh.mkdir()
    (ssh / "config").write_text(
        f"Host lab\n HostName {endpoint.host}\n Port {endpoint.port}\n User {endpoint.user}\n"
        f" IdentityFile {locked_key}\n ForwardAgent yes\n"
    )
    (ssh / "known_hosts").write_text(endpoint.known_hosts.read_text())
    boxes = tmp_path / "params" / "boxes"
    boxes.mkdir(parents=True)
    roots = {"mount_root": f"{tmp_path}/mountlab-root", "output_root": output_root(tmp_path)}
    (boxes / "lab.yml").write_text(yaml.safe_dump({"host": "lab", **roots}))
    (boxes.parent / "published").mkdir()
    monkeypatch.setattr(paths, "PARAMS", tmp_path / "params")
    monkeypatch.setenv("MOUNTLAB_PARAMS", str(tmp_path / "params"))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path / "results"


def everywhere(directory: Path) -> bytes:
    return b"\0".join(path.read_bytes() for path in directory.rglob("*") if path.is_file())


def command_lines() -> bytes:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            found.append((process / "cmdline").read_bytes())
    return b"\0".join(found)


@pytest.mark.slow
@pytest.mark.requires_program("ssh-agent")
def test_nothing_of_a_key_in_the_agent_is_left_anywhere(
    lab: Path, locked_key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a notebook that papermill runs with a sweep file as its parameters, as in test_papermill.py."""
    secrets = [PASSPHRASE, *re.findall(r"[A-Za-z0-9+/]{60,}", locked_key.read_text())]
    with agent(locked_key, tmp_path, monkeypatch) as socket:
        with closing(connect(paths.load_box("lab"))) as connection:
            assert connection.run(("sh", "-c", "echo agent=$SSH_AUTH_SOCK")).text == "agent=\n", "it is not forwarded"
            seen = connection.run(("ps", "axww")).stdout + command_lines()
        path, printed = run_by_papermill(tmp_path, "lab")
    run = store.load_run(path)
    for name, data in export.export_files(
        tables.tables(run), run.sweep, "csv", export.Pivot.read(None, None, None)
    ).items():
        (path / name).write_bytes(data)
    kept = everywhere(lab) + printed.encode()
    for secret in secrets:
        assert secret.encode() not in kept + seen
    for place in (socket, str(locked_key)):  # the agent itself has them in its command line
        assert place.encode() not in kept


def test_a_locked_key_without_an_agent_is_refused_and_asks_nobody(lab: Path) -> None:
    with pytest.raises(BoxError, match="refused the login") as caught:
        connect(paths.load_box("lab"))
    assert "ssh-add" in caught.value.next_step
    assert PASSPHRASE not in str(caught.value)


def test_the_key_of_an_embedded_box_is_in_no_command_line(endpoint: Endpoint) -> None:
    body = re.findall(r"[A-Za-z0-9+/]{60,}", endpoint.key_file.read_text())
    assert body
    opened = connect(LOCAL, endpoint)
    lines = opened.run(("sh", "-c", "cat /proc/[0-9]*/cmdline 2>/dev/null")).stdout + command_lines()
    opened.close()
    assert not [each for each in body if each.encode() in lines]


def test_a_line_for_hand_use_names_no_secret() -> None:
    with pytest.raises(BoxError) as caught:
        connect(replace(LOCAL, name="lab", embedded=None, host="127.0.0.1", port=1, user="alice"))
    words = shlex.split(caught.value.next_step.rpartition("by hand: ")[2])
    assert words == ["ssh", "-p", "1", "-l", "alice", "127.0.0.1", "true"]
