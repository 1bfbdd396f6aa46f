# What Mountlab's user may have done as root on this machine, and nothing else. Started by launch.sh, by way of sudo.
#   helper.sh RUN WORD...      RUN: the name of a run, '-' where there is none
# WORD... are the commands of Mountlab's plan, with the names of its scripts in the place of their text:
#   open.sh open|close OWNER            the run's directory below the mount root
#   make-dir DIRECTORY, rmdir DIRECTORY a directory in it that the user gets as his own
#   mkdir, rm, rmdir, image.sh, losetup, detach.sh, mount, umount, mke2fs, mkfs.xfs, mkfs.btrfs, mkfs.f2fs, evidence.sh, borrow.sh
#   guard.sh, timed.sh, strict.sh, alone.sh  in front of those that they may stand in front of
#   claim.sh, settle.sh, blockdev, drop_caches, dmesg, kernel_mark NUMBER, kill, clean, look, version
#   where root permits tracing: tracing.sh EVENT..., kallsyms.sh, record begin|end TRIAL...
# All paths are below the mount root of helper.conf, where only root can make a link; devices are loop devices on our
# images, zram devices of our runs, and those that helper.conf lists. The scripts are copies of our own beside this one.
lib=${0%/*}
# shellcheck source=lib/mountlab/box/helper/checks.sh
. "$lib/checks.sh"
# shellcheck source=lib/mountlab/box/helper/record.sh
. "$lib/record.sh"

refuse() {
    printf 'refused: %s\n' "$(printf %s "$1" | tr -c ' -~' '?' | cut -c 1-300)" >&2
    exit 1
}

# The caller's limit on files would otherwise hold for root, too, and cut off what is written down.
ulimit -f unlimited
umask 022

# --- what root has allowed

user='' mount_root='' scratch='' tracing=''
while read -r key value; do
    case $key in
    user) user=$value ;;
    mount_root) mount_root=$value ;;
    tracing) tracing=$value ;;
    scratch) scratch="$scratch$value
" ;;
    esac
done <"$lib/helper.conf" || refuse "there is no $lib/helper.conf"

permitted() {
    [ "$tracing" = yes ] || refuse "root has not permitted tracing: it shows what all users of this machine do"
}

version() {
    digest=$(cd "$lib" && cat -- helper *.sh | sha256sum)
    printf 'version %s\n' "${digest%% *}"
    cat "$lib/helper.conf"
}

# A component that somebody else could exchange would make all checks of names worthless.
check_root() {
    case $mount_root in /*) ;; *) refuse "helper.conf names no mount root" ;; esac
    places='' rest=${mount_root#/} place=
    while [ -n "$rest" ]; do
        place=$place/${rest%%/*}
        case $rest in */*) rest=${rest#*/} ;; *) rest= ;; esac
        [ ! -e "$place" ] && [ ! -L "$place" ] || places="$places $place"
    done
    # helper.conf has no blanks in paths
    # shellcheck disable=SC2086
    stat -c '%u %a %F:%n' / $places | while read -r owner mode what; do
        case $what in directory:*) ;; *) refuse "${what#*:}, at or above the mount root, is a ${what%%:*}" ;; esac
        [ "$owner" = 0 ] || refuse "${what#*:}, at or above the mount root, does not belong to root"
        case $mode:$what in
        *:"directory:$mount_root") ;;
        [1357]???:*) continue ;; # others can make names here, but not exchange ours
        esac
        case $mode in *[2367]? | *[2367]) refuse "${what#*:}, at or above the mount root, can be written by others" ;; esac
    done || exit 1
}

# --- whether something is ours

# A name of ours directly below mnt: a directory, or what is mounted on it.
mount_point() {
    case $1 in "$run_dir/mnt/"*) plain "${1#"$run_dir/mnt/"}" && [ -d "$1" ] && [ ! -L "$1" ] ;; *) return 1 ;; esac
}

image_file() { case $1 in "$run_dir/img/"*.img) plain "${1#"$run_dir/img/"}" ;; *) return 1 ;; esac; }

# A directory of the run that was given to the user.
own_directory() {
    case $1 in
    "$run_dir/img" | "$run_dir/mnt" | "$run_dir/borrowed"* | "$run_dir/elsewhere" | "$run_dir/lease" | "$run_dir/made"*) return 1 ;;
    "$run_dir/"*) plain "${1#"$run_dir/"}" ;;
    *) return 1 ;;
    esac
}

