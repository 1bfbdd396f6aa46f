"""Turn the kernel's reports on the machine into values: `machine_scripts` prints them.

Every value is a text or a number, so that the facts of two runs can be held against each other item by item. A parser
raises ValueError where nothing is known.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from mountlab.box.machine_scripts import KERNEL_OPTIONS
from mountlab.core.units import KIB

NO_LIMIT, ALL = "no limit", "all"
WITHHELD = "not kept"
"""The value of a kernel parameter that may name a machine, a person, a disk or a secret."""
DEBUG_OPTIONS = (
    "KASAN", "KCSAN", "KMSAN", "LOCKDEP", "PROVE_LOCKING", "LOCK_STAT", "DEBUG_LOCK_ALLOC", "DEBUG_KMEMLEAK",
    "DEBUG_OBJECTS", "DEBUG_PAGEALLOC_ENABLE_DEFAULT", "SLUB_DEBUG_ON", "KCOV", "GCOV_KERNEL", "XFS_DEBUG",
)  # fmt: skip
"""With one of these a kernel looks for its own mistakes, and every call takes longer."""
_UNLIMITED = 2**60
"""Control groups of the first version say 'no limit' as the largest number of pages."""
_PLACEHOLDER = re.compile(
    r"|to be filled.*|default.*|none|not (specified|applicable|available)|unknown|system (product name|manufacturer|"
    r"version)|[x0 .-]+",
    re.IGNORECASE,
)

Values = dict[str, Any]


def lines(text: str) -> list[tuple[str, str]]:
    """Return name and value of each line, which a tab parts; the last tab where a name has one."""
    parted = (line.rpartition("\t") for line in text.splitlines())
    return [(name, value.strip()) for name, tab, value in parted if tab]


def known(values: Mapping[str, Any]) -> Values:
    """Return the values that are there. Raises ValueError where none is."""
    found = {key: value for key, value in values.items() if value not in (None, "")}
    if not found:
        raise ValueError("nothing is known")
    return found


def parse_values(text: str) -> Values:
    """Return names and values as they stand, numbers as numbers."""
    return known({name: int(value) if re.fullmatch(r"-?\d{1,18}", value) else value for name, value in lines(text)})


# --- the machine ------------------------------------------------------------------------------------------------------


def _maker_texts(text: str) -> dict[str, str]:
    """Return names and values, without what a maker left as it was."""
    return {name: " ".join(value.split()) for name, value in lines(text) if not _PLACEHOLDER.fullmatch(value)}


def parse_model(text: str) -> Values:
    """Maker, product, version and board; of a machine with a device tree the product alone."""
    said = _maker_texts(text)
    board = said.get("dmi_board_name")
    return known(
        {
            "maker": said.get("dmi_sys_vendor"),
            "product": said.get("dmi_product_name") or said.get("tree"),
            "version": said.get("dmi_product_version"),
            "board": None if board == said.get("dmi_product_name") else board,
        }
    )


def parse_firmware(text: str) -> Values:
    """Maker, version, release and date of the firmware."""
    said = _maker_texts(text)
    names = {"maker": "vendor", "version": "version", "release": "release", "date": "date"}
    return known({key: said.get(f"bios_{name}") for key, name in names.items()})


def parse_different(text: str) -> str:
    """Return what all processors say, or all that they say, in the order in which it comes."""
    return ", ".join(dict.fromkeys(text.split()))


# --- processors -------------------------------------------------------------------------------------------------------


def parse_mitigations(text: str) -> Values:
    """Return each weakness of processors that the kernel knows, and what it does about it, in the kernel's words."""
    return known(dict(lines(text)))


def parse_frequency(text: str) -> Values:
    """Driver and its mode, whether processors go beyond their base frequency, and between which ones they choose."""
    said = parse_values(text)
    boost = said.get("boost", None if "no_turbo" not in said else 1 - int(said["no_turbo"]))
    hertz = {key: int(said[name]) * 1000 for key, name in _FREQUENCIES.items() if name in said}
    return known(
        {
            "driver": said.get("scaling_driver"),
            "mode": said.get("status"),
            "boost": _switch(boost),
            **hertz,
            "preference": said.get("energy_performance_preference"),
        }
    )


_FREQUENCIES = {"lowest_hz": "scaling_min_freq", "highest_hz": "scaling_max_freq", "possible_hz": "cpuinfo_max_freq"}


