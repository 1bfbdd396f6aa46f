"""The one way in which tests wait for what happens elsewhere, with one limit."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

LIMIT_S = 300.0
"""Also for each process or answer that a test waits for. It ends what hangs; a busy machine never comes near to it, and
a wait that is over early costs nothing."""

T = TypeVar("T")


def happens(condition: Callable[[], object], within_s: float = LIMIT_S) -> bool:
    """Return whether `condition` becomes true within this time, for what may also not happen.

    Asked more and more seldom: to look at all processes of the machine takes a processor longer than a pause.
    """
    until, pause_s = time.monotonic() + within_s, 0.02
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(pause_s)
        pause_s = min(1.2 * pause_s, 0.25)
    return True


def wait_until(what: str, condition: Callable[[], T], *, ended: Callable[[], object] = bool) -> T:
    """Return the first true value of `condition`; fails the test after LIMIT_S, or once `ended` gives a reason why it
    cannot become true any more."""
    values: list[T] = []

    def is_over() -> bool:
        values[:] = [condition()]
        return bool(values[0] or ended())

    if not happens(is_over) or not values[0]:
        raise AssertionError(f"waited for: {what}; {ended() or f'not seen in {LIMIT_S:.0f} s'}")
    return values[0]


@contextmanager
def no_hang() -> Iterator[None]:
    """Fail what uses a processor for longer than LIMIT_S: others on the machine do not count."""
    before = signal.signal(signal.SIGPROF, _hangs)
    signal.setitimer(signal.ITIMER_PROF, LIMIT_S)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _hangs(*_: object) -> None:
    raise AssertionError(f"it has used a processor for {LIMIT_S:.0f} s")
