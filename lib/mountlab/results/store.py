"""results/: run directories, and the only place that knows where parameter files lie.

A run directory holds what was measured (run.json, trials.jsonl, raw/) and what was derived from it
(records.parquet, measurements.parquet, estimates.csv, comparisons.csv, caveats.csv). The derived part is made again
from the measured part at any time.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from mountlab import checks
from mountlab.analysis.estimates import estimate_frame, percentile_frame
from mountlab.analysis.exclusions import Figures
from mountlab.analysis.frames import comparison_frame
from mountlab.analysis.inside import Inside
from mountlab.analysis.memory_use import Use, uses
from mountlab.analysis.program import ProgramTrial, is_profiled
from mountlab.analysis.run_view import TrialDetail, TrialRecord
from mountlab.analysis.sweep_comparisons import comparisons, latency_comparisons
from mountlab.analysis.time_limits import Censored, censored_blocks
from mountlab.analysis.trust import withhold_verdicts
from mountlab.analysis.why_frames import Why
from mountlab.checks import CellWrites, Moved
from mountlab.core import plugins
from mountlab.core.cell_stop import CellStop
from mountlab.core.disk import make_directory, path_text, replace_file
from mountlab.core.errors import MountlabWarning, StoreError, in_one_line
from mountlab.core.findings import Caveat, Comparison, Exclusions, OptionEvidence, PublishedFigure
from mountlab.core.frames import pd
from mountlab.core.model import Sweep, Trial
from mountlab.core.run_info import RunInfo
from mountlab.core.shown import Several, Shown
from mountlab.filesystems.counters import Around
from mountlab.filesystems.kept import StateRecord
from mountlab.filesystems.making import Setup
from mountlab.filesystems.read_back import ineffective, outcome_text
from mountlab.fio.series import Series
from mountlab.results import derived, programs
from mountlab.results import raw as raw_output
from mountlab.results import why as why_files
from mountlab.results.check_evidence import read_evidence
from mountlab.results.figures import RunFigures, read_exclusions, read_figures, read_stops
from mountlab.results.find import run_path
from mountlab.results.info import say_plugins
from mountlab.results.plain_files import refuse_others
from mountlab.results.raw import detail_type, text_files
from mountlab.results.run_file import check_is_run
from mountlab.stats.histograms import Histogram, merge
from mountlab.sweep.published_file import kept_published
from mountlab.tracing.explained import Explained

MEASUREMENTS = "measurements.parquet"


@dataclass(frozen=True, repr=False)
class Run(Shown):
    """One run as read from its directory. docs/reference/run-directory.md describes the frames."""

    path: Path
    """The directory of the run."""
    info: RunInfo
    """What run.json holds: parameters, facts of the box, versions, seed, status."""
    sweep: Sweep
    """The question with its file systems, workloads and design."""
    trials: pd.DataFrame
    """A row for each trial in the order of the plan, with status and reason."""
    censored: Censored
    """Cell to the counted blocks in which its trial ran into the time limit."""
    measurements: pd.DataFrame
    """A row for each figure of each trial."""
    estimates: pd.DataFrame
    """A row for each cell and metric, with its interval."""
    comparisons: list[Comparison]
    """The ratios to the baseline, with interval and verdict."""
    caveats: list[Caveat]
    """Every reason to doubt a figure, worst first."""
    checks_passed: list[str]
    """Codes of the checks that looked and found nothing."""
    not_checked: dict[str, str]
    """Codes of the checks that could not look at this run, and why: they have neither passed nor raised anything."""
    options: list[OptionEvidence]
    """Every option of a file system, and the kernel's report on it."""
    published: list[PublishedFigure]
    """What others published, to set beside it."""
    answer_metrics: dict[str, tuple[str, ...]]
    """Label of a workload to the metrics that the answer is about."""
    stops: list[CellStop]
    """Why each cell has no more trials; empty where the design says how many there are."""
    series: Mapping[str, Sequence[Series]]
    """Trial id to what fio logged over time, where it was asked to (log_avg_msec)."""
    moved: Sequence[Moved]
    """What the tool of each counted trial moved, and what the device below it; without those that have none."""
    layer_writes: Sequence[CellWrites]
    """What each layer below the file system of a cell wrote, where it lies on several devices (md, device mapper, a
    btrfs on several)."""
    memory: Sequence[Use]
    """What memory the files of each cell took that lie in memory; empty in a run of an earlier version."""
    all_records: Mapping[str, TrialRecord]
    """Trial id to what was read from its raw output."""
    exclusions: Exclusions
    """What the excluded trials change; empty where there are none."""
    truth: Mapping[str, str]
    """Hashes of what may change in the directory, from before it was read (stamp.truth_of)."""
    from_raw: bool = False
    """Whether nothing is taken from derived files."""
    made_from: Mapping[str, str] = field(default_factory=dict)
    """Trial id to what its record was made from (records.made_from), of the trials whose record may be kept."""

    @cached_property
    def why(self) -> Why:
        """What its diagnostic trials explain, as tidy frames; no rows where it has none."""
        frames = None if self.from_raw else why_files.read_kept(self.path, self.truth)
        return why_files.read_why(self.path, self._traced, self.measurements) if frames is None else frames

    def explained(self) -> dict[str, Explained]:
        """Return trial id to what its trace explains, of the diagnostic trials; read from the traces."""
        raw = self.path / "raw"
        return {trial.trial_id: why_files.explained_of(raw, trial, self.measurements) for trial in self._traced}

    @cached_property
    def programs(self) -> Sequence[ProgramTrial]:
        """What its programs do, by their recorded system calls (`design.profile`); empty where none was recorded."""
        kept = None if self.from_raw else programs.read_kept(self.path, self.truth)
        return programs.read_programs(self.path, self._diagnostic) if kept is None else kept

    @property
    def _traced(self) -> list[Trial]:
        """The diagnostic trials in which the kernel was traced."""
        return [trial for trial in self._diagnostic if not is_profiled(trial)]

    @property
    def _diagnostic(self) -> list[Trial]:
        """The diagnostic trials."""
        records = self.trials[self.trials["diagnostic"].astype(bool)].drop(columns="seq").to_dict("records")
        return [Trial(**{str(name): value for name, value in row.items()}) for row in records]

    @cached_property
    def records(self) -> Mapping[str, TrialRecord]:
        """Trial id to what is kept of it beside its figures: its command, its files, what the box did meanwhile. Raises
        ParseError for commands that cannot be read."""
        for record in self.all_records.values():
            record.check("commands")
        return self.all_records

    @cached_property
    def setups(self) -> list[Setup]:
        """Every making of a file system: its commands, its line of mountinfo, its devices; in the order of the run."""
        mounts = dict(zip(self.trials["mount"], self.trials["filesystem"], strict=True))
        return raw_output.read_setups(self.path / "raw", mounts)

    @cached_property
    def states(self) -> list[StateRecord]:
        """What was made of each file system in each state that files make; [] where the sweep has none."""
        mounts = dict(zip(self.trials["mount"], self.trials["filesystem"], strict=True))
        return raw_output.read_states(self.path / "raw", mounts)

    @cached_property
    def percentiles(self) -> pd.DataFrame:
        """The latency percentiles of each cell with their intervals over trials, in seconds: columns as
        estimates.PERCENTILE_COLUMNS, no rows where no histogram was kept."""
        return percentile_frame(self.sweep, self._histograms, self.censored)

    @cached_property
    def latency_comparisons(self) -> Several[Comparison]:
        """The median and the tail of latencies against the baseline, where there are I/Os enough (sweep_comparisons.
        latency_comparisons): verdicts and intervals hold for all of these together, apart from `comparisons`."""
        about, answered = (self.sweep, self.measurements, self.censored), self.answer_metrics
        return Several(withhold_verdicts(latency_comparisons(*about, answered=answered), self.caveats))

    @property
    def ratios(self) -> pd.DataFrame:
        """One row for each of `comparisons`, with the columns of comparisons.csv."""
        return comparison_frame(self)

    def __repr__(self) -> str:
        """Without the frames, which would fill a terminal."""
        return f"<Run {path_text(self.path)}: {len(self.trials)} trials>"

    def latencies(self, cell: str) -> dict[str, Histogram]:
        """Return the latencies of all I/Os of a cell, pooled exactly over its counted trials and its jobs: place in
        fio's report ('read.clat_ns', 'sync.lat_ns') to histogram.

        For the shape of the distribution; intervals are made of trials, never of I/Os. Empty where no histogram was
        kept (another tool, logs from elsewhere without json+). Raises StoreError for a cell that the run does not have.
        """
        cells = dict.fromkeys(one.id for one in self.sweep.cells)
        if cell not in cells:
            got, allowed = repr(cell), ", ".join(cells)
            raise StoreError("the run has no such cell", where=path_text(self.path), got=got, allowed=allowed)
        return {place: merge(histograms) for place, histograms in self._histograms.get(cell, {}).items()}

    def inside(self, trial_id: str) -> Inside:
        """Return what the tool of a trial logged over time, and the counters of the box meanwhile; read when it is
        asked for. Raises StoreError for a trial that the run does not have."""
        if trial_id not in set(self.trials["trial_id"]):
            raise StoreError("the run has no such trial", where=path_text(self.path), got=repr(trial_id))
        detail = self._detail(trial_id, "series")
        return Inside(detail.series, detail.over_time)

    def files(self, name: str) -> dict[str, str]:
        """Return what a trial or a mount left behind, by the name of the file: argv, stdout, stderr, evidence,
        counters. Raises StoreError for one that the run does not have."""
        directory = self.path / "raw" / name
        if name not in {*self.trials["trial_id"], *self.trials["mount"]} or not directory.is_dir():
            raise StoreError(
                "the run has no such trial or mount",
                where=path_text(self.path),
                got=repr(name),
                allowed=f"such as {self.trials['trial_id'].iloc[0]} or {self.trials['mount'].iloc[0]}",
            )
        return text_files(directory)

    def around(self, trial_id: str) -> Around | None:
        """Return what the kernel counted while the tool of a trial ran: the difference of two snapshots. None where
        there are none. Raises as `files` does."""
        if trial_id not in self.all_records:
            self.files(trial_id)
            return None
        return self.all_records[trial_id].around

    @cached_property
    def _histograms(self) -> dict[str, dict[str, list[Histogram]]]:
        """Cell to place to the histogram of each counted trial, its jobs together."""
        histograms: dict[str, dict[str, list[Histogram]]] = {}
        counted = self.trials[(self.trials["status"] == "ok") & ~self.trials["warmup"].astype(bool)]
        for trial_id, cell in zip(counted["trial_id"], counted["cell"], strict=True):
            for place, histogram in self._detail(trial_id, "histograms").histograms.items():
                histograms.setdefault(cell, {}).setdefault(place, []).append(histogram)
        return histograms

    def _detail(self, trial_id: str, part: str) -> TrialDetail:
        record = self.all_records[trial_id]
        record.check(part)
        return detail_type().validate_json(record.detail) if record.detail else TrialDetail()


