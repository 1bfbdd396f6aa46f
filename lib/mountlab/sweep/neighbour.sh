# The neighbours of a trial: programs that run beside the measured one, each in a cgroup of its own where the trial has one.
# Functions only, for trial.sh. Its head has beside, their numbers; `neighbour N`, which sets name, place (its directory, on
# the file system) and notes (the directory of its output); lay_out_N and run_N.
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

# Sets name, place, notes, group (its cgroup, '' for none) and list (the file with its threads).
of_neighbour() {
    neighbour "$1"
    group='' list=''
    [ -z "$beside_group" ] || group=${beside_group%".$$"}.$1.$$ list=${beside_group%".$$"}.$1.$$/$beside_list
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

# Every second. Whether they run all the time does not hang on this: an end is seen at once.
watch_neighbours() {
    napping=''
    trap '[ -z "$napping" ] || kill "$napping"; exit' TERM
    while kill -0 $$; do
        sleep 1 &
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
    trap exit TERM
    place=$(readlink -f "$place")
    before='' first=0
    while kill -0 $$ 2>/dev/null; do
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
    [ -z "$list" ] || echo 0 > "$list" || exit 125
    export MOUNTLAB_TRIAL="$notes/."
    cd "$place" || exit 125
    "run_$1"
}

# Run neighbour $1, and again at once where it ends before we say so. Three in a row that moved nothing are enough.
supervise() {
    of_neighbour "$1"
    stop='' idle=0
    trap 'stop=yes' TERM
    while [ -z "$stop" ] && kill -0 $$ 2>/dev/null; do
        rm -f "$notes/moves"
        true > "$notes/begun"
        tell "$name" begun
        began_at=$up
        prove &
        prover=$!
        status=$({ { (enter_and_run "$1") 2>&1 3>&- < /dev/null; echo $? >&3; } | tail -c 2000 > "$notes/said" 3>&-; } 3>&1)
        kill "$prover" 2>/dev/null
        wait "$prover"
        [ -z "$stop" ] || break
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

# A cgroup without controllers, as that of the tool.
make_group() {
    [ -n "$group" ] || return 0
    mkdir "$group" || return
    [ "$beside_list" != cgroup.threads ] || { echo threaded > "$group/cgroup.type"; }
}

begin_neighbours() {
    beside_began=yes
    beside_list=${members##*/} beside_group=$cgroup
    for number in $beside; do
        of_neighbour "$number"
        if ! said=$(make_group 2>&1); then
            put neighbour_failed "$name: it has no cgroup: $said"
            break
        fi
        supervise "$number" 3>&- &
        eval "supervisor_$number=$!"
    done
    watch_neighbours 3>&- &
    watcher=$!
    [ -e "$out/neighbour_failed" ] || await_neighbours
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
    [ -z "$watcher" ] || kill "$watcher" 2>/dev/null
    for number in $beside; do
        eval "supervisor=\${supervisor_$number:-}"
        [ -z "$supervisor" ] || kill "$supervisor" 2>/dev/null
    done
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
        [ ! -d "${group:-/no}" ] || rmdir "$group"
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
        rm -rf "${place%/*}" "${notes%/*}"
    done
}
