# Needs contents.sh stamps.sh datasets.sh
# Snapshots of a volume whose files change, and the space that they hold.
# $1: the kind of file system; $2: prepare or measure; $3: the trial's directory; $4: bytes; $5: of a file; then for
# prepare $6: a seed; for measure $6: snapshots; $7: files that change; $8: sync or wait; $9: seconds to wait at most.
kind=$1 act=$2 directory=$3 size=$4 file_size=$5
volume=$directory/volume

# --- what each kind of file system does in its own way

btrfs_holds() { [ "$(stat -f -c %t "$1")" = 9123683e ]; }
btrfs_make() { btrfs subvolume create "$volume" > /dev/null && mkdir "$volume/.snapshots"; }
btrfs_flush() { btrfs filesystem sync "$volume" > /dev/null; }
btrfs_create() { btrfs subvolume snapshot -r "$volume" "$volume/.snapshots/$1" > /dev/null && btrfs_flush; }
btrfs_path() { echo "$volume/.snapshots/$1"; }
btrfs_leave() { :; }
btrfs_used() { used; }
btrfs_list() { btrfs subvolume list -o "$volume" > "$directory/listed"; }
btrfs_delete() { btrfs subvolume delete --commit-after "$volume"/.snapshots/* > /dev/null; }

zfs_holds() { dataset=$(dataset_of "$1"); }
zfs_make() { zfs create -p "$dataset/volume" && mkdir "$volume" "$directory/look" && mount -t zfs "$dataset/volume" "$volume"; }
zfs_flush() { zpool sync "${dataset%%/*}"; }
zfs_create() { zfs snapshot "$dataset/volume@$1"; } # ends when the pool has committed it
zfs_path() { mount -t zfs "$dataset/volume@$1" "$directory/look" && echo "$directory/look"; }
zfs_leave() { umount "$directory/look"; }
# Of a dataset with snapshots the kernel shows only what it refers to itself. What is available grows by what they held.
zfs_used() { echo "-$(zfs get -Hp -o value available "$dataset")"; }
zfs_list() { zfs list -H -r -t snapshot -o name "$dataset/volume" > "$directory/listed"; }
zfs_delete() { zfs destroy "$dataset/volume@%"; }

# --- the same for all

prepare() {
    "${kind}_holds" "$directory" \
        || fail "the directory is not on $kind, and snapshots of others this tool cannot take: measure $kind, or exclude this"
    [ "$(id -u)" = 0 ] || fail "snapshots are listed and deleted as root: give the box a user who is root, or exclude this"
    make_pool "$1"
    "${kind}_make" || exit 1
    lay_out "$volume" "$size" "$file_size"
}

delete_and_wait() {
    (timed delete "${kind}_delete") || exit 1
    read -r now _ < /proc/uptime
    end=$((${now%.*} + limit)) looks=1
    while now_used=$("${kind}_used") && [ "$now_used" -gt "$1" ]; do
        looks=$((looks + 1))
        read -r now _ < /proc/uptime
        [ "${now%.*}" -lt "$end" ] || fail "the space of the deleted snapshots is not back after $limit s:" \
            "$((full - now_used)) B came back, at least $((full - $1)) B should; give a longer limit"
        [ "$free" = wait ] || "${kind}_flush"
        sleep 0.01
    done
    echo "looks $looks"
}

measure() {
    snapshots=$1 files=$2 free=$3 limit=$4 round=1
    "${kind}_holds" "$directory" || exit 1
    while [ "$round" -le "$snapshots" ]; do
        change "$volume" "$round" "$files" "$file_size"
        "${kind}_flush"
        timed create "${kind}_create" "$round"
        # A file that the next round changes is evidence that the snapshot keeps it.
        witness=$(chosen "$volume" "$((round + 1))" "$files" | head -n 1)
        echo "$round $witness $(checksum "$volume/$witness")" >> "$directory/witnesses"
        round=$((round + 1))
    done
    change "$volume" "$round" "$files" "$file_size"
    "${kind}_flush"
    timed list "${kind}_list"
    echo "listed $(wc -l < "$directory/listed" | tr -d ' ')"
    while read -r round witness sum; do
        kept=$(checksum "$("${kind}_path" "$round")/$witness")
        "${kind}_leave" || exit 1
        echo "kept $round $sum $kept $(checksum "$volume/$witness")"
    done < "$directory/witnesses"
    "${kind}_flush"
    full=$("${kind}_used")
    timed space_back delete_and_wait "$((full - snapshots * files * file_size / 10 * 9))"
    "${kind}_list"
    echo "left $(wc -l < "$directory/listed" | tr -d ' ')"
    echo "content $(amount "$volume")"
}

shift 5
"$act" "$@"
