"""Processes of this machine that a box is made of."""

from __future__ import annotations

import signal
import subprocess

from mountlab.box.embedded import child


def test_what_is_stopped_has_ended_and_none_is_nothing_to_stop() -> None:
    process = subprocess.Popen(["sleep", "600"])
    child.stop(process)
    assert process.returncode == -signal.SIGTERM
    child.stop(None)
