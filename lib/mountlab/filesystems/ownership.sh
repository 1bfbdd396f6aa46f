# Needs subvolumes.sh
# Functions that know what Mountlab makes in directories of its own, and that remove this and nothing else.
# Each such directory holds a file .mountlab, written before anything else in it:
#   a root               `made`, or `found` where the directory was there before; then `bound` (root_bind)
#   a run's directory    `run NAME`
#   one for images       `images`, then the name of each image, written before the image is made (image.sh)
#   one that is measured `made`, or `kept` where it could not be removed; then images
# An empty file .mountlab is of an older version, or the power was cut: then names decide, as they did there.
# What none of this covers is somebody else's. It is never removed, and neither a link nor a mount is followed.
# A script that walks through a directory sets act to look or remove, and has functions that the walk calls:
#   foreign PATH   something that Mountlab did not make
#   stuck WHY      something of ours that cannot be removed; it sets blocked, by which walk_own marks what stays
#   a_run PATH     the directory of a run, of walk_root only

there() { [ -e "$1" ] || [ -L "$1" ]; }
plain_file() { [ -f "$1" ] && [ ! -L "$1" ]; }
plain_directory() { [ -d "$1" ] && [ ! -L "$1" ]; }
marked_directory() { plain_directory "$1" && plain_file "$1/.mountlab"; }

# Sets head to the first line of a directory's .mountlab.
read_head() {
    head=
    ! plain_file "$1/.mountlab" || { IFS= read -r head < "$1/.mountlab"; } 2>/dev/null || :
}

# Mount points at or below $1 as mountinfo writes them, the last made first.
mounts_below() {
    MOUNTLAB_BELOW=$1 awk '{ p = $5; gsub(/\\040/, " ", p); gsub(/\\011/, "\t", p); gsub(/\\134/, "\\\\", p) }
        p == ENVIRON["MOUNTLAB_BELOW"] || index(p, ENVIRON["MOUNTLAB_BELOW"] "/") == 1 { line[n++] = $5 }
        END { while (n > 0) print line[--n] }' /proc/self/mountinfo
}

decode() { case $1 in *\\*) printf '%b' "$(printf '%s' "$1" | sed 's/\\/\\0/g')" ;; *) printf '%s' "$1" ;; esac; }

is_mount_point() {
    mounts_below "$1" | while IFS= read -r point; do [ "$(decode "$point")" != "$1" ] || echo yes; done | grep -q yes
}

# --- whose a name is

# t0001, or of a diagnostic trial x0001 or p0001, the name of a trial; t0001.beside is of its neighbours (neighbour.sh), and
# t0001.beside-b of those on client b.
is_trial() {
    set -- "${1%%.beside-*}"
    set -- "${1%.beside}"
    case ${1#[txp]} in "$1" | '' | *[!0-9]*) return 1 ;; esac
}

# Whether $1 is the directory of a run. Of one without `run NAME` its name tells, and what it holds.
is_run() {
    plain_directory "$1" || return 1
    read_head "$1"
    [ "$head" = "run ${1##*/}" ] || { [ -z "$head" ] && looks_like_run "$1"; } || return 1
    ! is_mount_point "$1"
}

looks_like_run() {
    case ${1##*/} in
    [0-9][0-9][0-9][0-9][0-9][0-9][0-9][0-9]T[0-9][0-9][0-9][0-9][0-9][0-9]-?*) ;;
    *) return 1 ;;
    esac
    for known in "$1/img" "$1/mnt" "$1/borrowed" "$1/elsewhere" "$1/alive" "$1/last"; do
        [ ! -e "$known" ] || [ -L "$known" ] || return 0
    done
    [ -z "$(ls -A "$1")" ]
}

# Whether file $1 is an image that Mountlab has made.
is_image() {
    plain_file "$1" || return 1
    read_head "${1%/*}"
    if [ -n "$head" ]; then tail -n +2 "${1%/*}/.mountlab" | grep -qxF -e "${1##*/}"; else
        case $1 in *.img) ;; *) return 1 ;; esac
    fi
}

# --- loop devices

