# Pools of ZFS, for layer.sh. A pool is ours if its comment, which lies in its labels, is the UUID of the mount: its name
# alone proves nothing. And it has no device but ours: what others have added is not for us to destroy.
# Its devices have nodes of its own, by their numbers, in /dev/NAME: a name that libefi knows as a disk (/dev/sda, /dev/vda)
# would make zpool write a partition table, and wait for udev to make a link to the partition.
find_zfs() {
    [ "$(zpool get -H -o value comment "$name" 2>/dev/null)" = "$hex" ] && echo "$name"
}

# The devices of the pool that are not ours, where it can tell them.
strangers() {
    ours=
    for device in $devices; do ours="$ours $(block_of "$device") "; done
    zpool list -vHP "$name" 2>/dev/null | while read -r leaf _; do
        case $leaf in /*) its=$(block_of "$leaf") || continue ;; *) continue ;; esac
        case $ours in *" $its "*) ;; *) echo "$leaf" ;; esac
    done
}

make_zfs() {
    modprobe zfs 2>/dev/null
    ! zpool list -H "$name" >/dev/null 2>&1 || { echo "refused: there is a pool $name, which this run did not make" >&2; return 1; }
    of_pool='' of_dataset='' vdevs='' part=pool
    for word in $words; do
        case $part:$word in
        pool:+) part=dataset ;;
        dataset:+) part=vdevs ;;
        pool:*) of_pool="$of_pool $word" ;;
        dataset:*) of_dataset="$of_dataset -o $word" ;;
        vdevs:*[!0-9]*) vdevs="$vdevs $word" ;;
        vdevs:*) vdevs="$vdevs /dev/$name/$word" ;;
        esac
    done
    make_nodes || return
    # shellcheck disable=SC2086
    zpool create -f -o cachefile=none -o comment="$hex" -O mountpoint=none $of_pool "$name" $vdevs </dev/null >&2 || return
    # A raw key is 32 bytes, as many as the UUID has digits: it protects nothing, and is known after an export.
    case "$of_dataset " in *' encryption=off '*) ;; *' encryption='*) of_dataset="-o keyformat=raw -o keylocation=prompt $of_dataset" ;; esac
    # shellcheck disable=SC2086
    printf %s "$hex" | zfs create -o mountpoint=legacy $of_dataset "$name/data" >&2
}

make_nodes() {
    [ -d "/dev/$name" ] || mkdir "/dev/$name" || return
    at=0
    for device in $devices; do
        at=$((at + 1))
        numbers=$(stat -L -c '%t %T' -- "$device") || return
        rm -f "/dev/$name/$at"
        mknod -m 600 "/dev/$name/$at" b $((0x${numbers% *})) $((0x${numbers#* })) || return
    done
}

drop_nodes_of_pool() {
    [ -d "/dev/$name" ] || return 0
    for node in "/dev/$name"/[0-9]*; do [ ! -b "$node" ] || rm -f "$node"; done
    rmdir "/dev/$name"
}

show_zfs() {
    section pool
    zpool get -Hp all "$name"
    section dataset
    zfs get -Hp all "$name/data"
    section status
    zpool status -P "$name"
    section list
    zpool list -vHpLP "$name"
    section module
    cat /sys/module/zfs/version
    section parameters
    grep -s . /sys/module/zfs/parameters/zfs_arc_max /sys/module/zfs/parameters/zfs_arc_min \
        /sys/module/zfs/parameters/zfs_txg_timeout /sys/module/zfs/parameters/zfs_dirty_data_max \
        /sys/module/zfs/parameters/zfs_prefetch_disable /sys/module/zfs/parameters/zfs_compressed_arc_enabled
    section arc
    awk '$1 ~ /^(c|c_min|c_max|size)$/ { print $1, $3 }' /proc/spl/kstat/zfs/arcstats
}

undo_zfs() {
    try_again destroy_pool
    [ -z "$(find_zfs)" ] && drop_nodes_of_pool
}

destroy_pool() {
    [ -n "$(find_zfs)" ] || return 0
    added=$(strangers)
    [ -z "$added" ] || refuse "the pool $name has a device that this run did not give it: $added"
    zpool destroy "$name" >&2
}

# As a guard would leave it. Ours are a device with the label of our pool, and one without any signature: zpool had begun
# to write to it, and removed the mark first.
mark_member() { # DEVICE
    case $(label_of "$1") in
    "$name") ;;
    '') is_bare "$1" || return 0 ;;
    *) return 0 ;;
    esac
    drop_labels "$1" || return
    wipefs -a -q -- "$1" && mke2fs -q -F -t ext2 -b 1024 -E nodiscard -U "$uuid" "$1" 1024 </dev/null >&2
}

label_of() { blkid -p -n zfs_member -o value -s LABEL -- "$1" 2>/dev/null; }

# They lie in the first and the last 512 KiB.
drop_labels() { # DEVICE
    size=$(blockdev --getsize64 "$1") || return
    for at in 0 $((size / 65536 - 16)); do
        dd if=/dev/zero of="$1" bs=65536 seek="$at" count=16 conv=notrunc 2>/dev/null || return
    done
    tail=$((size / 65536 * 65536))
    [ "$tail" = "$size" ] || dd if=/dev/zero of="$1" bs=512 seek=$((tail / 512)) conv=notrunc 2>/dev/null
    sync "$1" 2>/dev/null || sync
}

# --- a member that is lost and comes back

# `whole`, or the state of the pool and of its repair.
whole_zfs() {
    health=$(zpool list -H -o health "$name") scan=$(scan_of)
    case $health:$scan in
    ONLINE:*' in progress'*) echo "degraded, resilver in progress" ;;
    ONLINE:*) echo whole ;;
    *) echo "degraded, $health" ;;
    esac
}

# What the pool repaired last, or repairs now, in one line.
scan_of() { zpool status "$name" | sed -n 's/^ *scan: //p'; }

# The state of $member by its node.
state_of_member() { zpool status -P "$name" | awk -v node="/dev/$name/$number" '$1 == node { print $2 }'; }

find_node() {
    [ "$(block_of "/dev/$name/$number")" = "$(block_of "$member")" ] || refuse "/dev/$name/$number is not $member"
}

lose_zfs() {
    find_node
    zpool offline "$name" "/dev/$name/$number" >&2
}

blank_zfs() {
    find_node
    [ "$(state_of_member)" = OFFLINE ] || refuse "$member is a member of $name now"
    [ "$(label_of "$member")" = "$name" ] || refuse "$member does not carry the label of $name"
    drop_labels "$member"
}

bring_zfs() { # replaced|returned
    find_node
    [ "$(state_of_member)" = OFFLINE ] || refuse "$member is a member of $name now"
    scan_before=$(scan_of)
    if [ "$1" = returned ]; then
        zpool online "$name" "/dev/$name/$number" >&2
    else
        is_bare "$member" || refuse "$member is not blank"
        zpool replace -f "$name" "/dev/$name/$number" >&2
    fi
}

# A repair begins some time after the command, and ends with another line.
is_rebuilt_zfs() {
    zpool wait -t resilver,replace "$name" >&2 || return
    # shellcheck disable=SC2034 # for layer.sh
    read -r before _ </proc/uptime
    scan=$(scan_of)
    case $scan in resilvered*) [ "$scan" != "$scan_before" ] && [ "$(whole_zfs)" = whole ] ;; *) return 1 ;; esac
}
