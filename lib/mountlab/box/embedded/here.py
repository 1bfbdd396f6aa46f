"""This machine: finding the programs that an embedded box needs, and installing what is missing, after asking."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from mountlab.box.readiness import Ask, install_argv, install_words
from mountlab.core.errors import BoxError, CommandError
from mountlab.core.model import Program

SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
MANAGERS = {"apt-get": "apt", "dnf": "dnf", "zypper": "zypper", "pacman": "pacman"}
"""Program to the name that the package tables know."""


def find_program(name: str) -> str | None:
    """Return the absolute path of a program of this machine (sshd refuses to start by a relative one), or None."""
    return shutil.which(name, path=f"{os.environ.get('PATH', os.defpath)}:{SBIN}")


def needed(program: Program, why: str, *, where: str = "", places: str = "PATH", next_step: str = "") -> str:
    """Return the path of a program of this machine. Raises BoxError where it is missing. `why`: what it is for."""
    path = find_program(program.name)
    if path is None:
        raise BoxError(
            f"{program.name} is missing on this machine: {why}",
            where=where,
            got=f"no {program.name} on {places}",
            next_step=next_step or install_line([program]),
        )
    return path


def run(argv: Sequence[str], stdin: IO[bytes] | int = subprocess.DEVNULL) -> subprocess.CompletedProcess[str]:
    """Run a program of this machine; what it says is text, and its exit status an answer."""
    return subprocess.run(argv, stdin=stdin, capture_output=True, text=True, check=False)


def find(program: Program) -> str | None:
    """Return the path of a program on PATH, among the administrator's, or in one of its own places; None elsewhere."""
    paths = (path for place in program.places for path in Path("/").glob(f"{place.lstrip('/')}/{program.name}"))
    return find_program(program.name) or next(map(str, paths), None)


def missing(programs: Sequence[Program]) -> list[Program]:
    """Return those of `programs` that this machine has not."""
    return [program for program in programs if find(program) is None]


def install(programs: Sequence[Program], *, where: str, yes: bool, ask: Ask) -> tuple[str, ...]:
    """Install what is missing of `programs`; gives the packages, () if none or if the answer was no.

    Asks first unless `yes`. An ordinary user's sudo may ask for a password in the terminal. Raises BoxError where
    there is no known package manager or package, CommandError when the installation fails.
    """
    absent = missing(programs)
    if not absent:
        return ()
    packages = _packages(absent)
    if not packages:
        raise BoxError(
            f"{_names(absent)}: missing, and this machine has no package manager that we know a package of",
            where=where,
            allowed=", ".join(MANAGERS),
            next_step="install by hand; no system service is needed",
        )
    line = install_line(absent)
    if not yes and not ask(f"On this machine, run: {line}?"):
        return ()
    argv = [*_as_root(), *install_argv(manager() or "", packages)]
    completed = subprocess.run(argv, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if completed.returncode != 0:
        raise CommandError(f"`{line}` failed", where=where, evidence=completed.stdout)
    return packages


def install_line(programs: Sequence[Program]) -> str:
    """Return the command that installs `programs` here, as a person would type it."""
    packages = _packages(programs)
    if not packages:
        return f"what your distribution calls {_names(programs)}"
    return shlex.join([*_as_root(), *install_words(manager() or "", packages)])


def manager() -> str | None:
    """Return the package manager of this machine, as the package tables name it."""
    return next((name for program, name in MANAGERS.items() if find_program(program)), None)


def _packages(programs: Sequence[Program]) -> tuple[str, ...]:
    """Return the packages that bring `programs`, () unless they all have one here."""
    name = manager() or ""
    if not all(name in program.packages for program in programs):
        return ()
    return tuple(dict.fromkeys(program.packages[name] for program in programs))


def _names(programs: Sequence[Program]) -> str:
    return ", ".join(program.name for program in programs)


def _as_root() -> tuple[str, ...]:
    return () if os.geteuid() == 0 else ("sudo",)
