# Take something of the box's for the time of a mount, and give it back.
# Written down in $2/borrowed before anything is changed, one a line, between tabs: the boot, then what; from there
# leftovers.sh gives back what a crash has left.
#   borrow.sh setting RUN_DIR FILE VALUE     write VALUE into a file of the kernel's ('+N': so much more than now)
#   borrow.sh hugepages RUN_DIR BYTES SIZE   reserve huge pages for so many bytes, of SIZE bytes each ('': the usual size)
#   borrow.sh zram RUN_DIR BYTES ALGORITHM   a new compressed device in memory, whose name is printed
#   borrow.sh module RUN_DIR NAME OPTION...  load a kernel module
#   borrow.sh arc RUN_DIR BYTES              bound the cache of ZFS
#   borrow.sh nfsd RUN_DIR ADDRESS...        start the kernel's NFS server at these addresses
#   borrow.sh export RUN_DIR ADDRESS:DIR OPTIONS  let one address mount a directory
#   borrow.sh back RUN_DIR KIND NAME         give one back
# A FILE is fs:TYPE:DEVICE:NAME, queue:DEVICE:NAME, huge:SIZE or sysctl:NAME, where DEVICE is as in /dev.
refuse() { printf 'refused: %s\n' "$1" >&2; exit 1; }
boot=$(cat /proc/sys/kernel/random/boot_id)
record=$2/borrowed

