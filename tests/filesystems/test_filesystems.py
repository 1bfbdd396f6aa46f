"""What every family of file systems must keep, and the exact commands of each."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from facts import known
from mountlab.core.errors import ParameterError
from mountlab.core.model import MARK_BYTES, Filesystem, Place, Target, Workload
from mountlab.core.stack_layer import StackLayer
from mountlab.core.state import State
from mountlab.core.vdev import Vdev
from mountlab.filesystems import FAMILIES
from mountlab.filesystems.base import Family, evidence_step
from mountlab.filesystems.guard import uuid_for
from mountlab.runner.conformance import filesystems as conformance
from mountlab.runner.conformance.filesystems import shortened
from mountlab.runner.conformance.rules import Rule
from mountlab.sweep.filesystem_entry import FilesystemFile
from rows import every_row

GIB, MIB = 1024**3, 1024**2
UUID, JOURNAL_UUID = uuid_for("", "r1", "m1"), uuid_for("", "r1", "m1", "journal")
PLACE = conformance.PLACE
SCRATCH = replace(PLACE, device="/dev/disk/by-id/x", device_id="8:16,x", journal="/dev/disk/by-id/j", journal_id="8:32")
SEVERAL = replace(SCRATCH, more_devices=(("/dev/disk/by-id/y", "8:48,y"),))
MIRROR = StackLayer("md", {"level": "raid1"}, {"level": "raid1"})
LAYERED = replace(PLACE, layer_uuids=(uuid_for("", "r1", "m1", "layer1"), uuid_for("", "r1", "m1", "layer2")))
MIRRORED = replace(SEVERAL, layer_uuids=LAYERED.layer_uuids[:1])
BELOW = Filesystem(name="f", type="ext4", image_bytes=GIB, options=("noatime",))
WORKLOAD = Workload(name="w", tool="fio", options={"rw": "read", "ioengine": "psync"})
PMFS = known(kernel="6.1", kernel_filesystems=["ext4"], kernel_features=["zram"])


def made(kind: str, **more: object) -> Filesystem:
    return Filesystem(name="f", type=kind, **more)  # type: ignore[arg-type]


EXAMPLES: dict[str, list[tuple[Filesystem, Place]]] = {
    "dir": [(made("dir"), PLACE), (made("dir", path="/srv/data"), PLACE)],
    "in_place": [(made("in_place", path="/srv/data"), PLACE)],
    "bind": [(made("bind", options=("noatime",)), PLACE), (made("bind", path="/srv/data"), PLACE)],
    "tmpfs": [(made("tmpfs", size_bytes=GIB, options=("noatime",)), PLACE)],
    "shmfs": [(made("shmfs", size_bytes=GIB), PLACE), (made("shmfs"), PLACE)],
    "ramfs": [(made("ramfs", size_bytes=GIB), PLACE)],
    "hugetlbfs": [(made("hugetlbfs", size_bytes=GIB), PLACE)],
    "ext4": [
        (made("ext4", image_bytes=GIB, options=("noatime", "data=writeback")), PLACE),
        (made("ext4", device="data"), SCRATCH),
        (made("ext4", device="data", journal_device="j", tunables={"inode_readahead_blks": "64"}), SCRATCH),
        (made("ext4", zram_bytes=GIB, zram_algorithm="lz4", tunables={"queue/scheduler": "none"}), PLACE),
        (made("ext4", pmbd="pmbd16;"), PLACE),
        (made("ext4", image_bytes=GIB, members=4, stack=(MIRROR, StackLayer("luks"))), LAYERED),
        (made("ext4", device="a", more_devices=("b",), stack=(MIRROR,)), MIRRORED),
        (
            made("ext4", image_bytes=GIB, journal_image_bytes=64 * MIB, image_dir="/srv"),
            replace(PLACE, image="/srv/mountlab-r1-f/f.img"),
        ),
    ],
    "ext3": [(made("ext3", image_bytes=GIB), PLACE)],
    "ext2": [(made("ext2", image_bytes=GIB, preallocate=False), PLACE)],
    "xfs": [
        (made("xfs", image_bytes=GIB, journal_image_bytes=80 * MIB), PLACE),
        (made("xfs", device="d"), SCRATCH),
        (made("xfs", device="d", realtime_image_bytes=GIB, mkfs=("-r", "extsize=64k")), SCRATCH),
        (made("xfs", image_bytes=GIB, realtime_image_bytes=GIB, journal_image_bytes=80 * MIB), PLACE),
    ],
    "btrfs": [
        (made("btrfs", image_bytes=GIB, mkfs=("-m", "single")), PLACE),
        (made("btrfs", device="a", more_devices=("b",)), SEVERAL),
        (made("btrfs", image_bytes=GIB, members=3), PLACE),
    ],
    "f2fs": [
        (made("f2fs", image_bytes=GIB, mkfs=("-O", "extra_attr,compression", "-s", "2")), PLACE),
        (made("f2fs", device="d"), SCRATCH),
        (made("f2fs", image_bytes=64 * MIB, members=3), PLACE),
        (made("f2fs", zram_bytes=64 * MIB, options=("background_gc=off",)), PLACE),
        (made("f2fs", device="a", more_devices=("b",), stack=(MIRROR,)), MIRRORED),
    ],
    "zfs": [
        (made("zfs", image_bytes=GIB, options=("compression=lz4",), mkfs=("-o", "ashift=12"), arc_bytes=GIB), PLACE),
        (made("zfs", device="a", more_devices=("b",), vdevs=(Vdev("mirror", ("a", "b")),)), SEVERAL),
        (made("zfs", device="a", more_devices=("b",), stack=(MIRROR,)), MIRRORED),
    ],
    "raw": [(made("raw", image_bytes=GIB), PLACE), (made("raw", device="d"), SCRATCH)],
    "nfs": [
        (made("nfs"), PLACE),
        (
            made("nfs", path="/srv/data", server="10.1.1.1", options=("vers=4.1", "nconnect=4")),
            replace(PLACE, peers=("10.1.1.2",)),
        ),
    ],
    "overlay": [
        (made("overlay", over=BELOW), PLACE),
        (made("overlay", over=made("tmpfs", size_bytes=GIB)), PLACE),
    ],
    "pmfs": [(made("pmfs", device="nvm", size_bytes=2 * GIB), replace(PLACE, device="memory:0x100000000"))],
}
each_family = every_row("family", FAMILIES.values(), ids=list(FAMILIES))
each_example = every_row(
    ("family", "fs", "place"),
    [(FAMILIES[name], *example) for name, examples in EXAMPLES.items() for example in examples],
    ids=[f"{name}-{i}" for name, examples in EXAMPLES.items() for i in range(len(examples))],
)


# --- conformance ------------------------------------------------------------------------------------------------------


def test_every_family_has_examples_here() -> None:
    assert set(EXAMPLES) == set(FAMILIES)


@each_family
@every_row("rule", conformance.OF_FAMILY, ids=lambda rule: rule.__name__)
def test_every_family_keeps_the_rules_of_families(rule: Rule[Family], family: Family) -> None:
    assert FAMILIES[family.type] is family
    rule(family)


@each_family
def test_its_keys_are_keys_of_a_sweep_file(family: Family) -> None:
    assert family.keys <= FilesystemFile.model_fields.keys() - {"type"}


@each_example
@every_row("rule", conformance.OF_EXAMPLE, ids=lambda rule: rule.__name__)
def test_every_family_keeps_the_rules_of_its_steps(
    rule: Rule[conformance.FamilyCase], family: Family, fs: Filesystem, place: Place
) -> None:
    rule(conformance.FamilyCase(family, fs, place))


@each_example
def test_only_what_needs_a_special_kernel_is_ever_unavailable(family: Family, fs: Filesystem, place: Place) -> None:
    reason = family.unavailable(fs, PMFS)
    assert (reason is not None) == (family.type == "pmfs" or fs.pmbd is not None)
    assert reason is None or ("memmap=" in reason and "this box runs 6.1" in reason)
    assert family.unavailable(fs, known(kernel_filesystems=[family.type], kernel_features=["pmbd"])) is None


# --- the exact commands of each ---------------------------------------------------------------------------------------


def commands(fs: Filesystem, place: Place = PLACE) -> list[str]:
    return [shortened(step.argv) for step in FAMILIES[fs.type].steps(fs, place)]


def undos(fs: Filesystem, place: Place = PLACE) -> list[str]:
    return [shortened(step.undo) for step in reversed(FAMILIES[fs.type].steps(fs, place)) if step.undo]


def test_tmpfs_is_mounted_with_its_size() -> None:
    fs = made("tmpfs", size_bytes=GIB, options=("noatime", "huge=always"))
    assert commands(fs) == [
        "mkdir -p /mr/r1/mnt/f",
        "timed.sh mount -t tmpfs -o size=1073741824,noatime,huge=always mountlab /mr/r1/mnt/f",
    ]
    assert undos(fs) == ["umount /mr/r1/mnt/f", "rmdir /mr/r1/mnt/f"]
    assert FAMILIES["tmpfs"].own_options(fs) == ("size=1073741824",)


def test_shmfs_is_a_tmpfs_of_its_size_or_the_box_s_own_directory_in_memory() -> None:
    """Trap: `mount -t shm` is no file system of today, and a mount over /dev/shm hides what programs keep there."""
    assert commands(made("shmfs", size_bytes=GIB))[-1] == (
        "timed.sh mount -t tmpfs -o size=1073741824 shmfs /mr/r1/mnt/f"
    )
    assert FAMILIES["shmfs"].mounted_as(made("shmfs", size_bytes=GIB)) == "tmpfs"
    assert commands(made("shmfs")) == ["make-dir /dev/shm/mountlab-r1-f /mr/r1"]
    assert FAMILIES["shmfs"].mounted_as(made("shmfs")) == ""
    with pytest.raises(ParameterError, match="options need a mount of its own"):
        FAMILIES["shmfs"].check(made("shmfs", options=("noatime",)), where="f")


def test_ramfs_is_not_told_a_size_that_it_would_ignore() -> None:
    """Trap: ramfs takes size=, data=writeback, nobarrier and even nonsense, and returns 0."""
    fs = made("ramfs", size_bytes=GIB)
    assert commands(fs) == ["mkdir -p /mr/r1/mnt/f", "timed.sh mount -t ramfs mountlab /mr/r1/mnt/f"]
    assert commands(replace(fs, options=("noatime",)))[-1].endswith("mount -t ramfs -o noatime mountlab /mr/r1/mnt/f")


def test_ramfs_tells_of_no_free_space_and_fs_mark_makes_no_file_without() -> None:
    fs, family = made("ramfs", size_bytes=GIB), FAMILIES["ramfs"]
    assert "ramfs tells of none" in str(family.refuses(fs, replace(WORKLOAD, tool="fs_mark")))
    assert family.refuses(fs, WORKLOAD) is None


def test_hugetlbfs_reserves_its_pages_gives_them_back_and_takes_mmap_only() -> None:
    """Trap: hugetlbfs refuses write()."""
    fs, family = made("hugetlbfs", size_bytes=GIB), FAMILIES["hugetlbfs"]
    assert commands(fs) == [
        "borrow.sh hugepages /mr/r1 1073741824 ''",
        "mkdir -p /mr/r1/mnt/f",
        "timed.sh mount -t hugetlbfs -o size=1073741824 mountlab /mr/r1/mnt/f",
    ]
    assert undos(fs)[-1] == "borrow.sh back /mr/r1 setting huge:"
    large = replace(fs, options=("pagesize=1G",))
    assert commands(large)[0] == "borrow.sh hugepages /mr/r1 1073741824 1073741824"
    assert undos(large)[-1] == "borrow.sh back /mr/r1 setting huge:1073741824"
    assert family.target_of(fs, PLACE) == Target(kind="mapped")
    assert family.refuses(fs, replace(WORKLOAD, options={"ioengine": "mmap"})) is None
    assert "can only be mapped (fio with ioengine: mmap)" in str(family.refuses(fs, WORKLOAD))


EXT4 = f"mke2fs -t ext4 -F -q -U {UUID}"


def test_ext4_on_an_image_is_allocated_attached_made_and_mounted() -> None:
    """Trap: lazy inode table initialisation taxes the first minutes of results: off by default."""
    fs = made("ext4", image_bytes=GIB, options=("noatime",))
    assert commands(fs) == [
        "image.sh /mr/r1/img/f.img 1073741824 full",
        "losetup --find --show --direct-io=on /mr/r1/img/f.img",
        f"timed.sh {EXT4} -E lazy_itable_init=0,lazy_journal_init=0,nodiscard {{device}}",
        "mkdir -p /mr/r1/mnt/f",
        "timed.sh mount -t ext4 -o noatime {device} /mr/r1/mnt/f",
    ]
    assert undos(fs) == [
        "umount /mr/r1/mnt/f",
        "rmdir /mr/r1/mnt/f",
        "detach.sh {device} /mr/r1/img/f.img",
        "rm -f /mr/r1/img/f.img",
    ]
    assert commands(replace(fs, direct_io=False))[1] == "losetup --find --show --direct-io=off /mr/r1/img/f.img"
    assert commands(replace(fs, preallocate=False))[:3:2] == [
        "image.sh /mr/r1/img/f.img 1073741824 sparse",
        f"timed.sh {EXT4} -E lazy_itable_init=0,lazy_journal_init=0 {{device}}",
    ]


def test_an_image_in_a_directory_of_the_user_s_lies_in_one_of_our_own_there() -> None:
    fs, place = EXAMPLES["ext4"][-1]
    assert commands(fs, place)[:2] == [
        "make-dir /srv/mountlab-r1-f /mr/r1",
        "image.sh /srv/mountlab-r1-f/f.img 1073741824 full",
    ]
    assert undos(fs, place)[-1] == "remove-dir /srv/mountlab-r1-f"


def test_ext4_on_a_scratch_device_asks_the_guard_before_it_formats_and_again_as_it_does() -> None:
    fs = made("ext4", device="data")
    steps = FAMILIES["ext4"].steps(fs, SCRATCH)
    assert commands(fs, SCRATCH) == [
        "guard.sh /dev/disk/by-id/x '' 8:16,x",
        f"guard.sh /dev/disk/by-id/x '' 8:16,x timed.sh {EXT4} -E lazy_itable_init=0,lazy_journal_init=0 {{device}}",
        "mkdir -p /mr/r1/mnt/f",
        "timed.sh mount -t ext4 {device} /mr/r1/mnt/f",
    ]
    assert [(step.guard, step.keep) for step in steps[:2]] == [(True, "guard-device.txt"), (False, "mkfs.txt")]
    assert undos(fs, SCRATCH) == [
        "umount /mr/r1/mnt/f",
        "rmdir /mr/r1/mnt/f",
        "settle.sh /dev/disk/by-id/x 8:16,x",
    ]


def test_an_external_journal_is_made_first_with_the_same_block_size() -> None:
    """FACTS: mke2fs -O journal_dev -b 4096 J, then -J device=J, the same block size in both."""
    fs = made("ext4", image_bytes=GIB, journal_image_bytes=64 * MIB, mkfs=("-b", "1024", "-J", "fast_commit_size=1"))
    assert commands(fs)[2:7] == [
        "image.sh /mr/r1/img/f-journal.img 67108864 full",
        "losetup --find --show --direct-io=on /mr/r1/img/f-journal.img",
        f"timed.sh mke2fs -O journal_dev -F -q -b 1024 -U {JOURNAL_UUID} {{journal}}",
        f"timed.sh {EXT4} -b 1024 -E lazy_itable_init=0,lazy_journal_init=0,nodiscard "
        "-J fast_commit_size=1,device={journal} {device}",
        "mkdir -p /mr/r1/mnt/f",
    ]
    on_devices = commands(made("ext4", device="data", journal_device="j"), SCRATCH)
    assert on_devices[1] == "guard.sh /dev/disk/by-id/j '' 8:32"
    assert on_devices[2].startswith("guard.sh /dev/disk/by-id/j '' 8:32 timed.sh mke2fs -O journal_dev")
    assert "journal_image" not in FAMILIES["ext2"].keys


@every_row(
    ("mkfs", "expected"),
    [
        (("-O", "^has_journal"), "-O ^has_journal -E lazy_itable_init=0,lazy_journal_init=0,nodiscard"),
        (("-E", "stride=4"), "-E stride=4,lazy_itable_init=0,lazy_journal_init=0,nodiscard"),
        (("-E", "lazy_itable_init=1"), "-E lazy_itable_init=1,lazy_journal_init=0,nodiscard"),
        (("-E", "discard"), "-E discard,lazy_itable_init=0,lazy_journal_init=0"),
        (
            ("-b", "1024", "-E", "a=1", "-E", "b=2,c"),
            "-b 1024 -E a=1,b=2,c,lazy_itable_init=0,lazy_journal_init=0,nodiscard",
        ),
    ],
)
def test_the_users_options_of_mkfs_win_and_ours_are_merged_into_one_e(mkfs: tuple[str, ...], expected: str) -> None:
    """mke2fs heeds only the last -E."""
    assert commands(made("ext4", image_bytes=GIB, mkfs=mkfs))[2] == f"timed.sh {EXT4} {expected} {{device}}"


def test_xfs_carries_our_uuid_and_its_log_may_lie_outside() -> None:
    fs = made("xfs", image_bytes=GIB, mkfs=("-m", "reflink=0", "-d", "su=64k,sw=2"), options=("noatime",))
    assert commands(fs)[2] == f"timed.sh mkfs.xfs -f -q -K -d su=64k,sw=2 -m reflink=0,uuid={UUID} {{device}}"
    outside = commands(replace(fs, mkfs=("-l", "size=64m"), journal_image_bytes=80 * MIB))
    assert outside[4] == (f"timed.sh mkfs.xfs -f -q -K -m uuid={UUID} -l size=64m,logdev={{journal}} {{device}}")
    assert outside[6] == "timed.sh mount -t xfs -o logdev={journal},noatime {device} /mr/r1/mnt/f"


def test_the_data_of_an_xfs_may_lie_on_a_realtime_device() -> None:
    fs = made("xfs", image_bytes=GIB, realtime_image_bytes=GIB // 2, mkfs=("-d", "agcount=2", "-r", "extsize=64k"))
    assert commands(fs)[2:6] == [
        "image.sh /mr/r1/img/f-realtime.img 536870912 full",
        "losetup --find --show --direct-io=on /mr/r1/img/f-realtime.img",
        f"timed.sh mkfs.xfs -f -q -K -m uuid={UUID} -d agcount=2,rtinherit=1 "
        "-r extsize=64k,rtdev={realtime} {device}",
        "mkdir -p /mr/r1/mnt/f",
    ]
    assert commands(fs)[6] == "timed.sh mount -t xfs -o rtdev={realtime} {device} /mr/r1/mnt/f"
    both = commands(replace(fs, mkfs=(), journal_image_bytes=80 * MIB))
    assert both[-1] == "timed.sh mount -t xfs -o logdev={journal},rtdev={realtime} {device} /mr/r1/mnt/f"
    family = FAMILIES["xfs"]
    assert family.evidence_devices(fs) == ("{device}", "{realtime}")
    capacity = family.capacity_bytes(fs)
    assert capacity is not None
    assert 0.9 < capacity / (GIB // 2) < 1
    assert "realtime" in str(family.refuses_state(fs, State(name="aged", fill=0.5)))
    assert "cannot share blocks" in str(family.refuses(fs, replace(WORKLOAD, tool="reflink")))


@every_row(
    ("given", "words"),
    [
        ({"mkfs": ("-r", "extsize=64k")}, "xfs has no realtime device here"),
        ({"mkfs": ("-d", "rtinherit=1")}, "xfs has no realtime device here"),
        ({"realtime_image_bytes": MIB}, "too small for a realtime device"),
        (
            {"realtime_image_bytes": GIB, "mkfs": ("-m", "reflink=1")},
            "with a realtime device there can be no such option",
        ),
        ({"realtime_image_bytes": GIB, "mkfs": ("-d", "rtinherit=0")}, "no data would lie on it"),
        ({"realtime_image_bytes": GIB, "mkfs": ("-r", "rtdev=sda")}, "not options for mkfs.xfs"),
        ({"realtime_image_bytes": GIB, "mkfs": ("-r", "name=sda")}, "not options for mkfs.xfs"),
    ],
)
def test_what_an_xfs_cannot_have_of_a_realtime_device_is_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(ParameterError) as refused:
        FAMILIES["xfs"].check(made("xfs", image_bytes=GIB, **given), where="filesystems.f")
    assert words in " ".join(str(refused.value).split())


def test_btrfs_carries_our_uuid_and_keeps_the_blocks_of_its_image() -> None:
    fs = made("btrfs", image_bytes=GIB, mkfs=("-d", "single", "-m", "dup"), options=("compress=zstd",))
    assert commands(fs)[2] == f"timed.sh mkfs.btrfs -f -q -U {UUID} -K -d single -m dup {{device}}"
    assert "-K" not in commands(replace(fs, preallocate=False))[2]


def test_f2fs_carries_our_uuid_keeps_the_blocks_of_its_image_and_names_further_devices() -> None:
    fs = made("f2fs", image_bytes=GIB, mkfs=("-s", "2"), options=("background_gc=off",))
    assert commands(fs)[2] == f"timed.sh mkfs.f2fs -f -q -U {UUID} -t 0 -s 2 {{device}}"
    assert "-t" not in commands(replace(fs, preallocate=False))[2].split()
    assert commands(replace(fs, mkfs=("-t", "1")))[2].split().count("-t") == 1
    several = commands(replace(fs, mkfs=(), members=3))
    assert several[6] == f"timed.sh mkfs.f2fs -f -q -U {UUID} -t 0 -c {{member2}} -c {{member3}} {{device}}"
    assert several[8] == "timed.sh mount -t f2fs -o background_gc=off {device} /mr/r1/mnt/f"


@every_row(
    ("mkfs", "blocks"),
    [((), 222208), (("-o", "5"), 221184), (("-s", "2", "-z", "2"), 203776)],
)
def test_what_an_f2fs_holds_is_without_what_mkfs_sets_aside(mkfs: tuple[str, ...], blocks: int) -> None:
    """user_block_count of f2fs-tools 1.15 on 1 GiB: files get nearly all of it, and never more."""
    capacity = FAMILIES["f2fs"].capacity_bytes(made("f2fs", image_bytes=GIB, mkfs=mkfs))
    assert capacity is not None
    assert 0.9 < capacity / (blocks * 4096) <= 1


@every_row(
    ("given", "words"),
    [
        ({"device": "a", "more_devices": ("b",)}, "f2fs leaves no mark on further devices"),
        ({"image_bytes": 64 * MIB, "members": 9}, "f2fs lies on eight devices at most"),
        ({"image_bytes": GIB, "mkfs": ("-o", "x")}, "a share in percent, 0 to 99"),
        ({"image_bytes": GIB, "mkfs": ("-o", "120")}, "a share in percent, 0 to 99"),
        ({"image_bytes": GIB, "mkfs": ("-s", "0")}, "a whole number from 1"),
        ({"image_bytes": GIB, "mkfs": ("-w", "1000")}, "512, 1024, 2048 or 4096"),
        ({"image_bytes": GIB, "mkfs": ("-t", "2")}, "0 or 1"),
        ({"image_bytes": GIB, "mkfs": ("-c", "dev")}, "not options for mkfs.f2fs"),
        ({"image_bytes": GIB, "mkfs": ("-l", "label")}, "not options for mkfs.f2fs"),
        ({"image_bytes": 128 * MIB, "mkfs": ("-s", "16")}, "f2fs would set all of it aside for cleaning"),
        ({"image_bytes": 32 * MIB}, "too small for f2fs"),
    ],
)
def test_what_f2fs_cannot_be_made_on_or_with_is_refused(given: dict[str, object], words: str) -> None:
    with pytest.raises(ParameterError) as refused:
        FAMILIES["f2fs"].check(made("f2fs", **given), where="filesystems.f")
    assert words in str(refused.value)


def test_f2fs_made_without_compression_foresees_that_the_kernel_ignores_it() -> None:
    fs = made("f2fs", image_bytes=GIB, options=("compress_algorithm=zstd", "compress_extension=log"))
    foreseen = FAMILIES["f2fs"].foreseen(fs, PMFS)
    assert set(foreseen) == {"compress_algorithm=zstd", "compress_extension=log"}
    assert all("mkfs makes no compression" in why for why in foreseen.values())
    assert FAMILIES["f2fs"].foreseen(replace(fs, mkfs=("-O", "extra_attr,compression")), PMFS) == {}


def test_a_tunable_is_set_after_the_mount_and_given_back_before_it_is_undone() -> None:
    fs = made("ext4", image_bytes=GIB, tunables={"inode_readahead_blks": "4096", "queue/scheduler": "none"})
    assert commands(fs)[-2:] == [
        "borrow.sh setting /mr/r1 fs:ext4:{device}:inode_readahead_blks 4096",
        "borrow.sh setting /mr/r1 queue:{device}:scheduler none",
    ]
    assert undos(fs)[:3] == [
        "borrow.sh back /mr/r1 setting queue:{device}:scheduler",
        "borrow.sh back /mr/r1 setting fs:ext4:{device}:inode_readahead_blks",
        "umount /mr/r1/mnt/f",
    ]
    by_uuid = commands(made("btrfs", image_bytes=GIB, tunables={"commit_stats": "1"}))[-1]
    assert by_uuid == f"borrow.sh setting /mr/r1 fs:btrfs:{UUID}:commit_stats 1"


def test_a_zram_device_is_borrowed_and_given_back() -> None:
    """FACTS: the algorithm before disksize; borrow.sh does, tests/live/test_borrow.py shows it."""
    fs = made("ext4", zram_bytes=GIB, zram_algorithm="lz4")
    assert commands(fs)[0] == "borrow.sh zram /mr/r1 1073741824 lz4"
    assert undos(fs)[-1] == "borrow.sh back /mr/r1 zram {device}"


def test_raw_marks_the_device_links_it_and_leaves_the_mark_alone() -> None:
    fs, family = made("raw", device="d"), FAMILIES["raw"]
    assert commands(fs, SCRATCH)[1:] == [
        "guard.sh /dev/disk/by-id/x '' 8:16,x timed.sh "
        f"mke2fs -q -F -t ext2 -b 1024 -E nodiscard -U {UUID} {{device}} 1024",
        "mkdir -p /mr/r1/mnt/f",
        "ln -s {device} /mr/r1/mnt/f.device",
    ]
    assert family.target_of(fs, PLACE) == Target(kind="device", device="/mr/r1/mnt/f.device")
    assert family.capacity_bytes(made("raw", image_bytes=GIB)) == GIB - MARK_BYTES
    assert family.refuses(fs, WORKLOAD) is None
    assert "a raw device has none" in str(family.refuses(fs, replace(WORKLOAD, tool="fs_mark")))


def test_an_overlay_has_its_layers_on_a_file_system_made_for_it() -> None:
    fs = made("overlay", over=BELOW)
    assert commands(fs)[4:] == [
        "timed.sh mount -t ext4 -o noatime {device} /mr/r1/mnt/f.below",
        "evidence.sh /mr/r1/mnt/f.below {device}",
        "mkdir /mr/r1/mnt/f.below/lower /mr/r1/mnt/f.below/upper /mr/r1/mnt/f.below/work",
        "mkdir -p /mr/r1/mnt/f",
        "timed.sh mount -t overlay -o lowerdir=/mr/r1/mnt/f.below/lower,upperdir=/mr/r1/mnt/f.below/upper,"
        "workdir=/mr/r1/mnt/f.below/work mountlab /mr/r1/mnt/f",
    ]
    for below in (None, made("raw", image_bytes=GIB), fs):
        with pytest.raises(ParameterError, match="an overlay lies over another file system"):
            FAMILIES["overlay"].check(made("overlay", over=below), where="f")


def test_pmfs_is_formatted_by_its_mount_with_the_address_first() -> None:
    """FACTS: mount -t pmfs -o physaddr=0x100000000,init=2G none DIR: physaddr must come first; init= formats."""
    fs, place = EXAMPLES["pmfs"][0]
    assert commands(replace(fs, options=("jsize=4M",)), place) == [
        "guard_memory.sh 0x100000000 2147483648",
        "mkdir -p /mr/r1/mnt/f",
        "timed.sh mount -t pmfs -o physaddr=0x100000000,init=2147483648,jsize=4M none /mr/r1/mnt/f",
    ]
    assert FAMILIES["pmfs"].steps(fs, place)[0].guard


def test_pmbd_is_a_module_that_is_loaded_with_its_mode_and_unloaded() -> None:
    """FACTS: modprobe pmbd mode="pmbd16;hmo8;..." gives the block device /dev/pma."""
    fs = made("ext4", pmbd="pmbd16;hmo8;hms16;pmapY;ntsY;wbY;")
    assert commands(fs)[:3] == [
        "borrow.sh module /mr/r1 pmbd mode=pmbd16;hmo8;hms16;pmapY;ntsY;wbY;",
        "readlink -e /dev/pma",
        f"timed.sh {EXT4} -E lazy_itable_init=0,lazy_journal_init=0 {{device}}",
    ]
    assert undos(fs)[-1] == "borrow.sh back /mr/r1 module pmbd"


def test_a_bind_mount_is_of_a_directory_of_our_own() -> None:
    fs = made("bind", path="/srv/data", options=("noatime",))
    assert commands(fs) == [
        "make-dir /srv/data/mountlab-r1-f /mr/r1",
        "mkdir -p /mr/r1/mnt/f",
        "timed.sh mount --bind -o noatime /srv/data/mountlab-r1-f /mr/r1/mnt/f",
    ]
    assert FAMILIES["bind"].mounted_as(fs) == "*"
    with pytest.raises(ParameterError, match="a bind mount applies the options of a mount point only"):
        FAMILIES["bind"].check(replace(fs, options=("noatime", "data=journal")), where="f")


def test_a_directory_is_measured_in_one_of_our_own_inside_it() -> None:
    fs = Filesystem(name="f", type="dir", path="/srv/data")
    assert commands(fs) == ["make-dir /srv/data/mountlab-r1-f /mr/r1"]
    assert undos(fs) == ["remove-dir /srv/data/mountlab-r1-f"]
    assert FAMILIES["dir"].root_of(fs, PLACE) == "/srv/data/mountlab-r1-f"
    assert FAMILIES["dir"].root_of(replace(fs, path=None), PLACE) == "/mr/r1/f"


def test_making_and_removing_a_directory_for_real_leaves_the_neighbours(tmp_path: Path) -> None:
    run_dir, data = tmp_path / "r1", tmp_path / "data"
    run_dir.mkdir()
    data.mkdir()
    (data / "precious").write_text("x")
    place = Place(run_id="r1", run_dir=str(run_dir), mountpoint=str(run_dir / "mnt"), image="")
    (step,) = FAMILIES["dir"].steps(Filesystem(name="f", type="dir", path=str(data)), place)
    ours = data / "mountlab-r1-f"
    assert step.undo is not None
    subprocess.run(step.argv, check=True)
    assert (ours / ".mountlab").exists()
    assert (run_dir / "elsewhere").read_text() == f"{ours}\n"
    assert subprocess.run(step.argv, check=False, capture_output=True).returncode != 0, "made twice"
    (ours / ".mountlab").unlink()
    assert subprocess.run(step.undo, check=False).returncode != 0, "removed what had no marker"
    assert ours.exists()
    (ours / ".mountlab").touch()
    subprocess.run(step.undo, check=True)
    assert [path.name for path in data.iterdir()] == ["precious"]


def test_an_image_holds_less_than_its_size() -> None:
    ext4 = FAMILIES["ext4"]
    assert ext4.capacity_bytes(Filesystem(name="f", type="ext4", image_bytes=GIB)) == int(GIB * 0.9) - 64 * 1024**2
    assert ext4.capacity_bytes(Filesystem(name="f", type="ext4", image_bytes=16 * 1024**2)) > 8 * 1024**2
    assert ext4.capacity_bytes(Filesystem(name="f", type="ext4", device="x")) is None


@pytest.mark.parametrize("type_", ["tmpfs", "ramfs"])
def test_memory_without_a_bound_is_refused(type_: str) -> None:
    with pytest.raises(ParameterError, match=f"{type_} needs a size") as caught:
        FAMILIES[type_].check(Filesystem(name="f", type=type_), where="filesystems.f")
    assert caught.value.where == "filesystems.f.size"
    assert "all the memory of the box" in caught.value.next_step


# --- the scripts ------------------------------------------------------------------------------------------------------

SCRIPTS = sorted(Path(str(files("mountlab"))).rglob("*.sh"))


@pytest.mark.requires_program("shellcheck")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
@pytest.mark.long
def test_shellcheck_finds_nothing_in_our_scripts(script: Path) -> None:
    # SC2154, SC2034, SC2317 and SC2329: variables and functions that Python puts in front of the text.
    done = subprocess.run(
        ["shellcheck", "-s", "sh", "-S", "warning", "-e", "SC2154,SC2034,SC2317,SC2329", str(script)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


def test_the_evidence_of_a_directory_is_read_on_a_real_machine(tmp_path: Path) -> None:
    argv = evidence_step(str(tmp_path)).argv
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    headings = [line for line in done.stdout.splitlines() if line.startswith("==> ")]
    assert headings[0] == "==> st_dev <=="
    assert {"==> mountinfo <==", "==> df <==", "==> loops <=="} <= set(headings)
