"""The box: commands run on the machine under test, over SSH with Fabric, and public test doubles for it.

`SshBox` is the only way in which Mountlab reaches a box, its own machine included. What every command gets:

- an argv list, quoted once, here; standard input is /dev/null; never a terminal;
- LC_ALL=C, and the administrator's directories at the end of PATH;
- a time limit kept by the box itself (`timeout`), so that a command never outlives it, even when we are gone;
- the box's host key checked against the user's known_hosts: Fabric's default accepts any.
"""

from __future__ import annotations

import difflib
import logging
import re
import shlex
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from fabric import Config, Connection
from fabric.runners import Remote
from invoke.exceptions import CommandTimedOut, ThreadException
from invoke.runners import Runner
from paramiko import Channel, SSHConfig
from paramiko.ssh_exception import AuthenticationException, NoValidConnectionsError, SSHException

from mountlab import helper
from mountlab.errors import (
    BoxError,
    BoxLost,
    BoxTimeout,
    CommandError,
    FloodError,
    HostKeyError,
    ParameterError,
    PlanError,
)
from mountlab.hostkeys import check_host_keys
from mountlab.model import Box, Lease, Rights
from mountlab.units import whole_seconds

CONNECT_TIMEOUT_S = 15
"""For the TCP connection, the SSH greeting and a new channel; ConnectTimeout of the user's ssh configuration wins."""
KILL_AFTER_S = 5
"""A command that ignores SIGTERM at its time limit gets SIGKILL this much later."""
GRACE_S = 15
"""How long after the box's own time limit we give up waiting for it."""
KEEPALIVE_S = 15
CHUNK = 65536
"""Bytes that are taken from a channel at once."""
LARGEST_ANSWER = 1 << 28
"""Bytes that one command may send, standard error included: what a box sends is held in the memory of this machine."""
LOST_AFTER_MS = 60_000
"""Data that the box leaves unacknowledged for this long means that the connection is gone."""


@dataclass(frozen=True)
class Completed:
    """A command that ended on the box, whatever its exit status (128 + n: killed by signal n)."""

    argv: tuple[str, ...]
    exit_status: int
    stdout: bytes
    stderr: bytes
    elapsed_s: float

    @property
    def ok(self) -> bool:
        return self.exit_status == 0

    @property
    def text(self) -> str:
        """stdout as text; bytes that are not UTF-8 become U+FFFD."""
        return self.stdout.decode("utf-8", "replace")

    @property
    def error_text(self) -> str:
        """stderr as text."""
        return self.stderr.decode("utf-8", "replace")


class BoxConnection(Protocol):
    """An open connection to a box."""

    @property
    def box(self) -> Box: ...

    @property
    def rights(self) -> Rights:
        """'root', 'sudo' (without a password), 'helper' or 'none', found when the connection opened, limited by
        `box.become`."""

    def run(self, argv: Sequence[str], *, timeout_s: float = 60.0, root: bool = False) -> Completed:
        """Run one command and wait for it. A non-zero exit status is an answer, not an error.

        `root=True` runs it as root; with the rights 'helper' what the helper is for by the helper, and all else as the
        user. Raises PlanError where the box has no rights for that, BoxTimeout when the command did not end in
        `timeout_s` (the box then stops it), BoxLost when the connection is lost.
        """

    def holding(self, lease: Lease, stopped: Callable[[], bool]) -> AbstractContextManager[None]:
        """While a run has made something on the box. A connection that survives its own loss (mountlab.steady) runs
        each command exactly once meanwhile; others run it as ever. `stopped` says that nobody wants to wait any more.
        """

    def close(self) -> None: ...


def checked(
    connection: BoxConnection, argv: Sequence[str], *, what: str, timeout_s: float = 60.0, root: bool = False
) -> Completed:
    """`connection.run`, for commands that must succeed. Raises CommandError with the command and what it said."""
    completed = connection.run(argv, timeout_s=timeout_s, root=root)
    if completed.ok:
        return completed
    raise CommandError(
        what,
        where=f"box {connection.box.name}",
        got=f"exit status {completed.exit_status} from: {shown(completed.argv)}",
        evidence=completed.error_text or completed.text,
    )


def shown(argv: Sequence[str]) -> str:
    """A command as errors show it: of a script of many lines only how it begins."""
    return shlex.join(f"{word.strip().splitlines()[0]} ..." if "\n" in word.strip() else word for word in argv)


# --- the command line -------------------------------------------------------------------------------------------------

