# A tree of text files, the same on every box for one seed. Needs `leaps` of operations.sh.
# $tree: where; $files, $seed; $sizes, $rooms: quantiles of the sizes of files and of the number of files in a directory.

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

# Their number and their bytes.
count_files() { find "$1" -type f -exec stat -c %s {} + | awk '{ bytes += $1 } END { printf "%.0f %.0f\n", NR, bytes }'; }
