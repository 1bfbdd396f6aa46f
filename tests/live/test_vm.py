"""The virtual box, for real: DAX, disks by stable names, reboots, host keys, and nothing left behind."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
from conftest import prepared_vm
from mountlab.box import facts
from mountlab.box.connection import BoxConnection
from mountlab.box.embedded import guest, open_box, vm
from mountlab.box.ssh import Endpoint, SshBox, connect
from mountlab.core.errors import BoxError, HostKeyError
from mountlab.core.model import Box, Filesystem, ScratchDevice
from mountlab.core.shell import script_argv
from mountlab.core.virtual import VM_DISKS, VM_KERNELS
from mountlab.filesystems.effect import effects
from mountlab.results import paths
from ordinary import ordinary_user
from processes import processes_with
from restarted import restarted_guest
from waiting import wait_until

pytestmark = [pytest.mark.box, pytest.mark.requires_program("qemu-system-x86_64")]

SCRATCH = "/dev/disk/by-id/virtio-mountlab-scratch"
JOURNAL = "/dev/disk/by-id/virtio-mountlab-journal"
FURTHER = ("disk1", "disk2")
PMEM = "/dev/disk/by-id/pmem-6d6f756e-746c-6162-0000-6e766469006d"
STATX_ATTR_DAX = 0x200000


def sh(box: BoxConnection, script: str, *, ok: bool = True) -> str:
    """What a script says in the guest; its standard error too, where it is meant to fail."""
    done = box.run(("sh", "-c", script))
    assert done.ok == ok, done.error_text
    return done.text if ok else done.error_text


# --- what it is -------------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_facts_of_the_virtual_box(vm_connection: BoxConnection) -> None:
    gathered = facts.gather(vm_connection, [])
    assert gathered.machine.hostname == "mountlab-vm"
    assert (gathered.kernel.release or "").endswith("-cloud-amd64")
    accelerator: vm.Accelerator = "tcg" if "tcg" in sh(vm_connection, "cat /proc/cmdline") else "kvm"
    assert gathered.machine.emulated is (accelerator == "tcg")
    assert gathered.machine.virtualization not in (None, "none")
    assert (gathered.rights.level, gathered.processors.count) == ("root", vm.CPUS[accelerator])
    assert gathered.storage.mount_root_fstype == "ext4"
    assert gathered.storage.output_root_fstype == "tmpfs"
    assert gathered.kernel.loop_devices is True
    assert {"loop", "zram", "raid1", "raid456", "dm-crypt", "dm-thin-pool"} <= set(gathered.kernel.features or ())
    assert {"ext4", "xfs", "btrfs", "overlay", "tmpfs", "ramfs", "hugetlbfs"} <= set(gathered.kernel.filesystems or ())


@pytest.mark.long
def test_the_disks_of_the_box_file(vm_connection: BoxConnection) -> None:
    names = {scratch.name: scratch.device for scratch in vm_connection.box.scratch}
    assert names == {"scratch": SCRATCH, "journal": JOURNAL, "pmem": PMEM}
    sizes = {name: int(sh(vm_connection, f"blockdev --getsize64 {device}")) for name, device in names.items()}
    assert (sizes["scratch"], sizes["journal"]) == (vm.SCRATCH_BYTES, vm.JOURNAL_BYTES)
    assert vm.NVDIMM_BYTES - 4 * 2**20 <= sizes["pmem"] < vm.NVDIMM_BYTES  # the header of fsdax


@pytest.mark.long
def test_the_kernel_has_what_file_systems_may_lie_on(vm_connection: BoxConnection) -> None:
    modules = ("zram", "loop", "overlay", "nd_pmem", "raid1", "dm_mod", "dm_snapshot", "xfs", "btrfs")
    assert vm_connection.run(("modprobe", "--dry-run", "--all", *modules)).ok
    assert not vm_connection.run(("modprobe", "--dry-run", "--all", "loop", "no_such_module")).ok


@pytest.mark.long
def test_processes_that_nobody_waits_for_are_reaped(vm_connection: BoxConnection) -> None:
    sh(vm_connection, "for i in 1 2 3; do (sleep 0.1 &) ; done")
    counted = "grep -l '^State:.Z' /proc/[0-9]*/status | wc -l"
    wait_until("no zombie", lambda: sh(vm_connection, counted).strip() == "0")


# --- DAX --------------------------------------------------------------------------------------------------------------


DAX = Filesystem(name="dax", type="ext4", options=("dax=always",))


def evidence(box: BoxConnection, place: str) -> str:
    """What a run reads of a mount."""
    return sh(box, f"set -- {place}\n{files('mountlab.filesystems').joinpath('evidence.sh').read_text()}")


@contextmanager
def mounted(box: BoxConnection, device: str, options: str) -> Iterator[str]:
    """What /proc/self/mountinfo says of the mount."""
    sh(box, f"mkdir -p /run/m && mount -o {options} {device} /run/m")
    try:
        yield sh(box, "grep ' /run/m ' /proc/self/mountinfo")
    finally:
        sh(box, "umount /run/m")


@pytest.mark.long
@pytest.mark.parametrize("mkfs", ["mke2fs -q -F -t ext4", "mkfs.xfs -q -f"])
def test_dax_is_in_effect_on_the_nvdimm(vm_connection: BoxConnection, mkfs: str) -> None:
    sh(vm_connection, f"{mkfs} {PMEM}")
    try:
        with mounted(vm_connection, PMEM, "dax=always") as shown:
            assert "dax=always" in shown
            (row,) = effects(DAX, {"mount.txt": "", "evidence.txt": evidence(vm_connection, "/run/m")})
            assert (row.option, row.state, row.kernel_says) == ("dax=always", "in effect", "dax=always")
            told = sh(vm_connection, "echo x >/run/m/file && xfs_io -r -c 'statx -r' /run/m/file")
            (attributes,) = re.findall(r"stat.attributes = (0x[0-9a-f]+)", told)
            assert int(attributes, 16) & STATX_ATTR_DAX  # the kernel's word on the file itself
    finally:
        sh(vm_connection, f"wipefs -q -a {PMEM}")


@pytest.mark.long
def test_ext4_refuses_dax_on_a_disk_and_the_kernel_says_why(vm_connection: BoxConnection) -> None:
    sh(vm_connection, f"mke2fs -q -F -t ext4 {SCRATCH}")
    try:
        sh(vm_connection, f"mkdir -p /run/m && mount -o dax=always {SCRATCH} /run/m", ok=False)
        assert "DAX unsupported by block device" in sh(vm_connection, "dmesg | tail -3")
    finally:
        sh(vm_connection, f"wipefs -q -a {SCRATCH}")


# --- members of arrays and volume groups ------------------------------------------------------------------------------


@pytest.mark.long
def test_an_array_and_a_volume_group_can_be_made_of_its_disks(vm_connection: BoxConnection) -> None:
    make = "mdadm --quiet --create /dev/md0 --run --level=1 --raid-devices=2 $(readlink -f {}) missing"
    sh(vm_connection, make.format(JOURNAL))
    assert "raid1" in sh(vm_connection, "cat /proc/mdstat")
    sh(vm_connection, f"mdadm --quiet --stop /dev/md0; mdadm --zero-superblock {JOURNAL}")
    sh(vm_connection, f"pvcreate -qy {JOURNAL} && vgcreate -q test {JOURNAL} && lvcreate -qy -L 64M -n one test")
    assert "one" in sh(vm_connection, "lvs --noheadings -o lv_name test")
    sh(vm_connection, f"vgremove -qfy test && pvremove -qy {JOURNAL} && wipefs -q -a {JOURNAL}")


# --- it reaches nobody, and only the right one is reached -------------------------------------------------------------


@pytest.mark.long
def test_the_guest_cannot_reach_this_machine(vm_connection: BoxConnection) -> None:
    with socket.create_server((vm.HOST, 0)) as server:
        server.settimeout(0.5)
        port = server.getsockname()[1]
        assert not vm_connection.run(("busybox", "nc", "-w", "2", "10.0.2.2", str(port)), timeout_s=10).ok
        with pytest.raises(TimeoutError):
            server.accept()
        with socket.create_connection((vm.HOST, port)):  # the door was open
            server.accept()[0].close()


@pytest.mark.long
def test_a_second_one_beside_it_has_a_host_key_that_is_checked_and_disks_that_survive_its_reboot(
    vm_connection: BoxConnection, vm_box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    sh(vm_connection, "touch /run/first")
    extra = (ScratchDevice(name=name, device=VM_DISKS[name]) for name in FURTHER)
    box = replace(vm_box, scratch=(*vm_box.scratch, *extra))
    with vm.virtual_box(box) as endpoint:
        (directory,) = tmp_path.glob("mountlab-vm-*")
        assert directory.stat().st_mode & 0o777 == 0o700
        assert endpoint.key_file.stat().st_mode & 0o777 == 0o600
        strangers_are_refused(box, endpoint, tmp_path)
        second = connect(box, endpoint)
        assert not second.run(("test", "-e", "/run/first")).ok
        sh(second, f"blkid -p {SCRATCH}", ok=False)  # blank: its disks are its own
        for name in FURTHER:
            looked = second.run(script_argv("guard.sh", VM_DISKS[name], "", ""), root=True, timeout_s=120.0)
            assert "is a disk that Mountlab made for this virtual box" in looked.error_text
        disks_survive_a_reboot(box, endpoint, second)
    assert not directory.exists()
    assert vm_connection.run(("test", "-e", "/run/first")).ok


def strangers_are_refused(box: Box, endpoint: Endpoint, directory: Path) -> None:
    """A box with another host key, and a client with another key."""
    stranger = directory / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(stranger)], check=True)
    listed = directory / "known_hosts"
    key = stranger.with_suffix(".pub").read_text().split()[1]
    listed.write_text(f"[{endpoint.host}]:{endpoint.port} ssh-ed25519 {key}\n")
    with pytest.raises(HostKeyError, match="has CHANGED"):
        connect(box, replace(endpoint, known_hosts=listed))
    with pytest.raises(BoxError, match="refused the login"):
        connect(box, replace(endpoint, key_file=stranger))


def disks_survive_a_reboot(box: Box, endpoint: Endpoint, connection: SshBox) -> None:
    """New at the start, they are kept while the guest starts again."""
    devices = (SCRATCH, JOURNAL, PMEM, *(VM_DISKS[name] for name in FURTHER))
    for device in devices:
        assert beginning(connection, device) == "." * 8
        sh(connection, f"printf mountlab | dd of={device} conv=fsync,notrunc status=none")
    sh(connection, "touch /run/before")
    connection = restarted_guest(box, endpoint, connection)
    assert not connection.run(("test", "-e", "/run/before")).ok
    assert [beginning(connection, device) for device in devices] == ["mountlab"] * len(devices)
    assert sh(connection, "cat /sys/block/pmem0/queue/dax").strip() == "1"
    connection.close()


def beginning(connection: BoxConnection, device: str) -> str:
    return sh(connection, f"head -c 8 {device} | tr '\\0' .")


@pytest.mark.long
def test_it_goes_with_us_even_when_we_are_killed_outright(vm_box: Box) -> None:
    code = """
