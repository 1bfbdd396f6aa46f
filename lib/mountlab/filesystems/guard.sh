# Say whether block device $1 may be formatted: it must look blank, or hold only what Mountlab itself left there.
# Prints the real name of the device, and on standard error what was found. Exit 0: may be formatted; 1: must not.
# Reads only.
refuse() { printf 'refused: %s\n' "$1" >&2; exit 1; }
zeros() { cmp -s -n "$1" - /dev/zero; } # a read that ends early is not zeros

device=$(readlink -f "$1") || refuse "$1 does not exist"
[ -b "$device" ] || refuse "$1 ($device) is not a block device"
name=${device##*/}
number=$(cat "/sys/class/block/$name/dev") || refuse "the kernel does not list $name"
awk -v n="$number" -v d="$device" '$3 == n || $0 ~ (" - [^ ]+ " d " ") { found = 1 } END { exit !found }' \
    /proc/self/mountinfo && refuse "$device is mounted"
grep -q "^$device " /proc/swaps && refuse "$device is in use as swap"
for holder in "/sys/class/block/$name/holders/"*; do
    [ -e "$holder" ] && refuse "$device is held by ${holder##*/}"
done
for part in "/sys/class/block/$name/$name"*; do
    [ -e "$part/partition" ] && refuse "$device has a partition (${part##*/})"
done
image=$(cat "/sys/class/block/$name/loop/backing_file" 2>/dev/null)
for loop in /sys/block/loop*; do
    backing=$(cat "$loop/loop/backing_file" 2>/dev/null) || continue
    [ "$(readlink -f "$backing")" = "$device" ] && refuse "$device backs ${loop##*/}"
    [ "$backing" = "$image" ] && [ "${loop##*/}" != "$name" ] && refuse "${loop##*/} is on the same file as $device"
done
[ "$(cat "/sys/class/block/$name/ro")" = 0 ] || refuse "$device is read-only"
# Opened with O_EXCL, which sees mounts in other namespaces and members of a mounted btrfs. -n: nothing is written.
mke2fs -n -q -t ext4 "$device" </dev/null >/dev/null 2>&1 || refuse "$device is in use, or too small"

found=$(blkid -p -o export "$device")
status=$?
case $status in
0)
    type=$(blkid -p -o value -s TYPE "$device")
    label=$(blkid -p -o value -s LABEL "$device")
    [ "$type" = ext4 ] && [ "$label" = mountlab ] || refuse "$device holds data: $(printf '%s' "$found" | tr '\n' ' ')"
    echo "$device holds a file system that Mountlab made (label mountlab)" >&2 ;;
2)
    size=$(blockdev --getsize64 "$device") || refuse "the size of $device cannot be read"
    if [ "$size" -le 1073741824 ]; then
        head -c "$size" "$device" | zeros "$size" || refuse "$device has no known signature, but is not blank"
    else # its ends, 1024 places between them, and where ext4 keeps copies of its super block
        head -c 4194304 "$device" | zeros 4194304 || refuse "$device is not blank at its beginning"
        tail -c 4194304 "$device" | zeros 4194304 || refuse "$device is not blank at its end"
        step=$((size / 65536 / 1024))
        places=$(awk -v s="$step" 'BEGIN { for (i = 0; i < 1024; i++) print i * s; n = split("1 3 5 7 9 25 27 49", g, " ")
            for (i = 1; i <= n; i++) print g[i] * 2048 }')
        for place in $places; do
            [ $(((place + 1) * 65536)) -le "$size" ] || continue
            dd if="$device" bs=65536 count=1 skip="$place" 2>/dev/null | zeros 65536 \
                || refuse "$device has no known signature, but is not blank at $((place / 16)) MiB"
        done
    fi
    echo "$device looks blank" >&2 ;;
*) refuse "blkid could not read $device (exit status $status)" ;;
esac
echo "$device"
