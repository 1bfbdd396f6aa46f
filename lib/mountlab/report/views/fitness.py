"""Is a box fit to measure on: what was looked at, how idle it is, and how steady its processor. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Protocol

from mountlab.core import numbers
from mountlab.filesystems.counters import Around
from mountlab.report import html
from mountlab.report.html import Column, Head, Html, Rows
from mountlab.stats import estimate

BUSY, STOLEN, WAITING, UNSTEADY = 0.05, 0.01, 0.1, 0.05
"""Shares above which a box is not idle, its processors are another's, its tasks wait, and equal work is not equal."""
_CHECKSUM = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{52}\b")
"""The version of a tool that has none: twelve digits of it tell two apart."""


class FitnessRow(Protocol):
    """One thing that `box check` looked at."""

    @property
    def name(self) -> str: ...
    @property
    def state(self) -> str: ...
    @property
    def seen(self) -> str: ...
    @property
    def mend(self) -> str: ...


def checks(rows: Sequence[FitnessRow], *, names: Sequence[str] | None = None) -> Html:
    """Return what was looked at, worst first, and what mends it; `names`: only these."""
    order = {"missing": 0, "limited": 1, "ok": 2}
    chosen = sorted((row for row in rows if names is None or row.name in names), key=lambda row: order[row.state])
    marks = {"missing": "✗ missing", "limited": "! limited", "ok": "✓ ok"}
    head: Head = ["What", "State", "Seen", Column("What mends it", "code")]
    cells = [[row.name, marks[row.state], _CHECKSUM.sub(r"\1…", row.seen), row.mend] for row in chosen]
    return html.table(head, [Rows(cells)], caption="What was looked at; nothing was changed")


def idle(around: Around) -> Html:
    """Return what the box did while nothing was asked of it."""
    return html.items(idle_sentences(around))


def idle_sentences(around: Around) -> list[str]:
    """Return one sentence for each thing that the kernel counts; one that it does not count is said to be not known."""
    moved = sum(traffic.read + traffic.written for traffic in around.traffic.values())
    shares = {
        "other programs ran on the processors for": (around.others, BUSY),
        "a hypervisor took": (around.stolen, STOLEN),
        "some task waited for the processor in": (around.pressure.get("cpu"), WAITING),
        "some task waited for the disk in": (around.pressure.get("io"), WAITING),
    }
    seconds = f"In {around.seconds:.1f} s" if around.seconds else "Meanwhile"
    lines = [f"{seconds} {what} {_share(value, limit)}." for what, (value, limit) in shares.items()]
    return [*lines, f"{seconds} the block devices moved {numbers.quantity(float(moved), 'B')}."]


def _share(value: float | None, limit: float) -> str:
    if value is None:
        return "a share that this kernel does not count"
    return f"{numbers.percent(min(value, 1.0))} of the time: {'too much' if value > limit else 'little enough'}"


def work_sentence(seconds: Sequence[float]) -> str:
    """Return how much equal work differs in time: what no repetition of a trial can get below."""
    work = estimate(seconds)
    rounds = numbers.counted(work.n, "round")
    took = f"{rounds} of equal work took {numbers.quantity(work.mean, 's')} each, with a standard"
    return f"{took} deviation of {numbers.percent(work.cv)}: {'unsteady' if work.cv > UNSTEADY else 'steady'}."


def verdict(rows: Sequence[FitnessRow], around: Around, seconds: Sequence[float]) -> list[str]:
    """Return the answer in sentences: fit, fit with limits or not fit, and why."""
    missing = [row.name for row in rows if row.state == "missing"]
    limited = [row.name for row in rows if row.state == "limited"]
    restless = _restless(around, seconds)
    first = "Everything that Mountlab knows can be measured here."
    if limited:
        first = f"Most can be measured here; limited: {numbers.listed(limited)}."
    if missing:
        verb = "is" if len(missing) == 1 else "are"
        first = f"Not everything can be measured here: {numbers.listed(missing)} {verb} missing."
    second = "The box is idle and steady: what two file systems differ in will show after few blocks."
    if restless:
        second = f"The box is not quiet ({numbers.listed(restless)}): intervals will be wide, and caveats will say so."
    return [first, second]


def _restless(around: Around, seconds: Sequence[float]) -> list[str]:
    cv = estimate(seconds).cv
    shares: Mapping[str, tuple[float | None, float]] = {
        "other programs run": (around.others, BUSY),
        "a hypervisor takes time": (around.stolen, STOLEN),
        "tasks wait for the disk": (around.pressure.get("io"), WAITING),
        "equal work takes unequal time": (None if math.isnan(cv) else cv, UNSTEADY),
    }
    return [what for what, (value, limit) in shares.items() if value is not None and value > limit]
