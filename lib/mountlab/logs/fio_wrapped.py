"""fio's reports inside of other JSON: a line of JSON a run, a list of reports, a report under a key or as a string."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise

from mountlab.tools.base import decode_json

_KEY = '"fio version"'
_PLAIN = re.compile(r'^\{\s*"fio version"', re.MULTILINE)
_TOKEN = re.compile(r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*"(?P<key>\s*:)?|[{}\[\]]')
_JSON_FOLLOWS = {"{": re.compile(r'\{\s*"'), "[": re.compile(r'\[\s*[\[{"]')}
"""What tells a bracket of JSON from one of a script."""
_STRING = re.compile(r'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*"')
_DEEPEST = 3
"""So many times may a string of JSON be inside of a string."""


def as_objects(text: str) -> str:
    """Return a text whose strings of JSON that are a report are that report, on the same line."""
    for _ in range(_DEEPEST):
        if '\\"fio version\\' not in text:
            break
        text = _STRING.sub(_object, text)
    return text


def _object(string: re.Match[str]) -> str:
    quoted = string[0]
    if '\\"fio version\\' not in quoted or "{" not in quoted:  # one line of a report, where each is a string
        return quoted
    try:
        report = json.loads(quoted, strict=False)
    except ValueError:
        return quoted
    return str(report).replace("\r", " ").replace("\n", " ")


def are_whole(text: str) -> bool:
    """Return whether a text has reports inside of other JSON that can be read as they stand."""
    for begin, end in spans(text):
        try:
            decode_json(text[begin:end])
        except ValueError:
            continue
        return True
    return False


def spans(text: str) -> list[tuple[int, int]]:
    """Return where each report begins and ends, if one of them is inside of other JSON; else nothing. One that is cut
    off ends where the next one begins."""
    number = text.count(_KEY)
    if not number or len(_PLAIN.findall(text)) == number:
        return []
    objects = sorted(_objects(text))
    if not any(inside for _, _, inside in objects):
        return []
    edges = [*(begin for begin, _, _ in objects), len(text)]
    return [(begin, min(end, after)) for (begin, end, _), (_, after) in zip(objects, pairwise(edges), strict=True)]


def _objects(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield the begin and the end of each object with fio's version, and whether it is inside of another one."""
    opened: list[int] = []
    reports: set[int] = set()
    for token in _TOKEN.finditer(text):
        sign = token[0][0]
        if sign in "{[":
            if _JSON_FOLLOWS[sign].match(text, token.start()):
                opened.append(token.start())
        elif sign == '"':
            if token["key"] and token[0].startswith(_KEY) and opened:
                reports.add(opened[-1])
        elif opened and text[opened[-1]] == ("{" if sign == "}" else "["):
            begin = opened.pop()
            if begin in reports:
                yield begin, token.end(), bool(opened)
    yield from ((begin, len(text), place > 0) for place, begin in enumerate(opened) if begin in reports)
