"""What memory of the box a trial's files took, on a file system that lives in memory, and what they gave back.

trial.sh reads /proc/meminfo three times: before the trial's files are there, when they are, and when they are removed.
A run of an earlier version has no such readings, and gets no such sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median

from mountlab.core.model import Cell, Trial
from mountlab.core.units import KIB
from mountlab.filesystems.evidence import parts_by_heading

MOMENTS = ("empty", "full", "freed")
_LINE = re.compile(r"^(\S+): +(\d{1,18})(?: kB| B)?$", re.MULTILINE | re.ASCII)
_NOT_HELD = (
    "MemFree", "PerCpuFree", "Active(file)", "Inactive(file)", "SReclaimable", "AnonPages", "PageTables",
    "KernelStack",
)  # fmt: skip
"""What is free, what the kernel drops when it needs memory, and what programs hold for themselves."""


@dataclass(frozen=True)
class Reading:
    """The memory of the box at one moment, in bytes."""

    held: int
    """Of memory and swap, neither free, nor cache that the kernel can drop, nor a program's own, nor what a tool copies
    from: files in memory are in it, and so is what is reserved for huge pages."""
    huge: int
    """In use, of what is reserved for huge pages."""
    files: int
    """The sizes of the trial's files together."""


@dataclass(frozen=True)
class Filled:
    """The readings of one trial."""

    empty: Reading
    full: Reading
    freed: Reading


@dataclass(frozen=True)
class Use:
    """What the counted trials of one cell took: medians in bytes. Of memory and swap, or of the huge pages that were
    reserved at the mount."""

    cell: Cell
    n: int
    files: float
    """The size of the files themselves."""
    before: float
    """Without the files. On a zram device, which keeps what was removed: before the first file of all."""
    full: float
    """With the files."""
    after: float
    """When the files were removed."""
    taken: float
    """What was in use with the files, less what was before."""
    least: float
    """Of `taken`, over the trials."""
    most: float
    """The same: the largest."""
    kept: float
    """What of it was still in use when the files were removed."""
    huge_pages: bool
    """Whether it is counted in huge pages that were reserved."""


def filled(text: str) -> Filled | None:
    """Return the three readings of a trial; None where one is missing, or the kernel does not show what they are made
    of."""
    parts = parts_by_heading(text)
    empty, full, freed = (_reading(parts.get(moment, "")) for moment in MOMENTS)
    return Filled(empty, full, freed) if empty and full and freed else None


def _reading(text: str) -> Reading | None:
    lines = {name: int(value) for name, value in _LINE.findall(text)}
    if not {"MemTotal", "Files", "Source", *_NOT_HELD} <= lines.keys():
        return None
    held = lines["MemTotal"] - sum(lines[name] for name in _NOT_HELD)
    swapped = lines.get("SwapTotal", 0) - lines.get("SwapFree", 0)
    pages = lines.get("HugePages_Total", 0) - lines.get("HugePages_Free", 0)
    huge = pages * lines.get("Hugepagesize", 0) * KIB
    return Reading((held + swapped) * KIB - lines["Source"], huge, lines["Files"])


def uses(cells: Iterable[Cell], trials: Iterable[Trial], readings: Mapping[str, Filled]) -> Iterator[Use]:
    """Yield what each cell took, of the cells whose trials left files to take any.

    `trials`: all of the run, in the order in which they ran. `readings`: trial id to its readings.
    """
    read = [trial for trial in trials if trial.trial_id in readings]
    first: dict[str, Reading] = {}
    for trial in read:
        first.setdefault(trial.mount, readings[trial.trial_id].empty)
    for cell in cells:
        counted = [trial for trial in read if trial.cell == cell.id and trial.status == "ok" and not trial.warmup]
        of_cell = [readings[trial.trial_id] for trial in counted]
        if (cell.filesystem.over or cell.filesystem).zram_bytes:
            of_cell = [replace(one, empty=first[trial.mount]) for trial, one in zip(counted, of_cell, strict=True)]
        if of_cell and median(one.full.files for one in of_cell) > 0:
            yield _use(cell, of_cell)


def _use(cell: Cell, readings: Sequence[Filled]) -> Use:
    huge = any(one.full.huge > one.empty.huge for one in readings)
    amounts = [tuple(at.huge if huge else at.held for at in (one.empty, one.full, one.freed)) for one in readings]
    growth = [full - empty for empty, full, _ in amounts]
    before, full, after = (float(median(moment)) for moment in zip(*amounts, strict=True))
    return Use(
        cell=cell,
        n=len(readings),
        files=float(median(one.full.files for one in readings)),
        before=before,
        full=full,
        after=after,
        taken=float(median(growth)),
        least=float(min(growth)),
        most=float(max(growth)),
        kept=float(median(freed - empty for empty, _, freed in amounts)),
        huge_pages=huge,
    )
