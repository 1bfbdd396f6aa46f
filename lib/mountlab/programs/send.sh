# Needs contents.sh stamps.sh
# A copy of a tree of files, whole and then of what has changed: by btrfs send, or by rsync.
# $1: btrfs or rsync; $2: prepare or measure; $3: the trial's directory; $4: bytes; $5: of a file; then for prepare
# $6: a seed; for measure $6: files that change; $7: directory or null, where it goes; $8: the directory for output.
method=$1 act=$2 directory=$3 size=$4 file_size=$5
source=$directory/source

# --- each method: make the source, keep a state of it, where that and its copy lie, and copy it ($2: the state before)

btrfs_make() {
    [ "$(stat -f -c %t "$directory")" = 9123683e ] \
        || fail "the directory is not on btrfs, and no other file system can send: write via: rsync"
    [ "$(id -u)" = 0 ] || fail "btrfs sends and receives as root only: give the box a user who is root, or write via: rsync"
    btrfs subvolume create "$source" > /dev/null
}
btrfs_keep() {
    btrfs subvolume snapshot -r "$source" "$directory/$1" > /dev/null && btrfs filesystem sync "$source" > /dev/null
}
btrfs_kept() { echo "$directory/$1"; }
btrfs_copied() { echo "$directory/received/$1"; }
btrfs_copy() {
    { btrfs send -q ${2:+-p "$directory/$2"} "$directory/$1" 2> "$directory/sending" || : > "$directory/failed"; } | {
        if [ "$to" = null ]; then wc -c > "$directory/stream.$1"
        else btrfs receive "$directory/received" > "$directory/receiving" 2>&1 && flush; fi
    } && [ ! -e "$directory/failed" ] || fail "$(cat "$directory"/*ing)"
}

rsync_make() { mkdir "$source"; }
rsync_keep() { flush; }
rsync_kept() { echo "$source"; }
rsync_copied() { echo "$directory/received/source"; }
rsync_copy() {
    rsync -a --stats --no-human-readable "$source/" "$directory/received/source" > "$output/rsync.$1" && flush
}

# --- the same for both

prepare() {
    make_pool "$1"
    "${method}_make" && mkdir "$directory/received" || exit 1
    lay_out "$source" "$size" "$file_size"
    flush
}

# Print number, bytes and checksum of the files in $2.
show() { echo "$1 $(amount "$2") $(checksum "$2"/f*)"; }

compare() {
    show "$1" "$("${method}_kept" "$1")"
    if [ "$to" = null ]; then echo "stream_$1 $(cat "$directory/stream.$1")"
    else show "copy_$1" "$("${method}_copied" "$1")"; fi
}

measure() {
    files=$1 to=$2 output=$3
    "${method}_keep" first || exit 1
    timed full "${method}_copy" first
    compare first
    change "$source" 1 "$files" "$file_size"
    "${method}_keep" second || exit 1
    timed incremental "${method}_copy" second first
    compare second
}

shift 5
"$act" "$@"
