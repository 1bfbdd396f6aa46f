"""results/: run directories, and the only place that knows where parameter files lie.

A run directory holds what was measured (run.json, trials.jsonl, raw/) and what was derived from it
(measurements.parquet, estimates.csv, comparisons.csv, caveats.csv). The derived part is made again
from the measured part at any time.
"""

from __future__ import annotations

import io
import json
import math
import os
import platform
import subprocess
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from mountlab import analysis, chain, checks, derived, raw_sums, stopping
from mountlab.checks import Moved
from mountlab.counters import FILES as COUNTER_FILES
from mountlab.counters import Around, around
from mountlab.disk import ROOT as ROOT
from mountlab.disk import UNFINISHED, clear, keep_directory, new_directory, read_plain, tidy
from mountlab.disk import make_directory as make_directory
from mountlab.disk import replace_file as replace_file
from mountlab.disk import shown as shown
from mountlab.errors import KeepError, MountlabWarning, ParseError, StoreError, in_one_line
from mountlab.evidence import (
    counted_chain,
    file_system_device,
    loops,
    mount_lines,
    sections,
    through_cache_below,
    unseen,
    zeroed_at_once,
)  # fmt: skip
from mountlab.foreign import check_imported, check_info, check_plain, check_trials, kept_box, known_level
from mountlab.frames import pd
from mountlab.hold import FILE as OWNER
from mountlab.hold import alone, held, holder, sweep
from mountlab.journal import ACCEPT, Journal, append, mend, read_as_it_is, read_checked
from mountlab.journal import FILE as JOURNAL
from mountlab.journal import altered as altered_lines
from mountlab.journal import read_journal as read_journal
from mountlab.logs import Output, Part, decoded, read_log, read_one
from mountlab.logs.base import LARGEST_LOG
from mountlab.memory_use import FILE as MEMORY_FILE
from mountlab.memory_use import Filled, Use, filled, uses
from mountlab.model import (
    Box,
    Caveat,
    Comparison,
    Filesystem,
    Measurement,
    OptionEvidence,
    PublishedFigure,
    Several,
    Shown,
    Stop,
    Sweep,
    Trial,
    Workload,
)
from mountlab.outcome import is_late
from mountlab.params import (
    Resolved,
    as_yaml,
    kept_published,
    parse_box,
    parse_excluded,
    parse_published,
    parse_yaml,
    resolve,
)
from mountlab.parsing import parsed
from mountlab.plain_files import check_below as check_below
from mountlab.plain_files import check_text, read_below, refuse_others
from mountlab.plain_files import resolved_below as resolved_below
from mountlab.plan import Plan
from mountlab.precondition import FILE as ROUNDS_FILE
from mountlab.precondition import Rounds, read_rounds
from mountlab.raw_sums import Problem
from mountlab.read_back import became, control_files, control_ids, ineffective, options_in_effect
from mountlab.stamp import Stamp, stamped, truth_of
from mountlab.text import visible
from mountlab.tools.base import ToolOutput
from mountlab.tools.fio_report import FILE as FIO_REPORT
from mountlab.tools.fio_report import decode, histograms_of
from mountlab.tools.fio_series import PREFIX, Series, read_series
from mountlab.tools.histograms import Histogram, merge
from mountlab.units import NS_PER_S

SCHEMA = 5
"""Version of the run directory. 1: first (2026). 2: logs from elsewhere may be a run: `imported` in run.json, and the
duration of a trial may be null. 3: a trial has `attempts` and `set_aside`; without them it was tried once. 4: a trial
has the `seed` of its tool; without it the tool was given none. One that ran into its time limit has the status
`timeout`; before, it was repeated, or had failed (`_as_outcomes`). 5: lines of the journal hold the digest of their raw
output and a checksum chain, which starts in run.json (mountlab.chain)."""
PARAMS = Path(os.environ.get("MOUNTLAB_PARAMS", ROOT / "params")).absolute()
"""Where boxes, sweeps, batches and published figures are; the environment variable puts them elsewhere."""
NOTEBOOKS = ROOT / "notebooks"
RESULTS = Path(os.environ.get("MOUNTLAB_RESULTS", ROOT / "results")).absolute()
"""Where runs are kept; the environment variable puts them elsewhere."""
MEASUREMENTS = "measurements.parquet"
BATCH = "MOUNTLAB_BATCH"
"""The environment variable by which a batch marks the runs of its notebooks: run.json keeps it as `batch`."""
BEGIN_S = 60.0
"""How long another process that begins a run or a batch at this moment is waited for."""
DERIVE_S = 600.0
"""How long another process that derives the files of a run, or makes its report, is waited for."""
_CAVEAT_COLUMNS = ("scope", "subject", "code", "severity", "message")
LIBRARIES = (
    "mountlab",
    "numpy",
    "pandas",
    "scipy",
    "matplotlib",
    "seaborn",
    "fabric",
    "papermill",
    "nbconvert",
    "jupyterlab",
)


def read_text(path: Path, what: str, next_step: str) -> str:
    """The text of a file. Raises StoreError where it is not there, and where it is none."""
    try:
        check_text(path, shown(path))
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise StoreError(f"a {what} is text in UTF-8", where=shown(path), got=str(error)) from error
    except OSError as error:
        raise StoreError(
            f"no such {what}", where=shown(path), got=error.strerror or str(error), next_step=next_step
        ) from error


def load_sweep(path: Path, overrides: Mapping[str, Any] | None = None) -> Resolved:
    """The sweep of a YAML file, overrides applied. Raises StoreError or ParameterError."""
    names = ", ".join(sorted(each.name for each in (PARAMS / "sweeps").glob("*.yml")))
    text = read_text(path, "sweep file", f"name one, such as those in params/sweeps: {names}")
    raw = parse_yaml(text, where=shown(path))
    return resolve({"name": path.stem, **raw}, where=shown(path), overrides=overrides, read=reader_in(path.parent))


