# What `mountlab box helper` runs as root on a box, once: put, with `user`, `mount_root`, `scratch`, `tracing` and the functions that
# write the files in front of it (mountlab.box.helper). Can be run again; `remove` as its first word takes all away.
set -eu
umask 022
PATH=/usr/sbin:/usr/bin:/sbin:/bin
lib=/usr/local/lib/mountlab rule=/etc/sudoers.d/mountlab-helper

fail() {
    printf 'not installed: %s\n' "$1" >&2
    exit 1
}

[ "$(id -u)" = 0 ] || fail 'this has to run as root'

if [ "${1:-}" = remove ]; then
    rm -f -- "$rule"
    rm -rf -- "$lib" "$lib.new"
    echo 'the helper is removed'
    exit 0
fi

# --- is it safe here?

for program in sudo visudo timeout flock mount umount losetup blkid awk stat sha256sum; do
    command -v "$program" >/dev/null || fail "there is no $program"
done
# As root it removes what the user has filled; that of busybox can be led elsewhere meanwhile.
rm --version 2>/dev/null | grep -q 'GNU coreutils' || fail 'rm is not that of GNU coreutils'
[ -d /etc/sudoers.d ] || fail 'there is no directory /etc/sudoers.d'
uid=$(id -u -- "$user" 2>/dev/null) || fail "there is no user $user; make one: useradd --create-home --shell /bin/sh $user"
[ "$uid" != 0 ] || fail "$user is root, who needs no helper"
for group in $(id -Gn -- "$user"); do
    case $group in
    root | disk | kmem | shadow | sudo | wheel | admin | docker | lxd | incus | libvirt)
        fail "$user is in the group $group, who can become root without a helper" ;;
    esac
done

# Return whether only root can exchange $1 or what lies above it; what is not there yet does not count.
safe() {
    place=$1
    while :; do
        if [ -L "$place" ]; then fail "$place is a symbolic link"; fi
        if [ -e "$place" ]; then
            [ -d "$place" ] || fail "$place is not a directory"
            [ "$(stat -c %u "$place")" = 0 ] || fail "$place does not belong to root"
            case $(stat -c %a "$place"):$place in
            [1357]???:"$mount_root") fail "$place can be written by others" ;;
            [1357]???:*) ;;
            *[2367]?:* | *[2367]:*) fail "$place can be written by others than root (chmod go-w $place)" ;;
            esac
        fi
        [ "$place" != / ] || return 0
        place=${place%/*} place=${place:-/}
    done
}

safe "$lib"
safe "$mount_root"
safe /etc/sudoers.d

# --- the files, all of them or none

rm -rf -- "$lib.new"
[ -d "${lib%/*}" ] || mkdir -p -- "${lib%/*}"
mkdir -- "$lib.new"
(cd "$lib.new" && write_files)
{
    printf 'user %s\nmount_root %s\n' "$user" "$mount_root"
    [ -z "$tracing" ] || echo 'tracing yes'
    for device in $scratch; do printf 'scratch %s\n' "$device"; done
} >"$lib.new/helper.conf"
: >"$lib.new/lock"
chmod 644 "$lib.new"/*
chmod 755 "$lib.new" "$lib.new/helper"
chmod 600 "$lib.new/lock"
rm -rf -- "$lib"
mv -- "$lib.new" "$lib"
[ -d "$mount_root" ] || mkdir -p -- "$mount_root"
[ -n "$(ls -A "$mount_root")" ] || : >"$mount_root/.mountlab"
[ -f "$mount_root/.mountlab" ] || fail "$mount_root is not empty, and was not made by Mountlab"

# --- and the one line that lets the user run it (a name with a dot is passed over by sudo)

sudoers >"$rule.new"
chmod 440 "$rule.new"
visudo -c -q -f "$rule.new" || fail "sudo does not take the rule: see $rule.new"
mv -- "$rule.new" "$rule"
sudo -l -U "$user" | grep -q "$lib/helper" || fail "sudo does not read $rule: /etc/sudoers lacks @includedir /etc/sudoers.d"
echo "the helper is installed for $user: $lib/helper, $rule"
