# Put in front of leftovers.sh by the helper: it unmounts what the helper has mounted, RUN/mnt/NAME, and the bind of
# the mount root (ownership.sh). What the user has mounted by himself (FUSE) lies where he can exchange names, and so lead an
# umount of root's to anywhere.
mounted_by_helper() {
    case "$*" in "$mount_root" | "-l $mount_root") return ;; esac
    case ${1#"$mount_root"/} in
    */*/*/* | *[!A-Za-z0-9._/-]*) return 1 ;;
    */mnt/*) [ $# -eq 1 ] ;;
    *) return 1 ;;
    esac
}

umount() {
    if mounted_by_helper "$@"; then command umount "$@"; else
        echo 'not mounted by Mountlab: not touched' >&2
        return 1
    fi
}
