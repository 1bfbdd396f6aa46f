# Needs stamps.sh
# DIRECTORY CACHE OPERATIONS: the first arguments of tree.sh and large_directory.sh, which time operations by the box's clock.
#   DIRECTORY   of the trial, on the file system under test
#   CACHE       cold: the kernel's caches are dropped before each operation; as_is: they are left alone
#   OPERATIONS  those that are measured, with commas between
# These scripts set `programs`: what the operations run, which is loaded again after the caches were dropped.
directory=$1 cache=$2 measured=$3
shift 3
LC_ALL=C
export LC_ALL

fail() {
    printf '%s\n' "$1" >&2
    exit 1
}

is_measured() { case ,$measured, in *",$1,"*) ;; *) return 1 ;; esac }

# The file system under test alone, where the box's sync can do that.
if sync -f "$directory" 2>/dev/null; then flush() { sync -f "$directory"; }; else flush() { sync; }; fi

drop_caches() {
    if [ -n "$MOUNTLAB_HELPER" ]; then $MOUNTLAB_HELPER 60 - drop_caches >/dev/null; else echo 3 >/proc/sys/vm/drop_caches; fi
} 2>/dev/null

settle() {
    flush || fail 'what was written before could not be flushed'
    [ "$cache" = cold ] || return 0
    drop_caches || fail 'the caches of the kernel cannot be dropped without root or the helper of the box: write cache: as_is'
    for program in $programs; do "$program" --version; done >/dev/null 2>&1 </dev/null
}

# operation FUNCTION: settle, and set `stamps` around the function, which may set `counts`.
operation() {
    settle
    stamped "$1"
}

# Run a function that may complain of every file: the last complaints that give a reason are enough.
briefly() {
    said=$("$@" 2>&1) && return
    printf '%s\n' "$said" | awk '!/^xargs: |^tar: (Exiting|Error is not)/' | tail -n 3 >&2
    return 1
}

# report NAME COUNTS: the line of a measured operation.
report() { ! is_measured "$1" || printf '%s %s : %s\n' "$1" "$2" "$stamps"; }

# For awk: place(i, n) is where the i-th of n lies in an order that leaps about, another one with each seed.
# shellcheck disable=SC2016,SC2034 # for awk, in the scripts that need this
leaps='
function gcd(a, b,   c) { while (b) { c = a % b; a = b; b = c }; return a }
function place(i, n) {
    if (n != of) for (stride = int(n * 0.618); stride == 0 || gcd(stride, n) != 1; stride++);
    of = n
    return (seed + i * stride) % n
}'
