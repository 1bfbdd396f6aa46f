"""What the kernel says, read from text recorded on a real machine."""

from __future__ import annotations

import os
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mountlab.core.errors import ParseError
from mountlab.filesystems.evidence import (
    DeviceBytes,
    DeviceLevels,
    counted_levels,
    device_bytes,
    device_levels,
    device_number,
    device_traffic,
    ext4_options,
    file_system_device,
    images,
    kernel_log,
    loops,
    loops_below,
    mount_lines,
    mount_of,
    mount_options,
    parts_by_heading,
    read_alone,
    settings,
    slaves,
    split_options,
    through_cache_below,
    uncounted_reason,
)
from rows import every_row

DATA = Path(__file__).parents[1] / "data"
RUN = "/var/tmp/mountlab-root/20261120T094724-ramdisk-local"


def recorded(name: str) -> dict[str, str]:
    return {"evidence.txt": (DATA / "evidence" / f"{name}.txt").read_text()}


def made_up(mountinfo: str, *, st_dev: int, df: str, loop_lines: str = "") -> dict[str, str]:
    text = f"==> st_dev <==\n{st_dev}\n==> mountinfo <==\n{mountinfo}\n==> df <==\n{df}\n==> loops <==\n{loop_lines}"
    return {"evidence.txt": text}


DF = "Filesystem 1024-blocks Used Available Capacity Mounted on\n"


# --- text -------------------------------------------------------------------------------------------------------------


def test_sections_are_split_at_their_headings() -> None:
    assert parts_by_heading("junk\n==> a <==\n1\n2\n\n==> /proc/b c <==\n==> d <==\n3") == {
        "a": "1\n2",
        "/proc/b c": "",
        "d": "3",
    }


def test_every_recorded_line_of_mountinfo_is_read() -> None:
    lines = mount_lines(parts_by_heading(recorded("ext4")["evidence.txt"])["mountinfo"])
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


def test_in_a_chroot_the_device_is_known_and_the_rest_is_not() -> None:
    evidence = made_up("1 0 0:30 / /proc rw - proc proc rw", st_dev=os.makedev(254, 0), df=f"{DF}- 100 1 99 1% /")
    line = mount_of(evidence)
    assert (line.device, line.fstype, line.options) == ("254:0", "unknown", "")
    assert device_levels(evidence) == (("254:0",),)


def test_output_of_df_that_cannot_be_read_is_an_error() -> None:
    with pytest.raises(ParseError, match="df cannot be read"):
        mount_of(made_up("", st_dev=1, df="df: /m: No such file or directory"))


# --- devices ----------------------------------------------------------------------------------------------------------


def test_the_chain_of_an_image_is_the_loop_device_and_the_device_of_the_image() -> None:
    assert device_levels(recorded("ext4")) == (("7:0",), ("254:0",))
    loop = loops(recorded("ext4"))["7:0"]
    assert (loop.direct_io, loop.backing_device) == (True, "254:0")


@pytest.mark.parametrize("name", ["tmpfs", "ramfs"])
def test_a_file_system_in_memory_has_no_devices(name: str) -> None:
    assert device_levels(recorded(name)) == ()


def test_a_loop_device_on_a_file_in_memory_ends_its_chain_there() -> None:
    lines = "1 0 7:1 / /m rw - ext4 /dev/loop1 rw"
    evidence = made_up(
        lines, st_dev=os.makedev(7, 1), df=f"{DF}/dev/loop1 9 0 9 0% /m", loop_lines="7:1\t0\t25\t/dev/shm/x.img"
    )
    assert device_levels(evidence) == (("7:1",),)


def test_a_loop_device_whose_image_was_removed_has_no_known_backing() -> None:
    lines = "1 0 7:1 / /m rw - ext4 /dev/loop1 rw"
    evidence = made_up(
        lines, st_dev=os.makedev(7, 1), df=f"{DF}/dev/loop1 9 0 9 0% /m", loop_lines="7:1\t1\t\t/x.img (deleted)"
    )
    assert device_levels(evidence) == (("7:1",),)
    assert loops(evidence)["7:1"].backing_device is None


