"""What a plan must know of the box beyond its facts: the room in directories, and what lies on scratch devices."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mountlab.box.connection import BoxConnection
from mountlab.box.containment import ask_argv, read_offers
from mountlab.box.tracing import tracing_facts
from mountlab.core.box_facts import BoxFacts, Surveyed
from mountlab.core.errors import BoxTimeout, CommandError, PlanError, UnsafeError
from mountlab.core.model import MARK_BYTES, Box, Filesystem, Sweep
from mountlab.core.shell import script_argv
from mountlab.core.units import KIB
from mountlab.filesystems import FAMILIES, thin
from mountlab.filesystems.base import BLOCK_DEVICE
from mountlab.filesystems.guard import LOOK_TIMEOUT_S, Refusal, read_permission, read_refusal
from mountlab.filesystems.memory import SHM
from mountlab.filesystems.stack import top_bytes
from mountlab.programs import TOOLS
from mountlab.tools.base import Tool

DIRECTORY = """
[ -d "$1" ] || { echo "is not a directory"; exit 1; }
[ -w "$1" ] || { echo "cannot be written"; exit 1; }
stat -f -c %T "$1"
df -P -k "$1"
"""
DAX = 'cat "/sys/class/block/$(basename "$(readlink -f "$1")")/queue/dax"'
"""Whether the processor addresses a device like memory: 1 or 0; a partition does not tell."""
DISCARDS = """block=/sys/class/block/$(basename "$(readlink -f "$1")")
[ -d "$block/queue" ] || block=$block/..
cat "$block/queue/discard_max_bytes\""""
"""How many bytes a device, or the disk of a partition, discards at once; 0: it cannot."""
HELP_S, HELP_OF_OPTION_S = 120.0, 20.0
"""How long the help of a tool may take, and each option more. On an emulated processor fio starts in seconds, and is
started for each option."""
IN_MEMORY = ("tmpfs", "ramfs")
USABLE = 0.9
"""The part of a device that a workload may write; the file system needs the rest for its metadata."""
ALLOWED = "a device that nothing uses, and that was claimed for Mountlab"


@dataclass(frozen=True)
class _Use:
    """A scratch device, as one file system wants to use it."""

    filesystem: str
    name: str
    device: str
    journal: bool = False
    raw: bool = False


@dataclass(frozen=True)
class _Verdict:
    """The guard's answer on one use: what is on the device, and a `refusal` where it must not be written over."""

    use: _Use
    content: str
    identity: str = ""
    refusal: Refusal | None = None

    @property
    def text(self) -> str:
        consequence = "will not be touched" if self.refusal else "will be written over"
        return f"{'its journal ' if self.use.journal else ''}{self.use.device}: {self.content}; {consequence}"


def survey(sweep: Sweep, connection: BoxConnection, facts: BoxFacts) -> BoxFacts:
    """Return the facts with those that a plan of the sweep needs about its directories and scratch devices; for a sweep
    that explains, also with the facts of mountlab.box.tracing. Reads only.

    Raises PlanError for a directory that is absent or cannot be written, UnsafeError for a device with data.
    """
    _check_tools(sweep, connection, facts)
    directories = {fs.name: _directory(fs, connection, facts) for fs in sweep.filesystems if _directory_of(fs)}
    on_image = {fs.name for fs in sweep.filesystems if (fs.over or fs).image_dir}
    types = {name: kind for name, (_, kind) in directories.items()}
    room = {name: size for name, (size, _) in directories.items() if name not in on_image}
    images = {name: size for name, (size, _) in directories.items() if name in on_image}
    in_memory = [str(_directory_of(fs)) for fs in sweep.filesystems if types.get(fs.name) in IN_MEMORY]
    verdicts = [_verdict(use, connection, facts) for use in _uses(sweep, connection, facts)]
    _stop_at_refusals(verdicts, connection.box)
    devices: dict[str, str] = {}
    for verdict in verdicts:
        name = verdict.use.filesystem
        devices[name] = "; ".join(filter(None, (devices.get(name), verdict.text)))
    room |= _rooms(sweep, verdicts, connection, facts)
    identities = {verdict.use.name: verdict.identity for verdict in verdicts}
    _stop_at_twins(verdicts)
    facts = facts.with_survey(
        Surveyed(
            room=room,
            devices=devices,
            device_ids=identities,
            image_room=images,
            memory_directories=tuple(in_memory),
            device_dax=_dax(sweep, verdicts, connection),
            device_discards=_discards(sweep, verdicts, connection),
            # As the user that tools run as.
            namespaces=read_offers(connection.run(ask_argv(), root=connection.rights in ("root", "sudo")).text),
        )
    )
    return facts.with_survey(tracing_facts(connection)) if sweep.design.explain else facts


