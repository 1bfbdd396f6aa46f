"""The helper: in which words it is asked, what it lets pass, and that nothing it refuses is ever run."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from fabric import Connection
from facts import known
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from mountlab.__main__ import main
from mountlab.box import helper
from mountlab.box.connection import needs_root
from mountlab.box.embedded import here
from mountlab.box.ssh import SshBox
from mountlab.box.testing import ReplayBox
from mountlab.core.errors import ParameterError, PlanError
from mountlab.core.model import Box, Filesystem, Place, ScratchDevice, Step
from mountlab.core.stack_layer import StackLayer
from mountlab.filesystems import FAMILIES
from mountlab.results import paths
from mountlab.sweep.feasible import check_feasible, without_rights
from rows import every_row
from sweeps import EXT4, sweep
from waiting import LIMIT_S

ROOT, OUT, RUN = "/var/lib/mountlab", "/dev/shm/mountlab-m", "20261120T224617-tiny-local"
BOX = Box(name="b", host="b", become="helper", mount_root=ROOT, output_root=OUT)
ASKED = (*helper.COMMAND, "60")
OURS = "6d6f756e-746c-6162-0000-0000000000aa"
CHECKS = Path(helper.__file__).with_name("checks.sh")
SHELLS = [shell for shell in (["dash"], ["busybox", "sh"], ["bash", "--posix"]) if shutil.which(shell[0])]


# --- in which words ---------------------------------------------------------------------------------------------------


def spoken(*argv: str) -> tuple[str, ...]:
    return helper.user_argv(argv, BOX, timeout_s=60)


def marked(*argv: str) -> tuple[str, ...]:
    return spoken("env", f"MOUNTLAB_RUN={RUN}", *argv)


def steps_of(fs: Filesystem) -> tuple[Step, ...]:
    run_dir = f"{ROOT}/{RUN}"
    place = Place(
        run_id=RUN,
        run_dir=run_dir,
        mountpoint=f"{run_dir}/mnt/{fs.name}",
        image=f"{run_dir}/img/{fs.name}.img",
        uuid=OURS,
        journal_uuid=OURS,
        device="/dev/disk/by-id/x",
        journal="/dev/disk/by-id/y",
    )
    return FAMILIES[fs.type].steps(fs, place)


def test_a_script_is_never_sent_to_the_helper_only_its_name() -> None:
    fs = Filesystem(
        name="e", type="ext4", image_bytes=2**27, options=("noatime",), tunables={"queue/scheduler": "none"}
    )
    sent = [marked(*step.argv) for step in steps_of(fs)] + [spoken(*step.undo) for step in steps_of(fs) if step.undo]
    assert {command[: len(helper.COMMAND)] for command in sent} == {helper.COMMAND}
    assert not any("\n" in word for command in sent for word in command)
    assert [command[5] for command in sent[:3]] == ["image.sh", "losetup", "timed.sh"]


def test_only_what_needs_root_is_asked_of_the_helper() -> None:
    box, words = SshBox(BOX, Connection("b"), "b"), ("env", f"MOUNTLAB_RUN={RUN}", "umount", f"{ROOT}/{RUN}/mnt/e")
    box.rights = "helper"
    assert box.spoken(words, 60, root=False) == words
    assert box.spoken(words, 60, root=True) == (*ASKED, RUN, "umount", f"{ROOT}/{RUN}/mnt/e")
    box.rights = "sudo"
    assert box.spoken(words, 60, root=True) == words


def test_a_device_of_the_box_is_formatted_below_its_guard() -> None:
    fs = Filesystem(name="e", type="xfs", device="d")
    mkfs = next(step for step in steps_of(fs) if step.keep == "mkfs.txt")
    words = marked(*mkfs.argv)
    assert words[4:9] == (RUN, "guard.sh", "/dev/disk/by-id/x", "", "")
    assert words[9:11] == ("timed.sh", "mkfs.xfs")


SMALL = 2**27
OF_EVERY_FAMILY = [
    Filesystem(name="tmpfs", type="tmpfs", size_bytes=SMALL),
    Filesystem(name="ramfs", type="ramfs", size_bytes=SMALL),
    Filesystem(name="shmfs", type="shmfs", size_bytes=SMALL),
    Filesystem(name="shm", type="shmfs"),
    Filesystem(name="huge", type="hugetlbfs", size_bytes=SMALL),
    Filesystem(name="dir", type="dir"),
    Filesystem(name="place", type="in_place", path="/srv"),
    Filesystem(name="bind", type="bind"),
    Filesystem(name="btrfs", type="btrfs", zram_bytes=SMALL),
    Filesystem(name="f2fs", type="f2fs", image_bytes=SMALL, options=("background_gc=off",)),
    *(Filesystem(name=kind, type=kind, image_bytes=SMALL) for kind in ("ext2", "ext3", "ext4", "xfs")),
    Filesystem(name="log", type="xfs", device="d", journal_device="j"),
    Filesystem(name="over", type="overlay", over=Filesystem(name="below", type="ext4", image_bytes=SMALL)),
    Filesystem(name="raw", type="raw", image_bytes=SMALL),
    Filesystem(name="pmfs", type="pmfs", device="d", size_bytes=SMALL),
    Filesystem(name="nfs", type="nfs"),
    *(Filesystem(name=f"several-{kind}", type=kind, image_bytes=SMALL, members=2) for kind in ("btrfs", "f2fs")),
    Filesystem(name="zfs", type="zfs", image_bytes=SMALL),
    Filesystem(name="luks", type="ext4", image_bytes=SMALL, stack=(StackLayer("luks"),)),
]


@every_row("fs", OF_EVERY_FAMILY, ids=lambda fs: str(fs.name))
def test_every_step_of_every_family_is_the_helpers_or_the_users_or_the_family_is_refused(fs: Filesystem) -> None:
    """Or a step that needs root would be run without it, and fail for no reason that anybody could see."""
    assert {each.type for each in OF_EVERY_FAMILY} == set(FAMILIES)
    if helper.not_permitted(fs):
        return
    commands = [argv for step in steps_of(fs) for argv in (step.argv, step.undo) if argv]
    asked = [shlex.join(marked(*argv)) for argv in commands]
    users = [line for line in asked if shlex.join(helper.COMMAND) not in line]
    assert all("/dev/shm/mountlab-" in line for line in users), users


@every_row(
    "argv",
    [
        ("id", "-u"),
        ("sh", "-c", "echo", "t0001"),
        ("apt-get", "install", "fio"),
        ("mkdir", "-p", "/elsewhere"),
        ("sh", "-c", "cat", "evidence.sh", "/srv/data"),
        ("sh", "-c", "cat", "evidence.sh", f"{ROOT}/{RUN}/dir"),
        ("rm", "-rf", "/"),
    ],
)
def test_what_is_not_the_helpers_runs_as_the_user(argv: tuple[str, ...]) -> None:
    assert spoken(*argv) == argv
    trial = ("env", f"MOUNTLAB_RUN={RUN}", *argv)
    assert spoken(*trial) == trial


def test_a_lease_is_the_users_own_and_what_it_runs_may_be_the_helpers() -> None:
    lease = ("env", f"MOUNTLAB_LEASE={RUN}", "sh", "-c", "lease", "lease.sh", f"{OUT}/{RUN}", "600", RUN)
    clean = ("clean text", "mountlab-clean", "clean", "1000", "", ROOT, OUT, "borrow", "me 1/2 x", "layer")
    *head, text, name = helper.user_argv((*lease, *clean), BOX, timeout_s=60)
    assert (tuple(head), name) == (lease, "mountlab-clean")
    assert text.endswith(shlex.join((*helper.COMMAND, "600", "-", "clean", "clean", "me 1/2 x")))


def test_what_belongs_to_both_is_done_by_both() -> None:
    opening = ("sh", "-c", "text", "open.sh", "open", f"{ROOT}/{RUN}", f"{OUT}/{RUN}", "me 1/2 x")
    mine = shlex.join(("sh", "-c", "text", "open.sh", "open", f"{OUT}/{RUN}", f"{OUT}/{RUN}", "me 1/2 x"))
    theirs = shlex.join((*ASKED, RUN, "open.sh", "open", "me 1/2 x"))
    gives_back = theirs.replace("open.sh open", "open.sh close")
    either = f"{theirs} && {{ {mine} || {{ status=$?; {gives_back}; exit $status; }}; }}"
    assert spoken(*opening) == ("sh", "-c", either), "both roots, or none"
    closing = tuple("close" if word == "open" else word for word in opening)
    both = f"{mine.replace('open.sh open', 'open.sh close')}; status=$?; {gives_back} && exit $status"
    assert spoken(*closing) == ("sh", "-c", both), "the second even where the first fails"
    looking = ("sh", "-c", "text", "open.sh", "look", ROOT, OUT)
    asked = shlex.join((*helper.COMMAND, "60", "-", "look"))
    assert spoken(*looking)[2] == f"{asked} && {shlex.join((*looking[:5], OUT, OUT))}"
    kill = ("sh", "-c", "text", "mountlab-clean", "kill", "", RUN, "", "", "borrow", "")
    assert spoken(*kill) == ("sh", "-c", f"{shlex.join(kill)} && {shlex.join((*ASKED, RUN, 'kill'))}")


def test_a_directory_of_the_box_is_made_by_the_user_and_one_of_the_run_by_the_helper() -> None:
    elsewhere = ("sh", "-c", "text", "make-dir", "/srv/mountlab-x", f"{ROOT}/{RUN}")
    assert spoken(*elsewhere) == ("sh", "-c", "text", "make-dir", "/srv/mountlab-x", f"{OUT}/{RUN}")
    own = spoken("sh", "-c", "text", "make-dir", f"{ROOT}/{RUN}/dir", f"{ROOT}/{RUN}")
    assert own[2].startswith(shlex.join((*ASKED, RUN, "make-dir", f"{ROOT}/{RUN}/dir")))
    gone = spoken("sh", "-c", "text", "remove-dir", f"{ROOT}/{RUN}/dir")
    assert gone[2].endswith(shlex.join((*ASKED, RUN, "rmdir", f"{ROOT}/{RUN}/dir")))


# --- what it says of itself -------------------------------------------------------------------------------------------


def introduced(text: str, box: Box = BOX) -> None:
    helper.check_introduction(helper.read_introduction(text), box, "m")


def printed(version: str = "", uid: str = "1000") -> str:
    return (
        f"{uid}\n{OUT}\nversion {version or helper.version()}\nuser m\nmount_root {ROOT}\nscratch /dev/disk/by-id/x\n"
    )


def test_the_helper_says_which_it_is_and_what_it_allows() -> None:
    introduced(printed())
    found = helper.read_introduction(printed())
    assert (found.mount_root, found.output_root, found.scratch) == (ROOT, OUT, ("/dev/disk/by-id/x",))


@every_row(
    ("text", "words"),
    [
        (f"1000\n{OUT}\n", ("no helper that lets us in", "box helper b")),
        (printed("0" * 64), ("of another version", "version 000000000000", "box helper b")),
        (printed(uid="0"), ("root needs no helper", "become: root")),
        ("", ("no helper that lets us in",)),
    ],
)
def test_a_box_without_the_helper_of_this_version_is_refused_with_the_next_step(
    text: str, words: tuple[str, ...]
) -> None:
    with pytest.raises(ParameterError) as caught:
        introduced(text)
    assert all(word in str(caught.value) for word in words)


def test_another_mount_root_than_the_helpers_is_refused() -> None:
    with pytest.raises(ParameterError, match="another mount root"):
        introduced(printed(), Box(name="b", host="b", mount_root="/srv/other"))


def test_the_error_of_a_box_without_rights_names_the_helper() -> None:
    assert "mountlab box helper b" in str(needs_root(("mount",), BOX))


# --- what is installed ------------------------------------------------------------------------------------------------


def test_the_sudoers_file_permits_one_program() -> None:
    rules = [line for line in helper.sudoers("m").splitlines() if not line.startswith(("#", "Defaults!"))]
    assert rules == ["m ALL=(root) NOPASSWD: NOSETENV: /usr/local/lib/mountlab/helper"]


@pytest.mark.requires_program("visudo")
def test_sudo_takes_the_sudoers_file(tmp_path: Path) -> None:
    file = tmp_path / "rule"
    file.write_text(helper.sudoers("m"))
    done = here.run([here.find_program("visudo") or "visudo", "-c", "-q", "-f", str(file)])
    assert done.returncode == 0, done.stderr


def test_the_script_that_installs_it_carries_every_file_whole(tmp_path: Path) -> None:
    script = helper.install_script("m", BOX).replace('[ "$(id -u)" = 0 ] || fail', "write_files; exit; fail")
    done = subprocess.run(["sh", "-s"], input=script, cwd=tmp_path, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == helper.installed_files()
    line = "cat -- helper *.sh | sha256sum"
    digest = subprocess.run(
        ["sh", "-c", line],
        cwd=tmp_path,
        env={"LC_ALL": "C", "PATH": "/usr/bin:/bin"},
        text=True,
        capture_output=True,
        check=True,
    ).stdout
    assert digest.split()[0] == helper.version()


@every_row("user", ["", "root;id", "a b", "-x", "ALL", "%wheel", "#0", "m\nALL", "../m"])
def test_a_name_that_means_something_else_to_sudo_is_refused(user: str) -> None:
    with pytest.raises(ParameterError, match="no name for an ordinary user"):
        helper.install_script(user, BOX)


@every_row("path", ["relative", "/a b", "/a/../b", "/a;id", "/a\nscratch /dev/sda", "/a$(id)", "/", "/a//b"])
def test_a_path_that_means_something_else_to_a_shell_is_refused(path: str) -> None:
    with pytest.raises(ParameterError, match="plain paths only"):
        helper.install_script("m", Box(name="b", host="b", mount_root=path))
    if path.startswith("/"):
        scratch = (ScratchDevice(name="d", device=path),)
        with pytest.raises(ParameterError, match="plain paths only"):
            helper.install_script("m", Box(name="b", host="b", scratch=scratch))


def test_the_verb_prints_the_script_for_the_user_of_the_box_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "boxes").mkdir()
    (tmp_path / "boxes" / "b.yml").write_text(f"host: h\nuser: m\nbecome: helper\nmount_root: {ROOT}\n")
    monkeypatch.setattr(paths, "PARAMS", tmp_path)
    assert main(["box", "helper", "b"]) == 0
    assert capsys.readouterr().out == helper.install_script("m", BOX)
    (tmp_path / "boxes" / "b.yml").write_text("host: h\n")
    assert main(["box", "helper", "b"]) == 2
    assert "box helper b --user mountlab" in capsys.readouterr().err


# --- what cannot be had -----------------------------------------------------------------------------------------------

REFUSED = {
    "raw": Filesystem(name="raw", type="raw", image_bytes=2**27),
    "pmfs": Filesystem(name="pmfs", type="pmfs", device="x", size_bytes=2**27),
    "pmbd": Filesystem(name="pmbd", type="ext4", pmbd="pmbd16;"),
    "image_dir": Filesystem(name="image_dir", type="ext4", image_bytes=2**27, image_dir="/srv"),
    "bind": Filesystem(name="bind", type="bind", path="/srv"),
    "overlay": Filesystem(name="overlay", type="overlay", over=Filesystem(name="below", type="dir")),
}


@every_row("name", list(REFUSED))
def test_what_only_root_should_do_is_refused_with_the_reason(name: str) -> None:
    assert helper.not_permitted(REFUSED[name]).startswith(f"{name}: ")


def test_what_the_helper_does_is_not_refused() -> None:
    over_tmpfs = Filesystem(name="t", type="tmpfs", size_bytes=2**27)
    for fs in (
        Filesystem(name="e", type="ext4", image_bytes=2**27),
        Filesystem(name="d", type="dir", path="/srv"),
        Filesystem(name="b", type="bind"),
        Filesystem(name="o", type="overlay", over=over_tmpfs),
    ):
        assert helper.not_permitted(fs) == ""


def test_a_sweep_that_the_helper_cannot_mount_is_refused_before_the_start() -> None:
    resolved = sweep(filesystems={"raw": {"type": "raw", "image": "64MiB"}, "ext4": EXT4}, baseline="ext4")
    assert list(without_rights(resolved.sweep, known(rights="helper"))) == ["raw"]
    with pytest.raises(PlanError, match="does not let us mount raw") as caught:
        check_feasible(resolved.sweep, BOX, known(rights="helper", user="m"))
    assert "could have anything mounted from it" in str(caught.value)


def test_rights_of_the_helper_are_no_reason_to_refuse_a_command() -> None:
    box = ReplayBox(BOX, rights="helper").answer(("mount",), "")
    assert box.run(("mount",), root=True).ok


# --- what it lets pass: the checks, under the shells of boxes ---------------------------------------------------------

ALLOWED = {
    "mount_options": [
        ("ext4", "noatime,data=writeback,commit=30,nobarrier"), ("ext4", "inode_readahead_blks=64,dax=never"),
        ("xfs", "noatime,logbsize=64k,allocsize=1m,inode64"), ("btrfs", "compress=zstd:3,space_cache=v2,nodatacow"),
        ("f2fs", "background_gc=sync,fsync_mode=strict,compress_algorithm=zstd:3,compress_extension=log"),
        ("f2fs", "mode=fragment:block,active_logs=2,inline_xattr_size=50,nobarrier"),
        ("tmpfs", "size=67108864,huge=within_size,mpol=bind:0,mode=0755"),
        ("tmpfs", "size=1m,mpol=weighted interleave:0"), ("tmpfs", "size=1m,mpol=prefer (many):0"),
        ("hugetlbfs", "size=64M,pagesize=2M"),
        ("ramfs", "data=writeback,size=1g,nobarrier,mode=700"), ("overlay", "index=off,xino=auto,volatile"),
        ("bind", "ro,noexec"),
    ],
    "mke2fs_words": [
        ("-t", "ext4", "-F", "-q", "-U", OURS, "-b", "4096", "-m", "0.5", "-O", "bigalloc,^has_journal",
        "/dev/loop0"),
        ("-q", "-F", "-t", "ext2", "-b", "1024", "-E", "nodiscard", "-U", OURS, "/dev/loop0", "1024"),
        ("-E", "stride=16,stripe_width=64,lazy_itable_init=0", "-J", "size=4,device=/dev/loop1", "/dev/loop0"),
    ],
    "xfs_words": [
        ("-f", "-q", "-K", "-m", f"reflink=0,uuid={OURS}", "-l", "logdev=/dev/loop1", "/dev/loop0"),
        ("-d", "sunit=128,swidth=256,agcount=2,noalign", "-n", "version=ci,ftype=1", "-s", "size=4k", "/dev/sda1"),
    ],
    "btrfs_words": [("-f", "-q", "-U", OURS, "-d", "single", "--metadata", "dup", "-O", "^no-holes", "/dev/loop0")],
    "f2fs_words": [("-f", "-q", "-U", OURS, "-t", "0", "-O", "extra_attr,compression", "-o", "7.5", "/dev/loop0"),
                   ("-i", "-s", "2", "-z", "4", "-e", "jpg,mp3", "-C", "utf8:strict", "/dev/loop0")],
    "setting_of": [("queue:/dev/loop0:scheduler",), ("queue:/dev/loop0:iosched/low_latency",),
                   ("fs:f2fs:/dev/loop0:gc_min_sleep_time",),
                   ("fs:ext4:/dev/loop0:inode_readahead_blks",), (f"fs:btrfs:{OURS}:discard/iops_limit",)],
    "setting_value": [("none",), ("write back",), ("512",)],
    "plain": [("ext4-made",), (RUN,)],
}  # fmt: skip
HOSTILE = {
    "mount_options": [
        *product(
            ["ext4", "xfs", "btrfs", "f2fs", "tmpfs", "hugetlbfs", "ramfs", "overlay", "bind"],
            [
                "suid",
                "dev",
                "user",
                "users",
                "owner",
                "group",
                "defaults",
                "loop",
                "loop=/dev/loop9",
                "offset=1",
                "helper=x",
                "uhelper=x",
                "remount",
                "bind",
                "rbind",
                "move",
                "x-mount.mkdir",
                "X-mount.owner=1000",
                "x-systemd.automount",
                "context=x",
                "noatime,suid",
                "suid,noatime",
                "noatime,,dev",
                ",noatime",
                "noatime,",
                "",
                "ro\nsuid",
                "ro suid",
                "verity.hashdevice=/x",
                "comment=x",
                "errors=panic",
                "uid=1000",
                "gid=1000",
                "lowerdir=/",
                "upperdir=/etc",
                "mode=4777",
                "mode=6755",
                '"noatime,suid"',
                "size=$(id)",
                "commit=`id`",
                "noatime;id",
                "-o",
                "--bind",
            ],
        ),
        ("ext4", "journal_path=/dev/sda"),
        ("ext4", "journal_dev=0x801"),
        ("ext4", "usrjquota=/etc/passwd"),
        ("xfs", "logdev=/dev/sda"),
        ("xfs", "rtdev=/dev/sda"),
        ("btrfs", "device=/dev/sda"),
        ("btrfs", "subvol=../x"),
        ("btrfs", "subvolid=5"),
        ("btrfs", "degraded"),
        ("f2fs", "fault_injection=1"),
        ("f2fs", "usrjquota=/etc/passwd"),
        ("f2fs", "errors=panic"),
        ("f2fs", "test_dummy_encryption"),
        ("tmpfs", "size=-1"),
        ("overlay", "userxattr"),
        ("overlay", "lowerdir+=/etc"),
        ("overlay", "redirect_dir=follow"),
        ("overlay", "index=only"),
        ("nfs", "ro"),
        ("fuse.sshfs", "ro"),
        ("", "ro"),
        ("ext4,xfs", "ro"),
        ("proc", "ro"),
        ("sysfs", "ro"),
        ("/../x", "ro"),
    ],
    "mke2fs_words": [
        ("-d", "/etc", "/dev/loop0"),
        ("-z", "/etc/x", "/dev/loop0"),
        ("-l", "/etc/passwd", "/dev/loop0"),
        ("-L", "label", "/dev/loop0"),
        ("-n", "/dev/loop0"),
        ("-S", "/dev/loop0"),
        ("-F", "-F", "/dev/loop0"),
        ("-F", "-q", "-F", "/dev/loop0"),
        ("-FF", "/dev/loop0"),
        ("-E", "offset=4096", "/dev/loop0"),
        ("-E", "root_owner=0:0,offset=1", "/dev/loop0"),
        ("-E", "root_perms=4777", "/dev/loop0"),
        ("-b",),
        (),
        ("-J", "device=../sda", "/dev/loop0"),
        ("-J", "device=UUID=x", "/dev/loop0"),
        ("-U", "random", "/dev/loop0"),
        ("-U", OURS[:-1], "/dev/loop0"),
        ("-t", "ext4dev", "/dev/loop0"),
        ("/dev/loop0", "/dev/sda"),
        ("/dev/loop0", "1024", "-d"),
        ("-O", "-d", "/dev/loop0"),
        ("-T", "a/b", "/dev/loop0"),
        ("-e", "panic", "/dev/loop0"),
        ("-M", "/etc", "/dev/loop0"),
        ("-m", "1.2.3", "/dev/loop0"),
        ("/etc/passwd",),
        ("--", "/dev/loop0"),
    ],
    "xfs_words": [
        ("-p", "/etc/x", "/dev/loop0"),
        ("-d", "name=/dev/sda", "/dev/loop0"),
        ("-d", "file=1,name=/x", "/dev/loop0"),
        ("-c", "options=/etc/passwd", "/dev/loop0"),
        ("-r", "rtdev=/dev/sda", "/dev/loop0"),
        ("-L", "x", "/dev/loop0"),
        ("-l", "name=/dev/sda", "/dev/loop0"),
        ("-l", "file", "/dev/loop0"),
        ("-m", "uuid=random", "/dev/loop0"),
        ("-d", "agcount=2,name=/x", "/dev/loop0"),
        ("-N", "/dev/loop0"),
        ("/dev/loop0", "/dev/sda"),
        (),
        ("-d",),
        ("-d", "/dev/loop0"),
        ("-f",),
        ("-l", "internal=0", "/dev/loop0"),
        ("-l", "logdev=/etc/passwd", "/dev/loop0"),
        ("-d", "rtinherit=1", "/dev/loop0"),
        ("-i", "size=`id`", "/dev/loop0"),
        ("-p/etc", "/dev/loop0"),
    ],
    "btrfs_words": [
        ("--rootdir", "/etc", "/dev/loop0"),
        ("--rootdir=/etc", "/dev/loop0"),
        ("-r", "/etc", "/dev/loop0"),
        ("--shrink", "/dev/loop0"),
        ("-L", "x", "/dev/loop0"),
        ("--subvol", "x", "/dev/loop0"),
        ("-u", "x", "/dev/loop0"),
        ("/dev/sda", "/dev/loop0"),
        ("-U", "random", "/dev/loop0"),
        ("-O", "--rootdir", "/dev/loop0"),
        (),
        ("-d", "/etc", "/dev/loop0"),
        ("--device-uuid", OURS, "/dev/loop0"),
    ],
    "f2fs_words": [
        ("-c", "/dev/sda", "/dev/loop0"),
        ("-c", "sda", "/dev/loop0"),
        ("-l", "x", "/dev/loop0"),
        ("-U", "random", "/dev/loop0"),
        ("-S", "/dev/loop0"),
        ("-R", "0:0", "/dev/loop0"),
        ("-T", "0", "/dev/loop0"),
        ("-g", "android", "/dev/loop0"),
        ("-m", "/dev/loop0"),
        ("-s", "-1", "/dev/loop0"),
        ("/dev/sda", "/dev/loop0"),
        ("/dev/loop0", "4096"),
        (),
        ("-O",),
        ("-e", "../x", "/dev/loop0"),
    ],
    "setting_of": [
        ("sysctl:kernel/core_pattern",),
        ("queue:/dev/loop0:../../x",),
        ("queue:/dev/loop0:iosched/../x",),
        ("fs:ext4:/dev/loop0:../../../kernel/x",),
        ("fs:ext4:/dev/loop0:trigger_fs_error",),
        ("fs:proc:/dev/loop0:x",),
        ("fs:btrfs:../../x:y",),
        ("/proc/sys/kernel/core_pattern",),
        ("setting",),
        ("",),
        ("huge:",),
        ("queue:sda:x",),
        ("fs:ext4:/dev/loop0:a//b",),
        ("fs:xfs:/dev/loop0:errortag/x",),
        ("queue:/dev/loop0:scheduler\nx",),
    ],
    "setting_value": [("",), ("|/tmp/x",), ("-1",), ("a\nb",), (" a",), ("+1",), ("$(id)",), ("x" * 41,)],
    "plain": [("",), (".",), ("..",), ("-x",), (".x",), ("a/b",), ("a b",), ("a\n",), ("é",), ("x" * 161,), ("a*",)],
}


def answers(shell: list[str], calls: list[tuple[str, tuple[str, ...]]]) -> list[bool]:
    """What the checks say to each call. PATH is empty: none of them may run a program."""
    lines = [f"( {shlex.join((name, *words))} ) && echo yes || echo no" for name, words in calls]
    text = "\n".join([CHECKS.read_text(), *lines])
    program = shutil.which(shell[0])
    assert program is not None
    done = subprocess.run(
        [program, *shell[1:]],
        input=text.encode("utf-8", "surrogateescape"),
        capture_output=True,
        check=False,
        env={"LC_ALL": "C", "PATH": "/nonexistent"},
        cwd="/",
        timeout=LIMIT_S,
    )
    assert done.stderr == b""
    said = done.stdout.decode().split()
    assert len(said) == len(calls)
    return [word == "yes" for word in said]


def pairs(table: dict[str, list[tuple[str, ...]]]) -> list[tuple[str, tuple[str, ...]]]:
    return [(name, words) for name, rows in table.items() for words in rows]


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: str(shell[0]))
def test_what_sweeps_ask_for_passes_and_what_reaches_further_does_not(shell: list[str]) -> None:
    allowed, hostile = pairs(ALLOWED), pairs(HOSTILE)
    said = answers(shell, allowed + hostile)
    assert [call for call, yes in zip(allowed, said, strict=False) if not yes] == []
    # these are in effect what is added anyway, or mean nothing to the type
    assert [call for call, yes in zip(hostile, said[len(allowed) :], strict=True) if yes] == []


PIECES = [
    "suid", "dev", "nosuid", "noatime", "size=1", "/", "..", "/etc", "$(touch /tmp/x)", "`id`", ";", "\n", " ",
    "=", ",", "-",
    "--", "-o", "'", '"', "\\", "*", "?", "[", "]", "|", "&", "<", ">", "#", "~", "!", "é", "\x7f", "\x1b",
    "data=ordered",
    "loop0", "/dev/", "/dev/sda", OURS, "-d", "-U", "-E", "-J", "-l", "-m", "device=", "logdev=", "name=", "0",
    "9" * 30,
]  # fmt: skip
WORD = st.one_of(
    st.lists(st.sampled_from(PIECES), max_size=4).map("".join),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=12),
)
TYPES = st.sampled_from(["ext4", "xfs", "btrfs", "f2fs", "tmpfs", "hugetlbfs", "ramfs", "overlay", "bind"])
CALL = st.one_of(
    st.tuples(st.just("mount_options"), st.tuples(TYPES, WORD)),
    st.tuples(st.sampled_from(["setting_of", "setting_value", "plain"]), st.tuples(WORD)),
    st.tuples(
        st.sampled_from(["mke2fs_words", "xfs_words", "btrfs_words", "f2fs_words"]),
        st.lists(WORD, max_size=4).map(tuple),
    ).map(lambda call: (call[0], (*call[1], "/dev/loop0"))),
)
HARMLESS = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:,=^+%/ -")
SAFE_PATHS = ("/dev/",)


def escapes(name: str, words: tuple[str, ...]) -> Iterator[str]:
    """By rules of the test's own: what of words that passed could reach further than a device of ours."""
    for word in words:
        if set(word) - HARMLESS:
            yield f"{word!r} has characters that mean something"
        if ".." in word.split("/") and name != "setting_value":
            yield f"{word!r} goes upwards"
        for item in word.split(","):
            key, _, value = item.partition("=")
            if not name.startswith(("setting", "plain")) and key in (
                "suid",
                "dev",
                "user",
                "users",
                "owner",
                "group",
                "loop",
                "helper",
                "name",
                "subvol",
                "remount",
            ):
                yield f"{item!r} is dangerous"
            if name != "setting_of" and "/" in (value or key) and not (value or key).startswith(SAFE_PATHS):
                yield f"{item!r} is a path"
    if name == "mke2fs_words" and "-d" in words:
        yield "a directory to copy"


