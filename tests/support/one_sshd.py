"""One private sshd for all sessions of a worker on its local box, where they want what any of them has.

To start one takes as much processor time as a small trial. Processes that tests start have their own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Self

from mountlab.box.embedded import EMBEDDED, loopback
from mountlab.box.ssh import Endpoint
from mountlab.core.model import Box


class OneSshd:
    """Started for the first session; stopped at the end of `with`."""

    def __init__(self) -> None:
        self._kind, self._settings = EMBEDDED["loopback"], _settings()
        self._undo = ExitStack()
        self._running: Endpoint | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._undo.close()

    @contextmanager
    def shared(self) -> Iterator[None]:
        """From here on sessions of this process meet it."""
        EMBEDDED["loopback"] = replace(self._kind, start=self._meet)
        try:
            yield
        finally:
            EMBEDDED["loopback"] = self._kind

    @contextmanager
    def _meet(self, box: Box, forwards: bool) -> Iterator[Endpoint]:
        """Give the one that is up. One that forwards, or has settings of a test's own, lives for its session."""
        if forwards or _settings() != self._settings:
            with self._kind.start(box, forwards) as endpoint:
                yield endpoint
            return
        if self._running is None or not self._running.alive():
            self._running = self._undo.enter_context(loopback.private_sshd(box))
        yield self._running


def _settings() -> tuple[object, ...]:
    """What a test may exchange: the configuration with the search path, and where its files lie."""
    return loopback.configuration, os.environ.get("TMPDIR")
