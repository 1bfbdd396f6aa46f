# strict.sh mount -t TYPE [-o OPTIONS] SOURCE DIRECTORY
# Do this mount with one unknown option more, and print `accepts` or `refuses`. A file system that takes it
# (ramfs) takes every word, and what it does not show it has ignored. To be run where nothing is mounted yet: in a remount,
# or a second mount beside a first, some kernels do not look at the options at all.
for directory; do :; done
if "$@" -o mountlab_unknown_option >/dev/null 2>&1; then
    umount "$directory" || exit 1
    echo accepts
else
    echo refuses
fi
