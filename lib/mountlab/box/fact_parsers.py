"""What the box's programs print about it, turned into values."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from mountlab.core.units import KIB, SECTOR_BYTES
from mountlab.filesystems.evidence import MountLine, mount_lines


def key_values(text: str, separator: str) -> dict[str, str]:
    """'key: value' lines; the first of each key."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        key, between, value = line.partition(separator)
        if between:
            found.setdefault(key.strip(), value.strip())
    return found


def parse_os(text: str) -> str:
    """Return the name in /etc/os-release, unquoted."""
    values = key_values(text, "=")
    for key in ("PRETTY_NAME", "NAME", "ID"):
        if key in values:
            return " ".join(shlex.split(values[key]))
    raise ValueError("no name")


def parse_cpu_model(text: str) -> str:
    """Return the processor's name from `lscpu` or /proc/cpuinfo."""
    values = key_values(text, ":")
    for key in ("Model name", "model name", "cpu model", "cpu", "Model", "Hardware"):
        if values.get(key):
            return values[key]
    raise ValueError("no model name")


def meminfo(key: str) -> Callable[[str], int]:
    """Return a parser of one line of /proc/meminfo, in bytes (its kB are KiB)."""

    def parse(text: str) -> int:
        number, unit = key_values(text, ":").get(key, "").split()
        if unit != "kB":
            raise ValueError(unit)
        return int(number) * KIB

    return parse


def parse_free(text: str) -> int:
    """Available bytes from `df -P -k`. The last line counts from its end, since a device name may hold blanks."""
    return int(text.splitlines()[-1].split("%")[0].split()[-2]) * KIB


def parse_holder(text: str) -> MountLine:
    """Return the mount that holds the directory in the first line; the others are mountinfo."""
    directory, _, table = text.partition("\n")
    holding = [m for m in mount_lines(table) if f"{directory}/".startswith(f"{m.mountpoint.rstrip('/')}/")]
    if not holding:
        raise ValueError(directory)
    longest = max(len(mount.mountpoint) for mount in holding)
    return [mount for mount in holding if len(mount.mountpoint) == longest][-1]  # a later mount covers an earlier one


def parse_virtualization(text: str) -> str:
    """'none', the kind of machine or container, or 'unknown kind' where only a hypervisor's flag is seen."""
    values = key_values(text, "=")
    if values.get("detected"):
        return values["detected"]
    maker = " ".join(values[key] for key in ("vendor", "product") if values.get(key))
    machine = (maker or "unknown kind") if values.get("hypervisor") else ""
    if values.get("container"):
        return f"{values['container']} on a virtual machine ({machine})" if machine else values["container"]
    if machine:
        return machine
    if values.get("flags"):  # x86 names its hypervisor among the flags; other processors tell nothing either way
        return "none"
    raise ValueError("no evidence")


def parse_emulated(text: str) -> bool:
    """Return whether the processor is a program: Mountlab's own virtual box says so, QEMU's processor by its name, and
    systemd finds 'qemu' where there is a hypervisor that is not KVM."""
    values = key_values(text, "=")
    if values.get("accelerator"):
        return values["accelerator"] == "tcg"
    if values.get("hypervisor") and values.get("detected") == "qemu":
        return True
    if values.get("model"):
        return "QEMU TCG" in values["model"]
    raise ValueError("no evidence")


def parse_power(text: str) -> str:
    """'mains', 'battery (64 %)' or 'no battery', from the power supplies that /sys/class/power_supply lists."""
    supplies = [line.split("\t") for line in text.splitlines() if line.startswith("supply\t")]
    own = [(kind, online, status, share) for _, kind, scope, online, status, share in supplies if scope != "Device"]
    if any(kind != "Battery" and online == "1" for kind, online, _, _ in own):
        return "mains"
    batteries = [(status, share) for kind, _, status, share in own if kind == "Battery"]
    if not batteries:
        return "no battery"
    discharging = [share for status, share in batteries if status == "Discharging"]
    return f"battery ({discharging[0]} %)" if discharging else "mains"


def parse_used_swap(text: str) -> int:
    """Return bytes of swap that are in use, from /proc/meminfo."""
    return meminfo("SwapTotal")(text) - meminfo("SwapFree")(text)


_PER_LANE = {2.5: 0.8, 5.0: 0.8, 8.0: 128 / 130, 16.0: 128 / 130, 32.0: 128 / 130, 64.0: 242 / 256}
"""The share of a PCI Express link's transfers (GT/s) that is data, by its encoding."""


def parse_links(text: str) -> dict[str, dict[str, Any]]:
    """{disk: {'bytes_per_s', 'what'}}: the slowest link between each disk and the processor, as far as /sys tells.

    More than this no disk behind it can deliver. Lines are disk, kind (pci, sata, usb), speed and width.
    """
    found: dict[str, dict[str, Any]] = {}
    for line in text.splitlines():
        disk, kind, speed, width = line.split("\t")
        link = _link(kind, speed, width)
        if link and (disk not in found or link["bytes_per_s"] < found[disk]["bytes_per_s"]):
            found[disk] = link
    if not found:
        raise ValueError("no link that tells its speed")
    return found


