"""The profiles of the programs of a run: read from a derived file where this is as it was written and made from what
lies there now, else made from the recorded system calls.

A published copy holds, in the place of the calls, the profile that was made of them: what is compressed cannot be
searched for identities.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from mountlab.analysis.program import ProfiledRun, ProgramTrial, fio_sweep, fio_workloads, is_profiled, readable
from mountlab.core.compressed import unpacked
from mountlab.core.disk import read_plain
from mountlab.core.errors import ParseError, StoreError, in_one_line
from mountlab.core.model import Trial
from mountlab.core.safe_yaml import as_yaml
from mountlab.core.trial_files import TrialFiles
from mountlab.results import derived
from mountlab.results.stamp import FIGURES, truth_bytes
from mountlab.sweep.sweep_file import resolve
from mountlab.tracing.program import Profile
from mountlab.tracing.program_figures import profile_of

CALLS = TrialFiles.PROGRAM_CALLS
PROFILE = "program_profile.json"
"""In a published copy, in the place of the calls."""
YAML, FIO, KEPT = "program.yml", "program-fio.yml", "program.json"
"""Derived files: the figures to read, a sweep of fio, and all that a report draws."""
_LARGEST = 1 << 29
_ABOUT_YAML = """\
# What each program of this run does to its files, by its system calls: workload, file system, figures.
# docs/why.md of Mountlab has the definitions. Sizes are in bytes, times in seconds, shares from 0 to 1.
"""
_ABOUT_FIO = """\
# Workloads of fio that do about what the programs of this run do. TO BEGIN WITH, AND NOT VALIDATED: compare what
# matters to you (bytes, syncs, latency) before you let fio stand for a program.
"""


def read_programs(run: Path, trials: Iterable[Trial]) -> list[ProgramTrial]:
    """Return the profiles of a run from its raw output."""
    return [_program(run / "raw" / trial.trial_id, trial) for trial in trials if is_profiled(trial)]


def _program(directory: Path, trial: Trial) -> ProgramTrial:
    about = ProgramTrial(
        trial_id=trial.trial_id,
        cell=trial.cell,
        filesystem=trial.filesystem,
        workload_label=trial.cell.removeprefix(f"{trial.filesystem}/"),
        profile=None,
    )
    if trial.status != "ok":
        return replace(about, reason=f"the trial is {trial.status}: {in_one_line(trial.reason)}")
    try:
        if (directory / PROFILE).exists():
            return replace(about, profile=_as_profile(json.loads(read_plain(directory / PROFILE))))
        text = unpacked(read_plain(directory / CALLS), CALLS, _LARGEST).decode("ascii", errors="replace")
        return replace(about, profile=profile_of(text.splitlines()))
    except FileNotFoundError:
        return replace(about, reason="no system call was recorded")
    except (ParseError, StoreError, ValueError, RecursionError) as error:
        return replace(about, reason=f"its record cannot be read: {in_one_line(str(error))}")


@cache
def _profile_type() -> TypeAdapter[Profile]:
    return TypeAdapter(Profile)


@cache
def _programs_type() -> TypeAdapter[list[ProgramTrial]]:
    return TypeAdapter(list[ProgramTrial])


def _as_profile(content: Any) -> Profile:
    try:
        return _profile_type().validate_python(content)
    except ValidationError as error:
        raise ValueError(str(error)) from error


def profile_text(profile: Profile) -> str:
    """Return a profile as a published copy holds it."""
    return json.dumps(asdict(profile))


def derived_files(run: ProfiledRun) -> dict[str, bytes]:
    """Return the derived files; none where no system calls were recorded."""
    if not run.programs:
        return {}
    files = {
        KEPT: json.dumps([asdict(trial) for trial in run.programs]).encode(),
        YAML: (_ABOUT_YAML + as_yaml(readable(run))).encode(),
    }
    if sweep := fio_sweep(run):
        resolve({"name": "program-fio", **sweep}, where=FIO)  # as its reader would: no file that it refuses
        losses = [
            f"# {name}: {sentence}\n"
            for name, workload in fio_workloads(run).items()
            for sentence in workload.not_carried
        ]
        files[FIO] = (_ABOUT_FIO + "".join(losses) + as_yaml(sweep)).encode()
    return files


def read_kept(run: Path, truth: Mapping[str, str]) -> Sequence[ProgramTrial] | None:
    """Return the profiles in the derived file of a run. None where it is not as it was written, or was made from
    something else than this truth."""
    try:
        seal = derived.read(run)
        if seal is None or dict(seal.made_from) != dict(truth):
            return None
        if (seal.figures, seal.tables) != (FIGURES, derived.TABLES) or KEPT not in seal.files:
            return None
        data = truth_bytes(run / KEPT)
        if data is None or not seal.vouches(KEPT, data):
            return None
        return _programs_type().validate_python(json.loads(data))
    except derived.DAMAGE:
        return None
