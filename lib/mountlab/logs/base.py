"""What a log from elsewhere is made of: outputs, one after the other, each with figures or with the reason for none."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import unescape
from itertools import groupby, pairwise
from textwrap import dedent
from typing import AnyStr, NamedTuple

from mountlab.core.errors import MountlabError, ParseError
from mountlab.core.model import Measurement, Scalar
from mountlab.logs.mailed import Letter, same

_UTF_16 = (b"\xff\xfe", b"\xfe\xff")
LARGEST_LOG = 256 * 1024 * 1024
"""More bytes than this are no log of a benchmark: reading them would fill the memory."""
StatedValues = Mapping[str, Scalar]
"""Options of the tool that the user knows were given, though the log does not say so."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """The lines of one output within a log."""

    text: str
    """With what stands between it and its neighbours, so that the parts of a log are the log."""
    line: int
    """The number of its first line, from 1."""
    form: str = ""
    """Which of several formats of a tool it is."""
    skipped: int = 0
    """How many of its lines, from the top, are snapshots that the tool printed before it was done."""
    reports: int = 1
    """How many reports of the same run it holds; the last counts."""
    inside: bool = False
    """Whether it is a piece of its lines only: a report inside of other JSON."""


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A measurement, and the line of the log in which it stands (for a sum, the last of them)."""

    measurement: Measurement
    line: int


class LogReading(NamedTuple):
    """What one output holds."""

    figures: list[Figure]
    notes: Sequence[str] = ()
    """Sentences for the user: what was left out of the text, and what differs from what the tool printed."""


@dataclass(frozen=True, kw_only=True)
class Output:
    """One output of a tool: figures, or why none can be trusted."""

    part: Part
    form: str
    """'JSON of fio-3.33': the format, and the version where it is stated."""
    figures: tuple[Figure, ...] = ()
    problem: MountlabError | None = None
    notes: tuple[str, ...] = ()
    """As in LogReading."""

    @property
    def measurements(self) -> list[Measurement]:
        return [figure.measurement for figure in self.figures]


def decoded(data: bytes) -> str:
    """Return the text of a log: UTF-8, or UTF-16 with its mark (PowerShell's redirection); other bytes become U+FFFD.

    Lines end with a newline, and of what was overwritten on a terminal (progress with carriage returns) the last stays.
    """
    encoding = "utf-16" if data[:2] in _UTF_16 else "utf-8-sig"
    text = data.decode(encoding, errors="replace").replace("\r\n", "\n")
    if "\r" in text:
        return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in text.split("\n"))
    return text


_BLANKS = re.compile("[\u00a0\u2000-\u200a\u202f\u205f\u3000]")
_INVISIBLE = re.compile(
    "[\u200b\u200e\u200f\u2060\ufeff]|\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b\n]*(?:\x07|\x1b\\\\)|[()][0-9A-B]|[=>])"
)
_ENTITY = re.compile(r"&(?:gt|lt|amp|quot|apos|nbsp|#\d{1,5}|#x[0-9a-f]{1,4});", re.IGNORECASE)
_QUOTED = re.compile(r"\s{0,12}>(?:\s?>)* ?(?!=)")
"""Marks of an answer in front of a line, and not `>=64`, with which a wrapped line of fio's may begin."""
_BAR = re.compile(r"\s{0,3}\|(?: |$)")
_TAB = re.compile(r"(?<=\S)\t(?=\S)")
_BULLET = re.compile(
    r"\n[ \t]{0,40}(?:[*o\-\u2022\u2023\u2013\u25a0\u25aa\u25cb\u25cf\u25e6\u00b7]|\d{1,3}[.)])[ \t]{1,20}"
    r"(?=\d{1,20}[ \t]+\d{1,20}[ \t]+\d{1,20}[ \t]+\d{1,20}\.\d|\d{1,2} \* {1,3}\d{1,2}kB |\d{1,20}\+\d|\d{1,20} \w+ \("
    r"|(?:open_datasync|fdatasync|fsync|fsync_writethrough|open_sync|write(?:, \w+, \w+)?)[ \t]+(?:\d|n/a)"
    r"|(?:read|write|trim|mixed) ?: *(?:IOPS|io)=|(?:slat|clat|lat|cpu|issued)\b[^\n]{0,20}[:=]|(?:READ|WRITE): "
    r"|[\w.:/-]{1,60}[ \t]+\d+ops[ \t])"
)
"""A mark of a list before a row of some tool."""
_TABLE = re.compile(r"\s*+\S.*\|$")
_STAMP = re.compile(
    r"\s*+\[?(?:\d{4}-\d\d-\d\d[T ]|\w{3} +\d{1,2} )?\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?\]?"
    r"(?:[ \t]*\w*[ \t]*\|?[ \t]*\[std(?:out|err)\]|[ \t]\S{1,60}[ \t]\S{1,60}\[\d{1,9}\]:)?[ \t]?"
)
"""What a test runner or a log service writes in front of each line: a time, and the stream or the process."""
_SERVICE = re.compile(r"[\w.-]{1,60}[ \t]+\| ?")
"""What docker compose writes there."""
_COMMENT = re.compile(r"\s*(?:#|//)[ \t]?")
"""An output that somebody keeps in a script, as a comment."""
_OF_FS_MARK = re.compile(r"\s*#\s+(?:\S*fs_mark|Sync method:|File names:|Files info:)")
"""It begins most of its lines with that mark itself."""