def test_two_loop_devices_on_each_other_do_not_go_round_for_ever() -> None:
    lines = "1 0 7:1 / /m rw - ext4 /dev/loop1 rw"
    loop_lines = f"7:1\t1\t{os.makedev(7, 2)}\t/a\n7:2\t1\t{os.makedev(7, 1)}\t/b"
    evidence = made_up(lines, st_dev=os.makedev(7, 1), df=f"{DF}/dev/loop1 9 0 9 0% /m", loop_lines=loop_lines)
    assert device_levels(evidence) == (("7:1",), ("7:2",))


MD, CRYPT, LINEAR, PART = "9:127\tmd127", "253:0\tdm-0", "253:1\tdm-1", "259:0\tmd127p1"
LOOPS, DISKS = ("7:0", "7:1"), ("8:0", "8:16", "8:32", "8:48")
ON_VDA = f"7:0\t1\t{os.makedev(254, 0)}\t/a\n7:1\t1\t{os.makedev(254, 0)}\t/b"
NAMES = {"7:0": "loop0", "7:1": "loop1", **dict(zip(DISKS, ("sda", "sdb", "sdc", "sdd"), strict=True)), "8:1": "sda1"}


def on(upper: str, *lower: str) -> str:
    """Lines of the section slaves. `upper`: number and name; `lower`: numbers."""
    known = dict(each.split("\t") for each in (MD, CRYPT, LINEAR, PART)) | NAMES
    return "".join(f"{upper}\t{number}\t{known[number]}\n" for number in lower)


def layered(device: str, *, slaves: str = "", members: str = "", loop_lines: str = "") -> dict[str, str]:
    major, minor = map(int, device.split(":"))
    line = f"1 0 {device} / /m rw - ext4 /dev/x rw"
    made = made_up(line, st_dev=os.makedev(major, minor), df=f"{DF}/dev/x 9 0 9 0% /m", loop_lines=loop_lines)
    return {"evidence.txt": f"{made['evidence.txt']}\n==> slaves <==\n{slaves}==> members <==\n{members}"}


@every_row(
    ("about", "evidence", "levels"),
    [
        ("a disk", layered("8:0"), (("8:0",),)),
        (
            "raid1 of two loop devices on one disk",
            layered("9:127", slaves=on(MD, *LOOPS), loop_lines=ON_VDA),
            (("9:127",), LOOPS, ("254:0",)),
        ),
        (
            "LUKS on raid6 of four disks",
            layered("253:0", slaves=on(CRYPT, "9:127") + on(MD, *DISKS)),
            (("253:0",), ("9:127",), DISKS),
        ),
        ("a partition of raid1", layered("259:0", slaves=on(MD, "8:0") + on(PART, "8:0")), (("259:0",), ("8:0",))),
        ("linear on a partition", layered("253:1", slaves=on(LINEAR, "8:1")), (("253:1",), ("8:1",))),
        ("others' layers", layered("8:1", slaves=on(MD, *DISKS)), (("8:1",),)),
        ("btrfs of two disks", layered("0:45", members="8:0\n8:16\n"), (("8:0", "8:16"),)),
        (
            "btrfs of two loop devices on one disk",
            layered("0:45", members="7:0\n7:1\n", loop_lines=ON_VDA),
            (LOOPS, ("254:0",)),
        ),
        (
            "a loop device on another",
            layered("7:0", loop_lines=f"7:0\t1\t{os.makedev(7, 1)}\t/a\n7:1\t1\t{os.makedev(8, 1)}\t/b"),
            (("7:0",), ("7:1",), ("8:1",)),
        ),
        (
            "raid1 of a loop device and a disk: a level has all that is read and written",
            layered("9:127", slaves=on(MD, "7:0", "8:0"), loop_lines=ON_VDA),
            (("9:127",), ("7:0", "8:0"), ("254:0", "8:0")),
        ),
        (
            "a device that is reached in two ways is in the lower level",
            layered("253:0", slaves=on(CRYPT, "253:1", "9:127") + on(LINEAR, "9:127") + on(MD, *DISKS)),
            (("253:0",), ("253:1",), ("9:127",), DISKS),
        ),
        (
            "devices on each other, which no kernel shows",
            layered("253:0", slaves=on(CRYPT, "253:1") + on(LINEAR, "253:0")),
            (("253:0",), ("253:1",)),
        ),
    ],
)
def test_devices_lie_level_by_level_below_a_file_system(
    about: str, evidence: dict[str, str], levels: DeviceLevels
) -> None:
    assert device_levels(evidence) == levels, about


