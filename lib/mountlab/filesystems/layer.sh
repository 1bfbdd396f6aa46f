# Needs md.sh luks.sh lvm.sh zfs.sh integrity.sh
# A layer between a file system and its devices, or a pool of ZFS, made for the time of a mount.
# Written down in RUN_DIR/layers before anything is made, one a line: `UUID KIND MARKED DEVICE...`; from there leftovers.sh
# undoes what a crash has left, the last first. What is not marked with this UUID is somebody else's, and never touched.
#   layer.sh make RUN_DIR KIND UUID MARKED WORD... -- DEVICE...   make it
#   layer.sh find RUN_DIR UUID                                    print the device that it offers
#   layer.sh back RUN_DIR UUID                                    undo it; fine where there is nothing left of it
#   layer.sh show RUN_DIR UUID                                    print what the kernel and its tool report of it, in sections
#   layer.sh member RUN_DIR UUID NUMBER                           print a device of it, which must carry its UUID
#   layer.sh resume RUN_DIR UUID                                  let go on what a killed tool has suspended of it (lvm)
#   layer.sh snapshot RUN_DIR UUID COUNT DIRECTORY                take a snapshot of the volume of lvm, thin, that is mounted there
#   layer.sh snapshots RUN_DIR UUID                               print how many it has, and how full their pool is
# NUMBER is that of a device in the record, from 1. Of md and zfs, which have copies or parity:
#   layer.sh whole RUN_DIR UUID                                   print `whole`, or what is missing or being rebuilt
#   layer.sh lose RUN_DIR UUID NUMBER                             take a device out of a whole one; it keeps its contents
#   layer.sh blank RUN_DIR UUID NUMBER                            make a lost device look new: it no longer knows its array
#   layer.sh bring RUN_DIR UUID NUMBER replaced|returned          give a lost device back, and wait until all is whole
# MARKED: `marked` where the devices are scratch devices: each carries a mark of Mountlab before and after. Else `images`.
# Each KIND has make_KIND, find_KIND (prints the device that it offers), show_KIND and undo_KIND; md and zfs have whole_KIND,
# lose_KIND, blank_KIND and bring_KIND, too. They use:
#   uuid, name   of the layer; hex: the UUID in 32 digits
#   devices      those below, between blanks
refuse() { printf 'refused: %s\n' "$1" >&2; exit 1; }

known_as() { # UUID
    uuid=$1 hex=$(printf %s "$1" | tr -d -)
    name=mountlab-$(printf %s "$hex" | cut -c 17-32)
}

section() { printf '==> %s <==\n' "$1"; }

# The directory of the device $1 below /sys, whatever its node is called.
block_of() {
    hex_number=$(stat -L -c %t:%T -- "$1" 2>/dev/null) || return
    echo "/sys/dev/block/$((0x${hex_number%:*})):$((0x${hex_number#*:}))"
}

# The UUID in 32 digits that the device $1 carries. LVM groups the digits in another way; integrity.sh has a place of its own.
carried() {
    case $(dd if="$1" bs=7 count=1 2>/dev/null | tr -d '\0') in
    integrt) dd if="$1" bs=1 skip=512 count=36 2>/dev/null | tr -cd 0-9a-f ;;
    *) blkid -p -o value -s UUID -- "$1" 2>/dev/null | tr -d - ;;
    esac
}

# Until it succeeds: what looks at a device for a moment (udev) keeps it from being given back.
try_again() { # COMMAND...
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        "$@" && return
        sleep 0.3 2>/dev/null || sleep 1
    done
    return 1
}

# cryptsetup and integritysetup write a super block through a mapping that is named after their process: it stays where they
# are killed. Which process it was is written down.
note_process() { # COMMAND...
    # shellcheck disable=SC2016
    sh -c 'echo "$0 temporary-cryptsetup-$$" >>"$1" && shift && exec "$@"' "$uuid $(boot_id)" "$record.process" "$@"
}

boot_id() { read -r boot </proc/sys/kernel/random/boot_id && echo "$boot"; }

remove_temporary() {
    [ -s "$record.process" ] || return 0
    for mapping in /sys/block/dm-*; do
        { read -r called <"$mapping/dm/name"; } 2>/dev/null || continue
        for device in $devices; do
            [ ! -e "$mapping/slaves/${device##*/}" ] || ! grep -qxF "$uuid $(boot_id) $called" "$record.process" \
                || dmsetup remove "$called" >&2 || return
        done
    done
}

