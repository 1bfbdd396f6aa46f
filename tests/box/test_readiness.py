"""Care for a box, on prepared answers: what check says, what prepare runs, what clean makes of the script's output."""

from __future__ import annotations

import os
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from facts import known
from mountlab.box import leftovers, readiness
from mountlab.box.lease import lease_argv
from mountlab.box.leftovers import Leftover
from mountlab.box.readiness import CheckRow
from mountlab.box.testing import Call, ReplayBox
from mountlab.core.errors import BoxError, CommandError, LeftoverError, PlanError
from mountlab.core.held import Lease
from mountlab.core.model import Box, Program, ScratchDevice
from mountlab.core.shell import script_argv, script_text
from mountlab.filesystems.directory import OPEN
from mountlab.filesystems.nfs import Nfs
from rows import every_row

GIB = 1024**3
FIO = Program(name="fio", packages={"apt": "fio", "dnf": "fio"}, version=("fio", "--version"))
MKE2FS = Program(name="mke2fs", packages={"apt": "e2fsprogs", "dnf": "e2fsprogs"}, version=("mke2fs", "-V"))
ODD = Program(name="odd", packages={}, version=("odd",))
OPTIONAL = Program(name="rare", packages={"dnf": "rare"}, version=("rare",), hint="rare: build it from its source")


FIT = known(
    kernel="6.1.0",
    machine="x86_64",
    os="Debian GNU/Linux 12",
    cpus=4,
    cpu_model="A processor",
    memory_bytes=8 * GIB,
    memory_available_bytes=7 * GIB,
    user="alice",
    rights="root",
    mount_root="/srv/m",
    mount_root_free_bytes=90 * GIB,
    mount_root_fstype="ext4",
    output_root="/dev/shm/o",
    output_root_free_bytes=4 * GIB,
    output_root_fstype="tmpfs",
    kernel_filesystems=["ext4", "ramfs", "tmpfs"],
    loop_devices=True,
    package_manager="apt",
)
"""Of a box that lacks nothing but the programs."""
Types = tuple[str, ...]


def rows(
    *needs: Program, box: ReplayBox | None = None, types: Types = (), rare: Types = (), **changes: Any
) -> dict[str, CheckRow]:
    kinds = {**dict.fromkeys(types, True), **dict.fromkeys(rare, False)}
    asked = (box or ReplayBox()).when(lambda argv: OPEN in argv)
    found = readiness.check(asked, known(FIT, **changes), needs, kinds)
    return {row.name: row for row in found}


# --- check ------------------------------------------------------------------------------------------------------------


def test_a_fit_box_has_nothing_to_mend() -> None:
    found = rows(FIO, types=("tmpfs", "ext4"), programs={"fio": {"path": "/usr/bin/fio", "version": "fio-3.33"}})
    assert {(row.state, row.mend) for row in found.values()} == {("ok", "")}
    assert found["kernel"].seen == "6.1.0 on x86_64, Debian GNU/Linux 12"
    assert found["memory"].seen == "8.00 GiB, 7.00 GiB available; 4 x A processor"
    assert found["file systems"].seen == "has: ext4, tmpfs"
    assert found["fio"].seen == "fio-3.33 (/usr/bin/fio)"
    assert found["mount root"].seen == "/srv/m: 90.0 GiB free on ext4"


def test_a_kernel_that_looks_for_its_own_mistakes_and_a_limit_of_memory_are_said() -> None:
    limited = {"session_limits": {"memory_bytes": GIB}, "kernel_config": {"KASAN": "y", "HZ": "250", "LOCKDEP": "n"}}
    found = rows(**limited)
    assert (found["kernel"].state, found["memory"].state) == ("limited", "limited")
    assert "it looks for its own mistakes (KASAN), which takes time" in found["kernel"].seen
    assert found["memory"].seen.endswith("; the session may use 1.00 GiB")
    assert rows(session_limits={"memory_bytes": 16 * GIB})["memory"].state == "ok", "more than the box has"


