# Becomes `perf record`: in a mount namespace of its own, run for a diagnostic trial (sweep/trace.sh, box/helper/record.sh).
# perf.sh DIRECTORY SECONDS DELAY_MS EVENT...
# DIRECTORY gets `ready` when all events are open, and `data`. SECONDS: after them it ends by itself. EVENT: as perf has it.
place=$1 seconds=$2 delay=$3
shift 3
[ -d /sys/kernel/tracing/events ] || mount -t tracefs tracefs /sys/kernel/tracing || exit 1
for event; do
    shift
    set -- "$@" -e "$event"
    # Without its own system calls: each write of its file would be an event, and so one more write.
    case $event in syscalls:*) set -- "$@" --filter "common_pid != $$" ;; esac
done
# Without settings of the user's, and without the files that perf would leave in his home. 2048 pages are 8 MiB a processor.
export PERF_CONFIG=/dev/null
# shellcheck disable=SC2016 # for the shell that perf starts
exec perf record -a --no-buildid --no-buildid-cache -k CLOCK_MONOTONIC -m 2048 --max-size 48M -D "$delay" "$@" \
    -o "$place/data" \
    -- sh -c 'echo $$ > "$0/began" && mv "$0/began" "$0/ready" && exec sleep "$1"' "$place" "$seconds"
