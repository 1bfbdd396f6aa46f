"""The run's own record: run.json, its sweep and box, and the trials of its journal."""

from __future__ import annotations

import io
import json
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from mountlab.checks.outcome import is_late
from mountlab.core import chain, plugins
from mountlab.core.disk import read_plain, shown
from mountlab.core.errors import MountlabWarning, StoreError
from mountlab.core.frames import pd
from mountlab.core.model import Box, Sweep, Trial
from mountlab.core.numbers import listed
from mountlab.core.safe_yaml import parse_yaml
from mountlab.filesystems import FAMILIES
from mountlab.results import derived
from mountlab.results.journal import read_journal
from mountlab.results.lock import FILE as OWNER
from mountlab.results.lock import holder, sweep
from mountlab.results.paths import RESULTS, read_text
from mountlab.results.plain_files import refuse_others
from mountlab.sweep.exclude_file import ExclusionFile, parse_excluded
from mountlab.sweep.extension import continued
from mountlab.sweep.sweep_file import Resolved, resolve
from mountlab.sweep.untrusted import check_explained, check_extension, check_imported, check_info, kept_box, known_level
from mountlab.tools import TOOLS

EXCLUDE = "exclude.yml"
SCHEMA = 6
"""Version of the run directory. 1: first (2026). 2: logs from elsewhere may be a run: `imported` in run.json, and the
duration of a trial may be null. 3: a trial has `attempts` and `set_aside`; without them it was tried once. 4: a trial
has the `seed` of its tool; without it the tool was given none. One that ran into its time limit has the status
`timeout`; before, it was repeated, or had failed (`as_outcomes`). 5: lines of the journal hold the digest of their raw
output and a checksum chain, which starts in run.json (mountlab.core.chain). 6: a trial has `exhausted`.
A run that was extended has `extensions`, one that was explained afterwards `explained`; diagnostic trials have
`diagnostic`."""


def read_info(path: Path, *, as_written: bool = False) -> dict[str, Any]:
    """run.json, and `command`: the one line that runs it all again from where the directory lies now. `as_written`:
    only what is in the file.

    Raises StoreError where there is none, one that is not ours, or one of a later Mountlab.
    """
    info = run_json(path)
    needed = {"schema", "run_id", "status", "box", "seed", "parameters"}
    if not isinstance(info, dict) or not needed <= info.keys():
        got = f"no {', '.join(sorted(needed - set(info)))}"
        raise StoreError("not a run of Mountlab's", where=shown(path / "run.json"), got=got)
    check_info(info, shown(path / "run.json"))
    if info["schema"] > SCHEMA:
        got, allowed = f"schema {info['schema']}", f"up to {SCHEMA}"
        raise StoreError("written by a later Mountlab", where=shown(path), got=got, allowed=allowed)
    for entry in info.get(chain.EXTENSIONS, ()):
        check_extension(entry, f"{shown(path / 'run.json')}: {chain.EXTENSIONS}")
    for entry in info.get(chain.EXPLAINED, ()):
        check_explained(entry, f"{shown(path / 'run.json')}: {chain.EXPLAINED}")
    if as_written:
        return dict(info)
    info = _as_extended(info)
    sweep(path, OWNER, ".deriving", ".reporting")
    if info["status"] == "running" and holder(path) is None:
        info = {**info, "status": "interrupted"}  # its process is gone, and could not write that
    if "imported" in info:
        return {**info, "command": f"mountlab reparse {shown(path.resolve())}  # from the imported logs"}
    again = f'make run SWEEP={shown(path.resolve())}/sweep.yml BOX={info["box"]["name"]} ARGS="-p seed={info["seed"]}"'
    return {**info, "command": again}


def _as_extended(info: dict[str, Any]) -> dict[str, Any]:
    """Return run.json as extensions and explanations have made it: parameters, programs, traced events."""
    programs = dict((info.get("facts") or {}).get("programs") or {})
    for entry in info.get(chain.EXTENSIONS, ()):
        programs |= entry["programs"]
        info = {**info, "parameters": entry["parameters"], "facts": {**info["facts"], "programs": programs}}
    for entry in info.get(chain.EXPLAINED, ()):
        programs |= entry["programs"]
        facts = {**info["facts"], "programs": programs, "trace_events": entry["events"]}
        info = {**info, "parameters": _explained(info["parameters"], entry["blocks"]), "facts": facts}
    return info


def _explained(parameters: Mapping[str, Any], blocks: int) -> dict[str, Any]:
    return {**parameters, "design": {**(parameters.get("design") or {}), "explain": blocks}}


