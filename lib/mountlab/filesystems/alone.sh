# alone.sh OPTIONS mount -t TYPE [-o OPTIONS] SOURCE DIRECTORY
# Repeat the mount on DIRECTORY with each of OPTIONS (one on a line) alone, and print what
# the kernel shows then, in sections headed '==> option <=='; an option that is refused alone has none. At the end the
# plain mount is back.
options=$1
shift
for word; do source=${directory:-} directory=$word; done
umount "$directory" || exit 1
while read -r option; do
    "$@" -o "$option" >/dev/null 2>&1 </dev/null || continue
    printf '==> %s <==\n' "$option"
    awk -v directory="$directory" '$5 == directory { line = $0 } END { print line }' /proc/self/mountinfo
    cat "/proc/fs/ext4/${source##*/}/options" 2>/dev/null
    umount "$directory" || exit 1
done <<EOT
$options
EOT
# Something must be there to be unmounted, also where an option has left the file system unfit (overlay: volatile).
"$@" 2>/dev/null || mount -t tmpfs -o nosuid,nodev mountlab "$directory"
