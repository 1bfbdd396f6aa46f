"""A Debian of a test's own with little more than Python: a root directory, and commands that see no other."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from mountlab.box.embedded import guest
from mountlab.core.model import Box

ENTER = """
set -e
root=$1; shift
mount --rbind "$root" "$root"
cd "$root"
mount -t proc proc proc
mount --rbind /sys sys
mount --rbind /dev dev
for each in tmp run; do mount -t tmpfs tmpfs "$each"; done
mkdir -p run/old
pivot_root . run/old
cd /
umount -l /run/old
status=0
"$@" || status=$?
exit "$status"
"""
"""In namespaces of mounts and processes that end with the command, and all that it started and mounted with them."""
VARIABLES = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LANG": "C.UTF-8",
}


NETWORK = ("/etc/resolv.conf", "/etc/hosts", "/etc/pip.conf", "/etc/ssl/certs/ca-certificates.crt")
"""How this machine reaches servers of packages: files, and names of variables."""
NETWORK_VARIABLES = re.compile(
    r"PIP_(?:EXTRA_)?INDEX_URL|PIP_CERT|PIP_PROXY|PIP_DEFAULT_TIMEOUT|https?_proxy|no_proxy|SSL_CERT_FILE",
    re.IGNORECASE,
)


def make_root(directory: Path, packages: tuple[str, ...]) -> None:
    """Install the least of this machine's Debian, and these packages, into a directory."""
    box = Box(name="bare", host="localhost")
    without = (f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("man", "doc", "locale"))
    argv = (
        "mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", f"--include={','.join(packages)}",
        "--dpkgopt=force-unsafe-io", *without,
        *(f"--aptopt={option}" for option in guest.apt_options()),
        guest.suite(), str(directory), *guest.sources(box),
    )  # fmt: skip
    run(*guest.ALONE, *argv)
    for name in filter(os.path.exists, NETWORK):
        shutil.copy(name, f"{directory}{name}")


class BareRoot:
    """Such a root, and what is seen in it of directories outside."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def argv(self, *words: str, cwd: str = "/root") -> list[str]:
        """What runs a command in the root, as its only user, with no other variables of this machine."""
        alone = ("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child")
        of_network = {name: value for name, value in os.environ.items() if NETWORK_VARIABLES.fullmatch(name)}
        named = [f"{name}={value}" for name, value in {**of_network, **VARIABLES}.items()]
        inside = ("env", "-i", "-C", cwd, *named, *words)
        return [*alone, "sh", "-c", ENTER, "sh", str(self.directory), *inside]

    def run(self, *words: str, cwd: str = "/root") -> str:
        """What a command printed; it must end well."""
        return run(*self.argv(*words, cwd=cwd))


def run(*argv: str, cwd: Path | None = None) -> str:
    """What a command printed; where it ends badly, what it said is shown."""
    ended = subprocess.run(
        argv,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env={**os.environ, "LC_ALL": "C"},
        check=False,
    )
    assert ended.returncode == 0, f"{' '.join(argv[-8:])}: exit code {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    return ended.stdout
