"""The virtual box without starting it: command lines, what it is built from, and what is said where it cannot be."""

from __future__ import annotations

import itertools
import os
import re
import stat
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from mountlab.box.embedded import guest, guest_zfs, here, open_box, prepare_here, vm
from mountlab.box.embedded.child import private_directory
from mountlab.box.embedded.guest import Guest
from mountlab.core.errors import BoxError, CommandError, ParameterError
from mountlab.core.model import Box, Program
from mountlab.core.virtual import VM_KERNELS
from mountlab.results import paths
from mountlab.sweep.box_file import parse_box
from mountlab.sweep.feasible import all_programs

BOX = Box(name="vm", host="", embedded="vm")
ZFS = replace(BOX, extras=("zfs",))
DEBIAN = {"ID": "debian", "VERSION_CODENAME": "trixie"}
SCRIPTS = sorted(Path(guest.__file__).parent.glob("*.sh"))


def program(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


def options(argv: tuple[str, ...], name: str) -> list[str]:
    return [value for option, value in itertools.pairwise(argv) if option == name]


# --- QEMU -------------------------------------------------------------------------------------------------------------


def machine(
    directory: str = "/run/session", accelerator: vm.Accelerator = "tcg", extra: Sequence[str] = ()
) -> tuple[str, ...]:
    guest = Guest(Path("/cache/key"))
    return vm.qemu_argv("/bin/qemu", guest, Path(directory), port=2222, accelerator=accelerator, extra=extra)


@pytest.mark.parametrize("extra", [(), ("disk1", "disk2")])
def test_disks_are_known_by_their_serial_numbers(extra: tuple[str, ...]) -> None:
    devices = options(machine(extra=extra), "-device")
    serials = [serial for device in devices for serial in re.findall(r"virtio-blk-pci,.*serial=(\S+)", device)]
    assert serials == [f"mountlab-{name}" for name in ("root", "work", "scratch", "journal", *extra)]
    assert any(device.startswith("nvdimm,") for device in devices)


def test_its_disks_have_no_command_that_zeroes_blocks() -> None:
    """So mkfs writes its zeros, as on a hard disk: study D.1 is about what it saves not to."""
    disks = [device for device in options(machine(), "-device") if device.startswith("virtio-blk-pci")]
    assert len(disks) == 4
    assert all("write-zeroes=off" in disk.split(",") for disk in disks)


def test_what_is_in_the_cache_is_never_written() -> None:
    drives = options(machine(), "-drive")
    cached = [drive for drive in drives if "/cache/key/" in drive]
    assert len(cached) == 2
    assert all("readonly=on" in drive or "snapshot=on" in drive for drive in cached)
    assert all("/run/session/" in drive for drive in drives if drive not in cached)


def test_it_listens_on_loopback_only_and_reaches_nobody() -> None:
    (network,) = options(machine(), "-netdev")
    assert "restrict=on" in network
    assert re.findall(r"hostfwd=\S+", network) == ["hostfwd=tcp:127.0.0.1:2222-10.0.2.15:22"]


@pytest.mark.parametrize(("accelerator", "how"), [("tcg", "tcg,thread=multi"), ("kvm", "kvm")])
def test_the_guest_is_told_whether_it_is_emulated(accelerator: vm.Accelerator, how: str) -> None:
    argv = machine(accelerator=accelerator)
    assert options(argv, "-accel") == [how]
    assert f"mountlab.accelerator={accelerator}" in options(argv, "-append")[0].split()


def test_an_emulated_guest_does_without_what_makes_emulation_slow() -> None:
    """Random addresses make QEMU translate every program again; two processors wait for each other."""
    kvm, tcg = machine(accelerator="kvm"), machine(accelerator="tcg")
    assert (options(kvm, "-smp"), options(tcg, "-smp")) == (["2"], ["1"])
    words = set(options(tcg, "-append")[0].split()) - set(options(kvm, "-append")[0].split())
    assert words == {"mountlab.accelerator=tcg", "norandmaps", "tsc=reliable", "mitigations=off"}


def test_a_comma_in_a_path_does_not_end_an_option() -> None:
    argv = machine("/run/a,b")
    assert "file=/run/a,,b/scratch.img,if=none" in " ".join(options(argv, "-drive"))
    assert "mem-path=/run/a,,b/nvdimm.img,size=" in " ".join(options(argv, "-object"))


def test_disks_of_a_session_take_no_room_before_they_are_used(tmp_path: Path) -> None:
    vm.make_disks(tmp_path, ("disk1", "disk2"))
    sizes = {path.name: path.stat() for path in tmp_path.iterdir()}
    assert sizes["scratch.img"].st_size == vm.SCRATCH_BYTES
    assert sizes["disk1.img"].st_size == sizes["disk2.img"].st_size == vm.DISK_BYTES
    assert sum(each.st_blocks for each in sizes.values()) * 512 < 2**20


def test_further_disks_are_those_of_the_box_file() -> None:
    box = parse_box({"embedded": "vm", "disks": 3, "scratch": {"data": "/dev/pmem0"}}, name="vm", where="vm.yml")
    assert vm.extra_disks(box) == ("disk1", "disk2", "disk3")
    assert vm.extra_disks(BOX) == ()


def test_the_box_file_names_the_disks_that_the_guest_has() -> None:
    scratch = {each.name: each.device for each in paths.load_box("vm").scratch}
    start = (Path(guest.__file__).parent / "guest_start.sh").read_text()
    uuid = scratch.pop("pmem").removeprefix("/dev/disk/by-id/pmem-")
    assert f"echo {uuid} >" in start
    serials = "\n".join(machine())
    assert scratch.keys() == {"scratch", "journal"}
    assert all(f"serial={device.removeprefix('/dev/disk/by-id/virtio-')}" in serials for device in scratch.values())


# --- KVM or emulation -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("script", "boots"),
    [
        (f"echo '{vm.STARTS}'", True),
        ("echo 'something else'", False),
        (f"echo '{vm.STARTS}'; exit 1", False),
        ("echo 'failed to set MSR' >&2; kill -ABRT $$", False),
        (f"echo '{vm.STARTS}'; exec sleep 30", False),
    ],
    ids=["boots", "silent", "fails", "aborts", "hangs"],
)
@pytest.mark.slow
def test_kvm_is_used_only_where_it_boots_the_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, boots: bool
) -> None:
    monkeypatch.setattr(vm, "PROBE_TIMEOUT_S", 0.5 if "sleep" in script else 10.0)
    assert vm.kvm_boots(program(tmp_path / "qemu", script), Guest(tmp_path)) is boots


