# image.sh PATH BYTES full|sparse: make a file of this size for a loop device, where there was nothing before.
# Whatever is there already, a link that leads nowhere included, is refused and stays as it is.
refuse() { printf 'refused: %s\n' "$1" >&2; exit 1; }
path=$1 size=$2 blocks=$3 directory=${1%/*}

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
sparse) truncate -s "$size" -- "$path" ;;
full) fallocate -l "$size" -- "$path" ;;
*) false ;;
esac || { rm -f -- "$path"; echo "no image of $size bytes, $blocks, can be made at $path" >&2; exit 1; }
