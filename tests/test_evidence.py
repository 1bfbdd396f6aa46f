"""What the kernel says, read from text recorded on a real machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mountlab.errors import ParseError
from mountlab.evidence import (
    DeviceBytes,
    OptionState,
    device_bytes,
    device_chain,
    device_number,
    device_traffic,
    ext4_options,
    free_bytes,
    loops,
    mount_lines,
    mount_of,
    mount_options,
    option_state,
    sections,
)

DATA = Path(__file__).parent / "data"
RUN = "/var/tmp/mountlab-root/20261120T094724-ramdisk-local"


def recorded(name: str) -> dict[str, str]:
    return {"evidence.txt": (DATA / "evidence" / f"{name}.txt").read_text()}


def made_up(mountinfo: str, *, st_dev: int, df: str, loop_lines: str = "") -> dict[str, str]:
    text = f"==> st_dev <==\n{st_dev}\n==> mountinfo <==\n{mountinfo}\n==> df <==\n{df}\n==> loops <==\n{loop_lines}"
    return {"evidence.txt": text}


DF = "Filesystem 1024-blocks Used Available Capacity Mounted on\n"


# --- text -------------------------------------------------------------------------------------------------------------


def test_sections_are_split_at_their_headings() -> None:
    assert sections("junk\n==> a <==\n1\n2\n\n==> /proc/b c <==\n==> d <==\n3") == {
        "a": "1\n2",
        "/proc/b c": "",
        "d": "3",
    }


def test_every_recorded_line_of_mountinfo_is_read() -> None:
    lines = mount_lines(sections(recorded("ext4")["evidence.txt"])["mountinfo"])
    assert len(lines) == 20
    root = next(line for line in lines if line.mountpoint == "/")
    assert (root.device, root.fstype, root.source) == ("254:0", "ext4", "/dev/vda")
    assert root.options.startswith("rw,relatime,rw,discard")


def test_octal_escapes_of_mountinfo_are_undone() -> None:
    (line,) = mount_lines(r"36 35 98:0 / /mnt/a\040b\011c\134d rw - fuse.x my\040source rw,subtype=a\040b")
    assert (line.mountpoint, line.source) == ("/mnt/a b\tc\\d", "my source")


def test_optional_fields_of_mountinfo_are_passed_over() -> None:
    """proc(5): zero or more optional fields before the dash."""
    (line,) = mount_lines("36 35 98:0 /mnt1 /mnt2 rw,noatime master:1 shared:2 - ext3 /dev/root rw,errors=continue")
    assert (line.device, line.mountpoint, line.fstype) == ("98:0", "/mnt2", "ext3")
    assert line.options == "rw,noatime,rw,errors=continue"


@pytest.mark.parametrize("line", ["36 35 98:0 / /mnt rw", "36 35 - ext4", "a - b"])
def test_a_line_of_mountinfo_that_cannot_be_read_is_an_error(line: str) -> None:
    with pytest.raises(ParseError, match="mountinfo cannot be read") as caught:
        mount_lines(line)
    assert caught.value.got == repr(line)


@given(st.integers(0, 0xFFF), st.integers(0, 0xFFFFF))
def test_st_dev_is_taken_apart_as_the_c_library_does(major: int, minor: int) -> None:
    number = os.makedev(major, minor)
    assert device_number(str(number)) == f"{os.major(number)}:{os.minor(number)}" == f"{major}:{minor}"


# --- the mount of a directory -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "device", "source"),
    [("ext4", "7:0", "/dev/loop0"), ("tmpfs", "0:39", "mountlab"), ("ramfs", "0:39", "mountlab")],
)
def test_the_mount_that_holds_the_directory_is_found(name: str, device: str, source: str) -> None:
    mount = mount_of(recorded(name))
    assert (mount.device, mount.fstype, mount.source) == (device, name, source)
    assert mount.mountpoint == f"{RUN}/mnt/{name}"


def test_the_last_of_several_mounts_on_one_place_counts() -> None:
    lines = "1 0 8:1 / /m rw - ext4 /dev/sda1 rw\n2 0 0:9 / /m rw - tmpfs x rw,size=1k"
    assert mount_of(made_up(lines, st_dev=9, df=f"{DF}x 1 0 1 0% /m")).fstype == "tmpfs"


def test_one_device_in_two_places_is_told_apart_by_the_mount_point() -> None:
    lines = "1 0 8:1 / /a rw,noatime - ext4 /dev/sda1 rw\n2 0 8:1 / /b rw,relatime - ext4 /dev/sda1 rw"
    evidence = made_up(lines, st_dev=os.makedev(8, 1), df=f"{DF}/dev/sda1 100 1 99 1% /a")
    assert mount_options(evidence)["noatime"] == ""


def test_btrfs_shows_another_number_in_mountinfo_than_in_stat() -> None:
    lines = "1 0 0:30 /sub /data rw - btrfs /dev/sda1 rw"
    assert mount_of(made_up(lines, st_dev=45, df=f"{DF}/dev/sda1 100 1 99 1% /data")).device == "0:30"


def test_a_mount_point_and_a_source_may_hold_spaces() -> None:
    lines = r"1 0 0:30 / /mnt/my\040disk rw - 9p my\040share rw"
    evidence = made_up(lines, st_dev=30, df=f"{DF}my share      1000  10   990   1% /mnt/my disk")
    assert mount_of(evidence).mountpoint == "/mnt/my disk"
    assert free_bytes(evidence) == 990 * 1024


def test_in_a_chroot_the_device_is_known_and_the_rest_is_not() -> None:
    evidence = made_up("1 0 0:30 / /proc rw - proc proc rw", st_dev=os.makedev(254, 0), df=f"{DF}- 100 1 99 1% /")
    line = mount_of(evidence)
    assert (line.device, line.fstype, line.options) == ("254:0", "unknown", "")
    assert device_chain(evidence) == ["254:0"]


def test_output_of_df_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ParseError, match="df cannot be read"):
        free_bytes(made_up("", st_dev=1, df="df: /m: No such file or directory"))


@pytest.mark.parametrize(("name", "free"), [("ext4", 927944 * 1024), ("tmpfs", 1048576 * 1024), ("ramfs", 0)])
def test_free_space_is_what_an_ordinary_user_may_write(name: str, free: int) -> None:
    """ramfs says 0 of 0, with a dash for the share."""
    assert free_bytes(recorded(name)) == free


# --- devices ----------------------------------------------------------------------------------------------------------


def test_the_chain_of_an_image_is_the_loop_device_and_the_device_of_the_image() -> None:
    assert device_chain(recorded("ext4")) == ["7:0", "254:0"]
    loop = loops(recorded("ext4"))["7:0"]
    assert (loop.direct_io, loop.backing_device, loop.backing_file) == (True, "254:0", f"{RUN}/img/ext4.img")


@pytest.mark.parametrize("name", ["tmpfs", "ramfs"])
def test_a_file_system_in_memory_has_no_devices(name: str) -> None:
    assert device_chain(recorded(name)) == []


def test_a_loop_device_on_a_file_in_memory_ends_its_chain_there() -> None:
    lines = "1 0 7:1 / /m rw - ext4 /dev/loop1 rw"
    evidence = made_up(
        lines, st_dev=os.makedev(7, 1), df=f"{DF}/dev/loop1 9 0 9 0% /m", loop_lines="7:1\t0\t25\t/dev/shm/x.img"
    )
    assert device_chain(evidence) == ["7:1"]


def test_a_loop_device_whose_image_was_removed_has_no_known_backing() -> None:
    lines = "1 0 7:1 / /m rw - ext4 /dev/loop1 rw"
    evidence = made_up(
        lines, st_dev=os.makedev(7, 1), df=f"{DF}/dev/loop1 9 0 9 0% /m", loop_lines="7:1\t1\t\t/x.img (deleted)"
    )
    assert device_chain(evidence) == ["7:1"]
    assert loops(evidence)["7:1"].backing_device is None


def test_two_loop_devices_on_each_other_do_not_go_round_for_ever() -> None:
    lines = "1 0 7:1 / /m rw - ext4 /dev/loop1 rw"
    loop_lines = f"7:1\t1\t{os.makedev(7, 2)}\t/a\n7:2\t1\t{os.makedev(7, 1)}\t/b"
    evidence = made_up(lines, st_dev=os.makedev(7, 1), df=f"{DF}/dev/loop1 9 0 9 0% /m", loop_lines=loop_lines)
    assert device_chain(evidence) == ["7:1", "7:2"]


# --- counters ---------------------------------------------------------------------------------------------------------


def snapshots(name: str) -> tuple[str, str]:
    return tuple((DATA / "trials" / name / f"{when}.txt").read_text() for when in ("before", "after"))  # type: ignore[return-value]


def test_a_cold_read_of_512_mib_shows_on_the_loop_device_and_on_the_disk_below() -> None:
    moved = device_traffic(*snapshots("ext4-cold-read"))
    assert moved["7:0"] == DeviceBytes(read=512 * 1024**2, written=0)
    assert moved["254:0"].read == (41269080 - 40218744) * 512
    assert moved["254:0"].read >= 512 * 1024**2


def test_a_warm_read_of_512_mib_moves_next_to_nothing() -> None:
    """Trap: 886 MB/s from a hard disk that reads 60 MB/s. The page cache answered."""
    moved = device_traffic(*snapshots("ext4-warm-read"))
    assert moved["7:0"] == DeviceBytes(0, 0)
    assert moved["254:0"].read == 776 * 512


def test_a_device_that_came_or_went_meanwhile_is_left_out() -> None:
    line = "   8       {} sd{} 1 0 {} 0 1 0 {} 0 0 0 0\n"
    before = "==> /proc/diskstats <==\n" + line.format(0, "a", 10, 20) + line.format(16, "b", 0, 0)
    after = "==> /proc/diskstats <==\n" + line.format(0, "a", 12, 25) + line.format(32, "c", 9, 9)
    assert device_traffic(before, after) == {"8:0": DeviceBytes(read=1024, written=2560)}


def test_a_snapshot_without_counters_names_no_device() -> None:
    assert device_bytes("==> /proc/vmstat <==\nnr_free_pages 1\n") == {}
    assert device_bytes("==> /proc/diskstats <==\n 8 0 sda\n") == {}


# --- what was asked against what is in effect -------------------------------------------------------------------------

EXT4 = {**ext4_options(recorded("ext4")), **mount_options(recorded("ext4"))}
RAMFS = mount_options(recorded("ramfs"))
IN_EFFECT, NOT_VISIBLE, NOT_IN_EFFECT = (True, True), (False, False), (False, True)


def test_ext4_tells_its_defaults_in_proc() -> None:
    assert EXT4["data"] == "ordered"
    assert EXT4["barrier"] == ""
    assert EXT4["commit"] == "5"


@pytest.mark.parametrize(
    ("asked", "stated", "state", "says"),
    [
        ("size=64m", {"size": "65536k"}, IN_EFFECT, "size=65536k"),
        ("size=67108864", {"size": "65536k"}, IN_EFFECT, "size=65536k"),
        ("size=1g", {"size": "65536k"}, NOT_IN_EFFECT, "size=65536k"),
        ("mode=0755", {"mode": "755"}, IN_EFFECT, "mode=755"),
        ("noatime", {"noatime": ""}, IN_EFFECT, "noatime"),
        ("noatime", {"relatime": ""}, NOT_IN_EFFECT, "relatime"),
        ("relatime", EXT4, IN_EFFECT, "relatime"),
        ("strictatime", {"relatime": ""}, NOT_IN_EFFECT, "relatime"),
        ("strictatime", {"rw": ""}, IN_EFFECT, "nostrictatime is absent"),
        ("barrier=0", {"nobarrier": ""}, IN_EFFECT, "nobarrier"),
        ("nobarrier", EXT4, NOT_IN_EFFECT, "barrier"),
        ("barrier=1", EXT4, IN_EFFECT, "barrier"),
        ("barrier", {"nobarrier": ""}, NOT_IN_EFFECT, "nobarrier"),
        ("data=ordered", EXT4, IN_EFFECT, "data=ordered"),
        ("data=writeback", EXT4, NOT_IN_EFFECT, "data=ordered"),
        ("data=writeback", RAMFS, NOT_VISIBLE, "nothing"),
        ("nobarrier", RAMFS, NOT_VISIBLE, "nothing"),
        ("size=64m", RAMFS, NOT_VISIBLE, "nothing"),
        ("nonsense", RAMFS, NOT_VISIBLE, "nothing"),
        ("nonsense", EXT4, NOT_VISIBLE, "nothing"),
        ("defaults", RAMFS, IN_EFFECT, "asks for nothing"),
        ("ro", {"rw": ""}, NOT_IN_EFFECT, "rw"),
        ("rw", {"rw": ""}, IN_EFFECT, "rw"),
        ("ro", {"ro": "", "rw": ""}, IN_EFFECT, "ro"),
        ("rw", {"ro": "", "rw": ""}, NOT_IN_EFFECT, "ro"),
        ("suid", RAMFS, IN_EFFECT, "nosuid is absent"),
        ("suid", {"nosuid": ""}, NOT_IN_EFFECT, "nosuid"),
        ("nosuid", {"rw": ""}, NOT_VISIBLE, "nothing"),
        ("delalloc", {"nodelalloc": ""}, NOT_IN_EFFECT, "nodelalloc"),
    ],
)  # fmt: skip
def test_an_option_is_in_effect_only_where_the_kernel_shows_it(
    asked: str, stated: dict[str, str], state: tuple[bool, bool], says: str
) -> None:
    """Trap: mount options that the file system ignores. Asked but not in effect is never silence."""
    assert option_state(asked, stated) == OptionState(*state, says)
