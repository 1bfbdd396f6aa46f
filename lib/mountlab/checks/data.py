"""What was written, and where: data that a layer below may store in less, and trials that repeat one sequence."""

from __future__ import annotations

from collections.abc import Iterator

from mountlab.checks.base import Check, Doubt, Evidence, in_memory
from mountlab.core.box_facts import BoxFacts
from mountlab.core.findings import Severity
from mountlab.core.model import Cell, Filesystem, Sweep, Workload
from mountlab.filesystems.without_effect import foreseen
from mountlab.fio.jobs import jobs_of
from mountlab.fio.seeds import OWN, replays
from mountlab.programs import written
from mountlab.programs.filebench import draws_places

REDUCING = ("bcachefs", "btrfs", "f2fs", "zfs")
"""File systems that can compress or deduplicate what a loop image, or a directory on them, holds."""
_ADVICE = "Write random data: dd `data: random`; fio does so by default. fs_mark and filebench cannot."
_OWN_SEED = "Leave it out: Mountlab seeds each block."


# --- data -------------------------------------------------------------------------------------------------------------


def will_be_reduced(sweep: Sweep, facts: BoxFacts) -> Iterator[Doubt]:
    """Data such as zeros, on a layer that compresses or deduplicates, or may do so."""
    yield from _reduced(sweep, facts, {})


def reduced(evidence: Evidence) -> Iterator[Doubt]:
    """Data such as zeros, on a layer that compresses or deduplicates, or may do so.

    A workload writes zeros or other data that compresses, on zram or with a mount option that compresses. A note where
    the file system that holds an image or a directory may do so (btrfs, ZFS, bcachefs, f2fs), and once for the run on a
    virtual machine or in a container.
    """
    held = dict(evidence.backing_types)
    held |= {name: kind for name, why in evidence.unseen.items() for kind in REDUCING if why.endswith(f" {kind}")}
    yield from _reduced(evidence.sweep, evidence.facts, held)


def _reduced(sweep: Sweep, facts: BoxFacts, held: dict[str, str]) -> Iterator[Doubt]:
    written_by = [] if sweep.imported else [(cell, written(cell.workload)) for cell in sweep.cells]
    cells = [(cell, data.text) for cell, data in written_by if data.reducible]
    for cell, text in cells:
        severity, layer = _layer(cell.filesystem, facts, held)
        if layer:
            yield Doubt.of_cell(
                cell,
                f"{cell.workload.tool} writes {text}, and {layer}: fewer bytes are stored and moved than the figure "
                f"counts. {_ADVICE}",
                severity=severity,
            )
    tools = list(dict.fromkeys(cell.workload.tool for cell, _ in cells if not in_memory(cell.filesystem)))
    if tools and facts.machine.virtual:
        yield Doubt.of_run(
            f"the data that {' and '.join(tools)} wrote compresses, as zeros do, and the box is a virtual machine or a "
            "container: its virtual disk may compress it or not store it at all, and Mountlab cannot see that. "
            f"{_ADVICE}",
            severity="note",
        )


def _layer(fs: Filesystem, facts: BoxFacts, held: dict[str, str]) -> tuple[Severity, str]:
    """Return how sure it is that a layer stores less of such data, and which it is; '' where none is known."""
    lower = fs.over or fs
    if lower.zram_bytes:
        return "warning", "zram compresses it"
    idle = foreseen(lower.type, lower.options, facts.kernel.release or "")
    compressing = [
        word
        for word in lower.options
        if word.startswith("compress") and not word.endswith(("=no", "=none")) and word not in idle
    ]
    if compressing:
        return "warning", f"the mount option {compressing[-1]} compresses it"
    own_directory = lower.image_dir or lower.path
    below = held.get(fs.name) or ("" if own_directory else facts.storage.mount_root_fstype or "")
    on_another = bool(lower.image_bytes) or lower.type in ("dir", "bind")
    return "note", f"the {below} that holds it may compress it" if on_another and below in REDUCING else ""


# --- sequences --------------------------------------------------------------------------------------------------------


def will_replay(sweep: Sweep, _: BoxFacts) -> Iterator[Doubt]:
    """Trials that the sweep, or the tool, makes repeat one random sequence of places and data."""
    for cell in () if sweep.imported else sweep.cells:
        if cell.workload.tool == "filebench" and draws_places(cell.workload):
            yield Doubt.of_cell(
                cell,
                "filebench takes no seed for the files, places and sizes that its operations draw: each of its "
                "processes draws one fixed sequence in every trial. Trials differ in it by the order of threads only.",
                severity="note",
            )
        if names := _own_seeds(cell.workload):
            yield _replayed(cell, f"the sweep sets {', '.join(names)}", _OWN_SEED)


def replayed(evidence: Evidence) -> Iterator[Doubt]:
    """Trials that repeat one random sequence of places and data, by the seeds that the journal holds.

    fio repeats one sequence in every trial: the sweep sets `randseed`, `randrepeat` or `allrandrepeat`, or the journal
    holds no seed (runs of earlier versions). A note where only the data repeats. A note for filebench, whose operations
    draw files, places and sizes from a fixed sequence.
    """
    yield from will_replay(evidence.sweep, evidence.facts)
    without = set(evidence.trials.loc[evidence.trials["seed"].isna(), "trial_id"])
    for cell in evidence.sweep.cells if not evidence.sweep.imported else ():
        unseeded = without.intersection(evidence.counted.get(cell.id, ()))
        if len(unseeded) > 1 and cell.workload.tool == "fio" and not _chooses(cell.workload):
            yield _replayed(cell, "fio was given no seed, as in runs of earlier versions", "Run it again.")


def _replayed(cell: Cell, why: str, advice: str) -> Doubt:
    rows = jobs_of(cell.workload.options)
    drawn = any(str(job.options["rw"]).startswith("rand") for job in rows)
    what = "places and data" if drawn else "data"
    return Doubt.of_cell(
        cell,
        f"{why}: every trial repeats the same random {what}. The trials are repetitions of one sequence and no sample "
        f"of the workload, and what a cache below keeps of one trial serves the next. {advice}",
        severity="warning" if drawn else "note",
    )


def _chooses(workload: Workload) -> bool:
    """Return whether the sweep says how a job of it is seeded."""
    return any(name in job.options for job in jobs_of(workload.options) for name in OWN)


def _own_seeds(workload: Workload) -> list[str]:
    """'randseed 5': the options by which the sweep makes trials repeat one sequence."""
    if workload.tool != "fio":
        return []
    jobs = [job.options for job in jobs_of(workload.options) if replays(job.options)]
    return list(dict.fromkeys(f"{name} {job[name]}" for job in jobs for name in OWN if name in job))


CHECKS = (
    Check("compressible-data", reduced, _ADVICE, severities=("warning", "note"), foresee=will_be_reduced),
    Check(
        "trials-replayed",
        replayed,
        "Leave `randseed`, `randrepeat` and `allrandrepeat` out of the sweep; run old runs again.",
        severities=("warning", "note"),
        foresee=will_replay,
    ),
)
