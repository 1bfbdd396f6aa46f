# What guard.sh, claim.sh and settle.sh know of a device: which one it is, who uses it, what is on it, and whether that is ours.
# Functions only.
OURS=6d6f756e-746c-6162-  # how the UUIDs of what Mountlab makes itself begin, and on devices those of earlier versions
BOUND=6d6f756e-746c-6143- # how a UUID begins that is bound to its device: 8 digits of `bound` follow
MARK_BLOCKS=1024          # of 1 KiB: the ext2 at the beginning of the device that marks it

refuse() {
    printf 'refused: %s\n' "$1" >&2
    [ -z "$2" ] || printf 'permit: %s\n' "$2" >&2
    exit 1
}

check_programs() {
    for program in wipefs blkid blockdev mke2fs cmp awk od sha256sum; do
        command -v "$program" >/dev/null || refuse "the box lacks $program, without which $1 cannot be checked"
    done
    mke2fs -V 2>&1 | grep -q '^mke2fs [0-9]' || refuse "mke2fs of the box is not that of e2fsprogs"
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
    backing=$(cat "$disk/loop/backing_file" 2>/dev/null) # of a loop device: its file, or the device below it
    size=$(($(cat "$system/size") * 512))
    [ "$size" -gt 0 ] || refuse "$device has no size (no medium)"
    [ "$(cat "$system/ro")" = 0 ] || refuse "$device is read-only"
    said=$(awk -v n="$size" 'BEGIN { split("B KiB MiB GiB TiB PiB", unit); for (i = 1; n >= 1024; i++) n /= 1024
        printf "%.4g %s", n, unit[i] }')
}

