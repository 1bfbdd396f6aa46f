"""Kernels for notebooks that papermill executes: of this very interpreter, in an environment of their own, and with a
hand on the one that runs, so that it can be stopped cleanly."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import uuid4


class Kernels:
    """Gives papermill a class of kernel managers, and interrupts the kernel that the last one of them has started."""

    def __init__(self, environment: Mapping[str, str] | None = None, *, alone: bool = False) -> None:
        """`alone`: the kernel imports nothing that lies in the current directory, which may be somebody else's run."""
        self._environment = {**(environment or {}), **({"PYTHONSAFEPATH": "1"} if alone else {})}
        self._options = ["--IPKernelApp.ignore_cwd=True"] if alone else []
        self._last: Any = None

    def manager(self, connection: Path) -> type:
        """A kernel manager for this very interpreter: a kernelspec `python3` in the user's home may be of another.

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
                    # one may take the other's. A socket of this name is nobody else's, and no file is left of it.
                    self.transport, self.ip = "ipc", f"@mountlab-{uuid4().hex}"
                kernels._last = self

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


@contextmanager
def own_loop() -> Iterator[None]:
    """For a thread in which papermill is to run: the event loop that it makes there is closed at the end."""
    try:
        yield
    finally:
        with suppress(RuntimeError):  # there is none where papermill never came to run
            asyncio.get_event_loop().close()
