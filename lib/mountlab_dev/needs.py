"""Programs that the tests need, the Debian packages that bring them, and installing those that are missing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable

from mountlab.box.embedded import here
from mountlab.box.readiness import Ask
from mountlab.core.errors import MountlabError
from mountlab.core.model import Program

PACKAGES = {
    "bash": "bash", "btrfs": "btrfs-progs", "busybox": "busybox", "chromium": "chromium", "chrt": "util-linux",
    "cp": "coreutils", "dash": "dash",
    "db_bench": "rocksdb-tools",
    "dbench": "dbench",
    "dd": "coreutils", "debugfs": "e2fsprogs", "e2fsck": "e2fsprogs",
    "filefrag": "e2fsprogs",
    "fincore": "util-linux-extra", "fio": "fio", "fish": "fish", "flock": "util-linux", "fs_mark": "fsmark",
    "gawk": "gawk", "git": "git",
    "ioping": "ioping",
    "ksh": "ksh", "losetup": "mount", "make": "make", "mawk": "mawk", "mdadm": "mdadm",
    "mke2fs": "e2fsprogs", "mkfs.btrfs": "btrfs-progs", "mkfs.ext4": "e2fsprogs", "mkfs.f2fs": "f2fs-tools",
    "mkfs.xfs": "xfsprogs",
    "mmdebstrap": "mmdebstrap", "mount": "mount", "newuidmap": "uidmap", "nsenter": "util-linux",
    "pdftotext": "poppler-utils", "perf": "linux-perf", "pg_test_fsync": "postgresql", "pgbench": "postgresql",
    "postgres": "postgresql", "pvcreate": "lvm2", "qemu-system-x86_64": "qemu-system-x86", "rsync": "rsync",
    "runuser": "util-linux", "setpriv": "util-linux", "setsid": "util-linux",
    "sfdisk": "fdisk", "original-awk": "original-awk", "shellcheck": "shellcheck", "sqfstar": "squashfs-tools",
    "sqlite3": "sqlite3",
    "ssh": "openssh-client", "ssh-agent": "openssh-client", "ssh-keygen": "openssh-client", "sshd": "openssh-server",
    "strace": "strace", "sudo": "sudo",
    "sysbench": "sysbench",
    "tar": "tar", "tcsh": "tcsh", "timeout": "coreutils", "unshare": "util-linux",
    "useradd": "passwd", "visudo": "sudo", "wipefs": "util-linux", "zsh": "zsh",
    "DejaVuSans.ttf": "fonts-dejavu-core", "libatomic.so.1": "libatomic1",
}  # fmt: skip
"""Program to package. The last two are files: a font for plots, and a library of Playwright's driver."""
_POSTGRESQL = ("pg_test_fsync", "pgbench", "postgres")
_PLACES = {
    **dict.fromkeys(_POSTGRESQL, ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin")),
    "DejaVuSans.ttf": ("/usr/share/fonts/truetype/dejavu", "/usr/share/fonts/*"),
    "libatomic.so.1": ("/usr/lib/*-linux-gnu", "/usr/lib64", "/usr/lib"),
}
PROGRAMS = {
    name: Program(name=name, packages={"apt": package}, places=_PLACES.get(name, ()))
    for name, package in PACKAGES.items()
}
BY_HAND = frozenset(_POSTGRESQL)
"""Their package sets up a database that starts with the machine: installed only where all is asked for."""


def find(name: str) -> str | None:
    """Return where a program is on this machine; the administrator's directories count."""
    return here.find(PROGRAMS[name]) if name in PROGRAMS else here.find_program(name)


def command(names: Iterable[str]) -> str:
    """Return the command that installs the packages of `names`; '' where no package is known."""
    packages = sorted({PACKAGES[name] for name in names if name in PACKAGES})
    return " ".join(["apt-get install", *packages]) if packages else ""


def reason(*names: str) -> str:
    """Return why a test is skipped that needs one of `names`, with the command that brings the first."""
    brings = command(names[:1])
    return f"needs {' or '.join(names)}" + (f" ({brings})" if brings else "")


def missing() -> list[str]:
    """Return the names of PROGRAMS that this machine does not have."""
    return [program.name for program in here.missing(list(PROGRAMS.values()))]


def install(*, by_hand: bool, ask: Ask, at_terminal: bool) -> str:
    """Install what is missing, after asking, and return what is missing still, and why; '' where nothing is.

    `by_hand`: also BY_HAND. `at_terminal`: sudo may ask for a password.
    """
    wanted = [PROGRAMS[name] for name in missing() if by_hand or name not in BY_HAND]
    why = _obstacle(at_terminal=at_terminal) if wanted else ""
    if wanted and not why:
        try:
            why = "" if here.install(wanted, where="the tests", yes=False, ask=ask) else "the answer was no"
        except MountlabError as error:
            why = str(error)
    absent = [program.name for program in here.missing(wanted)]
    return f"tests that need {', '.join(absent)} will be skipped: {why}\n{command(absent)}" if absent else ""


def _obstacle(*, at_terminal: bool) -> str:
    if here.manager() != "apt":
        return "this machine has no apt-get; its own package manager may have what these Debian packages bring"
    if os.geteuid() == 0 or at_terminal:
        return ""
    sudo = here.find_program("sudo")
    allowed = sudo and subprocess.run([sudo, "-n", "true"], capture_output=True, check=False).returncode == 0
    return "" if allowed else "installing needs root or password-less sudo"
