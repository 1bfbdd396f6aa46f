# Needs operations.sh source_tree.sh
# tree.sh DIRECTORY CACHE OPERATIONS FILES seed=SEED SIZES ROOMS PROGRAM...
# Make a tree of text files, and do with it what developers do: `git status`, copy, search, look at each file, remove.
#   SIZES  quantiles of the sizes of files: 'PERMILLE:BYTES PERMILLE:BYTES ...', from 0 to 1000
#   ROOMS  the same of the number of files in a directory
# Prints a line for each measured operation: its name, what was counted of it, and its stamps.
# shellcheck disable=SC2034 # for source_tree.sh
files=$1 seed=${2#seed=} sizes=$3 rooms=$4
shift 4
# shellcheck disable=SC2034 # for operations.sh
programs=$*
tree=$directory/tree copy=$directory/copy
GIT_DIR=$directory/git GIT_WORK_TREE=$tree GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
export GIT_DIR GIT_WORK_TREE GIT_CONFIG_NOSYSTEM GIT_CONFIG_GLOBAL

make() { briefly unpack && flush; }
look() { counts=$(count_files "$tree"); }
search() { counts=$(grep -rF mountlab_marker "$tree" | wc -l); }

# On a file system that can share blocks between files, some versions of cp would copy nothing.
reflink=$(cp --reflink=never /dev/null "$copy" 2>/dev/null && rm "$copy" && echo --reflink=never)
copy_tree() { briefly cp -R $reflink "$tree" "$copy" && flush; }

# No object holds what is in the files: `git status` looks at the index, and at the files as they are found.
commit() {
    git init -q && cd "$tree" && find . -type f | git update-index --add --info-only --stdin || return
    git update-ref HEAD "$(git -c user.name=mountlab -c user.email=mountlab commit-tree -m tree "$(git write-tree --missing-ok)")"
}
git_status() { counts=$(git status --porcelain | wc -l); }
remove() { briefly rm -rf "$tree" && flush; }

mkdir "$tree" || exit 1
operation make
report make "$(count_files "$tree")"
if is_measured git-status; then
    (commit) || exit 1
    operation git_status
    report git-status "$((counts)) $(git ls-files | wc -l)"
fi
if is_measured copy; then
    operation copy_tree
    report copy "$(count_files "$copy")"
fi
if is_measured grep; then
    operation search
    report grep $((counts))
fi
if is_measured stat; then
    operation look
    report stat "$counts"
fi
if is_measured remove; then
    operation remove
    report remove "$(find "$tree" 2>/dev/null | wc -l)"
fi
