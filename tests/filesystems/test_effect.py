"""What was asked against what is in effect, on text recorded from real mounts and on made-up text."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mountlab.core.findings import OptionEvidence
from mountlab.core.model import Filesystem
from mountlab.filesystems.effect import effects
from mountlab.filesystems.overlay import BELOW
from mountlab.filesystems.read_back import options_in_effect
from rows import every_row

DATA = Path(__file__).parents[1] / "data" / "evidence"
QUEUE = "/sys/class/block/loop0/queue"


def recorded(name: str) -> dict[str, str]:
    """All that was kept of one mount."""
    return {file.name: file.read_text() for file in (DATA / name).iterdir()}


def made_up(
    shown: str, *, fstype: str = "ext4", log: str = "", strict: str = "refuses", more: str = ""
) -> dict[str, str]:
    """The evidence of a mount that shows these options."""
    line = f"1 0 7:0 / /m rw - {fstype} /dev/loop0 {shown}" if shown else ""
    evidence = (
        f"==> st_dev <==\n1792\n==> root <==\n755 0 0 root root\n==> device <==\n7:0\n==> mountinfo <==\n{line}\n"
        f"==> df <==\nx 100 1 99 1% /m\n==> loops <==\n==> name <==\nloop0\n{more}"
    )
    return {"evidence.txt": evidence, "mount.txt": f"==> kernel <==\n{log}\n", "strict.txt": f"{strict}\n"}


def judge(
    asked: str, now: dict[str, str], plain: dict[str, str] | None, *, kind: str = "ext4", **more: object
) -> list[OptionEvidence]:
    return effects(Filesystem(name=kind, type=kind, options=(asked,) if asked else (), **more), now, plain)  # type: ignore[arg-type]


def told(rows: list[OptionEvidence]) -> list[tuple[str, str, str]]:
    return [(row.option, row.state, row.kernel_says) for row in rows]


# --- recorded mounts --------------------------------------------------------------------------------------------------


def test_what_the_kernel_adds_by_itself_is_told_from_what_was_asked_for() -> None:
    """Trap: data=journal brings nodelalloc, and O_DIRECT then goes through the page cache."""
    fs = Filesystem(
        name="journal",
        type="ext4",
        options=("data=journal", "noatime", "nobh"),
        mkfs=("-E", "stride=16,stripe_width=64"),
    )
    rows = effects(fs, recorded("ext4-journal"), recorded("ext4-control"))
    assert told(rows) == [
        ("data=journal", "in effect", "data=journal"),
        ("noatime", "in effect", "noatime"),
        ("nobh", "ignored", "EXT4-fs: Ignoring removed nobh option"),
        ("-E stride=16", "in effect", "raid stride: 16"),
        ("-E stripe_width=64", "in effect", "raid stripe width: 64"),
        ("", "added", "nodioread_nolock"),
        ("", "added", "nodelalloc"),
        ("", "added", "stripe=64"),
    ]
    assert {row.kind for row in rows} == {"mount", "mkfs"}
    assert {row.filesystem for row in rows} == {"journal"}


def test_dax_on_a_device_that_knows_none_is_changed_and_the_log_says_why() -> None:
    fs = Filesystem(name="xfs", type="xfs", options=("dax=always", "logbsize=256k"), mkfs=("-d", "su=64k,sw=4"))
    rows = effects(fs, recorded("xfs-dax"), recorded("xfs-control"))
    assert told(rows)[0] == (
        "dax=always",
        "changed",
        "dax=never; XFS (loop0): DAX unsupported by block device. Turning off DAX.",
    )
    assert told(rows)[1:4] == [
        ("logbsize=256k", "in effect", "logbsize=256k"),
        ("-d su=64k", "in effect", "data: sunit=16 blks"),
        ("-d sw=4", "in effect", "data: sunit=16 swidth=64 blks"),
    ]


def test_an_option_that_another_one_switches_off_is_not_said_to_be_in_effect() -> None:
    fs = Filesystem(name="b", type="btrfs", options=("nodatacow,compress=zstd",), mkfs=("-m", "single", "-d", "dup"))
    rows = {row.option: row for row in effects(fs, recorded("btrfs-nodatacow"), recorded("btrfs-control"))}
    assert [rows[option].state for option in ("nodatacow", "compress=zstd")] == ["ignored", "in effect"]
    assert "compress=zstd comes later" in rows["nodatacow"].kernel_says
    assert rows["-m single"].kernel_says == "metadata, single"
    assert rows["-d dup"].kernel_says == "data, DUP"


def test_ramfs_takes_every_word_and_heeds_what_the_kernel_does_for_all() -> None:
    """Trap: ramfs takes size=, data=writeback, even nonsense, and returns 0."""
    fs = Filesystem(name="r", type="ramfs", options=("size=64m", "data=writeback", "noatime"))
    states = [row.state for row in effects(fs, recorded("ramfs-anything"), recorded("ramfs-control"))]
    assert states == ["ignored", "ignored", "in effect"]


def test_options_of_ours_are_judged_before_the_users() -> None:
    fs = Filesystem(name="t", type="tmpfs", options=("mpol=interleave",))
    rows = effects(fs, recorded("tmpfs-sized"), recorded("tmpfs-control"), extra=("size=1000000",))
    assert told(rows) == [
        ("size=1000000", "in effect", "size=980k (rounded up to whole pages)"),
        ("mpol=interleave", "in effect", "mpol=interleave:0"),
    ]


@pytest.mark.parametrize("name", ["ext4", "tmpfs", "ramfs"])
def test_evidence_of_earlier_runs_is_still_read(name: str) -> None:
    """Recorded before there were controls, super block dumps and settings."""
    kept = {"evidence.txt": (DATA / f"{name}.txt").read_text()}
    fs = Filesystem(name=name, type=name, options=("relatime", "made_up"), mkfs=("-b", "4096"), tunables={"x": "1"})
    assert [row.state for row in effects(fs, kept)] == ["in effect", "not visible", "not visible", "not visible"]


# --- one option -------------------------------------------------------------------------------------------------------


@every_row(
    ("asked", "shown", "state", "says"),
    [
        ("size=64m", "rw,size=65536k", "in effect", "size=65536k"),
        ("size=67108864", "rw,size=65536k", "in effect", "size=65536k"),
        ("size=1g", "rw,size=65536k", "changed", "size=65536k"),
        ("size=50%", "rw,size=1234k", "in effect", "size=1234k"),
        ("size=1000", "rw,size=4k", "changed", "size=4k"),
        ("mode=0755", "rw,mode=755", "in effect", "mode=755"),
        ('opt="a,b"', 'rw,opt="a,b"', "changed", 'opt="a,b"'),
        ("noatime", "rw,noatime", "in effect", "noatime"),
        ("noatime", "rw,relatime", "ignored", "relatime"),
        ("atime", "rw,relatime", "in effect", "relatime"),
        ("atime", "rw,noatime", "ignored", "noatime"),
        ("strictatime", "rw,relatime", "ignored", "relatime"),
        ("strictatime", "rw", "in effect", "strictatime"),
        ("norelatime", "rw", "in effect", "strictatime"),
        ("norelatime", "rw,relatime", "ignored", "relatime"),
        ("nostrictatime", "rw,relatime", "in effect", "relatime"),
        ("nostrictatime", "rw", "ignored", "strictatime"),
        ("barrier=0", "rw,nobarrier", "in effect", "nobarrier"),
        ("barrier=1", "rw,barrier", "in effect", "barrier"),
        ("barrier=0", "rw,barrier", "changed", "barrier"),
        ("nobarrier", "rw,barrier", "ignored", "barrier"),
        ("barrier", "rw,nobarrier", "ignored", "nobarrier"),
        ("data=writeback", "rw,data=ordered", "changed", "data=ordered"),
        ("nonsense", "rw", "not visible", "nothing"),
        ("defaults", "rw", "in effect", "asks nothing of the kernel"),
        ("x-systemd.automount", "rw", "in effect", "asks nothing of the kernel"),
        ("ro", "rw", "ignored", "rw"),
        ("rw", "rw", "in effect", "rw"),
        ("ro", "ro", "in effect", "ro"),
        ("rw", "ro", "ignored", "ro"),
        ("suid", "rw", "in effect", "nosuid is absent"),
        ("suid", "rw,nosuid", "ignored", "nosuid"),
        ("nosuid", "rw", "ignored", "nosuid is absent"),
        ("async", "rw,sync", "ignored", "sync"),
        ("nolazytime", "rw", "in effect", "lazytime is absent"),
        ("delalloc", "rw,nodelalloc", "ignored", "nodelalloc"),
        ("nogrpid", "rw", "in effect", "grpid is absent"),
        ("sysvgroups", "rw", "in effect", "grpid is absent"),
        ("sysvgroups", "rw,grpid", "ignored", "grpid"),
        ("compress=zstd", "rw,compress=zstd:3", "in effect", "compress=zstd:3"),
        ("compress=zstd:99", "rw,compress=zstd:15", "changed", "compress=zstd:15"),
        ("compress", "rw,compress=zlib:3", "in effect", "compress=zlib:3"),
        ("dax", "rw,dax=never", "changed", "dax=never"),
        ("discard=sync", "rw,discard", "in effect", "discard"),
        ("rescue=all", "rw,rescue=a:b:c", "in effect", "rescue=a:b:c"),
        ("rescue=b:a", "rw,rescue=a:b", "in effect", "rescue=a:b"),
        ("lowerdir=/b:/a", "rw,lowerdir=/a:/b", "changed", "lowerdir=/a:/b"),
        ("mpol=bind:0,2", "rw,mpol=bind:0,2", "in effect", "mpol=bind:0,2"),
        ("thread_pool=0xc", "rw,thread_pool=12", "in effect", "thread_pool=12"),
        ("mode=755", "rw", "in effect", "the root directory has mode 755"),
        ("mode=700", "rw", "ignored", "the root directory has mode 755"),
        ("uid=root", "rw", "in effect", "the root directory has uid 0"),
        ("gid=5", "rw", "ignored", "the root directory has gid 0"),
    ],
)
def test_one_option_against_what_is_shown(asked: str, shown: str, state: str, says: str) -> None:
    (row,) = [row for row in judge(asked, made_up(shown), made_up("rw")) if row.state != "added"]
    assert (row.state, row.kernel_says) == (state, says)


def test_of_two_that_contradict_each_other_the_one_that_lost_is_told() -> None:
    rows = judge("data=journal,data=writeback", made_up("rw,data=writeback"), made_up("rw"))
    assert [row.state for row in rows] == ["changed", "in effect"]
    assert rows[0].kernel_says == "data=writeback, which was asked for too"
    (relatime, noatime) = judge("relatime,noatime", made_up("rw,noatime"), made_up("rw"))
    assert (relatime.state, noatime.state) == ("ignored", "in effect")
    assert relatime.kernel_says == "noatime, which was asked for too"


def test_an_opposite_that_only_the_control_shows_is_gone() -> None:
    (row,) = judge("nodiscard", made_up("rw"), made_up("rw,discard=async"))
    assert (row.state, row.kernel_says) == ("in effect", "discard=async is gone")


# --- words that mount(8) turns into flags -----------------------------------------------------------------------------


@every_row(
    ("asked", "shown", "found"),
    [
        ("user", "nosuid,nodev,noexec", [("user", "in effect", "nosuid, nodev, noexec")]),
        ("users", "nosuid,nodev,noexec", [("users", "in effect", "nosuid, nodev, noexec")]),
        ("owner", "nosuid,nodev", [("owner", "in effect", "nosuid, nodev")]),
        ("group", "nosuid,nodev", [("group", "in effect", "nosuid, nodev")]),
        ("user", "nosuid", [("user", "ignored", "nodev, noexec: absent")]),
        ("user=bob", "noatime", [("user=bob", "in effect", "asks nothing of the kernel"), ("", "added", "noatime")]),
        ("nouser", "rw", [("nouser", "in effect", "asks nothing of the kernel")]),
        ("nogroup", "rw", [("nogroup", "in effect", "asks nothing of the kernel")]),
        (
            "user,exec",
            "nosuid,nodev",
            [("user", "in effect", "nosuid, nodev"), ("exec", "in effect", "noexec is absent")],
        ),
        (
            "exec,user",
            "nosuid,nodev,noexec",
            [("exec", "ignored", "noexec, which user brings"), ("user", "in effect", "nosuid, nodev, noexec")],
        ),
        (
            "owner,suid,dev",
            "rw",
            [
                ("owner", "in effect", "asks nothing of the kernel"),
                ("suid", "in effect", "nosuid is absent"),
                ("dev", "in effect", "nodev is absent"),
            ],
        ),
    ],
)
def test_user_and_its_like_ask_for_flags_that_a_later_word_takes_back(
    asked: str, shown: str, found: list[tuple[str, str, str]]
) -> None:
    """mount(8): user implies noexec, nosuid and nodev, unless overridden by subsequent options."""
    assert told(judge(asked, made_up(f"rw,{shown}"), made_up("rw"))) == found


# --- values by their meaning ------------------------------------------------------------------------------------------


@every_row(
    ("kind", "asked", "shown", "state"),
    [
        ("tmpfs", "mpol=bind:0,0", "mpol=bind:0", "in effect"),
        ("tmpfs", "mpol=interleave:0-0", "mpol=interleave:0", "in effect"),
        ("tmpfs", "mpol=interleave:0,1,2,3", "mpol=interleave:0-3", "in effect"),
        ("tmpfs", "mpol=interleave:0,1,3", "mpol=interleave:0-3", "changed"),
        ("tmpfs", "mpol=bind=static:1,0", "mpol=bind=static:0-1", "in effect"),
        ("tmpfs", "mpol=bind=static:0", "mpol=bind=relative:0", "changed"),
        ("tmpfs", "mpol=bind:0", "mpol=bind=static:0", "changed"),
        ("tmpfs", "mpol=interleave", "mpol=interleave:0-3", "in effect"),
        ("tmpfs", "mpol=weighted interleave:0,1", r"mpol=weighted\040interleave:0-1", "in effect"),
        ("tmpfs", "mpol=weighted interleave:0,1", "mpol=interleave:0-1", "changed"),
        ("tmpfs", "mpol=prefer", "mpol=local", "in effect"),
        ("tmpfs", "mpol=prefer:1", "mpol=local", "changed"),
        ("tmpfs", "mpol=default", "noatime", "in effect"),
        ("tmpfs", "mpol=default", "mpol=local", "changed"),
        ("tmpfs", "huge=never", "noatime", "in effect"),
        ("tmpfs", "huge=never", "huge=always", "changed"),
        ("btrfs", "compress=zstd:0", "compress=zstd:3", "in effect"),
        ("btrfs", "compress=zlib", "compress=zlib:3", "in effect"),
        ("btrfs", "compress=zstd:1", "compress=zstd:3", "changed"),
        ("btrfs", "compress", "compress=lzo", "changed"),
        ("btrfs", "compress", "compress=zlib:3", "in effect"),
        ("btrfs", "compress-force=zstd", "compress=zstd:3", "changed"),
        ("btrfs", "compress=zstd", "compress-force=zstd:3", "changed"),
        ("btrfs", "compress=no", "noatime", "in effect"),
        ("btrfs", "compress=no", "compress-force=zstd:3", "ignored"),
        ("btrfs", "compress=none", "compress=zstd:3", "changed"),
        ("btrfs", "commit=30", "noatime", "in effect"),
        ("btrfs", "commit=30", "commit=5", "changed"),
        ("ext4", "commit=0", "commit=5", "in effect"),
        ("ext4", "commit=0", "commit=30", "changed"),
        ("ext4", "commit=7", "commit=5", "changed"),
    ],
)
def test_a_value_is_compared_by_what_it_means(kind: str, asked: str, shown: str, state: str) -> None:
    (row,) = [
        row
        for row in judge(asked, made_up(f"rw,{shown}", fstype=kind), made_up("rw", fstype=kind), kind=kind)
        if row.state != "added"
    ]
    assert row.state == state


# --- shown, but without effect ----------------------------------------------------------------------------------------

KERNEL = "==> /proc/sys/kernel/osrelease <==\n6.1.0\n"
DUMP = "==> dumpe2fs <==\nFilesystem features: {}\n"
XFS = (
    "==> xfs_info <==\nmeta-data=/dev/loop0 isize=512 agcount={count}, agsize={size} blks\n"
    "data     = bsize=4096 blocks=1, imaxpct=25\n         = sunit={sunit} swidth={swidth} blks\n"
    "log      =internal log bsize=4096 blocks=1, version=2\n         = sectsz=512 sunit=9 blks\n"
)
SMALL, LARGE = XFS.format(count=4, size=40960, sunit=0, swidth=0), XFS.format(count=16, size=2**25, sunit=0, swidth=0)
STRIPED = XFS.format(count=4, size=40960, sunit=16, swidth=64)
DISCARD = f"==> {QUEUE}/discard_max_bytes <==\n{{}}\n"
HUGE = "==> /sys/kernel/mm/transparent_hugepage/shmem_enabled <==\nalways within_size advise never {} force\n"


@every_row(
    ("kind", "asked", "shown", "more", "state"),
    [
        ("btrfs", "compress=zstd", "nodatasum,compress=zstd:3", KERNEL, "without effect"),
        ("btrfs", "compress-force=lzo", "nodatasum,compress-force=lzo", KERNEL, "without effect"),
        ("btrfs", "compress=zstd", "compress=zstd:3", KERNEL, "in effect"),
        ("btrfs", "compress=zstd", "nodatasum,compress=zstd:3", KERNEL.replace("6.1", "4.19"), "in effect"),
        ("btrfs", "compress=no", "nodatasum", KERNEL, "in effect"),
        ("btrfs", "dirsync", "dirsync", "", "without effect"),
        ("btrfs", "lazytime", "lazytime", "", "without effect"),
        ("btrfs", "sync", "sync", "", "in effect"),
        ("btrfs", "discard=async", "discard=async", DISCARD.format(0), "without effect"),
        ("btrfs", "discard=async", "discard=async", DISCARD.format(4096), "in effect"),
        ("overlay", "sync", "sync", "", "without effect"),
        ("overlay", "sync", "noatime", "", "ignored"),
        ("overlay", "noatime", "noatime", "", "in effect"),
        ("tmpfs", "sync", "sync", "", "without effect"),
        ("ramfs", "lazytime", "lazytime", "", "without effect"),
        ("tmpfs", "huge=always", "huge=always", HUGE.format("[deny]"), "without effect"),
        ("tmpfs", "huge=always", "huge=always", HUGE.format("deny"), "in effect"),
        ("ext4", "sync", "sync", "", "in effect"),
        ("ext4", "usrquota", "usrquota", DUMP.format("has_journal"), "without effect"),
        ("ext4", "usrquota", "usrquota", DUMP.format("has_journal quota"), "in effect"),
        ("ext4", "usrquota", "usrquota", "", "in effect"),
        ("ext4", "max_batch_time=9", "max_batch_time=9", DUMP.format("extent"), "without effect"),
        ("ext4", "max_batch_time=9", "max_batch_time=9", DUMP.format("has_journal"), "in effect"),
        ("ext4", "noauto_da_alloc", "noauto_da_alloc,nodelalloc", "", "without effect"),
        ("ext4", "noauto_da_alloc", "noauto_da_alloc,delalloc", "", "in effect"),
        ("ext4", "init_itable=5", "init_itable=5", "==> itable <==\n5 5\n", "without effect"),
        ("ext4", "init_itable=5", "init_itable=5", "==> itable <==\n5 2\n", "in effect"),
        ("ext4", "dax=inode", "dax=inode", f"==> {QUEUE}/dax <==\n0\n", "without effect"),
        ("ext4", "dax=inode", "dax=inode", f"==> {QUEUE}/dax <==\n1\n", "in effect"),
        ("xfs", "largeio", "largeio", SMALL, "without effect"),
        ("xfs", "largeio", "largeio", STRIPED, "in effect"),
        ("xfs", "largeio", "largeio,allocsize=1024k", SMALL, "in effect"),
        ("xfs", "swalloc", "swalloc", SMALL, "without effect"),
        ("xfs", "noalign", "noalign", STRIPED, "in effect"),
        ("xfs", "noalign", "noalign", "", "in effect"),
        ("xfs", "inode32", "inode32", SMALL, "without effect"),
        ("xfs", "inode32", "inode32", LARGE, "in effect"),
    ],
)
def test_what_the_kernel_shows_and_does_not_do(kind: str, asked: str, shown: str, more: str, state: str) -> None:
    now, plain = made_up(f"rw,{shown}", fstype=kind, more=more), made_up("rw", fstype=kind, more=more)
    row = judge(asked, now, plain, kind=kind)[0]
    assert row.state == state
    assert ("but without effect here: " in row.kernel_says) == (state == "without effect")


JOURNAL = "==> dumpe2fs <==\nJournal features: {}\n"
ASYNC = "journal_64bit journal_async_commit journal_checksum_v3"


@every_row(
    ("asked", "shown", "features", "states"),
    [
        (
            "journal_async_commit,nojournal_checksum",
            "nojournal_checksum",
            ASYNC,
            ["in effect", "without effect"],
        ),
        ("nojournal_checksum,journal_async_commit", "journal_async_commit", ASYNC, ["ignored", "in effect"]),
        ("journal_checksum", "rw", "journal_64bit journal_checksum_v3", ["in effect"]),
        ("nojournal_checksum", "nojournal_checksum", "journal_64bit", ["in effect"]),
        ("journal_checksum", "rw", "(none)", ["ignored"]),
        ("journal_async_commit", "rw", "journal_64bit", ["ignored"]),
    ],
)
def test_the_journals_own_super_block_tells_its_options(
    asked: str, shown: str, features: str, states: list[str]
) -> None:
    """/proc shows journal_async_commit only where the bit of the checksums is set too (fs/ext4/super.c)."""
    rows = judge(asked, made_up(f"rw,{shown}", more=JOURNAL.format(features)), made_up("rw"))
    assert [row.state for row in rows] == states


# --- what shows under another name ------------------------------------------------------------------------------------


def test_an_option_alone_brings_everything_that_is_new() -> None:
    (row,) = judge("bsdgroups", made_up("rw,grpid"), made_up("rw"))
    assert (row.state, row.kernel_says) == ("in effect", "shown as grpid")


def test_options_of_the_mount_alone_bring_nothing_new() -> None:
    rows = judge("noatime,bsdgroups,nodev", made_up("rw,noatime,nodev,grpid"), made_up("rw"))
    assert [row.state for row in rows] == ["in effect"] * 3


@pytest.mark.parametrize("more", [{"mkfs": ("-b", "1024")}, {"tunables": {"x": "1"}}, {}])
def test_what_another_request_may_have_brought_proves_nothing(more: dict[str, object]) -> None:
    asked = "bsdgroups" if more else "data=journal,bsdgroups"
    rows = {row.option: row for row in judge(asked, made_up("rw,data=journal,new"), made_up("rw"), **more)}
    assert rows["bsdgroups"].state == "not visible"
    assert "new" in rows["bsdgroups"].kernel_says


def test_an_option_whose_name_is_the_value_of_what_is_new_brought_it() -> None:
    rows = judge("data=journal,volatile", made_up("rw,data=journal,fsync=volatile"), made_up("rw"))
    assert told(rows)[1] == ("volatile", "in effect", "shown as fsync=volatile")


def test_without_a_control_nothing_is_concluded_from_what_is_shown() -> None:
    (row,) = judge("bsdgroups", made_up("rw,grpid"), None)
    assert (row.state, row.kernel_says) == ("not visible", "nothing")


def test_a_path_that_differs_from_mount_to_mount_is_not_added() -> None:
    now, plain = made_up("rw,logdev=/dev/loop3", fstype="xfs"), made_up("rw,logdev=/dev/loop1", fstype="xfs")
    assert judge("", now, plain, kind="xfs") == []


# --- what each option brings alone ------------------------------------------------------------------------------------


def alone(**shown: str) -> dict[str, str]:
    lines = [f"==> {option} <==\n1 0 7:0 / /m rw - ext4 /dev/loop0 {words}" for option, words in shown.items()]
    return {**made_up("rw"), "alone.txt": "\n".join(lines)}


def test_what_an_option_brings_alone_tells_its_other_name_among_several() -> None:
    control = alone(bsdgroups="rw,grpid", quiet="rw")
    rows = judge("data=journal,bsdgroups,quiet", made_up("rw,data=journal,grpid,nodelalloc"), control)
    assert told(rows) == [
        ("data=journal", "in effect", "data=journal"),
        ("bsdgroups", "in effect", "shown as grpid"),
        ("quiet", "not visible", "nothing"),
        ("", "added", "nodelalloc"),
    ]


def test_an_option_that_shows_alone_and_not_among_others_is_ignored() -> None:
    """btrfs: nodatacow switches compression off."""
    control = alone(**{"compress=zstd": "rw,compress=zstd:3"})
    rows = judge("compress=zstd,nodatacow", made_up("rw,nodatacow,nodatasum"), control)
    assert told(rows)[0] == ("compress=zstd", "ignored", "nothing; alone it is shown as compress=zstd:3")


def test_an_option_that_brings_nothing_alone_has_not_brought_what_is_new() -> None:
    (row, added) = judge("quiet", made_up("rw,new"), alone(quiet="rw"))
    assert (row.state, added.kernel_says) == ("not visible", "new")


# --- the kernel's log -------------------------------------------------------------------------------------------------


@every_row(
    ("asked", "shown", "log", "state"),
    [
        ("nobh", "rw", "[1.000000] EXT4-fs: Ignoring removed nobh option", "ignored"),
        ("discard", "rw,discard", '[1.0] "discard" option, but the device does not support discard', "ignored"),
        ("inlinecrypt", "rw", "[1.0][ T12] EXT4-fs: inline encryption not supported", "ignored"),
        ("compress=zstd", "rw", "[1.0] setting nodatacow, compression disabled", "ignored"),
        ("ikeep", "rw", "[1.0] XFS: ikeep mount option is deprecated.", "not visible"),
        ("made_up", "rw", "[1.0] XFS (sdx): discard not supported", "not visible"),
        ("made_up", "rw", "[1.0] EXT4-fs (loop0): mounted filesystem", "not visible"),
        ("nobarrier", "rw,nobarrier", "[1.0] EXT4-fs (loop0): barriers disabled", "in effect"),
    ],
)
def test_the_log_of_the_mount_is_heard(asked: str, shown: str, log: str, state: str) -> None:
    (row,) = judge(asked, made_up(shown, log=log), made_up("rw"))
    assert row.state == state


def test_what_the_control_logs_too_says_nothing_of_an_option() -> None:
    uuid = "0a1b2c3d-0000-4000-8000-00000000000"
    lines = [f"[{n}.0] EXT4-fs (loop{n}): feature {n} not supported, {uuid}{n}" for n in (1, 2)]
    (row,) = judge("made_up", made_up("rw", log=lines[0]), made_up("rw", log=lines[1]))
    assert row.state == "not visible"


def test_a_line_that_names_nothing_is_nobodys_where_two_may_be_meant() -> None:
    log = "[1.0] EXT4-fs: inline encryption not supported"
    rows = judge("inlinecrypt,other", made_up("rw", log=log), made_up("rw"))
    assert [row.state for row in rows] == ["not visible", "not visible"]


def test_what_the_control_shows_is_so_whatever_the_log_says_of_the_asking() -> None:
    """A default that can no longer be asked for: prefetch_block_bitmaps."""
    log = "[1.0] EXT4-fs: Ignoring removed prefetch option"
    (row,) = judge("prefetch", made_up("rw,prefetch", log=log), made_up("rw,prefetch"))
    assert row.state == "in effect"


@pytest.mark.parametrize(
    ("release", "state"), [("6.1.0-18-amd64", "without effect"), ("5.10.0", "in effect"), ("", "in effect")]
)
def test_mandatory_locks_show_and_are_without_effect(release: str, state: str) -> None:
    now = made_up("rw,mand", more=f"==> /proc/sys/kernel/osrelease <==\n{release}\n")
    assert [row.state for row in judge("mand", now, made_up("rw"))] == [state]


# --- what a kernel does not know --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("strict", "state"), [("accepts", "ignored"), ("refuses", "not visible"), ("", "not visible")])
def test_what_is_shown_nowhere_is_ignored_where_every_word_is_taken(strict: str, state: str) -> None:
    assert [row.state for row in judge("nonsense", made_up("rw"), made_up("rw", strict=strict))] == [state]


def test_where_the_kernel_lists_no_mount_nothing_is_visible() -> None:
    rows = judge("noatime,data=journal,suid", made_up(""), made_up(""))
    assert {(row.state, row.kernel_says) for row in rows} == {("not visible", "no such mount")}


@pytest.mark.slow
@given(st.lists(st.text(max_size=12), max_size=4), st.text(max_size=30), st.text(max_size=30))
def test_no_option_and_no_answer_of_the_kernel_stops_it(asked: list[str], shown: str, log: str) -> None:
    one_line = "".join(c for c in shown if c.isprintable() and c not in " \\")
    now = made_up(f"rw,{one_line}", log=" ".join(log.splitlines()))
    fs = Filesystem(name="x", type="ext4", options=tuple(asked))
    states = {row.state for row in effects(fs, now, made_up("rw"))}
    assert states <= {"in effect", "not visible", "ignored", "changed", "added"}


# --- tunables and backing ---------------------------------------------------------------------------------------------

SETTINGS = (
    f"==> {QUEUE}/scheduler <==\nnone [mq-deadline] kyber\n\n==> {QUEUE}/read_ahead_kb <==\n128\n\n"
    "==> /sys/fs/ext4/loop0/inode_readahead_blks <==\n32\n"
)


@every_row(
    ("name", "value", "state", "says"),
    [
        ("queue/scheduler", "mq-deadline", "in effect", f"{QUEUE}/scheduler says mq-deadline"),
        ("queue/scheduler", "none", "changed", f"{QUEUE}/scheduler says mq-deadline"),
        ("queue/read_ahead_kb", "128", "in effect", f"{QUEUE}/read_ahead_kb says 128"),
        ("inode_readahead_blks", "4096", "changed", "/sys/fs/ext4/loop0/inode_readahead_blks says 32"),
        ("inode_readahead_blks", "32", "in effect", "/sys/fs/ext4/loop0/inode_readahead_blks says 32"),
        ("made_up", "1", "not visible", "nothing"),
    ],
)
def test_a_tunable_is_read_back_from_its_file(name: str, value: str, state: str, says: str) -> None:
    (row,) = judge("", made_up("rw", more=SETTINGS), made_up("rw"), tunables={name: value})
    assert (row.kind, row.option, row.state, row.kernel_says) == ("tunable", f"{name}={value}", state, says)


def test_what_a_tunable_changes_among_the_options_is_not_added_by_the_kernel() -> None:
    now = made_up("rw,inode_readahead_blks=64", more=SETTINGS.replace("32", "64"))
    rows = judge("", now, made_up("rw"), tunables={"inode_readahead_blks": "64"})
    assert [row.state for row in rows] == ["in effect"]


def test_an_option_may_be_shown_by_a_file_of_its_name_only() -> None:
    (row,) = judge("inode_readahead_blks=64", made_up("rw", more=SETTINGS), made_up("rw"))
    assert row.state == "changed"


LAZY = ("-E", "lazy_itable_init=1,lazy_journal_init=1")


@every_row(
    ("mkfs", "allocated", "state"),
    [
        (LAZY, 4096 - 512, "in effect"),
        (LAZY, 4096 - 513, "changed"),
        (("-E", "lazy_itable_init=0"), 4095, "changed"),
        ((), 4095, "changed"),
    ],
)
def test_inode_tables_that_the_kernel_zeroes_late_may_be_holes(
    mkfs: tuple[str, ...], allocated: int, state: str
) -> None:
    """Trap: on a loop device the kernel zeroes by punching holes. Two inodes of 256 bytes."""
    said = "Inode count:              2\nFree inodes:              1\nInode size:               256\n"
    now = made_up("rw", more=f"==> images <==\n7:0 4096 {allocated}\n==> dumpe2fs <==\n{said}")
    found = [row for row in judge("", now, None, image_bytes=4096, mkfs=mkfs) if row.option == "preallocate: true"]
    assert [row.state for row in found] == [state]


@pytest.mark.parametrize(("allocated", "state"), [(4096, "in effect"), (512, "changed")])
def test_the_blocks_of_an_image_are_allocated_beforehand(allocated: int, state: str) -> None:
    now = made_up("rw", more=f"==> images <==\n7:0 4096 {allocated}\n")
    (row,) = judge("", now, None, image_bytes=4096)
    assert (row.kind, row.option, row.state) == ("backing", "preallocate: true", state)
    assert judge("", now, None, image_bytes=4096, preallocate=False) == []


@pytest.mark.parametrize(("allocated", "state"), [(4096, "in effect"), (512, "changed")])
def test_the_blocks_of_all_images_below_a_layer_are_allocated_beforehand(allocated: int, state: str) -> None:
    more = f"==> images <==\n7:1 4096 4096\n7:2 4096 {allocated}\n==> slaves <==\n"
    now = made_up("rw", more=more + "".join(f"7:0\tmd0\t7:{minor}\tloop{minor}\n" for minor in (1, 2)))
    (row,) = judge("", now, None, image_bytes=4096)
    assert (row.state, row.kernel_says) == (state, f"{4096 + allocated} of 8192 bytes are allocated")


def test_the_compression_of_a_device_in_memory_is_read_back() -> None:
    now = made_up("rw", more="==> /sys/class/block/zram0/comp_algorithm <==\nlzo [lz4]\n")
    (row,) = judge("", now, None, zram_bytes=2**20, zram_algorithm="lzo")
    assert (row.state, row.kernel_says) == ("changed", "comp_algorithm says lz4")


@every_row(
    ("dump", "state"),
    [
        ("==> dumpe2fs <==\nJournal UUID: 1\nJournal device: 0x0701\n", "in effect"),
        ("==> dumpe2fs <==\nJournal inode: 8\n", "ignored"),
        ("==> xfs_info <==\nlog      =/dev/loop1   bsize=4096\n", "in effect"),
        ("==> xfs_info <==\nlog      =internal log  bsize=4096\n", "ignored"),
        ("", "not visible"),
    ],
)
def test_an_external_journal_is_named_by_the_super_block(dump: str, state: str) -> None:
    (row,) = judge("", made_up("rw", more=dump), None, journal_image_bytes=2**20)
    assert (row.option, row.state) == ("external journal", state)


def test_options_below_an_overlay_are_judged_as_without_it() -> None:
    below = Filesystem(name="ov", type="ext4", options=("data=journal", "noatime"))
    over = Filesystem(name="ov", type="overlay", over=below, options=("noatime",))

    def overlaid(name: str) -> dict[str, str]:
        kept = {file.replace(".txt", f"{BELOW}.txt"): text for file, text in recorded(name).items()}
        return {**made_up("rw,noatime", fstype="overlay"), **kept}

    for control in (None, "ext4-control"):
        upper, *rows = options_in_effect(over, overlaid("ext4-journal"), overlaid(control) if control else None)
        assert (upper.option, upper.state) == ("noatime", "in effect")
        assert rows == effects(below, recorded("ext4-journal"), recorded(control) if control else None)
    assert options_in_effect(over, made_up("rw,noatime", fstype="overlay"), None) == [upper]