WAY = """ip -o route get "$1" | sed -n 's/.* src \\([^ ]*\\).*/\\1/p'"""
"""The address from which this machine would talk to another one."""


def peers(sweep: Sweep, clients: Mapping[str, BoxConnection]) -> dict[str, tuple[str, ...]]:
    """Return file system name to the addresses of the clients that are to mount it from its `server`. Raises PlanError
    for a client without a route to it."""
    addresses: dict[str, list[str]] = {}
    for fs in sweep.filesystems:
        for name, connection in clients.items() if fs.server else ():
            completed = connection.run(("sh", "-c", WAY, "way", str(fs.server)))
            if not completed.text.strip():
                raise PlanError(
                    f"client {name} has no route to the server",
                    where=f"filesystems.{fs.name}.server",
                    got=str(fs.server),
                    allowed="an address of the box that every client reaches",
                    evidence=completed.error_text,
                )
            addresses.setdefault(fs.name, []).append(completed.text.split()[0])
    return {name: tuple(texts) for name, texts in addresses.items()}


def _dax(sweep: Sweep, verdicts: list[_Verdict], connection: BoxConnection) -> dict[str, bool]:
    """Return whether scratch devices have DAX, by name, where a sweep requests it and the device reports it."""
    names = {fs.name for fs in sweep.filesystems if any(option.partition("=")[0] == "dax" for option in fs.options)}
    uses = [verdict.use for verdict in verdicts if verdict.use.filesystem in names and not verdict.use.journal]
    answers = {use.name: connection.run(("sh", "-c", DAX, "dax", use.device)).text.strip() for use in uses}
    return {name: text == "1" for name, text in answers.items() if text in ("0", "1")}


def _discards(sweep: Sweep, verdicts: list[_Verdict], connection: BoxConnection) -> dict[str, bool]:
    """Return whether scratch devices discard blocks, by name, where a state of the sweep wears devices."""
    worn = any(state.worn for state in sweep.states.values())
    uses = [verdict.use for verdict in verdicts if worn and not verdict.use.journal]
    answers = {use.name: connection.run(("sh", "-c", DISCARDS, "discards", use.device)).text.strip() for use in uses}
    return {name: text != "0" for name, text in answers.items() if text.isdecimal()}


def _check_tools(sweep: Sweep, connection: BoxConnection, facts: BoxFacts) -> None:
    """Raise ParameterError for an option that the box's own program does not know."""
    helps: dict[str, str] = {}
    for workload in sweep.workloads:
        tool = TOOLS[workload.tool]
        if not tool.box_help:
            continue
        if tool.name not in helps:
            helps[tool.name] = _help_of(tool, _help_command(tool, sweep), connection, facts)
        tool.check_help(workload.options, helps[tool.name], where=f"workloads.{workload.name}")


def _help_of(tool: Tool, argv: tuple[str, ...], connection: BoxConnection, facts: BoxFacts) -> str:
    """Return how the box's own program describes its options. Raises BoxTimeout where that takes too long."""
    limit_s = HELP_S + HELP_OF_OPTION_S * len(argv)
    try:
        completed = connection.run(argv, root=facts.rights.privileged, timeout_s=limit_s)
    except BoxTimeout as error:
        raise BoxTimeout(
            f"the box's {tool.name} did not list its options in {limit_s:g} s",
            where=error.where,
            got=error.got,
            allowed=f"{HELP_S:g} s, and {HELP_OF_OPTION_S:g} s for each option that the sweep gives it",
            next_step=f"see on the box whether `{tool.name} --version` answers; one that hangs does so in trials. If "
            "it is only slow, end what keeps the processors busy (`top`), and run again",
            evidence=error.evidence,
        ) from error
    return completed.text + completed.error_text


def _help_command(tool: Tool, sweep: Sweep) -> tuple[str, ...]:
    """Return the tool's command for help, with the names of all options in the sweep in the place of '{options}'."""
    names = sorted({name for workload in sweep.workloads if workload.tool == tool.name for name in workload.options})
    return tuple(part for word in tool.box_help for part in (names if word == "{options}" else (word,)))


def _directory_of(fs: Filesystem) -> str | None:
    """Return the directory of the box whose free space the file system depends on; only the box can report it."""
    backed = fs.over or fs
    if backed.type in ("dir", "in_place", "bind", "nfs"):
        return backed.path or "."
    return SHM if backed.type == "shmfs" and backed.size_bytes is None else backed.image_dir


