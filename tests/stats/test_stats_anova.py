"""The analysis of variance: against statsmodels, by hand, and against what was put into made-up measurements.

NIST's certified sets are in test_stats_nist.py.
"""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mountlab.core.errors import ParameterError
from mountlab.stats.anova import COLUMNS, explained, variance_table
from scipy import stats

Levels = dict[str, list[Any]]


def allowed_misses(trials: int, rate: float) -> int:
    """More misses than this come up once in a thousand times when the rate is as claimed."""
    return int(stats.binom.ppf(0.999, trials, rate))


def crossed(**sizes: int) -> Levels:
    """Every combination of so many levels of each factor, once."""
    rows = list(product(*(range(size) for size in sizes.values())))
    return {name: [row[place] for row in rows] for place, name in enumerate(sizes)}


def split_plot(levels: Levels, rng: np.random.Generator, *, block: float, turn: float, residual: float) -> np.ndarray:
    """Values of a split plot with these standard deviations, from the definition."""
    blocks, systems = (np.array(levels[name]) for name in ("block", "filesystem"))
    return np.asarray(
        rng.normal(0, block, 99)[blocks]
        + rng.normal(0, turn, (99, 9))[blocks, systems]
        + rng.normal(0, residual, len(blocks))
    )


def noise(levels: Levels, seed: int, sd: float = 0.1) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, sd, len(next(iter(levels.values()))))


def by_effect(values: np.ndarray, levels: Levels, **more: Any) -> pd.DataFrame:
    return variance_table(values, levels, **more).set_index("effect")


# --- sums of squares, F and p -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def statsmodels() -> Any:
    pytest.importorskip("statsmodels", reason="statsmodels is not installed")
    from statsmodels.formula.api import ols
    from statsmodels.stats.anova import anova_lm

    return lambda formula, frame: anova_lm(ols(formula, frame).fit(), typ=2)


@pytest.mark.slow
@pytest.mark.parametrize("missing", [0.0, 0.2, 0.4])
@pytest.mark.xdist_group("statsmodels")
def test_type_ii_with_blocks_is_that_of_statsmodels(statsmodels: Any, missing: float) -> None:
    levels = crossed(block=5, fs=3, bs=4)
    values = noise(levels, 1) + 0.3 * np.array(levels["bs"]) + 0.1 * np.array(levels["fs"]) * np.array(levels["bs"])
    kept = np.random.default_rng(2).random(len(values)) >= missing
    levels, values = {name: list(np.array(each)[kept]) for name, each in levels.items()}, values[kept]
    expected = statsmodels("y ~ C(fs) * C(bs) + C(block)", pd.DataFrame({"y": values, **levels}))
    ours = by_effect(values, levels)
    pairs = {"fs": "C(fs)", "bs": "C(bs)", "bs x fs": "C(fs):C(bs)", "block": "C(block)", "residual": "Residual"}
    for name, theirs in pairs.items():
        row = expected.loc[theirs]
        assert (ours.loc[name, "df"], ours.loc[name, "sum_sq"]) == pytest.approx((row["df"], row["sum_sq"]), rel=1e-9)
        assert [ours.loc[name, "f"], ours.loc[name, "p"]] == pytest.approx(
            [row["F"], row["PR(>F)"]], rel=1e-8, nan_ok=True
        )


@pytest.mark.slow
@pytest.mark.xdist_group("statsmodels")
def test_file_systems_are_tested_against_their_turns(statsmodels: Any) -> None:
    """Split plot: the textbook's F is MS(file system) / MS(file system x block)."""
    levels = crossed(block=6, filesystem=3, bs=4)
    values = noise(levels, 3) + 0.2 * np.array(levels["filesystem"])
    formula = "y ~ C(filesystem) * C(bs) + C(block) + C(block):C(filesystem)"
    expected = statsmodels(formula, pd.DataFrame({"y": values, **levels}))
    mean_squares = expected["sum_sq"] / expected["df"]
    ours = by_effect(values, levels)
    whole = mean_squares["C(filesystem)"] / mean_squares["C(block):C(filesystem)"]
    part = mean_squares["C(bs)"] / mean_squares["Residual"]
    assert (ours.loc["filesystem", "f"], ours.loc["bs", "f"]) == pytest.approx((whole, part), rel=1e-9)
    assert (ours.loc["filesystem", "error_df"], ours.loc["bs", "error_df"]) == (10, 45)
    assert ours.loc["filesystem", "p"] == pytest.approx(stats.f.sf(whole, 2, 10), rel=1e-9)


