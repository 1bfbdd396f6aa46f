"""An ordinary user of this machine, who may run our Python with our libraries, for the time of a test."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import mountlab
import pytest

LOCKED_S = 120.0


@dataclass(frozen=True)
class Ordinary:
    """The user, and a command line that begins a Python with our libraries in his name."""

    name: str
    home: Path
    python: tuple[str, ...]


@contextmanager
def ordinary_user() -> Iterator[Ordinary]:
    """A new user, removed again afterwards. Skips where no Python of our version is for everybody to run."""
    name = f"mlab{os.getpid()}"
    _patiently("useradd", "--create-home", "--shell", "/bin/sh", name)
    try:
        account = pwd.getpwnam(name)
        places = [Path(mountlab.__file__).parents[2], Path(sysconfig.get_path("purelib")), Path(sys.prefix, "share")]
        with reachable(places) as (repository, packages, share):
            yield Ordinary(
                name, Path(account.pw_dir), (*_become(account), *_python(account, repository / "lib", packages, share))
            )
    finally:
        _patiently("userdel", "--remove", name)


def _patiently(*argv: str) -> None:
    """Again, as long as somebody else is writing the list of users, or the user's last process is ending."""
    until = time.monotonic() + LOCKED_S
    while (done := subprocess.run(argv, capture_output=True, text=True, check=False)).returncode:
        assert "lock" in done.stderr or "currently used by process" in done.stderr, done.stderr
        assert time.monotonic() < until, done.stderr
        time.sleep(0.5)


@contextmanager
def reachable(directories: Sequence[Path]) -> Iterator[list[Path]]:
    """The same directories under names that everybody may reach, whatever lies above them: bind mounts, read-only."""
    place = Path(tempfile.mkdtemp(prefix="reachable-", dir="/var/tmp"))
    place.chmod(0o755)
    with ExitStack() as undo:
        undo.callback(place.rmdir)
        names = [place / str(number) for number in range(len(directories))]
        for directory, name in zip(directories, names, strict=True):
            name.mkdir()
            undo.callback(name.rmdir)
            subprocess.run(["mount", "--bind", "-o", "ro", str(directory), str(name)], check=True)
            undo.callback(subprocess.run, ["umount", str(name)], check=True)
        yield names


def _become(account: pwd.struct_passwd) -> list[str]:
    setpriv = shutil.which("setpriv")
    assert setpriv is not None
    return [setpriv, f"--reuid={account.pw_uid}", f"--regid={account.pw_gid}", "--clear-groups"]


def _python(account: pwd.struct_passwd, library: Path, packages: Path, share: Path) -> list[str]:
    """Ours where he may run it (setpriv itself may read everything: only what a shell below it may run counts), or the
    distribution's of the same version."""
    environment = [
        "env", "-i", f"HOME={account.pw_dir}", f"USER={account.pw_name}", "LANG=C.UTF-8", "PATH=/usr/bin:/bin",
        f"PYTHONPATH={library}:{packages}", f"JUPYTER_PATH={share}/jupyter", "PYTHONDONTWRITEBYTECODE=1",
    ]  # fmt: skip
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    for python in (os.path.realpath(sys.executable), f"/usr/bin/{version}", f"/usr/local/bin/{version}"):
        probe = [
            *_become(account),
            "/bin/sh",
            "-c",
            '"$@"',
            "sh",
            *environment,
            python,
            "-c",
            "import mountlab.box.embedded",
        ]
        if subprocess.run(probe, capture_output=True, check=False, cwd="/").returncode == 0:
            return [*environment, python]
    pytest.skip(f"no {version} that an ordinary user could run")
