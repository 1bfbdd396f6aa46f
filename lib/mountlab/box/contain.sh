# Where the tool of a trial runs, so that nothing that it starts outlives the trial, and what it mounts or unmounts is
# its own affair. Functions only. In this order:
#   a cgroup of its own (v2, else v1), made below the one that we are in and only where no controller works in it: one
#     that divides processors, memory or I/O would change what is measured;
#   a PID namespace: when its first process ends, the kernel ends all others;
#   the environment (end_stragglers), which a daemon that has emptied its own escapes.
# A mount namespace goes with the first two. With the third it would only hide what a daemon keeps busy.
# A process enters by `tasks`, or by `cgroup.threads` of a threaded cgroup, alone: by `cgroup.procs` the kernel waits until
# every processor has passed a quiet point, 10 ms and more.

# $1: our own cgroup; $2: the file by which a process enters.
make_cgroup() {
    [ -w "$1/$2" ] || return
    run=${out%/*} controllers=''
    # With our number: a run of the same name, by another user or below other roots, has its own.
    cgroup=$1/mountlab-${run##*/}.${out##*/}.$$ members=$1/mountlab-${run##*/}.${out##*/}.$$/$2
    # One that is there was left by a dead process of our number. It is taken only if it can be removed: if it is empty.
    if [ -d "$cgroup" ] && ! rmdir "$cgroup" 2>/dev/null; then
        cgroup=''
        return 1
    fi
    # The first time, the same process makes the directories of the trial. They exist even where the cgroup does not.
    if [ -d "$out" ]; then mkdir "$cgroup"; else mkdir "$out" "$directory" "$cgroup"; fi 2>/dev/null
    if [ -d "$cgroup" ]; then
        [ "$2" != tasks ] || return 0
        if read -r controllers < "$cgroup/cgroup.controllers"; [ -z "$controllers" ]; then
            { echo threaded > "$cgroup/cgroup.type"; } 2>/dev/null && return
        fi
        rmdir "$cgroup"
    fi
    cgroup=''
    return 1
}

# Sets contained_by, cgroup and around, the words before the tool that give it namespaces of its own. Where a cgroup can
# be tried, makes the directories of the trial, too.
choose_container() {
    cgroup='' unified='' freezer='' pids='' named=''
    while IFS=: read -r _ names path; do
        case $names in
        '') unified=$path ;;
        freezer) freezer=$path ;;
        pids) pids=$path ;;
        name=systemd) named=$path ;;
        esac
    done < /proc/self/cgroup
    around=$mount_namespace
    if make_cgroup "$cgroups/unified$unified" cgroup.threads || make_cgroup "$cgroups$unified" cgroup.threads; then
        contained_by='cgroup v2'
    elif make_cgroup "$cgroups/freezer$freezer" tasks; then contained_by='cgroup v1 (freezer)'
    elif make_cgroup "$cgroups/pids$pids" tasks; then contained_by='cgroup v1 (pids)'
    elif make_cgroup "$cgroups/systemd$named" tasks; then contained_by='cgroup v1 (systemd)'
    else
        around=$pid_namespace contained_by=environment
        [ -z "$pid_namespace" ] || contained_by='PID namespace'
    fi 2>/dev/null
}

# Run a function in the cgroup, in a process of its own: this shell stays outside.
# shellcheck disable=SC3028,SC2034 # MOUNTLAB_TRIAL is for end_stragglers, MOUNTLAB_HELPER for tools that drop caches themselves
in_cgroup() (
    [ -z "$cgroup" ] || { echo 0 > "$members"; } 2>/dev/null || { around='' contained_by=environment; }
    put contained_by "$contained_by"
    export MOUNTLAB_TRIAL="$out/." MOUNTLAB_HELPER="$helper"
    if [ -n "$trace" ] && read -r pid _ < /proc/self/stat; then put trace_tool "$pid"; fi
    "$@"
)

