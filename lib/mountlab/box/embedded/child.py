"""Processes on this machine that live as long as a box is in use, and go with us.

When we are killed outright, a watchdog (a shell that reads a pipe whose other end is ours) stops them and removes the
directory with their files. PR_SET_PDEATHSIG would be shorter, but it fires when the *thread* that started the process
ends, which in a notebook is not the same, and it leaves the files behind.
"""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from pathlib import Path

HOST = "127.0.0.1"
"""Where the embedded boxes listen: only this machine reaches them."""
Watch = Callable[["subprocess.Popen[bytes] | subprocess.Popen[str]"], None]
"""Have a process stopped when we are killed. Its command line must name the private directory."""


@contextmanager
def private_directory(
    prefix: str, *, parent: str | None = None, shared: Path | None = None
) -> Iterator[tuple[Path, Watch]]:
    """Make a directory of mode 700, and watch what has a process in it; at the end remove it, and stop watching.

    `shared` is a directory of sshd's that the watchdog removes too, if it is ours and no sshd needs it.
    """
    directory = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
    watchdog = _start_watchdog(directory, shared)
    try:
        yield directory, lambda process: _tell(watchdog, str(process.pid))
    finally:
        shutil.rmtree(directory)
        _tell(watchdog, "done")
        watchdog.communicate()


def spawn(argv: Sequence[str], log: Path, environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    """Start a process that reads nothing and writes to `log`, from its beginning."""
    with log.open("wb") as output:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=environment,
            # A session of its own: Ctrl-C in the terminal must not kill it before we have cleaned up through it.
            start_new_session=True,
        )


def stop(process: subprocess.Popen[bytes] | subprocess.Popen[str] | None) -> None:
    """End a process, by force after 5 s; None is none."""
    if process is None:
        return
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def free_port() -> int:
    """Return a port of HOST that is free at this moment."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def greets(port: int, timeout_s: float) -> bool:
    """Return whether sshd says its greeting on a port of HOST, within `timeout_s`."""
    try:
        with socket.create_connection((HOST, port), timeout=timeout_s) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def poll(condition: Callable[[], bool], timeout_s: float, every_s: float = 0.005) -> bool:
    """Return whether `condition` came true within `timeout_s`."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(every_s)
    return True


@cache
def resource(name: str) -> str:
    """Return the text of a script beside this module."""
    return files("mountlab.box.embedded").joinpath(name).read_text()


def _start_watchdog(directory: Path, shared: Path | None) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["sh", "-c", resource("watchdog.sh"), "mountlab-watchdog", str(directory), str(shared or "")],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _tell(watchdog: subprocess.Popen[bytes], line: str) -> None:
    assert watchdog.stdin is not None  # stdin=PIPE
    with contextlib.suppress(BrokenPipeError):  # the watchdog was killed: all else works without it
        watchdog.stdin.write(f"{line}\n".encode())
        watchdog.stdin.flush()
