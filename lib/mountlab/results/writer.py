"""A run directory as it is written, from the plan to the last trial; and one of logs from elsewhere."""

from __future__ import annotations

import math
import os
import platform
import secrets
import subprocess
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from functools import cache
from importlib import metadata
from pathlib import Path

from mountlab.analysis import stopping
from mountlab.analysis.measurements import measurement_frame
from mountlab.core import chain, disk, plugins, run_ids
from mountlab.core.box_facts import BoxFacts
from mountlab.core.cell_stop import CellStop
from mountlab.core.errors import KeepError, MountlabError, MountlabWarning
from mountlab.core.frames import pd
from mountlab.core.model import Box, Sweep, Trial
from mountlab.core.places import INSTALLED, SHIPPED
from mountlab.core.run_info import RunInfo
from mountlab.core.safe_yaml import as_yaml
from mountlab.outcome.judging import Outcome
from mountlab.results import raw_sums, records, run_file
from mountlab.results.journal import FILE as JOURNAL
from mountlab.results.journal import append, mend, read_checked, read_journal
from mountlab.results.lock import held, holder
from mountlab.results.paths import RESULTS, load_published, locate
from mountlab.results.raw import TIMED_FILES, measured_rows, record_of, text_files
from mountlab.results.run_file import read_record, write_record
from mountlab.results.symbols import with_reference
from mountlab.sweep.plan import Plan
from mountlab.sweep.sweep_file import Resolved

BATCH = "MOUNTLAB_BATCH"
"""The environment variable by which a batch marks the runs of its notebooks: run.json keeps it as `batch`."""
BEGIN_S = 60.0
"""How long another process that begins a run or a batch at this moment is waited for."""

LIBRARIES = (
    "mountlab", "numpy", "pandas", "scipy", "matplotlib", "seaborn", "fabric", "papermill", "nbconvert", "jupyterlab",
)  # fmt: skip


def new_run_id(sweep: Sweep, box: Box, results: Path = RESULTS) -> str:
    """Return a name that no run has: time, sweep, box, and four digits by chance.

    The digits are for runs of others that begin on the same box in the same second, with results elsewhere: by its name
    a run knows its processes, and ends them.
    """
    now = datetime.now(UTC)
    candidates = (run_ids.new_id(now, sweep.name, box.name, secrets.token_hex(2)) for _ in range(1000))
    return next(name for name in candidates if not (results / name).exists())


