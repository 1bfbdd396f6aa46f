# Make the directories $2 (for the run) and $3 (for output) below the roots that hold them, which are ours alone.
# $1: open or close.
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
open) open_one "$2" && mkdir -p "$2/img" && open_one "$3" ;;
close) close_one "$2" && close_one "$3" ;;
esac