@every_row(
    ("evidence", "levels"),
    [
        (layered("9:127", slaves=on(MD, "8:0", "8:16")), (("9:127",),)),
        (layered("0:45", members="8:0\n8:16\n"), ()),
        (layered("9:127", slaves=on(MD, "8:0")), (("9:127",), ("8:0",))),
    ],
)
def test_a_level_with_a_device_that_counts_nothing_is_not_held_against_a_tool(
    evidence: dict[str, str], levels: DeviceLevels
) -> None:
    counts = "8:0\tsda\t128\tnone\t1\n8:16\tsdb\t128\tnone\t0\n"
    seen = {"evidence.txt": f"{evidence['evidence.txt']}==> below <==\n{counts}"}
    assert counted_levels(seen) == levels
    assert uncounted_reason(seen) == (None if levels else "its device counts no bytes (queue/iostats is 0)")


def test_a_layer_on_loop_devices_goes_through_the_cache_where_these_do() -> None:
    layers = layered("9:127", slaves=on(MD, *LOOPS), loop_lines=ON_VDA)
    assert [loop.device for loop in loops_below(layers)] == list(LOOPS)
    assert not through_cache_below(layers)
    assert through_cache_below({"evidence.txt": layers["evidence.txt"].replace("7:0\t1\t", "7:0\t0\t")})


def sysfs(root: Path) -> None:
    """raid1 of a partition of a disk and of a disk, with a partition, below device mapper; as the kernel shows them
    (Documentation/ABI/testing/sysfs-block, md.rst)."""
    devices = {
        "sda": "8:0", "sda/sda1": "8:1", "sdb": "8:16",
        "md127": "9:127", "md127/md127p1": "259:0", "dm-0": "253:0",
    }  # fmt: skip
    for path, number in devices.items():
        directory = root / "devices" / path
        (directory / "slaves").mkdir(parents=True)
        (directory / "dev").write_text(f"{number}\n")
    for disk in ("sda", "sdb", "md127", "dm-0"):
        queue = root / "devices" / disk / "queue"
        queue.mkdir()
        (queue / "read_ahead_kb").write_text("128\n")
        (root / "block").mkdir(exist_ok=True)
        (root / "block" / disk).symlink_to(root / "devices" / disk)
    (root / "devices/sdb/queue/scheduler").write_text("[mq-deadline] none\n")
    (root / "devices/sdb/queue/iostats").write_text("0\n")
    for upper, lower in (("md127", "sda/sda1"), ("md127", "sdb"), ("dm-0", "md127/md127p1")):
        path = root / "devices" / lower
        (root / "devices" / upper / "slaves" / path.name).symlink_to(path)


def test_the_box_tells_what_lies_on_what(tmp_path: Path) -> None:
    sysfs(tmp_path / "sys")
    script = files("mountlab.filesystems").joinpath("evidence.sh").read_text().replace("/sys/", f"{tmp_path}/sys/")
    text = subprocess.run(["sh", "-c", script, "evidence.sh", tmp_path], capture_output=True, text=True, check=True)
    evidence = {"evidence.txt": text.stdout}
    rows = {(row.upper, row.upper_name, row.device, row.name) for row in slaves(evidence)}
    assert rows == {
        ("9:127", "md127", "8:1", "sda1"),
        ("9:127", "md127", "8:16", "sdb"),
        ("259:0", "md127p1", "8:1", "sda1"),
        ("259:0", "md127p1", "8:16", "sdb"),
        ("253:0", "dm-0", "259:0", "md127p1"),
    }
    parts = parts_by_heading(text.stdout)
    queues = ["8:1\tsda1\t128\tnone\t1", "8:16\tsdb\t128\t[mq-deadline] none\t0", "259:0\tmd127p1\t128\tnone\t1"]
    assert sorted(parts["below"].splitlines()) == sorted(queues)
    assert parts["members"] == ""


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


