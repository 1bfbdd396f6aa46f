# Needs contents.sh stamps.sh
# A member of an array is lost; files are read and overwritten meanwhile; it comes back and is filled.
# $1: dd; $2: prepare or measure; $3: the trial's directory; $4: the file with the data of the overwrites; $5: bytes of a
# file; $6: the directory of the run; $7: the UUID of the array or pool; $8: the number of the member; then for prepare $9: a
# seed; for measure $9: replaced or returned; the last: the directory for output. layer.sh lies beside this script.
dd=$1 act=$2 directory=$3 data=$4 size=$5 run_dir=$6 uuid=$7 number=$8
scripts=${0%/*}

# $1: a verb of layer.sh; $2: its last argument.
array() {
    verb=$1
    shift
    sh "$scripts/layer.sh" "$verb" "$run_dir" "$uuid" "$@"
}

prepare() {
    state=$(array whole)
    [ "$state" = whole ] || fail "the array below the file system is not whole before the trial: ${state:-nothing is known}"
    make_pool "$1"
    stretch "$size" 50021 > "$data" || fail "no room for the data of the overwrites in ${data%/*}"
    stretch "$size" 1 > "$directory/healthy" && stretch "$size" 2 > "$directory/degraded" \
        || fail "the files could not be laid out"
    rm "$directory/pool"
    flush
    for file in "$data" "$directory/healthy" "$directory/degraded"; do checksum "$file"; done > "$scripts/sums"
}

read_file() { "$dd" if="$directory/$1" of=/dev/null bs=1M 2> "$output/dd" || fail "$(cat "$output/dd")"; }
overwrite() {
    "$dd" if="$data" of="$directory/$1" bs=1M conv=notrunc,fsync 2> "$output/dd" || fail "$(cat "$output/dd")"
}

# The checksum reads from memory, or reads once more.
use() {
    echo "state_$1 $(array whole)"
    timed "read_$1" read_file "$1"
    echo "served $(checksum "$directory/$1")"
    timed "write_$1" overwrite "$1"
}

# Sectors read from the member, and written to it, since the box was started.
moved() { awk '{ print $3, $7 }' "/sys/class/block/${member##*/}/stat"; }

# However the trial ends, the member is given back.
give_back() {
    [ -n "$lost" ] || return 0
    lost=
    [ "$back" = returned ] || array blank "$number"
    array bring "$number" "$back" > /dev/null
}

limits() {
    grep -s . /proc/sys/dev/raid/speed_limit_* /sys/block/md*/md/sync_speed_min /sys/block/md*/md/sync_speed_max \
        /sys/module/zfs/parameters/zfs_resilver_* /sys/module/zfs/parameters/zfs_scan_* > "$output/limits"
    array show > "$output/array.healthy"
}

measure() {
    back=$1 output=$2 lost=''
    member=$(array member "$number") || exit 1
    limits
    echo "sizes $(stat -c %s "$directory/healthy" "$directory/degraded" | tr '\n' ' ')"
    { read -r written; read -r healthy; read -r degraded; } < "$scripts/sums"
    printf 'laid %s\n' "$healthy" "$degraded"
    use healthy
    trap give_back EXIT
    trap 'exit 143' TERM INT HUP
    lost=yes
    array lose "$number" || exit 1
    [ ! -e /run/udev/control ] || udevadm settle -t 10 # it looks at what is lost
    echo "before $(moved)"
    use degraded
    array show > "$output/array.degraded"
    echo "after $(moved)"
    echo "state_still $(array whole)"
    [ "$back" = returned ] || array blank "$number" || exit 1
    echo "blank $(moved)"
    timed rebuild array bring "$number" "$back"
    lost=''
    echo "rebuilt $(moved)"
    array show > "$output/array.whole"
    echo "state_whole $(array whole)"
    flush
    echo 3 > /proc/sys/vm/drop_caches
    printf 'kept %s\n' "$written" "$(checksum "$directory/healthy")" "$(checksum "$directory/degraded")"
}

shift 8
"$act" "$@"
