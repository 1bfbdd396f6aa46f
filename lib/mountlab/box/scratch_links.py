"""The stable names of scratch devices: one that is not on the box is said with the names that are there."""

from __future__ import annotations

from mountlab.box.connection import BoxConnection, checked
from mountlab.core.box_facts import BoxFacts
from mountlab.core.errors import PlanError
from mountlab.core.model import Sweep
from mountlab.core.units import SECTOR_BYTES, format_bytes
from mountlab.filesystems import FAMILIES

SCRIPT = r"""
for link; do
    if [ -e "$link" ]; then :
    elif [ -L "$link" ]; then printf 'missing\t%s\tleads to %s, which is not there\n' "$link" "$(readlink -- "$link")"
    else printf 'missing\t%s\tdoes not exist\n' "$link"
    fi
done
for link in /dev/disk/by-id/*; do
    [ -b "$link" ] || continue
    device=$(readlink -f -- "$link")
    printf 'there\t%s\t%s\t%s\n' "$link" "$device" "$(cat "/sys/class/block/${device##*/}/size")"
done
"""
MOST = 12


def check_links(sweep: Sweep, connection: BoxConnection, facts: BoxFacts) -> None:
    """Raise PlanError for a scratch device of the sweep whose name is not on the box."""
    wanted = _wanted(sweep, connection, facts)
    if not wanted:
        return
    argv = ("sh", "-c", SCRIPT, "mountlab-links", *wanted.values())
    lines = checked(connection, argv, what="the names of the box's devices could not be read").text.splitlines()
    rows = [line.split("\t") for line in lines]
    missing = {words[1]: words[2] for words in rows if words[0] == "missing"}
    there = [_device_text(words) for words in rows if words[0] == "there"]
    for name, device in wanted.items():
        if device in missing:
            raise _absent(connection.box.name, name, f"{device} {missing[device]}", there)


def _wanted(sweep: Sweep, connection: BoxConnection, facts: BoxFacts) -> dict[str, str]:
    """Map label in the box file to the name of the device, for the scratch devices of the sweep."""
    devices = connection.box.block_devices
    filesystems = [fs.over or fs for fs in sweep.filesystems if not FAMILIES[fs.type].unavailable(fs, facts)]
    names = [name for fs in filesystems for name in (fs.device, fs.journal_device)]
    return {name: devices[name] for name in names if name in devices}


def _device_text(words: list[str]) -> str:
    size = f", {format_bytes(float(int(words[3]) * SECTOR_BYTES))}" if words[3].isdecimal() else ""
    return f"{words[1]} = {words[2]}{size}"


def _absent(box: str, name: str, got: str, there: list[str]) -> PlanError:
    more = f"; {len(there) - MOST} more" if len(there) > MOST else ""
    return PlanError(
        "the box has no device of this name",
        where=f"params/boxes/{box}.yml: scratch.{name}",
        got=got,
        allowed="; ".join(there[:MOST]) + more if there else "a name in /dev/disk/by-id, and the box has none there",
        next_step="write the name of the disk that is meant, or attach it"
        if there
        else "attach the disk; a box without udev makes no such names, and neither does a disk without a serial number",
    )