def reader_in(directory: Path) -> Callable[[str, str], str]:
    """Reads the files that a sweep names: those in `directory` and below it, and no others. Of a sweep file that is its
    own directory, also for what `-p` names; of parameters without a file it is the current one."""
    return lambda name, where: read_below(directory, name, where)


def load_box(name: str) -> Box:
    """The box of params/boxes/<name>.yml. Raises StoreError or ParameterError."""
    check_plain([name], "name of a box")
    path = PARAMS / "boxes" / f"{name}.yml"
    known = ", ".join(box_names())
    text = read_text(path, "box file", f"copy params/boxes/example.yml to it, or use one of: {known}")
    return parse_box(parse_yaml(text, where=shown(path)), name=name, where=shown(path))


def box_names() -> list[str]:
    """The names of the files of params/boxes."""
    return sorted(path.stem for path in (PARAMS / "boxes").glob("*.yml"))


def load_published(names: tuple[str, ...]) -> list[PublishedFigure]:
    """The figures of the named files of params/published/. Raises StoreError for a name that leads elsewhere."""
    check_plain(names, "published")
    paths = [PARAMS / "published" / f"{name}.yml" for name in names]
    texts = [read_text(path, "file of published figures", "correct `published` in the sweep file") for path in paths]
    return [figure for path, text in zip(paths, texts, strict=True)
            for figure in parse_published(parse_yaml(text, where=shown(path)), where=shown(path))]  # fmt: skip


def new_run_id(sweep: Sweep, box: Box, results: Path = RESULTS) -> str:
    """A name that no run has: time, sweep and box. Old results are never overwritten."""
    base = f"{datetime.now(UTC):%Y%m%dT%H%M%S}-{sweep.name}-{box.name}"
    candidates = (base, *(f"{base}-{number}" for number in range(2, 1000)))
    return next(name for name in candidates if not (results / name).exists())


class RunWriter:
    """Keeps what a run measures, each piece whole or not at all. Only the process that holds the run (`held_run`) may
    have one."""

    def __init__(self, path: Path) -> None:
        """Go on writing where a journal ends: what a crash has left half-written is put right first."""
        self.path = path
        tidy(path)
        tidy(path / "raw")
        if torn := mend(path / JOURNAL):
            warnings.warn(torn, MountlabWarning, stacklevel=2)
        journal = read_checked(path)
        self._done = {trial.trial_id for trial in journal.trials}
        self._head = journal.followed.head
        self._figures: dict[str, list[Measurement]] = {}

    @classmethod
    def create(cls, plan: Plan, resolved: Resolved, facts: Mapping[str, Any], *, results: Path = RESULTS) -> RunWriter:
        path = results / plan.run_id
        info = {
            "schema": SCHEMA, "mountlab_version": metadata.version("mountlab"), "run_id": plan.run_id,
            "status": "running", "created_at": _now(), "finished_at": None, "box": asdict(plan.box),
            "facts": dict(facts), "versions": versions(), "git_commit": git_commit(), "seed": plan.seed,
            "order": [trial.trial_id for trial in plan.trials], "parameters": resolved.parameters,
            "left_out": dict(plan.sweep.left_out),
            "published": [_figure_row(figure) for figure in load_published(plan.sweep.published)],
            **({"batch": os.environ[BATCH]} if os.environ.get(BATCH) else {}),
        }  # fmt: skip
        _begin(path, {"sweep.yml": as_yaml(resolved.parameters), "run.json": json.dumps(chain.bound(info), indent=1)})
        return cls(path)

    def has(self, trial_id: str) -> bool:
        return trial_id in self._done

    def keep_mount(self, mount_id: str, files: Mapping[str, bytes]) -> None:
        with self._keeping():
            keep_directory(self.path / "raw" / mount_id, raw_sums.with_sums(files))

    def record(self, trial: Trial, files: Mapping[str, bytes]) -> None:
        """Raw files first, then the journal's line: a trial is in the journal only when all of it is on disk.

        Files of an attempt that never reached the journal make place for these.
        """
        with self._keeping():
            keep_directory(self.path / "raw" / trial.trial_id, files)
            self._head = append(self.path, trial, raw=raw_sums.digest_of(files), before=self._head)
        self._done.add(trial.trial_id)

    @contextmanager
    def _keeping(self) -> Iterator[None]:
        """Says of an error of the disk what is kept all the same, and how to go on."""
        try:
            yield
        except KeepError as error:
            kept = f"{len(self._done)} trials are kept" if self.path.is_dir() else "its directory is gone"
            raise KeepError(
                f"what is measured cannot be written any more: the run stops, {kept}", where=error.where,
                got=error.got, next_step=f"{error.next_step}; then: make resume RUN={shown(self.path)}",
            ) from error  # fmt: skip

    def ended(self) -> list[Trial]:
        """The trials in the journal."""
        return read_journal(self.path)

    def measured(self, sweep: Sweep) -> tuple[list[Trial], pd.DataFrame]:
        """The trials in the journal and their figures, from what is on disk: what a later session would see."""
        trials = read_journal(self.path)
        rows = _measurements(self.path / "raw", trials, sweep, self._figures)
        return trials, analysis.measurement_frame(rows)

    def finish(self, status: str, stops: Iterable[Stop] = ()) -> None:
        """The last words of run.json: how it ended, and with a stopping rule why each cell did."""
        info = _run_json(self.path)
        told = {stop.cell: _stop_row(stop) for stop in stops}
        ending = {"trials": len(self._done), "head": self._head}
        changed = {**info, "status": status, "finished_at": _now(), chain.ENDING: ending,
                   **({"stopped": told} if told else {})}  # fmt: skip
        replace_file(self.path / "run.json", json.dumps(changed, indent=1).encode())


