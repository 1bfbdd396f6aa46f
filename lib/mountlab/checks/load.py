"""The load that a tool was asked for, and the one that it made: whether the rate was reached, and whether latencies are
of a closed loop."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from mountlab.checks.asked import part_of
from mountlab.checks.base import SIDES, Check, Direction, Doubt, Evidence, of_trials
from mountlab.checks.rates import Rate, rates
from mountlab.core.frames import rows_of
from mountlab.core.metrics import PERCENT_OF
from mountlab.core.model import Cell, Workload
from mountlab.core.names import metric_noun
from mountlab.core.numbers import counted, first_few, listed, quantity
from mountlab.core.search import Objective
from mountlab.fio import open_loop as fio_open_loop
from mountlab.fio.jobs import Job, jobs_of
from mountlab.fio.options import READS, WRITES
from mountlab.stats.capacity import RateTrial
from mountlab.stats.capacity_order import change

MISSED = 0.02
"""A rate that differs by more than this share, and by more than chance, was not reached."""
CHANCE_SD = 5.0
"""Standard deviations that a Poisson count is allowed: beyond them lies one trial of 1.7 million."""
ITS_OWN = 0.01
"""The rate that fio's own arithmetic makes is met within this share."""
MOST_POISSON = 9_000
"""A Poisson rate of a process that fio meets within 1.5 %."""
FEWEST_LATE = 100.0
"""Requests of a trial that may be later than the limit."""
_WORKLOADS_SHOWN = 3
MATTERS = 0.1
"""An idle state that takes this share of the median latency to leave matters."""


# --- the rate ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _RateMade:
    """A rate that a job of one trial was asked for in one direction, and what it made of it."""

    trial_id: str
    side: Direction
    job: str
    """Its name where the workload has several."""
    asked: Rate
    processes: int
    achieved: float
    mean_block: float
    seconds: float

    @property
    def wanted(self) -> float:
        return self.asked.value * self.processes

    @property
    def off(self) -> float:
        """The difference as a share of what was asked: below 0 for less."""
        return self.achieved / self.wanted - 1

    @cached_property
    def chance(self) -> float:
        """What the beginning and the end of each process, and a random number of I/Os, can make of it, as a share."""
        ios = self.wanted * self.seconds / (self.mean_block if self.asked.in_bytes else 1)
        return (self.processes + (CHANCE_SD * math.sqrt(ios) if self.asked.poisson else 0)) / ios

    @property
    def missed(self) -> bool:
        return abs(self.off) > MISSED + self.chance

    @property
    def fell_short(self) -> bool:
        """Whether the box did not keep up, so that requests waited for each other."""
        return self.missed and self.off < 0 and not self.by_arithmetic

    @property
    def by_arithmetic(self) -> bool:
        """Whether fio's own arithmetic makes this rate of what was asked."""
        made = self.asked.made(self.mean_block) * self.processes
        differs = abs(made / self.wanted - 1) > ITS_OWN
        return differs and abs(self.achieved / made - 1) <= ITS_OWN + self.chance

    @property
    def words(self) -> str:
        """'t0003: reads at 1.23 thousand/s where 4 thousand/s were asked (-69%)'."""
        unit = "B/s" if self.asked.in_bytes else "1/s"
        whose = f" of job {self.job}" if self.job else ""
        figures = f"{quantity(self.achieved, unit)} where {quantity(self.wanted, unit)} was asked for ({self.off:+.1%})"
        return f"{self.trial_id}: {self.side}s{whose} at {figures}"


def rate_not_reached(evidence: Evidence) -> Iterator[Doubt]:
    """Loads whose rate is not the one that the tool was asked for.

    fio was asked for a rate (`rate_iops` or `rate`, of each process), and in some trial the rate differs by more than
    2 %. One I/O of each process is allowed besides, and with `rate_process=poisson` 5 standard deviations of the count.
    Where fio 3.33 computes another rate than it was asked for, the message says so.
    """
    for cell, rates_made in evidence.once(_rates_made):
        for side in SIDES:
            missed = [rate for rate in rates_made if rate.side == side and rate.missed]
            if missed:
                worst = max(missed, key=lambda rate: abs(rate.off))
                trials = list(dict.fromkeys(rate.trial_id for rate in missed))
                which = of_trials(trials, evidence.counted[cell.id])
                yield Doubt.of_cell(
                    cell,
                    f"the rate is not the one asked for {which}, most of all in {worst.words}. {_follows(worst)}",
                    metrics=f"{side}_",
                )


