"""Simulated runs beside the calibration's tables, the statistics of a report, and what cannot be simulated."""

from __future__ import annotations

import math
from typing import Any

import pytest
from data_files import kept_shares
from mountlab import simulate
from mountlab.core.errors import ParameterError
from mountlab.stats import estimate
from rows import every_row


@pytest.mark.slow
def test_what_n_would_have_told_is_what_the_tables_say() -> None:
    """Another simulation of the same: two modes of 30 %, twice as fast, at n = 3; and the power of 10 normal pairs."""
    cv = math.sqrt(0.3 * 0.7)  # of two sharp modes at 1 and 2
    told = simulate.runs(3, kind="two modes", cv=cv)
    assert told.covered == pytest.approx(kept_shares("few")["two modes, 30 % at 2 times the speed", "n = 3"], abs=0.04)
    assert told.caveats == 0.0, "three trials show nothing"
    power = kept_shares("power")["5 % found, the only comparison of the sweep", "n = 10"]
    assert simulate.runs(10).verdicts["faster"] == pytest.approx(power, abs=0.06)


def test_a_told_run_is_that_of_a_report() -> None:
    told = simulate.runs(4, kind="gamma", cv=0.3, runs=20)
    for values, low, high in told.first(20):
        ours = estimate(values)
        assert (low, high) == (ours.low, ours.high)
    assert told.covered == sum(low <= told.truth <= high for _, low, high in told.first(20)) / 20
    assert sum(told.verdicts.values()) == pytest.approx(1)


@pytest.mark.slow
def test_an_effect_the_other_way_is_slower_and_none_may_be_the_same() -> None:
    slower, none = simulate.runs(10, cv=0.02, effect=0.9, runs=200), simulate.runs(30, cv=0.01, effect=1.0, runs=200)
    assert slower.verdicts["slower"] > 0.95
    assert none.verdicts["same"] > 0.95


@pytest.mark.slow
def test_more_trials_tell_more_in_a_table_and_in_words() -> None:
    told = [simulate.runs(n, kind="drifting", runs=300) for n in (3, 30)]
    table = simulate.frame(told)
    assert list(table.index) == [3, 30]
    assert table.loc[3, "half an interval"] > table.loc[30, "half an interval"]
    assert table.loc[30, "intervals that hold the truth"] == 0.0
    assert table.loc[30, "some caveat of shape"] > 99
    assert simulate.sentence(told[1]).startswith(
        "n = 30, drifting: 0 % of the 95 % intervals hold the truth (cv 5 %); half an"
    )
    assert "the report would have said: faster" in simulate.sentence(told[1])


def test_the_same_question_has_the_same_answer() -> None:
    assert simulate.runs(5, runs=50).verdicts == simulate.runs(5, runs=50).verdicts


@every_row(
    ("wrong", "text"),
    [
        (
            {"kind": "norml"},
            "no such kind of trials\n  where:   kind\n  got:     'norml'\n  allowed: normal, lognormal,",
        ),
        ({"kind": "norml"}, "did you mean 'normal'?"),
        ({"n": 1}, "not so many trials\n  where:   n\n  got:     1\n  allowed: 2 to 200"),
        ({"cv": 5.0}, "no such spread\n  where:   cv\n  got:     5.0\n  allowed: 0.001 to 1 (0.05 is 5 %)"),
        (
            {"effect": 0.0},
            "no such effect\n  where:   effect\n  got:     0.0\n  allowed: 0.1 to 10 (1.05 is 5 % faster)",
        ),
    ],
)
def test_what_cannot_be_simulated_is_an_error(wrong: dict[str, Any], text: str) -> None:
    with pytest.raises(ParameterError) as error:
        simulate.runs(**{"n": 3, **wrong})
    assert text in str(error.value)
