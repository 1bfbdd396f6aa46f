# The record of a claim: what Mountlab put on a device, and how a change by others shows.
# Functions only, which use those of device.sh.
#
# Within one boot the kernel's counts of writes tell of every change, to the byte. After a reboot, or where others reach the
# device without this kernel, content is compared: both ends whole, and pages between at places that only the record tells.
# After a use of Mountlab's own nothing between the ends is compared: there the super block tells, by a UUID in the record.
RECORDS=/var/lib/mountlab-claims # only root reads and writes it, and a reboot does not lose it
END_BYTES=4194304                # compared whole at both ends of a device
STRETCH=2097152                  # one page of each is compared: less than 4 MiB lies between two

# A record is a file of lines `key value`:
#   device   what `bound` is made of
#   seed     two numbers, from which follow the places of the pages that are compared
#   mark     UUID of the mark
#   uuids    UUIDs of what Mountlab put on the device
#   state    claimed; using, from our first write until the end of a use is recorded; used
#   writes   what count_writes gave; empty where the kernel does not count
#   content  digests of the first 4 MiB, of the last 4 MiB, and of the pages between ('-' after a use)
read_record() {
    of='' seed='' mark='' uuids='' state='' writes='' content=''
    [ "$(stat -c '%u %a %F' -- "$RECORDS" 2>/dev/null)" = '0 700 directory' ] && [ -f "$RECORDS/$bound" ] || return
    while read -r key value; do
        case $key in
        device) of=$value ;;
        seed) seed=$value ;;
        mark) mark=$value ;;
        uuids) uuids=$value ;;
        state) state=$value ;;
        writes) writes=$value ;;
        content) content=$value ;;
        esac
    done <"$RECORDS/$bound"
    [ "$of" = "$fact" ]
}

make_records() {
    { { [ -d "${RECORDS%/*}" ] || mkdir -p "${RECORDS%/*}"; } && { [ -d "$RECORDS" ] || mkdir -m 700 "$RECORDS"; }; } 2>/dev/null
    [ "$(stat -c '%u %a %F' -- "$RECORDS" 2>/dev/null)" = '0 700 directory' ] && [ -w "$RECORDS" ] \
        || refuse "$RECORDS, where the claim of $device is recorded, cannot be written, or is not root's own (mode 700)"
}

# On the medium before anything is written to the device that it tells of.
write_record() {
    (umask 077 && printf '%s\n' "device $fact" "seed $seed" "mark $mark" "uuids $uuids" "state $state" "writes $writes" \
        "content $content" >"$RECORDS/$bound.$$") && to_medium "$RECORDS/$bound.$$" \
        && mv -f "$RECORDS/$bound.$$" "$RECORDS/$bound" && to_medium "$RECORDS" \
        || refuse "the claim of $device cannot be recorded in $RECORDS"
}

to_medium() { sync "$1" 2>/dev/null || sync; }

new_record() {
    # shellcheck disable=SC2046
    seed=$(echo $(od -A n -N 8 -t u4 /dev/urandom))
    last=$(printf %s "$bound" | cut -c 5-8)
    mark=$BOUND${bound%"$last"}-$last$(od -A n -N 4 -t x4 /dev/urandom | tr -d ' \n')
    uuids=$mark
}

# --- what shows a change ------------------------------------------------------------------------------------------------

# What changes with each write to the device while this kernel knows it: boot, number and sequence of the device, then sectors
# written and discarded, and of a loop device the times of its file. Nothing where the kernel does not count. What was written
# through the page cache is counted when it leaves that.
count_writes() {
    blockdev --flushbufs "$device" || refuse "$device cannot be flushed"
    [ "$(cat "$disk/queue/iostats" 2>/dev/null)" = 1 ] || return 0
    [ "$disk" = "$system" ] || blockdev --flushbufs "$disk_node" || refuse "$disk_node cannot be flushed"
    previous='' times=''
    for _ in 1 2 3 4 5 6 7 8 9 10; do # until files that are read one after the other show one state
        counts=$(count_sectors)
        [ "$counts" != "$previous" ] || break
        previous=$counts
    done
    [ "$counts" = "$previous" ] || return 0
    [ -z "$backing" ] || [ "$disk" != "$system" ] || times=" $(stat -c '%y %z' -- "$backing" | tr -c '0-9.:+\n-' _)"
    echo "$boot $number ${sequence:--} $counts$times"
}

