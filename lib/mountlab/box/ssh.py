"""The box: commands run on the machine under test, over SSH with Fabric, and public test doubles for it.

`SshBox` is the only way in which Mountlab reaches a box, its own machine included. What every command gets:

- an argv list, quoted once, here; standard input is /dev/null; never a terminal;
- LC_ALL=C, and the administrator's directories at the end of PATH;
- a time limit kept by the box itself (`timeout`), so that a command never outlives it, even when we are gone;
- the box's host key checked against the user's known_hosts: Fabric's default accepts any.
"""

from __future__ import annotations

import logging
import shlex
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fabric import Config, Connection
from fabric.runners import Remote
from invoke.exceptions import CommandTimedOut, ThreadException
from invoke.runners import Runner
from paramiko import Channel, SSHConfig
from paramiko.ssh_exception import AuthenticationException, NoValidConnectionsError, SSHException

from mountlab.box import helper
from mountlab.box.connection import (
    CHUNK,
    GRACE_S,
    LARGEST_ANSWER,
    AnsweringStream,
    Completed,
    Stream,
    command_line,
    command_text,
    endless_line,
    flood,
    needs_root,
    timeout_error,
)
from mountlab.box.hostkeys import check_host_keys
from mountlab.core.errors import BoxError, BoxLost, HostKeyError, ParameterError
from mountlab.core.held import Lease
from mountlab.core.model import Box, Rights

CONNECT_TIMEOUT_S = 15
"""For the TCP connection, the SSH greeting and a new channel; ConnectTimeout of the user's ssh configuration wins."""
KEEPALIVE_S = 15
LOST_AFTER_MS = 60_000
"""Data that the box leaves unacknowledged for this long means that the connection is gone."""


# Paramiko writes tracebacks of its own beside the error that we raise.
logging.getLogger("paramiko").addHandler(logging.NullHandler())
logging.getLogger("paramiko").propagate = False


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Where an embedded box listens, and the keys made for it. The user's own ssh configuration is not read."""

    host: str
    port: int
    user: str
    key_file: Path
    known_hosts: Path
    log: Path
    """The log file of its sshd."""
    alive: Callable[[], bool] = lambda: True
    """Whether what listens there still runs: it does not come back by itself."""


class _Flood(Exception):
    """A command sent more than LARGEST_ANSWER bytes."""


class _Runner(Remote):  # type: ignore[misc]  # fabric has no types
    """Fabric's runner, made quick, quiet and bounded: it polls nothing while a command is being measured."""

    read_chunk_size = CHUNK

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._received: dict[int, int] = {}
        self._flooded = False

    def wait(self) -> None:
        # The original looks every 10 ms; the event ends the wait at once and costs nothing meanwhile.
        while not self.channel.status_event.wait(1.0) and not self.has_dead_threads:
            pass

    def respond(self, buffer_: list[str]) -> None:
        """Count the bytes, and end a flood: the command gets SIGPIPE. (The original joins all output at every chunk
        for watchers, and there are none.)"""
        self._received[id(buffer_)] = self._received.get(id(buffer_), 0) + len(buffer_[-1])
        if self._flooded or sum(list(self._received.values())) > LARGEST_ANSWER:
            self._flooded = True
            self.channel.close()
            buffer_.clear()

    def returncode(self) -> int:
        if self._flooded:
            raise _Flood
        return int(super().returncode())

    def send_interrupt(self, interrupt: KeyboardInterrupt) -> None:
        # Closing the channel ends the reading threads; the original waits for the command to end by itself.
        self.channel.close()
        raise interrupt

    def stop(self) -> None:
        # Without Fabric's reset of SIGWINCH, which is ours to handle or not.
        Runner.stop(self)
        if hasattr(self, "channel"):
            self.channel.close()


