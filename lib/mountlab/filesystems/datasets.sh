# Datasets of ZFS that a trial makes for its directory, below the dataset that it lies in, and only in a pool that Mountlab
# has made for a mount (zfs.py).

# Print the name of the one for directory $1; fail where it is in no such pool.
dataset_of() {
    awk -v directory="$1" '
        index(directory, ($5 == "/" ? "" : $5) "/") == 1 && length($5) >= length(point) {
            point = $5
            for (i = 7; i < NF; i++) if ($i == "-") { type = $(i + 1); source = $(i + 2) }
        }
        END {
            if (type != "zfs" || source !~ /^mountlab-[0-9a-f]+\/data$/) exit 1
            print source substr(directory, length(point) + 1)
        }' /proc/self/mountinfo
}

# Unmount all below directory $1, the last first, and destroy its dataset with all in it. Fine where there is none.
remove_datasets() {
    dataset=$(dataset_of "$1") || return 0
    awk -v below="$1/" 'index($5, below) == 1 { line[n++] = $5 } END { while (n > 0) print line[--n] }' /proc/self/mountinfo \
        | while read -r point; do umount "$point"; done
    zfs destroy -r "$dataset"
} > /dev/null 2>&1
