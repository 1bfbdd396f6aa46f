# Needs limits.sh
# The neighbours of a trial: programs that run beside the measured one, each in a cgroup of its own where the trial has one.
# Functions only, for trial.sh, and for away.sh on a client. Its head has beside, their numbers; `neighbour N`, which sets name,
# place (its directory, on the file system), notes (the directory of its output), limits and direct_io ('' or yes); limits_N,
# lay_out_N and run_N.
# Into $out/neighbours goes one line for each event, with its time in /proc/uptime:
#     NAME begun | moves | ended STATUS | gave-up
#     NAME look | from | to READ_CALLS WRITE_CALLS READ WRITTEN CALLS USER_TICKS ALL_TICKS RUNNING STOPPED
# `from` and `to` are looks right around the measured command, `look` those in between. READ and WRITTEN are the bytes that
# its processes caused at the block layer, READ_CALLS and WRITE_CALLS those that calls moved (/proc/PID/io).

# $1: name; the rest: the event.
tell() {
    read -r up _ < /proc/uptime
    whose=$1 what=$2
    shift 2
    printf '%s %s %s%s\n' "$whose" "$what" "$up" "${1:+ $*}" >> "$out/neighbours" || lacking neighbours
}

# Sets name, place, notes, group (its cgroup, '' for none), list (the file with its threads), enter (the files by which
# a process comes into it) and more (cgroups of v1 that limit it).
of_neighbour() {
    neighbour "$1"
    eval "group=\${group_$1:-} list=\${list_$1:-} enter=\${enter_$1:-} more=\${more_$1:-}"
}

its_processes() {
    if [ -n "$list" ]; then
        while read -r each; do ! leads "$each" || echo "$each"; done < "$list"
    else
        for each in $(grep -lszF "MOUNTLAB_TRIAL=$notes/." /proc/[0-9]*/environ); do
            each=${each%/environ}
            echo "${each#/proc/}"
        done
    fi 2>/dev/null
}

# Adds what process $1 has moved to the sums.
add_io() {
    while read -r key value; do
        case $key in
        rchar:) rcalls=$((rcalls + value)) ;;
        wchar:) wcalls=$((wcalls + value)) ;;
        syscr: | syscw:) calls=$((calls + value)) ;;
        read_bytes:) stored_r=$((stored_r + value)) ;;
        write_bytes:) stored_w=$((stored_w + value)) ;;
        cancelled_write_bytes:) stored_w=$((stored_w - value)) ;;
        esac
    done < "/proc/$1/io"
} 2>/dev/null

# $1: number; $2: the event. What has ended is in the sums of the shell that has waited for it.
# shellcheck disable=SC2086 # the words of a line
look_at() {
    of_neighbour "$1"
    event=$2 rcalls=0 wcalls=0 stored_r=0 stored_w=0 calls=0 user=0 all=0 running=0 stopped=0
    eval "supervisor=\$supervisor_$1"
    for pid in $(its_processes) $supervisor; do
        add_io "$pid"
        { read -r line < "/proc/$pid/stat"; } 2>/dev/null || continue
        set -- ${line##*) }
        user=$((user + ${14})) all=$((all + ${14} + ${15}))
        [ "$pid" != "$supervisor" ] || continue
        user=$((user + ${12})) all=$((all + ${12} + ${13}))
        case $1 in Z | X) ;; T | t) stopped=$((stopped + 1)) running=$((running + 1)) ;; *) running=$((running + 1)) ;; esac
    done
    tell "$name" "$event" "$rcalls" "$wcalls" "$stored_r" "$stored_w" "$calls" "$user" "$all" "$running" "$stopped"
}

look_at_neighbours() {
    for number in $beside; do look_at "$number" "$1"; done
}

# Whether neighbours go on: until the file is removed, or the trial's shell is gone. A signal can be lost in a process that
# has just begun.
going_on() { [ -e "$out.beside/on" ] && kill -0 $$ 2>/dev/null; }

