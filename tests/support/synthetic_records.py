"""What the trials and mounts of a run that is made up have left: commands, files, devices."""

from __future__ import annotations

import pandas as pd
from mountlab.analysis.run_view import TrialRecord
from mountlab.filesystems.counters import Around
from mountlab.filesystems.evidence import DeviceBytes
from mountlab.filesystems.making import BlockDevice, RanCommand, Setup

RUN_DIR = "/var/tmp/mountlab-root/20261120-093000-ramdisk-local"  # of a box
IMAGE = (BlockDevice("7:0", "loop0", "none", 131072), BlockDevice("254:0", "vda", "mq-deadline", 131072))


def records(trials: pd.DataFrame, hostile: str) -> dict[str, TrialRecord]:
    """Every trial ran its tool in its own directory and left three files; those of ext4 have a device."""
    found = {}
    for row in trials.to_dict("records"):
        directory = f"{RUN_DIR}/mnt/{row['filesystem']}/{row['trial_id']}"
        options = (f"--{name}={value}" for name, value in row["factors"].items())
        found[row["trial_id"]] = TrialRecord(
            argv=(row["tool"], f"--directory={directory}", *options, *([hostile] if hostile else [])),
            before=(RanCommand("lays out what is read; not measured", ("touch", f"{directory}/file")),),
            files=("after.txt", "argv", "stdout"),
            device=DeviceBytes(2**26, 2**20) if row["filesystem"] == "ext4" else None,
            around=Around(busy=0.42),
        )
    return found


def setups(trials: pd.DataFrame, hostile: str) -> list[Setup]:
    """One making of each file system a block: ext4 on an image, the others in memory."""
    mounts = dict(zip(trials["mount"], trials["filesystem"], strict=True))
    return [_setup(mount, name, hostile) for mount, name in mounts.items()]


def _setup(mount: str, name: str, hostile: str) -> Setup:
    on_image = name == "ext4"
    source, number = ("/dev/loop0", "7:0") if on_image else ("mountlab", "0:39")
    make = RanCommand("make ext4", ("mke2fs", "-q", "-t", "ext4", "/dev/loop0"), "mkfs.txt")
    mounted = RanCommand(f"mount {name}", ("mount", "-t", name, source, f"{RUN_DIR}/mnt/{name}", hostile), "mount.txt")
    line = f"42 27 {number} / {RUN_DIR}/mnt/{name} rw,relatime - {name} {source} rw{hostile}"
    commands = (make, mounted) if on_image else (mounted,)
    return Setup(mount, name, line, IMAGE if on_image else (), commands, ("commands.json", "evidence.txt"))
