"""Changes over runs: what is found, what is not, and how often a false one is, by definition and by simulation."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
from mountlab.stats.changes import Change, Level, family_size, fewest_runs, find_changes, smallest_changes
from repetition import few_then_many
from scipy import stats

SD = 0.02


def levels(values: Sequence[float], *, error: float = 0.01, degrees: int = 4) -> list[Level]:
    return [Level(float(each), error, degrees) for each in values]


def plain(values: Sequence[float]) -> list[Level]:
    """Runs of one trial."""
    return [Level(float(each)) for each in values]


def stepped(runs: int, at: int, by: float, *, seed: int = 1, sd: float = SD) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, sd, runs) + np.where(np.arange(runs) >= at, by, 0.0)


def alike(rng: np.random.Generator, runs: int, correlation: float) -> np.ndarray:
    """A first-order autoregressive series of figures."""
    steps = rng.normal(0, SD, runs)
    for place in range(1, runs):
        steps[place] = correlation * steps[place - 1] + math.sqrt(1 - correlation**2) * steps[place]
    return steps


def changes(values: Sequence[float]) -> list[Change]:
    return find_changes([levels(values)])[0]


# ── what is found ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_change_is_found_where_it_is_with_its_ratio() -> None:
    (found,) = changes(stepped(40, 25, math.log(0.8)))
    assert found.at == found.first == found.last == 25
    assert (found.since, found.until) == (0, 40)
    assert found.low < 0.8 < found.high
    assert found.ratio == pytest.approx(0.8, rel=0.02)
    assert found.p < 1e-6
    assert 25 <= found.reported <= 28


def test_a_change_that_was_mended_again_is_two() -> None:
    found = changes(stepped(45, 15, -0.1) + np.where(np.arange(45) >= 30, 0.1, 0.0))
    assert [each.at for each in found] == [15, 30]
    assert [each.since for each in found] == [0, 15]
    assert found[1].until == 45


def test_a_rise_is_the_mirror_of_a_fall() -> None:
    values = stepped(40, 25, -0.1)
    (down,), (up,) = changes(values), changes(-values)
    assert (up.at, up.reported, up.p) == (down.at, down.reported, pytest.approx(down.p))
    assert up.ratio == pytest.approx(1 / down.ratio)


def test_what_is_always_the_same_has_no_change() -> None:
    assert find_changes([levels([0.3] * 30), levels([0.3] * 30, error=0.0), plain([0.3] * 30)]) == [[], [], []]


def test_figures_without_any_spread_that_move_are_a_change() -> None:
    (found,) = find_changes([plain([0.3] * 20 + [0.4] * 10)])[0]
    assert found.at == 20


def test_runs_of_more_trials_count_for_more() -> None:
    """Ten of the later runs are worth nothing: of two trials that vary by 50 %."""
    rng = np.random.default_rng(3)
    early = [Level(rng.normal(0, 0.01), 0.01, 9) for _ in range(30)]
    late = [Level(-0.06 + rng.normal(0, 0.01), 0.01, 9) for _ in range(10)]
    poor = [Level(rng.normal(0, 0.3), 0.3, 9) for _ in range(10)]
    mixed = [each for pair in zip(late, poor, strict=True) for each in pair]
    assert [each.at for each in find_changes([[*early, *mixed]])[0]] in ([30], [31])


# ── every look ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_the_answer_after_each_run_does_not_depend_on_later_runs() -> None:
    """Else the rate over all looks would not be that of the last look."""
    runs = levels(stepped(60, 30, -0.06, seed=5) + np.where(np.arange(60) >= 45, 0.08, 0))
    whole = [each.reported for each in find_changes([runs])[0]]
    assert len(whole) == 2
    for seen in range(8, 61):
        then = [each.reported for each in find_changes([runs[:seen]])[0]]
        assert then == [each for each in whole if each < seen]


@pytest.mark.parametrize(("series", "most"), few_then_many((20, 2), (200, 10)))
def test_false_alarms_over_all_looks(series: int, most: int) -> None:
    """At most 5 % ever, of 200 series of 120 runs; each series is looked at after every run."""
    rng = np.random.default_rng(8)
    alarms = sum(bool(find_changes([plain(rng.normal(0, SD, 120))])[0]) for _ in range(series))
    assert alarms <= most


@pytest.mark.parametrize(("series", "most"), few_then_many((30, 5), (200, 16)))
def test_two_odd_neighbouring_runs_are_no_change(series: int, most: int) -> None:
    rng, alarms = np.random.default_rng(9), 0
    for _ in range(series):
        values, first = rng.normal(0, SD, 30), rng.integers(0, 29)
        values[first : first + 2] -= 0.5
        alarms += bool(find_changes([plain(values)])[0])
    assert alarms <= most, "5 % and what chance adds to it"


@pytest.mark.parametrize(("series", "most"), few_then_many((20, 4), (150, 15)))
def test_figures_that_correlate(series: int, most: int) -> None:
    rng = np.random.default_rng(10)
    alarms = sum(bool(find_changes([plain(alike(rng, 100, 0.3))])[0]) for _ in range(series))
    assert alarms <= most, "22 to 41 % by a test that holds runs for exchangeable"


@pytest.mark.parametrize("series", few_then_many(8, 50))
def test_a_fall_of_5_percent_is_reported_within_six_runs(series: int) -> None:
    rng, delays = np.random.default_rng(11), []
    for _ in range(series):
        values = rng.normal(0, SD, 90) + np.where(np.arange(90) >= 50, math.log(0.95), 0)
        found = [each for each in find_changes([plain(values)])[0] if each.reported >= 50]
        delays.append(found[0].reported - 49)
    assert np.mean(delays) < 6


@pytest.mark.long
def test_the_size_of_a_small_change_is_right_where_it_is_reported() -> None:
    """A change of 2 sd in 30 runs is reported in about half of the series: in those where it looks large."""
    rng, size, told = np.random.default_rng(12), -2 * SD, []
    for _ in range(120):
        told += find_changes([plain(rng.normal(0, SD, 30) + np.where(np.arange(30) >= 20, size, 0))])[0]
    assert 30 < len(told) < 110
    assert np.mean([math.log(each.ratio) for each in told]) / size == pytest.approx(1, abs=0.15)
    assert np.mean([each.low <= math.exp(size) <= each.high for each in told]) > 0.88


@pytest.mark.long
def test_the_interval_of_a_change_that_is_seldom_reported_holds_its_size() -> None:
    """A change of 1 sd in 30 runs is reported in one series of 25: where place and size look large by chance."""
    rng, size, told = np.random.default_rng(3), -SD, []
    for _ in range(1200):
        found = find_changes([plain(rng.normal(0, SD, 30) + np.where(np.arange(30) >= 20, size, 0))])[0]
        told += [each for each in found if each.reported >= 20]
    held = sum(each.low <= math.exp(size) <= each.high for each in told)
    assert stats.binomtest(held, len(told), 0.95, alternative="less").pvalue > 0.05, held / len(told)


# ── families, and what would be found ────────────────────────────────────────────────────────────────────────────────


def test_a_family_is_corrected_for_its_series() -> None:
    quiet = [levels(stepped(30, 30, 0, seed=seed)) for seed in range(2, 41)]
    (alone,) = changes(stepped(30, 15, 0.15))
    found = find_changes([levels(stepped(30, 15, 0.15)), *quiet])
    assert [each.at for each in found[0]] == [15]
    assert found[0][0].p >= alone.p
    assert found[0][0].reported >= alone.reported
    assert not any(found[1:])
    assert family_size([quiet[0], quiet[1][:7], []]) == 1


def test_too_few_runs_can_show_nothing() -> None:
    assert find_changes([]) == []
    assert find_changes([[], levels([1.0]), levels(range(5))]) == [[], [], []]


@pytest.mark.slow
@pytest.mark.parametrize("family", [1, 20])
def test_the_fewest_runs_can_show_a_huge_change_and_one_less_cannot(family: int) -> None:
    fewest = fewest_runs(family)
    huge = [
        [
            bool(find_changes([plain(stepped(runs, at, 50.0))] + [plain([0.0] * runs)] * (family - 1))[0])
            for at in range(4, runs - 3)
        ]
        for runs in (fewest - 1, fewest + 2)
    ]
    assert not any(huge[0])
    assert any(huge[1])


@pytest.mark.parametrize(("series", "least", "most"), few_then_many((10, 0.4, 1.01), (80, 0.65, 0.95)))
def test_the_smallest_change_is_reported_in_four_of_five_cases(series: int, least: float, most: float) -> None:
    rng = np.random.default_rng(13)
    hits = []
    for _ in range(series):
        values = rng.normal(0, SD, 58)
        visible = dict(smallest_changes(plain(values[:50]), 0, 1))
        values[50:] -= visible[8]
        hits.append(any(each.reported >= 50 for each in find_changes([plain(values)])[0]))
    assert least < np.mean(hits) < most
    sizes = [size for _, size in smallest_changes(plain(values[:50]), 0, 1)]
    assert sizes == sorted(sizes, reverse=True), "more runs show smaller changes"
    assert smallest_changes(plain(values[:50]), 48, 1) == [], "the newest level has two runs"