def _follows(worst: _RateMade) -> str:
    """Return why, what follows, and what to do."""
    if worst.by_arithmetic:
        return f"{_arithmetic(worst.asked)} The figures are of the load that was made."
    if worst.off < 0:
        return (
            "The box did not keep up: the figures are of the load that was reached, and latencies are those of an "
            "overloaded box. Ask for less than was reached, or for no rate where the question is how much it can do."
        )
    return (
        "The tool did more than it was asked for: the figures are of the load that was made. Check the options that "
        "set its rate, and run longer."
    )


def _arithmetic(rate: Rate) -> str:
    if rate.poisson and rate.one_size:
        return (
            "fio itself makes it: the mean gap of its Poisson arrivals is a whole number of microseconds in each "
            f"process. Split the rate over more processes (numjobs), each with at most {MOST_POISSON} per second."
        )
    if rate.poisson:
        return (
            "fio itself makes it: with rate_process=poisson it counts I/Os of the smallest block. Use one block size, "
            "or ask with rate_iops."
        )
    return (
        "fio itself makes it: it counts rate_iops as bytes of the smallest block. Use one block size, or ask with rate "
        "(bytes per second)."
    )


def _rates_made(evidence: Evidence) -> list[tuple[Cell, list[_RateMade]]]:
    """Return each cell that is asked for rates, and what its counted trials made of them."""
    limited = {cell.id: cell for cell in evidence.sweep.cells if any(_asked(cell.workload))}
    rows = evidence.measurements[evidence.measurements["cell"].isin(list(limited))]
    figures: dict[str, dict[str, dict[str, float]]] = {}
    for trial_id, label, metric, value in rows_of(rows, "trial_id", "label", "metric", "value"):
        figures.setdefault(trial_id, {}).setdefault(label, {})[metric] = float(value)
    by_cell = []
    for cell_id, cell in limited.items():
        trials = [trial_id for trial_id in evidence.counted.get(cell_id, ()) if trial_id in figures]
        rates_made = [rate for trial_id in trials for rate in _of_trial(cell.workload, trial_id, figures[trial_id])]
        by_cell += [(cell, rates_made)] if rates_made else []
    return by_cell


def _asked(workload: Workload) -> Iterator[tuple[Job, dict[str, Rate]]]:
    """Yield the jobs of a workload that are asked for a rate."""
    for job in jobs_of(workload.options) if workload.tool == "fio" else ():
        limits = rates(job.options)
        if limits:
            yield job, limits


def _of_trial(workload: Workload, trial_id: str, figures: Mapping[str, Mapping[str, float]]) -> Iterator[_RateMade]:
    several = len(jobs_of(workload.options)) > 1
    for job, limits in _asked(workload):
        rows = _rows_of(job, figures) if several else [figures.get("", {})]
        for side in SIDES:
            ios, moved = (sum(row.get(f"{side}_{kind}", 0.0) for row in rows) for kind in ("iops", "bandwidth"))
            seconds = max((row.get("elapsed", 0.0) for row in rows), default=0.0)
            if side in limits and ios and moved and seconds:
                achieved = moved if limits[side].in_bytes else ios
                processes = job.clones * max(1, len(workload.clients))
                name = job.name if several else ""
                yield _RateMade(trial_id, side, name, limits[side], processes, achieved, moved / ios, seconds)


def _rows_of(job: Job, figures: Mapping[str, Mapping[str, float]]) -> list[Mapping[str, float]]:
    """Return the figures of a job of several: its label has the client before its name, and a clone's number after."""
    label = re.compile(rf"(?:.* )?{re.escape(job.name)}(?:\.\d+)?")
    exact = [row for name, row in figures.items() if name == job.name]
    return exact or [row for name, row in figures.items() if label.fullmatch(name)]


# --- closed loops -----------------------------------------------------------------------------------------------------


def closed_loop_latency(evidence: Evidence) -> Iterator[Doubt]:
    """Percentiles of latency that come from a saturated closed loop: the next request waits until one is done.

    Percentiles are among the metrics of the sweep, or among what it expects. And fio has neither a rate nor a think
    time in that direction, or the rate that it was asked for was not reached. Said once for a run.
    """
    overloaded = {
        (cell.workload.label, rate.side)
        for cell, rates_made in evidence.once(_rates_made)
        for rate in rates_made
        if rate.fell_short
    }
    closed: dict[str, list[str]] = {}
    for workload in evidence.sweep.workloads if not evidence.sweep.imported else ():
        for metric in _percentiles(evidence, workload):
            side: Direction = "read" if metric.startswith("read_") else "write"
            if _is_unlimited(workload, side) or (workload.label, side) in overloaded:
                closed.setdefault(workload.label, []).append(metric)
    if closed:
        yield Doubt.of_run(_closed(closed))


