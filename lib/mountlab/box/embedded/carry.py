"""Unix sockets carried from one box to another, through this machine, by OpenSSH's own client.

The sockets of several boxes become sockets of one box, where only the user who logs in reaches them. Nothing listens on
a network. The ssh processes live as long as we need them, and a watchdog ends them where we are killed.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from mountlab.box.embedded import here
from mountlab.box.embedded.child import Watch, poll, private_directory, spawn, stop
from mountlab.core.errors import CommandError
from mountlab.core.model import Program

SSH = Program(
    name="ssh",
    packages={"apt": "openssh-client", "dnf": "openssh-clients", "zypper": "openssh-clients", "pacman": "openssh"},
)
CONNECT_TIMEOUT_S = 30.0
_OPTIONS = {
    "BatchMode": "yes", "StrictHostKeyChecking": "yes", "ExitOnForwardFailure": "yes", "ControlMaster": "no",
    "ControlPath": "none", "ForwardAgent": "no", "ForwardX11": "no", "PermitLocalCommand": "no",
    "ServerAliveInterval": "15", "ServerAliveCountMax": "4", "StreamLocalBindMask": "0177", "LogLevel": "ERROR",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class End:
    """A box, as OpenSSH reaches it, and one of its sockets."""

    name: str
    ssh: tuple[str, ...]
    socket: str


@contextmanager
def carried(
    sources: Sequence[End], name: str, ssh: tuple[str, ...], sockets: Mapping[str, str]
) -> Iterator[Callable[[], None]]:
    """The socket of each source becomes that of the box `name`, which `ssh` reaches, at the path that `sockets` has for
    the source's name. Yields a function that raises CommandError where a connection is over: the user of the sockets
    calls it while waiting until sshd has made them.

    Raises BoxError where this machine has no ssh, CommandError where a connection does not come about; what ssh said
    is in the error.
    """
    program = here.needed(SSH, "the sockets of clients are carried by it")
    with private_directory("mountlab-carry-") as (directory, watch), ExitStack() as undo:
        local_sockets = {source.name: directory / str(number) for number, source in enumerate(sources)}
        legs = [
            _Leg.started(
                undo,
                watch,
                source.name,
                local_sockets[source.name].with_suffix(".log"),
                (program, *_words(), "-L", f"{local_sockets[source.name]}:{source.socket}", *source.ssh),
            )
            for source in sources
        ]
        for leg in legs:
            leg.wait(local_sockets[leg.name])
        back = (word for source in sources for word in ("-R", f"{sockets[source.name]}:{local_sockets[source.name]}"))
        argv = (program, *_words(), *back, *ssh)
        legs.append(_Leg.started(undo, watch, name, directory / "back.log", argv))

        def check() -> None:
            for leg in legs:
                leg.check()

        yield check


@dataclass(frozen=True)
class _Leg:
    """One connection."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    @classmethod
    def started(cls, undo: ExitStack, watch: Watch, name: str, log: Path, argv: tuple[str, ...]) -> _Leg:
        process = spawn(argv, log)
        undo.callback(stop, process)
        watch(process)
        return cls(name, process, log)

    def wait(self, socket: Path) -> None:
        if not poll(lambda: self.process.poll() is not None or socket.is_socket(), CONNECT_TIMEOUT_S):
            raise _failed(self.name, self.log)
        self.check()

    def check(self) -> None:
        if self.process.poll() is not None:
            raise _failed(self.name, self.log)


def _words() -> tuple[str, ...]:
    return ("-N", "-T", *(f"-o{name}={value}" for name, value in _OPTIONS.items()))


def _failed(name: str, log: Path) -> CommandError:
    return CommandError(
        "the socket of a client could not be carried over SSH",
        where=f"box {name}",
        allowed="an sshd that forwards unix sockets (AllowStreamLocalForwarding, AllowTcpForwarding: yes by default)",
        next_step=f"see that `ssh -o BatchMode=yes` reaches {name} without a password, with a host key that is known",
        evidence=log.read_text(errors="replace"),
    )
