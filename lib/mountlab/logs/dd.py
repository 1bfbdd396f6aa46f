"""dd's summaries in any language, decimal style and make: GNU (old and new), BusyBox, BSD and macOS.

No word is relied on. The line is known by its numbers: bytes, seconds and a rate that must follow from the two.
"""

from __future__ import annotations

import math
import re

from mountlab.core.errors import ToolError
from mountlab.core.resolution import last_digit
from mountlab.logs.base import (
    Figure,
    Format,
    LogReading,
    Part,
    StatedValues,
    elided,
    lines_of,
    matches_in,
    parts_at,
    rejoined,
    unpasted,
    unreadable,
)
from mountlab.logs.logged import plain
from mountlab.programs.dd import PREFIXES, TENTHS, UUTILS_CLOCK_S, Summary, as_number, measurements, prefix_of, summary

_NUMBER = r"\d{1,20}(?:[.,]\d{1,20})?(?:e[+-]?\d{1,2})?"
_SUMMARY = re.compile(
    r"^(?:[^\n'\"()]{0,120}(?:[:\]|>#$;] |records out,? )(?=\d{1,20} bytes ))??"
    r"(?:\d{1,20}\+\d{1,20} [^\d\n+]{2,40} ){0,2}"
    r"[^\d\n'\"]*(?P<bytes>\d{1,20})(?![.,]?\d)[^\d\n()（）+'\"]+"
    r"(?:[(（](?P<sizes>[^)）\n]*)[)）][^\d\n()（）]*)?"
    rf"(?P<seconds>{_NUMBER})\s?[^\d\W]+\.?\s?(?:[,，、]\s*|\(\s*(?=\d+\s?bytes/))"
    rf"(?P<rate>{_NUMBER})\s?(?P<unit>[^\d\W]*)/[^\d\W]+\)?\.?\s*$"
)
RECORDS = re.compile(r"^[^\d\n/'\"]*(?P<whole>\d{1,20})\+(?P<partial>\d{1,20})[^\d\n/'\"]*$")
_FLOWING = re.compile(
    r"(?:\d{1,20}\+\d{1,20}\s[^\d+/'\"]{2,40}\s){0,2}"
    r"(?<![\d.,+])\d{1,20}\s[^\W\d]{1,12}\s(?:\(\d[^()'\"]{1,40}\)\s)?[^\d()'\"]{1,30}\s"
    rf"{_NUMBER}\s[^\W\d]{{1,12}}\.?(?:[,，、]\s|\s\(){_NUMBER}\s?[^\W\d]*/[^\W\d]+\)?(?!\w)"
)
"""A summary among other words, or broken anywhere; with records that stand in front."""
_JOINED = re.compile(r"\d{1,20}\+\d{1,20} [^\d+]+")
"""Records in the line of the summary."""
_PROGRESS = re.compile(r"^\d{1,20} ?[^\d\n(（]+[(（]\d[^)）\n]*[)）][^\d\n]*\d{1,20} (?:s|秒)[,，、] *\d[^\n]*$")
"""status=progress counts whole seconds, and leaves its last line on the screen. A summary has six digits."""
_PROGRESS_BSD = re.compile(r"^\s*\d{1,20} bytes (?:\([^)\n]*\) )?transferred \d{1,20}\.\d{3}s, ")
"""FreeBSD's and macOS's progress. Their summary says "in 31.114429 secs"."""
LONG_S = 100
_COMPLAINT = re.compile(r"(?:^|[\s/])g?dd: (?!warning: )")
_INTERRUPTED = re.compile(r"\^C")
_NEAR = 5
"""Lines on either side of a complaint that are quoted with it."""
_FEW = 2
"""Of so few blocks one more in than out may as well be blocks of two sizes."""
_AT_ONCE = 0.001
"""Lines of as many bytes whose seconds differ by this share or less are of one dd, which prints its last progress as it
ends: without a flush, that is, which may take long."""
_ROWS = "rows '256+0 records in' and '256+0 records out' above each run; take this line away where it is progress"
_SIZE = re.compile(rf"(?P<size>{_NUMBER})\s?(?P<unit>[^\d\W]+)")
_NO_SUMMARY = (
    "bytes, seconds and the rate that follows from them: '1048576 bytes (1.0 MB, 1.0 MiB) copied, 0.5 s, 2.1 MB/s'"
)


def _split(text: str) -> list[Part]:
    """Return the outputs: each ends with its summary; a rest that is of dd is one that was cut off."""
    lines = lines_of(text)
    ends = [at + 1 for at in range(len(lines)) if _is_end(lines, at)]
    rest = lines[ends[-1] if ends else 0 :]
    cut = any(
        _PROGRESS.match(line) or RECORDS.match(line) or _COMPLAINT.search(line) or _begins_summary(line)
        for line in rest
    )
    return parts_at(lines, [0, *(ends if cut else ends[:-1])] if ends or cut else [])


