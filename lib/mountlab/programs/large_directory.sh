# Needs operations.sh
# large_directory.sh DIRECTORY CACHE OPERATIONS NAMES seed=SEED LIST PROGRAM...
# Create, list, look up and remove empty files in one directory. Their names are numbers, created in an order that leaps about.
#   LIST  a file in memory for the names in this order
# Prints a line for each measured operation: its name, the number of names that it found, and its stamps.
names=$1 seed=${2#seed=} list=$3
shift 3
# shellcheck disable=SC2034 # for operations.sh
programs=$*
many=$directory/names

touch_all() { cd "$many" && xargs sh -c 'touch -- "$@" || exit 255' touch <"$list"; } # 255 ends xargs
create() { briefly touch_all && flush; }
list() { counts=$(ls -f "$many" | wc -l); }
look_up() {
    counts=$(cd "$many" && awk -v n="$names" 'BEGIN { for (i = 0; i < n; i++) printf "%07d\n", i }' | xargs stat -c %n | wc -l)
}
remove() { briefly rm -rf "$many" && flush; }

awk -v n="$names" -v seed="$seed" "$leaps"' BEGIN { for (i = 0; i < n; i++) printf "%07d\n", place(i, n) }' >"$list" || exit 1
mkdir "$many" || exit 1
! is_measured list || dots=$(ls -f "$many" | wc -l) # . and ..
operation create
report create "$(find "$many" -type f | wc -l)"
if is_measured list; then
    operation list
    report list $((counts - dots))
fi
if is_measured stat; then
    operation look_up
    report stat $((counts))
fi
if is_measured remove; then
    operation remove
    report remove "$(find "$many" 2>/dev/null | wc -l)"
fi
