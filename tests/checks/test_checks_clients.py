"""Caveats of workloads that several clients drive: raised and not raised."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from checks.test_checks import _trial, build, found, make, the_only
from mountlab import plots
from mountlab.analysis.measurements import measurement_frame
from mountlab.checks import CHECKS
from mountlab.checks.clients import STRAGGLES, shares
from mountlab.core.metrics import METRICS
from mountlab.core.model import Measurement
from mountlab.report import sections
from mountlab.report.html import NOTHING
from repetition import few_then_many
from scipy import stats

CLIENTS = ("a", "b", "c")
FIO = {"tool": "fio", "rw": "write", "bs": "1MiB", "size": "64MiB"}
SHARED = {"shared": {"type": "dir", "path": "/mnt/shared"}}
EVEN = {"a": [100e6, 101e6, 99e6], "b": [102e6, 99e6, 100e6], "c": [99e6, 100e6, 102e6]}


def evidence(*cells: Mapping[str, Sequence[float]], elapsed: Mapping[str, float] | None = None) -> Any:
    """Cells under three clients; of each a row a trial and client, and one of all together."""
    the_sweep = make(
        filesystems=SHARED,
        workloads={f"w{n or ''}": {**FIO, "clients": [*rates]} for n, rates in enumerate(cells)},
    )
    rows = []
    for cell, rates in zip(the_sweep.cells, cells, strict=True):
        for number, values in enumerate(zip(*rates.values(), strict=True), start=1):
            trial = _trial(cell, number, number)
            for client, value in zip(rates, values, strict=True):
                times = {**dict.fromkeys(rates, 10.0), **(elapsed or {})}
                told = {"write_bandwidth": value, "elapsed": times[client]}
                rows += [
                    (trial, Measurement(metric=m, value=v, unit=METRICS[m], label=client)) for m, v in told.items()
                ]
            rows.append((trial, Measurement(metric="write_bandwidth", value=sum(values), unit="B/s")))
    base = build(make())
    return type(base)(**{**vars_of(base), "sweep": the_sweep, "measurements": measurement_frame(rows)})


def vars_of(base: Any) -> dict[str, Any]:
    return {name: getattr(base, name) for name in base.__dataclass_fields__}


def test_a_client_that_is_surely_slower_than_the_others_straggles() -> None:
    caveat = the_only("straggler", evidence({**EVEN, "c": [50e6, 52e6, 49e6]}))
    assert caveat.subject == "shared/w"
    assert caveat.message.startswith("client c had 50% (")
    assert "n = 3" in caveat.message
    assert "write bandwidth that the other clients have in the middle" in caveat.message


def test_clients_that_are_alike_and_one_that_was_slow_once_do_not_straggle() -> None:
    assert found("straggler", evidence(EVEN)) == []
    assert found("straggler", evidence({**EVEN, "c": [20e6, 100e6, 101e6]})) == [], "one slow moment"
    assert found("straggler", evidence({**EVEN, "c": [85e6, 86e6, 85e6]})) == [], "slower, but by less than a fifth"


def test_one_trial_cannot_tell() -> None:
    few = evidence({name: rates[:1] for name, rates in {**EVEN, "c": [10e6]}.items()})
    assert CHECKS["straggler"].blind(few) == "one trial does not tell a slow client from a slow moment"
    assert found("straggler", few) == []
    assert CHECKS["straggler"].blind(evidence(EVEN)) is None


def test_the_interval_is_that_of_the_logarithms_for_all_clients_together() -> None:
    (a, *_) = shares(*(getattr(evidence(EVEN), name) for name in ("sweep", "measurements")))
    logs = [math.log(own / np.median(others)) for own, *others in zip(*EVEN.values(), strict=True)]
    half = stats.t.ppf(1 - 0.05 / 3 / 2, 2) * stats.sem(logs)
    assert a.bounds == pytest.approx([math.exp(np.mean(logs) + shift) for shift in (0, -half, half)])


@pytest.mark.slow
@pytest.mark.parametrize("cells", few_then_many(20, 100))
def test_of_clients_at_the_limit_few_are_called_stragglers(cells: int) -> None:
    """Where one truly has 80 % of the others, it is told so wrongly in 2.5 % of cells at most."""
    rates = np.random.default_rng(8).lognormal(0, 0.03, (cells, 3, 5)) * 100e6 * np.array([[1], [1], [STRAGGLES]])
    given = evidence(*({"a": a, "b": b, "c": c} for a, b, c in rates))
    wrong = {share.cell.id for share in shares(given.sweep, given.measurements) if share.straggles}
    assert len(wrong) <= 0.025 * cells + 2 * math.sqrt(0.025 * 0.975 * cells)


def test_clients_that_end_at_different_times_were_apart() -> None:
    caveat = the_only("clients-apart", evidence(EVEN, elapsed={"a": 6.0}))
    assert "after 60% of the time of the slowest (median of 3 trials)" in caveat.message


def test_clients_that_end_together_were_not_apart() -> None:
    assert found("clients-apart", evidence(EVEN, elapsed={"a": 9.5})) == []


def test_every_client_has_a_share_in_the_order_of_the_sweep() -> None:
    given = evidence(EVEN)
    told = shares(given.sweep, given.measurements)
    assert [share.client for share in told] == list(CLIENTS)


# --- the part of the report -------------------------------------------------------------------------------------------


def points(**changed: Any) -> list[plots.ClientPoint]:
    given = {"filesystem": "ext4", "group": "shared/w: write bandwidth", "trials": (0.9, 1.1), "straggles": False}
    a = plots.ClientPoint(**{"client": "a", "ratio": 1.0, "low": 0.8, "high": 1.25, **given})  # type: ignore[arg-type]
    b = plots.ClientPoint(**{"client": "b", "ratio": 0.5, "low": 0.45, "high": 0.6, **given, **changed})  # type: ignore[arg-type]
    return [a, b]


def test_the_plot_names_the_stragglers_and_draws_every_trial() -> None:
    plot = plots.plot_clients(points(straggles=True, trials=(0.49, 0.51)), limit=STRAGGLES, filesystems=["ext4"])
    assert plot.title == "b (shared/w: write bandwidth): surely below 80\u00a0% of what the others have"
    assert "b, shared/w: write bandwidth: 0.50 [0.45, 0.60]" in plot.alt
    (axes,) = plot.figure.axes
    drawn = [sorted(line.get_xdata()) for line in axes.lines if line.get_marker() == "o" and len(line.get_xdata()) == 2]
    assert [0.49, 0.51] in drawn
    assert [0.9, 1.1] in drawn


def test_the_plot_says_so_where_nobody_straggles() -> None:
    assert plots.plot_clients(points(), limit=STRAGGLES, filesystems=["ext4"]).title.startswith(
        "No client is surely below 80\u00a0%"
    )


@pytest.mark.slow
def test_the_section_is_a_table_a_cell_and_nothing_without_clients() -> None:
    given = evidence({**EVEN, "c": [50e6, 52e6, 49e6]})
    page = sections.clients(given)
    for text in ("shared/w: write bandwidth", "straggles", "40\u00a0%", "20\u00a0%"):
        assert text in page
    assert sections.clients(build(make())).startswith(NOTHING)
