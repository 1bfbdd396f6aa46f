"""Report all errors of a parameter file at once, each with its line and column.

Reading stops at the first error. Here the key at fault is taken out and the rest is read again, until nothing is wrong.
An error that may only follow from what was taken out is not reported.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any, TypeVar

import yaml

from mountlab.core.errors import ParameterError, all_of, raise_all
from mountlab.core.safe_yaml import Raw, parse_yaml

Path = tuple[str, ...]
Read = TypeVar("Read")
MOST_ERRORS = 50
_WITH_ENTRIES: dict[str, Raw] = {
    "filesystems": {"type": "dir"},
    "workloads": {"tool": "fio", "rw": "read", "size": "1MiB"},
    "states": {"fill": "50%"},
    "neighbours": {"tool": "fio", "rw": "read", "size": "1MiB"},
}
"""Sections of named entries, with an entry that takes the place of one that is wrong."""
_OF_A_VALUE = ("unknown ", "wrong ", "a number with its unit", "a size ")
"""How errors begin that depend on no other key of the same entry."""


def read_all(text: str, read: Callable[[Raw], Read], *, where: str, overrides: Mapping[str, Any] | None = None) -> Read:
    """Return what `read` makes of a YAML file's mapping. Raises ParameterError for its error, which then has a line and
    a column, or ParameterErrors for several. `overrides`: by dotted key, what `read` puts in the place of values of the
    file."""
    raw = parse_yaml(text, where=where)
    try:
        return read(raw)
    except ParameterError as first:
        raise_all(_Search(text, raw, read, where, overrides or {}).errors(first))
        raise


class _Search:
    """The search for further errors in one file."""

    def __init__(
        self, text: str, raw: Raw, read: Callable[[Raw], Any], where: str, overrides: Mapping[str, Any]
    ) -> None:
        self.places, self.whole, self.read, self.where = _places(text), raw, read, where
        self.overridden = [tuple(key.split(".")) for key in overrides]
        chosen = overrides.get("preset", raw.get("preset")) or []
        self.presets = [chosen] if isinstance(chosen, str) else list(chosen)
        self.remaining, self.removed = deepcopy(raw), list[Path]()

    def errors(self, first: ParameterError) -> list[ParameterError]:
        """Return the first error and those behind it, with their places, in the order of the file."""
        errors, error = list[tuple[tuple[int, int], ParameterError]](), first
        for _ in range(MOST_ERRORS):
            path = self._path(error)
            if not errors or (path and self._is_its_own(error, path)):
                errors += [(self._placed(part, path), part) for part in all_of(error)]
            if not path or not self._remove(self._path_to_remove(error, path)):
                break
            try:
                self.read(deepcopy(self.remaining))
                break
            except ParameterError as another:
                error = another
        return [error for _, error in sorted(errors, key=lambda pair: pair[0])]

    def _path(self, error: ParameterError) -> Path:
        """Return the keys that lead to an error in the file; () where it is not known."""
        if error.where == self.where:  # an unknown key of the file itself
            return next(((key,) for key in self.remaining if repr(key) == error.got), ())
        place = error.where.removeprefix(f"{self.where}: ")
        return _matched(place, self.whole) if place != error.where else ()

    def _placed(self, error: ParameterError, path: Path) -> tuple[int, int]:
        """Put line and column into an error, and return them. A value from outside has none; one that a preset changes
        has those of the preset."""
        outside = any(path[-len(key) :] == key for key in self.overridden)
        origins = [("presets", str(name), *path) for name in reversed(self.presets)]
        line, column = next((self.places[place] for place in (*origins, path) if place in self.places), (0, 0))
        line = 0 if outside else line
        if line:
            rest = error.where.removeprefix(self.where)
            error.where = f"{self.where}, line {line}, column {column}{rest}"
        return line, column

    def _is_its_own(self, error: ParameterError, path: Path) -> bool:
        """Return whether an error is independent of the parts that were removed."""
        if any(path[: len(removed)] == removed or removed[: len(path)] == path for removed in self.removed):
            return False
        if path[0] not in (*_WITH_ENTRIES, "design"):
            return not any(removed[0] in _WITH_ENTRIES for removed in self.removed)
        if not any(_entry(removed) == _entry(path) for removed in self.removed):
            return True
        return error.what.startswith(_OF_A_VALUE)

    def _path_to_remove(self, error: ParameterError, path: Path) -> Path:
        """Return the path to remove: the key of a value that is wrong by itself, else its entry."""
        return path if error.what.startswith(_OF_A_VALUE) and _value(self.remaining, path) is not None else _entry(path)

    def _remove(self, path: Path) -> bool:
        """Remove a key, or replace an entry by a valid one. Return False where that changes nothing."""
        holder = _value(self.remaining, path[:-1])
        if path in self.removed or not isinstance(holder, dict) or path[-1] not in holder:
            return False
        if path[0] in _WITH_ENTRIES and path == _entry(path):
            holder[path[-1]] = dict(_WITH_ENTRIES[path[0]])
        else:
            del holder[path[-1]]
        self.removed.append(path)
        return True


def _entry(path: Path) -> Path:
    return path[:2] if path[0] in _WITH_ENTRIES else path[:1]


def _value(raw: Any, path: Path) -> Any:
    for key in path:
        raw = raw.get(key) if isinstance(raw, dict) else None
    return raw


def _matched(place: str, raw: Any) -> Path:
    """Return the keys of a mapping that a dotted place begins with: keys may hold dots themselves."""
    if not isinstance(raw, Mapping):
        return ()
    fitting = [str(key) for key in raw if f"{place}.".startswith(f"{key}.")]
    if not fitting:
        return ()
    key = max(fitting, key=len)
    return (key, *_matched(place[len(key) + 1 :], raw.get(key)))


def _places(text: str) -> dict[Path, tuple[int, int]]:
    """Return line and column of every key of a YAML text, counted from 1."""
    places: dict[Path, tuple[int, int]] = {}

    def visit(node: yaml.Node | None, path: Path) -> None:
        for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
            below = (*path, str(key.value))
            places[below] = (key.start_mark.line + 1, key.start_mark.column + 1)
            visit(value, below)

    visit(yaml.compose(text, Loader=yaml.SafeLoader), ())
    return places