# Whatever the box's own configuration says: nothing else is looked at, no daemon is started that would stay (dmeventd).
lvm_with() { # COMMAND... on the devices of the layer alone
    filter=
    for device in $devices; do filter="$filter\"a|^$device\$|\", "; done
    command=$1
    shift
    lvm "$command" --config "devices { filter = [ $filter\"r|.*|\" ] global_filter = [ $filter\"r|.*|\" ]
        use_devicesfile = 0 } backup { backup = 0 archive = 0 } activation { monitoring = 0 volume_list = [ \"$name\" ] } global { use_lvmlockd = 0 thin_check_executable = \"\" thin_repair_executable = \"\"
        cache_check_executable = \"\" cache_repair_executable = \"\" }" "$@"
}

# The beginning of a member's super block that mke2fs has left: md begins behind it.
drop_ext2() { dd if=/dev/zero of="$1" bs=512 seek=2 count=2 conv=notrunc 2>/dev/null; }

# A device without any signature is ours where a tool that was killed had begun to write. After a restart another disk may
# have its name.
is_bare() { # DEVICE
    [ -b "$1" ] && [ -z "$(wipefs -n -p -- "$1" 2>/dev/null | grep -v '^#')" ] || return
    grep -qxF "$uuid $(boot_id) made" "$record.process" 2>/dev/null
}

# As a guard would leave it: its records list the UUID of the layer.
mark_again() { # DEVICE
    [ "$kind" != zfs ] || { mark_member "$1"; return; }
    its=$(carried "$1")
    case " $hex $volumes " in *" ${its:-none} "*) ;; *) [ -z "$its" ] && is_bare "$1" || return 0 ;; esac
    wipefs -a -q -- "$1" && mke2fs -q -F -t ext2 -b 1024 -E nodiscard -U "$uuid" "$1" 1024 </dev/null >&2
}

make() { # RUN_DIR KIND UUID MARKED WORD... -- DEVICE...
    record=$1/layers kind=$2 marked=$4
    known_as "$3"
    shift 4
    words=
    while [ "$1" != -- ]; do
        words="$words $1"
        shift
    done
    shift
    # shellcheck disable=SC2034 # for md.sh
    members="$*" devices=
    for word; do case $word in --*) ;; *) devices="$devices $word" ;; esac; done
    case $words in *--write-journal=*)
        journal=${words#*--write-journal=}
        devices="$devices ${journal%% *}" ;;
    esac
    find_volumes
    [ -z "$("find_$kind")" ] || refuse "$name is there already, and was not made just now"
    for device in $devices; do
        holders=$(ls "$(block_of "$device")/holders" 2>/dev/null)
        [ -z "$holders" ] || refuse "$device is held by $holders"
    done
    write_down "$uuid $kind $marked$devices${volumes:+ $volumes}"
    echo "$uuid $(boot_id) made" >>"$record.process"
    made=
    trap '[ -n "$made" ] || undo' EXIT
    trap 'exit 1' HUP INT TERM
    "make_$kind" || exit 1
    "find_$kind" >/dev/null || refuse "the $kind that was made cannot be found"
    made=yes
}

# The whole line, or nothing is made: a full disk may have cut an earlier one, and may cut this one.
write_down() { # LINE
    [ ! -s "$record" ] || [ -z "$(tail -c 1 "$record")" ] || echo >>"$record"
    printf '%s\n' "$1" >>"$record" && grep -qxF -- "$1" "$record" || refuse "$record cannot be written, so nothing was made"
    # Scratch devices keep a layer when the box restarts, and udev puts it together again.
    [ "$marked" != marked ] || sync "$record" 2>/dev/null || sync
}

# Of lvm each device has a UUID of its own: the words begin with them.
find_volumes() {
    volumes=
    for word in $words; do
        case $word in volumes=*) volumes=$(printf %s "${word#volumes=}" | tr ',' ' ' | tr -d -) ;; *) ;; esac
    done
}

