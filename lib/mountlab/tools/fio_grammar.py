"""The grammar of fio's job files: sections, options and comments, as fio reads them (its init.c and parse.c)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


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


def is_global(name: str) -> bool:
    """Return whether a section holds for all that follow: fio looks at the first six letters of its name."""
    return name.startswith("global")


def safe_name(text: str, taken: set[str] | frozenset[str] = frozenset(), *, usual: str = "file") -> str:
    """Return a name of letters, digits, '_', '.' and '-' that is not taken and leads out of no directory."""
    plain = re.sub(r"[^A-Za-z0-9_.]+", "-", text).strip("-.")[:40] or usual
    numbered = (plain if count == 1 else f"{plain[:36]}-{count}" for count in range(1, len(taken) + 2))
    return next(name for name in numbered if name not in taken)
