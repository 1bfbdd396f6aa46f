# closed_off.sh DIRECTORY COMMAND...
# Run COMMAND as root where it can change nothing of this machine but DIRECTORY: `mutate` runs a product that it has broken.
# Started in new namespaces of mounts, processes and SysV memory, which end with COMMAND, and all that it started and
# mounted with them.
# What the tests on the box write elsewhere (users, sudo rules, /run/sshd) is kept in memory. /var/tmp is DIRECTORY/var:
# images need the file system of a disk. The kernel has these once, so they stay writable: loop devices, zram devices,
# cgroups, settings of file systems, drop_caches, huge pages.
set -e
place=$1
shift

writable() { mount --bind "$1" "$1" && mount -o remount,bind,rw "$1"; }

# Mounts of other tests, which this one could keep busy.
cut -d ' ' -f 5 /proc/self/mountinfo | grep mountlab | tac | xargs -r umount -l

mkdir -p /dev/disk
cut -d ' ' -f 5 /proc/self/mountinfo | while read -r point; do
    case $point in
    /proc | /proc/* | /dev/pts | /sys/fs/cgroup | /sys/fs/cgroup/*) ;;
    *) mount -o remount,bind,ro "$(printf %b "$point")" ;;
    esac
done
# Below /dev/shm until what hides it is mounted: the directory may lie in /tmp.
mount --bind "$place" /dev/shm
mount -o remount,bind,rw /dev/shm
mount -t tmpfs tmpfs /dev/shm/changes
for each in etc home root run tmp usr/local var/lib var/log var/mail var/spool; do
    if [ ! -d "/$each" ] || [ -L "/$each" ]; then continue; fi
    new=/dev/shm/changes/new/$each work=/dev/shm/changes/work/$each
    mkdir -p "$new" "$work"
    chmod --reference="/$each" "$new"
    chown --reference="/$each" "$new"
    mount -t overlay -o "lowerdir=/$each,upperdir=$new,workdir=$work" overlay "/$each"
done
chmod a+rx /root # there may lie the Python that tests run as another user
mount --move /dev/shm "$place"
mount --bind "$place/var" /var/tmp
mount -o remount,bind,rw /var/tmp
mount -t tmpfs -o mode=1777 tmpfs /dev/shm

# No disk of the machine has a node or a name. Loop devices and zram devices appear and go by themselves.
find /dev -xdev -type b ! -name 'loop*' ! -name 'zram*' -exec mount --bind /dev/null '{}' ';'
mount -t tmpfs tmpfs /dev/disk

for each in /proc/sys /proc/sysrq-trigger; do
    [ ! -e "$each" ] || { mount --bind "$each" "$each" && mount -o remount,bind,ro "$each"; }
done
for each in /sys/devices/virtual/block /sys/class/zram-control /sys/fs/ext4 /sys/fs/xfs /sys/fs/btrfs \
    /proc/sys/vm/drop_caches /proc/sys/vm/nr_hugepages; do
    [ ! -e "$each" ] || writable "$each"
done

# Not `exec`: this shell, the first process here, sees that orphans end.
status=0
"$@" || status=$?
exit "$status"
