"""Treat SIGTERM and SIGHUP as Ctrl-C: a command that is asked to end prints how to resume, whatever sent the signal."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from types import FrameType

_ENDS = (signal.SIGTERM, signal.SIGHUP)
_TICK_S = 0.5
Handler = Callable[[int, FrameType | None], None]


@contextmanager
def as_interrupts() -> Iterator[None]:
    """Raise KeyboardInterrupt in the main thread for SIGTERM and SIGHUP, where they would end the process at once: a
    signal that the caller ignores (nohup) stays ignored."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    default = [number for number in _ENDS if signal.getsignal(number) == signal.SIG_DFL]
    with handled(interrupt, *default):
        yield


@contextmanager
def all_handled(handler: Handler) -> Iterator[None]:
    """Call a handler for SIGINT, and for SIGTERM and SIGHUP where the caller does not ignore them."""
    taken = [number for number in _ENDS if signal.getsignal(number) != signal.SIG_IGN]
    with handled(handler, signal.SIGINT, *taken):
        yield


@contextmanager
def handled(handler: Handler, *numbers: signal.Signals) -> Iterator[None]:
    """Call a handler for these signals; nothing changes outside of the main thread, which alone gets signals."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, old in before.items():
            signal.signal(number, old)


def in_a_thread(work: Callable[[], None], stop: Callable[[], bool]) -> None:
    """Do work that installs handlers of its own, in another thread, where it cannot. In that of a caller that is not
    the main thread, do it there.

    Each time it is stopped, calls `stop` until that says that it reached something; when the work has ended, raises
    KeyboardInterrupt.
    """
    if threading.current_thread() is not threading.main_thread():
        work()
        return
    stopped = due = False

    def note(_number: int, _frame: FrameType | None) -> None:
        nonlocal stopped, due
        stopped = due = True

    # An exception instead could come before the loop, where nothing would stop the work.
    with all_handled(note), ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        while not future.done():
            if due:
                due = False
                due = not stop() or due
            wait([future], timeout=_TICK_S)
    if stopped:
        raise KeyboardInterrupt
    future.result()