import time
from mountlab.box.embedded.vm import virtual_box
from mountlab.results import paths
with virtual_box(paths.load_box("vm")) as endpoint:
    print(endpoint.log.parent, flush=True)
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        directory = Path(process.stdout.readline().strip())
        assert len(processes_with(str(directory))) == 2  # QEMU and the watchdog
        process.kill()
    wait_until("no directory", lambda: not directory.exists())
    wait_until("no process", lambda: not processes_with(str(directory)))


@pytest.mark.parametrize(
    ("part", "got"),
    [
        pytest.param("root.squashfs", "mountlab: gives up: no root image", marks=pytest.mark.long),
        pytest.param("initrd", "Kernel panic", marks=pytest.mark.long),
    ],
)
def test_a_guest_that_does_not_boot_shows_its_console(
    vm_box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str, got: str
) -> None:
    good = guest.built(vm_box).directory
    for file in good.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / part).unlink()
    (tmp_path / part).write_bytes(bytes(1 << 20))
    monkeypatch.setattr(vm, "built", lambda _: guest.Guest(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    did_not_boot(vm_box, tmp_path, got)


HANGS = """#!/bin/sh
for word; do
    case $word in file,id=console,path=*) echo "Kernel panic - not syncing: a test" > "${word#*path=}" ;; esac
done
exec sleep 60
"""


def test_a_machine_whose_console_says_that_it_gave_up_is_ended(
    vm_box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same, without the processor time that a real machine takes for it."""
    machine = tmp_path / "hangs"
    machine.write_text(HANGS)
    machine.chmod(0o755)
    monkeypatch.setattr(vm.here, "needed", lambda *_, **__: str(machine))
    monkeypatch.setattr(vm, "built", lambda _: guest.Guest(tmp_path))
    monkeypatch.setattr(vm, "choose_accelerator", lambda *_: "tcg")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    did_not_boot(vm_box, tmp_path, "Kernel panic - not syncing: a test")
    assert not processes_with(str(tmp_path))


SECOND = """#!/bin/sh
# Says nothing the first time it is started.
for word; do case $word in file,id=console,path=*) console=${word#*path=} ;; esac; done
if [ -e "$0.tried" ]; then echo "Kernel panic - not syncing: the second" >"$console"; fi
touch "$0.tried"
exec sleep 60
"""


@pytest.mark.parametrize(("how", "got"), [("tcg", "Kernel panic - not syncing: the second"), ("kvm", vm._HANGS)])
def test_one_that_hangs_in_emulation_is_started_once_more(
    how: vm.Accelerator, got: str, vm_box: Box, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = tmp_path / "second"
    machine.write_text(SECOND)
    machine.chmod(0o755)
    monkeypatch.setattr(vm.here, "needed", lambda *_, **__: str(machine))
    monkeypatch.setattr(vm, "built", lambda _: guest.Guest(tmp_path))
    monkeypatch.setattr(vm, "choose_accelerator", lambda *_: how)
    monkeypatch.setattr(vm, "START_TIMEOUT_S", 2.0)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with pytest.raises(BoxError) as caught, vm.virtual_box(vm_box):
        pass
    assert got in caught.value.got


def did_not_boot(box: Box, directory: Path, got: str) -> None:
    with pytest.raises(BoxError) as caught, vm.virtual_box(box):
        pass
    assert caught.value.what == "the virtual box did not boot"
    assert got in caught.value.got
    assert got in caught.value.evidence
    assert f"rm -r {directory} && mountlab box prepare vm" in caught.value.next_step
    assert list(directory.glob("mountlab-vm-*")) == []


# --- other kernels, and ZFS -------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("kernel", VM_KERNELS)
def test_it_runs_the_kernel_that_the_box_file_names(kernel: str) -> None:
    with open_box(prepared_vm(replace(paths.load_box("vm"), kernel=kernel))) as connection:
        assert sh(connection, "uname -r").startswith(f"{kernel}.")
        sh(connection, "modprobe -a f2fs nilfs2 raid456 dm-crypt")
        assert sh(connection, "cat /sys/block/pmem0/queue/dax").strip() == "1"
        assert facts.gather(connection, []).kernel.config


@pytest.mark.long
def test_it_has_zfs() -> None:
    with open_box(prepared_vm(replace(paths.load_box("vm"), extras=("zfs",)))) as connection:
        sh(connection, f"modprobe zfs && zpool create -m none -f tank {SCRATCH}")
        assert "zfs-kmod-" in sh(connection, "zpool version")
        assert sh(connection, "zpool list -H -o health tank").strip() == "ONLINE"
        assert sh(connection, "command -v gcc dkms", ok=False) == ""


# --- an ordinary user -------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.requires_root
@pytest.mark.requires_program("useradd")
@pytest.mark.requires_program("setpriv")
@pytest.mark.requires_program("newuidmap")
@pytest.mark.requires_program("mmdebstrap")
def test_an_ordinary_user_builds_and_runs_one() -> None:
    code = """
from mountlab.box.embedded import open_box, prepare_here
from mountlab.results import paths
box = paths.load_box("vm")
prepare_here(box, yes=False, ask=lambda _: False, say=print)
with open_box(box) as connection:
    print(connection.run(("id", "-un")).text)
"""
    with ordinary_user() as user:
        if not guest.has_range(Path("/etc/subuid"), user.name, -1):
            pytest.skip("useradd gives no range of user numbers here")
        done = subprocess.run([*user.python, "-c", code], capture_output=True, text=True, check=False, cwd="/")
        assert done.returncode == 0, done.stderr
        assert done.stdout.splitlines()[-2:] == ["root", ""]
    assert not list(Path(guest.temporary_directory()).glob("mountlab-vm-*/mmdebstrap.*"))
