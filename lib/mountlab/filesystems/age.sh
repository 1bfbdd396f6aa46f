# Needs seeded.sh
# age.sh DIRECTORY FILL CHURN SEED SIZES YOUNG TREE [CAPACITY]
# Fill and age a mounted file system with the files of a profile (mountlab.filesystems.profiles).
#   DIRECTORY  empty, the mount point itself or directly below it; never on the root file system
#   FILL       share of the capacity that is in use at the end, as df counts it, within 0.02: 0.8
#   CHURN      how often the capacity is written after that, in files deleted and created: 10; 0 only fills
#   SEED       the same arguments and capacity give the same files: names, sizes, contents
#   SIZES      LOWER:UPPER:WEIGHT in bytes, one word a class, evenly spread within; above an eighth of the capacity left out
#   YOUNG      SHARE:WEIGHT: of the deletions, WEIGHT (0.9) take one of the youngest share (0.33), the others any file
#   TREE       FILES:DEPTH: files in a directory on average, and how deep the directories lie
#   CAPACITY   bytes that an earlier making had, where that is not the same each time (ZFS); '' for what df shows
# Prints `key value` a line: capacity (bytes that files can have), fill, files, written, age (written / capacity), rounds,
# largest (the largest size that the capacity allows), seed, digest (of names and sizes, read back).
# Ends with 0, 1 for a refusal that changed nothing, or 3 for a state that was not reached: that is written on standard error.
fail() { printf 'the state was not reached: %s\n' "$1" >&2; exit 3; }

# What ZFS takes for a file depends on sectors, parity and compression of the pool: three files show it. The kernel counts
# blocks of 512 bytes, and the dnode among them.
measure_records() {
    record=$block begun=0
    for bytes in 512 "$record" $((record + 512)); do head -c "$bytes" /dev/urandom >.probe-"$bytes" || refuse "no file can be written"; done
    flush
    block=$((($(stat -c %b .probe-512) - 1) * 512)) each=1024
    whole=$(($(stat -c %b .probe-"$record") * 512)) two=$(($(stat -c %b .probe-$((record + 512))) * 512))
    if [ "$two" -gt $((whole + record / 2)) ]; then tail=$record; else tail=$block; fi
    more=$((two - (record + 512 + tail - 1) / tail * tail))
    [ "$more" -gt 0 ] || more=$each
    rm -f .probe-*
    flush
}

[ $# -eq 7 ] || [ $# -eq 8 ] || refuse "7 or 8 arguments are needed, not $#"
directory=$1 fill=$2 churn=$3 seed=$4 sizes=$5 young=$6 tree=$7
enter_empty "$directory" awk df find sed sha256sum sort stat sync tar tr xargs
usage
capacity=${8:-$(((used + free) * 1024))}
[ "$capacity" -gt 0 ] || refuse "the file system on $directory has no limit that df shows"
begun=$((used * 1024))
block=$(stat -f -c %S .)
# What a file needs beside its blocks, where that counts as used space: an inode; in btrfs some items, twice. The plan
# uses these and never df, so that the files do not depend on when blocks are written back. See `off` for the rest.
record=0 tail=0 more=0
case $(stat -f -c %t .) in
58465342) each=512 ;;
9123683e) each=1536 ;;
2fc12fc1) measure_records ;;
*) each=0 ;;
esac

case $pool in '') flush='sync -f . 2>/dev/null || sync' ;; *) flush="zpool sync $pool" ;; esac

# \001 stands for the NUL of a tar header.
# shellcheck disable=SC2016 # the dollars are of awk
program=$seeded'
# Of ZFS a file larger than a record has whole records: the end of the last takes space where nothing compresses it.
function space(size) {
    if (record && size > record) return int((size + tail - 1) / tail) * tail + more
    return int((size + block - 1) / block) * block + each
}
function octal(value) { return sprintf("%03o%08o", int(value / 16777216), value % 16777216) }

function read_sizes(   i, n, word, part) {
    n = split(sizes, word, " ")
    for (i = 1; i <= n; i++) {
        split(word[i], part, ":")
        all += part[3]
        if (part[1] > largest) continue
        lower[++classes] = part[1] + 0
        upper[classes] = part[2] <= largest + 1 ? part[2] + 0 : largest + 1
        total += int(part[3] * (upper[classes] - part[1]) / (part[2] - part[1]))
        until[classes] = total
    }
    if (2 * total < all) {
        print "refused: less than half of the files of this profile fit, with at most " largest " bytes each: take a larger file system\n" > "/dev/stderr"
        exit 1
    }
}

function draw(   u, i) {
    u = uniform(total)
    for (i = 1; u >= until[i]; i++) continue
    return lower[i] + uniform(upper[i] - lower[i])
}

# The mean size gives the number of directories, and the same number of branches at each level.
function make_tree(   i, mean, low) {
    for (i = 1; i <= classes; i++) { mean += (until[i] - low) / total * (lower[i] + upper[i]) / 2; low = until[i] }
    directories = int(target / (mean + 2048) / width) + 1
    while (power(branches, depth) < directories) branches++
}

function power(base, n,   result) {
    for (result = 1; n > 0; n--) result *= base
    return result
}

function path(k,   text, i) {
    for (i = 0; i < depth; i++) { text = k % branches "/" text; k = int(k / branches) }
    return text
}

