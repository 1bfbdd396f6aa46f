"""Trials and facts to caveats: reasons to doubt a number, each saying what was seen, why it matters, what to do.

A new check is one function and one entry in CHECKS.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from mountlab.errors import in_one_line
from mountlab.evidence import Device, DeviceBytes
from mountlab.model import Caveat, Cell, OptionEvidence, Severity, Sweep
from mountlab.tools import TOOLS
from mountlab.tools.fs_mark import FLUSH_THE_MACHINE
from mountlab.units import format_bytes, format_seconds

CACHED_BELOW = 0.9
"""A device that delivered less than this share of what the application read did not answer alone."""
FEW = 5
NOISY_CV = 0.10
CLOCK_SHARE = 0.005
"""A clock step larger than this share of the run time shows in the figure."""


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Everything that the checks look at. Frames have the columns of Run (mountlab.store)."""

    sweep: Sweep
    trials: pd.DataFrame
    measurements: pd.DataFrame
    estimates: pd.DataFrame
    traffic: Mapping[str, Mapping[Device, DeviceBytes]]
    """Trial id to what each block device moved while the tool ran."""
    chains: Mapping[str, list[Device]]
    """Mount id to the block devices below it, top first; [] for a file system without one."""
    backing_types: Mapping[str, str]
    """File system name to the type of the file system that holds its loop image."""
    unseen: Mapping[str, str]
    """File system name to its type, where the kernel does not tell the device below it."""
    answer_metrics: Mapping[str, tuple[str, ...]]
    """Workload label to the metrics that the answer is about."""
    options: list[OptionEvidence]
    facts: Mapping[str, Any]


Check = Callable[[Evidence], Iterator[Caveat]]


def cached_reads(evidence: Evidence) -> Iterator[Caveat]:
    """Reads that the page cache answered, by what the application read against what the devices delivered."""
    for cell, shares in _shares(evidence, "read"):
        if min(shares) < CACHED_BELOW:
            asked = cell.workload.options.get("cache") == "warm"
            yield _of_cell(
                cell, "cache-served", "note" if asked else "warning",
                f"the page cache answered: the device delivered {_range(shares)} of the bytes read"
                + (", as was asked for with cache: warm. This is not the speed of the device."
                   if asked else ". This is not the speed of the device: read more than the memory holds, or cold."),
                metrics="read_",
            )  # fmt: skip


def unflushed_writes(evidence: Evidence) -> Iterator[Caveat]:
    """Writes that had not reached the device when the tool stopped its clock."""
    for cell, shares in _shares(evidence, "write"):
        if min(shares) < CACHED_BELOW:
            yield _of_cell(
                cell, "not-flushed", "warning",
                f"the device had taken {_range(shares)} of the bytes written when the tool finished: the rest was "
                "still in the page cache or was overwritten there. "
                "End with a flush (dd: conv=fdatasync, fio: end_fsync, fs_mark: sync).",
                metrics=_of_side(evidence, cell, "write_"),
            )  # fmt: skip


def _shares(evidence: Evidence, side: str) -> Iterator[tuple[Cell, list[float]]]:
    """For each cell on a device, what the least busy device of the chain moved per byte of the application."""
    moved = evidence.measurements
    moved = moved[(moved["metric"] == "bytes") & (moved["label"] == side) & ~moved["warmup"].astype(bool)]
    mounts = dict(zip(evidence.trials["trial_id"], evidence.trials["mount"], strict=True))
    for cell in evidence.sweep.cells:
        own = moved[moved["cell"] == cell.id]
        shares = [
            _least(evidence.traffic[trial_id], chain, side) / value
            for trial_id, value in zip(own["trial_id"], own["value"], strict=True)
            if (chain := evidence.chains.get(mounts[trial_id]))
            and not evidence.traffic.get(trial_id, {}).keys().isdisjoint(chain)
        ]
        if shares:
            yield cell, shares


def _least(traffic: Mapping[Device, DeviceBytes], chain: list[Device], side: str) -> int:
    amounts = [traffic[device] for device in chain if device in traffic]
    return min(each.read if side == "read" else each.written for each in amounts)


def _range(shares: list[float]) -> str:
    low, high = f"{min(shares):.0%}", f"{max(shares):.0%}"
    return low if low == high else f"{low} to {high}"


def _of_side(evidence: Evidence, cell: Cell, side: str) -> str:
    """The beginning of the metrics of one side; '' (all of them) for a tool that does not tell sides apart."""
    metrics = evidence.measurements.loc[evidence.measurements["cell"] == cell.id, "metric"]
    return side if any(metric.startswith(side) for metric in metrics) else ""


