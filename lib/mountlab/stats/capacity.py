"""The highest arrival rate at which an objective holds, from trials at chosen rates that each held it or not.

Model. The capacity C is a rate below which a trial holds the objective more often than not, and above which it fails
more often than not, whatever went before it. Nothing else is assumed: no form of the latency curve, and nothing about
trials at C itself.

Confidence by betting (test martingales: Waudby-Smith & Ramdas 2024, J. R. Stat. Soc. B 86:1; Ville 1939). If C = x, a
trial at a rate above x holds with a probability of at most 1/2, and one below x fails with at most 1/2. So a purse that
bets on "holds" in the former and on "fails" in the latter has no advantage: it starts at 1, and ever reaches 1/α with a
probability of at most α. The interval holds each x whose purse has not reached 1/α, and what lies between these. It is
valid for any choice of rates and at any stopping time. `stakes` says what is bet.

A trial's rate is the one that was chosen before it, not the one that the generator reached: 3,000 asked and 3,017
issued is a trial at 3,000. A rate that depended on what happened in the trial would break the bets. For the same reason
trials are in the order in which they were made.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from mountlab.core.errors import ParameterError

Floats = NDArray[np.float64]

CAUTION = 0.25
"""The bet counts so many answers of each kind before the first one. Krichevsky & Trofimov (1981) have 1/2, for answers
of any chance; those at the rates that end a search are nearly all alike."""
LAPSE = 0.02
"""For the choice of rates only: how often a trial answers wrongly however far its rate is from the capacity."""
SLOPES = np.array([0.15, 0.5, 1.5])
"""For the choice of rates only: widths of the transition from holding to failing, in half widths; each as likely."""
SPAN = 1.5
"""The choice looks for the capacity so far, in logs, beyond the tested rates."""
ALIKE = 3
"""After so many equal answers in a row, a search asks again at the end of its bracket that they run towards."""
UNSURE = 3.0
"""A search halves while 80 % of the belief is wider than so many half widths."""
NEW_RATE = 8.0
"""So many trials must a rate save that has not been tested: answers at a rate left behind may count no more."""
SPARE = 0.98
"""The two rates of the end of a search are so much of the permitted distance apart: room to round them."""
MOST_ALIKE = 60
"""The choice looks no further ahead than so many right answers at a rate."""
GIVE_UP, WIDEST = 2.0, 0.8
"""Where its trials do not suffice, a search is content with a half width so many times the wanted one, or again so many
times that, up to `WIDEST`."""


@dataclass(frozen=True)
class RateTrial:
    """One trial: the arrival rate that was chosen before it, and whether the objective held."""

    rate: float
    holds: bool

    def __post_init__(self) -> None:
        if not 0 < self.rate < math.inf:
            raise ParameterError("no arrival rate", got=f"{self.rate:g}", allowed="a number above 0")


@dataclass(frozen=True)
class Capacity:
    """The capacity that fits the answers best, and the interval of those that they do not contradict."""

    n: int
    estimate: float
    """The rate that the fewest answers speak against: failed at a lower rate, or held at a higher one. The geometric
    middle of several such rates, within the interval. NaN while all answers are equal."""
    low: float
    """A tested rate, or 0 while nothing bounds it."""
    high: float
    """A tested rate, or infinity while nothing bounds it."""
    level: float

    @property
    def half_width(self) -> float:
        """(high - low) / (high + low): both ends lie within this part of their middle. Infinite while unbounded."""
        if self.low == 0 or math.isinf(self.high):
            return math.inf
        return (self.high - self.low) / (self.high + self.low)


@dataclass(frozen=True)
class Steps:
    """What is won against each capacity, as a step function.

    Its pieces, from the left: below the lowest tested rate, at that rate, between it and the next, and so on."""

    left: Floats
    right: Floats
    """Ends of each piece; equal at a tested rate, which trials at that very rate say nothing about."""
    won: Floats
    """Log wealth of the bets that trials at higher rates hold, and those at lower rates fail."""


def stakes(trials: Sequence[RateTrial]) -> Floats:
    """Return what is bet in each trial, as a share of the wealth: more than 0 on "holds", less than 0 on "fails".

    The bet follows the trials before it: those from this rate up to the one up to which "holds" leads most clearly,
    against those from this rate down to the one down to which "fails" does. So a wrong answer that others have
    contradicted is forgotten. It does not know the trial itself, nor any later one; so the order of trials matters.
    """
    rates, place = np.unique([trial.rate for trial in trials], return_inverse=True)
    held = np.array([trial.holds for trial in trials], dtype=bool)
    there = (place[:, None] == np.arange(len(rates))).astype(np.float64)
    before = [np.cumsum(each, axis=0) - each for each in (np.where(held, 1.0, -1.0)[:, None] * there, there)]
    ahead, count = _leads(before[0], before[1], place, place)
    return np.asarray(ahead / (count + 2 * CAUTION))


def _leads(ahead: Floats, count: Floats, first: NDArray[np.int64], last: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return by how much "holds" leads from the tested rate `first` on upwards, less the lead of "fails" from `last` on
    downwards, and the number of trials that these leads are of. `ahead`, `count`: how many more trials held than failed
    at each tested rate, and all of them."""
    place = np.arange(ahead.shape[-1])
    up, down = place >= first[..., None], place <= last[..., None]
    holds, of_holds = _lead(np.where(up, ahead, 0.0), np.where(up, count, 0.0))
    fails, of_fails = _lead(np.where(down, -ahead, 0.0)[..., ::-1], np.where(down, count, 0.0)[..., ::-1])
    return holds - fails, of_holds + of_fails


