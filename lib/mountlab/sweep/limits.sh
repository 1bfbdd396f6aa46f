# Limits of a cgroup, of v2 where controllers are mounted so, else of v1. Functions only, for neighbour.sh and
# try_limits.sh, which set cgroups (where they are mounted), own_name (of the cgroup) and direct_io ('' or yes). Where one
# cannot be set, `why` says why, and `mend` what to do.

is_v2() { [ -r "$cgroups/cgroup.controllers" ]; }

# Sets device, '' for none, and fstype: of the mount that holds directory $1.
find_mount() {
    # shellcheck disable=SC2046,SC2016 # words of a line; for awk
    set -- $(awk -v p="$(readlink -f "$1")/" '{ point = $5 == "/" ? "/" : $5 "/" }
        index(p, point) == 1 && length(point) >= longest {
            longest = length(point)
            for (i = 7; i < NF; i++) if ($i == "-") found = $(i + 1) " " $(i + 2)
        }
        END { print found }' /proc/self/mountinfo)
    fstype=$1 device=''
    [ ! -b "$2" ] || device=$2
}

# The number and the queue of the device.
find_queue() {
    disk=$(readlink -f "$device")
    disk=${disk##*/} number=''
    { read -r number < "/sys/class/block/$disk/dev"; } 2>/dev/null
    [ -n "$number" ] || {
        why='there is no block device below its file system'
        mend='choose a limit of cpu or memory, or take these cells out with `exclude`'
        return 1
    }
    queue=/sys/class/block/$disk/queue
    [ -d "$queue" ] || queue=/sys/class/block/$disk/../queue
}

# Weights count for BFQ alone, or where iocost is on. Sets weighs. `scheduler`: which one the device gets with its mount.
has_weights() {
    schedulers=none weighs=''
    { read -r schedulers < "$queue/scheduler"; } 2>/dev/null
    case "${scheduler:-$schedulers}" in bfq | *'[bfq]'*) weighs=bfq ;; *)
        if grep -qs "^$number .*enable=1" "$cgroups/io.cost.qos"; then weighs=iocost; fi
        ;;
    esac
    if [ "$weighs" = bfq ] && [ "$2" -gt 1000 ]; then
        why="bfq takes no weight of $2"
        mend='choose 1 to 1000'
    elif [ -n "$weighs" ]; then return
    else
        why="the scheduler of $disk has no weights (${scheduler:-$schedulers})"
        mend='set bfq (tunables: {queue/scheduler: bfq}, where Mountlab mounts it)'
        [ ! -e "$cgroups/io.cost.qos" ] || mend="$mend; or iocost: echo '$number enable=1' > $cgroups/io.cost.qos"
        mend="$mend; or choose io_max_read, or with direct I/O io_max_write: they need no scheduler"
    fi
    return 1
}

# Writes that go through the page cache are somebody's only where the file system tells whose, by v2.
counts_writes() {
    [ -z "$direct_io" ] || return 0
    why='buffered writes count for no cgroup' mend='give the neighbour direct: true'
    is_v2 || { why="$why of v1"; return 1; }
    case $fstype in ext2 | ext4 | btrfs | xfs | f2fs) ;; *) why="$why on $fstype"; return 1 ;; esac
    [ -e "$group/memory.max" ] || { why="$why without the memory controller" controller=memory; enable_v2; return 1; }
}

# Sets group, which is made unless it is there.
group_v2() {
    group=$cgroups/$own_name
    [ -d "$group" ] || said=$(mkdir "$group" 2>&1) || not_made
}

not_made() {
    why="no cgroup can be made in $cgroups: $said" mend='root or password-less sudo on the box'
    return 1
}

enable_v2() {
    case " $(cat "$cgroups/cgroup.controllers") " in
    *" $controller "*) mend="echo +$controller > $cgroups/cgroup.subtree_control" ;;
    *) mend="boot with cgroup_no_v1=$controller, so that v2 has the controller" ;;
    esac
}