def parameters_of(info: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters that would measure all of a run in one go, from run.json as it was written."""
    parameters: dict[str, Any] = [info, *info.get(chain.EXTENSIONS, ())][-1]["parameters"]
    return _explained(parameters, info[chain.EXPLAINED][-1]["blocks"]) if info.get(chain.EXPLAINED) else parameters


def with_diagnostic(resolved: Resolved, blocks: int) -> Resolved:
    """Return a sweep with so many diagnostic blocks."""
    design = replace(resolved.sweep.design, explain=blocks)
    return Resolved(replace(resolved.sweep, design=design), _explained(resolved.parameters, blocks))


def check_is_run(path: Path) -> None:
    """Raise StoreError for what is no directory of a run: to be called before anything there is locked or written."""
    _run_text(path)


def _run_text(path: Path) -> str:
    return read_text(path / "run.json", "run", "name a directory below results/")


def run_json(path: Path) -> Any:
    text = _run_text(path)
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StoreError("run.json is not whole", where=shown(path / "run.json"), got=str(error)) from error


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


def runs_below(results: Path = RESULTS) -> list[tuple[Path, dict[str, Any]]]:
    """Return runs below a directory with what is in their run.json, the newest first; what is no run is passed over."""
    found = []
    for file in results.glob("[!.]*/run.json"):
        with suppress(StoreError):
            found.append((file.parent, read_info(file.parent)))
    return sorted(found, key=lambda run: str(run[1].get("created_at", "")), reverse=True)


def read_sweep(path: Path) -> Resolved:
    """Return the sweep that a run was made from, as it was resolved then."""
    info = read_info(path)
    refuse_others(path, shown(path))
    if "imported" in info:
        imported = TypeAdapter(Sweep).validate_python(info["imported"]["sweep"])
        check_imported(imported, f"{shown(path)}/run.json: imported")
        return Resolved(imported, info["parameters"])
    check_plugins(path, info)
    written = read_info(path, as_written=True)
    where = f"{shown(path)}/run.json"
    resolved = resolve(known_level(written["parameters"]), where=where, kept=True)
    sweep = replace(resolved.sweep, left_out=info["left_out"], by_hand="by_hand" in info)
    for entry in written.get(chain.EXTENSIONS, ()):
        resolved = resolve(known_level(entry["parameters"]), where=where, kept=True)
        sweep = continued(sweep, resolved.sweep, at=entry["at"], only_new=entry["only_new"])
    resolved = replace(resolved, sweep=sweep)
    for entry in written.get(chain.EXPLAINED, ()):
        resolved = with_diagnostic(resolved, entry["blocks"])
    return resolved


def used_plugins(path: Path, info: Mapping[str, Any]) -> list[plugins.Used]:
    """The plug-ins that a run used. Raises StoreError where run.json does not say it as we write it."""
    try:
        return plugins.recorded(info)
    except (TypeError, LookupError, AttributeError) as error:
        raise StoreError("not a run of Mountlab's", where=f"{shown(path)}/run.json: plugins", got=str(error)) from error


def check_plugins(path: Path, info: Mapping[str, Any]) -> None:
    """Raise StoreError for a tool or a file system of a plug-in that is not installed: a run is not read without it."""
    for used in used_plugins(path, info):
        missing = [
            f"{word} {name}"
            for kind, word, known in (("tools", "tool", TOOLS), ("filesystems", "file system", FAMILIES))
            for name in used.parts.get(kind, ())
            if name not in known
        ]
        if missing:
            raise StoreError(
                f"the run was measured with the plug-in {used.distribution} {used.version}, which is not installed",
                where=shown(path),
                got=f"nothing that has {listed(missing)}",
                next_step=f"install it: .venv/bin/uv pip install {used.distribution}=={used.version}",
            )


def say_plugins(path: Path) -> None:
    """Warn of plug-ins that are not those with which a run was measured."""
    for used in used_plugins(path, read_info(path)):
        if used.difference:
            warnings.warn(f"{shown(path)} was measured with {used.difference}", MountlabWarning, stacklevel=3)


def read_box(path: Path) -> Box:
    """Return the box that a run was measured on, as its file said then."""
    return kept_box(read_info(path)["box"], f"{shown(path)}/run.json: box")


def read_excluded(path: Path, journal: Sequence[Trial]) -> dict[str, ExclusionFile]:
    """Return the trials that exclude.yml names, with why; {} where there is no such file."""
    file = path / EXCLUDE
    if not file.exists():
        return {}
    text = read_text(file, "list of excluded trials", "write `exclude:` with a line `TRIAL: reason` for each")
    known: dict[str, str] = {trial.trial_id: trial.status for trial in journal}
    return parse_excluded(parse_yaml(text, where=shown(file)), known, where=shown(file))


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
    files = (raw / f"attempt-{number}" / "reason" for number in range(1, trial.attempts))
    reasons = [read_plain(file).decode(errors="replace") for file in files if file.exists()]
    late = next((reason for reason in reasons if is_late(reason)), "")
    return replace(trial, status="timeout", reason=f"{late}; an earlier Mountlab repeated it") if late else trial