def _link(kind: str, speed: str, width: str) -> dict[str, Any] | None:
    """Return one link; None where it does not tell its speed."""
    number = re.match(r"\d+(\.\d+)?", speed)
    if not number or (kind == "pci" and not (width.isdecimal() and 0 < int(width) <= 32)):
        return None
    rate, lanes = float(number[0]), int(width) if kind == "pci" else 1
    if kind == "pci":
        bits_per_s, what = rate * 1e9 * _PER_LANE.get(rate, 1.0) * lanes, f"PCI Express {rate:g} GT/s x{lanes}"
    elif kind == "sata":
        bits_per_s, what = rate * 1e9 * 0.8, f"SATA {rate:g} Gb/s"
    else:  # up to 5 Gb/s ten bits carry eight
        bits_per_s, what = rate * 1e6 * (0.8 if rate <= 5000 else 1.0), f"USB {rate:g} Mb/s"
    return {"bytes_per_s": bits_per_s / 8, "what": what}


def parse_words(text: str) -> list[str]:
    return sorted(set(text.split()))


SYS_ADMIN = 21
"""The bit of CAP_SYS_ADMIN in a set of capabilities (capabilities(7))."""


def parse_may_mount(text: str) -> bool:
    """Return whether the capabilities that processes of the box can have at most, in hexadecimal, include mounting."""
    return bool(int(text, 16) >> SYS_ADMIN & 1)


def parse_governor(text: str) -> str:
    """Return the governor of all processors, or all that are in use."""
    return ", ".join(parse_words(text))


def parse_block_devices(text: str) -> list[dict[str, Any]]:
    """Block devices from `lsblk -J -b`, or from lines of /sys where there is none. Partitions follow their disk."""
    if text.startswith("{"):
        return [device for entry in json.loads(text)["blockdevices"] for device in _lsblk_device(entry, None)]
    return [_sys_device(line) for line in text.splitlines()]


def _lsblk_device(entry: Mapping[str, Any], parent: str | None) -> list[dict[str, Any]]:
    # Older versions have one mount point, and write numbers and booleans as text.
    mountpoints = entry.get("mountpoints") or [entry.get("mountpoint")]
    device = {
        "name": entry["name"],
        "path": entry.get("path") or f"/dev/{entry['name']}",
        "parent": parent,
        "type": entry.get("type"),
        "size_bytes": _optional_int(entry.get("size")),
        "rotational": _optional_bool(entry.get("rota")),
        "read_only": _optional_bool(entry.get("ro")),
        "model": _optional_text(entry.get("model")),
        "serial": _optional_text(entry.get("serial")),
        "mountpoints": [point for point in mountpoints if point],
        "physical_sector_bytes": _optional_int(entry.get("phy-sec")),
        "logical_sector_bytes": _optional_int(entry.get("log-sec")),
        "scheduler": _optional_text(entry.get("sched")),
        "transport": _optional_text(entry.get("tran")),
    }
    children = [child for below in entry.get("children", []) for child in _lsblk_device(below, device["name"])]
    return [device, *children]


def _sys_device(line: str) -> dict[str, Any]:
    name, size, rotational, read_only, physical, logical, scheduler, model, serial = line.split("\t")
    in_use = re.search(r"\[([^]]+)\]", scheduler)
    size_bytes = _optional_int(size)
    return {
        "name": name,
        "path": f"/dev/{name.replace('!', '/')}",
        "parent": None,
        "type": "loop" if name.startswith("loop") else "disk",
        "size_bytes": None if size_bytes is None else size_bytes * SECTOR_BYTES,
        "rotational": _optional_bool(rotational),
        "read_only": _optional_bool(read_only),
        "model": _optional_text(model),
        "serial": _optional_text(serial),
        "mountpoints": None,
        "physical_sector_bytes": _optional_int(physical),
        "logical_sector_bytes": _optional_int(logical),
        "scheduler": in_use[1] if in_use else _optional_text(scheduler),
        "transport": None,
    }


def _optional_int(value: object) -> int | None:
    return None if value in (None, "") else int(str(value))


def _optional_bool(value: object) -> bool | None:
    return {"1": True, "0": False, "true": True, "false": False}.get(str(value).lower())


def _optional_text(value: object) -> str | None:
    return str(value).strip() or None if value is not None else None


def parse_programs(text: str) -> dict[str, dict[str, str | None]]:
    """{name: {'path', 'version'}} of the programs that were found; a version that the program does not tell is None."""
    found: dict[str, dict[str, str | None]] = {}
    for line in text.splitlines():
        if line.strip():
            name, path, version = line.split("\t", 2)
            found[name] = {"path": path, "version": version.strip() or None}
    return found
