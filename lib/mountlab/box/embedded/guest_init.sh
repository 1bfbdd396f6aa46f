#!/bin/sh
# The first program of the virtual box, in its initial memory disk: finds the root image and goes on there.
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev

give_up() {
    echo "mountlab: gives up: $1"
    poweroff -f
    sleep 60
}

read -r words </proc/cmdline
case " $words " in
    *" mountlab.probe "*)
        echo "mountlab: the kernel starts"
        poweroff -f
        sleep 60 ;;
esac

while read -r module; do insmod "$module" || give_up "$module does not load"; done </modules/order

# The root image is the disk with this serial number, whatever the kernel calls it. (The number ends without a newline,
# so `read` fails although it reads.)
root=
for disk in /sys/block/vd*; do
    serial=
    read -r serial <"$disk/serial"
    if [ "$serial" = mountlab-root ]; then root=/dev/${disk##*/}; fi
done

# It is only read; what the guest changes on its root is kept in memory.
mount -t squashfs -o ro "$root" /low || give_up "no root image on '$root'"
mount -t tmpfs -o size=25% tmpfs /high
mkdir /high/upper /high/work
mount -t overlay -o lowerdir=/low,upperdir=/high/upper,workdir=/high/work overlay /root || give_up "no root"
mount -o move /dev /root/dev
mount -o move /proc /root/proc
mount -o move /sys /root/sys
exec switch_root /root /sbin/init