# The same with the namespaces. What is mounted at $mountpoint is looked at in them, after the tool. The first process of a
# PID namespace says what is left there, and takes it along.
# shellcheck disable=SC2086,SC2016 # words before the tool; text for another shell
in_container() {
    if [ -z "$around" ]; then measured; else
        measured $around sh -c '
expected=$1 look=$2 point=$3 out=$4
shift 4
"$@"
status=$?
if [ -n "$expected" ] && now=$(awk -v m="$point" "$look" /proc/self/mountinfo) && [ "$now" != "$expected" ]; then
    printf "%s\n" "$expected" "$now" > "$out/mount_changed"
fi
[ $$ = 1 ] || exit "$status"
tries=10
while set -- /proc/[0-9]*; [ $# -gt 1 ] && [ "$tries" -gt 0 ]; do
    tries=$((tries - 1))
    sleep 0.1
done
for each; do
    if [ "$each" != /proc/1 ] && read -r name < "$each/comm"; then printf "%s\n" "$name" >> "$out/left_running"; fi
done
exit "$status"' contained "$mount_before" "$look_at_mount" "$mountpoint" "$out"
    fi
}

# loops: the loop devices in use and their files, one a line. Without a process.
in_use() {
    loops=''
    for backing in /sys/block/loop*/loop/backing_file; do
        read -r file < "$backing" && loops="$loops$backing ${file% (deleted)}
"
    done
} 2>/dev/null

# Detach loop devices that the tool has left on files of the file system, which they keep busy: also from a mount
# namespace that is gone. A bind mount shares its file system with others, whose files are not below it.
detach_loops() {
    before=$loops number=${mount_before#* }
    in_use
    [ "$loops" != "$before" ] && [ -n "$number" ] || return 0
    number=${number%% *}
    shared=$(awk -v n="$number" -v m="$mountpoint" '$3 == n && $5 != m' /proc/self/mountinfo)
    losetup -n -l -O NAME,BACK-MAJ:MIN,BACK-INO | while read -r device on inode; do
        [ "$on" = "$number" ] || continue
        backing=/sys/block/${device##*/}/loop/backing_file
        read -r file < "$backing" || continue
        case $before in *"$backing ${file% (deleted)}
"*) continue ;; esac
        [ -z "$shared" ] || [ -n "$(find "$mountpoint" -xdev -inum "$inode")" ] || continue
        # While it is open here, its number goes to no other file.
        {
            losetup -n -O BACK-MAJ:MIN,BACK-INO "$device" | {
                read -r now_on now && [ "$now_on $now" = "$on $inode" ]
            } && losetup -d "$device" && printf '%s\n' "$device" >> "$out/left_devices"
        } 8< "$device"
        await_let_go
    done
} 2>/dev/null

# Wait until $backing names $file no more: while somebody else (udev, blkid) has the device open, the kernel detaches it
# only when they close it, and the file system stays busy for the next trial.
await_let_go() {
    tries=50 now=$file
    while [ "$tries" -gt 0 ] && read -r now < "$backing" && [ "$now" = "$file" ]; do
        tries=$((tries - 1))
        sleep 0.1
    done
}

# What it took to end is named: those that are just ending have a second to end by themselves.
empty_cgroup() {
    [ -n "$cgroup" ] || return 0
    tries=10
    while read -r _ < "$members" && [ "$tries" -gt 0 ]; do
        tries=$((tries - 1))
        sleep 0.1
    done
    while read -r each; do
        if leads "$each" && read -r name < "/proc/$each/comm"; then printf '%s\n' "$name" >> "$out/left_running"; fi
    done < "$members"
    remove_cgroup
} 2>/dev/null

# Whether a thread is the first of its process.
leads() {
    key='' value=''
    while [ "$key" != Tgid: ] && read -r key value; do :; done < "/proc/$1/status"
    [ "$value" = "$1" ]
}

# Frozen, they can start nothing more. Those of v1 die only when they are thawed. Nothing waits for the directory to go but
# the end of the trial.
remove_cgroup() {
    tries=100
    while read -r _ < "$members" && [ "$tries" -gt 0 ]; do
        tries=$((tries - 1))
        [ ! -w "$cgroup/cgroup.freeze" ] || echo 1 > "$cgroup/cgroup.freeze"
        [ ! -w "$cgroup/freezer.state" ] || echo FROZEN > "$cgroup/freezer.state"
        # 0 would be this shell's process group: it stands for what is in a PID namespace that we do not see.
        while read -r each; do [ "$each" = 0 ] || kill -s KILL "$each"; done < "$members"
        [ ! -w "$cgroup/freezer.state" ] || echo THAWED > "$cgroup/freezer.state"
        sleep 0.05
    done
    rmdir "$cgroup" &
    cgroup=''
} 2>/dev/null