@pytest.mark.slow
@pytest.mark.parametrize("shell", SHELLS[:2], ids=lambda shell: str(shell[0]))
@settings(max_examples=12, deadline=None, derandomize=True, phases=[Phase.generate])
@given(calls=st.lists(CALL, min_size=60, max_size=90))
def test_nothing_that_passes_reaches_further_than_a_device_of_ours(
    shell: list[str], calls: list[tuple[str, tuple[str, ...]]]
) -> None:
    for (name, words), yes in zip(calls, answers(shell, calls), strict=True):
        if yes:
            assert list(escapes(name, words)) == [], (name, words)


@pytest.mark.slow
def test_all_shells_say_the_same() -> None:
    calls = pairs(ALLOWED) + pairs(HOSTILE)
    assert len({tuple(answers(shell, calls)) for shell in SHELLS}) == 1


@every_row("limit", ["", "0", "-1", "1x", "99999999", "1 id", "$(id)"])
def test_the_program_takes_a_time_limit_first(limit: str) -> None:
    launch = Path(helper.__file__).with_name("launch.sh")
    done = subprocess.run(["sh", str(launch), limit, "-", "version"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("refused: ")


@pytest.mark.parametrize("shell", SHELLS, ids=lambda shell: str(shell[0]))
def test_only_what_the_helper_has_mounted_is_unmounted_by_it(shell: list[str]) -> None:
    """Below a directory of the user's a name can be exchanged while root goes along it."""
    text = CHECKS.with_name("umount.sh").read_text()
    assert text.count("command umount") == 1
    allowed = [f"{ROOT}/{RUN}/mnt/x", f"{ROOT}/{RUN}/mnt/x.below", ROOT, f"-l {ROOT}"]
    others = [f"{RUN}/mnt/x/y", f"{RUN}/own", f"{RUN}/own/mnt", "mnt/x", f"{RUN}/own/mnt/x", f"{RUN}/mnt/a b", "/", ""]
    refused = [shlex.join(("umount", f"{ROOT}/{name}")) for name in others] + [
        "umount /boot",
        "umount /a/mnt/b",
        f"umount -l {ROOT}/{RUN}/mnt/x",
        f"umount {ROOT}/{RUN}/mnt/x /boot",
        f"umount -f {ROOT}",
        f"umount {ROOT} /boot",
    ]
    calls = [f"umount {words}" for words in allowed] + refused
    script = "\n".join([f"mount_root={ROOT}", text.replace("command umount", "echo"), *calls])
    program = shutil.which(shell[0])
    assert program is not None
    done = subprocess.run([program, *shell[1:]], input=script, text=True, capture_output=True, check=False)
    assert done.stdout.splitlines() == allowed
    assert done.stderr.count("not touched") == len(refused)