# Sectors written to the partition and discarded; and of the disk those that went to no partition of it.
count_sectors() {
    set -- "$disk/stat"
    for part in "$disk"/*/partition; do [ ! -e "$part" ] || set -- "$@" "${part%partition}stat"; done
    awk -v own="$system/stat" 'FILENAME == own && own != ARGV[1] { printf "%.0f %.0f ", $7, $14 }
        FILENAME == ARGV[1] { written = $7; discarded = $14; next }
        { written -= $7; discarded -= $14 }
        END { printf "%.0f %.0f\n", written, discarded }' "$@"
}

# Whether others can write to the device past this kernel's counts of it: over a network, from outside of a virtual machine,
# to the disks below it.
shared() {
    if [ -n "$backing" ]; then
        case $(stat -f -c %T -- "$backing") in
        nfs* | cifs | smb* | fuse* | ceph | v9fs | 9p | afs | lustre | gfs* | ocfs2) return ;;
        *) return 1 ;;
        esac
    fi
    case $disk in */virtual/block/zram* | */virtual/block/ram*) return 1 ;; esac
    [ -z "$(ls "$disk/slaves" 2>/dev/null)" ] && ! grep -q '^flags.* hypervisor' /proc/cpuinfo || return 0
    case $disk in */session[0-9]* | */rport-* | */nvme-fabrics/* | */nbd[0-9]* | */rbd[0-9]* | */drbd[0-9]*) ;; *) false ;; esac
}

first_digest() { dd if="$device" bs=65536 count=$((END_BYTES / 65536)) 2>/dev/null | sha256sum | cut -c 1-64; }

last_digest() {
    [ "$size" -gt "$END_BYTES" ] && from=$(((size - END_BYTES) / 4096)) || from=0
    dd if="$device" bs=4096 skip="$from" 2>/dev/null | sha256sum | cut -c 1-64
}

inner_digest() { page_numbers | read_pages | sha256sum | cut -c 1-64; }

# Two generators combined (L'Ecuyer 1988): whole numbers below 2^53, which every awk multiplies exactly.
page_numbers() {
    awk -v seed="$seed" -v size="$size" -v ends="$END_BYTES" -v stretch="$STRETCH" 'BEGIN {
        split(seed, given, " ")
        a = given[1] % 2147483562 + 1; b = given[2] % 2147483398 + 1
        for (at = ends; at + 4096 <= size - ends; at += stretch) {
            pages = (size - ends - at) / 4096
            if (pages > stretch / 4096) pages = stretch / 4096
            a = a * 40014 % 2147483563; b = b * 40692 % 2147483399
            printf "%.0f\n", at / 4096 + int((a + b) % 2147483563 / 2147483563 * int(pages))
        }
    }'
}

# One process for all pages where there is perl; dd is one for each.
read_pages() {
    if command -v perl >/dev/null; then
        perl -ne 'BEGIN { open D, "<:raw", shift @ARGV or exit 1 }
            sysseek D, 4096 * $_, 0; sysread D, $page, 4096; print $page' "$device"
    else
        while read -r page; do dd if="$device" bs=4096 skip="$page" count=1 2>/dev/null; done
    fi
}

# --- whether others have changed it -------------------------------------------------------------------------------------

refuse_changed() {
    case $state in claimed) since="Mountlab claimed it" ;; *) since="Mountlab's last use of it" ;; esac
    refuse "$what, but others have changed the device since $since: $1" "$id"
}

# From a record that is read. Between our first write and the end of a use only the UUID tells.
check_unchanged() {
    [ "$state" != using ] || return 0
    now=$(count_writes) || exit
    # shellcheck disable=SC2086
    if [ -n "$now" ] && [ "$(first_three $now)" = "$(first_three $writes)" ]; then
        [ "$now" = "$writes" ] || refuse_changed "the kernel's counts of sectors written and discarded${backing:+, or the \
times of its file,} were ${writes#* * * }, and are ${now#* * * }"
        ! shared || check_content
        return
    fi
    check_content
    writes=$now
    write_record
}

first_three() { echo "$1 $2 $3"; }

check_content() {
    # shellcheck disable=SC2086
    set -- $content
    [ "$(first_digest)" = "$1" ] || refuse_changed "its first 4 MiB are not what they were"
    [ "$(last_digest)" = "$2" ] || refuse_changed "its last 4 MiB are not what they were"
    [ "$3" = - ] || [ "$(inner_digest)" = "$3" ] || refuse_changed "pages between its ends are not what they were"
}

# --- what is recorded ---------------------------------------------------------------------------------------------------

# After a claim, or at the end of a use. A kernel that has not counted what we wrote does not count what others write.
record_content() { # STATE COUNTED: what count_writes gave before that
    state=$1
    writes=$(count_writes) || exit
    [ "$writes" != "$2" ] || writes=
    content="$(first_digest) $(last_digest) -"
    [ "$state" = used ] || content="${content% *} $(inner_digest)"
    write_record
}

# Before COMMAND writes to the device: what is on it, and what will be, is ours.
record_use() { # COMMAND...
    make_records
    read_record || new_record
    uuids=$(for word in "$mark" "$id" "$@"; do
        case $word in *"
"*) ;; *) printf '%s\n' "$word" ;; esac # a script is not an argument
    done | grep -o "${OURS%62-}[64][23]-[0-9a-f]\{4\}-[0-9a-f]\{12\}" | sort -u | tr '\n' ' ')
    state=using content=-
    write_record
}
