# Say whether block device $1 may be formatted: it must be blank, or hold only what Mountlab itself left there.
# Prints what was found. Exit 0: may be formatted; 1: must not. Reads only.
refuse() { printf 'refused: %s\n' "$1"; exit 1; }

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
for backing in /sys/block/loop*/loop/backing_file; do
    [ -r "$backing" ] && [ "$(readlink -f "$(cat "$backing")")" = "$device" ] && refuse "$device backs a loop device"
done
[ "$(cat "/sys/class/block/$name/ro")" = 0 ] || refuse "$device is read-only"

found=$(blkid -p -o export "$device")
status=$?
case $status in
0)
    type=$(blkid -p -o value -s TYPE "$device")
    label=$(blkid -p -o value -s LABEL "$device")
    [ "$type" = ext4 ] && [ "$label" = mountlab ] || refuse "$device holds data: $(printf '%s' "$found" | tr '\n' ' ')"
    echo "$device holds a file system that Mountlab made (label mountlab)" ;;
2)
    size=$(blockdev --getsize64 "$device") || refuse "the size of $device cannot be read"
    for skip in 0 $((size / 1048576 - 1)); do
        bytes=$(dd if="$device" bs=1048576 count=1 skip="$skip" 2>/dev/null | tr -d '\000' | head -c 1 | wc -c)
        [ "$bytes" -eq 0 ] || refuse "$device has no known signature, but is not blank (MiB $skip is not all zeros)"
    done
    echo "$device is blank" ;;
*) refuse "blkid could not read $device (exit status $status)" ;;
esac
