"""Whether a box is ready for runs, and the programs that it lacks (`mountlab box check|prepare`)."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mountlab.box.connection import BoxConnection, checked
from mountlab.box.helper import PROGRAM as HELPER
from mountlab.box.roots import check as check_roots
from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import PlanError, UnsafeError
from mountlab.core.model import Box, Program
from mountlab.core.shell import script_argv, script_text
from mountlab.core.units import GIB, MIB, format_bytes
from mountlab.filesystems.guard import LOOK_TIMEOUT_S, read_permission, read_refusal

CheckState = Literal["ok", "missing", "limited"]
Ask = Callable[[str], bool]
"""Puts a question to the user and gives whether the answer was yes."""

UNKNOWN = "unknown"
MIN_FREE_BYTES = 2 * GIB
"""Free space below the mount root: the image of the demo, with room to spare."""
MIN_OUTPUT_BYTES = 64 * MIB
MIN_MEMORY_BYTES = 1 * GIB
INSTALL_TIMEOUT_S = 1800.0


# --- check ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CheckRow:
    """The result of one check: `missing` keeps something from running, `limited` makes some of it worse."""

    name: str
    state: CheckState
    seen: str
    mend: str = ""
    """The command or the edit that mends it; '' where nothing needs mending."""


def check(
    connection: BoxConnection, facts: BoxFacts, needs: Iterable[Program], types: Mapping[str, bool]
) -> list[CheckRow]:
    """Return whether the box is fit for the programs `needs` and for kernel file systems `types`: type to whether any
    box should have it. Changes nothing."""
    box = connection.box
    return [
        *_machine_rows(facts),
        _rights_row(box, facts),
        _mount_root_row(box, facts),
        _output_root_row(box, facts),
        *_refused_root_rows(connection, facts),
        *_kernel_rows(facts, dict(sorted(types.items()))),
        *(_scratch_row(connection, device, facts.rights.level) for device in box.block_devices.items()),
        *(_program_row(program, facts) for program in needs),
    ]


def _machine_rows(facts: BoxFacts) -> Iterator[CheckRow]:
    kernel = f"{facts.kernel.release or UNKNOWN} on {facts.processors.architecture or UNKNOWN}"
    kernel = f"{kernel}, {facts.kernel.os or UNKNOWN}"
    debugging = facts.kernel.debug_options
    if debugging:
        seen = f"{kernel}; it looks for its own mistakes ({', '.join(debugging)}), which takes time"
        yield CheckRow("kernel", "limited", seen, "a kernel that was built without them")
    else:
        yield CheckRow("kernel", "ok" if facts.kernel.release else "limited", kernel)
    yield _memory_row(facts)


def _memory_row(facts: BoxFacts) -> CheckRow:
    free = facts.memory.available_bytes
    seen = (
        f"{_size(facts.memory.total_bytes)}, {_size(free)} available; "
        f"{facts.processors.count or UNKNOWN} x {facts.processors.model or UNKNOWN}"
    )
    limit = facts.memory_limit
    if limit is not None:
        seen = f"{seen}; the session may use {format_bytes(float(limit))}"
        return CheckRow("memory", "limited", seen, "raise memory.max of the session's control group")
    if free is not None and free < MIN_MEMORY_BYTES:
        return CheckRow("memory", "limited", seen, "end other programs: file systems in memory need room")
    return CheckRow("memory", "ok", seen)


def _size(size_bytes: int | None) -> str:
    return UNKNOWN if size_bytes is None else format_bytes(float(size_bytes))


def _rights_row(box: Box, facts: BoxFacts) -> CheckRow:
    seen = f"{facts.rights.level}, as {facts.rights.user or UNKNOWN}"
    if facts.rights.cannot_mount:
        confined = f"{seen}, in a container without CAP_SYS_ADMIN: only file systems of type dir can be measured"
        return CheckRow("rights", "limited", confined, "start it with more rights (`--privileged`), or use the host")
    if facts.rights.level == "helper":
        return CheckRow("rights", "ok", f"{seen}: tools as that user, as root only what {HELPER} permits")
    if facts.rights.privileged:
        return CheckRow("rights", "ok", seen)
    sudoers = f"echo '{facts.rights.user} ALL=(ALL) NOPASSWD: ALL' | sudo tee /etc/sudoers.d/mountlab"
    mend = sudoers if box.become != "none" else f"params/boxes/{box.name}.yml says `become: none`; `auto` allows more"
    return CheckRow("rights", "limited", f"{seen}: only file systems of type dir can be measured", mend)


def _mount_root_row(box: Box, facts: BoxFacts) -> CheckRow:
    free, fstype = facts.storage.mount_root_free_bytes, facts.storage.mount_root_fstype
    seen = f"{facts.storage.mount_root}: {_size(free)} free on {fstype or UNKNOWN}"
    mend = f"params/boxes/{box.name}.yml: mount_root: a directory on a disk with {format_bytes(MIN_FREE_BYTES)} free"
    if fstype in ("tmpfs", "ramfs"):
        return CheckRow("mount root", "limited", f"{seen}: images there are in memory, not on a disk", mend)
    if free is None or free < MIN_FREE_BYTES:
        return CheckRow("mount root", "limited", seen, mend)
    return CheckRow("mount root", "ok", seen)


def _output_root_row(box: Box, facts: BoxFacts) -> CheckRow:
    free, fstype = facts.storage.output_root_free_bytes, facts.storage.output_root_fstype
    seen = f"{facts.storage.output_root}: {_size(free)} free on {fstype or UNKNOWN}"
    mend = f"params/boxes/{box.name}.yml: output_root: a directory in memory (tmpfs), such as /dev/shm/mountlab"
    if fstype not in ("tmpfs", "ramfs"):
        return CheckRow("output root", "limited", f"{seen}: what tools write there may disturb the measurement", mend)
    if free is None or free < MIN_OUTPUT_BYTES:
        return CheckRow("output root", "limited", seen, mend)
    return CheckRow("output root", "ok", seen)


def _refused_root_rows(connection: BoxConnection, facts: BoxFacts) -> Iterator[CheckRow]:
    """Yield a root that a run would refuse."""
    try:
        check_roots(connection, *facts.storage.roots)
    except UnsafeError as error:
        yield CheckRow("roots", "missing", error.got, f"{error.where}: {error.next_step}")


def _kernel_rows(facts: BoxFacts, types: Mapping[str, bool]) -> Iterator[CheckRow]:
    if types and facts.kernel.filesystems is None:
        yield CheckRow("file systems", "limited", UNKNOWN)
    elif types:
        absent = facts.kernel.lacks(tuple(types))
        seen = "; ".join(
            f"{word}: {', '.join(names)}"
            for word, names in (("has", [fstype for fstype in types if fstype not in absent]), ("has not", absent))
            if names
        )
        mend = f"a kernel with {', '.join(absent)} (or its modules), or sweeps without" if absent else ""
        unfit = any(types[fstype] for fstype in absent)
        yield CheckRow("file systems", "missing" if unfit else "limited" if absent else "ok", seen, mend)
    if facts.kernel.loop_devices:
        yield CheckRow("loop devices", "ok", "available")
    else:
        mend = "modprobe loop (as root); or use a scratch device"
        yield CheckRow("loop devices", "limited", "not available: no file systems on images", mend)


def _scratch_row(connection: BoxConnection, scratch: tuple[str, str], rights: str | None) -> CheckRow:
    """Return the guard's answer on a device, which it only reads, and the command that would give it to Mountlab."""
    name, device = f"scratch {scratch[0]}", scratch[1]
    if rights == "none":
        return CheckRow(name, "limited", f"{device}: only root can look at a device", "rights: see above")
    completed = connection.run(script_argv("guard.sh", device, "", ""), root=True, timeout_s=LOOK_TIMEOUT_S)
    if completed.ok:
        return CheckRow(name, "ok", f"{device}: {read_permission(completed.error_text)[1]}")
    refusal = read_refusal(completed.error_text)
    return CheckRow(name, "missing", f"{device}: {refusal.reason}", refusal.next_step(connection.box, device))


