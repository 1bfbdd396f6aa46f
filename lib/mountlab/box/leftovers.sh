# Needs ownership.sh
# Find, and remove, what Mountlab left on this machine. Can be run again at any time.
# $1: list, clean, or kill (processes only); $2: number of the user who logs in; $3: a run id, or '' for any;
# $4, $5: the mount root and the output root; $6: the text of filesystems/borrow.sh, which gives back what runs borrowed;
# $7: an owner, to clean only roots whose lock he has, or '' for all; $8: the text of filesystems/layer.sh, which undoes layers.
# Touches only what runs have made in a root with our marker in it (ownership.sh), and processes of runs (MOUNTLAB_RUN in their
# environment). What else lies in a root is named (`foreign`), and stays.
# Prints one line a find: kind, 1 if it is gone, name, note; between tabs; blanks in names as mountinfo has them.
mode=$1 user=$2 run=$3 borrow=$6 owner=${7:-} layer=${8:-}
# shellcheck disable=SC2034 # for ownership.sh
if [ "$mode" = clean ]; then act=remove; else act=look; fi
export LC_ALL=C

say() { printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$(printf '%s' "$4" | tr '\n\t' '  ')"; }
escape() { printf '%s' "$1" | sed 's/\\/\\134/g; s/	/\\011/g' | tr '\n' '?'; }
status_of() { sed -n "s/^$2:[[:space:]]*\([0-9]*\).*/\1/p" "/proc/$1/status" 2>/dev/null; }

# --- processes, but never this one and those above it

spared=' '
pid=$$
while [ "${pid:-0}" -gt 0 ]; do
    spared="$spared$pid "
    pid=$(status_of "$pid" PPid)
done

# By the run that a process belongs to, or whose lease it holds: who ends a run's load lets its lease be.
names='s/^MOUNTLAB_RUN=//p'
[ -n "$run" ] || names='s/^MOUNTLAB_\(RUN\|LEASE\)=//p'

# Without a run id: of any run that has its directory in our roots, or works there. Others on this machine have theirs.
is_ours() {
    case $spared in *" $1 "*) return 1 ;; esac
    its_run=$(tr '\0' '\n' 2>/dev/null <"/proc/$1/environ" | sed -n "$names")
    case $its_run in '' | */* | . | ..) return 1 ;; "$run") return 0 ;; esac
    [ -z "$run" ] || return 1
    its_place=$(readlink "/proc/$1/cwd")
    for root in "$mount_root" "$output_root"; do
        [ -n "$root" ] || continue
        [ ! -d "$root/$its_run" ] || return 0
        case $its_place in "$root"/*) return 0 ;; esac
    done
    return 1
}

processes() {
    grep -lsE 'MOUNTLAB_(RUN|LEASE)=' /proc/[0-9]*/environ | sed 's/[^0-9]//g' | while read -r pid; do
        if is_ours "$pid"; then echo "$pid"; fi
    done
}

# $1: signal. Whether all are gone within two seconds of it.
end_processes() {
    tries=20
    for pid in $(processes); do kill -s "$1" "$pid" 2>/dev/null; done
    while [ -n "$(processes)" ]; do
        [ "$tries" -gt 0 ] || return 1
        tries=$((tries - 1))
        sleep 0.1
    done
}

clean_processes() {
    found=$(processes | while read -r pid; do
        printf '%s %s\n' "$pid" "$(tr '\0\n\t' '   ' 2>/dev/null <"/proc/$pid/cmdline" | cut -c 1-200)"
    done)
    [ -n "$found" ] || return 0
    [ "$mode" = list ] || end_processes TERM || end_processes KILL
    printf '%s\n' "$found" | while read -r pid command; do
        gone=1
        if is_ours "$pid"; then gone=0; fi
        say process "$gone" "$pid $(escape "$command")" ''
    done
}

# --- mounts and loop devices

