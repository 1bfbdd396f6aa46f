"""Facts about the kernel and the operating system: version, configuration, parameters, what it can mount."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import ClassVar

from mountlab.core.box_facts.base import Group, Listed, fact
from mountlab.core.box_facts.parsing import drop_unknown, key_values, lines, parse_words

_OPTIONS = """
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
OPTIONS = tuple(_OPTIONS.split())
"""What of a kernel's configuration is kept: options that change how storage, memory and scheduling behave."""
DEBUG_OPTIONS = (
    "KASAN", "KCSAN", "KMSAN", "LOCKDEP", "PROVE_LOCKING", "LOCK_STAT", "DEBUG_LOCK_ALLOC", "DEBUG_KMEMLEAK",
    "DEBUG_OBJECTS", "DEBUG_PAGEALLOC_ENABLE_DEFAULT", "SLUB_DEBUG_ON", "KCOV", "GCOV_KERNEL", "XFS_DEBUG",
)  # fmt: skip
"""With one of these a kernel looks for its own mistakes, and every call takes longer."""
WITHHELD = "not kept"
"""The value of a kernel parameter that may name a machine, a person, a disk or a secret."""
_CONFIG = rf"""
config=$(zcat /proc/config.gz || cat "/boot/config-$(uname -r)" || cat "/lib/modules/$(uname -r)/config")
[ -z "$config" ] || {{
    printf 'sha256\t%s\n' "$(printf '%s\n' "$config" | sha256sum)"
    printf '%s\n' "$config" | grep -E '^(# )?CONFIG_({"|".join(OPTIONS)})[= ]'
}}
"""
_DEVICES = """
    zram pmbd linear raid0 raid1 raid456 raid10
    dm-mod dm-crypt dm-raid dm-thin-pool dm-integrity dm-writecache dm-cache dm-snapshot
"""
_FEATURES = rf"""
modules=/lib/modules/$(uname -r)
[ -e "$modules" ] || modules=/run/booted-system/kernel-modules$modules
[ -r "$modules/modules.dep" ] || [ -r /proc/config.gz ] || exit 0
{{
    cat "$modules/modules.dep" "$modules/modules.builtin" || zcat /proc/config.gz
    ls /sys/module /sys/class
}} | awk -v wanted="{" ".join(_DEVICES.split())}" '
    BEGIN {{ count = split(wanted, names, " "); for (i = 1; i <= count; i++) known[names[i]] }}
    /^CONFIG_.*=y$/ {{ $0 = tolower(substr($0, 8, length($0) - 9)); sub(/^md_/, ""); sub(/provisioning$/, "pool")
        sub(/^blk_dev_dm$/, "dm-mod") }}
    {{
        sub(/:.*/, ""); sub(/.*\//, ""); sub(/\.ko.*/, ""); sub(/-control$/, ""); gsub(/_/, "-")
        if ($0 in known) print
    }}'
echo loop
"""
"""From the list of its modules, or where it has none from its configuration; and what is in use. Nothing where it has
neither (a container): unknown. `loop` is what every Linux can have: so the list is not empty otherwise."""
_FILESYSTEMS = r"""
awk '{ print $NF }' /proc/filesystems
sed -n 's/^alias fs-\([^ ]*\) .*/\1/p' "/lib/modules/$(uname -r)/modules.alias"
"""
_PARAMETER = re.compile(r"(?!.*[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-)[A-Za-z][\w.-]{0,47}")
"""Not with a UUID in its name, as those of encrypted disks have."""
_PLAIN = re.compile(
    r"|on|off|auto|yes|no|y|n|true|false|always|never|madvise|none|force|enable|disable|enabled|disabled|active|passive"
    r"|\d{1,5}|\d{1,4}[KMGT]|\d{1,3}(-\d{1,3})?(,\d{1,3}(-\d{1,3})?)*",
    re.IGNORECASE,
)
_SETTINGS = re.compile(
    r"mitigations|transparent_hugepage\w*|hugepages\w*|default_hugepagesz|hugetlb_\w+|elevator|isolcpus|nohz\w*|rcu_\w+"
    r"|rcutree\.\w+|rcupdate\.\w+|irqaffinity|idle|processor\.\w+|intel_idle\.\w+|intel_pstate|amd_pstate\w*|cpufreq\.\w+"
    r"|cpuidle\w*\.\w+|cpuidle_haltpoll\.\w+|haltpoll\.\w+|clocksource|tsc|numa\w*|preempt|threadirqs|sched_\w+|psi"
    r"|cgroup\w*|systemd\.unified_cgroup_hierarchy|swapaccount|zswap\.\w+|damon\w*\.\w+|lru_gen\w*|page_\w+(\.\w+)?"
    r"|init_on_\w+|slab_\w+|slub_\w+|kasan\w*(\.\w+)?|kfence\.\w+|spec\w*|pti|nopti|l1tf|mds|tsx\w*|retbleed|srbds|gather\w*"
    r"|mmio_stale_data|reg_file_data_sampling|kvm[\w-]*\.\w+|iommu\w*(\.\w+)?|intel_iommu|amd_iommu|swiotlb|pcie_\w+(\.\w+)?"
    r"|nvme\w*\.(?!host)\w+|scsi_mod\.\w+|dm_mod\.use_\w+|libata\.force|rootfstype|fsck\.mode|lsm|security|selinux"
    r"|apparmor|audit\w*|lockdown|mem|memmap|maxcpus|nr_cpus|possible_cpus|workqueue\.\w+|random\.\w+|nmi_watchdog|quiet"
)
"""Parameters whose value chooses how the kernel works, and never names anything of the user's."""
_SETTING_VALUE = re.compile(r"[\w.,:+=!$-]{1,64}")


