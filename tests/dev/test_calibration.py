"""The calibration in a short form, beside the tables in docs/data/calibration.json that the long form made."""

from __future__ import annotations

import math
import re
from dataclasses import astuple, replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from data_files import kept_shares
from mountlab.analysis.measurements import measurement_frame
from mountlab.analysis.sweep_comparisons import comparisons
from mountlab.checks.few import COVERED_BY_FEW, rests_on
from mountlab.core.model import Measurement, Trial
from mountlab.core.places import SHIPPED
from mountlab.stats import compare, estimate, shape, simulated
from mountlab_dev import evidence
from mountlab_dev.__main__ import main
from mountlab_dev.calibration import TABLES, conditions, gates, processes, rules, tables
from mountlab_dev.calibration.capacities import searched_capacities
from mountlab_dev.calibration.document import Share, Table, as_data
from mountlab_dev.calibration.tables import FULL, Effort
from rows import every_row
from scipy import stats
from sweeps import DD_WRITE, TMPFS, sweep

TINY = Effort(samples=6, sweeps=1, looks=5, checks=4, series=2, gates=3)
BRIEF = Effort(samples=2_000, sweeps=20, looks=500, checks=250, series=16, gates=12)
"""Enough: a share of 20 % where the data have 3 % fails in every third figure of 20 sweeps, and a table has dozens."""

CHEAP = (
    "coverage_of_means", "coverage_of_few", "coverage_of_ratios", "coverage_of_uneven_ratios", "means_of_stopped_runs",
    "trials_needed", "over_few_boxes", "missing_blocks", "rounded_means", "figures_with_limits",
    "made_once_or_in_each_block", "missed_after_extensions", "coverage_of_row_ratios",
)  # fmt: skip
"""Tables whose short form takes half a second at most. What the others say is simulated beside the functions that hold
it, too: in test_stats_comparisons, _margin, _changes, _over_boxes and _power, test_sequential, _histograms, _rounding,
_shape and test_timeouts."""

each_table = pytest.mark.parametrize(
    "make",
    [each if each.__name__ in CHEAP else pytest.param(each, marks=pytest.mark.long) for each in TABLES],
    ids=lambda make: make.__name__,
)
each_process = every_row("process", [each for each, _ in tables.SHOULD], ids=lambda process: process.name)


@cache
def brief(make: tables.Maker) -> Table:
    return make(BRIEF)


def cases_in_full(table: Table) -> int:
    """How many cases the long form simulates for each figure of this table of few."""
    return int(dict(zip(astuple(BRIEF), astuple(FULL), strict=True))[table.cases])


BEARABLE = ("normal", "lognormal, σ 0.05", "lognormal, σ 0.3", "gamma", "shifted gamma, shape 4")
"""How the names of those processes begin whose shape a t interval can bear under a stopping rule."""


def at_least(rate: float, share: float, of: int) -> bool:
    """Whether `rate` of so many cases is not below `share` by more than chance does in one of 1,000 figures."""
    return bool(round(rate * of) >= stats.binom.ppf(0.001, of, share))


def at_most(rate: float, share: float, of: int) -> bool:
    return bool(round(rate * of) <= stats.binom.ppf(0.999, of, share))


# --- the data are of this code ----------------------------------------------------------------------------------------


@pytest.mark.slow
@each_table
def test_the_data_have_the_tables_of_this_code(make: tables.Maker) -> None:
    """The words above, the number of cases, the names of rows and columns: all that does not depend on chance."""
    table = brief(make)
    kept = replace(table, cases=cases_in_full(table))
    in_git = evidence.captioned("calibration", table.name)
    assert in_git.caption == kept.caption(), "run `make calibrate`: docs/data is of another version of the code"
    assert in_git.lines[0] == list(table.header)
    assert set(kept_shares(table.name)) == set(table.shares())


@pytest.mark.slow
@each_table
def test_a_short_calibration_gives_the_figures_of_the_data_but_for_chance(make: tables.Maker) -> None:
    """Two shares of the same truth differ by more than 4.5 standard errors in one of 100,000 cases."""
    table = brief(make)
    kept, many = kept_shares(table.name), cases_in_full(table)
    chosen = {place for place in table.shares() if place[0].endswith("as precise")}
    assert not chosen or make is searched_capacities
    for place, share in table.shares().items():
        if place in chosen:
            continue  # of the grid that is the cheapest by the simulation itself: few cases find another one
        pooled = (share.hits + kept[place] * many) / (share.of + many)
        error = math.sqrt(max(pooled * (1 - pooled), 1e-3) * (1 / share.of + 1 / many))
        assert abs(share.rate - kept[place]) < 4.5 * error + 0.001, (
            f"{place}: {share}, and in the data {kept[place]:.1%}"
        )


