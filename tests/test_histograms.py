"""Histograms: fio's own percentiles from its bins, and merged ones against numpy on the pooled I/Os."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mountlab.errors import ParseError
from mountlab.tools import histograms
from mountlab.tools.fio_report import histograms_of
from mountlab.tools.histograms import Histogram, bin_of, count, distribution, merge, middle, percentile_ns, read_bins

DATA = Path(__file__).parent / "data" / "fio"
RECORDED = ["psync-randread-direct.jsonplus", "psync-randwrite-fsync1.jsonplus", "jobs.jsonplus", "clones.jsonplus"]
latencies = st.lists(st.integers(0, 10**12), min_size=1, max_size=200)


def sections(name: str) -> list[dict[str, Any]]:
    jobs = json.loads((DATA / name).read_text())["jobs"]
    found = [job[side].get(key, {}) for job in jobs for side in ("read", "write", "sync")
             for key in ("slat_ns", "clat_ns", "lat_ns")]  # fmt: skip
    return [section for section in found if section.get("bins")]


@pytest.mark.parametrize("name", RECORDED)
def test_every_percentile_that_fio_computed_comes_out_of_its_bins(name: str) -> None:
    found = sections(name)
    assert found
    for section in found:
        own = read_bins(section, where=name)
        assert own is not None
        assert own.total == section["N"]
        ours = {key: percentile_ns(own, float(key)) for key in section["percentile"]}
        assert ours == section["percentile"]


@pytest.mark.parametrize("name", RECORDED)
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
    first, width = bin_of(exact)
    # numpy rounds percent * n in floating point: at a rank's very edge it may take the neighbour.
    others = {int(np.percentile(pooled, min(100, max(0, percent + e)), method="inverted_cdf")) for e in (-1e-9, 1e-9)}
    assert percentile_ns(merged, percent) in {middle(ns) for ns in (exact, *others)}
    assert abs(middle(exact) - exact) <= width
    assert first <= exact


@pytest.mark.parametrize("seed", [1, 2])
def test_two_simulated_trials_merge_to_the_percentiles_that_numpy_finds(seed: int) -> None:
    random = np.random.default_rng(seed)
    fast, slow = random.lognormal(11, 0.4, 20_000), random.lognormal(13, 1.2, 5_000)
    merged = merge([count(fast.astype(np.int64).tolist()), count(slow.astype(np.int64).tolist())])
    pooled = np.concatenate([fast, slow]).astype(np.int64)
    for percent in (50, 95, 99, 99.9):
        exact = int(np.percentile(pooled, percent, method="inverted_cdf"))
        assert abs(percentile_ns(merged, percent) - exact) <= bin_of(exact)[1]


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
    assert histograms.percentile(Histogram({60160: 3}), 50) == pytest.approx(60.160e-6)


@pytest.mark.parametrize(("histogram", "percent"), [(Histogram({}), 50.0), (Histogram({1: 1}), 101), (count([1]), -1)])
def test_what_has_no_percentile_is_refused(histogram: Histogram, percent: float) -> None:
    with pytest.raises(ValueError, match="percentile of"):
        percentile_ns(histogram, percent)


@pytest.mark.parametrize(
    ("section", "what"),
    [({"bins": {"60161": 1}}, "not a bin of fio's histograms"), ({"bins": {"-1": 1}}, "not a bin"),
     ({"bins": {"9" * 40: 1}}, "not a bin"), ({"bins": {"1": -1}}, "a bin counts I/Os"),
     ({"bins": {"1": True}}, "a bin counts I/Os"), ({"bins": {"1": 2.5}}, "a bin counts I/Os"),
     ({"bins": {"1": 2}, "N": 3}, "the bins of the histogram are not whole"),
     ({"bins": {"1": 2, "01": 1}, "N": 3}, "the bins of the histogram are not whole")],
)  # fmt: skip
def test_bins_that_are_not_fios_are_refused(section: dict[str, Any], what: str) -> None:
    with pytest.raises(ParseError, match=what) as caught:
        read_bins(section, where="fio.json: read.clat_ns")
    assert caught.value.where == "fio.json: read.clat_ns.bins"


@pytest.mark.parametrize("section", [{}, {"bins": {}}, {"bins": None}, {"N": 0}])
def test_a_section_without_bins_has_no_histogram(section: dict[str, Any]) -> None:
    assert read_bins(section, where="w") is None


def test_the_histograms_of_a_report_are_named_by_job_and_place() -> None:
    found = histograms_of(json.loads((DATA / "jobs.jsonplus").read_text()))
    assert ("log", "sync.lat_ns") in found
    assert {("log", "write.clat_ns"), ("data", "read.clat_ns"), ("data", "write.clat_ns"),
            ("check", "read.clat_ns")} <= set(found)  # fmt: skip
    assert found["check", "read.clat_ns"].total == 64