def unpasted(text: str) -> str:
    """Return a text as it was before it was copied from a page, a mail, a terminal or the log of a test runner.

    Blanks of other widths become blanks, and HTML entities the characters that they stand for. Invisible characters,
    colours and trailing blanks are removed, and so are quote marks, times of a log in front of most lines, marks of a
    comment in front of all, marks of a list before a row, the ends of a table's lines, and the indentation of all
    lines. Lines keep their numbers.
    """
    if _ENTITY.search(text):
        text = _ENTITY.sub(lambda match: " " if match[0] == "&#10;" else unescape(match[0]), text)
    text = _TAB.sub("  ", text) if "\t" in text else text
    lines = [line.rstrip(" \t") for line in _INVISIBLE.sub("", _BLANKS.sub(" ", text)).split("\n")]
    lines = _strip_prefix(lines, _QUOTED)
    if all(_COMMENT.match(line) for line in lines if line) and not any(map(_OF_FS_MARK.match, lines)):
        lines = _strip_prefix(lines, _COMMENT)
    for prefix in (_STAMP, _SERVICE):
        lines = _strip_common_prefix(lines, prefix)
    ends = sum(line[-1:] == "|" for line in lines)
    if ends > 1 and 2 * ends > sum(map(bool, lines)):  # cells of a table
        lines = [line.rstrip(" \t|") if line[-1:] == "|" else line for line in lines]
    lines = _strip_bars(lines)
    indented = all(line[:1].isspace() for line in lines if line)
    text = dedent("\n".join(lines)) if indented else "\n".join(lines)
    return _BULLET.sub("\n", f"\n{text}")[1:]


def _strip_common_prefix(lines: list[str], prefix: re.Pattern[str]) -> list[str]:
    """Return lines without what most of them begin with; a few of them may well be of something else."""
    filled = sum(map(bool, lines))
    matched = sum(map(bool, map(prefix.match, lines)))
    return _strip_prefix(lines, prefix) if matched > 1 and 2 * matched > filled else lines


def _strip_prefix(lines: list[str], prefix: re.Pattern[str]) -> list[str]:
    return [line[match.end() :] if (match := prefix.match(line)) else line for line in lines]


def _strip_bars(lines: list[str]) -> list[str]:
    """Return lines without `| ` as a quote mark before several lines, none of which is a row of a table. fio's
    percentiles, which begin with one, are read without it, too."""
    if not any(map(_BAR.match, lines)):
        return lines
    unquoted: list[str] = []
    for marked, paragraph in groupby(lines, key=lambda line: bool(_BAR.match(line))):
        run = list(paragraph)
        quoted = marked and len(run) > 1 and not any(map(_TABLE.match, run))
        unquoted += _strip_prefix(run, _BAR) if quoted else run
    return unquoted


_ELIDED = re.compile(
    r"\s*+(?:[\[(<{]?\s*(?:\.{2,}|\u2026)\s*[\])>}]?|snip\w*|[-=~]*\s*(?:8<|>8)[^\n]{0,60}"
    r"|[\[(<{*~=-]+[^\n]{0,40}\b(?:snip\w*|cut|elided|omitted|truncated|skipped|removed|more lines)\b[^\n]{0,40})\s*",
    re.IGNORECASE,
)
"""A line that stands for lines which somebody left out."""
_MOST_BROKEN = 2
"""Lines of a mailer behind the first into which it breaks one of a tool."""


def elided(line: str) -> bool:
    """Return whether a line says that others were left out: '...', '[snip]', '<truncated>'."""
    return bool(_ELIDED.fullmatch(line))