file_of() {
    kind=${1%%:*} rest=${1#*:}
    case $kind in
    sysctl) echo "/proc/sys/$rest" ;;
    huge) [ -n "$rest" ] && echo "/sys/kernel/mm/hugepages/hugepages-$((rest / 1024))kB/nr_hugepages" \
        || echo /proc/sys/vm/nr_hugepages ;;
    fs) device=${rest#*:} && device=${device%%:*} && echo "/sys/fs/${rest%%:*}/${device##*/}/${rest##*:}" ;;
    queue) # a partition has the queue of its disk
        block=$(readlink -f "/sys/class/block/$(basename "${rest%%:*}")")
        [ -d "$block/queue" ] || block=${block%/*}
        echo "$block/queue/${rest##*:}" ;;
    *) refuse "$1 is no setting" ;;
    esac
}

# A choice is shown among all: "none [mq-deadline]".
value_of() { sed 's/.*\[\(.*\)\].*/\1/' "$1"; }

remember() { printf '%s\t%s\t%s\t%s\n' "$boot" "$1" "$2" "$3" >>"$record" || exit 1; }

forget() { # the last line about it
    awk -F '\t' -v k="$1" -v n="$2" '{ line[NR] = $0 } $2 == k && $3 == n { last = NR }
        END { for (i = 1; i <= NR; i++) if (i != last) print line[i] }' "$record" >"$record.new" && mv "$record.new" "$record"
}

# Lock FILE until this script ends: no other borrower changes it between our reading and our writing.
lock() { ! command -v flock >/dev/null || { exec 7<"$1" && flock 7; }; }

set_value() { # FILE VALUE
    file=$(file_of "$1")
    [ -w "$file" ] || refuse "the kernel has no setting $file"
    case $2 in +*) lock "$file" ;; esac
    before=$(value_of "$file") || refuse "$file cannot be read"
    value=$2 saved=$before
    # What others borrow meanwhile stays theirs: the amount added is subtracted again, and the earlier value is not restored.
    case $value in +*) value=$((before + ${value#+})) saved=$2 ;; esac
    # With another scheduler the kernel resets these, and would not restore them with the old one.
    case $file in
    */queue/scheduler)
        for other in "${file%/*}/nr_requests" "${file%/*}/wbt_lat_usec" "${file%/*}"/iosched/*; do
            if [ -f "$other" ] && [ -w "$other" ] && now=$(cat "$other" 2>/dev/null); then remember beside "$other" "$now"; fi
        done ;;
    esac
    remember setting "$file" "$saved"
    { printf '%s\n' "$value" >"$file"; } 2>/dev/null || { forget setting "$file"; refuse "the kernel does not take $value for $file"; }
}

hugepages() {
    size=${2:-$(awk '/^Hugepagesize:/ { print $2 * 1024 }' /proc/meminfo)}
    [ "${size:-0}" -gt 0 ] || refuse "the kernel has no huge pages"
    free=$(awk '/^MemAvailable:/ { printf "%.0f", $2 * 1024 }' /proc/meminfo)
    # The kernel would take every page that it can get, before it said that they are not enough.
    [ "$1" -lt "${free:-0}" ] || refuse "$1 bytes of huge pages are more than the memory that is available ($free bytes)"
    pages=$((($1 + size - 1) / size))
    set_value "huge:$2" "+$pages"
    [ "$(cat "$file")" -ge $((before + pages)) ] || {
        got=$(($(cat "$file") - before))
        printf '%s\n' "$before" >"$file" && forget setting "$file"
        refuse "the kernel could reserve only $got of $pages huge pages of $size bytes"
    }
}

zram() {
    control=/sys/class/zram-control
    [ -e $control ] || modprobe zram num_devices=0 || refuse "the kernel has no zram"
    number=$(cat $control/hot_add) || refuse "no zram device can be added"
    remember zram "$number" ''
    # The algorithm cannot be changed once the size is set.
    if { [ -z "$2" ] || printf '%s\n' "$2" >"/sys/block/zram$number/comp_algorithm"; } \
        && printf '%s\n' "$1" >"/sys/block/zram$number/disksize"; then
        echo "/dev/zram$number"
        return
    fi
    known=$(cat "/sys/block/zram$number/comp_algorithm")
    give_back zram "$number"
    refuse "the kernel does not take $1 bytes with ${2:-its own algorithm} for a zram device (it knows $known)"
}

# A parameter of 0 stands for ZFS's own choice, which version 2.1 does not make again: what was in effect goes first.
arc() { # BYTES
    of_zfs=/sys/module/zfs/parameters
    [ -w $of_zfs/zfs_arc_max ] || refuse "the module zfs is not loaded"
    remember arc zfs "$(arc_now c_max) $(cat $of_zfs/zfs_arc_max) $(arc_now c_min) $(cat $of_zfs/zfs_arc_min)"
    { echo 33554432 >$of_zfs/zfs_arc_min && echo "$1" >$of_zfs/zfs_arc_max; } 2>/dev/null
    [ "$(arc_now c_max)" = "$1" ] || {
        bound=$(arc_now c_max)
        give_back arc zfs
        refuse "ZFS does not take $1 bytes as the bound of its cache, which stays $bound (it needs more than 64 MiB, and less than the memory)"
    }
}

arc_now() { awk -v name="$1" '$1 == name { print $3 }' /proc/spl/kstat/zfs/arcstats; }

put_back_arc() { # 'MAX ITS_PARAMETER MIN ITS_PARAMETER'
    # shellcheck disable=SC2086 # words
    set -- $1
    of_zfs=/sys/module/zfs/parameters
    [ -e $of_zfs/zfs_arc_max ] || return 0
    for value in "$1" "$2"; do echo "$value" >$of_zfs/zfs_arc_max; done
    for value in "$3" "$4"; do echo "$value" >$of_zfs/zfs_arc_min; done
    [ "$(arc_now c_max)" = "$1" ]
}

# Version 4 only, which needs one port and one program beside the kernel: what tells it the exports.
nfsd() {
    modprobe nfsd 2>/dev/null
    grep -q '[[:space:]]nfsd$' /proc/filesystems || refuse "the kernel has no NFS server"
    if [ ! -e /proc/fs/nfsd/threads ]; then
        remember nfsdfs /proc/fs/nfsd ''
        mount -t nfsd nfsd /proc/fs/nfsd || refuse "its files cannot be mounted on /proc/fs/nfsd"
    fi
    [ "$(cat /proc/fs/nfsd/threads)" = 0 ] \
        || refuse "an NFS server runs on the box already: what it exports is measured as a directory (type: dir)"
    command -v rpc.mountd > /dev/null || refuse "rpc.mountd is not there"
    remember nfsd ours ''
    hosts=
    for address; do hosts="$hosts -H $address"; done
    MOUNTLAB_NFSD=ours setsid rpc.mountd -F -N 2 -N 3 -u < /dev/null > /dev/null 2>&1 &
    # shellcheck disable=SC2086 # words
    rpc.nfsd -N 3 -U $hosts 8 || {
        give_back nfsd ours
        refuse "the NFS server does not start"
    }
    # No client of an earlier server is to be waited for.
    { echo Y > /proc/fs/nfsd/v4_end_grace; } 2>/dev/null || true
}

end_nfsd() {
    [ ! -e /proc/fs/nfsd/threads ] || echo 0 > /proc/fs/nfsd/threads || return
    tries=40
    while servers=$(grep -lszxF MOUNTLAB_NFSD=ours /proc/[0-9]*/environ | sed 's/[^0-9]//g'); [ -n "$servers" ]; do
        for each in $servers; do kill "$each" 2>/dev/null; done
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || return
        sleep 0.05
    done
}

