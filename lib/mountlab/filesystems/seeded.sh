# shellcheck disable=SC2034 # for the scripts that need this one
# What scripts that make a state share: an empty directory on a mount of its own, its usage, and seeded numbers in awk.
LC_ALL=C
export LC_ALL
refuse() { printf 'refused: %s\n' "$1" >&2; exit 1; }
# enter_empty DIRECTORY PROGRAM ...: go there, if it is empty and no part of the root file system, and the programs are there.
# Sets dataset and pool where it is on ZFS.
enter_empty() {
    [ ! -L "$1" ] || refuse "$1 is a symbolic link"
    cd "$1" 2>/dev/null || refuse "$1 is not a directory that can be entered"
    directory=$(pwd -P)
    shift
    for program; do
        command -v "$program" >/dev/null || refuse "the box has no $program"
    done
    for entry in * .[!.]* ..?*; do
        if [ "$entry" != lost+found ] && { [ -e "$entry" ] || [ -L "$entry" ]; }; then refuse "$directory is not empty: $entry"; fi
    done
    here=$directory awk '{ gsub(/\\040/, " ", $5); if ($5 != "/" && ($5 == here || $5 == above)) found = 1 }
        BEGIN { here = above = ENVIRON["here"]; sub(/\/[^\/]*$/, "", above) }
        END { exit !found }' /proc/self/mountinfo || refuse "neither $directory nor the directory that holds it is a mount point"
    dataset='' pool=''
    [ "$(stat -f -c %t . 2>/dev/null)" != 2fc12fc1 ] || { dataset=$(df -P . | awk 'END { print $1 }') && pool=${dataset%%/*}; }
}
# Of ZFS only a commit of the pool shows what is in use; sync writes its log alone.
flush() { if [ -n "$pool" ]; then zpool sync "$pool"; else sync -f . 2>/dev/null || sync; fi; }
# Sets used and free, in KiB. A file system may count what was deleted as used until it is written back.
usage() {
    flush
    # shellcheck disable=SC2046 # to be split into words
    set -- $(df -P -k . | sed -n 's/^.* \([0-9][0-9]*\)  *\([0-9][0-9]*\)  *[0-9][0-9]*% .*$/\1 \2/p')
    used=${1:-0} free=${2:-0}
}

# All numbers are whole and below 2^53, so that every awk computes the same.
# shellcheck disable=SC2016 # the dollars are of awk
seeded='
function uniform(n) { state = state * 48271 % 2147483647; return int(state / 2147483647 * n) }
function begin_with(seed,   i) { state = seed % 2147483646 + 1; for (i = 0; i < 10; i++) uniform(1) }
function stop(text) { print "the state was not reached: " text "\n" > "/dev/stderr"; exit 3 }

# The first 16 bytes of a block of 4 KiB: no two blocks are alike.
function label(file, block) { return sprintf("%08x%08x", file, block) }

# 256 texts of 4080 bytes without NUL and \001: incompressible, and the same text comes again after 1 MiB at the earliest.
function make_texts(   i, j, k, u, part, text) {
    for (i = 0; i < 254; i++) byte[i] = sprintf("%c", i + 2)
    for (i = 0; i < 256; i++) {
        text = ""
        for (j = 0; j < 20; j++) {
            part = ""
            for (k = 0; k < 68; k++) {
                u = uniform(16387064) # the third power of 254
                part = part byte[u % 254] byte[int(u / 254) % 254] byte[int(u / 64516)]
            }
            text = text part
        }
        texts[i] = text
    }
}
'
