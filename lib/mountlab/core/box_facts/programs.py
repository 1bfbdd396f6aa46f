"""Facts about the programs of a box."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from mountlab.core.box_facts.base import FactPart, Group, fact
from mountlab.core.model import Program

BUSYBOX = "BusyBox"
"""How the version of a program begins that is one of BusyBox's."""
_PACKAGE_MANAGER = r"""
for manager in apt-get dnf zypper pacman; do
    if command -v "$manager" >/dev/null; then echo "${manager%-get}"; break; fi
done
"""
_SAMPLING = r"""
# shellcheck disable=SC2016 # the words of another shell
for shell in bash sh 'busybox sh' ksh mksh; do
    took=$(sleep 0.1 | $shell -c '
        read -r began _ < /proc/uptime
        read -r -t 0.03 never
        read -r ended _ < /proc/uptime
        read -r -d "" text < /proc/loadavg
        [ -z "$text" ] || echo "$((${ended%.*}${ended#*.} - ${began%.*}${began#*.}))"' 2>&1)
    case $took in 0 | 1 | '' | *[!0-9]*) ;; *) echo "$shell"; break ;; esac
done
"""
"""A shell whose `read` waits for a part of a second, and reads a whole file: what sampler.sh is run by."""


class InstalledProgram(FactPart):
    """A program that a box has."""

    path: str | None = None
    version: str | None = None
    """None where the program does not tell."""


def parse_programs(text: str) -> dict[str, InstalledProgram]:
    """Return those that were found by name. Lines are name, path and version."""
    programs: dict[str, InstalledProgram] = {}
    for line in text.splitlines():
        if line.strip():
            name, path, version = line.split("\t", 2)
            programs[name] = InstalledProgram(path=path, version=version.strip() or None)
    return programs


class ProgramFacts(Group):
    """The programs of a box."""

    section: ClassVar = "Programs"
    package_manager: str | None = fact("package manager", _PACKAGE_MANAGER)
    sampling_shell: str | None = fact("shell that samples the counters inside trials", _SAMPLING)
    installed: Mapping[str, InstalledProgram] = fact("programs", default={}, key="programs")
    """By name, of those that `gather` was given."""

    def version(self, name: str) -> str | None:
        """Return the version of a program; None where it is absent, or does not tell."""
        program = self.installed.get(name)
        return program.version if program else None

    def unfit(self, program: Program) -> str:
        """Return why the box cannot use a program; '' where it can."""
        if program.name not in self.installed:
            return "not found"
        if program.busybox_lacks and (self.version(program.name) or "").startswith(BUSYBOX):
            return f"BusyBox's {program.name} lacks {program.busybox_lacks}"
        return ""

    def path(self, name: str) -> str | None:
        """Return where a program is; None where it is absent."""
        program = self.installed.get(name)
        return program.path if program else None
