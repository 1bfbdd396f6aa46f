# Records a diagnostic trial, in a mount namespace of its own (sweep/trace.sh, box/helper/record.sh), by two perfs: what all
# threads and devices do, all the time; and the system calls of one process and of all that it starts from now on. These
# cost a tool two events an operation. Where that is more than LIMIT thousandths of the time they are recorded in windows.
# perf.sh DIRECTORY SECONDS DELAY_MS PID CALLS EVENT...
# DIRECTORY gets `ready` when all events are open; `data` and `calls`; and `windows`, with times (ns since 1970) between which
# system calls were recorded on all processors. At SIGTERM both records are completed. SECONDS: after them both end by
# themselves. CALLS: numbers of system calls, separated by commas. EVENT: as perf has it.
place=$1 seconds=$2 delay=$3 pid=$4 filter="id == $(echo "$5" | sed 's/,/ || id == /g')"
shift 5
limit=30
[ -d /sys/kernel/tracing/events ] || mount -t tracefs tracefs /sys/kernel/tracing || exit 1
# A stack costs more than all else of a switch. It is needed of a thread that goes to sleep (1: interruptible, 2: not), to say
# what for; not of one that could run on, of a worker without work (128: idle), nor of ksoftirqd, which waits for nothing else.
sleeps='prev_state & 3 && !(prev_comm ~ "ksoftirqd*")'
others='!(prev_state & 3) || prev_comm ~ "ksoftirqd*"'
for event; do
    shift
    set -- "$@" -e "$event"
    case $event in sched:sched_switch/*) set -- "$@" --filter "$sleeps" -e sched:sched_switch --filter "$others" ;; esac
done
# Without settings of the user's, and without the files that perf would leave in his home.
export PERF_CONFIG=/dev/null
calls=''

# $1: its file. The command that perf starts says that all events are open, and ends perf after SECONDS.
record() {
    name=$1
    shift
    # shellcheck disable=SC2016 # for the shell that perf starts
    exec perf record --no-buildid --no-buildid-cache -k CLOCK_MONOTONIC "$@" -o "$place/$name" \
        -- sh -c 'echo $$ > "$0.began" && mv "$0.began" "$0.ready" && exec sleep "$1" 9>&-' "$place/$name" "$seconds"
}

# Whether a perf still runs: a process that has ended and was not waited for is there as well.
runs() {
    state=''
    { read -r _ _ state _ < "/proc/$1/stat"; } 2>/dev/null
    case $state in '' | Z | X) return 1 ;; esac
}

await() { # NAME PID
    until [ -e "$place/$1.ready" ]; do
        runs "$2" || finish
        sleep 0.02
    done
}

# perf ends its command with itself, unless it is killed.
finish() {
    trap '' TERM
    status=0
    for each in $whole $calls; do kill -s INT "$each" 2>/dev/null; done
    for each in $whole $calls; do
        wait "$each"
        ended=$?
        [ "$status" -ne 0 ] || status=$ended
    done
    sed -n '/^Events /!s/^/calls: /p' "$place/calls_said" >&2
    for name in data calls; do
        process='' program=''
        { read -r process < "$place/$name.ready" && read -r program < "/proc/$process/comm"; } 2>/dev/null
        [ "$program" != sleep ] || kill -s KILL "$process" 2>/dev/null
    done
    exit "$status"
}

# 2048 pages are 8 MiB a processor.
record data -a -m 2048 --max-size 48M -D "$delay" --kernel-callchains "$@" &
whole=$!
trap finish TERM
mkfifo "$place/control" "$place/done" && exec 8<> "$place/control" 9<> "$place/done" || finish
record calls -p "$pid" -m 1024 --max-size 24M -D -1 --control fd:8,9 \
    -e raw_syscalls:sys_enter --filter "$filter" -e raw_syscalls:sys_exit --filter "$filter" 2> "$place/calls_said" &
calls=$!
# Only perf writes there: where it has ended a read meets the end of the file.
exec 7< "$place/done" 9>&-
echo "$whole $calls" > "$place/perfs"
await data "$whole"
await calls "$calls"
# Where this shell came late, windows would be longer than they should be.
renice -n -15 -p $$ > /dev/null 2>&1

# $1: enable|disable. Returns when perf has done that, which on a busy machine takes it milliseconds.
order() {
    echo "$1" >&8
    read -r _ <&7
}

note() { date "+$1 %s%N" >> "$place/windows"; }

# now: since boot, in hundredths of a second. Without a process.
clock() {
    read -r now _ < /proc/uptime
    now=${now%.*}${now#*.}
}

size_of_calls() { size=$(wc -c < "$place/calls"); }

order enable
note enable
ln "$place/data.ready" "$place/ready"
size_of_calls
clock
look=2 costly='' # look: hundredths of a second
while runs "$whole" && runs "$calls"; do
    before=$size since=$now
    sleep "0.$((look / 10))$((look % 10))"
    order enable # changes nothing, and perf writes down what it has
    sleep 0.01
    size_of_calls
    clock
    # An event has about 112 bytes, and costs its thread about 0.75 us: 1 MB in 0.01 s would be 670 thousandths of it.
    took=$((now > since ? now - since : 1))
    cost=$(((size - before) / 1500 / took))
    if [ "$cost" -gt "$limit" ]; then
        note disable
        order disable
        pause=$((took * (cost - limit) / limit))
        [ "$pause" -ge 5 ] || pause=5
        # So many calls tell enough in one window a second.
        if [ "$cost" -gt 300 ] || [ "$pause" -gt 99 ]; then pause=99; fi
        sleep "0.$((pause / 10))$((pause % 10))"
        order enable
        note enable
        size_of_calls
        clock
        # The first one is short: a tool that has just begun may soon make many more calls.
        if [ "$cost" -gt 300 ]; then look=1; elif [ -n "$costly" ]; then look=10; else look=2; fi
        costly=yes
    else
        costly=''
        if [ "$look" -lt 4 ] || { [ "$cost" -gt 0 ] && [ "$look" -lt 10 ]; }; then look=$((look + 1)); fi
    fi
done
finish