@pytest.fixture
def probes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[bool], list[str]]:
    """A machine with a /dev/kvm that boots or not; gives the list of probes made since."""
    monkeypatch.setattr(vm, "KVM", tmp_path / "kvm")
    monkeypatch.setattr(vm, "BOOT_ID", tmp_path / "boot_id")
    (tmp_path / "boot_id").write_text("first\n")

    def set_up(boots: bool) -> list[str]:
        made: list[str] = []
        (tmp_path / "kvm").touch()
        monkeypatch.setattr(vm, "kvm_boots", lambda qemu, _: bool(made.append(qemu)) or boots)
        return made

    return set_up


@pytest.mark.parametrize(("boots", "accelerator"), [(True, "kvm"), (False, "tcg")])
def test_kvm_is_tried_once_for_each_boot(
    probes: Callable[[bool], list[str]], tmp_path: Path, boots: bool, accelerator: str
) -> None:
    made, cached = probes(boots), Guest(tmp_path)
    assert [vm.choose_accelerator("qemu", cached) for _ in range(3)] == [accelerator] * 3
    assert made == ["qemu"]
    (tmp_path / "boot_id").write_text("second\n")
    assert vm.choose_accelerator("qemu", cached) == accelerator
    assert made == ["qemu"] * 2
    assert [path.name for path in tmp_path.glob("kvm-*")] == ["kvm-second"]


def test_without_a_kvm_device_nothing_is_tried(probes: Callable[[bool], list[str]], tmp_path: Path) -> None:
    made = probes(True)
    (tmp_path / "kvm").unlink()
    assert vm.choose_accelerator("qemu", Guest(tmp_path)) == "tcg"
    assert made == []


def test_the_probe_has_no_disks_and_goes_off_by_itself() -> None:
    argv = vm.probe_argv("qemu", Guest(Path("/cache/key")))
    assert options(argv, "-accel") == ["kvm"]
    assert "-no-reboot" in argv
    assert "-drive" not in argv
    assert "mountlab.probe" in options(argv, "-append")[0].split()


# --- what it is built from --------------------------------------------------------------------------------------------