# The file behind loop device $1, or nothing.
backing_of() { sed 's/ (deleted)$//' "/sys/block/${1##*/}/loop/backing_file" 2>/dev/null; }

# Whether loop device $1 lies on file $2: by its name; by device and inode, too, where losetup says them and the file is
# still there. A name may be of another file: after it was replaced, or where another root directory has the same names.
lies_on() {
    [ "$(backing_of "$1")" = "$2" ] || return 1
    ! grep -q ' (deleted)$' "/sys/block/${1##*/}/loop/backing_file" || return 0
    is=$(stat -c '%d %i' -- "$2" 2>/dev/null) || return 0
    losetup -n -O BACK-MAJ:MIN,BACK-INO "/dev/${1##*/}" 2>/dev/null | {
        IFS=' :' read -r major minor inode
        [ -z "$inode" ] || [ "$is" = "$((minor & 255 | major << 8 | (minor & ~255) << 12)) $inode" ]
    }
}

# Detach loop device $1 from file $2, and from nothing else: its number may be somebody else's by now. While it is open
# here the number goes to no other file: the kernel detaches it when the last one that has it open closes it.
# Says what is left: on standard output `lazily: ` or `not ours: `.
detach_loop() {
    tries=20 was_ours=no
    # shellcheck disable=SC2094 # held open, not read
    { ! lies_on "$1" "$2" || { was_ours=yes && losetup -d "$1"; }; } 8< "$1" || ! lies_on "$1" "$2" || return
    while lies_on "$1" "$2"; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || break
        sleep 0.1
    done
    now=$(backing_of "$1")
    if [ "$tries" -le 0 ]; then
        echo "lazily: $1 on $2 is still in use: the kernel detaches it when nothing uses it any more"
    elif [ "$was_ours" = no ] && [ -n "$now" ]; then echo "not ours: $1 lies on $now by now: left alone"; fi
}

# --- what is removed, when act says so

ours() { # file, tree or directory; PATH
    [ "$act" = remove ] || return 0
    case $1 in
    file) note=$(rm -f -- "$2" 2>&1) ;;
    tree) remove_tree "$2" ;;
    directory) note=$(rmdir -- "$2" 2>&1) ;;
    esac || stuck "$2: $note"
}

# busybox has no --one-file-system; that nothing is mounted there is seen before. The helper of a box has no
# remove_subvolumes: its user could exchange names meanwhile.
remove_tree() {
    note='something is still mounted below'
    [ -z "$(mounts_below "$1")" ] || return 1
    note=$(rm -rf --one-file-system -- "$1" 2>&1) && return
    [ -z "$(mounts_below "$1")" ] || return 1
    note=$(rm -rf -- "$1" 2>&1) && return
    command -v remove_subvolumes > /dev/null && remove_subvolumes "$1"
    note=$(rm -rf -- "$1" 2>&1)
}

# Remove a directory itself, when nothing is left in it but our list.
end_directory() {
    [ "$act" = remove ] || return 0
    case $(ls -A "$1") in '') ;; .mountlab) rm -f -- "$1/.mountlab" ;; *) return 0 ;; esac
    ours directory "$1"
}

# --- the walk

# $1: a root; $2: the other root, which may lie in it.
walk_root() {
    for entry in "$1"/* "$1"/.[!.]* "$1"/..?*; do
        there "$entry" || continue
        case ${entry##*/} in .mountlab | lock) ! plain_file "$entry" || continue ;; esac
        case $2 in "$entry" | "$entry"/*) continue ;; esac
        # What mkfs makes on a file system of its own.
        [ "${entry##*/}" != lost+found ] || ! is_mount_point "$1" || continue
        if is_run "$entry"; then a_run "$entry"; else foreign "$entry"; fi
    done
}

