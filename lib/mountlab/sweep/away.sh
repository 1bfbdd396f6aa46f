# Needs contain.sh subvolumes.sh neighbour.sh
# The neighbours of a trial on a client of the run, which sees the same file system. Its head (mountlab.sweep.beside) has what
# neighbour.sh wants, and out, cgroups and look_s. Its clock is that of the client.
#   run      lay out and start them, and look at them as long as standard input is open: as long as somebody over there has
#            the connection
#   wait     until each has moved its first bytes; else print why not, and fail
#   stop     end `run`, and what it has started, and collect; fail where it was killed, or cannot be ended
#   collect  print a tar archive of what they leave to know, and remove all else: after a `stop` that failed, and when their
#            processes were killed
put() { printf '%s\n' "$2" > "$out/$1"; }
lacking() { printf 'mountlab: %s could not be written\n' "$1" >&2; }
# What the kernel of a client complains of is not asked.
trouble() { :; }
finish() { exit 0; }

run() {
    umask 077
    mkdir "$out" && cd "$out" || exit
    put runner $$
    exec 5<&0
    cat <&5 > /dev/null &
    listener=$!
    trap end_run EXIT
    trap 'exit 143' TERM INT HUP
    # Only where its cgroup would lie is wanted.
    # shellcheck disable=SC2034 # for choose_container
    directory='' mount_namespace='' pid_namespace=''
    choose_container
    [ -z "$cgroup" ] || rmdir "$cgroup"
    lay_out_neighbours
    begin_neighbours
    look_at_neighbours look
    put ready yes
    wait "$listener"
}

end_run() {
    kill "$listener"
    [ -z "$beside_began" ] || look_at_neighbours look
    drop_neighbours
    put ended yes
} 2>/dev/null

# Whether `run` goes on, or has not begun. Another process may have its number by now.
runs() {
    { ! read -r runner < "$out/runner"; } 2>/dev/null || grep -qszxF "MOUNTLAB_RUN=$MOUNTLAB_RUN" "/proc/$runner/environ"
}

# $1: a file that `run` makes; $2: how many times 50 ms it has for that.
await() {
    tries=$2
    until [ -e "$out/$1" ]; do
        tries=$((tries - 1))
        { [ "$tries" -gt 0 ] && [ ! -e "$out/ended" ] && runs; } || break
        sleep 0.05
    done
    [ -e "$out/$1" ]
}

collect() {
    [ -d "$out" ] || return 0
    remove_neighbours
    cd "$out" && tar -cf - neighbour* 2>/dev/null
    cd / && rm -rf "$out"
}

case $1 in
run) run ;;
wait)
    await ready $((beside_tries + 200)) && exit
    cat "$out/neighbour_failed" 2>/dev/null
    exit 1 ;;
stop)
    [ -d "$out" ] || exit 0
    ! runs || kill "$runner" 2>/dev/null
    await ended 400 && collect ;;
collect) collect ;;
esac
