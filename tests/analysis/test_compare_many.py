"""Many runs of one sweep: whether the answer held, how much runs differ by themselves, which differs from the first."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from compared_runs import run
from mountlab.analysis.compare.runs import RunComparison, compare_runs
from mountlab.core.errors import PlanError
from mountlab.core.model import Until
from mountlab.core.names import metric_noun
from mountlab.report import sections
from mountlab.sentences import comparison as words
from mountlab.stats import holm
from mountlab.stats.between import spread
from mountlab.stats.sequential import nominal_level, true_p
from mountlab.wording import verdicts
from pages import Page
from repetition import others_long
from rows import every_row
from scipy import stats


@pytest.fixture(scope="module")
def many() -> RunComparison:
    return compare_runs([run("a"), run("b", factor=1.3), run("c", factor=0.7, kernel="6.19"), run("d", kernel="6.19")])


@pytest.mark.slow
def test_the_mean_of_a_run_that_a_rule_ended_has_the_interval_of_the_rule() -> None:
    """Each run by its own rule; and p of the runs being alike allows for the looks, too."""
    until = Until(half_width=0.03, min=3, max=5)
    fixed, ended = run("a"), run("b")
    ended.sweep = replace(ended.sweep, design=replace(ended.sweep.design, until=until))
    cell = compare_runs([fixed, ended]).cells[0]
    for each, level in zip(cell.estimates, (0.95, nominal_level(until, 0.95)), strict=True):
        assert each
        factor = math.exp(stats.t.ppf((1 + level) / 2, each.n - 1) * each.cv / math.sqrt(each.n))
        assert (each.low, each.high, each.level) == pytest.approx((each.mean / factor, each.mean * factor, 0.95))
    p = [each.spread.p for each in compare_runs([fixed, ended]).cells]
    assert [each.p_adjusted for each in compare_runs([fixed, ended]).cells] == pytest.approx(holm(true_p(p, until)))


# ── spread between and inside runs ───────────────────────────────────────────────────────────────────────────────────


def test_the_spread_is_that_of_an_analysis_of_variance() -> None:
    samples = [[1.0, 1.1, 1.2, 1.05], [1.4, 1.5, 1.6, 1.45], [1.1, 1.0, 1.15, 1.05]]
    logs = np.log(samples)
    found = spread(samples)
    reference = stats.f_oneway(*logs)
    within = logs.var(axis=1, ddof=1).mean()
    assert found.p == pytest.approx(reference.pvalue)
    assert found.within == pytest.approx(math.sqrt(within))
    assert found.between == pytest.approx(math.sqrt(logs.mean(axis=1).var(ddof=1) - within / 4))
    assert found.low < found.between < found.high
    assert (found.runs, found.n) == (3, 12)


def test_runs_of_unlike_length() -> None:
    """The definition of Paule and Mandel (1982): with the variance between, the means of k runs are as far apart as
    k - 1 degrees of freedom expect, each over its own variance."""
    logs = [np.log(each) for each in ([1.0, 1.1], [1.4, 1.5, 1.6, 1.45, 1.5], [1.1, 1.0, 1.15])]
    within = sum(((each - each.mean()) ** 2).sum() for each in logs) / (10 - 3)
    found = spread([np.exp(each).tolist() for each in logs])
    variances = np.array([found.between**2 + within / len(each) for each in logs])
    means = np.array([each.mean() for each in logs])
    centre = np.average(means, weights=1 / variances)
    assert np.sum((means - centre) ** 2 / variances) == pytest.approx(2)


def test_runs_that_are_alike_differ_by_nothing() -> None:
    found = spread([[1.0, 1.2, 0.9], [1.05, 1.25, 0.95], [0.95, 1.1, 0.9]])
    assert found.between == found.low == 0
    assert found.high > 0
    assert found.p > 0.4


@every_row("samples", [[], [[1.0]], [[1.0], [1.1]], [[1.0, 0.0], [1.0, 2.0]], [[1.0, -1.0], [1.0, 2.0]]])
def test_what_cannot_be_known_is_nan(samples: list[list[float]]) -> None:
    found = spread(samples)
    assert all(math.isnan(each) for each in (found.between, found.low, found.high, found.p))


def test_one_run_knows_its_trials_only() -> None:
    found = spread([[1.0, 1.1, 1.2], []])
    assert found.within == pytest.approx(np.log([1.0, 1.1, 1.2]).std(ddof=1))
    assert math.isnan(found.between)


def test_equal_values() -> None:
    assert spread([[2.0, 2.0], [2.0, 2.0]]).between == 0
    apart = spread([[2.0, 2.0], [4.0, 4.0]])
    assert math.isnan(apart.p), "without a spread inside the runs, and without a step"
    assert apart.between == pytest.approx(math.log(2) / math.sqrt(2))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("runs", "between"), others_long(product((3, 8), (0.0, 0.5, 1.0, 4.0)), kept={(3, 1.0), (8, 0.0)})
)
def test_the_interval_holds_the_truth_as_often_as_it_says(between: float, runs: int) -> None:
    """Simulated: 400 times 3 or 8 runs of 5 trials, spread between them as a multiple of that inside."""
    rng = np.random.default_rng(11)
    held = 0
    for _ in range(400):
        logs = rng.normal(0, between, (runs, 1)) + rng.normal(0, 1, (runs, 5))
        found = spread(np.exp(logs).tolist())
        held += found.low <= between <= found.high
    assert stats.binomtest(held, 400, 0.95, alternative="less").pvalue > 0.001


# ── the runs ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_every_cell_has_its_means_and_its_spread(many: RunComparison) -> None:
    assert [each.cell.id for each in many.cells] == [cell.id for cell in many.runs[0].sweep.cells]
    for each in many.cells:
        samples = []
        for one, estimate in zip(many.runs, each.estimates, strict=True):
            frame = one.measurements
            own = frame[(frame["cell"] == each.cell.id) & (frame["metric"] == each.metric) & ~frame["warmup"]]["value"]
            samples.append(list(own))
            assert estimate
            assert estimate.mean == pytest.approx(own.mean())
        assert each.spread == spread(samples)
        assert each.spread.between == pytest.approx(0.2, abs=0.08)
    assert [each.p_adjusted for each in many.cells] == pytest.approx(holm([each.spread.p for each in many.cells]))


@pytest.mark.slow
def test_against_the_first_all_ratios_are_corrected_together(many: RunComparison) -> None:
    alone = compare_runs(many.runs[:2])
    for each, pair in zip(many.cells, alone.ratios, strict=True):
        assert each.ratios[0] is None
        ours = each.ratios[1]
        assert ours
        assert ours.comparison.ratio == pytest.approx(pair.comparison.ratio)
        assert ours.comparison.p == pytest.approx(pair.comparison.p)
        assert ours.comparison.p_adjusted >= pair.comparison.p_adjusted - 1e-12
        assert ours.comparison.candidate == f"{each.cell.filesystem.name} in B"
    known = [ratio.comparison for each in many.cells for ratio in each.ratios if ratio]
    assert len(known) == 3 * len(many.cells)
    assert {each.verdict for each in known if each.candidate.endswith("in B")} == {"faster", "undecided"}
    assert {each.verdict for each in known if each.candidate.endswith("in C")} == {"slower", "undecided"}


@pytest.mark.long
def test_runs_that_are_alike_seldom_get_a_verdict() -> None:
    """12 times four runs that are alike: a false verdict in at most 5 % of them, but for chance."""
    rng, false = np.random.default_rng(3), 0
    runs = [run(name) for name in "abcd"]
    frame = runs[0].measurements
    means = frame["value"].groupby(frame["cell"] + frame["metric"]).transform("mean")
    for _ in range(12):
        for each in runs:
            each.measurements = frame.assign(value=means * np.exp(rng.normal(0, 0.03, len(means))))
        found = compare_runs(runs)
        false += any(r.comparison.verdict in ("faster", "slower") for each in found.cells for r in each.ratios if r)
    assert stats.binomtest(false, 12, 0.05, alternative="greater").pvalue > 0.01


@pytest.mark.slow
def test_a_cell_that_a_run_lacks_is_missing_there_only() -> None:
    short = run("b")
    short.measurements = short.measurements[short.measurements["cell"] != "ext4/dd-write"]
    found = compare_runs([run("a"), short, run("c")])
    missing = next(each for each in found.cells if each.cell.id == "ext4/dd-write")
    assert [each is None for each in missing.estimates] == [False, True, False]
    assert [each is None for each in missing.ratios] == [True, True, False]
    assert missing.spread.runs == 2
    assert "n/a" in Page(sections.cell_by_cell(found)).words


@pytest.mark.slow
def test_one_block_gives_means_and_no_verdict() -> None:
    found = compare_runs([run("a", blocks=1), run("b", blocks=1), run("c", blocks=1)])
    assert all(math.isnan(each.p_adjusted) for each in found.cells)
    assert any("is unknown: no run has two trials" in each for each in words.sentences(found))
    assert sections.overview(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("names", "said"),
    [("a", "one run has nothing to be compared with"), ("aba", "a run is not compared with itself")],
)
def test_what_cannot_be_compared_is_refused(names: str, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        compare_runs([run(name) for name in names])


# ── what differs ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_what_differs_is_told_for_every_run(many: RunComparison) -> None:
    kernel = many.runs[0].info.facts.kernel.release
    (found,) = [each for each in many.differences if each.known]
    assert (found.area, found.what, found.values) == ("system", "kernel", (kernel, kernel, "6.19", "6.19"))
    assert f"{kernel} in A and B, 6.19 in C and D" in words.comparison_text(many)


def test_a_run_that_does_not_know_a_fact_has_none_of_its_values() -> None:
    known, other = {"mds": "Not affected"}, {"mds": "Vulnerable"}
    runs = [run("a", cpu_mitigations=known), run("b", cpu_mitigations=other), run("c"), run("d", cpu_mitigations=known)]
    found = compare_runs(runs)
    text = words.comparison_text(found)
    assert "system: mitigations: mds: not affected in A and D, off in B, not known in C" in text
    values = ["Not affected", "Vulnerable", None, "Not affected"]
    row = {"area": "system", "what": "cpu_mitigations", "values": values, "known": True, "part": "mds"}
    assert row in words.comparison_json(found)["differences"]


@pytest.mark.slow
def test_few_runs_and_several_respects_are_caveats() -> None:
    several = [run("a"), run("b", kernel="1", cpu_model="x"), run("c")]
    assert {each.code for each in compare_runs(several).caveats} == {"sides-differ", "runs-not-paired", "few-runs"}
    enough = compare_runs([run(name) for name in "abcde"])
    assert {each.code for each in enough.caveats} == {"runs-not-paired"}


# ── words, data, pictures ────────────────────────────────────────────────────────────────────────────────────────────


def test_the_answer_is_told_first(many: RunComparison) -> None:
    said = words.sentences(many)
    assert said[0] == f"The answer held: all {len(many.answers)} comparisons have the same verdict in every run."
    assert said[1].startswith(f"{len(many.cells)} of {len(many.cells)} figures differ from run to run by more than")
    assert said[2].startswith(f"Against A, {3 * len(many.cells)} ratios corrected together: B is faster in ")
    assert words.next_step(many) == "Measure 1 more run: 5 tell by how much runs differ."


@pytest.mark.slow
def test_a_verdict_that_changed_is_named() -> None:
    runs = [run("a"), run("b"), run("c")]
    one = runs[1].comparisons[0]
    other = "slower" if one.verdict != "slower" else "faster"
    runs[1].comparisons[0] = type(one)(**{**one.__dict__, "verdict": other})
    said = words.sentences(compare_runs(runs))
    total = len(runs[0].comparisons)
    assert said[0] == (
        f"The answer did not hold throughout: {total - 1} of {total} comparisons have the same verdict in every run."
    )
    name = f"{one.candidate} to {one.baseline}, dd-write: {metric_noun(one.metric)}"
    assert said[1] == f"{name}: {verdicts.verdict_text(one.verdict, 0.02)} in A and C, {other} in B."


@pytest.mark.slow
def test_runs_without_comparisons_say_so() -> None:
    runs = [run("a"), run("b"), run("c")]
    for each in runs:
        each.comparisons = []
    found = compare_runs(runs)
    assert "no comparison" in words.sentences(found)[0]
    assert "no comparison" in sections.verdicts(found)
    assert sections.overview(found).count("<svg") == 1


@pytest.mark.slow
def test_the_picture_of_the_answer_has_every_run(many: RunComparison) -> None:
    text = sections.overview(many)
    assert "7 of 30 comparisons are drawn; the table below has all of them." in text
    answer, figures = text.split("</figure>")[:2]
    for name in many.names:
        assert answer.count(f">{name}</text>") == 7, "no more have room"
        assert figures.count(f">{name}</text>") == 1
