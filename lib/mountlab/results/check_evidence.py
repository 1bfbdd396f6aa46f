"""What the checks look at: the figures of a run beside the evidence in its raw output."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from mountlab import checks
from mountlab.analysis.samples import figure_steps
from mountlab.core.cell_stop import CellStop
from mountlab.core.findings import Exclusions
from mountlab.core.frames import pd
from mountlab.core.model import Sweep
from mountlab.filesystems import is_in_place
from mountlab.filesystems.counters import Around
from mountlab.filesystems.evidence import (
    Device,
    counted_levels,
    ext4_options,
    mount_of,
    mount_options,
    server_of,
    through_cache_below,
    uncounted_reason,
    zeroed_at_once,
)
from mountlab.filesystems.kept import StateOfMount
from mountlab.results.figures import RunFigures
from mountlab.results.raw import backing_types, read_options, text_files


def _counted_servers(sweep: Sweep, around: Iterable[Around]) -> frozenset[Device]:
    """Return the NFS servers that a tool's bytes can be held against: those of mounts that its own box drives. What
    clients read does not go through the mount of the box; of a watched program the files may lie on any mount."""
    if sweep.clients or any(is_in_place(fs) for fs in sweep.filesystems):
        return frozenset()
    return frozenset(server_of(point) for counts in around for point in counts.nfs)


def read_evidence(
    raw: Path,
    figures: RunFigures,
    trials: pd.DataFrame,
    estimates: pd.DataFrame,
    stops: Sequence[CellStop],
    exclusions: Exclusions,
) -> checks.Evidence:
    """Return the evidence of a run. `trials` and `estimates`: as in its tables."""
    mounts = {
        trial.mount: text_files(raw / trial.mount)
        for trial in figures.trials
        if (raw / trial.mount / "evidence.txt").exists()
    }
    plain = [trial for trial in figures.trials if not trial.diagnostic]
    by_filesystem = {trial.filesystem: mounts[trial.mount] for trial in plain if trial.mount in mounts}
    around = {name: record.around for name, record in figures.records.items() if record.around}
    servers = _counted_servers(figures.sweep, around.values())
    traced = {trial.trial_id for trial in figures.trials if trial.diagnostic}
    return checks.Evidence(
        sweep=figures.sweep,
        trials=trials[~trials["trial_id"].isin(traced)],  # diagnostic ones are no figures, and no reason to doubt any
        measurements=figures.measurements[~figures.measurements["trial_id"].isin(traced)],
        estimates=estimates,
        options=read_options(raw, figures.sweep, by_filesystem),
        open_files={name: record.open_files for name, record in figures.records.items() if record.open_files},
        around={name: counts for name, counts in around.items() if name not in traced},
        traffic={name: counts.traffic for name, counts in around.items() if name not in traced},
        series={name: record.bandwidth for name, record in figures.records.items() if record.bandwidth},
        levels={mount: counted_levels(files, servers) for mount, files in mounts.items()},
        preconditioned={
            trial.trial_id: rounds for trial in plain if (rounds := figures.records[trial.trial_id].rounds) is not None
        },
        stops=stops,
        buffered_loops=frozenset(mount for mount, files in mounts.items() if through_cache_below(files)),
        backing_types=backing_types(by_filesystem),
        identities={
            mount: StateOfMount.read(files[StateOfMount.FILE]).identity or mount
            for mount, files in mounts.items()
            if StateOfMount.FILE in files
        },
        facts=figures.info.facts,
        in_effect={name: {**mount_options(files), **ext4_options(files)} for name, files in by_filesystem.items()},
        fstypes={name: mount_of(files).fstype for name, files in by_filesystem.items()},
        unseen={name: why for name, files in by_filesystem.items() if (why := uncounted_reason(files, servers))},
        zeroes={name: size for name, files in by_filesystem.items() if (size := zeroed_at_once(files)) is not None},
        answer_metrics=figures.answers,
        altered=figures.info.accepted(),
        plugins=[plugin.difference for plugin in figures.info.plugins if plugin.difference],
        has_checksums=figures.info.has_checksums,
        steps=figure_steps(figures.sweep, figures.measurements),
        exclusions=exclusions,
    )
