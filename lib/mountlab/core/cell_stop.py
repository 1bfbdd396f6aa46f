"""Why a cell has no more trials."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

StopReason = Literal["precise", "max reached", "budget", "could not", "not finished"]


@dataclass(frozen=True, kw_only=True)
class CellStop:
    """Why a cell has no more trials, where the design says until when blocks go on."""

    cell: str
    reason: StopReason
    """'could not': it gave no figures, or not enough of them could still come. 'not finished': the run was stopped."""
    blocks: int
    """Counted blocks before the cell ended."""
    n: int
    """Number of figures that the cell gave."""
    half_width: float
    """How far the farther end of the widest interval was off, among those that a report would have printed then. Of
    means, or of ratios in the intervals for all comparisons together: the factor either way, less one. NaN for n < 2.
    """
    metric: str
    """The metric of that interval, with its label where there is one."""
    why: str = ""
    """For 'could not': the reason of its last trial."""
