# Say whether physical memory from $1 (0x...), $2 bytes long, may be formatted: the kernel must have been booted with it
# left alone (memmap=), and show the whole of it as reserved or persistent. Reads only.
refuse() { printf 'refused: %s\n' "$1" >&2; exit 1; }
first=$(($1)) || refuse "$1 is not an address"
last=$((first + $2 - 1))
[ "$(id -u)" = 0 ] || refuse "only root sees the addresses in /proc/iomem"
while IFS= read -r line; do
    case $line in ' '*) continue ;; esac # a part of the range above
    name=${line#* : } begin=${line%%-*} end=${line#*-} && end=${end%% *}
    if [ $((0x$begin)) -gt $first ] || [ $((0x$end)) -lt $last ]; then continue; fi
    case $name in
    *[Rr]eserved* | *"Persistent Memory"*) echo "$1 lies in $begin-$end: $name" >&2; exit 0 ;;
    *) found=$name ;;
    esac
done </proc/iomem
refuse "$2 bytes from $1 are not memory that was set aside (/proc/iomem: ${found:-nothing}); boot with memmap=SIZE\$ADDRESS"
