"""The ratio of two runs with what runs differ by: by theory where one part varies, by simulation, by its definition."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from mountlab.stats.comparisons import compare_rows_unpaired
from mountlab.stats.margin import AgainstMargin, against_margin
from mountlab.stats.run_spread import RatiosOfRuns, RunSpread, compare_rows_of_runs
from rows import every_row
from scipy import stats

Floats = np.ndarray[tuple[int, ...], np.dtype[np.float64]]


def spread_of(sd: float, rows: int, degrees: float = math.inf, covered: float = 0.0) -> RunSpread:
    return RunSpread(*(np.full(rows, value) for value in (sd**2, degrees, covered)))


def of_runs(change: Floats, baseline: Floats, side: RunSpread) -> RatiosOfRuns:
    found = compare_rows_of_runs(change, baseline, (side, side), steps=(0.0, 0.0))
    assert isinstance(found, RatiosOfRuns)
    return found


# ── bounds ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@every_row(("degrees", "tail"), list(itertools.product((math.inf, 4.0, 11.0), (0.05, 0.001))))
def test_where_trials_hardly_vary_the_bound_is_that_of_the_runs(degrees: float, tail: float) -> None:
    """Normal where the spread is assumed, Student's t where it is measured."""
    change, baseline = np.array([[1.0, 1.0 + 1e-9]]), np.array([[1.0, 1.0 - 1e-9]])
    found = of_runs(change, baseline, spread_of(0.03, 1, degrees))
    quantile = stats.norm.isf(tail) if math.isinf(degrees) else stats.t.isf(tail, degrees)
    assert found.log_high(np.array([tail]))[0] == pytest.approx(quantile * 0.03 * math.sqrt(2), rel=1e-6)


def test_the_bound_and_its_p_value_belong_together() -> None:
    rng = np.random.default_rng(1)
    found = of_runs(1.1 * rng.lognormal(0, 0.03, (6, 5)), rng.lognormal(0, 0.05, (6, 8)), spread_of(0.02, 6, 9.0, 0.1))
    for p, bound in ((found.p_above(), found.log_low), (found.p_below(), found.log_high)):
        tails, below = np.minimum(p, 1 - p), p < 0.5
        assert bound(tails)[below] == pytest.approx(np.zeros(below.sum()), abs=1e-9)
    assert found.p_above() + found.p_below() == pytest.approx(np.ones(6))


def test_runs_that_do_not_differ_have_the_interval_of_their_trials() -> None:
    change, baseline = np.random.default_rng(2).lognormal(0, 0.05, (2, 4, 6))
    side = RunSpread.assumed(0.0, 4)
    found = compare_rows_of_runs(change, baseline, (side, side), steps=(0.0, 0.0))
    assert np.array(found.bounds(0.95)) == pytest.approx(np.array(compare_rows_unpaired(change, baseline).bounds(0.95)))


@every_row(
    ("trials", "run_sd", "earlier"),
    list(itertools.product((3, 5, 20), (0.0, 0.01, 0.03), (5, 20))),
)
def test_earlier_runs_make_a_bound_that_holds(trials: int, run_sd: float, earlier: int) -> None:
    """4,000 ratios of two runs that are alike, each beside earlier runs of its own of 5 trials: a bound misses as often
    as it says, or less, but for chance."""
    rng, cases = np.random.default_rng([3, trials, earlier]), 4000

    def runs(count: int, n: int) -> Floats:
        return np.exp(rng.normal(0, run_sd, (cases, count, 1)) + rng.normal(0, 0.03, (cases, count, n)))

    before = np.log(runs(earlier, 5)).mean(axis=2)
    column = np.ones(cases)
    side = RunSpread(before.var(axis=1, ddof=1), (earlier - 1) * column, column / 5)
    found = of_runs(runs(1, trials)[:, 0], runs(1, trials)[:, 0], side)
    for tail in (0.05, 0.005):
        missed = int((found.log_low(tail * column) > 0).sum())
        assert stats.binomtest(missed, cases, tail, alternative="greater").pvalue > 1e-4