def test_one_way_is_that_of_scipy() -> None:
    groups = [[6, 8, 4, 5, 3, 4], [8, 12, 9, 11, 6, 8], [13, 9, 11, 8, 7, 12]]
    values, levels = np.array(groups, dtype=float).ravel(), {"group": [name for name in "abc" for _ in range(6)]}
    ours, expected = by_effect(values, levels), stats.f_oneway(*groups)
    assert (ours.loc["group", "f"], ours.loc["group", "p"]) == pytest.approx(tuple(expected), rel=1e-12)
    assert ours.loc["group", "f"] == pytest.approx(9.3, abs=0.05), "a worked example that is printed with F = 9.3"
    assert (ours.loc["group", "sum_sq"], ours.loc["residual", "sum_sq"]) == pytest.approx((84, 68))


def test_sums_of_squares_add_up_where_nothing_is_missing() -> None:
    levels = crossed(block=4, filesystem=3, rw=2, bs=3)
    values = noise(levels, 4)
    ours = by_effect(values, levels)
    assert ours["sum_sq"].sum() + 0 == pytest.approx(float(np.sum((values - values.mean()) ** 2)), rel=1e-12)
    assert ours["df"].sum() == len(values) - 1
    assert list(ours.index) == [
        "filesystem",
        "rw",
        "bs",
        "filesystem x rw",
        "filesystem x bs",
        "bs x rw",
        "block",
        "turn of a file system",
        "residual",
    ]


@settings(deadline=None, max_examples=20)
@given(st.floats(1e-3, 1e3), st.floats(-1e3, 1e3), st.randoms(use_true_random=False))
@pytest.mark.slow
def test_neither_a_unit_nor_the_order_of_trials_changes_a_share(factor: float, shift: float, random: Any) -> None:
    levels = crossed(block=3, filesystem=2, bs=3)
    values = noise(levels, 5) + np.array(levels["bs"])
    order = list(range(len(values)))
    random.shuffle(order)
    ours = by_effect(values, levels)
    other = by_effect(factor * values[order] + shift, {name: [each[i] for i in order] for name, each in levels.items()})
    assert list(other.loc[ours.index, "share"]) == pytest.approx(list(ours["share"]), rel=1e-6, abs=1e-9)
    assert list(other.loc[ours.index, "p"]) == pytest.approx(list(ours["p"]), rel=1e-5, abs=1e-9, nan_ok=True)


# --- shares -----------------------------------------------------------------------------------------------------------


def test_shares_are_omega_squared_and_add_up_to_all() -> None:
    levels = crossed(block=5, fs=3, bs=4)
    values = noise(levels, 6) + 0.3 * np.array(levels["bs"]) + 0.2 * np.array(levels["fs"]) * np.array(levels["bs"])
    levels.pop("block")
    ours = by_effect(values, levels)
    error = ours.loc["residual", "sum_sq"] / ours.loc["residual", "df"]
    total = float(np.sum((values - values.mean()) ** 2))
    for name in ("fs", "bs"):
        omega = (ours.loc[name, "sum_sq"] - ours.loc[name, "df"] * error) / (total + error)
        assert ours.loc[name, "share"] == pytest.approx(omega, rel=1e-12)
        assert ours.loc[name, "low"] < ours.loc[name, "share"] < ours.loc[name, "high"]
    assert ours["share"].sum() == pytest.approx(1)


