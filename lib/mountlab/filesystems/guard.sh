# Needs device.sh claim_record.sh
# guard.sh DEVICE CUT_OFF EXPECTED [COMMAND...]
# Say whether a scratch device may be written over, and run COMMAND, which writes over it, if it may.
#   DEVICE    its stable name, from the box file
#   CUT_OFF   `-` on a device that the same run was formatting when the box lost power: its signature is gone; else ''
#   EXPECTED  what `identity:` said when the plan was made; '' asks for nothing
# It may if nothing uses it, and if Mountlab has claimed it (claim.sh) and others have not written to it since: neither since
# the claim, nor since the last use of ours ended (settle.sh).
# The disks of the virtual box, which Mountlab makes empty at each start, need no claim.
# Without COMMAND: only reads the device. Prints the device's real name; on standard error `identity: ...` and what is on it.
# With COMMAND: looks again, and becomes COMMAND at once: output and exit status are COMMAND's. Where COMMAND is
# `guard.sh DEVICE...` that guard is asked next, and the first device stays locked until the last command has ended.
# A refusal: exit status 1; standard error begins with `refused: `, and ends with `permit: claim` where claiming the device
# may permit it, with `permit: ID` where claiming it with `--erase ID` would (mountlab.filesystems.guard reads this).
#
# What remains of the race between the last look and COMMAND: mkfs opens the device with O_EXCL (mke2fs, mkfs.xfs,
# mkfs.btrfs and mkfs.f2fs all do, forced or not), so a mount, a swap or a RAID that came in between makes mkfs fail. Not
# seen is who opens or writes the device in these milliseconds without O_EXCL or flock, and a descriptor that no process
# has in its table: one that only io_uring holds, or that is on its way through a socket.

check_permitted() {
    find_signatures
    if [ -n "$types$type$table$contradictory" ]; then
        check_single
        is_ours || refuse "$what" "${id:-$own_id}"
        return
    fi
    what="$device ($said) carries no signature"
    [ -z "$partitions" ] || refuse "$what, but the kernel knows partitions of it: $partitions" "$own_id"
    if [ "$cut_off" = - ] && read_record && [ "$state" = using ]; then
        what="$what since this run was cut off in making one"
    elif made_by_mountlab; then
        what="$what, and is a disk that Mountlab made for this virtual box"
    else
        refuse "$what, and Mountlab has not claimed it" claim
    fi
}

[ $# -ge 3 ] || refuse "guard.sh takes DEVICE CUT_OFF EXPECTED [COMMAND...]"
permit() { # DEVICE CUT_OFF EXPECTED COMMAND...
    stable=$1 cut_off=$2
    find_device "$1"
    find_identity "$1" "$3"
    shift 3
    case " $* " in *[=\ ,]"$device"[\ ,]*) ;; *) refuse "$stable is $device, which the command does not name" ;; esac
    lock
    check_unused
    check_permitted
    record_use "$@"
    [ -z "$types" ] || put_mark
    check_not_open
    check_exclusive # the last word
    [ "$1" = guard.sh ] || exec "$@"
    shift
    (permit "$@") # descriptors of this shell hold the device and its lock
    exit
}

check_programs "$1"
[ $# -eq 3 ] || permit "$@"
cut_off=$2
find_device "$1"
find_identity "$1" "$3"
check_unused
check_permitted
printf 'identity: %s\n%s\n' "$identity" "$what" >&2
echo "$device"