walk_run() {
    [ "$act" != remove ] || remove_answers "$1"
    for within in "$1"/* "$1"/.[!.]* "$1"/..?*; do
        there "$within" || continue
        case ${within##*/} in
        .mountlab) plain_file "$within" || foreign "$within" ;;
        img) walk_images "$within" ;;
        mnt) walk_mounts "$within" ;;
        borrowed | elsewhere | layers)
            if ! plain_file "$within"; then foreign "$within"; elif still_needed "$within"; then :; else ours file "$within"; fi ;;
        borrowed.new | layers.new | layers.process | made | made.new | alive | lease | last | job.*)
            if plain_file "$within"; then ours file "$within"; else foreign "$within"; fi ;;
        kept) # what a tool keeps for later trials of the run
            if plain_directory "$within"; then ours tree "$within"; else foreign "$within"; fi ;;
        *) walk_other "$within" ;;
        esac
    done
    end_directory "$1"
}

# What job.sh keeps: a command has two or three files there, and to remove each takes a process.
remove_answers() {
    within=$1
    set --
    for answer in "$within"/job.*; do ! plain_file "$answer" || set -- "$@" "$answer"; done
    [ $# = 0 ] || note=$(rm -f -- "$@" 2>&1) || stuck "$within: $note"
}

walk_other() {
    name=${1##*/} name=${name%.data} name=${name%.c} name=${name%.trace}
    if is_trial "$name" && { plain_directory "$1" || plain_file "$1"; }; then ours tree "$1"
    elif [ "$name" = s ] && plain_file "$1/drop"; then ours tree "$1" # of serve.sh
    elif marked_directory "$1"; then walk_own "$1"
    # Made by the helper for its user, who has not marked it yet: in a directory of root's no other user makes one.
    elif plain_directory "$1" && [ ! -O "$1" ] && [ -z "$(ls -A "$1")" ]; then ours directory "$1"
    else foreign "$1"; fi
}

walk_images() {
    plain_directory "$1" || { foreign "$1"; return; }
    for image in "$1"/* "$1"/.[!.]* "$1"/..?*; do
        there "$image" || continue
        case ${image##*/} in .mountlab) ! plain_file "$image" || continue ;; esac
        if ! is_image "$image"; then foreign "$image"
        elif [ "$act" = remove ] && has_loop "$image"; then stuck "$image is still in use by a loop device"
        else ours file "$image"; fi
    done
    end_directory "$1"
}

has_loop() { grep -qsxF -e "$1" /sys/block/loop*/loop/backing_file; }

# Mount points are empty as long as nothing is mounted on them. What is mounted there is the file system under test.
walk_mounts() {
    plain_directory "$1" || { foreign "$1"; return; }
    for point in "$1"/* "$1"/.[!.]* "$1"/..?*; do
        there "$point" || continue
        if [ -L "$point" ]; then
            case ${point##*/}:$(readlink -- "$point") in *.device:/dev/*) ours file "$point" ;; *) foreign "$point" ;; esac
        elif [ ! -d "$point" ]; then foreign "$point"
        elif [ -n "$(mounts_below "$point")" ]; then [ "$act" = look ] || stuck "something is still mounted below $point"
        elif [ -z "$(ls -A "$point")" ]; then ours directory "$point"
        else
            for inner in "$point"/* "$point"/.[!.]* "$point"/..?*; do ! there "$inner" || foreign "$inner"; done
        fi
    done
    end_directory "$1"
}

# A directory that is measured as it is, or that holds an image: trials, layers of an overlay, words of clients.
walk_own() {
    for mine in "$1"/* "$1"/.[!.]* "$1"/..?*; do
        there "$mine" || continue
        case ${mine##*/} in
        .mountlab) continue ;;
        .mountlab.new | .mountlab-same | .mountlab-seen-*) ! plain_file "$mine" || { ours file "$mine"; continue; } ;;
        lower | upper | work) [ ! -d "$1/lower" ] || [ ! -d "$1/upper" ] || [ ! -d "$1/work" ] || layers=$1 ;;
        esac
        case ${mine##*/}:${layers:-} in
        lower:"$1" | upper:"$1" | work:"$1") ours tree "$mine" ;;
        *)
            if is_trial "${mine##*/}" && plain_directory "$mine"; then ours tree "$mine"
            elif is_image "$mine"; then
                if [ "$act" = remove ] && has_loop "$mine"; then stuck "$mine is still in use by a loop device"; else ours file "$mine"; fi
            else foreign "$mine"; fi ;;
        esac
    done
    end_directory "$1"
    [ "$act" = look ] || [ -n "$blocked" ] || ! marked_directory "$1" || mark_kept "$1"
}

