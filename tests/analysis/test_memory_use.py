"""What memory files take: readings of /proc/meminfo made up line by line, so that the answer is known."""

from __future__ import annotations

from typing import Any

from mountlab.analysis.memory_use import Filled, Use, filled, uses
from mountlab.core.model import Cell, Filesystem, Trial, Workload
from rows import every_row

MIB = 1024 * 1024
QUIET = {
    "MemTotal": 8_000_000, "MemFree": 5_000_000, "Active(file)": 300_000, "Inactive(file)": 400_000,
    "SReclaimable": 50_000, "AnonPages": 900_000, "PageTables": 10_000, "KernelStack": 5_000, "SwapTotal": 1_000_000,
    "SwapFree": 1_000_000, "HugePages_Total": 0, "HugePages_Free": 0, "Hugepagesize": 2048,
}  # fmt: skip
"""A box before any file is there, in kB, as /proc/meminfo has it; huge pages are counted, without a unit."""
FILE_KB = 65_536
"""64 MiB."""


def reading(files_mib: int = 0, per_cpu: int = 20_000, source: int = 0, **changed: int) -> str:
    """What trial.sh writes of one moment; `changed` is added to a line."""
    lines = {name: value + changed.pop(name.replace("(", "_").rstrip(")"), 0) for name, value in QUIET.items()}
    assert not changed, "each change is of a line"
    units = {name: "" if name.startswith("HugePages") else " kB" for name in lines}
    own = f"PerCpuFree: {per_cpu} kB\nSource: {source} B\nFiles: {files_mib * MIB} B\n"
    return "".join(f"{name}:{value:>12}{units[name]}\n" for name, value in lines.items()) + own


def text(empty: str, full: str, freed: str) -> str:
    return f"==> empty <==\n{empty}==> full <==\n{full}==> freed <==\n{freed}"


def read(*parts: str) -> Filled:
    found = filled(text(*parts))
    assert found
    return found


def use_of(*each: Filled, kind: str = "tmpfs", **more: Any) -> Use:
    """Of trials that follow each other on one mount."""
    cell = Cell(filesystem=Filesystem(name="f", type=kind, **more), workload=Workload(name="w", tool="dd", options={}))
    trials = [trial(f"t{at}", cell.id) for at in range(len(each))]
    (found,) = uses([cell], trials, {f"t{at}": one for at, one in enumerate(each)})
    return found


def trial(name: str, cell: str, **changed: Any) -> Trial:
    given: dict[str, Any] = {
        "trial_id": name, "block": 1, "warmup": False, "cell": cell, "filesystem": "f", "workload": "w", "tool": "dd",
        "factors": {}, "mount": "m", "status": "ok", "reason": "", "started_at": "", "elapsed_s": 1.0,
    }  # fmt: skip
    return Trial(**{**given, **changed})


def test_files_in_tmpfs_take_free_memory_and_give_it_back() -> None:
    each = read(reading(), reading(64, MemFree=-FILE_KB), reading())
    found = use_of(each)
    assert (found.files, found.taken, found.kept) == (64 * MIB, 64 * MIB, 0)
    assert found.full - found.before == 64 * MIB
    assert found.after == found.before
    assert not found.huge_pages


@every_row(
    ("line", "amount"),
    [
        ("Active_file", 40_000),
        ("Inactive_file", 40_000),
        ("SReclaimable", 40_000),
        ("AnonPages", 40_000),
        ("PageTables", 400),
        ("KernelStack", 400),
    ],
)
def test_what_other_programs_and_droppable_cache_take_is_not_counted(line: str, amount: int) -> None:
    """A neighbour that takes memory between two readings changes nothing."""
    full = reading(64, **{"MemFree": -FILE_KB - amount, line: amount})
    assert use_of(read(reading(), full, reading())).taken == 64 * MIB


def test_free_pages_that_a_processor_keeps_are_free() -> None:
    """They are in no line of /proc/meminfo: removed files go there first."""
    freed = reading(MemFree=-FILE_KB, per_cpu=20_000 + FILE_KB)
    assert use_of(read(reading(), reading(64, MemFree=-FILE_KB), freed)).kept == 0


def test_what_a_tool_copies_from_is_not_the_file_s() -> None:
    full = reading(64, MemFree=-2 * FILE_KB, source=64 * MIB)
    freed = reading(MemFree=-FILE_KB, source=64 * MIB)
    found = use_of(read(reading(), full, freed))
    assert (found.taken, found.kept) == (64 * MIB, 0)


def test_what_went_to_swap_is_taken() -> None:
    full = reading(64, MemFree=-FILE_KB // 2, SwapFree=-FILE_KB // 2)
    assert use_of(read(reading(), full, reading())).taken == 64 * MIB


def test_huge_pages_are_taken_of_those_that_were_reserved() -> None:
    """The pool takes its memory when it is reserved: in each of the readings."""
    pool = {"HugePages_Total": 64, "HugePages_Free": 64, "MemFree": -64 * 2048}
    full = reading(64, **{**pool, "HugePages_Free": 32})
    found = use_of(read(reading(**pool), full, reading(**pool)), kind="hugetlbfs")
    assert (found.huge_pages, found.before, found.full, found.after) == (True, 0, 64 * MIB, 0)
    assert (found.taken, found.kept) == (64 * MIB, 0)


def test_a_zram_device_keeps_what_was_removed_for_the_trials_that_follow() -> None:
    """The second trial writes the same blocks again: what is taken is counted from before the first."""
    half = -FILE_KB // 2
    first = read(reading(), reading(64, MemFree=half), reading(MemFree=half))
    again = read(reading(MemFree=half), reading(64, MemFree=half), reading(MemFree=half))
    found = use_of(first, again, kind="ext4", zram_bytes=512 * MIB)
    assert (found.taken, found.kept, found.least, found.most) == (32 * MIB, 32 * MIB, 32 * MIB, 32 * MIB)


def test_medians_are_of_the_counted_trials() -> None:
    cell = Cell(filesystem=Filesystem(name="f", type="tmpfs"), workload=Workload(name="w", tool="dd", options={}))
    sizes = {"t1": 60, "t2": 64, "t3": 65, "warm": 500, "failed": 500}
    trials = [trial("warm", cell.id, warmup=True), trial("failed", cell.id, status="failed")]
    trials += [trial(name, cell.id) for name in ("t1", "t2", "t3")]
    each = {name: read(reading(), reading(64, MemFree=-size * 1024), reading()) for name, size in sizes.items()}
    (found,) = uses([cell], trials, each)
    assert (found.n, found.taken, found.least, found.most) == (3, 64 * MIB, 60 * MIB, 65 * MIB)


@every_row(
    "parts",
    [
        "",
        text(reading(), reading(64), "").removesuffix("==> freed <==\n"),
        text(reading(), reading(64), "MemTotal: 8000000 kB\n"),
        text(reading(), reading(64), reading()[:100]),
    ],
    ids=["nothing", "two moments", "an old kernel", "cut off"],
)
def test_without_three_whole_readings_nothing_is_known(parts: str) -> None:
    assert filled(parts) is None


def test_a_cell_that_left_no_files_says_nothing() -> None:
    cell = Cell(filesystem=Filesystem(name="f", type="tmpfs"), workload=Workload(name="w", tool="dd", options={}))
    assert list(uses([cell], [trial("t1", cell.id)], {"t1": read(reading(), reading(), reading())})) == []
    assert list(uses([cell], [trial("t1", cell.id)], {})) == []
