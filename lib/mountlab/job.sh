# job.sh BASE NUMBER LIMIT BOOT COMMAND...
# Run COMMAND once, whatever becomes of the connection: detached, with its output in files of BASE, the run's own output
# directory. Asked again with the same NUMBER, wait for the same command, or tell what it said; never run it twice.
#   NUMBER  counts the commands of one session: what an earlier number said has been read, and is thrown away
#   LIMIT   in seconds; then it is ended
#   BOOT    the boot id that the session began with; '' where it begins
# Prints a line, `mountlab-job WORD ...`, and after `done STATUS CENTISECONDS BOOT` the output of COMMAND.
# The other words: `restarted BOOT` (the box was started anew meanwhile), `gone BOOT` (BASE is not there any more),
# `died BOOT` (somebody killed what keeps the output), `unable BOOT` (no room in BASE), `stale BOOT` (a later one was begun).
base=$1 number=$2 limit=$3 expected=$4
shift 4
read -r boot < /proc/sys/kernel/random/boot_id
say() { printf 'mountlab-job %s\n' "$*"; }
[ -z "$expected" ] || [ "$expected" = "$boot" ] || { say restarted "$boot"; exit; }
[ -d "$base" ] || { say gone "$boot"; exit; }
umask 077
job=$base/job.$number
last=0
[ ! -r "$base/last" ] || read -r last < "$base/last"
[ "$number" -ge "${last:-0}" ] || { say stale "$boot"; exit; }

# Of a fixed length from the beginning, and written in its place afterwards: that takes no room which might have gone.
state() { printf '%-40s\n' "$*"; }

# Files of what has been read are emptied at once, and removed from time to time: each rm is a process.
forget() {
    for done in "$base/job.$((number - 1)).out" "$base/job.$((number - 1)).err"; do [ ! -e "$done" ] || : > "$done"; done
    [ $((number % 64)) -eq 0 ] || return 0
    for done in "$base"/job.*; do
        old=${done#"$base"/job.} old=${old%%.*}
        [ "$old" -ge $((number - 32)) ] || rm -f "$done"
    done
}

# shellcheck disable=SC2016 # for the inner shell
keep='
job=$1 limit=$2
shift 2
state() { printf "%-40s\n" "$*" 1<> "$job"; }
state running $$
read -r began _ < /proc/uptime
timeout -k 5 "$limit" "$@" > "$job.out" 2> "$job.err" < /dev/null
status=$?
read -r ended _ < /proc/uptime
state "done $status $((${ended%.*} * 100 + 1${ended#*.} - ${began%.*} * 100 - 1${began#*.}))"'

unable() {
    say unable "$boot"
    exit
}

if (set -C; : > "$job") 2>/dev/null; then
    # What most commands say finds room in what is taken, and given back, right before.
    if ! { state running > "$job" && echo "$number" > "$base/last" && : > "$job.err" \
        && printf '%16384s' '' > "$job.out" && : > "$job.out"; } 2>/dev/null; then
        rm -f "$job" "$job.out" "$job.err"
        unable
    fi
    forget
    setsid sh -c "$keep" mountlab-job "$job" "$limit" "$@" > /dev/null 2>&1 < /dev/null &
    wait $!
fi
while :; do
    [ -e "$job" ] || unable
    word='' status=''
    read -r word status took _ < "$job"
    [ "$word" != "done" ] || break
    # Of one that has only begun the number is not known yet. A process that is gone has written before it went.
    if [ -n "$status" ] && [ ! -d "/proc/$status" ]; then
        read -r word status took _ < "$job"
        break
    fi
    sleep 0.2 2>/dev/null || sleep 1
done
[ "$word" = "done" ] || { say died "$boot"; exit; }
say "done" "$status" "$took" "$boot"
cat "$job.out"
[ ! -s "$job.err" ] || cat "$job.err" >&2
