"""What the conformance suites of tools, file systems, checks and plots are made of.

A rule is a function of one part, or of one example of it. It raises NonConforming, which says what to change, where the
part does not keep it. Its docstring is what it asks for. The repository's own tests call the same rules for Mountlab's
own parts as `mountlab conform` does for those of a plug-in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from mountlab.core.errors import MountlabError, NonConforming

T = TypeVar("T")
Rule = Callable[[T], None]
NAME = "[a-z][a-z0-9_-]{0,39}"
"""Of a part of a plug-in."""


def require(holds: object, what: str, *, got: object = "", allowed: str = "", next_step: str = "") -> None:
    """Raise NonConforming where something does not hold."""
    if not holds:
        raise NonConforming(what, got=str(got), allowed=allowed, next_step=next_step)


def raised_by(call: Callable[[], object], kind: type[MountlabError], what: str, allowed: str) -> MountlabError:
    """Return the error of a kind that a call raises. Raises NonConforming where it raises none."""
    try:
        result = call()
    except kind as error:
        return error
    raise NonConforming(what, got=f"{result!r}"[:200], allowed=allowed)


def title(rule: Rule[T]) -> str:
    """Return what a rule asks for, in a line."""
    return (rule.__doc__ or rule.__name__).strip().splitlines()[0].rstrip(".")