is_mounted() { awk -v point="$1" '$5 == point { found = 1 } END { exit !found }' /proc/self/mountinfo; }

listed() { case $1 in '' | *[!A-Za-z0-9/._:+@,=-]*) return 1 ;; esac && printf %s "$scratch" | grep -q -x -F -e "$1"; }

backing_of() { # the image behind a loop device, while it has its name
    backing=''
    number "${1#/dev/loop}" && { IFS= read -r backing <"/sys/block/${1#/dev/}/loop/backing_file"; } 2>/dev/null
}

# Sets `kind` to what the device is, in the place of its real name: image, zram or scratch. Sets `key` to what it is known
# by below: loop devices come and go.
own_device() {
    kind='' key=$1
    case $1 in *[!A-Za-z0-9/._-]*) return 1 ;; esac
    case $1 in
    /dev/loop*) if backing_of "$1" && image_file "$backing"; then kind=image key=$backing; fi ;;
    /dev/zram*)
        read -r boot </proc/sys/kernel/random/boot_id
        if number "${1#/dev/zram}" && awk -F '\t' -v b="$boot" -v n="${1#/dev/zram}" '
            $1 == b && $2 == "zram" && $3 == n { found = 1 } END { exit !found }' "$run_dir/borrowed" 2>/dev/null
        then kind=zram; fi
        ;;
    esac
    [ -z "$kind" ] || return 0
    while read -r stable; do
        if [ -n "$stable" ] && [ "$(readlink -f -- "$stable")" = "$1" ] && [ -b "$1" ]; then kind=scratch; fi
    done <<END
$scratch
END
    [ -n "$kind" ]
}

# What the helper has made on each device in this run: key, what, key of an external journal or '-'. Only as that it is
# mounted: among the data of one file system could be another, put together by the user at the place of its super block.
made_of() { # KEY WHAT: prints the journal
    awk -v k="$1" -v w="$2" '$1 == k && $2 == w { j = $3; found = 1 } END { print j; exit !found }' "$run_dir/made" 2>/dev/null
}

keep_made() { # KEY CONDITION: only the lines for which it holds
    [ -e "$run_dir/made" ] || return 0
    awk -v k="$1" "$2" "$run_dir/made" >"$run_dir/made.new" && mv "$run_dir/made.new" "$run_dir/made" || exit
}

# What was on a device, and what has its journal there.
forget_made() { keep_made "$1" '$1 != k && $3 != k'; }

# Check that a scratch device holds what Mountlab has made: older content is not mounted.
marked() {
    [ "$kind" != scratch ] || our_uuid "$(blkid -p -o value -s UUID -s LOGUUID "$1" 2>/dev/null | head -n 1)"
}

# --- commands: each check_... refuses or returns, and leaves the words as they may be run

check_made() { # by the mkfs whose words have been looked at
    own_device "$made_on" || refuse "$made_on is not a device of this run"
    ! grep -q "^$made_on " /proc/mounts || refuse "$made_on is mounted"
    [ "$kind" != scratch ] || [ "$guarded" = "$made_on" ] || refuse "$made_on is formatted below the guard only"
    made_key=$key with_key=-
    [ -n "$made_with" ] || return 0
    if ! own_device "$made_with" || ! marked "$made_with" || [ "$key" = "$made_key" ] \
        || grep -q "^$made_with " /proc/mounts; then
        refuse "$made_with is not a journal of this run"
    fi
    with_key=$key
    [ "$made_as" != ext ] || made_of "$key" jbd >/dev/null || refuse "$made_with was not made a journal by the helper"
}

