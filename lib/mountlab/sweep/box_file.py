"""A box file: where the machine under test is, and what of it may be used."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field

from mountlab.core.errors import ParameterError
from mountlab.core.model import Box, ScratchDevice
from mountlab.core.units import TimeText, parse_seconds
from mountlab.core.virtual import VM_DISKS, VM_KERNELS
from mountlab.filesystems.pmfs import PREFIX as MEMORY
from mountlab.sweep.design_entry import LONGEST_TRIAL_S
from mountlab.sweep.filesystem_entry import BOX_PATH
from mountlab.sweep.validated import AS_TEXT, File, check_text, validated

# Persistent memory is numbered by its region, in the order of the firmware, and not by who was found first.
_STABLE_ID = re.compile(rf"/dev/disk/by-[a-z]+/[A-Za-z0-9_.:+-]+|/dev/pmem\d+(\.\d+)?s?|{MEMORY}0x[0-9a-fA-F]{{1,16}}")
_HOST = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.+-]{0,63}@)?\[?[A-Za-z0-9_:][A-Za-z0-9_.:%-]{0,253}\]?(:\d{1,5})?\Z")
LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
"""What boxes that share a queue may be called."""
_USER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.@\\+-]{0,63}\Z")

_PLAIN = "letters, digits, '_', '.' and '-', the first of them a letter or a digit"
_LABELS = f"{_PLAIN}, 40 at most"
_DIRECTORIES = "an absolute path of two parts or more, in plain characters, such as /srv/mountlab"
_DEVICES = (
    "/dev/disk/by-id/...: names such as /dev/sdb move between disks from boot to boot (/dev/pmem0 does not); "
    "memory:0x... for pmfs"
)
MIN_GRACE_S = 5.0
"""Shorter than this, what holds the lease on the box could not be heard in time."""


class BoxFile(File):
    """A file of params/boxes/."""

    host: str = ""
    """An alias of `~/.ssh/config`, a DNS name or an address. Either this or `embedded`."""
    user: str | None = None
    """Who logs in. Without it what `~/.ssh/config` says."""
    port: Annotated[int, Field(ge=1, le=65535)] | None = None
    """Without it what `~/.ssh/config` says, or 22."""
    embedded: Literal["loopback", "vm"] | None = None
    """A box that Mountlab starts by itself: this machine through a private sshd on loopback, or a virtual machine."""
    become: Literal["auto", "root", "sudo", "helper", "none"] = "auto"
    """How to become root: `auto` takes root, or sudo where it asks for no password; `helper` is a plain user, for whom
    a program on the box does what it permits; `none` measures directories only."""
    mount_root: str | None = None
    """A directory on the box below which all is made and mounted: new, empty (a mount point too), or made by Mountlab.
    Nothing else may lie in it. Without it `/var/tmp/mountlab-USER`."""
    output_root: str | None = None
    """A directory, best in memory, for what the tools print; the same holds for it. A second run that shares one of the
    two is refused. Without it `/dev/shm/mountlab-USER`."""
    scratch: dict[str, str] | None = None
    """Whole block devices that may be formatted, once `box claim` has claimed them: your name for each, and its stable
    id. All data on them is lost."""
    disks: Annotated[int, Field(ge=0, le=len(VM_DISKS))] = 0
    """Only with `embedded: vm`: further scratch disks of 1 GiB, empty at every start. `disk1`, `disk2` and so on are
    their names."""
    kernel: Annotated[str, AS_TEXT] | None = None
    """Only with `embedded: vm`: the release of its kernel, a full one of Debian: 6.1, 6.12 or 7.2. Without it the small
    kernel for clouds of this machine's own release. All else in the box stays the same."""
    with_: Annotated[list[Literal["zfs"]] | None, Field(alias="with")] = None
    """Only with `embedded: vm`: `[zfs]` for ZFS. `box prepare` builds its kernel modules once on your machine: its
    licence keeps Debian and Mountlab from shipping them."""
    grace: TimeText = "10min"
    """How long a lost connection is waited for. After that the run ends and can be resumed, and the box, which hears
    nothing of us either, ends what runs, unmounts and cleans up by itself."""
    label: str | None = None
    """A name that boxes share which may do each other's work: with `box: label:NAME` an item of a batch goes to
    whichever of them is free."""


