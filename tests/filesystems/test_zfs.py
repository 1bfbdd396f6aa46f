"""Pools of ZFS: what a sweep may ask for, the exact words, and what zpool and zfs show of it."""

from __future__ import annotations

from typing import Any

import pytest
from mountlab.core.errors import ParameterError
from mountlab.core.model import Filesystem
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.vdevs import shown_layout
from mountlab.filesystems.zfs import POOL_FILE, commands, pool_name, pool_trouble
from mountlab.runner.conformance.filesystems import PLACE, shortened
from mountlab.sweep.filesystem_entry import FilesystemFile, read_filesystem
from rows import every_row

MIB = 1024**2
STATUS = """  pool: mountlab-1
 state: ONLINE
config:

\tNAME                   STATE     READ WRITE CKSUM
\tmountlab-1             ONLINE       0     0     0
\t  mirror-0             ONLINE       0     0     0
\t    /dev/mountlab-1/1  ONLINE       0     0     0
\t    /dev/mountlab-1/2  ONLINE       0     0     0
\tspecial\t
\t  mirror-2             ONLINE       0     0     0
\t    /dev/mountlab-1/5  ONLINE       0     0     0
\t    /dev/mountlab-1/6  ONLINE       0     0     0
\tlogs\t
\t  /dev/mountlab-1/3    ONLINE       0     0     0
\tcache
\t  /dev/mountlab-1/4    ONLINE       0     0     0

errors: No known data errors
"""


def zfs(**keys: Any) -> Filesystem:
    entry = {"type": "zfs", **keys} if "device" in keys else {"type": "zfs", "image": "256MiB", **keys}
    return read_filesystem("z", FilesystemFile(**entry), "z")


def made_with(fs: Filesystem) -> str:
    (line,) = (text for step in FAMILIES["zfs"].steps(fs, PLACE) if "make" in (text := shortened(step.argv)).split())
    return line.partition(" images ")[2]


def test_the_state_of_its_own_pool_is_read_around_each_trial() -> None:
    assert FAMILIES["zfs"].state_commands(PLACE) == (("zpool", "status", pool_name(PLACE)),)


def test_pool_dataset_and_layout_are_three_parts_of_one_command() -> None:
    vdevs = [{"mirror": [1, 2]}, {"log": [5]}, {"mirror": [3, 4]}]
    fs = zfs(members=5, vdevs=vdevs, options=["recordsize=8K"], mkfs=["-o", "ashift=12"])
    devices = "{device} {member2} {member3} {member4} {member5}"
    assert made_with(fs) == f"-o ashift=12 + recordsize=8K + mirror 1 2 mirror 3 4 log 5 -- {devices}"
    assert made_with(zfs(members=2)) == "+ + 1 2 -- {device} {member2}", "without vdevs all are striped"


@every_row(
    ("keys", "what", "allowed"),
    [
        ({"members": 2, "vdevs": [{"mirror": [1, 3]}]}, "no such device", "1, 2"),
        ({"members": 2, "vdevs": [{"mirror": [1, 1]}]}, "in one part of it", "1, 2"),
        ({"members": 2, "vdevs": [[1]]}, "in one part of it", "1, 2"),
        ({"members": 2, "vdevs": [{"log": [1, 2]}]}, "needs devices for data", "mirror"),
        ({"members": 2, "vdevs": [{"raidz2": [1, 2]}]}, "raidz2 takes 3 devices or more", "3 or more"),
        ({"vdevs": [{"raid5": [1]}]}, "unknown part of a pool", "raidz1"),
        ({"members": 2, "vdevs": [{"cache": {"mirror": [1, 2]}}]}, "not what cache can lie on", "a list"),
        ({"members": 2, "vdevs": [{"mirror": [1, 2], "log": [1]}]}, "is one part of the pool", "one key"),
        ({"vdevs": [{"mirror": "1"}]}, "lists its devices", "[a, b]"),
        ({"device": ["a", "b"], "vdevs": [{"mirror": [1, 2]}]}, "no such device", "a, b"),
        ({"options": ["recordsize=9K"]}, "not a value for recordsize", "a power of two from 512 to 16M"),
        ({"options": ["compression=best"]}, "not a value for compression", "zstd-1 to zstd-19"),
        ({"options": ["noatime"]}, "not a property of a dataset", "atime"),
        ({"options": ["mountpoint=legacy"]}, "Mountlab sets mountpoint itself", "recordsize"),
        ({"mkfs": ["-o", "cachefile=none"]}, "Mountlab sets cachefile itself", "ashift"),
        ({"mkfs": ["-O", "canmount=off"]}, "Mountlab sets canmount itself", "recordsize"),
        ({"mkfs": ["-o", "ashift=8"]}, "not a value for ashift", "9 to 16"),
        ({"mkfs": ["-O", "encryption=on"]}, "gives a key to the dataset", "options: [encryption=on]"),
        ({"options": ["encryption=aes-512-gcm"]}, "not a value for encryption", "aes-256-gcm"),
        ({"options": ["helper=x"]}, "not a property of a dataset", "encryption"),
        ({"mkfs": ["-f"]}, "not options for zpool create", "-O PROPERTY=VALUE"),
        ({"image": "32MiB"}, "too small for zfs", "64.0 MiB"),
        ({"arc": "8MiB"}, "too small for the cache", "64.0 MiB"),
    ],
)
def test_what_cannot_be_is_refused_with_what_is_allowed(keys: dict[str, Any], what: str, allowed: str) -> None:
    with pytest.raises(ParameterError) as refused:
        zfs(**keys)
    assert what in refused.value.what
    assert allowed in refused.value.allowed


