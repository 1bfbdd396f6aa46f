"""Values that show themselves in a notebook. In a module of its own: the package imports it, whatever is asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

T = TypeVar("T")


class Shown:
    """A value that shows itself in a notebook, with the looks that the package sets: the core has no HTML."""

    looks: ClassVar[Callable[[], Any]]
    """Gives what has html_of(value) and text_of(value): the package sets it, and loads it when a value is shown."""

    def __init_subclass__(cls) -> None:
        """IPython takes what it finds first on the way from a class to its parents, and a dataclass has a __repr__ of
        its own: each class gets this one, too."""
        cls._repr_pretty_ = cls._repr_pretty_  # type: ignore[method-assign]

    def _repr_html_(self) -> str:
        return str(Shown.looks().html_of(self))

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        """What IPython asks for where it shows plain text."""
        printer.text(str(self))

    def __str__(self) -> str:
        return str(Shown.looks().text_of(self))


class Several(list[T], Shown):
    """A list of values of one kind, which a notebook shows as one table."""
