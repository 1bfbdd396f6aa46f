"""Rounded figures: what intervals and verdicts hold where trials differ by less than the step; known steps."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from mountlab.core.resolution import Step, last_digit
from mountlab.fio import report as fio_report
from mountlab.programs import TOOLS
from mountlab.stats.adjusted import adjust_comparisons
from mountlab.stats.comparisons import Ratios, compare_rows, compare_rows_unpaired
from mountlab.stats.estimates import STATISTICS, Floats, estimate_samples
from mountlab.stats.histograms import bin_of
from repetition import others_long
from rows import every_row

FAMILIES, SAMPLES = 60, 4000
WITH_BINS = Path(__file__).parents[1] / "data" / "fio" / "psync-randread-direct.jsonplus"
TRUE = 20.0


def rounded(rng: np.random.Generator, true: Floats, sd: float, n: int) -> Floats:
    """n trials of each true value, in whole steps."""
    return np.rint(true[:, None] + sd * rng.standard_normal((len(true), n)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "sd"),
    others_long(
        product((compare_rows, compare_rows_unpaired), (0.1, 0.3, 0.5, 1.0)),
        kept=[(compare_rows, 0.1), (compare_rows_unpaired, 0.3)],
    ),
)
def test_identical_cells_of_few_steps_are_rarely_called_different(make: Callable[..., Ratios], sd: float) -> None:
    """39 comparisons at n = 3; without the step 5 to 51 % of such families hold a false verdict. At most 5 % may: of
    60 families 9 are too many by chance in one of 1,000."""
    rng, false = np.random.default_rng(39), 0
    for _ in range(FAMILIES):
        values = rounded(rng, np.full(40, TRUE + rng.uniform(-0.5, 0.5)), sd, 3)
        ratios = make(values[1:], np.broadcast_to(values[0], (39, 3)), steps=(1.0, 1.0))
        false += bool(np.any(adjust_comparisons(ratios, level=0.95, smallest_effect=0.02).p_adjusted < 0.05))
    assert false < 9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "sd"),
    others_long(
        product((3, 5, 10, 30), (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 3.0)),
        kept=[(3, 0.1), (3, 0.5), (5, 0.2), (10, 0.0), (10, 0.3), (30, 0.05), (30, 3.0)],
    ),
)
def test_single_intervals_hold_the_truth_wherever_it_lies_on_the_grid(n: int, sd: float) -> None:
    """94 % are meant; 92.5 % of 4,000 is beyond chance."""
    rng = np.random.default_rng(n)
    ours, theirs = (TRUE + rng.uniform(-0.5, 0.5, SAMPLES) for _ in range(2))
    values, others = rounded(rng, ours, sd, n), rounded(rng, theirs, sd, n)
    mean = estimate_samples(values.ravel(), np.full(SAMPLES, n), level=0.95, steps=np.ones(SAMPLES))
    assert np.mean((mean.low <= ours) & (ours <= mean.high)) > 0.925
    for make in (compare_rows, compare_rows_unpaired):
        low, high = make(values, others, steps=(1.0, 1.0)).bounds(0.95)
        assert np.mean((low <= ours / theirs) & (ours / theirs <= high)) > 0.925


@pytest.mark.parametrize("n", [5, 10, 30])
def test_where_trials_spread_over_bins_no_power_is_lost(n: int) -> None:
    """cv 2 %, fio's widest bins (1.6 %), a true difference of 3 %: within 2 points of what no step would give."""
    rng, width = np.random.default_rng(n), 1 / 64
    logs = 0.02 * rng.standard_normal((2, SAMPLES, n)) + rng.uniform(0, width, (1, SAMPLES, 1))
    logs[0] += 0.03
    ours, theirs = np.exp(np.rint(logs / width) * width)
    plain, known = compare_rows(ours, theirs), compare_rows(ours, theirs, steps=(width, width))
    assert abs(np.mean(known.p() < 0.05) - np.mean(plain.p() < 0.05)) < 0.02


@every_row("name", list(STATISTICS))
def test_more_trials_that_are_rounded_alike_do_not_narrow_an_interval_below_the_step(name: str) -> None:
    found = [
        estimate_samples(np.full(n, 20.0), np.array([n]), level=0.95, statistic=name, steps=np.array([1.0]))
        for n in (10, 1000)
    ]
    assert all(each.low[0] <= 19.5 + 1e-9 and each.high[0] >= 20.5 - 1e-9 for each in found)