def test_the_guest_has_every_program_that_a_sweep_may_want() -> None:
    wanted = {each.packages["apt"] for each in all_programs() if "apt" in each.packages}
    essential = {"coreutils", "tar", "findutils", "util-linux", "sed", "grep", "diffutils", "bash", "dash"}
    assert wanted - essential <= set(guest.packages(ZFS))
    assert "zfsutils-linux" not in guest.packages(BOX), "a guest is of main alone, unless its box file asks for more"
    assert list(guest.packages(BOX)) == sorted(set(guest.packages(BOX)))


def test_the_key_changes_with_all_that_the_guest_is_built_from(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [guest.key(BOX)]
    assert guest.key(BOX) == keys[0]
    resource = guest.resource
    with monkeypatch.context() as patch:
        patch.setattr(guest, "suite", lambda: "sid")
        keys.append(guest.key(BOX))
    with monkeypatch.context() as patch:
        patch.setattr(guest, "BASE_PACKAGES", (*guest.BASE_PACKAGES, "one-more"))
        keys.append(guest.key(BOX))
    for name in guest.RECIPE:
        with monkeypatch.context() as patch:
            patch.setattr(guest, "resource", lambda each, name=name: resource(each) + "#" * (each == name))
            keys.append(guest.key(BOX))
    kernels = [guest.key(replace(BOX, kernel=kernel)) for kernel in VM_KERNELS]
    assert len({*keys, *kernels, guest.key(ZFS)}) == 3 + len(guest.RECIPE) + len(VM_KERNELS) + 1
    assert guest.key(BOX) == keys[0]


@pytest.mark.parametrize(
    ("release", "suite"),
    [(DEBIAN, "trixie"), ({"ID": "debian"}, "bookworm"), ({"ID": "ubuntu", "VERSION_CODENAME": "noble"}, "bookworm")],
)
def test_the_suite_is_that_of_this_machine_where_it_is_debian(
    monkeypatch: pytest.MonkeyPatch, release: dict[str, str], suite: str
) -> None:
    monkeypatch.setattr(guest.platform, "freedesktop_os_release", lambda: release)
    assert guest.suite() == suite


def test_packages_come_from_where_this_machine_takes_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    targets = (
        "Debian|http://mirror.example/debian/|trixie|main\n"
        "Example|http://other.example/|stable|main\n"
        "Debian|cdrom:[Debian 13]/|trixie|main\n"
        "Debian|http://mirror.example/security/|trixie-security|main\n"
    )
    signed = f"deb [signed-by={guest.DEBIAN_KEYS}]"
    expected = (
        f"{signed} http://mirror.example/debian/ trixie main",
        f"{signed} http://mirror.example/security/ trixie-security main",
    )
    assert guest.source_lines(targets) == expected
    monkeypatch.setattr(guest.platform, "freedesktop_os_release", lambda: DEBIAN)
    monkeypatch.setattr(here, "find_program", lambda name: f"/bin/{name}")
    monkeypatch.setattr(here, "run", lambda _: SimpleNamespace(stdout=targets))
    assert guest.sources(BOX) == expected
    monkeypatch.setattr(here, "run", lambda _: SimpleNamespace(stdout=""))
    with pytest.raises(BoxError, match="no package lists of Debian") as caught:
        guest.sources(BOX)
    assert caught.value.next_step == "as root: apt-get update"


def test_elsewhere_mmdebstrap_chooses_where_packages_come_from(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest.platform, "freedesktop_os_release", lambda: {"ID": "ubuntu"})
    monkeypatch.setattr(here, "find_program", lambda name: f"/bin/{name}")
    assert guest.sources(BOX) == ()
    for box in (ZFS, replace(BOX, kernel="7.2")):
        with pytest.raises(BoxError, match="control machine with Debian") as caught:
            guest.sources(box)
        assert caught.value.got == "ubuntu"


def test_the_proxy_of_this_machine_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    dumped = 'Acquire::http::Proxy "http://proxy.example:3142";\nAcquire::cdrom::mount "/media/cdrom/";\n'
    monkeypatch.setattr(here, "run", lambda _: SimpleNamespace(stdout=dumped))
    monkeypatch.setattr(here, "find_program", lambda name: f"/bin/{name}")
    argv = guest.bootstrap_argv(BOX, Path("/cache/new"), Path("/var/tmp/x/root.tar"), ())
    given = [word for word in argv if word.startswith("--aptopt")]
    assert given == ['--aptopt=Acquire::http::Proxy "http://proxy.example:3142";']


def of_kernel(monkeypatch: pytest.MonkeyPatch, kernel: str, suite: str = "bookworm") -> tuple[str, ...]:
    """Return the command that builds a box with this kernel, on a machine with this release."""
    monkeypatch.setattr(guest, "suite", lambda: suite)
    lines = [f"deb http://m.example/debian {suite} main", f"deb http://m.example/security {suite}-security main"]
    return guest.bootstrap_argv(replace(BOX, kernel=kernel), Path("/new"), Path("/root.tar"), lines)


@pytest.mark.parametrize(("kernel", "other"), [("6.12", "trixie"), ("7.2", "forky")])
def test_a_kernel_of_another_release_comes_alone_from_there(
    monkeypatch: pytest.MonkeyPatch, kernel: str, other: str
) -> None:
    argv = of_kernel(monkeypatch, kernel)
    assert argv[-4:] == (
        "deb http://m.example/debian bookworm main",
        "deb http://m.example/security bookworm-security main",
        f"deb http://m.example/debian {other} main",
        f"deb http://m.example/security {other}-security main",
    )
    (pins,) = (word for word in argv if word.startswith("--setup-hook"))
    assert (
        f"Package: linux-image-* linux-binary-* linux-modules-* linux-base linux-base-*\nPin: release n={other}\n"
        in pins
    )
    assert f"Package: *\nPin: release n={other}-security\nPin-Priority: -1\n" in pins


def test_a_kernel_of_the_boxs_own_release_needs_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    argv = of_kernel(monkeypatch, "6.1")
    assert argv[-2:] == (
        "deb http://m.example/debian bookworm main",
        "deb http://m.example/security bookworm-security main",
    )
    assert not any(word.startswith("--setup-hook") for word in argv)


@pytest.mark.parametrize("kernel", VM_KERNELS)
def test_boxes_with_a_kernel_differ_in_the_kernel_alone(monkeypatch: pytest.MonkeyPatch, kernel: str) -> None:
    packages = {*guest.packages(BOX)} - {"linux-image-cloud-amd64"}
    assert {*guest.packages(replace(BOX, kernel=kernel))} == packages | {"linux-image-amd64", "initramfs-tools"}


@pytest.mark.parametrize(
    ("made", "error"),
    [("7.2.12+deb14-amd64", ""), ("7.3.1+deb14-amd64", "the archive has kernel 7.3.1+deb14-amd64 now, not 7.2")],
)
def test_another_kernel_than_the_box_file_names_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: str, error: str
) -> None:
    modules = tmp_path / "lib" / "modules" / made
    modules.mkdir(parents=True)
    (tmp_path / "boot").mkdir()
    (modules / "vmlinuz").write_text("kernel")
    (modules / "config").write_text("CONFIG_X=y")
    argv = of_kernel(monkeypatch, "7.2")
    hook = next(word for word in argv if "lib/modules" in word).removeprefix("--customize-hook=")
    done = subprocess.run(["sh", "-c", hook, "hook", tmp_path], capture_output=True, text=True, check=False)
    assert (done.returncode == 0, error in done.stderr) == (not error, True)
    assert (tmp_path / "boot" / f"vmlinuz-{made}").exists() is not bool(error)