# Another disk under the same name, a partition moved, a loop device attached again: each gives another identity.
find_identity() { # STABLE EXPECTED
    read -r boot </proc/sys/kernel/random/boot_id
    place=sectors=$(cat "$system/size")
    [ ! -e "$system/start" ] || place=$place,start=$(cat "$system/start")
    own=$(own_fact) || refuse "the file below the loop device $device cannot be found (deleted, or in another mount namespace)"
    sequence=$(fact_of "$disk/diskseq")
    # A disk that says nothing of itself is known by its size and the name that the box file gives it.
    fact=$place,${own:-name=$1}
    bound=$(printf %s "$fact" | sha256sum | cut -c 1-8)
    identity=boot=${boot%%-*},$number,$place${sequence:+,$sequence}${own:+,$own},bound=$bound
    own_id=${own#*=}
    { [ -n "$own_id" ] && [ ${#own_id} -le 64 ] && [ "$disk" = "$system" ]; } || own_id=$bound
    [ -z "$2" ] || recognised "$2" \
        || refuse "$1 is not the device that the plan looked at: that was $2, this is $identity ($device)"
}

fact_of() { # NAME=VALUE of the first of these files that says something
    for fact; do
        [ -r "$fact" ] || continue
        value=$(tr -d ' \n\0' <"$fact" | tr -c 'A-Za-z0-9._:-' _)
        [ -z "$value" ] || { echo "${fact##*/}=$value" && return; }
    done
}

# What identifies a device, however the kernel numbers it. Of a loop device: its file, which another loop device and
# another boot find again, and which a copy does not share. A copy may get the inode of a file that was removed, but not
# its generation.
own_fact() {
    if [ -n "$backing" ]; then
        generation=$(lsattr -dv -- "$backing" 2>/dev/null | awk '{ print $1; exit }')
        file=$(stat -f -c %i -- "$backing"):$(stat -c %i -- "$backing")${generation:+.$generation}
        echo "file=$file:$(cat "$disk/loop/offset")" 2>/dev/null
        [ -e "$backing" ]
        return
    fi
    fact_of "$disk/wwid" "$disk/device/wwid" "$disk/serial" "$disk/device/serial" "$disk/dm/uuid" "$disk/md/uuid" \
        "$disk/device/uuid"
}

# A disk of the virtual box: it is named so by Mountlab's own QEMU, as is the disk that the box has its root on.
made_by_mountlab() {
    [ "$disk" = "$system" ] || return 1
    case $own in
    serial=mountlab-scratch | serial=mountlab-journal | serial=mountlab-disk[1-8] | uuid=6d6f756e-746c-6162-0000-6e766469006d) ;;
    *) return 1 ;;
    esac
    for serial in /sys/block/vd*/serial; do
        [ "$(cat "$serial" 2>/dev/null)" != mountlab-root ] || return 0
    done
    return 1
}

# The kernel numbers devices again each time that it starts: then a disk is recognised by its own identity.
recognised() {
    [ "$1" != "$identity" ] || return 0
    [ "${1%%,*}" != "${identity%%,*}" ] || return 1
    [ "${1#*,}" != "${identity#*,}" ] || return 0
    [ -n "$own" ] && [ "$(of_itself "$1")" = "$(of_itself "$identity")" ]
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
    [ ! -b "$backing" ] || { echo "is a loop device on the block device $backing" && return; }
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

# Processes that have a block device open, or mapped with its descriptor closed: its number (as 7:0) and the process. By
# numbers, since a device has as many names as somebody has made nodes for it. Links below /proc lead to the node itself.
# And those of a file with the inode $1: `file`, the process, and the link.
holders() {
    {
        ls -lniL /proc/[0-9]*/fd 2>/dev/null
        # One line for each file that is mapped, where it was mapped first.
        maps=map_files
        [ -d /proc/self/map_files ] || maps=root
        grep -H ' /' /proc/[0-9]*/maps 2>/dev/null | awk -v maps="$maps" '!seen[$4, $5]++ && $5 {
            split($1, part, "[/:]"); where = part[5]; sub("^ *([^ ]+ +){5}", "")
            print "/proc/" part[3] "/" maps (maps == "root" ? $0 : "/" where) }' | tr '\n' '\0' \
            | xargs -0 ls -dlniL 2>/dev/null
    } | awk -v inode="$1" '/^\/proc\/[0-9]+\/fd:$/ { split($0, part, "/"); process = part[3] }
        $2 !~ /^[b-]/ { next }
        { who = process; link = "/proc/" process "/fd/" $NF }
        match($0, "/proc/[0-9]+/") { who = substr($0, RSTART + 6, RLENGTH - 7); link = substr($0, RSTART) }
        $2 ~ /^b/ { sub(",", "", $6); print $6 ":" $7, who }
        $2 ~ /^-/ && $1 == inode { print "file", who, link }'
}

# udev looks into every device that was written to, so only what has it open for a whole second counts.
check_not_open() {
    numbers=$number
    [ "$disk" = "$system" ] || numbers="$numbers $(cat "$disk/dev")"
    for part in $partitions; do numbers="$numbers $(cat "$system/$part/dev")"; done
    file=
    [ ! -f "$backing" ] || file=$(stat -c %d:%i -- "$backing")
    read -r this _ </proc/self/stat # of a subshell $$ is its parent
    for _ in 1 2 3 4 5; do
        who=$(exec 8<&- 9<&-; holders "${file#*:}" | awk -v own=$$ -v this="$this" -v numbers="$numbers file" '
            BEGIN { many = split(numbers, each, " "); for (i = 1; i <= many; i++) ours[each[i]] }
            $1 in ours && $2 != own && $2 != this' | while read -r kind process link; do
            [ "$kind" != file ] || [ "$(stat -L -c %d:%i -- "$link" 2>/dev/null)" = "$file" ] || continue
            [ "$kind" != file ] || device="$backing, the file below $device,"
            echo "$device is held open by process $process ($(cat "/proc/$process/comm" 2>/dev/null))"
            break
        done)
        [ -n "$who" ] || return 0
        sleep 0.2 2>/dev/null || sleep 1
    done
    refuse "$who"
}

# A lock of a file outlives its process' descriptor where another machine holds it (NFS), or where it is on its way.
locked() {
    [ -f "$backing" ] || return
    dev=$(stat -c %d -- "$backing")
    at=$(printf '%02x:%02x' $((dev >> 8 & 0xfff)) $((dev & 0xff | dev >> 12 & 0xfff00))):$(stat -c %i -- "$backing")
    ! grep -q " $at " /proc/locks || echo "lies on a file that is locked: $backing ($at in /proc/locks)"
}

# O_EXCL: mounts in other namespaces, swap, members of a mounted file system or of an array, journals in use, and on a disk
# the same of its partitions. -n: nothing is written.
check_exclusive() {
    how=$(wipefs -a -n -q -- "$device" 2>&1) \
        || refuse "$device is in use, which only an exclusive open tells (a journal, a member of a file system?): $how"
}

# What ends the use of a device by a layer that Mountlab made: the record of the layer may be lost, as in a mount root of memory.
# Known by the UUID on the device, which the record of the claim lists.
freed_by() { # directory of the device below /sys
    { find_signatures && read_record && listed_uuid "$id"; } >/dev/null 2>&1 || return 0
    for holder in "$1"/holders/*; do
        [ -e "$holder" ] || continue
        called=$(cat "$holder/dm/name" 2>/dev/null)
        case ${holder##*/}:$(cat "$holder/dm/uuid" 2>/dev/null) in
        md*) free="mdadm --stop /dev/${holder##*/}" ;;
        *:LVM-*) free="vgchange -an $(printf %s "$called" | sed 's/\([^-]\)-[^-].*/\1/; s/--/-/g')" ;;
        *:CRYPT-*) free="dmsetup remove $called" ;;
        *) continue ;;
        esac
        echo ", a layer of Mountlab's own (UUID $id): \`mountlab box clean\` undoes it, or where that finds none, \`$free\`"
        return
    done
}

