# Needs contain.sh subvolumes.sh
# One trial, whole, in one round trip. Its head (mountlab.sweep.trial_head) has the variables and the functions prepare, warm,
# load_program, show_drives, show_state and measured; a diagnostic trial has trace.sh before this, one with neighbours neighbour.sh. Prints a tar archive of $out and leaves
# nothing behind.
# With `collect` as $1: of a trial that was killed itself, what is left of it.
# What cannot be written because $out is full is said on standard error, after the word `mountlab`.
refuse() {
    put refused "$1"
    finish
}

# However much the tool has written into $out: what is brought back has an end. Where it goes into a file (job.sh), the
# kernel limits what tar writes; where it goes into a pipe, head does.
finish() {
    cd / || exit 95
    if [ -f /proc/self/fd/1 ]; then
        trap '' XFSZ
        ulimit -f "$((largest_archive / 512 + 1))"
        tar -C "$out" -cf - .
    else tar -C "$out" -cf - . | head -c "$((largest_archive + 1))"; fi
    exit 0
}

put() {
    printf '%s\n' "$2" > "$out/$1" || lacking "$1"
}

lacking() {
    printf 'mountlab: %s could not be written\n' "$1" >&2
}

# $1: a function, which must succeed; $2: where what it says is kept; $3: whether it does anything at all.
logged() {
    true > "$out/$2" || lacking "$2"
    [ "$3" = yes ] || return 0
    status=$({ { in_cgroup "$1" 2>&1 3>&-; echo $? >&3; } | head -c "$kept" > "$out/$2" 3>&- || lacking "$2"; } 3>&1)
    [ "$status" = 0 ] && return 0
    tail -c 2000 "$out/$2" > "$out/unprepared" || lacking unprepared
    trouble
    finish
}

# shellcheck disable=SC2016 # for awk
look_at_mount='$5 == m { for (i = 7; i < NF; i++) if ($i == "-") found = $(i + 1) " " $3 " " $4 " " $6 " " $(i + 2) " " $(i + 3) }
    END { print found }'

# The last mount on $mountpoint must be of $fstype; '' stands for a directory that was there before us, '*' for any type,
# raw for the block device $target, which must not be mounted. Sets mount_before to what is mounted.
expected_mount() {
    case $fstype in
    '') return ;;
    raw)
        [ -b "$target" ] || return
        device=$(readlink -f "$target")
        ! grep -q " $(cat "/sys/class/block/${device##*/}/dev") / " /proc/self/mountinfo
        return ;;
    esac
    mount_before=$(awk -v m="$mountpoint" "$look_at_mount" /proc/self/mountinfo)
    case $fstype:$mount_before in '*:'?* | "$fstype:$fstype "*) ;; *) return 1 ;; esac
}

# After the tool: whether the file system is still mounted as it was, and can be written. A full one is only full. With a
# mount namespace the tool's own was looked at; what it changed there did not happen to ours, unless ours is changed too.
look_after() {
    [ -n "$mount_before" ] || return 0
    if [ -z "$around" ] || [ -e "$out/mount_changed" ]; then
        now=$(awk -v m="$mountpoint" "$look_at_mount" /proc/self/mountinfo)
        [ "$now" = "$mount_before" ] || printf '%s\n' "$mount_before" "$now" > "$out/mount_spoilt"
    fi
    { true > "$mountpoint/.mountlab-after"; } 2>/dev/null && return
    said=$( (true > "$mountpoint/.mountlab-after") 2>&1)
    case $said in *'o space left'* | *uota*) ;; *) put not_writable "$said" ;; esac
}

# Counters of the box and our own: before the tool ours are read last, and after it first. What looks is in none of them.
# $sensors: of the drives.
snapshot() {
    {
        if [ "$1" = before.txt ]; then look_below; counters; own; else own; counters; look_below; fi
        echo # fails where the disk is full
    } 2>/dev/null > "$out/$1" || lacking "$1"
}