class RunWriter:
    """Keeps what a run measures, each piece whole or not at all. Only the process that holds the run (`held_run`) may
    have one."""

    def __init__(self, path: Path) -> None:
        """Go on writing where a journal ends: what a crash has left half-written is put right first."""
        self.path = path
        disk.tidy(path)
        disk.tidy(path / "raw")
        if torn := mend(path / JOURNAL):
            warnings.warn(torn, MountlabWarning, stacklevel=2)
        journal = read_checked(path)
        self._done = {trial.trial_id for trial in journal.trials}
        self._head = journal.followed.head
        self.records = records.read_kept(path, records.made_from(journal))
        """Of trials in the journal; what is not among them is read from the raw output."""
        self._explained = chain.EXPLAINED in journal.record
        self._holders: dict[str, str] = {}

    @classmethod
    def create(
        cls,
        plan: Plan,
        resolved: Resolved,
        facts: BoxFacts,
        *,
        results: Path = RESULTS,
        by_hand: str = "",
    ) -> RunWriter:
        """`by_hand`: how the run is made, where its trials are asked for one by one; then its parameters may grow."""
        path = results / plan.run_id
        batch = {"batch": os.environ[BATCH]} if os.environ.get(BATCH) else {}
        more = {**batch, **_plugins_of(plan.sweep), **({"by_hand": by_hand} if by_hand else {})}
        order = [trial.trial_id for trial in plan.trials]
        _begin(
            path, "sweep.yml", resolved.parameters, plan.sweep, plan.box, facts, seed=plan.seed, order=order, more=more
        )
        return cls(path)

    def grow(self, resolved: Resolved, facts: BoxFacts, order: Sequence[str]) -> None:
        """Replace the parameters, the facts and the order of a run by hand with those that hold from now on: what is
        in the journal is among them."""
        changed = read_record(self.path) | _plugins_of(resolved.sweep)
        changed |= {"parameters": dict(resolved.parameters), "facts": facts.as_record(), "order": list(order)}
        with self._keeping():
            write_record(self.path, chain.bound(changed))
            disk.replace_file(self.path / "sweep.yml", as_yaml(resolved.parameters).encode())

    def has(self, trial_id: str) -> bool:
        return trial_id in self._done

    def keep_mount(self, mount_id: str, files: Mapping[str, bytes]) -> None:
        with self._keeping():
            evidence = {**with_reference(files, mount_id, self._holders), **self._timed(mount_id)}
            disk.keep_directory(self.path / "raw" / mount_id, raw_sums.with_sums(evidence))

    def mount_files(self, mount_id: str) -> dict[str, str]:
        directory = self.path / "raw" / mount_id
        return text_files(directory) if directory.is_dir() else {}

    def _timed(self, mount_id: str) -> dict[str, bytes]:
        """Of a mount of counted trials that is made again to explain them: how long it took to make at first. Figures
        are made of that, and no diagnostic trial changes any."""
        if not self._explained:
            return {}
        files = (self.path / "raw" / mount_id / name for name, _ in TIMED_FILES)
        return {file.name: disk.read_plain(file) for file in files if file.exists()}

    def record(self, trial: Trial, files: Mapping[str, bytes], outcome: Outcome | None = None) -> None:
        """Raw files first, then the journal's line, then the record: a trial is in the journal only when all of it is
        on disk, and a record that is lost is made again from that.

        Files of an attempt that never reached the journal make place for these.
        """
        with self._keeping():
            disk.keep_directory(self.path / "raw" / trial.trial_id, files)
            self._head = append(self.path, trial, raw=raw_sums.digest_of(files), before=self._head)
        self._done.add(trial.trial_id)
        if outcome and (outcome.output or trial.status != "ok"):
            own_files = {name: data for name, data in files.items() if "/" not in name}
            with suppress(MountlabError, ValueError, LookupError):  # a later reader sees why
                self.records[trial.trial_id] = record_of(trial, own_files, outcome.output, outcome.measurements)

    @contextmanager
    def _keeping(self) -> Iterator[None]:
        """Add to an error of the disk what is kept all the same, and how to resume."""
        try:
            yield
        except KeepError as error:
            state = f"{len(self._done)} trials are kept" if self.path.is_dir() else "its directory is gone"
            raise KeepError(
                f"what is measured cannot be written any more: the run stops, {state}",
                where=error.where,
                got=error.got,
                next_step=f"{error.next_step}; then: mountlab resume {disk.path_text(self.path)}",
            ) from error

    def recorded_trials(self) -> list[Trial]:
        """Return the trials in the journal."""
        return read_journal(self.path)

    def measured(self, sweep: Sweep) -> tuple[list[Trial], pd.DataFrame]:
        """Return the trials in the journal and their figures, from what is on disk: what a later session would see."""
        trials = read_journal(self.path)
        self.records = records.complete(self.path, trials, sweep, self.records)
        return trials, measurement_frame(measured_rows(self.path / "raw", trials, sweep, self.records))

    def stops(self, sweep: Sweep) -> list[CellStop]:
        """Return why each cell has no more trials; [] where there is no stopping rule.

        From all trials in the journal, as the run itself decided: what is left out of the figures later counts here.
        """
        return stopping.replay_stops(sweep, *self.measured(sweep)) if sweep.decides else []

    def finish(self, status: str, stops: Iterable[CellStop] = ()) -> None:
        """The last words of run.json: how it ended, and with a stopping rule why each cell did."""
        rows: dict[str, dict[str, object]] = {}
        for stop in stops:  # JSON has neither infinity nor NaN
            half_width = stop.half_width if math.isfinite(stop.half_width) else None
            row = {key: value for key, value in vars(stop).items() if key != "cell"}
            rows[stop.cell] = {**row, "half_width": half_width}
        ending = {"trials": len(self._done), "head": self._head}
        changed = {**read_record(self.path), "status": status, "finished_at": _now(), chain.ENDING: ending}
        changed |= {"stopped": rows} if rows else {}
        write_record(self.path, changed)