def test_a_root_that_a_run_would_refuse_is_said_with_the_way_out() -> None:
    argv = script_argv(OPEN, "look", "/srv/m", "/dev/shm/o")
    said = "refused: /srv/m holds what Mountlab did not make: thesis.tex\nnext: move that elsewhere\n"
    row = rows(box=ReplayBox().answer(argv, stderr=said, exit_status=1))["roots"]
    assert row == CheckRow(
        "roots",
        "missing",
        "/srv/m holds what Mountlab did not make: thesis.tex",
        "params/boxes/replay.yml: mount_root: move that elsewhere",
    )
    assert "roots" not in rows()


@every_row(
    ("changes", "mend"),
    [
        ({}, "apt-get install -y fio"),
        ({"rights": "sudo"}, "sudo apt-get install -y fio"),
        ({"rights": "none"}, "sudo apt-get install -y fio"),
        ({"package_manager": "dnf"}, "dnf install -y fio"),
        ({"package_manager": None}, "install fio: no package of it is known here"),
    ],
)
def test_a_missing_program_comes_with_the_command_that_mends_it(changes: dict[str, Any], mend: str) -> None:
    assert rows(FIO, **changes)["fio"] == CheckRow("fio", "missing", "not found", mend)


def test_a_program_that_no_package_has_limits_a_box_and_says_how_to_get_it() -> None:
    row = rows(OPTIONAL)["rare"]
    assert (row.state, row.mend) == ("limited", "rare: build it from its source")
    assert rows(OPTIONAL, package_manager=None)["rare"] == row
    assert rows(OPTIONAL, package_manager="dnf")["rare"].mend == "dnf install -y rare"


def test_no_rights_are_a_limit_that_can_be_mended() -> None:
    row = rows(rights="none")["rights"]
    assert (row.state, row.seen) == ("limited", "none, as alice: only file systems of type dir can be measured")
    assert row.mend == "echo 'alice ALL=(ALL) NOPASSWD: ALL' | sudo tee /etc/sudoers.d/mountlab"
    unwilling = ReplayBox(Box(name="b", host="b", become="none"))
    assert "params/boxes/b.yml says `become: none`" in rows(box=unwilling, rights="none")["rights"].mend


def test_root_in_a_container_that_may_not_mount_is_limited() -> None:
    row = rows(rights="root", may_mount=False)["rights"]
    assert row.state == "limited"
    assert row.seen.endswith("in a container without CAP_SYS_ADMIN: only file systems of type dir can be measured")
    assert "`--privileged`" in row.mend


def test_check_says_what_the_rights_of_a_helper_are() -> None:
    row = rows(rights="helper")["rights"]
    assert (row.state, row.seen) == (
        "ok",
        "helper, as alice: tools as that user, as root only what /usr/local/lib/mountlab/helper permits",
    )


def test_with_a_helper_packages_are_installed_by_root_only() -> None:
    with pytest.raises(PlanError, match="installing fio needs root"):
        readiness.prepare(ReplayBox(rights="helper"), known(FIT, rights="helper"), [FIO], yes=True, ask=lambda _: True)


