# perf for a diagnostic trial, where root permits it: read by helper.sh, functions only. A trial's record lies in a directory
# of root's in that of the run. perf outlives the command that began it: it ends by `end`, after its time, or with the other
# processes of the run. System calls are those of a process of the user's, and of what it starts.

an_event() { # group:name, with a stack or without, of the groups that explain an operation; or samples of the processors
    event=${1%/call-graph=fp/}
    case $1 in
    cpu-clock/freq=*,call-graph=fp/)
        event=${1#cpu-clock/freq=}
        number "${event%,call-graph=fp/}" && [ "${event%,call-graph=fp/}" -le 1000 ]
        return
        ;;
    esac
    case $event in
    sched:* | block:* | io_uring:* | jbd2:* | workqueue:* | vmscan:* | writeback:*) ;;
    *) return 1 ;;
    esac
    case ${event#*:} in '' | *[!a-z0-9_]*) return 1 ;; esac
}

events() { for event; do an_event "$event" || refuse "$event is no event for a trace"; done; }

trace_kernel() {
    permitted
    events "$@"
    exec sh "$lib/tracing.sh" "$@"
}

of_diagnostic() { # TRIAL: sets `record` to its directory
    permitted
    case $1 in x*) number "${1#x}" || refuse "$1 is no diagnostic trial" ;; *) refuse "$1 is no diagnostic trial" ;; esac
    record=$run_dir/$1
}

# Whether perf of a record still runs. Its number alone would not tell: it may be of another process by now.
records() { # DIRECTORY: sets `perf`
    perf=''
    { read -r perf <"$1/perf" && grep -qzxF "MOUNTLAB_RUN=$run" "/proc/$perf/environ"; } 2>/dev/null
}

begin_record() { # TRIAL SECONDS DELAY_MS PID CALLS EVENT...
    of_diagnostic "$1"
    shift
    number "$1" && number "$2" && [ "$1" -le 99999 ] || refuse "$1 seconds after $2 milliseconds"
    number "$3" && [ "$(stat -c %u "/proc/$3" 2>/dev/null)" = "$uid" ] || refuse "$3 is no process of $user's"
    case $4 in '' | *[!0-9,]* | ,* | *, | *,,*) refuse "$4 are no numbers of system calls" ;; esac
    for other in "$run_dir"/x*; do
        [ -d "$other" ] && [ -O "$other" ] || continue
        ! records "$other" || refuse "another trial of this run is recorded"
        rm -rf --one-file-system -- "$other" # of a trial that was killed
    done
    (shift 4 && events "$@") || exit 1
    mkdir -m 700 -- "$record" || exit
    # shellcheck disable=SC2016 # for the shell that waits
    setsid sh -c 'unshare -m --propagation slave sh "$0/perf.sh" "$@" & echo $! >"$1/perf"; wait $!; echo $? >"$1/status"' \
        "$lib" "$record" "$@" >"$record/said" 2>&1 7>&- &
    tries=300
    until [ -e "$record/ready" ]; do
        tries=$((tries - 1))
        if [ -e "$record/status" ] || [ "$tries" -le 0 ]; then
            stop_record
            tail -c 300 "$record/said" >&2
            rm -rf -- "$record"
            exit 1
        fi
        sleep 0.05
    done
}

# The records are completed by SIGTERM. Where their shell was killed, perfs and what they started are left.
stop_record() {
    tries=100
    ! records "$record" || kill -s TERM "$perf"
    while records "$record" && [ "$tries" -gt 0 ]; do
        tries=$((tries - 1))
        sleep 0.1
    done
    if records "$record"; then
        kill -s KILL "$perf"
    fi
    for pid in $(cat "$record/perfs" "$record/data.ready" "$record/calls.ready" 2>/dev/null); do
        name=''
        { read -r name <"/proc/$pid/comm"; } 2>/dev/null
        case $name in perf | sleep) kill -s KILL "$pid" 2>/dev/null ;; esac
    done
    tries=20
    until [ -e "$record/status" ] || [ "$tries" -le 0 ]; do
        tries=$((tries - 1))
        sleep 0.05
    done
}

end_record() { # TRIAL data|calls|windows|none: prints that file, the first two compressed; after the last two it is gone
    of_diagnostic "$1"
    [ -d "$record" ] || refuse "$1 is not recorded"
    case $2 in data | calls | windows | none) ;; *) refuse "record end $*" ;; esac
    stop_record
    status='unknown'
    { read -r status <"$record/status"; } 2>/dev/null
    if [ "$status" = unknown ] || [ "$status" = 137 ] || [ ! -s "$record/data" ] || [ ! -s "$record/calls" ]; then
        tail -c 300 "$record/said" >&2
        rm -rf -- "$record"
        refuse "perf was ended before its record was whole (exit status $status)"
    fi
    case $2 in
    data | calls) exec gzip -1 <"$record/$2" ;;
    windows) cat "$record/windows" ;;
    esac
    status=$?
    rm -rf -- "$record" # also where its reader has gone
    exit "$status"
}