@pytest.mark.slow
def test_what_was_put_in_is_found() -> None:
    """Variances of 0.81, 0.12, 0.04 and a rest of 0.03: 'block size explains 81 %, file system 12 %, both 4 %'."""
    levels = crossed(block=40, filesystem=2, bs=2)
    signs = {name: 2 * np.array(levels[name]) - 1 for name in ("filesystem", "bs")}
    made = 0.9 * signs["bs"] + math.sqrt(0.12) * signs["filesystem"] + 0.2 * signs["bs"] * signs["filesystem"]
    ours = by_effect(made + noise(levels, 7, math.sqrt(0.03)), levels)
    assert ours.loc["bs", "share"] == pytest.approx(0.81, abs=0.02)
    assert ours.loc["filesystem", "share"] == pytest.approx(0.12, abs=0.02)
    assert ours.loc["filesystem x bs", "share"] == pytest.approx(0.04, abs=0.01)
    assert ours.loc["residual", "share"] == pytest.approx(0.03, abs=0.01)


NONE, OF_FEW, OF_MANY = [(0.0, 4)], [(0.5, 4), (1.0, 4), (3.0, 4)], [(1.0, 12)]
"""Distances between three groups in standard deviations, and how many values each has."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("effects", "times"),
    [
        pytest.param(NONE + OF_FEW + OF_MANY, 20, id="small and large together"),
        *(pytest.param([each], 200, marks=pytest.mark.long) for each in NONE + OF_FEW + OF_MANY),
    ],
)
def test_the_interval_of_a_share_covers_the_true_share_95_times_in_100(
    effects: list[tuple[float, int]], times: int
) -> None:
    """Of three groups: the share of the variance between them in all variance, as the noncentrality means it. Of 100
    intervals 12 may miss, of 200 20: more do in one of 1,000 cases where 95 % are covered."""
    missed = 0
    for effect, n in effects:
        offsets, rng = effect * np.array([-1.0, 0.0, 1.0]), np.random.default_rng(n)
        groups = [name for name in range(3) for _ in range(n)]
        size = float(np.sum(n * offsets**2))
        truth = size / (size + 3 * n)
        for _ in range(times):
            row = variance_table(rng.normal(size=3 * n) + np.repeat(offsets, n), {"group": groups}).iloc[0]
            missed += not row["low"] - 1e-12 <= truth <= row["high"] + 1e-12
    assert missed <= allowed_misses(times * len(effects), 0.05)


def test_the_interval_is_the_published_one() -> None:
    """Smithson (2003): F(4, 50) = 4.0 has a noncentrality of 1.9 to 32.2 (95 %), hence partial shares 0.034 to 0.369.

    Computed here by bisection on another implementation of the noncentral F: the mixture of beta distributions.
    """

    def chance(f: float, df: int, error_df: int, size: float) -> float:
        j = np.arange(400)
        x = df * f / (df * f + error_df)
        return float(np.sum(stats.poisson.pmf(j, size / 2) * stats.beta.cdf(x, df / 2 + j, error_df / 2)))

    groups = [name for name in range(5) for _ in range(11)]
    values = noise({"g": groups}, 8, 1.0)
    means = np.array([values[np.array(groups) == name].mean() for name in range(5)])
    values = values - means[groups]  # now only what we put in lies between the groups
    within = float(np.sum(values**2)) / 50
    values = values + np.sqrt(4.0 * 4 * within / 11 / 10) * np.array([-2.0, -1.0, 0.0, 1.0, 2.0])[groups]
    row = variance_table(values, {"g": groups}).iloc[0]
    assert row["f"] == pytest.approx(4.0, rel=1e-9)
    sizes = [bound / (1 - bound) * (55 - 0) for bound in (row["low"], row["high"])]
    assert chance(4.0, 4, 50, sizes[0]) == pytest.approx(0.975, abs=0.003)
    assert chance(4.0, 4, 50, sizes[1]) == pytest.approx(0.025, abs=0.003)


def test_states_are_tested_against_the_turns_that_each_state_has() -> None:
    """By hand: the means of the turns, two file systems in two states in each of six blocks, are a two-way table in
    blocks; what is left of it is the error of file systems, of states, and of their interaction."""
    levels = crossed(block=6, filesystem=2, state=2, bs=3)
    rng = np.random.default_rng(11)
    values = rng.normal(0, 0.1, (6, 2, 2))[..., None] + rng.normal(0, 0.02, (6, 2, 2, 3)) + [0.0, 0.3, 0.5]
    turns = values.mean(axis=3)
    effect = {
        "filesystem": turns.mean(axis=(0, 2)) - turns.mean(),
        "state": turns.mean(axis=(0, 1)) - turns.mean(),
    }
    both = turns.mean(axis=0) - effect["filesystem"][:, None] - effect["state"] - turns.mean()
    left = turns - turns.mean(axis=0) - turns.mean(axis=(1, 2), keepdims=True) + turns.mean()
    error = 3 * (left**2).sum() / 15
    table = by_effect(values.ravel(), levels)
    assert table.loc["turn of a file system", "df"] == 15
    for name, squares in (*((name, 36 / 2 * (own**2).sum()) for name, own in effect.items()),):
        assert table.loc[name, "sum_sq"] == pytest.approx(2 * squares)
        assert table.loc[name, "f"] == pytest.approx(2 * squares / error)
    assert table.loc["filesystem x state", "f"] == pytest.approx(18 * (both**2).sum() / error)
    assert table.loc["bs", "error_df"] == table.loc["residual", "df"], "what is inside of turns has the residual"


def test_a_single_file_system_has_a_turn_in_each_state() -> None:
    table = by_effect(noise(levels := crossed(block=5, state=2, bs=2), 12), levels)
    turns = table.loc["turn of a file system"]
    assert turns["df"] == 4
    assert table.loc["state", "f"] == pytest.approx(table.loc["state", "sum_sq"] / (turns["sum_sq"] / 4))


@pytest.mark.long
def test_identical_file_systems_are_found_to_differ_in_5_percent_of_runs_though_turns_differ() -> None:
    """Taking the residual for the error of file systems would raise the alarm in most runs."""
    levels, rng, alarms, careless = crossed(block=5, filesystem=3, bs=4), np.random.default_rng(9), 0, 0
    turns = np.array(levels["block"]) * 3 + np.array(levels["filesystem"])
    for _ in range(100):
        values = rng.normal(0, 0.02, len(turns)) + rng.normal(0, 0.1, 15)[turns]
        table = by_effect(values, levels)
        alarms += table.loc["filesystem", "p"] < 0.05
        mean_square = table.loc["filesystem", "sum_sq"] / 2
        error = table.loc["residual", "sum_sq"] / table.loc["residual", "df"]
        careless += stats.f.sf(mean_square / error, 2, table.loc["residual", "df"]) < 0.05
    assert alarms <= allowed_misses(100, 0.05)
    assert careless > 50


def test_the_mean_squares_of_a_balanced_split_plot_give_its_variances() -> None:
    """By hand from the expected mean squares: V(e) + c V(T) + a c V(B), V(e) + c V(T), V(e); a fixed effect's excess
    over its own error, by the number of values."""
    levels, a, c = crossed(block=6, filesystem=3, bs=4), 3, 4
    made = split_plot(levels, np.random.default_rng(20), block=0.3, turn=0.2, residual=0.1)
    ours = by_effect(made + 0.2 * np.array(levels["bs"]) + 0.3 * np.array(levels["filesystem"]), levels)
    mean = ours["sum_sq"] / ours["df"]
    turn, rest = mean["turn of a file system"], mean["residual"]
    parts = {
        "block": (mean["block"] - turn) / (a * c),
        "turn of a file system": (turn - rest) / c,
        "residual": rest,
        "filesystem": 2 * (mean["filesystem"] - turn) / 72,
        "bs": 3 * (mean["bs"] - rest) / 72,
        "filesystem x bs": max(6 * (mean["filesystem x bs"] - rest) / 72, 0),
    }
    assert all(each >= 0 for each in parts.values())
    whole = sum(parts.values())
    assert {name: ours.loc[name, "share"] for name in parts} == pytest.approx(
        {name: each / whole for name, each in parts.items()}
    )
    assert ours.loc["block", "f"] == pytest.approx(mean["block"] / turn)
    assert ours.loc["block", "error_df"] == ours.loc["filesystem", "error_df"] == 10
    assert ours["share"].sum() == pytest.approx(1)


@pytest.mark.long
@pytest.mark.parametrize("missing", [pytest.param(0.0, marks=pytest.mark.long), 0.15])
def test_blocks_that_do_nothing_are_not_given_what_turns_do(missing: float) -> None:
    """Turns of 5 %, trials of 2 %: 86 % of the variance lies between turns, none between blocks."""
    rng, alarms, shares, held, runs = np.random.default_rng(21), 0, [], np.zeros(2), 100
    for _ in range(runs):
        levels = crossed(block=6, filesystem=3, bs=4)
        kept = rng.random(72) >= missing
        levels = {name: list(np.array(each)[kept]) for name, each in levels.items()}
        ours = by_effect(split_plot(levels, rng, block=0, turn=0.05, residual=0.02), levels)
        block, turn = ours.loc["block"], ours.loc["turn of a file system"]
        alarms += block["p"] < 0.05
        shares.append((block["share"], turn["share"]))
        held += [block["low"] <= 0 <= block["high"], turn["low"] <= 25 / 29 <= turn["high"]]
    assert alarms <= allowed_misses(runs, 0.05)
    assert np.median(shares, axis=0)[0] < 0.05
    assert np.median(shares, axis=0)[1] > 0.7
    assert np.all(runs - held <= allowed_misses(runs, 0.09))


# --- degenerate input -------------------------------------------------------------------------------------------------


def test_where_nothing_is_left_for_the_residual_there_are_no_rows() -> None:
    for levels in (crossed(block=1, fs=2, bs=3), crossed(fs=2, bs=2), {"fs": [1]}, {"fs": [1, 1, 1]}):
        table = variance_table(noise(levels, 10), levels)
        assert list(table.columns) == list(COLUMNS)
        assert len(table) == 0


def test_constant_values_have_no_share_to_explain() -> None:
    table = by_effect(np.full(12, 3.0), crossed(block=3, fs=2, bs=2))
    assert table.loc[["fs", "bs", "block"], ["f", "p", "share"]].isna().all(axis=None)


@pytest.mark.parametrize("noise_sd", [1e-5, 1e-6])
def test_next_to_no_noise_leaves_next_to_no_doubt(noise_sd: float) -> None:
    """Where F is vast its interval is computed in another way; the two meet."""
    levels = crossed(block=3, fs=2, bs=2)
    table = by_effect(np.array(levels["fs"]) + noise(levels, 13, noise_sd), levels)
    low, share, high = table.loc["fs", ["low", "share", "high"]]
    assert 1 - 1e3 * noise_sd**2 < low < share < high < 1
    assert (1 - low) / (1 - high) == pytest.approx(stats.chi2.isf(0.025, 6) / stats.chi2.isf(0.975, 6), rel=0.2)


def test_without_any_noise_what_there_is_explains_all() -> None:
    levels = crossed(block=3, fs=2, bs=2)
    table = by_effect(np.array(levels["fs"], dtype=float), levels)
    assert table.loc["fs", "share"] == pytest.approx(1)
    assert (table.loc["fs", "p"], table.loc["fs", "f"]) == (0, math.inf)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_values_that_are_not_finite_are_refused(bad: float) -> None:
    with pytest.raises(ValueError, match="an analysis of variance needs finite values"):
        variance_table(np.array([1.0, bad, 2.0]), {"fs": ["a", "a", "b"]})


def test_a_level_that_is_none_is_refused() -> None:
    for level in (95, 0.9999999999999999):
        with pytest.raises(ParameterError, match="not a level"):
            variance_table(np.array([1.0, 2.0]), {"fs": ["a", "b"]}, level=level)


# --- from measurements ------------------------------------------------------------------------------------------------


def measurements(seed: int = 11) -> pd.DataFrame:
    """A sweep of two file systems and four block sizes, 6 blocks and one of warm-up; and another workload."""
    rng, rows = np.random.default_rng(seed), []
    for block, fs, bs in product(range(7), ("ext4", "xfs"), ("4KiB", "16KiB", "64KiB", "1MiB")):
        size = {"4KiB": 1.0, "16KiB": 2.0, "64KiB": 4.0, "1MiB": 8.0}[bs]
        value = 1e8 * size * (1.3 if fs == "xfs" else 1.0) * rng.lognormal(0, 0.05)
        common = {"block": block, "warmup": block == 0, "filesystem": fs, "factors": {"bs": bs}, "label": ""}
        rows += [
            {**common, "workload": "fio", "metric": "read_bandwidth", "value": value},
            {**common, "workload": "fio", "metric": "major_faults", "value": 0.0},
            {**common, "workload": "dd", "metric": "read_bandwidth", "value": 1.0},
        ]
    return pd.DataFrame(rows)


def test_one_metric_of_one_workload_is_explained_on_logarithms() -> None:
    found = explained(measurements(), workload="fio", metric="read_bandwidth").set_index("effect")
    assert list(found.index) == ["filesystem", "bs", "filesystem x bs", "block", "turn of a file system", "residual"]
    assert found.loc["bs", "share"] > 0.9
    assert 0.01 < found.loc["filesystem", "share"] < 0.1
    assert found.loc["filesystem x bs", "p"] > 0.01, "on logarithms two factors that multiply do not interact"
    assert found["df"].sum() == 6 * 2 * 4 - 1, "warm-up trials do not count"


def test_a_unit_does_not_change_what_explains_a_metric() -> None:
    frame = measurements()
    ours = explained(frame, workload="fio", metric="read_bandwidth")
    other = explained(frame.assign(value=frame["value"] * 1024), workload="fio", metric="read_bandwidth")
    assert list(other["share"]) == pytest.approx(list(ours["share"]), rel=1e-9)


def test_a_factor_with_one_level_explains_nothing_and_has_no_row() -> None:
    frame = measurements()
    found = explained(frame[frame["filesystem"] == "xfs"], workload="fio", metric="read_bandwidth")
    assert list(found["effect"]) == ["bs", "block", "residual"]


@pytest.mark.parametrize(
    ("workload", "metric"), [("fio", "major_faults"), ("fio", "elapsed"), ("nothing", "read_bandwidth")]
)
def test_what_has_no_logarithm_or_no_figures_gives_no_rows(workload: str, metric: str) -> None:
    found = explained(measurements(), workload=workload, metric=metric)
    assert (list(found.columns), len(found)) == (list(COLUMNS), 0)


@pytest.mark.long
def test_a_large_sweep_takes_a_second_or_so() -> None:
    """6,400 trials over 8 file systems, 8 and 10 levels, 10 blocks: by singular values of the design it took 8 s."""
    levels = crossed(block=10, filesystem=8, bs=8, rw=10)
    table = variance_table(noise(levels, 12), levels)
    assert table["df"].sum() == 6399


def test_where_effects_overlap_too_far_there_are_no_shares() -> None:
    """One factor at a time: the baseline and one other level of each of two factors."""
    rng = np.random.default_rng(1)
    cells = [("a", "a"), ("b", "a"), ("a", "b")]
    levels = [(x, y, block) for block in range(6) for x, y in cells]
    values = np.array([(x == "b") + (y == "b") + rng.normal(0, 0.01) for x, y, _ in levels])
    table = variance_table(
        values, {"block": [b for *_, b in levels], "x": [x for x, *_ in levels], "y": [y for _, y, _ in levels]}
    )
    assert list(table["effect"]) == ["x", "y", "block", "residual"], "their interaction cannot be told from them"
    assert table["share"].isna().all()
    assert (table.set_index("effect").loc[["x", "y"], "p"] < 1e-6).all()


def test_of_constant_figures_there_is_nothing_to_share_out() -> None:
    table = variance_table(np.zeros(8), {"block": [1, 1, 2, 2, 3, 3, 4, 4], "x": ["a", "b"] * 4})
    assert table["share"].isna().all()
