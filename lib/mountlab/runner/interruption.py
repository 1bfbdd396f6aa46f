"""Signals of a person or a system that wants a run to end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class Interruption:
    """Turns SIGINT, SIGTERM and SIGHUP into one KeyboardInterrupt, raised only while a trial runs or between two: a
    mount that is interrupted half-way could not be undone."""

    def __init__(self) -> None:
        self.requested = False
        self._raises_at_once = False

    def handle(self, _number: int, _frame: FrameType | None) -> None:
        self.requested = True
        if self._raises_at_once:
            self._raises_at_once = False
            raise KeyboardInterrupt

    def check(self) -> None:
        """Raise KeyboardInterrupt if an interruption was requested."""
        if self.requested:
            raise KeyboardInterrupt

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Let a signal interrupt the body at once."""
        self.check()
        self._raises_at_once = True
        try:
            yield
        finally:
            self._raises_at_once = False