# Every look_s seconds. Whether they run all the time does not hang on this: an end is seen at once.
watch_neighbours() {
    napping=''
    trap '[ -z "$napping" ] || kill "$napping"; exit' TERM
    while going_on; do
        sleep "${look_s:-1}" &
        napping=$!
        wait "$napping"
        look_at_neighbours look
    done 2>/dev/null
}

changed_files() { [ -n "$(find "$place" -type f -newer "$notes/begun" -size +0 2>/dev/null | head -n 1)" ]; }

# Its processes that have a file in its directory open, and what these have moved.
open_state() {
    holders='' rcalls=0 wcalls=0 stored_r=0 stored_w=0 calls=0
    for pid in $(its_processes); do
        # shellcheck disable=SC2010 # links
        if ls -l "/proc/$pid/fd" 2>/dev/null | grep -qF " $place/"; then
            holders="$holders $pid"
            add_io "$pid"
        fi
    done
    total=$((rcalls + wcalls + stored_r + stored_w))
}

# Wait until its first bytes have moved: processes that hold its files have moved a page since they were first seen; or,
# where none keeps a file open, one of its files is new.
prove() {
    place=$(readlink -f "$place")
    before='' first=0
    while true; do
        { [ -e "$notes/running" ] && going_on; } || return
        open_state
        if [ -z "$holders" ]; then
            if changed_files; then break; fi
        elif [ "$holders" != "$before" ]; then before=$holders first=$total
        elif [ "$total" -ge "$((first + 4096))" ]; then break; fi
        sleep 0.02
    done
    tell "$name" moves
    true > "$notes/moves"
}

# In a process of its own, which becomes the program.
enter_and_run() {
    for each in $enter; do echo 0 > "$each" || exit 125; done
    export MOUNTLAB_TRIAL="$notes/."
    cd "$place" || exit 125
    "run_$1"
}

# Run neighbour $1, and again at once where it ends before we say so. Three in a row that moved nothing are enough.
supervise() {
    of_neighbour "$1"
    idle=0
    while going_on; do
        rm -f "$notes/moves"
        true > "$notes/begun"
        true > "$notes/running"
        tell "$name" begun
        began_at=$up
        prove &
        prover=$!
        status=$({ { (enter_and_run "$1") 2>&1 3>&- < /dev/null; echo $? >&3; } | tail -c 2000 > "$notes/said" 3>&-; } 3>&1)
        rm -f "$notes/running"
        wait "$prover"
        going_on || return
        # Too short to be seen while it ran.
        if [ ! -e "$notes/moves" ] && { [ "$status" = 0 ] || changed_files; }; then
            printf '%s moves %s\n' "$name" "$began_at" >> "$out/neighbours"
            true > "$notes/moves"
        fi
        tell "$name" ended "$status"
        { cat "$notes/said" > "$out/neighbour-$name.txt"; } 2>/dev/null
        if [ -e "$notes/moves" ]; then idle=0; else idle=$((idle + 1)); fi
        [ "$idle" -lt 3 ] || { tell "$name" gave-up; return; }
    done
}

lay_out_neighbour() {
    mkdir -p "$place" "$notes" && cd "$place" && "lay_out_$1"
}

# Before the caches are dropped. What they say is kept where it fails.
lay_out_neighbours() {
    for number in $beside; do
        of_neighbour "$number"
        said=$( (lay_out_neighbour "$number") 2>&1) && continue
        put neighbour_failed "$name: its files could not be laid out: $(printf '%s' "$said" | tail -c 1000)"
        trouble
        finish
    done
}