make() { # the mkfs, with what stands in front of it
    forget_made "$made_key"
    # A journal is of one file system: what another one has left in it is not to be replayed.
    case $made_as:$with_key in
    xfs:/*) forget_made "$with_key" ;;
    *:/*) keep_made "$with_key" '$3 != k' ;;
    esac
    "$@" || exit
    echo "$made_key $made_as $with_key" >>"$run_dir/made"
    case $made_as:$with_key in xfs:/*) echo "$with_key log -" >>"$run_dir/made" ;; esac
}

check_evidence() {
    mount_point "$1" || refuse "$1 is not a mount point of this run"
    for device in "${2:-}" "${3:-}"; do
        [ -z "$device" ] || own_device "$device" || refuse "$device is not a device of this run"
    done
    [ $# -le 3 ] || refuse "evidence.sh takes three words"
}

check_borrow() { # VERB RUN_DIR WORD...
    [ "${2:-}" = "$run_dir" ] || refuse "${2:-} is not the directory of this run"
    case $1:$# in
    setting:4) check_setting "$3" && setting_value "$4" || refuse "$4 is not a value for $3" ;;
    hugepages:4) number "$3" && { [ -z "$4" ] || number "$4"; } || refuse "$3 bytes in pages of $4" ;;
    zram:4) number "$3" && { [ -z "$4" ] || choice "$4"; } || refuse "$3 bytes of zram by $4" ;;
    back:4)
        case $3:$4 in
        setting:huge:) ;;
        setting:huge:*) number "${4#huge:}" || refuse "$4 is no size of huge pages" ;;
        setting:*) check_setting "$4" ;;
        zram:/dev/zram*) own_device "$4" || refuse "$4 is not a device of this run" ;;
        *) refuse "$3 $4 is nothing that was borrowed" ;;
        esac
        ;;
    *) refuse "borrow.sh $1 needs root, or other words" ;;
    esac
}

check_setting() {
    setting_of "$1" || refuse "$1 is no setting that the helper knows"
    [ -z "$set_on" ] || own_device "$set_on" || refuse "$set_on is not a device of this run"
}

# mount -t TYPE [-o OPTIONS] SOURCE DIRECTORY, mount --bind [-o OPTIONS] DIRECTORY DIRECTORY. Sets type, options, source and
# point.
check_mount() {
    options=''
    case ${1:-}:${2:-} in
    --bind:*) type=bind && shift ;;
    -t:ext[234] | -t:xfs | -t:btrfs | -t:f2fs | -t:tmpfs | -t:ramfs | -t:hugetlbfs | -t:overlay) type=$2 && shift 2 ;;
    *) refuse "mount ${1:-} ${2:-}" ;;
    esac
    case $# in
    2) ;;
    4)
        { [ "$1" = -o ] && [ -n "$2" ]; } || refuse "mount with $1 $2"
        options=$2
        shift 2
        ;;
    *) refuse "mount with $# words after its type" ;;
    esac
    source=$1 point=$2
    mount_point "$point" || refuse "$point is not a mount point of this run"
    case $type in
    tmpfs | ramfs | hugetlbfs) source_of_memory ;;
    overlay) source_of_overlay ;;
    bind) source_of_bind ;;
    *) source_of_block ;;
    esac || refuse "$type of $source, with $options, is not mounted by the helper"
    [ -z "$options" ] || mount_options "$type" "$unnamed" || refuse "mount options of $type: $options"
}

# Each says whether the source may be mounted so, and sets `unnamed` to the options that are left to be looked at.
source_of_block() {
    unnamed=$options
    own_device "$source" && marked "$source" || return 1
    case $type in ext*) its_journal=$(made_of "$key" ext) ;; *) its_journal=$(made_of "$key" "$type") ;; esac || return 1
    case $type:$options in
    xfs:logdev=/dev/*)
        journal=${options%%,*}
        case $options in *,*) unnamed=${options#*,} ;; *) unnamed=rw ;; esac
        own_device "${journal#logdev=}" && marked "${journal#logdev=}" && [ "$key" = "$its_journal" ]
        ;;
    esac
}

# A file system without a size takes all the memory of the box; ramfs has no size.
source_of_memory() {
    unnamed=$options
    case $source in mountlab | shmfs) ;; *) return 1 ;; esac
    case $type:$options in ramfs:* | *:size=*) ;; *) return 1 ;; esac
}

source_of_bind() {
    unnamed=$options
    case $point in *.below) return 1 ;; esac
    own_directory "$source" && [ -d "$source" ] && [ ! -L "$source" ] && [ "$(stat -c %u "$source")" = "$uid" ]
}

# The layers lie where only root may write: behind them could otherwise be a link to anywhere.
source_of_overlay() {
    [ "$source" = mountlab ] || return 1
    below=$point.below
    layers="lowerdir=$below/lower,upperdir=$below/upper,workdir=$below/work"
    case $options in
    "$layers") unnamed=rw ;;
    "$layers,"*) unnamed=${options#"$layers,"} ;;
    *) return 1 ;;
    esac
    [ "$(stat -c '%u %a' "$below")" = '0 700' ] || return 1
    for layer in lower upper work; do { [ -d "$below/$layer" ] && [ ! -L "$below/$layer" ]; } || return 1; done
}

# The root of what was mounted goes to the user, but for what lies below an overlay.
hand_over() {
    case $point in
    *.below) chmod 700 "$point" ;;
    *) case ,$options, in *,ro,*) ;; *) [ "$type" = bind ] || chown -h "$uid:$gid" "$point" ;; esac ;;
    esac
}

# Nothing of what is mounted makes anybody root; and where an overlay will have its layers only root comes, from the
# first moment on.
safe_options() {
    options=${options:+$options,}nosuid,nodev
    case $type:$point in tmpfs:*.below | ramfs:*.below | hugetlbfs:*.below) options=$options,mode=0700 ;; esac
}

do_mount() { # [sh timed.sh]
    is_mounted "$point" && refuse "something is mounted on $point already"
    safe_options
    case $type in bind) set -- "$@" mount -i --bind ;; *) set -- "$@" mount -i -t "$type" ;; esac
    "$@" -o "$options" "$source" "$point" || exit
    hand_over && return
    umount -- "$point"
    refuse "$point could not be given to $user"
}

do_strict() {
    is_mounted "$point" && refuse "something is mounted on $point already"
    safe_options
    exec sh "$lib/strict.sh" mount -i -t "$type" -o "$options" "$source" "$point"
}

do_alone() { # OPTIONS, one on a line: each is mounted in turn
    each=$(printf %s "$1" | tr '\n' ,)
    mount_options "$type" "$each" || refuse "mount options of $type: $each"
    is_mounted "$point" || refuse "nothing is mounted on $point"
    safe_options
    sh "$lib/alone.sh" "$1" mount -i -t "$type" -o "$options" "$source" "$point" || exit
    hand_over
}

# An image may not fill the file system that root and others need, too.
check_image() { # PATH BYTES full|sparse
    { [ $# -eq 3 ] && image_file "$1" && number "$2"; } || refuse "$1 is not an image of this run"
    case $3 in full | sparse) ;; *) refuse "an image that is $3" ;; esac
    free=$(df -P -k "$mount_root" | awk 'END { printf "%.0f", $4 * 1024 * 0.95 }')
    [ "$2" -le "$free" ] || refuse "$2 bytes are more than 95 % of what is free below $mount_root ($free bytes)"
}

below_of() { # whether $1 is the mount point below an overlay, and the others its three layers
    mount_point "${1%/lower}" && [ "$1" = "${1%/lower}/lower" ] && [ "$2" = "${1%/lower}/upper" ] \
        && [ "$3" = "${1%/lower}/work" ] && case $1 in *.below/lower) ;; *) return 1 ;; esac
}

roots_script() { sh -c "$(cat "$lib/ownership.sh" "$lib/open.sh")" open.sh "$@"; }

open_run() {
    { [ $# -eq 2 ] && an_owner "$2"; } || refuse "open.sh takes a verb and an owner"
    case $1 in
    open)
        [ -d "${mount_root%/*}" ] || mkdir -p -- "${mount_root%/*}" || exit
        check_root
        roots_script open "$run_dir" "$run_dir" "$2" || exit
        mkdir -p "$run_dir/mnt" && chmod 700 "$run_dir/img"
        ;;
    close) roots_script close "$run_dir" "$run_dir" "$2" ;;
    *) refuse "open.sh $1" ;;
    esac
}

of_device() { cat "$lib/device.sh" "$lib/claim_record.sh" "$lib/$1"; }

settle() { # DEVICE EXPECTED
    listed "$1" || refuse "$1 is not among the scratch devices of helper.conf"
    an_identity "$2" || refuse "$2 is no identity"
    exec sh -c "$(of_device settle.sh)" settle.sh "$@"
}

# What stands in front of a command: the guard of a scratch device, the clock, questions to the kernel.
prefixed() {
    guarded='' timed=''
    case $1 in
    guard.sh)
        [ $# -ge 4 ] && listed "$2" || refuse "${2:-nothing} is not among the scratch devices of helper.conf"
        case $3 in '' | -) ;; *) refuse "$3 permits nothing" ;; esac
        an_identity "$4" || refuse "$4 is no identity"
        device=$2 cut_off=$3 identity=$4
        guarded=$(readlink -f -- "$2")
        shift 4
        [ $# -gt 0 ] || exec sh -c "$(of_device guard.sh)" guard.sh "$device" "$cut_off" "$identity"
        ;;
    strict.sh | alone.sh)
        question=$1 asked=''
        [ "$1" = strict.sh ] || { asked=${2:-} && shift; }
        [ "${2:-}" = mount ] || refuse "$question asks about a mount only"
        shift 2
        check_mount "$@"
        [ "$type" != bind ] || refuse "nothing is asked about a bind mount"
        case $question in strict.sh) do_strict ;; *) do_alone "$asked" ;; esac
        return
        ;;
    esac
    [ "${1:-}" != timed.sh ] || { timed=yes && shift; }
    command_of "$@"
}

command_of() {
    verb=${1:-}
    [ $# -eq 0 ] || shift
    case $verb in
    mount)
        [ -z "$guarded" ] || refuse "the guard stands in front of mkfs only"
        check_mount "$@"
        if [ -n "$timed" ]; then do_mount sh "$lib/timed.sh"; else do_mount; fi
        return
        ;;
    mke2fs) mke2fs_words "$@" || refuse "the words for mke2fs: $*" ;;
    mkfs.xfs) xfs_words "$@" || refuse "the words for mkfs.xfs: $*" ;;
    mkfs.btrfs) btrfs_words "$@" || refuse "the words for mkfs.btrfs: $*" ;;
    mkfs.f2fs) f2fs_words "$@" || refuse "the words for mkfs.f2fs: $*" ;;
    *) refuse "the helper does not know ${verb:-the empty command}" ;;
    esac
    check_made
    set -- "$verb" "$@"
    [ -z "$timed" ] || set -- sh "$lib/timed.sh" "$@"
    [ -z "$guarded" ] || set -- sh -c "$(of_device guard.sh)" guard.sh "$device" "$cut_off" "$identity" "$@"
    make "$@"
}

plain_command() {
    verb=$1
    shift
    case $verb:$# in
    open.sh:*) open_run "$@" ;;
    make-dir:1)
        own_directory "$1" || refuse "$1 is not a directory of this run"
        # It is there where something of the user's kept it, when it was to be removed.
        [ ! -d "$1" ] || [ -L "$1" ] || [ "$(stat -c %u "$1")" != "$uid" ] || exit 0
        mkdir -m 700 -- "$1" && exec chown -h "$uid:$gid" "$1"
        ;;
    mkdir:2)
        case $1:$2 in "-p:$run_dir/mnt/"*) plain "${2#"$run_dir/mnt/"}" ;; *) false ;; esac || refuse "mkdir $*"
        [ -d "$2" ] || exec mkdir -- "$2"
        ;;
    mkdir:3)
        below_of "$@" && [ "$(stat -c '%u %a' "${1%/lower}")" = '0 700' ] || refuse "mkdir $*"
        exec mkdir -- "$@"
        ;;
    rmdir:1)
        own_directory "$1" || mount_point "$1" || refuse "rmdir $1"
        exec rmdir -- "$1"
        ;;
    rm:2)
        [ "$1" = -f ] && image_file "$2" || refuse "rm $*"
        forget_made "$2"
        exec rm -f -- "$2"
        ;;
    rm:5)
        [ "$1 $2" = '-rf --one-file-system' ] || refuse "rm $*"
        shift 2
        below_of "$@" && [ "$(stat -c '%u %a' "${1%/lower}")" = '0 700' ] || refuse "rm $*"
        exec rm -rf --one-file-system -- "$@"
        ;;
    image.sh:*) check_image "$@" && exec sh "$lib/image.sh" "$@" ;;
    losetup:4)
        case "$1 $2 $3" in '--find --show --direct-io=on' | '--find --show --direct-io=off') ;; *) refuse "losetup $*" ;; esac
        { image_file "$4" && [ -f "$4" ] && [ ! -L "$4" ]; } || refuse "$4 is not an image of this run"
        # Two devices on one image: what is written to one would be the file system on the other.
        ! grep -q -x -F -e "$4" /sys/block/loop*/loop/backing_file 2>/dev/null || refuse "$4 has a loop device already"
        exec losetup "$@"
        ;;
    detach.sh:2)
        { number "${1#/dev/loop}" && image_file "$2"; } || refuse "detach.sh $*"
        exec sh -c "$(cat "$lib/ownership.sh" "$lib/detach.sh")" detach.sh "$@"
        ;;
    umount:1)
        mount_point "$1" || refuse "$1 is not a mount point of this run"
        exec umount -- "$1"
        ;;
    evidence.sh:*) check_evidence "$@" && exec sh "$lib/evidence.sh" "$@" ;;
    settle.sh:2) settle "$@" ;;
    borrow.sh:*) check_borrow "$@" && exec sh "$lib/borrow.sh" "$@" ;;
    record:*)
        case $1:$# in
        begin:[1-9]*) shift && begin_record "$@" ;;
        end:3) end_record "$2" "$3" ;;
        *) refuse "record $*" ;;
        esac
        ;;
    kill:0)
        [ -d "$run_dir" ] || exit 0
        exec sh "$lib/leftovers.sh" kill '' "$run" '' '' ''
        ;;
    *) prefixed "$verb" "$@" ;;
    esac
}

