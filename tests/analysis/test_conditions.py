"""Whether a state or a neighbour changes the answer of a run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pytest
from mountlab.analysis.conditions import effects_of, shifts_of
from mountlab.analysis.example import ExampleRun
from mountlab.analysis.frames import condition_frame
from mountlab.analysis.sweep_comparisons import comparisons
from mountlab.core.findings import Caveat, Comparison
from mountlab.core.model import Extension, Until
from rows import every_row
from scipy import stats
from state_runs import STATES, TRUE, state_run, state_sweep

NAN = math.nan
Level = Mapping[str, str]

# --- which cells are set beside each other ----------------------------------------------------------------------------


@every_row(
    "levels, pairs",
    [
        ([], []),
        ([{"state": "aged"}], []),
        ([{"state": "aged"}, {"state": "fresh"}], [("state", "aged", "fresh")]),
        ([{"state": "full"}, {"state": "aged"}], [("state", "aged", "full")]),
        ([{"beside": "none"}, {"beside": "backup+web"}], [("beside", "backup+web", "none")]),
        ([{"bs": "4KiB"}, {"bs": "8KiB"}], []),
        ([{"state": "fresh", "bs": "4KiB"}, {"state": "aged", "bs": "8KiB"}], []),
    ],
)
def test_each_level_is_set_beside_fresh_or_none_else_beside_the_first(
    levels: Sequence[Level], pairs: Sequence[tuple[str, str, str]]
) -> None:
    assert [shift[:3] for shift in shifts_of(state_sweep(levels))] == pairs


def test_states_are_compared_beside_each_neighbour_and_neighbours_in_each_state() -> None:
    levels = [{"state": state, "beside": beside} for state in ("fresh", "aged") for beside in ("none", "backup")]
    shifts = [(shift.workload.label, shift.before.label) for shift in shifts_of(state_sweep(levels))]
    assert shifts == [
        ("app state=aged beside=none", "app state=fresh beside=none"),
        ("app state=aged beside=backup", "app state=fresh beside=backup"),
        ("app state=fresh beside=backup", "app state=fresh beside=none"),
        ("app state=aged beside=backup", "app state=aged beside=none"),
    ]


# --- what is found ----------------------------------------------------------------------------------------------------


def test_a_planted_flip_is_found_with_what_each_side_keeps() -> None:
    effects = effects_of(state_run(state_sweep(STATES), TRUE))
    (change,) = effects.changes
    assert (change.condition, change.level, change.reference, change.verdict) == ("state", "aged", "fresh", "flips")
    assert (change.before.verdict, change.after.verdict) == ("faster", "slower")
    assert [kept.ratio.candidate for kept in effects.kept] == ["ext4", "btrfs"]
    for ratio, true in ((change.baseline_kept, 0.61), (change.kept, 0.5046), (change.change, 0.91 / 1.10)):
        assert ratio.joint.low < true < ratio.joint.high


def test_the_ratio_of_ratios_is_that_of_the_differences_inside_blocks() -> None:
    measured = state_run(state_sweep(STATES), TRUE)
    (change,) = effects_of(measured).changes
    cells = [f"{name}/app state={state}" for state in ("aged", "fresh") for name in ("btrfs", "ext4")]
    a, b, c, d = (np.log(measured.of_cells[cell]["write_iops"]) for cell in cells)
    difference = (a - b) - (c - d)
    assert change.change.ratio == pytest.approx(math.exp(difference.mean()))
    assert change.change.p == pytest.approx(stats.ttest_1samp(difference, 0).pvalue, rel=1e-6)
    kept = stats.ttest_rel(a, c)
    assert change.kept.p == pytest.approx(kept.pvalue, rel=1e-6)


@every_row(
    "means, cv, verdict",
    [
        (TRUE, 0.03, "flips"),
        ({**TRUE, "btrfs aged": 671.0}, 0.001, "does not change"),
        ({**TRUE, "btrfs aged": 671.0}, 0.05, "undecided"),
        ({**TRUE, "btrfs aged": 1342.0}, 0.03, "changes"),
    ],
)
def test_verdicts_of_a_change(means: Mapping[str, float], cv: float, verdict: str) -> None:
    (change,) = effects_of(state_run(state_sweep(STATES), means, cv=cv)).changes
    assert change.verdict == verdict


def test_a_tiny_flip_within_the_smallest_effect_is_none() -> None:
    """Both ratios are shown to be the same within 2 %: so they do not lie on two sides of anything that matters."""
    means = {"ext4 fresh": 1000.0, "btrfs fresh": 1003.0, "ext4 aged": 1000.0, "btrfs aged": 997.0}
    (change,) = effects_of(state_run(state_sweep(STATES), means, cv=0.0005)).changes
    assert (change.before.verdict, change.verdict) == ("same", "does not change")


def test_changes_are_corrected_for_one_another_alone() -> None:
    """There are nine, beside ten ratios of the answer and eighteen figures that are kept."""
    many = [{"state": "fresh"}, *({"state": f"s{place}"} for place in range(9))]
    means = {f"{name} {level['state']}": 1000.0 for name in ("ext4", "btrfs") for level in many} | {"btrfs s4": 900.0}
    effects = effects_of(state_run(state_sweep(many), means))
    assert len(effects.changes) == 9
    assert len(effects.kept) == 18
    least = min((change.change for change in effects.changes), key=lambda one: one.p)
    assert least.p_adjusted == pytest.approx(9 * least.p)


def test_without_a_baseline_each_file_system_still_keeps_what_it_keeps() -> None:
    effects = effects_of(state_run(replace(state_sweep(STATES), baseline=None), TRUE))
    assert (len(effects.kept), len(effects.changes)) == (2, 0)


def test_a_state_that_a_file_system_lacks_is_left_out() -> None:
    asked = state_sweep(
        [*STATES, {"state": "snapshots"}],
        excluded=("ext4/app state=snapshots",),
    )
    effects = effects_of(state_run(asked, {**TRUE, "btrfs snapshots": 900.0}))
    assert [change.level for change in effects.changes] == ["aged"]
    assert [(kept.ratio.candidate, kept.level) for kept in effects.kept] == [
        ("ext4", "aged"), ("btrfs", "aged"), ("btrfs", "snapshots"),
    ]  # fmt: skip


def test_a_trial_at_its_time_limit_leaves_the_ratio_of_ratios_open_and_the_flip_decided() -> None:
    """Aged btrfs is slower than aged ext4 in every block, but it is not known by how much."""
    late = "btrfs/app state=aged"
    measured = state_run(state_sweep(STATES), TRUE, blocks=12, censored={late: frozenset(range(1, 13))})
    measured = replace(measured, of_cells={**measured.of_cells, late: {"write_iops": [NAN] * 12}})
    told = with_answer(measured, comparisons(measured.sweep, measured.measurements, measured.censored))
    (change,) = effects_of(told).changes
    assert change.verdict == "flips"
    assert (change.change.n, change.change.censored, change.change.verdict) == (0, 12, "undecided")
    assert change.kept.verdict == "slower"


def with_answer(measured: ExampleRun, answer: Sequence[Comparison]) -> ExampleRun:
    """The same run with other comparisons."""
    other = replace(measured)
    vars(other)["comparisons"] = answer
    return other


def test_what_is_not_to_be_used_has_no_change() -> None:
    error = Caveat(code="cache-served-read", severity="error", message="", scope="cell", subject="ext4/app state=aged")
    measured = state_run(state_sweep(STATES), TRUE, caveats=[error])
    unusable = [replace(one, verdict="not usable") for one in measured.comparisons if one.factors["state"] == "aged"]
    answer = [one for one in measured.comparisons if one.factors["state"] == "fresh"] + unusable
    effects = effects_of(with_answer(measured, answer))
    assert [change.verdict for change in effects.changes] == ["not usable"]
    assert [kept.ratio.verdict for kept in effects.kept] == ["not usable", "slower"]


def test_after_a_stopping_rule_the_interval_is_wider() -> None:
    until = Until(half_width=0.03, min=5, max=10)
    plain, looked = (
        effects_of(state_run(state_sweep(STATES, design=design), TRUE)).changes[0].change
        for design in ({}, {"until": until, "repeats": 10})
    )
    assert looked.own.high / looked.own.low > plain.own.high / plain.own.low
    assert looked.p > plain.p


def test_of_an_extended_run_only_blocks_count_that_were_planned_to_hold_all_four() -> None:
    """The aged state came later: its blocks are the second half."""
    before = state_sweep([{"state": "fresh"}], design={"repeats": 5})
    asked = state_sweep(
        STATES, design={"repeats": 10}, extended=Extension(before=before, at="2026-01-01T00:00:00+00:00")
    )
    measured = state_run(asked, TRUE)
    (change,) = effects_of(measured).changes
    assert change.change.n == 5


def test_the_table_has_a_row_for_each_figure_and_each_ratio() -> None:
    measured = state_run(state_sweep(STATES), TRUE)
    effects = effects_of(measured)
    frame = condition_frame(measured, [*effects.kept, *effects.changes])
    assert list(frame["candidate"]) == ["ext4", "btrfs", "btrfs"]
    assert list(frame["baseline"]) == ["ext4", "btrfs", "ext4"]
    assert list(frame["state"]) == ["aged"] * 3
    assert list(frame["flips"]) == [False, False, True]
    assert set(frame["reference"]) == {"fresh"}
