# guard.sh DEVICE OVERWRITE EXPECTED [COMMAND...]
# Say whether a scratch device may be written over, and run COMMAND, which writes over it, if it may.
#   DEVICE    its stable name, from the box file
#   OVERWRITE the id of what is on it now, where the user allows that this is destroyed; '' otherwise. `-` on a device
#             that the same run was formatting when the box lost power: it then carries no signature, and is not blank
#   EXPECTED  what `identity:` said when the plan was made; '' asks for nothing
# It may if nothing uses it, and if it is blank, or holds one signature that Mountlab or OVERWRITE names.
# Without COMMAND: only reads. Prints the device's real name; on standard error `identity: ...` and what is on it. With
#   EXPECTED it binds the name for a guard with COMMAND that follows: what takes long is left to that one.
# With COMMAND: looks again, and becomes COMMAND at once: output and exit status are COMMAND's.
# A refusal: exit status 1; standard error begins with `refused: `, and ends with `permit: ID` where OVERWRITE=ID would
# permit it, with `permit: -` where only blanking it by hand would (mountlab.filesystems.guard reads this).
#
# What remains of the race between the last look and COMMAND: mkfs opens the device with O_EXCL (mke2fs, mkfs.xfs and
# mkfs.btrfs all do, forced or not), so a mount, a swap or a RAID that came in between makes mkfs fail. Only somebody
# who writes in these milliseconds without holding the device, and without heeding flock, is not seen.
OURS=6d6f756e-746c-6162-
ALL_OF_IT=1073741824 # a device of up to 1 GiB is read from end to end before it is called blank

refuse() {
    printf 'refused: %s\n' "$1" >&2
    [ -z "$2" ] || printf 'permit: %s\n' "$2" >&2
    exit 1
}

# --- which device it is -----------------------------------------------------------------------------------------------

number_of() { # the major:minor that the node $1 leads to
    hex=$(stat -L -c '%t:%T' -- "$1" 2>/dev/null) && echo "$((0x${hex%:*})):$((0x${hex#*:}))"
}

find_device() {
    case $1 in /*) ;; *) refuse "'$1' is not an absolute path" ;; esac
    device=$(readlink -f -- "$1")
    [ -e "$device" ] || refuse "$1 does not exist, or leads nowhere"
    [ -b "$device" ] || refuse "$1 ($device) is not a block device"
    (: <"$device") 2>/dev/null || refuse "$device cannot be opened (no medium, or no right to read it)"
    # Held open from here on: what we look at cannot be taken out and its name given to another disk meanwhile.
    exec 9<"$device"
    number=$(number_of /proc/self/fd/9)
    system=$(readlink -f "/sys/dev/block/$number")
    [ -d "$system" ] || refuse "the kernel does not list $device ($number)"
    name=${system##*/}
    usual=/dev/$(printf %s "$name" | tr '!' /)
    [ "$(number_of "$usual")" != "$number" ] || device=$usual
    disk=$system partitions=
    if [ -e "$system/partition" ]; then
        disk=${system%/*}
    else
        for part in "$system"/*/partition; do
            [ ! -e "$part" ] || { part=${part%/partition} && partitions="$partitions ${part##*/}"; }
        done
    fi
    partitions=${partitions# }
    disk_node=/dev/$(printf %s "${disk##*/}" | tr '!' /)
    size=$(($(cat "$system/size") * 512))
    [ "$size" -gt 0 ] || refuse "$device has no size (no medium)"
    [ "$(cat "$system/ro")" = 0 ] || refuse "$device is read-only"
    said=$(awk -v n="$size" 'BEGIN { split("B KiB MiB GiB TiB PiB", unit); for (i = 1; n >= 1024; i++) n /= 1024
        printf "%.4g %s", n, unit[i] }')
}

# Another disk under the same name, a partition moved, a loop device attached anew: each gives another identity.
find_identity() {
    read -r boot </proc/sys/kernel/random/boot_id
    identity=boot=${boot%%-*},$number,sectors=$(cat "$system/size")
    for fact in "$system"/start "$disk"/diskseq "$disk"/wwid "$disk"/device/wwid "$disk"/serial "$disk"/device/serial
    do
        [ -r "$fact" ] || continue
        value=$(tr -d ' \n' <"$fact" | tr -c 'A-Za-z0-9._:-' _)
        [ -z "$value" ] || identity=$identity,${fact##*/}=$value
    done
    [ -z "$2" ] || recognised "$2" \
        || refuse "$1 is not the device that the plan looked at: that was $2, this is $identity ($device)"
}

# The kernel numbers devices anew each time that it starts: then a disk is known by what it says of itself.
recognised() {
    [ "$1" != "$identity" ] || return 0
    [ "${1%%,*}" != "${identity%%,*}" ] || return 1
    [ "${1#*,}" != "${identity#*,}" ] || return 0
    was=$(of_itself "$1")
    case $was in *,wwid=* | *,serial=*) [ "$was" = "$(of_itself "$identity")" ] ;; *) return 1 ;; esac
}

