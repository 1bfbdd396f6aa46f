# A part of the start of a virtual box with ZFS, read by guest_start.sh once the disks have their names: what services do
# elsewhere. `zpool` does not load the module itself, and waits for udevd before it uses a whole disk.
modprobe zfs || give_up "ZFS does not load"
/lib/systemd/systemd-udevd --daemon
udevadm trigger --subsystem-match=block --settle
