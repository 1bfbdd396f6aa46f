"""Shell text of the facts that explain why two machines differ: processor, memory, kernel, limits.

Each prints nothing where the kernel does not tell, or does not tell this user. What it prints is bounded by the number
of the kernel's own entries. Serial numbers and UUIDs of the machine are never read.
"""

from __future__ import annotations

_KERNEL_OPTIONS = """
    PREEMPT_NONE PREEMPT_VOLUNTARY PREEMPT PREEMPT_LAZY PREEMPT_DYNAMIC PREEMPT_RT HZ NO_HZ_FULL SCHED_AUTOGROUP
    SCHED_CORE SCHED_CLASS_EXT NUMA_BALANCING NUMA_BALANCING_DEFAULT_ENABLED
    TRANSPARENT_HUGEPAGE TRANSPARENT_HUGEPAGE_ALWAYS TRANSPARENT_HUGEPAGE_MADVISE
    LRU_GEN LRU_GEN_ENABLED DAMON DAMON_RECLAIM DAMON_LRU_SORT DAMON_STAT ZSWAP ZSWAP_DEFAULT_ON MEMCG
    BLK_WBT BLK_WBT_MQ BLK_CGROUP_IOCOST BLK_DEV_THROTTLING CGROUP_WRITEBACK
    INIT_ON_ALLOC_DEFAULT_ON INIT_ON_FREE_DEFAULT_ON INIT_STACK_ALL_ZERO HARDENED_USERCOPY FORTIFY_SOURCE
    CC_OPTIMIZE_FOR_SIZE LTO_NONE
    KASAN KCSAN KMSAN UBSAN KFENCE LOCKDEP PROVE_LOCKING LOCK_STAT DEBUG_LOCK_ALLOC DEBUG_ATOMIC_SLEEP DEBUG_KMEMLEAK
    DEBUG_OBJECTS DEBUG_PAGEALLOC DEBUG_PAGEALLOC_ENABLE_DEFAULT DEBUG_VM DEBUG_LIST PAGE_POISONING SLUB_DEBUG_ON
    KCOV GCOV_KERNEL FAULT_INJECTION XFS_DEBUG XFS_WARN BTRFS_DEBUG BTRFS_ASSERT EXT4_DEBUG
"""
KERNEL_OPTIONS = tuple(_KERNEL_OPTIONS.split())
"""What of a kernel's configuration is kept: options that change how storage, memory and scheduling behave."""

_VM_SETTINGS = """
    dirty_ratio dirty_background_ratio dirty_bytes dirty_background_bytes dirty_expire_centisecs
    dirty_writeback_centisecs swappiness vfs_cache_pressure overcommit_memory min_free_kbytes watermark_scale_factor
    watermark_boost_factor zone_reclaim_mode compaction_proactiveness page-cluster laptop_mode nr_hugepages
"""

FUNCTIONS = r"""
# The first line of each file that can be read, behind $1 and its name. By `head`, since the `read` of some shells takes
# a file in bytes, and what is below /proc/sys gives one digit then. Where there is none, without a process.
values() {
    prefix=$1
    shift
    for file; do
        shift
        [ ! -r "$file" ] || set -- "$@" "$file"
    done
    [ $# -gt 0 ] || return 0
    head -n 1 "$@" /dev/null | while IFS= read -r line; do
        case $line in
            '==> '*' <==') file=${line#==> } file=${file% <==} ;;
            '') ;;
            *) printf '%s%s\t%.400s\n' "$prefix" "${file##*/}" "$line" ;;
        esac
    done
}
# The files $3... of a control group $2, and of those above it, in the hierarchy that is mounted at $1.
limits() {
    top=${1%/} at=${1%/}$2
    shift 2
    [ -d "$at" ] || at=$top
    at=${at%/}
    while :; do
        for name; do
            [ ! -r "$at/$name" ] || while IFS= read -r line; do printf '%s\t%.200s\n' "$name" "$line"; done <"$at/$name"
        done
        [ "$at" != "$top" ] || break
        at=${at%/*}
    done
}
"""