def test_flushes_are_the_nineteenth_field_and_0_where_it_lacks() -> None:
    """Kernel: admin-guide/iostats.rst, field 16 of those behind the name."""
    line = (
        "==> /proc/diskstats <==\n 7 0 loop0 23238601 188950 448526171 8984383 13298524 15063613 1656120566 7111923 0"
    )
    rest = " 3689276 17393345 896 0 500344476 2058 {} 1294979\n"
    (moved,) = device_traffic(line + rest.format(5973048), line + rest.format(5977082)).values()
    assert moved == DeviceBytes(0, 0, 4034)
    assert list(device_traffic(f"{line}\n", f"{line}\n").values()) == [DeviceBytes(0, 0, 0)]


def test_a_device_that_has_moved_nothing_since_it_is_there_is_left_out() -> None:
    """A recording of Linux 6.1: md counts what its linear arrays move on the devices below alone."""
    text = "==> /proc/diskstats <==\n   7  4 loop4 40 0 9656 1 116 0 {} 2 0 3 4\n   9 127 md127 0 0 0 0 0 0 0 0 0 0 0\n"
    assert device_traffic(text.format(64488), text.format(64496)) == {"7:4": DeviceBytes(read=0, written=4096)}


def test_a_device_that_came_or_went_meanwhile_is_left_out() -> None:
    line = "   8       {} sd{} 1 0 {} 0 1 0 {} 0 0 0 0\n"
    before = "==> /proc/diskstats <==\n" + line.format(0, "a", 10, 20) + line.format(16, "b", 0, 0)
    after = "==> /proc/diskstats <==\n" + line.format(0, "a", 12, 25) + line.format(32, "c", 9, 9)
    assert device_traffic(before, after) == {"8:0": DeviceBytes(read=1024, written=2560)}


def test_a_snapshot_without_counters_names_no_device() -> None:
    assert device_bytes("==> /proc/vmstat <==\nnr_free_pages 1\n") == {}
    assert device_bytes("==> /proc/diskstats <==\n 8 0 sda\n") == {}


# --- options, settings and the kernel's log ---------------------------------------------------------------------------


def test_ext4_tells_its_defaults_in_proc() -> None:
    shown = ext4_options(recorded("ext4"))
    assert (shown["data"], shown["barrier"], shown["commit"]) == ("ordered", "", "5")


def test_options_that_the_kernel_writes_on_one_line_are_taken_apart() -> None:
    """Quota options stand behind a comma in /proc/fs/ext4/<device>/options."""
    more = "\n==> name <==\ndm-0\n==> /proc/fs/ext4/dm-0/options <==\nacl\nprefetch,jqfmt=vfsv0\n"
    line = "1 0 253:0 / /m rw - ext4 /dev/mapper/vg-lv rw"
    evidence = made_up(line, st_dev=os.makedev(253, 0), df=f"{DF}x 1 1 1 1% /m")
    evidence["evidence.txt"] += more
    assert ext4_options(evidence) == {"acl": "", "prefetch": "", "jqfmt": "vfsv0"}


@every_row(
    ("text", "options"),
    [
        ("rw,noatime", ["rw", "noatime"]),
        ("mpol=bind:0,2,size=1m", ["mpol=bind:0,2", "size=1m"]),
        ('context="a:b,c",ro', ['context="a:b,c"', "ro"]),
        (" a , b ", ["a", "b"]),
        ("", []),
        (",,", []),
    ],
)
def test_options_are_told_apart_at_the_commas_between_them(text: str, options: list[str]) -> None:
    assert split_options(text) == options


