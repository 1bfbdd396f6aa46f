"""The private sshd's of the boxes of a run, of which a test ends some."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest
from mountlab.box.ssh import SshBox
from mountlab.runner import workflow
from processes import processes_with


def opened_boxes(monkeypatch: pytest.MonkeyPatch) -> dict[str, SshBox]:
    """The boxes of a run by name, as they are opened."""
    found: dict[str, SshBox] = {}
    real = workflow.open_box

    def keep(box: object, **more: object) -> object:
        class Kept:
            def __enter__(self) -> SshBox:
                self.inner = real(box, **more)  # type: ignore[arg-type]
                found[box.name] = self.inner.__enter__()  # type: ignore[attr-defined]
                return found[box.name]  # type: ignore[attr-defined]

            def __exit__(self, *error: object) -> object:
                return self.inner.__exit__(*error)  # type: ignore[arg-type]

        return Kept()

    monkeypatch.setattr(workflow, "open_box", keep)
    return found


def kill_sshd_of(box: SshBox, *, listener: bool = True) -> list[int]:
    """Kill the sessions of a box's sshd, and before them the process that would take new ones."""
    endpoint = box._endpoint
    assert endpoint is not None
    (first, *_) = processes_with(str(endpoint.log.parent / "sshd_config"))
    mine = [*([first] if listener else []), *children_of(first)]
    for pid in mine:
        with suppress(ProcessLookupError):  # a session ends when its listener has
            os.kill(pid, signal.SIGKILL)
    return mine


def children_of(pid: int) -> list[int]:
    """sshd's own processes below it, but nothing that a session has started."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            name, rest = (process / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
        except (OSError, IndexError):
            continue
        if int(rest.split()[1]) == pid and name.startswith("sshd"):
            found += [int(process.name), *children_of(int(process.name))]
    return found