# Beside the tool's cgroup, and like it without controllers. One with limits has a cgroup with controllers: of v2 below
# the root, which may have processes as well; of v1 one more in the hierarchy of each controller.
make_group() {
    run=${out%/*}
    own_name=mountlab-${run##*/}.${out##*/}.$1.$$
    # shellcheck disable=SC2034 # scheduler: for limits.sh
    why='' mend='' asked='' scheduler=''
    if [ -n "$limits" ] && is_v2; then
        group=$cgroups/$own_name list=$cgroups/$own_name/cgroup.threads enter=$cgroups/$own_name/cgroup.procs
    elif [ -n "$cgroup" ]; then
        group=${cgroup%/*}/$own_name list=$group/${members##*/} enter=$group/${members##*/}
        mkdir "$group" && { [ "${members##*/}" != cgroup.threads ] || echo threaded > "$group/cgroup.type"; }
    fi 2>/dev/null || { why='no cgroup can be made'; return 1; }
    if [ -n "$limits" ]; then
        find_mount "$place"
        "limits_$1" || return
    fi
    eval "group_$1=\$group list_$1=\$list enter_$1=\$enter more_$1=\$more"
}

# $1: limit; $2: value. What the kernel makes of it is kept.
limit() {
    asked=$1
    set_limit "$1" "$2" && tell "$name" limit "$1" "$file: $now"
}

begin_neighbours() {
    beside_began=yes
    true > "$out.beside/on"
    for each_one in $beside; do
        of_neighbour "$each_one"
        if ! make_group "$each_one"; then
            for each in $group $more; do rmdir "$each"; done 2>/dev/null
            put neighbour_failed "$name: ${asked:+$asked cannot be limited: }$why${mend:+: $mend}"
            break
        fi
        supervise "$each_one" 3>&- &
        eval "supervisor_$each_one=$!"
    done
    if [ ! -e "$out/neighbour_failed" ]; then
        watch_neighbours 3>&- &
        watcher=$!
        await_neighbours
    fi
    if [ -e "$out/neighbour_failed" ]; then
        end_neighbours
        trouble
        finish
    fi
}

await_neighbours() {
    for number in $beside; do
        of_neighbour "$number"
        tries=$beside_tries
        until [ -e "$notes/moves" ]; do
            tries=$((tries - 1))
            if [ "$tries" -le 0 ] || grep -q "^$name gave-up " "$out/neighbours"; then
                put neighbour_failed "$name: it moved no bytes$([ "$tries" -gt 0 ] || echo " in $((beside_tries / 20)) s")"
                return
            fi
            sleep 0.05
        done
    done
}

# End them and all that they have started. They get a second to end by themselves: some remove what they have in memory.
end_neighbours() {
    rm -f "$out.beside/on"
    [ -z "$watcher" ] || kill "$watcher" 2>/dev/null
    for signal in TERM KILL KILL; do
        tries=10
        while [ "$tries" -gt 0 ]; do
            alive=''
            for number in $beside; do
                of_neighbour "$number"
                alive="$alive $(its_processes)"
            done
            # shellcheck disable=SC2116,SC2086 # numbers, without blanks around
            alive=$(echo $alive)
            [ -n "$alive" ] || break 2
            if [ "$signal" = KILL ] || [ "$tries" = 10 ]; then
                # shellcheck disable=SC2086 # numbers
                { kill -s "$signal" $alive; kill -s CONT $alive; } 2>/dev/null
            fi
            tries=$((tries - 1))
            sleep 0.1
        done
    done
    for number in $beside; do
        of_neighbour "$number"
        eval "supervisor=\${supervisor_$number:-}"
        [ -z "$supervisor" ] || wait "$supervisor"
        for each in $group $more; do rmdir "$each"; done
    done 2>/dev/null
    [ -z "$watcher" ] || wait "$watcher"
    watcher='' beside_began=''
    remove_neighbours
}

# Where the trial is cut short. With `collect` others have ended them.
drop_neighbours() {
    if [ -n "$beside_began" ]; then end_neighbours; else remove_neighbours; fi
}

remove_neighbours() {
    for number in $beside; do
        neighbour "$number"
        rm -rf "${place%/*}" 2>/dev/null || { remove_subvolumes "${place%/*}"; rm -rf "${place%/*}"; }
        rm -rf "${notes%/*}"
    done
}
