"""The lease of a run on its box: what undoes every change when the control process is gone.

While a run holds a box, lease.sh waits there for signs of life. A control process that was killed (kill -9 too) or cut
off sends none: after the `grace` of the box file the script ends what runs, unmounts and removes what the run made, as
`mountlab box clean` does (leftovers.sh).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

from mountlab.box.connection import Stream
from mountlab.box.leftovers import remove_leftovers_argv
from mountlab.core.errors import BoxLost
from mountlab.core.held import Lease
from mountlab.core.model import Box
from mountlab.core.shell import script_argv

BEATS = 10
"""Signs of life that are sent within the grace time."""
BEAT_S = 30.0
"""The longest time between two signs of life."""


def beat_s(box: Box) -> float:
    """Return the time between two signs of life, in seconds."""
    return min(BEAT_S, box.grace_s / BEATS)


def lease_argv(lease: Lease, grace_s: float, uid: str) -> tuple[str, ...]:
    """Return the command that holds a lease, and that cleans the box as `box clean` does when it is over."""
    return (
        "env",
        f"MOUNTLAB_LEASE={lease.run_id}",
        *script_argv("lease.sh", lease.output_dir, f"{grace_s:.0f}", lease.run_id),
        *remove_leftovers_argv("clean", uid, lease.mount_root, lease.output_root, lease.owner),
    )


class Heartbeat:
    """Sends the box a sign of life now and then, from a thread of its own, and goes on after a reconnect."""

    def __init__(self, attend: Callable[[], Stream], every_s: float) -> None:
        self._attend, self._every_s = attend, every_s
        self._wake, self._over = threading.Event(), threading.Event()
        self._stream: Stream | None = None

    def begin(self) -> None:
        """Start the lease, and the thread that keeps it. Raises BoxLost."""
        self._stream = self._attend()
        threading.Thread(target=self._beat, name="mountlab-lease", daemon=True).start()

    def beat_now(self) -> None:
        self._wake.set()

    def stop(self) -> None:
        self._over.set()
        self._wake.set()
        if self._stream is not None:
            self._stream.close()

    def _beat(self) -> None:
        while True:
            self._wake.wait(self._every_s)
            self._wake.clear()
            if self._over.is_set():
                return
            self._send_beat()

    def _send_beat(self) -> None:
        try:
            if self._stream is not None:
                self._stream.send(b"\n")
        except BoxLost:
            with suppress(BoxLost):  # not back yet: the next command brings it back
                self._stream = self._attend()
                if self._over.is_set():  # the run has ended meanwhile: nothing else closes this stream
                    self._stream.close()