def whole_machine_flushes(evidence: Evidence) -> Iterator[Caveat]:
    """fs_mark with a method that calls sync(), which writes out every file system of the machine."""
    for cell in evidence.sweep.cells:
        method = cell.workload.options.get("sync")
        if cell.workload.tool == "fs_mark" and method in FLUSH_THE_MACHINE:
            yield _of_cell(
                cell, "syncs-everything", "warning",
                f"sync: {method} calls sync(), which flushes every file system of the machine: what others left to "
                "write is in its time. Use fsync, post or post_reverse, or a box on which nothing else writes.",
            )  # fmt: skip


def missing_figures(evidence: Evidence) -> Iterator[Caveat]:
    """Rows of a metric that a workload gave on some file systems, and on another, where it ran too, did not."""
    frame = evidence.measurements
    for workload in evidence.sweep.workloads:
        cells = [cell for cell in evidence.sweep.cells if cell.workload == workload]
        own = {cell.id: frame[frame["cell"] == cell.id] for cell in cells}
        for metric in evidence.answer_metrics[workload.label]:
            labels = {key: list(rows.loc[rows["metric"] == metric, "label"].unique()) for key, rows in own.items()}
            known = dict.fromkeys(label for each in labels.values() for label in each)
            for cell in cells:
                absent = [label for label in known if label not in labels[cell.id]]
                if absent and len(own[cell.id]):
                    yield _of_cell(
                        cell, "figures-missing", "note",
                        f"{metric} has no figure for {', '.join(absent)}, which others of the sweep have: the tool "
                        "gave none here (pg_test_fsync says n/a where a file system takes no direct I/O). It is "
                        "missing, not zero.", metrics=metric,
                    )  # fmt: skip


def unseen_devices(evidence: Evidence) -> Iterator[Caveat]:
    """File systems of which nobody here can tell whether the page cache answered."""
    for name, why in evidence.unseen.items():
        yield Caveat(
            code="cache-not-checked",
            severity="warning",
            scope="filesystem",
            subject=name,
            message=f"{why}, so whether reads came from the page cache and writes reached a device could not be "
            "checked. Measure on a device whose bytes the kernel counts.",
        )


def ineffective_options(evidence: Evidence) -> Iterator[Caveat]:
    """Options that were asked for and that the kernel ignored or changed."""
    severity: Severity = "error" if evidence.sweep.design.on_ineffective == "error" else "warning"
    for option in evidence.options:
        if option.state in ("ignored", "changed"):
            yield Caveat(
                code="option-not-in-effect", severity=severity, scope="filesystem", subject=option.filesystem,
                message=f"{option.option} was asked for and was {option.state}: the kernel says {option.kernel_says}. "
                "Figures are of the file system without it; remove the option, or use a file system that has it.",
            )  # fmt: skip


def invisible_options(evidence: Evidence) -> Iterator[Caveat]:
    """Options of which nothing shows whether they are in effect."""
    unseen: dict[str, list[str]] = {}
    for option in evidence.options:
        if option.state == "not visible":
            unseen.setdefault(option.filesystem, []).append(option.option)
    for filesystem, names in unseen.items():
        yield Caveat(
            code="option-not-visible", severity="note", scope="filesystem", subject=filesystem,
            message=f"{', '.join(names)}: asked for, not refused, and shown nowhere by the kernel. Defaults are often "
            "not shown; nothing here can confirm that it is in effect.",
        )  # fmt: skip


def too_few(evidence: Evidence) -> Iterator[Caveat]:
    """Cells with too few trials for an interval that means much."""
    for cell, n in {cell.id: (cell, n) for cell, _, n in _answers(evidence, "n")}.values():
        if n < 2:
            message = f"n = {n:.0f}: one trial has no spread and so no interval. Set design.repeats to 5 or more."
            yield _of_cell(cell, "too-few", "error", message)
        elif n < FEW:
            message = f"n = {n:.0f}: too few to see the shape of the spread; the interval rests on normal errors. "
            yield _of_cell(cell, "too-few", "warning", f"{message}Set design.repeats to {FEW} or more.")


def too_noisy(evidence: Evidence) -> Iterator[Caveat]:
    """Cells whose trials differ by more than a tenth, in a metric that the answer is about."""
    worst: dict[tuple[str, str], tuple[Cell, float]] = {}
    for cell, metric, cv in _answers(evidence, "cv"):
        if cv > max(NOISY_CV, worst.get((cell.id, metric), (cell, 0.0))[1]):
            worst[cell.id, metric] = (cell, cv)
    for (_, metric), (cell, cv) in worst.items():
        message = (
            f"{metric} varies by {cv:.0%} of its mean from trial to trial (coefficient of variation). Look at "
            "every trial below; longer trials or a quieter box would narrow the interval."
        )
        yield _of_cell(cell, "noisy", "warning", message, metrics=metric)