def _program_row(program: Program, facts: BoxFacts) -> CheckRow:
    installed = facts.programs.installed.get(program.name)
    reason = facts.programs.unfit(program)
    seen = f"{installed.version or 'version unknown'} ({installed.path})" if installed else reason
    if not reason:
        return CheckRow(program.name, "ok", seen)
    if installed:
        seen = f"{seen}: {reason}"
    manager = facts.programs.package_manager
    package = program.packages.get(manager or "")
    if program.by_hand(manager):
        return CheckRow(program.name, "limited", "not found: sweeps that need it cannot be run", program.hint)
    if manager is None or package is None:
        others = sorted({*program.packages.values()} - {program.name})
        elsewhere = f"; elsewhere it is in {' or '.join(others)}" if others else ""
        return CheckRow(
            program.name, "missing", seen, f"install {program.name}: no package of it is known here{elsewhere}"
        )
    sudo = "" if facts.rights.level == "root" else "sudo "
    return CheckRow(program.name, "missing", seen, sudo + shlex.join(install_words(manager, [package])))


# --- prepare ----------------------------------------------------------------------------------------------------------

_INSTALL = {
    "apt": ("apt-get", "install", "-y"),
    "dnf": ("dnf", "install", "-y"),
    "zypper": ("zypper", "--non-interactive", "install"),
    "pacman": ("pacman", "-S", "--needed", "--noconfirm"),
}


