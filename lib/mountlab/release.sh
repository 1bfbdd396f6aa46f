# release.sh umount|rmdir POINT [lazily]: what is left to do where `umount POINT` or `rmdir POINT` has failed, since a tool
# put something in its way: other mounts at or below it, loop devices or swap on its files, files below the mount. POINT is
# a mount point of a run of ours. Prints what it did. With `lazily` a mount that stays busy is taken out of the tree, and
# the kernel undoes it when nothing holds it any more.
point=$2 lazily=$3
export LC_ALL=C

decode() { case $1 in *\\*) printf '%b' "$(printf '%s' "$1" | sed 's/\\/\\0/g')" ;; *) printf '%s' "$1" ;; esac; }

# At or below the point, the last made first.
mounts() {
    sed '1!G;h;$!d' /proc/self/mountinfo | while read -r _ _ _ _ where _; do
        case $(decode "$where") in "$point" | "$point"/*) decode "$where" && echo ;; esac
    done
}

for loop in /sys/block/loop*; do
    backing=$(sed 's/ (deleted)$//' "$loop/loop/backing_file" 2>/dev/null)
    case $backing in
    "$point"/*) losetup -d "/dev/${loop##*/}" && echo "a tool left /dev/${loop##*/} on $backing: detached" ;;
    esac
done
while read -r swap _; do
    case $swap in "$point"/*) swapoff "$swap" && echo "a tool left swap on $swap: switched off" ;; esac
done < /proc/swaps
mounts | while IFS= read -r where; do
    if said=$(umount "$where" 2>&1); then
        [ "$where" = "$point" ] || echo "a tool left something mounted on $where: unmounted"
    elif [ -n "$lazily" ] && umount -l "$where"; then
        echo "$where stayed busy ($said): unmounted lazily, so the kernel lets go of it when nothing holds it any more"
    fi
done
[ -z "$(mounts)" ] || exit 1
[ "$1" = rmdir ] && [ -d "$point" ] || exit 0
rmdir "$point" 2>/dev/null && exit
# Directories of trials are the tool's. What has another name may be a user's: it stays, and rmdir names the directory.
for trial in "$point"/t[0-9]*; do
    case ${trial##*/t} in *[!0-9]*) continue ;; esac
    if [ ! -d "$trial" ] || [ -L "$trial" ]; then continue; fi
    rm -rf --one-file-system -- "$trial" 2>/dev/null || rm -rf -- "$trial"
    echo "a tool left files in $trial, below the mount: removed"
done
rmdir "$point"
