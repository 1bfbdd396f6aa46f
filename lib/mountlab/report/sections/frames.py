"""The frame behind a part of a report: tidy, in base units, one row for each figure that the part shows.

`workload` holds the label of a workload, and each swept option has a column.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import fields
from functools import partial, wraps
from operator import attrgetter
from typing import Any, ParamSpec

from mountlab.analysis import answers
from mountlab.analysis import why as causes
from mountlab.analysis.compare.runs import RunComparison, box_of
from mountlab.analysis.frames import comparison_frame
from mountlab.analysis.measurements import FIGURE, factor_names
from mountlab.analysis.promises import judged_promises
from mountlab.analysis.published import beside
from mountlab.analysis.run_view import RunView
from mountlab.analysis.watched import observations
from mountlab.checks.beside import Load, loads
from mountlab.checks.clients import shares
from mountlab.core.cell_stop import CellStop
from mountlab.core.findings import Caveat, OptionEvidence
from mountlab.core.frames import pd
from mountlab.report.html import Html, Section
from mountlab.report.sections.shared import Mean, answer_metrics, means_of, ratios_by_cell
from mountlab.wording import caveats as caveat_words

Either = RunView | RunComparison
P = ParamSpec("P")

_MEAN = ("metric", "label", "unit", "n", "mean", "low", "high")
_FIGURE = (*_MEAN, "censored", "cv", "ratio", "ratio_low", "ratio_high", "verdict", "caveats")
_VALUE = ("trial_id", "seq", "block", "warmup", "filesystem", "workload")
_PUBLISHED = (
    "study", "what", "workload", "metric", "candidate", "baseline", "claim", "published", "ratio", "low", "high", "n",
    "agreement",
)  # fmt: skip
_SHARE = ("filesystem", "workload", "metric", "client", "n", "mean", "ratio", "low", "high", "straggles")
_OPERATION = (
    "filesystem", "workload", "trial_id", "place", "operation", "calls", "failed", "bytes", "seconds",
)  # fmt: skip
_PROMISE = ("filesystem", "workload", "metric", "promised", "burst", "mean", "low", "high", "state", "why")
_USE = ("filesystem", "workload", "n", "files", "before", "full", "after", "taken", "least", "most", "kept")
_BESIDE = (
    "filesystem", "workload", "neighbour", "trial_id", "seconds", "read_bytes", "write_bytes", "calls", "bytes_per_s",
    "calls_per_s", "restarts", "gap_share",
)  # fmt: skip
_STATE = (
    "filesystem", "state", "fill", "files", "age", "written", "extents_per_file", "fragmented_share", "fresh_piece",
    "piece", "digest", "identity", "identities", "mounts",
)  # fmt: skip
_OBSERVED = {
    "trial_id": "trial_id", "block": "block", "seconds": "seconds", "read_calls": "around.read_calls",
    "fetched": "fetched", "device_read": "device_read", "write_calls": "around.write_calls",
    "device_written": "device_written", "write_count": "around.write_count", "flushes": "flushes",
}  # fmt: skip
"""Column to where an observation has it."""
_MOVED = ("filesystem", "workload", "trial_id", "side", "tool_bytes", "device_bytes")


def attach(frame: Callable[..., pd.DataFrame]) -> Callable[[Callable[P, Html]], Callable[P, Section]]:
    """Make a part return its frame beside its HTML. The frame is made when it is asked for."""

    def decorate(part: Callable[P, Html]) -> Callable[P, Section]:
        @wraps(part)
        def section(*args: P.args, **kwargs: P.kwargs) -> Section:
            return Section.of(part(*args, **kwargs), partial(frame, *args, **kwargs))

        vars(section)["__signature__"] = inspect.signature(part).replace(return_annotation=Section.__name__)
        return section

    return decorate


# ── figures ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def means(run: RunView) -> pd.DataFrame:
    """The means of the metrics of the answer, as `figures`."""
    rows = figures(run)
    workloads = zip(rows["workload"], rows["metric"], strict=True)
    return rows[[metric in run.answer_metrics.get(label, ()) for label, metric in workloads]].reset_index(drop=True)


def figures(run: RunView) -> pd.DataFrame:
    """Every estimate with its ratio to the baseline and the codes of the caveats that weaken it. The interval of a
    ratio is that of its verdict."""
    doubts = caveat_words.doubts_by_cell(run.caveats, run.sweep.own_metrics)
    ratios = ratios_by_cell(run.comparisons)
    rows = []
    for metric in dict.fromkeys([*answer_metrics(run), *run.estimates["metric"]]):
        for mean in means_of(run, metric):
            row = {**_of_mean(run, mean), "metric": metric}
            row["caveats"] = ", ".join(doubts.get(caveat_words.doubt_key(mean.cell, metric), ()))
            if ratio := ratios.get((metric, mean.label, mean.cell)):
                bounds = ratio.verdict_interval
                row |= {"ratio": ratio.ratio, "ratio_low": bounds.low, "ratio_high": bounds.high}
                row["verdict"] = ratio.verdict
            rows.append(row)
    return _with_factors(run, rows, *_FIGURE)


def promises(run: RunView) -> pd.DataFrame:
    """Each promise of a device and the figure of each workload that measures it, in the base unit of the metric."""
    rows = [
        {**vars(row), "metric": row.promise.metric, "promised": row.promise.value, "burst": row.promise.burst}
        for row in judged_promises(run)
    ]
    return pd.DataFrame(rows, columns=_PROMISE)


def capacities(run: RunView) -> pd.DataFrame:
    """The capacity of each cell that was searched, in requests per second."""
    return figures(run).query("metric == 'capacity'").reset_index(drop=True)


def _of_mean(run: RunView, mean: Mean) -> dict[str, Any]:
    factors = run.sweep.combinations[mean.cell].workload.factors
    return {**factors, **vars(mean), "workload": mean.workload_label}


def _with_factors(run: RunView, rows: list[dict[str, Any]], *columns: str) -> pd.DataFrame:
    frame = pd.DataFrame(rows, columns=["filesystem", "workload", *factor_names(run.sweep), *columns])
    return frame.fillna(dict.fromkeys(factor_names(run.sweep), ""))


def ratios(run: Either) -> pd.DataFrame:
    """The ratios that the answer rests on, or the capacities that were searched for; of runs beside each other every
    figure in each."""
    if isinstance(run, RunComparison):
        return run.figures
    return capacities(run) if run.sweep.searches else comparison_frame(run, answers.answering(run))


def overview(run: Either) -> pd.DataFrame:
    """The ratios of the picture: of more than two runs those of each."""
    return run.verdicts if isinstance(run, RunComparison) and not run.is_pair else ratios(run)


def explained(run: RunView) -> pd.DataFrame:
    """The parts of the latencies of diagnostic trials, in seconds."""
    return causes.split_frame(causes.splits(run.why, run.sweep))


def programs(run: RunView) -> pd.DataFrame:
    """Every kind of operation of each trial whose system calls were recorded."""
    rows = [
        {"filesystem": trial.filesystem, "workload": trial.workload_label, "trial_id": trial.trial_id, **vars(row)}
        for trial in run.programs
        if trial.profile
        for row in trial.profile.operations
    ]
    return pd.DataFrame(rows, columns=_OPERATION)


def published(run: RunView) -> pd.DataFrame:
    """The published rows beside our ratios."""
    rows = []
    for result in beside(run):
        row = {**vars(result.theirs), "published": result.theirs.ratio, "agreement": result.agreement}
        if ours := result.ours:
            bounds = ours.verdict_interval
            row |= {"ratio": ours.ratio, "low": bounds.low, "high": bounds.high, "n": ours.n}
        rows.append(row)
    return pd.DataFrame(rows, columns=list(_PUBLISHED)).astype({"n": "Int64"})


# ── trials ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def values(run: Either) -> pd.DataFrame:
    """The figures of the counted trials, in the metrics of the answer; `of_mean` is a multiple of the mean of the
    cell."""
    rows = in_order(run)
    return rows[~rows["warmup"]].drop(columns="warmup").reset_index(drop=True)


def in_order(run: Either) -> pd.DataFrame:
    """The same with the trials of the warm-up, in the order in which all ran."""
    if isinstance(run, RunComparison):
        by_run = {name: in_order(one) for name, one in zip(run.names, run.runs, strict=True)}
        return pd.concat(by_run, names=[run.factor]).reset_index(0).reset_index(drop=True)
    workloads = {name: cell.workload for name, cell in run.sweep.combinations.items()}
    rows = run.measurements[run.measurements["metric"].isin(answer_metrics(run))].copy()
    rows["workload"] = [workloads[cell].label for cell in rows["cell"]]
    for name in factor_names(run.sweep):
        rows[name] = [workloads[cell].factors.get(name, "") for cell in rows["cell"]]
    rows["of_mean"] = rows["value"] / rows["value"].where(~rows["warmup"]).groupby(
        [rows[key] for key in FIGURE]
    ).transform("mean")
    rows = rows.merge(run.trials[["trial_id", "seq"]], on="trial_id").sort_values("seq", kind="stable")
    rows = rows[[*_VALUE, *factor_names(run.sweep), "metric", "label", "unit", "value", "of_mean"]]
    return rows.reset_index(drop=True)


def clients(run: RunView) -> pd.DataFrame:
    """The throughput of each client, and its ratio to the median of the others."""
    rows = []
    for share in shares(run.sweep, run.measurements):
        n, mean = len(share.rates), sum(share.rates) / len(share.rates)
        about = (share.cell.filesystem.name, share.cell.workload.label, share.metric, share.client)
        rows.append((*about, n, mean, *share.bounds, share.straggles))
    return pd.DataFrame(rows, columns=list(_SHARE))


def memory(run: RunView) -> pd.DataFrame:
    """The memory that files took, in bytes."""
    return _of_cells(run.memory, _USE)


def neighbours(run: RunView) -> pd.DataFrame:
    """What each neighbour did in each counted trial."""
    rows = [
        {
            "filesystem": load.cell.filesystem.name,
            "workload": load.cell.workload.label,
            "neighbour": load.name,
            "trial_id": trial_id,
            **{name: getattr(beside, name) for name in _BESIDE[4:]},
        }
        for load in run_loads(run)
        for trial_id, beside in load.trials.items()
    ]
    return pd.DataFrame(rows, columns=list(_BESIDE))


def run_loads(run: RunView) -> list[Load]:
    """Return what each neighbour did in each cell."""
    around = {name: record.around for name, record in run.records.items() if record.around}
    return loads(run.sweep, run.trials, {name: one.beside for name, one in around.items()})


def states(run: RunView) -> pd.DataFrame:
    """The states that files make, in bytes: fill, files and extents as made, mean pieces of free space fresh and made.
    NaN: the box could not tell."""
    rows = [
        {
            "filesystem": record.filesystem,
            "state": record.state,
            "fill": record.reached.fill,
            "files": record.reached.files,
            "age": record.made.age,
            "written": record.made.written_bytes,
            "extents_per_file": record.reached.extents_per_file,
            "fragmented_share": record.reached.fragmented_share,
            "fresh_piece": record.fresh.free.mean_bytes if record.fresh.free else None,
            "piece": record.reached.free.mean_bytes if record.reached.free else None,
            "digest": record.made.digest,
            "identity": record.identities[-1],
            "identities": len(record.identities),
            "mounts": len(record.mounts),
        }
        for record in run.states
    ]
    return pd.DataFrame(rows, columns=list(_STATE))


def moved(run: RunView) -> pd.DataFrame:
    """The bytes of the tool and of the device, of each counted trial."""
    return _of_cells(run.moved, _MOVED)


def _of_cells(rows: Iterable[Any], columns: Iterable[str]) -> pd.DataFrame:
    named = ({**vars(row), "filesystem": row.cell.filesystem.name, "workload": row.cell.workload.label} for row in rows)
    return pd.DataFrame(named, columns=list(columns))


# ── what was asked, and found ────────────────────────────────────────────────────────────────────────────────────────


def _plain(kind: type[Any], rows: Iterable[Any]) -> pd.DataFrame:
    return pd.DataFrame(map(vars, rows), columns=[field.name for field in fields(kind)])


def caveats(run: Either) -> pd.DataFrame:
    """The caveats, worst first."""
    return _plain(Caveat, run.caveats)


def options(run: RunView) -> pd.DataFrame:
    """The options of file systems, with the words of the kernel."""
    return _plain(OptionEvidence, run.options)


def stops(run: RunView) -> pd.DataFrame:
    """Why each cell has no more trials."""
    return _plain(CellStop, run.stops)


def left_out(run: RunView) -> pd.DataFrame:
    """The file systems that were not measured."""
    return pd.DataFrame(run.sweep.left_out.items(), columns=["filesystem", "reason"])


# ── runs beside each other ───────────────────────────────────────────────────────────────────────────────────────────


def runs(comparison: RunComparison) -> pd.DataFrame:
    """The runs that are compared."""
    rows = [
        (name, run.info.run_id, box_of(run), run.info.facts.kernel.release, run.info.created_at, run.info.status)
        for name, run in zip(comparison.names, comparison.runs, strict=True)
    ]
    return pd.DataFrame(rows, columns=[comparison.factor, "run_id", "box_name", "kernel", "created_at", "status"])


def differences(comparison: RunComparison) -> pd.DataFrame:
    """What differs between the runs, one column a run."""
    rows = [(row.area, row.what, row.part, row.known, *row.values) for row in comparison.differences]
    return pd.DataFrame(rows, columns=["area", "what", "part", "known", *comparison.names])


def not_compared(comparison: RunComparison) -> pd.DataFrame:
    """The cells that some runs lack."""
    rows = [(name, cell) for name, cells in comparison.only_in.items() for cell in cells]
    return pd.DataFrame(rows, columns=["only_in", "cell"])


def observed(run: RunView) -> pd.DataFrame:
    """What each counted trial of watched programs did: bytes, calls and flushes; NaN for what is not known."""
    values = attrgetter(*_OBSERVED.values())
    rows = [(cell.workload.label, *values(row)) for cell in run.sweep.cells for row in observations(run, cell)]
    return pd.DataFrame(rows, columns=["workload", *_OBSERVED])