# Paramiko writes tracebacks of its own beside the error that we raise.
logging.getLogger("paramiko").addHandler(logging.NullHandler())
logging.getLogger("paramiko").propagate = False

_ENVIRONMENT = 'export LC_ALL=C PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"'
_SUDO = 'sudo -n env LC_ALL=C PATH="$PATH" '


def command_line(argv: Sequence[str], *, timeout_s: float, sudo: bool = False) -> str:
    """The one line that is sent for `argv`, whatever the login shell is (sh, csh, fish, ...).

    `timeout` runs below sudo, since an ordinary user could not stop a process of root. The shell stays above it and
    turns a death by signal into an exit status, which SSH libraries otherwise lose.
    """
    command = f"timeout -k {KILL_AFTER_S} {whole_seconds(timeout_s)} {shlex.join(argv)} </dev/null"
    return _for_any_shell(f"{_ENVIRONMENT}; {_SUDO if sudo else ''}{command}; exit $?")


def endless_line(argv: Sequence[str], *, sudo: bool = False, heard: bool = False) -> str:
    """The same for a command without a time limit, which reads what is sent to it. `heard`: somebody reads what it
    says."""
    said = "" if heard else " >/dev/null 2>&1"
    return _for_any_shell(f"{_ENVIRONMENT}; exec {_SUDO if sudo else ''}{shlex.join(argv)}{said}")


def _for_any_shell(script: str) -> str:
    """`script` for sh, as one command of a login shell that may quote otherwise.

    Inside single quotes csh minds newlines and '!', and fish minds backslashes: these travel as octal escapes.
    """
    if not re.search(r"['\\!\n]", script):
        return f"exec sh -c '{script}'"
    escaped = re.sub(r"['\\!\n]", lambda match: f"\\0{ord(match[0]):03o}", script)
    return f"""exec sh -c 'eval "$(printf %b "$1")"' sh '{escaped}'"""


# --- SSH --------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """Where an embedded box listens, and the keys made for it. The user's own ssh configuration is not read."""

    host: str
    port: int
    user: str
    key_file: Path
    known_hosts: Path
    log: Path
    """What its sshd says."""
    alive: Callable[[], bool] = lambda: True
    """Whether what listens there still runs: it does not come back by itself."""


class _Flood(Exception):
    """More came than is held here."""


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
        """Count, and end a flood: the box's side gets SIGPIPE. (There are no watchers, for whom the original joins all
        output so far at every chunk.)"""
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


class Attended:
    """A command that lives as long as the connection, and reads what is sent to it. Nobody reads its output."""

    def __init__(self, channel: Channel, lost: Callable[[str], BoxLost]) -> None:
        self._channel, self._lost = channel, lost

    def send(self, data: bytes) -> None:
        """Raises BoxLost."""
        try:
            self._channel.sendall(data)
        except (SSHException, EOFError, OSError) as error:
            raise self._lost(repr(error)) from error

    @property
    def ended(self) -> bool:
        """Whether it is over, or the connection to it."""
        return bool(self._channel.closed or self._channel.exit_status_ready())

    def close(self) -> None:
        """Its standard input ends."""
        self._channel.close()


class Talk(Attended):
    """A command that lives as long as the connection, reads what is sent to it, and answers."""

    def __init__(self, channel: Channel, lost: Callable[[str], BoxLost], where: str) -> None:
        super().__init__(channel, lost)
        self.where = where

    def receive(self, timeout_s: float) -> bytes:
        """What it has said since, at least one byte. Raises BoxLost where it has ended, or says nothing for so long."""
        try:
            self._channel.settimeout(timeout_s)
            said = self._channel.recv(CHUNK)
        except TimeoutError as error:
            raise self._lost("no answer in time") from error
        except (SSHException, EOFError, OSError) as error:
            raise self._lost(repr(error)) from error
        if not said:
            raise self._lost(f"it has ended: {self._complaint()}")
        return bytes(said)

    def _complaint(self) -> str:
        """What it said on standard error, where that has come already."""
        if not self._channel.recv_stderr_ready():
            return "the channel closed"
        return str(self._channel.recv_stderr(CHUNK).decode("utf-8", "replace").strip())