def _begin(path: Path, files: Mapping[str, str]) -> None:
    """A run directory with its first files, there with all of them or not at all."""
    with beginning(path.parent):
        new_directory(path, {name: text.encode() for name, text in files.items()}, empty="raw")


@contextmanager
def beginning(results: Path) -> Iterator[None]:
    """Be the only process that makes a run or a batch below `results`. What is half-made there is nobody's: it goes."""
    make_directory(results)
    with held(results, what="list of runs", name=".beginning", wait_s=BEGIN_S):
        clear(results, f".*{UNFINISHED}")
        yield


def going_on(path: Path) -> str:
    """What is to be said to a reader of a run that is being measured; '' of one that is not."""
    other = holder(found(path))
    return f"the run goes on ({other}): this is what it has measured until now" if other else ""


@contextmanager
def held_run(path: Path) -> Iterator[None]:
    """Be the only process that writes to a run. Raises RunInUse, which names the other."""
    with held(path, what="run"):
        yield


def _stop_row(stop: Stop) -> dict[str, Any]:
    """As run.json holds it, which knows no infinity and no NaN."""
    row = {key: value for key, value in asdict(stop).items() if key != "cell"}
    return {**row, "half_width": stop.half_width if math.isfinite(stop.half_width) else None}


def _figure_row(figure: PublishedFigure) -> dict[str, Any]:
    """As run.json holds it, which knows no NaN: without the figures of a row that has none."""
    return {key: value for key, value in asdict(figure).items() if value == value}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def versions() -> dict[str, str]:
    """Python, operating system and libraries of the control machine."""
    return {
        "python": platform.python_version(),
        "control kernel": platform.release(),
        **{name: metadata.version(name) for name in LIBRARIES},
    }


def git_commit() -> str | None:
    """The commit of this working copy, '+changes' where the program in lib/ differs from it; None outside one.

    Of lib/ alone: to compare a notebook, git first takes its output out, in a process for each, which takes seconds.
    """
    try:
        commit = _git("rev-parse", "--verify", "HEAD")
        changed = _git("status", "--porcelain", "--", "lib")
    except (OSError, subprocess.SubprocessError):
        return None
    return commit + ("+changes" if changed else "")


def _git(*words: str) -> str:
    argv = ["git", "--no-optional-locks", "-C", str(ROOT), *words]
    return subprocess.run(argv, capture_output=True, text=True, check=True, timeout=10).stdout.strip()


@dataclass(frozen=True, repr=False)
class Run(Shown):
    """One run as read from its directory. Frames are described in DESIGN section 4 and in METHODS.md."""

    path: Path
    info: dict[str, Any]
    sweep: Sweep
    trials: pd.DataFrame
    censored: analysis.Censored
    """Cell to the counted blocks in which its trial ran into the time limit."""
    measurements: pd.DataFrame
    estimates: pd.DataFrame
    comparisons: list[Comparison]
    caveats: list[Caveat]
    checks_passed: list[str]
    not_checked: dict[str, str]
    """Codes of the checks that could not look at this run, and why: they have neither passed nor raised anything."""
    options: list[OptionEvidence]
    published: list[PublishedFigure]
    answer_metrics: dict[str, tuple[str, ...]]
    stops: list[Stop]
    """Why each cell has no more trials; empty where the design says how many there are."""
    series: Mapping[str, Sequence[Series]]
    """Trial id to what fio logged over time, where it was asked to (log_avg_msec)."""
    moved: Sequence[Moved]
    """What the tool of each counted trial moved, and what the device below it; without those that have none."""
    memory: Sequence[Use]
    """What memory the files of each cell took that lie in memory; empty in a run of an earlier version."""
    truth: Mapping[str, str]
    """Hashes of what may change in the directory, from before it was read (stamp.truth_of)."""

    @cached_property
    def percentiles(self) -> pd.DataFrame:
        """The latency percentiles of each cell with their intervals over trials, in seconds: columns as
        analysis.PERCENTILE_COLUMNS, no rows where no histogram was kept."""
        return analysis.percentile_frame(self.sweep, self._histograms, self.censored)

    def __repr__(self) -> str:
        """Without the frames, which would fill a terminal."""
        return f"<Run {shown(self.path)}: {len(self.trials)} trials>"

    def latencies(self, cell: str) -> dict[str, Histogram]:
        """The latencies of all I/Os of a cell, pooled exactly over its counted trials and its jobs: place in fio's
        report ('read.clat_ns', 'sync.lat_ns') to histogram.

        For the shape of the distribution; intervals are made of trials, never of I/Os. Empty where no histogram was
        kept (another tool, logs from elsewhere without json+). Raises StoreError for a cell that the run does not have.
        """
        if cell not in {each.id for each in self.sweep.cells}:
            allowed = ", ".join(each.id for each in self.sweep.cells)
            raise StoreError("the run has no such cell", where=shown(self.path), got=repr(cell), allowed=allowed)
        return {place: merge(each) for place, each in self._histograms.get(cell, {}).items()}

    @cached_property
    def _histograms(self) -> dict[str, dict[str, list[Histogram]]]:
        """Cell to place to the histogram of each counted trial, its jobs together."""
        found: dict[str, dict[str, list[Histogram]]] = {}
        counted = self.trials[(self.trials["status"] == "ok") & ~self.trials["warmup"].astype(bool)]
        for trial_id, cell in zip(counted["trial_id"], counted["cell"], strict=True):
            report = self.path / "raw" / trial_id / FIO_REPORT
            if report.exists():
                places: dict[str, list[Histogram]] = {}
                for (_, place), bins in histograms_of(decode(read_plain(report).decode())).items():
                    places.setdefault(place, []).append(bins)
                for place, each in places.items():
                    found.setdefault(cell, {}).setdefault(place, []).append(merge(each))
        return found


