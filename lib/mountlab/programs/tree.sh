# Needs operations.sh
# tree.sh DIRECTORY CACHE OPERATIONS FILES seed=SEED SIZES ROOMS PROGRAM...
# Make a tree of text files, and do with it what developers do: `git status`, copy, search, look at each file, remove.
#   SIZES  quantiles of the sizes of files: 'PERMILLE:BYTES PERMILLE:BYTES ...', from 0 to 1000
#   ROOMS  the same of the number of files in a directory
# Prints a line for each measured operation: its name, what was counted of it, and its stamps.
files=$1 seed=${2#seed=} sizes=$3 rooms=$4
shift 4
# shellcheck disable=SC2034 # for operations.sh
programs=$*
tree=$directory/tree copy=$directory/copy
GIT_DIR=$directory/git GIT_WORK_TREE=$tree GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null
export GIT_DIR GIT_WORK_TREE GIT_CONFIG_NOSYSTEM GIT_CONFIG_GLOBAL

# The tree as a tar archive, which one process unpacks; with \001 in the place of NUL, which not every awk prints. All is
# computed in doubles, and rounded down: each awk makes the same tree, and mountlab.programs.tree computes its amounts.
# shellcheck disable=SC2016 # for awk
archive='
function read_table(text, at, value,   words, pair, n, k) {
    n = split(text, words, " ")
    for (k = 1; k <= n; k++) { split(words[k], pair, ":"); at[k] = pair[1] + 0; value[k] = pair[2] + 0 }
}
function quantile(at, value, rank, whole,   permille, k) {
    permille = (2 * rank + 1) * 1000 / (2 * whole)
    for (k = 2; at[k] < permille; k++);
    return int(value[k - 1] + (value[k] - value[k - 1]) * (permille - at[k - 1]) / (at[k] - at[k - 1]))
}
function draw() { return drawn = 16807 * drawn % 2147483647 }
function digit_sum(number, base,   sum) {
    for (sum = 0; number > 0; number = int(number / base)) sum += number % base
    return sum
}
# A header. Its checksum is the sum of its bytes, with blanks in the place of the checksum: codes is that of the name, and
# 3028 that of all that is the same in each header.
function member(name, codes, mode, size, type) {
    codes += 3028 + type + digit_sum(mode, 10) + digit_sum(size, 8)
    print name substr(nul, 1, 100 - length(name)) sprintf("%07d", mode) nul1 "0000000" nul1 "0000000" nul1 \
        sprintf("%011o", size) nul1 "14000000000" nul1 sprintf("%06o", codes) nul1 " " type substr(nul, 1, 100) \
        "ustar" nul1 "00" substr(nul, 1, 247)
}
BEGIN {
    ORS = ""
    nul = nul1 = "\001"
    while (length(nul) < 512) nul = nul nul
    read_table(sizes, size_at, size_of)
    read_table(rooms, room_at, room_of)
    drawn = seed % 2147483646 + 1
    n = split("static int struct return void if else for while const unsigned char long size buffer index error value " \
        "node list next head lock device driver page inode block entry offset length flags state data table", word, " ")
    while (length(text) < 65536) {
        line = ""
        for (k = draw() % 10 + 2; k > 0; k--) line = line " " word[draw() % n + 1]
        text = text line ";\n"
    }
    text = substr(text, 1, 65536)
    text = text text
    directories = int(files / 15.42) + 1
    for (d = 0; d < directories; d++) {
        if (d) {
            path[d] = path[int((d - 1) / 8)] sprintf("d%05d/", d)
            codes_of[d] = codes_of[int((d - 1) / 8)] + 387 + digit_sum(d, 10) # d, five digits, and a slash
            member(path[d], codes_of[d], 755, 0, 5)
        }
        room[d] = quantile(room_at, room_of, place(d, directories), directories)
    }
    d = 0
    for (i = 0; i < files; i++) {
        while (d < directories && room[d] == 0) d++
        home = d < directories ? d : i % directories
        room[home]--
        rank = place(i, files)
        size = left = quantile(size_at, size_of, rank, files)
        member(path[home] sprintf("unit_%06d.c", i), codes_of[home] + 976 + digit_sum(i, 10), 644, size, 0)
        if (rank % 10 == 5 && size >= 64) { print "int mountlab_marker;\n"; left -= 21 }
        from = draw() % 65536 + 1
        for (; left > 65536; left -= 65536) print substr(text, from, 65536)
        print substr(text, from, left)
        if (size % 512) print substr(nul, 1, 512 - size % 512)
    }
    print nul nul
}'

make_archive() {
    awk -v files="$files" -v seed="$seed" -v sizes="$sizes" -v rooms="$rooms" "$leaps$archive" | tr '\001' '\000'
}
unpack() { make_archive | tar -C "$tree" -xmof -; }
make() { briefly unpack && flush; }

# Their number and their bytes.
count_files() { find "$1" -type f -exec stat -c %s {} + | awk '{ bytes += $1 } END { printf "%.0f %.0f\n", NR, bytes }'; }
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