def _answers(evidence: Evidence, column: str) -> Iterator[tuple[Cell, str, float]]:
    """One column of the estimates of each cell, for the metrics that the answer is about."""
    values: dict[tuple[str, str], dict[str, float]] = {}
    columns = (evidence.estimates[name] for name in ("cell", "metric", "label", column))
    for cell_id, metric, label, value in zip(*columns, strict=True):
        values.setdefault((cell_id, metric), {})[label] = float(value)
    for cell in evidence.sweep.cells:
        for metric in evidence.answer_metrics[cell.workload.label]:
            rows = values.get((cell.id, metric), {})
            yield from ((cell, metric, rows[label]) for label in ([""] if "" in rows else rows))


def too_short(evidence: Evidence) -> Iterator[Caveat]:
    """Trials so short that the tool's own clock rounds the figure."""
    rows = evidence.estimates
    elapsed = rows[(rows["metric"] == "elapsed") & (rows["label"] == "")].set_index("cell")["mean"]
    for cell in evidence.sweep.cells:
        clock_s = TOOLS[cell.workload.tool].clock_s
        if cell.id in elapsed and clock_s / 2 > CLOCK_SHARE * elapsed[cell.id]:
            error = clock_s / 2 / elapsed[cell.id]
            yield _of_cell(
                cell,
                "too-short",
                "note",
                f"trials took {format_seconds(float(elapsed[cell.id]))} by a clock that counts "
                f"{format_seconds(clock_s)} steps: each figure may be off by {error:.1%}. Give it more work.",
            )


def failed_trials(evidence: Evidence) -> Iterator[Caveat]:
    """Trials that gave no figure."""
    all_of = dict(iter(evidence.trials.groupby("cell")))
    for cell, group in evidence.trials[~evidence.trials["status"].isin(("ok", "skipped"))].groupby("cell", sort=False):
        reason = in_one_line(str(group.iloc[0]["reason"]))
        yield Caveat(
            code="failed-trials",
            severity="error",
            scope="cell",
            subject=str(cell),
            message=f"{len(group)} of its {len(all_of[cell])} trials gave no figure: {reason}. "
            + (
                "Nothing can be said of it." if len(group) == len(all_of[cell]) else "The estimate rests on the others."
            ),
        )


def skipped(evidence: Evidence) -> Iterator[Caveat]:
    """Cells that this box, or their file system, cannot run at all."""
    cells = evidence.trials[evidence.trials["status"] == "skipped"].drop_duplicates("cell")
    for filesystem, group in cells.groupby("filesystem", sort=False):
        for reason, of_reason in group.groupby("reason", sort=False):
            names = ", ".join(cell.removeprefix(f"{filesystem}/") for cell in of_reason["cell"])
            yield Caveat(
                code="skipped",
                severity="warning",
                scope="filesystem",
                subject=str(filesystem),
                message=f"{names}: not measured. {reason}.",
            )


def left_out(evidence: Evidence) -> Iterator[Caveat]:
    """File systems of the sweep that were not measured."""
    if evidence.sweep.left_out:
        names = ", ".join(evidence.sweep.left_out)
        reasons = sorted({reason.partition(": ")[2] for reason in evidence.sweep.left_out.values()})
        yield Caveat(
            code="left-out",
            severity="warning",
            scope="run",
            message=f"{names} were left out: {'; '.join(reasons)}. What could be written without that was "
            "measured in their place.",
        )


def image_in_memory(evidence: Evidence) -> Iterator[Caveat]:
    """Loop images whose 'disk' is memory."""
    for name, fstype in evidence.backing_types.items():
        if fstype in ("tmpfs", "ramfs"):
            yield Caveat(
                code="image-in-memory",
                severity="warning",
                scope="filesystem",
                subject=name,
                message=f"its image lies on {fstype}, so no disk is measured. Set mount_root in the box file to a "
                "directory on a disk.",
            )


def loop_images(evidence: Evidence) -> Iterator[Caveat]:
    """File systems on a loop image share the disk with the file system that holds the image."""
    for fs in evidence.sweep.filesystems:
        if fs.image_bytes and fs.name in evidence.backing_types:
            known = evidence.backing_types[fs.name]
            below = "a file system that the kernel does not show" if known == "unknown" else known
            yield Caveat(
                code="loop-image",
                severity="note",
                scope="filesystem",
                subject=fs.name,
                message=f"it lives in an image file of {format_bytes(fs.image_bytes)} on "
                f"{below}, so figures include that file system and the loop "
                "driver. For the disk alone give the box a scratch device.",
            )