def read_info(path: Path, *, as_written: bool = False) -> dict[str, Any]:
    """run.json, and `command`: the one line that runs it all again from where the directory lies now. `as_written`:
    only what is in the file.

    Raises StoreError where there is none, one that is not ours, or one of a later Mountlab.
    """
    info = _run_json(path)
    needed = {"schema", "run_id", "status", "box", "seed", "parameters"}
    if not isinstance(info, dict) or not needed <= info.keys():
        raise StoreError(
            "not a run of Mountlab's", where=shown(path / "run.json"), got=f"no {', '.join(sorted(needed - set(info)))}"
        )
    check_info(info, shown(path / "run.json"))
    if info["schema"] > SCHEMA:
        raise StoreError(
            "written by a later Mountlab", where=shown(path), got=f"schema {info['schema']}", allowed=f"up to {SCHEMA}"
        )
    if as_written:
        return dict(info)
    sweep(path, OWNER, ".deriving", ".reporting")
    if info["status"] == "running" and holder(path) is None:
        info = {**info, "status": "interrupted"}  # whoever ran it is gone, and could not say so
    if "imported" in info:
        return {**info, "command": f"python -m mountlab reparse {shown(path.resolve())}  # from the imported logs"}
    again = f'make run SWEEP={shown(path.resolve())}/sweep.yml BOX={info["box"]["name"]} ARGS="-p seed={info["seed"]}"'
    return {**info, "command": again}


def _run_json(path: Path) -> Any:
    text = read_text(path / "run.json", "run", "name a directory below results/")
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise StoreError("run.json is not whole", where=shown(path / "run.json"), got=str(error)) from error


def is_derived(path: Path) -> bool:
    """Whether a run has its derived files beside its raw output."""
    return (path / "comparisons.csv").exists()


def read_verdicts(path: Path) -> dict[str, int]:
    """How often each verdict fell in a run, the most frequent first, from what it has derived; {} where that is not.
    Raises AlteredError."""
    data = derived.read_whole(path, "comparisons.csv")
    if data is None:
        return {}
    counts = pd.read_csv(io.BytesIO(data), usecols=["verdict"])["verdict"].value_counts()
    return {str(verdict): int(count) for verdict, count in counts.items()}


def found(path: Path | str) -> Path:
    """A path that a person gave: from here where it is there, else from the repository."""
    return Path(path) if Path(path).exists() else ROOT / path


def runs_below(results: Path = RESULTS) -> list[tuple[Path, dict[str, Any]]]:
    """Runs below a directory with what is in their run.json, the newest first; what is no run is passed over."""
    found = []
    for file in results.glob("[!.]*/run.json"):
        with suppress(StoreError):
            found.append((file.parent, read_info(file.parent)))
    return sorted(found, key=lambda run: str(run[1].get("created_at", "")), reverse=True)


def read_sweep(path: Path) -> Resolved:
    """The sweep that a run was made from, as it was resolved then."""
    info = read_info(path)
    refuse_others(path, shown(path))
    if "imported" in info:
        imported = TypeAdapter(Sweep).validate_python(info["imported"]["sweep"])
        check_imported(imported, f"{shown(path)}/run.json: imported")
        return Resolved(imported, info["parameters"])
    resolved = resolve(known_level(info["parameters"]), where=f"{shown(path)}/run.json", kept=True)
    return replace(resolved, sweep=replace(resolved.sweep, left_out=info["left_out"]))


def read_box(path: Path) -> Box:
    """The box that a run was measured on, as its file said then."""
    return kept_box(read_info(path)["box"], f"{shown(path)}/run.json: box")


def doubts_of_mount(run: Run, filesystem: str) -> list[str]:
    """What speaks against mounting it again in the same way. Raises StoreError where the run never could."""
    own = run.trials[run.trials["filesystem"] == filesystem]
    if not (own["status"] == "ok").any():
        reason = in_one_line(str(own.iloc[0]["reason"])) if len(own) else "it was not measured"
        raise StoreError(
            f"{filesystem} never worked in this run", where=shown(run.path), got=reason,
            allowed="a file system with a trial that is ok",
        )  # fmt: skip
    wrong = [row for row in ineffective(run.options) if row.filesystem == filesystem]
    return [f"{row.option} {became(row)} (the kernel says {row.kernel_says})" for row in wrong]


def load_run(path: Path | str, *, as_it_is: bool = False) -> Run:
    """Read a run. Its figures are those of measurements.parquet while it is as it was written, made from the files that
    the run has now; else they are derived from the raw output, as always with `as_it_is`. Raw output that is not as it
    was written is refused either way.

    A relative path is looked up from here, then from the repository: the kernel of a notebook works beside it. Raises
    AlteredError where what was measured was altered after it was written; with `as_it_is` it is read all the same.
    """
    path = found(path).resolve()
    run = _read_run(path, as_it_is=as_it_is)
    _say_altered(path, f"`python -m mountlab reparse {shown(path)}` writes it again")
    return run


def _read_run(path: Path, *, as_it_is: bool = False, again: bool = False) -> Run:
    """`again`: with figures from the raw output."""
    with _readable(path):
        return _load_run(path, as_it_is=as_it_is, again=again)


def _say_altered(path: Path, what_then: str) -> None:
    """Warn of derived files that were altered after they were written: nothing is taken from them."""
    if names := derived.altered(path):
        files = ", ".join(shown(path / name) for name in names)
        warnings.warn(f"altered after it was written: {files}. The figures are derived again from the raw output; "
                      f"{what_then}", MountlabWarning, stacklevel=3)  # fmt: skip


