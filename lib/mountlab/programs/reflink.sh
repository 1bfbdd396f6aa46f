# Needs contents.sh stamps.sh
# Clones of a file that share its blocks, and what overwriting one of them costs, once and again.
# $1: the program that clones; $2: prepare or measure; $3: the trial's directory; $4: the file with the data of the
# overwrites; $5: bytes of the file that is cloned; $6: of a block; $7: how many blocks are overwritten; then for prepare
# $8: a seed; for measure $8: clones; $9: random or sequential; the last: the directory for output.
cp=$1 act=$2 directory=$3 data=$4 size=$5 bs=$6 blocks=$7

clone() { "$cp" --reflink=always "$directory/source" "$directory/clone.$1" && flush; }
drop() { rm "$directory/clone.$1" && flush; }

# Do $1 with each number up to $2.
each() {
    number=1
    while [ "$number" -le "$2" ]; do
        "$1" "$number" || return
        number=$((number + 1))
    done
}

prepare() {
    make_pool "$1"
    stretch 65536 1 > "$directory/source"
    "$cp" --help 2>&1 | grep -q -e --reflink || fail "the cp of the box has no --reflink: install GNU coreutils"
    dd if=/dev/zero of=/dev/null bs=512 count=1 2>&1 | grep -q , \
        || fail "the dd of the box does not tell how long it took: install GNU coreutils"
    said=$(clone 0 2>&1) || fail "files of this file system cannot share blocks (${said##*: }): measure btrfs, or xfs" \
        "made with reflink=1"
    drop 0
    stretch "$size" 1 > "$directory/source" || fail "the file to be cloned could not be written"
    stretch "$(((blocks + 1) * bs))" 50021 > "$data" || fail "no room for the data of the overwrites in ${data%/*}"
    rm "$directory/pool"
    checksum "$directory/source" > "$directory/sum"
}

# Overwrite blocks of the first clone, and print the summaries of dd. $1: how many blocks of the data come before: what
# is written differs from what is there.
overwrite() {
    if [ "$order" = sequential ]; then
        dd if="$data" of="$directory/clone.1" bs="$bs" skip="$1" count="$blocks" conv=notrunc,fsync 2>&1 || exit 1
        return
    fi
    awk -v n="$blocks" -v all="$((size / bs))" 'function divisor(a, b) { return b ? divisor(b, a % b) : a }
        BEGIN {
            step = int(all * 0.618)
            while (step < 1 || divisor(step, all) != 1) step++
            for (i = 0; i < n; i++) print i, (i + 1) * step % all
        }' | while read -r at place; do
        dd if="$data" of="$directory/clone.1" bs="$bs" skip="$((at + $1))" seek="$place" count=1 \
            conv=notrunc,fsync 2>&1 || exit 1
    done
}

report_overwrite() {
    overwrite "$1" > "$output/$2" || fail "$(cat "$output/$2")"
}

measure() {
    clones=$1 order=$2 output=$3
    echo "used $(used)"
    timed clone each clone "$clones"
    echo "used $(used)"
    report_overwrite 0 first
    report_overwrite 1 second
    echo "size $(stat -c %s "$directory/source") $(stat -c %s "$directory/clone.1")"
    echo "sums $(cat "$directory/sum") $(checksum "$directory/source") $(checksum "$directory/clone.1")" \
        "$(checksum "$directory/clone.$clones")"
    timed delete each drop "$clones"
}

shift 7
"$act" "$@"