def uncapped_memory(evidence: Evidence) -> Iterator[Caveat]:
    """ramfs has no size limit of its own."""
    for fs in evidence.sweep.filesystems:
        if fs.type == "ramfs" and fs.size_bytes:
            yield Caveat(
                code="size-not-enforced",
                severity="note",
                scope="filesystem",
                subject=fs.name,
                message="ramfs knows no size limit; Mountlab kept every workload below "
                f"{format_bytes(fs.size_bytes)} by its plan.",
            )


def historic_names(evidence: Evidence) -> Iterator[Caveat]:
    """File systems that no kernel of today knows by the name in the sweep."""
    for fs in evidence.sweep.filesystems:
        if fs.type == "shmfs":
            where = "mounted with that source" if fs.size_bytes else "the box's own, in a directory below /dev/shm"
            yield Caveat(
                code="historic-name",
                severity="note",
                scope="filesystem",
                subject=fs.name,
                message="shmfs is the name that tmpfs had in kernel 2.4, and lives on in the source column of old "
                f"fstab lines: what was measured is a tmpfs, {where}.",
            )


def not_cold(evidence: Evidence) -> Iterator[Caveat]:
    """Without root the caches of the box cannot be dropped."""
    if evidence.facts.get("rights") == "none" and evidence.sweep.design.drop_caches:
        yield Caveat(
            code="caches-not-dropped",
            severity="note",
            scope="run",
            message="without root only the pages of the measured files could be evicted (posix_fadvise), not "
            "directories, inodes or the cache below a loop device.",
        )


def emulated_box(evidence: Evidence) -> Iterator[Caveat]:
    """The processor of the box is a program."""
    if evidence.facts.get("emulated"):
        yield Caveat(
            code="emulated",
            severity="warning",
            scope="run",
            message="the box is emulated: a program plays its processor and its disks. The figures show that things "
            "work, not how fast they are, and even ratios may come out differently on a real machine. "
            "Measure there before you decide.",
        )


def imported(evidence: Evidence) -> Iterator[Caveat]:
    """Logs that were made elsewhere."""
    if evidence.sweep.imported:
        yield Caveat(
            code="imported",
            severity="warning",
            scope="run",
            message="these figures were read from logs that nobody here saw being made: options, the state of the "
            "caches, the device and the order of the trials are not known, and were not checked. Trials are paired by "
            "their number. Measure with Mountlab before you decide.",
        )


CHECKS: dict[str, Check] = {
    "imported": imported,
    "failed-trials": failed_trials,
    "skipped": skipped,
    "left-out": left_out,
    "emulated": emulated_box,
    "cache-served": cached_reads,
    "not-flushed": unflushed_writes,
    "syncs-everything": whole_machine_flushes,
    "figures-missing": missing_figures,
    "cache-not-checked": unseen_devices,
    "option-not-in-effect": ineffective_options,
    "option-not-visible": invisible_options,
    "image-in-memory": image_in_memory,
    "too-few": too_few,
    "noisy": too_noisy,
    "too-short": too_short,
    "loop-image": loop_images,
    "size-not-enforced": uncapped_memory,
    "historic-name": historic_names,
    "caches-not-dropped": not_cold,
}
"""Caveat code to check."""
_WORST_FIRST = {"error": 0, "warning": 1, "note": 2}


FROM_FIGURES = ("imported", "failed-trials", "figures-missing", "too-few", "noisy", "too-short")
"""The checks that need no more than what a log tells."""


def find_caveats(evidence: Evidence) -> tuple[list[Caveat], list[str]]:
    """All caveats, worst first, and the names of the checks that found nothing. Of logs from elsewhere, only what a
    figure can show is checked: a check that sees nothing has not passed."""
    possible = FROM_FIGURES if evidence.sweep.imported else tuple(CHECKS)
    found = {code: list(check(evidence)) for code, check in CHECKS.items() if code in possible}
    caveats = sorted((each for some in found.values() for each in some), key=lambda each: _WORST_FIRST[each.severity])
    return caveats, [code for code, some in found.items() if not some]


def _of_cell(cell: Cell, code: str, severity: Severity, message: str, *, metrics: str = "") -> Caveat:
    return Caveat(code=code, severity=severity, message=message, scope="cell", subject=cell.id, metrics=metrics)
