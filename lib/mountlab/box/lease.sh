# lease.sh BASE GRACE RUN COMMAND...
# Hold the lease on a run: each line on standard input says that the control machine is there. A process that outlives
# this one looks at it, and after GRACE seconds without such a line cleans the box: it runs COMMAND (leftovers.sh), which
# touches only what the owner of the lease still has. Both end with the run, whatever became of the connection: close ends them.
#   RUN    its name, in the environment (MOUNTLAB_LEASE) of this and of what waits here, by which close and `box clean` find them
#   BASE   the run's output directory: without its file `alive` the run is closed, and there is nothing to do any more
base=$1
beat() {
    [ -f "$base/alive" ] || return
    read -r now _ < /proc/uptime
    printf '%-20s\n' "${now%.*}" 1<> "$base/alive" # in its place, which takes no room that might have gone
}

# shellcheck disable=SC2016 # for the inner shell
watch='
unset MOUNTLAB_LEASE # what cleans must not find, and end, itself
base=$1 grace=$2 run=$3
shift 3
period=$((grace / 10))
[ "$period" -ge 1 ] || period=1
[ "$period" -le 30 ] || period=30
while MOUNTLAB_LEASE=$run sleep "$period"; do
    [ -r "$base/alive" ] || exit
    read -r now _ < /proc/uptime
    read -r seen _ < "$base/alive" || continue
    [ $((${now%.*} - seen)) -ge "$grace" ] || continue
    # What is busy now may be free the next time. What is not ours stays for good.
    # A command that fails has not cleaned, whatever it printed.
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        if leftovers=$("$@" 2>/dev/null); then
            printf "%s\n" "$leftovers" | grep -v "^foreign" | grep -q "^[a-z]*	0" || exit
        fi
        MOUNTLAB_LEASE=$run sleep "$period"
    done
    exit
done'

umask 077
beat || exit
watcher=
[ ! -r "$base/lease" ] || read -r watcher < "$base/lease"
# Another process may have its number by now.
if [ -z "$watcher" ] || ! tr '\0' '\n' 2>/dev/null < "/proc/$watcher/environ" | grep -qxF "MOUNTLAB_LEASE=$3"; then
    MOUNTLAB_LEASE=$3 setsid sh -c "$watch" mountlab-lease "$@" > /dev/null 2>&1 < /dev/null &
    echo $! > "$base/lease"
fi
while read -r _; do beat || exit; done
