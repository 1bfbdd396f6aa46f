"""The `local` box: this machine, through a private sshd on 127.0.0.1 that lives as long as we need it.

It has its own host key, client key, port and configuration in a directory of mode 700, touches nothing of the
system's sshd, and lets in only the current user with that key. Works for root and for an ordinary user.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Iterator, Set
from contextlib import contextmanager
from pathlib import Path

from mountlab.box.embedded import here
from mountlab.box.embedded.child import HOST, free_port, greets, poll, private_directory, spawn, stop
from mountlab.box.embedded.keys import known_hosts, make_keys
from mountlab.box.readiness import Ask
from mountlab.box.ssh import Endpoint
from mountlab.core.errors import BoxError
from mountlab.core.model import Box, Program

START_TIMEOUT_S = 10.0
START_ATTEMPTS = 5
PRIVSEP_DIR = Path("/run/sshd")
"""sshd started by root wants this directory; a service manager usually makes it. Ours holds the file `.mountlab`."""
_PACKAGES = {"apt": "openssh-server", "dnf": "openssh-server", "zypper": "openssh-server", "pacman": "openssh"}
NO_FORWARDS = ("DisableForwarding yes",)
"""Of TCP, of the agent, of X11, of sockets, of tunnels: all of it."""
FORWARDS = (
    "AllowStreamLocalForwarding yes", "AllowTcpForwarding yes", "GatewayPorts no", "AllowAgentForwarding no",
    "X11Forwarding no", "PermitTunnel no",
)  # fmt: skip
"""Of sockets, which sshd has only together with TCP."""
NEEDS = tuple(Program(name=name, packages=_PACKAGES) for name in ("sshd", "ssh-keygen"))


@contextmanager
def private_sshd(box: Box, forwards: bool = False) -> Iterator[Endpoint]:
    """Start a private sshd, give its Endpoint, stop it and remove its files at the end. With `forwards` it forwards
    sockets, as clients of a run need.

    Raises BoxError where sshd or ssh-keygen is missing or sshd does not start; its log is in the error.
    """
    sshd, keygen = (_needed(box, program) for program in NEEDS)
    with private_directory("mountlab-sshd-", shared=PRIVSEP_DIR) as (directory, watch):
        daemon: subprocess.Popen[bytes] | None = None
        try:
            make_keys(box, keygen, directory)
            shutil.copy(directory / "client_key.pub", directory / "authorized_keys")
            daemon, port = _start(box, sshd, directory, forwards=forwards)
            watch(daemon)
            yield _endpoint(directory, port, daemon)
        finally:
            sessions = {pid for pid, parent in _sshds().items() if daemon is not None and parent == daemon.pid}
            stop(daemon)
            _remove_privsep_dir(sessions)


def _needed(box: Box, program: Program) -> str:
    if sys.platform != "linux":
        raise BoxError(
            "the local box needs Linux",
            where=f"box {box.name}",
            got=sys.platform,
            next_step="measure a Linux machine over ssh: see params/boxes/example.yml",
        )
    return here.needed(
        program,
        "the local box is reached through a private sshd",
        where=f"box {box.name}",
        places=f"PATH or in {here.SBIN.replace(':', ', ')}",
        next_step=f"mountlab box prepare {box.name}, or by hand: {here.install_line([program])} "
        "(no system service is needed)",
    )


def install_sshd(box: Box, *, yes: bool, ask: Ask) -> tuple[str, ...]:
    """Install sshd on this machine, without which there is no box to prepare. See `here.install`."""
    return here.install(NEEDS, where=f"box {box.name}", yes=yes, ask=ask)


# --- the configuration ------------------------------------------------------------------------------------------------


def _endpoint(directory: Path, port: int, daemon: subprocess.Popen[bytes]) -> Endpoint:
    return Endpoint(
        host=HOST,
        port=port,
        user=_user(),
        key_file=directory / "client_key",
        known_hosts=known_hosts(directory, port, directory / "host_key.pub"),
        log=directory / "log",
        alive=lambda: daemon.poll() is None,
    )


def _user() -> str:
    """Return the name of the effective user: LOGNAME may say something else, after su for example."""
    return pwd.getpwuid(os.geteuid()).pw_name


def configuration(directory: Path, port: int, user: str, *, pam: bool, forwards: bool = False) -> str:
    """sshd_config of the private sshd."""
    return "\n".join(
        [
            f"ListenAddress {HOST}:{port}",
            f'HostKey "{directory}/host_key"',
            f'AuthorizedKeysFile "{directory}/authorized_keys"',
            f"AllowUsers {user}",
            "PidFile none",
            # The keys may lie below a folder that others can write (/tmp); their own folder has mode 700.
            "StrictModes no",
            "AuthenticationMethods publickey",
            "PasswordAuthentication no",
            "KbdInteractiveAuthentication no",
            "PermitRootLogin prohibit-password",
            f"UsePAM {'yes' if pam else 'no'}",
            "UseDNS no",
            *(FORWARDS if forwards else NO_FORWARDS),
            "PermitUserEnvironment no",
            "PermitTTY no",
            "PermitUserRC no",
            "PrintMotd no",
            "PrintLastLog no",
            # bash under sshd reads .bashrc, which can take longer than a trial; not at SHLVL 2.
            "SetEnv SHLVL=2",
            "ClientAliveInterval 15",
            "ClientAliveCountMax 4",
            "",
        ]
    )


def _is_locked(user: str, shadow: Path = Path("/etc/shadow")) -> bool:
    """Return whether the password is locked ('!', as root's is on Ubuntu): sshd without PAM then refuses keys too."""
    try:
        lines = shadow.read_text().splitlines()
    except OSError:  # an ordinary user cannot see it, and neither can a sshd of theirs
        return False
    return any(line.startswith(f"{user}:!") for line in lines)


# --- the processes ----------------------------------------------------------------------------------------------------


def _start(box: Box, sshd: str, directory: Path, *, forwards: bool) -> tuple[subprocess.Popen[bytes], int]:
    """sshd and its port. The port was free a moment ago: if somebody else was quicker, another is tried."""
    log = directory / "log"
    for _ in range(START_ATTEMPTS):
        port = free_port()
        pam = os.geteuid() == 0 and _is_locked(_user())
        text = configuration(directory, port, _user(), pam=pam, forwards=forwards)
        (directory / "sshd_config").write_text(text)
        with _at_the_directory(fcntl.LOCK_SH):
            _make_privsep_dir()
            daemon = spawn([sshd, "-D", "-e", "-f", str(directory / "sshd_config")], log)
        if _wait_for_greeting(daemon, port):
            return daemon, port
        stop(daemon)
        if "in use" not in log.read_text(errors="replace") and PRIVSEP_DIR.name not in log.read_text(errors="replace"):
            break
    raise BoxError(
        "the private sshd did not start",
        where=f"box {box.name}: {sshd}",
        got=f"exit status {daemon.returncode}",
        next_step="see what it said; `mountlab box check` tells about the rest of the machine",
        evidence=log.read_text(errors="replace"),
    )


def _wait_for_greeting(daemon: subprocess.Popen[bytes], port: int) -> bool:
    """Return whether sshd says its greeting on `port`, before it dies or START_TIMEOUT_S is over."""
    return poll(lambda: daemon.poll() is not None or greets(port, 1.0), START_TIMEOUT_S) and daemon.poll() is None


# --- /run/sshd --------------------------------------------------------------------------------------------------------


@contextmanager
def _at_the_directory(how: int) -> Iterator[None]:
    """Let no Mountlab remove the directory between another's look at it and the start of its sshd. `how`: shared by
    those that start, exclusive for the one that removes."""
    if os.geteuid() != 0 or not PRIVSEP_DIR.parent.is_dir():
        yield
        return
    handle = os.open(PRIVSEP_DIR.parent, os.O_RDONLY)
    try:
        fcntl.flock(handle, how)
        yield
    finally:
        os.close(handle)


def _make_privsep_dir() -> None:
    """Make the directory, marked as ours, unless it is there.

    The system's own sshd may take it away at the same moment: then ours says so, and is started again.
    """
    if os.geteuid() == 0:
        with contextlib.suppress(FileExistsError, FileNotFoundError):
            PRIVSEP_DIR.mkdir(mode=0o755)
            (PRIVSEP_DIR / ".mountlab").touch()


def _remove_privsep_dir(sessions: Set[int]) -> None:
    """Remove the directory if we made it, as soon as the sessions of our sshd have ended, unless another sshd (the
    system's own, or a second Mountlab's) needs it then: the last to end removes it."""
    marker = PRIVSEP_DIR / ".mountlab"
    if os.geteuid() == 0 and marker.exists():
        poll(lambda: not sessions & _sshds().keys(), 2.0, every_s=0.02)
        with _at_the_directory(fcntl.LOCK_EX):
            if not _sshds():
                marker.unlink(missing_ok=True)
                with contextlib.suppress(OSError):  # not empty, or gone: not ours to force
                    PRIVSEP_DIR.rmdir()


def _sshds() -> dict[int, int]:
    """Return the processes of every sshd, and their parents. One that has ended needs nothing, even where its own
    parent, such as the first process of a container, never asks how it ended."""
    parents = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it ended meanwhile
            name, _, rest = (process / "stat").read_text(errors="replace").partition("(")[2].rpartition(") ")
            state, parent = rest.split()[:2]
            if name.startswith("sshd") and state not in "ZX":
                parents[int(process.name)] = int(parent)
    return parents
