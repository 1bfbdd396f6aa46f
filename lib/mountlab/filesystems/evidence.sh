# Print what the kernel says of the file system that holds directory $1: sections headed '==> name <=='.
# Read by mountlab.evidence.
section() { printf '==> %s <==\n' "$1"; }
number() { stat -c %d "$1"; }

section st_dev
number "$1"
section mountinfo
cat /proc/self/mountinfo
section df
df -P -k "$1"
section loops
for loop in /sys/block/loop*/loop; do
    [ -r "$loop/backing_file" ] || continue
    read -r backing < "$loop/backing_file"
    device=${loop%/loop}
    printf '%s\t%s\t%s\t%s\n' "$(cat "$device/dev")" "$(cat "$loop/dio")" "$(number "$backing" 2>/dev/null)" "$backing"
done
for options in /proc/fs/ext4/*/options; do
    [ -r "$options" ] || continue
    section "$options"
    cat "$options"
done
exit 0
