# Make the directories $2 (for the run) and $3 (for output) below the roots that hold them, which are ours alone.
# $1: open or close; $4: the owner, whose name holds the box (mountlab.lock).
refuse() { printf 'refused: %s\n' "$1" >&2; exit 1; }

open_one() {
    root=${1%/*}
    [ -L "$root" ] && refuse "$root is a symbolic link"
    if [ -e "$root" ]; then
        [ -O "$root" ] || refuse "$root belongs to somebody else"
        [ -f "$root/.mountlab" ] || [ -z "$(ls -A "$root")" ] || refuse "$root is not empty, and was not made by Mountlab"
    fi
    mkdir -p "$root" && : > "$root/.mountlab" && mkdir -p "$1"
}

claim() {
    if ! (set -C && printf '%s\n' "$2" > "$1/lock") 2>/dev/null; then
        [ "$(cat "$1/lock")" = "$2" ] || refuse "the box is in use by $(cat "$1/lock")"
    fi
}

give_back() { [ "$(cat "$1/lock" 2>/dev/null)" != "$2" ] || rm -f "$1/lock"; }

close_one() {
    root=${1%/*}
    awk -v below="$1/" 'index($5, below) == 1 { found = 1 } END { exit !found }' /proc/self/mountinfo \
        && refuse "something is still mounted below $1"
    [ -f "$root/.mountlab" ] || refuse "$root was not made by Mountlab"
    rm -rf --one-file-system "$1"
    [ "$(ls -A "$root")" != .mountlab ] || rm -r "$root"
}

umask 022
case $1 in
open) open_one "$2" && claim "${2%/*}" "$4" && mkdir -p "$2/img" && open_one "$3" ;;
close) give_back "${2%/*}" "$4" && close_one "$2" && close_one "$3" ;;
esac
