"""What a connection to a box is: commands with a limit, their answers, and streams that stay open."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from paramiko import Channel
from paramiko.ssh_exception import SSHException

from mountlab.core.errors import BoxLost, BoxTimeout, CommandError, FloodError, PlanError
from mountlab.core.held import Lease
from mountlab.core.model import Box, Rights
from mountlab.core.units import whole_seconds

KILL_AFTER_S = 5
"""A command that ignores SIGTERM at its time limit gets SIGKILL this much later."""
GRACE_S = 15
"""How long after the box's own time limit we give up waiting for it."""
CHUNK = 65536
"""Most bytes that one read takes from a channel."""
LARGEST_ANSWER = 1 << 28
"""Bytes that one command may send, standard error included: what a box sends is held in the memory of this machine."""


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
        """Hold the lease of a run, from its first change on the box to its undo. One that survives its own loss
        (mountlab.box.steady) runs each command exactly once meanwhile. `stopped` returns whether waiting should end.
        """

    def close(self) -> None: ...


def checked(
    connection: BoxConnection, argv: Sequence[str], *, what: str, timeout_s: float = 60.0, root: bool = False
) -> Completed:
    """Run a command that must succeed. Raises CommandError with the command and its output."""
    completed = connection.run(argv, timeout_s=timeout_s, root=root)
    if completed.ok:
        return completed
    raise CommandError(
        what,
        where=f"box {connection.box.name}",
        got=f"exit status {completed.exit_status} from: {command_text(completed.argv)}",
        evidence=completed.error_text or completed.text,
    )


def command_text(argv: Sequence[str]) -> str:
    """Return a command as errors show it: of a script of many lines only how it begins."""
    return shlex.join(f"{word.strip().splitlines()[0]} ..." if "\n" in word.strip() else word for word in argv)


_ENVIRONMENT = 'export LC_ALL=C PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"'
_SUDO = 'sudo -n env LC_ALL=C PATH="$PATH" '


def command_line(argv: Sequence[str], *, timeout_s: float, sudo: bool = False) -> str:
    """Return the one line that is sent for `argv`, whatever the login shell is (sh, csh, fish, ...).

    `timeout` runs below sudo, since an ordinary user could not stop a process of root. The shell stays above it and
    turns a death by signal into an exit status, which SSH libraries otherwise lose.
    """
    command = f"timeout -k {KILL_AFTER_S} {whole_seconds(timeout_s)} {shlex.join(argv)} </dev/null"
    return _for_any_shell(f"{_ENVIRONMENT}; {_SUDO if sudo else ''}{command}; exit $?")


def endless_line(argv: Sequence[str], *, sudo: bool = False, reads_output: bool = False) -> str:
    """Return the line for a command without a time limit, which reads what is sent to it. `reads_output`: its output is
    read here, not discarded."""
    redirection = "" if reads_output else " >/dev/null 2>&1"
    return _for_any_shell(f"{_ENVIRONMENT}; exec {_SUDO if sudo else ''}{shlex.join(argv)}{redirection}")


def _for_any_shell(script: str) -> str:
    """Return a script for sh as one command of a login shell that may quote otherwise.

    Inside single quotes csh minds newlines and '!', and fish minds backslashes: these travel as octal escapes.
    """
    if not re.search(r"['\\!\n]", script):
        return f"exec sh -c '{script}'"
    escaped = re.sub(r"['\\!\n]", lambda match: f"\\0{ord(match[0]):03o}", script)
    return f"""exec sh -c 'eval "$(printf %b "$1")"' sh '{escaped}'"""


class Stream:
    """A command that lives as long as the connection, and reads what is sent to it. Its output is not read."""

    def __init__(self, channel: Channel, lost: Callable[[str], BoxLost]) -> None:
        self._channel, self._lost = channel, lost

    def send(self, data: bytes) -> None:
        """Write to the command's standard input. Raises BoxLost."""
        try:
            self._channel.sendall(data)
        except (SSHException, EOFError, OSError) as error:
            raise self._lost(repr(error)) from error

    @property
    def ended(self) -> bool:
        """Whether the command, or the connection to it, has ended."""
        return bool(self._channel.closed or self._channel.exit_status_ready())

    def close(self) -> None:
        """Close the connection's channel: the command's standard input ends."""
        self._channel.close()


class AnsweringStream(Stream):
    """A command that lives as long as the connection, reads what is sent to it, and answers."""

    def __init__(self, channel: Channel, lost: Callable[[str], BoxLost], where: str) -> None:
        super().__init__(channel, lost)
        self.where = where

    def receive(self, timeout_s: float) -> bytes:
        """Return its output since the last call, at least one byte. Raises BoxLost if it has ended, or prints nothing
        in this time."""
        try:
            self._channel.settimeout(timeout_s)
            output = self._channel.recv(CHUNK)
        except TimeoutError as error:
            raise self._lost("no answer in time") from error
        except (SSHException, EOFError, OSError) as error:
            raise self._lost(repr(error)) from error
        if not output:
            raise self._lost(f"it has ended: {self._error_output()}")
        return bytes(output)

    def _error_output(self) -> str:
        """Return its output on standard error, as far as it has arrived."""
        if not self._channel.recv_stderr_ready():
            return "the channel closed"
        return str(self._channel.recv_stderr(CHUNK).decode("utf-8", "replace").strip())


def needs_root(argv: Sequence[str], box: Box) -> PlanError:
    """Return the error for a command that needs root on a box that gives none."""
    return PlanError(
        "this needs root on the box, and there is neither root nor password-less sudo",
        where=f"box {box.name}",
        got=f"rights none (become: {box.become}) for: {command_text(argv)}",
        next_step="log in as root (`user: root` in the box file), allow sudo without a password, install the helper "
        f"(`mountlab box helper {box.name}`, `become: helper`), or measure file systems of type dir",
    )


def timeout_error(argv: Sequence[str], timeout_s: float, where: str, stderr: bytes) -> BoxTimeout:
    """Return the error for a command that the box stopped at its time limit."""
    return BoxTimeout(
        f"a command on the box did not end in {timeout_s:g} s and was stopped",
        where=where,
        got=command_text(argv),
        next_step="run it on the box by hand, and see what it waits for",
        evidence=stderr.decode("utf-8", "replace"),
    )


def flood(argv: Sequence[str], where: str) -> FloodError:
    """Return the error for a command that prints without end."""
    return FloodError(
        "a command on the box sent more than this machine is ready to hold, and was ended",
        where=where,
        got=f"more than {LARGEST_ANSWER >> 20} MiB from: {command_text(argv)}",
        allowed=f"{LARGEST_ANSWER >> 20} MiB of output, standard error included",
        next_step="see on the box what it prints, and where",
    )