@every_row(
    ("changes", "name", "seen"),
    [
        ({"mount_root_free_bytes": GIB}, "mount root", "1.00 GiB free"),
        ({"mount_root_free_bytes": None}, "mount root", "unknown free"),
        ({"mount_root_fstype": "tmpfs"}, "mount root", "images there are in memory"),
        ({"output_root_fstype": "ext4"}, "output root", "may disturb the measurement"),
        ({"output_root_free_bytes": 1024}, "output root", "1.00 KiB free"),
        ({"memory_available_bytes": GIB // 2}, "memory", "512 MiB available"),
        ({"loop_devices": False}, "loop devices", "no file systems on images"),
        ({"kernel_filesystems": None}, "file systems", "unknown"),
    ],
)
def test_what_makes_a_box_less_fit(changes: dict[str, Any], name: str, seen: str) -> None:
    row = rows(types=("tmpfs",), **changes)[name]
    assert row.state == "limited"
    assert seen in row.seen
    assert row.mend or row.seen == "unknown"


def test_a_file_system_that_the_kernel_lacks() -> None:
    row = rows(types=("xfs", "ext4"))["file systems"]
    assert (row.state, row.seen) == ("missing", "has: ext4; has not: xfs")
    assert "a kernel with xfs" in row.mend


def test_a_file_system_that_few_boxes_have_only_limits_one_without() -> None:
    row = rows(types=("ext4",), rare=("nfs4", "nfsd"))["file systems"]
    assert (row.state, row.seen) == ("limited", "has: ext4; has not: nfs4, nfsd")
    assert rows(types=("xfs",), rare=("nfs4",))["file systems"].state == "missing"


@pytest.mark.parametrize("program", Nfs().programs[1:], ids=lambda each: str(each.name))
def test_what_brings_services_is_left_to_the_owner_of_the_box(program: Program) -> None:
    row = rows(program)[program.name]
    assert (row.state, row.seen) == ("limited", "not found: sweeps that need it cannot be run")
    assert f"{program.name} comes with nfs-" in row.mend
    assert readiness.prepare(ReplayBox(), known(FIT, programs={}), [program], yes=True, ask=lambda _: True) == ()


def test_scratch_devices_are_looked_at_by_the_guard_and_never_touched() -> None:
    said = {
        "data": (0, "identity: id\n/dev/sdb (1 GiB) holds ext2 of Mountlab's own (UUID 6d6f756e)\n"),
        "blank": (
            1,
            "refused: /dev/sdc (1 GiB) carries no signature, and Mountlab has not claimed it\npermit: claim\n",
        ),
        "full": (1, "refused: /dev/sdd (1 GiB) holds xfs, id 11-22\npermit: 11-22\n"),
        "used": (1, "refused: /dev/sde is in use: /dev/sde is mounted on /mnt/my data\n"),
    }
    scratch = tuple(ScratchDevice(name=name, device=f"/dev/disk/by-id/{name}") for name in said)
    box = ReplayBox(Box(name="b", host="b", scratch=(*scratch, ScratchDevice(name="nvm", device="memory:0x100000000"))))
    for name, (status, text) in said.items():
        argv = script_argv("guard.sh", f"/dev/disk/by-id/{name}", "", "")
        box.answer(argv, "", stderr=text, exit_status=status)
    found = {name.removeprefix("scratch "): row for name, row in rows(box=box).items() if name.startswith("scratch ")}
    assert [(name, row.state) for name, row in found.items()] == [
        ("data", "ok"),
        ("blank", "missing"),
        ("full", "missing"),
        ("used", "missing"),
    ]
    assert found["data"].seen.startswith("/dev/disk/by-id/data: /dev/sdb (1 GiB) holds ext2 of Mountlab's own")
    assert found["blank"].mend.startswith("mountlab box claim b blank ")
    assert found["full"].mend.endswith("mountlab box claim b full --erase 11-22")
    assert "is mounted on /mnt/my data" in found["used"].seen
    assert found["used"].mend == "end that use, or name another device"


def test_without_root_scratch_devices_cannot_be_looked_at() -> None:
    box = ReplayBox(Box(name="b", host="b", scratch=(ScratchDevice(name="data", device="/dev/disk/by-id/a"),)))
    assert rows(box=box, rights="none")["scratch data"].state == "limited"


# --- prepare ----------------------------------------------------------------------------------------------------------


class Asked:
    """A user who always gives the same answer."""

    def __init__(self, answer: bool) -> None:
        self.answer, self.questions = answer, list[str]()

    def __call__(self, question: str) -> bool:
        self.questions.append(question)
        return self.answer


def test_nothing_missing_nothing_asked() -> None:
    found = {"fio": {"path": "/usr/bin/fio", "version": None}}
    ask = Asked(False)
    assert readiness.prepare(ReplayBox(), known(FIT, programs=found), [FIO], yes=False, ask=ask) == ()
    assert ask.questions == []


def test_prepare_asks_first_and_no_means_no() -> None:
    box, ask = ReplayBox(rights="sudo"), Asked(False)
    assert readiness.prepare(box, known(FIT, rights="sudo"), [FIO, MKE2FS, FIO], yes=False, ask=ask) == ()
    assert ask.questions == ["On box replay, run as root: apt-get install -y e2fsprogs fio?"]
    assert box.calls == []


def test_prepare_installs_as_root_and_names_the_packages() -> None:
    argv = ("dnf", "install", "-y", "e2fsprogs", "fio")
    box = ReplayBox(rights="sudo").answer(argv)
    facts = known(FIT, rights="sudo", package_manager="dnf")
    assert readiness.prepare(box, facts, [FIO, MKE2FS], yes=False, ask=Asked(True)) == ("e2fsprogs", "fio")
    assert box.calls == [Call(argv, root=True)]


def test_apt_goes_through_the_script_that_starts_no_service() -> None:
    box, ask = ReplayBox().when(lambda argv: argv[3:] == ("mountlab-install", "fio")), Asked(False)
    assert readiness.prepare(box, FIT, [FIO], yes=True, ask=ask) == ("fio",)
    script = box.calls[0].argv[2]
    assert "policy-rc.d" in script
    assert "DEBIAN_FRONTEND=noninteractive" in script
    assert ask.questions == []


@pytest.mark.parametrize("outcome", [0, 100])
def test_no_service_starts_while_apt_installs_nor_is_kept_from_it_later(tmp_path: Path, outcome: int) -> None:
    policy, log, lists = tmp_path / "policy-rc.d", tmp_path / "log", tmp_path / "lists"
    lists.mkdir()
    apt = tmp_path / "apt-get"
    apt.write_text(f'#!/bin/sh\n{policy}; echo "$? $*" >>{log}\n[ $1 = update ] || exit {outcome}\n')
    apt.chmod(0o755)
    script = files("mountlab.box").joinpath("install_packages.sh").read_text()
    script = script.replace("/usr/sbin/policy-rc.d", str(policy)).replace("/var/lib/apt/lists", str(lists))
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", "-c", script, "mountlab-install", "fio"], env=environment, check=False)
    assert done.returncode == outcome
    install = "101 install -y --no-install-recommends -o DPkg::Lock::Timeout=120 -- fio"
    again = ["101 update", install] if outcome else []
    assert log.read_text().splitlines() == ["101 update", install, *again]
    assert not policy.exists()


@pytest.mark.parametrize(
    ("manager", "words"),
    [
        ("zypper", "zypper --non-interactive install fio"),
        ("pacman", "pacman -S --needed --noconfirm fio"),
        ("dnf", "dnf install -y fio"),
    ],
)
def test_package_managers_are_told_to_ask_nothing(manager: str, words: str) -> None:
    assert " ".join(readiness.install_argv(manager, ["fio"])) == words


def test_prepare_without_rights_gives_the_command_to_those_who_have_them() -> None:
    with pytest.raises(PlanError) as caught:
        readiness.prepare(ReplayBox(rights="none"), known(FIT, rights="none"), [FIO], yes=True, ask=Asked(True))
    assert caught.value.next_step == "on the box, as root: apt-get install -y fio"


def test_prepare_with_an_unknown_package_or_manager() -> None:
    with pytest.raises(PlanError, match="no apt package is known for odd"):
        readiness.prepare(ReplayBox(), FIT, [FIO, ODD], yes=True, ask=Asked(True))
    with pytest.raises(PlanError, match="fio: missing, and the box has no package manager that we know"):
        readiness.prepare(ReplayBox(), known(FIT, package_manager=None), [FIO], yes=True, ask=Asked(True))


def test_prepare_leaves_out_what_no_package_has() -> None:
    assert readiness.prepare(ReplayBox(), FIT, [OPTIONAL], yes=True, ask=Asked(True)) == ()


def test_a_failed_installation_shows_what_it_said() -> None:
    argv = ("dnf", "install", "-y", "fio")
    box = ReplayBox().answer(argv, stderr="No match for argument: fio", exit_status=1)
    with pytest.raises(CommandError) as caught:
        readiness.prepare(box, known(FIT, package_manager="dnf"), [FIO], yes=True, ask=Asked(True))
    assert caught.value.what == "`dnf install -y fio` failed"
    assert "No match for argument" in caught.value.evidence


# --- clean ------------------------------------------------------------------------------------------------------------


def test_what_the_script_prints() -> None:
    printed = "process\t1\t42 fio --x\t\nmount\t0\t/srv/m/a\\040b\ttarget is busy \nroot\t1\t/srv/m\t\n"
    assert leftovers.parse_leftovers(printed) == [
        Leftover("process", "42 fio --x", True),
        Leftover("mount", "/srv/m/a b", False, "target is busy"),
        Leftover("root", "/srv/m", True),
    ]
    assert leftovers.parse_leftovers("") == []


@every_row("line", ["", "mount\t1\t/srv", "cheese\t1\tx\t", "mount\tyes\tx\t"])
def test_an_answer_that_cannot_be_read(line: str) -> None:
    with pytest.raises(BoxError, match="cannot be read"):
        leftovers.parse_leftovers(f"{line}\n")


def test_clean_asks_who_we_are_before_it_becomes_root() -> None:
    box = ReplayBox(rights="sudo").answer(("id", "-u"), "1000\n")
    box.when(lambda argv: "mountlab-roots" in argv, "/srv/m\n/dev/shm/o\n")
    box.when(lambda argv: argv[3:9] == ("mountlab-clean", "list", "1000", "", "/srv/m", "/dev/shm/o"))
    assert leftovers.remove_leftovers(box, dry_run=True) == []
    assert [call.root for call in box.calls] == [False, False, True]


def test_without_rights_clean_runs_as_the_user() -> None:
    box = ReplayBox(rights="none").answer(("id", "-u"), "1000\n")
    box.when(lambda argv: "mountlab-roots" in argv, "/srv/m\n/dev/shm/o\n")
    box.when(lambda argv: argv[4:5] == ("clean",), "root\t1\t/srv/m\t\n")
    assert leftovers.remove_leftovers(box) == [Leftover("root", "/srv/m", True)]


def test_a_process_that_does_not_end_is_an_error() -> None:
    box = ReplayBox().when(
        lambda argv: argv[4:7] == ("kill", "", "run1"), "process\t1\t7 dd\t\nprocess\t0\t8 fio --x\t\n"
    )
    with pytest.raises(LeftoverError) as caught:
        leftovers.kill_run(box, "run1")
    assert caught.value.where == "box replay, run run1"
    assert caught.value.got == "8 fio --x"
    with pytest.raises(ValueError, match="needs a run id"):
        leftovers.kill_run(box, "")


@pytest.mark.slow
@pytest.mark.requires_program("shellcheck")
@pytest.mark.parametrize("name", ["leftovers.sh", "install_packages.sh"])
def test_the_scripts_pass_shellcheck(name: str) -> None:
    done = subprocess.run(
        ["shellcheck", "-s", "sh", "-"], input=script_text(name), capture_output=True, text=True, check=False
    )
    assert done.stdout == ""


def test_a_lease_that_is_over_cleans_what_its_owner_holds_below_its_roots() -> None:
    lease = Lease(run_id="R", mount_root="/m", output_root="/o", owner="me")
    argv = lease_argv(lease, 90.0, "1000")
    assert argv[:2] == ("env", "MOUNTLAB_LEASE=R")
    assert argv[6:9] == ("/o/R", "90", "R")
    clean = leftovers.remove_leftovers_argv("clean", "1000", "/m", "/o", "me")
    assert argv[9:] == clean
    assert (clean[3:9], clean[10]) == (("mountlab-clean", "clean", "1000", "", "/m", "/o"), "me")
