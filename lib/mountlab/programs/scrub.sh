# Needs contents.sh stamps.sh
# Blocks of a file are overwritten on a device below the file system; then the file is read, scrubbed, and read again.
# $1: dd; $2: prepare or measure; $3: the trial's directory; $4: a file in memory; $5: blocks of the file; $6: md, zfs, lvm or
# device: what lies below the file system; $7: the directory of the run; $8: the UUID of that, or of the file system; $9: the
# number of the device; $10: how many blocks are overwritten; then for prepare a seed; for measure the directory for
# output. layer.sh lies beside this script.
dd=$1 act=$2 directory=$3 pool=$4 blocks=$5 kind=$6 run_dir=$7 uuid=$8 number=$9
shift 9
errors=$1
shift
scripts=${0%/*} words=mountlab-${directory##*/}

array() { sh "$scripts/layer.sh" "$1" "$run_dir" "$uuid" ${2:+"$2"}; }

# --- the device

# Sets member to the device. Without a layer it is one of those that carry the file system which is mounted at the trial's
# directory, by the UUID that this run gave to it.
find_device() {
    if [ "$kind" != device ]; then
        member=$(array member "$number") || exit 1
        return
    fi
    case $(stat -f -c %t "$directory") in
    9123683e) members=$(btrfs filesystem show "$uuid" | sed -n 's/.* path //p') ;;
    *) members=$(mounted_device) ;;
    esac
    at=0 member=''
    for device in $members; do
        at=$((at + 1))
        [ "$at" != "$number" ] || member=$(readlink -f "$device")
    done
    [ -b "$member" ] || fail "the file system has no device $number"
    carried=$(blkid -p -o value -s UUID -- "$member")
    [ "$carried" = "$uuid" ] || fail "$member carries ${carried:-no UUID}, and not the file system $uuid of this run"
}

mounted_device() {
    awk -v d="$(stat -c %d "$directory")" '
        { split($3, n, ":"); if (n[1] * 256 + n[2] % 256 + int(n[2] / 256) * 1048576 == d) {
            for (i = 7; i < NF; i++) if ($i == "-") found = $(i + 2) } }
        END { print found }' /proc/self/mountinfo
}

# --- blocks: each is a line of 4095 letters, which begins with the words of this trial and its number

# shellcheck disable=SC2016 # for awk
block='function block(n) { return sprintf("%s-%010d-", words, n) substr(text, n * 4099 % 253952 + 1, 4095 - length(words) - 12) }
    BEGIN { getline text < pool }'

make_text() {
    make_pool "$1"
    LC_ALL=C tr '\000-\377' 'A-Za-z0-9+/A-Za-z0-9+/A-Za-z0-9+/A-Za-z0-9+/' < "$directory/pool" > "$pool" || exit 1
    rm "$directory/pool"
}

in_awk() { LC_ALL=C awk -v words="$words" -v pool="$pool" -v n="$blocks" "$block $1"; }

# Where the blocks lie on the device, as `OFFSET NUMBER`. Zeros become ends of lines, or grep would take them for one line.
locate() {
    "$dd" if="$member" bs=1M iflag=direct 2> /dev/null | tr '\000' '\n' \
        | LC_ALL=C grep -abo "$words-[0-9]*-" | sed "s/:$words-0*\(.*\)-\$/ \1/; s/ \$/ 0/"
}

# $errors of those that lie once on the device, apart from each other.
choose() {
    awk -v errors="$errors" -v seed="$1" '
        function divisor(a, b) { return b ? divisor(b, a % b) : a }
        $1 % 512 == 0 { count[$2]++; at[$2] = $1; if (count[$2] == 1) order[n++] = $2 }
        END {
            for (i = 0; i < n; i++) if (count[order[i]] == 1) good[m++] = order[i]
            if (m < errors) { print "only " m + 0 " of " n + 0 " blocks" > "/dev/stderr"; exit 1 }
            step = int(m * 0.618)
            while (step < 1 || divisor(step, m) != 1) step++
            for (i = 0; i < errors; i++) { b = good[(seed + i * step) % m]; printf "%.0f %d\n", at[b], b }
        }'
}

