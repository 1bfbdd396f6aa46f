"""What docs/data/calibration.json says of the search for a capacity, and the same with few searches."""

from __future__ import annotations

import math

import numpy as np
import pytest
from data_files import kept_shares
from mountlab.core.places import SHIPPED
from mountlab.stats.capacity import RateTrial, capacity
from mountlab.stats.capacity_ratios import level_at_end
from mountlab_dev.calibration import capacities as made
from mountlab_dev.calibration.servers import SERVERS, Server
from mountlab_dev.calibration.tables import FULL
from mountlab_dev.evidence import captioned
from repetition import others_long
from scipy import stats

TABLE = kept_shares("capacities")
each_server = pytest.mark.parametrize("server", others_long(SERVERS, kept=SERVERS[:1]), ids=lambda server: server.name)


def trials_of(row: str) -> int:
    """The mean number of trials that stands in a row of the table."""
    (found,) = (line[2] for line in captioned("calibration", "capacities").lines if line[0] == row)
    return int(found.removesuffix(" trials").replace(",", ""))


@each_server
def test_the_interval_of_a_search_covers_94_percent(server: Server) -> None:
    assert FULL.sweeps >= 1000
    assert TABLE[f"{server.name}: search", "covered"] >= 0.94


@each_server
def test_a_search_takes_a_fifth_of_the_trials_of_a_grid_that_is_as_precise(server: Server) -> None:
    ours, grid = f"{server.name}: search", f"{server.name}: grid, tested, as precise"
    assert TABLE[grid, "wider than wanted"] <= TABLE[ours, "wider than wanted"] + 0.001
    assert 5 * trials_of(ours) <= trials_of(grid)
    assert trials_of(ours) < made.MOST


@each_server
def test_what_believes_each_answer_is_cheap_and_wrong(server: Server) -> None:
    assert TABLE[f"{server.name}: bisection", "covered"] < 0.9
    assert TABLE[f"{server.name}: grid, 21 points, 5 repeats, bracket", "covered"] < 0.94
    assert TABLE[f"{server.name}: grid, 21 points, 6 repeats, tested", "wider than wanted"] > 0.5


def test_equal_capacities_rarely_differ_and_unequal_ones_do() -> None:
    for (row, column), share in kept_shares("capacity-ratios").items():
        if column == "equal: differ":
            assert share <= 0.05
        elif column == "interval holds":
            assert share >= 0.95
        elif "searched at 95 %" not in row:
            assert share >= (0.8 if "1 comparison" in row else 0.7)


def test_methods_repeats_the_least_coverage() -> None:
    least = min(share for (row, column), share in TABLE.items() if row.endswith("search") and column == "covered")
    words = " ".join((SHIPPED / "METHODS.md").read_text().split())
    assert f"they cover {100 * least:.1f} % or more" in words


@pytest.mark.slow
@pytest.mark.xdist_group("dev-test_calibration")  # whose tables are made of the same searches
@pytest.mark.parametrize(
    ("server", "cases"),
    [(SERVERS[0], 5), *(pytest.param(server, 20, marks=pytest.mark.long) for server in SERVERS)],
    ids=lambda value: value.name if isinstance(value, Server) else None,
)
def test_few_searches_cover_as_many_do(server: Server, cases: int) -> None:
    """Of 20 searches at a coverage of 94 % fewer than 15 hold in one of 1,000 such tests, of 5 fewer than 2."""
    found = [capacity(trials) for trials in made.searches(server, cases)]
    covered = sum(each.low <= 1 <= each.high for each in found)
    assert covered >= stats.binom.ppf(0.001, cases, 0.94) == {5: 2, 20: 15}[cases]
    assert np.median([each.half_width for each in found]) <= made.HALF_WIDTH
    assert all(each.half_width <= made.HALF_WIDTH or each.n == made.MOST for each in found)


def test_a_grid_is_tested_level_after_level() -> None:
    """A sharp capacity: every level below it holds always, every one above it fails always."""
    sharp = made.grid(SERVERS[0], lambda rates: np.where(rates < 1, 1.0, 0.0), 21, 6, 50)
    assert sharp.covered.hits == 50
    assert sharp.half_width == pytest.approx(math.tanh(math.log(made.RANGE * made.MARGIN**2) / 20 / 2))
    unsure = made.grid(SERVERS[0], lambda rates: np.full(rates.shape, 0.5), 21, 5, 50)
    assert unsure.wider.hits == 50, "five equal answers of five are no evidence at 95 %"


def test_a_bisection_of_a_sharp_capacity_ends_beside_it() -> None:
    found = made.bisection(SERVERS[0], lambda rates: np.where(rates < 1, 1.0, 0.0), 50)
    assert (found.covered.hits, found.wider.hits, found.trials) == (50, 0, 4)


@pytest.mark.slow
def test_a_stricter_search_goes_on_where_the_other_ended() -> None:
    level = level_at_end(0.95, 2)
    assert level == pytest.approx(0.99)
    for begun, more in zip(made.searches(SERVERS[1], 2), made.searches(SERVERS[1], 2, level), strict=True):
        assert more[: len(begun)] == begun
        assert len(more) >= len(begun)
        assert capacity(more, level).half_width <= made.HALF_WIDTH


def test_scaled_trials_have_a_scaled_rate() -> None:
    assert made._scaled((RateTrial(2.0, True),), 1.5) == [RateTrial(3.0, True)]
