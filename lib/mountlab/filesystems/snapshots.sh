# Needs seeded.sh
# snapshots.sh DIRECTORY COUNT CHANGE SEED [CAPACITY FILL [RUN_DIR UUID LAYER]]
# Make read-only snapshots of a file, and before each overwrite a share of its blocks of 4 KiB.
#   DIRECTORY  as for age.sh, in a file system that has snapshots: below it `live/file`; of btrfs the snapshots 1, 2, ... COUNT,
#              too; of ZFS they are DATASET@1, ... of the whole dataset, in a pool that Mountlab made; of a thin
#              volume of LVM kept1, ... of the whole volume, beside it in its pool
#   CHANGE     share of the blocks that are overwritten in place before each snapshot: 0.02
#   SEED       the same arguments and capacity give the same contents
#   CAPACITY FILL  of ZFS and LVM, where each mount makes them again: what age.sh got for them, since free space may differ
#   RUN_DIR UUID LAYER  of LVM: the directory of the run, the UUID of the layer, and the text of layer.sh
# The file has at most 1 GiB, and with all changes a quarter of the free capacity. Metadata of the snapshots comes on top.
# Prints `key value` a line: capacity, fill (as df counts it), snapshots, size (of the file), changed (bytes overwritten before
# each snapshot), seed, digest (of the contents of the file); of LVM how full its pool is, in percent. Ends as age.sh does.
fail() { printf 'the state was not reached: %s\n' "$1" >&2; exit 3; }
case $# in 4 | 6 | 9) ;; *) refuse "4, 6 or 9 arguments are needed, not $#" ;; esac
directory=$1 count=$2 change=$3 seed=$4

# A file system that has snapshots is one entry: what it needs, and its two commands.
layer=${9:-} kind=$(stat -f -c %t "$directory" 2>/dev/null)
# shellcheck disable=SC2016 # the dollars are of the shell that awk starts
case ${layer:+thin-}$kind in
9123683e)
    needs=btrfs
    make_volume='btrfs -q subvolume create'
    take_snapshot='btrfs -q subvolume snapshot -r'
    ;;
2fc12fc1)
    needs='zfs zpool'
    make_volume='mkdir'
    take_snapshot='take() { zfs snapshot "$dataset@$2"; }; take'
    ;;
thin-ef53 | thin-58465342)
    needs='lvm dmsetup blkid'
    make_volume='mkdir'
    take_snapshot='take() { sh -c "$layer" layer.sh snapshot "$run_dir" "$uuid" "$2" .; }; take'
    export layer run_dir="$7" uuid="$8"
    ;;
*) refuse "snapshots can be made on btrfs, zfs and thin volumes of LVM only, and $directory is on another file system" ;;
esac
show_pool() { [ -z "$layer" ] || sh -c "$layer" layer.sh snapshots "$run_dir" "$uuid"; }
count_taken() {
    if [ -n "$layer" ]; then show_pool | sed -n 's/^taken //p'; elif [ -n "$dataset" ]; then zfs list -H -t snapshot -o name "$dataset" | wc -l; else echo $(($(find . -mindepth 1 -maxdepth 1 | wc -l) - 1)); fi
}
enter_empty "$directory" awk dd df find sed sha256sum stat sync tr $needs
case $dataset in '' | mountlab-*/data) export dataset ;; *) refuse "$dataset is in no pool that Mountlab has made" ;; esac
usage
capacity=$(((used + free) * 1024))
[ -z "${6:-}" ] || free=$(awk -v capacity="${5:-$capacity}" -v fill="$6" 'BEGIN { printf "%d", capacity * (1 - fill) / 1024 }')
$make_volume live >&2 || fail "the volume could not be made"

# GNU dd passes over blocks of NUL and leaves what is there; the dd of BusyBox is started for each block.
sparse=1
dd if=/dev/null of=/dev/null conv=notrunc,sparse 2>/dev/null || sparse=0
# shellcheck disable=SC2016 # the dollars are of awk
program=$seeded'
function write_all(   at) {
    for (at = 0; at < blocks; at++) print label(1, at), texts[at % 256] | "cat > live/file"
    if (close("cat > live/file") != 0) stop("the file could not be written")
}

function overwrite(number,   at, n, chosen, into) {
    while (n < changed) if (!((at = uniform(blocks)) in chosen)) { chosen[at] = 1; n++ }
    into = "tr \"\\001\" \"\\000\" | dd of=live/file bs=4096 iflag=fullblock conv=notrunc,sparse 2>/dev/null"
    for (at = 0; at < blocks; at++) {
        if (!sparse) into = "dd of=live/file bs=4096 iflag=fullblock conv=notrunc seek=" at " 2>/dev/null"
        if (at in chosen) print label(number + 1, at), texts[(at + number) % 256] | into
        else if (sparse) print untouched | into
        if (!sparse && (at in chosen) && close(into) != 0) stop("the file could not be overwritten before snapshot " number)
    }
    if (sparse && close(into) != 0) stop("the file could not be overwritten before snapshot " number)
}

BEGIN {
    OFS = ORS = ""
    begin_with(seed)
    make_texts()
    untouched = sprintf("%4096s", "")
    gsub(/ /, "\1", untouched)
    bytes = free / 4 / (1 + count * change)
    if (bytes > 1073741824) bytes = 1073741824
    blocks = int(bytes / 4096)
    changed = int(blocks * change)
    if (changed < 1 || changed > blocks) stop("a share of " change " of " blocks " blocks cannot be overwritten")
    write_all()
    for (i = 1; i <= count; i++) {
        overwrite(i)
        if (system(take_snapshot " live " i " >&2") != 0) stop("snapshot " i " of " count " could not be taken")
    }
    print "snapshots " count "\nsize " blocks * 4096 "\nchanged " changed * 4096
}'
made=$(awk -v free=$((free * 1024)) -v count="$count" -v change="$change" -v seed="$seed" -v sparse=$sparse \
    -v take_snapshot="$take_snapshot" "$program" </dev/null) || fail "$(count_taken) of $count snapshots are there"
usage
in_pool=$(show_pool | grep -v '^taken ')
case $in_pool in *' 100'*) fail "the pool is full: $in_pool" ;; esac
digest=$(sha256sum <live/file)
fill=$(awk -v used="$used" -v capacity="$capacity" 'BEGIN { printf "%.4f", used * 1024 / capacity }')
printf 'capacity %s\nfill %s\n%s\nseed %s\ndigest %s\n' "$capacity" "$fill" "$made" "$seed" "${digest%% *}"
[ -z "$in_pool" ] || printf '%s\n' "$in_pool"
