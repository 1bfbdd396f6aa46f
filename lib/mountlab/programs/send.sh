# Needs contents.sh stamps.sh datasets.sh
# A copy of a tree of files, whole and then of what has changed: by btrfs send, zfs send or rsync.
# $1: btrfs, zfs or rsync; $2: prepare or measure; $3: the trial's directory; $4: bytes; $5: of a file; then for prepare
# $6: a seed; for measure $6: files that change; $7: directory or null, where it goes; $8: the directory for output.
method=$1 act=$2 directory=$3 size=$4 file_size=$5
source=$directory/source

# --- each method: make the source, keep a state of it, where that and its copy lie, copy it ($2: the state before), and
# --- leave what was looked at

as_root() { [ "$(id -u)" = 0 ] || fail "$method sends and receives as root only: give the box a user who is root, or write via: rsync"; }

# Copy by a stream: METHOD_send ARGUMENTS into METHOD_receive.
stream() {
    { "${method}_send" "$@" 2> "$directory/sending" || : > "$directory/failed"; } | {
        if [ "$to" = null ]; then wc -c > "$directory/stream.$1"
        else "${method}_receive" > "$directory/receiving" 2>&1; fi
    } && [ ! -e "$directory/failed" ] || fail "$(cat "$directory"/*ing)"
}

btrfs_make() {
    [ "$(stat -f -c %t "$directory")" = 9123683e ] \
        || fail "the directory is not on btrfs or on zfs that Mountlab made, and no other file system can send: write via: rsync"
    as_root
    btrfs subvolume create "$source" > /dev/null
}
btrfs_keep() {
    btrfs subvolume snapshot -r "$source" "$directory/$1" > /dev/null && btrfs filesystem sync "$source" > /dev/null
}
btrfs_kept() { echo "$directory/$1"; }
btrfs_copied() { echo "$directory/received/$1"; }
btrfs_copy() { stream "$@"; }
btrfs_send() { btrfs send -q ${2:+-p "$directory/$2"} "$directory/$1"; }
btrfs_receive() { btrfs receive "$directory/received" && flush; }
btrfs_leave() { :; }

zfs_make() {
    as_root
    dataset=$(dataset_of "$directory") || fail "the directory is not in a pool that Mountlab made: measure zfs, or write via: rsync"
    zfs create -p "$dataset/source" && mkdir "$source" && mount -t zfs "$dataset/source" "$source"
}
# Both commands wait until the pool has committed all data to the devices.
zfs_keep() { dataset=$(dataset_of "$directory") && zfs snapshot "$dataset/source@$1"; }
zfs_receive() { zfs receive -u "$dataset/copy"; }
zfs_send() { zfs send ${2:+-i "@$2"} "$dataset/source@$1"; }
zfs_copy() { stream "$@"; }
zfs_kept() { look_into "$dataset/source@$1" "$directory/kept"; }
zfs_copied() { look_into "$dataset/copy" "$directory/received/$1"; }
look_into() { mkdir -p "$2" && mount -t zfs -o ro "$1" "$2" && echo "$2"; }
# A copy that is mounted cannot receive.
zfs_leave() {
    umount "$directory/kept" || exit 1
    [ "$to" = null ] || umount "$directory/received/$1" || exit 1
}

rsync_make() { mkdir "$source"; }
rsync_keep() { flush; }
rsync_kept() { echo "$source"; }
rsync_copied() { echo "$directory/received/source"; }
rsync_copy() {
    rsync -a --stats --no-human-readable "$source/" "$directory/received/source" > "$output/rsync.$1" && flush
}

rsync_leave() { :; }

# --- the same for all

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
    "${method}_leave" "$1"
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
