"""What a tool gives for the figures of a trial, checked once, before anything keeps it: those of Mountlab's own tools,
of plug-ins and of logs made elsewhere pass through here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Real

from mountlab.core.errors import FigureError, ValueRefused, did_you_mean
from mountlab.core.metrics import METRICS, Metric
from mountlab.core.model import Measurement
from mountlab.core.resolution import Step

_OF_MOUNTLAB = ("layers_time", "mkfs_time", "mount_time", "capacity")
"""Metrics that no tool gives: they are of a mount, or of a whole search."""
_MAY_BE_0 = ("asked_rate", "arrival_rate", "completion_rate", "largest_lateness")
"""Beside counts and shares: of a trial whose requests never came, or were never late."""
_BASE_UNITS = ("B/s", "1/s", "s", "B", "1")
"""In other units a metric of a workload's own may be below zero, as a temperature."""


def checked(
    rows: object, own: Mapping[str, Metric], steps: Mapping[str, Step], *, giver: str, authors: str
) -> list[Measurement]:
    """Return the figures of a trial, each with its step.

    `own`: the metrics that the workload defines; `steps`: to what the tool rounds, by metric; `giver`: what gave them,
    the work of `authors`. Raises ValueRefused for a value that no trial can have, and
    FigureError for all else: what is no measurement, an unknown metric or unit, a metric twice.
    """
    for what, got, allowed, kind in _faults(rows, own):
        # A list of trials shows the first line alone.
        raise kind(f"{giver} gave {what}: {got}", got=got, allowed=allowed, next_step=f"report it to {authors}")
    measurements: list[Measurement] = rows  # type: ignore[assignment]
    elapsed_s = next((float(row.value) for row in measurements if (row.metric, row.label) == ("elapsed", "")), math.nan)
    return [_with_step(row, steps.get(row.metric), elapsed_s) for row in measurements]


def _with_step(row: Measurement, step: Step | None, elapsed_s: float) -> Measurement:
    coarsest = step.at(row.value, elapsed_s) if step else 0.0
    return replace(row, step=coarsest) if coarsest > row.step else row


Fault = tuple[str, str, str, type[FigureError]]
"""What was given, what of it was got, what is allowed, and its error."""


def _faults(rows: object, own: Mapping[str, Metric]) -> Iterator[Fault]:
    if not isinstance(rows, Sequence) or isinstance(rows, str) or not rows:
        yield "no figures", _named(rows), "a list of Measurement, one or more", FigureError
        return
    seen = set[tuple[str, str]]()
    for row in rows:
        if not isinstance(row, Measurement):
            yield "a row that is no measurement", _named(row), "Measurement(metric=, value=, unit=)", FigureError
            return
        yield from _faults_of(row, own)
        if (row.metric, row.label) in seen:
            what = f"two values of {_name(row)} in one trial"
            values = [other.value for other in rows if (other.metric, other.label) == (row.metric, row.label)]
            yield what, ", ".join(f"{value:g}" for value in values), "one, or a label for each", FigureError
        seen.add((row.metric, row.label))


def _faults_of(row: Measurement, own: Mapping[str, Metric]) -> Iterator[Fault]:
    """Yield what is wrong with one row: its types first, since the rest relies on them."""
    for name in ("metric", "unit", "label"):
        text = getattr(row, name)
        if not isinstance(text, str):
            yield f"a figure whose {name} is no text", _named(text), "text", FigureError
            return
    if row.metric in _OF_MOUNTLAB or not (row.metric in own or row.metric in METRICS):
        near = did_you_mean(row.metric, (*METRICS, *own))
        allowed = near or "a metric of the documentation's page Metrics, or of own_metrics()"
        yield f"a metric that is not one of a tool: {row.metric}", repr(row.metric), allowed, FigureError
        return
    unit = own[row.metric].unit if row.metric in own else METRICS[row.metric]
    if row.unit != unit:
        yield f"{_name(row)} in a unit that is not its own", repr(row.unit), repr(unit), FigureError
    if not _is_number(row.value) or not _is_number(row.step):
        wrong = row.step if _is_number(row.value) else row.value
        yield f"{_name(row)} with a value or step that is no number", _named(wrong), "a number", FigureError
        return
    if not (math.isfinite(row.value) and math.isfinite(row.step) and row.step >= 0):
        got = f"{row.value:g}" + (f", step {row.step:g}" if math.isfinite(row.value) else "")
        yield f"a value of {_name(row)} that cannot be", got, "a finite number; a step of 0 or more", ValueRefused
    elif row.value <= 0 and (unit in _BASE_UNITS or row.metric not in own):
        may_be_0 = unit == "1" or row.metric in _MAY_BE_0 or row.metric in own
        if row.value < 0 or not may_be_0:
            allowed = "0 or more" if may_be_0 else "more than 0; a figure that is missing has no row"
            yield f"a value of {_name(row)} that cannot be", f"{row.value:g} {row.unit}", allowed, ValueRefused


def _is_number(value: object) -> bool:
    return type(value) is float or (isinstance(value, Real) and not isinstance(value, bool))


def _named(value: object) -> str:
    return f"{value!r} ({type(value).__name__})"[:200]


def _name(row: Measurement) -> str:
    return f"{row.metric} {row.label}".strip()
