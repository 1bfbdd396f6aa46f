"""Facts about memory: how much there is, and what the kernel does with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar

from mountlab.core.box_facts.base import FactPart, Group, fact
from mountlab.core.box_facts.parsing import chosen, key_values, lines, on_or_off, parse_values
from mountlab.core.units import KIB

_MEMINFO = "cat /proc/meminfo"
_HUGE_PAGES = "cd /sys/kernel/mm/transparent_hugepage && values '' enabled defrag shmem_enabled"
_SWAP = r"""
[ ! -r /proc/swaps ] || echo known
while read -r file kind size _; do
    case $file in Filename) continue ;; /dev/zram*|/zram*) kind=zram ;; esac
    printf 'area\t%s\t%s\n' "$kind" "$size"
done </proc/swaps
values zswap_ /sys/module/zswap/parameters/enabled /sys/module/zswap/parameters/compressor
values '' /sys/block/zram[0-9]*/comp_algorithm
"""
_RECLAIM = r"""
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
_VM_SETTINGS = r"""
cd /proc/sys/vm && values '' dirty_ratio dirty_background_ratio dirty_bytes dirty_background_bytes \
    dirty_expire_centisecs dirty_writeback_centisecs swappiness vfs_cache_pressure overcommit_memory min_free_kbytes \
    watermark_scale_factor watermark_boost_factor zone_reclaim_mode compaction_proactiveness page-cluster laptop_mode \
    nr_hugepages
"""
_REPORTING = 5
"""The bit of a virtio balloon with which it gives free pages back to its host (VIRTIO_BALLOON_F_REPORTING)."""


class HugePages(FactPart):
    """When transparent huge pages are used."""

    enabled: str | None = None
    defrag: str | None = None
    shmem_enabled: str | None = None


class SwapAreas(FactPart):
    """Where pages are swapped to."""

    areas: str | None = None
    """Each by kind and size, or 'none'."""
    zram: str | None = None
    """How zram compresses them."""
    zswap: str | None = None
    """Whether zswap is before them, and how it compresses."""


class Reclaim(FactPart):
    """What takes pages away from those who use them."""

    lru_gen: str | None = None
    damon: str | None = None
    """'running (pageout)': whether DAMON watches memory, and what its schemes do with what they find."""
    damon_reclaim: str | None = None
    damon_lru_sort: str | None = None
    same_page_merging: str | None = None
    demotion: str | None = None
    free_page_reporting: str | None = None
    """Whether free pages go back to the host."""


def meminfo(key: str) -> Callable[[str], int]:
    """Return a parser of one line of /proc/meminfo, in bytes (its kB are KiB)."""

    def parse(text: str) -> int:
        number, unit = key_values(text, ":").get(key, "").split()
        if unit != "kB":
            raise ValueError(unit)
        return int(number) * KIB

    return parse


def parse_used_swap(text: str) -> int:
    """Return bytes of swap that are in use, from /proc/meminfo."""
    return meminfo("SwapTotal")(text) - meminfo("SwapFree")(text)


def parse_huge_pages(text: str) -> HugePages:
    """Return the choice in brackets of each setting."""
    return HugePages.of(**{name: chosen(value) for name, value in lines(text)})


def parse_swap(text: str) -> SwapAreas:
    """Return the areas of /proc/swaps. Raises ValueError where it cannot be read."""
    if "known" not in text.split():
        raise ValueError("no list of swap")
    areas = [line.split("\t")[1:] for line in text.splitlines() if line.startswith("area\t")]
    values = dict(lines(text))
    on, packer = on_or_off(values.get("zswap_enabled")), values.get("zswap_compressor")
    in_zram = any(kind == "zram" for kind, _ in areas)
    return SwapAreas.of(
        areas=", ".join(f"{kind} {int(size) / KIB:,.0f} MiB" for kind, size in areas) or "none",
        zram=chosen(values["comp_algorithm"]) if in_zram and "comp_algorithm" in values else None,
        zswap=f"on ({packer})" if on == "on" and packer else on,
    )


def parse_reclaim(text: str) -> Reclaim:
    """Return the multi-generational LRU, DAMON, merging, demotion and the balloon of the host."""
    values = dict(lines(text))
    generations, balloon = values.get("lru_gen_enabled"), values.get("balloon_features", "")
    return Reclaim.of(
        lru_gen=None if generations is None else f"on ({generations})" if int(generations, 16) else "off",
        damon=_damon(text, values.get("kdamonds") or None),
        damon_reclaim=on_or_off(values.get("damon_reclaim_enabled")),
        damon_lru_sort=on_or_off(values.get("damon_lru_sort_enabled")),
        same_page_merging=on_or_off(values.get("ksm_run")),
        demotion=on_or_off(values.get("demotion_enabled")),
        free_page_reporting=on_or_off(balloon[_REPORTING : _REPORTING + 1] or None),
    )


def _damon(text: str, threads: str | None) -> str | None:
    states = [value for name, value in lines(text) if name == "damon_state"]
    if not states and threads is None:
        return None
    if "on" not in states and threads in (None, "0"):
        return "not running"
    actions = dict.fromkeys(value for name, value in lines(text) if name == "damon_action")
    return f"running ({', '.join(actions)})" if actions else "running"


class MemoryFacts(Group):
    """Memory and swap."""

    section: ClassVar = "Memory"
    total_bytes: int | None = fact(
        "memory", _MEMINFO, meminfo("MemTotal"), key="memory_bytes", area="machine", rank=100
    )
    available_bytes: int | None = fact(
        "memory available", _MEMINFO, meminfo("MemAvailable"), key="memory_available_bytes"
    )
    page_bytes: int | None = fact("page size", "getconf PAGESIZE", int, area="machine", rank=140)
    huge_pages: HugePages | None = fact("transparent huge pages", _HUGE_PAGES, parse_huge_pages,
        parts={"shmem_enabled": "of files in memory"}, area="system", rank=40)  # fmt: skip
    swap_bytes: int | None = fact("swap", _MEMINFO, meminfo("SwapTotal"), area="machine", rank=110)
    swap_used_bytes: int | None = fact("swap in use", _MEMINFO, parse_used_swap)
    swap_areas: SwapAreas | None = fact("kinds of swap", _SWAP, parse_swap, area="system", rank=70)
    reclaim: Reclaim | None = fact("reclaim", _RECLAIM, parse_reclaim, area="system", rank=60,
        parts={"lru_gen": "multi-generational LRU", "damon": "DAMON", "damon_reclaim": "DAMON_RECLAIM",
               "damon_lru_sort": "DAMON_LRU_SORT", "same_page_merging": "same-page merging",
               "free_page_reporting": "free page reporting"})  # fmt: skip
    vm_settings: Mapping[str, int | str] | None = fact(
        "memory settings (vm)", _VM_SETTINGS, parse_values, area="system", rank=80
    )

    @property
    def huge_files(self) -> str | None:
        """When files in memory lie in huge pages (shmem_enabled); None where it is unknown."""
        return self.huge_pages.shmem_enabled if self.huge_pages else None