def test_what_each_option_shows_alone_is_read_with_its_defaults() -> None:
    line = "1 0 7:0 / /m rw,relatime - ext4 /dev/loop0 rw,grpid"
    found = read_alone({"alone.txt": f"==> bsdgroups <==\n{line}\nrw\nacl\ngrpid\n==> b <==\n"})
    assert found == {"bsdgroups": {"rw": "", "relatime": "", "grpid": "", "acl": ""}, "b": {}}
    assert read_alone({}) == {}


def test_settings_are_every_file_below_sys() -> None:
    found = settings({"evidence.txt": whole("ext4-control")})
    assert found["/sys/class/block/loop0/queue/scheduler"] == "[none] mq-deadline kyber bfq"
    assert found["/sys/fs/ext4/loop0/inode_readahead_blks"] == "32"
    assert all(path.startswith("/sys/") for path in found)


def test_the_kernels_log_is_read_without_its_time_stamps() -> None:
    log = "<6>[    1.000000] EXT4-fs: a\n[12.3][ T45] b\n[1.0] x: 3 callbacks suppressed\n\nplain\n"
    assert kernel_log({"mount.txt": f"==> elapsed_ns <==\n1\n==> kernel <==\n{log}"}) == ["EXT4-fs: a", "b", "plain"]
    assert kernel_log({}) == []


# --- what later evidence tells ----------------------------------------------------------------------------------------


def whole(name: str) -> str:
    return (DATA / "evidence" / name / "evidence.txt").read_text()


def test_btrfs_has_a_device_of_its_own_number_and_lies_on_another() -> None:
    """Its bytes on the device are compared like those of every other file system."""
    evidence = {"evidence.txt": whole("btrfs-control")}
    assert mount_of(evidence).device.startswith("0:")
    assert file_system_device(evidence) == "7:0"
    assert device_levels(evidence)[0] == ("7:0",)
    assert uncounted_reason(evidence) is None


@pytest.mark.parametrize("name", ["tmpfs-control", "ramfs-control"])
def test_a_file_system_in_memory_is_not_one_of_an_unseen(name: str) -> None:
    assert device_levels({"evidence.txt": whole(name)}) == ()
    assert uncounted_reason({"evidence.txt": whole(name)}) is None


def test_an_overlay_does_not_tell_its_device() -> None:
    evidence = made_up("1 0 0:30 / /m rw - overlay x rw,lowerdir=/a", st_dev=30, df=f"{DF}x 1 1 1 1% /m")
    assert uncounted_reason(evidence) == "the kernel does not tell the device below overlay"


def test_a_block_device_without_a_file_system_is_its_own_evidence() -> None:
    text = "==> st_dev <==\n6\n==> device <==\n7:0\n==> mountinfo <==\n\n==> df <==\nx 9 1 8 1% /dev\n==> loops <==\n"
    evidence = {"evidence.txt": f"{text}==> name <==\nloop0\n==> /sys/class/block/loop0/size <==\n2048\n"}
    assert (mount_of(evidence).fstype, mount_of(evidence).device, mount_of(evidence).source) == ("raw", "7:0", "loop0")
    assert device_levels(evidence) == (("7:0",),)
    assert mount_options(evidence) == {}


def test_the_file_behind_a_loop_device_has_a_size_and_blocks() -> None:
    assert images({"evidence.txt": whole("ext4-control")})["7:0"].size == 640 * 2**20
    assert images(recorded("ext4")) == {}


