"""The files of a watched program, by directory and mount."""

from __future__ import annotations

from mountlab.core.trial_files import TrialFiles
from mountlab.filesystems.open_files import OpenDirectory, read_open_files

MOUNTS = """27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
30 27 8:1 / /srv/data rw,noatime - xfs /dev/sda1 rw,attr2
31 30 0:40 / /srv/data/deep rw - tmpfs none rw
"""
TEXT = f"""==> looks <==
7
==> pipes <==
2
==> directories <==
3 2 1 4096 /srv/data/a b
1 1 0 12 /srv/database
1 0 1 5 /srv/data/deep/er
==> mountinfo <==
{MOUNTS}"""


def test_directories_are_read_with_the_mount_that_holds_each() -> None:
    seen = read_open_files({TrialFiles.OPEN_FILES: TEXT})
    assert seen is not None
    assert (seen.looks, seen.pipes) == (7, 2)
    assert seen.directories[0] == OpenDirectory("/srv/data/a b", files=3, read=2, written=1, size_bytes=4096)
    assert {path: mount.fstype for path, mount in seen.mounts.items()} == {
        "/srv/data/a b": "xfs", "/srv/database": "ext4", "/srv/data/deep/er": "tmpfs",
    }  # fmt: skip
    holder = seen.holder("/srv/data")
    assert holder is not None
    assert holder.source == "/dev/sda1"


def test_a_directory_that_was_given_by_a_symbolic_link_lies_where_the_link_leads() -> None:
    text = TEXT.replace("==> pipes", "==> place <==\n/srv/data\n==> pipes")
    mounts = [
        seen.own_mount("/home/link")
        for files in (TEXT, text)
        if (seen := read_open_files({TrialFiles.OPEN_FILES: files}))
    ]
    assert [mount.fstype for mount in mounts if mount] == ["ext4", "xfs"]


def test_of_two_mounts_at_one_place_the_later_one_holds_it() -> None:
    again = MOUNTS + "40 27 0:50 / /srv/data rw - btrfs /dev/sdb rw\n"
    seen = read_open_files({TrialFiles.OPEN_FILES: TEXT.replace(MOUNTS, again)})
    holder = seen.holder("/srv/data/x") if seen else None
    assert holder is not None
    assert holder.fstype == "btrfs"


def test_a_program_that_could_not_be_looked_at_is_not_known() -> None:
    assert read_open_files({}) is None
    assert read_open_files({TrialFiles.OPEN_FILES: ""}) is None