def _is_end(lines: list[str], at: int) -> bool:
    """Return whether a line is the summary of an output, and not one of its progress."""
    match = _SUMMARY.match(lines[at])
    if _PROGRESS_BSD.match(lines[at]) or (match and _find_continued(lines, at, match)):
        return False
    if match and TENTHS.search(match["seconds"]):  # uutils up to 0.0.17 prints its progress like its summary
        return bool(_JOINED.match(lines[at])) or (at > 0 and bool(RECORDS.match(lines[at - 1])))
    if not match or not _PROGRESS.match(lines[at]):
        return bool(match)
    # Of a long run six digits may well be whole seconds. Then the lines of records above it tell.
    return at > 0 and bool(RECORDS.match(lines[at - 1])) and as_number(match["seconds"]) >= LONG_S


def _find_continued(lines: list[str], at: int, match: re.Match[str]) -> re.Match[str] | None:
    """Return the summary of the same dd, where it stands right below with its rows: coreutils 8.24 to 8.29 print their
    progress with fractions of a second."""
    end, most = at + 1, int(match["bytes"])
    while end < len(lines) and (more := _SUMMARY.match(lines[end])) and int(more["bytes"]) > most:
        end, most = end + 1, int(more["bytes"])
    below = lines[end : end + 3]
    if len(below) < 3 or (at and RECORDS.match(lines[at - 1])) or not all(map(RECORDS.match, below[:2])):
        return None
    last = _SUMMARY.match(below[2])
    if not last or int(match["bytes"]) > int(last["bytes"]):
        return None
    return last if as_number(match["seconds"]) <= as_number(last["seconds"]) else None


def _check_progress(lines: list[str]) -> None:
    """Raise ParseError for what may be progress, or another run of as many bytes: its rows may have been left out."""
    for at, line in enumerate(lines):
        match = _SUMMARY.match(line)
        last = _find_continued(lines, at, match) if match else None
        if _PROGRESS.match(line) or not match or not last or match["bytes"] != last["bytes"]:
            continue
        earlier_s, later_s = as_number(match["seconds"]), as_number(last["seconds"])
        if not later_s - earlier_s <= _AT_ONCE * later_s:
            raise unreadable("this may be dd's progress, or another run", at + 1, line, _ROWS)


def _begins_summary(line: str) -> bool:
    """Return whether it is what a torn summary begins with: bytes, and their size in parentheses."""
    whole = r"^[^\d\n'\"]*\d{1,20}[^\d\n(（+'\"]+[(（]\d+[.,]?\d* ?[kKMGT]i?B[,，)）]"
    return bool(re.match(whole, line) or re.match(r"^\d{3,20} ?[^\d\n(（+'\"]*B[)）]", line))


def _read(part: Part, known: StatedValues) -> LogReading:
    lines = part.text.split("\n")
    for number, line in enumerate(lines, start=1):
        if _is_failure(line):
            near = "\n".join(lines[max(0, number - _NEAR) : number + _NEAR])
            raise ToolError("dd failed", where=f"line {number}", got=line.strip()[:160], evidence=near)
    _check_progress(lines)
    at, printed = _find_summary(lines)
    _check_records(lines, at, printed.copied)
    if "bs" in known and "count" in known:  # a dd that was stopped prints a whole summary
        requested = int(known["bs"]) * int(known["count"])
        if printed.copied != requested:
            raise ToolError("dd did not copy what was asked", got=f"{printed.copied} B", allowed=f"{requested} B")
    rows = measurements(printed, str(known.get("direction", "")))
    return LogReading([Figure(measurement=row, line=at + 1) for row in rows])


def _is_failure(line: str) -> bool:
    """Return whether a line says that dd failed or was stopped."""
    return bool(_COMPLAINT.search(line) or _INTERRUPTED.search(line))


def _find_summary(lines: list[str]) -> tuple[int, Summary]:
    """Return the summary, and its place."""
    for at, line in enumerate(lines):
        match = _SUMMARY.match(line)
        if match and _is_end(lines, at):
            return at, _read_amounts(match, at + 1)
    last = max((n for n, line in enumerate(lines, start=1) if line.strip()), default=1)
    raise unreadable("dd printed no whole summary", last, lines[last - 1] if lines else "", _NO_SUMMARY)


def _read_amounts(match: re.Match[str], line: int) -> Summary:
    copied = int(match["bytes"])
    if not copied:
        raise ToolError("dd copied nothing", where=f"line {line}", got=match[0].strip())
    # Toybox writes 'M/s', and means MiB.
    rate = match["rate"] if match["unit"].endswith("B") and not _COUNTS_MIB.search(match[0]) else ""
    rate = rate if as_number(match["rate"]) else ""  # the first uutils divided whole numbers
    printed_summary = summary(copied, match["seconds"], rate, match["unit"])
    if not 0 < printed_summary.seconds < math.inf:
        raise unreadable("dd tells no time that can have passed", line, match[0], "more than 0 s")
    seconds, half = as_number(match["seconds"]), 0.51 * last_digit(match["seconds"])
    rates = (copied / (seconds + half), copied / max(seconds - half, math.ulp(0.0)))
    by_ms = copied / max(math.floor(seconds / UUTILS_CLOCK_S), 1) / UUTILS_CLOCK_S
    of_uutils = not as_number(match["rate"]) or _agree(match["rate"], match["unit"], by_ms, by_ms)
    sizes = [(size["size"], size["unit"], (copied, copied)) for size in _SIZE.finditer(match["sizes"] or "")]
    for printed, unit, (least, most) in (*([] if of_uutils else [(match["rate"], match["unit"], rates)]), *sizes):
        if not _agree(printed, unit, least, most):
            allowed = f"{copied / printed_summary.seconds if least < most else copied:.4g} for {printed} {unit}"
            raise unreadable("the numbers of dd's summary do not agree", line, match[0], allowed)
    return printed_summary


