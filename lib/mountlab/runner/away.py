"""Neighbours of a trial on clients: started before the box begins with it, and ended when it has measured."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Protocol

from mountlab.box.connection import Completed, Stream
from mountlab.core.errors import CommandError, NeighbourFault
from mountlab.core.trial_files import TrialFiles
from mountlab.filesystems.neighbours import AHEAD, neighbour_file
from mountlab.outcome.archive import Files, unpack
from mountlab.sweep.beside import START_S, AwayNeighbours

PATIENCE_S = 60.0
"""Time limit of commands that take milliseconds on an idle box."""
READ_CLOCK = ("cat", "/proc/uptime")
READINGS = 3
"""How often both clocks are read: the reading that took the shortest counts."""
LOST = "the connection to client {} was cut, or what ran it there was killed"


class Host(Protocol):
    """A connected client."""

    def run(self, argv: tuple[str, ...], timeout_s: float = PATIENCE_S) -> Completed: ...
    def attend(self, argv: tuple[str, ...]) -> Stream: ...
    def kill_all(self) -> None: ...


class NeighboursAway:
    """The neighbours of one trial that run on clients. Most trials have none."""

    def __init__(
        self, planned: Sequence[tuple[AwayNeighbours, Host]], run_on_box: Callable[[tuple[str, ...], float], Completed]
    ) -> None:
        self._planned, self._run_on_box = planned, run_on_box
        self._streams: dict[str, Stream] = {}

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run them. Raises NeighbourFault for one that moves no bytes, ClientLost for a client that is lost."""
        with ExitStack() as stop:
            for planned, host in self._planned:
                stop.callback(self._stop, planned, host)
                self._streams[planned.client] = host.attend(planned.argv("run"))
            for planned, host in self._planned:
                completed = host.run(planned.argv("wait"), PATIENCE_S + START_S)
                if not completed.ok:
                    name, _, why = (completed.text.strip() or _reason_lost(planned)).partition(": ")
                    last_words = self._stop(planned, host).get(neighbour_file(name), b"").decode(errors="replace")
                    message = f"neighbour {name} on client {planned.client} did not run: {why}"
                    raise NeighbourFault(message, evidence=last_words)
            yield

    def with_files(self, files: Files) -> dict[str, bytes]:
        """End them, and return the files of the trial with theirs."""
        merged = dict(files)
        for planned, host in self._planned:
            was_lost = self._streams[planned.client].ended
            ahead_s = self._ahead_s(host)
            clock = "".join(f"{neighbour.name} {AHEAD} {ahead_s:.2f}\n" for neighbour in planned.neighbours)
            kept = self._stop(planned, host)
            lines = merged.get(TrialFiles.NEIGHBOURS, b"") + kept.pop(TrialFiles.NEIGHBOURS, b"") + clock.encode()
            merged |= {**kept, TrialFiles.NEIGHBOURS: lines}
            if was_lost:
                merged.setdefault(TrialFiles.NEIGHBOUR_FAILED, _reason_lost(planned).encode())
        return merged

    def _ahead_s(self, host: Host) -> float:
        """Return by how many seconds the clock of a client is ahead of the box's, to half a round trip."""
        readings = []
        for _ in range(READINGS):
            begin = time.monotonic()
            box = float(self._run_on_box(READ_CLOCK, PATIENCE_S).text.split()[0])
            client = float(host.run(READ_CLOCK).text.split()[0])
            end = time.monotonic()
            readings.append((end - begin, client - box - (end - begin) / 2))
        return min(readings)[1]

    def _stop(self, planned: AwayNeighbours, host: Host) -> dict[str, bytes]:
        """End those of a client and return what they left. A second call returns nothing."""
        stream = self._streams.pop(planned.client, None)
        if stream is None:
            return {}
        stream.close()
        completed = host.run(planned.argv("stop"))
        if not completed.ok:
            host.kill_all()
            completed = host.run(planned.argv("collect"))
        if not completed.ok:
            raise CommandError(
                f"what neighbours on client {planned.client} leave cannot be removed", evidence=completed.error_text
            )
        return unpack(completed.stdout)


def _reason_lost(planned: AwayNeighbours) -> str:
    return f"{planned.neighbours[0].name}: {LOST.format(planned.client)}"
