"""A table of values in one test: its rows cost no item each, and those that fail are named one by one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any

import pytest

Row = tuple[str, Mapping[str, Any]]
"""The name of a row, and its values by argument."""
REPORTED = (Exception, pytest.fail.Exception, pytest.skip.Exception)
LONGEST_NAME = 80


def every_row(
    names: str | Sequence[str], rows: Iterable[Any], ids: Iterable[str] | Callable[[Any], object] | None = None
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Call the test with each row, with the arguments of pytest.mark.parametrize and in its place.

    A row that fails or is skipped is a subtest with its name, and the others are tried all the same. Fixtures are those
    of the one test, so this is for tests that change none of them. Several tables are tried in all combinations.
    """
    arguments = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = list(_named(arguments, list(rows), ids))

    def decorate(test: Callable[..., None]) -> Callable[..., None]:
        body: Callable[..., None] = getattr(test, "row_body", test)
        inner: Sequence[Row] = getattr(test, "row_table", [("", {})])
        combined = [(f"{a}-{b}".strip("-"), {**one, **other}) for a, one in table for b, other in inner]
        assert combined, "a table without rows tests nothing"

        @wraps(test)
        def whole(subtests: pytest.Subtests, **fixtures: Any) -> None:
            for name, values in combined:
                try:
                    body(**fixtures, **values)
                except REPORTED:
                    with subtests.test(name):
                        raise

        given = [each for each in inspect.signature(body).parameters.values() if each.name not in combined[0][1]]
        asked = inspect.Parameter("subtests", inspect.Parameter.KEYWORD_ONLY)
        whole.__signature__ = inspect.Signature([*given, asked])  # type: ignore[attr-defined]
        whole.row_body, whole.row_table = body, combined  # type: ignore[attr-defined]
        return whole

    return decorate


def _named(arguments: Sequence[str], rows: Sequence[Any], ids: Any) -> Iterator[Row]:
    assert not any(getattr(row, "marks", ()) for row in rows), "rows with marks are for pytest.mark.parametrize"
    own = None if ids is None or callable(ids) else list(ids)
    assert own is None or len(own) == len(rows), "as many names as rows"
    for place, row in enumerate(rows):
        if hasattr(row, "marks"):  # of pytest.param
            values, name = row.values, row.id
        else:
            values, name = (row,) if len(arguments) == 1 else tuple(row), own[place] if own else None
        name = str(name or ", ".join(_short(value, ids) for value in values))
        yield name, dict(zip(arguments, values, strict=True))


def _short(value: Any, name_of: Callable[[Any], object] | None) -> str:
    name = (name_of(value) if name_of else None) or getattr(value, "__name__", None) or repr(value)
    text = str(name)
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"
