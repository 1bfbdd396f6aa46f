"""YAML from anywhere to plain mappings, in bounded time and memory: nothing in it is executed, no alias multiplies it,
and no text in it can steer a terminal."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping
from typing import Any

import yaml

from mountlab.core.errors import ParameterError

Raw = dict[str, Any]
LONGEST = 4 * 1024 * 1024
"""Characters of a text: about a minute of reading. The longest that people write have some thousand."""
MOST_NODES = 300_000
"""Values with all aliases written out. An import file of 10,000 logs has 100,000."""
DEEPEST = 60
"""Mappings and lists within each other."""
LONGEST_NUMBER = 100
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
"""What no text needs: characters that a terminal obeys and at which some programs stop reading, and halves of some."""
_TURNING = re.compile(f"{_CONTROL.pattern[:-1]}\u2028-\u202e\u2066-\u2069]")
"""Beside these, what makes text look as if it stood in another order. Pages show it by name, so that a run may hold it;
a file that people read before they run it may not."""


class _StrictLoader(yaml.SafeLoader):
    """YAML that refuses a key given twice, where PyYAML would keep the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        seen: set[Hashable] = set()
        for key_node, _ in node.value:
            if key_node.tag.endswith(":merge"):
                continue
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, Hashable) and key in seen:
                line = key_node.start_mark.line + 1
                raise ParameterError(
                    "a key is given twice", where=f"line {line}", got=repr(key), allowed="each key once"
                )
            seen |= {key} if isinstance(key, Hashable) else set()
        return super().construct_mapping(node, deep=deep)


def parse_yaml(text: str, *, where: str) -> Raw:
    """Return a mapping from YAML text. Raises ParameterError with file and line for anything else."""
    try:
        loaded = parse_value(text)
    except yaml.MarkedYAMLError as error:
        raise _not_valid(error, where) from error
    except (yaml.YAMLError, ValueError, RecursionError, OverflowError) as error:
        # Impossible dates, endless digits, deep nests; a tag of Python's, which is always ignored.
        raise ParameterError("not valid YAML", where=where, got=" ".join(str(error).split())[:300]) from error
    except ParameterError as error:
        error.where = f"{where}, {error.where}" if error.where else where
        raise
    if not isinstance(loaded, dict):
        raise ParameterError("a mapping of keys to values is needed", where=where, got=type(loaded).__name__)
    check_texts(loaded, where, turning=True)
    return loaded


def _not_valid(error: yaml.MarkedYAMLError, where: str) -> ParameterError:
    """Return the error with the line and the column of the place where the text stops being YAML."""
    mark, begin = error.problem_mark or error.context_mark, error.context_mark
    place = f"{where}, line {mark.line + 1}, column {mark.column + 1}" if mark else where
    context = f", {error.context}" if error.context else ""
    if context and begin and mark and begin.line != mark.line:
        context += f" that begins in line {begin.line + 1}"
    return ParameterError(
        "not valid YAML",
        where=place,
        got=f"{error.problem or 'no YAML'}{context}"[:300],
        next_step="see this line and the one before it: a bracket, a quote, a colon or the indentation",
    )


def parse_value(text: str) -> Any:
    """Return what a YAML text says. Raises what PyYAML does, and ParameterError for what would grow beyond bounds."""
    if len(text) > LONGEST:
        raise ParameterError("too long for a parameter file", got=f"{len(text)} characters", allowed=f"{LONGEST}")
    loader = _StrictLoader(text)
    try:
        node = loader.get_single_node()
        if node is None:
            return None
        _check_size(node)
        return loader.construct_document(node)
    finally:
        loader.dispose()


def as_yaml(value: Mapping[str, Any]) -> str:
    """Return a mapping as the YAML files of a run and of a bundle hold it: the same text for the same mapping."""
    return str(yaml.safe_dump(dict(value), sort_keys=False, allow_unicode=True))


def check_texts(raw: object, where: str, *, turning: bool = False) -> None:
    """Raise ParameterError for a text, key or value, with a character that no text needs. `turning`: nor one that turns
    text round."""
    pattern = _TURNING if turning else _CONTROL
    pending: list[tuple[object, str]] = [(raw, where)]
    while pending:
        value, place = pending.pop()
        if isinstance(value, str):
            _check_text(value, pattern, place)
        elif isinstance(value, Mapping):
            pending += [(key, place) for key in value]
            pending += [(inner, f"{place}.{key!s:.60}") for key, inner in value.items() if not isinstance(inner, int)]
        elif isinstance(value, (list, tuple)):
            pending += [(inner, place) for inner in value]


def _check_text(text: str, pattern: re.Pattern[str], where: str) -> None:
    found = pattern.search(text)
    if found:
        raise ParameterError(
            "a control character in a text",
            where=ascii(where)[1:-1],
            got=f"U+{ord(found[0]):04X} in {text[:60]!a}",
            allowed="letters, signs, spaces, tabs and new lines",
        )


def _check_size(root: yaml.Node) -> None:
    """Count what the nodes come to with every alias written out, each node looked at once. Recursion is bounded."""
    sizes: dict[yaml.Node, int] = {}

    def size(node: yaml.Node, depth: int) -> int:
        if depth > DEEPEST:
            raise ParameterError(
                "nested too deeply, or within itself",
                where=_line(node),
                got=f"more than {DEEPEST} levels",
                allowed=f"{DEEPEST} levels",
            )
        if node not in sizes:
            sizes[node] = 1 + sum(size(each, depth + 1) for each in _inner(node))
        if sizes[node] > MOST_NODES:
            raise ParameterError(
                "too large with its aliases written out",
                where=_line(node),
                got=f"more than {MOST_NODES} values",
                allowed=f"{MOST_NODES}",
            )
        return sizes[node]

    size(root, 0)


def _inner(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [each for pair in node.value for each in pair]
    if isinstance(node, yaml.SequenceNode):
        return list(node.value)
    if not node.tag.endswith((":str", ":binary")) and len(node.value) > LONGEST_NUMBER:
        raise ParameterError(
            "too long for a number or a date",
            where=_line(node),
            got=f"{len(node.value)} characters",
            allowed=f"{LONGEST_NUMBER}",
            next_step="put text in quotes",
        )
    return []


def _line(node: yaml.Node) -> str:
    return f"line {node.start_mark.line + 1}"