def parse_idle(text: str) -> Values:
    """Driver and governor, the states in which a processor may wait, and the deepest one with the time to leave it."""
    said = dict(lines(text))
    count = sum(re.fullmatch(r"state\d+ name", name) is not None for name in said)
    keys = ("name", "latency", "disable", "residency")
    states = [tuple(said.get(f"state{n} {key}", "") for key in keys) for n in range(count)]
    used = [(name, latency, stay) for name, latency, off, stay in states if off in ("", "0")]
    deepest = f"{used[-1][0]} ({used[-1][1]} µs)" if used else None
    times = [f"{name} {latency}/{stay} µs" for name, latency, stay in used if latency and stay]
    limit = said.get("limit", "")
    return known(
        {
            "driver": said.get("current_driver"),
            "governor": said.get("current_governor") or said.get("current_governor_ro"),
            "deepest": deepest,
            "states": ", ".join(name for name, _, _ in used),
            "times": ", ".join(times),
            "switched_off": ", ".join(name for name, _, off, _ in states if off not in ("", "0")),
            "limit": f"{limit} µs" if limit.isdecimal() and int(limit) < _NO_LATENCY_LIMIT else None,
        }
    )


US_PER_S = 1_000_000
_NO_LATENCY_LIMIT = 2_000_000_000
"""What /dev/cpu_dma_latency holds where no program asks for a limit (PM_QOS_CPU_LATENCY_DEFAULT_VALUE), in µs."""
_IDLE_STATE = re.compile(r"(?P<name>[^,]+) (?P<exit>\d+)/(?P<stay>\d+) µs")


@dataclass(frozen=True)
class IdleState:
    """A state in which a processor waits."""

    name: str
    exit_s: float
    """How long it takes to leave it, at worst."""
    stay_s: float
    """How long it must last to be worth it: the kernel chooses it for a wait that it expects to be as long."""


def idle_states(facts: Mapping[str, Any]) -> list[IdleState]:
    """Return the idle states that a processor of the box may enter, with times; [] where they are not known."""
    said = facts.get("cpu_idle") or {}
    if (facts.get("kernel_command_line") or {}).get("idle") == "poll":
        return []
    limit = re.match(r"\d+", str(said.get("limit") or ""))
    states = [
        IdleState(match["name"].strip(), int(match["exit"]) / US_PER_S, int(match["stay"]) / US_PER_S)
        for match in _IDLE_STATE.finditer(str(said.get("times") or ""))
    ]
    return [state for state in states if limit is None or state.exit_s <= int(limit[0]) / US_PER_S]


def parse_smt(text: str) -> str:
    """Return whether a core runs several threads at a time."""
    return {"notsupported": "not supported", "notimplemented": "not supported", "forceoff": "off for good"}.get(
        text, text
    )


def parse_numa(text: str) -> Values:
    """Return how many NUMA nodes there are, and whether the kernel moves pages to where they are used."""
    said = dict(lines(text))
    balancing = {"0": "off", "1": "on", "2": "by memory tier"}.get(said.get("numa_balancing", ""))
    return known({"nodes": len(range_members(said["online"])) if "online" in said else None, "balancing": balancing})


def range_members(text: str) -> list[int]:
    """Return the numbers of a list of the kernel's: '0-2,5' are 0, 1, 2 and 5."""
    pairs = (part.partition("-")[::2] for part in text.strip().split(","))
    return [number for low, high in pairs for number in range(int(low), int(high or low) + 1)]


def _switch(value: object) -> str | None:
    """On or off, of what the kernel writes as 1 and 0 or Y and N; None of anything else."""
    return {"1": "on", "y": "on", "true": "on", "0": "off", "n": "off", "false": "off"}.get(str(value).lower())


# --- memory -----------------------------------------------------------------------------------------------------------


def parse_huge_pages(text: str) -> Values:
    """When transparent huge pages are used: the choice in brackets of each setting."""
    return known({name: _chosen(value) for name, value in lines(text)})


def _chosen(value: str) -> str:
    chosen = re.search(r"\[([^]]+)\]", value)
    return chosen[1] if chosen else value


def parse_swap(text: str) -> Values:
    """Return the areas of swap by kind and size, how zram compresses them, and whether zswap is before them."""
    if "known" not in text.split():
        raise ValueError("no list of swap")
    areas = [line.split("\t")[1:] for line in text.splitlines() if line.startswith("area\t")]
    said = dict(lines(text))
    on, packer = _switch(said.get("zswap_enabled")), said.get("zswap_compressor")
    in_zram = any(kind == "zram" for kind, _ in areas)
    return known(
        {
            "areas": ", ".join(f"{kind} {int(size) / KIB:,.0f} MiB" for kind, size in areas) or "none",
            "zram": _chosen(said["comp_algorithm"]) if in_zram and "comp_algorithm" in said else None,
            "zswap": f"on ({packer})" if on == "on" and packer else on,
        }
    )


