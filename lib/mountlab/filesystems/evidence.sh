# evidence.sh ROOT [DEVICE [OTHER...]]
# Print the kernel's report on the file system that holds the directory ROOT, in sections headed '==> name <=='; with
# DEVICE also what the file system's own tools read from it. Each OTHER is its external journal (log), or of an xfs its
# realtime device. ROOT may be a block device.
# Read by mountlab.filesystems.evidence, once for each mount: so few processes, and what the shell can read itself it reads.
LC_ALL=C
export LC_ALL
root=$1 device=${2:-} journal=${3:-} others="${3:-} ${4:-}"
section() { printf '==> %s <==\n' "$1"; }

# shellcheck disable=SC2046 # to be split into words
set -- $(stat -L -c '%d %t %T %a %u %g %U %G' "$root" ${device:+"$device"})
section st_dev
echo "$1"
[ -b "$root" ] || {
    section root
    echo "$4 $5 $6 $7 $8"
}
number=$(($1 >> 8 & 0xFFF)):$(($1 & 0xFF | $1 >> 12 & 0xFFF00))
[ ! -b "$root" ] || number=$((0x$2)):$((0x$3))
shown=$number
[ ! -b "$device" ] || number=$((0x${10})):$((0x${11}))
space=$(df -P -k "$root")
source=${space##*
}
# Of a subvolume df of coreutils finds no mount: that of a directory above it holds it.
[ "${source%% *}" != - ] || up=$(cd "$root" && pwd -P)
while [ "${source%% *}" = - ] && [ -n "$up" ]; do
    up=${up%/*}
    space=$(df -P -k "${up:-/}")
    source=${space##*
}
done
# btrfs has a number of its own. It lies on the source of its mount, or on that and its other devices.
source=${source%% *}
kind=$(stat -f -c %t "$root")
members=
own=
if [ "${shown#0:}" != "$shown" ] && [ -b "$source" ]; then
    source=$(readlink -f "$source")
    for member in /sys/fs/btrfs/*/devices/"${source##*/}"; do
        [ -e "$member" ] || continue
        set -- "${member%/*}"/*
        if [ $# -gt 1 ]; then
            members=$* own=${member%/devices/*}
        elif [ "$number" = "$shown" ]; then read -r number < "$member/dev"; fi
    done
fi
# The super block of f2fs has the names of its devices where there are several, as mkfs was given them.
if [ "$kind" = f2f52010 ] && [ -n "$device" ]; then
    for member in $(dd if="$device" bs=4096 count=1 2>/dev/null | dd bs=1 skip=3225 count=544 2>/dev/null | tr '\0' '\n' \
        | grep -a '^/dev/[A-Za-z0-9/_-]*$'); do members="$members /sys/class/block/${member##*/}"; done
fi
# ZFS shows its devices to its own tool alone.
if [ "$kind" = 2fc12fc1 ]; then
    for member in $(zpool list -vHLP "${source%%/*}" 2>/dev/null | awk '$1 ~ "^/" { print $1 }'); do
        # shellcheck disable=SC2046
        set -- $(stat -L -c '%t %T' "$member")
        [ $# -lt 2 ] || members="$members $(readlink -f "/sys/dev/block/$((0x$1)):$((0x$2))")"
    done
fi
for other in $others; do
    [ -n "$members" ] || members=$(readlink -f "/sys/dev/block/$number")
    members="$members /sys/class/block/${other##*/}"
done
section device
[ "${number#0:}" != "$number" ] || echo "$number"
section mountinfo
cat /proc/self/mountinfo
section df
echo "$space"
# Where the box mounts its own export: the device of the directory that is served.
case $source in
127.*:/ | '[::1]:/')
    section served
    while read -r directory options _; do
        case $options in *fsid=0*) stat -c %d "$directory" && break ;; esac
    done 2>/dev/null < /proc/fs/nfsd/exports
    ;;
esac