SAID = {
    "89 % with a heavy tail": ("means", "lognormal, σ 1", "n = 5"),
    "81 % with two modes": ("means", "two modes, 30 % at 2 times the speed", "n = 5"),
    "67 % with drift": ("means", "drifting by 4 sd", "n = 5"),
    "with one side drifting 70 %": ("uneven-ratios", "drifting by 4 sd", "n = 5"),
    "a 95 % interval covers 92 %": ("stopping", "normal, cv 5 %", "not corrected: 5 to 40 blocks"),
    "95.8 % for shape 2": ("stopping", "shifted gamma, shape 2, cv 5 %", "5 to 40 blocks"),
    "92.8 % for exponential": ("stopping", "shifted gamma, shape 1, cv 5 %", "5 to 40 blocks"),
    "a single cell misses 4.4 %": ("stopping-neighbours", "0.3, 1 cell", "allowed for: missed"),
    "without the allowance 11.0 %": ("stopping-neighbours", "0.3, 1 cell", "independent: missed"),
    "by 0.6 12.7 and 28.3 %": ("stopping-neighbours", "0.6, 1 cell", "independent: missed"),
    "of four cells 4.7 %": ("stopping-neighbours", "0.6, 4 cells", "allowed for: missed"),
    "92 % for ten boxes": ("stopped-boxes", "over boxes: one side skewed, the other calm (cv 0.5 %)", "10 boxes"),
    "within ± 3 % in 70 % of cases": ("trials-needed", "3 repeats", "mean within"),
    "at n = 3 12 %": ("false-verdicts", "two modes, 30 % at 2 times the speed", "n = 3"),
    "would fail by mistake in up to 92 %": ("gate-runs", "the same, 40 blocks, as if alike: any fails", "5 %"),
    "where runs differ by 5 %; with it in 2 %": (
        "gate-runs",
        "all at the margin, 10 figures, assumed: any fails",
        "5 %",
    ),
    "at most 1.0 %": ("flips", "1.10 fresh, 1.00 aged; 9 more workloads like it", "flips, n = 20"),
    "20 % where runs correlate by 0.6": ("changes", "nothing changed, figures correlate by 0.6", "100 runs"),
}
"""Words of METHODS.md, and the place of their figure in the tables."""


@every_row(("words", "place"), SAID.items(), ids=SAID)
def test_a_figure_that_methods_repeats_is_that_of_the_table(words: str, place: tuple[str, str, str]) -> None:
    name, row, column = place
    assert words in " ".join((SHIPPED / "METHODS.md").read_text().split())
    figure = re.findall(r"(\d+(?:\.\d)?) %", words)[-1]
    decimals = len(figure.partition(".")[2])
    assert f"{100 * kept_shares(name)[row, column]:.{decimals}f}" == figure


# --- what the tables say is what the project claims -------------------------------------------------------------------


def column(name: str, heading: str) -> dict[str, float]:
    return {row: share for (row, column), share in kept_shares(name).items() if column == heading}


@every_row("n", tables.SIZES)
def test_intervals_of_normal_trials_cover_95_percent(n: int) -> None:
    for table, row in (("means", "normal, cv 5 %"), ("ratios", "normal, cv 5 %"), ("means", "lognormal, σ 0.05")):
        share = kept_shares(table)[row, f"n = {n}"]
        assert at_least(share, 0.95, FULL.samples)
        assert at_most(share, 0.95, FULL.samples), "an interval that is too wide claims too little"


@every_row("n", tables.SIZES)
def test_ratios_of_like_sides_cover_95_percent_whatever_the_trials(n: int) -> None:
    assert all(at_least(share, 0.945, FULL.samples) for share in column("ratios", f"n = {n}").values())


