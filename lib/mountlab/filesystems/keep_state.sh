# keep_state.sh VERB DEVICE LIST ...
# Keep the blocks of a file system that are in use, put them back, and check them. Nothing may have it mounted.
#   keep DEVICE LIST TYPE [IMAGE]   write LIST, ranges `FIRST COUNT` of MiB that hold every block in use; copy them to IMAGE
#   restore DEVICE LIST IMAGE UUID  copy them back. UUID is that of the file system, for the guard to read
#   check DEVICE LIST EXPECTED      compare them with what `keep` printed
# keep and check print one checksum of all these ranges, in order (SHA-256).
refuse() { printf 'refused: %s\n' "$1" >&2; exit 1; }
MIB=1048576
NEAR=8 # MiB: a gap of free blocks that is copied along, since to begin a range takes a process

# Each file system's own word on what is free, or (btrfs, f2fs) in use: `free|used BEGIN END` in bytes, by place.
ranges() {
    case $1 in
    ext[234])
        LC_ALL=C dumpe2fs "$2" 2>/dev/null | awk '
            /^Block count:/ { blocks = $3 }
            /^Block size:/ { size = $3 }
            /^  Free blocks: / {
                sub(/^  Free blocks: /, "")
                many = split($0, part, ", ")
                for (i = 1; i <= many; i++) if (split(part[i], of, "-"))
                    printf "free %.0f %.0f\n", of[1] * size, ((2 in of ? of[2] : of[1]) + 1) * size
            }
            END { if (blocks) printf "end %.0f\n", blocks * size }' ;;
    xfs)
        xfs_db -r -c 'sb 0' -c 'print blocksize agblocks dblocks' -c 'freesp -d' "$2" 2>/dev/null | awk '
            $2 == "=" { is[$1] = $3; next }
            NF == 3 && $0 ~ /^[ 0-9]+$/ {
                from = ($1 * is["agblocks"] + $2) * is["blocksize"]
                printf "free %.0f %.0f\n", from, from + $3 * is["blocksize"]
            }
            END { if (is["dblocks"]) printf "end %.0f\n", is["dblocks"] * is["blocksize"] }' ;;
    btrfs) # whole chunks, and the places of the super block
        btrfs inspect-internal dump-tree -t dev "$2" 2>/dev/null | awk '
            match($0, /DEV_EXTENT [0-9]+\)/) { from = substr($0, RSTART + 11, RLENGTH - 12); next }
            from != "" && match($0, / length [0-9]+/) {
                printf "used %.0f %.0f\n", from, from + substr($0, RSTART + 8, RLENGTH - 8); from = ""; found = 1
            }
            END { if (found) print "used 0 1048576\nused 67108864 68157440\nused 274877906944 274878955520\nend 0" }' ;;
    f2fs) # all before the main area, and each segment of it that holds a block
        dump_f2fs "$2" | awk '
            $1 == "main_blkaddr" { main = $NF * 4096 }
            $1 == "segno:" && match($0, /vblocks: *[0-9]+/) {
                segment = $2 + 0; found = 1
                if (substr($0, RSTART + 8, RLENGTH - 8) + 0) printf "used %.0f %.0f\n", main + segment * 2097152, main + (segment + 1) * 2097152
            }
            END { if (main && found) printf "used 0 %.0f\nend 0\n", main }' ;;
    *) refuse "$1 is no file system whose used blocks are known" ;;
    esac
}

# dump.f2fs writes its table of segments as a file into its current directory.
dump_f2fs() {
    place=$(mktemp -d) || return
    (cd "$place" && dump.f2fs -d 1 "$1" 2>/dev/null | tr -d ']' && dump.f2fs -s 0~-1 "$1" >/dev/null 2>&1 && cat dump_sit)
    rm -rf -- "$place"
}