def doubts_of_mount(run: Run, filesystem: str) -> list[str]:
    """Return what speaks against mounting it again in the same way. Raises StoreError where the run never could."""
    rows = run.trials[run.trials["filesystem"] == filesystem]
    if not (rows["status"] == "ok").any():
        reason = in_one_line(str(rows.iloc[0]["reason"])) if len(rows) else "it was not measured"
        raise StoreError(
            f"{filesystem} never worked in this run",
            where=path_text(run.path),
            got=reason,
            allowed="a file system with a trial that is ok",
        )
    wrong = [row for row in ineffective(run.options) if row.filesystem == filesystem]
    return [f"{row.option} {outcome_text(row)} (the kernel says {row.kernel_says})" for row in wrong]


def load_run(path: Path | str, *, as_it_is: bool = False) -> Run:
    """Read a run. What its trials say is taken from records.parquet, where that was made from the files that the run
    has now. Otherwise it is read from the raw output, as always with `as_it_is`. Raw output that is not as it was
    written is refused either way.

    `path` is a path, the id of a run, the name of its sweep (the newest run), or `latest`. Raises StoreError where
    there is no such run, and AlteredError where a measurement was altered after it was written; with `as_it_is` it
    is read all the same.
    """
    path = run_path(path).resolve()
    run = read_run(path, as_it_is=as_it_is)
    say_altered(path, f"`mountlab reparse {path_text(path)}` writes it again")
    say_plugins(path)
    return run


