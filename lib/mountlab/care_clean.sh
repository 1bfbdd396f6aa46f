# Find, and remove, what Mountlab left on this machine. Can be run again at any time.
# $1: list, clean, or kill (processes only); $2: number of the user who logs in; $3: a run id, or '' for any;
# $4, $5: the mount root and the output root; $6: the text of filesystems/borrow.sh, which gives back what runs borrowed.
# Touches only what is in a root with our marker in it, and processes of runs (MOUNTLAB_RUN in their environment).
# Prints one line a find: kind, 1 if it is gone, name, note; between tabs; blanks in names as mountinfo has them.
mode=$1 user=$2 run=$3 borrow=$6
export LC_ALL=C

say() { printf '%s\t%s\t%s\t%s\n' "$1" "$2" "$3" "$(printf '%s' "$4" | tr '\n\t' '  ')"; }
escape() { printf '%s' "$1" | sed 's/\\/\\134/g; s/	/\\011/g' | tr '\n' '?'; }
decode() { case $1 in *\\*) printf '%b' "$(printf '%s' "$1" | sed 's/\\/\\0/g')" ;; *) printf '%s' "$1" ;; esac; }
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

# Mount points at or below $1 as mountinfo writes them, the last made first.
mounts_below() {
    sed '1!G;h;$!d' /proc/self/mountinfo | while read -r _ _ _ _ point _; do
        case $(decode "$point") in "$1" | "$1"/*) printf '%s\n' "$point" ;; esac
    done
}

clean_mounts() {
    mounts_below "$1" | while read -r point; do
        path=$(decode "$point") gone=0 note=
        [ "$path" != "$1" ] || continue # the root itself is on a file system of its own: the user's
        if [ "$mode" = clean ]; then
            for _ in 1 2 3 4 5; do
                if note=$(umount "$path" 2>&1); then gone=1 note=; break; fi
                sleep 0.2
            done
        fi
        say mount "$gone" "$point" "$note"
    done
}

# The file behind loop device $1 (/sys/block/loopN), or nothing.
backing_of() { sed 's/ (deleted)$//' "$1/loop/backing_file" 2>/dev/null; }

# Says which loop device still lies on a file below $1.
loops_below() {
    for loop in /sys/block/loop*; do
        case $(backing_of "$loop") in "$1"/*) echo "/dev/${loop##*/} is still in use" ;; esac
    done
}

clean_loops() {
    for loop in /sys/block/loop*; do
        backing=$(backing_of "$loop")
        case $backing in "$1"/*) ;; *) continue ;; esac
        gone=0 note=
        if [ "$mode" = clean ]; then
            note=$(losetup -d "/dev/${loop##*/}" 2>&1)
            if [ "$(backing_of "$loop")" != "$backing" ]; then gone=1 note=; else note=${note:-still in use}; fi
        fi
        say loop "$gone" "/dev/${loop##*/} ($(escape "$backing"))" "$note"
    done
}

# Those on a file below a mount of ours: the others hold our mounts themselves.
detach_below() {
    [ "$mode" = clean ] || return 0
    for loop in /sys/block/loop*; do
        case $(backing_of "$loop") in "$1"/*/mnt/*) losetup -d "/dev/${loop##*/}" 2>/dev/null ;; esac
    done
}