@pytest.mark.parametrize(("uid", "mode"), [(0, "--mode=root"), (1000, "--mode=unshare")])
def test_how_it_is_built_as_root_and_as_an_ordinary_user(monkeypatch: pytest.MonkeyPatch, uid: int, mode: str) -> None:
    monkeypatch.setattr(guest.os, "geteuid", lambda: uid)
    argv = guest.bootstrap_argv(BOX, Path("/a b/new"), Path("/var/tmp/x/root.tar"), ("deb http://m.example s main",))
    assert mode in argv
    assert argv[-3:] == (guest.suite(), "/var/tmp/x/root.tar", "deb http://m.example s main")
    assert "--customize-hook=tar-in '/a b/new/recipe.tar' /" in argv
    assert (argv[0] == "unshare") is (uid == 0)


# --- ZFS --------------------------------------------------------------------------------------------------------------

ANSWER = """\
Package: linux-image-cloud-amd64
Source: linux-signed-amd64 (6.1.192+3)
Version: 6.1.192-3
Depends: linux-image-6.1.0-57-cloud-amd64 (= 6.1.192-3)

Package: zfs-dkms
Source: zfs-linux
Version: 2.1.11-1+deb12u1
Depends: dkms (>> 2.1.1.2-5), file
"""
BUILD = guest_zfs.ZfsBuild(version="2.1.11-1+deb12u1", kernel="6.1.0-57-cloud-amd64")


