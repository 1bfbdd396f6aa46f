"""The guard where the kernel has md, device mapper and persistent memory: in the virtual box, by its own tools."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from disks import RECORDS
from guests import sh
from mountlab.box.connection import BoxConnection, Completed
from mountlab.box.embedded import vm
from mountlab.box.ssh import connect
from mountlab.core.model import Box
from mountlab.core.shell import script_argv
from mountlab.filesystems.guard import Refusal, mark_argv, read_permission, read_refusal, uuid_for
from restarted import restarted_guest

pytestmark = [pytest.mark.box, pytest.mark.long, pytest.mark.requires_program("qemu-system-x86_64")]

NVDIMM = "6d6f756e-746c-6162-0000-6e766469006d"
DISKS = {
    "/dev/disk/by-id/virtio-mountlab-scratch": r"sectors=16777216,diskseq=\d+,serial=mountlab-scratch,bound=\w{8}$",
    f"/dev/disk/by-id/pmem-{NVDIMM}": rf"sectors=\d+,diskseq=\d+,uuid={NVDIMM},bound=\w{{8}}$",
}
TWO_LOOPS = """
set -e
for i in 0 1; do
    truncate -s 16M /var/tmp/guard-$i.img
    losetup --find --show /var/tmp/guard-$i.img
done
"""
CLEAN_UP = """
mdadm --stop /dev/md/guard
vgchange -an guard
for i in 0 1; do
    losetup -j /var/tmp/guard-$i.img | cut -d : -f 1 | xargs -r -n 1 losetup -d
    rm -f /var/tmp/guard-$i.img
