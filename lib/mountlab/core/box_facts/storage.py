"""Facts about storage: our directories, the disks, their links, settings and sensors."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from mountlab.core.box_facts.base import FactPart, Group, Listed, fact
from mountlab.core.box_facts.parsing import drop_unknown, lines
from mountlab.core.errors import BoxError
from mountlab.core.mountinfo import MountLine, mount_lines
from mountlab.core.units import KIB, SECTOR_BYTES

_LSBLK_COLUMNS = "NAME,PATH,TYPE,SIZE,ROTA,RO,MODEL,SERIAL,{mounts},PHY-SEC,LOG-SEC,SCHED,TRAN"
_BLOCK_DEVICES = rf"""
lsblk -J -b -o {_LSBLK_COLUMNS.format(mounts="MOUNTPOINTS")} ||
    lsblk -J -b -o {_LSBLK_COLUMNS.format(mounts="MOUNTPOINT")} ||
    for device in /sys/block/*; do
        [ -e "$device/size" ] || continue
        line=${{device##*/}}
        for file in size queue/rotational ro queue/physical_block_size queue/logical_block_size queue/scheduler \
            device/model device/serial; do
            line="$line	$(tr -d '\t' <"$device/$file")"
        done
        printf '%s\n' "$line"
    done
"""
_LINKS = r"""
for disk in /sys/block/*; do
    at=$(CDPATH='' cd -- "$disk/device" && pwd -P) || continue
    while [ "${at#/sys/devices/}" != "$at" ]; do
        [ ! -e "$at/max_link_speed" ] ||
            printf '%s\tpci\t%s\t%s\n' "${disk##*/}" "$(cat "$at/max_link_speed")" "$(cat "$at/max_link_width")"
        for file in "$at"/link*/ata_link/link*/sata_spd; do
            [ ! -e "$file" ] || printf '%s\tsata\t%s\t\n' "${disk##*/}" "$(cat "$file")"
        done
        [ ! -e "$at/busnum" ] || printf '%s\tusb\t%s\t\n' "${disk##*/}" "$(cat "$at/speed")"
        at=${at%/*}
    done
done
"""
_DISKS = r"""
count=0
for disk in /sys/block/*; do
    name=${disk##*/}
    case $name in loop*|ram*|zram*|sr*|fd*|nbd*|'*') continue ;; esac
    count=$((count + 1))
    [ "$count" -le 64 ] || break
    values "$name	" "$disk/device/firmware_rev" "$disk/device/rev" "$disk/queue/write_cache" \
        "$disk/queue/read_ahead_kb" "$disk/queue/nr_requests" "$disk/queue/wbt_lat_usec"
done
"""
_SENSORS = r"""
for sensor in /sys/class/hwmon/hwmon[0-9]*; do
    read -r kind <"$sensor/name" || continue
    at=$(CDPATH='' cd -- "$sensor/device" && pwd -P) || continue
    for drive in "$at" "$at"/nvme/nvme[0-9]* "$at"/block/*; do
        case $kind:${drive##*/} in nvme:nvme[0-9]*|drivetemp:sd*) ;; *) continue ;; esac
        printf '%s\tfile\t%s\n' "${drive##*/}" "$sensor/temp1_input"
        case $kind:$(PATH=$PATH:/usr/sbin:/sbin; command -v nvme || command -v smartctl) in
        nvme:*/nvme) printf '%s\tlog\tnvme smart-log -o json /dev/%s\n' "${drive##*/}" "${drive##*/}" ;;
        nvme:*/smartctl) printf '%s\tlog\tsmartctl -j -A /dev/%s\n' "${drive##*/}" "${drive##*/}" ;;
        esac
        values "${drive##*/}	" "$sensor/temp1_max" "$sensor/temp1_crit"
    done
done
"""
_PER_LANE = {2.5: 0.8, 5.0: 0.8, 8.0: 128 / 130, 16.0: 128 / 130, 32.0: 128 / 130, 64.0: 242 / 256}
"""The share of a PCI Express link's transfers (GT/s) that is data, by its encoding."""
PART_WORDS = {
    "size_bytes": "size", "read_only": "read-only", "mountpoints": "mounted on",
    "physical_sector_bytes": "physical sector", "logical_sector_bytes": "logical sector", "write_cache": "write cache",
    "read_ahead_bytes": "read-ahead",
    "requests": "requests in its queue", "writeback_throttling": "writeback throttling",
}  # fmt: skip
"""What the values of a block device and the settings of a disk are called."""