class SshBox:
    """A box over SSH. Opened by `connect`; not safe for use by several threads at once."""

    def __init__(self, box: Box, connection: Connection, where: str, endpoint: Endpoint | None = None) -> None:
        self.box = box
        self.rights: Rights = "none"
        self._connection = connection
        self._where = where
        self._endpoint = endpoint

    def run(self, argv: Sequence[str], *, timeout_s: float = 60.0, root: bool = False) -> Completed:
        if root and self.rights == "none":
            raise needs_root(argv, self.box)
        return self._execute(self.spoken(argv, timeout_s, root=root), timeout_s, sudo=root and self.rights == "sudo")

    def spoken(self, argv: Sequence[str], timeout_s: float, *, root: bool) -> Sequence[str]:
        """What is sent for a command: with the rights 'helper' and as root the words of the helper."""
        if not root or self.rights != "helper":
            return argv
        return helper.spoken(argv, self.box, timeout_s=timeout_s)

    def holding(self, lease: Lease, stopped: Callable[[], bool]) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        for hop in _hops(self._connection):
            hop.close()

    def reopen(self) -> None:
        """Connect anew. Raises BoxLost where that may go better later, HostKeyError or another BoxError where not."""
        self.close()
        if self._endpoint is not None and not self._endpoint.alive():
            raise BoxError("the embedded box has ended by itself", where=self._where, evidence=self._said_by_itself())
        self.open()

    def attend(self, argv: Sequence[str], *, root: bool = False) -> Attended:
        """Start a command that lives as long as the connection. Raises BoxLost."""
        return Attended(self._channel(argv, root=root, heard=False), lambda got: self._lost(argv, got))

    def talk(self, argv: Sequence[str], *, root: bool = False) -> Talk:
        """The same of a command that answers."""
        return Talk(self._channel(argv, root=root, heard=True), lambda got: self._lost(argv, got), self._where)

    def _channel(self, argv: Sequence[str], *, root: bool, heard: bool) -> Channel:
        try:
            channel = self._connection.transport.open_session(timeout=CONNECT_TIMEOUT_S)
            said = self.spoken(argv, 0.0, root=root)
            channel.exec_command(endless_line(said, sudo=root and self.rights == "sudo", heard=heard))
        except (SSHException, EOFError, OSError) as error:
            raise self._lost(argv, repr(error)) from error
        return channel

    @property
    def ssh(self) -> tuple[str, ...]:
        """How OpenSSH's own client reaches the same box: options and destination. Host keys are as strictly checked."""
        if self._endpoint is None:
            return (*_ssh_arguments(self.box)[:-1], "--", self.box.host)
        own = self._endpoint
        keys = {
            "IdentityFile": own.key_file,
            "UserKnownHostsFile": own.known_hosts,
            "GlobalKnownHostsFile": "/dev/null",
        }
        options = (f"-o{name}={value}" for name, value in {**keys, "IdentitiesOnly": "yes"}.items())
        return ("-F", "none", *options, "-p", str(own.port), "-l", own.user, "--", own.host)

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
        script = {"none": "id -u", "helper": helper.PROBE}.get(self.box.become, "id -u; sudo -n true")
        completed = self._execute(("sh", "-c", script), CONNECT_TIMEOUT_S, sudo=False)
        uid = completed.text.strip().partition("\n")[0]
        if not uid.isdecimal():
            raise BoxError(
                "the box answers, but cannot run commands",
                where=self._where,
                got=f"exit status {completed.exit_status} from `id -u`",
                allowed="a Linux system with sh and coreutils (or busybox) for the user who logs in",
                evidence=completed.error_text or completed.text,
            )
        user = self._connection.user
        if self.box.become != "helper":
            self.rights = _rights(self.box, is_root=uid == "0", has_sudo=completed.ok, user=user)
            return
        found = helper.read_introduction(completed.text)
        helper.check_introduction(found, self.box, user)
        output_root = self.box.output_root or found.output_root
        self.box = replace(self.box, mount_root=found.mount_root, output_root=output_root)
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
            raise _timed_out(argv, timeout_s, self._where, "and was stopped", stderr)
        return Completed(tuple(argv), result.exited, stdout, stderr, elapsed_s)

    def _unreachable(self, error: Exception) -> BoxError:
        target = f"{self._connection.user}@{self._connection.host} port {self._connection.port}"
        what, next_step = _diagnosis(error)
        got = f"{target}: {_said(error)}"
        if self._endpoint is not None:  # the user has nothing to set up, but its sshd may know the reason
            return BoxLost(what, where=self._where, got=got, evidence=self._said_by_itself())
        by_hand = f"{next_step}; try by hand: {_ssh_words(self.box)} true"
        return BoxLost(what, where=self._where, got=got, next_step=by_hand)

    def _said_by_itself(self) -> str:
        log = self._endpoint.log if self._endpoint else None
        return log.read_text(errors="replace") if log and log.exists() else ""

    def _lost(self, argv: Sequence[str], got: str) -> BoxLost:
        return BoxLost(
            "the connection to the box was lost while a command ran",
            where=self._where,
            got=f"{got}, in: {shown(argv)}",
            next_step=f"see whether the box is up (`{_ssh_words(self.box)}`), "
            f"then `mountlab box clean {self.box.name}`",
        )