@pytest.mark.parametrize("rule", tables.RULES, ids=lambda rule: f"{rule.min} to {rule.max}")
def test_after_a_stopping_rule_94_percent_are_covered_where_a_t_interval_can(rule: tables.Until) -> None:
    """Trap: rules that stop early and cover 86 or 91 % at a claim of 95 %."""
    covered = column("stopping", f"{rule.min} to {rule.max} blocks")
    bearable = {row: share for row, share in covered.items() if row.startswith(BEARABLE)}
    assert len(bearable) == 5
    assert all(at_least(share, 0.94, FULL.looks) for share in bearable.values()), bearable
    careless = column("stopping", "not corrected: 5 to 40 blocks")
    assert all(careless[row] < 0.935 for row in bearable), "the simulation would show a missing correction"


def test_few_runs_are_extended_and_then_miss_where_a_t_interval_can_bear_the_trials() -> None:
    for heading in ("while undecided", "as many again", "as many as seem missing"):
        missed = {row: share for row, share in column("extended", heading).items() if row.startswith(BEARABLE)}
        assert len(missed) == 4
        assert all(at_most(share, 0.05, FULL.checks) for share in missed.values()), missed
    assert column("extended", "while undecided, not corrected")["normal, cv 5 %"] > 0.1


def test_ratios_that_a_rule_ended_are_as_narrow_as_asked_and_hold_together() -> None:
    wider, false, hold = (column("stopping-ratios", heading) for heading in ("wider", "false", "hold"))
    assert set(wider.values()) == {0.0}
    assert all(at_most(share, 0.05, FULL.sweeps) for share in false.values())
    assert all(at_least(share, 0.95, FULL.sweeps) for share in hold.values())


def test_runs_that_a_rule_ended_are_covered_over_boxes_and_differ_no_more_often_than_is_said() -> None:
    covered = [share for (row, _), share in kept_shares("stopped-boxes").items() if "calm" not in row]
    assert all(at_least(share, 0.945, FULL.checks) for share in covered)
    differ = [share for (row, _), share in kept_shares("stopped-runs").items() if row == "like runs differ"]
    assert all(at_most(share, 0.05, FULL.sweeps) for share in differ)


@every_row("boxes", [2, 3, 5, 10])
def test_intervals_over_few_boxes_cover_95_percent_whatever_differs_between_them(boxes: int) -> None:
    found = column("boxes", f"{boxes} boxes")
    ours = {row: share for row, share in found.items() if row.startswith(("over boxes", "a further box"))}
    assert len(ours) == 10
    assert all(at_least(share, 0.95, FULL.samples) for row, share in ours.items() if not row.endswith("skewed")), ours
    assert found["all blocks as one sample: boxes differ by 20 %"] < 0.7, "the simulation would show it"
    assert found["weighted (Hartung and Knapp): boxes differ by 3 %"] < 0.945, "why no weights are used"


def test_the_parts_of_the_variance_are_covered() -> None:
    found = kept_shares("parts")
    covered = {place: share for place, share in found.items() if not place[1].startswith("differ")}
    assert len(covered) == 18
    assert all(at_least(share, 0.945, FULL.checks) for share in covered.values()), covered
    false = {place: share for place, share in found.items() if place[0] == "boxes alike" and "differ" in place[1]}
    assert all(at_most(share, 0.05, FULL.checks) for share in false.values())


@every_row("n", [5, 10, 20, 40])
def test_the_gate_is_wrong_as_seldom_as_it_says(n: int) -> None:
    """At the margin, where either is a mistake; and where runs differ by themselves, with several of the baseline."""
    found = column("gate", f"n = {n}")
    rows = [
        "nothing changed: any fails", "all are at the margin: any fails", "all are at the margin: any passes",
        "one is twice the margin worse: it passes",
        "runs differ by 3 %, all are at the margin, one run beside 5: any fails",
    ]  # fmt: skip
    assert all(at_most(found[row], 0.05, FULL.gates) for row in rows), {row: found[row] for row in rows}


@every_row("sd", ["0 %", "1 %", "1.7 %", "3 %", "5 %"])
def test_gates_hold_their_error_where_runs_differ_by_themselves(sd: str) -> None:
    """With what is assumed, with earlier runs, and with three runs a side."""
    found = column("gate-runs", sd)
    rows = [row for row in found if row.endswith("any fails") and "alike" not in row and "twice" not in row]
    assert len(rows) == 7
    assert all(at_most(found[row], 0.05, FULL.gates) for row in rows), {row: found[row] for row in rows}
    assert sd < "3" or found["the same, 40 blocks, as if alike: any fails"] > 0.4, "the simulation would show it"