MODEL = r"""
values dmi_ /sys/class/dmi/id/sys_vendor /sys/class/dmi/id/product_name /sys/class/dmi/id/product_version \
    /sys/class/dmi/id/board_name
tr -d '\0' </sys/firmware/devicetree/base/model | sed 's/^/tree	/'
"""
FIRMWARE = (
    "values '' /sys/class/dmi/id/bios_vendor /sys/class/dmi/id/bios_version /sys/class/dmi/id/bios_release "
    "/sys/class/dmi/id/bios_date"
)
MITIGATIONS = "values '' /sys/devices/system/cpu/vulnerabilities/*"
MICROCODE = (
    "sed -n 's/^microcode[^:]*: *//p' /proc/cpuinfo; "
    "[ ! -r /sys/devices/system/cpu/cpu0/microcode/version ] || cat /sys/devices/system/cpu/cpu0/microcode/version"
)
FREQUENCY = r"""
cd /sys/devices/system/cpu && {
    values '' cpu0/cpufreq/scaling_driver cpu0/cpufreq/scaling_min_freq cpu0/cpufreq/scaling_max_freq \
        cpu0/cpufreq/cpuinfo_max_freq cpu0/cpufreq/energy_performance_preference cpufreq/boost intel_pstate/no_turbo \
        intel_pstate/status amd_pstate/status
}
"""
IDLE = r"""
cd /sys/devices/system/cpu && {
    values '' cpuidle/current_driver cpuidle/current_governor cpuidle/current_governor_ro
    for state in cpu0/cpuidle/state[0-9]*; do
        values "${state##*/} " "$state/name" "$state/latency" "$state/disable" "$state/residency"
        # What a program such as tuned holds the latency below: read only, which asks for no limit of our own.
        [ "${state##*/}" != state0 ] || [ ! -r /dev/cpu_dma_latency ] ||
            printf 'limit\t%s\n' "$(od -An -td4 -N4 /dev/cpu_dma_latency)"
    done
}
"""
NUMA = "values '' /sys/devices/system/node/online /proc/sys/kernel/numa_balancing"
HUGE_PAGES = "cd /sys/kernel/mm/transparent_hugepage && values '' enabled defrag shmem_enabled"
SWAP = r"""
[ ! -r /proc/swaps ] || echo known
while read -r file kind size _; do
    case $file in Filename) continue ;; /dev/zram*|/zram*) kind=zram ;; esac
    printf 'area\t%s\t%s\n' "$kind" "$size"
done </proc/swaps
values zswap_ /sys/module/zswap/parameters/enabled /sys/module/zswap/parameters/compressor
values '' /sys/block/zram[0-9]*/comp_algorithm
"""
RECLAIM = r"""
values lru_gen_ /sys/kernel/mm/lru_gen/enabled
values ksm_ /sys/kernel/mm/ksm/run
values '' /sys/kernel/mm/numa/demotion_enabled
values damon_reclaim_ /sys/module/damon_reclaim/parameters/enabled
values damon_lru_sort_ /sys/module/damon_lru_sort/parameters/enabled
# Threads of the kernel are seen outside of containers only.
read -r second </proc/2/comm || second=
[ "$second" != kthreadd ] || printf 'kdamonds\t%s\n' "$(cat /proc/[0-9]*/comm | grep -c '^kdamond')"
for kdamond in /sys/kernel/mm/damon/admin/kdamonds/[0-9]*; do
    values damon_ "$kdamond/state"
    values damon_ "$kdamond"/contexts/[0-9]*/schemes/[0-9]*/action
done
for device in /sys/bus/virtio/devices/*; do
    read -r kind <"$device/device" || kind=
    [ "$kind" != 0x0005 ] || values balloon_ "$device/features"
done
"""
VM_SETTINGS = f"cd /proc/sys/vm && values '' {' '.join(_VM_SETTINGS.split())}"
COMMAND_LINE = "head -c 4096 /proc/cmdline"
KERNEL_CONFIG = rf"""
config=$(zcat /proc/config.gz || cat "/boot/config-$(uname -r)" || cat "/lib/modules/$(uname -r)/config")
[ -z "$config" ] || {{
    printf 'sha256\t%s\n' "$(printf '%s\n' "$config" | sha256sum)"
    printf '%s\n' "$config" | grep -E '^(# )?CONFIG_({"|".join(KERNEL_OPTIONS)})[= ]'
}}
"""
LIMITS = r"""
sed -n 's/^Cpus_allowed_list:/allowed/p' /proc/self/status
values all_ /sys/devices/system/cpu/online
while read -r _ _ _ root point rest; do
    case $rest in
        *' - cgroup2 '*) controllers= ;;
        *' - cgroup '*) controllers=,${rest##* }, ;;
        *) continue ;;
    esac
    case $controllers in ''|*,memory,*|*,cpu,*|*,pids,*|*,blkio,*) ;; *) continue ;; esac
    own=
    while IFS=: read -r _ names path; do
        # The second version has neither: ',,' stands in no list of names.
        case ${controllers:-,,} in *",$names,"*) own=$path ;; esac
    done </proc/self/cgroup
    [ -n "$own" ] || continue
    [ "$root" = / ] || own=${own#"$root"}
    if [ -z "$controllers" ]; then
        values known_ "$point/cgroup.controllers"
        limits "$point" "$own" memory.max memory.high cpu.max pids.max io.max
    else
        printf 'known_v1\t%s\n' "$controllers"
        limits "$point" "$own" memory.limit_in_bytes cpu.cfs_quota_us cpu.cfs_period_us pids.max \
            blkio.throttle.read_bps_device blkio.throttle.write_bps_device blkio.throttle.read_iops_device \
            blkio.throttle.write_iops_device
    fi
done </proc/self/mountinfo
"""
DISKS = r"""
count=0
for disk in /sys/block/*; do
    name=${disk##*/}
    case $name in loop*|ram*|zram*|sr*|fd*|nbd*|'*') continue ;; esac
    count=$((count + 1))
    [ "$count" -le 64 ] || break
    values "$name	" "$disk/device/firmware_rev" "$disk/device/rev" "$disk/queue/write_cache" \
        "$disk/queue/read_ahead_kb" "$disk/queue/nr_requests" "$disk/queue/wbt_lat_usec"
done
"""
SENSORS = r"""
for sensor in /sys/class/hwmon/hwmon[0-9]*; do
    read -r kind <"$sensor/name" || continue
    at=$(CDPATH='' cd -- "$sensor/device" && pwd -P) || continue
    for drive in "$at" "$at"/nvme/nvme[0-9]* "$at"/block/*; do
        case $kind:${drive##*/} in nvme:nvme[0-9]*|drivetemp:sd*) ;; *) continue ;; esac
        printf '%s\tfile\t%s\n' "${drive##*/}" "$sensor/temp1_input"
        case $kind:$(PATH=$PATH:/usr/sbin:/sbin; command -v nvme || command -v smartctl) in
        nvme:*/nvme) printf '%s\tlog\tnvme smart-log -o json /dev/%s\n' "${drive##*/}" "${drive##*/}" ;;
        nvme:*/smartctl) printf '%s\tlog\tsmartctl -j -A /dev/%s\n' "${drive##*/}" "${drive##*/}" ;;
        esac
        values "${drive##*/}	" "$sensor/temp1_max" "$sensor/temp1_crit"
    done
done
"""
SECURITY = "values '' /sys/kernel/security/lsm"
BUILD = "uname -v"
