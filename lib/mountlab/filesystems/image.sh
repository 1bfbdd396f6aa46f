# image.sh PATH BYTES full|sparse|written [KEPT]: make a file of this size for a loop device, where there was nothing before.
# `written`: all blocks are allocated, then written, with zeros or with what image KEPT holds, past the page cache where
# that can be. `sparse` with KEPT: a copy with its holes. No copy shares blocks with KEPT: a first write would part them.
# Whatever is there already, a link that leads nowhere included, is refused and stays as it is.
refuse() { printf 'refused: %s\n' "$1" >&2; exit 1; }
path=$1 size=$2 blocks=$3 kept=${4:-} directory=${1%/*}

# On the medium, and out of the page cache: no image begins warmer than another.
put_away() { dd if=/dev/null of="$path" conv=notrunc,fsync oflag=nocache count=0 2>/dev/null || sync; }

# Whole MiB past the page cache, where the file system below can; then the rest of them, and what is left of the size.
write_all() { # FROM
    set -- if="$1" of="$path" conv=notrunc,fsync
    whole=$((size / 1048576))
    dd "$@" bs=1048576 count="$whole" iflag=fullblock oflag=direct 2>/dev/null || dd "$@" bs=1048576 count="$whole" 2>/dev/null \
        || return
    [ $((whole * 1048576)) = "$size" ] \
        || dd "$@" bs=512 skip=$((whole * 2048)) seek=$((whole * 2048)) count=$(((size % 1048576 + 511) / 512)) 2>/dev/null \
        || return
    truncate -s "$size" -- "$path"
}

[ ! -L "$directory" ] || refuse "$directory is a symbolic link"
if [ ! -d "$directory" ] || [ ! -O "$directory" ]; then refuse "$directory is not a directory of ours"; fi
if [ -e "$path" ] || [ -L "$path" ]; then refuse "$path is there already, and Mountlab did not make it just now"; fi
# Written down before it is made: what is not in that list is never removed (ownership.sh). sed: as it was before.
list=$directory/.mountlab
[ ! -f "$list" ] || printf '%s\n' "${path##*/}" >>"$list" || refuse "$list cannot be written"
# noclobber: O_EXCL, so that nothing that appears in between is written over or followed.
(set -C && umask 077 && : >"$path") || { [ ! -f "$list" ] || sed -i '$d' "$list"; refuse "$path cannot be made"; }
trap 'rm -f -- "$path"; exit 1' HUP INT TERM
case $blocks in
sparse) if [ -n "$kept" ]; then cp --sparse=always --reflink=never -- "$kept" "$path" && put_away; else truncate -s "$size" -- "$path"; fi ;;
full) fallocate -l "$size" -- "$path" ;;
written) fallocate -l "$size" -- "$path" && write_all "${kept:-/dev/zero}" && put_away ;;
*) false ;;
esac || { rm -f -- "$path"; echo "no image of $size bytes, $blocks, can be made at $path" >&2; exit 1; }