# Settings, zram devices and modules that runs in root $1 had borrowed, the last first.
clean_borrowed() {
    for record in "$1"/*/borrowed; do
        { [ -f "$record" ] && [ ! -L "$record" ]; } || continue
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
    owner=$(stat -c %u "$1")
    if [ "$owner" != "$user" ] && [ "$owner" != 0 ]; then
        say root 0 "$(escape "$1")" "it belongs to user $owner: not touched" >&3
        return
    fi
    CDPATH='' cd -- "$1" && pwd -P
}

# $1: a directory or file in a root.
remove() {
    if [ -n "$(mounts_below "$1")" ]; then
        note='something is still mounted below'
        return 1
    fi
    # busybox has no --one-file-system; that nothing is mounted there was seen above.
    note=$(rm -rf --one-file-system -- "$1" 2>&1) && return
    [ -z "$(mounts_below "$1")" ] && note=$(rm -rf -- "$1" 2>&1)
}

# Why the record $1 of a run must stay: by it the rest is found the next time. Nothing where it need not.
owed() {
    [ ! -s "$1/borrowed" ] || echo 'what it borrowed could not all be given back'
    [ ! -s "$1/elsewhere" ] || while IFS= read -r directory; do
        case $directory in "$1"/*) continue ;; esac # it goes with the record
        [ ! -f "$directory/.mountlab" ] || echo "$directory could not be removed"
    done <"$1/elsewhere"
    loops_below "$1"
}

# $1: a root; $2: the other one, which may lie in it.
clean_files() {
    for entry in "$1"/* "$1"/.[!.]* "$1"/..?*; do
        { [ -e "$entry" ] || [ -L "$entry" ]; } || continue
        case $entry in "$1/.mountlab" | "$2") continue ;; esac
        gone=0 note=
        [ "$mode" != clean ] || [ ! -d "$entry" ] || note=$(owed "$entry" | head -n 1)
        if [ "$mode" = clean ] && [ -z "$note" ] && remove "$entry"; then gone=1; fi
        say files "$gone" "$(escape "$entry")" "$note"
    done
    gone=0 note=
    if [ "$mode" = clean ]; then
        if [ "$(ls -A "$1")" != .mountlab ]; then
            note='not empty'
        elif rm -- "$1/.mountlab" && note=$(rmdir -- "$1" 2>&1); then
            gone=1
        else
            : >"$1/.mountlab"
        fi
    fi
    say root "$gone" "$(escape "$1")" "$note"
}

# Directories that runs in root $1 made outside of it (file systems of type dir): each holds our marker.
clean_elsewhere() {
    for list in "$1"/*/elsewhere; do
        [ -f "$list" ] || continue
        while IFS= read -r directory; do
            case ${directory##*/} in mountlab-*) ;; *) continue ;; esac
            { [ -f "$directory/.mountlab" ] && [ ! -L "$directory" ]; } || continue
            owner=$(stat -c %u "$directory")
            [ "$owner" = "$user" ] || [ "$owner" = 0 ] || continue
            clean_loops "$directory"
            gone=0 note=$(loops_below "$directory")
            if [ "$mode" = clean ] && [ -z "$note" ] && remove "$directory"; then gone=1; fi
            say files "$gone" "$(escape "$directory")" "$note"
        done <"$list"
    done
}

# Cgroups of trials (contain.sh), by the run in their names: with what is in them, which may have emptied its environment.
# Without a run id those of runs that have their directory in our roots, and those that are empty for more than a minute.
clean_cgroups() {
    find /sys/fs/cgroup -depth -type d -name "mountlab-${run:-*}.t[0-9]*" 2>/dev/null | while read -r group; do
        its_run=${group##*/mountlab-} its_run=${its_run%.*} gone=0 note=
        if [ -n "$run" ] || [ -d "$mount_root/$its_run" ] || [ -d "$output_root/$its_run" ]; then
            if [ "$mode" = list ]; then :; elif empty_cgroup "$group"; then gone=1; else note='processes in it do not end'; fi
        else
            [ -n "$(find "$group" -maxdepth 0 -mmin +1 2>/dev/null)" ] || continue
            [ -z "$(cat "$group/tasks" "$group/cgroup.threads" 2>/dev/null)" ] || continue
            [ "$mode" = list ] || ! rmdir "$group" || gone=1
        fi
        say cgroup "$gone" "$(escape "$group")" "$note"
    done
}

empty_cgroup() {
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        rmdir "$1" 2>/dev/null && return
        { [ ! -w "$1/cgroup.freeze" ] || echo 1 >"$1/cgroup.freeze"; } 2>/dev/null
        cat "$1/tasks" "$1/cgroup.threads" 2>/dev/null | while read -r pid; do kill -s KILL "$pid" 2>/dev/null; done
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
clean_processes
clean_cgroups
# A tool can have put a loop device on a file below a mount, which keeps that busy.
[ -z "$mount_root" ] || detach_below "$mount_root"
for root in "$mount_root" "$output_root"; do [ -z "$root" ] || clean_mounts "$root"; done
for root in "$mount_root" "$output_root"; do [ -z "$root" ] || clean_loops "$root"; done
[ -z "$mount_root" ] || clean_borrowed "$mount_root"
[ -z "$mount_root" ] || clean_elsewhere "$mount_root"
[ -z "$output_root" ] || clean_files "$output_root" ''
[ -z "$mount_root" ] || clean_files "$mount_root" "$output_root"
exit 0