function header(name, size,   variable, sum, i) {
    size = octal(size)
    variable = name size
    sum = 2509 # of the fixed characters, with eight blanks for the sum itself
    for (i = length(variable); i > 0; i--) sum += code[substr(variable, i, 1)]
    print name, substr(nuls, 1, 100 - length(name)), "0000644\1", "0000000\1", "0000000\1", size, "\1", "00000000000\1",
        sprintf("%06o\1 ", sum), "0", nuls, "ustar\001", "00", nuls, nuls, substr(nuls, 1, 47) | extract
}

function content(id, size,   n) {
    for (n = 0; size >= 4096; n++) {
        print label(id, n), texts[(id * 37 + n) % 256] | extract
        size -= 4096
    }
    if (size == 0) return
    print substr(label(id, n) texts[(id * 37 + n) % 256], 1, size) | extract
    if (size % 512) print substr(filler, 1, 512 - size % 512) | extract
}

function create(size) {
    live[++top] = ++last
    alive++
    size_of[last] = size
    folder[last] = path(uniform(directories))
    header(folder[last] last, size)
    content(last, size)
    used += space(size)
    written += space(size)
}

function end_creating() {
    print nuls, nuls, nuls, nuls, nuls, nuls, nuls, nuls, nuls, nuls, substr(nuls, 1, 24) | extract
    if (close(extract) != 0) stop("files could not be written after " written " bytes, " int(used / target * 1000) / 10 " % of what was asked for")
}

# The place of a file of the youngest share, or of any.
function victim(   from, at) {
    from = uniform(1000) < often * 1000 ? int(top * (1 - share)) : 0
    do at = from + uniform(top - from) + 1; while (!live[at])
    return at
}

function remove(   at, id) {
    at = victim()
    id = live[at]
    print folder[id] id "\n" | discard
    used -= space(size_of[id])
    delete size_of[id]
    delete folder[id]
    live[at] = 0
    alive--
    if (top > 1.1 * alive) compact()
}

function compact(   i, n) {
    for (i = 1; i <= top; i++) if (live[i]) live[++n] = live[i]
    for (i = n + 1; i <= top; i++) delete live[i]
    top = n + 0
}

function fill_up(   size, n) {
    for (size = draw(); used + space(size) <= target; size = draw()) {
        create(size)
        n += space(size)
        if (n > 16777216) { end_creating(); n = 0 }
    }
    # The last ones are cut to what is missing.
    for (; target - used >= each + block; size = draw()) {
        if (used + space(size) > target) size = int((target - used - each) / block) * block
        create(size)
    }
    end_creating()
}

function churn_round(   size, n, i, sum, before) {
    while (sum < batch) { size[++n] = draw(); sum += space(size[n]) }
    for (before = alive; alive && used + sum > target;) remove()
    if (alive < before && close(discard) != 0) stop("files could not be deleted")
    for (i = 1; i <= n; i++) create(size[i])
    end_creating()
    if (system(flush) != 0) stop("the file system could not be flushed")
    rounds++
}

BEGIN {
    OFS = ORS = ""
    extract = "tr \"\\001\" \"\\000\" | tar -x -o -m -f -"
    discard = "xargs rm --"
    begin_with(seed)
    split(young, part, ":"); share = part[1]; often = part[2]
    split(tree, part, ":"); width = part[1]; depth = part[2]; branches = 1
    target = int(capacity * fill) - begun
    largest = int(capacity / 8)
    batch = int(capacity / 128)
    if (batch > 16777216) batch = 16777216
    for (i = 0; i < 10; i++) code[i ""] = 48 + i
    code["/"] = 47
    nuls = sprintf("%100s", ""); gsub(/ /, "\1", nuls)
    filler = sprintf("%512s", "")
    read_sizes()
    if (target < each + block) stop(begun " bytes are in use from the beginning")
    make_texts()
    make_tree()
    fill_up()
    before = written
    while (written - before < churn * capacity) churn_round()
    if (churn > 0) fill_up()
    print "files " alive "\nwritten " sprintf("%.0f", written) "\nage " sprintf("%.3f", written / capacity) "\nrounds " rounds + 0 "\nlargest " largest "\nplanned "
    fflush()
    for (i = 1; i <= top; i++) if (live[i]) print size_of[live[i]] " ./" folder[live[i]] live[i] "\n" | "sort | sha256sum"
    close("sort | sha256sum")
}'
made=$(awk -v capacity="$capacity" -v begun="$begun" -v fill="$fill" -v churn="$churn" -v seed="$seed" -v each="$each" \
    -v block="$block" -v record="$record" -v tail="$tail" -v more="$more" -v flush="$flush" -v sizes="$sizes" \
    -v young="$young" -v tree="$tree" "$program" </dev/null)
status=$?
[ $status -ne 1 ] || exit 1
usage
reached=$(awk -v used="$used" -v capacity="$capacity" 'BEGIN { printf "%.4f", used * 1024 / capacity }')
[ $status -eq 0 ] || fail "$reached of the file system is in use, $fill was asked for"
awk -v reached="$reached" -v fill="$fill" 'BEGIN { off = reached - fill; exit off > 0.02 || off < -0.02 }' ||
    fail "$reached of the file system is in use, $fill was asked for"
digest=$(find . -name lost+found -prune -o -type f -exec stat -c '%s %n' {} + | sort | sha256sum)
[ "$digest" = "${made##*planned }" ] || fail "the files are not those that were written: the digest of their names and sizes differs"
printf 'capacity %s\nfill %s\n%s\nseed %s\ndigest %s\n' "$capacity" "$reached" "${made%
planned *}" "$seed" "${digest%% *}"
