# Put in front of trial.sh for a diagnostic trial (mountlab.sweep.traced): perf beside the tool, functions only.
# perf is a child of the trial's shell, outside of the tool's cgroup. Its events are file descriptors of its own process:
# however it ends, nothing of it stays in the kernel. tracefs is mounted in a mount namespace that ends with perf.
# Where no trace can be made the trial says why in `untraced`; perf's own words are in `trace_said`.

untraced() {
    put untraced "$1: $(tail -c 300 "$out/trace_said" | tr '\n' ' ')"
}

# Return when perf records: it starts its command, which says so, only after all events are open.
# shellcheck disable=SC2154 # trace_*: put in front of this text, too
begin_trace() {
    perf='' trace=$out.trace tries=300
    mkdir "$trace" || { lacking trace; finish; }
    if [ -n "$helper" ]; then begin_by_helper; else begin_perf; fi
    true > "$trace/looking"
    look_at_tool > /dev/null 2>&1 < /dev/null &
    looker=$!
}

# shellcheck disable=SC2086 # words before a program, and events
begin_perf() {
    $trace_around sh -c "$trace_perf" perf "$trace" "$trace_s" "$trace_delay_ms" $trace_events > "$out/trace_said" 2>&1 < /dev/null &
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
    $helper 60 "$MOUNTLAB_RUN" record begin "${out##*/}" "$trace_s" "$trace_delay_ms" $trace_events > "$out/trace_said" 2>&1 && return
    untraced 'perf did not begin to record'
    finish
}

end_by_helper() { $helper 120 "$MOUNTLAB_RUN" record end "${out##*/}" 2>> "$out/trace_said"; }

# Whether perf still runs: a process that has ended and was not waited for is there as well.
traces() {
    state=''
    { read -r _ _ state _ < "/proc/$perf/stat"; } 2>/dev/null
    case $state in '' | Z | X) return 1 ;; esac
}

# By SIGINT perf completes its file. Sets ended_by to its exit status.
stop_perf() {
    tries=100
    kill -s INT "$perf" 2>/dev/null
    while traces; do
        [ "$tries" -ne 0 ] || kill -s KILL "$perf"
        tries=$((tries - 1))
        sleep 0.1
    done
    wait "$perf"
    ended_by=$?
    perf=''
    end_command
}

# perf ends its command with itself, unless it is killed.
end_command() {
    name=''
    { read -r pid < "$trace/ready" && read -r name < "/proc/$pid/comm"; } 2>/dev/null
    [ "$name" != sleep ] || kill -s KILL "$pid" 2>/dev/null
}

end_trace() {
    rm -f "$trace/looking"
    tasks
    [ -n "$helper" ] || stop_perf
    wait "$looker"
    keep_sorted trace_fds
    keep_sorted trace_tasks
    if [ -n "$helper" ]; then
        end_by_helper > "$out/trace.data.gz" || untraced 'perf was ended before its record was whole'
    elif [ "$ended_by" -eq 137 ] || [ ! -s "$trace/data" ]; then
        untraced "perf was ended before its record was whole (exit status $ended_by)"
    else
        gzip -1 < "$trace/data" > "$out/trace.data.gz" || lacking trace.data.gz
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
    [ -z "$helper" ] || end_by_helper > /dev/null
    [ -z "$perf" ] || kill -s KILL "$perf" 2>/dev/null
    end_command
    rm -rf "$trace"
}
