"""Whether the trials of a search are long enough to know whether the objective held."""

from __future__ import annotations

from dataclasses import replace

import pytest
from checks.test_checks import build, found, make, the_only
from mountlab.checks import Evidence
from mountlab.core.cell_stop import CellStop
from searched_run import searched_run


def test_a_search_whose_trials_have_few_late_requests_is_doubted() -> None:
    """tmpfs: 10 s at 300/s have 3,000 requests, 30 of which may be later than the p99; 100 take 34 s."""
    run = searched_run("tmpfs", "ext4", capacities={"tmpfs": (300.0, 285.0, 315.0)})
    caveat = the_only("few-late-requests", run.evidence())
    assert (caveat.subject, caveat.severity) == ("tmpfs/mail", "warning")
    assert "3,000 requests, and 30 of them may be late" in caveat.message
    assert "34 s" in caveat.message.replace("\u00a0", " ")


def test_requests_are_those_of_a_trial_as_long_as_its_percentile_needs() -> None:
    """10 s at 50/s would have 500 requests; a p99 needs 1,000, so the trial counts for 20 s."""
    run = searched_run("tmpfs", capacities={"tmpfs": (50.0, 48.0, 52.0)})
    assert "1,000 requests, and 10 of them may be late" in the_only("few-late-requests", run.evidence()).message


@pytest.mark.parametrize("rate", [1000.5, 50_000.0, float("nan")])
def test_long_trials_and_unknown_capacities_are_not(rate: float) -> None:
    run = searched_run("tmpfs", capacities={"tmpfs": (rate, 0.95 * rate, 1.05 * rate)})
    assert not found("few-late-requests", run.evidence())


@pytest.mark.parametrize(("half_width", "said"), [(0.071, "± 7.1%"), (float("nan"), "not known")])
def test_a_search_that_ran_out_of_trials_says_how_precise_it_is(half_width: float, said: str) -> None:
    run = searched_run("tmpfs", "ext4")
    stops = [
        CellStop(cell="tmpfs/mail", reason="max reached", blocks=60, n=60, half_width=half_width, metric="capacity")
    ]
    caveat = the_only("not-precise", replace(run.evidence(), stops=stops))
    assert caveat.subject == "tmpfs/mail"
    assert said in caveat.message
    assert "± 5.0% was asked for" in caveat.message
    assert "raise capacity.max_trials" in caveat.message


def test_a_search_that_ended_as_precise_as_asked_is_not_doubted() -> None:
    assert not found("not-precise", searched_run("tmpfs", "ext4").evidence())


def asked_in_turn(capacities: list[float]) -> Evidence:
    """A search whose trials, in turn 5 % below and above 1,000 requests per second and a fifth lower, have these
    capacities."""
    evidence = searched_run("tmpfs", trials=len(capacities)).evidence()
    rows = evidence.measurements.copy()
    asked = [rate for _ in capacities for rate in (950.0, 1050.0, 760.0, 840.0)][: len(capacities)]
    for metric, values in (
        ("asked_rate", asked),
        ("objective_used", [rate / truth for rate, truth in zip(asked, capacities, strict=True)]),
    ):
        own = rows["metric"] == metric
        rows.loc[own, "value"] = rows.loc[own, "block"].map(dict(enumerate(values, start=1)))
    return replace(evidence, measurements=rows)


def test_a_search_whose_capacity_fell_meanwhile_is_doubted() -> None:
    caveat = the_only("capacity-changed", asked_in_turn([1000.0] * 14 + [800.0] * 14))
    assert (caveat.subject, caveat.severity) == ("tmpfs/mail", "warning")
    assert "the capacity seems to have fallen while it was searched for, by about " in caveat.message
    assert "over 28 trials, by the order of the answers" in caveat.message


def test_a_search_with_one_capacity_is_not_and_neither_is_a_run_without_a_search() -> None:
    assert not found("capacity-changed", asked_in_turn([1000.0] * 28))
    assert not found("capacity-changed", searched_run("tmpfs", "ext4").evidence())
    assert not found("capacity-changed", build(make()))


def test_the_order_of_answers_is_asked_of_searches_only_and_where_some_counted() -> None:
    fell = asked_in_turn([1000.0] * 14 + [800.0] * 14)
    stated = replace(fell.sweep, workloads=tuple(replace(each, search=None) for each in fell.sweep.workloads))
    assert not found("capacity-changed", replace(fell, sweep=stated)), "rates that the sweep states"
    assert not found("capacity-changed", replace(fell, measurements=fell.measurements.assign(warmup=True)))