# Without a run.
common_command() {
    verb=$1
    shift
    case $verb:$# in
    version:0) version ;;
    drop_caches:0) echo 3 >/proc/sys/vm/drop_caches && echo $$ ;;
    dmesg:0) exec dmesg -r ;;
    tracing.sh:*) trace_kernel "$@" ;;
    kallsyms.sh:0) permitted && exec sh "$lib/kallsyms.sh" ;;
    kernel_mark:1) # by which the log tells what came before and after it
        number "$1" || refuse "kernel_mark $1"
        echo "<7>mountlab: trial failed ($1)" >/dev/kmsg
        ;;
    look:0)
        check_root
        roots_script look "$mount_root" "$mount_root"
        ;;
    clean:1 | clean:2)
        case $1 in list | clean) ;; *) refuse "clean $1" ;; esac
        [ $# -eq 1 ] || an_owner "$2" || refuse "clean of $2"
        check_root
        exec sh -c "$(cat "$lib/umount.sh" "$lib/ownership.sh" "$lib/leftovers.sh")" mountlab-clean \
            "$1" "$uid" '' "$mount_root" '' "$(cat "$lib/borrow.sh")" "${2:-}"
        ;;
    blockdev:2)
        { [ "$1" = --getsize64 ] && listed "$2"; } || refuse "blockdev $*"
        exec blockdev --getsize64 "$2"
        ;;
    guard.sh:3) prefixed guard.sh "$@" ;;
    settle.sh:2) settle "$@" ;;
    claim.sh:3)
        listed "$1" || refuse "$1 is not among the scratch devices of helper.conf"
        an_id "$2" && number "$3" || refuse "$2 $3 is no id and time"
        exec sh -c "$(of_device claim.sh)" claim.sh "$@"
        ;;
    *) refuse "the helper does not know ${verb:-the empty command} without a run" ;;
    esac
}

[ $# -ge 2 ] || refuse "helper SECONDS RUN WORD..."
[ $# -le 120 ] || refuse "so many words"
run=$1
shift
uid=$(id -u -- "$user") && gid=$(id -g -- "$user") || refuse "helper.conf names a user who is not there: $user"
[ "$uid" != 0 ] || refuse "root needs no helper"
if [ "$run" = - ]; then
    common_command "$@"
    exit
fi
{ plain "$run" && [ "$run" != lock ]; } || refuse "$run is no name of a run"
check_root
run_dir=$mount_root/$run
# By it a crash's processes are found and ended.
export MOUNTLAB_RUN="$run"
if [ "$1" != kill ]; then
    exec 7<"$lib/lock"
    flock -w 120 7 || refuse "another command of the helper has been going on for two minutes"
fi
plain_command "$@"