@every_row(
    ("option", "key"),
    [("encryption=on", ["-o", "keyformat=passphrase"]), ("encryption=off", []), ("atime=off", [])],
)
def test_by_hand_an_encrypted_dataset_asks_for_a_passphrase(option: str, key: list[str]) -> None:
    _, dataset = commands(zfs(options=[option]), ("/dev/sda",))
    assert [*dataset] == ["zfs", "create", "-o", "mountpoint=legacy", *key, "-o", option, "POOL/data"]


def test_what_belongs_to_the_pool_is_said_where_the_dataset_is_given_it() -> None:
    with pytest.raises(ParameterError, match=r"mkfs: \[-o, NAME=VALUE\]"):
        zfs(options=["ashift=12"])


@every_row(
    ("keys", "least", "most"),
    [
        ({"members": 4}, 500, 4 * 256),
        ({"members": 2, "vdevs": [{"mirror": [1, 2]}]}, 64, 256),
        ({"members": 4, "vdevs": [{"raidz1": [1, 2, 3, 4]}]}, 300, 3 * 256),
        ({"members": 3, "vdevs": [[1], {"log": [2]}, {"cache": [3]}]}, 64, 256),
        ({"members": 4, "vdevs": [{"raidz1": [1, 2, 3, 4]}], "options": ["recordsize=8K"]}, 200, 2 * 256),
    ],
)
def test_it_holds_less_than_its_devices_and_parity_leave(keys: dict[str, Any], least: int, most: int) -> None:
    capacity = FAMILIES["zfs"].capacity_bytes(zfs(**keys))
    assert capacity is not None
    assert least * MIB < capacity < most * MIB


def test_the_layout_that_zpool_shows_is_read() -> None:
    assert shown_layout(STATUS) == [
        ("", "mirror", frozenset("12")),
        ("special", "mirror", frozenset("56")),
        ("log", "stripe", frozenset("3")),
        ("cache", "stripe", frozenset("4")),
    ]


REPORT = {
    "dataset": "p/data\trecordsize\t8192\tlocal\np/data\tatime\ton\tdefault\np/data\tcompression\tgzip\tlocal\n"
    "p/data\tspecial_small_blocks\t4096\tlocal\n"
    "p/data\tencryption\taes-256-gcm\t-\n",
    "pool": "p\tashift\t12\tlocal\np\tfeature@lz4_compress\tactive\tlocal\np\tfeature@zstd_compress\tenabled\tlocal\n",
    "status": STATUS,
    "arc": "c_max 134217728\n",
}


def judged(keys: dict[str, Any]) -> dict[str, str]:
    text = "".join(f"==> {heading} <==\n{body}\n" for heading, body in REPORT.items())
    rows = FAMILIES["zfs"].judge(zfs(**keys), {POOL_FILE: text})
    assert rows is not None
    return {row.option: row.state for row in rows}


@every_row(
    ("keys", "option", "state"),
    [
        ({"options": ["recordsize=8K"]}, "recordsize=8K", "in effect"),
        ({"options": ["compression=gzip-6"]}, "compression=gzip-6", "in effect"),
        ({"options": ["compression=lz4"]}, "compression=lz4", "changed"),
        ({"options": ["atime=off"]}, "atime=off", "changed"),
        ({"options": ["sync=always"]}, "sync=always", "not visible"),
        ({"options": ["encryption=on"]}, "encryption=on", "in effect"),
        ({"options": ["encryption=aes-256-gcm"]}, "encryption=aes-256-gcm", "in effect"),
        ({"options": ["encryption=aes-128-ccm"]}, "encryption=aes-128-ccm", "changed"),
        ({"options": ["encryption=off"]}, "encryption=off", "changed"),
        ({"options": ["special_small_blocks=4K"]}, "special_small_blocks=4K", "without effect"),
        ({"mkfs": ["-o", "ashift=12"]}, "-o ashift=12", "in effect"),
        ({"mkfs": ["-o", "ashift=9"]}, "-o ashift=9", "changed"),
        ({"mkfs": ["-o", "feature@lz4_compress=enabled"]}, "-o feature@lz4_compress=enabled", "in effect"),
        ({"mkfs": ["-o", "feature@zstd_compress=disabled"]}, "-o feature@zstd_compress=disabled", "changed"),
        ({"mkfs": ["-O", "recordsize=8K"]}, "-O recordsize=8K", "in effect"),
        ({"mkfs": ["-O", "recordsize=8K"], "options": ["recordsize=8K"]}, "-O recordsize=8K", "ignored"),
        ({"mkfs": ["-d"]}, "-d", "changed"),
        ({"members": 2, "vdevs": [{"mirror": [1, 2]}]}, "vdev mirror [1, 2]", "in effect"),
        ({"members": 2, "vdevs": [{"raidz1": [1, 2]}]}, "vdev raidz1 [1, 2]", "changed"),
        ({"arc": "128MiB"}, "arc: 134217728", "in effect"),
        ({"arc": "64MiB"}, "arc: 67108864", "changed"),
    ],
)
def test_what_was_asked_is_compared_with_what_zfs_shows(keys: dict[str, Any], option: str, state: str) -> None:
    assert judged(keys)[option] == state


@every_row(
    ("status", "trouble"),
    [
        (STATUS, ""),
        (STATUS.replace(" state: ONLINE", " state: DEGRADED"), "DEGRADED"),
        (STATUS.replace("config:", "  scan: resilver in progress since Mon\nconfig:"), "resilver in progress"),
    ],
)
def test_a_pool_that_is_not_whole_or_repaired_is_told(status: str, trouble: str) -> None:
    assert pool_trouble(status) == trouble
