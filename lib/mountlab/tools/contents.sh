# Files of bytes that are the same on every box for one seed, and that no block of a file system compresses.
# $directory: the trial's own.

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

# 256 KiB of the upper bytes of a linear congruential generator, from seed $1: small enough for awk.
make_pool() {
    LC_ALL=C awk -v x="$1" 'BEGIN {
        for (i = 0; i < 256; i++) {
            line = ""
            for (j = 0; j < 1024; j++) {
                x = (x * 69069 + 12345) % 4294967296
                line = line sprintf("\\0%03o", int(x / 16777216))
            }
            print line
        }
    }' | while read -r line; do printf '%b' "$line"; done > "$directory/pool" || fail "no seeded bytes could be made"
}

# Print $1 bytes: the pool again and again, each time from another offset, so that no two blocks are alike. $2: the
# number of the first offset.
stretch() {
    from=$2
    while tail -c +$((from * 4099 % 131072 + 1)) "$directory/pool" 2>/dev/null; do from=$((from + 1)); done | head -c "$1"
}

# Write the files $3... of directory $1, each of $2 bytes, from standard input.
write_files() {
    within=$1 bytes=$2
    shift 2
    for name; do
        said=$(dd of="$within/$name" bs="$bytes" count=1 iflag=fullblock conv=notrunc 2>&1) || fail "$said"
    done
}

# Fill directory $1 with $2 bytes in files of $3. Their time is long past, so that each later change shows. (split, which
# BusyBox may lack, takes one process for all.)
lay_out() {
    if command -v split > /dev/null; then stretch "$2" 1 | split -b "$3" -a 5 - "$1/f"
    else
        # shellcheck disable=SC2046 # numbers
        stretch "$2" 1 | write_files "$1" "$3" $(awk -v n="$(($2 / $3))" 'BEGIN { while (i < n) printf "f%06d ", i++ }')
    fi || fail "the files could not be laid out"
    find "$1" -name 'f*' -exec touch -t 200001010000 {} + || fail "the files could not be laid out"
}

# The names of the $3 files of directory $1 that round $2 changes. They lie apart; rounds go through all of them in turn.
chosen() {
    (cd "$1" && printf '%s\n' f*) | awk -v round="$2" -v n="$3" '
        function divisor(a, b) { return b ? divisor(b, a % b) : a }
        { name[NR - 1] = $0 }
        END {
            step = int(NR * 0.618)
            while (divisor(step, NR) != 1) step++
            for (i = 0; i < n; i++) print name[(round * n + i) * step % NR]
        }'
}

# Overwrite the files that round $2 chooses with other bytes of their size, $4.
change() {
    # shellcheck disable=SC2046 # names without blanks
    stretch "$(($3 * $4))" "$(($2 * 1009))" | write_files "$1" "$4" $(chosen "$1" "$2" "$3") || exit 1
}

# Number and bytes of the files in directory $1.
amount() {
    find "$1" -name 'f*' -type f -exec stat -c %s {} + | awk '{ n++; bytes += $1 } END { printf "%d %.0f", n, bytes }'
}

checksum() { cat "$@" | md5sum | cut -c 1-32; }

# Bytes in use of the whole file system.
used() {
    stat -f -c '%b %f %S' "$directory" | {
        read -r blocks free size
        echo $(((blocks - free) * size))
    }
}

flush() { sync -f "$directory" 2>/dev/null || sync; }