def parse_reclaim(text: str) -> Values:
    """Return what takes pages away from those who use them: the multi-generational LRU, DAMON, merging, demotion, the
    host."""
    said = dict(lines(text))
    generations, balloon = said.get("lru_gen_enabled"), said.get("balloon_features", "")
    return known(
        {
            "lru_gen": None if generations is None else f"on ({generations})" if int(generations, 16) else "off",
            "damon": _damon(text, said),
            "damon_reclaim": _switch(said.get("damon_reclaim_enabled")),
            "damon_lru_sort": _switch(said.get("damon_lru_sort_enabled")),
            "same_page_merging": _switch(said.get("ksm_run")),
            "demotion": _switch(said.get("demotion_enabled")),
            "free_page_reporting": _switch(balloon[_REPORTING : _REPORTING + 1] or None),
        }
    )


_REPORTING = 5
"""The bit of a virtio balloon with which it gives free pages back to its host (VIRTIO_BALLOON_F_REPORTING)."""


def _damon(text: str, said: Mapping[str, str]) -> str | None:
    """Return whether DAMON watches memory, and what its schemes do with what they find."""
    found = lines(text)
    threads, states = said.get("kdamonds") or None, [value for name, value in found if name == "damon_state"]
    if not states and threads is None:
        return None
    if "on" not in states and threads in (None, "0"):
        return "not running"
    actions = dict.fromkeys(value for name, value in found if name == "damon_action")
    return f"running ({', '.join(actions)})" if actions else "running"


# --- the kernel -------------------------------------------------------------------------------------------------------

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


def parse_command_line(text: str) -> Values:
    """Return the kernel's parameters and their values. What is behind `--` is for the first program and is left out.

    A value is kept where it is a plain word or a small number, or where its parameter chooses how the kernel works: all
    others may be the id of a disk, an address, the name of a machine or a secret.
    """
    found: dict[str, dict[str, None]] = {}
    for word in text.partition(" -- ")[0].split():
        name, equals, value = word.partition("=")
        if _PARAMETER.fullmatch(name):
            found.setdefault(name, {})[_kept_value(name, value) if equals else "set"] = None
    return known({name: ", ".join(values) for name, values in found.items()})


def _kept_value(name: str, value: str) -> str:
    setting = _SETTINGS.fullmatch(name) and _SETTING_VALUE.fullmatch(value)
    return value if setting or _PLAIN.fullmatch(value) else WITHHELD


def parse_kernel_config(text: str) -> Values:
    """Return each of KERNEL_OPTIONS, 'n' where the kernel is built without; last the hash of the whole
    configuration."""
    said = {name.removeprefix("CONFIG_"): value.strip('"') for line in text.splitlines()
            for name, equals, value in [line.partition("=")] if equals and line.startswith("CONFIG_")}  # fmt: skip
    digest = dict(lines(text)).get("sha256", "").split(" ")[0]
    if not said and not digest:
        raise ValueError("no configuration")
    return known({**{name: said.get(name, "n") for name in KERNEL_OPTIONS}, "sha256": digest[:16]})


def debug_options(facts: Mapping[str, Any]) -> list[str]:
    """Return the DEBUG_OPTIONS that the kernel of a box was built with."""
    config = facts.get("kernel_config") or {}
    return [name for name in DEBUG_OPTIONS if config.get(name) == "y"]


def memory_limit(facts: Mapping[str, Any]) -> int | None:
    """Return the memory that the session's control group may use, where that is less than the box has."""
    limit, memory = (facts.get("session_limits") or {}).get("memory_bytes"), facts.get("memory_bytes")
    return limit if isinstance(limit, int) and (memory is None or limit < memory) else None


# --- limits and disks -------------------------------------------------------------------------------------------------


def parse_limits(text: str) -> Values:
    """Return what the session may use: the smallest limit of its control group and of those above it, 'no limit' where
    none of them has one, nothing where the kernel does not tell."""
    found = lines(text)
    limited = {word for name, value in found if name.startswith("known_") for word in re.split(r"[ ,]", value)}
    memory = [value for name, value in found if name in ("memory.max", "memory.limit_in_bytes")]
    return known(
        {
            "memory_bytes": _least(memory, "memory" in limited),
            "memory_high_bytes": _least([value for name, value in found if name == "memory.high"], "memory" in limited),
            "processors": _least_quota(found, "cpu" in limited),
            "processors_allowed": _allowed(dict(found)),
            "tasks": _least([value for name, value in found if name == "pids.max"], "pids" in limited),
            "disks": _disk_limits(found) or (NO_LIMIT if limited & {"io", "blkio"} else None),
        }
    )


