"""What a sweep will show, from the spread of an earlier run."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from facts import known
from mountlab.analysis.forecast import RATIOS, Forecast, Prediction, forecast
from mountlab.analysis.measurements import MEASUREMENT_COLUMNS
from mountlab.core.errors import PlanError
from mountlab.core.model import Sweep, Until
from mountlab.core.run_info import RunInfo
from mountlab.report.views.forecast import (
    blocks,
    curves,
    difference,
    explained,
    forecast_json,
    forecast_sentences,
    forecast_table,
    forecast_text,
)
from mountlab.stats import look_level, power, sequential
from mountlab.sweep.plan import MOUNT_S
from mountlab.sweep.sweep_file import resolve
from repetition import few_then_many
from rows import every_row
from scipy import stats
from sweeps import DD_READ, DD_WRITE, EXT4, TMPFS

FILESYSTEMS = {"tmpfs": TMPFS, "ext4": EXT4}
WORKLOADS = {"w": DD_WRITE, "r": DD_READ}


@dataclass
class Pilot:
    """What a forecast needs of a run."""

    sweep: Sweep
    trials: pd.DataFrame
    measurements: pd.DataFrame
    info: RunInfo = field(default_factory=lambda: RunInfo(run_id="p1", facts=known(hostname="bench-1", kernel="6.1")))


def planned(until: dict[str, Any] | None = None, **changes: Any) -> Sweep:
    """Eight blocks of two file systems and three workloads, or as many as a rule asks for."""
    times: dict[str, Any] = {"until": until} if until else {"repeats": 8}
    raw = {
        "name": "s",
        "question": "Why?",
        "filesystems": FILESYSTEMS,
        "workloads": WORKLOADS,
        "baseline": "ext4",
        **changes,
        "design": {"warmup": 1, **times, **changes.get("design", {})},
    }
    return resolve(raw, where="tests").sweep


def run(the_sweep: Sweep, *, n: int = 6, spread: float = 0.05, seed: int = 1, elapsed_s: float = 2.0) -> Pilot:
    """A pilot of n counted blocks and one of warm-up that is far off; every cell spreads by `spread`, ext4 by twice."""
    rng = np.random.default_rng(seed)
    trials, rows = [], []
    for block in range(n + 1):
        for cell in the_sweep.cells:
            scale = spread * (2 if cell.filesystem.name == "ext4" else 1)
            value = 1e9 * math.exp(rng.normal(0, scale)) if block else 1e12
            metric = "read_bandwidth" if cell.workload.name == "r" else "write_bandwidth"
            common = {"trial_id": f"t{len(trials)}", "block": block, "warmup": block == 0, "cell": cell.id}
            trials.append({**common, "status": "ok", "elapsed_s": elapsed_s})
            rows.append(
                {
                    **common,
                    "filesystem": cell.filesystem.name,
                    "workload": cell.workload.name,
                    "tool": "dd",
                    "factors": dict(cell.workload.factors),
                    "metric": metric,
                    "label": "",
                    "unit": "B/s",
                    "value": value,
                }
            )
    return Pilot(the_sweep, pd.DataFrame(trials), pd.DataFrame(rows, columns=list(MEASUREMENT_COLUMNS)))


def logs(pilot: Pilot, cell: str) -> np.ndarray:
    own = pilot.measurements[(pilot.measurements["cell"] == cell) & ~pilot.measurements["warmup"]]
    return np.log(own.sort_values("block")["value"].to_numpy())


def of(found: Forecast, workload: str) -> Prediction:
    return next(each for each in found.predictions if each.spread.workload_label == workload)


# ── what is predicted ────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_noisiest_cell_and_the_widest_ratio_count_and_the_warm_up_does_not() -> None:
    pilot = run(planned())
    spread = of(forecast(planned(), pilot), "w").spread
    values = np.exp(logs(pilot, "ext4/w"))
    assert (spread.cell, spread.n, spread.metric) == ("ext4/w", 6, "write_bandwidth")
    assert spread.cv == pytest.approx(values.std(ddof=1) / values.mean())
    difference_of_logs = logs(pilot, "tmpfs/w") - logs(pilot, "ext4/w")
    assert (spread.candidate, spread.pairs) == ("tmpfs", 6)
    assert spread.log_sd == pytest.approx(difference_of_logs.std(ddof=1))


def test_the_smallest_ratio_is_found_with_80_percent_at_the_level_of_the_family() -> None:
    """The chance is computed here from the noncentral t distribution, the level by Bonferroni over 3 comparisons."""
    found = forecast(planned(), run(planned()))
    assert found.comparisons == 3
    assert found.level == pytest.approx(1 - 0.05 / 3)
    each = of(found, "w")
    critical = stats.t.isf(0.05 / 3 / 2, 7)
    chance = stats.nct.sf(critical, 7, math.log(each.smallest_ratio) * math.sqrt(8) / each.spread.log_sd)
    assert chance == pytest.approx(0.80, abs=1e-6)
    assert each.blocks == 8


def test_a_cautious_plan_reckons_with_the_upper_limit_of_the_spread() -> None:
    each = of(forecast(planned(), run(planned())), "w")
    upper = each.spread.log_sd * math.sqrt(5 / stats.chi2.ppf(0.2, 5))
    assert math.log(each.smallest_ratio_cautious) == pytest.approx(
        math.log(each.smallest_ratio) * upper / each.spread.log_sd
    )
    assert upper > each.spread.log_sd


def test_blocks_for_precision_and_for_differences() -> None:
    found = forecast(planned(), run(planned()))
    for each in found.predictions:
        assert each.for_half_width[0.03] == float(power.blocks_for_half_width(each.spread.cv, 0.03))
        counts = [each.for_ratio[ratio] for ratio in RATIOS]
        assert counts == sorted(counts, reverse=True)
        assert each.for_ratio[1.10] == float(power.needed_blocks(1.10, each.spread.log_sd, level=found.level))
        assert each.half_width == pytest.approx(math.expm1(each.spread.cv * stats.t.ppf(0.975, 7) / math.sqrt(8)))
        assert each.shows[8] == each.smallest_ratio


def test_a_simulated_sweep_shows_the_smallest_ratio_as_often_as_was_said() -> None:
    each = of(forecast(planned(), run(planned())), "w")
    rng, critical = np.random.default_rng(4), stats.t.isf(0.05 / 3 / 2, 7)
    samples = rng.normal(math.log(each.smallest_ratio), each.spread.log_sd, (10_000, 8))
    shown = samples.mean(axis=1) / (samples.std(axis=1, ddof=1) / math.sqrt(8)) > critical
    assert stats.binomtest(int(shown.sum()), len(shown), 0.80).pvalue > 0.001


def test_time_is_what_trials_took() -> None:
    found = forecast(planned(), run(planned(), elapsed_s=2.0))
    assert found.expected_s == pytest.approx(9 * 6 * 2.0 + 9 * 2 * MOUNT_S)
    assert of(found, "w").block_s == pytest.approx(2 * 2.0)
    lasting = planned(design={"fresh_filesystem": "never"})
    assert forecast(lasting, run(planned())).expected_s == pytest.approx(9 * 6 * 2.0 + 2 * MOUNT_S)


def test_what_fresh_file_systems_would_cost_is_what_making_them_took_in_the_pilot() -> None:
    pilot, sweep = run(planned()), planned(design={"fresh_filesystem": "never"})
    row = pilot.measurements.iloc[[0]].assign(filesystem="ext4", label="", unit="s")
    made = [row.assign(metric="mkfs_time", value=2.0), row.assign(metric="mount_time", value=0.5)]
    pilot.measurements = pd.concat([pilot.measurements, *made], ignore_index=True)
    found = forecast(sweep, pilot)
    assert found.fresh_more_s == pytest.approx(8 * (2.5 + MOUNT_S)), "ext4 as measured, tmpfs by the plan's guess"
    assert "fresh_filesystem: block would take about 22 s" in forecast_text(found, sweep)
    assert forecast(planned(), pilot).fresh_more_s == 0


def test_a_pilot_with_trials_at_their_limit_says_that_its_spread_is_of_the_others() -> None:
    pilot = run(planned())
    pilot.trials.loc[8, "status"] = "timeout"
    assert "1 trials" not in " ".join(forecast(planned(), pilot).notes)
    assert "1 trial of the pilot ran into" in " ".join(forecast(planned(), pilot).notes)


@pytest.mark.slow
def test_a_stopping_rule_ends_where_the_last_metric_is_precise() -> None:
    rule = {"half_width": "5%", "min": 5, "max": 30}
    until = planned(rule)
    found = forecast(until, run(planned(), spread=0.05))
    each = of(found, "w")
    assert until.design.until is not None
    assert 5 < each.blocks <= each.blocks_late <= 30
    looked = sequential.nominal_level(until.design.until, found.level)
    assert each.smallest_ratio == float(power.smallest_ratio(each.blocks, each.spread.log_sd, level=looked))
    assert of(forecast(until, run(planned(), spread=1e-4)), "w").blocks == 5
    assert of(forecast(until, run(planned(), spread=0.5)), "w").blocks == 30


@pytest.mark.slow
@pytest.mark.parametrize(("runs", "off"), few_then_many((120, 2), (400, 1)))
def test_a_rule_about_comparisons_looks_at_the_ratios_of_the_whole_sweep(runs: int, off: int) -> None:
    rule = {"half_width": "5%", "min": 5, "max": 40, "of": "comparisons"}
    until = planned(rule)
    found = forecast(until, run(planned(), spread=0.03))
    each = of(found, "w")
    assert until.design.until is not None
    end, _ = simulated_end([each.spread.log_sd], until.design.until, runs, comparisons=found.comparisons)
    assert each.blocks == pytest.approx(end, abs=off)


def simulated_end(spreads: list[float], until: Until, runs: int, *, comparisons: int = 0) -> tuple[float, float]:
    """Median and 80 % quantile of the block after which all are precise at once, by the rule itself, block by block: of
    means, or of the ratios of a sweep with so many comparisons."""
    level = look_level(until, comparisons)
    rng, ends = np.random.default_rng(5), []
    for _ in range(runs):
        noise = np.array(spreads)[:, None] * rng.normal(size=(len(spreads), until.max))
        ratios = sequential.precise_ratio(noise, until, level) if comparisons else None
        rows = sequential.precise(1 + noise, until) if ratios is None else ratios
        ends.append(next((n + 1 for n in range(until.max) if rows[:, n].all()), until.max))
    return float(np.median(ends)), float(np.quantile(ends, 0.8))


@pytest.mark.slow
@pytest.mark.parametrize(("runs", "off"), few_then_many((60, 2), (400, 1)))
def test_eight_cells_take_as_long_as_the_last_of_them(runs: int, off: int) -> None:
    """Half widths are random: of eight equal cells the last is precise after 28 blocks or so, where one takes 24."""
    rule = {"half_width": "3%", "min": 5, "max": 60}
    systems = {f"fs{i}": {**TMPFS} for i in range(8)}
    until = planned(rule, filesystems=systems, workloads={"w": DD_WRITE}, baseline="fs0")
    assert until.design.until is not None
    pilot = run(until, n=4)
    exact = np.array([0.95, 0.95, 1.05, 1.05]) * math.sqrt(3 / 4)  # a standard deviation of 5 % in every cell
    for cell in until.cells:
        own = (pilot.measurements["cell"] == cell.id) & ~pilot.measurements["warmup"]
        pilot.measurements.loc[own, "value"] = 1 + (exact - exact.mean())
    each = of(forecast(until, pilot), "w")
    median, late = simulated_end([each.spread.cv] * 8, until.design.until, runs)
    assert (each.blocks, each.blocks_late) == (pytest.approx(median, abs=off), pytest.approx(late, abs=off))
    assert each.blocks > simulated_end([each.spread.cv], until.design.until, runs)[0] + 3


def test_without_a_baseline_there_is_precision_and_no_power() -> None:
    found = forecast(planned(baseline=None), run(planned()))
    each = of(found, "w")
    assert found.comparisons == 0
    assert math.isfinite(each.for_half_width[0.1])
    assert math.isnan(each.smallest_ratio)
    assert all(math.isnan(count) for count in each.for_ratio.values())
    assert forecast_sentences(found, planned()) == [
        "Nothing is compared in this sweep, so there is no difference to show."
    ]


@pytest.mark.parametrize("name", ["tmpfs", "ext4"])
def test_excluded_cells_are_neither_compared_nor_waited_for(name: str) -> None:
    holes = planned(exclude=[{"filesystem": name, "workload": "w"}])
    found = forecast(holes, run(planned()))
    assert found.comparisons == 2
    assert math.isnan(of(found, "w").spread.log_sd)
    assert found.missing == ()
    assert f"{name}/w" not in found.used


# ── a pilot that does not fit ────────────────────────────────────────────────────────────────────────────────────────


def test_a_pilot_of_other_cells_is_refused() -> None:
    other = planned(filesystems={"xfs": {"type": "xfs", "image": "512MiB"}}, baseline=None)
    with pytest.raises(PlanError) as caught:
        forecast(planned(), run(other))
    assert caught.value.what == "the pilot has none of the cells of this sweep"
    assert caught.value.where == "--pilot"
    assert "xfs/w" in caught.value.got
    assert "tmpfs/w" in caught.value.allowed
    assert "-p repeats=5" in caught.value.next_step


def test_a_pilot_of_one_block_is_refused() -> None:
    with pytest.raises(PlanError) as caught:
        forecast(planned(), run(planned(), n=1))
    assert caught.value.what == "the pilot shows no spread"
    assert caught.value.got.startswith("fewer than two counted trials of tmpfs/w, ")


def test_a_pilot_of_some_cells_is_used_for_these_and_it_is_told() -> None:
    part = planned(workloads={"w": DD_WRITE})
    found = forecast(planned(), run(part))
    assert found.used == ("tmpfs/w", "ext4/w")
    assert found.missing == (
        "tmpfs/r cache=cold",
        "tmpfs/r cache=warm",
        "ext4/r cache=cold",
        "ext4/r cache=warm",
    )
    assert found.comparisons == 3, "those that the pilot does not know are corrected for, too"
    text = forecast_text(found, planned())
    assert "p1, which has 2 of the 6 cells" in text
    assert "nothing is known of tmpfs/r cache=cold, " in text


def test_what_differs_between_pilot_and_sweep_is_told() -> None:
    small = planned(
        filesystems={"tmpfs": {**TMPFS, "size": "32MiB"}, "ext4": EXT4},
        workloads={"w": {**DD_WRITE, "count": 4}, "r": DD_READ},
    )
    now = known(hostname="bench-2", kernel="6.1")
    assert forecast(planned(), run(small), facts=now).notes == (
        "tmpfs differs in size",
        "w differs: count 4 there, 8 here",
        "another hostname: bench-1 in the pilot, bench-2 now",
    )
    assert forecast(planned(), run(planned()), facts=known(kernel="6.1")).notes == ()


# ── as text, JSON and HTML ───────────────────────────────────────────────────────────────────────────────────────────


def test_the_text_has_a_line_for_each_workload_and_says_how_to_read_it() -> None:
    found = forecast(planned(), run(planned()))
    lines = forecast_text(found, planned()).splitlines()
    head = next(line for line in lines if line.startswith("workload"))
    assert "mean ±3" in head
    assert "show 5" in head
    for workload in ("w", "r cache=cold", "r cache=warm"):
        line = next(line for line in lines if line.startswith(f"{workload} ") and line != head)
        assert difference(of(found, workload).smallest_ratio) in line
    assert any("corrected for 3 comparisons" in line for line in lines)


@pytest.mark.parametrize(("count", "said"), [(1, ""), (2, ", corrected for 2 comparisons")])
def test_it_is_corrected_for_comparisons_from_two_on(count: int, said: str) -> None:
    found = replace(forecast(planned(), run(planned())), comparisons=count)
    (line,) = [line for line in forecast_text(found, planned()).splitlines() if line.startswith("shows: ")]
    assert line.endswith(f", at 95\u00a0%{said}.")


def test_json_has_null_for_what_is_not_known_or_beyond_counting() -> None:
    found = forecast(planned(baseline=None), run(planned(), spread=1.0))
    text = json.dumps(forecast_json(found), allow_nan=False)
    read = json.loads(text)
    assert read["power"] == 0.8
    assert read["predictions"][0]["smallest_ratio"] is None
    assert read["predictions"][0]["for_half_width"]["0.01"] is None
    spread = read["predictions"][0]["spread"]
    assert (spread["cv"], spread["workload"]) == (pytest.approx(found.predictions[0].spread.cv), "w")


@every_row(
    ("ratio", "text"),
    [
        (1.041, "4.1\u00a0%"),
        (1.5, "50\u00a0%"),
        (2.44, "2.4 times"),
        (37.2, "37 times"),
        (math.inf, "n/a"),
        (math.nan, "n/a"),
    ],
)
def test_differences_as_text(ratio: float, text: str) -> None:
    assert difference(ratio) == text


def test_blocks_as_text() -> None:
    assert [blocks(n) for n in (7.0, 200.0, 201.0, math.inf, math.nan)] == ["7", "200", ">200", ">200", "n/a"]


def test_what_would_take_too_many_blocks_says_which_cell_varied_most() -> None:
    calm, noisy = (forecast(planned(), run(planned(), spread=spread)) for spread in (0.0001, 0.5))
    worst = max(noisy.predictions, key=lambda each: each.spread.cv).spread
    (said,) = [line for line in explained(noisy, planned()) if line.startswith(">200")]
    assert said.startswith(">200: cannot be decided at this noise. Reduce it, that of ")
    assert f"that of {worst.cell} (" in said
    assert not [line for line in explained(calm, planned()) if line.startswith(">200")]


def test_the_workload_that_needs_most_comes_first_in_the_sentences() -> None:
    found = forecast(planned(), run(planned()))
    said = forecast_sentences(found, planned())
    worst = max(found.predictions, key=lambda each: each.smallest_ratio)
    assert said[0].startswith(f"{worst.spread.workload_label}: ")
    assert f"8 blocks show a difference of {difference(worst.smallest_ratio)} or more; 2\u00a0% would take" in said[0]


def test_the_table_escapes_what_it_shows() -> None:
    pilot = run(planned())
    pilot.info = replace(pilot.info, run_id="<script>")
    assert "<script>" not in forecast_table(forecast(planned(), pilot), planned())


def test_the_curves_hold_the_planned_blocks() -> None:
    found = forecast(planned(design={"repeats": 9}), run(planned()))
    lines, planned_blocks = curves(found)
    assert set(lines) == {"w: write bandwidth", "r cache=cold: read bandwidth", "r cache=warm: read bandwidth"}
    for name, curve in lines.items():
        assert planned_blocks[name] == 9
        assert list(curve) == sorted(curve)
        ratios = list(curve.values())
        assert ratios == sorted(ratios, reverse=True)