# Past the page cache, which may hold something else than the device.
plant() {
    while read -r at number; do
        in_awk "END { gsub(/^m/, \"M\", words); print block($number) }" < /dev/null \
            | "$dd" of="$member" bs=4096 count=1 seek="$at" iflag=fullblock oflag=direct,seek_bytes conv=notrunc,fsync \
                2> "$scripts/dd" || fail "no block can be written to $member while it is in use (a kernel with" \
                "CONFIG_BLK_DEV_WRITE_MOUNTED=n refuses that): $(cat "$scripts/dd")"
    done < "$scripts/planted"
}

prepare() {
    find_device
    make_text "$1"
    in_awk 'BEGIN { for (i = 0; i < n; i++) print block(i) }' > "$directory/file" || fail "the file could not be laid out"
    flush
    locate > "$scripts/places"
    said=$(choose "$1" < "$scripts/places" 2>&1 > "$scripts/planted") \
        || fail "blocks of the file are looked for on $member by their words, and $said lie there once and in clear" \
            "text: without compression, encryption, and a second copy (a journal of data, dup)"
    plant
}

# --- what is served, and what the devices hold

# Prints right, wrong and refused of the blocks that come in: a refused block is 4096 tildes.
count_blocks() {
    tr '\000' '~' | in_awk 'BEGIN { for (i = 0; i < 4096; i++) tildes = tildes "~" }
        {
            while (substr($0, 1, 4096) == tildes) { refused++; $0 = substr($0, 4097) }
            if ($0 == "") next
            seen = substr($0, length(words) + 2, 10) + 0
            if ($0 == block(seen) && !(seen in good)) good[seen] = ++right
        }
        END { printf "%d %d\n", right, refused }' | {
        read -r right refused
        echo "$right $(($1 - right - refused)) $refused"
    }
}

served() {
    echo "$1 $("$dd" if="$directory/file" bs=4096 conv=noerror,sync 2> "$output/read.$1" | count_blocks "$blocks")"
}

# Planted blocks that are right on the device again.
on_device() {
    echo "$1 $(while read -r at _; do
        "$dd" if="$member" bs=4096 count=1 skip="$at" iflag=direct,skip_bytes 2> /dev/null
    done < "$scripts/planted" | count_blocks "$errors")"
}

# --- the scrub of each kind, and what the system counts: found and repaired

checked() {
    scanned=$(sectors_read)
    timed check "$@"
    echo "scanned $(($(sectors_read) - scanned))"
}

no_scrub() { echo "found 0"; }

sync_action() {
    echo "$1" > "$attributes/sync_action" || fail "the array does not $1"
    while read -r action < "$attributes/sync_action" && [ "$action" != idle ]; do sleep 0.05 2> /dev/null || sleep 1; done
}

scrub_array() {
    attributes=/sys/block/$1/md
    case $(cat "$attributes/level") in raid0 | linear) no_scrub; return ;; esac
    checked sync_action check
    echo "found $(($(cat "$attributes/mismatch_cnt") / 8))"
    timed repair sync_action repair
}

scrub_btrfs() {
    btrfs scrub start -B -R "$directory" > "$output/scrub" 2>&1
    grep -q 'csum_errors' "$output/scrub" || fail "$(cat "$output/scrub")"
}

checksum_errors() { zpool status -pP "$pool_name" | awk '/^errors:/ { exit } $1 ~ /\/[0-9]+$/ { n += $5 } END { print n + 0 }'; }

scrub() {
    case $kind:$(stat -f -c %t "$directory") in
    *:9123683e)
        checked scrub_btrfs
        echo "found $(sed -n 's/.*csum_errors: *//p' "$output/scrub")" ;;
    zfs:*)
        pool_name=$(array find)
        before=$(checksum_errors)
        checked zpool scrub -w "$pool_name"
        zpool status -pP "$pool_name" > "$output/scrub"
        echo "found $(($(checksum_errors) - before))" ;;
    md:*) scrub_array "$(basename "$(array find)")" ;;
    *) no_scrub ;;
    esac
}

drop() { flush; echo 3 > /proc/sys/vm/drop_caches; }

# Sectors read from the device since the box was started.
sectors_read() { awk '{ print $3 }' "/sys/class/block/${member##*/}/stat"; }

measure() {
    output=$1
    find_device
    echo "planted $(wc -l < "$scripts/planted")"
    timed read served before
    drop
    on_device healed
    scrub
    drop
    on_device repaired
    served after
}

"$act" "$@"