class BlockDevice(FactPart):
    """A disk, a partition, or a device that the kernel makes."""

    name: str = ""
    path: str = ""
    parent: str | None = None
    """Name of the disk that a partition is on."""
    type: str | None = None
    size_bytes: int | None = None
    rotational: bool | None = None
    read_only: bool | None = None
    model: str | None = None
    serial: str | None = None
    mountpoints: Listed[str] | None = None
    physical_sector_bytes: int | None = None
    logical_sector_bytes: int | None = None
    scheduler: str | None = None
    transport: str | None = None


class DiskLink(FactPart):
    """The slowest link between a disk and the processor: more than this no disk behind it can deliver."""

    bytes_per_s: float
    what: str
    """'PCI Express 8 GT/s x4'."""


class DiskSettings(FactPart):
    """The revision of a disk's firmware, and how its queue is set."""

    firmware: str | None = None
    write_cache: str | None = None
    read_ahead_bytes: int | None = None
    requests: int | None = None
    writeback_throttling: str | None = None
    """'75000 µs' or 'off'."""


class DriveSensor(FactPart):
    """Where a drive tells its temperature, and at which ones it warns and is in danger."""

    file: str | None = None
    log: str | None = None
    """The command that prints its log of health; only root may run it."""
    warning_celsius: float | None = None
    critical_celsius: float | None = None


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


def _fstype(text: str) -> str:
    return parse_holder(text).fstype


def parse_block_devices(text: str) -> tuple[BlockDevice, ...]:
    """Block devices from `lsblk -J -b`, or from lines of /sys where there is none. Partitions follow their disk."""
    if text.startswith("{"):
        return tuple(device for entry in json.loads(text)["blockdevices"] for device in _lsblk_device(entry, None))
    return tuple(_sys_device(line) for line in text.splitlines())


def _lsblk_device(entry: Mapping[str, Any], parent: str | None) -> list[BlockDevice]:
    # Older versions have one mount point, and write numbers and booleans as text.
    mountpoints = entry.get("mountpoints") or [entry.get("mountpoint")]
    device = BlockDevice(
        name=entry["name"],
        path=entry.get("path") or f"/dev/{entry['name']}",
        parent=parent,
        type=entry.get("type"),
        size_bytes=_optional_int(entry.get("size")),
        rotational=_optional_bool(entry.get("rota")),
        read_only=_optional_bool(entry.get("ro")),
        model=_optional_text(entry.get("model")),
        serial=_optional_text(entry.get("serial")),
        mountpoints=tuple(point for point in mountpoints if point),
        physical_sector_bytes=_optional_int(entry.get("phy-sec")),
        logical_sector_bytes=_optional_int(entry.get("log-sec")),
        scheduler=_optional_text(entry.get("sched")),
        transport=_optional_text(entry.get("tran")),
    )
    return [device, *(child for below in entry.get("children", []) for child in _lsblk_device(below, device.name))]


def _sys_device(line: str) -> BlockDevice:
    name, size, rotational, read_only, physical, logical, scheduler, model, serial = line.split("\t")
    in_use = re.search(r"\[([^]]+)\]", scheduler)
    size_bytes = _optional_int(size)
    return BlockDevice(
        name=name,
        path=f"/dev/{name.replace('!', '/')}",
        parent=None,
        type="loop" if name.startswith("loop") else "disk",
        size_bytes=None if size_bytes is None else size_bytes * SECTOR_BYTES,
        rotational=_optional_bool(rotational),
        read_only=_optional_bool(read_only),
        model=_optional_text(model),
        serial=_optional_text(serial),
        mountpoints=None,
        physical_sector_bytes=_optional_int(physical),
        logical_sector_bytes=_optional_int(logical),
        scheduler=in_use[1] if in_use else _optional_text(scheduler),
        transport=None,
    )


def _optional_int(value: object) -> int | None:
    return None if value in (None, "") else int(str(value))


def _optional_bool(value: object) -> bool | None:
    return {"1": True, "0": False, "true": True, "false": False}.get(str(value).lower())


def _optional_text(value: object) -> str | None:
    return str(value).strip() or None if value is not None else None


def parse_links(text: str) -> dict[str, DiskLink]:
    """Return disk to its slowest link, as far as /sys tells. Lines are disk, kind (pci, sata, usb), speed and width."""
    links: dict[str, DiskLink] = {}
    for line in text.splitlines():
        disk, kind, speed, width = line.split("\t")
        link = _link(kind, speed, width)
        if link and (disk not in links or link.bytes_per_s < links[disk].bytes_per_s):
            links[disk] = link
    if not links:
        raise ValueError("no link that tells its speed")
    return links


