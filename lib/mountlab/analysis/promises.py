"""What the devices of a run are promised to do, held against the figures of the workloads that ask it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median
from typing import Literal

from mountlab.analysis.answers import answering, sentence
from mountlab.analysis.estimates import estimate_frame
from mountlab.analysis.run_view import RunView
from mountlab.analysis.trust import Trust, is_about
from mountlab.checks.asked import part_of, streams
from mountlab.checks.rates import rates
from mountlab.checks.traffic import CACHED_BELOW
from mountlab.core.frames import rows_of
from mountlab.core.groups import by_key
from mountlab.core.metrics import METRICS
from mountlab.core.model import Cell, Workload
from mountlab.core.names import code_words, metric_heading, metric_noun
from mountlab.core.numbers import count_figures, counted, first_few, listed, mean_figures, percent, quantity
from mountlab.core.promises import Promise
from mountlab.core.units import Scale, scale_for, significant
from mountlab.fio.jobs import jobs_of

ABOVE = 0.1
"""A rate that exceeds what was promised by more than this share is of a burst, or of a cache."""
BUSY = 0.9
"""A device with a request in flight for less than this share of the time was not saturated."""
ALONE = 1.5
"""So few requests in flight on average wait for no other one."""
SERVICE_S = 1e-3
"""The time that a request is granted which waits for no other one: a rate of 16 000/s takes 16 in flight."""
THROUGH_CACHE = ("not-flushed", "direct-not-honoured")
"""Caveats of figures that are of the page cache, too."""
PromiseState = Literal["broken", "undecided", "kept", "not asked"]
_MOST_DOUBTS = 2
_FIRST: tuple[PromiseState, ...] = ("broken", "undecided", "kept", "not asked")
"""In which order the workloads of a promise are named."""


@dataclass(frozen=True, kw_only=True)
class JudgedPromise:
    """A promise beside the figure of one workload."""

    filesystem: str
    promise: Promise
    state: PromiseState
    workload: str = ""
    """Its label; '' where no workload has such a figure."""
    figure: str = ""
    """The measured figure without its unit."""
    interval: str = ""
    """Its interval, which holds together with those of all other promises of the run."""
    unit: str = ""
    mean: float = math.nan
    """The figure in the base unit of the metric."""
    low: float = math.nan
    high: float = math.nan
    why: str = ""
    """Why it was not asked; of a figure above the promise, what it is."""
    doubts: tuple[str, ...] = ()
    """Codes of the warnings about the figure of a decided promise."""

    @property
    def remark(self) -> str:
        """' (above what was promised: burst or cache), doubtful: noisy'; '' where there is nothing to add."""
        doubtful = first_few([code_words(code) for code in self.doubts], _MOST_DOUBTS)
        return (f" ({self.why})" if self.why else "") + (f", doubtful: {doubtful}" if doubtful else "")


@dataclass(frozen=True)
class PromiseLine:
    """The state of one promise in words."""

    filesystem: str
    promise: Promise
    state: PromiseState
    text: str
    """'kept, 3 012 [2 990, 3 030] under random-read.'"""

    def __str__(self) -> str:
        return f"Promised by the device of {self.filesystem}: {promise_text(self.promise)}: {self.text}"


def state_of(promise: Promise, low: float, high: float, smallest_effect: float) -> PromiseState:
    """Return where an interval lies beside a promise that is moved by the smallest effect to the worse: kept where all
    of it is on the better side, broken where all of it is on the worse one. Ends that are NaN decide nothing."""
    factor = 1 + smallest_effect
    bound = promise.value / factor if promise.is_rate else promise.value * factor
    better, worse = (low >= bound, high < bound) if promise.is_rate else (high <= bound, low > bound)
    return "kept" if better else "broken" if worse else "undecided"


def above_text(promise: Promise, mean: float) -> str:
    """Return what a rate above the promise is; '' where it is not above it."""
    if not promise.is_rate or mean <= promise.value * (1 + ABOVE):
        return ""
    if promise.burst is None:
        return "above what was promised: burst or cache"
    burst = _quantity(promise.metric, promise.burst)
    if mean <= promise.burst * (1 + ABOVE):
        return f"above what was promised: within the burst figure of {burst}"
    return f"above the burst figure of {burst} as well: check for a cache"


def promise_text(promise: Promise) -> str:
    """'Read IOPS of at least 3 000'."""
    end = "least" if promise.is_rate else "most"
    return f"{metric_heading(promise.metric)} of at {end} {_quantity(promise.metric, promise.value)}"


def _quantity(metric: str, value: float) -> str:
    """'131 MB/s', '2.00 ms'; a number of I/Os per second is '3 000' of the IOPS."""
    return significant(value) if metric.endswith("_iops") else quantity(value, METRICS[metric])


def judged_promises(run: RunView) -> list[JudgedPromise]:
    """Return each promise of the run beside the figure of each workload that measures it.

    The family is all of these figures: each interval is that of its cell's estimate, at the level that Bonferroni's
    share of the error leaves to it.
    """
    asked = {
        (name, promise): _measured_by(run, name, promise)
        for name, promises in run.sweep.promised.items()
        for promise in promises
    }
    figures = _figures(run, {promise.metric for _, promise in asked}, sum(map(len, asked.values())))
    rows = []
    for (name, promise), cells in asked.items():
        rows += [_judged(run, promise, cell, *figures[cell.id, promise.metric]) for cell in cells]
        if not cells:
            which = f"of {listed(promise.by)} " if promise.by else ""
            why = f"no workload {which}has measured {metric_noun(promise.metric)}"
            rows.append(JudgedPromise(filesystem=name, promise=promise, state="not asked", why=why))
    return rows


def promise_lines(run: RunView) -> list[PromiseLine]:
    """Return a line for each promise, under the workload that decides the most: where one breaks it, under that."""
    rows = by_key(((row.filesystem, row.promise), row) for row in judged_promises(run))
    return [_line(sorted(group, key=lambda row: _FIRST.index(row.state))) for group in rows.values()]


def answer_sentence(run: RunView, trust: Trust) -> str:
    """Return the answer of a run in a sentence, which only looks so where its trust is low; where nothing is compared,
    how often promises were kept."""
    states = [line.state for line in promise_lines(run)] if not answering(run) else []
    if not states:
        return sentence(run, sure=trust.grade != "low")
    if len(states) == 1:
        return f"The promise was {states[0]}."
    counts = {state: states.count(state) for state in _FIRST}
    tally = [f"{count} {'was' if count == 1 else 'were'} {state}" for state, count in counts.items() if count]
    return f"Of {len(states)} promises, {listed(tally)}."


def _line(rows: Sequence[JudgedPromise]) -> PromiseLine:
    first, *others = rows
    figure = " ".join(filter(None, (first.figure, first.interval, first.unit)))
    text = first.state if first.state == "not asked" else f"{first.state}, {figure} under {first.workload}"
    asked = sum(row.state != "not asked" for row in others)
    beside = f"; {counted(asked, 'more workload')} asked it" if asked else ""
    return PromiseLine(first.filesystem, first.promise, first.state, f"{text}{first.remark}{beside}.")


def _measured_by(run: RunView, filesystem: str, promise: Promise) -> list[Cell]:
    """Return the cells of a file system that ask a promise and have a figure of it."""
    if run.sweep.searches:  # its trials differ in their rate, and have no figure together
        return []
    rows = run.estimates[(run.estimates["metric"] == promise.metric) & (run.estimates["label"] == "")]
    measured = set(rows["cell"])
    cells = (cell for cell in run.sweep.cells if cell.filesystem.name == filesystem and cell.id in measured)
    return [cell for cell in cells if not promise.by or cell.workload.name in promise.by]


def _figures(run: RunView, metrics: set[str], count: int) -> dict[tuple[str, str], tuple[float, float, float]]:
    """Return cell and metric to mean and interval, at the level at which `count` of them hold together."""
    if not count:
        return {}
    level = 1 - (1 - run.sweep.design.level) / count
    sweep = replace(run.sweep, design=replace(run.sweep.design, level=level))
    measurements = run.measurements[run.measurements["metric"].isin(metrics)]
    about = {"run_id": run.info.run_id, "box": run.info.box_name}
    frame = estimate_frame(sweep, measurements, **about, censored=run.censored)
    rows = rows_of(frame[frame["label"] == ""], "cell", "metric", "mean", "low", "high")
    return {(cell, metric): (mean, low, high) for cell, metric, mean, low, high in rows}


def _judged(run: RunView, promise: Promise, cell: Cell, mean: float, low: float, high: float) -> JudgedPromise:
    state = state_of(promise, low, high, run.sweep.design.smallest_effect)
    why = next(_reasons(run, promise, cell, kept=state == "kept"), "")
    is_count = promise.metric.endswith("_iops")
    caveats = (c for c in run.caveats if c.scope == "cell" and is_about(c, (cell.id,), promise.metric))
    doubts = dict.fromkeys(caveat.code for caveat in caveats if caveat.severity == "warning" and not why)
    scale = Scale(1.0, "") if is_count else scale_for(METRICS[promise.metric], abs(mean))
    figures = count_figures(mean, low, high) if is_count else mean_figures(mean, low, high, factor=scale.factor)
    return JudgedPromise(
        filesystem=cell.filesystem.name,
        promise=promise,
        state="not asked" if why else state,
        workload=cell.workload.label,
        figure=figures.value,
        interval=figures.interval,
        unit=scale.unit,
        mean=mean,
        low=low,
        high=high,
        why=why or above_text(promise, mean),
        doubts=tuple(doubts),
    )


# ── what was not asked ───────────────────────────────────────────────────────────────────────────────────────────────


def _reasons(run: RunView, promise: Promise, cell: Cell, *, kept: bool) -> Iterator[str]:
    """Yield why a figure says nothing about a promise: another than the device answered, or, unless it was kept all the
    same, the device had room for more."""
    known = not run.sweep.imported
    part = part_of(cell.workload, promise.metric, run.sweep.design, known=known).partition(":")[0]
    if part.startswith(("warm", "unflushed")):
        yield f"{part} are of the page cache"
    caveats = [caveat for caveat in run.caveats if is_about(caveat, (cell.id,), promise.metric)]
    yield from (f"do not use: {code_words(caveat.code)}" for caveat in caveats if caveat.severity == "error")
    shares = [trial.share for trial in run.moved if (trial.cell.id, trial.side) == (cell.id, promise.side)]
    if not shares:
        yield "no counters show what its device moved"
    elif min(shares) < CACHED_BELOW:
        yield f"its device moved only {percent(min(shares))} of the bytes"
    codes = {caveat.code for caveat in caveats if caveat.severity != "note"}
    yield from (code_words(code) for code in THROUGH_CACHE if code in codes)
    if kept:
        return
    if promise.is_rate:
        yield from _unsaturated(run, promise, cell)
    elif cell.workload.name not in promise.by:
        load = _load(run, cell)
        if load is None:
            yield "no counters over time show how many requests waited"
        elif load[1] > ALONE:
            yield f"{significant(load[1])} requests in flight waited for one another, and no promise names it"
    if "other-io" in codes:
        yield "other programs used the device"


def _unsaturated(run: RunView, promise: Promise, cell: Cell) -> Iterator[str]:
    """Yield why a workload did not ask for as much as its device can."""
    if _limits_itself(cell.workload):
        yield "the workload sets its own rate"
    if len({stream.writes for stream in streams(cell.workload)}) > 1:
        yield "it reads and writes at the same time"
    block = _block_bytes(run, cell, promise.side)
    needed = promise.value / (1 if promise.metric.endswith("_iops") else block or float("inf"))
    yield from _held_by_another(run, promise, cell, block)
    load = _load(run, cell)
    if load is None:
        yield "no counters over time show whether the device was busy"
        return
    busy, depth = load
    if busy < BUSY:
        yield f"its device was busy for only {percent(busy)} of the time"
    if depth < max(ALONE, needed * SERVICE_S):
        yield f"{significant(depth)} requests in flight are too few for it"


def _limits_itself(workload: Workload) -> bool:
    return workload.tool == "fio" and any(rates(job.options) for job in jobs_of(workload.options))


def _held_by_another(run: RunView, promise: Promise, cell: Cell, block: float | None) -> Iterator[str]:
    """Yield the other promised rate of this side that ends the workload first, by the size of its I/Os."""
    if not block:
        return
    for other in run.sweep.promised[cell.filesystem.name]:
        if other.is_rate and other.side == promise.side and other.metric != promise.metric:
            most = other.value * block if other.metric.endswith("_iops") else other.value / block
            if most < promise.value / (1 + run.sweep.design.smallest_effect):
                allowed = f"the promise of {metric_noun(other.metric)} allows {_quantity(promise.metric, most)}"
                yield f"in I/Os of {quantity(block, 'B')}, {allowed}"


def _block_bytes(run: RunView, cell: Cell, side: str) -> float | None:
    """Return the mean size of an I/O; None where it is not known."""
    rows = run.estimates[(run.estimates["cell"] == cell.id) & (run.estimates["label"] == "")]
    means = dict(zip(rows["metric"], rows["mean"].astype(float), strict=True))
    bandwidth, iops = means.get(f"{side}_bandwidth", 0.0), means.get(f"{side}_iops", 0.0)
    return bandwidth / iops if bandwidth > 0 and iops > 0 else None


def _load(run: RunView, cell: Cell) -> tuple[float, float] | None:
    """Return the share of the time in which the file system's device had a request, and how many it had: medians over a
    trial, which its ends do not move, averaged over trials; None without counters."""
    trials = run.trials[(run.trials["cell"] == cell.id) & (run.trials["status"] == "ok")]
    counted_trials = trials.loc[~trials["warmup"].astype(bool), "trial_id"]
    boxes = [run.inside(trial).box for trial in counted_trials]
    devices = [box.own for box in boxes if box and box.own and box.own.busy and box.own.depth]
    if not devices:
        return None
    shares = [median(value for _, value in device.busy) for device in devices]
    depths = [median(value for _, value in device.depth) for device in devices]
    return fmean(shares), fmean(depths)
