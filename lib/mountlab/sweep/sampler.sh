# sampler.sh MILLISECONDS ST_DEV [DEVICE [DIRECTORY [TASKS FILES]]]
# Print the box's counters now and every so many milliseconds, until standard input ends: a pipe without a writer, held
# by what runs beside us, so that we never outlive it. One line each, as mountlab.filesystems.counters_over_time reads it:
#     UPTIME CLOCK;user nice system idle ...;TOTAL of the memory pressure;DIRTY WRITEBACK in kB;MAJOR:MINOR its counters;...
# What the box does not count is empty. No process is started but before the first line, so there is no `sleep`: `read`
# waits, in a shell that lets it wait for a part of a second (the fact `sampling_shell`). After a hundred lines the time
# between two is twice as long, and so on: a trial of a week has some thousand lines.
#   ST_DEV     of the directory under test, as stat(1) prints it
#   DEVICE     the block device under test, where ST_DEV is not it
#   DIRECTORY  on the file system below an overlay
#   TASKS      lists the threads of a watched program, or is the number of a process above it: their open files are added
#              to FILES five times in the first ten lines, and then with every tenth line; for that a process is started
# shellcheck disable=SC2039,SC3028,SC3045 # its shell is one that has these, or leaves EPOCHREALTIME empty
LC_ALL=C
ms=$1 own=$2 device=${3:-} below=${4:-} tasks=${5:-} files=${6:-}
set -f

# 'major:minor' of the decimal st_dev of $1, by the encoding of <sys/sysmacros.h>.
number_of() { number=$(($1 >> 8 & 0xFFF)):$(($1 & 0xFF | $1 >> 12 & 0xFFF00)); }

# The device, and what holds the image of a loop device, downwards.
find_chain() {
    chain=''
    [ -z "$below" ] || own=$(stat -c %d "$below") || return
    number_of "$own"
    [ ! -r "/sys/class/block/${device##*/}/dev" ] || read -r number < "/sys/class/block/${device##*/}/dev"
    for _ in 1 2 3 4; do
        [ -r "/sys/dev/block/$number/stat" ] || return
        chain="$chain $number"
        read -r image < "/sys/dev/block/$number/loop/backing_file" && own=$(stat -c %d "$image") || return
        number_of "$own"
    done
}

line() {
    cpu='' total='' memory='' devices=''
    read -r up _ < /proc/uptime
    clock=${EPOCHREALTIME:-}
    read -r _ cpu < /proc/stat
    read -r _ _ _ _ total < /proc/pressure/memory
    read -r -d '' memory < /proc/meminfo
    dirty=${memory#*Dirty:} writeback=${memory#*Writeback:}
    for number in $chain; do
        read -r counters < "/sys/dev/block/$number/stat" && devices="$devices;$number $counters"
    done
    # shellcheck disable=SC2086 # so several blanks become one
    echo $up $clock\;$cpu\;${total#total=}\;${dirty%%kB*}${writeback%%kB*}$devices
}

MOST_THREADS=64
# What is seen has an end without a process for that: a file ends at 16 or 32 MiB, by the blocks of the shell.
if [ -n "$files" ]; then
    trap '' XFSZ
    ulimit -f 32768
fi
look_at_files() {
    [ -n "$tasks" ] && { [ $((lines % 10)) = 0 ] || [ $((lines % 2 + lines / 10)) = 0 ]; } || return 0
    set --
    case $tasks in
    /*)
        while read -r thread; do
            set -- "$@" "/proc/$thread/fd"
            [ $# -lt "$MOST_THREADS" ] || break
        done < "$tasks" ;;
    *)
        next=$tasks
        while [ -n "$next" ] && [ $# -lt "$MOST_THREADS" ]; do
            processes=$next next=''
            for process in $processes; do
                [ "$process" != $$ ] || continue # this shell
                set -- "$@" "/proc/$process/fd"
                read -r children < "/proc/$process/task/$process/children" && next="$next $children"
            done
        done ;;
    esac
    [ $# -gt 0 ] || return 0
    { echo look; ls -ln "$@"; echo; } >> "$files" # not the names of users, which may come from a network
}

# Waits for so long, and returns whether the trial goes on. Some shells report a timeout as they report an end.
wait_for() {
    read -r -t "$1" _
    [ $? -le 128 ] || return 0
    read -r now _ < /proc/uptime
    [ $((2 * (${now%.*}${now#*.} - ${up%.*}${up#*.}) * 10)) -ge "$ms" ]
}

find_chain
lines=0
while line; do
    lines=$((lines + 1))
    look_at_files
    [ $((lines % 100)) -ne 0 ] || ms=$((2 * ms))
    part=$((1000 + ms % 1000))
    wait_for "$((ms / 1000)).${part#1}" || { line; exit; }
done 2>/dev/null
