"""Writes down which file of tests reaches a place.

`mutate` copies this module, as `mountlab_probe`, to the library of its clone. There the library calls `hit`, scripts
write to `hits-of-scripts`, and pytest loads it as a plugin.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

PLACE = Path(__file__).parents[2]
HITS, OF_SCRIPTS, SESSIONS = PLACE / "hits", PLACE / "hits-of-scripts", PLACE / "sessions"
_OUTER = os.environ.get("PYTEST_CURRENT_TEST", "")
"""The test that has started this process; '' in one of the session itself. A pytest in it has tests of its own."""
_seen = set[str]()
_read = 0


def hit(number: int | str) -> None:
    """Report the file of the test that runs; '' while tests are collected."""
    test = _OUTER or os.environ.get("PYTEST_CURRENT_TEST", "")
    _report(f"{number} {test.partition('::')[0]}")


def _report(line: str) -> None:
    if line not in _seen:
        _seen.add(line)
        with contextlib.suppress(OSError), HITS.open("a") as file:
            file.write(f"{line}\n")


def pytest_configure() -> None:
    """Report the name that is in the path of each image that this session makes."""
    name = os.environ.get("MOUNTLAB_TESTS", "")
    if name:
        with SESSIONS.open("a") as file:
            file.write(f"{Path(name).name}\n")


def pytest_runtest_logfinish(nodeid: str) -> None:
    """A script does not know who runs it: what scripts have reported since the last test counts for this one."""
    global _read  # noqa: PLW0603
    with contextlib.suppress(OSError), OF_SCRIPTS.open() as file:
        file.seek(_read)
        for number in file.read().split():
            _report(f"{number} {nodeid.partition('::')[0]}")
        _read = file.tell()
