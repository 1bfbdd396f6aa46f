# Needs ownership.sh
# free_mount.sh umount|rmdir POINT [lazily]: what is left to do where `umount POINT` or `rmdir POINT` has failed, since a tool
# put something in its way: other mounts at or below it, loop devices or swap on its files, files below the mount. POINT is
# a mount point of a run of ours. Prints what it did. With `lazily` a mount that stays busy is taken out of the tree, and
# the kernel undoes it when nothing holds it any more.
point=$2 lazily=$3
export LC_ALL=C

for loop in /sys/block/loop*; do
    backing=$(backing_of "$loop")
    case $backing in
    "$point"/*)
        lies_on "$loop" "$backing" && left=$(detach_loop "/dev/${loop##*/}" "$backing") \
            && echo "a tool left /dev/${loop##*/} on $backing: ${left:-detached}" ;;
    esac
done
while read -r swap _; do
    case $swap in "$point"/*) swapoff "$swap" && echo "a tool left swap on $swap: switched off" ;; esac
done < /proc/swaps
mounts_below "$point" | while IFS= read -r where; do
    where=$(decode "$where")
    if said=$(umount "$where" 2>&1); then
        [ "$where" = "$point" ] || echo "a tool left something mounted on $where: unmounted"
    elif [ -n "$lazily" ] && umount -l "$where"; then
        echo "$where stayed busy ($said): unmounted lazily, so the kernel lets go of it when nothing holds it any more"
    fi
done
[ -z "$(mounts_below "$point")" ] || exit 1
[ "$1" = rmdir ] && [ -d "$point" ] || exit 0
rmdir "$point" 2>/dev/null && exit
# Directories of trials are the tool's. What has another name may be a user's: it stays, and rmdir names the directory.
for trial in "$point"/[txp][0-9]*; do
    if is_trial "${trial##*/}" && plain_directory "$trial" && remove_tree "$trial"; then
        echo "a tool left files in $trial, below the mount: removed"
    fi
done
rmdir "$point"