def rejoined(text: str, begins: re.Pattern[str], whole: Sequence[re.Pattern[str]]) -> str:
    """Return a text, those lines joined again that a mailer broke at its 72 columns or so: what begins as a line of the
    tool and is none, but is one with the next. The lines after it become empty, so that all keep their numbers."""
    lines = text.split("\n")
    joined_lines = list(lines)
    for at, line in enumerate(lines):
        if not begins.match(joined_lines[at]) or any(pattern.match(line) for pattern in whole):
            continue
        for count in range(1, _MOST_BROKEN + 1):
            rest = [part.strip() for part in lines[at + 1 : at + 1 + count]]
            if len(rest) < count or not rest[-1]:
                break
            joined = next(
                (text for mark in (" ", "") if any(p.match(text := mark.join([line, *rest])) for p in whole)), None
            )
            if joined:
                joined_lines[at : at + 1 + count] = [joined, *[""] * count]
                break
    return "\n".join(joined_lines)


def _never(data: bytes) -> list[Measurement] | None:
    """Formats whose `read` is quick enough."""
    return None


@dataclass(frozen=True, kw_only=True)
class Format:
    """How the outputs of one tool are found in a log, and read."""

    split: Callable[[str], list[Part]]
    """A text without carriage returns to its outputs; [] where it holds none."""
    read: Callable[[Part, StatedValues], LogReading]
    """Raises TrialError with the line, counted from the first of the part, in `where`."""
    name: Callable[[Part], str]
    """Format and version, for people."""
    plain: Callable[[str], str] = unpasted
    """Undoes what copying and pasting does to a text of this tool, line by line."""
    apart: Callable[[str], Letter] = same
    """Parts the lines of this tool that stand in one."""
    quick: Callable[[bytes], list[Measurement] | None] = _never
    """The figures of a file that is one plain output, without their lines; None where `split` and `read` are needed."""


def original(data: bytes, part: Part) -> bytes:
    """Return the bytes of one part of a log; of a piece of its lines, its text."""
    if part.inside:
        return part.text.encode()
    count = part.text.count("\n") + (not part.text.endswith("\n"))
    if data[:2] in _UTF_16:
        lines = data.decode("utf-16", errors="replace").split("\n")
        return _join_lines("\n", lines, part.line, count).encode("utf-16")
    return _join_lines(b"\n", data.split(b"\n"), part.line, count)


def _join_lines(end: AnyStr, lines: list[AnyStr], first: int, count: int) -> AnyStr:
    """Return lines with their ends; the last line of a text may have none."""
    kept = lines[first - 1 : first - 1 + count]
    return end.join(kept) + (end if first - 1 + count < len(lines) else end[:0])


def times_ten(number: str, power: int) -> float:
    """Return a printed number times a power of ten, exactly as if it had been printed so: 67.1 us are 6.71e-05 s, and
    not 6.709999999999999e-05."""
    return float(f"{number}e{power}")


def matches_in(lines: Sequence[str], pattern: re.Pattern[str], first: int = 1) -> list[tuple[int, re.Match[str]]]:
    """Return the lines that begin so, by number; the first line has number `first`."""
    return [(number, match) for number, line in enumerate(lines, start=first) if (match := pattern.match(line))]


def lines_of(text: str) -> list[str]:
    """Return the lines of a text, each with its newline. (str.splitlines also splits at form feeds and the like.)"""
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def parts_at(lines: list[str], starts: list[int], forms: list[str] | None = None) -> list[Part]:
    """Return the parts that begin at some lines (from 0); what stands before the first belongs to it."""
    edges = [0, *starts[1:], len(lines)] if starts else []
    return [
        Part(text="".join(lines[begin:end]), line=begin + 1, form=forms[number] if forms else "")
        for number, (begin, end) in enumerate(pairwise(edges))
    ]


def unreadable(what: str, line: int, text: str, allowed: str = "") -> ParseError:
    """Return a line of a part, counted from 1, that cannot be read as figures."""
    return ParseError(what, where=f"line {line}", got=text.strip()[:160] or "an empty line", allowed=allowed)


def placed(error: MountlabError, part: Part, where: str) -> MountlabError:
    """Return the error of a part with the name of the log and the line in it. One of the whole part is shown at the
    line that it quotes, or at the last."""

    def later(match: re.Match[str]) -> str:
        return f"line {int(match[1]) + part.line - 1}"

    if not re.search(r"line \d+", error.where):
        lines = [line.strip() for line in part.text.split("\n")]
        last = max((number for number, line in enumerate(lines, start=1) if line), default=1)
        line = lines.index(error.got) + 1 if error.got and error.got in lines else last
        error.where = f"line {line}" + (f" ({error.where})" if error.where else "")
    error.where = ", ".join(filter(None, (where, re.sub(r"line (\d+)", later, error.where))))
    return error
