"""What mkfs was asked for, read back from dumps recorded on a real machine."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mountlab.filesystems.evidence import parts_by_heading
from mountlab.filesystems.superblock import proved_by_difference, read_back, settings_of
from rows import every_row

DATA = Path(__file__).parents[1] / "data" / "evidence"


def parts(name: str) -> dict[str, str]:
    return parts_by_heading((DATA / name / "evidence.txt").read_text())


def told(
    kind: str, words: str, now: dict[str, str], plain: dict[str, str] | None = None, again: dict[str, str] | None = None
) -> list[tuple[str, str, str]]:
    return [(option, *row) for option, row in read_back(kind, tuple(words.split()), now, plain or {}, again or {})]


# --- words ------------------------------------------------------------------------------------------------------------


def test_lists_are_taken_apart_and_other_words_are_pairs() -> None:
    words = "-b -2048 -E stride=16,nodiscard -O ^resize_inode,bigalloc --csum=xxhash -M -n 4k"
    assert [each.text for each in settings_of(tuple(words.split()), lists="EO")] == [
        "-b -2048",
        "-E stride=16",
        "-E nodiscard",
        "-O ^resize_inode",
        "-O bigalloc",
        "--csum xxhash",
        "-M",
        "-n 4k",
    ]


LETTERS = [f"-{letter}" for letter in "bCdeEgGiIJlmnNOrRsT"]
VALUES = ["size=", "su=", "sw=x", "sunit=", "swidth=-1", "version=", "lazy_itable_init", "root_owner", "²", "=,="]
words_of_a_mkfs = st.lists(st.sampled_from(LETTERS + VALUES) | st.text(max_size=8), max_size=6)


@pytest.mark.slow
@given(words_of_a_mkfs, st.sampled_from(["ext4", "xfs", "btrfs", "f2fs"]))
def test_no_words_stop_it(words: list[str], fstype: str) -> None:
    for now in ({}, parts("ext4-journal"), parts("xfs-dax"), parts("btrfs-nodatacow"), parts("f2fs-super")):
        rows = read_back(fstype, tuple(words), now, {}, {})
        assert {state for _, (state, _) in rows} <= {"in effect", "changed", "ignored", "not visible"}


@every_row("kind", ["ext4", "xfs", "btrfs", "f2fs", "made_up"])
def test_without_a_dump_nothing_is_visible(kind: str) -> None:
    assert [state for _, state, _ in told(kind, "-b 4096 -m 1", {})] == ["not visible", "not visible"]


# --- mke2fs: 640 MiB made with -E stride=16,stripe_width=64 -----------------------------------------------------------


@every_row(
    ("words", "state", "says"),
    [
        ("-b 4096", "in effect", "block size: 4096"),
        ("-b 4k", "in effect", "block size: 4096"),
        ("-b 1024", "changed", "block size: 4096"),
        ("-I 256", "in effect", "inode size: 256"),
        ("-m 5", "in effect", "reserved block count: 8192 of 163840"),
        ("-m 1", "changed", "reserved block count: 8192 of 163840"),
        ("-m some", "not visible", "nothing"),
        ("-i 16384", "in effect", "one inode for 16384 bytes"),
        ("-i 65536", "changed", "one inode for 16384 bytes"),
        ("-N 40950", "in effect", "inode count: 40960"),
        ("-N 100", "changed", "inode count: 40960"),
        ("-J size=16", "in effect", "total journal size: 16M"),
        ("-J size=8", "changed", "total journal size: 16M"),
        ("-J device=/dev/x", "ignored", "no journal device"),
        ("-e continue", "in effect", "errors behavior: Continue"),
        ("-e remount-ro", "changed", "errors behavior: Continue"),
        ("-G 16", "in effect", "flex block group size: 16"),
        ("-O extents", "in effect", "extents is a feature"),
        ("-O bigalloc", "ignored", "bigalloc is not a feature"),
        ("-O ^bigalloc", "in effect", "bigalloc is not a feature"),
        ("-O ^has_journal", "ignored", "has_journal is a feature"),
        ("-E stride=16", "in effect", "raid stride: 16"),
        ("-E stripe_width=64", "in effect", "raid stripe width: 64"),
        ("-E stripe-width=32", "changed", "raid stripe width: 64"),
        ("-E desc_size=64", "in effect", "group descriptor size: 64"),
        ("-E root_owner=0:0", "in effect", "the root directory is of 0:0"),
        ("-E root_owner=5:6", "changed", "the root directory is of 0:0"),
        ("-E lazy_itable_init=0", "ignored", "inode tables zeroed in 0 of 5 groups"),
        ("-E lazy_itable_init=1", "in effect", "inode tables zeroed in 0 of 5 groups"),
        ("-E lazy_journal_init=0", "not visible", "nothing"),
        ("-T largefile", "not visible", "nothing"),
        ("-r 1", "in effect", "filesystem revision #: 1 (dynamic)"),
    ],
)
def test_mke2fs_is_read_back_from_dumpe2fs(words: str, state: str, says: str) -> None:
    assert told("ext4", words, parts("ext4-journal")) == [(words, state, says)]


def test_inode_tables_that_a_thread_still_zeroes_are_told() -> None:
    """Trap: lazy inode table initialisation still running."""
    now = {**parts("ext4-journal"), "itable": "5 2"}
    assert told("ext4", "-E lazy_itable_init=0", now)[0][1:] == ("ignored", "inode tables zeroed in 2 of 5 groups")
    done = {**now, "itable": "5 5"}
    assert told("ext4", "-E lazy_itable_init=0", done)[0][1] == "in effect"
    assert told("ext4", "-E lazy_itable_init=1", done)[0][1] == "not visible"


def test_a_file_system_that_marks_no_group_has_all_its_inode_tables() -> None:
    recorded = parts("ext4-journal")
    now = {**recorded, "itable": "5 0", "dumpe2fs": recorded["dumpe2fs"].replace(" metadata_csum", "")}
    assert told("ext4", "-E lazy_itable_init=0", now)[0][1:] == ("in effect", "no group is marked as not zeroed")


def test_what_nobody_knows_by_name_is_looked_for_in_the_differences() -> None:
    plain = {"dumpe2fs": "Block size: 4096\nSome thing: 1\nFree blocks: 9\nFilesystem UUID: a"}
    now = {"dumpe2fs": "Block size: 4096\nSome thing: 7\nFree blocks: 8\nFilesystem UUID: b"}
    assert told("ext4", "-E new_word=7 -E other=3", now, plain, plain) == [
        ("-E new_word=7", "in effect", "some thing: 7"),
        ("-E other=3", "not visible", "nothing"),
    ]
    assert told("ext4", "-E new_word", now, plain, plain) == [("-E new_word", "in effect", "shown as some thing: 7")]


def test_what_differs_between_two_makings_without_the_option_proves_nothing() -> None:
    """Trap: fsid, which differs at every mkfs, was taken for the proof of -R quota."""
    dump = "fsid {}\nsome_id {}\nsectorsize 4096\n"
    plain, again, now = ({"dump-super": dump.format(f"{n}-{n}", n)} for n in (1, 2, 3))
    assert told("btrfs", "--nodiscard", now, plain, again) == [("--nodiscard", "not visible", "nothing")]
    larger = {"dump-super": now["dump-super"].replace("4096", "8192")}
    assert told("btrfs", "--made-up", larger, plain, again)[0][1:] == ("in effect", "shown as sectorsize: 8192")


def test_a_flag_that_the_kernel_writes_with_its_next_commit_proves_nothing() -> None:
    """mkfs.btrfs sets 0x341; the kernel adds BIG_METADATA when it mounts, and a sync of anybody writes it."""
    made = {
        "dump-super": "fsid 1-1\nincompat_flags 0x341\n\t\t( MIXED_BACKREF |\n\t\t EXTENDED_IREF |\n\t\t NO_HOLES )\n"
    }
    text = made["dump-super"]
    synced = {"dump-super": text.replace("0x341", "0x361").replace(" EXT", " BIG_METADATA |\n\t\t EXT")}
    assert told("btrfs", "--nodiscard", synced, made, made) == [("--nodiscard", "not visible", "nothing")]
    larger = {"dump-super": synced["dump-super"].replace("NO_HOLES", "RAID1C34")}
    ((_, state, says),) = told("btrfs", "--made-up", larger, made, made)
    assert (state, says) == ("in effect", "shown as features: EXTENDED_IREF RAID1C34")


def test_a_control_that_was_made_once_proves_no_difference() -> None:
    """Runs of earlier versions have no second making: it is said, and nothing fails."""
    plain, now = {"dumpe2fs": "Some thing: 1"}, {"dumpe2fs": "Some thing: 7"}
    ((_, state, says),) = told("ext4", "-E new_word", now, plain)
    assert state == "not visible"
    assert "made once only" in says


@every_row(
    ("fstype", "words", "wanted"),
    [
        ("ext4", "-b 4096 -O ^has_journal -E stride=16,stripe_width=64 -m 1", False),
        ("ext4", "-E packed_meta_blocks=1", True),
        ("xfs", "-d su=64k,sw=4 -i size=1024 -m reflink=0,crc=1 -n size=8192 -l size=64m,su=32k", False),
        ("xfs", "-d agsize=64m -m made_up=1", True),
        ("btrfs", "-m single -d dup -n 4096 --csum xxhash -O no-holes -R quota", False),
        ("btrfs", "-K", True),
        ("ext4", "", False),
        ("made_up", "-x", False),
    ],
)
def test_a_second_making_is_wanted_only_where_a_difference_may_be_the_proof(
    fstype: str, words: str, wanted: bool
) -> None:
    assert proved_by_difference(fstype, tuple(words.split())) == wanted


def test_quota_of_btrfs_is_read_from_sys() -> None:
    on = {**parts("btrfs-control"), "/sys/fs/btrfs/a-b/qgroups/enabled": "1\n"}
    assert told("btrfs", "-R quota", on) == [("-R quota", "in effect", "qgroups/enabled: 1")]
    assert told("btrfs", "-O ^quota", on)[0][1] == "ignored"
    assert told("btrfs", "-R quota", parts("btrfs-control")) == [("-R quota", "not visible", "nothing")]


# --- mkfs.xfs: 640 MiB made with -d su=64k,sw=4 -----------------------------------------------------------------------


@every_row(
    ("words", "state", "says"),
    [
        ("-d su=64k", "in effect", "data: sunit=16 blks"),
        ("-d su=32k", "changed", "data: sunit=16 blks"),
        ("-d sunit=128", "in effect", "data: sunit=16 blks"),
        ("-d swidth=512", "in effect", "data: swidth=64 blks"),
        ("-d sw=4", "in effect", "data: sunit=16 swidth=64 blks"),
        ("-d sw=5", "changed", "data: sunit=16 swidth=64 blks"),
        ("-d sw=many", "not visible", "nothing"),
        ("-d noalign", "changed", "data: sunit=16"),
        ("-d agcount=8", "in effect", "meta-data: agcount=8"),
        ("-b size=4k", "in effect", "data: bsize=4096"),
        ("-i size=512", "in effect", "meta-data: isize=512"),
        ("-i maxpct=25", "in effect", "data: imaxpct=25"),
        ("-i sparse=0", "changed", "meta-data: sparse=1"),
        ("-s size=512", "in effect", "meta-data: sectsz=512"),
        ("-m reflink=1", "in effect", "meta-data: reflink=1"),
        ("-m rmapbt=1", "changed", "meta-data: rmapbt=0"),
        ("-l size=64m", "in effect", "log: blocks=16384 blks"),
        ("-l size=16384b", "in effect", "log: blocks=16384 blks"),
        ("-l version=2", "in effect", "log: version=2"),
        ("-l lazy-count=1", "in effect", "log: lazy-count=1"),
        ("-l logdev=/dev/x", "ignored", "log: internal log"),
        ("-l internal=1", "in effect", "log: internal log"),
        ("-n size=4096", "in effect", "naming: bsize=4096"),
        ("-n version=ci", "changed", "naming: ascii-ci=0"),
        ("-n ftype=1", "in effect", "naming: ftype=1"),
        ("-m made_up=1", "not visible", "nothing"),
    ],
)
def test_mkfs_xfs_is_read_back_from_xfs_info(words: str, state: str, says: str) -> None:
    assert told("xfs", words, parts("xfs-dax")) == [(words, state, says)]


# --- mkfs.btrfs: 640 MiB made with -m single -d dup -------------------------------------------------------------------


@every_row(
    ("words", "state", "says"),
    [
        ("-m single", "in effect", "metadata, single"),
        ("-m dup", "changed", "metadata, single"),
        ("-d DUP", "in effect", "data, DUP"),
        ("-n 16k", "in effect", "nodesize: 16384"),
        ("-s 4096", "in effect", "sectorsize: 4096"),
        ("--csum crc32c", "in effect", "csum_type: 0 (crc32c)"),
        ("--csum xxhash", "changed", "csum_type: 0 (crc32c)"),
        ("-O no-holes", "in effect", "no-holes is a feature"),
        ("-O extref", "in effect", "extref is a feature"),
        ("-O ^no-holes", "ignored", "no-holes is a feature"),
        ("-R free-space-tree", "in effect", "free-space-tree is a feature"),
        ("-O quota", "not visible", "nothing"),
        ("-K", "not visible", "nothing"),
    ],
)
def test_mkfs_btrfs_is_read_back_from_its_super_block(words: str, state: str, says: str) -> None:
    assert told("btrfs", words, parts("btrfs-nodatacow")) == [(words, state, says)]


# --- mkfs.f2fs: 1 GiB made with -O extra_attr,inode_checksum,sb_checksum,compression,casefold -e xyz -E foo -o 20 -s 2
# --- -z 2 -R 5:6 -C utf8:strict -i


@every_row(
    ("words", "state", "says"),
    [
        ("-O compression", "in effect", "compression is a feature"),
        ("-O quota", "ignored", "quota is not a feature"),
        ("-e xyz", "in effect", "cold extensions: mp wm"),
        ("-e abc", "ignored", "cold extensions: mp wm"),
        ("-E foo", "in effect", "hot extensions: db vmdk vdi qcow2 foo"),
        ("-o 20", "in effect", "128 of 500 segments are set aside, 36 of them"),
        ("-o 5", "changed", "128 of 500 segments"),
        ("-o 0", "not visible", "nothing"),
        ("-s 2", "in effect", "segs_per_sec: 2"),
        ("-z 4", "changed", "secs_per_zone: 2"),
        ("-w 512", "in effect", "sector size: 512"),
        ("-R 5:6", "in effect", "the root directory is of 5:6"),
        ("-C utf8:strict", "in effect", "encoding: utf8:strict"),
        ("-C utf8", "changed", "encoding: utf8:strict"),
        ("-i", "in effect", "large bitmap: 1"),
        ("-t 0", "not visible", "nothing"),
        ("-a 1", "not visible", "nothing"),
    ],
)
def test_mkfs_f2fs_is_read_back_from_the_bytes_of_its_super_block(words: str, state: str, says: str) -> None:
    ((option, found, why),) = told("f2fs", words, parts("f2fs-super"))
    assert (option, found) == (words, state)
    assert says in why


@every_row("dump", ["", "0000000 zz", "garbage", "0001024 10 20 f5", "*", "9" * 40 + " 00"])
def test_a_super_block_of_f2fs_that_cannot_be_read_tells_nothing(dump: str) -> None:
    assert told("f2fs", "-s 2", {"f2fs-super": dump}) == [("-s 2", "not visible", "nothing")]