class SshBox:
    """A box over SSH. Opened by `connect`; not safe for use by several threads at once."""

    def __init__(self, box: Box, connection: Connection, where: str, endpoint: Endpoint | None = None) -> None:
        self.box = box
        self.rights: Rights = "none"
        self._connection = connection
        self._where = where
        self._endpoint = endpoint

    @property
    def fabric(self) -> Connection:
        """The Fabric connection, for a person who works by hand."""
        return self._connection

    def run(self, argv: Sequence[str], *, timeout_s: float = 60.0, root: bool = False) -> Completed:
        if root and self.rights == "none":
            raise needs_root(argv, self.box)
        return self._execute(self.spoken(argv, timeout_s, root=root), timeout_s, sudo=root and self.rights == "sudo")

    def spoken(self, argv: Sequence[str], timeout_s: float, *, root: bool) -> Sequence[str]:
        """Return the command to send for `argv`: the helper's, for a command of root with the rights 'helper'."""
        if not root or self.rights != "helper":
            return argv
        return helper.user_argv(argv, self.box, timeout_s=timeout_s)

    def holding(self, lease: Lease, stopped: Callable[[], bool]) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        for hop in _hops(self._connection):
            hop.close()

    def reopen(self) -> None:
        """Connect again. Raises BoxLost where a retry may help, HostKeyError or another BoxError where not."""
        self.close()
        if self._endpoint is not None and not self._endpoint.alive():
            raise BoxError("the embedded box has ended by itself", where=self._where, evidence=self._sshd_log())
        self.open()

    def attend(self, argv: Sequence[str], *, root: bool = False) -> Stream:
        """Start a command that lives as long as the connection. Raises BoxLost."""
        return Stream(self._channel(argv, root=root, reads_output=False), lambda got: self._lost(argv, got))

    def talk(self, argv: Sequence[str], *, root: bool = False) -> AnsweringStream:
        """Start a command that lives as long as the connection, and whose output is read. Raises BoxLost."""
        return AnsweringStream(
            self._channel(argv, root=root, reads_output=True), lambda got: self._lost(argv, got), self._where
        )

    def _channel(self, argv: Sequence[str], *, root: bool, reads_output: bool) -> Channel:
        try:
            channel = self._connection.transport.open_session(timeout=CONNECT_TIMEOUT_S)
            command = self.spoken(argv, 0.0, root=root)
            channel.exec_command(endless_line(command, sudo=root and self.rights == "sudo", reads_output=reads_output))
        except (SSHException, EOFError, OSError) as error:
            raise self._lost(argv, repr(error)) from error
        return channel

    @property
    def ssh(self) -> tuple[str, ...]:
        """Arguments by which OpenSSH's client reaches the same box, with the same strict check of host keys."""
        endpoint = self._endpoint
        if endpoint is None:
            return (*_ssh_arguments(self.box)[:-1], "--", self.box.host)
        keys = {
            "IdentityFile": endpoint.key_file,
            "UserKnownHostsFile": endpoint.known_hosts,
            "GlobalKnownHostsFile": "/dev/null",
        }
        options = (f"-o{name}={value}" for name, value in {**keys, "IdentitiesOnly": "yes"}.items())
        return ("-F", "none", *options, "-p", str(endpoint.port), "-l", endpoint.user, "--", endpoint.host)

    def open(self) -> None:
        """Connect and authenticate, unless connected. Raises BoxError or HostKeyError."""
        if self._connection.is_connected:
            return
        try:
            self._connection.open()
        except HostKeyError:
            self._connection.client.close()
            self.close()
            raise
        except (SSHException, OSError, EOFError) as error:
            self.close()
            raise self._unreachable(error) from error
        for hop in _hops(self._connection):
            _tune(hop)

    def probe(self) -> None:
        """Find the rights, in one round trip. Raises ParameterError when they are less than `box.become` asks for."""
        script = {"none": "id -u", "login": "id -u", "helper": helper.PROBE}.get(self.box.become, "id -u; sudo -n true")
        completed = self._execute(("sh", "-c", script), CONNECT_TIMEOUT_S, sudo=False)
        uid = completed.text.strip().partition("\n")[0]
        if not uid.isdecimal():
            raise BoxError(
                "the box answers, but cannot run commands",
                where=self._where,
                got=f"exit status {completed.exit_status} from `id -u`",
                allowed="a Linux system with sh and coreutils, or BusyBox of 1.34 or later (its timeout has -k)",
                evidence=completed.error_text or completed.text,
            )
        user = self._connection.user
        if self.box.become != "helper":
            self.rights = _rights(self.box, is_root=uid == "0", has_sudo=completed.ok, user=user)
            if self.box.become == "login" and self.rights == "none":  # roots of the box file may belong to root
                self.box = replace(self.box, mount_root=None, output_root=None)
            return
        introduction = helper.read_introduction(completed.text)
        helper.check_introduction(introduction, self.box, user)
        output_root = self.box.output_root or introduction.output_root
        self.box = replace(self.box, mount_root=introduction.mount_root, output_root=output_root)
        self.rights = "helper"

    def _execute(self, argv: Sequence[str], timeout_s: float, *, sudo: bool) -> Completed:
        self.open()
        line = command_line(argv, timeout_s=timeout_s, sudo=sudo)
        started = time.monotonic()
        try:
            result = self._connection.run(
                line, hide=True, in_stream=False, pty=False, warn=True, encoding="latin-1", timeout=timeout_s + GRACE_S
            )
        except CommandTimedOut as error:
            raise self._lost(argv, f"no answer for {timeout_s + GRACE_S:g} s") from error
        except _Flood as error:
            raise flood(argv, self._where) from error
        except (SSHException, EOFError, OSError, ThreadException) as error:
            raise self._lost(argv, repr(error)) from error
        elapsed_s = time.monotonic() - started
        # latin-1 maps every byte to one character and back: Fabric wants text, the tools' output may be anything.
        stdout, stderr = result.stdout.encode("latin-1"), result.stderr.encode("latin-1")
        if result.exited < 0:
            raise self._lost(argv, "the channel closed without an exit status")
        if result.exited in (124, 137) and elapsed_s >= timeout_s:
            raise timeout_error(argv, timeout_s, self._where, stderr)
        return Completed(tuple(argv), result.exited, stdout, stderr, elapsed_s)

    def _unreachable(self, error: Exception) -> BoxError:
        target = f"{self._connection.user}@{self._connection.host} port {self._connection.port}"
        what, next_step = _diagnosis(error)
        got = f"{target}: {_error_text(error)}"
        if self._endpoint is not None:  # the user has nothing to set up, but its sshd may know the reason
            return BoxLost(what, where=self._where, got=got, evidence=self._sshd_log())
        by_hand = f"{next_step}; try by hand: {_ssh_words(self.box)} true"
        return BoxLost(what, where=self._where, got=got, next_step=by_hand)

    def _sshd_log(self) -> str:
        log = self._endpoint.log if self._endpoint else None
        return log.read_text(errors="replace") if log and log.exists() else ""

    def _lost(self, argv: Sequence[str], got: str) -> BoxLost:
        return BoxLost(
            "the connection to the box was lost while a command ran",
            where=self._where,
            got=f"{got}, in: {command_text(argv)}",
            next_step=f"see whether the box is up (`{_ssh_words(self.box)}`), "
            f"then `mountlab box clean {self.box.name}`",
        )


