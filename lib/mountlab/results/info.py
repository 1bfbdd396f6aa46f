"""What describes a run in its directory: run.json decoded, its sweep and box, the trials of its journal."""

from __future__ import annotations

import io
import warnings
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pydantic import TypeAdapter

from mountlab.core.disk import path_text, read_plain
from mountlab.core.errors import MountlabWarning, StoreError
from mountlab.core.frames import pd
from mountlab.core.model import Box, Sweep, Trial
from mountlab.core.numbers import listed
from mountlab.core.run_info import RunInfo, with_explain
from mountlab.core.safe_yaml import parse_yaml
from mountlab.core.trial_files import TrialFiles
from mountlab.filesystems import FAMILIES
from mountlab.outcome.judging import is_late
from mountlab.programs import TOOLS
from mountlab.results import derived
from mountlab.results.journal import read_journal
from mountlab.results.lock import FILE as OWNER
from mountlab.results.lock import holder, sweep
from mountlab.results.paths import RESULTS, read_text
from mountlab.results.plain_files import refuse_others
from mountlab.results.run_file import read_record
from mountlab.sweep.exclude_file import ExclusionFile, parse_excluded
from mountlab.sweep.extension import continued
from mountlab.sweep.sweep_file import Resolved, resolve
from mountlab.sweep.untrusted import check_imported, kept_box, known_level

EXCLUDE = "exclude.yml"


def read_info(path: Path) -> RunInfo:
    """Return the run.json of a run, decoded; a running one without a process is interrupted. Raises StoreError."""
    record, where = read_record(path), path_text(path / "run.json")
    try:
        info = RunInfo.from_record(record, where)
    except (TypeError, LookupError, AttributeError) as error:
        raise StoreError("not a run of Mountlab's", where=f"{where}: plugins", got=str(error)) from error
    sweep(path, OWNER, ".deriving", ".reporting")
    status = "interrupted" if info.status == "running" and holder(path) is None else info.status
    if info.imported is not None:
        command = f"mountlab reparse {path_text(path.resolve())}  # from the imported logs"
    else:
        command = f"mountlab run {path_text(path.resolve())}/sweep.yml --box {info.box_name} -p seed={info.seed}"
    return replace(info, status=status, command=command)


def with_diagnostic(resolved: Resolved, blocks: int, *, profile: bool = False) -> Resolved:
    """Return a sweep with so many diagnostic blocks, and with `profile` if it is asked for here or was before."""
    before = resolved.sweep.design
    design = replace(before, explain=blocks, profile=before.profile or profile)
    return Resolved(
        replace(resolved.sweep, design=design), with_explain(resolved.parameters, blocks, profile=design.profile)
    )


def is_derived(path: Path) -> bool:
    """Return whether a run has its derived files beside its raw output."""
    return (path / "comparisons.csv").exists()


def read_verdicts(path: Path) -> dict[str, int]:
    """Return how often each verdict fell in a run, the most frequent first, from what it has derived; {} where that is
    not. Raises AlteredError."""
    data = derived.read_whole(path, "comparisons.csv")
    if data is None:
        return {}
    counts = pd.read_csv(io.BytesIO(data), usecols=["verdict"])["verdict"].value_counts()
    return {str(verdict): int(count) for verdict, count in counts.items()}


def runs_below(results: Path = RESULTS) -> list[tuple[Path, RunInfo]]:
    """Return runs below a directory with their run.json, the newest first; what is no run is passed
    over."""
    runs = []
    for file in results.glob("[!.]*/run.json"):
        with suppress(StoreError):
            runs.append((file.parent, read_info(file.parent)))
    return sorted(runs, key=lambda run: run[1].created_at, reverse=True)