@every_row("sd", ["0 %", "1 %", "1.7 %"])
def test_three_runs_a_side_tell_where_the_margin_is_three_times_what_runs_differ_by(sd: str) -> None:
    found = column("gate-runs", sd)
    rows = [row for row in found if row.startswith("three runs a side")]
    assert len(rows) == 3
    assert all(at_least(found[row], 0.8, FULL.gates) for row in rows), {row: found[row] for row in rows}


@every_row("sd", ["0 %", "1 %", "1.7 %", "3 %", "5 %"])
def test_intervals_of_two_runs_cover_what_they_claim(sd: str) -> None:
    found = column("gate-runs", sd)
    rows = [row for row in found if row.startswith("two runs alike")]
    assert len(rows) == 4
    assert all(at_least(found[row], 0.95, FULL.gates) for row in rows), {row: found[row] for row in rows}


def test_the_gate_is_wrong_as_seldom_as_it_says_over_all_looks() -> None:
    found = column("gate", f"n = {gates.BLOCKS[0]}")
    rows = [
        f"at the margin, asked after every {unit}: it {outcome}"
        for unit in ("block up to 100", "run up to 16")
        for outcome in ("fails", "passes")
    ]
    assert all(at_most(found[row], 0.05, FULL.gates) for row in rows), {row: found[row] for row in rows}
    assert found["every block up to 100 without correction: it fails"] > 0.1, "the simulation would show it"


@pytest.mark.parametrize("n", [5, 10])
def test_as_many_blocks_as_the_gate_asks_for_do_tell(n: int) -> None:
    found = column("gate", f"n = {n}")
    assert found["as many as needed, nothing changed: it passes"] > 0.75
    assert found["as many as needed, twice the margin worse: it fails"] > 0.75
    assert at_most(found["as many as needed, twice the margin worse: it passes"], 0.05, FULL.gates)


@every_row("count", rules.FIXED)
def test_so_many_fixed_repeats_are_as_near_as_theory_says(count: int) -> None:
    """A second way to the same figures: the mean of n normal trials has a standard deviation of cv / √n."""
    near = 2 * stats.norm.cdf(rules.HALF_WIDTH * math.sqrt(count) / rules.CV) - 1
    found = kept_shares("trials-needed")[f"{count} repeats", "mean within"]
    assert found == pytest.approx(near, abs=4.5 * math.sqrt(near * (1 - near) / FULL.looks) + 0.0005)


def test_only_until_gives_the_precision_that_was_asked_for_and_covers_it() -> None:
    found = kept_shares("trials-needed")
    ours = "`until: half_width: 3 %`, 5 to 40"
    assert found[ours, "interval within"] > 0.985
    assert at_least(found[ours, "covered"], 0.95, FULL.looks)
    by_spread = [row for row, heading in found if row.startswith("standard deviation") and heading == "covered"]
    assert len(by_spread) == 4
    assert all(found[row, "interval within"] < 0.25 for row in by_spread)
    assert found["usual interval within 3 %, 5 to 40", "covered"] < 0.935, "the simulation would show the looks"