@pytest.mark.parametrize(
    ("answer", "build"),
    [
        (ANSWER, BUILD),
        ("Depends: linux-base-amd64 (= 7.2.12-1), linux-image-7.2.12+deb14-amd64 (= 7.2.12-1)\n\n"
         "Package: zfs-dkms\nVersion: 2.4.4-1\n", guest_zfs.ZfsBuild(version="2.4.4-1", kernel="7.2.12+deb14-amd64")),
        (ANSWER.split("\n\n")[0], None),
        (ANSWER.split("\n\n")[1], None),
    ],
    ids=["cloud", "forky", "no zfs", "no kernel"],
)  # fmt: skip
def test_what_is_built_is_what_the_archive_has(answer: str, build: guest_zfs.ZfsBuild | None) -> None:
    assert guest_zfs.read_answer(answer) == build


def test_only_a_box_with_zfs_takes_packages_of_contrib(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "deb http://m.example/debian bookworm"
    assert guest_zfs.with_contrib([f"{line} main", f"{line} contrib"]) == (f"{line} main", f"{line} contrib")
    monkeypatch.setattr(guest, "_lines_here", lambda _: (f"{line} main",))
    monkeypatch.setattr(guest.platform, "freedesktop_os_release", lambda: DEBIAN)
    monkeypatch.setattr(here, "find_program", lambda name: f"/bin/{name}")
    assert guest.sources(ZFS) == (f"{line} main", f"{line} contrib")
    assert "zfsutils-linux" in guest.packages(ZFS)
    assert "zfsutils-linux" not in guest.packages(BOX)


@pytest.mark.parametrize(("kernel", "suite"), [(None, "sid"), ("6.1", "bookworm"), ("6.12", "trixie")])
def test_zfs_goes_with_a_kernel_of_the_boxs_own_release(kernel: str | None, suite: str) -> None:
    guest_zfs.check_kernel(replace(ZFS, kernel=kernel), suite)


@pytest.mark.parametrize(
    ("kernel", "suite", "got", "allowed"),
    [
        ("6.12", "bookworm", "zfs, with the kernel 6.12 of trixie in a box of bookworm", "kernel: 6.1 or no kernel"),
        ("6.1", "trixie", "zfs, with the kernel 6.1 of bookworm in a box of trixie", "kernel: 6.12 or no kernel"),
        ("7.2", "sid", "zfs, with the kernel 7.2 of forky in a box of sid", "no kernel"),
    ],
)
def test_zfs_with_a_kernel_of_another_release_is_refused(
    monkeypatch: pytest.MonkeyPatch, kernel: str, suite: str, got: str, allowed: str
) -> None:
    monkeypatch.setattr(guest, "suite", lambda: suite)
    box = replace(ZFS, kernel=kernel)
    for attempt in (lambda: guest.built(box), lambda: prepare_here(box, yes=True, ask=lambda _: True, say=print)):
        with pytest.raises(ParameterError) as caught:
            attempt()
        assert (caught.value.got, caught.value.allowed) == (got, allowed)
        assert caught.value.where == "params/boxes/vm.yml: with"


class Archive:
    """Stands for mmdebstrap: says what the archive has, and makes the files that hooks would."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, answer: str = ANSWER) -> None:
        self.answer, self.runs = answer, []
        monkeypatch.setattr(guest, "_bootstrap", self.run)

    def run(self, _box: Box, argv: Sequence[str], scratch: Path, *_: object) -> None:
        self.runs.append(next(word for word in argv if word.startswith("--variant=")).removeprefix("--variant="))
        (scratch / "answer").write_text(self.answer)
        (scratch / "zfs.tar").write_text("modules")

    def hooks(self, cache: Path, said: list[str]) -> tuple[str, ...]:
        with private_directory("building-", parent=str(cache)) as (beside, watch):
            return guest._zfs_hooks(ZFS, beside, beside, ["deb http://m.example s main"], watch, said.append)


def test_zfs_is_built_once_for_a_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest, "cache_directory", lambda: tmp_path)
    archive, said = Archive(monkeypatch), list[str]()
    first = archive.hooks(tmp_path, said)
    assert archive.runs == ["custom", "apt"]
    assert archive.hooks(tmp_path, said) == first
    assert archive.runs == ["custom", "apt", "custom"]
    (kept,) = tmp_path.iterdir()
    assert kept.name == "zfs-2.1.11-1+deb12u1-6.1.0-57-cloud-amd64.tar"
    assert any(str(kept) in hook for hook in first)
    assert said[0].startswith("ZFS 2.1.11-1+deb12u1 is built for the kernel 6.1.0-57-cloud-amd64, once: ")
    assert said[1] == f"ZFS 2.1.11-1+deb12u1 for the kernel 6.1.0-57-cloud-amd64 was built before: {kept}"


def test_an_archive_without_contrib_has_no_zfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guest, "cache_directory", lambda: tmp_path)
    with pytest.raises(BoxError, match="has no ZFS") as caught:
        Archive(monkeypatch, "").hooks(tmp_path, [])
    assert "contrib" in caught.value.next_step


# --- where it cannot be -----------------------------------------------------------------------------------------------


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "mountlab" / "vm"


def test_a_box_that_was_not_built_says_how_to_build_it(empty_cache: Path) -> None:
    with pytest.raises(BoxError) as caught, open_box(BOX):
        pass
    assert caught.value.what == "the virtual box is not built"
    assert caught.value.got == f"no {empty_cache / guest.key(BOX)}"
    assert caught.value.next_step == "mountlab box prepare vm"
    assert caught.value.exit_code == 3


def test_the_cache_is_the_users_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert guest.cache_directory() == tmp_path / ".cache" / "mountlab" / "vm"


@pytest.mark.parametrize("system", [("Linux", "aarch64"), ("Darwin", "x86_64")])
def test_other_machines_are_refused(monkeypatch: pytest.MonkeyPatch, system: tuple[str, str]) -> None:
    monkeypatch.setattr(guest.os, "uname", lambda: SimpleNamespace(sysname=system[0], machine=system[1]))
    for attempt in (lambda: guest.built(BOX), lambda: prepare_here(BOX, yes=True, ask=lambda _: True, say=print)):
        with pytest.raises(BoxError, match="made for x86-64 Linux machines") as caught:
            attempt()
        assert caught.value.got == f"{system[0]} on {system[1]}"


def test_a_missing_qemu_comes_with_the_command_that_installs_it(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (empty_cache / guest.key(BOX)).mkdir(parents=True)
    monkeypatch.setattr(here, "find_program", lambda name: "/bin/dnf" if name == "dnf" else None)
    with pytest.raises(BoxError, match="qemu-system-x86_64 is missing") as caught, open_box(BOX):
        pass
    assert "dnf install -y qemu-system-x86-core" in caught.value.next_step


def without(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    monkeypatch.setattr(here, "find_program", lambda name: None if name in names else f"/bin/{name}")


def test_what_is_missing_is_installed_after_asking(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    without(monkeypatch, "mmdebstrap", "qemu-system-x86_64", "sqfstar")
    monkeypatch.setattr(guest.os, "geteuid", lambda: 0)
    with pytest.raises(BoxError, match="cannot be built without these programs") as caught:
        prepare_here(BOX, yes=False, ask=lambda question: bool(asked.append(question)), say=asked.append)
    (question,) = asked
    assert "apt-get install -y qemu-system-x86 mmdebstrap squashfs-tools" in question
    assert caught.value.got == "no qemu-system-x86_64, mmdebstrap, sqfstar"
    assert caught.value.next_step in question
    assert not empty_cache.exists()


def test_a_box_that_is_built_is_not_built_again(empty_cache: Path) -> None:
    (empty_cache / guest.key(BOX)).mkdir(parents=True)
    said: list[str] = []
    prepare_here(BOX, yes=False, ask=lambda question: bool(said.append(question)), say=said.append)
    assert said == []


def test_an_ordinary_user_needs_numbers_to_map_and_is_told_how(
    empty_cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without(monkeypatch)
    monkeypatch.setattr(guest.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(guest.getpass, "getuser", lambda: "alice")
    monkeypatch.setattr(guest, "has_range", lambda path, *_: path.name == "subgid")
    monkeypatch.setattr(guest, "DEBIAN_KEYS", Path("/"))
    with pytest.raises(BoxError, match="needs a range of user and group numbers") as caught:
        prepare_here(BOX, yes=False, ask=lambda _: False, say=print)
    assert caught.value.got == "no line for alice in /etc/subuid"
    assert "usermod --add-subuids 100000-165535 --add-subgids 100000-165535 alice" in caught.value.next_step


def test_a_kernel_without_user_name_spaces_is_told(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch)
    monkeypatch.setattr(guest.os, "geteuid", lambda: 1000)
    monkeypatch.setattr(guest, "has_range", lambda *_: True)
    monkeypatch.setattr(guest, "DEBIAN_KEYS", Path("/"))
    refused = subprocess.CompletedProcess((), 1, "", "unshare: unshare failed: Operation not permitted\n")
    monkeypatch.setattr(guest.subprocess, "run", lambda *_, **__: refused)
    with pytest.raises(BoxError, match="does not allow ordinary users to make user name spaces") as caught:
        prepare_here(BOX, yes=False, ask=lambda _: False, say=print)
    assert caught.value.got == "unshare: unshare failed: Operation not permitted"


def test_ranges_are_found_by_name_or_number(tmp_path: Path) -> None:
    table = tmp_path / "subuid"
    table.write_text("alice:100000:65536\n1001:165536:65536\n")
    assert [guest.has_range(table, user, uid) for user, uid in (("alice", 5), ("bob", 1001), ("bob", 5))] == [
        True,
        True,
        False,
    ]
    assert not guest.has_range(tmp_path / "absent", "alice", 5)


def test_missing_keys_of_the_archive_are_told(empty_cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch)
    monkeypatch.setattr(guest, "DEBIAN_KEYS", Path("/absent.gpg"))
    with pytest.raises(BoxError, match="keys of Debian's archive are missing") as caught:
        prepare_here(BOX, yes=False, ask=lambda _: False, say=print)
    assert caught.value.got == "no /absent.gpg"


@pytest.mark.requires_program("ssh-keygen")
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the virtual box is made for x86-64 machines")
def test_a_build_that_fails_shows_why_and_leaves_nothing(
    empty_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = program(
        tmp_path / "mmdebstrap", "echo 'I: downloading packages with apt...' >&2; echo 'E: 404' >&2; exit 25"
    )
    find = here.find_program
    monkeypatch.setattr(here, "find_program", lambda name: find(name) or "/bin/true")
    monkeypatch.setattr(guest, "bootstrap_argv", lambda *_: (broken,))
    monkeypatch.setattr(guest, "sources", lambda _: ())
    monkeypatch.setattr(guest, "DEBIAN_KEYS", Path("/"))
    monkeypatch.setattr(guest, "has_range", lambda *_: True)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    said: list[str] = []
    with pytest.raises(CommandError) as caught:
        guest.build(BOX, yes=True, ask=lambda _: False, say=said.append)
    assert caught.value.what == "mmdebstrap could not build the virtual box"
    assert (caught.value.got, caught.value.evidence) == ("exit status 25", "E: 404\n")
    assert said[0] == f"building the virtual box: Debian {guest.suite()}, in {empty_cache / guest.key(BOX)}"
    assert re.fullmatch(r" *\d+ s  downloading packages with apt\.\.\.", said[1])
    assert list(empty_cache.iterdir()) == []
    assert list((tmp_path / "tmp").iterdir()) == []


# --- installing on this machine ---------------------------------------------------------------------------------------


def test_without_a_package_of_a_program_the_user_is_told_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(here, "find_program", lambda name: "/bin/pacman" if name == "pacman" else None)
    only_apt = Program(name="mmdebstrap", packages={"apt": "mmdebstrap"}, version=())
    with pytest.raises(BoxError, match="mmdebstrap: missing, and this machine has no package manager"):
        here.install([only_apt], where="box vm", yes=True, ask=lambda _: True)
    assert here.install_line([only_apt]) == "what your distribution calls mmdebstrap"


def test_a_box_file_may_say_vm() -> None:
    assert parse_box({"embedded": "vm"}, name="vm", where="vm.yml").embedded == "vm"


@pytest.mark.requires_program("shellcheck")
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_shellcheck_finds_nothing_in_the_scripts_of_the_boxes(script: Path) -> None:
    done = subprocess.run(["shellcheck", "--shell=sh", str(script)], capture_output=True, text=True, check=False)
    assert done.stdout == ""