def test_a_step_far_below_the_spread_changes_nothing() -> None:
    rng = np.random.default_rng(5)
    ours, theirs = rng.lognormal(3, 0.05, (2, 50, 6))
    plain, known = (compare_rows(ours, theirs, steps=(step, step)) for step in (0.0, 1e-9))
    assert np.array_equal(plain.log_se, known.log_se)


# --- steps that differ from value to value ----------------------------------------------------------------------------


def printed(true: Floats) -> tuple[Floats, Floats]:
    """As dd prints rates: two or three digits ('999 MB/s', '1.0 GB/s'); with what one in the last digit is worth."""
    step = np.where(true < 999.5, 1.0, 100.0)
    return np.rint(true / step) * step, step


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n", "sd"), others_long(product((3, 5, 10), (0.0, 5.0, 20.0, 60.0)), kept=[(3, 5.0), (5, 20.0)])
)
def test_intervals_hold_the_truth_where_values_are_rounded_in_mixed_steps(n: int, sd: float) -> None:
    """Rates around 1 GB/s, some of them rounded to 1 MB/s and some to 100 MB/s: 94 % are meant, and 92.5 % of 4,000 is
    beyond chance. So do ratios of two such cells, alone and in pairs."""
    rng = np.random.default_rng(n)
    sides, steps, truths = [], [], []
    for _ in range(2):
        true = 1000 + rng.uniform(-60, 60, SAMPLES)
        values, step = printed(true[:, None] + sd * rng.standard_normal((SAMPLES, n)))
        sides.append(values)
        steps.append(np.sqrt((step**2).mean(axis=1)))
        truths.append(true)
    mean = estimate_samples(sides[0].ravel(), np.full(SAMPLES, n), level=0.95, steps=steps[0])
    assert np.mean((mean.low <= truths[0]) & (truths[0] <= mean.high)) > 0.925
    for make in (compare_rows, compare_rows_unpaired):
        low, high = make(*sides, steps=(steps[0], steps[1])).bounds(0.95)
        ratio = truths[0] / truths[1]
        assert np.mean((low <= ratio) & (ratio <= high)) > 0.925


# --- which steps are known --------------------------------------------------------------------------------------------


def test_a_percentile_that_is_the_middle_of_a_bin_has_the_width_of_the_bin_as_its_step() -> None:
    """Of a report without histograms; what is interpolated in a bin is known to the nanosecond."""
    report = json.loads(WITH_BINS.read_text())
    entries = fio_report.entries(report)
    section = entries[0]["read"]["clat_ns"]
    rows = {row.metric: row for row in fio_report.measurements(entries)}
    width = bin_of(section["percentile"]["99.000000"])[1]
    assert (rows["read_latency_p99"].step, width) == (0.0, 4096)  # from its histogram
    del section["bins"]
    rows = {row.metric: row for row in fio_report.measurements(entries)}
    assert rows["read_latency_p99"].step == pytest.approx(width * 1e-9)
    assert TOOLS["fio"].steps["read_latency_p99"].absolute == 1e-9


def test_the_coarsest_thing_that_rounds_a_figure_counts() -> None:
    """A rate over 20 ms by a clock of 1 ms is off by 5 %; over a minute by what is printed."""
    rate = Step(absolute=0.1, clock_s=1e-3)
    assert [rate.at(100.0, 0.02), rate.at(100.0, 60.0)] == pytest.approx([5.0, 0.1])
    assert Step(inverse=1e-3).at(0.01, 1.0) == pytest.approx(1e-7)
    assert Step(clock_s=1e-3, absolute=0.5).at(9.0, math.nan) == pytest.approx(0.5)


@every_row(
    ("number", "step"),
    [("1.23", 0.01), ("250", 1.0), ("0,279132", 1e-6), ("7.5e-05", 1e-6), ("0.10", 0.01), ("5.", 1.0), ("1e3", 1e3)],
)
def test_the_step_of_a_printed_number_is_what_one_in_its_last_digit_is_worth(number: str, step: float) -> None:
    assert last_digit(number) == pytest.approx(step)
