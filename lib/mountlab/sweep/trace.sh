# Of a diagnostic trial (mountlab.sweep.traced): perf beside the tool, functions only.
# A shell (box/perf.sh) with two perfs is a child of the trial's shell, outside of the tool's cgroup. Their events are file
# descriptors of their own processes: however they end, nothing of them stays in the kernel. tracefs is mounted in a mount
# namespace that ends with them. The system calls that they record are those of this shell and of all that it starts;
# `trace_tool` has the number of the process below which the tool runs.
# Where no trace can be made the trial says why in `untraced`; perf's own words are in `trace_said`.

untraced() {
    put untraced "$1: $(grep -v '^Events ' "$out/trace_said" | tail -c 200 | tr '\n' ' ')"
}

# Return when perf records: it starts its command, which says so, only after all events are open.
# shellcheck disable=SC2154 # trace_*: put in front of this text, too
begin_trace() {
    perf='' trace=$out.trace tries=300
    mkdir "$trace" || { lacking trace; finish; }
    look_at_tool > /dev/null 2>&1 < /dev/null & # before perf, which would record what it does itself
    looker=$!
    if [ -n "$helper" ]; then begin_by_helper; else begin_perf; fi
    true > "$trace/looking"
}

# shellcheck disable=SC2086 # words before a program, and events
begin_perf() {
    $trace_around sh -c "$trace_perf" perf "$trace" "$trace_s" "$trace_delay_ms" $$ "$trace_calls" $trace_events > "$out/trace_said" 2>&1 < /dev/null &
    perf=$!
    until [ -e "$trace/ready" ]; do
        tries=$((tries - 1))
        if ! traces || [ "$tries" -le 0 ]; then
            stop_perf
            untraced 'perf did not begin to record'
            finish
        fi
        sleep 0.05
    done
}

# The helper of the box lets perf record, in a directory of root's (box/helper/record.sh).
# shellcheck disable=SC2086 # words before a program, and events
begin_by_helper() {
    $helper 60 "$MOUNTLAB_RUN" record begin "${out##*/}" "$trace_s" "$trace_delay_ms" $$ "$trace_calls" $trace_events > "$out/trace_said" 2>&1 && return
    untraced 'perf did not begin to record'
    finish
}

# Its three files, one after the other.
end_by_helper() {
    $helper 120 "$MOUNTLAB_RUN" record end "${out##*/}" data > "$out/trace.data.gz" \
        && $helper 120 "$MOUNTLAB_RUN" record end "${out##*/}" calls > "$out/trace_calls.data.gz" \
        && $helper 120 "$MOUNTLAB_RUN" record end "${out##*/}" windows > "$out/trace_windows"
} 2>> "$out/trace_said"

# Whether perf still runs: a process that has ended and was not waited for is there as well.
traces() {
    state=''
    { read -r _ _ state _ < "/proc/$perf/stat"; } 2>/dev/null
    case $state in '' | Z | X) return 1 ;; esac
}

# By SIGTERM the records are completed. Sets ended_by to the exit status.
stop_perf() {
    tries=100
    kill -s TERM "$perf" 2>/dev/null
    while traces; do
        [ "$tries" -ne 0 ] || kill -s KILL "$perf"
        tries=$((tries - 1))
        sleep 0.1
    done
    wait "$perf"
    ended_by=$?
    perf=''
    end_perfs
}

# Where their shell was killed, they and the commands that they started are left.
end_perfs() {
    for pid in $(cat "$trace/perfs" "$trace/data.ready" "$trace/calls.ready" 2>/dev/null); do
        name=''
        { read -r name < "/proc/$pid/comm"; } 2>/dev/null
        case $name in perf | sleep) kill -s KILL "$pid" 2>/dev/null ;; esac
    done
}

end_trace() {
    rm -f "$trace/looking"
    tasks
    [ -n "$helper" ] || stop_perf
    wait "$looker"
    keep_sorted trace_fds
    keep_sorted trace_tasks
    if [ -n "$helper" ]; then
        end_by_helper || untraced 'perf was ended before its record was whole'
    elif [ "$ended_by" -eq 137 ] || [ ! -s "$trace/data" ] || [ ! -s "$trace/calls" ]; then
        untraced "perf was ended before its record was whole (exit status $ended_by)"
    else
        gzip -1 < "$trace/data" > "$out/trace.data.gz" || lacking trace.data.gz
        gzip -1 < "$trace/calls" > "$out/trace_calls.data.gz" || lacking trace_calls.data.gz
        cat "$trace/windows" > "$out/trace_windows" || lacking trace_windows
    fi
    rm -rf "$trace"
    trace=''
}

keep_sorted() {
    sort -u "$trace/$1" 2>/dev/null | head -c 1048576 > "$out/$1" || lacking "$1"
}

# The threads of the box by name: "TID NAME".
tasks() {
    for comm in /proc/[0-9]*/task/[0-9]*/comm; do
        tid=${comm%/comm} tid=${tid##*/} name=''
        { read -r name < "$comm"; } 2>/dev/null && printf '%s %s\n' "$tid" "$name"
    done >> "$trace/trace_tasks"
}

# What the tool has open soon after the window begins, looked at less and less often (a busy box begins late): "PID FD LINK". Best effort: some tools open each file only briefly.
look_at_tool() {
    waits=1300 # 65 s: more than a record takes to begin
    until [ -e "$trace/looking" ]; do
        waits=$((waits - 1))
        { [ "$waits" -gt 0 ] && [ -d "$trace" ]; } || return
        sleep 0.05
    done
    steps=$trace_delay_s
    while [ "$steps" -gt 0 ]; do
        [ -e "$trace/looking" ] || return
        steps=$((steps - 1))
        sleep 1
    done
    for pause in 0.1 0.2 0.4 0.8 1.6 3.2; do
        sleep "$pause"
        [ -e "$trace/looking" ] || return
        look
        tasks
    done
}

look() {
    set --
    for each in $(tool_processes); do
        ! leads "$each" || set -- "$@" "/proc/$each/fd"
    done
    ls -lq "$@" /dev/null | awk '
        /^\/proc\/[0-9]+\/fd:$/ { split($0, part, "/"); pid = part[3]; next }
        pid && (at = index($0, " -> ")) { n = split(substr($0, 1, at - 1), word, " "); print pid, word[n], substr($0, at + 4) }
    ' >> "$trace/trace_fds"
} 2>/dev/null

tool_processes() {
    if [ -n "$cgroup" ]; then cat "$members"; else
        grep -lszF "MOUNTLAB_TRIAL=$out/." /proc/[0-9]*/environ | sed 's/[^0-9]//g'
    fi
}

# When the trial ends before its time.
drop_trace() {
    [ -z "$helper" ] || $helper 120 "$MOUNTLAB_RUN" record end "${out##*/}" none
    [ -z "$perf" ] || kill -s KILL "$perf" 2>/dev/null
    end_perfs
    rm -rf "$trace"
}
