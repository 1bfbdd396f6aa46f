"""Kernels for notebooks that papermill executes: of this very interpreter, in an environment of their own, and with a
hand on the one that runs, so that it can be stopped cleanly."""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4


class Kernels:
    """Gives papermill a class of kernel managers, and interrupts the kernel that the last one of them has started."""

    def __init__(self, environment: Mapping[str, str] | None = None, *, alone: bool = False) -> None:
        """`alone`: the kernel imports nothing that lies in the current directory, which may be somebody else's run, and
        may be forked from a process that has imported what reports need."""
        self._environment = {**(environment or {}), **({"PYTHONSAFEPATH": "1"} if alone else {})}
        self._options = ["--IPKernelApp.ignore_cwd=True"] if alone else []
        self._forked = alone
        self._last: Any = None

    def manager(self, connection: Path) -> type:
        """Return a kernel manager for this very interpreter: a kernelspec `python3` in the user's home may be of
        another.

        `connection` is the file that tells the kernel its ports. It is removed at the end; what a crash leaves there
        the next one writes over.
        """
        from ipykernel.kernelspec import get_kernel_dict
        from jupyter_client.kernelspec import KernelSpec
        from jupyter_client.manager import AsyncKernelManager

        kernels = self

        class OwnKernelManager(AsyncKernelManager):
            def __init__(self, *arguments: Any, **keywords: Any) -> None:
                super().__init__(*arguments, **keywords)
                self.connection_file = str(connection)
                if sys.platform == "linux":
                    # A TCP port is chosen before the kernel binds it, and of two kernels that start at the same time
                    # one may take the other's. A socket of this name is ours alone, and no file is left of it.
                    self.transport, self.ip = "ipc", f"@mountlab-{uuid4().hex}"
                kernels._last = self
                if kernels._forked:
                    self.provisioner = _provisioner(self)

            @property
            def kernel_spec(self) -> KernelSpec:
                spec = get_kernel_dict()
                # It would warn on the user's terminal that loopback is not encrypted; errors of cells come another way.
                argv = [*spec["argv"], "--IPKernelApp.log_level=CRITICAL", *kernels._options]
                return KernelSpec(**{**spec, "argv": argv, "env": kernels._environment})

        return OwnKernelManager

    def interrupt(self) -> bool:
        """Do what the interrupt button does: the running cell ends with KeyboardInterrupt. Gives whether there was a
        kernel to tell."""
        return self._signal(signal.SIGINT)

    def end(self) -> bool:
        """End the kernel at once, also one that is still starting, which takes no interrupt: for a notebook that only
        reads. Gives whether there was a kernel."""
        return self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> bool:
        pid = getattr(getattr(self._last, "provisioner", None), "pid", None)
        if pid is None:
            return False
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return False
        return True


def _provisioner(manager: Any) -> Any:
    """Return what launches the kernel of a manager: by the kernel server, or where that is busy as any other."""
    from jupyter_client.provisioning.local_provisioner import LocalProvisioner

    class Forking(LocalProvisioner):
        async def launch_kernel(self, cmd: list[str], **keywords: Any) -> Any:
            process: Any = _forked(cmd, keywords)
            if process is None:
                return await super().launch_kernel(cmd, **keywords)
            self.process, self.pid, self.pgid = process, process.pid, process.pid
            return self.connection_info

    return Forking(kernel_id=manager.kernel_id, kernel_spec=manager.kernel_spec, parent=manager)


class ForkedKernel:
    """A kernel of the kernel server, with the methods of subprocess.Popen that jupyter_client uses."""

    stdin = stdout = stderr = None

    def __init__(self, server: KernelServer, pid: int) -> None:
        self.pid = pid
        self._server = server
        self._status: int | None = None

    def poll(self) -> int | None:
        """Return the exit status; None while it runs."""
        return self.wait() if self._status is None and self._server.has_answer() else self._status

    def wait(self) -> int:
        """Return the exit status at its end."""
        if self._status is None:
            self._status = self._server.answer()
        return self._status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


_CHANGING = ("PYTEST_CURRENT_TEST",)
"""Variables that change all the time and that no import reads: a kernel has them, a kernel server does not depend on
them."""


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _CHANGING}


class KernelServer:
    """A running kernel server. It ends when this process does, or when it had nothing to do for a minute."""

    def __init__(self) -> None:
        self.environment, self.directory = _environment(), str(Path.cwd())
        self._kernel: ForkedKernel | None = None
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "mountlab.report.kernel_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self._orders: Any = self._process.stdin
        self._answers: Any = self._process.stdout
        atexit.register(self.end)

    @property
    def is_fit(self) -> bool:
        """Whether it runs, and what it imported it would import again here and now."""
        return self._process.poll() is None and self.environment == _environment() and self.directory == str(Path.cwd())

    @property
    def is_busy(self) -> bool:
        """Whether a kernel of it runs."""
        return self._kernel is not None and self._kernel.poll() is None

    def end(self) -> None:
        """End it at once: it holds nothing that is not somewhere else."""
        with self._process:
            self._process.kill()

    def fork(self, arguments: Sequence[str], environment: Mapping[str, str], directory: str) -> ForkedKernel | None:
        """Return a new kernel; None where the server has ended meanwhile."""
        order = {"arguments": list(arguments), "environment": dict(environment), "directory": directory}
        try:
            self._orders.write(json.dumps(order).encode() + b"\n")
        except BrokenPipeError:
            return None
        pid = self.answer()
        self._kernel = ForkedKernel(self, pid) if pid > 0 else None
        return self._kernel

    def has_answer(self) -> bool:
        """Return whether `answer` would return at once."""
        return bool(select.select([self._answers], [], [], 0)[0])

    def answer(self) -> int:
        """Return the next number that the server says; that of SIGKILL where it has ended."""
        return int(self._answers.readline() or -signal.SIGKILL)


_lock = threading.Lock()
_server: KernelServer | None = None
"""The kernel server of this process."""


def prepare() -> None:
    """Start the kernel server, where it does not run: it imports what reports need while this process does other
    things."""
    with _lock:
        _prepared()


def _prepared() -> KernelServer | None:
    """Return the kernel server; None where it is busy, or where no process can go on after a fork."""
    global _server  # noqa: PLW0603  # one for this process, with its imports
    if sys.platform != "linux" or (_server is not None and _server.is_busy):
        return None
    if _server is not None and not _server.is_fit:
        _server.end()
        atexit.unregister(_server.end)
        _server = None
    _server = _server or KernelServer()
    return _server


def _forked(command: Sequence[str], keywords: Mapping[str, Any]) -> ForkedKernel | None:
    """Return a kernel of the kernel server for a command `python -m ipykernel_launcher ...`; None where it has none."""
    with _lock:
        server = _prepared()
        arguments = command[command.index("-m") + 1 :]
        directory = str(keywords.get("cwd") or Path.cwd())
        return server.fork(arguments, keywords["env"], directory) if server else None


@contextmanager
def own_loop() -> Iterator[None]:
    """For a thread in which papermill is to run: the event loop that it makes there is closed at the end."""
    try:
        yield
    finally:
        with suppress(RuntimeError):  # there is none where papermill never came to run
            asyncio.get_event_loop().close()