def test_earlier_runs_of_as_many_trials_make_an_exact_bound() -> None:
    """Then the spread of their means is all that varies: 5 % are missed, neither more nor fewer, whatever the parts."""
    rng, cases = np.random.default_rng(4), 20000
    runs = np.exp(rng.normal(0, 0.02, (cases, 8, 1)) + rng.normal(0, 0.03, (cases, 8, 5)))
    before, column = np.log(runs[:, 2:]).mean(axis=2), np.ones(cases)
    side = RunSpread(before.var(axis=1, ddof=1), 5 * column, column / 5)
    missed = int((of_runs(runs[:, 0], runs[:, 1], side).log_low(0.05 * column) > 0).sum())
    assert stats.binomtest(missed, cases, 0.05).pvalue > 1e-3


# ── the break-even ───────────────────────────────────────────────────────────────────────────────────────────────────


def judged(change: Floats, baseline: Floats, sd: float) -> AgainstMargin:
    side = RunSpread.assumed(sd, len(change))
    better = np.zeros(len(change), dtype=bool)
    return against_margin(change, baseline, more_is_better=better, margin=0.05, spreads=(side, side))


@pytest.mark.slow
@every_row("seed", list(range(6)))
def test_below_the_break_even_a_figure_is_decided_and_above_it_is_not(seed: int) -> None:
    """Its definition, of figures that are judged together: any other sd would be wrong for one of two gates."""
    rng = np.random.default_rng([5, seed])
    truth = np.exp(rng.normal(0.02 * seed, 0.15, (7, 1)))
    change, baseline = truth * rng.lognormal(0, 0.02, (7, 10)), rng.lognormal(0, 0.02, (7, 10))
    unless = judged(change, baseline, 0.05).unless
    alike = judged(change, baseline, 0.0)
    assert (np.isnan(unless) == ~(alike.fails | alike.passes)).all()
    for place in np.flatnonzero(~np.isnan(unless)):
        inside, beyond = (judged(change, baseline, float(unless[place]) * times) for times in (1 - 1e-6, 1 + 1e-6))
        assert inside.fails[place] == (truth_is_worse := bool(inside.worse[place] > 1.05))
        assert inside.passes[place] == (not truth_is_worse)
        assert not (beyond.fails | beyond.passes)[place]


# ── errors and power, where runs differ ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
@every_row(("run_sd", "blocks"), list(itertools.product((0.03, 0.05), (10, 40))))
def test_one_run_beside_one_seldom_fails_by_mistake(run_sd: float, blocks: int) -> None:
    """Trap: blocks as the unit. 10 figures without a change in runs that differ by 3 or 5 % failed in 12.7 to 80 % of
    gates, in more with more blocks. Of 300 gates at most 5 % fail, but for chance."""
    rng, cases, failed = np.random.default_rng([6, blocks]), 300, 0
    for _ in range(cases):
        change, baseline = rng.lognormal(0, run_sd, (2, 10, 1)) * rng.lognormal(0, 0.02, (2, 10, blocks))
        failed += bool(judged(change, baseline, 0.05).fails.any())
    assert failed <= stats.binom.isf(1e-3, cases, 0.05)


@pytest.mark.slow
def test_three_runs_a_side_find_twice_the_margin_where_it_is_three_times_their_spread() -> None:
    """In four of five cases; and where nothing changed they pass as often."""
    rng, cases, better = np.random.default_rng(7), 600, np.zeros(1, dtype=bool)
    told = np.zeros(2)
    for _ in range(cases):
        change, baseline = rng.lognormal(0, 0.05 / 3, (2, 1, 3))
        for place, times in enumerate((1.05**2, 1.0)):
            found = against_margin(times * change, baseline, more_is_better=better, margin=0.05, unit="run")
            told[place] += bool(found.passes[0] if place else found.fails[0])
    assert (told / cases > 0.8).all(), told / cases
