"""The figures of a run, read from its journal, its raw output and the records of its trials."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mountlab.analysis.answer_metrics import answer_metrics
from mountlab.analysis.exclusions import Figures, exclusions
from mountlab.analysis.measurements import measurement_frame, without_partial
from mountlab.analysis.run_view import TrialRecord
from mountlab.analysis.stopping import replay_stops
from mountlab.analysis.time_limits import censored_blocks
from mountlab.core.cell_stop import CellStop
from mountlab.core.disk import path_text
from mountlab.core.errors import StoreError
from mountlab.core.findings import Exclusions
from mountlab.core.frames import pd
from mountlab.core.model import Sweep, Trial
from mountlab.core.run_info import RunInfo
from mountlab.results import raw_sums, records
from mountlab.results.altered import altered_excluded, altered_raw
from mountlab.results.info import as_outcomes, read_info, read_sweep, without_excluded
from mountlab.results.journal import read_as_it_is, read_checked
from mountlab.results.raw import measured_rows
from mountlab.results.stamp import truth_of
from mountlab.sweep.untrusted import check_plain, check_trials


@dataclass(frozen=True)
class RunFigures:
    """The figures of a run, and what they were made from."""

    info: RunInfo
    sweep: Sweep
    whole: list[Trial]
    """The journal as it stands."""
    trials: list[Trial]
    """Those of the journal, with the excluded ones marked."""
    unread: list[str]
    """Excluded trials whose raw output was altered."""
    records: dict[str, TrialRecord]
    """Trial id to what was read from its raw output."""
    made_from: dict[str, str]
    """Trial id to what its record was made from; {} where altered raw output is read as it is."""
    stopped: list[CellStop] | None
    """Why each cell has no more trials, where that is known without them."""
    measurements: pd.DataFrame
    answers: dict[str, tuple[str, ...]]
    truth: dict[str, str]


def read_figures(
    path: Path, trial_records: Mapping[str, TrialRecord] | None = None, *, as_it_is: bool = False
) -> RunFigures:
    """Read the figures of a run. `trial_records`: those that need not be made from the raw output; None: those
    that its directory keeps."""
    truth, info, sweep = truth_of(path), read_info(path), read_sweep(path).sweep
    journal = read_as_it_is(path) if as_it_is else read_checked(path)
    check_plain([info.run_id, info.box_name], f"{path_text(path)}/run.json")
    check_trials(journal.trials, f"{path_text(path)}/trials.jsonl")
    outcomes = as_outcomes(path, journal.trials)
    trials = without_excluded(path, outcomes)
    if not trials:
        raise StoreError(
            "the run holds no trials yet", where=path_text(path), next_step=f"mountlab resume {path_text(path)}"
        )
    if not as_it_is:
        problems, expected = altered_raw(path, sweep, journal, trials), "the files that Mountlab wrote"
        leave_out = f"Or leave the trial out: mountlab exclude {path_text(path)} TRIAL --reason TEXT. "
        raw_sums.refuse_altered(problems, path_text(path), "raw output", allowed=expected, or_else=leave_out)
    unread = altered_excluded(path, journal, trials)
    made_from = {} if as_it_is else records.made_from(journal)
    made_from = {name: digest for name, digest in made_from.items() if name not in unread}
    if trial_records is None:
        trial_records = records.read_kept(path, made_from)
    else:
        trial_records = {name: trial_records[name] for name in trial_records.keys() & made_from.keys()}
    readable = [replace(trial, status="excluded") if trial.trial_id in unread else trial for trial in outcomes]
    by_trial = records.complete(path, readable, sweep, trial_records)
    # A version without a check of figures recorded such a trial as ok.
    refused = {name: record.refused for name, record in by_trial.items() if record.refused}
    trials = [
        replace(trial, status="invalid", reason=refused[trial.trial_id])
        if trial.status == "ok" and trial.trial_id in refused
        else trial
        for trial in trials
    ]
    measurements = without_partial(measurement_frame(measured_rows(path / "raw", trials, sweep, by_trial)))
    cells = [cell.id for cell in sweep.cells] if sweep.decides else []
    return RunFigures(
        info=info,
        sweep=sweep,
        whole=journal.trials,
        trials=trials,
        unread=unread,
        records=by_trial,
        made_from=made_from,
        stopped=info.stops(cells, len(journal.trials)) if trial_records.keys() >= by_trial.keys() else None,
        measurements=measurements,
        answers=answer_metrics(sweep, measurements),
        truth=truth,
    )


def read_stops(path: Path, figures: RunFigures) -> list[CellStop]:
    """Return why each cell has no more trials; computed for a run that does not say it itself."""
    if figures.stopped is not None:
        return figures.stopped
    if not figures.sweep.decides:
        return []
    rows = measured_rows(path / "raw", figures.whole, figures.sweep, figures.records)
    return replay_stops(figures.sweep, figures.whole, measurement_frame(rows))


def read_exclusions(path: Path, figures: RunFigures, without: Figures) -> Exclusions:
    """Return what the excluded trials change, from their raw output. `without`: the figures without them."""
    names = {trial.trial_id for trial in figures.trials if trial.status == "excluded"} - set(figures.unread)
    if not names:
        return Exclusions(unread=tuple(figures.unread))
    sweep, whole = figures.sweep, as_outcomes(path, figures.whole)
    excluded = [trial for trial in whole if trial.trial_id in names]
    more = measurement_frame(measured_rows(path / "raw", excluded, sweep, figures.records))
    counting = [trial for trial in whole if trial.trial_id not in figures.unread]
    counted = without.with_trials(sweep, more, censored_blocks(counting))
    cells = frozenset(trial.cell for trial in excluded)
    return exclusions(sweep, without, counted, cells=cells, answers=figures.answers, unread=figures.unread)
