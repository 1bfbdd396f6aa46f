"""The answers of a part of a plug-in, held against the types of the base class of its kind.

A part is code of others. What it lacks is refused as it is loaded, and each answer is checked: one of another type
shows far from its cause, in a figure or in an error of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from inspect import getattr_static, getdoc, isfunction, signature
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

_NUMBERS: Mapping[object, type] = {float: Real, int: Integral}


@dataclass(frozen=True)
class Mismatch:
    """A value that is not of the type that was meant."""

    place: str
    """Where in the answer it stands: '.argv', '[0].why'; '' for the answer itself."""
    got: str
    allowed: str


def mismatch(value: object, hint: Any, place: str = "") -> Mismatch | None:
    """Return the first part of a value that is not of a type, dataclasses field by field; None where all of it is.
    An answer that is a number is 0 or more. Iterators and functions are not looked into."""
    kind, arguments = get_origin(hint) or hint, get_args(hint)
    if kind in (Union, UnionType):
        found = [mismatch(value, each, place) for each in arguments]
        return None if None in found else max((each for each in found if each), key=lambda each: len(each.place))
    if kind is Literal:
        return None if value in arguments else _wrong(value, hint, place)
    kind = _NUMBERS.get(kind, NoneType if kind is None else kind)
    if isinstance(kind, TypeVar) or not isinstance(kind, type):
        return None
    if not isinstance(value, kind) or (isinstance(value, bool) and kind in _NUMBERS.values()):
        return _wrong(value, hint, place)
    if isinstance(value, Real) and not place and not float(value) >= 0:  # or is NaN
        return Mismatch(place, f"{value}", "a number, 0 or more")
    return next(filter(None, (mismatch(*each) for each in _inside(value, kind, arguments, place))), None)


def _inside(value: Any, kind: type, arguments: tuple[Any, ...], place: str) -> Iterator[tuple[object, Any, str]]:
    """Yield what a value consists of, with the type and the place of each."""
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        yield from ((getattr(value, each.name), hints[each.name], f"{place}.{each.name}") for each in fields(kind))
    elif issubclass(kind, Mapping) and arguments:
        for key, each in value.items():
            yield key, arguments[0], f"{place}, a key"
            yield each, arguments[1], f"{place}[{key!r}]"
    elif issubclass(kind, Sequence) and len(set(arguments) - {...}) == 1:
        yield from ((each, arguments[0], f"{place}[{number}]") for number, each in enumerate(value))


def _wrong(value: object, hint: Any, place: str) -> Mismatch:
    name = hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)
    return Mismatch(place, f"{value!r:.120} ({type(value).__name__})", name.replace("collections.abc.", ""))


def missing(part: type | object, kind: type) -> dict[str, str]:
    """Return what a part does not define and its base class leaves to it: name to what that is."""
    methods = getattr(part, "__abstractmethods__", ())
    found = {name: f"{name}{signature(getattr(kind, name))}: {_first_line(getattr(kind, name))}" for name in methods}
    needed = {name: hint for base in kind.__mro__ for name, hint in vars(base).get("__annotations__", {}).items()}
    values = {name: f"{name}: {hint}" for name, hint in needed.items() if not name.startswith("_")}
    return found | {name: what for name, what in values.items() if not _has(part, name) and not _has(kind, name)}


def _has(part: object, name: str) -> bool:
    return getattr_static(part, name, _has) is not _has


def _first_line(method: object) -> str:
    return " ".join((getdoc(method) or "").partition("\n\n")[0].split())


def wrong_values(part: object, kind: type) -> Iterator[tuple[str, Mismatch]]:
    """Yield the attributes and properties of a part whose type is not that of its base class."""
    hints = {name: hint for name, hint in get_type_hints(kind).items() if not name.startswith("_")}
    for name in dir(kind):
        if isinstance(own := getattr_static(kind, name), property) and not name.startswith("_"):
            hints[name] = get_type_hints(own.fget).get("return", Any)
    for name, hint in hints.items():
        if found := mismatch(getattr(part, name), hint, ""):
            yield name, found


def methods(kind: type) -> Iterator[tuple[str, Callable[..., Any], Any]]:
    """Yield the methods that a base class has for its parts, each with what it returns."""
    for name in dir(kind):
        method = getattr_static(kind, name)
        if isfunction(method) and not name.startswith("_"):
            yield name, method, get_type_hints(method).get("return", Any)
