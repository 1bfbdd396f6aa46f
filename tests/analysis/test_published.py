"""Published figures and conclusions, held against what was measured."""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from mountlab.analysis import published as claims
from mountlab.analysis.published import Beside, agreement, beside
from mountlab.core.errors import ParameterError
from mountlab.core.findings import Agreement, Claim, PublishedFigure, Verdict
from mountlab.core.model import Design, Filesystem, Sweep, Until, Workload
from mountlab.core.run_info import RunInfo
from mountlab.results import paths
from mountlab.stats.sequential import nominal_level, true_p
from mountlab.sweep.published_file import parse_published
from mountlab.wording.verdicts import agreement_sentence, agreement_text, claim_text
from rows import every_row
from scipy import stats
from synthetic_run import comparison

ROW: dict[str, Any] = {
    "what": "w", "workload": "dd-write", "metric": "write_bandwidth", "candidate": "tmpfs", "baseline": "ext4",
}  # fmt: skip
FIGURES = {"candidate_value": 6.0, "baseline_value": 2.0, "unit": "B/s"}


def theirs(**changes: Any) -> PublishedFigure:
    return PublishedFigure(study="X", source="somewhere", factors={}, **{**ROW, **changes})


def held(claim: Claim, verdict: Verdict) -> Agreement:
    return agreement(theirs(claim=claim), comparison(verdict=verdict), smallest_effect=0.02)


def test_a_claim_agrees_only_with_a_decided_verdict_of_its_own_direction() -> None:
    assert held("faster", "faster") == held("slower", "slower") == held("same", "same") == "agrees"
    assert held("faster", "slower") == held("faster", "same") == held("same", "faster") == "contradicts"
    assert held("faster", "undecided") == held("same", "undecided") == "undecided"


@every_row(
    ("metric", "ratio", "direction"),
    [
        ("write_bandwidth", 3.0, "faster"),
        ("write_bandwidth", 0.5, "slower"),
        ("mkfs_time", 3.0, "slower"),
        ("mkfs_time", 0.5, "faster"),
        ("write_bandwidth", 1.01, "same"),
    ],
)
def test_published_figures_point_where_their_ratio_does(metric: str, ratio: float, direction: str) -> None:
    row = theirs(metric=metric, candidate_value=ratio, baseline_value=1.0, unit="B/s")
    assert claims.direction(row, smallest_effect=0.02) == direction


@every_row(
    ("published", "low", "high", "told"),
    [
        (18.0, 2.2, 20.0, "agrees"),
        (18.0, 2.2, 7.8, "same direction, smaller"),
        (1.5, 2.2, 7.8, "same direction, larger"),
        (1 / 18, 1 / 7.8, 1 / 2.2, "same direction, smaller"),
        (1 / 1.5, 1 / 7.8, 1 / 2.2, "same direction, larger"),
    ],
)
def test_a_published_ratio_outside_of_our_interval_is_no_agreement(
    published: float, low: float, high: float, told: str
) -> None:
    row = theirs(candidate_value=published, baseline_value=1.0, unit="B/s")
    verdict = "faster" if published > 1 else "slower"
    ours = comparison(verdict=verdict, ratio=(low * high) ** 0.5, low=low, high=high)
    assert agreement(row, ours, smallest_effect=0.02) == told


@every_row(
    ("low", "high", "told"),
    [
        (0.95, 1.05, "agrees"),
        (0.95, 1.11, "undecided"),
        (1.12, 1.5, "contradicts"),
        (0.5, 0.9, "contradicts"),
        (0.1, 20.0, "undecided"),
    ],
)
def test_the_same_within_a_bound_is_held_against_the_interval(low: float, high: float, told: str) -> None:
    ours = comparison(ratio=math.sqrt(low * high), low=low, high=high, verdict="undecided")
    assert agreement(theirs(claim="same", within=0.1), ours, smallest_effect=0.02) == told


@every_row(
    ("low", "high", "held"),
    [(0.97, 1.04, "agrees"), (0.82, 0.88, "undecided"), (0.60, 0.70, "contradicts"), (7.0, 8.0, "contradicts")],
)
def test_figures_that_a_study_calls_the_same_claim_no_ratio(low: float, high: float, held: str) -> None:
    """Defect: 6.5 and 7.2 GB/s, of one trial each, were a claim of 0.90; the study said that they hardly differ."""
    row = theirs(candidate_value=6.5e9, baseline_value=7.2e9, unit="B/s", claim="same", within=0.15)
    assert math.isnan(row.ratio)
    ours = comparison(ratio=math.sqrt(low * high), low=low, high=high, verdict="undecided")
    assert agreement(row, ours, smallest_effect=0.02) == held
    assert claim_text(row) == "the same within 15\u00a0%"


