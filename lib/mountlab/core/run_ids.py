"""Names of runs, made and read here alone: `20261120T101902-tour-mybox-3f9a`, with `-<client>` behind it on a client.

Sweeps and boxes may have hyphens in their names, so a name is read with the box that run.json states.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime

_BEGIN = r"(?P<time>\d{8}T\d{6})-(?P<sweep>.+)-"
_END = r"(?P<end>-[0-9a-f]{4}|-\d+)?"


@dataclass(frozen=True)
class RunId:
    """The parts of a name."""

    time: str
    """UTC, to the second."""
    sweep: str
    box: str
    end: str
    """Four hexadecimal digits by chance; earlier versions gave a count from 2 on to all but the first of a second."""

    def __str__(self) -> str:
        return "-".join(part for part in (self.time, self.sweep, self.box, self.end) if part)


def new_id(at: datetime, sweep: str, box: str, end: str) -> str:
    """Return the name of a run that begins at this moment (UTC)."""
    return str(RunId(f"{at:%Y%m%dT%H%M%S}", sweep, box, end))


def read(run_id: str, box: str) -> RunId | None:
    """Return the parts of the name of a run on a box; None for a name that somebody has given."""
    match = re.fullmatch(f"{_BEGIN}{re.escape(box)}{_END}", run_id)
    return RunId(match["time"], match["sweep"], box, (match["end"] or "").removeprefix("-")) if match else None


def with_box(run_id: str, box: str, new: str) -> str:
    """Return a name with another one for its box. One that somebody has given: each part between '-', '_' and '.' that
    is the box."""
    if parts := read(run_id, box):
        return str(replace(parts, box=new))
    return re.sub(rf"(?<![A-Za-z0-9]){re.escape(box)}(?![A-Za-z0-9])", lambda _: new, run_id, flags=re.IGNORECASE)


def of_client(run_id: str, client: str) -> str:
    """Return the name that a run has on another box, a client of its own."""
    return f"{run_id}-{client}"