# Sets in_group: the cgroup of this neighbour with $controller of v1, which is made unless it is there, and entered.
group_v1() {
    path=''
    while IFS=: read -r _ names its_path; do
        case ,$names, in *,"$controller",*) path=$its_path ;; esac
    done < /proc/self/cgroup
    in_group=$cgroups/$controller${path%/}/$own_name
    [ -d "${in_group%/*}" ] || {
        why="no controller $controller is mounted in $cgroups"
        mend="mount cgroup2 there, or: mkdir -p $cgroups/$controller && mount -t cgroup -o $controller cgroup $cgroups/$controller"
        return 1
    }
    [ -d "$in_group" ] || said=$(mkdir "$in_group" 2>&1) || { not_made; return; }
    case " $more " in *" $in_group "*) ;; *) more="$more $in_group" enter="$enter $in_group/tasks" ;; esac
}

# $1: limit; $2: value. Sets file, and now: what the kernel makes of it. Returns 2 where only a mount brings that file.
set_limit() {
    text=$2 why='' mend=''
    ! is_v2 || group_v2 || return
    case $1 in io_*) find_queue || return ;; esac
    case $1 in io_weight) has_weights "$@" || return ;; esac
    case $1 in io_weight | io_max_write*) counts_writes || return ;; esac
    why='' mend=''
    if is_v2; then file_v2 "$1"; else file_v1 "$1" && group_v1; fi || return
    if [ ! -e "$in_group/$file" ]; then
        why="its cgroup has no $file" mend='take a kernel that has it'
        ! is_v2 || case " $(cat "$cgroups/cgroup.subtree_control") " in *" $controller "*) ;; *)
            why="$why: the controller $controller is not on in $cgroups/cgroup.subtree_control"
            enable_v2
            return 1
            ;;
        esac
        case $file:$scheduler:$schedulers in *bfq*:bfq:*bfq*) ;; *bfq*:bfq:*) return 2 ;; esac
        return 1
    fi
    mend='choose another value'
    said=$( (echo "$text" > "$in_group/$file") 2>&1) || { why="$file does not take '$text': $said"; return 1; }
    case $file in *device | io.max) now=$(grep "^$number " "$in_group/$file") ;; *) now=$(head -n 1 "$in_group/$file") ;; esac
    [ -n "$now" ] || { why="$file holds nothing after '$text' was written"; return 1; }
}

file_v2() {
    in_group=$group
    case $1 in
    io_weight) if [ "$weighs" = bfq ]; then file=io.bfq.weight; else file=io.weight; fi ;;
    io_max_read) file=io.max text="$number rbps=$text" ;;
    io_max_write) file=io.max text="$number wbps=$text" ;;
    io_max_read_iops) file=io.max text="$number riops=$text" ;;
    io_max_write_iops) file=io.max text="$number wiops=$text" ;;
    cpu_max) file=cpu.max text="$text 100000" ;;
    *) file=${1%%_*}.${1#*_} ;;
    esac
    controller=${file%%.*}
}

file_v1() {
    case $1 in
    io_weight) file=blkio.bfq.weight ;;
    io_max_read) file=blkio.throttle.read_bps_device text="$number $text" ;;
    io_max_write) file=blkio.throttle.write_bps_device text="$number $text" ;;
    io_max_read_iops) file=blkio.throttle.read_iops_device text="$number $text" ;;
    io_max_write_iops) file=blkio.throttle.write_iops_device text="$number $text" ;;
    cpu_weight) file=cpu.shares text=$((text * 1024 / 100)) ;;
    cpu_max) file=cpu.cfs_quota_us ;;
    memory_max) file=memory.limit_in_bytes ;;
    *) why='cgroup v1 has nothing like it' mend='boot with cgroup_no_v1=all, for v2; or choose memory_max'; return 1 ;;
    esac
    controller=${file%%.*}
}