def connect(box: Box, endpoint: Endpoint | None = None) -> SshBox:
    """Return an open SshBox: the machine that the user's ssh configuration calls `box.host`, or an embedded box's
    endpoint.

    Raises BoxError (exit code 3) when it cannot be reached, HostKeyError when its key is unknown or has changed,
    ParameterError when the box file asks for rights that the login does not have.
    """
    where = (
        f"params/boxes/{box.name}.yml: host" if endpoint is None else f"box {box.name}: private sshd on {endpoint.host}"
    )
    connection = _private(endpoint) if endpoint else _from_user_config(box, where)
    for hop in _hops(connection):
        check_host_keys(hop, _ssh_words(box), where, [endpoint.known_hosts] if endpoint else None)
    ssh_box = SshBox(box, connection, where, endpoint)
    ssh_box.open()
    try:
        ssh_box.probe()
    except BaseException:
        ssh_box.close()
        raise
    return ssh_box


_CONNECT = {"banner_timeout": CONNECT_TIMEOUT_S, "auth_timeout": 30, "channel_timeout": CONNECT_TIMEOUT_S}


def _config(ssh_config: SSHConfig | None) -> Config:
    """Fabric's configuration from our values only: fabric.yml files and INVOKE_* variables are not read."""
    overrides = {
        "runners": {"remote": _Runner},
        "timeouts": {"connect": CONNECT_TIMEOUT_S},
        "run": {"in_stream": False},  # a notebook has no terminal to read from
    }
    return Config(overrides=overrides, lazy=True, ssh_config=ssh_config)


def _private(endpoint: Endpoint) -> Connection:
    keys = {"key_filename": str(endpoint.key_file), "allow_agent": False, "look_for_keys": False}
    return Connection(
        endpoint.host, endpoint.user, endpoint.port, config=_config(SSHConfig()), connect_kwargs={**keys, **_CONNECT}
    )


