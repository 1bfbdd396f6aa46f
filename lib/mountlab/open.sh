# Make the directories $2 (for the run) and $3 (for output) below the roots that hold them, which are ours alone.
# $1: open or close; $4: the owner, whose name holds the box (mountlab.lock).
refuse() { printf 'refused: %s\n' "$1" >&2; exit 1; }

# Looked at for both before anything is made.
check_root() {
    [ ! -L "$1" ] || refuse "$1 is a symbolic link"
    [ -e "$1" ] || return 0
    [ -d "$1" ] || refuse "$1 is not a directory"
    [ -O "$1" ] || refuse "$1 belongs to somebody else"
    [ ! -L "$1/.mountlab" ] || refuse "$1/.mountlab is a symbolic link"
    [ -f "$1/.mountlab" ] || [ -z "$(ls -A "$1")" ] || refuse "$1 is not empty, and was not made by Mountlab"
}

make_root() { mkdir -p "$1" && { [ -e "$1/.mountlab" ] || : > "$1/.mountlab"; }; }

claim() {
    if ! (set -C && printf '%s\n' "$2" > "$1/lock") 2>/dev/null; then
        [ "$(cat "$1/lock")" = "$2" ] || refuse "the box is in use by $(cat "$1/lock")"
    fi
}

# What watches over the lease goes with the run, and what it waits in: by its environment, since numbers of processes are
# used again, and there may have been no room to write its own down.
end_lease() {
    for each in $(grep -lszxF -- "MOUNTLAB_LEASE=${1##*/}" /proc/[0-9]*/environ 2>/dev/null); do
        each=${each#/proc/}
        kill "${each%/environ}" 2>/dev/null
    done
}

give_back() { [ "$(cat "$1/lock" 2>/dev/null)" != "$2" ] || rm -f "$1/lock"; }

# Can be done again, and by a second run at the same time.
close_one() {
    root=${1%/*}
    [ -e "$root" ] || return 0
    awk -v below="$1/" 'index($5, below) == 1 { found = 1 } END { exit !found }' /proc/self/mountinfo \
        && refuse "something is still mounted below $1"
    [ -f "$root/.mountlab" ] || refuse "$root was not made by Mountlab"
    rm -rf --one-file-system "$1" || refuse "$1 cannot be removed"
    if [ "$(ls -A "$root")" = .mountlab ]; then
        rm -f "$root/.mountlab"
        rmdir "$root" 2>/dev/null || : > "$root/.mountlab"
    fi
}

umask 022
case $1 in
open)
    check_root "${2%/*}" && check_root "${3%/*}" && make_root "${2%/*}" && claim "${2%/*}" "$4" \
        && mkdir -p "$2/img" && make_root "${3%/*}" && mkdir -p "$3" ;;
close)
    end_lease "$3"
    give_back "${2%/*}" "$4"
    (close_one "$2")
    first=$?
    close_one "$3" || exit
    # A lock that a power cut brings back would keep the next run out.
    place=${2%/*}
    [ -e "$place" ] || place=${place%/*}
    sync -f "$place" 2>/dev/null || sync
    exit "$first" ;;
esac