def _allowed(said: Mapping[str, str]) -> str | None:
    """Return the processors on which the session may run: 'all', or their numbers."""
    allowed, online = said.get("allowed"), said.get("all_online")
    return ALL if allowed and allowed == online else allowed


def _least(values: Iterable[str], known: bool) -> int | str | None:
    numbers = [int(value) for value in values if value.isdecimal() and int(value) < _UNLIMITED]
    return min(numbers, default=NO_LIMIT if known else None)


def _least_quota(found: list[tuple[str, str]], known: bool) -> float | str | None:
    """Return how many processors' time: quota by period, which the first version has in two files."""
    pairs = [value.split() for name, value in found if name == "cpu.max"]
    pairs += [
        [quota, period]
        for (name, quota), (after, period) in pairwise(found)
        if (name, after) == ("cpu.cfs_quota_us", "cpu.cfs_period_us")
    ]
    shares = [round(int(quota) / int(period), 3) for quota, period in pairs if quota.isdecimal() and int(period)]
    return min(shares, default=NO_LIMIT if known else None)


def _disk_limits(found: Iterable[tuple[str, str]]) -> str:
    """'8:0 rbps=1048576, 8:16 wiops=100': the smallest of each device."""
    least: dict[tuple[str, str], int] = {}
    for name, value in found:
        device, _, rest = value.partition(" ")
        kind = _THROTTLES.get(name)
        parts = [f"{kind}={rest}"] if kind else rest.split() if name == "io.max" else []
        for key, _, number in (part.partition("=") for part in parts):
            if number.isdecimal():
                least[device, key] = min(int(number), least.get((device, key), _UNLIMITED))
    return ", ".join(f"{device} {key}={number}" for (device, key), number in least.items())


_THROTTLES = {
    f"blkio.throttle.{way}_{what}_device": f"{way[0]}{what}" for way in ("read", "write") for what in ("bps", "iops")
}


def parse_sensors(text: str) -> dict[str, Values]:
    """{drive: the file with its temperature, and the temperatures at which it warns and is in danger, in °C}."""
    return _by_disk(text, _OF_A_SENSOR)


def _celsius(value: str) -> float:
    return int(value) / 1000


_OF_A_SENSOR: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "file": ("file", str),
    "log": ("log", str),
    "temp1_max": ("warning_celsius", _celsius),
    "temp1_crit": ("critical_celsius", _celsius),
}


def sensor_files(facts: Mapping[str, Any]) -> list[str]:
    """Return the files in which the box's drives tell their temperature."""
    return [each["file"] for each in (facts.get("drive_sensors") or {}).values() if "file" in each]


def drive_logs(facts: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Return drive to the command that prints its log of health, where root may ask for it."""
    drives = (facts.get("drive_sensors") or {}) if facts.get("rights") in ("root", "sudo") else {}
    return {name: tuple(str(each["log"]).split()) for name, each in drives.items() if "log" in each}


def parse_disks(text: str) -> dict[str, Values]:
    """{disk: its firmware's revision and how its queue is set}."""
    return _by_disk(text, _OF_A_DISK)


def _by_disk(text: str, kinds: Mapping[str, tuple[str, Callable[[str], Any]]]) -> dict[str, Values]:
    """Return the values of each disk. `kinds`: a file of the kernel's, to the key of its value and what reads it."""
    found: dict[str, Values] = {}
    for name, value in lines(text):
        disk, _, file = name.partition("\t")
        key, read = kinds.get(file, ("", str))
        if key and value:
            found.setdefault(disk, {})[key] = read(value)
    return known(found)


_OF_A_DISK: Mapping[str, tuple[str, Callable[[str], Any]]] = {
    "firmware_rev": ("firmware", str),
    "rev": ("firmware", str),
    "write_cache": ("write_cache", str),
    "read_ahead_kb": ("read_ahead_bytes", lambda value: int(value) * KIB),
    "nr_requests": ("requests", int),
    "wbt_lat_usec": ("writeback_throttling", lambda value: f"{value} µs" if value != "0" else "off"),
}