def _directory(fs: Filesystem, connection: BoxConnection, facts: BoxFacts) -> tuple[int, str]:
    """Return the free bytes in the directory that a file system depends on, and the type of the file system there."""
    directory = _directory_of(fs)
    if directory in (None, "."):
        return facts.storage.mount_root_free_bytes or 0, facts.storage.mount_root_fstype or ""
    completed = connection.run(("sh", "-c", DIRECTORY, "directory", str(directory)), root=facts.rights.privileged)
    if not completed.ok:
        key = "image_dir" if (fs.over or fs).image_dir else "path"
        raise PlanError(
            f"{directory} {completed.text.strip()}",
            where=f"filesystems.{fs.name}.{key}",
            got=str(directory),
            allowed="an existing directory of the box that you may write",
        )
    kind, *_, last = completed.text.splitlines()
    return int(last.split()[3]) * KIB, kind


def _stop_at_twins(verdicts: list[_Verdict]) -> None:
    """Raise PlanError for two names of one device: one file system would be formatted over the other."""
    names: dict[str, str] = {}
    for verdict in verdicts:
        first = names.setdefault(verdict.identity, verdict.use.name)
        if first != verdict.use.name:
            raise PlanError(
                "two scratch devices of the box file are one",
                where=f"scratch: {first}, {verdict.use.name}",
                got=verdict.content,
                allowed="each device under one name",
            )


def _uses(sweep: Sweep, connection: BoxConnection, facts: BoxFacts) -> Iterator[_Use]:
    """Yield every scratch device that is a block device, in the order of the sweep."""
    devices = connection.box.block_devices
    for fs in sweep.filesystems:
        if FAMILIES[fs.type].unavailable(fs, facts):
            continue
        backed = fs.over or fs
        raw = FAMILIES[backed.type].mounted_as(backed) == BLOCK_DEVICE
        for name in (name for name in backed.scratch if name in devices):
            yield _Use(fs.name, name, devices[name], journal=name not in backed.devices, raw=raw)


def _verdict(use: _Use, connection: BoxConnection, facts: BoxFacts) -> _Verdict:
    completed = connection.run(
        script_argv("guard.sh", use.device, "", ""), root=facts.rights.privileged, timeout_s=LOOK_TIMEOUT_S
    )
    if not completed.ok:
        refusal = read_refusal(completed.error_text)
        return _Verdict(use, refusal.reason, refusal=refusal)
    identity, content = read_permission(completed.error_text)
    return _Verdict(use, content, identity)


def _stop_at_refusals(verdicts: list[_Verdict], box: Box) -> None:
    refusals = [(verdict.use, verdict.refusal) for verdict in verdicts if verdict.refusal]
    if refusals:
        use, refusal = refusals[0]
        raise UnsafeError(
            f"{use.device} will not be formatted",
            where=f"filesystems.{use.filesystem} on box {box.name}, scratch device {use.name}",
            got=refusal.reason,
            allowed=ALLOWED,
            next_step=refusal.next_step(box, use.device),
            evidence="\n".join(verdict.text for verdict in verdicts) if len(verdicts) > 1 else "",
        )


def _rooms(sweep: Sweep, verdicts: list[_Verdict], connection: BoxConnection, facts: BoxFacts) -> dict[str, int]:
    """Return file system to how much may be written to it, of those on scratch devices: the smallest of several counts
    for each of them."""
    least: dict[str, int] = {}
    for use in (verdict.use for verdict in verdicts if not verdict.use.journal):
        least[use.filesystem] = min(_usable(use, connection, facts), least.get(use.filesystem, sys.maxsize))
    backed = {fs.name: fs.over or fs for fs in sweep.filesystems}
    _check_pools(sweep, least)
    return {name: top_bytes(backed[name], size) for name, size in least.items()}


def _check_pools(sweep: Sweep, sizes: Mapping[str, int]) -> None:
    """Raise PlanError for a pool on scratch devices that has no room for the snapshots of a state. `sizes`: what each
    device of a file system has, in bytes."""
    for fs, name in sweep.turns:
        state = sweep.states.get(name)
        if state and fs.name in sizes and (reason := thin.overflows(fs, state, sizes[fs.name])):
            raise PlanError(
                f"{fs.name} cannot be in the state {name}",
                where=f"filesystems.{fs.name}.state",
                got=reason,
                allowed="snapshots for which the pool has room",
            )


def _usable(use: _Use, connection: BoxConnection, facts: BoxFacts) -> int:
    completed = connection.run(("blockdev", "--getsize64", use.device), root=facts.rights.privileged)
    if not completed.ok:
        raise CommandError(f"the size of {use.device} cannot be read", evidence=completed.error_text)
    return int(completed.text) - MARK_BYTES if use.raw else int(int(completed.text) * USABLE)
