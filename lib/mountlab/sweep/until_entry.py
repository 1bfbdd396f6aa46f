"""The `until` of a design: from what YAML gives to a stopping rule, strictly."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from mountlab.core.errors import ParameterError
from mountlab.core.model import Until
from mountlab.core.units import PercentText, TimeText, parse_percent, parse_seconds
from mountlab.stats.sequential import LARGEST_MAX, SMALLEST_MIN
from mountlab.sweep.validated import AS_TEXT, File

WIDEST, LEAST, MOST = 0.5, 0.5, 0.999
"""The widest half width that still says something; the confidences for which the correction is computed."""
LONGEST_BUDGET_S = 366 * 24 * 3600.0


class UntilFile(File):
    """What YAML may hold: half_width and confidence as text such as '3%', budget as text such as '30min'."""

    half_width: Annotated[PercentText, AS_TEXT]
    """How precise: `3%` is an interval with both ends within 3 % of the mean (`of: cells`), or a factor of 1.03 either
    way in the interval that holds for all comparisons together (`of: comparisons`)."""
    confidence: Annotated[PercentText, AS_TEXT] = "95%"
    """What the interval covers, corrected for a look after each block. It is also the level of the report."""
    min: Annotated[int, Field(ge=SMALLEST_MIN, le=LARGEST_MAX)] = Until.min
    """Blocks before the first look."""
    max: Annotated[int, Field(ge=SMALLEST_MIN, le=LARGEST_MAX)] = Until.max
    """Blocks at most."""
    budget: TimeText | None = None
    """After `min` blocks none is begun that would take the trials beyond this time."""
    of: Literal["cells", "comparisons"] = Until.of
    """What is to be precise: the mean of every cell, or every ratio to the baseline."""


def read_until(file: UntilFile, *, baseline: str | None, where: str) -> Until:
    """Return the rule of a file's `until`. Raises ParameterError with file, key, got and allowed."""
    half_width = _share(file.half_width, f"{where}.half_width", low=0.0, high=WIDEST)
    confidence = _share(file.confidence, f"{where}.confidence", low=LEAST, high=MOST)
    budget = None if file.budget is None else parse_seconds(file.budget, where=f"{where}.budget")
    if budget is not None and not 0 < budget <= LONGEST_BUDGET_S:
        raise ParameterError(
            "a budget is some time, and has an end",
            where=f"{where}.budget",
            got=repr(file.budget)[:60],
            allowed="more than 0s, at most 8784h: '30min'",
        )
    if file.min >= file.max:
        raise ParameterError(
            "max must be larger than min",
            where=f"{where}.max",
            got=f"min {file.min}, max {file.max}",
            allowed=f"{file.min + 1} to {LARGEST_MAX}",
            next_step="for a fixed number of blocks write design.repeats",
        )
    if file.of == "comparisons" and baseline is None:
        raise ParameterError(
            "without a baseline nothing is compared",
            where=f"{where}.of",
            got="comparisons, and no baseline",
            allowed="of: cells, or a baseline",
            next_step="name a file system as the sweep's baseline",
        )
    return Until(half_width=half_width, confidence=confidence, min=file.min, max=file.max, budget_s=budget, of=file.of)


def _share(text: str, where: str, *, low: float, high: float) -> float:
    share = parse_percent(text, where=where)
    if not low < share <= high:
        allowed = f"above {100 * low:g}%, up to {100 * high:g}%"
        raise ParameterError("a share out of range", where=where, got=repr(text), allowed=allowed)
    return share
