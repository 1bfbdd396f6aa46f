"""A shell that stays on the box for as long as a run does: it runs one command after another, each exactly once.

To start a shell over SSH for each command takes two round trips and half a dozen processes, longer than many a trial.
This one is started once (job.sh), and asked in one round trip. What has been asked of it survives it: the command is
detached, and its output lies in files of the run, where the next shell finds it.
"""

from __future__ import annotations

import secrets
import shlex
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from typing import Protocol

from mountlab.box.connection import LARGEST_ANSWER, AnsweringStream, flood
from mountlab.core.shell import SharedScript, script_text

START = 'exec 3<&0; setsid sh -s "$@" <&3 3<&- & exec 3<&-; wait'
"""In a session of its own, so that what ends the connection's processes on the box does not end what they have begun.
(A shell gives what it starts in the background no standard input by default.)"""


class Speaks(Protocol):
    """A connection that a shell can be started on (ssh.SshBox)."""

    def talk(self, argv: Sequence[str], *, root: bool = False) -> AnsweringStream: ...
    def spoken(self, argv: Sequence[str], timeout_s: float, *, root: bool) -> Sequence[str]: ...


@dataclass(frozen=True)
class JobRequest:
    """One command, as job.sh wants to be asked for it."""

    number: int
    limit: str
    """Whole seconds."""
    boot: str
    argv: tuple[str, ...]

    def text(self) -> bytes:
        """Cut off anywhere it is no command: a connection may break in the middle of it."""
        job = shlex.join(("job", str(self.number), self.limit, self.boot))
        return f'{{ asked() {{ "$@" {" ".join(map(_quoted, self.argv))}; }}\n{job}\n}}\n'.encode()


def _quoted(word: str) -> str:
    """Return a word for a shell that has the bodies of scripts in variables. One that lacks them runs nothing."""
    if not isinstance(word, SharedScript):
        return shlex.quote(word)
    return f'{shlex.quote(word.removesuffix(word.body))}"${{{_variable(word.body)}:?}}"'


@cache
def _variable(body: str) -> str:
    return f"script_{sha256(body.encode()).hexdigest()[:16]}"


class ResidentShell:
    """Raises BoxLost from everything it does: then it is of no use any more."""

    def __init__(self, line: Speaks, base: str, *, root: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self._line, self._root, self._clock = line, root, clock
        self._end = secrets.token_hex(16)
        self._talk = line.talk(("sh", "-c", START, "mountlab-serve", base, self._end), root=root)
        self._talk.send(script_text("job.sh").encode())
        self._sent_bodies: set[str] = set()

    def ask(self, request: JobRequest, *, timeout_s: float) -> tuple[bytes, bytes]:
        """Return what job.sh says, with the command's output, and what the command said on standard error.

        Raises FloodError where that is more than is held here.
        """
        inner = self._line.spoken(request.argv, float(request.limit), root=self._root)
        for word in inner:
            if isinstance(word, SharedScript) and word.body not in self._sent_bodies:
                self._talk.send(f"{_variable(word.body)}={shlex.quote(word.body)}\n".encode())
                self._sent_bodies.add(word.body)
        self._talk.send(JobRequest(request.number, request.limit, request.boot, tuple(inner)).text())
        received = self._until(f"{self._end}\n".encode(), request.argv, self._clock() + timeout_s)
        output, _, stderr = received.partition(f"{self._end} out\n".encode())
        return output, stderr

    def _until(self, end: bytes, argv: Sequence[str], deadline: float) -> bytes:
        """Return what comes before `end`, which comes last."""
        received = bytearray()
        while not received.endswith(end):
            received += self._talk.receive(max(0.0, deadline - self._clock()))
            if len(received) > LARGEST_ANSWER:
                raise flood(argv, self._talk.where)
        return bytes(received[: -len(end)])

    def close(self) -> None:
        """It ends; what it has begun does not."""
        self._talk.close()
