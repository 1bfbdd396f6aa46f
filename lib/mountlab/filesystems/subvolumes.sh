# Needs datasets.sh
# Remove what below $1 rm cannot: datasets, and btrfs subvolumes, the innermost first. A killed trial may leave read-only ones.
# The top of a subvolume has inode 256. So may a directory of another file system, which btrfs refuses to delete.
remove_subvolumes() {
    remove_datasets "$1"
    find "$1" -depth -type d -inum 256 -exec btrfs subvolume delete {} \; > /dev/null 2>&1
}
