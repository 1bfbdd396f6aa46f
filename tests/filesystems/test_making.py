"""How file systems were made, from evidence that is written down here: commands, the line of mountinfo, queues."""

from __future__ import annotations

import pytest
from mountlab.core.errors import ParseError
from mountlab.core.model import Step
from mountlab.core.trial_files import TrialFiles
from mountlab.filesystems.base import evidence_step, script_step, timed_step
from mountlab.filesystems.making import (
    BlockDevice,
    RanCommand,
    block_devices,
    commands_text,
    ran_command,
    read_commands,
    setup_of,
)
from rows import every_row

MKFS = ("mke2fs", "-q", "{device}")
LINE = "42 27 7:0 / /mnt/x\\040y rw,relatime shared:1 - ext4 /dev/loop0 rw,stripe=4"


def evidence(*, below: str = "", st_dev: int = 0x700, line: str = LINE, queue: bool = True) -> dict[str, str]:
    """Of ext4 on a loop device, whose image lies on 254:1."""
    mounts = f"27 1 254:1 / / rw,relatime - ext4 /dev/vda1 rw\n{line}\n"
    sysfs = "/sys/class/block/loop0/queue"
    settings = f"==> {sysfs}/read_ahead_kb <==\n128\n\n==> {sysfs}/scheduler <==\n[none] mq-deadline\n"
    return {
        "evidence.txt": f"==> st_dev <==\n{st_dev}\n==> root <==\n755 0 0 root root\n==> device <==\n7:0\n"
        f"==> mountinfo <==\n{mounts}==> df <==\nFilesystem 1024-blocks Used Available Capacity Mounted on\n"
        "/dev/loop0 100 0 100 0% /mnt/x y\n"
        f"==> loops <==\n7:0\t1\t{0xFE01}\t/img\n{below}==> name <==\nloop0\n{settings if queue else ''}"
    }


def step(argv: tuple[str, ...]) -> Step:
    return Step(argv=argv, why="why")


@every_row(
    ("made", "argv"),
    [
        (timed_step(MKFS, why="why", keep="mkfs.txt"), MKFS),
        (script_step("guard.sh", "/dev/x", "", "id", *timed_step(MKFS, why="", keep="").argv, why="why"), MKFS),
        (script_step("borrow.sh", "setting", "a", why="why"), ("borrow.sh", "setting", "a")),
        (step(("losetup", "--find")), ("losetup", "--find")),
    ],
)
def test_a_command_is_told_without_the_scripts_around_it(made: Step, argv: tuple[str, ...]) -> None:
    for ran in (made.argv, ("env", "MOUNTLAB_RUN=R", *made.argv)):
        command = ran_command(made, ran)
        assert command is not None
        assert (command.argv, command.why, command.keep) == (argv, "why", made.keep or "")


def test_what_only_reads_is_no_command() -> None:
    made = evidence_step("/mnt")
    assert ran_command(made, made.argv) is None


def test_commands_are_read_as_they_were_written() -> None:
    commands = (RanCommand("make", ("mke2fs", "a b\n'c'"), "mkfs.txt"), RanCommand("", ("x",)))
    assert read_commands(commands_text(commands)) == commands


@every_row("text", ["", "{", "{}x", '[{"why": 1}]', '[{"why": "", "argv": [1], "keep": ""}]', "[[]]", "7"])
def test_a_file_that_holds_no_commands_is_refused(text: str) -> None:
    with pytest.raises(ParseError):
        read_commands(text)


def test_a_setup_has_the_line_of_the_kernel_word_by_word() -> None:
    assert setup_of("m001", "ext4", evidence()).mountinfo == LINE


def test_commands_that_were_not_kept_are_not_none() -> None:
    assert setup_of("m001", "ext4", evidence()).commands is None
    assert setup_of("m001", "ext4", {**evidence(), TrialFiles.COMMANDS: "[]"}).commands == ()


def test_the_queues_of_a_loop_device_and_of_what_holds_its_image() -> None:
    below = "==> below <==\n254:1\tvda1\t8192\tnone [mq-deadline] kyber\n"
    loop = BlockDevice("7:0", "loop0", "none", 128 * 1024)
    assert block_devices(evidence(below=below)) == [loop, BlockDevice("254:1", "vda1", "mq-deadline", 8 * 1024**2)]


def test_the_devices_of_layers_have_their_names_and_queues_each_once() -> None:
    slaves = "9:0\tmd0\t7:1\tloop1\n9:0\tmd0\t7:2\tloop2\n"
    below = "7:1\tloop1\t64\t[none] bfq\t1\n"
    files = evidence(below=f"7:1\t1\t{0xFE01}\t/a\n==> slaves <==\n{slaves}==> below <==\n{below}")
    on_md = {"evidence.txt": files["evidence.txt"].replace("==> device <==\n7:0", "==> device <==\n9:0")}
    assert [(device.number, device.scheduler) for device in block_devices(on_md)] == [
        ("9:0", "none"), ("7:1", "none"), ("7:2", None), ("254:1", None),
    ]  # fmt: skip
    assert [device.name for device in block_devices(on_md)[1:]] == ["loop1", "loop2", "vda1"]


def test_what_an_earlier_version_did_not_read_is_not_known_and_the_device_has_its_name() -> None:
    assert block_devices(evidence(queue=False)) == [BlockDevice("7:0", "loop0"), BlockDevice("254:1", "vda1")]


def test_a_device_that_orders_no_requests_has_no_scheduler() -> None:
    text = evidence()["evidence.txt"].partition("==> /sys/class/block/loop0/queue/scheduler")[0]
    assert block_devices({"evidence.txt": text})[0] == BlockDevice("7:0", "loop0", "none", 128 * 1024)


def test_a_file_system_in_memory_has_no_device() -> None:
    text = evidence(line="42 27 0:50 / /mnt/x\\040y rw - tmpfs mountlab rw", st_dev=50)["evidence.txt"]
    assert block_devices({"evidence.txt": text.replace("==> device <==\n7:0\n", "==> device <==\n")}) == []


def test_the_devices_of_an_overlay_are_those_of_its_layers() -> None:
    over = evidence(line="50 27 0:60 / /mnt/x\\040y rw - overlay mountlab rw,upperdir=/u", queue=False)
    files = {**over, "evidence-below.txt": evidence()["evidence.txt"]}
    assert [each.name for each in block_devices(files)] == ["loop0", "vda1"]
