"""Processes that a test watches: whether they are there, and what they are."""

from __future__ import annotations

from pathlib import Path


def is_alive(pid: int) -> bool:
    """A zombie, which only waits for its parent, is not alive."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def program_of(pid: int) -> str:
    """The name of the program that the process runs; "" when it has ended."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def mapped(path: Path) -> bool:
    """Whether a process on this machine has the file mapped."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if str(path) in (process / "maps").read_text():
                return True
        except OSError:
            continue
    return False


def processes_with(text: str) -> list[int]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if text.encode() in command and is_alive(int(process.name)):
            found.append(int(process.name))
    return found