def _link(kind: str, speed: str, width: str) -> DiskLink | None:
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
    return DiskLink(bytes_per_s=bits_per_s / 8, what=what)


def _celsius(value: str) -> float:
    return int(value) / 1000


_OF_A_SENSOR: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "file": ("file", str),
    "log": ("log", str),
    "temp1_max": ("warning_celsius", _celsius),
    "temp1_crit": ("critical_celsius", _celsius),
}
_OF_A_DISK: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "firmware_rev": ("firmware", str),
    "rev": ("firmware", str),
    "write_cache": ("write_cache", str),
    "read_ahead_kb": ("read_ahead_bytes", lambda value: int(value) * KIB),
    "nr_requests": ("requests", int),
    "wbt_lat_usec": ("writeback_throttling", lambda value: f"{value} µs" if value != "0" else "off"),
}
"""A file of the kernel's, to the key of its value and what reads it."""


def parse_sensors(text: str) -> dict[str, DriveSensor]:
    """Return the sensor of each drive."""
    return {drive: DriveSensor(**values) for drive, values in _by_disk(text, _OF_A_SENSOR).items()}


def parse_disks(text: str) -> dict[str, DiskSettings]:
    """Return the settings of each disk."""
    return {disk: DiskSettings(**values) for disk, values in _by_disk(text, _OF_A_DISK).items()}


def _by_disk(text: str, kinds: Mapping[str, tuple[str, Callable[[str], Any]]]) -> dict[str, dict[str, Any]]:
    disks: dict[str, dict[str, Any]] = {}
    for name, value in lines(text):
        disk, _, file = name.partition("\t")
        key, read = kinds.get(file, ("", str))
        if key and value:
            disks.setdefault(disk, {})[key] = read(value)
    return drop_unknown(disks)


class StorageFacts(Group):
    """Our directories and the disks."""

    section: ClassVar = "Storage"
    mount_root: str | None = fact("mount root", 'printf "%s" "$mount_root"', section="Mountlab's own")
    mount_root_fstype: str | None = fact(
        "file system of the mount root", 'holder "$mount_root"', _fstype, area="device", rank=20
    )
    mount_root_source: str | None = fact("device of the mount root", 'holder "$mount_root"',
        lambda text: parse_holder(text).source, area="device", rank=10)  # fmt: skip
    mount_root_free_bytes: int | None = fact("free below the mount root", 'free_kib "$mount_root"', parse_free)
    output_root: str | None = fact("output root", 'printf "%s" "$output_root"', section="Mountlab's own")
    output_root_fstype: str | None = fact("file system of the output root", 'holder "$output_root"', _fstype)
    output_root_free_bytes: int | None = fact("free below the output root", 'free_kib "$output_root"', parse_free)
    links: Mapping[str, DiskLink] | None = fact(
        "links to the disks", _LINKS, parse_links, key="disk_links", area="device", rank=30
    )
    block_devices: Listed[BlockDevice] | None = fact(
        "block devices", _BLOCK_DEVICES, parse_block_devices, parts=PART_WORDS
    )
    settings: Mapping[str, DiskSettings] | None = fact(
        "settings of the disks", _DISKS, parse_disks, key="disk_settings", parts=PART_WORDS
    )
    sensors: Mapping[str, DriveSensor] | None = fact("temperatures of the drives", _SENSORS, parse_sensors,
        key="drive_sensors", parts={"file": "read from", "warning_celsius": "warns at °C",
        "critical_celsius": "critical at °C"})  # fmt: skip

    @property
    def roots(self) -> tuple[str, str]:
        """(mount_root, output_root). Raises BoxError where they are unknown: nothing can be made on the box then."""
        if self.mount_root is None or self.output_root is None:
            raise BoxError("the box's directories are unknown", got=f"{self.mount_root} and {self.output_root}")
        return self.mount_root, self.output_root

    @property
    def sensor_files(self) -> list[str]:
        """The files in which drives tell their temperature."""
        return [sensor.file for sensor in (self.sensors or {}).values() if sensor.file is not None]

    def disk_of(self, name: str) -> BlockDevice | None:
        """Return the disk with this name, or the one that the partition is on; None where it is unknown."""
        devices = {device.name: device for device in self.block_devices or ()}
        device = devices.get(name)
        return devices.get(device.parent or "") if device and device.type == "part" else device