of_itself() { # an identity without its boot, number and sequence
    printf '%s\n' "$1" | sed 's/^[^,]*,[^,]*//; s/,diskseq=[^,]*//'
}

# As udev and other tools that write to disks ask it: on the disk, also for a partition of it.
lock() {
    case " $MOUNTLAB_LOCKED " in *" ${disk##*/} "*) return ;; esac # by a guard around this one
    [ -b "$disk_node" ] || return
    command -v flock >/dev/null || return
    exec 8<"$disk_node"
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        flock -n 8 && MOUNTLAB_LOCKED="$MOUNTLAB_LOCKED ${disk##*/}" && export MOUNTLAB_LOCKED && return
        sleep 1
    done
    refuse "$disk_node has been locked by another program (flock) for 10 seconds"
}

# --- who uses it ------------------------------------------------------------------------------------------------------

# One mountinfo for each mount namespace. The exclusive open sees a mount anywhere, but cannot say where it is.
mountinfos() {
    echo /proc/self/mountinfo
    own=$(readlink /proc/self/ns/mnt)
    # shellcheck disable=SC2012
    ls -l /proc/[0-9]*/ns/mnt 2>/dev/null \
        | awk -v own="$own" '$NF != own && !seen[$NF]++ { sub("ns/mnt", "mountinfo", $(NF - 2)); print $(NF - 2) }'
}

mounted() { # where the device $1 (number $2) is mounted
    for info in $infos; do
        process=${info#/proc/} process=${process%/*}
        awk -v n="$2" -v d="$1" -v p="$process" '$3 == n || $0 ~ (" - [^ ]+ " d " ") {
            print "is mounted on " $5 (p == "self" ? "" : " in another mount namespace (of process " p ")"); exit }' \
            "$info" 2>/dev/null
    done | head -n 1
}

looped() { # the loop device that lies on the device $1 (number $2)
    for loop in /sys/block/loop*/loop/backing_file; do
        below=
        { IFS= read -r below <"$loop"; } 2>/dev/null
        [ -b "$below" ] || continue
        loop=${loop#/sys/block/} loop=${loop%%/*}
        [ "$(number_of "$below")" != "$2" ] || { echo "lies below the loop device $loop" && return; }
    done
}

# By device and inode, since one file has many names; by name where losetup cannot say more.
same_file() {
    [ -e "$system/loop/backing_file" ] || return
    [ ! -b "$(cat "$system/loop/backing_file")" ] \
        || { echo "is a loop device on the block device $(cat "$system/loop/backing_file")" && return; }
    files=$(losetup --list --noheadings --output NAME,BACK-MAJ:MIN,BACK-INO 2>/dev/null) \
        || files=$(cd /sys/block && grep -H . loop*/loop/backing_file 2>/dev/null | sed 's,^\([^/]*\)[^:]*:,/dev/\1 ,')
    printf '%s\n' "$files" | awk -v d="/dev/$name" '{ who = $1; sub("^[^ ]+ +", ""); of[who] = $0 }
        END { for (w in of) if (w != d && of[w] == of[d]) { print "lies on the same file as " w; exit } }'
}

held() { # who has claimed the device of the directory $1: dm, md, bcache, a mounted btrfs
    for holder in "$1/holders/"* /sys/fs/btrfs/*/devices/"${1##*/}"; do
        [ -e "$holder" ] || continue
        case $holder in
        /sys/fs/btrfs/*) echo "belongs to a mounted btrfs (UUID $(echo "$holder" | cut -d / -f 5))" ;;
        *) echo "is held by ${holder##*/}" ;;
        esac
        return
    done
}

used_as() { # how the device of the directory $1 is used, '' if in no way that shows by its name
    node=/dev/$(printf %s "${1##*/}" | tr '!' /) digits=$(cat "$1/dev")
    how=$(mounted "$node" "$digits")
    [ -n "$how" ] || ! grep -q "^$node " /proc/swaps || how="is in use as swap"
    [ -n "$how" ] || how=$(held "$1")
    [ -n "$how" ] || how=$(looped "$node" "$digits")
    [ -z "$how" ] || echo "$node $how"
}