put_back() { # FILE SAVED, which is '+N' where so much was added
    case $2 in
    +*)
        lock "$1"
        left=$(($(cat "$1") - ${2#+}))
        [ "$left" -ge 0 ] || left=0
        printf '%s\n' "$left" >"$1"
        ;;
    *) printf '%s\n' "$2" >"$1" ;;
    esac
}

give_back() { # KIND NAME; what was written down before the box was started again is given back already
    if saved=$(awk -F '\t' -v k="$1" -v n="$2" -v b="$boot" '$1 == b && $2 == k && $3 == n { v = $4; found = 1 }
        END { print v; exit !found }' "$record"); then
        case $1 in
        setting | beside) [ ! -e "$2" ] || put_back "$2" "$saved" ;;
        zram) [ ! -e "/sys/block/zram$2" ] || { echo 1 >"/sys/block/zram$2/reset" && echo "$2" >/sys/class/zram-control/hot_remove; } ;;
        arc) put_back_arc "$saved" ;;
        module) [ ! -e "/sys/module/$2" ] || modprobe -r "$2" ;;
        export) exportfs -u "$2" ;;
        nfsd) end_nfsd ;;
        nfsdfs) umount "$2" ;;
        esac || return
    fi
    forget "$1" "$2"
    case $1:$2 in
    setting:*/queue/scheduler)
        for other in $(awk -F '\t' -v d="${2%/*}/" '$2 == "beside" && index($3, d) == 1 { print $3 }' "$record"); do
            give_back beside "$other"
        done ;;
    nfsd:*) ! grep -q '	nfsdfs	' "$record" || give_back nfsdfs /proc/fs/nfsd ;;
    esac
}

verb=$1
shift 2
case $verb in
setting) set_value "$1" "$2" ;;
hugepages) hugepages "$1" "$2" ;;
zram) zram "$1" "$2" ;;
module)
    [ ! -e "/sys/module/$1" ] || refuse "the module $1 is loaded already, with options of somebody else's"
    remember module "$1" ''
    modprobe "$@" || { forget module "$1"; refuse "modprobe $* failed"; } ;;
nfsd) nfsd "$@" ;;
arc) arc "$1" ;;
export)
    remember export "$1" ''
    exportfs -o "rw,sync,no_root_squash,no_subtree_check,sec=sys,$2" "$1" || {
        forget export "$1"
        refuse "the directory cannot be exported"
    } ;;
back)
    case $1 in
    setting)
        case $2 in /*) give_back setting "$2" ;; *) give_back setting "$(file_of "$2")" ;; esac ;;
    zram) give_back zram "${2#/dev/zram}" ;;
    *) give_back "$1" "$2" ;;
    esac ;;
esac
