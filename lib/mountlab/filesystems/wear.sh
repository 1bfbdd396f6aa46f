# wear.sh DEVICE write TIMES   write the whole device so many times, in its order, 128 KiB at a time
# wear.sh DEVICE discard       discard all that it holds
# Both leave its first MiB: there it is marked as Mountlab's, and the guard before this script has just put the mark there.
# The data is the kernel's random numbers: a device that compresses, or that keeps equal blocks once, gains nothing by that.
device=$1 size=$(blockdev --getsize64 "$1") || exit
MARK=1048576 BLOCK=131072

# A dd without O_DIRECT leaves it out.
write() { # BLOCKS
    set -- if=/dev/urandom of="$device" bs="$BLOCK" seek=$((MARK / BLOCK)) count="$1" conv=notrunc,fsync
    dd "$@" iflag=fullblock oflag=direct || dd "$@"
}

case $2 in
write)
    all=$(((size - MARK) / BLOCK))
    left=$(awk -v all="$all" -v times="$3" 'BEGIN { printf "%.0f", all * times }')
    while [ "$left" -gt 0 ]; do
        [ "$left" -lt "$all" ] || { write "$all" || exit; }
        [ "$left" -ge "$all" ] || { write "$left" || exit; }
        left=$((left - all))
    done ;;
discard) # newer ones ask for -f where they see the mark
    blkdiscard -o "$MARK" "$device" || blkdiscard -f -o "$MARK" "$device" ;;
*) false ;;
esac