# Reads what was written down of a layer; fails where nothing was.
recall() { # RUN_DIR UUID
    record=$1/layers
    known_as "$2"
    line=$(grep "^$uuid " "$record" 2>/dev/null | tail -n 1)
    [ -n "$line" ] || return 1
    # shellcheck disable=SC2086
    set -- $line
    kind=$2 marked=$3 devices='' volumes=''
    shift 3
    for word; do case $word in /*) devices="$devices $word" ;; *) volumes="$volumes $word" ;; esac; done
}

# A layer is seen by these alone: without them it would pass for undone.
check_tools() {
    case $kind in md) tools=mdadm ;; lvm) tools='blkid dmsetup' ;; zfs) tools=zpool ;; *) tools= ;; esac
    [ "$marked" != marked ] || tools="$tools blkid blockdev wipefs mke2fs"
    for tool in $tools; do
        command -v "$tool" >/dev/null || refuse "the box lacks $tool, without which $kind $uuid cannot be undone"
    done
}

# Where a full disk leaves no room for what remains, all lines stay: one too many does no harm.
forget() {
    remain=$(grep -v "^$uuid " "$record")
    if [ -z "$remain" ]; then
        rm -f "$record" "$record.process"
    elif printf '%s\n' "$remain" >"$record.new" && [ "$(cat "$record.new")" = "$remain" ]; then
        mv "$record.new" "$record"
    else
        rm -f "$record.new"
    fi
}

# After a restart disks may have other names than those written down: adds those that carry our UUIDs, and that the kernel has
# below the layer. A copy of such a disk lies below nothing of ours.
find_renamed() {
    case $kind in
    lvm) for each in /sys/block/dm-*; do
        case $(cat "$each/dm/name" 2>/dev/null) in "$(name_of_group)"-*) add_below "$each" ;; esac
    done ;;
    *) ! top=$("find_$kind") || add_below "/sys/block/${top##*/}" ;;
    esac
}

add_below() { # directory of a device below /sys
    for below in "$1"/slaves/*; do
        [ -e "$below" ] || continue
        node=/dev/$(printf %s "${below##*/}" | tr '!' /)
        case " $hex $volumes " in
        *" $(carried "$node" | grep . || echo none) "*) case " $devices " in *" $node "*) ;; *) devices="$devices $node" ;; esac ;;
        *) case $(cat "$below/dm/uuid" 2>/dev/null) in LVM-* | CRYPT-INTEGRITY-"$hex"-*) add_below "$below" ;; esac ;;
        esac
    done
}

undo() {
    check_tools
    [ "$kind" != lvm ] || resume_lvm
    find_renamed
    "undo_$kind" && [ -z "$("find_$kind")" ] || refuse "$kind $uuid is still in use"
    if [ "$marked" = marked ]; then for device in $devices; do mark_again "$device" || return; done; fi
    forget
}

# Whose device NUMBER of the record is $member: that of a layer of this run which is there now, found by its UUID.
find_member() { # RUN_DIR UUID NUMBER
    recall "$1" "$2" || refuse "$1 has no record of a layer $2"
    "find_$kind" >/dev/null || refuse "$kind $uuid is not there"
    number=$3 at=0 member=
    for device in $devices; do
        at=$((at + 1))
        [ "$at" != "$number" ] || member=$device
    done
    [ -b "$member" ] || refuse "$kind $uuid has no device $number"
}

show_member() {
    case $kind in
    zfs) [ "$(label_of "$member")" = "$name" ] ;;
    *) its=$(carried "$member") && case " $hex $volumes " in *" ${its:-none} "*) ;; *) false ;; esac ;;
    esac || refuse "$member does not carry the UUID of $kind $uuid"
    readlink -f "$member"
}

lose() {
    case $kind in md | zfs) ;; *) refuse "$kind has no member that can be lost" ;; esac
    state=$("whole_$kind")
    [ "$state" = whole ] || refuse "$kind $uuid has a member too few already: $state"
    "lose_$kind"
}

# Prints the time since the start, in hundredths of a second, when all was last seen not to be whole, and when it was.
bring() { # replaced|returned
    "bring_$kind" "$1" || refuse "$member was not taken back by $kind $uuid"
    read -r before _ </proc/uptime
    until "is_rebuilt_$kind"; do
        read -r before _ </proc/uptime
        sleep 0.05 2>/dev/null || sleep 1
    done
    read -r after _ </proc/uptime
    echo "ended ${before%.*}${before#*.} ${after%.*}${after#*.}"
}

# Without udev the tools of device mapper make and remove the nodes in /dev themselves; beside it they must not.
[ -e /run/udev/control ] || export DM_DISABLE_UDEV=1
export LC_ALL=C
verb=$1
shift
case $verb in
make) make "$@" ;;
back) ! recall "$@" || undo ;;
find) recall "$@" && "find_$kind" ;;
show) recall "$@" && "show_$kind" ;;
whole) recall "$@" && "whole_$kind" ;;
member) find_member "$@" && show_member ;;
lose) find_member "$@" && lose ;;
resume) ! recall "$@" || [ "$kind" != lvm ] || resume_lvm ;;
snapshot | snapshots)
    recall "$@" && [ "$kind" = lvm ] || refuse "$1 has no record of a layer $2 of lvm"
    shift 2
    "${verb}_lvm" "$@" ;;
blank) find_member "$@" && "blank_$kind" ;;
bring) find_member "$@" && bring "$4" ;;
esac
