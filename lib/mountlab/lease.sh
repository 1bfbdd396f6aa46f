# lease.sh BASE GRACE LOCK OWNER RUN CLEAN NAME ARGUMENTS...
# Hold the lease on a run: each line on standard input says that the control machine is there. A process that outlives
# this one looks at it, and after GRACE seconds without such a line cleans the box: it runs the script CLEAN.
#   RUN    its name, in the environment of what waits here, by which `box clean` finds that
#   BASE   the run's output directory: when that is gone, the run was closed, and there is nothing to do any more
#   LOCK   the file that names who has the box, and OWNER the name that must stand in it: else it is another's now
base=$1
beat() {
    read -r now _ < /proc/uptime
    printf '%-20s\n' "${now%.*}" 1<> "$base/alive" # in its place, which takes no room that might have gone
}

# shellcheck disable=SC2016 # for the inner shell
watch='
unset MOUNTLAB_LEASE # what cleans must not find, and end, itself
base=$1 grace=$2 lock=$3 owner=$4 run=$5 clean=$6
shift 6
period=$((grace / 10))
[ "$period" -ge 1 ] || period=1
[ "$period" -le 30 ] || period=30
while MOUNTLAB_LEASE=$run sleep "$period"; do
    [ -r "$base/alive" ] || exit
    read -r now _ < /proc/uptime
    read -r seen _ < "$base/alive" || continue
    [ $((${now%.*} - seen)) -ge "$grace" ] || continue
    [ "$(cat "$lock" 2>/dev/null)" = "$owner" ] || exit
    # What is busy now may be free the next time.
    for _ in 1 2 3 4 5 6 7 8 9 10; do
        sh -c "$clean" "$@" 2>/dev/null | grep -q "^[a-z]*	0" || exit
        MOUNTLAB_LEASE=$run sleep "$period"
    done
    exit
done'

umask 077
[ -d "$base" ] || exit
beat || exit
watcher=
[ ! -r "$base/lease" ] || read -r watcher < "$base/lease"
if [ -z "$watcher" ] || [ ! -d "/proc/$watcher" ]; then
    MOUNTLAB_LEASE=$5 setsid sh -c "$watch" mountlab-lease "$@" > /dev/null 2>&1 < /dev/null &
    echo $! > "$base/lease"
fi
while read -r _; do beat || exit; done