def install_words(manager: str, packages: Sequence[str]) -> tuple[str, ...]:
    """Return the command that a person would type to install `packages`."""
    return (*_INSTALL[manager], *packages)


def install_argv(manager: str, packages: Sequence[str]) -> tuple[str, ...]:
    """Return the command that we run, as root: without questions, and without starting services (only apt's packages
    do)."""
    if manager == "apt":
        return ("sh", "-c", script_text("install_packages.sh"), "mountlab-install", *packages)
    return install_words(manager, packages)


def prepare(
    connection: BoxConnection, facts: BoxFacts, needs: Iterable[Program], *, yes: bool, ask: Ask
) -> tuple[str, ...]:
    """Install what is missing of `needs` by the box's package manager; gives the packages, () if none or if refused.

    Asks first unless `yes`. Raises PlanError where the box has no rights or no known package manager, CommandError
    when the installation fails.
    """
    box = connection.box
    absent = [program for program in needs if facts.programs.unfit(program)]
    absent = [program for program in absent if not program.by_hand(facts.programs.package_manager)]
    if not absent:
        return ()
    manager, packages = _packages(box, facts, absent)
    words = shlex.join(install_words(manager, packages))
    if facts.rights.level in ("none", "helper"):
        raise PlanError(
            f"installing {', '.join(packages)} needs root, and there is neither root nor password-less sudo",
            where=f"box {box.name}",
            next_step=f"on the box, as root: {words}",
        )
    if not yes and not ask(f"On box {box.name}, run as root: {words}?"):
        return ()
    argv = install_argv(manager, packages)
    checked(connection, argv, what=f"`{words}` failed", timeout_s=INSTALL_TIMEOUT_S, root=True)
    return packages


def _packages(box: Box, facts: BoxFacts, absent: Sequence[Program]) -> tuple[str, tuple[str, ...]]:
    manager = facts.programs.package_manager
    names = ", ".join(program.name for program in absent)
    if manager is None:
        raise PlanError(
            f"{names}: missing, and the box has no package manager that we know",
            where=f"box {box.name}",
            allowed=", ".join(_INSTALL),
            next_step="install them by hand",
        )
    unknown = [program.name for program in absent if manager not in program.packages]
    if unknown:
        raise PlanError(
            f"no {manager} package is known for {', '.join(unknown)}",
            where=f"box {box.name}",
            next_step="install by hand; the sweep can be run without the tools that need it",
        )
    return manager, tuple(sorted({program.packages[manager] for program in absent}))