# So that what is not ours in it does not pass for something that went wrong. Root writes in no directory of the user's.
mark_kept() {
    [ -O "$1" ] || return 0
    { echo kept; tail -n +2 "$1/.mountlab"; } > "$1/.mountlab.new" 2>/dev/null && mv -- "$1/.mountlab.new" "$1/.mountlab"
}

# Why a record must stay: by it the rest is found the next time.
still_needed() {
    case ${1##*/} in
    borrowed)
        [ -s "$1" ] || return 1
        [ "$act" = look ] || stuck 'what it borrowed could not all be given back' ;;
    layers)
        [ -s "$1" ] || return 1
        [ "$act" = look ] || stuck 'a layer on its devices could not be undone' ;;
    elsewhere)
        held=''
        while IFS= read -r directory; do
            case $directory in "${1%/*}"/*) continue ;; esac # it goes with the record
            marked_directory "$directory" || continue
            held=$directory
            read_head "$directory"
            [ "$act" = look ] || [ "$head" = kept ] || stuck "$directory could not be removed"
        done < "$1"
        [ -n "$held" ] ;;
    esac
}

# --- roots

# A mount namespace keeps a copy of its own of each private mount, after the mount is undone; in a container / often is
# private. So open.sh binds the mount root to itself and shares it: what is unmounted below it goes from every namespace.
# A line `bound BOOT MOUNT` in its .mountlab, written before, names the mount that it was bound on.

# The number of the mount that directory $1 lies on; of a mount point, of what is mounted there.
mount_of() { { sed -n 's/^mnt_id:[[:space:]]*//p' /proc/self/fdinfo/9; } 9< "$1"; }

# Prints whether root $1 is bound to itself by open.sh: busy as long as something is mounted below it, else free. Prints
# nothing for a mount of somebody else's at the same place.
root_bind() {
    read -r boot < /proc/sys/kernel/random/boot_id
    on=$(sed -n "s/^bound $boot //p" "$1/.mountlab" | tail -n 1)
    [ -z "$on" ] || awk -v top="$(mount_of "$1")" -v on="$on" '
        { parent[$1] = $2; device[$1] = $3; root[$1] = $4; point[$1] = $5; above[$2]++ }
        END {
            below = point[on] == "/" ? point[top] : substr(point[top], length(point[on]) + 1)
            itself = root[on] == "/" && below != "" ? below : root[on] below
            if (parent[top] == on && device[top] == device[on] && root[top] == itself)
                print above[top] ? "busy" : "free"
        }' /proc/self/mountinfo
} 2>/dev/null

# Undo that, when nothing is mounted below root $1. The command that does it may have its own output there: then the
# kernel completes it. While a loop device has a file there, it would name that file by a path without the root.
unbind_root() {
    [ "$(root_bind "$1")" = free ] || return 0
    umount "$1" 2>/dev/null || cat /sys/block/loop*/loop/backing_file 2>/dev/null | grep -qF -e "$1/" || umount -l "$1"
}

# $1: a root from which all that is ours has been removed. One that was there before stays, and so does a mount point.
# Sets note to what keeps it.
drop_root() {
    plain_file "$1/.mountlab" || return 0
    for entry in "$1"/* "$1"/.[!.]* "$1"/..?*; do
        there "$entry" || continue
        case ${entry##*/} in
        .mountlab) ;;
        lost+found) is_mount_point "$1" || { note='not empty'; return 0; } ;;
        *) note='not empty' && return 0 ;;
        esac
    done
    [ -z "$(root_bind "$1")" ] || { note='still bound to itself'; return 0; }
    read_head "$1"
    rm -f -- "$1/.mountlab"
    [ "$head" = found ] || is_mount_point "$1" || note=$(rmdir -- "$1" 2>&1) || echo "${head:-made}" > "$1/.mountlab"
}