check_unused() {
    infos=$(mountinfos)
    [ "$disk" = "$system" ] && also= || also=$disk
    for part in $partitions; do also="$also $system/$part"; done
    for each in $system $also; do
        how=$(used_as "$each")
        [ -z "$how" ] || refuse "$device is in use: $how$(freed_by "$each")"
    done
    how=$(same_file)
    [ -z "$how" ] || refuse "$device is in use: it $how"
    check_not_open
    how=$(locked)
    [ -z "$how" ] || refuse "$device is in use: it $how"
    check_exclusive
}

# --- what is on it ----------------------------------------------------------------------------------------------------

find_signatures() {
    rows=$(wipefs -n -p -- "$device" 2>/dev/null) || refuse "wipefs cannot read $device"
    types=$(printf '%s\n' "$rows" | awk -F, '!/^#/ && NF && !seen[$NF]++ { printf "%s%s", sep, $NF; sep = " " }')
    case $types in "gpt PMBR" | "PMBR gpt") types=gpt ;; esac # a protective MBR is no signature of its own
    found=$(blkid -p -o export -s TYPE -s PTTYPE -s UUID -s UUID_SUB -s LOGUUID -s PTUUID -s PART_ENTRY_UUID "$device" \
        2>/dev/null)
    case $? in
    0 | 2) contradictory= ;;
    8) contradictory=yes ;;
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
    # The super block of dm-integrity has none: integrity.sh puts one behind it.
    [ "$type" != DM_integrity ] || uuid=$(dd if="$device" bs=1 skip=512 count=36 2>/dev/null | tr -cd '0-9a-f-')
    ids=${ids# }
    id=${uuid:-${ids%% *}}
    own_id=${part_id:-$own_id}
}

describe() {
    label=$(blkid -p -o value -s LABEL "$device" | tr -cd ' -~' | cut -c 1-64)
    case $table in '') kind=$type ;; *) kind="a partition table ($table)" ;; esac
    what="$device ($said) holds $kind, ${label:+label $label, }${id:+id $id}"
    [ -n "$id" ] || what="$device ($said) holds $kind without an id"
    [ -z "$partitions" ] || what="$what, with the partitions $partitions"
}

# What is on it is one thing by every account, and nothing of another's lies beside it.
check_single() {
    [ -z "$contradictory" ] || refuse "$device ($said) holds several signatures that contradict each other: $types" "$own_id"
    case $types in *' '*) refuse "$device ($said) holds several signatures: $types" "$own_id" ;; esac
    if [ "$types" != "$type$table" ]; then # blkid and wipefs do not agree, or one of them sees both kinds
        refuse "$device ($said) holds ${types:-nothing} by wipefs, but ${type:-nothing}${table:+ and $table} by blkid" "$own_id"
    fi
    describe
}