def test_study_b_claims_that_its_read_hardly_differs() -> None:
    write, read = paths.load_published(("b-tmpfs-cloud",))
    assert (write.claim, round(write.ratio, 1)) == (None, 7.1)
    assert (read.claim, read.candidate_value, read.baseline_value) == ("same", 6.5e9, 7.2e9)
    assert read.within
    assert 1 / (1 + read.within) < read.candidate_value / read.baseline_value, "its own figures are within the bound"


def test_what_was_not_measured_and_what_has_no_interval() -> None:
    assert agreement(theirs(claim="faster"), None, smallest_effect=0.02) == "not measured"
    alone = comparison(low=math.nan, high=math.nan, n=1, verdict="undecided")
    assert agreement(theirs(claim="faster"), alone, smallest_effect=0.02) == "undecided"


def run_of(levels: dict[str, float], published: list[PublishedFigure], *, blocks: int = 5) -> Any:
    """A run of one file system whose reads and writes of two sizes take the given means."""
    rng = np.random.default_rng(3)
    factors = [{"rw": rw, "bs": bs} for rw in levels for bs in ("4KiB", "8KiB")]
    workloads = tuple(Workload(name="fio", tool="fio", options={}, factors=each) for each in factors)
    fs = Filesystem(name="ext4", type="ext4")
    sweep = Sweep(
        name="s", question="?", box="local", filesystems=(fs,), workloads=workloads, design=Design(repeats=blocks)
    )
    rows = [
        {
            "cell": cell.id,
            "block": block,
            "warmup": block == 0,
            "metric": "read_iops",
            "label": "",
            "value": levels[cell.workload.factors["rw"]] * rng.lognormal(0, 0.01) * (9 if block == 0 else 1),
        }
        for block in range(blocks + 1)
        for cell in sweep.cells
    ]
    return SimpleNamespace(
        sweep=sweep,
        measurements=pd.DataFrame(rows),
        comparisons=[],
        published=published,
        info=RunInfo(run_id=""),
        censored={},
    )


LEVELS = theirs(
    workload="fio",
    metric="read_iops",
    candidate="ext4",
    baseline="ext4",
    claim="faster",
    baseline_factors={"rw": "randread"},
)


def test_levels_of_a_factor_are_compared_in_each_block_over_all_else() -> None:
    row = replace(LEVELS, factors={"rw": "read"})
    run = run_of({"read": 120.0, "randread": 100.0}, [row])
    (found,) = beside(run)
    assert found.agreement == "agrees"
    assert found.ours is not None
    # The same by hand: mean log ratio over both sizes in each block, then the t interval over blocks.
    counted = run.measurements.query("not warmup").assign(rw=lambda rows: rows.cell.str.extract(r"rw=(\w+)"))
    logs = np.log(counted.groupby(["block", "rw"])["value"].apply(stats.gmean).unstack())
    differences = logs["read"] - logs["randread"]
    low, high = stats.t.interval(0.95, 4, differences.mean(), stats.sem(differences))
    assert (found.ours.ratio, found.ours.verdict_interval.low, found.ours.verdict_interval.high) == pytest.approx(
        (math.exp(differences.mean()), math.exp(low), math.exp(high))
    )
    assert found.ours.n == 5


def test_levels_of_a_run_that_a_rule_ended_are_compared_at_the_level_of_the_rule() -> None:
    run = run_of({"read": 110.0, "randread": 100.0}, [replace(LEVELS, factors={"rw": "read"})], blocks=8)
    until = Until(half_width=0.03, min=5, max=8)
    (fixed,) = beside(run)
    run.sweep = replace(run.sweep, design=Design(until=until))
    (ended,) = beside(run)
    assert fixed.ours
    assert ended.ours
    wider = stats.t.ppf((1 + nominal_level(until, 0.95)) / 2, 7) / stats.t.ppf(0.975, 7)
    assert math.log(ended.ours.verdict_interval.high / ended.ours.ratio) == pytest.approx(
        wider * math.log(fixed.ours.verdict_interval.high / fixed.ours.ratio)
    )
    assert ended.ours.p == pytest.approx(float(true_p(fixed.ours.p, until)))
    assert (ended.ours.verdict_interval.level, ended.ours.n) == (0.95, 8)


def test_levels_that_were_not_swept_are_not_measured() -> None:
    row = replace(LEVELS, factors={"rw": "read"}, baseline_factors={"rw": "write"})
    (found,) = beside(run_of({"read": 120.0, "randread": 100.0}, [row]))
    assert (found.ours, found.agreement) == (None, "not measured")


