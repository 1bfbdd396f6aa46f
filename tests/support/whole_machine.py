"""What a machine has once (huge pages, zram, the page cache): one session of the tests at a time changes it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager

LOCKED = "/var/tmp"
"""A directory that every machine has: the lock leaves nothing behind."""


@contextmanager
def only_session() -> Iterator[None]:
    """Wait until no other session of the tests changes what the machine has once."""
    descriptor = os.open(LOCKED, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