# Ranges of whole MiB that hold all that is used, and what lies between two that are close.
in_use() {
    awk -v mib="$MIB" -v near="$NEAR" -v device="$1" '
        function put(begin, end) {
            begin = int(begin / mib); end = int((end + mib - 1) / mib)
            if (end > last) end = last
            if (end <= begin) return
            if (some && begin <= to + near) { if (end > to) to = end; return }
            if (some) print from, to - from
            from = begin; to = end; some = 1
        }
        BEGIN { last = int((device + mib - 1) / mib) }
        $1 == "free" { if ($2 > at) put(at, $2); if ($3 > at) at = $3 }
        $1 == "used" { put($2, $3) }
        $1 == "end" { if ($2 > at) put(at, $2); ended = 1 }
        END { if (some) print from, to - from; exit !(ended && some) }'
}

# O_DIRECT reads and writes the medium, and leaves the page cache alone.
find_way() {
    direct=
    ! dd if="$device" of=/dev/null bs=4096 count=1 iflag=direct 2>/dev/null || direct=yes
}

# OpenSSL uses the processor's instructions for SHA-256, which coreutils often does not: a fifth of the time. A broken one is left out.
sha256() {
    case $(printf abc | openssl dgst -sha256 -r 2>/dev/null) in
    ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad*) openssl dgst -sha256 -r ;;
    *) sha256sum ;;
    esac | cut -c 1-64
}

checksum() {
    exec 3>&1
    broken=$({ while read -r first count; do
            dd if="$device" bs="$MIB" skip="$first" count="$count" ${direct:+iflag=direct} 2>/dev/null || echo "$first" >&2
        done <"$list" | sha256 >&3; } 2>&1)
    [ -z "$broken" ] || { printf '%s cannot be read at MiB %s\n' "$device" "$broken" >&2; return 1; }
}

copy() { # FROM TO
    while read -r first count; do
        said=$(dd if="$1" of="$2" bs="$MIB" skip="$first" seek="$first" count="$count" conv=notrunc,fsync \
            ${direct:+iflag=direct oflag=direct} 2>&1) \
            || { printf '%s cannot be copied to %s: %s\n' "$1" "$2" "$said" >&2; return 1; }
    done <"$list"
}

# In a directory of images, where what is not in its list is never removed (image.sh).
make_file() {
    if [ -L "${1%/*}" ] || [ ! -O "${1%/*}" ]; then refuse "${1%/*} is not a directory of ours"; fi
    if [ -e "$1" ] || [ -L "$1" ]; then refuse "$1 is there already"; fi
    [ ! -f "${1%/*}/.mountlab" ] || printf '%s\n' "${1##*/}" >>"${1%/*}/.mountlab" || refuse "$1 cannot be listed"
    (set -C && umask 077 && : >"$1") || refuse "$1 cannot be made"
}

# An unmounted file system may still be mounted in another namespace, and change.
check_unused() {
    command -v wipefs >/dev/null || return 0
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        said=$(wipefs -a -n -q -- "$device" 2>&1) && return
        sleep 0.5 2>/dev/null || sleep 1
    done
    echo "$device is still in use, so that its state cannot be kept: $said" >&2
    exit 1
}

verb=$1 device=$2 list=$3 image=
find_way
case $verb in
keep)
    check_unused
    make_file "$list"
    trap 'rm -f -- "$list" ${image:+"$image"}; exit 1' HUP INT TERM
    size=$(blockdev --getsize64 "$device") && ranges "$4" "$device" | sort -n -k 2,2 | in_use "$size" >"$list" \
        && { [ -z "${5:-}" ] || { make_file "$5" && image=$5 && truncate -s "$size" -- "$5" && copy "$device" "$5"; }; } \
        && checksum && exit
    [ -s "$list" ] || echo "which blocks of $device are in use cannot be read" >&2
    rm -f -- "$list" ${image:+"$image"}
    exit 1 ;;
restore) copy "$4" "$device" ;;
check)
    now=$(checksum) || exit
    echo "$now"
    [ "$now" = "$4" ] || { echo "the state was not restored: the checksum of its used blocks is $now, and was $4" >&2; exit 1; } ;;
*) refuse "$verb is nothing that keep_state.sh does" ;;
esac
