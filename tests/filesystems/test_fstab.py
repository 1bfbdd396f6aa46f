"""The lines that would make a mount permanent."""

from __future__ import annotations

from pathlib import Path

import pytest
from filesystems.test_filesystems import EXAMPLES, GIB, made
from mountlab.__main__ import main
from mountlab.core.errors import ParameterError
from mountlab.core.model import Box, Filesystem, ScratchDevice
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.fstab import permanent_lines, unit_name
from rows import every_row

BOX = Box(
    name="b",
    host="b",
    scratch=(
        ScratchDevice(name="data", device="/dev/disk/by-id/nvme-1"),
        ScratchDevice(name="j", device="/dev/disk/by-id/nvme-2"),
        ScratchDevice(name="nvm", device="memory:0x100000000"),
    ),
)


def lines(fs: Filesystem, at: str = "/mnt/f") -> list[str]:
    return permanent_lines(fs, BOX, at=at).splitlines()


def fstab(fs: Filesystem, at: str = "/mnt/f") -> str:
    text = lines(fs, at)
    return text[len(text) - text[::-1].index("# /etc/fstab")]


@every_row(
    ("fs", "line"),
    [
        (made("tmpfs", size_bytes=GIB, options=("noatime",)), "tmpfs  /mnt/f  tmpfs  size=1073741824,noatime  0 0"),
        (
            made("tmpfs", size_bytes=GIB, options=("mpol=weighted interleave:0",)),
            "tmpfs  /mnt/f  tmpfs  size=1073741824,mpol=weighted\\040interleave:0  0 0",
        ),
        (made("shmfs", size_bytes=GIB), "shmfs  /mnt/f  tmpfs  size=1073741824  0 0"),
        (made("ramfs", size_bytes=GIB), "ramfs  /mnt/f  ramfs  defaults  0 0"),
        (made("hugetlbfs", size_bytes=GIB), "hugetlbfs  /mnt/f  hugetlbfs  size=1073741824  0 0"),
        (made("ext4", device="data", options=("noatime",)), "/dev/disk/by-id/nvme-1  /mnt/f  ext4  noatime  0 2"),
        (
            made("xfs", device="data", journal_device="j", options=("noatime",)),
            "/dev/disk/by-id/nvme-1  /mnt/f  xfs  logdev=/dev/disk/by-id/nvme-2,noatime  0 0",
        ),
        (made("ext4", image_bytes=GIB), "IMAGE-FILE  /mnt/f  ext4  loop  0 2"),
        (made("ext4", zram_bytes=GIB), "/dev/zram0  /mnt/f  ext4  noauto,nofail  0 0"),
        (made("bind", path="/srv/x", options=("noatime",)), "/srv/x  /mnt/f  none  bind,noatime  0 0"),
        (
            made("pmfs", device="nvm", size_bytes=GIB, options=("bpi=1024",)),
            "none  /mnt/f  pmfs  physaddr=0x100000000,bpi=1024  0 0",
        ),
    ],
)
def test_the_line_of_fstab_is_the_mount_of_the_run(fs: Filesystem, line: str) -> None:
    assert fstab(fs) == line


def test_blanks_in_the_mount_point_are_escaped_for_fstab_and_for_systemd() -> None:
    fs = made("tmpfs", size_bytes=GIB)
    assert fstab(fs, "/mnt/my disk").split("  ")[1] == "/mnt/my\\040disk"
    assert unit_name("/mnt/my disk") == "mnt-my\\x20disk.mount"
    assert unit_name("/srv/ext4-journal") == "srv-ext4\\x2djournal.mount"
    with pytest.raises(ParameterError, match="not a directory to mount on"):
        lines(fs, "relative")


def test_the_unit_holds_the_same_mount() -> None:
    text = lines(made("tmpfs", size_bytes=GIB, options=("noatime",)), "/srv/fast")
    unit = text[text.index("# or /etc/systemd/system/srv-fast.mount") + 1 :]
    assert unit[3:8] == ["[Mount]", "What=tmpfs", "Where=/srv/fast", "Type=tmpfs", "Options=size=1073741824,noatime"]
    assert unit[-2:] == ["[Install]", "WantedBy=local-fs.target"]


