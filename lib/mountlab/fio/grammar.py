"""The grammar of fio's job files: sections, options and comments, as fio reads them (its init.c and parse.c)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import PurePosixPath

from mountlab.core.errors import ParameterError

MOST_INCLUDED = 100
_BEGIN = re.compile(r"# from here on (.+), which was included")
_END = re.compile(r"# to here (.+), which was included")


@dataclass(frozen=True)
class JobLine:
    """One line that says something, without its comment."""

    number: int
    """Counted from 1."""
    text: str
    key: str
    """The name of an option; '' of a line that begins a section."""
    value: str | None
    """None for an option without a value; the name of a section."""


def read_lines(text: str) -> Iterator[JobLine]:
    """Yield the lines of a job file. A comment begins with ';' or '#', also behind a value: no value of fio has them.
    The name of a section is what stands between '[' and the last sign of the line, whatever that is."""
    for number, raw in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        line = re.split("[;#]", raw, maxsplit=1)[0].strip()
        if line.startswith("["):
            yield JobLine(number, line, "", line[1:-1])
        elif line.startswith("include") and not re.match(r"include\w", line):
            yield JobLine(number, line, "include", line.removeprefix("include")[1:].strip())
        elif line:
            key, equals, value = (part.strip() for part in line.partition("="))
            yield JobLine(number, line, key, value if equals else None)


def with_included(text: str, name: str, include: Callable[[str, str], str | None]) -> Iterator[str]:
    """Yield the lines of a job file, with those of the files that it includes in their place.

    `include`: the text of a file, from its path beside the first and the place that names it; None leaves the line as
    it is. Raises ParameterError for more than MOST_INCLUDED files, as of one that includes itself.
    """
    return _with_included(text, PurePosixPath(name), include, count(1))


def _with_included(
    text: str, path: PurePosixPath, include: Callable[[str, str], str | None], counted: Iterator[int]
) -> Iterator[str]:
    names = {line.number: line.value or "" for line in read_lines(text) if line.key == "include"}
    for number, raw in enumerate(text.removeprefix("\ufeff").splitlines(), start=1):
        place, inner = f"{path}, line {number}", path.parent / names.get(number, "")
        more = include(str(inner), place) if number in names else None
        if more is None:
            yield raw
            continue
        if next(counted) > MOST_INCLUDED:
            allowed = f"{MOST_INCLUDED} included files, none of which includes itself"
            raise ParameterError("too many included files", where=place, got=raw.strip()[:60], allowed=allowed)
        yield f"# from here on {inner}, which was included"
        yield from _with_included(more, inner, include, counted)
        yield f"# to here {inner}, which was included"


def origins(text: str) -> dict[int, str]:
    """Return, of a text with included files, where each line came from, by its number; {} without included files."""
    places, files = dict[int, str](), [("", count(1))]
    for number, raw in enumerate(text.splitlines(), start=1):
        name, lines = files[-1]
        if _END.fullmatch(raw) and len(files) > 1:
            files.pop()
        else:
            places[number] = f"{name}, line {next(lines)}" if name else f"line {next(lines)} of the file itself"
        if match := _BEGIN.fullmatch(raw):
            files.append((match[1], count(1)))
    return places if _BEGIN.search(text) else {}


def is_global(name: str) -> bool:
    """Return whether a section holds for all that follow: fio looks at the first six letters of its name."""
    return name.startswith("global")


def safe_name(text: str, taken: set[str] | frozenset[str] = frozenset(), *, usual: str = "file") -> str:
    """Return a name of letters, digits, '_', '.' and '-' that is not taken and leads out of no directory."""
    plain = re.sub(r"[^A-Za-z0-9_.]+", "-", text).strip("-.")[:40] or usual
    numbered = (plain if count == 1 else f"{plain[:36]}-{count}" for count in range(1, len(taken) + 2))
    return next(name for name in numbered if name not in taken)