def _lead(ahead: Floats, count: Floats) -> tuple[Floats, Floats]:
    """Return the sum of the first so many, or of none, that is largest for its number of trials, and that number."""
    sums = np.zeros((2, *ahead.shape[:-1], ahead.shape[-1] + 1))
    np.cumsum([ahead, count], axis=-1, out=sums[..., 1:])
    at = (sums[0] / (sums[1] + 2 * CAUTION)).argmax(axis=-1)[..., None]
    lead, number = (np.take_along_axis(each, at, axis=-1)[..., 0] for each in sums)
    return lead, number


def capacity(trials: Sequence[RateTrial], level: float = 0.95) -> Capacity:
    """Return the capacity that trials show, in the order in which they were made, with its interval."""
    if not trials:
        return Capacity(0, math.nan, 0.0, math.inf, level)
    steps = steps_of(trials)
    # Where every rate is contradicted, which the model rarely allows, the least contradicted one counts as not at all.
    kept = steps.won - max(0.0, float(steps.won.min())) < -math.log1p(-level)
    low, high = float(steps.left[kept].min()), float(steps.right[kept].max())
    return Capacity(len(trials), min(max(_estimate(trials), low), high), low, high, level)


def confirms(trials: Sequence[RateTrial], found: Capacity) -> bool:
    """Return whether the last two trials asked both ends of an interval. If the capacity has moved beyond one of them
    since that was asked, a search should not end unaware of it."""
    return {trial.rate for trial in trials[-2:]} == {found.low, found.high}


def steps_of(trials: Sequence[RateTrial]) -> Steps:
    """Return what is won against each capacity."""
    rates, place = np.unique([trial.rate for trial in trials], return_inverse=True)
    bet = stakes(trials)
    won = np.log1p(np.where([trial.holds for trial in trials], bet, -bet))
    on_holds = np.bincount(place, np.where(bet > 0, won, 0.0), len(rates)).astype(np.float64)
    on_fails = np.bincount(place, np.where(bet < 0, won, 0.0), len(rates)).astype(np.float64)
    # From none to all of the tested rates lie below a piece between them; at a tested rate both sides leave it out.
    above = np.append(np.cumsum(on_holds[::-1])[::-1], 0.0)
    below = np.concatenate([[0.0], np.cumsum(on_fails)])
    ends = np.concatenate([[0.0], rates, [math.inf]])
    won = _interleaved(above + below, above[1:] + below[:-1])
    return Steps(left=_interleaved(ends[:-1], rates), right=_interleaved(ends[1:], rates), won=won)