_COUNTS_MIB = re.compile(r"\d seconds, ")
"""BusyBox means MiB by MB; it prints microseconds. (Old versions of GNU write '(751 MB/s)' behind that word.)"""


def _agree(printed: str, unit: str, least: float, most: float) -> bool:
    """Return whether a printed number is between two values, rounded in its last digit. MB are MiB to BusyBox."""
    power, value = PREFIXES.get(prefix_of(unit), 0), as_number(printed)
    last = 1.01 * last_digit(printed)
    return any(least / base**power - last <= value <= most / base**power + last for base in (1000, 1024))


def _check_records(lines: list[str], at: int, copied: int) -> None:
    """One line for what came in and one for what went out, above the summary; or, where someone has kept the summary
    alone, none. Records in the line of the summary count as such lines. What dd wrote into a pipe may stand between
    them and the summary; another dd may not."""
    joined = _JOINED.findall(lines[at])
    lines, at = [*lines[:at], *joined, *lines[at:]], at + len(joined)
    counts = matches_in(lines, RECORDS)
    if not counts:
        return
    (first, read), (last, out) = counts[0], counts[-1]
    apart = any(map(str.strip, lines[first : last - 1]))
    other_dd = any(elided(line) or _COMMAND.search(line) or _PROGRESS.match(line) for line in lines[last:at])
    if len(counts) != 2 or apart or other_dd:
        allowed = "two lines of records, then the summary"
        raise unreadable("the outputs of several dd are mixed up, or lines are missing", first, lines[at], allowed)
    _check_all_written(read, out, first, copied)
    whole, partial = int(out["whole"]), int(out["partial"])
    if (whole and not partial and copied % whole) or copied < whole:
        raise unreadable("dd's records and bytes do not agree", at + 1, lines[at], f"a multiple of {whole}")


_COMMAND = re.compile(r"\bdd\s[^\n]{0,200}?\b(?:if|of|bs|count)=")


def _check_all_written(read: re.Match[str], out: re.Match[str], line: int, copied: int) -> None:
    """A dd that failed or was stopped has read a block that it did not write."""
    came, went = int(read["whole"]), int(out["whole"])
    same = read["partial"] == out["partial"]
    # Where only the last write was short, what came in is not what went out: blocks of two sizes would divide it.
    short = read["partial"] == "0" and came > 0 and copied % came != 0
    if came > _FEW and came == went + 1 and (same or short):
        raise ToolError(
            "dd did not write all that it read: it failed or was stopped",
            where=f"line {line}",
            got=f"{read[0].strip()}, {out[0].strip()}",
            allowed="as many records out as in",
        )


_BROKEN = re.compile(r"^\s*\d{1,20} bytes\b(?!.*/s)")


_OVERWRITTEN = re.compile(
    r"^.*, \d{1,6} s, [\d.,]{1,20} ?[kKMGT]?i?B/s ?(?=\d{1,20}\+\d{1,20} [^\d\n]*$)", re.MULTILINE
)
"""Progress in front of the records, where the carriage returns were lost."""


def _plain(text: str) -> str:
    logged = any(mark in text for mark in '<{["')
    apart = _OVERWRITTEN.sub("", (plain if logged else unpasted)(text).replace("**", ""))
    return _strip_words(rejoined(apart, _BROKEN, (_SUMMARY,)))


def _strip_words(text: str) -> str:
    """Return a text whose summaries each have a line without other words; all lines keep their numbers. What stands
    beside a complaint of dd, or beside another summary, is left as it is."""
    kept, at = [], 0
    matches = list(_FLOWING.finditer(text))
    for number, match in enumerate(matches):
        begin, end = text.rfind("\n", 0, match.start()) + 1, text.find("\n", match.end())
        end = len(text) if end < 0 else end
        lines = text[begin:end]
        beside = matches[max(0, number - 1) : number] + matches[number + 1 : number + 2]
        alone = "\n\n" not in match[0] and not any(other.end() > begin and other.start() < end for other in beside)
        if alone and not any(_SUMMARY.match(line) or _is_failure(line) for line in lines.split("\n")):
            kept += [text[at:begin], " ".join(match[0].split()), "\n" * lines.count("\n")]
            at = end
    return "".join([*kept, text[at:]])


FORMAT = Format(split=_split, read=_read, name=lambda part: "dd's summary", plain=_plain)
