#!/bin/sh
# What the virtual box does once its root is there: modules, disks by stable names, network, sshd. No service manager and
# no udevd: the guest is ready in a few seconds even where its processor is emulated.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin

give_up() {
    echo "mountlab: gives up: $1" >/dev/console
    busybox poweroff -f
}

mount -t tmpfs -o mode=755,nosuid,nodev tmpfs /run
mkdir -p /dev/pts /dev/shm /run/lock /run/sshd /dev/disk/by-id
mount -t devpts -o mode=620,gid=5 devpts /dev/pts
mount -t tmpfs -o nosuid,nodev tmpfs /dev/shm
busybox hostname mountlab-vm
mknod -m 660 /dev/btrfs-control c 10 234 # as udev would, for mkfs.btrfs
modprobe -a virtio_net ext4 loop nfit nd_pmem || give_up "a module does not load"

# --- disks ------------------------------------------------------------------------------------------------------------

# The NVDIMM is new at the first start: raw memory, which has no DAX. Make it fsdax (its page structures in main memory,
# mode ram), as ndctl would; but ndctl gives it another uuid every time, and its stable name has the uuid in it.
nd=/sys/bus/nd/devices
# The kernel looks at it after modprobe has returned. After a reboot it finds what it was made then, a moment later.
cat /sys/class/nd/ndctl0/device/wait_probe >/dev/null
tries=100
while [ "$tries" -gt 0 ] && ! [ -e /sys/block/pmem0 ]; do
    tries=$((tries - 1))
    sleep 0.05
done
if ! [ -e /sys/block/pmem0/device/uuid ]; then
    echo namespace0.0 >/sys/bus/nd/drivers/nd_pmem/unbind
    echo 6d6f756e-746c-6162-0000-6e766469006d >$nd/pfn0.0/uuid
    echo 2097152 >$nd/pfn0.0/align
    echo ram >$nd/pfn0.0/mode
    echo namespace0.0 >$nd/pfn0.0/namespace
    echo pfn0.0 >/sys/bus/nd/drivers/nd_pmem/bind
fi || give_up "the NVDIMM does not become fsdax"

# The names that udev would give. (A serial number ends without a newline, so `read` fails although it reads.)
for disk in /sys/block/vd*; do
    serial=
    read -r serial <"$disk/serial"
    ln -sf "../../${disk##*/}" "/dev/disk/by-id/virtio-$serial"
done
for disk in /sys/block/pmem*; do
    read -r uuid <"$disk/device/uuid" && ln -sf "../../${disk##*/}" "/dev/disk/by-id/pmem-$uuid"
done

# Images of file systems belong on a disk: the root is in memory.
mount -t ext4 /dev/disk/by-id/virtio-mountlab-work /var/tmp || give_up "no disk for /var/tmp"
chmod 1777 /var/tmp

# --- network ----------------------------------------------------------------------------------------------------------

busybox ip link set lo up
busybox ip addr add 10.0.2.15/24 dev eth0
busybox ip link set eth0 up

/usr/sbin/sshd -f /etc/mountlab/sshd_config -E /run/sshd.log || give_up "sshd does not start: $(cat /run/sshd.log)"

# QEMU refuses connections for a guest that it has not heard of yet: let it hear of us.
tries=100
while [ "$tries" -gt 0 ] && ! busybox arping -q -f -c 1 -w 1 -I eth0 10.0.2.2; do
    tries=$((tries - 1))
    sleep 0.05
done
echo "mountlab: ready" >/dev/console
