"""What earlier runs tell of how much runs differ by themselves."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import pytest
from mountlab.analysis.compare.run_spread import (
    FEWEST_EARLIER,
    EarlierFigure,
    FigureName,
    FigureSpread,
    RunsDiffer,
    below,
)
from rows import every_row

NAME: FigureName = (("a", ()), "read_bandwidth", "", "B/s")  # type: ignore[assignment]
NOISE = [0.01, -0.02, 0.015, -0.005, 0.02, -0.01, 0.0, -0.015, 0.005, -0.02]


def earlier(levels: list[float]) -> list[EarlierFigure]:
    """Runs of successive days, in no order."""
    start = datetime(2026, 11, 1)  # noqa: DTZ001
    runs = [EarlierFigure(start + timedelta(days=day), 4, level, 0.01) for day, level in enumerate(levels)]
    return [*runs[1::2], *runs[::2]]


def spread(levels: list[float]) -> FigureSpread | None:
    return RunsDiffer.of(None, {"r": {NAME: earlier(levels)}}).measured["r"].get(NAME)


def test_so_many_earlier_runs_tell_a_spread_and_fewer_do_not() -> None:
    assert spread(NOISE[: FEWEST_EARLIER - 1]) is None
    found = spread(NOISE[:FEWEST_EARLIER])
    assert found is not None
    assert found.sd == pytest.approx(np.std(NOISE[:FEWEST_EARLIER], ddof=1))


def test_a_change_of_level_is_looked_for_in_the_order_of_time() -> None:
    early, late = NOISE, [level + 1 for level in NOISE]
    found = spread([*early, *late])
    assert found is not None
    assert (found.degrees, found.runs) == (18, 20)
    assert found.sd == pytest.approx(np.std(NOISE, ddof=1))


@every_row(("sd", "text"), [(0.0189, "1.8\u00a0%"), (0.01, "1\u00a0%"), (0.0999, "9.9\u00a0%"), (0.123, "12\u00a0%")])
def test_a_break_even_is_never_rounded_up(sd: float, text: str) -> None:
    assert below(sd) == text