# Whether the one signature on it is ours. Refuses a mark that this box has no record of, what lies beside ours, and a device
# that others have changed.
is_ours() {
    case $type in
    ext[234] | xfs | btrfs | f2fs | jbd | xfs_external_log | linux_raid_member | LVM2_member | crypto_LUKS | DM_integrity) ;;
    zfs_member) id=$(pool_uuid) ;;
    *) return 1 ;;
    esac
    if ! { read_record && listed_uuid "$id"; }; then
        case $id in "$BOUND"* | "$OURS"*) ;; *) return 1 ;; esac
        what="$device ($said) holds $type with a mark of Mountlab (UUID $id)"
        if ! made_by_mountlab; then
            [ -z "$uuids" ] || refuse "$what, but not one that this box has put there ($uuids)" "$id"
            refuse "$what, but $RECORDS has no claim of this device: it is a copy, was resized or moved, or was claimed by \
another system or by an earlier version" "$id"
        fi
    fi
    what="$device ($said) holds $type of Mountlab's own (UUID $id)"
    [ -z "$partitions" ] || refuse "$what, and the kernel knows partitions of it: $partitions" "$own_id"
    other=$(beside)
    [ -z "$other" ] || refuse "$what, and beside it $other" "$own_id"
    made_by_mountlab || check_unchanged
}

# A pool has a number for a UUID, known once it is made. Ours is named by the end of the UUID that was recorded before.
pool_uuid() {
    name_of_pool=$(blkid -p -o value -s LABEL "$device")
    digits=${name_of_pool#mountlab-}
    case $name_of_pool:$digits in
    "mountlab-$digits:"*[!0-9a-f]*) ;;
    mountlab-*) [ ${#digits} != 16 ] || { printf '%s%.4s-%s\n' "$OURS" "$digits" "${digits#????}" && return; } ;;
    esac
    echo "$id"
}

# LVM groups the digits of a UUID in another way.
listed_uuid() {
    case " $(printf %s "$uuids" | tr -d -) " in *" $(printf %s "${1:-none}" | tr -d -) "*) ;; *) return 1 ;; esac
}

# What lies beside ours that wipefs and blkid do not report: a label with a wrong checksum or in a sector where they do not
# look, a file system that this version of them does not know, one further inside of the area of the mark, a copy of the
# super block of a btrfs. Looks at the places where such things begin; inside of a mark at every sector, and in a bound one
# all that mke2fs did not write has to be zero.
beside() {
    dd if="$device" bs=65536 count=16 2>/dev/null | od -A d -t x1 | awk -v type="$type" -v strict="${id%"${id#"$BOUND"}"}" \
        -v blocks="$MARK_BLOCKS" '
    function find(at, hex, what) { magic[at, ++many[at]] = hex; name[at, many[at]] = what }
    BEGIN { # place in the sector, what stands there, what it is
        find(0, "4c4142454c4f4e45", "an LVM label"); find(0, "584653420000", "xfs"); find(0, "68737173", "squashfs")
        find(0, "4c554b53babe", "LUKS"); find(0, "534b554cbabe", "a second LUKS header"); find(0, "4546492050415254", "GPT")
        find(0, "fc4e2ba9", "md"); find(0, "a92b4efc", "md"); find(0, "0cb1ba0000000000", "zfs")
        find(0, "0000000000bab10c", "zfs"); find(0, "10205ff2", "f2fs"); find(0, "e2e1f5e0", "erofs")
        find(0, "4a465331", "jfs"); find(0, "0116197000000001", "gfs2"); find(0, "626c756573746f726520626c6f636b", "bluestore")
        find(0, "646d76646f303031", "vdo"); find(0, "4f4346535632", "ocfs2"); find(0, "482b0004", "hfs+")
        find(1, "4344303031", "iso9660"); find(1, "4e53523032", "udf"); find(1, "4e53523033", "udf")
        find(3, "4e54465320202020", "ntfs"); find(3, "4558464154202020", "exfat"); find(3, "2d4656452d46532d", "bitlocker")
        find(4, "2153747261307469", "stratis"); find(24, "c68573f64e1a45ca", "bcache or bcachefs")
        find(32, "4e585342", "apfs"); find(52, "526549734572", "reiserfs"); find(54, "46415431", "vfat")
        find(64, "5f42485266535f4d", "btrfs"); find(82, "4641543332", "vfat"); find(502, "53574150535041434532", "swap")
        split("0 512 1024 1536 3584 4096 8192 15872 16384 32768 34816 65024 65536 131072 262144", places, " ")
        for (i in places) known[places[i]]
    }
    function report(what, at) { if (!said) print what " at byte " at; said = 1 }
    $1 != "*" {
        line = ""; for (i = 2; i <= NF; i++) line = line $i
        at = $1 + 0; inside = at % 512; base = at - inside
        if (at == 1024 && type == "ext2") small = (substr(line, 9, 8) == "00040000")
        if (at == 1040) mark = (small && substr(line, 17, 8) == "00000000")
        if (line !~ /[1-9a-f]/) next
        if (at >= 98304 && mark && strict != "") report("data", at)
        if (!mark && !(base in known)) next
        for (place = inside; place < inside + 16; place++) for (i = 1; i <= many[place]; i++)
            if (index(substr(line, 2 * (place - inside) + 1), magic[place, i]) == 1) {
                what = name[place, i]
                if (!(what == "xfs" && type == "xfs" && !base) && !(what == "btrfs" && type == "btrfs" && base == 65536) \
                    && !(what == "f2fs" && type == "f2fs" && base == 1024) \
                    && !(what == "md" && type == "linux_raid_member") && !(what == "an LVM label" && type == "LVM2_member") \
                    && !(what ~ /LUKS/ && type == "crypto_LUKS") && !(what == "zfs" && type == "zfs_member"))
                    report(what, base)
            }
        # ext: a magic number of two bytes, which its state, what it does about errors, and its revision confirm
        if (inside == 48 && substr(line, 17) ~ /^53ef0[0-7]000[1-3]000000$/ && (base != 1024 || type !~ /^(ext|jbd)/))
            report("ext2, ext3 or ext4", base - 1024)
        if (at == 496 && substr(line, 29) == "55aa") report("a boot sector", 0)
    }'
    [ "$type" != btrfs ] || return 0
    case $id in "$BOUND"*) ;; *) return 0 ;; esac # mkfs of earlier versions left those of what was there before
    for copy in 67108864 274877906944; do
        [ "$copy" -lt "$size" ] || continue
        dd if="$device" bs=32 skip=$((copy / 32 + 1)) count=2 2>/dev/null | od -A n -v -t x1 | tr -d ' \n' \
            | awk -v at="$copy" 'substr($0, 65, 16) == "5f42485266535f4d" && !/^6d6f756e746c61(62|43)/ {
                print "a copy of the super block of a btrfs at byte " at }'
    done
}