# Whether path $2 lies where a run in root $1 mounts, or its tools may have: nothing else is unmounted.
is_mounted_by_run() {
    rest=${2#"$1"/}
    is_run "$1/${rest%%/*}" && case ${rest#*/} in mnt/?* | [txp][0-9]* | */[txp][0-9]*) ;; *) return 1 ;; esac
}

clean_mounts() {
    mounts_below "$1" | while read -r point; do
        path=$(decode "$point") gone=0 note=
        is_mounted_by_run "$1" "$path" || continue
        if [ "$mode" = clean ]; then
            for _ in 1 2 3 4 5; do
                # A box that cleans itself at this moment may be first.
                if note=$(umount "$path" 2>&1) || ! is_mount_point "$path"; then gone=1 note=; break; fi
                sleep 0.2
            done
        fi
        say mount "$gone" "$point" "$note"
    done
}

# Whether $3, behind a loop device, is an image of ours, be it removed meanwhile: of a run in root $2, or in our own
# directory $2.
is_image_of() {
    where=${3%/*}
    case $1 in run) [ "${where##*/}" = img ] && [ "${where%/*/*}" = "$2" ] && is_run "${where%/*}" ;; own) [ "$where" = "$2" ] ;; esac \
        && { is_image "$3" || [ ! -e "$3" ]; }
}

# $1: a root, or a directory of our own; $2: run or own, for which of these.
clean_loops() {
    for loop in /sys/block/loop*; do
        backing=$(backing_of "$loop")
        case $backing in "$1"/*) is_image_of "$2" "$1" "$backing" || continue ;; *) continue ;; esac
        lies_on "$loop" "$backing" || continue
        gone=0 note=
        if [ "$mode" = clean ]; then
            note=$(detach_loop "/dev/${loop##*/}" "$backing" 2>&1)
            if ! lies_on "$loop" "$backing"; then gone=1 note=; fi
        fi
        say loop "$gone" "/dev/${loop##*/} ($(escape "$backing"))" "$note"
    done
}

# Those on a file below a mount of ours: the others hold our mounts themselves.
detach_below() {
    [ "$mode" = clean ] || return 0
    for loop in /sys/block/loop*; do
        backing=$(backing_of "$loop")
        its_run=${backing#"$1"/} its_run=$1/${its_run%%/*}
        case $backing in "$its_run"/mnt/*) is_run "$its_run" ;; *) false ;; esac || continue
        detach_loop "/dev/${loop##*/}" "$backing" >/dev/null 2>&1
    done
}

# A tool that was killed in the middle may have left a volume of a run in root $1 suspended: what uses it then waits for ever.
resume_layers() {
    [ "$mode" = clean ] || return 0
    for record in "$1"/*/layers; do
        { plain_file "$record" && is_run "${record%/*}"; } || continue
        while read -r uuid _; do
            sh -c "$layer" layer.sh resume "${record%/*}" "$uuid" </dev/null >/dev/null 2>&1
        done <"$record"
    done
}

# Layers that runs in root $1 had made on their devices, the last first.
clean_layers() {
    for record in "$1"/*/layers; do
        { plain_file "$record" && is_run "${record%/*}"; } || continue
        sed '1!G;h;$!d' "$record" | while read -r uuid kind _; do
            gone=0 note=
            if [ "$mode" = clean ]; then
                note=$(sh -c "$layer" layer.sh back "${record%/*}" "$uuid" 2>&1)
                grep -q "^$uuid " "$record" 2>/dev/null || gone=1 note=
            fi
            say layer "$gone" "$kind $uuid" "$note"
        done
    done
}

# Settings, zram devices and modules that runs in root $1 had borrowed, the last first.
clean_borrowed() {
    for record in "$1"/*/borrowed; do
        { plain_file "$record" && is_run "${record%/*}"; } || continue
        sed '1!G;h;$!d' "$record" | while IFS='	' read -r _ kind name _; do
            gone=0 note=
            if [ "$mode" = clean ] && note=$(sh -c "$borrow" borrow.sh back "${record%/*}" "$kind" "$name" 2>&1); then gone=1; fi
            say borrowed "$gone" "$kind $(escape "$name")" "$note"
        done
    done
}

# --- files

# $1: a root. Prints its real path if it is ours, and says why not if it looks as if it were.
ours_really() {
    if [ -L "$1" ]; then
        say root 0 "$(escape "$1")" 'a symbolic link: not touched' >&3
        return
    fi
    { [ -d "$1" ] && [ -f "$1/.mountlab" ] && [ ! -L "$1/.mountlab" ]; } || return 0
    belongs=$(stat -c %u "$1")
    if [ "$belongs" != "$user" ] && [ "$belongs" != 0 ]; then
        say root 0 "$(escape "$1")" "it belongs to user $belongs: not touched" >&3
        return
    fi
    [ -z "$owner" ] || [ "$(cat "$1/lock" 2>/dev/null)" = "$owner" ] || return 0
    CDPATH='' cd -- "$1" && pwd -P
}

foreign() {
    others=$((others + 1))
    say foreign 0 "$(escape "$1")" 'not made by Mountlab: not touched'
}

stuck() { [ -n "$blocked" ] || blocked=$1; }

a_run() {
    before=$others blocked='' held=''
    walk_run "$1"
    if ! there "$1"; then say files 1 "$(escape "$1")" ''; return; fi
    # What is not ours in it was named above.
    [ "$mode:$blocked" != clean: ] || [ "$others" = "$before" ] || return
    remains=yes
    say files 0 "$(escape "$1")" "${blocked:-${held:+$held holds what Mountlab did not make}}"
}

# $1: a root; $2: the other one, which may lie in it.
clean_files() {
    others=0 remains=no
    walk_root "$1" "$2"
    gone=0 note=
    if [ "$mode" = clean ]; then
        unbind_root "$1"
        [ "$remains" = yes ] || rm -f -- "$1/lock"
        drop_root "$1"
        if ! plain_file "$1/.mountlab"; then
            gone=1
            [ ! -d "$1" ] || note='the directory was there before, and stays'
        elif [ "$remains" = no ] && [ "$others" -gt 0 ]; then
            return # what is not ours was named
        fi
    fi
    say root "$gone" "$(escape "$1")" "$note"
}

# Directories that runs in root $1 made outside of it (file systems of type dir): each holds our marker.
clean_elsewhere() {
    for list in "$1"/*/elsewhere; do
        { plain_file "$list" && is_run "${list%/*}"; } || continue
        while IFS= read -r directory; do
            case ${directory##*/} in mountlab-*) ;; *) continue ;; esac
            marked_directory "$directory" || continue
            belongs=$(stat -c %u "$directory")
            [ "$belongs" = "$user" ] || [ "$belongs" = 0 ] || continue
            clean_loops "$directory" own
            clean_own "$directory"
        done <"$list"
    done
}

clean_own() {
    others=0 blocked=''
    walk_own "$1"
    if ! there "$1"; then say files 1 "$(escape "$1")" ''
    elif [ "$mode:$blocked" != clean: ] || [ "$others" = 0 ]; then say files 0 "$(escape "$1")" "$blocked"; fi
}

# Cgroups of trials (contain.sh), by the run in their names: with what is in them, which may have emptied its environment.
# Without a run id those of runs that have their directory in our roots, and those that are empty for more than a minute.
clean_cgroups() {
    find /sys/fs/cgroup -depth -type d -name "mountlab-${run:-*}.[txp][0-9]*" 2>/dev/null | while read -r group; do
        its_run=${group##*/mountlab-} its_run=${its_run%.[txp][0-9]*} gone=0 note=
        if [ -n "$run" ] || [ -d "$mount_root/$its_run" ] || [ -d "$output_root/$its_run" ]; then
            if [ "$mode" != list ] && empty_cgroup "$group"; then gone=1
            elif is_anothers "$group"; then
                note='holds processes of another PID namespace (a container that shares the cgroups): not touched'
            elif [ "$mode" != list ]; then note='processes in it do not end'; fi
        else
            [ -n "$(find "$group" -maxdepth 0 -mmin +1 2>/dev/null)" ] || continue
            [ -z "$(members "$group")" ] || continue
            if [ "$mode" != list ]; then
                rmdir "$group" 2>/dev/null || [ ! -d "$group" ] || continue
                gone=1
            fi
        fi
        say cgroup "$gone" "$(escape "$group")" "$note"
    done
}

# Threads in cgroup $1. 0 stands for those of a PID namespace that we do not see; v1 leaves these out.
members() { cat "$1/tasks" "$1/cgroup.threads" 2>/dev/null; }

# Whether a cgroup is of a run in another PID namespace. Of v1: it lists nothing, and could not be removed.
is_anothers() {
    seen=$(members "$1")
    if [ -n "$seen" ]; then printf '%s\n' "$seen" | grep -qx 0; else
        [ "$mode" != list ] && [ -z "$(find "$1" -mindepth 1 -type d 2>/dev/null)" ]
    fi
}

# $1: a cgroup. What we do not see in it is neither frozen nor killed: the cgroup is of a run in another container.
empty_cgroup() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        rmdir "$1" 2>/dev/null || [ ! -d "$1" ] && return
        seen=$(members "$1")
        if [ -z "$seen" ]; then
            sleep 0.1
            continue
        fi
        ! is_anothers "$1" || return 1
        { [ ! -w "$1/cgroup.freeze" ] || echo 1 >"$1/cgroup.freeze"; } 2>/dev/null
        for pid in $seen; do kill -s KILL "$pid" 2>/dev/null; done
        { [ ! -w "$1/freezer.state" ] || echo THAWED >"$1/freezer.state"; } 2>/dev/null
        sleep 0.1
    done
    return 1
}

exec 3>&1
mount_root='' output_root=''
if [ "$mode" != kill ]; then
    mount_root=$(ours_really "$4")
    output_root=$(ours_really "$5")
fi
# Before processes, which may wait for it, and after those that could suspend it.
[ -z "$mount_root" ] || resume_layers "$mount_root"
clean_processes
clean_cgroups
[ -z "$mount_root" ] || resume_layers "$mount_root"
# A tool can have put a loop device on a file below a mount, which keeps that busy.
[ -z "$mount_root" ] || detach_below "$mount_root"
for root in "$mount_root" "$output_root"; do [ -z "$root" ] || clean_mounts "$root"; done
[ -z "$mount_root" ] || clean_layers "$mount_root"
for root in "$mount_root" "$output_root"; do [ -z "$root" ] || clean_loops "$root" run; done
[ -z "$mount_root" ] || clean_borrowed "$mount_root"
[ -z "$mount_root" ] || clean_elsewhere "$mount_root"
[ -z "$output_root" ] || clean_files "$output_root" "$mount_root"
[ -z "$mount_root" ] || clean_files "$mount_root" "$output_root"
exit 0