section loops
images=
below=
for loop in /sys/block/loop*/loop; do
    [ -r "$loop/backing_file" ] || continue
    read -r backing < "$loop/backing_file"
    read -r dev < "${loop%/loop}/dev"
    read -r dio < "$loop/dio"
    # shellcheck disable=SC2046
    set -- $(stat -c '%d %s %b %B' "$backing" 2>/dev/null)
    printf '%s\t%s\t%s\t%s\n' "$dev" "$dio" "${1:-}" "$backing"
    [ "$dev" != "$number" ] || [ $# -lt 4 ] || below=$(($1 >> 8 & 0xFFF)):$(($1 & 0xFF | $1 >> 12 & 0xFFF00))
    [ $# -lt 4 ] || images="$images$dev $2 $(($3 * $4))
"
done
section images
printf '%s' "$images"

# What lies on other devices (md, device mapper): number and name, number and name of one of these. A partition lies on
# those of its disk.
section slaves
for slave in /sys/block/*/slaves/*; do
    [ -r "$slave/dev" ] || continue
    read -r lower < "$slave/dev"
    disk=${slave%/slaves/*}
    for upper in "$disk" "$disk/${disk##*/}"*; do
        [ -r "$upper/dev" ] || continue
        read -r dev < "$upper/dev"
        printf '%s\t%s\t%s\t%s\n' "$dev" "${upper##*/}" "$lower" "${slave##*/}"
    done
done
section members
for member in $members; do
    [ -r "$member/dev" ] || continue
    read -r dev < "$member/dev"
    echo "$dev"
done

# The queues of devices below: of the one that holds the image behind this very loop device, and of slaves and members;
# with whether they count their bytes.
section below
holder=/sys/fs/none
[ -z "$below" ] || holder=$(readlink -f "/sys/dev/block/$below")
for lower in "$holder" /sys/block/*/slaves/* $members; do
    queue=$lower/queue
    [ -d "$queue" ] || queue=$lower/../queue
    if [ -r "$lower/dev" ] && [ -r "$queue/read_ahead_kb" ]; then
        read -r dev < "$lower/dev"
        read -r ahead < "$queue/read_ahead_kb"
        schedulers=none
        [ ! -r "$queue/scheduler" ] || read -r schedulers < "$queue/scheduler"
        counts=1
        [ ! -r "$queue/iostats" ] || read -r counts < "$queue/iostats"
        printf '%s\t%s\t%s\t%s\t%s\n' "$dev" "${lower##*/}" "$ahead" "$schedulers" "$counts"
    fi
done

name=
[ ! -e "/sys/dev/block/$number" ] || name=$(readlink -f "/sys/dev/block/$number")
name=${name##*/}
section name
echo "$name"

block=/sys/class/block/${name:-none}
queue=$block/queue
[ -d "$queue" ] || queue=$block/../queue
own=${own:-/sys/fs/none}
for member in /sys/fs/btrfs/*/devices/"${name:-none}"; do
    [ ! -e "$member" ] || own=${member%/devices/*}
done
set -- /proc/sys/kernel/osrelease
for file in /proc/fs/*/"${name:-none}"/options "$block"/size "$block"/comp_algorithm "$block"/disksize \
    "$queue"/* "$queue"/iosched/* "$own"/* "$own"/features/* "$own"/discard/* "$own"/qgroups/* \
    /sys/kernel/mm/transparent_hugepage/shmem_enabled \
    /sys/fs/*/"${name:-none}"/* /sys/fs/*/"${name:-none}"/*/* /sys/fs/*/"${name:-none}"/*/*/* \
    /sys/fs/*/"${name:-none}"/*/*/*/*; do
    case $file in */stats/* | */trigger_* | */simulate_*) continue ;; esac
    [ ! -f "$file" ] || [ ! -r "$file" ] || set -- "$@" "$file"
done
tail -v -n +1 "$@" 2>/dev/null
echo

[ -n "$device" ] || exit 0
case $kind in
ef53)
    section dumpe2fs
    dumpe2fs -h "$device" 2>/dev/null
    # Whether inode tables are still to be zeroed. The dump of every group reads bitmaps: not where that takes long.
    read -r sectors < "$block/size" || sectors=0
    if [ "$sectors" -le 4294967296 ]; then
        section itable
        dumpe2fs "$device" 2>/dev/null | awk '/^Group [0-9]+:/ { groups++; zeroed += /ITABLE_ZEROED/ }
            END { print groups + 0, zeroed + 0 }'
    fi
    if [ -n "$journal" ]; then
        section journal
        dumpe2fs -h "$journal" 2>/dev/null
    fi
    ;;
58465342)
    section xfs_info
    xfs_info "$root" 2>/dev/null
    if [ -n "$journal" ]; then
        section xfs-root-flags # t: what is made in it lies on the realtime device
        xfs_io -r -c lsattr "$root" 2>/dev/null | awk '{ gsub("-", "", $1); print $1 }'
    fi
    ;;
9123683e)
    section dump-super
    btrfs inspect-internal dump-super "$device" 2>/dev/null
    section btrfs-df
    btrfs filesystem df "$root" 2>/dev/null
    ;;
f2f52010)
    # Its own tools read no device that is mounted: the super block, and the first of the two checkpoints.
    section f2fs-super
    od -A d -t x1 -j 1024 -N 3072 "$device"
    section f2fs-checkpoint
    # shellcheck disable=SC2046 # to be split into words
    set -- $(od -A n -t u4 -j 1100 -N 4 "$device")
    od -A n -t u4 -j $((${1:-0} * 4096)) -N 136 "$device"
    ;;
esac
exit 0
