# sh -s BASE END, which reads this, and then what is asked of it, each as
#     { asked() { "$@" COMMAND...; }
#     job NUMBER LIMIT BOOT
#     }
# (without its last line it is not run: a connection may break in the middle of a command).
# Run COMMAND once, whatever becomes of the connection: detached, with its output in files of BASE, the run's own output
# directory. Asked again with the same NUMBER, wait for the same command, or tell what it said; never run it twice.
#   END     marks the end of an answer: a random word, known to the two sides only
#   NUMBER  counts the commands of one session: what an earlier number said has been read, and is thrown away
#   LIMIT   in seconds; then it is ended
#   BOOT    the boot id that the session began with; '' where it begins
# Answers with a line, `mountlab-job WORD ...`, and after `done STATUS CENTISECONDS BOOT` the output of COMMAND; END, what
# it said on standard error, END once more.
# The other words: `restarted BOOT` (the box was started again meanwhile), `gone BOOT` (the run was closed, or the box cleaned),
# `died BOOT` (somebody killed what keeps the output), `unable BOOT` (no room in BASE), `stale BOOT` (a later one was begun).
# This shell stays for the next command: to start one takes longer than many a trial. What it does not need a process
# for it does itself.
base=$1 end=$2
umask 077

say() { printf 'mountlab-job %s\n' "$*"; }

# Of a fixed length from the beginning, and written in its place afterwards: that takes no room which might have gone.
state() { printf '%-40s\n' "$*" 1<> "$job"; }

# Files whose answer was read are emptied at once, and removed from time to time: rm is a process.
forget() {
    for old in "$base/job.$((number - 1)).out" "$base/job.$((number - 1)).err"; do [ ! -e "$old" ] || true > "$old"; done
    [ $((number % 64)) -eq 0 ] || return 0
    set --
    for old in "$base"/job.*; do
        age=${old#"$base"/job.} age=${age%%.*}
        [ "$age" -ge $((number - 32)) ] || set -- "$@" "$old"
    done
    [ $# -eq 0 ] || rm -f "$@"
}

# Called by `asked`, with COMMAND.
run() {
    case $1:$2 in env:MOUNTLAB_RUN=*) export "${2?}" && shift 2 ;; esac # saves the process of env
    timeout -k 5 "$limit" "$@" > "$job.out" 2> "$job.err"
}

# In a process of its own, whose number it reads: $$ is that of the shell which started it.
keep() {
    read -r self _ < /proc/self/stat
    state running "$self"
    read -r began _ < /proc/uptime
    asked run
    status=$?
    read -r ended _ < /proc/uptime
    state "done $status $((${ended%.*} * 100 + 1${ended#*.} - ${began%.*} * 100 - 1${began#*.}))"
}

# Whether it was never begun. (No builtin that ends the shell where a file cannot be made.)
begins() {
    set -C
    { true > "$job"; } 2>/dev/null
    began=$?
    set +C
    return "$began"
}

# What most commands say finds room in what is taken, and given back, right before.
has_room() {
    { printf '%-40s\n' running > "$job" && echo "$number" > "$base/last" && true > "$job.err" \
        && printf '%16384s' '' > "$job.out" && true > "$job.out"; } 2>/dev/null && return
    rm -f "$job" "$job.out" "$job.err"
    return 1
}

# Sets word, status and took to how it ended.
await() {
    while :; do
        word='' status=''
        [ -e "$job" ] || { word=unable; return; }
        read -r word status took _ < "$job"
        [ "$word" != "done" ] || return
        # Of one that has only begun the number is not known yet. A process that is gone has written before it went.
        if [ -n "$status" ] && [ ! -d "/proc/$status" ]; then
            read -r word status took _ < "$job"
            [ "$word" = "done" ] || word=died
            return
        fi
        sleep 0.2 2>/dev/null || sleep 1
    done
}

answer() {
    read -r boot < /proc/sys/kernel/random/boot_id
    [ -z "$expected" ] || [ "$expected" = "$boot" ] || { say restarted "$boot"; return; }
    [ -f "$base/alive" ] || { say gone "$boot"; return; } # BASE itself may have been kept by what is not ours in it
    job=$base/job.$number
    last=0
    [ ! -r "$base/last" ] || read -r last < "$base/last"
    [ "$number" -ge "${last:-0}" ] || { say stale "$boot"; return; }
    if begins; then
        has_room || { say unable "$boot"; return; }
        forget
        keep > /dev/null 2>&1 < /dev/null &
        wait $!
    fi
    await
    [ "$word" = "done" ] || { say "$word" "$boot"; return; }
    say "done" "$status" "$took" "$boot"
    [ ! -s "$job.out" ] || cat "$job.out"
}

job() {
    number=$1 limit=$2 expected=$3 job=
    answer
    printf '%s out\n' "$end"
    [ ! -s "$job.err" ] || cat "$job.err"
    printf '%s\n' "$end"
}