def _closed(by_workload: Mapping[str, Sequence[str]]) -> str:
    metrics = list(dict.fromkeys(chain.from_iterable(by_workload.values())))
    which = f"{counted(len(by_workload), 'workload')} ({first_few(list(by_workload), _WORKLOADS_SHOWN)})"
    return (
        f"In {which}, {listed([metric_noun(metric) for metric in metrics])} "
        f"{'is' if len(metrics) == 1 else 'are'} of a saturated closed loop: fio issues the next request when one is "
        "done, so a slow device is asked for less. This is the latency at the highest load that so many requests at a "
        "time make. It says little about requests that arrive on time: those also wait for the ones before them. For "
        "these ask for a rate below what the device can do: rate_iops, rate_process=poisson, an asynchronous ioengine, "
        "and an iodepth that is never used up."
    )


def _percentiles(evidence: Evidence, workload: Workload) -> list[str]:
    """Return the percentiles of a workload that the answer, or an expectation, is about."""
    sweep = evidence.sweep
    answer = [metric for metric in evidence.answer_metrics[workload.label] if metric in PERCENT_OF]
    parts = [metric for metric in PERCENT_OF if part_of(workload, metric, sweep.design) in sweep.expected]
    return list(dict.fromkeys([*answer, *parts]))


def _is_unlimited(workload: Workload, side: Direction) -> bool:
    """Return whether some job of fio does as much in a direction as it can, one request after another."""
    if workload.tool != "fio" or workload.search:
        return False
    patterns = READS if side == "read" else WRITES
    return any(
        str(job.options["rw"]) in patterns and not job.options.get("thinktime") and side not in rates(job.options)
        for job in jobs_of(workload.options)
    )


# --- processors between requests --------------------------------------------------------------------------------------


def deep_idle(evidence: Evidence) -> Iterator[Doubt]:
    """Latencies of requests that come so rarely that processors sleep between them, and wake late.

    fio waits between requests (`rate_iops`, `rate`, `thinktime`, or a search), and they come further apart than an idle
    state must last to be chosen (`residency`). To leave it takes 10 % of the median latency or more (`latency`, both of
    cpuidle). Switched-off states, and those above the limit of /dev/cpu_dma_latency, do not count.
    """
    states = evidence.facts.idle_states
    for cell in evidence.sweep.cells if states and not evidence.sweep.imported else ():
        if _waits_between(cell.workload):
            gap, latencies = _gap(evidence, cell), _median_latencies(evidence, cell)
            used = [state for state in states if gap and state.stay_s <= gap]
            slow = [side for side, latency in latencies.items() if used and used[-1].exit_s >= MATTERS * latency]
            if gap and slow:
                deepest = used[-1]
                medians = listed([f"{quantity(latencies[side], 's')} of a {side}" for side in slow])
                yield Doubt.of_cell(
                    cell,
                    f"a request comes every {quantity(gap, 's')}, and between two of them a processor may enter idle "
                    f"state {deepest.name}. To leave it takes up to {quantity(deepest.exit_s, 's')}; the median "
                    f"latency is {medians}. At a higher rate processors sleep less, and latencies may be shorter. To "
                    "leave the state out: `cpupower idle-set -D 1`, or a program that holds /dev/cpu_dma_latency.",
                    metrics=f"{slow[0]}_latency" if len(slow) == 1 else "",
                )


def _waits_between(workload: Workload) -> bool:
    jobs = jobs_of(workload.options) if workload.tool == "fio" else ()
    return bool(workload.search) or any(rates(job.options) or job.options.get("thinktime") for job in jobs)


def _gap(evidence: Evidence, cell: Cell) -> float | None:
    """Return the mean time in s between two requests, over the counted trials."""
    per_s = sum(_median(evidence, cell, f"{side}_iops") or 0.0 for side in SIDES)
    return 1 / per_s if per_s else None


def _median_latencies(evidence: Evidence, cell: Cell) -> dict[Direction, float]:
    """Return the median latency in s of each direction that has one, over the counted trials."""
    medians = {side: _median(evidence, cell, f"{side}_latency_p50") for side in SIDES}
    return {side: value for side, value in medians.items() if value}