def test_a_rule_of_spread_stops_where_it_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard deviations of three, four, ... values by numpy, one after the other."""
    values = np.random.default_rng(3).normal(1, 0.05, (50, 9))
    monkeypatch.setattr(rules, "_drawn", lambda *_: values)
    taken = rules.while_spread(50, 0.04, 9)
    for sample, count in zip(values, taken.counts, strict=True):
        spreads = [sample[:n].std(ddof=1) / sample[:n].mean() for n in range(3, 10)]
        assert count == next((n for n, spread in enumerate(spreads, start=3) if spread < 0.04), 9)
    assert {3, 9} < set(taken.counts)


def test_identical_cells_are_called_different_in_at_most_5_percent_of_sweeps() -> None:
    """Trap: forty comparisons and no correction. The one exception is on the page, with its figure."""
    found = kept_shares("false-verdicts")
    too_many = {place for place, share in found.items() if not at_most(share, 0.05, FULL.sweeps)}
    exception = {("two modes, 30 % at 2 times the speed", "n = 3")}
    careless = {place for place in found if place[0] == "normal, cv 5 %, without any correction"}
    assert too_many == exception | careless
    assert len(careless) == 5


def test_an_effect_that_matters_is_rarely_called_the_same() -> None:
    found = kept_shares("power")
    assert all(at_most(share, 0.05, FULL.sweeps) for (row, _), share in found.items() if row.startswith("2 %"))


def test_the_power_is_that_of_the_noncentral_t_distribution() -> None:
    """A second way to the same figures: log ratios with standard deviation √2 cv."""
    for n in tables.VERDICT_SIZES:
        shift = math.log(1.05) / (0.05 * math.sqrt(2)) * math.sqrt(n)
        expected = stats.nct.sf(stats.t.ppf(0.975, n - 1), n - 1, shift)
        share = kept_shares("power")["5 % found, the only comparison of the sweep", f"n = {n}"]
        assert share == pytest.approx(expected, abs=4 * math.sqrt(expected * (1 - expected) / FULL.sweeps) + 0.01)


def test_a_planted_flip_is_found_in_20_of_20_runs_and_without_one_at_most_1_says_so() -> None:
    """Ratios of 1.10 and 0.91 in two states, a cv of 3 %, ten blocks."""
    assert conditions.found(conditions.Truth(1.10, 0.91), 10, 20)["flips"] == 20
    for truth in conditions.TRUTHS:
        if not truth.flips:
            assert conditions.found(truth, 10, 20)["flips"] <= 1


def test_flips_that_are_none_are_rarer_than_false_verdicts() -> None:
    for n in conditions.BLOCKS:
        shares = column("flips", f"flips, n = {n}")
        assert all(at_most(shares[truth.name], 0.025, FULL.sweeps) for truth in conditions.TRUTHS if not truth.flips)


def test_changes_that_are_none_are_claimed_in_at_most_5_percent_of_sweeps() -> None:
    for n in conditions.BLOCKS:
        shares = column("flips", f"changes, n = {n}")
        same = [truth.name for truth in conditions.TRUTHS if truth.fresh == truth.aged]
        assert all(at_most(shares[name], 0.05, FULL.sweeps) for name in same)


@every_row("n", tables.SIZES)
def test_intervals_of_a_ratio_of_ratios_cover_95_percent_whatever_the_trials(n: int) -> None:
    assert all(at_least(share, 0.945, FULL.samples) for share in column("row-ratios", f"n = {n}").values())


def test_quiet_cells_raise_each_caveat_in_about_one_percent() -> None:
    for (row, heading), share in kept_shares("caveats").items():
        if row in ("normal, cv 5 %", "lognormal, σ 0.05"):
            assert at_most(share, 0.016 if heading.startswith("two modes") else 0.0115, FULL.checks), heading


@pytest.mark.slow
def test_thirty_trials_show_every_trouble_that_they_should() -> None:
    """Ten do not show all of it, as the table says."""
    marked = {place for place, share in tables.raised(TINY).shares().items() if share.meant and place[1].endswith("30")}
    found = kept_shares("caveats")
    assert len(marked) == 11
    assert all(found[place] > 0.5 for place in marked), {place: found[place] for place in marked}


def test_forty_quiet_cells_rarely_give_a_warning() -> None:
    for (row, heading), share in kept_shares("warnings").items():
        if row in ("normal, cv 5 %", "lognormal, σ 0.05", "lognormal, σ 0.3", "gamma, shape 4"):
            limit = 0.05 if heading.startswith("two modes") else 0.01
            rounded = 0.0005
            assert at_most(max(0.0, share - rounded), limit / tables.CELLS, FULL.checks), (row, heading)


@pytest.mark.slow
def test_a_caveat_of_the_tables_is_one_of_a_single_sample() -> None:
    process = processes.stepping()
    rows = tables._suspected(process, 30, 40)
    single = [shape.step(row)[1] < shape.SUSPICIOUS_P["step"] for row in rows.tolist()]
    places = tables.Table("", "", 0, tables.raised(TINY).header, ((process.name, tables._raised(process, (), 40)),))
    assert places.shares()[process.name, "step, n = 30"].hits == sum(single)
    assert any(single)


def test_what_the_report_says_of_few_trials_is_what_the_table_says() -> None:
    """Within the rounding of a whole percent, and of all that 90 % or fewer intervals cover."""
    in_words = {
        "a heavy tail": "lognormal, σ 1",
        "two modes": "two modes, 30 % at 2 times the speed",
        "a drift": "drifting by 4 sd",
    }
    found = kept_shares("few")
    assert set(COVERED_BY_FEW) == set(tables.FEW)
    for n, told in COVERED_BY_FEW.items():
        for start, row in in_words.items():
            share = found[row, f"n = {n}"]
            said = next((percent for what, percent in told.items() if what.startswith(start)), None)
            assert (share > 0.9 - 0.005) if said is None else abs(said - 100 * share) <= 0.6, (n, row)


def test_few_trials_are_told_what_their_interval_rests_on() -> None:
    text = rests_on(3)
    assert text.startswith(
        "n = 3 cannot show the shape of the spread, so the interval rests on trials that are independent"
    )
    assert (
        "with a heavy tail (lognormal, σ 1) 89\u00a0%, with two modes (30\u00a0% of the trials twice as fast) 81\u00a0%"
        in rests_on(5)
    )
    assert "drift" not in text
    assert "with a drift (4 standard deviations over the run) 67\u00a0% would" in rests_on(5)
    assert [rests_on(n) for n in (0, 1, 10, 30)] == [""] * 4


# --- the simulation is of the code that makes the reports -------------------------------------------------------------


def test_an_interval_of_the_tables_is_one_of_a_report() -> None:
    process = simulated.lognormal(0.3)
    share = tables.mean_covered(process, 5, 50)
    samples = process.draw(tables.generator("mean", process.name, 5), (50, 5))
    assert share.hits == sum(each.low <= process.mean <= each.high for each in map(estimate, samples.tolist()))


def test_a_ratio_of_the_tables_is_one_of_a_report() -> None:
    process = simulated.gamma()
    share = tables.ratio_covered(process, process, 4, 50)
    ours, theirs = process.sides(tables.generator("ratio", process.name, process.name, 4), 2, (50, 4))
    ratios = [compare(list(zip(*pair, strict=True))) for pair in zip(ours.tolist(), theirs.tolist(), strict=True)]
    assert share.hits == sum(each.low <= 1 <= each.high for each in ratios)


def test_the_verdicts_of_the_tables_are_those_of_a_whole_analysis() -> None:
    """A sweep of ten file systems, of which two differ, from measurements to comparisons."""
    cells = simulated.normal(0.02).sides(np.random.default_rng(4), 10, (1, 6))[:, 0]
    cells[3] *= 1.2
    cells[7] *= 0.8
    names = [f"fs{i}" for i in range(10)]
    resolved = sweep(filesystems=dict.fromkeys(names, TMPFS), workloads={"dd-write": DD_WRITE}, baseline="fs0")
    rows = [
        (trial(name, block), Measurement(metric="write_bandwidth", value=value, unit="B/s"))
        for name, values in zip(names, cells.tolist(), strict=True)
        for block, value in enumerate(values, 1)
    ]
    whole = comparisons(resolved.sweep, measurement_frame(rows))
    assert tables.verdicts(*tables._against_first(cells)) == [each.verdict for each in whole]
    assert [each.candidate for each in whole if each.verdict == "faster"] == ["fs3"]


def trial(filesystem: str, block: int) -> Trial:
    return Trial(
        trial_id=f"{filesystem}-{block}",
        block=block,
        warmup=False,
        cell=f"{filesystem}/dd-write",
        filesystem=filesystem,
        workload="dd-write",
        tool="dd",
        factors={},
        mount="",
        status="ok",
        reason="",
        started_at="",
        elapsed_s=1.0,
    )


# --- processes --------------------------------------------------------------------------------------------------------


@each_process
def test_a_process_has_the_means_that_it_claims(process: simulated.Process) -> None:
    """By 200,000 trials; of drift and steps the first of two counts, which is the truth that they are held to."""
    changing = process.name.startswith(("drifting", "one step", "one trial"))
    values = process.draw(np.random.default_rng(1), (100_000, 2))[:, : 1 if changing else 2]
    if process.name.startswith("one trial"):
        values = values[values < 1.3]
    for claimed, found in ((process.mean, values), (process.log_mean, np.log(values))):
        assert found.mean() == pytest.approx(claimed, abs=5 * found.std() / math.sqrt(found.size) + 1e-6)
    assert values.min() > 0


def test_trials_are_autocorrelated_as_claimed() -> None:
    values = simulated.autocorrelated(0.5).draw(np.random.default_rng(2), (50_000, 6))
    assert np.corrcoef(values[:, 2], values[:, 3])[0, 1] == pytest.approx(0.5, abs=0.02)
    assert values.std(axis=0) == pytest.approx([0.05] * 6, rel=0.02)


def test_drift_and_step_go_as_far_as_claimed() -> None:
    rng = np.random.default_rng(3)
    drifting = simulated.drifting(4).draw(rng, (20_000, 5)).mean(axis=0)
    assert drifting == pytest.approx([1, 0.95, 0.9, 0.85, 0.8], abs=0.003)
    stepping = processes.stepping(4).draw(rng, (20_000, 5)).mean(axis=0)
    assert stepping == pytest.approx([1, 1, 0.8, 0.8, 0.8], abs=0.003)


def test_what_the_box_does_acts_on_all_sides_alike() -> None:
    one, other = simulated.drifting(4).sides(np.random.default_rng(5), 2, (20_000, 5))
    assert np.log(one / other).mean(axis=0) == pytest.approx([0] * 5, abs=0.003)
    one, other = simulated.autocorrelated().sides(np.random.default_rng(5), 2, (20_000, 5))
    assert np.corrcoef(one[:, 0], other[:, 0])[0, 1] == pytest.approx(0.5, abs=0.03)


@every_row("name", simulated.KINDS)
@every_row("cv", [0.02, 0.3])
def test_a_process_for_a_coefficient_of_variation_has_it(name: str, cv: float) -> None:
    """Of a process that drifts it is that of the first trial."""
    process = simulated.KINDS[name](cv)
    values = process.draw(np.random.default_rng(6), (200_000, 1))
    assert values.std() / values.mean() == pytest.approx(cv, rel=0.25 if name == "two modes" else 0.03)


# --- as data ----------------------------------------------------------------------------------------------------------


ROWS = (("a", (Share(949, 1000), None)), ("b", (Share(5, 1000, meant=True), Share(1000, 1000))))
SAMPLE = Table("x", "What it is.", 1000, ("trials", "n = 3", "n = 5"), ROWS)


def test_a_table_is_markdown() -> None:
    assert SAMPLE.markdown().splitlines() == [
        "What it is. In percent; 1,000 simulated for each figure.",
        "",
        "| trials | n = 3 | n = 5 |",
        "|---|---:|---:|",
        "| a | 94.9 | – |",
        "| b | **0.5** | 100.0 |",
    ]


def test_a_table_is_kept_as_data_and_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "DATA", tmp_path)
    (tmp_path / "calibration.json").write_text(as_data([SAMPLE]))
    assert str(evidence.captioned("calibration", "x")) == SAMPLE.markdown()
    assert kept_shares("x") == pytest.approx({("a", "n = 3"): 0.949, ("b", "n = 3"): 0.005, ("b", "n = 5"): 1.0})


# --- the verb ---------------------------------------------------------------------------------------------------------


SOME = tuple(make for make in TABLES if make.__name__ in CHEAP)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some tables of few cases each: that each table is kept is tested above."""
    for name in ("FULL", "SHORT"):
        monkeypatch.setattr(f"mountlab_dev.calibration.tables.{name}", TINY)
    monkeypatch.setattr("mountlab_dev.calibration.TABLES", SOME)


@pytest.mark.slow
def test_the_short_form_only_shows_its_tables(
    tiny: None, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "DATA", tmp_path)
    assert main(["calibrate", "--short"]) == 0
    assert capsys.readouterr().out.count("simulated for each figure.") == len(SOME)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_long_form_keeps_them_as_data(
    tiny: None, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    in_git = {make.__name__: kept_shares(make(TINY).name) for make in SOME}
    monkeypatch.setattr(evidence, "DATA", tmp_path)
    assert main(["calibrate"]) == 0
    for make in SOME:
        table = make(TINY)
        assert str(evidence.captioned("calibration", table.name)) == table.markdown(), "the same seeds, the same table"
        assert kept_shares(table.name).keys() == in_git[make.__name__].keys()
        assert kept_shares(table.name) != in_git[make.__name__]
    assert "written: " in capsys.readouterr().out
