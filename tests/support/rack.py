"""Several boxes on this machine, each a private sshd with roots of its own, and a scheduler with workers that may be
killed. Processes that are started here see no box files but these."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat
import yaml
from mountlab.box.embedded.loopback import private_sshd
from mountlab.box.ssh import Endpoint
from mountlab.core.model import Box
from mountlab.core.places import SHIPPED
from processes import processes_with

HOST = "127.0.0.1"


@dataclass
class Rack:
    """A home directory whose ssh configuration knows the boxes, their files, and results/."""

    home: Path
    sshds: dict[str, int] = field(default_factory=dict)
    """Box to the process of its sshd."""
    started: list[subprocess.Popen[str]] = field(default_factory=list)

    @property
    def results(self) -> Path:
        return self.home / "results"

    @property
    def environment(self) -> dict[str, str]:
        quiet = {"DASK_DISTRIBUTED__SCHEDULER__LOCKS__LEASE_TIMEOUT": "2s",
                 "DASK_DISTRIBUTED__SCHEDULER__LOCKS__LEASE_VALIDATION_INTERVAL": "500ms"}  # fmt: skip
        return {
            **os.environ,
            **quiet,
            "HOME": str(self.home),
            "MOUNTLAB_PARAMS": str(self.home / "params"),
            "MOUNTLAB_RESULTS": str(self.results),
            "COLUMNS": "200",
        }

    def put_box(self, name: str, endpoint: Endpoint, **keys: Any) -> None:
        """A box file, and what ssh must know of it."""
        output = f"/dev/shm/mountlab-{self.home.name}-{name}"
        raw = {"host": name, "mount_root": str(self.home / f"mountlab-{name}"), "output_root": output, **keys}
        (self.home / "params" / "boxes" / f"{name}.yml").write_text(yaml.safe_dump(raw))
        with (self.home / ".ssh" / "config").open("a") as config:
            config.write(
                f"Host {name}\n HostName {HOST}\n Port {endpoint.port}\n User {endpoint.user}\n"
                f" IdentityFile {endpoint.key_file}\n"
            )
        with (self.home / ".ssh" / "known_hosts").open("a") as known:
            known.write(endpoint.known_hosts.read_text())
        (self.sshds[name],) = (
            pid for pid in processes_with(str(endpoint.key_file.parent)) if b"sshd_config" in _command(pid)
        )

    def lose(self, name: str) -> None:
        """Its sshd and every connection to it are gone; what the box runs by itself is not."""
        for pid in _frozen_family(self.sshds.pop(name)):
            _send(pid, signal.SIGKILL if b"sshd" in _command(pid).partition(b" ")[0] else signal.SIGCONT)

    def hang(self, name: str) -> None:
        """It takes connections, and answers to none."""
        for pid in _family(self.sshds[name]):
            _send(pid, signal.SIGSTOP)

    def answer(self, name: str) -> None:
        """The end of a hang."""
        for pid in _family(self.sshds[name]):
            _send(pid, signal.SIGCONT)

    def put_batch(self, raw: Mapping[str, Any]) -> Path:
        path = self.home / "b.yml"
        path.write_text(yaml.safe_dump(raw, sort_keys=False))
        return path

    def put_sweep(self, name: str, raw: Mapping[str, Any]) -> None:
        (self.home / "params" / "sweeps" / f"{name}.yml").write_text(yaml.safe_dump(raw, sort_keys=False))

    def put_notebook(self, name: str, parameters: str, *cells: str) -> None:
        made = [nbformat.v4.new_code_cell(parameters, metadata={"tags": ["parameters"]})]
        notebook = nbformat.v4.new_notebook(cells=[*made, *map(nbformat.v4.new_code_cell, cells)])
        notebook.metadata["kernelspec"] = {"name": "python3", "language": "python", "display_name": "Python 3"}
        nbformat.write(notebook, self.home / f"{name}.ipynb")

    def begin(self, *arguments: str, **environment: str) -> subprocess.Popen[str]:
        """`mountlab ARGUMENTS`."""
        self.started.append(
            subprocess.Popen(
                [sys.executable, "-m", "mountlab", *arguments],
                cwd=self.home,
                env={**self.environment, **environment},
                text=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
        )
        return self.started[-1]


@contextmanager
def rack(home: Path, boxes: Mapping[str, Mapping[str, Any]]) -> Iterator[Rack]:
    """Boxes by their names, with keys of their files. What of their roots is still there at the end nobody removes."""
    place = Rack(home)
    for each in (home / ".ssh", home / "results", home / "params" / "boxes", home / "params" / "sweeps"):
        each.mkdir(parents=True, mode=0o700)
    (home / "params" / "published").symlink_to(SHIPPED / "params" / "published")
    with ExitStack() as stack:
        stack.callback(lambda: [_end(each) for each in place.started])
        for name, keys in boxes.items():
            endpoint = stack.enter_context(private_sshd(Box(name=name, host="", embedded="loopback")))
            place.put_box(name, endpoint, **keys)
        stack.callback(lambda: [place.answer(name) for name in place.sshds])
        yield place


@contextmanager
def scheduler(place: Rack) -> Iterator[str]:
    """`dask scheduler` on loopback; gives its address."""
    address = f"tcp://{HOST}:{_free_port()}"
    arguments = [
        "scheduler",
        "--host",
        HOST,
        "--port",
        address.rpartition(":")[2],
        "--no-dashboard",
        "--dashboard-address",
        f"{HOST}:0",
    ]
    with _dask(place, *arguments):
        yield address


@contextmanager
def worker(place: Rack, address: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    """`dask worker` without a nanny that would start it again."""
    arguments = [
        "worker",
        address,
        "--no-nanny",
        "--nthreads",
        "8",
        "--host",
        HOST,
        "--no-dashboard",
        "--local-directory",
        str(place.home / "dask"),
    ]
    with _dask(place, *arguments, **environment) as process:
        yield process


@contextmanager
def _dask(place: Rack, *arguments: str, **environment: str) -> Iterator[subprocess.Popen[bytes]]:
    with (place.home / f"{arguments[0]}.log").open("ab") as log:
        process = subprocess.Popen(
            [str(Path(sys.executable).with_name("dask")), *arguments],
            env={**place.environment, **environment},
            cwd=place.home,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _end(process: subprocess.Popen[str]) -> None:
    """Of a test that failed; one that passed has waited for it."""
    process.kill()
    process.communicate()


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind((HOST, 0))
        return int(listening.getsockname()[1])


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _family(pid: int) -> list[int]:
    """A process and all below it, the youngest first."""
    children = [int(each) for each in _children(pid)]
    return [*(below for child in children for below in _family(child)), pid]


def _frozen_family(pid: int) -> set[int]:
    """The same, stopped: one that runs may have a child that is not listed yet, and would live on."""
    family: set[int] = set()
    while more := {*_family(pid)} - family:
        for each in more:
            _send(each, signal.SIGSTOP)
        family |= more
    return family


def _children(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []


def _send(pid: int, number: signal.Signals) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        time.sleep(0)