look_below() {
    echo '==> drives <=='
    show_drives
    echo '==> state <=='
    show_state
}

counters() {
    # shellcheck disable=SC2086 # paths
    tail -v -n +1 /proc/diskstats /proc/vmstat /proc/stat /proc/pressure/* /proc/loadavg /proc/mdstat ${cgroup:+"$cgroup"/*.pressure} \
        /sys/devices/system/cpu/cpu*/thermal_throttle/*_throttle_count $sensors
    echo
}

# `times` is what our children took, /proc/self/io of this shell what they read and wrote.
own() {
    echo '==> io <=='
    while read -r key value; do echo "$key $value"; done < /proc/self/io
    echo '==> times <=='
    times
}

# The memory of the box, and the bytes of the trial's files, where the file system lives in memory: before they are
# there, when they are, and when they are removed again. Outside of what is timed. Free pages that a processor keeps for
# itself are in no line of /proc/meminfo, and may be hundreds of MiB. What a tool copies from lies in memory, too.
weigh() {
    [ -n "$in_memory" ] || return 0
    source=0
    if [ -d "$out.data" ]; then source=$(du -sk "$out.data" 2>/dev/null | awk '{ printf "%.0f", $1 * 1024 }')
    elif [ -e "$out.data" ]; then source=$(stat -c %s "$out.data" 2>/dev/null || echo 0); fi
    {
        printf '==> %s <==\n' "$1"
        awk 'BEGIN { while (page == "" && (getline < "/proc/self/smaps") > 0) if ($1 == "KernelPageSize:") page = $2 }
            FILENAME == "/proc/meminfo" { print; next }
            $1 == "count:" { n += $2 }
            END { if (page) printf "PerCpuFree: %.0f kB\n", n * page }' /proc/meminfo /proc/zoneinfo
        printf 'Source: %s B\n' "$source"
    } 2>/dev/null >> "$out/memory.txt" || lacking memory.txt
}

# The last line of a reading. $*: the sizes of the files.
weighed() {
    size=0
    for each; do size=$((size + each)); done
    printf 'Files: %s B\n' "$size" 2>/dev/null >> "$out/memory.txt" || lacking memory.txt
}

# A trace takes memory until it has ended.
weigh_full() { [ -n "$trace_around" ] || weigh full; }

sizes() { find "$directory" -type f -exec stat -c %s {} + 2>/dev/null; }

# One process prints the sizes of the files and removes them, where find can do that.
# shellcheck disable=SC2046,SC2086 # numbers
weigh_and_free() {
    [ -n "$in_memory" ] || return 0
    weighs=$(find "$directory" -depth -type f -printf '%s\n' , -delete 2>/dev/null)
    if [ -d "$directory" ]; then
        [ -n "$weighs" ] || weighs=$(sizes)
        rm -rf "$directory"
    fi
    weighed $weighs
    weigh freed
    if [ -d "$directory" ]; then weighed $(sizes); else weighed; fi
}

# The wall clock, between two looks at the time since the start, which cannot be set: however long the machine keeps us
# waiting in between, what the wall clock did lies within what they permit. The builtins take no process, and some shells
# know the wall clock, too (its point is that of the locale).
stamp() {
    read -r earliest _ < /proc/uptime
    # shellcheck disable=SC3028 # empty in a shell without it
    now=${EPOCHREALTIME:-}
    if [ -n "$now" ]; then put "$1" "${now%[.,]*}${now#*[.,]}000"; else date +%s%N > "$out/$1" || lacking "$1"; fi
    read -r latest _ < /proc/uptime
    uptimes="$uptimes $earliest $latest"
}

# Sets sectors to what the device of the directory under test has read since the box was started, '' where it has no
# number of its own (btrfs, overlay), and calls to what read calls of our children have returned.
read_amounts() {
    sectors='' calls=0
    {
        while read -r key value; do [ "$key" != rchar: ] || calls=$value; done < /proc/self/io
        read -r _ _ sectors _ < "/sys/dev/block/$((own >> 8 & 0xFFF)):$((own & 0xFF | own >> 12 & 0xFFF00))/stat"
    } 2>/dev/null
}

# Where the device read less than the tool: what of the files has no data on the device, in bytes, by FIEMAP. A
# reading of the first files, and of their first extents, is enough, and has an end.
show_extents() {
    earlier=$sectors before=$calls
    read_amounts
    if [ "$reads" = calls ]; then
        reads=$((calls - before))
        [ "$reads" -gt 1048576 ] || return 0
    fi
    # Beside a watched program others may read from the device.
    [ -n "$in_place" ] || [ -z "$sectors" ] || [ "$(((sectors - earlier) * 512))" -lt "$((reads / 10 * 9))" ] || return 0
    set --
    if [ -n "$in_place" ]; then
        while read -r mode file; do
            case $mode in r*) [ ! -f "$file" ] || set -- "$@" "$file" ;; esac
            [ $# -lt 16 ] || break
        done < "$out.paths"
    else
        for file in "$directory"/* "$directory"/*/*; do
            [ ! -f "$file" ] || set -- "$@" "$file"
            [ $# -lt 16 ] || break
        done
    fi
    [ $# -gt 0 ] || return 0
    LC_ALL=C filefrag -v -b512 "$@" 2>/dev/null | awk '
        function end_of_file() { if (open) { size += bytes; if (bytes > sum) hole += bytes - sum } }
        match($0, / is [0-9]+ \([0-9]+ blocks? of /) {
            end_of_file()
            split(substr($0, RSTART), words, " ")
            open = ++files
            bytes = words[2] + 0
            sum = 0
        }
        /^ *[0-9]+: +[0-9]+\.\./ {
            flags = $NF
            gsub(/[.:]+/, " ")
            from = $2 * 512
            to = ($3 + 1) * 512
            if (to > bytes) to = bytes
            if (++extents > 4000) { bytes = from; exit }
            if (to <= from) next
            sum += to - from
            kind = flags ~ /inline/ ? "inline" : flags ~ /unwritten/ ? "unwritten" : flags ~ /delalloc/ ? "delayed" \
                : flags ~ /encoded/ ? "compressed" : "written"
            of[kind] += to - from
        }
        END {
            end_of_file()
            if (!files) exit
            printf "==> extents <==\nfiles %d\nsize %.0f\nhole %.0f\n", files, size, hole
            for (kind in of) printf "%s %.0f\n", kind, of[kind]
        }'
}

# What a watched program had open whenever the sampler looked: into $out.paths 'MODE PATH', and by directory into the
# output. MODE is r, w or rw. Neither files of ours, nor devices and what the kernel makes up.
list_open_files() {
    [ -e "$out.fds" ] || true > "$out.fds"
    LC_ALL=C awk -v out="$out" '
        !match($0, / -> \//) { next }
        {
            path = substr($0, RSTART + 4)
            sub(/ \(deleted\)$/, "", path)
            if (path ~ /^\/(proc|sys|dev)\// && path !~ /^\/dev\/shm\// || index(path, out) == 1) next
            if (substr($0, 2, 1) == "r") read[path] = "r"
            if (substr($0, 3, 1) == "w") written[path] = "w"
            seen[path]
        }
        END { for (path in seen) if (n++ < 2000) print read[path] written[path], path }' "$out.fds" > "$out.paths"
    {
        printf '==> looks <==\n'
        grep -c '^look$' "$out.fds"
        echo '==> place <=='
        (cd "$mountpoint" && pwd -P)
        echo '==> pipes <=='
        LC_ALL=C grep -cE '^lr.* -> (pipe:|socket:|/dev/(zero|urandom|random)|/(proc|sys)/)' "$out.fds"
        echo '==> directories <=='
        set -f
        IFS='
'
        # shellcheck disable=SC2046 # a path a line
        set -- $(cut -d ' ' -f 2- "$out.paths")
        unset IFS
        set +f
        { [ $# = 0 ] || LC_ALL=C stat -L -c '%s %F %n' -- "$@" 2>/dev/null; } | LC_ALL=C awk -v paths="$out.paths" '
            $2 == "regular" { at = index($0, " /"); size[substr($0, at + 1)] = $1; next }
            { at = index($0, " /"); other[substr($0, at + 1)] }
            END {
                while ((getline line < paths) > 0) {
                    at = index(line, " ")
                    path = substr(line, at + 1)
                    if (path in other) continue
                    directory = path
                    sub(/\/[^\/]*$/, "", directory)
                    if (directory == "") directory = "/"
                    files[directory]++
                    if (index(substr(line, 1, at), "r")) read[directory]++
                    if (index(substr(line, 1, at), "w")) written[directory]++
                    bytes[directory] += size[path]
                }
                for (directory in files)
                    if (n++ < 200) printf "%d %d %d %.0f %s\n", files[directory], read[directory], written[directory], bytes[directory], directory
            }'
        printf '==> mountinfo <==\n'
        cat /proc/self/mountinfo
    } > "$out/open_files.txt" || lacking open_files.txt
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
    [ -z "$reads" ] || show_extents
    read -r started < "$out/started_ns"
    read -r ended < "$out/ended_ns"
    # To read it takes some milliseconds. What a kernel complains of (timeouts, retries) takes longer than half a second.
    # The date of BusyBox leaves %N as it is: then the log is read where a second has begun meanwhile.
    case $ended in *N) least=0 ;; *) least=500000000 ;; esac
    [ "$dropped" = yes ] && [ $((${ended%'%N'} - ${started%'%N'})) -gt "$least" ] || return
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

each_nested() { [ -z "$nested" ] || echo "$nested" | while read -r dataset point; do "$1"; done; }
mount_it() { mount -t zfs "$dataset" "$point"; }
unmount_it() { umount "$point"; }

# The key of an encrypted dataset is the pool's comment (zfs.sh).
load_key() {
    [ "$(zfs get -H -o value keystatus "$pool/data")" != unavailable ] \
        || zpool get -H -o value comment "$pool" | tr -d '\n' | zfs load-key "$pool/data"
}

# What ZFS caches of our pool outlives drop_caches: an export empties it. Looks for the pool at its own nodes only.
reopen_pool() {
    # shellcheck disable=SC2086 # words of mountinfo
    set -- $mount_before
    pool=${5%/data}
    # Datasets that a tool has made below it (send, snapshot): mounted again afterwards.
    nested=$(awk -v below="$mountpoint/" 'index($5, below) == 1 { for (i = 7; i < NF; i++) if ($i == "-" && $(i + 1) == "zfs") print $(i + 2), $5 }' /proc/self/mountinfo)
    each_nested unmount_it
    if said=$(umount "$mountpoint" 2>&1 && zpool export "$pool" 2>&1); then
        said=$(zpool import -d "/dev/$pool" -N -o cachefile=none "$pool" 2>&1 && load_key 2>&1)
    fi
    said=$said$(mount -t zfs "$pool/data" "$mountpoint" 2>&1)
    said=$said$(each_nested mount_it 2>&1)
    [ -z "$said" ] && expected_mount || { trouble; refuse "the pool $pool, exported and imported to empty its cache: $said"; }
    own=$(stat -c %d "$mountpoint")
    put st_dev "$own"
}

drop_caches() {
    [ -z "$in_place" ] || [ "$cache" != as_is ] || return 0
    sync
    [ "$cache" = as_is ] && return
    [ "$fstype" != zfs ] || reopen_pool
    if drop_all 2>/dev/null; then
        dropped=yes
        put cache drop_caches
    elif [ -n "$in_place" ]; then
        put unprepared "caches cannot be dropped without root, and the files of a watched program are not known"
        finish
    else # without root: ask the kernel to forget the pages of our own files only. find ends well whatever dd says
        said=$(find "$directory" -type f -exec dd if={} iflag=nocache count=0 status=none \; 2>&1)
        if [ -n "$said" ]; then
            put unprepared "the pages of its files cannot be dropped without root or GNU coreutils: the dd of the box says: $said"
            finish
        fi
        put cache fadvise
    fi
}

# What the kernel complained of since the trial began, in trouble only: to read it takes some milliseconds. Its clock is
# not that of /proc/uptime; a line of our own tells it. (Not for everybody: then there is none.)
trouble() {
    mark="mountlab: trial failed ($$)"
    if [ -n "$helper" ]; then $helper 60 - kernel_mark $$; else echo "<7>$mark" > /dev/kmsg; fi 2>/dev/null || return
    read -r now _ < /proc/uptime
    kernel_log 2>/dev/null | awk -v mark="$mark" -v began="$began" -v now="$now" '
        BEGIN { n = 0 }
        !match($0, /\[ *[0-9]+\.[0-9]+\]/) { next }
        { at = substr($0, RSTART + 1, RLENGTH - 2) + 0 }
        index($0, mark) { end = at; exit }
        match($0, /^<[0-9]+>/) && substr($0, 2, RLENGTH - 2) % 8 <= 4 { line[n] = $0; time[n++] = at }
        END { for (i = n > 50 ? n - 50 : 0; end && i < n; i++) if (time[i] >= end - (now - began) - 0.02) print line[i] }
    ' > "$out/kernel" || lacking kernel
    [ -s "$out/kernel" ] || rm -f "$out/kernel"
}

# What is left running and is in no cgroup or PID namespace, by its environment. It would slow the next trial. (-z: the grep of busybox
# ends a line at its first NUL.) They have a second to end by themselves, as those that are just ending do.
end_stragglers() {
    [ -z "$cgroup" ] || return 0
    [ "$contained_by$prepares$warms" != 'PID namespace' ] || return 0
    tries=20
    while found=$(grep -lszF "MOUNTLAB_TRIAL=$out/." /proc/[0-9]*/environ); [ -n "$found" ] && [ "$tries" -gt 0 ]; do
        tries=$((tries - 1))
        if [ "$tries" -lt 10 ]; then
            for each in $found; do
                each=${each%/environ}
                [ "$tries" -lt 9 ] || cat "$each/comm" >> "$out/left_running" 2>/dev/null
                kill -s KILL "${each#/proc/}" 2>/dev/null
            done
        fi
        sleep 0.1
    done
}

# Of what warms the cache only the complaints are kept: it prints the files.
fill() {
    warm > /dev/null
}

# Standard output and error of the tool go to 3 and 4.
measure() {
    [ -z "$beside" ] || look_at_neighbours from
    snapshot before.txt
    stamp started_ns
    in_use
    in_cgroup in_container >&3 2>&4 3>&- 4>&- < /dev/null
    put exit_status $?
    stamp ended_ns
    put uptime "$began$uptimes"
    snapshot after.txt
    [ -z "$beside" ] || look_at_neighbours to
    read -r held_by < "$out/contained_by"
    [ "$held_by" = "$contained_by" ] || { remove_cgroup; contained_by=environment around=''; }
    end_stragglers
    empty_cgroup
    detach_loops
    look_after
}

# What the tool prints goes into files, which have an end.
measure_and_keep() {
    { measure 4>&1 | head -c "$kept" > "$out/stderr" 3>&- || lacking stderr; } 3>&1 | head -c "$kept" > "$out/stdout" \
        || lacking stdout
}

# Beside it the counters of the box over time, where a shell of the box can do that without a process for each look
# (sampler.sh). It ends with the pipe between the two, whose end the tool does not hold, even where this shell is killed; it
# is no process of the tool's, nor in its cgroup; and nothing waits for it, or for what it could not write. While it ends,
# the memory is read.
measure_beside_sampler() {
    [ -n "$sampler" ] || { measure_and_keep; weigh_full; return; }
    watched_by=$$
    [ -z "$cgroup" ] || watched_by=$members
    below=''
    case $mount_before in
    'overlay '*) below=${mount_before#*upperdir=} below=${below%%,*} ;;
    *' 0:'*) device=${mount_before% *} ;; # its source: btrfs has a number of its own
    esac
    # shellcheck disable=SC2086 # the words of a shell
    { measure_and_keep; exec >&-; weigh_full; } | BASH_ENV='' nice $sampler -c "$sampling" sampler "$sample_ms" "$own" \
        "$device" "$below" ${in_place:+"$watched_by" "$out.fds"} > "$out/over_time" 2> /dev/null
}

remove_all() {
    after=$mountpoint/.mountlab-after
    [ -z "$in_place" ] || after=''
    [ "$fstype" != zfs ] || remove_datasets "$directory"
    rm -rf "$directory" "$out" "$out.data" "$out.trace" "$out.fds" "$out.paths" ${after:+"$after"}
}

umask 077
dropped=
uptimes=
dropper=$$
mount_before=
device=
cgroup=
trace=
kept=$((largest_output + 1)) # one byte more shows that there was more; then the pipe is closed
# .data: what a tool copies from (mountlab.programs.dd)
trap '[ -z "$trace" ] || drop_trace; [ -z "$beside" ] || drop_neighbours; [ -z "$cgroup" ] || [ ! -d "$cgroup" ] || { remove_cgroup; wait $!; }; remove_all 2>/dev/null || { remove_subvolumes "$directory"; remove_all; }' EXIT
trap 'exit 143' TERM INT HUP
if [ "$1" = collect ]; then
    [ -d "$out" ] || exit 0
    read -r began _ < "$out/uptime"
    trouble
    finish
fi
read -r began _ < /proc/uptime
[ ! -e "$out" ] || exit 95
there=''
[ ! -e "$directory" ] || there=yes
if expected_mount; then mounted=yes; choose_container; else mounted=''; fi
[ -d "$out" ] || mkdir "$out" ${mounted:+"$directory"} 2>/dev/null
cd "$out" || exit 95
put uptime "$began"
[ -n "$mounted" ] || refuse "no $fstype is ${target:+free at }${target:-mounted on $mountpoint}"
{ [ -z "$there" ] && [ -d "$directory" ]; } || said=$(mkdir "$directory" 2>&1) || { trouble; refuse "$said"; }
under_test=$directory
[ -z "$in_place" ] || under_test=$mountpoint
stat -c %d "$under_test" "$mountpoint" > "$out/st_dev" &
weigh empty # meanwhile
wait $! || lacking st_dev
{ read -r own; read -r theirs; } < "$out/st_dev"
[ "$own" = "$theirs" ] || refuse "$directory is not on the file system of $mountpoint"
put st_dev "$own"
[ -z "$in_memory" ] || weighed
logged prepare prepare.log "$prepares"
[ -z "$beside" ] || lay_out_neighbours
drop_caches
logged fill warm.log "$warms"
load_program > /dev/null 2>&1 # dropped with the caches, it would be read from the disk between the counters
[ -z "$beside" ] || begin_neighbours
[ -z "$trace_around" ] || begin_trace
[ -z "$reads" ] || read_amounts
measure_beside_sampler
[ -z "$trace_around" ] || { end_trace; weigh full; }
[ -z "$beside" ] || end_neighbours
[ -z "$in_place" ] || list_open_files
kernel_says >> "$out/after.txt"
status=''
read -r status < "$out/exit_status"
[ "$status" = 0 ] && [ ! -e "$out/left_running" ] || trouble
weigh_and_free
[ -z "$long_log" ] || [ ! -e "$long_log" ] || gzip -1 "$long_log" 2> /dev/null # without gzip it goes as it is
finish