def _from_user_config(box: Box, where: str) -> Connection:
    config = _config(None)
    try:
        config.load_ssh_config()
        # The agent opens the door of the box, and is never handed to it, whatever ForwardAgent says.
        # Compressed, what goes each way in a trial fits into what TCP sends at once after a pause: one round trip less.
        kwargs = {**_CONNECT, "compress": True}
        return Connection(box.host, box.user, box.port, config=config, connect_kwargs=kwargs, forward_agent=False)
    except SSHException as error:
        raise BoxError("the ssh configuration cannot be read", where="~/.ssh/config", got=str(error)) from error
    except RecursionError as error:
        raise BoxError("the jump hosts go in a circle", where="~/.ssh/config: ProxyJump", got=box.host) from error
    except ValueError as error:
        raise ParameterError("the box's address is contradictory", where=where, got=f"{box.host!r}: {error}") from error


def ssh_names(box: Box) -> dict[str, list[str]]:
    """Return what the user's ssh configuration makes of a box of the user's: 'host' and 'user' to the names of the box
    and of the jump hosts before it. Nothing is connected to. Raises BoxError where the configuration cannot be read."""
    if box.embedded:
        return {}
    hops = _hops(_from_user_config(box, box.name))
    return {"host": [hop.host for hop in hops], "user": [hop.user for hop in hops]}


def _hops(connection: Connection) -> list[Connection]:
    """Return the connection and the jump hosts it goes through, nearest to the box first."""
    hops = []
    while isinstance(connection, Connection):
        hops.append(connection)
        connection = connection.gateway
    return hops


def _tune(hop: Connection) -> None:
    """Make round trips quick and a lost box noticed."""
    hop.transport.set_keepalive(KEEPALIVE_S)
    sock = hop.transport.sock
    if not isinstance(sock, socket.socket):  # a channel through a jump host, or a ProxyCommand
        return
    # Without it each command waits 40 ms for the box's delayed acknowledgement.
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux only
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, LOST_AFTER_MS)


# --- rights -----------------------------------------------------------------------------------------------------------


def _rights(box: Box, *, is_root: bool, has_sudo: bool, user: str) -> Rights:
    where = f"params/boxes/{box.name}.yml: become"
    if box.become == "none" or (box.become == "login" and not is_root):
        return "none"
    if is_root:
        return "root"
    if box.become == "root":
        raise ParameterError(
            "the box file says root, but the login is not root's",
            where=where,
            got=f"become: root, user {user}",
            next_step="set `user: root`, or `become: auto` to use sudo where it asks for no password",
        )
    if has_sudo:
        return "sudo"
    if box.become == "sudo":
        raise ParameterError(
            "the box file says sudo, but sudo asks for a password or is missing",
            where=where,
            got=f"become: sudo, user {user}",
            next_step=f"on the box: echo '{user} ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/mountlab (as root); "
            "or `become: none` to measure only what needs no root",
        )
    return "none"


# --- what went wrong --------------------------------------------------------------------------------------------------


def _ssh_words(box: Box) -> str:
    """Return the ssh command by which the user can try the same by hand."""
    return shlex.join(("ssh", *_ssh_arguments(box)))


def _ssh_arguments(box: Box) -> tuple[str, ...]:
    port = ("-p", str(box.port)) if box.port else ()
    user = ("-l", box.user) if box.user else ()
    return (*port, *user, box.host or "localhost")


def _diagnosis(error: Exception) -> tuple[str, str]:
    match error:
        case AuthenticationException():
            return (
                "the box refused the login",
                "see that user and IdentityFile are right in the box file or ~/.ssh/config, that the public key is in "
                "the box's authorized_keys, and that a key with a passphrase is loaded (ssh-add)",
            )
        case socket.gaierror():
            return "the box's name is unknown", "see that `host` is an alias of ~/.ssh/config, a DNS name or an address"
        case TimeoutError():
            return (
                f"the box did not answer in {CONNECT_TIMEOUT_S} s",
                "see that it is up and that no firewall is between",
            )
        case NoValidConnectionsError():
            return "the box refused the connection", "see that sshd runs there, and on which port"
        case _:
            return "the box cannot be reached", "see that host, port and jump host are right"


def _error_text(error: Exception) -> str:
    if isinstance(error, NoValidConnectionsError):
        return "; ".join(f"{address[0]} port {address[1]}: {cause}" for address, cause in error.errors.items())
    return str(error) or type(error).__name__