def _begin(
    path: Path,
    file: str,
    parameters: Mapping[str, object],
    sweep: Sweep,
    box: Box,
    facts: BoxFacts,
    *,
    seed: int | None,
    order: Sequence[str],
    more: Mapping[str, object],
) -> None:
    """Make a run directory, there with all of its first files or not at all. `file`: the one that holds the
    parameters; `order`: the ids of the trials; `more`: keys of run.json that not every run has."""
    record = {
        "schema": run_file.SCHEMA,
        "mountlab_version": metadata.version("mountlab"),
        "run_id": path.name,
        "status": "running",
        "created_at": _now(),
        "finished_at": None,
        "box": asdict(box),
        "facts": facts.as_record(),
        "versions": versions(),
        "git_commit": git_commit(),
        "seed": seed,
        "order": list(order),
        "parameters": dict(parameters),
        "left_out": dict(sweep.left_out),
        # JSON has no NaN: a row without figures lacks them.
        "published": [
            {key: value for key, value in asdict(figure).items() if value == value}
            for figure in load_published(sweep.published)
        ],
        **more,
    }
    record = chain.with_start(record) if "by_hand" in more else record
    files = {file: as_yaml(parameters), run_file.FILE: run_file.text_of(chain.bound(record))}
    with beginning(path.parent):
        disk.new_directory(path, {name: text.encode() for name, text in files.items()}, empty="raw")


def _plugins_of(sweep: Sweep) -> dict[str, object]:
    """What run.json keeps of plug-ins: nothing where none is used."""
    used = plugins.record(sweep)
    return {"plugins": used} if used else {}


def extend_run(path: Path, resolved: Resolved, facts: BoxFacts) -> None:
    """Write into run.json which blocks a finished run is to have beyond its own: from here on it is unfinished, and
    `resume` measures them. Only the process that holds the run may do it."""
    record, extension = read_record(path), resolved.sweep.extended
    assert extension is not None
    entry = {
        "at": extension.at,
        "finished_at": record["finished_at"],
        "only_new": extension.only_new,
        "mountlab_version": metadata.version("mountlab"),
        "programs": _new_programs(record, facts),
        "journal": record.get(chain.ENDING, {}),
        "parameters": dict(resolved.parameters),
        **_plugins_of(resolved.sweep),
    }
    entries = [*record.get(chain.EXTENSIONS, ()), entry]
    write_record(path, {**record, "status": "running", "finished_at": None, chain.EXTENSIONS: entries})
    keep_sweep(path, resolved)


def _new_programs(record: Mapping[str, object], facts: BoxFacts) -> dict[str, object]:
    """Return the programs of a box that a run has not needed before."""
    installed = RunInfo.from_record(record).facts.programs.installed
    return {name: program.as_record() for name, program in facts.programs.installed.items() if name not in installed}


