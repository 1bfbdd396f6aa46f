"""An ordinary user of this machine, who may run our Python with our libraries, for the time of a test."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import mountlab
import own_mounts
import pytest
import workers
from installed_programs import program
from waiting import wait_until

_number = count()


@dataclass(frozen=True)
class Ordinary:
    """The user, and a command line that begins a Python with our libraries in his name."""

    name: str
    home: Path
    python: tuple[str, ...]


@contextmanager
def ordinary_user() -> Iterator[Ordinary]:
    """A new user, whom only this session knows. Skips where the session has no mounts of its own, or where no Python of
    our version is for everybody to run."""
    if not own_mounts.is_separate():
        pytest.skip(own_mounts.NEEDED)
    name = f"mlab{os.getpid()}n{next(_number)}"
    homes = workers.PLACE / "homes"
    homes.mkdir(exist_ok=True)
    add = ["useradd", "--create-home", "--base-dir", str(homes), "--shell", "/bin/sh", name]
    done: list[subprocess.CompletedProcess[str]] = []

    def added() -> bool:
        """Whether it came about: another worker may be writing the list of users."""
        done.append(subprocess.run(add, capture_output=True, text=True, check=False))
        assert not done[-1].returncode or "lock" in done[-1].stderr, done[-1].stderr
        return done[-1].returncode == 0

    wait_until(f"user {name}", added)
    account = pwd.getpwnam(name)
    places = [Path(mountlab.__file__).parents[2], Path(sysconfig.get_path("purelib")), Path(sys.prefix, "share")]
    with reachable(places) as (repository, packages, share):
        python = _python(account, repository / "lib", packages, share)
        yield Ordinary(name, Path(account.pw_dir), (*_become(account), *python))


def allow_sudo(user: Ordinary) -> None:
    """Let the user become root without a password, as only this session sees."""
    rule = Path(f"/etc/sudoers.d/{user.name}")
    rule.write_text(f"{user.name} ALL=(ALL) NOPASSWD: ALL\n")
    rule.chmod(0o440)


@contextmanager
def reachable(directories: Sequence[Path]) -> Iterator[list[Path]]:
    """The same directories under names that everybody may reach, whatever lies above them: bind mounts, read-only.

    On an overlay of the session: a session that is killed leaves nothing there.
    """
    place = Path(tempfile.mkdtemp(prefix="reachable-", dir="/var/lib"))
    place.chmod(0o755)
    with ExitStack() as undo:
        undo.callback(place.rmdir)
        names = [place / str(number) for number in range(len(directories))]
        for directory, name in zip(directories, names, strict=True):
            name.mkdir()
            undo.callback(name.rmdir)
            subprocess.run([program("mount"), "--bind", "-o", "ro", str(directory), str(name)], check=True)
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
