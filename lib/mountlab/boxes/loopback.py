"""The `local` box: this machine, through a private sshd on 127.0.0.1 that lives as long as we need it.

It has its own host key, client key, port and configuration in a directory of mode 700, touches nothing of the
system's sshd, and lets in nobody but the current user with that key. Works for root and for an ordinary user.

When we are killed outright, a watchdog (a shell that reads a pipe whose other end is ours) stops sshd and removes the
directory with the keys. PR_SET_PDEATHSIG would be shorter, but it fires when the *thread* that started sshd ends, which
in a notebook is not the same, and it leaves the keys behind.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from mountlab.box import Endpoint
from mountlab.care import Ask, install_argv, install_words
from mountlab.errors import BoxError, CommandError
from mountlab.model import Box

HOST = "127.0.0.1"
START_TIMEOUT_S = 10.0
START_ATTEMPTS = 5
PRIVSEP_DIR = Path("/run/sshd")
"""sshd started by root wants this directory; a service manager usually makes it. Ours holds the file `.mountlab`."""
SBIN = "/usr/local/sbin:/usr/sbin:/sbin"

_WATCHDOG = r"""
# $1: the private directory; $2: the privilege separation directory. Standard input: the pid of sshd, then 'done'.
trap '' HUP INT TERM
read -r pid || pid=
[ -n "$pid" ] && read -r _done && exit 0
if [ -n "$pid" ] && tr '\0' ' ' <"/proc/$pid/cmdline" | grep -qF -- "$1"; then kill "$pid"; fi 2>/dev/null
rm -rf -- "$1"
tries=20
while [ "$tries" -gt 0 ] && [ -e "$2/.mountlab" ]; do
    if ! grep -qs '^sshd' /proc/[0-9]*/comm; then rm -f -- "$2/.mountlab"; rmdir -- "$2"; exit; fi
    tries=$((tries - 1)); sleep 0.1
