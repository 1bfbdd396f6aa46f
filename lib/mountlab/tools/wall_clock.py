"""How long a command takes by the box's clock, for programs that do not tell it.

A shell around the command reads the wall clock, and what /proc/uptime says, just before and just after it. The clock is
read by starting date(1), which takes some milliseconds: before the command it is read twice, and the time between these
two is what a reading may add to the figure. That is also the least that a change must be to be seen.
"""

from __future__ import annotations

import re

from mountlab.core.errors import ParseError
from mountlab.core.units import NS_PER_S

FILE = ".wall_clock"
"""In the output directory. A name of this kind cannot be that of a file of the user's (`from`)."""
UPTIME_STEP_S = 0.01
"""/proc/uptime counts hundredths of a second."""
_SCRIPT = (
    "out=$1; shift; first=$(date +%s%N); read -r a _ < /proc/uptime; start=$(date +%s%N); read -r b _ < /proc/uptime; "
    '"$@"; status=$?; read -r c _ < /proc/uptime; end=$(date +%s%N); read -r d _ < /proc/uptime; '
    'echo "$first $start $end $a $b $c $d" > "$out"; exit "$status"'
)
_STAMPS = re.compile(r"(\S+) (\S+) (\S+) (\d+\.\d+) (\d+\.\d+) (\d+\.\d+) (\d+\.\d+)\n")
_NANOSECONDS = re.compile(r"\d{16,20}")
"""Some builds of BusyBox print whole seconds only."""


def timed(argv: tuple[str, ...], output: str) -> tuple[str, ...]:
    """Return the command that runs `argv` between two looks at the clock, with the exit status of `argv`."""
    return ("sh", "-c", _SCRIPT, "timed", f"{output}/{FILE}", *argv)


def elapsed(stamps: str | None, *, where: str = FILE) -> tuple[float, float]:
    """Return how long the command took, in seconds, and the step of that figure.

    Where the wall clock was set meanwhile, or date(1) tells no fractions of a second, /proc/uptime counts, which is
    coarser. Raises ParseError.
    """
    match = _STAMPS.fullmatch(stamps or "")
    if not match:
        raise ParseError(
            "the box's clock was not read around the command",
            where=where,
            got=repr((stamps or "")[:80]),
            allowed="three readings of the wall clock and four of /proc/uptime",
            next_step="see whether the box's output_root is full, or take a time that the program itself prints",
        )
    a, b, c, d = map(float, match.groups()[3:])
    least, most = max(0.0, c - b - UPTIME_STEP_S), d - a + UPTIME_STEP_S
    if all(map(_NANOSECONDS.fullmatch, match.groups()[:3])):
        first, start, end = map(int, match.groups()[:3])
        took = (end - start) / NS_PER_S
        if least <= took <= most and took > 0:
            return took, 2 * abs(start - first) / NS_PER_S
    return (least + most) / 2, most - least
