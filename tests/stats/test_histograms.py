"""Histograms: percentiles from fio's bins against numpy on the latencies that they count, and what they cover."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mountlab.core.errors import ParseError
from mountlab.core.units import NS_PER_S
from mountlab.fio.report import histograms_of
from mountlab.stats.estimates import estimate_samples
from mountlab.stats.histograms import (
    COARSE,
    FEWEST_BEYOND,
    Histogram,
    bin_of,
    count,
    distribution,
    enough,
    ios_needed,
    merge,
    middle,
    percentile_ns,
    percentile_with_step,
    read_bins,
)
from repetition import others_long
from rows import every_row

DATA = Path(__file__).parents[1] / "data" / "fio"
RECORDED = ["psync-randread-direct.jsonplus", "psync-randwrite-fsync1.jsonplus", "jobs.jsonplus", "clones.jsonplus"]
latencies = st.lists(st.integers(0, 10**12), min_size=1, max_size=200)


def sections(name: str) -> list[dict[str, Any]]:
    jobs = json.loads((DATA / name).read_text())["jobs"]
    found = [
        job[side].get(key, {})
        for job in jobs
        for side in ("read", "write", "sync")
        for key in ("slat_ns", "clat_ns", "lat_ns")
    ]
    return [section for section in found if section.get("bins")]


def within_its_bin(found: float, ns: int) -> bool:
    """Whether a percentile lies in the bin of a latency, which in whole nanoseconds reaches half of one further."""
    first, width = bin_of(ns)
    return first - 0.5 <= found <= first + width - 0.5


@every_row("name", RECORDED)
def test_every_percentile_lies_in_the_bin_that_fio_computed(name: str) -> None:
    found = sections(name)
    assert found
    for section in found:
        own = read_bins(section, where=name)
        assert own is not None
        assert own.total == section["N"]
        for key, theirs in section["percentile"].items():
            assert within_its_bin(percentile_ns(own, float(key)), theirs)


@every_row("name", RECORDED)
def test_the_bins_of_a_recording_are_those_of_our_scale_and_hold_its_extremes(name: str) -> None:
    for section in sections(name):
        keys = [int(key) for key in section["bins"]]
        assert all(middle(key) == key for key in keys)
        assert middle(section["min"]) == min(keys)
        assert middle(section["max"]) == max(keys)


@given(st.integers(0, 2**62))
def test_a_bin_holds_its_latency_and_is_narrow(ns: int) -> None:
    first, width = bin_of(ns)
    assert first <= ns < first + width
    assert width <= max(1, ns / 64)
    assert bin_of(middle(ns)) == (first, width)


@given(st.integers(0, 10**9))
def test_bins_lie_beside_each_other_without_a_gap(ns: int) -> None:
    first, width = bin_of(ns)
    assert bin_of(first + width)[0] == first + width


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(latencies, min_size=1, max_size=5), st.floats(0, 100))
def test_merged_percentiles_are_those_of_the_pooled_latencies_within_one_bin(
    trials: list[list[int]], percent: float
) -> None:
    """Trap: percentiles of trials cannot be averaged."""
    merged = merge(count(trial) for trial in trials)
    pooled = [ns for trial in trials for ns in trial]
    assert merged == count(pooled)
    exact = int(np.percentile(pooled, percent, method="inverted_cdf"))
    # numpy rounds percent * n in floating point: at a rank's very edge it may take the neighbour.
    others = {int(np.percentile(pooled, min(100, max(0, percent + e)), method="inverted_cdf")) for e in (-1e-9, 1e-9)}
    assert any(within_its_bin(percentile_ns(merged, percent), ns) for ns in (exact, *others))


@pytest.mark.parametrize("seed", [1, 2])
def test_two_simulated_trials_merge_to_the_percentiles_that_numpy_finds(seed: int) -> None:
    random = np.random.default_rng(seed)
    fast, slow = random.lognormal(11, 0.4, 20_000), random.lognormal(13, 1.2, 5_000)
    merged = merge([count(fast.astype(np.int64).tolist()), count(slow.astype(np.int64).tolist())])
    pooled = np.concatenate([fast, slow]).astype(np.int64)
    for percent in (50, 95, 99, 99.9):
        below, above = (int(np.percentile(pooled, percent, method=each)) for each in ("lower", "higher"))
        assert below - bin_of(below)[1] / 2 <= percentile_ns(merged, percent) <= above + bin_of(above)[1] / 2


@given(st.lists(latencies, max_size=4))
def test_merging_loses_no_io_and_does_not_care_about_order(trials: list[list[int]]) -> None:
    parts = [count(trial) for trial in trials]
    assert merge(parts).total == sum(map(len, trials))
    assert merge(parts) == merge(reversed(parts))
    assert list(merge(parts).counts) == sorted(merge(parts).counts)


@given(latencies)
def test_the_distribution_rises_to_all_and_is_exact_at_the_edges(values: list[int]) -> None:
    points = distribution(count(values))
    assert points[-1][1] == 1
    for seconds, share in points:
        assert share == np.mean(np.array(values) < round(seconds * 1e9))


def test_a_percentile_is_given_in_seconds() -> None:
    assert percentile_ns(Histogram({60160: 3}), 50) / NS_PER_S == pytest.approx(60.160e-6, abs=0.6e-9)


# --- inside of a bin --------------------------------------------------------------------------------------------------


@pytest.mark.slow
@settings(deadline=None)
@given(latencies, st.floats(0, 100), st.floats(0, 100))
def test_percentiles_rise_with_the_percentage_and_stay_between_the_extremes(
    values: list[int], one: float, other: float
) -> None:
    found = [percentile_ns(count(values), each) for each in sorted([one, other])]
    assert found[0] <= found[1] * (1 + 1e-12)
    assert min(values) * (1 - 1e-12) <= found[0]
    assert found[1] <= max(values) * (1 + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spread", "percent", "trials"),
    others_long(
        [(0.02, 50.0, 10), (0.3, 99.0, 10), *product((0.02, 0.3), (50.0, 99.0), [40])],
        kept={(0.02, 50.0, 10), (0.3, 99.0, 10)},
    ),
)
def test_a_percentile_is_that_of_the_latencies_to_a_small_part_of_a_bin(
    spread: float, percent: float, trials: int
) -> None:
    """The middle of a bin is off by a quarter of its width on average."""
    random, errors = np.random.default_rng(7), []
    for scale in random.uniform(65_536, 131_072, trials):
        values = (scale * random.lognormal(0, spread, 20_000)).astype(np.int64)
        exact = float(np.percentile(values, percent))
        errors.append(abs(percentile_ns(count(values.tolist()), percent) - exact) / bin_of(int(exact))[1])
    assert np.mean(errors) < 0.1


def covered(percent: float, *, cv: float, spread: float, n: int = 5, runs: int = 200) -> float:
    """How often the 95 % t interval over n trials holds the true percentile, in simulated runs: trials differ by `cv`,
    latencies inside of a trial by `spread` (lognormal), and runs lie anywhere between two powers of two."""
    random = np.random.default_rng([3, n, int(percent)])
    scales = 65_536 * 2 ** random.uniform(0, 1, runs)
    trials = scales[:, None] * random.lognormal(0, cv, (runs, n))
    drawn = ((each * np.exp(spread * random.standard_normal(4000))).astype(int) for each in trials.ravel())
    figures = [percentile_ns(count(each.tolist()), percent) for each in drawn]
    found = estimate_samples(np.array(figures), np.full(runs, n), level=0.95)
    truth = scales * np.exp(cv**2 / 2 + spread * NormalDist().inv_cdf(percent / 100))
    return float(np.mean((found.low <= truth) & (truth <= found.high)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cv", "spread", "runs", "least"),
    [
        (0.001, 0.004, 25, 0.75),
        *(pytest.param(*each, 80, 0.85, marks=pytest.mark.long) for each in product((0.001, 0.003), (0.004, 0.05))),
    ],
)
def test_intervals_hold_the_true_median_where_trials_differ_by_less_than_a_bin(
    cv: float, spread: float, runs: int, least: float
) -> None:
    """95 % but for chance, which takes 10 points of 80 runs and 20 of 25 once in 1,000 times. With the middles of bins
    21 and 63 % did."""
    assert covered(50, cv=cv, spread=spread, runs=runs) >= least


def test_latencies_that_are_all_alike_have_that_percentile() -> None:
    assert percentile_ns(count([70_001] * 50), 50) == 70_001
    assert percentile_ns(count([100] * 50), 99) == 100, "below 128 ns each has a bin of its own"


def test_the_extremes_are_read_where_they_are_those_of_the_bins() -> None:
    bins = {"bins": {"66048": 3}}
    known = read_bins({**bins, "min": 65_990, "max": 66_010}, where="w")
    assert known is not None
    assert (known.least, known.most) == (65_990, 66_010)
    assert 65_990 <= percentile_ns(known, 1) < percentile_ns(known, 99) <= 66_010
    wrong = read_bins({**bins, "min": 1, "max": 66_010}, where="w")
    assert wrong is not None
    assert wrong.least == -math.inf


def test_the_step_of_a_percentile_is_its_bin_where_that_holds_much_of_all() -> None:
    values = np.random.default_rng(1).lognormal(11, 0.3, 5000).astype(int).tolist()
    assert percentile_with_step(count(values), 50)[1] == 0
    width, narrow = 1024, [65_536 + i % 3000 for i in range(3000)]  # 3 bins
    assert percentile_with_step(count(narrow), 50)[1] == width
    assert 1 / 3 > COARSE > 1 / 30
    assert percentile_with_step(count([70_000, 70_010]), 50)[1] == 10, "the extremes bound it"


def test_a_percentile_needs_ios_on_either_side() -> None:
    for percent in (50.0, 95.0, 99.0, 99.9, 1.0):
        needed = ios_needed(percent)
        assert needed * min(percent, 100 - percent) / 100 == pytest.approx(FEWEST_BEYOND)
        assert (enough(needed, percent), enough(needed - 1, percent)) == (True, False)
    assert not enough(10**9, 100)


@pytest.mark.parametrize(("histogram", "percent"), [(Histogram({}), 50.0), (Histogram({1: 1}), 101), (count([1]), -1)])
def test_what_has_no_percentile_is_refused(histogram: Histogram, percent: float) -> None:
    with pytest.raises(ValueError, match="percentile of"):
        percentile_ns(histogram, percent)


@every_row(
    ("section", "what"),
    [
        ({"bins": {"60161": 1}}, "not a bin of fio's histograms"),
        ({"bins": {"-1": 1}}, "not a bin"),
        ({"bins": {"9" * 40: 1}}, "not a bin"),
        ({"bins": {"1": -1}}, "a bin counts I/Os"),
        ({"bins": {"1": True}}, "a bin counts I/Os"),
        ({"bins": {"1": 2.5}}, "a bin counts I/Os"),
        ({"bins": {"1": 2}, "N": 3}, "the bins of the histogram are not whole"),
        ({"bins": {"1": 2, "01": 1}, "N": 3}, "the bins of the histogram are not whole"),
    ],
)
def test_bins_that_are_not_fios_are_refused(section: dict[str, Any], what: str) -> None:
    with pytest.raises(ParseError, match=what) as caught:
        read_bins(section, where="fio.json: read.clat_ns")
    assert caught.value.where == "fio.json: read.clat_ns.bins"


def test_bins_in_another_order_or_with_leading_zeros_are_the_same_histogram() -> None:
    written = read_bins({"bins": {"100": 3, "127": 0, "129": 5}}, where="w")
    otherwise = read_bins({"bins": {"129": 5, "0100": 3, "127": 0}}, where="w")
    assert written is not None
    assert otherwise is not None
    assert list(written.counts.items()) == list(otherwise.counts.items()) == [(100, 3), (127, 0), (129, 5)]


@every_row("section", [{}, {"bins": {}}, {"bins": None}, {"N": 0}])
def test_a_section_without_bins_has_no_histogram(section: dict[str, Any]) -> None:
    assert read_bins(section, where="w") is None


def test_the_histograms_of_a_report_are_named_by_job_and_place() -> None:
    found = histograms_of(json.loads((DATA / "jobs.jsonplus").read_text()))
    assert ("log", "sync.lat_ns") in found
    assert {
        ("log", "write.clat_ns"),
        ("data", "read.clat_ns"),
        ("data", "write.clat_ns"),
        ("check", "read.clat_ns"),
    } <= set(found)
    assert found["check", "read.clat_ns"].total == 64
