# One trial, whole, in one round trip. The control side puts the variables and the functions prepare, warm,
# load_program and measured in front of this text (mountlab.plan). Prints a tar archive of $out and leaves nothing behind.
refuse() {
    printf '%s\n' "$1" > "$out/refused"
    finish
}

finish() {
    cd / || exit 95
    tar -C "$out" -cf - .
    exit 0
}

# The last mount on $mountpoint must be of $fstype; '' stands for a directory that was there before us, '*' for any type,
# raw for the block device $target, which must not be mounted.
expected_mount() {
    case $fstype in
    '') return ;;
    raw)
        [ -b "$target" ] || return
        device=$(readlink -f "$target")
        ! grep -q " $(cat "/sys/class/block/${device##*/}/dev") / " /proc/self/mountinfo
        return ;;
    esac
    awk -v m="$mountpoint" -v t="$fstype" '
        $5 == m { for (i = 7; i < NF; i++) if ($i == "-") found = $(i + 1) }
        END { exit !(found == t || (t == "*" && found != "")) }' /proc/self/mountinfo
}

# `times` is what our children took.
snapshot() {
    {
        tail -v -n +1 /proc/diskstats /proc/vmstat /proc/stat /proc/pressure/* /proc/loadavg \
            /sys/devices/system/cpu/cpu*/thermal_throttle/*_throttle_count
        echo '==> times <=='
        times
    } > "$out/$1" 2>/dev/null
}

# The wall clock, between two looks at the time since the start, which nobody sets: however long the machine keeps us
# waiting in between, what the wall clock did lies within what they permit. The builtin takes no process.
stamp() {
    read -r earliest _ < /proc/uptime
    date +%s%N > "$out/$1"
    read -r latest _ < /proc/uptime
    uptimes="$uptimes$earliest $latest "
}

# What only has to be seen afterwards: the kernel's thread that writes inode tables, where mkfs left them to it, and what
# the kernel logged. It logs each dropping of the caches, with our number: what came after that is of this trial.
kernel_says() {
    if [ -n "$lazy" ]; then
        running=0
        for name in /proc/[0-9]*/comm; do
            { read -r name < "$name"; } 2>/dev/null
            [ "$name" != ext4lazyinit ] || running=1
        done
        printf '==> ext4lazyinit <==\n%s\n' "$running"
    fi
    # How much of the files is in the page cache, where direct I/O was to go past it.
    if [ -n "$direct" ] && resident=$(fincore -b -n -r -o RES "$directory"/* 2>/dev/null); then
        printf '==> resident <==\n%s\n' "$resident"
    fi
    read -r started < "$out/started_ns"
    read -r ended < "$out/ended_ns"
    # To read it takes some milliseconds. What a kernel complains of (timeouts, retries) takes longer than half a second.
    [ "$dropped" = yes ] && [ $((ended - started)) -gt 500000000 ] || return
    log=$(kernel_log 2>/dev/null | awk -v mark="($dropper): drop_caches" '
        index($0, mark) { n = 0; seen = 1; next }
        match($0, /^<[0-9]+>/) && substr($0, 2, RLENGTH - 2) % 8 <= 4 && n < 50 { line[n++] = $0 }
        END { for (i = 0; i < n; i++) print line[i]; exit !seen }') && printf '==> kernel <==\n%s\n' "$log"
}

# With a helper on the box `dropper` is then the number of its process, by which the kernel's log tells it.
drop_all() {
    if [ -n "$helper" ]; then dropper=$($helper 60 - drop_caches); else echo 3 > /proc/sys/vm/drop_caches; fi
}

kernel_log() { if [ -n "$helper" ]; then $helper 60 - dmesg; else dmesg -r; fi; }

drop_caches() {
    sync
    [ "$cache" = as_is ] && return
    if drop_all 2>/dev/null; then
        dropped=yes
        echo drop_caches > "$out/cache"
    else # without root: ask the kernel to forget the pages of our own files only
        find "$directory" -type f -exec dd if={} iflag=nocache count=0 status=none \;
        echo fadvise > "$out/cache"
    fi
}

umask 077
dropped=
uptimes=
dropper=$$
trap 'rm -rf "$directory" "$out"' EXIT
trap 'exit 143' TERM INT HUP
mkdir "$out" || exit 95
cd "$out" || exit 95
expected_mount || refuse "no $fstype is ${target:+free at }${target:-mounted on $mountpoint}"
mkdir "$directory" 2> "$out/refused" || finish
[ "$(stat -c %d "$directory")" = "$(stat -c %d "$mountpoint")" ] || refuse "$directory is not on the file system of $mountpoint"
rm -f "$out/refused"
stat -c %d "$directory" > "$out/st_dev"

prepare > "$out/prepare.log" 2>&1 || { cp "$out/prepare.log" "$out/unprepared"; finish; }
drop_caches
warm > /dev/null 2> "$out/warm.log" || { cp "$out/warm.log" "$out/unprepared"; finish; }
load_program > /dev/null 2>&1 # dropped with the caches, it would be read from the disk between the counters
snapshot before.txt
stamp started_ns
measured > "$out/stdout" 2> "$out/stderr" < /dev/null
echo $? > "$out/exit_status"
stamp ended_ns
echo "$uptimes" > "$out/uptime"
snapshot after.txt
kernel_says >> "$out/after.txt"
finish