def explain_run(path: Path, resolved: Resolved, facts: BoxFacts) -> None:
    """Write into run.json how many diagnostic blocks a finished run is to have, and whether it is profiled: from here
    on it is unfinished, and `resume` measures them. Only the process that holds the run may do it."""
    record = read_record(path)
    entry = {
        "at": _now(),
        "finished_at": record["finished_at"],
        "mountlab_version": metadata.version("mountlab"),
        "blocks": resolved.sweep.design.explain,
        "events": list(facts.surveyed.trace_events),
        "profile": resolved.sweep.design.profile,
        "programs": _new_programs(record, facts),
        "journal": record.get(chain.ENDING, {}),
    }
    entries = [*record.get(chain.EXPLAINED, ()), entry]
    write_record(path, {**record, "status": "running", "finished_at": None, chain.EXPLAINED: entries})
    keep_sweep(path, resolved)


def keep_sweep(path: Path, resolved: Resolved) -> None:
    """Write the sweep of an extended or explained run beside it: the one that would measure all of it in one go."""
    if resolved.sweep.extended or chain.EXPLAINED in read_record(path):
        disk.replace_file(path / "sweep.yml", as_yaml(resolved.parameters).encode())


@contextmanager
def beginning(results: Path) -> Iterator[None]:
    """Be the only process that makes a run or a batch below `results`. Remove half-made ones: they have no owner."""
    disk.make_directory(results)
    with held(results, what="list of runs", name=".beginning", wait_s=BEGIN_S):
        disk.clear(results, f".*{disk.UNFINISHED}")
        yield


def going_on(path: Path) -> str:
    """Return what is to be said to a reader of a run that is being measured; '' of one that is not."""
    other = holder(locate(path))
    return f"the run goes on ({other}): this is what it has measured until now" if other else ""


@contextmanager
def held_run(path: Path) -> Iterator[None]:
    """Be the only process that writes to a run. Raises RunInUse, which names the other."""
    with held(path, what="run"):
        yield


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    """Python, operating system and libraries of the control machine, without those of extras that are not installed."""
    system = {"python": platform.python_version(), "control kernel": platform.release()}
    return {**system, **{name: version for name in LIBRARIES if (version := _version(name))}}


@cache
def _version(name: str) -> str:
    """Return the version of a library, '' where it is not installed."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def git_commit(clone: Path = SHIPPED) -> str | None:
    """Return the commit of a clone of Mountlab, '+changes' where its program in lib/ differs from it; None without one.

    Of lib/ alone: to compare a notebook, git first takes its output out, in a process for each, which takes seconds.
    """
    if INSTALLED and clone == SHIPPED:
        return None  # the commit around an installed package is that of another repository
    arguments = ("status", "--porcelain=v2", "--branch", "--", "lib")
    argv = ["git", "--no-optional-locks", "-C", str(clone), *arguments]
    try:
        output = subprocess.run(argv, capture_output=True, text=True, check=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return None
    first, *others = output.splitlines()
    commit, changed = first.removeprefix("# branch.oid "), any(not line.startswith("#") for line in others)
    return None if commit == "(initial)" else commit + ("+changes" if changed else "")


@dataclass(frozen=True, kw_only=True)
class ImportedRun:
    """What becomes a run of logs that were made elsewhere."""

    sweep: Sweep
    parameters: Mapping[str, object]
    """The user's own parameters of them."""
    box: Box
    facts: BoxFacts
    trials: tuple[tuple[Trial, Mapping[str, bytes]], ...]
    """With the files to keep: `log.txt`, the bytes of one output."""
    files: Mapping[str, str]
    """Name of each log to its SHA-256."""


def keep_imported(run: ImportedRun, *, results: Path = RESULTS) -> Path:
    """Write a run directory for logs from elsewhere, and return it."""
    path = results / new_run_id(run.sweep, replace(run.box, name="imported"), results)
    order = [trial.trial_id for trial, _ in run.trials]
    imported = {"imported": {"sweep": asdict(run.sweep), "files": dict(run.files)}}
    _begin(path, "import.yml", run.parameters, run.sweep, run.box, run.facts, seed=None, order=order, more=imported)
    writer = RunWriter(path)
    for trial, files in run.trials:
        writer.record(trial, files)
    writer.finish("complete")
    return path