def connect(box: Box, endpoint: Endpoint | None = None) -> SshBox:
    """An open SshBox: the machine that the user's ssh configuration calls `box.host`, or an embedded box's endpoint.

    Raises BoxError (exit code 3) when it cannot be reached, HostKeyError when its key is unknown or has changed,
    ParameterError when the box file asks for rights that the login does not have.
    """
    where = (
        f"params/boxes/{box.name}.yml: host" if endpoint is None else f"box {box.name}: private sshd on {endpoint.host}"
    )
    connection = _private(endpoint) if endpoint else _from_user_config(box, where)
    for hop in _hops(connection):
        check_host_keys(hop, _ssh_words(box), where, [endpoint.known_hosts] if endpoint else None)
    opened = SshBox(box, connection, where, endpoint)
    opened.open()
    try:
        opened.probe()
    except BaseException:
        opened.close()
        raise
    return opened


_CONNECT = {"banner_timeout": CONNECT_TIMEOUT_S, "auth_timeout": 30, "channel_timeout": CONNECT_TIMEOUT_S}


def _config(ssh_config: SSHConfig | None) -> Config:
    """Fabric's configuration from our values only: fabric.yml files and INVOKE_* variables are not read."""
    overrides = {"runners": {"remote": _Runner}, "timeouts": {"connect": CONNECT_TIMEOUT_S}}
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
    """What the user's ssh configuration makes of a box of the user's: 'host' and 'user' to the names of the box and of
    the jump hosts before it. Nothing is connected to. Raises BoxError where the configuration cannot be read."""
    if box.embedded:
        return {}
    hops = _hops(_from_user_config(box, box.name))
    return {"host": [hop.host for hop in hops], "user": [hop.user for hop in hops]}


def _hops(connection: Connection) -> list[Connection]:
    """The connection and the jump hosts it goes through, nearest to the box first."""
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
    if box.become == "none":
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


def needs_root(argv: Sequence[str], box: Box) -> PlanError:
    """The error for a command that needs root on a box that gives none."""
    return PlanError(
        "this needs root on the box, and there is neither root nor password-less sudo",
        where=f"box {box.name}",
        got=f"rights none (become: {box.become}) for: {shown(argv)}",
        next_step="log in as root (`user: root` in the box file), allow sudo without a password, install the helper "
        f"(`mountlab box helper {box.name}`, `become: helper`), or measure file systems of type dir",
    )


# --- what went wrong --------------------------------------------------------------------------------------------------


def _ssh_words(box: Box) -> str:
    """The ssh command by which the user can try the same by hand."""
    return shlex.join(("ssh", *_ssh_arguments(box)))


def _ssh_arguments(box: Box) -> tuple[str, ...]:
    port = ("-p", str(box.port)) if box.port else ()
    user = ("-l", box.user) if box.user else ()
    return (*port, *user, box.host or "localhost")


def _timed_out(argv: Sequence[str], timeout_s: float, where: str, outcome: str, stderr: bytes = b"") -> BoxTimeout:
    return BoxTimeout(
        f"a command on the box did not end in {timeout_s:g} s {outcome}",
        where=where,
        got=shown(argv),
        evidence=stderr.decode("utf-8", "replace"),
    )


def flood(argv: Sequence[str], where: str) -> FloodError:
    """The error for a command that prints without end."""
    return FloodError(
        "a command on the box sent more than this machine is ready to hold, and was ended",
        where=where,
        got=f"more than {LARGEST_ANSWER >> 20} MiB from: {shown(argv)}",
        allowed=f"{LARGEST_ANSWER >> 20} MiB of output, standard error included",
        next_step="see on the box what it prints, and where",
    )


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


def _said(error: Exception) -> str:
    if isinstance(error, NoValidConnectionsError):
        return "; ".join(f"{address[0]} port {address[1]}: {cause}" for address, cause in error.errors.items())
    return str(error) or type(error).__name__