def _counted(trials: Sequence[RateTrial]) -> tuple[Floats, Floats, Floats]:
    """Return the tested rates in order, and how many trials held and failed at each."""
    rates, place = np.unique([trial.rate for trial in trials], return_inverse=True)
    held = np.array([trial.holds for trial in trials], dtype=np.float64)
    holds, fails = (np.bincount(place, each, len(rates)).astype(np.float64) for each in (held, 1 - held))
    return rates, holds, fails


def _interleaved(between: Floats, at: Floats) -> Floats:
    """Return the values of the pieces between tested rates with those at the rates themselves among them."""
    values = np.empty(len(between) + len(at))
    values[0::2], values[1::2] = between, at
    return values


def _estimate(trials: Sequence[RateTrial]) -> float:
    """Return the geometric middle of the rates between tested ones that the fewest answers speak against."""
    rates, holds, fails = _counted(trials)
    if not (holds.any() and fails.any()):
        return math.nan
    below, upto, _ = _least_contradicted(holds, fails)
    first, last = max(below - 1, 0), min(upto, len(rates) - 1)
    return math.sqrt(rates[first]) * math.sqrt(rates[last])


def _least_contradicted(holds: Floats, fails: Floats) -> tuple[int, int, int]:
    """Return how many tested rates lie below the lowest and the highest capacity that the fewest answers speak against,
    and how many answers these are."""
    against = np.insert(np.cumsum(fails - holds), 0, 0.0) + holds.sum()
    least = np.flatnonzero(against == against.min())
    return int(least[0]), int(least[-1]), int(against.min())


# ── the choice of rates: the interval is valid whatever is chosen, only the number of trials depends on it ────────────


def next_rate(
    trials: Sequence[RateTrial],
    *,
    half_width: float,
    start: float,
    floor: float = 0.0,
    ceiling: float = math.inf,
    level: float = 0.95,
    fallback: float | None = None,
    step: float = 0.0,
    left: float = math.inf,
) -> float:
    """Return the rate of the next trial of a search that ends when the interval is as narrow as `half_width`, or when
    no trials are `left`.

    1. From `start` by a factor of 2, then of 4, until a trial answers otherwise.
    2. The middle of the belief, while that is wide. The belief is a posterior over capacities: answers change from
       "holds" to "fails" along a logistic curve in the log of the rate, and a few are wrong (`LAPSE`). After `ALIKE`
       equal answers the end of the bracket that they run towards is asked again: the answer there may be the wrong one.
       Where that is, and no fewer answers speak against the tested rates than against those beyond, go on as in 1.
    3. Of all pairs of rates as far apart as `half_width` allows, the one that seems to need the fewest trials until its
       lower rate is below the interval's end and its higher rate above the other; of its two rates the one whose answer
       is less sure. A pair is kept until another saves `NEW_RATE` trials.
    4. When the trials that are left are not enough for that pair although each answers as it should, the same at the
       level `fallback`, then one that is `GIVE_UP` times as far apart, and so on up to `WIDEST`: a wide interval tells
       more than none. As many trials are kept for that as answers have contradicted others. At last the rate that
       needs fewer trials: an end on one side tells more than none.

    5. Where the interval is as narrow already, its end that was not asked last, until both were (`confirms`).

    A function of the trials alone: a search that is resumed chooses as it would have done. `step`: rates can only be
    multiples of it; 0: they can be any.
    """
    levels = [level, *([] if fallback is None else [fallback])]
    rate = _chosen(trials, half_width, start, (floor, ceiling), levels, step, left)
    return float(_rounded(np.clip(np.array([rate]), floor, ceiling), step, np.round)[0])


def _chosen(
    trials: Sequence[RateTrial],
    half_width: float,
    start: float,
    bounds: tuple[float, float],
    levels: Sequence[float],
    step: float,
    left: float,
) -> float:
    """Return the rate of the next trial, which may be out of bounds."""
    if not trials:
        return start
    rates, holds, fails = _counted(trials)
    if not (holds.any() and fails.any()):
        return _explored(trials, math.nan)
    found = capacity(trials, levels[0])
    if found.half_width <= half_width:
        return found.low if trials[-1].rate == found.high else found.high
    belief, steps = _Belief.of(trials, half_width), steps_of(trials)
    low, middle, high = belief.quantiles()
    *_, contradictions = _least_contradicted(holds, fails)
    widths = _widths(half_width)
    for width, level in [(half_width, levels[0]), *((width, levels[-1]) for width in widths)]:
        pair = _cheapest_pair(trials, steps, belief, width, bounds=bounds, level=level, step=step)
        if min(pair.least + contradictions, pair.likely) <= left:
            if high - low > UNSURE * width and pair.least < left:
                return _explored(trials, float(rates[0]) * math.exp(middle))
            return _tested(trials, pair.rate, half_width)
    return _tested(trials, pair.quickest, half_width)