# A program may have it open without claiming it: a database, a virtual machine. udev looks into every device that was
# written to, so only what has it open for a whole second counts.
check_not_open() {
    for _ in 1 2 3 4 5; do
        # shellcheck disable=SC2012,SC2086
        who=$(exec 8<&- 9<&-; ls -l /proc/[0-9]*/fd 2>/dev/null | awk -v own=$$ -v names="$name $partitions" '
            BEGIN { many = split(names, each, " "); for (i = 1; i <= many; i++) ours["/dev/" each[i]] }
            /^\/proc\/[0-9]+\/fd:$/ { split($0, part, "/"); process = part[3] }
            $NF in ours && process != own { print process; exit }')
        [ -n "$who" ] || return
        sleep 0.2 2>/dev/null || sleep 1
    done
    refuse "$device is held open by process $who ($(cat "/proc/$who/comm" 2>/dev/null))"
}

check_unused() {
    infos=$(mountinfos)
    [ "$disk" = "$system" ] && also= || also=$disk
    for part in $partitions; do also="$also $system/$part"; done
    for each in $system $also; do
        how=$(used_as "$each")
        [ -z "$how" ] || refuse "$device is in use: $how"
    done
    how=$(same_file)
    [ -z "$how" ] || refuse "$device is in use: it $how"
    # O_EXCL: mounts in other namespaces, swap, members of a mounted file system or of an array, journals in use, and on
    # a disk the same of its partitions. -n: nothing is written.
    how=$(wipefs -a -n -q -- "$device" 2>&1) \
        || refuse "$device is in use, which only an exclusive open tells (a journal, a member of a file system?): $how"
    check_not_open
}

# --- what is on it ----------------------------------------------------------------------------------------------------

find_signatures() {
    rows=$(wipefs -n -p -- "$device" 2>/dev/null) || refuse "wipefs cannot read $device"
    types=$(printf '%s\n' "$rows" | awk -F, '!/^#/ && NF && !seen[$NF]++ { printf "%s%s", sep, $NF; sep = " " }')
    case $types in "gpt PMBR" | "PMBR gpt") types=gpt ;; esac # a protective MBR is no signature of its own
    found=$(blkid -p -o export -s TYPE -s PTTYPE -s UUID -s UUID_SUB -s LOGUUID -s PTUUID -s PART_ENTRY_UUID "$device" \
        2>/dev/null)
    case $? in
    0 | 2) ;;
    8) refuse "$device holds several signatures that contradict each other: $types" - ;;
    *) refuse "blkid cannot read $device" ;;
    esac
    type='' table='' uuid='' ids='' part_id=''
    while IFS='=' read -r key value; do
        case $key in
        TYPE) type=$value ;;
        PTTYPE) table=$value ;;
        PART_ENTRY_UUID) part_id=$value ;;
        UUID) uuid=$value ids="$ids $value" ;;
        UUID_SUB | LOGUUID | PTUUID) ids="$ids $value" ;;
        esac
    done <<END
$found
END
    ids=${ids# }
    id=${uuid:-${ids%% *}}
}

describe() {
    label=$(blkid -p -o value -s LABEL "$device" | tr -cd ' -~' | cut -c 1-64)
    case $table in '') kind=$type ;; *) kind="a partition table ($table)" ;; esac
    what="$device ($said) holds $kind, ${label:+label $label, }${id:+id $id}"
    [ -n "$id" ] || what="$device ($said) holds $kind without an id"
    [ -z "$partitions" ] || what="$what, with the partitions $partitions"
}

check_signature() {
    case $types in *' '*) refuse "$device ($said) holds several signatures: $types" - ;; esac
    if [ "$types" != "$type$table" ]; then # blkid and wipefs do not agree, or one of them sees both kinds
        refuse "$device ($said) holds ${types:-nothing} by wipefs, but ${type:-nothing}${table:+ and $table} by blkid" -
    fi
    describe
    case $type:$id in
    ext[234]:$OURS* | xfs:$OURS* | btrfs:$OURS* | jbd:$OURS* | xfs_external_log:$OURS*)
        [ -n "$partitions" ] || { what="$device ($said) holds $type of Mountlab's own (UUID $id)" && return; } ;;
    esac
    if [ -n "$overwrite" ]; then
        for each in $ids; do
            [ "$each" != "$overwrite" ] || { what="$what, as \`overwrite\` of the sweep says" && return; }
        done
        refuse "$what, and not $overwrite, which the sweep allows to overwrite" "${id:--}"
    fi
    refuse "$what" "${id:--}"
}

# Which parts of a large device, from 64 MiB to its last 4, are looked at, as numbers of parts of 64 KiB: the places
# where ext4 and btrfs keep copies of their super blocks, where allocation groups of xfs begin, and 128 places between.
# Not more: each is a process, which takes long on an emulated box.
places() {
    awk -v size="$size" 'function look(at) { if (at >= 1024 && at < end) print at }
    BEGIN {
        end = int(size / 65536) - 64
        many = split("1 3 5 7 9 25 27 49 81 125", group)
        for (i = 1; i <= many; i++) look(group[i] * 2048)
        look(4194304)
        for (i = 1; i < 4; i++) look(int(int(size / 4096 / 4) * i / 16))
        for (i = 1; i < 128; i++) look(int(end / 128 * i))
        print end
    }'
}

