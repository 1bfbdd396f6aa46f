"""What services and programs put around each line of an output when they log it, and what undoes it line by line.

Every output has a line that is known by its words. What stands before that one stands before the others, too.
"""

from __future__ import annotations

import json
import re

from mountlab.logs.base import unpasted

_TAGS = re.compile(
    r"</?(?:pre|code|br|p|div|span|samp|tt|li|hr|wbr)(?:\s[^<>\n]{0,200})?/?>|\{(?:code|noformat)(?::[^{}\n]*)?\}",
    re.IGNORECASE,
)
_PAIRS = (
    "a|abbr|b|big|blockquote|body|center|cite|dd|del|details|dl|dt|em|figure|font|h[1-6]|html|i|ins|kbd|mark|ol|"
    "q|s|section|small|strike|strong|sub|summary|sup|table|tbody|td|tfoot|th|thead|tr|u|ul|var"
)
_ENDS = re.compile(rf"</({_PAIRS})\s?>", re.IGNORECASE)
"""Marks that count only where their end is there, too: a client of fio's may have such a name."""
_CELLS = re.compile(
    r"(?<![ \t])[ \t]{0,20}</t[dh]\s?>(?:[ \t]{0,20}<t[dh](?:\s[^<>\n]{0,200})?>)?[ \t]{0,20}", re.IGNORECASE
)
_BB_ENDS = re.compile(r"\[/(code|icode|quote|pre|tt|b|i|u|s|color|size|font|spoiler)\]", re.IGNORECASE)
"""Those of forums."""
_STRING = re.compile(r'\s*("(?:[^"\\]|\\.)*"),?\s*')
_RECORD = re.compile(r'\s*\{"log":\s?("(?:[^"\\]|\\.)*")[,}].*')
"""A line of Docker's log files."""
_KNOWN = re.compile(
    r'cpu +: usr=|issued (?:r/w|rwts?)? *: total=|"usr_cpu"\s*:|FSUse%|Compare (?:file sync|open_sync)|IO Summary'
)
_SINCE = re.compile(r"(?:(?<!\w)\d+: +)?(?<![\d.])\d+\.\d+: $")
"""What filebench itself writes there: seconds since it began, and its process."""
_LONGEST = 160
_REPORT = re.compile(r'\{\s*"fio version"')
_BEFORE_JSON = re.compile(r'^[^{\n]{0,160}[^{\s][ \t]?(?=\{\s*"fio version")', re.MULTILINE)


def plain(text: str) -> str:
    """Return a text as it was before it was logged, and copied."""
    return unpasted(unlogged(text))


def unlogged(text: str) -> str:
    """Return the text of a log without marks of HTML and trackers, strings of JSON as their content, and without what
    a service writes before each line. Lines keep their numbers."""
    if "<" in text or "{" in text:
        text = _strip_pairs(_TAGS.sub("", text))
    if "[/" in text:
        names = {name.lower() for name in _BB_ENDS.findall(text)}
        text = _remove(rf"\[/?(?:{'|'.join(sorted(names))})(?:=[^\[\]\n]{{0,80}})?\]", text) if names else text
    if '"' not in text:
        return _strip_before(text)
    lines = text.split("\n")
    for start, pattern in (('"', _STRING), ('{"log":', _RECORD)):
        if 2 * sum(line.lstrip().startswith(start) for line in lines) > sum(map(bool, lines)):
            lines = _decode_lines(lines, pattern)
    text = _strip_before("\n".join(lines))
    starts = (match.start() for match in _REPORT.finditer(text))
    return _BEFORE_JSON.sub("", text) if any(_text_before(text, start).strip() for start in starts) else text


def _strip_pairs(text: str) -> str:
    """Return a text without marks of HTML that have an end. Cells of a table are words of their own."""
    names = {name.lower() for name in _ENDS.findall(text)} if "</" in text else set()
    if not names:
        return text
    if names & {"td", "th"}:
        text = _CELLS.sub(" ", text)
    return _remove(rf"</?(?:{'|'.join(sorted(names))})(?:\s[^<>\n]{{0,300}})?/?>", text)


def _remove(pattern: str, text: str) -> str:
    return re.sub(pattern, "", text, flags=re.IGNORECASE)


def _decode_lines(lines: list[str], pattern: re.Pattern[str]) -> list[str]:
    """Return lines, where most are strings of JSON (Ansible, notebooks, Docker) with what these stand for."""
    matches = [pattern.fullmatch(line) for line in lines]
    if 2 * sum(map(bool, matches)) <= sum(map(bool, map(str.strip, lines))):
        return lines
    return [_decode_line(match[1]) if match else line for line, match in zip(lines, matches, strict=True)]


def _decode_line(string: str) -> str:
    try:
        return str(json.loads(string, strict=False)).rstrip("\n").replace("\n", " ")
    except ValueError:  # an escape that JSON does not have
        return string.strip('"')


def _strip_before(text: str) -> str:
    """Return a text without what stands before the known lines; its numbers may differ by line."""
    before_known = (_text_before(text, match.start()) for match in _KNOWN.finditer(text))
    befores = {_SINCE.sub("", before).rstrip() for before in before_known if len(before) <= _LONGEST}
    if not befores or any(not before or '"' in before for before in befores):  # a key of JSON is of the output
        return text
    shapes = {re.sub(r"\d+", r"\\d+", re.sub(r"(?:\\ )+", r"[ \\t]+", re.escape(before))) for before in befores}
    return re.sub(rf"^(?:{'|'.join(sorted(shapes, key=len, reverse=True))})[ \t]?", "", text, flags=re.MULTILINE)


def _text_before(text: str, place: int) -> str:
    """Return what stands on the same line before a place."""
    return text[text.rfind("\n", 0, place) + 1 : place]
