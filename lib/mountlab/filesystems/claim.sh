# Needs device.sh claim_record.sh
# claim.sh DEVICE ERASE SECONDS
# Read a scratch device from end to end, and mark it as Mountlab's where it is blank.
#   DEVICE    its stable name, from the box file
#   ERASE     the id of what is on it (or its own, where that has none), where the user allows that this is destroyed; else ''
#   SECONDS   how long to read: the next call goes on from there, if nothing was written to the device meanwhile
# Prints one line: `reading AT SIZE` while there is more to read, `claimed WHAT` at the end, `already WHAT` where it is ours.
# A refusal is as guard.sh gives it. Only a device that is claimed at the end is written to.
CLAIMS=/run/mountlab-claim # what is kept there counts until the next boot: others may have used the device in between
PART=4194304               # bytes that are read at once
LONGEST=1073741824         # bytes between two looks at the clock, at most

# --- where an earlier call has stopped ----------------------------------------------------------------------------------

# What changes as soon as anything is written to the device.
find_token() {
    now=$(count_writes) || exit
    token="$identity $now"
}

find_position() {
    at=0 state=$CLAIMS/$name
    find_token
    if [ -z "$now" ]; then # a kernel that does not count what is written can show no change: then all is read in one call
        seconds=99999
    elif [ -r "$state" ] && { read -r kept && read -r known; } <"$state" && [ "$known" = "$token" ]; then
        at=$kept
    fi
}

keep_position() { printf '%s\n%s\n' "$at" "$token" >"$state.new" && mv "$state.new" "$state" || exit; }

# --- what is to be read -------------------------------------------------------------------------------------------------

# `BEGIN END` of each part that may hold data, in bytes. A file below a loop device tells its holes, which are zeros for
# certain. No other device tells for certain which of its blocks were discarded, or what they read as: all of it is read.
parts() {
    if [ -n "$backing" ] && [ "$disk" = "$system" ] && [ "$(cat "$disk/loop/offset")" = 0 ]; then
        sync -f "$backing" 2>/dev/null || sync
        [ "$(stat -c %b -- "$backing")" != 0 ] || return 0
        extents=$(LC_ALL=C filefrag -s -e -b1024 -- "$backing" 2>/dev/null) && printf '%s\n' "$extents" | known_parts && return
    fi
    echo "0 $size"
}

# From filefrag, in KiB. What lies close together is one part: to begin another takes as long as to read some of a hole.
known_parts() {
    awk -v size="$size" -v part="$PART" -v near=67108864 '
        function put() { if (end > begin) printf "%.0f %.0f\n", begin, (end > size ? size : end) }
        /^ *[0-9]+: +[0-9]+\.\. *[0-9]+:/ {
            split($0, field, ":"); split(field[2], range, /\.\./)
            first = int(range[1] * 1024 / part) * part; last = (range[2] + 1) * 1024
            if (first > end + near) { put(); begin = first }
            if (last > end) end = last
            next
        }
        /^(Filesystem type|File size of| *ext:)/ || /: [0-9]+ extents? found$/ { next }
        { unknown = 1; exit }
        END { if (unknown) exit 1; put() }'
}

# --- reading ------------------------------------------------------------------------------------------------------------

# O_DIRECT reads the medium and leaves the page cache alone; without it, the pages read are dropped again.
find_way() {
    direct=
    ! dd if="$device" of=/dev/null bs=4096 count=1 iflag=direct 2>/dev/null || direct=iflag=direct
    # dd of coreutils leaves holes where it reads zeros, and compares faster than anything behind a pipe.
    sparse=$CLAIMS/$name.sparse
    trap 'rm -f -- "$sparse"' EXIT # what was found on the device is its owner's
    dd if=/dev/zero of="$sparse" bs=65536 count=1 conv=sparse 2>/dev/null && [ "$(stat -c %b -- "$sparse")" = 0 ] ||
        { rm -f -- "$sparse" && sparse=; }
}

# Whether the $2 bytes at $1 are zeros. Sets `seen` to what cmp has to say, and `far` to where that counts from.
zeros() {
    far=$1 left=$2
    while [ "$left" -gt 0 ]; do
        count=$(((left + PART - 1) / PART))
        [ -z "$sparse" ] || [ "$count" -le 32 ] || count=32 # so much of what is found may lie in memory
        bytes=$((count * PART))
        [ "$bytes" -le "$left" ] || bytes=$left
        # shellcheck disable=SC2086
        set -- if="$device" bs="$PART" skip=$((far / PART)) count="$count" $direct
        if [ -n "$sparse" ]; then
            dd "$@" of="$sparse" conv=sparse 2>/dev/null
            # shellcheck disable=SC2046
            set -- $(stat -c '%s %b' -- "$sparse")
            [ "$1 $2" = "$bytes 0" ] || seen=$(compare "$bytes" <"$sparse")
        else
            seen=$(dd "$@" 2>/dev/null | compare "$bytes")
        fi
        [ "$seen" = 'status 0' ] || return 1
        far=$((far + bytes)) left=$((left - bytes))
    done
}

