"""Boxes for tests: one that records what it is asked, one that answers from a recording."""

from __future__ import annotations

import difflib
import shlex
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field

from mountlab.box.connection import BoxConnection, Completed, needs_root
from mountlab.core.held import Lease
from mountlab.core.model import Box, Rights


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


PreparedAnswer = Completed | BaseException


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
        self._answers: dict[tuple[str, ...], list[PreparedAnswer]] = {}
        self._rules: list[tuple[Callable[[tuple[str, ...]], bool], PreparedAnswer]] = []

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
        command = tuple(argv)
        self.calls.append(Call(command, root, timeout_s))
        if root and self.rights == "none":
            raise needs_root(command, self.box)
        answer = self._find(command)
        if isinstance(answer, BaseException):
            raise answer
        return Completed(command, answer.exit_status, answer.stdout, answer.stderr, answer.elapsed_s)

    def holding(self, lease: Lease, stopped: Callable[[], bool]) -> AbstractContextManager[None]:
        return nullcontext()

    def close(self) -> None:
        """Do nothing."""

    def _find(self, argv: tuple[str, ...]) -> PreparedAnswer:
        queue = self._answers.get(argv)
        if queue:
            return queue.pop(0) if len(queue) > 1 else queue[0]
        for rule, answer in self._rules:
            if rule(argv):
                return answer
        raise UnpreparedCommand(_unprepared(argv, self._answers))


def _unprepared(argv: tuple[str, ...], prepared: Iterable[tuple[str, ...]]) -> str:
    lines = {shlex.join(command): None for command in prepared}
    near = difflib.get_close_matches(shlex.join(argv), lines, n=1, cutoff=0.0)
    nearest = f"the nearest prepared one is\n  {near[0]}" if near else "nothing is prepared"
    return f"no answer is prepared for\n  {shlex.join(argv)}\n{nearest}"


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text
