"""The simulations behind the search for a capacity: its intervals, its trials, and other ways to look for it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from mountlab.stats.capacity import Capacity, RateTrial, capacity, next_rate
from mountlab.stats.capacity_order import change, is_precise, searched_capacity
from mountlab.stats.capacity_ratios import level_at_end, ratio
from mountlab.stats.simulated import LEVEL, Floats, Generator, generator
from scipy import stats

from mountlab_dev.calibration.document import HalfWidth, Share, Table, Trials
from mountlab_dev.calibration.servers import LATE, REQUESTS, SERVERS, Server
from mountlab_dev.calibration.tables import Effort, held

HALF_WIDTH, MOST = 0.05, 60
"""How precise a search is to be, and its trials at most."""
RANGE = 4.0
"""A search starts in the middle of a range of rates that the capacity is anywhere in: last over first."""
MARGIN = 1.1
"""A grid covers a range that is so much wider at either end, for levels beyond the capacity."""
LENGTHS = (3_000, REQUESTS)
BESIDE = (1 - HALF_WIDTH, 1, 1 + HALF_WIDTH)
POINTS, REPEATS = 21, 5
FINER = (21, 31, 41, 51, 61, 81)
"""Points of the grids among which the cheapest is sought that is as precise as the search."""
MOST_REPEATS = 40
TIMES = 1.2
"""How many times one capacity is the other, where they differ."""
FEW_HALF_WIDTH, FEW_MOST = 0.1, 25
"""A search that is to be less precise, with few trials."""
COMPARED_MOST = 40
"""Its trials at most where it is compared with another one."""
APART = 1.33
"""How many times one capacity is the other, where few trials are to show it."""
WRONG = 0.02
"""How often an answer is wrong, whatever the rate."""
COMPARISONS = (1, 2)
"""How many comparisons a search is part of."""
Answers = Callable[[Floats], Floats]
"""From rates, in units of the capacity, to the probability that a trial holds."""


def searched_capacities(effort: Effort) -> Table:
    """Return how often the interval of a search holds the capacity, after how many trials, and what others do."""
    says = (
        f"**Capacity** at a p99, a trial of {REQUESTS:,} requests: searches for ± {100 * HALF_WIDTH:g} % with at most "
        f"{MOST} trials. *Search*: the 95 % interval. *Grid*: rates over a range of {RANGE:g} to 1 that the capacity "
        "lies in anywhere, and a little beyond, each tried several times. "
        "*Bracket*: the last rate up to which most trials held, and the "
        "first from which most failed. *Tested*: an interval by exact binomial tests, level after level from either "
        f"end. *As precise*: the cheapest grid of {FINER[0]} to {FINER[-1]} points whose tested interval is within ± "
        f"{100 * HALF_WIDTH:g} % as often as that of the search. *Bisection*: the range is halved until it is as "
        "narrow, with one trial a step. Half widths are medians."
    )
    header = ("server and method", "covered", "trials", "half width", "wider than wanted")
    rows = [row for server in SERVERS for row in _methods(server, effort)]
    return Table("capacities", says, effort.sweeps, header, tuple(rows))


def ratios_of_capacities(effort: Effort) -> Table:
    """Return how often equal capacities differ, and how often intervals of ratios hold the truth."""
    says = (
        "**Ratios of capacities** of searches that end when their interval at this level is as narrow as above. "
        "*Differ*: p of at most 5 % by the number of comparisons, in bold where one capacity is "
        f"{TIMES:g} or 2 times the other. *Interval holds*: that of the ratio, of all comparisons together at 95 %."
    )
    header = ("servers", "equal: differ", "interval holds", f"{TIMES:g} times: differ", "2 times: differ")
    cases = [(LEVEL, 1), *((level_at_end(LEVEL, comparisons), comparisons) for comparisons in COMPARISONS)]
    rows = tuple(
        (f"{one.name} and {other.name}, searched at {100 * level:g} %, {_counted(comparisons)}",
         _compared(one, other, level, comparisons, effort.series))
        for one, other in zip(SERVERS[::2], SERVERS[1::2], strict=True)
        for level, comparisons in cases
    )  # fmt: skip
    return Table("capacity-ratios", says, effort.series, header, rows)


@dataclass(frozen=True)
class Trouble:
    """What is wrong with the answers of a search."""

    name: str = ""
    wrong: Callable[[int, Generator], bool] = lambda place, rng: False
    """From the place of a trial to whether its answer is wrong."""
    capacity: Callable[[int], float] = lambda place: 1.0
    """The capacity at a trial, in units of that at the first one."""


TROUBLES = (
    Trouble(),
    Trouble(", 2 % of answers wrong", wrong=lambda place, rng: bool(rng.random() < WRONG)),
    Trouble(", first answer wrong", wrong=lambda place, rng: place == 0),
    Trouble(", falls by 20 % after 8 trials", capacity=lambda place: 1.0 if place < 8 else 0.8),
)


def searches_with_few_trials(effort: Effort) -> Table:
    """Return what searches with few trials find, also where some answers are wrong or the capacity falls."""
    says = (
        f"**Few trials**: searches for ± {100 * FEW_HALF_WIDTH:g} % with at most {FEW_MOST}. *Covered*: the 95 % "
        "interval that is printed holds the capacity throughout. *Precise*: it is as narrow. *Caveat*: that the "
        "capacity changed, in bold where it did."
    )
    header = ("server", "covered", "precise", "trials, median", "caveat")
    rows = tuple(
        (f"{server.name}{trouble.name}", _with_few(server, trouble, effort.series))
        for server in SERVERS
        for trouble in TROUBLES
    )
    return Table("capacity-few-trials", says, effort.series, header, rows)


def ratios_with_few_trials(effort: Effort) -> Table:
    """Return how often searches with few trials tell capacities apart."""
    says = (
        f"**Ratios with few trials**: two searches for ± {100 * FEW_HALF_WIDTH:g} %, of capacities that are {APART:g} "
        f"times each other, which end at {100 * level_at_end(LEVEL, 1):g} % or after {COMPARED_MOST} trials. "
        "*Differ*: p of at most 5 %. "
        "*Interval holds*: that of the ratio, at 95 %."
    )
    rows = tuple((server.name, _distinguished(server, effort.series)) for server in SERVERS)
    return Table("capacity-few-ratios", says, effort.series, ("servers", "differ", "interval holds", "trials"), rows)


def _distinguished(server: Server, count: int) -> tuple[Share | Trials, ...]:
    rng = generator("few ratios", server.name)
    ended = [_few(server, Trouble(), rng, level_at_end(LEVEL, 1), COMPARED_MOST) for _ in range(2 * count)]
    pairs = [ratio(_scaled(tuple(one), APART), other) for one, other in zip(ended[::2], ended[1::2], strict=True)]
    return (
        Share(sum(each.p <= 1 - LEVEL for each in pairs), count, True),
        Share(sum(each.low <= APART <= each.high for each in pairs), count),
        Trials(float(np.median([len(trials) for trials in ended]))),
    )


def _with_few(server: Server, trouble: Trouble, count: int) -> tuple[Share | Trials, ...]:
    rng = generator("few trials", server.name, trouble.name)
    searched = [_few(server, trouble, rng, LEVEL, FEW_MOST) for _ in range(count)]
    found = [searched_capacity(trials, LEVEL) for trials in searched]
    last = [trouble.capacity(len(trials) - 1) for trials in searched]
    noticed = sum(change(trials, LEVEL).noticed for trials in searched)
    return (
        Share(sum(each.low <= end and each.high >= 1 for each, end in zip(found, last, strict=True)), count),
        Share(sum(each.half_width <= FEW_HALF_WIDTH for each in found), count),
        Trials(float(np.median([each.n for each in found]))),
        Share(noticed, count, min(last) < 1),
    )


def _few(server: Server, trouble: Trouble, rng: Generator, level: float, most: int) -> list[RateTrial]:
    start, trials = float(_middles(rng.random(1))[0]), list[RateTrial]()
    while len(trials) < most and not is_precise(trials, FEW_HALF_WIDTH, level):
        left, place = most - len(trials), len(trials)
        rate = next_rate(trials, half_width=FEW_HALF_WIDTH, start=start, level=level, left=left)
        holds = server.holds(rate / trouble.capacity(place) * server.capacity, rng)
        trials.append(RateTrial(rate, holds != trouble.wrong(place, rng)))
    return trials


def _counted(comparisons: int) -> str:
    return "1 comparison" if comparisons == 1 else f"{comparisons} comparisons"


def lengths_of_trials(effort: Effort) -> Table:
    """Return how often trials of two lengths hold the objective at the capacity, and a half width beside it."""
    says = (
        f"**Length of a trial**: how often it holds the objective at the capacity, and {100 * HALF_WIDTH:g} % below "
        "and above. It should be 50 at the capacity."
    )
    cases = [(requests, times) for requests in LENGTHS for times in BESIDE]
    header = ("server", *(f"{requests:,} requests, at {times:g} C" for requests, times in cases))
    rows = tuple(
        (server.name, tuple(_held(server, requests, times, effort.sweeps) for requests, times in cases))
        for server in SERVERS
    )
    return Table("trial-lengths", says, effort.sweeps, header, rows)


def _held(server: Server, requests: int, times: float, trials: int) -> Share:
    rng = generator("length", server.name, requests, times)
    return Share(sum(server.late(times * server.capacity, rng, requests) <= LATE for _ in range(trials)), trials)


Row = tuple[str, tuple[Share | Trials | HalfWidth, ...]]


def _methods(server: Server, effort: Effort) -> list[Row]:
    found = [capacity(trials, LEVEL) for trials in searches(server, effort.sweeps)]
    ours = _outcome(found)
    answers = response(server, effort.sweeps)
    return [
        (f"{server.name}: search", ours.figures()),
        (f"{server.name}: grid, {POINTS} points, {REPEATS} repeats, bracket",
         grid(server, answers, POINTS, REPEATS, effort.sweeps, bracket=True).figures()),
        (f"{server.name}: grid, {POINTS} points, {REPEATS + 1} repeats, tested",
         grid(server, answers, POINTS, REPEATS + 1, effort.sweeps).figures()),
        (f"{server.name}: grid, tested, as precise",
         as_precise(server, answers, ours.wider.rate, effort.sweeps).figures()),
        (f"{server.name}: bisection", bisection(server, answers, effort.sweeps).figures()),
    ]  # fmt: skip


@dataclass(frozen=True)
class Outcome:
    """What a method gives in many cases."""

    covered: Share
    trials: float
    half_width: float
    wider: Share

    def figures(self) -> tuple[Share | Trials | HalfWidth, ...]:
        return self.covered, Trials(self.trials), HalfWidth(self.half_width), self.wider


def _outcome(found: list[Capacity]) -> Outcome:
    low, high = (np.array([getattr(each, end) for each in found]) for end in ("low", "high"))
    return _of_ends(low, high, float(np.mean([each.n for each in found])))


def _of_ends(low: Floats, high: Floats, trials: float) -> Outcome:
    """Return the outcome of intervals in units of the capacity."""
    bounded = (low > 0) & np.isfinite(high)
    ends = np.where(bounded, low, 0.0), np.where(bounded, high, 1.0)
    half = np.where(bounded, (ends[1] - ends[0]) / (ends[1] + ends[0]), math.inf)
    wider = Share(int(np.count_nonzero(half > HALF_WIDTH)), len(low))
    return Outcome(held(low, high, 1.0), trials, float(np.median(half)), wider)


@cache
def searches(server: Server, count: int, level: float = LEVEL) -> tuple[tuple[RateTrial, ...], ...]:
    """Return searches of a simulated server, with rates in units of its capacity. At a higher level than `LEVEL` those
    of that level go on."""
    begun = searches(server, count) if level > LEVEL else ((),) * count
    return tuple(_search(server, case, trials, level) for case, trials in enumerate(begun))


def _search(server: Server, case: int, begun: tuple[RateTrial, ...], level: float) -> tuple[RateTrial, ...]:
    rng = generator("capacity", server.name, case, level)
    start = float(_middles(rng.random(1))[0])
    trials = list(begun)
    while len(trials) < MOST and not is_precise(trials, HALF_WIDTH, level):
        left = MOST - len(trials)
        rate = next_rate(trials, half_width=HALF_WIDTH, start=start, level=level, left=left)
        trials.append(RateTrial(rate, server.holds(rate * server.capacity, rng)))
    return tuple(trials)


def _middles(uniform: Floats) -> Floats:
    """Return middles of ranges in which the capacity, 1, is anywhere, evenly in logs."""
    return np.asarray(RANGE ** (uniform - 0.5))


def response(server: Server, trials: int) -> Answers:
    """Return how often trials hold at rates around the capacity, simulated at some and interpolated."""
    logs = np.linspace(-0.3, 0.3, 41)
    rates = np.exp(logs) * server.capacity
    rng = generator("response", server.name)
    share = [np.mean([server.holds(rate, rng) for _ in range(max(20, trials // 3))]) for rate in rates.tolist()]
    return lambda rates: np.asarray(np.interp(np.log(rates), logs, share))


def grid(server: Server, answers: Answers, points: int, repeats: int, cases: int, *, bracket: bool = False) -> Outcome:
    """Return what a grid finds: the last level, from below, at which more trials hold than chance allows, and the
    first from which more fail. With `bracket` most of the trials are enough."""
    rng = generator("grid", server.name, points, repeats)
    rates = _middles(rng.random((cases, 1))) * (RANGE * MARGIN**2) ** np.linspace(-0.5, 0.5, points)
    holds = rng.binomial(repeats, answers(rates))
    enough = repeats // 2 + 1 if bracket else stats.binom.isf((1 - LEVEL) / 2, repeats, 0.5) + 1
    first = np.logical_and.accumulate(holds >= enough, axis=1).sum(axis=1)
    last = np.logical_and.accumulate((repeats - holds >= enough)[:, ::-1], axis=1).sum(axis=1)
    ends = np.hstack([np.zeros((cases, 1)), rates, np.full((cases, 1), math.inf)])
    every = np.arange(cases)
    return _of_ends(ends[every, first], ends[every, points + 1 - last], points * repeats)


def as_precise(server: Server, answers: Answers, wider: float, cases: int) -> Outcome:
    """Return the cheapest grid that is wider than wanted no more often than this."""
    sizes = sorted((points * repeats, points, repeats) for points in FINER for repeats in range(6, MOST_REPEATS + 1))
    outcomes = (grid(server, answers, points, repeats, cases) for _, points, repeats in sizes)
    return next(
        (found for found in outcomes if found.wider.rate <= wider), grid(server, answers, *sizes[-1][1:], cases)
    )


def bisection(server: Server, answers: Answers, cases: int) -> Outcome:
    """Return what halving the range finds, where each answer is believed."""
    rng = generator("bisection", server.name)
    middle = _middles(rng.random(cases))
    low, high, steps = middle / math.sqrt(RANGE), middle * math.sqrt(RANGE), 0
    while np.any((high - low) / (high + low) > HALF_WIDTH):
        middle, steps = np.sqrt(low * high), steps + 1
        holds = rng.random(cases) < answers(middle)
        low, high = np.where(holds, middle, low), np.where(holds, high, middle)
    return _of_ends(low, high, steps)


def _compared(one: Server, other: Server, level: float, comparisons: int, count: int) -> tuple[Share, ...]:
    """Return how often equal capacities differ, the interval of their ratio holds 1, and unequal ones differ."""
    pairs = list(zip(searches(one, count, level), searches(other, count, level), strict=True))
    error = (1 - LEVEL) / comparisons
    equal, *unequal = (
        [ratio(_scaled(first, times), second, 1 - error) for first, second in pairs] for times in (1.0, TIMES, 2.0)
    )
    holds = sum(each.low <= 1 <= each.high for each in equal)
    differ, *found = (sum(each.p <= error for each in ratios) for ratios in (equal, *unequal))
    return Share(differ, count), Share(holds, count), *(Share(each, count, True) for each in found)


def _scaled(trials: tuple[RateTrial, ...], times: float) -> list[RateTrial]:
    return [RateTrial(times * trial.rate, trial.holds) for trial in trials]