def read_run(path: Path, trial_records: Mapping[str, TrialRecord] | None = None, *, as_it_is: bool = False) -> Run:
    """Read a run, without a warning of derived files that were altered. `trial_records`: those of its trials by the
    process that has measured them; {}: all is made from the raw output; None: those that the directory keeps."""
    with _readable(path):
        return _load_run(path, trial_records, as_it_is=as_it_is)


def say_altered(path: Path, what_then: str) -> None:
    """Warn of derived files that were altered after they were written: nothing is taken from them."""
    if names := derived.altered(path):
        files = ", ".join(path_text(path / name) for name in names)
        warnings.warn(
            f"altered after it was written: {files}. The figures are derived again from the raw output; {what_then}",
            MountlabWarning,
            stacklevel=3,
        )


def load_figures(path: Path) -> RunFigures:
    """Read only the figures of a run from its raw output. Raises as `load_run` does."""
    with _readable(path):
        return read_figures(path, {})


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn the error of a damaged run into one that names the run."""
    check_is_run(path)
    refuse_others(path, path_text(path))
    try:
        with plugins.blaming():
            yield
    except (LookupError, TypeError, AttributeError, ValueError, ArithmeticError, RecursionError) as error:
        raise StoreError(
            "the run cannot be read: a file of it is damaged, or was not written by Mountlab",
            where=path_text(path),
            got=f"{type(error).__name__}: {error}"[:300],
            next_step="compare run.json, trials.jsonl and raw/ with a copy; of a bundle, `reproduce` says which",
        ) from error


def _load_run(path: Path, trial_records: Mapping[str, TrialRecord] | None, *, as_it_is: bool) -> Run:
    figures = read_figures(path, trial_records, as_it_is=as_it_is)
    info, sweep, measurements, by_trial = figures.info, figures.sweep, figures.measurements, figures.records
    stops, censored = read_stops(path, figures), censored_blocks(figures.trials)
    estimates = estimate_frame(sweep, measurements, run_id=info.run_id, box=info.box_name, censored=censored)
    answers = comparisons(sweep, measurements, censored)
    exclusions = read_exclusions(path, figures, Figures(measurements, censored, estimates, answers))
    if stops:  # a column that says why each cell has no more trials
        reasons = {stop.cell: stop.reason for stop in stops}
        estimates = estimates.assign(stopped=estimates["cell"].map(reasons))
    trials = pd.DataFrame([{"seq": seq, **vars(trial)} for seq, trial in enumerate(figures.trials, start=1)])
    evidence = read_evidence(path / "raw", figures, trials, estimates, stops, exclusions)
    findings = checks.find_caveats(evidence)
    traffic = {name: record.around.traffic for name, record in by_trial.items() if record.around}
    mounts = {trial.trial_id: trial.mount for trial in figures.trials}
    devices = checks.moved_below(evidence, traffic, mounts)
    memory = {name: record.memory for name, record in by_trial.items() if record.memory}
    return Run(
        path=path,
        info=info,
        sweep=sweep,
        trials=trials,
        measurements=measurements,
        estimates=estimates,
        censored=censored,
        comparisons=Several(withhold_verdicts(answers, findings.caveats)),
        caveats=Several(findings.caveats),
        checks_passed=findings.passed,
        not_checked=findings.not_checked,
        options=evidence.options,
        published=[kept_published(row, f"{path_text(path)}/run.json: published") for row in info.published],
        answer_metrics=figures.answers,
        stops=stops,
        series=evidence.series,
        moved=checks.moved(evidence),
        layer_writes=checks.layer_writes(evidence),
        memory=list(uses(sweep.cells, figures.trials, memory)),
        all_records={name: replace(record, device=devices.get(name)) for name, record in by_trial.items()},
        exclusions=exclusions,
        truth=figures.truth,
        from_raw=as_it_is or (trial_records is not None and not trial_records),
        made_from=figures.made_from,
    )


def write_files(directory: Path, files: Mapping[str, bytes]) -> list[Path]:
    """Write files into a directory, which is made where it is not there; each is whole, or the old one."""
    make_directory(directory)
    for name, data in files.items():
        replace_file(directory / name, data)
    return [directory / name for name in files]