def _explored(trials: Sequence[RateTrial], middle: float) -> float:
    """Return the rate that narrows down where the capacity is: beyond the tested rates, where the fewest answers speak
    against a capacity there; at the end of the bracket that answers run towards, where one answer alone made it; else
    the middle."""
    rates, holds, fails = _counted(trials)
    below, upto, _ = _least_contradicted(holds, fails)
    factor, last = 2.0 if len(trials) == 1 else 4.0, trials[-1]
    if upto == len(rates) and (last.holds or below > 0):
        return float(rates[-1]) * factor
    if below == 0:
        return float(rates[0]) / factor
    if len(trials) > ALIKE and all(trial.holds == last.holds for trial in trials[-ALIKE:]):
        other = rates[(fails if last.holds else holds) > 0]
        end = min(other[other > last.rate], default=0.0) if last.holds else max(other[other < last.rate], default=0.0)
        if sum(trial.rate == end for trial in trials) == 1:
            return float(end)
    return middle


def _widths(half_width: float) -> list[float]:
    """Return the half widths that a search turns to one after another: each `GIVE_UP` times the one before it."""
    steps = math.ceil(math.log(WIDEST / half_width) / math.log(GIVE_UP)) if half_width < WIDEST else 0
    return [half_width, *(min(half_width * GIVE_UP**step, WIDEST) for step in range(1, steps + 1))]


def _rounded(rates: Floats, step: float, how: Callable[[Floats], Floats]) -> Floats:
    """Return rates as multiples of `step`, where there is one, and at least one step: no trial has the rate 0. A
    multiple already stays, whatever its last bits are."""
    if not step:
        return rates
    nearest = np.round(rates / step)
    off = np.abs(rates / step - nearest) > 1e-6 * np.maximum(nearest, 1)
    return np.asarray(step * np.maximum(np.where(off, how(rates / step), nearest), 1))


@dataclass(frozen=True)
class _Belief:
    """Weights of capacities (rows; logs in units of the lowest tested rate) and widths of the transition (columns)."""

    capacities: Floats
    widths: Floats
    weights: Floats

    @classmethod
    def of(cls, trials: Sequence[RateTrial], half_width: float) -> _Belief:
        rates, holds, fails = _counted(trials)
        logs = np.log(rates / rates[0])
        ends = logs[0] - SPAN, logs[-1] + SPAN
        capacities = np.linspace(*ends, int((ends[1] - ends[0]) / half_width * 3) + 2)
        flat = cls(capacities, SLOPES * half_width, np.ones((len(capacities), len(SLOPES))))
        held = flat.chances(logs)
        likelihood = np.log(held) @ holds + np.log1p(-held) @ fails
        weights = np.exp(likelihood - likelihood.max())
        return cls(capacities, flat.widths, weights / weights.sum())

    def chances(self, logs: Floats) -> Floats:
        """Return the probability that a trial at each of these rates holds, by capacity and width."""
        beyond = (self.capacities[:, None, None] - logs) / self.widths[:, None]
        return np.asarray(LAPSE + (1 - 2 * LAPSE) * scipy.special.expit(beyond))

    def holds(self, logs: Floats) -> Floats:
        """Return the probability that a trial at each of these rates holds."""
        return np.asarray(np.tensordot(self.weights, self.chances(logs), axes=2))

    def quantiles(self) -> tuple[float, float, float]:
        """Return the capacity below which 10, 50 and 90 % of the belief lie."""
        low, middle, high = np.interp([0.1, 0.5, 0.9], np.cumsum(self.weights.sum(axis=1)), self.capacities)
        return float(low), float(middle), float(high)


