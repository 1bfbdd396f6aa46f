# Needs seeded.sh
# state_evidence.sh mounted DIRECTORY SEED [SAMPLE]
# state_evidence.sh unmounted TYPE DEVICE
# Print what shows the state of a file system, in sections headed '==> name <==' (mountlab.filesystems.state_evidence).
#   mounted    use of space, number of files, and how many files of a seeded sample (1000) have how many extents
#   unmounted  the pieces of free space. While it is mounted, the device need not hold what the file system knows.
# Only reads. A section whose program the box lacks is left out. Ends with 1 for a refusal.
section() { printf '==> %s <==\n' "$1"; }
has() { command -v "$1" >/dev/null; }

case $1 in
mounted)
    seed=$3 sample=${4:-1000}
    cd "$2" 2>/dev/null || refuse "$2 is not a directory that can be entered"
    section df
    df -P -k . | tail -n 1
    section files
    find . -xdev -type f | wc -l
    if has filefrag; then
        section extents
        # An empty file has none.
        find . -xdev -type f -size +0 | sort | awk -v seed="$seed" -v sample="$sample" "$seeded"'
            BEGIN { begin_with(seed) }
            { at = NR <= sample ? NR : uniform(NR) + 1; if (at <= sample) name[at] = $0 }
            END { for (i = 1; i <= NR && i <= sample; i++) print name[i] }' | tr '\n' '\0' | xargs -0 filefrag -- 2>/dev/null |
            sed -n 's/^.*: \([0-9][0-9]*\) extents\{0,1\} found.*$/\1/p' | sort -n | uniq -c
    fi
    if [ "$(stat -f -c %t .)" = 9123683e ] && has btrfs; then
        section btrfs-usage
        btrfs filesystem usage -b . 2>/dev/null
    fi
    ;;
unmounted)
    [ -e "$3" ] || refuse "$3 is not there"
    device=$(readlink -f "$3")
    if [ -b "$device" ] && awk -v device="$device" '$1 == device { mounted = 1 } END { exit !mounted }' /proc/self/mounts; then
        refuse "$3 is mounted"
    fi
    case $2 in
    ext2 | ext3 | ext4)
        has e2freefrag || exit 0
        section e2freefrag
        e2freefrag "$device"
        ;;
    xfs)
        has xfs_db || exit 0
        section xfs-blocksize
        xfs_db -r -c 'sb 0' -c 'print blocksize' "$device"
        section xfs-freesp
        xfs_db -r -c 'freesp -s' "$device"
        ;;
    btrfs)
        has btrfs || exit 0
        section btrfs-chunks
        btrfs inspect-internal dump-tree -t chunk "$device" | awk '/CHUNK_ITEM/ || $1 == "length" { print }'
        section btrfs-free-space
        btrfs inspect-internal dump-tree -t 10 "$device" | awk '/FREE_SPACE_INFO/ || /extent count/ { print }'
        ;;
    f2fs)
        has dump.f2fs || exit 0
        section f2fs-free
        place=$(mktemp -d) || exit 0
        # A table of segments: a line for each, and the bits of its 512 blocks where it is not free, first block first.
        (cd "$place" && dump.f2fs -s 0~-1 "$device" >/dev/null && awk '
            BEGIN { split("0 1 2 3 4 5 6 7 8 9 a b c d e f", digit, " "); for (i in digit) value[digit[i]] = i - 1 }
            function put(used) { if (used) open = 0; else { blocks++; if (!open) extents++; open = 1 } }
            function whole() { if (waiting) { blocks += 512; if (!open) extents++; open = 1 } waiting = 0 }
            $1 == "segno:" { whole(); waiting = ($0 ~ /vblocks: +0[^0-9]/); next }
            NF == 16 && $1 ~ /^[0-9a-f][0-9a-f]$/ {
                for (i = 1; i <= 16; i++) for (half = 1; half <= 2; half++) {
                    four = value[substr($i, half, 1)]
                    for (bit = 8; bit >= 1; bit /= 2) { put(four >= bit); if (four >= bit) four -= bit }
                }
            }
            END { whole(); print blocks + 0, extents + 0 }' dump_sit)
        rm -rf -- "$place"
        ;;
    esac 2>/dev/null
    ;;
*) refuse "mounted or unmounted is needed, not $1" ;;
esac
exit 0