read_places() { # of the last one also all that follows
    for place in $1; do
        [ "$place" = "$end" ] && count='' || count=count=1
        # shellcheck disable=SC2086
        dd if="$device" bs=65536 skip="$place" $count 2>/dev/null || return
    done
}

# Compares $1 bytes of standard input with zeros: `status 0`, or the first line that cmp has to say.
compare() { { LC_ALL=C cmp -n "$1" - /dev/zero 2>&1; echo "status $?"; } | head -n 1; }

# Refuse if cmp said $1 of the parts that begin at the numbers $2.
check_zeros() {
    [ "$1" != 'status 0' ] || return 0
    byte=$(printf '%s\n' "$1" | sed -n 's/.* differ[^0-9]*\([0-9]*\).*/\1/p')
    [ -n "$byte" ] || refuse "$device ($said) carries no known signature, and cannot be read to the end: $1"
    part=$(printf '%s\n' "$2" | awk -v n="$byte" 'BEGIN { n = int((n - 1) / 65536) + 1 }
        { at = $1 } NR == n { exit } END { printf "%.0f", at + n - NR }')
    refuse "$device ($said) carries no known signature, but is not blank: there is data at $((part / 16)) MiB (a mkfs that was killed half-way leaves a device so)" -
}

check_blank() {
    beginning=$size
    [ "$size" -le "$ALL_OF_IT" ] || beginning=67108864
    check_zeros "$(compare "$beginning" <"$device")" 0
    [ "$size" -gt "$ALL_OF_IT" ] || return 0
    looked=$(places)
    end=${looked##*
} many=$(printf '%s\n' "$looked" | wc -l)
    check_zeros "$(read_places "$looked" | compare $(((many - 1) * 65536 + size - end * 65536)))" "$looked"
}

# The other partitions of its disk may be the system's. Who means this one must say so, until it is ours.
check_siblings() {
    [ "$disk" != "$system" ] || return
    [ -z "$part_id" ] || [ "$overwrite" != "$part_id" ] || return
    for part in "$disk"/*/partition; do
        [ "${part%/partition}" != "$system" ] || continue
        how=$(used_as "${part%/partition}")
        [ -z "$how" ] || refuse "$device ($said) is blank, but a partition of a disk in use: $how" "$part_id"
    done
}

check_content() {
    find_signatures
    if [ -n "$types$type$table" ]; then
        check_signature
    else
        [ -z "$partitions" ] || refuse "$device ($said) is blank, but the kernel knows partitions of it: $partitions" -
        [ -n "$bind" ] || [ "$overwrite" = - ] || check_blank
        check_siblings
        what="$device ($said) is blank"
        if [ -n "$bind" ]; then
            what="$what, as the plan saw it"
        elif [ "$overwrite" = - ]; then
            what="$device ($said) carries no signature since this run was cut off in making one"
        elif [ "$size" -gt "$ALL_OF_IT" ]; then
            what="$what wherever it was looked at (its ends, and $many places)"
        fi
    fi
}

# Old signatures go first: a mkfs leaves those that it does not happen to write over, and the next guard would find two.
# In between our mark goes onto it, so that a mkfs that refuses its options leaves a device that is known as ours. One that
# is killed half-way does not: it has written over the mark, and no signature of its own yet.
clear_signatures() {
    [ -n "$types" ] || return
    wipefs -a -q -- "$device" >&2 || refuse "the old signature of $device cannot be removed"
    [ -z "$partitions" ] || partx --delete "$device" >/dev/null 2>&1 # where wipefs could not tell the kernel to
    mke2fs -q -F -t ext2 -b 1024 -E nodiscard -U "${OURS}0000-000000000000" "$device" 1024 </dev/null >&2 \
        || refuse "$device cannot be marked"
}

[ $# -ge 3 ] || refuse "guard.sh takes DEVICE OVERWRITE EXPECTED [COMMAND...]"
for program in wipefs blkid mke2fs cmp awk; do
    command -v "$program" >/dev/null || refuse "the box lacks $program, without which nothing can be said of $1"
done
mke2fs -V 2>&1 | grep -q '^mke2fs [0-9]' || refuse "mke2fs of the box is not that of e2fsprogs"
overwrite=$2
find_device "$1"
find_identity "$1" "$3"
bind=
if [ $# -eq 3 ]; then
    bind=$3
    check_unused
    check_content
    printf 'identity: %s\n%s\n' "$identity" "$what" >&2
    echo "$device"
    exit 0
fi
stable=$1
shift 3
case " $* " in *[=\ ,]"$device"[\ ,]*) ;; *) refuse "$stable is $device, which the command does not name" ;; esac
lock
check_unused
check_content
check_unused # reading may have taken long
clear_signatures
exec "$@"