# --- test doubles -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Call:
    """One command that a box was asked to run."""

    argv: tuple[str, ...]
    root: bool = False
    timeout_s: float = field(default=60.0, compare=False)


class RecordingBox:
    """Passes every command on to another connection, and keeps them in order, those that raise included."""

    def __init__(self, inner: BoxConnection) -> None:
        self.inner = inner
        self.calls: list[Call] = []

    @property
    def box(self) -> Box:
        return self.inner.box

    @property
    def rights(self) -> Rights:
        return self.inner.rights

    def run(self, argv: Sequence[str], *, timeout_s: float = 60.0, root: bool = False) -> Completed:
        self.calls.append(Call(tuple(argv), root, timeout_s))
        return self.inner.run(argv, timeout_s=timeout_s, root=root)

    def holding(self, lease: Lease, stopped: Callable[[], bool]) -> AbstractContextManager[None]:
        return self.inner.holding(lease, stopped)

    def close(self) -> None:
        self.inner.close()


class UnpreparedCommand(AssertionError):
    """A ReplayBox was asked for something that the test did not prepare. Not a MountlabError: nothing may catch it."""


Answer = Completed | BaseException


class ReplayBox:
    """A box that only answers what was prepared, for tests without a box.

        box = ReplayBox().answer(("uname", "-r"), "6.1.0\\n")
        assert box.run(("uname", "-r")).text == "6.1.0\\n"

    Several answers to one command are given in turn, and the last one again and again. `when` answers every command
    for which a function is true. `calls` has all commands in order. An unprepared command raises UnpreparedCommand.
    """

    def __init__(self, box: Box | None = None, rights: Rights = "root") -> None:
        self.box = box or Box(name="replay", host="replay.invalid")
        self.rights: Rights = rights
        self.calls: list[Call] = []
        self._answers: dict[tuple[str, ...], list[Answer]] = {}
        self._rules: list[tuple[Callable[[tuple[str, ...]], bool], Answer]] = []

    def answer(
        self, argv: Sequence[str], stdout: str | bytes = b"", *, stderr: str | bytes = b"", exit_status: int = 0
    ) -> ReplayBox:
        """Prepare one answer to `argv`. Returns self, so that answers can be chained."""
        completed = Completed(tuple(argv), exit_status, _bytes(stdout), _bytes(stderr), 0.001)
        self._answers.setdefault(tuple(argv), []).append(completed)
        return self

    def fail(self, argv: Sequence[str], error: BaseException) -> ReplayBox:
        """Prepare `argv` to raise, as a lost connection or Ctrl-C would."""
        self._answers.setdefault(tuple(argv), []).append(error)
        return self

    def when(
        self, rule: Callable[[tuple[str, ...]], bool], stdout: str | bytes = b"", *, exit_status: int = 0
    ) -> ReplayBox:
        """Prepare the answer to every command that `rule` accepts and that has no answer of its own."""
        self._rules.append((rule, Completed((), exit_status, _bytes(stdout), b"", 0.001)))
        return self

    def run(self, argv: Sequence[str], *, timeout_s: float = 60.0, root: bool = False) -> Completed:
        asked = tuple(argv)
        self.calls.append(Call(asked, root, timeout_s))
        if root and self.rights == "none":
            raise needs_root(asked, self.box)
        answer = self._find(asked)
        if isinstance(answer, BaseException):
            raise answer
        return Completed(asked, answer.exit_status, answer.stdout, answer.stderr, answer.elapsed_s)

    def holding(self, lease: Lease, stopped: Callable[[], bool]) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        """Nothing to close."""

    def _find(self, argv: tuple[str, ...]) -> Answer:
        queue = self._answers.get(argv)
        if queue:
            return queue.pop(0) if len(queue) > 1 else queue[0]
        for rule, answer in self._rules:
            if rule(argv):
                return answer
        raise UnpreparedCommand(_unprepared(argv, self._answers))


def _unprepared(argv: tuple[str, ...], prepared: Iterable[tuple[str, ...]]) -> str:
    lines = {shlex.join(one): None for one in prepared}
    near = difflib.get_close_matches(shlex.join(argv), lines, n=1, cutoff=0.0)
    nearest = f"the nearest prepared one is\n  {near[0]}" if near else "nothing is prepared"
    return f"no answer is prepared for\n  {shlex.join(argv)}\n{nearest}"


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text