refuse_data() {
    byte=$(printf '%s\n' "$seen" | sed -n 's/.* differ[^0-9]*\([0-9]*\).*/\1/p')
    [ -n "$byte" ] || refuse "$device ($said) carries no known signature, and cannot be read to the end: $seen, at byte $far"
    byte=$((far + byte - 1))
    refuse "$device ($said) carries no known signature, but is not blank: there is data at byte $byte ($((byte / 1048576)) MiB)" "$own_id"
}

# All of the part that ends at $2, from $at on, until the time is over.
read_part() {
    seen='status 0'
    while [ "$at" -lt "$2" ]; do
        length=$(($2 - at))
        [ "$length" -le "$step" ] || length=$step
        before=$(date +%s)
        zeros "$at" "$length" || refuse_data
        at=$((at + length))
        [ -n "$direct" ] || blockdev --flushbufs "$device"
        after=$(date +%s)
        [ $((after - before)) -gt 0 ] || [ "$step" -ge "$LONGEST" ] || step=$((step * 2))
        [ $((after - began)) -lt "$seconds" ] || return
    done
}

read_device() {
    began=$(date +%s) step=$((16 * PART))
    all=$(parts)
    while read -r begin end; do
        [ -n "$end" ] || continue
        [ "$end" -gt "$at" ] || continue
        [ "$at" -ge "$begin" ] || at=$begin
        read_part "$begin" "$end"
        [ "$at" -ge "$end" ] || return 0
    done <<END
$all
END
    at=$size
}

# --- claiming -----------------------------------------------------------------------------------------------------------

claim() { # HOW
    check_unused # reading may have taken long
    new_record
    counted=$(count_writes) || exit
    put_mark
    record_content claimed "$counted"
    rm -f -- "$CLAIMS/$name"
    echo "claimed $device ($said), $1; the mark is bound to its size and ${own:-the name $stable}"
    exit 0
}

# What the user has typed must be the id of what would be destroyed, as a refusal prints it.
permitted() { # WHAT ID
    [ "$erase" != "$2" ] || return 0
    [ -z "$erase" ] || refuse "$1, and its id is not $erase" "$2"
    refuse "$1" "$2"
}

erase_signatures() {
    verdict=$( (check_single; is_ours || refuse "$what" "${id:-$own_id}"; echo "already $what") 2>&1)
    case $verdict in already*) echo "$verdict" && exit 0 ;; esac
    permitted "$(printf '%s\n' "$verdict" | sed '/^permit: /d; s/^refused: //')" "${verdict##*permit: }"
    claim "what was on it is erased"
}

claim_blank() {
    why=
    [ -z "$partitions" ] || why="carries no signature, but the kernel knows partitions of it: $partitions"
    how=$(used_sibling)
    [ -z "$how" ] || why="carries no signature, but is a partition of a disk in use: $how"
    if [ -n "$erase$why" ]; then
        permitted "$device ($said) ${why:-carries no signature}" "$own_id"
        claim "without reading it, as its id was given"
    fi
    if ! { [ -d "$CLAIMS" ] || (umask 077 && mkdir -p "$CLAIMS"); } || [ "$(stat -c '%u %a %F' -- "$CLAIMS")" != "$(id -u) 700 directory" ]; then
        refuse "$CLAIMS, where the position is kept, cannot be made, or is not root's own"
    fi
    find_position
    find_way
    read_device
    began_with=$token
    find_token
    [ "$token" = "$began_with" ] || refuse "$device ($said) was written to while it was read"
    if [ "$at" -lt "$size" ]; then
        keep_position
        echo "reading $at $size"
        exit 0
    fi
    claim "every byte of it zero"
}

[ $# -eq 3 ] || refuse "claim.sh takes DEVICE ERASE SECONDS"
check_programs "$1"
stable=$1 erase=$2 seconds=$3
find_device "$1"
find_identity "$1" ''
lock
make_records
check_unused
find_signatures
[ -z "$types$type$table$contradictory" ] || erase_signatures
claim_blank