def parse_box(raw: Mapping[str, object], *, name: str, where: str) -> Box:
    """Return a box file's mapping, checked."""
    file = validated(BoxFile, raw, where)
    if bool(file.host) == bool(file.embedded):
        raise ParameterError(
            "a box needs a host",
            where=f"{where}: host",
            got="both host and embedded" if file.host else "nothing",
            allowed="host: an alias of your ssh configuration, or embedded: loopback or vm",
        )
    _check_address(file, where)
    _check_virtual(file, where)
    if file.label is not None:
        check_text(file.label, LABEL, "not a label of boxes", f"{where}: label", _LABELS)
    for key, path in (("mount_root", file.mount_root), ("output_root", file.output_root)):
        if path is not None:
            check_text(path, BOX_PATH, "not a directory for Mountlab", f"{where}: {key}", _DIRECTORIES)
    for label, device in (file.scratch or {}).items():
        what = "a scratch device must be named by a stable id"
        check_text(device, _STABLE_ID, what, f"{where}: scratch.{label}", _DEVICES)
    grace_s = parse_seconds(file.grace, where=f"{where}: grace")
    if not MIN_GRACE_S <= grace_s <= LONGEST_TRIAL_S:
        raise ParameterError(
            "too short: a connection that stalls for a moment would end the run"
            if grace_s < MIN_GRACE_S
            else "too long: a box that is lost would never be cleaned",
            where=f"{where}: grace",
            got=file.grace,
            allowed=f"{MIN_GRACE_S:g}s to 168h",
        )
    scratch = tuple(ScratchDevice(name=label, device=device) for label, device in _scratch(file, where).items())
    given = file.model_dump(exclude={"scratch", "disks", "with_", "grace"})
    return Box(name=name, scratch=scratch, grace_s=grace_s, extras=tuple(dict.fromkeys(file.with_ or ())), **given)


def _scratch(file: BoxFile, where: str) -> dict[str, str]:
    """Return the stable name of each scratch device, those that `disks` adds last."""
    if file.disks and file.embedded != "vm":
        raise ParameterError(
            "only the virtual box can be given further disks",
            where=f"{where}: disks",
            got=str(file.disks),
            allowed="embedded: vm beside it; any other box names its devices under scratch",
        )
    scratch, disks = file.scratch or {}, dict(list(VM_DISKS.items())[: file.disks])
    for label, device in scratch.items():
        if disks.get(label, device) != device:
            raise ParameterError(
                "the name belongs to a disk that `disks` adds",
                where=f"{where}: scratch.{label}",
                got=device,
                allowed=f"another name, or {disks[label]}",
            )
    return scratch | disks


def _check_virtual(file: BoxFile, where: str) -> None:
    """Raise ParameterError for a kernel that no virtual box has, and for one of another box."""
    for key, value in (("kernel", file.kernel), ("with", ", ".join(file.with_ or ()))):
        if value and file.embedded != "vm":
            raise ParameterError(
                "only the virtual box can be given that",
                where=f"{where}: {key}",
                got=value,
                allowed="embedded: vm beside it; any other box has the kernel that it runs",
            )
    if file.kernel is not None and file.kernel not in VM_KERNELS:
        raise ParameterError(
            "no kernel for the virtual box", where=f"{where}: kernel", got=file.kernel, allowed=", ".join(VM_KERNELS)
        )


def _check_address(file: BoxFile, where: str) -> None:
    """Raise ParameterError for what ssh would take for an option, a shell for a command, or people for a password."""
    for key, text, shape in (("host", file.host, _HOST), ("user", file.user or "", _USER)):
        if "@" in text and ":" in text.rpartition("@")[0]:
            raise ParameterError(
                "this looks like a password, and none belongs into a parameter file",
                where=f"{where}: {key}",
                got="NAME:...@HOST (not shown)",
                allowed="a name alone: keys and the agent of ssh open the door",
                next_step="change that password if the file has been anywhere else; then ssh-copy-id",
            )
        if text:
            check_text(text, shape, f"not a {key}", f"{where}: {key}", _PLAIN)