def test_what_the_mount_alone_does_not_do_is_said_with_what_it_destroys() -> None:
    ext4 = made("ext4", device="data", mkfs=("-I", "512"), tunables={"inode_readahead_blks": "4096"})
    assert lines(ext4)[:2] == [
        "# once; it destroys what is on the device: mke2fs -t ext4 -I 512 -E lazy_itable_init=0,lazy_journal_init=0 "
        "/dev/disk/by-id/nvme-1",
        "# at every boot, after the mount: echo 4096 > /sys/fs/ext4/DEVICE/inode_readahead_blks",
    ]
    xfs = lines(made("xfs", device="data", mkfs=("-m", "reflink=0")))[0]
    assert xfs.endswith("mkfs.xfs -f -m reflink=0 /dev/disk/by-id/nvme-1")
    assert lines(made("xfs", device="data"))[0].endswith("mkfs.xfs -f /dev/disk/by-id/nvme-1")
    zram = lines(made("ext4", zram_bytes=GIB, zram_algorithm="lz4"))
    assert "zramctl --find --size 1073741824 --algorithm lz4" in zram[0]
    assert zram[1].startswith("# at every boot, after zramctl: mke2fs")
    assert "vm.nr_hugepages = 512 " in lines(made("hugetlbfs", size_bytes=GIB))[0]
    external = lines(made("xfs", device="data", journal_device="j"))
    assert "logdev=/dev/disk/by-id/nvme-2" in external[0]
    assert "ext2" not in external[0]


def test_an_overlay_brings_the_lines_of_what_lies_below_it() -> None:
    text = lines(made("overlay", over=made("ext4", device="data", options=("data=journal",))))
    assert "/dev/disk/by-id/nvme-1  /mnt/f.below  ext4  data=journal  0 2" in text
    assert "overlay  /mnt/f  overlay  lowerdir=LOWER,upperdir=UPPER,workdir=WORK  0 0" in text
    assert text[-2:] == ["[Install]", "WantedBy=local-fs.target"]
    assert not any("nodiscard overlay" in line for line in text)


def test_what_the_run_found_wrong_is_said_first() -> None:
    text = permanent_lines(made("tmpfs", size_bytes=GIB), BOX, at="/mnt/f/", doubts=["nobarrier was ignored"])
    assert text.splitlines()[0] == "# beware: nobarrier was ignored"


@pytest.mark.parametrize("fs", [made("dir"), made("raw", image_bytes=GIB), made("shmfs")], ids=lambda fs: fs.type)
def test_what_the_run_did_not_mount_cannot_be_made_permanent(fs: Filesystem) -> None:
    with pytest.raises(ParameterError, match="nothing to make permanent"):
        lines(fs)


@every_row("kind", list(EXAMPLES))
def test_every_family_gives_lines_or_a_reason(kind: str) -> None:
    for fs, _ in EXAMPLES[kind]:
        if FAMILIES[kind].mounted_as(fs) in ("", "raw"):
            with pytest.raises(ParameterError):
                lines(fs)
        else:
            assert len(fstab(fs).split("  ")) == 5
            assert fstab(fs).split("  ")[1] == "/mnt/f"
            assert "{" not in "\n".join(lines(fs))


@pytest.mark.slow
def test_the_verb_reads_a_run(capsys: pytest.CaptureFixture[str]) -> None:
    run = str(Path(__file__).parents[2] / "results" / "tour")
    assert main(["fstab", run, "ext4", "--at", "/srv/x"]) == 0
    assert "IMAGE-FILE  /srv/x  ext4  loop,noatime  0 2" in capsys.readouterr().out
    assert main(["fstab", run, "ext5"]) == 2
    assert "unknown file system of this run" in capsys.readouterr().err
