# Needs operations.sh source_tree.sh
# rsync.sh DIRECTORY CACHE OPERATIONS FILES seed=SEED SIZES ROOMS SOURCE CHANGED OPTIONS PROGRAM...
# Copy a tree of text files from memory into the directory with rsync: the first time, without changes, with some.
#   SOURCE   where the tree is made, in memory
#   CHANGED  how many files get a line more before the last copy
#   OPTIONS  of rsync
# Prints a line for each measured copy: its name, how many files rsync sent, bytes of the copy, and its stamps.
# shellcheck disable=SC2034 # for source_tree.sh
files=$1 seed=${2#seed=} sizes=$3 rooms=$4 tree=$5 changed=$6 options=$7
shift 7
# shellcheck disable=SC2034 # for operations.sh
programs=$*
copy=$directory/copy

# shellcheck disable=SC2086 # options are words
copy_tree() { statistics=$(rsync -a --stats --no-human-readable $options "$tree/" "$copy") && flush; }

# Add a line to $changed files that lie apart, others with each seed. A file's number is in its name.
change() {
    find "$tree" -type f | awk -v n="$files" -v most="$changed" -v seed="$seed" "$leaps"'
        BEGIN { for (i = 0; i < most; i++) wanted[sprintf("unit_%06d.c", place(i, n))] }
        { name = $0; sub(/.*\//, "", name); if (name in wanted) print }' | while read -r file; do echo 'int changed;' >>"$file"; done
}

checksum() { (cd "$1" && find . -type f | LC_ALL=C sort | xargs md5sum | md5sum); }
sent() { printf '%s\n' "$statistics" | awk -F ': ' '/^Number of regular files transferred/ { print $2 }'; }
# Each copy is compared, byte by byte through checksums of all files, with the tree.
copied() {
    operation copy_tree
    [ "$(checksum "$tree")" = "$(checksum "$copy")" ] || fail "the $1 copy differs from its source"
    report "$1" "$(sent) $(count_files "$copy" | cut -d ' ' -f 2)"
}

mkdir "$tree" && briefly unpack || exit 1
copied first
copied unchanged
if is_measured changed; then
    change || fail 'the files could not be changed'
    copied changed
fi
