"""Which cases of a table are for `make test`, and which repeat them for `make test-all`."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import Any

import pytest


def others_long(cases: Iterable[Any], kept: Container[Any]) -> list[Any]:
    """The cases for pytest.mark.parametrize: all but those that are kept are marked `long`."""
    return [case if case in kept else _long(case) for case in cases]


def few_then_many(few: Any, many: Any) -> list[Any]:
    """The sizes of a simulation for pytest.mark.parametrize: few cases for `make test`, many for `make test-all`."""
    return [few, _long(many)]


def _long(case: Any) -> Any:
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.long)
