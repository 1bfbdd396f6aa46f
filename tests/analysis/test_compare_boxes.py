"""One sweep on several boxes: what holds over them, on each, on a further one; and what is the box's share."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from compared_runs import run
from facts import known
from mountlab.analysis.compare.runs import RunComparison, compare_runs
from mountlab.analysis.measurements import by_block, counted
from mountlab.core.errors import PlanError
from mountlab.core.model import Until
from mountlab.report import sections
from mountlab.sentences import comparison as words
from mountlab.stats import OVER_BOXES_METHOD, holm
from mountlab.stats.between import spread
from mountlab.stats.sequential import nominal_level, true_p
from mountlab.wording import verdicts
from pages import Page
from scipy import stats
from synthetic_run import SyntheticRun


def on(
    box: str, *, factor: float = 1.0, ratio: float = 1.0, blocks: int = 5, hostile: str = "", **facts: Any
) -> SyntheticRun:
    """A synthetic run on a box that is `factor` times as fast, and on which each ratio is `ratio` times the usual."""
    made = run(box, factor=factor, blocks=blocks, hostile=hostile)
    rng = np.random.default_rng(sum(box.encode()))
    there = known(made.info.facts, **{"hostname": box, **facts})
    made.info = replace(made.info, run_id=f"run-{box}", box={"name": box}, facts=there)
    made.comparisons = [
        replace(each, ratio=each.ratio * ratio * float(np.exp(rng.normal(0, 0.01)))) for each in made.comparisons
    ]
    return made


@pytest.fixture(scope="module")
def across() -> RunComparison:
    boxes = [on("db1"), on("db2", factor=1.3), on("db3", factor=0.8, kernel="6.19"), on("db4", ratio=1.05)]
    return compare_runs(boxes, factor="box", missing={"db5": "cannot be reached"})


@pytest.mark.slow
def test_the_mean_on_a_box_whose_run_a_rule_ended_has_the_interval_of_the_rule() -> None:
    until = Until(half_width=0.03, min=3, max=5)
    runs = [on("db1"), on("db2")]
    for each in runs:
        each.sweep = replace(each.sweep, design=replace(each.sweep.design, until=until))
    found = compare_runs(runs, factor="box")
    for own in found.cells[0].estimates:
        assert own
        factor = math.exp(stats.t.ppf((1 + nominal_level(until, 0.95)) / 2, own.n - 1) * own.cv / math.sqrt(own.n))
        assert (own.low, own.high) == pytest.approx((own.mean / factor, own.mean * factor))
    for part in (found.cells, found.over_boxes):
        assert [each.p_adjusted for each in part] == pytest.approx(holm(true_p([s.spread.p for s in part], until)))


# ── ratios ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_a_ratio_over_boxes_is_the_t_interval_of_one_value_a_box(across: RunComparison) -> None:
    assert across.names == ("db1", "db2", "db3", "db4")
    assert len(across.over_boxes) == len(across.runs[0].comparisons)
    for each in across.over_boxes:
        logs = np.log([one.ratio for one in each.on_each if one])
        expected = stats.ttest_1samp(logs, 0).confidence_interval(0.95)
        assert (math.log(each.over.own.low), math.log(each.over.own.high)) == pytest.approx(
            (expected.low, expected.high)
        )
        assert (each.over.n, each.over.method) == (4, OVER_BOXES_METHOD)
        assert each.over.joint.low <= each.over.own.low < each.over.ratio < each.over.own.high <= each.over.joint.high
        assert each.further_low < each.over.own.low
        assert each.further_high > each.over.own.high


def test_the_verdict_over_boxes_is_that_of_its_interval(across: RunComparison) -> None:
    assert {each.over.verdict for each in across.over_boxes} == {"faster", "undecided"}
    for each in across.over_boxes:
        beyond = each.over.joint.low > 1 or each.over.joint.high < 1
        assert beyond == (each.over.verdict in ("faster", "slower"))
        said = each.over.needed is not None or math.isfinite(each.over.reduce)
        assert said == (each.over.verdict == "undecided")


def test_the_ratio_of_a_box_is_that_of_its_own_run_with_the_interval_that_holds_together(across: RunComparison) -> None:
    for place, measured in enumerate(across.runs):
        own = {(c.candidate, c.workload, *c.factors.items(), c.metric): c for c in measured.comparisons}
        for each in across.over_boxes:
            one = each.on_each[place]
            assert one
            kept = own[one.candidate, one.workload, *one.factors.items(), one.metric]
            assert (one.ratio, one.verdict, one.joint) == (kept.ratio, kept.verdict, kept.joint)


def test_how_a_ratio_varies_is_told_from_the_ratios_of_blocks(across: RunComparison) -> None:
    each = across.over_boxes[0]
    one = each.over
    samples = []
    for measured in across.runs:
        blocks = by_block(counted(measured.measurements))
        ours, theirs = (
            blocks[verdicts.cell_id(name, one), one.metric, one.label] for name in (one.candidate, one.baseline)
        )
        samples.append([ours[block] / theirs[block] for block in ours])
    found = spread(samples)
    assert (each.spread.between, each.spread.within, each.spread.p) == pytest.approx(
        (found.between, found.within, found.p)
    )
    known = [each.spread.p for each in across.over_boxes if not math.isnan(each.spread.p)]
    assert [each.p_adjusted for each in across.over_boxes if not math.isnan(each.p_adjusted)] == pytest.approx(
        holm(known)
    )


def with_verdicts(made: SyntheticRun, verdict: str) -> SyntheticRun:
    first, *others = made.comparisons
    made.comparisons = [replace(first, verdict=verdict), *others]  # type: ignore[arg-type]
    return made


@pytest.mark.slow
def test_a_ratio_that_turns_round_is_named() -> None:
    found = compare_runs([with_verdicts(on("a"), "faster"), with_verdicts(on("b"), "slower"), on("c")], factor="box")
    assert [each.turns for each in found.over_boxes[:2]] == [True, False]
    assert not found.over_boxes[0].holds
    said = words.sentences(found)
    total = len(found.over_boxes)
    assert any(
        each.startswith("It turns round: tmpfs to ext4, dd-write: write bandwidth is faster on a") for each in said
    )
    held = sum(each.holds for each in found.over_boxes)
    assert (
        f"Box by box, {held} of {total} comparisons have the same verdict, faster, slower or the same, on every box."
        in said
    )
    assert "slower on b" in " ".join(said)


@pytest.mark.slow
def test_undecided_on_every_box_does_not_hold() -> None:
    found = compare_runs([with_verdicts(on("a"), "undecided"), with_verdicts(on("b"), "undecided")], factor="box")
    assert not found.over_boxes[0].holds
    assert not found.over_boxes[0].turns


# ── figures ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_every_figure_has_its_parts(across: RunComparison) -> None:
    assert [each.cell.id for each in across.cells] == [cell.id for cell in across.runs[0].sweep.cells]
    for each in across.cells:
        frames = [measured.measurements[~measured.measurements["warmup"]] for measured in across.runs]
        own = [list(f[(f["cell"] == each.cell.id) & (f["metric"] == each.metric)]["value"]) for f in frames]
        assert each.spread == spread(own)
        assert each.spread.share > 0.5
        assert [one.mean for one in each.estimates if one] == pytest.approx([np.mean(values) for values in own])


@pytest.mark.slow
def test_a_cell_that_a_box_lacks_is_named_and_the_rest_is_said_without_it() -> None:
    """Also where it is the first box that lacks it."""
    lacking = on("a")
    lacking.measurements = lacking.measurements[lacking.measurements["cell"] != "ext4/dd-write"]
    lacking.comparisons = [each for each in lacking.comparisons if each.workload != "dd-write"]
    found = compare_runs([lacking, on("b"), on("c")], factor="box")
    (cell,) = [each for each in found.cells if each.cell.id == "ext4/dd-write"]
    assert [each is None for each in cell.estimates] == [True, False, False]
    assert cell.spread.runs == 2
    (caveat,) = [each for each in found.caveats if each.code == "not-on-all-boxes"]
    assert caveat.message.startswith("a has no figure of ext4/dd-write: ")
    ratio = next(each for each in found.over_boxes if each.over.workload == "dd-write")
    assert (ratio.on_each[0], ratio.over.n) == (None, 2)
    assert "n/a" in Page(sections.verdicts(found)).words


def test_a_box_without_figures_is_told_with_its_reason(across: RunComparison) -> None:
    (caveat,) = [each for each in across.caveats if each.code == "box-missing"]
    assert caveat.message == "db5 has no figures, and nothing here is about it: cannot be reached"
    assert words.sentences(across)[-1] == "Without db5: there are no figures of it (see the caveats)."
    assert "db5          no figures: cannot be reached" in words.comparison_text(across)


@pytest.mark.slow
def test_a_run_without_a_single_figure_is_a_missing_box() -> None:
    empty = on("c")
    empty.measurements = empty.measurements[:0]
    found = compare_runs([on("a"), on("b"), empty], factor="box")
    assert found.names == ("a", "b")
    assert dict(found.missing) == {"c": "its run has no figure"}


@pytest.mark.parametrize(
    ("boxes", "missing", "said", "got"),
    [
        ("a", {"b": "gone"}, "one box says nothing of others", "figures of a (b: gone)"),
        ("", {"a": "gone"}, "one box says nothing of others", "figures of none (a: gone)"),
        ("aba", {}, "a box has two runs here", "a"),
    ],
)
def test_fewer_than_two_boxes_and_two_runs_of_one_are_refused(
    boxes: str, missing: dict[str, str], said: str, got: str
) -> None:
    with pytest.raises(PlanError, match=said) as error:
        compare_runs([on(box) for box in boxes], factor="box", missing=missing)
    assert error.value.got == got


@pytest.mark.slow
def test_few_boxes_and_one_run_a_box_are_caveats() -> None:
    assert {each.code for each in compare_runs([on(box) for box in "abcd"], factor="box").caveats} == {
        "few-boxes",
        "one-run-a-box",
    }
    assert {each.code for each in compare_runs([on(box) for box in "abcde"], factor="box").caveats} == {"one-run-a-box"}


@pytest.mark.slow
def test_boxes_that_are_one_machine_are_a_caveat() -> None:
    """Trap: three names of one server, counted as three servers."""
    found = compare_runs(
        [on("a", hostname="db"), on("b"), on("c", hostname="db"), on("d", hostname="db", cpu_model="x")], factor="box"
    )
    (caveat,) = [each for each in found.caveats if each.code == "one-machine"]
    assert caveat.message.startswith("a and c have the same host name (db) and processor. ")
    assert {(each.area, each.what) for each in found.differences if each.known} == {
        ("machine", "hostname"),
        ("machine", "cpu_model"),
    }


@pytest.mark.slow
def test_two_boxes_of_one_block_say_what_they_can() -> None:
    found = compare_runs([on("a", blocks=1), on("b", blocks=1)], factor="box")
    assert all(each.over.n == 2 for each in found.over_boxes)
    assert all(math.isnan(each.p_adjusted) for each in found.cells)
    assert sections.cell_by_cell(found)
    assert sections.overview(found)


@pytest.mark.slow
def test_runs_without_comparisons_have_figures_only() -> None:
    boxes = [on("a"), on("b", factor=2.0)]
    for each in boxes:
        each.comparisons = []
    found = compare_runs(boxes, factor="box")
    assert found.over_boxes == ()
    said = words.sentences(found)
    assert said[0].startswith("The runs have no comparison")
    assert said[1].startswith(f"{len(found.cells)} of {len(found.cells)} figures differ from box to box by more than")
    assert sections.overview(found).count("<svg") == 1
    assert "no comparison" in sections.verdicts(found)


# ── words, data, pictures ────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_the_answer_is_told_first(across: RunComparison) -> None:
    said = words.sentences(across)
    assert re.fullmatch(r"Over 4 boxes against ext4: .* comparisons\.", said[0])
    assert "n = 4 boxes" in said[1]
    further = next(each for each in said if each.startswith("On one more such box"))
    first = verdicts.strongest_first([each.over for each in across.over_boxes])[0]
    assert f"for {first.candidate} to {first.baseline}" in further


@pytest.mark.slow
def test_what_is_undecided_over_boxes_says_how_many_would_decide() -> None:
    found = compare_runs([on("a"), on("b", ratio=1.5), on("c", ratio=0.7)], factor="box")
    said = " ".join(words.sentences(found))
    assert "Over 3 boxes nothing is shown to be faster or slower than ext4" in said
    assert "n = 3 boxes" in said
    assert re.fullmatch(
        r"Measure more boxes; (up to )?\d+ boxes (needed|suffice only with .*)\.", words.next_step(found)
    )
    undecided = [each.over for each in found.over_boxes if each.over.verdict == "undecided"]
    assert any(each.needed and each.needed > 3 for each in undecided)
    assert any(re.search(r"up to \d+ boxes needed", verdicts.needed(each)) for each in undecided)


@pytest.mark.long
@pytest.mark.slow
def test_the_parts_of_the_sweep_notebook_show_all_boxes(across: RunComparison) -> None:
    assert "few-boxes" in {each.code for each in across.caveats}
    assert "Few boxes" in Page(sections.caveats(across)).words
    assert sections.overview(across).count("<svg") == 2
    order = Page(sections.run_order(across)).words
    assert all(name in order for name in across.names)
    assert list(across.trials.index.get_level_values("box").unique()) == list(across.names)
    assert sections.answer(across.runs[0]) != sections.answer(across)
