"""What the faults share: how a test tells the table what its fault has cost."""

from __future__ import annotations

import pytest
from faults.counting import Count
from faults.table import FIELD, Report, Row


@pytest.fixture
def report(request: pytest.FixtureRequest) -> Report:
    """Tells the table what a fault has cost, and fails the test where that is not nothing."""

    def tell(fault: str, tries: int, count: Count, took_s: float) -> None:
        row = Row(request.path.stem.removeprefix("test_"), fault, tries, count.numbers, took_s)
        request.node.user_properties.append((FIELD, row.packed()))
        found = [*count.lost, *count.duplicated, *count.left]
        assert not found, f"{len(found)} of {fault}:\n" + "\n".join(found[:40])

    return tell
