"""pandas, loaded at its first use: that takes a third of a second, and a plan has no table."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = ["pd", "rows_of"]


class _Late:
    """Stands for a module, and takes each name from it."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self._name), name)


if TYPE_CHECKING:
    import pandas as pd
else:
    pd = _Late("pandas")


def rows_of(frame: pd.DataFrame, *columns: str) -> Iterable[tuple[Any, ...]]:
    """Return the rows; by lists, since pandas takes several times as long to go through columns of text one by one."""
    return zip(*(frame[name].tolist() for name in columns), strict=True)