def read_sweep(path: Path) -> Resolved:
    """Return the sweep that a run was made from, as it was resolved then."""
    info, where = read_info(path), f"{path_text(path)}/run.json"
    refuse_others(path, path_text(path))
    if info.imported is not None:
        imported = TypeAdapter(Sweep).validate_python(info.imported["sweep"])
        check_imported(imported, f"{where}: imported")
        return Resolved(imported, dict(info.parameters))
    check_plugins(path, info)
    resolved = resolve(known_level(info.first_parameters), where=where, kept=True)
    sweep = replace(resolved.sweep, left_out=info.left_out, by_hand=info.by_hand is not None)
    for extension in info.extensions:
        resolved = resolve(known_level(extension.parameters), where=where, kept=True)
        sweep = continued(sweep, resolved.sweep, at=extension.at, only_new=extension.only_new)
    resolved = replace(resolved, sweep=sweep)
    for explanation in info.explanations:
        resolved = with_diagnostic(resolved, explanation.blocks, profile=explanation.profile)
    return resolved


def check_plugins(path: Path, info: RunInfo) -> None:
    """Raise StoreError for a tool or a file system of a plug-in that is not installed: a run is not read without it."""
    for used in info.plugins:
        missing = [
            f"{word} {name}"
            for kind, word, names in (("tools", "tool", TOOLS), ("filesystems", "file system", FAMILIES))
            for name in used.parts.get(kind, ())
            if name not in names
        ]
        if missing:
            raise StoreError(
                f"the run was measured with the plug-in {used.distribution} {used.version}, which is not installed",
                where=path_text(path),
                got=f"nothing that has {listed(missing)}",
                next_step=f"install it: .venv/bin/uv pip install {used.distribution}=={used.version}",
            )


def say_plugins(path: Path) -> None:
    """Warn of plug-ins that are not those with which a run was measured."""
    for used in read_info(path).plugins:
        if used.difference:
            warnings.warn(f"{path_text(path)} was measured with {used.difference}", MountlabWarning, stacklevel=3)


def read_box(path: Path) -> Box:
    """Return the box that a run was measured on, as its file said then."""
    return kept_box(read_info(path).box, f"{path_text(path)}/run.json: box")


def read_excluded(path: Path, journal: Sequence[Trial]) -> dict[str, ExclusionFile]:
    """Return the trials that exclude.yml names, with why; {} where there is no such file."""
    file = path / EXCLUDE
    if not file.exists():
        return {}
    text = read_text(file, "list of excluded trials", "write `exclude:` with a line `TRIAL: reason` for each")
    statuses: dict[str, str] = {trial.trial_id: trial.status for trial in journal}
    return parse_excluded(parse_yaml(text, where=path_text(file)), statuses, where=path_text(file))


def without_excluded(path: Path, journal: list[Trial]) -> list[Trial]:
    """Return the trials, those that exclude.yml names marked as excluded, with the reason that it gives."""
    excluded = read_excluded(path, journal)
    return [
        replace(trial, status="excluded", reason=excluded[trial.trial_id].text) if trial.trial_id in excluded else trial
        for trial in journal
    ]


def read_trials(path: Path) -> list[Trial]:
    """Return the journal of a run as outcomes, the excluded trials marked as such."""
    return without_excluded(path, as_outcomes(path, read_journal(path)))


def as_outcomes(path: Path, journal: Sequence[Trial]) -> list[Trial]:
    """Return the trials, with those as timeouts that ran into their time limit before schema 4: such a trial was
    repeated, and what the journal holds of it is a later attempt, or it had failed."""
    return [_as_outcome(path / "raw" / trial.trial_id, trial) for trial in journal]


def _as_outcome(raw: Path, trial: Trial) -> Trial:
    if trial.status == "failed" and is_late(trial.reason):
        return replace(trial, status="timeout")
    files = (raw / f"attempt-{number}" / TrialFiles.REASON for number in range(1, trial.attempts))
    reasons = [read_plain(file).decode(errors="replace") for file in files if file.exists()]
    late = next((reason for reason in reasons if is_late(reason)), "")
    return replace(trial, status="timeout", reason=f"{late}; an earlier Mountlab repeated it") if late else trial