def parse_os(text: str) -> str:
    """Return the name in /etc/os-release, unquoted."""
    values = key_values(text, "=")
    for key in ("PRETTY_NAME", "NAME", "ID"):
        if key in values:
            return " ".join(shlex.split(values[key]))
    raise ValueError("no name")


def parse_command_line(text: str) -> dict[str, object]:
    """Return the kernel's parameters and their values. What is behind `--` is for the first program and is left out.

    A value is kept where it is a plain word or a small number, or where its parameter chooses how the kernel works: all
    others may be the id of a disk, an address, the name of a machine or a secret.
    """
    parameters: dict[str, dict[str, None]] = {}
    for word in text.partition(" -- ")[0].split():
        name, equals, value = word.partition("=")
        if _PARAMETER.fullmatch(name):
            setting = _SETTINGS.fullmatch(name) and _SETTING_VALUE.fullmatch(value)
            kept = value if setting or _PLAIN.fullmatch(value) else WITHHELD
            parameters.setdefault(name, {})[kept if equals else "set"] = None
    return drop_unknown({name: ", ".join(values) for name, values in parameters.items()})


def parse_config(text: str) -> dict[str, object]:
    """Return each of OPTIONS, 'n' where the kernel is built without; last the hash of the whole configuration."""
    values = {name.removeprefix("CONFIG_"): value.strip('"') for line in text.splitlines()
              for name, equals, value in [line.partition("=")] if equals and line.startswith("CONFIG_")}  # fmt: skip
    digest = dict(lines(text)).get("sha256", "").split(" ")[0]
    if not values and not digest:
        raise ValueError("no configuration")
    return drop_unknown({**{name: values.get(name, "n") for name in OPTIONS}, "sha256": digest[:16]})


class KernelFacts(Group):
    """The kernel and the operating system."""

    section: ClassVar = "Kernel"
    release: str | None = fact("kernel", "uname -r", key="kernel", area="system", rank=10)
    build: str | None = fact("kernel build", "uname -v", key="kernel_build", area="system", rank=110)
    os: str | None = fact(
        "operating system", "cat /etc/os-release || cat /usr/lib/os-release", parse_os, area="system", rank=20
    )
    command_line: Mapping[str, str] | None = fact("kernel command line", "head -c 4096 /proc/cmdline",
        parse_command_line, key="kernel_command_line", lacking="not set", area="system", rank=50)  # fmt: skip
    config: Mapping[str, str] | None = fact("kernel configuration", _CONFIG, parse_config, key="kernel_config",
        parts={"sha256": "SHA-256"}, area="system", rank=100)  # fmt: skip
    security_modules: str | None = fact("security modules", "values '' /sys/kernel/security/lsm",
        lambda text: text.split("\t")[-1], area="system", rank=90)  # fmt: skip
    filesystems: Listed[str] | None = fact(
        "file systems of the kernel", _FILESYSTEMS, parse_words, key="kernel_filesystems"
    )
    features: Listed[str] | None = fact("devices that it can make", _FEATURES, parse_words, key="kernel_features")
    loop_devices: bool | None = fact(
        "loop devices", "if [ -e /dev/loop-control ]; then echo 1; else echo 0; fi", lambda text: text == "1"
    )

    @property
    def debug_options(self) -> list[str]:
        """Those of DEBUG_OPTIONS with which it was built."""
        return [name for name in DEBUG_OPTIONS if (self.config or {}).get(name) == "y"]

    def lacks(self, types: tuple[str, ...]) -> list[str]:
        """Return which of these types of file systems it has not; [] where that is unknown."""
        return [] if self.filesystems is None else [kind for kind in types if kind not in self.filesystems]