def test_the_device_of_an_overlay_is_that_of_its_upper_directory() -> None:
    mountinfo = (
        "20 1 254:0 / / rw - ext4 /dev/vda rw\n"
        "30 20 7:3 / /mr/ov.below rw - ext4 /dev/loop3 rw\n"
        "31 20 0:60 / /mr/ov rw - overlay mountlab rw,lowerdir=/mr/ov.below/lower,upperdir=/mr/ov.below/upper\n"
    )
    df = "Filesystem 1024-blocks Used Available Capacity Mounted on\nmountlab 9 0 9 0% /mr/ov"
    loop = "7:3\t1\t65024\t/mr/img/ov.img"

    def evidence(mounts: str) -> dict[str, str]:
        parts = {"st_dev": "60", "root": "/mr/ov", "mountinfo": mounts, "df": df, "loops": loop}
        return {"evidence.txt": "".join(f"==> {name} <==\n{text.strip()}\n" for name, text in parts.items())}

    assert device_levels(evidence(mountinfo)) == (("7:3",), ("254:0",))
    in_memory = mountinfo.replace("7:3 / /mr/ov.below rw - ext4 /dev/loop3", "0:59 / /mr/ov.below rw - tmpfs mountlab")
    assert device_levels(evidence(in_memory)) == ()
    assert uncounted_reason(evidence(in_memory)) is None


@every_row(
    ("options", "iostats", "levels", "why"),
    [
        ("rw", "1", (("259:0",),), None),
        ("rw", "0", (), "its device counts no bytes (queue/iostats is 0)"),
        ("rw,dax=always", "0", (), None),
        ("rw,dax", "1", (), None),
        ("rw,dax=never", "1", (("259:0",),), None),
    ],
)
def test_bytes_are_held_against_a_device_that_counts_them_and_not_where_dax_passes_it_by(
    options: str, iostats: str, levels: DeviceLevels, why: str | None
) -> None:
    """A pmem device counts nothing by default: every read would look as if the page cache had answered."""
    queue = f"==> /sys/class/block/pmem0/queue/iostats <==\n{iostats}\n"
    text = (
        f"==> st_dev <==\n66304\n==> root <==\n755\n==> device <==\n259:0\n==> name <==\npmem0\n"
        f"==> mountinfo <==\n30 1 259:0 / /m rw - ext4 /dev/pmem0 {options}\n"
        f"==> df <==\n/dev/pmem0 9 0 9 0% /m\n==> loops <==\n\n{queue}"
    )
    assert (counted_levels({"evidence.txt": text}), uncounted_reason({"evidence.txt": text})) == (levels, why)


def test_device_mapper_counts_bytes_whatever_its_flag_tells() -> None:
    """A recording of Linux 6.1: `iostats` of dm-0 is 0, and /proc/diskstats has what it moved."""
    text = (
        "==> st_dev <==\n64768\n==> root <==\n755\n==> device <==\n253:0\n==> name <==\ndm-0\n"
        "==> mountinfo <==\n30 1 253:0 / /m rw - ext4 /dev/dm-0 rw\n==> df <==\n/dev/dm-0 9 0 9 0% /m\n"
        "==> loops <==\n\n"
        "==> slaves <==\n253:0\tdm-0\t8:0\tsda\n==> /sys/class/block/dm-0/queue/iostats <==\n0\n"
    )
    assert counted_levels({"evidence.txt": text}) == (("253:0",), ("8:0",))


@every_row(
    ("served", "levels"),
    [
        ("==> served <==\n64768\n", (("nfs:/m",), ("253:0",), ("8:0",))),  # our own server, and what its export lies on
        ("==> served <==\n27\n", (("nfs:/m",),)),  # of an export in memory
        ("", (("nfs:/m",),)),  # another machine serves it
    ],
)
def test_a_mount_of_nfs_lies_on_its_server_where_its_bytes_were_counted(served: str, levels: DeviceLevels) -> None:
    text = (
        "==> st_dev <==\n40\n==> root <==\n755\n==> device <==\n==> name <==\n\n"
        "==> mountinfo <==\n30 1 0:40 / /m rw - nfs4 127.0.0.1:/ rw\n==> df <==\n127.0.0.1:/ 9 0 9 0% /m\n"
        f"{served}==> loops <==\n\n==> slaves <==\n253:0\tdm-0\t8:0\tsda\n"
    )
    seen = {"evidence.txt": text}
    assert (counted_levels(seen, ["nfs:/m"]), uncounted_reason(seen, ["nfs:/m"])) == (levels, None)
    assert (counted_levels(seen), uncounted_reason(seen)) == ((), "the kernel does not tell the device below nfs4")