def load_figures(path: Path) -> Figures:
    """Read only the figures of a run from its raw output. Raises as `load_run` does."""
    with _readable(path):
        return _figures(path)


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Says of a damaged run that it is one."""
    if path.is_dir():
        refuse_others(path, shown(path))
    try:
        yield
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError) as error:
        raise StoreError(
            "the run cannot be read: a file of it is damaged, or was not written by Mountlab", where=shown(path),
            got=f"{type(error).__name__}: {error}"[:300],
            next_step="compare run.json, trials.jsonl and raw/ with a copy; of a bundle, `reproduce` says which",
        ) from error  # fmt: skip


@dataclass(frozen=True)
class Figures:
    """The figures of a run, and what they were made from."""

    info: dict[str, Any]
    sweep: Sweep
    whole: list[Trial]
    """The journal as it stands."""
    journal: list[Trial]
    """With the excluded trials marked."""
    read: dict[str, list[Measurement]]
    """Of each trial that was parsed, as its tool gave them."""
    stopped: list[Stop] | None
    """Why each cell has no more trials, where that is known without them."""
    measurements: pd.DataFrame
    answers: dict[str, tuple[str, ...]]
    truth: dict[str, str]


def _figures(path: Path, *, as_it_is: bool = False, again: bool = True) -> Figures:
    truth, info, sweep = truth_of(path), read_info(path), read_sweep(path).sweep
    kept, read = read_as_it_is(path) if as_it_is else read_checked(path), dict[str, list[Measurement]]()
    whole = kept.trials
    check_plain([info["run_id"], info["box"]["name"]], f"{shown(path)}/run.json")
    check_trials(whole, f"{shown(path)}/trials.jsonl")
    journal = _without_excluded(path, _as_outcomes(path, whole))
    if not journal:
        raise StoreError("the run holds no trials yet", where=shown(path), next_step=f"make resume RUN={shown(path)}")
    if not as_it_is:
        raw_sums.refuse_altered(_altered_raw(path, sweep, kept, journal), shown(path), ACCEPT.format(run=shown(path)))
    known = None if again or as_it_is or chain.KEY not in info else derived.current_figures(path, MEASUREMENTS, truth)
    measurements = known if known is not None else analysis.without_partial(
        analysis.measurement_frame(_measurements(path / "raw", journal, sweep, read))
    )  # fmt: skip
    answers = analysis.answer_metrics(sweep, measurements)
    stopped = None if known is None else _stops_said(info, sweep, len(whole))
    return Figures(info, sweep, whole, journal, read, stopped, measurements, answers, truth)


def _stops_said(info: Mapping[str, Any], sweep: Sweep, trials: int) -> list[Stop] | None:
    """Return the stops that run.json holds of a run with so many trials; None where it does not hold all of them."""
    if sweep.design.until is None:
        return []
    said = info.get("stopped", {}) if info.get(chain.ENDING, {}).get("trials") == trials else {}
    rows = [{"cell": cell.id, **said[cell.id]} for cell in sweep.cells if cell.id in said]
    if len(rows) < len(sweep.cells) or any(row["half_width"] is None for row in rows):
        return None
    return [Stop(**row) for row in rows]


def refuse_altered(path: Path, info: Mapping[str, Any]) -> None:
    """Raise AlteredError where the journal of a run was altered. A journal from which figures were derived as it is now
    was looked at then."""
    if chain.KEY in info and not derived.is_made_from(path, truth_of(path)):
        read_checked(path)


def altered(path: Path) -> list[Problem]:
    """Return where what was measured is not as it was written, and what is wrong there. Raises StoreError for a journal
    that cannot be read."""
    kept = read_as_it_is(path)
    journal = _without_excluded(path, kept.trials)
    return [*altered_lines(path, kept), *_altered_raw(path, read_sweep(path).sweep, kept, journal)]


def _altered_raw(path: Path, sweep: Sweep, kept: Journal, journal: Sequence[Trial]) -> list[Problem]:
    """Where raw output is not what it was when it was written; that of excluded trials is not looked at."""
    accepted = accepted_raw(kept.info)
    counted = [trial.trial_id for trial in journal if trial.status != "excluded" and trial.trial_id in kept.raw]
    digests = {trial_id: accepted.get(trial_id, kept.raw[trial_id]) for trial_id in counted}
    return [
        *raw_sums.altered_trials(path / "raw", digests),
        *raw_sums.altered_mounts(path / "raw", mounts_with_sums(kept.info, sweep, journal), accepted),
    ]


def accepted_raw(info: Mapping[str, Any]) -> dict[str, str]:
    """Return the trials and mounts whose altered raw output a person accepted, each with its digest then."""
    return {name: each for entry in info.get(chain.ALTERED, ()) for name, each in entry.get("raw", {}).items()}


def mounts_with_sums(info: Mapping[str, Any], sweep: Sweep, journal: Iterable[Trial]) -> list[str]:
    """Return the directories of mounts below raw/ that have checksums: none in a run of an earlier version."""
    if chain.KEY not in info or sweep.imported:
        return []
    own = {trial.mount for trial in journal if trial.status != "excluded"}
    return sorted(own - {""} | {f"c-{fs.name}" for fs in sweep.filesystems})


def _load_run(path: Path, *, as_it_is: bool, again: bool) -> Run:
    own, raw = _figures(path, as_it_is=as_it_is, again=again), path / "raw"
    info, sweep, journal, measurements, answers = own.info, own.sweep, own.journal, own.measurements, own.answers
    stops = _stops(raw, own.whole, sweep, own.read) if own.stopped is None else own.stopped
    censored = analysis.censored_blocks(journal)
    estimates = analysis.estimate_frame(
        sweep, measurements, run_id=info["run_id"], box=info["box"]["name"], censored=censored
    )
    estimates = _with_reasons(estimates, stops)
    trials = pd.DataFrame([{"seq": seq, **asdict(trial)} for seq, trial in enumerate(journal, start=1)])
    mounts = {
        trial.mount: _files(raw / trial.mount) for trial in journal if (raw / trial.mount / "evidence.txt").exists()
    }
    by_filesystem = {trial.filesystem: mounts[trial.mount] for trial in journal if trial.mount in mounts}
    options = _options(raw, sweep, by_filesystem)
    kept, series = _around(raw, journal), _series(raw, journal)
    evidence = checks.Evidence(
        sweep=sweep, trials=trials, measurements=measurements, estimates=estimates, options=options, around=kept,
        traffic={trial_id: each.traffic for trial_id, each in kept.items()}, series=series,
        chains={mount: counted_chain(files) for mount, files in mounts.items()},
        preconditioned=_preconditioned(raw, journal), stops=stops,
        buffered_loops=frozenset(mount for mount, files in mounts.items() if through_cache_below(files)),
        backing_types=_backing_types(by_filesystem), facts=info["facts"],
        unseen={name: why for name, files in by_filesystem.items() if (why := unseen(files))},
        zeroes={name: size for name, files in by_filesystem.items() if (size := zeroed_at_once(files)) is not None},
        answer_metrics=answers, altered=chain.accepted_words(info),
        has_checksums=chain.KEY in info,
    )  # fmt: skip
    findings = checks.find_caveats(evidence)
    return Run(
        path=path, info=info, sweep=sweep, trials=trials, measurements=measurements, estimates=estimates,
        censored=censored, comparisons=Several(analysis.comparisons(sweep, measurements, censored)),
        caveats=Several(findings.caveats),
        checks_passed=findings.passed, not_checked=findings.not_checked, options=options,
        published=[kept_published(each, f"{shown(path)}/run.json: published") for each in info["published"]],
        answer_metrics=answers, stops=stops, series=series, moved=checks.moved(evidence),
        memory=list(uses(sweep.cells, journal, _memory(raw, journal))), truth=own.truth,
    )  # fmt: skip


def _options(raw: Path, sweep: Sweep, evidence: Mapping[str, Mapping[str, str]]) -> list[OptionEvidence]:
    """What became of each option, by the evidence of each file system that was mounted."""
    return [
        row
        for fs in sweep.filesystems
        if fs.name in evidence
        for row in options_in_effect(fs, evidence[fs.name], _control(raw, fs))
    ]


def read_stops(path: Path, sweep: Sweep) -> list[Stop]:
    """Why each cell of a run has no more trials; [] where there was no stopping rule.

    From all trials in the journal, as the run itself decided: what was left out of the figures later counts here.
    """
    return _stops(path / "raw", read_journal(path), sweep, {})


def _stops(raw: Path, journal: list[Trial], sweep: Sweep, figures: dict[str, list[Measurement]]) -> list[Stop]:
    """`figures` holds those that were read already, by trial."""
    if sweep.design.until is None:
        return []
    return stopping.stops(sweep, journal, analysis.measurement_frame(_measurements(raw, journal, sweep, figures)))


def _with_reasons(estimates: pd.DataFrame, stops: Sequence[Stop]) -> pd.DataFrame:
    """With a column that says why each cell has no more trials, where there was a stopping rule."""
    reasons = {stop.cell: stop.reason for stop in stops}
    return estimates.assign(stopped=estimates["cell"].map(reasons)) if stops else estimates


@dataclass(frozen=True, kw_only=True)
class ImportedRun:
    """What becomes a run of logs that were made elsewhere."""

    sweep: Sweep
    parameters: Mapping[str, Any]
    """What the user said of them."""
    box: Box
    facts: Mapping[str, Any]
    trials: tuple[tuple[Trial, Mapping[str, bytes]], ...]
    """With the files to keep: `log.txt`, the bytes of one output."""
    files: Mapping[str, str]
    """Name of each log to its SHA-256."""


def keep_imported(run: ImportedRun, *, results: Path = RESULTS) -> Path:
    """Write a run directory for logs from elsewhere, and return it."""
    path = results / new_run_id(run.sweep, replace(run.box, name="imported"), results)
    info = {
        "schema": SCHEMA, "mountlab_version": metadata.version("mountlab"), "run_id": path.name, "status": "running",
        "created_at": _now(), "finished_at": None, "box": asdict(run.box), "facts": dict(run.facts),
        "versions": versions(), "git_commit": git_commit(), "seed": None,
        "order": [trial.trial_id for trial, _ in run.trials], "parameters": dict(run.parameters), "left_out": {},
        "published": [_figure_row(figure) for figure in load_published(run.sweep.published)],
        "imported": {"sweep": asdict(run.sweep), "files": dict(run.files)},
    }  # fmt: skip
    _begin(path, {"import.yml": as_yaml(run.parameters), "run.json": json.dumps(chain.bound(info), indent=1)})
    writer = RunWriter(path)
    for trial, files in run.trials:
        writer.record(trial, files)
    writer.finish("complete")
    return path


def _measurements(
    raw: Path, journal: list[Trial], sweep: Sweep, known: dict[str, list[Measurement]]
) -> Iterator[tuple[Trial, Measurement]]:
    """The figures of the trials that are ok. `known` keeps those that were read, by trial, for the next time."""
    workloads = {cell.id: cell.workload for cell in sweep.cells}
    first, timed = _first_cells(journal, sweep), set[str]()
    for trial in journal:
        if trial.status == "ok":
            if trial.trial_id not in known:
                parse = _imported if sweep.imported else _parsed
                known[trial.trial_id] = parse(raw / trial.trial_id, workloads[trial.cell])
            yield from ((trial, row) for row in known[trial.trial_id])
            if trial.cell in first and trial.mount not in timed:
                timed.add(trial.mount)
                yield from ((trial, row) for row in _made(raw / trial.mount))


def _parsed(raw: Path, workload: Workload) -> list[Measurement]:
    output = ToolOutput.from_files({file.name: read_plain(file) for file in _plain_files(raw)})
    return parsed(workload, output)


def _imported(raw: Path, workload: Workload) -> list[Measurement]:
    log = raw / "log.txt"
    return read_one(workload.tool, decoded(read_plain(log)), where=shown(log), known=workload.options).measurements


def _first_cells(journal: list[Trial], sweep: Sweep) -> set[str]:
    """Of each file system, the cell with the first workload of the sweep that it takes."""
    ok = {trial.cell for trial in journal if trial.status == "ok"}
    cells = {cell.filesystem.name: cell.id for cell in reversed(sweep.cells) if cell.id in ok}
    return set(cells.values())


def _made(mount: Path) -> Iterator[Measurement]:
    """How long the file system took to make and to mount. These figures belong to a mount, not to a workload: they
    stand with the first workload of the sweep, once for each mount."""
    for file, metric in (("mkfs.txt", "mkfs_time"), ("mkfs-below.txt", "mkfs_time"), ("mount.txt", "mount_time")):
        if (mount / file).exists():
            elapsed_ns = int(sections(read_plain(mount / file).decode(errors="replace"))["elapsed_ns"])
            yield Measurement(metric=metric, value=elapsed_ns / NS_PER_S, unit="s")


def _control(raw: Path, fs: Filesystem) -> dict[str, str] | None:
    """The evidence of the same file system made without options, where the run has it."""
    made = [raw / control for control in control_ids(fs.name)]
    return control_files(*(_files(each) if (each / "evidence.txt").exists() else None for each in made))


def _files(directory: Path) -> dict[str, str]:
    return {file.name: read_plain(file).decode(errors="replace") for file in _plain_files(directory)}


def _plain_files(directory: Path) -> list[Path]:
    """What lies in a directory of raw output, but for the directories of earlier attempts."""
    if not directory.is_dir():
        raise StoreError(
            "the raw output of a trial or a mount that the journal names is not there", where=shown(directory),
            next_step="bring it back; or take its line out of trials.jsonl: it then counts as not run",
        )  # fmt: skip
    return [path for path in directory.iterdir() if path.is_symlink() or not path.is_dir()]


def _without_excluded(path: Path, journal: list[Trial]) -> list[Trial]:
    """The trials, those that exclude.yml names marked as excluded, with the reason that it gives."""
    file = path / "exclude.yml"
    if not file.exists():
        return journal
    text = read_text(file, "list of excluded trials", "write `exclude:` with a line `TRIAL: reason` for each")
    known: dict[str, str] = {trial.trial_id: trial.status for trial in journal}
    excluded = parse_excluded(parse_yaml(text, where=shown(file)), known, where=shown(file))
    return [
        replace(trial, status="excluded", reason=excluded[trial.trial_id]) if trial.trial_id in excluded else trial
        for trial in journal
    ]


def read_trials(path: Path) -> list[Trial]:
    """The journal of a run as outcomes, the excluded trials marked as such."""
    return _without_excluded(path, _as_outcomes(path, read_journal(path)))


def _as_outcomes(path: Path, journal: Sequence[Trial]) -> list[Trial]:
    """The trials, with those as timeouts that ran into their time limit before schema 4: such a trial was repeated, and
    what the journal holds of it is a later attempt, or it had failed."""
    return [_as_outcome(path / "raw" / trial.trial_id, trial) for trial in journal]


def _as_outcome(raw: Path, trial: Trial) -> Trial:
    if trial.status == "failed" and is_late(trial.reason):
        return replace(trial, status="timeout")
    files = (raw / f"attempt-{number}" / "reason" for number in range(1, trial.attempts))
    reasons = [read_plain(file).decode(errors="replace") for file in files if file.exists()]
    late = next((reason for reason in reasons if is_late(reason)), "")
    return replace(trial, status="timeout", reason=f"{late}; an earlier Mountlab repeated it") if late else trial


def raw_files(run: Run, name: str) -> dict[str, str]:
    """What a trial or a mount of a run left behind, by the name of the file: argv, stdout, stderr, evidence, counters.

    Raises StoreError for one that the run does not have.
    """
    directory = run.path / "raw" / name
    if name not in {*run.trials["trial_id"], *run.trials["mount"]} or not directory.is_dir():
        raise StoreError(
            "the run has no such trial or mount", where=shown(run.path), got=repr(name),
            allowed=f"such as {run.trials['trial_id'].iloc[0]} or {run.trials['mount'].iloc[0]}",
        )  # fmt: skip
    return _files(directory)


def _around(raw: Path, journal: list[Trial]) -> dict[str, Around]:
    """Trial id to what the box did meanwhile, where the counters were kept."""
    found = {}
    for trial in journal:
        kept = {name: raw / trial.trial_id / name for name in COUNTER_FILES}
        files = {name: read_plain(file).decode(errors="replace") for name, file in kept.items() if file.exists()}
        if (changed := around(files)) is not None:
            found[trial.trial_id] = changed
    return found


def _memory(raw: Path, journal: list[Trial]) -> dict[str, Filled]:
    """Trial id to what memory its files took, where that was read."""
    files = {trial.trial_id: raw / trial.trial_id / MEMORY_FILE for trial in journal}
    texts = {trial_id: read_plain(file).decode(errors="replace") for trial_id, file in files.items() if file.exists()}
    return {trial_id: each for trial_id, text in texts.items() if (each := filled(text))}


def _preconditioned(raw: Path, journal: list[Trial]) -> dict[str, Rounds]:
    """Trial id to the rounds that were run before it."""
    files = {trial.trial_id: raw / trial.trial_id / ROUNDS_FILE for trial in journal}
    return {trial_id: read_rounds(read_plain(file).decode()) for trial_id, file in files.items() if file.exists()}


def _series(raw: Path, journal: list[Trial]) -> dict[str, list[Series]]:
    """Trial id to what fio logged over time, where it was asked to."""
    found = {}
    for trial in journal:
        logs = list((raw / trial.trial_id).glob(f"{PREFIX}_bw.*.log")) if trial.tool == "fio" else []
        if logs and trial.status == "ok":
            found[trial.trial_id] = read_series({log.name: read_plain(log).decode() for log in logs})
    return found


def _backing_types(by_filesystem: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    """For file systems on a loop image: the type of the file system that holds the image."""
    types = {}
    for name, evidence in by_filesystem.items():
        loop = loops(evidence).get(file_system_device(evidence))
        if loop:
            lines = mount_lines(sections(evidence["evidence.txt"])["mountinfo"])
            types[name] = next(
                (line.fstype for line in reversed(lines) if line.device == loop.backing_device), "unknown"
            )
    return types


def tables(run: Run) -> dict[str, pd.DataFrame]:
    """Everything that a run says, as tables of numbers and text; the factors of trials and measurements as JSON."""
    return {
        "estimates": run.estimates.drop(columns="cell"),
        "comparisons": comparison_frame(run),
        "caveats": pd.DataFrame(map(asdict, run.caveats), columns=[field.name for field in fields(Caveat)]),
        "trials": with_factors_as_text(run.trials),
        "measurements": with_factors_as_text(run.measurements),
    }


def columns() -> dict[str, list[str]]:
    """File of a run to its columns, as the recorded run in results/tour has them."""
    found = tables(load_run(ROOT / "results" / "tour"))
    return {
        "trials.jsonl": [*(field.name for field in fields(Trial)), chain.RAW, chain.KEY],
        "measurements.parquet": list(found["measurements"].columns),
        "estimates.csv": [*found["estimates"].columns, "stopped"],
        "comparisons.csv": list(found["comparisons"].columns),
        "caveats.csv": list(_CAVEAT_COLUMNS),
    }


def with_factors_as_text(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame of trials or measurements for a file: the factors of each row as JSON."""
    return frame.assign(factors=frame["factors"].map(json.dumps))