def _median(evidence: Evidence, cell: Cell, metric: str) -> float | None:
    rows = evidence.measurements
    counted_rows = rows["trial_id"].isin(evidence.counted.get(cell.id, ()))
    values = rows.loc[counted_rows & (rows["metric"] == metric) & (rows["label"] == ""), "value"]
    return float(values.median()) if len(values) else None


# --- the trials of a search -------------------------------------------------------------------------------------------


def few_late_requests(evidence: Evidence) -> Iterator[Doubt]:
    """Searches whose trials are too short to know whether the objective holds.

    A trial at the capacity that was found has fewer than 100 requests that may be later than the limit. They come in
    bursts, so a short trial often has none, and holds the objective at rates above the capacity (docs/calibration.md).
    """
    capacities = evidence.estimates[evidence.estimates["metric"] == "capacity"].set_index("cell")["mean"].to_dict()
    for cell in evidence.sweep.cells:
        search, rate = cell.workload.search, capacities.get(cell.id, math.nan)
        if search and not math.isnan(rate):
            objective = search.objective
            counted_s = fio_open_loop.counted_s(cell.workload.options, objective, rate)
            late = rate * counted_s * _late_share(objective)
            if late < FEWEST_LATE:
                needed = f"{runtime_needed_s(objective, rate):,} s"
                yield Doubt.of_cell(
                    cell,
                    f"at the capacity a trial has {rate * counted_s:,.0f} requests, and {late:,.0f} of them may be "
                    f"late. Late requests come in bursts, so the objective often holds by chance: the capacity may be "
                    f"too high. Give it a runtime of {needed} or more.",
                )


def runtime_needed_s(objective: Objective, rate: float) -> int:
    """Return for how many seconds a trial of this rate has to run until FEWEST_LATE of its requests may be late."""
    return math.ceil(FEWEST_LATE / (rate * _late_share(objective)))


def _late_share(objective: Objective) -> float:
    return min(1 - PERCENT_OF[f"read_latency_{name}"] / 100 for name in objective.limits)


def capacity_changed(evidence: Evidence) -> Iterator[Doubt]:
    """Searches whose answers, in their order, speak of a capacity that moved.

    A capacity that rises or falls from trial to trial, or once, fits the answers at least 1.5 times as well as a
    single one (Bayes factor; docs/calibration.md). The interval then holds what it lay between, and may be wide.
    """
    rows = evidence.measurements[~evidence.measurements["warmup"].astype(bool)]
    rows = rows[rows["metric"].isin(("asked_rate", "objective_used"))]
    table = rows.pivot_table(index=["cell", "block"], columns="metric", values="value")
    searched = {cell.id: cell for cell in evidence.sweep.cells if cell.workload.search}
    for name, answers in table.dropna().groupby("cell") if searched and len(table.columns) == 2 else ():
        moved = change([RateTrial(rate, used <= 1) for rate, used in answers.to_numpy().tolist()])
        if moved.noticed:
            yield Doubt.of_cell(
                searched[str(name)],
                f"the capacity seems to have {'fallen' if moved.ratio < 1 else 'risen'} while it was searched for, by "
                f"about {abs(moved.ratio - 1):.0%} over {counted(len(answers), 'trial')}, by the order of the answers "
                f"(Bayes factor {moved.factor:.3g}): there may be no single capacity. The interval also holds what it "
                "lay between. Find what changes with time (heat, a filling device, other users), and search again.",
            )


def _idle_unknown(evidence: Evidence) -> str | None:
    """Blind only where a workload waits between requests, and the box does not tell its idle states."""
    waits = any(_waits_between(workload) for workload in evidence.sweep.workloads)
    return "the box does not tell its idle states (cpu_idle)" if waits and not evidence.facts.processors.idle else None


CHECKS = (
    Check(
        "few-late-requests",
        few_late_requests,
        "Make the trials longer: `runtime` of the workload.",
    ),
    Check(
        "capacity-changed",
        capacity_changed,
        "Find what changes with time (heat, fill, other users), and search again.",
    ),
    Check(
        "rate-not-reached",
        rate_not_reached,
        "Ask for a rate that the box can keep, or for none where the question is how much it can do.",
    ),
    Check(
        "closed-loop-latency",
        closed_loop_latency,
        "Ask for a rate below what the device can do, with enough requests in flight, where requests arrive on time.",
        severities=("note",),
    ),
    Check(
        "deep-idle",
        deep_idle,
        "Leave the idle state out while you measure, or ask for the rate that the question is about.",
        severities=("note",),
        blind=_idle_unknown,
    ),
)
