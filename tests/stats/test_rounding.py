"""Rounded figures: what intervals and verdicts hold where trials differ by less than the step; known steps."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from mountlab.core.metrics import METRICS
from mountlab.stats.adjusted import family
from mountlab.stats.comparisons import Ratios, compare_rows, compare_rows_unpaired
from mountlab.stats.estimates import STATISTICS, Floats, estimate_samples
from mountlab.stats.histograms import bin_of
from mountlab.tools import TOOLS, fio_report
from mountlab.tools.resolution import Step, printed_step
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
        false += bool(np.any(family(ratios, level=0.95, smallest_effect=0.02).p_adjusted < 0.05))
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


# --- which steps are known --------------------------------------------------------------------------------------------


@every_row("tool", [each for each in TOOLS.values() if each.name != "command"], ids=lambda each: each.name)
def test_every_rate_and_time_of_a_tool_has_a_step(tool: object) -> None:
    """But for those that are computed from several printed figures: then no two trials are alike by rounding alone."""
    computed = {"filebench": {"bytes"}, "fs_mark": {"elapsed"}}.get(tool.name, set())  # type: ignore[attr-defined]
    assert set(tool.gives) - set(tool.steps) == computed  # type: ignore[attr-defined]
    assert set(tool.steps) <= set(METRICS)  # type: ignore[attr-defined]


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
    assert list(rate.at(np.array([100.0, 100.0]), np.array([0.02, 60.0]))) == pytest.approx([5.0, 0.1])
    assert Step(digits=3).at(np.array([751e6]), np.array([1.0])) == pytest.approx(1e6)
    assert Step(inverse=1e-3).at(np.array([0.01]), np.array([1.0])) == pytest.approx(1e-7)
    assert Step(clock_s=1e-3, absolute=0.5).at(np.array([9.0]), np.array([math.nan])) == pytest.approx(0.5)


@every_row(
    ("values", "unit", "step"),
    [
        ([20e-6, 21e-6, 19e-6], "s", 1e-6),
        ([21.3, 20.1], "1/s", 0.1),
        ([21.3 * 2**20, 20.1 * 2**20], "B/s", 0.1 * 2**20),
        ([1000.0, 1000.0], "1", 1.0),
        ([1 / 3, 2 / 7], "s", 0.0),
        ([0.0, 0.0], "s", 0.0),
        ([], "s", 0.0),
    ],
)
def test_the_digits_that_figures_show_are_their_step(values: list[float], unit: str, step: float) -> None:
    assert printed_step(np.array(values), unit) == pytest.approx(step)