@dataclass(frozen=True)
class _Pair:
    """A pair of rates that would end a search."""

    least: int
    """How many trials it needs where each answers as it should."""
    likely: float
    """How many it seems to need."""
    rate: float
    """That of its rates, of those that need more, whose answer is less sure."""
    quickest: float
    """That of them that needs fewer."""


def _cheapest_pair(
    trials: Sequence[RateTrial],
    steps: Steps,
    belief: _Belief,
    half_width: float,
    *,
    bounds: tuple[float, float],
    level: float,
    step: float,
) -> _Pair:
    """Return the pair with the fewest trials to come."""
    unit, apart = float(steps.right[0]), SPARE * 2 * math.atanh(half_width)
    tested = steps.left[1::2]
    lower, new = _lower_rates(np.log(tested / unit), belief, apart)
    ends = np.stack([
        _rounded(unit * np.exp(lower), step, np.ceil),  # so the pair is never further apart than it may be
        _rounded(unit * np.exp(lower + apart), step, np.floor),
    ])  # fmt: skip
    ends = np.clip(ends, *bounds)
    # Within rounding of a tested rate, trials at that rate count.
    between = steps.won[::2]
    won = np.stack([
        np.minimum.accumulate(between)[np.searchsorted(tested, ends[0] * (1 - 1e-9))],
        np.minimum.accumulate(between[::-1])[::-1][np.searchsorted(tested, ends[1] * (1 + 1e-9))],
    ])  # fmt: skip
    least = _least(trials, ends, -math.log1p(-level) - won)
    logs = np.log(ends / unit)
    right = np.stack([belief.holds(logs[0]), 1 - belief.holds(logs[1])])
    likely = (least * math.log(2) / _growth(right)).sum(axis=0)
    best = int(np.argmin(likely + NEW_RATE * new))
    needs = least[:, best] > 0
    unsure, quickest = (int(np.argmin(np.where(needs, each, math.inf))) for each in (right[:, best], least[:, best]))
    return _Pair(int(least[:, best].sum()), float(likely[best]), *ends[[unsure, quickest], best].tolist())


def _least(trials: Sequence[RateTrial], ends: Floats, needed: Floats) -> Floats:
    """Return how many trials at lower (first row) and upper rates win what is `needed`, where all hold below and fail
    above: `stakes` of answers that are all right."""
    rates, holds, fails = _counted(trials)
    first = np.searchsorted(rates, ends * (1 - 1e-9))
    last = np.searchsorted(rates, ends * (1 + 1e-9)) - 1
    ahead, count = _leads(holds - fails, holds + fails, first, last)
    more = np.arange(MOST_ALIKE)
    lead = np.maximum((ahead * np.array([[1], [-1]]))[..., None] + more, 0)
    stake = lead / ((count + 2 * CAUTION)[..., None] + more)
    return np.where(needed > 0, 1 + np.sum(np.cumsum(np.log1p(stake), axis=-1) < needed[..., None], axis=-1), 0)


def _lower_rates(tested: Floats, belief: _Belief, apart: float) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the logs of lower rates of pairs around the middle of the belief, and which of them are of new pairs."""
    _, middle, _ = belief.quantiles()
    old = np.concatenate([tested, tested - apart])
    old = old[np.abs(old - (middle - apart / 2)) < apart]
    new = np.linspace(middle - apart, middle, 25)
    return np.concatenate([old, new]), np.arange(len(old) + len(new)) >= len(old)


def _growth(right: Floats) -> Floats:
    """Return by how much the log wealth grows in a trial whose bet is right with this probability."""
    p = np.clip(right, 0.5, 1 - LAPSE / 2)
    return np.asarray(np.maximum(0.01, math.log(2) - scipy.special.entr(p) - scipy.special.entr(1 - p)))


def _tested(trials: Sequence[RateTrial], rate: float, half_width: float) -> float:
    """Return the tested rate that is nearly this one, or this one."""
    nearest = min((trial.rate for trial in trials), key=lambda tested: abs(math.log(tested / rate)))
    return nearest if abs(math.log(nearest / rate)) < half_width / 50 else rate