@pytest.mark.parametrize("zeros", [1, 5])
def test_a_figure_of_0_has_no_ratio_and_the_row_says_so(zeros: int) -> None:
    run = run_of({"read": 120.0, "randread": 100.0}, [replace(LEVELS, factors={"rw": "read"})])
    rows = run.measurements
    read = rows["cell"].str.contains("rw=read bs=4KiB") & rows["block"].between(1, zeros)
    assert read.sum() == zeros
    rows.loc[read, "value"] = 0.0
    (found,) = beside(run)
    if zeros < 5:
        assert found.ours is not None
        assert (found.ours.n, found.agreement, found.why) == (4, "agrees", "")
    else:
        assert (found.ours, found.agreement) == (None, "not measured")
        assert "0 has no ratio" in agreement_text(found.agreement, found.why)


def test_the_interval_beside_the_same_lies_inside_the_bound() -> None:
    row = replace(LEVELS, factors={"rw": "read"}, claim="same")
    (found,) = beside(run_of({"read": 100.0, "randread": 100.2}, [row], blocks=6))
    assert found.ours is not None
    assert (found.ours.verdict, found.ours.verdict_interval.level) == ("same", pytest.approx(0.9))
    assert 1 / 1.02 < found.ours.verdict_interval.low < found.ours.verdict_interval.high < 1.02


def test_claims_as_text() -> None:
    assert claim_text(theirs(**FIGURES)) == "3.0 times"
    assert claim_text(theirs(claim="slower")) == "slower"
    assert claim_text(theirs(claim="same", within=0.1)) == "the same within 10\u00a0%"


def test_the_sentence_counts() -> None:
    told: list[Agreement] = ["agrees", "agrees", "same direction, smaller", "contradicts", "undecided", "not measured"]
    found = [Beside(theirs(claim="faster"), None, each) for each in told]
    assert agreement_sentence([each.agreement for each in found]) == (
        "Of 5 published results that were measured, ours agrees with 2, has a smaller effect in the same direction "
        "than 1, contradicts 1 and is undecided for 1; "
        "1 was not measured."
    )
    assert agreement_sentence([each.agreement for each in found[-1:]]) == "The one published result was not measured."


@every_row(
    ("changes", "told"),
    [
        ({}, "neither"),
        ({"candidate_value": 6.0}, "some of the figures"),
        ({**FIGURES, "claim": "faster"}, "both"),
        ({"candidate_value": 6.0, "claim": "same"}, "some of the figures"),
        ({"claim": "much faster"}, "'faster', 'slower' or 'same'"),
        ({"claim": "faster", "within": 0.1}, "only `claim: same` has a bound"),
        ({"claim": "same", "within": 2.0}, "less than 1"),
    ],
)
def test_a_row_has_figures_or_a_claim(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(ParameterError) as raised:
        parse_published({"study": "X", "source": "s", "rows": [{**ROW, **changes}]}, where="p.yml")
    assert told in str(raised.value)
    assert "p.yml" in str(raised.value)


def test_two_levels_of_which_one_stalls_are_compared_by_the_median_of_all_blocks() -> None:
    """Defect: the blocks in which a trial stalled were left out, and the rest had a mean and a verdict."""
    run = run_of({"read": 200.0, "randread": 100.0}, [replace(LEVELS, factors={"rw": "read"})], blocks=10)
    slow = "ext4/fio rw=read bs=4KiB"
    keep = (run.measurements["cell"] != slow) | run.measurements["block"].isin((0, 1, 2))
    run.measurements = run.measurements[keep]
    run.censored = {slow: frozenset(range(3, 11))}
    (found,) = beside(run)
    assert found.ours is not None
    assert (found.ours.censored, found.ours.n) == (8, 10)
    assert math.isnan(found.ours.ratio), "the median lies among blocks without a value"
    assert found.agreement == "undecided", "8 of 10 blocks for slower: p is 0.11 by coin tosses"
    run.censored = {slow: frozenset(range(1, 11))}
    run.measurements = run.measurements[run.measurements["cell"] != slow]
    assert beside(run)[0].agreement == "contradicts"


@pytest.mark.slow
@every_row("path", sorted((paths.PARAMS / "sweeps").glob("*.yml")), ids=lambda path: path.stem)
def test_what_a_sweep_compares_with_published_rows_is_in_it(path: Any) -> None:
    """Each row names file systems and a workload of the sweep, at one of its sizes; else it could never be measured."""
    presets = [None, "filebench"] if "filebench:" in path.read_text() else [None]
    sweeps = [paths.load_sweep(path, {"preset": preset} if preset else {}).sweep for preset in presets]
    for row in paths.load_published(sweeps[0].published):
        names = {fs.name for fs in sweeps[0].filesystems}
        assert {row.candidate, row.baseline} <= names
        fitting = [w for sweep in sweeps for w in sweep.workloads if w.name == row.workload]
        assert fitting, row.what
        for wanted in (row.factors, {**row.factors, **row.baseline_factors}):
            assert any(wanted.items() <= dict(w.factors).items() for w in fitting), row.what