# Compares $1 bytes of standard input with zeros: `status 0`, or the first line that cmp has to say.
compare() { { LC_ALL=C cmp -n "$1" - /dev/zero 2>&1; echo "status $?"; } | head -n 1; }

# Whether a partition of the same disk is in use: then a slip of one digit in the box file could cost the system.
used_sibling() {
    [ "$disk" != "$system" ] || return
    for part in "$disk"/*/partition; do
        [ "${part%/partition}" != "$system" ] || continue
        how=$(used_as "${part%/partition}")
        [ -z "$how" ] || { echo "$how" && return; }
    done
}

# --- our mark ---------------------------------------------------------------------------------------------------------

# Old signatures go first: a mkfs leaves those that it does not happen to write over, and the next guard would find two.
# Then both ends, where there may be some that wipefs does not know, and the copies of the super block of a btrfs. Our mark
# goes onto it at last, so that a mkfs that refuses its options leaves a device that is known as ours. One that is killed
# half-way does not: it has written over the mark, and no signature of its own yet.
put_mark() {
    wipefs -a -q -- "$device" >&2 || refuse "the old signature of $device cannot be removed"
    [ -z "$partitions" ] || partx --delete "$device" >/dev/null 2>&1 # where wipefs could not tell the kernel to
    for at in 0 67108864 274877906944 $((size / 65536 * 65536 - 1048576)); do
        [ "$at" -ge 0 ] && [ "$at" -lt "$size" ] || continue
        case $at in 67108864 | 274877906944) count=2 ;; *) count=16 ;; esac
        [ $((at + count * 65536)) -le "$size" ] || count=$(((size - at) / 65536))
        dd if=/dev/zero of="$device" bs=65536 seek=$((at / 65536)) count="$count" conv=notrunc 2>/dev/null \
            || refuse "$device cannot be written"
    done
    tail=$((size / 65536 * 65536))
    [ "$tail" = "$size" ] || dd if=/dev/zero of="$device" bs=512 seek=$((tail / 512)) count=$(((size - tail) / 512)) \
        conv=notrunc 2>/dev/null || refuse "$device cannot be written"
    mke2fs -q -F -t ext2 -b 1024 -E nodiscard -U "$mark" "$device" "$MARK_BLOCKS" </dev/null >&2 \
        || refuse "$device cannot be marked"
}