done
"""


@pytest.fixture
def loops(vm_connection: BoxConnection) -> Iterator[list[str]]:
    """Two loop devices in the guest."""
    try:
        yield sh(vm_connection, TWO_LOOPS).splitlines()
    finally:
        vm_connection.run(("sh", "-c", CLEAN_UP), root=True)


def guard(box: BoxConnection, device: str, *command: str, expected: str = "") -> Completed:
    return box.run(script_argv("guard.sh", device, "", expected, *command), root=True, timeout_s=120.0)


def refusal_of(box: BoxConnection, device: str) -> Refusal:
    before = sh(box, f"sha256sum {device}")
    done = guard(box, device, *mark_argv(device))
    assert (done.exit_status, done.text) == (1, "")
    assert done.error_text.startswith("refused: ")
    assert sh(box, f"sha256sum {device}") == before
    return read_refusal(done.error_text)


def test_members_of_an_array_of_md(vm_connection: BoxConnection, loops: list[str]) -> None:
    sh(vm_connection, "modprobe raid1")
    create = "mdadm --quiet --create /dev/md/guard --name=guard --run --level=1 --raid-devices=2 --assume-clean"
    sh(vm_connection, f"{create} --metadata=1.2 {' '.join(loops)} </dev/null")
    array = sh(vm_connection, f"blkid -p -o value -s UUID {loops[1]}")
    assert re.search(r"is held by md\d+$", refusal_of(vm_connection, loops[1]).reason)
    sh(vm_connection, "mdadm --quiet --stop /dev/md/guard")
    stopped = refusal_of(vm_connection, loops[1])
    assert re.search("holds linux_raid_member, label .*guard, id ", stopped.reason)
    assert stopped.permit == array


def test_a_physical_volume_of_lvm_and_what_lies_on_it(vm_connection: BoxConnection, loops: list[str]) -> None:
    only = f'--config \'devices {{ filter=["a|^{loops[0]}$|", "r|.*|"] use_devicesfile=0 }}\''
    sh(vm_connection, f"pvcreate -qq -y {only} {loops[0]} && vgcreate -qq -y {only} guard {loops[0]}")
    sh(vm_connection, f"lvcreate -qq -y {only} -Wn -Zn -L 8M -n data guard")
    assert re.search(r"is held by dm-\d+$", refusal_of(vm_connection, loops[0]).reason)
    claimed = vm_connection.run(script_argv("claim.sh", "/dev/guard/data", "", "60"), root=True, timeout_s=120.0)
    assert re.search(r"^claimed /dev/dm-\d+ .* uuid=LVM-\w+$", claimed.text.strip()), claimed.error_text
    volume = guard(vm_connection, "/dev/guard/data")
    assert re.fullmatch(r"/dev/dm-\d+\n", volume.text), volume.error_text
    sh(vm_connection, f"vgchange -qq -an {only} guard")
    assert re.search(r"holds LVM2_member, id \w{6}-", refusal_of(vm_connection, loops[0]).reason)


@pytest.mark.parametrize("stable", DISKS, ids=["disk", "pmem"])
def test_a_device_of_the_virtual_box_under_its_stable_name(stable: str, vm_connection: BoxConnection) -> None:
    device = sh(vm_connection, f"readlink -f {stable}")
    sh(vm_connection, f"wipefs -aq {device} && {' '.join(mark_argv(device))}")
    looked = guard(vm_connection, stable)
    assert looked.text.strip() == device
    identity, found = read_permission(looked.error_text)
    assert re.search(DISKS[stable], identity), identity
    assert "holds ext2 of Mountlab's own" in found


@pytest.mark.parametrize("stable", DISKS, ids=["disk", "pmem"])
def test_a_disk_of_the_virtual_box_needs_no_claim_until_it_holds_somebody_s_data(
    stable: str, vm_connection: BoxConnection
) -> None:
    device = sh(vm_connection, f"readlink -f {stable}")
    sh(vm_connection, f"wipefs -aq {device}")
    looked = guard(vm_connection, stable)
    assert "is a disk that Mountlab made for this virtual box" in looked.error_text
    sh(vm_connection, f"mke2fs -q -F {device}")
    assert "holds ext2, id" in guard(vm_connection, stable).error_text  # 8 GiB: too large for a digest
    sh(vm_connection, f"wipefs -aq {device}")


def test_after_a_restart_a_disk_is_known_by_its_serial_number_and_not_by_the_kernel_s(
    vm_connection: BoxConnection,
) -> None:
    stable = next(iter(DISKS))
    sh(vm_connection, f"wipefs -aq {stable} && {' '.join(mark_argv(stable))}")
    identity, _ = read_permission(guard(vm_connection, stable).error_text)
    boot, _, rest = identity.split(",", 2)
    later = re.sub(r"diskseq=\d+", "diskseq=99", rest)
    assert guard(vm_connection, stable, expected=f"boot=00000000,99:9,{later}").ok
    for other in (f"{boot},99:9,{later}", f"boot=00000000,99:9,{later}x", f"boot=00000000,99:9,sectors=1,{later}"):
        refused = guard(vm_connection, stable, expected=other)
        assert "is not the device that the plan looked at" in refused.error_text


# --- a claim, and reboots ---------------------------------------------------------------------------------------------

IMAGE = "/var/tmp/claimed.img"
KEPT_RECORDS = "mkdir -p /var/tmp/claims {0} && chmod 700 /var/tmp/claims && mount --bind /var/tmp/claims {0}"
"""The root of the guest is in memory; that of other boxes outlives a reboot."""


def attached(box: BoxConnection) -> str:
    """The loop device on the image, with the records of claims as they were before a reboot."""
    sh(box, KEPT_RECORDS.format(RECORDS))
    return sh(box, f"losetup --find --show {IMAGE}")


def test_a_claim_and_a_use_outlive_reboots_and_changes_show_after_them(vm_box: Box) -> None:
    """Real ones of a kernel: the counts of sectors and disk numbers begin again, and contents are compared."""
    with vm.virtual_box(vm_box) as endpoint:
        box = connect(vm_box, endpoint)
        sh(box, f"truncate -s 64M {IMAGE}")
        claimed = box.run(script_argv("claim.sh", attached(box), "", "60"), root=True, timeout_s=120.0)
        assert claimed.text.startswith("claimed "), claimed.error_text

        box = restarted_guest(vm_box, endpoint, box)
        device = attached(box)
        assert "holds ext2 of Mountlab's own" in guard(box, device).error_text
        sh(box, f"dd if=/dev/urandom of={device} bs=1M seek=20 count=8 conv=notrunc,fsync status=none")
        box = restarted_guest(vm_box, endpoint, box)
        changed = guard(box, attached(box))
        assert (changed.exit_status, changed.text) == (1, "")
        assert "others have changed the device" in changed.error_text, changed.error_text

        device = sh(box, f"losetup -j {IMAGE} | cut -d : -f 1")
        permit = read_refusal(changed.error_text).permit
        erased = box.run(script_argv("claim.sh", device, permit, "60"), root=True, timeout_s=120.0)
        assert erased.text.startswith("claimed "), erased.error_text
        identity, _ = read_permission(guard(box, device).error_text)
        made = guard(box, device, "mke2fs", "-q", "-F", "-t", "ext4", "-U", uuid_for(identity, "a"), device)
        assert made.ok, made.error_text
        assert box.run(script_argv("settle.sh", device, ""), root=True).ok
        box = restarted_guest(vm_box, endpoint, box)
        device = attached(box)
        assert "holds ext4 of Mountlab's own" in guard(box, device).error_text
        sh(box, f"printf x | dd of={device} bs=1 seek=3000000 conv=notrunc,fsync status=none")
        box = restarted_guest(vm_box, endpoint, box)
        assert "others have changed the device" in guard(box, attached(box)).error_text
        box.close()