done
"""


@contextmanager
def private_sshd(box: Box) -> Iterator[Endpoint]:
    """Start a private sshd, give its Endpoint, stop it and remove its files at the end.

    Raises BoxError where sshd or ssh-keygen is missing or sshd does not start; its log is in the error.
    """
    sshd, keygen = _needed(box, "sshd"), _needed(box, "ssh-keygen")
    directory = Path(tempfile.mkdtemp(prefix="mountlab-sshd-"))
    watchdog = _start_watchdog(directory)
    daemon: subprocess.Popen[bytes] | None = None
    try:
        _make_keys(box, keygen, directory)
        daemon, port = _start(box, sshd, directory)
        _tell(watchdog, str(daemon.pid))
        yield _endpoint(directory, port)
    finally:
        _stop(daemon)
        shutil.rmtree(directory)
        _remove_privsep_dir()
        _dismiss(watchdog, had_daemon=daemon is not None)


def find_program(name: str) -> str | None:
    """The absolute path of a program of this machine (sshd refuses to start by a relative one), or None."""
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:{SBIN}")


def _needed(box: Box, name: str) -> str:
    if sys.platform != "linux":
        raise BoxError(
            "the local box needs Linux",
            where=f"box {box.name}",
            got=sys.platform,
            next_step="measure a Linux machine over ssh: see params/boxes/example.yml",
        )
    path = find_program(name)
    if path is None:
        raise BoxError(
            f"{name} is missing on this machine: the local box is reached through a private sshd",
            where=f"box {box.name}",
            got=f"no {name} on PATH or in {SBIN.replace(':', ', ')}",
            next_step=f"mountlab box prepare {box.name}, or by hand: {_install_line()} (no system service is needed)",
        )
    return path


# --- installing sshd --------------------------------------------------------------------------------------------------

_MANAGERS = {"apt-get": "apt", "dnf": "dnf", "zypper": "zypper", "pacman": "pacman"}
_PACKAGES = {"apt": "openssh-server", "dnf": "openssh-server", "zypper": "openssh-server", "pacman": "openssh"}


def install_sshd(box: Box, *, yes: bool, ask: Ask) -> tuple[str, ...]:
    """Install sshd on this machine, without which there is no box to prepare; gives the packages, () if none.

    Asks first unless `yes`. An ordinary user's sudo may ask for a password in the terminal. Raises BoxError where
    there is no known package manager, CommandError when the installation fails.
    """
    if find_program("sshd") and find_program("ssh-keygen"):
        return ()
    manager = _manager()
    if manager is None:
        raise BoxError(
            "sshd is missing, and this machine has no package manager that we know",
            where=f"box {box.name}",
            allowed=", ".join(_MANAGERS),
            next_step="install the OpenSSH server by hand; its system service is not needed",
        )
    if not yes and not ask(f"On this machine, run: {_install_line()}?"):
        return ()
    packages = (_PACKAGES[manager],)
    done = subprocess.run(
        [*_as_root(), *install_argv(manager, packages)],
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode != 0:
        raise CommandError(f"`{_install_line()}` failed", where=f"box {box.name}", evidence=done.stdout)
    return packages


def _manager() -> str | None:
    return next((name for program, name in _MANAGERS.items() if find_program(program)), None)


def _as_root() -> tuple[str, ...]:
    return () if os.geteuid() == 0 else ("sudo",)


def _install_line() -> str:
    """The command that installs sshd here, as a person would type it."""
    manager = _manager()
    if manager is None:
        return "the OpenSSH server of your distribution"
    return shlex.join([*_as_root(), *install_words(manager, [_PACKAGES[manager]])])


# --- keys and configuration -------------------------------------------------------------------------------------------


def _make_keys(box: Box, keygen: str, directory: Path) -> None:
    for name in ("host_key", "client_key"):
        argv = [keygen, "-q", "-t", "ed25519", "-N", "", "-C", f"mountlab {name}", "-f", str(directory / name)]
        made = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        if made.returncode != 0:
            raise BoxError("ssh-keygen failed", where=f"box {box.name}", evidence=made.stderr or made.stdout)
    shutil.copy(directory / "client_key.pub", directory / "authorized_keys")


def _endpoint(directory: Path, port: int) -> Endpoint:
    kind, key = (directory / "host_key.pub").read_text().split()[:2]
    known_hosts = directory / "known_hosts"
    known_hosts.write_text(f"[{HOST}]:{port} {kind} {key}\n")
    return Endpoint(
        host=HOST,
        port=port,
        user=_user(),
        key_file=directory / "client_key",
        known_hosts=known_hosts,
        log=directory / "log",
    )


def _user() -> str:
    """The name of the effective user: LOGNAME may say something else, after su for example."""
    return pwd.getpwuid(os.geteuid()).pw_name


def configuration(directory: Path, port: int, user: str, *, pam: bool) -> str:
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
            "AllowTcpForwarding no",
            "AllowAgentForwarding no",
            "X11Forwarding no",
            "PermitTTY no",
            "PermitUserRC no",
            "PrintMotd no",
            "PrintLastLog no",
            # bash under sshd reads .bashrc, which can take longer than a trial; not at SHLVL 2.
            "SetEnv SHLVL=2",
            "Subsystem sftp internal-sftp",
            "ClientAliveInterval 15",
            "ClientAliveCountMax 4",
            "",
        ]
    )


def _is_locked(user: str, shadow: Path = Path("/etc/shadow")) -> bool:
    """Whether the password is locked ('!', as root's is on Ubuntu): sshd without PAM then refuses keys too."""
    try:
        lines = shadow.read_text().splitlines()
    except OSError:  # an ordinary user cannot see it, and neither can a sshd of theirs
        return False
    return any(line.startswith(f"{user}:!") for line in lines)


# --- the processes ----------------------------------------------------------------------------------------------------


def _start(box: Box, sshd: str, directory: Path) -> tuple[subprocess.Popen[bytes], int]:
    """sshd and its port. The port was free a moment ago: if somebody else was quicker, another is tried."""
    log = directory / "log"
    for _ in range(START_ATTEMPTS):
        port = _free_port()
        (directory / "sshd_config").write_text(
            configuration(directory, port, _user(), pam=os.geteuid() == 0 and _is_locked(_user()))
        )
        _make_privsep_dir()
        daemon = _spawn(sshd, directory, log)
        if _wait_for_greeting(daemon, port):
            return daemon, port
        _stop(daemon)
        if "in use" not in log.read_text(errors="replace") and PRIVSEP_DIR.name not in log.read_text(errors="replace"):
            break
    raise BoxError(
        "the private sshd did not start",
        where=f"box {box.name}: {sshd}",
        got=f"exit status {daemon.returncode}",
        next_step="see what it said; `mountlab box check` tells about the rest of the machine",
        evidence=log.read_text(errors="replace"),
    )


def _spawn(sshd: str, directory: Path, log: Path) -> subprocess.Popen[bytes]:
    with log.open("wb") as stderr:
        return subprocess.Popen(
            [sshd, "-D", "-e", "-f", str(directory / "sshd_config")],
            stdin=subprocess.DEVNULL,
            stdout=stderr,
            stderr=stderr,
            # A session of its own: Ctrl-C in the terminal must not kill it before we have cleaned up through it.
            start_new_session=True,
        )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def _wait_for_greeting(daemon: subprocess.Popen[bytes], port: int) -> bool:
    """Whether sshd says its greeting on `port`, before it dies or START_TIMEOUT_S is over."""
    return _poll(lambda: daemon.poll() is not None or _greets(port), START_TIMEOUT_S) and daemon.poll() is None


def _greets(port: int) -> bool:
    try:
        with socket.create_connection((HOST, port), timeout=1.0) as connection:
            return connection.recv(4) == b"SSH-"
    except OSError:
        return False


def _stop(daemon: subprocess.Popen[bytes] | None) -> None:
    if daemon is None:
        return
    daemon.terminate()
    try:
        daemon.wait(5)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()


def _start_watchdog(directory: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        ["sh", "-c", _WATCHDOG, "mountlab-watchdog", str(directory), str(PRIVSEP_DIR)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _tell(watchdog: subprocess.Popen[bytes], line: str) -> None:
    assert watchdog.stdin is not None  # stdin=PIPE
    with contextlib.suppress(BrokenPipeError):  # somebody killed it: nobody watches, and all else works
        watchdog.stdin.write(f"{line}\n".encode())
        watchdog.stdin.flush()


def _dismiss(watchdog: subprocess.Popen[bytes], *, had_daemon: bool) -> None:
    """End the watchdog, with nothing left for it to do."""
    if had_daemon:
        _tell(watchdog, "done")
    watchdog.communicate()


# --- /run/sshd --------------------------------------------------------------------------------------------------------


def _make_privsep_dir() -> None:
    if os.geteuid() == 0 and not PRIVSEP_DIR.exists():
        PRIVSEP_DIR.mkdir(mode=0o755)
        (PRIVSEP_DIR / ".mountlab").touch()


def _remove_privsep_dir() -> None:
    """Remove the directory if we made it, unless another sshd (the system's own, or a second Mountlab) needs it now."""
    marker = PRIVSEP_DIR / ".mountlab"
    if os.geteuid() == 0 and marker.exists() and _poll(lambda: not _sshd_runs(), 2.0):
        marker.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # not empty, or gone: not ours to force
            PRIVSEP_DIR.rmdir()


def _sshd_runs() -> bool:
    return any(_comm(process).startswith("sshd") for process in Path("/proc").glob("[0-9]*"))


def _comm(process: Path) -> str:
    try:
        return (process / "comm").read_text()
    except OSError:  # it ended meanwhile
        return ""


def _poll(condition: Callable[[], bool], timeout_s: float) -> bool:
    """Whether `condition` came true within `timeout_s`; looks every 5 ms."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.005)
    return True