def write_files(directory: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write files into a directory, which is made where it is not there; each is whole, or the old one."""
    make_directory(directory)
    for name, data in files.items():
        replace_file(directory / name, data)
    return [directory / name for name in files]


def read_log_files(tool: str, paths: Iterable[Path]) -> dict[str, list[Output]]:
    """The outputs in some logs, by the name of each; a file that cannot be read is an output with a problem, so that
    the others are read all the same. Raises ParameterError for a tool whose logs nobody here can read."""
    return {str(path): _outputs_of(tool, path) for path in paths}


def _outputs_of(tool: str, path: Path) -> list[Output]:
    text = ""
    try:
        text = _log_text(path)
        return read_log(tool, text, where=shown(path))
    except (ParseError, StoreError) as error:
        return [Output(part=Part(text=text, line=1), form="", problem=error)]


def _log_text(path: Path) -> str:
    try:
        size = path.stat().st_size
        if size > LARGEST_LOG:
            raise StoreError("too large for a log", where=shown(path), got=f"{size} B", allowed=f"{LARGEST_LOG} B")
        return decoded(path.read_bytes())
    except OSError as error:
        raise StoreError("the log cannot be read", where=shown(path), got=error.strerror or str(error)) from error


def write_derived(run: Run) -> None:
    """Write measurements.parquet, estimates.csv, comparisons.csv and caveats.csv of a run, and last the file that holds
    their checksums."""
    truth = run.truth if truth_of(run.path) == run.truth else {}  # else a trial has ended meanwhile, or the run
    rows = [asdict(caveat) for caveat in run.caveats]
    derived.write(run.path, truth, {
        MEASUREMENTS: stamped(with_factors_as_text(run.measurements), Stamp(truth, run.answer_metrics)),
        "estimates.csv": csv_text(run.estimates.drop(columns="cell")).encode(),
        "comparisons.csv": csv_text(comparison_frame(run)).encode(),
        "caveats.csv": csv_text(pd.DataFrame(rows, columns=list(_CAVEAT_COLUMNS))).encode(),
    })  # fmt: skip


def derive(path: Path | str) -> None:
    """Make the derived files of a run anew from its raw output: of two processes that do so, one after the other."""
    path = found(path).resolve()
    with alone(path / "raw", what="run's figures", fallback=path / ".deriving", wait_s=DERIVE_S):
        clear(path, ".*.csv.*.tmp", ".*.parquet.*.tmp", ".*.json.*.tmp")
        run = _read_run(path, again=True)
        _say_altered(path, "the file is written again")
        write_derived(run)


def derive_outdated(path: Path) -> None:
    """Make the derived files of a run with trials where they are missing, or were made from other files than it has
    now."""
    if (path / JOURNAL).exists() and not derived.is_current(path, truth_of(path)):
        derive(path)


def comparison_frame(run: Run) -> pd.DataFrame:
    """One row a comparison, with the columns of comparisons.csv; one column a factor."""
    names = analysis.factor_names(run.sweep)
    own = [
        field.name
        for field in fields(Comparison)
        if field.name not in ("factors", "baseline", "candidate", "workload", "tool")
        and (field.name != "better" or any(each.better for each in run.comparisons))
    ]
    rows = [{**asdict(each), **{name: each.factors.get(name, "") for name in names}} for each in run.comparisons]
    frame = pd.DataFrame(rows, columns=["baseline", "candidate", "workload", "tool", *names, *own])
    return frame.astype({"needed": "Int64"})  # whole blocks, or nothing


def csv_text(frame: pd.DataFrame) -> str:
    """A table of a run as CSV with every digit of its figures, in which no text steers a terminal."""
    return visible(str(frame.to_csv(index=False)))
